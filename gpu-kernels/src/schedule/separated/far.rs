//! The far pairs, on tensor cores.

use super::{LEAF, Round, Rule, SPAN, TARGETS, THREADS, blocks, scale_for};
use crate::abi::Params;
use crate::interaction::PairLaw;
use crate::schedule::fragments::{
    Lane, WEIGHT_SCALE, cubes, force, left_factor, right_factor, transposed, weights_of,
};
use crate::tile::for_each;
use cuda_std::global::AtomicAdd;
use cuda_std::matrix::multiply_add;
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::vector::Vec4;
use cuda_std::warp::{self, Shuffle, WARP_SIZE};
use cuda_std::{GpuFloat, global, thread};

const WARPS: u32 = THREADS / WARP_SIZE;

/// Bodies of a tile, on either side of a product.
const TILE: u32 = 16;

/// Tiles of targets that a warp keeps in registers.
pub const TILES: u32 = TARGETS / TILE / WARPS;
const KEPT: usize = TILES as usize;

const GROUPS: u32 = LEAF / TILE;
/// Tiles in the body of the inner loop, with all groups of a leaf: loops of so few steps are unrolled.
pub const UNROLL: u32 = TILES * GROUPS;

/// Words of a leaf in shared memory: for each of its groups two a lane.
const LEAF_WORDS: u32 = GROUPS * 2 * WARP_SIZE;

/// Shared memory of a block, bytes: for each warp two leaves, one in each of two rows, and the numbers
/// of the far leaves of a span.
pub const SHARED_BYTES: u32 =
    WARPS * (2 * LEAF_WORDS * size_of::<Vec4<u32>>() as u32 + SPAN * size_of::<u32>() as u32);

/// Adds the accelerations by far pairs.
///
/// # Formula
/// `a_i = G Σ_j w_j r / d³`, see [`tensor`](crate::schedule::tensor) and the
/// [module](crate::schedule::separated).
///
/// # Arguments
/// `state`: n bodies in `Float4`, read; masses at most 1. `boxes`: as [`boxes()`](super::boxes())
/// leaves them, read. `acceleration`: n vectors, zero before, with room for whole leaves, and what
/// comes to bodies beyond the n-th means nothing; other launches only add to them.
///
/// # Thread mapping
/// Blocks of [`THREADS`]. Row x of blocks has block x of targets, 4 tiles of 16 a warp, in
/// registers; block y of it an equal part of the leaves. Each warp packs a leaf into shared memory,
/// then all warps meet all of these leaves, while the next leaves go elsewhere: one barrier for up
/// to 128 sources.
///
/// # Shared memory
/// [`SHARED_BYTES`].
///
/// # Constraints
/// Compute capability 8.0.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// As of [`tensor`](crate::schedule::tensor).
#[inline(always)]
pub unsafe fn far<W: PairLaw>(
    state: *const Vec4<f32>,
    boxes: *const Vec4<f32>,
    acceleration: *mut Vec4<f32>,
    params: Params,
) {
    let lane = Lane::of_thread();
    let own_warp = warp::warp_id().shuffle(0);
    let block = thread::block_idx_x();
    let round = Round::of(block, blocks(params.n));
    let part = round.spans().div_ceil(thread::grid_dim_y());
    let mut span = thread::block_idx_y() * part;
    let end = (span + part).min(round.spans());
    if span >= end {
        return;
    }
    // SAFETY: all leaves have boxes.
    let rule = unsafe { Rule::of(boxes, block, &params) };
    let scale = scale_for(params.separation.gap as f32);
    let [x, y, z] = rule.centre;
    // Where a lane has the mass, its coordinate is 0, and so is what it adds to the accelerations.
    // Not by an index, which would take local memory.
    let (own_scale, centre, unit) = match lane.component {
        0 => (scale, x, 1.0),
        1 => (scale, y, 1.0),
        2 => (scale, z, 1.0),
        _ => (0.0, 0.0, 0.0),
    };
    let lane_offset = (4 * lane.row + lane.component) as usize;
    let problem = Problem::<W> {
        state: state.cast(),
        acceleration: acceleration.cast::<f32>().wrapping_add(lane_offset),
        n: params.n,
        scale: own_scale,
        shift: -own_scale * centre,
        softening_squared: scale * scale * params.softening_squared as f32,
        unit: params.g as f32 / WEIGHT_SCALE * (scale * scale) * unit,
        law: core::marker::PhantomData,
    };
    let shared: Shared<Vec4<u32>> = dynamic_shared_mem();
    let leaves: Shared<u32> = shared
        .after::<u32>(2 * WARPS * LEAF_WORDS)
        .after(own_warp * SPAN);
    let first_target = block * TARGETS + own_warp * TILES * TILE;
    let mut row = 0;
    // SAFETY: a leaf's words are packed by one warp before the barrier and only read after it; the
    // next ones lie in the other row, and all warps have left that behind at the next barrier. A
    // warp's list of leaves is its own, and what its lanes do together comes between its last use
    // and the next span's.
    unsafe {
        let targets = problem.targets(lane, first_target);
        while span < end {
            let [_, far] = rule.sort::<W>(boxes, round, [span * SPAN, 1], params.n);
            if far >> lane.index & 1 != 0 {
                let rank = (far & ((1 << lane.index) - 1)).count_ones();
                leaves.store(rank, round.leaf(span * SPAN + lane.index));
            }
            warp::sync_warp();
            let count = far.count_ones();
            let mut sums = [[0.0; 4]; KEPT];
            let mut first = 0;
            while first < count {
                let words = shared.after::<Vec4<u32>>(row * WARPS * LEAF_WORDS);
                if first + own_warp < count {
                    let leaf = leaves.load(first + own_warp);
                    problem.pack_leaf(lane, leaf, words.after(own_warp * LEAF_WORDS));
                }
                thread::sync_threads();
                let end = count.min(first + WARPS);
                let mut words = words;
                while first < end {
                    let mut body = leaves.load(first) * LEAF;
                    let mut group = 0;
                    while group < GROUPS {
                        problem.meet(lane, &targets, words, body, &mut sums);
                        words = words.after(2 * WARP_SIZE);
                        body += TILE;
                        group += 1;
                    }
                    first += 1;
                }
                row ^= 1;
            }
            problem.add_target_forces(lane, first_target, &sums);
            span += 1;
        }
    }
}

/// A tile of targets, as a lane keeps it.
#[derive(Clone, Copy)]
struct Targets {
    left: [u32; 4],
    weights: [u32; 2],
}

struct Problem<W> {
    state: *const f32,
    /// From the place of the lane's component in its row on.
    acceleration: *mut f32,
    n: u32,
    /// λ, and 0 where the lane has the mass.
    scale: f32,
    /// What the lane's scaled coordinate of the centre is short of 0.
    shift: f32,
    /// λ²ε².
    softening_squared: f32,
    /// Of the sums of the products.
    unit: f32,
    law: core::marker::PhantomData<W>,
}

/// What a lane has of a body: a scaled coordinate from the centre (0 where it has the mass instead),
/// and the weight.
#[derive(Clone, Copy)]
struct Body {
    coordinate: f32,
    weight: f32,
}

impl<W: PairLaw> Problem<W> {
    /// Body `i`; beyond the last one, the last, without weight. All lanes call it.
    ///
    /// # Safety
    /// `state` has `n` bodies.
    #[inline(always)]
    unsafe fn body(&self, lane: Lane, i: u32) -> Body {
        // SAFETY: a body that exists.
        let value = unsafe { global::load(self.state, 4 * i.min(self.n - 1) + lane.component) };
        let mass = lane.of_mass(value);
        Body {
            coordinate: GpuFloat::mul_add(value, self.scale, self.shift),
            weight: if i < self.n { W::weight(mass) } else { 0.0 },
        }
    }

    /// The tiles of targets from `first` on. All lanes call it.
    ///
    /// # Safety
    /// As [`body`](Self::body).
    #[inline(always)]
    unsafe fn targets(&self, lane: Lane, first: u32) -> [Targets; KEPT] {
        let mut targets = [Targets {
            left: [0; 4],
            weights: [0; 2],
        }; KEPT];
        for_each::<KEPT>(|tile| {
            let i = first + tile as u32 * TILE + lane.row;
            // SAFETY: the caller's promise.
            let [a, b] = unsafe { [self.body(lane, i), self.body(lane, i + 8)] };
            let [x, z] = left_factor(lane, a.coordinate, self.softening_squared);
            let [y, w] = left_factor(lane, b.coordinate, self.softening_squared);
            targets[tile] = Targets {
                left: [x, y, z, w],
                weights: [a, b].map(|body| weights_of(lane, body.coordinate, body.weight)),
            };
        });
        targets
    }

    /// Packs a leaf: for each of its groups, a lane's parts of the right factors of the squared
    /// distances, then of the targets' sums, and two coordinates. All lanes call it.
    ///
    /// # Safety
    /// As [`body`](Self::body), and `words` are the warp's alone.
    #[inline(always)]
    unsafe fn pack_leaf(&self, lane: Lane, leaf: u32, words: Shared<Vec4<u32>>) {
        let mut group = 0;
        while group < GROUPS {
            let i = leaf * LEAF + group * TILE + lane.row;
            // SAFETY: the caller's promise.
            unsafe {
                let bodies = [self.body(lane, i), self.body(lane, i + 8)];
                let [[x, y], [z, w]] = bodies.map(|body| right_factor(lane, body.coordinate));
                let words = words.after::<Vec4<u32>>(group * 2 * WARP_SIZE);
                words.store(lane.index, Vec4 { x, y, z, w });
                let [x, y] = bodies.map(|body| weights_of(lane, body.coordinate, body.weight));
                let [z, w] = bodies.map(|body| (-body.coordinate).to_bits());
                words.store(WARP_SIZE + lane.index, Vec4 { x, y, z, w });
            }
            group += 1;
        }
    }

    /// The forces between the targets and the group of sources from `first` on: those on the targets
    /// are added to `sums`, those on the sources to the accelerations. All lanes call it.
    ///
    /// # Safety
    /// As [`far()`]; the words were packed before a barrier.
    #[inline(always)]
    unsafe fn meet(
        &self,
        lane: Lane,
        targets: &[Targets; KEPT],
        words: Shared<Vec4<u32>>,
        first: u32,
        sums: &mut [[f32; 4]; KEPT],
    ) {
        // SAFETY: the caller's promise.
        let [places, weights] =
            unsafe { [words.load(lane.index), words.load(WARP_SIZE + lane.index)] };
        let right = [[places.x, places.y], [places.z, places.w]];
        let mut sum = [0.0; 4];
        for_each::<KEPT>(|tile| {
            let cubes = cubes(targets[tile].left, right);
            sums[tile] = multiply_add(cubes, [weights.x, weights.y], sums[tile]);
            sum = multiply_add(transposed(cubes), targets[tile].weights, sum);
        });
        let [a, b, c, d] = sum;
        // SAFETY: the caller's promise; the last leaf ends where the room does.
        unsafe {
            self.add_force(lane, first, f32::from_bits(weights.z), [a, b]);
            self.add_force(lane, first + 8, f32::from_bits(weights.w), [c, d]);
        }
    }

    /// Adds the forces on the targets. All lanes call it.
    ///
    /// # Safety
    /// As [`far()`].
    #[inline(always)]
    unsafe fn add_target_forces(&self, lane: Lane, first: u32, sums: &[[f32; 4]; KEPT]) {
        for_each::<KEPT>(|tile| {
            let [a, b, c, d] = sums[tile];
            let first = first + tile as u32 * TILE;
            // SAFETY: the caller's promise.
            unsafe {
                for (first, parts) in [(first, [a, b]), (first + 8, [c, d])] {
                    let coordinate = self.body(lane, first + lane.row).coordinate;
                    if first < self.n {
                        self.add_force(lane, first, -coordinate, parts);
                    }
                }
            }
        });
    }

    /// Adds the force on the lane's one of eight bodies from the negative of its coordinate and the
    /// two parts of the sum. All lanes call it; those of masses compute forces that nobody keeps.
    ///
    /// # Safety
    /// As [`far()`], and there is room for the eight.
    #[inline(always)]
    unsafe fn add_force(&self, lane: Lane, first: u32, negative: f32, parts: [f32; 2]) {
        let force = force(lane, self.unit, negative, parts);
        // SAFETY: the caller's promise.
        unsafe { f32::atomic_add(self.acceleration, 4 * first, force) }
    }
}
