use std::num::NonZeroU32;

use super::*;
use crate::backend::Neighbours;
use crate::bodies::BodyKind;
use crate::fields::ExternalField;
use crate::force::cpu::samples::Random;
use crate::selection::DeviceChoice;
use crate::simulation::{Simulation, SimulationBuilder};
use crate::variants;
use crate::{ForceAccuracy, Integrator};

/// A number in [−1, 1).
fn signed(random: &mut Random) -> f64 {
    2.0 * random.unit() - 1.0
}

fn direction(random: &mut Random) -> [f64; 3] {
    loop {
        let v = [signed(random), signed(random), signed(random)];
        let length = distance(v, [0.0; 3]);
        if (0.1..1.0).contains(&length) {
            return v.map(|x| x / length);
        }
    }
}

fn body(id: u64, position: [f64; 3], velocity: [f64; 3], mass: f64) -> Body {
    Body {
        position,
        velocity,
        mass,
        id,
        kind: BodyKind::Star,
    }
}

fn merging(radii: Vec<f64>) -> Encounters {
    Encounters {
        radii,
        on_collision: OnCollision::Merge,
        ..Encounters::none()
    }
}

fn log(radii: Vec<f64>) -> Encounters {
    Encounters {
        radii,
        ..Encounters::none()
    }
}

/// A simulation of bodies that hardly attract each other.
fn free(bodies: Bodies, dt: f64, encounters: Encounters) -> Simulation {
    Simulation::builder(bodies)
        .gravity(1e-30, 0.0)
        .integrator(Integrator::Leapfrog)
        .accuracy(ForceAccuracy::Double)
        .device(DeviceChoice::Cpu)
        .encounters(encounters)
        .dt(dt)
        .build()
        .unwrap()
}

/// The same in block time steps; forces are softened, for bodies pass through each other.
fn in_blocks(
    bodies: Bodies,
    longest: f64,
    encounters: Encounters,
    device: DeviceChoice,
) -> Simulation {
    Simulation::builder(bodies)
        .gravity(1e-30, 1e-4)
        .integrator(Integrator::Hermite4)
        .device(device)
        .encounters(encounters)
        .dt(longest)
        .eta(0.02)
        .block_steps()
        .build()
        .unwrap()
}

/// Pairs of bodies, of which every other one passes within the sum of its radii, which is near 4·10⁻⁴; the
/// radii; and who meets when.
fn planted(pairs: usize) -> (Bodies, Vec<f64>, Vec<(u64, f64)>) {
    let mut random = Random(3);
    let (mut bodies, mut radii, mut expected) = (Bodies::default(), vec![], vec![]);
    for pair in 0..pairs {
        let along = direction(&mut random);
        let aside = direction(&mut random);
        let dot: f64 = (0..3).map(|k| along[k] * aside[k]).sum();
        let aside = [0, 1, 2].map(|k| aside[k] - dot * along[k]);
        let length = distance(aside, [0.0; 3]);
        let [a, b] = [1e-4, 1e-4].map(|r: f64| r * (2.0 + signed(&mut random)));
        let collides = pair % 2 == 0;
        // Grazing to a millionth, head-on, and everything in between.
        let depth = match pair / 2 % 3 {
            0 => 1e-6,
            1 => 1.0 - 1e-9,
            _ => 0.5 + 0.4 * signed(&mut random),
        };
        let share = if collides { 1.0 - depth } else { 1.0 + depth };
        let nearest = share * (a + b);
        let speed = 3.0 + 2.0 * signed(&mut random);
        let when = 0.5 + 0.45 * signed(&mut random); // of the closest approach
        let offset = [0, 1, 2].map(|k| nearest * aside[k] / length - speed * when * along[k]);
        // Cells of a grid apart, so that each pair meets but itself; all move together.
        let cell = [pair % 10, pair / 10 % 10, pair / 100].map(|k| 20.0 * k as f64);
        let common = [0.3, -0.2, 0.1];
        let second = [0, 1, 2].map(|k| cell[k] + offset[k]);
        let velocity = [0, 1, 2].map(|k| common[k] + speed * along[k]);
        bodies.push(body(2 * pair as u64, cell, common, 1.0));
        bodies.push(body(2 * pair as u64 + 1, second, velocity, 0.5));
        radii.extend([a, b]);
        if collides {
            let half = ((a + b).powi(2) - nearest.powi(2)).sqrt();
            expected.push((2 * pair as u64, when - half / speed));
        }
    }
    (bodies, radii, expected)
}

/// At every length of steps, shared or not: none missed, none invented, and each at its time.
#[test]
fn planted_collisions_are_found() {
    let (bodies, radii, expected) = planted(1000);
    for steps in [1_u32, 2, 7, 100] {
        let simulation = free(bodies.clone(), 1.0 / f64::from(steps), log(radii.clone()));
        all_are_found(simulation, &expected, &format!("{steps} steps"));
    }
    let all: &[f64] = &[1.0, 0.3, 0.01];
    for (device, pairs, lengths) in [
        (DeviceChoice::Cpu, 100, all),
        (DeviceChoice::Emulator, 7, &[1.0, 0.3]),
    ] {
        let (bodies, radii, expected) = planted(pairs);
        for &longest in lengths {
            let simulation = in_blocks(bodies.clone(), longest, log(radii.clone()), device);
            all_are_found(simulation, &expected, &format!("blocks of {longest}"));
        }
    }
}

fn all_are_found(mut simulation: Simulation, expected: &[(u64, f64)], steps: &str) {
    simulation.run_until(1.0).unwrap();
    let mut found: Vec<(u64, f64)> = simulation
        .take_events()
        .iter()
        .map(|event| match event.what {
            Happening::Collision { ids: [a, b], .. } => {
                assert_eq!((b, a % 2), (a + 1, 0));
                (a, event.time)
            }
            Happening::Escape { .. } => panic!("nothing escapes"),
        })
        .collect();
    found.sort_by_key(|(id, _)| *id);
    assert_eq!(found.len(), expected.len(), "{steps}");
    for ((id, time), (planted, when)) in found.iter().zip(expected) {
        assert_eq!(id, planted, "{steps}");
        assert!((time - when).abs() <= 1e-6, "{steps}: {time} {when}");
    }
}

/// Every passage of a binary through its pericentre, dozens in a span.
#[test]
fn each_contact_in_a_span_is_told() {
    // Semi-major axis 1/16 and eccentricity 0.9: a period of 2π/64, and a pericentre of 1/160.
    let mut bodies = Bodies::default();
    let (axis, eccentricity) = (0.0625_f64, 0.9);
    let speed = ((1.0 - eccentricity) / (axis * (1.0 + eccentricity))).sqrt();
    let apart = axis * (1.0 + eccentricity);
    for (id, side) in [(0, 0.5), (1, -0.5)] {
        let [x, v] = [apart, speed].map(|value| [side * value, 0.0, 0.0]);
        bodies.push(body(id, x, [0.0, v[0], 0.0], 0.5));
    }
    bodies.push(body(2, [10.0, 0.0, 0.0], [0.0; 3], 1e-6));
    for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
        let mut simulation = Simulation::builder(bodies.clone())
            .gravity(1.0, 0.0)
            .integrator(Integrator::Hermite6)
            .device(device)
            .encounters(log(vec![0.004, 0.004, 0.0]))
            .dt(1.0)
            .eta(0.3)
            .block_steps()
            .build()
            .unwrap();
        simulation.run_until(2.0).unwrap();
        let events = simulation.take_events();
        let period = std::f64::consts::TAU * axis.powf(1.5);
        assert_eq!(events.len(), (2.0 / period + 0.5) as usize);
        for (k, event) in events.iter().enumerate() {
            let pericentre = (k as f64 + 0.5) * period;
            let early = pericentre - event.time;
            assert!((0.0..0.01 * period).contains(&early), "{k}: {early}");
        }
    }
}

/// Bodies that merge or bounce in block time steps do so where they meet, not at the end of the span: what
/// follows is what shared steps find.
#[test]
fn bodies_change_where_they_meet_in_a_span() {
    let mut bodies = Bodies::default();
    bodies.push(body(7, [-1.0, 0.0, 0.0], [0.5, 0.1, 0.0], 2.0));
    bodies.push(body(8, [1.0, 0.02, 0.0], [-0.5, 0.06, 0.0], 3.0));
    bodies.push(body(9, [0.0, 5.0, 1.0], [0.1, 0.0, 0.0], 1.0));
    bodies.push(body(10, [0.0, -6.0, 1.0], [0.1, 0.0, 0.0], 0.0));
    for on_collision in [OnCollision::Merge, OnCollision::Bounce] {
        let run = |longest: f64, blocks: bool, device: DeviceChoice| {
            let builder = Simulation::builder(bodies.clone())
                .gravity(0.1, 0.0)
                .integrator(Integrator::Hermite6)
                .device(device)
                .encounters(Encounters {
                    on_collision,
                    ..merging(vec![0.1, 0.05, 0.05, 0.0])
                })
                .dt(longest)
                .eta(0.1);
            let builder = match blocks {
                true => builder.block_steps(),
                false => builder,
            };
            let mut simulation = builder.build().unwrap();
            let origin = simulation.conserved().unwrap();
            simulation.run_until(3.0).unwrap();
            let drift = simulation.conserved().unwrap().drift_since(&origin);
            // Bodies in block time steps do not attract each other at the same times.
            let momentum = if blocks { 1e-7 } else { 1e-12 };
            assert!(drift.energy <= 1e-6, "{drift:?}");
            assert!(drift.momentum <= momentum, "{drift:?}");
            let events = simulation.take_events();
            assert_eq!(events.len(), 1, "{events:?}");
            (events[0].time, simulation.bodies().unwrap().clone())
        };
        let (when, exact) = run(1e-3, false, DeviceChoice::Cpu);
        let devices = [DeviceChoice::Cpu, DeviceChoice::Emulator];
        for (longest, device) in [3.0, 0.4].into_iter().flat_map(|x| devices.map(|d| (x, d))) {
            let (time, bodies) = run(longest, true, device);
            assert!((time - when).abs() <= 1e-6, "{longest}: {time} {when}");
            assert_eq!(bodies.id, exact.id);
            // What is left moves on by a hundredth of the radii before it changes.
            for (found, exact) in bodies.iter().zip(exact.iter()) {
                let apart = distance(found.position, exact.position);
                assert!(apart <= 0.01, "{longest}: {apart}");
            }
        }
    }
}

/// A span ends whole where a collision stops the run, and nothing is looked for where nothing keeps steps.
#[test]
fn block_steps_stop_and_are_refused_on_several_devices() {
    let (bodies, radii, expected) = planted(4);
    for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
        let stopping = Encounters {
            on_collision: OnCollision::Stop,
            ..log(radii.clone())
        };
        let mut simulation = in_blocks(bodies.clone(), 0.01, stopping, device);
        simulation.run_until(1.0).unwrap();
        let first = expected.iter().map(|e| e.1).fold(f64::INFINITY, f64::min);
        let time = simulation.time();
        assert!(time >= first && time - first <= 0.01, "{time} {first}");
        assert!(simulation.stopped_by().is_some());
    }
    let refused = Simulation::builder(bodies)
        .integrator(Integrator::Hermite4)
        .device(DeviceChoice::Emulators(2))
        .encounters(log(radii))
        .dt(0.01)
        .eta(0.02)
        .block_steps()
        .build();
    let Err(why) = refused else {
        panic!("nothing keeps steps there")
    };
    assert!(why.to_string().contains("on one GPU"), "{why}");
}

/// Three bodies that become one at two times, one that is fast enough to escape, and others about them, some
/// without mass; their radii.
fn meeting() -> (Bodies, Vec<f64>) {
    let mut bodies = Bodies::default();
    bodies.push(body(7, [-1.0, 0.0, 0.0], [0.5, 0.1, 0.0], 2.0));
    bodies.push(body(8, [1.0, 0.02, 0.0], [-0.5, 0.06, 0.0], 3.0));
    bodies.push(body(9, [0.05, 3.0, 0.0], [0.0, -0.95, 0.0], 1.0));
    bodies.push(body(10, [0.0, -6.0, 1.0], [0.1, 0.0, 0.0], 0.0));
    bodies.push(body(11, [0.0, 0.0, 5.0], [0.0, 0.0, 4.0], 0.1));
    let mut random = Random(5);
    for id in 12..40 {
        let x = direction(&mut random).map(|x| 4.0 * x);
        let v = direction(&mut random).map(|v| 0.2 * v);
        let mass = if id % 3 == 0 { 0.0 } else { 1e-3 };
        bodies.push(body(id, x, v, mass));
    }
    let radii = (0..bodies.len()).map(|i| if i < 3 { 0.1 } else { 0.0 });
    let radii = radii.collect();
    (bodies, radii)
}

/// Mergers, bounces and escapes in fixed steps, steps that vary and block time steps, on one device and on
/// two: events, bodies and what is lost are those of the CPU.
#[test]
fn devices_go_on_with_other_bodies() {
    let (bodies, radii) = meeting();
    let run = |device, on_collision, (integrator, eta, blocks): (Integrator, Option<f64>, bool)| {
        let builder = Simulation::builder(bodies.clone())
            .gravity(0.1, 0.05)
            .integrator(integrator)
            .accuracy(ForceAccuracy::Double)
            .device(device)
            .encounters(Encounters {
                radii: radii.clone(),
                on_collision,
                escape: Some((12.0, OnEscape::Remove)),
            })
            .dt(0.02);
        let builder = eta.into_iter().fold(builder, SimulationBuilder::eta);
        let builder = match blocks {
            true => builder.block_steps(),
            false => builder,
        };
        let mut simulation = builder.build().unwrap();
        let origin = simulation.conserved().unwrap();
        simulation.run_until(3.0).unwrap();
        let drift = simulation.conserved().unwrap().drift_since(&origin);
        // Steps of a fixed length are long for the fastest.
        let bound = if eta.is_some() { 1e-4 } else { 0.2 };
        assert!(
            drift.energy <= bound,
            "{device:?}, {integrator:?}: {drift:?}"
        );
        let found = simulation.bodies().unwrap().clone();
        (simulation.take_events(), found, simulation.lost())
    };
    let several = DeviceChoice::Emulators(2);
    for (way, devices) in [
        (
            (Integrator::Leapfrog, None, false),
            &[DeviceChoice::Emulator, several][..],
        ),
        (
            (Integrator::Hermite4, None, false),
            &[DeviceChoice::Emulator, several],
        ),
        (
            (Integrator::Hermite4, Some(0.01), false),
            &[DeviceChoice::Emulator],
        ),
        (
            (Integrator::Hermite4, Some(0.01), true),
            &[DeviceChoice::Emulator],
        ),
    ] {
        for on_collision in [OnCollision::Merge, OnCollision::Bounce] {
            let (events, exact, lost) = run(DeviceChoice::Cpu, on_collision, way);
            let merges = on_collision == OnCollision::Merge;
            assert_eq!(exact.len(), bodies.len() - if merges { 3 } else { 1 });
            for &device in devices {
                let (told, found, gone) = run(device, on_collision, way);
                let which = format!("{device:?}, {on_collision:?}, {way:?}");
                assert_eq!(
                    (&found.id, &found.mass),
                    (&exact.id, &exact.mass),
                    "{which}"
                );
                assert_eq!(told.len(), events.len(), "{which}");
                for (told, event) in told.iter().zip(&events) {
                    assert_eq!(told.step, event.step, "{which}");
                    assert!((told.time - event.time).abs() <= 1e-9, "{which}");
                }
                for (found, exact) in found.iter().zip(exact.iter()) {
                    let apart = distance(found.position, exact.position);
                    assert!(apart <= 1e-9, "{which}: {apart:e}");
                }
                let error = (gone.energy - lost.energy).abs();
                assert!(
                    lost.energy.abs() > 0.01 && error <= 1e-9,
                    "{which}: {error:e}"
                );
            }
        }
    }
}

/// In a neighbour scheme, whose pairs a device computes in f32, too.
#[test]
fn bodies_merge_in_a_neighbour_scheme() {
    let (bodies, radii) = meeting();
    let run = |device: DeviceChoice, neighbours: Option<u32>| {
        let builder = Simulation::builder(bodies.clone())
            .gravity(0.1, 0.05)
            .integrator(Integrator::Hermite4)
            .device(device)
            .encounters(merging(radii.clone()))
            .dt(0.25)
            .eta(0.02)
            .block_steps();
        let neighbours = neighbours.and_then(NonZeroU32::new);
        let builder = neighbours.into_iter().fold(builder, |builder, number| {
            builder.neighbours(Neighbours::Number(number))
        });
        let mut simulation = builder.build().unwrap();
        simulation.run_until(3.0).unwrap();
        let counts = simulation.block_counts();
        assert_eq!(counts.regular > 0, neighbours.is_some());
        let bodies = simulation.bodies().unwrap().clone();
        (simulation.take_events(), bodies, simulation.lost())
    };
    let (events, exact, lost) = run(DeviceChoice::Cpu, None);
    assert_eq!(events.len(), 2);
    for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
        let (told, found, gone) = run(device, Some(12));
        assert_eq!(found.id, exact.id, "{device:?}");
        assert_eq!(told.len(), events.len(), "{device:?}");
        for (told, event) in told.iter().zip(&events) {
            assert!((told.time - event.time).abs() <= 1e-4, "{device:?}: {told}");
        }
        let error = (gone.energy / lost.energy - 1.0).abs();
        assert!(error <= 1e-3, "{device:?}: {error:e}");
    }
}

/// A star that takes in a planet, with the field 1pn: the term is of its new mass from then on, on the CPU and on
/// a device.
#[test]
fn relativity_is_of_the_mass_that_a_merger_leaves() {
    let mut bodies = Bodies::default();
    bodies.push(body(1, [0.0; 3], [0.0; 3], 1.0));
    bodies.push(body(2, [1.0, 0.0, 0.0], [-1.5, 0.02, 0.0], 0.1));
    bodies.push(body(3, [0.0, 0.5, 0.0], [1.45, 0.0, 0.0], 1e-6));
    let field = |index| ExternalField::first_post_newtonian(index, 100.0);
    let with = |bodies: &Bodies, device, index| {
        Simulation::builder(bodies.clone())
            .gravity(1.0, 0.0)
            .integrator(Integrator::Hermite4)
            .field(field(index))
            .device(device)
            .dt(1.0 / 512.0)
    };
    for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
        let encounters = merging(vec![0.25, 0.05, 0.0]);
        let mut simulation = with(&bodies, device, 0)
            .encounters(encounters)
            .build()
            .unwrap();
        let origin = simulation.conserved().unwrap();
        let mut fresh = None;
        for step in 1..=512 {
            simulation.step().unwrap();
            let now = simulation.bodies().unwrap();
            if now.len() == 2 && fresh.is_none() {
                assert!((64..448).contains(&step), "{step}");
                assert_eq!((now.id[0], now.mass[0]), (1, 1.1));
                fresh = Some(with(now, device, 0).build().unwrap());
            } else if let Some(fresh) = &mut fresh {
                fresh.step().unwrap();
            }
        }
        let mut fresh = fresh.expect("they merge");
        let found = simulation.bodies().unwrap().body(1);
        let expected = fresh.bodies().unwrap().body(1);
        let apart = distance(found.position, expected.position);
        assert!(apart <= 1e-12, "{device:?}: {apart:e}");
        let drift = simulation.conserved().unwrap().drift_since(&origin);
        // The term does not conserve the momentum of two bodies, and the energy to its own order alone.
        assert!(drift.energy <= 1e-2, "{device:?}: {drift:?}");
    }
    // Where the number of the body may change, or the body may go.
    let mut others = bodies.clone();
    others.push(body(4, [3.0, 0.0, 0.0], [0.0; 3], 20.0));
    let refused = with(&others, DeviceChoice::Cpu, 3).encounters(merging(vec![0.01; 4]));
    let Err(why) = refused.build() else {
        panic!("the number of the body may change")
    };
    assert!(why.to_string().contains("put it first"), "{why}");
    let mut leaving = Bodies::default();
    leaving.push(body(1, [0.0; 3], [20.0, 0.0, 0.0], 1.0));
    for id in 2..32 {
        let (sin, cos) = (0.2 * id as f64).sin_cos();
        leaving.push(body(id, [3.0 * sin, 3.0 * cos, 0.0], [0.0; 3], 0.09));
    }
    let encounters = Encounters {
        escape: Some((4.0, OnEscape::Remove)),
        ..Encounters::none()
    };
    let mut simulation = with(&leaving, DeviceChoice::Cpu, 0)
        .encounters(encounters)
        .dt(0.1)
        .build()
        .unwrap();
    let why = simulation.run_until(1.0).unwrap_err().to_string();
    assert!(why.contains("field 1pn is of, has escaped"), "{why}");
    assert_eq!(simulation.bodies().unwrap().id[0], 1);
}

/// Saved between two mergers and after both, and resumed, a simulation on a device leaves the bits that it
/// would have left.
#[test]
fn a_device_resumes_after_mergers() {
    let (bodies, radii) = meeting();
    let device = DeviceChoice::Emulator;
    for (integrator, eta, kernel) in [
        (Integrator::Leapfrog, None, "symmetric-deterministic"),
        (Integrator::Leapfrog, None, "test-particles"),
        (Integrator::Hermite4, None, "hermite"),
        (Integrator::Hermite4, Some(0.01), "hermite-f64"),
    ] {
        let with = |bodies: &Bodies| {
            let builder = Simulation::builder(bodies.clone())
                .gravity(0.1, 0.05)
                .integrator(integrator)
                .kernel(variants::find(kernel).expect("listed"))
                .device(device)
                .dt(0.02);
            match eta {
                Some(eta) => builder.eta(eta).block_steps(),
                None => builder,
            }
        };
        let encounters = merging(radii.clone());
        let mut whole = with(&bodies).encounters(encounters).build().unwrap();
        let mut second: Option<Simulation> = None;
        for time in [1.0, 2.25, 3.0] {
            whole.run_until(time).unwrap();
            let ends = [Some(&mut whole), second.as_mut()].map(|simulation| {
                simulation.map(|simulation| {
                    simulation.run_until(time).unwrap();
                    let (clock, state) = simulation.save().unwrap();
                    (
                        clock,
                        state,
                        simulation.bodies().unwrap().clone(),
                        simulation.lost(),
                    )
                })
            });
            let [Some((clock, state, now, lost)), resumed] = ends else {
                panic!("there is one")
            };
            if let Some(resumed) = resumed {
                let expected = (clock, state.clone(), now.clone(), lost);
                assert!(resumed == expected, "{kernel} at {time}");
            }
            let mut going_on = with(&now).resume(clock, &state).unwrap();
            let encounters = whole.encounters().expect("looked for").clone();
            going_on.go_on_looking_for(encounters, lost).unwrap();
            second = Some(going_on);
        }
        assert_eq!(whole.bodies().unwrap().len(), bodies.len() - 2, "{kernel}");
    }
}

/// Against all pairs, one by one.
#[test]
fn no_close_pair_is_left_out() {
    let mut random = Random(8);
    let mut bodies = Bodies::default();
    for id in 0..300 {
        let (x, v) = (direction(&mut random), direction(&mut random));
        bodies.push(body(id, x, v, 1.0));
    }
    let mut after = bodies.clone();
    for i in 0..300 {
        after.x[i] += 0.05 * after.vx[i];
        after.y[i] += 0.05 * after.vy[i];
        after.z[i] += 0.05 * after.vz[i];
    }
    let motion = Motion::of(&bodies, &after, 0.05);
    let radii: Vec<f64> = (0..300)
        .map(|i| if i % 3 == 0 { 0.03 } else { 0.0 })
        .collect();
    let pairs = search::close_pairs(&motion, &radii);
    let mut met = 0;
    for i in 0..300 {
        for j in i + 1..300 {
            let sum = radii[i] + radii[j];
            let meets = sum > 0.0 && !motion.contacts([i, j], sum).is_empty();
            assert!(!meets || pairs.contains(&(i, j)), "{i} {j}");
            met += usize::from(meets);
        }
    }
    assert!(met > 5, "{met}");
    assert!(pairs.windows(2).all(|w| w[0] < w[1]));
}

/// Mass, momentum and the motion of the centre of mass stay; what the energy loses is accounted for.
#[test]
fn mergers_conserve_what_they_should() {
    let mut bodies = Bodies::default();
    bodies.push(body(7, [-1.0, 0.0, 0.0], [0.5, 0.1, 0.0], 2.0));
    bodies.push(body(8, [1.0, 0.02, 0.0], [-0.5, 0.06, 0.0], 3.0));
    bodies.push(body(9, [0.0, 5.0, 1.0], [0.1, 0.0, 0.0], 1.0));
    bodies.push(body(10, [0.0, -6.0, 1.0], [0.1, 0.0, 0.0], 0.0));
    let mut simulation = Simulation::builder(bodies.clone())
        .gravity(0.1, 0.0)
        .integrator(Integrator::Yoshida6)
        .accuracy(ForceAccuracy::Double)
        .device(DeviceChoice::Cpu)
        .encounters(merging(vec![0.1, 0.05, 0.05, 0.0]))
        .dt(1e-3)
        .build()
        .unwrap();
    let origin = simulation.conserved().unwrap();
    simulation.run_until(3.0).unwrap();
    let events = simulation.take_events();
    let [
        Event {
            what: Happening::Collision { ids, masses, .. },
            ..
        },
    ] = events[..]
    else {
        panic!("one collision: {events:?}");
    };
    assert_eq!((ids, masses), ([8, 7], [3.0, 2.0]));
    let end = simulation.bodies().unwrap().clone();
    assert_eq!(end.id, [8, 9, 10]);
    assert_eq!(end.mass, [5.0, 1.0, 0.0]);
    let after = simulation.conserved().unwrap();
    let lost = simulation.lost();
    assert!(
        lost.energy > 0.1 && after.energy.lost == lost.energy,
        "{lost:?}"
    );
    let drift = after.drift_since(&origin);
    assert!(drift.energy <= 1e-5, "{drift:?}");
    assert!(
        drift.momentum <= 1e-13 && drift.angular_momentum <= 1e-13,
        "{drift:?}"
    );
    // Momentum by itself is conserved; angular momentum becomes spin.
    assert!(lost.momentum.iter().all(|p| p.abs() <= 1e-13), "{lost:?}");
    assert!(lost.angular_momentum[2].abs() > 1e-3, "{lost:?}");
}

/// Bodies at rest that fall onto each other, which no step follows beyond their contact.
#[test]
fn block_steps_end_where_bodies_meet() {
    let mut bodies = Bodies::default();
    bodies.push(body(0, [0.0; 3], [0.0; 3], 1.0));
    bodies.push(body(1, [1.0, 0.0, 0.0], [0.0; 3], 1e-3));
    // From r = 1 at rest to 0.1, with G m = 1.001: √(1/2µ) (acos √r + √(r (1 − r))).
    let r = 0.1_f64;
    let contact = (1.0 / 2.002_f64).sqrt() * (r.sqrt().acos() + (r * (1.0 - r)).sqrt());
    for on_collision in [OnCollision::Merge, OnCollision::Bounce, OnCollision::Stop] {
        let mut simulation = Simulation::builder(bodies.clone())
            .gravity(1.0, 0.0)
            .integrator(Integrator::Hermite6)
            .device(DeviceChoice::Cpu)
            .encounters(Encounters {
                on_collision,
                ..log(vec![0.05, 0.05])
            })
            .dt(0.125)
            .eta(0.3)
            .block_steps()
            .build()
            .unwrap();
        let origin = simulation.conserved().unwrap();
        simulation.run_until(1.2).unwrap();
        let events = simulation.take_events();
        assert_eq!(events.len(), 1, "{on_collision:?}: {events:?}");
        let off = (events[0].time - contact).abs();
        assert!(off <= 1e-6, "{on_collision:?}: off by {off:e}");
        let drift = simulation.conserved().unwrap().drift_since(&origin).energy;
        assert!(drift <= 1e-4, "{on_collision:?}: {drift:e}");
    }
}

/// Two massless bodies are taken for equal, whichever comes first.
#[test]
fn massless_bodies_merge_as_equals() {
    let mut bodies = Bodies::default();
    bodies.push(body(0, [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 0.0));
    bodies.push(body(1, [1.0, 0.0, 0.0], [-1.0, 0.5, 0.0], 0.0));
    bodies.push(body(2, [0.0, 50.0, 0.0], [0.0; 3], 1.0));
    let mut simulation = free(bodies, 0.1, merging(vec![0.6, 0.6, 0.0]));
    simulation.run_until(2.0).unwrap();
    let left = simulation.bodies().unwrap();
    assert_eq!(left.id, [0, 2]);
    let v = left.body(0).velocity;
    assert!(distance(v, [0.0, 0.25, 0.0]) <= 1e-12, "{v:?}");
}

/// Hard spheres keep their energy and momentum, and never stay within each other.
#[test]
fn bounces_are_elastic() {
    for (masses, dt) in [([1.0, 3.0], 0.37), ([2.0, 0.0], 0.1), ([0.0, 0.0], 0.1)] {
        let mut bodies = Bodies::default();
        bodies.push(body(0, [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], masses[0]));
        bodies.push(body(1, [1.0, 0.05, 0.0], [-1.0, 0.0, 0.0], masses[1]));
        let encounters = Encounters {
            on_collision: OnCollision::Bounce,
            ..log(vec![0.1, 0.1])
        };
        let mut simulation = free(bodies.clone(), dt, encounters);
        let before = simulation.conserved().unwrap();
        simulation.run_until(2.0).unwrap();
        assert_eq!(simulation.take_events().len(), 1);
        let after = simulation.conserved().unwrap();
        let end = simulation.bodies().unwrap();
        let apart = distance(end.body(0).position, end.body(1).position);
        assert!(apart > 0.2, "{masses:?}: {apart}");
        let kinetic = (after.energy.kinetic - before.energy.kinetic).abs();
        assert!(kinetic <= 1e-12, "{masses:?}: {kinetic}");
        assert!(after.drift_since(&before).momentum <= 1e-13, "{masses:?}");
        // Towards each other as fast as apart.
        let v = distance(end.body(0).velocity, end.body(1).velocity);
        assert!((v - 2.0).abs() <= 1e-12, "{v}");
    }
}

#[test]
fn a_collision_stops_the_run() {
    let mut bodies = Bodies::default();
    bodies.push(body(0, [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 1.0));
    bodies.push(body(1, [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], 1.0));
    let encounters = Encounters {
        on_collision: OnCollision::Stop,
        ..log(vec![0.1, 0.1])
    };
    let mut simulation = free(bodies, 0.125, encounters);
    simulation.run_until(5.0).unwrap();
    assert_eq!(simulation.time(), 1.0); // the step in which they touch, at 0.9
    let event = simulation.stopped_by().expect("a collision");
    assert!((event.time - 0.9).abs() <= 1e-9, "{event:?}");
    let text = event.to_string();
    assert!(
        text.starts_with("bodies with ids 0 and 1 collided at time 0."),
        "{text}"
    );
}

/// Where others are only logged, even if they came first in the same step.
#[test]
fn the_event_that_stops_the_run_is_named() {
    let mut bodies = Bodies::default();
    bodies.push(body(0, [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 1.0));
    bodies.push(body(1, [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], 1.0));
    bodies.push(body(2, [0.0, 2.0, 0.0], [0.0, 1.0, 0.0], 0.0));
    let encounters = Encounters {
        escape: Some((2.95, OnEscape::Stop)),
        ..log(vec![0.1, 0.1, 0.0])
    };
    let mut simulation = free(bodies, 1.0, encounters);
    simulation.run_until(5.0).unwrap();
    assert_eq!(simulation.take_events().len(), 2);
    let event = simulation.stopped_by().expect("an escape");
    assert!(matches!(event.what, Happening::Escape { id: 2, .. }));
}

#[test]
fn escapers_are_told_or_taken_away() {
    let mut bodies = Bodies::default();
    bodies.push(body(0, [0.0; 3], [0.0; 3], 1e6));
    bodies.push(body(1, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 1.0));
    bodies.push(body(2, [0.0, 1.0, 0.0], [0.0, 0.1, 0.0], 1.0));
    for action in [OnEscape::Log, OnEscape::Remove, OnEscape::Stop] {
        let encounters = Encounters {
            escape: Some((2.0, action)),
            ..Encounters::none()
        };
        let mut simulation = free(bodies.clone(), 0.25, encounters);
        let origin = simulation.conserved().unwrap();
        simulation.run_until(4.0).unwrap();
        let events = simulation.take_events();
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(matches!(events[0].what, Happening::Escape { id: 1, .. }));
        assert_eq!(events[0].time, 1.25);
        let left = simulation.bodies().unwrap().len();
        assert_eq!(left, if action == OnEscape::Remove { 2 } else { 3 });
        assert_eq!(
            simulation.time(),
            if action == OnEscape::Stop { 1.25 } else { 4.0 }
        );
        let drift = simulation.conserved().unwrap().drift_since(&origin);
        assert!(
            drift.energy <= 1e-12 && drift.momentum <= 1e-13,
            "{drift:?}"
        );
    }
}

/// Both leave each other; who is left alone is the centre of mass.
#[test]
fn the_last_body_stays() {
    let mut bodies = Bodies::default();
    bodies.push(body(0, [1.0, 0.0, 0.0], [5.0, 0.0, 0.0], 1.0));
    bodies.push(body(1, [-1.0, 0.0, 0.0], [-5.0, 0.0, 0.0], 1.0));
    let encounters = Encounters {
        escape: Some((3.0, OnEscape::Remove)),
        ..Encounters::none()
    };
    let mut simulation = free(bodies, 0.01, encounters);
    simulation.run_until(2.0).unwrap();
    assert_eq!(simulation.take_events().len(), 1);
    assert_eq!(simulation.bodies().unwrap().id, [1]);
}

/// Each fault is named with its number, and nothing panics.
#[test]
fn impossible_settings_are_refused() {
    let mut bodies = Bodies::default();
    bodies.push(body(0, [-1.0, 0.0, 0.0], [0.0; 3], 1.0));
    bodies.push(body(1, [1.0, 0.0, 0.0], [0.0; 3], 1.0));
    let escape = |radius| Encounters {
        escape: Some((radius, OnEscape::Log)),
        ..Encounters::none()
    };
    for (encounters, part) in [
        (log(vec![0.1]), "1 radii for 2 bodies"),
        (
            log(vec![0.1, -0.5]),
            "body 1 must be ≥ 0 and finite, got -0.5",
        ),
        (
            log(vec![f64::NAN, 0.5]),
            "body 0 must be ≥ 0 and finite, got NaN",
        ),
        (
            log(vec![0.0, 1.5]),
            "radius 1.5 of body 1 contains all bodies",
        ),
        (log(vec![0.9, 1.0 - 1e-9]), ""),
        (escape(0.0), "escape must be > 0 and finite, got 0"),
        (escape(0.5), "body 0 is beyond the radius of escape 0.5"),
    ] {
        match encounters.check(&bodies) {
            Ok(()) => assert_eq!(part, ""),
            Err(fault) => assert!(
                !part.is_empty() && fault.to_string().contains(part),
                "{fault}"
            ),
        }
    }
    bodies.push(body(2, [1.05, 0.0, 0.0], [0.0; 3], 1.0));
    let fault = log(vec![0.1, 0.1, 0.1]).check(&bodies).unwrap_err();
    assert!(matches!(fault, EncounterFault::Overlap(1, 2, _)), "{fault}");
}
