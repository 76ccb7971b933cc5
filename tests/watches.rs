//! Warnings of a run, and choices that leave nothing to warn of.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::support::program::{Ended, new_folder, try_in};
use allpairs::bodies::Bodies;
use allpairs::initial_conditions::plummer;

/// A table of bodies, which move as a whole.
fn write(path: &Path, bodies: &Bodies, velocity: f64) {
    let mut text = "mass,x,y,z,vx,vy,vz\n".to_owned();
    for body in bodies.iter() {
        let ([x, y, z], [u, v, w]) = (body.position, body.velocity);
        let (mass, v) = (body.mass, v + velocity);
        writeln!(text, "{mass},{x},{y},{z},{u},{v},{w}").expect("a string");
    }
    fs::write(path, text).expect("written");
}

/// The last number in the row of a run's table that begins with this.
fn in_table(ended: &Ended, row: &str) -> f64 {
    let line = ended.said.lines().find(|line| line.trim().starts_with(row));
    let last = line.and_then(|line| line.split_whitespace().last());
    let number = last.and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("no {row} in {ended}"))
}

/// The frame in which bodies are given changes neither the drift of the energy nor the virial ratio.
#[test]
fn a_cluster_that_moves_is_judged_as_one_at_rest() {
    let at = new_folder();
    let bodies = plummer(200, 1).expect("bodies");
    let mut told = vec![];
    for (name, velocity) in [("rest", 0.0), ("moving", 1000.0)] {
        write(&at.path().join(format!("{name}.csv")), &bodies, velocity);
        let run = format!(
            "run {name}.csv --softening 1e-4 --accuracy double --dt 0.05 --until 5 --out {name}"
        );
        let ended = try_in(at.path(), &run);
        ended.expect(0, &[]);
        assert!(
            ended.complained.contains("the energy has drifted"),
            "{ended}"
        );
        told.push(["energy ", "virial ratio"].map(|row| in_table(&ended, row)));
    }
    for (rest, moving) in told[0].iter().zip(told[1]) {
        assert!((moving / rest - 1.0).abs() <= 1e-3, "{told:?}");
    }
    let ended = try_in(
        at.path(),
        "run moving.csv --softening 0.05 --until 1 --out fine",
    );
    ended.expect(0, &["of the centre of mass"]);
    assert!(!ended.complained.contains("drifted"), "{ended}");
}

/// E₀ is 0, and no measure of an error.
#[test]
fn a_parabola_keeps_its_energy() {
    let at = new_folder();
    let rows = "mass,x,y,z,vx,vy,vz\n0.5,0.5,0,0,0,0.7071067811865476,0\n0.5,-0.5,0,0,0,-0.7071067811865476,0\n";
    fs::write(at.path().join("p.csv"), rows).expect("written");
    for integrator in ["leapfrog", "hermite4"] {
        let run = format!("run p.csv --integrator {integrator} --steps 500 --overwrite --out o");
        let ended = try_in(at.path(), &run);
        ended.expect(0, &[]);
        assert!(!ended.complained.contains("drifted"), "{ended}");
        assert!(in_table(&ended, "energy ") <= 1e-4, "{ended}");
    }
}

/// A body that takes the centre of mass with it has escaped, and not those that it leaves.
#[test]
fn a_heavy_body_that_leaves_is_the_one_that_escapes() {
    let at = new_folder();
    let mut bodies = plummer(50, 2).expect("bodies");
    let mut heavy = bodies.body(0);
    (heavy.mass, heavy.velocity, heavy.id) = (0.5, [20.0, 0.0, 0.0], 50);
    bodies.push(heavy);
    write(&at.path().join("h.csv"), &bodies, 0.0);
    let run = "run h.csv --softening 0.05 --dt 0.01 --until 3 --escape-radius 20 --out o";
    try_in(at.path(), run).expect(0, &["1 escape (escapers.csv)"]);
    let table = fs::read_to_string(at.path().join("o/escapers.csv")).expect("a table");
    assert!(
        table.contains(",50,") && table.lines().count() == 2,
        "{table}"
    );
}

/// Steps are chosen for what bodies will do, and not for where they start.
#[test]
fn models_that_collapse_keep_their_energy_by_default() {
    let at = new_folder();
    for model in ["uniform-sphere", "cold-collapse"] {
        for (bodies, seed) in [
            (100, 0),
            (300, 1),
            (1000, 0),
            (1000, 1),
            (1000, 2),
            (1000, 3),
        ] {
            let run = format!(
                "run {model} --bodies {bodies} --seed {seed} --until 4 --overwrite --out o"
            );
            let ended = try_in(at.path(), &run);
            ended.expect(0, &[]);
            assert!(!ended.complained.contains("drifted"), "{run}: {ended}");
        }
    }
}

/// Three bodies at rest, in SI units: only softening stops their fall.
#[test]
fn a_softened_triple_at_rest_has_steps_for_its_fall() {
    let at = new_folder();
    let rows = [
        "mass,x,y,z,vx,vy,vz",
        "1e30,0,0,0,0,0,0",
        "1e30,1e10,1e9,0,0,0,0",
        "1e30,3e9,1.2e10,0,0,0,0",
    ];
    fs::write(at.path().join("t.csv"), rows.join("\n") + "\n").expect("written");
    let run = "run t.csv --units si --softening 1e9m --until 5day --out o";
    let ended = try_in(at.path(), run);
    ended.expect(0, &["softening 1.0000e9 m", "how near they come"]);
    assert!(!ended.complained.contains("drifted"), "{ended}");
}

/// Few bodies of a file are not softened; steps of one length are not for their encounters, nor the second order for
/// planets.
#[test]
fn few_bodies_of_a_file_have_steps_that_suit_them() {
    let at = new_folder();
    let triple = [
        "mass,x,y,z,vx,vy,vz",
        "1,0.01,0,0,0,7.0710678,0.1",
        "1,-0.01,0,0,0,-7.0710678,0.1",
        "1,1,0.2,0,0,1.5,-0.2",
    ];
    let planets = [
        "mass,x,y,z,vx,vy,vz",
        "1,0,0,0,0,0,0",
        "1e-3,1,0,0,0,1,0",
        "0,2,0,0,0,0.7,0.1",
    ];
    fs::write(at.path().join("triple.csv"), triple.join("\n") + "\n").expect("written");
    fs::write(at.path().join("planets.csv"), planets.join("\n") + "\n").expect("written");
    write(
        &at.path().join("cluster.csv"),
        &plummer(60, 3).expect("bodies"),
        0.0,
    );
    for (name, line) in [
        ("triple", "few bodies, which come near each other"),
        ("planets", "yoshida6: bodies are on orbits about few"),
        ("cluster", "block time steps by hermite6"),
    ] {
        let ended = try_in(at.path(), &format!("run {name}.csv --until 5 --out {name}"));
        ended.expect(0, &[line]);
        assert!(!ended.complained.contains("drifted"), "{ended}");
        // The file of its options does it again, and nothing else.
        let again = format!("run {name}/run.toml --out {name}-again");
        try_in(at.path(), &again).expect(0, &[]);
        let end = |folder: &str| fs::read(at.path().join(folder).join("final.csv")).expect("bytes");
        assert!(end(name) == end(&format!("{name}-again")), "{name}");
        try_in(
            at.path(),
            &format!("run {name}.csv --until -1 --overwrite --out {name}-back"),
        )
        .expect(0, &[]);
    }
}

/// Bodies in unknown units that fly apart are, most often, in other units.
#[test]
fn unknown_units_that_cannot_be_are_told() {
    let at = new_folder();
    let path = at.path().join("b.csv");
    let hints = |run: &str| {
        let ended = try_in(
            at.path(),
            &format!("run b.csv --steps 1 --overwrite --out o {run}"),
        );
        ended.expect(0, &[]);
        ended.complained.contains("2K/|U|")
    };
    let mut bodies = plummer(60, 3).expect("bodies");
    write(&path, &bodies, 100.0);
    assert!(!hints(""), "it moves as a whole");
    for v in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
        v.iter_mut().for_each(|v| *v *= 20.0);
    }
    write(&path, &bodies, 0.0);
    assert!(hints(""));
    assert!(!hints("--units pc"), "they are told");
    assert!(!hints("--field point:mass=1e4"), "it holds them");
}

/// The first post-Newtonian term has an order, and bodies may be too fast for it.
#[test]
fn bodies_too_fast_for_the_first_order_are_told_of() {
    let at = new_folder();
    let write = |v: f64| {
        let rows = format!(
            "mass,x,y,z,vx,vy,vz\n1,0,0,0,0,0,0\n0,{},0,0,0,{v},0\n",
            1.0 / v / v
        );
        fs::write(at.path().join("f.csv"), rows).expect("written");
        let run = "run f.csv --field 1pn:c=1 --integrator hermite4 --steps 2 --overwrite --out o";
        let ended = try_in(at.path(), run);
        ended.expect(0, &[]);
        ended.complained.contains("body 1 reaches (v/c)²")
    };
    assert!(write(0.43));
    assert!(!write(0.1));
}

/// A frame that turns has nothing to do with relativity.
#[test]
fn advice_on_a_tide_is_of_its_steps() {
    let at = new_folder();
    let run = "run plummer --bodies 40 --until 1 --field tide:omega=3 --integrator hermite4 --softening 0 --block-steps \
               --groups off --max-drift 1e-6 --overwrite --out o --eta";
    let drift = |eta: &str| {
        let ended = try_in(at.path(), &format!("{run} {eta}"));
        ended.expect(0, &[]);
        assert!(
            ended.complained.contains("or --integrator hermite6"),
            "{ended}"
        );
        assert!(!ended.complained.contains("1pn"), "{ended}");
        in_table(&ended, "energy ")
    };
    // A quarter of η is half a step, of fourth order.
    assert!(drift("0.0025") < drift("0.01") / 10.0);
}

/// Massless bodies are in no sum of energies, and are judged by what their orbits keep.
#[test]
fn orbits_of_test_particles_are_watched() {
    let at = new_folder();
    let told = |run: &str| {
        let ended = try_in(at.path(), &format!("run {run} --overwrite --out o"));
        ended.expect(0, &["test particles: energy per mass"]);
        ended
            .complained
            .contains("of a test particle has changed by")
    };
    let bad = "--integrator leapfrog --dt 0.01 --until 13";
    let pair = "two-body --eccentricity 0.99 --mass-ratio 0";
    assert!(told(&format!("{pair} {bad}")));
    assert!(!told(&format!("{pair} {bad} --max-drift 1e6")));
    assert!(!told(&format!(
        "{pair} --integrator hermite4 --eta 0.01 --until 13"
    )));
    // One falls through a field that rests, the other one does not matter to it.
    let rows = "mass,x,y,z,vx,vy,vz\n0,1,0,0,0,0.1,0\n0,0,2,0,1,0,0\n";
    fs::write(at.path().join("f.csv"), rows).expect("written");
    let fall = "f.csv --field point:mass=2 --softening 0";
    assert!(told(&format!("{fall} {bad}")));
    assert!(!told(&format!(
        "{fall} --integrator hermite4 --eta 0.01 --until 5"
    )));
}

/// A folder that cannot be made, before the forces that may take hours.
#[test]
fn folders_that_cannot_be_made_are_told_of_before_the_run() {
    let at = new_folder();
    fs::write(at.path().join("file"), "").expect("written");
    let ended = try_in(at.path(), "run plummer --bodies 60 --steps 1 --out file/o");
    ended.expect(74, &["cannot make the folder file/o"]);
    assert!(!ended.said.contains("leapfrog"), "{ended}");
}

/// A run may go back in time, and be looked at.
#[test]
fn runs_back_in_time_have_units_and_a_page() {
    let at = new_folder();
    try_in(at.path(), "run solar-system --until -0.1yr --out s").expect(0, &["-0.1"]);
    let run = "run plummer --bodies 60 --softening 0.05 --until -1 --snapshot-every 0.5 --out b";
    try_in(at.path(), run).expect(0, &[]);
    try_in(at.path(), "view b --output b.html").expect(0, &[]);
    let run = "run plummer --bodies 60 --block-steps --until -1 --out c";
    try_in(at.path(), run).expect(2, &["--block-steps", "go forward"]);
}

/// Single precision is told of where it does not keep its promise.
#[test]
fn forces_of_close_bodies_in_single_precision_are_told_of() {
    let at = new_folder();
    let told = |options: &str| {
        let run = format!("run plummer --bodies 8000 --steps 1 --overwrite --out o {options}");
        let ended = try_in(at.path(), &run);
        ended.expect(0, &[]);
        ended
            .complained
            .contains("in single precision are off by some")
    };
    assert!(told("--softening 1e-4"));
    assert!(told("--softening 0 --accuracy single"));
    assert!(!told("--softening 1e-4 --accuracy double"));
    assert!(!told("--softening 0"));
    assert!(!told("--softening 0.02"));
    assert!(!told(""));
}
