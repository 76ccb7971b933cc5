//! Launch geometry, proved on the CPU before any launch.
//!
//! A force is computed by a [`ForcePlan`]: the launches of one evaluation, in order, and the scratch
//! memory they share. [`force`] makes it, for each schedule by a function of its own; one place
//! ([`Resident`](crate::force::resident::Resident)) carries it out.

use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::ScheduleName;

/// Threads of a block of the kernels that touch each body once; a power of two, as
/// [`gpu_kernels::schedule::energy`] needs.
pub const ELEMENTWISE_BLOCK: u32 = 256;

/// Threads of a warp; blocks are made of whole ones.
const WARP: u32 = 32;

/// What a device lets a launch have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most threads of a block.
    pub block_threads: u32,
    /// Most shared memory of a block, bytes.
    pub shared_bytes: u32,
}

/// The geometry of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Threads of a block along each axis.
    pub block: [u32; 3],
    /// Dynamic shared memory a block, bytes.
    pub shared_bytes: u32,
}

/// A buffer that a step works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Positions, masses and velocities.
    State,
    /// Accelerations.
    Acceleration,
    /// The plan's scratch memory of this index.
    Scratch(usize),
}

/// One step of a force evaluation.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sets every byte of a buffer to zero.
    Zero(Buffer),
    /// Launches a kernel.
    Launch {
        /// The kernel.
        entry: &'static Entry,
        /// Its geometry.
        launch: Launch,
        /// Its pointer parameters.
        buffers: Vec<Buffer>,
    },
}

/// How one force evaluation is carried out.
#[derive(Clone, Debug)]
pub struct ForcePlan {
    /// Sizes of the scratch buffers, bytes.
    pub scratch: Vec<usize>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// Why a launch would be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
        /// What it needs.
        needed: &'static str,
        /// What was asked for.
        threads: u32,
    },
    /// More threads than a block can have.
    #[error("a block of {threads} threads is too large for `{kernel}`: the device allows {most}")]
    TooManyThreads {
        /// The kernel.
        kernel: &'static str,
        /// What was asked for.
        threads: u32,
        /// What the device allows.
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
        /// Threads a block.
        threads: u32,
        /// What they need.
        bytes: u64,
        /// What the device allows.
        most: u32,
    },
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

/// The plan of a force on `n` bodies by the kernel `entry`, in blocks of `threads`.
///
/// # Errors
/// If a launch would be refused by the device, or break what its kernel's documentation asks for.
pub fn force(
    entry: &'static Entry,
    n: u32,
    threads: u32,
    limits: &Limits,
) -> Result<ForcePlan, PlanError> {
    let Work::Force { schedule, .. } = entry.work else {
        unreachable!("`{}` is no force", entry.symbol)
    };
    match schedule {
        ScheduleName::Direct | ScheduleName::Tiled => one_launch(entry, n, threads, limits),
    }
}

/// One thread a target, one launch.
fn one_launch(
    entry: &'static Entry,
    n: u32,
    threads: u32,
    limits: &Limits,
) -> Result<ForcePlan, PlanError> {
    let launch = one_dimensional(entry, n, threads, limits)?;
    let buffers = vec![Buffer::State, Buffer::Acceleration];
    Ok(ForcePlan {
        scratch: vec![],
        steps: vec![Step::Launch {
            entry,
            launch,
            buffers,
        }],
    })
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
    let halved = matches!(entry.work, Work::Energy(_));
    if threads == 0 || !threads.is_multiple_of(WARP) || (halved && !threads.is_power_of_two()) {
        let needed = if halved {
            "a power of two ≥ 32"
        } else {
            "a multiple of 32"
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
    let bytes = u64::from(threads) * u64::from(shared_bytes_a_thread(entry));
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

fn shared_bytes_a_thread(entry: &Entry) -> u32 {
    match entry.work {
        Work::Force {
            schedule: ScheduleName::Tiled,
            ..
        } => entry.layout.tile_bytes,
        Work::Energy(_) => 4 * size_of::<f64>() as u32,
        Work::Force {
            schedule: ScheduleName::Direct,
            ..
        }
        | Work::Kick
        | Work::Drift
        | Work::Damp => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::entries;

    const LIMITS: Limits = Limits {
        block_threads: 1024,
        shared_bytes: 48 * 1024,
    };

    fn entry(symbol: &str) -> &'static Entry {
        entries::find(symbol).expect("a listed entry")
    }

    /// Every target has exactly one thread: blocks cover 0..n, and none lies beyond it whole.
    #[test]
    fn every_target_has_one_thread() {
        for entry in entries::all() {
            for n in (1..=300).chain([12_345, 262_144, 262_145, 100_000_007]) {
                for threads in [32, 64, 256, 512] {
                    let plan = one_dimensional(entry, n, threads, &LIMITS).expect("a plan");
                    let covered = u64::from(plan.grid[0]) * u64::from(threads);
                    assert!(covered >= u64::from(n) && covered < u64::from(n + threads));
                    assert_eq!((plan.grid[1], plan.grid[2]), (1, 1));
                    assert_eq!(plan.block, [threads, 1, 1]);
                }
            }
        }
    }

    #[test]
    fn refuses_with_the_numbers() {
        let tiled = entry("force_tiled_float4_f32_exact_gravity");
        let energy = entry("energy_float4_f32_gravity");
        let message = |entry, n, threads, limits: &Limits| {
            one_dimensional(entry, n, threads, limits)
                .expect_err("a refusal")
                .to_string()
        };
        assert!(message(tiled, 0, 256, &LIMITS).contains("no bodies"));
        assert!(message(tiled, 5, 100, &LIMITS).contains("multiple of 32 threads, not 100"));
        assert!(message(tiled, 5, 0, &LIMITS).contains("not 0"));
        assert!(message(tiled, 5, 2048, &LIMITS).contains("2048"));
        assert!(message(energy, 5, 96, &LIMITS).contains("power of two"));
        let tight = Limits {
            shared_bytes: 4096,
            ..LIMITS
        };
        assert!(message(tiled, 5, 512, &tight).contains("8192 bytes"));
        assert!(stride(tiled, usize::MAX).is_err());
        assert!(stride(tiled, 1 << 29).is_err());
        assert_eq!(stride(tiled, 33), Ok(64));
    }
}
