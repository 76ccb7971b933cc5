//! Two kernels that may run side by side: the targets that fill whole blocks go through shared
//! tiles, with no test for a last, partial block, and the rest read every source from global memory.

use crate::abi::Params;
use crate::interaction::{Constants, PairLaw};
use crate::layout::Layout;
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::schedule::direct::{conclude, sum_over};
use crate::tile::{Tile, added};
use cuda_std::{GpuFloat, thread};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::Hybrid;

/// Accelerations of the bodies that fill whole blocks.
///
/// # Formula
/// The law's sum over all sources, within each tile and then over the tiles.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`: n vectors, written. Both of layout `L` with
/// `params.stride`.
///
/// # Thread mapping
/// One-dimensional; thread i computes body i. There is no thread beyond n. A tile is the last one
/// when the block counts no source in the one after it.
///
/// # Shared memory
/// One tile: [`L::TILE_WORDS`](Layout::TILE_WORDS) words per thread.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0.
/// The grid has n / block blocks, rounded down, and at least one.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The `gtx1060` study.
#[inline(always)]
pub unsafe fn force<L, A, W, const UNROLL: u32>(
    state: *const L::Word,
    acceleration: *mut L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let i = thread::index_1d();
    let constants = Constants::of(&params);
    let zero = [A::Real::from_f64(0.0); 3];
    let tile = Tile::<L>::of_block();
    // SAFETY: i is a body, by the grid's size; all threads of the block count the same sources;
    // vector i is this thread's alone.
    unsafe {
        let target = L::source(state, params.stride, i).position;
        let mut total = zero;
        let mut first = 0;
        loop {
            let count = tile.fetch_counted(state, params.stride, params.n, first);
            if count == 0 {
                break;
            }
            let mut sum = zero;
            let own = i.wrapping_sub(first);
            tile.interact::<A, W, UNROLL>(count, own, target, &constants, &mut sum);
            total = added(total, sum);
            first += tile.capacity();
        }
        conclude::<L, W>(state, acceleration, params, i, total);
    }
}

/// Accelerations of the bodies beyond those that fill whole blocks.
///
/// # Formula
/// The law's sum over all sources in order.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`: n vectors, written. Both of layout `L` with
/// `params.stride`.
///
/// # Thread mapping
/// One block, of as many threads as those of [`force`]; thread k computes the k-th body beyond the
/// last whole block, threads beyond n do nothing.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The `gtx1060` study.
#[inline(always)]
pub unsafe fn rest<L, A, W, const UNROLL: u32>(
    state: *const L::Word,
    acceleration: *mut L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let i = params.n - params.n % thread::block_dim_x() + thread::index_1d();
    if i >= params.n {
        return;
    }
    // SAFETY: i is a body of the buffers, and vector i is this thread's alone.
    unsafe {
        let sum = sum_over::<L, A, W, UNROLL>(state, params, i, 0, params.n);
        conclude::<L, W>(state, acceleration, params, i, sum);
    }
}
