//! Block time steps with a neighbour scheme on a device: what they keep beside those without, and the
//! launches of a span.

use gpu_kernels::abi::Params;
use gpu_kernels::entries::Entry;
use gpu_kernels::neighbour_scheme::LARGEST_REGULAR;
use gpu_kernels::schedule::block_steps::neighbours::{Phase, clock};

use super::{Resident, Words};
use crate::backend::{ForceError, NeighboursFault, SavedState, Sphere};
use crate::bodies::Bodies;
use crate::force::device::Device;
use crate::force::resident::external::Fielded;
use crate::neighbours;
use crate::plan::Launch;
use crate::plan::neighbours::{self as plan, NeighbourPlan};

/// Buffers of a neighbour scheme.
pub(super) struct Neighbours<D: Device> {
    plan: NeighbourPlan,
    /// True for each body that has mass.
    massive: Vec<bool>,
    /// Radius of the sphere, infinite where all are neighbours, and the regular step that is allowed,
    /// of each body, in local units.
    spheres: D::Buffer,
    regular_steps: D::Buffer,
    records: D::Buffer,
    lists: D::Buffer,
    counts: D::Buffer,
    irregular_targets: D::Buffer,
    regular_targets: D::Buffer,
    irregular_sums: D::Buffer,
    regular_sums: D::Buffer,
    segments: D::Buffer,
}

/// Passes over all pairs in which first radii are fitted to the number of neighbours.
const PASSES: u32 = 6;

impl<D: Device> Resident<D> {
    /// With block time steps of a neighbour scheme, in which about so many neighbours are wanted of each
    /// of the `bodies` that are here.
    ///
    /// # Errors
    /// If it has no block time steps of fourth order, or the kernels do not fit the device, or its memory
    /// is too small.
    pub fn with_neighbours(mut self, wanted: usize, bodies: &Bodies) -> Result<Self, ForceError> {
        let external = self.external.is_some();
        let n = self.params.n;
        let blocks = self.blocks()?;
        if blocks.plan.order != 4 {
            return Err(NeighboursFault::Integrator("hermite6").into());
        }
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(n);
        let slices = blocks.slices();
        let plan = plan::plan(wanted, external, n, slices, &self.device.limits())?;
        for (entry, _) in [plan.force, plan.search, plan.correct, plan.first] {
            self.device.prepare(entry)?;
        }
        let device = &*self.device;
        let (each, bytes) = (n as usize, plan.bytes);
        let neighbours = Neighbours {
            plan,
            massive: bodies.mass.iter().map(|&mass| mass != 0.0).collect(),
            spheres: device.allocate(each * size_of::<[f64; 2]>())?,
            regular_steps: device.allocate(each * size_of::<u64>())?,
            records: device.allocate(bytes.records)?,
            lists: device.allocate(bytes.lists)?,
            counts: device.allocate(each * size_of::<u32>())?,
            irregular_targets: device.allocate(bytes.irregular_targets)?,
            regular_targets: device.allocate(bytes.regular_targets)?,
            irregular_sums: device.allocate(bytes.irregular_sums)?,
            regular_sums: device.allocate(bytes.regular_sums)?,
            segments: device.allocate(bytes.segments)?,
        };
        if let Some(blocks) = &mut self.blocks {
            blocks.neighbours = Some(neighbours);
        }
        Ok(self)
    }

    fn scheme(&self) -> Option<&Neighbours<D>> {
        self.blocks.as_ref()?.neighbours.as_ref()
    }

    fn neighbours(&self) -> Result<&Neighbours<D>, ForceError> {
        self.scheme().ok_or(ForceError::NoBlockSteps)
    }

    /// Puts the constants of a neighbour scheme on the clock of a span.
    pub(super) fn set_neighbour_words(&self, words: &mut Words, eta: f64) {
        let Some(neighbours) = self.scheme() else {
            return;
        };
        let regular = eta.min(LARGEST_REGULAR * LARGEST_REGULAR);
        words[clock::REGULAR_ETA as usize] = regular.to_bits();
        words[clock::WANTED as usize] = neighbours.plan.wanted.into();
        words[clock::ROOM as usize] = neighbours.plan.room.into();
    }

    /// Chooses the spheres and the first steps of all bodies, whose whole forces and their derivatives
    /// are there.
    pub(super) fn begin_neighbours(&mut self) -> Result<(), ForceError> {
        let positions = self.local_positions()?;
        let neighbours = self.neighbours()?;
        let wanted = neighbours.plan.wanted as usize;
        let radii = neighbours::radii(&positions, &neighbours.massive, wanted);
        let spheres: Vec<[f64; 2]> = radii.iter().map(|&radius| [radius, 0.0]).collect();
        self.device.upload(&neighbours.spheres, &spheres)?;
        self.make_lists(Phase::Begin)?;
        for _ in 0..PASSES {
            self.make_lists(Phase::Radii)?;
        }
        self.make_lists(Phase::Settled)?;
        let buffers = [
            &self.state,
            &self.acceleration,
            self.jerks()?.jerk(),
            &self.blocks()?.higher,
            &neighbours.lists,
            &neighbours.counts,
            &neighbours.regular_sums,
            &self.blocks()?.time,
            &neighbours.spheres,
            &self.blocks()?.steps,
        ];
        // SAFETY: the buffers that the kernel names, as the plan sized them.
        unsafe { self.launch_neighbours(neighbours.plan.first, &buffers, Phase::Begin, 0) }
    }

    /// Makes lists of all bodies where they are, and leaves posts of parity 1.
    fn make_lists(&self, phase: Phase) -> Result<(), ForceError> {
        let search = self.neighbours()?.plan.search;
        self.launch_neighbour_correct(phase, 0)?;
        self.launch_neighbour_force(search, Phase::Begin, 1)?;
        self.launch_neighbour_force(search, Phase::Join, 1)
    }

    /// Begins a span: lists, forces, and the first targets.
    ///
    /// Forces are of where bodies are. Those that the last steps left are of where they were predicted; by
    /// how much that of a near pair differs, their regular forces would be wrong for a whole regular
    /// step.
    pub(super) fn begin_span_of_neighbours(&self) -> Result<(), ForceError> {
        let force = self.neighbours()?.plan.force;
        self.launch_neighbour_correct(Phase::Begin, 0)?;
        self.launch_neighbour_force(force, Phase::Begin, 1)?;
        self.launch_neighbour_force(force, Phase::Join, 1)?;
        self.launch_neighbour_correct(Phase::Ready, 1)
    }

    /// A block step.
    pub(super) fn launch_neighbour_step(&self, parity: u16) -> Result<(), ForceError> {
        let force = self.neighbours()?.plan.force;
        self.launch_neighbour_force(force, Phase::Step, parity)?;
        self.launch_neighbour_correct(Phase::Step, parity)
    }

    /// # Safety
    /// The buffers are those of the kernel, in order.
    unsafe fn launch_neighbours(
        &self,
        (entry, launch): (&'static Entry, Launch),
        buffers: &[&D::Buffer],
        phase: Phase,
        parity: u16,
    ) -> Result<(), ForceError> {
        let params = Params {
            blocks: self.neighbours()?.plan.params(phase, parity),
            ..self.params
        };
        // SAFETY: the caller's promise.
        unsafe { self.device.launch(entry, launch, buffers, params) }
    }

    fn launch_neighbour_force(
        &self,
        kernel: (&'static Entry, Launch),
        phase: Phase,
        parity: u16,
    ) -> Result<(), ForceError> {
        let (blocks, neighbours) = (self.blocks()?, self.neighbours()?);
        let buffers = [
            &neighbours.records,
            &neighbours.lists,
            &neighbours.counts,
            &neighbours.irregular_targets,
            &neighbours.regular_targets,
            &blocks.posts,
            &blocks.time,
            &neighbours.irregular_sums,
            &neighbours.segments,
            &neighbours.regular_sums,
        ];
        // SAFETY: the buffers that both kernels name, as the plan sized them.
        unsafe { self.launch_neighbours(kernel, &buffers, phase, parity) }
    }

    fn launch_neighbour_correct(&self, phase: Phase, parity: u16) -> Result<(), ForceError> {
        let (blocks, neighbours) = (self.blocks()?, self.neighbours()?);
        let mut buffers = vec![
            &self.state,
            &self.acceleration,
            self.jerks()?.jerk(),
            &blocks.higher, // whose room regular forces take, for fourth order has no snaps
            &neighbours.spheres,
            &neighbours.regular_steps,
            &blocks.levels,
            &blocks.steps,
            &neighbours.records,
            &neighbours.counts,
            &blocks.posts,
            &blocks.time,
            &neighbours.irregular_targets,
            &neighbours.regular_targets,
            &neighbours.irregular_sums,
            &neighbours.regular_sums,
        ];
        buffers.extend(self.external.as_ref().map(Fielded::numbers));
        // SAFETY: as in `launch_neighbour_force`; fields in the frame of the bodies where the plan's
        // kernel takes them.
        unsafe { self.launch_neighbours(neighbours.plan.correct, &buffers, phase, parity) }
    }

    /// [`SavedState::spheres`]
    pub(in crate::force::resident) fn saved_spheres(&self) -> Result<Vec<Sphere>, ForceError> {
        let blocks = self.blocks.as_ref().filter(|blocks| blocks.has_steps);
        let Some(neighbours) = blocks.and_then(|_| self.scheme()) else {
            return Ok(vec![]);
        };
        let mut spheres = vec![[f64::NAN; 2]; self.params.n as usize];
        self.device.download(&neighbours.spheres, &mut spheres)?;
        let saved = |[radius, step]: [f64; 2]| Sphere {
            radius: radius * self.frame.length,
            regular_step: step * self.frame.time,
        };
        Ok(spheres.into_iter().map(saved).collect())
    }

    /// Inverse of [`saved_spheres`](Self::saved_spheres); true if there are any, or none are needed.
    pub(super) fn restore_spheres(&self, saved: &SavedState) -> Result<bool, ForceError> {
        let Some(neighbours) = self.scheme() else {
            return Ok(true);
        };
        if saved.spheres.is_empty() {
            return Ok(false);
        }
        let local = |sphere: &Sphere| {
            let step = sphere.regular_step / self.frame.time;
            [sphere.radius / self.frame.length, step]
        };
        let spheres: Vec<[f64; 2]> = saved.spheres.iter().map(local).collect();
        self.device.upload(&neighbours.spheres, &spheres)?;
        Ok(true)
    }

    /// True if it has a neighbour scheme.
    pub(in crate::force::resident) fn has_neighbours(&self) -> bool {
        self.scheme().is_some()
    }
}
