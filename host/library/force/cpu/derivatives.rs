//! Accelerations with jerks, or with jerks and snaps, on the CPU: the loop of
//! [`kernel`](super::kernel) with velocities, or velocities and accelerations.

#![expect(
    clippy::needless_range_loop,
    reason = "vector loops count an index: see `simd::Kernel`"
)]

use cuda_std::GpuFloat;
use gpu_kernels::interaction::{
    Nearness, add_with_jerk, add_with_snap, distance_squared, separation,
};
use gpu_kernels::numerics::Closest;
use rayon::prelude::*;

use crate::backend::Targets;
use crate::force::in_memory::{Forces, InMemory};
use crate::frame::Frame;
use crate::parallel::{self, ELEMENTWISE};

use super::kernel::{BLOCK, Distance, LANES, Loop, add, load, splat};
use super::{Cpu, put};
use crate::simd::Kernel;
use crate::simd::{Lane, Lanes, Registers, Root, Vector};
use crate::vectors::axes;

/// Position and velocity of [`LANES`] targets, and for `K` = 3 their accelerations.
pub(super) type Group<R, const K: usize> = [[[R; LANES]; 3]; K];

/// Position and velocity of a source, and for `K` = 3 its acceleration; and its weight.
pub(super) type Source<R, const K: usize> = ([[R; 3]; K], R);

/// Sums of a group of targets.
#[derive(Clone, Copy)]
pub(super) struct Sums<const K: usize> {
    /// Accelerations and jerks, and for `K` = 3 snaps.
    pub(super) vectors: [[[f64; LANES]; 3]; K],
    /// The largest `(3 (r·v) / d²)²`.
    pub(super) approach: [f64; LANES],
}

impl<const K: usize> Sums<K> {
    pub(super) const NONE: Self = Self {
        vectors: [[[0.0; LANES]; 3]; K],
        approach: [0.0; LANES],
    };

    /// Force on the target in a lane.
    pub(super) fn force(&self, lane: usize, frame: &Frame, coupling: f64) -> Forces {
        let mut forces = Forces {
            approach: self.approach[lane].sqrt() / (3.0 * frame.time),
            ..Forces::default()
        };
        let mut unit = 1.0;
        for (derivative, vector) in forces.derivatives.iter_mut().zip(&self.vectors) {
            let sum = axes(|axis| coupling * vector[axis][lane]);
            *derivative = frame.acceleration_from_local(sum).map(|a| a / unit);
            unit *= frame.time;
        }
        forces
    }

    fn add(&mut self, more: &Self) {
        let sums = self.vectors.as_flattened_mut().as_flattened_mut();
        let terms = more.vectors.as_flattened().as_flattened();
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += term;
        }
        for (largest, of_part) in self.approach.iter_mut().zip(more.approach) {
            *largest = largest.max(of_part);
        }
    }
}

/// Sources whose sums on a group are a task of their own: a few active bodies would keep a few threads
/// busy otherwise. Sums of slices are added in order, so that threads leave no trace in the result.
const SLICE: usize = 2 * BLOCK;

/// Groups whose sums by slices are kept at a time.
const GROUPS_AT_A_TIME: usize = 64;

/// Interactions that a thread computes sooner than others, which wait for work, take some of them.
pub(super) const ALONE: usize = 1 << 14;

/// Groups of a task.
const GROUPS_OF_A_TASK: usize = 2;

/// Adds the sums over all sources to `sums`, one for each of `targets`, of whose lanes the first
/// `count` are bodies.
pub(super) struct Pull<'a, R, const K: usize> {
    pub(super) targets: &'a [Group<R, K>],
    pub(super) count: usize,
    pub(super) sources: &'a [Source<R, K>],
    pub(super) distance: Distance<R>,
    pub(super) sums: &'a mut [Sums<K>],
}

impl<R: Lane, const K: usize> Kernel for Pull<'_, R, K> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        self.distance.run::<R::In<S>>(self);
    }
}

impl<R: Lane, const K: usize> Loop<R> for Pull<'_, R, K> {
    #[inline(always)]
    fn run<V: Vector<Lane = R>, S: Root, C: Closest>(self) {
        let softening_squared = V::splat(self.distance.softening_squared);
        for block in self.sources.chunks(BLOCK) {
            for first in (0..self.count).step_by(V::LANES) {
                let (group, lane) = (first / LANES, first % LANES);
                pull_of_block::<V, S, C, K>(
                    &self.targets[group],
                    lane,
                    block,
                    softening_squared,
                    &mut self.sums[group],
                );
            }
        }
    }
}

/// Contribution of a block of sources to the targets of a register, from `lane` of their group on.
#[inline(always)]
fn pull_of_block<V: Vector, S: Root, C: Closest, const K: usize>(
    targets: &Group<V::Lane, K>,
    lane: usize,
    block: &[Source<V::Lane, K>],
    softening_squared: V,
    sums: &mut Sums<K>,
) {
    let zero = V::splat(V::Lane::default());
    let mut at = [[zero; 3]; K];
    for k in 0..K {
        at[k] = load(&targets[k], lane);
    }
    let (mut vectors, mut approach) = ([[zero; 3]; 3], zero);
    for (source, weight) in block {
        let mut relative = [[zero; 3]; 3];
        for k in 0..K {
            let [x, y, z] = source[k];
            relative[k] = separation::<Lanes<V, S, C>>(at[k], splat(x, y, z));
        }
        let [r, v, _] = relative;
        let square = distance_squared::<Lanes<V, S, C>>(r, softening_squared);
        let weight = V::splat(*weight);
        let Nearness { rate, .. } = if K == 3 {
            add_with_snap::<Lanes<V, S, C>>(relative, square, weight, &mut vectors)
        } else {
            let [a, j, _] = &mut vectors;
            add_with_jerk::<Lanes<V, S, C>>([r, v], square, weight, a, j)
        };
        approach = (rate * rate).larger(approach);
    }
    for k in 0..K {
        add(vectors[k], &mut sums.vectors[k], lane);
    }
    keep_largest(approach, &mut sums.approach, lane);
}

/// Keeps the larger of each lane and what was there, from `lane` on.
#[inline(always)]
pub(super) fn keep_largest<V: Vector>(vector: V, largest: &mut [f64; LANES], lane: usize) {
    let mut lanes = [V::Lane::default(); LANES];
    vector.store(&mut lanes);
    let largest = &mut largest[lane..lane + V::LANES];
    for k in 0..V::LANES {
        largest[k] = largest[k].max(lanes[k].to_f64());
    }
}

/// Forces on the targets with jerks, `K` = 2, or with snaps too, `K` = 3.
pub(super) fn forces<R: Lane, const K: usize>(
    cpu: &Cpu<R>,
    frame: &Frame,
    targets: Targets<'_>,
) -> Vec<Forces> {
    let bodies = &cpu.state.bodies;
    let indices = targets.indices(bodies.len());
    let to_local = frame.time * frame.time / frame.length;
    let local = |i: usize| {
        let (x, v) = cpu.state.phase(i);
        let vectors = [
            frame.position_to_local(x),
            frame.velocity_to_local(v),
            cpu.state.accelerations[i].map(|a| a * to_local),
        ];
        let mut local = [[R::default(); 3]; K];
        for (local, vector) in local.iter_mut().zip(vectors) {
            *local = vector.map(R::from_f64);
        }
        local
    };
    let source = |i: usize| {
        let weight = cpu.physics.weight(frame.mass_to_local(bodies.mass[i]));
        (local(i), R::from_f64(weight))
    };
    let sources: Vec<Source<R, K>> = match cpu.sources() {
        None => parallel::each(bodies.len(), ELEMENTWISE, source),
        Some(massive) => massive.iter().map(|&i| source(i)).collect(),
    };
    // Lanes past the last target compute on zeros and are never read.
    let mut targets = vec![[[[R::default(); LANES]; 3]; K]; indices.len().div_ceil(LANES)];
    for (k, &i) in indices.iter().enumerate() {
        let target = match cpu.sources() {
            None => sources[i].0,
            Some(_) => local(i),
        };
        for (group, vector) in targets[k / LANES].iter_mut().zip(target) {
            put(group, k % LANES, vector);
        }
    }
    let softening = frame.length_to_local(cpu.physics.softening);
    let distance = Distance {
        root: cpu.choices.root,
        softening_squared: R::from_f64(softening * softening),
    };
    let slices = sources.len().div_ceil(SLICE);
    let alone = indices.len() * sources.len() <= ALONE;
    let mut sums = vec![Sums::<K>::NONE; targets.len()];
    let mut of_slices = vec![Sums::<K>::NONE; slices * targets.len().min(GROUPS_AT_A_TIME)];
    let batches = targets.chunks(GROUPS_AT_A_TIME);
    for ((batch, targets), sums) in batches.enumerate().zip(sums.chunks_mut(GROUPS_AT_A_TIME)) {
        let of_slices = &mut of_slices[..slices * targets.len()];
        of_slices.fill(Sums::NONE);
        let pull = |task: usize, sums: &mut [_], targets: &[_], slice: &[_]| {
            let first = (batch * GROUPS_AT_A_TIME + task * GROUPS_OF_A_TASK) * LANES;
            cpu.choices.instructions.run(Pull {
                targets,
                count: (indices.len() - first).min(targets.len() * LANES),
                sources: slice,
                distance,
                sums,
            });
        };
        let each = of_slices
            .chunks_mut(targets.len())
            .zip(sources.chunks(SLICE));
        let tasks = each.flat_map(|(sums, slice)| {
            let tasks = sums.chunks_mut(GROUPS_OF_A_TASK);
            let tasks = tasks.zip(targets.chunks(GROUPS_OF_A_TASK)).enumerate();
            tasks.map(move |task| (task, slice))
        });
        let work = |((task, (sums, targets)), slice): ((_, (&mut [_], &[_])), &[_])| {
            pull(task, sums, targets, slice);
        };
        match alone {
            true => tasks.for_each(work),
            false => {
                let tasks = tasks.collect::<Vec<_>>().into_par_iter();
                tasks.with_max_len(1).for_each(work);
            }
        }
        for slice in of_slices.chunks(targets.len()) {
            sums.iter_mut()
                .zip(slice)
                .for_each(|(sums, of_slice)| sums.add(of_slice));
        }
    }
    let coupling = frame.coupling_to_local(&cpu.physics);
    let of_target = |k: usize| sums[k / LANES].force(k % LANES, frame, coupling);
    (0..indices.len()).map(of_target).collect()
}
