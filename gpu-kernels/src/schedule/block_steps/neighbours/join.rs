//! Lists and sums of all slices, joined.

use cuda_std::vector::Vec4;
use cuda_std::warp::{Shuffle, WARP_SIZE, lane_id, sync_warp, up_to_lane, warp_id};
use cuda_std::{global, thread};

use super::near::{Near, over_lanes, together};
use super::sweep::{Target, header, regular_index};
use super::{HEADER, Held, REGULAR_SUMS, SUMS, Slice, put_regular_sums, segment_words};
use crate::schedule::block_steps::most_of_a_slice;
use crate::schedule::block_steps::posts::Posts;

/// Sums and lists that [`force`](super::force) left of each slice, for the bodies whose regular steps end, and where they
/// are joined.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    /// Places of neighbours: written for these bodies.
    pub(super) lists: *mut u32,
    /// Neighbours on each list: as these.
    pub(super) counts: *mut u32,
    /// The bodies.
    pub(super) targets: *const Vec4<f32>,
    /// Sums and lists of each slice.
    pub(super) segments: *const u32,
    /// [`REGULAR_SUMS`] for each of the bodies in order, written.
    pub(super) sums: *mut f64,
    /// Sources and time of the irregular forces of the new lists.
    pub(super) near: Near,
    /// Beginnings of the blocks' targets.
    pub(super) posts: Posts,
    /// Bodies.
    pub(super) n: u32,
    /// Bodies of this device.
    pub(super) held: Held,
    /// Neighbours in a slice that there is room for.
    pub(super) room: u32,
    /// Entries of a list.
    pub(super) entries: u32,
    /// True if a span begins, and with it the lists.
    pub(super) begins: bool,
}

impl Parts {
    /// Joins the parts of all targets of this device. All warps of the grid share them.
    ///
    /// # Safety
    /// The buffers are as said, and all threads of the launch call it.
    #[inline(always)]
    pub(super) unsafe fn join_all(&self) {
        let (block, slices) = (thread::block_idx_x(), thread::grid_dim_x());
        let warps = thread::block_dim_x() / WARP_SIZE;
        let (first, end) = self.held.regular_targets(&self.posts);
        let mut k = first + warp_id() * slices + block;
        while k < end {
            // SAFETY: a target, and this warp's alone.
            unsafe { self.join(k, k - first) };
            k += warps * slices;
        }
    }

    /// Joins the parts of target `k`, number `own` of this device: adds up the sums of all slices, makes the new list, and computes
    /// the irregular force of that. By a warp, whose lanes have different slices, then different
    /// neighbours.
    ///
    /// # Safety
    /// The buffers are as said; all lanes of one warp alone call it with this `k`, a target that exists.
    #[inline(always)]
    unsafe fn join(&self, k: u32, own: u32) {
        let (slices, lane) = (thread::grid_dim_x(), lane_id());
        let Self { n, held, room, .. } = *self;
        let (most, words) = (most_of_a_slice(n, slices), segment_words(room));
        // SAFETY: a target, whose list and sums are this warp's.
        unsafe {
            let Target { place, .. } =
                Target::fetch(self.targets, regular_index(&self.posts, most, k));
            let list = self.lists.wrapping_add(held.list(place, self.entries));
            let sums = self.sums.wrapping_add(k as usize * REGULAR_SUMS as usize);
            let mut all = [0.0; SUMS];
            let (mut found, mut listed, mut first) = (0, 0, 0);
            while first < slices {
                let slice = (first + lane).min(slices - 1);
                let index = (slice as usize * held.bodies as usize + own as usize) * words as usize;
                let segment = self.segments.wrapping_add(index);
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
            let all = over_lanes(all);
            let found = up_to_lane(found);
            if lane == WARP_SIZE - 1 {
                let before = if self.begins {
                    0
                } else {
                    global::load(self.counts, place)
                };
                put_regular_sums(sums, &all, [found, before]);
                global::store(self.counts, place, listed);
            }
            // Others read what a lane listed.
            sync_warp();
            let all = self.near.sums(place, list, listed);
            if lane == 0 {
                for (number, &sum) in all.iter().enumerate() {
                    global::store(sums, (SUMS + number) as u32, sum);
                }
            }
        }
    }
}
