//! The CPU emulator as a device: the kernels' own source, with every access checked.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use cuda_driver::Columns;
use cuda_std::emu::{self, Region};
use gpu_kernels::abi::{Arguments, Params};
use gpu_kernels::entries::Entry;

use super::device::{Device, Peers, Streams};
use super::in_place::Shared;
use super::order_of_peers::{Clock, History};
use crate::backend::ForceError;
use crate::plan::{Launch, Limits};
use crate::variants::Bus;

/// The emulator, which runs the threads of a block in an order that its seed decides.
#[derive(Debug)]
pub struct Emulator {
    seed: AtomicU64,
    streams: AtomicU32,
    /// Work queued in streams, if it is to be listed.
    queued: Option<Mutex<Vec<Queued>>>,
    clock: Clock,
}

/// Work that was queued in a stream. It was done at once: the emulator keeps the order in which work
/// was queued, which is one of those that streams allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Queued {
    /// The stream, by the order in which they were made.
    pub stream: u32,
    /// Description.
    pub work: QueuedWork,
}

/// The stream of work that comes without one, which is not listed.
const OWN_STREAM: u32 = u32::MAX;

/// A kind of work.
#[derive(Clone, Debug, PartialEq)]
pub enum QueuedWork {
    /// A copy from the host, and which bytes.
    CopyIn(Range<usize>),
    /// A copy to the host, and which bytes.
    CopyOut(Range<usize>),
    /// A launch.
    Launch {
        /// Symbol of the kernel.
        kernel: &'static str,
        /// Scalars.
        params: Params,
        /// Number of blocks.
        grid: [u32; 3],
    },
    /// The host waited for the stream.
    Join,
}

/// Memory of the emulator, aligned for every type that kernels use.
#[derive(Debug)]
pub struct EmulatedMemory {
    words: RefCell<Vec<u128>>,
    bytes: usize,
    /// Way by which the host reaches it, if it does.
    bus: Option<Bus>,
    /// Accesses by several devices.
    history: RefCell<History>,
}

impl Emulator {
    /// Blocks that it would run at a time, were it a GPU.
    pub(crate) const MULTIPROCESSORS: u32 = 4;

    /// An emulator; each launch permutes the order of threads anew, from this seed on, and seed 0
    /// keeps to the natural order.
    pub fn new(seed: u64) -> Self {
        Self {
            seed: AtomicU64::new(seed),
            streams: AtomicU32::new(0),
            queued: None,
            clock: Clock::new(),
        }
    }

    /// As [`new`](Self::new), and lists the work queued in streams, until it is [taken](Self::take_queued).
    pub fn listing(seed: u64) -> Self {
        Self {
            queued: Some(Mutex::default()),
            ..Self::new(seed)
        }
    }

    /// Takes the list of work queued in streams since the last call; empty where none is
    /// [kept](Self::listing).
    pub fn take_queued(&self) -> Vec<Queued> {
        let taken = self.queued().map(|mut queued| std::mem::take(&mut *queued));
        taken.unwrap_or_default()
    }

    fn queued(&self) -> Option<MutexGuard<'_, Vec<Queued>>> {
        let queued = self.queued.as_ref()?;
        Some(queued.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, stream: u32, work: QueuedWork) {
        if stream != OWN_STREAM
            && let Some(mut queued) = self.queued()
        {
            queued.push(Queued { stream, work });
        }
    }

    fn note_write(&self, buffer: &EmulatedMemory, bytes: Range<usize>) {
        buffer.history.borrow_mut().write(&self.clock, bytes);
    }

    fn next_seed(&self) -> u64 {
        let next = |seed: u64| (seed != 0).then(|| seed.wrapping_add(1).max(1));
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let advanced = self.seed.fetch_update(set, fetch, next);
        advanced.unwrap_or(0)
    }
}

impl Device for Emulator {
    type Buffer = EmulatedMemory;

    /// Limits that every GPU meets, so that a kernel that needs more is refused here already.
    fn limits(&self) -> Limits {
        Limits::EVERYWHERE
    }

    /// So few that what blocks tell each other matters, and is soon told.
    fn multiprocessors(&self) -> u32 {
        Self::MULTIPROCESSORS
    }

    /// So few that emulators share out most work of small tests, and not all.
    fn few_pairs(&self) -> u64 {
        256
    }

    fn allocate(&self, bytes: usize) -> Result<EmulatedMemory, ForceError> {
        let words = vec![u128::MAX; bytes.div_ceil(size_of::<u128>())];
        Ok(EmulatedMemory {
            words: RefCell::new(words),
            bytes,
            bus: None,
            history: RefCell::new(History::new(&self.clock)),
        })
    }

    fn allocate_for_host(&self, bytes: usize, bus: Bus) -> Result<EmulatedMemory, ForceError> {
        Ok(EmulatedMemory {
            bus: Some(bus),
            ..self.allocate(bytes)?
        })
    }

    /// Copies from memory to memory what is copied over the bus on a GPU.
    fn on_host(
        &self,
        buffer: &EmulatedMemory,
        work: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Duration, ForceError> {
        let bus = buffer.bus.expect("memory for the host");
        let mut words = buffer.words.borrow_mut();
        let bytes = &mut bytemuck::cast_slice_mut(&mut words)[..buffer.bytes];
        if bus == Bus::Mapped {
            work(bytes);
            return Ok(Duration::ZERO);
        }
        let began = Instant::now();
        let mut copy = vec![0_u128; buffer.bytes.div_ceil(size_of::<u128>())];
        let copy = &mut bytemuck::cast_slice_mut(&mut copy)[..buffer.bytes];
        copy.copy_from_slice(bytes);
        let there = began.elapsed();
        work(copy);
        let began = Instant::now();
        bytes.copy_from_slice(copy);
        Ok(there + began.elapsed())
    }

    /// By the host, in the library's place: there is none that runs here.
    fn multiply(
        &self,
        shape: Columns,
        matrix: &EmulatedMemory,
        x: &EmulatedMemory,
        y: &EmulatedMemory,
    ) -> Result<(), ForceError> {
        let Columns {
            rows,
            columns,
            leading,
        } = shape;
        let (matrix, x) = (matrix.words.borrow(), x.words.borrow());
        let (matrix, x): (&[f32], &[f32]) =
            (bytemuck::cast_slice(&matrix), bytemuck::cast_slice(&x));
        let mut y = y.words.borrow_mut();
        let y: &mut [f32] = bytemuck::cast_slice_mut(&mut y);
        for (row, y) in y[..rows as usize].iter_mut().enumerate() {
            let of_row = matrix[row..].iter().step_by(leading as usize);
            let terms = of_row.zip(&x[..columns as usize]);
            *y = terms.fold(0.0, |sum, (entry, x)| entry.mul_add(*x, sum));
        }
        Ok(())
    }

    fn zero(&self, buffer: &EmulatedMemory) -> Result<(), ForceError> {
        self.note_write(buffer, 0..buffer.bytes);
        buffer.words.borrow_mut().fill(0);
        Ok(())
    }

    fn upload<T: Pod>(&self, target: &EmulatedMemory, source: &[T]) -> Result<(), ForceError> {
        let source: &[u8] = bytemuck::cast_slice(source);
        self.note_write(target, 0..source.len());
        let mut words = target.words.borrow_mut();
        bytemuck::cast_slice_mut(&mut words)[..source.len()].copy_from_slice(source);
        Ok(())
    }

    fn download<T: Pod>(
        &self,
        source: &EmulatedMemory,
        target: &mut [T],
    ) -> Result<(), ForceError> {
        let target: &mut [u8] = bytemuck::cast_slice_mut(target);
        let words = source.words.borrow();
        target.copy_from_slice(&bytemuck::cast_slice(&words)[..target.len()]);
        Ok(())
    }

    unsafe fn launch(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&EmulatedMemory],
        params: Params,
    ) -> Result<(), ForceError> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_reading(entry, launch, buffers, &[], params) }
    }

    fn synchronize(&self) -> Result<(), ForceError> {
        Ok(())
    }

    fn seconds_of(&self, work: impl FnOnce() -> Result<(), ForceError>) -> Result<f64, ForceError> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// Work is done as it comes, but an access that another device's queue might have made at another time is
/// found: memory is read before the device that wrote it was [met](Peers::meet), or overwritten before
/// the device that reads it was.
impl Peers for Emulator {
    fn connect(_devices: &[Arc<Self>]) -> Result<(), ForceError> {
        Ok(())
    }

    fn check_together(_devices: &[Arc<Self>], _work: &'static str) -> Result<(), ForceError> {
        Ok(())
    }

    fn kept_address(&self, buffer: &EmulatedMemory) -> u64 {
        self.address(buffer)
    }

    unsafe fn launch_reading(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&EmulatedMemory],
        others: &[&EmulatedMemory],
        params: Params,
    ) -> Result<(), ForceError> {
        let kernel = entry
            .emulate
            .expect("off the device every entry can be emulated");
        for other in others {
            let mut history = other.history.borrow_mut();
            history.read(&self.clock, 0..other.bytes);
        }
        for (buffer, pointer) in buffers.iter().zip(entry.pointers) {
            if pointer.writes {
                self.note_write(buffer, 0..buffer.bytes);
            }
        }
        let mut borrowed: Vec<_> = buffers.iter().map(|b| b.words.borrow_mut()).collect();
        let read: Vec<_> = others.iter().map(|other| other.words.borrow()).collect();
        let of_others = read.iter().zip(others).enumerate();
        let of_others = of_others.map(|(index, (words, other))| {
            let bytes = &bytemuck::cast_slice::<u128, u8>(words)[..other.bytes];
            Region::of(format!("memory {index} that it is given by address"), bytes)
        });
        let regions: Vec<Region<'_>> = borrowed
            .iter_mut()
            .zip(buffers)
            .zip(entry.pointers)
            .map(|((words, buffer), pointer)| {
                let bytes = &mut bytemuck::cast_slice_mut::<u128, u8>(words)[..buffer.bytes];
                let name = format!("`{:?}`", pointer.buffer);
                if pointer.writes {
                    Region::of_mut(name, bytes)
                } else {
                    Region::of(name, bytes)
                }
            })
            .chain(of_others)
            .collect();
        let pointers = regions.iter().take(buffers.len()).map(Region::pointer);
        let pointers: Vec<*mut u8> = pointers.collect();
        let arguments = Arguments {
            pointers: &pointers,
            params,
        };
        let config = emu::Launch {
            kernel: entry.symbol,
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            memory: &regions,
            seed: self.next_seed(),
        };
        // SAFETY: the caller's promise, and the emulator checks every access against it.
        emu::launch(&config, &|| unsafe { kernel(&arguments) })
            .map_err(|fault| ForceError::Kernel(Box::new(fault)))
    }

    fn meet(devices: &[Arc<Self>]) -> Result<(), ForceError> {
        Clock::meet(devices.iter().map(|device| &device.clock));
        Ok(())
    }

    fn copy_from(
        &self,
        target: &EmulatedMemory,
        at: usize,
        source: &EmulatedMemory,
        bytes: Range<usize>,
    ) -> Result<(), ForceError> {
        source.history.borrow_mut().read(&self.clock, bytes.clone());
        self.note_write(target, at..at + bytes.len());
        let source = source.words.borrow();
        let source = &bytemuck::cast_slice::<u128, u8>(&source)[bytes];
        let mut words = target.words.borrow_mut();
        bytemuck::cast_slice_mut::<u128, u8>(&mut words)[at..at + source.len()]
            .copy_from_slice(source);
        Ok(())
    }
}

/// Work is done when it is queued: there is nothing to wait for.
impl Shared for Emulator {
    fn address(&self, buffer: &EmulatedMemory) -> u64 {
        buffer.words.borrow_mut().as_mut_ptr().expose_provenance() as u64
    }

    fn stream_handle(&self) -> u64 {
        0
    }

    unsafe fn hold_up(&self, _stream: u64) -> Result<(), ForceError> {
        Ok(())
    }

    unsafe fn wait_for(&self, _stream: u64) -> Result<(), ForceError> {
        Ok(())
    }

    unsafe fn copy_from_address(
        &self,
        address: u64,
        bytes: usize,
        to: &EmulatedMemory,
    ) -> Result<(), ForceError> {
        let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the caller's promise.
        self.upload(to, unsafe { std::slice::from_raw_parts(from, bytes) })
    }

    unsafe fn copy_to_address(
        &self,
        from: &EmulatedMemory,
        address: u64,
        bytes: usize,
    ) -> Result<(), ForceError> {
        let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: the caller's promise.
        self.download(from, unsafe { std::slice::from_raw_parts_mut(to, bytes) })
    }
}

impl Streams for Emulator {
    type Stream = u32;
    type HostMemory = Vec<u8>;
    type Mark = Instant;

    fn own_stream(&self) -> &u32 {
        &OWN_STREAM
    }

    fn stream(&self) -> Result<u32, ForceError> {
        Ok(self.streams.fetch_add(1, Ordering::Relaxed))
    }

    fn host_memory(&self, bytes: usize, _page_locked: bool) -> Result<Vec<u8>, ForceError> {
        Ok(vec![0; bytes])
    }

    fn read<'a>(&self, memory: &'a Vec<u8>) -> Result<&'a [u8], ForceError> {
        Ok(memory)
    }

    fn write<'a>(&self, memory: &'a mut Vec<u8>) -> Result<&'a mut [u8], ForceError> {
        Ok(memory)
    }

    fn copy_in(
        &self,
        source: &Vec<u8>,
        target: &EmulatedMemory,
        bytes: Range<usize>,
        stream: &u32,
    ) -> Result<(), ForceError> {
        self.note(*stream, QueuedWork::CopyIn(bytes.clone()));
        self.note_write(target, bytes.clone());
        let mut words = target.words.borrow_mut();
        bytemuck::cast_slice_mut::<u128, u8>(&mut words)[bytes.clone()]
            .copy_from_slice(&source[bytes]);
        Ok(())
    }

    fn copy_out(
        &self,
        source: &EmulatedMemory,
        target: &mut Vec<u8>,
        bytes: Range<usize>,
        stream: &u32,
    ) -> Result<(), ForceError> {
        self.note(*stream, QueuedWork::CopyOut(bytes.clone()));
        let words = source.words.borrow();
        target[bytes.clone()].copy_from_slice(&bytemuck::cast_slice::<u128, u8>(&words)[bytes]);
        Ok(())
    }

    unsafe fn launch_in(
        &self,
        stream: &u32,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&EmulatedMemory],
        params: Params,
    ) -> Result<(), ForceError> {
        let work = QueuedWork::Launch {
            kernel: entry.symbol,
            params,
            grid: launch.grid,
        };
        self.note(*stream, work);
        // SAFETY: the caller's promise.
        unsafe { self.launch(entry, launch, buffers, params) }
    }

    fn mark(&self, _stream: &u32) -> Result<Instant, ForceError> {
        Ok(Instant::now())
    }

    fn seconds(&self, from: &Instant, to: &Instant) -> Result<f64, ForceError> {
        Ok(to.saturating_duration_since(*from).as_secs_f64())
    }

    fn join(&self, stream: &u32) -> Result<(), ForceError> {
        self.note(*stream, QueuedWork::Join);
        Ok(())
    }
}
