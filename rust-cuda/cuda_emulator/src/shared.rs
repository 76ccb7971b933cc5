//! Shared memory.

use std::sync::atomic::AtomicU8;

/// The block's dynamic shared memory, of which the launch says how long it is.
#[track_caller]
pub fn dynamic_shared_mem<T>() -> *mut T {
    const {
        assert!(
            align_of::<T>() <= 16,
            "shared memory is aligned to 16 bytes"
        )
    }
    cuda_std::emu::shared_pointer().cast()
}

/// An array of static shared memory, of the place that declares it.
#[doc(hidden)]
#[track_caller]
pub fn array<T>(site: &'static AtomicU8, length: usize) -> *mut T {
    const {
        assert!(
            align_of::<T>() <= 16,
            "shared memory is aligned to 16 bytes"
        )
    }
    cuda_std::emu::shared_array(site, length * size_of::<T>()).cast()
}

/// Declares an array in the block's static shared memory, `shared_array![f32; 256]`, and gives a pointer to it.
/// It has no contents at first. Each place in the source has another array.
#[macro_export]
macro_rules! shared_array {
    ($element:ty; $length:expr) => {{
        static SITE: ::core::sync::atomic::AtomicU8 = ::core::sync::atomic::AtomicU8::new(0);
        $crate::shared::array::<$element>(&SITE, $length)
    }};
}
