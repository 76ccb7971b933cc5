//! The sums of targets, over the slices of a device and over devices.

use crate::abi::Params;
use cuda_std::vector::Vec4;
use cuda_std::warp::{Shuffle, WARP_SIZE, lane_id, warp_id};
use cuda_std::{GpuFloat, global, thread};

use super::posts::Control;
use super::records::{self, Digits, Sums, together};
use super::scheme::{MOST_SUMS, Scheme, sums};
use super::{MOST_REGISTERS, SPAN, TOO_FINE, clock};

/// Slices whose sums are fetched together: all of a GPU with 160 multiprocessors.
const FETCHED: u32 = 5;

/// The sums over all sources of this device, one of several, for all active bodies.
///
/// # Formula
/// The sums that [`force`](super::force) has left are added in the order of the slices.
///
/// # Arguments
/// `partials`: what [`force`](super::force) left, read. `posts`, `time`: those of
/// `params.blocks.parity`, read. `row`: n targets, of which the first ones are written, as many as there
/// are active bodies.
///
/// # Thread mapping
/// That of [`force`](super::force): a block for each post. A warp adds up the sums of a target, its lanes
/// those of different slices.
///
/// # Shared memory
/// [`gather_bytes`](super::gather_bytes).
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// This project.
#[inline(always)]
pub unsafe fn gather<S: Scheme, D: Digits>(
    partials: *const Vec4<D::Real>,
    posts: *const u64,
    time: *const u64,
    row: *mut Vec4<f64>,
    params: Params,
) {
    thread::limit_registers::<MOST_REGISTERS>();
    let Params {
        n, blocks, share, ..
    } = params;
    let (block, grid) = (thread::block_idx_x(), thread::grid_dim_x());
    let parity = u32::from(blocks.parity);
    let control = Control::of_block();
    // SAFETY: a post for each block; all threads are here, and leave together.
    let posts =
        unsafe { control.read_posts::<false>(posts.wrapping_add((parity * grid) as usize)) };
    // SAFETY: a word of the clock that nobody writes in this launch.
    let now = unsafe { global::load(time, clock::NOW + parity) };
    if now >= SPAN || posts.finest == TOO_FINE || !posts.agreed {
        return;
    }
    // Slices beyond the n-th have no bodies, and left no sums.
    let slices = share.end.min(n) - share.first.min(n);
    let each = posts.active.div_ceil(grid);
    let (first, warps) = (block * each, thread::block_dim_x() / WARP_SIZE);
    let mut k = warp_id();
    while k < each && first + k < posts.active {
        // SAFETY: a target, whose sums this warp alone writes.
        unsafe {
            let sums = over_slices::<S, D>(partials, slices, n, first + k);
            if lane_id() == 0 {
                Sums::of(sums).put::<S>(row, first + k);
            }
        }
        k += warps;
    }
}

/// The sums over so many slices for a target, in every lane of the warp.
///
/// # Safety
/// `partials` has a row of `n` targets for each of these slices, written before this launch; all lanes call
/// it with the same numbers.
#[inline(always)]
pub(super) unsafe fn over_slices<S: Scheme, D: Digits>(
    partials: *const Vec4<D::Real>,
    slices: u32,
    n: u32,
    target: u32,
) -> [f64; MOST_SUMS] {
    let lane = lane_id();
    let numbers = const { sums(S::ORDER) };
    let vectors = const { records::partial_vectors(S::ORDER) } as usize;
    let mut all = [0.0; MOST_SUMS];
    let mut first = 0;
    while first < slices {
        let mut fetched = [[0.0; MOST_SUMS]; FETCHED as usize];
        for (round, fetched) in fetched.iter_mut().enumerate() {
            let slice = first + round as u32 * WARP_SIZE + lane;
            let exists = slice < slices;
            let of_slice = slice.min(slices - 1) as usize * n as usize * vectors;
            // SAFETY: a slice that exists.
            let sums =
                unsafe { Sums::fetch::<S>(partials.wrapping_add(of_slice), target) }.numbers();
            for number in 0..MOST_SUMS {
                if (number as u32) < numbers {
                    fetched[number] = if exists { sums[number].to_f64() } else { 0.0 };
                }
            }
        }
        for fetched in &fetched {
            for number in 0..MOST_SUMS {
                all[number] = together(number as u32, all[number], fetched[number]);
            }
        }
        first += FETCHED * WARP_SIZE;
    }
    let mut distance = 1;
    while distance < WARP_SIZE {
        for (number, all) in all.iter_mut().enumerate() {
            if (number as u32) < numbers {
                *all = together(number as u32, *all, all.shuffle(lane ^ distance));
            }
        }
        distance *= 2;
    }
    all
}

/// The sums over all devices for a target, in their order.
///
/// # Safety
/// `rows` are the addresses of as many rows, which [`gather`] has written before this launch and nobody
/// writes during it, with that target.
#[inline(always)]
pub(super) unsafe fn over_devices<S: Scheme>(
    rows: *const u64,
    devices: u32,
    target: u32,
) -> [f64; MOST_SUMS] {
    let first = target * const { records::partial_vectors(S::ORDER) };
    let mut all = Sums::none();
    let mut device = 0;
    while device < devices {
        // SAFETY: the caller's promise.
        let of_device = unsafe {
            let row = global::load(rows, device);
            Sums::of_vectors::<S>(|k| global::load_by_address(row, first + k))
        };
        all = all.and(&of_device);
        device += 1;
    }
    all.numbers()
}
