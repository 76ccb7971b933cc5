//! Each pair once: Newton's third law saves half of the distances and roots.
//!
//! A pair's force is added to both bodies, so two threads must never hold the same body. Bodies are
//! cut into tiles, which are paired in rounds (round robin): in each round every tile is paired with
//! one other, all pairs of a round at the same time, until each tile has been paired with each. The
//! contributions to a body come in the same order on any number of threads, which therefore leave no
//! trace in the result; all pairs of a round take equally long; and the sums, one for each body and
//! axis, need no more memory than the result.

use gpu_kernels::numerics::Precision;
use rayon::prelude::*;

use super::instruction_set::InstructionSet;
use super::kernel::{BLOCK, Distance, Group, LANES, Meet, Pull, Source, Tile};
use super::vector::Lane;

/// From how many bodies on each pair is computed once. On one thread of a Zen 4 it pays from 500
/// bodies in f64 and 1300 in f32; but a round needs meetings for more threads than one. Here it is
/// 1.3 and 1.2 times as fast.
pub(super) fn pays_from(precision: Precision) -> usize {
    match precision {
        Precision::F64 => 2048,
        Precision::F32 | Precision::DoubleSingle | Precision::F16 => 4096,
    }
}

/// Bodies of a tile: a function of the number of bodies, never of the number of threads. A hundred
/// and more tiles of a large system occupy many threads; a meeting of [`BLOCK`] × [`BLOCK`] bodies
/// takes ten times as long as to start it.
fn side(n: usize) -> usize {
    (n / 128).next_multiple_of(BLOCK).clamp(BLOCK, 4 * BLOCK)
}

/// Sums in f64 that a body's force is added up from.
pub(super) fn parts(n: usize) -> usize {
    n.div_ceil(side(n)) * side(n).div_ceil(BLOCK)
}

/// `Σ_j w_j r / d³` of every body, in tiles that hold them in order; `targets` are the coordinates
/// of `sources` in groups.
pub(super) fn pulls<R: Lane>(
    targets: &[Group<R>],
    sources: &[Source<R>],
    distance: Distance<R>,
    instructions: InstructionSet,
) -> Vec<[f64; 3]> {
    let side = side(sources.len());
    let chunks = sources.par_chunks(side);
    let groups = targets.par_chunks(side / LANES);
    let mut tiles: Vec<(usize, Tile<R>)> = chunks
        .zip(groups)
        .map(|(sources, targets)| alone(targets, sources, distance, instructions))
        .enumerate()
        .collect();
    if tiles.len() % 2 == 1 {
        // Who meets this one has a round's rest.
        tiles.push((tiles.len(), Tile::empty()));
    }
    // The circle method (R. Schurig, 1886): the first stays, the others move on by one place.
    let half = tiles.len() / 2;
    for _ in 1..tiles.len() {
        let (front, back) = tiles.split_at_mut(half);
        let meetings = front.par_iter_mut().zip(back.par_iter_mut().rev());
        meetings.with_max_len(1).for_each(|((_, one), (_, other))| {
            instructions.run(Meet {
                tiles: [one, other],
                distance,
            });
        });
        tiles[1..].rotate_right(1);
    }
    tiles.sort_unstable_by_key(|&(index, _)| index);
    tiles
        .iter()
        .flat_map(|(_, tile)| tile.pulls())
        .take(sources.len())
        .collect()
}

/// A tile whose bodies have met each other.
fn alone<R: Lane>(
    targets: &[Group<R>],
    sources: &[Source<R>],
    distance: Distance<R>,
    instructions: InstructionSet,
) -> Tile<R> {
    let mut sums = vec![[[0.0; LANES]; 3]; targets.len()];
    instructions.run(Pull {
        targets,
        sources,
        distance,
        sums: &mut sums,
    });
    let mut bodies = sources.to_vec();
    bodies.resize(targets.len() * LANES, [R::default(); 4]);
    let lanes = [0, 1, 2, 3].map(|component| bodies.iter().map(|b| b[component]).collect());
    let sums = [0, 1, 2].map(|axis| sums.iter().flat_map(|group| group[axis]).collect());
    Tile {
        bodies,
        lanes,
        sums,
    }
}

impl<R> Tile<R> {
    fn empty() -> Self {
        Self {
            bodies: vec![],
            lanes: [const { vec![] }; 4],
            sums: [const { vec![] }; 3],
        }
    }

    fn pulls(&self) -> impl Iterator<Item = [f64; 3]> {
        let [x, y, z] = &self.sums;
        x.iter().zip(y).zip(z).map(|((&x, &y), &z)| [x, y, z])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_blocks_and_their_number_is_bounded() {
        for n in (1..5000).chain([1 << 16, 1 << 20, 1 << 24]) {
            let side = side(n);
            assert!(side.is_multiple_of(BLOCK) && side.is_multiple_of(LANES));
            assert!(parts(n) <= n.div_ceil(BLOCK) + side / BLOCK);
        }
    }
}
