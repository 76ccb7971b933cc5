//! Two-dimensional blocks on a two-dimensional grid: a block has some targets and some sources, each
//! thread one of the targets and some of those sources. The partial sums are another kernel's
//! ([`reduce`](super::reduce)) to add.

use crate::abi::Params;
use crate::interaction::{Constants, PairLaw};
use crate::layout::Layout;
use crate::numerics::Arithmetic;
use crate::schedule::SourcesIn;
use crate::tile::sweep;
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::{GpuFloat, thread};

/// Most sources of a block: len · luf.
pub const MOST_SOURCES: u32 = 1024;

/// Policy of the sources' place.
pub trait Sources {
    /// The place of the sources.
    const IN: SourcesIn;
}

/// [`SourcesIn::Global`].
#[derive(Clone, Copy, Debug)]
pub enum Global {}
/// [`SourcesIn::Shared`].
#[derive(Clone, Copy, Debug)]
pub enum SharedRows {}
/// [`SourcesIn::SharedInterleaved`].
#[derive(Clone, Copy, Debug)]
pub enum SharedInterleaved {}

impl Sources for Global {
    const IN: SourcesIn = SourcesIn::Global;
}
impl Sources for SharedRows {
    const IN: SourcesIn = SourcesIn::Shared;
}
impl Sources for SharedInterleaved {
    const IN: SourcesIn = SourcesIn::SharedInterleaved;
}

/// Partial sums of the accelerations of all bodies.
///
/// # Formula
/// `p_ci = G Σ_j w_j r / d³`, j running over the sources of chunk c. With len threads along the
/// sources and luf sources per thread, block column b has sources `b·len·luf …`, and thread x of it
/// luf of those: neighbours in memory, or every len-th.
///
/// # Arguments
/// `state`: n bodies of layout `L` with `params.stride`, read. `partial`: vectors of the same
/// layout, written: chunk c of body i at `c · stride + i`, for all chunks of the grid.
/// `params.sources_a_thread`: luf.
///
/// # Thread mapping
/// Blocks of len × wid threads: thread (x, y) has target y of the block's and the x-th part of its
/// sources. The grid's first axis runs over targets, its second over sources. A thread whose target
/// or sources lie beyond n writes nothing, or zero.
///
/// # Shared memory
/// For [`SourcesIn::Shared`] and [`SourcesIn::SharedInterleaved`], the block's sources: len · luf
/// times [`L::TILE_WORDS`](Layout::TILE_WORDS) words.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0. A thread has `REGISTERS` registers at most,
/// if that is not 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The `gtx980` study.
#[inline(always)]
pub unsafe fn force<L, A, W, S, const UNROLL: u32, const REGISTERS: u32>(
    state: *const L::Word,
    partial: *mut L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
    S: Sources,
{
    if REGISTERS > 0 {
        thread::limit_registers::<REGISTERS>();
    }
    let (len, wid) = (thread::block_dim_x(), thread::block_dim_y());
    let (x, y) = (thread::thread_idx_x(), thread::thread_idx_y());
    let luf = params.sources_a_thread;
    let i = thread::block_idx_x() * wid + y;
    let first = thread::block_idx_y() * len * luf;
    let constants = Constants::of(&params);
    let shared: Shared<L::Word> = dynamic_shared_mem();
    let sources = (params.n - first).min(len * luf); // of this block, at least one
    let mut sum = [A::Real::from_f64(0.0); 3];
    // SAFETY: only bodies that exist are accessed; slots are filled before the barrier after which
    // they are read, and only filled ones are read; vector i of the chunk is this thread's alone.
    unsafe {
        if S::IN != SourcesIn::Global {
            let mut slot = y * len + x;
            while slot < sources {
                let source = L::source(state, params.stride, first + slot);
                L::set_tile_source(shared, len * luf, slot, source);
                slot += len * wid;
            }
            thread::sync_threads();
        }
        if i >= params.n {
            return;
        }
        let target = L::source(state, params.stride, i).position;
        // The k-th of this thread's sources is slot `start + k · step` of the block's.
        let (start, step) = match S::IN {
            SourcesIn::Global | SourcesIn::Shared => (x * luf, 1),
            SourcesIn::SharedInterleaved => (x, len),
        };
        let count = sources.saturating_sub(start).div_ceil(step).min(luf);
        let mut add = |k| {
            let slot = start + k * step;
            let source = match S::IN {
                SourcesIn::Global => L::source(state, params.stride, first + slot),
                SourcesIn::Shared | SourcesIn::SharedInterleaved => {
                    L::tile_source(shared, len * luf, slot)
                }
            };
            W::interact::<A>(target, source, &constants, &mut sum);
        };
        sweep::<UNROLL>(count, &mut add);
        let chunk = thread::block_idx_y() * len + x;
        let at = chunk * params.stride + i;
        L::set_vector(partial, params.stride, at, sum.map(|s| constants.g * s));
    }
}
