//! Numbers that would get another meaning in silence, and options that would not be followed: refused, or
//! told.

use std::fs;

use crate::support::program::{Ended, allpairs, code, run, try_in};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn run(&self, arguments: &str) -> Ended {
        try_in(self.0.path(), arguments)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("written");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("a text")
    }

    fn has(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }
}

const TWO: &str = "x,y,z,vx,vy,vz,mass\n0,0,0,0,0,0,1\n1,0,0,0,1,0,1e-3\n";

/// The units that a file records are those of its numbers, whatever the command.
#[test]
fn units_of_a_file_are_not_given_another_meaning() {
    let folder = Folder::new();
    folder
        .run("ic solar-system --out ss.npz")
        .expect(0, &["in units of au, Msun (G = 1.000000)"]);
    folder.write("points.txt", "1 0 0\n");
    for command in [
        "run ss.npz --steps 1 --out o --units kpc",
        "info ss.npz --units kpc",
        "field ss.npz --at points.txt --out o.csv --units kpc",
        "convert ss.npz o.csv --units kpc:pc",
        "render ss.npz --out o.png --units kpc",
        "view ss.npz --out o --units kpc",
        "plot orbits ss.npz --out o --units kpc",
    ] {
        let told = [
            "ss.npz records its units, au, Msun (G = 1.000000)",
            "--units says kpc, 1e10 Msun, km/s",
            "leave --units out",
        ];
        folder.run(command).expect(code::USAGE, &told);
        assert!(
            ["o", "o.csv", "o.png"].iter().all(|name| !folder.has(name)),
            "{command}"
        );
    }
    // The same units may be said.
    folder
        .run("run ss.npz --steps 1 --out same --units au")
        .expect(0, &["in units of au, Msun (G = 1.000000)"]);
    folder
        .run("convert ss.npz kpc.csv --units au:kpc")
        .expect(0, &["units are now kpc, 1e10 Msun, km/s"]);
    // A format without a place for units does not claim to record them.
    let written = folder.run("ic solar-system --out ss.vtp");
    written.expect(0, &["VTK PolyData"]);
    let note = "numbers are in units of au, Msun, which the file does not record";
    assert_eq!(written.complained.matches(note).count(), 1, "{written}");
    assert!(!written.said.contains("in units of"), "{written}");
}

#[test]
fn units_of_points_are_those_of_the_bodies() {
    let folder = Folder::new();
    folder.run("ic solar-system --out ss.npz").expect(0, &[]);
    folder
        .run("convert ss.npz si.npz --units si")
        .expect(0, &[]);
    folder.run("convert ss.npz ss.csv").expect(0, &[]);
    let with_units = folder.text("ss.csv");
    let plain = with_units.lines().filter(|line| !line.starts_with('#'));
    folder.write("plain.csv", &(plain.collect::<Vec<_>>().join("\n") + "\n"));
    let field = |of: &str, at: &str, more: &str| {
        folder.run(&format!(
            "field {of} --at {at} --out o.csv --overwrite {more}"
        ))
    };
    field("ss.npz", "ss.npz", "").expect(0, &[]);
    let expected = folder.text("o.csv");
    field("ss.npz", "si.npz", "").expect(0, &["points of si.npz converted from units of m, kg, s"]);
    let converted = folder.text("o.csv");
    for (a, b) in converted.lines().zip(expected.lines()).skip(1) {
        let numbers = |line: &str| line.split(',').map(|x| x.parse().expect("one")).collect();
        let [a, b]: [Vec<f64>; 2] = [a, b].map(numbers);
        for k in 0..3 {
            assert!((a[k] - b[k]).abs() <= 1e-12 * b[k].abs(), "{a:?} {b:?}");
        }
    }
    field("plain.csv", "si.npz", "").expect(code::USAGE, &["si.npz records its units", "--units"]);
    let ended = field("ss.npz", "plain.csv", "");
    ended.expect(
        0,
        &["points of plain.csv, without units, taken as in the units of the bodies"],
    );
    let dropped = "columns that are not used here: vx, vy, vz, mass";
    assert!(ended.complained.contains(dropped), "{ended}");

    folder.write("none.txt", "# x y z\n");
    field("ss.npz", "none.txt", "").expect(code::DATA, &["there are no points in it"]);
    folder.write("pts.csv", "x,y,z\n1,0,0\n");
    let itself = "field ss.npz --at pts.csv --out ./pts.csv --overwrite";
    folder
        .run(itself)
        .expect(code::USAGE, &["pts.csv is also read"]);
    assert_eq!(folder.text("pts.csv"), "x,y,z\n1,0,0\n");
}

/// Bodies are named by their ids in logs, so there is one of each.
#[test]
fn bodies_of_one_id_are_numbered_anew() {
    let folder = Folder::new();
    folder.write(
        "twice.csv",
        "x,y,z,vx,vy,vz,mass,id\n0,0,0,0,0,0,1,5\n1,0,0,0,1,0,1,7\n3,0,0,0,1,0,1,5\n",
    );
    let ended = folder.run("convert twice.csv a.csv");
    ended.expect(0, &["3 bodies"]);
    let note =
        "note: twice.csv: several bodies have the id 5: all bodies are numbered anew, from 0 on";
    assert!(ended.complained.contains(note), "{ended}");
    let text = folder.text("a.csv");
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let ids: Vec<&str> = rows
        .map(|row| row.split(',').nth(7).expect("an id"))
        .collect();
    assert_eq!(ids, ["0", "1", "2"]);
    let ended = folder.run("convert a.csv b.csv");
    assert!(!ended.complained.contains("numbered anew"), "{ended}");
}

#[test]
fn options_that_cannot_be_followed_are_refused_before_anything_is_said() {
    let folder = Folder::new();
    folder.write("two.csv", TWO);
    let command = "run two.csv --softening 0";
    for (options, part) in [
        ("--dt 0", "`--dt` must be finite and not 0"),
        ("--block-steps --steps 3", "block time steps need --until"),
        (
            "--integrator hermite4 --eta 0 --until 1",
            "`--eta` must be > 0 and finite, got 0",
        ),
        (
            "--integrator hermite4 --eta 0.1",
            "steps by --eta need --until",
        ),
        ("--radius-of-bodies -1", "-1"),
        ("--escape-radius -1", "-1"),
        ("--seed 3", "--seed is for initial conditions made by name"),
        ("--seed 0", "--seed is for initial conditions made by name"),
        (
            "--tidal-radius 5",
            "--tidal-radius is for initial conditions",
        ),
        ("--masses kroupa", "--masses is for initial conditions"),
        ("--of king", "--of is for initial conditions"),
        (
            "--mass 1Msun --radius 1pc",
            "--mass and --radius are for initial conditions",
        ),
    ] {
        let ended = folder.run(&format!("{command} {options} --out o"));
        ended.expect(code::USAGE, &[part]);
        assert!(
            ended.said.is_empty() && !folder.has("o"),
            "{options}: {ended}"
        );
    }
    for measure in ["verify", "tune", "bench", "systems"] {
        let ended = folder.run(&format!("{measure} --bodies 4e9"));
        ended.expect(code::USAGE, &["memory"]);
        let ended = folder.run(&format!("{measure} --bodies 1.5"));
        ended.expect(code::USAGE, &["a whole number ≥ 1, such as 16384 or 1e6"]);
    }
    for (number, said) in [
        ("1", "CPU (1 thread,"),
        ("2,4", "CPU (2 threads,"),
        ("many", "CPU ("),
    ] {
        let mut openmp = allpairs(folder.0.path());
        let arguments = [
            "run",
            "plummer",
            "--bodies",
            "5",
            "--steps",
            "1",
            "--overwrite",
            "--out",
            "omp",
        ];
        openmp.env("OMP_NUM_THREADS", number).args(arguments);
        run(&mut openmp).expect(0, &[said]);
    }
    let mut threads = allpairs(folder.0.path());
    threads
        .env("RAYON_NUM_THREADS", "abc")
        .args(["info", "two.csv"]);
    run(&mut threads).expect(
        code::USAGE,
        &["`RAYON_NUM_THREADS` must be a number of threads, got `abc`"],
    );
    let ended = folder.run(&format!("{command} --device cuda --out o"));
    assert_eq!(
        ended.complained.matches("GPUs are switched off").count(),
        1,
        "{ended}"
    );
}

#[test]
fn the_header_has_the_steps_that_are_taken_and_the_g_that_is_used() {
    let folder = Folder::new();
    folder.write("two.csv", TWO);
    let run = "run two.csv --softening 0";
    for (options, steps) in [
        ("--until 1 --dt 0.1", 10),
        ("--until 1 --snapshot-every 0.01 --dt 0.1", 100),
        ("--until 1 --snapshot-every 0.25 --dt 0.1", 12),
        ("--until 1.05 --snapshot-every 0.25 --dt 0.1", 13),
        ("--until -1 --snapshot-every 0.5 --dt -0.3", 4),
    ] {
        let ended = folder.run(&format!("{run} {options} --overwrite --out o"));
        let (header, end) = (
            format!("softening 0, {steps} steps"),
            format!("\n{steps} steps in "),
        );
        ended.expect(0, &[&header, &end]);
    }
    for (gravity, line) in [
        ("2", "units unknown, G = 2 as given\n"),
        (
            "0",
            "units unknown, G = 0 as given: bodies do not attract each other\n",
        ),
        (
            "-1",
            "units unknown, G = -1 as given: bodies repel each other\n",
        ),
    ] {
        let ended = folder.run(&format!(
            "{run} --dt 0.1 --steps 1 --gravity {gravity} --overwrite --out o"
        ));
        ended.expect(0, &[line]);
    }
    folder
        .run(&format!("{run} --dt 0.1 --steps 1 --gravity inf --out p"))
        .expect(code::USAGE, &["`--gravity` must be finite"]);
}

#[test]
fn a_constant_of_gravity_without_effect_is_refused() {
    let folder = Folder::new();
    folder.write("two.csv", TWO);
    let run = "run two.csv --dt 0.1 --steps 1 --softening 0.1 --law unit --device cpu";
    folder
        .run(&format!("{run} --gravity 3 --out o"))
        .expect(code::USAGE, &["--gravity has no effect under --law unit"]);
    folder.run(&format!("{run} --out p")).expect(0, &["1 step"]);
    folder.run("run p/run.toml --out q").expect(0, &["1 step"]);
}

#[test]
fn configurations_say_where_they_are_wrong() {
    let folder = Folder::new();
    folder.write("two.csv", TWO);
    folder.write("a.toml", "input = \"two.csv\"\nstepz = 5\n");
    folder
        .run("run a.toml --out o")
        .expect(code::USAGE, &["in the configuration a.toml", "--stepz"]);
    folder.write(
        "b.toml",
        "input = \"two.csv\"\n[made-by]\nkernel = \"x\"\nsteps = 5\n",
    );
    folder
        .run("run b.toml --out o")
        .expect(code::USAGE, &["b.toml", "`steps` stands below [made-by]"]);
    assert!(!folder.has("o"));
}

#[test]
fn there_are_logs_of_what_is_looked_for() {
    let folder = Folder::new();
    folder.write("two.csv", TWO);
    let run = "run two.csv --softening 0 --dt 0.01 --steps 3";
    for (option, [collisions, escapers]) in [
        ("--radius-of-bodies 0.1", [true, false]),
        ("--escape-radius 50", [false, true]),
        ("--radius-of-bodies 0.1 --escape-radius 50", [true, true]),
    ] {
        let out = format!("{collisions}-{escapers}");
        folder
            .run(&format!("{run} {option} --checkpoint-every 2 --out {out}"))
            .expect(0, &["3 steps in"]);
        folder
            .run(&format!("resume {out} --steps 5"))
            .expect(0, &["2 steps in"]);
        assert_eq!(
            folder.has(&format!("{out}/collisions.csv")),
            collisions,
            "{option}"
        );
        assert_eq!(
            folder.has(&format!("{out}/escapers.csv")),
            escapers,
            "{option}"
        );
    }
}
