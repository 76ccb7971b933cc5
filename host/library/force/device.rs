//! A machine that runs kernels: a GPU, or the emulator.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytemuck::Pod;
use cuda_driver::{Columns, Graph};
use gpu_kernels::abi::Params;
use gpu_kernels::entries::Entry;

use crate::backend::ForceError;
use crate::plan::{Launch, Limits};
use crate::variants::Bus;

/// A [`Device`] with several queues of work, which copies and computes at a time.
pub trait Streams: Device {
    /// A queue of work.
    type Stream: Send;
    /// Host memory that bodies are copied from and to.
    type HostMemory: Send;
    /// A moment in a stream, by the machine's own clock.
    type Mark: Send;

    /// The queue of [`launch`](Device::launch) and of all that comes without a queue.
    fn own_stream(&self) -> &Self::Stream;

    /// A new queue.
    ///
    /// # Errors
    /// The machine's refusal.
    fn stream(&self) -> Result<Self::Stream, ForceError>;

    /// Host memory of as many bytes; `page_locked` if the machine shall copy from and to it by
    /// itself.
    ///
    /// # Errors
    /// If there is not enough.
    fn host_memory(&self, bytes: usize, page_locked: bool) -> Result<Self::HostMemory, ForceError>;

    /// Reads the memory, once all copies are done.
    ///
    /// # Errors
    /// The failure of queued work.
    fn read<'a>(&self, memory: &'a Self::HostMemory) -> Result<&'a [u8], ForceError>;

    /// Gives the memory to be written, once all copies are done.
    ///
    /// # Errors
    /// The failure of queued work.
    fn write<'a>(&self, memory: &'a mut Self::HostMemory) -> Result<&'a mut [u8], ForceError>;

    /// Queues a copy of these bytes to the machine, to the same place; waits for it, if the
    /// memory is not page-locked.
    ///
    /// # Errors
    /// The machine's refusal.
    fn copy_in(
        &self,
        source: &Self::HostMemory,
        target: &Self::Buffer,
        bytes: Range<usize>,
        stream: &Self::Stream,
    ) -> Result<(), ForceError>;

    /// As [`copy_in`](Self::copy_in), from the machine.
    ///
    /// # Errors
    /// The machine's refusal, or the failure of a launch before.
    fn copy_out(
        &self,
        source: &Self::Buffer,
        target: &mut Self::HostMemory,
        bytes: Range<usize>,
        stream: &Self::Stream,
    ) -> Result<(), ForceError>;

    /// As [`launch`](Device::launch), in a stream.
    ///
    /// # Safety
    /// As [`launch`](Device::launch); what other streams do to the buffers at the same time is not
    /// in the way.
    ///
    /// # Errors
    /// As [`launch`](Device::launch).
    unsafe fn launch_in(
        &self,
        stream: &Self::Stream,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&Self::Buffer],
        params: Params,
    ) -> Result<(), ForceError>;

    /// As [`repeat`](Device::repeat), of work that launches in a stream.
    ///
    /// # Errors
    /// As [`repeat`](Device::repeat).
    fn repeat_in(
        &self,
        _stream: &Self::Stream,
        times: u64,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        (0..times).try_for_each(|_| work())
    }

    /// The moment at which the stream has done what it has so far been given.
    ///
    /// # Errors
    /// The machine's refusal.
    fn mark(&self, stream: &Self::Stream) -> Result<Self::Mark, ForceError>;

    /// Seconds from one moment to another, once both have passed.
    ///
    /// # Errors
    /// The machine's refusal, or that a moment is yet to come.
    fn seconds(&self, from: &Self::Mark, to: &Self::Mark) -> Result<f64, ForceError>;

    /// Waits until a stream has done everything.
    ///
    /// # Errors
    /// The failure of what it did.
    fn join(&self, stream: &Self::Stream) -> Result<(), ForceError>;
}

/// [`Device`]s that read each other's memory.
pub trait Peers: Streams {
    /// Opens the direct ways between the memories of devices, where there are any.
    ///
    /// # Errors
    /// The machine's refusal.
    fn connect(devices: &[Arc<Self>]) -> Result<(), ForceError>;

    /// Checks that kernels of each device read the memory of all others and compute the same bits, for work
    /// that rests on both.
    ///
    /// # Errors
    /// [`ForceError::NoDirectWay`] and [`ForceError::OtherGpus`], or the machine's refusal.
    fn check_together(devices: &[Arc<Self>], work: &'static str) -> Result<(), ForceError>;

    /// Address of a buffer of a [connected](Self::check_together) device or of this one, which stays allocated
    /// until this device is done with it.
    fn kept_address(&self, buffer: &Self::Buffer) -> u64;

    /// As [`launch`](Device::launch), of a kernel that also reads `others`, whose
    /// [addresses](Self::kept_address) are in one of `buffers`. Their devices have [met](Self::meet) this one
    /// since they were given the work that writes them, and will before they are given work that
    /// overwrites them.
    ///
    /// # Safety
    /// As [`launch`](Device::launch), and `others` are those that the kernel reads.
    ///
    /// # Errors
    /// As [`launch`](Device::launch).
    unsafe fn launch_reading(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&Self::Buffer],
        others: &[&Self::Buffer],
        params: Params,
    ) -> Result<(), ForceError>;

    /// Lets all that is queued on any of the devices from now on wait for all that was queued on all of
    /// them.
    ///
    /// # Errors
    /// The machine's refusal.
    fn meet(devices: &[Arc<Self>]) -> Result<(), ForceError>;

    /// As [`Device::again`], of work on several devices, which [meet](Self::meet) where `work` lets them.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    unsafe fn again_together(
        _devices: &[Arc<Self>],
        _kept: &mut Option<Graph>,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        work()
    }

    /// Queues a copy of these bytes of a buffer of another device, or of this one, to `at` and on in a
    /// buffer of this device. The other has [met](Self::meet) this one since it was given the work that
    /// writes the bytes, and will before it is given work that overwrites them.
    ///
    /// # Errors
    /// The machine's refusal.
    fn copy_from(
        &self,
        target: &Self::Buffer,
        at: usize,
        source: &Self::Buffer,
        bytes: Range<usize>,
    ) -> Result<(), ForceError>;

    /// Sends bytes of a buffer to devices of other ranks, by their numbers, and receives others from them, all at a
    /// time and after what was queued; waits for it. False, and nothing is done, where a device reaches no
    /// others but through its host.
    ///
    /// # Errors
    /// The machine's refusal.
    fn swap_directly(
        &self,
        _sent: (&Self::Buffer, &[(usize, Range<usize>)]),
        _received: (&Self::Buffer, &[(usize, Range<usize>)]),
    ) -> Result<bool, ForceError> {
        Ok(false)
    }
}

/// A machine that runs kernels, one after another, on memory of its own.
pub trait Device: Send + Sync {
    /// Memory of the machine.
    type Buffer: Send;

    /// Limits of a launch.
    fn limits(&self) -> Limits;

    /// Blocks that it runs at a time, if they are as large as they can be.
    fn multiprocessors(&self) -> u32;

    /// Pairs of bodies that are too few to have another machine compute some of them.
    fn few_pairs(&self) -> u64;

    /// Returns whether the machine runs a kernel, which may need a newer GPU.
    fn has(&self, _entry: &'static Entry) -> bool {
        true
    }

    /// Makes a kernel ready, so that its first launch takes no longer than others.
    ///
    /// # Errors
    /// If the machine's driver cannot compile it.
    fn prepare(&self, _entry: &'static Entry) -> Result<(), ForceError> {
        Ok(())
    }

    /// Allocates `bytes` bytes filled with `0xff` (NaN), so that a read of uninitialised memory
    /// shows in the results.
    ///
    /// # Errors
    /// If there is not enough.
    fn allocate(&self, bytes: usize) -> Result<Self::Buffer, ForceError>;

    /// As [`allocate`](Self::allocate), of memory that the host works on as well, and reaches so.
    ///
    /// # Errors
    /// If there is not enough.
    fn allocate_for_host(&self, bytes: usize, bus: Bus) -> Result<Self::Buffer, ForceError>;

    /// Lets the host work on memory that was [allocated for it](Self::allocate_for_host), after all
    /// launches before and ahead of all that follow. Returns how long its bytes were on the bus.
    ///
    /// # Errors
    /// The machine's refusal, or the failure of a launch before.
    ///
    /// # Panics
    /// If the memory is for the machine alone.
    fn on_host(
        &self,
        buffer: &Self::Buffer,
        work: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Duration, ForceError>;

    /// Queues setting every byte of `buffer` to zero.
    ///
    /// # Errors
    /// The machine's refusal.
    fn zero(&self, buffer: &Self::Buffer) -> Result<(), ForceError>;

    /// Copies `source` to the start of `target`.
    ///
    /// # Errors
    /// The machine's refusal.
    fn upload<T: Pod>(&self, target: &Self::Buffer, source: &[T]) -> Result<(), ForceError>;

    /// Copies the start of `source` into `target`, after all launches before.
    ///
    /// # Errors
    /// The machine's refusal, or the failure of a launch before.
    fn download<T: Pod>(&self, source: &Self::Buffer, target: &mut [T]) -> Result<(), ForceError>;

    /// Queues a launch of `entry` with its pointer parameters and its scalars.
    ///
    /// # Safety
    /// `buffers` are what the entry's [pointers](Entry::pointers) name, in order, and large enough for
    /// `params`.
    ///
    /// # Errors
    /// The machine's refusal, or a fault of the kernel.
    unsafe fn launch(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&Self::Buffer],
        params: Params,
    ) -> Result<(), ForceError>;

    /// As [`launch`](Self::launch), but what follows need not wait for it until it is
    /// [joined](Self::join_beside). One after the other is right as well.
    ///
    /// # Safety
    /// As [`launch`](Self::launch); what is launched until then reads nothing that this one writes, and
    /// writes elsewhere or adds by atomic operations.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    unsafe fn launch_beside(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&Self::Buffer],
        params: Params,
    ) -> Result<(), ForceError> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(entry, launch, buffers, params) }
    }

    /// Lets what follows wait for the launches beside.
    ///
    /// # Errors
    /// The machine's refusal.
    fn join_beside(&self) -> Result<(), ForceError> {
        Ok(())
    }

    /// Queues the product `y = M x` of f32 numbers, by a library for linear algebra.
    ///
    /// # Errors
    /// If there is no such library, or it refuses.
    fn multiply(
        &self,
        shape: Columns,
        matrix: &Self::Buffer,
        x: &Self::Buffer,
        y: &Self::Buffer,
    ) -> Result<(), ForceError>;

    /// Does `work`, which only launches, `times` times over; it may be called less often, if the
    /// machine can repeat what it launched.
    ///
    /// # Errors
    /// Errors of `work`, or the machine's refusal.
    fn repeat(
        &self,
        times: u64,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        (0..times).try_for_each(|_| work())
    }

    /// Does `work`, which only launches and does the same every time. The machine may keep a record
    /// of it in `kept`, which is `None` at first, and repeat that instead of doing `work`.
    ///
    /// # Safety
    /// What `work` launched on when the record was made is there as long as `kept` is handed in.
    ///
    /// # Errors
    /// Those of `work`, or the machine's refusal.
    unsafe fn again(
        &self,
        _kept: &mut Option<Graph>,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        work()
    }

    /// Waits for all launches.
    ///
    /// # Errors
    /// The failure of one of them.
    fn synchronize(&self) -> Result<(), ForceError>;

    /// Seconds that the launches of `work` take, by the machine's own clock.
    ///
    /// # Errors
    /// Errors of `work`.
    fn seconds_of(&self, work: impl FnOnce() -> Result<(), ForceError>) -> Result<f64, ForceError>;
}
