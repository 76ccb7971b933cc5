//! Backends that take block time steps.

use gpu_kernels::schedule::block_steps::DigitsName;

use super::Machine;
use crate::backend::{Backend, ForceError};
use crate::force::device::Device;
use crate::force::resident::Resident;
use crate::plan::block_steps::{BlockScheme, GUARD};

impl Machine {
    /// Prepares bodies on a device for block time steps, with pairs in these digits; those of the CPU
    /// always are prepared.
    pub fn block_steps(self, digits: Option<DigitsName>) -> Self {
        Self {
            block_steps: digits,
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
            Some(digits) => {
                let scheme = BlockScheme {
                    order: 4,
                    digits,
                    slices,
                };
                resident.with_block_steps(scheme, GUARD)?
            }
            None => resident,
        }))
    }
}
