//! Collectives of a warp: 32 threads that run together.
//!
//! # The full warp takes part
//!
//! All lanes of the warp must reach the same call of a collective ([`sync_warp`], [`Shuffle::shuffle`],
//! [`ballot`], [`any`], [`all`] and the products in [`matrix`](crate::matrix)), the same number of
//! times: the mask is that of all 32. To see to that is the duty of whoever writes the kernel, as with
//! [barriers](crate::thread#barriers-are-collective), for the same reason without `unsafe`. On a GPU a
//! value that a diverged warp exchanges is arbitrary, or the warp hangs; on the emulator divergence is
//! a [fault](crate::emu::Fault). A partial last warp is a fault where a missing lane's value is asked
//! for, and counts as `false` in votes; kernels that may run on a GPU have whole warps.

use crate::{backend, thread};

/// Threads in a warp.
pub const WARP_SIZE: u32 = 32;

/// Index of this thread in its warp, in blocks of any shape.
#[inline(always)]
#[track_caller]
pub fn lane_id() -> u32 {
    backend::lane_id()
}

/// Index of this thread's warp in its block, for one-dimensional blocks; the emulator refuses others.
#[inline(always)]
#[track_caller]
pub fn warp_id() -> u32 {
    backend::check_one_dimensional();
    thread::thread_idx_x() / WARP_SIZE
}

/// Orders the memory accesses of the warp's threads before and after it.
#[inline(always)]
#[track_caller]
pub fn sync_warp() {
    backend::sync_warp();
}

/// A value that moves between lanes in 32-bit parts.
pub trait Shuffle: Copy {
    /// The value that lane `lane` (mod 32) passed to the same call.
    fn shuffle(self, lane: u32) -> Self;
}

impl Shuffle for u32 {
    #[inline(always)]
    #[track_caller]
    fn shuffle(self, lane: u32) -> Self {
        backend::shuffle_idx(self, lane)
    }
}

impl Shuffle for f32 {
    #[inline(always)]
    #[track_caller]
    fn shuffle(self, lane: u32) -> Self {
        f32::from_bits(self.to_bits().shuffle(lane))
    }
}

impl Shuffle for f64 {
    #[inline(always)]
    #[track_caller]
    fn shuffle(self, lane: u32) -> Self {
        let bits = self.to_bits();
        let low = (bits as u32).shuffle(lane);
        let high = ((bits >> 32) as u32).shuffle(lane);
        f64::from_bits(u64::from(high) << 32 | u64::from(low))
    }
}

impl<T: Shuffle, const N: usize> Shuffle for [T; N] {
    #[inline(always)]
    #[track_caller]
    fn shuffle(self, lane: u32) -> Self {
        self.map(|part| part.shuffle(lane))
    }
}

/// The values of all lanes, combined two by two: those of lanes 16 apart, then 8, 4, 2 and 1, so that every lane gets the
/// same bits where `combine(a, b)` is `combine(b, a)`. All lanes call it.
#[inline(always)]
#[track_caller]
pub fn over_lanes<T: Shuffle>(mut value: T, combine: impl Fn(T, T) -> T) -> T {
    let lane = lane_id();
    let mut distance = WARP_SIZE / 2;
    while distance > 0 {
        value = combine(value, value.shuffle(lane ^ distance));
        distance /= 2;
    }
    value
}

/// The sum of the values of this lane and those before it. All lanes call it.
#[inline(always)]
pub fn up_to_lane(mut value: u32) -> u32 {
    let lane = lane_id();
    let mut distance = 1;
    while distance < WARP_SIZE {
        let before = value.shuffle(lane.wrapping_sub(distance));
        if lane >= distance {
            value += before;
        }
        distance *= 2;
    }
    value
}

/// Bit `l` is lane `l`'s predicate.
#[inline(always)]
#[track_caller]
pub fn ballot(predicate: bool) -> u32 {
    backend::ballot(predicate)
}

/// True in every lane if the predicate holds in some lane.
#[inline(always)]
#[track_caller]
pub fn any(predicate: bool) -> bool {
    ballot(predicate) != 0
}

/// True in every lane if the predicate holds in every lane.
#[inline(always)]
#[track_caller]
pub fn all(predicate: bool) -> bool {
    ballot(!predicate) == 0
}
