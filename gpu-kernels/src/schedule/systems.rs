//! Independent systems of equal size in one state buffer:
//! system s has bodies `s · distance ..` and n of them. Time steps are those of semi-implicit Euler,
//! `v += dt a(x)` and then `x += dt v`, taken by one block for its system or by several. Several may
//! take [each pair once](accelerate); another kernel then [kicks and drifts](kick_and_drift). So may
//! [one block](steps_in_block) that keeps its system in shared memory.
//!
//! The constants of each system, ε and dt among them, lie in a buffer of records beside the state: see
//! [`SystemConstant`].

mod by_warps;
mod in_block;

pub use by_warps::step_by_warps;
pub use in_block::{numbers_a_place, places, steps_in_block};

use crate::abi::{Params, SYSTEM_CONSTANTS, SystemConstant};
use crate::interaction::{Constants, PairLaw};
use crate::layout::{Accumulate, Layout, LayoutName, Source};
use crate::numerics::{Arithmetic, Far};
use crate::schedule::advance::add_scaled;
use crate::schedule::symmetric::{self, Slabs};
use crate::tile::{Tile, added, sweep};
use cuda_std::warp::Shuffle;
use cuda_std::{GpuFloat, global, thread};

/// The system of a block.
#[derive(Clone, Copy)]
struct System<R> {
    /// Index of its first body.
    first: u32,
    n: u32,
    stride: u32,
    constants: Constants<R>,
    kick: R,
    drift: R,
}

/// The number of the system of this block's index along the grid's second axis.
#[inline(always)]
fn of_block(params: &Params) -> u32 {
    params.systems.first + thread::block_idx_y()
}

/// A constant of this block's system.
///
/// # Safety
/// `records` holds a record of each system of the launch.
#[inline(always)]
unsafe fn constant(records: *const f64, params: &Params, which: SystemConstant) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { global::load(records, of_block(params) * SYSTEM_CONSTANTS + which as u32) }
}

/// The scalars of this block's system.
///
/// # Safety
/// As [`constant`].
#[inline(always)]
unsafe fn own_params(records: *const f64, params: &Params) -> Params {
    // SAFETY: the caller's promise.
    unsafe {
        Params {
            softening_squared: constant(records, params, SystemConstant::SofteningSquared),
            g: constant(records, params, SystemConstant::G),
            ..*params
        }
    }
}

impl<R: GpuFloat> System<R> {
    /// The system of this block's index along the grid's second axis.
    ///
    /// # Safety
    /// As [`constant`].
    #[inline(always)]
    unsafe fn of_block(records: *const f64, params: &Params) -> Self {
        // SAFETY: the caller's promise.
        let (own, kick, drift) = unsafe {
            (
                own_params(records, params),
                constant(records, params, SystemConstant::Kick),
                constant(records, params, SystemConstant::Drift),
            )
        };
        Self {
            first: of_block(params) * params.systems.distance,
            n: params.n,
            stride: params.stride,
            constants: Constants::of(&own),
            kick: R::from_f64(kick),
            drift: R::from_f64(drift),
        }
    }

    /// The velocity of the system's body `i` after the kick of a sum.
    ///
    /// # Safety
    /// `state` is a state buffer of the layout with the system's bodies.
    #[inline(always)]
    unsafe fn kicked<L: Layout<Real = R>, W: PairLaw>(
        &self,
        state: *const L::Word,
        i: u32,
        mass: R,
        sum: [R; 3],
    ) -> [R; 3] {
        // SAFETY: the caller's promise.
        let velocity = unsafe { L::velocity(state, self.stride, self.first + i) };
        let a = W::acceleration(sum, mass, velocity, &self.constants);
        add_scaled(velocity, self.kick, a)
    }

    /// The velocity after so many kicks by the same acceleration: the bits of each by itself.
    #[inline(always)]
    fn kicked_times(&self, mut velocity: [R; 3], acceleration: [R; 3], kicks: u32) -> [R; 3] {
        let mut kick = 0;
        while kick < kicks {
            velocity = add_scaled(velocity, self.kick, acceleration);
            kick += 1;
        }
        velocity
    }

    /// Drifts the system's body `i`.
    ///
    /// # Safety
    /// As [`kicked`](Self::kicked), and only this thread accesses the body.
    #[inline(always)]
    unsafe fn move_body<L: Layout<Real = R>>(&self, state: *mut L::Word, i: u32) {
        let at = self.first + i;
        // SAFETY: the caller's promise.
        unsafe {
            let body = L::source(state, self.stride, at);
            let velocity = L::velocity(state, self.stride, at);
            let moved = Source {
                position: add_scaled(body.position, self.drift, velocity),
                ..body
            };
            L::set_source(state, self.stride, at, moved);
        }
    }

    /// The sum over all sources of the system, within each tile and then over the tiles.
    ///
    /// # Safety
    /// As [`kicked`](Self::kicked), and all threads of the block call this together.
    #[inline(always)]
    unsafe fn sum_in_tiles<L, A, W, const UNROLL: u32>(
        &self,
        tile: &Tile<L>,
        state: *const L::Word,
        target: [R; 3],
    ) -> [R; 3]
    where
        L: Layout<Real = R>,
        A: Arithmetic<Real = R>,
        W: PairLaw,
    {
        let zero = [R::from_f64(0.0); 3];
        let (mut total, mut done) = (zero, 0);
        while done < self.n {
            let mut sum = zero;
            // SAFETY: sources of the system, and the tile's slots that were filled.
            unsafe {
                let (first, left) = (self.first + done, self.n - done);
                let count = tile.fetch_together::<1>(state, self.stride, first, left);
                let nobody = u32::MAX;
                tile.interact::<A, W, UNROLL>(count, nobody, target, &self.constants, &mut sum);
            }
            total = added(total, sum);
            done += tile.capacity();
        }
        total
    }

    /// The kick of the system's body `i` by the sources of its tiles: its index in the buffer, its
    /// position and mass, and its velocity after. Threads without a body get none, but fetch sources as the others.
    ///
    /// # Safety
    /// As [`sum_in_tiles`](Self::sum_in_tiles).
    #[inline(always)]
    unsafe fn kicked_in_tiles<L, A, W, const UNROLL: u32>(
        &self,
        tile: &Tile<L>,
        state: *const L::Word,
        i: u32,
    ) -> Option<(u32, Source<R>, [R; 3])>
    where
        L: Layout<Real = R>,
        A: Arithmetic<Real = R>,
        W: PairLaw,
    {
        let at = self.first + i.min(self.n - 1);
        // SAFETY: the caller's promise; those beyond n stand in for the last body.
        unsafe {
            let target = L::source(state, self.stride, at);
            let sum = self.sum_in_tiles::<L, A, W, UNROLL>(tile, state, target.position);
            (i < self.n).then(|| (at, target, self.kicked::<L, W>(state, i, target.mass, sum)))
        }
    }
}

/// Calls `body(i)` for every body of this thread, where one block has all of a system.
#[inline(always)]
fn for_own_bodies(n: u32, mut body: impl FnMut(u32)) {
    let mut i = thread::thread_idx_x();
    while i < n {
        body(i);
        i += thread::block_dim_x();
    }
}

/// All time steps of a system by one block, with every source read from global memory.
///
/// # Formula
/// `v += dt a`, `a_i = G Σ_j w_j r / d³` summed over j = 0, 1, … in order; then `x += dt v`; as often
/// as `params.systems.steps` says.
///
/// # Arguments
/// `state`: the bodies of all systems, of layout `L` with `params.stride`, updated. `records`: the
/// constants of all systems.
///
/// # Thread mapping
/// One block per system, along the grid's second axis; thread t has bodies t, t + block, …. No body moves
/// before a barrier at which all forces are there, nor is read before one at which all have moved.
///
/// # Constraints
/// `A` handles ε = 0 if that of a system is 0. `L` reads sources that are written, too.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The `galaxies` study, where bodies moved while others still read them.
#[inline(always)]
pub unsafe fn steps<L, A, W, const UNROLL: u32>(
    state: *mut L::Word,
    records: *const f64,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    const { assert!(!L::READ_ONLY, "positions are written between barriers") }
    // SAFETY: bodies of this block's system; body i is written by this thread alone, its velocity
    // while positions are read, and its position between two barriers.
    unsafe {
        let system = System::of_block(records, &params);
        let mut step = 0;
        while step < params.systems.steps {
            for_own_bodies(system.n, |i| {
                let target = L::source(state, system.stride, system.first + i);
                let mut sum = [A::Real::from_f64(0.0); 3];
                let mut add = |j| {
                    let source = L::source(state, system.stride, system.first + j);
                    W::interact::<A>(target.position, source, &system.constants, &mut sum);
                };
                sweep::<UNROLL>(system.n, &mut add);
                let v = system.kicked::<L, W>(state, i, target.mass, sum);
                L::set_velocity(state, system.stride, system.first + i, v);
            });
            thread::sync_threads();
            for_own_bodies(system.n, |i| system.move_body::<L>(state, i));
            thread::sync_threads();
            step += 1;
        }
    }
}

/// As [`steps`], through tiles of sources in shared memory.
///
/// # Formula
/// As [`steps`], summed within each tile and then over the tiles.
///
/// # Arguments
/// As [`steps`]; `params.systems.tile`: sources of a tile.
///
/// # Thread mapping
/// As [`steps`]; threads without a body fetch sources and reach every barrier.
///
/// # Shared memory
/// One tile: [`L::TILE_WORDS`](Layout::TILE_WORDS) words per source.
///
/// # Constraints
/// `A` handles ε = 0 if that of a system is 0. `L` reads sources that are written, too.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The `galaxies` study.
#[inline(always)]
pub unsafe fn steps_tiled<L, A, W, const UNROLL: u32>(
    state: *mut L::Word,
    records: *const f64,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    const { assert!(!L::READ_ONLY, "positions are written between barriers") }
    let tile = Tile::<L>::with_capacity(params.systems.tile);
    // SAFETY: as `steps`; targets beyond n stand in for the last body, and all threads go through the
    // same tiles.
    unsafe {
        let system = System::of_block(records, &params);
        let mut step = 0;
        while step < params.systems.steps {
            let mut base = 0;
            while base < system.n {
                let i = base + thread::thread_idx_x();
                let at = system.first + i.min(system.n - 1);
                let target = L::source(state, system.stride, at);
                let sum = system.sum_in_tiles::<L, A, W, UNROLL>(&tile, state, target.position);
                if i < system.n {
                    let v = system.kicked::<L, W>(state, i, target.mass, sum);
                    L::set_velocity(state, system.stride, at, v);
                }
                base += thread::block_dim_x();
            }
            thread::sync_threads();
            for_own_bodies(system.n, |i| system.move_body::<L>(state, i));
            thread::sync_threads();
            step += 1;
        }
    }
}

/// The kick of a step.
///
/// # Formula
/// `v += dt a`, `a_i = G Σ_j w_j r / d³`, summed within each tile and then over the tiles.
///
/// # Arguments
/// As [`steps_tiled`]; only velocities are updated.
///
/// # Thread mapping
/// Along the grid's first axis the blocks of a system, a thread per body; along its second the systems.
/// Threads without a body fetch sources and reach every barrier.
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
/// The `galaxies` study.
#[inline(always)]
pub unsafe fn kick<L, A, W, const UNROLL: u32>(
    state: *mut L::Word,
    records: *const f64,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let tile = Tile::<L>::with_capacity(params.systems.tile);
    let i = thread::index_1d();
    // SAFETY: bodies of this block's system; targets beyond n stand in for the last one; the velocity
    // of body i is this thread's alone.
    unsafe {
        let system = System::of_block(records, &params);
        if let Some((at, _, v)) = system.kicked_in_tiles::<L, A, W, UNROLL>(&tile, state, i) {
            L::set_velocity(state, system.stride, at, v);
        }
    }
}

/// The drift of a step.
///
/// # Formula
/// `x += dt v`.
///
/// # Arguments
/// As [`steps`]; only positions are updated.
///
/// # Thread mapping
/// Along the grid's first axis the blocks of a system, a thread per body; along its second the systems.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The `galaxies` study.
#[inline(always)]
pub unsafe fn drift<L: Layout>(state: *mut L::Word, records: *const f64, params: Params) {
    let i = thread::index_1d();
    if i < params.n {
        // SAFETY: body i of this block's system is this thread's alone.
        unsafe { System::of_block(records, &params).move_body::<L>(state, i) };
    }
}

/// One step, from one buffer to another, so that no thread has to wait until the others have read.
///
/// # Formula
/// `v′ = v + dt a(x)` and `x′ = x + dt v′`, summed within each tile and then over the tiles.
///
/// # Arguments
/// `from`: the bodies of all systems, read. `records`: the constants of all systems. `to`: bodies as in `from`, written.
/// `params.systems.tile`: sources of a tile.
///
/// # Thread mapping
/// As [`kick`].
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
/// The `galaxies` study.
#[inline(always)]
pub unsafe fn fused<L, A, W, const UNROLL: u32>(
    from: *const L::Word,
    records: *const f64,
    to: *mut L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let tile = Tile::<L>::with_capacity(params.systems.tile);
    let i = thread::index_1d();
    // SAFETY: bodies of this block's system; targets beyond n stand in for the last one; body i of `to`
    // is this thread's alone.
    unsafe {
        let system = System::of_block(records, &params);
        if let Some((at, target, v)) = system.kicked_in_tiles::<L, A, W, UNROLL>(&tile, from, i) {
            let moved = Source {
                position: add_scaled(target.position, system.drift, v),
                ..target
            };
            L::set_velocity(to, system.stride, at, v);
            L::set_source(to, system.stride, at, moved);
        }
    }
}

/// Partial sums of the accelerations of all systems, each pair once.
///
/// # Formula
/// As [`symmetric::force`], in each system.
///
/// # Arguments
/// `state`: the bodies of all systems, read. `records`: the constants of all systems. `slabs`: written,
/// as [`symmetric::force`] does; in each slab lies system after system as the bodies do.
///
/// # Thread mapping
/// Along the grid's first axis the blocks of [`symmetric::force`] for a system, along its second the
/// systems.
///
/// # Shared memory
/// As [`symmetric::force`].
///
/// # Constraints
/// As [`symmetric::force`], where the softening is a system's.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn accelerate<L, A, W, const LANE: usize, const STEPS: u32, const REGISTERS: u32>(
    state: *const L::Word,
    records: *const f64,
    slabs: *mut L::Word,
    params: Params,
) where
    L: Accumulate<Real: Shuffle + Far>,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    // A system begins at so many words: one for a body's position and mass, and one for a sum.
    const { assert!(matches!(L::NAME, LayoutName::Float4)) }
    let first = (of_block(&params) * params.systems.distance) as usize;
    // SAFETY: the system's bodies, and its part of the slabs.
    unsafe {
        let own = own_params(records, &params);
        let (state, slabs) = (state.add(first), slabs.add(first));
        symmetric::force::<L, A, W, Slabs, LANE, STEPS, REGISTERS>(state, slabs, own);
    }
}

/// A step by the partial sums that [`accelerate`] leaves.
///
/// # Formula
/// `v += dt a`, as often as the system's record says: twice where a step of leapfrog ends and the next
/// begins, with the bits of two kicks. Then `x += dt v`.
///
/// # Arguments
/// `state`: the bodies of all systems, updated. `records`: the constants of all systems. `slabs`: as
/// [`accelerate`] leaves them, read.
///
/// # Thread mapping
/// As [`drift`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The `galaxies` study.
#[inline(always)]
pub unsafe fn kick_and_drift<L: Layout>(
    state: *mut L::Word,
    records: *const f64,
    slabs: *const L::Word,
    params: Params,
) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    // SAFETY: body i of this block's system is this thread's alone.
    unsafe {
        let system = System::of_block(records, &params);
        let own = own_params(records, &params);
        let a = symmetric::gathered::<L>(slabs.add(system.first as usize), &own, i);
        let at = system.first + i;
        let kicks = constant(records, &params, SystemConstant::Kicks) as u32;
        let v = system.kicked_times(L::velocity(state, system.stride, at), a, kicks);
        let body = L::source(state, system.stride, at);
        let moved = Source {
            position: add_scaled(body.position, system.drift, v),
            ..body
        };
        L::set_velocity(state, system.stride, at, v);
        L::set_source(state, system.stride, at, moved);
    }
}
