//! Indices of a thread in its grid, and the barriers of its block.
//!
//! # Barriers are collective
//!
//! All threads of the block must reach the same call of a barrier, the same number of times: none may
//! have returned, none may be at another barrier, and no branch that only some of them take may lead
//! there. To see to that is the duty of whoever writes the kernel. On a GPU a block whose threads
//! diverge hangs, or runs on with its barriers out of step; on the emulator it ends the launch with a
//! [fault](crate::emu::Fault), in every order of the threads.
//!
//! The functions are not `unsafe` all the same, as in Rust-CUDA: device code starts in an entry that
//! is an `unsafe fn`, and only an `unsafe` launch starts it, whose caller vouches for the kernel as a
//! whole. A promise at each barrier would say nothing that this one does not.

use crate::backend;

/// Index of this thread in its block, first axis.
#[inline(always)]
#[track_caller]
pub fn thread_idx_x() -> u32 {
    backend::thread_idx(0)
}

/// Index of this thread in its block, second axis.
#[inline(always)]
#[track_caller]
pub fn thread_idx_y() -> u32 {
    backend::thread_idx(1)
}

/// Index of this block in the grid, first axis.
#[inline(always)]
#[track_caller]
pub fn block_idx_x() -> u32 {
    backend::block_idx(0)
}

/// Index of this block in the grid, second axis.
#[inline(always)]
#[track_caller]
pub fn block_idx_y() -> u32 {
    backend::block_idx(1)
}

/// Threads in a block, first axis.
#[inline(always)]
#[track_caller]
pub fn block_dim_x() -> u32 {
    backend::block_dim(0)
}

/// Threads in a block, second axis.
#[inline(always)]
#[track_caller]
pub fn block_dim_y() -> u32 {
    backend::block_dim(1)
}

/// Blocks in the grid, first axis.
#[inline(always)]
#[track_caller]
pub fn grid_dim_x() -> u32 {
    backend::grid_dim(0)
}

/// Blocks in the grid, second axis.
#[inline(always)]
#[track_caller]
pub fn grid_dim_y() -> u32 {
    backend::grid_dim(1)
}

/// Index of this thread in a one-dimensional grid of one-dimensional blocks.
#[inline(always)]
#[track_caller]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// Limits the kernel that this is inlined in to `MOST` registers per thread, on the device: values
/// that do not fit are spilled to memory. `cuda_builder` makes the entry's `.maxnreg` of it.
#[inline(always)]
pub fn limit_registers<const MOST: u32>() {
    backend::limit_registers::<MOST>();
}

/// Waits until every thread of the block is here; memory that they wrote before is visible after.
/// [Collective](self#barriers-are-collective).
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    backend::sync_threads();
}

/// [`sync_threads`], and the number of threads of the block whose `predicate` held.
/// [Collective](self#barriers-are-collective).
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    backend::sync_threads_count(predicate)
}
