//! Kernels as they are written for Rust-CUDA: these files would compile for a GPU as they are.
// Rust-CUDA's examples have no `unsafe` inside of an `unsafe fn`, and no comments about it.
#![allow(
    missing_docs,
    unsafe_op_in_unsafe_fn,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::undocumented_unsafe_blocks,
    unreachable_pub
)]

pub mod add;
pub mod forms;
pub mod matrix;
pub mod sum;
pub mod wrong;
