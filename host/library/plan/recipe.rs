//! Recipe for moving given bodies on a device: a variant resolved to kernels and their launches.

use gpu_kernels::abi::{BlockStep, Params, Separation, Share, Systems};
use gpu_kernels::entries::{Entry, LayoutDescription};
use gpu_kernels::schedule::hermite::KEPT_VECTORS;
use gpu_kernels::schedule::test_particles;

use super::{
    Buffer, ELEMENTWISE_BLOCK, EXACT_ENERGY_BODIES, ForcePlan, Launch, Limits, PlanError, Sizes,
};
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::variants::{Kernels, Masses, Method, Positions, Variant};

/// Kernels and launches for given bodies on a given device: what
/// [`Resident`](crate::force::resident::Resident) carries out.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The kernels.
    pub kernels: Kernels,
    /// The launches of a force.
    pub force: ForcePlan,
    /// G of the force: with the common mass in it where the kernel leaves masses out.
    pub force_g: f64,
    /// The launch of kernels that touch each body once.
    pub elementwise: Launch,
    /// The kernel of energies for this many bodies.
    pub energy: &'static Entry,
    /// Launch of the energy kernel.
    pub energy_launch: Launch,
    /// Blocks of the energy kernel, numbered over all devices.
    pub energy_share: Share,
    /// Indices of the bodies that accelerate others, where sources are apart from targets.
    pub sources: Option<Vec<u32>>,
    /// Processor that advances the positions.
    pub positions: Positions,
    /// Origin and units of the numbers on the device.
    pub frame: Frame,
    /// The force, in the units of the bodies.
    pub physics: Physics,
    /// Scalars of all launches, in the frame, with the share of the force.
    pub params: Params,
}

impl Recipe {
    /// Resolves a variant for `bodies`, which the device holds in the units of `frame`.
    ///
    /// # Errors
    /// If a launch would not fit the device.
    ///
    /// # Panics
    /// If the variant is not one of kernels that are compiled for the force law: see
    /// [`eligible`](crate::selection::eligible).
    pub fn new(
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        frame: Frame,
        limits: &Limits,
    ) -> Result<Self, PlanError> {
        let masses = Masses::of(bodies);
        let sources = || massive(bodies, &physics);
        let sources = variant.has_sources_apart().then(sources);
        Self::resolve(
            variant,
            bodies.len(),
            masses,
            sources,
            physics,
            frame,
            limits,
        )
    }

    /// Like [`new`](Self::new), but from the number of bodies and the kinds of their masses.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    ///
    /// # Panics
    /// See [`new`](Self::new). Also panics if the variant must know which of the bodies have mass.
    pub fn for_masses(
        variant: &Variant,
        bodies: usize,
        masses: Masses,
        physics: Physics,
        frame: Frame,
        limits: &Limits,
    ) -> Result<Self, PlanError> {
        assert!(!variant.has_sources_apart(), "all bodies are sources");
        Self::resolve(variant, bodies, masses, None, physics, frame, limits)
    }

    fn resolve(
        variant: &Variant,
        bodies: usize,
        masses: Masses,
        sources: Option<Vec<u32>>,
        physics: Physics,
        frame: Frame,
        limits: &Limits,
    ) -> Result<Self, PlanError> {
        let Method::Kernel {
            block,
            positions,
            split,
            ..
        } = variant.method
        else {
            panic!("`{}` is not one of kernels of one system", variant.name)
        };
        let unsoftened = frame.is_unsoftened(physics.softening, variant.precision());
        let kernels = variant
            .kernels(physics.law, unsoftened, masses)
            .expect("an eligible variant has its kernels");
        let stride = super::stride(kernels.force, bodies)?;
        let n = bodies as u32; // fits, as the stride does
        let force = super::force(kernels.force, n, block, split, limits)?;
        let elementwise = super::one_dimensional(kernels.drift, n, ELEMENTWISE_BLOCK, limits)?;
        // Sources have all the energy.
        let count = sources.as_ref().map_or(n, |indices| indices.len() as u32);
        let energy = kernels.quick_energy.filter(|_| count > EXACT_ENERGY_BODIES);
        let energy = energy.unwrap_or(kernels.energy);
        let energy_launch = super::one_dimensional(energy, count, ELEMENTWISE_BLOCK, limits)?;
        let params = Params {
            n,
            stride,
            sources_a_thread: match sources {
                Some(_) => count,
                None => force.split.sources_a_thread,
            },
            partials: force.split.partials,
            softening_squared: frame.softening_squared(physics.softening),
            g: frame.coupling_to_local(&physics),
            repulsion: frame.repulsion_to_local(&physics),
            damping: frame.damping_to_local(&physics),
            dt: 0.0,
            tiling: force.tiling,
            separation: Separation::default(),
            systems: Systems::default(),
            velocity_factor: 1.0,
            time: 0.0,
            blocks: BlockStep::default(),
            share: Share {
                first: 0,
                end: force.blocks(),
            },
        };
        let energy_share = Share {
            first: 0,
            end: energy_launch.grid[0],
        };
        let common_mass = kernels
            .common_mass
            .map_or(1.0, |mass| frame.mass_to_local(mass));
        Ok(Self {
            kernels,
            force,
            force_g: params.g * common_mass,
            elementwise,
            energy,
            energy_launch,
            energy_share,
            sources,
            positions,
            frame,
            physics,
            params,
        })
    }

    /// Buffers of a device, without the buffers of block time steps.
    pub fn buffers(&self) -> Sizes {
        let layout = self.layout();
        let [n, stride] = [self.params.n, self.params.stride].map(|count| count as usize);
        let of_body = (layout.state_scalars * layout.stored.bytes()) as usize;
        let vectors = stride * (layout.vector_scalars * layout.vectors.bytes()) as usize;
        let blocks = self.energy_launch.grid[0] as usize;
        let mut all = vec![
            (Buffer::state, stride * of_body),
            (Buffer::acceleration, vectors),
            (Buffer::energies, blocks * size_of::<[f64; 2]>()),
        ];
        if self.kernels.hermite.is_some() {
            all.extend([
                (Buffer::jerk, vectors),
                (Buffer::beginning, KEPT_VECTORS as usize * vectors),
                (Buffer::own_steps, n * size_of::<f64>()),
            ]);
        }
        if let Some(indices) = &self.sources {
            let room = test_particles::room(indices.len() as u32);
            all.extend([
                (Buffer::indices, size_of_val(&indices[..])),
                (Buffer::sources, room as usize * of_body),
            ]);
        }
        let sort = self.force.order.iter().flat_map(|order| &order.scratch);
        all.extend(self.force.scratch.iter().chain(sort));
        all
    }

    /// Layout of bodies in memory.
    pub fn layout(&self) -> &LayoutDescription {
        &self.kernels.force.layout
    }
}

/// Indices of the bodies with mass; of a body without, which accelerates nothing, where there is none.
fn massive(bodies: &Bodies, physics: &Physics) -> Vec<u32> {
    let indices = (0_u32..).zip(&bodies.mass);
    let indices = indices.filter(|&(_, &mass)| physics.weight(mass) != 0.0);
    let indices: Vec<u32> = indices.map(|(i, _)| i).collect();
    if indices.is_empty() { vec![0] } else { indices }
}
