//! Which leaves are near, and the forces of all others.

use core::array;

use crate::abi::Params;
use crate::interaction::{add_with_jerk, distance_squared, interact, separation};
use crate::schedule::block_steps::neighbours::Phase;
use crate::schedule::block_steps::neighbours::sweep::Apart;
use crate::schedule::separated::Bounds;
use crate::tile::for_each;
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::vector::Vec4;
use cuda_std::warp::{WARP_SIZE, any, ballot, lane_id, sync_warp, warp_id};
use cuda_std::{global, thread};

use super::{
    FAR_VECTORS, GROUP, LEAF, LEAF_VECTORS, PARTS, UNEVEN, WARPS, WIDE, groups_of, leaves_of,
    words_of,
};

/// Targets of a lane.
const LANE: usize = (GROUP / WARP_SIZE) as usize;

/// Sources in flight.
const AHEAD: usize = 4;

/// Sources that a warp keeps in shared memory together.
const KEPT: u32 = WARP_SIZE;

/// Bytes of shared memory of [`far`]: position and velocity of sources for each warp.
pub const FAR_SHARED_BYTES: u32 = WARPS * KEPT * 2 * size_of::<Vec4<f32>>() as u32;

/// A sum in f64, to which sums in f32 are added after each word of leaves.
type Sum = [f64; 3];

/// A target, and the sums over far leaves.
#[derive(Clone, Copy)]
struct Target {
    x: [f32; 3],
    v: [f32; 3],
    /// Square of the distance within which leaves are near.
    reach: f32,
    acceleration: [f32; 3],
    jerk: [f32; 3],
    accelerations: Sum,
    jerks: Sum,
}

/// Near leaves of each group of targets, and the forces of all other leaves, of which a warp has a part.
///
/// # Formula
/// `Σ m r / d³` over the bodies of far leaves. Its derivative in time is a sum over the leaves' centres of mass.
/// Where squared distances between group and leaf differ much, the centres of the leaf's four parts take their
/// place.
///
/// # Arguments
/// `sources`, `leaves`: of [`leaves()`](super::leaves()), read. `target_positions`, `target_velocities`: of
/// [`predict`](super::predict), read; `target_order`: their numbers in the order of space, read. `near`: for each
/// group of 64 targets in this order a bit for each leaf, written. `sums`: for each part of the leaves and each
/// target in this order [`FAR_VECTORS`], written. `params.partials`: targets. `params.tiling.parts`: parts of the
/// leaves, a multiple of the warps of a block. `params.blocks.phase`: in [`Phase::Radii`] there are no sums.
///
/// # Thread mapping
/// One-dimensional blocks of [`THREADS`](super::THREADS); a warp a part of the leaves for a group, two targets a
/// lane. A part has every `parts`-th word of the group.
///
/// # Shared memory
/// [`FAR_SHARED_BYTES`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
#[inline(always)]
pub unsafe fn far(
    sources: *const Vec4<f32>,
    leaves: *const Vec4<f32>,
    target_positions: *const Vec4<f32>,
    target_velocities: *const Vec4<f32>,
    target_order: *const u32,
    near: *mut u32,
    sums: *mut Vec4<f32>,
    params: Params,
) {
    let (targets, parts) = (params.partials, params.tiling.parts);
    let warp = thread::block_idx_x() * WARPS + warp_id();
    let (group, part) = (warp / parts, warp % parts);
    if group >= groups_of(targets) {
        return;
    }
    let lane = lane_id();
    let softening_squared = params.softening_squared as f32;
    let number = |l: usize| group * GROUP + l as u32 * WARP_SIZE + lane;
    let mut all: [Target; LANE] = array::from_fn(|l| {
        // SAFETY: the last target exists; lanes without one take it again.
        unsafe {
            let k = global::load(target_order, number(l).min(targets - 1));
            let x = global::load(target_positions, k);
            let v = global::load(target_velocities, k);
            let radius_squared = WIDE * WIDE * (x.w - softening_squared);
            Target {
                x: [x.x, x.y, x.z],
                v: [v.x, v.y, v.z],
                reach: radius_squared.max(f32::MIN_POSITIVE),
                acceleration: [0.0; 3],
                jerk: [0.0; 3],
                accelerations: [0.0; 3],
                jerks: [0.0; 3],
            }
        }
    });
    let widened = |bounds: Bounds, target: &Target| Bounds {
        low: array::from_fn(|k| bounds.low[k].min(target.x[k])),
        high: array::from_fn(|k| bounds.high[k].max(target.x[k])),
        heaviest: bounds.heaviest.max(target.reach),
    };
    let [first, second] = &all;
    let own = widened(widened(nothing(), first), second).over_lanes();
    let widest = own.heaviest;
    let words = words_of(params.n);
    let mut sweep = Sweep {
        sources,
        leaves,
        kept: dynamic_shared_mem::<f32>().after(warp_id() * KEPT * 8),
        softening_squared,
    };
    let mut word = part;
    while word < words {
        // SAFETY: the launch's promise; all lanes of the warp are here.
        unsafe {
            let leaf = word * u32::BITS + lane;
            let exists = leaf < leaves_of(params.n);
            let bounds = sweep.bounds(leaf.min(leaves_of(params.n) - 1));
            let gap = gap_squared(&bounds, &own);
            let mut candidates = ballot(exists && gap < widest);
            let mut bits = 0;
            while candidates != 0 {
                let bit = candidates.trailing_zeros();
                candidates &= candidates - 1;
                let bounds = sweep.bounds(word * u32::BITS + bit);
                let is_near = |target: &Target| {
                    let at = widened(nothing(), target);
                    gap_squared(&bounds, &at) < target.reach
                };
                if any(is_near(&all[0]) | is_near(&all[1])) {
                    bits |= 1 << bit;
                }
            }
            if lane == 0 {
                global::store(near, group * words + word, bits);
            }
            if u32::from(params.blocks.phase) != Phase::Radii as u32 {
                let is_far = exists && bits >> lane & 1 == 0;
                sweep.accelerate(word, ballot(is_far), &mut all);
                // Far leaves are at least a radius away, whatever the boxes say.
                let is_uneven = is_far && extent_squared(&bounds, &own) > UNEVEN * gap;
                sweep.whole_leaves(leaf, is_far && !is_uneven, &mut all);
                sweep.parts_of_leaves(word, ballot(is_uneven), &mut all);
                for target in &mut all {
                    add(&mut target.accelerations, &mut target.acceleration);
                    add(&mut target.jerks, &mut target.jerk);
                }
            }
        }
        word += parts;
    }
    if u32::from(params.blocks.phase) == Phase::Radii as u32 {
        return;
    }
    let own = sums.wrapping_add(part as usize * targets as usize * FAR_VECTORS as usize);
    for_each::<LANE>(|l| {
        if number(l) < targets {
            let [x, y, z] = all[l].accelerations.map(|sum| sum as f32);
            let [u, v, w] = all[l].jerks.map(|sum| sum as f32);
            // SAFETY: this lane's target, and this warp's part.
            unsafe {
                global::store(own, FAR_VECTORS * number(l), [x, y, z, 0.0].into());
                global::store(own, FAR_VECTORS * number(l) + 1, [u, v, w, 0.0].into());
            }
        }
    });
}

/// Sources of a warp.
struct Sweep {
    sources: *const Vec4<f32>,
    leaves: *const Vec4<f32>,
    /// Room for positions and velocities of [`KEPT`] sources.
    kept: Shared<f32>,
    softening_squared: f32,
}

impl Sweep {
    /// The box of a leaf.
    ///
    /// # Safety
    /// It exists.
    #[inline(always)]
    unsafe fn bounds(&self, leaf: u32) -> Bounds {
        // SAFETY: the caller's promise; the first two vectors of a leaf are its box.
        let [low, high] = [0, 1].map(|v| unsafe { self.vector(leaf, v) });
        Bounds {
            low: [low.x, low.y, low.z],
            high: [high.x, high.y, high.z],
            heaviest: 0.0,
        }
    }

    /// A vector of a leaf.
    ///
    /// # Safety
    /// It exists.
    #[inline(always)]
    unsafe fn vector(&self, leaf: u32, vector: u32) -> Vec4<f32> {
        // SAFETY: the caller's promise.
        unsafe { global::load(self.leaves, leaf * LEAF_VECTORS + vector) }
    }

    /// Adds the accelerations of the leaves of a word that have a bit.
    ///
    /// # Safety
    /// All lanes call it; the leaves exist.
    #[inline(always)]
    unsafe fn accelerate(&mut self, word: u32, mut bits: u32, all: &mut [Target; LANE]) {
        let kept: Shared<Vec4<f32>> = self.kept.after(0);
        while bits != 0 {
            let leaf = word * u32::BITS + bits.trailing_zeros();
            bits &= bits - 1;
            // SAFETY: the caller's promise; the warp's own room, between synchronisations.
            unsafe {
                let source = global::load(self.sources, leaf * LEAF + lane_id());
                sync_warp();
                kept.store(lane_id(), source);
                sync_warp();
                let mut first = 0;
                while first < LEAF {
                    for_each::<AHEAD>(|q| {
                        let Vec4 { x, y, z, w } = kept.load(first + q as u32);
                        for_each::<LANE>(|l| {
                            let Target {
                                x: own,
                                acceleration,
                                ..
                            } = &mut all[l];
                            let softening_squared = self.softening_squared;
                            interact::<Apart>(*own, [x, y, z], w, softening_squared, acceleration);
                        });
                    });
                    first += AHEAD as u32;
                }
            }
        }
    }

    /// Adds the jerks of the centres of mass of the lanes' leaves, where they count.
    ///
    /// # Safety
    /// All lanes call it; a leaf that counts exists.
    #[inline(always)]
    unsafe fn whole_leaves(&mut self, leaf: u32, counts: bool, all: &mut [Target; LANE]) {
        // SAFETY: the caller's promise.
        unsafe { self.centres(leaf, 2, counts, all) };
    }

    /// Adds the jerks of the parts of the leaves of a word that have a bit.
    ///
    /// # Safety
    /// All lanes call it; the leaves exist.
    #[inline(always)]
    unsafe fn parts_of_leaves(&mut self, word: u32, mut bits: u32, all: &mut [Target; LANE]) {
        const AT_ONCE: u32 = KEPT / PARTS;
        while bits != 0 {
            // Four lanes have the four parts of a leaf.
            let (mut own, mut left, mut k) = (0, bits, 0);
            while k < AT_ONCE {
                if k == lane_id() / PARTS {
                    own = left;
                }
                left &= left.wrapping_sub(1);
                k += 1;
            }
            let leaf = word * u32::BITS + own.trailing_zeros();
            let vector = 4 + 2 * (lane_id() % PARTS);
            // SAFETY: the caller's promise.
            unsafe { self.centres(leaf, vector, own != 0, all) };
            bits = left;
        }
    }

    /// Adds the jerks of centres of mass, one of each lane for which it counts.
    ///
    /// # Safety
    /// All lanes call it; a leaf that counts exists.
    #[inline(always)]
    unsafe fn centres(&mut self, leaf: u32, vector: u32, counts: bool, all: &mut [Target; LANE]) {
        let votes = ballot(counts);
        if votes == 0 {
            return;
        }
        let kept: Shared<Vec4<f32>> = self.kept.after(0);
        let before = votes & ((1 << lane_id()) - 1);
        let slot = 2 * before.count_ones();
        // SAFETY: the caller's promise; the warp's own room, between synchronisations.
        unsafe {
            sync_warp();
            if counts {
                kept.store(slot, self.vector(leaf, vector));
                kept.store(slot + 1, self.vector(leaf, vector + 1));
            }
            sync_warp();
            let mut slot = 0;
            while slot < 2 * votes.count_ones() {
                let (x, v) = (kept.load(slot), kept.load(slot + 1));
                for_each::<LANE>(|l| {
                    let Target {
                        x: own,
                        v: own_velocity,
                        jerk,
                        ..
                    } = &mut all[l];
                    let r = separation::<Apart>(*own, [x.x, x.y, x.z]);
                    let v = separation::<Apart>(*own_velocity, [v.x, v.y, v.z]);
                    let d2 = distance_squared::<Apart>(r, self.softening_squared);
                    add_with_jerk::<Apart>([r, v], d2, x.w, &mut [0.0; 3], jerk);
                });
                slot += 2;
            }
        }
    }
}

/// A box around nobody.
#[inline(always)]
fn nothing() -> Bounds {
    Bounds {
        low: [f32::INFINITY; 3],
        high: [f32::NEG_INFINITY; 3],
        heaviest: 0.0,
    }
}

/// Squared distance of two boxes.
#[inline(always)]
fn gap_squared(a: &Bounds, b: &Bounds) -> f32 {
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

/// Adds a sum in f32 to one in f64, and begins it anew.
#[inline(always)]
fn add(to: &mut Sum, sum: &mut [f32; 3]) {
    for_each::<3>(|k| to[k] += f64::from(sum[k]));
    *sum = [0.0; 3];
}
