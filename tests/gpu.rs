//! The table of cases on the GPUs of this machine. Skipped, aloud, where there is none.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::{TENSOR_BODIES, TENSOR_ERROR, Table, assert_none, repetition_failure};
use crate::support::{rms_error, softened};
use allpairs::machine::Machine;
use allpairs::physics::Law;
use allpairs::selection::{DeviceChoice, Request, eligible, library, select};
use allpairs::timeline::{What, overlap};
use allpairs::variants::Variant;
use allpairs_lab::studies::catalogue;
use allpairs_lab::verify::many_systems;

/// One test at a time: what else runs on a GPU is in the way of what is timed there.
static GPU: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // A test that failed leaves nothing behind.
    GPU.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn kernels_are_right_on_every_gpu() {
    let _alone = alone();
    let gpus = match cuda_driver::devices() {
        Ok(gpus) => gpus,
        Err(why) => {
            // Not `eprintln!`, whose output the test harness keeps to itself.
            let _ = writeln!(std::io::stderr(), "SKIPPED the tests on a GPU: {why}");
            return;
        }
    };
    let table = Table::new(256, 16_384);
    for gpu in gpus {
        let device = DeviceChoice::Cuda(gpu.ordinal);
        let place = select(&Request::new(0).on(device))
            .expect("it is there")
            .place;
        let machine = Machine::new(place);
        let can_run = |v: &&Variant| {
            let mut laws = v.laws();
            laws.any(|law| eligible(v, machine.place(), law).is_ok())
        };
        let kernels: Vec<_> = catalogue().all().filter(can_run).collect();
        for why in catalogue().all().filter_map(|v| library(v).err()) {
            let _ = writeln!(std::io::stderr(), "SKIPPED a kernel: {why}");
        }
        assert!(!kernels.is_empty(), "no kernel runs on {}", machine.place());
        let failures = kernels.iter().flat_map(|kernel| {
            let mut failures = table.failures(&machine, kernel);
            failures.extend(repetition_failure(&machine, kernel));
            failures
        });
        assert_none(&failures.collect::<Vec<_>>());
    }
}

/// On the first GPU: what tensor cores state of their error holds down to the smallest softening
/// that they accept. Below it the errors are only told.
#[test]
fn tensor_cores_keep_to_their_error() {
    let _alone = alone();
    let Ok(selection) = select(&Request::new(0).on(DeviceChoice::Cuda(0))) else {
        return; // said aloud above
    };
    let machine = Machine::new(selection.place).allow_inaccurate(true);
    let can_run = |v: &&Variant| eligible(v, machine.place(), Law::Gravity).is_ok();
    let on_tensor_cores = allpairs::variants::VARIANTS
        .iter()
        .filter(can_run)
        .filter(|v| v.is_tensor());
    for variant in on_tensor_cores {
        for n in [TENSOR_BODIES, 4 * TENSOR_BODIES] {
            for part in [8, 16, 31, 64, 128, 1024].map(|d| 1.0 / f64::from(d)) {
                for case in softened(n, part) {
                    let error = rms_error(&machine, variant, &case);
                    let (name, what) = (variant.name, &case.name);
                    let line = format!("{name}, N = {n}, {what}: rms error {error:.2e}");
                    let _ = writeln!(std::io::stderr(), "{line}");
                    let stated = variant.in_range(&case.bodies, &case.physics).is_ok();
                    assert!(!stated || error <= TENSOR_ERROR, "{line}");
                    assert!(error.is_finite(), "{line}");
                }
            }
        }
    }
}

/// On the first GPU: some copies of `overlap` and `prefetch` run while kernels of other systems do,
/// which those of `fast-math` never do; and all rungs give the same numbers.
#[test]
fn copies_and_kernels_overlap() {
    let _alone = alone();
    const SYSTEMS: u32 = 32;
    let Ok(selection) = select(&Request::new(0).on(DeviceChoice::Cuda(0)).law(Law::Unit)) else {
        return; // said aloud above
    };
    let machine = Machine::new(selection.place);
    let (case, dt) = many_systems(SYSTEMS, 8192, Law::Unit);
    let spans = |rung: &str| {
        let kernel = catalogue().find(rung).expect("listed").of_systems(SYSTEMS);
        let mut backend = machine
            .backend(&kernel, &case.bodies, case.physics)
            .expect("it fits");
        let pipeline = backend.pipeline().expect("of many systems");
        pipeline.seconds(dt, 2).expect("it runs"); // loads what is to be loaded
        pipeline.timeline(dt, 2).expect("it runs")
    };
    for (rung, overlaps) in [
        ("galaxies/fast-math", false),
        ("galaxies/overlap", true),
        ("galaxies/prefetch", true),
    ] {
        let spans = spans(rung);
        let shared = overlap(&spans);
        let line = format!("{rung}: {:.1} µs of copies beside kernels", 1e6 * shared);
        let _ = writeln!(std::io::stderr(), "{line}");
        assert_eq!(shared > 0.0, overlaps, "{line}");
        if overlaps {
            // Not only by marks of streams that wait for room: the first kernel finds the GPU idle, so
            // it runs when its stream gets to it, and some system is still on its way.
            let kernels = spans.iter().filter(|span| !span.what.is_copy());
            let first = kernels.map(|s| s.start).fold(f64::INFINITY, f64::min);
            let copies = spans.iter().filter(|span| span.what == What::CopyIn);
            let last = copies.map(|s| s.end).fold(0.0, f64::max);
            assert!(first < last, "{line}");
        }
    }
}
