//! The compiled kernels are what the lists say, for every GPU generation and both builds.

use allpairs::ptx::PTX_MODULES;
use allpairs_lab::ptx::claims::{BrokenClaim, check, check_module, check_points};
use allpairs_lab::studies::catalogue;

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
    for module in PTX_MODULES {
        assert_none(&check_module(module).err().unwrap_or_default());
    }
}

/// Not only in the module of its own build: a variant of the other build may be added any day.
#[test]
fn kernels_are_compiled_to_what_they_claim() {
    for module in PTX_MODULES {
        assert_none(&check_points(module).err().unwrap_or_default());
        for variant in catalogue().all() {
            assert_none(&check(variant, module).err().unwrap_or_default());
        }
    }
}
