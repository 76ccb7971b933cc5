//! Radix sort, the lowest digit first: one pass sorts by eight bits of a key.
//!
//! Keys keep their order where these bits are equal, so sorting by all digits, the lowest first,
//! sorts by the whole key. Each pass shifts its digit out of the key, and the next finds its own
//! in the same place.
//!
//! # Cost
//!
//! [`count`] and [`scatter`] are parallel over all tiles of 2048 keys. [`scan`] is one block of 1024
//! threads, which reads and writes 256 counters per tile: n/8 numbers, 122 rounds of 32 to each warp
//! for every 10⁶ bodies. At 262 144 bodies that is 32 768 counters, 32 to a thread, and no matter. At
//! 10⁷ it is 1.25 · 10⁶, 1221 to a thread one after another on a single multiprocessor, 5 MB read
//! twice and written once in each of the 4 passes, while all others wait. The forces among 10⁷ bodies
//! take 10¹⁴ interactions, beside which even that is nothing; a sort for its own sake would scan with
//! decoupled look-back (Merrill & Garland 2016, NVIDIA NVR-2016-002).

use crate::abi::Params;
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::warp::{self, Shuffle, WARP_SIZE, up_to_lane};
use cuda_std::{global, thread};

/// Values of a digit, 8 bits.
pub const DIGITS: u32 = 256;

/// Digits of a key.
pub const PASSES: u32 = (3 * super::BITS).div_ceil(DIGITS.ilog2());

/// Threads of the blocks of [`count`] and [`scatter`].
pub const SORT_THREADS: u32 = 256;

/// Keys of a block of [`count`] and [`scatter`].
pub const TILE: u32 = 2048;

/// Shared memory of [`count`] and [`scatter`], bytes: a counter for each warp and digit.
pub const SORT_SHARED_BYTES: u32 = WARPS * DIGITS * size_of::<u32>() as u32;

/// Threads of the one block of [`scan`].
pub const SCAN_THREADS: u32 = 1024;

/// Shared memory of [`scan`], bytes: a sum for each warp.
pub const SCAN_SHARED_BYTES: u32 = SCAN_WARPS * size_of::<u32>() as u32;

const SCAN_WARPS: u32 = SCAN_THREADS / WARP_SIZE;

const WARPS: u32 = SORT_THREADS / WARP_SIZE;

/// Keys per warp, 32 at a time.
const KEYS_PER_WARP: u32 = TILE / WARPS;

const _: () = assert!(SORT_THREADS == DIGITS, "a thread adds up a digit");
const _: () = assert!(SCAN_WARPS == WARP_SIZE, "a lane has a warp's sum");
const _: () = assert!(DIGITS.is_multiple_of(SCAN_WARPS), "warps have equal parts");

/// Blocks of [`count`] and [`scatter`].
#[inline(always)]
pub const fn tiles(n: u32) -> u32 {
    n.div_ceil(TILE)
}

/// Histogram of the digits of each tile.
///
/// # Arguments
/// `keys`: n keys, read. `counts`: for each digit one number per tile, written.
///
/// # Thread mapping
/// One-dimensional blocks of [`SORT_THREADS`], one for each of [`tiles`].
///
/// # Shared memory
/// [`SORT_SHARED_BYTES`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Satish, Harris & Garland (2009), Designing efficient sorting algorithms for manycore GPUs, IPDPS.
#[inline(always)]
pub unsafe fn count(keys: *const u32, counts: *mut u32, params: Params) {
    let digit = thread::thread_idx_x();
    let counters = dynamic_shared_mem();
    // SAFETY: the caller's promise; the digit's number in this tile is this thread's.
    unsafe {
        count_tile(keys, counters, params.n);
        let mut total = 0;
        let mut warp = 0;
        while warp < WARPS {
            total += counters.load(warp * DIGITS + digit);
            warp += 1;
        }
        let at = digit * tiles(params.n) + thread::block_idx_x();
        global::store(counts, at, total);
    }
}

/// Exclusive prefix sum of the histograms: from numbers of keys to where the first of them goes.
///
/// # Formula
/// Each number becomes the sum of those before it.
///
/// # Arguments
/// `counts`: for each digit one number for each of the tiles of n keys, replaced.
///
/// # Thread mapping
/// One block of [`SCAN_THREADS`], whatever n: see the cost in the module's documentation. A warp has as many numbers in a
/// row as all others.
///
/// # Shared memory
/// A `u32` per warp: [`SCAN_SHARED_BYTES`].
///
/// # Safety
/// The buffer is as said.
///
/// # Source
/// Hillis & Steele (1986), Data parallel algorithms, Communications of the ACM 29, 1170.
#[inline(always)]
pub unsafe fn scan(counts: *mut u32, params: Params) {
    let (warp, lane) = (warp::warp_id(), warp::lane_id());
    let sums: Shared<u32> = dynamic_shared_mem();
    let all = DIGITS * tiles(params.n);
    let each = all / SCAN_WARPS; // digits are a multiple of warps
    let (first, end) = (warp * each, (warp + 1) * each);
    // SAFETY: the numbers from `first` to `end` are this warp's, one a lane; slot `warp` of the sums is
    // its last lane's before the barrier.
    unsafe {
        let mut sum = 0;
        let mut at = first + lane;
        while at < end {
            sum += global::load(counts, at);
            at += WARP_SIZE;
        }
        let sum = up_to_lane(sum);
        if lane == WARP_SIZE - 1 {
            sums.store(warp, sum);
        }
        thread::sync_threads();
        let of_warp = up_to_lane(sums.load(lane));
        let mut running = if warp > 0 {
            of_warp.shuffle(warp - 1)
        } else {
            0
        };
        let mut start = first;
        while start < end {
            let at = start + lane;
            let number = if at < end {
                global::load(counts, at)
            } else {
                0
            };
            let with = up_to_lane(number);
            if at < end {
                global::store(counts, at, running + with - number);
            }
            running += with.shuffle(WARP_SIZE - 1);
            start += WARP_SIZE;
        }
    }
}

/// Moves keys, and the bodies' numbers with them, to where they belong.
///
/// # Arguments
/// `keys` and `order`: n keys and the numbers that go with them, read. `starts`: the sums by [`scan`],
/// read. `keys_to`: the keys without their lowest digit, in the order of that, written; `order_to`:
/// the numbers, likewise.
///
/// # Thread mapping
/// As [`count`].
///
/// # Shared memory
/// As [`count`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// As [`count`]. A key's place among those of its warp comes from the lanes that have the same digit.
#[inline(always)]
pub unsafe fn scatter(
    keys: *const u32,
    order: *const u32,
    starts: *const u32,
    keys_to: *mut u32,
    order_to: *mut u32,
    params: Params,
) {
    let (n, t) = (params.n, thread::thread_idx_x());
    let counters: Shared<u32> = dynamic_shared_mem();
    // SAFETY: the caller's promise; the slots of digit t are this thread's between the barriers,
    // those of a warp its lanes' thereafter; every place is that of one key.
    unsafe {
        count_tile(keys, counters, n);
        let mut start = global::load(starts, t * tiles(n) + thread::block_idx_x());
        let mut warp = 0;
        while warp < WARPS {
            let number = counters.load(warp * DIGITS + t);
            counters.store(warp * DIGITS + t, start);
            start += number;
            warp += 1;
        }
        thread::sync_threads();
        let mut round = 0;
        while round < KEYS_PER_WARP {
            let at = first_of_warp() + round + warp::lane_id();
            let WarpKey { key, alike, slot } = warp_key(keys, at, n);
            let before = (alike & lanes_before()).count_ones();
            let start = counters.load(slot);
            warp::sync_warp();
            if at < n {
                global::store(keys_to, start + before, key / DIGITS);
                global::store(order_to, start + before, global::load(order, at));
                if before == 0 {
                    counters.store(slot, start + alike.count_ones());
                }
            }
            warp::sync_warp();
            round += WARP_SIZE;
        }
    }
}

/// Counts the block's tile, a warp's keys and a digit in each of `counters`; ends with a barrier.
///
/// # Safety
/// As [`count`].
#[inline(always)]
unsafe fn count_tile(keys: *const u32, counters: Shared<u32>, n: u32) {
    // SAFETY: the slots of digit t are thread t's before the barrier, those of a warp its lanes'
    // after it, and of lanes alike the first one's.
    unsafe {
        let mut warp = 0;
        while warp < WARPS {
            counters.store(warp * DIGITS + thread::thread_idx_x(), 0);
            warp += 1;
        }
        thread::sync_threads();
        let mut round = 0;
        while round < KEYS_PER_WARP {
            let at = first_of_warp() + round + warp::lane_id();
            let WarpKey { alike, slot, .. } = warp_key(keys, at, n);
            if at < n && alike & lanes_before() == 0 {
                counters.store(slot, counters.load(slot) + alike.count_ones());
            }
            warp::sync_warp();
            round += WARP_SIZE;
        }
        thread::sync_threads();
    }
}

/// Key of a lane, among those that its warp has at a time.
struct WarpKey {
    key: u32,
    /// The lanes whose keys exist and have the same digit, a bit each.
    alike: u32,
    /// Counter of the warp for this digit.
    slot: u32,
}

/// Loads the key at `at`, if that is below `n`, and finds the lanes with the same digit. All lanes call
/// it.
///
/// # Safety
/// `keys` has `n` keys.
#[inline(always)]
unsafe fn warp_key(keys: *const u32, at: u32, n: u32) -> WarpKey {
    let key = if at < n {
        // SAFETY: the caller's promise.
        unsafe { global::load(keys, at) }
    } else {
        0
    };
    let digit = key % DIGITS;
    WarpKey {
        key,
        alike: lanes_with(digit, at < n),
        slot: warp::warp_id() * DIGITS + digit,
    }
}

/// Index of the first key of this warp.
#[inline(always)]
fn first_of_warp() -> u32 {
    thread::block_idx_x() * TILE + warp::warp_id() * KEYS_PER_WARP
}

/// The lanes of lower numbers, a bit each.
#[inline(always)]
fn lanes_before() -> u32 {
    (1 << warp::lane_id()) - 1
}

/// The lanes that exist and have the same digit, a bit each. All lanes call it.
#[inline(always)]
fn lanes_with(digit: u32, exists: bool) -> u32 {
    let mut lanes = warp::ballot(exists);
    let mut bit = 1;
    while bit < DIGITS {
        let set = digit & bit != 0;
        let with = warp::ballot(set);
        lanes &= if set { with } else { !with };
        bit *= 2;
    }
    lanes
}
