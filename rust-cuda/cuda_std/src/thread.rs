//! Where a thread stands in its grid, and the barrier of its block.

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

/// Limits the kernel that this is inlined in to `MOST` registers a thread, on the device: what does
/// not fit is spilled to memory. `cuda_builder` makes the entry's `.maxnreg` of it.
#[inline(always)]
pub fn limit_registers<const MOST: u32>() {
    backend::limit_registers::<MOST>();
}

/// Waits until every thread of the block is here; what they wrote before is visible after.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    backend::sync_threads();
}

/// [`sync_threads`], and the number of threads of the block whose `predicate` held.
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    backend::sync_threads_count(predicate)
}
