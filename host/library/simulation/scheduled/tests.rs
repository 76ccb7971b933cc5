//! Do bodies change exactly when they are to change, with the energies booked, on every kind of steps?

use std::convert::Infallible;

use super::*;
use crate::backend::Neighbours;
use crate::bodies::Bodies;
use crate::encounters::{Encounters, OnCollision};
use crate::initial_conditions::plummer;
use crate::selection::DeviceChoice::{self, Cpu, Emulator};
use crate::simulation::SimulationBuilder;
use crate::{ForceAccuracy, Integrator};

/// Times that no step ends at by itself.
const TIMES: [f64; 3] = [0.0137, 0.02213, 0.0301];

fn leapfrog(bodies: Bodies) -> SimulationBuilder {
    Simulation::builder(bodies)
        .softening(0.05)
        .dt(1.0 / 256.0)
        .integrator(Integrator::Leapfrog)
        .accuracy(ForceAccuracy::Double)
}

fn blocks(bodies: Bodies) -> SimulationBuilder {
    Simulation::builder(bodies)
        .softening(0.0)
        .integrator(Integrator::Hermite4)
        .eta(0.02)
        .dt(1.0 / 64.0)
        .block_steps()
        .groups(false)
}

type Kind = (&'static str, fn(Bodies) -> SimulationBuilder, DeviceChoice);

const KINDS: [Kind; 8] = [
    ("leapfrog", leapfrog, Cpu),
    (
        "shared steps",
        |b| leapfrog(b).integrator(Integrator::Hermite4).eta(0.02),
        Cpu,
    ),
    ("blocks", blocks, Cpu),
    (
        "sixth order",
        |b| blocks(b).integrator(Integrator::Hermite6).eta(0.1),
        Cpu,
    ),
    (
        "neighbours",
        |b| blocks(b).neighbours(Neighbours::Auto),
        Cpu,
    ),
    ("groups", |b| blocks(b).groups(true), Cpu),
    (
        "groups at sixth order",
        |b| {
            let sixth = blocks(b).integrator(Integrator::Hermite6);
            sixth.eta(0.1).groups(true)
        },
        Cpu,
    ),
    ("emulator", blocks, Emulator),
];

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn halved(body: &DueBody) -> BodyChange {
    BodyChange {
        mass: Some(body.mass / 2.0),
        ..BodyChange::default()
    }
}

/// A cluster of stars, of which the first two are a close pair.
fn cluster() -> Bodies {
    let mut bodies = plummer(24, 5).expect("in range");
    let (first, d) = (bodies.body(0), 2e-3);
    let speed = (2.0 * first.mass / d).sqrt();
    (bodies.x[1], bodies.y[1], bodies.z[1]) =
        (first.position[0] + d, first.position[1], first.position[2]);
    (bodies.vx[1], bodies.vy[1], bodies.vz[1]) = (
        first.velocity[0],
        first.velocity[1] + speed,
        first.velocity[2],
    );
    bodies
}

#[test]
fn masses_change_exactly_when_they_are_to_change() {
    for (name, build, device) in KINDS {
        let bodies = cluster();
        let mut simulation = build(bodies.clone()).device(device).build().expect(name);
        let before = simulation.energy().expect("an energy");
        let mut schedule = Schedule::new();
        TIMES.iter().for_each(|&time| schedule.insert(11, time));
        schedule.insert(0, TIMES[1]);
        schedule.insert(12, 1.0);
        let mut called = vec![];
        let change = |body: &DueBody| {
            called.push((body.time, body.id));
            Ok::<_, Infallible>(halved(body))
        };
        let ran = simulation.run_scheduled(0.04, &mut schedule, change, go_on);
        let (_, changes) = ran.expect(name);
        let [first, second, third] = TIMES;
        assert_eq!(
            called,
            [(first, 11), (second, 0), (second, 11), (third, 11)],
            "{name}"
        );
        assert_eq!((changes.done, changes.missed.len()), (4, 0), "{name}");
        assert_eq!(simulation.time(), 0.04, "{name}");
        assert_eq!(schedule.iter().collect::<Vec<_>>(), [(1.0, 12)], "{name}");
        let after = simulation.energy().expect("an energy");
        let now = simulation.bodies().expect("bodies");
        assert!(
            (now.mass[11] / bodies.mass[11] - 0.125).abs() < 1e-6,
            "{name}"
        );
        assert!((now.mass[0] / bodies.mass[0] - 0.5).abs() < 1e-6, "{name}");
        // Of bodies that attract each other something is missing now.
        let brought = simulation.brought();
        assert!(brought.energy > 0.02, "{name}: {brought:?}");
        let drift = after.drift_since(before);
        // Leapfrog's steps are too long for the pair.
        let bound = if name == "leapfrog" { 5e-3 } else { 2e-5 };
        assert!(drift.abs() < bound, "{name}: {drift}");
    }
}

/// Of the energy at the time of the change, to 1e-12 of the energy.
#[test]
fn a_change_books_the_energy_by_which_it_jumps() {
    for (name, build, device) in KINDS {
        let mut simulation = build(cluster()).device(device).build().expect(name);
        let mut schedule = Schedule::new();
        simulation.run_until(TIMES[0]).expect(name);
        let before = simulation.energy().expect("an energy");
        schedule.insert(0, TIMES[0]);
        let kicked = |body: &DueBody| {
            Ok::<_, Infallible>(BodyChange {
                kick: Some([0.1, -0.2, 0.3]),
                ..halved(body)
            })
        };
        let ran = simulation.run_scheduled(TIMES[0], &mut schedule, kicked, go_on);
        assert_eq!(ran.expect(name).1.done, 1, "{name}");
        let after = simulation.energy().expect("an energy");
        let jump = (after.kinetic + after.potential) - (before.kinetic + before.potential);
        let brought = simulation.brought().energy;
        assert!(brought.abs() > 0.01, "{name}: {brought}");
        let bound = if device == Cpu { 1e-12 } else { 1e-6 };
        assert!(
            (jump - brought).abs() < bound * (before.kinetic + before.potential.abs()),
            "{name}: {jump} {brought}"
        );
    }
}

/// Hills (1983, AJ 88, 1269): a pair of mass M loses ΔM at once at distance r. Then its semi-major axis becomes
/// a (M − ΔM)/(M − 2 ΔM a/r). The pair is not bound any more if this is negative.
#[test]
fn a_pair_that_loses_mass_at_once_is_what_hills_found() {
    for (share, eccentricity) in [(0.2, 0.0), (0.45, 0.0), (0.6, 0.0), (0.3, 0.5), (0.9, 0.5)] {
        for groups in [false, true] {
            let axis: f64 = 0.1;
            let apocentre = axis * (1.0 + eccentricity);
            let speed = ((1.0 - eccentricity) / apocentre).sqrt();
            let mut bodies = Bodies::at_rest(&[[0.0; 3], [apocentre, 0.0, 0.0]], &[0.95, 0.05]);
            (bodies.vy[0], bodies.vy[1]) = (-0.05 * speed, 0.95 * speed);
            let builder = blocks(bodies).eta(0.003).groups(groups).device(Cpu);
            let mut simulation = builder.build().expect("a pair");
            let mut schedule = Schedule::new();
            schedule.insert(0, TIMES[2]);
            let mut seen = None;
            let change = |body: &DueBody| {
                let of = body.pair.expect("a bound pair");
                seen = Some((of, body.position));
                Ok::<_, Infallible>(BodyChange {
                    mass: Some(body.mass - share),
                    ..BodyChange::default()
                })
            };
            let what = format!("{share} {eccentricity} {groups}");
            let ran = simulation.run_scheduled(TIMES[2], &mut schedule, change, go_on);
            assert_eq!(ran.expect(&what).1.done, 1, "{what}");
            let (before, position) = seen.expect("called");
            assert_eq!(before.ids, [0, 1], "{what}");
            assert!((before.semi_major_axis / axis - 1.0).abs() < 1e-7, "{what}");
            assert!((before.eccentricity - eccentricity).abs() < 1e-6, "{what}");
            let other = simulation.bodies().expect("bodies").body(1).position;
            let r = (0..3)
                .map(|k| (position[k] - other[k]).powi(2))
                .sum::<f64>()
                .sqrt();
            let a = before.semi_major_axis;
            let ratio = (1.0 - share) / (1.0 - 2.0 * share * a / r);
            let [due] = &simulation.due(&[1]).expect("there")[..] else {
                panic!("one body")
            };
            match due.pair {
                Some(after) => {
                    let found = after.semi_major_axis / a;
                    assert!(
                        (found / ratio - 1.0).abs() < 1e-9,
                        "{what}: {found} {ratio}"
                    );
                }
                None => assert!(ratio < 0.0, "{what}: {ratio}"),
            }
            let start = simulation.energy().expect("an energy");
            simulation.run_until(0.2).expect("steps");
            let drift = simulation.energy().expect("an energy").drift_since(start);
            assert!(drift.abs() < 1e-6, "{what}: {drift}");
        }
    }
}

#[test]
fn changes_follow_each_other_and_bodies_go() {
    let bodies = cluster();
    let encounters = Encounters {
        radii: vec![0.0; bodies.len()],
        on_collision: OnCollision::Merge,
        escape: None,
    };
    let builder = blocks(bodies).encounters(encounters).device(Cpu);
    let mut simulation = builder.build().expect("sound");
    let mut schedule = Schedule::new();
    schedule.insert(3, 0.01);
    schedule.insert(4, 0.015);
    schedule.insert(4, 0.03);
    let mut times = vec![];
    let change = |body: &DueBody| {
        assert_eq!(
            body.radius,
            Some(if times.len() > 1 && body.id == 3 {
                1e-5
            } else {
                0.0
            })
        );
        times.push(body.time);
        Ok::<_, Infallible>(match body.id {
            3 => BodyChange {
                radius: Some(1e-5),
                next: Some(body.time + 0.01).filter(|&next| next < 0.035),
                ..BodyChange::default()
            },
            _ => BodyChange {
                is_removed: true,
                ..BodyChange::default()
            },
        })
    };
    let ran = simulation.run_scheduled(0.05, &mut schedule, change, go_on);
    let (_, changes) = ran.expect("steps");
    assert_eq!(times.len(), 4);
    assert!((times[3] - 0.03).abs() < 1e-15 && times[1] == 0.015);
    assert_eq!((changes.done, changes.missed), (4, vec![(0.03, 4)]));
    let now = simulation.bodies().expect("bodies");
    assert!(now.len() == 23 && !now.id.contains(&4));
    assert!(schedule.next_time().is_none());
}

#[test]
fn a_change_that_fails_is_still_due_and_nothing_else_has_changed() {
    let mut simulation = blocks(cluster()).device(Cpu).build().expect("sound");
    let mut schedule = Schedule::new();
    schedule.insert(3, 0.0101);
    schedule.insert(5, 0.0101);
    let mut run = |change: &mut dyn FnMut(&DueBody) -> Result<BodyChange, &'static str>| {
        let ran = simulation.run_scheduled(0.02, &mut schedule, change, go_on);
        (
            ran.map_err(|error| error.to_string()),
            simulation.time(),
            schedule.iter().count(),
        )
    };
    let (failed, time, left) = run(&mut |body| match body.id {
        3 => Ok(halved(body)),
        _ => Err("the star has no metallicity"),
    });
    assert_eq!(
        failed.expect_err("the function failed"),
        "the change of the body with the id 5 at time 0.0101: the star has no metallicity"
    );
    assert_eq!((time, left), (0.0101, 2));
    let (failed, ..) = run(&mut |_| {
        Ok(BodyChange {
            mass: Some(f64::NAN),
            ..BodyChange::default()
        })
    });
    assert!(
        failed
            .expect_err("not a mass")
            .contains("not a finite number")
    );
    let (failed, ..) = run(&mut |body| {
        Ok(BodyChange {
            next: Some(body.time),
            ..BodyChange::default()
        })
    });
    assert!(failed.expect_err("the same time").contains("give a later"));
    let (ran, time, left) = run(&mut |body| Ok(halved(body)));
    assert_eq!((ran.expect("sound").1.done, time, left), (2, 0.02, 0));
    assert!((simulation.bodies().expect("bodies").mass[3] - 1.0 / 48.0).abs() < 1e-15);
    schedule.insert(7, 0.019);
    let past = simulation.run_scheduled(
        0.03,
        &mut schedule,
        |b| Ok::<_, Infallible>(halved(b)),
        go_on,
    );
    assert!(
        past.expect_err("past")
            .to_string()
            .contains("was due at time 0.019")
    );
    let mut back = leapfrog(cluster())
        .dt(-0.01)
        .device(Cpu)
        .build()
        .expect("sound");
    let back = back.run_scheduled(
        -1.0,
        &mut schedule,
        |b| Ok::<_, Infallible>(halved(b)),
        go_on,
    );
    assert!(matches!(back, Err(ScheduleError::Backward)));
}

/// Broken off on the way, and with the schedule as it was then.
#[test]
fn a_run_that_is_resumed_has_the_same_bits() {
    for groups in [false, true] {
        let builder = |bodies| blocks(bodies).groups(groups).device(Cpu);
        let change = |body: &DueBody| {
            Ok::<_, Infallible>(BodyChange {
                next: Some(body.time * 1.7).filter(|&next| next < 0.04),
                ..halved(body)
            })
        };
        let mut schedule = Schedule::new();
        TIMES.iter().for_each(|&time| schedule.insert(1, time));
        let mut whole = builder(cluster()).build().expect("sound");
        let mut parts = builder(cluster()).build().expect("sound");
        let mut of_parts = schedule.clone();
        let ran = whole.run_scheduled(0.05, &mut schedule, change, go_on);
        let done = ran.expect("steps").1.done;
        let mut counted = 0;
        while parts.time() < 0.05 {
            let broken = |_: Progress| ControlFlow::Break(());
            let ran = parts.run_scheduled(0.05, &mut of_parts, change, broken);
            counted += ran.expect("steps").1.done;
            let (clock, state) = parts.save().expect("saved");
            let (brought, bodies) = (parts.brought(), parts.bodies().expect("bodies").clone());
            let resumed = builder(bodies).resume(clock, &state).expect("saved");
            parts = resumed.having_brought(brought);
        }
        assert!(done > 3 && done == counted, "{done} {counted}");
        assert!(whole.bodies().expect("bodies") == parts.bodies().expect("bodies"));
        assert!(whole.brought() == parts.brought());
    }
}

/// Sums of the same numbers in another order, for one.
#[test]
fn times_that_differ_by_rounding_are_met_both() {
    for (name, build, device) in KINDS {
        let mut simulation = build(cluster()).device(device).build().expect(name);
        let times = [
            0.0123,
            f64::from_bits(0.0123_f64.to_bits() + 1),
            0.0123 + 1e-15,
        ];
        let mut schedule = Schedule::new();
        times.iter().for_each(|&time| schedule.insert(5, time));
        let mut seen = vec![];
        let change = |body: &DueBody| {
            seen.push(body.time);
            Ok::<_, Infallible>(halved(body))
        };
        let ran = simulation.run_scheduled(0.02, &mut schedule, change, go_on);
        assert_eq!(ran.expect(name).1.done, 3, "{name}");
        assert_eq!(seen, times, "{name}");
    }
}

#[test]
fn times_are_ordered_as_numbers_are() {
    let times = [
        -1e300,
        -2.5,
        -1e-300,
        -0.0,
        1e-310,
        1.0,
        1.0 + f64::EPSILON,
        3e200,
    ];
    let mut schedule = Schedule::new();
    times
        .iter()
        .rev()
        .for_each(|&time| schedule.insert(9, time));
    schedule.insert(9, 0.0);
    let found: Vec<f64> = schedule.iter().map(|(time, _)| time).collect();
    assert_eq!(found, times);
    schedule.remove(9);
    assert!(schedule.next_time().is_none());
}
