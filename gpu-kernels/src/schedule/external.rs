//! External fields, added to the forces of the bodies.

use crate::abi::Params;
use crate::fields::{Header, OnDevice};
use crate::layout::Layout;
use cuda_std::{GpuFloat, thread};

/// Adds the accelerations of external fields.
///
/// # Formula
/// [`fields`](crate::fields), in f64; the sum is rounded to the type of the accelerations.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`: n vectors, added to. Both of layout `L` with
/// `params.stride`. `fields`: a buffer of fields, read, with the units of both. `params.time`: in the
/// units of the run.
///
/// # Thread mapping
/// One-dimensional; thread i adds to body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// That of each field at [`Kind`](crate::fields::Kind).
#[inline(always)]
pub unsafe fn accelerate<L: Layout>(
    state: *const L::Word,
    acceleration: *mut L::Word,
    fields: *const f64,
    params: Params,
) {
    let Params { n, stride, .. } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    // SAFETY: body i is this thread's alone.
    unsafe {
        let fields = OnDevice::new(fields);
        let x = widened(L::source(state, stride, i).position);
        let a = widened(L::vector(acceleration, stride, i));
        let moving = [x, [0.0; 3], [0.0; 3]];
        let forces = [a, [0.0; 3], [0.0; 3]];
        let [a, ..] = Header::of(&fields).add_local::<1>(&fields, params.time, moving, forces);
        L::set_vector(acceleration, stride, i, narrowed(a));
    }
}

/// Adds the accelerations and jerks of external fields.
///
/// # Formula
/// As of [`accelerate`].
///
/// # Arguments
/// As of [`accelerate`]; `jerk`: n vectors, added to.
///
/// # Thread mapping
/// As of [`accelerate`].
///
/// # Safety
/// As of [`accelerate`].
///
/// # Source
/// As of [`accelerate`].
#[inline(always)]
pub unsafe fn accelerate_with_jerk<L: Layout>(
    state: *const L::Word,
    acceleration: *mut L::Word,
    jerk: *mut L::Word,
    fields: *const f64,
    params: Params,
) {
    let Params { n, stride, .. } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    // SAFETY: body i is this thread's alone.
    unsafe {
        let fields = OnDevice::new(fields);
        let x = widened(L::source(state, stride, i).position);
        let v = widened(L::velocity(state, stride, i));
        let a = widened(L::vector(acceleration, stride, i));
        let j = widened(L::vector(jerk, stride, i));
        let moving = [x, v, [0.0; 3]];
        let forces = [a, j, [0.0; 3]];
        let [a, j, _] = Header::of(&fields).add_local::<2>(&fields, params.time, moving, forces);
        L::set_vector(acceleration, stride, i, narrowed(a));
        L::set_vector(jerk, stride, i, narrowed(j));
    }
}

#[inline(always)]
fn widened<R: GpuFloat>(v: [R; 3]) -> [f64; 3] {
    [v[0].to_f64(), v[1].to_f64(), v[2].to_f64()]
}

#[inline(always)]
fn narrowed<R: GpuFloat>(v: [f64; 3]) -> [R; 3] {
    [R::from_f64(v[0]), R::from_f64(v[1]), R::from_f64(v[2])]
}
