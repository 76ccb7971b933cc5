//! Block time steps of a neighbour scheme, wholly on a device: the [formulas](crate::neighbour_scheme)
//! are Ahmad & Cohen's with Hermite's scheme of fourth order.
//!
//! The force on a body is the *irregular* one, of the bodies on its list, and the *regular* one, of all
//! others. Blocks own slices of the bodies and agree on the next time as in [plain block
//! steps](super); a block step is two launches:
//!
//! * [`force`]: the irregular forces on all active bodies, a warp a body, whose neighbours
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
//! One device that sweeps its slices takes all other block steps, ninety-nine of a hundred, in one launch: [`step`]
//! gathers the irregular forces on a block's own active bodies, and ends their steps. It hands out no targets, so
//! that the next time is known, not guessed. Bodies have a record of each parity. A launch predicts bodies from the records of
//! one parity; to the other parity it writes what it changes, and what the launch before it has changed. Where a regular step
//! ends next, `step` hands the turn on until the two launches come that end it. Where none ends, these hand the turn on.
//! The clock says [`IN_ONE`](clock::IN_ONE) then.
//!
//! The list changes at the end of a regular step. Its sums are over all but the *new* list; the
//! regular force of the old one is that, plus the irregular force of the new list, minus that of the
//! old, all at the same predicted places.
//!
//! With many bodies the clock says [`BY_HOST`](clock::BY_HOST). Then the host launches the kernels of [`regular`]
//! for the forces of regular steps. They compute far pairs without jerks.
//!
//! Of k slices, slice i has the bodies i, i + k, i + 2k …: neighbours are then on all slices alike,
//! however the bodies are ordered. The *place* of a body is its number when slice follows slice;
//! records that sources are predicted from, levels and lists go by places. Positions of regular pairs are f32, differences of
//! positions of irregular ones f64, and what else there is in pairs is f32. Sums have a fixed order.
//!
//! Several devices share the targets: each computes the forces on the bodies of its slices, of all
//! sources, and has their lists; all predict and correct all bodies, by sums that they read in each other's
//! memory. One device that sweeps its slices has the same bits, for a target's sums are one warp's everywhere.

mod beginning;
mod correct;
mod ends;
mod first;
mod force;
mod join;
mod near;
mod record;
pub mod regular;
mod step;
mod sweep;

pub use correct::{Corrected, HandedOut, MOST_THREADS, OwnBuffers, correct};
pub use first::first;
pub use force::{ForceBuffers, force};
pub use step::{StepBuffers, step, step_bytes};

use cuda_std::vector::Vec4;
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
    /// One word for each parity: a [`RegularProgress`](super::RegularProgress).
    pub const PROGRESS: u32 = NEIGHBOURS + 1;
    /// 1 where the host launches the kernels of [`regular`](super::regular); 0 where slices are swept.
    pub const BY_HOST: u32 = PROGRESS + 2;
    /// Time at which the regular steps end for which the host launches kernels, in ticks.
    pub const REGULAR_NOW: u32 = BY_HOST + 1;
    /// Neighbours of a body that there is room for: the room of all slices, where these are swept.
    pub const LIST: u32 = REGULAR_NOW + 1;
    /// 1 where block steps without regular ones are launches of [`step`](super::step()), and bodies have a record
    /// of each parity.
    pub const IN_ONE: u32 = LIST + 1;
    /// Words.
    pub const WORDS: usize = IN_ONE as usize + 1;
}

/// How far the forces of the regular steps are that end next: a word of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegularProgress {
    /// Nothing is computed, or no regular step is known to end.
    Nothing,
    /// Slices were swept, so that the next launch of [`force`] joins what they left.
    Swept,
    /// The host is to launch the kernels of [`regular`]; until then block steps wait.
    Awaited {
        /// Number of bodies with a regular step that ends.
        targets: u32,
        /// Parity of the irregular sums of active bodies.
        parity: u32,
    },
    /// The host has launched them.
    Done {
        /// As of [`Awaited`](RegularProgress::Awaited).
        parity: u32,
    },
}

impl From<RegularProgress> for u64 {
    #[inline(always)]
    fn from(progress: RegularProgress) -> Self {
        match progress {
            RegularProgress::Nothing => 0,
            RegularProgress::Swept => 1,
            RegularProgress::Awaited { targets, parity } => {
                Self::from(targets) << 32 | Self::from(parity) << 8 | 2
            }
            RegularProgress::Done { parity } => Self::from(parity) << 8 | 3,
        }
    }
}

impl From<u64> for RegularProgress {
    #[inline(always)]
    fn from(word: u64) -> Self {
        let (targets, parity) = ((word >> 32) as u32, (word >> 8) as u32 & 1);
        match word & 0xff {
            0 => Self::Nothing,
            1 => Self::Swept,
            2 => Self::Awaited { targets, parity },
            _ => Self::Done { parity },
        }
    }
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

    /// Number of the first entry of a body's list, where each list has this number.
    #[inline(always)]
    fn list(self, place: u32, entries: u32) -> usize {
        (place - self.first_place) as usize * entries as usize
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

/// Records of a parity, where bodies have one of each.
#[inline(always)]
fn records_of(records: *mut Vec4<u32>, parity: u32, n: u32) -> *mut Vec4<u32> {
    records.wrapping_add(parity as usize * n as usize * RECORD as usize)
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

/// Puts the sums over all but the new list for a regular step that ends. Then follow the number of neighbours
/// found, and the number on the old list.
///
/// # Safety
/// The body's [`REGULAR_SUMS`] are this thread's.
#[inline(always)]
unsafe fn put_regular_sums(to: *mut f64, sums: &[f64; SUMS], [found, before]: [u32; 2]) {
    // SAFETY: the caller's promise.
    unsafe {
        for (number, &sum) in sums.iter().enumerate() {
            global::store(to, number as u32, sum);
        }
        global::store(to, REGULAR_SUMS - 2, f64::from(found));
        global::store(to, REGULAR_SUMS - 1, f64::from(before));
    }
}

/// The clock's [`RegularProgress`] of a parity.
///
/// # Safety
/// The promise of [`word`].
#[inline(always)]
unsafe fn progress(time: *const u64, parity: u32) -> RegularProgress {
    // SAFETY: the caller's promise.
    unsafe { global::load(time, clock::PROGRESS + parity) }.into()
}

/// The part of shared memory in which threads tell each other numbers.
#[inline(always)]
fn control() -> Control {
    Control::of_block_with_regular()
}
