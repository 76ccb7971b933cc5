//! Sums over pairs and their derivatives, of independent systems: accelerations and potentials, how they change
//! along a direction, and derivatives of functions of them.
//!
//! Another library hands over arrays and numbers that the host never sees. So the device itself finds the units in
//! which single precision is enough ([`frames`]), and rounds the bodies to them ([`pack`]). Each target is summed by
//! itself ([`sums`]), or each pair once for both its bodies ([`once`]): in the precision of the pairs over some hundred
//! bodies, in f64 over more, and in a fixed order. Other kernels take steps of a trajectory, there and back.
//!
//! Arrays become *planes* of f64: number k of body i of all systems is at `k · T + i`, for T bodies of all systems
//! together.

mod one_sided;
mod pairs_once;
mod trajectory;
mod units;

pub use self::one_sided::{TILE, sums};
pub use self::pairs_once::once;
pub use self::trajectory::{drift, drift_back, kick, kick_back, largest};
pub use self::units::{FRAME_NUMBERS, FRAMES_BYTES, frames, pack};

use self::units::{OfFrame, of_frame};
use crate::abi::Params;
use crate::layout::Source;
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::{GpuFloat, global, thread};

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

/// Threads of a block of [`frames`], [`largest`] and [`by_system`].
pub const WIDE: u32 = 512;

/// Bytes of shared memory of [`largest`] and [`by_system`].
pub const BY_SYSTEM_BYTES: u32 = WIDE * size_of::<f64>() as u32;

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
