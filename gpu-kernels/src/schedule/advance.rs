//! Positions and velocities, advanced where they are: the parts that integrators are made of.

use crate::abi::Params;
use crate::layout::{Layout, Source};
use cuda_std::{GpuFloat, thread};

/// `v += dt · a`.
///
/// # Formula
/// One fused multiply–add a component.
///
/// # Arguments
/// `state`: n bodies, their velocities updated. `acceleration`: n vectors, read. Both of layout `L`
/// with `params.stride`; `params.dt` in the time unit of both.
///
/// # Thread mapping
/// One-dimensional; thread i advances body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Quinn, Katz, Stadel & Lake (1997), Time stepping N-body simulations, arXiv:astro-ph/9710043.
#[inline(always)]
pub unsafe fn kick<L: Layout>(state: *mut L::Word, acceleration: *const L::Word, params: Params) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    let dt = L::Real::from_f64(params.dt);
    // SAFETY: body i is this thread's alone.
    unsafe {
        let a = L::vector(acceleration, params.stride, i);
        let v = L::velocity(state, params.stride, i);
        L::set_velocity(state, params.stride, i, add_scaled(v, dt, a));
    }
}

/// `x += dt · v`.
///
/// # Formula
/// One fused multiply–add a component.
///
/// # Arguments
/// `state`: n bodies of layout `L` with `params.stride`, their positions updated; `params.dt` in
/// the time unit of their velocities.
///
/// # Thread mapping
/// One-dimensional; thread i advances body i, threads beyond n do nothing.
///
/// # Safety
/// The buffer is as said.
///
/// # Source
/// As the kick.
#[inline(always)]
pub unsafe fn drift<L: Layout>(state: *mut L::Word, params: Params) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    let dt = L::Real::from_f64(params.dt);
    // SAFETY: body i is this thread's alone.
    unsafe {
        let body = L::source(state, params.stride, i);
        let v = L::velocity(state, params.stride, i);
        let moved = Source {
            position: add_scaled(body.position, dt, v),
            ..body
        };
        L::set_source(state, params.stride, i, moved);
    }
}

/// `v *= f`: the velocities after a step of drag.
///
/// # Formula
/// One product a component.
///
/// # Arguments
/// `state`: n bodies of layout `L` with `params.stride`, their velocities updated; the factor f is
/// `params.velocity_factor`.
///
/// # Thread mapping
/// One-dimensional; thread i slows body i, threads beyond n do nothing.
///
/// # Safety
/// The buffer is as said.
///
/// # Source
/// Euler's method for `v̇ = −γ v`: f = 1 − γ dt.
#[inline(always)]
pub unsafe fn damp<L: Layout>(state: *mut L::Word, params: Params) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    let factor = L::Real::from_f64(params.velocity_factor);
    // SAFETY: body i is this thread's alone.
    unsafe {
        let v = L::velocity(state, params.stride, i);
        let slowed = [factor * v[0], factor * v[1], factor * v[2]];
        L::set_velocity(state, params.stride, i, slowed);
    }
}

#[inline(always)]
pub(super) fn add_scaled<R: GpuFloat>(base: [R; 3], scale: R, step: [R; 3]) -> [R; 3] {
    [
        scale.mul_add(step[0], base[0]),
        scale.mul_add(step[1], base[1]),
        scale.mul_add(step[2], base[2]),
    ]
}
