//! The one runner behind the tests of all variants.

use allpairs::selection::Machine;
use allpairs::variants::Variant;
use allpairs::verify::{Case, TwoSteps, edge_cases, judge, large_case};

/// What a variant is tried on.
pub(crate) struct Table {
    cases: Vec<Case>,
    two_steps: TwoSteps,
}

impl Table {
    /// The edge cases around `block`, and a cloud of `n` bodies.
    pub(crate) fn new(block: u32, n: usize) -> Self {
        let mut cases = edge_cases(block as usize);
        let (large, two_steps) = large_case(n);
        cases.push(large);
        Self { cases, two_steps }
    }

    /// What a variant gets wrong on a machine.
    pub(crate) fn failures(&self, machine: &Machine, variant: &Variant) -> Vec<String> {
        let name = variant.name;
        let verdict = judge(machine, variant, &self.cases, &self.two_steps)
            .unwrap_or_else(|refusal| panic!("{name} does not run: {refusal}"));
        assert_eq!(verdict.cases, self.cases.len());
        let failures = verdict.failures.into_iter();
        failures
            .map(|(case, why)| format!("{name}, {case}: {why}"))
            .collect()
    }
}

/// Fails with all the lines, if there are any.
pub(crate) fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
