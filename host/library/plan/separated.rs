//! The plan of the schedule that computes far pairs on tensor cores.

use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::separated::{self, Pairing};

use super::{
    Buffer, ELEMENTWISE_BLOCK, ForcePlan, Launch, Limits, PlanError, Step, WARP, spatial_sort,
};

/// Blocks that a launch shall have where there are pairs enough: many rounds for the largest GPUs,
/// so that they end together.
const ENOUGH_BLOCKS: u32 = 16_384;

/// Blocks along the leaves of the launch of near pairs, which are few.
const NEAR_BLOCKS: u32 = 8;

/// Boxes, then near pairs beside far ones.
pub(super) fn plan(
    entry: &'static Entry,
    n: u32,
    threads: u32,
    limits: &Limits,
) -> Result<ForcePlan, PlanError> {
    let kernel = entry.symbol;
    let Work::Force { law, numerics, .. } = entry.work else {
        unreachable!("`{kernel}` is no force")
    };
    if n == 0 {
        return Err(PlanError::NoBodies { kernel });
    }
    if threads != separated::THREADS {
        return Err(PlanError::Block {
            kernel,
            needed: separated::THREADS.to_string(),
            threads,
        });
    }
    let blocks = separated::blocks(n);
    let spans = Pairing::of(0, blocks).spans();
    let parts = ENOUGH_BLOCKS.div_ceil(blocks).min(spans).max(1);
    let near_parts = NEAR_BLOCKS.min(spans.max(1));
    let warps = threads / WARP;
    let body_bytes = entry.layout.tile_bytes;
    let pairs = |parts, shared_bytes| Launch {
        grid: [blocks, parts, 1],
        block: [threads, 1, 1],
        shared_bytes,
    };
    let unsoftened = numerics.unsoftened;
    let boxes = super::partner(entry, Work::Boxes);
    let near = super::partner(entry, Work::Near { law, unsoftened });
    let padded = blocks * separated::TARGETS;
    let steps = vec![
        Step::Zero(Buffer::acceleration),
        Step::launch((
            boxes,
            super::one_dimensional(boxes, padded, ELEMENTWISE_BLOCK, limits)?,
        )),
        // They only add: the last near pairs leave room for the first far ones.
        Step::Beside {
            entry: near,
            launch: pairs(near_parts, warps * 2 * WARP * body_bytes),
        },
        Step::launch((entry, pairs(parts, separated::SHARED_BYTES))),
        Step::Join,
    ];
    let leaves = padded / separated::LEAF;
    Ok(ForcePlan {
        scratch: vec![(Buffer::boxes, leaves as usize * 2 * size_of::<[f32; 4]>())],
        order: Some(spatial_sort::plan(entry, n, limits)?),
        ..ForcePlan::of(steps)
    })
}
