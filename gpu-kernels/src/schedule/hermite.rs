//! The parts of Hermite's scheme beside the forces, each body by itself.
//!
//! The state at the beginning of a step is kept in a buffer of `4 · stride` vectors: positions, velocities,
//! accelerations, jerks.

use crate::abi::Params;
use crate::hermite::Beginning;
use crate::layout::{Layout, Source};
use cuda_std::{GpuFloat, global, thread};

/// Vectors per body in the buffer that keeps the state at the beginning of a step.
pub const KEPT_VECTORS: u32 = 4;

/// Keeps the state as the beginning of a step, and moves it on by Taylor's series.
///
/// # Formula
/// [`Beginning::predicted`].
///
/// # Arguments
/// `state`: n bodies, moved. `acceleration`, `jerk`: n vectors each, read. `beginning`: four times
/// `params.stride` vectors, written. All of layout `L` with `params.stride`; `params.dt` in their
/// unit of time.
///
/// # Thread mapping
/// One-dimensional; thread i moves body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Makino & Aarseth (1992), PASJ 44, 141.
#[inline(always)]
pub unsafe fn predict<L: Layout>(
    state: *mut L::Word,
    acceleration: *const L::Word,
    jerk: *const L::Word,
    beginning: *mut L::Word,
    params: Params,
) {
    let Params { n, stride, .. } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    let dt = L::Real::from_f64(params.dt);
    // SAFETY: body i, and what is kept of it, are this thread's alone.
    unsafe {
        let body = L::source(state, stride, i);
        let begun = Beginning {
            x: body.position,
            v: L::velocity(state, stride, i),
            a: L::vector(acceleration, stride, i),
            j: L::vector(jerk, stride, i),
        };
        let keep =
            |which, v| L::set_vector(beginning, KEPT_VECTORS * stride, which * stride + i, v);
        keep(0, begun.x);
        keep(1, begun.v);
        keep(2, begun.a);
        keep(3, begun.j);
        let [position, velocity] = begun.predicted(dt);
        L::set_source(state, stride, i, Source { position, ..body });
        L::set_velocity(state, stride, i, velocity);
    }
}

/// Ends the step that [`predict`] began.
///
/// # Formula
/// [`Beginning::corrected`].
///
/// # Arguments
/// `state`: n bodies, moved. `acceleration`, `jerk`: n vectors each, of the predicted state, read.
/// `beginning`: as [`predict`] wrote it, read. All of layout `L` with `params.stride`; `params.dt` in
/// their unit of time.
///
/// # Thread mapping
/// One-dimensional; thread i moves body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// As of [`predict`].
#[inline(always)]
pub unsafe fn correct<L: Layout>(
    state: *mut L::Word,
    acceleration: *const L::Word,
    jerk: *const L::Word,
    beginning: *const L::Word,
    params: Params,
) {
    let Params { n, stride, .. } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    let dt = L::Real::from_f64(params.dt);
    // SAFETY: body i is this thread's alone.
    unsafe {
        let a1 = L::vector(acceleration, stride, i);
        let j1 = L::vector(jerk, stride, i);
        let [position, velocity] = kept::<L>(beginning, stride, i).corrected(dt, a1, j1);
        let body = L::source(state, stride, i);
        L::set_source(state, stride, i, Source { position, ..body });
        L::set_velocity(state, stride, i, velocity);
    }
}

/// Time step that Aarseth's criterion allows each body after the one that [`predict`] began.
///
/// # Formula
/// [`Beginning::next_step`] with η = 1, in f64; steps go with √η.
///
/// # Arguments
/// `acceleration`, `jerk`: n vectors each, of the predicted state, read. `beginning`: as
/// [`predict`] wrote it, read. All of layout `L` with `params.stride`; `params.dt` in their unit of
/// time. `steps`: n steps in that unit, written.
///
/// # Thread mapping
/// One-dimensional; thread i judges body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Aarseth (1985), in Multiple Time Scales, p. 377; derivatives as of [`predict`].
#[inline(always)]
pub unsafe fn own_steps<L: Layout>(
    acceleration: *const L::Word,
    jerk: *const L::Word,
    beginning: *const L::Word,
    steps: *mut f64,
    params: Params,
) {
    let Params { n, stride, dt, .. } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    // SAFETY: step i is this thread's alone.
    unsafe {
        let a1 = widened(L::vector(acceleration, stride, i));
        let j1 = widened(L::vector(jerk, stride, i));
        let Beginning { x, v, a, j } = kept::<L>(beginning, stride, i);
        let begun = Beginning {
            x: widened(x),
            v: widened(v),
            a: widened(a),
            j: widened(j),
        };
        global::store(steps, i, begun.next_step(1.0, dt, a1, j1));
    }
}

/// State of body i at the beginning of the step, as [`predict`] kept it.
///
/// # Safety
/// `beginning` has four times `stride` vectors, of which body i's were written.
#[inline(always)]
unsafe fn kept<L: Layout>(beginning: *const L::Word, stride: u32, i: u32) -> Beginning<L::Real> {
    // SAFETY: the caller's promise.
    let vector = |which| unsafe { L::vector(beginning, KEPT_VECTORS * stride, which * stride + i) };
    Beginning {
        x: vector(0),
        v: vector(1),
        a: vector(2),
        j: vector(3),
    }
}

#[inline(always)]
fn widened<R: GpuFloat>(v: [R; 3]) -> [f64; 3] {
    [v[0].to_f64(), v[1].to_f64(), v[2].to_f64()]
}
