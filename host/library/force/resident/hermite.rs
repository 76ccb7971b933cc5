//! Hermite's scheme on a device: the launches between forces.

use gpu_kernels::entries::{Buffer, Entry};

use super::Resident;
use crate::backend::{Backend, ForceError, HighestDerivative, Operation};
use crate::force::device::Device;
use crate::force::hermite::agreed_step;
use crate::variants::HermiteKernels;

impl<D: Device> Resident<D> {
    /// Kernels of Hermite's scheme.
    pub(super) fn jerks(&self) -> Result<&HermiteKernels, ForceError> {
        self.kernels.hermite.as_ref().ok_or(ForceError::NoJerks)
    }

    /// Steps that accuracy `eta` allows each body after a step of `dt`, in the unit of the run.
    pub(super) fn allowed_steps(&self, eta: f64, dt: f64) -> Result<Vec<f64>, ForceError> {
        self.launch_part(self.jerks()?.own_steps, dt)?;
        let mut steps = vec![f64::NAN; self.params.n as usize];
        self.device
            .download(self.of(Buffer::own_steps), &mut steps)?;
        let unit = eta.sqrt() * self.frame.time;
        steps.iter_mut().for_each(|step| *step *= unit);
        Ok(steps)
    }

    /// Launches a part of a step.
    fn launch_part(&self, part: &'static Entry, dt: f64) -> Result<(), ForceError> {
        self.launch((part, self.elementwise_launch), self.stepping(dt))
    }

    /// Returns whether a force with derivatives up to this one takes launches.
    pub(super) fn needs_launch(&self, highest: HighestDerivative) -> Result<bool, ForceError> {
        match (highest, &self.blocks) {
            (HighestDerivative::None, _) => Ok(true),
            (HighestDerivative::Jerk, _) => self.jerks().map(|_| true),
            // Block time steps begin by computing snaps themselves.
            (HighestDerivative::Snap, Some(_)) => self.jerks().map(|_| false),
            (HighestDerivative::Snap, None) => self.jerks().and(Err(ForceError::NoSnaps)),
        }
    }

    pub(super) fn launch_predict(&mut self, dt: f64) -> Result<(), ForceError> {
        self.launch_part(self.jerks()?.predict, dt)?;
        self.pass(dt);
        Ok(())
    }

    pub(super) fn launch_correct(&self, dt: f64) -> Result<(), ForceError> {
        self.launch_part(self.jerks()?.correct, dt)
    }
}

/// See [`Backend::first_step`], of a backend where every device has the bodies of this one.
pub(super) fn first_step<D: Device, B: Backend>(
    backend: &mut B,
    device: impl Fn(&B) -> &Resident<D>,
    eta: f64,
    longest: f64,
) -> Result<f64, ForceError> {
    let (start, time) = (backend.save()?, device(backend).field_time());
    agreed_step(longest, |dt| {
        backend.perform(Operation::Predict(dt))?;
        backend.perform(Operation::Evaluate(HighestDerivative::Jerk))?;
        let allowed = device(backend).allowed_steps(eta, dt)?;
        backend.restore(&start)?;
        backend.set_time(time);
        Ok(allowed)
    })
}
