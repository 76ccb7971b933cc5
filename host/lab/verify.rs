//! Verification of variants: their forces on a table of cases, compared with the f64 reference,
//! within what rounding explains and the variants state. Tests, `allpairs verify` and benchmarks all judge
//! by this file.

pub mod bounds;
mod jerks;
mod many;
mod pair_sums;
mod points;
mod stated;

pub use many::{many_systems, steps_by_reference};
pub use pair_sums::{CaseOfPairs, VerdictOfPairs, judge_pairs, judge_without, stated_of_pairs};
pub use points::{CaseAtPoints, VerdictAtPoints, judge_at_points, stated_at_points};
pub use stated::Wrong;

use allpairs::backend::{Backend, ForceError};
use allpairs::bodies::{Bodies, Body, BodyKind};
use allpairs::diagnostics::ReferenceForce;
use allpairs::diagnostics::{self, Accuracy, DigitHistogram};
use allpairs::force::reference::{self, Reference};
use allpairs::integrator::Integrator;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::plan;
use allpairs::variants::Variant;

/// Largest number of bodies that are compared, because the reference is slow.
const MOST_TARGETS: usize = 4096;

/// A situation, and the forces that are right in it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the case.
    pub name: String,
    /// The bodies.
    pub bodies: Bodies,
    /// The force.
    pub physics: Physics,
    /// Systems that the bodies are, one after another.
    pub systems: u32,
    targets: Vec<usize>,
    expected: Vec<ReferenceForce>,
    /// True if most bodies' forces have errors of their own.
    independent: bool,
}

impl Case {
    /// A case, and its reference forces: on all bodies, or on an even choice of 4096.
    pub fn new(name: impl Into<String>, bodies: Bodies, physics: Physics) -> Self {
        Self::compared_on(MOST_TARGETS, name, bodies, physics)
    }

    /// Like [`new`](Self::new), but on at most this number of bodies.
    fn compared_on(most: usize, name: impl Into<String>, bodies: Bodies, physics: Physics) -> Self {
        let every = bodies.len().div_ceil(most).max(1);
        let targets: Vec<usize> = (0..bodies.len()).step_by(every).collect();
        Self {
            name: name.into(),
            expected: reference::accelerations_of(&bodies, &physics, &targets),
            independent: stated::are_independent(&bodies),
            bodies,
            physics,
            systems: 1,
            targets,
        }
    }

    /// Returns whether its force law, systems, their size and range are such as a variant computes.
    pub fn is_for(&self, variant: &Variant) -> bool {
        variant.computes(self.physics.law)
            && self.bodies.len() / self.systems as usize <= plan::systems::most_bodies(variant)
            && (self.systems == 1 || variant.computes_many())
            && variant.in_range(&self.bodies, &self.physics).is_ok()
    }

    /// Measures the errors of computed accelerations (of all bodies).
    ///
    /// # Panics
    /// If they are not of the case's bodies.
    pub fn accuracy(&self, accelerations: &[[f64; 3]]) -> Accuracy {
        Accuracy::of(&self.pick(accelerations), &self.expected).expect("a target each")
    }

    /// Checks whether rounding explains how far a variant's accelerations (of all bodies) are off: each
    /// by itself, and all of them together, by the error that the variant states.
    ///
    /// # Errors
    /// The first body whose acceleration it does not explain, or the statistic.
    ///
    /// # Panics
    /// If the accelerations are not of the case's bodies.
    pub fn check(&self, variant: &Variant, accelerations: &[[f64; 3]]) -> Result<(), Wrong> {
        self.check_bodies(variant, accelerations)?;
        if self.independent {
            self.check_rms(variant, accelerations)?;
            self.check_total(variant, accelerations)?;
        }
        Ok(())
    }

    fn check_bodies(&self, variant: &Variant, accelerations: &[[f64; 3]]) -> Result<(), Wrong> {
        let (tolerance, position_error) = self.allowance(variant);
        let picked = self.pick(accelerations);
        let checked = diagnostics::check(&picked, &self.expected, tolerance, position_error);
        Ok(checked?)
    }

    /// Counts the compared bodies whose computed accelerations (of all bodies) have 0, 1, … 16
    /// or more right digits: a relative error below 10⁻¹, 10⁻², … for one more each.
    ///
    /// # Panics
    /// If they are not of the case's bodies.
    pub fn right_digits(&self, accelerations: &[[f64; 3]]) -> [u64; 17] {
        let mut counts = [0; 17];
        for (computed, field) in self.pick(accelerations).iter().zip(&self.expected) {
            let one = Accuracy::of(&[*computed], std::slice::from_ref(field)).expect("one each");
            // No error at all: the logarithm is infinite, and all digits are right.
            let digits = -one.max_relative.log10();
            counts[digits.clamp(0.0, 16.0) as usize] += 1;
        }
        counts
    }

    fn pick(&self, accelerations: &[[f64; 3]]) -> Vec<[f64; 3]> {
        assert_eq!(
            accelerations.len(),
            self.bodies.len(),
            "one acceleration a body"
        );
        self.targets.iter().map(|&i| accelerations[i]).collect()
    }
}

/// Verdict on a variant.
#[derive(Debug)]
pub struct Verdict {
    /// Cases it was tried on.
    pub cases: usize,
    /// The cases that it failed, and why.
    pub failures: Vec<(String, String)>,
    /// Force errors on the largest case.
    pub accuracy: Accuracy,
    /// Errors of the positions after two steps, by decimal digit.
    pub digits: DigitHistogram,
}

/// Judges a variant, on a machine where it is eligible, on those of the `cases` that are of its laws
/// and in its range, the last of which gives the statistics, and in the first two steps of its law.
///
/// # Errors
/// If it cannot run at all. A fault or a wrong force is a failed case.
///
/// # Panics
/// If there are none of its laws.
pub fn judge(
    machine: &Machine,
    variant: &Variant,
    cases: &[Case],
    steps: &[TwoSteps],
) -> Result<Verdict, ForceError> {
    let mut failures = vec![];
    let mut accuracy = None;
    let mut tried = 0;
    for case in cases.iter().filter(|case| case.is_for(variant)) {
        tried += 1;
        match jerks::with_accelerations(machine, variant, case) {
            Ok((computed, jerks)) => {
                if let Err(why) = case.check(variant, &computed) {
                    failures.push((case.name.clone(), why.to_string()));
                }
                if let Some(Err(why)) = jerks.map(|jerks| case.check_jerks(variant, &jerks)) {
                    failures.push((format!("jerks, {}", case.name), why.to_string()));
                }
                accuracy = Some(case.accuracy(&computed));
            }
            Err(ForceError::Kernel(fault)) => failures.push((case.name.clone(), fault.to_string())),
            Err(error) => return Err(error),
        }
    }
    let steps = steps
        .iter()
        .find(|steps| variant.computes(steps.physics.law));
    let digits = steps
        .expect("two steps of its law")
        .digits(machine, variant)?;
    if digits.not_finite > 0 {
        let why = format!("{} coordinates are not finite", digits.not_finite);
        failures.push(("two steps".into(), why));
    }
    let accuracy = accuracy.expect("at least one case that runs");
    Ok(Verdict {
        cases: tried,
        failures,
        accuracy,
        digits,
    })
}

/// Positions after the second step, which the `venus` study compares: the first step's positions
/// come from the initial velocities' error alone.
#[derive(Debug)]
pub struct TwoSteps {
    start: Bodies,
    end: Bodies,
    physics: Physics,
}

impl TwoSteps {
    const DT: f64 = 0.01;

    /// Two steps of `bodies` by the reference.
    pub fn new(bodies: Bodies, physics: Physics) -> Self {
        let mut end = bodies.clone();
        two_steps(&mut Reference::new(&bodies, physics), &mut end)
            .expect("the reference runs on the CPU");
        Self {
            start: bodies,
            end,
            physics,
        }
    }

    /// Errors of the positions after two steps of a variant; of the first bodies alone, if it takes fewer.
    ///
    /// # Errors
    /// If it cannot run.
    pub fn digits(
        &self,
        machine: &Machine,
        variant: &Variant,
    ) -> Result<DigitHistogram, ForceError> {
        let most = plan::systems::most_bodies(variant);
        if self.start.len() > most {
            return Self::new(self.start.part(0..most), self.physics).digits(machine, variant);
        }
        let mut end = self.start.clone();
        two_steps(
            &mut *machine.backend(variant, &self.start, self.physics)?,
            &mut end,
        )?;
        Ok(DigitHistogram::of(&end, &self.end).expect("the same bodies"))
    }
}

fn two_steps(backend: &mut dyn Backend, bodies: &mut Bodies) -> Result<(), ForceError> {
    backend.accelerate()?;
    for _ in 0..2 {
        Integrator::SemiImplicitEuler.step(backend, TwoSteps::DT)?;
    }
    backend.download(bodies)
}

/// The table of cases: numbers of bodies around the block's size `block`, and every kind of body
/// that has ever broken such a code.
pub fn edge_cases(block: usize) -> Vec<Case> {
    let cases = sizes_around(block).into_iter();
    let cases = cases.flat_map(|n| clouds(n).into_iter().chain(rare_bodies(n)));
    cases.chain(many::cases(block)).collect()
}

fn sizes_around(block: usize) -> [usize; 9] {
    [1, 2, 31, 32, 33, block - 1, block, block + 1, 2 * block + 1]
}

const fn gravity(softening: f64) -> Physics {
    Physics {
        law: ForceLaw::Gravity,
        g: 1.5,
        softening,
    }
}

const fn unit(softening: f64) -> Physics {
    Physics {
        law: ForceLaw::Unit,
        g: 1.0,
        softening,
    }
}

const fn attract_repel(softening: f64) -> Physics {
    Physics {
        law: ForceLaw::AttractRepel {
            repulsion: 0.02,
            damping: 0.001,
        },
        ..gravity(softening)
    }
}

/// A cloud of n bodies under each law, softened and not.
fn clouds(n: usize) -> Vec<Case> {
    let mut cases = vec![];
    let mut add = |name: &str, bodies, physics| {
        cases.push(Case::new(format!("{name}, N = {n}"), bodies, physics));
    };
    add("cloud", cloud(n), gravity(0.05));
    add("cloud without softening", cloud(n), gravity(0.0));
    add("cloud, law `unit`", cloud(n), unit(0.05));
    add("cloud, law `unit` without softening", cloud(n), unit(0.0));
    add("cloud, attract-repel", cloud(n), attract_repel(0.05));
    add(
        "cloud, attract-repel without softening",
        cloud(n),
        attract_repel(0.0),
    );
    cases
}

/// n bodies of every kind that has ever broken such a code.
fn rare_bodies(n: usize) -> Vec<Case> {
    let mut cases = vec![];
    let mut add = |name: &str, bodies, physics| {
        cases.push(Case::new(format!("{name}, N = {n}"), bodies, physics));
    };
    add(
        "all at one place",
        altered(n, |b, _| b.position = [0.25; 3]),
        gravity(0.05),
    );
    add(
        "all at one place without softening",
        altered(n, |b, _| b.position = [0.25; 3]),
        gravity(0.0),
    );
    add(
        "coincident pairs without softening",
        altered(n, |b, i| b.position = place(i / 2)),
        gravity(0.0),
    );
    add(
        "all at one place, law `unit` without softening",
        altered(n, |b, _| b.position = [0.25; 3]),
        unit(0.0),
    );
    add(
        "coincident pairs, law `unit` without softening",
        altered(n, |b, i| b.position = place(i / 2)),
        unit(0.0),
    );
    add(
        "far from the origin, law `unit`",
        altered(n, |b, _| b.position[0] += 1e9),
        unit(0.05),
    );
    add(
        "tiny, law `unit`",
        altered(n, |b, _| scale(b, 1e-15, 1e-20, 1e-3)),
        unit(1e-17),
    );
    // Each body's sum is hundreds of times what any one pair gives: halves overflow.
    add(
        "two tight clusters, law `unit`",
        altered(n, |b, i| {
            let x = if i % 2 == 0 { 0.0125 } else { -0.0125 };
            b.position = [if i == 0 { 1.0 } else { x }, 0.0, 0.0];
        }),
        unit(0.035),
    );
    add(
        "coincident pairs, attract-repel without softening",
        altered(n, |b, i| b.position = place(i / 2)),
        attract_repel(0.0),
    );
    add(
        "all at one place, attract-repel",
        altered(n, |b, _| b.position = [0.25; 3]),
        attract_repel(0.05),
    );
    add(
        "zero masses, attract-repel",
        altered(n, |b, i| b.mass *= (i % 3) as f64),
        attract_repel(0.05),
    );
    add(
        "SI units of a galaxy, attract-repel",
        altered(n, |b, _| scale(b, 3e20, 2e30, 2e5)),
        Physics {
            law: ForceLaw::AttractRepel {
                repulsion: 6.6743e-11 * 2e38,
                damping: 1e13,
            },
            g: 6.6743e-11,
            softening: 1e19,
        },
    );
    add(
        "equal masses",
        altered(n, |b, _| b.mass = 0.3),
        gravity(0.05),
    );
    add(
        "equal masses, coincident pairs without softening",
        altered(n, |b, i| {
            b.mass = 0.3;
            b.position = place(i / 2);
        }),
        gravity(0.0),
    );
    add(
        "zero masses",
        altered(n, |b, i| b.mass *= (i % 3) as f64),
        gravity(0.05),
    );
    add(
        "no mass at all",
        altered(n, |b, _| b.mass = 0.0),
        gravity(0.05),
    );
    add(
        "masses over twelve decades",
        altered(n, |b, i| b.mass = 10f64.powi(i as i32 % 13 - 6)),
        gravity(0.05),
    );
    add(
        "SI units of a galaxy",
        altered(n, |b, _| scale(b, 3e20, 2e30, 2e5)),
        Physics {
            law: ForceLaw::Gravity,
            g: 6.6743e-11,
            softening: 1e19,
        },
    );
    add(
        "tiny",
        altered(n, |b, _| scale(b, 1e-15, 1e-20, 1e-3)),
        gravity(1e-17),
    );
    add(
        "far from the origin",
        altered(n, |b, _| b.position[0] += 1e9),
        gravity(0.05),
    );
    cases
}

/// The large case, and the two steps, of `n` bodies under a law.
pub fn large_case(n: usize, law: ForceLaw) -> (Case, TwoSteps) {
    let physics = Physics {
        law,
        g: 1.0,
        softening: 0.05,
    };
    let few = cloud(n.min(MOST_TARGETS));
    (
        Case::new(format!("cloud, N = {n}"), cloud(n), physics),
        TwoSteps::new(few, physics),
    )
}

/// Bodies spread evenly over a cube of side 2, of total mass 1.
pub fn cloud(n: usize) -> Bodies {
    altered(n, |_, _| {})
}

/// Like [`cloud`], but with bodies of equal mass.
pub fn cloud_of_equal_masses(n: usize) -> Bodies {
    altered(n, |b, _| b.mass = 1.0 / n as f64)
}

fn altered(n: usize, alter: impl Fn(&mut Body, usize)) -> Bodies {
    let mut bodies = Bodies::with_capacity(n);
    for i in 0..n {
        let mut body = Body {
            position: place(i),
            velocity: place(i + n).map(|v| 0.3 * v),
            mass: (1.0 + (i % 7) as f64) / (4.0 * n as f64),
            id: i as u64,
            kind: BodyKind::Star,
        };
        alter(&mut body, i);
        bodies.push(body);
    }
    bodies
}

/// Point `i` of an additive recurrence with the plastic number's generalisation to three
/// dimensions, which leaves no holes and no close pairs (M. Roberts, 2018).
fn place(i: usize) -> [f64; 3] {
    const ROOT: f64 = 1.220_744_084_605_759_5; // of x⁴ = x + 1
    [1, 2, 3].map(|power| 2.0 * ((i as f64 + 1.0) / ROOT.powi(power)).fract() - 1.0)
}

fn scale(body: &mut Body, length: f64, mass: f64, speed: f64) {
    body.position = body.position.map(|x| length * x);
    body.velocity = body.velocity.map(|v| speed * v);
    body.mass *= mass;
}

#[cfg(test)]
mod tests;
