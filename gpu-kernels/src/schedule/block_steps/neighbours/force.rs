//! The forces on active bodies.

use crate::abi::Params;
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::warp::{WARP_SIZE, lane_id, warp_id};
use cuda_std::{global, thread};

use super::join::Parts;
use super::near::Near;
use super::record::Record;
use super::sweep::{self, Sweep};
use super::{
    Elapsed, GROUP, Held, IRREGULAR_SUMS, Phase, RegularProgress, SUMS, Slice, clock, control,
    each_of_block, progress, records_of, segment_words, word,
};
use crate::schedule::block_steps::{MOST_REGISTERS, SPAN, TOO_FINE, clock as plain};

/// Buffers that [`force`] reads and writes.
#[derive(Clone, Copy)]
pub struct ForceBuffers {
    /// Four vectors a body. Read.
    pub records: *const Vec4<u32>,
    /// Places of neighbours, room for as many of each body of `params.share` as segments have together.
    pub lists: *mut u32,
    /// Neighbours on each list; by places.
    pub counts: *mut u32,
    /// Bodies whose steps end, as many for each slice as the largest has bodies. Read.
    pub irregular_targets: *const u64,
    /// Bodies whose regular steps end, two vectors each; as many. Read.
    pub regular_targets: *const Vec4<f32>,
    /// Posts of both parities. Read.
    pub posts: *const u64,
    /// The clock. Read.
    pub time: *const u64,
    /// [`IRREGULAR_SUMS`] for each active body in order.
    pub irregular_sums: *mut f64,
    /// Irregular sums of the launch before. Read.
    pub irregular_before: *const f64,
    /// For each slice, and in it for each body of `params.share` whose regular step ends in order,
    /// [`segment_bytes`](super::segment_bytes).
    pub segments: *mut u32,
    /// [`REGULAR_SUMS`](super::REGULAR_SUMS) for each body whose regular step ends, in order.
    pub regular_sums: *mut f64,
}

/// The irregular forces on the active bodies of the slices of `params.share`; and where regular steps end, for
/// each such body the sums over each slice's bodies beyond its radius, and a list of those within. If that was
/// [done](RegularProgress::Swept), joins these instead, and computes the irregular forces of the new lists. Where the
/// [host](clock::BY_HOST) launches the kernels of regular forces, irregular forces alone.
///
/// In [`Phase::Begin`] sums and lists of all bodies where they are when the span begins; if `SEARCH` the
/// lists alone, and sums that are zero. In [`Phase::Join`] what these left is joined.
///
/// # Formula
/// `Σ_j m_j r / d³` and its derivative in time, with sources and targets where Taylor's series has them
/// at the next time; and the largest `3 |r·v|/d²`.
///
/// # Arguments
/// `on`: as [`ForceBuffers`] says. `params.blocks`: parity and phase. `params.share`: slices.
///
/// # Thread mapping
/// One-dimensional; a block for each slice of all, of 2ᵏ warps and at least as many threads as there are
/// blocks. A warp gathers the neighbours of an active body; `sweep` says who computes which
/// regular pairs; a warp joins what slices left for a body.
///
/// # Shared memory
/// [`force_bytes`](super::force_bytes), and [`source_bytes`](super::source_bytes) for each of
/// `params.blocks.chunk` sources.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Ahmad & Cohen (1973), J. Comput. Phys. 12, 389; Makino & Aarseth (1992), PASJ 44, 141. That blocks
/// own slices is of this project.
#[inline(always)]
pub unsafe fn force<const SEARCH: bool>(on: ForceBuffers, params: Params) {
    thread::limit_registers::<MOST_REGISTERS>();
    let Params { n, blocks, .. } = params;
    let (block, slices) = (thread::block_idx_x(), thread::grid_dim_x());
    let threads = thread::block_dim_x();
    let parity = u32::from(blocks.parity);
    let is = |phase: Phase| u32::from(blocks.phase) == phase as u32;
    let control = control();
    // SAFETY: a post for each block; all threads are here, and leave together: what they leave by is
    // the same for all. The words of the clock are written by nobody in this launch.
    let (now, progress, elapsed, entries, is_by_host, is_in_one, posts) = unsafe {
        let posts = on.posts.wrapping_add((parity * slices) as usize);
        (
            global::load(on.time, plain::NOW + parity),
            progress(on.time, parity),
            Elapsed::of(on.time),
            word(on.time, clock::LIST),
            word(on.time, clock::BY_HOST) != 0,
            word(on.time, clock::IN_ONE) != 0,
            control.read_posts::<true>(posts),
        )
    };
    let held = Held::of(&params);
    let begins = is(Phase::Begin) || is(Phase::Join);
    let records = if is_in_one {
        records_of(on.records.cast_mut(), parity, n)
    } else {
        on.records
    };
    let mut near = Near {
        records,
        now: 0,
        elapsed,
        softening_squared: params.softening_squared as f32,
    };
    if !begins {
        if now >= SPAN || posts.finest == TOO_FINE || !posts.agreed {
            return;
        }
        near.now = now + (SPAN >> posts.finest);
    }
    if !begins {
        let passes_on = match progress {
            RegularProgress::Nothing => false,
            RegularProgress::Swept => true,
            RegularProgress::Awaited { .. } => return,
            RegularProgress::Done { parity: of_sums } if of_sums == parity => return,
            RegularProgress::Done { .. } => true,
        };
        if passes_on {
            // SAFETY: the launch's promise.
            unsafe { pass_on(&on, held.targets(&posts)) };
        }
        if let RegularProgress::Done { .. } = progress {
            return;
        }
    }
    if is(Phase::Join) || (!begins && progress == RegularProgress::Swept) {
        let parts = Parts {
            lists: on.lists,
            counts: on.counts,
            targets: on.regular_targets,
            segments: on.segments,
            sums: on.regular_sums,
            near,
            posts,
            n,
            held,
            // SAFETY: as above.
            room: unsafe { word(on.time, clock::ROOM) },
            entries,
            begins,
        };
        // SAFETY: the launch's promise.
        unsafe { parts.join_all() };
        return;
    }
    let sources: Shared<f32> = control.after();
    let exchange: Shared<f32> = sources.after(blocks.chunk * sweep::SOURCE);
    if !SEARCH && !begins {
        // SAFETY: the launch's promise; all threads are here.
        unsafe {
            let targets = |k| {
                let (block, own) = posts.owner(k);
                let index = block as usize * Slice::of(block, n).most as usize + own as usize;
                global::load(on.irregular_targets.wrapping_add(index), 0) as u32
            };
            let list_of = |place| {
                on.lists
                    .wrapping_add(held.list(place, entries))
                    .cast_const()
            };
            gather(&near, &on, held.targets(&posts), list_of, targets);
        }
        if posts.regular == 0 || is_by_host {
            return;
        }
        thread::sync_threads();
    }
    let slice = Slice::of(block, n);
    // SAFETY: as above.
    let room = unsafe { word(on.time, clock::ROOM) };
    let words = segment_words(room);
    let of_block = block as usize * held.bodies as usize * words as usize;
    let mut sweep = Sweep {
        targets: on.regular_targets,
        most: slice.most,
        posts,
        own: held.regular_targets(&posts),
        segments: on.segments.wrapping_add(of_block),
        words,
        room,
        softening_squared: near.softening_squared,
        sources,
        count: 0,
        slot: 0,
        first_place: slice.first,
        exchange,
        found: exchange.after(threads / WARP_SIZE * GROUP * SUMS as u32),
    };
    while sweep.slot < slice.count {
        sweep.count = (slice.count - sweep.slot).min(blocks.chunk);
        each_of_block(0, sweep.count, |k| {
            // SAFETY: a body of this block's slice, and room of this thread's own: the last sweep ended
            // with a barrier.
            unsafe {
                let record = Record::load(records, slice.first + sweep.slot + k);
                let moved = record.predicted(near.now, elapsed);
                let x = moved.x.map(|x| x as f32);
                sweep::put_source(sources, k, x, record.mass, moved.v);
            }
        });
        thread::sync_threads();
        // SAFETY: the launch's promise; sources are there.
        unsafe { sweep.all::<SEARCH>() };
        sweep.slot += blocks.chunk;
    }
}

/// Hands on the irregular sums of targets from `first` to before `end`, which the launch before has computed.
///
/// # Safety
/// As [`force`].
#[inline(always)]
unsafe fn pass_on(on: &ForceBuffers, (first, end): (u32, u32)) {
    let threads = thread::grid_dim_x() * thread::block_dim_x();
    let mut number = first * IRREGULAR_SUMS + thread::index_1d();
    while number < end * IRREGULAR_SUMS {
        // SAFETY: a number of this thread's alone.
        unsafe {
            let before = global::load(on.irregular_before, number);
            global::store(on.irregular_sums, number, before);
        }
        number += threads;
    }
}

/// The irregular forces on this device's active bodies, numbers `begin` to before `end`: each by a warp.
///
/// # Safety
/// As [`force`]; `target` is the place of an active body.
#[inline(always)]
unsafe fn gather(
    near: &Near,
    on: &ForceBuffers,
    (begin, end): (u32, u32),
    list_of: impl Fn(u32) -> *const u32,
    target: impl Fn(u32) -> u32,
) {
    let slices = thread::grid_dim_x();
    let warps = thread::block_dim_x() / WARP_SIZE;
    let mut k = begin + warp_id() * slices + thread::block_idx_x();
    while k < end {
        // SAFETY: an active body, and the sums' own place.
        unsafe {
            let place = target(k);
            let count = global::load(on.counts, place);
            let sums = near.sums(place, list_of(place), count);
            if lane_id() == 0 {
                let numbers = on
                    .irregular_sums
                    .wrapping_add((k * IRREGULAR_SUMS) as usize);
                for (number, &sum) in sums.iter().enumerate() {
                    global::store(numbers, number as u32, sum);
                }
                global::store(numbers, IRREGULAR_SUMS - 1, f64::from(count));
            }
        }
        k += warps * slices;
    }
}
