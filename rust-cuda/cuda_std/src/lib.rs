//! Library of device code — thread indices, barriers, warp collectives, shared and global memory, GPU
//! arithmetic — under the names of Rust-CUDA's `cuda_std`, on rustc's own `nvptx64-nvidia-cuda` target.
//!
//! There are two backends behind one `cfg`, here and nowhere else: on the device, intrinsics and
//! inline PTX; everywhere else the emulator (module `emu`), which runs the same
//! kernel source on the CPU with real barriers and reports errors that a GPU does not notice.
//! Kernel source has no `cfg` of its own.
//!
//! | module | contents |
//! |---|---|
//! | [`thread`] | indices, block barriers |
//! | [`warp`] | lane, shuffles, votes, warp barrier |
//! | [`matrix`] | matrix products by a warp, on tensor cores |
//! | [`shared`] | dynamic shared memory through a typed handle |
//! | [`constant`] | the module's constant memory |
//! | [`global`] | loads, stores and reductions to global memory |
//! | [`float`] | `GpuFloat`: fused multiply–add, exact and approximate 1/√; native `f16` |
//! | [`vector`] | 16-byte aligned vectors that move as one access |
//!
//! Denormal flushing (`.ftz`) is a property of a build, not of source: see `cuda_builder`.
#![cfg_attr(
    target_arch = "nvptx64",
    no_std,
    allow(internal_features),
    feature(
        stdarch_nvptx,
        asm_experimental_arch,
        core_intrinsics,
        link_llvm_intrinsics,
        f16
    )
)]

#[cfg(target_arch = "nvptx64")]
#[path = "device.rs"]
mod backend;
#[cfg(not(target_arch = "nvptx64"))]
#[path = "host.rs"]
mod backend;
#[cfg(not(target_arch = "nvptx64"))]
pub mod emu;

pub mod constant;
pub mod float;
pub mod global;
pub mod matrix;
pub mod shared;
pub mod thread;
pub mod vector;
pub mod warp;

pub use cuda_std_macros::kernel;
pub use float::{GpuFloat, f16};

/// Returns `x` as a value that the compiler knows nothing about: a loop with this bound has no trip
/// count that it could be unrolled by.
#[inline(always)]
pub fn opaque(x: u32) -> u32 {
    backend::opaque(x)
}

/// `Some(expression)` off the device and `None` on it, where the expression is not compiled:
/// for tables that pair a kernel with a way to call it on the emulator.
#[cfg(not(target_arch = "nvptx64"))]
#[macro_export]
macro_rules! emulated {
    ($call:expr) => {
        ::core::option::Option::Some($call)
    };
}

/// `Some(expression)` off the device and `None` on it, where the expression is not compiled:
/// for tables that pair a kernel with a way to call it on the emulator.
#[cfg(target_arch = "nvptx64")]
#[macro_export]
macro_rules! emulated {
    ($call:expr) => {
        ::core::option::Option::None
    };
}

/// Declares, once at the root of a kernel crate, the parts that every PTX module needs: the name of the
/// dynamic shared memory, aligned for the widest access and sized by each launch, the module's constant
/// memory, and a panic handler (never reached: panics are compiled to traps). Nothing off the device.
#[cfg(target_arch = "nvptx64")]
#[macro_export]
macro_rules! module {
    () => {
        ::core::arch::global_asm!(
            ".extern .shared .align 16 .b8 dynamic_shared_memory[];",
            ".visible .const .align 8 .b8 constant_memory[{}];",
            const $crate::constant::BYTES,
        );

        #[panic_handler]
        fn panic(_: &::core::panic::PanicInfo<'_>) -> ! {
            loop {}
        }
    };
}

/// Declares, once at the root of a kernel crate, the parts that every PTX module needs. Nothing off the
/// device.
#[cfg(not(target_arch = "nvptx64"))]
#[macro_export]
macro_rules! module {
    () => {};
}
