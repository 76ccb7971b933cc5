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
    let each = |part| {
        let entry = super::partner(force, Work::SpatialSort(part));
        Ok::<_, PlanError>((
            entry,
            super::one_dimensional(entry, n, ELEMENTWISE_BLOCK, limits)?,
        ))
    };
    let blocks = |part, blocks, threads, shared_bytes| {
        let launch = Launch {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared_bytes,
        };
        (super::partner(force, Work::SpatialSort(part)), launch)
    };
    let tiles = kernels::tiles(n);
    let sort = |part| {
        blocks(
            part,
            tiles,
            kernels::SORT_THREADS,
            kernels::SORT_SHARED_BYTES,
        )
    };
    let step = |(entry, launch), buffers: &[Buffer]| Step::Launch {
        entry,
        launch,
        buffers: buffers.to_vec(),
    };
    let [bounds, counts] = [SortBuffer::Bounds, SortBuffer::Counts].map(SortBuffer::buffer);
    let (mut keys, mut order) = (
        [SortBuffer::Keys, SortBuffer::KeysTo].map(SortBuffer::buffer),
        [SortBuffer::Order, SortBuffer::OrderTo].map(SortBuffer::buffer),
    );
    let mut steps = vec![step(
        each(SortStage::Keys)?,
        &[Buffer::State, bounds, keys[0], order[0]],
    )];
    for _ in 0..kernels::PASSES {
        steps.push(step(sort(SortStage::Count), &[keys[0], counts]));
        steps.push(step(
            blocks(
                SortStage::Scan,
                1,
                kernels::SCAN_THREADS,
                kernels::SCAN_SHARED_BYTES,
            ),
            &[counts],
        ));
        steps.push(step(
            sort(SortStage::Scatter),
            &[keys[0], order[0], counts, keys[1], order[1]],
        ));
        keys.reverse();
        order.reverse();
    }
    let halve = blocks(
        SortStage::Halve,
        n.div_ceil(kernels::CHUNK),
        kernels::HALVE_THREADS,
        kernels::HALVE_SHARED_BYTES,
    );
    steps.push(step(halve, &[Buffer::State, order[0]]));
    let [state, acceleration] =
        [SortBuffer::State, SortBuffer::Acceleration].map(SortBuffer::buffer);
    steps.push(step(
        each(SortStage::Reorder)?,
        &[
            Buffer::State,
            Buffer::Acceleration,
            order[0],
            state,
            acceleration,
        ],
    ));
    let [numbers, numbers_to] =
        [SortBuffer::Numbers, SortBuffer::NumbersTo].map(SortBuffer::buffer);
    steps.push(step(
        each(SortStage::Renumber)?,
        &[numbers, order[0], numbers_to],
    ));
    Ok(SpatialSort {
        scratch: scratch(force, n)?,
        steps,
    })
}

fn scratch(force: &Entry, n: u32) -> Result<Vec<usize>, PlanError> {
    let layout = &force.layout;
    let stride = super::stride(force, n as usize)? as usize;
    let vectors = stride * layout.vector_scalars as usize * layout.vectors.bytes() as usize;
    let state = stride * layout.state_scalars as usize * layout.stored.bytes() as usize;
    let one_a_body = n as usize * size_of::<u32>();
    let counts = kernels::DIGITS as usize * kernels::tiles(n) as usize * size_of::<u32>();
    let places = [
        (SortBuffer::Bounds, size_of::<[f32; 4]>()),
        (SortBuffer::Keys, one_a_body),
        (SortBuffer::KeysTo, one_a_body),
        (SortBuffer::Order, one_a_body),
        (SortBuffer::OrderTo, one_a_body),
        (SortBuffer::Counts, counts),
        (SortBuffer::State, state),
        (SortBuffer::Acceleration, vectors),
        (SortBuffer::Numbers, one_a_body),
        (SortBuffer::NumbersTo, one_a_body),
    ];
    debug_assert!((0..).zip(places).all(|(i, (place, _))| i == place as usize));
    Ok(places.map(|(_, bytes)| bytes).to_vec())
}
