//! Hermite's scheme on a device: jerks, what steps began from, and the launches between forces.

use gpu_kernels::entries::{Entry, LayoutDescription};
use gpu_kernels::schedule::hermite::KEPT_VECTORS;

use super::Resident;
use crate::backend::{Backend, ForceError, HighestDerivative, Operation};
use crate::force::device::Device;
use crate::force::hermite::agreed_step;
use crate::force::pack;
use crate::variants::HermiteKernels;

/// Memory of a device for Hermite's scheme.
pub(super) struct Jerks<D: Device> {
    kernels: HermiteKernels,
    jerk: D::Buffer,
    /// Positions, velocities, accelerations and jerks of the step that is under way, or the last.
    beginning: D::Buffer,
    /// Longest next step of each body: f64.
    steps: D::Buffer,
}

impl<D: Device> Jerks<D> {
    pub(super) fn new(
        device: &D,
        kernels: HermiteKernels,
        layout: &LayoutDescription,
        n: u32,
        stride: u32,
    ) -> Result<Self, ForceError> {
        for entry in [kernels.predict, kernels.correct, kernels.own_steps] {
            device.prepare(entry)?;
        }
        let vectors = pack::empty_vectors(layout, stride).bytes().len();
        Ok(Self {
            kernels,
            jerk: device.allocate(vectors)?,
            beginning: device.allocate(KEPT_VECTORS as usize * vectors)?,
            steps: device.allocate(n as usize * size_of::<f64>())?,
        })
    }

    /// The jerks computed last.
    pub(super) fn jerk(&self) -> &D::Buffer {
        &self.jerk
    }
}

impl<D: Device> Resident<D> {
    pub(super) fn jerks(&self) -> Result<&Jerks<D>, ForceError> {
        self.jerks.as_ref().ok_or(ForceError::NoJerks)
    }

    /// Steps that accuracy `eta` allows each body after a step of `dt`, in the unit of the run.
    pub(super) fn allowed_steps(&self, eta: f64, dt: f64) -> Result<Vec<f64>, ForceError> {
        let jerks = self.jerks()?;
        let buffers = [
            &self.acceleration,
            &jerks.jerk,
            &jerks.beginning,
            &jerks.steps,
        ];
        let (kernel, launch) = (jerks.kernels.own_steps, self.elementwise_launch);
        // SAFETY: vectors of the kernel's layout and stride, four times as many, and n f64.
        unsafe {
            self.device
                .launch(kernel, launch, &buffers, self.stepping(dt))?
        };
        let mut steps = vec![f64::NAN; self.params.n as usize];
        self.device.download(&jerks.steps, &mut steps)?;
        let unit = eta.sqrt() * self.frame.time;
        steps.iter_mut().for_each(|step| *step *= unit);
        Ok(steps)
    }

    /// Launches a kernel that takes the state, its accelerations and jerks, and the beginning.
    fn launch_part(
        &self,
        part: impl Fn(&HermiteKernels) -> &'static Entry,
        dt: f64,
    ) -> Result<(), ForceError> {
        let jerks = self.jerks()?;
        let buffers = [
            &self.state,
            &self.acceleration,
            &jerks.jerk,
            &jerks.beginning,
        ];
        let (kernel, launch) = (part(&jerks.kernels), self.elementwise_launch);
        // SAFETY: buffers of the kernel's layout and stride, the last with four times the vectors.
        unsafe {
            self.device
                .launch(kernel, launch, &buffers, self.stepping(dt))
        }
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
        self.launch_part(|kernels| kernels.predict, dt)?;
        self.pass(dt);
        Ok(())
    }

    pub(super) fn launch_correct(&self, dt: f64) -> Result<(), ForceError> {
        self.launch_part(|kernels| kernels.correct, dt)
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
