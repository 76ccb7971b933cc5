//! Ranks with a device each: the bits of as many devices of one process, and with kernels that add in a
//! fixed order those of one.

use cuda_driver::DeviceInfo;

use super::super::gpus::tests::gpu;
use super::*;
use crate::initial_conditions::{plummer, two_body};
use crate::machine::Machine;
use crate::selection::{DeviceChoice, Place, Request, SelectionError, select_on_ranks};
use crate::variants;
use crate::variants::preferred::ForceAccuracy;

/// The backend of a rank's device among those of a team.
fn on_ranks(team: &Arc<Team>, kernel: &Variant, bodies: &Bodies) -> Box<dyn Backend> {
    let place = Place::of_emulators(team.size() as u32).over_ranks(Way::Hosts);
    let machine = Machine::new(place).ranks(Arc::clone(team));
    machine.backend(kernel, bodies, physics()).expect("runs")
}

fn backend(machine: &Machine, kernel: &Variant, bodies: &Bodies) -> Box<dyn Backend> {
    machine.backend(kernel, bodies, physics()).expect("runs")
}

fn find(kernel: &str) -> Variant {
    *variants::find(kernel).expect("listed")
}

/// Bits of a run: state and energy.
fn steps(mut backend: Box<dyn Backend>, integrator: Integrator) -> (SavedState, Energy) {
    integrator.prepare(&mut *backend).expect("runs");
    let step = integrator.operations(0.01);
    backend.repeat(2, &step).expect("runs");
    let energy = backend.energy().expect("runs");
    (backend.save().expect("there"), energy)
}

const ONES: [&[usize]; 4] = [&[1], &[1, 1], &[1, 1, 1], &[1, 1, 1, 1]];

/// With fewer blocks than ranks, ragged numbers, and so many tiles that several ranks add a body's sums
/// one after the other.
#[test]
fn kernels_of_fixed_order_have_the_bits_of_one_device() {
    let narrow = |name| find(name).in_blocks_of(32);
    for (kernel, integrator, most) in [
        (find("symmetric-deterministic"), Integrator::Leapfrog, 1_025),
        (narrow("symmetric-deterministic"), Integrator::Leapfrog, 800),
        (narrow("hermite"), Integrator::Hermite4, 700),
        (narrow("hermite-f64"), Integrator::Hermite4, 500),
    ] {
        for n in [1, 2, 33, most] {
            let bodies = match n {
                1 => Bodies::at_rest(&[[0.25; 3]], &[1.0]),
                _ => plummer(n, 7).expect("in range"),
            };
            let one = steps(backend(&Machine::emulator(0), &kernel, &bodies), integrator);
            for threads in ONES {
                let found = led(threads, |team| {
                    steps(on_ranks(team, &kernel, &bodies), integrator)
                });
                let (name, ranks) = (kernel.name, threads.len());
                assert!(found == one, "{name}, {n} bodies, {ranks} ranks");
            }
        }
    }
}

/// On the emulator, which carries blocks out in order. Of the fewest bodies some ranks have none.
#[test]
fn other_kernels_have_the_bits_of_as_many_devices() {
    for (kernel, integrator) in [
        ("symmetric", Integrator::Leapfrog),
        ("symmetric-lane2-block32", Integrator::LeapfrogDkd),
        ("symmetric-f64", Integrator::Yoshida6),
        ("double-single", Integrator::Yoshida4),
        ("tensor", Integrator::Leapfrog),
        ("hermite-f64", Integrator::Hermite4),
    ] {
        let kernel = find(kernel);
        for (threads, n) in [(ONES[1], 300), (ONES[2], 300), (ONES[3], 40)] {
            let bodies = plummer(n, 5).expect("in range");
            let machine = Machine::emulators(threads.len() as u32, 0);
            let several = steps(backend(&machine, &kernel, &bodies), integrator);
            let found = led(threads, |team| {
                steps(on_ranks(team, &kernel, &bodies), integrator)
            });
            assert!(found == several, "{}, {threads:?}", kernel.name);
        }
    }
}

/// With fewer bodies than slices, and on to another number of ranks.
#[test]
fn block_time_steps_have_the_bits_of_as_many_devices() {
    let fields: Fields = [ExternalField::plummer(2.0, 0.5)].into_iter().collect();
    for (integrator, eta, n, threads, accuracy) in [
        (
            Integrator::Hermite4,
            0.02,
            257,
            ONES[1],
            ForceAccuracy::Single,
        ),
        (
            Integrator::Hermite6,
            0.4,
            130,
            ONES[2],
            ForceAccuracy::Double,
        ),
        (
            Integrator::Hermite6,
            0.4,
            37,
            ONES[3],
            ForceAccuracy::Single,
        ),
        (
            Integrator::Hermite4,
            0.02,
            1,
            ONES[1],
            ForceAccuracy::Double,
        ),
        (
            Integrator::Hermite4,
            0.02,
            40,
            ONES[0],
            ForceAccuracy::Double,
        ),
    ] {
        let bodies = match n {
            1 => Bodies::at_rest(&[[0.25; 3]], &[1.0]),
            _ => plummer(n, 7).expect("in range"),
        };
        let in_blocks = |machine: Machine| {
            let steps = (integrator, TimeSteps::Blocks);
            let machine = machine.block_steps(steps.0, steps.1, Some(eta), Some(accuracy));
            machine.fields(fields.clone())
        };
        let kernel = find("hermite-f64");
        let begun = |machine: Machine| {
            let mut backend = backend(&in_blocks(machine), &kernel, &bodies);
            Integrator::Hermite4.prepare(&mut *backend).expect("runs");
            backend
        };
        let advance = |mut backend: Box<dyn Backend>, times: u32| {
            let mut counts = BlockCounts::NONE;
            for _ in 0..times {
                let blocks = block_steps(&mut *backend).expect("taken");
                counts += blocks.advance(1.0 / 64.0, eta).expect("runs");
            }
            let energy = backend.energy().expect("runs");
            (counts, energy, backend.save().expect("there"))
        };
        let on_ranks = |team: &Arc<Team>| {
            let place = Place::of_emulators(team.size() as u32).over_ranks(Way::Hosts);
            begun(Machine::new(place).ranks(Arc::clone(team)))
        };
        let together = Machine::emulators(threads.len() as u32, 0);
        let expected = advance(begun(together), 2);
        let found = led(threads, |team| advance(on_ranks(team), 2));
        assert!(found == expected, "{integrator:?}, {n} bodies, {threads:?}");
        let (_, _, half) = led(threads, |team| advance(on_ranks(team), 1));
        let (_, _, end) = led(threads, |team| {
            let mut backend = on_ranks(team);
            backend.restore(&half).expect("the same bodies");
            advance(backend, 1)
        });
        assert!(end == expected.2, "{integrator:?}, {n} bodies, {threads:?}");
    }
}

/// The bits of one device, with ranks that have no slice, and of runs that go on with other ranks.
#[test]
fn neighbour_schemes_are_those_of_one_device() {
    for (n, threads) in [(90, ONES[1]), (61, ONES[2]), (2, ONES[2]), (1, ONES[1])] {
        let bodies = match n {
            1 => Bodies::at_rest(&[[0.25; 3]], &[1.0]),
            _ => plummer(n, 7).expect("in range"),
        };
        let on_ranks = |team: &Arc<Team>| {
            let place = Place::of_emulators(team.size() as u32).over_ranks(Way::Hosts);
            Machine::new(place).ranks(Arc::clone(team))
        };
        neighbours_are_those_of(
            Machine::emulator(0),
            on_ranks,
            "hermite-f64",
            &bodies,
            threads,
        );
    }
}

/// Two bodies that fall onto each other: rank 0 has the error, and all are there for what follows.
#[test]
fn steps_that_get_too_short_are_an_error_of_all_ranks() {
    let mut bodies = two_body(0.5, 0.0).expect("bound");
    for v in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
        v.fill(0.0);
    }
    let refused = led(ONES[2], |team| {
        let machine =
            Machine::new(Place::of_emulators(3).over_ranks(Way::Hosts)).ranks(Arc::clone(team));
        let blocks = (Integrator::Hermite4, TimeSteps::Blocks);
        let accuracy = Some(ForceAccuracy::Double);
        let machine = machine.block_steps(blocks.0, blocks.1, Some(0.01), accuracy);
        let physics = Physics {
            softening: 0.0,
            ..physics()
        };
        let backend = machine.backend(&find("hermite-f64"), &bodies, physics);
        let mut backend = backend.expect("runs");
        Integrator::Hermite4.prepare(&mut *backend).expect("runs");
        let refused = block_steps(&mut *backend)
            .expect("taken")
            .advance(4.0, 0.01);
        backend.energy().expect("all ranks go on");
        refused
    });
    assert!(
        matches!(refused, Err(ForceError::StepTooShort { .. })),
        "{refused:?}"
    );
}

/// The first step is tried and taken back, on all ranks.
#[test]
fn varying_steps_and_fields_are_those_of_one_device() {
    let bodies = plummer(70, 5).expect("in range");
    let fields: Fields = [ExternalField::nfw(3.0, 2.0).at([1.0, 0.0, 0.0])]
        .into_iter()
        .collect();
    let pace = Pace::Adaptive {
        eta: 0.02,
        longest: 0.03125,
        end: 10.0,
        steps: TimeSteps::Shared,
    };
    let of = |machine: Machine| {
        let backend = backend(
            &machine.fields(fields.clone()),
            &find("hermite-f64"),
            &bodies,
        );
        run(backend, &bodies, Integrator::Hermite4, pace)
    };
    let expected = of(Machine::emulator(0));
    for threads in ONES {
        let place = Place::of_emulators(threads.len() as u32).over_ranks(Way::Hosts);
        let found = led(threads, |team| {
            of(Machine::new(place.clone()).ranks(Arc::clone(team)))
        });
        assert_eq!(found, expected, "{threads:?}");
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_devices() {
    let bodies = plummer(300, 3).expect("in range");
    let kernel = find("symmetric-deterministic").in_blocks_of(32);
    let (integrator, pace) = (Integrator::Leapfrog, Pace::Fixed(0.01));
    let end = |simulation: &mut Simulation| {
        simulation.step().expect("runs");
        simulation.save().expect("it is here")
    };
    let begin = |backend| {
        let simulation = Simulation::new(backend, bodies.clone(), physics(), integrator, pace, 0.0);
        let mut simulation = simulation.expect("runs");
        end(&mut simulation);
        simulation
    };
    let expected = end(&mut begin(backend(&Machine::emulator(0), &kernel, &bodies)));
    let (clock, state) = led(ONES[2], |team| {
        begin(on_ranks(team, &kernel, &bodies))
            .save()
            .expect("it is here")
    });
    for threads in ONES {
        let found = led(threads, |team| {
            let machine =
                Machine::new(Place::of_emulators(team.size() as u32).over_ranks(Way::Hosts));
            let machine = machine.ranks(Arc::clone(team));
            let backend = machine.backend_in_frame(&kernel, &bodies, physics(), state.frame);
            let (backend, from) = (backend.expect("runs"), (clock, &state));
            let bodies = bodies.clone();
            let simulation = Simulation::resume(backend, bodies, physics(), integrator, pace, from);
            end(&mut simulation.expect("runs"))
        });
        assert_eq!(found, expected, "{threads:?}");
    }
}

#[test]
fn what_ranks_do_not_share_is_refused() {
    led(ONES[1], |team| {
        let refused = |request: Request| {
            let refused = select_on_ranks(&request, team);
            refused.expect_err("refused").to_string()
        };
        let emulator = Request::new(100).on(DeviceChoice::Emulator);
        let several = refused(Request::new(100).on(DeviceChoice::Emulators(3)));
        assert!(several.contains("emulator:3"), "{several}");
        let alone = refused(emulator.by(Some(variants::find("tiled").expect("listed"))));
        assert!(alone.contains("one process"), "{alone}");
        let other = DeviceInfo {
            compute_capability: (8, 0),
            ..gpu(0, 2)
        };
        let older = DeviceInfo {
            driver_version: (12, 8),
            ..gpu(0, 2)
        };
        for (second, named) in [
            (other, "rank 1 GPU 2 (CUDA 14.15)"),
            (older, "rank 1 GPU 2 (CUDA 12.8)"),
        ] {
            let place = Place::of_gpus(vec![gpu(0, 1), second]).over_ranks(Way::Hosts);
            let machine = Machine::new(place).ranks(Arc::clone(team));
            let machine =
                machine.block_steps(Integrator::Hermite4, TimeSteps::Blocks, Some(0.02), None);
            let bodies = plummer(10, 1).expect("in range");
            let refused = machine.backend(&find("hermite-f64"), &bodies, physics());
            let refused = refused.err().expect("of two kinds").to_string();
            assert!(refused.contains(named), "{refused}");
            assert!(!refused.contains("name others"), "{refused}");
        }
        let relativity = ExternalField::first_post_newtonian(0, 1e4);
        let machine =
            Machine::new(Place::of_emulators(2).over_ranks(Way::Hosts)).ranks(Arc::clone(team));
        let machine = machine.fields([relativity].into_iter().collect());
        let machine =
            machine.block_steps(Integrator::Hermite4, TimeSteps::Blocks, Some(0.02), None);
        let mut with_a_star = plummer(10, 1).expect("in range");
        with_a_star.mass[0] = 1e6;
        let refused = machine.backend(&find("hermite-f64"), &with_a_star, physics());
        let refused = refused.err().expect("on one device").to_string();
        assert!(
            refused.contains("1pn are taken by one device of one process"),
            "{refused}"
        );
        let selected = select_on_ranks(&emulator, team).expect("runs");
        assert_eq!(
            selected.place,
            Place::of_emulators(2).over_ranks(Way::Hosts)
        );
        assert_eq!(selected.place.choice(), DeviceChoice::Emulator);
        match select_on_ranks(&Request::new(100).on(DeviceChoice::Cuda(16)), team) {
            Err(SelectionError::NoGpuOfRank(why)) => {
                assert!(why.to_string().contains("rank 0"), "{why}");
            }
            other => panic!("no machine has 17 GPUs: {other:?}"),
        }
        let bodies = plummer(10, 1).expect("in range");
        for place in [
            Place::of_emulators(3).over_ranks(Way::Hosts),
            Place::EMULATOR,
        ] {
            let machine = Machine::new(place).ranks(Arc::clone(team));
            let kernel = &find("symmetric");
            assert!(machine.backend(kernel, &bodies, physics()).is_err());
        }
    });
    let machine = Machine::new(Place::of_emulators(2).over_ranks(Way::Hosts));
    let bodies = plummer(10, 1).expect("in range");
    let refused = machine.backend(&find("symmetric"), &bodies, physics());
    let refused = refused.err().expect("there are no ranks").to_string();
    assert!(refused.contains("2 ranks"), "{refused}");
}

/// Whichever it is, all know.
#[test]
fn a_device_that_refuses_is_named() {
    let found = together_with(ONES[2], |team| {
        let mine = match team.rank() {
            1 => Err(ForceError::NoJerks),
            _ => Ok(()),
        };
        of_all(mine, &team).expect_err("of rank 1").to_string()
    });
    let own = ForceError::NoJerks.to_string();
    let others = format!("rank 1: {own}");
    assert_eq!(found, [others.clone(), own, others]);
}
