//! The plan of the schedule on tensor cores.

use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::tensor;

use super::{Buffer, ForcePlan, Launch, Limits, PlanError, Step, WARP};

/// Blocks that a launch on tensor cores shall have where there are pairs enough: several rounds for
/// the largest GPUs, so that they end together.
const TENSOR_BLOCKS: u32 = 4096;

/// Sources that a warp on tensor cores meets at most.
const TENSOR_SOURCES: u32 = 1024;

/// Tiles of targets against parts of the sources.
pub(super) fn plan(
    entry: &'static Entry,
    n: u32,
    threads: u32,
    limits: &Limits,
) -> Result<ForcePlan, PlanError> {
    let kernel = entry.symbol;
    let Work::Force { unroll: tiles, .. } = entry.work else {
        unreachable!("`{kernel}` is no force")
    };
    if n == 0 {
        return Err(PlanError::NoBodies { kernel });
    }
    if threads == 0 || !threads.is_multiple_of(WARP) {
        return Err(PlanError::Block {
            kernel,
            needed: super::multiple_of_a_warp(),
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
    let shared_bytes = tiles * tensor::TILE_BYTES;
    if shared_bytes > limits.shared_bytes {
        return Err(PlanError::TooMuchShared {
            kernel,
            threads,
            bytes: shared_bytes.into(),
            most: limits.shared_bytes,
        });
    }
    let blocks = n.div_ceil(tiles * tensor::TILE);
    // Half the blocks of the rectangle lie below the diagonal and end at once.
    let parts = n
        .div_ceil(TENSOR_SOURCES * (threads / WARP))
        .max(2 * TENSOR_BLOCKS / blocks)
        .min(blocks);
    let launch = Launch {
        grid: [blocks, parts, 1],
        block: [threads, 1, 1],
        shared_bytes,
    };
    Ok(ForcePlan::of(vec![
        Step::Zero(Buffer::acceleration),
        Step::launch((entry, launch)),
    ]))
}
