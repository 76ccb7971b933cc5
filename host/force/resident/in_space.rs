//! Bodies that a device keeps in memory as they lie in space.

use gpu_kernels::abi::Separation;

use super::Resident;
use crate::force::device::Device;
use crate::force::order::{self, Slots};
use crate::force::{ForceError, Law, pack};
use crate::plan;

/// Evaluations for which an order is kept: bodies that have moved on cost speed, and so does
/// sorting them.
pub(super) const STEPS_IN_ORDER: u64 = 64;

/// What a device keeps for it.
pub(super) struct InSpace<D: Device> {
    plan: plan::InSpace,
    /// The place that each body comes from.
    order: D::Buffer,
    /// Where state and accelerations go in their new order; the old ones' room thereafter.
    room: [D::Buffer; 2],
    /// Steps since the bodies were put in order.
    pub(super) age: u64,
}

impl<D: Device> InSpace<D> {
    /// With room for as many bytes of state and of accelerations.
    pub(super) fn new(
        device: &D,
        plan: plan::InSpace,
        n: u32,
        [state, acceleration]: [usize; 2],
    ) -> Result<Self, ForceError> {
        Ok(Self {
            plan,
            order: device.allocate(n as usize * size_of::<u32>())?,
            room: [device.allocate(state)?, device.allocate(acceleration)?],
            age: 0,
        })
    }
}

/// An order of bodies in space, and which pairs of them are far.
pub(super) fn in_space(
    leaf: u32,
    positions: &[[f64; 3]],
    masses: &[f64],
    law: Law,
    softening: f64,
) -> (Slots, Separation) {
    rayon::join(
        || Slots::in_space(positions, leaf),
        || order::separation(positions, masses, law, softening),
    )
}

impl<D: Device> Resident<D> {
    /// Puts the bodies into slots by their places of now, if it matters where they are.
    pub(super) fn sort(&mut self) -> Result<(), ForceError> {
        let Some(kept) = &mut self.in_space else {
            return Ok(());
        };
        let (layout, stride) = (&self.layout, self.params.stride);
        let mut state = pack::empty_state(layout, stride);
        self.device.download(&self.state, state.bytes_mut())?;
        let (positions, masses) = pack::local_sources(layout, stride, &state, self.params.n);
        let softening = self.params.softening_squared.sqrt();
        let leaf = kept.plan.leaf;
        let (order, separation) = in_space(leaf, &positions, &masses, self.physics.law, softening);
        self.device.upload(&kept.order, order.numbers())?;
        let [state, acceleration] = &kept.room;
        let buffers = [
            &self.state,
            &self.acceleration,
            &kept.order,
            state,
            acceleration,
        ];
        // SAFETY: buffers of the layout and stride, and the numbers of all bodies.
        unsafe {
            self.device
                .launch(kept.plan.reorder, kept.plan.launch, &buffers, self.params)?
        };
        let [state, acceleration] = &mut kept.room;
        std::mem::swap(&mut self.state, state);
        std::mem::swap(&mut self.acceleration, acceleration);
        kept.age = 0;
        self.slots = order.of(&self.slots);
        self.params.separation = separation;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::bodies::Bodies;
    use crate::force::emulated::Emulator;
    use crate::force::{Backend, Physics};
    use crate::initial_conditions::plummer;
    use crate::variants;

    /// Bodies fly apart, and are sorted: memory changes, the bodies do not.
    #[test]
    fn bodies_stay_themselves_in_another_order() {
        let given = plummer(300, 5).expect("in range");
        let variant = variants::find("tensor").expect("listed");
        let physics = Physics {
            law: Law::Gravity,
            g: 1.0,
            softening: 0.01,
        };
        let device = Rc::new(Emulator::new(1));
        let mut resident = Resident::new(device, variant, 128, &given, physics).expect("fits");
        resident.drift(3.0).expect("emulated");
        resident.accelerate().expect("emulated");
        let look = |resident: &mut Resident<Emulator>| -> (Bodies, Vec<[f64; 3]>, Vec<usize>) {
            let mut bodies = given.clone();
            resident.download(&mut bodies).expect("emulated");
            let accelerations = resident.accelerations().expect("emulated");
            (bodies, accelerations, resident.slots.bodies().collect())
        };
        let before = look(&mut resident);
        resident.sort().expect("emulated");
        let after = look(&mut resident);
        assert!(before.0 == after.0 && before.1 == after.1);
        assert_ne!(before.2, after.2);
        // Masses went with them: the forces are the same but for rounding.
        resident.accelerate().expect("emulated");
        let again = look(&mut resident).1;
        for (i, (a, b)) in after.1.iter().zip(&again).enumerate() {
            let [off, size] = [[0, 1, 2].map(|axis| a[axis] - b[axis]), *a]
                .map(|v| v.iter().map(|x| x * x).sum::<f64>().sqrt());
            assert!(off <= 1e-4 * size, "body {i}: {a:?}, {b:?}");
        }
    }
}
