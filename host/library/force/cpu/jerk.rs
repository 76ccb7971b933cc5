//! Accelerations and jerks on the CPU: the loop of [`kernel`](super::kernel) with velocities, with
//! correctly rounded roots, and written for one lane and left to the compiler to vectorise.

use gpu_kernels::interaction::interact_with_jerk;
use gpu_kernels::numerics::{Closest, Exact, MultiplyAdd, Numerics, Softened, Unsoftened};
use rayon::prelude::*;

use crate::backend::Targets;

use super::instruction_set::Kernel;
use super::kernel::{BLOCK, LANES};
use super::vector::{Lane, Registers};
use super::{Cpu, INTERACTIONS_ALONE, Packed, frame, groups_per_task};

/// Positions and velocities of [`LANES`] targets, or their accelerations and jerks.
type Group<R> = [[[R; LANES]; 3]; 2];

/// Position, velocity and weight.
type Source<R> = ([[R; 3]; 2], R);

/// Adds the sums of [`interact_with_jerk`] over all sources to `sums`.
struct Pull<'a, R> {
    targets: &'a [Group<R>],
    sources: &'a [Source<R>],
    softening_squared: R,
    sums: &'a mut [Group<f64>],
}

impl<R: Lane> Kernel for Pull<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        if self.softening_squared < R::SMALLEST_SQUARE {
            self.sum::<S::MultiplyAdd, Unsoftened>();
        } else {
            self.sum::<S::MultiplyAdd, Softened>();
        }
    }
}

impl<R: Lane> Pull<'_, R> {
    #[inline(always)]
    fn sum<M: MultiplyAdd, C: Closest>(self) {
        for block in self.sources.chunks(BLOCK) {
            for (targets, sums) in self.targets.iter().zip(self.sums.iter_mut()) {
                let parts = of_block::<R, M, C>(targets, block, self.softening_squared);
                let parts = parts.as_flattened().as_flattened();
                for (sum, part) in sums
                    .as_flattened_mut()
                    .as_flattened_mut()
                    .iter_mut()
                    .zip(parts)
                {
                    *sum += part.to_f64();
                }
            }
        }
    }
}

#[inline(always)]
fn of_block<R: Lane, M: MultiplyAdd, C: Closest>(
    targets: &Group<R>,
    block: &[Source<R>],
    softening_squared: R,
) -> Group<R> {
    let [x, v] = *targets;
    let [mut a, mut j] = [[[R::from_f64(0.0); LANES]; 3]; 2];
    for &(source, weight) in block {
        for lane in 0..LANES {
            let of = |group: &[[R; LANES]; 3]| [group[0][lane], group[1][lane], group[2][lane]];
            let (mut sum, mut jerk) = (of(&a), of(&j));
            interact_with_jerk::<Numerics<R, M, Exact, C>>(
                [of(&x), of(&v)],
                source,
                weight,
                softening_squared,
                &mut sum,
                &mut jerk,
            );
            for axis in 0..3 {
                (a[axis][lane], j[axis][lane]) = (sum[axis], jerk[axis]);
            }
        }
    }
    [a, j]
}

/// Accelerations and jerks of the targets.
pub(super) fn accelerations_and_jerks<R: Lane>(
    cpu: &Cpu<R>,
    targets: Targets<'_>,
) -> [Vec<[f64; 3]>; 2] {
    let bodies = &cpu.state.bodies;
    let indices = targets.indices(bodies.len());
    let frame = frame::<R>(bodies, &cpu.physics);
    let mut packed = Packed::<R>::new();
    packed.fill(bodies, &cpu.physics, &frame);
    let sources: Vec<Source<R>> = packed
        .sources
        .iter()
        .enumerate()
        .map(|(i, &[x, y, z, weight])| {
            let velocity = frame.velocity_to_local([bodies.vx[i], bodies.vy[i], bodies.vz[i]]);
            ([[x, y, z], velocity.map(R::from_f64)], weight)
        })
        .collect();
    // Lanes past the last target compute on zeros and are never read.
    let zero = [[[R::from_f64(0.0); LANES]; 3]; 2];
    let mut targets = vec![zero; indices.len().div_ceil(LANES)];
    for (k, &i) in indices.iter().enumerate() {
        let (phase, _) = sources[i];
        for (which, vector) in phase.into_iter().enumerate() {
            for (axis, value) in vector.into_iter().enumerate() {
                targets[k / LANES][which][axis][k % LANES] = value;
            }
        }
    }
    let mut sums = vec![[[[0.0; LANES]; 3]; 2]; targets.len()];
    let pull = |(sums, targets): (&mut [_], &[_])| {
        cpu.choices.instructions.run(Pull {
            targets,
            sources: &sources,
            softening_squared: packed.softening_squared,
            sums,
        });
    };
    if indices.len() * sources.len() <= INTERACTIONS_ALONE {
        pull((&mut sums, &targets));
    } else {
        let task = groups_per_task(targets.len());
        let tasks = sums.par_chunks_mut(task).zip(targets.par_chunks(task));
        tasks.for_each(pull);
    }
    let coupling = frame.coupling_to_local(&cpu.physics);
    let vector = |k: usize, which: usize| {
        let sum = [0, 1, 2].map(|axis| coupling * sums[k / LANES][which][axis][k % LANES]);
        frame.acceleration_from_local(sum)
    };
    let all = 0..indices.len();
    let accelerations = all.clone().map(|k| vector(k, 0));
    let jerks = all.map(|k| vector(k, 1).map(|jerk| jerk / frame.time));
    [accelerations.collect(), jerks.collect()]
}
