//! Order of convergence, reversibility, and orbits that must close.

use std::f64::consts::TAU;
use std::ops::ControlFlow;

use super::*;
use crate::bodies::{Bodies, Body, BodyKind};
use crate::diagnostics::{Conserved, largest};
use crate::force::cpu::{Cpu, samples::cloud};
use crate::force::reference::Reference;
use crate::initial_conditions::{FIGURE_EIGHT_PERIOD, figure_eight, two_body};
use crate::integrator::{Pace, TimeSteps};
use crate::physics::{ForceLaw, Physics};
use crate::simulation::Simulation;

const GRAVITY: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.0,
    softening: 0.0,
};

/// The bodies after so many steps.
fn after(integrator: Integrator, bodies: &Bodies, dt: f64, steps: u32) -> Bodies {
    let mut backend = Cpu::<f64>::new(bodies, GRAVITY);
    integrator.prepare(&mut backend).unwrap();
    for _ in 0..steps {
        integrator.step(&mut backend, dt).unwrap();
    }
    let mut bodies = bodies.clone();
    backend.download(&mut bodies).unwrap();
    bodies
}

/// Largest distance of a body between two states.
fn distance(a: &Bodies, b: &Bodies) -> f64 {
    let pairs = a.iter().zip(b.iter());
    largest(pairs.map(|(a, b)| {
        let d = (0..3).map(|k| (a.position[k] - b.position[k]).powi(2));
        d.sum::<f64>().sqrt()
    }))
}

fn energy(bodies: &Bodies) -> f64 {
    Reference::new(bodies, GRAVITY).energy().unwrap().total()
}

/// The error of a quarter of an eccentric orbit, with steps and with half as long ones: their
/// ratio is 2 to the order. The exact end is Yoshida's of sixth order with far smaller steps.
#[test]
fn errors_fall_with_the_order() {
    let bodies = two_body(0.5, 0.3).unwrap();
    let time = TAU / 4.0;
    let exact = after(Integrator::Yoshida6, &bodies, time / 1000.0, 1000);
    for integrator in Integrator::ALL {
        if let Integrator::DampedEuler { .. } = integrator {
            continue; // solves another equation: below
        }
        let steps = if integrator.order() == 6 { 32 } else { 64 };
        let error = |steps: u32| {
            let end = after(integrator, &bodies, time / f64::from(steps), steps);
            distance(&end, &exact)
        };
        let order = (error(steps) / error(2 * steps)).log2();
        let expected = f64::from(integrator.order());
        let name = integrator.name();
        // What the next order adds to the error; the slope of another order is 1 away.
        assert!(
            (order - expected).abs() <= 0.15,
            "{name}: slope {order}, not {expected}"
        );
    }
}

#[test]
fn drag_slows_a_free_body_exponentially() {
    let mut free = Bodies::default();
    free.push(Body {
        position: [0.0; 3],
        velocity: [1.0, 0.0, -2.0],
        mass: 1.0,
        id: 0,
        kind: BodyKind::Star,
    });
    let rate = 0.7;
    let error = |steps: u32| {
        let dt = 2.0 / f64::from(steps);
        let end = after(Integrator::DampedEuler { rate }, &free, dt, steps);
        (end.vx[0] - (-rate * 2.0_f64).exp()).abs()
    };
    let order = (error(200) / error(400)).log2();
    // The next order adds rate·dt = 0.007 to the error.
    assert!((order - 1.0).abs() <= 0.05, "{order}");
    // Without drag it is Euler.
    let bodies = cloud(20, 3);
    let none = after(Integrator::DampedEuler { rate: 0.0 }, &bodies, 1e-3, 10);
    assert_eq!(
        none,
        after(Integrator::SemiImplicitEuler, &bodies, 1e-3, 10)
    );
}

/// Forth and back again: the symmetric compositions return but for rounding, which the orbit
/// amplifies little; the others are off by their error.
#[test]
fn symmetric_integrators_are_reversible() {
    let bodies = two_body(0.5, 0.5).unwrap();
    for integrator in Integrator::ALL {
        let there = after(integrator, &bodies, TAU / 100.0, 100);
        let back = after(integrator, &there, -TAU / 100.0, 100);
        let off = distance(&back, &bodies);
        let reversible = integrator.order() % 2 == 0 && !integrator.needs_jerks();
        let name = integrator.name();
        if reversible {
            assert!(off <= 1e-11, "{name} is off by {off:e}");
        } else {
            assert!(off >= 1e-9, "{name} is off by only {off:e}");
        }
    }
}

/// 100 periods of an orbit with e = 0.5. The energy of symplectic integrators is back at apocentre but for
/// the rounding of 10⁵ steps, 4e-13 at most, while the drift of Hermite grows with time; the phase
/// drifts by 2π·100·O(dt^order). The bounds are twice what a program written apart from this one
/// gave, and 2e-12 for rounding: with half of the steps the errors are 4, 16 and 64 times as large.
#[test]
fn orbits_over_many_periods() {
    let bodies = two_body(1.0, 0.5).unwrap();
    let start = energy(&bodies);
    let periods = 100;
    for (integrator, steps, energy_bound, phase_bound) in [
        (Integrator::Leapfrog, 1000, 2e-12, 2.3e-2),
        (Integrator::LeapfrogDkd, 1000, 2e-12, 2.3e-2),
        (Integrator::Yoshida4, 1000, 2e-12, 3.1e-5),
        (Integrator::Yoshida6, 500, 2e-12, 7.7e-8),
        (Integrator::Hermite4, 1000, 3.1e-7, 5.3e-5),
        (Integrator::Hermite6, 500, 1e-6, 1e-3),
    ] {
        let dt = TAU / f64::from(steps);
        let end = after(integrator, &bodies, dt, steps * periods);
        let drift = ((energy(&end) - start) / start).abs();
        let off = distance(&end, &bodies);
        let name = integrator.name();
        println!("{name}: {drift:e} {off:e}");
        assert!(drift <= energy_bound, "{name}: energy drift {drift:e}");
        assert!(off <= phase_bound, "{name}: off by {off:e}");
    }
}

/// A thousand periods. The energy of Yoshida's keeps within bounds, as that of a symplectic
/// integrator does; Hermite's drifts evenly. How late the body is grows with the square of time
/// for Hermite, evenly for Yoshida. Bounds as in [`orbits_over_many_periods`].
#[test]
fn a_thousand_periods() {
    let bodies = two_body(1.0, 0.5).unwrap();
    let start = energy(&bodies);
    for (integrator, steps, energy_bound, phase_bound) in [
        (Integrator::Yoshida6, 400, 2e-12, 2.9e-6),
        (Integrator::Hermite4, 2000, 9.8e-8, 1.4e-4),
    ] {
        let end = after(integrator, &bodies, TAU / f64::from(steps), 1000 * steps);
        let drift = ((energy(&end) - start) / start).abs();
        let off = distance(&end, &bodies);
        let name = integrator.name();
        assert!(drift <= energy_bound, "{name}: energy drift {drift:e}");
        assert!(off <= phase_bound, "{name}: off by {off:e}");
    }
}

#[test]
fn the_figure_eight_returns() {
    let (bodies, period) = (figure_eight().unwrap(), FIGURE_EIGHT_PERIOD);
    for integrator in [
        Integrator::Yoshida6,
        Integrator::Yoshida4,
        Integrator::Hermite4,
    ] {
        let end = after(integrator, &bodies, period / 2000.0, 2000);
        // Hermite's error of fourth order, the largest of the three.
        let off = distance(&end, &bodies);
        assert!(off <= 1e-6, "{}: off by {off:e}", integrator.name());
    }
}

#[test]
fn steps_follow_the_orbit() {
    let bodies = two_body(1.0, 0.9).unwrap();
    let mut backend = Cpu::<f64>::new(&bodies, GRAVITY);
    let hermite = Integrator::Hermite4;
    hermite.prepare(&mut backend).unwrap();
    let (mut time, mut steps) = (0.0, 0);
    let (mut shortest, mut longest) = (f64::INFINITY, 0.0_f64);
    let eta = 0.0025;
    let mut dt = hermite.first_step(&mut backend, eta, TAU).unwrap();
    while time < TAU {
        dt = dt.min(TAU - time);
        hermite.step(&mut backend, dt).unwrap();
        (time, steps) = (time + dt, steps + 1);
        let last = dt;
        dt = hermite.next_step(&mut backend, eta, dt).unwrap();
        (shortest, longest) = (shortest.min(last), longest.max(last));
    }
    // Pericentre is 19 times as near as apocentre: free-fall times are as 19^1.5 = 83.
    assert!(longest / shortest > 30.0, "{shortest} to {longest}");
    let mut end = bodies.clone();
    backend.download(&mut end).unwrap();
    let drift = ((energy(&end) - energy(&bodies)) / energy(&bodies)).abs();
    // A fixed step as many times over is worse by far.
    let fixed = after(hermite, &bodies, TAU / f64::from(steps), steps);
    let fixed_drift = ((energy(&fixed) - energy(&bodies)) / energy(&bodies)).abs();
    assert!(
        drift <= 1e-5 && drift < fixed_drift / 10.0,
        "{steps}: {drift:e} {fixed_drift:e}"
    );
}

#[test]
fn derivatives_agree_with_the_reference_and_with_differences() {
    for softening in [0.0, 0.05] {
        let physics = Physics {
            softening,
            ..GRAVITY
        };
        let mut bodies = cloud(300, 4);
        bodies.push(bodies.body(7)); // coincident, but for its velocity
        bodies.vx[300] += 0.5;
        let derivatives = |backend: &mut dyn Backend| {
            Integrator::Hermite6.prepare(backend).unwrap();
            let saved = backend.save().unwrap();
            let snaps = saved.higher().iter().map(|&[snap, _]| snap).collect();
            [
                saved.accelerations().to_vec(),
                saved.jerks().to_vec(),
                snaps,
            ]
        };
        let [_, expected, snaps] = derivatives(&mut Reference::new(&bodies, physics));
        let size = |v: &[f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let largest_snap = largest(snaps.iter().map(size));
        let largest = largest(expected.iter().map(size));
        // Close pairs decide the jerks, and their separations decide the error: in f32 relative
        // 2⁻²⁴ of the frame over the closest distance of some 1e-2, five times over.
        let in_f64 = derivatives(&mut Cpu::<f64>::new(&bodies, physics));
        let in_f32 = derivatives(&mut Cpu::<f32>::new(&bodies, physics));
        for ([_, computed, computed_snaps], bound) in [(in_f64, 1e-12), (in_f32, 1e-4)] {
            for (computed, expected, largest) in [
                (&computed, &expected, largest),
                (&computed_snaps, &snaps, largest_snap),
            ] {
                for (i, (c, e)) in computed.iter().zip(expected).enumerate() {
                    let off = size(&[c[0] - e[0], c[1] - e[1], c[2] - e[2]]);
                    assert!(off <= bound * largest, "body {i}: {c:?} {e:?}");
                }
            }
        }

        // Central differences: of the accelerations along the velocities, and of the jerks along
        // velocities and accelerations.
        let h = 1e-6;
        let moved = |h: f64| {
            let mut bodies = bodies.clone();
            for i in 0..bodies.len() {
                bodies.x[i] += h * bodies.vx[i];
                bodies.y[i] += h * bodies.vy[i];
                bodies.z[i] += h * bodies.vz[i];
            }
            crate::force::reference::accelerations(&bodies, &physics)
        };
        if softening > 0.0 {
            for ((a, b), e) in moved(h).iter().zip(&moved(-h)).zip(&expected) {
                let off = size(&[0, 1, 2].map(|k| (a[k] - b[k]) / (2.0 * h) - e[k]));
                assert!(off <= 1e-6 * largest, "{off:e} of {largest:e}");
            }
            let accelerations = crate::force::reference::accelerations(&bodies, &physics);
            let jerks = |h: f64| {
                let mut bodies = bodies.clone();
                for (i, a) in accelerations.iter().enumerate() {
                    bodies.x[i] += h * (bodies.vx[i] + 0.5 * h * a[0]);
                    bodies.y[i] += h * (bodies.vy[i] + 0.5 * h * a[1]);
                    bodies.z[i] += h * (bodies.vz[i] + 0.5 * h * a[2]);
                    bodies.vx[i] += h * a[0];
                    bodies.vy[i] += h * a[1];
                    bodies.vz[i] += h * a[2];
                }
                crate::force::reference::jerks(&bodies, &physics)
            };
            for ((a, b), e) in jerks(h).iter().zip(&jerks(-h)).zip(&snaps) {
                let off = size(&[0, 1, 2].map(|k| (a[k] - b[k]) / (2.0 * h) - e[k]));
                assert!(off <= 1e-6 * largest_snap, "{off:e} of {largest_snap:e}");
            }
        }
    }
}

#[test]
fn momentum_is_kept_by_all() {
    let bodies = cloud(64, 9);
    for integrator in Integrator::ALL {
        if let Integrator::DampedEuler { .. } = integrator {
            continue;
        }
        let end = after(integrator, &bodies, 1e-3, 20);
        let at = |bodies: &Bodies| Conserved::measure(0.0, bodies, &GRAVITY, Default::default());
        let drift = at(&end).drift_since(&at(&bodies));
        assert!(drift.momentum <= 1e-13, "{}: {drift:?}", integrator.name());
    }
}

/// A cluster with a tight binary: with block time steps its bodies alone take short steps.
#[test]
fn block_steps_save_forces_at_the_same_accuracy() {
    let mut bodies = crate::initial_conditions::plummer(64, 3).unwrap();
    // Far out, where the others hardly disturb it: separation 0.01 at semi-major axis 0.01.
    let (mass, separation) = (bodies.mass[0], 0.01);
    let speed = (2.0 * mass / separation).sqrt() / 2.0;
    for sign in [-1.0, 1.0] {
        bodies.push(Body {
            position: [3.0 + sign * separation / 2.0, 0.0, 0.0],
            velocity: [0.0, sign * speed, 0.0],
            mass,
            id: bodies.len() as u64,
            kind: BodyKind::Star,
        });
    }
    let physics = Physics {
        softening: 1e-3,
        ..GRAVITY
    };
    let run = |steps: TimeSteps| {
        let pace = Pace::Adaptive {
            eta: 0.01,
            longest: 1.0 / 16.0,
            end: 1.0,
            steps,
        };
        let backend = Box::new(Cpu::<f64>::new(&bodies, physics));
        let hermite = Integrator::Hermite4;
        let mut cluster =
            Simulation::new(backend, bodies.clone(), physics, hermite, pace, 0.0).unwrap();
        let start = cluster.conserved().unwrap();
        let _ = cluster
            .run(u64::MAX, |_| ControlFlow::Continue(()))
            .unwrap();
        assert_eq!(cluster.time(), 1.0);
        let drift = cluster.conserved().unwrap().drift_since(&start).energy;
        (drift, cluster.interactions())
    };
    let (shared, all) = run(TimeSteps::Shared);
    let (blocks, some) = run(TimeSteps::Blocks);
    // The binary's orbits decide the error, and take about the same steps in both.
    assert!(
        shared <= 1e-5 && blocks <= 2.0 * shared,
        "{shared:e} {blocks:e}"
    );
    assert!(some <= all / 5.0, "{some:e} of {all:e} interactions");
}

#[test]
fn the_first_step_is_short_enough_where_jerks_say_nothing() {
    // At rest there are no jerks, and in the middle of the eight pulls cancel.
    let mut at_rest = two_body(1.0, 0.0).unwrap();
    (at_rest.vx, at_rest.vy) = (vec![0.0; 2], vec![0.0; 2]);
    for bodies in [at_rest, figure_eight().unwrap()] {
        let mut backend = Cpu::<f64>::new(&bodies, GRAVITY);
        let hermite = Integrator::Hermite4;
        hermite.prepare(&mut backend).unwrap();
        let before = backend.save().unwrap();
        let dt = hermite.first_step(&mut backend, 0.01, 10.0).unwrap();
        assert_eq!(backend.save().unwrap(), before);
        // A tenth (√η) of the times in which these systems change, which are of order 1.
        assert!((0.001..0.2).contains(&dt), "{dt}");
    }
}

/// Blocks are Hermite's scheme with one step where every body may take the longest.
#[test]
fn one_block_is_a_shared_step() {
    let bodies = cloud(40, 5);
    let physics = Physics {
        softening: 0.5,
        ..GRAVITY
    };
    let mut shared = Cpu::<f64>::new(&bodies, physics);
    let mut blocks = shared.clone();
    let dt = 1e-3;
    Integrator::Hermite4.prepare(&mut shared).unwrap();
    Integrator::Hermite4.prepare(&mut blocks).unwrap();
    for _ in 0..5 {
        Integrator::Hermite4.step(&mut shared, dt).unwrap();
        // First steps are a hundredth of √η of what a body's own derivatives say.
        let counts = blocks.advance(dt, 1e4).unwrap();
        assert_eq!((counts.blocks, counts.steps), (1, 40));
        assert_eq!(counts.shortest, dt);
    }
    let end = |backend: &mut Cpu<f64>| {
        let mut end = bodies.clone();
        backend.download(&mut end).unwrap();
        end
    };
    assert_eq!(end(&mut shared), end(&mut blocks));
}

#[test]
fn errors_of_block_steps_fall_with_their_accuracy() {
    let bodies = two_body(0.5, 0.9).unwrap();
    let run = |integrator: Integrator, eta: f64| {
        let mut backend = Cpu::<f64>::new(&bodies, GRAVITY);
        integrator.prepare(&mut backend).unwrap();
        for _ in 0..8 {
            backend.advance(TAU / 8.0, eta).unwrap();
        }
        let mut end = bodies.clone();
        backend.download(&mut end).unwrap();
        distance(&end, &bodies)
    };
    // Steps go with √η, errors of fourth order with η² and of sixth with η³; steps halve, and do not
    // follow exactly.
    for (integrator, eta, least) in [
        (Integrator::Hermite4, 0.01, 64.0),
        (Integrator::Hermite6, 0.1, 512.0),
    ] {
        let (coarse, fine) = (run(integrator, eta), run(integrator, eta / 16.0));
        let name = integrator.name();
        println!("{name}: {coarse:e} {fine:e}");
        assert!(
            fine <= 1e-3 && coarse / fine >= least,
            "{name}: {coarse:e} {fine:e}"
        );
    }
    // Head on, no step is short enough.
    let mut head_on = two_body(1.0, 0.0).unwrap();
    (head_on.vx, head_on.vy) = (vec![0.0; 2], vec![0.0; 2]);
    let mut backend = Cpu::<f64>::new(&head_on, GRAVITY);
    Integrator::Hermite4.prepare(&mut backend).unwrap();
    let fault = backend.advance(4.0, 0.01);
    assert!(
        matches!(fault, Err(ForceError::StepTooShort { .. })),
        "{fault:?}"
    );
}
