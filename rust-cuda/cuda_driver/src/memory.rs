//! Memory of the GPU, and copies between it and the host.

use std::ops::Range;
use std::rc::Rc;

use bytemuck::Pod;
use cust_raw::{self as sys, CUdeviceptr};

use crate::device::Context;
use crate::error::{DriverError, check};
use crate::pinned::PinnedMemory;
use crate::stream::Stream;

/// Bytes on the GPU, freed on drop once the GPU has done all that was queued.
///
/// Every transfer names a stream and is ordered with that stream's other work, kernels included;
/// none uses the legacy default stream. Methods take `&self` also where they write: the bytes lie
/// where Rust's aliasing rules do not reach, and it is streams that order access to them. Two
/// streams that are not tied by an event may see each other's half-done work.
#[derive(Debug)]
pub struct DeviceMemory {
    /// 0 if there are no bytes: the driver refuses to allocate none.
    pointer: CUdeviceptr,
    bytes: usize,
    context: Rc<Context>,
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.pointer != 0 {
            // Queued work may use these bytes. A failure is that of earlier work, which whoever
            // waited for it has seen.
            let _ = self.context.synchronize();
            // SAFETY: allocated by `new`, and nothing queued uses it any more.
            let _ = unsafe { sys::cuMemFree_v2(self.pointer) };
        }
    }
}

impl DeviceMemory {
    pub(crate) fn new(context: &Rc<Context>, bytes: usize) -> Result<DeviceMemory, DriverError> {
        let mut pointer = 0;
        if bytes > 0 {
            context.bind()?;
            // SAFETY: a context is current and `pointer` is a valid place for the address.
            let result = unsafe { sys::cuMemAlloc_v2(&mut pointer, bytes) };
            check("cuMemAlloc_v2", result).map_err(|error| {
                let ordinal = context.info().ordinal;
                let free = context
                    .memory_info()
                    .map_or(String::new(), |(free, total)| {
                        format!(", where {free} of {total} bytes are free")
                    });
                error.doing(format!("allocating {bytes} bytes on GPU {ordinal}{free}"))
            })?;
        }
        Ok(DeviceMemory {
            pointer,
            bytes,
            context: Rc::clone(context),
        })
    }

    /// Size, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Address on the GPU, at least 256-byte aligned, to be passed to kernels; 0 if there are no
    /// bytes.
    pub fn pointer(&self) -> CUdeviceptr {
        self.pointer
    }

    /// Copies a slice to the GPU, from `offset` bytes on, and waits for it and for all earlier
    /// work of the stream.
    ///
    /// # Errors
    ///
    /// Code 1 beyond the end; else the first unreported failure of queued work.
    pub fn upload<T: Pod>(
        &self,
        offset: usize,
        source: &[T],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        // SAFETY: the wait below ends before the borrow of `source` does.
        let queued = unsafe { self.queue_upload(offset, source, stream) };
        queued.and(stream.synchronize())
    }

    /// Copies from the GPU, from `offset` bytes on, into a slice, after all earlier work of the
    /// stream, and waits for it.
    ///
    /// # Errors
    ///
    /// Code 1 beyond the end; else the first unreported failure of queued work. The slice's
    /// contents are then arbitrary.
    pub fn download<T: Pod>(
        &self,
        offset: usize,
        target: &mut [T],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        // SAFETY: the wait below ends before the borrow of `target` does.
        let queued = unsafe { self.queue_download(offset, target, stream) };
        queued.and(stream.synchronize())
    }

    /// Queues a copy of `source[range]` to the GPU, from `offset` bytes on, and returns at once.
    /// The pinned memory guards itself: reading or writing it on the host waits for the copy.
    ///
    /// # Errors
    ///
    /// Code 1 beyond either end, or the driver's refusal.
    pub fn upload_async<T: Pod>(
        &self,
        offset: usize,
        source: &PinnedMemory<T>,
        range: Range<usize>,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        source.transfer(range, stream, |elements| {
            // SAFETY: `transfer` keeps the elements in place until the stream has copied them.
            unsafe { self.queue_upload(offset, elements, stream) }
        })
    }

    /// Queues a copy from the GPU, from `offset` bytes on, into `target[range]`, and returns at
    /// once. The pinned memory guards itself: reading or writing it on the host waits for the
    /// copy.
    ///
    /// # Errors
    ///
    /// Code 1 beyond either end, or the driver's refusal.
    pub fn download_async<T: Pod>(
        &self,
        offset: usize,
        target: &mut PinnedMemory<T>,
        range: Range<usize>,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        target.transfer(range, stream, |elements| {
            // SAFETY: `transfer` keeps the elements in place, and from the host's eyes, until the
            // stream has copied them.
            unsafe { self.queue_download(offset, elements, stream) }
        })
    }

    /// Queues setting `bytes` bytes from `offset` on to `value`.
    ///
    /// # Errors
    ///
    /// Code 1 beyond the end, or the driver's refusal.
    pub fn fill(
        &self,
        offset: usize,
        bytes: usize,
        value: u8,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        const CALL: &str = "cuMemsetD8Async";
        let Some(pointer) = self.place(CALL, offset, bytes)? else {
            return Ok(());
        };
        self.context.bind()?;
        // SAFETY: the bytes lie within this allocation, which outlives queued work.
        check(CALL, unsafe {
            sys::cuMemsetD8Async(pointer, value, bytes, stream.raw())
        })
    }

    /// # Safety
    ///
    /// `source` must stay in place and unwritten until the stream has passed the copy.
    unsafe fn queue_upload<T: Pod>(
        &self,
        offset: usize,
        source: *const [T],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        const CALL: &str = "cuMemcpyHtoDAsync_v2";
        let bytes = source.len() * size_of::<T>();
        let Some(pointer) = self.place(CALL, offset, bytes)? else {
            return Ok(());
        };
        self.context.bind()?;
        // SAFETY: `place` has checked this end, and the caller vouches for the other.
        let result =
            unsafe { sys::cuMemcpyHtoDAsync_v2(pointer, source.cast(), bytes, stream.raw()) };
        check(CALL, result)
    }

    /// # Safety
    ///
    /// `target` must stay in place, unread and unwritten until the stream has passed the copy.
    unsafe fn queue_download<T: Pod>(
        &self,
        offset: usize,
        target: *mut [T],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        const CALL: &str = "cuMemcpyDtoHAsync_v2";
        let bytes = target.len() * size_of::<T>();
        let Some(pointer) = self.place(CALL, offset, bytes)? else {
            return Ok(());
        };
        self.context.bind()?;
        // SAFETY: `place` has checked this end, and the caller vouches for the other.
        let result =
            unsafe { sys::cuMemcpyDtoHAsync_v2(target.cast(), pointer, bytes, stream.raw()) };
        check(CALL, result)
    }

    /// Address of `bytes` bytes from `offset` on; `None` if there is nothing to do.
    fn place(
        &self,
        call: &'static str,
        offset: usize,
        bytes: usize,
    ) -> Result<Option<CUdeviceptr>, DriverError> {
        if offset > self.bytes || bytes > self.bytes - offset {
            let have = self.bytes;
            let reason = format!("reaching for {bytes} bytes at byte {offset} of {have}");
            return Err(DriverError::refused(call, reason));
        }
        Ok((bytes > 0).then_some(self.pointer + offset as CUdeviceptr))
    }
}
