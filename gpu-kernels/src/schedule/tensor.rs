//! Each pair once, on tensor cores: squared distances are a matrix product, and so are the sums of
//! the forces; only 1/d³ is computed pair by pair.
//!
//! ```text
//! d²_ij = |x_i|² + ε² + |x_j|² − 2 x_i·x_j      16 targets × 8 sources: one product
//! s_ij  = 1/d³_ij                               rounded to halves
//! a_i   = Σ_j s_ij (m_j x_j) − x_i Σ_j s_ij m_j  s is the left factor of a second product
//! a_j   = Σ_i s_ij (m_i x_i) − x_j Σ_i s_ij m_i  and, transposed, of a third
//! ```
//!
//! 1. A coordinate is the sum of two halves, 22 bits. A product of two coordinates, without that of
//!    their second halves, takes three of the first product's sixteen terms, |x_j|² and |x_i|² + ε²,
//!    each in three halves, take the rest but one.
//! 2. Lengths are scaled by a power of two λ with 1/32 ≤ λε < 1/16, so that λ⁻³s ≤ 2¹⁵ is a half.
//! 3. `(m x, m y, m z, m)` is a sum of two halves as well, the second scaled by 2¹¹ so that masses
//!    2⁻³⁰ times the largest still count: eight columns, as many as a product has.
//! 4. The rounding of s multiplies x_j and x_i alike, so the subtraction at the end does not
//!    amplify it.
//!
//! A block owns the targets, in shared memory. Its warps walk over the sources in groups of 16, each
//! warp over its own groups, and share nothing else: no barriers. A lane packs the coordinate
//! `lane % 4` (the fourth is the mass) of two sources itself, in the place where the fragments want
//! it, and keeps the targets' sums; the sources' sums go to global memory once for all targets.
//!
//! The price: s has 11 bits, so the force of a pair is off by up to 2⁻¹¹, and only a sum over many
//! pairs of like size is better; and d² is off by some 2⁻²² |x|², which is why ε must not be small
//! beside the system ([`SMALLEST_SOFTENING`]).

use crate::abi::Params;
use crate::interaction::PairLaw;
use crate::numerics::{NumericsPolicy, Precision};
use crate::schedule::fragments::{
    Lane, WEIGHT_SCALE, cubes, left_factor, right_factor, transposed, weights_of,
};
use crate::schedule::{ScheduleName, fragments};
use crate::tile::unrolled;
use cuda_std::global::AtomicAdd;
use cuda_std::matrix::{min_halves, multiply_add};
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::vector::{Vec2, Vec4};
use cuda_std::warp::Shuffle;
use cuda_std::{GpuFloat, global, thread, warp};

/// This algorithm's name.
pub const NAME: ScheduleName = ScheduleName::Tensor;

/// Arithmetic of the schedule; pairs without softening at distance zero have no bound.
pub const NUMERICS: NumericsPolicy = NumericsPolicy {
    precision: Precision::F16,
    fused: true,
    approximate: true,
    unsoftened: false,
    skips_self: false,
};

/// Bodies of a tile, on either side of a product.
pub const TILE: u32 = 16;

/// Bytes of shared memory that a tile of targets takes.
pub const TILE_BYTES: u32 =
    warp::WARP_SIZE * (size_of::<Vec4<u32>>() + size_of::<Vec2<u32>>()) as u32;

/// The smallest ε for which the error is bounded, where the largest coordinate is 1.
pub const SMALLEST_SOFTENING: f64 = 1.0 / 32.0;

/// Sources that a warp adds to one accumulator before it starts anew, for tensor cores truncate
/// their sums.
pub const SOURCES_AT_ONCE: u32 = 2048;
const GROUPS_AT_ONCE: u32 = SOURCES_AT_ONCE / TILE;

/// λ does not grow beyond, however small ε is: forces are then wrong, but numbers.
const LARGEST_SCALE: f32 = 8.0;

/// 2¹⁵ twice, as halves: what s is clamped to.
const LARGEST_CUBE: u32 = 0x7800_7800;

/// Accelerations of all bodies, added to what is there.
///
/// # Formula
/// `a_i = G Σ_j w_j r / d³`, see the [module](self).
///
/// # Arguments
/// `state`: n bodies in `Float4`, read; masses at most 1. `acceleration`: n vectors, zero before.
/// Both with room for `params.stride`.
///
/// # Thread mapping
/// Blocks of whole warps, all or those of `params.share` along x. Block (x, y) has the targets of `TILES` tiles from `x · TILES` on, and
/// those sources of the y-th part of all that do not come before them.
///
/// # Shared memory
/// [`TILE_BYTES`] for each of `TILES`.
///
/// # Constraints
/// Compute capability 8.0. ε is at least [`SMALLEST_SOFTENING`] of the largest coordinate, else the
/// error has no bound; and no coordinate exceeds 32, else a half overflows.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The structure is that of attention with 1/d³ in place of the exponential: T. Dao and others,
/// FlashAttention (2022), without what it does for the softmax.
#[inline(always)]
pub unsafe fn force<W: PairLaw, const TILES: usize>(
    state: *const Vec4<f32>,
    acceleration: *mut Vec4<f32>,
    params: Params,
) {
    let lane = Lane::of_thread();
    // The same in all lanes, and this way the compiler knows it: loops need no guard against lanes
    // that part ways.
    let own_warp = warp::warp_id().shuffle(0);
    let warps = thread::block_dim_x() / warp::WARP_SIZE;
    let first_tile = (params.share.first + thread::block_idx_x()) * TILES as u32;
    let groups = params.n.div_ceil(TILE);
    // Parts are whole blocks' worth of targets, so that a group is either among a block's own
    // targets or behind all of them.
    let part = groups.div_ceil(TILES as u32 * thread::grid_dim_y()) * TILES as u32;
    let first = (thread::block_idx_y() * part).max(first_tile);
    let end = (thread::block_idx_y() * part + part).min(groups);
    if first >= end {
        return;
    }
    let scale = scale_for(params.softening_squared as f32);
    let lane_offset = (4 * lane.row + lane.component) as usize;
    let own_unit = if lane.has_mass() { 0.0 } else { 1.0 };
    let problem = Problem::<W> {
        state: state.cast(),
        acceleration: acceleration.cast::<f32>().wrapping_add(lane_offset),
        n: params.n,
        scale,
        softening_squared: scale * scale * params.softening_squared as f32,
        unit: params.g as f32 * (scale * scale * scale) / WEIGHT_SCALE * own_unit,
        law: core::marker::PhantomData,
    };
    let shared: Shared<Vec4<u32>> = dynamic_shared_mem();
    // SAFETY: each tile is packed by one warp before the barrier, and only read after it; bodies
    // beyond n are not accessed.
    unsafe {
        let mut tile = own_warp;
        while tile < TILES as u32 {
            problem.pack_targets(lane, first_tile + tile, words_of(shared, tile));
            tile += warps;
        }
        thread::sync_threads();

        let own_end = end.min(first_tile + TILES as u32);
        let mut group = first + own_warp;
        let mut sums = [[0.0; 4]; TILES];
        let mut coming = problem.fetch(lane, group);
        while group < own_end {
            let sources = problem.pack_sources(lane, group, coming);
            group += warps;
            coming = problem.fetch(lane, group);
            one_sided(lane, &sources, group - warps, first_tile, shared, &mut sums);
        }
        while group < end {
            let stop = end.min(group + GROUPS_AT_ONCE * warps);
            while group < stop {
                let sources = problem.pack_sources(lane, group, coming);
                group += warps;
                coming = problem.fetch(lane, group);
                let sum = both_sides(&sources, lane, shared, &mut sums);
                let coordinates = sources.bodies.map(|body| body.coordinate);
                problem.add_forces(lane, group - warps, coordinates, sum);
            }
            problem.add_target_forces(lane, first_tile, &sums);
            sums = [[0.0; 4]; TILES];
        }
        problem.add_target_forces(lane, first_tile, &sums);
    }
}

/// λ: the power of two with 1/32 ≤ λε < 1/16.
#[inline(always)]
fn scale_for(softening_squared: f32) -> f32 {
    let softening = softening_squared * softening_squared.rsqrt_approx();
    // The exponent of 1 / 32 ε, rounded down.
    let exponents = (1.0_f32 / 32.0).to_bits() + 1.0_f32.to_bits();
    let scale = f32::from_bits(exponents - (softening.to_bits() & 0x7f80_0000));
    if scale < LARGEST_SCALE {
        scale
    } else {
        LARGEST_SCALE
    }
}

/// Share of a lane in a body: a coordinate (0 where it has the mass instead), and the weight.
#[derive(Clone, Copy)]
struct Body {
    coordinate: f32,
    weight: f32,
}

/// Share of a lane in a group of sources.
struct Sources {
    bodies: [Body; 2],
    /// The right factors of the squared distances, of sources 0–7 and 8–15.
    places: [[u32; 2]; 2],
    /// The right factor of the targets' sums.
    weights: [u32; 2],
}

struct Problem<W> {
    state: *const f32,
    /// From the place of the lane's component in its row on.
    acceleration: *mut f32,
    n: u32,
    /// λ.
    scale: f32,
    /// λ²ε².
    softening_squared: f32,
    /// Of the sums of the products, and 0 where the lane has the mass.
    unit: f32,
    law: core::marker::PhantomData<W>,
}

impl<W: PairLaw> Problem<W> {
    /// The lane's values of two bodies of a tile; of the last body instead of those beyond it.
    ///
    /// # Safety
    /// `state` has `n` bodies.
    #[inline(always)]
    unsafe fn fetch(&self, lane: Lane, tile: u32) -> [f32; 2] {
        let first = tile * TILE + lane.row;
        // SAFETY: bodies that exist.
        [first, first + 8]
            .map(|i| unsafe { global::load(self.state, 4 * i.min(self.n - 1) + lane.component) })
    }

    /// Body `i` from the lane's value of it, without weight beyond the last. All lanes call it.
    #[inline(always)]
    fn body(&self, lane: Lane, i: u32, value: f32) -> Body {
        let mass = lane.of_mass(value);
        Body {
            coordinate: if lane.has_mass() { 0.0 } else { value },
            weight: if i < self.n { W::weight(mass) } else { 0.0 },
        }
    }

    /// Packs a tile of targets into 32 words of the left factor of the squared distances and, after
    /// them, 32 of the right factor of the sources' sums.
    ///
    /// # Safety
    /// As [`fetch`](Self::fetch), all lanes call it, and `words` are the warp's alone.
    #[inline(always)]
    unsafe fn pack_targets(&self, lane: Lane, tile: u32, words: Shared<Vec4<u32>>) {
        // SAFETY: the caller's promise.
        let values = unsafe { self.fetch(lane, tile) };
        let mut left = [[0; 2]; 2];
        let mut weights = [0; 2];
        unrolled::<2>(|half| {
            let half = half as usize;
            let i = tile * TILE + lane.row + 8 * half as u32;
            let body = self.body(lane, i, values[half]);
            let place = self.scale * body.coordinate;
            left[half] = left_factor(lane, place, self.softening_squared);
            weights[half] = weights_of(lane, body.coordinate, body.weight);
        });
        let [[x, z], [y, w]] = left;
        // SAFETY: the caller's promise.
        unsafe {
            words.store(lane.index, Vec4 { x, y, z, w });
            words
                .after::<Vec2<u32>>(warp::WARP_SIZE)
                .store(lane.index, weights.into());
        }
    }

    /// Packs a group of sources from the lane's values of them. All lanes call it.
    #[inline(always)]
    fn pack_sources(&self, lane: Lane, group: u32, values: [f32; 2]) -> Sources {
        let pack = |half: u32| {
            let i = group * TILE + lane.row + 8 * half;
            let body = self.body(lane, i, values[half as usize]);
            let place = right_factor(lane, self.scale * body.coordinate);
            (body, place, weights_of(lane, body.coordinate, body.weight))
        };
        let (lower, upper) = (pack(0), pack(1));
        Sources {
            bodies: [lower.0, upper.0],
            places: [lower.1, upper.1],
            weights: [lower.2, upper.2],
        }
    }

    /// Adds the forces on a tile from the fragment of their sums and the lane's two coordinates.
    /// All lanes call it.
    ///
    /// # Safety
    /// `acceleration` has room for all bodies of tiles that have any, of whose accelerations other
    /// threads access nothing but by adding to them.
    #[inline(always)]
    unsafe fn add_forces(&self, lane: Lane, tile: u32, coordinates: [f32; 2], sums: [f32; 4]) {
        let [a, b, c, d] = sums;
        let forces = [(coordinates[0], [a, b]), (coordinates[1], [c, d])]
            .map(|(coordinate, parts)| fragments::force(lane, self.unit, -coordinate, parts));
        // SAFETY: the caller's promise. Lanes of masses add 0 to what is not read.
        unsafe {
            f32::atomic_add(self.acceleration, 4 * TILE * tile, forces[0]);
            f32::atomic_add(self.acceleration, 4 * TILE * tile + 32, forces[1]);
        }
    }

    /// Adds the forces on the targets of `TILES` tiles, from the fragments of their sums.
    ///
    /// # Safety
    /// As [`add_forces`](Self::add_forces) and [`fetch`](Self::fetch).
    #[inline(always)]
    unsafe fn add_target_forces<const TILES: usize>(
        &self,
        lane: Lane,
        first_tile: u32,
        sums: &[[f32; 4]; TILES],
    ) {
        let mut tile = 0;
        while tile < TILES {
            let number = first_tile + tile as u32;
            // SAFETY: the caller's promise.
            unsafe {
                let coordinates = self.fetch(lane, number);
                if number * TILE < self.n {
                    self.add_forces(lane, number, coordinates, sums[tile]);
                }
            }
            tile += 1;
        }
    }
}

/// A tile of targets, as a lane reads it.
struct Targets {
    left: [u32; 4],
    weights: [u32; 2],
}

impl Targets {
    /// # Safety
    /// The words were packed before a barrier.
    #[inline(always)]
    unsafe fn read(lane: Lane, shared: Shared<Vec4<u32>>, tile: usize) -> Self {
        let words = words_of(shared, tile as u32);
        // SAFETY: the caller's promise.
        let (left, weights) = unsafe {
            (
                words.load(lane.index),
                words.after::<Vec2<u32>>(warp::WARP_SIZE).load(lane.index),
            )
        };
        Self {
            left: [left.x, left.y, left.z, left.w],
            weights: weights.into(),
        }
    }

    /// λ⁻³/d³ of a tile of targets and a group of sources, as the left factor of the targets' sums.
    #[inline(always)]
    fn cubes(&self, places: [[u32; 2]; 2]) -> [u32; 4] {
        cubes(self.left, places).map(|pair| min_halves(pair, LARGEST_CUBE))
    }
}

/// The words of a tile of targets.
#[inline(always)]
fn words_of(shared: Shared<Vec4<u32>>, tile: u32) -> Shared<Vec4<u32>> {
    shared.after(tile * (TILE_BYTES / size_of::<Vec4<u32>>() as u32))
}

/// The forces of a group of sources on all targets, added to `sums`, and the sum of the forces of
/// all targets on the sources.
///
/// # Safety
/// The targets were packed before a barrier; all lanes call it.
#[inline(always)]
unsafe fn both_sides<const TILES: usize>(
    sources: &Sources,
    lane: Lane,
    shared: Shared<Vec4<u32>>,
    sums: &mut [[f32; 4]; TILES],
) -> [f32; 4] {
    let mut sum = [0.0; 4];
    let mut tile = 0;
    while tile < TILES {
        // SAFETY: the caller's promise.
        let targets = unsafe { Targets::read(lane, shared, tile) };
        let cubes = targets.cubes(sources.places);
        sums[tile] = multiply_add(cubes, sources.weights, sums[tile]);
        sum = multiply_add(transposed(cubes), targets.weights, sum);
        tile += 1;
    }
    sum
}

/// The forces of a group of sources, which are among the block's own targets, on all targets.
///
/// # Safety
/// As [`both_sides`].
#[inline(always)]
unsafe fn one_sided<const TILES: usize>(
    lane: Lane,
    sources: &Sources,
    group: u32,
    first_tile: u32,
    shared: Shared<Vec4<u32>>,
    sums: &mut [[f32; 4]; TILES],
) {
    let mut tile = 0;
    while tile < TILES {
        // SAFETY: the caller's promise.
        let targets = unsafe { Targets::read(lane, shared, tile) };
        let mut cubes = targets.cubes(sources.places);
        if first_tile + tile as u32 == group {
            // A body does not attract itself: the diagonals of the first and last quarter.
            let mask = if lane.row == 2 * lane.component {
                0xffff_0000
            } else if lane.row == 2 * lane.component + 1 {
                0x0000_ffff
            } else {
                0xffff_ffff
            };
            cubes[0] &= mask;
            cubes[3] &= mask;
        }
        sums[tile] = multiply_add(cubes, sources.weights, sums[tile]);
        tile += 1;
    }
}
