//! The block's shared memory, sized at launch, behind a typed handle.
//!
//! Rust has no address spaces on this target: a pointer to shared memory would be a generic one and
//! its loads slow (measured: 8–15 % of a whole force kernel). So there is no pointer, only
//! [`Shared`], whose loads and stores are `ld.shared` and `st.shared` of the type's full width.

use crate::backend;
use core::marker::PhantomData;

/// Types that shared memory can hold: they move by one shared-memory instruction (two for
/// `Vec4<f64>`).
///
/// # Safety
/// `read` and `write` must access `size_of::<Self>()` bytes at the address, as one value.
pub unsafe trait SharedWord: Copy {
    /// Reads the word at a byte address of shared memory.
    ///
    /// # Safety
    /// The address must be aligned, inside the launch's shared memory and written before.
    unsafe fn read(address: u32) -> Self;
    /// Writes the word at a byte address of shared memory.
    ///
    /// # Safety
    /// The address must be aligned and inside the launch's shared memory.
    unsafe fn write(address: u32, value: Self);
}

/// An array in the block's dynamic shared memory. Copying the handle copies no data.
#[derive(Clone, Copy, Debug)]
pub struct Shared<T> {
    address: u32,
    words: PhantomData<*mut T>,
}

/// The block's dynamic shared memory as an array of `T`.
#[inline(always)]
#[track_caller]
pub fn dynamic_shared_mem<T: SharedWord>() -> Shared<T> {
    Shared {
        address: backend::shared_base(),
        words: PhantomData,
    }
}

impl<T: SharedWord> Shared<T> {
    /// The rest of this array, as an array of `U`, from word `words` on.
    #[inline(always)]
    #[track_caller]
    pub fn after<U: SharedWord>(self, words: u32) -> Shared<U> {
        Shared {
            address: self.address + words * size_of::<T>() as u32,
            words: PhantomData,
        }
    }

    /// The address of word `index`, for instructions of several lanes.
    #[inline(always)]
    pub(crate) fn address_of(self, index: u32) -> u32 {
        self.address + index * size_of::<T>() as u32
    }

    /// Word `index`.
    ///
    /// # Safety
    /// The word must lie inside the launch's shared memory and have been written, by this thread
    /// or by another before a barrier that both passed; if as another type, the bytes must be a valid
    /// `T`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(self, index: u32) -> T {
        // SAFETY: the caller's promise.
        unsafe { T::read(self.address_of(index)) }
    }

    /// Sets word `index`.
    ///
    /// # Safety
    /// The word must lie inside the launch's shared memory, and no other thread may access it
    /// without a barrier in between. If it is read as another type, as after [`after`](Self::after),
    /// `T` must have no padding: its bytes are not initialised.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store(self, index: u32, value: T) {
        // SAFETY: the caller's promise.
        unsafe { T::write(self.address_of(index), value) }
    }
}

impl Shared<u32> {
    /// Adds `value` to word `index`, whatever other threads add there, and returns what it was before;
    /// the order of the additions is not defined.
    ///
    /// # Safety
    /// The word must lie inside the launch's shared memory and have been written before a barrier, and
    /// other threads may touch it only by such additions until the next one.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_add(self, index: u32, value: u32) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { backend::atomic_add_shared(self.address_of(index), value) }
    }
}
