//! Operations that the 32 threads of a warp do together.
//!
//! A mask has to name all lanes of the warp: the emulator runs no collectives of a part of a warp, and a panic of
//! the kernel says so. All lanes have to reach the same call.

use cuda_std::emu;
use half::{bf16, f16};

/// Index of this thread in its warp.
#[inline]
#[track_caller]
pub fn lane_id() -> u32 {
    emu::lane_id()
}

/// Lanes that this warp has: 32 but for the last warp of a block.
#[track_caller]
fn width() -> u32 {
    let extent = [0, 1, 2].map(emu::block_dim);
    let [x, y, z] = [0, 1, 2].map(emu::thread_idx);
    let thread = x + extent[0] * (y + extent[1] * z);
    let threads: u32 = extent.iter().product();
    (threads - (thread - emu::lane_id())).min(32)
}

/// Mask of all lanes of the warp: the emulator does not know which of them took a branch. A collective that some
/// of them miss is a fault.
#[track_caller]
pub fn activemask() -> u32 {
    u32::MAX >> (32 - width())
}

#[track_caller]
fn check_mask(mask: u32) {
    let lanes = activemask();
    assert!(
        mask & lanes == lanes,
        "the mask {mask:#010x} leaves out lanes of the warp, and the emulator runs collectives of whole warps \
         alone: pass {:#010x}",
        u32::MAX
    );
}

/// Waits for all lanes.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    check_mask(mask);
    emu::sync_warp();
}

/// Operation of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarpReductionOp {
    /// Sum, which wraps around.
    Add,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Bits that all values have.
    And,
    /// Bits that some value has.
    Or,
    /// Bits that an odd number of values has.
    Xor,
}

/// A value that a warp reduces.
pub trait WarpReduceValue: Copy {
    #[doc(hidden)]
    fn combine(self, other: Self, op: WarpReductionOp) -> Self;
    #[doc(hidden)]
    fn to_word(self) -> u32;
    #[doc(hidden)]
    fn of_word(word: u32) -> Self;
}

macro_rules! reduced {
    ($($type:ty),*) => {$(
        impl WarpReduceValue for $type {
            fn combine(self, other: Self, op: WarpReductionOp) -> Self {
                match op {
                    WarpReductionOp::Add => self.wrapping_add(other),
                    WarpReductionOp::Min => self.min(other),
                    WarpReductionOp::Max => self.max(other),
                    WarpReductionOp::And => self & other,
                    WarpReductionOp::Or => self | other,
                    WarpReductionOp::Xor => self ^ other,
                }
            }
            fn to_word(self) -> u32 {
                self as u32
            }
            fn of_word(word: u32) -> Self {
                word as $type
            }
        }
    )*};
}

reduced!(i32, u32);

/// Combines the values of all lanes, for all lanes.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_reduce<T: WarpReduceValue>(mask: u32, value: T, op: WarpReductionOp) -> T {
    check_mask(mask);
    let all = emu::exchange([value.to_word()]);
    let values = all[..width() as usize]
        .iter()
        .map(|[word]| T::of_word(*word));
    values.reduce(|a, b| a.combine(b, op)).unwrap_or(value)
}

/// A value that lanes compare.
pub trait WarpMatchValue: Copy {
    #[doc(hidden)]
    fn to_bits_64(self) -> u64;
}

macro_rules! matched {
    ($($type:ty),*) => {$(
        impl WarpMatchValue for $type {
            fn to_bits_64(self) -> u64 {
                self as u64
            }
        }
    )*};
}

matched!(i32, i64, u32, u64);

impl WarpMatchValue for f32 {
    fn to_bits_64(self) -> u64 {
        self.to_bits().into()
    }
}

impl WarpMatchValue for f64 {
    fn to_bits_64(self) -> u64 {
        self.to_bits()
    }
}

/// Mask of the lanes that passed this lane's value.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_match_any<T: WarpMatchValue>(mask: u32, value: T) -> u32 {
    check_mask(mask);
    let bits = value.to_bits_64();
    let own = [bits as u32, (bits >> 32) as u32];
    let all = emu::exchange(own);
    let equal = all[..width() as usize].iter().enumerate();
    equal.fold(0, |mask, (lane, bits)| {
        mask | u32::from(*bits == own) << lane
    })
}

/// The mask, if all lanes passed the same value.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_match_all<T: WarpMatchValue>(mask: u32, value: T) -> Option<u32> {
    // SAFETY: the caller's promise.
    let equal = unsafe { warp_match_any(mask, value) };
    (equal == activemask()).then_some(mask)
}

/// True if all lanes pass `true`.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_vote_all(mask: u32, predicate: bool) -> bool {
    check_mask(mask);
    emu::ballot(!predicate) == 0
}

/// True if a lane passes `true`.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_vote_any(mask: u32, predicate: bool) -> bool {
    check_mask(mask);
    emu::ballot(predicate) != 0
}

/// Mask of the lanes that pass `true`.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_vote_ballot(mask: u32, predicate: bool) -> u32 {
    check_mask(mask);
    emu::ballot(predicate)
}

/// A value that moves between lanes.
pub trait WarpShuffleValue: Copy {
    #[doc(hidden)]
    fn map_words(self, f: impl FnMut(u32) -> u32) -> Self;
}

macro_rules! shuffled {
    ($($type:ty, $words:literal;)*) => {$(
        impl WarpShuffleValue for $type {
            #[track_caller]
            fn map_words(self, mut f: impl FnMut(u32) -> u32) -> Self {
                let mut moved = 0;
                for word in 0..$words {
                    moved |= u128::from(f((self as u128 >> (32 * word)) as u32)) << (32 * word);
                }
                moved as $type
            }
        }
    )*};
}

shuffled! {
    i8, 1; i16, 1; i32, 1; i64, 2; i128, 4;
    u8, 1; u16, 1; u32, 1; u64, 2; u128, 4;
}

macro_rules! shuffled_bits {
    ($($type:ty),*) => {$(
        impl WarpShuffleValue for $type {
            fn map_words(self, f: impl FnMut(u32) -> u32) -> Self {
                Self::from_bits(self.to_bits().map_words(f))
            }
        }
    )*};
}

shuffled_bits!(f16, bf16, f32, f64);

/// The value of `source`, given this lane's place in its segment; its own, and `false`, if that is outside.
#[track_caller]
fn shuffle<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    width: u32,
    source: impl FnOnce(u32) -> Option<u32>,
) -> (T, bool) {
    check_mask(mask);
    assert!(
        width.is_power_of_two() && width <= 32,
        "the width of a shuffle is a power of two up to 32, and this one is {width}"
    );
    let lane = emu::lane_id();
    let segment = lane & !(width - 1);
    let source = source(lane - segment).filter(|source| *source < width);
    let from = source.map_or(lane, |source| segment + source);
    (
        value.map_words(|word| emu::shuffle_idx(word, from)),
        source.is_some(),
    )
}

/// The value of the lane `delta` further, within segments of `width` lanes; and whether there is one.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_shuffle_down<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    delta: u32,
    width: u32,
) -> (T, bool) {
    shuffle(mask, value, width, |place| place.checked_add(delta))
}

/// The value of the lane `delta` before, within segments of `width` lanes; and whether there is one.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_shuffle_up<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    delta: u32,
    width: u32,
) -> (T, bool) {
    shuffle(mask, value, width, |place| place.checked_sub(delta))
}

/// The value of lane `idx` of the segment of `width` lanes, modulo its width.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_shuffle_idx<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    idx: u32,
    width: u32,
) -> (T, bool) {
    shuffle(mask, value, width, |_| Some(idx & width.wrapping_sub(1)))
}

/// The value of the lane with this lane's index, but for the bits of `lane_mask`, within segments of `width` lanes.
///
/// # Safety
/// All lanes reach it.
#[track_caller]
pub unsafe fn warp_shuffle_xor<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    lane_mask: u32,
    width: u32,
) -> (T, bool) {
    shuffle(mask, value, width, |place| Some(place ^ lane_mask))
}
