//! Block time steps on several devices: each computes the forces of a part of the sources on all active
//! bodies, and ends the steps of all bodies by the sums of all devices, which it reads in their memory, or
//! has received from other ranks.

use std::ops::ControlFlow;

use gpu_kernels::entries::Buffer;
use gpu_kernels::schedule::block_steps::Phase;

use super::Several;
use crate::backend::{Backend, BlockCounts, BlockSteps, ForceError};
use crate::force::device::{Device, Peers};
use crate::force::resident::Resident;
use crate::force::resident::block_steps::neighbours::NeighbourLaunches;
use crate::force::resident::block_steps::{MOST_RECORDS, RECORDED, Words, run_span, with_chosen};
use crate::plan::block_steps::{BlockKernels, BlockPlan, BlockScheme};

/// Addresses, of each parity, of the [rows](row_of) of all devices.
pub(super) type RowAddresses<D> = [<D as Device>::Buffer; 2];

/// Sums over the sources of a device, which all devices read. A device writes the sums of one parity while others still
/// read the sums of the other.
const fn row_of(parity: u16) -> Buffer {
    match parity {
        0 => Buffer::row,
        _ => Buffer::row_before,
    }
}

impl<D: Peers> Several<D> {
    /// As [`Resident::with_block_steps`], in which each device has a part of the sources. The bits of sums
    /// depend on the number of devices too.
    ///
    /// # Errors
    /// As there; or if devices of this process do not reach the memory of each other, or are not of one kind; or
    /// if there are more than 255.
    pub fn with_block_steps(mut self, scheme: BlockScheme, guard: f64) -> Result<Self, ForceError> {
        D::check_together(&self.devices, "block time steps are taken")?;
        let shares = self.shares()?;
        let parts = self
            .parts
            .into_iter()
            .zip(shares)
            .map(|(part, share)| part.with_part_of_block_steps(scheme, share, guard));
        self.parts = parts.collect::<Result<Vec<_>, _>>()?;
        let exchange = self
            .exchange
            .map(|exchange| exchange.with_blocks(&self.parts[0]));
        self.exchange = exchange.transpose()?;
        let addresses = |device: &D| -> Result<_, ForceError> {
            let of = |parity| {
                let rows = self.parts.iter().map(|part| part.of(row_of(parity)));
                let own: Vec<_> = rows.collect();
                let addresses = match &self.exchange {
                    Some(exchange) => exchange.addresses(device, own[0])?,
                    None => own.iter().map(|row| device.kept_address(row)).collect(),
                };
                let memory = device.allocate(size_of_val(&*addresses))?;
                device.upload(&memory, &addresses)?;
                Ok::<_, ForceError>(memory)
            };
            Ok([of(0)?, of(1)?])
        };
        let addresses = self.devices.iter().map(|device| addresses(device));
        self.rows = addresses.collect::<Result<Vec<_>, _>>()?;
        Ok(self)
    }

    /// The forces on active bodies, on all devices; what they do after it waits for those of all. False where ranks
    /// know that the span is over.
    fn launch_block_forces(&self, kernels: &BlockKernels, parity: u16) -> Result<bool, ForceError> {
        if let Some(exchange) = &self.exchange {
            exchange.ask_for_targets(&self.parts[0])?;
        }
        for part in &self.parts {
            part.launch_block_force(kernels, parity)?;
            // Others have read the sums that are overwritten: in the block step before the last, since which this
            // device has waited for them; or they have been sent, which is waited for.
            part.launch_block_gather(kernels, parity, row_of(parity))?;
        }
        match &self.exchange {
            Some(exchange) => {
                let part = &self.parts[0];
                let targets = exchange.number_of_targets(part, parity)?;
                let bytes = targets.unwrap_or(0) * kernels.row_bytes();
                exchange.swap_rows(&part.device, part.of(row_of(parity)), bytes)?;
                Ok(targets.is_some())
            }
            None => {
                self.meet()?;
                Ok(true)
            }
        }
    }

    fn launch_block_corrects(
        &self,
        kernels: &BlockKernels,
        phase: Phase,
        parity: u16,
    ) -> Result<(), ForceError> {
        let rows = self.parts.iter().map(|part| part.of(row_of(parity)));
        let mut sums: Vec<_> = rows.collect();
        if let Some(exchange) = &self.exchange {
            sums.push(exchange.rows()?);
        }
        let read = match phase {
            Phase::Step | Phase::First => &*sums,
            Phase::All | Phase::Begin => &[],
        };
        for (part, addresses) in self.parts.iter().zip(&self.rows) {
            let given = [(Buffer::partials, &addresses[usize::from(parity)])];
            let params = part.block_params(kernels, phase, parity)?;
            part.memory
                .launch_reading(&part.device, kernels.correct, &given, read, params)?;
        }
        Ok(())
    }

    /// Chooses the first steps of all bodies, and their spheres in a neighbour scheme.
    fn begin_steps(&mut self) -> Result<(), ForceError> {
        let BlockPlan { first, .. } = self.parts[0].blocks()?.plan;
        if self.parts[0].has_neighbours() {
            // By all devices alike: once in a run, and the bits are those of one.
            self.parts
                .iter()
                .try_for_each(Resident::launch_first_steps)?;
            return self.begin_neighbours();
        }
        self.launch_block_corrects(&first, Phase::All, 1)?;
        self.launch_block_forces(&first, 0)?;
        self.launch_block_corrects(&first, Phase::First, 0)?;
        // The first block step overwrites sums that others may still be reading.
        self.meet()
    }

    /// Hands out the first targets of a span, with first steps if there are none.
    fn begin_span(&mut self) -> Result<(), ForceError> {
        let blocks = self.parts[0].blocks()?;
        let BlockPlan { steps, .. } = blocks.plan;
        if !blocks.has_steps {
            self.begin_steps()?;
        }
        match self.parts[0].has_neighbours() {
            true => self.begin_span_of_neighbours(),
            false => self.launch_block_corrects(&steps, Phase::Begin, 1),
        }
    }

    /// A block step; false where ranks know that the span is over.
    fn launch_block_step(&self, parity: u16) -> Result<bool, ForceError> {
        if self.parts[0].has_neighbours() {
            return self.launch_neighbour_step(parity);
        }
        let steps = self.parts[0].blocks()?.plan.steps;
        let goes_on = self.launch_block_forces(&steps, parity)?;
        self.launch_block_corrects(&steps, Phase::Step, parity)?;
        Ok(goes_on)
    }

    /// Goes through a span; the words of the clock then, which is the same on all devices, or none if `watch`
    /// broke off.
    fn through_span(
        &mut self,
        span: f64,
        eta: f64,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Words>, ForceError> {
        self.on_all(|part| part.set_clock(part.frame.time_to_local(span), eta))?;
        self.begin_span()?;
        let mut record = self.record.take();
        let mut launch = || {
            for step in 0..RECORDED {
                let parity = step % 2;
                let goes_on = self.launch_block_step(parity)?;
                if !goes_on && parity == 1 {
                    break; // an even number of steps is done
                }
            }
            Ok(())
        };
        let look = || self.parts[0].look();
        let words = match &self.exchange {
            None if self.parts[0].has_neighbours() => {
                // SAFETY: `self` holds the buffers as long as the record.
                let mut recorded =
                    || unsafe { D::again_together(&self.devices, &mut record, &mut launch) };
                run_span(&mut recorded, MOST_RECORDS, &look, watch)
            }
            None => run_span(&mut launch, MOST_RECORDS, &look, watch),
            // All ranks look after the same block steps, and do as rank 0 says.
            Some(exchange) => run_span(&mut launch, 1, &look, &mut |share| {
                exchange.as_rank_0_says(watch(share))
            }),
        };
        self.record = record;
        words
    }
}

impl<D: Peers> BlockSteps for Several<D> {
    fn advance_unless(
        &mut self,
        span: f64,
        eta: f64,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<BlockCounts>, ForceError> {
        let words = self.through_span(span, eta, watch);
        let words = match &self.exchange {
            Some(exchange) => exchange.or_end(words),
            None => words?,
        };
        let Some(words) = words else {
            return Ok(None);
        };
        let counts = self.parts[0].counts(&words, span)?;
        self.parts.iter_mut().for_each(|part| part.end_span(span));
        Ok(Some(counts))
    }

    fn choose_steps(&mut self, span: f64, eta: f64, some: &[usize]) -> Result<bool, ForceError> {
        let kept = self.save()?;
        self.on_all(|part| part.set_clock(part.frame.time_to_local(span), eta))?;
        self.begin_steps()?;
        let chosen = self.save()?;
        self.restore(&with_chosen(&kept, chosen, some))?;
        Ok(true)
    }

    fn own_steps(&mut self) -> Result<Vec<f64>, ForceError> {
        self.parts[0].saved_own_steps()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gpu_kernels::schedule::block_steps::DigitsName;

    use super::*;
    use crate::backend::{Backend, GUARD, SavedState};
    use crate::bodies::Bodies;
    use crate::diagnostics::Energy;
    use crate::fields::{External, ExternalField, Fields};
    use crate::force::device::Device;
    use crate::force::emulated::Emulator;
    use crate::frame::Frame;
    use crate::initial_conditions::{plummer, two_body};
    use crate::integrator::Integrator;
    use crate::physics::{ForceLaw, Physics};
    use crate::plan::Recipe;
    use crate::variants;

    const GRAVITY: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 1e-3,
    };

    /// A span of these tests.
    const SPAN: f64 = 1.0 / 64.0;

    /// Order, η and digits of steps.
    type Steps = (u32, f64, DigitsName);

    const STEPS: [Steps; 5] = [
        (4, 0.02, DigitsName::Single),
        (4, 0.02, DigitsName::Mixed),
        (4, 0.02, DigitsName::Double),
        (6, 0.4, DigitsName::Mixed),
        (6, 0.4, DigitsName::Double),
    ];

    fn scheme((order, _, digits): Steps) -> BlockScheme {
        BlockScheme {
            order,
            digits,
            slices: Emulator::MULTIPROCESSORS,
            neighbours: None,
            heavy_are_finer: false,
        }
    }

    fn recipe(bodies: &Bodies, physics: Physics) -> Recipe {
        let variant = variants::find("hermite-f64").expect("listed");
        let limits = Emulator::new(0).limits();
        let frame = Frame::IDENTITY;
        Recipe::new(variant, bodies, physics, frame, &limits).expect("fits")
    }

    fn field(bodies: &Bodies) -> External {
        let mut fields = Fields::NONE;
        fields.push(ExternalField::plummer(2.0, 0.5));
        External::of_bodies(&fields, bodies, &GRAVITY).expect("computed anywhere")
    }

    fn several_in(
        external: Option<&External>,
        bodies: &Bodies,
        physics: Physics,
        steps: Steps,
        devices: u64,
    ) -> Several<Emulator> {
        let emulators = (1..=devices).map(|seed| Arc::new(Emulator::new(seed)));
        let several = Several::new(emulators.collect(), &recipe(bodies, physics), bodies);
        let several = several.expect("fits");
        let several = match external {
            Some(external) => several.in_fields(external, bodies).expect("fits"),
            None => several,
        };
        let several = several.with_block_steps(scheme(steps), GUARD);
        let mut several = several.expect("fits");
        Integrator::Hermite4
            .prepare(&mut several)
            .expect("emulated");
        several
    }

    fn several(bodies: &Bodies, steps: Steps, devices: u64) -> Several<Emulator> {
        several_in(None, bodies, GRAVITY, steps, devices)
    }

    fn one_in(external: Option<&External>, bodies: &Bodies, steps: Steps) -> Resident<Emulator> {
        let emulator = Arc::new(Emulator::new(0));
        let one = Resident::new(emulator, recipe(bodies, GRAVITY), bodies).expect("fits");
        let one = match external {
            Some(external) => one.in_fields(external.clone(), bodies).expect("fits"),
            None => one,
        };
        let mut one = one.with_block_steps(scheme(steps), GUARD).expect("fits");
        Integrator::Hermite4.prepare(&mut one).expect("emulated");
        one
    }

    /// Where two spans end, the energy there, and the counts.
    fn ended(backend: &mut dyn Backend, (_, eta, _): Steps) -> (SavedState, Energy, BlockCounts) {
        let mut counts = BlockCounts::NONE;
        for _ in 0..2 {
            let blocks = backend.block_steps().expect("block steps");
            counts += blocks.advance(SPAN, eta).expect("emulated");
        }
        let energy = backend.energy().expect("emulated");
        (backend.save().expect("there"), energy, counts)
    }

    fn farthest(a: &SavedState, b: &SavedState) -> f64 {
        let both = a.positions().iter().zip(b.positions());
        let off = both.flat_map(|(a, b)| (0..3).map(|k| (a[k] - b[k]).abs()));
        off.fold(0.0, f64::max)
    }

    /// States of all devices.
    fn states(several: &mut Several<Emulator>) -> Vec<SavedState> {
        let parts = several.parts.iter_mut();
        parts.map(|part| part.save().expect("there")).collect()
    }

    /// With numbers of bodies that do not divide, and fewer bodies than slices; and energies and positions
    /// are those of one device, to the digits of pairs.
    #[test]
    fn all_devices_hold_the_same_bits() {
        for (steps, n, devices) in [
            (STEPS[1], 421, 2),
            (STEPS[0], 257, 3),
            (STEPS[2], 257, 4),
            (STEPS[3], 257, 3),
            (STEPS[4], 37, 4),
            (STEPS[3], 37, 2),
            (STEPS[1], 7, 3),
            (STEPS[4], 2, 4),
            (STEPS[2], 1, 3),
        ] {
            let bodies = match n {
                1 => Bodies::at_rest(&[[0.25; 3]], &[1.0]),
                _ => plummer(n, 7).expect("in range"),
            };
            let what = format!("{steps:?}, {n} bodies, {devices} devices");
            let mut several = several(&bodies, steps, devices);
            let (end, energy, counts) = ended(&mut several, steps);
            for state in states(&mut several) {
                assert!(state == end, "{what}");
            }
            let (of_one, energy_of_one, counts_of_one) =
                ended(&mut one_in(None, &bodies, steps), steps);
            let bound = match steps.2 {
                DigitsName::Single => 1e-6,
                DigitsName::Mixed => 1e-8,
                DigitsName::Double => 1e-13,
            };
            let off = farthest(&end, &of_one);
            assert!(off <= bound, "{what}: {off:e}");
            let off = (energy.total() - energy_of_one.total()).abs();
            assert!(
                off <= bound * (1.0 + energy.total().abs()),
                "{what}: {off:e}"
            );
            let more = counts.steps as f64 / counts_of_one.steps as f64;
            assert!(
                (more - 1.0).abs() < 0.02,
                "{what}: {counts:?} {counts_of_one:?}"
            );
        }
    }

    /// A device that has all sources adds them up in the order of one alone.
    #[test]
    fn a_single_one_of_several_has_the_bits_of_one_alone() {
        let bodies = plummer(130, 3).expect("in range");
        for steps in STEPS {
            let alone = ended(&mut one_in(None, &bodies, steps), steps);
            let single = ended(&mut several(&bodies, steps, 1), steps);
            assert!(single == alone, "{steps:?}");
        }
    }

    #[test]
    fn external_fields_are_those_of_one_device() {
        let bodies = plummer(100, 4).expect("in range");
        let external = field(&bodies);
        for steps in [STEPS[2], STEPS[4]] {
            let alone = ended(&mut one_in(Some(&external), &bodies, steps), steps);
            let mut several = several_in(Some(&external), &bodies, GRAVITY, steps, 3);
            let together = ended(&mut several, steps);
            let off = farthest(&alone.0, &together.0);
            assert!(off < 1e-13, "{steps:?}: {off:e}");
            let free = ended(&mut one_in(None, &bodies, steps), steps);
            let moved = farthest(&alone.0, &free.0);
            assert!(moved > 1e-4, "the field does something: {moved:e}");
        }
    }

    /// On as many devices with the bits of a run that was not interrupted, on others too.
    #[test]
    fn runs_go_on_from_what_was_saved() {
        let bodies = plummer(60, 6).expect("in range");
        for steps in [STEPS[1], STEPS[3]] {
            let advance = |backend: &mut Several<Emulator>| {
                backend.advance(SPAN, steps.1).expect("emulated");
            };
            let mut whole = several(&bodies, steps, 3);
            advance(&mut whole);
            let saved = whole.save().expect("there");
            advance(&mut whole);
            let whole = whole.save().expect("there");
            for devices in [1, 2, 3] {
                let mut resumed = several(&bodies, steps, devices);
                resumed.restore(&saved).expect("the same bodies");
                advance(&mut resumed);
                let resumed = resumed.save().expect("there");
                let off = farthest(&resumed, &whole);
                assert!(off < 1e-8, "{steps:?}, {devices}: {off:e}");
                assert!(devices != 3 || resumed == whole, "{steps:?}");
            }
        }
    }

    #[test]
    fn as_many_devices_as_there_are_numbers_take_them() {
        let bodies = plummer(8, 3).expect("in range");
        let on = |devices: u64| {
            let emulators = (1..=devices).map(|seed| Arc::new(Emulator::new(seed)));
            let several = Several::new(emulators.collect(), &recipe(&bodies, GRAVITY), &bodies);
            let several = several
                .expect("fits")
                .with_block_steps(scheme(STEPS[1]), GUARD);
            several.map(|several| several.parts.len())
        };
        assert_eq!(on(255).expect("fits"), 255);
        assert!(matches!(on(256), Err(ForceError::TooManyDevices(256))));
    }

    /// Two bodies that fall onto each other without softening.
    #[test]
    fn steps_that_get_too_short_are_an_error() {
        let mut bodies = two_body(0.5, 0.0).expect("bound");
        for v in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
            v.fill(0.0);
        }
        let physics = Physics {
            softening: 0.0,
            ..GRAVITY
        };
        let mut several = several_in(None, &bodies, physics, STEPS[2], 3);
        let refused = several.advance(4.0, 0.01);
        assert!(matches!(refused, Err(ForceError::StepTooShort { .. })));
    }

    /// A system whose devices have handed out the first targets of a span.
    fn begun() -> (Several<Emulator>, BlockKernels) {
        let bodies = plummer(40, 2).expect("in range");
        let mut several = several(&bodies, STEPS[1], 2);
        for part in &several.parts {
            part.set_clock(SPAN, 0.02).expect("emulated");
        }
        several.begin_span().expect("emulated");
        let steps = several.parts[0].blocks().expect("there").plan.steps;
        (several, steps)
    }

    fn launch_without_meeting(several: &Several<Emulator>, steps: &BlockKernels, parity: u16) {
        for part in &several.parts {
            part.launch_block_force(steps, parity).expect("emulated");
            let gathered = part.launch_block_gather(steps, parity, row_of(parity));
            gathered.expect("emulated");
        }
    }

    #[test]
    #[should_panic(expected = "may be writing")]
    fn ends_of_steps_that_do_not_wait_for_sums_are_found() {
        let (several, steps) = begun();
        launch_without_meeting(&several, &steps, 0);
        let corrected = several.launch_block_corrects(&steps, Phase::Step, 0);
        corrected.expect("not reached");
    }

    #[test]
    #[should_panic(expected = "may be reading")]
    fn sums_that_do_not_wait_for_their_readers_are_found() {
        let (several, steps) = begun();
        several.launch_block_forces(&steps, 0).expect("emulated");
        let corrected = several.launch_block_corrects(&steps, Phase::Step, 0);
        corrected.expect("emulated");
        launch_without_meeting(&several, &steps, 0); // of the same parity
    }
}
