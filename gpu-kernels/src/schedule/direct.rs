//! One thread per target body, every source read from global memory.

use crate::abi::Params;
use crate::interaction::{Constants, PairLaw};
use crate::layout::Layout;
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::tile::sweep;
use cuda_std::{GpuFloat, thread};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::Direct;

/// Accelerations of all bodies.
///
/// # Formula
/// `a_i = G Σ_j w_j r / d³`, the sum running over j = 0, 1, … in order.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`: n vectors, written. Both of layout `L` with
/// `params.stride`.
///
/// # Thread mapping
/// One-dimensional; thread i computes body i, threads beyond n do nothing.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The first GPU rung of every study; Nyland, Harris & Prins, GPU Gems 3 (2007), ch. 31, before
/// tiling.
#[inline(always)]
pub unsafe fn force<L, A, W, const UNROLL: u32>(
    state: *const L::Word,
    acceleration: *mut L::Word,
    params: Params,
) where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    // SAFETY: i is a body of the buffers, and vector i is this thread's alone.
    unsafe {
        let sum = sum_over::<L, A, W, UNROLL>(state, params, i, 0, params.n);
        conclude::<L, W>(state, acceleration, params, i, sum);
    }
}

/// The sum over sources `first..end` for body `i`.
///
/// # Safety
/// `state` is a state buffer of the layout, `i` and all sources are bodies in it.
#[inline(always)]
pub(super) unsafe fn sum_over<L, A, W, const UNROLL: u32>(
    state: *const L::Word,
    params: Params,
    i: u32,
    first: u32,
    end: u32,
) -> [A::Real; 3]
where
    L: Layout,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let constants = Constants::of(&params);
    let mut sum = [A::Real::from_f64(0.0); 3];
    // SAFETY: the caller's promise.
    unsafe {
        let target = L::source(state, params.stride, i).position;
        let mut add = |k| {
            let j = first + k;
            if A::POLICY.skips_self && j == i {
                return;
            }
            let source = L::source(state, params.stride, j);
            W::interact::<A>(target, source, &constants, &mut sum);
        };
        sweep::<UNROLL>(end - first, &mut add);
    }
    sum
}

/// Stores body `i`'s acceleration, which its sum gives.
///
/// # Safety
/// The buffers are of the layout, and vector `i` is this thread's alone.
#[inline(always)]
pub(super) unsafe fn conclude<L: Layout, W: PairLaw>(
    state: *const L::Word,
    acceleration: *mut L::Word,
    params: Params,
    i: u32,
    sum: [L::Real; 3],
) {
    let constants = Constants::of(&params);
    // SAFETY: the caller's promise.
    unsafe {
        let mass = L::source(state, params.stride, i).mass;
        let velocity = L::velocity(state, params.stride, i);
        let a = W::acceleration(sum, mass, velocity, &constants);
        L::set_vector(acceleration, params.stride, i, a);
    }
}
