//! The kernels of Allpairs, compiled to PTX for the GPU and, as an ordinary library, for the CPU:
//! there the host reads the list of entry points, shares types and constants with the kernels, and
//! runs the same source on the emulator.
//!
//! One algorithm per file in [`schedule`], generic over three choices that are made elsewhere:
//! the [law](interaction::Law) and its arithmetic ([`numerics`]), the [layout](layout::Layout) of
//! the bodies in memory, and the unroll factor. [`entries`] lists the combinations that exist as
//! compiled entry points. Nothing here knows of streams, devices or files.
#![cfg_attr(
    target_arch = "nvptx64",
    no_std,
    feature(abi_ptx, asm_experimental_arch, f16)
)]

pub mod abi;
pub mod double_single;
pub mod entries;
pub mod fields;
pub mod hermite;
pub mod hermite6;
pub mod interaction;
pub mod layout;
pub mod neighbour_scheme;
pub mod numerics;
pub mod operations;
pub mod schedule;
pub mod tile;

cuda_std::module!();
