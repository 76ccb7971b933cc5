//! Runs kernels on the CPU as a CUDA device would, and reports errors that a device does not notice.
//!
//! [`launch()`] runs a kernel once for every thread of a grid. Blocks run one after another; the
//! threads of a block are fibres of one OS thread that take turns at barriers, in an order that a
//! seed permutes. So a run can be repeated exactly, and `cargo test` may run many at once.
//!
//! The functions here are what the rest of this crate calls off the device. Each access to memory
//! is checked. These end the launch with a [`Fault`] that names the kernel, block, thread and place
//! in memory:
//!
//! * a barrier or warp collective that some thread never reaches;
//! * shared memory that is read before the block has written it;
//! * accesses out of bounds, misaligned, or writing to a read-only region;
//! * races: two accesses of different threads to one place, one of them a plain write, which no
//!   barrier orders. Atomics do not race with each other and order nothing. All races of a run are
//!   found, in whatever order its threads took turns;
//! * panics in the kernel.
//!
//! Not emulated: the rounding of approximate instructions, the order in which a device
//! performs atomics, and speed. Fibres are not preempted: a thread that spins until another sets
//! a flag hangs. Faults unwind, so the program must not be built with `panic = "abort"`.

mod context;
mod fault;
mod launch;
mod memory;
mod order;
mod panics;
mod region;
mod scheduler;
mod shadow;
mod stacks;
#[cfg(test)]
mod tests;
mod warp;

use std::panic::Location;

use context::with;
use memory::Attempt;
use warp::WARP;

pub use context::Pointer;
pub use fault::{Access, Collective, Fault, Place, Spot, Whereabouts};
pub use launch::{Launch, launch};
pub use region::Region;

/// True while this OS thread runs a kernel.
#[inline]
pub fn is_running() -> bool {
    context::in_kernel()
}

/// Checks an access that the kernel makes itself: to `bytes` bytes at an address of the host. What the
/// running thread keeps on its stack is its own, and needs no check.
#[inline]
#[track_caller]
pub fn touch(access: Access, address: usize, bytes: usize, alignment: usize, pointer: Pointer) {
    let attempt = Attempt {
        access,
        address,
        bytes,
        alignment,
    };
    let at = Location::caller();
    with(|context| context.touch(attempt, pointer, at));
}

/// Checks that the kernel may make a reference for such accesses: [`touch`] with neither contents nor order.
#[inline]
#[track_caller]
pub fn borrow(access: Access, address: usize, bytes: usize, alignment: usize, pointer: Pointer) {
    let attempt = Attempt {
        access,
        address,
        bytes,
        alignment,
    };
    let at = Location::caller();
    with(|context| context.borrow(attempt, pointer, at));
}

/// First byte of the block's dynamic shared memory, for accesses that are checked by [`touch`].
#[track_caller]
pub fn shared_pointer() -> *mut u8 {
    with(|context| context.shared_pointer())
}

/// First byte of an array of `bytes` bytes in the block's static shared memory, for accesses that are
/// checked by [`touch`]. An array is known by its `site`, and is aligned to 16 bytes.
#[track_caller]
pub fn shared_array(site: &'static std::sync::atomic::AtomicU8, bytes: usize) -> *mut u8 {
    let at = Location::caller();
    let site = std::ptr::from_ref(site).addr();
    with(|context| context.array(site, bytes, at))
}

/// Index of the running thread in its block along `axis` (0, 1 or 2).
///
/// # Panics
/// Outside of a launch, like every function that a kernel calls.
#[inline]
#[track_caller]
pub fn thread_idx(axis: usize) -> u32 {
    with(|context| context.thread_idx()[axis])
}

/// Index of the running thread in its warp: threads are counted along the first axis first.
#[inline]
#[track_caller]
pub fn lane_id() -> u32 {
    with(|context| context.lane())
}

/// Index of the running block in the grid along `axis`.
#[inline]
#[track_caller]
pub fn block_idx(axis: usize) -> u32 {
    with(|context| context.block_idx()[axis])
}

/// Threads of a block along `axis`.
#[inline]
#[track_caller]
pub fn block_dim(axis: usize) -> u32 {
    with(|context| context.launch().block[axis])
}

/// Blocks of the grid along `axis`.
#[inline]
#[track_caller]
pub fn grid_dim(axis: usize) -> u32 {
    with(|context| context.launch().grid[axis])
}

/// Waits for all threads of the block.
#[inline]
#[track_caller]
pub fn sync_threads() {
    let at = Location::caller();
    with(|context| context.meet(Collective::SyncThreads, at));
}

/// Waits for all threads of the block and returns how many of them passed `true`.
#[inline]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    let at = Location::caller();
    with(|context| context.count(predicate, at))
}

/// Waits for all threads of the warp.
#[inline]
#[track_caller]
pub fn sync_warp() {
    let at = Location::caller();
    with(|context| context.meet(Collective::SyncWarp, at));
}

/// Bit `l` of the result is the predicate of lane `l`; 0 for lanes that a partial last warp lacks.
#[inline]
#[track_caller]
pub fn ballot(predicate: bool) -> u32 {
    let at = Location::caller();
    with(|context| {
        context.post(Collective::Ballot, &[predicate.into()], at, |votes, _| {
            votes
                .iter()
                .enumerate()
                .fold(0, |bits, (lane, vote)| bits | vote << lane)
        })
    })
}

/// The `value` that lane `lane` mod 32 passed. A fault if that lane does not exist.
#[inline]
#[track_caller]
pub fn shuffle_idx(value: u32, lane: u32) -> u32 {
    shuffle([value], lane, Location::caller())[0]
}

/// [`shuffle_idx`] of 64 bits.
#[inline]
#[track_caller]
pub fn shuffle_idx_u64(value: u64, lane: u32) -> u64 {
    let words = [value as u32, (value >> 32) as u32];
    let [low, high] = shuffle(words, lane, Location::caller()).map(u64::from);
    low | high << 32
}

fn shuffle<const N: usize>(value: [u32; N], lane: u32, at: &'static Location<'static>) -> [u32; N] {
    let lane = lane % WARP as u32;
    with(|context| {
        let collective = Collective::Shuffle { words: N };
        let found = context.post(collective, &value, at, |values, width| {
            values
                .as_chunks()
                .0
                .get(lane as usize)
                .copied()
                .ok_or(width)
        });
        found.unwrap_or_else(|width| context.missing_lane(lane, width, at))
    })
}

/// Gives every lane of the warp the payloads of all lanes, zeros for lanes that a partial last warp
/// lacks. Collective instructions that have no function of their own can be built from it.
#[inline]
#[track_caller]
pub fn exchange<const N: usize>(payload: [u32; N]) -> [[u32; N]; 32] {
    let at = Location::caller();
    with(|context| {
        context.post(
            Collective::Exchange { words: N },
            &payload,
            at,
            |payloads, width| {
                let mut all = [[0; N]; WARP];
                all[..width].as_flattened_mut().copy_from_slice(payloads);
                all
            },
        )
    })
}

/// Reads the block's shared memory at byte `address`.
///
/// # Safety
/// The bytes that the block wrote there must be a valid `T`.
#[inline]
#[track_caller]
pub unsafe fn shared_load<T: Copy>(address: u32) -> T {
    let at = Location::caller();
    let attempt = Attempt::of::<T>(Access::Read, address as usize);
    let bytes = with(|context| context.shared(attempt, at));
    // SAFETY: the check has passed: `bytes` points to `size_of::<T>()` bytes of the launch's
    // shared memory, which the block has written.
    unsafe { bytes.cast::<T>().read_unaligned() }
}

/// Writes the block's shared memory at byte `address`.
///
/// # Safety
/// `T` must have no padding if it is read as another type.
#[inline]
#[track_caller]
pub unsafe fn shared_store<T: Copy>(address: u32, value: T) {
    let at = Location::caller();
    let attempt = Attempt::of::<T>(Access::Write, address as usize);
    let bytes = with(|context| context.shared(attempt, at));
    // SAFETY: the check has passed: `bytes` points to `size_of::<T>()` bytes of the launch's
    // shared memory, to which no reference exists.
    unsafe { bytes.cast::<T>().write_unaligned(value) }
}

/// Replaces the value at byte `address` of the block's shared memory by `f` of it, as one step, and
/// returns the old value.
///
/// # Safety
/// As for [`shared_load`] and [`shared_store`].
#[inline]
#[track_caller]
pub unsafe fn shared_atomic<T: Copy>(address: u32, f: impl FnOnce(T) -> T) -> T {
    let at = Location::caller();
    let attempt = Attempt::of::<T>(Access::Atomic, address as usize);
    let bytes = with(|context| context.shared(attempt, at)).cast::<T>();
    // SAFETY: as in `shared_load`.
    let old = unsafe { bytes.read_unaligned() };
    let new = f(old);
    // SAFETY: as in `shared_store`.
    unsafe { bytes.write_unaligned(new) };
    old
}

/// Reads global memory.
///
/// # Safety
/// If `pointer` is to bytes of one of the launch's regions, it must derive from
/// [`Region::pointer`], or be of an address that the host has exposed of the buffer, and those bytes
/// be a valid `T`. Every other pointer is a fault.
#[inline]
#[track_caller]
pub unsafe fn global_load<T: Copy>(pointer: *const T) -> T {
    let at = Location::caller();
    let attempt = Attempt::of::<T>(Access::Read, pointer.addr());
    with(|context| context.global(attempt, at));
    // SAFETY: the check has passed: the bytes are in a region, whose buffer is borrowed for the
    // launch; the rest is the caller's promise. The host's buffer may be aligned less than a
    // device's, so alignment counts from the region's start.
    unsafe { pointer.read_unaligned() }
}

/// Writes global memory.
///
/// # Safety
/// If `pointer` is to bytes of one of the launch's regions, it must derive from
/// [`Region::pointer`] and `value` be valid for the type of the host's buffer. Every other pointer
/// is a fault.
#[inline]
#[track_caller]
pub unsafe fn global_store<T: Copy>(pointer: *mut T, value: T) {
    let at = Location::caller();
    let attempt = Attempt::of::<T>(Access::Write, pointer.addr());
    with(|context| context.global(attempt, at));
    // SAFETY: as in `global_load`; the check has found the region writable, hence borrowed
    // exclusively.
    unsafe { pointer.write_unaligned(value) }
}

/// Replaces the value at `pointer` by `f` of it, as one step, and returns the old value.
///
/// # Safety
/// As for [`global_load`] and [`global_store`].
#[inline]
#[track_caller]
pub unsafe fn global_atomic<T: Copy>(pointer: *mut T, f: impl FnOnce(T) -> T) -> T {
    let at = Location::caller();
    let attempt = Attempt::of::<T>(Access::Atomic, pointer.addr());
    with(|context| context.global(attempt, at));
    // SAFETY: as in `global_load`.
    let old = unsafe { pointer.read_unaligned() };
    let new = f(old);
    // SAFETY: as in `global_store`.
    unsafe { pointer.write_unaligned(new) };
    old
}
