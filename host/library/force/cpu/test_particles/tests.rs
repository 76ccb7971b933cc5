use super::*;
use crate::backend::Backend;
use crate::force::cpu::samples::cloud;
use crate::force::reference;
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::physics::ForceLaw;
use crate::simulation::Simulation;

const G: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.0,
    softening: 0.01,
};

/// A cloud in which one body of `each` has mass.
fn few_with_mass(n: usize, each: usize) -> Bodies {
    let mut bodies = cloud(n, n as u64);
    for (i, mass) in bodies.mass.iter_mut().enumerate() {
        *mass *= if i % each == each / 2 {
            each as f64
        } else {
            0.0
        };
    }
    bodies
}

fn massive_of(bodies: &Bodies) -> Bodies {
    bodies.iter().filter(|body| body.mass > 0.0).collect()
}

#[test]
fn forces_are_those_of_the_bodies_with_mass() {
    for (n, each) in [(1, 2), (40, 40), (300, 7), (700, 2), (2100, 2100)] {
        let bodies = few_with_mass(n, each);
        let all: Vec<usize> = (0..n).collect();
        let expected = reference::accelerations_of(&bodies, &G, &all);
        let mut single = Cpu::<f32>::new(&bodies, G);
        let mut double = Cpu::<f64>::new(&bodies, G);
        let backends: [(&mut dyn Backend, f64); 2] = [(&mut single, 1e-5), (&mut double, 1e-13)];
        for (backend, bound) in backends {
            assert_eq!(backend.number_of_sources(), Some(massive_of(&bodies).len()));
            backend.accelerate().unwrap();
            let of_pairs = backend.accelerations().unwrap();
            Integrator::Hermite4.prepare(&mut *backend).unwrap();
            let with_jerks = backend.accelerations().unwrap();
            for computed in [of_pairs, with_jerks] {
                for (a, field) in computed.iter().zip(&expected) {
                    for (a, expected) in a.iter().zip(field.acceleration) {
                        let error = (a - expected).abs();
                        assert!(error <= bound * field.scale, "{n}, {each}: {error:e}");
                    }
                }
            }
        }
    }
}

/// Steps taken many at a time are those taken one after another, bit for bit, on any backend and
/// wherever they are broken off.
#[test]
fn many_steps_at_a_time_are_the_same_steps() {
    let bodies = few_with_mass(1000, 90);
    let damped = Integrator::DampedEuler { rate: 0.3 };
    for integrator in [Integrator::ALL.as_slice(), &[damped]].concat() {
        let start = || {
            let mut cpu = Cpu::<f64>::new(&bodies, G);
            integrator.prepare(&mut cpu).unwrap();
            cpu
        };
        let step = integrator.operations(0.01);
        let mut single = start();
        for operation in (0..60).flat_map(|_| &step) {
            single.perform(*operation).unwrap();
        }
        let single = single.save().unwrap();
        assert_ne!(single.positions(), start().save().unwrap().positions());
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let mut many = start();
                for times in [1, 0, 42, 17] {
                    many.repeat(times, &step).unwrap();
                }
                assert!(many.save().unwrap() == single, "{integrator:?}, {threads}");
            });
        }
    }
    // More sources than are kept at a time.
    let bodies = few_with_mass(60_000, 12);
    let step = Integrator::Leapfrog.operations(0.01);
    let [mut single, mut many] = [(); 2].map(|()| Cpu::<f64>::new(&bodies, G));
    for operation in (0..2).flat_map(|_| &step) {
        single.perform(*operation).unwrap();
    }
    many.repeat(2, &step).unwrap();
    assert!(many.save().unwrap() == single.save().unwrap());
}

/// Test particles leave no trace in the others' motion, with any integrator.
#[test]
fn test_particles_leave_no_trace() {
    let bodies = few_with_mass(400, 50);
    for integrator in Integrator::ALL {
        let paces = [
            Some(Pace::Fixed(0.01)),
            integrator.needs_jerks().then_some(Pace::Adaptive {
                eta: 0.02,
                longest: 0.1,
                end: f64::INFINITY,
                steps: TimeSteps::Blocks,
            }),
        ];
        for pace in paces.into_iter().flatten() {
            let end = |bodies: &Bodies| {
                let backend = Box::new(Cpu::<f64>::new(bodies, G));
                let bodies = bodies.clone();
                let mut simulation =
                    Simulation::new(backend, bodies, G, integrator, pace, 0.0).unwrap();
                simulation.run_until(0.3).unwrap();
                let energy = simulation.energy().unwrap();
                (simulation.bodies().unwrap().clone(), energy)
            };
            let (with, energy) = end(&bodies);
            let (alone, energy_alone) = end(&massive_of(&bodies));
            assert!(massive_of(&with) == alone, "{integrator:?}, {pace:?}");
            assert_eq!(energy.potential, energy_alone.potential);
            // And each of them goes where it would go alone.
            let one = bodies.iter().enumerate();
            let one = one.filter(|(i, body)| body.mass > 0.0 || *i == 3);
            let (with_one, _) = end(&one.map(|(_, body)| body).collect());
            let of_all = with.body(3).position;
            let alone = with_one.iter().find(|body| body.id == 3).unwrap().position;
            match pace {
                Pace::Fixed(_) => assert_eq!(of_all, alone, "{integrator:?}"),
                Pace::Adaptive { .. } => {
                    let near = |k: usize| (of_all[k] - alone[k]).abs() <= 1e-6;
                    assert!((0..3).all(near), "{integrator:?}: {of_all:?}, {alone:?}");
                }
            }
        }
    }
}
