//! Kernels for fields at points, on the emulator.

use allpairs::machine::{KernelAtPoints, Machine};
use allpairs::physics::{ForceLaw, Physics};
use allpairs_lab::verify::Case;
use allpairs_lab::verify::{CaseAtPoints, cloud, edge_cases, judge_at_points, large_case};

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

/// A check that could not fail would prove nothing: one source of 1500 that is left out, in any slice.
#[test]
fn one_missing_source_is_noticed() {
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.05,
    };
    let case = Case::new("one missing", cloud(1500), physics);
    for missing in [0, 255, 256, 1023, 1499] {
        let mut case = CaseAtPoints::of(&case, 130).expect("gravity");
        case.without_mass_of(missing);
        for kernel in KernelAtPoints::OF_DEVICES {
            let verdict = judge_at_points(&Machine::emulator(0), &kernel, &[case.clone()]);
            let failures = verdict.expect("runs").failures;
            let each = |(_, why): &(_, String)| why.contains("rounding explains no more");
            assert!(failures.iter().any(each), "{} {missing}", kernel.name);
        }
    }
}
