//! Progress of a run as lines, where the standard error is not a terminal.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::say;

/// Least time between two lines.
const SHORTEST: Duration = Duration::from_secs(10);
/// Time after which the rate of the first steps is known.
const SOON: Duration = Duration::from_secs(1);
/// Longest time between two lines.
const LONGEST: Duration = Duration::from_secs(600);
/// Time between two lines within a step, of which nobody knows how long it takes.
const WITHIN: Duration = Duration::from_secs(60);
/// Share of the run between two lines, if that takes longer than the least time.
const SHARE: f64 = 0.05;

/// A run that takes as many seconds more is worth a line as soon as that is known.
const LONG: f64 = 60.0;

/// Tells each minute that work goes on, as long as it takes.
pub(super) fn heard_of<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _heart = Heart::beating(what.to_owned());
    work()
}

/// A thread that tells each minute what is under way, if no beat comes.
pub(super) struct Heart {
    beats: Sender<String>,
    last: Instant,
}

impl Heart {
    /// Tells of `what` until the first beat.
    pub(super) fn beating(what: String) -> Self {
        Self::telling(what, WITHIN, |line| say::tell(format_args!("{line}")))
    }

    fn telling(what: String, pause: Duration, tell: impl Fn(String) + Send + 'static) -> Self {
        let (beats, receiver) = mpsc::channel();
        thread::spawn(move || {
            let (mut what, mut since) = (what, Instant::now());
            loop {
                match receiver.recv_timeout(pause) {
                    Ok(next) => (what, since) = (next, Instant::now()),
                    Err(RecvTimeoutError::Timeout) => {
                        let time = say::duration(since.elapsed().as_secs_f64());
                        tell(format!("{what}: under way for {time}"));
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        let last = Instant::now();
        Self { beats, last }
    }

    /// A beat: from now on this is under way. Beats that follow another within a second are left out.
    pub(super) fn beat(&mut self, what: impl FnOnce() -> String) {
        if self.last.elapsed() >= Duration::from_secs(1) {
            self.last = Instant::now();
            // The thread ends after this sender.
            let _ = self.beats.send(what());
        }
    }
}

/// When the next line is due.
pub(super) struct Lines {
    began: Instant,
    from: f64,
    last: (Instant, f64),
    /// Nothing was said of the time that the run takes at the rate of its first steps.
    untold: bool,
    /// There was no line yet.
    is_first: bool,
}

impl Lines {
    /// From this share of the run on.
    pub(super) fn new(share: f64) -> Self {
        let now = Instant::now();
        Self {
            began: now,
            from: share,
            last: (now, share),
            untold: true,
            is_first: true,
        }
    }

    /// Time that is left, as text to append, if a line is due at this share of the run.
    pub(super) fn due(&mut self, share: f64) -> Option<String> {
        let (at, before) = self.last;
        let since = at.elapsed();
        let left = self.began.elapsed().as_secs_f64() * (1.0 - share) / (share - self.from);
        let left = Some(left).filter(|left| left.is_finite());
        let is_known = self.untold && self.began.elapsed() >= SOON;
        self.untold &= !is_known;
        let first = is_known && left.is_some_and(|left| left >= LONG);
        let longest = if self.is_first { WITHIN } else { LONGEST };
        let wanted = share - before >= SHARE || since >= longest;
        if !first && (since < SHORTEST || !wanted) || share >= 1.0 {
            return None;
        }
        self.last = (Instant::now(), share);
        self.is_first = false;
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
                is_first: false,
            };
            lines.due(share)
        };
        assert_eq!(due(9, 0.9), None);
        assert_eq!(due(11, 0.54), None);
        assert_eq!(due(11, 0.8).as_deref(), Some(", 25 s left"));
        assert!(due(601, 0.501).is_some());
        assert_eq!(due(601, 1.0), None, "the end is told otherwise");
    }

    /// However long steps take, there is a first line after a minute.
    #[test]
    fn the_first_line_comes_within_a_minute() {
        let ago = Instant::now() - Duration::from_secs(61);
        let mut lines = Lines::new(0.0);
        (lines.began, lines.last.0, lines.untold) = (ago, ago, false);
        assert_eq!(lines.due(0.02).as_deref(), Some(", 50 min left"));
        lines.last.0 = ago;
        assert_eq!(lines.due(0.03), None, "the second waits longer");
    }

    #[test]
    fn work_without_a_beat_is_heard_of() {
        let (sender, told) = mpsc::channel();
        let pause = Duration::from_millis(20);
        let mut heart = Heart::telling("forces".to_owned(), pause, move |line| {
            let _ = sender.send(line);
        });
        assert_eq!(told.recv().unwrap(), "forces: under way for 0 s");
        heart.beat(|| unreachable!("so soon"));
        heart.last = Instant::now() - Duration::from_secs(2);
        heart.beat(|| "step 2".to_owned());
        let is_next = |line: &String| line.starts_with("step 2: ");
        assert!(told.iter().take(100).any(|line| is_next(&line)));
        drop(heart);
        assert!(told.iter().count() < 100, "it ends");
    }

    #[test]
    fn long_steps_are_heard_of() {
        let mut lines = Lines::new(0.0);
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
            is_first: true,
        };
        let mut lines = started(true);
        assert_eq!(lines.due(0.02).as_deref(), Some(", 2 min left"));
        assert_eq!(lines.due(0.02), None, "once");
        let mut new = Lines::new(0.0);
        assert_eq!(new.due(1e-9), None, "so soon nothing is known");
        new.began = lines.began;
        assert!(new.due(0.02).is_some());
        assert_eq!(started(true).due(0.2), None, "8 s");
        assert_eq!(started(false).due(0.02), None);
    }
}
