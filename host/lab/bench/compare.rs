//! Comparison with an earlier record: slower and faster kernels.

use crate::bench_record::{BenchRecord, BenchRow};

/// Times of the same program on the same device differ by as much from one run to the next.
const NOISE: f64 = 0.01;

/// Ratio of the fastest time of one record to the slowest of the other that no spread explains.
const APART: f64 = 2.0;

/// A kernel that two records have both timed, at the same number of bodies and steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Name.
    pub kernel: String,
    /// Number of bodies.
    pub bodies: u64,
    /// Seconds before.
    pub before: f64,
    /// Seconds now.
    pub now: f64,
    /// Seconds that the spreads of both, or noise, explain.
    pub explained: f64,
}

impl Change {
    /// Returns whether it is slower by more than the spread explains.
    pub fn is_slower(&self) -> bool {
        self.now - self.before > self.explained
    }

    /// Returns whether it is faster by more than the spread explains.
    pub fn is_faster(&self) -> bool {
        self.before - self.now > self.explained
    }
}

/// Two records side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Kernels that are in both.
    pub changes: Vec<Change>,
    /// Rows that the earlier record lacks, or has of other steps: kernel and bodies.
    pub only_now: Vec<(String, u64)>,
    /// Kernels that were right and are wrong now.
    pub broken: Vec<(String, u64)>,
}

/// Compares each kernel of `before`.
pub fn compare(before: &BenchRecord, now: &BenchRecord) -> Comparison {
    let same = |a: &BenchRow, b: &BenchRow| {
        (&a.kernel, a.bodies, a.steps.is_some()) == (&b.kernel, b.bodies, b.steps.is_some())
            && a.choices == b.choices
    };
    let (mut changes, mut only_now) = (vec![], vec![]);
    for row in &now.rows {
        let Some(earlier) = before.rows.iter().find(|earlier| same(earlier, row)) else {
            only_now.push((row.kernel.clone(), row.bodies));
            continue;
        };
        let are_apart = |one: &BenchRow, other: &BenchRow| one.fastest > APART * other.slowest;
        let spreads = match are_apart(row, earlier) || are_apart(earlier, row) {
            true => 0.0,
            false => (earlier.slowest - earlier.fastest).max(row.slowest - row.fastest),
        };
        changes.push(Change {
            kernel: row.kernel.clone(),
            bodies: row.bodies,
            before: earlier.seconds,
            now: row.seconds,
            explained: spreads.max(NOISE * earlier.seconds),
        });
    }
    let was_right = |kernel: &str| before.rows.iter().any(|row| row.kernel == kernel);
    let broken = now
        .failures
        .iter()
        .filter(|failure| was_right(&failure.kernel));
    let broken = broken.map(|failure| (failure.kernel.clone(), failure.bodies));
    Comparison {
        changes,
        only_now,
        broken: broken.collect(),
    }
}

impl Comparison {
    /// Returns whether nothing became slower than the spread explains, or wrong.
    pub fn is_sound(&self) -> bool {
        self.broken.is_empty() && !self.changes.iter().any(Change::is_slower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_record::{BenchFailure, samples};

    fn record(rows: &[(&str, [f64; 3])]) -> BenchRecord {
        let row = |&(kernel, [fastest, seconds, slowest]): &(&str, [f64; 3])| BenchRow {
            fastest,
            slowest,
            ..samples::row(kernel, 64, seconds)
        };
        samples::record(rows.iter().map(row).collect())
    }

    #[test]
    fn what_is_slower_by_more_than_the_spread_is_found() {
        let before = record(&[
            ("a", [0.9, 1.0, 1.2]),
            ("b", [1.0; 3]),
            ("c", [1.0; 3]),
            ("e", [1.0; 3]),
        ]);
        let mut now = record(&[
            ("a", [1.1, 1.2, 1.3]), // 0.2 slower, and the spread is 0.3
            ("b", [1.02; 3]),
            ("c", [0.5; 3]),
            ("d", [1.0; 3]),
            ("e", [2.1, 3.0, 9.0]), // slower, though the spread is large
        ]);
        let found = compare(&before, &now);
        let slower: Vec<&str> = found
            .changes
            .iter()
            .filter(|change| change.is_slower())
            .map(|change| change.kernel.as_str())
            .collect();
        assert_eq!(slower, ["b", "e"]);
        assert!(found.changes[2].is_faster());
        assert_eq!(found.only_now, [("d".to_owned(), 64)]);
        assert!(!found.is_sound());
        assert!(compare(&before, &before).is_sound());

        now.rows.clear();
        now.failures.push(BenchFailure {
            kernel: "a".into(),
            bodies: 64,
            why: "wrong".into(),
            expected: false,
        });
        assert_eq!(compare(&before, &now).broken, [("a".to_owned(), 64)]);
    }

    #[test]
    fn other_numbers_of_bodies_are_not_compared() {
        let before = record(&[("a", [1.0; 3])]);
        let mut now = record(&[("a", [2.0; 3])]);
        now.rows[0].bodies = 128;
        let found = compare(&before, &now);
        assert!(found.changes.is_empty());
        assert_eq!(found.only_now, [("a".to_owned(), 128)]);
    }
}
