//! The inner loops: bodies in vector registers.
//!
//! Each body's terms are added in index order, block by block, whatever the width of the registers,
//! so that width, tasks and threads leave no trace in the result; where a pair is computed once for
//! both bodies, the width does.
//!
//! A block's sum is kept in the working precision and then added in f64. In f32 this keeps the
//! error of a long sum at that of [`BLOCK`] additions, for no measurable time.

#![expect(
    clippy::needless_range_loop,
    reason = "vector loops count an index: see `simd::Kernel`"
)]

use std::ops::Range;

use cuda_std::GpuFloat;
use gpu_kernels::interaction::{interact, interact_pair, potential};
use gpu_kernels::numerics::{Closest, Exact, MultiplyAdd, Numerics, Real, Softened, Unsoftened};

use crate::simd::Kernel;
use crate::simd::{self, Estimated, Lane, Lanes, Refined, Registers, Root, Vector};
use crate::variants::RootName;

/// Targets in the order in which lanes take them: a multiple of every register.
pub(super) const LANES: usize = 16;

/// Sources whose sum is formed in the working precision.
pub(crate) const BLOCK: usize = 256;

/// Coordinates x, y, z of [`LANES`] targets.
pub(super) type Group<R> = [[R; LANES]; 3];

/// x, y, z and weight.
pub(super) type Source<R> = [R; 4];

/// Method for 1/d: the root, and the squared softening, which says whether d can be zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distance<R> {
    pub(super) root: RootName,
    pub(super) softening_squared: R,
}

/// A loop for one kind of [`Distance`].
pub(super) trait Loop<R> {
    fn run<V: Vector<Lane = R>, S: Root, C: Closest>(self);
}

impl<R: Lane> Distance<R> {
    #[inline(always)]
    pub(super) fn run<V: Vector<Lane = R>>(self, work: impl Loop<R>) {
        match self.root {
            RootName::Exact => self.run_with::<V, simd::Exact>(work),
            RootName::Refined => self.run_with::<V, Refined>(work),
            RootName::Estimated => self.run_with::<V, Estimated>(work),
        }
    }

    #[inline(always)]
    fn run_with<V: Vector<Lane = R>, S: Root>(self, work: impl Loop<R>) {
        if self.softening_squared < R::SMALLEST_SQUARE {
            work.run::<V, S, Unsoftened>();
        } else {
            work.run::<V, S, Softened>();
        }
    }
}

/// Adds `Σ_j w_j r / d³` over all sources to `sums`, one group for each of `targets`.
pub(super) struct Pull<'a, R> {
    pub(super) targets: &'a [Group<R>],
    pub(super) sources: &'a [Source<R>],
    pub(super) distance: Distance<R>,
    pub(super) sums: &'a mut [[[f64; LANES]; 3]],
}

impl<R: Lane> Kernel for Pull<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        self.distance.run::<R::In<S>>(self);
    }
}

impl<R: Lane> Loop<R> for Pull<'_, R> {
    #[inline(always)]
    fn run<V: Vector<Lane = R>, S: Root, C: Closest>(self) {
        // Two registers of targets share a source that has been read, if there is room for them.
        let at_once = if V::REGISTERS >= 32 { 2 } else { 1 };
        let registers = self.targets.len() * LANES / V::LANES;
        let even = registers / at_once * at_once;
        let Self {
            targets,
            sources,
            distance,
            sums,
        } = self;
        // Blocks outside, targets inside: a block stays in the first-level cache for all targets.
        for block in sources.chunks(BLOCK) {
            for first in (0..even).step_by(at_once) {
                if at_once == 2 {
                    pull_of_block::<V, S, C, 2>(targets, first, block, distance, sums);
                } else {
                    pull_of_block::<V, S, C, 1>(targets, first, block, distance, sums);
                }
            }
            if even < registers {
                pull_of_block::<V, S, C, 1>(targets, even, block, distance, sums);
            }
        }
    }
}

/// Contribution of a block of sources to the targets that fill `COUNT` registers, from the `first`
/// on.
#[inline(always)]
fn pull_of_block<V: Vector, S: Root, C: Closest, const COUNT: usize>(
    targets: &[Group<V::Lane>],
    first: usize,
    block: &[Source<V::Lane>],
    distance: Distance<V::Lane>,
    sums: &mut [[[f64; LANES]; 3]],
) {
    let zero = V::splat(V::Lane::default());
    let mut at = [[zero; 3]; COUNT];
    for register in 0..COUNT {
        let lane = (first + register) * V::LANES;
        at[register] = load(&targets[lane / LANES], lane % LANES);
    }
    let softening_squared = V::splat(distance.softening_squared);
    let mut pulls = [[zero; 3]; COUNT];
    for &[x, y, z, weight] in block {
        let (source, weight) = (splat(x, y, z), V::splat(weight));
        for register in 0..COUNT {
            let pull = &mut pulls[register];
            interact::<Lanes<V, S, C>>(at[register], source, weight, softening_squared, pull);
        }
    }
    for register in 0..COUNT {
        let lane = (first + register) * V::LANES;
        add(pulls[register], &mut sums[lane / LANES], lane % LANES);
    }
}

/// A position in every lane.
#[inline(always)]
pub(super) fn splat<V: Vector>(x: V::Lane, y: V::Lane, z: V::Lane) -> [V; 3] {
    [V::splat(x), V::splat(y), V::splat(z)]
}

/// The vectors of a group that fill a register, from `lane` on.
#[inline(always)]
pub(super) fn load<V: Vector>([x, y, z]: &Group<V::Lane>, lane: usize) -> [V; 3] {
    [
        V::load(&x[lane..]),
        V::load(&y[lane..]),
        V::load(&z[lane..]),
    ]
}

/// Adds vectors that fill a register to the sums of a group, in f64, from `lane` on.
#[inline(always)]
pub(super) fn add<V: Vector>(vector: [V; 3], sums: &mut Group<f64>, lane: usize) {
    for axis in 0..3 {
        let mut terms = [V::Lane::default(); LANES];
        vector[axis].store(&mut terms);
        let sums = &mut sums[axis][lane..lane + V::LANES];
        for k in 0..V::LANES {
            sums[k] += terms[k].to_f64();
        }
    }
}

/// Bodies that meet others in pairs: coordinates and weights, each a multiple of [`LANES`], what is
/// beyond the last body without weight; and the sums of what they are pulled with.
#[derive(Clone, Debug)]
pub(super) struct Tile<R> {
    pub(super) bodies: Vec<Source<R>>,
    pub(super) lanes: [Vec<R>; 4],
    pub(super) sums: [Vec<f64>; 3],
}

/// Each pair of a body of one tile and a body of another: once, for both.
pub(super) struct Meet<'a, R> {
    pub(super) tiles: [&'a mut Tile<R>; 2],
    pub(super) distance: Distance<R>,
}

impl<R: Lane> Kernel for Meet<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        self.distance.run::<R::In<S>>(self);
    }
}

impl<R: Lane> Loop<R> for Meet<'_, R> {
    #[inline(always)]
    fn run<V: Vector<Lane = R>, S: Root, C: Closest>(self) {
        let ([one, other], distance) = (self.tiles, self.distance);
        for sources in blocks(other.bodies.len()) {
            for targets in blocks(one.bodies.len()) {
                let sources = sources.clone();
                // Four targets share a register of sources, if there is room for them.
                if V::REGISTERS >= 32 {
                    meet_in_blocks::<V, S, C, 4>(one, targets, other, sources, distance);
                } else {
                    meet_in_blocks::<V, S, C, 1>(one, targets, other, sources, distance);
                }
            }
        }
    }
}

/// The blocks of so many bodies.
pub(super) fn blocks(count: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..count).step_by(BLOCK);
    starts.map(move |start| start..count.min(start + BLOCK))
}

/// Pairs of a block of targets, `COUNT` at once in all lanes, with a block of sources in registers.
#[inline(always)]
fn meet_in_blocks<V: Vector, S: Root, C: Closest, const COUNT: usize>(
    one: &mut Tile<V::Lane>,
    targets: Range<usize>,
    other: &mut Tile<V::Lane>,
    sources: Range<usize>,
    distance: Distance<V::Lane>,
) {
    let softening_squared = V::splat(distance.softening_squared);
    let zero = V::Lane::default();
    let count = sources.len();
    let [x, y, z, weights] = &other.lanes;
    let (x, y, z) = (
        &x[sources.clone()],
        &y[sources.clone()],
        &z[sources.clone()],
    );
    let weights = &weights[sources.clone()];
    let mut reactions = [[zero; BLOCK]; 3];
    let [rx, ry, rz] = &mut reactions;
    for first in targets.step_by(COUNT) {
        let at: &[Source<V::Lane>; COUNT] =
            one.bodies[first..first + COUNT].try_into().expect("COUNT");
        let mut pulls = [[V::splat(zero); 3]; COUNT];
        for lane in (0..count).step_by(V::LANES) {
            let source = [
                V::load(&x[lane..]),
                V::load(&y[lane..]),
                V::load(&z[lane..]),
            ];
            let weight = V::load(&weights[lane..]);
            let mut reaction = [
                V::load(&rx[lane..]),
                V::load(&ry[lane..]),
                V::load(&rz[lane..]),
            ];
            for target in 0..COUNT {
                let [x, y, z, target_weight] = at[target];
                interact_pair::<Lanes<V, S, C>>(
                    [splat(x, y, z), source],
                    [V::splat(target_weight), weight],
                    softening_squared,
                    &mut pulls[target],
                    &mut reaction,
                );
            }
            let [x, y, z] = reaction;
            x.store(&mut rx[lane..]);
            y.store(&mut ry[lane..]);
            z.store(&mut rz[lane..]);
        }
        for target in 0..COUNT {
            for axis in 0..3 {
                one.sums[axis][first + target] += pulls[target][axis].sum().to_f64();
            }
        }
    }
    for axis in 0..3 {
        let sums = &mut other.sums[axis][sources.clone()];
        let reactions = &reactions[axis][..count];
        for k in 0..count {
            sums[k] += reactions[k].to_f64();
        }
    }
}

/// Adds `Σ_{j<i} w_j / d` for each target i to `sums`: half of all pairs, and never a body with
/// itself, whose softened w/ε would drown the rest. Seldom wanted, and so written for one lane, with
/// exact roots, and left to the compiler to vectorise. Targets past the last source, which are not among
/// them, meet all.
pub(super) struct Potential<'a> {
    pub(super) targets: &'a [Group<f64>],
    /// Index of the first target among the sources.
    pub(super) first: usize,
    pub(super) sources: &'a [Source<f64>],
    pub(super) softening_squared: f64,
    pub(super) sums: &'a mut [[f64; LANES]],
}

impl Kernel for Potential<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        if self.softening_squared < f64::SMALLEST_SQUARE {
            self.sum::<S::MultiplyAdd, Unsoftened>();
        } else {
            self.sum::<S::MultiplyAdd, Softened>();
        }
    }
}

impl Potential<'_> {
    #[inline(always)]
    fn sum<M: MultiplyAdd, C: Closest>(self) {
        let Self {
            targets,
            first,
            sources,
            softening_squared,
            sums,
        } = self;
        let end = sources.len().min(first + targets.len() * LANES);
        for range in blocks(end) {
            let block = &sources[range.clone()];
            for group in 0..targets.len() {
                // The sources before the whole group; those inside it follow below.
                let before = (first + group * LANES).saturating_sub(range.start);
                let block = &block[..before.min(block.len())];
                let parts = potential_of_block::<M, C>(&targets[group], block, softening_squared);
                for lane in 0..LANES {
                    sums[group][lane] += parts[lane];
                }
            }
        }
        for group in 0..targets.len() {
            let start = end.min(first + group * LANES);
            let inside = &sources[start..end.min(start + LANES)];
            let [x, y, z] = &targets[group];
            for lane in 0..inside.len() {
                let target = [x[lane], y[lane], z[lane]];
                for source in &inside[..lane] {
                    sums[group][lane] +=
                        potential_of_pair::<M, C>(target, source, softening_squared);
                }
            }
        }
    }
}

#[inline(always)]
fn potential_of_block<M: MultiplyAdd, C: Closest>(
    targets: &Group<f64>,
    block: &[Source<f64>],
    softening_squared: f64,
) -> [f64; LANES] {
    let [tx, ty, tz] = *targets;
    let mut sums = [0.0; LANES];
    for source in block {
        for lane in 0..LANES {
            let target = [tx[lane], ty[lane], tz[lane]];
            sums[lane] += potential_of_pair::<M, C>(target, source, softening_squared);
        }
    }
    sums
}

#[inline(always)]
fn potential_of_pair<M: MultiplyAdd, C: Closest>(
    target: [f64; 3],
    &[x, y, z, weight]: &Source<f64>,
    softening_squared: f64,
) -> f64 {
    potential::<Numerics<f64, M, Exact, C>>(target, [x, y, z], weight, softening_squared)
}
