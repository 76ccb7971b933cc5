//! The plan of regular forces that the host launches: [kernels](gpu_kernels::schedule::block_steps::neighbours::regular)
//! in place of a sweep over all pairs.

use gpu_kernels::abi::{BlockStep, Params, Separation, Tiling};
use gpu_kernels::entries::{self, Entry, Work};
use gpu_kernels::schedule::block_steps::neighbours::regular::{
    FAR_SHARED_BYTES, FAR_VECTORS, GROUP, LEAF, LEAF_VECTORS, RegularStage, TENSOR_SHARED_BYTES,
    THREADS, WARPS, groups_of, leaves_of, words_of,
};
use gpu_kernels::schedule::block_steps::neighbours::{Phase, control_bytes};
use gpu_kernels::schedule::spatial_sort::SortStage;

use super::neighbours::{LONGEST, NeighbourPlan, of_parity};
use super::{Buffer, Launch, Limits, PlanError, Sizes, Step, spatial_sort};

/// Warps that fill a device several times.
const WARPS_OF_A_DEVICE: u32 = 16_384;

/// Parts that the leaves are in at most.
const MOST_PARTS: u32 = 256;

/// How regular forces of a number of bodies are launched.
#[derive(Clone, Copy, Debug)]
pub struct RegularPlan {
    n: u32,
    slices: u32,
    threads: u32,
    /// Room of a list of neighbours.
    pub room: u32,
    /// True if tensor cores compute accelerations of far leaves.
    on_tensor: bool,
    limits: Limits,
}

impl RegularPlan {
    /// For n bodies in slices, with blocks of a number of threads where a block has a slice.
    pub fn new(wanted: u32, n: u32, (slices, threads): (u32, u32), limits: &Limits) -> Self {
        let mean = LONGEST * f64::from(wanted);
        let room = (mean + 6.0 * mean.sqrt()).ceil() as u32;
        Self {
            n,
            slices,
            threads,
            room: room.min(n),
            on_tensor: true,
            limits: *limits,
        }
    }

    /// The kernel of tensor cores, which older GPUs do not have.
    pub fn tensor() -> &'static Entry {
        entries::of(Work::NeighbourRegular(RegularStage::Tensor))
    }

    /// With tensor cores, or all accelerations in f32.
    #[must_use]
    pub fn with_tensor_cores(self, on_tensor: bool) -> Self {
        Self { on_tensor, ..self }
    }

    /// Parts of the leaves that let the warps of all groups fill a device.
    fn parts_of(n: u32, groups: u32) -> u32 {
        let wanted = WARPS_OF_A_DEVICE.div_ceil(groups).next_power_of_two();
        let useful = words_of(n).next_power_of_two();
        wanted.min(MOST_PARTS).min(useful)
    }

    /// Launches that compute the forces on a number of targets in a phase and parity, or lists alone in
    /// [`Phase::Radii`], with the scalars of each.
    ///
    /// # Errors
    /// If a launch would be refused by the device.
    pub fn launches(
        &self,
        plan: &NeighbourPlan,
        targets: u32,
        (phase, parity): (Phase, u16),
        params: Params,
    ) -> Result<Vec<(Step, Params)>, PlanError> {
        if targets == 0 {
            return Ok(vec![]);
        }
        let groups = groups_of(targets);
        let parts = Self::parts_of(self.n, groups);
        let params = Params {
            blocks: BlockStep {
                parity,
                phase: phase as u8,
                devices: 0,
                chunk: 0,
            },
            share: plan.share,
            partials: targets,
            tiling: Tiling {
                side: self.room,
                parts,
            },
            separation: Separation {
                gap: if self.on_tensor { 0.0 } else { f64::INFINITY },
                ..params.separation
            },
            ..params
        };
        let launch = |stage, blocks, (threads, shared_bytes)| {
            let step = Step::Launch {
                entry: entries::of(Work::NeighbourRegular(stage)),
                launch: Launch {
                    grid: [blocks, 1, 1],
                    block: [threads, 1, 1],
                    shared_bytes,
                },
                renamed: of_parity(parity),
            };
            (step, params)
        };
        let of_slices = (self.threads, control_bytes(self.threads, self.slices));
        let mut all = vec![launch(RegularStage::Predict, self.slices, of_slices)];
        for (count, renamed) in [
            (self.n, &[(Buffer::state, Buffer::positions)][..]),
            (
                targets,
                &[
                    (Buffer::state, Buffer::target_positions),
                    (Buffer::order, Buffer::target_order),
                ],
            ),
        ] {
            let stage = |stage: SortStage| entries::of(Work::SpatialSort(stage));
            let steps = spatial_sort::order(&stage, count, renamed, &self.limits)?;
            let params = Params { n: count, ..params };
            all.extend(steps.into_iter().map(|step| (step, params)));
        }
        let blocks_of_leaves = leaves_of(self.n).div_ceil(WARPS);
        let blocks_of_groups = groups.div_ceil(WARPS) * parts;
        all.push(launch(RegularStage::Leaves, blocks_of_leaves, (THREADS, 0)));
        all.push(launch(
            RegularStage::Far,
            blocks_of_groups,
            (THREADS, FAR_SHARED_BYTES),
        ));
        if self.on_tensor && phase != Phase::Radii {
            all.push(launch(
                RegularStage::Tensor,
                blocks_of_groups,
                (THREADS, TENSOR_SHARED_BYTES),
            ));
        }
        all.push(launch(
            RegularStage::Lists,
            targets.div_ceil(WARPS),
            (THREADS, 0),
        ));
        Ok(all)
    }

    /// The kernels.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        use RegularStage::*;
        use SortStage::*;
        let of_order = [Keys, Count, Scan, Scatter, Halve].map(Work::SpatialSort);
        let regular = [Predict, Leaves, Far, Lists].map(Work::NeighbourRegular);
        let tensor = self.on_tensor.then(Self::tensor);
        let all = of_order.into_iter().chain(regular).map(entries::of);
        all.chain(tensor)
    }

    /// Buffers that regular forces add to the neighbour scheme.
    pub fn buffers(&self) -> Sizes {
        let vectors = |count: usize| count * 4 * size_of::<f32>();
        let (bodies, leaves) = (self.n as usize, leaves_of(self.n) as usize);
        let bits = groups_of(self.n) as usize * words_of(self.n) as usize * size_of::<u32>();
        let most_sums = (1..=groups_of(self.n))
            .map(|groups| groups as usize * Self::parts_of(self.n, groups) as usize)
            .max();
        let sums = most_sums.unwrap_or(0) * (GROUP * FAR_VECTORS) as usize;
        let mut all = spatial_sort::order_scratch(self.n);
        all.extend([
            (Buffer::target_order, bodies * size_of::<u32>()),
            (Buffer::positions, vectors(bodies)),
            (Buffer::velocities, vectors(bodies)),
            (Buffer::target_positions, vectors(bodies)),
            (Buffer::target_velocities, vectors(bodies)),
            (Buffer::along_curve, vectors(leaves * LEAF as usize)),
            (Buffer::moving, vectors(leaves * LEAF as usize)),
            (Buffer::leaves, vectors(leaves * LEAF_VECTORS as usize)),
            (Buffer::near, bits),
            (Buffer::on_tensor, bits),
            (Buffer::far, vectors(sums)),
        ]);
        all
    }
}
