//! Units of each system, and bodies in them.

use super::{NUMBERS, RESULTS, Scalar, SumName, WIDE, combine_by_halves};
use crate::abi::Params;
use crate::layout::{Layout, Source};
use crate::tile::{for_each, unrolled};
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::{GpuFloat, global, thread};

/// A number of a system's frame. Positions are `(x − origin) · factor`, other numbers of a body are multiplied by their
/// factor. The factors are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum OfFrame {
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
    /// 1 if vectors are divided by the bodies' masses, else 0.
    PerMass = 9,
    /// Units of the sum's components, [`RESULTS`] of them.
    Units = 10,
}

/// Numbers of a system's frame, one after another.
pub const FRAME_NUMBERS: u32 = OfFrame::Units as u32 + RESULTS;

/// Bodies that a thread of [`frames`] reads at once.
const AHEAD: u32 = 4;

/// Numbers that [`frames`] keeps a thread: both ends of the coordinates, the largest mass, vector and rate, and the smallest
/// mass with the other sign.
const EXTREMES: u32 = 10;

/// The smallest mass, in the largest one, with which vectors are divided by masses: 2⁻⁴⁰. Then f32 has room for them.
const LIGHTEST: f64 = 1.0 / (1_u64 << 40) as f64;

/// Bytes of shared memory of [`frames`].
pub const FRAMES_BYTES: u32 = EXTREMES * WIDE * size_of::<f64>() as u32;

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

/// Units of each system, in which its numbers are around 1, and the units of a sum's components.
///
/// # Formula
/// The origin is the middle of the bodies' box. Units are powers of two: above the largest distance from it along an
/// axis or ε, above the largest mass, and above the largest number of the vector or rate. A component's unit is a
/// product of their powers. Where pairs are taken once, and all bodies have mass, the cotangents of accelerations are
/// divided by masses.
///
/// # Arguments
/// `planes`: [`NUMBERS`] planes of `params.stride` bodies, of which the sum's first ones are read. `scalars`: planes of
/// ε and its rate, read. `frames`: [`FRAME_NUMBERS`] of each system, written. A system has `params.n` bodies. Pairs are taken
/// once if `params.tiling.side` is not 0. `NAME` is the [`SumName`] as a number.
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
/// Own work; the maxima are taken by halves as in [`tree`](crate::schedule::reduce::tree).
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
    let mut lightest = f64::NEG_INFINITY;
    let slot = thread::thread_idx_x();
    let mut first = slot;
    while first < params.n {
        // Several bodies are on their way at once; those beyond the last are the last once more.
        unrolled::<AHEAD>(|k| {
            let i = (first + k * WIDE).min(params.n - 1);
            let at = [number(0, i), number(1, i), number(2, i)];
            ends[0] = [0, 1, 2].map(|axis| ends[0][axis].larger(at[axis]));
            ends[1] = [0, 1, 2].map(|axis| ends[1][axis].larger(-at[axis]));
            let own = number(3, i).magnitude();
            mass = mass.larger(own);
            lightest = lightest.larger(-own);
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
    let found = [x, y, z, u, v, w, mass, vector, rate, lightest];
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
    let are_massive = -extreme(9) > LIGHTEST * extreme(6);
    let is_pull = matches!(name, SumName::Pull | SumName::PullAll);
    let per_mass = is_pull && are_massive && params.tiling.side > 0;
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
    set(OfFrame::PerMass, 0, if per_mass { 1.0 } else { 0.0 });
    for_each::<{ RESULTS as usize }>(|k| set(OfFrame::Units, k as u32, units[k]));
}

/// A number of a system's frame.
///
/// # Safety
/// [`frames`] has set it.
#[inline(always)]
pub(super) unsafe fn of_frame(frames: *const f64, system: u32, at: OfFrame, offset: u32) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { global::load(frames, system * FRAME_NUMBERS + at as u32 + offset) }
}

/// Bodies in the units of their frame, rounded to the precision of the pairs.
///
/// # Formula
/// `(x − o)/L`, and other numbers divided by their units; vectors by the bodies' masses too, where the frame says so.
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
            let per_mass = factor(OfFrame::PerMass) != 0.0;
            let mass = if per_mass {
                number(3) * factor(OfFrame::Mass)
            } else {
                1.0
            };
            let component = |k: u32| L::Real::from_f64(number(k) * factor(OfFrame::Vector) / mass);
            let rest = Source {
                position: [component(4), component(5), component(6)],
                mass: L::Real::from_f64(number(7) * factor(OfFrame::Rate)),
            };
            L::set_source(more, stride, i, rest);
        }
    }
}
