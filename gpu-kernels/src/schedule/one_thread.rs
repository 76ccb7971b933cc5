//! One thread for all targets: a CPU's two loops, on a GPU, as a baseline without parallelism.

use crate::abi::Params;
use crate::interaction::PairLaw;
use crate::layout::Layout;
use crate::numerics::Arithmetic;
use crate::schedule::ScheduleName;
use crate::schedule::direct::{conclude, sum_over};
use cuda_std::thread;

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::OneThread;

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
/// The grid's first thread does everything; all others do nothing.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The first step of the `ecl` study's port.
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
    if thread::index_1d() != 0 {
        return;
    }
    let mut i = 0;
    while i < params.n {
        // SAFETY: i is a body of the buffers, which no other thread writes to.
        unsafe {
            let sum = sum_over::<L, A, W, UNROLL>(state, params, i, 0, params.n);
            conclude::<L, W>(state, acceleration, params, i, sum);
        }
        i += 1;
    }
}
