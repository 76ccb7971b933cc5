//! Each pair once: a pair's 1/d³ pulls both its bodies, as Newton's third law has it, for the price
//! of 17 instructions instead of 26.
//!
//! The bodies are cut into *tiles* of `side`; a pair of tiles is the work of `parts` blocks
//! ([`Share`]). A thread keeps `LANE` targets and their sums in registers. Each warp walks over the
//! sources in groups of 32: in step k, lane l takes source l + k (mod 32), so that no two lanes
//! have the same source at a time, and the source's sum moves on to the lane that takes the source
//! next. After 32 steps it is complete for this warp's targets and back where it started. A tile
//! paired with itself is computed one-sided instead.

use core::marker::PhantomData;

use crate::abi::{Params, Tiling};
use crate::interaction::{PairLaw, interact};
use crate::layout::{Accumulate, Layout, Source};
use crate::numerics::{Arithmetic, Far, Real};
use crate::schedule::ScheduleName;
use crate::tile::{for_each, unrolled};
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

    /// Partial sums that a body of `n` may get where each has a slab of its own.
    #[inline(always)]
    pub const fn slabs(self, n: u32) -> u32 {
        self.tiles(n) * self.parts
    }
}

/// What a block computes: the forces between the bodies of tile `targets` and part `part` of those
/// of tile `sources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// A tile.
    pub targets: u32,
    /// A tile, perhaps the same.
    pub sources: u32,
    /// A part of it.
    pub part: u32,
}

impl Share {
    /// The share of a block among [`Tiling::blocks`].
    ///
    /// Tile I meets I + 1, then I + 2, … (mod their number) half-way round; tiles paired with
    /// themselves come last, for they are the lighter ones.
    #[inline(always)]
    pub const fn of(block: u32, tiles: u32, parts: u32) -> Self {
        let (pair, part) = (block / parts, block % parts);
        let (round, targets) = (pair / tiles, pair % tiles);
        let between = tiles * (tiles - 1) / 2;
        let (targets, sources) = if pair < between {
            (targets, (targets + round + 1) % tiles)
        } else {
            (pair - between, pair - between)
        };
        Self {
            targets,
            sources,
            part,
        }
    }

    /// Whether `tile` are the targets where it meets `other`.
    #[inline(always)]
    pub const fn is_target(tile: u32, other: u32, tiles: u32) -> bool {
        let ahead = (other + tiles - tile) % tiles;
        2 * ahead < tiles || (2 * ahead == tiles && tile < other)
    }
}

/// Where the partial sums go.
pub trait Sums {
    /// Which it is.
    const ORDER: Order;
    /// Adds `sum` to the result of body `i`. `slab` tells this partial sum from all others of the
    /// body; `first` that nothing was added to it before.
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

/// In which order partial sums are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Always the same, whatever runs when: results agree bit by bit.
    Fixed,
    /// As they come.
    Any,
}

/// Added to the accelerations, which are zero before, as they come.
#[derive(Clone, Copy, Debug)]
pub enum Atomic {}

impl Sums for Atomic {
    const ORDER: Order = Order::Any;
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

/// Kept apart in slabs of one vector a body, for [`gather`] to add.
#[derive(Clone, Copy, Debug)]
pub enum Slabs {}

impl Sums for Slabs {
    const ORDER: Order = Order::Fixed;
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

#[inline(always)]
fn added<R: GpuFloat>(a: [R; 3], b: [R; 3]) -> [R; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// Partial sums of the accelerations of all bodies.
///
/// # Formula
/// `Σ_j w_j r / d³` over the sources of a [`Share`], and `−Σ_i w_i r / d³` over its targets. A
/// target's sum runs over at most 32 · `LANE` sources a warp, a source's over a block's targets,
/// before they are added to others.
///
/// # Arguments
/// `state`: n bodies, read. `sums`: with [`Atomic`], n vectors, zero before, to which G times the
/// sums are added; with [`Slabs`], [`Tiling::slabs`] times `stride` vectors, written. All of layout
/// `L` with `params.stride`.
///
/// # Thread mapping
/// One-dimensional, [`Tiling::blocks`] blocks; a block takes 1/`parts` of a tile of sources against
/// a whole tile of targets, `LANE` targets a thread at a time.
///
/// # Shared memory
/// A thread: two tile slots of `L` and three scalars for each warp of the block.
///
/// # Constraints
/// `side` is a multiple of `LANE` times the block, and of `parts` times the block. `STEPS` divides
/// 32. `A` handles ε = 0 if `params.softening_squared` is 0. `REGISTERS`, if not 0, are the most a
/// thread gets. Masses are as `W` asks.
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
    let share = Share::of(thread::block_idx_x(), tiling.tiles(n), tiling.parts);
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
    let first_source = share.sources * tiling.side + share.part * part_side;
    let sources_end = (first_source + part_side).min(n);
    let targets_end = (share.targets * tiling.side + tiling.side).min(n);

    let mut chunk = first_source;
    // At least once: the targets' sums over no sources are sums too.
    loop {
        let chunk_end = (chunk + rows).min(sources_end);
        let mut first_target = share.targets * tiling.side;
        while first_target < targets_end {
            // SAFETY: the share is this block's alone, and its threads go through the same chunks
            // and tiles.
            unsafe {
                let targets = block.targets(first_target);
                let pulled = if share.targets == share.sources {
                    block.one_sided::<STEPS>(&targets, chunk, chunk_end)
                } else {
                    block.both_sided::<STEPS>(&targets, chunk, chunk_end, |i, sum| {
                        let first = first_target == share.targets * tiling.side;
                        S::add::<L>(sums, &params, share.targets * tiling.parts, i, first, sum);
                    })
                };
                for_each::<LANE>(|r| {
                    let i = block.target(first_target, r);
                    if i < n {
                        let slab = share.sources * tiling.parts + share.part;
                        S::add::<L>(sums, &params, slab, i, chunk == first_source, pulled[r]);
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

    /// Body `i`, or beyond the last one what exerts nothing.
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
                        for_each::<LANE>(|r| sums[r] = sums[r].map(L::Real::settled));
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
        let steps = opaque(WARP_SIZE);
        // Three planes a warp, one place a source.
        let pulls: Shared<L::Kept> = self.sources.after(2 * self.threads * L::TILE_WORDS);
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
                    let mut pull = zero;
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
                                    &mut pull,
                                );
                            });
                            pull = pull.map(|component| component.shuffle(next));
                        });
                        step += STEPS;
                    }
                    for_each::<LANE>(|r| sums[r] = sums[r].map(L::Real::settled));
                    let pull = pull.map(L::Real::settled);
                    let mine = warp::warp_id();
                    pulls.store(place(mine, 0, group + lane), L::keep(pull[0]));
                    pulls.store(place(mine, 1, group + lane), L::keep(pull[1]));
                    pulls.store(place(mine, 2, group + lane), L::keep(pull[2]));
                    group += WARP_SIZE;
                }
                thread::sync_threads();
                // While others store the next sources, which nobody reads any more; the next pulls
                // come after a barrier.
                if thread < count {
                    let mut sum = zero;
                    let mut other = 0;
                    while other < self.threads / WARP_SIZE {
                        let pull = [0, 1, 2].map(|c| L::kept(pulls.load(place(other, c, thread))));
                        sum = added(sum, pull);
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

/// Accelerations from the slabs that [`force`] filled.
///
/// # Formula
/// `a_i = G Σ` of the partial sums of body i, tile by tile.
///
/// # Arguments
/// `slabs`: as [`force`] leaves them, read. `acceleration`: n vectors, written. Both of layout `L`
/// with `params.stride`.
///
/// # Thread mapping
/// One-dimensional; thread i adds for body i, threads beyond n do nothing.
///
/// # Shared memory
/// None.
///
/// # Constraints
/// None.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn gather<L: Layout>(slabs: *const L::Word, acceleration: *mut L::Word, params: Params) {
    let Params {
        n, stride, tiling, ..
    } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    let tiles = tiling.tiles(n);
    let mut sum = [L::Real::from_f64(0.0); 3];
    let mut other = 0;
    while other < tiles {
        let parts = if Share::is_target(i / tiling.side, other, tiles) {
            tiling.parts
        } else {
            1
        };
        let mut part = 0;
        while part < parts {
            let slab = slab_of::<L>(slabs.cast_mut(), stride, other * tiling.parts + part);
            // SAFETY: the block of this share has filled it.
            sum = added(sum, unsafe { L::vector(slab, stride, i) });
            part += 1;
        }
        other += 1;
    }
    let g = L::Real::from_f64(params.g);
    // SAFETY: vector i is this thread's alone.
    unsafe { L::set_vector(acceleration, stride, i, sum.map(|s| g * s)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of tiles, and of a tile with itself, is shared out exactly once, and both sides
    /// agree who the targets are.
    #[test]
    fn every_pair_of_tiles_is_shared_out_once() {
        for (tiles, parts) in (1..40)
            .map(|t| (t, 1))
            .chain([(1, 8), (2, 3), (7, 4), (128, 2)])
        {
            let tiling = Tiling { side: 10, parts };
            let mut seen = vec![0; (tiles * tiles * parts) as usize];
            for block in 0..tiling.blocks(10 * tiles) {
                let share = Share::of(block, tiles, parts);
                assert!(share.part < parts);
                let mut see = |a: u32, b: u32| {
                    seen[((a * tiles + b) * parts + share.part) as usize] += 1;
                };
                see(share.targets, share.sources);
                if share.targets != share.sources {
                    see(share.sources, share.targets);
                    assert!(Share::is_target(share.targets, share.sources, tiles));
                    assert!(!Share::is_target(share.sources, share.targets, tiles));
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{tiles} tiles");
            assert!((0..tiles).all(|tile| Share::is_target(tile, tile, tiles)));
        }
    }
}
