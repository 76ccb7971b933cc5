//! Functions that rewritten kernels call. Not for use by hand.
//!
//! These functions follow no pointer. They tell the emulator of an access that their caller then makes.

use std::mem::{align_of_val, size_of_val};

use cuda_std::emu::{self, Access, Pointer};

use crate::emu::is_checking;

/// Of a pointer that may be to nowhere.
pub const RAW: Pointer = Pointer::Raw;
/// Of a reference.
pub const REFERENCE: Pointer = Pointer::Reference;

/// A pointer or reference, to tell which it is.
#[derive(Debug)]
pub struct Kind<'a, P>(pub &'a P);

macro_rules! raw {
    ($($pointer:ty),*) => {$(
        impl<T> Kind<'_, $pointer> {
            /// It is a raw pointer.
            #[inline(always)]
            pub fn pointer(&self) -> Pointer {
                RAW
            }
            /// The value is read by a function of raw pointers.
            #[inline(always)]
            #[track_caller]
            pub fn read(&self) {
                read(self.0.cast_const(), RAW);
            }
            /// The value is written by a function of raw pointers.
            #[inline(always)]
            #[track_caller]
            pub fn write(&self) {
                write(self.0.cast_mut(), RAW);
            }
            /// The value is replaced by a function of raw pointers.
            #[inline(always)]
            #[track_caller]
            pub fn update(&self) {
                update(self.0.cast_mut(), RAW);
            }
        }
    )*};
}

/// Conversions for both kinds of raw pointer.
trait Cast<T> {
    fn cast_const(&self) -> *const T;
    fn cast_mut(&self) -> *mut T;
}

impl<T> Cast<T> for *const T {
    fn cast_const(&self) -> *const T {
        *self
    }
    fn cast_mut(&self) -> *mut T {
        (*self).cast_mut()
    }
}

impl<T> Cast<T> for *mut T {
    fn cast_const(&self) -> *const T {
        *self
    }
    fn cast_mut(&self) -> *mut T {
        *self
    }
}

raw!(*const T, *mut T);

/// Answers for types that are no raw pointers.
pub trait NotRaw {
    /// It is a reference.
    #[inline(always)]
    fn pointer(&self) -> Pointer {
        REFERENCE
    }
    /// A method of another type, which happens to be called so.
    #[inline(always)]
    fn read(&self) {}
    /// A method of another type, which happens to be called so.
    #[inline(always)]
    fn write(&self) {}
    /// A method of another type, which happens to be called so.
    #[inline(always)]
    fn update(&self) {}
}

impl<P> NotRaw for Kind<'_, P> {}

/// The receiver of a method, to tell whether the method may take a copy.
#[derive(Debug)]
pub struct Copied<T: ?Sized>(pub *const T);

impl<T: Copy> Copied<T> {
    /// The receiver is read.
    #[inline(always)]
    #[track_caller]
    pub fn read(&self, pointer: Pointer) {
        read(self.0, pointer);
    }
}

/// Answers for types without copies, such as atomics.
pub trait NotCopied {
    /// A method that takes a reference does with it what it likes.
    #[inline(always)]
    fn read(&self, _: Pointer) {}
}

impl<T: ?Sized> NotCopied for Copied<T> {}

#[inline(always)]
#[track_caller]
fn touch<T>(access: Access, place: *const T, pointer: Pointer) {
    if is_checking() {
        emu::touch(
            access,
            place.addr(),
            size_of::<T>(),
            align_of::<T>(),
            pointer,
        );
    }
}

#[inline(always)]
#[track_caller]
fn touch_value<T: ?Sized>(access: Access, value: &T) {
    if is_checking() {
        let address = std::ptr::from_ref(value).addr();
        emu::touch(
            access,
            address,
            size_of_val(value),
            align_of_val(value),
            REFERENCE,
        );
    }
}

/// The caller reads `*place`.
#[inline(always)]
#[track_caller]
pub fn read<T>(place: *const T, pointer: Pointer) -> *const T {
    touch(Access::Read, place, pointer);
    place
}

/// The caller writes `*place`.
#[inline(always)]
#[track_caller]
pub fn write<T>(place: *mut T, pointer: Pointer) -> *mut T {
    touch(Access::Write, place, pointer);
    place
}

/// The caller reads `*place`, then writes it.
#[inline(always)]
#[track_caller]
pub fn update<T>(place: *mut T, pointer: Pointer) -> *mut T {
    touch(Access::Read, place, pointer);
    touch(Access::Write, place, pointer);
    place
}

/// The caller reads `place`.
#[inline(always)]
#[track_caller]
pub fn read_reference<T: ?Sized>(place: &T) -> &T {
    touch_value(Access::Read, place);
    place
}

/// The caller writes `place`.
#[inline(always)]
#[track_caller]
pub fn write_reference<T: ?Sized>(place: &mut T) -> &mut T {
    touch_value(Access::Write, place);
    place
}

/// The caller reads `place`, then writes it.
#[inline(always)]
#[track_caller]
pub fn update_reference<T: ?Sized>(place: &mut T) -> &mut T {
    touch_value(Access::Read, place);
    touch_value(Access::Write, place);
    place
}

/// The caller makes a reference to `*place`.
///
/// # Safety
/// The caller may do so, but for the bounds, which are checked here.
#[inline(always)]
#[track_caller]
pub unsafe fn borrow<T: ?Sized>(place: *const T, pointer: Pointer) {
    if is_checking() {
        // SAFETY: the caller's promise; nothing is read but size and alignment.
        let (bytes, alignment) = unsafe { (size_of_val(&*place), align_of_val(&*place)) };
        emu::borrow(Access::Read, place.addr(), bytes, alignment, pointer);
    }
}

/// The caller makes a mutable reference to `*place`.
///
/// # Safety
/// The caller may do so, but for the bounds, which are checked here.
#[inline(always)]
#[track_caller]
pub unsafe fn borrow_mut<T: ?Sized>(place: *mut T, pointer: Pointer) {
    if is_checking() {
        // SAFETY: the caller's promise; nothing is read but size and alignment.
        let (bytes, alignment) = unsafe { (size_of_val(&*place), align_of_val(&*place)) };
        emu::borrow(Access::Write, place.addr(), bytes, alignment, pointer);
    }
}
