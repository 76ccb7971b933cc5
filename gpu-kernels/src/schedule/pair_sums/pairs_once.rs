//! Sums of each pair once, for both its bodies.

use core::marker::PhantomData;

use super::first;
use super::units::{OfFrame, of_frame};
use crate::abi::Params;
use crate::interaction::gradients::{MutualSum, Softening};
use crate::layout::{Layout, Source};
use crate::numerics::{Arithmetic, Far};
use crate::schedule::symmetric::TilePair;
use crate::tile::{for_each, unrolled};
use cuda_std::shared::{Shared, SharedWord, dynamic_shared_mem};
use cuda_std::warp::{Shuffle, WARP_SIZE};
use cuda_std::{GpuFloat, global, opaque, thread, warp};

/// Sums of a pair of tiles, each pair of bodies once.
///
/// # Formula
/// [`MutualSum::add_pair`] of `F` for each pair of a body of one tile and a body of another, and
/// [`PairSum::add`](crate::interaction::gradients::PairSum::add) within a tile: in the precision of `A` over the sources
/// of a chunk, or over the targets of a warp, and in f64 beyond.
///
/// # Arguments
/// As of [`sums`](super::sums), but `sums` has `S` planes for each of `params.partials` tiles: plane set k of a body is
/// its sum over tile k. The tiles have `params.tiling.side` bodies.
///
/// # Thread mapping
/// The grid's first axis has the [pairs of tiles](TilePair::of_row), the second the systems. A block takes one tile's
/// bodies as targets, `LANE` for each thread at once, and the other tile's as sources.
///
/// # Shared memory
/// Per thread: two rows of two sources, and `R` numbers for each warp of the block.
///
/// # Constraints
/// `params.tiling.side` is a multiple of `LANE` times the block. `STEPS` divides 32. All sums are fewer than 2³².
/// `REGISTERS`, if not 0, is the largest number per thread.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// [`symmetric`](crate::schedule::symmetric), with more numbers of a body and more sums.
#[inline(always)]
pub unsafe fn once<
    L,
    A,
    F,
    const N: usize,
    const S: usize,
    const R: usize,
    const LANE: usize,
    const STEPS: u32,
    const REGISTERS: u32,
>(
    bodies: *const L::Word,
    more: *const L::Word,
    frames: *const f64,
    sums: *mut f64,
    params: Params,
) where
    L: Layout<Real: Shuffle + Far + SharedWord>,
    A: Arithmetic<Real = L::Real>,
    F: MutualSum<N, S>,
{
    if REGISTERS > 0 {
        thread::limit_registers::<REGISTERS>();
    }
    // SAFETY: the caller's promise; the frame of a system that exists.
    unsafe {
        let per_mass = of_frame(frames, thread::block_idx_y(), OfFrame::PerMass, 0) != 0.0;
        if F::KNOWS_MASSIVE && per_mass {
            tiles::<L, A, F::OfMassive, N, S, R, LANE, STEPS>(bodies, more, frames, sums, params);
        } else {
            tiles::<L, A, F, N, S, R, LANE, STEPS>(bodies, more, frames, sums, params);
        }
    }
}

/// [`once`] by one formula.
///
/// # Safety
/// See [`once`].
#[inline(always)]
unsafe fn tiles<
    L,
    A,
    F,
    const N: usize,
    const S: usize,
    const R: usize,
    const LANE: usize,
    const STEPS: u32,
>(
    bodies: *const L::Word,
    more: *const L::Word,
    frames: *const f64,
    sums: *mut f64,
    params: Params,
) where
    L: Layout<Real: Shuffle + Far + SharedWord>,
    A: Arithmetic<Real = L::Real>,
    F: MutualSum<N, S>,
{
    let Params {
        n,
        stride,
        tiling,
        partials: tiles,
        ..
    } = params;
    let system = thread::block_idx_y();
    let pair = TilePair::of_row(thread::block_idx_x(), tiles, 1);
    let threads = thread::block_dim_x();
    let rows = threads * LANE as u32;
    let first_source = pair.sources * tiling.side;
    let sources_end = (first_source + tiling.side).min(n);
    let targets_begin = pair.targets * tiling.side;
    let targets_end = (targets_begin + tiling.side).min(n);
    // SAFETY: a partial sum of a body over a tile is set and added to by one thread alone.
    let keep = |tile: u32, i: u32, c: usize, is_first: bool, sum: f64| unsafe {
        let at = (tile * S as u32 + c as u32) * stride + system * n + i;
        let before = if is_first {
            0.0
        } else {
            global::load(sums, at)
        };
        global::store(sums, at, before + sum);
    };
    // What is kept of a component, by the body's mass.
    let whole = |c: usize, sum: f64, mass: f64| if F::is_per_mass(c) { mass * sum } else { sum };
    // SAFETY: the frame of a system that exists.
    let softening = unsafe {
        let squared = of_frame(frames, system, OfFrame::SofteningSquared, 0);
        Softening {
            squared: A::Real::from_f64(squared),
            rate: A::Real::from_f64(0.0),
        }
    };
    // With ε > 0 no pair is at distance zero, and a test of each takes 7 % of the time.
    let tests_pairs = A::vanishes(softening.squared);
    let work = Once::<L, F, N, S, R, LANE> {
        bodies,
        more,
        begin: system * n,
        softening,
        sources: dynamic_shared_mem(),
        threads,
        chosen: PhantomData,
    };
    let mut chunk = first_source;
    while chunk < sources_end {
        let chunk_end = (chunk + rows).min(sources_end);
        let mut first = targets_begin;
        while first < targets_end {
            // SAFETY: the pair of tiles is this block's alone, and its threads go through the same chunks.
            unsafe {
                let targets = work.targets(first, n);
                let keep_source = |i, of_source: [f64; R]| {
                    let is_first = first == targets_begin;
                    let mass = L::source(bodies, 0, system * n + i).mass.to_f64();
                    for_each::<R>(|c| {
                        let sum = whole(c, of_source[c], mass);
                        keep(pair.targets, i, c, is_first, sum);
                    });
                    let mut c = R;
                    while c < S && is_first {
                        keep(pair.targets, i, c, true, 0.0);
                        c += 1;
                    }
                };
                let found = if pair.targets == pair.sources {
                    work.one_sided::<A>(&targets, first, chunk, chunk_end)
                } else if tests_pairs {
                    work.both_sided::<A, STEPS>(&targets, chunk, chunk_end, keep_source)
                } else {
                    work.both_sided::<A::Softened, STEPS>(&targets, chunk, chunk_end, keep_source)
                };
                for_each::<LANE>(|k| {
                    let i = work.target(first, k);
                    if i < n {
                        let is_first = chunk == first_source;
                        let mass = targets[k][3].to_f64();
                        for_each::<S>(|c| {
                            let sum = whole(c, found[k][c].to_f64(), mass);
                            keep(pair.sources, i, c, is_first, sum);
                        });
                    }
                });
            }
            first += rows;
        }
        chunk += rows;
    }
}

/// Everything that pairs of tiles of a block share.
struct Once<L: Layout, F, const N: usize, const S: usize, const R: usize, const LANE: usize> {
    bodies: *const L::Word,
    more: *const L::Word,
    /// The system's first body.
    begin: u32,
    softening: Softening<L::Real>,
    /// First rows of `threads` sources, then their second rows, then the warps' sums. Each group of 32 is there twice in a
    /// row, so that source l + k lies k slots beyond source l without wrapping around.
    sources: Shared<L::Word>,
    threads: u32,
    chosen: PhantomData<F>,
}

impl<L, F, const N: usize, const S: usize, const R: usize, const LANE: usize>
    Once<L, F, N, S, R, LANE>
where
    L: Layout<Real: Shuffle + Far + SharedWord>,
    F: MutualSum<N, S>,
{
    /// The number of this thread's target `k` of those from `first` on.
    #[inline(always)]
    fn target(&self, first: u32, k: usize) -> u32 {
        let row = warp::warp_id() * LANE as u32 + k as u32;
        first + row * WARP_SIZE + warp::lane_id()
    }

    /// Both rows of body `i`, or beyond the last one of a padding body, which adds nothing.
    ///
    /// # Safety
    /// As [`once`].
    #[inline(always)]
    unsafe fn rows(&self, i: u32, end: u32) -> [Source<L::Real>; 2] {
        let zero = L::Real::from_f64(0.0);
        if i < end {
            // SAFETY: it exists.
            unsafe {
                let body = L::source(self.bodies, 0, self.begin + i);
                let rest = if N > 4 {
                    L::source(self.more, 0, self.begin + i)
                } else {
                    body
                };
                [body, rest]
            }
        } else {
            let at = |position| Source {
                position,
                mass: zero,
            };
            [at([L::Real::FAR; 3]), at([zero; 3])]
        }
    }

    /// This thread's targets of those from `first` on.
    ///
    /// # Safety
    /// As [`once`].
    #[inline(always)]
    unsafe fn targets(&self, first: u32, end: u32) -> [[L::Real; N]; LANE] {
        let mut targets = [[L::Real::from_f64(0.0); N]; LANE];
        for_each::<LANE>(|k| {
            // SAFETY: the caller's promise.
            let [body, rest] = unsafe { self.rows(self.target(first, k), end) };
            targets[k] = self::first(body, rest);
        });
        targets
    }

    /// The second rows of the sources.
    #[inline(always)]
    fn rest(&self) -> Shared<L::Word> {
        self.sources.after(2 * self.threads * L::TILE_WORDS)
    }

    /// Puts sources `first..first + threads`, as far as they come before `end`, into shared memory
    /// and waits for the whole block. All threads are done with those before.
    ///
    /// # Safety
    /// As [`once`].
    #[inline(always)]
    unsafe fn fetch(&self, first: u32, end: u32) {
        let slot = warp::warp_id() * 2 * WARP_SIZE + warp::lane_id();
        let room = 2 * self.threads;
        // SAFETY: both slots are this thread's own.
        unsafe {
            let [body, rest] = self.rows(first + thread::thread_idx_x(), end);
            L::set_tile_source(self.sources, room, slot, body);
            L::set_tile_source(self.sources, room, slot + WARP_SIZE, body);
            if N > 4 {
                L::set_tile_source(self.rest(), room, slot, rest);
                L::set_tile_source(self.rest(), room, slot + WARP_SIZE, rest);
            }
        }
        thread::sync_threads();
    }

    /// The numbers of the source in a slot.
    ///
    /// # Safety
    /// The last [`fetch`](Self::fetch) filled the slot.
    #[inline(always)]
    unsafe fn source(&self, slot: u32) -> [L::Real; N] {
        let room = 2 * self.threads;
        // SAFETY: the caller's promise.
        unsafe {
            let body = L::tile_source(self.sources, room, slot);
            let rest = if N > 4 {
                L::tile_source(self.rest(), room, slot)
            } else {
                body
            };
            first(body, rest)
        }
    }

    /// The sums on the targets over sources `chunk..end`, themselves left out.
    ///
    /// # Safety
    /// As [`once`], by all threads of the block.
    #[inline(always)]
    unsafe fn one_sided<A: Arithmetic<Real = L::Real>>(
        &self,
        targets: &[[L::Real; N]; LANE],
        first_target: u32,
        chunk: u32,
        end: u32,
    ) -> [[L::Real; S]; LANE] {
        let mut sums = [[L::Real::from_f64(0.0); S]; LANE];
        let mut first = chunk;
        while first < end {
            let count = (end - first).min(self.threads);
            // SAFETY: the barriers are reached by all; the slots below are filled.
            unsafe {
                self.fetch(first, end);
                let mut k = 0;
                while k < count {
                    let numbers = self.source(k / WARP_SIZE * 2 * WARP_SIZE + k % WARP_SIZE);
                    for_each::<LANE>(|r| {
                        if self.target(first_target, r) != first + k {
                            F::add::<A>(&targets[r], &numbers, self.softening, &mut sums[r]);
                        }
                    });
                    k += 1;
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
    /// As [`once`], by all threads of the block.
    #[inline(always)]
    unsafe fn both_sided<A: Arithmetic<Real = L::Real>, const STEPS: u32>(
        &self,
        targets: &[[L::Real; N]; LANE],
        chunk: u32,
        end: u32,
        keep: impl Fn(u32, [f64; R]),
    ) -> [[L::Real; S]; LANE] {
        let zero = L::Real::from_f64(0.0);
        let mut sums = [[zero; S]; LANE];
        let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
        let next = (lane + 1) % WARP_SIZE;
        // 32, hidden from the compiler, which unrolls loops of up to 16 known trips in full.
        let steps = opaque(WARP_SIZE);
        // The warps' contributions to the sources: `R` planes per warp, one place per source.
        let contributions: Shared<L::Real> = self.rest().after(2 * self.threads * L::TILE_WORDS);
        let place =
            |warp: u32, c: usize, source: u32| (warp * R as u32 + c as u32) * self.threads + source;
        let mut first = chunk;
        while first < end {
            let count = (end - first).min(self.threads);
            // SAFETY: the barriers are reached by all; slots are filled before they are read, and
            // a place of a plane is one lane's.
            unsafe {
                self.fetch(first, end);
                let mut group = 0;
                while group < count {
                    let mut of_source = [zero; S];
                    let mut step = 0;
                    while step < steps {
                        unrolled::<STEPS>(|k| {
                            let numbers = self.source(2 * group + lane + step + k);
                            for_each::<LANE>(|r| {
                                F::add_pair::<A>(
                                    &targets[r],
                                    &numbers,
                                    self.softening.squared,
                                    &mut sums[r],
                                    &mut of_source,
                                );
                            });
                            for_each::<R>(|c| of_source[c] = of_source[c].shuffle(next));
                        });
                        step += STEPS;
                    }
                    let mine = warp::warp_id();
                    for_each::<R>(|c| {
                        contributions.store(place(mine, c, group + lane), of_source[c]);
                    });
                    group += WARP_SIZE;
                }
                thread::sync_threads();
                // Other threads may fetch the next sources meanwhile, into slots that are not read any
                // more; the next contributions are stored after a barrier.
                if thread < count {
                    let mut of_source = [0.0; R];
                    let mut other = 0;
                    while other < self.threads / WARP_SIZE {
                        for_each::<R>(|c| {
                            let of_warp = contributions.load(place(other, c, thread));
                            of_source[c] += of_warp.to_f64();
                        });
                        other += 1;
                    }
                    keep(first + thread, of_source);
                }
            }
            first += self.threads;
        }
        sums
    }
}
