//! Extrapolation of a symmetric method to steps of length 0.
//!
//! A symmetric method of second order with n equal substeps has an error in even powers of 1/n. The
//! Aitken–Neville scheme removes one power a row (Gragg 1965; Bulirsch & Stoer 1966; Hairer, Nørsett
//! & Wanner, *Solving Ordinary Differential Equations I*, II.9).

/// Rows at most.
pub(crate) const ROWS: usize = 10;

/// Substeps of a row: 2, 4, 6, ...
pub(crate) const fn substeps(row: usize) -> usize {
    2 * (row + 1)
}

/// Results of rows of more and more substeps, extrapolated. Each result has `LENGTH` numbers.
pub(crate) struct Table<const LENGTH: usize> {
    rows: usize,
    /// Extrapolations of the last row, of rising order.
    last: [[f64; LENGTH]; ROWS],
}

impl<const LENGTH: usize> Table<LENGTH> {
    /// A table without rows.
    pub(crate) const fn new() -> Self {
        Self {
            rows: 0,
            last: [[0.0; LENGTH]; ROWS],
        }
    }

    /// Adds the result of `substeps` of the next row, of which the first `used` numbers mean
    /// something; the table must have less than [`ROWS`].
    pub(crate) fn add(&mut self, result: &[f64; LENGTH], used: usize) {
        let row = self.rows;
        let mut current = *result;
        for column in 1..=row {
            let ratio = substeps(row) as f64 / substeps(row - column) as f64;
            let factor = 1.0 / (ratio * ratio - 1.0);
            let pairs = current.iter_mut().zip(&mut self.last[column - 1]);
            for (current, before) in pairs.take(used) {
                let change = factor * (*current - *before);
                *before = *current;
                *current += change;
            }
        }
        self.last[row] = current;
        self.rows += 1;
    }

    /// The extrapolation of the highest order, and the one before it in its row, from the second row
    /// on. They differ by the error of the latter.
    pub(crate) fn best_two(&self) -> Option<[&[f64; LENGTH]; 2]> {
        (self.rows >= 2).then(|| [&self.last[self.rows - 1], &self.last[self.rows - 2]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_powers_vanish_a_row_each() {
        let mut table = Table::<2>::new();
        for row in 0..4 {
            assert_eq!(table.best_two().is_some(), row >= 2);
            let square = 1.0 / (substeps(row) * substeps(row)) as f64;
            let odd = 1.0 / substeps(row) as f64;
            let even = 7.0 + square * (3.0 + square * (-5.0 + square * 11.0));
            table.add(&[even, 7.0 + odd], 2);
        }
        let [best, before] = table.best_two().unwrap();
        assert!((best[0] - 7.0).abs() < 1e-14, "{}", best[0]);
        assert!((before[0] - 7.0).abs() > 1e-6, "{}", before[0]);
        // An odd power stays.
        assert!((best[1] - 7.0).abs() > 1e-3, "{}", best[1]);
    }

    #[test]
    fn a_leapfrog_becomes_exact() {
        // A harmonic oscillator over a radian.
        let mut table = Table::<2>::new();
        for row in 0..ROWS {
            let h = 1.0 / substeps(row) as f64;
            let [mut x, mut v] = [1.0, 0.0];
            for _ in 0..substeps(row) {
                x += 0.5 * h * v;
                v -= h * x;
                x += 0.5 * h * v;
            }
            table.add(&[x, v], 2);
        }
        let [best, _] = table.best_two().unwrap();
        assert!((best[0] - f64::cos(1.0)).abs() < 1e-13);
        assert!((best[1] + f64::sin(1.0)).abs() < 1e-13);
    }
}
