//! Global memory. A kernel's pointers come from its launch, so every access is the caller's
//! responsibility; the emulator checks each against the launch's buffers and for races.

use crate::backend;
use crate::vector::Vec4;

/// Reads `base[index]`.
///
/// # Safety
/// `base[index]` must lie in a buffer of this launch, and no other thread may write it without a
/// barrier in between.
#[inline(always)]
#[track_caller]
pub unsafe fn load<T: Copy>(base: *const T, index: u32) -> T {
    // SAFETY: the caller's promise.
    unsafe { backend::global_load(base.wrapping_add(index as usize)) }
}

/// As [`load`], through the cache for read-only memory: `ld.global.nc`.
///
/// # Safety
/// As [`load`], and no thread writes `base[index]` in this launch: no barrier makes a write visible
/// here.
#[inline(always)]
#[track_caller]
pub unsafe fn load_read_only(base: *const f32, index: u32) -> f32 {
    // SAFETY: the caller's promise.
    unsafe { backend::global_load_read_only(base.wrapping_add(index as usize)) }
}

/// Reads vector `index` from an address that the host has put into memory: of a buffer that the launch may
/// read, but has no pointer to, such as one of another device.
///
/// # Safety
/// As [`load`], of the vectors there, and no thread writes that one in this launch.
#[inline(always)]
#[track_caller]
pub unsafe fn load_by_address(address: u64, index: u32) -> Vec4<f64> {
    let offset = u64::from(index) * size_of::<Vec4<f64>>() as u64;
    // SAFETY: the caller's promise.
    unsafe { backend::global_load_by_address(address + offset) }
}

/// Writes `base[index]`.
///
/// # Safety
/// `base[index]` must lie in a writable buffer of this launch, and no other thread may access it
/// without a barrier in between.
#[inline(always)]
#[track_caller]
pub unsafe fn store<T: Copy>(base: *mut T, index: u32, value: T) {
    // SAFETY: the caller's promise.
    unsafe { backend::global_store(base.wrapping_add(index as usize), value) }
}

/// A value that threads can add to one place at the same time.
pub trait AtomicAdd: Copy {
    /// Adds `value` to `base[index]`, whatever other threads add there; the order of the additions,
    /// and with it their rounding, is not defined.
    ///
    /// # Safety
    /// `base[index]` must lie in a writable buffer of this launch, and other threads may touch it
    /// only by atomic additions until a barrier.
    unsafe fn atomic_add(base: *mut Self, index: u32, value: Self);
}

impl AtomicAdd for u32 {
    #[inline(always)]
    #[track_caller]
    unsafe fn atomic_add(base: *mut Self, index: u32, value: Self) {
        // SAFETY: the caller's promise.
        unsafe { backend::atomic_add_u32(base.wrapping_add(index as usize), value) }
    }
}

impl AtomicAdd for f32 {
    #[inline(always)]
    #[track_caller]
    unsafe fn atomic_add(base: *mut Self, index: u32, value: Self) {
        // SAFETY: the caller's promise.
        unsafe { backend::atomic_add_f32(base.wrapping_add(index as usize), value) }
    }
}

impl AtomicAdd for f64 {
    #[inline(always)]
    #[track_caller]
    unsafe fn atomic_add(base: *mut Self, index: u32, value: Self) {
        // SAFETY: the caller's promise.
        unsafe { backend::atomic_add_f64(base.wrapping_add(index as usize), value) }
    }
}

/// Component by component.
impl AtomicAdd for Vec4<f64> {
    #[inline(always)]
    #[track_caller]
    unsafe fn atomic_add(base: *mut Self, index: u32, value: Self) {
        let place = base.wrapping_add(index as usize).cast::<f64>();
        // SAFETY: the caller's promise, for each component.
        unsafe {
            f64::atomic_add(place, 0, value.x);
            f64::atomic_add(place, 1, value.y);
            f64::atomic_add(place, 2, value.z);
            f64::atomic_add(place, 3, value.w);
        }
    }
}

/// Component by component; one instruction on compute capability 9.0.
impl AtomicAdd for Vec4<f32> {
    #[inline(always)]
    #[track_caller]
    unsafe fn atomic_add(base: *mut Self, index: u32, value: Self) {
        // SAFETY: the caller's promise.
        unsafe { backend::atomic_add_vec4(base.wrapping_add(index as usize), value) }
    }
}
