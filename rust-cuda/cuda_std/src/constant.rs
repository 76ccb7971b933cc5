//! The module's constant memory: [`BYTES`] bytes under the name [`SYMBOL`], which the host fills
//! before a launch and every thread can read.

use crate::backend;

/// Types whose values have no uninitialised byte, padding included: `bytemuck`'s trait off the device,
/// and on it, where nothing asks for it, one of the same name, so that the struct of a kernel's scalars
/// can say so without a `cfg`.
///
/// A tuple may have padding, and is not among them:
/// ```compile_fail,E0277
/// cuda_std::constant::image((1_u8, 2_u32));
/// ```
/// ```compile_fail,E0277
/// cuda_std::constant::emulate((1_u8, 2_u32));
/// ```
#[cfg(not(target_arch = "nvptx64"))]
pub use bytemuck::NoUninit;

/// Types whose values have no uninitialised byte, padding included.
///
/// # Safety
/// As `bytemuck`'s trait of this name.
#[cfg(target_arch = "nvptx64")]
pub unsafe trait NoUninit: Copy {}

/// Name of the constant memory in the PTX module.
pub const SYMBOL: &str = "constant_memory";

/// Size of the constant memory, bytes.
pub const BYTES: usize = 128;

/// The value that the host stored.
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

/// Image of the constant memory that holds `value`, for the host to store before a launch.
#[cfg(not(target_arch = "nvptx64"))]
pub fn image<T: NoUninit>(value: T) -> [u8; BYTES] {
    const {
        assert!(size_of::<T>() <= BYTES && align_of::<T>() <= 8);
    }
    let mut image = [0; BYTES];
    image[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    image
}

/// Stores the value that the emulator's kernels [`load`] on this OS thread from now on.
#[cfg(not(target_arch = "nvptx64"))]
pub fn emulate<T: NoUninit>(value: T) {
    backend::constant_store(image(value));
}
