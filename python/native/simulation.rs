//! A simulation that Python holds.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use allpairs::backend::ForceError;
use allpairs::checkpoint::{Checkpoint, Kept};
use allpairs::diagnostics::{Brought, Conserved, Sample};
use allpairs::encounters::{Event, Happening};
use allpairs::fields;
use allpairs::integrator::Pace;
use allpairs::run::{Choice, RunSpec};
use allpairs::simulation::{
    self, BodyChange, ChangeError, DueBody, GoodState, NewValues, Progress,
};
use allpairs::test_particles::Origin;
use allpairs_lab::studies;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bodies::{Arrays, NewArrays, array, arrays, bodies, rows};
use crate::drift_watch::{COSTS, DriftAt, DriftWatch, SINGLE_STEPS, STEPS};
use crate::errors::{Failure, Kind};
use crate::fields::{Faults, Given};
use crate::forces::{kernel, suit};
use crate::settings::{Settings, encounters, spec};
use crate::work::{caught, compute, compute_long, in_thread};

/// Time between two looks at the numbers of a state at least.
const SHORTEST: Duration = Duration::from_millis(50);

/// Drifts of the energy and of test particles, the latter with what they keep.
type NewDrifts = (Option<DriftAt>, Option<(f64, f64, String)>);

/// A simulation that is open.
struct Running {
    simulation: simulation::Simulation,
    origin: Conserved,
    /// State to go back to if a later one is not finite.
    good: GoodState,
    /// When that was kept, and how long it took.
    kept: (Instant, Duration),
    /// True if each step is looked at: fields of Python's fail often, and encounters change the bodies.
    each_step: bool,
    faults: Faults,
    watch: DriftWatch,
}

/// Where steps shall lead.
#[derive(Clone, Copy)]
enum Goal {
    /// This number of steps more.
    Steps(u64),
    /// Exactly this time.
    Until(f64),
    /// The first whole step at or beyond this time.
    Past(f64),
}

/// Steps under way: between the thread that takes them and the one that waits.
#[derive(Default)]
struct Way {
    stop: AtomicBool,
    /// Bits of the time reached; 0 before the first step ends.
    reached: AtomicU64,
}

impl Way {
    fn reach(&self, time: f64) {
        self.reached.store(time.to_bits(), Ordering::Relaxed);
    }

    /// The time reached, if it is not 0.
    fn reached(&self) -> Option<f64> {
        let time = f64::from_bits(self.reached.load(Ordering::Relaxed));
        (time != 0.0).then_some(time)
    }
}

/// Bounds of the way to a goal, whichever comes first.
#[derive(Clone, Copy)]
struct Bounds {
    /// Time at which the simulation is to stand exactly.
    time: f64,
    /// Number of steps.
    steps: u64,
    /// End on the clock on the wall.
    end: Option<Instant>,
}

impl Bounds {
    fn new(time: f64, steps: u64, seconds: f64) -> Self {
        let seconds = Duration::try_from_secs_f64(seconds).ok();
        Self {
            time,
            steps,
            end: seconds.and_then(|seconds| Instant::now().checked_add(seconds)),
        }
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}

impl Running {
    /// A simulation at its beginning, of which all numbers must be finite.
    fn begin(
        mut simulation: simulation::Simulation,
        (origin, particles): (Option<Conserved>, Vec<Origin>),
        faults: &Faults,
        (has_own_fields, lacks_potential): (bool, bool),
    ) -> Result<Self, Failure> {
        let began = Instant::now();
        let good = simulation.good_state().map_err(|error| {
            let strange =
                matches!(error, ForceError::NotFinite { .. }).then(|| faults.take_strange());
            match strange.flatten() {
                Some(text) => Failure::of("field", text),
                None => error.into(),
            }
        })?;
        let kept = (Instant::now(), began.elapsed());
        let (origin, cost) = match origin {
            // Nothing is looked at: no look has to be timed.
            Some(origin) if lacks_potential => (origin, None),
            _ => {
                let began = Instant::now();
                let now = simulation.conserved()?;
                let cost = (!lacks_potential).then(|| began.elapsed());
                (origin.unwrap_or(now), cost)
            }
        };
        let watch = DriftWatch::begin(&mut simulation, particles, cost)?;
        let changes = simulation
            .encounters()
            .is_some_and(|of| of.changes_bodies());
        Ok(Self {
            simulation,
            origin,
            good,
            kept,
            each_step: has_own_fields || changes,
            faults: faults.clone(),
            watch,
        })
    }

    /// Keeps the present state as one to go back to.
    fn keep(&mut self) -> Result<(), ForceError> {
        let began = Instant::now();
        self.good = self.simulation.good_state()?;
        self.kept = (Instant::now(), began.elapsed());
        Ok(())
    }

    /// Makes a change from outside, or leaves the simulation as it is.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut simulation::Simulation) -> Result<T, ChangeError>,
    ) -> Result<T, Failure> {
        self.faults.forget_strange();
        let done = change(&mut self.simulation);
        if let (Err(ChangeError::Force(ForceError::NotFinite { .. })), Some(strange)) =
            (&done, self.faults.take_strange())
        {
            return Err(Failure::of("field", strange));
        }
        let done = done?;
        self.keep()?;
        self.watch.follow(&mut self.simulation, true)?;
        Ok(done)
    }

    /// Takes steps until the goal or a bound, or until it is told to stop. A step that fails, or after which a number is
    /// not finite, leaves the last good state.
    fn go_on(&mut self, goal: Goal, bounds: Bounds, way: &Way) -> Result<(), Failure> {
        self.faults.forget_strange();
        if self.each_step {
            self.keep()?;
        }
        let Err(error) = self.steps(goal, bounds, way) else {
            return Ok(());
        };
        let reached = self.simulation.time();
        let back = self.simulation.go_back_to(&self.good);
        let Some(error) = error else {
            return Ok(back?); // the exception of a field is the error
        };
        if back.is_err() {
            return Err(error.into()); // the device has failed, most often
        }
        let why = match (&error, self.faults.take_strange()) {
            (ForceError::NotFinite { .. }, Some(strange)) => strange,
            _ => error.to_string(),
        };
        let time = self.simulation.time();
        let failure = Failure::from(error);
        Err(Failure {
            text: format!(
                "{why}. It failed at time {reached:?}; the simulation is at time {time:?} again"
            ),
            ..failure
        })
    }

    /// Takes steps until the goal or a bound, or until it is told to stop. There is no error in words if a field has
    /// raised an exception.
    fn steps(&mut self, goal: Goal, bounds: Bounds, way: &Way) -> Result<(), Option<ForceError>> {
        let last_step = self.simulation.clock().steps.saturating_add(bounds.steps);
        let goal = match (goal, self.simulation.pace()) {
            (Goal::Steps(steps), _) => {
                Goal::Steps(self.simulation.clock().steps.saturating_add(steps))
            }
            (Goal::Past(time), Pace::Fixed(dt)) => {
                let clock = self.simulation.clock();
                // Rounding shall not add a step.
                let left = (time - clock.time) / dt;
                let steps = (left * (1.0 - 1e-12)).ceil().max(0.0);
                Goal::Steps(clock.steps.saturating_add(steps as u64))
            }
            (goal, _) => goal,
        };
        loop {
            let before = self.simulation.clock();
            let due = (COSTS * self.kept.1).max(SHORTEST);
            let due_at = self.kept.0 + due;
            let watch = |progress: Progress| {
                way.reach(progress.time);
                let is_due =
                    !progress.is_within_step && (Instant::now() >= due_at || bounds.is_over());
                match is_due || way.stop.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            let most = if self.each_step { 1 } else { u64::MAX };
            let most = most.min(last_step - before.steps);
            let simulation = &mut self.simulation;
            let until = bounds.time.is_finite().then_some(bounds.time);
            let (steps, until) = match goal {
                Goal::Steps(last) => (most.min(last - before.steps), until),
                Goal::Until(time) => (most, Some(until.map_or(time, |bound| time.min(bound)))),
                Goal::Past(time) if before.time < time => (most.min(1), until),
                Goal::Past(_) => (0, None),
            };
            let taken = match until {
                Some(time) => simulation.run_within(steps, time, watch),
                None => simulation.run(steps, watch),
            };
            if self.faults.has_raised() {
                return Err(None);
            }
            let _ = taken.map_err(Some)?;
            let clock = self.simulation.clock();
            let is_done = match (goal, self.simulation.pace()) {
                (Goal::Steps(last), _) => clock.steps >= last,
                (Goal::Until(time), Pace::Fixed(dt)) => (clock.time - time) * dt.signum() >= 0.0,
                (Goal::Until(time) | Goal::Past(time), _) => clock.time >= time,
            };
            let ends = is_done
                || clock == before
                || clock.time == bounds.time
                || clock.steps >= last_step
                || bounds.is_over()
                || way.stop.load(Ordering::Relaxed)
                || self.simulation.stopped_by().is_some()
                || self.simulation.is_at_end();
            let is_single = matches!(goal, Goal::Steps(last) if last - before.steps == 1);
            if self.each_step || Instant::now() >= due_at || (ends && !is_single) {
                self.keep()?;
            }
            let ends_after = ends.then_some(if is_single { SINGLE_STEPS } else { STEPS });
            if self.watch.is_due(self.simulation.clock().steps, ends_after) {
                self.watch.look(&mut self.simulation, &self.origin)?;
            }
            if ends {
                return Ok(());
            }
        }
    }
}

/// A simulation that begins: with its settings, its place, what was chosen (name, value and reason), and remarks.
type Begun = (Simulation, Settings, String, Vec<[String; 3]>, Vec<String>);

/// A simulation that threads share.
struct Shared {
    /// None when it is closed.
    running: Mutex<Option<Running>>,
    /// Process of the thread that uses it; 0 if none does.
    user: AtomicU32,
}

/// Use of a simulation by a thread.
struct Use<'a> {
    running: MutexGuard<'a, Option<Running>>,
    user: &'a AtomicU32,
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.user.store(0, Ordering::Release);
    }
}

impl Shared {
    /// Use of the simulation, if no other thread uses it.
    fn try_use(&self) -> Result<Option<Use<'_>>, Failure> {
        let running = match self.running.try_lock() {
            Ok(running) => running,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let user = self.user.load(Ordering::Acquire);
                return match user == 0 || user == std::process::id() {
                    true => Ok(None),
                    // The thread is in another process, and never gives it back here.
                    false => Err(Failure::new(
                        Kind::Compute,
                        "the simulation was in use when this process was forked: start processes by `spawn`",
                    )),
                };
            }
        };
        self.user.store(std::process::id(), Ordering::Release);
        let user = &self.user;
        Ok(Some(Use { running, user }))
    }

    /// Use of the simulation, after what other threads do with it.
    fn wait(&self) -> Result<Use<'_>, Failure> {
        loop {
            match self.try_use()? {
                Some(used) => return Ok(used),
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

#[pyclass(frozen, module = "allpairs._native")]
pub(crate) struct Simulation {
    shared: Arc<Shared>,
    /// Faults of fields of Python's.
    faults: Faults,
    /// Reason why the drift of the energy says nothing about the steps, if there is one.
    unwatched: Option<&'static str>,
}

#[pymethods]
impl Simulation {
    /// A simulation of these bodies, or, with a checkpoint, its continuation. Beside it the settings, with
    /// what was chosen where they left a choice, by which it can be resumed; the device in words, the
    /// reason why it was taken, and a remark on kernels that were tuned.
    #[staticmethod]
    #[pyo3(signature = (all, settings, saved=None))]
    fn begin(
        py: Python<'_>,
        all: Arrays<'_>,
        settings: Settings,
        saved: Option<&[u8]>,
    ) -> PyResult<Begun> {
        let saved = saved.map(|bytes| compute(py, || checkpoint_of(bytes)));
        let saved = saved.transpose()?;
        let bodies = bodies(&all)?;
        let kept = saved.as_ref().map(|saved| saved.kept.radii.clone());
        let encounters = encounters(&settings, bodies.len(), kept);
        let faults = Faults::default();
        let given = settings.field.iter();
        let given: Vec<_> = given
            .map(|field| Given::new(field.bind(py), &faults))
            .collect();
        let has_own_fields = given.iter().any(Given::is_own);
        let lacks_potential = given.iter().any(|field| field.lacks_potential(py));
        let noted = faults.clone();
        let made = compute_long(py, move || {
            let mut settings = settings;
            let around = studies::surroundings(None);
            let mut spec = RunSpec {
                encounters,
                ..spec(&settings)?
            };
            suit(spec.accuracy, kernel(spec.kernel.as_deref())?)?;
            let (units, g) = (spec.units, spec.gravity(spec.force_law(&around)?));
            for given in given {
                let fields = given.fields(units.as_ref(), g)?;
                fields.into_iter().for_each(|field| spec.fields.push(field));
            }
            if let Some(text) = &settings.orbit {
                let orbit = fields::parse_orbit(text, units.as_ref())
                    .map_err(|fault| Failure::of("orbit", format!("`orbit` {text}: {fault}")))?;
                spec.fields = spec.fields.on_orbit(orbit);
            }
            let moves = spec.fields.iter().any(|field| field.path().is_some());
            let unwatched = match (lacks_potential, moves) {
                (true, _) => Some("a `field` of your own has no `potential`"),
                (false, true) => Some("the `field` moves"),
                (false, false) => None,
            };
            let begin = |simulation, origin: Option<Conserved>, particles: Vec<Origin>| {
                let of_fields = (has_own_fields, lacks_potential);
                Running::begin(simulation, (origin, particles), &noted, of_fields)
            };
            let is_new = saved.is_none();
            let (mut running, run) = match saved {
                None => {
                    let run = spec.resolve(&bodies, &around)?;
                    let (simulation, run) = run.start(bodies)?;
                    (begin(simulation, None, vec![])?, run)
                }
                Some(Checkpoint {
                    clock,
                    origin,
                    state,
                    kept,
                    ..
                }) => {
                    let run = spec.resolve_resumed(&bodies, &around)?;
                    let simulation = run.clone().resume(bodies, (clock, &state), kept.lost)?;
                    let simulation = simulation
                        .having_brought(kept.brought)
                        .having_chosen_step(kept.chosen_step);
                    (begin(simulation, Some(origin), kept.particles)?, run)
                }
            };
            running.simulation.bodies()?; // what was queued has succeeded
            settings.settle(&run.spec);
            let remark = run.remark.map(|why| {
                format!("{why}; `allpairs tune` finds new ones, `tuned=False` does not look")
            });
            // A run that goes on was warned of when it began.
            let warnings = run.warnings.into_iter().filter(|_| is_new);
            let remarks: Vec<String> = remark.into_iter().chain(warnings).collect();
            let choices = run.choices.into_iter().map(|choice| {
                let Choice {
                    setting,
                    value,
                    why,
                } = choice;
                [setting.argument().to_owned(), value, why]
            });
            let place = run.selection.place.to_string();
            Ok((
                (running, unwatched),
                settings,
                place,
                choices.collect(),
                remarks,
            ))
        });
        let ((running, unwatched), settings, place, choices, remarks) = faults.or(made)?;
        let shared = Arc::new(Shared {
            running: Mutex::new(Some(running)),
            user: AtomicU32::new(0),
        });
        let simulation = Self {
            shared,
            faults,
            unwatched,
        };
        Ok((simulation, settings, place, choices, remarks))
    }

    /// Time and steps reached, and the step to come.
    fn clock(&self, py: Python<'_>) -> PyResult<(f64, u64, f64)> {
        self.with(py, |running| {
            let clock = running.simulation.clock();
            Ok((clock.time, clock.steps, clock.dt))
        })
    }

    /// Time from which on pairs are followed apart, if there were none at the beginning.
    fn followed_from(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.with(py, |running| Ok(running.simulation.followed_from()))
    }

    /// Interactions computed for steps.
    fn interactions(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |running| Ok(running.simulation.interactions()))
    }

    /// Bodies and time.
    fn bodies<'py>(&self, py: Python<'py>) -> PyResult<(NewArrays<'py>, f64)> {
        let snapshot = self.with(py, |running| Ok(running.simulation.snapshot()?))?;
        Ok((arrays(py, snapshot.bodies)?, snapshot.time))
    }

    /// Position and velocity of the origin, if it is on an orbit.
    fn origin(&self, py: Python<'_>) -> PyResult<Option<[[f64; 3]; 2]>> {
        self.with(py, |running| Ok(running.simulation.external().origin()))
    }

    /// Kinetic and potential energy, and that in external fields.
    fn energy(&self, py: Python<'_>) -> PyResult<(f64, f64, f64)> {
        let energy = self.with_long(py, |running| Ok(running.simulation.energy()?))?;
        Ok((energy.kinetic, energy.potential, energy.external))
    }

    /// Steps, the numbers of a row of a log, and whether the energy has drifted by more than a bound.
    fn sample(&self, py: Python<'_>, bound: f64) -> PyResult<(u64, Vec<f64>, bool)> {
        self.with_long(py, move |running| {
            let Running {
                simulation,
                origin,
                watch,
                ..
            } = running;
            let sample = simulation.sample(origin)?;
            let has_drifted = sample.has_drifted(bound);
            watch.look_at_particles(simulation)?;
            Ok((sample.steps, sample.values().to_vec(), has_drifted))
        })
    }

    /// The largest drifts since this was last asked: of the energy (time, drift), and of test particles (time, drift,
    /// and a quantity). None where there was no look.
    fn drifts(&self, py: Python<'_>) -> PyResult<NewDrifts> {
        let unwatched = self.unwatched.is_some();
        self.with(py, move |running| {
            let watch = &mut running.watch;
            let (energy, particles) = (watch.energy.take(), watch.of_particles.take());
            let particles = particles.map(|(time, drift, of)| (time, drift, of.to_string()));
            Ok(match unwatched {
                true => (None, None),
                false => (energy, particles),
            })
        })
    }

    /// Bodies that outran a step that was chosen, since this was last asked: the time, the step that is taken, and the step
    /// that would be chosen now, with its reason.
    fn outrun(&self, py: Python<'_>) -> PyResult<Option<(f64, f64, f64, String)>> {
        self.with(py, |running| {
            let outrun = running.watch.outrun.take();
            Ok(outrun.map(|outrun| {
                let suited = outrun.suited;
                (outrun.time, outrun.dt, suited.value, suited.why)
            }))
        })
    }

    /// Reason why the drift of the energy says nothing about the steps, if there is one.
    fn unwatched(&self) -> Option<&'static str> {
        self.unwatched
    }

    /// Names of these numbers.
    #[staticmethod]
    fn columns() -> Vec<&'static str> {
        Sample::COLUMNS.to_vec()
    }

    /// Takes a number of steps, or fewer to stand exactly at the time `bound`. Returns how many were taken.
    fn step(&self, py: Python<'_>, steps: u64, bound: f64) -> PyResult<u64> {
        let bounds = Bounds::new(bound, u64::MAX, f64::INFINITY);
        self.drive(py, Goal::Steps(steps), bounds, &mut |_, _| Ok(()))
    }

    /// Goes on exactly until `time`, or by whole steps until it is reached or passed. Bounds end this before: a time to
    /// stand at exactly, a number of steps, or of seconds. Meanwhile `look` is called again and again with the time
    /// reached, also within the longest of block time steps.
    fn go_on(
        &self,
        py: Python<'_>,
        time: f64,
        exactly: bool,
        bounds: (f64, u64, f64),
        look: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (bound, steps, seconds) = bounds;
        let goal = match exactly {
            true => Goal::Until(time),
            false => Goal::Past(time),
        };
        let bounds = Bounds::new(bound, steps, seconds);
        let mut look = |_: Python<'_>, time| look.call1((time,)).map(drop);
        self.drive(py, goal, bounds, &mut look).map(drop)
    }

    /// Goes back to `time` with steps that follow the motion.
    fn go_back(&self, py: Python<'_>, time: f64) -> PyResult<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let tell = || stop.store(true, Ordering::Relaxed);
        let work = move |running: &mut Running| {
            let watch = |_: Progress| match told.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            running.change(|simulation| simulation.run_back_until(time, watch).map(|_| ()))?;
            if running
                .watch
                .is_due(running.simulation.clock().steps, Some(0))
            {
                running
                    .watch
                    .look(&mut running.simulation, &running.origin)?;
            }
            Ok(())
        };
        self.in_thread(py, work, Some(&tell), &mut |_| Ok(()))
    }

    /// Bodies and time as they will be at `time`, or where an encounter stops the simulation before.
    fn at<'py>(&self, py: Python<'py>, time: f64) -> PyResult<(NewArrays<'py>, f64)> {
        let snapshot = self.with_long(py, move |running| {
            let snapshot = running.simulation.at(time)?;
            match snapshot.bodies.check() {
                Ok(()) => Ok(snapshot),
                Err(fault) => Err(Failure::new(
                    Kind::Compute,
                    format!("{fault}, at time {time:?}"),
                )),
            }
        })?;
        Ok((arrays(py, snapshot.bodies)?, snapshot.time))
    }

    /// Bodies that change now; none for those that are not there any more.
    fn due(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<Vec<Option<Due>>> {
        self.with(py, move |running| {
            let of = &mut running.simulation;
            let all: HashSet<u64> = of.bodies()?.id.iter().copied().collect();
            let there: Vec<u64> = ids.iter().copied().filter(|id| all.contains(id)).collect();
            let mut due = of.due(&there)?.into_iter().map(due);
            let next = |id: &u64| all.contains(id).then(|| due.next()).flatten();
            Ok(ids.iter().map(next).collect())
        })
    }

    /// Makes changes of bodies: of each the id, mass, kick, radius, and whether it is removed.
    fn change(&self, py: Python<'_>, changes: Vec<Made>) -> PyResult<()> {
        let change = |(id, mass, kick, radius, is_removed): Made| {
            let change = BodyChange {
                mass,
                kick,
                radius,
                is_removed,
                next: None,
            };
            (id, change)
        };
        let changes: Vec<(u64, BodyChange)> = changes.into_iter().map(change).collect();
        self.with_long(py, move |running| {
            running.change(|simulation| simulation.change_bodies(&changes))
        })
    }

    /// Encounters since this was last asked: step, time, kind, ids, masses, position, speed and outcome.
    fn events(&self, py: Python<'_>) -> PyResult<Vec<Row>> {
        let events = self.with(py, |running| Ok(running.simulation.take_events()))?;
        Ok(events.into_iter().map(row).collect())
    }

    /// The encounter that stopped it, in words.
    fn stopped_by(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |running| {
            Ok(running.simulation.stopped_by().map(ToString::to_string))
        })
    }

    /// Radii of the bodies; none where no encounters are looked for.
    fn radii(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        self.with(py, |running| {
            Ok(running.simulation.encounters().map(|of| of.radii.clone()))
        })
    }

    /// Number of bodies.
    fn number(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |running| Ok(running.simulation.number_of_bodies()))
    }

    /// Adds to the velocities of bodies with these ids, or of all.
    fn kick(
        &self,
        py: Python<'_>,
        ids: Option<PyReadonlyArray1<'_, u64>>,
        dv: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<()> {
        let (ids, dv) = (numbers(ids)?, rows(&dv)?.to_vec());
        self.with_long(py, move |running| {
            let kicked = running.change(|simulation| match &ids {
                Some(ids) => simulation.kick_some(ids, &dv),
                None => simulation.kick(&dv),
            });
            kicked.map_err(|failure| match failure.argument {
                Some("vel" | "velocities") => Failure {
                    argument: Some("dv"),
                    ..failure
                },
                _ => failure,
            })
        })
    }

    /// Gives bodies with these ids other masses, positions, velocities or radii.
    fn set(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray1<'_, u64>,
        m: Option<PyReadonlyArray1<'_, f64>>,
        pos: Option<PyReadonlyArray2<'_, f64>>,
        vel: Option<PyReadonlyArray2<'_, f64>>,
        radii: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<()> {
        let ids = ids.as_slice()?.to_vec();
        let (masses, radii) = (numbers(m)?, numbers(radii)?);
        let vectors = |array: Option<PyReadonlyArray2<'_, f64>>| -> PyResult<_> {
            let Some(array) = array else {
                return Ok(None);
            };
            Ok(Some(rows(&array)?.to_vec()))
        };
        let (positions, velocities) = (vectors(pos)?, vectors(vel)?);
        self.with_long(py, move |running| {
            let to = NewValues {
                masses: masses.as_deref(),
                positions: positions.as_deref(),
                velocities: velocities.as_deref(),
                radii: radii.as_deref(),
            };
            running.change(|simulation| simulation.set(&ids, to))
        })
    }

    /// Adds bodies, with these radii or none; returns their ids, which are new where `ids` are not kept.
    fn add<'py>(
        &self,
        py: Python<'py>,
        all: Arrays<'_>,
        keeps_ids: bool,
        radii: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let mut bodies = bodies(&all)?;
        let radii = numbers(radii)?.unwrap_or_default();
        let ids = self.with_long(py, move |running| {
            running.change(|simulation| {
                if !keeps_ids {
                    bodies.id = simulation.free_ids(bodies.len());
                }
                simulation.add(&bodies, &radii)?;
                Ok(bodies.id)
            })
        })?;
        Ok(PyArray1::from_vec(py, ids))
    }

    /// Removes bodies with these ids.
    fn remove(&self, py: Python<'_>, ids: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let ids = ids.as_slice()?.to_vec();
        self.with_long(py, move |running| {
            running.change(|simulation| simulation.remove(&ids))
        })
    }

    /// Energy, mass, momentum and angular momentum that changes brought.
    fn brought(&self, py: Python<'_>) -> PyResult<(f64, f64, [f64; 3], [f64; 3])> {
        let brought = self.with(py, |running| Ok(running.simulation.brought()))?;
        let Brought {
            energy,
            mass,
            momentum,
            angular_momentum,
        } = brought;
        Ok((energy, mass, momentum, angular_momentum))
    }

    /// A checkpoint, as the library writes it.
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |running| {
            let Running {
                simulation,
                origin,
                watch,
                ..
            } = running;
            watch.follow(simulation, false)?;
            let account = watch.particles.as_ref();
            let origins = account.map_or(vec![], |account| account.origins().to_vec());
            let (clock, state) = simulation.save()?;
            let radii = simulation.encounters().map(|of| of.radii.clone());
            let checkpoint = Checkpoint {
                clock,
                origin: *origin,
                largest_drift: 0.0,      // nothing here follows it
                settings: String::new(), // those are Python's, beside these bytes
                bodies: simulation.bodies()?.clone(),
                state,
                kept: Kept {
                    radii: radii.unwrap_or_default(),
                    lost: simulation.lost(),
                    brought: simulation.brought(),
                    chosen_step: simulation.leapfrogs_of_chosen_step(),
                    particles: origins,
                },
            };
            let mut bytes = vec![];
            checkpoint.write_to(&mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Bodies of a checkpoint.
    #[staticmethod]
    fn bodies_of<'py>(py: Python<'py>, saved: &[u8]) -> PyResult<NewArrays<'py>> {
        let checkpoint = compute(py, || checkpoint_of(saved))?;
        arrays(py, checkpoint.bodies)
    }

    /// Gives back memory and device.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.faults.refuse_within().map_err(|why| why.raise(py))?;
        let closed = py.detach(|| {
            *self.shared.wait()?.running = None;
            Ok(())
        });
        closed.map_err(|failure: Failure| failure.raise(py))
    }

    /// Accelerations computed last.
    fn accelerations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let last = self.with(py, |running| {
            let (_, state) = running.simulation.save()?;
            let frame = state.frame;
            let local = state.accelerations().iter();
            Ok(local
                .map(|&a| frame.acceleration_from_local(a))
                .collect::<Vec<_>>())
        })?;
        array(py, last)
    }
}

/// A change of a body as Python has it: id, mass, kick, radius, and whether it is removed.
type Made = (u64, Option<f64>, Option<[f64; 3]>, Option<f64>, bool);

/// A body that changes as Python has it: id, mass, position, velocity, radius, and of the pair that it is in the
/// other's id and mass, semi-major axis, eccentricity and period.
type Due = (
    u64,
    f64,
    [f64; 3],
    [f64; 3],
    Option<f64>,
    Option<(u64, f64, f64, f64, f64)>,
);

fn due(body: DueBody) -> Due {
    let DueBody {
        id,
        mass,
        position,
        velocity,
        radius,
        pair,
        ..
    } = body;
    let pair = pair.map(|pair| {
        let other = usize::from(pair.ids[0] == id);
        (
            pair.ids[other],
            pair.masses[other],
            pair.semi_major_axis,
            pair.eccentricity,
            pair.period,
        )
    });
    (id, mass, position, velocity, radius, pair)
}

/// An encounter as Python has it: step, time, kind, ids, masses, position, speed and outcome.
type Row = (
    u64,
    f64,
    &'static str,
    (u64, u64),
    (f64, f64),
    [f64; 3],
    f64,
    &'static str,
);

fn row(event: Event) -> Row {
    match event.what {
        Happening::Collision {
            ids,
            masses,
            position,
            speed,
            outcome,
        } => (
            event.step,
            event.time,
            "collision",
            ids.into(),
            masses.into(),
            position,
            speed,
            outcome.name(),
        ),
        Happening::Escape {
            id,
            mass,
            position,
            speed,
            outcome,
        } => (
            event.step,
            event.time,
            "escape",
            (id, id),
            (mass, 0.0),
            position,
            speed,
            outcome.name(),
        ),
    }
}

/// A copy of numbers, if there are any.
fn numbers<T: numpy::Element + Copy>(
    array: Option<PyReadonlyArray1<'_, T>>,
) -> PyResult<Option<Vec<T>>> {
    let Some(array) = array else {
        return Ok(None);
    };
    Ok(Some(array.as_slice()?.to_vec()))
}

/// The checkpoint in these bytes.
pub(crate) fn checkpoint_of(bytes: &[u8]) -> Result<Checkpoint, Failure> {
    Checkpoint::read_from(bytes, bytes.len() as u64)
        .map_err(|fault| Failure::new(Kind::File, format!("the saved simulation: {fault}")))
}

/// Does work on a simulation that is open; one whose work panicked is closed.
fn on<T: Send>(
    running: &mut Option<Running>,
    work: impl FnOnce(&mut Running) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let Some(open) = running else {
        let text = "the simulation is closed";
        return Err(Failure::new(Kind::Closed, text));
    };
    let outcome = caught(|| work(open));
    if let Err(Failure {
        kind: Kind::Internal,
        ..
    }) = outcome
    {
        *running = None;
    }
    outcome
}

impl Simulation {
    /// Does quick work without the interpreter's lock, after what another thread does with the simulation.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Running) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        self.faults.refuse_within().map_err(|why| why.raise(py))?;
        let mut work = Some(work);
        loop {
            let attempt = || -> Option<Result<T, Failure>> {
                match self.shared.try_use() {
                    Ok(Some(mut used)) => Some(on(&mut used.running, work.take()?)),
                    Ok(None) => {
                        thread::sleep(Duration::from_millis(1));
                        None
                    }
                    Err(failure) => Some(Err(failure)),
                }
            };
            match py.detach(attempt) {
                Some(outcome) => {
                    return self.faults.or(outcome.map_err(|failure| failure.raise(py)));
                }
                None => py.check_signals()?,
            }
        }
    }

    /// Like [`with`](Self::with), but for work that takes long: Ctrl-C need not wait for its end.
    fn with_long<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Running) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        self.in_thread(py, work, None, &mut |_| Ok(()))
    }

    /// Takes steps in another thread, so that Ctrl-C need not wait for the end of a long step. The simulation
    /// finishes the step, and a caller who asks it anything waits for that long. Returns the number of steps.
    fn drive(
        &self,
        py: Python<'_>,
        goal: Goal,
        bounds: Bounds,
        look: &mut dyn FnMut(Python<'_>, f64) -> PyResult<()>,
    ) -> PyResult<u64> {
        let way = Arc::new(Way::default());
        let taken = Arc::clone(&way);
        let stop = || way.stop.store(true, Ordering::Relaxed);
        self.in_thread(
            py,
            move |running| {
                let before = running.simulation.clock().steps;
                running.go_on(goal, bounds, &taken)?;
                Ok(running.simulation.clock().steps.saturating_sub(before))
            },
            Some(&stop),
            &mut |py| way.reached().map_or(Ok(()), |time| look(py, time)),
        )
    }

    fn in_thread<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Running) -> Result<T, Failure> + Send + 'static,
        stop: Option<&dyn Fn()>,
        look: &mut dyn FnMut(Python<'_>) -> PyResult<()>,
    ) -> PyResult<T> {
        self.faults.refuse_within().map_err(|why| why.raise(py))?;
        let shared = Arc::clone(&self.shared);
        let work = move || on(&mut shared.wait()?.running, work);
        let outcome = in_thread(py, work, stop, &mut |py| {
            py.check_signals()?;
            look(py)
        })?;
        self.faults.or(outcome.map_err(|failure| failure.raise(py)))
    }
}
