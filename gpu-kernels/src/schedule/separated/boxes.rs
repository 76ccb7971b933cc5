//! The boxes around leaves.

use super::{LEAF, LEAVES, blocks};
use crate::abi::Params;
use cuda_std::vector::Vec4;
use cuda_std::warp::{self, Shuffle, WARP_SIZE};
use cuda_std::{global, thread};

/// A box around bodies, and the largest of their masses.
#[derive(Clone, Copy)]
pub(in crate::schedule) struct Bounds {
    pub(in crate::schedule) low: [f32; 3],
    pub(in crate::schedule) high: [f32; 3],
    pub(in crate::schedule) heaviest: f32,
}

impl Bounds {
    /// That of a leaf.
    ///
    /// # Safety
    /// `boxes` has it.
    #[inline(always)]
    pub(super) unsafe fn load(boxes: *const Vec4<f32>, leaf: u32) -> Self {
        // SAFETY: the caller's promise.
        let [a, b] = unsafe {
            [
                global::load(boxes, 2 * leaf),
                global::load(boxes, 2 * leaf + 1),
            ]
        };
        Self {
            low: [a.x, a.y, a.z],
            high: [b.x, b.y, b.z],
            heaviest: a.w,
        }
    }

    /// Around those of all lanes, which call it together.
    #[inline(always)]
    pub(in crate::schedule) fn over_lanes(mut self) -> Self {
        let lane = warp::lane_id();
        let mut step = 1;
        while step < WARP_SIZE {
            let other = lane ^ step;
            self.low = self.low.map(|low| low.min(low.shuffle(other)));
            self.high = self.high.map(|high| high.max(high.shuffle(other)));
            self.heaviest = self.heaviest.max(self.heaviest.shuffle(other));
            step *= 2;
        }
        self
    }
}

/// The boxes around all leaves.
///
/// # Formula
/// Smallest and largest coordinates, and the largest mass, of 32 bodies.
///
/// # Arguments
/// `state`: n bodies in `Float4`, read. `boxes`: two vectors for each leaf of all blocks of targets,
/// written: `(low, mass)` and `(high, 0)`.
///
/// # Thread mapping
/// One-dimensional, blocks of whole warps; warp l has leaf l. Warps beyond the last block of targets
/// do nothing; leaves beyond the last body are boxes around that.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn boxes(state: *const Vec4<f32>, boxes: *mut Vec4<f32>, params: Params) {
    let leaf = thread::index_1d() / LEAF;
    // SAFETY: the last body exists.
    let body = unsafe { global::load(state, thread::index_1d().min(params.n - 1)) };
    let at = [body.x, body.y, body.z];
    let bounds = Bounds {
        low: at,
        high: at,
        heaviest: body.w,
    }
    .over_lanes();
    if warp::lane_id() == 0 && leaf < blocks(params.n) * LEAVES {
        let [x, y, z] = bounds.low;
        let w = bounds.heaviest;
        let low = Vec4 { x, y, z, w };
        let [x, y, z] = bounds.high;
        let high = Vec4 { x, y, z, w: 0.0 };
        // SAFETY: the warp's own leaf.
        unsafe {
            global::store(boxes, 2 * leaf, low);
            global::store(boxes, 2 * leaf + 1, high);
        }
    }
}
