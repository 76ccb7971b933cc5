//! The loop: step after step on one backend, with a look now and then.

mod anew;
mod back;
mod builder;
mod changes;
mod encounters;
mod following;
mod good_state;
mod looks;
mod outrun;
mod scheduled;
mod scheme;
mod start;
mod step;
#[cfg(test)]
pub(crate) mod tests;

pub use crate::run::BuildError;
pub use builder::SimulationBuilder;
pub use changes::{ChangeError, NewValues};
pub(crate) use encounters::Renumbered;
pub use good_state::GoodState;
pub use outrun::Outrun;
pub use scheduled::{BodyChange, DueBody, Schedule, ScheduleError, ScheduledChanges};
pub use scheme::IntegrationScheme;
pub use start::OpenedRun;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use self::encounters::Found;
use self::following::Follow;
pub use self::following::Followed;
use self::outrun::ChosenStep;
use self::step::{STRETCH, begin_step, check_step, reach, shortest_step};
use crate::backend::{Backend, BlockCounts, Column, ForceError, SavedState, block_steps};
use crate::bodies::Bodies;
use crate::diagnostics::{Brought, Lost};
use crate::encounters::Encounters;
use crate::fields::External;
use crate::frame::Frame;
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::physics::Physics;

/// Longest time for which work is queued before the loop waits for it and reports: often enough for
/// a person who watches, seldom enough for a GPU that should never wait.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A function that makes backends of bodies, in a frame if one is given.
type MakesBackends =
    dyn FnMut(&Bodies, Option<Frame>) -> Result<Box<dyn Backend>, ForceError> + Send;

/// Means to go on with other bodies.
struct Remake {
    make: Box<MakesBackends>,
    /// True if backends are made in the frames that are given.
    has_frames: bool,
}

/// Bodies on their way through time.
pub struct Simulation {
    backend: Box<dyn Backend>,
    /// Makes the backend of other bodies, where encounters or changes from outside make them.
    remake: Option<Remake>,
    /// Means to follow pairs apart while there are hard ones.
    follow: Follow,
    bodies: Bodies,
    physics: Physics,
    integrator: Integrator,
    pace: Pace,
    /// Takes the integrator's place, where there is one.
    scheme: Option<Box<dyn IntegrationScheme>>,
    clock: Clock,
    /// Computed since it was made.
    interactions: f64,
    block_counts: BlockCounts,
    /// True where the next longest step may take a while, as the last one did.
    steps_are_long: bool,
    encounters: Option<Encounters>,
    found: Found,
    lost: Lost,
    brought: Brought,
    /// Number of changes from outside.
    changes: u64,
    /// None if the step was given, or follows the motion.
    chosen_step: Option<ChosenStep>,
}

/// Time and steps that a simulation has reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Time at which it began.
    pub start: f64,
    /// Time reached.
    pub time: f64,
    /// Steps done since it began.
    pub steps: u64,
    /// The step to come.
    pub dt: f64,
    /// Time and steps that steps of a fixed length are counted from: the beginning, or the end of the
    /// last [shortened](Simulation::run_until) step.
    pub counted_from: (f64, u64),
    /// Times in which pairs are followed apart, if there were none at the beginning.
    pub followed: Option<Followed>,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Steps done since the simulation began.
    pub steps: u64,
    /// Time reached.
    pub time: f64,
    /// Interactions computed per second, since [`Simulation::run`] was called.
    pub rate: f64,
    /// True within the longest of block time steps, where nothing can be looked at. Whoever breaks off
    /// there finds the bodies as they were at its beginning.
    pub is_within_step: bool,
}

/// Watch over progress within a step.
struct Within<'a> {
    watch: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    /// Interactions computed before the run, which began then.
    before: f64,
    began: Instant,
}

impl Within<'_> {
    /// Takes the block time steps of a span; none if the watch broke off, and then bodies are as they were at
    /// its beginning.
    fn advance(
        &mut self,
        backend: &mut dyn Backend,
        clock: &Clock,
        (dt, eta): (f64, f64),
        interactions: f64,
    ) -> Result<Option<BlockCounts>, ForceError> {
        let mut told = |share: f64| {
            (self.watch)(Progress {
                steps: clock.steps,
                time: clock.time + share * dt,
                rate: (interactions - self.before) / self.began.elapsed().as_secs_f64(),
                is_within_step: true,
            })
        };
        let saved = backend.save()?;
        let counts = block_steps(backend)?.advance_unless(dt, eta, &mut told)?;
        if counts.is_none() {
            backend.restore(&saved)?;
            backend.set_time(clock.time);
        }
        Ok(counts)
    }
}

/// Time that a longest step takes from which on the state at the beginning of the next is kept, to go back to. To keep
/// the state of a GPU takes a sixth of a longest step of 65 536 bodies, and nobody minds to wait for a shorter one.
const LONG: Duration = Duration::from_millis(200);

impl Simulation {
    /// A simulation of `bodies`, to be set up further; as it is, one of Newton's gravity with G = 1, on
    /// the best device, by leapfrog, with softening and step that follow from the bodies.
    ///
    /// ```
    /// use allpairs::{Simulation, plummer};
    ///
    /// let mut cluster = Simulation::builder(plummer(500, 1)?).softening(0.05).dt(0.01).build()?;
    /// let before = cluster.energy()?.total();
    /// cluster.run_until(0.5)?;
    /// assert_eq!(cluster.time(), 0.5);
    /// let drift = (cluster.energy()?.total() - before) / before;
    /// assert!(drift.abs() < 1e-3);
    /// println!("the first body is at x = {}", cluster.bodies()?.x[0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(bodies: Bodies) -> SimulationBuilder {
        SimulationBuilder::new(bodies)
    }

    /// A simulation of `bodies` from `start`, on a backend that holds them; a number as `pace` is a
    /// fixed time step.
    ///
    /// # Errors
    /// Errors of the backend, which computes the first accelerations; or that it has no jerks and
    /// the integrator or the pace needs them.
    pub fn new(
        mut backend: Box<dyn Backend>,
        bodies: Bodies,
        physics: Physics,
        integrator: Integrator,
        pace: impl Into<Pace>,
        start: f64,
    ) -> Result<Self, ForceError> {
        reach(&mut *backend, start, start)?;
        backend.set_time(start);
        integrator.prepare(&mut *backend)?;
        Self::prepared(backend, bodies, physics, integrator, pace.into(), start)
    }

    /// Like [`new`](Self::new), on a backend that has all that the first step needs.
    fn prepared(
        mut backend: Box<dyn Backend>,
        bodies: Bodies,
        physics: Physics,
        integrator: Integrator,
        pace: Pace,
        start: f64,
    ) -> Result<Self, ForceError> {
        if let Pace::Adaptive { longest, .. } = pace
            && longest.is_finite()
        {
            match reach(&mut *backend, start, start + longest) {
                // The longest step may be longer than any that is taken.
                Ok(()) | Err(ForceError::Field(_)) => {}
                other => other?,
            }
        }
        let dt = match pace {
            Pace::Fixed(dt) => dt,
            Pace::Adaptive {
                eta,
                longest,
                steps: TimeSteps::Shared,
                ..
            } => {
                let dt = integrator.first_step(&mut *backend, eta, longest)?;
                check_step(&mut *backend, dt, shortest_step(start, longest))?;
                dt
            }
            Pace::Adaptive {
                longest,
                steps: TimeSteps::Blocks,
                ..
            } => {
                if !integrator.needs_jerks() || backend.block_steps().is_none() {
                    return Err(ForceError::NoBlockSteps);
                }
                longest
            }
        };
        let clock = Clock {
            start,
            time: start,
            steps: 0,
            dt,
            counted_from: (start, 0),
            followed: None,
        };
        Ok(Self {
            backend,
            remake: None,
            follow: Follow::Always,
            bodies,
            physics,
            integrator,
            pace,
            scheme: None,
            clock,
            interactions: 0.0,
            block_counts: BlockCounts::NONE,
            steps_are_long: true,
            encounters: None,
            found: Found::default(),
            lost: Lost::default(),
            brought: Brought::default(),
            changes: 0,
            chosen_step: None,
        })
    }

    /// Continues where another simulation was [saved](Self::save), with the bits that it would
    /// have had: on a backend [in the frame](crate::machine::Machine::backend_in_frame) of
    /// `state`.
    ///
    /// # Errors
    /// Errors of the backend; or that a state has no jerks, and the integrator needs them.
    pub fn resume(
        mut backend: Box<dyn Backend>,
        bodies: Bodies,
        physics: Physics,
        integrator: Integrator,
        pace: Pace,
        (clock, state): (Clock, &SavedState),
    ) -> Result<Self, ForceError> {
        let missing = match integrator.order() {
            _ if !integrator.needs_jerks() => None,
            _ if !state.has(Column::Jerks) => Some("jerks"),
            6 if !state.has(Column::Higher) => Some("snaps"),
            _ => None,
        };
        if let Some(missing) = missing {
            let integrator = integrator.name();
            return Err(ForceError::NotSaved {
                missing,
                integrator,
            });
        }
        reach(&mut *backend, clock.time, clock.time)?;
        backend.restore(state)?;
        backend.set_time(clock.time);
        Ok(Self {
            backend,
            remake: None,
            follow: Follow::Always,
            bodies,
            physics,
            integrator,
            pace,
            scheme: None,
            clock,
            interactions: 0.0,
            block_counts: BlockCounts::NONE,
            steps_are_long: true,
            encounters: None,
            found: Found::default(),
            lost: Lost::default(),
            brought: Brought::default(),
            changes: 0,
            chosen_step: None,
        })
    }

    /// Saves the state that [`resume`](Self::resume) needs.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn save(&mut self) -> Result<(Clock, SavedState), ForceError> {
        Ok((self.clock, self.backend.save()?))
    }

    /// Time and steps reached.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Time reached.
    pub fn time(&self) -> f64 {
        self.clock.time
    }

    /// Length of steps.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The force.
    pub fn physics(&self) -> &Physics {
        &self.physics
    }

    /// Returns whether a pace with an end has reached it.
    pub fn is_at_end(&self) -> bool {
        matches!(self.pace, Pace::Adaptive { end, .. } if self.clock.time >= end)
    }

    /// Interactions computed for steps since it was made or resumed.
    pub fn interactions(&self) -> f64 {
        self.interactions
    }

    /// Block time steps taken since it was made or resumed.
    pub fn block_counts(&self) -> BlockCounts {
        self.block_counts
    }

    /// Block time steps that bodies take next; empty where they do not take such, or none yet.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn own_steps(&mut self) -> Result<Vec<f64>, ForceError> {
        let Pace::Adaptive {
            steps: TimeSteps::Blocks,
            ..
        } = self.pace
        else {
            return Ok(vec![]);
        };
        let blocks = block_steps(&mut *self.backend)?;
        blocks.own_steps()
    }

    /// Evaluations of the forces in a step.
    pub(crate) fn evaluations_of_a_step(&self) -> u32 {
        match &self.scheme {
            Some(scheme) => scheme.evaluations(),
            None => self.integrator.evaluations(),
        }
    }

    /// Interactions of a step.
    pub(crate) fn interactions_of_a_step(&self) -> f64 {
        let n = self.bodies.len() as f64;
        let each = self.number_of_sources() as f64 / self.backend.systems() as f64;
        n * each * f64::from(self.evaluations_of_a_step())
    }

    /// Takes `steps` steps of one length.
    fn take(&mut self, steps: u64, dt: f64) -> Result<(), ForceError> {
        match &mut self.scheme {
            Some(scheme) => {
                let backend = &mut *self.backend;
                (0..steps).try_for_each(|_| scheme.step(backend, dt))?;
            }
            None => self
                .backend
                .repeat(steps, &self.integrator.operations(dt))?,
        }
        self.clock.steps += steps;
        self.interactions += self.interactions_of_a_step() * steps as f64;
        Ok(())
    }

    /// Number of bodies that exert forces where they are computed.
    pub fn number_of_sources(&self) -> usize {
        let some = self.backend.number_of_sources();
        some.unwrap_or(self.bodies.len())
    }

    /// External fields, at the time reached.
    pub fn external(&self) -> External {
        let external = self.backend.external().cloned();
        let mut external = external.unwrap_or_else(External::none);
        external.set_time(self.clock.time);
        external
    }

    /// Makes sure that it can go on until a time, as far as external fields and the orbit of the origin in them
    /// are concerned. Without it they are followed on the way.
    ///
    /// # Errors
    /// If a field is not known then, or the orbit cannot be followed.
    pub fn reach(&mut self, time: f64) -> Result<(), ForceError> {
        let from = self.clock.time;
        if let Some(external) = self.backend.external() {
            external.fields().check_times(from, time)?;
        }
        reach(&mut *self.backend, from, time)
    }

    fn changes_with_time(&self) -> bool {
        let external = self.backend.external();
        external.is_some_and(External::changes_with_time)
    }

    fn begin_step(&mut self, dt: f64) -> Result<(), ForceError> {
        begin_step(&mut *self.backend, self.clock.time, dt)
    }

    /// Time after steps of a fixed length.
    fn count_time(&mut self, dt: f64) {
        let (time, since) = self.clock.counted_from;
        self.clock.time = time + (self.clock.steps - since) as f64 * dt;
    }

    /// Takes so many steps, or fewer to the end of its pace, an encounter that stops it, or where it is
    /// told to break off.
    fn advance(
        &mut self,
        steps: u64,
        within: Option<Within<'_>>,
    ) -> Result<ControlFlow<()>, ForceError> {
        if self.encounters.is_none() {
            return self.advance_freely(steps, within);
        }
        for _ in 0..steps {
            self.look_at_pairs()?;
            self.watched(|simulation| simulation.advance_freely(1, None).map(|_| ()))?;
            if self.is_at_end() || self.stopped_by().is_some() {
                break;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn advance_freely(
        &mut self,
        steps: u64,
        mut within: Option<Within<'_>>,
    ) -> Result<ControlFlow<()>, ForceError> {
        let integrator = self.integrator;
        let sources = self.number_of_sources() as f64;
        let of_a_step = self.interactions_of_a_step();
        match self.pace {
            Pace::Fixed(dt) if self.changes_with_time() => {
                // Each step from its own time, so that it does not matter how many are taken at once.
                for _ in 0..steps {
                    self.begin_step(dt)?;
                    self.take(1, dt)?;
                    self.count_time(dt);
                }
            }
            Pace::Fixed(dt) => {
                self.take(steps, dt)?;
                self.count_time(dt);
            }
            Pace::Adaptive {
                eta,
                longest,
                end,
                steps: stepping,
            } => {
                let changes = self.changes_with_time();
                for _ in 0..steps {
                    if self.encounters.is_none() {
                        self.look_at_pairs()?;
                    }
                    let clock = &self.clock;
                    let last = clock.time + clock.dt * (1.0 + STRETCH) >= end;
                    let dt = if last { end - clock.time } else { clock.dt };
                    if changes {
                        self.begin_step(dt)?;
                    }
                    let next = match stepping {
                        TimeSteps::Shared => {
                            let backend = &mut *self.backend;
                            integrator.step(backend, dt)?;
                            self.interactions += of_a_step;
                            integrator.next_step(backend, eta, dt)?.min(longest)
                        }
                        TimeSteps::Blocks => {
                            let began = Instant::now();
                            let taken = match self.take_span(within.as_mut(), dt) {
                                Ok(taken) => taken,
                                Err(why) => {
                                    self.follow_after(why)?;
                                    if changes {
                                        self.begin_step(dt)?;
                                    }
                                    self.take_span(within.as_mut(), dt)?
                                }
                            };
                            let Some(counts) = taken else {
                                return Ok(ControlFlow::Break(()));
                            };
                            self.steps_are_long = began.elapsed() >= LONG;
                            self.interactions += counts.interactions(sources);
                            self.block_counts += counts;
                            longest
                        }
                    };
                    let clock = &mut self.clock;
                    clock.steps += 1;
                    if last {
                        clock.time = end;
                        break;
                    }
                    clock.time += dt;
                    clock.dt = next;
                    if stepping == TimeSteps::Shared {
                        let shortest = shortest_step(clock.time, longest);
                        check_step(&mut *self.backend, next, shortest)?;
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the block time steps of a span; none if whoever watches broke off.
    fn take_span(
        &mut self,
        within: Option<&mut Within<'_>>,
        dt: f64,
    ) -> Result<Option<BlockCounts>, ForceError> {
        let Pace::Adaptive { eta, .. } = self.pace else {
            unreachable!("block time steps are of such a pace")
        };
        let backend = &mut *self.backend;
        match within.filter(|_| self.steps_are_long) {
            None => block_steps(backend)?.advance(dt, eta).map(Some),
            Some(within) => within.advance(backend, &self.clock, (dt, eta), self.interactions),
        }
    }

    /// Takes `steps` steps, or fewer to the end of its pace, unless `watch`, called several times a
    /// second, breaks off.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn run(
        &mut self,
        steps: u64,
        mut watch: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ForceError> {
        let (began, before) = (Instant::now(), self.interactions);
        let last = self.clock.steps.saturating_add(steps);
        let mut batch = 1;
        self.found.stopped_by = None;
        while self.clock.steps < last && !self.is_at_end() {
            let asked = Instant::now();
            batch = batch.min(last - self.clock.steps);
            let within = Within {
                watch: &mut watch,
                before,
                began,
            };
            if self.advance(batch, Some(within))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.backend.synchronize()?;
            let told = watch(self.progress(before, began));
            if told.is_break() || self.stopped_by().is_some() {
                return Ok(ControlFlow::Break(()));
            }
            if asked.elapsed() < REPORT_INTERVAL / 2 {
                batch *= 2;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes one step.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn step(&mut self) -> Result<(), ForceError> {
        self.advance(1, None).map(|_| ())
    }

    /// Goes on until `time`, and stands there exactly: the last step is shortened. Where the simulation is
    /// there or beyond, nothing is done.
    ///
    /// # Errors
    /// Errors of the backend.
    ///
    /// # Panics
    /// If the time is not finite.
    pub fn run_until(&mut self, time: f64) -> Result<(), ForceError> {
        let _ = self.run_until_with(time, |_| ControlFlow::Continue(()))?;
        Ok(())
    }

    /// As [`run_until`](Self::run_until), unless `watch`, called several times a second, breaks off.
    ///
    /// # Errors
    /// Errors of the backend.
    ///
    /// # Panics
    /// If the time is not finite.
    pub fn run_until_with(
        &mut self,
        time: f64,
        mut watch: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ForceError> {
        self.run_within(u64::MAX, time, &mut watch)
    }

    /// Takes `steps` steps, or fewer to stand at `time` exactly, unless `watch`, called several times a
    /// second, breaks off. Where it is broken off or stops in between does not change the steps.
    ///
    /// # Errors
    /// Errors of the backend.
    ///
    /// # Panics
    /// If the time is not finite.
    pub fn run_within(
        &mut self,
        steps: u64,
        time: f64,
        mut watch: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ForceError> {
        assert!(
            time.is_finite(),
            "a simulation runs until a finite time, not {time}"
        );
        match &mut self.pace {
            Pace::Adaptive { end, .. } => {
                // Times that should be one, and differ by rounding, have no step between them.
                let left = time - self.clock.time;
                if 0.0 < left && left <= STRETCH * self.clock.dt {
                    self.clock.time = time;
                    return Ok(ControlFlow::Continue(()));
                }
                let before = std::mem::replace(end, time);
                let ended = self.run(steps, watch);
                if let Pace::Adaptive { end, .. } = &mut self.pace {
                    *end = before;
                }
                ended
            }
            Pace::Fixed(dt) => {
                let dt = *dt;
                let (from, first) = self.clock.counted_from;
                let left = (time - from) / dt;
                if left <= 0.0 {
                    return Ok(ControlFlow::Continue(()));
                }
                let bound = self.clock.steps.saturating_add(steps);
                // What is left of a step by rounding is none.
                let whole = (left * (1.0 + 1e-12)).floor();
                let last = first.saturating_add(whole as u64);
                let of_full_length = last.min(bound).saturating_sub(self.clock.steps);
                let told = self.run(of_full_length, &mut watch)?;
                let remains = left - whole > STRETCH;
                let breaks_off = told.is_break() || self.clock.steps >= bound;
                if self.clock.steps < last || (remains && breaks_off) {
                    return Ok(told);
                }
                if remains {
                    self.watched(|simulation| {
                        let rest = time - simulation.clock.time;
                        if simulation.changes_with_time() {
                            simulation.begin_step(rest)?;
                        }
                        simulation.take(1, rest)?;
                        simulation.clock.time = time;
                        Ok(())
                    })?;
                }
                // Also where it was broken off after the last step: when is a matter of wall time.
                self.clock.time = time;
                self.clock.counted_from = (time, self.clock.steps);
                match self.stopped_by() {
                    Some(_) => Ok(ControlFlow::Break(())),
                    None => Ok(told),
                }
            }
        }
    }

    fn progress(&self, before: f64, began: Instant) -> Progress {
        let rate = (self.interactions - before) / began.elapsed().as_secs_f64();
        Progress {
            steps: self.clock.steps,
            time: self.time(),
            rate,
            is_within_step: false,
        }
    }
}
