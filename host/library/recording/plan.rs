//! Records to keep, and when each is due.

use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::integrator::{Pace, TimeSteps};
use crate::io::Format;
use crate::physics::Physics;
use crate::simulation::Clock;
use crate::units::{Shown, Units};

/// Records to keep, and the end of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Steps of the whole run, counted from its beginning; or `u64::MAX`, to go on until a time.
    pub steps: u64,
    /// Time at which the run ends, exactly, if not before by its steps.
    pub until: Option<f64>,
    /// Steps between two looks.
    pub diagnostics_every: Option<u64>,
    /// Time between two snapshots, in the unit of the run; steps are shortened to meet it.
    pub snapshot_every: Option<f64>,
    /// When checkpoints are written, in addition to the end of a run that is interrupted.
    pub checkpoint_every: Option<Every>,
    /// Format of the snapshots.
    pub format: Format,
    /// Units of the bodies, which snapshots record.
    pub units: Option<Units>,
    /// Unit of times in tables, where the units of the bodies are known. Without one, one that suits the run.
    pub time_unit: Option<Shown>,
}

/// A distance between events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// So many steps.
    Steps(u64),
    /// So long on the clock on the wall.
    Wall(Duration),
}

/// `500` steps, or `90s`, `10m`, `1.5h`.
impl FromStr for Every {
    type Err = UnknownDistance;

    fn from_str(text: &str) -> Result<Self, UnknownDistance> {
        let steps = text.parse().ok().filter(|&steps| steps > 0);
        let wall = |unit, seconds: f64| {
            let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
            let wall = Duration::try_from_secs_f64(number * seconds).ok()?;
            (!wall.is_zero()).then_some(Self::Wall(wall))
        };
        steps
            .map(Self::Steps)
            .or_else(|| wall('s', 1.0))
            .or_else(|| wall('m', 60.0))
            .or_else(|| wall('h', 3600.0))
            .ok_or_else(|| UnknownDistance(text.to_owned()))
    }
}

/// Neither steps nor a time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is neither a number of steps, such as 500, nor a time, such as 90s, 10m or 2h")]
pub struct UnknownDistance(String);

impl Plan {
    /// Returns whether bound pairs are logged: where bodies stand for themselves.
    pub(super) fn has_pairs(&self, physics: &Physics) -> bool {
        self.diagnostics_every.is_some() && physics.softening == 0.0
    }

    /// Returns whether snapshots have a table of bound pairs beside them.
    pub(super) fn has_binaries(&self, physics: &Physics) -> bool {
        self.snapshot_every.is_some() && physics.softening == 0.0
    }

    pub(super) fn is_look_due(&self, clock: &Clock) -> bool {
        self.diagnostics_every
            .is_some_and(|every| clock.steps.is_multiple_of(every))
    }

    /// Number of snapshots after the first that are due at this moment: a function of it alone.
    pub(super) fn snapshots_due(&self, clock: &Clock) -> u64 {
        self.snapshot_every.map_or(0, |every| {
            let since = clock.time - clock.start;
            // 10 · 0.1 / 0.01 may round to below 100.
            let due = (since.abs() / every * (1.0 + 1e-12)).floor() as u64;
            // Far from time 0, the time of a snapshot is rounded by more than that.
            let next = snapshot_time(clock, since.signum(), every, due.saturating_add(1));
            let is_next = since != 0.0 && since.signum() * (clock.time - next) >= 0.0;
            due.saturating_add(u64::from(is_next))
        })
    }

    /// Number of steps of the whole run, where it can be known before: without those that snapshots
    /// shorten.
    pub(super) fn steps_of(&self, clock: &Clock, pace: Pace) -> Option<u64> {
        let (length, end) = match pace {
            Pace::Fixed(dt) => (dt, self.until),
            Pace::Adaptive {
                longest,
                end,
                steps: TimeSteps::Blocks,
                ..
            } => (longest, Some(self.until.unwrap_or(end))),
            Pace::Adaptive { .. } => return None,
        };
        let by_time = end.map(|end| ((end - clock.start) / length * (1.0 - 1e-12)).ceil() as u64);
        let steps = by_time.map_or(self.steps, |steps| steps.min(self.steps));
        Some(steps).filter(|&steps| steps < u64::MAX)
    }

    /// When something is next to be done.
    pub(super) fn next_stop(&self, clock: &Clock, pace: Pace) -> Stop {
        let multiple = |every: u64| {
            (clock.steps / every)
                .saturating_add(1)
                .saturating_mul(every)
        };
        let mut steps = self.steps;
        if let Some(every) = self.diagnostics_every {
            steps = steps.min(multiple(every));
        }
        if let Some(Every::Steps(every)) = self.checkpoint_every {
            steps = steps.min(multiple(every));
        }
        let (end, direction) = match pace {
            Pace::Fixed(dt) => (self.until, dt.signum()),
            Pace::Adaptive { end, .. } => (Some(self.until.unwrap_or(end)), 1.0),
        };
        let snapshot = self.snapshot_every.map(|every| {
            let due = self.snapshots_due(clock).saturating_add(1);
            snapshot_time(clock, direction, every, due)
        });
        // Snapshots that are nearer to each other than times are rounded are none.
        let snapshot = snapshot.filter(|time| direction * (time - clock.time) > 0.0);
        let time = match (snapshot, end) {
            // One that rounding alone puts before the end is at the end.
            (Some(snapshot), Some(end))
                if direction * (end - snapshot) > 1e-12 * (end - clock.start).abs() =>
            {
                Some(snapshot)
            }
            (Some(snapshot), None) => Some(snapshot).filter(|time| time.is_finite()),
            (_, end) => end,
        };
        Stop { steps, time }
    }
}

/// Time of a snapshot after the first, by its number.
fn snapshot_time(clock: &Clock, direction: f64, every: f64, number: u64) -> f64 {
    clock.start + direction * (number as f64 * every)
}

/// When to stop: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stop {
    pub(super) steps: u64,
    pub(super) time: Option<f64>,
}
