//! Bodies on a device that others write there.

use std::ops::RangeInclusive;
use std::sync::Arc;

use gpu_kernels::layout::LayoutName;

use super::Resident;
use crate::backend::ForceError;
use crate::force::in_place::{Buffers, Extent, InPlace, Shared};
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::Recipe;
use crate::variants::{Masses, Variant};

/// Units that are as good, of those of a frame: bodies may move and change before others are needed. They
/// are powers of two, so that results are the same bits in any of them.
const AS_GOOD: RangeInclusive<f64> = 1.0 / 64.0..=4.0;

/// Bodies on a device, and what they were prepared for.
pub(crate) struct Written<D: Shared> {
    resident: Resident<D>,
    variant: Variant,
    masses: Masses,
}

impl<D: Shared> Written<D> {
    /// Room for `n` bodies, for a variant that has them in rows of four.
    pub(crate) fn new(
        device: Arc<D>,
        variant: &Variant,
        n: usize,
        extent: Extent,
        physics: Physics,
    ) -> Result<Self, ForceError> {
        let (masses, frame, limits) = (extent.masses(), extent.frame(&physics), device.limits());
        let recipe = Recipe::for_masses(variant, n, masses, physics, frame, &limits)?;
        assert_eq!(recipe.layout().name, LayoutName::Float4, "rows of four");
        assert!(recipe.force.order.is_none(), "bodies keep their places");
        Ok(Self {
            resident: Resident::new(device, recipe, &extent.bodies(n))?,
            variant: *variant,
            masses,
        })
    }
}

impl<D: Shared> InPlace for Written<D> {
    fn buffers(&self) -> Buffers {
        let Resident {
            device,
            state,
            acceleration,
            ..
        } = &self.resident;
        Buffers {
            bodies: device.address(state),
            accelerations: device.address(acceleration),
            precision: self.resident.layout.stored,
        }
    }

    fn frame(&self) -> Frame {
        self.resident.frame
    }

    fn masses(&self) -> Masses {
        self.masses
    }

    fn prepare(&mut self, extent: Extent, physics: Physics) -> Result<bool, ForceError> {
        let (resident, masses) = (&mut self.resident, extent.masses());
        let (ours, best) = (resident.frame, extent.frame(&physics));
        let units = [
            best.length / ours.length,
            best.mass / ours.mass,
            best.time / ours.time,
        ];
        if !units.iter().all(|ratio| AS_GOOD.contains(ratio)) {
            return Ok(false);
        }
        if (masses, physics) == (self.masses, resident.physics) {
            return Ok(true);
        }
        let (n, limits) = (resident.params.n as usize, resident.device.limits());
        let recipe = Recipe::for_masses(&self.variant, n, masses, physics, ours, &limits)?;
        if recipe.kernels.force.symbol != resident.kernels.force.symbol {
            return Ok(false);
        }
        (resident.params, resident.force_g) = (recipe.params, recipe.force_g);
        (resident.physics, self.masses) = (physics, masses);
        Ok(true)
    }

    fn accelerate(&mut self) -> Result<(), ForceError> {
        self.resident.launch_force()
    }

    fn stream_handle(&self) -> u64 {
        self.resident.device.stream_handle()
    }

    unsafe fn hold_up(&self, stream: u64) -> Result<(), ForceError> {
        // SAFETY: the caller's promise.
        unsafe { self.resident.device.hold_up(stream) }
    }
}
