//! The field of bodies at points, and their potential at each other.

use rayon::prelude::*;

use super::kernel::{Distance, LANES, Potential, Pull};
use super::{Choices, Packed, groups_per_task};
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::ranks::Team;

/// Accelerations and potentials that bodies cause at points, in double precision. A body at a point
/// adds nothing to its acceleration, and `−G m/ε` to its potential; without softening, nothing. The
/// law is gravity, or that of unit masses.
pub fn field_at(
    bodies: &Bodies,
    physics: &Physics,
    points: &[[f64; 3]],
) -> (Vec<[f64; 3]>, Vec<f64>) {
    let Choices {
        root, instructions, ..
    } = Choices::default();
    // A frame in which bodies and points are in range.
    let mut all = bodies.clone();
    Bodies::at_rest(points, &vec![0.0; points.len()])
        .iter()
        .for_each(|point| all.push(point));
    let frame = super::frame::<f64>(&all, physics);
    drop(all);
    let mut packed = Packed::<f64>::new();
    packed.fill(bodies, physics, &frame);
    let softening_squared = packed.softening_squared;
    let distance = Distance {
        root,
        softening_squared,
    };
    packed.targets = vec![[[0.0; LANES]; 3]; points.len().div_ceil(LANES)];
    for (i, &point) in points.iter().enumerate() {
        let target = &mut packed.targets[i / LANES];
        super::put(target, i % LANES, frame.position_to_local(point));
    }
    let mut pulls = vec![[[0.0; LANES]; 3]; packed.targets.len()];
    let mut depths = vec![[0.0; LANES]; packed.targets.len()];
    let task = groups_per_task(packed.targets.len());
    let tasks = pulls
        .par_chunks_mut(task)
        .zip(depths.par_chunks_mut(task))
        .zip(packed.targets.par_chunks(task));
    tasks.for_each(|((pulls, depths), targets)| {
        let sources = &packed.sources;
        instructions.run(Pull {
            targets,
            sources,
            distance,
            sums: pulls,
        });
        instructions.run(Potential {
            targets,
            first: sources.len(),
            sources,
            softening_squared,
            sums: depths,
        });
    });
    let coupling = frame.coupling_to_local(physics);
    let accelerations = super::lanes_of(&pulls)
        .map(|pull| frame.acceleration_from_local(pull.map(|sum| coupling * sum)));
    let depth = |sum: &f64| potential(*sum, physics, &frame);
    (
        accelerations.take(points.len()).collect(),
        depths
            .as_flattened()
            .iter()
            .take(points.len())
            .map(depth)
            .collect(),
    )
}

/// Potential `−G Σ_{j≠i} m_j / d_ij` at each of the bodies, in double precision: of all others, not of
/// itself, whose softened m/ε would drown the rest.
pub fn potentials(bodies: &Bodies, physics: &Physics) -> Vec<f64> {
    let frame = super::frame::<f64>(bodies, physics);
    let of_earlier = |bodies: &Bodies| -> Vec<f64> {
        let mut packed = Packed::<f64>::new();
        packed.fill(bodies, physics, &frame);
        let sums = packed.potentials(Choices::default().instructions, &Team::alone());
        sums.as_flattened()[..bodies.len()].to_vec()
    };
    // Each body meets those before it; and, in a row turned round, those after it.
    let turned: Bodies = (0..bodies.len()).rev().map(|i| bodies.body(i)).collect();
    let (before, after) = (of_earlier(bodies), of_earlier(&turned));
    before
        .iter()
        .zip(after.iter().rev())
        .map(|(before, after)| potential(before + after, physics, &frame))
        .collect()
}

/// The potential of a sum of weights over distances in the units of a frame.
fn potential(sum: f64, physics: &Physics, frame: &Frame) -> f64 {
    let weight_unit = physics.weight(frame.mass);
    -physics.coupling() * (sum * weight_unit / frame.length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::cpu::samples::cloud;
    use crate::force::reference;
    use crate::physics::Law;

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= 1e-13 * expected.abs().max(1.0)
    }

    /// Against the reference, for numbers of bodies and points that fill groups and that do not.
    #[test]
    fn fields_and_potentials_are_those_of_the_reference() {
        for (n, softening) in [(1, 0.0), (16, 0.1), (37, 0.0), (300, 0.02)] {
            let physics = Physics {
                law: Law::Gravity,
                g: 2.5,
                softening,
            };
            let bodies = cloud(n, 7);
            let potentials = potentials(&bodies, &physics);
            assert_eq!(potentials.len(), n);
            let pairs: Vec<f64> = (0..n).map(|i| bodies.mass[i] * potentials[i]).collect();
            let total = 0.5 * pairs.iter().sum::<f64>();
            assert!(near(total, reference::potential_energy(&bodies, &physics)));

            let points: Vec<[f64; 3]> = (0..n + 5).map(|i| [0.3 * i as f64, -1.0, 0.5]).collect();
            let (accelerations, depths) = field_at(&bodies, &physics, &points);
            assert_eq!((accelerations.len(), depths.len()), (n + 5, n + 5));
            for (i, &point) in points.iter().enumerate() {
                // A body without mass at the point, among the others.
                let mut with = bodies.clone();
                with.push(Bodies::at_rest(&[point], &[0.0]).body(0));
                let expected = reference::accelerations_of(&with, &physics, &[n])[0].acceleration;
                for axis in 0..3 {
                    assert!(
                        near(accelerations[i][axis], expected[axis]),
                        "{n} {i} {axis}"
                    );
                }
                assert!(near(depths[i], super::potentials(&with, &physics)[n]));
            }
        }
    }

    #[test]
    fn a_body_at_a_point_does_not_pull_there() {
        let bodies = Bodies::at_rest(&[[1.0, 2.0, 3.0]], &[5.0]);
        for (softening, depth) in [(0.5, -10.0), (0.0, 0.0)] {
            let physics = Physics {
                law: Law::Gravity,
                g: 1.0,
                softening,
            };
            let field = field_at(&bodies, &physics, &[[1.0, 2.0, 3.0]]);
            assert_eq!(field, (vec![[0.0; 3]], vec![depth]));
        }
        let physics = Physics {
            law: Law::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        assert_eq!(field_at(&bodies, &physics, &[]), (vec![], vec![]));
    }
}
