//! Streams and events that order work on the GPU without the legacy stream.
//!
//! `cust`'s `Stream::new` drops the flag `NON_BLOCKING`, so that every stream of its waits for the
//! legacy default stream and the other way round; its `Stream::wait_event` consumes the event.

use std::ptr::null_mut;
use std::sync::Arc;

use crate::device::Context;
use crate::error::{DriverError, check};
use crate::sys::{self, CUevent, CUevent_flags, CUresult, CUstream, CUstream_flags};

/// A queue of work for one GPU. Work of one stream runs in order; streams run independently of
/// each other and of the legacy default stream, unless [`Stream::wait_for`] ties them.
///
/// Dropping a stream does not wait: what was queued still runs.
#[derive(Debug, Clone)]
pub struct Stream {
    handle: Arc<StreamHandle>,
}

#[derive(Debug)]
struct StreamHandle {
    raw: CUstream,
    context: Arc<Context>,
}

// SAFETY: the driver's calls may come from any thread, several at a time, and each of ours binds the
// context first.
unsafe impl Send for StreamHandle {}
// SAFETY: as above.
unsafe impl Sync for StreamHandle {}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        // A failure here is that of earlier work, which its waiter has seen.
        let _ = self.context.bind();
        // SAFETY: created by `Stream::new`, and this is its last owner.
        let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
    }
}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Stream, DriverError> {
        context.bind()?;
        let mut raw = null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current and `raw` is a valid place for the handle.
        check("cuStreamCreate", unsafe {
            sys::cuStreamCreate(&mut raw, flags)
        })?;
        Ok(Stream {
            handle: Arc::new(StreamHandle {
                raw,
                context: Arc::clone(context),
            }),
        })
    }

    /// Waits until everything queued so far is done.
    ///
    /// # Errors
    ///
    /// The first failure of any queued work that has not been reported yet.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.context().bind()?;
        // SAFETY: the handle is alive as long as `self`.
        check("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.raw())
        })
    }

    /// True if everything queued so far is done.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`].
    pub fn is_done(&self) -> Result<bool, DriverError> {
        self.context().bind()?;
        // SAFETY: the handle is alive as long as `self`.
        match unsafe { sys::cuStreamQuery(self.raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuStreamQuery", result).map(|()| true),
        }
    }

    /// Lets work queued on this stream from now on wait, on the GPU, for the last recording of
    /// `event`. An event that was never recorded holds nothing up. The event may belong to
    /// another GPU.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn wait_for(&self, event: &Event) -> Result<(), DriverError> {
        self.context().bind()?;
        // SAFETY: both handles are alive; the driver keeps what a queued wait needs.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.raw(), event.raw, 0)
        })
    }

    /// The driver's handle, for calls that this crate lacks; valid while the stream lives.
    pub fn raw(&self) -> CUstream {
        self.handle.raw
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.handle.context
    }
}

/// A mark in a stream that can be set again and again, waited for, and compared for time.
#[derive(Debug)]
pub struct Event {
    raw: CUevent,
    context: Arc<Context>,
}

// SAFETY: as of a stream's handle: the driver takes calls from any thread, and each binds the context.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Drop for Event {
    fn drop(&mut self) {
        // A failure here is that of earlier work, which its waiter has seen.
        let _ = self.context.bind();
        // SAFETY: created by `Event::new`; the driver lets queued waits on it finish.
        let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}

impl Event {
    pub(crate) fn new(context: &Arc<Context>, timed: bool) -> Result<Event, DriverError> {
        context.bind()?;
        let flags = if timed {
            CUevent_flags::CU_EVENT_DEFAULT
        } else {
            CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        let mut raw = null_mut();
        // SAFETY: a context is current and `raw` is a valid place for the handle.
        check("cuEventCreate", unsafe {
            sys::cuEventCreate(&mut raw, flags as u32)
        })?;
        Ok(Event {
            raw,
            context: Arc::clone(context),
        })
    }

    /// Sets the mark behind everything queued on `stream` so far; an earlier mark is forgotten.
    ///
    /// # Errors
    ///
    /// The driver's refusal, among others if the stream belongs to another GPU.
    pub fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: both handles are alive.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(self.raw, stream.raw())
        })
    }

    /// Sets the mark behind everything queued so far on a stream that another library made.
    ///
    /// # Safety
    ///
    /// As of [`hold_up`](Self::hold_up).
    ///
    /// # Errors
    ///
    /// As [`record`](Self::record).
    pub unsafe fn record_in(&self, stream: CUstream) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: the event is alive, and the caller vouches for the stream.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(self.raw, stream)
        })
    }

    /// Lets work queued from now on in a stream that another library made wait, on the GPU, for the last
    /// mark; see [`Stream::wait_for`].
    ///
    /// # Safety
    ///
    /// `stream` is a stream that lives, or the driver's number of a default stream of this GPU.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub unsafe fn hold_up(&self, stream: CUstream) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: the event is alive, and the caller vouches for the stream.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(stream, self.raw, 0)
        })
    }

    /// Waits until the GPU has passed the mark; at once if it was never set.
    ///
    /// # Errors
    ///
    /// The first failure of any work before the mark that has not been reported yet.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: the handle is alive.
        check("cuEventSynchronize", unsafe {
            sys::cuEventSynchronize(self.raw)
        })
    }

    /// True if the GPU has passed the mark, or it was never set.
    ///
    /// # Errors
    ///
    /// As [`Event::synchronize`].
    pub fn is_done(&self) -> Result<bool, DriverError> {
        self.context.bind()?;
        // SAFETY: the handle is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuEventQuery", result).map(|()| true),
        }
    }

    /// Milliseconds on the GPU from `earlier` to this mark, to about half a microsecond.
    ///
    /// # Errors
    ///
    /// Refused (code 400) unless both events come from
    /// [`Gpu::timed_event`](crate::Gpu::timed_event) and were recorded; code 600 if one is not
    /// done yet.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f32, DriverError> {
        self.context.bind()?;
        let mut milliseconds = 0.0;
        // SAFETY: both handles are alive and `milliseconds` is a valid place for the answer.
        let result = unsafe { sys::cuEventElapsedTime(&mut milliseconds, earlier.raw, self.raw) };
        check("cuEventElapsedTime", result)?;
        Ok(milliseconds)
    }

    /// The driver's handle, for calls that this crate lacks; valid while the event lives.
    pub fn raw(&self) -> CUevent {
        self.raw
    }
}
