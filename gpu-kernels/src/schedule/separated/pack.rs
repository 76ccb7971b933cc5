//! Bodies as rows of the matrices that tensor cores multiply, a lane a body.
//!
//! The 16 terms of αd² − β = α(|x_i|² + ε²) + (α|x_j|² − β) − 2 x_i·(αx_j). A coordinate is the sum of
//! two halves, x_h + x_l, a square that of three, p_1 + 2⁻¹¹ (p_2 + p_3); the product of two second
//! halves is left out. Leaves by roots have α = 1 and β = 0.
//!
//! ```text
//!             0      1      2      3     4      5      6      7
//! target     −2x_h  −2y_h  −2z_h   1    −2x_h  −2y_h  −2z_h  2⁻¹¹
//! source      x_h    y_h    z_h   q_1    x_l    y_l    z_l   q_2          of αx_j and α|x_j|² − β
//!
//!             8      9      10     11    12     13     14     15
//! target     −2x_l  −2y_l  −2z_l  p_1    p_2    p_3   2⁻¹¹    0           of x_i and |x_i|² + ε²
//! source      x_h    y_h    z_h    α    α2⁻¹¹  α2⁻¹¹  q_3     0
//! ```
//!
//! A row's halves 0–7 and 8–15 lie apart, each beside that of the next body, so that the eight that
//! `ldmatrix` reads at once are in different banks of shared memory. After them lie rows of the right
//! factor of the other side's sums, m (x, y, z, 1) in two halves each, then the sources' coordinates.

use crate::schedule::fragments::{SECOND_PART, rounded, split_in_three};
use cuda_std::matrix::{load_columns, load_rows, pack_halves};
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::warp::{self, WARP_SIZE};

/// Scale of `(m x, m)` as halves: masses are at most 1, and [`LARGEST_COORDINATE`] times this, or the
/// largest α^{3/2} F times this, is below 2¹⁵.
pub(in crate::schedule) const WEIGHT_SCALE: f32 = 32.0;

/// Largest scaled coordinate: its square is a half.
pub(in crate::schedule) const LARGEST_COORDINATE: f32 = 128.0;

/// Words of 32 packed bodies in shared memory: two half rows each, weights, and coordinates.
pub(in crate::schedule) const PACKED_WORDS: u32 = 4 * WARP_SIZE;

const SECOND_HALVES: u32 = WARP_SIZE;
const WEIGHTS: u32 = 2 * WARP_SIZE;
const COORDINATES: u32 = 3 * WARP_SIZE;

/// 32 packed bodies in shared memory.
#[derive(Clone, Copy)]
pub(in crate::schedule) struct Packed {
    words: Shared<Vec4<u32>>,
}

/// The first halves of coordinates, and what is left of each.
#[inline(always)]
fn split(x: [f32; 3]) -> [[f32; 3]; 2] {
    let high = x.map(rounded);
    [high, [0, 1, 2].map(|axis| x[axis] - high[axis])]
}

/// A number as two halves, the second times 2¹¹.
#[inline(always)]
fn weight(x: f32) -> u32 {
    pack_halves(x, SECOND_PART * (x - rounded(x)))
}

impl Packed {
    /// The place of 32 bodies at the start of `words`.
    #[inline(always)]
    pub(in crate::schedule) fn at(words: Shared<Vec4<u32>>) -> Self {
        Self { words }
    }

    /// The place `count` times 32 bodies further on.
    #[inline(always)]
    pub(in crate::schedule) fn after(self, count: u32) -> Self {
        Self::at(self.words.after(count * PACKED_WORDS))
    }

    /// # Safety
    /// The words are the warp's alone.
    #[inline(always)]
    unsafe fn store(self, part: u32, [x, y, z, w]: [u32; 4]) {
        // SAFETY: the caller's promise.
        unsafe {
            self.words
                .store(part + warp::lane_id(), Vec4 { x, y, z, w })
        }
    }

    /// Packs the lane's body as target, of scaled coordinates `x` and `weight`; `square` is |x|² + ε².
    ///
    /// # Safety
    /// The words are the warp's alone.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn store_target(self, x: [f32; 3], square: f32, weight: f32) {
        let [high, low] = split(x).map(|part| part.map(|x| -2.0 * x));
        let [p1, p2, p3] = split_in_three(square);
        let (one, second) = (1.0, 1.0 / SECOND_PART);
        let plane = pack_halves(high[0], high[1]);
        // SAFETY: the caller's promise.
        unsafe {
            let [first, last] = [one, second].map(|one| pack_halves(high[2], one));
            self.store(0, [plane, first, plane, last]);
            let row = [
                pack_halves(low[0], low[1]),
                pack_halves(low[2], p1),
                pack_halves(p2, p3),
                pack_halves(second, 0.0),
            ];
            self.store(SECOND_HALVES, row);
            self.store_weights(x, weight);
        }
    }

    /// Packs the lane's body as source, of scaled coordinates `x` and `weight`, for products of
    /// `alpha` d² − β; `square` is α|x|² − β.
    ///
    /// # Safety
    /// The words are the warp's alone.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn store_source(
        self,
        x: [f32; 3],
        alpha: f32,
        square: f32,
        weight: f32,
    ) {
        let [high, low] = split(x.map(|x| alpha * x));
        let [q1, q2, q3] = split_in_three(square);
        let second = alpha * (1.0 / SECOND_PART);
        let plane = pack_halves(high[0], high[1]);
        // SAFETY: the caller's promise.
        unsafe {
            let row = [
                plane,
                pack_halves(high[2], q1),
                pack_halves(low[0], low[1]),
                pack_halves(low[2], q2),
            ];
            self.store(0, row);
            let row = [
                plane,
                pack_halves(high[2], alpha),
                pack_halves(second, second),
                pack_halves(q3, 0.0),
            ];
            self.store(SECOND_HALVES, row);
            self.store_weights(x, weight);
        }
    }

    /// Keeps the scaled coordinates of the lane's source, for the forces on sources.
    ///
    /// # Safety
    /// The words are the warp's alone.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn store_coordinates(self, [x, y, z]: [f32; 3]) {
        // SAFETY: the caller's promise.
        unsafe { self.store(COORDINATES, [x, y, z, 0.0].map(f32::to_bits)) }
    }

    /// # Safety
    /// The words are the warp's alone.
    #[inline(always)]
    unsafe fn store_weights(self, [x, y, z]: [f32; 3], mass: f32) {
        let scaled = WEIGHT_SCALE * mass;
        // SAFETY: the caller's promise.
        unsafe {
            self.store(
                WEIGHTS,
                [scaled * x, scaled * y, scaled * z, scaled].map(weight),
            )
        }
    }

    /// The left factor of the squared distances of the 16 targets of a group. All lanes call it, as
    /// all functions below.
    ///
    /// # Safety
    /// The targets were packed before a barrier.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn left(self, group: u32) -> [u32; 4] {
        let lane = warp::lane_id();
        let row = 16 * group + lane % 16 + lane / 16 * SECOND_HALVES;
        // SAFETY: the caller's promise.
        unsafe { load_rows(self.words, row) }
    }

    /// The right factors of the squared distances of the 16 sources of a group, eight each.
    ///
    /// # Safety
    /// The sources were packed before a barrier.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn right(self, group: u32) -> [[u32; 2]; 2] {
        let lane = warp::lane_id();
        let row = 16 * group + lane / 16 * 8 + lane % 8 + lane / 8 % 2 * SECOND_HALVES;
        // SAFETY: the caller's promise.
        let [a, b, c, d] = unsafe { load_rows(self.words, row) };
        [[a, b], [c, d]]
    }

    /// The right factors of the other side's sums, for both groups.
    ///
    /// # Safety
    /// The bodies were packed before a barrier.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn weights(self) -> [[u32; 2]; 2] {
        // SAFETY: the caller's promise.
        let [a, b, c, d] = unsafe { load_columns(self.words, WEIGHTS + warp::lane_id()) };
        [[a, b], [c, d]]
    }

    /// Component `lane % 4` of the coordinates of source `8 · tile + lane / 4`, 0 as the fourth.
    ///
    /// # Safety
    /// The sources were packed before a barrier.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn coordinate(self, tile: u32) -> f32 {
        let coordinates = self.words.after::<f32>(COORDINATES + 8 * tile);
        // SAFETY: the caller's promise.
        unsafe { coordinates.load(warp::lane_id()) }
    }
}
