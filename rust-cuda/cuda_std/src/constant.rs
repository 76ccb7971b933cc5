//! The module's constant memory: [`BYTES`] bytes under the name [`SYMBOL`], which the host fills
//! before a launch and every thread can read.

use crate::backend;

/// Its name in the PTX module.
pub const SYMBOL: &str = "constant_memory";

/// Its size, bytes.
pub const BYTES: usize = 128;

/// What the host stored.
///
/// # Safety
/// The host stored a `T` before the launch.
#[inline(always)]
pub unsafe fn load<T: Copy>() -> T {
    const {
        assert!(
            size_of::<T>() <= BYTES && align_of::<T>() <= 8 && size_of::<T>().is_multiple_of(4)
        );
    }
    // SAFETY: the caller's promise.
    unsafe { backend::constant_load() }
}

/// The constant memory that holds `value`: what the host stores before a launch.
#[cfg(not(target_arch = "nvptx64"))]
pub fn image<T: Copy>(value: T) -> [u8; BYTES] {
    const {
        assert!(size_of::<T>() <= BYTES && align_of::<T>() <= 8);
    }
    let mut image = [0; BYTES];
    // SAFETY: the bytes of a plain value that is no longer than the image; padding, if any, is
    // copied as whatever it is and never looked at.
    unsafe {
        core::ptr::copy_nonoverlapping(
            (&raw const value).cast::<u8>(),
            image.as_mut_ptr(),
            size_of::<T>(),
        );
    }
    image
}

/// Stores what the emulator's kernels [`load`] on this OS thread from now on.
#[cfg(not(target_arch = "nvptx64"))]
pub fn emulate<T: Copy>(value: T) {
    backend::constant_store(image(value));
}
