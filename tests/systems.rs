//! Many systems on the emulator: every rung against the f64 reference, in the order in which its work
//! is to be queued; and what is refused before anything is launched.

use std::sync::Arc;

use crate::support::{Table, assert_none, repetition_failure};
use allpairs::backend::Backend;
use allpairs::force::emulated::{Emulator, Queued, QueuedWork};
use allpairs::force::systems::{ManySystems, Own};
use allpairs::frame::Frame;
use allpairs::integrator::Integrator;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::variants::{Method, Queues, Variant};
use allpairs_lab::studies::catalogue;
use allpairs_lab::verify::{Case, many_systems, steps_by_reference};
use rayon::prelude::*;

/// The kernels of many systems.
fn kernels() -> Vec<Variant> {
    let many = |v: &&Variant| matches!(v.method, Method::Systems(_));
    let kernels: Vec<_> = catalogue().all().filter(many).copied().collect();
    assert_eq!(kernels.len(), 27, "18 rungs and nine of general use");
    kernels
}

fn find(name: &str) -> Variant {
    *catalogue().find(name).expect("listed")
}

/// With small tiles and blocks, so that few bodies take several.
fn shrunk(mut kernel: Variant, tile: u32, block: u32) -> Variant {
    if let Method::Systems(path) = &mut kernel.method
        && path.tile.is_some()
    {
        *path = path.tile(tile);
    }
    kernel.in_blocks_of(block)
}

#[test]
fn kernels_are_right() {
    let table = Table::new(32, 100);
    let failures = kernels().into_par_iter().flat_map_iter(|kernel| {
        let all = [(shrunk(kernel, 24, 32), 1), (kernel, 0)].into_iter();
        let failures = all.flat_map(|(kernel, order)| {
            let machine = Machine::emulator(order);
            let mut failures = table.failures(&machine, &kernel);
            failures.extend(repetition_failure(&machine, &kernel));
            failures
        });
        failures.collect::<Vec<_>>()
    });
    assert_none(&failures.collect::<Vec<_>>());
}

/// Systems of several tiles, whose pairs of tiles are each computed by one block, with the kernel that
/// their masses allow.
#[test]
fn pairs_of_tiles_are_right() {
    let (case, _) = many_systems(2, 300, ForceLaw::Gravity);
    let of_masses = |mass: &dyn Fn(usize) -> f64| {
        let mut bodies = case.bodies.clone();
        bodies.mass = (0..bodies.len()).map(mass).collect();
        Case::of_systems("two systems", bodies, case.physics, 2)
    };
    let any = of_masses(&|i| if i % 7 == 0 { 0.0 } else { case.bodies.mass[i] });
    for case in [of_masses(&|_| 0.01), any, case] {
        for kernel in kernels() {
            if !kernel.schedule().takes_pairs_once() {
                continue;
            }
            let kernel = kernel.in_blocks_of(32).of_systems(2);
            let machine = Machine::emulator(2);
            let mut backend = machine
                .backend(&kernel, &case.bodies, case.physics)
                .expect("it fits");
            let euler = Integrator::SemiImplicitEuler;
            // The second time with what the first has left.
            for _ in 0..2 {
                backend.accelerate().expect("it runs");
                let computed = backend.accelerations().expect("it runs");
                if let Err(wrong) = case.check(&kernel, &computed) {
                    panic!("{}: {wrong}", kernel.name);
                }
                backend.repeat(1, &euler.operations(0.0)).expect("it runs");
            }
        }
    }
}

/// Steps taken on the way, on any backend, lead where the f64 reference's do; so do those of
/// other integrators, of which only the accelerations come from the kernels.
#[test]
fn steps_lead_where_the_reference_goes() {
    for (systems, n) in [(1, 33), (17, 5), (5, 65)] {
        for law in [ForceLaw::Unit, ForceLaw::Gravity] {
            let (case, dt) = many_systems(systems, n, law);
            let reference = steps_by_reference(&case, dt, 7).expect("on the CPU");
            for kernel in kernels().into_iter().filter(|kernel| kernel.computes(law)) {
                let kernel = shrunk(kernel, 32, 64).of_systems(systems);
                let machine = Machine::emulator(0);
                let mut backend = machine
                    .backend(&kernel, &case.bodies, case.physics)
                    .expect("it fits");
                let integrator = Integrator::SemiImplicitEuler;
                integrator.prepare(&mut *backend).expect("it runs");
                let mut steps = |times: u64| {
                    backend
                        .repeat(times, &integrator.operations(dt))
                        .expect("it runs");
                    let mut bodies = case.bodies.clone();
                    backend.download(&mut bodies).expect("it runs");
                    bodies
                };
                steps(4); // an even number, and an odd one
                let bodies = steps(3);
                // Each step adds a rounding of position and velocity, and the acceleration's error
                // grows no faster than the square of the time, here (7/20)² of a falling time's.
                let length = Frame::of(&case.bodies, &case.physics).length;
                let tolerance = 100.0 * length / f64::from(1 << 24);
                for i in 0..bodies.len() {
                    let error = (bodies.x[i] - reference.x[i])
                        .hypot(bodies.y[i] - reference.y[i])
                        .hypot(bodies.z[i] - reference.z[i]);
                    let name = kernel.name;
                    assert!(
                        error <= tolerance,
                        "{name}, {systems} × {n}, body {i}: {error:e}"
                    );
                }
            }
        }
    }
}

/// The kernels' steps are the same numbers, whichever way the work is queued.
#[test]
fn queues_do_not_change_results() {
    let (case, dt) = many_systems(19, 40, ForceLaw::Unit);
    let results = ["fast-math", "overlap", "prefetch", "fused", "multi-gpu"].map(|rung| {
        let kernel = shrunk(find(&format!("galaxies/{rung}")), 16, 32).of_systems(19);
        let mut backend = Machine::emulator(3)
            .backend(&kernel, &case.bodies, case.physics)
            .expect("it fits");
        backend.accelerate().expect("it runs");
        let euler = Integrator::SemiImplicitEuler;
        backend.repeat(5, &euler.operations(dt)).expect("it runs");
        backend.save().expect("it runs")
    });
    for result in &results[1..] {
        assert_eq!(result.positions(), results[0].positions());
        assert_eq!(result.velocities(), results[0].velocities());
    }
}

/// A look between steps, after which the host takes a part of the next one, changes no bit.
#[test]
fn a_look_changes_no_step() {
    for kernel in kernels() {
        let law = kernel.laws().next().expect("every kernel has a law");
        let (case, dt) = many_systems(5, 24, law);
        let kernel = shrunk(kernel, 16, 32).of_systems(5);
        for integrator in [
            Integrator::SemiImplicitEuler,
            Integrator::Leapfrog,
            Integrator::LeapfrogDkd,
        ] {
            let end = |looks: bool| {
                let mut backend = Machine::emulator(0)
                    .backend(&kernel, &case.bodies, case.physics)
                    .expect("it fits");
                integrator.prepare(&mut *backend).expect("it runs");
                for _ in 0..4 {
                    integrator.step(&mut *backend, dt).expect("it runs");
                    if looks {
                        backend.save().expect("it runs");
                    }
                }
                let saved = backend.save().expect("it runs");
                [saved.positions().to_vec(), saved.velocities().to_vec()]
            };
            assert!(end(true) == end(false), "{} by {integrator:?}", kernel.name);
        }
    }
}

/// Steps of leapfrog, whose kicks meet, stay on the device where kernels kick twice.
#[test]
fn steps_of_leapfrog_are_queued_together() {
    let (case, dt) = many_systems(3, 40, ForceLaw::Gravity);
    let kernel = find("many-systems-symmetric").of_systems(3);
    let emulator = Arc::new(Emulator::listing(0));
    let frame = Frame::of(&case.bodies, &case.physics);
    let emulators = [Arc::clone(&emulator)];
    let many = ManySystems::new(&emulators, &kernel, &case.bodies, case.physics, frame);
    let mut many = many.expect("it fits");
    let leapfrog = Integrator::Leapfrog;
    leapfrog.prepare(&mut many).expect("it runs");
    let steps = leapfrog.operations(dt);
    many.repeat(5, &steps).expect("it runs");
    many.synchronize().expect("it runs");
    let is_launch = |queued: &Queued| matches!(queued.work, QueuedWork::Launch { .. });
    let launches = emulator.take_queued().into_iter().filter(is_launch).count();
    assert_eq!(launches, 5 * 2, "a force and a step, five times");
}

/// Work that two steps of five systems queue on an emulator or two.
fn queued(rung: &str, devices: usize) -> Vec<Vec<Queued>> {
    let kernel = find(&format!("galaxies/{rung}")).of_systems(5);
    let Method::Systems(path) = kernel.method else {
        panic!("of many systems")
    };
    let kernel = match path.queues {
        Queues::Together => kernel,
        _ => Variant {
            method: Method::Systems(path.queued(Queues::Exactly(2))),
            ..kernel
        },
    };
    let (case, dt) = many_systems(5, 40, ForceLaw::Unit);
    let emulators: Vec<_> = (0..devices)
        .map(|_| Arc::new(Emulator::listing(0)))
        .collect();
    let frame = Frame::of(&case.bodies, &case.physics);
    let mut many =
        ManySystems::new(&emulators, &kernel, &case.bodies, case.physics, frame).expect("it fits");
    many.accelerate().expect("later");
    let euler = Integrator::SemiImplicitEuler;
    many.repeat(2, &euler.operations(dt)).expect("it runs");
    assert!(
        emulators.iter().all(|e| e.take_queued().is_empty()),
        "nothing yet"
    );
    many.synchronize().expect("it runs");
    emulators.iter().map(|e| e.take_queued()).collect()
}

/// `i0 k0 d0 o0`: in, kick, drift, out, fused step and all steps, with the stream; copies of one system
/// as one.
fn told(work: &[Queued]) -> String {
    let mut words: Vec<String> = vec![];
    for Queued { stream, work } in work {
        let letter = match work {
            QueuedWork::CopyIn(_) => "i",
            QueuedWork::CopyOut(_) => "o",
            QueuedWork::Launch { kernel, .. } if kernel.contains("_kick_") => "k",
            QueuedWork::Launch { kernel, .. } if kernel.contains("_fused_") => "f",
            QueuedWork::Launch { kernel, .. } if kernel.contains("_steps_") => "s",
            QueuedWork::Launch { .. } => "d",
            QueuedWork::Join => continue,
        };
        let word = match work {
            QueuedWork::Launch { params, .. } => {
                format!("{letter}{}@{stream}", params.systems.first)
            }
            _ => format!("{letter}@{stream}"),
        };
        let again = words.last() == Some(&word) && matches!(letter, "i" | "o");
        if !again {
            words.push(word);
        }
    }
    words.join(" ")
}

#[test]
fn work_is_queued_as_the_rungs_say() {
    let one = |rung| told(&queued(rung, 1)[0]);
    assert_eq!(one("block-per-system"), "i@0 s0@0 o@0");
    assert_eq!(one("unroll-8"), "i@0 s0@0 o@0");
    let steps = "k0@0 k1@1 k2@0 k3@1 k4@0 d0@0 d1@1 d2@0 d3@1 d4@0";
    assert_eq!(one("streams"), format!("i@0 {steps} {steps} o@0"));
    assert_eq!(one("fast-math"), one("streams"));
    let system = |s: u32| {
        let t = s % 2;
        format!("i@{t} k{s}@{t} d{s}@{t} k{s}@{t} d{s}@{t} o@{t}")
    };
    let depth_first: Vec<String> = (0..5).map(system).collect();
    assert_eq!(one("overlap"), depth_first.join(" "));
    let (copies, back) = ("i@0 i@1 i@0 i@1 i@0", "o@0 o@1 o@0 o@1 o@0");
    assert_eq!(one("prefetch"), format!("{copies} {steps} {steps} {back}"));
    let fused = "f0@0 f1@1 f2@0 f3@1 f4@0";
    assert_eq!(one("fused"), format!("{copies} {fused} {fused} {back}"));
    // Five systems on two GPUs: three and two.
    let two = queued("multi-gpu", 2);
    let three = "k0@0 k1@1 k2@0 d0@0 d1@1 d2@0";
    assert_eq!(
        told(&two[0]),
        format!("i@0 i@1 i@0 {three} {three} o@0 o@1 o@0")
    );
    let pair = "k0@0 k1@1 d0@0 d1@1";
    assert_eq!(told(&two[1]), format!("i@0 i@1 {pair} {pair} o@0 o@1"));
}

/// Before bodies come back all at once, every stream has been waited for.
#[test]
fn streams_are_joined_before_all_is_copied() {
    let work = &queued("streams", 1)[0];
    let out = work
        .iter()
        .position(|q| matches!(q.work, QueuedWork::CopyOut(_)));
    let before = &work[..out.expect("a copy out")];
    let last = before
        .iter()
        .rposition(|q| matches!(q.work, QueuedWork::Launch { .. }));
    let joined = &before[last.expect("a launch")..];
    for stream in [0, 1] {
        let join = Queued {
            stream,
            work: QueuedWork::Join,
        };
        assert!(joined.contains(&join), "stream {stream}");
    }
}

/// Systems of their own softening and pace are what they would be alone.
#[test]
fn each_system_has_its_own_softening_and_step() {
    let (case, dt) = many_systems(3, 40, ForceLaw::Gravity);
    let frame = Frame::of(&case.bodies, &case.physics);
    let own = [(0.05, 1.0), (0.2, 0.5), (0.1, 2.0)];
    let own = own.map(|(softening, pace)| Own { softening, pace });
    let advanced = |kernel: &Variant, own: Vec<Own>, physics: Physics, dt: f64| {
        let emulators = [Arc::new(Emulator::new(0))];
        let mut many = ManySystems::with_own(&emulators, kernel, &case.bodies, physics, frame, own)
            .expect("it fits");
        many.accelerate().expect("it runs");
        let euler = Integrator::SemiImplicitEuler;
        many.repeat(3, &euler.operations(dt)).expect("it runs");
        many.save().expect("it runs")
    };
    let all = kernels().into_iter();
    for kernel in all.filter(|kernel| kernel.computes(ForceLaw::Gravity)) {
        let kernel = kernel.of_systems(3);
        let together = advanced(&kernel, own.to_vec(), case.physics, dt);
        for (s, own) in own.into_iter().enumerate() {
            let physics = Physics {
                softening: own.softening,
                ..case.physics
            };
            let same = Own { pace: 1.0, ..own };
            let alone = advanced(&kernel, vec![same; 3], physics, own.pace * dt);
            let range = s * 40..(s + 1) * 40;
            assert_eq!(
                together.positions()[range.clone()],
                alone.positions()[range.clone()]
            );
            assert_eq!(
                together.accelerations()[range.clone()],
                alone.accelerations()[range]
            );
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_numbers() {
    let (case, _) = many_systems(6, 10, ForceLaw::Unit);
    let refusal = |kernel: Variant| {
        let made = Machine::emulator(0).backend(&kernel, &case.bodies, case.physics);
        made.err().expect("a refusal").to_string()
    };
    let queued = |name: &str, queues| {
        let mut kernel = find(name).of_systems(6);
        if let Method::Systems(path) = &mut kernel.method {
            *path = path.queued(queues);
        }
        kernel
    };
    let text = refusal(queued("galaxies/streams", Queues::Exactly(7)));
    assert!(
        text.contains("7 streams") && text.contains("6 systems"),
        "{text}"
    );
    let text = refusal(queued("galaxies/overlap", Queues::Exactly(0)));
    assert!(text.contains("not 0"), "{text}");
    let text = refusal(shrunk(find("galaxies/tiled-512").of_systems(6), 4096, 1024));
    assert!(
        text.contains("65536 bytes") && text.contains("49152"),
        "{text}"
    );
    assert!(text.contains("1 to 3072"), "{text}");
    let text = refusal(shrunk(find("galaxies/tiled-512"), 0, 1024));
    assert!(text.contains("tile of 0"), "{text}");
    let large = many_systems(2, 600, ForceLaw::Gravity).0;
    let kernel = find("many-systems-in-blocks").of_systems(2);
    let made = Machine::emulator(0).backend(&kernel, &large.bodies, large.physics);
    let text = made.err().expect("a refusal").to_string();
    assert!(
        text.contains("a system of 600 bodies takes 58368 bytes"),
        "{text}"
    );
    let text = refusal(find("galaxies/streams").of_systems(7));
    assert!(text.contains("60 bodies do not make 7 systems"), "{text}");
    assert!(text.contains("8 each would leave 4 over"), "{text}");
    let text = refusal(find("galaxies/streams").of_systems(0));
    assert!(text.contains("not 0"), "{text}");
    let text = refusal(find("tiled-soa").of_systems(6));
    assert!(text.contains("one system, not 6"), "{text}");
    let cpu = Machine::new(allpairs::selection::Place::CPU);
    let made = cpu.backend(&find("cpu-f32").of_systems(7), &case.bodies, case.physics);
    let text = made.err().expect("a refusal").to_string();
    assert!(text.contains("60 bodies do not make 7 systems"), "{text}");
}
