use std::sync::Arc;

use crate::backend::{Backend, Operation};
use crate::bodies::Bodies;
use crate::fields::{External, ExternalField, Fields};
use crate::force::cpu::Cpu;
use crate::force::cpu::samples::cloud;
use crate::force::emulated::Emulator;
use crate::force::reference;
use crate::force::resident::Resident;
use crate::frame::Frame;
use crate::integrator::Integrator;
use crate::physics::{ForceLaw, Physics};
use crate::plan::{Limits, Recipe};
use crate::selection::{DeviceChoice, Request, select};
use crate::variants::{self, Variant};

const NAMES: [&str; 2] = ["test-particles", "test-particles-f64"];

const fn gravity(softening: f64) -> Physics {
    Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening,
    }
}

/// A cloud in which one body of `each` has mass.
fn few_with_mass(n: usize, each: usize) -> Bodies {
    let mut bodies = cloud(n, n as u64);
    for (i, mass) in bodies.mass.iter_mut().enumerate() {
        if i % each != each / 2 {
            *mass = 0.0;
        }
    }
    bodies
}

fn on_emulator(variant: &Variant, bodies: &Bodies, physics: Physics) -> Resident<Emulator> {
    let frame = Frame::of(bodies, &physics);
    let recipe = Recipe::new(variant, bodies, physics, frame, &Limits::EVERYWHERE).unwrap();
    Resident::new(Arc::new(Emulator::new(7)), recipe, bodies).unwrap()
}

/// Forces are those of the bodies with mass, and the energy is theirs.
#[test]
fn forces_and_energies_are_those_of_the_bodies_with_mass() {
    for (name, bound) in NAMES.into_iter().zip([1e-5, 1e-13]) {
        let variant = variants::find(name).unwrap();
        for (n, each, softening) in [(1, 2, 0.1), (40, 40, 0.0), (300, 7, 0.01), (700, 2, 0.0)] {
            let (bodies, physics) = (few_with_mass(n, each), gravity(softening));
            let all: Vec<usize> = (0..n).collect();
            let expected = reference::accelerations_of(&bodies, &physics, &all);
            let mut resident = on_emulator(variant, &bodies, physics);
            let massive = bodies.mass.iter().filter(|&&mass| mass > 0.0).count();
            assert_eq!(resident.facts().sources, Some(massive.max(1)));
            resident.accelerate().unwrap();
            for (a, field) in resident.accelerations().unwrap().iter().zip(&expected) {
                for (a, expected) in a.iter().zip(field.acceleration) {
                    let error = (a - expected).abs();
                    assert!(error <= bound * field.scale, "{name}, {n}: {error:e}");
                }
            }
            let energy = resident.energy().unwrap();
            let right = Cpu::<f64>::new(&bodies, physics).energy().unwrap();
            for (found, right) in [
                (energy.kinetic, right.kinetic),
                (energy.potential, right.potential),
            ] {
                let error = (found - right).abs();
                assert!(error <= bound * right.abs(), "{name}, {n}: {found} {right}");
            }
        }
    }
}

/// Steps taken many at a time are those taken one after another, bit for bit, wherever they are broken
/// off.
#[test]
fn many_steps_at_a_time_are_the_same_steps() {
    let damped = Integrator::DampedEuler { rate: 0.3 };
    for name in NAMES {
        let variant = variants::find(name).unwrap();
        for (n, each, softening) in [(300, 90, 0.01), (70, 30, 0.0), (64, 2, 0.1)] {
            let (bodies, physics) = (few_with_mass(n, each), gravity(softening));
            for integrator in [Integrator::Leapfrog, Integrator::Yoshida4, damped] {
                let start = || {
                    let mut resident = on_emulator(variant, &bodies, physics);
                    integrator.prepare(&mut resident).unwrap();
                    resident
                };
                let step = integrator.operations(0.01);
                let mut single = start();
                for &operation in (0..12).flat_map(|_| &step) {
                    single.perform(operation).unwrap();
                }
                let single = single.save().unwrap();
                let mut many = start();
                assert!(many.follow(5, &step).unwrap());
                for times in [0, 6, 1] {
                    many.repeat(times, &step).unwrap();
                }
                let many = many.save().unwrap();
                assert_ne!(single.positions(), start().save().unwrap().positions());
                assert!(many == single, "{name}, {n}, {integrator:?}");
            }
        }
    }
}

/// Sources that are more than a tile has room for, other operations and external fields are left to
/// launches one after another.
#[test]
fn what_does_not_suit_is_taken_step_by_step() {
    let variant = variants::find("test-particles-f64").unwrap();
    let step = Integrator::Leapfrog.operations(0.01);
    let many = few_with_mass(600, 2);
    assert!(
        !on_emulator(variant, &many, gravity(0.1))
            .follow(1, &step)
            .unwrap()
    );
    let few = few_with_mass(60, 20);
    let mut resident = on_emulator(variant, &few, gravity(0.1));
    assert!(!resident.follow(1, &[Operation::Predict(0.1)]).unwrap());
    assert!(resident.follow(1, &step).unwrap());

    let fields: Fields = [ExternalField::plummer(1.0, 0.5)].into_iter().collect();
    let external = External::of_bodies(&fields, &few, &gravity(0.1)).unwrap();
    let resident = on_emulator(variant, &few, gravity(0.1));
    let mut device = resident.in_fields(external.clone(), &few).unwrap();
    assert!(!device.follow(1, &step).unwrap());
    let mut cpu = Cpu::<f64>::new(&few, gravity(0.1)).in_fields(external);
    let backends: [&mut dyn Backend; 2] = [&mut cpu, &mut device];
    let [right, found] = backends.map(|backend| {
        backend.accelerate().unwrap();
        backend.repeat(3, &step).unwrap();
        backend.accelerations().unwrap()
    });
    for (a, b) in found.as_flattened().iter().zip(right.as_flattened()) {
        assert!((a - b).abs() <= 1e-11 * (1.0 + b.abs()), "{a} {b}");
    }
}

/// Chosen where most bodies have no mass, and close to the CPU's orbits.
#[test]
fn chosen_by_itself() {
    let bodies = few_with_mass(200, 50);
    for (sources, kernel) in [(4, "test-particles"), (200, "symmetric-lane2-block32")] {
        let request = Request {
            sources,
            ..Request::new(200).on(DeviceChoice::Emulator)
        };
        assert_eq!(select(&request).unwrap().variant.name, kernel);
    }
    let request = Request {
        sources: 4,
        ..Request::new(200).on(DeviceChoice::Emulators(2))
    };
    let shared = select(&request).unwrap().variant;
    assert!(shared.can_be_shared(), "{}", shared.name);

    let physics = gravity(0.05);
    let step = Integrator::Leapfrog.operations(0.01);
    let mut cpu = Cpu::<f64>::new(&bodies, physics);
    let variant = variants::find("test-particles-f64").unwrap();
    let mut device = on_emulator(variant, &bodies, physics);
    let backends: [&mut dyn Backend; 2] = [&mut cpu, &mut device];
    let ends = backends.map(|backend| {
        Integrator::Leapfrog.prepare(backend).unwrap();
        backend.repeat(50, &step).unwrap();
        let mut end = bodies.clone();
        backend.download(&mut end).unwrap();
        end
    });
    for (a, b) in ends[0].iter().zip(ends[1].iter()) {
        for axis in 0..3 {
            let difference = (a.position[axis] - b.position[axis]).abs();
            assert!(difference <= 1e-11, "{difference:e}");
        }
    }
}
