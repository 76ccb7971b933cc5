//! Is a changed simulation one that begins with the changed bodies, on every kind of backend, and are steps and
//! bookings kept?

use super::*;
use crate::backend::{Column, Neighbours};
use crate::encounters::{Encounters, Event, Happening, OnCollision, OnEscape};
use crate::fields::ExternalField;
use crate::initial_conditions::plummer;
use crate::selection::DeviceChoice::{self, Cpu, Emulator, Emulators};
use crate::simulation::SimulationBuilder;
use crate::{ForceAccuracy, Integrator};

/// A kind of backend: its name, its builder, and the error that its forces may have, relative to the largest.
type Kind = (
    &'static str,
    fn(Bodies) -> SimulationBuilder,
    DeviceChoice,
    f64,
);

/// Bodies of each of the tests.
const N: usize = 22;

fn leapfrog(bodies: Bodies) -> SimulationBuilder {
    Simulation::builder(bodies)
        .softening(0.05)
        .dt(1.0 / 128.0)
        .integrator(Integrator::Leapfrog)
}

fn blocks(bodies: Bodies, integrator: Integrator) -> SimulationBuilder {
    Simulation::builder(bodies)
        .softening(0.01)
        .integrator(integrator)
        .eta(if integrator == Integrator::Hermite6 {
            0.3
        } else {
            0.03
        })
        .dt(1.0 / 64.0)
        .block_steps()
        .groups(false)
}

const KINDS: [Kind; 19] = [
    (
        "leapfrog",
        |b| leapfrog(b).accuracy(ForceAccuracy::Double),
        Cpu,
        1e-14,
    ),
    (
        "f32",
        |b| leapfrog(b).accuracy(ForceAccuracy::Single),
        Cpu,
        1e-6,
    ),
    (
        "shared steps",
        |b| leapfrog(b).integrator(Integrator::Hermite6).eta(0.3),
        Cpu,
        1e-14,
    ),
    ("blocks", |b| blocks(b, Integrator::Hermite4), Cpu, 1e-14),
    (
        "sixth order",
        |b| blocks(b, Integrator::Hermite6),
        Cpu,
        1e-14,
    ),
    (
        "neighbours",
        |b| {
            blocks(b, Integrator::Hermite4).neighbours(Neighbours::Number(5.try_into().expect("5")))
        },
        Cpu,
        1e-14,
    ),
    (
        "fields",
        |b| blocks(b, Integrator::Hermite4).field(ExternalField::nfw(3.0, 2.0)),
        Cpu,
        1e-14,
    ),
    (
        "groups",
        |b| blocks(b, Integrator::Hermite4).softening(0.0).groups(true),
        Cpu,
        1e-12,
    ),
    (
        "groups at sixth order",
        |b| blocks(b, Integrator::Hermite6).softening(0.0).groups(true),
        Cpu,
        1e-12,
    ),
    (
        "neighbours next to groups",
        |b| {
            let b = blocks(b, Integrator::Hermite4).softening(0.0).groups(true);
            b.neighbours(Neighbours::Number(5.try_into().expect("5")))
        },
        Cpu,
        1e-12,
    ),
    ("systems", |b| leapfrog(b).systems(2), Cpu, 1e-6),
    ("device", leapfrog, Emulator, 1e-6),
    (
        "blocks on a device",
        |b| blocks(b, Integrator::Hermite4),
        Emulator,
        1e-6,
    ),
    (
        "sixth order on a device",
        |b| blocks(b, Integrator::Hermite6),
        Emulator,
        1e-6,
    ),
    (
        "neighbours on a device",
        |b| {
            blocks(b, Integrator::Hermite4).neighbours(Neighbours::Number(5.try_into().expect("5")))
        },
        Emulator,
        1e-6,
    ),
    (
        "groups on a device",
        |b| blocks(b, Integrator::Hermite4).softening(0.0).groups(true),
        Emulator,
        1e-6,
    ),
    (
        "systems on a device",
        |b| leapfrog(b).systems(2),
        Emulator,
        1e-6,
    ),
    (
        "blocks on devices",
        |b| blocks(b, Integrator::Hermite6),
        Emulators(2),
        1e-6,
    ),
    (
        "neighbours on devices",
        |b| {
            blocks(b, Integrator::Hermite4).neighbours(Neighbours::Number(5.try_into().expect("5")))
        },
        Emulators(2),
        1e-6,
    ),
];

/// A cluster, which may have a hard pair.
fn cluster(has_pair: bool) -> Bodies {
    let mut bodies = plummer(N, 3).expect("in range");
    if !has_pair {
        return bodies;
    }
    let pair = bodies.body(4);
    let (d, v) = (1e-3, (pair.mass / 1e-3_f64).sqrt());
    (bodies.x[5], bodies.y[5], bodies.z[5]) =
        (pair.position[0] + d, pair.position[1], pair.position[2]);
    (bodies.vx[5], bodies.vy[5], bodies.vz[5]) =
        (pair.velocity[0], pair.velocity[1] + v, pair.velocity[2]);
    bodies
}

type Change = (&'static str, fn(&mut Simulation) -> Result<(), ChangeError>);

const CHANGES: [Change; 6] = [
    ("kick", |simulation| {
        let kick = |i: usize| [1e-4 * i as f64, -2e-4, 1e-5 * (i * i) as f64];
        simulation.kick(
            &(0..simulation.number_of_bodies())
                .map(kick)
                .collect::<Vec<_>>(),
        )
    }),
    ("mass", |simulation| {
        let masses = Some(&[0.01, 0.06][..]);
        simulation.set(
            &[11, 3],
            NewValues {
                masses,
                ..NewValues::default()
            },
        )
    }),
    ("place", |simulation| {
        let (positions, velocities) = (Some(&[[0.4, 0.5, -0.3]][..]), Some(&[[0.1, 0.2, 0.0]][..]));
        simulation.set(
            &[7],
            NewValues {
                positions,
                velocities,
                ..NewValues::default()
            },
        )
    }),
    ("add", |simulation| {
        let mut more = Bodies::at_rest(&[[0.3, 0.3, 0.9], [-1.0, 0.2, 0.1]], &[0.02, 0.05]);
        (more.vx[1], more.id) = (0.3, vec![100, 90]);
        simulation.add(&more, &[])
    }),
    ("remove", |simulation| simulation.remove(&[90, 2])),
    ("massless", |simulation| {
        let masses = Some(&[0.0][..]);
        simulation.set(
            &[9],
            NewValues {
                masses,
                ..NewValues::default()
            },
        )
    }),
];

/// Largest difference of vectors, relative to the largest of the second ones.
fn differ(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
    let size = b
        .as_flattened()
        .iter()
        .fold(0.0_f64, |most, x| most.max(x.abs()));
    let pairs = a.as_flattened().iter().zip(b.as_flattened());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / size
}

/// A state as numbers.
fn numbers(simulation: &mut Simulation) -> (SavedNumbers, Bodies) {
    let (clock, state) = simulation.save().expect("saved");
    let bodies = simulation.bodies().expect("bodies").clone();
    (
        (clock, state, simulation.brought(), simulation.radii_now()),
        bodies,
    )
}

type SavedNumbers = (
    crate::simulation::Clock,
    crate::backend::SavedState,
    Brought,
    Option<Vec<f64>>,
);

fn check(&(name, build, device, bound): &Kind) {
    let build = |bodies: Bodies| build(bodies).device(device).build().expect("sound");
    let mut simulation = build(cluster(name.contains("groups")));
    simulation.run_until(1.0 / 64.0).expect("steps");
    let start = simulation.conserved().expect("energy").energy.total();
    for (what, change) in CHANGES {
        let before = numbers(&mut simulation);
        let energy = simulation.backend.energy().expect("energy").total();
        let total = simulation.energy().expect("energy").total();
        let booked = simulation.brought();
        if let Err(error) = change(&mut simulation) {
            let is_refused = match error {
                ChangeError::Systems => name.contains("systems"),
                ChangeError::MasslessInGroups(9) => name.contains("groups"),
                ChangeError::UnknownId(90) => name.contains("systems"), // which was not added
                _ => false,
            };
            assert!(is_refused, "{name}, {what}: {error}");
            assert!(
                numbers(&mut simulation) == before,
                "{name}, {what}: it stands as before"
            );
            continue;
        }
        // The forces of a simulation that begins so.
        let bodies = simulation.bodies().expect("bodies").clone();
        let mut begun = build(bodies.clone());
        let forces =
            [&mut simulation, &mut begun].map(|s| s.backend.accelerations().expect("forces"));
        let error = differ(&forces[0], &forces[1]);
        assert!(error <= bound, "{name}, {what}: {error:e}");
        // All energy is booked.
        let now = simulation.backend.energy().expect("energy").total();
        let brought = simulation.brought().energy - booked.energy;
        let error = (now - energy - brought).abs() / energy.abs();
        assert!(
            error <= 1e-12,
            "{name}, {what}: {error:e} of the energy is not booked"
        );
        let error = (simulation.energy().expect("energy").total() - total).abs() / total.abs();
        assert!(error <= 1e-12, "{name}, {what}: {error:e}");
        let ((_, state, ..), old) = before;
        let ((_, after, ..), _) = numbers(&mut simulation);
        if what == "kick" && name != "groups" {
            assert_eq!(after.own_steps(), state.own_steps(), "{name}");
            assert_eq!(after.spheres(), state.spheres(), "{name}");
            assert_eq!(bodies.x, old.x, "{name}");
        }
        if what == "kick" && state.has(Column::OwnSteps) {
            assert!(after.has(Column::OwnSteps), "{name}");
        }
    }
    let mut ids = simulation.bodies().expect("bodies").id.clone();
    if !name.contains("systems") {
        assert_eq!(ids.pop(), Some(100), "{name}");
        ids.insert(2, 2);
    }
    assert_eq!(ids, Vec::from_iter(0..N as u64), "{name}");
    simulation.run_until(2.0 / 64.0).expect("steps");
    let end = simulation.conserved().expect("energy").energy.total();
    let drift = ((end - start) / start).abs();
    assert!(drift < 2e-3, "{name}: {drift:e}");
}

#[test]
fn changed_simulations_are_those_of_the_changed_bodies() {
    KINDS.iter().for_each(check);
}

/// A change that cannot be made, and the reason in words.
type Bad = (fn(&mut Simulation) -> Result<(), ChangeError>, &'static str);

const BAD: [Bad; 20] = [
    (
        |s| s.kick(&[[0.0; 3]; 3]),
        "there are 3 velocities for 22 bodies",
    ),
    (
        |s| s.kick_some(&[1, 2], &[[0.0; 3]]),
        "there are 1 velocities for 2 bodies",
    ),
    (
        |s| s.kick_some(&[5], &[[0.0, f64::NAN, 0.0]]),
        "velocities of the body with the id 5: NaN is not a finite number",
    ),
    (|s| s.remove(&[3, 77]), "no body has the id 77"),
    (|s| s.remove(&[3, 4, 3]), "the id 3 was given twice"),
    (
        |s| s.remove(&Vec::from_iter(0..22)),
        "no body would be left",
    ),
    (
        |s| {
            set(
                s,
                &[1],
                NewValues {
                    masses: Some(&[]),
                    ..NONE
                },
            )
        },
        "there are 0 masses for 1 bodies",
    ),
    (
        |s| {
            set(
                s,
                &[1],
                NewValues {
                    masses: Some(&[-1.0]),
                    ..NONE
                },
            )
        },
        "-1.0 is negative",
    ),
    (
        |s| {
            set(
                s,
                &[1],
                NewValues {
                    masses: Some(&[f64::INFINITY]),
                    ..NONE
                },
            )
        },
        "masses of the body with the id 1: inf is not a finite number",
    ),
    (
        |s| {
            set(
                s,
                &[1],
                NewValues {
                    positions: Some(&[[f64::NAN; 3]]),
                    ..NONE
                },
            )
        },
        "positions of the body with the id 1",
    ),
    (
        |s| {
            let place = s.bodies()?.body(7).position;
            set(
                s,
                &[1],
                NewValues {
                    positions: Some(&[place]),
                    ..NONE
                },
            )
        },
        "would be at the same place, and the softening is 0",
    ),
    (
        |s| {
            let more = one(s.bodies()?.body(7).position, 50);
            s.add(&more, &[])
        },
        "would be at the same place",
    ),
    (
        |s| s.add(&one([9.0; 3], 7), &[]),
        "another body has the id 7 already",
    ),
    (
        |s| s.add(&one([f64::NAN; 3], 70), &[]),
        "new bodies: body 0: x = NaN",
    ),
    (
        |s| s.add(&one([9.0; 3], 70), &[0.1, 0.1]),
        "there are 2 radii for 1 bodies",
    ),
    (
        |s| {
            set(
                s,
                &[1],
                NewValues {
                    radii: Some(&[-0.1]),
                    ..NONE
                },
            )
        },
        "the radius of body 1 must be ≥ 0",
    ),
    (
        |s| {
            let Body {
                position: [x, y, z],
                ..
            } = s.bodies()?.body(7);
            s.add(&one([x + 1e-4, y, z], 70), &[1e-3])
        },
        "ids 7 and 70 would overlap",
    ),
    (
        |s| {
            set(
                s,
                &[1],
                NewValues {
                    positions: Some(&[[1e3, 0.0, 0.0]]),
                    ..NONE
                },
            )
        },
        "body 1 is beyond the radius of escape",
    ),
    // Found where forces are computed already.
    (
        |s| {
            set(
                s,
                &[1],
                NewValues {
                    positions: Some(&[[3.0, 0.0, 0.0]]),
                    ..NONE
                },
            )
        },
        "in the centre",
    ),
    (
        |s| {
            set(
                s,
                &[1],
                NewValues {
                    positions: Some(&[[f64::MAX, 0.0, 0.0]]),
                    ..NONE
                },
            )
        },
        "beyond the radius of escape",
    ),
];

const NONE: NewValues<'_> = NewValues {
    masses: None,
    positions: None,
    velocities: None,
    radii: None,
};

fn set(simulation: &mut Simulation, ids: &[u64], to: NewValues<'_>) -> Result<(), ChangeError> {
    simulation.set(ids, to)
}

fn one(position: [f64; 3], id: u64) -> Bodies {
    Bodies {
        id: vec![id],
        ..Bodies::at_rest(&[position], &[0.1])
    }
}

/// Bodies that collide and escape, in a field.
fn eventful(bodies: Bodies) -> Simulation {
    let encounters = Encounters {
        radii: vec![1e-3; bodies.len()],
        on_collision: OnCollision::Merge,
        escape: Some((50.0, OnEscape::Remove)),
    };
    let field = ExternalField::point(1e-6).at([3.0, 0.0, 0.0]);
    let builder = blocks(bodies, Integrator::Hermite4)
        .softening(0.0)
        .field(field);
    builder
        .encounters(encounters)
        .device(Cpu)
        .build()
        .expect("sound")
}

#[test]
fn a_change_that_is_refused_leaves_the_simulation_as_it_was() {
    let mut simulation = eventful(cluster(false));
    simulation.run_until(1.0 / 64.0).expect("steps");
    let before = numbers(&mut simulation);
    let mut others = vec![];
    for (change, why) in BAD {
        match change(&mut simulation).map_err(|error| error.to_string()) {
            Err(error) if error.contains(why) => {}
            other => others.push((other, why)),
        }
        assert!(numbers(&mut simulation) == before, "{why}");
    }
    assert!(others.is_empty(), "{others:#?}");
    // It goes on as one that nobody tried to change.
    let mut other = eventful(cluster(false));
    for time in [1.0 / 64.0, 3.0 / 64.0] {
        simulation.run_until(time).expect("steps");
        other.run_until(time).expect("steps");
    }
    assert!(numbers(&mut simulation) == numbers(&mut other));
    let mut plain = leapfrog(cluster(false)).device(Cpu).build().expect("sound");
    let refused = set(
        &mut plain,
        &[1],
        NewValues {
            radii: Some(&[0.1]),
            ..NONE
        },
    );
    assert!(matches!(refused, Err(ChangeError::NoEncounters)));
    assert!(matches!(
        plain.add(&one([9.0; 3], 70), &[0.1]),
        Err(ChangeError::NoEncounters)
    ));
    let field = ExternalField::first_post_newtonian(1, 1e4);
    let mut heavy = cluster(false);
    heavy.mass[1] = 1e3;
    let dominated = leapfrog(heavy)
        .integrator(Integrator::Hermite4)
        .field(field);
    let mut dominated = dominated.device(Cpu).build().expect("sound");
    for id in [0, 1] {
        assert!(matches!(
            dominated.remove(&[id]),
            Err(ChangeError::OtherDominant(1))
        ));
    }
    dominated.remove(&[2]).expect("another");
    let mut same = cluster(false);
    same.id[3] = 2;
    let mut same = leapfrog(same).device(Cpu).build().expect("sound");
    assert!(matches!(same.remove(&[2]), Err(ChangeError::Ambiguous(2))));
    same.remove(&[4]).expect("another");
}

#[test]
fn radii_go_along_and_new_bodies_collide() {
    let mut simulation = eventful(cluster(false));
    simulation.run_until(1.0 / 64.0).expect("steps");
    simulation.remove(&[0]).expect("there");
    let masses = Some(&[0.1][..]);
    let radii = Some(&[2e-3][..]);
    simulation
        .set(
            &[7],
            NewValues {
                masses,
                radii,
                ..NONE
            },
        )
        .expect("there");
    let Body {
        position: [x, y, z],
        velocity: [vx, vy, vz],
        ..
    } = simulation.bodies().expect("bodies").body(6);
    let mut more = one([x + 0.01, y, z], simulation.free_ids(1)[0]);
    (more.vx[0], more.vy[0], more.vz[0]) = (vx - 2.0, vy, vz);
    simulation.add(&more, &[3e-3]).expect("apart");
    let radii = simulation.radii_now().expect("radii");
    assert_eq!((radii[6], radii[21]), (2e-3, 3e-3));
    assert!((radii.iter().sum::<f64>() - 0.025).abs() < 1e-9);
    simulation.run_until(2.0 / 64.0).expect("steps");
    let events = simulation.take_events();
    assert!(
        matches!(
            events[..],
            [Event {
                what: Happening::Collision {
                    ids: [7, 22] | [22, 7],
                    ..
                },
                ..
            }]
        ),
        "{events:?}"
    );
    assert_eq!(simulation.number_of_bodies(), 21);
    assert!(simulation.lost().energy != 0.0 && simulation.brought().mass != 0.0);
}

/// With its bookings.
#[test]
fn a_changed_simulation_that_is_resumed_has_the_same_bits() {
    for (integrator, groups) in [
        (Integrator::Hermite4, true),
        (Integrator::Hermite4, false),
        (Integrator::Hermite6, true),
        (Integrator::Hermite6, false),
    ] {
        let builder = |bodies| {
            let softening = if groups { 0.0 } else { 0.01 };
            blocks(bodies, integrator)
                .softening(softening)
                .groups(groups)
                .device(Cpu)
        };
        let mut simulation = builder(cluster(groups)).build().expect("sound");
        simulation.run_until(0.02).expect("steps");
        for (what, change) in &CHANGES[..5] {
            change(&mut simulation).expect(what);
        }
        let ((clock, state, brought, _), bodies) = numbers(&mut simulation);
        let resumed = builder(bodies).resume(clock, &state).expect("saved");
        let mut resumed = resumed.having_brought(brought);
        for each in [&mut simulation, &mut resumed] {
            each.run_until(0.05).expect("steps");
        }
        assert!(
            numbers(&mut simulation) == numbers(&mut resumed),
            "{integrator:?}"
        );
    }
}

/// All but bodies that a change is about, and bodies next to them.
#[test]
fn steps_of_bodies_far_from_a_change_are_kept() {
    for device in [Cpu, Emulator] {
        let builder = blocks(plummer(40, 8).expect("in range"), Integrator::Hermite4);
        let mut simulation = builder.device(device).build().expect("sound");
        simulation.run_until(1.0 / 64.0).expect("steps");
        let before = simulation.own_steps().expect("steps");
        let positions = Some(&[[0.5, 0.5, 0.1]][..]);
        simulation
            .set(&[3], NewValues { positions, ..NONE })
            .expect("apart");
        let after = simulation.own_steps().expect("steps");
        let kept = before.iter().zip(&after).filter(|(a, b)| a == b).count();
        assert!((20..40).contains(&kept) && before[3] != after[3], "{kept}");
        assert!(
            after.iter().all(|step| *step > 0.0 && step.is_finite()),
            "{after:?}"
        );
    }
}

#[test]
fn simulations_of_ones_own_are_changed_too() {
    let bodies = cluster(false);
    let physics = crate::Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.05,
    };
    let machine = crate::Machine::new(crate::Place::CPU);
    let kernel = crate::variants::find("cpu-f64").expect("listed");
    let simulation = || {
        let backend = machine.backend(kernel, &bodies, physics).expect("made");
        let dt = crate::Pace::Fixed(0.01);
        Simulation::new(
            backend,
            bodies.clone(),
            physics,
            Integrator::Leapfrog,
            dt,
            0.0,
        )
        .expect("sound")
    };
    let mut fixed = simulation();
    assert!(matches!(
        fixed.kick(&[[0.1; 3]; N]),
        Err(ChangeError::FixedBodies)
    ));
    let machine = crate::Machine::new(crate::Place::CPU);
    let mut remade = simulation().remade_by(move |bodies| machine.backend(kernel, bodies, physics));
    let good = remade.good_state().expect("finite");
    remade.kick(&[[0.1; 3]; N]).expect("remade");
    assert!(remade.go_back_to(&good).is_err());
    let step = |backend: &mut dyn crate::Backend, dt: f64| {
        backend.drift(dt)?;
        backend.accelerate()?;
        backend.kick(dt)
    };
    let mut with_scheme = leapfrog(bodies.clone())
        .scheme(step)
        .device(Cpu)
        .build()
        .expect("sound");
    with_scheme.kick(&[[0.1; 3]; N]).expect("a kick");
    with_scheme.run_until(0.1).expect("steps");
    let momentum = with_scheme.conserved().expect("energy").momentum;
    assert!(momentum.iter().all(|p| p.abs() < 1e-5), "{momentum:?}");
}
