//! Runs that are killed, stopped, starved of disk, continued and repeated, through the program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn allpairs(arguments: &str, folder: &Path) -> Command {
    let mut command = crate::support::program::allpairs(folder);
    command.args(arguments.split_whitespace());
    command.stdin(Stdio::null());
    command
}

fn output(arguments: &str, folder: &Path) -> Output {
    let output = allpairs(arguments, folder).output();
    output.expect("the program runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn success(arguments: &str, folder: &Path) -> String {
    let output = output(arguments, folder);
    assert!(output.status.success(), "{arguments}: {}", text(&output));
    text(&output)
}

fn refused(code: i32, arguments: &str, folder: &Path) -> String {
    let output = output(arguments, folder);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments}: {}",
        text(&output)
    );
    text(&output)
}

/// Files of a run that do not depend on whether it was stopped.
fn record(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a run's folder");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), fs::read(&path).expect("a file"))
        })
        .filter(|(name, _)| !name.starts_with("checkpoint") && name != "run.toml")
        .collect();
    files.sort();
    files
}

fn assert_same_record(a: &Path, b: &Path) {
    let (a, b) = (record(a), record(b));
    let names = |record: &[(String, Vec<u8>)]| {
        let names = record.iter().map(|(name, _)| name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&a), names(&b));
    assert!(names(&a).iter().any(|name| name.starts_with("final")));
    for ((name, a), (_, b)) in a.iter().zip(&b) {
        assert!(a == b, "{name} differs");
    }
}

/// Twenty steps of some tens of milliseconds, so that there is time to kill them.
const RUN: &str = "run plummer --bodies 800 --kernel reference --steps 20 --dt 0.01 \
                   --softening 0.01 --diagnostics 2 --snapshot-every 0.05";

#[cfg(unix)]
fn signal(name: &str, child: &std::process::Child) {
    let id = child.id().to_string();
    let status = Command::new("kill").args(["-s", name, &id]).status();
    assert!(status.expect("kill").success());
}

/// Waits until the log has this step.
fn wait_for_step(step: u64, folder: &Path) {
    let began = Instant::now();
    let start = format!("\n{step},");
    while !fs::read_to_string(folder.join("diagnostics.csv")).is_ok_and(|log| log.contains(&start))
    {
        assert!(began.elapsed() < Duration::from_secs(120), "no step {step}");
        sleep(Duration::from_millis(2));
    }
}

#[cfg(unix)]
#[test]
fn killed_and_resumed_is_as_never_stopped() {
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path();
    success(&format!("{RUN} --out whole"), at);

    let run = format!("{RUN} --checkpoint-every 3 --out killed");
    let mut child = allpairs(&run, at)
        .stdout(Stdio::null())
        .spawn()
        .expect("runs");
    let killed = at.join("killed");
    wait_for_step(10, &killed);
    signal("STOP", &child); // so that it does not end before it is killed
    let busy = refused(74, "resume killed", at);
    assert!(busy.contains("another process"), "{busy}");
    child.kill().expect("SIGKILL");
    assert!(
        child.wait().expect("it was there").code().is_none(),
        "it had ended"
    );
    // As a kill in the middle of a write leaves it.
    fs::write(killed.join(".allpairs-1.partial"), "half").expect("written");
    let mut log = fs::read(killed.join("diagnostics.jsonl")).expect("a log");
    log.extend_from_slice(b"{\"step\":99,\"ti");
    fs::write(killed.join("diagnostics.jsonl"), log).expect("written");

    let again = refused(2, &run, at);
    assert!(again.contains("allpairs resume killed"), "{again}");
    let told = success("resume killed", at);
    assert!(
        told.contains("found half a file") && told.contains("checkpoint: step 9"),
        "{told}"
    );
    assert_same_record(&at.join("whole"), &killed);

    // The checkpoint moved to the end, from where the run can be prolonged.
    let told = success("resume killed", at);
    assert!(
        told.contains("step 20") && told.contains("at its end"),
        "{told}"
    );
    success("resume killed --steps 25", at);
    let longer = RUN.replace("--steps 20", "--steps 25");
    success(&format!("{longer} --out longer"), at);
    assert_same_record(&at.join("longer"), &killed);

    // Back before where it stands, or on with another step, it does not go: nothing is touched.
    let before = fs::read(killed.join("run.toml")).expect("the options");
    let beyond = refused(2, "resume killed --steps 5", at);
    assert!(beyond.contains("beyond that already"), "{beyond}");
    assert_eq!(
        fs::read(killed.join("run.toml")).expect("the options"),
        before
    );
    let other = String::from_utf8(before)
        .expect("UTF-8")
        .replace("dt = ", "dt = 1");
    fs::write(killed.join("run.toml"), other).expect("written");
    let other = refused(2, "resume killed --steps 30", at);
    assert!(
        other.contains("says dt = 1") && other.contains("put that back"),
        "{other}"
    );
    assert_same_record(&at.join("longer"), &killed);
}

#[cfg(unix)]
#[test]
fn a_prolonged_run_has_its_folder_to_itself() {
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path();
    let run = RUN.replace("--steps 20", "--steps 4");
    success(&format!("{run} --checkpoint-every 2 --out run"), at);
    let mut child = allpairs("resume run --steps 100000", at)
        .stdout(Stdio::null())
        .spawn()
        .expect("runs");
    wait_for_step(6, &at.join("run"));
    let busy = refused(74, "resume run", at);
    child.kill().expect("SIGKILL");
    child.wait().expect("it was there");
    assert!(busy.contains("another process"), "{busy}");
}

#[cfg(unix)]
#[test]
fn stopped_by_a_signal_it_leaves_a_checkpoint() {
    for name in ["INT", "TERM", "USR1", "USR2", "XCPU"] {
        let at = tempfile::tempdir().expect("a folder");
        let at = at.path();
        let run = format!("{RUN} --out stopped");
        let mut child = allpairs(&run, at)
            .stdout(Stdio::null())
            .spawn()
            .expect("runs");
        wait_for_step(4, &at.join("stopped"));
        signal(name, &child);
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{name}");
        assert!(at.join("stopped/checkpoint").exists());
        success("resume stopped", at);
        if name == "TERM" {
            success(&format!("{RUN} --out whole"), at);
            assert_same_record(&at.join("whole"), &at.join("stopped"));
        }
    }
}

/// A limit on the size of files stands for a full disk: writes fail in the middle.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_last_checkpoint() {
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path();
    let run = "run plummer --bodies 500 --device cpu --dt 0.01 --diagnostics 1";
    success(&format!("{run} --steps 12 --out whole"), at);
    success(
        &format!("{run} --steps 5 --checkpoint-every 4 --out full"),
        at,
    );
    let before = fs::read(at.join("full/checkpoint")).expect("a checkpoint");
    let limited = format!(
        "ulimit -f 20; exec '{}' resume full --steps 12",
        env!("CARGO_BIN_EXE_allpairs")
    );
    let output = Command::new("sh")
        .args(["-c", &limited])
        .current_dir(at)
        .output();
    let output = output.expect("a shell");
    let told = text(&output);
    assert_eq!(output.status.code(), Some(74), "{told}");
    assert!(told.contains("cannot write to full"), "{told}");
    assert_eq!(
        fs::read(at.join("full/checkpoint")).expect("still there"),
        before
    );
    success("resume full --steps 12", at);
    assert_same_record(&at.join("whole"), &at.join("full"));
}

#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_taken() {
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path();
    let run = "run plummer --bodies 100 --device emulator --dt 0.01 --steps 9";
    success(&format!("{run} --out whole"), at);
    success(&format!("{run} --checkpoint-every 4 --out damaged"), at);
    let checkpoint = at.join("damaged/checkpoint");
    let mut bytes = fs::read(&checkpoint).expect("a checkpoint");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&checkpoint, bytes).expect("written");
    let told = success("resume damaged", at);
    assert!(
        told.contains("checksum") && told.contains("checkpoint.previous: step 8"),
        "{told}"
    );
    assert_same_record(&at.join("whole"), &at.join("damaged"));
    fs::write(&checkpoint, "").expect("written");
    fs::write(at.join("damaged/checkpoint.previous"), "").expect("written");
    let told = refused(2, "resume damaged", at);
    assert!(told.contains("no checkpoint to continue from"), "{told}");
    let told = refused(2, "resume .", at);
    assert!(told.contains("run.toml"), "{told}");
}

#[test]
fn the_configuration_runs_again() {
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path();
    success(
        "run uniform-sphere --bodies 200 --seed 3 --virial-ratio 0.5 --device cpu --steps 7 \
         --integrator yoshida4 --out first",
        at,
    );
    let config = fs::read_to_string(at.join("first/run.toml")).expect("a configuration");
    for part in [
        "[made-by]",
        "allpairs 0.",
        "kernel = \"cpu-f32\"",
        "dt = 0.",
        "softening = 0.",
    ] {
        assert!(config.contains(part), "{part}: {config}");
    }
    success("run first/run.toml --out second", at);
    assert_same_record(&at.join("first"), &at.join("second"));
    let again = fs::read_to_string(at.join("second/run.toml")).expect("a configuration");
    assert_eq!(config, again);

    success("run first/run.toml --steps 3 --out shorter", at);
    let shorter = fs::read_to_string(at.join("shorter/run.toml")).expect("a configuration");
    assert!(shorter.contains("steps = 3"), "{shorter}");

    fs::write(at.join("wrong.toml"), "input = \"plummer\"\nstep = 3\n").expect("written");
    let told = refused(2, "run wrong.toml", at);
    assert!(
        told.contains("--step") && told.contains("--steps"),
        "{told}"
    );
    fs::write(at.join("wrong.toml"), "steps = 3\n").expect("written");
    assert!(refused(2, "run wrong.toml", at).contains("input"));
}

#[test]
fn hermite_runs_where_there_are_jerks() {
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path();
    let run = "run two-body --eccentricity 0.8 --integrator hermite4 --kernel cpu-f64";
    let told = success(
        &format!("{run} --eta 0.01 --until 6.283185307179586 --diagnostics 10 --out orbit"),
        at,
    );
    assert!(told.contains("to time 6.283"), "{told}");
    let log = fs::read_to_string(at.join("orbit/diagnostics.jsonl")).expect("a log");
    assert!(
        log.lines().count() > 5 && log.lines().all(|row| row.ends_with('}')),
        "{log}"
    );

    let device = "run plummer --bodies 10 --integrator hermite4 --device emulator";
    let adaptive = format!("{device} --eta 0.1 --until 0.01");
    let told = success(&format!("{adaptive} --out device"), at);
    assert!(told.contains("kernel hermite-f64"), "{told}");
    let told = success(&format!("{adaptive} --block-steps --out blocks"), at);
    assert!(told.contains("kernel hermite-f64"), "{told}");
    let blocks = format!("{adaptive} --block-steps --kernel hermite --out none");
    let told = refused(2, &blocks, at);
    assert!(told.contains("block time steps"), "{told}");
    let told = refused(2, &format!("{device} --kernel tiled"), at);
    assert!(
        told.contains("no jerks") && told.contains("--device cpu"),
        "{told}"
    );
    for (wrong, part) in [
        ("run plummer --eta 0.1 --until 1", "hermite4"),
        ("run plummer --integrator hermite4 --eta 0.1", "--until"),
        (
            "run plummer --integrator hermite4 --eta 0 --until 1",
            "`--eta` must be > 0 and finite, got 0",
        ),
        ("run plummer --damping 1", "damped-euler"),
        ("run plummer --dt 0.1 --until -1", "--until -1"),
        ("run plummer --snapshot-every 0", "--snapshot-every"),
        ("run plummer --checkpoint-every 3d", "10m"),
        ("run plummer --diagnostics 0", "--diagnostics"),
    ] {
        let told = refused(2, &format!("{wrong} --bodies 10"), at);
        assert!(told.contains(part), "{wrong}: {told}");
    }
}

#[test]
fn drift_is_warned_of() {
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path();
    let run = "run two-body --eccentricity 0.9 --dt 0.1 --steps 50 --device cpu";
    let told = success(&format!("{run} --diagnostics 5 --out a"), at);
    assert!(
        told.contains("energy has drifted") && told.contains("--max-drift 0.01"),
        "{told}"
    );
    assert_eq!(told.matches("warning").count(), 1, "{told}");
    assert!(success(&format!("{run} --out b"), at).contains("warning"));
    let told = success(&format!("{run} --max-drift 1e9 --out c"), at);
    assert!(!told.contains("warning"), "{told}");
}

#[test]
fn completions_and_man_pages_know_the_options() {
    let at = tempfile::tempdir().expect("a folder");
    let at = at.path();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = success(&format!("completions {shell}"), at);
        assert!(script.contains("snapshot-every"), "{shell}");
    }
    success("man pages/man1", at);
    let page = fs::read_to_string(at.join("pages/man1/allpairs-run.1")).expect("a page");
    assert!(page.contains("checkpoint"), "{page}");
}

/// A run goes on where nobody can read its messages: a closed pipe and a full disk are no reasons to lose it.
#[cfg(target_os = "linux")]
#[test]
fn nobody_need_read_the_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let full = || {
        fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it")
    };
    let mut command = allpairs(&format!("{RUN} --checkpoint-every 5 --out run"), at);
    let ended = command.stderr(full()).output().expect("it runs");
    assert!(ended.status.success(), "{}", text(&ended));
    assert!(at.join("run/final.allpairs").exists());
    for arguments in ["info nowhere.csv", "run nowhere.csv", "resume nowhere"] {
        let told = output(arguments, at).status.code();
        let untold = allpairs(arguments, at)
            .stderr(full())
            .output()
            .expect("it runs");
        assert_eq!(untold.status.code(), told, "{arguments}");
        assert_ne!(told, Some(101), "{arguments}");
    }
}

/// `nohup` has the end of the terminal ignored. Without it, the end of the terminal stops a run, whatever the process
/// that started the tests was told to ignore.
#[cfg(target_os = "linux")]
#[test]
fn a_hang_up_that_is_ignored_stops_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (option, code) in [("--ignore-signal=HUP", 0), ("--default-signal=HUP", 130)] {
        let plain = allpairs(&format!("{RUN} --out {code}"), at);
        let mut command = Command::new("env");
        command.arg(option).arg(plain.get_program());
        command.args(plain.get_args());
        let variables = plain.get_envs();
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(at).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).spawn();
        let mut child = child.expect("it starts");
        wait_for_step(4, &at.join(code.to_string()));
        signal("HUP", &child);
        let ended = child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(code), "{option}");
    }
}
