//! Atomics. They do not race with each other, and order nothing else, whatever their `Ordering`.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;

use cuda_std::emu::{self, Access, Pointer};

use crate::emu::is_checking;

#[track_caller]
fn atomic<T: Copy>(place: *mut T, pointer: Pointer, f: impl FnOnce(T) -> T) -> T {
    if is_checking() {
        emu::touch(
            Access::Atomic,
            place.addr(),
            size_of::<T>(),
            align_of::<T>(),
            pointer,
        );
    }
    // SAFETY: the place is checked, or the caller vouches for it. Threads of the emulator do not run at once.
    unsafe {
        let old = place.read();
        place.write(f(old));
        old
    }
}

macro_rules! floats {
    ($($name:ident, $float:ident, $align:literal, $what:literal $(, $unsafe:ident)?;)*) => {$(
        #[doc = concat!("A number that threads of ", $what, " change at the same time.")]
        #[repr(C, align($align))]
        #[derive(Debug)]
        pub struct $name(UnsafeCell<$float>);

        // SAFETY: launches run on one OS thread, and hand the number to no other.
        unsafe impl Sync for $name {}

        impl $name {
            /// A new number.
            pub const fn new(value: $float) -> Self {
                Self(UnsafeCell::new(value))
            }

            /// The number.
            pub fn into_inner(self) -> $float {
                self.0.into_inner()
            }

            floats! { @ $float ($($unsafe)?)
                /// Adds.
                fetch_add |old, value| old + value;
                /// Subtracts.
                fetch_sub |old, value| old - value;
                /// Keeps the bits that both have.
                fetch_and |old, value| $float::from_bits(old.to_bits() & value.to_bits());
                /// Keeps the bits that one has.
                fetch_or |old, value| $float::from_bits(old.to_bits() | value.to_bits());
                /// Keeps the bits that differ.
                fetch_xor |old, value| $float::from_bits(old.to_bits() ^ value.to_bits());
            }

            /// The number as it is now.
            ///
            /// # Safety
            /// As Rust-CUDA's type demands, if it does.
            #[track_caller]
            pub $($unsafe)? fn load(&self, _: Ordering) -> $float {
                atomic(self.0.get(), Pointer::Reference, |old| old)
            }

            /// Replaces the number.
            ///
            /// # Safety
            /// As Rust-CUDA's type demands, if it does.
            #[track_caller]
            pub $($unsafe)? fn store(&self, value: $float, _: Ordering) {
                atomic(self.0.get(), Pointer::Reference, |_| value);
            }
        }
    )*};
    (@ $float:ident $unsafe:tt $($(#[$doc:meta])* $name:ident |$old:ident, $value:ident| $new:expr;)*) => {$(
        floats! { @@ $float $unsafe $(#[$doc])* $name |$old, $value| $new; }
    )*};
    (@@ $float:ident ($($unsafe:ident)?) $(#[$doc:meta])* $name:ident |$old:ident, $value:ident| $new:expr;) => {
        $(#[$doc])*
        /// Returns the number as it was before.
        ///
        /// # Safety
        /// As Rust-CUDA's type demands, if it does.
        #[track_caller]
        pub $($unsafe)? fn $name(&self, $value: $float, _: Ordering) -> $float {
            atomic(self.0.get(), Pointer::Reference, |$old| $new)
        }
    };
}

floats! {
    AtomicF32, f32, 4, "a GPU";
    AtomicF64, f64, 8, "a GPU";
    BlockAtomicF32, f32, 4, "a block", unsafe;
    BlockAtomicF64, f64, 8, "a block", unsafe;
    SystemAtomicF32, f32, 4, "the system";
    SystemAtomicF64, f64, 8, "the system";
}

/// Atomic operations on pointers.
#[allow(clippy::missing_safety_doc)]
pub mod mid {
    use super::{Ordering, Pointer, atomic};

    /// Orders nothing: see [`grid_fence`](crate::thread::grid_fence).
    pub fn device_thread_fence(_: Ordering) {}
    /// Orders nothing: see [`grid_fence`](crate::thread::grid_fence).
    pub fn block_thread_fence(_: Ordering) {}
    /// Orders nothing: see [`grid_fence`](crate::thread::grid_fence).
    pub fn system_thread_fence(_: Ordering) {}

    macro_rules! operations {
        ($($type:ident |$old:ident, $value:ident| { $([$($name:ident),*] $new:expr;)* })*) => {$($(
            $(
                /// Changes the number, and returns the one before.
                #[track_caller]
                pub unsafe fn $name($value: *mut $type, _: Ordering, operand: $type) -> $type {
                    let (place, $value) = ($value, operand);
                    atomic(place, Pointer::Raw, |$old| $new)
                }
            )*
        )*)*};
    }

    macro_rules! swaps {
        ($($type:ident: $($name:ident),*;)*) => {$($(
            /// Puts `new` in place of `current`, and returns what was there.
            #[track_caller]
            pub unsafe fn $name(place: *mut $type, current: $type, new: $type, _: Ordering) -> $type {
                atomic(place, Pointer::Raw, |old| if old == current { new } else { old })
            }
        )*)*};
    }

    macro_rules! loads {
        ($($type:ident: [$($load:ident),*], [$($store:ident),*];)*) => {$(
            $(
                /// The number as it is now.
                #[track_caller]
                pub unsafe fn $load(place: *mut $type, _: Ordering) -> $type {
                    atomic(place, Pointer::Raw, |old| old)
                }
            )*
            $(
                /// Replaces the number.
                #[track_caller]
                pub unsafe fn $store(place: *mut $type, _: Ordering, value: $type) {
                    atomic(place, Pointer::Raw, |_| value);
                }
            )*
        )*};
    }

    loads! {
        u32: [atomic_load_32_device, atomic_load_32_block, atomic_load_32_system],
            [atomic_store_32_device, atomic_store_32_block, atomic_store_32_system];
        u64: [atomic_load_64_device, atomic_load_64_block, atomic_load_64_system],
            [atomic_store_64_device, atomic_store_64_block, atomic_store_64_system];
    }

    include!("atomic_names.rs");
}
