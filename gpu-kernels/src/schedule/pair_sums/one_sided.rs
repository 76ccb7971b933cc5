//! Sums for each target by itself, over parts of the sources.

use super::first;
use super::units::{OfFrame, of_frame};
use crate::abi::Params;
use crate::interaction::gradients::{PairSum, Softening};
use crate::layout::Layout;
use crate::numerics::Arithmetic;
use crate::tile::{for_each, sweep};
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::{GpuFloat, global, thread};

/// Sources of a tile.
pub const TILE: u32 = 128;

/// Sums over a part of the sources, of each body over all others of its system.
///
/// # Formula
/// [`PairSum::add`] of `F`, in the precision of `A` within each tile, and in f64 over the tiles. A body adds nothing to
/// its sum.
///
/// # Arguments
/// `bodies` and `more`: rows of layout `L` as [`pack`](super::pack) leaves them, read; `more` if `N` > 4. `frames`: as
/// [`frames`](super::frames) leaves them, read. `sums`: `S` planes of `params.stride` bodies for each of
/// `params.partials` parts, written. A system has `params.n` bodies.
///
/// # Thread mapping
/// The grid's first axis has the blocks of targets, system after system, the second the parts of the sources. A thread has
/// `LANE` targets, a block's size apart. Targets beyond a system's last stand for it, and nothing of them
/// is kept.
///
/// # Shared memory
/// [`TILE`] sources, one row each, or two if `N` > 4.
///
/// # Constraints
/// All sums are fewer than 2³².
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// [`points`](crate::schedule::points), with the bodies as targets and more numbers of each.
#[inline(always)]
pub unsafe fn sums<L, A, F, const N: usize, const S: usize, const LANE: usize, const UNROLL: u32>(
    bodies: *const L::Word,
    more: *const L::Word,
    frames: *const f64,
    sums: *mut f64,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    F: PairSum<N, S>,
{
    let Params { n, stride, .. } = params;
    let threads = thread::block_dim_x();
    let of_block = threads * LANE as u32;
    let blocks = n.div_ceil(of_block);
    let system = thread::block_idx_x() / blocks;
    let begin = system * n;
    let first_target = thread::block_idx_x() % blocks * of_block;
    let target = |k: usize| first_target + k as u32 * threads + thread::thread_idx_x();
    let part = thread::block_idx_y();
    let zero = A::Real::from_f64(0.0);
    let tile: Shared<L::Word> = dynamic_shared_mem();
    let rest_of_tile: Shared<L::Word> = tile.after(TILE * L::TILE_WORDS);
    let mut targets = [[zero; N]; LANE];
    let mut totals = [[0.0_f64; S]; LANE];
    // SAFETY: targets beyond n stand for the last; all threads of the block go through the same tiles of sources that
    // exist, and a slot is filled by one thread between barriers; the sums of a target over a part are one thread's.
    unsafe {
        let row = |i: u32| {
            let body = L::source(bodies, stride, begin + i);
            let rest = if N > 4 {
                L::source(more, stride, begin + i)
            } else {
                body
            };
            (body, rest)
        };
        let softening = Softening {
            squared: A::Real::from_f64(of_frame(frames, system, OfFrame::SofteningSquared, 0)),
            rate: A::Real::from_f64(of_frame(frames, system, OfFrame::SofteningRate, 0)),
        };
        for_each::<LANE>(|k| {
            let (body, rest) = row(target(k).min(n - 1));
            targets[k] = first(body, rest);
        });
        let of_part = n.div_ceil(TILE).div_ceil(params.partials) * TILE;
        let mut next = part * of_part;
        let end = (next + of_part).min(n);
        while next < end {
            let count = (end - next).min(TILE);
            thread::sync_threads();
            let mut slot = thread::thread_idx_x();
            while slot < count {
                let (body, rest) = row(next + slot);
                L::set_tile_source(tile, TILE, slot, body);
                if N > 4 {
                    L::set_tile_source(rest_of_tile, TILE, slot, rest);
                }
                slot += threads;
            }
            thread::sync_threads();
            let source = |slot: u32| {
                let body = L::tile_source(tile, TILE, slot);
                let rest = if N > 4 {
                    L::tile_source(rest_of_tile, TILE, slot)
                } else {
                    body
                };
                first::<A::Real, N>(body, rest)
            };
            let mut of_tile = [[zero; S]; LANE];
            let has_targets = next < first_target + of_block && first_target < next + count;
            if has_targets {
                sweep::<1>(count, &mut |slot| {
                    let numbers = source(slot);
                    for_each::<LANE>(|k| {
                        if target(k) != next + slot {
                            F::add::<A>(&targets[k], &numbers, softening, &mut of_tile[k]);
                        }
                    });
                });
            } else {
                sweep::<UNROLL>(count, &mut |slot| {
                    let numbers = source(slot);
                    for_each::<LANE>(|k| {
                        F::add::<A>(&targets[k], &numbers, softening, &mut of_tile[k]);
                    });
                });
            }
            for_each::<LANE>(|k| {
                for_each::<S>(|c| totals[k][c] += of_tile[k][c].to_f64());
            });
            next += TILE;
        }
        for_each::<LANE>(|k| {
            if target(k) < n {
                for_each::<S>(|c| {
                    let plane = part * S as u32 + c as u32;
                    global::store(sums, plane * stride + begin + target(k), totals[k][c]);
                });
            }
        });
    }
}
