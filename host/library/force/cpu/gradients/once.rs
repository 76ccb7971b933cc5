//! Sums of [`Pullback`], each pair once for both its bodies: in tiles that meet each other, as forces are
//! summed in [`once`](crate::force::cpu::once).

#![expect(
    clippy::needless_range_loop,
    reason = "vector loops count an index: see `simd::Kernel`"
)]

use std::marker::PhantomData;
use std::ops::Range;

use cuda_std::GpuFloat;
use gpu_kernels::interaction::gradients::{MutualSum, PULLED, Pullback};
use gpu_kernels::numerics::Closest;

use super::sums::{Columns, Others, Table, Way, splat};
use crate::force::cpu::kernel::{BLOCK, Distance, LANES, Loop, blocks};
use crate::force::cpu::once::{circle, side};
use crate::parallel;
use crate::simd::{Kernel, Lane, Lanes, Registers, Root, Vector};

/// From how many bodies on each pair is computed once.
pub(super) const PAYS_FROM: usize = 1024;

/// A sum over pairs that adds to both bodies of a pair.
pub(super) trait Mutual: MutualSum<7, PULLED> + Sync {
    /// Sums of a source to which a pair adds, the first ones.
    const REACTIONS: usize;
}

impl<const MASSES: bool, const SOFTENING: bool> Mutual for Pullback<MASSES, SOFTENING> {
    const REACTIONS: usize = if MASSES { 7 } else { 6 };
}

/// Bodies that meet others in pairs; beyond the last, bodies without mass and cotangent.
struct Tile<R> {
    rows: Vec<[R; 7]>,
    groups: Vec<Columns<R, 7>>,
    sums: Vec<Columns<f64, PULLED>>,
}

/// Sums of every body over all others.
pub(super) fn sums_of<R: Lane, F: Mutual>(
    table: &Table<R, 7>,
    way: Way<R>,
) -> Vec<Columns<f64, PULLED>> {
    let side = side(table.rows.len());
    let groups = table.groups.chunks(side / LANES);
    let parts: Vec<_> = table.rows.chunks(side).zip(groups).collect();
    let mut tiles = parallel::each(parts.len(), 1, |index| {
        let (sources, targets) = parts[index];
        let mut sums = vec![[[0.0; LANES]; PULLED]; targets.len()];
        way.instructions.run(Others::<R, F, 7, PULLED> {
            targets,
            first: 0,
            sources,
            way,
            sums: &mut sums,
            formula: PhantomData,
        });
        Tile::new(sources, targets, sums)
    });
    if tiles.len() % 2 == 1 {
        // The tile that meets this one rests for a round.
        tiles.push(Tile::new(&[], &[], vec![]));
    }
    circle::all_meet(&mut tiles, |one, other| {
        way.instructions.run(Meet::<R, F> {
            tiles: [one, other],
            distance: way.distance,
            formula: PhantomData,
        });
    });
    tiles.into_iter().flat_map(|tile| tile.sums).collect()
}

impl<R: Lane> Tile<R> {
    fn new(rows: &[[R; 7]], groups: &[Columns<R, 7>], sums: Vec<Columns<f64, PULLED>>) -> Self {
        let mut rows = rows.to_vec();
        rows.resize(groups.len() * LANES, [R::default(); 7]);
        Self {
            rows,
            groups: groups.to_vec(),
            sums,
        }
    }
}

/// Each pair of a body of one tile and a body of another.
struct Meet<'a, R, F> {
    tiles: [&'a mut Tile<R>; 2],
    distance: Distance<R>,
    formula: PhantomData<F>,
}

impl<R: Lane, F: Mutual> Kernel for Meet<'_, R, F> {
    type Output = ();
    #[inline(always)]
    fn run<I: Registers>(self) {
        self.distance.run::<R::In<I>>(self);
    }
}

impl<R: Lane, F: Mutual> Loop<R> for Meet<'_, R, F> {
    #[inline(always)]
    fn run<V: Vector<Lane = R>, T: Root, C: Closest>(self) {
        let ([one, other], squared) = (self.tiles, self.distance.softening_squared);
        for sources in blocks(other.rows.len()) {
            for targets in blocks(one.rows.len()) {
                let sources = sources.clone();
                // Four targets share a register of sources, if there is room for them.
                if V::REGISTERS >= 32 {
                    meet_in_blocks::<V, T, C, F, 4>(one, targets, other, sources, squared);
                } else {
                    meet_in_blocks::<V, T, C, F, 1>(one, targets, other, sources, squared);
                }
            }
        }
    }
}

/// Pairs of a block of targets, `COUNT` at once in all lanes, with a block of sources in registers.
#[inline(always)]
fn meet_in_blocks<V: Vector, T: Root, C: Closest, F: Mutual, const COUNT: usize>(
    one: &mut Tile<V::Lane>,
    targets: Range<usize>,
    other: &mut Tile<V::Lane>,
    sources: Range<usize>,
    squared: V::Lane,
) {
    const GROUPS: usize = BLOCK / LANES;
    let squared = V::splat(squared);
    let zero = V::Lane::default();
    // In groups, so that lanes are at constant places in them.
    let groups = sources.start / LANES..sources.end / LANES;
    let sources = &other.groups[groups.clone()];
    let mut reactions = [[[zero; LANES]; PULLED]; GROUPS];
    let reactions = &mut reactions[..sources.len()];
    for first in targets.step_by(COUNT) {
        let mut at = [[V::splat(zero); 7]; COUNT];
        for target in 0..COUNT {
            at[target] = splat(&one.rows[first + target]);
        }
        let mut sums = [[V::splat(zero); PULLED]; COUNT];
        for group in 0..sources.len() {
            let (numbers, reactions) = (&sources[group], &mut reactions[group]);
            for register in 0..LANES / V::LANES {
                let lane = register * V::LANES;
                let mut source = [V::splat(zero); 7];
                for k in 0..7 {
                    source[k] = V::load(&numbers[k][lane..]);
                }
                let mut reaction = [V::splat(zero); PULLED];
                for k in 0..F::REACTIONS {
                    reaction[k] = V::load(&reactions[k][lane..]);
                }
                for target in 0..COUNT {
                    F::add_pair::<Lanes<V, T, C>>(
                        &at[target],
                        &source,
                        squared,
                        &mut sums[target],
                        &mut reaction,
                    );
                }
                for k in 0..F::REACTIONS {
                    reaction[k].store(&mut reactions[k][lane..]);
                }
            }
        }
        for target in 0..COUNT {
            let (group, lane) = ((first + target) / LANES, (first + target) % LANES);
            for k in 0..PULLED {
                one.sums[group][k][lane] += sums[target][k].sum().to_f64();
            }
        }
    }
    let sums = &mut other.sums[groups];
    for group in 0..sums.len() {
        for k in 0..PULLED {
            for lane in 0..LANES {
                sums[group][k][lane] += reactions[group][k][lane].to_f64();
            }
        }
    }
}
