//! The neighbour scheme on the emulator: against that of the CPU, against direct sums, and against
//! itself in other orders of threads.

use std::sync::Arc;

use allpairs::backend::{Backend, BlockCounts, Column, GUARD, Neighbours, SavedState};
use allpairs::bodies::Bodies;
use allpairs::fields;
use allpairs::force::emulated::Emulator;
use allpairs::force::reference::Reference;
use allpairs::force::resident::Resident;
use allpairs::frame::Frame;
use allpairs::initial_conditions::plummer;
use allpairs::integrator::{Integrator, TimeSteps};
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::plan::block_steps::BlockScheme;
use allpairs::plan::{Limits, Recipe};
use allpairs::selection::Place;
use allpairs::variants;
use gpu_kernels::schedule::block_steps::DigitsName;

const ETA: f64 = 0.04;

fn gravity(softening: f64) -> Physics {
    Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening,
    }
}

/// Some of them massless, two of them coincident where forces are softened.
fn mixed(n: usize, softening: f64) -> Bodies {
    let mut bodies = plummer(n, 5).expect("in range");
    (0..n).step_by(7).for_each(|i| bodies.mass[i] = 0.0);
    if softening > 0.0 && n > 3 {
        (bodies.x[1], bodies.y[1], bodies.z[1]) = (bodies.x[2], bodies.y[2], bodies.z[2]);
    }
    bodies
}

/// Bodies with block time steps, with so many neighbours or none, with derivatives of their forces.
fn made(
    machine: Machine,
    bodies: &Bodies,
    physics: Physics,
    neighbours: Option<u32>,
) -> Box<dyn Backend> {
    let name = match machine.place().is_cpu() {
        true => "cpu-f64",
        false => "hermite-f64",
    };
    let variant = variants::find(name).expect("listed");
    let neighbours = neighbours.map(|n| Neighbours::Number(n.try_into().expect("not 0")));
    let machine = machine
        .block_steps(Integrator::Hermite4, TimeSteps::Blocks, Some(ETA), None)
        .neighbours(neighbours);
    let backend = machine.backend_in_frame(variant, bodies, physics, Frame::IDENTITY);
    let mut backend = backend.expect("it fits");
    Integrator::Hermite4
        .prepare(&mut *backend)
        .expect("it has jerks");
    backend
}

fn advance(backend: &mut dyn Backend, span: f64) -> BlockCounts {
    let blocks = backend.block_steps().expect("there");
    blocks.advance(span, ETA).expect("steps long enough")
}

fn farthest(a: &SavedState, b: &SavedState) -> f64 {
    let both = a.positions().iter().zip(b.positions());
    let off = both.map(|(a, b)| (0..3).map(|k| (a[k] - b[k]).abs()).fold(0.0, f64::max));
    off.fold(0.0, f64::max)
}

/// From the same state, with the same spheres and steps allowed, as many steps as on the CPU, but for
/// those that rounding to f32 makes longer or shorter, and the same ends.
#[test]
fn steps_are_those_of_the_cpu() {
    for (n, wanted, softening) in [
        (1, 4, 0.01),
        (2, 1, 0.0),
        (3, 1, 0.01),
        (33, 64, 0.0),
        (40, 5, 0.0),
        (150, 16, 0.01),
    ] {
        let (bodies, physics) = (mixed(n, softening), gravity(softening));
        let mut cpu = made(Machine::new(Place::CPU), &bodies, physics, Some(wanted));
        advance(&mut *cpu, 1.0 / 64.0);
        let start = cpu.save().expect("there");
        let mut device = made(Machine::emulator(7), &bodies, physics, Some(wanted));
        device.restore(&start).expect("the same bodies");
        for _ in 0..2 {
            let expected = advance(&mut *cpu, 1.0 / 32.0);
            let counts = advance(&mut *device, 1.0 / 32.0);
            let near = |count: u64, expected: u64| {
                let most = 3 + expected / 16;
                assert!(
                    count.abs_diff(expected) <= most,
                    "{n} bodies: {counts:?}, not {expected:?}"
                );
            };
            near(counts.steps, expected.steps);
            near(counts.regular, expected.regular);
            near(counts.neighbours, expected.neighbours);
        }
        let (cpu, device) = (cpu.save().expect("there"), device.save().expect("there"));
        let off = farthest(&cpu, &device);
        assert!(off < 1e-6, "{n} bodies: {off:e}");
        assert_eq!(device.spheres().len(), n);
    }
}

/// Each body's acceleration is the sum over all others: a missing one would be 1/n of it.
#[test]
fn both_parts_are_the_whole() {
    for (n, wanted, softening) in [(5, 2, 0.0), (100, 9, 0.01), (100, 60, 0.0)] {
        let mut bodies = mixed(n, softening);
        let physics = gravity(softening);
        let mut device = made(Machine::emulator(3), &bodies, physics, Some(wanted));
        // So short that all end where they were predicted.
        advance(&mut *device, 1e-5);
        device.download(&mut bodies).expect("there");
        let accelerations = device.accelerations().expect("there");
        let mut reference = Reference::new(&bodies, physics);
        reference.accelerate().expect("computed");
        let expected = reference.accelerations().expect("computed");
        for (i, (a, b)) in accelerations.iter().zip(&expected).enumerate() {
            let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
            let off = norm([a[0] - b[0], a[1] - b[1], a[2] - b[2]]);
            assert!(
                off <= 1e-5 * norm(*b),
                "body {i} of {n}: {off:e} of {:e}",
                norm(*b)
            );
        }
    }
}

/// The bits are the same whatever the order of threads, and a run goes on with them from its saved state;
/// also where spheres hold more bodies than lists have room for, which then count as regular.
#[test]
fn bits_are_those_of_a_saved_state() {
    let (bodies, physics) = (mixed(150, 0.01), gravity(0.01));
    let of = |order| made(Machine::emulator(order), &bodies, physics, Some(6));
    let mut first = of(0);
    advance(&mut *first, 1.0 / 64.0);
    let saved = first.save().expect("there");
    let mut wide = saved.clone();
    let radii = wide.column_mut(Column::Spheres).iter_mut().step_by(2);
    radii.for_each(|radius| *radius *= 4.0);
    let expected = {
        let mut plain = made(Machine::emulator(0), &bodies, physics, None);
        let without = saved.clone().without(Column::Spheres);
        plain.restore(&without).expect("the same bodies");
        advance(&mut *plain, 1.0 / 64.0);
        plain.save().expect("there")
    };
    for start in [saved, wide] {
        let ends = [0, 1, 2].map(|order| {
            let mut device = of(order);
            device.restore(&start).expect("the same bodies");
            let counts = advance(&mut *device, 1.0 / 64.0);
            (device.save().expect("there"), counts)
        });
        assert_eq!(ends[0], ends[1]);
        assert_eq!(ends[0], ends[2]);
        let off = farthest(&ends[0].0, &expected);
        assert!(off < 1e-6, "{off:e}");
        first.restore(&start).expect("its own bodies");
        assert_eq!(advance(&mut *first, 1.0 / 64.0), ends[0].1);
        assert_eq!(first.save().expect("there"), ends[0].0);
    }
}

/// With as many slices as lanes and more, and bodies enough for rounds of a sweep, in which each warp has
/// targets to itself.
#[test]
fn many_slices_are_as_few() {
    let (bodies, physics) = (mixed(400, 0.01), gravity(0.01));
    let with = |slices| {
        let variant = variants::find("hermite-f64").expect("listed");
        let limits = Limits::EVERYWHERE;
        let recipe = Recipe::new(variant, &bodies, physics, Frame::IDENTITY, &limits);
        let device = Arc::new(Emulator::new(1));
        let resident = Resident::new(device, recipe.expect("it fits"), &bodies).expect("it fits");
        let scheme = BlockScheme {
            order: 4,
            digits: DigitsName::Mixed,
            slices,
            neighbours: None,
            heavy_are_finer: false,
        };
        let resident = resident.with_block_steps(scheme, GUARD).expect("it fits");
        let mut resident = resident.with_neighbours(10, &bodies).expect("it fits");
        Integrator::Hermite4
            .prepare(&mut resident)
            .expect("it has jerks");
        let counts = advance(&mut resident, 1.0 / 256.0);
        (resident.save().expect("there"), counts)
    };
    let (few, many) = (with(3), with(100));
    assert!(farthest(&few.0, &many.0) < 1e-9);
    assert!(
        few.1.steps.abs_diff(many.1.steps) < few.1.steps / 16,
        "{few:?} {many:?}"
    );
}

/// In a rotating frame, whose jerks depend on the whole acceleration, and in a moving field.
#[test]
fn fields_are_those_of_the_cpu() {
    for field in ["tide:omega=0.5", "plummer:mass=3,scale=2,x=1"] {
        let fields = fields::parse(field, None, 1.0).expect("a field");
        let (bodies, physics) = (mixed(60, 0.01), gravity(0.01));
        let on = |place: Machine, neighbours| {
            let mut backend = made(place.fields(fields.clone()), &bodies, physics, neighbours);
            advance(&mut *backend, 1.0 / 16.0);
            backend.save().expect("there")
        };
        let plain = on(Machine::new(Place::CPU), None);
        let cpu = on(Machine::new(Place::CPU), Some(8));
        let device = on(Machine::emulator(1), Some(8));
        assert!(
            farthest(&cpu, &plain) < 1e-6,
            "{:e}",
            farthest(&cpu, &plain)
        );
        assert!(
            farthest(&cpu, &device) < 1e-6,
            "{:e}",
            farthest(&cpu, &device)
        );
    }
}
