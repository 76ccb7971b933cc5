//! Runs kernels that are written for Rust-CUDA's `cuda_std` on a CPU, unchanged, in `cargo test`; and finds
//! what a GPU does not report: races with both lines of source, divergent barriers, shared memory that is read
//! before it is written, and accesses out of bounds.
//!
//! A kernel crate depends on it under the name that its source has:
//!
//! ```toml
//! [target.'cfg(target_os = "cuda")'.dependencies]
//! cuda_std = "0.2"
//! [target.'cfg(not(target_os = "cuda"))'.dependencies]
//! cuda_std = { package = "allpairs-cuda-emulator", version = "0.2" }
//! ```
//!
//! A test then makes [`Buffer`](emu::Buffer)s and a [`Launch`](emu::Launch):
//!
//! ```
//! extern crate cuda_emulator as cuda_std;
//! use cuda_std::emu::{Buffer, Launch};
//! use cuda_std::prelude::*;
//!
//! #[kernel]
//! pub unsafe fn double(x: *mut f32, n: usize) {
//!     let i = thread::index_1d() as usize;
//!     if i < n {
//!         *x.add(i) *= 2.0;
//!     }
//! }
//!
//! # fn main() -> Result<(), cuda_std::emu::Failure> {
//! let x = Buffer::new("x", vec![1.0_f32; 100]);
//! Launch::new(4, 32).run(|| unsafe { double(x.pointer(), x.len()) })?;
//! assert_eq!(x.to_vec(), [2.0; 100]);
//! # Ok(())
//! # }
//! ```
//!
//! The attributes [`kernel`] and [`checked`] rewrite a function such that the emulator knows of its accesses to memory.
//! Functions without them run as they are: their accesses are not checked.
//!
//! A kernel is an `unsafe fn`, which is not generic and returns nothing:
//! ```compile_fail
//! # extern crate cuda_emulator as cuda_std;
//! #[cuda_std::kernel]
//! pub fn safe(x: *mut f32) {}
//! ```
//! A `static` in shared memory has to be inside a rewritten function:
//! ```compile_fail
//! # extern crate cuda_emulator as cuda_std;
//! #[cuda_std::address_space(shared)]
//! static mut TILE: [f32; 64] = [0.0; 64];
//! ```
//!
//! The threads run in the emulator of this workspace's own `cuda_std`: real barriers, and an order that a seed permutes.

pub mod atomic;
#[doc(hidden)]
pub mod checked;
pub mod emu;
mod float;
pub mod shared;
pub mod thread;
pub mod warp;

pub use cuda_emulator_macros::{address_space, checked, externally_visible, gpu_only, kernel};
pub use float::GpuFloat;
pub use glam;
pub use half::{self, bf16, f16};
pub use std::{assert_eq, assert_ne, print, println};

/// The names that kernels import.
pub mod prelude {
    pub use crate::{f16, kernel, thread};
    pub use std::borrow::ToOwned;
    pub use std::boxed::Box;
    pub use std::format;
    pub use std::rc::Rc;
    pub use std::string::{String, ToString};
    pub use std::vec::Vec;
    pub use std::{assert_eq, assert_ne, print, println};
}
