//! Sums over all other bodies at each body, for any formula of a pair.

#![expect(
    clippy::needless_range_loop,
    reason = "vector loops count an index: see `simd::Kernel`"
)]

use std::marker::PhantomData;

use cuda_std::GpuFloat;
use gpu_kernels::interaction::gradients::{PairSum, Softening};
use gpu_kernels::numerics::Closest;

use crate::force::cpu::kernel::{BLOCK, Distance, LANES, Loop, blocks};
use crate::force::cpu::{INTERACTIONS_ALONE, in_tasks};
use crate::simd::InstructionSet;
use crate::simd::{Kernel, Lane, Lanes, Registers, Root, Vector};

/// Numbers, or sums, of [`LANES`] bodies.
pub(super) type Columns<R, const N: usize> = [[R; LANES]; N];

/// `N` numbers of each body, as sources and as targets of a sum.
#[derive(Clone, Debug)]
pub(super) struct Table<R, const N: usize> {
    pub(super) rows: Vec<[R; N]>,
    pub(super) groups: Vec<Columns<R, N>>,
}

impl<R: Lane, const N: usize> Table<R, N> {
    /// Of `n` bodies. Lanes past the last body hold zeros, and their sums are never read.
    pub(super) fn new(n: usize, numbers: impl Fn(usize) -> [R; N]) -> Self {
        let rows: Vec<[R; N]> = (0..n).map(numbers).collect();
        let group = |rows: &[[R; N]]| {
            let mut group = [[R::default(); LANES]; N];
            for (lane, row) in rows.iter().enumerate() {
                for (column, &number) in group.iter_mut().zip(row) {
                    column[lane] = number;
                }
            }
            group
        };
        let groups = rows.chunks(LANES).map(group).collect();
        Self { rows, groups }
    }
}

/// Softening, roots and vector instructions of a sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<R> {
    pub(super) distance: Distance<R>,
    /// ε ε̇.
    pub(super) rate: R,
    pub(super) instructions: InstructionSet,
}

/// Sums of every body over all others, of a formula `F`.
pub(super) fn sums_of<R: Lane, F: PairSum<N, S>, const N: usize, const S: usize>(
    table: &Table<R, N>,
    way: Way<R>,
) -> Vec<Columns<f64, S>> {
    let mut sums = vec![[[0.0; LANES]; S]; table.groups.len()];
    let add = |first: usize, sums: &mut [_], targets: &[_]| {
        way.instructions.run(Others::<R, F, N, S> {
            targets,
            first,
            sources: &table.rows,
            way,
            sums,
            formula: PhantomData,
        });
    };
    if table.rows.len().pow(2) <= INTERACTIONS_ALONE {
        add(0, &mut sums, &table.groups);
    } else {
        in_tasks(&mut sums, &table.groups, add);
    }
    sums
}

/// Adds a formula's sums over all sources but the target itself. Each body's terms are added in the order of
/// the sources, block by block.
pub(super) struct Others<'a, R, F, const N: usize, const S: usize> {
    pub(super) targets: &'a [Columns<R, N>],
    /// Index of the first target among the sources: a multiple of [`LANES`].
    pub(super) first: usize,
    pub(super) sources: &'a [[R; N]],
    pub(super) way: Way<R>,
    pub(super) sums: &'a mut [Columns<f64, S>],
    pub(super) formula: PhantomData<F>,
}

impl<R: Lane, F: PairSum<N, S>, const N: usize, const S: usize> Kernel for Others<'_, R, F, N, S> {
    type Output = ();
    #[inline(always)]
    fn run<I: Registers>(self) {
        self.way.distance.run::<R::In<I>>(self);
    }
}

impl<R: Lane, F: PairSum<N, S>, const N: usize, const S: usize> Loop<R> for Others<'_, R, F, N, S> {
    #[inline(always)]
    fn run<V: Vector<Lane = R>, T: Root, C: Closest>(self) {
        const { assert!(BLOCK.is_multiple_of(LANES)) };
        let softening = Softening {
            squared: V::splat(self.way.distance.softening_squared),
            rate: V::splat(self.way.rate),
        };
        for range in blocks(self.sources.len()) {
            let block = &self.sources[range.clone()];
            for register in 0..self.targets.len() * LANES / V::LANES {
                let lane = register * V::LANES;
                let (group, lane) = (lane / LANES, lane % LANES);
                // The targets themselves are all in one block.
                let first = self.first + register * V::LANES;
                let own = match first.checked_sub(range.start) {
                    Some(own) => own.min(block.len())..(own + V::LANES).min(block.len()),
                    None => 0..0,
                };
                add_block::<V, T, C, F, N, S>(
                    &self.targets[group],
                    lane,
                    [&block[..own.start], &block[own.clone()], &block[own.end..]],
                    softening,
                    &mut self.sums[group],
                );
            }
        }
    }
}

/// Adds the terms of a block of sources. It is cut into sources before the targets of a register, the targets
/// themselves and sources after them.
#[inline(always)]
fn add_block<V, T, C, F, const N: usize, const S: usize>(
    targets: &Columns<V::Lane, N>,
    lane: usize,
    [before, own, after]: [&[[V::Lane; N]]; 3],
    softening: Softening<V>,
    sums: &mut Columns<f64, S>,
) where
    V: Vector,
    T: Root,
    C: Closest,
    F: PairSum<N, S>,
{
    let zero = V::splat(V::Lane::default());
    let mut target = [zero; N];
    for k in 0..N {
        target[k] = V::load(&targets[k][lane..]);
    }
    let mut added = [zero; S];
    for source in before {
        F::add::<Lanes<V, T, C>>(&target, &splat(source), softening, &mut added);
    }
    if !own.is_empty() {
        let mut number = [V::Lane::default(); LANES];
        for k in 0..LANES {
            number[k] = V::Lane::from_f64(k as f64);
        }
        let (number, half) = (V::load(&number), V::splat(V::Lane::from_f64(0.5)));
        for index in 0..own.len() {
            let mut terms = [zero; S];
            F::add::<Lanes<V, T, C>>(&target, &splat(&own[index]), softening, &mut terms);
            let apart = number - V::splat(V::Lane::from_f64(index as f64));
            for k in 0..S {
                added[k] = added[k] + terms[k].zero_where_less(apart * apart, half);
            }
        }
    }
    for source in after {
        F::add::<Lanes<V, T, C>>(&target, &splat(source), softening, &mut added);
    }
    for k in 0..S {
        let mut terms = [V::Lane::default(); LANES];
        added[k].store(&mut terms);
        let sums = &mut sums[k][lane..lane + V::LANES];
        for lane in 0..V::LANES {
            sums[lane] += terms[lane].to_f64();
        }
    }
}

/// A source's numbers, each in every lane.
#[inline(always)]
pub(super) fn splat<V: Vector, const N: usize>(source: &[V::Lane; N]) -> [V; N] {
    let mut numbers = [V::splat(V::Lane::default()); N];
    for k in 0..N {
        numbers[k] = V::splat(source[k]);
    }
    numbers
}
