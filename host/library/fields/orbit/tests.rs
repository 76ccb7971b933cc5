//! Orbits beside Kepler's and their constants; runs in their own frame beside runs in the galaxy's.

use std::f64::consts::TAU;
use std::num::NonZeroU32;

use super::*;
use crate::backend::Neighbours;
use crate::bodies::{Bodies, Body};
use crate::fields::{External, ExternalField, Fields, HostField, Path, mwpotential2014};
use crate::integrator::Integrator;
use crate::machine::Machine;
use crate::physics::{ForceLaw, Physics};
use crate::selection::{DeviceChoice, Place};
use crate::simulation::{Simulation, SimulationBuilder};
use crate::test_particles::Account;
use crate::units::Units;
use crate::variants;
use crate::vectors::cross;

const GRAVITY: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.0,
    softening: 0.0,
};

fn norm(v: Vector) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn minus(a: Vector, b: Vector) -> Vector {
    [0, 1, 2].map(|k| a[k] - b[k])
}

fn plus(a: Vector, b: Vector) -> Vector {
    [0, 1, 2].map(|k| a[k] + b[k])
}

fn on_orbit(fields: &[ExternalField], x: Vector, v: Vector) -> Fields {
    Fields::from_iter(fields.iter().cloned()).on_orbit(Orbit::new(x, v))
}

fn external(fields: &Fields) -> External {
    External::of_bodies(fields, &Bodies::default(), &GRAVITY).expect("an orbit")
}

/// Where the origin is at a time.
fn at(external: &mut External, time: f64) -> [Vector; 2] {
    external.extend(time, time).expect("an orbit");
    external.set_time(time);
    external.origin().expect("an orbit")
}

fn galaxy() -> [ExternalField; 3] {
    let units: Units = "kpc,Msun,km/s".parse().expect("units");
    mwpotential2014(&units, units.gravity())
}

fn galaxy_gravity() -> Physics {
    let units: Units = "kpc,Msun,km/s".parse().expect("units");
    let g = units.gravity();
    Physics { g, ..GRAVITY }
}

/// An ellipse of Kepler's closes after its period, for thirty turns, and conserves energy and angular
/// momentum between its steps too.
#[test]
fn ellipses_close() {
    let e: f64 = 0.6;
    let (x, v) = (
        [1.0 - e, 0.0, 0.0],
        [0.0, 0.8, 0.6].map(|v| v * ((1.0 + e) / (1.0 - e)).sqrt()),
    );
    let mut origin = external(&on_orbit(&[ExternalField::point(1.0)], x, v));
    let momentum = cross(x, v);
    for turn in 1..=30 {
        for part in 0..100 {
            let time = TAU * (f64::from(turn) - f64::from(part) / 99.7);
            let [x, v] = at(&mut origin, time);
            let energy = 0.5 * norm(v).powi(2) - 1.0 / norm(x);
            assert!((energy / -0.5 - 1.0).abs() <= 1e-12, "{energy} at {time}");
            let off = norm(minus(cross(x, v), momentum)) / norm(momentum);
            assert!(off <= 1e-12, "{off:e} at {time}");
        }
        let [found, _] = at(&mut origin, TAU * f64::from(turn));
        // Fifty units in the last place of the time, at the pericentre's speed.
        let off = norm(minus(found, x)) / f64::from(turn);
        assert!(off <= 1e-13, "{turn} turns: {off:e}");
    }
}

#[test]
fn an_orbit_in_the_milky_way_keeps_its_constants() {
    let fields = on_orbit(&galaxy(), [8.0, 0.0, 0.5], [35.0, 180.0, 60.0]);
    let external_at = |time: f64| {
        let mut external =
            External::of_bodies(&fields, &Bodies::default(), &galaxy_gravity()).expect("an orbit");
        let [x, v] = at(&mut external, time);
        let rest = External::new(&fields, galaxy_gravity().g);
        (
            rest.potential().at(x) + 0.5 * norm(v).powi(2),
            cross(x, v)[2],
        )
    };
    let (energy, momentum) = external_at(0.0);
    // A turn is 0.2 kpc/(km/s) long.
    for time in [0.01, 0.33, 1.7, 4.4, 8.0, -3.0] {
        let (energy_then, momentum_then) = external_at(time);
        let [of_energy, of_momentum] =
            [energy_then / energy - 1.0, momentum_then / momentum - 1.0].map(f64::abs);
        assert!(
            of_energy <= 1e-12 && of_momentum <= 1e-12,
            "{time}: {of_energy:e} {of_momentum:e}"
        );
    }
}

/// How far it is known, and how it came to be, does not change a bit of it; nor is it anything where it is
/// not known.
#[test]
fn steps_depend_on_the_orbit_alone() {
    let fields = on_orbit(&galaxy(), [8.0, 0.0, 0.5], [35.0, 180.0, 60.0]);
    let begin = || External::of_bodies(&fields, &Bodies::default(), &galaxy_gravity()).unwrap();
    let (mut slow, mut fast) = (begin(), begin());
    fast.extend(-0.3, 2.0).expect("an orbit");
    for k in 0..50 {
        for time in [-0.006 * f64::from(k), 0.04 * f64::from(k)] {
            let [x, v] = at(&mut slow, time);
            assert_eq!([x, v], at(&mut fast, time));
        }
    }
    fast.set_time(50.0);
    assert!(!fast.reaches(50.0, 50.0));
    let unknown = fast.acceleration([0.0; 3]);
    assert!(unknown.iter().all(|a| a.is_nan()), "{unknown:?}");
}

/// A field that moves along a table has kinks at its points: steps end there.
#[test]
fn orbits_follow_fields_that_move() {
    let knots = [0.0, 0.7, 1.1, 2.0, 3.3].map(|t: f64| (t, [0.3 * t, 0.2 * t.sin(), 0.0]));
    let path = Path::through(&knots).expect("a path");
    let field = ExternalField::plummer(1.0, 0.5).along(path);
    let fields = on_orbit(&[field], [2.0, 0.0, 0.0], [0.0, 0.7, 0.1]);
    let mut origin = external(&fields);
    let [x, _] = at(&mut origin, 3.2);
    let mut body = Bodies::at_rest(&[[2.0, 0.0, 0.0]], &[1.0]);
    (body.vy[0], body.vz[0]) = (0.7, 0.1);
    let mut run = Simulation::builder(body)
        .field(fields.iter().next().expect("a field").clone())
        .gravity(1.0, 0.0)
        .integrator(Integrator::Yoshida6)
        .dt(0.002)
        .device(DeviceChoice::Cpu)
        .build()
        .expect("a run");
    run.run_until(3.2).expect("a run");
    let off = norm(minus(run.bodies().expect("a body").body(0).position, x));
    assert!(off <= 1e-9, "{off:e}");
}

/// Acceleration, jerk and snap are those of the difference of two bodies in the galaxy, and derivatives of
/// each other along the motion.
#[test]
fn derivatives_are_along_both_motions() {
    let knots = [
        (-1.0, [0.0, 0.1, 0.0]),
        (0.0, [0.2, 0.0, 0.3]),
        (1.5, [0.5, -0.4, 0.2]),
    ];
    let fields = on_orbit(
        &[
            ExternalField::miyamoto_nagai(3.0, 1.0, 0.3),
            ExternalField::power_law(1.0, 2.0, 1.3),
            ExternalField::hernquist(2.0, 0.5).along(Path::through(&knots).expect("a path")),
            ExternalField::own(Spring),
        ],
        [3.0, -0.5, 0.4],
        [0.2, 0.9, -0.3],
    );
    let (time, h) = (0.4, 1e-3);
    let mut external = external(&fields);
    external.extend(0.0, 1.0).expect("an orbit");
    let (x, v, change) = ([0.4, -0.2, 0.3], [0.3, -0.5, 0.2], [-0.2, 0.1, 0.4]);
    let along = |t: f64, derivatives: usize| {
        let mut external = external.clone();
        external.set_time(time + t);
        let x = [0, 1, 2].map(|k| x[k] + t * (v[k] + 0.5 * t * change[k]));
        let v = [0, 1, 2].map(|k| v[k] + t * change[k]);
        external.add_up_to(derivatives, [x, v, change], [[0.0; 3]; 3])
    };
    let found = along(0.0, 2);
    for order in 0..2 {
        assert_eq!(along(0.0, order)[..=order], found[..=order]);
        // Spring has no snap.
        if order == 1 {
            continue;
        }
        for axis in 0..3 {
            let f = |t: f64| along(t, 2)[order][axis];
            let slope = (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h);
            let off = (slope - found[order + 1][axis]).abs() / norm(found[order + 1]);
            assert!(off <= 1e-9, "derivative {order}: {off:e}");
        }
    }
    let of_formulas = on_orbit(
        &fields.iter().take(3).cloned().collect::<Vec<_>>(),
        [3.0, -0.5, 0.4],
        [0.2, 0.9, -0.3],
    );
    let mut external = self::external(&of_formulas);
    external.extend(0.0, 1.0).expect("an orbit");
    let along = |t: f64| {
        let mut external = external.clone();
        external.set_time(time + t);
        let x = [0, 1, 2].map(|k| x[k] + t * (v[k] + 0.5 * t * change[k]));
        let v = [0, 1, 2].map(|k| v[k] + t * change[k]);
        external.add_up_to(2, [x, v, change], [[0.0; 3]; 3])
    };
    let snap = along(0.0)[2];
    for axis in 0..3 {
        let f = |t: f64| along(t)[1][axis];
        let slope = (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h);
        let off = (slope - snap[axis]).abs() / norm(snap);
        assert!(off <= 1e-8, "snap: {off:e}");
    }
    // What it is by itself: the difference of two bodies in the galaxy's frame.
    let rest = External::new(&of_formulas, 1.0);
    let mut rest = rest;
    rest.set_time(time);
    external.set_time(time);
    let [r, u] = external.origin().expect("an orbit");
    let zero = [[0.0; 3]; 3];
    let outer = rest.add_up_to(1, [plus(r, x), plus(u, v), [0.0; 3]], zero);
    let inner = rest.add_up_to(1, [r, u, [0.0; 3]], zero);
    let found = external.add_up_to(1, [x, v, [0.0; 3]], zero);
    for order in 0..2 {
        let off = norm(minus(minus(outer[order], inner[order]), found[order]));
        assert!(off <= 1e-15 * norm(outer[order]), "{order}: {off:e}");
    }
    assert_eq!(external.acceleration([0.0; 3]), [0.0; 3]);
}

#[derive(Debug)]
struct Spring;

impl HostField for Spring {
    fn acceleration(&self, _time: f64, x: Vector) -> Vector {
        x.map(|x| -x)
    }

    fn jerk(&self, _time: f64, _x: Vector, v: Vector) -> Option<Vector> {
        Some(v.map(|v| -v))
    }

    fn potential(&self, _time: f64, x: Vector) -> Option<f64> {
        Some(0.5 * norm(x).powi(2))
    }

    fn changes_with_time(&self) -> bool {
        false
    }
}

/// In a spring all bodies swing about the origin as they would about the centre.
#[test]
fn fields_of_ones_own_have_orbits() {
    let mut bodies = Bodies::at_rest(&[[0.1, 0.0, 0.0]], &[2.0]);
    bodies.vy[0] = 0.2;
    for integrator in [Integrator::Yoshida6, Integrator::Hermite4] {
        let mut run = Simulation::builder(bodies.clone())
            .field(ExternalField::own(Spring))
            .orbit([1e6, 0.0, 0.0], [0.0, 3e5, 0.0])
            .integrator(integrator)
            .gravity(1.0, 0.0)
            .dt(TAU / 1000.0)
            .device(DeviceChoice::Cpu)
            .build()
            .expect("a run");
        let before = run.energy().expect("an energy");
        run.run_until(TAU / 4.0).expect("a run");
        let body = run.bodies().expect("a body").body(0);
        let off = norm(minus(body.position, [0.0, 0.2, 0.0]));
        assert!(off <= 1e-9, "{}: {off:e}", integrator.name());
        let [x, _] = run.external().origin().expect("an orbit");
        assert!(norm(minus(x, [0.0, 3e5, 0.0])) <= 1e-8, "{x:?}");
        let drift = run.energy().expect("an energy").drift_since(before);
        // V·v and the difference of potentials are 10⁷ times as large.
        assert!(drift <= 1e-3, "{}: {drift:e}", integrator.name());
    }
}

/// A small cluster about its centre of mass, and a massless body.
fn cluster() -> Bodies {
    let mut bodies = crate::initial_conditions::plummer(24, 5).expect("bodies");
    bodies.mass[7] = 0.0;
    let centre = [bodies.centre_of_mass(), bodies.centre_of_mass_velocity()];
    shifted(&bodies, centre.map(|of| of.expect("masses")), -1.0)
}

fn shifted(bodies: &Bodies, [x, v]: [Vector; 2], sign: f64) -> Bodies {
    let moved = |body: Body| Body {
        position: plus(body.position, x.map(|x| sign * x)),
        velocity: plus(body.velocity, v.map(|v| sign * v)),
        ..body
    };
    bodies.iter().map(moved).collect()
}

type Setting = fn(SimulationBuilder) -> SimulationBuilder;

/// Ways to take steps, and how far two runs of them in f64 may be apart: by the error that they have on the
/// orbit itself, in the galaxy's frame.
const WAYS: [(&str, Setting, f64); 7] = [
    (
        "leapfrog",
        |run| run.integrator(Integrator::Leapfrog).dt(0.01),
        1e-4,
    ),
    (
        "yoshida6",
        |run| run.integrator(Integrator::Yoshida6).dt(0.01),
        1e-11,
    ),
    (
        "hermite4",
        |run| run.integrator(Integrator::Hermite4).dt(0.01),
        1e-9,
    ),
    (
        "hermite6",
        |run| run.integrator(Integrator::Hermite6).dt(0.01),
        1e-12,
    ),
    (
        "shared",
        |run| run.integrator(Integrator::Hermite4).dt(0.1).eta(0.001),
        1e-7,
    ),
    (
        "blocks",
        |run| {
            run.integrator(Integrator::Hermite6)
                .dt(0.125)
                .eta(0.002)
                .block_steps()
        },
        1e-10,
    ),
    (
        "neighbours",
        |run| {
            run.integrator(Integrator::Hermite4)
                .dt(0.125)
                .eta(0.0005)
                .block_steps()
                .neighbours(Neighbours::Number(NonZeroU32::MIN.saturating_add(5)))
        },
        1e-7,
    ),
];

/// The same cluster in the galaxy's frame and in its own, in f64, by every kind of step: they agree as well
/// as both solve the equations. The energies agree too, but for what the orbit has.
#[test]
fn both_frames_have_the_same_cluster() {
    let fields = [
        ExternalField::nfw(2e3, 10.0),
        ExternalField::miyamoto_nagai(500.0, 3.0, 0.3),
    ];
    let orbit = [[20.0, 0.0, 3.0], [-1.0, 5.0, 4.0]];
    let bodies = cluster();
    for (name, setting, bound) in WAYS {
        let begin = |bodies: Bodies| {
            let run = Simulation::builder(bodies)
                .gravity(1.0, 0.1)
                .device(DeviceChoice::Cpu)
                .accuracy(crate::ForceAccuracy::Double);
            fields
                .iter()
                .cloned()
                .fold(setting(run), SimulationBuilder::field)
        };
        let mut fixed = begin(shifted(&bodies, orbit, 1.0)).build().expect("a run");
        let mut own = begin(bodies.clone())
            .orbit(orbit[0], orbit[1])
            .build()
            .expect("a run");
        let before = [&mut fixed, &mut own].map(|run| run.energy().expect("an energy").total());
        for run in [&mut fixed, &mut own] {
            run.run_until(2.0).expect("a run");
        }
        let after = [&mut fixed, &mut own].map(|run| run.energy().expect("an energy").total());
        let origin = own.external().origin().expect("an orbit");
        let back = shifted(own.bodies().expect("bodies"), origin, 1.0);
        let pairs = fixed.bodies().expect("bodies").iter().zip(back.iter());
        let off = pairs
            .map(|(a, b)| norm(minus(a.position, b.position)))
            .fold(0.0, f64::max);
        println!("{name}: {off:e}, energy {before:?} {after:?}");
        assert!(off <= bound, "{name}: {off:e}");
        // Of masses that are one in all.
        let of_orbit = 0.5 * norm(orbit[1]).powi(2)
            + External::new(&fields.iter().cloned().collect(), 1.0)
                .potential()
                .at(orbit[0]);
        let mass = bodies.total_mass();
        assert!((before[0] - before[1] - mass * of_orbit).abs() <= 1e-11);
        let drifts = [0, 1].map(|k| after[k] - before[k]);
        assert!(
            (drifts[0] - drifts[1]).abs() <= 10.0 * bound,
            "{name}: {drifts:?}"
        );
        assert!(
            drifts[1].abs() <= 1e-3 * before[1].abs(),
            "{name}: {drifts:?}"
        );
    }
}

/// Test particles have the energies that they have in the galaxy, less that of the orbit, and keep them.
#[test]
fn test_particles_keep_their_energies() {
    let mut bodies = cluster();
    bodies.mass.fill(0.0);
    let field = || ExternalField::nfw(2e3, 10.0);
    let orbit = [[20.0, 0.0, 3.0], [-1.0, 5.0, 4.0]];
    let looks = |run: SimulationBuilder| {
        let run = run.field(field()).gravity(1.0, 0.1);
        let run = run.integrator(Integrator::Yoshida6).dt(0.01);
        let mut run = run.device(DeviceChoice::Cpu).build().expect("a run");
        let external = run.external();
        let account = Account::begin(run.bodies().unwrap(), &GRAVITY, &external).expect("some");
        run.run_until(3.0).expect("a run");
        let external = run.external();
        let look = account.look(run.bodies().unwrap(), &GRAVITY, &external);
        (account.at_start(), look)
    };
    let ((fixed, spread), _) = looks(Simulation::builder(shifted(&bodies, orbit, 1.0)));
    let own = Simulation::builder(bodies).orbit(orbit[0], orbit[1]);
    let ((of_own, own_spread), look) = looks(own);
    let alone = External::new(&Fields::from_iter([field()]), 1.0);
    let of_orbit = 0.5 * norm(orbit[1]).powi(2) + alone.potential().at(orbit[0]);
    assert!(
        (fixed - of_orbit - of_own).abs() <= 1e-11,
        "{fixed} {of_orbit} {of_own}"
    );
    assert!(
        (spread - own_spread).abs() <= 1e-11,
        "{spread} {own_spread}"
    );
    assert!(
        (look.mean - of_own).abs() <= 1e-10 && look.largest_change <= 1e-8,
        "{look:?}"
    );
}

/// The error of the steps is watched: the energy drifts by a sixteenth with half of the steps of
/// fourth order, and is about the cluster's own.
#[test]
fn the_energy_of_the_frame_shows_the_error_of_the_steps() {
    let drift = |dt: f64| {
        let mut run = Simulation::builder(cluster())
            .field(ExternalField::nfw(2e6, 1000.0))
            .orbit([2000.0, 0.0, 0.0], [5.0, 25.0, 0.0])
            .gravity(1.0, 0.1)
            .integrator(Integrator::Yoshida4)
            .dt(dt)
            .device(DeviceChoice::Cpu)
            .accuracy(crate::ForceAccuracy::Double)
            .build()
            .expect("a run");
        let before = run.energy().expect("an energy");
        let alone = before.kinetic + before.potential;
        assert!((before.total() / alone - 1.0).abs() < 1e-3, "{before:?}");
        run.run_until(4.0).expect("a run");
        run.energy().expect("an energy").drift_since(before)
    };
    let (coarse, fine) = (drift(0.04), drift(0.01));
    assert!(
        coarse <= 1e-3 && fine <= coarse / 60.0,
        "{coarse:e} {fine:e}"
    );
}

/// On a circular orbit the frame agrees with that of Hill's approximation, which turns, as well as the tide
/// is linear: twice as far out it is off by half as much.
#[test]
fn circular_orbits_have_hills_tide() {
    let off = |radius: f64| {
        // A point mass: Ω² = GM/R³ = 0.09, whatever the radius.
        let omega = 0.3;
        let mass = omega * omega * radius.powi(3);
        let begin = |bodies: &Bodies| {
            Simulation::builder(bodies.clone())
                .gravity(1.0, 0.1)
                .integrator(Integrator::Hermite6)
                .dt(0.005)
                .device(DeviceChoice::Cpu)
        };
        let bodies = cluster();
        let mut own = begin(&bodies)
            .field(ExternalField::point(mass))
            .orbit([radius, 0.0, 0.0], [0.0, omega * radius, 0.0])
            .build()
            .expect("a run");
        let mut turning = bodies;
        // v − Ω × x
        for i in 0..turning.len() {
            turning.vx[i] += omega * turning.y[i];
            turning.vy[i] -= omega * turning.x[i];
        }
        let mut hill = begin(&turning)
            .field(ExternalField::tide(omega, omega, omega))
            .build()
            .expect("a run");
        let end = 3.0;
        own.run_until(end).expect("a run");
        hill.run_until(end).expect("a run");
        let (sin, cos) = (omega * end).sin_cos();
        let hill = hill.bodies().expect("bodies").clone();
        let pairs = own.bodies().expect("bodies").iter().zip(hill.iter());
        let distances = pairs.map(|(a, b)| {
            let [x, y, z] = b.position;
            norm(minus(a.position, [cos * x - sin * y, sin * x + cos * y, z]))
        });
        distances.fold(0.0, f64::max)
    };
    let (near, far) = (off(1e4), off(2e4));
    println!("{near:e} {far:e}");
    assert!(near <= 1e-2, "{near:e}");
    assert!((near / far - 2.0).abs() <= 0.1, "{near:e} {far:e}");
}

/// Far out, single precision has in the own frame the error that an isolated cluster has, and none of its
/// digits in the galaxy's.
#[test]
fn single_precision_keeps_its_digits() {
    let bodies = cluster();
    let orbit = [[1e5, 0.0, 0.0], [0.0, 300.0, 0.0]];
    let galaxy = || ExternalField::logarithmic(300.0, 0.0, 1.0);
    let end = |run: SimulationBuilder, single: bool| {
        let run = run
            .gravity(1.0, 0.1)
            .integrator(Integrator::Leapfrog)
            .dt(0.02);
        let kernel = variants::find(if single { "tiled" } else { "cpu-f64" }).expect("listed");
        let device = if single {
            DeviceChoice::Emulator
        } else {
            DeviceChoice::Cpu
        };
        let mut run = run.kernel(kernel).device(device).build().expect("a run");
        run.run_until(2.0).expect("a run");
        let origin = run.external().origin();
        (run.bodies().expect("bodies").clone(), origin)
    };
    let apart = |a: &Bodies, b: &Bodies| {
        let pairs = a.iter().zip(b.iter());
        pairs
            .map(|(a, b)| norm(minus(a.position, b.position)))
            .fold(0.0, f64::max)
    };
    let alone = |single| end(Simulation::builder(bodies.clone()), single).0;
    let isolated = apart(&alone(true), &alone(false));
    let own = |single| {
        let run = Simulation::builder(bodies.clone()).field(galaxy());
        end(run.orbit(orbit[0], orbit[1]), single)
    };
    let (exact, origin) = own(false);
    let in_own = apart(&own(true).0, &exact);
    let fixed = Simulation::builder(shifted(&bodies, orbit, 1.0)).field(galaxy());
    let (fixed, _) = end(fixed, true);
    let in_fixed = apart(&shifted(&fixed, origin.expect("an orbit"), -1.0), &exact);
    println!("isolated {isolated:e}, own frame {in_own:e}, galaxy's {in_fixed:e}");
    assert!(in_own <= 3.0 * isolated, "{in_own:e} {isolated:e}");
    assert!(in_fixed >= 100.0 * in_own, "{in_fixed:e} {in_own:e}");
}

/// The kernels' orbit is that of the CPU: forces of several layouts, on one and two devices, and block time
/// steps that outrun what was known of the orbit.
#[test]
fn devices_agree_with_the_cpu() {
    let bodies = cluster();
    let physics = Physics {
        softening: 0.1,
        ..GRAVITY
    };
    let knots = [(-1.0, [0.0, 0.1, 0.0]), (9.0, [0.5, -0.4, 0.2])];
    let fields = on_orbit(
        &[
            ExternalField::nfw(2e3, 10.0).along(Path::through(&knots).expect("a path")),
            ExternalField::miyamoto_nagai(500.0, 3.0, 0.3),
        ],
        [20.0, 0.0, 3.0],
        [-1.0, 5.0, 4.0],
    );
    let time = 6.0;
    let forces = |machine: &Machine, name: &str| {
        let variant = variants::find(name).expect("listed");
        let mut backend = machine.backend(variant, &bodies, physics).expect("it fits");
        backend.reach(time, time).expect("an orbit");
        backend.set_time(time);
        backend.accelerate().expect("forces");
        let energy = backend.energy().expect("an energy").external;
        (backend.accelerations().expect("forces"), energy)
    };
    let (expected, energy) = forces(&Machine::new(Place::CPU).fields(fields.clone()), "cpu-f64");
    for (place, name, bound) in [
        (Place::EMULATOR, "tiled", 1e-5),
        (Place::EMULATOR, "tiled-f64", 1e-14),
        (Place::EMULATOR, "hermite-f64", 1e-14),
        (Place::of_emulators(2), "symmetric-f64", 1e-14),
    ] {
        let (found, of_device) = forces(&Machine::new(place).fields(fields.clone()), name);
        for (found, expected) in found.iter().zip(&expected) {
            let off = norm(minus(*found, *expected)) / norm(*expected);
            assert!(off <= bound, "{name}: {off:e}");
        }
        assert!(
            (of_device / energy - 1.0).abs() <= 10.0 * bound,
            "{name}: {of_device} {energy}"
        );
    }
    let end = |device, integrator| {
        let run = fields.iter().cloned().fold(
            Simulation::builder(bodies.clone()),
            SimulationBuilder::field,
        );
        let mut run = run
            .orbit([20.0, 0.0, 3.0], [-1.0, 5.0, 4.0])
            .gravity(1.0, 0.1)
            .integrator(integrator)
            .dt(0.25)
            .eta(0.02)
            .block_steps()
            .accuracy(crate::ForceAccuracy::Double)
            .device(device)
            .build()
            .expect("a run");
        run.run_until(2.0).expect("a run");
        run.bodies().expect("bodies").clone()
    };
    for integrator in [Integrator::Hermite4, Integrator::Hermite6] {
        let cpu = end(DeviceChoice::Cpu, integrator);
        let device = end(DeviceChoice::Emulator, integrator);
        for (a, b) in cpu.iter().zip(device.iter()) {
            let off = norm(minus(a.position, b.position));
            assert!(off <= 1e-9, "{}: {off:e}", integrator.name());
        }
    }
}

/// A run that was saved and goes on has the bits of one that did not stop, though it gets to know the orbit
/// in another way; forwards and backwards.
#[test]
fn runs_are_resumed_bit_for_bit() {
    let begin = |bodies: &Bodies, integrator, dt: f64, kernel: &str| {
        let device = if kernel == "tiled" {
            DeviceChoice::Emulator
        } else {
            DeviceChoice::Cpu
        };
        Simulation::builder(bodies.clone())
            .field(ExternalField::nfw(2e3, 10.0))
            .orbit([20.0, 0.0, 3.0], [-1.0, 5.0, 4.0])
            .gravity(1.0, 0.1)
            .integrator(integrator)
            .dt(dt)
            .start(3.0)
            .kernel(variants::find(kernel).expect("listed"))
            .device(device)
    };
    let bodies = cluster();
    for (integrator, dt, kernel) in [
        (Integrator::Yoshida6, 0.1, "cpu-f64"),
        (Integrator::Hermite6, -0.1, "cpu-f64"),
        (Integrator::Leapfrog, 0.1, "tiled"),
        (Integrator::Leapfrog, 0.1, "cpu-f32"),
    ] {
        let end = 3.0 + 40.0 * dt;
        let mut whole = begin(&bodies, integrator, dt, kernel)
            .build()
            .expect("a run");
        whole.run_until(end).expect("a run");
        let mut first = begin(&bodies, integrator, dt, kernel)
            .build()
            .expect("a run");
        (0..13).for_each(|_| first.step().expect("a step"));
        let (clock, state) = first.save().expect("a state");
        let now = first.bodies().expect("bodies").clone();
        let mut rest = begin(&now, integrator, dt, kernel)
            .resume(clock, &state)
            .expect("a run");
        rest.reach(end).expect("an orbit");
        rest.run_until(end).expect("a run");
        assert_eq!(whole.bodies().unwrap(), rest.bodies().unwrap(), "{kernel}");
        assert_eq!(whole.energy().unwrap(), rest.energy().unwrap(), "{kernel}");
        assert_eq!(whole.external().origin(), rest.external().origin());
    }
}

#[test]
fn orbits_that_cannot_be_are_refused() {
    let refused = |fields: &[ExternalField], x: Vector, v: Vector, end: f64| {
        let run = fields
            .iter()
            .cloned()
            .fold(Simulation::builder(cluster()), SimulationBuilder::field);
        let run = run
            .orbit(x, v)
            .gravity(1.0, 0.1)
            .integrator(Integrator::Hermite4)
            .dt(0.1)
            .device(DeviceChoice::Cpu)
            .build();
        match run {
            Ok(mut run) => run.reach(end).expect_err("refused").to_string(),
            Err(error) => error.to_string(),
        }
    };
    let point = || ExternalField::point(100.0);
    for (fields, x, v, parts) in [
        (vec![], [1.0, 0.0, 0.0], [0.0; 3], &["`field`"][..]),
        (
            vec![ExternalField::first_post_newtonian(0, 1e3)],
            [1.0; 3],
            [0.0; 3],
            &["`field`"],
        ),
        (
            vec![point()],
            [f64::NAN, 0.0, 0.0],
            [0.0; 3],
            &["`x`", "finite", "NaN"],
        ),
        (
            vec![point()],
            [1.0; 3],
            [0.0, f64::INFINITY, 0.0],
            &["`vy`", "finite", "inf"],
        ),
        (
            vec![point()],
            [0.0; 3],
            [1.0, 0.0, 0.0],
            &["centre of the field point"],
        ),
        (
            vec![point().at([1.0; 3])],
            [1.0; 3],
            [0.0; 3],
            &["centre of the field point"],
        ),
        // It falls in at π/2 √(R³/2GM) = 0.111 √… of the start.
        (
            vec![point()],
            [1.0, 0.0, 0.0],
            [0.0; 3],
            &["beyond time 0.111", "singular"],
        ),
        (
            vec![ExternalField::tide(1.0, 1.0, 1.0)],
            [1.0; 3],
            [0.0; 3],
            &["tide", "turns"],
        ),
    ] {
        let error = refused(&fields, x, v, 2.0);
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }
    // A run that is not asked beforehand stops there.
    let mut run = Simulation::builder(cluster())
        .field(point())
        .orbit([1.0, 0.0, 0.0], [0.0; 3])
        .gravity(1.0, 0.1)
        .dt(0.01)
        .device(DeviceChoice::Cpu)
        .build()
        .expect("a run");
    let error = run.run_until(1.0).expect_err("stopped").to_string();
    assert!(error.contains("cannot be followed"), "{error}");
    // Orbits that rest in a smooth centre are orbits.
    let fields = on_orbit(&[ExternalField::plummer(1.0, 1.0)], [0.0; 3], [0.0; 3]);
    assert_eq!(at(&mut external(&fields), 7.0), [[0.0; 3]; 2]);
    // Too many turns.
    let fields = on_orbit(&[point()], [1.0, 0.0, 0.0], [0.0, 10.0, 0.0]);
    let error = external(&fields).extend(0.0, 1e9).expect_err("too long");
    assert!(error.to_string().contains("turns"), "{error}");
}

#[test]
fn orbits_are_read() {
    let units: Units = "pc,Msun,km/s".parse().expect("units");
    let read = |text: &str| crate::fields::parse_orbit(text, Some(&units));
    let orbit = read("x=8kpc, z=-20pc,vy=220km/s").expect("an orbit");
    assert_eq!(orbit, Orbit::new([8e3, 0.0, -20.0], [0.0, 220.0, 0.0]));
    assert_eq!(
        orbit.to_string(),
        "from (8000, 0, -20) with velocity (0, 220, 0)"
    );
    for (text, parts) in [
        ("", &["no ``", "x, y, z, vx"][..]),
        ("x", &["`x` of the orbit", "a length"]),
        ("r=8kpc", &["no `r`", "x, y, z, vx"]),
        ("x=8km/s", &["`x` of the orbit", "a length"]),
        ("x=1,x=2", &["`x` of the orbit", "once"]),
        ("x=1,vz=inf", &["`vz` of the orbit", "finite"]),
    ] {
        let error = read(text).expect_err(text).to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
    let error = crate::fields::parse_orbit("x=8kpc", None).expect_err("no units");
    assert!(error.to_string().contains("`units`"), "{error}");
}
