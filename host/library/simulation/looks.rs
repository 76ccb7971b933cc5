//! Looks at a simulation between steps: bodies, energies, samples.

use super::Simulation;
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::diagnostics::{Conserved, Energy, Sample};
use crate::io::Snapshot;

impl Simulation {
    /// Number of bodies.
    pub fn number_of_bodies(&self) -> usize {
        self.bodies.len()
    }

    /// The bodies as they were when they were last looked at: their masses, ids and kinds do not change.
    pub(crate) fn bodies_last_seen(&self) -> &Bodies {
        &self.bodies
    }

    /// The bodies as they are now.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn bodies(&mut self) -> Result<&Bodies, ForceError> {
        self.backend.download(&mut self.bodies)?;
        Ok(&self.bodies)
    }

    /// A snapshot of the bodies as they are now.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn snapshot(&mut self) -> Result<Snapshot, ForceError> {
        let (time, bodies) = (self.time(), self.bodies()?.clone());
        Ok(Snapshot { bodies, time })
    }

    /// The bodies as they will be at `time`. The simulation stays where it is, and its steps are those that it takes
    /// without this: the steps up to `time` are taken, and taken back.
    ///
    /// The snapshot has an earlier time if an encounter would stop the simulation before, and the present time if that
    /// is beyond `time`.
    ///
    /// # Errors
    /// Errors of the backend.
    ///
    /// # Panics
    /// If the time is not finite.
    pub fn at(&mut self, time: f64) -> Result<Snapshot, ForceError> {
        let stopped_by = self.found.stopped_by;
        let good = self.good_state()?;
        let found = self.run_until(time).and_then(|()| self.snapshot());
        self.go_back_to(&good)?;
        self.found.stopped_by = stopped_by;
        found
    }

    /// The energy as it is now.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn energy(&mut self) -> Result<Energy, ForceError> {
        let [lost, brought] = [self.lost.energy, self.brought.energy];
        Ok(Energy {
            lost,
            brought,
            ..self.backend.energy()?
        })
    }

    /// Energy, momentum and angular momentum as they are now.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn conserved(&mut self) -> Result<Conserved, ForceError> {
        let energy = self.energy()?;
        let (time, physics) = (self.time(), self.physics);
        let (lost, brought) = (self.lost, self.brought);
        let now = Conserved::measure(time, self.bodies()?, &physics, energy);
        Ok(now.including(&lost, &brought))
    }

    /// A look at the run, which began with `origin`.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn sample(&mut self, origin: &Conserved) -> Result<Sample, ForceError> {
        let conserved = self.conserved()?; // downloads the bodies
        let (bodies, physics) = (&self.bodies, &self.physics);
        let sample = Sample::measure(self.clock.steps, conserved, origin, bodies, physics);
        Ok(sample.with_own_steps(&self.own_steps()?))
    }
}
