//! Lists and sums of all slices, joined.

use crate::abi::Params;
use cuda_std::vector::Vec4;
use cuda_std::warp::{Shuffle, WARP_SIZE, lane_id, sync_warp, up_to_lane, warp_id};
use cuda_std::{global, thread};

use super::near::{Near, over_lanes, together};
use super::sweep::{Target, header, regular_index};
use super::{
    Elapsed, HEADER, Phase, REGULAR_SUMS, SUMS, Slice, capacity, clock, control, segment_words,
    word,
};
use crate::schedule::block_steps::{
    MOST_REGISTERS, SPAN, TOO_FINE, clock as plain, most_of_a_slice,
};

/// Joins what [`force`](super::force) left of each slice for the bodies whose regular steps end: adds up
/// the sums, makes the new lists, and computes the irregular forces of these.
///
/// # Arguments
/// `records`, `targets`, `posts`, `time`, `segments`: read. `lists`, `counts`: written for these
/// bodies. `sums`: [`REGULAR_SUMS`] for each of them in order, written. `params.blocks.phase`: at
/// [`Phase::Begin`] forces are of the time at which the span begins.
///
/// # Thread mapping
/// One-dimensional; a block for each slice, of 2ᵏ warps and at least as many threads as there are
/// blocks. A warp a body: its lanes have different slices, then different neighbours.
///
/// # Shared memory
/// [`control_bytes`](super::control_bytes).
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Of this project.
#[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
#[inline(always)]
pub unsafe fn list(
    records: *const Vec4<u32>,
    lists: *mut u32,
    counts: *mut u32,
    targets: *const Vec4<f32>,
    posts: *const u64,
    time: *const u64,
    segments: *const u32,
    sums: *mut f64,
    params: Params,
) {
    thread::limit_registers::<MOST_REGISTERS>();
    let Params { n, blocks, .. } = params;
    let (block, slices) = (thread::block_idx_x(), thread::grid_dim_x());
    let (warps, lane) = (thread::block_dim_x() / WARP_SIZE, lane_id());
    let parity = u32::from(blocks.parity);
    let is_begin = u32::from(blocks.phase) == Phase::Begin as u32;
    // SAFETY: as in `force`.
    let (posts, now, elapsed, room) = unsafe {
        (
            control().read_posts::<true>(posts.wrapping_add((parity * slices) as usize)),
            global::load(time, plain::NOW + parity),
            Elapsed::of(time),
            word(time, clock::ROOM),
        )
    };
    if posts.regular == 0 || posts.finest == TOO_FINE || !posts.agreed || now >= SPAN {
        return;
    }
    let near = Near {
        records,
        now: if is_begin {
            0
        } else {
            now + (SPAN >> posts.finest)
        },
        elapsed,
        softening_squared: params.softening_squared as f32,
    };
    let (most, words) = (most_of_a_slice(n, slices), segment_words(room));
    let mut k = warp_id() * slices + block;
    while k < posts.regular {
        // SAFETY: a target, whose list and sums are this warp's.
        unsafe {
            let Target { place, .. } = Target::fetch(targets, regular_index(&posts, most, k));
            let list = lists.wrapping_add(place as usize * capacity(room) as usize);
            let sums = sums.wrapping_add(k as usize * REGULAR_SUMS as usize);
            let mut all = [0.0; SUMS];
            let (mut found, mut listed, mut first) = (0, 0, 0);
            while first < slices {
                let slice = (first + lane).min(slices - 1);
                let index = (slice as usize * n as usize + k as usize) * words as usize;
                let segment = segments.wrapping_add(index);
                let (of_slice, its_found) = header(segment);
                let its_found = if first + lane < slices { its_found } else { 0 };
                for number in 0..SUMS {
                    let more = if first + lane < slices {
                        of_slice[number]
                    } else {
                        0.0
                    };
                    all[number] = together(number, all[number], f64::from(more));
                }
                let count = its_found.min(room);
                let up_to = up_to_lane(count);
                let entries: *const u16 = segment.wrapping_add(HEADER as usize).cast();
                let (begin, place) = (listed + up_to - count, Slice::of(slice, n).first);
                let mut entry = 0;
                while entry < count {
                    let slot = u32::from(global::load(entries, entry));
                    global::store(list, begin + entry, place + slot);
                    entry += 1;
                }
                found += its_found;
                listed += up_to.shuffle(WARP_SIZE - 1);
                first += WARP_SIZE;
            }
            over_lanes(&mut all);
            let found = up_to_lane(found);
            if lane == WARP_SIZE - 1 {
                for (number, &sum) in all.iter().enumerate() {
                    global::store(sums, number as u32, sum);
                }
                global::store(sums, REGULAR_SUMS - 2, f64::from(found));
                let before = if is_begin {
                    0
                } else {
                    global::load(counts, place)
                };
                global::store(sums, REGULAR_SUMS - 1, f64::from(before));
                global::store(counts, place, listed);
            }
            // Others read what a lane listed.
            sync_warp();
            let all = near.sums(place, list, listed, (0, WARP_SIZE));
            if lane == 0 {
                for (number, &sum) in all.iter().enumerate() {
                    global::store(sums, (SUMS + number) as u32, sum);
                }
            }
        }
        k += warps * slices;
    }
}
