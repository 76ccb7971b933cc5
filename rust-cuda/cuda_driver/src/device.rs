//! The GPUs of this machine, and one of them opened.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::blas::{Blas, BlasError};
use crate::cust::device::Device;
use crate::cust::{self, CudaFlags};
use crate::error::{DriverError, NoGpu, check, check_cust};
use crate::memory::DeviceMemory;
use crate::module::{Function, Module};
use crate::nccl::{Communicator, CommunicatorId, NcclError};
use crate::pinned::PinnedMemory;
use crate::shim;
use crate::stream::{Event, Stream};
use crate::sys::{self, CUcontext, CUdevice_P2PAttribute, CUdevice_attribute, CUresult};
use bytemuck::Pod;

/// Properties of a GPU that the driver reports without a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Number of the GPU in this process, from 0; `CUDA_VISIBLE_DEVICES` renumbers.
    pub ordinal: u32,
    /// Product name, such as `NVIDIA H200`.
    pub name: String,
    /// Identity of the GPU, or of the part of one that it is: the same in every process.
    pub uuid: [u8; 16],
    /// Address on the PCI bus of its machine (domain, bus, device), which the parts of a GPU share.
    pub pci: (u32, u32, u32),
    /// Compute capability (major, minor): (9, 0) for `sm_90`.
    pub compute_capability: (u32, u32),
    /// Number of streaming multiprocessors.
    pub sm_count: u32,
    /// Highest clock of the multiprocessors, kHz.
    pub sm_clock_khz: u32,
    /// Highest clock of the memory, kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory bus, bits.
    pub memory_bus_bits: u32,
    /// Memory of the GPU, bytes. What is free needs a context: [`Gpu::memory_info`].
    pub memory_bytes: usize,
    /// Second-level cache, bytes.
    pub l2_bytes: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Most threads of one block.
    pub max_threads_per_block: u32,
    /// Most threads resident on one multiprocessor.
    pub max_threads_per_sm: u32,
    /// 32-bit registers of one multiprocessor.
    pub registers_per_sm: u32,
    /// Shared memory of one multiprocessor, bytes.
    pub shared_bytes_per_sm: u32,
    /// Most shared memory of one block, bytes, for a function that asks for it with
    /// [`Function::set_max_dynamic_shared`].
    pub max_shared_bytes_per_block: u32,
    /// CUDA version (major, minor) that the driver supports: (13, 0).
    pub driver_version: (u32, u32),
}

impl DeviceInfo {
    fn of(device: Device, ordinal: u32) -> Result<DeviceInfo, DriverError> {
        use CUdevice_attribute::*;
        let get = |which| attribute(device, which);
        Ok(DeviceInfo {
            ordinal,
            name: check_cust("cuDeviceGetName", device.name())?,
            uuid: uuid(device)?,
            pci: (
                get(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
                get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
                get(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?,
            ),
            compute_capability: (
                get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            sm_count: get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            sm_clock_khz: get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            memory_clock_khz: get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
            memory_bus_bits: get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
            memory_bytes: check_cust("cuDeviceTotalMem_v2", device.total_memory())?,
            l2_bytes: get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            warp_size: get(CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            max_threads_per_block: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_threads_per_sm: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            registers_per_sm: get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            shared_bytes_per_sm: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            max_shared_bytes_per_block: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            driver_version: driver_version()?,
        })
    }
}

/// `cust`'s own attribute enum ends before the shared memory that a block can opt in to.
fn attribute(device: Device, which: CUdevice_attribute) -> Result<u32, DriverError> {
    let mut value = 0;
    // SAFETY: the device exists and `value` is a valid place for the answer.
    let result = unsafe { sys::cuDeviceGetAttribute(&mut value, which, device.as_raw()) };
    check("cuDeviceGetAttribute", result)
        .map_err(|error| error.doing(format!("asking for {which:?}")))?;
    // All attributes asked for here are counts, sizes, clocks and addresses.
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Of a part of a GPU its own where the driver knows of it, which `cust` does not ask.
fn uuid(device: Device) -> Result<[u8; 16], DriverError> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the device exists and `uuid` is a valid place for the answer.
    let mut result = unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device.as_raw()) };
    if result == CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND {
        // SAFETY: as above.
        result = unsafe { sys::cuDeviceGetUuid(&mut uuid, device.as_raw()) };
    }
    check("cuDeviceGetUuid", result)?;
    Ok(uuid.bytes.map(|byte| byte as u8))
}

fn driver_version() -> Result<(u32, u32), DriverError> {
    let version = check_cust("cuDriverGetVersion", cust::CudaApiVersion::get())?;
    Ok((
        version.major().unsigned_abs(),
        version.minor().unsigned_abs(),
    ))
}

/// All GPUs that this process may use; at least one. Makes no context, so it costs no GPU memory.
///
/// # Errors
///
/// Says in one line why there is no GPU.
pub fn devices() -> Result<Vec<DeviceInfo>, NoGpu> {
    let library = shim::library()?;
    let no_device = || NoGpu::NoDevice {
        library: library.to_owned(),
    };
    match device_count() {
        Ok(0) => Err(no_device()),
        Ok(count) => (0..count)
            .map(|ordinal| Ok(open_device(ordinal)?.1))
            .collect(),
        Err(error) if error.name() == "CUDA_ERROR_NO_DEVICE" => Err(no_device()),
        Err(error) => Err(NoGpu::Refused(error)),
    }
}

/// Initialises the driver, which is cheap when repeated, and counts the GPUs.
fn device_count() -> Result<u32, DriverError> {
    check_cust("cuInit", cust::init(CudaFlags::empty()))?;
    check_cust("cuDeviceGetCount", Device::num_devices())
}

fn open_device(ordinal: u32) -> Result<(Device, DeviceInfo), DriverError> {
    let device = check_cust("cuDeviceGet", Device::get_device(ordinal))?;
    Ok((device, DeviceInfo::of(device, ordinal)?))
}

/// A way from the memory of one GPU to that of another, as the driver describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// True if one can read and write the other's memory directly; else copies go through the host.
    pub direct: bool,
    /// True if atomic operations work over it, as over NVLink and not over PCI Express.
    pub atomics: bool,
    /// Rank by speed among the ways of this machine: 0 is the fastest.
    pub rank: u32,
}

/// The way on which GPU `from` reaches the memory of GPU `to`.
///
/// # Errors
///
/// If there is no such GPU, or both are the same; or the driver's refusal.
pub fn link(from: u32, to: u32) -> Result<Link, DriverError> {
    use CUdevice_P2PAttribute::*;
    device_count()?;
    let ends = [open_device(from)?.0, open_device(to)?.0].map(|device| device.as_raw());
    let get = |which| {
        let mut value = 0;
        // SAFETY: both devices exist and `value` is a valid place for the answer.
        let result = unsafe { sys::cuDeviceGetP2PAttribute(&mut value, which, ends[0], ends[1]) };
        check("cuDeviceGetP2PAttribute", result)
            .map_err(|error| error.doing(format!("asking how GPU {from} reaches GPU {to}")))?;
        Ok::<_, DriverError>(value)
    };
    Ok(Link {
        direct: get(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)? != 0,
        atomics: get(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)? != 0,
        rank: get(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)?.unsigned_abs(),
    })
}

/// A retained primary context. Everything made on a GPU holds one of these, so it stays until the
/// last of them is gone.
#[derive(Debug)]
pub(crate) struct Context {
    primary: cust::context::Context,
    info: DeviceInfo,
}

impl Context {
    /// Makes this the calling thread's current context. Needed before any call, since a thread
    /// may use several GPUs and `cust` may have changed it; tens of nanoseconds.
    pub(crate) fn bind(&self) -> Result<(), DriverError> {
        // SAFETY: the context is retained as long as `self`.
        check("cuCtxSetCurrent", unsafe {
            sys::cuCtxSetCurrent(self.raw())
        })
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The driver's handle, the same for all that retain a GPU's primary context.
    pub(crate) fn raw(&self) -> CUcontext {
        self.primary.as_raw()
    }

    pub(crate) fn synchronize(&self) -> Result<(), DriverError> {
        self.bind()?;
        // SAFETY: a context is current.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    pub(crate) fn memory_info(&self) -> Result<(usize, usize), DriverError> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current and both places are valid.
        check("cuMemGetInfo_v2", unsafe {
            sys::cuMemGetInfo_v2(&mut free, &mut total)
        })?;
        Ok((free, total))
    }
}

/// Does work, and leaves the calling thread with the context that it had: another library on this thread
/// may take the current context for its own choice of a GPU.
pub fn keeping_context<T>(work: impl FnOnce() -> T) -> T {
    /// Also where the work panics.
    struct Restore(sys::CUcontext);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: it was current before, and the caller that made it current keeps it. A failure leaves
            // another context current, which is no more than calls do without this function.
            let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
        }
    }
    let mut before = null_mut();
    // SAFETY: `before` is a valid place for the answer. Without a driver the call is refused.
    let asked = check("cuCtxGetCurrent", unsafe {
        sys::cuCtxGetCurrent(&mut before)
    });
    let _restore = asked.is_ok().then(|| Restore(before));
    work()
}

/// A GPU opened for work.
///
/// It uses the GPU's primary context, which `cust` and CUDA's libraries share. It and all that it
/// makes can be sent to another thread. A clone is another handle to the same GPU.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(crate) context: Arc<Context>,
}

impl Gpu {
    /// Opens the GPU with this number (see [`devices`]).
    ///
    /// # Errors
    ///
    /// Code 303 without a driver, 101 if there is no such GPU, else the driver's refusal.
    pub fn open(ordinal: u32) -> Result<Gpu, DriverError> {
        let count = device_count().map_err(|error| match shim::library() {
            Err(reason) => error.doing(format!("opening GPU {ordinal} ({reason})")),
            Ok(_) => error,
        })?;
        let doing = || format!("opening GPU {ordinal} of {count} (numbered from 0)");
        let (device, info) = open_device(ordinal).map_err(|error| error.doing(doing()))?;
        let primary = cust::context::Context::new(device);
        let primary = check_cust("cuDevicePrimaryCtxRetain", primary)
            .map_err(|error| error.doing(doing()))?;
        Ok(Gpu {
            context: Arc::new(Context { primary, info }),
        })
    }

    /// Properties of this GPU.
    pub fn info(&self) -> &DeviceInfo {
        self.context.info()
    }

    /// Lets this GPU read and write the memory of another directly, if there is such a way; returns
    /// whether there is. Without it, [copies](DeviceMemory::copy_from) go through the host.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn reach(&self, other: &Gpu) -> Result<bool, DriverError> {
        if self.context.raw() == other.context.raw() {
            return Ok(true);
        }
        let (from, to) = (self.info().ordinal, other.info().ordinal);
        let doing = |error: DriverError| error.doing(format!("letting GPU {from} reach GPU {to}"));
        let ends = [open_device(from)?.0, open_device(to)?.0].map(|device| device.as_raw());
        let mut can = 0;
        // SAFETY: both devices exist and `can` is a valid place for the answer.
        let result = unsafe { sys::cuDeviceCanAccessPeer(&mut can, ends[0], ends[1]) };
        check("cuDeviceCanAccessPeer", result).map_err(doing)?;
        if can == 0 {
            return Ok(false);
        }
        self.context.bind()?;
        // SAFETY: this context is current, and the other is retained as long as `other`. That it may go
        // first is no harm: a way to a context that is gone goes with it.
        let result = unsafe { sys::cuCtxEnablePeerAccess(other.context.raw(), 0) };
        match result {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            CUresult::CUDA_ERROR_TOO_MANY_PEERS => Ok(false),
            result => check("cuCtxEnablePeerAccess", result)
                .map(|()| true)
                .map_err(doing),
        }
    }

    /// Free and total memory, bytes.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn memory_info(&self) -> Result<(usize, usize), DriverError> {
        self.context.memory_info()
    }

    /// Waits until the GPU has done everything that was asked of it.
    ///
    /// # Errors
    ///
    /// The first failure of any queued work that has not been reported yet.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.context.synchronize()
    }

    /// Compiles PTX for this GPU and loads it. `name` is used in errors.
    ///
    /// # Errors
    ///
    /// With the log of the driver's compiler. Code 222 means that the driver is older than the
    /// PTX, 218 that the PTX is faulty, 200 that it is none.
    pub fn load_ptx(&self, name: &str, ptx: &str) -> Result<Module, DriverError> {
        Module::load(&self.context, name, ptx)
    }

    /// A new stream, independent of all others.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn stream(&self) -> Result<Stream, DriverError> {
        Stream::new(&self.context)
    }

    /// A new event for ordering streams.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn event(&self) -> Result<Event, DriverError> {
        Event::new(&self.context, false)
    }

    /// A new event that also notes the time.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn timed_event(&self) -> Result<Event, DriverError> {
        Event::new(&self.context, true)
    }

    /// Reserves `bytes` of the GPU's memory; the contents are arbitrary. Zero bytes are allowed.
    ///
    /// # Errors
    ///
    /// Code 2 if there is not enough, with what was asked and what is free.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceMemory, DriverError> {
        DeviceMemory::new(&self.context, bytes)
    }

    /// Reserves `bytes` of page-locked host memory that the GPU reads and writes across the bus, where
    /// they lie, all zero. Zero bytes are allowed.
    ///
    /// # Errors
    ///
    /// Code 2 if the host has not enough memory that can be locked, with what was asked.
    pub fn mapped(&self, bytes: usize) -> Result<DeviceMemory, DriverError> {
        DeviceMemory::mapped(&self.context, bytes)
    }

    /// CUDA's library for linear algebra, to queue its work on `stream`.
    ///
    /// # Errors
    ///
    /// If there is no such library (see [`blas_library`](crate::blas_library)), or it refuses.
    pub fn blas(&self, stream: &Stream) -> Result<Blas, BlasError> {
        Blas::new(self, stream)
    }

    /// Joins a communicator of so many members as number `member`, and waits for the others. Each is of
    /// another process.
    ///
    /// # Errors
    ///
    /// If there is no NCCL (see [`nccl_version`](crate::nccl_version)), or it refuses: as where two members
    /// are on one GPU.
    pub fn communicator(
        &self,
        id: &CommunicatorId,
        member: usize,
        members: usize,
    ) -> Result<Communicator, NcclError> {
        Communicator::new(self, id, [member, members])
    }

    pub(crate) fn bind(&self) -> Result<(), DriverError> {
        self.context.bind()
    }

    /// Reserves page-locked host memory for `len` elements, all zero. Zero elements are allowed.
    ///
    /// # Errors
    ///
    /// Code 2 if the host has not enough memory that can be locked, with what was asked.
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<PinnedMemory<T>, DriverError> {
        PinnedMemory::new(&self.context, len)
    }

    /// Queues a kernel on `stream`.
    ///
    /// `args` holds one pointer for each parameter of the kernel, to a value of its type; the
    /// driver copies the values before this returns. `grid` is in blocks, `block` in threads.
    ///
    /// # Errors
    ///
    /// The number of arguments is checked where the driver can tell it (CUDA 12.4 and later). The
    /// driver refuses bad geometry; an unreported failure of earlier work may also surface here.
    /// A failure inside the kernel is reported by the next call that waits.
    ///
    /// # Safety
    ///
    /// `args` must match the kernel's parameters in number, order and type; pointers among the
    /// values must stay valid until the kernel is done, and the kernel must stay within them, run
    /// without a data race and reach its barriers and warp collectives with all threads for this
    /// geometry. Function and stream must belong to this GPU.
    pub unsafe fn launch(
        &self,
        function: &Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        stream: &Stream,
        args: &mut [*mut c_void],
    ) -> Result<(), DriverError> {
        let kernel = function.name();
        if let Some(sizes) = function.parameter_sizes()
            && sizes.len() != args.len()
        {
            let (wanted, given) = (sizes.len(), args.len());
            let reason = format!("launching `{kernel}`: it takes {wanted} arguments, not {given}");
            return Err(DriverError::refused("cuLaunchKernel", reason));
        }
        self.context.bind()?;
        // SAFETY: the handles are alive; the rest is the caller's promise.
        let result = unsafe {
            sys::cuLaunchKernel(
                function.raw(),
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared_bytes,
                stream.raw(),
                args.as_mut_ptr(),
                null_mut(),
            )
        };
        check("cuLaunchKernel", result).map_err(|error| {
            error.doing(format!(
                "launching `{kernel}` with grid {grid:?}, block {block:?} and {shared_bytes} bytes \
                 of dynamic shared memory"
            ))
        })
    }
}
