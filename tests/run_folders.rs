//! Run folders that were interfered with, runs that cannot go on, and what no machine can do: ended with a
//! message, and nothing lost.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::{TempDir, tempdir};

use crate::support::program::{Ended, allpairs, code};

fn ended(mut command: Command, arguments: &str) -> Ended {
    command.args(arguments.split_whitespace());
    Ended::of(command.output().expect("the program runs"))
}

fn run(at: &TempDir, arguments: &str) -> Ended {
    ended(allpairs(at.path()), arguments)
}

fn success(at: &TempDir, arguments: &str) -> String {
    let ended = run(at, arguments);
    assert_eq!(ended.code, Some(0), "{arguments}: {ended}");
    ended.said + &ended.complained
}

/// By a shell, after `first`.
#[cfg(unix)]
fn by_shell(at: &TempDir, first: &str, arguments: &str) -> Ended {
    let program = env!("CARGO_BIN_EXE_allpairs");
    let script = format!("{first}; exec '{program}' {arguments}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(at.path());
    command.env(cuda_driver::LIBRARY_VARIABLE, "none");
    Ended::of(command.output().expect("a shell"))
}

fn time_of(file: &Path) -> f64 {
    let (snapshot, _) = allpairs::io::read(file, None).expect("a snapshot");
    snapshot.time
}

/// Two bodies that fall on each other.
const HEAD_ON: &str = "x,y,z,vx,vy,vz,mass\n-0.5,0,0,0,0,0,1\n0.5,0,0,0,0,0,1\n";

/// Steps that become too short, of each body or of all, end the run: with its last good state, and
/// without the results of an earlier run.
#[test]
fn a_run_that_cannot_go_on_leaves_where_it_stands() {
    for blocks in ["--block-steps", ""] {
        let at = tempdir().expect("a folder");
        fs::write(at.path().join("head.csv"), HEAD_ON).expect("written");
        let said = success(&at, "run head.csv --softening 0.1 --until 0.5 --out run");
        assert!(said.contains("units unknown, G = 1"), "{said}");
        let collision = format!(
            "run head.csv --softening 0 --until 1 --integrator hermite4 --eta 0.01 {blocks} --out run \
             --overwrite"
        );
        let stopped = run(&at, &collision);
        assert_eq!(stopped.code, Some(code::UNAVAILABLE), "{stopped}");
        for part in [
            "the run stopped at step",
            "time 0.",
            "body ",
            "needs steps of",
        ] {
            assert!(stopped.complained.contains(part), "{part}: {stopped}");
        }
        for part in [
            "final.csv, of an earlier run",
            "final.png, of an earlier",
            "last good state",
        ] {
            assert!(stopped.said.contains(part), "{part}: {stopped}");
        }
        let folder = at.path().join("run");
        let time = time_of(&folder.join("final.csv"));
        assert!((0.4..1.0).contains(&time), "{time}");
        let (found, _) = allpairs::checkpoint::find(&folder)
            .checkpoint
            .expect("a checkpoint");
        assert_eq!(found.clock.time, time);
        let config = fs::read_to_string(folder.join("run.toml")).expect("options");
        assert!(config.contains("eta = 0.01"), "{config}");
    }
}

#[test]
fn times_are_met_exactly() {
    let at = tempdir().expect("a folder");
    for (name, options) in [
        ("fixed", "--dt 0.013"),
        ("shared", "--integrator hermite4 --eta 0.02"),
        ("blocks", "--integrator hermite4 --eta 0.02 --block-steps"),
    ] {
        success(
            &at,
            &format!(
                "run two-body --eccentricity 0.3 {options} --until 0.55 --snapshot-every 0.125 --checkpoint-every 1000 --out \
                 {name}"
            ),
        );
        let folder = at.path().join(name);
        assert_eq!(time_of(&folder.join("final.allpairs")), 0.55, "{name}");
        let entries = fs::read_dir(&folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_snapshot = |path: &std::path::PathBuf| {
            let name = path.file_name().expect("a name").to_string_lossy();
            name.starts_with("snapshot")
        };
        let mut times: Vec<f64> = paths
            .filter(is_snapshot)
            .map(|path| time_of(&path))
            .collect();
        times.sort_by(f64::total_cmp);
        assert_eq!(times, [0.0, 0.125, 0.25, 0.375, 0.5], "{name}");
        // And so does a run that is prolonged.
        success(&at, &format!("resume {name} --until 0.7"));
        assert_eq!(time_of(&folder.join("final.allpairs")), 0.7, "{name}");
    }
}

/// The largest drift is seen while it runs, and advice is what helps.
#[test]
fn the_energy_is_watched_while_it_runs() {
    let at = tempdir().expect("a folder");
    let orbit = "run two-body --eccentricity 0.9 --softening 0";
    let said = success(
        &at,
        &format!("{orbit} --integrator leapfrog --dt 0.1 --steps 300000 --out fixed"),
    );
    let step = said.split("at step ").nth(1).expect("a warning");
    let step: u64 = step
        .split(',')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a step");
    assert!(step < 200_000, "{step}");
    assert!(said.contains("a smaller --dt would help"), "{said}");
    assert!(!said.contains("larger --softening"), "{said}");
    let row = said
        .lines()
        .find(|line| line.starts_with(" energy "))
        .expect("a row");
    let numbers: Vec<f64> = row
        .split_whitespace()
        .skip(1)
        .map(|n| n.parse().expect(row))
        .collect();
    assert_eq!(numbers.len(), 4, "{row}");
    assert!(numbers[3] >= numbers[2] && numbers[3] > 0.01, "{row}");
    let said = success(
        &at,
        &format!(
            "{orbit} --integrator hermite4 --eta 0.5 --block-steps --until 60 --max-drift 1e-9 --out \
             blocks"
        ),
    );
    assert!(said.contains("a smaller --eta would help"), "{said}");
    assert!(said.contains("steps of single bodies"), "{said}");
}

/// Settings that decide the physics of a run stay: `resume` says what was changed.
#[test]
fn changed_physics_are_refused() {
    let at = tempdir().expect("a folder");
    success(
        &at,
        "run plummer --bodies 50 --seed 3 --steps 8 --dt 0.01 --softening 0.1 --checkpoint-every 4 \
         --device cpu --out run",
    );
    let config = at.path().join("run/run.toml");
    let sound = fs::read_to_string(&config).expect("options");
    for (from, to, part) in [
        ("softening = 0.1", "softening = 0.5", "with softening = 0.1"),
        ("seed = 3", "seed = 4", "with seed = 3"),
        ("gravity = 1.0", "gravity = 2.0", "with gravity = 1.0"),
        (
            "integrator = \"leapfrog\"",
            "integrator = \"hermite4\"",
            "with integrator",
        ),
        (
            "kernel = \"cpu-f32\"",
            "kernel = \"cpu-f64\"",
            "with kernel = \"cpu-f32\"",
        ),
        ("dt = 0.01", "dt = 0.02", "with dt = 0.01"),
        ("bodies = 50", "bodies = 50\nlaw = \"unit\"", "with no law"),
    ] {
        assert!(sound.contains(from), "{from}: {sound}");
        fs::write(&config, sound.replace(from, to)).expect("written");
        let refused = run(&at, "resume run --steps 12");
        refused.expect(code::USAGE, &[part, "put that back"]);
    }
    // Its record and its end may change.
    fs::write(
        &config,
        sound.replace("steps = 8", "steps = 9\ndiagnostics = 2"),
    )
    .expect("written");
    success(&at, "resume run");
}

#[test]
fn a_damaged_row_of_the_log_is_named_and_costs_no_others() {
    let at = tempdir().expect("a folder");
    success(
        &at,
        "run plummer --bodies 20 --steps 40 --dt 0.01 --diagnostics 1 --checkpoint-every 40 --device \
         cpu --out run",
    );
    let log = at.path().join("run/diagnostics.csv");
    let mut rows = fs::read(&log).expect("a log");
    let lines: Vec<usize> = (0..rows.len()).filter(|&i| rows[i] == b'\n').collect();
    rows[lines[9] + 1] = 0xff;
    fs::write(&log, &rows).expect("written");
    let said = success(&at, "resume run --steps 44");
    assert!(
        said.contains("diagnostics.csv: line 11 cannot be read"),
        "{said}"
    );
    let after = fs::read(&log).expect("a log");
    assert!(after.starts_with(&rows), "rows are kept");
    let count = after.iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!(count, 1 + 41 + 4);
}

/// Without the picture, no picture of another snapshot stays.
#[test]
fn the_picture_is_left_out_where_that_is_asked_for() {
    let at = tempdir().expect("a folder");
    let begin =
        "run plummer --bodies 20 --steps 2 --dt 0.01 --checkpoint-every 2 --device cpu --out run";
    let (picture, config) = (
        at.path().join("run/final.png"),
        at.path().join("run/run.toml"),
    );
    let said = success(&at, &format!("{begin} --no-picture"));
    assert!(
        said.contains("wrote run/final.allpairs") && !said.contains("final.png"),
        "{said}"
    );
    assert!(!picture.exists());
    let text = fs::read_to_string(&config).expect("options");
    assert!(text.contains("no-picture = true"), "{text}");
    success(&at, "resume run --steps 4");
    assert!(!picture.exists());
    fs::write(&config, text.replace("no-picture = true\n", "")).expect("written");
    let said = success(&at, "resume run --steps 6");
    assert!(
        picture.exists() && said.contains("wrote run/final.png"),
        "{said}"
    );
    fs::write(&config, text).expect("written");
    let said = success(&at, "resume run --steps 8");
    assert!(
        said.contains("removed run/final.png, of an earlier snapshot"),
        "{said}"
    );
    assert!(!picture.exists());
}

/// A folder that another process runs in is left as it is.
#[test]
fn a_claimed_folder_is_left_alone() {
    let at = tempdir().expect("a folder");
    let command = "run plummer --bodies 20 --steps 2 --device cpu --out run";
    success(&at, &format!("{command} --seed 1"));
    let folder = at.path().join("run");
    let contents = || fs::read(folder.join("run.toml")).expect("options");
    let before = contents();
    let claim = allpairs::recording::lock(&folder).expect("free");
    let busy = run(&at, &format!("{command} --seed 2 --overwrite"));
    busy.expect(code::IO, &["another process"]);
    assert_eq!(contents(), before);
    assert!(folder.join("final.allpairs").exists());
    drop(claim);
    success(&at, &format!("{command} --seed 2 --overwrite"));
    assert_ne!(contents(), before);
}

#[test]
fn what_does_not_fit_memory_is_refused_before_it_is_made() {
    let at = tempdir().expect("a folder");
    for arguments in [
        "run plummer --bodies 1e12 --steps 1 --dt 0.001",
        "ic plummer --bodies 1e12 --out p.allpairs",
        "ic many-galaxies --systems 1e6 --each 1e6 --out p.allpairs",
        "verify --bodies 4000000000",
        "tune --bodies 4000000000 --device cpu",
        "bench --bodies 4000000000",
        "systems --systems 4000000 --bodies 8192 --device emulator --kernel many-systems",
    ] {
        let refused = run(&at, arguments);
        refused.expect(code::USAGE, &["GB of memory", "ask for fewer"]);
    }
    #[cfg(target_os = "linux")]
    {
        let arguments = "run plummer --bodies 20000000 --steps 1";
        let refused = by_shell(&at, "ulimit -v 3000000", arguments);
        refused.expect(code::USAGE, &["ulimit -v", "ask for fewer"]);
    }
}

#[test]
fn absurd_numbers_end_with_a_short_message() {
    let at = tempdir().expect("a folder");
    for (arguments, part) in [
        ("--dt 5e-324", "got 5e-324"),
        ("--dt 1e-300 --until 1", "steps of 1e-300"),
        ("--dt=-1e-300 --until -1", "steps of -1e-300"),
        ("--until 1e300 --dt 1e-3", "--until 1e300"),
        ("--dt 0.1 --max-drift -1e300", "got -1e300"),
        ("--dt 0.1 --softening -1e300", "got -1e300"),
    ] {
        let refused = run(&at, &format!("run plummer --bodies 10 {arguments}"));
        refused.expect(code::USAGE, &[part]);
        assert!(refused.complained.len() < 250, "{refused}");
    }
    let mut command = allpairs(at.path());
    command.env("RAYON_NUM_THREADS", "100000");
    let refused = ended(command, "run plummer --bodies 10 --steps 1");
    refused.expect(code::USAGE, &["RAYON_NUM_THREADS", "got 100000"]);
}

#[cfg(unix)]
#[test]
fn pipes_and_limits_end_with_a_message() {
    let at = tempdir().expect("a folder");
    let begin =
        "run plummer --bodies 2000 --steps 3 --dt 0.01 --checkpoint-every 2 --device cpu --out";
    success(&at, &format!("{begin} run"));
    let limited = by_shell(&at, "ulimit -f 20", &format!("{begin} limited"));
    limited.expect(code::IO, &["limited"]);
    let checkpoint = at.path().join("run/checkpoint");
    fs::remove_file(&checkpoint).expect("removed");
    let made = Command::new("mkfifo").arg(&checkpoint).status();
    assert!(made.expect("mkfifo").success());
    let said = success(&at, "resume run");
    assert!(
        said.contains("checkpoint, but it is not a regular file"),
        "{said}"
    );
}

#[test]
fn what_a_killed_command_left_is_removed() {
    let at = tempdir().expect("a folder");
    let half = at.path().join(".allpairs-x1.partial");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let file = fs::File::create(&half).expect("made");
    file.set_modified(old).expect("a time");
    drop(file);
    let said = success(&at, "ic plummer --bodies 10 --out p.csv");
    assert!(
        said.contains("removed") && said.contains("killed process"),
        "{said}"
    );
    assert!(!half.exists());
}

/// Tables tell their units, and times are in the unit that was asked for. A resumed run goes on with a table as it
/// began, also if an earlier version began it, without units.
#[test]
fn tables_of_a_run_have_units() {
    let at = tempdir().expect("a folder");
    let begin = "run plummer --bodies 20 --mass 1e3Msun --radius 1pc --until 1Myr --softening 0 --dt 0.05Myr \
                 --integrator leapfrog --device cpu --diagnostics 2 --snapshot-every 0.2Myr --no-picture --max-drift 9";
    success(&at, &format!("{begin} --out whole"));
    let stopped = success(&at, &format!("{begin} --stop-if time>0.35 --out parts"));
    // In the unit of the column: 0.35 of the run's own unit are 0.342 Myr, after 7 steps.
    assert!(stopped.contains("stopped after step 8"), "{stopped}");
    let config = at.path().join("parts/run.toml");
    let settings = fs::read_to_string(&config).expect("options");
    fs::write(&config, settings.replace("stop-if", "# stop-if")).expect("written");
    fs::remove_file(at.path().join("parts/diagnostics.jsonl")).expect("it was there");
    success(&at, "resume parts");
    let read = |name: &str| fs::read_to_string(at.path().join(name)).expect("a table");
    for (name, header) in [
        ("diagnostics.csv", "step,time [Myr],kinetic [Msun km2/s2],"),
        ("index.csv", "step,number,time [Myr]\n0,0,0.0\n4,1,0.2"),
        (
            "pairs.csv",
            "step,time [Myr],least_distance [pc],median_distance [pc],pairs,hard_pairs,id_a,",
        ),
        ("binaries.csv", "step,time [Myr],id_a,id_b,mass_a [Msun],"),
    ] {
        let whole = read(&format!("whole/{name}"));
        assert!(whole.starts_with(header), "{name}: {whole}");
        assert_eq!(read(&format!("parts/{name}")), whole, "{name}");
    }
    let lines = read("parts/diagnostics.jsonl");
    assert!(
        lines.starts_with("{\"step\":10,\"time [Myr]\":0.5"),
        "{lines}"
    );
    let drawn = success(&at, "plot log whole --out charts --types svg");
    assert!(drawn.contains("lagrangian-radii.svg"), "{drawn}");
    assert!(read("charts/energy-drift.svg").contains("time [Myr]"));

    success(&at, &format!("{begin} --stop-if time>0.35 --out old"));
    let config = at.path().join("old/run.toml");
    fs::write(&config, settings.replace("stop-if", "# stop-if")).expect("written");
    let log = at.path().join("old/diagnostics.csv");
    let header = |whole: &str| whole.lines().next().expect("a header").to_owned();
    let whole = read("whole/diagnostics.csv");
    let heading = header(&whole);
    let bare: Vec<&str> = heading
        .split(',')
        .map(|name| name.split_once(' ').map_or(name, |(name, _)| name))
        .collect();
    fs::write(
        &log,
        read("old/diagnostics.csv").replace(&header(&whole), &bare.join(",")),
    )
    .expect("written");
    success(&at, "resume old --until 1e6yr");
    let last = |table: &str| -> f64 {
        let row = table.lines().next_back().expect("rows");
        row.split(',').nth(1).expect("a time").parse().expect("it")
    };
    let old = read("old/diagnostics.csv");
    assert!(old.starts_with("step,time,kinetic,"), "{old}");
    assert!((last(&old) - 1.022_712).abs() < 1e-5, "{old}");
    assert!((last(&whole) - 1.0).abs() < 1e-12, "{whole}");
    // The other tables have the unit that they began with.
    assert_eq!(read("old/index.csv"), read("whole/index.csv"));
}
