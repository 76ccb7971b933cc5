//! The loop: step after step on one backend, with a look now and then.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::bodies::Bodies;
use crate::diagnostics::Conserved;
use crate::force::{Backend, ForceError, Physics};
use crate::integrator::Integrator;

/// How long work may be queued before the loop waits for it and reports: often enough for a person
/// who watches, seldom enough for a GPU that should never wait.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Bodies on their way through time.
pub struct Simulation {
    backend: Box<dyn Backend>,
    bodies: Bodies,
    physics: Physics,
    integrator: Integrator,
    dt: f64,
    start: f64,
    steps: u64,
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
    /// A simulation of `bodies` from `start` in steps of `dt`, on a backend that holds them.
    ///
    /// # Errors
    /// Those of the backend, which computes the first accelerations.
    pub fn new(
        mut backend: Box<dyn Backend>,
        bodies: Bodies,
        physics: Physics,
        integrator: Integrator,
        dt: f64,
        start: f64,
    ) -> Result<Self, ForceError> {
        backend.accelerate()?;
        Ok(Self {
            backend,
            bodies,
            physics,
            integrator,
            dt,
            start,
            steps: 0,
        })
    }

    /// Time reached.
    pub fn time(&self) -> f64 {
        self.start + self.steps as f64 * self.dt
    }

    /// Takes `steps` steps, unless `watch`, called several times a second, breaks off.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn run(
        &mut self,
        steps: u64,
        mut watch: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ForceError> {
        let (began, first, last) = (Instant::now(), self.steps, self.steps + steps);
        let mut batch = 1;
        while self.steps < last {
            let asked = Instant::now();
            batch = batch.min(last - self.steps);
            let (integrator, dt) = (self.integrator, self.dt);
            self.backend
                .repeat(batch, &mut |backend| integrator.step(backend, dt))?;
            self.steps += batch;
            self.backend.synchronize()?;
            if watch(self.progress(first, began)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if asked.elapsed() < REPORT_INTERVAL / 2 {
                batch *= 2;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn progress(&self, first: u64, began: Instant) -> Progress {
        let n = self.bodies.len() as f64;
        let interactions = n * n * (self.steps - first) as f64;
        let rate = interactions / began.elapsed().as_secs_f64();
        Progress {
            steps: self.steps,
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

    /// Energy, momentum and angular momentum as they are now.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn conserved(&mut self) -> Result<Conserved, ForceError> {
        let energy = self.backend.energy()?;
        let (time, physics) = (self.time(), self.physics);
        Ok(Conserved::measure(time, self.bodies()?, &physics, energy))
    }
}
