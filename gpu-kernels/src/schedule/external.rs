//! External fields, beside the forces of the bodies.

use crate::abi::Params;
use crate::fields::{Header, OnDevice, Relativity};
use crate::layout::Layout;
use crate::schedule::advance::add_scaled;
use cuda_std::{GpuFloat, global, thread};

/// Accelerations of external fields.
///
/// # Formula
/// [`fields`](crate::fields), in f64, rounded to the type of the accelerations.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`: n vectors, written. Both of layout `L` with
/// `params.stride`. `fields`: a buffer of fields, read, with the units of both. `params.time`: in the
/// units of the run.
///
/// # Thread mapping
/// One-dimensional; thread i computes that of body i, threads beyond n do nothing.
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
        let moving = [x, [0.0; 3], [0.0; 3]];
        let zero = [[0.0; 3]; 3];
        let [a, ..] = Header::of(&fields).add_local::<1>(&fields, params.time, moving, zero);
        L::set_vector(acceleration, stride, i, narrowed(a));
    }
}

/// `v += dt · (a + b)`, with the accelerations b of external fields.
///
/// # Formula
/// A sum and a fused multiply–add a component.
///
/// # Arguments
/// `state`: n bodies, their velocities updated. `acceleration`, `of_fields`: n vectors, read. All of layout
/// `L` with `params.stride`; `params.dt` in their time unit.
///
/// # Thread mapping
/// One-dimensional; thread i advances body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// As of [`advance::kick`](super::advance::kick).
#[inline(always)]
pub unsafe fn kick<L: Layout>(
    state: *mut L::Word,
    acceleration: *const L::Word,
    of_fields: *const L::Word,
    params: Params,
) {
    let Params { n, stride, dt, .. } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    // SAFETY: body i is this thread's alone.
    unsafe {
        let a = sum(
            L::vector(acceleration, stride, i),
            L::vector(of_fields, stride, i),
        );
        let v = L::velocity(state, stride, i);
        L::set_velocity(state, stride, i, add_scaled(v, L::Real::from_f64(dt), a));
    }
}

/// `a += b`, `b = 0`, with the accelerations b of external fields.
///
/// # Formula
/// The sum that [`kick`] takes.
///
/// # Arguments
/// `acceleration`: n vectors, added to. `of_fields`: n vectors, read and set to zero. Both of layout `L`
/// with `params.stride`.
///
/// # Thread mapping
/// One-dimensional; thread i adds the i-th vectors, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// As of [`kick`].
#[inline(always)]
pub unsafe fn unite<L: Layout>(
    acceleration: *mut L::Word,
    of_fields: *mut L::Word,
    params: Params,
) {
    let Params { n, stride, .. } = params;
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    // SAFETY: vector i is this thread's alone.
    unsafe {
        let a = sum(
            L::vector(acceleration, stride, i),
            L::vector(of_fields, stride, i),
        );
        L::set_vector(acceleration, stride, i, a);
        L::set_vector(of_fields, stride, i, [L::Real::from_f64(0.0); 3]);
    }
}

/// Adds the accelerations and jerks of external fields, of which some depend on all other forces.
///
/// # Formula
/// As of [`accelerate`]; the sum is rounded to the type of the accelerations.
///
/// # Arguments
/// As of [`accelerate`], but for `acceleration` and `jerk`: n vectors, added to.
///
/// # Thread mapping
/// One-dimensional; thread i adds to body i, threads beyond n do nothing.
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

/// The body that a term of relativity is of, and the term in the units of the bodies.
#[derive(Clone, Copy, Debug)]
pub struct Centre {
    /// Index of the body.
    pub body: u32,
    /// The term.
    pub relativity: Relativity,
}

impl Centre {
    /// Reads it: the index, G times the mass, and the square of the speed of light.
    ///
    /// # Safety
    /// The buffer has these three numbers, and nobody writes them in this launch.
    #[inline(always)]
    pub unsafe fn of(numbers: *const f64) -> Self {
        // SAFETY: the caller's promise.
        let number = |index| unsafe { global::load(numbers, index) };
        Self {
            body: number(0) as u32,
            relativity: Relativity {
                gm: number(1),
                light_squared: number(2),
            },
        }
    }
}

/// Adds the post-Newtonian term of a dominant body, with its derivative, to the accelerations and jerks of
/// all others, which have all other terms.
///
/// # Formula
/// [`Relativity`], in f64; the sum is rounded to the type of the accelerations.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`, `jerk`: n vectors, added to. All of layout `L` with
/// `params.stride`. `centre`: as [`Centre::of`] reads it, in the units of the bodies.
///
/// # Thread mapping
/// One-dimensional; thread i adds to body i, threads beyond n and that of the dominant body do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// That of [`Relativity`].
#[inline(always)]
pub unsafe fn add_relativity<L: Layout>(
    state: *const L::Word,
    acceleration: *mut L::Word,
    jerk: *mut L::Word,
    centre: *const f64,
    params: Params,
) {
    let Params { n, stride, .. } = params;
    let i = thread::index_1d();
    // SAFETY: body i is this thread's alone, and nobody writes the dominant one.
    unsafe {
        let Centre { body, relativity } = Centre::of(centre);
        if i >= n || i == body {
            return;
        }
        let phase = |i| {
            let x = widened(L::source(state, stride, i).position);
            [x, widened(L::velocity(state, stride, i))]
        };
        let forces = |i| {
            let a = widened(L::vector(acceleration, stride, i));
            [a, widened(L::vector(jerk, stride, i)), [0.0; 3]]
        };
        let ([x, v], [x0, v0]) = (phase(i), phase(body));
        let relative = [difference(x, x0), difference(v, v0)];
        let own = forces(i);
        let terms = relativity.terms::<2>(relative, own, forces(body));
        L::set_vector(acceleration, stride, i, narrowed(sum(own[0], terms[0])));
        L::set_vector(jerk, stride, i, narrowed(sum(own[1], terms[1])));
    }
}

#[inline(always)]
fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline(always)]
fn sum<R: GpuFloat>(a: [R; 3], b: [R; 3]) -> [R; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

#[inline(always)]
fn widened<R: GpuFloat>(v: [R; 3]) -> [f64; 3] {
    [v[0].to_f64(), v[1].to_f64(), v[2].to_f64()]
}

#[inline(always)]
fn narrowed<R: GpuFloat>(v: [f64; 3]) -> [R; 3] {
    [R::from_f64(v[0]), R::from_f64(v[1]), R::from_f64(v[2])]
}
