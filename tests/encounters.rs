//! Collisions and escapes through the program.

use std::fs;
use std::path::Path;

use crate::support::program::{code, try_in};

/// Two bodies that meet at time 1.9, a third that leaves, and a heavy one far from all of them.
fn write(folder: &Path) {
    let rows = [
        "x,y,z,vx,vy,vz,mass,id,radius",
        "-2,0,0,1,0,0,1e-6,1,0.1",
        "2,0,0,-1,0,0,2e-6,2,0.1",
        "0,3,0,0,2,0,0,3,0",
        "0,0,40,0,0,0,1e-3,4,0.5",
    ];
    fs::write(folder.join("few.csv"), rows.join("\n") + "\n").expect("written");
}

const RUN: &str = "run few.csv --softening 0 --dt 0.04";

#[test]
fn what_follows_from_a_collision() {
    let at = tempfile::tempdir().expect("a folder");
    write(at.path());
    for (action, bodies, texts) in [
        (
            "log",
            4,
            ["that collide are logged", "1 collision (collisions.csv)"],
        ),
        (
            "merge",
            3,
            ["that collide merge", "energy lost in encounters"],
        ),
        (
            "bounce",
            4,
            ["that collide bounce", "1 collision (collisions.csv)"],
        ),
        (
            "stop",
            4,
            [
                "stop the run",
                "stopped after step 48: bodies with ids 2 and 1 collided at time 1.8999",
            ],
        ),
    ] {
        let run = format!(
            "{RUN} --diagnostics 20 --steps 60 --radius-of-bodies few.csv --on-collision {action}"
        );
        try_in(at.path(), &format!("{run} --out {action}")).expect(0, &texts);
        let read =
            |name: &str| fs::read_to_string(at.path().join(action).join(name)).expect("a table");
        let collisions = read("collisions.csv");
        let (header, row) = collisions.split_once('\n').expect("a row");
        assert_eq!(
            header,
            "step,time,id_a,id_b,mass_a,mass_b,x,y,z,speed,outcome"
        );
        let cells: Vec<&str> = row.trim_end().split(',').collect();
        assert_eq!(cells[0], "48", "{row}");
        let time: f64 = cells[1].parse().expect("a time");
        assert!((time - 1.9).abs() <= 1e-4, "{row}");
        assert_eq!(&cells[2..4], ["2", "1"], "the heavier first: {row}");
        assert_eq!(cells[10], action);
        let end = read("final.csv");
        let rows = end
            .lines()
            .filter(|line| !line.starts_with(['#', 'x', 'i']));
        assert_eq!(rows.count(), bodies, "{end}");
    }
}

/// A bounce is elastic, and in a step that is too long for it the energy changes.
#[test]
fn bounces_that_change_the_energy_are_warned_of() {
    let at = tempfile::tempdir().expect("a folder");
    let rows = [
        "x,y,z,vx,vy,vz,m",
        "-1,0,0,1,0.1,0,2",
        "1,0.05,0,-1,0,0.2,1",
    ];
    fs::write(at.path().join("two.csv"), rows.join("\n") + "\n").expect("written");
    let run = "run two.csv --softening 0 --integrator hermite4 --radius-of-bodies 0.1 --on-collision bounce --until 2";
    let coarse = try_in(at.path(), &format!("{run} --dt 0.01 --out coarse"));
    coarse.expect(0, &["energy lost in encounters"]);
    let warning = "bounces are elastic, and changed the energy by";
    assert!(coarse.complained.contains(warning), "{coarse}");
    let fine = try_in(at.path(), &format!("{run} --dt 0.0001 --out fine"));
    fine.expect(0, &["1 collision"]);
    assert!(!fine.complained.contains("elastic"), "{}", fine.complained);
}

/// A run with mergers and escapes that was stopped leaves what one that was not does; on a device, too.
#[test]
fn a_resumed_run_meets_the_same_bodies() {
    for device in ["cpu", "emulator"] {
        let run = format!("{RUN} --device {device}");
        let ends = [30, 48, 210, 300].map(|steps| format!("--steps {steps}"));
        resumed_runs_meet_the_same_bodies(&run, "--steps 500", &ends, 1);
    }
    // After a merger, the ends of block time steps are no multiples of the longest any more.
    let blocks = "run few.csv --softening 0 --dt 0.0625 --eta 0.01 --block-steps --integrator hermite4 \
                  --device emulator";
    resumed_runs_meet_the_same_bodies(blocks, "--until 12", &["--until 1".to_owned()], 4);
}

fn resumed_runs_meet_the_same_bodies(run: &str, end: &str, stops: &[String], every: u32) {
    let at = tempfile::tempdir().expect("a folder");
    write(at.path());
    let run = format!(
        "{run} --radius-of-bodies few.csv --on-collision merge --escape-radius 45 --on-escape remove \
         --diagnostics 20"
    );
    let ended = try_in(at.path(), &format!("{run} {end} --out whole"));
    ended.expect(
        0,
        &[
            "bodies beyond 45 from the centre of mass are taken away",
            "1 collision (collisions.csv), 1 escape (escapers.csv)",
        ],
    );
    for (k, stop) in stops.iter().enumerate() {
        let begun = format!("begun-{k}");
        let some = format!("{run} {stop} --checkpoint-every {every} --out {begun}");
        try_in(at.path(), &some).expect(0, &[]);
        try_in(at.path(), &format!("resume {begun} {end}")).expect(0, &[]);
        for name in [
            "final.csv",
            "diagnostics.csv",
            "collisions.csv",
            "escapers.csv",
            "test-particles.csv",
        ] {
            let read = |folder: &str| fs::read(at.path().join(folder).join(name)).expect(name);
            assert!(read("whole") == read(&begun), "{name}, stopped at {stop}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_the_run() {
    let at = tempfile::tempdir().expect("a folder");
    write(at.path());
    fs::write(at.path().join("two.txt"), "0.1\n-2\n0\n0\n").expect("written");
    for (options, part) in [
        (
            "--radius-of-bodies -1",
            "radius of body 0 must be ≥ 0 and finite, got -1",
        ),
        (
            "--radius-of-bodies nan",
            "radius of body 0 must be ≥ 0 and finite, got NaN",
        ),
        (
            "--radius-of-bodies 1e9",
            "radius 1000000000 of body 0 contains all bodies",
        ),
        ("--radius-of-bodies 5", "overlap at the beginning"),
        (
            "--radius-of-bodies two.txt",
            "radius of body 1 must be ≥ 0 and finite, got -2",
        ),
        (
            "--radius-of-bodies 1km",
            "in --radius-of-bodies: `1km` has a unit",
        ),
        ("--on-collision merge", "--radius-of-bodies"),
        ("--escape-radius 0", "escape must be > 0 and finite, got 0"),
        ("--escape-radius 1", "is beyond the radius of escape 1"),
        ("--on-escape remove", "--escape-radius"),
        (
            "--radius-of-bodies 0.01 --on-collision merge --field 1pn:c=10,body=3 --integrator hermite4",
            "put it first",
        ),
        (
            "--radius-of-bodies 0.01 --integrator hermite4 --eta 0.01 --until 1 --block-steps --device emulator:2",
            "collisions in block time steps without groups are looked for on one GPU",
        ),
    ] {
        let end = if options.contains("--until") {
            ""
        } else {
            "--steps 5"
        };
        let run = format!("run few.csv --softening 0 --dt 0.05 {end} --out refused {options}");
        try_in(at.path(), &run).expect(code::USAGE, &[part]);
        assert!(!at.path().join("refused").exists(), "{options}");
    }
    try_in(
        at.path(),
        "run few.csv --softening 0 --dt 0.05 --out refused --radius-of-bodies none.txt",
    )
    .expect(code::DATA, &["there is no such file"]);
}
