//! Time steps of a system that a block keeps in shared memory, each pair once.
//!
//! The bodies are cut into groups of 32 · `LANE`, of which lane l of a warp has bodies l, l + 32, …. In rotation r
//! a lane takes its own bodies of one group as targets, in registers, and as sources those that lane l + r (mod 32) has of
//! the other: `LANE`² pairs without another access. The rotations 0 to 31 are all pairs of two groups; those of a group
//! with itself are rotations 1 to 15, and half of 0 and 16:
//!
//! ```text
//!              lane of the source
//!              0  1  2  3  4  5  6  7
//!            ┌────────────────────────┐
//!          0 │ ½  1  2  3  ½  ·  ·  · │
//!          1 │ ·  ½  1  2  3  ½  ·  · │    with 8 lanes: rotations 1 to 3,
//! lane of  2 │ ·  ·  ½  1  2  3  ½  · │    and of 0 and 4 the pairs of target k
//! the      3 │ ·  ·  ·  ½  1  2  3  ½ │    with sources k and above
//! target   4 │ ½  ·  ·  ·  ½  1  2  3 │
//!            ·                        ·
//! ```
//!
//! The warps of a block share the rotations out, and each has a plane of partial sums of its own, which are added
//! in the order of the warps: the bits are the same in every run.

use core::marker::PhantomData;

use super::{System, constant, own_params};
use crate::abi::{Params, SystemConstant};
use crate::interaction::{Constants, PairLaw};
use crate::layout::{Accumulate, Source};
use crate::numerics::{Arithmetic, Far};
use crate::schedule::advance::add_scaled;
use crate::tile::{added, for_each};
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::warp::WARP_SIZE;
use cuda_std::{GpuFloat, thread, warp};

/// Rotations of a group with itself, the two halves included.
const ROTATIONS_OF_ONE: u32 = WARP_SIZE / 2 + 1;

/// Places for `n` bodies in groups of 32 · `lane`.
#[inline(always)]
pub const fn places(n: u32, lane: u32) -> u32 {
    n.next_multiple_of(WARP_SIZE * lane)
}

/// Numbers in shared memory that a body's place takes beside its slot of a tile: velocity, and a partial sum of each
/// of so many warps.
#[inline(always)]
pub const fn numbers_a_place(warps: u32) -> u32 {
    3 + 3 * warps
}

/// A system in the shared memory of a block.
struct InBlock<L: Accumulate, A, W, const LANE: usize> {
    bodies: Shared<L::Word>,
    /// Planes of three numbers a place: velocities, then the partial sums of each warp.
    planes: Shared<L::Kept>,
    places: u32,
    softening_squared: L::Real,
    chosen: PhantomData<(A, W)>,
}

impl<L, A, W, const LANE: usize> InBlock<L, A, W, LANE>
where
    L: Accumulate<Real: Far>,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    const GROUP: u32 = WARP_SIZE * LANE as u32;

    /// A body; padding bodies, which exert no force, are behind the last.
    ///
    /// # Safety
    /// The place was filled.
    #[inline(always)]
    unsafe fn body(&self, place: u32) -> Source<L::Real> {
        // SAFETY: the caller's promise.
        unsafe { L::tile_source(self.bodies, self.places, place) }
    }

    #[inline(always)]
    fn at(&self, plane: u32, axis: u32, place: u32) -> u32 {
        (3 * plane + axis) * self.places + place
    }

    /// The vector of a plane.
    ///
    /// # Safety
    /// It was set.
    #[inline(always)]
    unsafe fn vector(&self, plane: u32, place: u32) -> [L::Real; 3] {
        // SAFETY: the caller's promise.
        let number = |axis| unsafe { self.planes.load(self.at(plane, axis, place)) };
        [L::kept(number(0)), L::kept(number(1)), L::kept(number(2))]
    }

    /// Sets the vector of a plane.
    ///
    /// # Safety
    /// Only this thread accesses it.
    #[inline(always)]
    unsafe fn set_vector(&self, plane: u32, place: u32, v: [L::Real; 3]) {
        // SAFETY: the caller's promise.
        let set = |axis, number| unsafe {
            self.planes
                .store(self.at(plane, axis, place), L::keep(number));
        };
        set(0, v[0]);
        set(1, v[1]);
        set(2, v[2]);
    }

    /// Adds to a partial sum of this warp.
    ///
    /// # Safety
    /// As [`set_vector`](Self::set_vector), and it was set.
    #[inline(always)]
    unsafe fn add(&self, place: u32, sum: [L::Real; 3]) {
        let plane = 1 + warp::warp_id();
        // SAFETY: the caller's promise.
        unsafe { self.set_vector(plane, place, added(self.vector(plane, place), sum)) };
    }

    /// Pairs of this lane's targets with the sources of another lane, or half of them: those of target k with
    /// sources k and above, of which source k alone keeps what it gets.
    ///
    /// # Safety
    /// As [`sums_of_warp`](Self::sums_of_warp), and no two lanes have the same sources.
    #[inline(always)]
    unsafe fn interact<const HALF: bool>(
        &self,
        targets: &[Source<L::Real>; LANE],
        sums: &mut [[L::Real; 3]; LANE],
        first_source: u32,
        rotation: u32,
    ) {
        let lane = (warp::lane_id() + rotation) % WARP_SIZE;
        for_each::<LANE>(|s| {
            let place = first_source + s as u32 * WARP_SIZE + lane;
            // SAFETY: the caller's promise.
            let source = unsafe { self.body(place) };
            let mut source_sum = [L::Real::from_f64(0.0); 3];
            for_each::<LANE>(|k| {
                let mut pair = |source_sum: &mut _| {
                    W::interact_pair::<A>(
                        [targets[k].position, source.position],
                        [targets[k].mass, source.mass],
                        self.softening_squared,
                        &mut sums[k],
                        source_sum,
                    );
                };
                if !HALF || k < s {
                    pair(&mut source_sum);
                } else if k == s {
                    // Lane l + 16 has this pair as well, the other way round; in rotation 0 it is a body with itself.
                    pair(&mut [L::Real::from_f64(0.0); 3]);
                }
            });
            // SAFETY: the caller's promise.
            unsafe { self.add(place, source_sum) };
        });
    }

    /// Computes this warp's partial sums over pairs.
    ///
    /// # Safety
    /// All places were filled before a barrier, and nobody moves a body until the next.
    #[inline(always)]
    unsafe fn sums_of_warp(&self) {
        let (lane, mine) = (warp::lane_id(), warp::warp_id());
        let warps = thread::block_dim_x() / WARP_SIZE;
        let zero = [L::Real::from_f64(0.0); 3];
        // SAFETY: this warp's plane is its own. Its lanes access different places of it between
        // two of its barriers.
        unsafe {
            let mut place = lane;
            while place < self.places {
                self.set_vector(1 + mine, place, zero);
                place += WARP_SIZE;
            }
            warp::sync_warp();
            let mut first = 0;
            while first < self.places {
                let target = |k: usize| first + k as u32 * WARP_SIZE + lane;
                let mut targets = [self.body(target(0)); LANE];
                for_each::<LANE>(|k| targets[k] = self.body(target(k)));
                let mut sums = [zero; LANE];
                let mut source = first;
                while source < self.places {
                    let itself = source == first;
                    let rotations = if itself { ROTATIONS_OF_ONE } else { WARP_SIZE };
                    let mut rotation = mine;
                    while rotation < rotations {
                        if itself && rotation % (WARP_SIZE / 2) == 0 {
                            self.interact::<true>(&targets, &mut sums, source, rotation);
                        } else {
                            self.interact::<false>(&targets, &mut sums, source, rotation);
                        }
                        warp::sync_warp();
                        rotation += warps;
                    }
                    source += Self::GROUP;
                }
                for_each::<LANE>(|k| self.add(target(k), sums[k]));
                warp::sync_warp();
                first += Self::GROUP;
            }
        }
    }

    /// The sum of a body over all others, from the partial sums of all warps.
    ///
    /// # Safety
    /// All warps have [computed theirs](Self::sums_of_warp) before a barrier.
    #[inline(always)]
    unsafe fn sum(&self, place: u32) -> [L::Real; 3] {
        let warps = thread::block_dim_x() / WARP_SIZE;
        let mut sum = [L::Real::from_f64(0.0); 3];
        let mut plane = 1;
        while plane <= warps {
            // SAFETY: the caller's promise.
            sum = added(sum, unsafe { self.vector(plane, place) });
            plane += 1;
        }
        sum
    }
}

/// Calls `body(place)` for each place of this thread: the same number of them for all threads of a warp.
#[inline(always)]
fn for_own_places(places: u32, mut body: impl FnMut(u32)) {
    let mut place = thread::thread_idx_x();
    while place < places {
        body(place);
        place += thread::block_dim_x();
    }
}

/// All time steps of a system by one block that keeps it in shared memory, each pair once.
///
/// # Formula
/// `v += dt a`, `a_i = G Σ_j w_j r / d³`, as often as the system's record says: twice where a step of
/// leapfrog ends and the next begins, with the bits of two kicks; then `x += dt v`; as many steps as
/// `params.systems.steps` says.
///
/// # Arguments
/// `state`: the bodies of all systems, of layout `L` with `params.stride`, updated. `records`: the
/// constants of all systems.
///
/// # Thread mapping
/// One block per system, along the grid's second axis, of whole warps; see the
/// module's documentation.
///
/// # Shared memory
/// [`places`] times a tile slot of `L` and [`numbers_a_place`].
///
/// # Constraints
/// `A` handles ε = 0. Masses are as `W` asks.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn steps_in_block<L, A, W, const LANE: usize>(
    state: *mut L::Word,
    records: *const f64,
    params: Params,
) where
    L: Accumulate<Real: Far>,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let places = places(params.n, LANE as u32);
    let bodies: Shared<L::Word> = dynamic_shared_mem();
    // SAFETY: the records of the launch's systems.
    let (system, kicks, own) = unsafe {
        let kicks = constant(records, &params, SystemConstant::Kicks);
        (
            System::<L::Real>::of_block(records, &params),
            kicks as u32,
            own_params(records, &params),
        )
    };
    let constants = Constants::of(&own);
    let block = InBlock::<L, A, W, LANE> {
        bodies,
        planes: bodies.after(places * L::TILE_WORDS),
        places,
        softening_squared: constants.softening_squared,
        chosen: PhantomData,
    };
    // SAFETY: each thread fills and moves its own places, between barriers at which nobody reads
    // them; bodies of the system are this block's alone.
    unsafe {
        for_own_places(places, |place| {
            let at = system.first + place;
            let (body, velocity) = if place < system.n {
                (
                    L::source(state, system.stride, at),
                    L::velocity(state, system.stride, at),
                )
            } else {
                let far = Source {
                    position: [L::Real::FAR; 3],
                    mass: L::Real::from_f64(0.0),
                };
                (far, [L::Real::from_f64(0.0); 3])
            };
            L::set_tile_source(bodies, places, place, body);
            block.set_vector(0, place, velocity);
        });
        thread::sync_threads();
        let mut step = 0;
        while step < params.systems.steps {
            block.sums_of_warp();
            thread::sync_threads();
            for_own_places(places, |place| {
                if place < system.n {
                    let body = block.body(place);
                    let v = block.vector(0, place);
                    let sum = W::of_pairs(block.sum(place), body.mass);
                    let a = W::acceleration(sum, body.mass, v, &constants);
                    let v = system.kicked_times(v, a, kicks);
                    let position = add_scaled(body.position, system.drift, v);
                    let moved = Source { position, ..body };
                    block.set_vector(0, place, v);
                    L::set_tile_source(bodies, places, place, moved);
                }
            });
            thread::sync_threads();
            step += 1;
        }
        for_own_places(places, |place| {
            if place < system.n {
                let at = system.first + place;
                L::set_source(state, system.stride, at, block.body(place));
                L::set_velocity(state, system.stride, at, block.vector(0, place));
            }
        });
    }
}
