//! Independent systems dealt out to ranks: the bits of one process, whoever computes which.

use super::*;
use crate::initial_conditions::plummer;
use crate::variants::{Gpus, Queues};

const ONES: [&[usize]; 4] = [&[1], &[1, 1], &[1, 1, 1], &[1, 1, 1, 1]];

/// Systems of equal size, of unlike bodies. Masses are equal within a system alone: a kernel for equal masses
/// would be wrong, though each rank may see no others.
fn systems(systems: usize, each: usize) -> Bodies {
    let mut all = plummer(systems * each, 7).expect("in range");
    for (i, mass) in all.mass.iter_mut().enumerate() {
        *mass = (1 + i / each) as f64 / all.x.len() as f64;
    }
    all
}

/// The kernel's machine: the emulator of one process, or that of each rank; or their CPUs.
fn machine(kernel: &Variant, team: Option<&Arc<Team>>) -> Machine {
    match (kernel.method, team) {
        (Method::Cpu(_), None) => Machine::new(Place::CPU),
        (Method::Cpu(_), Some(team)) => Machine::new(Place::CPU).ranks(Arc::clone(team)),
        (_, None) => Machine::emulator(0),
        (_, Some(team)) => {
            let place = Place::of_emulators(team.size() as u32).over_ranks(Way::Hosts);
            Machine::new(place).ranks(Arc::clone(team))
        }
    }
}

/// Kernels of many systems, and those of the CPU.
fn kernels() -> impl Iterator<Item = Variant> {
    let of_many = |v: &&Variant| matches!(v.method, Method::Systems(_));
    let on_cpu = ["cpu-f64", "cpu-serial-f32", "cpu-exact-f32"];
    let on_cpu = on_cpu.map(|name| variants::find(name).expect("listed"));
    variants::VARIANTS
        .iter()
        .filter(of_many)
        .chain(on_cpu)
        .copied()
}

/// All that a run sees of a backend, after steps that were looked at on the way.
type Seen = (SavedState, Bodies, Vec<[f64; 3]>, Energy, Vec<Energy>);

fn seen(mut backend: Box<dyn Backend>, bodies: &Bodies, integrator: Integrator) -> Seen {
    integrator.prepare(&mut *backend).expect("runs");
    let step = integrator.operations(0.01);
    backend.repeat(2, &step).expect("runs");
    let mut now = bodies.clone();
    backend.download(&mut now).expect("there");
    let energies = backend.energies().expect("runs");
    backend.repeat(3, &step).expect("runs");
    backend.synchronize().expect("runs");
    let accelerations = backend.accelerations().expect("there");
    let energy = backend.energy().expect("runs");
    let state = backend.save().expect("there");
    (state, now, accelerations, energy, energies)
}

/// With fewer systems than ranks, and numbers that ranks do not divide.
#[test]
fn systems_have_the_bits_of_one_process() {
    for (number, each) in [(1, 33), (2, 20), (3, 5), (5, 17), (7, 40)] {
        let bodies = systems(number, each);
        for kernel in kernels() {
            let kernel = kernel.of_systems(number as u32);
            for integrator in [
                Integrator::Leapfrog,
                Integrator::SemiImplicitEuler,
                Integrator::DampedEuler { rate: 0.5 },
            ] {
                let of = |machine: Machine| {
                    let backend = machine.backend(&kernel, &bodies, physics());
                    let backend = backend.expect("runs");
                    assert_eq!(backend.systems(), number);
                    seen(backend, &bodies, integrator)
                };
                let expected = of(machine(&kernel, None));
                for threads in ONES {
                    let found = led(threads, |team| of(machine(&kernel, Some(team))));
                    let (name, ranks) = (kernel.name, threads.len());
                    assert!(
                        found == expected,
                        "{name}, {number} × {each}, {ranks} ranks, {integrator:?}"
                    );
                }
            }
        }
    }
}

/// Ranks of CPUs have as many systems as they have threads for: none, here, for some.
#[test]
fn numbers_of_threads_change_nothing() {
    let bodies = systems(6, 9);
    let kernel = variants::find("cpu-f64").expect("listed").of_systems(6);
    let of = |machine: Machine| {
        let backend = machine.backend(&kernel, &bodies, physics()).expect("runs");
        seen(backend, &bodies, Integrator::Leapfrog)
    };
    let expected = of(machine(&kernel, None));
    for threads in TEAMS.into_iter().chain([&[1, 100, 1][..], &[100, 1]]) {
        let found = led(threads, |team| of(machine(&kernel, Some(team))));
        assert!(found == expected, "{threads:?}");
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let bodies = systems(5, 12);
    let (integrator, pace) = (Integrator::Leapfrog, Pace::Fixed(0.01));
    for name in [
        "cpu-f64",
        "many-systems-symmetric",
        "many-systems-in-blocks-f64",
    ] {
        let kernel = variants::find(name).expect("listed").of_systems(5);
        let begin = |machine: Machine| {
            let backend = machine.backend(&kernel, &bodies, physics()).expect("runs");
            let all = bodies.clone();
            let simulation = Simulation::new(backend, all, physics(), integrator, pace, 0.0);
            let mut simulation = simulation.expect("runs");
            simulation.step().expect("runs");
            simulation
        };
        let end = |simulation: &mut Simulation| {
            simulation.step().expect("runs");
            let energy = simulation.energy().expect("runs");
            (simulation.save().expect("there"), energy)
        };
        let expected = end(&mut begin(machine(&kernel, None)));
        let (clock, state) = led(ONES[2], |team| {
            begin(machine(&kernel, Some(team))).save().expect("there")
        });
        for threads in ONES {
            let found = led(threads, |team| {
                let machine = machine(&kernel, Some(team));
                let backend = machine.backend_in_frame(&kernel, &bodies, physics(), state.frame);
                let (backend, all) = (backend.expect("runs"), bodies.clone());
                let from = (clock, &state);
                let simulation =
                    Simulation::resume(backend, all, physics(), integrator, pace, from);
                end(&mut simulation.expect("resumes"))
            });
            assert!(found == expected, "{name}, {threads:?}");
        }
        // A state of other bodies is refused by all ranks, and they go on.
        led(ONES[1], |team| {
            let mut backend = machine(&kernel, Some(team))
                .backend(&kernel, &bodies, physics())
                .expect("runs");
            backend.accelerate().expect("runs");
            let before = backend.save().expect("there");
            let refused = backend.restore(&state.part(0..12));
            assert!(matches!(refused, Err(ForceError::OtherState(_))), "{name}");
            assert!(backend.save().expect("there") == before, "{name}");
        });
    }
}

/// The same steps as when they are not timed.
#[test]
fn steps_are_timed_together() {
    let bodies = systems(5, 12);
    for name in ["many-systems", "many-systems-in-blocks"] {
        let kernel = variants::find(name).expect("listed").of_systems(5);
        let timed = |machine: Machine| {
            let mut backend = machine.backend(&kernel, &bodies, physics()).expect("runs");
            let force = backend.time_acceleration().expect("runs");
            let pipeline = backend.pipeline().expect("of many systems");
            let seconds = pipeline.seconds(0.01, 3).expect("runs");
            assert!(force > 0.0 && seconds > 0.0);
            let spans = pipeline.timeline(0.01, 1).expect("runs").len();
            (backend.save().expect("there"), spans)
        };
        let (expected, spans) = timed(machine(&kernel, None));
        assert!(spans > 0);
        let (found, spans) = led(ONES[2], |team| {
            let (_, spans) = timed(machine(&kernel, Some(team)));
            let mut backend = machine(&kernel, Some(team))
                .backend(&kernel, &bodies, physics())
                .expect("runs");
            let pipeline = backend.pipeline().expect("of many systems");
            pipeline.seconds(0.01, 4).expect("runs");
            (backend.save().expect("there"), spans)
        });
        assert!(found == expected, "{name}");
        assert_eq!(spans, 0, "no clock is that of all ranks");
    }
    let on_cpu = variants::find("cpu-f64").expect("listed").of_systems(5);
    led(ONES[1], |team| {
        let backend = machine(&on_cpu, Some(team)).backend(&on_cpu, &bodies, physics());
        let mut backend = backend.expect("runs");
        assert!(backend.pipeline().is_none(), "nothing is copied");
        assert!(backend.time_acceleration().expect("runs") > 0.0);
    });
}

#[test]
fn what_cannot_be_dealt_is_refused() {
    let bodies = systems(3, 8);
    let refused = |kernel: Variant| {
        led(ONES[1], |team| {
            let place = match kernel.method {
                Method::Reference => Place::CPU,
                _ => Place::of_emulators(2).over_ranks(Way::Hosts),
            };
            let machine = Machine::new(place).ranks(Arc::clone(team));
            let refused = machine.backend(&kernel, &bodies, physics());
            refused.err().expect("refused").to_string()
        })
    };
    let find = |name| *variants::find(name).expect("listed");
    let reference = refused(find("reference").of_systems(3));
    assert!(reference.contains("one process"), "{reference}");
    let one = refused(find("symmetric").of_systems(3));
    assert!(one.contains("computes one system, not 3"), "{one}");
    // Enough streams for the two systems of rank 0, and not for the one of rank 1.
    let mut kernel = find("many-systems").of_systems(3);
    if let Method::Systems(path) = &mut kernel.method {
        (path.queues, path.gpus) = (Queues::Exactly(2), Gpus::One);
    }
    let streams = refused(kernel);
    assert!(
        streams.contains("rank 1") && streams.contains("2 streams"),
        "{streams}"
    );
}
