//! Block time steps wholly on a device: for each body a step of its own, a span of time halved so
//! many times over (McMillan 1986; Makino 1991, PASJ 43, 859), by Hermite's scheme of fourth or sixth
//! order.
//!
//! The bodies are cut into *slices*, as many as the grid has blocks, and a block owns a slice: it
//! alone reads and writes the bodies of its slice, predicts them as sources into its shared memory,
//! and computes what they do to all *active* bodies, those whose steps end at the next time. So a
//! block step is two launches with nothing between them for the host to do:
//!
//! * [`force`]: every block agrees on the next time, predicts its slice there, and leaves
//!   for each active body the sums over its slice;
//! * [`correct`]: every block adds up the sums for its own active bodies, ends their
//!   steps and chooses new ones, guesses the next time, and hands out its bodies active then, as they
//!   are predicted, as *targets*.
//!
//! Between the two, [`relativity`] adds what depends on one of the bodies, where there is such a term.
//!
//! A block knows how fine the steps of its own bodies are, not those of others: it *posts* the
//! finest, its guess, and how many targets it has. What the posts of all say is the next time; if
//! anybody guessed another, nothing is computed and `correct` hands out targets anew. Counts of the
//! posts are also where in the list of all active bodies those of a block begin: the list is
//! compact, and in the order of the bodies.
//!
//! No block waits for another within a launch, and sums have a fixed order: a number of slices decides
//! the bits, nothing else. Posts and time are kept twice and taken in turn, so that a block that is
//! done does not overwrite what another is about to read.
//!
//! Several devices have all bodies each, and cut them into as many slices as they have blocks together.
//! Sources are of these slices, of which a device computes with its own; between the two launches
//! [`gather`] adds up its sums. `correct` adds those of all devices, which it reads in their memory, and
//! ends the steps of all bodies on each: so targets, posts and time are the same everywhere, and of the
//! slices that a device has blocks.
//!
//! Where the host takes the steps, [`take_over`] brings what it tells the device, and [`force`] and [`gather`] follow.

mod correct;
mod force;
mod gather;
pub mod neighbours;
mod posts;
mod records;
mod relativity;
mod scheme;
mod sweep;
mod told;
mod turn;

pub use correct::correct;
pub use force::force;
pub use gather::gather;
pub use posts::{MOST_REGULAR, targets, targets_by_block};
pub use records::{Digits, DigitsName, Double, Mixed, Single};
pub use relativity::relativity;
pub use scheme::{Begun, Ended, Fourth, Moving, Scheme, Sixth, StepAccuracy};
pub use told::{TOLD_HEAD, take_over, told_of_body};

use cuda_std::vector::Vec4;
use cuda_std::warp::WARP_SIZE;
use cuda_std::{global, thread};

/// The layout of the bodies' state and its derivatives.
pub type Bodies = crate::layout::Float4<f64>;

/// Number of times that a span can be halved.
pub const DEEPEST: u32 = 40;

/// Ticks of a span: the shortest step is one.
pub const SPAN: u64 = 1 << DEEPEST;

/// Vectors of a body in the buffer of what only sixth order has: snap and crackle.
pub const HIGHER_VECTORS: u32 = 2;

/// Most registers a thread, so that a block of 512 has a multiprocessor to itself.
pub const MOST_REGISTERS: u32 = 128;

/// Purpose of a launch of [`correct`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// To end a block step and hand out the next one's targets.
    Step,
    /// To hand out all bodies as targets where they are: a force on them follows, and
    /// [`First`](Phase::First).
    All,
    /// To take accelerations, jerks and snaps of all bodies as they are, and choose first steps.
    First,
    /// To begin a span in which bodies take the steps that they are allowed, and hand out the
    /// first targets.
    Begin,
}

/// Words of the clock, which is a buffer of [`WORDS`](clock::WORDS) of 64 bits.
pub mod clock {
    /// The time in ticks, one word for each parity; [`STOPPED`] if a body needs shorter steps than
    /// there are.
    pub const NOW: u32 = 0;
    /// Block steps done. Counts go on from span to span.
    pub const BLOCKS: u32 = 2;
    /// Forces computed: active bodies of all block steps.
    pub const EVALUATIONS: u32 = 3;
    /// Launches for a time that was guessed wrong.
    pub const REPEATED: u32 = 4;
    /// Most halvings of the span that any step took.
    pub const FINEST: u32 = 5;
    /// The body that stopped the clock.
    pub const BODY: u32 = 6;
    /// Mass above which bodies take [a part](super::Scheme::OF_HEAVY) of η: the bits of an f64, infinite for none.
    pub const HEAVY: u32 = 7;
    /// The span in the unit of time of the bodies, the bits of an f64.
    pub const SPAN: u32 = 8;
    /// [η](crate::hermite::Beginning::next_step), the bits of an f64.
    pub const ETA: u32 = 9;
    /// The most by which a pair may change its distance in a step, as a part of the distance: the
    /// bits of an f64, infinite for no such bound.
    pub const GUARD: u32 = 10;
    /// Time at which the span begins, in the units of the run: the bits of an f64.
    pub const START: u32 = 11;
    /// Words.
    pub const WORDS: usize = 12;

    /// The time at which nothing is left to do.
    pub const STOPPED: u64 = u64::MAX;
}

/// Level of a body that needs shorter steps than there are.
pub const TOO_FINE: u32 = 255;

/// The places of a block's bodies: `first..first + count`. A place is the number of its body but in a
/// [neighbour scheme](neighbours).
#[derive(Clone, Copy)]
struct Slice {
    first: u32,
    count: u32,
    /// Bodies of the largest slice.
    most: u32,
}

impl Slice {
    /// That of a block.
    #[inline(always)]
    fn of(block: u32, n: u32) -> Self {
        Self::among(thread::grid_dim_x(), block, n)
    }

    /// Slice `index` of so many.
    #[inline(always)]
    fn among(slices: u32, index: u32, n: u32) -> Self {
        let (each, more) = (n / slices, n % slices);
        Self {
            first: index * each + index.min(more),
            count: each + u32::from(index < more),
            most: each + u32::from(more > 0),
        }
    }
}

/// Bodies of the largest of so many slices: targets that a block has room for.
pub const fn most_of_a_slice(n: u32, slices: u32) -> u32 {
    n.div_ceil(slices)
}

/// Words of 32 bits that posts and lists take in shared memory, before anything else there.
const fn control_words(threads: u32, slices: u32) -> u32 {
    // Where each block's targets begin and where the last ones end; four numbers a warp of those
    // that read posts; one a warp.
    let words = slices + 1 + 5 * (threads / WARP_SIZE);
    words.next_multiple_of(4)
}

/// Words of 32 bits after those, where some steps are regular.
const fn regular_words(threads: u32, slices: u32) -> u32 {
    (slices + 1 + threads / WARP_SIZE).next_multiple_of(4)
}

/// Bytes of shared memory that [`force`] needs beside its sources.
pub const fn force_bytes(digits: DigitsName, order: u32, threads: u32, slices: u32) -> u32 {
    let scalars = records::staged(threads) * records::target_scalars(digits, order)
        + sweep::partial_scalars(digits, order, threads);
    4 * control_words(threads, slices) + scalars * digits.bytes()
}

/// Bytes of shared memory that [`force`] needs for each source that it keeps at a time.
pub const fn source_bytes(digits: DigitsName, order: u32) -> u32 {
    records::source_scalars(digits, order) * digits.bytes()
}

/// Bytes of shared memory of [`gather`].
pub const fn gather_bytes(threads: u32, slices: u32) -> u32 {
    4 * control_words(threads, slices)
}

/// Bytes of shared memory of [`correct`].
pub const fn correct_bytes(order: u32, threads: u32, slices: u32, most: u32) -> u32 {
    let list = most.next_multiple_of(4);
    4 * (control_words(threads, slices) + list) + 8 * scheme::sums(order) * threads
}

/// Bytes of a target in global memory.
pub const fn target_bytes(digits: DigitsName, order: u32) -> u32 {
    4 * records::target_vectors(digits, order) * digits.bytes()
}

/// Bytes of the sums over a slice for a target in global memory.
pub const fn partial_bytes(digits: DigitsName, order: u32) -> u32 {
    4 * records::partial_vectors(order) * digits.bytes()
}

/// Bytes of the sums over all sources of a device for a target in global memory.
pub const fn row_bytes(order: u32) -> u32 {
    4 * records::partial_vectors(order) * size_of::<f64>() as u32
}

/// The number of the clock's word.
///
/// # Safety
/// `clock` is one, and nobody else writes the word in this launch.
#[inline(always)]
unsafe fn number(clock: *const u64, word: u32) -> f64 {
    // SAFETY: the caller's promise.
    f64::from_bits(unsafe { global::load(clock, word) })
}

/// Halvings of the span below which no body's step ends at `time`, in ticks.
#[inline(always)]
fn coarsest_active(time: u64) -> u32 {
    DEEPEST - time.trailing_zeros().min(DEEPEST)
}

/// Number of times that `span` must be halved to be no longer than `allowed`; [`TOO_FINE`] if it cannot
/// be halved so often, or `allowed` is no number.
#[inline(always)]
pub fn level_of(allowed: f64, span: f64) -> u32 {
    const MANTISSA: u64 = (1 << 52) - 1;
    if allowed.is_nan() || allowed <= 0.0 {
        return TOO_FINE;
    }
    let (span, allowed) = (span.to_bits(), allowed.to_bits());
    let halvings = (span >> 52) as i32 - (allowed >> 52) as i32
        + i32::from(span & MANTISSA > allowed & MANTISSA);
    match halvings {
        ..0 => 0,
        halvings if halvings as u32 <= DEEPEST => halvings as u32,
        _ => TOO_FINE,
    }
}

/// The pointer parameters of both kernels that are the bodies.
#[derive(Clone, Copy)]
pub struct BodyBuffers {
    /// Positions with masses, and velocities.
    pub state: *mut Vec4<f64>,
    /// Accelerations.
    pub acceleration: *mut Vec4<f64>,
    /// Jerks.
    pub jerk: *mut Vec4<f64>,
    /// [`HIGHER_VECTORS`] times as many vectors: snaps and crackles. Not touched at fourth order,
    /// but for [`Phase::First`].
    pub higher: *mut Vec4<f64>,
    /// Beginning of each body's step, in ticks.
    pub begun: *mut u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_halvings() {
        for (allowed, level) in [
            (4.0, 0),
            (3.0, 0),
            (2.999, 1),
            (1.5, 1),
            (1.499, 2),
            (f64::INFINITY, 0),
            (3.0 / SPAN as f64, DEEPEST),
            (2.99 / SPAN as f64, TOO_FINE),
            (0.0, TOO_FINE),
            (f64::NAN, TOO_FINE),
        ] {
            assert_eq!(level_of(allowed, 3.0), level, "{allowed}");
        }
        // Next to a boundary, as the comparison itself says.
        for level in 0..=DEEPEST {
            let step = 0.7 / (1_u64 << level) as f64;
            assert_eq!(level_of(step, 0.7), level);
            assert_eq!(level_of(step.next_up(), 0.7), level);
            let finer = if level < DEEPEST { level + 1 } else { TOO_FINE };
            assert_eq!(level_of(step.next_down(), 0.7), finer);
        }
    }

    #[test]
    fn steps_end_where_their_lengths_divide_the_time() {
        assert_eq!(coarsest_active(SPAN), 0);
        assert_eq!(coarsest_active(SPAN / 2), 1);
        assert_eq!(coarsest_active(SPAN / 2 + SPAN / 8), 3);
        assert_eq!(coarsest_active(1), DEEPEST);
    }
}
