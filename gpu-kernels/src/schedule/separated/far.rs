//! The far pairs, on tensor cores.

use super::classes::{BY_ROOTS, Entry, LIST_WORDS, List, factor, inverse_cubes};
use super::pack::{PACKED_WORDS, Packed, WEIGHT_SCALE};
use super::{Candidate, Criterion, LEAF, Pairing, SPAN, TARGETS, THREADS, blocks, scale_for};
use crate::abi::Params;
use crate::interaction::PairLaw;
use crate::schedule::fragments::{Lane, force, transposed};
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

/// Shared memory of a block, bytes: for each warp two packed leaves, one in each of two stages, and
/// the list of the far leaves of a span.
pub const SHARED_BYTES: u32 =
    WARPS * (2 * PACKED_WORDS + LIST_WORDS) * size_of::<Vec4<u32>>() as u32;

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
/// Blocks of [`THREADS`]. Row x of blocks, of all or of `params.share`, has block x of targets, 4 tiles of 16 a warp, in
/// registers; block y of it an equal part of the leaves. Each warp packs a leaf into shared memory,
/// then all warps compute the pairs of all these leaves, while the next leaves go elsewhere: one
/// barrier for up to 128 sources. Leaves of a class follow one another.
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
    // The same in all lanes, and this way the compiler knows it.
    let own_warp = warp::warp_id().shuffle(0);
    let block = params.share.first + thread::block_idx_x();
    let pairing = Pairing::of(block, blocks(params.n));
    let part = pairing.spans().div_ceil(thread::grid_dim_y());
    let mut span = thread::block_idx_y() * part;
    let end = (span + part).min(pairing.spans());
    if span >= end {
        return;
    }
    // SAFETY: all leaves have boxes.
    let criterion = unsafe { Criterion::of(boxes, block, &params) };
    let scale = scale_for(params.separation.gap as f32);
    let problem = Problem::<W> {
        state,
        acceleration: acceleration
            .cast::<f32>()
            .wrapping_add((4 * lane.row + lane.component) as usize),
        n: params.n,
        scale,
        shift: criterion.centre.map(|x| -scale * x),
        softening_squared: scale * scale * params.softening_squared as f32,
        // A lane adds the component of forces that it holds in accumulators. The fourth, of masses,
        // is no force: its unit makes it 0.
        unit: if lane.has_mass() {
            0.0
        } else {
            params.g as f32 / WEIGHT_SCALE * (scale * scale)
        },
        law: core::marker::PhantomData,
    };
    let shared: Shared<Vec4<u32>> = dynamic_shared_mem();
    let stages = Packed::at(shared);
    let list = List {
        entries: shared.after(2 * WARPS * PACKED_WORDS + own_warp * LIST_WORDS),
    };
    let first_target = block * TARGETS + own_warp * TILES * TILE;
    let mut stage = 0;
    // SAFETY: a leaf's words are packed by one warp before the barrier and only read after it; the
    // next ones lie in the other stage, and all warps have left that behind at the next barrier. A
    // warp packs its targets where it packs its first leaf, and has read them before. Its list of
    // leaves is its own, and barriers of the warp lie between its use and the next span's.
    unsafe {
        let targets = problem.targets(stages.after(own_warp), first_target);
        while span < end {
            let candidate = Candidate::of(boxes, pairing, span * SPAN + lane.index, params.n);
            let is_far = candidate.exists && criterion.is_far::<W>(&candidate.bounds);
            let squares = [
                criterion.smallest_square(&candidate.bounds),
                criterion.largest_square(&candidate.bounds),
            ];
            let entry = Entry::of(candidate.leaf, squares, scale, (BY_ROOTS, 1.0));
            warp::sync_warp();
            let ends = list.fill(&entry, is_far);
            warp::sync_warp();
            let count = ends[BY_ROOTS];
            let mut sums = [[0.0; 4]; KEPT];
            let mut first = 0;
            while first < count {
                let packed = stages.after(stage * WARPS);
                if first + own_warp < count {
                    let entry = list.entry(first + own_warp);
                    problem.pack_leaf(&entry, packed.after(own_warp));
                }
                thread::sync_threads();
                let end = count.min(first + WARPS);
                let mut packed = packed;
                while first < end {
                    let entry = list.entry(first);
                    // The places in the list tell the class, and that it is the same in all lanes.
                    if first < ends[0] {
                        problem.interact::<0>(lane, &targets, &entry, packed, &mut sums);
                    } else if first < ends[1] {
                        problem.interact::<1>(lane, &targets, &entry, packed, &mut sums);
                    } else if first < ends[2] {
                        problem.interact::<2>(lane, &targets, &entry, packed, &mut sums);
                    } else {
                        problem.interact::<BY_ROOTS>(lane, &targets, &entry, packed, &mut sums);
                    }
                    packed = packed.after(1);
                    first += 1;
                }
                stage ^= 1;
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
    state: *const Vec4<f32>,
    /// From the place of the lane's component in its row on.
    acceleration: *mut f32,
    n: u32,
    /// λ.
    scale: f32,
    /// Negative of the scaled coordinates of the centre.
    shift: [f32; 3],
    /// λ²ε².
    softening_squared: f32,
    /// Of the sums of the products.
    unit: f32,
    law: core::marker::PhantomData<W>,
}

/// A body's scaled coordinates from the centre, their sum of squares, and its weight.
#[derive(Clone, Copy)]
struct Body {
    at: [f32; 3],
    square: f32,
    weight: f32,
}

impl<W: PairLaw> Problem<W> {
    /// Body `i`; beyond the last one, the last, without weight.
    ///
    /// # Safety
    /// `state` has `n` bodies.
    #[inline(always)]
    unsafe fn body(&self, i: u32) -> Body {
        // SAFETY: a body that exists.
        let Vec4 { x, y, z, w } = unsafe { global::load(self.state, i.min(self.n - 1)) };
        let at = [(x, 0), (y, 1), (z, 2)]
            .map(|(x, axis)| GpuFloat::mul_add(x, self.scale, self.shift[axis]));
        Body {
            at,
            square: super::square(at, 0.0),
            weight: if i < self.n { W::weight(w) } else { 0.0 },
        }
    }

    /// The tiles of targets from `first` on, packed one pair after the other. All lanes call it.
    ///
    /// # Safety
    /// As [`body`](Self::body), and `packed` is the warp's alone.
    #[inline(always)]
    unsafe fn targets(&self, packed: Packed, first: u32) -> [Targets; KEPT] {
        let mut targets = [Targets {
            left: [0; 4],
            weights: [0; 2],
        }; KEPT];
        for_each::<{ KEPT / 2 }>(|pair| {
            // SAFETY: the caller's promise.
            unsafe {
                let body = self.body(first + pair as u32 * 2 * TILE + warp::lane_id());
                let square = body.square + self.softening_squared;
                packed.store_target(body.at, square, body.weight);
                warp::sync_warp();
                let weights = packed.weights();
                for_each::<2>(|group| {
                    targets[2 * pair + group] = Targets {
                        left: packed.left(group as u32),
                        weights: weights[group],
                    };
                });
                warp::sync_warp();
            }
        });
        targets
    }

    /// Packs a leaf. All lanes call it.
    ///
    /// # Safety
    /// As [`body`](Self::body), and `packed` is the warp's alone.
    #[inline(always)]
    unsafe fn pack_leaf(&self, entry: &Entry, packed: Packed) {
        let [shift, factor] = entry.packing(warp::lane_id() / 8);
        // SAFETY: the caller's promise.
        unsafe {
            let body = self.body(entry.leaf * LEAF + warp::lane_id());
            let square = GpuFloat::mul_add(entry.alpha, body.square, -shift);
            packed.store_source(body.at, entry.alpha, square, factor * body.weight);
            packed.store_coordinates(body.at);
        }
    }

    /// The forces between the targets and a leaf: those on the targets are added to `sums`, those on
    /// the sources to the accelerations. All lanes call it.
    ///
    /// # Safety
    /// As [`far()`]; the leaf was packed before a barrier.
    #[inline(always)]
    unsafe fn interact<const CLASS: usize>(
        &self,
        lane: Lane,
        targets: &[Targets; KEPT],
        entry: &Entry,
        packed: Packed,
        sums: &mut [[f32; 4]; KEPT],
    ) {
        // SAFETY: the caller's promise.
        let weights = unsafe { packed.weights() };
        let unit = self.unit * entry.strength;
        for_each::<{ GROUPS as usize }>(|group| {
            let tiles = [2 * group as u32, 2 * group as u32 + 1];
            // SAFETY: the caller's promise.
            let (right, at) = unsafe {
                let at = tiles.map(|tile| packed.coordinate(tile));
                (packed.right(group as u32), at)
            };
            let mut sum = [0.0; 4];
            for_each::<KEPT>(|tile| {
                let [[a, b], [c, d]] = [
                    inverse_cubes::<CLASS>(tiles[0], targets[tile].left, right[0]),
                    inverse_cubes::<CLASS>(tiles[1], targets[tile].left, right[1]),
                ];
                let cubes = [a, b, c, d];
                sums[tile] = multiply_add(cubes, weights[group], sums[tile]);
                sum = multiply_add(transposed(cubes), targets[tile].weights, sum);
            });
            let [a, b, c, d] = sum;
            let first = entry.leaf * LEAF;
            let [lower, upper] = tiles.map(|tile| unit * factor::<CLASS>(tile));
            // SAFETY: the caller's promise; the last leaf ends where the room does.
            unsafe {
                self.add_force(lane, first + 8 * tiles[0], lower, at[0], [a, b]);
                self.add_force(lane, first + 8 * tiles[1], upper, at[1], [c, d]);
            }
        });
    }

    /// Adds the forces on the targets. All lanes call it.
    ///
    /// # Safety
    /// As [`far()`].
    #[inline(always)]
    unsafe fn add_target_forces(&self, lane: Lane, first: u32, sums: &[[f32; 4]; KEPT]) {
        // Of the lane's component, alike for the fourth. Not by an index, which would take local
        // memory.
        let shift = match lane.component {
            0 => self.shift[0],
            1 => self.shift[1],
            _ => self.shift[2],
        };
        for_each::<KEPT>(|tile| {
            let [a, b, c, d] = sums[tile];
            let first = first + tile as u32 * TILE;
            // SAFETY: the caller's promise.
            unsafe {
                for (first, parts) in [(first, [a, b]), (first + 8, [c, d])] {
                    let i = (first + lane.row).min(self.n - 1);
                    let value = global::load(self.state.cast::<f32>(), 4 * i + lane.component);
                    let coordinate = GpuFloat::mul_add(value, self.scale, shift);
                    if first < self.n {
                        self.add_force(lane, first, self.unit, coordinate, parts);
                    }
                }
            }
        });
    }

    /// Adds the force on the lane's one of eight bodies from its coordinate and the two parts of the
    /// sum, in units of `unit`. All lanes call it; those of masses compute forces that are not kept.
    ///
    /// # Safety
    /// As [`far()`], and there is room for the eight.
    #[inline(always)]
    unsafe fn add_force(
        &self,
        lane: Lane,
        first: u32,
        unit: f32,
        coordinate: f32,
        parts: [f32; 2],
    ) {
        let force = force(lane, unit, -coordinate, parts);
        // SAFETY: the caller's promise.
        unsafe { f32::atomic_add(self.acceleration, 4 * first, force) }
    }
}
