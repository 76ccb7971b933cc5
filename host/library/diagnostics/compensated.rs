//! A sum with an error that does not grow with the number of terms.

/// Running sum, with a second sum of the rounding errors of its additions (Neumaier's variant of
/// Kahan summation; A. Neumaier, ZAMM 54, 39, 1974).
///
/// With u = 2⁻⁵³ the result is off by at most u·|Σ| plus terms of order n²u²·Σ|terms|. A NaN or
/// infinite term gives NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    /// Adds one term.
    pub fn add(&mut self, term: f64) {
        let sum = self.sum + term;
        // What the addition lost is exactly the smaller operand minus what arrived of it.
        self.lost += if self.sum.abs() >= term.abs() {
            (self.sum - sum) + term
        } else {
            (term - sum) + self.sum
        };
        self.sum = sum;
    }

    /// The sum so far.
    pub fn value(self) -> f64 {
        self.sum + self.lost
    }
}

impl FromIterator<f64> for CompensatedSum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_a_plain_sum_loses() {
        let terms = [1.0, 1e100, 1.0, -1e100];
        assert_eq!(terms.iter().sum::<f64>(), 0.0);
        assert_eq!(terms.into_iter().collect::<CompensatedSum>().value(), 2.0);
    }

    #[test]
    fn many_tenths() {
        let n = 1_000_000;
        let sum: CompensatedSum = (0..n).map(|_| 0.1).collect();
        // 0.1 is not a binary fraction; its f64 value times 10⁶ rounds to 10⁵.
        assert_eq!(sum.value(), 1e5);
    }

    #[test]
    fn nan_is_not_swallowed() {
        assert!(
            [1.0, f64::NAN, 2.0]
                .into_iter()
                .collect::<CompensatedSum>()
                .value()
                .is_nan()
        );
        assert!(
            [1.0, f64::INFINITY]
                .into_iter()
                .collect::<CompensatedSum>()
                .value()
                .is_nan()
        );
    }
}
