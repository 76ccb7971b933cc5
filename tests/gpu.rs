//! The table of cases on the GPUs of this machine. Skipped, aloud, where there is none.

mod support;

use std::io::Write;

use allpairs::force::Law;
use allpairs::selection::{DeviceChoice, Machine, eligible, select};
use allpairs::variants::{self, Variant};
use support::{TENSOR_BODIES, TENSOR_ERROR, Table, assert_none, repetition_failure};
use support::{rms_error, softened};

#[test]
fn kernels_are_right_on_every_gpu() {
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
        let place = select(device, None, Law::Gravity, 0)
            .expect("it is there")
            .place;
        let machine = Machine::new(place);
        let can_run = |v: &&Variant| {
            let mut laws = v.laws();
            laws.any(|law| eligible(v, machine.place(), law).is_ok())
        };
        let kernels: Vec<_> = variants::all().filter(can_run).collect();
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
    let Ok(selection) = select(DeviceChoice::Cuda(0), None, Law::Gravity, 0) else {
        return; // said aloud above
    };
    let machine = Machine::new(selection.place).allow_inaccurate(true);
    let can_run = |v: &&Variant| eligible(v, machine.place(), Law::Gravity).is_ok();
    let on_tensor_cores = variants::VARIANTS
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
