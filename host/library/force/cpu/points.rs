//! The field of bodies at points, and their potential at each other.

use super::derivatives::{Pull as PullWithJerk, Sums};
use super::kernel::{Distance, LANES, Potential, Pull};
use super::test_particles::Kinds;
use super::{Choices, Packed, in_tasks};
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::ranks::Team;
use crate::vectors::axes;

/// Bodies with mass and points, in the units of a frame in which all are in range.
fn packed_at(
    bodies: &Bodies,
    physics: &Physics,
    points: &[[f64; 3]],
) -> (Frame, Packed<f64>, Distance<f64>) {
    let massive = Kinds::of(bodies, physics).map(|kinds| kinds.massive_of(bodies));
    let bodies = massive.as_ref().unwrap_or(bodies);
    let mut all = bodies.clone();
    all.extend(Bodies::at_rest(points, &vec![0.0; points.len()]).iter());
    let frame = super::frame::<f64>(&all, physics);
    drop(all);
    let mut packed = Packed::<f64>::new();
    packed.fill(bodies, physics, &frame);
    packed.targets = vec![[[0.0; LANES]; 3]; points.len().div_ceil(LANES)];
    for (i, &point) in points.iter().enumerate() {
        let target = &mut packed.targets[i / LANES];
        super::put(target, i % LANES, frame.position_to_local(point));
    }
    let distance = Distance {
        root: Choices::default().root,
        softening_squared: packed.softening_squared,
    };
    (frame, packed, distance)
}

/// Tidal tensors `∂a_i/∂x_j` of the field of bodies at points, in double precision: `tensor[i][j]`,
/// symmetric. A body at a point adds `−G m/ε³` to the diagonal; without softening, nothing.
pub fn tides_at(bodies: &Bodies, physics: &Physics, points: &[[f64; 3]]) -> Vec<[[f64; 3]; 3]> {
    let instructions = Choices::default().instructions;
    let (frame, packed, distance) = packed_at(bodies, physics, points);
    let at_rest = |&[x, y, z, weight]: &[f64; 4]| ([[x, y, z], [0.0; 3]], weight);
    let sources: Vec<_> = packed.sources.iter().map(at_rest).collect();
    // A point that moves along an axis sees the tensor's column as jerk.
    let mut columns = vec![[Sums::<2>::NONE; 3]; packed.targets.len()];
    in_tasks(&mut columns, &packed.targets, |_, columns, targets| {
        for (columns, target) in columns.iter_mut().zip(targets) {
            for (axis, sums) in columns.iter_mut().enumerate() {
                let mut velocity = [[0.0; LANES]; 3];
                velocity[axis] = [1.0; LANES];
                instructions.run(PullWithJerk {
                    targets: &[[*target, velocity]],
                    count: LANES,
                    sources: &sources,
                    distance,
                    sums: std::slice::from_mut(sums),
                });
            }
        }
    });
    let coupling = frame.coupling_to_local(physics);
    let tensor = |k: usize| {
        let columns = &columns[k / LANES];
        axes(|i| {
            axes(|j| {
                let [_, jerk] = columns[j].vectors;
                let [a, ..] =
                    frame.acceleration_from_local([coupling * jerk[i][k % LANES], 0.0, 0.0]);
                a / frame.length
            })
        })
    };
    (0..points.len()).map(tensor).collect()
}

/// Accelerations and potentials that bodies cause at points, in double precision. A body at a point
/// adds nothing to its acceleration, and `−G m/ε` to its potential; without softening, nothing. The
/// law is gravity, or that of unit masses.
pub fn field_at(
    bodies: &Bodies,
    physics: &Physics,
    points: &[[f64; 3]],
) -> (Vec<[f64; 3]>, Vec<f64>) {
    let instructions = Choices::default().instructions;
    let (frame, packed, distance) = packed_at(bodies, physics, points);
    let mut pulls = vec![[[0.0; LANES]; 3]; packed.targets.len()];
    in_tasks(&mut pulls, &packed.targets, |_, sums, targets| {
        instructions.run(Pull {
            targets,
            sources: &packed.sources,
            distance,
            sums,
        });
    });
    let coupling = frame.coupling_to_local(physics);
    let accelerations = super::lanes_of(&pulls)
        .map(|pull| frame.acceleration_from_local(pull.map(|sum| coupling * sum)))
        .take(points.len())
        .collect();
    (
        accelerations,
        depths(&packed, points.len(), physics, &frame),
    )
}

/// Potentials of bodies at so many points that both were packed for.
fn depths(packed: &Packed<f64>, points: usize, physics: &Physics, frame: &Frame) -> Vec<f64> {
    let mut sums = vec![[0.0; LANES]; packed.targets.len()];
    in_tasks(&mut sums, &packed.targets, |_, sums, targets| {
        Choices::default().instructions.run(Potential {
            targets,
            first: packed.sources.len(),
            sources: &packed.sources,
            softening_squared: packed.softening_squared,
            sums,
        });
    });
    let sums = sums.as_flattened().iter().take(points);
    sums.map(|sum| potential(*sum, physics, frame)).collect()
}

/// Potential `−G Σ_{j≠i} m_j / d_ij` at each of the bodies, in double precision: of all others, not of
/// itself, whose softened m/ε would drown the rest.
pub fn potentials(bodies: &Bodies, physics: &Physics) -> Vec<f64> {
    let Some(kinds) = Kinds::of(bodies, physics) else {
        return of_massive(bodies, physics);
    };
    let massive = kinds.massive_of(bodies);
    let position = |&i: &usize| [bodies.x[i], bodies.y[i], bodies.z[i]];
    let points: Vec<_> = kinds.massless.iter().map(position).collect();
    let (frame, packed, _) = packed_at(&massive, physics, &points);
    let at_points = depths(&packed, points.len(), physics, &frame);
    let mut all = vec![0.0; bodies.len()];
    for (kind, depths) in [
        (&kinds.massive, of_massive(&massive, physics)),
        (&kinds.massless, at_points),
    ] {
        for (&i, depth) in kind.iter().zip(depths) {
            all[i] = depth;
        }
    }
    all
}

/// As [`potentials`], where all bodies have mass.
fn of_massive(bodies: &Bodies, physics: &Physics) -> Vec<f64> {
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
    use crate::physics::ForceLaw;

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= 1e-13 * expected.abs().max(1.0)
    }

    /// Against the reference, for numbers of bodies and points that fill groups and that do not.
    #[test]
    fn fields_and_potentials_are_those_of_the_reference() {
        for (n, softening) in [(1, 0.0), (16, 0.1), (37, 0.0), (300, 0.02)] {
            let physics = Physics {
                law: ForceLaw::Gravity,
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

    /// Against differences of the field, and the trace, which is −4πG times a density: none but that of
    /// softened bodies.
    #[test]
    fn tides_are_derivatives_of_the_field() {
        for (n, softening) in [(1, 0.3), (40, 0.2), (300, 0.4)] {
            let physics = Physics {
                law: ForceLaw::Gravity,
                g: 2.5,
                softening,
            };
            let mut bodies = cloud(n, 3);
            bodies.push(Bodies::at_rest(&[[9.0, 0.0, 0.0]], &[0.0]).body(0));
            let points: Vec<[f64; 3]> = (0..21).map(|i| [0.1 * i as f64, -0.4, 0.5]).collect();
            let tides = tides_at(&bodies, &physics, &points);
            assert_eq!(tides.len(), points.len());
            let h = 1e-5;
            for (tensor, point) in tides.iter().zip(&points) {
                for j in 0..3 {
                    let moved = [h, -h].map(|h| {
                        let mut moved = *point;
                        moved[j] += h;
                        moved
                    });
                    let (field, _) = field_at(&bodies, &physics, &moved);
                    for i in 0..3 {
                        let slope = (field[0][i] - field[1][i]) / (2.0 * h);
                        let error = (tensor[i][j] - slope).abs();
                        assert!(error <= 1e-7, "{n}: {error:e} of {slope}");
                        let asymmetry = (tensor[i][j] - tensor[j][i]).abs();
                        assert!(asymmetry <= 1e-13 * (1.0 + slope.abs()));
                    }
                }
                let trace: f64 = (0..3).map(|i| tensor[i][i]).sum();
                let density: f64 = (0..n)
                    .map(|k| {
                        let d2: f64 = [bodies.x[k], bodies.y[k], bodies.z[k]]
                            .iter()
                            .zip(point)
                            .map(|(x, p)| (x - p) * (x - p))
                            .sum();
                        let e2 = softening * softening;
                        -3.0 * physics.g * bodies.mass[k] * e2 / (d2 + e2).powf(2.5)
                    })
                    .sum();
                assert!(near(trace, density), "{trace} {density}");
            }
        }
    }

    /// Potentials of bodies with and without mass are as if all were computed from all; some bodies are at one
    /// place.
    #[test]
    fn test_particles_have_the_potential_of_those_with_mass() {
        for (n, softening) in [(2, 0.1), (40, 0.0), (300, 0.02)] {
            let physics = Physics {
                law: ForceLaw::Gravity,
                g: 2.5,
                softening,
            };
            let mut bodies = cloud(n, 5);
            for i in (0..n).filter(|i| i % 3 != 1) {
                bodies.mass[i] = 0.0;
            }
            (bodies.x[0], bodies.y[0], bodies.z[0]) = (bodies.x[1], bodies.y[1], bodies.z[1]);
            let expected = of_massive(&bodies, &physics);
            for (found, expected) in potentials(&bodies, &physics).iter().zip(expected) {
                assert!(near(*found, expected), "{n}: {found} {expected}");
            }
            bodies.mass.fill(0.0);
            assert_eq!(potentials(&bodies, &physics), vec![0.0; n]);
        }
    }

    #[test]
    fn a_body_at_a_point_does_not_pull_there() {
        let bodies = Bodies::at_rest(&[[1.0, 2.0, 3.0]], &[5.0]);
        for (softening, depth) in [(0.5, -10.0), (0.0, 0.0)] {
            let physics = Physics {
                law: ForceLaw::Gravity,
                g: 1.0,
                softening,
            };
            let field = field_at(&bodies, &physics, &[[1.0, 2.0, 3.0]]);
            assert_eq!(field, (vec![[0.0; 3]], vec![depth]));
        }
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        assert_eq!(field_at(&bodies, &physics, &[]), (vec![], vec![]));
    }
}
