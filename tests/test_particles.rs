//! Massless bodies through the program.

use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

use allpairs::bodies::{Bodies, Body, BodyKind};
use allpairs::initial_conditions::solar_system;
use allpairs::io::{Format, Overwrite, Snapshot, read, write_in_units};
use allpairs::units::Units;

use crate::support::program::try_in;

const J2000: f64 = 2_451_545.0;

/// Sun and planets, and so many asteroids between 2.1 and 3.3 au on orbits of small eccentricity and
/// inclination.
fn with_asteroids(asteroids: u32) -> Bodies {
    let mut bodies = solar_system(J2000).expect("in range");
    let sun = bodies.body(0);
    for k in 0..asteroids {
        let angle = f64::from(k) * 2.399_963; // the golden one
        let radius = 2.1 + 1.2 * f64::from(k) / f64::from(asteroids);
        let speed = radius.sqrt().recip() * (1.0 + 0.03 * f64::from(k % 7) / 6.0);
        let (sin, cos) = angle.sin_cos();
        let x = [radius * cos, radius * sin, 0.0];
        let v = [
            -speed * sin,
            speed * cos,
            0.05 * speed * f64::from(k % 5) / 4.0,
        ];
        bodies.push(Body {
            position: [0, 1, 2].map(|axis| sun.position[axis] + x[axis]),
            velocity: [0, 1, 2].map(|axis| sun.velocity[axis] + v[axis]),
            mass: 0.0,
            id: 100 + u64::from(k),
            kind: BodyKind::Star,
        });
    }
    bodies
}

fn write(path: &Path, bodies: Bodies) {
    let units: Units = "au".parse().expect("units");
    let snapshot = Snapshot { time: 0.0, bodies };
    write_in_units(path, Format::Npz, &snapshot, Some(units), Overwrite::Refuse).expect("written");
}

/// Semi-major axes about the Sun.
fn axes(bodies: &Bodies) -> Vec<f64> {
    let sun = bodies.body(0);
    let axis = |body: Body| {
        let norm =
            |a: [f64; 3], b: [f64; 3]| -> f64 { (0..3).map(|k| (a[k] - b[k]).powi(2)).sum() };
        let distance = norm(body.position, sun.position).sqrt();
        let square = norm(body.velocity, sun.velocity);
        1.0 / (2.0 / distance - square / sun.mass)
    };
    bodies.iter().filter(|b| b.mass == 0.0).map(axis).collect()
}

/// The planets go where they go alone, bit for bit; asteroids keep their orbits, and a run that was
/// stopped leaves what one that was not does.
#[test]
fn planets_with_asteroids() {
    let at = tempfile::tempdir().expect("a folder");
    write(&at.path().join("all.npz"), with_asteroids(500));
    write(&at.path().join("planets.npz"), with_asteroids(0));
    let common = "--integrator yoshida6 --dt 0.02 --diagnostics 700";
    let run = |rest: &str| try_in(at.path(), &format!("run {rest} {common}"));
    let years = 20.0 * TAU;
    run(&format!("all.npz --until {years} --out all")).expect(
        0,
        &[
            "\n10 massive bodies, 500 test particles: 10 × 510 interactions in a force\n",
            "\ntest particles: energy per mass -0.",
            "\nno Jacobi constant: no two bodies dominate: others have ",
        ],
    );
    run(&format!("planets.npz --until {years} --out planets")).expect(0, &[]);
    let end = |name: &str| {
        read(&at.path().join(name), None)
            .expect("a snapshot")
            .0
            .bodies
    };
    let (all, planets) = (end("all/final.npz"), end("planets/final.npz"));
    assert_eq!(all.part(0..10), planets);
    let before = axes(&with_asteroids(500));
    for (a, b) in before.iter().zip(axes(&all)) {
        assert!((a - b).abs() <= 0.02 * a, "{a} au became {b} au");
    }

    let half = 10.0 * TAU;
    run(&format!(
        "all.npz --until {half} --checkpoint-every 1000 --out again"
    ))
    .expect(0, &[]);
    try_in(at.path(), &format!("resume again --until {years}")).expect(0, &["test particles:"]);
    // The step at which the first part ended was shortened; what comes before is the same.
    let rows = |name: &str| fs::read_to_string(at.path().join(name)).expect("a log");
    let (once, again) = (
        rows("all/test-particles.csv"),
        rows("again/test-particles.csv"),
    );
    let header = "step,time [yr],energy_mean [km2/s2],energy_spread [km2/s2],energy_change,jacobi_change\n0,0.0,-1";
    assert!(once.starts_with(header), "{once}");
    assert_eq!(once.lines().count(), again.lines().count());
    assert!(once.lines().zip(again.lines()).take(5).all(|(a, b)| a == b));
}

#[test]
fn a_resumed_run_has_the_same_account() {
    let at = tempfile::tempdir().expect("a folder");
    write(&at.path().join("all.npz"), with_asteroids(300));
    for device in ["cpu", "emulator"] {
        let run = format!(
            "run all.npz --integrator leapfrog --dt 0.02 --diagnostics 20 --device {device}"
        );
        let (whole, begun) = (format!("whole-{device}"), format!("begun-{device}"));
        try_in(at.path(), &format!("{run} --steps 100 --out {whole}")).expect(0, &[]);
        let first = format!("{run} --steps 45 --checkpoint-every 30 --out {begun}");
        try_in(at.path(), &first).expect(0, &["10 × 310"]);
        try_in(at.path(), &format!("resume {begun} --steps 100")).expect(0, &[]);
        for name in ["final.npz", "diagnostics.csv", "test-particles.csv"] {
            let read = |folder: &str| fs::read(at.path().join(folder).join(name)).expect(name);
            assert!(read(&whole) == read(&begun), "{device}: {name}");
        }
    }
}

/// A binary on a circle has a Jacobi constant; a kernel that takes test particles for bodies says so.
#[test]
fn what_a_run_says_of_test_particles() {
    let at = tempfile::tempdir().expect("a folder");
    let mut bodies = Bodies::default();
    let mut push = |mass: f64, x: f64, v: f64| {
        let id = bodies.len() as u64;
        bodies.push(Body {
            position: [x, 0.0, 0.0],
            velocity: [0.0, v, 0.0],
            mass,
            id,
            kind: BodyKind::Star,
        });
    };
    push(0.99, -0.01, -0.01);
    push(0.01, 0.99, 0.99);
    for k in 0..30 {
        let r = 0.2 + 0.01 * f64::from(k);
        push(0.0, r - 0.01, (0.99_f64 / r).sqrt() - 0.01);
    }
    let snapshot = Snapshot { time: 0.0, bodies };
    let path = at.path().join("pair.npz");
    allpairs::io::write(&path, Format::Npz, &snapshot, Overwrite::Refuse).expect("written");
    let run = "run pair.npz --dt 0.001 --steps 300 --softening 0";
    try_in(at.path(), &format!("{run} --integrator yoshida6 --out cpu")).expect(
        0,
        &[
            "\nJacobi constants: the largest change is ",
            "2 massive bodies, 30 test particles: 2 × 32",
        ],
    );
    let emulated = "run pair.npz --dt 0.001 --steps 2 --softening 0 --device emulator";
    try_in(at.path(), &format!("{emulated} --kernel tiled --out all")).expect(
        0,
        &[
            "32 × 32 interactions in a force on this device",
            "--device cpu computes 2 × 32",
        ],
    );
    try_in(at.path(), &format!("{emulated} --out few")).expect(
        0,
        &[
            "kernel test-particles",
            "2 massive bodies, 30 test particles: 2 × 32 interactions in a force\n",
        ],
    );
}
