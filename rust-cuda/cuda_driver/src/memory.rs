//! Memory of the GPU, and copies between it and the host.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use bytemuck::Pod;

use crate::device::{Context, Gpu};
use crate::error::{DriverError, check};
use crate::graph::refuse_while_recording;
use crate::pinned::PinnedMemory;
use crate::stream::Stream;
use crate::sys::{self, CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUdeviceptr};

/// Bytes on the GPU, or bytes of the host that the GPU reads and writes where they lie; freed on drop
/// once the GPU has done all that was queued.
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
    /// Address where the host sees the bytes, if they are its own.
    host: Option<NonNull<u8>>,
    /// True while the host has a slice of them.
    seen: Cell<bool>,
    /// Other GPUs that have been asked to read them.
    readers: RefCell<Vec<Arc<Context>>>,
    context: Arc<Context>,
}

// SAFETY: the bytes are this value's alone, and the driver takes calls from any thread. Not `Sync`: `seen`
// guards the bytes against the thread alone that looks at them, and `readers` has no lock.
unsafe impl Send for DeviceMemory {}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.pointer != 0 {
            // Queued work may use these bytes. If waiting fails they are leaked: the GPU may still
            // write them (while work is recorded the driver refuses every wait), or the context is
            // lost and takes them with it.
            let readers = self.readers.get_mut().drain(..);
            let mut users = readers.chain([Arc::clone(&self.context)]);
            if users.any(|context| context.synchronize().is_err()) {
                return;
            }
            // The last to be made current is this memory's own.
            let _ = match self.host {
                // SAFETY: allocated by `mapped`, and nothing queued uses it any more.
                Some(host) => unsafe { sys::cuMemFreeHost(host.as_ptr().cast()) },
                // SAFETY: allocated by `new`, and nothing queued uses it any more.
                None => unsafe { sys::cuMemFree_v2(self.pointer) },
            };
        }
    }
}

impl DeviceMemory {
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<DeviceMemory, DriverError> {
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
            host: None,
            seen: Cell::new(false),
            readers: RefCell::default(),
            context: Arc::clone(context),
        })
    }

    pub(crate) fn mapped(
        context: &Arc<Context>,
        bytes: usize,
    ) -> Result<DeviceMemory, DriverError> {
        let mut memory = DeviceMemory {
            pointer: 0,
            bytes,
            host: None,
            seen: Cell::new(false),
            readers: RefCell::default(),
            context: Arc::clone(context),
        };
        if bytes > 0 {
            let doing = || format!("allocating {bytes} bytes of the host's memory for the GPU");
            context.bind()?;
            let mut host = null_mut();
            let flags = CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
            // SAFETY: a context is current and `host` is a valid place for the address.
            let result = unsafe { sys::cuMemHostAlloc(&mut host, bytes, flags) };
            check("cuMemHostAlloc", result).map_err(|error| error.doing(doing()))?;
            memory.host = NonNull::new(host.cast());
            // SAFETY: just allocated with that flag; `pointer` is a valid place for the address.
            let result = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut memory.pointer, host, 0) };
            if let Err(error) = check("cuMemHostGetDevicePointer_v2", result) {
                // SAFETY: allocated above, and nobody knows of it.
                let _ = unsafe { sys::cuMemFreeHost(host) };
                memory.pointer = 0; // which `drop` takes for nothing to free
                return Err(error.doing(doing()));
            }
            // SAFETY: just allocated, with room for `bytes` bytes.
            unsafe { host.cast::<u8>().write_bytes(0, bytes) };
        }
        Ok(memory)
    }

    /// Lets the host read and change bytes that lie in its own memory
    /// ([`Gpu::mapped`](crate::Gpu::mapped)), once the GPU has done all that was queued; `None` if
    /// they lie in the GPU's. Until `work` returns, every safe method that would let the GPU or a
    /// second slice use them refuses.
    ///
    /// # Errors
    ///
    /// Code 1 from within `work`; else the first unreported failure of queued work.
    pub fn on_host<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> Result<Option<T>, DriverError> {
        let Some(host) = self.host else {
            return Ok(None);
        };
        self.check_unseen("cuCtxSynchronize")?;
        self.context.synchronize()?;
        let _seen = Seen::mark(&self.seen);
        // SAFETY: `bytes` bytes lie there, written when they were allocated, and the GPU's work is
        // done. As long as they are marked as seen, `check_unseen` keeps any second slice away and
        // any new work of the GPU's that safe code could queue.
        let bytes = unsafe { NonNull::slice_from_raw_parts(host, self.bytes).as_mut() };
        Ok(Some(work(bytes)))
    }

    /// Refuses, on behalf of `call`, while the host has a slice of the bytes.
    pub(crate) fn check_unseen(&self, call: &'static str) -> Result<(), DriverError> {
        if self.seen.get() {
            let reason = "using bytes that the host is looking at".to_owned();
            return Err(DriverError::refused(call, reason));
        }
        Ok(())
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
    /// Code 1 beyond the end, within [`on_host`](Self::on_host) of these bytes and within
    /// [`Stream::record`]; else the first unreported failure of queued work.
    pub fn upload<T: Pod>(
        &self,
        offset: usize,
        source: &[T],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        refuse_while_recording("cuMemcpyHtoDAsync_v2")?;
        // SAFETY: the wait below ends before the borrow of `source` does. It fails only with the
        // context, and the copy with it, for nothing is recorded on this thread.
        let queued = unsafe { self.queue_upload(offset, source, stream) };
        queued.and(stream.synchronize())
    }

    /// Copies from the GPU, from `offset` bytes on, into a slice, after all earlier work of the
    /// stream, and waits for it.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload). The slice's contents are then arbitrary.
    pub fn download<T: Pod>(
        &self,
        offset: usize,
        target: &mut [T],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        refuse_while_recording("cuMemcpyDtoHAsync_v2")?;
        // SAFETY: as in `upload`, of `target`.
        let queued = unsafe { self.queue_download(offset, target, stream) };
        queued.and(stream.synchronize())
    }

    /// Queues a copy of `source[range]` to the GPU, from `offset` bytes on, and returns at once.
    /// The pinned memory guards itself: reading or writing it on the host waits for the copy.
    ///
    /// # Errors
    ///
    /// Code 1 beyond either end and within [`on_host`](Self::on_host) of these bytes, or the driver's
    /// refusal.
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
    /// Code 1 beyond either end and within [`on_host`](Self::on_host) of these bytes, or the driver's
    /// refusal.
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

    /// Queues a copy of `source[range]`, bytes of another GPU or of the same, to this one's, from `offset`
    /// on, in a stream of this one's GPU. It goes directly where [`Gpu::reach`](crate::Gpu::reach) has
    /// opened a way, else by way of the host, through the driver's own page-locked memory. What the
    /// other GPU's streams do is in order with it only as far as events tie them.
    ///
    /// # Errors
    ///
    /// Code 1 beyond either end, within [`on_host`](Self::on_host) of either's bytes, and for a stream of
    /// another GPU; or the driver's refusal.
    pub fn copy_from(
        &self,
        offset: usize,
        source: &DeviceMemory,
        range: Range<usize>,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        const CALL: &str = "cuMemcpyPeerAsync";
        let Some(bytes) = range.end.checked_sub(range.start) else {
            let reason = format!("copying bytes {range:?}");
            return Err(DriverError::refused(CALL, reason));
        };
        let (target, from) = (
            self.place(CALL, offset, bytes)?,
            source.place(CALL, range.start, bytes)?,
        );
        let (Some(target), Some(from)) = (target, from) else {
            return Ok(());
        };
        if !Arc::ptr_eq(stream.context(), &self.context)
            && stream.context().raw() != self.context.raw()
        {
            let reason = "copying in a stream of another GPU".to_owned();
            return Err(DriverError::refused(CALL, reason));
        }
        source.note_reader(&self.context);
        self.context.bind()?;
        let (here, there) = (self.context.raw(), source.context.raw());
        if here == there {
            // SAFETY: both ends lie within their allocations, as `place` has checked, which outlive
            // queued work.
            let result = unsafe { sys::cuMemcpyDtoDAsync_v2(target, from, bytes, stream.raw()) };
            return check("cuMemcpyDtoDAsync_v2", result);
        }
        // SAFETY: as above, and the contexts are theirs. Neither end is freed before the copy is done:
        // the target waits for its own context, in a stream of which the copy is, and the source for
        // those of its readers.
        check(CALL, unsafe {
            sys::cuMemcpyPeerAsync(target, here, from, there, bytes, stream.raw())
        })
    }

    /// Queues a copy of another library's bytes on the same GPU to the beginning of these.
    ///
    /// # Safety
    ///
    /// There are `bytes` bytes of this GPU at the address, until the copy is done.
    ///
    /// # Errors
    ///
    /// As [`copy_from`](Self::copy_from).
    pub unsafe fn copy_from_address(
        &self,
        address: CUdeviceptr,
        bytes: usize,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        // SAFETY: the caller's promise.
        unsafe { self.copy_with(bytes, stream, |ours| (ours, address)) }
    }

    /// Queues a copy of the first of these bytes to another library's on the same GPU.
    ///
    /// # Safety
    ///
    /// As of [`copy_from_address`](Self::copy_from_address), and nobody else uses the bytes there until the copy is
    /// done.
    ///
    /// # Errors
    ///
    /// As [`copy_from`](Self::copy_from).
    pub unsafe fn copy_to_address(
        &self,
        address: CUdeviceptr,
        bytes: usize,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        // SAFETY: the caller's promise.
        unsafe { self.copy_with(bytes, stream, |ours| (address, ours)) }
    }

    /// Queues a copy between the first of these bytes and another library's: `ends` gives target and source.
    ///
    /// # Safety
    ///
    /// As of [`copy_to_address`](Self::copy_to_address).
    unsafe fn copy_with(
        &self,
        bytes: usize,
        stream: &Stream,
        ends: impl FnOnce(CUdeviceptr) -> (CUdeviceptr, CUdeviceptr),
    ) -> Result<(), DriverError> {
        const CALL: &str = "cuMemcpyDtoDAsync_v2";
        let Some(ours) = self.place(CALL, 0, bytes)? else {
            return Ok(());
        };
        let (target, source) = ends(ours);
        self.context.bind()?;
        // SAFETY: the caller vouches for the other library's bytes; ours lie within their allocation, which outlives
        // queued work.
        check(CALL, unsafe {
            sys::cuMemcpyDtoDAsync_v2(target, source, bytes, stream.raw())
        })
    }

    /// Lets the bytes live, when they are dropped, until another GPU has done all that it was given until
    /// then: for kernels of that GPU that are given their [address](Self::pointer).
    pub fn keep_for(&self, gpu: &Gpu) {
        self.note_reader(&gpu.context);
    }

    /// Lets the bytes live until a GPU has read them.
    fn note_reader(&self, reader: &Arc<Context>) {
        let mut readers = self.readers.borrow_mut();
        let is_known = |known: &Arc<Context>| known.raw() == reader.raw();
        if reader.raw() != self.context.raw() && !readers.iter().any(is_known) {
            readers.push(Arc::clone(reader));
        }
    }

    /// Queues setting `bytes` bytes from `offset` on to `value`.
    ///
    /// # Errors
    ///
    /// Code 1 beyond the end and within [`on_host`](Self::on_host) of these bytes, or the driver's
    /// refusal.
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

    /// As [`place`](Self::place), of memory of this GPU.
    pub(crate) fn place_on(
        &self,
        gpu: &Gpu,
        call: &'static str,
        offset: usize,
        bytes: usize,
    ) -> Result<Option<CUdeviceptr>, DriverError> {
        if self.context.raw() != gpu.context.raw() {
            let reason = "reaching for memory of another GPU".to_owned();
            return Err(DriverError::refused(call, reason));
        }
        self.place(call, offset, bytes)
    }

    /// Address of `bytes` bytes from `offset` on, for the GPU to use; `None` if there is nothing to
    /// do.
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
        self.check_unseen(call)?;
        Ok((bytes > 0).then_some(self.pointer + offset as CUdeviceptr))
    }
}

/// Marks bytes as seen by the host until it is dropped, also by a panic.
struct Seen<'a>(&'a Cell<bool>);

impl<'a> Seen<'a> {
    fn mark(seen: &'a Cell<bool>) -> Self {
        seen.set(true);
        Self(seen)
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
