//! The compiled kernels are what the lists say, for every GPU generation and both builds.

use allpairs::ptx::{PTX_MODULES, PtxModule};
use allpairs_lab::ptx::claims::{BrokenClaim, check, check_module, check_no_variants};
use allpairs_lab::studies::catalogue;
use cuda_builder::{NvptxArch, describe, flush_denormals};
use std::fs;
use std::path::Path;

fn assert_none(broken: &[BrokenClaim]) {
    let lines: Vec<String> = broken.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[test]
fn there_is_a_module_for_each_generation_and_build() {
    let mut found: Vec<(u32, bool)> = PTX_MODULES.iter().map(|m| (m.sm, m.ftz)).collect();
    found.sort_unstable();
    let expected = [75, 80, 90].map(|sm| [(sm, false), (sm, true)]);
    assert_eq!(found, expected.concat());
}

#[test]
fn modules_hold_the_listed_kernels_and_no_slow_memory() {
    for module in PTX_MODULES.iter() {
        assert_none(&check_module(module).err().unwrap_or_default());
    }
}

/// Not only in the module of its own build: a variant of the other build may be added any day.
#[test]
fn kernels_are_compiled_to_what_they_claim() {
    for module in PTX_MODULES.iter() {
        assert_none(&check_no_variants(module).err().unwrap_or_default());
        for variant in catalogue().all() {
            assert_none(&check(variant, module).err().unwrap_or_default());
        }
    }
}

/// The text that is reviewed is about the kernels that are embedded: both have the same hashes.
#[test]
fn the_checked_in_text_describes_the_embedded_kernels() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("gpu-kernels/ptx/kernels.txt");
    let checked_in = fs::read_to_string(&path).unwrap();
    let checked_in: Vec<&str> = checked_in
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let precise = PTX_MODULES.iter().filter(|module| !module.ftz);
    let modules: Vec<(NvptxArch, String)> = precise
        .map(|module| (format!("sm_{}", module.sm).parse().unwrap(), module.text()))
        .collect();
    let modules: Vec<(NvptxArch, &str)> = modules
        .iter()
        .map(|(arch, text)| (*arch, text.as_str()))
        .collect();
    let embedded = describe(&modules).unwrap();
    for (line, (checked_in, embedded)) in (1..).zip(checked_in.iter().zip(embedded.lines())) {
        assert_eq!(
            *checked_in,
            embedded,
            "kernel line {line} of {}",
            path.display()
        );
    }
    assert_eq!(checked_in.len(), embedded.lines().count());
}

/// The marks in the embedded text are where `.ftz` goes.
#[test]
fn flushing_modules_are_the_precise_ones_flushed() {
    for precise in PTX_MODULES.iter().filter(|module| !module.ftz) {
        let of_generation = |module: &&PtxModule| module.ftz && module.sm == precise.sm;
        let flushing = PTX_MODULES.iter().find(of_generation).unwrap().text();
        // Not `assert_eq`, which would print megabytes.
        assert!(
            flush_denormals(&precise.text()).unwrap() == flushing,
            "sm_{}",
            precise.sm
        );
    }
}
