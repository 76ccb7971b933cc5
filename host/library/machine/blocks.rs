//! Backends that take block time steps.

use std::sync::Arc;

use gpu_kernels::schedule::block_steps::DigitsName;

use super::Machine;
use crate::backend::{Backend, ForceError, GUARD, Neighbours};
use crate::bodies::Bodies;
use crate::fields::External;
use crate::force::device::{Device, Peers};
use crate::force::resident::{HostSteps, Resident, Several};
use crate::integrator::{Integrator, TimeSteps};
use crate::plan::block_steps::{BlockScheme, Part, plan};
use crate::plan::neighbours::RegularForces;
use crate::plan::{Limits, Recipe, neighbours, total};
use crate::variants::preferred::{self, ForceAccuracy};

impl Machine {
    /// Prepares bodies on a device for steps of an integrator, if these are block time steps: with pairs
    /// in the digits that suit `eta` and the accuracy of forces. Those of the CPU always are prepared.
    pub fn block_steps(
        self,
        integrator: Integrator,
        steps: TimeSteps,
        eta: Option<f64>,
        accuracy: Option<ForceAccuracy>,
    ) -> Self {
        let order = integrator.order();
        let of_blocks = eta.filter(|_| steps == TimeSteps::Blocks);
        Self {
            block_steps: of_blocks
                .map(|eta| (order, preferred::block_digits(order, eta, accuracy))),
            needs: self.needs.steps(integrator, steps, eta, accuracy),
            ..self
        }
    }

    /// Has heavy bodies take shorter block time steps on devices, or not: where pairs will be followed apart, once they have
    /// formed.
    #[must_use]
    pub(crate) fn heavy_are_finer(self, heavy_are_finer: bool) -> Self {
        Self {
            heavy_are_finer,
            ..self
        }
    }

    /// Has block time steps be of a neighbour scheme, if one is asked for.
    #[must_use]
    pub fn neighbours(self, neighbours: Option<Neighbours>) -> Self {
        let needs = self.needs.neighbours(neighbours.is_some());
        Self {
            neighbours,
            needs,
            ..self
        }
    }

    /// The digits of pairs in block time steps on a device, if it is prepared for them.
    pub fn block_digits(&self) -> Option<DigitsName> {
        self.block_steps_in_fields().map(|(_, digits)| digits)
    }

    /// The order and the digits of block time steps on a device, if it is prepared for them: f64 for a term of
    /// relativity, which is far below what f32 rounds.
    pub(super) fn block_steps_in_fields(&self) -> Option<(u32, DigitsName)> {
        let (order, digits) = self.block_steps?;
        match self.fields.have_relativity() {
            true => Some((order, DigitsName::Double)),
            false => Some((order, digits)),
        }
    }

    /// How a device computes the forces of regular steps of its bodies; none if it has no neighbour scheme.
    pub fn regular_forces(&self, bodies: usize) -> Option<RegularForces> {
        let is_alone = self.place.devices() == 1 && self.team.is_none();
        let has = !self.place.is_cpu() && self.neighbours.is_some() && !self.groups;
        has.then(|| RegularForces::fastest(is_alone, bodies as u32)) // no device has more
    }

    /// Bodies of a recipe on a device, in external fields, and with block time steps if they are asked for.
    pub(super) fn stepped<D: Peers + 'static>(
        &self,
        mut devices: Vec<Arc<D>>,
        recipe: Recipe,
        (external, bodies): (External, &Bodies),
    ) -> Result<Box<dyn Backend>, ForceError> {
        let scheme = self.scheme(bodies.len());
        if let (Some(scheme), true) = (scheme, self.groups) {
            return self.in_groups(devices, &recipe, scheme, (external, bodies));
        }
        if devices.len() > 1 {
            let several = Several::new(devices, &recipe, bodies)?.in_fields(&external, bodies)?;
            return Ok(match scheme {
                Some(scheme) => Box::new(several.stepped(scheme, GUARD, bodies)?),
                None => Box::new(several),
            });
        }
        let device = devices.remove(0);
        let resident = Resident::new(device, recipe, bodies)?.in_fields(external, bodies)?;
        let Some(scheme) = scheme else {
            return Ok(Box::new(resident));
        };
        let resident = resident.with_block_steps(scheme, GUARD)?;
        Ok(Box::new(match scheme.neighbours {
            Some(wanted) => resident.with_neighbours(wanted, bodies)?,
            None => resident,
        }))
    }

    /// Bodies of a recipe in host memory, where they take block time steps with groups by forces of devices.
    fn in_groups<D: Device + 'static>(
        &self,
        devices: Vec<Arc<D>>,
        recipe: &Recipe,
        scheme: BlockScheme,
        (external, bodies): (External, &Bodies),
    ) -> Result<Box<dyn Backend>, ForceError> {
        let devices = devices.into_iter();
        let devices = devices.map(|device| Resident::new(device, recipe.clone(), bodies));
        let devices = devices.collect::<Result<_, _>>()?;
        let steps = HostSteps::new(devices, scheme, bodies)?.in_fields(external);
        Ok(Box::new(steps.in_groups(self.neighbours)))
    }

    /// The block time steps of a number of bodies, if they are asked for.
    pub(super) fn scheme(&self, bodies: usize) -> Option<BlockScheme> {
        let (order, digits) = self.block_steps_in_fields()?;
        let wanted = |neighbours: Neighbours| neighbours.number(bodies) as u32; // at most as many as bodies
        Some(BlockScheme {
            order,
            digits,
            slices: self.place.multiprocessors(),
            neighbours: self.neighbours.map(wanted),
            heavy_are_finer: self.heavy_are_finer,
        })
    }

    /// Memory that block time steps take on each of several devices beside what the recipe says, bytes; none
    /// without them.
    pub(super) fn shared_block_bytes(
        &self,
        recipe: &Recipe,
        devices: usize,
        limits: &Limits,
    ) -> Result<u64, ForceError> {
        let n = recipe.params.n;
        let Some(scheme) = self.scheme(n as usize) else {
            return Ok(0);
        };
        let (frame, softening) = (&recipe.frame, recipe.physics.softening);
        let unsoftened = frame.is_unsoftened(softening, scheme.digits.precision());
        if self.groups {
            let plan = plan(scheme, Part::Forces, false, unsoftened, n, limits)?;
            return Ok(total(&plan.buffers(n)));
        }
        let of_all = u8::try_from(devices).map_err(|_| ForceError::TooManyDevices(devices))?;
        let part = |device| Part::OfSeveral {
            device,
            devices: of_all,
        };
        // Where slices do not divide, the last device has one more.
        let most = part(of_all - 1);
        let external = !self.fields.is_empty();
        if let Some(wanted) = scheme.neighbours {
            let alone = plan(scheme, Part::Alone, external, unsoftened, n, limits)?;
            let slices = alone.slices;
            let wanted = (wanted, RegularForces::fastest(false, n));
            let of_neighbours = neighbours::plan(wanted, most, external, n, slices, limits)?;
            return Ok(total(&alone.buffers(n)) + total(&of_neighbours.buffers(n)));
        }
        let plan = plan(scheme, part(0), external, unsoftened, n, limits)?;
        let of_ranks = match self.team {
            Some(_) => devices * plan.row, // what they receive
            None => 0,
        };
        Ok(total(&plan.buffers(n)) + of_ranks as u64)
    }
}
