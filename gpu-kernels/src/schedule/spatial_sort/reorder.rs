//! Permutation of the bodies into the order that was found.

use crate::abi::Params;
use crate::layout::Layout;
use cuda_std::{global, thread};

/// Copies the bodies and their accelerations in another order.
///
/// # Formula
/// The body in slot `order[i]` goes to slot i.
///
/// # Arguments
/// `state`, `acceleration`: n bodies of layout `L` with `params.stride`, read. `order`: n slots, read.
/// `state_to`, `acceleration_to`: as much room, written.
///
/// # Thread mapping
/// One-dimensional; thread i writes slot i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// A gather: writes are side by side, and reads nearly so when an order has only aged.
#[inline(always)]
pub unsafe fn reorder<L: Layout>(
    state: *const L::Word,
    acceleration: *const L::Word,
    order: *const u32,
    state_to: *mut L::Word,
    acceleration_to: *mut L::Word,
    params: Params,
) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    let stride = params.stride;
    // SAFETY: slot order[i] exists, and nobody writes it; slot i of the others is this thread's.
    unsafe {
        let from = global::load(order, i);
        L::set_source(state_to, stride, i, L::source(state, stride, from));
        L::set_velocity(state_to, stride, i, L::velocity(state, stride, from));
        let a = L::vector(acceleration, stride, from);
        L::set_vector(acceleration_to, stride, i, a);
    }
}

/// Copies the numbers of the bodies in the same order.
///
/// # Formula
/// As [`reorder`].
///
/// # Arguments
/// `numbers`: the bodies' numbers by slot, read. `order`: n slots, read. `numbers_to`: as much room, written.
///
/// # Thread mapping
/// As [`reorder`].
///
/// # Safety
/// As [`reorder`].
///
/// # Source
/// As [`reorder`].
#[inline(always)]
pub unsafe fn renumber(
    numbers: *const u32,
    order: *const u32,
    numbers_to: *mut u32,
    params: Params,
) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    // SAFETY: as in `reorder`.
    unsafe {
        let from = global::load(order, i);
        global::store(numbers_to, i, global::load(numbers, from));
    }
}
