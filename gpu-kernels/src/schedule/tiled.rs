//! One thread per target body; the block fetches the sources tile by tile into shared memory, where
//! each is read by all its threads.

use crate::abi::Params;
use crate::interaction::{Constants, PairLaw};
use crate::layout::Layout;
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::tile::Tile;
use cuda_std::{GpuFloat, thread};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::Tiled;

/// Accelerations of all bodies.
///
/// # Formula
/// `a_i = G Σ_j w_j r / d³`, summed within each tile and then over the tiles: the error of the sum
/// grows with the tile's size and the number of tiles instead of their product, at the price of
/// three additions per tile.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`: n vectors, written. Both of layout `L` with
/// `params.stride`.
///
/// # Thread mapping
/// One-dimensional; thread i computes body i. Threads beyond n compute nothing that is kept, but
/// fetch sources and reach every barrier.
///
/// # Shared memory
/// One tile: [`L::TILE_WORDS`](Layout::TILE_WORDS) words per thread.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Nyland, Harris & Prins, GPU Gems 3 (2007), ch. 31.
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
    // SAFETY: targets beyond n stand in for the last body; all threads of the block go through the
    // same tiles; vector i is this thread's alone.
    unsafe {
        let own = i.min(params.n - 1);
        let body = L::source(state, params.stride, own);
        let mut total = zero;
        let mut first = 0;
        while first < params.n {
            let count = tile.fetch(state, params.stride, params.n, first);
            let mut sum = zero;
            let own = own.wrapping_sub(first);
            tile.interact::<A, W, UNROLL>(count, own, body.position, &constants, &mut sum);
            total = [total[0] + sum[0], total[1] + sum[1], total[2] + sum[2]];
            first += tile.capacity();
        }
        if i < params.n {
            let velocity = L::velocity(state, params.stride, i);
            let a = W::acceleration(total, body.mass, velocity, &constants);
            L::set_vector(acceleration, params.stride, i, a);
        }
    }
}
