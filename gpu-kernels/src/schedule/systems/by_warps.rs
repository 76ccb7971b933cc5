//! A time step in one launch, a warp for each body: for systems so small that launches, and accesses that wait for
//! each other, take more time than their pairs.

use super::{System, constant};
use crate::abi::{Params, SystemConstant};
use crate::interaction::PairLaw;
use crate::layout::{Layout, Source};
use crate::numerics::Arithmetic;
use crate::schedule::advance::add_scaled;
use crate::tile::{Tile, added, sweep};
use cuda_std::warp::{Shuffle, WARP_SIZE, over_lanes};
use cuda_std::{GpuFloat, thread, warp};

/// Sources that a thread has on their way at a time.
const AHEAD: usize = 4;

/// One step, from one buffer to another.
///
/// # Formula
/// `v′ = v + dt a(x)`, as often as the system's record says, and `x′ = x + dt v′`. Lane l of a warp adds sources l, l + 32, …
/// of the tiles; then the lanes' sums are added in pairs.
///
/// # Arguments
/// `from`: the bodies of all systems, read. `records`: the constants of all systems. `to`: bodies as in `from`, written.
/// `params.systems.tile`: sources of a tile.
///
/// # Thread mapping
/// Along the grid's first axis the warps of a system, one for each body; along its second the systems. Warps
/// without a body fetch sources and reach every barrier.
///
/// # Shared memory
/// One tile: [`L::TILE_WORDS`](Layout::TILE_WORDS) words per source.
///
/// # Constraints
/// `A` handles ε = 0 if that of a system is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn step_by_warps<L, A, W, const UNROLL: u32>(
    from: *const L::Word,
    records: *const f64,
    to: *mut L::Word,
    params: Params,
) where
    L: Layout<Real: Shuffle>,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let tile = Tile::<L>::with_capacity(params.systems.tile);
    let (i, lane) = (thread::index_1d() / WARP_SIZE, warp::lane_id());
    // SAFETY: bodies of this block's system; targets beyond n stand in for the last one; slots below `count` are
    // filled; body i of `to` is this warp's alone.
    unsafe {
        // All that is read from global memory, before the first barrier: so it is waited for once.
        let system = System::<L::Real>::of_block(records, &params);
        let kicks = constant(records, &params, SystemConstant::Kicks) as u32;
        let at = system.first + i.min(system.n - 1);
        let target = L::source(from, system.stride, at);
        let velocity = L::velocity(from, system.stride, at);
        let mut sum = [L::Real::from_f64(0.0); 3];
        let mut done = 0;
        while done < system.n {
            let (first, left) = (system.first + done, system.n - done);
            let count = tile.fetch_together::<AHEAD>(from, system.stride, first, left);
            let mut add = |slot| {
                let source = tile.source(slot);
                W::interact::<A>(target.position, source, &system.constants, &mut sum);
            };
            let rows = count / WARP_SIZE;
            sweep::<UNROLL>(rows, &mut |row| add(row * WARP_SIZE + lane));
            if rows * WARP_SIZE + lane < count {
                add(rows * WARP_SIZE + lane);
            }
            done += tile.capacity();
        }
        warp::sync_warp();
        let sum = over_lanes(sum, added);
        if lane == 0 && i < system.n {
            let a = W::acceleration(sum, target.mass, velocity, &system.constants);
            let v = system.kicked_times(velocity, a, kicks);
            let moved = Source {
                position: add_scaled(target.position, system.drift, v),
                ..target
            };
            L::set_velocity(to, system.stride, at, v);
            L::set_source(to, system.stride, at, moved);
        }
    }
}
