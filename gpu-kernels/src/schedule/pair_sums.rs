//! Sums over pairs and their derivatives, of independent systems: accelerations and potentials, how they change
//! along a direction, and derivatives of functions of them.
//!
//! Another library hands over arrays and numbers that the host never sees. So the device itself finds the units in
//! which single precision is enough ([`frames`]), and rounds the bodies to them ([`pack`]). Each target is summed by one
//! thread ([`sums`]): in the precision of the pairs within a tile, in f64 over the tiles, and in a fixed order. The last
//! kernels are the steps of a trajectory, there and back.
//!
//! Arrays become *planes* of f64: number k of body i of all systems is at `k · T + i`, for T bodies of all systems
//! together.

use crate::abi::Params;
use crate::interaction::gradients::{MutualSum, PairSum, Softening};
use crate::layout::{Layout, Source};
use crate::numerics::{Arithmetic, Far};
use crate::schedule::symmetric::TilePair;
use crate::tile::{for_each, sweep, unrolled};
use core::marker::PhantomData;
use cuda_std::shared::{Shared, SharedWord, dynamic_shared_mem};
use cuda_std::warp::{Shuffle, WARP_SIZE};
use cuda_std::{GpuFloat, global, opaque, thread, warp};

/// A sum over pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SumName {
    /// Accelerations.
    Force,
    /// Rates of accelerations: [`Tangent`](crate::interaction::gradients::Tangent).
    Tangent,
    /// [`Pullback`](crate::interaction::gradients::Pullback) by positions.
    Pull,
    /// By masses and softening too.
    PullAll,
    /// Potentials.
    Potential,
    /// Rates of potentials: [`PotentialTangent`](crate::interaction::gradients::PotentialTangent).
    PotentialTangent,
    /// [`PotentialPullback`](crate::interaction::gradients::PotentialPullback).
    PotentialPull,
}

impl SumName {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Force,
        Self::Tangent,
        Self::Pull,
        Self::PullAll,
        Self::Potential,
        Self::PotentialTangent,
        Self::PotentialPull,
    ];

    /// Numbers of a body that the sum depends on, the first of [`NUMBERS`].
    #[inline]
    pub const fn numbers(self) -> u32 {
        match self {
            Self::Force | Self::Potential => 4,
            Self::PotentialPull => 5,
            Self::Pull | Self::PullAll => 7,
            Self::Tangent | Self::PotentialTangent => 8,
        }
    }

    /// Components of the sum.
    #[inline]
    pub const fn components(self) -> u32 {
        match self {
            Self::Force | Self::Tangent => 3,
            Self::Pull | Self::PullAll => 8,
            Self::Potential | Self::PotentialTangent => 1,
            Self::PotentialPull => 5,
        }
    }

    /// Components to which a source contributes where each pair is taken once, the first ones.
    #[inline]
    pub const fn reactions(self) -> u32 {
        match self {
            Self::Pull => 6,
            Self::PullAll => 7,
            _ => self.components(),
        }
    }
}

/// Planes of what sums depend on: position, mass, a vector (velocity or cotangent) and the rate of the mass. The
/// cotangent of a potential is the first number of the vector.
pub const NUMBERS: u32 = 8;

/// Planes of results, as many as a sum has components at most.
pub const RESULTS: u32 = 8;

/// Planes of what a trajectory is differentiated by: position, mass, softening and time step. The derivative by the
/// velocity takes the place of the cotangent.
pub const DERIVATIVES: u32 = 6;

/// A number of a system that all its bodies share: each has a plane with a number for each system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Scalar {
    /// ε.
    Softening,
    /// Rate of ε along a tangent.
    SofteningRate,
    /// Time step of a trajectory.
    Step,
    /// The largest derivative on the way back.
    Largest,
}

/// Planes of [`Scalar`]s.
pub const SCALARS: u32 = 4;

/// A number of a system's frame. Positions are `(x − origin) · factor`, other numbers of a body are multiplied by their
/// factor. The factors are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum OfFrame {
    /// Three coordinates.
    Origin = 0,
    Length = 3,
    Mass = 4,
    Vector = 5,
    Rate = 6,
    /// ε² in the frame's units.
    SofteningSquared = 7,
    /// ε ε̇ in the frame's units.
    SofteningRate = 8,
    /// Units of the sum's components, [`RESULTS`] of them.
    Units = 9,
}

/// Numbers of a system's frame, one after another.
pub const FRAME_NUMBERS: u32 = OfFrame::Units as u32 + RESULTS;

/// Threads of a block of [`frames`], [`largest`] and [`by_system`].
pub const WIDE: u32 = 512;

/// Bodies that a thread of [`frames`] reads at once.
const AHEAD: u32 = 4;

/// Numbers that [`frames`] keeps a thread: both ends of the coordinates, the largest mass, vector and rate.
const EXTREMES: u32 = 9;

/// Bytes of shared memory of [`frames`].
pub const FRAMES_BYTES: u32 = EXTREMES * WIDE * size_of::<f64>() as u32;

/// Bytes of shared memory of [`largest`] and [`by_system`].
pub const BY_SYSTEM_BYTES: u32 = WIDE * size_of::<f64>() as u32;

/// Sources of a tile.
pub const TILE: u32 = 128;

/// Smallest power of two ≥ `x`, between 2⁻²⁰⁰ and 2²⁰⁰; 1 if there is none.
#[inline(always)]
fn unit_of(x: f64) -> f64 {
    const MOST: i32 = 200;
    const BIAS: i32 = 1023;
    if !(x > 0.0 && x < f64::INFINITY) {
        return 1.0;
    }
    let bits = x.to_bits();
    let is_between = bits << 12 != 0;
    let exponent = (bits >> 52) as i32 - BIAS + is_between as i32;
    f64::from_bits(((exponent.clamp(-MOST, MOST) + BIAS) as u64) << 52)
}

/// Combines `count` numbers of each thread of a block of [`WIDE`] threads by halves: number k of thread t is at
/// `k · WIDE + t`, and the result at `k · WIDE`.
///
/// # Safety
/// All threads of the block call it, and each has set its numbers.
#[inline(always)]
unsafe fn combine_by_halves(shared: Shared<f64>, count: u32, combined: impl Fn(f64, f64) -> f64) {
    let slot = thread::thread_idx_x();
    let mut half = WIDE / 2;
    thread::sync_threads();
    while half > 0 {
        let mut k = 0;
        while k < count && slot < half {
            let at = k * WIDE + slot;
            // SAFETY: between barriers, a thread alone writes its place, and reads one that no thread writes.
            unsafe { shared.store(at, combined(shared.load(at), shared.load(at + half))) };
            k += 1;
        }
        thread::sync_threads();
        half /= 2;
    }
}

/// Puts an array's numbers into planes.
///
/// # Formula
/// Number c of row i goes to plane `params.share.first + c`. If `params.share.end` is 1 it is added to what is there: the
/// array is the rest of numbers that were rounded.
///
/// # Arguments
/// `array`: `params.stride` rows of `params.partials` numbers, read. `planes`: planes of `params.stride` numbers,
/// written.
///
/// # Thread mapping
/// One-dimensional; thread i has row i, threads beyond the last row do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn load<R: GpuFloat>(array: *const R, planes: *mut f64, params: Params) {
    let (i, rows, columns) = (thread::index_1d(), params.stride, params.partials);
    if i >= rows {
        return;
    }
    let mut column = 0;
    // SAFETY: row and plane exist, and the places are this thread's alone.
    unsafe {
        while column < columns {
            let number = global::load(array, i * columns + column).to_f64();
            let at = (params.share.first + column) * rows + i;
            let before = if params.share.end == 1 {
                global::load(planes, at)
            } else {
                0.0
            };
            global::store(planes, at, before + number);
            column += 1;
        }
    }
}

/// Puts planes into an array: as [`load`], the other way.
///
/// # Formula
/// Number c of row i comes from plane `params.share.first + c`. If `params.share.end` is 1 it is what rounding takes from
/// the number.
///
/// # Arguments
/// `planes`: as [`load`] has them, read. `array`: written.
///
/// # Thread mapping
/// As [`load`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn store<R: GpuFloat>(planes: *const f64, array: *mut R, params: Params) {
    let (i, rows, columns) = (thread::index_1d(), params.stride, params.partials);
    if i >= rows {
        return;
    }
    let mut column = 0;
    // SAFETY: row and plane exist, and the places are this thread's alone.
    unsafe {
        while column < columns {
            let number = global::load(planes, (params.share.first + column) * rows + i);
            let rounded = R::from_f64(number);
            let kept = if params.share.end == 1 {
                R::from_f64(number - rounded.to_f64())
            } else {
                rounded
            };
            global::store(array, i * columns + column, kept);
            column += 1;
        }
    }
}

/// Units of each system, in which its numbers are around 1, and the units of a sum's components.
///
/// # Formula
/// The origin is the middle of the bodies' box. Units are powers of two: above the largest distance from it along an axis or ε, above
/// the largest mass, and above the largest number of the vector or rate. A component's unit is a product of their
/// powers.
///
/// # Arguments
/// `planes`: [`NUMBERS`] planes of `params.stride` bodies, of which the sum's first ones are read. `scalars`: planes of
/// ε and its rate, read. `frames`: [`FRAME_NUMBERS`] of each system, written. A system has `params.n` bodies. `NAME` is
/// the [`SumName`] as a number.
///
/// # Thread mapping
/// A block of [`WIDE`] threads for each system.
///
/// # Shared memory
/// [`FRAMES_BYTES`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work; the maxima are taken by halves as in [`tree`](super::reduce::tree).
#[inline(always)]
pub unsafe fn frames<const NAME: usize>(
    planes: *const f64,
    scalars: *const f64,
    frames: *mut f64,
    params: Params,
) {
    let name = const { SumName::ALL[NAME] };
    let system = thread::block_idx_x();
    let number = |k: u32, i: u32| {
        // SAFETY: the plane and the body exist.
        unsafe { global::load(planes, k * params.stride + system * params.n + i) }
    };
    // Both ends of the box, the lower one with the other sign.
    let mut ends = [[f64::NEG_INFINITY; 3]; 2];
    let (mut mass, mut vector, mut rate) = (0.0_f64, 0.0_f64, 0.0_f64);
    let slot = thread::thread_idx_x();
    let mut first = slot;
    while first < params.n {
        // Several bodies are on their way at once; those beyond the last are the last once more.
        unrolled::<AHEAD>(|k| {
            let i = (first + k * WIDE).min(params.n - 1);
            let at = [number(0, i), number(1, i), number(2, i)];
            ends[0] = [0, 1, 2].map(|axis| ends[0][axis].larger(at[axis]));
            ends[1] = [0, 1, 2].map(|axis| ends[1][axis].larger(-at[axis]));
            mass = mass.larger(number(3, i).magnitude());
            if name.numbers() > 4 {
                vector = vector.larger(number(4, i).magnitude());
            }
            if name.numbers() > 5 {
                vector = vector.larger(number(5, i).magnitude());
                vector = vector.larger(number(6, i).magnitude());
            }
            if name.numbers() > 7 {
                rate = rate.larger(number(7, i).magnitude());
            }
        });
        first += AHEAD * WIDE;
    }
    let shared: Shared<f64> = dynamic_shared_mem();
    let [[x, y, z], [u, v, w]] = ends;
    let found = [x, y, z, u, v, w, mass, vector, rate];
    // SAFETY: each thread sets its own numbers, and all threads of the block come here.
    unsafe {
        for_each::<{ EXTREMES as usize }>(|k| shared.store(k as u32 * WIDE + slot, found[k]));
        combine_by_halves(shared, EXTREMES, |a, b| a.larger(b));
    }
    if slot > 0 {
        return;
    }
    // SAFETY: the results are set, before a barrier.
    let extreme = |k: u32| unsafe { shared.load(k * WIDE) };
    // SAFETY: the system's scalars exist.
    let scalar = |which: Scalar| unsafe {
        global::load(scalars, which as u32 * thread::grid_dim_x() + system)
    };
    let softening = scalar(Scalar::Softening);
    let middle = |axis: u32| 0.5 * (extreme(axis) - extreme(axis + 3));
    let half = |axis: u32| 0.5 * (extreme(axis) + extreme(axis + 3));
    let reach = half(0).larger(half(1)).larger(half(2)).larger(softening);
    let (length, mass) = (unit_of(reach), unit_of(extreme(6)));
    let (vector, rate) = (extreme(7), extreme(8));
    let is_tangent = name.numbers() == NUMBERS;
    // ε̇, and the unit of a rate.
    let (softening_rate, unit) = if is_tangent {
        let of_softening = scalar(Scalar::SofteningRate);
        let rates = (vector / length).larger(rate / mass);
        let largest = rates.larger(of_softening.magnitude() / length);
        (of_softening, unit_of(largest))
    } else {
        (0.0, unit_of(vector))
    };
    let epsilon = softening / length;
    let acceleration = mass / length / length;
    let by_position = unit / length * acceleration;
    let [acceleration_rate, potential_rate] = [unit * acceleration, mass / length * unit];
    let units = match name {
        SumName::Force => [acceleration; 8],
        SumName::Tangent => [acceleration_rate; 8],
        SumName::Pull | SumName::PullAll => [
            acceleration,
            acceleration,
            acceleration,
            by_position,
            by_position,
            by_position,
            unit / length / length,
            -0.5 * epsilon * by_position,
        ],
        SumName::Potential => [-(mass / length); 8],
        SumName::PotentialTangent => [-potential_rate; 8],
        SumName::PotentialPull => [
            -acceleration_rate,
            -acceleration_rate,
            -acceleration_rate,
            -(unit / length),
            0.5 * epsilon * acceleration_rate,
            0.0,
            0.0,
            0.0,
        ],
    };
    let [vector, rate] = if is_tangent {
        [1.0 / length / unit, 1.0 / mass / unit]
    } else {
        [1.0 / unit, 0.0]
    };
    let set = |at: OfFrame, offset: u32, value: f64| {
        // SAFETY: this thread alone has the system's frame.
        unsafe { global::store(frames, system * FRAME_NUMBERS + at as u32 + offset, value) }
    };
    set(OfFrame::Origin, 0, middle(0));
    set(OfFrame::Origin, 1, middle(1));
    set(OfFrame::Origin, 2, middle(2));
    set(OfFrame::Length, 0, 1.0 / length);
    set(OfFrame::Mass, 0, 1.0 / mass);
    set(OfFrame::Vector, 0, vector);
    set(OfFrame::Rate, 0, rate);
    set(OfFrame::SofteningSquared, 0, epsilon * epsilon);
    let rate = epsilon * (softening_rate / length / unit);
    set(OfFrame::SofteningRate, 0, rate);
    for_each::<{ RESULTS as usize }>(|k| set(OfFrame::Units, k as u32, units[k]));
}

/// A number of a system's frame.
///
/// # Safety
/// [`frames`] has set it.
#[inline(always)]
unsafe fn of_frame(frames: *const f64, system: u32, at: OfFrame, offset: u32) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { global::load(frames, system * FRAME_NUMBERS + at as u32 + offset) }
}

/// Bodies in the units of their frame, rounded to the precision of the pairs.
///
/// # Formula
/// `(x − o)/L`, and other numbers divided by their units.
///
/// # Arguments
/// `planes`: the first `params.partials` of [`NUMBERS`] planes of `params.stride` bodies, read; what comes after them is
/// 0. `frames`: as [`frames`] leaves them, read. `bodies`: positions and masses in rows of layout `L`, written. `more`:
/// the other four numbers in such rows, written if there are any. A system has `params.n` bodies.
///
/// # Thread mapping
/// One-dimensional; thread i has body i of all systems, threads beyond the last do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn pack<L: Layout>(
    planes: *const f64,
    frames: *const f64,
    bodies: *mut L::Word,
    more: *mut L::Word,
    params: Params,
) {
    let Params { n, stride, .. } = params;
    let i = thread::index_1d();
    if i >= stride {
        return;
    }
    let system = i / n;
    // SAFETY: the body, its system and their numbers exist; its rows are this thread's alone.
    unsafe {
        let factor = |at: OfFrame| of_frame(frames, system, at, 0);
        let number = |k: u32| {
            if k < params.partials {
                global::load(planes, k * stride + i)
            } else {
                0.0
            }
        };
        let coordinate = |axis: u32| {
            let moved = number(axis) - of_frame(frames, system, OfFrame::Origin, axis);
            L::Real::from_f64(moved * factor(OfFrame::Length))
        };
        let body = Source {
            position: [coordinate(0), coordinate(1), coordinate(2)],
            mass: L::Real::from_f64(number(3) * factor(OfFrame::Mass)),
        };
        L::set_source(bodies, stride, i, body);
        if params.partials > 4 {
            let component = |k: u32| L::Real::from_f64(number(k) * factor(OfFrame::Vector));
            let rest = Source {
                position: [component(4), component(5), component(6)],
                mass: L::Real::from_f64(number(7) * factor(OfFrame::Rate)),
            };
            L::set_source(more, stride, i, rest);
        }
    }
}

/// The first `N` numbers of a body.
#[inline(always)]
fn first<R: Copy, const N: usize>(body: Source<R>, rest: Source<R>) -> [R; N] {
    let ([x, y, z], [u, v, w]) = (body.position, rest.position);
    let all = [x, y, z, body.mass, u, v, w, rest.mass];
    match all.first_chunk() {
        Some(numbers) => *numbers,
        None => unreachable!(),
    }
}

/// Sums over a part of the sources, of each body over all others of its system.
///
/// # Formula
/// [`PairSum::add`] of `F`, in the precision of `A` within each tile, and in f64 over the tiles. A body adds nothing to its sum.
///
/// # Arguments
/// `bodies` and `more`: rows of layout `L` as [`pack`] leaves them, read; `more` if `N` > 4. `frames`: as [`frames`]
/// leaves them, read. `sums`: `S` planes of `params.stride` bodies for each of `params.partials` parts, written. A system
/// has `params.n` bodies.
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
/// [`points`](super::points), with the bodies as targets and more numbers of each.
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

/// Sums of a pair of tiles, each pair of bodies once.
///
/// # Formula
/// [`MutualSum::add_pair`] of `F` for each pair of a body of one tile and a body of another, and [`PairSum::add`] within a
/// tile: in the precision of `A` over the sources of a chunk, or over the targets of a warp, and in f64 beyond.
///
/// # Arguments
/// As of [`sums`], but `sums` has `S` planes for each of `params.partials` tiles: plane set k of a body is its sum over
/// tile k. The tiles have `params.tiling.side` bodies.
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
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// [`symmetric`](super::symmetric), with more numbers of a body and more sums.
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
    // SAFETY: the frame of a system that exists.
    let softening = unsafe {
        let squared = of_frame(frames, system, OfFrame::SofteningSquared, 0);
        Softening {
            squared: A::Real::from_f64(squared),
            rate: A::Real::from_f64(0.0),
        }
    };
    let work = Once::<L, A, F, N, S, R, LANE> {
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
                let found = if pair.targets == pair.sources {
                    work.one_sided(&targets, first, chunk, chunk_end)
                } else {
                    work.both_sided::<STEPS>(&targets, chunk, chunk_end, |i, of_source| {
                        let is_first = first == targets_begin;
                        for_each::<R>(|c| keep(pair.targets, i, c, is_first, of_source[c]));
                        let mut c = R;
                        while c < S && is_first {
                            keep(pair.targets, i, c, true, 0.0);
                            c += 1;
                        }
                    })
                };
                for_each::<LANE>(|k| {
                    let i = work.target(first, k);
                    if i < n {
                        let is_first = chunk == first_source;
                        for_each::<S>(|c| {
                            keep(pair.sources, i, c, is_first, found[k][c].to_f64());
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
struct Once<
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    F,
    const N: usize,
    const S: usize,
    const R: usize,
    const LANE: usize,
> {
    bodies: *const L::Word,
    more: *const L::Word,
    /// The system's first body.
    begin: u32,
    softening: Softening<A::Real>,
    /// First rows of `threads` sources, then their second rows, then the warps' sums. Each group of 32 is there twice in a
    /// row, so that source l + k lies k slots beyond source l without wrapping around.
    sources: Shared<L::Word>,
    threads: u32,
    chosen: PhantomData<F>,
}

impl<L, A, F, const N: usize, const S: usize, const R: usize, const LANE: usize>
    Once<L, A, F, N, S, R, LANE>
where
    L: Layout<Real: Shuffle + Far + SharedWord>,
    A: Arithmetic<Real = L::Real>,
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
    unsafe fn one_sided(
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
    unsafe fn both_sided<const STEPS: u32>(
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

/// Sums over all parts of the sources, or over all tiles, in the units of the arrays.
///
/// # Formula
/// `r_ci = u_c Σ_p s_pci`, in order.
///
/// # Arguments
/// `sums`: `params.sources_a_thread` planes for each of `params.partials` parts, as [`sums`] or [`once`] leave them, read.
/// `frames`: as [`frames`] leaves them, read. `results`: planes of `params.stride` bodies, written. A system has
/// `params.n` bodies.
///
/// # Thread mapping
/// One-dimensional; thread i has body i of all systems, threads beyond the last do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn total(sums: *const f64, frames: *const f64, results: *mut f64, params: Params) {
    let (i, stride, components) = (thread::index_1d(), params.stride, params.sources_a_thread);
    if i >= stride {
        return;
    }
    let mut c = 0;
    // SAFETY: body, component and part exist, and the places are this thread's alone.
    unsafe {
        while c < components {
            let mut total = 0.0;
            let mut part = 0;
            while part < params.partials {
                total += global::load(sums, (part * components + c) * stride + i);
                part += 1;
            }
            let unit = of_frame(frames, i / params.n, OfFrame::Units, c);
            global::store(results, c * stride + i, unit * total);
            c += 1;
        }
    }
}

/// The length of a part of a step of a body's system: a share of the time step.
///
/// # Safety
/// `scalars` are as in [`kick`].
#[inline(always)]
unsafe fn length(scalars: *const f64, params: &Params, i: u32) -> f64 {
    let systems = params.stride / params.n;
    let at = Scalar::Step as u32 * systems + i / params.n;
    // SAFETY: the system has a time step.
    params.dt * unsafe { global::load(scalars, at) }
}

/// Component `axis` of a body's vector in planes.
///
/// # Safety
/// It exists.
#[inline(always)]
unsafe fn component(planes: *const f64, params: &Params, first: u32, axis: u32, i: u32) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { global::load(planes, (first + axis) * params.stride + i) }
}

/// Adds to component `axis` of a body's vector in planes.
///
/// # Safety
/// It exists, and this thread alone accesses it.
#[inline(always)]
unsafe fn add(planes: *mut f64, params: &Params, first: u32, axis: u32, i: u32, term: f64) {
    let at = (first + axis) * params.stride + i;
    // SAFETY: the caller's promise.
    unsafe { global::store(planes, at, global::load(planes, at) + term) }
}

/// A kick of a trajectory.
///
/// # Formula
/// `v += h a` for the share `params.dt` of the system's time step.
///
/// # Arguments
/// `velocities`: three planes, read and written. `results`: planes of which the first three are accelerations, read.
/// `scalars`: planes of [`Scalar`]s, read.
///
/// # Thread mapping
/// One-dimensional; thread i has body i of all systems, threads beyond the last do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn kick(velocities: *mut f64, results: *const f64, scalars: *const f64, params: Params) {
    let i = thread::index_1d();
    if i >= params.stride {
        return;
    }
    // SAFETY: the body exists, and its velocity is this thread's alone.
    unsafe {
        let h = length(scalars, &params, i);
        let mut axis = 0;
        while axis < 3 {
            let a = component(results, &params, 0, axis, i);
            add(velocities, &params, 0, axis, i, h * a);
            axis += 1;
        }
    }
}

/// A drift of a trajectory.
///
/// # Formula
/// `x += h v` for the share `params.dt` of the system's time step.
///
/// # Arguments
/// `planes`: of which the first three are positions, read and written. `velocities`: three planes, read. `scalars`:
/// planes of [`Scalar`]s, read.
///
/// # Thread mapping
/// As [`kick`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn drift(planes: *mut f64, velocities: *const f64, scalars: *const f64, params: Params) {
    let i = thread::index_1d();
    if i >= params.stride {
        return;
    }
    // SAFETY: the body exists, and its position is this thread's alone.
    unsafe {
        let h = length(scalars, &params, i);
        let mut axis = 0;
        while axis < 3 {
            let v = component(velocities, &params, 0, axis, i);
            add(planes, &params, 0, axis, i, h * v);
            axis += 1;
        }
    }
}

/// Plane of the first component of the cotangent, which is the derivative by the velocity in a trajectory.
const COTANGENT: u32 = 4;

/// Derivatives taken back through a kick. The kick itself is taken back by [`kick`].
///
/// # Formula
/// For `L` of the state after the kick, and λ = ∂L/∂v: `∂L/∂x += h ∂(λ·a)/∂x`, `∂L/∂m` and `∂L/∂ε` likewise, and for the
/// time step `s λ·a`. h is the share s = `params.dt` of the system's time step.
///
/// # Arguments
/// `planes`: of which numbers 4 to 6 are λ, read. `results`: [`RESULTS`] planes of [`SumName::PullAll`], read.
/// `derivatives`: [`DERIVATIVES`] planes, read and written. `scalars`: planes of [`Scalar`]s, read.
///
/// # Thread mapping
/// As [`kick`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The derivative of leapfrog backwards, step by step.
#[inline(always)]
pub unsafe fn kick_back(
    planes: *const f64,
    results: *const f64,
    derivatives: *mut f64,
    scalars: *const f64,
    params: Params,
) {
    let i = thread::index_1d();
    if i >= params.stride {
        return;
    }
    // SAFETY: the body exists, and its derivatives are this thread's alone.
    unsafe {
        let h = length(scalars, &params, i);
        let mut along = 0.0;
        let mut axis = 0;
        while axis < 3 {
            let lambda = component(planes, &params, COTANGENT, axis, i);
            along += lambda * component(results, &params, 0, axis, i);
            axis += 1;
        }
        let mut k = 0;
        while k < 5 {
            let term = h * component(results, &params, 3, k, i);
            add(derivatives, &params, 0, k, i, term);
            k += 1;
        }
        add(derivatives, &params, 5, 0, i, params.dt * along);
    }
}

/// A drift taken back, and derivatives with it.
///
/// # Formula
/// For `L` of the state after the drift: `∂L/∂v += h ∂L/∂x`, for the time step `s v·∂L/∂x`, and `x −= h v`. h is the share
/// s = `params.dt` of the system's time step.
///
/// # Arguments
/// `planes`: of which the first three are positions and numbers 4 to 6 ∂L/∂v, read and written. `velocities`: three
/// planes, read. `derivatives`: [`DERIVATIVES`] planes, read and written. `scalars`: planes of [`Scalar`]s, read.
///
/// # Thread mapping
/// As [`kick`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// As [`kick_back`].
#[inline(always)]
pub unsafe fn drift_back(
    planes: *mut f64,
    velocities: *const f64,
    derivatives: *mut f64,
    scalars: *const f64,
    params: Params,
) {
    let i = thread::index_1d();
    if i >= params.stride {
        return;
    }
    // SAFETY: the body exists, and its numbers are this thread's alone.
    unsafe {
        let h = length(scalars, &params, i);
        let mut along = 0.0;
        let mut axis = 0;
        while axis < 3 {
            let v = component(velocities, &params, 0, axis, i);
            let by_position = component(derivatives, &params, 0, axis, i);
            along += v * by_position;
            add(planes, &params, COTANGENT, axis, i, h * by_position);
            add(planes, &params, 0, axis, i, -(h * v));
            axis += 1;
        }
        add(derivatives, &params, 5, 0, i, params.dt * along);
    }
}

/// The largest derivative by positions and velocities so far, for rounding errors grow as derivatives do.
///
/// # Formula
/// The largest of the numbers' sizes and of what was found before.
///
/// # Arguments
/// `planes`: of which numbers 4 to 6 are derivatives by velocities, and `derivatives`, of which the first three are by
/// positions, read. `scalars`: of which [`Scalar::Largest`] is read and written. A system has `params.n` bodies.
///
/// # Thread mapping
/// A block of [`WIDE`] threads for each system.
///
/// # Shared memory
/// [`BY_SYSTEM_BYTES`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// [`tree`](super::reduce::tree).
#[inline(always)]
pub unsafe fn largest(
    planes: *const f64,
    derivatives: *const f64,
    scalars: *mut f64,
    params: Params,
) {
    let (system, slot) = (thread::block_idx_x(), thread::thread_idx_x());
    let mut most = 0.0_f64;
    let mut i = slot;
    // SAFETY: the body exists; the system's number is the first thread's.
    unsafe {
        while i < params.n {
            let body = system * params.n + i;
            let mut axis = 0;
            while axis < 3 {
                let by_velocity = component(planes, &params, COTANGENT, axis, body);
                let by_position = component(derivatives, &params, 0, axis, body);
                most = most.larger(by_velocity.magnitude());
                most = most.larger(by_position.magnitude());
                axis += 1;
            }
            i += WIDE;
        }
        let shared: Shared<f64> = dynamic_shared_mem();
        shared.store(slot, most);
        combine_by_halves(shared, 1, |a, b| a.larger(b));
        if slot == 0 {
            let at = Scalar::Largest as u32 * thread::grid_dim_x() + system;
            let before: f64 = global::load(scalars, at);
            global::store(scalars, at, before.larger(shared.load(0)));
        }
    }
}

/// A plane's sum over the bodies of each system.
///
/// # Formula
/// `Σ_i p_i`: thread t adds every [`WIDE`]-th, then halves of threads are added.
///
/// # Arguments
/// `planes`: of which plane `params.share.first` is read. `sums`: a number of each system, written. A system has
/// `params.n` bodies.
///
/// # Thread mapping
/// A block of [`WIDE`] threads for each system.
///
/// # Shared memory
/// [`BY_SYSTEM_BYTES`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// [`tree`](super::reduce::tree).
#[inline(always)]
pub unsafe fn by_system(planes: *const f64, sums: *mut f64, params: Params) {
    let (system, slot) = (thread::block_idx_x(), thread::thread_idx_x());
    let first = params.share.first * params.stride + system * params.n;
    let mut sum = 0.0;
    let mut i = slot;
    // SAFETY: the body exists; the system's sum is the first thread's.
    unsafe {
        while i < params.n {
            sum += global::load(planes, first + i);
            i += WIDE;
        }
        let shared: Shared<f64> = dynamic_shared_mem();
        shared.store(slot, sum);
        combine_by_halves(shared, 1, |a, b| a + b);
        if slot == 0 {
            global::store(sums, system, shared.load(0));
        }
    }
}
