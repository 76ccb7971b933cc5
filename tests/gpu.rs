//! The table of cases on the GPUs of this machine. Skipped, aloud, where there is none.

use std::convert::Infallible;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::{Table, assert_none, repetition_failure, rms_error, softened};
use allpairs::backend::{Backend, Neighbours};
use allpairs::bodies::{Bodies, Body, BodyKind};
use allpairs::encounters::{Encounters, OnCollision, OnEscape};
use allpairs::fields::ExternalField;
use allpairs::force::cpu::Cpu;
use allpairs::force::reference::accelerations_of;
use allpairs::initial_conditions::{disk_galaxy, king, plummer};
use allpairs::integrator::{Integrator, TimeSteps};
use allpairs::machine::{KernelOfPairs, Machine};
use allpairs::physics::{ForceLaw, Physics};
use allpairs::plan::neighbours::BY_HOST_FROM;
use allpairs::selection::{DeviceChoice, GpuNumbers, Place, Request, eligible, library, select};
use allpairs::simulation::{
    BodyChange, DueBody, NewValues, Schedule, Simulation, SimulationBuilder,
};
use allpairs::timeline::{What, overlap};
use allpairs::variants::Variant;
use allpairs::variants::preferred::ForceAccuracy;
use allpairs_lab::studies::catalogue;
use allpairs_lab::verify::{CaseOfPairs, cloud, judge_pairs, many_systems};

/// One test at a time: what else runs on a GPU is in the way of what is timed there.
static GPU: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // A test that failed leaves nothing behind.
    GPU.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The machine that a GPU is.
fn machine_of(ordinal: u32) -> Machine {
    let device = DeviceChoice::Cuda(ordinal);
    let selection = select(&Request::new(0).on(device)).expect("it is there");
    Machine::new(selection.place)
}

#[test]
fn kernels_are_right_on_every_gpu() {
    let _alone = alone();
    let gpus = match cuda_driver::devices() {
        Ok(gpus) => gpus,
        Err(why) => {
            // Not `eprintln!`, whose output the test harness keeps to itself.
            let _ = writeln!(std::io::stderr(), "SKIPPED the tests on a GPU: {why}");
            return;
        }
    };
    let table = Table::new(256, 16_384);
    for gpu in gpus {
        let machine = machine_of(gpu.ordinal);
        let can_run = |v: &&Variant| {
            let mut laws = v.laws();
            laws.any(|law| eligible(v, machine.place(), law).is_ok())
        };
        let kernels: Vec<_> = catalogue().all().filter(can_run).collect();
        for why in catalogue().all().filter_map(|v| library(v).err()) {
            let _ = writeln!(std::io::stderr(), "SKIPPED a kernel: {why}");
        }
        assert!(!kernels.is_empty(), "no kernel runs on {}", machine.place());
        let failures = kernels.iter().flat_map(|kernel| {
            let mut failures = table.failures(&machine, kernel);
            failures.extend(repetition_failure(&machine, kernel));
            failures
        });
        assert_none(&failures.collect::<Vec<_>>());
    }
}

/// Sums over pairs, and their derivatives.
#[test]
fn sums_over_pairs_are_right_on_every_gpu() {
    let _alone = alone();
    let Ok(gpus) = cuda_driver::devices() else {
        return; // said aloud above
    };
    let cases = CaseOfPairs::all(16_384);
    for gpu in gpus {
        let machine = machine_of(gpu.ordinal);
        for kernel in KernelOfPairs::OF_DEVICES {
            let verdict = judge_pairs(&machine, &kernel, &cases).expect("runs");
            let named = |(case, why)| format!("{}: {case}: {why}", kernel.name);
            let failures = verdict.failures.into_iter().map(named);
            assert_none(&failures.collect::<Vec<_>>());
        }
    }
}

/// Test particles that take many steps at a time take those that launches make one after another, bit for
/// bit, and go where the CPU takes them.
#[test]
fn test_particles_take_many_steps_as_one() {
    let _alone = alone();
    let Ok(selection) = select(&Request::new(0).on(DeviceChoice::Cuda(0))) else {
        return; // said aloud above
    };
    let mut bodies = plummer(20_000, 5).expect("in range");
    for (i, mass) in bodies.mass.iter_mut().enumerate() {
        *mass = if i % 2000 == 7 { 0.1 } else { 0.0 };
    }
    let machine = Machine::new(selection.place);
    for (softening, integrator) in [(0.02, Integrator::Leapfrog), (0.0, Integrator::Yoshida4)] {
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening,
        };
        let step = integrator.operations(1e-3);
        let mut cpu = Cpu::<f64>::new(&bodies, physics);
        integrator.prepare(&mut cpu).expect("the CPU computes");
        cpu.repeat(30, &step).expect("the CPU computes");
        let mut right = bodies.clone();
        cpu.download(&mut right).expect("the CPU computes");
        for (name, bound) in [("test-particles", 1e-3), ("test-particles-f64", 1e-9)] {
            let kernel = catalogue().find(name).expect("listed");
            let start = || {
                let mut backend = machine.backend(kernel, &bodies, physics).expect("it fits");
                integrator.prepare(&mut *backend).expect("it runs");
                backend
            };
            let (mut single, mut many) = (start(), start());
            for &operation in (0..30).flat_map(|_| &step) {
                single.perform(operation).expect("it runs");
            }
            many.repeat(17, &step).expect("it runs");
            many.repeat(13, &step).expect("it runs");
            let (single, end) = (single.save().expect("saved"), many.save().expect("saved"));
            assert!(single == end, "{name}, {softening}: other bits");
            let mut found = bodies.clone();
            many.download(&mut found).expect("downloaded");
            // The median: a close encounter makes any two orbits differ.
            let mut errors: Vec<f64> = (found.iter().zip(right.iter()))
                .map(|(a, b)| (a.position[0] - b.position[0]).abs())
                .collect();
            errors.sort_by(f64::total_cmp);
            let median = errors[errors.len() / 2];
            assert!(median <= bound, "{name}, {softening}: {median:e}");
        }
    }
}

/// On the first GPU taken for two, and on all GPUs together: forces within their bounds, and of kernels of
/// fixed order the bits of one GPU, after steps that nothing but events orders between the GPUs.
#[test]
fn several_gpus_compute_as_one() {
    const BODIES: usize = 20_000;
    let _alone = alone();
    let place = |device| Some(select(&Request::new(0).on(device)).ok()?.place);
    let Some(one) = place(DeviceChoice::Cuda(0)) else {
        return; // said aloud above
    };
    let twice = GpuNumbers::new(&[0, 0, 0]).map(DeviceChoice::Gpus);
    let several = [twice, Some(DeviceChoice::AllGpus)].into_iter().flatten();
    let table = Table::new(256, 16_384);
    let bodies = plummer(BODIES, 5).expect("in range");
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.02,
    };
    let one = Machine::new(one);
    for machine in several.filter_map(place).map(Machine::new) {
        if machine.place().devices() < 2 {
            let _ = writeln!(std::io::stderr(), "SKIPPED all GPUs together: there is one");
            continue;
        }
        let can_run = |v: &&Variant| eligible(v, machine.place(), ForceLaw::Gravity).is_ok();
        for kernel in catalogue().all().filter(can_run) {
            if !kernel.can_be_shared() {
                continue; // one of many systems
            }
            assert_none(&table.failures(&machine, kernel));
            let fixed =
                kernel.name.starts_with("hermite") || kernel.name.ends_with("deterministic");
            if !fixed {
                continue;
            }
            let integrator = match kernel.gives_jerks() {
                true => Integrator::Hermite4,
                false => Integrator::Leapfrog,
            };
            let [alone, together] = [&one, &machine].map(|machine| {
                let mut backend = machine.backend(kernel, &bodies, physics).expect("runs");
                integrator.prepare(&mut *backend).expect("runs");
                let step = integrator.operations(0.001);
                backend.repeat(100, &step).expect("runs");
                (
                    backend.save().expect("there"),
                    backend.energy().expect("runs"),
                )
            });
            assert!(alone == together, "{} on {}", kernel.name, machine.place());
        }
    }
}

/// On the first GPU: bodies merge and escape as on the CPU, and the field 1pn is that of the CPU, in fixed steps,
/// steps that vary and block time steps; and again with the same bits.
#[test]
fn bodies_merge_and_feel_relativity_on_a_gpu() {
    let _alone = alone();
    if select(&Request::new(0).on(DeviceChoice::Cuda(0))).is_err() {
        return; // said aloud above
    }
    let mut bodies = king(400, 3, 6.0).expect("in range");
    bodies.mass[0] = 0.05;
    let mut radii = vec![0.0; 400];
    // Pairs that meet after a tenth of a time unit or less, and one body that leaves.
    for i in 1..20 {
        (bodies.x[100 + i], bodies.vx[100 + i]) = (bodies.x[i] + 0.03, bodies.vx[i] - 0.5);
        (bodies.y[100 + i], bodies.vy[100 + i]) = (bodies.y[i], bodies.vy[i]);
        (bodies.z[100 + i], bodies.vz[100 + i]) = (bodies.z[i], bodies.vz[i]);
        (radii[i], radii[100 + i]) = (0.004, 0.004);
    }
    (bodies.x[399], bodies.vx[399]) = (5.9, 4.0);
    let meets = Encounters {
        radii,
        on_collision: OnCollision::Merge,
        escape: Some((6.0, OnEscape::Remove)),
    };
    let blocks = |builder: SimulationBuilder| builder.dt(0.125).block_steps();
    type With<'a> = &'a dyn Fn(SimulationBuilder) -> SimulationBuilder;
    let cases: [(&str, With<'_>); 6] = [
        ("leapfrog", &|b| b.encounters(meets.clone())),
        ("hermite4", &|b| {
            b.integrator(Integrator::Hermite4).encounters(meets.clone())
        }),
        ("hermite6 in blocks", &|b| {
            blocks(b.integrator(Integrator::Hermite6).eta(0.1)).encounters(meets.clone())
        }),
        ("1pn", &|b| {
            let field = ExternalField::first_post_newtonian(0, 10.0);
            b.integrator(Integrator::Hermite4).field(field)
        }),
        ("1pn, hermite4 in blocks", &|b| {
            let field = ExternalField::first_post_newtonian(0, 10.0);
            blocks(b.integrator(Integrator::Hermite4).eta(0.01)).field(field)
        }),
        ("1pn, hermite6 in blocks", &|b| {
            let field = ExternalField::first_post_newtonian(0, 10.0);
            blocks(b.integrator(Integrator::Hermite6).eta(0.1)).field(field)
        }),
    ];
    for (name, with) in cases {
        let run = |device| {
            let builder = Simulation::builder(bodies.clone())
                .gravity(1.0, 0.02)
                .accuracy(ForceAccuracy::Double)
                .device(device)
                .dt(0.002);
            let mut simulation = with(builder).build().expect("it runs there");
            let before = simulation.conserved().expect("an energy");
            simulation.run_until(0.25).expect("a run");
            let after = simulation.conserved().expect("an energy");
            let events = simulation.take_events();
            let drift = after.drift_since(&before).energy;
            (simulation.bodies().expect("here").clone(), events, drift)
        };
        let (expected, events, drift) = run(DeviceChoice::Cpu);
        let (found, told, of_gpu) = run(DeviceChoice::Cuda(0));
        let (again, ..) = run(DeviceChoice::Cuda(0));
        assert_eq!(found.id, expected.id, "{name}");
        assert_eq!(told.len(), events.len(), "{name}");
        assert!(told.is_empty() == name.starts_with("1pn"), "{name}");
        let apart = |a: Body, b: Body| {
            let square = |k: usize| (a.position[k] - b.position[k]).powi(2);
            (0..3).map(square).sum::<f64>().sqrt()
        };
        let pairs = found.iter().zip(expected.iter());
        let worst = pairs.map(|(a, b)| apart(a, b)).fold(0.0, f64::max);
        println!("{name}: {worst:e} apart, energies drift by {drift:e} and {of_gpu:e}");
        assert!(worst <= 1e-7, "{name}: {worst:e}");
        assert!(of_gpu <= 2.0 * drift + 1e-9, "{name}: {of_gpu:e} {drift:e}");
        // Leapfrog's kernel may add atomically.
        assert!(again == found || name == "leapfrog", "{name}: other bits");
    }
}

/// On the first GPU taken for three, and on all GPUs together: block time steps end where those of one GPU
/// do, to the digits of pairs, each run with the bits of the one before, also when it goes on from what was
/// saved.
#[test]
fn several_gpus_take_block_steps_together() {
    let _alone = alone();
    let place = |device| Some(select(&Request::new(0).on(device)).ok()?.place);
    let Some(one) = place(DeviceChoice::Cuda(0)) else {
        return; // said aloud above
    };
    let thrice = GpuNumbers::new(&[0, 0, 0]).map(DeviceChoice::Gpus);
    let several = [thrice, Some(DeviceChoice::AllGpus)].into_iter().flatten();
    let kernel = catalogue().find("hermite-f64").expect("listed");
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 1e-3,
    };
    let several: Vec<_> = several.filter_map(place).collect();
    for (integrator, bodies, eta, accuracy, bound) in [
        (Integrator::Hermite4, 3_001, 0.01, None, 1e-7),
        (Integrator::Hermite6, 20_000, 0.3, None, 1e-7),
        (
            Integrator::Hermite6,
            3_001,
            0.3,
            Some(ForceAccuracy::Double),
            1e-11,
        ),
    ] {
        let bodies = plummer(bodies, 5).expect("in range");
        let start = |place: &Place| {
            let machine = Machine::new(place.clone());
            let machine = machine.block_steps(integrator, TimeSteps::Blocks, Some(eta), accuracy);
            let mut backend = machine.backend(kernel, &bodies, physics).expect("runs");
            integrator.prepare(&mut *backend).expect("runs");
            backend
        };
        let advance = |backend: &mut dyn Backend| {
            let blocks = backend.block_steps().expect("taken there");
            blocks.advance(1.0 / 128.0, eta).expect("long enough");
            backend.save().expect("there")
        };
        let mut alone = start(&one);
        let expected = [0; 2].map(|_| advance(&mut *alone));
        for place in &several {
            if place.devices() < 2 {
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED block time steps of all GPUs together: there is one"
                );
                continue;
            }
            let mut together = start(place);
            let ends = [0; 2].map(|_| advance(&mut *together));
            for (end, expected) in ends.iter().zip(&expected) {
                let both = end.positions().iter().zip(expected.positions());
                let off = both.flat_map(|(a, b)| (0..3).map(|k| (a[k] - b[k]).abs()));
                let off = off.fold(0.0, f64::max);
                assert!(off <= bound, "{place}: {off:e}");
            }
            let mut again = start(place);
            assert!(advance(&mut *again) == ends[0], "{place}: other bits");
            again.restore(&ends[0]).expect("of the same bodies");
            assert!(
                advance(&mut *again) == ends[1],
                "{place}: resumed, other bits"
            );
        }
    }
}

/// On the first GPU taken for three, and on all GPUs together: the bits of one GPU in a neighbour scheme, also of a
/// run that goes on.
#[test]
fn several_gpus_have_neighbours_together() {
    let _alone = alone();
    let place = |device| Some(select(&Request::new(0).on(device)).ok()?.place);
    let Some(one) = place(DeviceChoice::Cuda(0)) else {
        return; // said aloud above
    };
    // Of two GPUs block steps are recorded.
    let numbers: [&[u32]; 2] = [&[0, 0, 0], &[0, 1]];
    let several = numbers.map(|numbers| GpuNumbers::new(numbers).map(DeviceChoice::Gpus));
    let several = several
        .into_iter()
        .chain([Some(DeviceChoice::AllGpus)])
        .flatten();
    let kernel = catalogue().find("hermite-f64").expect("listed");
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 1e-3,
    };
    for (bodies, eta) in [(1_001, 0.04), (40_000, 0.16)] {
        let bodies = plummer(bodies, 5).expect("in range");
        let start = |place: &Place| {
            let (integrator, steps) = (Integrator::Hermite4, TimeSteps::Blocks);
            let machine =
                Machine::new(place.clone()).block_steps(integrator, steps, Some(eta), None);
            let machine = machine.neighbours(Some(Neighbours::Auto));
            let mut backend = machine.backend(kernel, &bodies, physics).expect("runs");
            integrator.prepare(&mut *backend).expect("runs");
            backend
        };
        let advance = |backend: &mut dyn Backend| {
            let blocks = backend.block_steps().expect("taken there");
            blocks.advance(1.0 / 64.0, eta).expect("long enough");
            backend.save().expect("there")
        };
        let mut alone = start(&one);
        let expected = [0; 2].map(|_| advance(&mut *alone));
        for place in several.clone().filter_map(place) {
            if place.devices() < 2 {
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED neighbours on all GPUs together: there is one"
                );
                continue;
            }
            let mut together = start(&place);
            let ends = [0; 2].map(|_| advance(&mut *together));
            assert!(ends == expected, "{place}: other bits");
            together.restore(&ends[0]).expect("of the same bodies");
            assert!(
                advance(&mut *together) == ends[1],
                "{place}: resumed, other bits"
            );
        }
    }
}

/// Where the host launches the forces of regular steps, bodies end where the CPU's neighbour scheme has them. Each run
/// has the same bits, and a resumed run too.
#[test]
fn many_bodies_have_neighbours() {
    let _alone = alone();
    let Ok(one) = select(&Request::new(0).on(DeviceChoice::Cuda(0))) else {
        return; // said aloud above
    };
    const ETA: f64 = 0.04;
    let bodies = plummer(BY_HOST_FROM as usize + 1, 6).expect("in range");
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 1e-3,
    };
    let start = |place: Place, kernel: &str| {
        let kernel = catalogue().find(kernel).expect("listed");
        let machine = Machine::new(place);
        let machine = machine.block_steps(Integrator::Hermite4, TimeSteps::Blocks, Some(ETA), None);
        let machine = machine.neighbours(Some(Neighbours::Auto));
        let mut backend = machine.backend(kernel, &bodies, physics).expect("runs");
        Integrator::Hermite4.prepare(&mut *backend).expect("runs");
        backend
    };
    let advance = |backend: &mut dyn Backend| {
        let blocks = backend.block_steps().expect("taken there");
        let counts = blocks.advance(1.0 / 256.0, ETA).expect("long enough");
        assert!(counts.regular > bodies.len() as u64 / 4, "{counts:?}");
        backend.save().expect("there")
    };
    let mut gpu = start(one.place.clone(), "hermite-f64");
    let ends = [0; 2].map(|_| advance(&mut *gpu));
    let mut again = start(one.place, "hermite-f64");
    assert!(advance(&mut *again) == ends[0], "other bits");
    again.restore(&ends[0]).expect("of the same bodies");
    assert!(advance(&mut *again) == ends[1], "resumed, other bits");
    let mut cpu = start(Place::CPU, "cpu-f64");
    for _ in 0..2 {
        advance(&mut *cpu);
    }
    let [found, expected] = [gpu, cpu].map(|mut backend| {
        let mut bodies = bodies.clone();
        backend.download(&mut bodies).expect("there");
        bodies
    });
    let off = found
        .iter()
        .zip(expected.iter())
        .flat_map(|(a, b)| (0..3).map(move |k| (a.position[k] - b.position[k]).abs()));
    let off = off.fold(0.0, f64::max);
    assert!(off < 2e-7, "a body is {off:e} from where the CPU has it");
}

/// Single stars without softening have neighbours until a hard pair has formed, and then pairs are followed apart.
#[test]
fn single_stars_have_neighbours_until_pairs_form() {
    let _alone = alone();
    if select(&Request::new(0).on(DeviceChoice::Cuda(0))).is_err() {
        return; // said aloud above
    }
    let stars = |bodies| {
        Simulation::builder(bodies)
            .softening(0.0)
            .integrator(Integrator::Hermite4)
            .block_steps()
            .eta(0.04)
            .neighbours(Neighbours::Auto)
            .dt(0.0625)
            .device(DeviceChoice::Cuda(0))
    };
    let mut simulation = stars(plummer(4096, 1).expect("in range"))
        .build()
        .expect("sound");
    let energy = |simulation: &mut Simulation| simulation.energy().expect("computed").total();
    let before = energy(&mut simulation);
    simulation.run_until(0.25).expect("steps are taken");
    assert!(simulation.block_counts().regular > 4096);
    assert_eq!(simulation.followed_from(), None);
    let off = energy(&mut simulation) / before - 1.0;
    assert!(off.abs() < 1e-7, "{off:e}");
    // A pair with some ten times the energy of a star.
    let (mass, apart) = (1.0 / 4096.0, 2e-5);
    let speed = f64::sqrt(mass / (2.0 * apart));
    let body = |id: u64, side: f64| Body {
        position: [0.5 + 0.5 * side * apart, 0.3, 0.0],
        velocity: [0.0, side * speed, 0.0],
        mass,
        id,
        kind: BodyKind::Star,
    };
    let pair = [body(5000, -1.0), body(5001, 1.0)].into_iter().collect();
    simulation.add(&pair, &[]).expect("there is room");
    let before = energy(&mut simulation);
    simulation.run_until(0.3125).expect("steps are taken");
    assert_eq!(simulation.followed_from(), Some(0.25));
    let off = energy(&mut simulation) / before - 1.0;
    assert!(off.abs() < 1e-6, "{off:e}");
    let (clock, state) = simulation.save().expect("saved");
    let bodies = simulation.bodies().expect("there").clone();
    let mut again = stars(bodies).resume(clock, &state).expect("sound");
    for simulation in [&mut simulation, &mut again] {
        simulation.run_until(0.375).expect("steps are taken");
    }
    assert!(simulation.bodies().expect("there") == again.bodies().expect("there"));
}

/// On the first GPU, and on all GPUs together: a simulation that is kicked, changed, made smaller and larger on its
/// way ends where the CPU has it, with the same energy brought.
#[test]
fn a_simulation_changes_on_a_gpu() {
    let _alone = alone();
    if select(&Request::new(0).on(DeviceChoice::Cuda(0))).is_err() {
        return; // said aloud above
    }
    type Kind = (
        &'static str,
        fn(SimulationBuilder) -> SimulationBuilder,
        f64,
    );
    let kinds: [Kind; 6] = [
        ("leapfrog", |b| b.softening(0.02).dt(1.0 / 256.0), 1e-12),
        (
            "hermite4 in blocks",
            |b| in_blocks(b, Integrator::Hermite4).softening(0.01),
            2e-6,
        ),
        (
            "hermite6 in blocks",
            |b| in_blocks(b, Integrator::Hermite6).softening(0.01),
            2e-6,
        ),
        (
            "neighbours",
            |b| {
                in_blocks(b, Integrator::Hermite4)
                    .softening(0.01)
                    .neighbours(Neighbours::Auto)
                    .accuracy(ForceAccuracy::Single)
            },
            2e-5,
        ),
        (
            "groups",
            |b| {
                in_blocks(b, Integrator::Hermite4)
                    .softening(0.0)
                    .groups(true)
            },
            2e-6,
        ),
        (
            "groups at sixth order",
            |b| {
                in_blocks(b, Integrator::Hermite6)
                    .softening(0.0)
                    .groups(true)
            },
            2e-6,
        ),
    ];
    for (name, with, bound) in kinds {
        let run = |device| {
            let builder = Simulation::builder(with_pairs(1_500, 30))
                .accuracy(ForceAccuracy::Double)
                .integrator(Integrator::Leapfrog);
            // A neighbour scheme in f64 is the CPU's alone.
            let builder = match with(builder) {
                builder if device == DeviceChoice::Cpu => builder.accuracy(ForceAccuracy::Double),
                builder => builder,
            };
            let mut simulation = builder.device(device).build().expect("it runs there");
            let mut schedule = Schedule::new();
            schedule.insert(40, 0.0171);
            schedule.insert(3, 0.0171);
            simulation.run_until(1.0 / 64.0).expect("steps");
            let halved = |body: &DueBody| {
                Ok::<_, Infallible>(BodyChange {
                    mass: Some(body.mass / 2.0),
                    kick: Some([0.1, 0.0, -0.05]),
                    ..BodyChange::default()
                })
            };
            let go_on = |_| ControlFlow::Continue(());
            let ran = simulation.run_scheduled(0.018, &mut schedule, halved, go_on);
            assert_eq!(ran.expect("steps").1.done, 2, "{name}");
            let kicks = [[0.01, -0.02, 0.0], [0.0, 0.0, 0.03]];
            simulation.kick_some(&[5, 77], &kicks).expect("a kick");
            let to = NewValues {
                masses: Some(&[2e-3]),
                positions: Some(&[[0.3, 0.2, -0.4]]),
                ..NewValues::default()
            };
            simulation.set(&[9], to).expect("a change");
            simulation.run_until(0.022).expect("steps");
            simulation.remove(&[8, 100, 2]).expect("they are there");
            let mut more = Bodies::at_rest(&[[0.5, -0.6, 0.7], [1.0, 0.1, 0.2]], &[1e-3; 2]);
            more.id = simulation.free_ids(2);
            simulation.add(&more, &[]).expect("a place");
            simulation.run_until(1.0 / 32.0).expect("steps");
            let brought = simulation.brought().energy;
            (simulation.bodies().expect("here").clone(), brought)
        };
        let (expected, energy) = run(DeviceChoice::Cpu);
        for device in [DeviceChoice::Cuda(0), DeviceChoice::AllGpus] {
            let (found, brought) = run(device);
            assert_eq!(found.id, expected.id, "{name} on {device}");
            let apart = |a: Body, b: Body| {
                let square = |k: usize| (a.position[k] - b.position[k]).powi(2);
                (0..3).map(square).sum::<f64>().sqrt()
            };
            let pairs = found.iter().zip(expected.iter());
            let worst = pairs.map(|(a, b)| apart(a, b)).fold(0.0, f64::max);
            println!(
                "{name} on {device}: {worst:e} apart, {:e} brought otherwise",
                brought - energy
            );
            assert!(worst <= bound, "{name} on {device}: {worst:e}");
            assert!(
                (brought - energy).abs() <= 10.0 * bound * energy.abs(),
                "{name} on {device}"
            );
        }
    }
}

fn in_blocks(builder: SimulationBuilder, integrator: Integrator) -> SimulationBuilder {
    let eta = if integrator == Integrator::Hermite6 {
        0.3
    } else {
        0.02
    };
    let builder = builder.integrator(integrator).eta(eta).dt(1.0 / 64.0);
    builder.block_steps().groups(false)
}

/// A Plummer sphere in which each of the first bodies has a partner on a circle about it.
fn with_pairs(bodies: usize, pairs: usize) -> Bodies {
    let mut bodies = plummer(bodies, 9).expect("in range");
    let n = bodies.len();
    for i in 0..pairs {
        let (one, other) = (bodies.body(i), n - 1 - i);
        let d = 1e-3 * (1.0 + 0.1 * i as f64);
        let speed = (2.0 * one.mass / d).sqrt();
        (bodies.x[other], bodies.y[other], bodies.z[other]) =
            (one.position[0] + d, one.position[1], one.position[2]);
        (bodies.vx[other], bodies.vy[other], bodies.vz[other]) =
            (one.velocity[0], one.velocity[1] + speed, one.velocity[2]);
    }
    bodies
}

/// Pairs are followed apart by several GPUs as by one, and by the same GPUs to the last bit: in large blocks, which GPUs
/// share out, and in small ones, which the first GPU computes.
#[test]
fn several_gpus_have_groups_together() {
    let _alone = alone();
    if select(&Request::new(0).on(DeviceChoice::Cuda(0))).is_err() {
        return; // said aloud above
    }
    for integrator in [Integrator::Hermite4, Integrator::Hermite6] {
        let run = |device: DeviceChoice| {
            let builder = in_blocks(Simulation::builder(with_pairs(20_000, 200)), integrator);
            let builder = builder.softening(0.0).groups(true).dt(1.0 / 512.0);
            let mut simulation = builder.device(device).build().expect("it runs there");
            simulation.run_until(1.0 / 256.0).expect("steps");
            (
                simulation.save().expect("there").1,
                simulation.block_counts(),
            )
        };
        let (one, _) = run(DeviceChoice::Cuda(0));
        for numbers in [&[0, 0, 0][..], &[0, 1]] {
            let several = GpuNumbers::new(numbers).map(DeviceChoice::Gpus);
            let several = several.expect("different enough");
            if select(&Request::new(0).on(several)).is_err() {
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED groups on two GPUs: there is one"
                );
                continue;
            }
            let (state, counts) = run(several);
            let [found, expected] = [&state, &one].map(|state| state.positions().as_flattened());
            let pairs = found.iter().zip(expected);
            let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            println!("{integrator:?} on {numbers:?}: {counts:?}, {apart:e} apart");
            assert!(apart < 1e-9, "{integrator:?} on {numbers:?}: {apart:e}");
            assert!(run(several) == (state, counts), "other bits on {numbers:?}");
        }
    }
}

/// On the first GPU: members of pairs merge at the times at which they merge on the CPU.
#[test]
fn members_of_pairs_merge_on_a_gpu() {
    let _alone = alone();
    if select(&Request::new(0).on(DeviceChoice::Cuda(0))).is_err() {
        return; // said aloud above
    }
    let pairs = 10;
    let mut bodies = with_pairs(600, pairs);
    let mut radii = vec![0.0; 600];
    for i in 0..pairs {
        // At the apocentre, and almost without angular momentum: they fall onto each other.
        let other = 599 - i;
        bodies.vy[other] = bodies.vy[i] + 0.01 * (bodies.vy[other] - bodies.vy[i]);
        (radii[i], radii[other]) = (2e-6, 1e-6);
    }
    let run = |device| {
        let builder = in_blocks(Simulation::builder(bodies.clone()), Integrator::Hermite4);
        let encounters = Encounters {
            radii: radii.clone(),
            on_collision: OnCollision::Merge,
            escape: None,
        };
        let builder = builder.softening(0.0).groups(true).encounters(encounters);
        let mut simulation = builder.device(device).build().expect("it runs there");
        let before = simulation.conserved().expect("an energy");
        simulation.run_until(1.0 / 16.0).expect("steps");
        let after = simulation.conserved().expect("an energy");
        let ids = simulation.bodies().expect("here").id.clone();
        (
            simulation.take_events(),
            ids,
            after.drift_since(&before).energy,
        )
    };
    let (expected, ids, drift) = run(DeviceChoice::Cpu);
    let (found, ids_there, of_gpu) = run(DeviceChoice::Cuda(0));
    println!(
        "{} mergers, energies drift by {drift:e} and {of_gpu:e}",
        found.len()
    );
    assert_eq!(expected.len(), pairs);
    assert_eq!((found.len(), &ids_there), (pairs, &ids));
    for (a, b) in found.iter().zip(&expected) {
        assert!((a.time - b.time).abs() < 1e-9, "{a} {b}");
    }
    assert!(drift.abs() < 1e-7 && of_gpu.abs() < 1e-7);
}

/// On the first GPU: the error that kernels with all pairs on tensor cores state holds down to the smallest
/// softening that they accept. Below it the errors are only told. `tensor` is the next test's.
#[test]
fn tensor_cores_keep_to_their_error() {
    let _alone = alone();
    let Ok(selection) = select(&Request::new(0).on(DeviceChoice::Cuda(0))) else {
        return; // said aloud above
    };
    let machine = Machine::new(selection.place).allow_inaccurate(true);
    let can_run = |v: &&Variant| eligible(v, machine.place(), ForceLaw::Gravity).is_ok();
    let on_tensor_cores = allpairs::variants::VARIANTS
        .iter()
        .filter(can_run)
        .filter(|v| v.is_tensor());
    for variant in on_tensor_cores {
        for n in [16_384, 65_536] {
            for part in [8, 16, 31, 64, 128, 1024].map(|d| 1.0 / f64::from(d)) {
                for case in softened(n, part) {
                    let error = rms_error(&machine, variant, &case);
                    let (name, what) = (variant.name, &case.name);
                    let line = format!("{name}, N = {n}, {what}: rms error {error:.2e}");
                    let _ = writeln!(std::io::stderr(), "{line}");
                    let stated = variant.in_range(&case.bodies, &case.physics).is_ok();
                    assert!(!stated || error <= variant.stated_error(n), "{line}");
                    assert!(error.is_finite(), "{line}");
                }
            }
        }
    }
}

/// On the first GPU: the error that is stated of `tensor`, for systems that are hard in different ways,
/// beside what rounded positions cost `symmetric` too. Its root mean square is at most that, and half as
/// much again in clumps, where many distances are alike and so are their roundings; of 99 % of the
/// bodies it is below 10⁻⁴, and forces are too large or too small by no more than 5·10⁻⁶ in the mean.
#[test]
fn far_pairs_keep_to_their_error() {
    const BODIES: usize = 131_072;
    const TARGETS: usize = 1024;
    let _alone = alone();
    let Ok(selection) = select(&Request::new(0).on(DeviceChoice::Cuda(0))) else {
        return; // said aloud above
    };
    let machine = Machine::new(selection.place);
    let [variant, symmetric] =
        ["tensor", "symmetric"].map(|name| catalogue().find(name).expect("listed"));
    if eligible(variant, machine.place(), ForceLaw::Gravity).is_err() {
        return; // an old GPU
    }
    let cluster = plummer(BODIES, 11).expect("in range");
    let altered = |of: &Bodies, change: &dyn Fn(usize, &mut Body)| {
        let mut bodies = Bodies::with_capacity(BODIES);
        for (i, mut body) in of.iter().enumerate() {
            change(i, &mut body);
            bodies.push(body);
        }
        bodies
    };
    let cube = cloud(BODIES);
    let centres: Vec<[f64; 3]> = cube.iter().take(16).map(|body| body.position).collect();
    let clumps = altered(&cube, &|i, body| {
        body.position = [0, 1, 2].map(|axis| centres[i % 16][axis] + 0.01 * body.position[axis]);
    });
    let systems = [
        ("16 clumps", clumps),
        (
            "King model, W0 = 9",
            king(BODIES, 3, 9.0).expect("in range"),
        ),
        (
            "disk galaxy",
            disk_galaxy(BODIES, 3, 1.5).expect("in range"),
        ),
        (
            "masses over twelve decades",
            altered(&cluster, &|i, body| {
                body.mass = 10f64.powf(-12.0 * (i as f64 * 0.618_034).fract());
            }),
        ),
        (
            "far from the origin",
            altered(&cluster, &|_, body| body.position[0] += 1e4),
        ),
        ("Plummer sphere", cluster),
        ("cube", cube),
    ];
    let mut failures = vec![];
    for (name, bodies) in systems {
        for softening in [0.0, 0.01, 0.1] {
            let physics = Physics {
                law: ForceLaw::Gravity,
                g: 1.0,
                softening,
            };
            let targets: Vec<usize> = (0..TARGETS)
                .map(|k| k * (BODIES / TARGETS) + k % 97)
                .collect();
            let expected = accelerations_of(&bodies, &physics, &targets);
            let [
                (rms, of_most, bias),
                (rms_of_positions, most_of_positions, _),
            ] = [variant, symmetric].map(|variant| {
                let mut backend = machine.backend(variant, &bodies, physics).expect("it fits");
                backend.accelerate().expect("it runs");
                let computed = backend.accelerations().expect("it runs");
                let computed = targets.iter().map(|&i| computed[i]);
                errors(computed.zip(expected.iter().map(|field| field.acceleration)))
            });
            let line = format!(
                "{name}, ε = {softening}: rms {rms:.1e}, 99 % within {of_most:.1e}, bias {bias:.1e}; \
                 `symmetric` {rms_of_positions:.1e}, {most_of_positions:.1e}"
            );
            let _ = writeln!(std::io::stderr(), "{line}");
            let more = if name == "16 clumps" { 1.5 } else { 1.0 };
            let stated = more * variant.stated_error(BODIES);
            if !(rms <= rms_of_positions.hypot(stated)
                && of_most <= most_of_positions.hypot(1e-4)
                && bias.abs() <= 5e-6)
            {
                failures.push(line);
            }
        }
    }
    assert_none(&failures);
}

/// Root mean square of the relative errors of computed vectors beside the right ones, what 99 % of them
/// are within, and the mean of their parts along the right ones.
fn errors(pairs: impl Iterator<Item = ([f64; 3], [f64; 3])>) -> (f64, f64, f64) {
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let (mut squares, along): (Vec<f64>, Vec<f64>) = pairs
        .map(|(computed, right)| {
            let error = [0, 1, 2].map(|axis| computed[axis] - right[axis]);
            let square = dot(right, right);
            (dot(error, error) / square, dot(error, right) / square)
        })
        .unzip();
    squares.sort_by(f64::total_cmp);
    let count = squares.len();
    let mean = |of: &[f64]| of.iter().sum::<f64>() / count as f64;
    let most = squares[count * 99 / 100].sqrt();
    (mean(&squares).sqrt(), most, mean(&along))
}

/// On the first GPU: some copies of `overlap` and `prefetch` run while kernels of other systems do,
/// which those of `fast-math` never do; and all rungs give the same numbers.
#[test]
fn copies_and_kernels_overlap() {
    let _alone = alone();
    const SYSTEMS: u32 = 32;
    const LOOKS: u32 = 5;
    // Times of events are rounded: less is no overlap.
    const TOLD: f64 = 1e-7;
    let Ok(selection) = select(
        &Request::new(0)
            .on(DeviceChoice::Cuda(0))
            .law(ForceLaw::Unit),
    ) else {
        return; // said aloud above
    };
    let machine = Machine::new(selection.place);
    let (case, dt) = many_systems(SYSTEMS, 8192, ForceLaw::Unit);
    let spans = |rung: &str| {
        let kernel = catalogue().find(rung).expect("listed").of_systems(SYSTEMS);
        let mut backend = machine
            .backend(&kernel, &case.bodies, case.physics)
            .expect("it fits");
        let pipeline = backend.pipeline().expect("of many systems");
        pipeline.seconds(dt, 2).expect("it runs"); // loads what is to be loaded
        pipeline.timeline(dt, 2).expect("it runs")
    };
    for (rung, overlaps) in [
        ("galaxies/fast-math", false),
        ("galaxies/overlap", true),
        ("galaxies/prefetch", true),
    ] {
        let mut line = String::new();
        let mut look = || {
            let spans = spans(rung);
            let shared = overlap(&spans);
            // Not only by marks of streams that wait for room: the first kernel finds the GPU idle, so
            // it runs when its stream gets to it, and some system is still on its way.
            let kernels = spans.iter().filter(|span| !span.what.is_copy());
            let first = kernels.map(|s| s.start).fold(f64::INFINITY, f64::min);
            let copies = spans.iter().filter(|span| span.what == What::CopyIn);
            let last = copies.map(|s| s.end).fold(0.0, f64::max);
            line = format!(
                "{rung}: {:.1} µs of copies next to kernels, the first kernel {:.1} µs before the last copy ends",
                1e6 * shared,
                1e6 * (last - first)
            );
            (shared > TOLD, first < last)
        };
        // The host may be late once.
        let is_as_wanted = match overlaps {
            true => (0..LOOKS).any(|_| look() == (true, true)),
            false => (0..LOOKS).all(|_| !look().0),
        };
        let _ = writeln!(std::io::stderr(), "{line}");
        assert!(is_as_wanted, "{line}");
    }
}
