use super::*;
use crate::bodies::{Body, BodyKind};
use crate::fields::{External, ExternalField};
use crate::force::reference;
use crate::initial_conditions::{
    GENERATORS, J2000, Options, Parameter, kepler_ring, plummer, solar_system, two_body,
};
use crate::simulation::Simulation;

pub(super) const GRAVITY: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.0,
    softening: 0.0,
};

#[test]
fn softening_follows_the_mean_distance() {
    // Plummer's half-number radius in standard units is 0.766.
    let few = choose_softening(&plummer(1000, 1).expect("bodies"), &Known::NOTHING);
    let many = softening(&plummer(8000, 1).expect("bodies"));
    assert!((few.value - 0.0383).abs() < 0.004, "{few:?}");
    assert!(few.why.contains("mean distance"), "{few:?}");
    assert!((few.value / many - 2.0).abs() < 0.2, "{few:?} {many}");
    assert_eq!(softening(&two_body(1.0, 0.0).expect("bodies")), 0.0);
}

/// Bodies at random places of a ring fall onto each other, and nothing could follow them. Few may be meant so, and bodies
/// that collide do not come so near.
#[test]
fn bodies_of_a_ring_that_fall_onto_each_other_are_softened() {
    let ring = kepler_ring(100, 0, 0.1, 0.5).expect("bodies");
    let hill = (0.1 / 99.0 / 3.0_f64).cbrt();
    let found = choose_softening(&ring, &Known::NOTHING);
    assert!((found.value / (0.1 * hill) - 1.0).abs() < 0.1, "{found:?}");
    assert!(found.why.contains("fall onto each other"), "{found:?}");
    let made_by = Some(("kepler-ring", Advice::INDIVIDUALS));
    let known = Known {
        made_by,
        ..Known::NOTHING
    };
    assert_eq!(choose_softening(&ring, &known), found);
    let collide = Known {
        collide: true,
        ..known
    };
    assert_eq!(choose_softening(&ring, &collide).value, 0.0);
    let few = kepler_ring(15, 0, 0.1, 0.5).expect("bodies");
    assert_eq!(softening(&few), 0.0);
}

/// Steps of many systems are fixed: tens of bodies in each are softened, and a few are not.
#[test]
fn tens_of_bodies_of_many_systems_are_softened() {
    let of = |each: usize| {
        let bodies = |seed| plummer(each, seed).expect("bodies");
        let two: Bodies = bodies(1).iter().chain(bodies(2).iter()).collect();
        let known = Known {
            systems: 2,
            ..Known::NOTHING
        };
        choose_softening(&two, &known).value
    };
    assert!(of(64) > 0.0);
    assert_eq!(of(5), 0.0);
    assert_eq!(softening(&plummer(64, 1).expect("bodies")), 0.0);
}

/// Where systems lie is no reason to soften them more.
#[test]
fn systems_side_by_side_are_softened_as_one_of_them() {
    let mut many = Bodies::with_capacity(3000);
    for (seed, place) in [(1, 0.0), (2, 1e3), (3, 2e6)] {
        for body in plummer(1000, seed).expect("bodies").iter() {
            let [x, y, z] = body.position;
            many.push(Body {
                position: [x + place, y, z],
                ..body
            });
        }
    }
    let of = |bodies: &Bodies, systems| {
        let known = Known {
            systems,
            ..Known::NOTHING
        };
        choose_softening(bodies, &known)
    };
    let found = of(&many, 3);
    assert!((found.value - 0.0383).abs() < 0.004, "{found:?}");
    assert!(found.why.starts_with("the least of 3 systems"), "{found:?}");
    let one = plummer(1000, 1).expect("bodies");
    assert_eq!(of(&one, 1).value, softening(&one));
    assert_eq!(of(&many, 500).value, 0.0, "6 bodies each");
}

/// The Solar System with massless asteroids, in a ring from 2 to 3 au.
fn with_asteroids(asteroids: usize, mass: f64) -> Bodies {
    let mut bodies = solar_system(J2000).expect("in range");
    for k in 0..asteroids {
        let radius = 2.0 + k as f64 / asteroids as f64;
        let (sin, cos) = (k as f64).sin_cos();
        let speed = 1.0 / radius.sqrt();
        bodies.push(Body {
            position: [radius * cos, radius * sin, 0.0],
            velocity: [-speed * sin, speed * cos, 0.0],
            mass,
            id: bodies.len() as u64,
            kind: BodyKind::Star,
        });
    }
    bodies
}

/// Binaries are not parted by a softening that was chosen, from a file or not; pairs that are bound by
/// chance are no reason not to soften.
#[test]
fn binaries_are_not_softened() {
    let generator = GENERATORS.iter().find(|g| g.name == "plummer").expect("it");
    let with = |binaries, seed| {
        let options = Options::new(seed).with(Parameter::Bodies, 200.0);
        let options = options.with(Parameter::Binaries, binaries);
        let (made, _) = generator.make(&options, None, None).expect("in range");
        made.bodies
    };
    for seed in 1..=20 {
        let chosen = choose_softening(&with(0.1, seed), &Known::NOTHING);
        assert!(
            chosen.value == 0.0 && chosen.why.contains("binaries"),
            "{chosen:?}"
        );
    }
    let mut parted = 0;
    for seed in 1..=200 {
        let chosen = choose_softening(&plummer(200, seed).expect("bodies"), &Known::NOTHING);
        assert!(chosen.value > 0.0, "{seed}: {chosen:?}");
        parted += usize::from(chosen.why.contains("parts"));
    }
    assert!((1..60).contains(&parted), "{parted} of 200");
}

/// A softening that was given changes orbits of binaries; pairs that are bound by chance are not told of.
#[test]
fn a_softening_that_changes_orbits_is_found() {
    let under = |bodies: &Bodies, softening| {
        let physics = Physics {
            softening,
            ..GRAVITY
        };
        changed_pairs(bodies, &physics, 1)
    };
    let pair = two_body(1.0, 0.0).expect("bodies");
    let [axis] = under(&pair, 0.11)[..] else {
        panic!("one pair")
    };
    assert!((axis - 1.0).abs() < 1e-12, "{axis}");
    assert_eq!(under(&pair, 0.09), [0.0; 0]);
    let generator = GENERATORS.iter().find(|g| g.name == "plummer").expect("it");
    let options = Options::new(1).with(Parameter::Bodies, 500.0);
    let options = options.with(Parameter::Binaries, 0.3);
    let (made, _) = generator.make(&options, None, None).expect("in range");
    let axes = under(&made.bodies, 0.01);
    assert!(axes.len() > 50 && axes.is_sorted(), "{axes:?}");
    assert!(axes.last().is_some_and(|&axis| axis < 0.1), "{axes:?}");
    for seed in 1..=20 {
        let cluster = plummer(1000, seed).expect("bodies");
        assert_eq!(under(&cluster, 0.05), [0.0; 0], "{seed}");
    }
}

/// A pair far inside the softening leaves its reach as fast as it went round.
#[test]
fn pairs_that_softening_parts_are_followed() {
    let pair = two_body(1.0, 0.0).expect("bodies");
    let physics = Physics {
        softening: 100.0,
        ..GRAVITY
    };
    let pull = 0.5 / physics.softening.powi(3);
    let accelerations = [[pull, 0.0, 0.0], [-pull, 0.0, 0.0]];
    for times in [1.0, 2.0] {
        let span = (times, f64::INFINITY);
        let chosen = choose_step(&pair, &physics, &accelerations, None, span);
        // The two have the relative speed 1.
        assert!(
            (chosen.value / (50.0 * times) - 1.0).abs() < 1e-9,
            "{chosen:?}"
        );
        assert!(chosen.why.contains("softening length"), "{chosen:?}");
    }
}

/// Of many bodies, too, fixed steps follow a close pair that is not of the heaviest body, or the
/// program says that they cannot.
#[test]
fn steps_of_many_bodies_follow_their_binaries() {
    let mut bodies = plummer(200, 2).expect("bodies");
    let step = |bodies: &Bodies| {
        let of = Simulation::builder(bodies.clone()).softening(0.0);
        let of = of.integrator(Integrator::Leapfrog);
        let of = of.accuracy(ForceAccuracy::Double).build().expect("it runs");
        of.clock().dt
    };
    let before = step(&bodies);
    // A circular orbit about body 7.
    let (axis, centre) = (0.01, bodies.body(7));
    let gm = 2.0 * centre.mass;
    bodies.push(Body {
        position: [
            centre.position[0] + axis,
            centre.position[1],
            centre.position[2],
        ],
        velocity: [
            centre.velocity[0],
            centre.velocity[1] + (gm / axis).sqrt(),
            centre.velocity[2],
        ],
        id: 200,
        ..centre
    });
    let turned = (axis * axis * axis / gm).sqrt();
    let after = step(&bodies);
    assert!(
        (after / (0.01 * turned) - 1.0).abs() < 0.01,
        "{after} {turned}"
    );
    assert!(after < before);
}

#[test]
fn planets_rings_and_test_particles_are_not_softened() {
    for asteroids in [89, 90, 200, 2000] {
        let chosen = choose_softening(&with_asteroids(asteroids, 0.0), &Known::NOTHING);
        assert_eq!(chosen.value, 0.0, "{asteroids}: {chosen:?}");
    }
    let chosen = choose_softening(&with_asteroids(200, 1e-12), &Known::NOTHING);
    assert_eq!(chosen.value, 0.0);
    assert_eq!(chosen.why, "one body holds 99.9 % of the mass");
    for (mass_ratio, width) in [(0.0, 0.5), (0.1, 0.0)] {
        let ring = kepler_ring(300, 1, mass_ratio, width).expect("bodies");
        assert_eq!(softening(&ring), 0.0, "{mass_ratio}");
    }
    // Of two stars neither holds more than half of the mass.
    let mut binary = with_asteroids(200, 1e-12);
    let sun = binary.body(0);
    binary.push(Body {
        position: [30.0, 0.0, 0.0],
        ..sun
    });
    let chosen = choose_softening(&binary, &Known::NOTHING);
    assert_eq!(chosen.value, 0.0);
    assert!(chosen.why.starts_with("2 bodies hold 99."), "{chosen:?}");
    // Massless bodies are not counted where there are many with mass.
    let cluster = plummer(1000, 1).expect("bodies");
    let mut traced = cluster.clone();
    for k in 0..1000 {
        let [x, y, z] = cluster.body(k).position;
        traced.push(Body {
            position: [30.0 + x, y, z],
            mass: 0.0,
            ..cluster.body(k)
        });
    }
    assert_eq!(softening(&traced), softening(&cluster));
    // Planetesimals of equal masses, told by their units alone.
    let in_units = |units: &str| {
        let units = Some(units.parse().expect("units"));
        let known = Known {
            units,
            ..Known::NOTHING
        };
        choose_softening(&cluster, &known).value
    };
    assert_eq!(in_units("au"), 0.0);
    assert!(in_units("pc") > 0.0);
    // Masses do not matter to the unit law.
    let unit = Known {
        law: ForceLaw::Unit,
        ..Known::NOTHING
    };
    assert!(choose_softening(&with_asteroids(200, 0.0), &unit).value > 0.0);
}

/// Masses of stars in units that are known are not softened; a galaxy's particles are, and so are numbers without units.
#[test]
fn stars_are_not_softened() {
    let sphere = plummer(300, 1).expect("bodies");
    let softening = |mass_of_one: f64, units: Option<&str>| {
        let mut bodies = sphere.clone();
        bodies.mass.fill(mass_of_one);
        let known = Known {
            units: units.map(|text| text.parse().expect("units")),
            ..Known::NOTHING
        };
        choose_softening(&bodies, &known).value
    };
    assert_eq!(softening(0.5, Some("pc,Msun,km/s")), 0.0);
    assert_eq!(softening(0.5 / 232.5, Some("pc,km/s")), 0.0);
    assert!(softening(1e4, Some("pc,Msun,km/s")) > 0.0);
    assert!(softening(1e-4, Some("kpc,1e10Msun,km/s")) > 0.0);
    assert!(softening(0.5, None) > 0.0);
}

/// A mass function makes stars.
#[test]
fn a_mass_function_is_not_softened() {
    let plummer = crate::initial_conditions::find("plummer").expect("a name");
    let mut options = Options::new(1);
    assert_eq!(plummer.advice_of(&options).softening, None);
    options.masses = Some(crate::initial_conditions::MassFunction::Kroupa);
    assert_eq!(plummer.advice_of(&options).softening, Some(0.0));
}

#[test]
fn generators_carry_their_softening() {
    let softened = |name: &str| {
        let generator = crate::initial_conditions::find(name).expect("a name");
        let mut options = Options::new(1);
        if (generator.parameters.iter()).any(|(p, _)| *p == Parameter::Bodies) {
            options = options.with(Parameter::Bodies, 300.0);
        }
        let bodies = generator.generate(&options).expect("in range");
        let known = Known {
            made_by: Some((name, generator.advice_of(&options))),
            ..Known::NOTHING
        };
        choose_softening(&bodies, &known).value > 0.0
    };
    let individuals = [
        "kepler-ring",
        "two-body",
        "figure-eight",
        "sun-earth",
        "sun-earth-moon",
        "solar-system",
    ];
    for generator in GENERATORS {
        let alone = individuals.contains(&generator.name);
        assert_eq!(softened(generator.name), !alone, "{}", generator.name);
    }
    let many = crate::initial_conditions::find("many-galaxies").expect("a name");
    let rings = Options::new(1).of("kepler-ring").expect("a name");
    assert_eq!(many.advice_of(&rings).softening, Some(0.0));
}

/// The step of a leapfrog.
fn step(bodies: &Bodies, accelerations: &[[f64; 3]]) -> f64 {
    choose_step(bodies, &GRAVITY, accelerations, None, (1.0, f64::INFINITY)).value
}

#[test]
fn a_circular_orbit_takes_some_600_steps() {
    let bodies = two_body(1.0, 0.0).expect("bodies");
    let accelerations = reference::accelerations(&bodies, &GRAVITY);
    let steps = std::f64::consts::TAU / step(&bodies, &accelerations);
    assert!((steps - 628.3).abs() < 0.1, "{steps}");
    assert_eq!(step(&bodies, &[[0.0; 3]; 2]), 0.0);
}

/// Wherever the centre of a field is, and where the only body rests in its own centre of mass.
#[test]
fn steps_follow_fields() {
    let radius = 0.01_f64;
    for (centre, mass) in [(0.0, 0.0), (1000.0, 0.0), (1000.0, 1e-9)] {
        let mut bodies = Bodies::default();
        bodies.push(Body {
            position: [centre + radius, 0.0, 0.0],
            velocity: [0.0, radius.powf(-0.5), 0.0],
            mass,
            id: 0,
            kind: BodyKind::Star,
        });
        let field = ExternalField::point(1.0).at([centre, 0.0, 0.0]);
        let fields = [field].into_iter().collect();
        let external = External::new(&fields, 1.0);
        let accelerations = [external.acceleration([centre + radius, 0.0, 0.0])];
        let period = std::f64::consts::TAU * radius.powf(1.5);
        let chosen = choose_step(
            &bodies,
            &GRAVITY,
            &accelerations,
            Some(&external),
            (1.0, f64::INFINITY),
        );
        let steps = period / chosen.value;
        assert!((steps - 628.3).abs() < 0.1, "at {centre}: {steps}");
        let longest = longest_step(&bodies, &accelerations, Some(&external));
        assert!((period / longest - 50.3).abs() < 0.1, "{longest}");
    }
}

/// The largest error of the energy at 200 times until `until`, from the default step.
fn largest_drift(bodies: &Bodies, until: f64) -> f64 {
    let accelerations = reference::accelerations(bodies, &GRAVITY);
    let dt = step(bodies, &accelerations);
    let backend = Box::new(reference::Reference::new(bodies, GRAVITY));
    let integrator = Advice::INDIVIDUALS.integrator;
    let mut simulation =
        Simulation::new(backend, bodies.clone(), GRAVITY, integrator, dt, 0.0).expect("a run");
    let origin = simulation.conserved().expect("energies");
    let steps = (until / dt / 200.0).ceil() as u64;
    let mut worst = 0.0_f64;
    for _ in 0..200 {
        let outcome = simulation.run(steps, |_| std::ops::ControlFlow::Continue(()));
        assert!(outcome.expect("steps").is_continue());
        let now = simulation.conserved().expect("energies");
        worst = worst.max(now.drift_since(&origin).energy);
    }
    worst
}

/// From apocentre, accelerations say nothing of the pericentre.
#[test]
fn default_steps_follow_pericentres() {
    for eccentricity in [0.5, 0.9, 0.95] {
        let bodies = two_body(1.0, eccentricity).expect("bodies");
        let drift = largest_drift(&bodies, 6.3);
        assert!(drift <= 4e-4, "{eccentricity}: {drift:e}");
    }
    // And of one of many massless bodies around a heavy one.
    let mut ring = kepler_ring(150, 1, 0.0, 0.5).expect("bodies");
    let accelerations = reference::accelerations(&ring, &GRAVITY);
    let circular = choose_step(&ring, &GRAVITY, &accelerations, None, (1.0, f64::INFINITY));
    ring.vx[7] *= 0.2;
    ring.vy[7] *= 0.2;
    let eccentric = choose_step(&ring, &GRAVITY, &accelerations, None, (1.0, f64::INFINITY));
    assert!(eccentric.value < 0.1 * circular.value, "{eccentric:?}");
    assert!(eccentric.why.contains("bodies 0 and 7"), "{eccentric:?}");
    // A fall into the centre has no pericentre that a fixed step could follow.
    ring.vx[7] = 0.0;
    ring.vy[7] = 0.0;
    let falling = choose_step(&ring, &GRAVITY, &accelerations, None, (1.0, f64::INFINITY));
    assert!(
        falling.value > 0.0 && falling.why.contains("hermite6"),
        "{falling:?}"
    );
}
