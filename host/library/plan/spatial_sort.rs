//! Launch plan for sorting bodies along the Hilbert curve.

use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::spatial_sort::{self as kernels, SortStage};

use super::{Buffer, ELEMENTWISE_BLOCK, Launch, Limits, PlanError, Step};

/// Buffers of an order's own, in their order: the plan's [`Buffer::Scratch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBuffer {
    /// The cube around the bodies, four f32: see [`kernels::keys`].
    Bounds,
    /// Places along the curve.
    Keys,
    /// Copy of the previous buffer, sorted by one digit more.
    KeysTo,
    /// Slots in their new order.
    Order,
    /// Copy of the previous buffer, sorted by one digit more.
    OrderTo,
    /// Number of keys with each digit.
    Counts,
    /// The state in its new order.
    State,
    /// Accelerations in their new order.
    Acceleration,
    /// Number of the body in each slot.
    Numbers,
    /// Numbers of the bodies in their new order.
    NumbersTo,
}

impl SortBuffer {
    const fn buffer(self) -> Buffer {
        Buffer::Scratch(self as usize)
    }
}

/// Launches that sort bodies along the Hilbert curve.
#[derive(Clone, Debug)]
pub struct SpatialSort {
    /// Sizes of the buffers, bytes, as [`SortBuffer`] numbers them.
    pub scratch: Vec<usize>,
    /// Steps, in order.
    pub steps: Vec<Step>,
}

/// The plan for the bodies that a force is computed of.
///
/// # Errors
/// If a launch would be refused by the device.
pub fn plan(force: &Entry, n: u32, limits: &Limits) -> Result<SpatialSort, PlanError> {
    let stage = |part| super::partner(force, Work::SpatialSort(part));
    let [order_of, state, acceleration, numbers, numbers_to] = [
        SortBuffer::Order,
        SortBuffer::State,
        SortBuffer::Acceleration,
        SortBuffer::Numbers,
        SortBuffer::NumbersTo,
    ]
    .map(SortBuffer::buffer);
    let given = [Buffer::State, Buffer::Acceleration];
    let reorder = [given[0], given[1], order_of, state, acceleration];
    let renumber = [numbers, order_of, numbers_to];
    let mut steps = order(&stage, n, limits)?;
    steps.push(of_each(stage(SortStage::Reorder), n, &reorder, limits)?);
    steps.push(of_each(stage(SortStage::Renumber), n, &renumber, limits)?);
    let layout = &force.layout;
    let stride = super::stride(force, n as usize)? as usize;
    let bytes = |scalars: u32, of: u32| stride * scalars as usize * of as usize;
    let one_a_body = n as usize * size_of::<u32>();
    let mut scratch = order_scratch(n).to_vec();
    scratch.extend([
        bytes(layout.state_scalars, layout.stored.bytes()),
        bytes(layout.vector_scalars, layout.vectors.bytes()),
        one_a_body,
        one_a_body,
    ]);
    debug_assert_eq!(scratch.len(), SortBuffer::NumbersTo as usize + 1);
    Ok(SpatialSort { scratch, steps })
}

/// Bytes of the buffers that an [`order()`] of n bodies takes, as [`SortBuffer`] numbers them.
pub fn order_scratch(n: u32) -> [usize; 6] {
    let one_a_body = n as usize * size_of::<u32>();
    let counts = kernels::DIGITS as usize * kernels::tiles(n) as usize * size_of::<u32>();
    let places = [
        (SortBuffer::Bounds, size_of::<[f32; 4]>()),
        (SortBuffer::Keys, one_a_body),
        (SortBuffer::KeysTo, one_a_body),
        (SortBuffer::Order, one_a_body),
        (SortBuffer::OrderTo, one_a_body),
        (SortBuffer::Counts, counts),
    ];
    debug_assert!((0..).zip(places).all(|(i, (place, _))| i == place as usize));
    places.map(|(_, bytes)| bytes)
}

/// A launch of a thread for each body.
fn of_each(
    entry: &'static Entry,
    n: u32,
    buffers: &[Buffer],
    limits: &Limits,
) -> Result<Step, PlanError> {
    Ok(Step::Launch {
        entry,
        launch: super::one_dimensional(entry, n, ELEMENTWISE_BLOCK, limits)?,
        buffers: buffers.to_vec(),
    })
}

/// Steps that put the order of the state's n bodies along the curve into [`SortBuffer::Order`], by the kernel of
/// each stage.
///
/// # Errors
/// If a launch would be refused by the device.
pub fn order(
    stage: &dyn Fn(SortStage) -> &'static Entry,
    n: u32,
    limits: &Limits,
) -> Result<Vec<Step>, PlanError> {
    let step = |part, blocks, (threads, shared_bytes), buffers: &[Buffer]| Step::Launch {
        entry: stage(part),
        launch: Launch {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared_bytes,
        },
        buffers: buffers.to_vec(),
    };
    let tiles = kernels::tiles(n);
    let of_tile = (kernels::SORT_THREADS, kernels::SORT_SHARED_BYTES);
    let of_scan = (kernels::SCAN_THREADS, kernels::SCAN_SHARED_BYTES);
    let of_halve = (kernels::HALVE_THREADS, kernels::HALVE_SHARED_BYTES);
    let [bounds, counts] = [SortBuffer::Bounds, SortBuffer::Counts].map(SortBuffer::buffer);
    let (mut keys, mut order) = (
        [SortBuffer::Keys, SortBuffer::KeysTo].map(SortBuffer::buffer),
        [SortBuffer::Order, SortBuffer::OrderTo].map(SortBuffer::buffer),
    );
    let begun = [Buffer::State, bounds, keys[0], order[0]];
    let mut steps = vec![of_each(stage(SortStage::Keys), n, &begun, limits)?];
    for _ in 0..kernels::PASSES {
        let scattered = [keys[0], order[0], counts, keys[1], order[1]];
        steps.extend([
            step(SortStage::Count, tiles, of_tile, &[keys[0], counts]),
            step(SortStage::Scan, 1, of_scan, &[counts]),
            step(SortStage::Scatter, tiles, of_tile, &scattered),
        ]);
        keys.reverse();
        order.reverse();
    }
    let chunks = n.div_ceil(kernels::CHUNK);
    steps.push(step(
        SortStage::Halve,
        chunks,
        of_halve,
        &[Buffer::State, order[0]],
    ));
    debug_assert_eq!(order[0], SortBuffer::Order.buffer());
    Ok(steps)
}
