//! Recording of a run: diagnostics at intervals of steps, snapshots at intervals of time, and
//! checkpoints to continue from.
//!
//! The folder of a run holds
//!
//! * `run.toml`, the settings (written by the program, not by this module);
//! * `diagnostics.csv` and `diagnostics.jsonl`;
//! * `pairs.csv`, if forces are not softened;
//! * `test-particles.csv`, if there are test particles;
//! * `collisions.csv` and `escapers.csv`, if the run searches for these encounters;
//! * `changes.csv`, if bodies were to change on the way;
//! * `orbit.csv`, if the bodies are in their own frame on an orbit;
//! * `snapshot-<number>.<format>`, and `index.csv` with their times;
//! * `binaries.csv`, the bound pairs of each snapshot, if forces are not softened;
//! * `checkpoint`, `checkpoint.previous` and a [`lock`].
//!
//! Tables grow row by row and are repaired on resuming. All other files appear whole or not at all.
//! Except for checkpoints that are due by wall-clock time, the output depends only on the steps. If the
//! variant adds forces in a fixed order, a run that was stopped and resumed leaves the same bytes as a
//! run that was not stopped. With other variants the last digits differ from run to run.
//!
//! The energy is measured some fifty times in a run and every minute, as long as this takes less than
//! 1 % of the run. The state is saved in memory as often: if a run cannot continue, it leaves its last
//! good state as a checkpoint. Measurements at fixed shares of the run cost little on any device, and
//! count for the largest drift in checkpoints. Further measurements, as wall-clock time allows, are
//! reported and count for [the largest drift of this process](Recording::largest_drift).

mod binaries;
mod changes;
mod condition;
mod events;
mod folder;
mod heading;
mod log;
mod orbit;
mod pairs;
mod particles;
mod plan;
mod rows;
mod watch;
mod writer;

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thiserror::Error;

use self::binaries::Binaries;
use self::changes::Changes;
pub use self::changes::{ChangeTable, ChangeTableFault};
pub use self::condition::{Condition, NoCondition};
use self::events::Events;
use self::folder::{INDEX, OF_INDEX, next_number};
pub use self::folder::{Lock, leftovers, lock, tables};
use self::heading::Heading;
use self::log::Log;
pub use self::orbit::ORBIT;
use self::orbit::OrbitRows;
use self::particles::Particles;
pub use self::plan::{Every, Plan, UnknownDistance};
use self::rows::Rows;
use self::watch::{Planned, Watch};
use self::writer::{Moment, Run, Writer, lock as lock_log};
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::checkpoint::{self, Checkpoint, Kept};
use crate::diagnostics::{Conserved, EnergyLook, Sample, largest};
use crate::encounters::Happening;
use crate::integrator::Pace;
use crate::io::{Snapshot, WriteError};
use crate::simulation::Renumbered;
use crate::simulation::{Clock, GoodState, Outrun, Progress, Simulation};
use crate::test_particles::{Account, Look};

/// Event of a run.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// Some steps more, several times a second.
    Progress(Progress),
    /// A look was taken.
    Sample(&'a Sample),
    /// The energy was measured between samples.
    Energy(EnergyLook),
    /// Test particles were looked at, with the steps and the time. Exact orbits keep a quantity.
    TestParticles(u64, f64, Look),
    /// A step would be chosen now that is much shorter than the one that was chosen at the start. Told once.
    Outrun(Outrun),
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
    /// The run cannot go on; its last good state was written as a checkpoint.
    #[error(transparent)]
    Stopped(Box<Stopped>),
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

/// A run that cannot go on.
#[derive(Debug, Error)]
#[error("the run stopped at step {steps}, time {time:?}: {why}")]
pub struct Stopped {
    /// Reason.
    pub why: ForceError,
    /// Steps done.
    pub steps: u64,
    /// Time reached.
    pub time: f64,
    /// The last good state.
    pub good: Snapshot,
    /// Steps done in that state.
    pub good_steps: u64,
}

/// The largest drift of the energy.
#[derive(Clone, Copy, Debug, Default)]
struct LargestDrift {
    /// By samples and planned looks, which do not depend on the clock on the wall.
    recorded: f64,
    /// By all looks of this process too.
    seen: f64,
}

impl LargestDrift {
    /// Counts the drift of a look, if there is an energy to judge by. Nothing is larger than a drift that is
    /// not a number.
    fn count(&mut self, look: &EnergyLook, is_recorded: bool) {
        let Some(drift) = look.judged() else {
            return;
        };
        self.seen = largest([self.seen, drift]);
        if is_recorded {
            self.recorded = largest([self.recorded, drift]);
        }
    }
}

/// The record of a run, under way.
#[derive(Debug)]
pub struct Recording {
    folder: PathBuf,
    plan: Plan,
    origin: Conserved,
    log: Option<Arc<Mutex<Log>>>,
    particles: Option<Particles>,
    events: Option<Events>,
    pairs: Option<Rows>,
    index: Option<Rows>,
    binaries: Option<Binaries>,
    orbit: Option<OrbitRows>,
    /// Changes of bodies on the way.
    changes: Option<Changes>,
    /// Number of the next snapshot.
    next: u64,
    stop_if: Vec<Condition>,
    /// The condition that ended the run.
    stopped_by: Option<Condition>,
    /// Encounters since the record was begun or resumed: collisions and escapes.
    encounters: [u64; 2],
    /// Snapshots that were due up to now.
    snapshots: u64,
    preview_every: Option<Duration>,
    /// Steps of the checkpoint that it was resumed from.
    resumed_at: Option<u64>,
    largest: LargestDrift,
    /// Time that a measurement of the energy took.
    energy_cost: Duration,
    settings: String,
    /// Remarks about what was found on resuming.
    remarks: Vec<String>,
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
        mut watch: impl FnMut(RunEvent<'_>),
    ) -> Result<Self, RecordingError> {
        let heading = Heading::of(&plan);
        let began = Instant::now();
        let origin = simulation.conserved()?;
        let energy_cost = began.elapsed();
        let log = plan
            .diagnostics_every
            .map(|_| Log::create(folder, &heading));
        let mut recording = Self::new(folder, plan, origin, log.transpose(), 0)?;
        recording.energy_cost = energy_cost;
        let physics = *simulation.physics();
        let external = simulation.external();
        recording.orbit =
            OrbitRows::begin(folder, &external).map_err(|fault| io_error(folder, fault))?;
        let account = Account::begin(simulation.bodies()?, &physics, &external);
        recording.particles =
            Particles::begin(folder, plan.diagnostics_every.map(|_| &heading), account)
                .map_err(|fault| io_error(folder, fault))?;
        if plan.has_pairs(&physics) {
            let pairs = pairs::begin(folder, &heading).map_err(|fault| io_error(folder, fault))?;
            recording.pairs = Some(pairs);
        }
        if let Some(encounters) = simulation.encounters() {
            let events = Events::begin(folder, encounters, &heading)
                .map_err(|fault| io_error(folder, fault))?;
            recording.events = Some(events);
        }
        if plan.snapshot_every.is_some() {
            let index = Rows::create(folder, INDEX, &OF_INDEX, &heading);
            recording.index = Some(index.map_err(|fault| io_error(folder, fault))?);
        }
        if plan.has_binaries(&physics) {
            let binaries =
                Binaries::begin(folder, &heading).map_err(|fault| io_error(folder, fault))?;
            recording.binaries = Some(binaries);
        }
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
        let (steps, heading) = (from.clock.steps, Heading::of(&plan));
        checkpoint::tidy(folder).map_err(|fault| io_error(folder, fault))?;
        let mut remarks = vec![];
        let log = plan.diagnostics_every.map(|_| {
            let (log, found) = Log::resume(folder, steps, &heading)?;
            remarks = found;
            Ok(log)
        });
        let snapshots = plan.snapshots_due(&from.clock);
        let logged = plan.diagnostics_every.map(|_| &heading);
        let origins = from.kept.particles.clone();
        let particles = Particles::resume(folder, logged, origins, steps)
            .map_err(|fault| io_error(folder, fault))?;
        let looks_for = !from.kept.radii.is_empty();
        let events = looks_for
            .then(|| Events::resume(folder, steps, &heading))
            .transpose();
        let events = events.map_err(|fault| io_error(folder, fault))?;
        let index = plan.snapshot_every.map(|_| {
            let rows = Rows::resume(folder, INDEX, &OF_INDEX, steps, &heading)?;
            Ok((rows, next_number(folder)?))
        });
        let index = index.transpose().map_err(|fault| io_error(folder, fault))?;
        let (index, next) = index.map_or((None, 0), |(rows, next)| (Some(rows), next));
        let recording = Self::new(folder, plan, from.origin, log.transpose(), snapshots)?;
        Ok(Self {
            index,
            next,
            resumed_at: Some(steps),
            largest: LargestDrift {
                recorded: from.largest_drift,
                seen: from.largest_drift,
            },
            settings: from.settings.clone(),
            particles,
            events,
            remarks,
            ..recording
        })
    }

    fn new(
        folder: &Path,
        plan: Plan,
        origin: Conserved,
        log: io::Result<Option<Log>>,
        snapshots: u64,
    ) -> Result<Self, RecordingError> {
        let log = log.map_err(|fault| io_error(folder, fault))?;
        Ok(Self {
            folder: folder.to_owned(),
            plan,
            origin,
            log: log.map(|log| Arc::new(Mutex::new(log))),
            particles: None,
            events: None,
            pairs: None,
            index: None,
            binaries: None,
            orbit: None,
            changes: None,
            next: 0,
            stop_if: vec![],
            stopped_by: None,
            encounters: [0; 2],
            snapshots,
            preview_every: None,
            resumed_at: None,
            largest: LargestDrift::default(),
            energy_cost: Duration::ZERO,
            settings: String::new(),
            remarks: vec![],
        })
    }

    /// Keeps these settings in checkpoints: what decides the physics, for a program that resumes the
    /// run to compare with what it is told then.
    #[must_use]
    pub fn of_settings(self, settings: String) -> Self {
        Self { settings, ..self }
    }

    /// Lets bodies change on the way, each exactly at its time: the changes after the present time.
    ///
    /// # Errors
    /// The file system's refusal.
    pub fn with_changes(self, table: ChangeTable) -> Result<Self, RecordingError> {
        let heading = Heading::of(&self.plan);
        let changes = match self.resumed_at {
            None => Changes::begin(&self.folder, table, &heading),
            Some(steps) => Changes::resume(&self.folder, table, steps, &heading),
        };
        let changes = changes.map_err(|fault| io_error(&self.folder, fault))?;
        Ok(Self {
            changes: Some(changes),
            ..self
        })
    }

    /// Numbers of changes since the record was begun or resumed: those that were made, and changes of bodies that were
    /// not there any more. None if no body was to change.
    pub fn changes(&self) -> Option<[u64; 2]> {
        self.changes.as_ref().map(|changes| changes.counts)
    }

    /// Ends the run, with a checkpoint, after the look that meets one of these conditions.
    #[must_use]
    pub fn stop_if(self, stop_if: Vec<Condition>) -> Self {
        Self { stop_if, ..self }
    }

    /// The condition that ended the run, if one did.
    pub fn stopped_by(&self) -> Option<&Condition> {
        self.stopped_by.as_ref()
    }

    /// Remarks about what was found on resuming: rows of the log that are damaged.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The largest [drift of the energy](Sample::energy_drift) that was recorded up to the checkpoint
    /// that this continues from, or seen since.
    pub fn largest_drift(&self) -> f64 {
        self.largest.seen
    }

    /// The last sample of a run, at its end; its drift counts.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn last_sample(&mut self, simulation: &mut Simulation) -> Result<Sample, ForceError> {
        let sample = simulation.sample(&self.origin)?;
        self.largest.count(&EnergyLook::from(&sample), false);
        Ok(sample)
    }

    /// Test particles as they were at the beginning, and a look at them now; none if there are none.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn test_particles(
        &self,
        simulation: &mut Simulation,
    ) -> Result<Option<(&Account, Look)>, ForceError> {
        let Some(particles) = &self.particles else {
            return Ok(None);
        };
        let (physics, external) = (*simulation.physics(), simulation.external());
        let account = &*particles.account;
        let look = account.look(simulation.bodies()?, &physics, &external);
        Ok(Some((account, self.judged(look, simulation))))
    }

    /// A look at test particles between samples, if there is a quantity to judge them by.
    fn judge_particles(&self, simulation: &mut Simulation) -> Result<Option<Look>, ForceError> {
        let Some(particles) = &self.particles else {
            return Ok(None);
        };
        let (physics, external) = (*simulation.physics(), simulation.external());
        let look = (particles.account).judge(simulation.bodies()?, &physics, &external);
        Ok(look.map(|look| self.judged(look, simulation)))
    }

    /// A look without a quantity to judge test particles by, where bodies with mass merged, went or were changed.
    fn judged(&self, look: Look, simulation: &Simulation) -> Look {
        match simulation.lost().energy != 0.0 || self.changes.is_some() {
            true => look.without_constant(),
            false => look,
        }
    }

    /// Collisions and escapes since the record was begun or resumed.
    pub fn encounters(&self) -> [u64; 2] {
        self.encounters
    }

    /// Records encounters that were found, and forgets bodies that are gone. Returns whether there are any.
    fn record_events(&mut self, simulation: &mut Simulation) -> Result<bool, RecordingError> {
        let events = simulation.take_events();
        if let Some(logs) = &mut self.events {
            for event in &events {
                let kind = match event.what {
                    Happening::Collision { .. } => 0,
                    Happening::Escape { .. } => 1,
                };
                self.encounters[kind] += 1;
                logs.append(event)
                    .map_err(|fault| io_error(&self.folder, fault))?;
            }
        }
        let renumbered = simulation.take_renumbered();
        if let Some(particles) = &mut self.particles {
            let account = Arc::make_mut(&mut particles.account);
            for change in &renumbered {
                match change {
                    Renumbered::Removed(removed) => account.remove(removed),
                    Renumbered::Added(count) => account.add(*count),
                }
            }
        }
        Ok(!renumbered.is_empty())
    }

    /// State of the run in addition to its bodies.
    fn kept(&self, simulation: &Simulation) -> Kept {
        let particles = self.particles.as_ref();
        let encounters = simulation.encounters();
        Kept {
            particles: particles.map_or(vec![], |of| of.account.origins().to_vec()),
            radii: encounters.map_or(vec![], |encounters| encounters.radii.clone()),
            lost: simulation.lost(),
            brought: simulation.brought(),
            chosen_step: simulation.leapfrogs_of_chosen_step(),
        }
    }

    fn writer(&self, simulation: &Simulation) -> Writer {
        Writer::new(Run {
            folder: self.folder.clone(),
            format: self.plan.format,
            units: self.plan.units,
            origin: self.origin,
            physics: *simulation.physics(),
            log: self.log.clone(),
            pairs: self.pairs.clone(),
            index: self.index.clone(),
            binaries: self.binaries.clone(),
        })
    }

    /// Shows the bodies on the way ([`RunEvent::Preview`]) so often on the clock on the wall, or less
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
    /// The file system's or the backend's refusal; [`RecordingError::Stopped`] if the run cannot go on.
    pub fn run(
        &mut self,
        simulation: &mut Simulation,
        mut watch: impl FnMut(RunEvent<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RecordingError> {
        let largest = Cell::new(self.largest);
        let count = |look: &EnergyLook, is_recorded: bool| {
            let mut counted = largest.get();
            counted.count(look, is_recorded);
            largest.set(counted);
        };
        let mut watch = |event: RunEvent<'_>| {
            match &event {
                RunEvent::Sample(sample) => count(&EnergyLook::from(*sample), true),
                RunEvent::Energy(look) => count(look, false),
                _ => {}
            }
            watch(event)
        };
        let heading = Heading::of(&self.plan);
        if let (Some(steps), None, true) = (
            self.resumed_at,
            &self.pairs,
            self.plan.has_pairs(simulation.physics()),
        ) {
            let pairs = pairs::resume(&self.folder, steps, &heading);
            self.pairs = Some(pairs.map_err(|fault| io_error(&self.folder, fault))?);
        }
        if let (Some(steps), None, true) = (
            self.resumed_at,
            &self.binaries,
            self.plan.has_binaries(simulation.physics()),
        ) {
            let binaries = Binaries::resume(&self.folder, steps, &heading);
            self.binaries = Some(binaries.map_err(|fault| io_error(&self.folder, fault))?);
        }
        if let (Some(steps), None, Some(_)) =
            (self.resumed_at, &self.orbit, simulation.external().origin())
        {
            let is_look_due = self.plan.is_look_due(&simulation.clock());
            let orbit = OrbitRows::resume(&self.folder, steps, is_look_due);
            self.orbit = Some(orbit.map_err(|fault| io_error(&self.folder, fault))?);
        }
        let (began, met) = (Instant::now(), RefCell::new(None));
        let conditions = self.stop_if.clone();
        let log = self.log.as_ref();
        let factors = log.map_or(vec![], |log| lock_log(log).factors().to_vec());
        let mut watch = |event: RunEvent<'_>| {
            let is_met = |condition: &&Condition| match &event {
                RunEvent::Sample(sample) => condition.is_met(sample, &factors),
                RunEvent::Progress(_) => condition.is_over(began.elapsed()),
                _ => false,
            };
            let found = conditions.iter().find(is_met);
            let told = watch(event);
            match found {
                Some(condition) => {
                    met.borrow_mut().get_or_insert(condition.clone());
                    ControlFlow::Break(())
                }
                None => told,
            }
        };
        self.stopped_by = None;
        let mut writer = self.writer(simulation);
        let mut written = Instant::now();
        let mut last_written = self.resumed_at;
        let (mut previewed, mut pause) = (Instant::now(), Duration::ZERO); // one at the beginning
        let share_of = self.share_of(simulation);
        let share = |simulation: &Simulation| {
            let clock = simulation.clock();
            share_of(clock.steps, clock.time)
        };
        let mut looks = Watch::begin(simulation, share(simulation), self.energy_cost)?;
        let broken_off = Cell::new(false);
        while !self.is_done(simulation) {
            let clock = simulation.clock();
            let before = clock.steps;
            let stop = self.plan.next_stop(&clock, simulation.pace());
            let change = self.changes.as_ref();
            let change = change.and_then(|changes| changes.table.next_time(clock.time));
            let change = change.filter(|&change| stop.time.is_none_or(|time| change <= time));
            let mut overdue = false;
            let mut preview = None;
            let mut look = false;
            let during = |progress: Progress| {
                broken_off.set(broken_off.get() | watch(RunEvent::Progress(progress)).is_break());
                if !progress.is_within_step {
                    overdue = matches!(self.plan.checkpoint_every,
                        Some(Every::Wall(time)) if written.elapsed() >= time);
                    if self.preview_every.is_some() && previewed.elapsed() >= pause {
                        preview = Some(progress);
                    }
                    look = looks.is_due(share_of(progress.steps, progress.time));
                }
                if broken_off.get() || overdue || preview.is_some() || look {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let planned = Planned::of(simulation, self.plan.steps_of(&clock, simulation.pace()));
            let planned = planned.next(clock.steps);
            let steps = stop.steps.min(planned) - clock.steps;
            let gone_on = match change.or(stop.time) {
                Some(time) => simulation.run_within(steps, time, during),
                None => simulation.run(steps, during),
            };
            let changes_now = change.is_some_and(|change| simulation.time() == change);
            let gone_on = match (gone_on, &mut self.changes) {
                (Ok(_), Some(changes)) if changes_now => changes.make(simulation),
                (gone_on, _) => gone_on.map(|_| ()).map_err(RecordingError::from),
            };
            match gone_on {
                Ok(()) => {}
                Err(RecordingError::Force(why)) => {
                    self.largest = largest.get();
                    return Err(self.stop(simulation, looks, why, &mut writer, &mut watch));
                }
                Err(fault) => return Err(fault),
            }
            let fewer = self.record_events(simulation)? || changes_now;
            broken_off.set(broken_off.get() | simulation.stopped_by().is_some());
            let mut tell = |event: RunEvent<'_>| {
                broken_off.set(broken_off.get() | watch(event).is_break());
            };
            let clock = simulation.clock();
            if let (Some(progress), Some(every)) = (preview, self.preview_every) {
                let began = Instant::now();
                tell(RunEvent::Preview(progress, simulation.bodies()?));
                pause = every.max(4 * began.elapsed());
                previewed = Instant::now();
            }
            let due = matches!(self.plan.checkpoint_every,
                Some(Every::Steps(steps)) if clock.steps.is_multiple_of(steps));
            // Broken off later, by what is told below, it takes another step: a checkpoint belongs to it.
            let ends = broken_off.get();
            let checkpoint = due || overdue || ends;
            let share = share(simulation);
            let is_done = self.is_done(simulation);
            let planned = clock.steps == planned && !is_done; // the end has a sample
            // What is written is a good state, and so is one of other bodies than the last.
            let is_good = checkpoint || fewer || is_done;
            let kept = match is_good {
                true => looks.keep(simulation, share),
                false => Ok(()),
            };
            let found = kept.and_then(|()| match planned || (look && !is_good) {
                true => looks.look(simulation, &self.origin, share, planned),
                false => Ok(None),
            });
            match found {
                Ok(None) => {}
                Ok(Some(look)) => {
                    count(&look, planned);
                    tell(RunEvent::Energy(look));
                    if let Some(outrun) = simulation.outrun(self.plan.until)? {
                        tell(RunEvent::Outrun(outrun));
                    }
                    if let Some(look) = self.judge_particles(simulation)? {
                        tell(RunEvent::TestParticles(clock.steps, clock.time, look));
                    }
                }
                Err(why) => {
                    self.largest = largest.get();
                    return Err(self.stop(simulation, looks, why, &mut writer, &mut watch));
                }
            }
            // Broken off within a step, it stands where it was recorded before.
            if clock.steps > before {
                self.record_due(simulation, &mut writer)?;
            }
            if !conditions.is_empty() && self.plan.is_look_due(&clock) {
                // So that a condition ends the run after this step, however long the look takes.
                writer.finish(&mut tell)?;
            } else {
                writer.poll(&mut tell)?;
            }
            self.stopped_by = met.borrow().clone();
            let ends = ends || self.stopped_by.is_some();
            if checkpoint || ends {
                writer.finish(&mut tell)?;
                self.largest = largest.get();
                self.checkpoint(simulation, &mut tell)?;
                (written, last_written) = (Instant::now(), Some(clock.steps));
            }
            if ends {
                return Ok(ControlFlow::Break(()));
            }
        }
        writer.finish(&mut |event| {
            let _ = watch(event); // the end either way
        })?;
        self.largest = largest.get();
        let kept = self.plan.checkpoint_every.is_some() || checkpoint::exists(&self.folder);
        if kept && last_written != Some(simulation.clock().steps) {
            self.checkpoint(simulation, &mut |event| {
                let _ = watch(event); // the end either way
            })?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns whether the end is reached.
    fn is_done(&self, simulation: &Simulation) -> bool {
        let clock = simulation.clock();
        let until = |end: f64| match simulation.pace() {
            Pace::Fixed(dt) => (clock.time - end) * dt.signum() >= 0.0,
            Pace::Adaptive { .. } => clock.time >= end,
        };
        clock.steps >= self.plan.steps
            || self.plan.until.is_some_and(until)
            || simulation.is_at_end()
    }

    /// Writes the last good state of a run that cannot go on as a checkpoint, and tells why.
    fn stop(
        &self,
        simulation: &Simulation,
        looks: Watch,
        why: ForceError,
        writer: &mut Writer,
        watch: &mut impl FnMut(RunEvent<'_>) -> ControlFlow<()>,
    ) -> RecordingError {
        let mut tell = |event: RunEvent<'_>| {
            let _ = watch(event); // it has stopped
        };
        let written = writer.finish(&mut tell);
        let Clock { steps, time, .. } = simulation.clock();
        let GoodState {
            clock,
            state,
            bodies,
            ..
        } = looks.good;
        let mut kept = self.kept(simulation);
        let bodies = match bodies {
            Some((bodies, radii, lost)) => {
                (kept.radii, kept.lost) = (radii, lost);
                state.bodies_like(&bodies)
            }
            None => state.bodies_like(simulation.bodies_last_seen()),
        };
        let good = Snapshot {
            time: clock.time,
            bodies: bodies.clone(),
        };
        let written = written.and_then(|()| {
            self.write_checkpoint(&Checkpoint {
                clock,
                origin: self.origin,
                largest_drift: self.largest.recorded,
                settings: self.settings.clone(),
                bodies,
                state,
                kept,
            })
        });
        match written {
            Ok(()) => RecordingError::Stopped(Box::new(Stopped {
                why,
                steps,
                time,
                good,
                good_steps: clock.steps,
            })),
            Err(unwritten) => unwritten,
        }
    }

    /// Progress of a run, 0 to 1, by steps done and time reached.
    pub fn share_of(&self, simulation: &Simulation) -> impl Fn(u64, f64) -> f64 + use<> {
        let (start, steps) = (simulation.clock().start, self.plan.steps);
        let end = match simulation.pace() {
            Pace::Fixed(_) => self.plan.until,
            Pace::Adaptive { end, .. } => Some(self.plan.until.unwrap_or(end)),
        };
        move |done, time| match end {
            Some(end) => (time - start) / (end - start),
            None => done as f64 / steps as f64,
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
        &mut self,
        simulation: &mut Simulation,
        [look, snapshot]: [bool; 2],
        writer: &mut Writer,
    ) -> Result<(), RecordingError> {
        if look || snapshot {
            self.record_orbit(simulation)?;
            let clock = simulation.clock();
            let snapshot = snapshot.then(|| {
                let number = self.next;
                self.next += 1;
                let path = self.folder.join(format!("snapshot-{number:05}"));
                (number, path.with_extension(self.plan.format.extension()))
            });
            writer.write(Moment {
                steps: clock.steps,
                time: clock.time,
                energy: look.then(|| simulation.energy()).transpose()?,
                own_steps: match look {
                    true => simulation.own_steps()?,
                    false => vec![],
                },
                lost: simulation.lost(),
                brought: simulation.brought(),
                particles: self.particles.clone(),
                external: simulation.external(),
                bodies: simulation.bodies()?.clone(),
                snapshot,
            });
        }
        Ok(())
    }

    /// Writes down where the origin of the bodies' own frame is now, if they are in such a frame.
    ///
    /// # Errors
    /// The file system's refusal.
    pub fn record_orbit(&mut self, simulation: &Simulation) -> Result<(), RecordingError> {
        let Some(orbit) = &mut self.orbit else {
            return Ok(());
        };
        let appended = orbit.append(simulation.clock().steps, &simulation.external());
        appended.map_err(|fault| io_error(&self.folder, fault))
    }

    /// Writes a checkpoint.
    ///
    /// # Errors
    /// The file system's or the backend's refusal.
    fn checkpoint(
        &self,
        simulation: &mut Simulation,
        tell: &mut impl FnMut(RunEvent<'_>),
    ) -> Result<(), RecordingError> {
        let (clock, state) = simulation.save()?;
        self.write_checkpoint(&Checkpoint {
            clock,
            origin: self.origin,
            largest_drift: self.largest.recorded,
            settings: self.settings.clone(),
            bodies: simulation.bodies()?.clone(),
            state,
            kept: self.kept(simulation),
        })?;
        tell(RunEvent::Wrote(&self.folder.join("checkpoint")));
        Ok(())
    }

    fn write_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), RecordingError> {
        // The rows before it must not be younger than the checkpoint.
        let log = self.log.as_ref();
        let synced = log.map_or(Ok(()), |log| lock_log(log).sync());
        let particles = self.particles.as_ref();
        synced
            .and_then(|()| particles.map_or(Ok(()), Particles::sync))
            .and_then(|()| self.pairs.as_ref().map_or(Ok(()), Rows::sync))
            .and_then(|()| self.index.as_ref().map_or(Ok(()), Rows::sync))
            .and_then(|()| self.binaries.as_ref().map_or(Ok(()), Binaries::sync))
            .and_then(|()| self.orbit.as_ref().map_or(Ok(()), OrbitRows::sync))
            .and_then(|()| self.events.as_ref().map_or(Ok(()), Events::sync))
            .and_then(|()| self.changes.as_ref().map_or(Ok(()), Changes::sync))
            .and_then(|()| checkpoint::write(&self.folder, checkpoint))
            .map_err(|fault| io_error(&self.folder, fault))
    }
}

fn io_error(folder: &Path, fault: io::Error) -> RecordingError {
    RecordingError::Io {
        folder: folder.to_owned(),
        fault,
    }
}

#[cfg(test)]
mod tests;
