//! An NVIDIA GPU.

use std::cell::RefCell;
use std::collections::{HashMap, hash_map};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use cuda_driver::{
    Blas, Columns, Communicator, CommunicatorId, DeviceMemory, DriverError, Event, Function, Gpu,
    Graph, Module, Piece, PinnedMemory, Stream,
};
use cuda_std::constant;
use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Entry, Scalars};

use super::device::{Device, Peers, Streams};
use super::in_place::Shared;
use crate::backend::ForceError;
use crate::plan::{Launch, Limits, PlanError};
use crate::ptx::PtxModule;
use crate::variants::Bus;

/// Dynamic shared memory that a function gets without asking.
const SHARED_BYTES_UNASKED: u32 = 48 * 1024;

/// GPUs of several ranks that exchange by NCCL.
pub type Members = Arc<Mutex<Communicator>>;

/// A GPU with kernels to choose from, and a stream of its own: while one backend records work in its
/// stream, another, perhaps on another thread, launches in its own.
pub struct Cuda {
    gpu: Gpu,
    kernels: &'static PtxModule,
    stream: Stream,
    /// For launches beside others, once there were any.
    beside: OnceLock<Beside>,
    /// For other devices to wait for, once there were any.
    reached: OnceLock<Event>,
    /// Recorded in the stream for another library's to wait for, or in such a stream for this one.
    passed_on: OnceLock<Event>,
    /// The library for linear algebra, once it was needed.
    blas: Mutex<Option<Blas>>,
    /// GPUs of other ranks, if it can exchange with them by itself.
    members: Option<Members>,
    /// Shared by all that compute on this GPU with these kernels: each is compiled once.
    functions: Arc<Mutex<HashMap<&'static str, Loaded>>>,
}

/// A second stream, and what ties it to the first.
struct Beside {
    stream: Stream,
    /// Recorded in the first stream, for the second to wait for.
    forked: Event,
    /// Recorded in the second stream, for the first to wait for.
    done: Event,
}

/// Memory that kernels work on.
#[derive(Debug)]
pub struct CudaMemory {
    memory: DeviceMemory,
    host: HostSide,
}

/// Host side of a buffer.
#[derive(Debug)]
enum HostSide {
    /// Nothing.
    None,
    /// A place to copy it to, aligned for every type that kernels use.
    Pageable(RefCell<Vec<u128>>),
    /// Page-locked memory of the host.
    PageLocked(RefCell<PinnedMemory<u8>>),
    /// The buffer itself.
    Mapped,
}

impl From<DeviceMemory> for CudaMemory {
    fn from(memory: DeviceMemory) -> Self {
        Self {
            memory,
            host: HostSide::None,
        }
    }
}

/// A kernel that was compiled before, in a module of its own.
struct Loaded {
    module: Module,
    /// Contents of the module's constant memory.
    constants: Option<Params>,
    function: Function,
    /// Registers per thread.
    registers: u32,
    /// Threads that a block can have, from the registers.
    most_threads: u32,
    /// Dynamic shared memory that a launch may ask for.
    shared_bytes: u32,
}

impl Cuda {
    /// GPU `ordinal`, with these kernels; its driver compiles each when it is first needed.
    ///
    /// # Errors
    /// If the driver refuses the GPU.
    pub fn open(ordinal: u32, kernels: &'static PtxModule) -> Result<Self, DriverError> {
        let gpu = Gpu::open(ordinal)?;
        let stream = gpu.stream()?;
        Ok(Self {
            gpu,
            kernels,
            stream,
            beside: OnceLock::new(),
            reached: OnceLock::new(),
            passed_on: OnceLock::new(),
            blas: Mutex::default(),
            members: None,
            functions: Arc::default(),
        })
    }

    /// Returns the same GPU and kernels with another stream.
    ///
    /// # Errors
    /// If the driver refuses the stream.
    pub fn with_stream_of_its_own(&self) -> Result<Self, DriverError> {
        Ok(Self {
            gpu: self.gpu.clone(),
            kernels: self.kernels,
            stream: self.gpu.stream()?,
            beside: OnceLock::new(),
            reached: OnceLock::new(),
            passed_on: OnceLock::new(),
            blas: Mutex::default(),
            members: None, // whose exchanges are in the other stream
            functions: Arc::clone(&self.functions),
        })
    }

    /// Joins a communicator of the GPUs of so many ranks, and waits for the others.
    ///
    /// # Errors
    /// NCCL's refusal.
    pub fn join(
        &self,
        id: &CommunicatorId,
        rank: usize,
        ranks: usize,
    ) -> Result<Communicator, ForceError> {
        Ok(self.gpu.communicator(id, rank, ranks)?)
    }

    /// As one of the members of a communicator that it has joined.
    #[must_use]
    pub fn of_members(self, members: Members) -> Self {
        let members = Some(members);
        Self { members, ..self }
    }

    fn reached(&self) -> Result<&Event, DriverError> {
        if let Some(reached) = self.reached.get() {
            return Ok(reached);
        }
        let reached = self.gpu.event()?;
        Ok(self.reached.get_or_init(|| reached))
    }

    fn passed_on(&self) -> Result<&Event, DriverError> {
        if let Some(passed_on) = self.passed_on.get() {
            return Ok(passed_on);
        }
        let passed_on = self.gpu.event()?;
        Ok(self.passed_on.get_or_init(|| passed_on))
    }

    fn beside(&self) -> Result<&Beside, DriverError> {
        if let Some(beside) = self.beside.get() {
            return Ok(beside);
        }
        let beside = Beside {
            stream: self.gpu.stream()?,
            forked: self.gpu.event()?,
            done: self.gpu.event()?,
        };
        Ok(self.beside.get_or_init(|| beside))
    }

    /// Does something with a kernel, once it is compiled.
    ///
    /// # Panics
    /// If there is no such kernel for this GPU: see [`eligible`](crate::selection::eligible).
    fn with<T>(
        &self,
        symbol: &'static str,
        work: impl FnOnce(&mut Loaded) -> Result<T, ForceError>,
    ) -> Result<T, ForceError> {
        // A panic leaves what was loaded as it was: no kernel is half there.
        let functions = self.functions.lock();
        let mut functions = functions.unwrap_or_else(PoisonError::into_inner);
        match functions.entry(symbol) {
            hash_map::Entry::Occupied(known) => work(known.into_mut()),
            hash_map::Entry::Vacant(room) => {
                let module = self.load(symbol)?;
                let function = module.function(symbol)?;
                let attributes = function.attributes()?;
                work(room.insert(Loaded {
                    module,
                    constants: None,
                    function,
                    registers: attributes.registers,
                    most_threads: attributes.max_threads_per_block,
                    shared_bytes: SHARED_BYTES_UNASKED,
                }))
            }
        }
    }
}

/// Code of the driver where PTX is newer than it.
const UNSUPPORTED_PTX_VERSION: i32 = 222;

impl Cuda {
    /// Loads a kernel, compiled for the newest generation with PTX that the driver takes. The driver's
    /// version has chosen it already; a driver may refuse it all the same.
    fn load(&self, symbol: &'static str) -> Result<Module, DriverError> {
        let mut kernels = self.kernels;
        loop {
            let PtxModule { sm, ftz, .. } = kernels;
            let build = if *ftz { " ftz" } else { "" };
            let oldest = kernels.oldest_cuda();
            let oldest = oldest.map_or_else(String::new, |(major, minor)| {
                format!(", for drivers of CUDA {major}.{minor} and newer")
            });
            let name = format!("{symbol}, sm_{sm}{build}{oldest}");
            let text = kernels.alone(symbol).expect("an eligible kernel");
            let loaded = self.gpu.load_ptx(&name, &text);
            let is_newer = |error: &DriverError| error.code() == UNSUPPORTED_PTX_VERSION;
            let is_newer = loaded.as_ref().is_err_and(is_newer);
            match is_newer.then(|| kernels.older(symbol)).flatten() {
                Some(older) => kernels = older,
                None => return loaded,
            }
        }
    }
}

impl Loaded {
    /// Makes it ready for a launch of this geometry.
    fn fit(&mut self, symbol: &'static str, launch: Launch) -> Result<(), ForceError> {
        let threads = launch.block.iter().product();
        if threads > self.most_threads {
            return Err(ForceError::Plan(PlanError::TooManyRegisters {
                kernel: symbol,
                threads,
                registers: self.registers,
                most: self.most_threads,
            }));
        }
        if launch.shared_bytes > self.shared_bytes {
            self.function.set_max_dynamic_shared(launch.shared_bytes)?;
            self.shared_bytes = launch.shared_bytes;
        }
        Ok(())
    }

    /// Puts the scalars where kernels that take none look for them.
    fn set_constants(&mut self, params: Params) -> Result<(), DriverError> {
        if self.constants != Some(params) {
            let image = constant::image(params);
            self.module.set_variable(constant::SYMBOL, &image)?;
            self.constants = Some(params);
        }
        Ok(())
    }
}

/// Repetitions in a record, at most: by then what a replay costs is small beside what it does.
const MOST_RECORDED: u64 = 32;

/// Replays of a record, at least, before it is made longer: recording costs as much as launching.
const FEWEST_REPLAYS: u64 = 4;

/// Pairs that a GPU computes in about 100 µs. Where each of two H200s has more of them to compute, two take less time for block
/// steps than one.
const FEW_PAIRS: u64 = 1 << 26;

impl Device for Cuda {
    type Buffer = CudaMemory;

    fn limits(&self) -> Limits {
        Limits::of(self.gpu.info())
    }

    fn multiprocessors(&self) -> u32 {
        self.gpu.info().sm_count
    }

    fn few_pairs(&self) -> u64 {
        FEW_PAIRS
    }

    fn has(&self, entry: &'static Entry) -> bool {
        self.kernels.sm >= entry.since
    }

    fn prepare(&self, entry: &'static Entry) -> Result<(), ForceError> {
        self.with(entry.symbol, |_| Ok(()))
    }

    fn allocate(&self, bytes: usize) -> Result<CudaMemory, ForceError> {
        let memory = self.gpu.allocate(bytes)?;
        memory.fill(0, bytes, 0xff, &self.stream)?;
        Ok(memory.into())
    }

    fn allocate_for_host(&self, bytes: usize, bus: Bus) -> Result<CudaMemory, ForceError> {
        let host = match bus {
            Bus::Pageable => {
                let words = vec![0; bytes.div_ceil(size_of::<u128>())];
                HostSide::Pageable(RefCell::new(words))
            }
            Bus::PageLocked => HostSide::PageLocked(RefCell::new(self.gpu.pinned(bytes)?)),
            Bus::Mapped => {
                let memory = self.gpu.mapped(bytes)?;
                memory.on_host(|bytes| bytes.fill(0xff))?;
                let host = HostSide::Mapped;
                return Ok(CudaMemory { memory, host });
            }
        };
        Ok(CudaMemory {
            host,
            ..self.allocate(bytes)?
        })
    }

    fn on_host(
        &self,
        buffer: &CudaMemory,
        work: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Duration, ForceError> {
        let memory = &buffer.memory;
        self.synchronize()?; // what was launched is no part of the transfer
        match &buffer.host {
            HostSide::None => panic!("memory of the GPU alone"),
            HostSide::Mapped => {
                memory.on_host(work)?.expect("memory of the host");
                Ok(Duration::ZERO)
            }
            HostSide::Pageable(host) => {
                let mut words = host.borrow_mut();
                let bytes = &mut bytemuck::cast_slice_mut(&mut words)[..memory.bytes()];
                let began = Instant::now();
                memory.download(0, bytes, &self.stream)?;
                let there = began.elapsed();
                work(bytes);
                let began = Instant::now();
                memory.upload(0, bytes, &self.stream)?;
                Ok(there + began.elapsed())
            }
            HostSide::PageLocked(host) => {
                let (mut host, all) = (host.borrow_mut(), 0..memory.bytes());
                let began = Instant::now();
                memory.download_async(0, &mut host, all.clone(), &self.stream)?;
                let bytes = host.slice_mut()?; // waits for the copy
                let there = began.elapsed();
                work(bytes);
                let began = Instant::now();
                memory.upload_async(0, &host, all, &self.stream)?;
                self.synchronize()?;
                Ok(there + began.elapsed())
            }
        }
    }

    fn zero(&self, buffer: &CudaMemory) -> Result<(), ForceError> {
        let memory = &buffer.memory;
        Ok(memory.fill(0, memory.bytes(), 0, &self.stream)?)
    }

    fn upload<T: Pod>(&self, target: &CudaMemory, source: &[T]) -> Result<(), ForceError> {
        let source: &[u8] = bytemuck::cast_slice(source);
        let memory = &target.memory;
        let copied = memory.on_host(|bytes| bytes[..source.len()].copy_from_slice(source))?;
        match copied {
            Some(()) => Ok(()),
            None => Ok(memory.upload(0, source, &self.stream)?),
        }
    }

    fn download<T: Pod>(&self, source: &CudaMemory, target: &mut [T]) -> Result<(), ForceError> {
        let target: &mut [u8] = bytemuck::cast_slice_mut(target);
        let memory = &source.memory;
        let copied = memory.on_host(|bytes| target.copy_from_slice(&bytes[..target.len()]))?;
        match copied {
            Some(()) => Ok(()),
            None => Ok(memory.download(0, target, &self.stream)?),
        }
    }

    /// In a second stream, which waits for all that the first has been given.
    unsafe fn launch_beside(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&CudaMemory],
        params: Params,
    ) -> Result<(), ForceError> {
        let beside = self.beside()?;
        beside.forked.record(&self.stream)?;
        beside.stream.wait_for(&beside.forked)?;
        // SAFETY: the caller's promise; the event orders it after all that came before.
        unsafe { self.launch_in(&beside.stream, entry, launch, buffers, params) }
    }

    fn join_beside(&self) -> Result<(), ForceError> {
        let beside = self.beside()?;
        beside.done.record(&beside.stream)?;
        Ok(self.stream.wait_for(&beside.done)?)
    }

    fn multiply(
        &self,
        shape: Columns,
        matrix: &CudaMemory,
        x: &CudaMemory,
        y: &CudaMemory,
    ) -> Result<(), ForceError> {
        let mut blas = self.blas.lock().unwrap_or_else(PoisonError::into_inner);
        let blas = match &mut *blas {
            Some(blas) => blas,
            none => none.insert(self.gpu.blas(&self.stream)?),
        };
        Ok(blas.multiply(shape, &matrix.memory, &x.memory, &y.memory)?)
    }

    unsafe fn launch(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&CudaMemory],
        params: Params,
    ) -> Result<(), ForceError> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_in(&self.stream, entry, launch, buffers, params) }
    }

    fn repeat(
        &self,
        times: u64,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        self.repeat_in(&self.stream, times, work)
    }

    /// Done as it comes the first time, which loads what it needs, and then recorded.
    unsafe fn again(
        &self,
        kept: &mut Option<Graph>,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        match kept {
            // SAFETY: the caller's promise, and `self` holds the functions.
            Some(graph) => unsafe { self.stream.replay(graph)? },
            None => {
                work()?;
                *kept = Some(self.stream.record(work)?);
            }
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<(), ForceError> {
        Ok(self.stream.synchronize()?)
    }

    fn seconds_of(&self, work: impl FnOnce() -> Result<(), ForceError>) -> Result<f64, ForceError> {
        let (start, end) = (self.mark(&self.stream)?, self.gpu.timed_event()?);
        work()?;
        end.record(&self.stream)?;
        end.synchronize()?;
        self.seconds(&start, &end)
    }
}

impl Peers for Cuda {
    fn connect(devices: &[Arc<Self>]) -> Result<(), ForceError> {
        for (from, to) in pairs(devices) {
            from.gpu.reach(&to.gpu)?; // without a direct way, copies go through the host
        }
        Ok(())
    }

    fn check_together(devices: &[Arc<Self>], work: &'static str) -> Result<(), ForceError> {
        for (from, to) in pairs(devices) {
            let ends = [from, to].map(|device| device.gpu.info());
            // The driver compiles the same code for GPUs of the same compute capability alone.
            if ends[0].compute_capability != ends[1].compute_capability {
                let gpus = ends.map(|info| format!("GPU {} is {}", info.ordinal, info.name));
                return Err(ForceError::OtherGpus { work, gpus });
            }
            if !from.gpu.reach(&to.gpu)? {
                let [from, to] = ends.map(|info| info.ordinal);
                return Err(ForceError::NoDirectWay { work, from, to });
            }
        }
        Ok(())
    }

    fn kept_address(&self, buffer: &CudaMemory) -> u64 {
        buffer.memory.keep_for(&self.gpu);
        buffer.memory.pointer()
    }

    unsafe fn launch_reading(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&CudaMemory],
        _others: &[&CudaMemory],
        params: Params,
    ) -> Result<(), ForceError> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(entry, launch, buffers, params) }
    }

    fn meet(devices: &[Arc<Self>]) -> Result<(), ForceError> {
        for device in devices {
            device.reached()?.record(&device.stream)?;
        }
        for (device, other) in pairs(devices) {
            device.stream.wait_for(other.reached()?)?;
        }
        Ok(())
    }

    /// On two GPUs the work is done as it comes the first time, and then recorded in the first one's stream, from which
    /// that of the other forks. On any other number, or one GPU twice, it is always done as it comes: with three streams of
    /// one GPU replays did not come to an end (driver 580), and more GPUs have not been tried.
    unsafe fn again_together(
        devices: &[Arc<Self>],
        kept: &mut Option<Graph>,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        let [first, other] = devices else {
            return work();
        };
        if first.gpu.info().ordinal == other.gpu.info().ordinal {
            return work();
        }
        Self::meet(devices)?;
        match kept {
            // SAFETY: the caller's promise, and the devices hold the functions.
            Some(graph) => unsafe { first.stream.replay(graph)? },
            None => {
                work()?;
                *kept = Some(first.stream.record(|| {
                    first.reached()?.record(&first.stream)?;
                    other.stream.wait_for(first.reached()?)?;
                    work()?;
                    other.reached()?.record(&other.stream)?;
                    Ok::<_, ForceError>(first.stream.wait_for(other.reached()?)?)
                })?);
            }
        }
        Self::meet(devices)
    }

    fn copy_from(
        &self,
        target: &CudaMemory,
        at: usize,
        source: &CudaMemory,
        bytes: Range<usize>,
    ) -> Result<(), ForceError> {
        let (target, source) = (&target.memory, &source.memory);
        Ok(target.copy_from(at, source, bytes, &self.stream)?)
    }

    fn swap_directly(
        &self,
        sent: (&CudaMemory, &[(usize, Range<usize>)]),
        received: (&CudaMemory, &[(usize, Range<usize>)]),
    ) -> Result<bool, ForceError> {
        let Some(members) = &self.members else {
            return Ok(false);
        };
        let [sent, received] = [sent, received].map(|(buffer, pieces)| -> Vec<_> {
            let piece = |(member, bytes): &(usize, Range<usize>)| Piece {
                member: *member,
                memory: &buffer.memory,
                bytes: bytes.clone(),
            };
            pieces.iter().map(piece).collect()
        });
        let members = members.lock().unwrap_or_else(PoisonError::into_inner);
        members.exchange(&sent, &received, &self.stream)?;
        members.wait(&self.stream)?;
        Ok(true)
    }
}

/// Each device with each of the others.
fn pairs(devices: &[Arc<Cuda>]) -> impl Iterator<Item = (&Cuda, &Cuda)> {
    let others = |device| {
        devices
            .iter()
            .filter(move |other| !Arc::ptr_eq(other, device))
    };
    let pairs = devices
        .iter()
        .flat_map(move |device| others(device).map(move |other| (device, other)));
    pairs.map(|(device, other)| (&**device, &**other))
}

/// Host memory that a GPU copies from and to.
#[derive(Debug)]
pub enum HostMemory {
    /// Ordinary memory: a copy goes through the driver's own buffers, and is waited for.
    Pageable(Vec<u8>),
    /// Page-locked memory, which the GPU reads and writes by itself.
    PageLocked(PinnedMemory<u8>),
}

impl Shared for Cuda {
    fn address(&self, buffer: &CudaMemory) -> u64 {
        buffer.memory.pointer()
    }

    fn stream_handle(&self) -> u64 {
        self.stream.raw() as u64
    }

    unsafe fn hold_up(&self, stream: u64) -> Result<(), ForceError> {
        let passed_on = self.passed_on()?;
        passed_on.record(&self.stream)?;
        // SAFETY: the caller's promise.
        unsafe { passed_on.hold_up(stream as *mut _)? };
        Ok(())
    }

    unsafe fn wait_for(&self, stream: u64) -> Result<(), ForceError> {
        let passed_on = self.passed_on()?;
        // SAFETY: the caller's promise.
        unsafe { passed_on.record_in(stream as *mut _)? };
        Ok(self.stream.wait_for(passed_on)?)
    }

    unsafe fn copy_from_address(
        &self,
        address: u64,
        bytes: usize,
        to: &CudaMemory,
    ) -> Result<(), ForceError> {
        // SAFETY: the caller's promise.
        unsafe { to.memory.copy_from_address(address, bytes, &self.stream)? };
        Ok(())
    }

    unsafe fn copy_to_address(
        &self,
        from: &CudaMemory,
        address: u64,
        bytes: usize,
    ) -> Result<(), ForceError> {
        // SAFETY: the caller's promise.
        unsafe { from.memory.copy_to_address(address, bytes, &self.stream)? };
        Ok(())
    }
}

impl Streams for Cuda {
    type Stream = Stream;
    type HostMemory = HostMemory;
    type Mark = Event;

    fn own_stream(&self) -> &Stream {
        &self.stream
    }

    fn stream(&self) -> Result<Stream, ForceError> {
        Ok(self.gpu.stream()?)
    }

    fn host_memory(&self, bytes: usize, page_locked: bool) -> Result<HostMemory, ForceError> {
        Ok(if page_locked {
            HostMemory::PageLocked(self.gpu.pinned(bytes)?)
        } else {
            HostMemory::Pageable(vec![0; bytes])
        })
    }

    fn read<'a>(&self, memory: &'a HostMemory) -> Result<&'a [u8], ForceError> {
        match memory {
            HostMemory::Pageable(bytes) => Ok(bytes),
            HostMemory::PageLocked(memory) => Ok(memory.slice()?),
        }
    }

    fn write<'a>(&self, memory: &'a mut HostMemory) -> Result<&'a mut [u8], ForceError> {
        match memory {
            HostMemory::Pageable(bytes) => Ok(bytes),
            HostMemory::PageLocked(memory) => Ok(memory.slice_mut()?),
        }
    }

    fn copy_in(
        &self,
        source: &HostMemory,
        target: &CudaMemory,
        bytes: Range<usize>,
        stream: &Stream,
    ) -> Result<(), ForceError> {
        match source {
            HostMemory::Pageable(source) => {
                target.memory.upload(bytes.start, &source[bytes], stream)?;
            }
            HostMemory::PageLocked(source) => {
                target
                    .memory
                    .upload_async(bytes.start, source, bytes, stream)?;
            }
        }
        Ok(())
    }

    fn copy_out(
        &self,
        source: &CudaMemory,
        target: &mut HostMemory,
        bytes: Range<usize>,
        stream: &Stream,
    ) -> Result<(), ForceError> {
        match target {
            HostMemory::Pageable(target) => {
                source
                    .memory
                    .download(bytes.start, &mut target[bytes], stream)?;
            }
            HostMemory::PageLocked(target) => {
                source
                    .memory
                    .download_async(bytes.start, target, bytes, stream)?;
            }
        }
        Ok(())
    }

    unsafe fn launch_in(
        &self,
        stream: &Stream,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&CudaMemory],
        mut params: Params,
    ) -> Result<(), ForceError> {
        let mut pointers: Vec<u64> = buffers
            .iter()
            .map(|buffer| buffer.memory.pointer())
            .collect();
        let mut arguments: Vec<*mut c_void> = pointers
            .iter_mut()
            .map(|pointer| (&raw mut *pointer).cast())
            .collect();
        self.with(entry.symbol, |kernel| {
            kernel.fit(entry.symbol, launch)?;
            match entry.scalars {
                Scalars::Argument => arguments.push((&raw mut params).cast()),
                Scalars::Constant => kernel.set_constants(params)?,
            }
            // SAFETY: pointers, then the scalars, as every entry is declared; the rest is the
            // caller's promise.
            unsafe {
                self.gpu.launch(
                    &kernel.function,
                    launch.grid,
                    launch.block,
                    launch.shared_bytes,
                    stream,
                    &mut arguments,
                )?;
            }
            Ok(())
        })
    }

    /// Launched once as they come, which loads what they need, then recorded and replayed: what a
    /// launch costs the host, a replay costs for all of them together. A record holds several
    /// repetitions, for the device pauses between records.
    fn repeat_in(
        &self,
        stream: &Stream,
        times: u64,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        if times == 0 {
            return Ok(());
        }
        work()?;
        let rest = times - 1;
        let recorded = (rest / FEWEST_REPLAYS).clamp(1, MOST_RECORDED);
        if rest >= recorded {
            let mut all = || (0..recorded).try_for_each(|_| work());
            let graph = stream.record(&mut all)?;
            for _ in 0..rest / recorded {
                // SAFETY: launches on buffers that the caller of this function holds, by functions
                // that `self` holds.
                unsafe { stream.replay(&graph)? };
            }
        }
        (0..rest % recorded).try_for_each(|_| work())
    }

    fn mark(&self, stream: &Stream) -> Result<Event, ForceError> {
        let mark = self.gpu.timed_event()?;
        mark.record(stream)?;
        Ok(mark)
    }

    fn seconds(&self, from: &Event, to: &Event) -> Result<f64, ForceError> {
        Ok(f64::from(to.milliseconds_since(from)?) * 1e-3)
    }

    fn join(&self, stream: &Stream) -> Result<(), ForceError> {
        Ok(stream.synchronize()?)
    }
}
