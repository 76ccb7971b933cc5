//! Which leaves are near, and the forces of all others.

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

use super::targets::{GROUP_VECTORS, Group, Groups, LANE, Range, Target, gap_squared};
use super::{
    FAR_VECTORS, GROUP, LEAF, LEAF_VECTORS, PARTS, UNEVEN, WARPS, groups_of, leaves_of, words_of,
};

/// Sources in flight.
const AHEAD: usize = 4;

/// Sources that a warp keeps in shared memory together.
const KEPT: u32 = WARP_SIZE;

/// Bytes of shared memory of [`far`]: position and velocity of sources for each warp, and the boxes of all groups.
pub const FAR_SHARED_BYTES: u32 =
    (WARPS * KEPT * 2 + GROUP_VECTORS) * size_of::<Vec4<f32>>() as u32;

/// A sum in f64, to which sums in f32 are added after each word of leaves.
type Sum = [f64; 3];

/// The velocity of a target, and the sums over far leaves.
#[derive(Clone, Copy)]
struct Sums {
    x: [f32; 3],
    v: [f32; 3],
    acceleration: [f32; 3],
    jerk: [f32; 3],
    accelerations: Sum,
    jerks: Sum,
}

/// Finds the near leaves of each group of targets, and the leaves for tensor cores. Computes the other forces of
/// all far leaves.
///
/// # Formula
/// `Σ m r / d³` over the bodies of far leaves that tensor cores are not exact enough for. The derivative of the
/// acceleration in time is a sum over the centres of mass of all far leaves. Where squared distances between group
/// and leaf differ much, the centres of the leaf's four parts take their place.
///
/// # Arguments
/// `sources`, `leaves`: of [`leaves()`](super::leaves()), read. `target_positions`, `target_velocities`: of
/// [`predict`](super::predict), read; `target_order`: their numbers in the order of space, read. `near`,
/// `on_tensor`: for each group of 64 targets in this order a bit for each leaf, written. `sums`: for each part of
/// the leaves and each target in this order [`FAR_VECTORS`], written. `params.partials`: targets.
/// `params.tiling.parts`: parts of the leaves. `params.separation.gap`: no nearer leaf is for tensor cores.
/// `params.blocks.phase`: in [`Phase::Radii`] `near` alone is written.
///
/// # Thread mapping
/// One-dimensional blocks of [`THREADS`](super::THREADS); a block a part of the leaves for 256 targets. A warp has a
/// group of targets, two a lane. A part has every `parts`-th word of a group.
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
    on_tensor: *mut u32,
    sums: *mut Vec4<f32>,
    params: Params,
) {
    let (targets, parts) = (params.partials, params.tiling.parts);
    let (block, part) = (thread::block_idx_x() / parts, thread::block_idx_x() % parts);
    let group = block * WARPS + warp_id();
    let softening_squared = params.softening_squared as f32;
    let shared = dynamic_shared_mem::<f32>();
    // SAFETY: the launch's promise, and room for the groups behind the sources. All threads are here.
    let (of_lane, own, range) = unsafe {
        let order = (group, targets);
        let of_lane = Target::of_lane(target_positions, target_order, order, softening_squared);
        let own = Group::of(of_lane);
        let groups = Groups::of_warps(&own, shared.after(WARPS * KEPT * 8));
        let gap = params.separation.gap as f32;
        let range = Range::of(&groups.together(), gap, softening_squared);
        (of_lane, own, range)
    };
    if group >= groups_of(targets) {
        return;
    }
    let lane = lane_id();
    let mut all: [Sums; LANE] = of_lane.map(|target| {
        // SAFETY: a target.
        let v = unsafe { global::load(target_velocities, target.number) };
        Sums {
            x: target.x,
            v: [v.x, v.y, v.z],
            acceleration: [0.0; 3],
            jerk: [0.0; 3],
            accelerations: [0.0; 3],
            jerks: [0.0; 3],
        }
    });
    let words = words_of(params.n);
    let mut sweep = Sweep {
        sources,
        leaves,
        kept: shared.after(warp_id() * KEPT * 8),
        softening_squared,
    };
    let mut word = part;
    while word < words {
        // SAFETY: the launch's promise; all lanes of the warp are here.
        unsafe {
            let leaf = word * u32::BITS + lane;
            let exists = leaf < leaves_of(params.n);
            let bounds = sweep.bounds(leaf.min(leaves_of(params.n) - 1));
            let gap = gap_squared(&bounds, &own.bounds);
            let mut candidates = ballot(exists && gap < own.bounds.heaviest);
            let mut bits = 0;
            while candidates != 0 {
                let bit = candidates.trailing_zeros();
                candidates &= candidates - 1;
                let bounds = sweep.bounds(word * u32::BITS + bit);
                let is_near =
                    |target: &Target| gap_squared(&bounds, &target.bounds()) < target.reach;
                if any(is_near(&of_lane[0]) | is_near(&of_lane[1])) {
                    bits |= 1 << bit;
                }
            }
            if lane == 0 {
                global::store(near, group * words + word, bits);
            }
            if u32::from(params.blocks.phase) != Phase::Radii as u32 {
                let is_far = exists && bits >> lane & 1 == 0;
                let squares = own.squares(&bounds, softening_squared);
                let suits = is_far && range.suits(&bounds, squares);
                let suiting = ballot(suits);
                if lane == 0 {
                    global::store(on_tensor, group * words + word, suiting);
                }
                sweep.accelerate(word, ballot(is_far && !suits), &mut all);
                // By the boxes, although each target is a radius away.
                let is_uneven = is_far && squares[1] > UNEVEN * (gap + softening_squared);
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
    let number = |l: usize| group * GROUP + l as u32 * WARP_SIZE + lane;
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
    unsafe fn accelerate(&mut self, word: u32, mut bits: u32, all: &mut [Sums; LANE]) {
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
                            let Sums {
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
    unsafe fn whole_leaves(&mut self, leaf: u32, counts: bool, all: &mut [Sums; LANE]) {
        // SAFETY: the caller's promise.
        unsafe { self.centres(leaf, 2, counts, all) };
    }

    /// Adds the jerks of the parts of the leaves of a word that have a bit.
    ///
    /// # Safety
    /// All lanes call it; the leaves exist.
    #[inline(always)]
    unsafe fn parts_of_leaves(&mut self, word: u32, mut bits: u32, all: &mut [Sums; LANE]) {
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
    unsafe fn centres(&mut self, leaf: u32, vector: u32, counts: bool, all: &mut [Sums; LANE]) {
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
                    let Sums {
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

/// Adds a sum in f32 to one in f64, and begins it anew.
#[inline(always)]
fn add(to: &mut Sum, sum: &mut [f32; 3]) {
    for_each::<3>(|k| to[k] += f64::from(sum[k]));
    *sum = [0.0; 3];
}
