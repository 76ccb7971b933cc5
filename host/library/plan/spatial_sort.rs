//! Launch plan for sorting bodies along the Hilbert curve.

use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::spatial_sort::{self as kernels, SortStage};

use super::{Buffer, ELEMENTWISE_BLOCK, Launch, Limits, PlanError, Sizes, Step};

/// Launches that sort bodies along the Hilbert curve.
#[derive(Clone, Debug)]
pub struct SpatialSort {
    /// Buffers that it adds to the buffers of the bodies.
    pub scratch: Sizes,
    /// Steps, in order.
    pub steps: Vec<Step>,
}

/// The plan for the bodies that a force is computed of.
///
/// # Errors
/// If a launch would be refused by the device.
pub fn plan(force: &Entry, n: u32, limits: &Limits) -> Result<SpatialSort, PlanError> {
    let stage = |part| super::partner(force, Work::SpatialSort(part));
    let mut steps = order(&stage, n, &[], limits)?;
    for moved in [SortStage::Reorder, SortStage::Renumber].map(stage) {
        let launch = super::one_dimensional(moved, n, ELEMENTWISE_BLOCK, limits)?;
        steps.push(Step::launch((moved, launch)));
    }
    let layout = &force.layout;
    let stride = super::stride(force, n as usize)? as usize;
    let bytes = |scalars: u32, of: u32| stride * scalars as usize * of as usize;
    let one_a_body = n as usize * size_of::<u32>();
    let mut scratch = order_scratch(n);
    scratch.extend([
        (
            Buffer::state_to,
            bytes(layout.state_scalars, layout.stored.bytes()),
        ),
        (
            Buffer::acceleration_to,
            bytes(layout.vector_scalars, layout.vectors.bytes()),
        ),
        (Buffer::numbers, one_a_body),
        (Buffer::numbers_to, one_a_body),
    ]);
    Ok(SpatialSort { scratch, steps })
}

/// Buffers that an [`order()`] of n bodies takes in addition to their state.
pub fn order_scratch(n: u32) -> Sizes {
    let one_a_body = n as usize * size_of::<u32>();
    let starts = kernels::DIGITS as usize * kernels::tiles(n) as usize * size_of::<u32>();
    vec![
        (Buffer::bounds, size_of::<[f32; 4]>()),
        (Buffer::keys, one_a_body),
        (Buffer::keys_to, one_a_body),
        (Buffer::order, one_a_body),
        (Buffer::order_to, one_a_body),
        (Buffer::starts, starts),
    ]
}

/// Steps that put the order of the state's n bodies along the curve into [`Buffer::order`], by the kernel of each
/// stage. Buffers that are `renamed` stand in for the state and the order.
///
/// # Errors
/// If a launch would be refused by the device.
pub fn order(
    stage: &dyn Fn(SortStage) -> &'static Entry,
    n: u32,
    renamed: &[(Buffer, Buffer)],
    limits: &Limits,
) -> Result<Vec<Step>, PlanError> {
    let step = |part, blocks, (threads, shared_bytes), renamed: &[(Buffer, Buffer)]| Step::Launch {
        entry: stage(part),
        launch: Launch {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared_bytes,
        },
        renamed: renamed.to_vec(),
    };
    let tiles = kernels::tiles(n);
    let of_tile = (kernels::SORT_THREADS, kernels::SORT_SHARED_BYTES);
    let of_scan = (kernels::SCAN_THREADS, kernels::SCAN_SHARED_BYTES);
    let of_halve = (kernels::HALVE_THREADS, kernels::HALVE_SHARED_BYTES);
    let keys = stage(SortStage::Keys);
    let mut steps = vec![Step::Launch {
        entry: keys,
        launch: super::one_dimensional(keys, n, ELEMENTWISE_BLOCK, limits)?,
        renamed: renamed.to_vec(),
    }];
    let result = renamed.iter().find(|(name, _)| *name == Buffer::order);
    let result = result.map_or(Buffer::order, |&(_, name)| name);
    let there = [
        (Buffer::keys, Buffer::keys),
        (Buffer::order, result),
        (Buffer::keys_to, Buffer::keys_to),
        (Buffer::order_to, Buffer::order_to),
    ];
    let back = [
        (Buffer::keys, Buffer::keys_to),
        (Buffer::order, Buffer::order_to),
        (Buffer::keys_to, Buffer::keys),
        (Buffer::order_to, result),
    ];
    const { assert!(kernels::PASSES.is_multiple_of(2), "all ends in the order") };
    for pass in 0..kernels::PASSES {
        let digit = [there, back][pass as usize % 2];
        steps.extend([
            step(SortStage::Count, tiles, of_tile, &digit),
            step(SortStage::Scan, 1, of_scan, &digit),
            step(SortStage::Scatter, tiles, of_tile, &digit),
        ]);
    }
    let chunks = n.div_ceil(kernels::CHUNK);
    steps.push(step(SortStage::Halve, chunks, of_halve, renamed));
    Ok(steps)
}
