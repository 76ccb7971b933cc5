//! Indices along a Hilbert curve.

use crate::abi::Params;
use cuda_std::vector::Vec4;
use cuda_std::{global, thread};

/// Bits of a coordinate in a key.
pub const BITS: u32 = 10;

/// Keys of the spatial sort: the index of each body along a Hilbert curve through a cube of 1024³
/// cells.
///
/// # Formula
/// Skilling's transposition of coordinates to an index on the curve.
///
/// # Arguments
/// `state`: n bodies in `Float4`, read. `bounds`: `(low, cells per length)`, read; bodies beyond the
/// cube count as on its surface. `keys`: n indices, written; `order`: the numbers below n, written.
///
/// # Thread mapping
/// One-dimensional; thread i has body i, threads beyond n do nothing.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Skilling (2004), Programming the Hilbert curve, AIP Conference Proceedings 707, 381.
#[inline(always)]
pub unsafe fn keys(
    state: *const Vec4<f32>,
    bounds: *const Vec4<f32>,
    keys: *mut u32,
    order: *mut u32,
    params: Params,
) {
    let i = thread::index_1d();
    if i >= params.n {
        return;
    }
    // SAFETY: the body exists, and what is written is this thread's.
    unsafe {
        let (body, low) = (global::load(state, i), global::load(bounds, 0));
        let cell = |x: f32, low: f32, scale: f32| {
            let cell = (x - low) * scale;
            (cell as u32).min((1 << BITS) - 1) // saturates, and is 0 for NaN
        };
        let cells = [
            cell(body.x, low.x, low.w),
            cell(body.y, low.y, low.w),
            cell(body.z, low.z, low.w),
        ];
        global::store(keys, i, index(cells));
        global::store(order, i, i);
    }
}

/// Index of a cell along the curve.
#[inline(always)]
fn index([mut x, mut y, mut z]: [u32; 3]) -> u32 {
    const TOP: u32 = 1 << (BITS - 1);
    // Rotations and reflections of the cubes around the cell, from the largest on.
    let mut bit = TOP;
    while bit > 1 {
        let below = bit - 1;
        if x & bit != 0 {
            x ^= below;
        }
        (x, y) = turned(x, y, bit);
        (x, z) = turned(x, z, bit);
        bit >>= 1;
    }
    // Gray's code.
    y ^= x;
    z ^= y;
    let mut flips = 0;
    let mut bit = TOP;
    while bit > 1 {
        if z & bit != 0 {
            flips ^= bit - 1;
        }
        bit >>= 1;
    }
    let mut index = 0;
    let mut bit = BITS;
    while bit > 0 {
        bit -= 1;
        let of = |axis: u32| (axis ^ flips) >> bit & 1;
        index = index << 3 | of(x) << 2 | of(y) << 1 | of(z);
    }
    index
}

/// The lower bits of the first axis reflected, or exchanged with those of another.
#[inline(always)]
fn turned(first: u32, other: u32, bit: u32) -> (u32, u32) {
    let below = bit - 1;
    if other & bit != 0 {
        (first ^ below, other)
    } else {
        let differ = (first ^ other) & below;
        (first ^ differ, other ^ differ)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The curve goes through every cell of a cube before it leaves it, from neighbour to neighbour.
    #[test]
    fn the_curve_goes_from_neighbour_to_neighbour() {
        const SIDE: u32 = 16;
        for corner in [[0, 0, 0], [512, 512, 512], [1008, 16, 320]] {
            let mut indices: Vec<(u32, [u32; 3])> = (0..SIDE * SIDE * SIDE)
                .map(|i| {
                    let [x, y, z] = corner;
                    let cell = [x + i % SIDE, y + i / SIDE % SIDE, z + i / SIDE / SIDE];
                    (index(cell), cell)
                })
                .collect();
            indices.sort_unstable();
            assert_eq!(indices[0].0 % (SIDE * SIDE * SIDE), 0);
            for pair in indices.windows(2) {
                let [(at, from), (next, to)] = [pair[0], pair[1]];
                assert_eq!(at + 1, next, "{from:?} {to:?}");
                let steps: u32 = (0..3).map(|axis| from[axis].abs_diff(to[axis])).sum();
                assert_eq!(steps, 1, "{from:?} {to:?}");
            }
        }
        assert_eq!(index([0; 3]), 0);
    }
}
