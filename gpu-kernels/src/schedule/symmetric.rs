//! Each pair once: by Newton's third law a pair's 1/d³ contributes to the accelerations of both its
//! bodies, at 17 instructions instead of 26.
//!
//! The bodies are cut into *tiles* of `side`; a pair of tiles is the work of `parts` blocks. Which
//! pairs are computed, and by which blocks, is a circulant pairing ([`TilePair`]): tile I with the
//! tiles at the offsets 1, 2, … after it, half-way round. Of 5 × 5 tiles, with `parts` = 1, the numbers
//! are those of the blocks:
//!
//! ```text
//!                  sources
//!             0   1   2   3   4
//!           ┌───────────────────┐
//!         0 │10   0   5   ·   · │    offset 1: blocks 0 to 4
//!         1 │ ·  11   1   6   · │    offset 2: blocks 5 to 9
//! targets 2 │ ·   ·  12   2   7 │    diagonal: blocks 10 to 14, lighter, hence last
//!         3 │ 8   ·   ·  13   3 │
//!         4 │ 4   9   ·   ·  14 │    ·: by Newton's third law from the mirrored pair
//!           └───────────────────┘
//! ```
//!
//! Where partial sums are [kept apart](Slabs), the blocks have other numbers: row by row of the lower
//! triangle ([`TilePair::of_row`]), so that for every tile the blocks that come first have the sums over
//! the first tiles. Several devices, each with a range of blocks, can then add a body's sums one device
//! after the other, in the order in which one device adds them.
//!
//! Every row has equally many numbers: each tile is the targets of half of its pairs, and the sources
//! of the others. With an even number of tiles, pairs at the last offset, half of that number, would be
//! there twice; only the first half of the tiles are targets in them.
//!
//! Within a pair of tiles, a thread keeps `LANE` targets and their sums in registers. Each warp walks
//! over the sources in groups of 32, again in circulant order: in step k, lane l takes source
//! l + k (mod 32), so that no two lanes have the same source at a time, and the source's sum moves on
//! to the lane that takes the source next. After 32 steps it is complete for this warp's targets and
//! back in the lane where it started. A tile paired with itself is computed one-sided instead.

use core::marker::PhantomData;

use crate::abi::{Params, Tiling};
use crate::interaction::{PairLaw, interact};
use crate::layout::{Accumulate, Layout, Source};
use crate::numerics::{Arithmetic, Far, Real};
use crate::schedule::ScheduleName;
use crate::tile::{added, for_each, unrolled};
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::warp::{Shuffle, WARP_SIZE};
use cuda_std::{GpuFloat, opaque, thread, warp};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::Symmetric;

impl Tiling {
    /// Tiles of `n` bodies.
    #[inline(always)]
    pub const fn tiles(self, n: u32) -> u32 {
        n.div_ceil(self.side)
    }

    /// Blocks that share the pairs of `n` bodies.
    #[inline(always)]
    pub const fn blocks(self, n: u32) -> u32 {
        let tiles = self.tiles(n);
        tiles * (tiles + 1) / 2 * self.parts
    }

    /// Partial sums that one of `n` bodies may get where each has a slab of its own.
    #[inline(always)]
    pub const fn slabs(self, n: u32) -> u32 {
        self.tiles(n) * self.parts
    }
}

/// Pair of tiles that a block computes: the forces between the bodies of tile `targets` and part
/// `part` of those of tile `sources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TilePair {
    /// A tile.
    pub targets: u32,
    /// A tile, perhaps the same.
    pub sources: u32,
    /// A part of the sources.
    pub part: u32,
}

impl TilePair {
    /// The pair of a block among [`Tiling::blocks`], and its part of the sources.
    ///
    /// Circulant pairing: first the pairs at offset 1 (mod the number of tiles), then those at offset
    /// 2, … half-way round. Tiles paired with themselves come last, for they are the lighter ones. See
    /// the picture in the [module's documentation](self).
    #[inline(always)]
    pub const fn of_block(block: u32, tiles: u32, parts: u32) -> Self {
        let (pair, part) = (block / parts, block % parts);
        let (offset, targets) = (pair / tiles + 1, pair % tiles);
        let off_diagonal = tiles * (tiles - 1) / 2;
        let (targets, sources) = if pair < off_diagonal {
            (targets, (targets + offset) % tiles)
        } else {
            (pair - off_diagonal, pair - off_diagonal)
        };
        Self {
            targets,
            sources,
            part,
        }
    }

    /// As [`of_block`](Self::of_block), in another order of the same pairs: those of tile 0 and itself,
    /// of tile 1 and those up to it, of tile 2 and those up to it, and so on. The sums over tiles `0..k` of
    /// any tile's bodies are then those of its blocks up to some block, for every k.
    #[inline(always)]
    pub const fn of_row(block: u32, tiles: u32, parts: u32) -> Self {
        let (pair, part) = (block / parts, block % parts);
        // The row: the largest with as many pairs before it, found bit by bit.
        let (mut row, mut bit) = (0, 1 << 15);
        while bit > 0 {
            if Self::in_row(0, row | bit) <= pair {
                row |= bit;
            }
            bit /= 2;
        }
        let other = pair - Self::in_row(0, row);
        let (targets, sources) = if Self::is_target(row, other, tiles) {
            (row, other)
        } else {
            (other, row)
        };
        Self {
            targets,
            sources,
            part,
        }
    }

    /// The number of the pair of two tiles, among those that [`of_row`](Self::of_row) counts.
    #[inline(always)]
    pub const fn in_row(a: u32, b: u32) -> u32 {
        let (less, more) = if a < b { (a, b) } else { (b, a) };
        more * (more + 1) / 2 + less
    }

    /// True if `tile` is the targets of its pair with `other`, false if it is the sources.
    #[inline(always)]
    pub const fn is_target(tile: u32, other: u32, tiles: u32) -> bool {
        let offset = (other + tiles - tile) % tiles;
        2 * offset < tiles || (2 * offset == tiles && tile < other)
    }
}

/// Policy of the partial sums: added to one place as they come, or kept apart.
pub trait Sums {
    /// The order in which they are added.
    const ORDER: Order;
    /// The work of a block among [`Tiling::blocks`].
    fn pair(block: u32, tiles: u32, parts: u32) -> TilePair;
    /// Adds `sum` to the result of body `i`. `slab` distinguishes this partial sum from all others of
    /// the body; `first` says that nothing was added to it before.
    ///
    /// # Safety
    /// `sums` is what [`force`] takes; no other thread adds to the slab of the body.
    unsafe fn add<L: Accumulate>(
        sums: *mut L::Word,
        params: &Params,
        slab: u32,
        i: u32,
        first: bool,
        sum: [L::Real; 3],
    );
}

/// Order in which partial sums are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Always the same, however the blocks are scheduled: results agree bit by bit.
    Fixed,
    /// As they come: results agree but for rounding.
    Any,
}

/// Added to the accelerations, which are zero before, as they come.
#[derive(Clone, Copy, Debug)]
pub enum Atomic {}

impl Sums for Atomic {
    const ORDER: Order = Order::Any;
    /// Neighbouring blocks add to different tiles.
    #[inline(always)]
    fn pair(block: u32, tiles: u32, parts: u32) -> TilePair {
        TilePair::of_block(block, tiles, parts)
    }
    #[inline(always)]
    unsafe fn add<L: Accumulate>(
        sums: *mut L::Word,
        params: &Params,
        _slab: u32,
        i: u32,
        _first: bool,
        sum: [L::Real; 3],
    ) {
        let g = L::Real::from_f64(params.g);
        // SAFETY: all threads only add.
        unsafe { L::add_vector(sums, params.stride, i, sum.map(|s| g * s)) }
    }
}

/// Kept apart in slabs of one vector per body, for [`gather`] to add.
#[derive(Clone, Copy, Debug)]
pub enum Slabs {}

impl Sums for Slabs {
    const ORDER: Order = Order::Fixed;
    #[inline(always)]
    fn pair(block: u32, tiles: u32, parts: u32) -> TilePair {
        TilePair::of_row(block, tiles, parts)
    }
    #[inline(always)]
    unsafe fn add<L: Accumulate>(
        sums: *mut L::Word,
        params: &Params,
        slab: u32,
        i: u32,
        first: bool,
        sum: [L::Real; 3],
    ) {
        let slab = slab_of::<L>(sums, params.stride, slab);
        // SAFETY: this vector of the slab is the thread's alone.
        unsafe {
            let before = if first {
                [L::Real::from_f64(0.0); 3]
            } else {
                L::vector(slab, params.stride, i)
            };
            L::set_vector(slab, params.stride, i, added(before, sum));
        }
    }
}

/// The start of a slab, an acceleration buffer in itself.
#[inline(always)]
fn slab_of<L: Layout>(slabs: *mut L::Word, stride: u32, slab: u32) -> *mut L::Word {
    let words = L::VECTOR_SCALARS as usize * size_of::<L::Real>() / size_of::<L::Word>();
    slabs.wrapping_add(slab as usize * stride as usize * words)
}

/// Partial sums of the accelerations of all bodies.
///
/// # Formula
/// `Σ_j w_j r / d³` over the sources of a [`TilePair`], and `−Σ_i w_i r / d³` over its targets. A
/// target's sum runs over at most 32 · `LANE` sources per warp, a source's over a block's targets,
/// before they are added to others.
///
/// # Arguments
/// `state`: n bodies, read. `sums`: with [`Atomic`], n vectors, zero before, to which G times the
/// sums are added; with [`Slabs`], [`Tiling::slabs`] times `stride` vectors, written. All of layout
/// `L` with `params.stride`.
///
/// # Thread mapping
/// One-dimensional, [`Tiling::blocks`] blocks, or `params.share` of them; a block takes 1/`parts` of a tile of sources against
/// a whole tile of targets, `LANE` targets per thread at a time.
///
/// # Shared memory
/// Per thread: two tile slots of `L` and three scalars for each warp of the block.
///
/// # Constraints
/// `side` is a multiple of `LANE` times the block, and of `parts` times the block. `STEPS` divides
/// 32. `A` handles ε = 0 if `params.softening_squared` is 0. `REGISTERS`, if not 0, is the largest
/// number per thread. Masses are as `W` asks.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The rotation of sums among lanes: own work; the idea of sharing 1/d³ between both bodies is as
/// old as direct summation.
#[inline(always)]
pub unsafe fn force<L, A, W, S, const LANE: usize, const STEPS: u32, const REGISTERS: u32>(
    state: *const L::Word,
    sums: *mut L::Word,
    params: Params,
) where
    L: Accumulate<Real: Shuffle + Far>,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
    S: Sums,
{
    if REGISTERS > 0 {
        thread::limit_registers::<REGISTERS>();
    }
    let Params { n, tiling, .. } = params;
    let block = params.share.first + thread::block_idx_x();
    let pair = S::pair(block, tiling.tiles(n), tiling.parts);
    let block = Block::<L, A, W, LANE> {
        state,
        params,
        eps2: A::Real::from_f64(params.softening_squared),
        sources: dynamic_shared_mem(),
        threads: thread::block_dim_x(),
        chosen: PhantomData,
    };
    let rows = block.threads * LANE as u32;
    let part_side = tiling.side / tiling.parts;
    let first_source = pair.sources * tiling.side + pair.part * part_side;
    let sources_end = (first_source + part_side).min(n);
    let targets_end = (pair.targets * tiling.side + tiling.side).min(n);

    let mut chunk = first_source;
    // At least once: the targets' sums over no sources are sums too.
    loop {
        let chunk_end = (chunk + rows).min(sources_end);
        let mut first_target = pair.targets * tiling.side;
        while first_target < targets_end {
            // SAFETY: the pair's part is this block's alone, and its threads go through the same
            // chunks and tiles.
            unsafe {
                let targets = block.targets(first_target);
                let target_sums = if pair.targets == pair.sources {
                    block.one_sided::<STEPS>(&targets, chunk, chunk_end)
                } else {
                    block.both_sided::<STEPS>(&targets, chunk, chunk_end, |i, sum| {
                        let first = first_target == pair.targets * tiling.side;
                        S::add::<L>(sums, &params, pair.targets * tiling.parts, i, first, sum);
                    })
                };
                for_each::<LANE>(|r| {
                    let i = block.target(first_target, r);
                    if i < n {
                        let slab = pair.sources * tiling.parts + pair.part;
                        S::add::<L>(
                            sums,
                            &params,
                            slab,
                            i,
                            chunk == first_source,
                            target_sums[r],
                        );
                    }
                });
            }
            first_target += rows;
        }
        chunk += rows;
        if chunk >= sources_end {
            break;
        }
    }
}

/// A block at work.
struct Block<L: Layout, A: Arithmetic<Real = L::Real>, W, const LANE: usize> {
    state: *const L::Word,
    params: Params,
    eps2: A::Real,
    /// `threads` sources, each group of 32 twice in a row, so that source l + k lies k slots
    /// beyond source l without wrapping around.
    sources: Shared<L::Word>,
    threads: u32,
    chosen: PhantomData<(A, W)>,
}

impl<L, A, W, const LANE: usize> Block<L, A, W, LANE>
where
    L: Accumulate<Real: Shuffle + Far>,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    /// The number of this thread's target `r` of those from `first` on.
    #[inline(always)]
    fn target(&self, first: u32, r: usize) -> u32 {
        let row = warp::warp_id() * LANE as u32 + r as u32;
        first + row * WARP_SIZE + warp::lane_id()
    }

    /// Body `i`, or beyond the last one a padding body, which exerts no force.
    ///
    /// # Safety
    /// As [`force`].
    #[inline(always)]
    unsafe fn body(&self, i: u32, end: u32) -> Source<L::Real> {
        if i < end {
            // SAFETY: it exists.
            unsafe { L::source(self.state, self.params.stride, i) }
        } else {
            Source {
                position: [L::Real::FAR; 3],
                mass: L::Real::from_f64(0.0),
            }
        }
    }

    /// This thread's targets of those from `first` on.
    ///
    /// # Safety
    /// As [`force`].
    #[inline(always)]
    unsafe fn targets(&self, first: u32) -> [Source<L::Real>; LANE] {
        let far = Source {
            position: [L::Real::FAR; 3],
            mass: L::Real::from_f64(0.0),
        };
        let mut targets = [far; LANE];
        for_each::<LANE>(|r| {
            // SAFETY: the caller's promise.
            targets[r] = unsafe { self.body(self.target(first, r), self.params.n) };
        });
        targets
    }

    /// Puts sources `first..first + threads`, as far as they come before `end`, into shared memory
    /// and waits for the whole block. All threads are done with those before.
    ///
    /// # Safety
    /// As [`force`].
    #[inline(always)]
    unsafe fn fetch(&self, first: u32, end: u32) {
        let slot = warp::warp_id() * 2 * WARP_SIZE + warp::lane_id();
        // SAFETY: both slots are this thread's own.
        unsafe {
            let source = self.body(first + thread::thread_idx_x(), end);
            L::set_tile_source(self.sources, 2 * self.threads, slot, source);
            L::set_tile_source(self.sources, 2 * self.threads, slot + WARP_SIZE, source);
        }
        thread::sync_threads();
    }

    /// The sums on the targets over sources `chunk..end`.
    ///
    /// # Safety
    /// As [`force`], by all threads of the block.
    #[inline(always)]
    unsafe fn one_sided<const STEPS: u32>(
        &self,
        targets: &[Source<L::Real>; LANE],
        chunk: u32,
        end: u32,
    ) -> [[L::Real; 3]; LANE] {
        let mut sums = [[L::Real::from_f64(0.0); 3]; LANE];
        let mut first = chunk;
        while first < end {
            // SAFETY: the barriers are reached by all; the slots below are filled.
            unsafe {
                self.fetch(first, end);
                let mut slot = 0;
                // Whole groups: what is beyond the end exerts nothing.
                let slots = (end - first).min(self.threads).div_ceil(WARP_SIZE) * 2 * WARP_SIZE;
                while slot < slots {
                    unrolled::<STEPS>(|step| {
                        let source = L::tile_source(self.sources, 2 * self.threads, slot + step);
                        let weight = W::weight(source.mass);
                        for_each::<LANE>(|r| {
                            let target = targets[r].position;
                            interact::<A>(target, source.position, weight, self.eps2, &mut sums[r]);
                        });
                    });
                    slot += STEPS;
                    if slot % (2 * WARP_SIZE) == WARP_SIZE {
                        slot += WARP_SIZE;
                        for_each::<LANE>(|r| sums[r] = sums[r].map(L::Real::renormalised));
                    }
                }
            }
            thread::sync_threads();
            first += self.threads;
        }
        sums
    }

    /// The sums on the targets over sources `chunk..end`; those on the sources over the block's
    /// targets go to `keep`, by their numbers.
    ///
    /// # Safety
    /// As [`force`], by all threads of the block.
    #[inline(always)]
    unsafe fn both_sided<const STEPS: u32>(
        &self,
        targets: &[Source<L::Real>; LANE],
        chunk: u32,
        end: u32,
        keep: impl Fn(u32, [L::Real; 3]),
    ) -> [[L::Real; 3]; LANE] {
        let zero = [L::Real::from_f64(0.0); 3];
        let mut sums = [zero; LANE];
        let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
        let next = (lane + 1) % WARP_SIZE;
        // 32, hidden from the compiler, which unrolls loops of up to 16 known trips in full. The body is
        // spelled out to `LANE` · `STEPS` pairs already, and that is the factor in the kernel's name.
        let steps = opaque(WARP_SIZE);
        // The warps' contributions to the sources: three planes per warp, one place per source.
        let contributions: Shared<L::Kept> = self.sources.after(2 * self.threads * L::TILE_WORDS);
        let place = |warp: u32, c: u32, source: u32| (warp * 3 + c) * self.threads + source;
        let mut first = chunk;
        while first < end {
            let count = (end - first).min(self.threads);
            // SAFETY: the barriers are reached by all; slots are filled before they are read, and
            // a place of a plane is one lane's.
            unsafe {
                self.fetch(first, end);
                let mut group = 0;
                while group < count {
                    let mut source_sum = zero;
                    let mut step = 0;
                    while step < steps {
                        unrolled::<STEPS>(|k| {
                            let slot = 2 * group + lane + step + k;
                            let source = L::tile_source(self.sources, 2 * self.threads, slot);
                            for_each::<LANE>(|r| {
                                W::interact_pair::<A>(
                                    [targets[r].position, source.position],
                                    [targets[r].mass, source.mass],
                                    self.eps2,
                                    &mut sums[r],
                                    &mut source_sum,
                                );
                            });
                            source_sum = source_sum.map(|component| component.shuffle(next));
                        });
                        step += STEPS;
                    }
                    for_each::<LANE>(|r| sums[r] = sums[r].map(L::Real::renormalised));
                    let sum = source_sum.map(L::Real::renormalised);
                    let mine = warp::warp_id();
                    contributions.store(place(mine, 0, group + lane), L::keep(sum[0]));
                    contributions.store(place(mine, 1, group + lane), L::keep(sum[1]));
                    contributions.store(place(mine, 2, group + lane), L::keep(sum[2]));
                    group += WARP_SIZE;
                }
                thread::sync_threads();
                // Other threads may fetch the next sources meanwhile, into slots that are not read any
                // more; the next contributions are stored after a barrier.
                if thread < count {
                    let mut sum = zero;
                    let mut other = 0;
                    while other < self.threads / WARP_SIZE {
                        let of_warp =
                            [0, 1, 2].map(|c| L::kept(contributions.load(place(other, c, thread))));
                        sum = added(sum, of_warp);
                        other += 1;
                    }
                    // This thread's own slot, which it alone fills again.
                    let slot = warp::warp_id() * 2 * WARP_SIZE + lane;
                    let source = L::tile_source(self.sources, 2 * self.threads, slot);
                    keep(first + thread, W::of_pairs(sum, source.mass));
                }
            }
            first += self.threads;
        }
        for_each::<LANE>(|r| sums[r] = W::of_pairs(sums[r], targets[r].mass));
        sums
    }
}

/// The sum `before` with the slabs of body `i`, tile by tile, of the pairs whose first block
/// `is_wanted`.
///
/// # Safety
/// `slabs` is as [`force`] leaves it, and the wanted pairs were computed.
#[inline(always)]
unsafe fn with_slabs<L: Layout>(
    before: [L::Real; 3],
    slabs: *const L::Word,
    params: &Params,
    i: u32,
    is_wanted: impl Fn(u32) -> bool,
) -> [L::Real; 3] {
    let Params {
        n, stride, tiling, ..
    } = *params;
    let (tile, tiles) = (i / tiling.side, tiling.tiles(n));
    let mut sum = before;
    let mut other = 0;
    while other < tiles {
        let parts = if !is_wanted(TilePair::in_row(tile, other) * tiling.parts) {
            0
        } else if TilePair::is_target(tile, other, tiles) {
            tiling.parts
        } else {
            1
        };
        let mut part = 0;
        while part < parts {
            let slab = slab_of::<L>(slabs.cast_mut(), stride, other * tiling.parts + part);
            // SAFETY: the block of this pair has filled it.
            sum = added(sum, unsafe { L::vector(slab, stride, i) });
            part += 1;
        }
        other += 1;
    }
    sum
}

/// The acceleration of body `i` from its slabs.
///
/// # Safety
/// `slabs` is as [`force`] leaves it.
#[inline(always)]
pub(super) unsafe fn gathered<L: Layout>(
    slabs: *const L::Word,
    params: &Params,
    i: u32,
) -> [L::Real; 3] {
    let zero = [L::Real::from_f64(0.0); 3];
    let g = L::Real::from_f64(params.g);
    // SAFETY: the caller's promise.
    let sum = unsafe { with_slabs::<L>(zero, slabs, params, i, |_| true) };
    sum.map(|s| g * s)
}

/// Accelerations from the slabs that [`force`] filled.
///
/// # Formula
/// `a_i = G Σ` of the partial sums of body i, tile by tile. Of the blocks of `params.share` alone: the
/// sum that is there already goes on, unless the share begins with the first block; and is
/// multiplied by G only if the share ends with the last block.
///
/// # Arguments
/// `slabs`: as [`force`] leaves them for `params.share`, read. `acceleration`: n vectors, written;
/// read, unless the share begins with the first block. Both of layout `L` with `params.stride`. A
/// share has all parts of a pair, or none.
///
/// # Thread mapping
/// One-dimensional; thread i adds for body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn gather<L: Layout>(slabs: *const L::Word, acceleration: *mut L::Word, params: Params) {
    let Params {
        n,
        stride,
        tiling,
        share,
        ..
    } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    let before = if share.first == 0 {
        [L::Real::from_f64(0.0); 3]
    } else {
        // SAFETY: the sum over the blocks before the share's.
        unsafe { L::vector(acceleration, stride, i) }
    };
    let in_share = |block| share.first <= block && block < share.end;
    // SAFETY: the share's blocks have filled the body's slabs.
    let sum = unsafe { with_slabs::<L>(before, slabs, &params, i, in_share) };
    let g = if share.end == tiling.blocks(n) {
        L::Real::from_f64(params.g)
    } else {
        L::Real::from_f64(1.0)
    };
    // SAFETY: vector i is this thread's alone.
    unsafe { L::set_vector(acceleration, stride, i, sum.map(|s| g * s)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The picture in the module's documentation.
    #[test]
    fn five_tiles_are_paired_as_pictured() {
        const DONE_BY_MIRROR: u32 = u32::MAX;
        let mut picture = [[DONE_BY_MIRROR; 5]; 5];
        for block in 0..15 {
            let pair = TilePair::of_block(block, 5, 1);
            picture[pair.targets as usize][pair.sources as usize] = block;
        }
        let o = DONE_BY_MIRROR;
        assert_eq!(
            picture,
            [
                [10, 0, 5, o, o],
                [o, 11, 1, 6, o],
                [o, o, 12, 2, 7],
                [8, o, o, 13, 3],
                [4, 9, o, o, 14],
            ]
        );
    }

    /// Every pair of tiles, and of a tile with itself, belongs to exactly one block, and both sides
    /// agree which tile the targets are.
    #[test]
    fn every_pair_of_tiles_belongs_to_one_block() {
        for (tiles, parts) in (1..40)
            .map(|t| (t, 1))
            .chain([(1, 8), (2, 3), (7, 4), (128, 2)])
        {
            for of in [Atomic::pair, Slabs::pair] {
                let tiling = Tiling { side: 10, parts };
                let mut seen = vec![0; (tiles * tiles * parts) as usize];
                for block in 0..tiling.blocks(10 * tiles) {
                    let pair = of(block, tiles, parts);
                    assert!(pair.part < parts);
                    let mut see = |a: u32, b: u32| {
                        seen[((a * tiles + b) * parts + pair.part) as usize] += 1;
                    };
                    see(pair.targets, pair.sources);
                    if pair.targets != pair.sources {
                        see(pair.sources, pair.targets);
                        assert!(TilePair::is_target(pair.targets, pair.sources, tiles));
                        assert!(!TilePair::is_target(pair.sources, pair.targets, tiles));
                    }
                }
                assert!(seen.iter().all(|&times| times == 1), "{tiles} tiles");
                assert!((0..tiles).all(|tile| TilePair::is_target(tile, tile, tiles)));
            }
        }
    }

    /// A tile's pairs with tiles 0, 1, 2, … belong to blocks of rising numbers: devices with ranges of
    /// blocks add a body's sums in the order of one device.
    #[test]
    fn rows_keep_the_order_of_every_tiles_sums() {
        for (tiles, parts) in [(1, 1), (2, 1), (5, 1), (64, 2), (128, 1)] {
            for tile in 0..tiles {
                let pairs: Vec<u32> = (0..tiles)
                    .map(|other| TilePair::in_row(tile, other))
                    .collect();
                assert!(pairs.is_sorted_by(|a, b| a < b), "{pairs:?}");
                for (other, pair) in (0..).zip(pairs) {
                    let found = TilePair::of_row(pair * parts, tiles, parts);
                    let both = [
                        found.targets.min(found.sources),
                        found.targets.max(found.sources),
                    ];
                    assert_eq!(both, [tile.min(other), tile.max(other)]);
                }
            }
        }
    }
}
