//! A run that leaves a record: diagnostics every so many steps, snapshots every so much time,
//! checkpoints to continue from.
//!
//! A run's folder holds `run.toml` (what was asked for; the program's, not this module's),
//! `diagnostics.csv` and `.jsonl`, `snapshot-<step>.<format>`, `checkpoint` and
//! `checkpoint.previous`. Everything but the diagnostics appears whole or not at all, and those are
//! mended on resuming. What is written depends on the steps alone, never on the clock on the wall,
//! so that a run which was stopped and resumed leaves the same bytes as one which was not — if its
//! variant adds forces in a fixed order; others differ in the last digits from run to run.

mod log;
mod writer;

use std::cell::Cell;
use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thiserror::Error;

use self::log::Log;
use self::writer::{Moment, Run, Writer, lock as lock_log};
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::checkpoint::{self, Checkpoint};
use crate::diagnostics::{Conserved, Sample};
use crate::integrator::Pace;
use crate::io::{Format, WriteError, is_partial};
use crate::simulation::{Clock, Progress, Simulation};
use crate::units::Units;

/// Records to keep, and the end of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Steps of the whole run, counted from its beginning.
    pub steps: u64,
    /// Steps between two looks.
    pub diagnostics_every: Option<u64>,
    /// Time between two snapshots, in the unit of the run.
    pub snapshot_every: Option<f64>,
    /// When checkpoints are written, beside when the run is broken off.
    pub checkpoint_every: Option<Every>,
    /// Format of the snapshots.
    pub format: Format,
    /// Units of the bodies, for the snapshots to tell.
    pub units: Option<Units>,
}

/// A distance between events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// So many steps.
    Steps(u64),
    /// So long on the clock on the wall.
    Wall(Duration),
}

/// `500` steps, or `90s`, `10m`, `2h`.
impl FromStr for Every {
    type Err = UnknownDistance;

    fn from_str(text: &str) -> Result<Self, UnknownDistance> {
        let number = |digits: &str| digits.parse().ok().filter(|&number| number > 0);
        let wall = |unit, seconds: u64| {
            let number: u64 = number(text.strip_suffix(unit)?)?;
            Some(Self::Wall(Duration::from_secs(
                number.checked_mul(seconds)?,
            )))
        };
        number(text)
            .map(Self::Steps)
            .or_else(|| wall('s', 1))
            .or_else(|| wall('m', 60))
            .or_else(|| wall('h', 3600))
            .ok_or_else(|| UnknownDistance(text.to_owned()))
    }
}

/// Neither steps nor a time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is neither a number of steps, such as 500, nor a time, such as 90s, 10m or 2h")]
pub struct UnknownDistance(String);

/// Event of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// Some steps more, several times a second.
    Progress(Progress),
    /// A look was taken.
    Sample(&'a Sample),
    /// A snapshot or a checkpoint was written.
    Wrote(&'a Path),
    /// The bodies as they are now, for those who asked for [previews](Recording::preview_every).
    Preview(Progress, &'a Bodies),
}

/// Reason why a run could not go on. What it had written is there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The backend failed.
    #[error(transparent)]
    Force(#[from] ForceError),
    /// A snapshot could not be written.
    #[error(transparent)]
    Snapshot(#[from] WriteError),
    /// Diagnostics or a checkpoint could not be written.
    #[error("cannot write to {}: {fault}", folder.display())]
    Io {
        /// The run's folder.
        folder: PathBuf,
        /// The file system's refusal.
        fault: io::Error,
    },
}

/// A claim on a run's folder, which ends with the process however that ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not used")] File);

/// Claims a run's folder through its file `name`, which must be there.
///
/// # Errors
/// `WouldBlock` if another process has it.
pub fn lock(folder: &Path, name: &str) -> io::Result<Lock> {
    let file = File::open(folder.join(name))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            "another process is running there",
        )),
        // Some file systems know no locks; a run there is better than none.
        Err(TryLockError::Error(fault)) if fault.kind() == io::ErrorKind::Unsupported => {
            Ok(Lock(file))
        }
        Err(TryLockError::Error(fault)) => Err(fault),
    }
}

/// The files that a run leaves in its folder, as far as this module writes them, and what a killed
/// process left half-written.
///
/// # Errors
/// The file system's refusal.
pub fn leftovers(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let recorded = log::NAMES.contains(&&*name)
            || name.starts_with("checkpoint")
            || name
                .strip_prefix("snapshot-")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if recorded || is_partial(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The record of a run, under way.
#[derive(Debug)]
pub struct Recording {
    folder: PathBuf,
    plan: Plan,
    origin: Conserved,
    log: Option<Arc<Mutex<Log>>>,
    /// Snapshots that were due up to now.
    snapshots: u64,
    preview_every: Option<Duration>,
}

impl Recording {
    /// Begins the record of `simulation` in a folder that has none: takes the first look and the
    /// first snapshot, as far as they are planned.
    ///
    /// # Errors
    /// The file system's or the backend's refusal.
    pub fn begin(
        folder: &Path,
        plan: Plan,
        simulation: &mut Simulation,
        mut watch: impl FnMut(Event<'_>),
    ) -> Result<Self, RecordingError> {
        let origin = simulation.conserved()?;
        let log = plan.diagnostics_every.map(|_| Log::create(folder));
        let recording = Self::new(folder, plan, origin, log, 0)?;
        let mut writer = recording.writer(simulation);
        let due = [plan.diagnostics_every, plan.snapshot_every.map(|_| 0)];
        recording.record(
            simulation,
            due.map(|planned| planned.is_some()),
            &mut writer,
        )?;
        writer.finish(&mut watch)?;
        Ok(recording)
    }

    /// Continues a record from a checkpoint; what was recorded after it is taken back.
    ///
    /// # Errors
    /// The file system's refusal.
    pub fn resume(folder: &Path, plan: Plan, from: &Checkpoint) -> Result<Self, RecordingError> {
        let steps = from.clock.steps;
        let log = plan.diagnostics_every.map(|_| Log::resume(folder, steps));
        let snapshots = plan.snapshots_due(&from.clock);
        Self::new(folder, plan, from.origin, log, snapshots)
    }

    fn new(
        folder: &Path,
        plan: Plan,
        origin: Conserved,
        log: Option<io::Result<Log>>,
        snapshots: u64,
    ) -> Result<Self, RecordingError> {
        let log = log.transpose().map_err(|fault| io_error(folder, fault))?;
        Ok(Self {
            folder: folder.to_owned(),
            plan,
            origin,
            log: log.map(|log| Arc::new(Mutex::new(log))),
            snapshots,
            preview_every: None,
        })
    }

    fn writer(&self, simulation: &Simulation) -> Writer {
        Writer::new(Run {
            folder: self.folder.clone(),
            format: self.plan.format,
            units: self.plan.units,
            origin: self.origin,
            physics: *simulation.physics(),
            log: self.log.clone(),
        })
    }

    /// Shows the bodies on the way ([`Event::Preview`]) so often on the clock on the wall, or less
    /// often where looking at them takes more than a fifth of the time. What the run computes and
    /// records stays the same.
    pub fn preview_every(&mut self, every: Duration) {
        self.preview_every = Some(every);
    }

    /// The conserved quantities of the run's beginning.
    pub fn origin(&self) -> &Conserved {
        &self.origin
    }

    /// Takes the steps that are left, and records what is due; writes a checkpoint when `watch`
    /// breaks off, and at the end if there is an earlier one.
    ///
    /// # Errors
    /// The file system's or the backend's refusal.
    pub fn run(
        &mut self,
        simulation: &mut Simulation,
        mut watch: impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RecordingError> {
        let mut writer = self.writer(simulation);
        let mut written = Instant::now();
        let mut last_written = None;
        let (mut previewed, mut pause) = (Instant::now(), Duration::ZERO); // one at the beginning
        while simulation.clock().steps < self.plan.steps && !simulation.is_at_end() {
            let clock = simulation.clock();
            let stop = self.plan.next_stop(&clock, simulation.pace());
            let broken_off = Cell::new(false);
            let mut overdue = false;
            let mut preview = None;
            let _ = simulation.run(stop - clock.steps, |progress| {
                broken_off.set(watch(Event::Progress(progress)).is_break());
                overdue = matches!(self.plan.checkpoint_every,
                    Some(Every::Wall(time)) if written.elapsed() >= time);
                if self.preview_every.is_some() && previewed.elapsed() >= pause {
                    preview = Some(progress);
                }
                if broken_off.get() || overdue || preview.is_some() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            let mut tell = |event: Event<'_>| {
                broken_off.set(broken_off.get() | watch(event).is_break());
            };
            let clock = simulation.clock();
            if let (Some(progress), Some(every)) = (preview, self.preview_every) {
                let began = Instant::now();
                tell(Event::Preview(progress, simulation.bodies()?));
                pause = every.max(4 * began.elapsed());
                previewed = Instant::now();
            }
            self.record_due(simulation, &mut writer)?;
            writer.poll(&mut tell)?;
            let due = matches!(self.plan.checkpoint_every,
                Some(Every::Steps(steps)) if clock.steps.is_multiple_of(steps));
            if due || overdue || broken_off.get() {
                writer.finish(&mut tell)?;
                self.checkpoint(simulation, &mut tell)?;
                (written, last_written) = (Instant::now(), Some(clock.steps));
            }
            if broken_off.get() {
                return Ok(ControlFlow::Break(()));
            }
        }
        writer.finish(&mut |event| {
            let _ = watch(event); // the end either way
        })?;
        let kept = self.plan.checkpoint_every.is_some() || checkpoint::exists(&self.folder);
        if kept && last_written != Some(simulation.clock().steps) {
            self.checkpoint(simulation, &mut |event| {
                let _ = watch(event); // the end either way
            })?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Progress of a run, 0 to 1, by its steps or by its time.
    pub fn share_of(&self, simulation: &Simulation) -> impl Fn(&Progress) -> f64 + use<> {
        let (clock, pace, steps) = (simulation.clock(), simulation.pace(), self.plan.steps);
        move |progress| match pace {
            Pace::Fixed(_) => progress.steps as f64 / steps as f64,
            Pace::Adaptive { end, .. } => (progress.time - clock.start) / (end - clock.start),
        }
    }

    /// Hands the present moment to the writer as the plan has it.
    fn record_due(
        &mut self,
        simulation: &mut Simulation,
        writer: &mut Writer,
    ) -> Result<(), RecordingError> {
        let clock = simulation.clock();
        let snapshots = self.plan.snapshots_due(&clock);
        let due = [self.plan.is_look_due(&clock), snapshots > self.snapshots];
        self.snapshots = snapshots;
        self.record(simulation, due, writer)
    }

    /// Hands the present moment to the writer, if a look or a snapshot is due.
    fn record(
        &self,
        simulation: &mut Simulation,
        [look, snapshot]: [bool; 2],
        writer: &mut Writer,
    ) -> Result<(), RecordingError> {
        if look || snapshot {
            let clock = simulation.clock();
            let name = format!("snapshot-{:08}", clock.steps);
            let path = self.folder.join(name);
            let path = path.with_extension(self.plan.format.extension());
            writer.write(Moment {
                steps: clock.steps,
                time: clock.time,
                energy: look.then(|| simulation.energy()).transpose()?,
                bodies: simulation.bodies()?.clone(),
                snapshot: snapshot.then_some(path),
            });
        }
        Ok(())
    }

    /// Writes a checkpoint.
    ///
    /// # Errors
    /// The file system's or the backend's refusal.
    fn checkpoint(
        &self,
        simulation: &mut Simulation,
        tell: &mut impl FnMut(Event<'_>),
    ) -> Result<(), RecordingError> {
        let (clock, state) = simulation.save()?;
        let checkpoint = Checkpoint {
            clock,
            origin: self.origin,
            bodies: simulation.bodies()?.clone(),
            state,
        };
        // The rows before it must not be younger than the checkpoint.
        let log = self.log.as_ref();
        let synced = log.map_or(Ok(()), |log| lock_log(log).sync());
        synced
            .and_then(|()| checkpoint::write(&self.folder, &checkpoint))
            .map_err(|fault| io_error(&self.folder, fault))?;
        tell(Event::Wrote(&self.folder.join("checkpoint")));
        Ok(())
    }
}

fn io_error(folder: &Path, fault: io::Error) -> RecordingError {
    RecordingError::Io {
        folder: folder.to_owned(),
        fault,
    }
}

impl Plan {
    fn is_look_due(&self, clock: &Clock) -> bool {
        self.diagnostics_every
            .is_some_and(|every| clock.steps.is_multiple_of(every))
    }

    /// Number of snapshots after the first that are due at this moment: a function of it alone.
    fn snapshots_due(&self, clock: &Clock) -> u64 {
        // 10 · 0.1 / 0.01 may round to below 100.
        self.snapshot_every.map_or(0, |every| {
            ((clock.time - clock.start).abs() / every * (1.0 + 1e-12)).floor() as u64
        })
    }

    /// The next step after which something is to be done.
    fn next_stop(&self, clock: &Clock, pace: Pace) -> u64 {
        let multiple = |every: u64| (clock.steps / every + 1) * every;
        let mut stop = self.steps;
        if let Some(every) = self.diagnostics_every {
            stop = stop.min(multiple(every));
        }
        if let Some(Every::Steps(every)) = self.checkpoint_every {
            stop = stop.min(multiple(every));
        }
        match (self.snapshot_every, pace) {
            (None, _) => stop,
            (Some(_), Pace::Adaptive { .. }) => clock.steps + 1,
            (Some(every), Pace::Fixed(dt)) => {
                let at = |steps: u64| Clock {
                    time: clock.start + steps as f64 * dt,
                    steps,
                    ..*clock
                };
                let due = self.snapshots_due(clock).saturating_add(1);
                let about = (due as f64 * every / dt.abs()).floor() as u64;
                // It may never be due before the end, and the steps until then never be counted.
                let mut until_stop = about.saturating_sub(1)..stop;
                let first = until_stop.find(|&s| self.snapshots_due(&at(s)) >= due);
                first.map_or(stop, |first| stop.min(first.max(clock.steps + 1)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
