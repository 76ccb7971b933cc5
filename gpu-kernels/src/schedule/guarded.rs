//! Tiles of sources in shared memory, as in [`tiled`](super::tiled), but every tile is taken for a
//! whole one and each of its slots is tested, as a first port does to be right for any N.

use crate::abi::Params;
use crate::interaction::{Constants, PairLaw};
use crate::layout::Layout;
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::schedule::direct::conclude;
use crate::tile::{Tile, sweep};
use cuda_std::{GpuFloat, thread};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::Guarded;

/// Accelerations of all bodies.
///
/// # Formula
/// The law's sum over all sources, tile by tile.
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
/// The `gtx1060` study's baseline.
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
    let tile = Tile::<L>::of_block();
    let mut sum = [A::Real::from_f64(0.0); 3];
    // SAFETY: targets beyond n stand in for the last body; all threads of the block go through the
    // same tiles, and read only slots of sources that exist; vector i is this thread's alone.
    unsafe {
        let own = i.min(params.n - 1);
        let target = L::source(state, params.stride, own).position;
        let mut first = 0;
        while first < params.n {
            tile.fetch(state, params.stride, params.n, first);
            let mut add = |slot| {
                let j = first + slot;
                if j < params.n && !(A::POLICY.skips_self && j == own) {
                    W::interact::<A>(target, tile.source(slot), &constants, &mut sum);
                }
            };
            sweep::<UNROLL>(tile.capacity(), &mut add);
            first += tile.capacity();
        }
        if i < params.n {
            conclude::<L, W>(state, acceleration, params, i, sum);
        }
    }
}
