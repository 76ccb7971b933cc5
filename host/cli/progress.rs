//! Progress of a run as lines, where the standard error is not a terminal.

use std::time::{Duration, Instant};

use crate::say;

/// Least time between two lines.
const SHORTEST: Duration = Duration::from_secs(10);
/// Longest time between two lines.
const LONGEST: Duration = Duration::from_secs(600);
/// Time between two lines within a step, of which nobody knows how long it takes.
const WITHIN: Duration = Duration::from_secs(60);
/// Share of the run between two lines, if that takes longer than the least time.
const SHARE: f64 = 0.05;

/// A run that takes as many seconds more is worth a line as soon as that is known.
const LONG: f64 = 60.0;

/// When the next line is due.
pub(super) struct Lines {
    began: Instant,
    from: f64,
    last: (Instant, f64),
    /// Nothing was said of the time that the run takes.
    untold: bool,
}

impl Lines {
    /// From this share of the run on; `untold` where it was not said before it began how long it would take.
    pub(super) fn new(share: f64, untold: bool) -> Self {
        let now = Instant::now();
        Self {
            began: now,
            from: share,
            last: (now, share),
            untold,
        }
    }

    /// Time that is left, as text to append, if a line is due at this share of the run.
    pub(super) fn due(&mut self, share: f64) -> Option<String> {
        let (at, before) = self.last;
        let since = at.elapsed();
        let left = self.began.elapsed().as_secs_f64() * (1.0 - share) / (share - self.from);
        let left = Some(left).filter(|left| left.is_finite());
        let first = std::mem::take(&mut self.untold) && left.is_some_and(|left| left >= LONG);
        let wanted = share - before >= SHARE || since >= LONGEST;
        if !first && (since < SHORTEST || !wanted) || share >= 1.0 {
            return None;
        }
        self.last = (Instant::now(), share);
        let left = left.map(|left| format!(", {} left", say::duration(left)));
        Some(left.unwrap_or_default())
    }

    /// True if a line is due within a step, at this share of the run.
    pub(super) fn is_due_within_step(&mut self, share: f64) -> bool {
        let (at, _) = self.last;
        let is_due = at.elapsed() >= WITHIN;
        if is_due {
            self.last = (Instant::now(), share);
        }
        is_due
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
                untold: false,
            };
            lines.due(share)
        };
        assert_eq!(due(9, 0.9), None);
        assert_eq!(due(11, 0.54), None);
        assert_eq!(due(11, 0.8).as_deref(), Some(", 25 s left"));
        assert!(due(601, 0.501).is_some());
        assert_eq!(due(601, 1.0), None, "the end is told otherwise");
    }

    #[test]
    fn long_steps_are_heard_of() {
        let mut lines = Lines::new(0.0, true);
        lines.last.0 = Instant::now() - Duration::from_secs(59);
        assert!(!lines.is_due_within_step(1e-6));
        lines.last.0 = Instant::now() - Duration::from_secs(61);
        assert!(lines.is_due_within_step(1e-6));
        assert!(!lines.is_due_within_step(1e-6));
    }

    #[test]
    fn a_long_run_of_which_nothing_was_known_has_a_line_at_once() {
        let started = |untold| Lines {
            began: Instant::now() - Duration::from_secs(2),
            from: 0.0,
            last: (Instant::now(), 0.0),
            untold,
        };
        let mut lines = started(true);
        assert_eq!(lines.due(0.02).as_deref(), Some(", 2 min left"));
        assert_eq!(lines.due(0.02), None, "once");
        assert_eq!(started(true).due(0.2), None, "8 s");
        assert_eq!(started(false).due(0.02), None);
    }
}
