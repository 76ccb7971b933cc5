//! Bodies that live on a device: force, kick, drift and energy are launches there, and the host
//! sees data only when it asks for them.

mod block_steps;
mod columns;
mod external;
mod force_device;
mod hermite;
mod host_steps;
mod in_place;
mod several;
mod spatial_sort;
mod test_particles;

pub(crate) use host_steps::HostSteps;
pub(crate) use in_place::Written;
pub use several::Several;

use std::cell::Cell;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use gpu_kernels::abi::{Params, Share};
use gpu_kernels::entries::{Buffer, LayoutDescription};

use self::block_steps::Blocks;
use self::external::Fielded;
use self::spatial_sort::SpatialSort;
use self::test_particles::SourcesApart;
use super::device::Device;
use super::hermite::least;
use super::memory::Memory;
use super::pack::{self, POSITION, Scalars};
use crate::backend::{Backend, BlockSteps, ForceError, Operation, SavedState};
use crate::bodies::Bodies;
use crate::diagnostics::{CompensatedSum, Energy};
use crate::fields::External;
use crate::frame::Frame;
use crate::groups::heavy_above;
use crate::physics::Physics;
use crate::plan::{Kernel, Launch, Recipe, Step};
use crate::variants::{Kernels, Positions};

/// Bodies on a device.
pub struct Resident<D: Device> {
    device: Arc<D>,
    kernels: Kernels,
    layout: LayoutDescription,
    frame: Frame,
    physics: Physics,
    positions: Positions,
    /// Mass above which a body is heavy, in the frame's unit.
    heavy: f64,
    params: Params,
    /// G of the force kernel.
    force_g: f64,
    /// Before the memory, because fields are dropped in order, and a graph before what its launches use.
    blocks: Option<Blocks>,
    memory: Memory<D>,
    sources: Option<SourcesApart>,
    external: Option<Fielded>,
    force_steps: Vec<Step>,
    /// State of the spatial sort along the Hilbert curve, if there is one; else body i is in slot
    /// i.
    spatial_sort: Option<SpatialSort>,
    elementwise_launch: Launch,
    energy: Kernel,
    /// Blocks of the energy among those of all devices that share the bodies.
    energy_share: Share,
    /// Spent in copies of steps.
    transfers: Cell<Duration>,
}

impl<D: Device> Resident<D> {
    /// Puts `bodies` on `device`, to be moved as `recipe` says, which was made for them.
    ///
    /// # Errors
    /// If the device's driver refuses a kernel, or its memory is too small.
    pub fn new(device: Arc<D>, recipe: Recipe, bodies: &Bodies) -> Result<Self, ForceError> {
        let sizes = recipe.buffers();
        let Recipe {
            kernels,
            force,
            params,
            ..
        } = recipe;
        let layout = kernels.force.layout;
        let Params { n, stride, .. } = params;
        let order = force.order.iter().flat_map(|order| &order.steps);
        let launched = force.steps.iter().chain(order).filter_map(Step::entry);
        for entry in launched.chain([kernels.kick, kernels.drift, recipe.energy]) {
            device.prepare(entry)?;
        }

        if let Some(hermite) = &kernels.hermite {
            for entry in [hermite.predict, hermite.correct, hermite.own_steps] {
                device.prepare(entry)?;
            }
        }
        let mut memory = Memory::new();
        for &(name, bytes) in &sizes {
            let buffer = match (name, recipe.positions) {
                (Buffer::state, Positions::Host(bus)) => device.allocate_for_host(bytes, bus)?,
                _ => device.allocate(bytes)?,
            };
            memory.put(name, buffer);
        }
        let packed = pack::state(&layout, stride, &recipe.frame, bodies);
        device.upload(memory.of(Buffer::state), packed.bytes())?;
        let sources = recipe.sources.as_deref();
        let sources = sources
            .map(|indices| {
                SourcesApart::new(&*device, &mut memory, &kernels, &force, &params, indices)
            })
            .transpose()?;
        let spatial_sort = force
            .order
            .map(|plan| SpatialSort::new(&*device, &memory, plan, n));
        let spatial_sort = spatial_sort.transpose()?;
        let mut resident = Self {
            device,
            kernels,
            force_g: recipe.force_g,
            layout,
            frame: recipe.frame,
            physics: recipe.physics,
            positions: recipe.positions,
            heavy: recipe.frame.mass_to_local(heavy_above(&bodies.mass)),
            params,
            blocks: None,
            memory,
            sources,
            external: None,
            force_steps: force.steps,
            spatial_sort,
            elementwise_launch: recipe.elementwise,
            energy: (recipe.energy, recipe.energy_launch),
            energy_share: recipe.energy_share,
            transfers: Cell::default(),
        };
        resident.settle()?;
        Ok(resident)
    }

    fn stepping(&self, dt: f64) -> Params {
        Params {
            dt: self.frame.time_to_local(dt),
            ..self.params
        }
    }

    fn launch_force(&self) -> Result<(), ForceError> {
        self.begin_external()?;
        self.launch_pairs()?;
        self.end_external()
    }

    /// The force without external fields.
    fn launch_pairs(&self) -> Result<(), ForceError> {
        self.carry_out(&self.force_steps, self.force_params())
    }

    /// Scalars of the launches of a force.
    fn force_params(&self) -> Params {
        Params {
            g: self.force_g,
            ..self.params
        }
    }

    fn carry_out(&self, steps: &[Step], params: Params) -> Result<(), ForceError> {
        self.memory.carry_out(&self.device, steps, params)
    }

    fn launch(&self, kernel: Kernel, params: Params) -> Result<(), ForceError> {
        self.memory.launch(&self.device, kernel, params)
    }

    /// The buffer of a name.
    fn of(&self, name: Buffer) -> &D::Buffer {
        self.memory.of(name)
    }

    /// Both arrays cross the bus, there and back, unless they are the host's already.
    fn drift_on_host(&self, dt: f64) -> Result<(), ForceError> {
        let Params { n, stride, dt, .. } = self.stepping(dt);
        let mut drift = |state: &mut [u8]| pack::drift(&self.layout, stride, n, dt, state);
        let on_bus = self.device.on_host(self.of(Buffer::state), &mut drift)?;
        self.transfers.set(self.transfers.get() + on_bus);
        Ok(())
    }

    fn launch_kick(&self, dt: f64) -> Result<(), ForceError> {
        let kick = match self.apart() {
            Some(apart) => apart.kick,
            None => self.kernels.kick,
        };
        self.launch((kick, self.elementwise_launch), self.stepping(dt))
    }

    fn launch_drift(&mut self, dt: f64) -> Result<(), ForceError> {
        self.pass(dt);
        if let Positions::Host(_) = self.positions {
            return self.drift_on_host(dt);
        }
        let drift = (self.kernels.drift, self.elementwise_launch);
        self.launch(drift, self.stepping(dt))
    }

    fn launch_damp(&self, factor: f64) -> Result<(), ForceError> {
        let params = Params {
            velocity_factor: factor,
            ..self.params
        };
        self.launch((self.kernels.damp, self.elementwise_launch), params)
    }

    fn launch_energy(&self) -> Result<(), ForceError> {
        let share = self.energy_share;
        if share.first == share.end {
            return Ok(());
        }
        let (weighed, n, stride) = self.weighed()?;
        let params = Params {
            n,
            stride,
            share,
            ..self.params
        };
        let renamed = [(Buffer::state, weighed)];
        self.memory
            .launch_renamed(&self.device, self.energy, &renamed, params)
    }

    /// Kinetic and potential energy of the bodies of each block, in local units.
    fn energy_sums(&self) -> Result<Vec<[f64; 2]>, ForceError> {
        let mut sums = vec![[f64::NAN; 2]; self.energy.1.grid[0] as usize];
        self.device.download(self.of(Buffer::energies), &mut sums)?;
        Ok(sums)
    }

    /// The energy of these blocks together, and that in external fields.
    fn total_energy(&self, sums: &[[f64; 2]], external: f64) -> Energy {
        let total = |which: usize| {
            let mut sum = CompensatedSum::default();
            sums.iter().for_each(|block| sum.add(block[which]));
            self.frame.energy_from_local(&self.physics, sum.value())
        };
        let (kinetic, potential) = (total(0), total(1));
        Energy {
            kinetic,
            potential,
            external,
            lost: 0.0,
            brought: 0.0,
        }
    }

    /// Positions in local units.
    fn local_positions(&self) -> Result<Vec<[f64; 3]>, ForceError> {
        let (layout, stride) = (&self.layout, self.params.stride);
        let state = self.fetch(self.of(Buffer::state), pack::empty_state(layout, stride))?;
        let n = self.params.n;
        Ok(pack::local_fields(layout, stride, &state, POSITION, n))
    }

    fn fetch(&self, buffer: &D::Buffer, mut into: Scalars) -> Result<Scalars, ForceError> {
        self.device.download(buffer, into.bytes_mut())?;
        Ok(into)
    }
}

impl<D: Device> Backend for Resident<D> {
    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        match operation {
            Operation::Evaluate(highest) => match self.needs_launch(highest)? {
                true => self.launch_force(),
                false => Ok(()),
            },
            Operation::Damp(factor) => self.launch_damp(factor),
            Operation::Kick(dt) => self.launch_kick(dt),
            Operation::Drift(dt) => self.launch_drift(dt),
            Operation::Predict(dt) => self.launch_predict(dt),
            Operation::Correct(dt) => self.launch_correct(dt),
        }
    }

    fn repeat(&mut self, times: u64, step: &[Operation]) -> Result<(), ForceError> {
        if self.follow(times, step)? {
            return Ok(());
        }
        let mut step =
            |resident: &mut Self| step.iter().try_for_each(|&part| resident.perform(part));
        let changes = self.external.as_ref().is_some_and(Fielded::changes);
        if matches!(self.positions, Positions::Host(_)) || changes {
            // What the host does between launches, or tells them, cannot be recorded with them.
            return (0..times).try_for_each(|_| {
                step(self)?;
                Self::keep_in_order(slice::from_mut(self))
            });
        }
        self.repeat_in_order(times, &mut step)
    }

    fn number_of_sources(&self) -> Option<usize> {
        let sources = self.params.sources_a_thread as usize;
        self.sources.as_ref().map(|_| sources)
    }

    fn first_step(&mut self, eta: f64, longest: f64) -> Result<f64, ForceError> {
        hermite::first_step(self, |resident| resident, eta, longest)
    }

    fn next_step(&mut self, eta: f64, dt: f64) -> Result<f64, ForceError> {
        Ok(least(&self.allowed_steps(eta, dt)?))
    }

    fn external(&self) -> Option<&External> {
        self.external.as_ref().map(Fielded::external)
    }

    fn reach(&mut self, from: f64, to: f64) -> Result<(), ForceError> {
        self.extend_orbit(from, to)
    }

    fn set_time(&mut self, time: f64) {
        if let Some(fielded) = &mut self.external {
            fielded.set_time(time);
        }
    }

    fn block_steps(&mut self) -> Option<&mut dyn BlockSteps> {
        match self.blocks {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn save(&mut self) -> Result<SavedState, ForceError> {
        self.unite()?;
        self.saved()
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        self.set_saved(saved)
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        let stride = self.params.stride;
        let state = self.fetch(
            self.of(Buffer::state),
            pack::empty_state(&self.layout, stride),
        )?;
        pack::read_state(
            &self.layout,
            stride,
            &self.frame,
            &self.slots()?,
            &state,
            bodies,
        );
        Ok(())
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        self.unite()?;
        let stride = self.params.stride;
        let vectors = self.fetch(
            self.of(Buffer::acceleration),
            pack::empty_vectors(&self.layout, stride),
        )?;
        let by_slot =
            pack::read_vectors(&self.layout, stride, &self.frame, &vectors, self.params.n);
        Ok(self.slots()?.to_bodies(&by_slot))
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        self.fetch_fielded()?;
        self.launch_energy()?;
        let external = self.external_energy(); // by the host, meanwhile
        Ok(self.total_energy(&self.energy_sums()?, external))
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        self.device.synchronize()
    }

    fn transfers(&self) -> f64 {
        self.transfers.get().as_secs_f64()
    }

    fn time_acceleration(&mut self) -> Result<f64, ForceError> {
        self.device.seconds_of(|| self.launch_force())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::emulated::Emulator;
    use crate::initial_conditions::plummer;
    use crate::physics::ForceLaw;
    use crate::plan::{self, ELEMENTWISE_BLOCK};
    use crate::variants;
    use gpu_kernels::numerics::Precision;

    /// Three tiles, the last ragged, with coincident bodies and one without mass.
    #[test]
    fn quick_energies_are_the_exact_ones_rounded() {
        let mut bodies = plummer(600, 3).expect("in range");
        bodies
            .mass
            .iter_mut()
            .zip(1..)
            .for_each(|(m, k)| *m *= f64::from(k));
        bodies.mass[599] = 0.0;
        (bodies.x[7], bodies.y[7], bodies.z[7]) = (bodies.x[300], bodies.y[300], bodies.z[300]);
        let variant = variants::find("tiled").expect("listed");
        for (law, softening) in [(ForceLaw::Gravity, 0.05), (ForceLaw::Unit, 0.0)] {
            let physics = Physics {
                law,
                g: 1.5,
                softening,
            };
            let device = Arc::new(Emulator::new(1));
            let limits = device.limits();
            let frame = Frame::of(&bodies, &physics);
            let recipe = Recipe::new(variant, &bodies, physics, frame, &limits).expect("fits");
            let mut resident = Resident::new(device, recipe, &bodies).expect("fits");
            let exact = resident.energy().expect("emulated");
            let quick = resident.kernels.quick_energy.expect("the layout has one");
            let launch = plan::one_dimensional(quick, 600, ELEMENTWISE_BLOCK, &limits);
            resident.energy = (quick, launch.expect("fits"));
            let quick = resident.energy().expect("emulated");
            assert_eq!(quick.kinetic, exact.kinetic);
            // A pair's roundings, and those of the sum over a tile.
            let bound = f64::from(16 + ELEMENTWISE_BLOCK) * Precision::F32.unit_roundoff();
            let error = ((quick.potential - exact.potential) / exact.potential).abs();
            assert!(error > 0.0 && error <= bound, "{law:?}: {error:e}");
        }
    }
}
