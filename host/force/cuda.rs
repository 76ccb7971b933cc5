//! An NVIDIA GPU.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;

use bytemuck::Pod;
use cuda_driver::{DeviceMemory, DriverError, Function, Gpu, Module, Stream};
use cuda_std::constant;
use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Entry, Scalars};

use super::ForceError;
use super::device::Device;
use crate::plan::{Launch, Limits, PlanError};
use crate::ptx::PtxModule;

/// Dynamic shared memory that a function gets without asking.
const SHARED_BYTES_UNASKED: u32 = 48 * 1024;

/// A GPU with a module of kernels and a stream.
pub struct Cuda {
    gpu: Gpu,
    module: Module,
    stream: Stream,
    functions: RefCell<HashMap<&'static str, Loaded>>,
    /// What the module's constant memory holds.
    constants: Cell<Option<Params>>,
}

/// A kernel that was launched before.
#[derive(Clone)]
struct Loaded {
    function: Function,
    /// Registers a thread.
    registers: u32,
    /// Threads that a block can have, from the registers.
    most_threads: u32,
    /// Dynamic shared memory that a launch may ask for.
    shared_bytes: u32,
}

impl Cuda {
    /// GPU `ordinal`, with the kernels of `module` compiled for it by its driver.
    ///
    /// # Errors
    /// If the driver refuses the GPU or the module.
    pub fn open(ordinal: u32, module: &PtxModule) -> Result<Self, DriverError> {
        let gpu = Gpu::open(ordinal)?;
        let name = format!("sm_{}{}", module.sm, if module.ftz { "_ftz" } else { "" });
        let module = gpu.load_ptx(&name, module.text)?;
        let stream = gpu.stream()?;
        Ok(Self {
            gpu,
            module,
            stream,
            functions: RefCell::default(),
            constants: Cell::new(None),
        })
    }

    /// Puts the scalars where kernels that take none look for them.
    fn set_constants(&self, params: Params) -> Result<(), DriverError> {
        if self.constants.get() != Some(params) {
            let image = constant::image(params);
            self.module.set_variable(constant::SYMBOL, &image)?;
            self.constants.set(Some(params));
        }
        Ok(())
    }

    /// The function of a kernel, ready for a launch of this geometry.
    fn function(&self, symbol: &'static str, launch: Launch) -> Result<Function, ForceError> {
        let known = self.functions.borrow().get(symbol).cloned();
        let mut loaded = match known {
            Some(loaded) => loaded,
            None => {
                let function = self.module.function(symbol)?;
                let attributes = function.attributes()?;
                Loaded {
                    function,
                    registers: attributes.registers,
                    most_threads: attributes.max_threads_per_block,
                    shared_bytes: SHARED_BYTES_UNASKED,
                }
            }
        };
        let threads = launch.block.iter().product();
        if threads > loaded.most_threads {
            return Err(ForceError::Plan(PlanError::TooManyRegisters {
                kernel: symbol,
                threads,
                registers: loaded.registers,
                most: loaded.most_threads,
            }));
        }
        if launch.shared_bytes > loaded.shared_bytes {
            loaded
                .function
                .set_max_dynamic_shared(launch.shared_bytes)?;
            loaded.shared_bytes = launch.shared_bytes;
        }
        let function = loaded.function.clone();
        self.functions.borrow_mut().insert(symbol, loaded);
        Ok(function)
    }
}

/// Repetitions in a record, at most: by then what a replay costs is small beside what it does.
const MOST_RECORDED: u64 = 32;

/// Replays of a record, at least, before it is made longer: recording costs as much as launching.
const FEWEST_REPLAYS: u64 = 4;

impl Device for Cuda {
    type Buffer = DeviceMemory;

    fn limits(&self) -> Limits {
        Limits::of(self.gpu.info())
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory, ForceError> {
        let memory = self.gpu.allocate(bytes)?;
        memory.fill(0, bytes, 0xff, &self.stream)?;
        Ok(memory)
    }

    fn zero(&self, buffer: &DeviceMemory) -> Result<(), ForceError> {
        Ok(buffer.fill(0, buffer.bytes(), 0, &self.stream)?)
    }

    fn upload<T: Pod>(&self, target: &DeviceMemory, source: &[T]) -> Result<(), ForceError> {
        Ok(target.upload(0, source, &self.stream)?)
    }

    fn download<T: Pod>(&self, source: &DeviceMemory, target: &mut [T]) -> Result<(), ForceError> {
        Ok(source.download(0, target, &self.stream)?)
    }

    unsafe fn launch(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&DeviceMemory],
        mut params: Params,
    ) -> Result<(), ForceError> {
        let function = self.function(entry.symbol, launch)?;
        let mut pointers: Vec<u64> = buffers.iter().map(|buffer| buffer.pointer()).collect();
        let mut arguments: Vec<*mut c_void> = pointers
            .iter_mut()
            .map(|pointer| (&raw mut *pointer).cast())
            .collect();
        match entry.scalars {
            Scalars::Argument => arguments.push((&raw mut params).cast()),
            Scalars::Constant => self.set_constants(params)?,
        }
        // SAFETY: pointers, then the scalars, as every entry is declared; the rest is the caller's
        // promise.
        unsafe {
            self.gpu.launch(
                &function,
                launch.grid,
                launch.block,
                launch.shared_bytes,
                &self.stream,
                &mut arguments,
            )?;
        }
        Ok(())
    }

    /// Launched once as they come, which loads what they need, then recorded and replayed: what a
    /// launch costs the host, a replay costs for all of them together. A record holds several
    /// repetitions, for the device pauses between records.
    fn repeat(
        &self,
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
            let graph = self.stream.record(&mut all)?;
            for _ in 0..rest / recorded {
                // SAFETY: launches on buffers that the caller of this function holds, by functions
                // that `self` holds.
                unsafe { self.stream.replay(&graph)? };
            }
        }
        (0..rest % recorded).try_for_each(|_| work())
    }

    fn synchronize(&self) -> Result<(), ForceError> {
        Ok(self.stream.synchronize()?)
    }

    fn seconds_of(&self, work: impl FnOnce() -> Result<(), ForceError>) -> Result<f64, ForceError> {
        let (start, end) = (self.gpu.timed_event()?, self.gpu.timed_event()?);
        start.record(&self.stream)?;
        work()?;
        end.record(&self.stream)?;
        end.synchronize()?;
        Ok(f64::from(end.milliseconds_since(&start)?) * 1e-3)
    }
}
