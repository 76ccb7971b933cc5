//! Block steps without regular ones, each in one launch.

use cuda_std::shared::Shared;
use cuda_std::warp::{WARP_SIZE, lane_id, warp_id};
use cuda_std::{global, opaque, thread};

use crate::abi::Params;
use crate::fields::OnDevice;

use super::correct::{MOST_THREADS, Own, OwnBuffers, REGISTERS, Written};
use super::ends::{External, SumsOf, Work};
use super::near::Near;
use super::{Elapsed, Held, IRREGULAR_SUMS, clock, own_body, records_of, word};
use crate::schedule::block_steps::posts::{Control, MOST_BLOCKS, Post};
use crate::schedule::block_steps::turn::Turn;
use crate::schedule::block_steps::{
    SPAN, Slice, TOO_FINE, clock as plain, coarsest_active, control_words, number,
};

/// Bodies of a slice that are searched for active ones in a pass.
const WINDOW: u32 = 1_024;

const _: () = assert!(
    MOST_THREADS <= MOST_BLOCKS,
    "a warp reads the posts of all blocks"
);

/// Buffers that [`step`] reads and writes.
#[derive(Clone, Copy)]
pub struct StepBuffers {
    /// Bodies, posts and clock.
    pub own: OwnBuffers,
    /// Places of neighbours. Read.
    pub lists: *const u32,
    /// Neighbours on each list; by places. Read.
    pub counts: *const u32,
}

/// Bytes of shared memory of [`step`].
pub const fn step_bytes(threads: u32, slices: u32) -> u32 {
    let sums = IRREGULAR_SUMS * threads * size_of::<f64>() as u32;
    4 * (control_words(threads, slices) + 2 * WINDOW) + sums
}

/// A block step in which no regular step ends: the irregular forces on a block's active bodies, and the ends of their
/// steps. Where a regular step ends next, the turn is handed on as it is.
///
/// Nobody waits for others between forces and ends: bodies are predicted from the records of one parity, and
/// the records of the other parity are written.
///
/// # Formula
/// The formulas of [`force`](super::force) and [`correct`](super::correct).
///
/// # Arguments
/// `on`: as [`StepBuffers`] says. `params.blocks`: parity. `params.g`: in the unit of the bodies. `fields`: external
/// ones, read, with the units of the bodies; none are read where `EXTERNAL` is false.
///
/// # Thread mapping
/// One-dimensional; a block for each slice, of 2ᵏ warps, with at least as many threads as the grid has blocks. It has at most
/// [`MOST_THREADS`](super::MOST_THREADS). A warp gathers the neighbours of an active body, then a thread ends the step
/// of a body.
///
/// # Shared memory
/// [`step_bytes`].
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The source of [`correct`](super::correct). Two records a body, so that a block step is one launch, are of this project.
#[inline(always)]
pub unsafe fn step<const EXTERNAL: bool>(on: StepBuffers, fields: *const f64, params: Params) {
    thread::limit_registers::<REGISTERS>();
    let Params { n, blocks, .. } = params;
    let parity = u32::from(blocks.parity);
    let control = Control::of_block();
    let turn = Turn {
        posts: on.own.posts,
        time: on.own.time,
        parity,
    };
    // SAFETY: all threads are here, and what they leave by is the same for all. Words of the clock that are read are
    // written by nobody in this launch; words of the other parity and counts are written by one thread.
    unsafe {
        let own_post = turn.own_post();
        let slice = Slice::of(thread::block_idx_x(), n);
        let ahead = Listed::load(
            &on,
            slice.first + thread::thread_idx_x().min(slice.count - 1),
        );
        if own_post.regular > 0 {
            turn.hand_on(global::load(on.own.time, plain::NOW + parity));
            return;
        }
        let Some((now, posts)) = turn.read_steps() else {
            return;
        };
        let next = now + (SPAN >> posts.finest);
        if thread::block_idx_x() == 0 {
            turn.count_ended(posts.ended(), posts.finest);
        }
        let span = number(on.own.time, plain::SPAN);
        let elapsed = Elapsed::of(on.own.time);
        let softening_squared = params.softening_squared as f32;
        let own = Own {
            on: on.own,
            slice,
            stride: params.stride,
            control,
            span,
            elapsed,
            softening_squared,
            written: Written {
                first: records_of(on.own.records, parity ^ 1, n),
                second: None,
            },
        };
        if posts.finest_regular >= coarsest_active(next) {
            own.copy_records(records_of(on.own.records, parity, n), now);
            turn.hand_on_counted(now, true);
            return;
        }
        let work = Work {
            now: next,
            span,
            g: params.g,
            eta: number(on.own.time, plain::ETA),
            regular_eta: number(on.own.time, clock::REGULAR_ETA),
            guard: number(on.own.time, plain::GUARD),
            wanted: f64::from(word(on.own.time, clock::WANTED)),
            external: External {
                fields: OnDevice::new(fields),
                span,
                start: number(on.own.time, plain::START),
            },
        };
        let places: Shared<u32> = control.after();
        let counts: Shared<u32> = places.after(WINDOW);
        let mut active = Active {
            own: &own,
            near: Near {
                records: records_of(on.own.records, parity, n),
                now: next,
                elapsed,
                softening_squared,
            },
            on,
            ahead,
            entries: word(on.own.time, clock::LIST),
            held: Held::of(&params),
            places,
            counts,
            sums: counts.after(WINDOW),
            finest: (0, u32::MAX),
        };
        let (mut first, mut ended) = (0, 0);
        while first < own.slice.count {
            let end = (first + WINDOW).min(own.slice.count);
            let count = active.list((first, end), now, coarsest_active(next));
            active.end_steps::<EXTERNAL>(&work, count);
            (first, ended) = (end, ended + count);
        }
        let (finest, body) = active.finest;
        let finest = control.finest_once(finest, body);
        let post = Post::of_steps(finest, posts.finest_regular, ended);
        turn.post(post, next);
    }
}

/// Level of a body, and how many neighbours it has.
#[derive(Clone, Copy)]
struct Listed {
    level: u32,
    neighbours: u32,
}

impl Listed {
    /// Level and neighbours of the own body at a place.
    ///
    /// # Safety
    /// Nobody writes them at the same time.
    #[inline(always)]
    unsafe fn load(on: &StepBuffers, place: u32) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                level: global::load(on.own.levels, place),
                neighbours: global::load(on.counts, place),
            }
        }
    }
}

/// Active bodies of a block.
struct Active<'a> {
    own: &'a Own,
    near: Near,
    on: StepBuffers,
    /// Level and list of this thread's next body to look at.
    ahead: Listed,
    /// Entries of a list.
    entries: u32,
    held: Held,
    /// Places of listed bodies, [`WINDOW`].
    places: Shared<u32>,
    /// Neighbours on their lists.
    counts: Shared<u32>,
    /// [`IRREGULAR_SUMS`] a thread.
    sums: Shared<f64>,
    /// The finest level of the steps that this thread has seen and that go on after this block step. With [`TOO_FINE`],
    /// the first body of this level.
    finest: (u32, u32),
}

impl Active<'_> {
    /// Lists the own bodies at slots from `first` to before `end` that have level `coarsest` or a finer one, and returns
    /// their number. If the step of another one began at `now`, its record is copied. A barrier comes before, and another must
    /// come before lists are read.
    ///
    /// # Safety
    /// All threads call it, in a launch as [`step`] says.
    #[inline(always)]
    unsafe fn list(&mut self, (first, end): (u32, u32), now: u64, coarsest: u32) -> u32 {
        let Own { slice, control, .. } = self.own;
        let began = coarsest_active(now);
        let (mut count, mut first) = (0, first);
        while first < end {
            let slot = first + thread::thread_idx_x();
            let exists = slot < end;
            let place = slice.first + slot.min(end - 1);
            let Listed { level, neighbours } = self.ahead;
            let next = first + thread::block_dim_x() + thread::thread_idx_x();
            thread::sync_threads();
            // SAFETY: own bodies, each by one thread, and places of this thread's own.
            unsafe {
                if first + thread::block_dim_x() < slice.count {
                    self.ahead = Listed::load(&self.on, slice.first + next.min(slice.count - 1));
                }
                // Without branches: see `is_active` of plain block steps.
                let listed = opaque(u32::from(exists & (level >= coarsest))) != 0;
                let (number, more) = control.numbered(listed);
                if listed {
                    self.places.store(count + number, place);
                    self.counts.store(count + number, neighbours);
                } else if exists {
                    self.see(level, place);
                    if level >= began {
                        self.own.copy_record(self.near.records, place);
                    }
                }
                count += more;
            }
            first += thread::block_dim_x();
        }
        count
    }

    /// Ends the steps of the first `count` of the listed bodies. A barrier comes before.
    ///
    /// # Safety
    /// The promise of [`list`](Self::list).
    #[inline(always)]
    unsafe fn end_steps<const EXTERNAL: bool>(&mut self, work: &Work, count: u32) {
        let threads = thread::block_dim_x();
        let warps = threads / WARP_SIZE;
        let (mut first, mut neighbours) = (0, 0.0);
        while first < count {
            let some = (count - first).min(threads);
            thread::sync_threads();
            let own = thread::thread_idx_x();
            // SAFETY: an active body of this thread's, which nobody gathers from the state.
            let body = unsafe {
                let place = self.places.load(first + own.min(some - 1));
                self.own.body(place)
            };
            let mut k = warp_id();
            while k < some {
                // SAFETY: an active body; this warp alone has its sums.
                unsafe { self.gather(k, first + k) };
                k += warps;
            }
            thread::sync_threads();
            if own < some {
                // SAFETY: the body is this thread's, and its sums were stored before the barrier.
                unsafe {
                    let numbers = |number| self.sums.load(own * IRREGULAR_SUMS + number);
                    let sums = SumsOf::of([0, 1, 2, 3, 4, 5, 6, 7].map(numbers));
                    let moved = self.own.end_step::<EXTERNAL>(work, &body, &sums);
                    let (_, level) = body.regular_step;
                    let level = self.own.begin_step(work, &body, moved, level);
                    self.see(level, body.place);
                    neighbours += sums.neighbours();
                }
            }
            first += threads;
        }
        // SAFETY: all lanes are here.
        unsafe { self.own.count_neighbours(neighbours) };
    }

    /// Keeps the level of a step of the own body at a place in mind.
    #[inline(always)]
    fn see(&mut self, level: u32, place: u32) {
        let (finest, body) = self.finest;
        let its_body = if level == TOO_FINE {
            own_body(place - self.own.slice.first)
        } else {
            u32::MAX
        };
        self.finest = (finest.max(level), body.min(its_body));
    }

    /// Leaves the irregular sums of a listed body as number `k`. By a warp.
    ///
    /// # Safety
    /// The promise of [`list`](Self::list).
    #[inline(always)]
    unsafe fn gather(&self, k: u32, listed: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let (place, count) = (self.places.load(listed), self.counts.load(listed));
            let list = self
                .on
                .lists
                .wrapping_add(self.held.list(place, self.entries));
            let sums = self.near.sums(place, list, count);
            if lane_id() == 0 {
                for (number, &sum) in sums.iter().enumerate() {
                    self.sums.store(k * IRREGULAR_SUMS + number as u32, sum);
                }
                self.sums
                    .store((k + 1) * IRREGULAR_SUMS - 1, f64::from(count));
            }
        }
    }
}
