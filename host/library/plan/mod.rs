//! Launch geometry, proved on the CPU before any launch.
//!
//! A force is computed by a [`ForcePlan`]: the launches of one evaluation, in order, and the scratch
//! memory they share. [`force`] makes it, with one function for each schedule; one place
//! ([`Resident`](crate::force::resident::Resident)) carries it out.

pub mod block_steps;
mod grid2d;
pub mod neighbours;
pub mod pair_sums;
pub mod points;
mod recipe;
pub mod regular;
mod separated;
pub mod shares;
pub mod spatial_sort;
pub mod symmetric;
pub mod systems;
mod tensor;

pub use self::recipe::Recipe;

use self::spatial_sort::SpatialSort;
use crate::variants::Split;
use cuda_driver::{Columns, DeviceInfo};
use gpu_kernels::abi::Tiling;
pub use gpu_kernels::entries::Buffer;
use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::{ScheduleName, Stepping, tiled_jerks};

/// Threads of a block of the kernels that touch each body once; a power of two, as
/// [`gpu_kernels::schedule::energy`] needs.
pub const ELEMENTWISE_BLOCK: u32 = 256;

/// Bodies up to which energies are computed in f64 pair by pair. It takes six forces' time, which
/// with more bodies would be felt; and with as many, rounding has averaged out.
pub const EXACT_ENERGY_BODIES: u32 = 16_384;

/// Threads of a warp; blocks are made of whole ones.
const WARP: u32 = cuda_std::warp::WARP_SIZE;

/// Limits of a device on launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most threads of a block.
    pub block_threads: u32,
    /// Most shared memory of a block, bytes.
    pub shared_bytes: u32,
}

impl Limits {
    /// Limits that every GPU allows.
    pub const EVERYWHERE: Self = Self {
        block_threads: 1024,
        shared_bytes: 48 * 1024,
    };

    /// Limits that both devices allow.
    pub fn of_both(self, other: Self) -> Self {
        Self {
            block_threads: self.block_threads.min(other.block_threads),
            shared_bytes: self.shared_bytes.min(other.shared_bytes),
        }
    }

    /// Limits of a GPU.
    pub const fn of(gpu: &DeviceInfo) -> Self {
        Self {
            block_threads: gpu.max_threads_per_block,
            shared_bytes: gpu.max_shared_bytes_per_block,
        }
    }
}

/// The geometry of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Threads of a block along each axis.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
}

/// A kernel and the geometry of its launch.
pub type Kernel = (&'static Entry, Launch);

/// Buffers and their bytes.
pub type Sizes = Vec<(Buffer, usize)>;

/// Bytes of all buffers.
pub fn total(sizes: &[(Buffer, usize)]) -> u64 {
    sizes.iter().map(|&(_, bytes)| bytes as u64).sum()
}

/// One step of a force evaluation.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sets every byte of a buffer to zero.
    Zero(Buffer),
    /// Launches a kernel at the same time as the next steps, until they [join](Step::Join). Neither
    /// needs results of the other.
    Beside {
        /// The kernel.
        entry: &'static Entry,
        /// Launch geometry.
        launch: Launch,
    },
    /// Waits for the kernels launched [beside](Step::Beside), before the next step.
    Join,
    /// Adds [partial sums](Buffer::partial): the product of a matrix and a vector of ones, by a library for linear
    /// algebra.
    Product {
        /// The matrix's shape.
        shape: Columns,
    },
    /// Launches a kernel.
    Launch {
        /// The kernel.
        entry: &'static Entry,
        /// Launch geometry.
        launch: Launch,
        /// Buffers that take the place of buffers of its parameters.
        renamed: Vec<(Buffer, Buffer)>,
    },
}

impl Step {
    /// Launches a kernel on the buffers that its parameters name.
    pub const fn launch((entry, launch): Kernel) -> Self {
        Self::Launch {
            entry,
            launch,
            renamed: vec![],
        }
    }

    /// The kernel that it launches, if it does.
    pub const fn entry(&self) -> Option<&'static Entry> {
        match self {
            Self::Launch { entry, .. } | Self::Beside { entry, .. } => Some(*entry),
            Self::Zero(_) | Self::Join | Self::Product { .. } => None,
        }
    }
}

/// Plan of one force evaluation.
#[derive(Clone, Debug)]
pub struct ForcePlan {
    /// Buffers that it adds to the buffers of the bodies.
    pub scratch: Sizes,
    /// Division of the pairs among blocks, for the schedules that take each pair once.
    pub tiling: Tiling,
    /// Steps, in order.
    pub steps: Vec<Step>,
    /// Spatial sort of bodies along the Hilbert curve, if the schedule needs it.
    pub order: Option<SpatialSort>,
    /// For [`Params`](gpu_kernels::abi::Params): how sources are split among threads, if they are.
    pub split: Parts,
}

/// Into what a target's sum is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Sources that a thread adds.
    pub sources_a_thread: u32,
    /// Partial sums of a target.
    pub partials: u32,
}

/// Reason why a launch would be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Nothing to do: a launch of no blocks is an error to CUDA.
    #[error("there are no bodies to launch `{kernel}` for")]
    NoBodies {
        /// The kernel.
        kernel: &'static str,
    },
    /// Not whole warps, or not a power of two where sums are taken by halves.
    #[error("`{kernel}` needs blocks of {needed} threads, not {threads}")]
    Block {
        /// The kernel.
        kernel: &'static str,
        /// Required number.
        needed: String,
        /// Number asked for.
        threads: u32,
    },
    /// More threads than a block can have.
    #[error("a block of {threads} threads is too large for `{kernel}`: the device allows {most}")]
    TooManyThreads {
        /// The kernel.
        kernel: &'static str,
        /// Number asked for.
        threads: u32,
        /// Most that the device allows.
        most: u32,
    },
    /// More registers than a block can have.
    #[error(
        "a block of {threads} threads is too large for `{kernel}`: it takes {registers} registers \
         a thread, which leaves room for {most} threads"
    )]
    TooManyRegisters {
        /// The kernel.
        kernel: &'static str,
        /// Number asked for.
        threads: u32,
        /// Registers per thread.
        registers: u32,
        /// Most that fits.
        most: u32,
    },
    /// More shared memory than a block can have.
    #[error(
        "`{kernel}` in blocks of {threads} threads needs {bytes} bytes of shared memory a block, \
         and the device allows {most}: use a smaller block"
    )]
    TooMuchShared {
        /// The kernel.
        kernel: &'static str,
        /// Threads per block.
        threads: u32,
        /// Bytes that they need.
        bytes: u64,
        /// Most that the device allows.
        most: u32,
    },
    /// Threads along the sources that do not divide the block, or more sources than fit.
    #[error(
        "`{kernel}` splits blocks of {threads} threads into len × wid with len · luf ≤ {most}: \
         len = {len} and luf = {luf} do not fit{}", product(*len, *luf)
    )]
    Split {
        /// The kernel.
        kernel: &'static str,
        /// Threads per block.
        threads: u32,
        /// Threads along the sources.
        len: u32,
        /// Sources per thread.
        luf: u32,
        /// Most sources per block.
        most: u32,
    },
    /// Partial sums without end.
    #[error(
        "`{kernel}` leaves {partials} partial sums for each of {n} bodies, more than can be \
         counted: use more sources per thread (luf)"
    )]
    TooManyPartials {
        /// The kernel.
        kernel: &'static str,
        /// Partial sums per body.
        partials: u32,
        /// Bodies.
        n: u32,
    },
    /// An invalid layout of independent systems.
    #[error(transparent)]
    Systems(#[from] systems::SystemsError),
    /// Kernels count scalars in 32 bits.
    #[error("{n} bodies are more than `{kernel}` can count: {most} at most")]
    TooManyBodies {
        /// The kernel.
        kernel: &'static str,
        /// Bodies.
        n: usize,
        /// Most bodies.
        most: u32,
    },
}

fn product(len: u32, luf: u32) -> String {
    format!(" (their product is {})", u64::from(len) * u64::from(luf))
}

/// Bodies that a buffer for `n` has room for: whole warps, so that every plane of a structure of
/// arrays starts on a 128-byte line.
///
/// # Errors
/// If scalar indices of the entry's layout would not fit in 32 bits.
pub fn stride(entry: &Entry, n: usize) -> Result<u32, PlanError> {
    let widest = entry.layout.state_scalars.max(entry.layout.vector_scalars);
    let most = (u32::MAX / widest - WARP) / WARP * WARP;
    match u32::try_from(n) {
        Ok(n) if n <= most => Ok(n.next_multiple_of(WARP)),
        _ => Err(PlanError::TooManyBodies {
            kernel: entry.symbol,
            n,
            most,
        }),
    }
}

/// Buffers that external fields add where no jerks are computed: their accelerations are apart from the accelerations by
/// bodies.
pub fn buffers_of_fields(force: &Entry, stride: u32) -> Sizes {
    let layout = &force.layout;
    let vector = (layout.vector_scalars * layout.vectors.bytes()) as usize;
    vec![(Buffer::of_fields, stride as usize * vector)]
}

/// The plan of a force on `n` bodies by the kernel `entry`, in blocks of `threads`, which share out
/// sources as `split` says if the kernel's do.
///
/// # Errors
/// If a launch would be refused by the device, or break what its kernel's documentation asks for.
pub fn force(
    entry: &'static Entry,
    n: u32,
    threads: u32,
    split: Option<Split>,
    limits: &Limits,
) -> Result<ForcePlan, PlanError> {
    let Work::Force { schedule, lane, .. } = entry.work else {
        unreachable!("`{}` is no force", entry.symbol)
    };
    match schedule {
        ScheduleName::Direct
        | ScheduleName::TwoLoops
        | ScheduleName::Tiled
        | ScheduleName::Guarded => {
            let launch = one_dimensional(entry, n, threads, limits)?;
            Ok(ForcePlan::of(vec![Step::launch((entry, launch))]))
        }
        ScheduleName::TiledJerks => {
            let launch = one_dimensional(entry, n.div_ceil(lane), threads, limits)?;
            Ok(ForcePlan::of(vec![Step::launch((entry, launch))]))
        }
        ScheduleName::TestParticles => {
            let gather = partner(entry, Work::Sources);
            let copy = one_dimensional(gather, n, ELEMENTWISE_BLOCK, limits)?;
            let evaluate = one_dimensional(entry, n, threads, limits)?;
            let kernels = [(gather, copy), (entry, evaluate)];
            Ok(ForcePlan::of(kernels.map(Step::launch).to_vec()))
        }
        ScheduleName::OneThread => {
            let one = Launch {
                grid: [1; 3],
                block: [1; 3],
                shared_bytes: 0,
            };
            Ok(ForcePlan::of(vec![Step::launch((entry, one))]))
        }
        ScheduleName::Hybrid => hybrid(entry, n, threads, limits),
        ScheduleName::Grid2d { sources } => {
            let split = split.expect("a variant of two-dimensional blocks says how they are split");
            grid2d::plan(entry, n, threads, split, sources, limits)
        }
        ScheduleName::Symmetric => symmetric::plan(entry, n, threads, limits),
        ScheduleName::Tensor => tensor::plan(entry, n, threads, limits),
        ScheduleName::Separated => separated::plan(entry, n, threads, limits),
        ScheduleName::Systems { .. } => unreachable!("`{}`: see `systems`", entry.symbol),
    }
}

impl ForcePlan {
    /// These steps, without scratch memory.
    pub const fn of(steps: Vec<Step>) -> Self {
        Self {
            scratch: vec![],
            steps,
            order: None,
            split: Parts {
                sources_a_thread: 0,
                partials: 0,
            },
            tiling: Tiling { side: 0, parts: 0 },
        }
    }
}

/// The targets that fill whole blocks and, beside them, the rest; each launch only where it has
/// targets.
fn hybrid(
    entry: &'static Entry,
    n: u32,
    threads: u32,
    limits: &Limits,
) -> Result<ForcePlan, PlanError> {
    let Work::Force { law, numerics, .. } = entry.work else {
        unreachable!("`{}` is no force", entry.symbol)
    };
    let all = one_dimensional(entry, n, threads, limits)?;
    let grid = [n / threads, 1, 1];
    let whole = Step::launch((entry, Launch { grid, ..all }));
    if n.is_multiple_of(threads) {
        return Ok(ForcePlan::of(vec![whole]));
    }
    let rest = partner(entry, Work::Rest { law, numerics });
    let launch = one_dimensional(rest, n % threads, threads, limits)?;
    Ok(ForcePlan::of(if n < threads {
        vec![Step::launch((rest, launch))]
    } else {
        // In a stream of its own, for it leaves most of the GPU idle.
        let beside = Step::Beside {
            entry: rest,
            launch,
        };
        vec![beside, whole, Step::Join]
    }))
}

/// Threads of a block that must be whole warps, for [`PlanError::Block`].
fn multiple_of_a_warp() -> String {
    format!("a multiple of {WARP}")
}

/// The kernel that does this work beside a force.
fn partner(force: &Entry, work: Work) -> &'static Entry {
    force
        .partner(work)
        .unwrap_or_else(|| panic!("no kernel does {work:?} for `{}`", force.symbol))
}

/// A launch of `entry` with one thread for each of `n` bodies, in blocks of `threads`.
///
/// # Errors
/// If it would be refused by the device, or break what the kernel's documentation asks for.
pub fn one_dimensional(
    entry: &Entry,
    n: u32,
    threads: u32,
    limits: &Limits,
) -> Result<Launch, PlanError> {
    let kernel = entry.symbol;
    if n == 0 {
        return Err(PlanError::NoBodies { kernel });
    }
    let halved = matches!(entry.work, Work::Energy(_) | Work::QuickEnergy(_));
    if threads == 0 || !threads.is_multiple_of(WARP) || (halved && !threads.is_power_of_two()) {
        let needed = if halved {
            format!("a power of two ≥ {WARP}")
        } else {
            multiple_of_a_warp()
        };
        return Err(PlanError::Block {
            kernel,
            needed,
            threads,
        });
    }
    if threads > limits.block_threads {
        return Err(PlanError::TooManyThreads {
            kernel,
            threads,
            most: limits.block_threads,
        });
    }
    let bytes = shared_bytes(entry, u64::from(threads));
    match u32::try_from(bytes) {
        Ok(shared_bytes) if shared_bytes <= limits.shared_bytes => Ok(Launch {
            grid: [n.div_ceil(threads), 1, 1],
            block: [threads, 1, 1],
            shared_bytes,
        }),
        _ => Err(PlanError::TooMuchShared {
            kernel,
            threads,
            bytes,
            most: limits.shared_bytes,
        }),
    }
}

/// Shared memory of a block of `threads`, bytes.
fn shared_bytes(entry: &Entry, threads: u64) -> u64 {
    let layout = &entry.layout;
    match entry.work {
        Work::Force { schedule, .. } => match schedule {
            ScheduleName::Tiled
            | ScheduleName::Guarded
            | ScheduleName::Hybrid
            | ScheduleName::TestParticles => threads * u64::from(layout.tile_bytes),
            ScheduleName::TiledJerks => threads * u64::from(tiled_jerks::TILES * layout.tile_bytes),
            ScheduleName::Symmetric
            | ScheduleName::Systems {
                stepping: Stepping::Accelerate,
                ..
            } => {
                let sums = threads / u64::from(WARP) * 3 * u64::from(layout.precision.bytes());
                threads * (2 * u64::from(layout.tile_bytes) + sums)
            }
            // What the blocks of these share does not depend on their threads.
            ScheduleName::Tensor
            | ScheduleName::Separated
            | ScheduleName::Systems { .. } // but for a tile of theirs
            | ScheduleName::Direct
            | ScheduleName::OneThread
            | ScheduleName::TwoLoops
            | ScheduleName::Grid2d { .. } => 0,
        },
        Work::Trace { .. } => threads * u64::from(layout.tile_bytes),
        Work::Energy(_) => threads * 4 * size_of::<f64>() as u64,
        Work::QuickEnergy(_) => threads * 2 * size_of::<f64>() as u64,
        // The plan of the schedule says what some of these have.
        Work::Near { .. }
        | Work::Boxes
        | Work::SpatialSort(_)
        | Work::Gather
        | Work::Rest { .. }
        | Work::Reduce(_)
        | Work::Ones
        | Work::Kick
        | Work::Drift
        | Work::SystemDrift
        | Work::SystemStep
        | Work::Damp
        | Work::External
        | Work::KickInFields
        | Work::Unite
        | Work::ExternalJerks
        | Work::Relativity
        | Work::Predict
        | Work::Correct
        | Work::OwnSteps
        | Work::Sources
        | Work::Follow { .. }
        | Work::AtPoints { .. }
        | Work::SumAtPoints
        | Work::PairSum { .. }
        | Work::SumStage(_)
        | Work::BlockForce { .. }
        | Work::BlockGather { .. }
        | Work::BlockCorrect { .. }
        | Work::BlockRelativity { .. }
        | Work::BlockTakeOver { .. }
        | Work::NeighbourForce { .. }
        | Work::NeighbourCorrect { .. }
        | Work::NeighbourStep { .. }
        | Work::NeighbourFirst
        | Work::NeighbourRegular(_) => 0,
    }
}

#[cfg(test)]
mod tests;
