//! Measures of a run's quality: conserved quantities, their drift, and the error of a force.
//!
//! Everything here is f64 on the host and sums are compensated, so that a drift which is seen
//! belongs to the run and not to its measurement. Quantities follow the force law: under
//! [`ForceLaw::Unit`](crate::physics::ForceLaw::Unit) every body weighs 1, whatever its stored mass, because
//! only then are energy and momentum conserved.

mod compensated;
mod conserved;
mod digits;
mod energy;
mod force_error;
mod sample;
mod shrinking_spheres;

pub use compensated::CompensatedSum;
pub use conserved::{Brought, Conserved, Drift, Lost, angular_momentum, centre_of_mass, momentum};
pub use digits::DigitHistogram;
pub use energy::{Energy, EnergyLook, kinetic, odd_motion};
pub use force_error::{Accuracy, Disagreement, LengthMismatch, ReferenceForce, check, tolerance};
pub use sample::{MASS_SHARES, OwnSteps, Sample, lagrangian_radii};
pub use shrinking_spheres::core_centre;

/// `error / scale`, where an exact zero error is 0 even if there is nothing to compare it with.
///
/// NaN stays NaN and an error against a zero scale is infinite: neither passes `<= tolerance`.
fn relative(error: f64, scale: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / scale }
}

/// The largest of some numbers, none of them negative: 0 if there are none, NaN if one is NaN.
///
/// [`f64::max`] would leave NaN out, and an error that is not a number has to stay the worst.
pub fn largest(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let worse = |largest: f64, number: f64| number > largest || number.is_nan();
    numbers.into_iter().fold(0.0, |largest, number| {
        if worse(largest, number) {
            number
        } else {
            largest
        }
    })
}

fn norm(v: [f64; 3]) -> f64 {
    v[0].hypot(v[1]).hypot(v[2])
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[cfg(test)]
mod tests {
    use super::largest;
    use crate::physics::{ForceLaw, Physics};

    /// Gravity without softening, for the tests of all measures.
    pub(super) const GRAVITY: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };

    #[test]
    fn the_largest_is_nan_wherever_nan_stands() {
        for numbers in [
            [f64::NAN, 1.0, 2.0],
            [1.0, f64::NAN, 2.0],
            [1.0, 2.0, f64::NAN],
        ] {
            assert!(largest(numbers).is_nan(), "{numbers:?}");
        }
        assert_eq!(largest([1.0, 3.0, 2.0]), 3.0);
        assert_eq!(largest([]), 0.0);
    }
}
