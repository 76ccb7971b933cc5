//! Block time steps of a neighbour scheme, wholly on a device: the [formulas](crate::neighbour_scheme)
//! are Ahmad & Cohen's with Hermite's scheme of fourth order.
//!
//! The force on a body is the *irregular* one, of the bodies on its list, and the *regular* one, of all
//! others. Blocks own slices of the bodies and agree on the next time as in [plain block
//! steps](super); a block step is two launches:
//!
//! * [`force`]: the irregular forces on all active bodies, a warp or several a body, whose neighbours
//!   are gathered and predicted one by one. Where regular steps end, every block sweeps its slice over
//!   those bodies: it leaves sums over the bodies that are farther away than the target's radius, and
//!   lists the others;
//! * [`correct`]: every block ends the steps of its own active bodies, chooses new ones, and hands out
//!   those that are active next.
//!
//! Where regular steps end it takes two launches more, once in a hundred block steps: `correct` hands
//! the turn on as it is, and `force` joins the sums and the lists of all slices and gathers the irregular
//! forces of the new lists, before `correct` changes what bodies are predicted from.
//!
//! The list changes at the end of a regular step. Its sums are over all but the *new* list; the
//! regular force of the old one is that, plus the irregular force of the new list, minus that of the
//! old, all at the same predicted places.
//!
//! Of k slices, slice i has the bodies i, i + k, i + 2k …: neighbours are then on all slices alike,
//! however the bodies are ordered. The *place* of a body is its number when slice follows slice;
//! records that sources are predicted from, levels and lists go by places. Positions of regular pairs are f32, differences of
//! positions of irregular ones f64, and what else there is in pairs is f32. Sums have a fixed order.
//!
//! Several devices share the targets: each computes the forces on the bodies of its slices, of all
//! sources, and has their lists; all predict and correct all bodies, by sums that they read in each other's
//! memory. Which warps share a target, and so the order of its sums, follows from the numbers of all targets:
//! the bits are those of one device.

mod beginning;
mod correct;
mod ends;
mod first;
mod force;
mod join;
mod near;
mod record;
mod sweep;

pub use correct::{Corrected, MOST_THREADS, correct};
pub use first::first;
pub use force::{ForceBuffers, force};

use cuda_std::warp::WARP_SIZE;
use cuda_std::{global, thread};

use super::posts::{Control, Posts};
use super::{DEEPEST, SPAN, Slice, control_words, regular_words};
use crate::abi::{Params, Share};

/// Purpose of a launch of [`correct`], and of [`force`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// To end a block step and hand out the next one's targets.
    Step,
    /// To begin a span: to hand out all bodies where they are, so that their lists are made.
    Begin,
    /// To join the lists and sums of all slices, where a span begins.
    Join,
    /// As [`Begin`](Phase::Begin), with radii by which about as many should be found as are wanted.
    Radii,
    /// As [`Begin`](Phase::Begin), with radii that have been tried, and gave not too many.
    Settled,
    /// To take what the lists leave of the whole force as the regular one, and to hand out the first
    /// targets.
    Ready,
}

/// Words of the [clock](super::clock) that only a neighbour scheme has.
pub mod clock {
    use super::super::clock::WORDS as PLAIN;

    /// η of regular steps: the bits of an f64.
    pub const REGULAR_ETA: u32 = PLAIN as u32;
    /// Neighbours that are wanted of each body.
    pub const WANTED: u32 = REGULAR_ETA + 1;
    /// Neighbours in a slice that there is room for, a multiple of [`ROOMS`](super::ROOMS).
    pub const ROOM: u32 = WANTED + 1;
    /// Regular steps ended.
    pub const REGULAR: u32 = ROOM + 1;
    /// Neighbours whose forces were computed: the bits of an f64.
    pub const NEIGHBOURS: u32 = REGULAR + 1;
    /// One word for each parity: 1 if slices were swept for the regular steps that end, so that the next
    /// launch of [`force`](super::force) joins what they left.
    pub const SWEPT: u32 = NEIGHBOURS + 1;
    /// Words.
    pub const WORDS: usize = SWEPT as usize + 2;
}

/// Divisor of the room of a segment.
pub const ROOMS: u32 = 8;

/// Words of a segment ahead of its list: six sums, the fastest approach, and a count.
const HEADER: u32 = 8;

/// Numbers of sums over neighbours: an approach, an acceleration, a jerk, and how many neighbours there are.
pub const IRREGULAR_SUMS: u32 = 8;

/// Numbers of a body whose regular step ends: sums over all others and over the new list as in
/// [`IRREGULAR_SUMS`], but for the last: how many neighbours were found, and how many were on the old
/// list.
pub const REGULAR_SUMS: u32 = 16;

/// Vectors of four words of a body's record.
pub const RECORD: u32 = 4;

/// Vectors of a target whose regular step ends.
pub const REGULAR_TARGET: u32 = 2;

/// Targets of a lane in a sweep.
const LANE: u32 = 2;

/// Targets of a warp in a sweep.
const GROUP: u32 = LANE * WARP_SIZE;

/// Sums of a target in a sweep: approach, acceleration, jerk.
const SUMS: usize = 7;

/// Bytes of a segment: what a block leaves for a target, with its list.
pub const fn segment_bytes(room: u32) -> u32 {
    4 * segment_words(room)
}

const fn segment_words(room: u32) -> u32 {
    HEADER + room / 2
}

/// Bytes of shared memory of [`force`] beside its sources.
pub const fn force_bytes(threads: u32, slices: u32) -> u32 {
    let sums = threads / WARP_SIZE * GROUP * (SUMS as u32 + 1);
    4 * (control_words(threads, slices) + regular_words(threads, slices) + sums)
}

/// Bytes of shared memory that [`force`] needs for each source that it keeps at a time.
pub const fn source_bytes() -> u32 {
    4 * sweep::SOURCE
}

/// Bytes of shared memory of [`correct`].
pub const fn control_bytes(threads: u32, slices: u32) -> u32 {
    4 * (control_words(threads, slices) + regular_words(threads, slices))
}

/// Index of this block's body at a slot of its slice.
#[inline(always)]
fn own_body(slot: u32) -> u32 {
    thread::block_idx_x() + slot * thread::grid_dim_x()
}

/// Index of the body at a place.
#[inline(always)]
fn body_at(place: u32, n: u32) -> u32 {
    let slices = thread::grid_dim_x();
    let (each, more) = (n / slices, n % slices);
    let in_larger = more * (each + 1);
    let (block, slot) = if place < in_larger {
        (place / (each + 1), place % (each + 1))
    } else {
        (
            more + (place - in_larger) / each,
            (place - in_larger) % each,
        )
    };
    block + slot * slices
}

/// Calls `with` for the numbers below `end` from `first` on, one a thread at a time. All threads leave the
/// loop together: at a barrier the assembler takes for granted that a warp's are together, and where
/// paths join that loops leave at different times it has left them apart (seen with CUDA 13.0).
#[inline(always)]
fn each_of_block(first: u32, end: u32, mut with: impl FnMut(u32)) {
    let mut begin = first;
    while begin < end {
        let number = begin + thread::thread_idx_x();
        if number < end {
            with(number);
        }
        begin += thread::block_dim_x();
    }
}

/// Bodies of the slices of `params.share`: those whose forces this device computes, and whose lists it has.
#[derive(Clone, Copy)]
struct Held {
    slices: Share,
    /// Place of the first.
    first_place: u32,
    /// Number of them.
    bodies: u32,
}

impl Held {
    #[inline(always)]
    fn of(params: &Params) -> Self {
        let Params { n, share, .. } = *params;
        let first_place = Slice::of(share.first, n).first;
        Self {
            slices: share,
            first_place,
            bodies: Slice::of(share.end, n).first - first_place,
        }
    }

    /// Number of the first of them among all targets, and the one behind that of the last.
    #[inline(always)]
    fn targets(self, posts: &Posts) -> (u32, u32) {
        let Share { first, end } = self.slices;
        (posts.begin_of(first), posts.begin_of(end))
    }

    /// As [`targets`](Self::targets), of those whose regular steps end.
    #[inline(always)]
    fn regular_targets(self, posts: &Posts) -> (u32, u32) {
        let Share { first, end } = self.slices;
        (posts.regular_begin_of(first), posts.regular_begin_of(end))
    }

    /// Number of the first entry of a body's list.
    #[inline(always)]
    fn list(self, place: u32, room: u32) -> usize {
        (place - self.first_place) as usize * capacity(room) as usize
    }
}

/// A time span on the clock, in the unit of the bodies.
#[derive(Clone, Copy)]
struct Elapsed {
    span: f32,
}

impl Elapsed {
    /// As the clock has it.
    ///
    /// # Safety
    /// `time` is a clock.
    #[inline(always)]
    unsafe fn of(time: *const u64) -> Self {
        // SAFETY: the caller's promise.
        let span = unsafe { super::number(time, super::clock::SPAN) };
        Self { span: span as f32 }
    }

    /// From one time to a later one.
    #[inline(always)]
    fn between(self, from: u64, to: u64) -> f32 {
        const TICK: f32 = 1.0 / SPAN as f32;
        ((to - from) as f32 * TICK) * self.span
    }
}

/// A body to move: its place, and its number among the bodies of its block whose regular steps end, or
/// none.
#[inline(always)]
fn irregular_target(place: u32, regular: Option<u32>) -> u64 {
    let regular = match regular {
        Some(number) => number + 1,
        None => 0,
    };
    u64::from(regular) << 32 | u64::from(place)
}

/// Beginning and level of a regular step, in a word.
#[inline(always)]
fn regular_step(begun: u64, level: u32) -> u64 {
    begun << 8 | u64::from(level)
}

/// Inverse of [`regular_step`].
#[inline(always)]
fn of_regular_step(word: u64) -> (u64, u32) {
    (word >> 8, word as u32 & 0xff)
}

const _: () = assert!(DEEPEST + 8 <= 64);

/// Neighbours of a body that there is room for, of all slices together.
#[inline(always)]
fn capacity(room: u32) -> u32 {
    room * thread::grid_dim_x()
}

/// The clock's word as a number of 32 bits.
///
/// # Safety
/// `time` is a clock of a neighbour scheme, and nobody writes the word in this launch.
#[inline(always)]
unsafe fn word(time: *const u64, word: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { global::load(time, word) as u32 }
}

/// The part of shared memory in which threads tell each other numbers.
#[inline(always)]
fn control() -> Control {
    Control::of_block_with_regular()
}
