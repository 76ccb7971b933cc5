//! Policies of reading sources from global memory.

use cuda_std::global;

/// Policy of reading sources from global memory, as `T`s.
pub trait Loads<T> {
    /// True if it is only for memory that no thread writes in the launch.
    const READ_ONLY: bool;
    /// Reads `base[index]`.
    ///
    /// # Safety
    /// As [`global::load`], and as [`global::load_read_only`] where it is such.
    unsafe fn load(base: *const T, index: u32) -> T;
}

/// By an ordinary load.
#[derive(Clone, Copy, Debug)]
pub enum Ordinary {}

impl<T: Copy> Loads<T> for Ordinary {
    const READ_ONLY: bool = false;
    #[inline(always)]
    #[track_caller]
    unsafe fn load(base: *const T, index: u32) -> T {
        // SAFETY: the caller's promise.
        unsafe { global::load(base, index) }
    }
}

/// Through the cache for read-only memory.
#[derive(Clone, Copy, Debug)]
pub enum ReadOnly {}

impl Loads<f32> for ReadOnly {
    const READ_ONLY: bool = true;
    #[inline(always)]
    #[track_caller]
    unsafe fn load(base: *const f32, index: u32) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { global::load_read_only(base, index) }
    }
}
