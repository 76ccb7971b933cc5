//! Collectives of a warp: 32 threads that run together. All of them take the full warp.

use crate::{backend, thread};

/// Threads in a warp.
pub const WARP_SIZE: u32 = 32;

/// Index of this thread in its warp, for one-dimensional blocks.
#[inline(always)]
#[track_caller]
pub fn lane_id() -> u32 {
    thread::thread_idx_x() % WARP_SIZE
}

/// Index of this thread's warp in its block, for one-dimensional blocks.
#[inline(always)]
#[track_caller]
pub fn warp_id() -> u32 {
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

/// Bit `l` is lane `l`'s predicate.
#[inline(always)]
#[track_caller]
pub fn ballot(predicate: bool) -> u32 {
    backend::ballot(predicate)
}

/// Whether the predicate holds in some lane.
#[inline(always)]
#[track_caller]
pub fn any(predicate: bool) -> bool {
    ballot(predicate) != 0
}

/// Whether the predicate holds in every lane.
#[inline(always)]
#[track_caller]
pub fn all(predicate: bool) -> bool {
    ballot(!predicate) == 0
}
