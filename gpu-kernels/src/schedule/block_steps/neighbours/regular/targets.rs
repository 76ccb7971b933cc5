//! Targets of a block of threads, and which leaves are far enough from them for tensor cores.

use core::array;

use crate::schedule::separated::{Bounds, RADIUS_PART};
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::warp::{Shuffle, WARP_SIZE, lane_id, warp_id};
use cuda_std::{GpuFloat, global, thread};

use super::{GROUP, WARPS, WIDE};

/// Targets of a lane.
pub(super) const LANE: usize = (GROUP / WARP_SIZE) as usize;

/// Vectors of shared memory of the groups of a block.
pub(super) const GROUP_VECTORS: u32 = 2 * WARPS;

/// The most distances [`Range::nearest`] from the centre of a block to a body of a leaf. So scaled coordinates
/// are below [`LARGEST_COORDINATE`](crate::schedule::separated::pack::LARGEST_COORDINATE).
const REACH: f32 = 512.0;

/// The largest ratio of squared distances between a group and a leaf: scaled, they are from 1/4 to 2048 then, and
/// 1/d³ is a half with 7 bits at least.
const LARGEST_RATIO: f32 = 8192.0;

/// The least distance, squared, that tensor cores are used for: all squares are normal numbers.
const SMALLEST_SQUARE: f32 = 1e-24;

/// λ times the smallest distance of pairs on tensor cores.
const SCALED_DISTANCE: f32 = 1.0 / 4.0;

/// A target of a lane.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) x: [f32; 3],
    /// Square of the distance within which leaves are near.
    pub(super) reach: f32,
    /// The target's number before the targets were put in order.
    pub(super) number: u32,
}

impl Target {
    /// Targets of the lane, of group `group`; behind the last target, that target again.
    ///
    /// # Safety
    /// There are `targets` positions in `positions`, and as many numbers below that in `order`.
    #[inline(always)]
    pub(super) unsafe fn of_lane(
        positions: *const Vec4<f32>,
        order: *const u32,
        (group, targets): (u32, u32),
        softening_squared: f32,
    ) -> [Self; LANE] {
        array::from_fn(|l| {
            let at = group * GROUP + l as u32 * WARP_SIZE + lane_id();
            // SAFETY: the caller's promise.
            let (number, x) = unsafe {
                let number = global::load(order, at.min(targets - 1));
                (number, global::load(positions, number))
            };
            let radius_squared = WIDE * WIDE * (x.w - softening_squared);
            Self {
                x: [x.x, x.y, x.z],
                reach: radius_squared.max(f32::MIN_POSITIVE),
                number,
            }
        })
    }

    /// The point where it is, as a box, with the reach as the mass.
    #[inline(always)]
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            low: self.x,
            high: self.x,
            heaviest: self.reach,
        }
    }
}

/// The box of a group of targets.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// The largest reach is its `heaviest`.
    pub(super) bounds: Bounds,
    /// The smallest reach.
    least: f32,
}

impl Group {
    /// The group of the targets that the lanes have. All lanes call it.
    #[inline(always)]
    pub(super) fn of([first, second]: [Target; LANE]) -> Self {
        let mut least = first.reach.min(second.reach);
        let mut step = 1;
        while step < WARP_SIZE {
            least = least.min(least.shuffle(lane_id() ^ step));
            step *= 2;
        }
        Self {
            bounds: around(first.bounds(), second.bounds()).over_lanes(),
            least,
        }
    }

    /// A group of targets in a box that have the same reach, squared.
    #[cfg(test)]
    pub(super) fn around(low: [f32; 3], high: [f32; 3], reach: f32) -> Self {
        Self {
            bounds: Bounds {
                low,
                high,
                heaviest: reach,
            },
            least: reach,
        }
    }

    /// Bounds of the squared distances of the bodies of a leaf that is far from the group, ε counted as well.
    #[inline(always)]
    pub(super) fn squares(&self, leaf: &Bounds, softening_squared: f32) -> [f32; 2] {
        // A far leaf is at least a reach away from each target, whatever the boxes say.
        let smallest = gap_squared(leaf, &self.bounds).max(self.least);
        [smallest, extent_squared(leaf, &self.bounds)].map(|square| square + softening_squared)
    }
}

/// The groups of a block of threads, one of each warp, in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    boxes: Shared<Vec4<f32>>,
}

impl Groups {
    /// The groups that the warps have. All threads of the block call it.
    ///
    /// # Safety
    /// [`GROUP_VECTORS`] from `boxes` on are the block's, for this alone.
    #[inline(always)]
    pub(super) unsafe fn of_warps(own: &Group, boxes: Shared<Vec4<f32>>) -> Self {
        let Bounds {
            low: [a, b, c],
            high: [d, e, f],
            heaviest,
        } = own.bounds;
        // SAFETY: the caller's promise; a warp's own place before the barrier.
        unsafe {
            if lane_id() == 0 {
                boxes.store(2 * warp_id(), [a, b, c, heaviest].into());
                boxes.store(2 * warp_id() + 1, [d, e, f, own.least].into());
            }
        }
        thread::sync_threads();
        Self { boxes }
    }

    /// The group of a warp.
    ///
    /// # Safety
    /// The block has the warp.
    #[inline(always)]
    pub(super) unsafe fn of_warp(self, warp: u32) -> Group {
        // SAFETY: the caller's promise.
        let [low, high] = [0, 1].map(|k| unsafe { self.boxes.load(2 * warp + k) });
        Group {
            bounds: Bounds {
                low: [low.x, low.y, low.z],
                high: [high.x, high.y, high.z],
                heaviest: low.w,
            },
            least: high.w,
        }
    }

    /// All targets of the block as one group.
    #[inline(always)]
    pub(super) fn together(self) -> Group {
        // SAFETY: warps of the block.
        let groups: [Group; WARPS as usize] =
            array::from_fn(|warp| unsafe { self.of_warp(warp as u32) });
        let [mut all, others @ ..] = groups;
        for other in others {
            all.bounds = around(all.bounds, other.bounds);
            all.least = all.least.min(other.least);
        }
        all
    }
}

/// Which leaves tensor cores are exact enough for, and in which units.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) centre: [f32; 3],
    /// The smallest squared distance.
    nearest: f32,
    softening_squared: f32,
}

impl Range {
    /// For the targets of a block, with leaves that are not nearer than `gap`.
    #[inline(always)]
    pub(super) fn of(targets: &Group, gap: f32, softening_squared: f32) -> Self {
        let Bounds { low, high, .. } = targets.bounds;
        let centre: [f32; 3] = array::from_fn(|k| 0.5 * (low[k] + high[k]));
        let radius_squared = squared(|k| high[k] - centre[k]);
        let nearest = (targets.least + softening_squared)
            .max(RADIUS_PART * RADIUS_PART * radius_squared)
            .max(gap * gap)
            .max(SMALLEST_SQUARE);
        Self {
            centre,
            nearest,
            softening_squared,
        }
    }

    /// Returns whether tensor cores are exact enough for a leaf that is far from a group of the block, with
    /// squared distances between these.
    #[inline(always)]
    pub(super) fn suits(&self, leaf: &Bounds, [smallest, largest]: [f32; 2]) -> bool {
        let corner = squared(|k| (leaf.high[k] - self.centre[k]).max(self.centre[k] - leaf.low[k]));
        smallest >= self.nearest
            && largest <= LARGEST_RATIO * smallest
            && corner + self.softening_squared <= REACH * REACH * self.nearest
    }

    /// λ, the scale of lengths on tensor cores.
    #[inline(always)]
    pub(super) fn scale(&self) -> f32 {
        SCALED_DISTANCE * self.nearest.rsqrt_approx()
    }
}

/// A box around two.
#[inline(always)]
pub(super) fn around(a: Bounds, b: Bounds) -> Bounds {
    Bounds {
        low: array::from_fn(|k| a.low[k].min(b.low[k])),
        high: array::from_fn(|k| a.high[k].max(b.high[k])),
        heaviest: a.heaviest.max(b.heaviest),
    }
}

/// Squared distance of two boxes.
#[inline(always)]
pub(super) fn gap_squared(a: &Bounds, b: &Bounds) -> f32 {
    squared(|k| (a.low[k] - b.high[k]).max(b.low[k] - a.high[k]).max(0.0))
}

/// The largest squared distance between points of two boxes.
#[inline(always)]
fn extent_squared(a: &Bounds, b: &Bounds) -> f32 {
    squared(|k| (a.high[k] - b.low[k]).max(b.high[k] - a.low[k]))
}

#[inline(always)]
fn squared(component: impl Fn(usize) -> f32) -> f32 {
    let [x, y, z] = [component(0), component(1), component(2)];
    x * x + (y * y + z * z)
}
