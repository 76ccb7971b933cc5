//! Near leaves pair by pair, and the lists of neighbours.

use crate::abi::Params;
use crate::interaction::{add_with_jerk, distance_squared, separation};
use crate::numerics::Real;
use crate::schedule::block_steps::neighbours::near::{Near, over_lanes, together};
use crate::schedule::block_steps::neighbours::sweep::{Apart, OUT_OF_REACH};
use crate::schedule::block_steps::neighbours::{
    Elapsed, Phase, REGULAR_SUMS, RegularProgress, SUMS, clock, progress, put_regular_sums,
};
use cuda_std::vector::Vec4;
use cuda_std::warp::{Shuffle, WARP_SIZE, ballot, lane_id, sync_warp, warp_id};
use cuda_std::{GpuFloat, global, thread};

use super::{FAR_VECTORS, GROUP, LEAF, WARPS, words_of};

/// The regular forces on the targets, their new lists, and the irregular forces of these; then the next
/// launches of block steps end the steps.
///
/// # Formula
/// `Σ m r / d³` and its derivative in time over the bodies of near leaves that are not neighbours, and the sums
/// of [`far`](super::far()). The largest `3 |r·v|/d²` is of near leaves alone. Neighbours are nearer than R, or count as
/// regular where the list has no room for them.
///
/// # Arguments
/// `sources`, `moving`: of [`leaves`](super::leaves()), `target_positions`, `target_velocities`, `target_order`: as
/// [`far`](super::far()) takes them, and `near`, `far`: of that, read. `records`: read. `lists`, `counts`: written
/// for the targets. `time`: the clock. `regular_sums`: as [`force`](super::super::force) leaves them, written.
/// `params.partials`: targets. `params.tiling`: parts of the leaves, and as `side` the room of a list.
/// `params.blocks`: parity and phase, in [`Phase::Radii`] without sums.
///
/// # Thread mapping
/// One-dimensional blocks of [`THREADS`](super::THREADS); a warp a target, a lane a body of a leaf.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Ahmad & Cohen (1973), J. Comput. Phys. 12, 389.
#[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
#[inline(always)]
pub unsafe fn lists(
    sources: *const Vec4<f32>,
    moving: *const Vec4<f32>,
    target_positions: *const Vec4<f32>,
    target_velocities: *const Vec4<f32>,
    target_order: *const u32,
    near: *const u32,
    far: *const Vec4<f32>,
    records: *const Vec4<u32>,
    lists: *mut u32,
    counts: *mut u32,
    time: *mut u64,
    regular_sums: *mut f64,
    params: Params,
) {
    let Params {
        n,
        partials: targets,
        tiling,
        blocks,
        ..
    } = params;
    let is = |phase: Phase| u32::from(blocks.phase) == phase as u32;
    if thread::index_1d() == 0 && is(Phase::Step) {
        let parity = u32::from(blocks.parity);
        // SAFETY: a word of the clock that this thread alone accesses in this launch.
        unsafe {
            if let RegularProgress::Awaited {
                parity: of_sums, ..
            } = progress(time, parity)
            {
                let done = RegularProgress::Done { parity: of_sums };
                global::store(time, clock::PROGRESS + parity, done.into());
            }
        }
    }
    let number = thread::block_idx_x() * WARPS + warp_id();
    if number >= targets {
        return;
    }
    let lane = lane_id();
    let softening_squared = params.softening_squared as f32;
    // SAFETY: a target, which is this warp's alone, with its list and sums; all lanes are here.
    unsafe {
        let k = global::load(target_order, number);
        let (x, v) = (
            global::load(target_positions, k),
            global::load(target_velocities, k),
        );
        let (own, limit, place) = ([[x.x, x.y, x.z], [v.x, v.y, v.z]], x.w, v.w.to_bits());
        let list = lists.wrapping_add(place as usize * tiling.side as usize);
        let words = words_of(n);
        let near = near.wrapping_add((number / GROUP) as usize * words as usize);
        let mut sums = [0.0_f64; SUMS];
        let (mut found, mut first) = (0, 0);
        while first < words {
            let word = first + lane;
            let of_lane = if word < words {
                global::load(near, word)
            } else {
                0
            };
            let mut with = ballot(of_lane != 0);
            while with != 0 {
                let from = with.trailing_zeros();
                with &= with - 1;
                let mut bits = of_lane.shuffle(from);
                let mut of_word = [0.0_f32; SUMS];
                while bits != 0 {
                    let leaf = (first + from) * u32::BITS + bits.trailing_zeros();
                    bits &= bits - 1;
                    let at = leaf * LEAF + lane;
                    let (source, its) = (global::load(sources, at), global::load(moving, at));
                    let r = separation::<Apart>(own[0], [source.x, source.y, source.z]);
                    let mut d2 = distance_squared::<Apart>(r, softening_squared);
                    let its_place = its.w.to_bits();
                    let is_itself = its_place == place;
                    let is_neighbour = d2 < limit && source.w != 0.0 && !is_itself;
                    let votes = ballot(is_neighbour);
                    let entry = found + (votes & ((1 << lane) - 1)).count_ones();
                    let is_listed = is_neighbour && entry < tiling.side;
                    if is_listed {
                        global::store(list, entry, its_place);
                    }
                    found += votes.count_ones();
                    if is(Phase::Radii) {
                        continue;
                    }
                    if is_listed || is_itself || d2 < f32::SMALLEST_SQUARE {
                        d2 = OUT_OF_REACH;
                    }
                    let v = separation::<Apart>(own[1], [its.x, its.y, its.z]);
                    let [approach, a, b, c, d, e, f] = &mut of_word;
                    let (mut accelerations, mut jerks) = ([*a, *b, *c], [*d, *e, *f]);
                    let near = add_with_jerk::<Apart>(
                        [r, v],
                        d2,
                        source.w,
                        &mut accelerations,
                        &mut jerks,
                    );
                    [*a, *b, *c] = accelerations;
                    [*d, *e, *f] = jerks;
                    *approach = approach.larger(near.rate.magnitude());
                }
                for (which, sum) in sums.iter_mut().enumerate() {
                    *sum = together(which, *sum, f64::from(of_word[which]));
                }
            }
            first += WARP_SIZE;
        }
        let listed = found.min(tiling.side);
        let mut sums = over_lanes(sums);
        let mut part = 0;
        while part < tiling.parts && !is(Phase::Radii) {
            let at = (part as usize * targets as usize + number as usize) * FAR_VECTORS as usize;
            let far = far.wrapping_add(at);
            let (a, j) = (global::load(far, 0), global::load(far, 1));
            let more = [0.0, a.x, a.y, a.z, j.x, j.y, j.z];
            for (which, sum) in sums.iter_mut().enumerate() {
                *sum = together(which, *sum, f64::from(more[which]));
            }
            part += 1;
        }
        let to = regular_sums.wrapping_add(k as usize * REGULAR_SUMS as usize);
        if lane == 0 {
            let before = match is(Phase::Step) {
                true => global::load(counts, place),
                false => 0,
            };
            put_regular_sums(to, &sums, [found, before]);
            global::store(counts, place, listed);
        }
        if is(Phase::Radii) {
            return;
        }
        // Others read what a lane listed.
        sync_warp();
        let of_list = Near {
            records,
            now: global::load(time, clock::REGULAR_NOW),
            elapsed: Elapsed::of(time),
            softening_squared,
        };
        let all = of_list.sums(place, list, listed);
        if lane == 0 {
            for (which, &sum) in all.iter().enumerate() {
                global::store(to, (SUMS + which) as u32, sum);
            }
        }
    }
}
