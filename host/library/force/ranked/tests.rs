//! Ranks as threads: the bits of a run alone, whichever rank computes what.

mod of_groups;
mod of_systems;
mod on_devices;

use super::*;
use crate::encounters::{Encounters, OnCollision, OnEscape};
use crate::fields::{ExternalField, Orbit};
use crate::force::cpu::samples::cloud;
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::machine::Machine;
use crate::physics::ForceLaw;
use crate::ranks::threads::together_with;
use crate::selection::Place;
use crate::simulation::{NewValues, Simulation};
use crate::variants::{self, CpuPath, PairsName, RootName, Threads};

const TEAMS: [&[usize]; 5] = [&[1], &[1, 1], &[3, 1, 2], &[1, 1, 1, 1], &[2, 1, 1, 5, 1]];

fn physics() -> Physics {
    Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.05,
    }
}

/// The path on CPUs of most tests.
pub(super) const IN_F64: CpuPath = CpuPath {
    precision: Precision::F64,
    root: RootName::Refined,
    pairs: PairsName::ByNumber,
    threads: Threads::All,
};

/// The bodies on all ranks of a team.
fn on_ranks(team: &Arc<Team>, bodies: &Bodies, path: CpuPath) -> Box<dyn Backend> {
    let in_fields = (bodies, &Fields::NONE);
    let backend = lead(team, in_fields, physics(), OnCpu::plain(path), 1);
    backend.expect("no fields")
}

/// Computes something on rank 0 of a team.
pub(crate) fn led<T: Send>(threads: &[usize], work: impl Fn(&Arc<Team>) -> T + Sync) -> T {
    let all = together_with(threads, |team| match team.rank() {
        0 => {
            let result = work(&team);
            part(&team);
            Some(result)
        }
        _ => {
            follow(&team);
            None
        }
    });
    all.into_iter().flatten().next().expect("rank 0's")
}

fn alone(bodies: &Bodies, path: CpuPath) -> Box<dyn Backend> {
    let choices = Choices::from(path);
    match path.precision {
        Precision::F64 => Box::new(Cpu::<f64>::with(bodies, physics(), choices)),
        _ => Box::new(Cpu::<f32>::with(bodies, physics(), choices)),
    }
}

fn accelerations(mut backend: Box<dyn Backend>) -> (Vec<[f64; 3]>, Energy) {
    backend.accelerate().expect("a CPU does not refuse");
    let accelerations = backend.accelerations().expect("computed");
    (
        accelerations,
        backend.energy().expect("a CPU does not refuse"),
    )
}

#[test]
fn accelerations_and_energies_are_those_of_one_process() {
    for precision in [Precision::F64, Precision::F32] {
        for pairs in [PairsName::Twice, PairsName::Once] {
            for n in [1, 2, 17, 257, 1300] {
                let bodies = cloud(n, n as u64);
                let path = CpuPath {
                    precision,
                    pairs,
                    ..IN_F64
                };
                let expected = accelerations(alone(&bodies, path));
                for threads in TEAMS {
                    let found = led(threads, |team| accelerations(on_ranks(team, &bodies, path)));
                    assert_eq!(
                        found, expected,
                        "{n} bodies, {precision:?}, {pairs:?}, {threads:?}"
                    );
                }
            }
        }
    }
}

/// The bits of a run: bodies, time and energy.
fn run(
    backend: Box<dyn Backend>,
    bodies: &Bodies,
    integrator: Integrator,
    pace: Pace,
) -> (Bodies, f64, Energy) {
    let simulation = Simulation::new(backend, bodies.clone(), physics(), integrator, pace, 0.0);
    let mut simulation = simulation.expect("a CPU does not refuse");
    (0..3).for_each(|_| simulation.step().expect("a CPU does not refuse"));
    let energy = simulation.energy().expect("a CPU does not refuse");
    let bodies = simulation.bodies().expect("they are here").clone();
    (bodies, simulation.time(), energy)
}

#[test]
fn runs_of_all_integrators_are_those_of_one_process() {
    let bodies = cloud(40, 1);
    let of_varying = |steps| Pace::Adaptive {
        eta: 0.02,
        longest: 0.03125,
        end: 10.0,
        steps,
    };
    let mut runs: Vec<_> = (Integrator::ALL.into_iter())
        .map(|integrator| (integrator, Pace::Fixed(0.01)))
        .collect();
    for integrator in [Integrator::Hermite4, Integrator::Hermite6] {
        runs.push((integrator, of_varying(TimeSteps::Shared)));
        runs.push((integrator, of_varying(TimeSteps::Blocks)));
    }
    for (integrator, pace) in runs {
        let backend = alone(&bodies, IN_F64);
        let expected = run(backend, &bodies, integrator, pace);
        for threads in [TEAMS[1], TEAMS[4]] {
            let found = led(threads, |team| {
                let backend = on_ranks(team, &bodies, IN_F64);
                run(backend, &bodies, integrator, pace)
            });
            assert_eq!(found, expected, "{integrator:?}, {pace:?}, {threads:?}");
        }
    }
}

/// All ranks go on with the bodies that are left.
#[test]
fn bodies_merge_and_escape_on_all_ranks() {
    let bodies = cloud(60, 2);
    let (integrator, pace) = (Integrator::Leapfrog, Pace::Fixed(0.01));
    let encounters = Encounters {
        radii: vec![0.04; bodies.len()],
        on_collision: OnCollision::Merge,
        escape: Some((2.5, OnEscape::Remove)),
    };
    for (place, kernel) in [
        (Place::CPU, "cpu-f64"),
        (
            Place::of_emulators(2).over_ranks(Way::Hosts),
            "symmetric-deterministic",
        ),
    ] {
        let kernel = variants::find(kernel).expect("listed");
        let run = |machine: Machine| {
            let backend = machine.backend(kernel, &bodies, physics()).expect("made");
            let simulation =
                Simulation::new(backend, bodies.clone(), physics(), integrator, pace, 0.0)
                    .expect("a run");
            let remake = move |bodies: &Bodies| machine.backend(kernel, bodies, physics());
            let mut simulation = simulation.remade_by(remake);
            simulation
                .look_for(encounters.clone())
                .expect("they can change");
            simulation.run_until(1.0).expect("a run");
            let lost = simulation.lost();
            (simulation.bodies().expect("here").clone(), lost)
        };
        let alone = match place.is_cpu() {
            true => Place::CPU,
            false => Place::of_emulators(2),
        };
        let expected = run(Machine::new(alone));
        assert!(expected.0.len() < bodies.len() - 3, "{}", expected.0.len());
        let found = led(&[1, 1], |team| {
            run(Machine::new(place.clone()).ranks(Arc::clone(team)))
        });
        assert!(found == expected, "{place}");
    }
}

/// Also where a change is refused that the other ranks have begun.
#[test]
fn changes_from_outside_are_made_on_all_ranks() {
    let shared = |machine: Machine| machine;
    let in_blocks = |machine: Machine| {
        let (integrator, steps) = (Integrator::Hermite4, TimeSteps::Blocks);
        machine.block_steps(integrator, steps, Some(0.02), None)
    };
    let cpus = [Place::CPU, Place::CPU];
    let devices = [
        Place::of_emulators(2),
        Place::of_emulators(2).over_ranks(Way::Hosts),
    ];
    changes_are_made(cpus.clone(), "cpu-f64", TimeSteps::Shared, shared);
    changes_are_made(cpus.clone(), "cpu-f64", TimeSteps::Blocks, in_blocks);
    let with_groups = |machine| in_blocks(machine).groups(true);
    changes_are_made(cpus, "cpu-f64", TimeSteps::Blocks, with_groups);
    changes_are_made(devices, "hermite-f64", TimeSteps::Blocks, in_blocks);
}

/// Changes on two ranks leave the bits of one process.
fn changes_are_made(
    [alone, on_ranks]: [Place; 2],
    kernel: &str,
    steps: TimeSteps,
    with: impl Fn(Machine) -> Machine + Sync,
) {
    let bodies = cloud(60, 2);
    let field = ExternalField::point(0.01).at([9.0, 0.0, 0.0]);
    let mut fields = Fields::NONE;
    fields.push(field);
    let pace = Pace::Adaptive {
        eta: 0.02,
        longest: 0.01,
        end: f64::INFINITY,
        steps,
    };
    let run = |machine: Machine| {
        let machine = with(machine.fields(fields.clone()));
        let kernel = variants::find(kernel).expect("listed");
        let backend = machine.backend(kernel, &bodies, physics()).expect("made");
        let integrator = Integrator::Hermite4;
        let simulation = Simulation::new(backend, bodies.clone(), physics(), integrator, pace, 0.0);
        let remake = move |bodies: &Bodies| machine.backend(kernel, bodies, physics());
        let mut simulation = simulation.expect("a run").remade_by(remake);
        simulation.run_until(0.1).expect("a run");
        simulation.kick(&vec![[0.1, 0.0, 0.2]; 60]).expect("a kick");
        let positions = Some(&[[9.0, 0.0, 0.0]][..]);
        let to = NewValues {
            positions,
            ..NewValues::default()
        };
        assert!(simulation.set(&[bodies.id[7]], to).is_err());
        simulation.remove(&[bodies.id[3]]).expect("there");
        simulation.run_until(0.2).expect("a run");
        let bits = simulation.bodies().expect("here").clone();
        (bits, simulation.brought())
    };
    let expected = run(Machine::new(alone));
    let found = led(&[1, 1], |team| {
        run(Machine::new(on_ranks.clone()).ranks(Arc::clone(team)))
    });
    assert!(found == expected, "{on_ranks} {steps:?}");
}

/// Where rank 0 breaks off, all do, and go on from what was saved.
#[test]
fn spans_are_left_together() {
    let (bodies, few) = (cloud(300, 3), cloud(12, 3));
    let (span, eta) = (2.0, 0.01);
    let place = Place::of_emulators(2).over_ranks(Way::Hosts);
    let on_devices = |team: &Arc<Team>| {
        let machine = Machine::new(place.clone()).ranks(Arc::clone(team));
        let steps = (Integrator::Hermite4, TimeSteps::Blocks);
        let machine = machine.block_steps(steps.0, steps.1, Some(eta), None);
        let kernel = variants::find("hermite-f64").expect("listed");
        machine.backend(kernel, &bodies, physics()).expect("runs")
    };
    let on_cpus = |team: &Arc<Team>, bodies: &Bodies| on_ranks(team, bodies, IN_F64);
    spans_are_left(|team| on_cpus(team, &bodies), (span, eta));
    spans_are_left(|team| on_cpus(team, &few), (32.0 * span, eta));
    spans_are_left(on_devices, (span, eta));
    let near = |place: &Place, kernel: &str, team: &Arc<Team>| {
        let machine = Machine::new(place.clone()).ranks(Arc::clone(team));
        let steps = (Integrator::Hermite4, TimeSteps::Blocks);
        let machine = machine.block_steps(steps.0, steps.1, Some(eta), None);
        let machine = machine.neighbours(Some("8".parse().expect("a number")));
        let kernel = variants::find(kernel).expect("listed");
        machine.backend(kernel, &bodies, physics()).expect("runs")
    };
    spans_are_left(|team| near(&Place::CPU, "cpu-f64", team), (span, eta));
    spans_are_left(|team| near(&place, "hermite-f64", team), (span, eta));
}

fn spans_are_left(
    backend: impl Fn(&Arc<Team>) -> Box<dyn Backend> + Sync,
    (span, eta): (f64, f64),
) {
    led(&[1, 1], |team| {
        let mut backend = backend(team);
        Integrator::Hermite4.prepare(&mut *backend).expect("runs");
        let saved = backend.save().expect("there");
        let blocks = block_steps(&mut *backend).expect("there");
        let mut looks = 0;
        let left = blocks.advance_unless(span, eta, &mut |share| {
            looks += 1;
            assert!((0.0..1.0).contains(&share), "{share}");
            ControlFlow::Break(())
        });
        assert_eq!(left.expect("runs"), None);
        assert!(looks > 0);
        backend.restore(&saved).expect("the same bodies");
        assert_eq!(backend.save().expect("there"), saved);
        let blocks = block_steps(&mut *backend).expect("there");
        blocks.advance(span / 512.0, eta).expect("runs");
        backend.energy().expect("all ranks hold the same bodies");
    });
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let bodies = cloud(70, 3);
    let integrator = Integrator::Hermite6;
    let pace = Pace::Fixed(0.01);
    let lead = |team: &Arc<Team>| on_ranks(team, &bodies, IN_F64);
    let end = |simulation: &mut Simulation| {
        simulation.step().expect("a CPU does not refuse");
        simulation.save().expect("it is here")
    };
    let begin = |backend| {
        let simulation = Simulation::new(backend, bodies.clone(), physics(), integrator, pace, 0.0);
        let mut simulation = simulation.expect("a CPU does not refuse");
        end(&mut simulation);
        simulation
    };
    let expected = end(&mut begin(alone(&bodies, IN_F64)));
    let (clock, state) = led(&[1, 1, 1], |team| {
        begin(lead(team)).save().expect("it is here")
    });
    for threads in TEAMS {
        let found = led(threads, |team| {
            let (backend, from) = (lead(team), (clock, &state));
            let bodies = bodies.clone();
            let simulation = Simulation::resume(backend, bodies, physics(), integrator, pace, from);
            end(&mut simulation.expect("a CPU does not refuse"))
        });
        assert_eq!(found, expected, "{threads:?}");
    }
}

/// So many interactions of each test particle that ranks share them: by many sources, and in many steps.
#[test]
fn test_particles_are_those_of_one_process() {
    for (massive, massless, steps) in [(2_100, 37, 1), (5, 700, 450)] {
        let mut bodies = cloud(massive + massless, 3);
        bodies.mass[..massless].fill(0.0);
        let end = |mut backend: Box<dyn Backend>| {
            let step = Integrator::Leapfrog.operations(1e-4);
            Integrator::Leapfrog
                .prepare(&mut *backend)
                .expect("a CPU does not refuse");
            backend.repeat(steps, &step).expect("a CPU does not refuse");
            backend.save().expect("it is here")
        };
        let expected = end(alone(&bodies, IN_F64));
        for threads in [TEAMS[1], TEAMS[2]] {
            let found = led(threads, |team| end(on_ranks(team, &bodies, IN_F64)));
            assert!(found == expected, "{massive} with mass, {threads:?}");
        }
    }
}

#[test]
fn signs_of_life_come_between_commands() {
    let bodies = cloud(40, 1);
    let found = led(&[1, 1], |team| {
        keep_in_touch(team);
        let mut backend = on_ranks(team, &bodies, IN_F64);
        thread::sleep(SIGN_OF_LIFE * 5 / 2);
        backend.accelerate().expect("a CPU does not refuse");
        backend.accelerations().expect("computed")
    });
    let alone = alone(&bodies, IN_F64);
    assert_eq!(found, accelerations(alone).0);
}

#[test]
fn fields_are_those_of_one_process() {
    let mut bodies = cloud(60, 5);
    bodies.mass[2] = 10.0;
    let fields: Fields = [
        ExternalField::nfw(3.0, 2.0).at([1.0, 0.0, 0.0]),
        ExternalField::first_post_newtonian(2, 50.0),
    ]
    .into_iter()
    .collect();
    // On it the origin turns soon.
    let fields = fields.on_orbit(Orbit::new([1.02, 0.0, 0.0], [0.0, 0.1, 0.0]));
    let choices = Choices::default();
    let external = External::of_bodies(&fields, &bodies, &physics()).expect("the heaviest");
    let alone = Cpu::<f64>::with(&bodies, physics(), choices).in_fields(external);
    let (integrator, pace) = (Integrator::Hermite6, Pace::Fixed(0.01));
    let expected = run(Box::new(alone), &bodies, integrator, pace);
    for threads in TEAMS {
        let found = led(threads, |team| {
            let in_fields = (&bodies, &fields);
            let backend = lead(team, in_fields, physics(), OnCpu::plain(IN_F64), 1);
            run(backend.expect("formulas"), &bodies, integrator, pace)
        });
        assert_eq!(found, expected, "{threads:?}");
    }
}

/// The bits of one process, and of runs that go on, with lists that each rank has of its own bodies: some bodies are
/// massless, and fields and test particles are there.
#[test]
fn neighbour_schemes_are_those_of_one_process() {
    let fields: Fields = [ExternalField::plummer(2.0, 0.5)].into_iter().collect();
    for n in [1, 2, 90, 301] {
        let mut bodies = cloud(n, 3);
        (0..n).step_by(7).for_each(|i| bodies.mass[i] = 0.0);
        for threads in TEAMS {
            let machine = || Machine::new(Place::CPU).fields(fields.clone());
            let on_ranks = |team: &Arc<Team>| machine().ranks(Arc::clone(team));
            neighbours_are_those_of(machine(), on_ranks, "cpu-f64", &bodies, threads);
        }
    }
}

/// Ends of two spans in a neighbour scheme on ranks are those on one machine, to the bit, with energies and counts; and
/// so is the second on ranks that go on from what one machine saved.
fn neighbours_are_those_of(
    one: Machine,
    on_ranks: impl Fn(&Arc<Team>) -> Machine + Sync,
    kernel: &str,
    bodies: &Bodies,
    threads: &[usize],
) {
    let eta = 0.04;
    let begun = |machine: Machine| {
        let (integrator, steps) = (Integrator::Hermite4, TimeSteps::Blocks);
        let machine = machine.block_steps(integrator, steps, Some(eta), None);
        let machine = machine.neighbours(Some("8".parse().expect("a number")));
        let kernel = variants::find(kernel).expect("listed");
        let backend = machine.backend(kernel, bodies, physics());
        let mut backend = backend.expect("it has neighbours");
        integrator.prepare(&mut *backend).expect("it has jerks");
        backend
    };
    let advance = |backend: &mut dyn Backend| {
        let blocks = block_steps(backend).expect("taken");
        let counts = blocks.advance(1.0 / 64.0, eta).expect("runs");
        let energy = backend.energy().expect("runs");
        (counts, energy, backend.save().expect("there"))
    };
    let mut one = begun(one);
    let expected = [(); 2].map(|()| advance(&mut *one));
    let found = led(threads, |team| {
        let mut backend = begun(on_ranks(team));
        let ends = [(); 2].map(|()| advance(&mut *backend));
        backend.restore(&expected[0].2).expect("the same bodies");
        assert!(advance(&mut *backend) == expected[1], "{threads:?}");
        ends
    });
    assert!(found == expected, "{} bodies, {threads:?}", bodies.len());
}
