//! A simulation that Python holds.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, mpsc};
use std::thread;
use std::time::Duration;

use allpairs::checkpoint::{Checkpoint, Kept};
use allpairs::diagnostics::{Conserved, Sample};
use allpairs::encounters::{Event, Happening};
use allpairs::fields;
use allpairs::integrator::Pace;
use allpairs::run::RunSpec;
use allpairs::simulation;
use allpairs_lab::studies;
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bodies::{Arrays, NewArrays, array, arrays, bodies};
use crate::errors::{Failure, Kind, caught, compute};
use crate::fields::{Given, Raised};
use crate::settings::{Settings, encounters, spec};

/// How often a run looks whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(20);
/// How long it waits after that for the step under way.
const PATIENCE: Duration = Duration::from_millis(500);

/// A simulation; `None` when it is closed.
type Shared = Arc<Mutex<Option<Running>>>;

struct Running {
    simulation: simulation::Simulation,
    origin: Conserved,
}

#[pyclass(frozen, module = "allpairs._native")]
pub(crate) struct Simulation {
    shared: Shared,
    /// Exception that a field of Python's raised.
    raised: Raised,
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
    ) -> PyResult<(Self, Settings, String, String, Option<String>)> {
        let saved = saved.map(|bytes| compute(py, || checkpoint_of(bytes)));
        let saved = saved.transpose()?;
        let bodies = bodies(&all)?;
        let kept = saved.as_ref().map(|saved| saved.kept.radii.clone());
        let encounters = encounters(&settings, bodies.len(), kept);
        let raised = Raised::default();
        let given = settings.field.iter();
        let given: Vec<_> = given
            .map(|field| Given::new(field.bind(py), &raised))
            .collect();
        let made = compute(py, move || {
            let mut settings = settings;
            let around = studies::surroundings(None);
            let mut spec = RunSpec {
                encounters,
                ..spec(&settings)?
            };
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
            let (mut running, run) = match saved {
                None => {
                    let run = spec.resolve(&bodies, &around)?;
                    let (mut simulation, run) = run.start(bodies)?;
                    let origin = simulation.conserved()?;
                    (Running { simulation, origin }, run)
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
                    (Running { simulation, origin }, run)
                }
            };
            running.simulation.bodies()?; // what was queued has succeeded
            settings.settle(&run.spec);
            let remark = run.remark.map(|why| {
                format!("{why}; `allpairs tune` finds new ones, `tuned=False` does not look")
            });
            let (place, why) = (run.selection.place.to_string(), run.selection.why);
            Ok((running, settings, place, why, remark))
        });
        let (running, settings, place, why, remark) = raised.or(made)?;
        let shared = Arc::new(Mutex::new(Some(running)));
        let simulation = Self { shared, raised };
        Ok((simulation, settings, place, why, remark))
    }

    /// Time and steps reached, and the step to come.
    fn clock(&self, py: Python<'_>) -> PyResult<(f64, u64, f64)> {
        self.with(py, |running| {
            let clock = running.simulation.clock();
            Ok((clock.time, clock.steps, clock.dt))
        })
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
        let energy = self.with(py, |running| Ok(running.simulation.energy()?))?;
        Ok((energy.kinetic, energy.potential, energy.external))
    }

    /// Steps, and the numbers of a row of a log.
    fn sample(&self, py: Python<'_>) -> PyResult<(u64, Vec<f64>)> {
        self.with(py, |running| {
            let Running { simulation, origin } = running;
            let sample = simulation.sample(origin)?;
            Ok((sample.steps, sample.values().to_vec()))
        })
    }

    /// Names of these numbers.
    #[staticmethod]
    fn columns() -> Vec<&'static str> {
        Sample::COLUMNS.to_vec()
    }

    /// Takes so many steps.
    fn step(&self, py: Python<'_>, steps: u64) -> PyResult<()> {
        if steps == 1 {
            return self.with(py, |running| Ok(running.simulation.step()?));
        }
        self.drive(py, move |simulation, stop| {
            let ended = simulation.run(steps, |_| unless(stop))?;
            Ok(ended.is_continue())
        })
    }

    /// Goes on until `time`, and stands there exactly.
    fn run_until(&self, py: Python<'_>, time: f64) -> PyResult<()> {
        self.drive(py, move |simulation, stop| {
            let ended = simulation.run_until_with(time, |_| unless(stop))?;
            Ok(ended.is_continue())
        })
    }

    /// Goes on by whole steps until `time` is reached or passed.
    fn run_past(&self, py: Python<'_>, time: f64) -> PyResult<()> {
        self.drive(py, move |simulation, stop| {
            let (clock, pace) = (simulation.clock(), simulation.pace());
            match pace {
                Pace::Fixed(dt) => {
                    // Rounding shall not add a step.
                    let left = (time - clock.time) / dt;
                    let steps = (left * (1.0 - 1e-12)).ceil().max(0.0);
                    Ok(simulation
                        .run(steps as u64, |_| unless(stop))?
                        .is_continue())
                }
                Pace::Adaptive { .. } => {
                    while simulation.time() < time {
                        if stop.load(Ordering::Relaxed) {
                            return Ok(false);
                        }
                        simulation.step()?;
                    }
                    Ok(true)
                }
            }
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

    /// A checkpoint, as the library writes it.
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |running| {
            let Running { simulation, origin } = running;
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
                    ..Kept::default()
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
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
        });
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

/// The checkpoint in these bytes.
pub(crate) fn checkpoint_of(bytes: &[u8]) -> Result<Checkpoint, Failure> {
    Checkpoint::read_from(bytes, bytes.len() as u64)
        .map_err(|fault| Failure::new(Kind::File, format!("the saved simulation: {fault}")))
}

fn unless(stop: &AtomicBool) -> ControlFlow<()> {
    match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Does work on a simulation that is open; one whose work panicked is closed.
fn on<T>(
    running: &mut Option<Running>,
    work: impl FnOnce(&mut Running) -> Result<T, Failure>,
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
    /// Does work without the interpreter's lock, after what another thread does with the simulation.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Running) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        let mut work = Some(work);
        loop {
            let attempt = || -> Option<Result<T, Failure>> {
                let mut running = match self.shared.try_lock() {
                    Ok(running) => running,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => {
                        thread::sleep(Duration::from_millis(1));
                        return None;
                    }
                };
                Some(on(&mut running, work.take()?))
            };
            match py.detach(attempt) {
                Some(outcome) => {
                    return self.raised.or(outcome.map_err(|failure| failure.raise(py)));
                }
                None => py.check_signals()?,
            }
        }
    }

    /// Runs in a thread of its own, so that Ctrl-C need not wait for the end of a long step: the
    /// simulation finishes that, stands there, and a caller who asks it anything waits for that long.
    fn drive(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut simulation::Simulation, &AtomicBool) -> Result<bool, Failure>
        + Send
        + 'static,
    ) -> PyResult<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, mut receiver) = mpsc::channel();
        let (shared, told) = (Arc::clone(&self.shared), Arc::clone(&stop));
        let run = move || {
            let mut running = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = on(&mut running, |running| work(&mut running.simulation, &told));
            drop(running);
            let _ = sender.send(outcome); // nobody may be waiting any more
        };
        thread::Builder::new().spawn(run)?;
        loop {
            let outcome;
            (receiver, outcome) = py.detach(move || {
                let outcome = receiver.recv_timeout(LOOK);
                (receiver, outcome)
            });
            match outcome {
                Ok(outcome) => {
                    let outcome = outcome.map(drop).map_err(|failure| failure.raise(py));
                    return self.raised.or(outcome);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let text = "the thread of a simulation ended without a word";
                    return Err(Failure::new(Kind::Internal, text).raise(py));
                }
            }
            if let Err(interrupt) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                let _ = py.detach(move || receiver.recv_timeout(PATIENCE));
                return Err(interrupt);
            }
        }
    }
}
