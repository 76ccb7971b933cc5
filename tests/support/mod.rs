//! The one runner behind the tests of all variants, and of the program.

pub(crate) mod program;

use std::path::Path;

use allpairs::backend::{Backend, ForceError};
use allpairs::frame::Frame;
use allpairs::initial_conditions::plummer;
use allpairs::integrator::Integrator;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::plan::systems::most_bodies;
use allpairs::variants::Variant;
use allpairs_lab::verify::{Case, TwoSteps, cloud, edge_cases, judge, large_case};

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Cases that a variant is tried on.
pub(crate) struct Table {
    cases: Vec<Case>,
    two_steps: Vec<TwoSteps>,
}

impl Table {
    /// The edge cases around `block`, and a cloud of `n` bodies under each law.
    pub(crate) fn new(block: u32, n: usize) -> Self {
        Self::of(edge_cases(block as usize), n)
    }

    /// As [`new`](Self::new), with the rare kinds of bodies only in numbers up to one more than a block,
    /// because the emulator takes a microsecond for an interaction, and most are among more.
    pub(crate) fn fewer(block: u32, n: usize) -> Self {
        let block = block as usize;
        let few = [1, 2, 33, block + 1];
        let is_rare =
            |case: &Case| !case.name.starts_with("cloud") && !case.name.contains("systems");
        let mut cases = edge_cases(block);
        let (all, rare) = (
            cases.len(),
            cases.iter().filter(|case| is_rare(case)).count(),
        );
        cases.retain(|case| !is_rare(case) || few.contains(&case.bodies.len()));
        assert_eq!(9 * (all - cases.len()), 5 * rare, "4 of 9 numbers are left");
        Self::of(cases, n)
    }

    /// Without the cases of `block` bodies or less.
    pub(crate) fn of_more_than(mut self, block: u32) -> Self {
        self.cases.retain(|case| case.bodies.len() > block as usize);
        self
    }

    fn of(mut cases: Vec<Case>, n: usize) -> Self {
        let laws = [ForceLaw::Gravity, ForceLaw::Unit, ForceLaw::ATTRACT_REPEL];
        let (large, two_steps): (Vec<_>, _) =
            laws.map(|law| large_case(n, law)).into_iter().unzip();
        cases.extend(large);
        Self { cases, two_steps }
    }

    /// Failures of a variant on a machine.
    pub(crate) fn failures(&self, machine: &Machine, variant: &Variant) -> Vec<String> {
        let name = variant.name;
        let verdict = judge(machine, variant, &self.cases, &self.two_steps)
            .unwrap_or_else(|refusal| panic!("{name} does not run: {refusal}"));
        let mine = self.cases.iter().filter(|case| case.is_for(variant));
        assert_eq!(verdict.cases, mine.count());
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

/// Systems of `n` bodies, softened by the given part of their extent: even, and concentrated.
pub(crate) fn softened(n: usize, part: f64) -> Vec<Case> {
    let concentrated = plummer(n, 1).expect("in range");
    let systems = [("even", cloud(n)), ("concentrated", concentrated)];
    let cases = systems.map(|(name, bodies)| {
        let unsoftened = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        let physics = Physics {
            softening: part * Frame::of(&bodies, &unsoftened).extent(&bodies),
            ..unsoftened
        };
        Case::new(format!("{name}, ε/extent = {part}"), bodies, physics)
    });
    cases.into()
}

/// Root mean square of the relative errors of a variant's forces.
pub(crate) fn rms_error(machine: &Machine, variant: &Variant, case: &Case) -> f64 {
    let mut backend = machine
        .backend(variant, &case.bodies, case.physics)
        .expect("runs");
    backend.accelerate().expect("runs");
    let computed = backend.accelerations().expect("runs");
    case.accuracy(&computed).rms_relative
}

/// Difference between steps that a device may record and replay and steps taken one by one, if there is one.
pub(crate) fn repetition_failure(machine: &Machine, variant: &Variant) -> Option<String> {
    const STEPS: u64 = 5;
    let bodies = plummer(260.min(most_bodies(variant)), 2).expect("in range");
    let physics = Physics {
        law: variant.laws().next().expect("every kernel has a law"),
        g: 1.0,
        softening: 1.0, // in every kernel's range
    };
    let run = |take: &dyn Fn(&mut dyn Backend) -> Result<(), ForceError>| {
        let mut end = bodies.clone();
        let mut backend = machine.backend(variant, &bodies, physics)?;
        backend.accelerate()?;
        take(&mut *backend)?;
        backend.download(&mut end)?;
        Ok::<_, ForceError>(end)
    };
    let leapfrog = Integrator::Leapfrog;
    let repeated = run(&|backend| backend.repeat(STEPS, &leapfrog.operations(0.01)));
    let single = run(&|backend| (0..STEPS).try_for_each(|_| leapfrog.step(backend, 0.01)));
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
