//! One system on several devices, emulated: right forces, runs that go on with another number of devices,
//! and refusals.

use std::fs;
use std::path::Path;

use allpairs::machine::Machine;
use allpairs::variants::Variant;
use allpairs_lab::studies::catalogue;
use rayon::prelude::*;

use crate::support::program::{code, new_folder, try_in};
use crate::support::{Table, assert_none, repetition_failure};

/// The kernels of general use that several devices can share.
fn shared_kernels() -> Vec<Variant> {
    let all = catalogue().all().filter(|kernel| kernel.can_be_shared());
    let kernels: Vec<_> = all.copied().collect();
    for name in [
        "symmetric",
        "symmetric-deterministic",
        "symmetric-f64",
        "double-single",
        "tensor",
        "tensor-soft",
        "hermite",
        "hermite-f64",
    ] {
        assert!(kernels.iter().any(|kernel| kernel.name == name), "{name}");
    }
    kernels
}

/// Within the bounds of one device, in all edge cases, with threads in another order on each. Spatial
/// sorts of all these cases take the emulator minutes: the library's tests have kernels with such, and
/// `several_gpus_compute_as_one` all cases.
#[test]
fn forces_are_right_on_several_devices() {
    let table = Table::fewer(64, 300);
    let machine = Machine::emulators(3, 20_260_101);
    let kernels = shared_kernels().into_par_iter();
    let failures = kernels
        .filter(|kernel| !kernel.is_separated())
        .flat_map_iter(|kernel| table.failures(&machine, &kernel));
    assert_none(&failures.collect::<Vec<_>>());
}

#[test]
fn repeated_steps_are_single_steps_on_several_devices() {
    let machine = Machine::emulators(3, 0);
    let failures = shared_kernels().into_par_iter();
    let failures = failures.filter_map(|kernel| repetition_failure(&machine, &kernel));
    assert_none(&failures.collect::<Vec<_>>());
}

fn success(folder: &Path, arguments: &str) -> String {
    let ended = try_in(folder, arguments);
    ended.expect(0, &[]);
    ended.said
}

/// Files of a run that do not depend on whether and where it was stopped.
fn record(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a run's folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), fs::read(&path).expect("a file"))
    });
    let kept =
        |(name, _): &(String, Vec<u8>)| !name.starts_with("checkpoint") && name != "run.toml";
    let mut files: Vec<_> = files.filter(kept).collect();
    files.sort();
    assert!(files.iter().any(|(name, _)| name.starts_with("final")));
    files
}

/// A run on three devices goes on with one, two and five, and leaves what a run on one leaves.
#[test]
fn a_run_goes_on_with_another_number_of_devices() {
    for (kernel, integrator) in [
        ("symmetric-deterministic", "leapfrog"),
        ("hermite-f64", "hermite4"),
    ] {
        let folder = new_folder();
        let folder = folder.path();
        let run = format!(
            "run plummer --bodies 300 --dt 0.01 --softening 0.05 --kernel {kernel} --diagnostics 1 \
             --integrator {integrator} --checkpoint-every 2"
        );
        success(
            folder,
            &format!("{run} --steps 4 --device emulator --out whole"),
        );
        let whole = record(&folder.join("whole"));
        for device in ["emulator", "emulator:2", "emulator:5"] {
            let begun = format!("{run} --steps 2 --device emulator:3 --out part --overwrite");
            let said = success(folder, &begun);
            assert!(said.contains("CPU emulator of 3 GPUs"), "{said}");
            success(folder, &format!("resume part --steps 4 --device {device}"));
            let config = fs::read_to_string(folder.join("part/run.toml")).expect("there");
            assert!(
                config.contains(&format!("device = \"{device}\"")),
                "{config}"
            );
            let part = record(&folder.join("part"));
            assert!(part == whole, "{kernel} on {device}");
        }
    }
}

/// Block time steps on three devices go on with their bytes on as many, and with those of rounding on others.
#[test]
fn block_time_steps_are_shared() {
    let folder = new_folder();
    let folder = folder.path();
    let run = "run plummer --bodies 200 --seed 3 --softening 0.001 --integrator hermite6 --eta 0.3 --dt 0.03125 \
               --block-steps --diagnostics 1 --checkpoint-every 1";
    for (device, out) in [("emulator:3", "whole"), ("emulator", "one")] {
        let run = format!("{run} --until 0.125 --device {device} --out {out}");
        let said = success(folder, &run);
        assert!(said.contains("bodies on average"), "{said}");
        assert!(said.contains("pairs in f32, positions in two"), "{said}");
        let memory = said.contains("on each of 3 devices");
        assert_eq!(memory, device == "emulator:3", "{said}");
    }
    let whole = record(&folder.join("whole"));
    for device in ["emulator:3", "emulator:2", "emulator"] {
        let begun = format!("{run} --until 0.0625 --device emulator:3 --out part --overwrite");
        success(folder, &begun);
        success(
            folder,
            &format!("resume part --until 0.125 --device {device}"),
        );
        let same = record(&folder.join("part")) == whole;
        assert_eq!(same, device == "emulator:3", "{device}");
        for other in ["whole", "one"] {
            let near = format!("{device}, {other}");
            let off = farthest(&folder.join("part"), &folder.join(other));
            assert!(off < 1e-7, "{near}: {off:e}");
        }
    }
}

/// The largest difference of coordinates of two runs' ends.
fn farthest(one: &Path, other: &Path) -> f64 {
    let [one, other] = [one, other].map(|folder| {
        let read = allpairs::io::read(&folder.join("final.allpairs"), None);
        read.expect("a snapshot").0.bodies
    });
    let both = one.iter().zip(other.iter());
    let off =
        both.flat_map(|(a, b)| (0..3).map(move |axis| (a.position[axis] - b.position[axis]).abs()));
    off.fold(0.0, f64::max)
}

#[test]
fn what_devices_cannot_share_is_refused() {
    let folder = new_folder();
    for (arguments, exit, texts) in [
        (
            "run plummer --bodies 100 --device emulator:3 --kernel tiled",
            code::USAGE,
            ["`tiled`", "one device", "choose --device emulator"],
        ),
        (
            "run plummer --bodies 100 --device emulator:17",
            code::USAGE,
            ["emulator:17", "cuda:0,1", "up to 16"],
        ),
        (
            "run plummer --bodies 100 --device cuda:all",
            code::UNAVAILABLE,
            ["needs a GPU", "none", "switched off"],
        ),
    ] {
        try_in(&folder, arguments).expect(exit, &texts);
    }
}

/// Independent systems are dealt to the devices, and computed as by one.
#[test]
fn systems_are_dealt_to_devices() {
    let folder = new_folder();
    let run = "run many-galaxies --systems 5 --each 64 --steps 2 --dt 0.01 --softening 0.05 \
               --kernel many-systems --integrator euler";
    let folder = folder.path();
    for device in ["emulator", "emulator:2", "emulator:8"] {
        let run = format!("{run} --device {device} --out {}", device.replace(':', "-"));
        success(folder, &run);
    }
    let one = record(&folder.join("emulator"));
    for several in ["emulator-2", "emulator-8"] {
        assert!(record(&folder.join(several)) == one, "{several}");
    }
}

/// Kernels are verified and timed on several devices as on one.
#[test]
fn verify_and_bench_take_several_devices() {
    let folder = new_folder();
    let verified = success(
        folder.path(),
        "verify --device emulator:3 --kernel symmetric-deterministic,hermite-f64 --bodies 300",
    );
    assert!(verified.contains("On CPU emulator of 3 GPUs"), "{verified}");
    assert!(verified.contains("passed all"), "{verified}");
    let timed = success(
        folder.path(),
        "bench --device emulator:2 --kernel symmetric --bodies 300 --repetitions 1",
    );
    assert!(timed.contains("On CPU emulator of 2 GPUs"), "{timed}");
}
