//! Sums of [`Pullback`], each pair once for both its bodies: in tiles that meet each other, as forces are
//! summed in [`once`](crate::force::cpu::once).

#![expect(
    clippy::needless_range_loop,
    reason = "vector loops count an index: see `simd::Kernel`"
)]

use std::marker::PhantomData;
use std::ops::Range;

use cuda_std::GpuFloat;
use gpu_kernels::interaction::gradients::{PULLED, PairSum, Pullback};
use gpu_kernels::numerics::{Closest, PairArithmetic};
use rayon::prelude::*;

use super::sums::{Columns, Others, Table, Way, splat};
use crate::force::cpu::kernel::{BLOCK, Distance, LANES, Loop, blocks};
use crate::force::cpu::once::{circle, side};
use crate::simd::{Kernel, Lane, Lanes, Registers, Root, Vector};

/// From how many bodies on each pair is computed once.
pub(super) const PAYS_FROM: usize = 1024;

/// A sum over pairs that adds to both bodies of a pair.
pub(super) trait Mutual: PairSum<7, PULLED> + Sync {
    fn add_pair<A: PairArithmetic>(
        target: &[A::Real; 7],
        source: &[A::Real; 7],
        squared: A::Real,
        target_sums: &mut [A::Real; PULLED],
        source_sums: &mut [A::Real; PULLED],
    );
}

impl<const MASSES: bool, const SOFTENING: bool> Mutual for Pullback<MASSES, SOFTENING> {
    #[inline(always)]
    fn add_pair<A: PairArithmetic>(
        target: &[A::Real; 7],
        source: &[A::Real; 7],
        squared: A::Real,
        target_sums: &mut [A::Real; PULLED],
        source_sums: &mut [A::Real; PULLED],
    ) {
        Self::add_pair::<A>(target, source, squared, target_sums, source_sums);
    }
}

/// Bodies that meet others in pairs; beyond the last, bodies without mass and cotangent.
struct Tile<R> {
    rows: Vec<[R; 7]>,
    lanes: [Vec<R>; 7],
    sums: [Vec<f64>; PULLED],
}

/// Sums of every body over all others.
pub(super) fn sums_of<R: Lane, F: Mutual>(
    table: &Table<R, 7>,
    way: Way<R>,
) -> Vec<Columns<f64, PULLED>> {
    let side = side(table.rows.len());
    let groups = table.groups.par_chunks(side / LANES);
    let mut tiles: Vec<Tile<R>> = table
        .rows
        .par_chunks(side)
        .zip(groups)
        .map(|(sources, targets)| {
            let mut sums = vec![[[0.0; LANES]; PULLED]; targets.len()];
            way.instructions.run(Others::<R, F, 7, PULLED> {
                targets,
                first: 0,
                sources,
                way,
                sums: &mut sums,
                formula: PhantomData,
            });
            Tile::new(sources, targets, &sums)
        })
        .collect();
    if tiles.len() % 2 == 1 {
        // The tile that meets this one rests for a round.
        tiles.push(Tile::new(&[], &[], &[]));
    }
    circle::all_meet(&mut tiles, |one, other| {
        way.instructions.run(Meet::<R, F> {
            tiles: [one, other],
            distance: way.distance,
            formula: PhantomData,
        });
    });
    tiles.iter().flat_map(Tile::groups).collect()
}

impl<R: Lane> Tile<R> {
    fn new(rows: &[[R; 7]], groups: &[Columns<R, 7>], sums: &[Columns<f64, PULLED>]) -> Self {
        let mut rows = rows.to_vec();
        rows.resize(groups.len() * LANES, [R::default(); 7]);
        let column = |k: usize| groups.iter().flat_map(|group| group[k]).collect();
        let sum = |k: usize| sums.iter().flat_map(|group| group[k]).collect();
        Self {
            rows,
            lanes: std::array::from_fn(column),
            sums: std::array::from_fn(sum),
        }
    }

    /// The sums, in the order of the bodies.
    fn groups(&self) -> impl Iterator<Item = Columns<f64, PULLED>> {
        (0..self.rows.len()).step_by(LANES).map(|first| {
            let lanes = |k: usize| std::array::from_fn(|lane| self.sums[k][first + lane]);
            std::array::from_fn(lanes)
        })
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
                meet_in_blocks::<V, T, C, F>(one, targets, other, sources.clone(), squared);
            }
        }
    }
}

/// Pairs of a block of targets, each in all lanes, with a block of sources in registers.
#[inline(always)]
fn meet_in_blocks<V: Vector, T: Root, C: Closest, F: Mutual>(
    one: &mut Tile<V::Lane>,
    targets: Range<usize>,
    other: &mut Tile<V::Lane>,
    sources: Range<usize>,
    squared: V::Lane,
) {
    let squared = V::splat(squared);
    let (zero, count) = (V::Lane::default(), sources.len());
    let mut reactions = [[zero; BLOCK]; PULLED];
    for target in targets {
        let at = splat::<V, 7>(&one.rows[target]);
        let mut sums = [V::splat(zero); PULLED];
        for lane in (0..count).step_by(V::LANES) {
            let mut source = [V::splat(zero); 7];
            for k in 0..7 {
                source[k] = V::load(&other.lanes[k][sources.start + lane..]);
            }
            let mut reaction = [V::splat(zero); PULLED];
            for k in 0..PULLED {
                reaction[k] = V::load(&reactions[k][lane..]);
            }
            F::add_pair::<Lanes<V, T, C>>(&at, &source, squared, &mut sums, &mut reaction);
            for k in 0..PULLED {
                reaction[k].store(&mut reactions[k][lane..]);
            }
        }
        for k in 0..PULLED {
            one.sums[k][target] += sums[k].sum().to_f64();
        }
    }
    for k in 0..PULLED {
        let sums = &mut other.sums[k][sources.clone()];
        for lane in 0..count {
            sums[lane] += reactions[k][lane].to_f64();
        }
    }
}
