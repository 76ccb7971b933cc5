//! The pairs that are too near for tensor cores.

use super::{Candidate, Criterion, LEAF, LEAVES, Pairing, SPAN, TARGETS, blocks};
use crate::abi::Params;
use crate::interaction::{PairLaw, interact, interact_pair};
use crate::layout::{Accumulate, Float4, Layout, Source};
use crate::numerics::{Arithmetic, Far};
use crate::tile::{for_each, unrolled};
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::vector::Vec4;
use cuda_std::warp::{self, Shuffle, WARP_SIZE};
use cuda_std::{opaque, thread};

/// Targets of a lane: a warp has a block of targets.
const LANE: usize = (TARGETS / WARP_SIZE) as usize;

/// Sources in the body of the loop.
const STEPS: u32 = 2;

/// Adds the accelerations by near pairs, as [`symmetric`](crate::schedule::symmetric) computes them,
/// and by pairs within a block of targets, one-sided.
///
/// # Formula
/// `a_i = G Σ_j w_j r / d³`.
///
/// # Arguments
/// `state`: n bodies in `Float4`, read. `boxes`: as [`boxes()`](super::boxes()) leaves them, read.
/// `acceleration`: n vectors; other launches only add to them.
///
/// # Thread mapping
/// Blocks of whole warps. Row x of blocks, of all or of `params.share`, has block x of targets, 8 a lane;
/// its warps, of all blocks along y, take turns with the leaves.
///
/// # Shared memory
/// 64 bodies a warp.
///
/// # Constraints
/// `A` handles ε = 0 if `params.softening_squared` is 0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// Own work.
#[inline(always)]
pub unsafe fn near<A: Arithmetic<Real = f32>, W: PairLaw>(
    state: *const Vec4<f32>,
    boxes: *const Vec4<f32>,
    acceleration: *mut Vec4<f32>,
    params: Params,
) {
    let own_warp = warp::warp_id().shuffle(0);
    let block_warps = thread::block_dim_x() / WARP_SIZE;
    let turn = thread::block_idx_y() * block_warps + own_warp;
    let turns = thread::grid_dim_y() * block_warps;
    let block = params.share.first + thread::block_idx_x();
    let pairing = Pairing::of(block, blocks(params.n));
    let sources: Shared<Vec4<f32>> = dynamic_shared_mem();
    let warp = Warp::<W> {
        state,
        acceleration,
        params,
        eps2: params.softening_squared as f32,
        sources: sources.after(own_warp * 2 * WARP_SIZE),
        law: core::marker::PhantomData,
    };
    let mut sums = [[0.0; 3]; LANE];
    // SAFETY: bodies and boxes that exist; the slots of shared memory are the warp's own.
    unsafe {
        let targets = warp.targets(block * TARGETS);
        let mut leaf = turn;
        while leaf < LEAVES {
            warp.one_sided::<A>(&targets, block * LEAVES + leaf, &mut sums);
            leaf += turns;
        }
        if turn < pairing.count {
            let criterion = Criterion::of(boxes, block, &params);
            // Near leaves lie side by side in their order, so turns go from leaf to leaf.
            let mut first = turn;
            while first < pairing.count {
                let index = first + turns * warp::lane_id();
                let candidate = Candidate::of(boxes, pairing, index, params.n);
                let mut near =
                    warp::ballot(candidate.exists && !criterion.is_far::<W>(&candidate.bounds));
                if near != 0 {
                    // Sums over few sources at a time round less.
                    warp.add_target_forces(block, &mut sums);
                }
                while near != 0 {
                    let leaf = pairing.leaf(first + turns * near.trailing_zeros());
                    warp.both_sided::<A>(&targets, leaf, &mut sums);
                    near &= near - 1;
                }
                first += turns * SPAN;
            }
        }
        warp.add_target_forces(block, &mut sums);
    }
}

/// A warp at work.
struct Warp<W> {
    state: *const Vec4<f32>,
    acceleration: *mut Vec4<f32>,
    params: Params,
    eps2: f32,
    /// A leaf, twice in a row, so that source l + k lies k slots beyond source l without wrapping
    /// around.
    sources: Shared<Vec4<f32>>,
    law: core::marker::PhantomData<W>,
}

impl<W: PairLaw> Warp<W> {
    /// The number of this lane's target `r` of those from `first` on.
    #[inline(always)]
    fn target(&self, first: u32, r: usize) -> u32 {
        first + r as u32 * WARP_SIZE + warp::lane_id()
    }

    /// Body `i`, or beyond the last one what exerts nothing.
    ///
    /// # Safety
    /// As [`near()`].
    #[inline(always)]
    unsafe fn body(&self, i: u32) -> Source<f32> {
        if i < self.params.n {
            // SAFETY: it exists.
            unsafe { Float4::<f32>::source(self.state, self.params.stride, i) }
        } else {
            Source {
                position: [f32::FAR; 3],
                mass: 0.0,
            }
        }
    }

    /// # Safety
    /// As [`near()`].
    #[inline(always)]
    unsafe fn targets(&self, first: u32) -> [Source<f32>; LANE] {
        let mut targets = [Source {
            position: [f32::FAR; 3],
            mass: 0.0,
        }; LANE];
        for_each::<LANE>(|r| {
            // SAFETY: the caller's promise.
            targets[r] = unsafe { self.body(self.target(first, r)) };
        });
        targets
    }

    /// Puts a leaf into shared memory. All lanes call it.
    ///
    /// # Safety
    /// As [`near()`].
    #[inline(always)]
    unsafe fn fetch(&self, leaf: u32) {
        let lane = warp::lane_id();
        // SAFETY: the caller's promise; both slots are this lane's own, and nobody reads those
        // before any more.
        unsafe {
            let source = self.body(leaf * LEAF + lane);
            warp::sync_warp();
            Float4::<f32>::set_tile_source(self.sources, 2 * WARP_SIZE, lane, source);
            Float4::<f32>::set_tile_source(self.sources, 2 * WARP_SIZE, lane + WARP_SIZE, source);
        }
        warp::sync_warp();
    }

    /// # Safety
    /// The slot was filled.
    #[inline(always)]
    unsafe fn source(&self, slot: u32) -> Source<f32> {
        // SAFETY: the caller's promise.
        unsafe { Float4::<f32>::tile_source(self.sources, 2 * WARP_SIZE, slot) }
    }

    /// The forces of a leaf on the targets. All lanes call it.
    ///
    /// # Safety
    /// As [`near()`].
    #[inline(always)]
    unsafe fn one_sided<A: Arithmetic<Real = f32>>(
        &self,
        targets: &[Source<f32>; LANE],
        leaf: u32,
        sums: &mut [[f32; 3]; LANE],
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.fetch(leaf) };
        let mut step = 0;
        while step < opaque(WARP_SIZE) {
            unrolled::<STEPS>(|k| {
                // SAFETY: all slots are filled.
                let source = unsafe { self.source(step + k) };
                let weight = W::weight(source.mass);
                // Without mass or not: what is beyond the last body is out of reach.
                for_each::<LANE>(|r| {
                    let target = targets[r].position;
                    interact::<A>(target, source.position, weight, self.eps2, &mut sums[r]);
                });
            });
            step += STEPS;
        }
    }

    /// The forces between a leaf and the targets; those on the leaf are added to the accelerations.
    /// All lanes call it.
    ///
    /// # Safety
    /// As [`near()`].
    #[inline(always)]
    unsafe fn both_sided<A: Arithmetic<Real = f32>>(
        &self,
        targets: &[Source<f32>; LANE],
        leaf: u32,
        sums: &mut [[f32; 3]; LANE],
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.fetch(leaf) };
        let lane = warp::lane_id();
        let next = (lane + 1) % WARP_SIZE;
        let mut source_sum = [0.0; 3];
        let mut step = 0;
        while step < opaque(WARP_SIZE) {
            unrolled::<STEPS>(|k| {
                // SAFETY: all slots are filled.
                let source = unsafe { self.source(lane + step + k) };
                for_each::<LANE>(|r| {
                    interact_pair::<A>(
                        [targets[r].position, source.position],
                        [W::weight(targets[r].mass), W::weight(source.mass)],
                        self.eps2,
                        &mut sums[r],
                        &mut source_sum,
                    );
                });
                source_sum = source_sum.map(|component| component.shuffle(next));
            });
            step += STEPS;
        }
        // SAFETY: the caller's promise.
        unsafe { self.add(leaf * LEAF + lane, source_sum) };
    }

    /// Adds the forces on the targets, which are zero from then on.
    ///
    /// # Safety
    /// As [`near()`].
    #[inline(always)]
    unsafe fn add_target_forces(&self, block: u32, sums: &mut [[f32; 3]; LANE]) {
        for_each::<LANE>(|r| {
            // SAFETY: the caller's promise.
            unsafe { self.add(self.target(block * TARGETS, r), sums[r]) };
            sums[r] = [0.0; 3];
        });
    }

    /// Adds to the acceleration of body `i`, if there is one.
    ///
    /// # Safety
    /// As [`near()`].
    #[inline(always)]
    unsafe fn add(&self, i: u32, sum: [f32; 3]) {
        if i < self.params.n {
            let g = self.params.g as f32;
            // SAFETY: all launches only add.
            unsafe {
                Float4::<f32>::add_vector(
                    self.acceleration,
                    self.params.stride,
                    i,
                    sum.map(|s| g * s),
                );
            }
        }
    }
}
