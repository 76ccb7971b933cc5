//! Device that computes forces on what the host tells: bodies that begin a step, and bodies that forces are wanted on.

use std::cell::RefCell;

use cuda_driver::Graph;
use gpu_kernels::entries::Buffer;
use gpu_kernels::schedule::block_steps::{Phase, TOLD_HEAD, told_of_body};

use super::Resident;
use crate::backend::{ForceError, GUARD, HighestDerivative};
use crate::force::device::Device;
use crate::force::host_state::Beginning;
use crate::force::in_memory::{Block, Forces, order};
use crate::frame::Frame;
use crate::parallel;
use crate::plan::block_steps::{BlockKernels, BlockScheme, Part};
use crate::variants::Bus;

/// Distance, in units of length of the frame, at which bodies without mass are: they must be near nobody.
pub(super) const AWAY: f64 = (1_u64 << 40) as f64;

/// A body that is at the origin and stays there.
pub(super) const AT_REST: Beginning = Beginning {
    x: [0.0; 3],
    v: [0.0; 3],
    a: [0.0; 3],
    j: [0.0; 3],
    s: [0.0; 3],
    c: [0.0; 3],
};

/// Records that one thread writes sooner than others are woken.
const RECORDS_OF_A_TASK: usize = 256;

/// Vector and another number of a record.
type Told = [f64; 4];

/// Bodies on a device, which computes forces on some of them.
pub(super) struct ForceDevice<D: Device> {
    /// Launches of a force of fourth order, and of sixth. First, because fields are dropped in order, and a graph
    /// before what its launches use.
    records: RefCell<[Option<Graph>; 2]>,
    pub(super) resident: Resident<D>,
}

impl<D: Device> ForceDevice<D> {
    /// Has a device compute the forces of a scheme's steps.
    ///
    /// # Errors
    /// As [`with_block_steps`](Resident::with_block_steps).
    pub(super) fn new(resident: Resident<D>, scheme: BlockScheme) -> Result<Self, ForceError> {
        let mut resident = resident.with_part_of_block_steps(scheme, Part::Forces, GUARD)?;
        for (name, bytes) in resident.blocks()?.plan.buffers_for_host() {
            let buffer = resident.device.allocate_for_host(bytes, Bus::Mapped)?;
            resident.memory.put(name, buffer);
        }
        Ok(Self {
            records: RefCell::default(),
            resident,
        })
    }

    /// See [`Device::few_pairs`].
    pub(super) fn few_pairs(&self) -> u64 {
        self.resident.device.few_pairs()
    }

    /// Forces on what the host tells.
    fn launch_force(&self, kernels: &BlockKernels) -> Result<(), ForceError> {
        let resident = &self.resident;
        let take_over = kernels.take_over.ok_or(ForceError::NoBlockSteps)?;
        let params = resident.block_params(kernels, Phase::Step, 0)?;
        resident.launch(take_over, params)?;
        resident.launch_block_force(kernels, 0)?;
        resident.launch_block_gather(kernels, 0, Buffer::row)
    }

    /// Launches forces on slots. Steps of the bodies that changed, which are in order, begin from what `begun` says.
    pub(super) fn launch(
        &self,
        derivatives: HighestDerivative,
        block: Block<'_>,
        changed: &[usize],
        slots: &[usize],
        (masses, begun): (&[f64], &(impl Fn(usize) -> Beginning + Sync)),
    ) -> Result<(), ForceError> {
        let resident = &self.resident;
        let (kernels, which) = self.kernels(derivatives)?;
        let frame = block.frame;
        let [of_a, of_j, of_s, of_c] = [2, 3, 4, 5].map(|k| frame.time.powi(k) / frame.length);
        let record = |told: &mut [Told], i: usize| {
            let is_free = masses[i] == 0.0;
            let Beginning { x, v, a, j, s, c } = match is_free {
                true => AT_REST,
                false => begun(i),
            };
            let place = match is_free {
                true => [AWAY, 0.0, 0.0],
                false => frame.position_to_local(x),
            };
            let with = |[x, y, z]: [f64; 3], w| [x, y, z, w];
            let scaled = |[x, y, z]: [f64; 3], unit: f64, w| [x * unit, y * unit, z * unit, w];
            let mass = frame.mass_to_local(masses[i]);
            told[0] = with(place, mass);
            told[1] = with(frame.velocity_to_local(v), i as f64);
            told[2] = scaled(a, of_a, block.begun[i] as f64);
            told[3] = scaled(j, of_j, 0.0);
            if let [.., snap, crackle] = &mut told[4..] {
                *snap = scaled(s, of_s, 0.0);
                *crackle = scaled(c, of_c, 0.0);
            }
        };
        let told = resident.of(Buffer::told);
        // At most n bodies, each once, and at most n targets.
        resident.device.on_host(told, &mut |bytes| {
            let told: &mut [Told] = bytemuck::cast_slice_mut(bytes);
            let (head, bodies) = told.split_at_mut(TOLD_HEAD as usize);
            // Before the first tick all are where their steps begin.
            let (before, span) = match block.now {
                0 => (0, 0.0),
                now => (now - 1, frame.time_to_local(block.span)),
            };
            let counts = [changed.len(), slots.len()].map(|count| count as f64);
            head[0] = [counts[0], counts[1], before as f64, span];
            let size = told_of_body(kernels.order) as usize;
            let (changes, targets) = bodies.split_at_mut(size * changed.len());
            let mut records: Vec<_> = changes.chunks_exact_mut(size).collect();
            parallel::change(&mut records, RECORDS_OF_A_TASK, |k, told| {
                record(told, changed[k])
            });
            let targets = &mut targets.as_flattened_mut()[..slots.len()];
            parallel::change(targets, RECORDS_OF_A_TASK, |k, target| {
                *target = match changed.binary_search(&slots[k]) {
                    Ok(place) => -1.0 - place as f64,
                    Err(_) => slots[k] as f64,
                };
            });
        })?;
        // SAFETY: `self` holds the buffers as long as the record.
        unsafe {
            let mut all = || self.launch_force(&kernels);
            let kept = &mut self.records.borrow_mut()[which];
            resident.device.again(kept, &mut all)
        }
    }

    /// Kernels that compute these derivatives, and the place of their record.
    fn kernels(&self, derivatives: HighestDerivative) -> Result<(BlockKernels, usize), ForceError> {
        let plan = self.resident.blocks()?.plan;
        Ok(match (derivatives, plan.order) {
            (HighestDerivative::Snap, _) | (_, 6) => (plan.first, 1),
            _ => (plan.steps, 0),
        })
    }

    /// Waits for the forces on a number of slots that were launched last.
    pub(super) fn collect(
        &self,
        wanted: HighestDerivative,
        frame: &Frame,
        count: usize,
    ) -> Result<Vec<Forces>, ForceError> {
        let resident = &self.resident;
        let (kernels, _) = self.kernels(wanted)?;
        let coupling = frame.coupling_to_local(&resident.physics);
        let units = [2, 3, 4].map(|k| coupling * frame.length / frame.time.powi(k));
        let row = kernels.row_bytes() / size_of::<Told>();
        let mut forces = vec![];
        let row_of_all = resident.of(Buffer::row);
        resident.device.on_host(row_of_all, &mut |bytes| {
            let sums: &[Told] = bytemuck::cast_slice(bytes);
            let of = |sums: &[Told]| {
                let mut derivatives = [[0.0; 3]; 3];
                let vectors = derivatives[..=order(wanted)].iter_mut();
                for ((into, &[x, y, z, _]), unit) in vectors.zip(sums).zip(units) {
                    *into = [x, y, z].map(|sum| unit * sum);
                }
                Forces {
                    derivatives,
                    // The device has three times the rate.
                    approach: sums[0][3] / (3.0 * frame.time),
                    nearest: frame.length / sums[1][3].sqrt(),
                }
            };
            forces = parallel::each(count, RECORDS_OF_A_TASK, |k| of(&sums[k * row..][..row]));
        })?;
        Ok(forces)
    }
}
