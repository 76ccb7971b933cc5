//! The inner loops: a group of targets in vector registers, one source at a time broadcast to it.
//!
//! Written for one lane and left to the compiler to vectorise: the loop over [`LANES`] has no
//! dependence between lanes and no branch (the test for coincident bodies becomes a mask). Each
//! target's terms are added in index order, block by block, whatever the vector width, so that
//! width, tasks and threads leave no trace in the result.
//!
//! A block's sum is kept in the working precision and then added in f64. In f32 this keeps the
//! error of a long sum at that of [`BLOCK`] additions, for no measurable time.
//!
//! 1/√ is a correctly rounded root and division. They bound the speed where the divider is narrow
//! (f32 reached 80 % of what an approximate root with one Newton step did on Zen 4, 94 % on Zen 5),
//! and they give the same bits on every processor, which approximations do not promise.

use gpu_kernels::interaction::{interact, potential};
use gpu_kernels::numerics::{Closest, Exact, MultiplyAdd, Numerics, Real, Softened, Unsoftened};

use super::instruction_set::Kernel;

/// Targets that are worked on at once: one AVX-512 register of f32, two of f64. Twice as many
/// were no faster, half as many half as fast in AVX2.
pub(super) const LANES: usize = 16;

/// Sources whose sum is formed in the working precision.
pub(crate) const BLOCK: usize = 256;

/// Coordinates x, y, z of [`LANES`] targets.
pub(super) type Group<R> = [[R; LANES]; 3];

/// x, y, z and weight.
pub(super) type Source<R> = [R; 4];

/// Adds `Σ_j w_j r / d³` over all sources to `sums`, one group for each of `targets`.
pub(super) struct Pull<'a, R> {
    pub(super) targets: &'a [Group<R>],
    pub(super) sources: &'a [Source<R>],
    pub(super) softening_squared: R,
    pub(super) sums: &'a mut [[[f64; LANES]; 3]],
}

impl<R: Real> Kernel for Pull<'_, R> {
    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        if self.softening_squared < R::SMALLEST_SQUARE {
            self.sum::<M, Unsoftened>();
        } else {
            self.sum::<M, Softened>();
        }
    }
}

impl<R: Real> Pull<'_, R> {
    #[inline(always)]
    fn sum<M: MultiplyAdd, C: Closest>(self) {
        // Blocks outside, groups inside: a block stays in the first-level cache for all groups.
        for block in self.sources.chunks(BLOCK) {
            for (targets, sums) in self.targets.iter().zip(self.sums.iter_mut()) {
                let sum = pull_of_block::<R, M, C>(targets, block, self.softening_squared);
                for (sum, part) in sums.as_flattened_mut().iter_mut().zip(sum.as_flattened()) {
                    *sum += part.to_f64();
                }
            }
        }
    }
}

#[inline(always)]
fn pull_of_block<R: Real, M: MultiplyAdd, C: Closest>(
    targets: &Group<R>,
    block: &[Source<R>],
    softening_squared: R,
) -> Group<R> {
    // Copies, so that the compiler knows that nothing else refers to them: registers.
    let [tx, ty, tz] = *targets;
    let [mut ax, mut ay, mut az] = [[R::from_f64(0.0); LANES]; 3];
    for &[x, y, z, weight] in block {
        for lane in 0..LANES {
            let mut sum = [ax[lane], ay[lane], az[lane]];
            interact::<Numerics<R, M, Exact, C>>(
                [tx[lane], ty[lane], tz[lane]],
                [x, y, z],
                weight,
                softening_squared,
                &mut sum,
            );
            [ax[lane], ay[lane], az[lane]] = sum;
        }
    }
    [ax, ay, az]
}

/// Adds `Σ_{j<i} w_j / d` for each target i to `sums`: half of all pairs, and never a body with
/// itself, whose softened w/ε would drown the rest.
pub(super) struct Potential<'a> {
    pub(super) targets: &'a [Group<f64>],
    /// Index of the first target among the sources.
    pub(super) first: usize,
    pub(super) sources: &'a [Source<f64>],
    pub(super) softening_squared: f64,
    pub(super) sums: &'a mut [[f64; LANES]],
}

impl Kernel for Potential<'_> {
    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        if self.softening_squared < f64::SMALLEST_SQUARE {
            self.sum::<M, Unsoftened>();
        } else {
            self.sum::<M, Softened>();
        }
    }
}

impl Potential<'_> {
    #[inline(always)]
    fn sum<M: MultiplyAdd, C: Closest>(self) {
        let groups = || self.targets.iter().zip((self.first..).step_by(LANES));
        let end = self.first + self.targets.len() * LANES;
        let blocks = self.sources[..end.min(self.sources.len())].chunks(BLOCK);
        for (block, block_start) in blocks.zip((0..).step_by(BLOCK)) {
            for ((targets, start), sums) in groups().zip(self.sums.iter_mut()) {
                // The sources before the whole group; those inside it follow below.
                let before = start.saturating_sub(block_start).min(block.len());
                let block = &block[..before];
                let parts = potential_of_block::<M, C>(targets, block, self.softening_squared);
                for (sum, part) in sums.iter_mut().zip(parts) {
                    *sum += part;
                }
            }
        }
        for ((targets, start), sums) in groups().zip(self.sums.iter_mut()) {
            let inside = &self.sources[start..self.sources.len().min(start + LANES)];
            for (lane, sum) in sums.iter_mut().enumerate().take(inside.len()) {
                let target = targets.map(|coordinates| coordinates[lane]);
                for source in &inside[..lane] {
                    *sum += potential_of_pair::<M, C>(target, source, self.softening_squared);
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
        for (lane, sum) in sums.iter_mut().enumerate() {
            let target = [tx[lane], ty[lane], tz[lane]];
            *sum += potential_of_pair::<M, C>(target, source, softening_squared);
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
