//! Many systems as a person or a script meets them.

use std::fs;

use crate::support::program::code::{UNAVAILABLE, USAGE};
use crate::support::program::try_in;
use allpairs::io::read;
use tempfile::tempdir;

/// The softening that is chosen is that of one system, though they lie far apart.
#[test]
fn systems_are_softened_as_one_of_them() {
    let folder = tempdir().expect("a temporary folder");
    let softening = |run: &str| -> f64 {
        let said = try_in(&folder, run).expect(0, &["(chosen)"]).said.clone();
        let (_, rest) = said.split_once("softening ").expect("told");
        let number = rest.split_whitespace().next().unwrap_or_default();
        number.parse().expect("a number")
    };
    let one = softening("run plummer --bodies 200 --steps 1 --kernel cpu-f64");
    let many = "run many-galaxies --systems 3 --each 200 --steps 1 --dt 0.001";
    let many = softening(&format!("{many} --kernel many-systems --device emulator"));
    // Another choice of 200 bodies scatters by a tenth; all three as one, 20 radii apart, would have a
    // softening ten times as long.
    assert!((many / one - 1.0).abs() < 0.3, "{many}, alone {one}");
}

/// Initial conditions of many systems are computed as such, by a kernel for them, unless a kernel of one
/// system is named.
#[test]
fn systems_are_independent_where_no_kernel_is_named() {
    let folder = tempdir().expect("a temporary folder");
    let many = "run many-galaxies --systems 3 --each 40 --steps 1 --dt 0.001 --softening 0.05";
    for (options, kernel) in [
        ("--device cpu", "kernel cpu-f32"),
        ("--device cpu --accuracy double", "kernel cpu-f64"),
        ("--device emulator", "kernel many-systems-in-blocks-small "),
        (
            "--device emulator --accuracy double",
            "kernel many-systems-in-blocks-f64",
        ),
    ] {
        let said = &["3 independent systems of 40", kernel];
        try_in(&folder, &format!("{many} {options}")).expect(0, said);
    }
    let one = try_in(&folder, &format!("{many} --kernel cpu-f64"));
    let one = &one.expect(0, &["120 bodies"]).said;
    assert!(!one.contains("independent"), "{one}");
}

/// A run that was stopped goes on with the systems as independent, by the same kernel, and so does another run of its
/// file.
#[test]
fn systems_stay_independent() {
    let folder = tempdir().expect("a temporary folder");
    let run = |arguments: &str, said: &str| {
        try_in(&folder, arguments).expect(0, &[said]);
    };
    let end = |out: &str| {
        let end = folder.path().join(out).join("final.allpairs");
        read(&end, None).expect("a snapshot").0
    };
    let apart = "3 independent systems of 20";
    for device in ["cpu", "emulator"] {
        let options = format!("--dt 0.001 --softening 0.05 --checkpoint-every 2 --device {device}");
        let many = format!("run many-galaxies --of plummer --systems 3 --each 20 {options}");
        let [whole, part, again] = ["whole", "part", "again"].map(|is| format!("{device}-{is}"));
        run(&format!("{many} --steps 4 --out {whole}"), apart);
        run(&format!("{many} --steps 2 --out {part}"), apart);
        run(&format!("resume {part} --steps 4"), "step 2");
        run(&format!("run {whole}/run.toml --out {again}"), apart);
        assert!(end(&part) == end(&whole), "{device}");
        assert!(end(&again) == end(&whole), "{device}");
    }
    // By the kernel's name and a word, from a file too.
    run(
        "ic many-galaxies --of plummer --systems 3 --each 20 --out all.allpairs",
        "all.allpairs",
    );
    let named = "--systems 3 --independent --kernel cpu-f32 --dt 0.001 --softening 0.05 --steps 4 --out file";
    run(&format!("run all.allpairs {named}"), apart);
    assert!(end("file") == end("cpu-whole"));
    // One system of a GPU stays one.
    try_in(
        &folder,
        "run cpu-whole/run.toml --kernel symmetric --device emulator --out other",
    )
    .expect(USAGE, &["computes one system, not 3", "leave out --kernel"]);
}

/// A run of five systems on the emulator is a run of each of them alone.
#[test]
fn systems_run_as_if_alone() {
    let folder = tempdir().expect("a temporary folder");
    let run = |input: &str, systems: u32, out: &str| {
        let options =
            "--steps 3 --dt 0.001 --softening 0.05 --device emulator --kernel galaxies/overlap";
        try_in(
            &folder,
            &format!("run {input} --systems {systems} {options} --out {out}"),
        )
        .expect(
            0,
            &[if systems > 1 {
                "5 independent systems of 24"
            } else {
                "24 bodies"
            }],
        );
        let final_state = folder.path().join(out).join("final.allpairs");
        read(&final_state, None).expect("a snapshot").0.bodies
    };
    try_in(
        &folder,
        "ic many-galaxies --systems 5 --each 24 --out all.allpairs",
    )
    .expect(0, &[]);
    let start = read(&folder.path().join("all.allpairs"), None)
        .expect("it")
        .0;
    let together = run("all.allpairs", 5, "together");
    let made = run("many-galaxies --each 24", 5, "made");
    assert_eq!(made.x, together.x);
    for s in 0..5 {
        let alone = allpairs::io::Snapshot {
            time: 0.0,
            bodies: start.bodies.part(s * 24..(s + 1) * 24),
        };
        let name = format!("{s}.allpairs");
        allpairs::io::write(
            &folder.path().join(&name),
            allpairs::io::Format::Allpairs,
            &alone,
            allpairs::io::Overwrite::Refuse,
        )
        .expect("written");
        let end = run(&name, 1, &format!("alone-{s}"));
        for i in 0..24 {
            let error = (end.x[i] - together.x[s * 24 + i]).abs();
            // Rounding of positions in frames of different size: 2⁻²⁴ of all systems' extent, here
            // below 256, in each of three steps and at both ends.
            assert!(
                error <= 5.0 * 256.0 / f64::from(1 << 24),
                "system {s}, body {i}: {error:e}"
            );
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_numbers() {
    let folder = tempdir().expect("a temporary folder");
    let refused = |arguments: &str, code, why: &str| {
        let options = "--device emulator --steps 1 --dt 0.001 --softening 0.1 --out out";
        try_in(&folder, &format!("run {arguments} {options}")).expect(code, &[why]);
    };
    let plummer = "plummer --bodies 60 --systems";
    refused(
        &format!("{plummer} 7 --kernel galaxies/streams"),
        USAGE,
        "60 bodies do not make 7",
    );
    refused(
        &format!("{plummer} 0 --kernel galaxies/streams"),
        USAGE,
        "`--systems` must be a whole number ≥ 1, got 0",
    );
    let streams = "6 --kernel galaxies/streams --streams 7";
    refused(
        &format!("{plummer} {streams}"),
        UNAVAILABLE,
        "7 streams are more than the 6 systems",
    );
    let tile = "6 --kernel galaxies/tiled-512 --tile 4096";
    refused(&format!("{plummer} {tile}"), UNAVAILABLE, "65536 bytes");
    refused(
        "plummer --bodies 60 --kernel tiled --tile 64",
        USAGE,
        "--tile and --streams are for kernels",
    );
    refused(
        &format!("{plummer} 6 --kernel galaxies/unroll-8 --streams 2"),
        USAGE,
        "in one stream",
    );
}

#[test]
fn rungs_are_timed_and_drawn() {
    let folder = tempdir().expect("a temporary folder");
    let rungs = "galaxies/overlap,galaxies/soa,many-systems";
    let arguments = format!(
        "systems --device emulator --kernel {rungs} --systems 3 --bodies 20 --steps 2 --repetitions 1 \
         --timeline drawn"
    );
    try_in(&folder, &arguments).expect(0, &["galaxies/overlap", "many-systems", "passed"]);
    let drawn = folder.path().join("drawn");
    for name in ["galaxies-overlap", "galaxies-soa", "many-systems"] {
        for extension in ["csv", "png", "svg"] {
            assert!(
                drawn.join(name).with_extension(extension).exists(),
                "{name}.{extension}"
            );
        }
    }
    let csv = fs::read_to_string(drawn.join("galaxies-overlap.csv")).expect("text");
    // Three systems: a copy in, two steps of two kernels, a copy out; and a head.
    assert_eq!(csv.lines().count(), 1 + 3 * 6);
    try_in(&folder, &arguments).expect(74, &["galaxies-overlap.csv"]);
    try_in(&folder, "list --study galaxies").expect(0, &["galaxies/prefetch", "423.3"]);
}
