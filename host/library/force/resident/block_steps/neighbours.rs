//! Block time steps with a neighbour scheme on a device: what they keep beside those without, and the
//! launches of a span, which are the same where several devices share the bodies.

use gpu_kernels::abi::Params;
use gpu_kernels::entries::Entry;
use gpu_kernels::neighbour_scheme::LARGEST_REGULAR;
use gpu_kernels::schedule::block_steps::neighbours::{Phase, clock};

use super::regular::Regular;
use super::{RECORDED, Resident, Words};
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::force::device::Device;
use crate::force::resident::external::Fielded;
use crate::neighbours;
use crate::plan::Launch;
use crate::plan::block_steps::Part;
use crate::plan::neighbours::{self as plan, NeighbourPlan, RegularForces};

/// Buffers of a neighbour scheme.
pub(in crate::force::resident) struct Neighbours<D: Device> {
    pub(in crate::force::resident) plan: NeighbourPlan,
    /// True for each body that has mass.
    massive: Vec<bool>,
    /// Radius of the sphere, infinite where all are neighbours, and the regular step that is allowed,
    /// of each body, in local units.
    pub(in crate::force::resident) spheres: D::Buffer,
    regular_steps: D::Buffer,
    pub(super) records: D::Buffer,
    pub(super) lists: D::Buffer,
    pub(super) counts: D::Buffer,
    irregular_targets: D::Buffer,
    pub(super) regular_targets: D::Buffer,
    /// Of the block steps of both parities: those of one are read while those of the next are written.
    pub(in crate::force::resident) sums: [Sums<D>; 2],
    segments: D::Buffer,
    /// Of regular forces that the host launches.
    pub(super) regular: Option<Regular<D>>,
}

/// Sums of targets.
pub(in crate::force::resident) struct Sums<D: Device> {
    /// Over neighbours.
    pub(in crate::force::resident) irregular: D::Buffer,
    /// Over all others, and over the new list, where regular steps end.
    pub(in crate::force::resident) regular: D::Buffer,
}

/// Parity of the sums that the ends of steps read.
pub(in crate::force::resident) fn parity_of_sums(phase: Phase, parity: u16) -> usize {
    match phase {
        Phase::Step => parity.into(),
        _ => 1, // those of the lists of all bodies
    }
}

/// Block steps in a row, of which the first [`PLAIN`] may only be those in which no regular step ends, if these are in
/// one launch. A regular step takes three of the others.
const IN_A_ROW: u16 = 32;
const PLAIN: u16 = IN_A_ROW - 3;

// No record ends between the launches of a regular step: the next would begin with a plain one, which no targets await.
const _: () = assert!(RECORDED.is_multiple_of(IN_A_ROW));

/// Passes over all pairs in which first radii are fitted to the number of neighbours.
const PASSES: u32 = 6;

/// Launches of a neighbour scheme, on one device or on all that share the bodies.
pub(in crate::force::resident) trait NeighbourLaunches {
    /// Launches forces, or lists alone if `search`; what is launched after it may read the sums of all devices. False
    /// where ranks know that the span is over.
    fn launch_neighbour_forces(
        &self,
        search: bool,
        phase: Phase,
        parity: u16,
    ) -> Result<bool, ForceError>;

    /// Launches the ends of steps.
    fn launch_neighbour_corrects(&self, phase: Phase, parity: u16) -> Result<(), ForceError>;

    /// Begins a span: lists, forces, and the first targets.
    ///
    /// Forces are of where bodies are. Those that the last steps left are of where they were predicted; by
    /// how much that of a near pair differs, their regular forces would be wrong for a whole regular
    /// step.
    fn begin_span_of_neighbours(&self) -> Result<(), ForceError> {
        self.make_lists(false, Phase::Begin)?;
        self.launch_neighbour_corrects(Phase::Ready, 1)
    }

    /// Fits the spheres of all bodies to the number of neighbours that are wanted, and makes their lists.
    fn fit_spheres(&self) -> Result<(), ForceError> {
        self.make_lists(true, Phase::Begin)?;
        for _ in 0..PASSES {
            self.make_lists(true, Phase::Radii)?;
        }
        self.make_lists(true, Phase::Settled)
    }

    /// Makes lists of all bodies where they are, with forces or alone, and leaves posts of parity 1.
    fn make_lists(&self, search: bool, phase: Phase) -> Result<(), ForceError> {
        self.sweep_lists(search, phase)
    }

    /// Like [`make_lists`](Self::make_lists), by blocks that sweep their slices.
    fn sweep_lists(&self, search: bool, phase: Phase) -> Result<(), ForceError> {
        self.launch_neighbour_corrects(phase, 0)?;
        self.launch_neighbour_forces(search, Phase::Begin, 1)?;
        self.launch_neighbour_forces(search, Phase::Join, 1)?;
        Ok(())
    }

    /// A block step; false where ranks know that the span is over.
    fn launch_neighbour_step(&self, parity: u16) -> Result<bool, ForceError> {
        let goes_on = self.launch_neighbour_forces(false, Phase::Step, parity)?;
        self.launch_neighbour_corrects(Phase::Step, parity)?;
        Ok(goes_on)
    }
}

/// Step of a body, the radius of its sphere and its regular step, in local units, as they are first chosen.
pub(in crate::force::resident) type FirstStep = [f64; 3];

impl<D: Device> Resident<D> {
    /// With block time steps of a neighbour scheme, in which about so many neighbours are wanted of each
    /// of the `bodies` that are here.
    ///
    /// # Errors
    /// If it has no block time steps of fourth order, or the kernels do not fit the device, or its memory
    /// is too small.
    pub fn with_neighbours(self, wanted: u32, bodies: &Bodies) -> Result<Self, ForceError> {
        let forces = RegularForces::fastest(true, self.params.n);
        self.with_part_of_neighbours((wanted, forces), Part::Alone, bodies)
    }

    /// As [`with_neighbours`](Self::with_neighbours), of which this device may have a part.
    pub(in crate::force::resident) fn with_part_of_neighbours(
        mut self,
        (wanted, forces): (u32, RegularForces),
        part: Part,
        bodies: &Bodies,
    ) -> Result<Self, ForceError> {
        let external = self.external.is_some();
        let n = self.params.n;
        let blocks = self.blocks()?;
        assert_eq!(
            blocks.plan.order, 4,
            "neighbour schemes are of fourth order"
        );
        let wanted = wanted.min(n);
        let slices = blocks.slices();
        let limits = self.device.limits();
        let plan = plan::plan((wanted, forces), part, external, n, slices, &limits)?;
        let kernels = [plan.force, plan.search, plan.correct, plan.first];
        for (entry, _) in kernels.into_iter().chain(plan.step) {
            self.device.prepare(entry)?;
        }
        let device = &*self.device;
        let (each, bytes) = (n as usize, plan.bytes);
        let sums = || -> Result<_, ForceError> {
            Ok(Sums {
                irregular: device.allocate(bytes.irregular_sums)?,
                regular: device.allocate(bytes.regular_sums)?,
            })
        };
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
            sums: [sums()?, sums()?],
            segments: device.allocate(bytes.segments)?,
            regular: plan.regular.map(|plan| self.regular(plan)).transpose()?,
        };
        if let Some(blocks) = &mut self.blocks {
            blocks.neighbours = Some(neighbours);
        }
        Ok(self)
    }

    pub(in crate::force::resident) fn scheme(&self) -> Option<&Neighbours<D>> {
        self.blocks.as_ref()?.neighbours.as_ref()
    }

    pub(in crate::force::resident) fn neighbours(&self) -> Result<&Neighbours<D>, ForceError> {
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
        words[clock::LIST as usize] = neighbours.plan.entries.into();
        words[clock::BY_HOST as usize] = neighbours.regular.is_some().into();
        words[clock::IN_ONE as usize] = neighbours.plan.step.is_some().into();
    }

    /// Chooses the spheres and the first steps of all bodies, whose whole forces and their derivatives
    /// are there.
    pub(super) fn begin_neighbours(&mut self) -> Result<(), ForceError> {
        self.set_radii(&self.first_radii()?)?;
        self.fit_spheres()?;
        self.launch_neighbour_first()
    }

    /// Radii that spheres are fitted from, in local units.
    pub(in crate::force::resident) fn first_radii(&self) -> Result<Vec<f64>, ForceError> {
        let (positions, neighbours) = (self.local_positions()?, self.neighbours()?);
        let wanted = neighbours.plan.wanted as usize;
        Ok(neighbours::radii(&positions, &neighbours.massive, wanted))
    }

    /// Gives bodies the spheres that are fitted.
    pub(in crate::force::resident) fn set_radii(&self, radii: &[f64]) -> Result<(), ForceError> {
        let spheres: Vec<[f64; 2]> = radii.iter().map(|&radius| [radius, 0.0]).collect();
        self.device.upload(&self.neighbours()?.spheres, &spheres)
    }

    /// Chooses the first steps of the bodies whose lists this device has.
    pub(in crate::force::resident) fn launch_neighbour_first(&self) -> Result<(), ForceError> {
        let neighbours = self.neighbours()?;
        let buffers = [
            &self.state,
            &self.acceleration,
            self.jerks()?.jerk(),
            &self.blocks()?.higher,
            &neighbours.lists,
            &neighbours.counts,
            &neighbours.sums[parity_of_sums(Phase::Begin, 1)].regular,
            &self.blocks()?.time,
            &neighbours.spheres,
            &self.blocks()?.steps,
        ];
        // SAFETY: the buffers that the kernel names, as the plan sized them.
        unsafe { self.launch_neighbours(neighbours.plan.first, &buffers, Phase::Begin, 0) }
    }

    /// The first steps that this device has chosen, in the order of places.
    pub(in crate::force::resident) fn own_first_steps(&self) -> Result<Vec<FirstStep>, ForceError> {
        let (blocks, neighbours, n) = (self.blocks()?, self.neighbours()?, self.params.n);
        let (mut steps, mut spheres) =
            (vec![f64::NAN; n as usize], vec![[f64::NAN; 2]; n as usize]);
        self.device.download(&blocks.steps, &mut steps)?;
        self.device.download(&neighbours.spheres, &mut spheres)?;
        let own = neighbours.plan.places(n);
        let bodies = neighbours.plan.by_places(n).skip(own.start).take(own.len());
        let step = |body: u32| {
            let [radius, regular] = spheres[body as usize];
            [steps[body as usize], radius, regular]
        };
        Ok(bodies.map(step).collect())
    }

    /// Gives all bodies their first steps, which are in the order of places.
    pub(in crate::force::resident) fn set_first_steps(
        &self,
        all: &[FirstStep],
    ) -> Result<(), ForceError> {
        let (blocks, neighbours, n) = (self.blocks()?, self.neighbours()?, self.params.n);
        let (mut steps, mut spheres) =
            (vec![f64::NAN; n as usize], vec![[f64::NAN; 2]; n as usize]);
        for (body, &[step, radius, regular]) in neighbours.plan.by_places(n).zip(all) {
            steps[body as usize] = step;
            spheres[body as usize] = [radius, regular];
        }
        self.device.upload(&blocks.steps, &steps)?;
        self.device.upload(&neighbours.spheres, &spheres)
    }

    pub(in crate::force::resident) fn neighbour_params(
        &self,
        phase: Phase,
        parity: u16,
        devices: u8,
    ) -> Result<Params, ForceError> {
        let plan = &self.neighbours()?.plan;
        Ok(Params {
            blocks: plan.params(phase, parity, devices),
            share: plan.share,
            ..self.params
        })
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
        let params = self.neighbour_params(phase, parity, 0)?;
        // SAFETY: the caller's promise.
        unsafe { self.device.launch(entry, launch, buffers, params) }
    }

    /// Takes block step `number` of those that are launched one after another, if it is one of those in which no
    /// regular step ends.
    pub(super) fn launch_plain_step(&self, number: u16) -> Result<bool, ForceError> {
        let plan = self.scheme().and_then(|neighbours| neighbours.plan.step);
        let Some(step) = plan.filter(|_| number % IN_A_ROW < PLAIN) else {
            return Ok(false);
        };
        let neighbours = self.neighbours()?;
        let mut buffers = self.of_own_bodies()?;
        buffers.extend([&neighbours.lists, &neighbours.counts]);
        buffers.extend(self.external.as_ref().map(Fielded::numbers));
        // SAFETY: the kernel's buffers, as the plan sized them; fields in the frame of the bodies where the plan's kernel
        // takes them.
        unsafe { self.launch_neighbours(step, &buffers, Phase::Step, number % 2)? };
        Ok(true)
    }

    /// Buffers of what blocks have of their own bodies, in the order of kernels that end steps.
    fn of_own_bodies(&self) -> Result<Vec<&D::Buffer>, ForceError> {
        let (blocks, neighbours) = (self.blocks()?, self.neighbours()?);
        Ok(vec![
            &self.state,
            &self.acceleration,
            self.jerks()?.jerk(),
            &blocks.higher, // whose room regular forces take, for fourth order has no snaps
            &neighbours.spheres,
            &neighbours.regular_steps,
            &blocks.levels,
            &blocks.steps,
            &neighbours.records,
            &blocks.posts,
            &blocks.time,
        ])
    }

    /// Buffers of the ends of steps, in order, with these sums or their addresses.
    pub(in crate::force::resident) fn of_neighbour_correct<'a>(
        &'a self,
        sums: &'a Sums<D>,
    ) -> Result<Vec<&'a D::Buffer>, ForceError> {
        let neighbours = self.neighbours()?;
        let mut buffers = self.of_own_bodies()?;
        buffers.extend([
            &neighbours.irregular_targets,
            &neighbours.regular_targets,
            &sums.irregular,
            &sums.regular,
        ]);
        buffers.extend(self.external.as_ref().map(Fielded::numbers));
        Ok(buffers)
    }

    /// True if it has a neighbour scheme.
    pub(in crate::force::resident) fn has_neighbours(&self) -> bool {
        self.scheme().is_some()
    }
}

impl<D: Device> NeighbourLaunches for Resident<D> {
    fn make_lists(&self, search: bool, phase: Phase) -> Result<(), ForceError> {
        if self.neighbours()?.regular.is_none() {
            return self.sweep_lists(search, phase);
        }
        self.launch_neighbour_corrects(phase, 0)?;
        let forces = match search {
            true => Phase::Radii,
            false => Phase::Begin,
        };
        self.launch_regular_forces(self.params.n, forces, 1)
    }

    fn launch_neighbour_forces(
        &self,
        search: bool,
        phase: Phase,
        parity: u16,
    ) -> Result<bool, ForceError> {
        let (blocks, neighbours) = (self.blocks()?, self.neighbours()?);
        let kernel = match search {
            true => neighbours.plan.search,
            false => neighbours.plan.force,
        };
        let sums = &neighbours.sums[usize::from(parity)];
        let buffers = [
            &neighbours.records,
            &neighbours.lists,
            &neighbours.counts,
            &neighbours.irregular_targets,
            &neighbours.regular_targets,
            &blocks.posts,
            &blocks.time,
            &sums.irregular,
            &neighbours.sums[usize::from(parity ^ 1)].irregular,
            &neighbours.segments,
            &sums.regular,
        ];
        // SAFETY: the buffers that both kernels name, as the plan sized them.
        unsafe { self.launch_neighbours(kernel, &buffers, phase, parity) }?;
        Ok(true)
    }

    fn launch_neighbour_corrects(&self, phase: Phase, parity: u16) -> Result<(), ForceError> {
        let neighbours = self.neighbours()?;
        let buffers = self.of_neighbour_correct(&neighbours.sums[parity_of_sums(phase, parity)])?;
        // SAFETY: as in `launch_neighbour_forces`; fields in the frame of the bodies where the plan's
        // kernel takes them.
        unsafe { self.launch_neighbours(neighbours.plan.correct, &buffers, phase, parity) }
    }
}
