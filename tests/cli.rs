//! The program as a person or a script meets it: what it writes, says and refuses, and how it ends.

use std::fs;
use std::path::Path;

use crate::support::program::code::{DATA, UNAVAILABLE, USAGE};
use crate::support::program::{Ended, allpairs, galaxy, new_folder, run, try_in};
use allpairs::io::read;
use allpairs::variants::VARIANTS;

/// Names of a run's files, sorted, without the file by which a run claims its folder.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a readable folder").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name != ".lock")
        .collect();
    names.sort();
    names
}

#[test]
fn the_galaxy_is_simulated() {
    let folder = new_folder();
    let arguments = ["--steps", "3", "--dt", "0.07", "--out", "out"];
    run(allpairs(folder.path())
        .arg("run")
        .arg(galaxy())
        .args(arguments))
    .expect(
        0,
        &[
            "20000 bodies",
            "kernel cpu-f32 on CPU",
            "no GPU, so the CPU",
            "3 steps in",
            "interactions/s",
            "energy",
            "angular momentum",
            "wrote out/final.bin",
            "wrote out/final.png",
        ],
    );
    assert_eq!(
        names_in(&folder.path().join("out")),
        ["final.bin", "final.png", "run.toml"]
    );
    let snapshot = folder.path().join("out/final.bin");
    let (start, format) = read(&galaxy(), None).expect("a sound file");
    let (end, format_written) = read(&snapshot, None).expect("a sound file");
    assert_eq!(format_written, format);
    assert_eq!(end.bodies.id, start.bodies.id);
    assert!((end.time - 0.21).abs() <= 1e-15);
    assert_ne!(end.bodies.x, start.bodies.x);
    let picture = fs::read(folder.path().join("out/final.png")).expect("written");
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(picture.len() > 10_000, "{} bytes", picture.len());
}

#[test]
fn runs_repeat_bit_for_bit_and_can_be_continued() {
    let folder = new_folder();
    let start = "run plummer --bodies 300 --seed 7 --softening 0.1 --dt 0.01 --kernel cpu-f64";
    for out in ["a", "b"] {
        try_in(&folder, &format!("{start} --steps 20 --out {out}")).expect(0, &["wrote"]);
    }
    let bytes = |name: &str| fs::read(folder.path().join(name)).expect("written");
    assert_eq!(bytes("a/final.allpairs"), bytes("b/final.allpairs"));
    assert_eq!(bytes("a/final.png"), bytes("b/final.png"));
    let next = "run a/final.allpairs --steps 5 --softening 0.1 --dt 0.01 --out c";
    try_in(&folder, next).expect(0, &["at time 0.2"]);
    let (end, _) = read(&folder.path().join("c/final.allpairs"), None).expect("a sound file");
    assert!((end.time - 0.25).abs() <= 1e-12, "{}", end.time);
}

#[test]
fn a_run_on_the_emulator_gives_what_the_cpu_gives() {
    let folder = new_folder();
    let start = "run plummer --bodies 100 --seed 1 --softening 0.1 --dt 0.01 --steps 4";
    for (kernel, device) in [("tiled", "emulator"), ("cpu-f64", "cpu")] {
        let place = format!("--kernel {kernel} --device {device} --out {kernel}");
        try_in(&folder, &format!("{start} {place}")).expect(0, &["as asked", kernel]);
    }
    let end = |kernel: &str| {
        let path = folder.path().join(kernel).join("final.allpairs");
        read(&path, None).expect("a sound file").0.bodies
    };
    let (emulated, cpu) = (end("tiled"), end("cpu-f64"));
    for (a, b) in emulated.iter().zip(cpu.iter()) {
        for axis in 0..3 {
            // Positions up to some tens, a few roundings to f32 each.
            assert!((a.position[axis] - b.position[axis]).abs() <= 1e-5);
        }
    }
}

#[test]
fn outputs_of_an_earlier_run_are_replaced_only_if_told_to() {
    let folder = new_folder();
    let snapshot = folder.path().join("out/final.allpairs");
    let first = "run two-body --steps 5 --out out";
    try_in(&folder, first).expect(0, &["wrote out/final.allpairs"]);
    let before = fs::read(&snapshot).expect("written");

    let longer = "run two-body --steps 9 --out out";
    try_in(&folder, longer).expect(
        USAGE,
        &["out/final.allpairs is there already", "--overwrite"],
    );
    assert_eq!(fs::read(&snapshot).expect("still there"), before);

    try_in(&folder, &format!("{longer} --overwrite")).expect(0, &["wrote out/final.allpairs"]);
    assert_ne!(fs::read(&snapshot).expect("written"), before);

    // Where no folder is named, every run gets its own.
    for _ in 0..2 {
        try_in(&folder, "run two-body --steps 1").expect(0, &["wrote"]);
    }
    let folders = names_in(&folder.path().join("allpairs-out"));
    assert_eq!(folders, ["two-body", "two-body-2"]);
}

/// The galaxy's file with some bytes changed.
fn galaxy_with(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = fs::read(galaxy()).expect("comes with the sources");
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn bad_files_are_refused_and_nothing_is_touched() {
    let huge = 2_000_000_000_i32.to_le_bytes();
    // Mass and x of body 2, in records of 36 bytes after a header of 32.
    let (mass, x) = (32 + 2 * 36, 32 + 2 * 36 + 4);
    let csv = |line: &str| format!("x,y,z,vx,vy,vz,mass\n0,0,0,0,0,0,1\n{line}\n").into_bytes();
    let whole = fs::read(galaxy()).expect("comes with the sources");
    let cases: [(&str, Vec<u8>, &[&str]); 14] = [
        ("empty.bin", vec![], &["the file is empty"]),
        ("stub.bin", whole[..20].to_vec(), &["ends after 20 bytes"]),
        (
            "short.bin",
            whole[..500_000].to_vec(),
            &["ends after 500000 bytes", "need 860032"],
        ),
        (
            "long.bin",
            [&whole[..], &[0; 7]].concat(),
            &["ends after 860039 bytes"],
        ),
        (
            "noise.bin",
            vec![0xa7; 4096],
            &["byte offset 12", "not a Tipsy file"],
        ),
        (
            "count.bin",
            galaxy_with(8, &huge),
            &["byte offset 8", "2000000000 bodies"],
        ),
        ("dark.bin", galaxy_with(20, &huge), &["byte offset 8"]),
        (
            "nan.bin",
            galaxy_with(x, &f32::NAN.to_le_bytes()),
            &["byte offset 108", "body 2"],
        ),
        (
            "negative.bin",
            galaxy_with(mass, &(-1_f32).to_le_bytes()),
            &["byte offset 104", "body 2"],
        ),
        ("noise.xyz", vec![0xa7; 4096], &["no format that is known"]),
        (
            "header.csv",
            b"x,y,z\n".to_vec(),
            &["line 1", "no column `vx`"],
        ),
        (
            "word.csv",
            csv("0,0,0,zero,0,0,1"),
            &["line 3", "column 4", "`zero`"],
        ),
        ("inf.csv", csv("0,0,0,0,0,inf,1"), &["line 3", "body 1"]),
        ("fields.csv", csv("0,0,0"), &["line 3", "3 fields"]),
    ];
    let folder = new_folder();
    fs::create_dir(folder.path().join("out")).expect("a writable folder");
    let precious = [
        "out/final.allpairs",
        "out/final.bin",
        "out/final.csv",
        "out/final.png",
    ];
    for name in precious {
        fs::write(folder.path().join(name), "precious").expect("a writable folder");
    }
    for (name, content, complaints) in cases {
        fs::write(folder.path().join(name), content).expect("a writable folder");
        let before = names_in(folder.path());
        for options in ["", "--out out --overwrite"] {
            try_in(&folder, &format!("run {name} --steps 1 {options}"))
                .expect(DATA, complaints)
                .expect(DATA, &[name]);
            assert_eq!(names_in(folder.path()), before);
        }
    }
    try_in(&folder, "run missing.bin").expect(DATA, &["missing.bin", "there is no such file"]);
    try_in(&folder, "run missing.toml").expect(DATA, &["missing.toml", "No such file"]);
    try_in(&folder, "run out").expect(DATA, &["not a regular file"]);
    for name in precious {
        let content = fs::read(folder.path().join(name)).expect("still there");
        assert_eq!(content, b"precious");
    }
}

#[test]
fn a_choice_that_cannot_run_is_refused_with_the_reason() {
    let folder = new_folder();
    for (arguments, code, complaints) in [
        (
            "run two-body --kernel tiled",
            USAGE,
            ["`tiled` is GPU code", "--device cuda"],
        ),
        (
            "run two-body --kernel tiled --device cpu",
            USAGE,
            ["`tiled` is GPU code", "emulator"],
        ),
        (
            "run two-body --device cuda",
            UNAVAILABLE,
            ["needs a GPU", "switched off"],
        ),
        (
            "run two-body --kernel cpu-f64 --device emulator",
            USAGE,
            ["`cpu-f64` is CPU code", "--device cpu"],
        ),
        (
            "verify --kernel cpu-f64 --device emulator",
            USAGE,
            ["`cpu-f64` is CPU code", "--device cpu"],
        ),
        (
            "verify --kernel tides-at-points --device cpu",
            USAGE,
            ["`tides-at-points` is GPU code", "--device emulator"],
        ),
        (
            "bench --device cuda:3",
            UNAVAILABLE,
            ["needs a GPU", "switched off"],
        ),
        (
            "run two-body --kernel tilde",
            USAGE,
            ["no kernel `tilde`", "allpairs list"],
        ),
        (
            "inspect tilde",
            USAGE,
            ["no kernel `tilde`", "allpairs list"],
        ),
        (
            "inspect tiled --sm 60",
            USAGE,
            ["no module for sm_60", "75, 80, 90"],
        ),
        ("inspect cpu-f64", USAGE, ["is CPU code", "no PTX"]),
        (
            "list --study mars",
            USAGE,
            ["there is no study `mars`", "venus"],
        ),
        (
            "run two-body --device gpu",
            USAGE,
            ["no device `gpu`", "emulator"],
        ),
        (
            "run two-body --bodies 5",
            USAGE,
            ["`two-body` has no number of bodies", "leave it out"],
        ),
        ("run plummer --bodies 0", USAGE, ["0 bodies", "at least 1"]),
        (
            "run two-body --softening=-1",
            USAGE,
            ["`--softening` must be ≥ 0", "got -1"],
        ),
        (
            "run two-body --gravity nan",
            USAGE,
            ["`--gravity` must be finite", "got NaN"],
        ),
        (
            "run two-body --dt 0",
            USAGE,
            ["`--dt` must be finite and not 0", "got 0"],
        ),
        (
            "run two-body --dt=-inf --out out",
            USAGE,
            ["`--dt` must be finite and not 0", "got -inf"],
        ),
        (
            "run two-body --until=-1 --dt 0.1",
            USAGE,
            ["from time 0", "--until -1"],
        ),
        (
            "run two-body --integrator hermite4 --eta 0.01 --out out",
            USAGE,
            ["--eta", "need --until"],
        ),
        (
            "run two-body --integrator leapfrog --block-steps --until 1",
            USAGE,
            ["needs an integrator with jerks", "not leapfrog"],
        ),
        (
            "run two-body --snapshot-every 0",
            USAGE,
            ["`--snapshot-every` must be > 0", "got 0"],
        ),
        (
            "run two-body --watch --out out",
            USAGE,
            ["`--watch` needs a terminal", "leave it out"],
        ),
        (
            "run two-body --of king",
            USAGE,
            ["`two-body` is one system", "many-galaxies"],
        ),
        (
            "validate --only moon",
            USAGE,
            ["no experiment's name contains `moon`", "kepler-yoshida6"],
        ),
        ("run two-body --integrator rk4", USAGE, ["rk4", "leapfrog"]),
        ("run two-body --steps=-3", USAGE, ["-3", "--steps"]),
        ("bench --bodies 0", USAGE, ["0", "--bodies"]),
        ("run", USAGE, ["INPUT", "Usage"]),
        ("simulate", USAGE, ["simulate", "Usage"]),
    ] {
        try_in(&folder, arguments).expect(code, &complaints);
        assert_eq!(names_in(folder.path()), [""; 0], "{arguments}");
    }
}

#[test]
fn what_is_known_is_validated() {
    let folder = new_folder();
    let arguments = "validate --quick --only figure --json report.json --reasons --device cpu";
    try_in(&folder, arguments).expect(
        0,
        &[
            "figure-eight",
            "yoshida6",
            "cpu-f64",
            "passed",
            "2 of 2 checks",
            "random walk",
        ],
    );
    let text = fs::read_to_string(folder.path().join("report.json")).expect("written");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let check = &report["experiments"][0]["checks"][0];
    assert_eq!(check["passed"], true, "{text}");
    assert!(check["value"].as_f64() <= check["bound"].as_f64(), "{text}");
    try_in(&folder, arguments).expect(USAGE, &["report.json is there already"]);
}

#[test]
fn systems_side_by_side() {
    let folder = new_folder();
    let ic = "ic many-galaxies --systems 3 --each 20 --of king --w0 3 --out many.csv";
    try_in(&folder, ic).expect(0, &["60 bodies"]);
    let (many, _) = read(&folder.path().join("many.csv"), None).expect("a sound file");
    assert_eq!(many.bodies.id, Vec::from_iter(0..60));
    let run = "run many-galaxies --systems 2 --of figure-eight --steps 2 --out run";
    try_in(&folder, run).expect(0, &["6 bodies of total mass 6.0"]);
    let again = "run run/run.toml --systems 3 --out again";
    try_in(&folder, again).expect(0, &["9 bodies of total mass 9.0"]);
}

#[test]
fn what_there_is_is_listed() {
    let folder = new_folder();
    try_in(&folder, "devices").expect(0, &["no GPU: GPUs are switched off", "CPU ("]);
    let all: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
    try_in(&folder, "list").expect(0, &all);
    let ladder = try_in(&folder, "list --study venus");
    ladder.expect(0, &["venus/naive", "venus/fp16-pure", "schedule: tiled"]);
    assert!(!ladder.said.contains("cpu-f64"));
    try_in(&folder, "list --study mars").expect(USAGE, &["mars", "venus, gtx1060"]);
    let together = try_in(&folder, "list --together");
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide.md"));
    together.expect(0, &["| feature | CPU |"]);
    assert!(
        guide.expect("a page").contains(&together.said),
        "docs/guide.md has another table than `allpairs list --together`"
    );
    try_in(&folder, "--help").expect(0, &["run", "devices", "list", "verify", "bench", "inspect"]);
    try_in(&folder, "--version").expect(0, &[env!("CARGO_PKG_VERSION")]);
}

#[test]
fn kernels_are_verified_timed_and_inspected() {
    let folder = new_folder();
    let verdict = try_in(
        &folder,
        "verify --kernel tiled --device emulator --bodies 300",
    );
    verdict.expect(0, &["the largest case of 300 bodies", "tiled ", "passed"]);
    let verdict = try_in(&folder, "verify --device cpu --bodies 300");
    verdict.expect(0, &["reference", "cpu-f64", "cpu-f32", "passed"]);
    let times = try_in(
        &folder,
        "bench --device cpu --bodies 64,100 --repetitions 2",
    );
    times.expect(0, &["cpu-f32", "100", "interactions/s", "rms error"]);
    let times = try_in(
        &folder,
        "bench --device emulator --kernel tiled --bodies 64 --repetitions 1",
    );
    times.expect(0, &["On CPU emulator of a GPU", "tiled "]);

    let report = try_in(&folder, "inspect tiled --sm 75");
    report.expect(
        0,
        &[
            "main interaction loop",
            "interactions a trip: 16",
            "ld.shared.v4",
        ],
    );
    let ptx = try_in(&folder, "inspect tiled --ptx --law unit --unsoftened");
    ptx.expect(
        0,
        &[".entry force_tiled", "_unit_eps0", "rsqrt.approx.ftz.f32"],
    );
    try_in(&folder, "inspect tiled --check").expect(0, &["tiled: as claimed"]);
    let checks = try_in(&folder, "inspect --check");
    checks.expect(0, &["naive-aos: as claimed", "tiled-f64: as claimed"]);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// `allpairs … | head` must neither panic nor lose the files of a run.
    #[test]
    fn a_closed_pipe_does_not_stop_the_work() {
        let folder = new_folder();
        for arguments in ["list", "run two-body --steps 3 --out out"] {
            // The shell waits until nobody reads any more.
            let script = "sleep 0.2; exec \"$0\" \"$@\"";
            let program = allpairs(folder.path());
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).arg(program.get_program());
            shell.args(arguments.split_whitespace());
            shell
                .current_dir(folder.path())
                .env(cuda_driver::LIBRARY_VARIABLE, "none")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut child = shell.spawn().expect("there is a shell");
            drop(child.stdout.take());
            let ended = Ended::of(child.wait_with_output().expect("it ends"));
            ended.expect(0, &[]);
            assert_eq!(ended.complained, "", "{arguments}");
        }
        assert_eq!(
            names_in(&folder.path().join("out")),
            ["final.allpairs", "final.png", "run.toml"]
        );
    }

    /// `--watch` on a terminal of 40 columns and 20 lines, which the program `script` plays.
    #[test]
    fn a_run_is_drawn_on_a_terminal() {
        let version = Command::new("script").arg("--version").output();
        if !version.is_ok_and(|said| said.stdout.starts_with(b"script from util-linux")) {
            eprintln!("not tested, for there is no util-linux here to play a terminal");
            return;
        }
        let folder = new_folder();
        let program = allpairs(folder.path());
        let run = format!(
            "stty cols 40 rows 20; '{}' run plummer --bodies 200 --steps 20 --dt 0.01 --watch --out out",
            program.get_program().to_string_lossy()
        );
        let mut terminal = Command::new("script");
        terminal
            .args(["-qec", &run, "/dev/null"])
            .current_dir(folder.path());
        terminal.env(cuda_driver::LIBRARY_VARIABLE, "none");
        terminal.env("COLORTERM", "truecolor").stdin(Stdio::null());
        let ended = Ended::of(terminal.output().expect("`script` runs"));
        ended.expect(
            0,
            &["wrote out/final.png", "\x1b[38;2;", "step 20, time 0.2"],
        );
        let lines: Vec<&str> = ended
            .said
            .lines()
            .filter(|line| line.contains('▀'))
            .collect();
        // Two panels of 20 pixels each way: ten lines a picture, one at the beginning and the end.
        assert!(
            lines.len() >= 20 && lines.len().is_multiple_of(10),
            "{}",
            lines.len()
        );
        for line in lines {
            assert_eq!(line.matches('▀').count(), 40, "{line}");
        }
        assert!(ended.said.contains("\x1b[11A"), "drawn in place: {ended}");
        let config = fs::read_to_string(folder.path().join("out/run.toml")).expect("written");
        assert!(
            !config.contains("watch") && config.contains("commit = "),
            "{config}"
        );
    }

    #[test]
    fn an_interrupted_run_writes_what_it_has() {
        let folder = new_folder();
        let mut command = allpairs(folder.path());
        let arguments = "run plummer --bodies 200 --steps 1000000000000 --dt 1e-9 --out out";
        command.args(arguments.split(' '));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("1000000000000 steps") {
            line.clear();
            assert!(
                said.read_line(&mut line).expect("UTF-8") > 0,
                "it ended by itself"
            );
        }
        // After this line it takes two evaluations of the force to begin.
        std::thread::sleep(Duration::from_millis(700));
        // Twice, as `timeout` and a terminal's process group do.
        for _ in 0..2 {
            let kill = Command::new("kill")
                .args(["-INT", &child.id().to_string()])
                .status();
            assert!(kill.expect("there is `kill`").success());
        }
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("UTF-8");
        let ended = Ended::of(child.wait_with_output().expect("it ends"));
        ended.expect(130, &["interrupted"]);
        assert!(
            rest.contains("wrote out/final.allpairs") && rest.contains("energy"),
            "{rest}"
        );
        assert_eq!(
            names_in(&folder.path().join("out")),
            ["checkpoint", "final.allpairs", "final.png", "run.toml"]
        );
        let (end, _) = read(&folder.path().join("out/final.allpairs"), None).expect("a sound file");
        assert!(end.time > 0.0 && end.time < 1000.0);
    }
}

#[test]
fn the_program_says_how_to_cite_it() {
    let folder = new_folder();
    let cited = run(allpairs(folder.path()).args(["cite", "--cff"]));
    cited.expect(0, &[concat!("version: ", env!("CARGO_PKG_VERSION"), "\n")]);
    let file = crate::support::root().join("CITATION.cff");
    let file = fs::read_to_string(file).expect("a readable file");
    assert_eq!(
        file, cited.said,
        "renew it: `allpairs cite --cff > CITATION.cff`"
    );
    let arguments = "run plummer --bodies 100 --steps 3 --diagnostics 1 --device cpu --out RUN";
    run(allpairs(folder.path()).args(arguments.split(' '))).expect(0, &[]);
    let text = run(allpairs(folder.path()).args(["cite", "--run", "RUN"]));
    text.expect(
        0,
        &[
            "@misc{allpairs,",
            "100 bodies",
            "leapfrog",
            "total energy was at most $",
        ],
    );
    run(allpairs(folder.path()).args(["cite", "--run", "."])).expect(DATA, &["run.toml"]);
}
