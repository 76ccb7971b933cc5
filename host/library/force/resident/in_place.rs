//! Bodies on a device that others write there.

use std::ops::RangeInclusive;
use std::sync::Arc;

use gpu_kernels::entries::Buffer;
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
        let address = |name| self.resident.device.address(self.resident.of(name));
        Buffers {
            bodies: address(Buffer::state),
            accelerations: address(Buffer::acceleration),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::Bodies;
    use crate::force::emulated::Emulator;
    use crate::force::reference;
    use crate::initial_conditions::plummer;
    use crate::physics::ForceLaw;
    use crate::variants;

    const G: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 2.0,
        softening: 0.05,
    };

    fn extent(bodies: &Bodies) -> Extent {
        let coordinates = bodies.x.iter().chain(&bodies.y).chain(&bodies.z);
        let largest = |a: f64, b: &f64| a.max(b.abs());
        Extent {
            reach: coordinates.fold(0.0, largest),
            least: bodies.mass.iter().copied().fold(f64::INFINITY, f64::min),
            heaviest: bodies.mass.iter().fold(0.0, largest),
        }
    }

    /// Writes the bodies as another library would, and reads their accelerations.
    fn through_memory(written: &mut Written<Emulator>, bodies: &Bodies) -> Vec<[f64; 3]> {
        let (
            Buffers {
                bodies: to,
                accelerations,
                ..
            },
            frame,
        ) = (written.buffers(), written.frame());
        let n = bodies.len();
        // SAFETY: rows of four f32 for as many bodies lie there, and nothing is computed meanwhile.
        let rows = |at: u64| unsafe {
            std::slice::from_raw_parts_mut(
                std::ptr::with_exposed_provenance_mut::<[f32; 4]>(at as usize),
                n,
            )
        };
        for (row, body) in rows(to).iter_mut().zip(bodies.iter()) {
            let [x, y, z] = frame.position_to_local(body.position);
            *row = [x, y, z, frame.mass_to_local(body.mass)].map(|value| value as f32);
        }
        written.accelerate().expect("emulated");
        let found = rows(accelerations).iter();
        found
            .map(|&[x, y, z, _]| frame.acceleration_from_local([x, y, z].map(f64::from)))
            .collect()
    }

    fn error(found: &[[f64; 3]], bodies: &Bodies, physics: &Physics) -> f64 {
        let all = Vec::from_iter(0..bodies.len());
        let exact = reference::accelerations_of(bodies, physics, &all);
        let (mut off, mut size) = (0.0, 0.0);
        for (a, exact) in found.iter().zip(exact) {
            for (a, b) in a.iter().zip(exact.acceleration) {
                off += (a - b).powi(2);
                size += b.powi(2);
            }
        }
        (off / size).sqrt()
    }

    #[test]
    fn what_others_write_is_accelerated() {
        let mut bodies = plummer(70, 3).expect("in range");
        let variant = variants::find("symmetric-lane2-block32").expect("listed");
        let of = |bodies: &Bodies, physics| {
            let device = Arc::new(Emulator::new(1));
            Written::new(device, variant, bodies.len(), extent(bodies), physics).expect("fits")
        };
        let mut written = of(&bodies, G);
        assert_eq!(written.masses(), Masses::Equal(bodies.mass[0]));
        assert!(error(&through_memory(&mut written, &bodies), &bodies, &G) < 1e-6);

        // Another common mass, softening and G: the same kernel, told so.
        bodies.mass.iter_mut().for_each(|m| *m *= 1.5);
        let other = Physics {
            g: 1.0,
            softening: 0.1,
            ..G
        };
        assert!(written.prepare(extent(&bodies), other).expect("fits"));
        assert!(error(&through_memory(&mut written, &bodies), &bodies, &other) < 1e-6);

        // Masses that differ, ε = 0, and other units take other kernels or another frame.
        bodies.mass[3] *= 2.0;
        assert!(!written.prepare(extent(&bodies), other).expect("fits"));
        let mut written = of(&bodies, other);
        assert_eq!(written.masses(), Masses::Comparable);
        assert!(error(&through_memory(&mut written, &bodies), &bodies, &other) < 1e-6);
        let hard = Physics {
            softening: 0.0,
            ..other
        };
        assert!(!written.prepare(extent(&bodies), hard).expect("fits"));
        for x in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
            x.iter_mut().for_each(|x| *x *= 1e21);
        }
        let wide = Physics {
            softening: 1e20,
            ..other
        };
        assert!(!written.prepare(extent(&bodies), wide).expect("fits"));
        let mut written = of(&bodies, wide);
        assert!(error(&through_memory(&mut written, &bodies), &bodies, &wide) < 1e-6);
    }

    #[test]
    fn few_bodies_and_none_that_go_anywhere() {
        for n in 1..4 {
            let mut bodies = plummer(n, 3).expect("in range");
            for x in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
                x.fill(0.0);
            }
            let variant = variants::find("symmetric-lane2-block32").expect("listed");
            let device = Arc::new(Emulator::new(1));
            let mut written = Written::new(device, variant, n, extent(&bodies), G).expect("fits");
            let found = through_memory(&mut written, &bodies);
            assert_eq!(found, vec![[0.0; 3]; n]);
        }
    }
}
