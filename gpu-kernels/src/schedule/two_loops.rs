//! One thread per target body, as in [`direct`](super::direct), with the sources before and after the
//! target in a loop each: the pair of a body with itself does not occur, and none is tested for it.

use crate::abi::Params;
use crate::interaction::PairLaw;
use crate::layout::Layout;
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::schedule::direct::{conclude, sum_over};
use cuda_std::thread;

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::TwoLoops;

/// Accelerations of all bodies.
///
/// # Formula
/// `a_i = G (Σ_{j<i} w_j r / d³ + Σ_{j>i} w_j r / d³)`.
///
/// # Arguments
/// `state`: n bodies, read. `acceleration`: n vectors, written. Both of layout `L` with
/// `params.stride`.
///
/// # Thread mapping
/// One-dimensional; thread i computes body i, threads beyond n do nothing. The loops of a warp's
/// threads differ in length by one from thread to thread.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The `ecl` study.
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
        let before = sum_over::<L, A, W, UNROLL>(state, params, i, 0, i);
        let after = sum_over::<L, A, W, UNROLL>(state, params, i, i + 1, params.n);
        let sum = [0, 1, 2].map(|axis| before[axis] + after[axis]);
        conclude::<L, W>(state, acceleration, params, i, sum);
    }
}
