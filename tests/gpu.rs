//! The table of cases on the GPUs of this machine. Skipped, aloud, where there is none.

mod support;

use std::io::Write;

use allpairs::force::Law;
use allpairs::selection::{DeviceChoice, Machine, eligible, select};
use allpairs::variants::{self, Variant};
use support::{Table, assert_none, repetition_failure};

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
