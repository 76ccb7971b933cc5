//! Refinement of the Hilbert order: bodies in a row, halved along their longest side, and halved
//! again.

use crate::abi::Params;
use crate::schedule::separated::{Bounds, LEAF};
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::vector::Vec4;
use cuda_std::warp::{self, WARP_SIZE};
use cuda_std::{global, thread};

/// Bodies per block.
pub const CHUNK: u32 = 2048;

/// Threads of a block: each compares two bodies at a time.
pub const HALVE_THREADS: u32 = CHUNK / 2;

/// Shared memory of a block, bytes: the bodies, and two corners of a box for each leaf.
pub const HALVE_SHARED_BYTES: u32 = (CHUNK + 2 * LEAVES) * size_of::<Vec4<f32>>() as u32;

const LEAVES: u32 = CHUNK / LEAF;

const WARPS: u32 = HALVE_THREADS / WARP_SIZE;

/// Number in a slot that has no body.
const NOBODY: u32 = u32::MAX;

/// Sorts each [`CHUNK`] of bodies into compact leaves.
///
/// # Formula
/// A chunk is sorted along the longest side of the box around it, and so is each half of what was
/// sorted, down to two leaves.
///
/// # Arguments
/// `state`: n bodies in `Float4`, read. `order`: the numbers of the bodies, in Hilbert order; replaced.
///
/// # Thread mapping
/// One-dimensional blocks of [`HALVE_THREADS`], one for each chunk.
///
/// # Shared memory
/// [`HALVE_SHARED_BYTES`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Batcher (1968), Sorting networks and their applications, AFIPS Spring Joint Computer Conference.
#[inline(always)]
pub unsafe fn halve(state: *const Vec4<f32>, order: *mut u32, params: Params) {
    let t = thread::thread_idx_x();
    let first = thread::block_idx_x() * CHUNK;
    let bodies: Shared<Vec4<f32>> = dynamic_shared_mem();
    // SAFETY: the chunk's numbers are the block's; of its slots each is one thread's between two
    // barriers: in loading and storing, and as one of the two that a thread compares.
    unsafe {
        let mut slot = t;
        while slot < CHUNK {
            let at = first + slot;
            bodies.store(
                slot,
                if at < params.n {
                    load(state, order, at)
                } else {
                    NONE
                },
            );
            slot += HALVE_THREADS;
        }
        let mut length = CHUNK;
        while length > LEAF {
            thread::sync_threads();
            let axis = longest(bodies, 2 * t / length, length);
            sort(bodies, length, axis);
            length /= 2;
        }
        thread::sync_threads();
        let mut slot = t;
        while slot < CHUNK {
            if first + slot < params.n {
                global::store(order, first + slot, bodies.load(slot).w.to_bits());
            }
            slot += HALVE_THREADS;
        }
    }
}

/// Padding body: behind every body along every axis.
const NONE: Vec4<f32> = Vec4 {
    x: f32::INFINITY,
    y: f32::INFINITY,
    z: f32::INFINITY,
    w: f32::from_bits(NOBODY),
};

/// Position of the body whose number is at this place, with that number. Coordinates that are not
/// finite become the largest number, so that the body stays before slots without one.
///
/// # Safety
/// As [`halve`].
#[inline(always)]
unsafe fn load(state: *const Vec4<f32>, order: *const u32, at: u32) -> Vec4<f32> {
    // SAFETY: the caller's promise.
    let (body, number) = unsafe {
        let number = global::load(order, at);
        (global::load(state, number), number)
    };
    let finite = |x: f32| if x.abs() <= f32::MAX { x } else { f32::MAX };
    Vec4 {
        x: finite(body.x),
        y: finite(body.y),
        z: finite(body.z),
        w: f32::from_bits(number),
    }
}

/// The longest side of the box around segment `segment` of `length` bodies: 0, 1 or 2. All threads
/// call it; ends with a barrier.
///
/// # Safety
/// All slots have been written before a barrier.
#[inline(always)]
unsafe fn longest(bodies: Shared<Vec4<f32>>, segment: u32, length: u32) -> u32 {
    let corners: Shared<Vec4<f32>> = bodies.after(CHUNK);
    // SAFETY: the caller's promise; the corners of a leaf are its warp's before the barrier.
    unsafe {
        let mut leaf = warp::warp_id();
        while leaf < LEAVES {
            let body = bodies.load(leaf * LEAF + warp::lane_id());
            let exists = body.w.to_bits() != NOBODY;
            let at = [body.x, body.y, body.z];
            let bounds = Bounds {
                low: at,
                high: if exists { at } else { [f32::NEG_INFINITY; 3] },
                heaviest: 0.0,
            }
            .over_lanes();
            if warp::lane_id() == 0 {
                let corner = |[x, y, z]: [f32; 3]| Vec4 { x, y, z, w: 0.0 };
                corners.store(2 * leaf, corner(bounds.low));
                corners.store(2 * leaf + 1, corner(bounds.high));
            }
            leaf += WARPS;
        }
        thread::sync_threads();
        let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        let mut leaf = segment * (length / LEAF);
        let end = leaf + length / LEAF;
        while leaf < end {
            let (from, to) = (corners.load(2 * leaf), corners.load(2 * leaf + 1));
            low = [low[0].min(from.x), low[1].min(from.y), low[2].min(from.z)];
            high = [high[0].max(to.x), high[1].max(to.y), high[2].max(to.z)];
            leaf += 1;
        }
        let [x, y, z] = [0, 1, 2].map(|axis| high[axis] - low[axis]);
        if x >= y && x >= z {
            0
        } else if y >= z {
            1
        } else {
            2
        }
    }
}

/// Sorts each segment of `length` bodies along `axis`, which is the segment's. All threads call it.
///
/// # Safety
/// As [`longest`].
#[inline(always)]
unsafe fn sort(bodies: Shared<Vec4<f32>>, length: u32, axis: u32) {
    let t = thread::thread_idx_x();
    let key = |body: Vec4<f32>| {
        let x = if axis == 0 {
            body.x
        } else if axis == 1 {
            body.y
        } else {
            body.z
        };
        (x, body.w.to_bits())
    };
    let mut sorted = 2;
    while sorted <= length {
        let mut apart = sorted / 2;
        while apart > 0 {
            let one = 2 * apart * (t / apart) + t % apart;
            let other = one + apart;
            // Runs go up and down in turn, until the whole segment goes up.
            let up = (one % length) & sorted == 0;
            // SAFETY: no other thread has these slots before the next barrier; the warp's barrier is
            // enough where this step's slots and the next one's are among the 64 of the warp.
            unsafe {
                let (a, b) = (bodies.load(one), bodies.load(other));
                let ((x, i), (y, j)) = (key(a), key(b));
                if (x > y || x == y && i > j) == up {
                    bodies.store(one, b);
                    bodies.store(other, a);
                }
            }
            let next = if apart > 1 { apart / 2 } else { sorted };
            if apart.max(next) > WARP_SIZE {
                thread::sync_threads();
            } else {
                warp::sync_warp();
            }
            apart /= 2;
        }
        sorted *= 2;
    }
}
