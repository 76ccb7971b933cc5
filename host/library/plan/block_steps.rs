//! The plan of block time steps on a device: how bodies are sliced, and the launches of a block step.

use gpu_kernels::abi::BlockStep;
use gpu_kernels::entries::{self, Entry, Work};
use gpu_kernels::schedule::block_steps::{
    DigitsName, Phase, correct_bytes, force_bytes, most_of_a_slice, neighbours, partial_bytes,
    source_bytes, target_bytes,
};

use super::{Launch, Limits, PlanError, WARP};

/// Parts of block time steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockScheme {
    /// Order of Hermite's scheme, 4 or 6.
    pub order: u32,
    /// The digits of pairs.
    pub digits: DigitsName,
    /// Into how many slices bodies are cut, each for a block: those of a device that can compute at
    /// the same time. The bits of sums depend on it.
    pub slices: u32,
}

/// The launches of an order's kernels.
#[derive(Clone, Copy, Debug)]
pub struct BlockKernels {
    /// Forces on active bodies.
    pub force: (&'static Entry, Launch),
    /// Ends of their steps.
    pub correct: (&'static Entry, Launch),
    /// Sources that a block keeps in shared memory at a time.
    chunk: u32,
}

/// How block time steps are carried out.
#[derive(Clone, Copy, Debug)]
pub struct BlockPlan {
    /// For block steps.
    pub steps: BlockKernels,
    /// For first steps: those of sixth order, which know of bodies at rest how their pull changes.
    pub first: BlockKernels,
    /// Bytes of the targets of both.
    pub targets: usize,
    /// Bytes of the sums of both.
    pub partials: usize,
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
            phase: phase as u16,
            chunk: self.chunk,
        }
    }
}

/// Words of the clock, those of a [neighbour scheme](super::neighbours) among them.
pub const CLOCK_WORDS: usize = neighbours::clock::WORDS;

/// Most threads of a block: with as many registers as the kernels take, a multiprocessor has room
/// for no more.
const THREADS: u32 = 512;

/// The plan for `n` bodies, which external fields accelerate too or not.
///
/// # Errors
/// If the kernels find no room on the device.
pub fn plan(
    scheme: BlockScheme,
    external: bool,
    unsoftened: bool,
    n: u32,
    limits: &Limits,
) -> Result<BlockPlan, PlanError> {
    let steps = kernels(scheme, external, unsoftened, n, limits)?;
    let sixth = BlockScheme { order: 6, ..scheme };
    let first = kernels(sixth, external, unsoftened, n, limits)?;
    let slices = steps.correct.1.grid[0];
    let most = most_of_a_slice(n, slices);
    let places = slices as usize * most as usize;
    let (digits, orders) = (scheme.digits, [scheme.order, 6]);
    let largest = |bytes: fn(DigitsName, u32) -> u32| {
        let bytes = orders.map(|order| bytes(digits, order) as usize);
        bytes[0].max(bytes[1])
    };
    Ok(BlockPlan {
        steps,
        first,
        targets: places * largest(target_bytes),
        partials: slices as usize * n as usize * largest(partial_bytes),
        posts: 2 * slices as usize * size_of::<u64>(),
        time: CLOCK_WORDS * size_of::<u64>(),
    })
}

fn kernels(
    BlockScheme {
        order,
        digits,
        slices,
    }: BlockScheme,
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
    let source = source_bytes(digits, order);
    let beside = |threads| force_bytes(digits, order, threads, slices);
    let (threads, chunk) = threads_of((n, slices), (beside, source), limits);
    let most = most_of_a_slice(n, slices);
    let launch = |kernel, bytes| Launch::of_slices(kernel, (slices, threads), bytes, limits);
    Ok(BlockKernels {
        force: launch(force, beside(threads) + chunk * source)?,
        correct: launch(correct, correct_bytes(order, threads, slices, most))?,
        chunk,
    })
}

/// Threads of the blocks of `n` bodies in so many slices, and the sources that each keeps at a time:
/// `beside` are the bytes of shared memory that threads take beside those of the sources.
pub(super) fn threads_of(
    (n, slices): (u32, u32),
    (beside, source): (impl Fn(u32) -> u32, u32),
    limits: &Limits,
) -> (u32, u32) {
    let most = most_of_a_slice(n, slices);
    // As many threads as leave room for a warp's sources, or all of a slice.
    let enough = most.min(WARP);
    let fewest = slices.next_power_of_two().max(WARP);
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
    /// A launch of a block of so many threads for each slice.
    ///
    /// # Errors
    /// If it does not fit the device.
    pub(super) fn of_slices(
        kernel: &'static Entry,
        (slices, threads): (u32, u32),
        bytes: u32,
        limits: &Limits,
    ) -> Result<(&'static Entry, Self), PlanError> {
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

    const DIGITS: [DigitsName; 3] = [DigitsName::Single, DigitsName::Mixed, DigitsName::Double];

    fn of(order: u32, digits: DigitsName, slices: u32, n: u32, limits: &Limits) -> BlockPlan {
        let scheme = BlockScheme {
            order,
            digits,
            slices,
        };
        plan(scheme, false, false, n, limits).expect("it fits")
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
                            };
                            assert!(plan(scheme, false, false, n, &limits).is_err());
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

    #[test]
    fn no_bodies_are_no_launch() {
        let scheme = BlockScheme {
            order: 4,
            digits: DigitsName::Double,
            slices: 132,
        };
        let refused = plan(scheme, false, false, 0, &Limits::EVERYWHERE);
        assert!(matches!(refused, Err(PlanError::NoBodies { .. })));
    }
}
