//! Backends that take block time steps.

use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::block_steps::DigitsName;

use super::Machine;
use crate::backend::{Backend, ForceError, GUARD, Neighbours, NeighboursFault};
use crate::force::device::Device;
use crate::force::resident::Resident;
use crate::integrator::{Integrator, Stepping};
use crate::plan::block_steps::BlockScheme;
use crate::variants::preferred::{self, ForceAccuracy};
use crate::variants::{Method, Variant};

impl Machine {
    /// Prepares bodies on a device for steps of an integrator, if these are block time steps: with pairs
    /// in the digits that suit `eta` and the accuracy of forces. Those of the CPU always are prepared.
    pub fn block_steps(
        self,
        integrator: Integrator,
        steps: Stepping,
        eta: Option<f64>,
        accuracy: Option<ForceAccuracy>,
    ) -> Self {
        let order = integrator.order();
        let of_blocks = eta.filter(|_| steps == Stepping::Blocks);
        Self {
            block_steps: of_blocks
                .map(|eta| (order, preferred::block_digits(order, eta, accuracy))),
            ..self
        }
    }

    /// Has block time steps be of a neighbour scheme, if one is asked for.
    #[must_use]
    pub fn neighbours(self, neighbours: Option<Neighbours>) -> Self {
        Self { neighbours, ..self }
    }

    /// Checks that a variant has a neighbour scheme here.
    pub(super) fn check_neighbours(&self, variant: &Variant) -> Result<(), NeighboursFault> {
        let Method::Cpu(path) = variant.method else {
            return Err(NeighboursFault::Device);
        };
        if self.team.is_some() {
            return Err(NeighboursFault::Ranks);
        }
        match (path.precision, variant.systems) {
            (Precision::F64, 1) => Ok(()),
            (Precision::F64, systems) => Err(NeighboursFault::Systems(systems)),
            _ => Err(NeighboursFault::Device),
        }
    }

    /// The digits of pairs in block time steps on a device, if it is prepared for them.
    pub fn block_digits(&self) -> Option<DigitsName> {
        self.block_steps.map(|(_, digits)| digits)
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
