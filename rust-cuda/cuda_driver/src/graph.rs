//! Recorded work: launches that are handed to the GPU as a whole, again and again.
//!
//! A launch costs the host some two microseconds; a replayed graph of several launches costs that
//! once. `cust` has no graphs.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::device::Context;
use crate::error::{DriverError, check};
use crate::stream::Stream;
use crate::sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode};

thread_local! {
    /// Recordings under way on this thread.
    static RECORDINGS: Cell<usize> = const { Cell::new(0) };
}

/// Refuses, on behalf of `call`, what has to wait for the GPU: while a thread records work the driver
/// lets it wait for no stream, not even for another one that does its work meanwhile.
pub(crate) fn refuse_while_recording(call: &'static str) -> Result<(), DriverError> {
    if RECORDINGS.get() > 0 {
        let reason = "waiting for a copy while work is recorded on this thread".to_owned();
        return Err(DriverError::refused(call, reason));
    }
    Ok(())
}

/// A recording under way. Dropped, by a panic, it ends and is thrown away.
struct Recording<'a> {
    stream: &'a Stream,
    ended: bool,
}

impl<'a> Recording<'a> {
    fn begin(stream: &'a Stream) -> Result<Self, DriverError> {
        stream.context().bind()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the handle is alive.
        let begun = unsafe { sys::cuStreamBeginCapture_v2(stream.raw(), mode) };
        check("cuStreamBeginCapture_v2", begun)?;
        RECORDINGS.set(RECORDINGS.get() + 1);
        Ok(Self {
            stream,
            ended: false,
        })
    }

    /// Ends it. The stream is of no use before.
    fn end(mut self) -> Result<Captured, DriverError> {
        self.end_capture()
    }

    fn end_capture(&mut self) -> Result<Captured, DriverError> {
        self.ended = true;
        RECORDINGS.set(RECORDINGS.get() - 1);
        // `work` may have used another GPU. A failure shows in the call itself.
        let _ = self.stream.context().bind();
        let mut graph = null_mut();
        // SAFETY: a capture was begun and not ended; `graph` is a valid place for the handle.
        let ended = unsafe { sys::cuStreamEndCapture(self.stream.raw(), &mut graph) };
        // Taken first: the driver may have made one also where it fails.
        let captured = Captured(graph);
        check("cuStreamEndCapture", ended).map(|()| captured)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // There is a panic to tell already.
            let _ = self.end_capture();
        }
    }
}

/// A graph as it was captured, which is not needed once it is instantiated; null if there is none.
struct Captured(CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // A failure here is that of earlier work, which its waiter has seen.
            // SAFETY: captured by `Recording`, and this is its only owner.
            let _ = unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

/// Work that was queued once, on a stream that did not do it, and can be replayed.
///
/// Memory, modules, functions and other GPUs' contexts that the work uses are not kept alive: its user
/// must do that, and drop the graph first. A driver has been seen to wait for ever for a graph that was
/// destroyed after the context of its second GPU.
#[derive(Debug)]
pub struct Graph {
    executable: CUgraphExec,
    context: Arc<Context>,
}

// SAFETY: the driver takes calls from any thread, and replaying takes a borrow.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // A failure here is that of earlier work, which its waiter has seen.
        let _ = self.context.bind();
        // SAFETY: made by `Stream::record`; the driver lets replays that are queued finish.
        let _ = unsafe { sys::cuGraphExecDestroy(self.executable) };
    }
}

impl Stream {
    /// Records what `work` queues on this stream, instead of doing it. `work` must not wait for the
    /// GPU, nor use a function for the first time: the driver may have to load it. Should `work`
    /// panic, the recording is thrown away and the stream is as before.
    ///
    /// # Errors
    /// The error that `work` returns, or the driver's refusal: code 900 and up if `work` did what
    /// cannot be recorded.
    pub fn record<E: From<DriverError>>(
        &self,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<Graph, E> {
        let recording = Recording::begin(self)?;
        let done = work();
        // Ended whatever `work` did; of two failures the first is told.
        let captured = recording.end();
        done?;
        let captured = captured?;
        let mut executable: CUgraphExec = null_mut();
        // SAFETY: the graph was just captured, `executable` is a valid place for the handle.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, captured.0, 0) };
        check("cuGraphInstantiateWithFlags", made)?;
        Ok(Graph {
            executable,
            context: Arc::clone(self.context()),
        })
    }

    /// Queues recorded work.
    ///
    /// # Errors
    /// The driver's refusal.
    ///
    /// # Safety
    /// The promises made for the launches when they were recorded must hold again: their memory is
    /// there, and so are their functions. Recorded copies from and to
    /// [`PinnedMemory`](crate::PinnedMemory) happen again without its knowing: until the replay is
    /// done no caller may look at its elements or drop it, and as to
    /// [`DeviceMemory::on_host`](crate::DeviceMemory::on_host), `work` must not replay what uses the
    /// bytes.
    pub unsafe fn replay(&self, graph: &Graph) -> Result<(), DriverError> {
        self.context().bind()?;
        // SAFETY: both handles are alive; the rest is the caller's promise.
        check("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(graph.executable, self.raw())
        })
    }
}
