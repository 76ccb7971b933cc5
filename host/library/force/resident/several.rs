//! One system on several devices.
//!
//! Each device holds all bodies and moves all of them, which is nothing beside the forces; of a force each
//! computes a part of the pairs. What they have computed is exchanged and added in an order that does
//! not depend on which is ready first, so that all devices always hold the same bits.
//!
//! Devices of one process copy from each other's memory. Those of ranks, of which each has one, exchange
//! the same bytes by NCCL or through the memory of their hosts.

mod block_steps;
mod exchange;
mod neighbours;

use std::ops::Range;
use std::sync::Arc;

use cuda_driver::Graph;
use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Buffer, Entry};

use self::block_steps::RowAddresses;
use self::exchange::Exchange;
use self::neighbours::Addresses;
use super::{Resident, hermite};
use crate::backend::{Backend, BlockSteps, ForceError, Operation, SavedState};
use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::fields::External;
use crate::force::device::Peers;
use crate::force::memory::Memory;
use crate::plan::block_steps::Part;
use crate::plan::shares::{SharedRecipe, Union};
use crate::plan::{self, ELEMENTWISE_BLOCK, Kernel, Recipe, Step};

/// A system on several devices, which compute it together.
pub struct Several<D: Peers> {
    /// [`RECORDED`](super::block_steps::RECORDED) block steps of a neighbour scheme on the devices of this
    /// process. First, because fields are dropped in order, and a graph before what its launches use.
    record: Option<Graph>,
    /// Devices of this process.
    devices: Vec<Arc<D>>,
    /// Of each device of this process; at least one.
    parts: Vec<Resident<D>>,
    union: Union,
    /// Of each device of this process, where parts of sums are added.
    adders: Vec<Adder<D>>,
    /// Of each device, if it takes block time steps without neighbours.
    rows: Vec<RowAddresses<D>>,
    /// Of each device of this process, if these take block time steps of a neighbour scheme together.
    addresses: Vec<Addresses<D>>,
    /// The way to the devices of other ranks, if this process is one of several.
    exchange: Option<Exchange<D>>,
}

/// A device's means to add what all devices have computed of the sums of its bodies.
struct Adder<D: Peers> {
    add: Kernel,
    params: Params,
    /// Bytes of the parts of a device.
    part_bytes: usize,
    /// The parts of all devices, [partial](Buffer::partial), and their sums, of the slice that the device adds.
    memory: Memory<D>,
}

impl<D: Peers> Several<D> {
    /// Puts `bodies` on devices, to be moved as `recipe` says, which was made for them on one.
    ///
    /// # Errors
    /// If a device's driver refuses a kernel, or its memory is too small.
    ///
    /// # Panics
    /// If there is no device, or the force kernel cannot be shared: see
    /// [`eligible`](crate::selection::eligible).
    pub fn new(devices: Vec<Arc<D>>, recipe: &Recipe, bodies: &Bodies) -> Result<Self, ForceError> {
        assert!(!devices.is_empty(), "somebody has to compute");
        D::connect(&devices)?;
        let limits = devices[0].limits();
        let SharedRecipe { parts, union } = recipe.shared(devices.len(), &limits)?;
        let resident =
            |(device, part): (&Arc<D>, Recipe)| Resident::new(Arc::clone(device), part, bodies);
        let parts = devices.iter().zip(parts).map(resident);
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let adders = match &union {
            Union::Sums { bodies, add } => {
                let counts = bodies.iter().map(|slice| slice.end - slice.start);
                let most = counts.max().unwrap_or(0);
                let adder = |(part, slice): (&Resident<D>, &Range<u32>)| {
                    let count = slice.end - slice.start;
                    Adder::new(part, add, [count, most], devices.len())
                };
                let adders = parts.iter().zip(bodies).map(adder);
                adders.collect::<Result<Vec<_>, _>>()?
            }
            Union::Bodies(_) | Union::Chain => vec![],
        };
        Ok(Self {
            record: None,
            devices,
            parts,
            union,
            adders,
            rows: vec![],
            addresses: vec![],
            exchange: None,
        })
    }

    /// The parts of this process's devices in work that all devices share.
    ///
    /// # Errors
    /// If there are more than 255 devices.
    fn shares(&self) -> Result<Vec<Part>, ForceError> {
        let (first, devices) = match &self.exchange {
            Some(exchange) => exchange.place(),
            None => (0, self.parts.len()),
        };
        let devices = u8::try_from(devices).map_err(|_| ForceError::TooManyDevices(devices))?;
        let share = |device: usize| Part::OfSeveral {
            device: device as u8, // less than `devices`
            devices,
        };
        Ok((first..first + self.parts.len()).map(share).collect())
    }

    /// The first device's bodies, which are those of all.
    fn first(&mut self) -> &mut Resident<D> {
        &mut self.parts[0]
    }

    fn on_all(
        &mut self,
        mut work: impl FnMut(&mut Resident<D>) -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        self.parts.iter_mut().try_for_each(&mut work)
    }

    fn meet(&self) -> Result<(), ForceError> {
        D::meet(&self.devices)
    }

    /// In these external fields too; `bodies` are those that it was made from.
    ///
    /// # Errors
    /// As [`Resident::in_fields`].
    pub fn in_fields(self, external: &External, bodies: &Bodies) -> Result<Self, ForceError> {
        let parts = self.parts.into_iter();
        let parts = parts.map(|part| part.in_fields(external.clone(), bodies));
        let parts = parts.collect::<Result<_, _>>()?;
        Ok(Self { parts, ..self })
    }

    /// The force on all bodies, on all devices.
    fn force(&self) -> Result<(), ForceError> {
        let mut parts = self.parts.iter();
        parts.try_for_each(Resident::begin_external)?;
        self.pairs()?;
        self.parts.iter().try_for_each(Resident::end_external)
    }

    /// The force without external fields, on all devices.
    fn pairs(&self) -> Result<(), ForceError> {
        if let Some(exchange) = &self.exchange {
            exchange.pairs(self);
            return Ok(());
        }
        match &self.union {
            Union::Bodies(bodies) => {
                self.launch_parts()?;
                self.meet()?;
                for (k, to) in self.parts.iter().enumerate() {
                    for from in self.from(k).skip(1) {
                        to.take_vectors(&self.parts[from], bodies[from].clone())?;
                    }
                }
            }
            Union::Sums { bodies, .. } => {
                self.launch_parts()?;
                self.meet()?;
                for (k, (to, adder)) in self.parts.iter().zip(&self.adders).enumerate() {
                    let bytes = to.bytes_of(bodies[k].clone());
                    for from in self.from(k) {
                        let source = self.parts[from].of(Buffer::acceleration);
                        let at = from * adder.part_bytes;
                        to.device
                            .copy_from(adder.parts(), at, source, bytes.clone())?;
                    }
                    adder.launch(&to.device)?;
                }
                self.meet()?;
                for (k, to) in self.parts.iter().enumerate() {
                    for from in self.from(k) {
                        let bytes = to.bytes_of(bodies[from].clone());
                        let (source, into) =
                            (self.adders[from].sums(), to.of(Buffer::acceleration));
                        to.device
                            .copy_from(into, bytes.start, source, 0..bytes.len())?;
                    }
                }
                // The next parts overwrite nothing that is still read: all have met since.
                return Ok(());
            }
            Union::Chain => self.force_by_chain()?,
        }
        // The next force overwrites what others may still be reading.
        self.meet()
    }

    /// All devices from the k-th on, cyclically: if each copies in this order, no two copy from the same.
    fn from(&self, k: usize) -> impl Iterator<Item = usize> + use<D> {
        let devices = self.parts.len();
        (0..devices).map(move |step| (k + step) % devices)
    }

    fn launch_parts(&self) -> Result<(), ForceError> {
        self.parts.iter().try_for_each(Resident::launch_pairs)
    }

    /// Terms on all devices at a time, then their sums from device to device.
    fn force_by_chain(&self) -> Result<(), ForceError> {
        // Devices without blocks have no terms.
        let has_blocks = |part: &&Resident<D>| part.params.share.first < part.params.share.end;
        let chain: Vec<_> = self.parts.iter().filter(has_blocks).collect();
        for part in &chain {
            let (terms, _) = part.terms_and_sum();
            part.carry_out(terms, part.force_params())?;
        }
        let n = self.parts[0].params.n;
        let mut before: Option<&Resident<D>> = None;
        for part in chain {
            if let Some(before) = before {
                self.meet()?;
                part.take_vectors(before, 0..n)?;
            }
            let (_, sum) = part.terms_and_sum();
            part.carry_out(sum, part.force_params())?;
            before = Some(part);
        }
        self.meet()?;
        let Some(last) = before else {
            return Ok(());
        };
        let mut others = self.parts.iter().filter(|part| !std::ptr::eq(*part, last));
        others.try_for_each(|part| part.take_vectors(last, 0..n))
    }
}

impl<D: Peers> Adder<D> {
    /// For `bodies` of those that `part` has, the most that any device adds being the second number.
    fn new(
        part: &Resident<D>,
        add: &'static Entry,
        [bodies, most]: [u32; 2],
        devices: usize,
    ) -> Result<Self, ForceError> {
        let device = &*part.device;
        device.prepare(add)?;
        let part_bytes = part.bytes_of(0..most).len();
        let launch =
            plan::one_dimensional(add, bodies.max(1), ELEMENTWISE_BLOCK, &device.limits())?;
        let params = Params {
            n: bodies,
            stride: most,
            partials: devices as u32,
            ..Params::default()
        };
        let mut memory = Memory::new();
        let sizes = [
            (Buffer::partial, devices * part_bytes),
            (Buffer::acceleration, part_bytes),
        ];
        memory.allocate(device, &sizes)?;
        Ok(Self {
            add: (add, launch),
            params,
            part_bytes,
            memory,
        })
    }

    fn launch(&self, device: &D) -> Result<(), ForceError> {
        if self.params.n == 0 {
            return Ok(());
        }
        self.memory.launch(device, self.add, self.params)
    }

    fn parts(&self) -> &D::Buffer {
        self.memory.of(Buffer::partial)
    }

    fn sums(&self) -> &D::Buffer {
        self.memory.of(Buffer::acceleration)
    }
}

impl<D: Peers> Resident<D> {
    /// Places of some bodies' vectors in a buffer of accelerations.
    fn bytes_of(&self, bodies: Range<u32>) -> Range<usize> {
        let each = self.layout.vector_scalars as usize * self.layout.vectors.bytes() as usize;
        bodies.start as usize * each..bodies.end as usize * each
    }

    /// Copies some bodies' accelerations, and jerks if there are any, from another device.
    fn take_vectors(&self, from: &Self, bodies: Range<u32>) -> Result<(), ForceError> {
        let bytes = self.bytes_of(bodies);
        let mut vectors = [Buffer::acceleration, Buffer::jerk].into_iter();
        vectors.try_for_each(
            |name| match (self.memory.get(name), from.memory.get(name)) {
                (Some(to), Some(of)) => self.device.copy_from(to, bytes.start, of, bytes.clone()),
                _ => Ok(()),
            },
        )
    }

    /// Steps of a force that leaves the terms of its sums, and the step that adds them.
    fn terms_and_sum(&self) -> (&[Step], &[Step]) {
        self.force_steps.split_at(self.force_steps.len() - 1)
    }
}

impl<D: Peers> Backend for Several<D> {
    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        match operation {
            Operation::Evaluate(highest) => match self.parts[0].needs_launch(highest)? {
                true => self.force(),
                false => Ok(()),
            },
            of_each => self.on_all(|part| part.perform(of_each)),
        }
    }

    fn external(&self) -> Option<&External> {
        self.parts[0].external()
    }

    fn reach(&mut self, from: f64, to: f64) -> Result<(), ForceError> {
        self.record = None; // of launches that take the orbit as it was known before
        self.on_all(|part| part.extend_orbit(from, to))
    }

    fn set_time(&mut self, time: f64) {
        self.parts.iter_mut().for_each(|part| part.set_time(time));
    }

    fn repeat(&mut self, times: u64, step: &[Operation]) -> Result<(), ForceError> {
        for _ in 0..times {
            step.iter().try_for_each(|&part| self.perform(part))?;
            Resident::keep_in_order(&mut self.parts)?;
        }
        Ok(())
    }

    fn first_step(&mut self, eta: f64, longest: f64) -> Result<f64, ForceError> {
        hermite::first_step(self, |several| &several.parts[0], eta, longest)
    }

    fn next_step(&mut self, eta: f64, dt: f64) -> Result<f64, ForceError> {
        self.first().next_step(eta, dt)
    }

    fn block_steps(&mut self) -> Option<&mut dyn BlockSteps> {
        match self.first().blocks {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn save(&mut self) -> Result<SavedState, ForceError> {
        self.first().save()
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        self.on_all(|part| part.restore(saved))
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        self.first().download(bodies)
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        self.first().accelerations()
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        self.first().fetch_fielded()?;
        if let Some(exchange) = &self.exchange {
            let part = &self.parts[0];
            let sums = exchange.energy_sums(part);
            return Ok(part.total_energy(&sums, part.external_energy()));
        }
        self.parts.iter().try_for_each(Resident::launch_energy)?;
        let external = self.parts[0].external_energy();
        let sums = self.parts.iter().map(Resident::energy_sums);
        let sums = sums.collect::<Result<Vec<_>, _>>()?.concat();
        Ok(self.parts[0].total_energy(&sums, external))
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        self.devices
            .iter()
            .try_for_each(|device| device.synchronize())
    }

    fn time_acceleration(&mut self) -> Result<f64, ForceError> {
        self.synchronize()?;
        self.devices[0].seconds_of(|| self.force())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::device::Device;
    use crate::force::emulated::Emulator;
    use crate::frame::Frame;
    use crate::initial_conditions::plummer;
    use crate::integrator::Integrator;
    use crate::machine::Machine;
    use crate::physics::{ForceLaw, Physics};
    use crate::variants::{self, Variant};

    const GRAVITY: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.05,
    };

    fn several(kernel: &str, bodies: &Bodies, devices: u64) -> Several<Emulator> {
        let variant = variants::find(kernel).expect("listed");
        let devices: Vec<_> = (1..=devices)
            .map(|seed| Arc::new(Emulator::new(seed)))
            .collect();
        let (frame, limits) = (Frame::of(bodies, &GRAVITY), devices[0].limits());
        let recipe = Recipe::new(variant, bodies, GRAVITY, frame, &limits).expect("fits");
        Several::new(devices, &recipe, bodies).expect("fits")
    }

    /// Whatever order threads run in on each device; and across sorts along the curve, and a look at how
    /// large the system is.
    #[test]
    fn all_devices_always_hold_the_same_bits() {
        let bodies = plummer(300, 3).expect("in range");
        for (kernel, integrator, steps) in [
            ("symmetric-lane2-block32", Integrator::Leapfrog, 5),
            ("symmetric-deterministic", Integrator::Leapfrog, 3),
            ("tensor", Integrator::Leapfrog, 66),
            ("hermite", Integrator::Hermite4, 5),
        ] {
            let mut several = several(kernel, &bodies, 3);
            integrator.prepare(&mut several).expect("emulated");
            let step = integrator.operations(0.01);
            several.repeat(steps, &step).expect("emulated");
            let parts = several.parts.iter_mut();
            let mut states = parts.map(|part| part.save().expect("there"));
            let first = states.next().expect("the first");
            assert!(states.all(|state| state == first), "{kernel}");
        }
    }

    /// The emulator finds devices that do not wait for each other.
    #[test]
    #[should_panic(expected = "may be writing")]
    fn devices_that_do_not_meet_are_found() {
        let bodies = plummer(100, 3).expect("in range");
        let several = several("hermite", &bodies, 2);
        several.launch_parts().expect("emulated");
        let [to, from] = &several.parts[..] else {
            panic!("two")
        };
        to.take_vectors(from, 0..100).expect("not reached");
    }

    /// Where a few steps end, and the energy there.
    fn steps_end(
        machine: &Machine,
        kernel: &Variant,
        integrator: Integrator,
        bodies: &Bodies,
    ) -> (SavedState, Energy) {
        let backend = machine.backend(kernel, bodies, GRAVITY);
        let mut backend = backend.expect("runs there");
        integrator.prepare(&mut *backend).expect("runs");
        for _ in 0..2 {
            integrator.step(&mut *backend, 0.01).expect("runs");
        }
        let energy = backend.energy().expect("runs");
        (backend.save().expect("there"), energy)
    }

    /// With ragged numbers of bodies, and with so many tiles that several devices add a body's sums one
    /// after the other.
    #[test]
    fn kernels_of_fixed_order_have_the_bits_of_one_device() {
        let wide = |name: &str| *variants::find(name).expect("listed");
        let narrow = |name: &str| wide(name).in_blocks_of(32);
        for (kernel, integrator, most) in [
            (wide("symmetric-deterministic"), Integrator::Leapfrog, 1_025),
            (
                narrow("symmetric-deterministic"),
                Integrator::Leapfrog,
                1_300,
            ),
            (narrow("symmetric-lane1"), Integrator::Leapfrog, 1_000),
            (narrow("hermite"), Integrator::Hermite4, 1_025),
            (narrow("hermite-f64"), Integrator::Hermite4, 1_000),
        ] {
            for n in [1, 2, 31, 33, most] {
                let bodies = match n {
                    1 => Bodies::at_rest(&[[0.25; 3]], &[1.0]),
                    _ => plummer(n, 7).expect("in range"),
                };
                let one = steps_end(&Machine::emulator(0), &kernel, integrator, &bodies);
                for devices in 2..=5 {
                    let machine = Machine::emulators(devices, devices.into());
                    let several = steps_end(&machine, &kernel, integrator, &bodies);
                    let name = kernel.name;
                    assert!(several == one, "{name}, {n} bodies, {devices} devices");
                }
            }
        }
    }

    /// First steps, energies and states of other kernels, up to the order of additions.
    #[test]
    fn runs_end_where_those_of_one_device_end() {
        let bodies = plummer(700, 4).expect("in range");
        for (kernel, integrator, bound) in [
            ("symmetric", Integrator::Leapfrog, 1e-5),
            ("symmetric-f64", Integrator::Yoshida6, 1e-12),
            ("symmetric-f64", Integrator::LeapfrogDkd, 1e-12),
            ("double-single", Integrator::Leapfrog, 1e-9),
            ("tensor", Integrator::Leapfrog, 1e-4),
            ("hermite-f64", Integrator::Hermite4, 1e-12),
        ] {
            let kernel = variants::find(kernel).expect("listed");
            let one = steps_end(&Machine::emulator(0), kernel, integrator, &bodies);
            let several = steps_end(&Machine::emulators(4, 0), kernel, integrator, &bodies);
            let near = |a: f64, b: f64| (a - b).abs() <= bound * (1.0 + b.abs());
            assert!(near(several.1.kinetic, one.1.kinetic), "{}", kernel.name);
            assert!(
                near(several.1.potential, one.1.potential),
                "{}",
                kernel.name
            );
            for (a, b) in several.0.velocities().iter().zip(one.0.velocities()) {
                let all = a.iter().zip(b).all(|(a, b)| near(*a, *b));
                assert!(all, "{}: {a:?} for {b:?}", kernel.name);
            }
        }
        let hermite = variants::find("hermite-f64").expect("listed");
        let [one, several] = [Machine::emulator(0), Machine::emulators(3, 0)].map(|machine| {
            let mut backend = machine.backend(hermite, &bodies, GRAVITY).expect("runs");
            let integrator = Integrator::Hermite4;
            integrator.prepare(&mut *backend).expect("runs");
            let step = integrator.first_step(&mut *backend, 0.01, 1.0);
            step.expect("a step").to_bits()
        });
        assert_eq!(one, several);
    }
}
