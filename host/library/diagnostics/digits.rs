//! In which decimal do two sets of positions first differ?

use super::LengthMismatch;
use crate::bodies::Bodies;

/// Number of coordinates (three per body) by the decimal place that their error first reaches.
///
/// A coordinate counts in decimal d when `10⁻ᵈ ≤ |error| < 10¹⁻ᵈ`. The size of the error decides,
/// not the printed digits: 0.2000 and 0.1999 differ by 10⁻⁴, and so in the fourth decimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigitHistogram {
    /// Errors of 1 and more.
    pub whole: u64,
    /// Errors that first reach the 1st, 2nd, … decimal.
    pub decimals: [u64; Self::DECIMALS],
    /// Errors below the last decimal told apart, exact agreement among them.
    pub beyond: u64,
    /// Errors that are NaN or infinite.
    pub not_finite: u64,
}

impl DigitHistogram {
    /// Number of decimals that are distinguished.
    pub const DECIMALS: usize = 6;

    /// Compares the positions of `computed` with the positions of `reference`, body by body.
    ///
    /// # Errors
    /// The two do not hold the same number of bodies.
    pub fn of(computed: &Bodies, reference: &Bodies) -> Result<Self, LengthMismatch> {
        LengthMismatch::check(computed.len(), reference.len())?;
        let axes = [
            (&computed.x, &reference.x),
            (&computed.y, &reference.y),
            (&computed.z, &reference.z),
        ];
        let mut histogram = Self::default();
        for (a, b) in axes.into_iter().flat_map(|(a, b)| a.iter().zip(b)) {
            histogram.count((a - b).abs());
        }
        Ok(histogram)
    }

    fn count(&mut self, error: f64) {
        const PLACES: [f64; DigitHistogram::DECIMALS] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
        if !error.is_finite() {
            self.not_finite += 1;
        } else if error >= 1.0 {
            self.whole += 1;
        } else if let Some(place) = PLACES.iter().position(|&place| error >= place) {
            self.decimals[place] += 1;
        } else {
            self.beyond += 1;
        }
    }

    /// Number of coordinates compared.
    pub fn total(&self) -> u64 {
        self.whole + self.decimals.iter().sum::<u64>() + self.beyond + self.not_finite
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyKind};

    fn at(positions: &[[f64; 3]]) -> Bodies {
        let mut bodies = Bodies::with_capacity(positions.len());
        for &position in positions {
            bodies.push(Body {
                position,
                velocity: [0.0; 3],
                mass: 1.0,
                id: 0,
                kind: BodyKind::Star,
            });
        }
        bodies
    }

    #[test]
    fn errors_fall_into_their_decimal() {
        let reference = at(&[[0.0; 3], [0.0; 3], [0.2, 5.0, 0.0]]);
        let computed = at(&[
            [0.5, -0.01, 0.0099],
            [1.0, 2e-6, 9e-7],
            [0.1999, 5.0, f64::NAN],
        ]);
        let histogram = DigitHistogram::of(&computed, &reference).unwrap();
        assert_eq!(histogram.whole, 1);
        // 0.2 − 0.1999 in f64 is a little more than 10⁻⁴.
        assert_eq!(histogram.decimals, [1, 1, 1, 1, 0, 1]);
        assert_eq!((histogram.beyond, histogram.not_finite), (2, 1));
        assert_eq!(histogram.total(), 9);
    }

    #[test]
    fn different_lengths_are_refused() {
        let fault = DigitHistogram::of(&at(&[[0.0; 3]]), &at(&[])).unwrap_err();
        assert_eq!(
            fault,
            LengthMismatch {
                computed: 1,
                reference: 0
            }
        );
    }
}
