//! Leaves of bodies in the order of space.

use core::array;

use crate::abi::Params;
use crate::numerics::Far;
use crate::schedule::separated::Bounds;
use cuda_std::vector::Vec4;
use cuda_std::warp::{Shuffle, lane_id};
use cuda_std::{global, thread};

use super::{LEAF, LEAF_VECTORS, PARTS, leaves_of};

/// Bodies of a part of a leaf.
const PART: u32 = LEAF / PARTS;

/// All bodies in their order, and of each leaf its box and the centres of mass of it and of its parts. Bodies
/// without mass are so far out that they exert no force, and in no box.
///
/// # Formula
/// `Σ m x / Σ m`, `Σ m v / Σ m`.
///
/// # Arguments
/// `positions` with masses, and `velocities`: of n bodies by places, read. `order`: n places, read. `sources`: with
/// masses, and `moving`: velocities with places as bits, of as many bodies as leaves have room for, written.
/// `leaves`: [`LEAF_VECTORS`] a leaf, written.
///
/// # Thread mapping
/// One-dimensional, blocks of whole warps; a warp a leaf, a lane a body.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn leaves(
    positions: *const Vec4<f32>,
    velocities: *const Vec4<f32>,
    order: *const u32,
    sources: *mut Vec4<f32>,
    moving: *mut Vec4<f32>,
    leaves: *mut Vec4<f32>,
    params: Params,
) {
    let n = params.n;
    let at = thread::index_1d();
    let leaf = at / LEAF;
    if leaf >= leaves_of(n) {
        return;
    }
    // SAFETY: the last body exists, and places are below n.
    let (place, mut x, mut v) = unsafe {
        let place = global::load(order, at.min(n - 1));
        (
            place,
            global::load(positions, place),
            global::load(velocities, place),
        )
    };
    let counts = at < n && x.w != 0.0;
    let inside = |x: f32, outside: f32| if counts { x } else { outside };
    let of_box = |outside: f32| [x.x, x.y, x.z].map(|x| inside(x, outside));
    let bounds = Bounds {
        low: of_box(f32::INFINITY),
        high: of_box(f32::NEG_INFINITY),
        heaviest: 0.0,
    }
    .over_lanes();
    if !counts {
        (x.x, x.w) = (f32::FAR, 0.0);
    }
    v.w = f32::from_bits(place);
    let m = x.w;
    let mut sums = [0.0, 0.0, 0.0, m, m * v.x, m * v.y, m * v.z];
    if counts {
        [sums[0], sums[1], sums[2]] = [m * x.x, m * x.y, m * x.z];
    }
    let own = leaves.wrapping_add((leaf * LEAF_VECTORS) as usize);
    let lane = lane_id();
    // SAFETY: this warp's leaf, and this thread's body.
    unsafe {
        global::store(sources, at, x);
        global::store(moving, at, v);
        let mut distance = 1;
        while distance < LEAF {
            let others = sums.shuffle(lane ^ distance);
            sums = array::from_fn(|k| sums[k] + others[k]);
            distance *= 2;
            if distance == PART && lane.is_multiple_of(PART) {
                put_centre(own, 4 + 2 * (lane / PART), &sums);
            }
        }
        if lane == 0 {
            let ([a, b, c], [d, e, f]) = (bounds.low, bounds.high);
            global::store(own, 0, [a, b, c, 0.0].into());
            global::store(own, 1, [d, e, f, 0.0].into());
            put_centre(own, 2, &sums);
        }
    }
}

/// Puts a centre of mass by the sums of moments, mass and momenta; far out if there is no mass.
///
/// # Safety
/// Two vectors from `at` on are this thread's.
#[inline(always)]
unsafe fn put_centre(leaf: *mut Vec4<f32>, at: u32, &[x, y, z, m, u, v, w]: &[f32; 7]) {
    let each = if m > 0.0 { 1.0 / m } else { 0.0 };
    let first = if m > 0.0 { each * x } else { f32::FAR };
    // SAFETY: the caller's promise.
    unsafe {
        global::store(leaf, at, [first, each * y, each * z, m].into());
        global::store(leaf, at + 1, [each * u, each * v, each * w, 0.0].into());
    }
}
