//! Indices of a thread, and the barriers of its block.

use cuda_std::emu;
use glam::{UVec2, UVec3};

macro_rules! indices {
    ($($(#[$doc:meta])* $whole:ident: $x:ident, $y:ident, $z:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $whole() -> UVec3 {
            UVec3::new($x(), $y(), $z())
        }
        indices!(@ $whole $x 0 "first", $whole $y 1 "second", $whole $z 2 "third");
    )*};
    (@ $($whole:ident $axis:ident $number:literal $word:literal),*) => {$(
        #[doc = concat!("[`", stringify!($whole), "`] along the ", $word, " axis.")]
        #[inline]
        #[track_caller]
        pub fn $axis() -> u32 {
            emu::$whole($number)
        }
    )*};
}

indices! {
    /// Index of this thread in its block.
    thread_idx: thread_idx_x, thread_idx_y, thread_idx_z;
    /// Index of this block in the grid.
    block_idx: block_idx_x, block_idx_y, block_idx_z;
    /// Threads of a block.
    block_dim: block_dim_x, block_dim_y, block_dim_z;
    /// Blocks of the grid.
    grid_dim: grid_dim_x, grid_dim_y, grid_dim_z;
}

/// Number of this thread in the grid: blocks after blocks, and in each the first axis first.
#[track_caller]
pub fn index() -> u32 {
    let (grid, block) = (grid_dim(), block_dim());
    let (of_block, of_thread) = (block_idx(), thread_idx());
    let blocks = of_block.x + grid.x * (of_block.y + grid.y * of_block.z);
    let threads = of_thread.x + block.x * (of_thread.y + block.y * of_thread.z);
    blocks * block.x * block.y * block.z + threads
}

/// Index of this thread in a grid of one dimension.
#[inline]
#[track_caller]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// Index of this thread in a grid of two dimensions.
#[track_caller]
pub fn index_2d() -> UVec2 {
    UVec2::new(index_1d(), block_idx_y() * block_dim_y() + thread_idx_y())
}

/// Index of this thread in a grid of three dimensions.
#[track_caller]
pub fn index_3d() -> UVec3 {
    let z = block_idx_z() * block_dim_z() + thread_idx_z();
    UVec3::new(
        index_1d(),
        block_idx_y() * block_dim_y() + thread_idx_y(),
        z,
    )
}

/// True of the first thread of the grid.
#[track_caller]
pub fn first() -> bool {
    block_idx() == UVec3::ZERO && thread_idx() == UVec3::ZERO
}

/// Threads of a warp.
pub fn warp_size() -> u32 {
    32
}

/// Waits for all threads of the block.
#[inline]
#[track_caller]
pub fn sync_threads() {
    emu::sync_threads();
}

/// Waits for all threads of the block, and counts those that pass something but 0.
#[inline]
#[track_caller]
pub fn sync_threads_count(predicate: u32) -> u32 {
    emu::sync_threads_count(predicate != 0)
}

/// Waits for all threads of the block; 1 if all of them pass something but 0, else 0.
#[track_caller]
pub fn sync_threads_and(predicate: u32) -> u32 {
    u32::from(emu::sync_threads_count(predicate == 0) == 0)
}

/// Waits for all threads of the block; 1 if one of them passes something but 0, else 0.
#[track_caller]
pub fn sync_threads_or(predicate: u32) -> u32 {
    u32::from(emu::sync_threads_count(predicate != 0) != 0)
}

/// Orders nothing here: threads of the emulator see each other's writes at once, and a fence without an atomic
/// orders no two threads.
pub fn grid_fence() {}

/// Orders nothing here: see [`grid_fence`].
pub fn device_fence() {}

/// Orders nothing here: see [`grid_fence`].
pub fn system_fence() {}

/// Returns at once.
pub fn nanosleep(_: u32) {}
