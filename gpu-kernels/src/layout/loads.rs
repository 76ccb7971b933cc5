//! How sources are read from global memory.

use cuda_std::global;

/// How sources are read from global memory, as `T`s.
pub trait Loads<T> {
    /// Whether it is only for what nobody writes in the launch.
    const READ_ONLY: bool;
    /// Reads `base[index]`.
    ///
    /// # Safety
    /// As [`global::load`], and as [`global::load_read_only`] where it is such.
    unsafe fn load(base: *const T, index: u32) -> T;
}

/// As everything is read.
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

/// Through the cache for what nobody writes.
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
