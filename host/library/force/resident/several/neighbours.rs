//! Block time steps with a neighbour scheme on several devices: each computes the forces on the bodies of its slices,
//! and ends the steps of all bodies by the sums of all devices, which it reads in their memory, or has received
//! from other ranks. One device that sweeps its slices has the same bits.

use std::iter;

use gpu_kernels::entries::Buffer;
use gpu_kernels::schedule::block_steps::neighbours::Phase;

use super::Several;
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::force::device::{Device, Peers};
use crate::force::resident::Resident;
use crate::force::resident::block_steps::neighbours::{
    FirstStep, NeighbourLaunches, parity_of_sums,
};
use crate::plan::block_steps::{BlockScheme, Part};
use crate::plan::neighbours::{RegularForces, sums_of_parity};

/// Addresses in a device's memory, for each slice, of the sums of the device that computes its bodies: of both parities,
/// irregular and regular.
pub(super) type Addresses<D> = [[<D as Device>::Buffer; 2]; 2];

impl<D: Peers> Several<D> {
    /// With block time steps of `scheme`, of its neighbours if it has any.
    ///
    /// # Errors
    /// As [`with_block_steps`](Self::with_block_steps) and [`with_neighbours`](Self::with_neighbours).
    pub fn stepped(
        self,
        scheme: BlockScheme,
        guard: f64,
        bodies: &Bodies,
    ) -> Result<Self, ForceError> {
        match scheme.neighbours {
            Some(wanted) => self.with_neighbours(scheme, guard, wanted, bodies),
            None => self.with_block_steps(scheme, guard),
        }
    }

    /// As [`Resident::with_block_steps`], then [`Resident::with_neighbours`], in which each device has a part of
    /// the bodies.
    ///
    /// # Errors
    /// As there; or if devices of this process do not reach the memory of each other, or are not of one kind; or
    /// if there are more than 255.
    pub fn with_neighbours(
        mut self,
        scheme: BlockScheme,
        guard: f64,
        wanted: u32,
        bodies: &Bodies,
    ) -> Result<Self, ForceError> {
        D::check_together(&self.devices, "a neighbour scheme is computed")?;
        let shares = self.shares()?;
        let parts = self.parts.into_iter().zip(shares).map(|(part, share)| {
            let part = part.with_block_steps(scheme, guard)?;
            let forces = RegularForces::fastest(share == Part::Alone, bodies.len() as u32);
            part.with_part_of_neighbours((wanted, forces), share, bodies)
        });
        self.parts = parts.collect::<Result<Vec<_>, _>>()?;
        match self.exchange.take() {
            Some(exchange) => self.exchange = Some(exchange.with_blocks(&self.parts[0])?),
            None => {
                let all = self.devices.iter().map(|device| self.addresses(device));
                self.addresses = all.collect::<Result<Vec<_>, _>>()?;
            }
        }
        Ok(self)
    }

    /// Puts the addresses of all sums into a device's memory.
    fn addresses(&self, device: &D) -> Result<Addresses<D>, ForceError> {
        let put = |name| {
            let mut addresses = vec![];
            for part in &self.parts {
                let share = part.neighbours()?.plan.share;
                let address = device.kept_address(part.of(name));
                let slices = share.end - share.first;
                addresses.extend(iter::repeat_n(address, slices as usize));
            }
            let memory = device.allocate(size_of_val(&*addresses))?;
            device.upload(&memory, &addresses)?;
            Ok::<_, ForceError>(memory)
        };
        let of_parity = |parity| -> Result<_, ForceError> {
            let [irregular, regular] = sums_of_parity(parity).map(put);
            Ok([irregular?, regular?])
        };
        Ok([of_parity(0)?, of_parity(1)?])
    }

    /// Chooses the spheres and the first steps of all bodies, whose whole forces and their derivatives are
    /// there on all devices.
    pub(super) fn begin_neighbours(&self) -> Result<(), ForceError> {
        let radii = self.parts[0].first_radii()?;
        self.parts
            .iter()
            .try_for_each(|part| part.set_radii(&radii))?;
        self.fit_spheres()?;
        self.parts
            .iter()
            .try_for_each(Resident::launch_neighbour_first)?;
        let own = self.parts.iter().map(Resident::own_first_steps);
        let own: Vec<FirstStep> = own.collect::<Result<Vec<_>, _>>()?.concat();
        let all = match &self.exchange {
            Some(exchange) => exchange.all_first_steps(&own),
            None => own,
        };
        let mut parts = self.parts.iter();
        parts.try_for_each(|part| part.set_first_steps(&all))
    }
}

impl<D: Peers> NeighbourLaunches for Several<D> {
    fn launch_neighbour_forces(
        &self,
        search: bool,
        phase: Phase,
        parity: u16,
    ) -> Result<bool, ForceError> {
        if let Some(exchange) = &self.exchange {
            exchange.ask_for_targets(&self.parts[0])?;
        }
        for part in &self.parts {
            // Others have read the sums that are overwritten: in the block step before the last, since which this
            // device has waited for them, or where lists are made, after which all meet; or they have been sent, which
            // is waited for.
            part.launch_neighbour_forces(search, phase, parity)?;
        }
        match &self.exchange {
            Some(exchange) => exchange.complete_sums(&self.parts[0], phase, parity),
            None => {
                self.meet()?;
                Ok(true)
            }
        }
    }

    fn launch_neighbour_corrects(&self, phase: Phase, parity: u16) -> Result<(), ForceError> {
        if self.exchange.is_some() {
            return self.parts[0].launch_neighbour_corrects(phase, parity);
        }
        let devices = self.parts.len() as u8;
        let of_sums = parity_of_sums(phase, parity);
        let mut read = vec![];
        if phase != Phase::Begin {
            for part in &self.parts {
                read.extend(sums_of_parity(of_sums).map(|name| part.of(name)));
            }
        }
        for (part, addresses) in self.parts.iter().zip(&self.addresses) {
            let kernel = part.neighbours()?.plan.correct;
            let [irregular, regular] = &addresses[usize::from(of_sums)];
            let given = [
                (Buffer::irregular_sums, irregular),
                (Buffer::regular_sums, regular),
            ];
            let params = part.neighbour_params(phase, parity, devices)?;
            part.memory
                .launch_reading(&part.device, kernel, &given, &read, params)?;
        }
        match phase {
            Phase::Step => Ok(()),
            // The next lists of all bodies overwrite sums of the same parity.
            _ => self.meet(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gpu_kernels::schedule::block_steps::DigitsName;

    use super::*;
    use crate::backend::{Backend, BlockCounts, BlockSteps, GUARD, SavedState};
    use crate::diagnostics::Energy;
    use crate::fields::{External, ExternalField, Fields};
    use crate::force::emulated::Emulator;
    use crate::frame::Frame;
    use crate::initial_conditions::plummer;
    use crate::integrator::Integrator;
    use crate::physics::{ForceLaw, Physics};
    use crate::plan::{Limits, Recipe};
    use crate::variants;

    const GRAVITY: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 1e-2,
    };

    const ETA: f64 = 0.04;

    /// A span of these tests.
    const SPAN: f64 = 1.0 / 64.0;

    fn scheme(slices: u32) -> BlockScheme {
        BlockScheme {
            order: 4,
            digits: DigitsName::Mixed,
            slices,
            neighbours: Some(8),
            heavy_are_finer: false,
        }
    }

    fn recipe(bodies: &Bodies) -> Recipe {
        let variant = variants::find("hermite-f64").expect("listed");
        let recipe = Recipe::new(
            variant,
            bodies,
            GRAVITY,
            Frame::IDENTITY,
            &Limits::EVERYWHERE,
        );
        recipe.expect("fits")
    }

    fn external(bodies: &Bodies) -> External {
        let mut fields = Fields::NONE;
        fields.push(ExternalField::plummer(2.0, 0.5));
        External::of_bodies(&fields, bodies, &GRAVITY).expect("computed anywhere")
    }

    fn several(bodies: &Bodies, slices: u32, devices: u64) -> Several<Emulator> {
        let emulators = (1..=devices).map(|seed| Arc::new(Emulator::new(seed)));
        let several = Several::new(emulators.collect(), &recipe(bodies), bodies);
        let several = several.expect("fits");
        let several = several.in_fields(&external(bodies), bodies).expect("fits");
        let mut several = several
            .stepped(scheme(slices), GUARD, bodies)
            .expect("fits");
        Integrator::Hermite4
            .prepare(&mut several)
            .expect("emulated");
        several
    }

    fn one(bodies: &Bodies, slices: u32) -> Resident<Emulator> {
        let emulator = Arc::new(Emulator::new(0));
        let one = Resident::new(emulator, recipe(bodies), bodies).expect("fits");
        let one = one.in_fields(external(bodies), bodies).expect("fits");
        let one = one.with_block_steps(scheme(slices), GUARD).expect("fits");
        let mut one = one.with_neighbours(8, bodies).expect("fits");
        Integrator::Hermite4.prepare(&mut one).expect("emulated");
        one
    }

    /// Where two spans end, the energy there, and the counts.
    fn ended(backend: &mut dyn Backend) -> (SavedState, Energy, BlockCounts) {
        let mut counts = BlockCounts::NONE;
        for _ in 0..2 {
            let blocks = backend.block_steps().expect("block steps");
            counts += blocks.advance(SPAN, ETA).expect("emulated");
        }
        let energy = backend.energy().expect("emulated");
        (backend.save().expect("there"), energy, counts)
    }

    /// With numbers of bodies and slices that do not divide, with devices that have no slice, and with bodies
    /// enough for rounds of a sweep, in which each warp has targets to itself.
    #[test]
    fn all_devices_have_the_bits_of_one() {
        for (n, slices, devices) in [
            (300, 4, 2),
            (101, 4, 3),
            (61, 3, 5),
            (2, 2, 2),
            (1, 1, 3),
            (300, 75, 2),
        ] {
            let bodies = match n {
                1 => Bodies::at_rest(&[[0.25; 3]], &[1.0]),
                _ => plummer(n, 7).expect("in range"),
            };
            let mut several = several(&bodies, slices, devices);
            let end = ended(&mut several);
            let what = format!("{n} bodies, {slices} slices, {devices} devices");
            assert!(end == ended(&mut one(&bodies, slices)), "{what}");
            assert!(
                n < 60 || end.2.regular > n as u64 / 2,
                "{what}: {:?}",
                end.2
            );
            for part in &mut several.parts {
                assert!(part.save().expect("there") == end.0, "{what}");
            }
        }
    }

    /// Whichever number of devices there was before.
    #[test]
    fn runs_go_on_from_what_was_saved() {
        let bodies = plummer(90, 6).expect("in range");
        let mut whole = one(&bodies, 4);
        whole.advance(SPAN, ETA).expect("emulated");
        let saved = whole.save().expect("there");
        whole.advance(SPAN, ETA).expect("emulated");
        let whole = whole.save().expect("there");
        let mut resumed = several(&bodies, 4, 3);
        resumed.restore(&saved).expect("the same bodies");
        resumed.advance(SPAN, ETA).expect("emulated");
        assert!(resumed.save().expect("there") == whole);
    }

    /// A system whose devices have handed out the first targets of a span.
    fn begun() -> Several<Emulator> {
        let bodies = plummer(40, 2).expect("in range");
        let several = several(&bodies, 4, 2);
        for part in &several.parts {
            part.set_clock(SPAN, ETA).expect("emulated");
            part.launch_first_steps().expect("emulated");
        }
        several.begin_neighbours().expect("emulated");
        several.begin_span_of_neighbours().expect("emulated");
        several
    }

    fn launch_without_meeting(several: &Several<Emulator>, parity: u16) {
        for part in &several.parts {
            let launched = part.launch_neighbour_forces(false, Phase::Step, parity);
            launched.expect("emulated");
        }
    }

    #[test]
    #[should_panic(expected = "may be writing")]
    fn ends_of_steps_that_do_not_wait_for_sums_are_found() {
        let several = begun();
        launch_without_meeting(&several, 0);
        let corrected = several.launch_neighbour_corrects(Phase::Step, 0);
        corrected.expect("not reached");
    }

    #[test]
    #[should_panic(expected = "may be reading")]
    fn sums_that_do_not_wait_for_their_readers_are_found() {
        let several = begun();
        several.launch_neighbour_step(0).expect("emulated");
        launch_without_meeting(&several, 0); // of the same parity
    }
}
