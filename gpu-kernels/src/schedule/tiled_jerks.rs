//! As [`tiled`](super::tiled), with velocities beside the positions in the tile: accelerations and
//! their derivatives in time together.

use crate::abi::Params;
use crate::interaction::{InverseSquare, interact_with_jerk};
use crate::layout::{Layout, Source};
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::tile::{added, for_each, sweep};
use cuda_std::shared::dynamic_shared_mem;
use cuda_std::{GpuFloat, thread};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::TiledJerks;

/// Tiles that a block shares: positions with masses, and velocities.
pub const TILES: u32 = 2;

/// Accelerations and jerks of all bodies, `LANE` of them per thread.
///
/// # Formula
/// `a_i = G Σ_j w_j r / d³` and `ȧ_i = G Σ_j w_j (v / d³ − 3 (r·v) r / d⁵)`, with r and v the
/// position and velocity of j relative to i; summed within each tile and then over the tiles.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`, `jerk`: n vectors each, written. All of layout `L` with
/// `params.stride`.
///
/// # Thread mapping
/// One-dimensional, all blocks or those of `params.share`; a block computes `LANE` bodies for each of its threads, a thread every
/// [`block_dim_x`](thread::block_dim_x)-th of them. Threads beyond n compute nothing that is kept,
/// but fetch sources and reach every barrier.
///
/// # Shared memory
/// [`TILES`] tiles: twice [`L::TILE_WORDS`](Layout::TILE_WORDS) words per thread.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Makino & Aarseth (1992), PASJ 44, 141, eqs. 1 and 2, by the schedule of Nyland, Harris & Prins,
/// GPU Gems 3 (2007), ch. 31.
#[inline(always)]
pub unsafe fn force<L, A, W, const LANE: usize, const STEPS: u32>(
    state: *const L::Word,
    acceleration: *mut L::Word,
    jerk: *mut L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: InverseSquare,
{
    let Params { n, stride, .. } = params;
    let (slot, capacity) = (thread::thread_idx_x(), thread::block_dim_x());
    let block = params.share.first + thread::block_idx_x();
    let body = |k: usize| (block * LANE as u32 + k as u32) * capacity + slot;
    let softening_squared = A::Real::from_f64(params.softening_squared);
    let nothing = A::Real::from_f64(0.0);
    let zero = [[[nothing; 3]; 2]; LANE];
    let positions = dynamic_shared_mem();
    let velocities = positions.after(capacity * L::TILE_WORDS);
    // SAFETY: targets beyond n stand in for the last body; all threads of the block go through the
    // same tiles, each fills its own slot between two barriers, and slots are read up to the last
    // one filled; the vectors of its bodies are this thread's alone.
    unsafe {
        let mut targets = zero;
        for_each::<LANE>(|k| {
            let own = body(k).min(n - 1);
            targets[k] = [
                L::source(state, stride, own).position,
                L::velocity(state, stride, own),
            ];
        });
        let mut totals = zero;
        let mut first = 0;
        while first < n {
            thread::sync_threads();
            if first + slot < n {
                let source = L::source(state, stride, first + slot);
                let moving = Source {
                    position: L::velocity(state, stride, first + slot),
                    mass: nothing,
                };
                L::set_tile_source(positions, capacity, slot, source);
                L::set_tile_source(velocities, capacity, slot, moving);
            }
            thread::sync_threads();
            let mut sums = zero;
            sweep::<STEPS>((n - first).min(capacity), &mut |slot| {
                let source = L::tile_source(positions, capacity, slot);
                let velocity = L::tile_source(velocities, capacity, slot).position;
                for_each::<LANE>(|k| {
                    let [sum, jerk] = &mut sums[k];
                    interact_with_jerk::<A>(
                        targets[k],
                        [source.position, velocity],
                        W::weight(source.mass),
                        softening_squared,
                        sum,
                        jerk,
                    );
                });
            });
            for_each::<LANE>(|k| {
                let ([total, total_jerk], [sum, jerk]) = (totals[k], sums[k]);
                totals[k] = [added(total, sum), added(total_jerk, jerk)];
            });
            first += capacity;
        }
        let g = A::Real::from_f64(params.g);
        for_each::<LANE>(|k| {
            if body(k) < n {
                let [total, total_jerk] = totals[k];
                L::set_vector(acceleration, stride, body(k), scaled(g, total));
                L::set_vector(jerk, stride, body(k), scaled(g, total_jerk));
            }
        });
    }
}

#[inline(always)]
fn scaled<R: GpuFloat>(factor: R, v: [R; 3]) -> [R; 3] {
    [factor * v[0], factor * v[1], factor * v[2]]
}
