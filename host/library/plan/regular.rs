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

use super::neighbours::{LONGEST, NeighbourPlan};
use super::spatial_sort::{self, SortBuffer};
use super::{Buffer, Launch, Limits, PlanError, Step};

/// Warps that fill a device several times.
const WARPS_OF_A_DEVICE: u32 = 16_384;

/// Parts that the leaves are in at most.
const MOST_PARTS: u32 = 256;

/// A buffer of these launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegularBuffer {
    /// Records of all bodies.
    Records,
    /// Targets.
    Targets,
    /// Posts of all blocks.
    Posts,
    /// The clock.
    Time,
    /// Lists of neighbours.
    Lists,
    /// The lengths of the lists.
    Counts,
    /// Sums of the targets.
    Sums,
    /// One of the launches' own.
    Own(OwnBuffer),
    /// Of the order of all bodies.
    OrderOfBodies(usize),
    /// Of the order of the targets.
    OrderOfTargets(usize),
}

/// Buffers that nobody else has, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnBuffer {
    /// Positions and masses by places.
    Positions,
    /// Velocities by places.
    Velocities,
    /// Positions of targets, with the squares of their radii.
    TargetPositions,
    /// Velocities of targets, with their places.
    TargetVelocities,
    /// Positions and masses along the curve.
    Sources,
    /// Velocities along the curve, with places.
    Moving,
    /// Leaves.
    Leaves,
    /// Bits of near leaves.
    Near,
    /// Bits of the far leaves for tensor cores.
    OnTensor,
    /// Sums over far leaves.
    Far,
}

/// How regular forces of a number of bodies are launched.
#[derive(Clone, Copy, Debug)]
pub struct RegularPlan {
    n: u32,
    slices: u32,
    threads: u32,
    /// Room of a list of neighbours.
    pub room: u32,
    /// Bytes of each [`OwnBuffer`].
    pub bytes: [usize; 10],
    /// True if tensor cores compute accelerations of far leaves.
    on_tensor: bool,
    limits: Limits,
}

/// A launch with its scalars.
#[derive(Clone, Debug)]
pub struct RegularLaunch {
    /// The kernel.
    pub entry: &'static Entry,
    /// The geometry.
    pub launch: Launch,
    /// The buffers, in order.
    pub buffers: Vec<RegularBuffer>,
    /// The scalars.
    pub params: Params,
}

impl RegularPlan {
    /// For n bodies in slices, with blocks of a number of threads where a block has a slice.
    pub fn new(wanted: u32, n: u32, (slices, threads): (u32, u32), limits: &Limits) -> Self {
        let mean = LONGEST * f64::from(wanted);
        let room = (mean + 6.0 * mean.sqrt()).ceil() as u32;
        let vectors = |count: usize| count * 4 * size_of::<f32>();
        let (bodies, leaves) = (n as usize, leaves_of(n) as usize);
        let bits = groups_of(n) as usize * words_of(n) as usize * size_of::<u32>();
        let most_sums = (1..=groups_of(n))
            .map(|groups| groups as usize * Self::parts_of(n, groups) as usize)
            .max();
        let places = [
            (OwnBuffer::Positions, vectors(bodies)),
            (OwnBuffer::Velocities, vectors(bodies)),
            (OwnBuffer::TargetPositions, vectors(bodies)),
            (OwnBuffer::TargetVelocities, vectors(bodies)),
            (OwnBuffer::Sources, vectors(leaves * LEAF as usize)),
            (OwnBuffer::Moving, vectors(leaves * LEAF as usize)),
            (OwnBuffer::Leaves, vectors(leaves * LEAF_VECTORS as usize)),
            (OwnBuffer::Near, bits),
            (OwnBuffer::OnTensor, bits),
            (
                OwnBuffer::Far,
                vectors(most_sums.unwrap_or(0) * (GROUP * FAR_VECTORS) as usize),
            ),
        ];
        debug_assert!((0..).zip(places).all(|(i, (place, _))| i == place as usize));
        Self {
            n,
            slices,
            threads,
            room: room.min(n),
            bytes: places.map(|(_, bytes)| bytes),
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
    /// [`Phase::Radii`].
    ///
    /// # Errors
    /// If a launch would be refused by the device.
    pub fn launches(
        &self,
        plan: &NeighbourPlan,
        targets: u32,
        (phase, parity): (Phase, u16),
        params: Params,
    ) -> Result<Vec<RegularLaunch>, PlanError> {
        use OwnBuffer::*;
        use RegularBuffer::Own;
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
        let launch =
            |stage, blocks, (threads, shared_bytes), buffers: &[RegularBuffer]| RegularLaunch {
                entry: entries::of(Work::NeighbourRegular(stage)),
                launch: Launch {
                    grid: [blocks, 1, 1],
                    block: [threads, 1, 1],
                    shared_bytes,
                },
                buffers: buffers.to_vec(),
                params,
            };
        let [targets_at, targets_moving] = [TargetPositions, TargetVelocities].map(Own);
        let order = SortBuffer::Order as usize;
        let (bodies_in_order, targets_in_order) = (
            RegularBuffer::OrderOfBodies(order),
            RegularBuffer::OrderOfTargets(order),
        );
        let predicted = [
            RegularBuffer::Records,
            RegularBuffer::Targets,
            RegularBuffer::Posts,
            RegularBuffer::Time,
            Own(Positions),
            Own(Velocities),
            targets_at,
            targets_moving,
        ];
        let of_slices = (self.threads, control_bytes(self.threads, self.slices));
        let mut all = vec![launch(
            RegularStage::Predict,
            self.slices,
            of_slices,
            &predicted,
        )];
        all.extend(self.order(self.n, params, Own(Positions), RegularBuffer::OrderOfBodies)?);
        all.extend(self.order(targets, params, targets_at, RegularBuffer::OrderOfTargets)?);
        let leaves = [
            Own(Positions),
            Own(Velocities),
            bodies_in_order,
            Own(Sources),
            Own(Moving),
            Own(Leaves),
        ];
        let far = [
            Own(Sources),
            Own(Leaves),
            targets_at,
            targets_moving,
            targets_in_order,
            Own(Near),
            Own(OnTensor),
            Own(Far),
        ];
        let tensor = [
            Own(Sources),
            Own(Leaves),
            targets_at,
            targets_in_order,
            Own(OnTensor),
            Own(Far),
        ];
        let lists = [
            Own(Sources),
            Own(Moving),
            targets_at,
            targets_moving,
            targets_in_order,
            Own(Near),
            Own(Far),
            RegularBuffer::Records,
            RegularBuffer::Lists,
            RegularBuffer::Counts,
            RegularBuffer::Time,
            RegularBuffer::Sums,
        ];
        let blocks_of_leaves = leaves_of(self.n).div_ceil(WARPS);
        let blocks_of_groups = groups.div_ceil(WARPS) * parts;
        all.extend([
            launch(
                RegularStage::Leaves,
                blocks_of_leaves,
                (THREADS, 0),
                &leaves,
            ),
            launch(
                RegularStage::Far,
                blocks_of_groups,
                (THREADS, FAR_SHARED_BYTES),
                &far,
            ),
        ]);
        if self.on_tensor && phase != Phase::Radii {
            all.push(launch(
                RegularStage::Tensor,
                blocks_of_groups,
                (THREADS, TENSOR_SHARED_BYTES),
                &tensor,
            ));
        }
        all.push(launch(
            RegularStage::Lists,
            targets.div_ceil(WARPS),
            (THREADS, 0),
            &lists,
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

    /// Launches that put the order of a number of positions into a buffer of `of`.
    fn order(
        &self,
        count: u32,
        params: Params,
        positions: RegularBuffer,
        of: fn(usize) -> RegularBuffer,
    ) -> Result<Vec<RegularLaunch>, PlanError> {
        let stage = |stage: SortStage| entries::of(Work::SpatialSort(stage));
        let steps = spatial_sort::order(&stage, count, &self.limits)?;
        let params = Params { n: count, ..params };
        let launched = steps.into_iter().map(|step| match step {
            Step::Launch {
                entry,
                launch,
                buffers,
            } => RegularLaunch {
                entry,
                launch,
                buffers: buffers
                    .into_iter()
                    .map(|buffer| match buffer {
                        Buffer::State => positions,
                        Buffer::Scratch(index) => of(index),
                        other => unreachable!("an order takes no {other:?}"),
                    })
                    .collect(),
                params,
            },
            other => unreachable!("an order is launches alone, not {other:?}"),
        });
        Ok(launched.collect())
    }

    /// Bytes of all buffers.
    pub fn device_bytes(&self) -> usize {
        let of_orders = 2 * spatial_sort::order_scratch(self.n).iter().sum::<usize>();
        of_orders + self.bytes.iter().sum::<usize>()
    }
}
