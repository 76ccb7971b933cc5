//! Whole runs against what mechanics says about them: the experiments of `allpairs validate`, and for
//! each kind of backend orders of convergence, reversibility, conserved quantities.

use std::f64::consts::TAU;
use std::ops::ControlFlow;

use allpairs::backend::Backend;
use allpairs::bodies::Bodies;
use allpairs::diagnostics::{self, largest};
use allpairs::force::reference;
use allpairs::initial_conditions::{FIGURE_EIGHT_PERIOD, figure_eight, plummer, two_body};
use allpairs::integrator::Integrator;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::selection::Place;
use allpairs::simulation::Simulation;
use allpairs::variants::{Method, Variant};
use allpairs_lab::studies::catalogue;
use allpairs_lab::validate::{EXPERIMENTS, Effort, Outcome, binary_after};
use allpairs_lab::verify::bounds::additions;

const F64: [&str; 3] = ["reference", "cpu-f64", "tiled-f64"];
const ALL: [&str; 5] = ["reference", "cpu-f64", "tiled-f64", "cpu-f32", "tiled"];

fn gravity(softening: f64) -> Physics {
    Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening,
    }
}

fn variant(name: &str) -> &'static Variant {
    catalogue().find(name).expect("listed")
}

/// The variant on the CPU or, if it is one of kernels, on the emulator.
fn backend(name: &str, bodies: &Bodies, physics: Physics) -> Box<dyn Backend> {
    let place = match variant(name).method {
        Method::Kernel { .. } | Method::Systems(_) => Place::EMULATOR,
        Method::Reference | Method::Cpu(_) => Place::CPU,
    };
    let backend = Machine::new(place).backend(variant(name), bodies, physics);
    backend.expect("runs here")
}

fn simulation(
    name: &str,
    bodies: &Bodies,
    physics: Physics,
    integrator: Integrator,
    dt: f64,
) -> Simulation {
    let backend = backend(name, bodies, physics);
    let simulation = Simulation::new(backend, bodies.clone(), physics, integrator, dt, 0.0);
    simulation.expect("runs here")
}

fn take(simulation: &mut Simulation, steps: u64) {
    let outcome = simulation.run(steps, |_| ControlFlow::Continue(()));
    assert_eq!(outcome.expect("runs here"), ControlFlow::Continue(()));
}

/// The second body as the first one sees it.
fn separation(bodies: &Bodies) -> [f64; 3] {
    [&bodies.x, &bodies.y, &bodies.z].map(|x| x[1] - x[0])
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let squares = (0..3).map(|axis| (a[axis] - b[axis]).powi(2));
    squares.sum::<f64>().sqrt()
}

/// `allpairs validate --quick` on the CPU.
#[test]
fn all_experiments_pass() {
    let machine = Machine::new(Place::CPU);
    let mut failures = vec![];
    for experiment in EXPERIMENTS {
        let outcome = experiment.run(&machine, Effort::Quick).expect("runs here");
        let Outcome::Measured { values, .. } = outcome else {
            panic!("{}: {outcome:?}", experiment.name);
        };
        for (check, value) in experiment.checks.iter().zip(values) {
            if !check.passes(value, Effort::Quick) {
                let (name, measured) = (experiment.name, check.measured);
                let bound = check.bound(Effort::Quick);
                failures.push(format!("{name}: {measured} is {value:e}, bound {bound:e}"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Leapfrog's error on a circle is known: with θ the angle of a step, the orbit has a discrete
/// circular neighbour whose phase runs ahead by θ²/24, and starts out faster than that by θ²/8,
/// which makes its period longer by 3θ²/8; together the body is late by (1/3) θ² · 2π.
#[test]
fn a_circular_orbit_closes_but_for_the_known_error() {
    for name in F64 {
        let steps = 400;
        let dt = TAU / steps as f64;
        let bodies = two_body(0.5, 0.0).expect("in range");
        let mut orbit = simulation(name, &bodies, gravity(0.0), Integrator::Leapfrog, dt);
        let before = orbit.conserved().expect("runs here");
        take(&mut orbit, steps);
        let error = distance(
            separation(orbit.bodies().expect("runs here")),
            [1.0, 0.0, 0.0],
        );
        let known = TAU * dt * dt / 3.0;
        assert!(
            (error / known - 1.0).abs() <= 0.01,
            "{name}: {error:e}, known {known:e}"
        );

        let drift = orbit.conserved().expect("runs here").drift_since(&before);
        // The distance varies by θ²/2 at most, and the energy error with its square.
        assert!(drift.energy <= dt.powi(4), "{name}: {:e}", drift.energy);
        // Kicks are central, drifts along the velocity: rounding is all there is.
        let rounding = 4.0 * steps as f64 * f64::EPSILON;
        assert!(
            drift.angular_momentum <= rounding,
            "{name}: {:e}",
            drift.angular_momentum
        );
        assert!(drift.momentum <= rounding, "{name}: {:e}", drift.momentum);
    }
}

/// Position errors at a time when nothing cancels, for steps halved again and again.
#[test]
fn integrators_converge_with_their_order() {
    let (eccentricity, end) = (0.3, 2.0);
    let bodies = two_body(0.5, eccentricity).expect("in range");
    let exact = binary_after(eccentricity, end);
    for (integrator, order) in [
        (Integrator::SemiImplicitEuler, 1.0),
        (Integrator::Leapfrog, 2.0),
    ] {
        for name in ALL {
            // Coarse enough that the rounding of f32, 10⁻⁷, does not show.
            let errors = [16_u64, 32, 64, 128].map(|steps| {
                let dt = end / steps as f64;
                let mut orbit = simulation(name, &bodies, gravity(0.0), integrator, dt);
                take(&mut orbit, steps);
                distance(separation(orbit.bodies().expect("runs here")), exact)
            });
            for pair in errors.windows(2) {
                let measured = (pair[0] / pair[1]).log2();
                assert!(
                    (measured - order).abs() <= 0.1,
                    "{} with {name}: order {measured}, errors {errors:?}",
                    integrator.name()
                );
            }
        }
    }
}

/// Largest distance between where bodies are and where they should be.
fn largest_distance(a: &Bodies, b: &Bodies) -> f64 {
    let pairs = a.iter().zip(b.iter());
    largest(pairs.map(|(a, b)| distance(a.position, b.position)))
}

#[test]
fn leapfrog_runs_backwards_to_where_it_began() {
    let start = plummer(64, 3).expect("in range");
    let there_and_back = |name, integrator| {
        let (physics, dt, steps) = (gravity(0.1), 1.0 / 32.0, 50);
        let mut forwards = simulation(name, &start, physics, integrator, dt);
        take(&mut forwards, steps);
        let end = forwards.bodies().expect("runs here").clone();
        let mut backwards = simulation(name, &end, physics, integrator, -dt);
        take(&mut backwards, steps);
        largest_distance(backwards.bodies().expect("runs here"), &start)
    };
    for name in ALL {
        // Some roundings a step of coordinates up to 10, added up and made larger by encounters.
        let u = variant(name).precision().unit_roundoff();
        let error = there_and_back(name, Integrator::Leapfrog);
        assert!(error <= 1e3 * u, "{name}: off by {error:e}");
    }
    // What is not reversible does not come back.
    let error = there_and_back("cpu-f64", Integrator::SemiImplicitEuler);
    assert!(error > 1e-3, "{error:e}");
}

/// Forces of a pair are computed twice, once for each of its bodies, and cancel but for rounding.
#[test]
fn momentum_is_conserved_to_rounding() {
    let physics = gravity(0.05);
    let (dt, steps) = (1.0 / 64.0, 64);
    let bodies = plummer(256, 4).expect("in range");
    let targets: Vec<usize> = (0..bodies.len()).collect();
    let forces = reference::accelerations_of(&bodies, &physics, &targets);
    let forces: f64 = forces
        .iter()
        .zip(&bodies.mass)
        .map(|(f, m)| m * f.scale)
        .sum();
    for name in ALL {
        let mut cluster = simulation(name, &bodies, physics, Integrator::Leapfrog, dt);
        let before = cluster.conserved().expect("runs here");
        take(&mut cluster, steps);
        let after = cluster.conserved().expect("runs here");
        let u = variant(name).precision().unit_roundoff();
        let force_error = diagnostics::tolerance(u, additions(variant(name), bodies.len()), 42.5);
        // An error of the force in each kick, and a rounding of the velocity in each half.
        let allowed = steps as f64 * (dt * force_error * forces + 2.0 * u * before.momentum_scale);
        let drift = distance(after.momentum, before.momentum);
        assert!(
            drift <= allowed,
            "{name}: {drift:e}, rounding explains {allowed:e}"
        );
    }
}

/// Three bodies are back where they began after a period, whatever computes the forces.
#[test]
fn the_figure_of_eight_closes() {
    let bodies = figure_eight().expect("it has no options");
    for name in F64 {
        let [coarse, fine] = [500_u64, 1000].map(|steps| {
            let dt = FIGURE_EIGHT_PERIOD / steps as f64;
            let mut dance = simulation(name, &bodies, gravity(0.0), Integrator::Leapfrog, dt);
            take(&mut dance, steps);
            largest_distance(dance.bodies().expect("runs here"), &bodies)
        });
        assert!(coarse <= 1e-3, "{name}: {coarse:e}");
        let ratio = coarse / fine;
        assert!(
            (3.5..4.5).contains(&ratio),
            "{name}: {coarse:e} and {fine:e}"
        );
    }
}
