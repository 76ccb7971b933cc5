//! Each pair once, far pairs on tensor cores and near ones in single precision: the error is bounded
//! for every ε ≥ 0, all masses and any origin.
//!
//! Bodies lie in an order in which neighbours in memory are neighbours in space (that of
//! [`spatial_sort`](super::spatial_sort), kept for some steps). 32 of them in a row are a *leaf*, 256 a
//! *block* of targets. [`boxes()`] finds the box around each leaf at every evaluation, so an order
//! that has aged costs speed, never accuracy. A block and a leaf are far from each other, and then [`far()`] computes their pairs, if
//!
//! 1. `D² = gap² + ε²`, where gap is the distance of the boxes, is at least
//!    [`Separation::gap`]², and [`Separation::square_per_mass`] times the heaviest body;
//! 2. D is at least 1/8 of the radius ρ of the block's box;
//! 3. no corner of the leaf is beyond 1536 times that gap from the block's centre, ε counted as well,
//!    and none of the block's beyond 4096 times.
//!
//! All other pairs are [`near()`]. What this makes of the errors of [`tensor`](super::tensor):
//!
//! * **d²** is a sum of terms up to (|x_i| + |x_j|)², truncated at 2⁻²², in coordinates from the
//!   block's centre: |x_i| ≤ ρ and |x_j| ≤ ρ + d, so with 2. it is off by less than 2⁻²²·17² = 7·10⁻⁵
//!   of itself for the very closest pairs, and a block's radius away by 2·10⁻⁶.
//! * **1/d³** is a half, with all its 11 bits: relative error δ ≈ 1.4·10⁻⁴ in the mean by a root,
//!   2.2·10⁻⁴ by a polynomial, independent from pair to pair. Polynomials serve leaves whose d² varies
//!   little (`polynomials.rs`), and have a scale for each. By a root it is in units where 32 gaps are 1, and loses bits beyond 800 gaps, down to 7;
//!   but there the gap is a part of the system's radius (as the host chooses it) that is large enough for
//!   distances to differ, and rounding to be as often up as down. No ε is needed to keep it finite.
//! * **A sum** of contributions f_j of far bodies is then off by δ √(Σ f_j²). In a system of radius R and
//!   mass M, with M_eff = Σm²/M, that is δ · 2.4 √(R M_eff / (gap M)) of a typical acceleration M/R²: 10⁻⁵
//!   for gap = 1300 R M_eff / M with roots. The host asks for a larger gap, and chooses
//!   square_per_mass so that no far pair has more than a small part of a typical acceleration, and its
//!   δ less than 10⁻⁵ of it (`host/library/force/order.rs`).
//!
//! The fewer the bodies, the more pairs are near, down to all of them. R and M are those of when the
//! bodies were last measured, R being their median distance from the centre of mass.
//!
//! [`Separation::gap`]: crate::abi::Separation::gap
//! [`Separation::square_per_mass`]: crate::abi::Separation::square_per_mass

mod boxes;
pub(super) mod classes;
mod far;
mod near;
pub(super) mod pack;
pub(super) mod polynomials;

pub(super) use boxes::Bounds;
pub use boxes::boxes;
pub use far::{SHARED_BYTES, TILES, UNROLL, far};
pub use near::near;
pub use polynomials::LARGEST_ERROR;

use crate::abi::Params;
use crate::interaction::PairLaw;
use crate::numerics::{NumericsPolicy, Precision};
use crate::schedule::ScheduleName;
use cuda_std::GpuFloat;
use cuda_std::vector::Vec4;
use cuda_std::warp::{self, WARP_SIZE};
use pack::LARGEST_COORDINATE;

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::Separated;

/// Arithmetic of the schedule, with ε = 0 or not.
pub const fn numerics(unsoftened: bool) -> NumericsPolicy {
    NumericsPolicy {
        precision: Precision::F16,
        fused: true,
        approximate: true,
        unsoftened,
        skips_self: false,
    }
}

/// Bodies of a leaf.
pub const LEAF: u32 = WARP_SIZE;

/// Bodies of a block of targets.
pub const TARGETS: u32 = 256;

const LEAVES: u32 = TARGETS / LEAF;

/// Threads of the blocks of [`near()`] and [`far()`].
pub const THREADS: u32 = 128;

/// Leaves that are looked at together, one a lane.
pub const SPAN: u32 = WARP_SIZE;

/// Part of the block's radius ρ that the distance to a far leaf is at least.
pub(super) const RADIUS_PART: f32 = 1.0 / 8.0;

/// Limit of the terms of d² in units of d² itself: 17², as (|x_i| + |x_j|)² ≤ (8 d + 9 d)².
pub const LARGEST_TERMS: f32 = (2.0 / RADIUS_PART + 1.0) * (2.0 / RADIUS_PART + 1.0);

/// λ times the smallest distance of far pairs: its inverse cube is 2¹⁵, a half.
pub const SCALED_GAP: f32 = 1.0 / 32.0;

/// Largest scaled distance of a far body from the centre of a block: 1536 gaps. 1/d³ has 7 bits there.
pub const REACH: f32 = 1536.0 * SCALED_GAP;

/// Blocks of targets.
#[inline(always)]
pub const fn blocks(n: u32) -> u32 {
    n.div_ceil(TARGETS)
}

/// The leaves that a block of targets is paired with: those of the half of the other blocks that
/// follow it cyclically. So the matrix of blocks is filled like a circulant one, each pair of blocks
/// once, and every block has as much to do. Of five and six blocks (`×`: computed by the row's block):
///
/// ```text
///        0 1 2 3 4             0 1 2 3 4 5
///      0 · × ×               0 · × × ×        three of an even number of blocks
///      1   · × ×             1   · × × ×      are paired with the block opposite
///      2     · × ×           2     · × × ×
///      3 ×     · ×           3       · × ×
///      4 × ×     ·           4 ×       · ×
///                            5 × ×       ·
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    first: u32,
    count: u32,
    all: u32,
}

impl Pairing {
    /// That of block `block` of `blocks`.
    #[inline(always)]
    pub const fn of(block: u32, blocks: u32) -> Self {
        let opposite = blocks.is_multiple_of(2) && block < blocks / 2;
        Self {
            first: (block + 1) * LEAVES,
            count: ((blocks - 1) / 2 + opposite as u32) * LEAVES,
            all: blocks * LEAVES,
        }
    }

    /// Parts of a whole warp's leaves.
    #[inline(always)]
    pub const fn spans(self) -> u32 {
        self.count.div_ceil(SPAN)
    }

    /// The number of the leaf `index` after the first, an index below the number of all leaves.
    #[inline(always)]
    const fn leaf(self, index: u32) -> u32 {
        let leaf = self.first + index;
        if leaf < self.all {
            leaf
        } else {
            leaf - self.all
        }
    }
}

/// A leaf that a lane looks at.
#[derive(Clone, Copy)]
struct Candidate {
    leaf: u32,
    /// True if the pairing has it, and it has bodies.
    exists: bool,
    bounds: Bounds,
}

impl Candidate {
    /// The leaf `index` of a pairing; beyond the last one, that again.
    ///
    /// # Safety
    /// `boxes` has those of all leaves; the pairing has any.
    #[inline(always)]
    unsafe fn of(boxes: *const Vec4<f32>, pairing: Pairing, index: u32, n: u32) -> Self {
        let leaf = pairing.leaf(index.min(pairing.count - 1));
        Self {
            leaf,
            exists: index < pairing.count && leaf * LEAF < n,
            // SAFETY: a leaf of the pairing.
            bounds: unsafe { Bounds::load(boxes, leaf) },
        }
    }
}

/// Which leaves are far from a block of targets.
#[derive(Clone, Copy)]
struct Criterion {
    targets: Bounds,
    centre: [f32; 3],
    softening_squared: f32,
    needed_square: f32,
    square_per_mass: f32,
    reach_square: f32,
}

impl Criterion {
    /// All lanes call it.
    ///
    /// # Safety
    /// `boxes` has those of all leaves of block `block`.
    #[inline(always)]
    unsafe fn of(boxes: *const Vec4<f32>, block: u32, params: &Params) -> Self {
        // SAFETY: the caller's promise.
        let own = unsafe { Bounds::load(boxes, block * LEAVES + warp::lane_id() % LEAVES) };
        Self::around(own.over_lanes(), params)
    }

    /// That of the block in a box.
    #[inline(always)]
    fn around(targets: Bounds, params: &Params) -> Self {
        let [low, high] = [targets.low, targets.high];
        let centre = [0, 1, 2].map(|axis| 0.5 * (low[axis] + high[axis]));
        let half = [0, 1, 2].map(|axis| high[axis] - centre[axis]);
        let radius_square = square(half, 0.0);
        let gap = params.separation.gap as f32;
        let largest = LARGEST_COORDINATE / scale_for(gap);
        Self {
            targets,
            centre,
            softening_squared: params.softening_squared as f32,
            // No leaf is far from a block too large for halves.
            needed_square: if radius_square <= largest * largest {
                (gap * gap).max((RADIUS_PART * RADIUS_PART) * radius_square)
            } else {
                f32::INFINITY
            },
            square_per_mass: params.separation.square_per_mass as f32,
            reach_square: square([REACH / scale_for(gap), 0.0, 0.0], 0.0),
        }
    }

    /// D² of the boxes, their smallest distance, ε counted as well.
    #[inline(always)]
    fn smallest_square(&self, leaf: &Bounds) -> f32 {
        let Bounds { low, high, .. } = self.targets;
        let gaps = [0, 1, 2].map(|axis| {
            let gap = (leaf.low[axis] - high[axis]).max(low[axis] - leaf.high[axis]);
            gap.max(0.0)
        });
        square(gaps, self.softening_squared)
    }

    /// The same of the boxes' farthest corners.
    #[inline(always)]
    fn largest_square(&self, leaf: &Bounds) -> f32 {
        let Bounds { low, high, .. } = self.targets;
        let distances =
            [0, 1, 2].map(|axis| (leaf.high[axis] - low[axis]).max(high[axis] - leaf.low[axis]));
        square(distances, self.softening_squared)
    }

    /// Written so that all kernels round alike: a pair is near to one and far to the other.
    #[inline(always)]
    fn is_far<W: PairLaw>(&self, leaf: &Bounds) -> bool {
        let reaches = [0, 1, 2].map(|axis| {
            let centre = self.centre[axis];
            (leaf.high[axis] - centre).max(centre - leaf.low[axis])
        });
        let heaviest = W::weight(leaf.heaviest.max(self.targets.heaviest));
        let needed = (self.square_per_mass * heaviest).max(self.needed_square);
        let found = self.smallest_square(leaf);
        found >= needed && square(reaches, self.softening_squared) <= self.reach_square
    }
}

#[inline(always)]
fn square([x, y, z]: [f32; 3], more: f32) -> f32 {
    let plane = GpuFloat::mul_add(y, y, GpuFloat::mul_add(z, z, more));
    GpuFloat::mul_add(x, x, plane)
}

/// λ, the scale of lengths.
#[inline(always)]
fn scale_for(gap: f32) -> f32 {
    1.0 / (1.0 / SCALED_GAP * gap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interaction::Unit;

    pub(super) fn bounds(low: [f32; 3], high: [f32; 3]) -> Bounds {
        Bounds {
            low,
            high,
            heaviest: 1.0,
        }
    }

    pub(super) fn params(gap: f64) -> Params {
        let mut params = Params::default();
        params.separation.gap = gap;
        params
    }

    /// Beside the middle of a block so long that the squares of its coordinates are no halves, a leaf
    /// is near, although it is an eighth of the block's radius away and within reach.
    #[test]
    fn nothing_is_far_from_what_halves_cannot_hold() {
        let leaf = bounds([-1.0, 1100.0, -1.0], [1.0, 1101.0, 1.0]);
        let far = |half: f32| {
            let block = bounds([-half, -1.0, -1.0], [half, 1.0, 1.0]);
            let criterion = Criterion::around(block, &params(1.0));
            criterion.is_far::<Unit>(&leaf)
        };
        // In units where the gap is 1/32.
        assert!(far(127.0 * 32.0) && !far(129.0 * 32.0));
        assert!((129.0 * 32.0_f32).powi(2) * (RADIUS_PART * RADIUS_PART) < 1099.0_f32.powi(2));
    }

    /// Two blocks are paired by exactly one of them, leaf by leaf.
    #[test]
    fn every_pair_of_blocks_is_computed_once() {
        for blocks in 1..40 {
            let mut computed = vec![0; (blocks * blocks) as usize];
            for block in 0..blocks {
                let pairing = Pairing::of(block, blocks);
                for index in 0..pairing.count {
                    let other = pairing.leaf(index) / LEAVES;
                    computed[(block * blocks + other) as usize] += 1;
                    computed[(other * blocks + block) as usize] += 1;
                }
            }
            for (pair, &times) in computed.iter().enumerate() {
                let other = pair as u32 % blocks != pair as u32 / blocks;
                assert_eq!(times, if other { LEAVES } else { 0 }, "{blocks} blocks");
            }
        }
    }
}
