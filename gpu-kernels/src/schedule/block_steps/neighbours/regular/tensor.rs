//! The accelerations by far leaves, on tensor cores.

use crate::abi::Params;
use crate::schedule::fragments::{Lane, SECOND_PART, force};
use crate::schedule::separated::Bounds;
use crate::schedule::separated::classes::{BY_ROOTS, Entry, LIST_WORDS, List, inverse_cubes};
use crate::schedule::separated::pack::{PACKED_WORDS, Packed, WEIGHT_SCALE};
use crate::schedule::separated::polynomials::{LARGEST_ALPHA, SMALLEST_ALPHA, rounded_alpha};
use crate::tile::for_each;
use cuda_std::matrix::multiply_add;
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::vector::Vec4;
use cuda_std::warp::{Shuffle, lane_id, sync_warp, warp_id};
use cuda_std::{GpuFloat, global, thread};

use super::targets::{GROUP_VECTORS, Group, Groups, LANE, Range, Target};
use super::{FAR_VECTORS, GROUP, LEAF, LEAF_VECTORS, WARPS, groups_of, words_of};

/// Targets of a tile.
const TILE: u32 = 16;

/// Tiles of targets that a warp keeps in registers.
const TILES: usize = (GROUP / TILE) as usize;

/// Sources of a leaf, by the 16 that a product sums over.
const SIXTEENS: usize = (LEAF / TILE) as usize;

/// Bytes of shared memory of [`tensor`]: for each warp a packed leaf in each of two stages and a list of leaves,
/// and the boxes of all groups.
pub const TENSOR_SHARED_BYTES: u32 =
    (WARPS * (2 * PACKED_WORDS + LIST_WORDS) + GROUP_VECTORS) * size_of::<Vec4<u32>>() as u32;

/// Classes of leaves with polynomials. The polynomials for larger ratios of squared distances have errors that are
/// nearly the same from step to step, and warm a cluster. With all of them the energy of 262 144 bodies drifts by
/// 1.2e-7 in a time unit instead of 9.6e-8. The run takes 0.97 of the time.
const POLYNOMIALS: usize = 1;

/// Bits of a leaf's number in a list. Above them are the warps for which the leaf is far.
const LEAF_BITS: u32 = u32::BITS - WARPS;

/// Adds the accelerations by the leaves that [`far`](super::far()) has left for tensor cores.
///
/// # Formula
/// `Σ m r / d³`, see [`separated`](crate::schedule::separated): a leaf is packed about the centre of 256 targets.
/// The scale of lengths is of this block: the smallest distance is 1/4.
///
/// # Arguments
/// `sources`, `leaves`, `target_positions`, `target_order`: as [`far`](super::far()) takes them, read.
/// `on_tensor`: for each group of 64 targets a bit for each leaf, read. `sums`: of [`far`](super::far()), read and
/// written. `params`: like the parameters of [`far`](super::far()).
///
/// # Thread mapping
/// Like [`far`](super::far()): a warp a group of targets, and a block a part of the leaves. Each warp packs a leaf
/// into shared memory, then all warps compute their pairs with all packed leaves.
///
/// # Shared memory
/// [`TENSOR_SHARED_BYTES`].
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
pub unsafe fn tensor(
    sources: *const Vec4<f32>,
    leaves: *const Vec4<f32>,
    target_positions: *const Vec4<f32>,
    target_order: *const u32,
    on_tensor: *const u32,
    sums: *mut Vec4<f32>,
    params: Params,
) {
    let lane = Lane::of_thread();
    // The same in all lanes, and this way the compiler knows it.
    let own_warp = warp_id().shuffle(0);
    let (targets, parts) = (params.partials, params.tiling.parts);
    let (block, part) = (thread::block_idx_x() / parts, thread::block_idx_x() % parts);
    let group = block * WARPS + own_warp;
    let softening_squared = params.softening_squared as f32;
    let shared: Shared<Vec4<u32>> = dynamic_shared_mem();
    let lists = 2 * WARPS * PACKED_WORDS;
    let list = List {
        entries: shared.after(lists + own_warp * LIST_WORDS),
    };
    let stages = Packed::at(shared);
    let words = words_of(params.n);
    // SAFETY: a group that has no targets takes the last one. A leaf's words are packed by one warp before the
    // barrier and only read after it; the next leaves lie in the other stage, and all warps have left that behind at
    // the next barrier. A warp packs its targets where it packs its first leaf, and has read them before. Its list
    // is its own, and barriers of the warp lie between its use and the next.
    unsafe {
        let order = (group, targets);
        let of_lane = Target::of_lane(target_positions, target_order, order, softening_squared);
        let boxes = shared.after(lists + WARPS * LIST_WORDS);
        let groups = Groups::of_warps(&Group::of(of_lane), boxes);
        let range = Range::of(&groups.together(), 0.0, softening_squared);
        let problem = Problem {
            sources,
            leaves,
            groups,
            scale: range.scale(),
            centre: range.centre,
            softening_squared,
        };
        let left = problem.targets(&of_lane, stages.after(own_warp));
        let mut totals = [[0.0; 2]; TILES];
        let mut stage = 0;
        let mut word = part;
        while word < words {
            let entry = problem.entry(word, |warp| {
                let group = block * WARPS + warp;
                match group < groups_of(targets) {
                    true => global::load(on_tensor, group * words + word),
                    false => 0,
                }
            });
            sync_warp();
            let ends = list.fill(&entry, entry.leaf >> LEAF_BITS != 0);
            sync_warp();
            let count = ends[BY_ROOTS];
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
                // Tensor cores cut sums off, which makes them smaller with each leaf.
                let mut sums = [[0.0; 4]; TILES];
                while first < end {
                    // The places in the list tell the class, and that it is the same in all lanes.
                    if list.entry(first).leaf >> (LEAF_BITS + own_warp) & 1 != 0 {
                        if first < ends[POLYNOMIALS - 1] {
                            interact::<0>(&left, packed, &mut sums);
                        } else {
                            interact::<BY_ROOTS>(&left, packed, &mut sums);
                        }
                    }
                    packed = packed.after(1);
                    first += 1;
                }
                for_each::<TILES>(|tile| {
                    let whole = |high, low| GpuFloat::mul_add(low, 1.0 / SECOND_PART, high);
                    let ([a, b, c, d], [upper, lower]) = (sums[tile], &mut totals[tile]);
                    *upper += whole(a, b);
                    *lower += whole(c, d);
                });
                stage ^= 1;
            }
            word += parts;
        }
        let sums = sums.wrapping_add(part as usize * (targets * FAR_VECTORS) as usize);
        problem.add(lane, &of_lane, &totals, |target| {
            let number = group * GROUP + target;
            let vector = sums.wrapping_add((FAR_VECTORS * number) as usize);
            (number < targets).then_some(vector.cast())
        });
    }
}

struct Problem {
    sources: *const Vec4<f32>,
    leaves: *const Vec4<f32>,
    groups: Groups,
    /// λ.
    scale: f32,
    centre: [f32; 3],
    softening_squared: f32,
}

impl Problem {
    /// Scaled coordinates from the centre.
    #[inline(always)]
    fn scaled(&self, x: [f32; 3]) -> [f32; 3] {
        [0, 1, 2].map(|axis| self.scale * (x[axis] - self.centre[axis]))
    }

    /// The left factors of the squared distances of the warp's tiles of targets. All lanes call it.
    ///
    /// # Safety
    /// `packed` is the warp's alone.
    #[inline(always)]
    unsafe fn targets(&self, of_lane: &[Target; LANE], packed: Packed) -> [[u32; 4]; TILES] {
        let mut left = [[0; 4]; TILES];
        for_each::<LANE>(|l| {
            let at = self.scaled(of_lane[l].x);
            let square = square(at) + self.scale * self.scale * self.softening_squared;
            // SAFETY: the caller's promise.
            unsafe {
                packed.store_target(at, square, 0.0);
                sync_warp();
                for_each::<2>(|half| left[2 * l + half] = packed.left(half as u32));
                sync_warp();
            }
        });
        left
    }

    /// The lane's leaf of a word, as an entry that names the warps which take it: their words have its bit.
    ///
    /// # Safety
    /// Leaves with a bit exist.
    #[inline(always)]
    unsafe fn entry(&self, word: u32, word_of: impl Fn(u32) -> u32) -> Entry {
        let leaf = word * u32::BITS + lane_id();
        let (mut warps, mut of_warp) = (0, 0);
        while of_warp < WARPS {
            warps |= (word_of(of_warp) >> lane_id() & 1) << of_warp;
            of_warp += 1;
        }
        let (mut smallest, mut largest) = (f32::INFINITY, 0.0_f32);
        if warps != 0 {
            // SAFETY: the caller's promise, and groups of the block.
            unsafe {
                let [low, high] =
                    [0, 1].map(|v| global::load(self.leaves, leaf * LEAF_VECTORS + v));
                let leaf = Bounds {
                    low: [low.x, low.y, low.z],
                    high: [high.x, high.y, high.z],
                    heaviest: 0.0,
                };
                let mut of_warp = 0;
                while of_warp < WARPS {
                    if warps >> of_warp & 1 != 0 {
                        let group = self.groups.of_warp(of_warp);
                        let [least, most] = group.squares(&leaf, self.softening_squared);
                        (smallest, largest) = (smallest.min(least), largest.max(most));
                    }
                    of_warp += 1;
                }
            }
        }
        entry_of(leaf | warps << LEAF_BITS, [smallest, largest], self.scale)
    }

    /// Packs a leaf. All lanes call it.
    ///
    /// # Safety
    /// It exists, and `packed` is the warp's alone.
    #[inline(always)]
    unsafe fn pack_leaf(&self, entry: &Entry, packed: Packed) {
        let [shift, factor] = entry.packing(lane_id() / 8);
        let leaf = entry.leaf & ((1 << LEAF_BITS) - 1);
        // SAFETY: the caller's promise.
        unsafe {
            let source = global::load(self.sources, leaf * LEAF + lane_id());
            let mut x = [source.x, source.y, source.z];
            if source.w == 0.0 {
                // What has no mass lies far out, where no half is.
                let low = global::load(self.leaves, leaf * LEAF_VECTORS);
                x = [low.x, low.y, low.z];
            }
            let at = self.scaled(x);
            let square = GpuFloat::mul_add(entry.alpha, square(at), -shift);
            packed.store_source(at, entry.alpha, square, factor * source.w);
        }
    }

    /// Adds what the lane has of the accelerations to the vectors of the targets, by their place in the group. All
    /// lanes call it.
    ///
    /// # Safety
    /// The vectors are the warp's alone.
    #[inline(always)]
    unsafe fn add(
        &self,
        lane: Lane,
        of_lane: &[Target; LANE],
        totals: &[[f32; 2]; TILES],
        vector: impl Fn(u32) -> Option<*mut f32>,
    ) {
        let unit = self.scale * self.scale / WEIGHT_SCALE;
        for_each::<TILES>(|tile| {
            for_each::<2>(|half| {
                let row = half as u32 * (TILE / 2) + lane.row;
                // Of the lane that has this target. Not by an index, which would take local memory.
                let [x, y, z] = of_lane[tile / 2]
                    .x
                    .map(|x| x.shuffle(tile as u32 % 2 * TILE + row));
                let coordinate = match lane.component {
                    0 => self.scale * (x - self.centre[0]),
                    1 => self.scale * (y - self.centre[1]),
                    _ => self.scale * (z - self.centre[2]),
                };
                let force = force(lane, unit, -coordinate, [totals[tile][half], 0.0]);
                if let Some(vector) = vector(tile as u32 * TILE + row)
                    && !lane.has_mass()
                {
                    // SAFETY: the caller's promise.
                    unsafe {
                        let before = global::load(vector, lane.component);
                        global::store(vector, lane.component, before + force);
                    }
                }
            });
        });
    }
}

/// The accelerations of the warp's targets by a packed leaf, in units of the block. All lanes call it.
///
/// # Safety
/// The leaf was packed before a barrier.
#[inline(always)]
unsafe fn interact<const CLASS: usize>(
    left: &[[u32; 4]; TILES],
    packed: Packed,
    sums: &mut [[f32; 4]; TILES],
) {
    // SAFETY: the caller's promise.
    let weights = unsafe { packed.weights() };
    for_each::<SIXTEENS>(|sixteen| {
        let tiles = [2 * sixteen as u32, 2 * sixteen as u32 + 1];
        // SAFETY: the caller's promise.
        let right = unsafe { packed.right(sixteen as u32) };
        for_each::<TILES>(|tile| {
            let [a, b] = inverse_cubes::<CLASS>(tiles[0], left[tile], right[0]);
            let [c, d] = inverse_cubes::<CLASS>(tiles[1], left[tile], right[1]);
            sums[tile] = multiply_add([a, b, c, d], weights[sixteen], sums[tile]);
        });
    });
}

/// A leaf, of which αd² is 1/4 at least where roots are taken.
#[inline(always)]
fn entry_of(leaf: u32, squares: [f32; 2], scale: f32) -> Entry {
    // A lane without a leaf has infinite squares.
    let alpha = (0.25 / (scale * scale * squares[0])).max(SMALLEST_ALPHA);
    let by_roots = rounded_alpha(alpha.min(LARGEST_ALPHA));
    Entry::of(leaf, squares, scale, (POLYNOMIALS, by_roots))
}

#[inline(always)]
fn square([x, y, z]: [f32; 3]) -> f32 {
    GpuFloat::mul_add(x, x, GpuFloat::mul_add(y, y, z * z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::fragments::rounded;
    use crate::schedule::separated::pack::LARGEST_COORDINATE;

    /// Groups and leaves of many sizes, distances and radii, of lengths of all sizes: what is packed of a leaf that
    /// tensor cores get are halves, and 1/d³ has most of its bits.
    #[test]
    fn leaves_for_tensor_cores_are_within_the_range_of_halves() {
        let mut seen = [0; BY_ROOTS + 1];
        let sizes = [1e-6, 0.03, 0.5, 4.0, 60.0];
        for steps in 0..40_000 {
            let unit = [1e-9_f32, 1.0, 1e9][steps % 3];
            let reach = 0.02 * 1.02_f32.powi(steps as i32 / 3 % 300);
            let (width, size) = (sizes[steps / 900 % 5], sizes[steps / 4500 % 5]);
            let distance = 1.017_f32.powi(steps as i32 / 3 % 311) - 1.0;
            let group = Group::around(
                [-width * unit; 3],
                [width * unit; 3],
                reach * reach * unit * unit,
            );
            let low = [(width + distance) * unit, -0.5 * unit, 0.1 * unit];
            let leaf = Bounds {
                low,
                high: low.map(|x| x + size * unit),
                heaviest: 0.0,
            };
            let softening_squared = [0.0, 0.01 * unit * unit][steps / 7 % 2];
            let range = Range::of(&group, 0.0, softening_squared);
            let squares = group.squares(&leaf, softening_squared);
            if !range.suits(&leaf, squares) {
                continue;
            }
            let scale = range.scale();
            let entry = entry_of(7, squares, scale);
            seen[entry.class as usize] += 1;
            let [least, most] = squares.map(|square| entry.alpha * scale * scale * square);
            assert!(least >= 0.246 && most <= 2100.0, "{least} {most}");
            let coordinates = [leaf.low, leaf.high]
                .map(|x| [0, 1, 2].map(|k| (scale * (x[k] - range.centre[k])).abs()));
            let largest = coordinates.iter().flatten().fold(0.0_f32, |a, &b| a.max(b));
            assert!(largest <= LARGEST_COORDINATE, "{largest}");
            assert!(scale * width * unit <= 2.0 * 1.001);
            assert_eq!(rounded(entry.alpha), entry.alpha);
            let second = entry.alpha / SECOND_PART;
            assert_eq!(rounded(second), second);
            for tile in 0..4 {
                let [_, factor] = entry.packing(tile);
                let weight = WEIGHT_SCALE * factor.abs() * largest.max(1.0);
                assert!(weight <= 60_000.0, "{weight}");
                let square = entry.alpha * 3.0 * largest * largest;
                assert!(square <= 60_000.0, "{square}");
            }
        }
        assert!(seen[0] > 100 && seen[BY_ROOTS] > 100, "{seen:?}");
    }
}
