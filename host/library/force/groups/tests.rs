//! Do groups keep what they must: orbits, energies, bits?

mod contacts;
mod nested;

use std::f64::consts::TAU;
use std::num::NonZeroU32;

use gpu_kernels::schedule::block_steps::SPAN;

use super::Course;
use super::regroup::United;
use crate::backend::{Neighbours, SavedState};
use crate::bodies::{Bodies, Body, BodyKind};
use crate::diagnostics::kinetic;
use crate::fields::ExternalField;
use crate::force::cpu::Cpu;
use crate::force::hermite_order::Order;
use crate::force::in_memory::InMemory;
use crate::force::reference::potential_energy;
use crate::groups::Zone;
use crate::initial_conditions::plummer;
use crate::integrator::{Integrator, TimeSteps};
use crate::physics::{ForceLaw, Physics};
use crate::selection::DeviceChoice;
use crate::settings::Setting;
use crate::simulation::{Clock, Simulation, SimulationBuilder};
use crate::variants::preferred::ForceAccuracy;
use crate::vectors::{difference, dot};

const G: f64 = 1.0;

const GRAVITY: Physics = Physics {
    law: ForceLaw::Gravity,
    g: G,
    softening: 0.0,
};

/// Opens bodies into pairs, with these semi-major axes and eccentricities.
fn opened(bodies: &Bodies, pairs: &[(usize, f64, f64)]) -> Bodies {
    let mut all = bodies.clone();
    for (number, &(i, axis, e)) in pairs.iter().enumerate() {
        let whole = bodies.body(i);
        let gm = G * whole.mass;
        // At the apocentre, in planes that differ.
        let turn = TAU * 0.37 * number as f64;
        let (sin, cos) = turn.sin_cos();
        let distance = axis * (1.0 + e);
        let speed = (gm / axis * (1.0 - e) / (1.0 + e)).sqrt();
        let (r, v) = ([cos, sin, 0.0], [-0.6 * sin, 0.6 * cos, 0.8]);
        for share in [-0.5, 0.5] {
            let body = Body {
                position: [0, 1, 2].map(|k| whole.position[k] + share * distance * r[k]),
                velocity: [0, 1, 2].map(|k| whole.velocity[k] + share * speed * v[k]),
                mass: 0.5 * whole.mass,
                id: (2 * bodies.len() + all.len()) as u64,
                kind: BodyKind::Star,
            };
            match share < 0.0 {
                true => set(&mut all, i, body),
                false => all.push(body),
            }
        }
    }
    all
}

fn set(bodies: &mut Bodies, i: usize, body: Body) {
    [bodies.x[i], bodies.y[i], bodies.z[i]] = body.position;
    [bodies.vx[i], bodies.vy[i], bodies.vz[i]] = body.velocity;
    bodies.mass[i] = body.mass;
}

fn builder(bodies: Bodies) -> SimulationBuilder {
    Simulation::builder(bodies)
        .softening(0.0)
        .integrator(Integrator::Hermite4)
        .eta(0.01)
        .dt(0.0625)
        .block_steps()
        .device(DeviceChoice::Cpu)
}

fn sixth(bodies: Bodies) -> SimulationBuilder {
    builder(bodies).integrator(Integrator::Hermite6).eta(0.16)
}

/// Steps of both orders.
const OF_ORDERS: [fn(Bodies) -> SimulationBuilder; 2] = [builder, sixth];

/// A small cluster with pairs that others meet.
pub(in crate::force) fn cluster() -> Bodies {
    let wholes = plummer(48, 3).expect("in range");
    let axes = [1e-4, 3e-4, 1e-3, 2e-3, 4e-3, 8e-3];
    let pairs: Vec<(usize, f64, f64)> = (0..6).map(|i| (i, axes[i], 0.15 * i as f64)).collect();
    opened(&wholes, &pairs)
}

/// Semi-major axis and eccentricity of two bodies.
fn elements(bodies: &Bodies, [i, k]: [usize; 2]) -> [f64; 2] {
    let (a, b) = (bodies.body(i), bodies.body(k));
    let pair = crate::groups::Pair::new(
        G * (a.mass + b.mass),
        0.0,
        [0, 1, 2].map(|axis| b.position[axis] - a.position[axis]),
        [0, 1, 2].map(|axis| b.velocity[axis] - a.velocity[axis]),
    );
    [pair.semi_major_axis(), pair.eccentricity()]
}

#[test]
fn a_pair_alone_keeps_its_orbit() {
    for builder in OF_ORDERS {
        let whole = plummer(1, 1).expect("in range").body(0);
        let mut one = Bodies::with_capacity(1);
        one.push(Body {
            position: [0.0; 3],
            velocity: [0.0; 3],
            mass: 1.0,
            ..whole
        });
        let bodies = opened(&one, &[(0, 1e-5, 0.7)]);
        let mut simulation = builder(bodies).groups(true).build().expect("sound");
        let before = simulation.energy().expect("computed").total();
        simulation.run_until(1.0).expect("steps are taken");
        let [axis, e] = elements(simulation.bodies().expect("there"), [0, 1]);
        assert!((axis / 1e-5 - 1.0).abs() < 1e-12, "{axis:e}");
        assert!((e - 0.7).abs() < 1e-12, "{e}");
        let after = simulation.energy().expect("computed").total();
        assert!((after / before - 1.0).abs() < 1e-14, "{after} {before}");
        assert_eq!(simulation.block_counts().blocks, 16);
    }
}

#[test]
fn a_pair_that_nobody_meets_costs_no_more_than_a_body() {
    for builder in OF_ORDERS {
        let wholes = plummer(64, 5).expect("in range");
        let blocks = |bodies: Bodies| {
            let mut simulation = builder(bodies).groups(true).build().expect("sound");
            simulation.run_until(0.125).expect("steps are taken");
            simulation.block_counts()
        };
        let whole = blocks(wholes.clone());
        let opened = blocks(opened(&wholes, &[(7, 1e-7, 0.9)]));
        assert_eq!((opened.blocks, opened.steps), (whole.blocks, whole.steps));
    }
}

#[test]
fn a_cluster_with_pairs_keeps_its_energy() {
    for (builder, bound) in OF_ORDERS.into_iter().zip([2e-6, 4e-6]) {
        let mut simulation = builder(cluster()).build().expect("sound");
        let before = simulation.energy().expect("computed").total();
        simulation.run_until(1.0).expect("steps are taken");
        let after = simulation.energy().expect("computed").total();
        assert!((after - before).abs() < bound, "{:e}", after - before);
    }
}

/// Energies that groups add are those of all members, whether near bodies are single or groups themselves, and whether far
/// ones are seen as points or not at all.
#[test]
fn energies_are_those_of_all_bodies() {
    let wholes = plummer(300, 3).expect("in range");
    let sizes = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 1e-3, 2e-3];
    let pairs: Vec<_> = sizes
        .iter()
        .zip(0..)
        .map(|(&axis, i)| (i, axis, 0.3))
        .collect();
    let mut bodies = opened(&wholes, &pairs);
    // A tight pair and a wide one next to each other, with others between their distances.
    for axis in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
        let by = axis[5] - axis[2] + 0.1;
        for member in [2, 302] {
            axis[member] += by;
        }
    }
    let mut simulation = builder(bodies).groups(true).build().expect("sound");
    assert!(!simulation.save().expect("saved").1.groups.is_empty());
    let energy = simulation.energy().expect("computed").total();
    let all = simulation.bodies().expect("there");
    let exact = kinetic(all, &GRAVITY) + potential_energy(all, &GRAVITY);
    let error = (energy - exact) / exact;
    assert!(error.abs() < 1.5e-12, "{error:e}");
}

/// All numbers of a state as bytes.
fn bits((clock, state): &(Clock, SavedState)) -> String {
    format!("{clock:?} {state:?}")
}

fn on(device: DeviceChoice, bodies: Bodies) -> SimulationBuilder {
    builder(bodies).device(device)
}

/// The emulator's kernels compute the forces. The CPU takes the steps and follows groups.
#[test]
fn a_device_follows_groups_as_the_cpu_does() {
    for builder in OF_ORDERS {
        let ends = [DeviceChoice::Cpu, DeviceChoice::Emulator].map(|device| {
            let mut simulation = builder(cluster()).device(device).build().expect("sound");
            let before = simulation.energy().expect("computed").total();
            simulation.run_until(0.125).expect("steps are taken");
            let after = simulation.energy().expect("computed").total();
            let error = after - before;
            assert!(error.abs() < 2e-6, "{device:?}: {error:e}");
            let groups = simulation.save().expect("saved").1.groups;
            assert!(!groups.is_empty(), "{device:?}");
            (
                simulation.bodies().expect("there").clone(),
                before,
                groups.len(),
            )
        });
        let [(cpu, cpu_energy, cpu_groups), (emulator, energy, groups)] = ends;
        assert!(
            (energy / cpu_energy - 1.0).abs() < 1e-12,
            "{energy} {cpu_energy}"
        );
        assert_eq!(groups, cpu_groups);
        for (one, other) in cpu.iter().zip(emulator.iter()) {
            for k in 0..3 {
                let off = (one.position[k] - other.position[k]).abs();
                // Pairs are many periods on their way; a missing body would move all by some 1e-3.
                assert!(off < 1e-5, "{off:e}");
            }
        }
    }
}

#[test]
fn a_run_resumed_in_between_has_the_same_bits() {
    for builder in OF_ORDERS {
        for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
            let steps = if device == DeviceChoice::Cpu { 4 } else { 1 };
            let mut simulation = builder(cluster()).device(device).build().expect("sound");
            for step in 1..=steps {
                let time = 0.0625 * f64::from(step);
                simulation.run_until(time).expect("steps are taken");
                let saved = simulation.save().expect("saved");
                let bodies = simulation.bodies().expect("there").clone();
                let (clock, state) = &saved;
                let resumed = builder(bodies).device(device).resume(*clock, state);
                let mut resumed = resumed.expect("sound");
                assert_eq!(bits(&resumed.save().expect("saved")), bits(&saved));
                resumed.run_until(time + 0.125).expect("steps are taken");
                let mut other = builder(cluster()).device(device).build().expect("sound");
                other.run_until(time + 0.125).expect("steps are taken");
                let [resumed, other] = [&mut resumed, &mut other].map(|s| s.save().expect("saved"));
                assert_eq!(bits(&resumed), bits(&other));
            }
        }
    }
}

#[test]
fn a_run_without_pairs_has_the_same_bits_with_groups() {
    for builder in OF_ORDERS {
        let bodies = plummer(100, 2).expect("in range");
        let [with, without] = [true, false].map(|groups| {
            let simulation = builder(bodies.clone()).groups(groups).build();
            let mut simulation = simulation.expect("sound");
            simulation.run_until(0.125).expect("steps are taken");
            assert_eq!(
                simulation.save().expect("saved").1.groups.len(),
                if groups { 3 } else { 0 }
            );
            simulation.bodies().expect("there").clone()
        });
        assert_eq!(format!("{with:?}"), format!("{without:?}"));
    }
}

/// Two bodies of a hyperbolic encounter become a pair and are single again.
#[test]
fn pairs_are_formed_and_broken() {
    for builder in OF_ORDERS {
        let mut bodies = plummer(40, 8).expect("in range");
        let mass = bodies.mass[0];
        for (i, side) in [(0, -1.0), (1, 1.0)] {
            bodies.mass[i] = mass;
            [bodies.x[i], bodies.y[i], bodies.z[i]] = [0.05 * side, 0.002 * side, 0.0];
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] = [-side, 0.0, 0.0];
        }
        let mut simulation = builder(bodies).dt(1.0 / 1024.0).build().expect("sound");
        let before = simulation.energy().expect("computed").total();
        let mut counts = vec![];
        for step in 1..=128 {
            simulation
                .run_until(f64::from(step) / 1024.0)
                .expect("steps are taken");
            counts.push(simulation.save().expect("saved").1.groups[2] as usize);
        }
        assert!(counts.contains(&1), "{counts:?}");
        assert_eq!(counts.last(), Some(&0), "{counts:?}");
        let after = simulation.energy().expect("computed").total();
        assert!((after - before).abs() < 1e-7, "{:e}", after - before);
    }
}

/// With 16 neighbours of each body.
fn with_neighbours(builder: SimulationBuilder) -> SimulationBuilder {
    let sixteen = NonZeroU32::new(16).expect("not 0");
    builder.neighbours(Neighbours::Number(sixteen))
}

/// Slots with lists, and the bodies of a device, give the force of all pairs where a span begins. A missing body would
/// be some 1e-2 of the force.
#[test]
fn parts_of_the_force_are_the_whole() {
    for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
        let builder = || on(device, cluster());
        let mut simulations = [with_neighbours(builder()), builder()].map(|builder| {
            let mut simulation = builder.build().expect("sound");
            // One short step.
            simulation.run_until(1e-6).expect("steps are taken");
            simulation
        });
        let counts = simulations.each_mut().map(|run| run.block_counts());
        assert!(counts[0].neighbours > 0 && counts[1].neighbours == 0);
        let [parts, whole] = simulations
            .each_mut()
            .map(|run| run.save().expect("saved").1);
        for (i, (a, b)) in parts
            .accelerations()
            .iter()
            .zip(whole.accelerations())
            .enumerate()
        {
            let size = dot(*b, *b).sqrt();
            let error = difference(*a, *b);
            assert!(
                dot(error, error).sqrt() < 1e-9 * size,
                "{device:?} {i}: {a:?} {b:?}"
            );
        }
        assert_eq!(parts.groups.len(), whole.groups.len());
    }
}

/// Regular forces of others are computed in few steps, and the energy is kept all the same.
#[test]
fn neighbours_next_to_groups_keep_the_energy() {
    let builder = with_neighbours(on(DeviceChoice::Cpu, cluster()));
    let mut simulation = builder.build().expect("sound");
    let before = simulation.energy().expect("computed").total();
    simulation.run_until(1.0).expect("steps are taken");
    let after = simulation.energy().expect("computed").total();
    assert!((after - before).abs() < 4e-6, "{:e}", after - before);
    let counts = simulation.block_counts();
    assert!(counts.regular > 0 && counts.formed > 0, "{counts:?}");
    assert!(2 * counts.regular < counts.steps, "{counts:?}");
    let each = counts.neighbours as f64 / counts.steps as f64;
    assert!((8.0..32.0).contains(&each), "{each}");
}

#[test]
fn a_run_with_neighbours_resumed_in_between_has_the_same_bits() {
    for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
        let builder = with_neighbours(on(device, cluster()));
        let mut simulation = builder.build().expect("sound");
        simulation.run_until(0.0625).expect("steps are taken");
        let (clock, state) = simulation.save().expect("saved");
        let bodies = simulation.bodies().expect("there").clone();
        let builder = with_neighbours(on(device, bodies));
        let mut resumed = builder.resume(clock, &state).expect("sound");
        for run in [&mut resumed, &mut simulation] {
            run.run_until(0.125).expect("steps are taken");
        }
        let [resumed, other] = [&mut resumed, &mut simulation].map(|s| s.save().expect("saved"));
        assert_eq!(bits(&resumed), bits(&other), "{device:?}");
    }
}

/// Calls a function on a span that begins, in which all slots go straight on and take one step.
fn in_a_span(order: Order, bodies: &Bodies, test: impl FnOnce(&mut Course<'_>)) {
    let physics = GRAVITY;
    let mut cpu = Cpu::<f64>::new(bodies, physics).in_groups(None);
    let state = cpu.state_mut();
    state.jerks = vec![[0.0; 3]; bodies.len()];
    if order == Order::Sixth {
        state.higher = vec![Default::default(); bodies.len()];
    }
    state.own_steps = vec![1.0; bodies.len()];
    let groups = state.groups.take().expect("begun");
    let mut course = Course::new(&mut cpu, *groups, 1.0 / 16.0, 0.01);
    for slot in course.live.clone() {
        course.levels.set(slot, 0);
    }
    test(&mut course);
}

#[test]
fn slots_that_are_near_are_found_while_all_move() {
    let mut wholes = plummer(900, 4).expect("in range");
    // Of all classes of masses.
    for (i, mass) in wholes.mass.iter_mut().enumerate() {
        *mass *= [1.0, 10.0, 100.0, 1e3, 1e6][i % 5];
    }
    in_a_span(
        Order::Fourth,
        &opened(&wholes, &[(3, 1e-4, 0.2)]),
        |course| {
            let mut found = 0;
            for ticks in [0, SPAN / 64, SPAN / 8, SPAN / 2] {
                course.now = ticks;
                for turn in 0..40 {
                    let slot = course.live[(turn * 37) % course.live.len()];
                    let [x, _] = course.phase(slot);
                    for within in [0.01, 0.2] {
                        let is_near = |&other: &usize| {
                            let d = difference(course.phase(other)[0], x);
                            other != slot && dot(d, d) < within * within
                        };
                        let expected: Vec<usize> =
                            course.live.iter().copied().filter(is_near).collect();
                        found += expected.len();
                        assert_eq!(course.near(slot, |_| within), expected, "{slot} {within}");
                    }
                    // Another step begins here, in another direction.
                    let beginning = &mut course.backend.state_mut().beginnings[slot];
                    beginning.x = x;
                    beginning.v = beginning.v.map(|v| -3.0 * v);
                    course.begun[slot] = course.now;
                    course.note_steps(&[slot]);
                }
            }
            assert!(found > 500, "{found}");
        },
    );
}

/// Energy of a pair, with its partners and with what it is owed.
fn energy_of_pair(course: &Course<'_>, number: usize) -> f64 {
    let group = &course.groups.all[number];
    group.energy() + group.owed + course.owed(group, &group.partners, group.slowdown)
}

#[test]
fn a_change_of_partners_keeps_the_energy_of_a_pair() {
    let wholes = plummer(2000, 3).expect("in range");
    let pairs: Vec<(usize, f64, f64)> = (0..30).map(|i| (i, 1e-3, 0.03 * i as f64)).collect();
    in_a_span(Order::Fourth, &opened(&wholes, &pairs), |course| {
        let mut changes = 0;
        let mut largest: f64 = 0.0;
        for number in 0..course.groups.all.len() {
            course.choose(number).expect("finite");
        }
        for ticks in [SPAN / 64, SPAN / 8, SPAN / 2, SPAN] {
            course.now = ticks;
            for number in 0..course.groups.all.len() {
                course.follow(number).expect("finite");
                let scales = course.groups.scales;
                let group = &mut course.groups.all[number];
                group.describe(&scales);
                group.set_ring();
                let partners = group.partners.clone();
                let inner = group.energy();
                let before = energy_of_pair(course, number);
                course.choose(number).expect("finite");
                let after = energy_of_pair(course, number);
                let given = (course.groups.all[number].energy() - inner).abs();
                assert!(
                    (after - before).abs() < 1e-13 * before.abs(),
                    "{number}: {before:e} {after:e}"
                );
                largest = largest.max(given / inner.abs());
                changes += usize::from(partners != course.groups.all[number].partners);
            }
        }
        assert!(changes > 3 && largest > 1e-9, "{changes} {largest:e}");
    });
}

/// Relative change of a cluster's energy until a time, with these masses, positions and velocities of its first bodies.
fn change_of_energy(mut bodies: Bodies, heavy: [(f64, [f64; 3], [f64; 3]); 3], until: f64) -> f64 {
    for (i, (mass, position, velocity)) in heavy.into_iter().enumerate() {
        let body = Body {
            position,
            velocity,
            mass,
            ..bodies.body(i)
        };
        set(&mut bodies, i, body);
    }
    let mut simulation = sixth(bodies)
        .eta(0.3)
        .dt(1.0 / 128.0)
        .build()
        .expect("sound");
    let before = simulation.energy().expect("computed").total();
    simulation.run_until(until).expect("steps are taken");
    let after = simulation.energy().expect("computed").total();
    ((after - before) / before).abs()
}

/// Three heavy stars of a cluster meet, and one of the first pair leaves. Where the pair was divided for the third, the
/// energy changed by 3e-4.
#[test]
fn an_exchange_between_heavy_stars_keeps_the_energy() {
    let heavy = [
        (0.02, [-0.0006, 0.00076, -0.00012], [-0.157, -0.043, 0.505]),
        (0.015, [0.00081, -0.00101, 0.00017], [0.21, 0.057, -0.674]),
        (0.015, [-0.01088, -0.00245, -0.00459], [2.111, 0.242, 0.904]),
    ];
    let off = change_of_energy(plummer(2048, 5).expect("in range"), heavy, 1.0 / 16.0);
    assert!(off < 1e-5, "{off:e}");
}

/// A star passes a heavy pair that is too wide for a third member. It sees the members one by one, then the mean of the pair,
/// or no pair any more. Where this came in the midst of its step, the energy changed by 2e-5.
#[test]
fn a_star_that_passes_a_heavy_pair_keeps_the_energy() {
    let [one, other, third]: [f64; 3] = [0.02, 0.01, 0.002];
    let total = one + other;
    // Semi-major axis of the pair, and pericentre of the star.
    for (axis, pericentre) in [(0.005, 0.005), (0.01, 0.01)] {
        let e = 0.3;
        let (apocentre, speed) = (
            axis * (1.0 + e),
            (total / axis * (1.0 - e) / (1.0 + e)).sqrt(),
        );
        let impact = (pericentre * pericentre + 2.0 * pericentre * (total + third)).sqrt();
        let towards = (1.0 + 2.0 * (total + third) / 0.1).sqrt();
        let heavy = [(one, -other / total), (other, one / total)].map(|(mass, share)| {
            (
                mass,
                [share * apocentre, 0.0, 0.0],
                [0.0, share * speed, 0.0],
            )
        });
        let passes = [-0.07, 0.6 * impact, 0.8 * impact];
        let heavy = [heavy[0], heavy[1], (third, passes, [towards, 0.0, 0.0])];
        let off = change_of_energy(plummer(1024, 3).expect("in range"), heavy, 0.125);
        assert!(off < 1.5e-6, "{axis}: {off:e}");
    }
}

/// Within its step a partner's way is known. Later it would be taken from the partner's next step, backwards.
#[test]
fn a_pair_is_followed_where_the_step_of_a_heavy_or_hasty_partner_ends() {
    let mut bodies = opened(&plummer(64, 3).expect("in range"), &[(0, 1e-3, 0.5)]);
    let whole = bodies.body(0);
    let [x, y, z] = whole.position;
    let partner = 1;
    let whole_step = SPAN / 2;
    for (mass, step, is_followed) in [
        (0.02, whole_step, true),
        (1e-6, whole_step, false),
        (2e-4, whole_step / 8, false),
        (2e-4, whole_step / 16, true),
    ] {
        let body = Body {
            position: [x, y, z + 0.02],
            velocity: whole.velocity,
            mass,
            ..bodies.body(partner)
        };
        set(&mut bodies, partner, body);
        for order in [Order::Fourth, Order::Sixth] {
            in_a_span(order, &bodies, |course| {
                course.choose(0).expect("finite");
                course.now = whole_step;
                course.begun[partner] = course.now - step;
                course.predict();
                course.correct(&[partner]).expect("finite");
                let is_now = course.groups.all[0].time() == course.time(course.now);
                assert_eq!(is_now, is_followed, "{mass} {step}");
            });
        }
    }
}

#[test]
fn a_heavy_single_body_takes_shorter_steps() {
    let mut bodies = plummer(100, 6).expect("in range");
    bodies.mass[0] *= 30.0;
    for order in [Order::Fourth, Order::Sixth] {
        let mut steps = vec![];
        for is_heavy in [true, false] {
            in_a_span(order, &bodies, |course| {
                if !is_heavy {
                    course.heavy = f64::INFINITY;
                }
                course.now = SPAN;
                course.predict();
                course.take_steps(&[0]).expect("finite");
                steps.push(course.backend.state().own_steps[0]);
            });
        }
        let ratio = steps[0] / steps[1];
        let finer = order.of_heavy();
        assert!((ratio - finer.sqrt()).abs() < 1e-12, "{ratio}");
    }
}

/// A wide pair and a multiple with single bodies near them, and a hard pair in between. Members, partners and centres
/// go on between three times. What corrections say of these times is one force with two derivatives.
#[test]
fn corrections_of_members_are_derivatives_of_each_other() {
    let mut wholes = plummer(60, 4).expect("in range");
    let places = [
        [0.0, 0.0, 0.0],    // of the wide pair
        [7e-3, 2e-3, 1e-3], // near it
        [0.0, -0.03, 0.01], // of the hard pair
        [0.3, 0.0, 0.0],    // of the multiple, three times
        [0.304, 1e-3, 0.0],
        [0.301, -3e-3, 2e-3],
        [0.3, 0.015, -5e-3], // near it
    ];
    for (i, [x, y, z]) in places.into_iter().enumerate() {
        [wholes.x[i], wholes.y[i], wholes.z[i]] = [x, y, z];
    }
    let bodies = opened(&wholes, &[(0, 5e-3, 0.4), (2, 1e-3, 0.6)]);
    in_a_span(Order::Sixth, &bodies, |course| {
        let one = course.unite([3, 4], United::Bodies).expect("finite");
        course.unite([one, 5], United::Members).expect("finite");
        for number in 0..course.groups.all.len() {
            course.choose(number).expect("finite");
        }
        let slots = course.live.clone();
        // Ways that bend, from here.
        for (k, beginning) in course.backend.state_mut().beginnings.iter_mut().enumerate() {
            let bend = |factor: f64| [1.0, -0.7, 0.4].map(|x| factor * x * (k as f64).sin());
            (beginning.a, beginning.j) = (bend(2.0), bend(30.0));
            (beginning.s, beginning.c) = (bend(-900.0), bend(2e4));
        }
        let ticks = SPAN / 16384;
        let found = [10, 11, 12].map(|time| {
            course.now = time * ticks;
            course.predict();
            course.correct(&slots).expect("finite");
            course
                .corrections
                .iter()
                .map(|c| c.derivatives)
                .collect::<Vec<_>>()
        });
        let h = course.time(ticks);
        let mut seen = vec![];
        for &slot in &slots {
            let [before, now, after] = [0, 1, 2].map(|time| found[time][slot]);
            let close = course
                .view()
                .meetings_of(slot)
                .any(|(_, p)| p.zone == Zone::Close);
            for k in 1..3 {
                let change = difference(after[k - 1], before[k - 1]);
                let change = change.map(|x| x / (2.0 * h));
                let [error, size] = [difference(change, now[k]), now[k]].map(|v| dot(v, v).sqrt());
                if size > 0.0 {
                    assert!(error < 1e-3 * size, "{slot}, {k}: {error:e} of {size:e}");
                    seen.push((slot, k, close));
                }
            }
        }
        assert!(
            seen.contains(&(1, 2, true)) && seen.contains(&(6, 2, true)),
            "{seen:?}"
        );
        assert!(seen.iter().any(|&(_, _, close)| !close), "{seen:?}");
    });
}

/// A cluster on its way round a point mass, and a wide pair that the tide of this mass changes.
#[test]
fn groups_follow_external_fields() {
    for builder in OF_ORDERS {
        let field = ExternalField::point(50.0);
        let place = [4.0, 0.0, 0.0];
        let speed = [0.0, (50.0_f64 / 4.0).sqrt(), 0.0];
        let mut ends = vec![];
        for device in [DeviceChoice::Cpu, DeviceChoice::Emulator] {
            let bodies = cluster();
            let simulation = builder(bodies)
                .device(device)
                .field(field.clone())
                .orbit(place, speed);
            let mut simulation = simulation.build().expect("sound");
            let before = simulation.save().expect("saved").1.groups.len();
            simulation.run_until(0.125).expect("steps are taken");
            assert!(before > 3 && simulation.save().expect("saved").1.groups.len() > 3);
            ends.push(simulation.bodies().expect("there").clone());
        }
        let without = {
            let simulation = builder(cluster()).field(field.clone()).orbit(place, speed);
            let mut simulation = simulation.groups(false).build().expect("sound");
            simulation.run_until(0.125).expect("steps are taken");
            simulation.bodies().expect("there").clone()
        };
        // Without the field bodies would be 0.01 away.
        for (i, body) in without.iter().enumerate().take(48).skip(6) {
            for end in &ends {
                let d = difference(end.body(i).position, body.position);
                assert!(dot(d, d).sqrt() < 1e-5, "{i}: {d:?}");
            }
        }
    }
}

/// Energy of a cluster with pairs that falls through the centre of a galaxy.
#[test]
fn tides_of_fields_keep_the_energy() {
    for builder in OF_ORDERS {
        let mut bodies = cluster();
        bodies.x.iter_mut().for_each(|x| *x += 3.0);
        let field = ExternalField::plummer(100.0, 1.0);
        let mut simulation = builder(bodies).field(field).build().expect("sound");
        let before = simulation.energy().expect("computed").total();
        simulation.run_until(1.0).expect("steps are taken");
        let after = simulation.energy().expect("computed").total();
        assert!((after - before).abs() < 1e-5, "{:e}", after - before);
    }
}

/// A wide pair in a field, against the same pair in short steps.
#[test]
fn the_tide_of_a_field_turns_a_pair() {
    for (builder, eta) in OF_ORDERS.into_iter().zip([1e-4, 0.01]) {
        let whole = plummer(1, 1).expect("in range").body(0);
        let mut bodies = Bodies::with_capacity(1);
        bodies.push(Body {
            position: [2.0, 0.0, 0.0],
            velocity: [0.0, 5.0, 0.0],
            mass: 1e-3,
            ..whole
        });
        let pair = opened(&bodies, &[(0, 3e-3, 0.6)]);
        let ends = [true, false].map(|groups| {
            let simulation = builder(pair.clone()).eta(eta).groups(groups);
            let simulation = simulation.field(ExternalField::point(50.0));
            let mut simulation = simulation.build().expect("sound");
            simulation.run_until(1.0).expect("steps are taken");
            let groups = simulation.save().expect("saved").1.groups;
            (simulation.bodies().expect("there").clone(), groups.len())
        });
        let [(with, some), (without, none)] = &ends;
        assert!(*some > 3 && *none == 0, "{some}");
        let [axis, e] = elements(with, [0, 1]);
        let [expected_axis, expected_e] = elements(without, [0, 1]);
        assert!(
            (axis / expected_axis - 1.0).abs() < 1e-5,
            "{axis:e} {expected_axis:e}"
        );
        assert!(
            (e - expected_e).abs() < 1e-5 && (e - 0.6).abs() > 1e-3,
            "{e} {expected_e}"
        );
    }
}

#[test]
fn a_run_with_hard_pairs_follows_them_by_itself() {
    let run = Simulation::builder(cluster()).softening(0.0).resolve();
    let run = run.expect("sound");
    let chosen = |setting| run.choice(setting).map(|choice| choice.value.as_str());
    assert_eq!(chosen(Setting::BlockSteps), Some("on"));
    assert_eq!(chosen(Setting::Integrator), Some("hermite4"));
    assert_eq!(chosen(Setting::Eta), Some("0.01"));
    assert_eq!(run.spec.groups, Some(true));
    let few = Simulation::builder(plummer(15, 2).expect("in range")).softening(0.0);
    let few = few.resolve().expect("sound");
    assert_eq!(few.spec.time_steps(), TimeSteps::Blocks);
    for builder in [
        Simulation::builder(cluster()).softening(0.1),
        Simulation::builder(cluster()).softening(0.0).dt(1e-3),
        Simulation::builder(cluster()).softening(0.0).groups(false),
    ] {
        let run = builder.resolve().expect("sound");
        assert_eq!(run.spec.time_steps(), TimeSteps::Shared);
    }
}

#[test]
fn a_run_says_how_pairs_are_followed() {
    let said = |builder: SimulationBuilder| {
        let run = builder.resolve().expect("sound");
        let choice = run.choice(Setting::Groups).expect("there are pairs");
        (choice.value.clone(), choice.why.clone())
    };
    let (value, why) = said(builder(cluster()));
    assert!(
        value == "on" && why.starts_with("6 pairs followed apart"),
        "{why}"
    );
    let (value, why) = said(builder(cluster()).groups(false));
    assert!(
        value == "off" && why.starts_with("6 pairs in short steps"),
        "{why}"
    );
    assert_eq!(said(sixth(cluster())).0, "on");
    let in_f32 = builder(cluster()).accuracy(ForceAccuracy::Single);
    let (value, why) = said(in_f32);
    assert!(
        value == "off" && why.ends_with("needs forces in f64 on the CPU, or a GPU"),
        "{why}"
    );
    let refused = |builder: SimulationBuilder| {
        let built = builder.groups(true).build();
        built.err().expect("refused").to_string()
    };
    let softened = refused(builder(cluster()).softening(1e-3));
    assert_eq!(softened, "`groups` needs the `softening` 0");
    let mut massless = cluster();
    massless.mass[3] = 0.0;
    assert!(refused(builder(massless)).ends_with("bodies with mass, and some have none"));
}
