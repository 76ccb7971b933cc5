//! Page-locked host memory, which the GPU copies from and to by itself, at full speed and while
//! the host goes on.

use std::cell::RefCell;
use std::ops::Range;
use std::ptr::{NonNull, null_mut, slice_from_raw_parts_mut};
use std::sync::Arc;

use bytemuck::Pod;

use crate::device::Context;
use crate::error::{DriverError, check};
use crate::stream::{Event, Stream};
use crate::sys::{self, CU_MEMHOSTALLOC_PORTABLE};

/// Page-locked host memory holding elements of type `T`.
///
/// `cust`'s `LockedBuffer` leaves it to its user not to touch it during a copy. This one knows
/// which streams still copy, and waits for them before the host sees or frees the elements. All
/// GPUs can use it.
#[derive(Debug)]
pub struct PinnedMemory<T: Pod> {
    elements: NonNull<T>,
    len: usize,
    users: RefCell<Vec<User>>,
    context: Arc<Context>,
}

/// A stream that has copied from or to the elements.
#[derive(Debug)]
struct User {
    stream: Stream,
    /// Recorded behind its last copy.
    done: Event,
    /// True until a wait for that mark has succeeded.
    running: bool,
}

// SAFETY: it owns the elements, and the driver takes calls from any thread. Not `Sync`: who uses them is
// noted without a lock.
unsafe impl<T: Pod + Send> Send for PinnedMemory<T> {}

impl<T: Pod> Drop for PinnedMemory<T> {
    fn drop(&mut self) {
        // If waiting fails the elements are leaked, for a copy may still be under way: while work is
        // recorded the driver refuses every wait.
        if self.wait().is_ok() && self.len * size_of::<T>() > 0 {
            let _ = self.context.bind();
            // SAFETY: allocated by `new`, and no stream uses it any more.
            let _ = unsafe { sys::cuMemFreeHost(self.elements.as_ptr().cast()) };
        }
    }
}

impl<T: Pod> PinnedMemory<T> {
    pub(crate) fn new(context: &Arc<Context>, len: usize) -> Result<Self, DriverError> {
        const CALL: &str = "cuMemHostAlloc";
        // The driver aligns to a page.
        const { assert!(align_of::<T>() <= 4096) };
        let size = size_of::<T>();
        let doing = || format!("allocating {len} elements of {size} bytes of page-locked memory");
        let bytes = len
            .checked_mul(size)
            .filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or_else(|| DriverError::refused(CALL, doing()))?;
        let mut elements = NonNull::dangling();
        if bytes > 0 {
            context.bind()?;
            let mut address = null_mut();
            // SAFETY: a context is current and `address` is a valid place for the address.
            let result =
                unsafe { sys::cuMemHostAlloc(&mut address, bytes, CU_MEMHOSTALLOC_PORTABLE) };
            check(CALL, result).map_err(|error| error.doing(doing()))?;
            elements = NonNull::new(address.cast::<T>())
                .ok_or_else(|| DriverError::refused(CALL, doing()))?;
            // SAFETY: just allocated, with room for `len` elements. Zeros are a valid `T`, which
            // is `Pod`.
            unsafe { elements.write_bytes(0, len) };
        }
        Ok(PinnedMemory {
            elements,
            len,
            users: RefCell::default(),
            context: Arc::clone(context),
        })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, once no stream copies from or to them.
    ///
    /// # Errors
    ///
    /// The first failure of queued work that has not been reported yet.
    pub fn slice(&self) -> Result<&[T], DriverError> {
        self.wait()?;
        // SAFETY: `len` elements lie here, initialised. No stream writes them: what was queued is
        // done, and to queue a download takes `&mut self`.
        Ok(unsafe { NonNull::slice_from_raw_parts(self.elements, self.len).as_ref() })
    }

    /// The elements for writing, once no stream copies from or to them.
    ///
    /// # Errors
    ///
    /// The first failure of queued work that has not been reported yet.
    pub fn slice_mut(&mut self) -> Result<&mut [T], DriverError> {
        self.wait()?;
        // SAFETY: as in `slice`; to queue any copy takes a borrow, which `&mut` excludes.
        Ok(unsafe { NonNull::slice_from_raw_parts(self.elements, self.len).as_mut() })
    }

    /// Lets `queue` queue a copy of a range of elements on `stream`, and notes that it runs.
    ///
    /// A download must come with `&mut self`, so that the host has no slice of the elements.
    pub(crate) fn transfer(
        &self,
        range: Range<usize>,
        stream: &Stream,
        queue: impl FnOnce(*mut [T]) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let Range { start, end } = range;
        if start > end || end > self.len {
            let reason = format!("copying elements {start}..{end} of {}", self.len);
            return Err(DriverError::refused("cuMemcpyAsync", reason));
        }
        let mut users = self.users.borrow_mut();
        let known = users
            .iter()
            .position(|user| user.stream.raw() == stream.raw());
        let index = known.unwrap_or(users.len());
        if known.is_none() {
            // Before queueing: when the event cannot be made, nothing must be under way.
            let done = Event::new(stream.context(), false)?;
            users.push(User {
                stream: stream.clone(),
                done,
                running: false,
            });
        }
        let user = &mut users[index];
        // SAFETY: within the allocation, as checked above.
        let first = unsafe { self.elements.add(start) };
        queue(slice_from_raw_parts_mut(first.as_ptr(), end - start))?;
        user.running = true;
        // Should the mark fail, only waiting for the stream itself tells when the copy is done.
        user.done
            .record(stream)
            .or_else(|error| stream.synchronize().and(Err(error)))
    }

    /// Waits for every copy under way.
    fn wait(&self) -> Result<(), DriverError> {
        let mut outcome = Ok(());
        // All of them, also after a failure: the host may go on to free the elements.
        for user in self
            .users
            .borrow_mut()
            .iter_mut()
            .filter(|user| user.running)
        {
            // A copy that was recorded into a graph has recorded its mark as well, and the driver
            // refuses to wait for that (code 1). Then the stream tells: it fails, too, if the GPU did.
            let waited = user.done.synchronize();
            let waited = waited.or_else(|_| user.stream.synchronize());
            user.running = waited.is_err();
            outcome = outcome.and(waited);
        }
        outcome
    }
}
