//! Contacts of members of groups.

use super::*;
use crate::encounters::{Encounters, Event, Happening, OnCollision};
use crate::groups::Groups;

pub(super) fn encounters(radii: Vec<f64>, on_collision: OnCollision) -> Encounters {
    Encounters {
        radii,
        on_collision,
        ..Encounters::none()
    }
}

/// A pair at its apocentre, and two far bodies.
fn pair_with_spectators(axis: f64, e: f64) -> Bodies {
    let some = plummer(3, 1).expect("in range");
    let mut wholes = Bodies::with_capacity(3);
    let places = [[0.0; 3], [3.0, 0.0, 0.0], [-2.0, 1.0, 0.5]];
    for (i, (position, mass)) in places.into_iter().zip([1.0, 0.1, 0.1]).enumerate() {
        wholes.push(Body {
            position,
            velocity: [0.0; 3],
            mass,
            ..some.body(i)
        });
    }
    opened(&wholes, &[(0, axis, e)])
}

/// The only event of a run.
pub(super) fn the_event(simulation: &mut Simulation) -> Event {
    let events = simulation.take_events();
    let [event] = &events[..] else {
        panic!("{events:?}");
    };
    *event
}

pub(super) fn ids_and_time(event: &Event) -> ([u64; 2], f64) {
    let Happening::Collision { ids, .. } = event.what else {
        panic!("{event}");
    };
    (ids, event.time)
}

#[test]
fn a_pair_merges_where_kepler_says() {
    for builder in OF_ORDERS {
        let (axis, e, radius): (f64, f64, f64) = (1e-3, 0.9999, 1e-6);
        // From the apocentre to the distance of both radii, E from the pericentre.
        let anomaly = ((1.0 - 2.0 * radius / axis) / e).acos();
        let expected = (axis.powi(3) / G).sqrt() * (0.5 * TAU - (anomaly - e * anomaly.sin()));
        for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
            let bodies = pair_with_spectators(axis, e);
            let ids = [bodies.id[0], bodies.id[3]];
            let radii = vec![radius, 0.0, 0.0, radius];
            let simulation = builder(bodies)
                .device(device)
                .encounters(encounters(radii, OnCollision::Merge));
            let mut simulation = simulation.groups(true).build().expect("sound");
            simulation.run_until(0.01).expect("steps are taken");
            let event = the_event(&mut simulation);
            let (met, time) = ids_and_time(&event);
            assert_eq!(met, ids);
            assert!((time / expected - 1.0).abs() < 1e-7, "{time} {expected}");
            let Happening::Collision { speed, .. } = event.what else {
                unreachable!();
            };
            let fall = (2.0 * G / (2.0 * radius) - G / axis).sqrt();
            assert!((speed / fall - 1.0).abs() < 1e-6, "{speed} {fall}");
            let after = simulation.bodies().expect("there");
            assert_eq!(after.len(), 3);
            assert!((after.mass[0] - 1.0).abs() < 1e-15);
            // Both fell onto their centre of mass, which two bodies of a tenth pull at for 0.01.
            assert!(after.x[0].abs() < 1e-6, "{}", after.x[0]);
        }
    }
}

#[test]
fn a_pair_with_a_pericentre_farther_than_its_radii_does_not_meet() {
    let (axis, e) = (1e-4, 0.9);
    let pericentre = axis * (1.0 - e);
    for (share, meets) in [(0.999, false), (1.001, true)] {
        let bodies = pair_with_spectators(axis, e);
        let radius = 0.5 * share * pericentre;
        let found = encounters(vec![radius, 0.0, 0.0, radius], OnCollision::Stop);
        let simulation = builder(bodies).encounters(found).groups(true);
        let mut simulation = simulation.build().expect("sound");
        simulation.run_until(0.25).expect("steps are taken");
        assert_eq!(!simulation.take_events().is_empty(), meets, "{share}");
        assert_eq!(simulation.stopped_by().is_some(), meets, "{share}");
        // Stopped, or at the end.
        let end = if meets { 0.0625 } else { 0.25 };
        assert_eq!(simulation.time(), end, "{share}");
    }
}

#[test]
fn a_log_of_contacts_changes_no_bit() {
    for builder in OF_ORDERS {
        let ends = [true, false].map(|looks| {
            let bodies = cluster();
            let mut simulation = builder(bodies.clone());
            if looks {
                let mut radii = vec![0.0; bodies.len()];
                // Of the pairs with pericentres 0.0011 and 0.0021.
                for (pair, radius) in [(3, 6e-4), (5, 1.2e-3)] {
                    (radii[pair], radii[48 + pair]) = (radius, radius);
                }
                simulation = simulation.encounters(encounters(radii, OnCollision::Log));
            }
            let mut simulation = simulation.build().expect("sound");
            let mut found = vec![];
            for step in 1..=8 {
                simulation
                    .run_until(0.0625 * f64::from(step))
                    .expect("steps are taken");
                found.extend(simulation.take_events());
            }
            assert_eq!(!found.is_empty(), looks);
            let (clock, state) = simulation.save().expect("saved");
            (bits(&(clock, state)), found)
        });
        assert_eq!(ends[0].0, ends[1].0);
    }
}

/// Three bodies in the middle of a cluster, which become a multiple, against the same with shared steps.
#[test]
fn members_of_a_multiple_meet_as_without_groups() {
    for builder in OF_ORDERS {
        let mut bodies = plummer(40, 8).expect("in range");
        let places = [[0.0, 0.0, 0.0], [2e-3, 3e-4, 0.0], [7e-4, 1.4e-3, 5e-4]];
        for (i, [x, y, z]) in places.into_iter().enumerate() {
            [bodies.x[i], bodies.y[i], bodies.z[i]] = [x, y, z];
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] = [0.0, 0.2 * i as f64, 0.0];
        }
        let mut radii = vec![0.0; bodies.len()];
        radii[..3].fill(6e-5);
        let end = 1.0 / 512.0;
        let found = |simulation: SimulationBuilder| {
            let simulation = simulation.encounters(encounters(radii.clone(), OnCollision::Stop));
            let mut simulation = simulation.dt(end / 8.0).build().expect("sound");
            let (mut events, mut multiples) = (vec![], 0);
            for step in 1..=8 {
                let time = end / 8.0 * f64::from(step);
                simulation.run_until(time).expect("steps are taken");
                events.extend(simulation.take_events());
                let saved = simulation.save().expect("saved").1.groups;
                let groups = Groups::of_numbers(&saved, bodies.mass.clone(), G);
                let all = groups.into_iter().flat_map(|(groups, _)| groups.all);
                multiples += all.filter(|group| group.members.len() == 3).count();
                if !events.is_empty() {
                    break;
                }
            }
            (events, multiples)
        };
        let (events, multiples) = found(builder(bodies.clone()).groups(true));
        let shared = Simulation::builder(bodies.clone())
            .softening(0.0)
            .integrator(Integrator::Hermite6)
            .eta(0.002)
            .device(DeviceChoice::Cpu);
        let (expected, _) = found(shared);
        assert!(multiples > 0);
        let [(ids, time), (as_ids, as_time)] =
            [&events, &expected].map(|all| ids_and_time(&all[0]));
        assert_eq!(ids, as_ids);
        assert!((time - as_time).abs() < 1e-6 * end, "{time} {as_time}");
    }
}
