//! Kinetic and potential energy, summed in f64 whatever the bodies are stored in: differences of
//! energies are what a user judges a run by, and in single precision they would drown in their own
//! rounding.

use crate::abi::Params;
use crate::interaction::{Constants, PairLaw};
use crate::layout::{Layout, Source};
use crate::numerics::{Approximate, Fused, Numerics, Unsoftened};
use crate::tile::{Tile, sweep};
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::{GpuFloat, global, thread};

/// A pair of bodies at distance zero is left out where ε = 0, as in the forces.
type Double = Numerics<f64, Fused, Approximate, Unsoftened>;
/// The same in single precision.
type Single = Numerics<f32, Fused, Approximate, Unsoftened>;

/// Sums of the energies over each block's bodies.
///
/// # Formula
/// `T = Σ_i w_i |v_i|² / 2` and `U = Σ_{i<j} w_i φ_ij`, with the law's weights and the potential φ of a
/// pair: `−G w_j / d` for gravity. Each pair of tiles comes once; within a tile, each pair of
/// bodies twice.
///
/// # Arguments
/// `state`: n bodies of layout `L` with `params.stride`, read. `sums`: two values per block, T and U,
/// written; their sum over the blocks is the system's energy. The order of all additions is fixed,
/// so the result is the same from run to run.
///
/// # Thread mapping
/// One-dimensional, all blocks or those of `params.share`; thread i of all has body i. Threads beyond n contribute zero and reach every barrier.
///
/// # Shared memory
/// Four f64 per thread: first a tile of sources, then the two sums.
///
/// # Constraints
/// The block's size is a power of two.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// The tiles are those of Nyland, Harris & Prins, GPU Gems 3 (2007), ch. 31; the sums are taken by
/// halves as in M. Harris, Optimizing Parallel Reduction in CUDA (2007).
#[inline(always)]
pub unsafe fn energy<L: Layout, W: PairLaw>(state: *const L::Word, sums: *mut f64, params: Params) {
    let (slot, block) = (thread::thread_idx_x(), thread::block_dim_x());
    let i = body(&params);
    let shared: Shared<f64> = dynamic_shared_mem();
    // SAFETY: bodies beyond n are not accessed; every slot is written before the barrier after
    // which it is read; two sums a block are this block's alone.
    unsafe {
        let body = L::source(state, params.stride, i.min(params.n - 1));
        let v = L::velocity(state, params.stride, i.min(params.n - 1)).map(GpuFloat::to_f64);
        let position = body.position.map(GpuFloat::to_f64);
        let weight = if i < params.n {
            W::weight(body.mass.to_f64())
        } else {
            0.0
        };

        let constants = Constants::of(&params);
        let tiles = Tiles::of(&params);
        let mut depth = 0.0;
        let mut step = 0;
        while step < tiles.count {
            let first = tiles.at(step) * block;
            thread::sync_threads();
            if first + slot < params.n {
                let source = L::source(state, params.stride, first + slot);
                let [x, y, z] = source.position.map(GpuFloat::to_f64);
                shared.store(4 * slot, x);
                shared.store(4 * slot + 1, y);
                shared.store(4 * slot + 2, z);
                shared.store(4 * slot + 3, source.mass.to_f64());
            }
            thread::sync_threads();
            let count = (params.n - first).min(block);
            let mut of_tile = 0.0;
            let mut k = 0;
            while k < count {
                if first + k != i {
                    let source = Source {
                        position: [
                            shared.load(4 * k),
                            shared.load(4 * k + 1),
                            shared.load(4 * k + 2),
                        ],
                        mass: shared.load(4 * k + 3),
                    };
                    of_tile += W::depth::<Double>(position, source, &constants);
                }
                k += 1;
            }
            depth += Tiles::share(step) * of_tile;
            step += 1;
        }

        keep(sums, [kinetic_energy(weight, v), -weight * depth]);
    }
}

/// As [`energy`], for many bodies in single precision: a pair's potential is rounded to it, and so
/// are the sums over a tile; those over the tiles are in f64.
///
/// # Formula
/// As [`energy`]. The potential of every pair has an error of some 10⁻⁷ of it, independent of the others,
/// so the errors of N²/2 pairs leave less than 10⁻⁷/N of the whole; the mean error of the approximate
/// root, below 10⁻⁷, is a constant factor, which no difference of energies shows.
///
/// # Arguments
/// As [`energy`].
///
/// # Thread mapping
/// As [`energy`].
///
/// # Shared memory
/// 16 bytes per thread: first a tile of sources, then the two sums.
///
/// # Constraints
/// The block's size is a power of two. `L` is [`Float4`](crate::layout::Float4), whose tiles take as
/// much.
///
/// # Safety
/// The buffers are as said and do not overlap.
///
/// # Source
/// As [`energy`].
#[inline(always)]
pub unsafe fn quick<L: Layout<Real = f32>, W: PairLaw>(
    state: *const L::Word,
    sums: *mut f64,
    params: Params,
) {
    let i = body(&params);
    let tile = Tile::<L>::of_block();
    // G comes last.
    let constants = Constants {
        g: 1.0,
        ..Constants::of(&params)
    };
    // SAFETY: targets beyond n stand in for the last body; all threads of the block go through the
    // same tiles.
    unsafe {
        let own = i.min(params.n - 1);
        let body = L::source(state, params.stride, own);
        let tiles = Tiles::of(&params);
        let mut depth = 0.0;
        let mut step = 0;
        while step < tiles.count {
            let first = tiles.at(step) * tile.capacity();
            let count = tile.fetch(state, params.stride, params.n, first);
            let mut sum = 0.0_f32;
            let mut add = |slot| {
                let depth = W::depth::<Single>(body.position, tile.source(slot), &constants);
                sum += depth;
            };
            let own_slot = own.wrapping_sub(first);
            if own_slot < count {
                sweep::<16>(own_slot, &mut add);
                let mut slot = own_slot + 1;
                while slot < count {
                    add(slot);
                    slot += 1;
                }
            } else {
                sweep::<16>(count, &mut add);
            }
            depth += Tiles::share(step) * sum.to_f64();
            step += 1;
        }
        let weight = if i < params.n {
            W::weight(body.mass.to_f64())
        } else {
            0.0
        };
        let v = L::velocity(state, params.stride, own).map(GpuFloat::to_f64);
        let potential = -params.g * weight * depth;
        keep(sums, [kinetic_energy(weight, v), potential]);
    }
}

/// The tiles that a block goes through: its own, and those after it, cyclically, half-way around. So each
/// pair of tiles comes once; of two that are half-way around from each other, the first has both.
struct Tiles {
    own: u32,
    all: u32,
    count: u32,
}

impl Tiles {
    /// Tiles of this block, each of as many bodies as a block has threads.
    #[inline(always)]
    fn of(params: &Params) -> Self {
        let own = params.share.first + thread::block_idx_x();
        let all = params.n.div_ceil(thread::block_dim_x());
        let half = all / 2;
        let count = match own >= half && 2 * half == all {
            true => half,
            false => half + 1,
        };
        Self { own, all, count }
    }

    /// The tile of a step.
    #[inline(always)]
    fn at(&self, step: u32) -> u32 {
        let tile = self.own + step;
        if tile < self.all {
            tile
        } else {
            tile - self.all
        }
    }

    /// Part of a step's sum that counts: in its own tile, the first, a block has each pair twice.
    #[inline(always)]
    fn share(step: u32) -> f64 {
        if step == 0 { 0.5 } else { 1.0 }
    }
}

/// The number of this thread's body.
#[inline(always)]
fn body(params: &Params) -> u32 {
    params.share.first * thread::block_dim_x() + thread::index_1d()
}

#[inline(always)]
fn kinetic_energy(weight: f64, v: [f64; 3]) -> f64 {
    0.5 * weight * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
}

/// Adds the energies of a block's threads and keeps the two sums.
///
/// # Safety
/// All threads of the block call it; `sums` has two values per block.
#[inline(always)]
unsafe fn keep(sums: *mut f64, [kinetic, potential]: [f64; 2]) {
    let (slot, block) = (thread::thread_idx_x(), thread::block_dim_x());
    let shared: Shared<f64> = dynamic_shared_mem();
    // SAFETY: every slot is written before the barrier after which it is read; two sums a block are
    // this block's alone.
    unsafe {
        thread::sync_threads();
        shared.store(2 * slot, kinetic);
        shared.store(2 * slot + 1, potential);
        let mut half = block / 2;
        while half > 0 {
            thread::sync_threads();
            if slot < half {
                let other = slot + half;
                shared.store(2 * slot, shared.load(2 * slot) + shared.load(2 * other));
                shared.store(
                    2 * slot + 1,
                    shared.load(2 * slot + 1) + shared.load(2 * other + 1),
                );
            }
            half /= 2;
        }
        if slot == 0 {
            let at = 2 * thread::block_idx_x();
            global::store(sums, at, shared.load(0));
            global::store(sums, at + 1, shared.load(1));
        }
    }
}
