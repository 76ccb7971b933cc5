//! Regular forces: the sums over the sources that a block keeps, for all targets whose regular steps
//! end, and lists of the sources that are nearer than the target's radius.
//!
//! A warp computes a group of targets at a time, two a lane, with the sources broadcast. As many groups
//! as there are warps make a round, in which each warp has a group to itself and all sources. The
//! groups that are left are shared by several warps each, with a part of the sources for each; then
//! sums meet in shared memory. Which targets are left, and how many warps share one, is decided by the targets of
//! all devices, as if one had them all; each device then computes its own.

use crate::interaction::{add_with_jerk, distance_squared, separation};
use crate::numerics::{Approximate, Far, Fused, Numerics, Real, Softened};
use crate::tile::for_each;
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::warp::{WARP_SIZE, lane_id, sync_warp, warp_id};
use cuda_std::{GpuFloat, global, thread};

use super::near::together;
use super::{GROUP, HEADER, LANE, REGULAR_TARGET, SUMS, each_of_block};
use crate::schedule::block_steps::posts::Posts;

/// Sources in flight: roots of one wait for their results beside those of the other.
const AHEAD: usize = 2;

/// A squared distance at which 1/d³ is zero.
pub(super) const OUT_OF_REACH: f32 = (1_u128 << 100) as f32;

/// Numbers of a source in shared memory: position and mass, velocity.
pub(super) const SOURCE: u32 = 8;

const _: () = assert!(GROUP == LANE * WARP_SIZE && LANE == 2);

/// A body whose regular step ends.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) x: [f32; 3],
    pub(super) v: [f32; 3],
    /// R² + ε²: nearer bodies are neighbours.
    pub(super) limit: f32,
    /// Place of the body.
    pub(super) place: u32,
}

impl Target {
    const NOWHERE: Self = Self {
        x: [0.0; 3],
        v: [0.0; 3],
        limit: 0.0,
        place: u32::MAX,
    };

    /// Target `index` of `targets`.
    ///
    /// # Safety
    /// It is there, and nobody writes it in this launch.
    #[inline(always)]
    pub(super) unsafe fn fetch(targets: *const Vec4<f32>, index: usize) -> Self {
        let targets = targets.wrapping_add(index * REGULAR_TARGET as usize);
        // SAFETY: the caller's promise.
        let (first, second) = unsafe { (global::load(targets, 0), global::load(targets, 1)) };
        Self {
            x: [first.x, first.y, first.z],
            v: [second.x, second.y, second.z],
            limit: first.w,
            place: second.w.to_bits(),
        }
    }

    /// Inverse of [`fetch`](Self::fetch).
    ///
    /// # Safety
    /// As there, and no other thread accesses it.
    #[inline(always)]
    pub(super) unsafe fn put(&self, targets: *mut Vec4<f32>, index: usize) {
        let targets = targets.wrapping_add(index * REGULAR_TARGET as usize);
        let Self {
            x: [x, y, z],
            v: [u, v, w],
            limit,
            place,
        } = *self;
        // SAFETY: the caller's promise.
        unsafe {
            global::store(targets, 0, [x, y, z, limit].into());
            global::store(targets, 1, [u, v, w, f32::from_bits(place)].into());
        }
    }
}

/// Index of target `k` of all among those of the blocks, which have room for `most` each.
#[inline(always)]
pub(super) fn regular_index(posts: &Posts, most: u32, k: u32) -> usize {
    let (block, own) = posts.regular_owner(k);
    block as usize * most as usize + own as usize
}

/// Puts a source into shared memory. One without mass is put where no pair with it counts.
///
/// # Safety
/// `sources` has room for it, and no other thread accesses that.
#[inline(always)]
pub(super) unsafe fn put_source(
    sources: Shared<f32>,
    slot: u32,
    x: [f32; 3],
    mass: f32,
    v: [f32; 3],
) {
    let vectors: Shared<Vec4<f32>> = sources.after(0);
    let far = if mass == 0.0 { f32::FAR } else { x[0] };
    // SAFETY: the caller's promise.
    unsafe {
        vectors.store(2 * slot, [far, x[1], x[2], mass].into());
        vectors.store(2 * slot + 1, [v[0], v[1], v[2], 0.0].into());
    }
}

/// A part of the sources in shared memory, and what the block has beside it.
pub(super) struct Sweep {
    /// All targets, by the blocks that own them.
    pub(super) targets: *const Vec4<f32>,
    /// Targets that each block has room for.
    pub(super) most: u32,
    /// Beginning of them.
    pub(super) posts: Posts,
    /// The first that this device computes, and the one behind the last.
    pub(super) own: (u32, u32),
    /// Segments of this block, for each of these in order.
    pub(super) segments: *mut u32,
    /// Words of a segment.
    pub(super) words: u32,
    /// Neighbours in a segment that there is room for.
    pub(super) room: u32,
    pub(super) softening_squared: f32,
    /// The sources.
    pub(super) sources: Shared<f32>,
    /// Number of sources.
    pub(super) count: u32,
    /// Slot of the first.
    pub(super) slot: u32,
    /// Place of the slice's first body.
    pub(super) first_place: u32,
    /// Sums that warps leave for each other.
    pub(super) exchange: Shared<f32>,
    /// Neighbours found, of each target of all warps' groups.
    pub(super) found: Shared<u32>,
}

type Sums = [f32; SUMS];

impl Sweep {
    /// Sums and lists of all targets; lists alone if `SEARCH`, and then sums are zero. Ends with
    /// a barrier.
    ///
    /// # Safety
    /// The buffers are as said, sources were written before a barrier, and all threads call it.
    #[inline(always)]
    pub(super) unsafe fn all<const SEARCH: bool>(&self) {
        let warps = thread::block_dim_x() / WARP_SIZE;
        let all = self.posts.regular;
        let in_rounds = all / (GROUP * warps) * warps * GROUP;
        let (first, end) = self.own;
        let middle = in_rounds.max(first).min(end);
        // SAFETY: the caller's promise; all threads take the branch together.
        unsafe {
            self.rounds::<SEARCH>(first, middle);
            thread::sync_threads();
            if middle < end {
                // Own groups are not more than all.
                let parts = warps / (all - in_rounds).div_ceil(GROUP);
                self.shared::<SEARCH>(middle, end - middle, parts);
            }
        }
    }

    /// Targets `first..end`, in groups by one warp each.
    ///
    /// # Safety
    /// As [`all`](Self::all).
    #[inline(always)]
    unsafe fn rounds<const SEARCH: bool>(&self, first: u32, end: u32) {
        let warps = thread::block_dim_x() / WARP_SIZE;
        let counter = warp_id() * GROUP + lane_id();
        let mut group = first + warp_id() * GROUP;
        while group < end {
            let target = group + lane_id();
            let mut targets = [Target::NOWHERE; LANE as usize];
            let mut sums = [[0.0; SUMS]; LANE as usize];
            // SAFETY: targets of this device; segments and counters are this thread's alone.
            unsafe {
                for_each::<{ LANE as usize }>(|l| {
                    let at = l as u32 * WARP_SIZE;
                    // Lanes without a target compute the last one's again, but list nothing.
                    let exists = target + at < end;
                    targets[l] = self.target((target + at).min(end - 1));
                    if exists {
                        let (before, found) = self.before(target + at);
                        sums[l] = before;
                        self.found.store(counter + at, found);
                    } else {
                        targets[l].limit = 0.0;
                    }
                });
                sync_warp();
                self.sum::<SEARCH, 2>((0, self.count), &targets, (target, counter), &mut sums);
                for_each::<{ LANE as usize }>(|l| {
                    let at = l as u32 * WARP_SIZE;
                    if target + at < end {
                        let found = self.found.load(counter + at);
                        self.put(target + at, &sums[l], found);
                    }
                });
            }
            group += warps * GROUP;
        }
    }

    /// Targets from `first` on, fewer than a round of them, by all warps, of which `parts` share a group.
    ///
    /// # Safety
    /// As [`all`](Self::all).
    #[inline(always)]
    unsafe fn shared<const SEARCH: bool>(&self, first: u32, targets: u32, parts: u32) {
        let lane = lane_id();
        let groups = targets.div_ceil(GROUP);
        let (group, part) = (warp_id() / parts, warp_id() % parts);
        let begin = |part: u32| part * self.count / parts;
        // SAFETY: counters and exchanged sums are one thread's between barriers, but for additions to
        // counters; segments of different warps for the same target are at different entries.
        unsafe {
            each_of_block(0, groups * GROUP, |k| {
                let found = if k < targets {
                    self.before(first + k).1
                } else {
                    0
                };
                self.found.store(k, found);
            });
            thread::sync_threads();
            if group < groups {
                let own = group * GROUP + lane;
                let mut all = [Target::NOWHERE; LANE as usize];
                let mut sums = [[0.0; SUMS]; LANE as usize];
                for_each::<{ LANE as usize }>(|l| {
                    let k = own + l as u32 * WARP_SIZE;
                    // Lanes without a target compute the last one's again, but list nothing.
                    all[l] = self.target(first + k.min(targets - 1));
                    if k >= targets {
                        all[l].limit = 0.0;
                    }
                });
                sync_warp();
                let sources = (begin(part), begin(part + 1));
                self.sum::<SEARCH, 2>(sources, &all, (first + own, own), &mut sums);
                for_each::<{ LANE as usize }>(|l| {
                    for (number, &sum) in sums[l].iter().enumerate() {
                        let place = (warp_id() * SUMS as u32 + number as u32) * GROUP;
                        let place = place + l as u32 * WARP_SIZE + lane;
                        self.exchange.store(place, sum);
                    }
                });
            }
            thread::sync_threads();
            each_of_block(0, targets, |k| self.combine::<SEARCH>(first, k, parts));
            thread::sync_threads();
        }
    }

    /// Adds up what warps left for target `first + k`, and puts its list in the order of the sources,
    /// which is not that of the warps.
    ///
    /// # Safety
    /// As [`all`](Self::all), and only this thread has the target.
    #[inline(always)]
    unsafe fn combine<const SEARCH: bool>(&self, first: u32, k: u32, parts: u32) {
        let target = first + k;
        // SAFETY: written before the barrier.
        unsafe {
            let (before, listed) = self.before(target);
            let mut found = self.found.load(k);
            let mut sums = before;
            if found > self.room {
                // Which of them had room was decided by who came first: once more, in order.
                self.found.store(k, listed);
                let all = [self.target(target)];
                let mut again = [sums];
                self.sum::<SEARCH, 1>((0, self.count), &all, (target, k), &mut again);
                sums = again[0];
                found = self.found.load(k);
            } else {
                let mut warp = k / GROUP * parts;
                let end = warp + parts;
                while warp < end {
                    for (number, sum) in sums.iter_mut().enumerate() {
                        let place = (warp * SUMS as u32 + number as u32) * GROUP + k % GROUP;
                        let more = self.exchange.load(place);
                        *sum = together(number, *sum, more);
                    }
                    warp += 1;
                }
                sort(self.list_of(target), listed, found);
            }
            self.put(target, &sums, found);
        }
    }

    /// Target `k` of the list of all.
    ///
    /// # Safety
    /// As [`all`](Self::all); there is one.
    #[inline(always)]
    unsafe fn target(&self, k: u32) -> Target {
        let index = regular_index(&self.posts, self.most, k);
        // SAFETY: the caller's promise.
        unsafe { Target::fetch(self.targets, index) }
    }

    #[inline(always)]
    fn segment(&self, target: u32) -> *mut u32 {
        let words = (target - self.own.0) as usize * self.words as usize;
        self.segments.wrapping_add(words)
    }

    #[inline(always)]
    fn list_of(&self, target: u32) -> *mut u16 {
        self.segment(target).wrapping_add(HEADER as usize).cast()
    }

    /// The sums over sources before these, and how many neighbours were among them.
    ///
    /// # Safety
    /// As [`all`](Self::all); the target is this thread's.
    #[inline(always)]
    unsafe fn before(&self, target: u32) -> (Sums, u32) {
        if self.slot == 0 {
            return ([0.0; SUMS], 0);
        }
        // SAFETY: written by this thread or ahead of a barrier.
        unsafe { header(self.segment(target)) }
    }

    /// Puts the header of a target's segment.
    ///
    /// # Safety
    /// As [`all`](Self::all); the target is this thread's.
    #[inline(always)]
    unsafe fn put(&self, target: u32, sums: &Sums, found: u32) {
        let vectors: *mut Vec4<f32> = self.segment(target).cast();
        let [approach, a, b, c, d, e, f] = *sums;
        let last = f32::from_bits(found);
        // SAFETY: the caller's promise.
        unsafe {
            global::store(vectors, 0, [a, b, c, approach].into());
            global::store(vectors, 1, [d, e, f, last].into());
        }
    }

    /// Adds sources `from..end` to the targets of a lane, the first of which has that number and that
    /// counter, each next one [`WARP_SIZE`] more.
    ///
    /// # Safety
    /// As [`all`](Self::all); there are so many sources.
    #[inline(always)]
    unsafe fn sum<const SEARCH: bool, const TARGETS: usize>(
        &self,
        (from, end): (u32, u32),
        targets: &[Target; TARGETS],
        numbers: (u32, u32),
        sums: &mut [Sums; TARGETS],
    ) {
        let mut j = from;
        // SAFETY: the caller's promise.
        unsafe {
            while j + AHEAD as u32 <= end {
                self.pairs::<SEARCH, TARGETS, AHEAD>(j, targets, numbers, sums);
                j += AHEAD as u32;
            }
            while j < end {
                self.pairs::<SEARCH, TARGETS, 1>(j, targets, numbers, sums);
                j += 1;
            }
        }
    }

    /// `AT_ONCE` sources and all targets of a lane.
    ///
    /// # Safety
    /// As [`sum`](Self::sum).
    #[inline(always)]
    unsafe fn pairs<const SEARCH: bool, const TARGETS: usize, const AT_ONCE: usize>(
        &self,
        first: u32,
        targets: &[Target; TARGETS],
        (number, counter): (u32, u32),
        sums: &mut [Sums; TARGETS],
    ) {
        let vectors: Shared<Vec4<f32>> = self.sources.after(0);
        let mut masses = [0.0; AT_ONCE];
        let mut r = [[[0.0; 3]; TARGETS]; AT_ONCE];
        let mut d2 = [[0.0; TARGETS]; AT_ONCE];
        for_each::<AT_ONCE>(|q| {
            // SAFETY: the caller's promise.
            let Vec4 { x, y, z, w } = unsafe { vectors.load(2 * (first + q as u32)) };
            masses[q] = w;
            for_each::<TARGETS>(|l| {
                r[q][l] = separation::<Apart>(targets[l].x, [x, y, z]);
                d2[q][l] = distance_squared::<Apart>(r[q][l], self.softening_squared);
            });
        });
        let mut is_near = false;
        for_each::<TARGETS>(|l| {
            let mut nearest = d2[0][l];
            for_each::<AT_ONCE>(|q| nearest = nearest.min(d2[q][l]));
            is_near |= nearest < targets[l].limit;
        });
        if is_near {
            for_each::<AT_ONCE>(|q| {
                for_each::<TARGETS>(|l| {
                    let own = l as u32 * WARP_SIZE;
                    let at = (number + own, counter + own);
                    let slot = self.slot + first + q as u32;
                    // SAFETY: the caller's promise.
                    let left_out = d2[q][l] < targets[l].limit
                        && unsafe { self.lists(&targets[l], slot, masses[q], at) };
                    if left_out || d2[q][l] < f32::SMALLEST_SQUARE {
                        d2[q][l] = OUT_OF_REACH;
                    }
                });
            });
        }
        if SEARCH {
            return;
        }
        for_each::<AT_ONCE>(|q| {
            // SAFETY: the caller's promise.
            let Vec4 { x, y, z, .. } = unsafe { vectors.load(2 * (first + q as u32) + 1) };
            for_each::<TARGETS>(|l| {
                let v = separation::<Apart>(targets[l].v, [x, y, z]);
                let [approach, a, b, c, d, e, f] = &mut sums[l];
                let (mut accelerations, mut jerks) = ([*a, *b, *c], [*d, *e, *f]);
                let both = [r[q][l], v];
                let near = add_with_jerk::<Apart>(
                    both,
                    d2[q][l],
                    masses[q],
                    &mut accelerations,
                    &mut jerks,
                );
                [*a, *b, *c] = accelerations;
                [*d, *e, *f] = jerks;
                *approach = approach.larger(near.rate.magnitude());
            });
        });
    }

    /// Lists the source at a slot as a neighbour of a target, if there is room; true if the pair does
    /// not count as regular.
    ///
    /// # Safety
    /// As [`sum`](Self::sum).
    #[inline(always)]
    unsafe fn lists(
        &self,
        target: &Target,
        slot: u32,
        mass: f32,
        (number, counter): (u32, u32),
    ) -> bool {
        if self.first_place + slot == target.place || mass == 0.0 {
            return true;
        }
        // SAFETY: the target's counter and list; each entry is one thread's.
        unsafe {
            let entry = self.found.atomic_add(counter, 1);
            let has_room = entry < self.room;
            if has_room {
                global::store(self.list_of(number), entry, slot as u16);
            }
            has_room
        }
    }
}

/// The arithmetic of pairs that are apart.
pub(super) type Apart = Numerics<f32, Fused, Approximate, Softened>;

/// The sums of a segment, and how many neighbours were found.
///
/// # Safety
/// It was written before this launch, by this thread or ahead of a barrier.
#[inline(always)]
pub(super) unsafe fn header(segment: *const u32) -> (Sums, u32) {
    let vectors: *const Vec4<f32> = segment.cast();
    // SAFETY: the caller's promise.
    let (a, j) = unsafe { (global::load(vectors, 0), global::load(vectors, 1)) };
    ([a.w, a.x, a.y, a.z, j.x, j.y, j.z], j.w.to_bits())
}

/// Sorts entries `from..end` of a short list by insertion.
///
/// # Safety
/// They were written ahead of a barrier, and are this thread's.
#[inline(always)]
unsafe fn sort(list: *mut u16, from: u32, end: u32) {
    let mut k = from + 1;
    // SAFETY: the caller's promise.
    unsafe {
        while k < end {
            let entry = global::load(list, k);
            let mut place = k;
            while place > from {
                let before = global::load(list, place - 1);
                if before <= entry {
                    break;
                }
                global::store(list, place, before);
                place -= 1;
            }
            global::store(list, place, entry);
            k += 1;
        }
    }
}
