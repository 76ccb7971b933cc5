//! Benchmarks, studies, baselines and tuning, as a user meets them; and launch shapes that fit nothing.

use std::fs;
use std::path::Path;

use crate::support::program::code::{DATA, UNAVAILABLE, USAGE};
use crate::support::program::{allpairs, new_folder, run, try_in};

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    entries
        .map(|entry| entry.expect("a readable folder").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// Before any launch, before any file, and with the numbers.
#[test]
fn shapes_that_fit_no_device_are_refused() {
    let folder = new_folder();
    for (shape, code, complaints) in [
        (
            "tiled --block 100",
            UNAVAILABLE,
            ["multiple of 32", "not 100"],
        ),
        ("tiled --block 2048", UNAVAILABLE, ["2048 threads", "1024"]),
        (
            "symmetric --block 1024",
            UNAVAILABLE,
            ["1024 threads needs", "allows 49152"],
        ),
        ("gtx980/2d --len 3", UNAVAILABLE, ["256 threads", "len = 3"]),
        (
            "gtx980/2d --luf 512",
            UNAVAILABLE,
            ["len · luf ≤ 1024", "2048"],
        ),
        ("tiled --len 4", USAGE, ["--len and --luf", "gtx980/2d"]),
    ] {
        let run = format!("run two-body --device emulator --kernel {shape}");
        try_in(&folder, &run).expect(code, &complaints);
        assert_eq!(names_in(folder.path()), [""; 0], "{shape}");
    }
    let on_cpu = "run two-body --kernel cpu-f64 --block 64";
    try_in(&folder, on_cpu).expect(USAGE, &["--block", "cpu-f64"]);
}

#[test]
fn studies_are_run_as_published() {
    let folder = new_folder();
    let run = "bench --study venus --device cpu --bodies 300 --budget 0.05 --json venus.json";
    try_in(&folder, run).expect(
        0,
        &[
            "mean of 10 times 10 steps",
            "N = 300",
            "serial",
            "29 × serial",
            "cpu-one-sided-f32",
            "not run: kernel `venus/naive` is GPU code",
        ],
    );
    let plot = "plot bench venus.json --out charts --types svg";
    try_in(&folder, plot).expect(0, &["wrote charts/speedup-venus.svg"]);
    try_in(&folder, "bench --study mars").expect(USAGE, &["mars", "venus, gtx1060"]);
}

/// A kernel that would take minutes is timed with fewer bodies, and says so.
#[test]
fn a_benchmark_keeps_to_its_budget() {
    let folder = new_folder();
    let run = "bench --device emulator --kernel ecl/one-thread --bodies 100000 --budget 0.01";
    try_in(&folder, run).expect(
        0,
        &["only 390", "at 100000 one evaluation would take about"],
    );
    let never = "bench --device cpu --budget 0";
    try_in(&folder, never).expect(USAGE, &["`--budget` must be > 0", "got 0"]);
}

#[test]
fn what_became_slower_since_a_baseline_is_found() {
    let folder = new_folder();
    // So many that other work on this machine does not double the time.
    let run = "bench --device cpu --kernel cpu-f64 --bodies 6000 --repetitions 3";
    try_in(&folder, &format!("{run} --json now.json")).expect(0, &["wrote now.json"]);
    let record = fs::read_to_string(folder.path().join("now.json")).expect("written");
    let mut record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    for time in ["seconds", "fastest", "slowest"] {
        let seconds = &mut record["rows"][0][time];
        *seconds = (1e-3 * seconds.as_f64().expect("a time")).into();
    }
    fs::write(folder.path().join("past.json"), record.to_string()).expect("writable");
    let against = format!("{run} --baseline past.json");
    try_in(&folder, &against).expect(0, &["SLOWER", "1 times differ"]);
    let failing = try_in(&folder, &format!("{against} --fail-on-regression"));
    failing.expect(1, &["the checks failed"]);
    assert!(failing.said.contains("SLOWER"));
    try_in(&folder, &format!("{run} --baseline none.json")).expect(DATA, &["none.json"]);
}

#[test]
fn tuned_kernels_are_taken_unless_told_not_to() {
    let folder = new_folder();
    let tune = "tune --device cpu --bodies 300";
    try_in(&folder, tune).expect(0, &["N = 300", "winner: cpu-", "kept in"]);
    let run = "run plummer --bodies 400 --steps 1 --device cpu";
    try_in(&folder, run).expect(0, &["tuned at 300 bodies"]);
    let plain = try_in(&folder, &format!("{run} --no-cache"));
    assert!(!plain.expect(0, &["preferred"]).said.contains("tuned"));
    fs::write(folder.path().join("cache/tuned.json"), "{\"version\":").expect("writable");
    try_in(&folder, run).expect(0, &["ignoring the tuned kernels", "its preferred kernel"]);
    try_in(&folder, "tune --device emulator").expect(USAGE, &["emulator's times"]);
}

#[test]
fn kernels_are_chosen_by_accuracy() {
    let folder = new_folder();
    let at = |device: &str, bodies: u32, accuracy: &str| {
        let run = format!("run plummer --bodies {bodies} --steps 1 --device {device} --overwrite");
        let ended = try_in(&folder, &format!("{run} --out out --accuracy {accuracy}"));
        ended.expect(0, &["its preferred kernel"]).said.clone()
    };
    assert!(at("cpu", 50, "double").contains("kernel cpu-f64 "));
    assert!(at("cpu", 50, "single").contains("kernel cpu-f32 "));
    assert!(at("emulator", 50, "fast").contains("kernel few-bodies "));
    assert!(at("emulator", 50, "double").contains("kernel few-bodies-f64 "));
    // What is resumed, or run again, has the kernel and not why it was chosen.
    let kept = fs::read_to_string(folder.path().join("out/run.toml")).expect("written");
    assert!(kept.contains("kernel = \"few-bodies-f64\"") && !kept.contains("accuracy"));
    let again = "run out/run.toml --overwrite";
    try_in(&folder, again).expect(0, &["kernel few-bodies-f64 "]);
    // Where steps do not follow each other at once, whatever is best for the forces.
    let steps = "run plummer --bodies 50 --steps 1 --accuracy single --overwrite --out out --device emulator";
    for between in [
        "--integrator yoshida4",
        "--field point:mass=1,x=9",
        "--escape-radius 1000",
    ] {
        let ended = try_in(&folder, &format!("{steps} {between}"));
        ended.expect(0, &["kernel symmetric-lane2-block32 "]);
    }
    // Of a law that they do not compute, whatever does.
    let law =
        "run plummer --bodies 50 --steps 1 --overwrite --out out --law attract-repel --device";
    try_in(&folder, &format!("{law} cpu")).expect(0, &["kernel reference "]);
    try_in(&folder, &format!("{law} emulator")).expect(0, &["kernel hybrid "]);
    let both = "run plummer --accuracy double --kernel cpu-f32";
    try_in(&folder, both).expect(USAGE, &["--accuracy", "leave out"]);

    // Winners are kept for each accuracy.
    let tune = "tune --device cpu --bodies 300 --accuracy double";
    try_in(&folder, tune).expect(0, &["N = 300", "winner: cpu-", "kept in"]);
    let run = "run plummer --bodies 300 --steps 1 --device cpu";
    let single = try_in(&folder, run);
    assert!(
        !single
            .expect(0, &["kernel cpu-f32 "])
            .said
            .contains("tuned")
    );
    let double = format!("{run} --accuracy double");
    try_in(&folder, &double).expect(0, &["tuned at 300 bodies"]);
}

#[test]
fn what_is_missing_for_a_rung_is_said() {
    let folder = new_folder();
    let mut list = allpairs(folder.path());
    list.env(cuda_driver::BLAS_VARIABLE, "none")
        .args(["list", "--study", "gtx980"]);
    run(&mut list).expect(
        0,
        &[
            "gtx980/2d-cublas",
            "on a GPU, kernel `gtx980/2d-cublas` cannot run: cuBLAS is switched off by \
             ALLPAIRS_LIBCUBLAS=none",
        ],
    );
    // One kernel's shapes are looked at, and only of one that `auto` may take.
    let tune = |arguments| try_in(&folder, arguments);
    tune("tune --device cpu --kernel gtx980/2d-nobank --bodies 256").expect(USAGE, &["GPU code"]);
    tune("tune --device cpu --kernel cpu-f32-approximate --bodies 256")
        .expect(USAGE, &["`auto` may not take it"]);
    tune("tune --device cpu --kernel cpu-f32 --bodies 256")
        .expect(0, &["winner: cpu-f32", "1 kernels and shapes"]);
    assert_eq!(names_in(folder.path()), [""; 0], "nothing is kept");
}
