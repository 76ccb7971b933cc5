//! Steps of a trajectory, there and back.

use super::{Scalar, WIDE, combine_by_halves};
use crate::abi::Params;
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::{GpuFloat, global, thread};

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
/// `planes`: of which numbers 4 to 6 are λ, read. `results`: [`RESULTS`](super::RESULTS) planes of
/// [`SumName::PullAll`](super::SumName::PullAll), read.
/// `derivatives`: [`DERIVATIVES`](super::DERIVATIVES) planes, read and written. `scalars`: planes of [`Scalar`]s, read.
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
/// planes, read. `derivatives`: [`DERIVATIVES`](super::DERIVATIVES) planes, read and written. `scalars`: planes of
/// [`Scalar`]s, read.
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
/// [`BY_SYSTEM_BYTES`](super::BY_SYSTEM_BYTES).
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// [`tree`](crate::schedule::reduce::tree).
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
