//! External fields through the program.

use std::fs;
use std::path::Path;

use crate::support::program::{Ended, code, try_in};

/// A path of five points.
fn path(folder: &Path, last: f64) {
    let rows = (0..5).map(|k| f64::from(k) / 4.0).map(|s| {
        let (t, angle) = (last * s, 2.0 * s);
        format!("{t},{},{},0\n", 3.0 * angle.cos(), 3.0 * angle.sin())
    });
    let table = format!("t,x,y,z\n{}", rows.collect::<String>());
    fs::write(folder.join("path.csv"), table).expect("written");
}

fn run(folder: &Path, arguments: &[&str]) -> Ended {
    try_in(folder, &arguments.join(" "))
}

/// A table that has no end, or that waits for another process.
#[test]
fn paths_that_are_not_files_are_refused() {
    let at = tempfile::tempdir().expect("a folder");
    for path in ["/dev/zero", "/dev/null", "."] {
        let field = format!("--field=point:mass=1,path={path}");
        let run = [
            "run", "plummer", "--bodies", "40", "--steps", "5", &field, "--out=o",
        ];
        let ended = self::run(at.path(), &run);
        assert!(ended.complained.contains("not a regular file"), "{ended}");
        assert!(
            ended.code != Some(0) && !at.path().join("o").exists(),
            "{ended}"
        );
    }
}

#[test]
fn a_body_in_a_singular_centre_is_refused() {
    let at = tempfile::tempdir().expect("a folder");
    let table = "x,y,z,vx,vy,vz,mass\n3,0,0,0,1,0,1\n0,0,0,0,0,0,1\n";
    fs::write(at.path().join("o.csv"), table).expect("written");
    for field in ["point:mass=1", "point:mass=0", "logarithmic:speed=1"] {
        let field = format!("--field={field}");
        let run = ["run", "o.csv", "--dt=0.1", "--steps=5", &field, "--out=o"];
        let ended = self::run(at.path(), &run);
        assert!(
            ended
                .complained
                .contains("body 1 is exactly in the centre of the field"),
            "{ended}"
        );
        assert!(
            ended.code != Some(0) && !at.path().join("o").exists(),
            "{ended}"
        );
    }
}

#[test]
fn a_run_says_what_fields_it_is_in() {
    let at = tempfile::tempdir().expect("a folder");
    let plummer = ["run", "plummer", "--bodies", "40", "--steps", "5"];
    for device in ["cpu", "emulator"] {
        let out = format!("--out={device}");
        let more = [
            "--field",
            "nfw:mass=1000,scale=20,x=50",
            "--field=point:mass=3,y=-9",
            "--device",
            device,
            &out,
        ];
        run(at.path(), &[&plummer[..], &more].concat()).expect(
            0,
            &[
                "field nfw: mass 1000, scale 20, about (50, 0, 0)\nfield point: mass 3, about (0, -9, 0)\n",
                "energy in fields",
                "not conserved",
            ],
        );
    }
    let kept = fs::read_to_string(at.path().join("cpu/run.toml")).expect("a configuration");
    let fields = "field = [\"nfw:mass=1000,scale=20,x=50\", \"point:mass=3,y=-9\"]";
    assert!(kept.contains(fields), "{kept}");
    // The Milky Way takes the units of the bodies.
    let milky_way = [
        "--mass=40Msun",
        "--radius=1pc",
        "--field=mwpotential2014:x=-8kpc",
        "--out=galaxy",
    ];
    run(at.path(), &[&plummer[..], &milky_way].concat()).expect(
        0,
        &[
            "field power-law: mass",
            "field miyamoto-nagai",
            "about (-8000, 0, 0)",
        ],
    );
    let tide = [
        "--mass=40Msun",
        "--radius=1pc",
        "--field=tide:omega=27.5km/s/kpc",
        "--integrator=hermite4",
        "--eta=0.02",
        "--until=0.1",
        "--block-steps",
        "--out=tide",
    ];
    run(at.path(), &[&plummer[..4], &tide].concat())
        .expect(0, &["field tide: omega 0.0275, kappa 0.0275, nu 0.0275"]);
}

#[test]
fn fields_that_cannot_be_are_refused_before_the_run() {
    let at = tempfile::tempdir().expect("a folder");
    path(at.path(), 1.0);
    for (options, parts) in [
        (
            &["--field=nwf:mass=1"][..],
            &["--field nwf:mass=1", "did you mean `nfw`?"][..],
        ),
        (
            &["--field=nfw:mass=1,scale=-2"],
            &["`scale` of the field nfw must be > 0", "got -2"],
        ),
        (
            &["--field=nfw:mass=1Msun,scale=1"],
            &["mass=1Msun has a unit", "--units"],
        ),
        (&["--field=mwpotential2014"], &["--units"]),
        (
            &["--field=tide:omega=1"],
            &["tide depends on velocities", "hermite4", "leapfrog"],
        ),
        (
            &["--field=plummer:mass=1,scale=1,path=path.csv", "--until=2"],
            &["from time 0 to 1", "at time 2"],
        ),
        (
            &[
                "--field=plummer:mass=1,scale=1,path=path.csv",
                "--dt=0.25",
                "--steps=5",
            ],
            &["from time 0 to 1", "at time 1.25"],
        ),
        (
            &[
                "--field=point:mass=1",
                "--systems=2",
                "--kernel=many-systems",
                "--device=emulator",
            ],
            &["one system, not on 2", "--systems 1 and leave out --kernel"],
        ),
    ] {
        let plummer = ["run", "plummer", "--bodies=20", "--out=refused"];
        run(at.path(), &[&plummer[..], options].concat()).expect(code::USAGE, parts);
        assert!(!at.path().join("refused").exists(), "{options:?}");
    }
}

/// Files of a run but its checkpoints.
fn left(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a run's folder");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let files = files.map(|file| {
        let name = file.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), fs::read(&file).expect("a file"))
    });
    let mut files: Vec<_> = files
        .filter(|(name, _)| !name.starts_with("checkpoint") && name != "run.toml")
        .collect();
    files.sort();
    files
}

#[test]
fn a_resumed_run_is_in_the_same_fields() {
    let at = tempfile::tempdir().expect("a folder");
    path(at.path(), 1.0);
    let base = [
        "run",
        "plummer",
        "--bodies=40",
        "--dt=0.01",
        "--diagnostics=5",
        "--field=plummer:mass=5,scale=0.5,path=path.csv",
        "--field=nfw:mass=7,scale=3,x=2",
    ];
    let whole = [&base[..], &["--steps=40", "--out=whole"]].concat();
    run(at.path(), &whole).expect(
        0,
        &[
            "on a path of 5 points from time 0 to 1",
            "the energy is not conserved",
        ],
    );
    let begun = ["--steps=20", "--checkpoint-every=20", "--out=begun"];
    run(at.path(), &[&base[..], &begun].concat()).expect(0, &[]);
    run(at.path(), &["resume", "begun", "--steps=40"]).expect(0, &[]);
    let (whole, begun) = (at.path().join("whole"), at.path().join("begun"));
    assert!(left(&whole) == left(&begun), "resumed, it is another run");
    // Another path in the same file is another field, and so is one that ends too early.
    run(at.path(), &["resume", "begun", "--steps=200"])
        .expect(code::USAGE, &["from time 0 to 1", "at time 2"]);
    path(at.path(), 1.5);
    run(at.path(), &["resume", "begun", "--steps=50"])
        .expect(code::USAGE, &["path.csv", "the run was made with"]);
}

/// Relativity on a device: a run says that its pairs are in f64, whatever the accuracy of its steps, and one that
/// was stopped leaves what one that was not does.
#[test]
fn planets_feel_relativity_on_a_device() {
    let at = tempfile::tempdir().expect("a folder");
    for (name, steps, ends, text) in [
        (
            "fixed",
            "--dt=0.5day",
            ["--steps=20", "--steps=40"],
            "field 1pn",
        ),
        (
            "blocks",
            "--dt=8day --block-steps --eta=0.04 --accuracy=fast",
            ["--until=16day", "--until=32day"],
            "pairs in f64",
        ),
    ] {
        let base = [
            "run",
            "solar-system",
            "--field=1pn",
            "--integrator=hermite4",
            "--device=emulator",
            "--diagnostics=2",
        ];
        let base: Vec<&str> = base.into_iter().chain(steps.split(' ')).collect();
        let [whole, half] = ["whole", "half"].map(|half| format!("{name}-{half}"));
        let [first, last] = ends;
        let out = format!("--out={whole}");
        let texts = [text, "energy in fields"];
        run(at.path(), &[&base[..], &[last, &out]].concat()).expect(0, &texts);
        let out = format!("--out={half}");
        let begun = [first, "--checkpoint-every=2", &out];
        run(at.path(), &[&base[..], &begun].concat()).expect(0, &[]);
        run(at.path(), &["resume", &half, last]).expect(0, &[]);
        let [whole, half] = [whole, half].map(|folder| left(&at.path().join(folder)));
        assert!(whole == half, "{name}: resumed, it is another run");
    }
    run(
        at.path(),
        &[
            "run",
            "solar-system",
            "--field=1pn",
            "--integrator=hermite4",
            "--accuracy=single",
            "--device=emulator",
            "--steps=1",
            "--out=single",
        ],
    )
    .expect(
        code::USAGE,
        &["below what single precision rounds", "--accuracy double"],
    );
}

/// A cluster in its own frame: the run says so, watches its energy, and keeps where the origin is at each
/// moment that it records, whether it was stopped or not; its configuration makes it again.
#[test]
fn a_cluster_is_in_its_own_frame() {
    let at = tempfile::tempdir().expect("a folder");
    let base = [
        "run",
        "plummer",
        "--bodies=40",
        "--mass=4000Msun",
        "--radius=3pc",
        "--softening=0.5pc",
        "--dt=0.05",
        "--diagnostics=15",
        "--snapshot-every=1",
        "--field=mwpotential2014",
        "--orbit=x=8kpc,z=20pc,vy=220km/s",
    ];
    let whole = [&base[..], &["--steps=50", "--out=whole"]].concat();
    run(at.path(), &whole).expect(
        0,
        &[
            "orbit from (8000, 0, 20) with velocity (0, 220, 0): bodies are in the frame that falls with it",
            "energy in fields",
        ],
    );
    let table = fs::read_to_string(at.path().join("whole/orbit.csv")).expect("a table");
    let rows: Vec<Vec<f64>> = (table.lines().skip(1))
        .map(|row| {
            row.split(',')
                .map(|n| n.parse().expect("a number"))
                .collect()
        })
        .collect();
    let steps: Vec<f64> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(steps, [0.0, 15.0, 20.0, 30.0, 40.0, 45.0, 50.0]);
    let end = &rows[6];
    assert_eq!(&rows[0][1..], [0.0, 8000.0, 0.0, 20.0, 0.0, 220.0, 0.0]);
    assert_eq!(end[1], 2.5);
    // Nearly a circle: 2.5 pc/(km/s) at 27.5 km/s/kpc.
    let angle = (end[3] / end[2]).atan();
    assert!((angle - 2.5 * 0.0275).abs() < 1e-3, "{angle}");
    let log = fs::read_to_string(at.path().join("whole/diagnostics.csv")).expect("a log");
    let drift = |row: &str| {
        row.split(',')
            .nth(5)
            .and_then(|drift| drift.parse::<f64>().ok())
    };
    let drifts: Vec<f64> = log.lines().skip(1).filter_map(drift).collect();
    assert!(
        drifts.len() == 4 && drifts.iter().all(|drift| *drift < 1e-2),
        "{drifts:?}"
    );
    // Its bodies are not put into the middle of the galaxy without a word.
    let goes_on = [
        "run",
        "whole/final.allpairs",
        "--softening=0.5",
        "--dt=0.05",
        "--steps=1",
    ];
    let field = "--field=mwpotential2014";
    let said = ["whole/orbit.csv is next to the input", "--orbit x="];
    run(
        at.path(),
        &[&goes_on[..], &[field, "--out=centre"]].concat(),
    )
    .expect(0, &said);
    let orbit = format!(
        "--orbit=x={},y={},z={},vx={},vy={},vz={}",
        end[2], end[3], end[4], end[5], end[6], end[7]
    );
    let there = [&goes_on[..], &[field, &orbit, "--out=there"]].concat();
    let there = run(at.path(), &there);
    assert!(
        !there
            .expect(0, &["orbit from"])
            .said
            .contains("is next to the input")
    );
    // It stops between two looks, and at the end of a shorter run: neither is seen in what is left.
    let begun = ["--steps=23", "--checkpoint-every=23", "--out=begun"];
    run(at.path(), &[&base[..], &begun].concat()).expect(0, &[]);
    run(at.path(), &["resume", "begun", "--steps=50"]).expect(0, &[]);
    let (whole, begun) = (at.path().join("whole"), at.path().join("begun"));
    assert!(left(&whole) == left(&begun), "resumed, it is another run");
    run(at.path(), &["run", "whole/run.toml", "--out=again"]).expect(0, &[]);
    assert!(
        left(&whole) == left(&at.path().join("again")),
        "by its own file, it is another run"
    );
}

#[test]
fn orbits_that_cannot_be_are_refused_before_the_run() {
    let at = tempfile::tempdir().expect("a folder");
    for (options, parts) in [
        (
            &["--orbit=x=8"][..],
            &["an orbit needs a field", "--field"][..],
        ),
        (
            &["--field=point:mass=9", "--orbit=r=8"],
            &["--orbit r=8", "no `r`", "vx"],
        ),
        (
            &["--field=point:mass=9", "--orbit=x=8kpc"],
            &["x=8kpc has a unit", "--units"],
        ),
        (
            &["--field=point:mass=9", "--orbit=x=nan"],
            &["`x` of the orbit", "finite"],
        ),
        (
            &["--field=point:mass=9", "--orbit=vy=1"],
            &["begins in the centre of the field point"],
        ),
        // It falls straight into the point mass.
        (
            &[
                "--field=point:mass=9",
                "--orbit=x=1",
                "--dt=0.1",
                "--steps=9",
            ],
            &["beyond time 0.37", "singular"],
        ),
        (
            &[
                "--field=tide:omega=1",
                "--orbit=x=1",
                "--integrator=hermite4",
            ],
            &["tide", "turns"],
        ),
    ] {
        let arguments = [
            &["run", "plummer", "--bodies=20", "--out=refused"][..],
            options,
        ]
        .concat();
        run(at.path(), &arguments).expect(code::USAGE, parts);
        assert!(!at.path().join("refused").exists(), "{options:?}");
    }
}
