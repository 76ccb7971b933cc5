//! Kernels of sums over pairs and their derivatives, on the emulator.

use allpairs::machine::{KernelOfPairs, Machine};
use allpairs_lab::verify::{CaseOfPairs, judge_pairs, judge_without};

use crate::support::assert_none;

/// Bodies of the largest case: several blocks and tiles, the last of each not full.
const LARGEST: usize = 700;

#[test]
fn sums_over_pairs_are_those_of_the_reference() {
    let cases = CaseOfPairs::all(LARGEST);
    for (thread_order, cases) in [(0, &cases[..]), (20_260_101, &cases[..6])] {
        let machine = Machine::emulator(thread_order);
        let mut failures = vec![];
        for kernel in KernelOfPairs::OF_DEVICES {
            let verdict = judge_pairs(&machine, &kernel, cases).expect("runs");
            let named = |(case, why)| format!("{}: {case}: {why}", kernel.name);
            failures.extend(verdict.failures.into_iter().map(named));
        }
        assert_none(&failures);
    }
}

/// A check that could not fail would prove nothing: one body of 700 that is left out, in any block or tile.
#[test]
fn one_missing_body_is_noticed() {
    let case = CaseOfPairs::new(LARGEST, 1, 0.05, 1.0);
    for missing in [0, 127, 256, 699] {
        for kernel in KernelOfPairs::OF_DEVICES {
            let verdict = judge_without(&Machine::emulator(0), &kernel, &case, missing);
            let failures = verdict.expect("runs").failures;
            let each = |(_, why): &(_, String)| why.contains("rounding explains no more");
            assert!(failures.iter().any(each), "{} {missing}", kernel.name);
        }
    }
}
