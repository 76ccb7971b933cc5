//! Pairs of which a body is a tight pair.

use super::contacts::{encounters, ids_and_time, the_event};
use super::*;
use crate::encounters::OnCollision;

/// Members of the tight pair, and the star about them, in [`triple`].
const TRIPLE: [usize; 3] = [0, 49, 48];

/// A cluster with a star about a tight pair: semi-major axes and eccentricities of its orbit and of the pair.
fn triple(outer: (f64, f64), tight: (f64, f64)) -> Bodies {
    let wholes = plummer(48, 5).expect("in range");
    let two = opened(&wholes, &[(0, outer.0, outer.1)]);
    opened(&two, &[(0, tight.0, tight.1)])
}

/// Semi-major axes and eccentricities: of the star's orbit about the tight pair, and of the tight pair.
fn orbits(bodies: &Bodies) -> [[f64; 2]; 2] {
    let [one, other, star] = TRIPLE.map(|i| bodies.body(i));
    let mass = one.mass + other.mass;
    let mean = |of: fn(&Body) -> [f64; 3]| {
        let (a, b) = (of(&one), of(&other));
        [0, 1, 2].map(|k| (one.mass * a[k] + other.mass * b[k]) / mass)
    };
    let mut two = Bodies::with_capacity(2);
    two.push(Body {
        position: mean(|body| body.position),
        velocity: mean(|body| body.velocity),
        mass,
        ..one
    });
    two.push(star);
    [
        elements(&two, [0, 1]),
        elements(bodies, [TRIPLE[0], TRIPLE[1]]),
    ]
}

/// Number of members of the group with the first body: below 0 if a body of it is a tight pair.
fn members_of_first(simulation: &mut Simulation) -> f64 {
    simulation.save().expect("saved").1.groups[9]
}

#[test]
fn a_star_about_a_tight_pair_costs_no_more_than_a_body() {
    for builder in OF_ORDERS {
        let bodies = triple((1e-5, 0.3), (1e-8, 0.6));
        let blocks = |bodies: Bodies| {
            let mut simulation = builder(bodies).groups(true).build().expect("sound");
            simulation.run_until(0.0625).expect("steps are taken");
            simulation
        };
        let whole = blocks(plummer(48, 5).expect("in range")).block_counts();
        let mut simulation = blocks(bodies.clone());
        assert_eq!(members_of_first(&mut simulation), -3.0);
        let counts = simulation.block_counts();
        assert!(counts.blocks <= whole.blocks + 32, "{counts:?}, {whole:?}");
        let after = orbits(simulation.bodies().expect("there"));
        for (after, before) in after.into_iter().zip([[1e-5, 0.3], [1e-8, 0.6]]) {
            assert!((after[0] / before[0] - 1.0).abs() < 1e-7, "{after:?}");
            assert!((after[1] - before[1]).abs() < 1e-7, "{after:?}");
        }
    }
}

#[test]
fn a_nested_pair_resumed_has_the_same_bits() {
    let three = triple((1e-3, 0.3), (1e-6, 0.5));
    let four = opened(&three, &[(TRIPLE[2], 2e-6, 0.1)]);
    for (builder, (bodies, members)) in OF_ORDERS.into_iter().zip([(three, -3.0), (four, -4.0)]) {
        let begun = || builder(bodies.clone()).build().expect("sound");
        let mut simulation = begun();
        simulation.run_until(0.0625).expect("steps are taken");
        assert_eq!(members_of_first(&mut simulation), members);
        let (clock, state) = simulation.save().expect("saved");
        let bodies = simulation.bodies().expect("there").clone();
        let mut resumed = builder(bodies).resume(clock, &state).expect("sound");
        let mut other = begun();
        let both = [&mut resumed, &mut other].map(|simulation| {
            simulation.run_until(0.125).expect("steps are taken");
            bits(&simulation.save().expect("saved"))
        });
        assert_eq!(both[0], both[1]);
    }
}

/// Radii that the stars get on the way are larger than the pericentre of the tight pair.
#[test]
fn members_of_a_tight_pair_meet() {
    for builder in OF_ORDERS {
        let bodies = triple((1e-3, 0.3), (1e-6, 0.5));
        let ids = [0, 1].map(|k| bodies.id[TRIPLE[k]]);
        let mut radii = vec![0.0; bodies.len()];
        radii[TRIPLE[0]] = 3e-7;
        radii[TRIPLE[1]] = 3e-7;
        let mut simulation = builder(bodies).build().expect("sound");
        simulation.run_until(0.0625).expect("steps are taken");
        assert_eq!(members_of_first(&mut simulation), -3.0);
        let [outer, _] = orbits(simulation.bodies().expect("there"));
        simulation
            .look_for(encounters(radii, OnCollision::Merge))
            .expect("they can change");
        simulation.run_until(0.125).expect("steps are taken");
        let (met, time) = ids_and_time(&the_event(&mut simulation));
        assert_eq!(met, ids);
        // Within one of its periods of 6e-8.
        assert!(time > 0.0625 && time < 0.062_501, "{time}");
        // The star goes on about both: they were at one place on its orbit.
        let after = simulation.bodies().expect("there");
        let after = elements(after, [TRIPLE[0], TRIPLE[2]]);
        assert!(
            (after[0] / outer[0] - 1.0).abs() < 1e-2,
            "{after:?} {outer:?}"
        );
    }
}

/// A star on its way past becomes one group with all members, and leaves again. The tight pair, which holds fifty times the
/// energy of the cluster, stays as it is.
#[test]
fn a_star_that_passes_a_nested_pair_leaves_the_energy_as_it_is() {
    for pericentre in [1.5e-3, 6e-3] {
        let mut bodies = triple((1e-3, 0.3), (1e-6, 0.5));
        let whole = plummer(48, 5).expect("in range").body(0);
        let total = 2.0 * whole.mass;
        let impact = (pericentre * pericentre + 2.0 * pericentre * total).sqrt();
        let speed = (1.0 + 2.0 * total / 0.1).sqrt();
        let passes = Body {
            position: [
                whole.position[0] - 0.1,
                whole.position[1] + impact,
                whole.position[2],
            ],
            velocity: [
                whole.velocity[0] + speed,
                whole.velocity[1],
                whole.velocity[2],
            ],
            ..bodies.body(1)
        };
        set(&mut bodies, 1, passes);
        let [_, before] = orbits(&bodies);
        let mut simulation = sixth(bodies).dt(1.0 / 512.0).build().expect("sound");
        let energy = simulation.energy().expect("computed").total();
        let mut members = vec![];
        for step in 1..=64 {
            let time = f64::from(step) / 512.0;
            simulation.run_until(time).expect("steps are taken");
            members.push(members_of_first(&mut simulation));
        }
        members.dedup();
        assert_eq!(members, [-3.0, 4.0, -3.0]);
        let off = simulation.energy().expect("computed").total() - energy;
        assert!(off.abs() < 2e-6, "{pericentre}: {off:e} of {energy}");
        let [_, after] = orbits(simulation.bodies().expect("there"));
        assert!((after[0] / before[0] - 1.0).abs() < 1e-8, "{after:?}");
    }
}
