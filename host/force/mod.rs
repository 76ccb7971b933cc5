//! Who computes the forces, behind one interface: [`Backend`].
//!
//! A backend holds the bodies where it works on them — in GPU memory, in the CPU's caches — and
//! hands them out when somebody asks. Integrators see this trait and nothing behind it.

pub mod cpu;
pub mod cuda;
pub mod device;
pub mod emulated;
mod pack;
pub mod reference;
pub mod resident;

use std::time::Instant;

use cuda_driver::{DriverError, NoGpu};
use cuda_std::emu::Fault;
pub use gpu_kernels::interaction::Law;

use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::plan::PlanError;

/// Which force, and its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Physics {
    /// What a source weighs: its mass, or 1.
    pub law: Law,
    /// Gravitational constant, in the units of the bodies. Not used by [`Law::Unit`].
    pub g: f64,
    /// Softening length ε ≥ 0, in the unit of the positions.
    pub softening: f64,
}

/// A step, as [`Backend::repeat`] takes it.
pub type StepOf<'a> = dyn FnMut(&mut dyn Backend) -> Result<(), ForceError> + 'a;

/// Bodies, and the means to accelerate and advance them.
///
/// Work may be queued: a method that returns a value has waited for what it needs,
/// [`synchronize`](Self::synchronize) waits for everything. An error of queued work surfaces in
/// whichever call notices it.
pub trait Backend {
    /// Computes the accelerations of the current positions.
    ///
    /// # Errors
    /// The device's refusal, or a fault the emulator found.
    fn accelerate(&mut self) -> Result<(), ForceError>;

    /// `v += dt · a`, with the accelerations computed last.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn kick(&mut self, dt: f64) -> Result<(), ForceError>;

    /// `x += dt · v`.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn drift(&mut self, dt: f64) -> Result<(), ForceError>;

    /// Takes `times` steps, all made of the same kicks, drifts and accelerations: what `step` does
    /// to the backend it is given. It may be called less often, if the device can repeat it.
    ///
    /// # Errors
    /// Those of `step`.
    fn repeat(&mut self, times: u64, step: &mut StepOf<'_>) -> Result<(), ForceError>;

    /// Copies positions and velocities into `bodies`, which are the bodies it was made from.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError>;

    /// The accelerations computed last, in the units of the bodies.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError>;

    /// Kinetic and potential energy of the current state, computed in f64.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn energy(&mut self) -> Result<Energy, ForceError>;

    /// Waits until all work is done.
    ///
    /// # Errors
    /// That of queued work.
    fn synchronize(&mut self) -> Result<(), ForceError>;

    /// Seconds that one [`accelerate`](Self::accelerate) takes, without what was queued before;
    /// on a GPU by its own clock.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn time_acceleration(&mut self) -> Result<f64, ForceError> {
        self.synchronize()?;
        let start = Instant::now();
        self.accelerate()?;
        self.synchronize()?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// Why a force could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum ForceError {
    /// The GPU or its driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// There is no GPU to use.
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    /// The emulator found a kernel at fault.
    #[error("the kernel is at fault: {0}")]
    Kernel(#[from] Box<Fault>),
    /// The launch does not fit the device.
    #[error(transparent)]
    Plan(#[from] PlanError),
}
