//! Fields at points: what bodies exert where there need not be any.
//!
//! Targets and sources are apart, and several targets of a thread share each source that it reads from
//! shared memory. Sources are cut into slices, so that few points fill a GPU too; the partial sums of
//! the slices are added ([`sum`]) in their order. Sums over a tile are in the precision of the pairs,
//! those over the tiles in f64. Laws differ in weights alone, which the sources bring along.

use crate::abi::Params;
use crate::interaction::{add_tide, interact_with_depth};
use crate::layout::{Layout, Source};
use crate::numerics::Arithmetic;
use crate::schedule::test_particles::room;
use crate::tile::{Tile, for_each, sweep};
use cuda_std::{GpuFloat, global, thread};

/// Quantity that is summed over sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuantityName {
    /// [`Field`].
    Field,
    /// [`Tides`].
    Tides,
}

impl QuantityName {
    /// Sums of a point.
    #[inline]
    pub const fn sums(self) -> u32 {
        match self {
            Self::Field => FIELD_SUMS as u32,
            Self::Tides => TIDES_SUMS as u32,
        }
    }

    /// Sources of a tile, whatever the block: their sums are in the precision of pairs, whose error shows in
    /// tidal tensors first, and the fewer tiles, the fewer waits.
    #[inline]
    pub const fn tile(self) -> u32 {
        match self {
            Self::Field => 1024,
            Self::Tides => 256,
        }
    }

    /// Sources of a slice, of `sources` in `slices`: whole tiles, but for those of the last slice.
    #[inline(always)]
    pub const fn sources_of_a_slice(self, sources: u32, slices: u32) -> u32 {
        sources.div_ceil(self.tile()).div_ceil(slices) * self.tile()
    }
}

/// A quantity of `N` sums.
pub trait Quantity<const N: usize> {
    /// Name of the quantity.
    const NAME: QuantityName;
    /// Adds the terms of a source.
    fn add<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        softening_squared: A::Real,
        sums: &mut [A::Real; N],
    );
}

/// Sums of [`Field`].
pub const FIELD_SUMS: usize = 4;

/// `Σ_j w_j r / d³`, three components, and `Σ_j w_j / d`: acceleration and potential per G.
#[derive(Clone, Copy, Debug)]
pub enum Field {}

impl Quantity<FIELD_SUMS> for Field {
    const NAME: QuantityName = QuantityName::Field;
    #[inline(always)]
    fn add<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        softening_squared: A::Real,
        sums: &mut [A::Real; FIELD_SUMS],
    ) {
        interact_with_depth::<A>(
            target,
            source.position,
            source.mass,
            softening_squared,
            sums,
        );
    }
}

/// Sums of [`Tides`].
pub const TIDES_SUMS: usize = 7;

/// With `u = r/d` and `s_j = w_j / d³`, `Σ_j s_j u_a u_b` for ab = xx, yy, zz, xy, xz and yz, and
/// `Σ_j s_j`: the tidal tensor per G is `3 Σ_j s_j u_a u_b − δ_ab Σ_j s_j`.
#[derive(Clone, Copy, Debug)]
pub enum Tides {}

impl Quantity<TIDES_SUMS> for Tides {
    const NAME: QuantityName = QuantityName::Tides;
    #[inline(always)]
    fn add<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        softening_squared: A::Real,
        sums: &mut [A::Real; TIDES_SUMS],
    ) {
        add_tide::<A>(
            target,
            source.position,
            source.mass,
            softening_squared,
            sums,
        );
    }
}

/// Sums of a quantity over each slice of the sources, at points.
///
/// # Formula
/// That of `Q`, in the precision of `A` within each tile, and in f64 over the tiles.
///
/// # Arguments
/// `points`: positions of n points, as bodies of layout `L` with `params.stride`, read. `sources`:
/// `params.sources_a_thread` bodies of the same layout, with [`room`] for whole warps, whose masses are
/// their weights, read. `sums`: `N` f64 for each point of each slice, `params.partials` slices one after
/// another, written. No velocities are read: buffers may end before them.
///
/// # Thread mapping
/// The grid's first axis has the points, `LANE` for each thread, a block's size apart; the second the
/// slices. Points beyond the last stand for it, and nothing of them is kept.
///
/// # Shared memory
/// A [tile](QuantityName::tile) of sources, [`L::TILE_WORDS`](Layout::TILE_WORDS) words each.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0. Positions and masses come first in `L`. All sums
/// are fewer than 2³².
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// [`tiled`](super::tiled), with other sources than targets, and several targets of a thread as in
/// [`symmetric`](super::symmetric).
#[inline(always)]
pub unsafe fn sums<L, A, Q, const N: usize, const LANE: usize, const UNROLL: u32>(
    points: *const L::Word,
    sources: *const L::Word,
    sums: *mut f64,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    Q: Quantity<N>,
{
    let threads = thread::block_dim_x();
    let first = thread::block_idx_x() * threads * LANE as u32 + thread::thread_idx_x();
    let point = |k: usize| first + k as u32 * threads;
    let slice = thread::block_idx_y();
    let softening_squared = A::Real::from_f64(params.softening_squared);
    let zero = A::Real::from_f64(0.0);
    let all = params.sources_a_thread;
    let tile = Tile::<L>::with_capacity(Q::NAME.tile());
    let mut targets = [[zero; 3]; LANE];
    let mut totals = [[0.0_f64; N]; LANE];
    // SAFETY: points beyond n stand for the last; all threads of the block go through the same tiles of
    // sources that exist; the sums of a point over a slice are one thread's alone.
    unsafe {
        for_each::<LANE>(|k| {
            let i = point(k).min(params.n - 1);
            targets[k] = L::source(points, params.stride, i).position;
        });
        let of_slice = Q::NAME.sources_of_a_slice(all, params.partials);
        let mut next = slice * of_slice;
        let end = (next + of_slice).min(all);
        while next < end {
            let count = tile.fetch_together::<1>(sources, room(all), next, end - next);
            let mut of_tile = [[zero; N]; LANE];
            sweep::<UNROLL>(count, &mut |slot| {
                let source = tile.source(slot);
                for_each::<LANE>(|k| {
                    Q::add::<A>(targets[k], source, softening_squared, &mut of_tile[k]);
                });
            });
            for_each::<LANE>(|k| {
                for c in 0..N {
                    totals[k][c] += of_tile[k][c].to_f64();
                }
            });
            next += Q::NAME.tile();
        }
        for_each::<LANE>(|k| {
            if point(k) < params.n {
                let at = (slice * params.n + point(k)) * N as u32;
                for (c, &total) in totals[k].iter().enumerate() {
                    global::store(sums, at + c as u32, total);
                }
            }
        });
    }
}

/// Sums over all slices.
///
/// # Formula
/// `t_i = Σ_s p_si`, in order.
///
/// # Arguments
/// `partial`: `params.partials` times n sums, as [`sums`] leaves them, read. `total`: n sums, written.
/// Here n counts sums, several for each point.
///
/// # Thread mapping
/// One-dimensional; thread i has sum i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// [`reduce::serial`](super::reduce::serial), of f64 whatever the layout.
#[inline(always)]
pub unsafe fn sum(partial: *const f64, total: *mut f64, params: Params) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    let mut all = 0.0;
    let mut slice = 0;
    // SAFETY: slice and sum exist, and total i is this thread's alone.
    unsafe {
        while slice < params.partials {
            all += global::load(partial, slice * params.n + i);
            slice += 1;
        }
        global::store(total, i, all);
    }
}
