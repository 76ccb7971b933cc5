//! One thread a target body, every source read from global memory.

use crate::abi::Params;
use crate::interaction::{PairLaw, interact};
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
/// # Shared memory
/// None.
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
    let softening_squared = A::Real::from_f64(params.softening_squared);
    // SAFETY: i and every j are bodies of the buffers, and vector i is this thread's alone.
    unsafe {
        let target = L::source(state, params.stride, i).position;
        let mut sum = [A::Real::from_f64(0.0); 3];
        let mut add = |j| {
            let source = L::source(state, params.stride, j);
            let weight = W::weight(source.mass);
            interact::<A>(target, source.position, weight, softening_squared, &mut sum);
        };
        sweep::<UNROLL>(params.n, &mut add);
        let g = A::Real::from_f64(params.g);
        L::set_vector(acceleration, params.stride, i, sum.map(|s| g * s));
    }
}
