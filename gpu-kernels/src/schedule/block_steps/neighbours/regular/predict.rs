//! Bodies and targets where regular steps end.

use crate::abi::Params;
use cuda_std::vector::Vec4;
use cuda_std::{global, thread};

use crate::schedule::block_steps::neighbours::record::Record;
use crate::schedule::block_steps::neighbours::sweep::{Target, regular_index};
use crate::schedule::block_steps::neighbours::{Elapsed, Held, Phase, clock, control};
use crate::schedule::block_steps::{SPAN, clock as plain, most_of_a_slice};

/// Positions and velocities of all bodies and of all targets, in f32, when regular steps end. The clock gets this
/// time.
///
/// # Formula
/// Taylor's series from where a body's step began.
///
/// # Arguments
/// `records`, `regular_targets`, `posts`: as [`force`](super::super::force) takes them, read. `time`: the clock.
/// `positions`: with masses, and `velocities`: of n bodies, by places, written. `target_positions`: with R² + ε²,
/// and `target_velocities`: with the place as bits, of as many targets, written in their order.
/// `params.blocks`: parity and phase.
///
/// # Thread mapping
/// One-dimensional; a block for each slice of all, with a thread for each block at least.
///
/// # Shared memory
/// [`control_bytes`](super::super::control_bytes).
///
/// # Safety
/// The buffers are as said and do not overlap; regular steps end at the next time.
///
/// # Source
/// Makino & Aarseth (1992), PASJ 44, 141.
#[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
#[inline(always)]
pub unsafe fn predict(
    records: *const Vec4<u32>,
    regular_targets: *const Vec4<f32>,
    posts: *const u64,
    time: *mut u64,
    positions: *mut Vec4<f32>,
    velocities: *mut Vec4<f32>,
    target_positions: *mut Vec4<f32>,
    target_velocities: *mut Vec4<f32>,
    params: Params,
) {
    let Params { n, blocks, .. } = params;
    let slices = thread::grid_dim_x();
    let parity = u32::from(blocks.parity);
    // SAFETY: a post for each block; all threads are here. Words of the clock that are read are not written.
    let (posts, before, elapsed) = unsafe {
        (
            control().read_posts::<true>(posts.wrapping_add((parity * slices) as usize)),
            global::load(time, plain::NOW + parity),
            Elapsed::of(time),
        )
    };
    let now = if u32::from(blocks.phase) == Phase::Step as u32 {
        before + (SPAN >> posts.finest)
    } else {
        0
    };
    let threads = slices * thread::block_dim_x();
    let mut place = thread::index_1d();
    while place < n {
        // SAFETY: a body with vectors of this thread alone.
        unsafe {
            let record = Record::load(records, place);
            let moved = record.predicted(now, elapsed);
            let [x, y, z] = moved.x.map(|x| x as f32);
            let [u, v, w] = moved.v;
            global::store(positions, place, [x, y, z, record.mass].into());
            global::store(velocities, place, [u, v, w, 0.0].into());
        }
        place += threads;
    }
    let most = most_of_a_slice(n, slices);
    let (first, end) = Held::of(&params).regular_targets(&posts);
    let mut k = first + thread::index_1d();
    while k < end {
        // SAFETY: a target with vectors of this thread alone.
        unsafe {
            let Target { x, v, limit, place } =
                Target::fetch(regular_targets, regular_index(&posts, most, k));
            let ([x, y, z], [u, v, w]) = (x, v);
            let place = f32::from_bits(place);
            global::store(target_positions, k - first, [x, y, z, limit].into());
            global::store(target_velocities, k - first, [u, v, w, place].into());
        }
        k += threads;
    }
    if thread::index_1d() == 0 {
        // SAFETY: a word that this thread alone accesses in this launch.
        unsafe { global::store(time, clock::REGULAR_NOW, now) };
    }
}
