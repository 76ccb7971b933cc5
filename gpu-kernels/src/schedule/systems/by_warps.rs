//! A time step in one launch, with a warp for a few bodies: for systems so small that launches, and what
//! multiprocessors tell each other, take more time than their pairs.

use super::System;
use crate::abi::{Params, SystemConstant};
use crate::interaction::PairLaw;
use crate::layout::{Layout, Source};
use crate::numerics::Arithmetic;
use crate::schedule::advance::add_scaled;
use crate::tile::{added, for_each, sweep};
use cuda_std::warp::{Shuffle, WARP_SIZE};
use cuda_std::{GpuFloat, thread, warp};

/// One step, from one buffer to another.
///
/// # Formula
/// `v′ = v + dt a(x)`, as often as the system's record says, and `x′ = x + dt v′`. Lane l of a warp adds sources l, l + 32, …;
/// then the lanes' sums are added in pairs.
///
/// # Arguments
/// `from`: the bodies of all systems, read. `records`: the constants of all systems. `to`: bodies as in `from`, written.
///
/// # Thread mapping
/// Along the grid's first axis the warps of a system, `LANE` bodies each; along its second the systems.
///
/// # Constraints
/// `A` handles ε = 0 if that of a system is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn step_by_warps<L, A, W, const LANE: usize, const UNROLL: u32>(
    from: *const L::Word,
    records: *const f64,
    to: *mut L::Word,
    params: Params,
) where
    L: Layout<Real: Shuffle>,
    A: Arithmetic<Real = L::Real>,
    W: PairLaw,
{
    let lane = warp::lane_id();
    let zero = [L::Real::from_f64(0.0); 3];
    // SAFETY: bodies of this warp's system, of which those beyond the last stand in for it; body i of `to` is one
    // lane's alone.
    unsafe {
        let system = System::<L::Real>::of_block(records, &params);
        let body = |i: u32| L::source(from, system.stride, system.first + i.min(system.n - 1));
        let first = thread::index_1d() / WARP_SIZE * LANE as u32;
        let mut targets = [body(first); LANE];
        for_each::<LANE>(|k| targets[k] = body(first + k as u32));
        let mut sums = [zero; LANE];
        let mut add = |j| {
            let source = L::source(from, system.stride, system.first + j);
            for_each::<LANE>(|k| {
                W::interact::<A>(targets[k].position, source, &system.constants, &mut sums[k]);
            });
        };
        let whole = system.n / WARP_SIZE;
        sweep::<UNROLL>(whole, &mut |row| add(row * WARP_SIZE + lane));
        if whole * WARP_SIZE + lane < system.n {
            add(whole * WARP_SIZE + lane);
        }
        warp::sync_warp();
        let mut distance = WARP_SIZE / 2;
        while distance > 0 {
            for_each::<LANE>(|k| {
                let other = sums[k].map(|component| component.shuffle(lane ^ distance));
                sums[k] = added(sums[k], other);
            });
            distance /= 2;
        }
        // Lane k moves target k.
        let (mut own, mut sum) = (targets[0], sums[0]);
        for_each::<LANE>(|k| {
            if lane == k as u32 {
                (own, sum) = (targets[k], sums[k]);
            }
        });
        let i = first + lane;
        if lane < LANE as u32 && i < system.n {
            let mut v = L::velocity(from, system.stride, system.first + i);
            let a = W::acceleration(sum, own.mass, v, &system.constants);
            let kicks = super::constant(records, &params, SystemConstant::Kicks) as u32;
            let mut kick = 0;
            while kick < kicks {
                v = add_scaled(v, system.kick, a);
                kick += 1;
            }
            let position = add_scaled(own.position, system.drift, v);
            let moved = Source { position, ..own };
            L::set_velocity(to, system.stride, system.first + i, v);
            L::set_source(to, system.stride, system.first + i, moved);
        }
    }
}
