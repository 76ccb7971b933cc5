//! The sums over the sources that a block keeps, for all targets: how targets are shared out to warps
//! and lanes.
//!
//! A *group* is what a warp computes at a time: a target or two a lane, and the sources broadcast.
//! As many groups as there are warps make a round, in which each warp has a group to itself and all
//! sources. What is left, most often everything, is spread: the sources of all groups, one group
//! after another, are cut into as many equal runs as there are warps. A run touches two groups at
//! most, and sums of different warps for the same target meet in shared memory, in the order of the
//! warps. Where targets are fewer than lanes, several lanes share one.

use crate::abi::Params;
use crate::interaction::{add_with_jerk, add_with_snap, distance_squared, separation};
use crate::numerics::{Approximate, Closest, Fused, Numerics};
use crate::tile::for_each;
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::warp::{Shuffle, WARP_SIZE, lane_id, warp_id};
use cuda_std::{GpuFloat, global, thread};

use super::posts::Posts;
use super::records::{self, Digits, DigitsName, Source, Sums, Target, scalar_of, together};
use super::scheme::{MOST_SUMS, Scheme, sums};

/// Sources in flight: loads and roots of one wait for their results beside those of the other.
const AHEAD: u32 = 2;

/// Numbers of the sums that warps leave for each other: of two groups each.
pub(super) const fn partial_scalars(digits: DigitsName, order: u32, threads: u32) -> u32 {
    2 * threads * digits.lane() * sums(order)
}

/// A part of the sources in shared memory, and what the block has beside it.
pub(super) struct Sweep<D: Digits> {
    /// All targets, by the blocks that own them.
    pub(super) targets: *const Vec4<D::Real>,
    /// Targets that each block has room for.
    pub(super) most: u32,
    /// Beginning of them.
    pub(super) posts: Posts,
    /// The sums over this block's slice, for each of the targets in order.
    pub(super) partials: *mut Vec4<D::Real>,
    /// ε².
    pub(super) softening_squared: D::Real,
    /// The sources.
    pub(super) sources: Shared<D::Real>,
    /// Number of sources.
    pub(super) count: u32,
    /// True if sums over others came before.
    pub(super) more: bool,
    /// Targets, if they fit.
    pub(super) stage: Shared<D::Real>,
    /// Partial sums that warps leave for each other.
    pub(super) exchange: Shared<D::Real>,
}

/// Bodies nearer than this part of a target's distance from the origin, squared, need the low parts
/// of positions.
const NEAR_SQUARED: f64 = 1.0 / 1024.0;

impl<D: Digits> Sweep<D> {
    /// Sums for all targets. Ends with a barrier.
    ///
    /// # Safety
    /// The buffers are as said, sources were written before a barrier, and all threads call it.
    #[inline(always)]
    pub(super) unsafe fn all<S: Scheme, C: Closest>(&self) {
        let warps = thread::block_dim_x() / WARP_SIZE;
        let group = const { WARP_SIZE * D::NAME.lane() };
        let active = self.posts.active;
        let in_rounds = active / (group * warps) * warps;
        // SAFETY: the caller's promise.
        unsafe {
            match const { D::NAME.lane() } {
                1 => self.rounds::<S, C, 1>(in_rounds),
                _ => self.rounds::<S, C, 2>(in_rounds),
            }
            let first = in_rounds * group;
            let rest = active - first;
            if rest == 0 {
                thread::sync_threads();
            } else if rest <= 8 {
                self.spread::<S, C, 1, 4>(first);
            } else if rest <= 16 {
                self.spread::<S, C, 1, 2>(first);
            } else if D::NAME.lane() == 1 || rest <= records::few(thread::block_dim_x()) {
                self.spread::<S, C, 1, 1>(first);
            } else {
                self.spread::<S, C, 2, 1>(first);
            }
        }
    }

    /// Groups `0..groups`, each by one warp.
    ///
    /// # Safety
    /// As [`all`](Self::all).
    #[inline(always)]
    unsafe fn rounds<S: Scheme, C: Closest, const LANE: usize>(&self, groups: u32) {
        let warps = thread::block_dim_x() / WARP_SIZE;
        let mut group = warp_id();
        while group < groups {
            let body = |l: usize| (group * LANE as u32 + l as u32) * WARP_SIZE + lane_id();
            let mut targets = [Target::nowhere(); LANE];
            let mut sums = [Sums::none(); LANE];
            // SAFETY: targets below the number of all; their sums over this slice are this thread's
            // alone.
            unsafe {
                for_each::<LANE>(|l| targets[l] = self.target::<S>(body(l)));
                self.sum::<S, C, LANE, 1>(0, self.count, &targets, &mut sums);
                for_each::<LANE>(|l| {
                    let mut all = sums[l];
                    if self.more {
                        all = Sums::fetch::<S>(self.partials, body(l)).and(&all);
                    }
                    all.put::<S>(self.partials, body(l));
                });
            }
            group += warps;
        }
    }

    /// Targets from `first` on, fewer than a round of them, by all warps; `SHARE` lanes share a
    /// target.
    ///
    /// # Safety
    /// As [`all`](Self::all).
    #[inline(always)]
    unsafe fn spread<S: Scheme, C: Closest, const LANE: usize, const SHARE: u32>(
        &self,
        first: u32,
    ) {
        let (threads, thread, lane) = (thread::block_dim_x(), thread::thread_idx_x(), lane_id());
        let warps = threads / WARP_SIZE;
        let of_warp = warps.trailing_zeros(); // a power of two
        let each = const { WARP_SIZE * LANE as u32 / SHARE };
        let numbers = const { sums(S::ORDER) };
        let rest = self.posts.active - first;
        let (groups, count) = (rest.div_ceil(each), self.count);
        let work = groups * count;
        let begin = |warp: u32| (warp * work) >> of_warp;
        let room = records::staged(threads);
        let is_staged = rest <= room;
        // SAFETY: a target's numbers are put by one thread, ahead of the barrier.
        unsafe {
            if is_staged {
                let mut k = thread;
                while k < rest {
                    let mut target = self.target::<S>(first + k);
                    target.each::<S, D>(|at, number| self.stage.store(at * room + k, *number));
                    k += threads;
                }
                thread::sync_threads();
            }
        }
        let (mut from, end) = (begin(warp_id()), begin(warp_id() + 1));
        let mut group = if groups == 1 { 0 } else { from / count };
        let mut part = 0;
        while from < end {
            let until = end.min((group + 1) * count);
            let mut targets = [Target::nowhere(); LANE];
            let mut sums = [Sums::none(); LANE];
            for_each::<LANE>(|l| {
                let own = if SHARE > 1 {
                    lane % (WARP_SIZE / SHARE)
                } else {
                    lane + l as u32 * WARP_SIZE
                };
                let k = (group * each + own).min(rest - 1);
                // SAFETY: staged before the barrier, or a target of the list.
                unsafe {
                    if is_staged {
                        targets[l]
                            .each::<S, D>(|at, number| *number = self.stage.load(at * room + k));
                    } else {
                        targets[l] = self.target::<S>(first + k);
                    }
                }
            });
            let ahead = if SHARE > 1 {
                lane / (WARP_SIZE / SHARE)
            } else {
                0
            };
            // SAFETY: sources of this part.
            unsafe {
                let from = from - group * count + ahead;
                let until = until - group * count;
                self.sum::<S, C, LANE, SHARE>(from, until, &targets, &mut sums);
            }
            if SHARE > 1 {
                let mut distance = const { WARP_SIZE / SHARE };
                while distance < WARP_SIZE {
                    let mut of_other = sums[0].numbers();
                    for (k, number) in of_other.iter_mut().enumerate() {
                        if (k as u32) < numbers {
                            *number = number.shuffle(lane ^ distance);
                        }
                    }
                    sums[0] = sums[0].and(&Sums::of(of_other));
                    distance *= 2;
                }
            }
            for_each::<LANE>(|l| {
                let place = (2 * warp_id() + part) * numbers * each + l as u32 * WARP_SIZE + lane;
                let sums = sums[l].numbers();
                for k in 0..MOST_SUMS as u32 {
                    if k < numbers && lane < each {
                        // SAFETY: this lane's own place, which is read after the barrier.
                        unsafe { self.exchange.store(place + k * each, sums[k as usize]) };
                    }
                }
            });
            part += 1;
            group += 1;
            from = until;
        }
        thread::sync_threads();
        // SAFETY: sums that warps left before the barrier, each added by one thread, which alone
        // writes them.
        unsafe { self.combine::<S>(first, each, groups) };
        thread::sync_threads();
    }

    /// Adds up what warps left, a number a thread at a time.
    ///
    /// # Safety
    /// As [`all`](Self::all), for groups of `each` targets from `first` on.
    #[inline(always)]
    unsafe fn combine<S: Scheme>(&self, first: u32, each: u32, groups: u32) {
        let (threads, count) = (thread::block_dim_x(), self.count);
        let warps = threads / WARP_SIZE;
        let of_warp = warps.trailing_zeros();
        let numbers = const { sums(S::ORDER) };
        // Room for numbers, so that no division is by an odd one.
        let row = const { sums(S::ORDER).next_multiple_of(4) };
        let scalars = const { 4 * records::partial_vectors(S::ORDER) };
        let rest = self.posts.active - first;
        let work = groups * count;
        let begin = |warp: u32| (warp * work) >> of_warp;
        let warps_a_group = warps as f32 / groups as f32;
        let partials = self.partials.cast::<D::Real>();
        let mut item = thread::thread_idx_x();
        while item < row * rest {
            let (k, number) = (item / row, item % row);
            item += threads;
            if number >= numbers {
                continue;
            }
            let group = k / each;
            // A warp more on both sides, for what rounding takes.
            let mut warp = ((group as f32 * warps_a_group) as u32).saturating_sub(1);
            let last = (((group + 1) as f32 * warps_a_group) as u32 + 2).min(warps);
            let mut sum = D::Real::from_f64(0.0);
            while warp < last {
                let (from, end) = (begin(warp), begin(warp + 1));
                if from < end && end > group * count && from < (group + 1) * count {
                    let part = u32::from(from < group * count);
                    let place = ((2 * warp + part) * numbers + number) * each + k % each;
                    // SAFETY: the caller's promise.
                    sum = together(number, sum, unsafe { self.exchange.load(place) });
                }
                warp += 1;
            }
            let place = (first + k) as usize * scalars as usize + scalar_of(number) as usize;
            let place = partials.wrapping_add(place);
            // SAFETY: the caller's promise.
            unsafe {
                if self.more {
                    sum = together(number, global::load(place, 0), sum);
                }
                global::store(place, 0, sum);
            }
        }
    }

    /// Target `k` of the list of all.
    ///
    /// # Safety
    /// As [`all`](Self::all); there is one.
    #[inline(always)]
    unsafe fn target<S: Scheme>(&self, k: u32) -> Target<D::Real> {
        let (block, own) = self.posts.owner(k);
        // SAFETY: the caller's promise.
        unsafe { Target::fetch::<S, D>(self.targets, block * self.most + own) }
    }

    /// Adds sources `first..end`, every `SHARE`-th of them.
    ///
    /// # Safety
    /// As [`all`](Self::all); there are so many sources.
    #[inline(always)]
    unsafe fn sum<S: Scheme, C: Closest, const LANE: usize, const SHARE: u32>(
        &self,
        first: u32,
        end: u32,
        targets: &[Target<D::Real>; LANE],
        sums: &mut [Sums<D::Real>; LANE],
    ) {
        let mut near = [D::Real::from_f64(0.0); LANE];
        for_each::<LANE>(|l| {
            let [x, y, z] = targets[l].x;
            near[l] = (x * x + y * y + z * z) * D::Real::from_f64(NEAR_SQUARED);
        });
        let mut j = first;
        // SAFETY: the caller's promise.
        unsafe {
            if SHARE == 1 {
                while j + AHEAD <= end {
                    self.pairs::<S, C, LANE, { AHEAD as usize }>(j, targets, &near, sums);
                    j += AHEAD;
                }
            }
            while j < end {
                self.pairs::<S, C, LANE, 1>(j, targets, &near, sums);
                j += SHARE;
            }
        }
    }

    /// `AT_ONCE` sources and all targets of a lane.
    ///
    /// # Safety
    /// As [`all`](Self::all); there are so many sources.
    #[inline(always)]
    unsafe fn pairs<S: Scheme, C: Closest, const LANE: usize, const AT_ONCE: usize>(
        &self,
        first: u32,
        targets: &[Target<D::Real>; LANE],
        near: &[D::Real; LANE],
        sums: &mut [Sums<D::Real>; LANE],
    ) {
        let zero = D::Real::from_f64(0.0);
        let softening_squared = self.softening_squared;
        let square = distance_squared::<Numerics<D::Real, Fused, Approximate, C>>;
        let difference = separation::<Numerics<D::Real, Fused, Approximate, C>>;
        let mut sources = [Source::nothing(); AT_ONCE];
        let mut r = [[[zero; 3]; LANE]; AT_ONCE];
        let mut d2 = [[zero; LANE]; AT_ONCE];
        let mut is_near = false;
        for_each::<AT_ONCE>(|q| {
            // SAFETY: the caller's promise.
            sources[q] = unsafe { Source::load::<S, D>(self.sources, first + q as u32) };
            for_each::<LANE>(|l| {
                r[q][l] = difference(targets[l].x, sources[q].x);
                d2[q][l] = square(r[q][l], softening_squared);
                is_near |= d2[q][l] < near[l];
            });
        });
        if D::LOW && is_near {
            for_each::<AT_ONCE>(|q| {
                // SAFETY: the caller's promise.
                let low = unsafe { Source::low::<S, D>(self.sources, first + q as u32) };
                for_each::<LANE>(|l| {
                    let rest = difference(targets[l].low, low);
                    let [x, y, z] = r[q][l];
                    r[q][l] = [x + rest[0], y + rest[1], z + rest[2]];
                    d2[q][l] = square(r[q][l], softening_squared);
                });
            });
        }
        for_each::<AT_ONCE>(|q| {
            for_each::<LANE>(|l| {
                let Sums {
                    vectors,
                    approach,
                    closeness,
                } = &mut sums[l];
                let (r, d2, mass) = (r[q][l], d2[q][l], sources[q].mass);
                let v = difference(targets[l].v, sources[q].v);
                let near = if S::SNAP {
                    let a = difference(targets[l].a, sources[q].a);
                    add_with_snap::<Numerics<D::Real, Fused, Approximate, C>>(
                        [r, v, a],
                        d2,
                        mass,
                        vectors,
                    )
                } else {
                    let [accelerations, jerks, _] = vectors;
                    add_with_jerk::<Numerics<D::Real, Fused, Approximate, C>>(
                        [r, v],
                        d2,
                        mass,
                        accelerations,
                        jerks,
                    )
                };
                *approach = approach.larger(near.rate.magnitude());
                *closeness = closeness.larger(near.inverse_squared);
            });
        });
    }
}

/// ε² in the digits of pairs.
#[inline(always)]
pub(super) fn softening_squared<D: Digits>(params: &Params) -> D::Real {
    D::Real::from_f64(params.softening_squared)
}
