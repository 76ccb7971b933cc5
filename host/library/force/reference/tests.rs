//! The reference as a judge: the CPU's fields, term of relativity and steps are held against it. Kernels are held against
//! the CPU's elsewhere.

use gpu_kernels::schedule::block_steps::{Begun, Ended, Fourth, Scheme, Sixth, StepAccuracy};

use super::*;
use crate::backend::Backend;
use crate::bodies::Body;
use crate::diagnostics::{kinetic, largest, momentum};
use crate::fields::{ExternalField, FORMULAS, Fields, HostField, Orbit, Path, parse};
use crate::force::cpu::Cpu;
use crate::force::cpu::samples::{Random, body, cloud};
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::physics::ForceLaw;
use crate::simulation::Simulation;
use crate::vectors::distance;

const GRAVITY: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.5,
    softening: 0.05,
};

/// Each formula, and what else a field has: a centre, a path, an orbit, a function of the user's own.
fn each_field() -> Vec<(String, Fields)> {
    let texts = [
        "point:mass=1.3,x=0.2,y=-0.1",
        "plummer:mass=1.3,scale=0.7,x=0.2",
        "hernquist:mass=1.3,scale=0.7",
        "nfw:mass=1.3,scale=0.7,z=0.3",
        "miyamoto-nagai:mass=1.3,a=0.7,b=0.2",
        "isochrone:mass=1.3,scale=0.7",
        "logarithmic:speed=1.1,core=0.3,flattening=0.8",
        "logarithmic:speed=1.1",
        "power-law:mass=1.3,cutoff=0.7,exponent=1.8",
        "power-law:mass=1.3,cutoff=20,exponent=0.4",
        "tide:omega=0.7,kappa=0.9,nu=0.6",
    ];
    for formula in FORMULAS {
        let is_there = texts.iter().any(|text| text.starts_with(formula.name));
        assert!(is_there, "{} has no judge", formula.name);
    }
    let of_text = |text: &str| parse(text, None, GRAVITY.g).expect("a field");
    let mut all: Vec<(String, Fields)> = texts.map(|text| (text.into(), of_text(text))).into();
    for (name, shift) in [("inside its path", 0.0), ("before", -3.0), ("behind", 3.0)] {
        let path = Path::through(&[
            (shift - 1.0, [0.0, 0.1, 0.0]),
            (shift, [0.2, 0.0, 0.3]),
            (shift + 1.5, [0.5, -0.4, 0.2]),
        ]);
        let moving = ExternalField::plummer(1.3, 0.7).along(path.expect("a path"));
        all.push((name.into(), Fields::from_iter([moving])));
    }
    all.push(("a spring".into(), Fields::from_iter([spring()])));
    let galaxy = ["nfw:mass=9,scale=2,x=1", "miyamoto-nagai:mass=5,a=1,b=0.3"].map(of_text);
    let galaxy = galaxy.iter().flat_map(Fields::iter).cloned();
    let falling: Fields = galaxy.chain([spring()]).collect();
    let orbit = Orbit::new([4.0, 0.5, 0.3], [0.2, 1.1, 0.4]);
    all.push(("an orbit".into(), falling.on_orbit(orbit)));
    all
}

#[derive(Debug)]
struct Spring;

impl HostField for Spring {
    fn acceleration(&self, time: f64, x: [f64; 3]) -> [f64; 3] {
        x.map(|x| -x * time)
    }

    fn jerk(&self, time: f64, x: [f64; 3], v: [f64; 3]) -> Option<[f64; 3]> {
        Some([0, 1, 2].map(|axis| -v[axis] * time - x[axis]))
    }

    fn potential(&self, time: f64, x: [f64; 3]) -> Option<f64> {
        Some(0.5 * time * x.iter().map(|x| x * x).sum::<f64>())
    }
}

fn spring() -> ExternalField {
    ExternalField::own(Spring)
}

/// The CPU and the reference, in the same fields.
fn both(bodies: &Bodies, physics: Physics, fields: &Fields) -> [Box<dyn Backend>; 2] {
    let external = External::of_bodies(fields, bodies, &physics).expect("fields");
    let cpu = Cpu::<f64>::new(bodies, physics).in_fields(external.clone());
    [
        Box::new(cpu),
        Box::new(Reference::new(bodies, physics).in_fields(external)),
    ]
}

/// Accelerations, jerks and snaps of the bodies at this time.
fn derivatives(backend: &mut dyn Backend, time: f64) -> [Vec<[f64; 3]>; 3] {
    backend.reach(0.0, time).expect("an orbit");
    backend.set_time(time);
    Integrator::Hermite6.prepare(backend).expect("snaps");
    let saved = backend.save().expect("a state");
    let snaps = saved.higher().iter().map(|&[snap, _]| snap);
    [
        saved.accelerations().to_vec(),
        saved.jerks().to_vec(),
        snaps.collect(),
    ]
}

/// The largest distance of two vectors, of the size of the second.
fn off(found: &[[f64; 3]], expected: &[[f64; 3]]) -> f64 {
    let each = found.iter().zip(expected);
    largest(
        each.map(|(&found, &expected)| match distance(found, expected) {
            0.0 => 0.0,
            off => off / distance(expected, [0.0; 3]),
        }),
    )
}

/// Bodies without mass from 10⁻³ to 10³ from the origin, and one in it.
fn probes() -> Bodies {
    let mut bodies = Bodies::with_capacity(64);
    for (i, at) in cloud(63, 5).iter().enumerate() {
        let scale = 10_f64.powi(i as i32 % 7 - 3);
        bodies.push(Body {
            position: at.position.map(|x| scale * x),
            mass: 0.0,
            ..at
        });
    }
    bodies.push(Body {
        velocity: [0.3, -0.2, 0.1],
        ..body([0.0; 3], 0.0)
    });
    bodies
}

#[test]
fn kick_drift_and_energy() {
    let start = cloud(2, 3);
    let mut reference = Reference::new(&start, GRAVITY);
    reference.accelerate().unwrap();
    let a = reference.accelerations().unwrap();
    reference.kick(0.5).unwrap();
    reference.drift(2.0).unwrap();
    let mut now = start.clone();
    reference.download(&mut now).unwrap();
    assert_eq!(now.vy[0], start.vy[0] + 0.5 * a[0][1]);
    assert_eq!(now.y[0], start.y[0] + 2.0 * now.vy[0]);
    assert_eq!(now.mass, start.mass);
    let energy = reference.energy().unwrap();
    assert_eq!(energy.kinetic, kinetic(&now, &GRAVITY));
    assert_eq!(energy.potential, potential_energy(&now, &GRAVITY));
    let [before, after] = [&start, &now].map(|bodies| momentum(bodies, &GRAVITY));
    assert!(distance(before, after) <= 1e-15, "{before:?} {after:?}");
}

#[test]
fn fields_and_their_derivatives() {
    let time = 0.25;
    for (name, fields) in each_field() {
        let bodies = probes();
        let [found, expected] =
            both(&bodies, GRAVITY, &fields).map(|mut backend| derivatives(&mut *backend, time));
        let off = [0, 1, 2].map(|order| off(&found[order], &expected[order]));
        println!("{name}: off by {off:?}");
        // Near an origin that falls, two nearly equal accelerations are subtracted.
        let of_accelerations = if fields.orbit().is_some() {
            1e-11
        } else {
            2e-14
        };
        for (order, bound) in [of_accelerations, 1e-13, 1e-12].into_iter().enumerate() {
            assert!(off[order] <= bound, "{name}, derivative {order}: {off:?}");
        }
        // Of masses now, for the energies.
        let mut heavy = bodies;
        heavy.mass.fill(0.7);
        let singular = heavy.len() - 1;
        heavy.x[singular] = 0.1;
        let [found, expected] = both(&heavy, GRAVITY, &fields).map(|mut backend| {
            backend.reach(0.0, time).expect("an orbit");
            backend.set_time(time);
            backend.energy().expect("an energy").external
        });
        assert!(
            (found / expected - 1.0).abs() <= 1e-12,
            "{name}: {found} {expected}"
        );
    }
}

/// The origin on its orbit is accelerated by the reference's fields.
#[test]
fn the_origin_falls_freely() {
    let (name, fields) = each_field().pop().expect("some");
    assert!(fields.orbit().is_some(), "{name} is no orbit");
    let mut external = External::of_bodies(&fields, &Bodies::default(), &GRAVITY).expect("fields");
    external.extend(0.0, 3.0).expect("an orbit");
    let mut at = |time: f64| {
        external.set_time(time);
        external.origin().expect("an orbit")
    };
    let h = 1e-3;
    let difference = |[a, b, c, d]: [[f64; 3]; 4]| {
        [0, 1, 2].map(|k| (8.0 * (c[k] - b[k]) - (d[k] - a[k])) / (12.0 * h))
    };
    for time in [0.1, 1.3, 2.9] {
        let around = [-2.0, -1.0, 1.0, 2.0].map(|step| at(time + step * h));
        let [x, v] = at(time);
        let mut bodies = Bodies::with_capacity(1);
        bodies.push(body(x, 1.0));
        let resting: Fields = fields.iter().cloned().collect();
        let [_, mut reference] = both(&bodies, GRAVITY, &resting);
        reference.set_time(time);
        reference.accelerate().expect("forces");
        let a = reference.accelerations().expect("forces")[0];
        let off = [
            distance(difference(around.map(|[x, _]| x)), v),
            distance(difference(around.map(|[_, v]| v)), a),
        ];
        assert!(off.iter().all(|&off| off <= 1e-10), "{time}: {off:?}");
    }
}

/// A heavy body and light ones about it, where its term of relativity is about a tenth of their acceleration.
fn about_a_heavy_one() -> (Bodies, Fields) {
    let mut bodies = Bodies::with_capacity(9);
    bodies.push(Body {
        velocity: [0.1, 0.0, -0.1],
        ..body([0.1, 0.2, 0.0], 1.0)
    });
    for (k, light) in cloud(8, 11).iter().enumerate() {
        let scale = 1.0 + 0.5 * k as f64;
        bodies.push(Body {
            position: light.position.map(|x| scale * x),
            mass: 1e-3,
            ..light
        });
    }
    let halo = ExternalField::plummer(2.0, 5.0).at([1.0, 0.0, 0.0]);
    let term = ExternalField::first_post_newtonian(0, 4.0);
    (bodies, Fields::from_iter([halo, term]))
}

#[test]
fn relativity_and_its_derivatives() {
    let (bodies, fields) = about_a_heavy_one();
    let [found, expected] =
        both(&bodies, GRAVITY, &fields).map(|mut backend| derivatives(&mut *backend, 0.0));
    let off = [0, 1, 2].map(|order| off(&found[order], &expected[order]));
    println!("off by {off:?}");
    assert!(off.iter().all(|&off| off <= 1e-13), "{off:?}");
    let [found, expected] = both(&bodies, GRAVITY, &fields)
        .map(|mut backend| backend.energy().expect("an energy").external);
    assert!(
        (found / expected - 1.0).abs() <= 1e-14,
        "{found} {expected}"
    );
}

/// Predictions, corrections and allowed steps from random beginnings and ends.
#[test]
fn steps_of_both_orders() {
    fn compare<S: Scheme, R: Scheme>(random: &mut Random) {
        let (sixth, mut worst) = (S::ORDER == 6, [0.0_f64; 6]);
        let mut vector = |is_there: bool| match is_there {
            true => [0; 3].map(|_| 2.0 * random.unit() - 1.0),
            false => [0.0; 3],
        };
        for dt in [1e-3, 0.1, -0.1, 1.7] {
            let begun = Begun {
                x: vector(true),
                v: vector(true),
                a: vector(true),
                j: vector(true),
                s: vector(sixth),
                c: vector(sixth),
            };
            let [x, v, a] = S::predicted(&begun, dt);
            let [x1, v1, a1] = R::predicted(&begun, dt);
            let ends = [vector(true), vector(true), vector(sixth)];
            let [found, expected]: [Ended; 2] = [S::ended, R::ended]
                .map(|ended| ended(&begun, dt, StepAccuracy::of_exact(0.02), ends));
            let pairs = [
                (x, x1),
                (v, v1),
                (a, if sixth { a1 } else { a }),
                (found.x, expected.x),
                (found.v, expected.v),
                (found.crackle, expected.crackle),
            ];
            for (worst, (found, expected)) in worst.iter_mut().zip(pairs) {
                *worst = worst.max(off(&[found], &[expected]));
            }
            let allowed = (found.allowed / expected.allowed - 1.0).abs();
            assert!(allowed <= 1e-13, "{dt}: {allowed:e}");
        }
        println!("order {}: {worst:?}", S::ORDER);
        assert!(worst.iter().all(|&off| off <= 1e-14), "{worst:?}");
    }
    let mut random = Random(3);
    for _ in 0..20 {
        compare::<Fourth, Interpolated<4>>(&mut random);
        compare::<Sixth, Interpolated<6>>(&mut random);
    }
    // A body that nothing pulls takes any step.
    let (rest, zero) = ([0.0; 3], [[0.0; 3]; 3]);
    let begun = Begun {
        x: rest,
        v: rest,
        a: rest,
        j: rest,
        s: rest,
        c: rest,
    };
    let accuracy = StepAccuracy::of_exact(0.02);
    let of_fourth = Interpolated::<4>::ended(&begun, 0.1, accuracy, zero).allowed;
    let of_sixth = Interpolated::<6>::ended(&begun, 0.1, accuracy, zero).allowed;
    assert_eq!([of_fourth, of_sixth], [f64::INFINITY; 2]);
}

/// Whole runs in fixed steps, in steps that vary and in block time steps.
#[test]
fn runs_end_where_they_do_by_the_reference() {
    let cluster = cloud(24, 8);
    let path = Path::through(&[(0.0, [3.0, 0.0, 0.0]), (1.0, [0.0, 3.0, 0.0])]);
    let passing = ExternalField::plummer(5.0, 1.0).along(path.expect("a path"));
    let tide = ExternalField::tide(0.7, 0.9, 0.6);
    let (heavy, relativity) = about_a_heavy_one();
    for (bodies, fields) in [
        (&cluster, &Fields::from_iter([passing, tide])),
        (&heavy, &relativity),
    ] {
        for integrator in [Integrator::Hermite4, Integrator::Hermite6] {
            let by_eta = |steps: TimeSteps| Pace::Adaptive {
                eta: 0.02,
                longest: 0.125,
                end: f64::INFINITY,
                steps,
            };
            for pace in [
                Pace::Fixed(1.0 / 64.0),
                by_eta(TimeSteps::Shared),
                by_eta(TimeSteps::Blocks),
            ] {
                let [found, expected] = both(bodies, GRAVITY, fields).map(|backend| {
                    let bodies = bodies.clone();
                    let run = Simulation::new(backend, bodies, GRAVITY, integrator, pace, 0.0);
                    let mut run = run.expect("a run");
                    run.run_until(0.5).expect("a run");
                    run.bodies().expect("bodies").clone()
                });
                let apart = found.iter().zip(expected.iter());
                let off = largest(apart.map(|(a, b)| distance(a.position, b.position)));
                println!("{} {pace:?}: {off:e}", integrator.name());
                assert!(off <= 1e-12, "{} {pace:?}: {off:e}", integrator.name());
            }
        }
    }
}
