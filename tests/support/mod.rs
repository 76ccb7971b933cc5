//! The one runner behind the tests of all variants.

use allpairs::force::{Backend, ForceError, Law, Physics};
use allpairs::initial_conditions::plummer;
use allpairs::integrator::Integrator;
use allpairs::selection::Machine;
use allpairs::variants::Variant;
use allpairs::verify::{Case, TwoSteps, edge_cases, judge, large_case};

/// What a variant is tried on.
pub(crate) struct Table {
    cases: Vec<Case>,
    two_steps: Vec<TwoSteps>,
}

impl Table {
    /// The edge cases around `block`, and a cloud of `n` bodies under each law.
    pub(crate) fn new(block: u32, n: usize) -> Self {
        let mut cases = edge_cases(block as usize);
        let laws = [Law::Gravity, Law::Unit, Law::ATTRACT_REPEL];
        let (large, two_steps): (Vec<_>, _) =
            laws.map(|law| large_case(n, law)).into_iter().unzip();
        cases.extend(large);
        Self { cases, two_steps }
    }

    /// What a variant gets wrong on a machine.
    pub(crate) fn failures(&self, machine: &Machine, variant: &Variant) -> Vec<String> {
        let name = variant.name;
        let verdict = judge(machine, variant, &self.cases, &self.two_steps)
            .unwrap_or_else(|refusal| panic!("{name} does not run: {refusal}"));
        let mine = |case: &&Case| variant.computes(case.physics.law);
        assert_eq!(verdict.cases, self.cases.iter().filter(mine).count());
        if variant.wrong.is_some() {
            // Known to be wrong, and listed for that: the table of cases has to show it.
            return match verdict.failures.is_empty() {
                true => vec![format!("{name} is known to be wrong, and passed")],
                false => vec![],
            };
        }
        let failures = verdict.failures.into_iter();
        failures
            .map(|(case, why)| format!("{name}, {case}: {why}"))
            .collect()
    }
}

/// Whether steps that a device may record and replay go elsewhere than steps taken one by one.
pub(crate) fn repetition_failure(machine: &Machine, variant: &Variant) -> Option<String> {
    const STEPS: u64 = 9;
    let bodies = plummer(300, 2).expect("in range");
    let physics = Physics {
        law: variant.laws().next().expect("every kernel has a law"),
        g: 1.0,
        softening: 0.1,
    };
    let run = |take: &dyn Fn(&mut dyn Backend) -> Result<(), ForceError>| {
        let mut end = bodies.clone();
        let mut backend = machine.backend(variant, &bodies, physics)?;
        backend.accelerate()?;
        take(&mut *backend)?;
        backend.download(&mut end)?;
        Ok::<_, ForceError>(end)
    };
    let step = |backend: &mut dyn Backend| Integrator::Leapfrog.step(backend, 0.01);
    let repeated = run(&|backend| backend.repeat(STEPS, &mut { step }));
    let single = run(&|backend| (0..STEPS).try_for_each(|_| step(backend)));
    let (repeated, single) = match (repeated, single) {
        (Ok(repeated), Ok(single)) => (repeated, single),
        (Err(error), _) | (_, Err(error)) => return Some(format!("{}: {error}", variant.name)),
    };
    // Equal, but for the order of atomic additions in f32.
    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-5;
    let agree = [(&repeated.x, &single.x), (&repeated.vz, &single.vz)]
        .into_iter()
        .all(|(a, b)| a.iter().zip(b).all(is_near));
    (!agree).then(|| format!("{}: repeated steps go elsewhere", variant.name))
}

/// Fails with all the lines, if there are any.
pub(crate) fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
