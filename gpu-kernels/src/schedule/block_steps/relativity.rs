//! The term of relativity of a dominant body, between the forces on active bodies and the ends of their
//! steps.

use crate::abi::Params;
use crate::fields::OnDevice;
use crate::interaction::{add_with_snap, distance_squared, separation};
use crate::layout::Layout;
use crate::numerics::{Approximate, Fused, Numerics, Unsoftened};
use crate::schedule::external::Centre;
use crate::tile::added;
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::warp::{WARP_SIZE, lane_id, over_lanes, warp_id};
use cuda_std::{global, thread};

use super::correct::{Own, Parts, Work, begun};
use super::posts::Control;
use super::records::{Double, Sums};
use super::scheme::{Moving, Scheme, StepAccuracy};
use super::turn::Turn;
use super::{Bodies, BodyBuffers, MOST_REGISTERS, Phase, SPAN, Slice, clock, number};

/// Adds the term of the dominant body, with its derivatives, to the sums over the first slice for all other
/// active bodies.
///
/// # Formula
/// [`Relativity`](crate::fields::Relativity), over G. What the dominant body feels, which derivatives of the
/// term need, is summed up by each block anew whether its step ends now or not: other bodies are sources
/// where Taylor's series has them.
///
/// # Arguments
/// `bodies`, `levels`: read. `partials`: what [`force`](super::force) left, of which the first row is added
/// to. `posts`, `time`: those of `params.blocks.parity`, read; the clock is stopped as in
/// [`correct`](super::correct). `fields`: external ones, read, with the units of the bodies, and `centre`, as
/// [`Centre::of`] reads it, in these units. `params.g`: in the unit of the bodies.
///
/// # Thread mapping
/// That of [`correct`](super::correct).
///
/// # Shared memory
/// [`correct_bytes`](super::correct_bytes).
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// That of [`Relativity`](crate::fields::Relativity).
#[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
#[inline(always)]
pub unsafe fn relativity<S: Scheme>(
    bodies: BodyBuffers,
    levels: *const u32,
    partials: *mut Vec4<f64>,
    posts: *const u64,
    time: *mut u64,
    fields: *const f64,
    centre: *const f64,
    params: Params,
) {
    thread::limit_registers::<MOST_REGISTERS>();
    let Params { n, blocks, g, .. } = params;
    let block = thread::block_idx_x();
    let control = Control::of_block();
    let turn = Turn {
        posts: posts.cast_mut(),
        time,
        parity: u32::from(blocks.parity),
    };
    let own = Own {
        bodies,
        levels: levels.cast_mut(),
        steps: core::ptr::null_mut(),
        slice: Slice::of(block, n),
        stride: params.stride,
        control,
        list: control.after(),
    };
    // SAFETY: as in `correct`: all that branches are taken by is the same for all threads of the block. Nobody
    // writes bodies in this launch.
    unsafe {
        let Some((before, posts)) = turn.read::<false>(control) else {
            return;
        };
        if !posts.agreed {
            return;
        }
        let now = before + (SPAN >> posts.finest);
        let work = Work {
            now,
            span: number(time, clock::SPAN),
            g,
            accuracy: StepAccuracy::of_exact(0.0),
            heavy: f64::INFINITY,
            guard: 0.0,
            is_first: u32::from(blocks.phase) == Phase::First as u32,
            fields: OnDevice::new(fields),
            start: number(time, clock::START),
        };
        let count = own.list_active(now);
        // The same for all threads of the block, which then has nothing to add to.
        if count == 0 {
            return;
        }
        let Centre { body, relativity } = Centre::of(centre);
        let at = At {
            bodies,
            now,
            tick: work.span / SPAN as f64,
            params,
        };
        let moving = at.moving::<S>(body);
        let exchange: Shared<f64> = own.list.after(own.slice.most.next_multiple_of(4));
        let sums = at.sums_of::<S>(body, moving, exchange);
        let of_centre = in_fields::<S>(&work, moving, sums.map(|sum| sum.map(|sum| g * sum)));
        let parts = Parts {
            partials: partials.cast_const(),
            n,
            devices: 0,
            begin: posts.begin_of(block),
        };
        own.with_sums::<S, Double>(&parts, count, |other, target, sums| {
            if other == body || g == 0.0 {
                return;
            }
            let its = at.moving::<S>(other);
            let forces = sums.vectors.map(|sum| sum.map(|sum| g * sum));
            let forces = in_fields::<S>(&work, its, forces);
            let relative = [0, 1].map(|k| [0, 1, 2].map(|axis| its[k][axis] - moving[k][axis]));
            let terms = if S::SNAP {
                relativity.terms::<3>(relative, forces, of_centre)
            } else {
                relativity.terms::<2>(relative, forces, of_centre)
            };
            let mut first = Sums::fetch::<S>(partials.cast_const(), target);
            for (sum, term) in first.vectors.iter_mut().zip(&terms) {
                for (sum, term) in sum.iter_mut().zip(term) {
                    *sum += term / g;
                }
            }
            first.put::<S>(partials, target);
        });
    }
}

/// Adds the forces of external fields.
#[inline(always)]
fn in_fields<S: Scheme>(work: &Work, moving: Moving, forces: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    if S::SNAP {
        work.with_fields::<3>(moving, forces)
    } else {
        work.with_fields::<2>(moving, forces)
    }
}

/// Bodies at a time.
struct At {
    bodies: BodyBuffers,
    now: u64,
    tick: f64,
    params: Params,
}

impl At {
    /// A body where Taylor's series has it.
    ///
    /// # Safety
    /// The buffers are those of the kernels, `body` is one of theirs, and nobody writes it in this launch.
    #[inline(always)]
    unsafe fn moving<S: Scheme>(&self, body: u32) -> Moving {
        // SAFETY: the caller's promise.
        unsafe {
            let dt = (self.now - global::load(self.bodies.begun, body)) as f64 * self.tick;
            S::predicted(&begun::<S>(&self.bodies, self.params.stride, body), dt)
        }
    }

    /// The sums over all sources for a body that moves so, per G, in every thread of the block. Ends with a
    /// barrier.
    ///
    /// # Safety
    /// As [`moving`](Self::moving); all threads call it, and `exchange` has room for nine numbers a warp.
    #[inline(always)]
    unsafe fn sums_of<S: Scheme>(
        &self,
        body: u32,
        moving: Moving,
        exchange: Shared<f64>,
    ) -> [[f64; 3]; 3] {
        type Arithmetic = Numerics<f64, Fused, Approximate, Unsoftened>;
        let mut sums = [[0.0; 3]; 3];
        let mut source = thread::thread_idx_x();
        while source < self.params.n {
            if source != body {
                // SAFETY: the caller's promise.
                unsafe {
                    let its = self.moving::<S>(source);
                    let mass = Bodies::source(self.bodies.state, self.params.stride, source).mass;
                    let apart = [0, 1, 2].map(|k| separation::<Arithmetic>(moving[k], its[k]));
                    let square =
                        distance_squared::<Arithmetic>(apart[0], self.params.softening_squared);
                    add_with_snap::<Arithmetic>(apart, square, mass, &mut sums);
                }
            }
            source += thread::block_dim_x();
        }
        let sums = over_lanes(sums, |a, b| [0, 1, 2].map(|k| added(a[k], b[k])));
        let warps = thread::block_dim_x() / WARP_SIZE;
        // SAFETY: nine numbers of this warp alone; read after a barrier.
        unsafe {
            if lane_id() == 0 {
                for (k, sum) in sums.as_flattened().iter().enumerate() {
                    exchange.store(9 * warp_id() + k as u32, *sum);
                }
            }
            thread::sync_threads();
            let mut all = [[0.0; 3]; 3];
            let mut warp = 0;
            while warp < warps {
                for (k, sum) in all.as_flattened_mut().iter_mut().enumerate() {
                    *sum += exchange.load(9 * warp + k as u32);
                }
                warp += 1;
            }
            thread::sync_threads();
            all
        }
    }
}
