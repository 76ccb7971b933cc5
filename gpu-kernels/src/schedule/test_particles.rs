//! Test particles: bodies without mass are accelerated and accelerate nothing, so that a force costs as
//! many interactions per body as there are sources.
//!
//! Sources are copied side by side ([`gather`]), and every body is accelerated by them ([`force`]). Where
//! they are few, many steps are taken at a time: one block moves the sources and keeps where they are
//! at each evaluation ([`trace`]); then each thread takes all steps of its body, which stays in registers
//! ([`follow`]). What is computed is the same, operation by operation, as in launches that are made one
//! after another, and so are the bits.

use crate::abi::{MOVE_NUMBERS, Move, Params};
use crate::interaction::{Constants, PairLaw};
use crate::layout::{Layout, Source};
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::schedule::advance::add_scaled;
use crate::tile::{Tile, added, sweep};
use cuda_std::shared::dynamic_shared_mem;
use cuda_std::warp::WARP_SIZE;
use cuda_std::{GpuFloat, global, thread};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::TestParticles;

/// Interactions in the loop's body of [`trace`] and [`follow`], which are for few sources.
pub const UNROLL_OF_STEPS: u32 = 2;

/// Bodies that a buffer of so many sources has room for.
#[inline(always)]
pub const fn room(sources: u32) -> u32 {
    sources.next_multiple_of(WARP_SIZE)
}

/// Copies the sources side by side.
///
/// # Formula
/// None: source k is body `indices[k]`.
///
/// # Arguments
/// `state`: bodies of layout `L` with `params.stride`, read. `indices`: those of the
/// `params.sources_a_thread` sources, read. `sources`: as many bodies of the same layout, with [`room`]
/// for whole warps, written.
///
/// # Thread mapping
/// One-dimensional; thread k copies source k, threads beyond the last do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// None.
#[inline(always)]
pub unsafe fn gather<L: Layout>(
    state: *const L::Word,
    indices: *const u32,
    sources: *mut L::Word,
    params: Params,
) {
    let k = thread::index_1d();
    let count = params.sources_a_thread;
    if k >= count {
        return;
    }
    // SAFETY: source k is this thread's alone, and its index that of a body.
    unsafe {
        let i = global::load(indices, k);
        let (body, velocity) = (
            L::source(state, params.stride, i),
            L::velocity(state, params.stride, i),
        );
        L::set_source(sources, room(count), k, body);
        L::set_velocity(sources, room(count), k, velocity);
    }
}

/// Accelerations of all bodies by the sources.
///
/// # Formula
/// `a_i = G Σ_j w_j r / d³`, j running over the sources; summed within each tile and then over the tiles.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`: n vectors, written. Both of layout `L` with
/// `params.stride`. `sources`: as [`gather`] leaves them, read.
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
/// [`tiled`](super::tiled), with other sources than targets.
#[inline(always)]
pub unsafe fn force<L, A, W, const UNROLL: u32>(
    state: *const L::Word,
    sources: *const L::Word,
    acceleration: *mut L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let i = thread::index_1d();
    let constants = Constants::of(&params);
    let zero = [A::Real::from_f64(0.0); 3];
    let tile = Tile::<L>::of_block();
    let all = params.sources_a_thread;
    // SAFETY: targets beyond n stand in for the last body; all threads of the block go through the
    // same tiles; vector i is this thread's alone.
    unsafe {
        let own = i.min(params.n - 1);
        let body = L::source(state, params.stride, own);
        let mut total = zero;
        let mut first = 0;
        while first < all {
            let count = tile.fetch(sources, room(all), all, first);
            let mut sum = zero;
            let nobody = u32::MAX;
            tile.interact::<A, W, UNROLL>(count, nobody, body.position, &constants, &mut sum);
            total = added(total, sum);
            first += tile.capacity();
        }
        if i < params.n {
            let velocity = L::velocity(state, params.stride, i);
            let a = W::acceleration(total, body.mass, velocity, &constants);
            L::set_vector(acceleration, params.stride, i, a);
        }
    }
}

/// Steps of the sources, and where they are at each evaluation.
///
/// # Formula
/// The moves of a step, `params.systems.steps` times over; an evaluation is that of [`force`].
///
/// # Arguments
/// `sources`: as [`gather`] leaves them, read. `acceleration`: vectors of all bodies with
/// `params.stride`, read, and `indices` as [`gather`] takes them. `moves`:
/// records of [`MOVE_NUMBERS`] numbers, the last of which is [`Move::End`], read. `kept`: of each
/// evaluation [`room`] for the positions and masses of all sources, which come first in layout `L`,
/// written.
///
/// # Thread mapping
/// One block of at least as many threads as there are sources; thread k moves source k. Threads beyond
/// the last compute nothing that is kept, but reach every barrier.
///
/// # Shared memory
/// One tile: [`L::TILE_WORDS`](Layout::TILE_WORDS) words per thread.
///
/// # Constraints
/// As of [`force`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// None.
#[inline(always)]
pub unsafe fn trace<L, A, W>(
    sources: *const L::Word,
    acceleration: *const L::Word,
    indices: *const u32,
    moves: *const f64,
    kept: *mut L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let slot = thread::thread_idx_x();
    let count = params.sources_a_thread;
    let constants = Constants::of(&params);
    let tile = Tile::<L>::of_block();
    // SAFETY: threads beyond the last source stand in for it. All threads go through the same moves; each
    // fills its own slot between two barriers, and slots are read up to the last one filled; what is
    // kept of a source is its thread's alone.
    unsafe {
        let own = slot.min(count - 1);
        let mut body = Moving {
            source: L::source(sources, room(count), own),
            v: L::velocity(sources, room(count), own),
            a: L::vector(acceleration, params.stride, global::load(indices, own)),
        };
        body.take_steps(moves, &params, |number, body| {
            thread::sync_threads();
            if slot < count {
                let words = dynamic_shared_mem();
                L::set_tile_source(words, tile.capacity(), slot, body.source);
                L::set_source(kept, room(count), number * room(count) + slot, body.source);
            }
            thread::sync_threads();
            body.accelerated::<A, W>(&constants, count, |k| tile.source(k))
        });
    }
}

/// Steps of all bodies.
///
/// # Formula
/// As of [`trace`].
///
/// # Arguments
/// `state`: n bodies, moved. `acceleration`: n vectors, those of the state before and then after. Both of
/// layout `L` with `params.stride`. `moves`, `kept`: as [`trace`] takes and leaves them, read.
///
/// # Thread mapping
/// One-dimensional; thread i moves body i, threads beyond n do nothing. All threads of a warp read the
/// same source at a time, from the first-level cache.
///
/// # Constraints
/// As of [`force`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// None.
#[inline(always)]
pub unsafe fn follow<L, A, W>(
    state: *mut L::Word,
    acceleration: *mut L::Word,
    moves: *const f64,
    kept: *const L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    let count = params.sources_a_thread;
    let constants = Constants::of(&params);
    // SAFETY: body i is this thread's alone, and each evaluation has kept all sources.
    unsafe {
        let mut body = Moving {
            source: L::source(state, params.stride, i),
            v: L::velocity(state, params.stride, i),
            a: L::vector(acceleration, params.stride, i),
        };
        body.take_steps(moves, &params, |number, body| {
            let first = number * room(count);
            let source = |k| L::source(kept, room(count), first + k);
            body.accelerated::<A, W>(&constants, count, source)
        });
        L::set_source(state, params.stride, i, body.source);
        L::set_velocity(state, params.stride, i, body.v);
        L::set_vector(acceleration, params.stride, i, body.a);
    }
}

/// A body on its way through many steps: position and mass, velocity, acceleration.
struct Moving<R> {
    source: Source<R>,
    v: [R; 3],
    a: [R; 3],
}

impl<R: GpuFloat> Moving<R> {
    /// Takes all steps. `evaluate` is told the number of the evaluation.
    ///
    /// # Safety
    /// `moves` holds a record of each move of a step, and of its end.
    #[inline(always)]
    unsafe fn take_steps(
        &mut self,
        moves: *const f64,
        params: &Params,
        mut evaluate: impl FnMut(u32, &Self) -> [R; 3],
    ) {
        let (mut step, mut evaluation) = (0, 0);
        while step < params.systems.steps {
            let mut number = 0;
            loop {
                // SAFETY: the caller's promise.
                let (which, amount) = unsafe {
                    let at = number * MOVE_NUMBERS;
                    (global::load(moves, at) as u32, global::load(moves, at + 1))
                };
                if which == Move::End as u32 {
                    break;
                }
                if which == Move::Evaluate as u32 {
                    self.a = evaluate(evaluation, self);
                    evaluation += 1;
                } else {
                    self.advance(which, R::from_f64(amount));
                }
                number += 1;
            }
            step += 1;
        }
    }

    /// Makes one of the other moves, as [`advance`](super::advance) does.
    #[inline(always)]
    fn advance(&mut self, which: u32, amount: R) {
        if which == Move::Kick as u32 {
            self.v = add_scaled(self.v, amount, self.a);
        } else if which == Move::Drift as u32 {
            self.source.position = add_scaled(self.source.position, amount, self.v);
        } else {
            self.v = [amount * self.v[0], amount * self.v[1], amount * self.v[2]];
        }
    }

    /// The acceleration by sources `0..count`, which are no more than a tile of [`force`] holds.
    #[inline(always)]
    fn accelerated<A, W>(
        &self,
        constants: &Constants<R>,
        count: u32,
        source: impl Fn(u32) -> Source<R>,
    ) -> [R; 3]
    where
        A: Arithmetic<Real = R>,
        W: PairLaw,
    {
        let zero = [R::from_f64(0.0); 3];
        let mut sum = zero;
        sweep::<UNROLL_OF_STEPS>(count, &mut |k| {
            W::interact::<A>(self.source.position, source(k), constants, &mut sum);
        });
        W::acceleration(added(zero, sum), self.source.mass, self.v, constants)
    }
}
