//! Progress of a run as lines, where the standard error is not a terminal.

use std::time::{Duration, Instant};

/// Least time between two lines.
const SHORTEST: Duration = Duration::from_secs(10);
/// Longest time between two lines.
const LONGEST: Duration = Duration::from_secs(600);
/// Share of the run between two lines, if that takes longer than the least time.
const SHARE: f64 = 0.05;

/// When the next line is due.
pub(super) struct Lines {
    began: Instant,
    from: f64,
    last: (Instant, f64),
}

impl Lines {
    /// From this share of the run on.
    pub(super) fn new(share: f64) -> Self {
        let now = Instant::now();
        Self {
            began: now,
            from: share,
            last: (now, share),
        }
    }

    /// Time that is left, as text to append, if a line is due at this share of the run.
    pub(super) fn due(&mut self, share: f64) -> Option<String> {
        let (at, before) = self.last;
        let since = at.elapsed();
        let wanted = share - before >= SHARE || since >= LONGEST;
        if since < SHORTEST || !wanted || share >= 1.0 {
            return None;
        }
        self.last = (Instant::now(), share);
        Some(self.left(share))
    }

    fn left(&self, share: f64) -> String {
        let left = self.began.elapsed().as_secs_f64() * (1.0 - share) / (share - self.from);
        match left.is_finite() {
            true => format!(", {} left", super::duration(left)),
            false => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_at_sensible_intervals() {
        let ago = |seconds| Instant::now() - Duration::from_secs(seconds);
        let due = |seconds, share| {
            let mut lines = Lines {
                began: ago(100),
                from: 0.0,
                last: (ago(seconds), 0.5),
            };
            lines.due(share)
        };
        assert_eq!(due(9, 0.9), None);
        assert_eq!(due(11, 0.54), None);
        assert_eq!(due(11, 0.8).as_deref(), Some(", 25 s left"));
        assert!(due(601, 0.501).is_some());
        assert_eq!(due(601, 1.0), None, "the end is told otherwise");
    }
}
