//! The neighbour scheme against plain block steps, and where there are few bodies.

use std::ops::ControlFlow;

use super::*;
use crate::backend::{Backend, Column, Neighbours, SavedState};
use crate::bodies::Bodies;
use crate::fields::{External, ExternalField, Fields};
use crate::force::cpu::samples::cloud;
use crate::initial_conditions::plummer;
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::physics::{ForceLaw, Physics};
use crate::simulation::Simulation;

fn gravity(softening: f64) -> Physics {
    Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening,
    }
}

fn cpu(bodies: &Bodies, physics: Physics, neighbours: Option<u32>) -> Cpu<f64> {
    let neighbours = neighbours.map(|n| Neighbours::Number(n.try_into().expect("not 0")));
    Cpu::<f64>::new(bodies, physics).in_neighbour_scheme(neighbours)
}

/// A run through spans of 1/8: the state, the counts, and the change of the energy as a part of it.
fn run(mut cpu: Cpu<f64>, eta: f64, spans: u32) -> (SavedState, BlockCounts, f64) {
    Integrator::Hermite4.prepare(&mut cpu).expect("computed");
    let before = cpu.energy().expect("computed").total();
    let mut counts = BlockCounts::NONE;
    for _ in 0..spans {
        let blocks = cpu.block_steps().expect("there");
        counts += blocks.advance(0.125, eta).expect("long enough steps");
    }
    let after = cpu.energy().expect("computed").total();
    let drift = ((after - before) / before).abs();
    (cpu.save().expect("saved"), counts, drift)
}

/// Some of them massless, two of them coincident.
fn mixed(n: usize) -> Bodies {
    let mut bodies = cloud(n, 5);
    (0..n).step_by(7).for_each(|i| bodies.mass[i] = 0.0);
    (bodies.x[1], bodies.y[1], bodies.z[1]) = (bodies.x[2], bodies.y[2], bodies.z[2]);
    bodies
}

#[test]
fn near_and_far_are_the_whole() {
    for (softening, wanted) in [(0.0, 20), (0.01, 5), (0.01, 1), (0.0, 400)] {
        let bodies = mixed(300);
        let mut cpu = cpu(&bodies, gravity(softening), Some(wanted));
        Integrator::Hermite4.prepare(&mut cpu).expect("computed");
        let frame = cpu.frame();
        let parts = begin(&mut cpu, wanted as usize, &frame, 0.01, 0.01);
        let parts = parts.expect("a CPU does not refuse");
        let sum_of = Sum::new(&cpu, &frame);
        let all = sum_of.sources();
        let sources: Vec<_> = match cpu.sources() {
            Some(massive) => massive.iter().map(|&i| all[i]).collect(),
            None => all.clone(),
        };
        let whole = cpu.pair_forces(&frame, Targets::All, HighestDerivative::Jerk);
        let whole = whole.expect("a CPU does not refuse");
        for (i, part) in parts.iter().enumerate() {
            let [(far, list)] = &sum_of.far(&[i], &all, &sources)[..] else {
                panic!("one body");
            };
            assert_eq!(list, &part.list, "{i}");
            let at = |k: usize| bodies.body(k).position;
            let distance = |k: usize| norm(each(|axis| at(k)[axis] - at(i)[axis]));
            let radius = cpu.state.spheres[i].radius;
            let inside = |&k: &usize| k != i && bodies.mass[k] != 0.0 && distance(k) < radius;
            let expected = (0..300).filter(inside).map(|k| k as u32);
            assert_eq!(list, &expected.collect::<Vec<u32>>(), "{i}");
            let near = sum_of
                .of_lists
                .force(all[i].0, list.iter().map(|&k| all[k as usize]));
            for d in 0..2 {
                let (near, far) = (near.derivatives[d], far.derivatives[d]);
                let whole = whole[i].derivatives[d];
                let error = norm(each(|k| near[k] + far[k] - whole[k]));
                let scale = norm(near) + norm(far);
                assert!(error <= 1e-12 * scale, "{i}: {error:e} of {scale:e}");
            }
            let approach = near.approach.max(far.approach);
            assert!((approach / whole[i].approach - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn energy_is_kept_as_by_plain_block_steps() {
    let bodies = plummer(256, 2).expect("in range");
    let physics = gravity(0.01);
    let of = |neighbours, eta| run(cpu(&bodies, physics, neighbours), eta, 4);
    let (_, plain, drift) = of(None, 0.04);
    let (_, counts, with_neighbours) = of(Some(16), 0.04);
    println!("{drift:e} {with_neighbours:e} {plain:?} {counts:?}");
    assert!(with_neighbours <= 1e-5 && with_neighbours <= 10.0 * drift.max(1e-7));
    let mean = counts.neighbours as f64 / counts.steps as f64;
    assert!((8.0..32.0).contains(&mean), "{mean}");
    assert!(
        counts.regular * 2 < counts.steps && plain.regular == 0,
        "{counts:?}"
    );
    assert!(counts.interactions(256.0) < plain.interactions(256.0));
}

#[test]
fn errors_fall_with_eta() {
    let bodies = plummer(64, 3).expect("in range");
    let physics = gravity(0.05);
    let end = |neighbours, eta| run(cpu(&bodies, physics, neighbours), eta, 2).0;
    let exact = end(None, 1e-5);
    let error = |eta: f64| {
        let end = end(Some(8), eta);
        let pairs = end.positions().iter().zip(exact.positions());
        let errors = pairs.map(|(a, b)| norm(each(|k| a[k] - b[k])));
        errors.fold(0.0, f64::max)
    };
    let (coarse, fine) = (error(0.04), error(0.04 / 16.0));
    println!("{coarse:e} {fine:e}");
    // Of fourth order: steps a quarter as long.
    assert!(
        coarse <= 1e-4 && coarse / fine >= 64.0,
        "{coarse:e} {fine:e}"
    );
}

/// Fields that depend on velocities leave steps at their order: a sixteenth of η is a quarter of the step.
#[test]
fn coriolis_forces_keep_the_order() {
    let bodies = cloud(24, 8);
    let physics = gravity(0.1);
    let tide = Fields::from_iter([ExternalField::tide(3.0, 3.0, 3.0)]);
    let drift = |eta: f64| {
        let external = External::of_bodies(&tide, &bodies, &physics).expect("a field");
        run(cpu(&bodies, physics, Some(8)).in_fields(external), eta, 8).2
    };
    let [coarse, fine] = [0.04, 0.0025].map(drift);
    assert!(fine <= coarse / 100.0, "{coarse:e} {fine:e}");
}

/// Where all others are neighbours, there is no regular force: a first span differs from that of plain
/// block steps by rounding. (A second one begins with forces of where bodies are, not of where they were
/// predicted.)
#[test]
fn few_bodies_are_all_neighbours() {
    for n in [1, 2, 3, 17] {
        let mut bodies = cloud(n, 8);
        if n == 17 {
            (bodies.mass[3], bodies.mass[4]) = (0.0, 0.0);
        }
        let physics = gravity(0.1);
        let (plain, counts, _) = run(cpu(&bodies, physics, None), 0.01, 1);
        let (near, of_near, _) = run(cpu(&bodies, physics, Some(64)), 0.01, 1);
        assert_eq!(
            (counts.steps, counts.blocks),
            (of_near.steps, of_near.blocks)
        );
        for (a, b) in plain.positions().iter().zip(near.positions()) {
            assert!(norm(each(|k| a[k] - b[k])) <= 1e-12, "{n}: {a:?} {b:?}");
        }
    }
}

#[test]
fn coincident_bodies_and_fields_are_survived() {
    // More in one place than there are neighbours.
    let mut bodies = mixed(60);
    for i in 10..30 {
        (bodies.x[i], bodies.y[i], bodies.z[i]) = (0.1, 0.2, 0.3);
        (bodies.vx[i], bodies.vy[i], bodies.vz[i]) = (0.0, 0.0, 0.0);
    }
    let (state, ..) = run(cpu(&bodies, gravity(0.1), Some(4)), 0.01, 1);
    assert!(state.first_not_finite().is_none());

    let bodies = plummer(100, 4).expect("in range");
    let physics = gravity(0.05);
    let mut fields = Fields::NONE;
    fields.push(ExternalField::plummer(10.0, 3.0));
    let in_field = |neighbours| {
        let external = External::of_bodies(&fields, &bodies, &physics).expect("fits");
        let cpu = Cpu::<f64>::new(&bodies, physics).in_fields(external);
        let neighbours: Option<Neighbours> = neighbours;
        run(cpu.in_neighbour_scheme(neighbours), 0.01, 4)
    };
    let (plain, _, drift) = in_field(None);
    let (near, _, of_near) = in_field(Some("10".parse().expect("a number")));
    println!("{drift:e} {of_near:e}");
    assert!(of_near <= 1e-6, "{drift:e} {of_near:e}");
    for (a, b) in plain.positions().iter().zip(near.positions()) {
        assert!(norm(each(|k| a[k] - b[k])) <= 1e-5);
    }
}

#[test]
fn threads_leave_no_trace() {
    let bodies = mixed(200);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("a pool");
        pool.install(|| run(cpu(&bodies, gravity(0.05), Some(16)), 0.02, 1))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn a_saved_run_goes_on_with_its_bits() {
    let (bodies, physics) = (mixed(120), gravity(0.05));
    let pace = Pace::Adaptive {
        eta: 0.02,
        longest: 0.125,
        end: 1.0,
        steps: TimeSteps::Blocks,
    };
    let hermite = Integrator::Hermite4;
    let watch = |_| ControlFlow::Continue(());
    let backend = |neighbours| Box::new(cpu(&bodies, physics, neighbours));
    let start = bodies.clone();
    let mut whole =
        Simulation::new(backend(Some(12)), start, physics, hermite, pace, 0.0).expect("begun");
    let _ = whole.run(2, watch).expect("runs");
    let (clock, saved) = whole.save().expect("saved");
    let now = whole.bodies().expect("there").clone();
    let _ = whole.run(2, watch).expect("runs");
    let resume = |neighbours, saved: &SavedState| {
        let (backend, now) = (backend(neighbours), now.clone());
        Simulation::resume(backend, now, physics, hermite, pace, (clock, saved))
    };
    let mut resumed = resume(Some(12), &saved).expect("resumed");
    let _ = resumed.run(2, watch).expect("runs");
    assert_eq!(resumed.save().expect("saved"), whole.save().expect("saved"));
    // One without the other would be another run.
    assert!(resume(None, &saved).is_err());
    let without = saved.without(Column::Spheres);
    assert!(resume(Some(12), &without).is_err());
}
