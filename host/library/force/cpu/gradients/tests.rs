//! Against differences of the reference, and against what holds for any bodies.

use gpu_kernels::interaction::gradients::Pullback;
use rayon::ThreadPoolBuilder;

use super::*;
use crate::force::cpu::samples::{Random, cloud};
use crate::force::reference;
use crate::integrator::Integrator;
use crate::physics::ForceLaw;
use crate::simd::InstructionSet;

const ALL: Asked = Asked {
    masses: true,
    softening: true,
};

fn physics(softening: f64) -> Physics {
    Physics {
        law: ForceLaw::Gravity,
        g: 2.5,
        softening,
    }
}

/// Bodies of which every seventh has no mass, and a vector and a number for each.
fn sample(n: usize) -> (Bodies, Vec<[f64; 3]>, Vec<f64>) {
    let mut bodies = cloud(n, 4);
    bodies
        .mass
        .iter_mut()
        .skip(3)
        .step_by(7)
        .for_each(|m| *m = 0.0);
    let mut random = Random(9);
    let mut number = || 2.0 * random.unit() - 1.0;
    let vectors = (0..n).map(|_| [number(), number(), number()]).collect();
    (bodies, vectors, (0..n).map(|_| number()).collect())
}

fn positions(bodies: &Bodies) -> Vec<[f64; 3]> {
    (0..bodies.len()).map(|i| bodies.body(i).position).collect()
}

fn dot(one: &[[f64; 3]], other: &[[f64; 3]]) -> f64 {
    let pairs = one.as_flattened().iter().zip(other.as_flattened());
    pairs.map(|(a, b)| a * b).sum()
}

fn size(vectors: &[[f64; 3]]) -> f64 {
    dot(vectors, vectors).sqrt()
}

/// Derivative of `f` at 0, by differences of fourth order.
fn slope(f: impl Fn(f64) -> f64, h: f64) -> f64 {
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

/// L = Σ λ·a of the reference, with a body's coordinate or mass, or the softening, moved.
fn moved(
    bodies: &Bodies,
    softening: f64,
    measure: impl Fn(&Bodies, &Physics) -> f64,
    what: Option<(usize, usize)>,
) -> impl Fn(f64) -> f64 {
    let bodies = bodies.clone();
    move |by| {
        let mut bodies = bodies.clone();
        let mut softening = softening;
        match what {
            Some((i, 0)) => bodies.x[i] += by,
            Some((i, 1)) => bodies.y[i] += by,
            Some((i, 2)) => bodies.z[i] += by,
            Some((i, _)) => bodies.mass[i] += by,
            None => softening += by,
        }
        measure(&bodies, &physics(softening))
    }
}

#[test]
fn pulled_is_the_derivative_of_the_reference() {
    for (n, softening) in [(1, 0.3), (2, 0.0), (5, 0.0), (23, 0.5), (40, 0.05)] {
        let (bodies, lambda, charges) = sample(n);
        let of_forces = |bodies: &Bodies, physics: &Physics| {
            dot(&reference::accelerations(bodies, physics), &lambda)
        };
        // −Σ λ φ as a part of the energy of pairs of a charge and a mass.
        let of_potentials = |bodies: &Bodies, physics: &Physics| {
            let energy = |mass: Vec<f64>| {
                let bodies = Bodies {
                    mass,
                    ..bodies.clone()
                };
                reference::potential_energy(&bodies, physics)
            };
            let sum = bodies.mass.iter().zip(&charges).map(|(m, q)| m + q);
            energy(sum.collect()) - energy(bodies.mass.clone()) - energy(charges.clone())
        };
        let of = physics(softening);
        let pulled = pull::<f64>(&bodies, &of, &lambda, ALL).unwrap();
        let potential = potential_pull::<f64>(&bodies, &of, &charges).unwrap();
        let exact = reference::accelerations(&bodies, &of);
        let error = pulled
            .accelerations
            .as_flattened()
            .iter()
            .zip(exact.as_flattened());
        assert!(
            error.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-11 * (1.0 + size(&exact))
        );
        let largest = |vectors: &[[f64; 3]]| {
            1.0 + vectors
                .as_flattened()
                .iter()
                .fold(0.0, |a, b| b.abs().max(a))
        };
        let (of_pulled, of_potential) = (largest(&pulled.positions), largest(&potential.positions));
        for i in 0..n {
            for k in 0..4 {
                let h = 1e-4;
                let (found, potential) = match k {
                    3 => (pulled.masses[i], potential.masses[i]),
                    _ => (pulled.positions[i][k], potential.positions[i][k]),
                };
                let expected = slope(moved(&bodies, softening, of_forces, Some((i, k))), h);
                assert!(
                    (found - expected).abs() < 1e-8 * of_pulled,
                    "{n} {i} {k}: {found} {expected}"
                );
                let expected = slope(moved(&bodies, softening, of_potentials, Some((i, k))), h);
                assert!(
                    (potential - expected).abs() < 1e-8 * of_potential,
                    "{n} {i} {k}: {potential} {expected}"
                );
            }
        }
        if softening > 0.0 {
            let expected = slope(moved(&bodies, softening, of_forces, None), 1e-4);
            assert!(
                (pulled.softening - expected).abs() < 1e-8 * of_pulled,
                "{n}: {pulled:?} {expected}"
            );
            let expected = slope(moved(&bodies, softening, of_potentials, None), 1e-4);
            assert!((potential.softening - expected).abs() < 1e-8 * of_potential);
        }
    }
}

/// Identities that need no reference: Noether's, and Euler's for homogeneous functions.
#[test]
fn sums_of_derivatives_are_as_symmetries_say() {
    for n in [1, 2, 3, 16, 17, 100, 300, once::PAYS_FROM, 1500] {
        for softening in [0.0, 0.02] {
            let (bodies, lambda, charges) = sample(n);
            let pulled = pull::<f64>(&bodies, &physics(softening), &lambda, ALL).unwrap();
            let x = positions(&bodies);
            let measure = 1e-13 * (1.0 + size(&pulled.positions)) * (n as f64).sqrt();
            let near = |a: f64, b: f64, name: &str| {
                assert!(
                    (a - b).abs() <= measure,
                    "{name} of {n}, ε = {softening}: {a} {b}"
                );
            };
            let cross = |a: &[[f64; 3]], b: &[[f64; 3]], axis: usize| -> f64 {
                let (j, k) = ((axis + 1) % 3, (axis + 2) % 3);
                a.iter()
                    .zip(b)
                    .map(|(a, b)| a[j] * b[k] - a[k] * b[j])
                    .sum()
            };
            for axis in 0..3 {
                near(pulled.positions.iter().map(|g| g[axis]).sum(), 0.0, "shift");
                let (turned, torque) = (
                    cross(&x, &pulled.positions, axis),
                    cross(&pulled.accelerations, &lambda, axis),
                );
                near(turned, torque, "turn");
            }
            let value = dot(&lambda, &pulled.accelerations);
            let by_masses = bodies.mass.iter().zip(&pulled.masses).map(|(m, g)| m * g);
            near(by_masses.sum(), value, "masses");
            let scaled = dot(&x, &pulled.positions) + softening * pulled.softening;
            near(scaled, -2.0 * value, "scale");

            // The tangent is computed apart, once for each body of a pair.
            let rates: Vec<f64> = charges.iter().map(|q| 0.5 * q / n as f64).collect();
            let direction = Direction {
                positions: &lambda
                    .iter()
                    .map(|l| [l[2], l[0], l[1]])
                    .collect::<Vec<_>>(),
                masses: &rates,
                softening: 0.4,
            };
            let tangent = tangent::<f64>(&bodies, &physics(softening), direction).unwrap();
            let there = dot(&lambda, &tangent);
            let of_masses: f64 = rates.iter().zip(&pulled.masses).map(|(m, g)| m * g).sum();
            let back =
                dot(direction.positions, &pulled.positions) + of_masses + 0.4 * pulled.softening;
            near(there, back, "adjoint");

            let potentials = potentials::<f64>(&bodies, &physics(softening));
            let along = potential_tangent::<f64>(&bodies, &physics(softening), direction).unwrap();
            let pulled = potential_pull::<f64>(&bodies, &physics(softening), &charges).unwrap();
            let there: f64 = charges.iter().zip(&along).map(|(q, p)| q * p).sum();
            let of_masses: f64 = rates.iter().zip(&pulled.masses).map(|(m, g)| m * g).sum();
            let back =
                dot(direction.positions, &pulled.positions) + of_masses + 0.4 * pulled.softening;
            near(there, back, "adjoint of potentials");
            let energy: f64 = bodies
                .mass
                .iter()
                .zip(&potentials)
                .map(|(m, p)| 0.5 * m * p)
                .sum();
            near(
                energy,
                reference::potential_energy(&bodies, &physics(softening)),
                "energy",
            );
        }
    }
}

/// Along velocities it is the jerk; where all have mass, ∂L/∂x is mass times the jerk of velocities λ/m.
#[test]
fn jerks_are_derivatives_too() {
    for n in [2, 40, 1200] {
        let mut bodies = cloud(n, 6);
        let (_, lambda, _) = sample(n);
        for (i, lambda) in lambda.iter().enumerate() {
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] = lambda.map(|l| l / bodies.mass[i]);
        }
        let jerks = reference::jerks(&bodies, &physics(0.1));
        let velocities: Vec<_> = (0..n).map(|i| bodies.body(i).velocity).collect();
        let direction = Direction {
            positions: &velocities,
            masses: &[],
            softening: 0.0,
        };
        let tangent = tangent::<f64>(&bodies, &physics(0.1), direction).unwrap();
        let pulled = pull::<f64>(&bodies, &physics(0.1), &lambda, Asked::default()).unwrap();
        assert_eq!((pulled.masses.len(), pulled.softening), (0, 0.0));
        let scale = size(&jerks);
        for i in 0..n {
            for axis in 0..3 {
                let jerk = jerks[i][axis];
                assert!((tangent[i][axis] - jerk).abs() < 1e-13 * scale);
                let pulled = pulled.positions[i][axis] / bodies.mass[i];
                assert!(
                    (pulled - jerk).abs() < 1e-13 * scale,
                    "{n}: {pulled} {jerk}"
                );
            }
        }
    }
}

/// In units far from 1, cotangents among them, single precision keeps its digits.
#[test]
fn single_precision_is_right_in_any_units() {
    for n in [3, 50, 1100] {
        for (length, mass, scale) in [(1.0, 1.0, 1.0), (1e19, 1e30, 1e-25), (1e-9, 1e-20, 1e30)] {
            let (mut bodies, mut lambda, _) = sample(n);
            for x in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
                x.iter_mut().for_each(|x| *x = (*x + 5.0) * length);
            }
            bodies.mass.iter_mut().for_each(|m| *m *= mass);
            lambda
                .as_flattened_mut()
                .iter_mut()
                .for_each(|l| *l *= scale);
            let of = physics(0.1 * length);
            let exact = pull::<f64>(&bodies, &of, &lambda, ALL).unwrap();
            let single = pull::<f32>(&bodies, &of, &lambda, ALL).unwrap();
            let error = |a: &[[f64; 3]], b: &[[f64; 3]]| {
                let unit = b
                    .as_flattened()
                    .iter()
                    .fold(0.0, |a: f64, b| a.max(b.abs()));
                let pairs = a.as_flattened().iter().zip(b.as_flattened());
                pairs.map(|(a, b)| (a - b).abs() / unit).fold(0.0, f64::max)
            };
            let errors = [
                error(&single.accelerations, &exact.accelerations),
                error(&single.positions, &exact.positions),
                error(
                    &[[single.masses[0], 0.0, 0.0]],
                    &[[exact.masses[0], 0.0, 0.0]],
                ),
                error(
                    &[[single.softening, 0.0, 0.0]],
                    &[[exact.softening, 0.0, 0.0]],
                ),
            ];
            assert!(
                errors.iter().all(|&error| error < 2e-5),
                "{n} {length}: {errors:?}"
            );
            assert!(errors[1] > 0.0, "it is computed in single precision");
        }
    }
}

#[test]
fn neither_flags_nor_threads_change_bits() {
    for n in [30, 700, 1300] {
        let (bodies, lambda, _) = sample(n);
        let of = physics(0.05);
        let all = pull::<f64>(&bodies, &of, &lambda, ALL).unwrap();
        for (masses, softening) in [(false, false), (true, false), (false, true)] {
            let asked = Asked { masses, softening };
            let some = pull::<f64>(&bodies, &of, &lambda, asked).unwrap();
            assert_eq!(some.positions, all.positions);
            assert_eq!(some.accelerations, all.accelerations);
            assert!(!masses || some.masses == all.masses);
            assert!(!softening || some.softening == all.softening);
        }
        for threads in [1, 3] {
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let again = pool.install(|| pull::<f64>(&bodies, &of, &lambda, ALL).unwrap());
            assert_eq!(again, all, "{n} bodies, {threads} threads");
        }
    }
}

#[test]
fn every_instruction_set_agrees() {
    let (bodies, lambda, _) = sample(1100);
    let of = physics(0.05);
    let local = Local::new::<f64>(&bodies, &of);
    let table = Table::<f64, 7>::new(bodies.len(), |i| {
        let ([x, y, z], [lx, ly, lz]) = (local.position(i), lambda[i]);
        [x, y, z, local.mass(i), lx, ly, lz]
    });
    let way = local.way::<f64>(0.0);
    let expected = sums_of::<f64, Pullback<true, true>, _, _>(&table, way);
    for instructions in InstructionSet::available() {
        let way = Way {
            instructions,
            ..way
        };
        let apart = sums_of::<f64, Pullback<true, true>, _, _>(&table, way);
        let once = once::sums_of::<f64, Pullback<true, true>>(&table, way);
        for (i, expected) in expected.iter().enumerate() {
            for k in 0..7 {
                for lane in 0..LANES.min(bodies.len() - i * LANES) {
                    let [a, b, c] = [expected, &apart[i], &once[i]].map(|sums| sums[k][lane]);
                    let bound = 1e-10 * (1.0 + a.abs());
                    assert!(
                        (a - b).abs() < bound && (a - c).abs() < bound,
                        "{instructions}: {a} {b} {c}"
                    );
                }
            }
        }
    }
}

#[test]
fn bodies_at_one_place_need_softening() {
    let (mut bodies, lambda, charges) = sample(40);
    for x in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
        x[11] = x[29];
    }
    let softened = pull::<f64>(&bodies, &physics(0.1), &lambda, ALL).unwrap();
    let of_forces = |bodies: &Bodies, physics: &Physics| {
        dot(&reference::accelerations(bodies, physics), &lambda)
    };
    for k in 0..3 {
        let expected = slope(moved(&bodies, 0.1, of_forces, Some((11, k))), 1e-4);
        let error = (softened.positions[11][k] - expected).abs();
        assert!(error < 1e-6 * size(&softened.positions), "{error}");
    }
    let refused = Err(Coincident(11, 29));
    let direction = Direction {
        positions: &lambda,
        masses: &[],
        softening: 0.0,
    };
    let hard = physics(0.0);
    assert_eq!(
        pull::<f64>(&bodies, &hard, &lambda, ALL).map(|_| ()),
        refused
    );
    assert_eq!(
        pull::<f32>(&bodies, &hard, &lambda, ALL).map(|_| ()),
        refused
    );
    assert_eq!(
        tangent::<f64>(&bodies, &hard, direction).map(|_| ()),
        refused
    );
    assert_eq!(
        potential_pull::<f64>(&bodies, &hard, &charges).map(|_| ()),
        refused
    );
    assert_eq!(
        potential_tangent::<f64>(&bodies, &hard, direction).map(|_| ()),
        refused
    );
    // Apart in double precision alone.
    bodies.x[11] += 1e-12;
    assert!(pull::<f64>(&bodies, &hard, &lambda, ALL).is_ok());
    assert!(pull::<f32>(&bodies, &hard, &lambda, ALL).is_err());
}

#[test]
fn nothing_comes_of_no_bodies() {
    let none = Bodies::with_capacity(0);
    let pulled = pull::<f64>(&none, &physics(0.0), &[], ALL).unwrap();
    assert_eq!(
        pulled,
        Pulled {
            softening: pulled.softening,
            ..Pulled::default()
        }
    );
    assert_eq!(pulled.softening, 0.0);
}

/// L of the last state: a sum of positions and velocities with weights.
fn at_the_end(
    trajectory: Trajectory,
    bodies: &Bodies,
    of: &Physics,
    weights: [&[[f64; 3]]; 2],
) -> f64 {
    let mut bodies = bodies.clone();
    trajectory.advance::<f64>(&mut bodies, of);
    let velocities: Vec<_> = (0..bodies.len()).map(|i| bodies.body(i).velocity).collect();
    dot(&positions(&bodies), weights[0]) + dot(&velocities, weights[1])
}

#[test]
fn gradients_of_trajectories_are_differences_of_trajectories() {
    let (begun, weights, _) = sample(12);
    let turned: Vec<[f64; 3]> = weights.iter().map(|w| [w[1], -w[2], w[0]]).collect();
    for integrator in [
        Integrator::Leapfrog,
        Integrator::LeapfrogDkd,
        Integrator::Yoshida4,
        Integrator::Yoshida6,
    ] {
        for steps in [0, 1, 2, 7] {
            let (dt, softening) = (0.03, 0.2);
            let path = |dt| Trajectory::new(integrator, dt, steps).unwrap();
            let value = |bodies: &Bodies, dt: f64, softening: f64| {
                at_the_end(path(dt), bodies, &physics(softening), [&weights, &turned])
            };
            let mut bodies = begun.clone();
            path(dt).advance::<f64>(&mut bodies, &physics(softening));
            let found = path(dt)
                .pull::<f64>(
                    &mut bodies,
                    &physics(softening),
                    weights.clone(),
                    turned.clone(),
                    ALL,
                )
                .unwrap();
            for (there, back) in positions(&begun).iter().zip(positions(&bodies)) {
                assert!((0..3).all(|axis| (there[axis] - back[axis]).abs() < 1e-14));
            }
            let near = |found: f64, expected: f64| {
                let name = integrator.name();
                assert!(
                    (found - expected).abs() < 1e-7,
                    "{name}, {steps}: {found} {expected}"
                );
            };
            for i in [0, 3, 7] {
                let moved = |change: fn(&mut Bodies, usize, f64)| {
                    let value = &value;
                    let begun = &begun;
                    let f = move |by| {
                        let mut bodies = begun.clone();
                        change(&mut bodies, i, by);
                        value(&bodies, dt, softening)
                    };
                    slope(f, 1e-4)
                };
                near(
                    found.positions[i][1],
                    moved(|bodies, i, by| bodies.y[i] += by),
                );
                near(
                    found.velocities[i][2],
                    moved(|bodies, i, by| bodies.vz[i] += by),
                );
                near(found.masses[i], moved(|bodies, i, by| bodies.mass[i] += by));
            }
            near(
                found.dt,
                slope(|by| value(&begun, dt + by, softening), 1e-4),
            );
            near(
                found.softening,
                slope(|by| value(&begun, dt, softening + by), 1e-4),
            );
            assert!(
                found.growth >= 1.0 && found.growth < 100.0,
                "{}",
                found.growth
            );
        }
    }
}

/// In single precision, rounded forces are met again on the way back.
#[test]
fn the_way_back_ends_where_it_began() {
    let (begun, weights, _) = sample(40);
    let of = physics(0.05);
    let path = Trajectory::new(Integrator::Leapfrog, 0.01, 100).unwrap();
    let none = vec![[0.0; 3]; 40];
    let mut exact = begun.clone();
    path.advance::<f64>(&mut exact, &of);
    let exact = path
        .pull::<f64>(&mut exact, &of, weights.clone(), none.clone(), ALL)
        .unwrap();
    let mut bodies = begun.clone();
    path.advance::<f32>(&mut bodies, &of);
    let single = path
        .pull::<f32>(&mut bodies, &of, weights, none, ALL)
        .unwrap();
    let (there, back) = (positions(&begun), positions(&bodies));
    let pairs = there.as_flattened().iter().zip(back.as_flattened());
    let apart = pairs.map(|(a, b)| (a - b).abs());
    let apart = apart.fold(0.0, f64::max);
    assert!(apart < 1e-6, "{apart:e}");
    let scale = size(&exact.positions);
    for (one, other) in exact.positions.iter().zip(&single.positions) {
        assert!((0..3).all(|axis| (one[axis] - other[axis]).abs() < 1e-3 * scale));
    }
}

#[test]
fn schemes_without_a_way_back_are_refused() {
    for integrator in [
        Integrator::Hermite4,
        Integrator::Hermite6,
        Integrator::SemiImplicitEuler,
    ] {
        let refused = Trajectory::new(integrator, 0.1, 1).unwrap_err();
        assert!(
            refused.to_string().starts_with(integrator.name()),
            "{refused}"
        );
    }
}
