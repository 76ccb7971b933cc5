//! Integrators of one's own.

use crate::backend::{Backend, ForceError};

/// An integrator of one's own. Functions that take a step are integrators:
/// [`SimulationBuilder::scheme`](super::SimulationBuilder::scheme).
pub trait IntegrationScheme: Send {
    /// Takes a step of `dt`; it is called once for each step, on every backend.
    ///
    /// # Errors
    /// Errors of the backend.
    fn step(&mut self, backend: &mut dyn Backend, dt: f64) -> Result<(), ForceError>;

    /// Computes what must be known before the first step; the accelerations, unless told otherwise.
    ///
    /// # Errors
    /// Errors of the backend.
    fn prepare(&mut self, backend: &mut dyn Backend) -> Result<(), ForceError> {
        backend.accelerate()
    }

    /// Force evaluations per step, for the count of interactions.
    fn evaluations(&self) -> u32 {
        1
    }
}

impl<F> IntegrationScheme for F
where
    F: FnMut(&mut dyn Backend, f64) -> Result<(), ForceError> + Send,
{
    fn step(&mut self, backend: &mut dyn Backend, dt: f64) -> Result<(), ForceError> {
        self(backend, dt)
    }
}
