//! Recorded work: launches that are handed to the GPU as a whole, again and again.
//!
//! A launch costs the host some two microseconds; a replayed graph of several launches costs that
//! once. `cust` has no graphs.

use std::ptr::null_mut;
use std::rc::Rc;

use cust_raw::{self as sys, CUgraph, CUgraphExec, CUstreamCaptureMode};

use crate::device::Context;
use crate::error::{DriverError, check};
use crate::stream::Stream;

/// Work that was queued once, on a stream that did not do it, and can be replayed.
///
/// Memory, modules and functions that the work uses are not kept alive: whoever replays it must.
#[derive(Debug)]
pub struct Graph {
    executable: CUgraphExec,
    context: Rc<Context>,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // A failure here is that of earlier work, which whoever waited for it has seen.
        let _ = self.context.bind();
        // SAFETY: made by `Stream::record`; the driver lets replays that are queued finish.
        let _ = unsafe { sys::cuGraphExecDestroy(self.executable) };
    }
}

impl Stream {
    /// Records what `work` queues on this stream, instead of doing it. `work` must not wait for the
    /// GPU, nor use a function for the first time: the driver may have to load it.
    ///
    /// # Errors
    /// What `work` returns, or the driver's refusal: code 900 and up if `work` did what cannot be
    /// recorded.
    pub fn record<E: From<DriverError>>(
        &self,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<Graph, E> {
        let context = self.context();
        context.bind()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the handle is alive.
        let begun = unsafe { sys::cuStreamBeginCapture_v2(self.raw(), mode) };
        check("cuStreamBeginCapture_v2", begun)?;
        let done = work();
        let mut graph: CUgraph = null_mut();
        // SAFETY: a capture was begun, `graph` is a valid place for the handle. Ended whatever
        // `work` did: the stream is of no use before.
        let ended = unsafe { sys::cuStreamEndCapture(self.raw(), &mut graph) };
        let recorded = done.and_then(|()| Ok(check("cuStreamEndCapture", ended)?));
        if let Err(fault) = recorded {
            if !graph.is_null() {
                // SAFETY: just captured, and nobody has it. Of two failures the first is told.
                let _ = unsafe { sys::cuGraphDestroy(graph) };
            }
            return Err(fault);
        }
        let mut executable: CUgraphExec = null_mut();
        // SAFETY: `graph` is the one just captured, `executable` a valid place for the handle.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) };
        // SAFETY: not used any more; what was instantiated does not need it.
        let destroyed = unsafe { sys::cuGraphDestroy(graph) };
        check("cuGraphInstantiateWithFlags", made)?;
        let graph = Graph {
            executable,
            context: Rc::clone(context),
        };
        check("cuGraphDestroy", destroyed)?;
        Ok(graph)
    }

    /// Queues recorded work.
    ///
    /// # Errors
    /// The driver's refusal.
    ///
    /// # Safety
    /// What was asked of the launches when they were recorded must hold again: their memory is
    /// there, and so are their functions.
    pub unsafe fn replay(&self, graph: &Graph) -> Result<(), DriverError> {
        self.context().bind()?;
        // SAFETY: both handles are alive; the rest is the caller's promise.
        check("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(graph.executable, self.raw())
        })
    }
}
