//! As [`tiled`](super::tiled), with velocities beside the positions in the tile: accelerations and
//! their derivatives in time together.

use crate::abi::Params;
use crate::interaction::{InverseSquare, interact_with_jerk};
use crate::layout::{Layout, Source};
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::tile::sweep;
use cuda_std::shared::dynamic_shared_mem;
use cuda_std::{GpuFloat, thread};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::TiledJerks;

/// Tiles that a block shares: positions with masses, and velocities.
pub const TILES: u32 = 2;

/// Accelerations and jerks of all bodies.
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
/// One-dimensional; thread i computes body i. Threads beyond n compute nothing that is kept, but
/// fetch sources and reach every barrier.
///
/// # Shared memory
/// [`TILES`] tiles: twice [`L::TILE_WORDS`](Layout::TILE_WORDS) words a thread.
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
pub unsafe fn force<L, A, W, const UNROLL: u32>(
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
    let (i, slot, capacity) = (
        thread::index_1d(),
        thread::thread_idx_x(),
        thread::block_dim_x(),
    );
    let softening_squared = A::Real::from_f64(params.softening_squared);
    let nothing = A::Real::from_f64(0.0);
    let zero = [nothing; 3];
    let positions = dynamic_shared_mem();
    let velocities = positions.after(capacity * L::TILE_WORDS);
    // SAFETY: targets beyond n stand in for the last body; all threads of the block go through the
    // same tiles, each fills its own slot between two barriers, and slots are read up to the last
    // one filled; vectors i are this thread's alone.
    unsafe {
        let own = i.min(n - 1);
        let target = [
            L::source(state, stride, own).position,
            L::velocity(state, stride, own),
        ];
        let (mut total, mut total_jerk) = (zero, zero);
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
            let (mut sum, mut jerks) = (zero, zero);
            sweep::<UNROLL>((n - first).min(capacity), &mut |slot| {
                let source = L::tile_source(positions, capacity, slot);
                let velocity = L::tile_source(velocities, capacity, slot).position;
                interact_with_jerk::<A>(
                    target,
                    [source.position, velocity],
                    W::weight(source.mass),
                    softening_squared,
                    &mut sum,
                    &mut jerks,
                );
            });
            total = added(total, sum);
            total_jerk = added(total_jerk, jerks);
            first += capacity;
        }
        if i < n {
            let g = A::Real::from_f64(params.g);
            L::set_vector(acceleration, stride, i, scaled(g, total));
            L::set_vector(jerk, stride, i, scaled(g, total_jerk));
        }
    }
}

#[inline(always)]
fn added<R: GpuFloat>(a: [R; 3], b: [R; 3]) -> [R; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

#[inline(always)]
fn scaled<R: GpuFloat>(factor: R, v: [R; 3]) -> [R; 3] {
    [factor * v[0], factor * v[1], factor * v[2]]
}
