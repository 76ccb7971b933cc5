//! The plan of block time steps on one device or several: how bodies are sliced, and the launches of a
//! block step.

use gpu_kernels::abi::{BlockStep, Share};
use gpu_kernels::entries::{self, Entry, Work};
use gpu_kernels::schedule::block_steps::{
    DigitsName, HIGHER_VECTORS, Phase, TOLD_HEAD, correct_bytes, force_bytes, gather_bytes,
    most_of_a_slice, neighbours, partial_bytes, row_bytes, source_bytes, target_bytes,
    told_of_body,
};

use super::{Buffer, Kernel, Launch, Limits, PlanError, Sizes, WARP};

/// Parts of block time steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BlockScheme {
    /// Order of Hermite's scheme, 4 or 6.
    pub order: u32,
    /// The digits of pairs.
    #[cfg_attr(feature = "serde", serde(with = "DigitsForm"))]
    pub digits: DigitsName,
    /// Number of slices that bodies are cut into, one per block: the number of blocks that a device can
    /// compute at the same time. The bits of sums depend on this number. If several devices share the
    /// sources, each device has this number of slices.
    pub slices: u32,
    /// Number of neighbours wanted for each body, in a neighbour scheme. Several devices then share the
    /// active bodies, and each device has all sources.
    pub neighbours: Option<u32>,
    /// True if heavy bodies take [a part of η](gpu_kernels::schedule::block_steps::Scheme::OF_HEAVY). A neighbour scheme
    /// has no such part.
    pub heavy_are_finer: bool,
}

/// [`DigitsName`] for serde.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(remote = "DigitsName")]
enum DigitsForm {
    Single,
    Mixed,
    Double,
}

/// The part of a device in block time steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All: there is no other device.
    Alone,
    /// A part of the sources.
    OfSeveral {
        /// Number of the device.
        device: u8,
        /// Number of devices, at least one.
        devices: u8,
    },
    /// The forces alone: the host takes the steps.
    Forces,
}

/// The launches of an order's kernels.
#[derive(Clone, Copy, Debug)]
pub struct BlockKernels {
    /// Order of the Hermite scheme.
    pub order: u32,
    /// Forces on active bodies.
    pub force: Kernel,
    /// Bodies and targets that the host tells before the forces, if it takes the steps.
    pub take_over: Option<Kernel>,
    /// Sums of the forces over the slices of a device, if there are several devices or the host takes the steps.
    pub gather: Option<Kernel>,
    /// The term of relativity, if there is one, which is added to the sums.
    pub relativity: Option<Kernel>,
    /// Ends of the steps of active bodies.
    pub correct: Kernel,
    /// Number of sources that a block loads into shared memory in one batch.
    chunk: u32,
    /// Number of devices with sums to add; 0 for a single device.
    devices: u8,
}

/// How block time steps are carried out.
#[derive(Clone, Copy, Debug)]
pub struct BlockPlan {
    /// Order of Hermite's scheme, 4 or 6.
    pub order: u32,
    /// For block steps.
    pub steps: BlockKernels,
    /// For first steps, of sixth order, because the snap is not zero for bodies at rest.
    pub first: BlockKernels,
    /// Bytes of the targets of both.
    pub targets: usize,
    /// Bytes of the sums over slices of both.
    pub partials: usize,
    /// Bytes of the sums over all of a device's sources of both; none where it ends the steps by them itself.
    pub row: usize,
    /// Bytes of what the host tells for both, if it takes the steps.
    pub told: usize,
    /// Slices of the sources that this device has.
    pub share: Share,
    /// Slices of the sources that all devices have together.
    pub slices: u32,
    /// Bytes of posts.
    pub posts: usize,
    /// Bytes of the clock.
    pub time: usize,
}

impl BlockKernels {
    /// The scalars of a launch.
    pub const fn params(&self, phase: Phase, parity: u16) -> BlockStep {
        BlockStep {
            parity,
            phase: phase as u8,
            devices: self.devices,
            chunk: self.chunk,
        }
    }

    /// Kernels of these launches.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        let others = [self.take_over, self.gather, self.relativity];
        let others = others.into_iter().flatten();
        let others = others.map(|(entry, _)| entry);
        [self.force.0, self.correct.0].into_iter().chain(others)
    }

    /// Bytes of the sums over a device's sources for a target.
    pub const fn row_bytes(&self) -> usize {
        row_bytes(self.order) as usize
    }

    fn with_relativity(self) -> Self {
        let (_, launch) = self.correct;
        let relativity = entries::of(Work::BlockRelativity { order: self.order });
        Self {
            relativity: Some((relativity, launch)),
            ..self
        }
    }
}

impl BlockPlan {
    /// With the term of relativity of one of the bodies, for pairs in f64 on one device.
    #[must_use]
    pub fn with_relativity(self) -> Self {
        Self {
            steps: self.steps.with_relativity(),
            first: self.first.with_relativity(),
            ..self
        }
    }

    /// Buffers that block time steps of `n` bodies add.
    pub fn buffers(&self, n: u32) -> Sizes {
        let n = n as usize;
        let vectors = (n as u32).next_multiple_of(WARP) as usize * size_of::<[f64; 4]>();
        let mut all = vec![
            (Buffer::higher, HIGHER_VECTORS as usize * vectors),
            (Buffer::begun, n * size_of::<u64>()),
            (Buffer::levels, n * size_of::<u32>()),
            (Buffer::steps, n * size_of::<f64>()),
            (Buffer::targets, self.targets),
            (Buffer::partials, self.partials),
            (Buffer::posts, self.posts),
            (Buffer::time, self.time),
        ];
        // The host reaches what it tells, and what it is told.
        if self.row > 0 && self.told == 0 {
            all.extend([Buffer::row, Buffer::row_before].map(|name| (name, self.row)));
        }
        all
    }

    /// Buffers of [`Part::Forces`] in the host's memory, which a device reaches.
    pub fn buffers_for_host(&self) -> Sizes {
        vec![(Buffer::told, self.told), (Buffer::row, self.row)]
    }
}

/// Bytes of what the host tells about `n` bodies that are all targets: at sixth order, which first steps have.
fn told_bytes(n: u32) -> usize {
    let vectors = TOLD_HEAD as usize + n as usize * told_of_body(6) as usize;
    let targets = (n as usize).next_multiple_of(4) * size_of::<f64>();
    vectors * size_of::<[f64; 4]>() + targets
}

/// Words of the clock, including the words of a [neighbour scheme](super::neighbours).
pub const CLOCK_WORDS: usize = neighbours::clock::WORDS;

/// Most threads of a block: with as many registers as the kernels take, a multiprocessor has room
/// for no more.
const THREADS: u32 = 512;

/// The plan of a device for `n` bodies, which external fields accelerate too or not.
///
/// # Errors
/// If the kernels find no room on the device.
pub fn plan(
    scheme: BlockScheme,
    part: Part,
    external: bool,
    unsoftened: bool,
    n: u32,
    limits: &Limits,
) -> Result<BlockPlan, PlanError> {
    let steps = kernels(scheme, part, external, unsoftened, n, limits)?;
    let sixth = BlockScheme { order: 6, ..scheme };
    let first = kernels(sixth, part, external, unsoftened, n, limits)?;
    let slices = steps.correct.1.grid[0];
    let most = most_of_a_slice(n, slices);
    let places = slices as usize * most as usize;
    let (device, devices) = match part {
        Part::Alone | Part::Forces => (0, 1),
        Part::OfSeveral { device, devices } => (u32::from(device), u32::from(devices)),
    };
    let (digits, orders) = (scheme.digits, [scheme.order, 6]);
    let largest = |bytes: fn(DigitsName, u32) -> u32| {
        let bytes = orders.map(|order| bytes(digits, order) as usize);
        bytes[0].max(bytes[1])
    };
    Ok(BlockPlan {
        order: scheme.order,
        steps,
        first,
        targets: places * largest(target_bytes),
        partials: slices as usize * n as usize * largest(partial_bytes),
        row: match part {
            Part::Alone => 0,
            Part::OfSeveral { .. } | Part::Forces => {
                n as usize * largest(|_, order| row_bytes(order))
            }
        },
        told: match part {
            Part::Forces => told_bytes(n),
            Part::Alone | Part::OfSeveral { .. } => 0,
        },
        share: Share {
            first: device * slices,
            end: (device + 1) * slices,
        },
        slices: devices * slices,
        posts: 2 * slices as usize * size_of::<u64>(),
        time: CLOCK_WORDS * size_of::<u64>(),
    })
}

fn kernels(
    BlockScheme {
        order,
        digits,
        slices,
        neighbours: _,      // of which forces on all bodies know nothing
        heavy_are_finer: _, // a word of the clock
    }: BlockScheme,
    part: Part,
    external: bool,
    unsoftened: bool,
    n: u32,
    limits: &Limits,
) -> Result<BlockKernels, PlanError> {
    let force = entries::of(Work::BlockForce {
        order,
        digits,
        unsoftened,
    });
    let correct = entries::of(Work::BlockCorrect {
        order,
        digits,
        external,
    });
    if n == 0 {
        return Err(PlanError::NoBodies {
            kernel: force.symbol,
        });
    }
    let slices = slices.clamp(1, n.min(THREADS));
    let devices = match part {
        Part::Alone | Part::Forces => 0,
        Part::OfSeveral { devices, .. } => devices,
    };
    let source = source_bytes(digits, order);
    let beside = |threads| force_bytes(digits, order, threads, slices);
    let sources = most_of_a_slice(n, slices * u32::from(devices.max(1)));
    let (threads, chunk) = threads_of((sources, slices), (beside, source), limits);
    let most = most_of_a_slice(n, slices);
    let launch = |kernel, bytes| Launch::of_slices(kernel, (slices, threads), bytes, limits);
    let gather = match part {
        Part::Alone => None,
        Part::OfSeveral { .. } | Part::Forces => {
            let gather = entries::of(Work::BlockGather { order, digits });
            Some(launch(gather, gather_bytes(threads, slices))?)
        }
    };
    let take_over = match part {
        Part::Alone | Part::OfSeveral { .. } => None,
        Part::Forces => {
            let take_over = entries::of(Work::BlockTakeOver { order, digits });
            Some(launch(take_over, 0)?)
        }
    };
    Ok(BlockKernels {
        order,
        take_over,
        force: launch(force, beside(threads) + chunk * source)?,
        gather,
        relativity: None,
        correct: launch(correct, correct_bytes(order, threads, slices, most))?,
        chunk,
        devices,
    })
}

/// Threads of as many blocks, each with as many sources at most, and the sources that each keeps at a
/// time: `beside` are the bytes of shared memory that threads take beside those of the sources.
pub(super) fn threads_of(
    (most, blocks): (u32, u32),
    (beside, source): (impl Fn(u32) -> u32, u32),
    limits: &Limits,
) -> (u32, u32) {
    // As many threads as leave room for a warp's sources, or all of a slice.
    let enough = most.min(WARP);
    let fewest = blocks.next_power_of_two().max(WARP);
    // And no more warps than sources, which they share.
    let useful = most.next_power_of_two().min(THREADS / WARP) * WARP;
    let mut threads = useful.min(1 << limits.block_threads.ilog2()).max(fewest);
    let room = |threads: u32| limits.shared_bytes.saturating_sub(beside(threads)) / source;
    while threads > fewest && room(threads) < enough {
        threads /= 2;
    }
    let chunk = room(threads).min(most);
    // Chunks of equal size, none of them a rest.
    let chunks = most.div_ceil(chunk.max(1));
    (threads, most.div_ceil(chunks))
}

impl Launch {
    /// A launch of one block for each slice, with this number of threads.
    ///
    /// # Errors
    /// If it does not fit the device.
    pub(super) fn of_slices(
        kernel: &'static Entry,
        (slices, threads): (u32, u32),
        bytes: u32,
        limits: &Limits,
    ) -> Result<Kernel, PlanError> {
        if threads > limits.block_threads {
            return Err(PlanError::TooManyThreads {
                kernel: kernel.symbol,
                threads,
                most: limits.block_threads,
            });
        }
        if bytes > limits.shared_bytes {
            return Err(PlanError::TooMuchShared {
                kernel: kernel.symbol,
                threads,
                bytes: bytes.into(),
                most: limits.shared_bytes,
            });
        }
        let launch = Self {
            grid: [slices, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: bytes,
        };
        Ok((kernel, launch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::total;

    const DIGITS: [DigitsName; 3] = [DigitsName::Single, DigitsName::Mixed, DigitsName::Double];

    fn of(order: u32, digits: DigitsName, slices: u32, n: u32, limits: &Limits) -> BlockPlan {
        let scheme = BlockScheme {
            order,
            digits,
            slices,
            neighbours: None,
            heavy_are_finer: false,
        };
        plan(scheme, Part::Alone, false, false, n, limits).expect("it fits")
    }

    #[test]
    fn launches_fit_every_gpu() {
        for (limits, slices) in [
            (Limits::EVERYWHERE, 4),
            (Limits::EVERYWHERE, 48),
            (
                Limits {
                    block_threads: 1024,
                    shared_bytes: 227 * 1024,
                },
                132,
            ),
        ] {
            for order in [4, 6] {
                for digits in DIGITS {
                    for n in [1_u32, 2, 100, 4_096, 65_536, 1 << 20] {
                        if n.div_ceil(slices) > 8_192 && limits == Limits::EVERYWHERE {
                            // The list of a slice's active bodies takes more than there is.
                            let scheme = BlockScheme {
                                order,
                                digits,
                                slices,
                                neighbours: None,
                                heavy_are_finer: false,
                            };
                            let refused = plan(scheme, Part::Alone, false, false, n, &limits);
                            assert!(refused.is_err());
                            continue;
                        }
                        let plan = of(order, digits, slices, n, &limits);
                        for kernels in [plan.steps, plan.first] {
                            for (_, launch) in [kernels.force, kernels.correct] {
                                let threads = launch.block[0];
                                assert!(threads.is_power_of_two() && threads >= launch.grid[0]);
                                assert!(launch.shared_bytes <= limits.shared_bytes);
                                assert_eq!(launch.grid[0], slices.min(n));
                            }
                            let most = n.div_ceil(slices.min(n));
                            assert!((1..=most).contains(&kernels.chunk));
                        }
                    }
                }
            }
        }
    }

    /// On an H200: all sources of 262 144 bodies at once, and blocks as large as registers allow.
    #[test]
    fn an_h200_is_filled() {
        let limits = Limits {
            block_threads: 1024,
            shared_bytes: 227 * 1024,
        };
        let BlockPlan { steps, .. } = of(6, DigitsName::Mixed, 132, 262_144, &limits);
        assert_eq!(steps.chunk, 262_144_u32.div_ceil(132));
        assert_eq!(steps.force.1.block[0], 512);
    }

    /// Each slice of the sources is one device's, which has as many as one alone, and a block for each;
    /// targets are of as many blocks.
    #[test]
    fn devices_share_the_slices() {
        let limits = Limits::EVERYWHERE;
        for (n, slices) in [(1, 4), (37, 48), (20_000, 48)] {
            for devices in 1..=16 {
                let scheme = BlockScheme {
                    order: 6,
                    digits: DigitsName::Mixed,
                    slices,
                    neighbours: None,
                    heavy_are_finer: false,
                };
                let alone = plan(scheme, Part::Alone, false, false, n, &limits);
                let alone = alone.expect("it fits");
                let of = |device| {
                    let part = Part::OfSeveral { device, devices };
                    plan(scheme, part, false, false, n, &limits).expect("it fits")
                };
                let mut end = 0;
                for plan in (0..devices).map(of) {
                    assert_eq!(plan.share.first, end);
                    end = plan.share.end;
                    let (_, gather) = plan.steps.gather.expect("several");
                    for grid in [
                        plan.steps.force.1.grid,
                        gather.grid,
                        plan.steps.correct.1.grid,
                    ] {
                        assert_eq!(grid, alone.steps.correct.1.grid);
                        assert_eq!(grid[0], plan.share.end - plan.share.first);
                    }
                    assert_eq!(plan.slices, u32::from(devices) * alone.slices);
                    assert!(total(&plan.buffers(n)) > total(&alone.buffers(n)));
                }
                assert_eq!(end, of(0).slices);
            }
        }
    }

    #[test]
    fn no_bodies_are_no_launch() {
        let scheme = BlockScheme {
            order: 4,
            digits: DigitsName::Double,
            slices: 132,
            neighbours: None,
            heavy_are_finer: false,
        };
        let refused = plan(scheme, Part::Alone, false, false, 0, &Limits::EVERYWHERE);
        assert!(matches!(refused, Err(PlanError::NoBodies { .. })));
    }
}
