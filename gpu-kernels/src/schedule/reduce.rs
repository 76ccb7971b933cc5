//! Partial sums to accelerations: the second half of [`grid2d`](super::grid2d).
//!
//! `params.partials` vectors per body lie at `c · stride + i`, which is also a matrix of one column per
//! chunk, whose rows are the scalars of an acceleration buffer.

use crate::abi::Params;
use crate::layout::Layout;
use cuda_std::shared::{Shared, SharedWord, dynamic_shared_mem};
use cuda_std::{GpuFloat, global, thread};

/// Targets of a block of [`tree`].
pub const TREE_TARGETS: u32 = 8;

/// One thread adds all partial sums of a body.
///
/// # Formula
/// `a_i = Σ_c p_ci`, in order.
///
/// # Arguments
/// `partial`: `params.partials` times `params.stride` vectors of layout `L`, read. `acceleration`:
/// n vectors of it, written.
///
/// # Thread mapping
/// One-dimensional; thread i has body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The study `gtx980`, rung `2d`.
#[inline(always)]
pub unsafe fn serial<L: Layout>(
    partial: *const L::Word,
    acceleration: *mut L::Word,
    params: Params,
) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    let mut total = [L::Real::from_f64(0.0); 3];
    let mut chunk = 0;
    // SAFETY: chunk and body exist, and vector i is this thread's alone.
    unsafe {
        while chunk < params.partials {
            let part = L::vector(partial, params.stride, chunk * params.stride + i);
            total = [0, 1, 2].map(|axis| total[axis] + part[axis]);
            chunk += 1;
        }
        L::set_vector(acceleration, params.stride, i, total);
    }
}

/// A vector of ones, which [`matrix_vector`] multiplies with.
///
/// # Formula
/// `x_c = 1`.
///
/// # Arguments
/// `ones`: `params.partials` scalars, written.
///
/// # Thread mapping
/// One-dimensional; thread c sets scalar c, threads beyond do nothing.
///
/// # Safety
/// The buffer is as said.
///
/// # Source
/// The study `gtx980`, rung `2d-gemv`.
#[inline(always)]
pub unsafe fn ones<R: GpuFloat>(ones: *mut R, params: Params) {
    let chunk = thread::index_1d();
    if chunk < params.partials {
        // SAFETY: this thread's own scalar.
        unsafe { global::store(ones, chunk, R::from_f64(1.0)) };
    }
}

/// The sum as a product of the matrix of partial sums with a vector of ones, which a library for linear
/// algebra offers.
///
/// # Formula
/// `y = P · x`: `y_r = Σ_c P_rc x_c`.
///
/// # Arguments
/// `partial`: the matrix, column after column, of `params.partials` columns; a column is an
/// acceleration buffer of layout `L`. `x`: a scalar per column. Both read. `acceleration`: a scalar per
/// row, written.
///
/// # Thread mapping
/// One-dimensional; thread r has row r, threads beyond the n bodies' rows do nothing.
///
/// # Constraints
/// The bodies' rows come first in a column: vectors lie side by side, as in
/// [`Float4`](crate::layout::Float4).
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The study `gtx980`, rung `2d-gemv`.
#[inline(always)]
pub unsafe fn matrix_vector<L: Layout>(
    partial: *const L::Real,
    x: *const L::Real,
    acceleration: *mut L::Real,
    params: Params,
) {
    let row = thread::index_1d();
    if row >= params.n * L::VECTOR_SCALARS {
        return;
    }
    let rows = params.stride * L::VECTOR_SCALARS;
    let mut sum = L::Real::from_f64(0.0);
    let mut column = 0;
    // SAFETY: row and column exist, and the row's sum is this thread's alone.
    unsafe {
        while column < params.partials {
            let entry = global::load(partial, column * rows + row);
            sum = entry.mul_add(global::load(x, column), sum);
            column += 1;
        }
        global::store(acceleration, row, sum);
    }
}

/// Several threads add the partial sums of a body, and a tree in shared memory their results.
///
/// # Formula
/// `a_i = Σ_c p_ci`: thread y adds every block_dim_y-th, then halves of threads are added.
///
/// # Arguments
/// As [`serial`].
///
/// # Thread mapping
/// Blocks of [`TREE_TARGETS`] × any power of two; thread (x, y) has the block's target x. Threads
/// beyond n add the last body's, and keep nothing.
///
/// # Shared memory
/// Three scalars per thread.
///
/// # Constraints
/// The block's second size is a power of two.
///
/// # Safety
/// As [`serial`].
///
/// # Source
/// The study `gtx980`, rung `2d-tree`.
#[inline(always)]
pub unsafe fn tree<L: Layout<Real: SharedWord>>(
    partial: *const L::Word,
    acceleration: *mut L::Word,
    params: Params,
) {
    let (targets, threads) = (thread::block_dim_x(), thread::block_dim_y());
    let (x, y) = (thread::thread_idx_x(), thread::thread_idx_y());
    let i = thread::block_idx_x() * targets + x;
    let shared: Shared<L::Real> = dynamic_shared_mem();
    let plane = targets * threads;
    let slot = y * targets + x;
    let mut total = [L::Real::from_f64(0.0); 3];
    // SAFETY: chunk and body exist; every slot is written by its thread before the barrier after
    // which others read it; vector i is the thread's with y = 0.
    unsafe {
        let mut chunk = y;
        while chunk < params.partials {
            let at = chunk * params.stride + i.min(params.n - 1);
            let part = L::vector(partial, params.stride, at);
            total = [0, 1, 2].map(|axis| total[axis] + part[axis]);
            chunk += threads;
        }
        let mut half = threads / 2;
        while half > 0 {
            shared.store(slot, total[0]);
            shared.store(plane + slot, total[1]);
            shared.store(2 * plane + slot, total[2]);
            thread::sync_threads();
            if y < half {
                let other = slot + half * targets;
                total[0] += shared.load(other);
                total[1] += shared.load(plane + other);
                total[2] += shared.load(2 * plane + other);
            }
            thread::sync_threads();
            half /= 2;
        }
        if y == 0 && i < params.n {
            L::set_vector(acceleration, params.stride, i, total);
        }
    }
}
