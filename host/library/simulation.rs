//! The loop: step after step on one backend, with a look now and then.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::backend::{Backend, ForceError, SavedState};
use crate::bodies::Bodies;
use crate::diagnostics::{Conserved, Energy, Sample};
use crate::integrator::{Integrator, Pace, Stepping};
use crate::physics::Physics;

/// How long work may be queued before the loop waits for it and reports: often enough for a person
/// who watches, seldom enough for a GPU that should never wait.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Bodies on their way through time.
pub struct Simulation {
    backend: Box<dyn Backend>,
    bodies: Bodies,
    physics: Physics,
    integrator: Integrator,
    pace: Pace,
    clock: Clock,
    /// Computed since it was made.
    interactions: f64,
}

/// Where in time a simulation stands.
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
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Steps done since the simulation began.
    pub steps: u64,
    /// Time reached.
    pub time: f64,
    /// Interactions computed a second, since [`Simulation::run`] was called.
    pub rate: f64,
}

impl Simulation {
    /// A simulation of `bodies` from `start`, on a backend that holds them; a number as `pace` is a
    /// fixed time step.
    ///
    /// # Errors
    /// Those of the backend, which computes the first accelerations; or that it has no jerks and
    /// the integrator or the pace needs them.
    pub fn new(
        mut backend: Box<dyn Backend>,
        bodies: Bodies,
        physics: Physics,
        integrator: Integrator,
        pace: impl Into<Pace>,
        start: f64,
    ) -> Result<Self, ForceError> {
        integrator.prepare(&mut *backend)?;
        let pace = pace.into();
        let dt = match pace {
            Pace::Fixed(dt) => dt,
            Pace::Adaptive {
                eta,
                longest,
                steps: Stepping::Shared,
                ..
            } => integrator.first_step(&mut *backend, eta, longest)?,
            Pace::Adaptive {
                longest,
                steps: Stepping::Blocks,
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
        };
        Ok(Self {
            backend,
            bodies,
            physics,
            integrator,
            pace,
            clock,
            interactions: 0.0,
        })
    }

    /// Continues where another simulation was [saved](Self::save), with the bits that it would
    /// have had: on a backend [in the frame](crate::machine::Machine::backend_in_frame) of
    /// `state`.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn resume(
        mut backend: Box<dyn Backend>,
        bodies: Bodies,
        physics: Physics,
        integrator: Integrator,
        pace: Pace,
        (clock, state): (Clock, &SavedState),
    ) -> Result<Self, ForceError> {
        backend.restore(state)?;
        Ok(Self {
            backend,
            bodies,
            physics,
            integrator,
            pace,
            clock,
            interactions: 0.0,
        })
    }

    /// What [`resume`](Self::resume) needs.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn save(&mut self) -> Result<(Clock, SavedState), ForceError> {
        Ok((self.clock, self.backend.save()?))
    }

    /// Where in time it stands.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Time reached.
    pub fn time(&self) -> f64 {
        self.clock.time
    }

    /// How long steps are.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The force.
    pub fn physics(&self) -> &Physics {
        &self.physics
    }

    /// Whether a pace with an end has reached it.
    pub fn is_at_end(&self) -> bool {
        matches!(self.pace, Pace::Adaptive { end, .. } if self.clock.time >= end)
    }

    /// Interactions computed for steps since it was made or resumed.
    pub fn interactions(&self) -> f64 {
        self.interactions
    }

    /// Takes so many steps, or fewer to the end of its pace.
    fn advance(&mut self, steps: u64) -> Result<(), ForceError> {
        let integrator = self.integrator;
        let n = self.bodies.len() as f64;
        let each = n / self.backend.systems() as f64;
        let of_a_step = n * each * f64::from(integrator.evaluations());
        match self.pace {
            Pace::Fixed(dt) => {
                self.backend
                    .repeat(steps, &mut |backend| integrator.step(backend, dt))?;
                self.clock.steps += steps;
                self.clock.time = self.clock.start + self.clock.steps as f64 * dt;
                self.interactions += of_a_step * steps as f64;
            }
            Pace::Adaptive {
                eta,
                longest,
                end,
                steps: stepping,
            } => {
                let (backend, clock) = (&mut *self.backend, &mut self.clock);
                for _ in 0..steps {
                    let last = clock.time + clock.dt >= end;
                    let dt = if last { end - clock.time } else { clock.dt };
                    let next = match stepping {
                        Stepping::Shared => {
                            integrator.step(backend, dt)?;
                            self.interactions += of_a_step;
                            integrator.next_step(backend, eta, dt)?.min(longest)
                        }
                        Stepping::Blocks => {
                            let blocks = backend.block_steps().ok_or(ForceError::NoBlockSteps)?;
                            self.interactions += n * blocks.advance(dt, eta)? as f64;
                            longest
                        }
                    };
                    clock.steps += 1;
                    if last {
                        clock.time = end;
                        break;
                    }
                    clock.time += dt;
                    clock.dt = next;
                }
            }
        }
        Ok(())
    }

    /// Takes `steps` steps, or fewer to the end of its pace, unless `watch`, called several times a
    /// second, breaks off.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn run(
        &mut self,
        steps: u64,
        mut watch: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ForceError> {
        let (began, before) = (Instant::now(), self.interactions);
        let last = self.clock.steps.saturating_add(steps);
        let mut batch = 1;
        while self.clock.steps < last && !self.is_at_end() {
            let asked = Instant::now();
            batch = batch.min(last - self.clock.steps);
            self.advance(batch)?;
            self.backend.synchronize()?;
            if watch(self.progress(before, began)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if asked.elapsed() < REPORT_INTERVAL / 2 {
                batch *= 2;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn progress(&self, before: f64, began: Instant) -> Progress {
        let rate = (self.interactions - before) / began.elapsed().as_secs_f64();
        Progress {
            steps: self.clock.steps,
            time: self.time(),
            rate,
        }
    }

    /// The bodies as they are now.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn bodies(&mut self) -> Result<&Bodies, ForceError> {
        self.backend.download(&mut self.bodies)?;
        Ok(&self.bodies)
    }

    /// The energy as it is now.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn energy(&mut self) -> Result<Energy, ForceError> {
        self.backend.energy()
    }

    /// Energy, momentum and angular momentum as they are now.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn conserved(&mut self) -> Result<Conserved, ForceError> {
        let energy = self.energy()?;
        let (time, physics) = (self.time(), self.physics);
        Ok(Conserved::measure(time, self.bodies()?, &physics, energy))
    }

    /// A look at the run, which began with `origin`.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn sample(&mut self, origin: &Conserved) -> Result<Sample, ForceError> {
        let conserved = self.conserved()?; // downloads the bodies
        let (bodies, physics) = (&self.bodies, &self.physics);
        let steps = self.clock.steps;
        Ok(Sample::measure(steps, conserved, origin, bodies, physics))
    }
}
