//! First attempts of a user with bodies of their own: units, the end of a run, options that are not
//! quite right.

use std::fs;

use crate::support::program::code::{DATA, IO, USAGE};
use crate::support::program::{Ended, allpairs, galaxy, run};
use allpairs::io::{read, read_units};
use allpairs::units::Units;
use tempfile::{TempDir, tempdir};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempdir().expect("a temporary folder"))
    }

    /// Runs `allpairs` with these arguments, separated by spaces.
    fn run(&self, arguments: &str) -> Ended {
        run(allpairs(self.0.path()).args(arguments.split_whitespace()))
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("written")
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).expect("written")
    }

    fn units(&self, name: &str) -> Option<Units> {
        read_units(&self.0.path().join(name), None).expect("a sound file")
    }
}

/// Times and lengths with units of their own give the bytes of the same numbers, also from a file, and
/// are refused where they mean nothing.
#[test]
fn times_and_lengths_have_units() {
    let folder = Folder::new();
    let run = "run plummer --bodies 20 --mass 20Msun --radius 1pc --units pc,Msun,Myr";
    let with = "--until 2Myr --dt 0.25Myr --snapshot-every 1000000yr --softening 0.05pc";
    folder
        .run(&format!("{run} {with} --escape-radius 20pc --out with"))
        .expect(
            0,
            &["step 0.2500 Myr, softening 0.0500 pc", "beyond 20 pc from"],
        );
    let numbers = "--until 2 --dt 0.25 --snapshot-every 1 --softening 0.05 --escape-radius 20";
    folder
        .run(&format!("{run} {numbers} --out numbers"))
        .expect(0, &[]);
    folder
        .run("run with/run.toml --out again")
        .expect(0, &["step 0.2500 Myr"]);
    let end = folder.bytes("numbers/final.allpairs");
    for name in ["with", "again"] {
        assert!(
            folder.bytes(&format!("{name}/final.allpairs")) == end,
            "{name}"
        );
    }
    for (options, complaint) in [
        (
            "--until 1Myr",
            "in --until: `1Myr` has a unit, and the units of the bodies are unknown",
        ),
        ("--softening 1pc", "in --softening: `1pc` has a unit"),
        (
            "--escape-radius 1pc",
            "in --escape-radius: `1pc` has a unit",
        ),
        ("--dt 1pc", "in --dt: `1pc` is not a time"),
        (
            "--until 1parsec",
            "`1parsec` is not a number, nor one with a unit",
        ),
    ] {
        let ended = folder.run(&format!("run plummer --bodies 20 {options} --out refused"));
        ended.expect(USAGE, &[complaint]);
    }
}

/// The Earth's orbit in metres, kilograms and seconds, told by nothing but the file.
#[test]
fn a_run_in_other_units_has_their_gravity() {
    let folder = Folder::new();
    folder
        .run("ic sun-earth --out au.allpairs")
        .expect(0, &["2 bodies"]);
    folder
        .run("convert au.allpairs si.allpairs --units si")
        .expect(0, &["G = 6.674300e-11"]);
    let steps = "--steps 100 --snapshot-every 864000 --out si";
    let ended = folder.run(&format!(
        "run si.allpairs --integrator leapfrog --dt 86400 {steps}"
    ));
    ended.expect(0, &["G = 6.674300e-11", "e33", "step 1.0000 day"]);
    let of_table = |line: &&str| line.contains("energy  ") && !line.contains("binding energy");
    let table = ended.said.lines().filter(of_table);
    assert!(
        table.clone().count() == 3 && table.clone().all(|line| line.len() < 90),
        "{ended}"
    );
    assert_eq!(folder.units("si/final.allpairs"), Some(Units::SI));
    assert_eq!(folder.units("si/snapshot-00001.allpairs"), Some(Units::SI));

    // The same orbit in the units in which it was made, in which G is 1.
    let day: f64 = 86_400.0 / "au".parse::<Units>().expect("units").time;
    let ended = folder.run(&format!(
        "run au.allpairs --integrator leapfrog --dt {day:e} --steps 100 --out au"
    ));
    ended.expect(0, &["G = 1.000000"]);
    assert!(folder.text("au/run.toml").contains("gravity = 1.0\n"));
    folder
        .run("convert si/final.allpairs back.allpairs --units au")
        .expect(0, &[]);
    let end = |name: &str| {
        let path = folder.0.path().join(name);
        read(&path, None).expect("a sound file").0.bodies
    };
    let (there, here) = (end("back.allpairs"), end("au/final.allpairs"));
    // An orbit of 1 au: roundings of 100 steps, which are fewer still in double precision.
    for axis in 0..2 {
        let (a, b) = (there.body(1).position[axis], here.body(1).position[axis]);
        assert!((a - b).abs() <= 1e-5, "{a} {b}");
    }
}

#[test]
fn units_can_be_given_and_stay_with_a_run() {
    let folder = Folder::new();
    folder
        .run("ic plummer --bodies 50 --out a.csv")
        .expect(0, &[]);
    folder.run("convert a.csv a.npz").expect(0, &[]);
    let of = "--softening 0.1 --dt 1e-4 --snapshot-every 2e-4 --checkpoint-every 3";
    let ended = folder.run(&format!("run a.npz {of} --units kpc --steps 9 --out whole"));
    ended.expect(0, &["G = 43009.172", "step 97779.2222 yr"]);
    let kpc: Units = "kpc".parse().expect("units");
    assert_eq!(folder.units("whole/final.npz"), Some(kpc));
    // Told by the file from now on, also where the run was stopped in between.
    folder
        .run(&format!(
            "run whole/snapshot-00000.npz {of} --steps 4 --out parts"
        ))
        .expect(0, &["G = 43009.172"]);
    folder
        .run("resume parts --steps 9")
        .expect(0, &["found parts/checkpoint"]);
    for name in ["final.npz", "snapshot-00004.npz"] {
        let (whole, parts) = (format!("whole/{name}"), format!("parts/{name}"));
        assert!(folder.bytes(&whole) == folder.bytes(&parts), "{name}");
    }
    // What is given outright is what counts.
    let ended = folder.run(&format!(
        "run whole/final.npz {of} --gravity 2 --steps 1 --out two"
    ));
    ended.expect(
        0,
        &[
            "1 step in",
            "in units of kpc, 1e10 Msun, km/s",
            "with G = 2 as given, where these have G = 43009.17",
        ],
    );
    assert!(folder.text("two/run.toml").contains("units = \""));
    assert!(folder.text("two/run.toml").contains("gravity = 2.0\n"));
    folder
        .run("run a.csv --units parsec")
        .expect(USAGE, &["`parsec` is not a unit", "kpc"]);
}

#[test]
fn a_chosen_step_leads_to_the_end_that_was_asked_for() {
    let folder = Folder::new();
    for (end, out) in [("1", "forth"), ("-0.3", "back")] {
        folder
            .run(&format!(
                "run plummer --bodies 200 --until {end} --out {out}"
            ))
            .expect(0, &["(chosen)"]);
        let path = folder.0.path().join(out).join("final.allpairs");
        let (snapshot, _) = read(&path, None).expect("a sound file");
        let end: f64 = end.parse().expect("a number");
        // A product of the step and a whole number.
        assert!(
            (snapshot.time - end).abs() <= 4.0 * f64::EPSILON,
            "{}",
            snapshot.time
        );
    }
    // A given one is taken as it is.
    folder
        .run("run plummer --bodies 200 --until 1 --dt 0.3 --out given")
        .expect(0, &["4 steps"]);
    folder
        .run("run plummer --bodies 200 --until 1 --steps 7 --out both")
        .expect(USAGE, &["--until", "--steps", "cannot be used"]);
}

#[test]
fn what_is_not_quite_right_is_told_apart() {
    let folder = Folder::new();
    let cases = [
        (
            DATA,
            "run plumer",
            ["no initial conditions", "did you mean `plummer`?"],
        ),
        (DATA, "run plumer.csv", ["no such file", "plumer.csv"]),
        (
            USAGE,
            "run plummer --softening -1",
            ["`--softening` must be ≥ 0", "got -1"],
        ),
        (
            USAGE,
            "run plummer --max-drift nan",
            ["`--max-drift` must be ≥ 0", "got NaN"],
        ),
        (
            USAGE,
            "run plummer --law attract-repel --kernel cpu-f32",
            ["the force law attract-repel,", "`reference`"],
        ),
        (USAGE, "run plummer --steps -5", ["'-5'", "--steps"]),
        (
            USAGE,
            "bench --budget -1",
            ["`--budget` must be > 0", "got -1"],
        ),
        (USAGE, "ic --out a.csv", ["<NAME>", "required"]),
        (
            IO,
            "ic plummer --bodies 9 --out none/a.csv",
            ["no folder none", "make it"],
        ),
    ];
    for (code, arguments, texts) in cases {
        folder.run(arguments).expect(code, &texts);
    }
    assert_eq!(fs::read_dir(folder.0.path()).expect("a folder").count(), 0);
    let galaxy = galaxy().display().to_string();
    for option in ["--bodies 100", "--of king"] {
        let name = option.split(' ').next().expect("a name");
        let told = format!("{name} is for initial conditions");
        folder
            .run(&format!("run {galaxy} {option}"))
            .expect(USAGE, &[&told, "is a file: leave it out"]);
    }
    folder
        .run(&format!("convert {galaxy} a.csv --units si"))
        .expect(USAGE, &["records no units", "FROM:TO"]);
    let rows = "x,y,z,vx,vy,vz,mass\n0,0,0,0,0,0,-1e-300\n";
    fs::write(folder.0.path().join("a.csv"), rows).expect("a writable folder");
    folder
        .run("run a.csv")
        .expect(DATA, &["mass = -1e-300 is negative"]);
}
