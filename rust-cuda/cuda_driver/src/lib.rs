//! The CUDA driver, found when it is needed.
//!
//! `cust` is the host side of Rust-CUDA. Its published version has to be linked with `libcuda`,
//! so a program built on it needs CUDA to build and an NVIDIA driver to start. With this crate it
//! needs neither: the driver's functions are defined here and passed on to `libcuda.so.1`, which
//! is looked for at the first call ([`library`]). The same place makes result codes safe that are
//! newer than `cust`'s enums. Any crate that uses `cust` only has to depend on this one.
//!
//! The feature `cust` takes contexts, devices and modules from that crate. It is on in Allpairs' workspace. The
//! `Cargo.toml` there replaces the build helper of `cust`, which asks for an installed CUDA toolkit. Without
//! the feature, as in packages from a registry, this crate makes the ten calls of the driver itself
//! (`src/stand_in.rs`). All that is below is the same.
//!
//! On top of `cust` there is what it lacks or gets wrong:
//!
//! | want | use | because `cust`'s |
//! |---|---|---|
//! | is there a GPU, and if not why | [`devices`] | errors do not tell |
//! | a context | [`Gpu::open`] | objects do not make their context current |
//! | a module | [`Gpu::load_ptx`] | `Module` drops the compiler's log and code 222 |
//! | a stream | [`Gpu::stream`] | `Stream::new` drops `NON_BLOCKING` |
//! | an event | [`Gpu::event`], [`Gpu::timed_event`] | `wait_event` consumes it |
//! | device memory | [`Gpu::allocate`] | synchronous copies use the legacy stream |
//! | copies between GPUs | [`DeviceMemory::copy_from`], [`Gpu::reach`], [`link`] | has none |
//! | pinned host memory | [`Gpu::pinned`] | `LockedBuffer` may be freed during a copy |
//! | host memory that the GPU works on | [`Gpu::mapped`] | `DeviceCopy` pointers outlive it |
//! | more than 48 KiB shared memory | [`Function::set_max_dynamic_shared`] | has no such call |
//!
//! The rest of `cust` works next to it, in the same (primary) context. Raw calls are in
//! `cust::sys`. Of its 353 functions those are defined that are used (`src/symbols.rs`, `src/symbols_of_cust.rs`): a call
//! of another does not link until its line is added. Calls newer than CUDA 11.4 come by [`symbol`]. Never use
//! `DeviceBuffer::cast` (a double free if sizes differ), `DeviceBuffer::zeroed(0)`, nor the option
//! `DetermineTargetFromContext` (reads beyond its arrays).
//!
//! And cuBLAS and NCCL, found in the same way ([`blas_library`], [`nccl_version`]): [`Gpu::blas`],
//! [`Gpu::communicator`].
//!
//! # Threads
//!
//! Everything that a [`Gpu`] makes can be sent to another thread; each call makes the GPU's context current where it
//! is made. Memory is not shared between threads: what guards it against the host is no lock.
//! ```
//! fn can_be_sent(_: impl Send) {}
//! fn try_it(gpu: cuda_driver::Gpu, memory: cuda_driver::DeviceMemory) { can_be_sent((gpu, memory)) }
//! ```
//! ```compile_fail,E0277
//! fn can_be_shared(_: impl Sync) {}
//! fn try_it(memory: cuda_driver::DeviceMemory) { can_be_shared(memory) }
//! ```
//! While a thread records work, what another launches in the same stream would be recorded with it: let
//! each thread have streams of its own. A thread may open several GPUs.
//!
//! # Example
//!
//! ```no_run
//! use std::ffi::c_void;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let ptx = "";
//! let first = &cuda_driver::devices()?[0];
//! let gpu = cuda_driver::Gpu::open(first.ordinal)?;
//! let kernel = gpu.load_ptx("example", ptx)?.function("add_one")?;
//! let stream = gpu.stream()?;
//!
//! let mut numbers = [1_u32, 2, 3];
//! let memory = gpu.allocate(size_of_val(&numbers))?;
//! memory.upload(0, &numbers, &stream)?;
//! let (mut pointer, mut count) = (memory.pointer(), numbers.len() as u32);
//! let mut args = [(&raw mut pointer).cast::<c_void>(), (&raw mut count).cast()];
//! // SAFETY: `add_one` takes a pointer to `count` numbers and `count`.
//! unsafe { gpu.launch(&kernel, [1, 1, 1], [32, 1, 1], 0, &stream, &mut args)? };
//! memory.download(0, &mut numbers, &stream)?;
//! assert_eq!(numbers, [2, 3, 4]);
//! # Ok(())
//! # }
//! ```

mod blas;
mod device;
mod error;
mod graph;
mod library;
mod memory;
mod module;
mod nccl;
mod pinned;
mod shim;
#[cfg(not(feature = "cust"))]
mod stand_in;
mod stream;
mod sys;

#[cfg(feature = "cust")]
pub use cust;
#[cfg(not(feature = "cust"))]
use stand_in as cust;

pub use blas::{BLAS_VARIABLE, Blas, BlasError, Columns, blas_library};
pub use device::{DeviceInfo, Gpu, Link, devices, keeping_context, link};
pub use error::{DriverError, LibraryAttempt, NoGpu, NoLibrary};
pub use graph::Graph;
pub use memory::DeviceMemory;
pub use module::{Function, FunctionAttributes, Module};
pub use nccl::{
    Communicator, CommunicatorId, NCCL_VARIABLE, NcclError, NcclVersion, Piece, nccl_version,
};
pub use pinned::PinnedMemory;
pub use shim::{LIBRARY_VARIABLE, last_error_code, library, symbol};
pub use stream::{Event, Stream};
