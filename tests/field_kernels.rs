//! Kernels for fields at points, on the emulator.

use allpairs::machine::{KernelAtPoints, Machine};
use allpairs::physics::ForceLaw;
use allpairs_lab::verify::{CaseAtPoints, edge_cases, judge_at_points, large_case};

use crate::support::assert_none;

fn failures(machine: &Machine, cases: &[CaseAtPoints]) -> Vec<String> {
    let mut all = vec![];
    for kernel in KernelAtPoints::OF_DEVICES {
        let verdict = judge_at_points(machine, &kernel, cases).expect("runs");
        let named = |(case, why)| format!("{}: {case}: {why}", kernel.name);
        all.extend(verdict.failures.into_iter().map(named));
    }
    all
}

/// Every kind of bodies that has ever broken a code, with points on them and elsewhere; threads in order
/// and out of it.
#[test]
fn fields_are_those_of_the_reference() {
    let mut cases = edge_cases(256);
    cases.push(large_case(1500, ForceLaw::Gravity).0);
    let cases = CaseAtPoints::of_all(&cases);
    assert!(cases.len() > 100);
    assert_none(&failures(&Machine::emulator(0), &cases));
    let of_blocks = cases.len() - 40;
    assert_none(&failures(
        &Machine::emulator(20_260_101),
        &cases[of_blocks..],
    ));
}
