//! Each pair once: Newton's third law saves half of the distances and roots.
//!
//! A pair's force is added to both bodies, so two threads must never hold the same body. Bodies are
//! cut into tiles, which are paired in rounds (round robin): in each round every tile is paired with
//! one other, all pairs of a round at the same time, until each tile has been paired with each. The
//! contributions to a body come in the same order on any number of threads, which therefore leave no
//! trace in the result; all pairs of a round take equally long; and the sums, one for each body and
//! axis, need no more memory than the result.
//!
//! In one process a pair waits for its own two tiles alone, not for the end of the round before: see
//! [`circle`].
//!
//! Ranks go round by round, and have shares of the places at which tiles meet. From round to round tiles move on by one place,
//! so that each rank hands the sums of at most two on to its neighbours: those also come in the same
//! order on any number of ranks.

pub(super) mod circle;

use std::ops::Range;

use gpu_kernels::numerics::Precision;
use rayon::prelude::*;

use super::kernel::{BLOCK, Distance, Group, LANES, Meet, Pull, Source, Tile};
use crate::parallel;
use crate::ranks::Team;
use crate::simd::InstructionSet;
use crate::simd::Lane;
use crate::vectors::axes;

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
pub(super) fn side(n: usize) -> usize {
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
    team: &Team,
) -> Vec<[f64; 3]> {
    let side = side(sources.len());
    let places = Places::new(sources.len().div_ceil(side), team);
    let groups = targets.chunks(side / LANES);
    let parts: Vec<_> = sources.chunks(side).zip(groups).collect();
    let mut tiles = parallel::each(parts.len(), 1, |index| {
        let (sources, targets) = parts[index];
        let mut tile = Tile::of(targets, sources);
        if places.are_mine(index) {
            tile.meet_itself(targets, sources, distance, instructions);
        }
        (index, tile)
    });
    if tiles.len() % 2 == 1 {
        // Who meets this one has a round's rest.
        tiles.push((tiles.len(), Tile::empty()));
    }
    let meet = |one: &mut Tile<R>, other: &mut Tile<R>| {
        instructions.run(Meet {
            tiles: [one, other],
            distance,
        });
    };
    if team.is_alone() {
        circle::all_meet(&mut tiles, |(_, one), (_, other)| meet(one, other));
    } else {
        meet_in_rounds(&mut tiles, &places, meet);
    }
    tiles
        .iter()
        .flat_map(|(_, tile)| tile.pulls())
        .take(sources.len())
        .collect()
}

/// As [`circle::all_meet`], with ranks that exchange tiles between two rounds; `tiles` are at their
/// places of the first round.
fn meet_in_rounds<R: Lane>(
    tiles: &mut [(usize, Tile<R>)],
    places: &Places,
    meet: impl Fn(&mut Tile<R>, &mut Tile<R>) + Sync,
) {
    let half = tiles.len() / 2;
    let Range { start, end } = places.mine();
    for _ in 1..tiles.len() {
        let (front, back) = tiles.split_at_mut(half);
        let (front, back) = (&mut front[start..end], &mut back[half - end..half - start]);
        let meetings = front.par_iter_mut().zip(back.par_iter_mut().rev());
        let meetings = meetings.with_max_len(1);
        meetings.for_each(|((_, one), (_, other))| meet(one, other));
        tiles[1..].rotate_right(1);
        places.hand_on(tiles);
    }
    places.complete(tiles);
    tiles.sort_unstable_by_key(|&(index, _)| index);
}

/// Places of tiles, of which the first meets the last, the second the last but one, and so on; and the
/// ranks that have them.
struct Places<'a> {
    team: &'a Team,
    count: usize,
    /// Meetings of each rank.
    shares: Vec<Range<usize>>,
}

impl<'a> Places<'a> {
    /// Places of so many tiles, and of one more that rests if they are odd.
    fn new(tiles: usize, team: &'a Team) -> Self {
        let count = tiles.next_multiple_of(2);
        let shares = team.shares(count / 2);
        Self {
            team,
            count,
            shares,
        }
    }

    /// Meetings of this rank.
    fn mine(&self) -> Range<usize> {
        self.shares[self.team.rank()].clone()
    }

    /// Returns whether this rank has a place.
    fn are_mine(&self, place: usize) -> bool {
        self.mine().contains(&place.min(self.count - 1 - place))
    }

    /// Places of a rank, in order.
    fn of(&self, rank: usize) -> impl Iterator<Item = usize> {
        let Range { start, end } = self.shares[rank].clone();
        (start..end).chain(self.count - end..self.count - start)
    }

    /// Exchanges the sums of tiles that have moved from one rank's places to another's.
    fn hand_on<R>(&self, tiles: &mut [(usize, Tile<R>)]) {
        let owner = |meeting: usize| self.shares.iter().position(|s| s.contains(&meeting));
        let Range { start, end } = self.mine();
        let (next, previous) = (owner(end), start.checked_sub(1).and_then(owner));
        if start == end || (next, previous) == (None, None) {
            return;
        }
        // Neighbours in a ring, at whose ends nothing is exchanged.
        let (first, last) = (owner(0), owner(self.count / 2 - 1));
        let (Some(up), Some(down)) = (next.or(first), previous.or(last)) else {
            unreachable!("all meetings have owners");
        };
        // Forth: the front place after mine takes what was the last of mine, my first what came before.
        // Back: the same of the places behind, which are passed in the other direction.
        let (forth, back) = (next.is_some(), previous.is_some());
        let at = |place: usize, is: bool| is.then_some(place);
        for (to, from, sent, taken) in [
            (up, down, at(end, forth), at(start, back)),
            (
                down,
                up,
                at(self.count - start, back),
                at(self.count - end, forth),
            ),
        ] {
            let sent = sent.map(|place| tiles[place].1.sums.concat());
            let taken = taken.map(|place| &mut tiles[place].1.sums);
            let length = taken.as_ref().map_or(0, |sums| 3 * sums[0].len());
            let mut received = vec![0.0; length];
            self.team
                .exchange(to, &sent.unwrap_or_default(), from, &mut received);
            if let Some(sums) = taken {
                set(sums, &received);
            }
        }
    }

    /// Gives all ranks the sums of all tiles.
    fn complete<R>(&self, tiles: &mut [(usize, Tile<R>)]) {
        if self.team.is_alone() {
            return;
        }
        let length = |place: usize| 3 * tiles[place].1.sums[0].len();
        let counts = (0..self.team.size()).map(|rank| self.of(rank).map(length).sum());
        let counts: Vec<usize> = counts.collect();
        let mine = self.of(self.team.rank());
        let mine: Vec<f64> = mine.flat_map(|p| tiles[p].1.sums.concat()).collect();
        let all = self.team.gather(&mine, &counts);
        let mut rest = &all[..];
        for place in (0..self.team.size()).flat_map(|rank| self.of(rank)) {
            let sums = &mut tiles[place].1.sums;
            let (these, left) = rest.split_at(3 * sums[0].len());
            set(sums, these);
            rest = left;
        }
    }
}

/// Sets sums of the three axes to values, one axis after another.
fn set(sums: &mut [Vec<f64>; 3], values: &[f64]) {
    let length = sums[0].len();
    for (axis, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&values[axis * length..(axis + 1) * length]);
    }
}

impl<R: Lane> Tile<R> {
    fn of(targets: &[Group<R>], sources: &[Source<R>]) -> Self {
        let mut bodies = sources.to_vec();
        bodies.resize(targets.len() * LANES, [R::default(); 4]);
        let lanes = [0, 1, 2, 3].map(|component| bodies.iter().map(|b| b[component]).collect());
        let sums = [(); 3].map(|()| vec![0.0; bodies.len()]);
        Self {
            bodies,
            lanes,
            sums,
        }
    }

    /// Lets its bodies meet each other.
    fn meet_itself(
        &mut self,
        targets: &[Group<R>],
        sources: &[Source<R>],
        distance: Distance<R>,
        instructions: InstructionSet,
    ) {
        let mut sums = vec![[[0.0; LANES]; 3]; targets.len()];
        instructions.run(Pull {
            targets,
            sources,
            distance,
            sums: &mut sums,
        });
        self.sums = axes(|axis| sums.iter().flat_map(|group| group[axis]).collect());
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
