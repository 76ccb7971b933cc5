//! Backends that take block time steps.

use gpu_kernels::schedule::block_steps::DigitsName;

use super::Machine;
use crate::backend::{Backend, ForceError, GUARD};
use crate::force::device::Device;
use crate::force::resident::Resident;
use crate::integrator::Integrator;
use crate::plan::block_steps::BlockScheme;

impl Machine {
    /// Prepares bodies on a device for block time steps of an integrator's order, with pairs in these
    /// digits; those of the CPU always are prepared.
    pub fn block_steps(self, integrator: Integrator, digits: Option<DigitsName>) -> Self {
        Self {
            block_steps: digits.map(|digits| (integrator.order(), digits)),
            ..self
        }
    }

    /// With block time steps, if they are asked for.
    pub(super) fn stepped<D: Device + 'static>(
        &self,
        resident: Resident<D>,
        slices: u32,
    ) -> Result<Box<dyn Backend>, ForceError> {
        Ok(Box::new(match self.block_steps {
            Some((order, digits)) => {
                let scheme = BlockScheme {
                    order,
                    digits,
                    slices,
                };
                resident.with_block_steps(scheme, GUARD)?
            }
            None => resident,
        }))
    }
}
