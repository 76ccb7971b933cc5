//! The forces on active bodies.

use crate::abi::Params;
use crate::layout::Layout;
use crate::numerics::Closest;
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::{GpuFloat, global, thread};

use super::correct::begun;
use super::posts::Control;
use super::records::{self, Digits};
use super::scheme::Scheme;
use super::sweep::{Sweep, softening_squared};
use super::{
    Bodies, BodyBuffers, MOST_REGISTERS, SPAN, Slice, TOO_FINE, clock, most_of_a_slice, number,
};

/// The sums over each slice for all active bodies, at the next time.
///
/// # Formula
/// `Σ_j w_j r / d³` and its derivatives in time, the jerk and, at sixth order, the snap, with sources
/// where Taylor's series has them at that time; and the largest `|r·v|/d²`.
///
/// # Arguments
/// `bodies`: read. `targets`: as many for each block as its slice has bodies at most, read.
/// `posts`, `time`: those of `params.blocks.parity`, read. `partials`: n for each block, of which the
/// first ones are written, as many as there are active bodies; none where a block has no sources.
///
/// # Thread mapping
/// One-dimensional, of 2ᵏ warps and at least as many threads as there are blocks: block b has slice
/// `params.share.first + b` of `params.partials` for its sources. `sweep` says who computes which
/// pairs.
///
/// # Shared memory
/// [`force_bytes`](super::force_bytes), and [`source_bytes`](super::source_bytes) for each of
/// `params.blocks.chunk` sources.
///
/// # Constraints
/// `C` handles ε = 0 if `params.softening_squared` is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Nitadori & Makino (2008), New Astron. 13, 498, for the formulas. That blocks own slices, and the
/// next time is guessed, is of this project.
#[inline(always)]
pub unsafe fn force<S: Scheme, D: Digits, C: Closest>(
    bodies: BodyBuffers,
    targets: *const Vec4<D::Real>,
    posts: *const u64,
    time: *const u64,
    partials: *mut Vec4<D::Real>,
    params: Params,
) {
    thread::limit_registers::<MOST_REGISTERS>();
    let Params {
        n,
        stride,
        blocks,
        share,
        partials: all_slices,
        ..
    } = params;
    let (block, slices) = (thread::block_idx_x(), thread::grid_dim_x());
    let threads = thread::block_dim_x();
    let parity = u32::from(blocks.parity);
    let slice = Slice::among(all_slices, share.first + block, n);
    let control = Control::of_block();
    // SAFETY: a post for each block; all threads are here, and leave together: what they leave by is
    // the same for all.
    let posts =
        unsafe { control.read_posts::<false>(posts.wrapping_add((parity * slices) as usize)) };
    // SAFETY: a word of the clock that nobody writes in this launch.
    let now = unsafe { global::load(time, clock::NOW + parity) };
    if now >= SPAN || posts.finest == TOO_FINE || !posts.agreed {
        return;
    }
    let next = now + (SPAN >> posts.finest);
    // SAFETY: a word of the clock.
    let tick = unsafe { number(time, clock::SPAN) } / SPAN as f64;
    let sources: Shared<D::Real> = control.after();
    let record = const { records::source_scalars(D::NAME, S::ORDER) };
    let stage = sources.after(blocks.chunk * record);
    let staged = records::staged(threads) * const { records::target_scalars(D::NAME, S::ORDER) };
    let mut sweep = Sweep::<D> {
        targets,
        most: most_of_a_slice(n, slices),
        posts,
        partials: partials.wrapping_add(
            block as usize * n as usize * const { records::partial_vectors(S::ORDER) } as usize,
        ),
        softening_squared: softening_squared::<D>(&params),
        sources,
        count: 0,
        more: false,
        stage,
        exchange: stage.after(staged),
    };
    let mut first = 0;
    while first < slice.count {
        sweep.count = (slice.count - first).min(blocks.chunk);
        sweep.more = first > 0;
        let mut slot = thread::thread_idx_x();
        while slot < sweep.count {
            let body = slice.first + first + slot;
            // SAFETY: a body of this block's slice, and a slot of this thread's own: the last sweep
            // ended with a barrier.
            unsafe {
                let begun_at = global::load(bodies.begun, body);
                let dt = (next - begun_at) as f64 * tick;
                let moving = S::predicted(&begun::<S>(&bodies, stride, body), dt);
                let mass = Bodies::source(bodies.state, stride, body).mass;
                let mass = D::Real::from_f64(mass);
                records::rounded::<D>(moving).put_source::<S, D>(mass, sources, slot);
            }
            slot += threads;
        }
        thread::sync_threads();
        // SAFETY: the launch's promise; sources are there.
        unsafe { sweep.all::<S, C>() };
        first += blocks.chunk;
    }
}
