//! Block time steps with a neighbour scheme on a device: what they keep beside those without, and the
//! launches of a span, which are the same where several devices share the bodies.

use gpu_kernels::abi::Params;
use gpu_kernels::entries::Buffer;
use gpu_kernels::neighbour_scheme::LARGEST_REGULAR;
use gpu_kernels::schedule::block_steps::neighbours::{Phase, clock};

use super::{RECORDED, Resident, Words};
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::force::device::Device;
use crate::neighbours;
use crate::plan::Kernel;
use crate::plan::block_steps::Part;
use crate::plan::neighbours::{self as plan, NeighbourPlan, RegularForces};

/// A neighbour scheme: its launches, and what a device knows of it.
pub(in crate::force::resident) struct Neighbours {
    pub(in crate::force::resident) plan: NeighbourPlan,
    /// True for each body that has mass.
    massive: Vec<bool>,
}

/// Parity of the sums that the ends of steps read.
pub(in crate::force::resident) const fn parity_of_sums(phase: Phase, parity: u16) -> u16 {
    match phase {
        Phase::Step => parity,
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
        let mut plan = plan::plan((wanted, forces), part, external, n, slices, &limits)?;
        let kernels = [plan.force, plan.search, plan.correct, plan.first];
        for (entry, _) in kernels.into_iter().chain(plan.step) {
            self.device.prepare(entry)?;
        }
        if let Some(regular) = &mut plan.regular {
            *regular = self.prepared(*regular)?;
        }
        self.memory.allocate(&self.device, &plan.buffers(n))?;
        let massive = bodies.mass.iter().map(|&mass| mass != 0.0).collect();
        if let Some(blocks) = &mut self.blocks {
            blocks.neighbours = Some(Neighbours { plan, massive });
        }
        Ok(self)
    }

    pub(in crate::force::resident) fn scheme(&self) -> Option<&Neighbours> {
        self.blocks.as_ref()?.neighbours.as_ref()
    }

    pub(in crate::force::resident) fn neighbours(&self) -> Result<&Neighbours, ForceError> {
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
        words[clock::BY_HOST as usize] = neighbours.plan.regular.is_some().into();
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
        self.device.upload(self.of(Buffer::spheres), &spheres)
    }

    /// Chooses the first steps of the bodies whose lists this device has.
    pub(in crate::force::resident) fn launch_neighbour_first(&self) -> Result<(), ForceError> {
        let sums = parity_of_sums(Phase::Begin, 1);
        self.launch_neighbours(self.neighbours()?.plan.first, (Phase::Begin, 0), sums)
    }

    /// The first steps that this device has chosen, in the order of places.
    pub(in crate::force::resident) fn own_first_steps(&self) -> Result<Vec<FirstStep>, ForceError> {
        let (neighbours, n) = (self.neighbours()?, self.params.n);
        let (mut steps, mut spheres) =
            (vec![f64::NAN; n as usize], vec![[f64::NAN; 2]; n as usize]);
        self.device.download(self.of(Buffer::steps), &mut steps)?;
        self.device
            .download(self.of(Buffer::spheres), &mut spheres)?;
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
        let (neighbours, n) = (self.neighbours()?, self.params.n);
        let (mut steps, mut spheres) =
            (vec![f64::NAN; n as usize], vec![[f64::NAN; 2]; n as usize]);
        for (body, &[step, radius, regular]) in neighbours.plan.by_places(n).zip(all) {
            steps[body as usize] = step;
            spheres[body as usize] = [radius, regular];
        }
        self.device.upload(self.of(Buffer::steps), &steps)?;
        self.device.upload(self.of(Buffer::spheres), &spheres)
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

    /// Launches a kernel on the sums of the parity `sums`.
    fn launch_neighbours(
        &self,
        kernel: Kernel,
        (phase, parity): (Phase, u16),
        sums: u16,
    ) -> Result<(), ForceError> {
        let params = self.neighbour_params(phase, parity, 0)?;
        self.memory
            .launch_renamed(&self.device, kernel, &plan::of_parity(sums), params)
    }

    /// Takes block step `number` of those that are launched one after another, if it is one of those in which no
    /// regular step ends.
    pub(super) fn launch_plain_step(&self, number: u16) -> Result<bool, ForceError> {
        let plan = self.scheme().and_then(|neighbours| neighbours.plan.step);
        let Some(step) = plan.filter(|_| number % IN_A_ROW < PLAIN) else {
            return Ok(false);
        };
        let parity = number % 2;
        self.launch_neighbours(step, (Phase::Step, parity), parity)?;
        Ok(true)
    }

    /// True if it has a neighbour scheme.
    pub(in crate::force::resident) fn has_neighbours(&self) -> bool {
        self.scheme().is_some()
    }
}

impl<D: Device> NeighbourLaunches for Resident<D> {
    fn make_lists(&self, search: bool, phase: Phase) -> Result<(), ForceError> {
        if self.neighbours()?.plan.regular.is_none() {
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
        let plan = &self.neighbours()?.plan;
        let kernel = match search {
            true => plan.search,
            false => plan.force,
        };
        self.launch_neighbours(kernel, (phase, parity), parity)?;
        Ok(true)
    }

    fn launch_neighbour_corrects(&self, phase: Phase, parity: u16) -> Result<(), ForceError> {
        let (kernel, sums) = (
            self.neighbours()?.plan.correct,
            parity_of_sums(phase, parity),
        );
        self.launch_neighbours(kernel, (phase, parity), sums)
    }
}
