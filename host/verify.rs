//! Is a variant right? Its forces on a table of cases, against the f64 reference, within what
//! rounding explains. Tests, `allpairs verify` and benchmarks all judge by this file.

mod jerks;
mod many;

pub use many::{many_systems, steps_by_reference};

use crate::bodies::{Bodies, Body, Kind};
use crate::diagnostics::{self, Accuracy, DigitHistogram, Disagreement};
use crate::force::cpu::{InstructionSet, RootName};
use crate::force::reference::{self, Field, Reference};
use crate::force::{Backend, ForceError, Law, Physics};
use crate::frame::Frame;
use crate::integrator::Integrator;
use crate::selection::Machine;
use crate::variants::{CpuPath, Method, Variant};
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::separated;

/// Bodies whose forces are compared, at most: the reference takes its time.
const MOST_TARGETS: usize = 4096;

/// A situation, and the forces that are right in it.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is about.
    pub name: String,
    /// The bodies.
    pub bodies: Bodies,
    /// The force.
    pub physics: Physics,
    /// Systems that the bodies are, one after another.
    pub systems: u32,
    targets: Vec<usize>,
    expected: Vec<Field>,
}

impl Case {
    /// A case, and its reference forces: on all bodies, or on an even choice of 4096.
    pub fn new(name: impl Into<String>, bodies: Bodies, physics: Physics) -> Self {
        let every = bodies.len().div_ceil(MOST_TARGETS).max(1);
        let targets: Vec<usize> = (0..bodies.len()).step_by(every).collect();
        let expected = reference::accelerations_of(&bodies, &physics, &targets);
        Self {
            name: name.into(),
            bodies,
            physics,
            systems: 1,
            targets,
            expected,
        }
    }

    /// Whether it is of a law, of systems and in the range that a variant computes.
    pub fn is_for(&self, variant: &Variant) -> bool {
        variant.computes(self.physics.law)
            && (self.systems == 1 || variant.computes_many())
            && variant.in_range(&self.bodies, &self.physics).is_ok()
    }

    /// How far computed accelerations (of all bodies) are off.
    ///
    /// # Panics
    /// If they are not of the case's bodies.
    pub fn accuracy(&self, accelerations: &[[f64; 3]]) -> Accuracy {
        Accuracy::of(&self.pick(accelerations), &self.expected).expect("a target each")
    }

    /// Whether rounding explains how far a variant's accelerations (of all bodies) are off.
    ///
    /// # Errors
    /// The first body whose acceleration it does not explain.
    ///
    /// # Panics
    /// If the accelerations are not of the case's bodies.
    pub fn check(&self, variant: &Variant, accelerations: &[[f64; 3]]) -> Result<(), Disagreement> {
        let (tolerance, position_error) = self.allowance(variant);
        diagnostics::check(
            &self.pick(accelerations),
            &self.expected,
            tolerance,
            position_error,
        )
    }

    /// How many of the compared bodies have computed accelerations (of all bodies) with 0, 1, … 16
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

    /// Relative error of the sums, and absolute error of a separation, that the variant's
    /// arithmetic explains.
    fn allowance(&self, variant: &Variant) -> (f64, f64) {
        if variant.is_tensor() {
            return self.tensor_allowance(variant);
        }
        if variant.is_separated() && self.bodies.len() > separated::TARGETS as usize {
            return self.separated_allowance(variant);
        }
        // Bodies in halves may cost what rounding them costs; arithmetic in halves is held to the
        // standard of single precision, for a sum of halves bounds nothing.
        let computed = match variant.precision() {
            Precision::F16 => Precision::F32,
            precision => precision,
        };
        // Bodies in f64 are cut to 48 bits for sums of two f32.
        let stored = match computed {
            Precision::DoubleSingle => computed.unit_roundoff(),
            _ => variant.stored().unit_roundoff(),
        };
        let additions = variant.additions(self.bodies.len() / self.systems as usize);
        let ulps = pair_ulps(variant, self.physics.law);
        let mut tolerance = diagnostics::tolerance(computed.unit_roundoff(), additions, ulps);
        if stored > computed.unit_roundoff() {
            tolerance += ROUNDED_MASS_AND_VELOCITY * stored;
        }
        // A stored coordinate is off by u·length/2, a separation by √3 times two of them, and
        // moving the origin costs one such rounding more.
        let position_error = match variant.method {
            Method::Reference => 0.0,
            _ => 2.0 * stored * Frame::of(&self.bodies, &self.physics).length,
        };
        (tolerance, position_error)
    }
}

impl Case {
    /// As [`allowance`](Self::allowance), on tensor cores.
    ///
    /// The weight 1/d³ of a pair is rounded to a half. d² is a sum of terms that add up to at most
    /// 12 times the squared extent: truncated at 2⁻²³, twice, and packed to 2⁻²³ of each coordinate
    /// and 2⁻²⁵ of the scaled squares, which are at least 2⁻¹⁰. What happens to m x_j is an error of its
    /// position: 2⁻²² of packing, and the truncated sums.
    fn tensor_allowance(&self, variant: &Variant) -> (f64, f64) {
        let frame = Frame::of(&self.bodies, &self.physics);
        let extent = frame.extent(&self.bodies);
        let half = Precision::F16.unit_roundoff();
        let bit = 2.0 * Precision::F32.unit_roundoff();
        let square = 3.0 * 12.0 * bit * (extent / self.physics.softening).powi(2)
            + half.powi(2) * 2f64.powi(-3 + 10);
        let pair = half + 1.5 * square;
        let sums = variant.additions(self.bodies.len()) as f64 * bit;
        let position_error = 3f64.sqrt() * (sums + 4.0 * bit) * extent;
        (3f64.sqrt() * pair, position_error)
    }
}

impl Case {
    /// As [`allowance`](Self::allowance), where far pairs are computed on tensor cores.
    ///
    /// As in [`tensor_allowance`](Self::tensor_allowance), but d² is a sum of terms that add up to
    /// 17² of itself at most, truncated twice and packed, and at least 2⁻¹⁰ in units where the
    /// squares' last parts are good to 2⁻²⁵. So is 1/d³, which is 1/48³ at least. Where it is a
    /// polynomial, that is off by [`separated::LARGEST_ERROR`] at most.
    fn separated_allowance(&self, variant: &Variant) -> (f64, f64) {
        let frame = Frame::of(&self.bodies, &self.physics);
        let half = Precision::F16.unit_roundoff();
        let bit = 2.0 * Precision::F32.unit_roundoff();
        let square = 3.0 * 17f64.powi(2) * bit + 2.0 * 2f64.powi(-25 + 10);
        let root = half + 2f64.powi(-25) * 48f64.powi(3);
        let pair = root.max(separated::LARGEST_ERROR) + 1.5 * square;
        let sums = variant.additions(self.bodies.len()) as f64 * bit;
        let position_error = 3f64.sqrt() * (sums + 4.0 * bit) * frame.length;
        (3f64.sqrt() * pair, position_error)
    }
}

/// Error of one pair's acceleration in units of the unit roundoff, its separation exact: the
/// separation 1, d² 6 more, its inverse root half of that and 1.5 of its own, cubed: 17; weight 1,
/// products 3, G and its product 2; and 15 of an f64 reference.
///
/// `rsqrt.approx` is off by 2⁻²²·⁹ (PTX ISA) instead of 1.5 roundings: 0.7 more, cubed 2.1. Its
/// double-precision form, refined, is off by less than 3. A product that is not fused with its
/// addition is rounded once more. In `attract-repel` the inverse root counts five times, or is
/// divided by five times, and the drag is another 4. Where sums are of forces, the product
/// with the body's own mass and its inverse are 4: the rounding of the stored mass cancels.
///
/// A CPU's estimate is off by what [`InstructionSet::estimate_error`] says, cubed three times that;
/// the terms of third order and beyond are less than a percent of it. Refined, its cube is off by
/// 3.5 roundings, one more without fused operations, and by less than 5 of what the series leaves
/// out, where exact ones have 6.5: 2 more.
fn pair_ulps(variant: &Variant, law: Law) -> f64 {
    let ulps = match law {
        Law::Unit | Law::Gravity => 39.0,
        Law::AttractRepel { .. } => 59.0,
    };
    match variant.method {
        Method::Cpu(CpuPath {
            root: RootName::Refined,
            ..
        }) => ulps + 2.0,
        Method::Cpu(CpuPath {
            root: RootName::Estimated,
            precision,
            ..
        }) => {
            let error = InstructionSet::detect().estimate_error(precision);
            ulps + 3.03 * error / precision.unit_roundoff()
        }
        Method::Kernel { by_masses, .. } if variant.is_approximate() => {
            ulps + 4.5 + if by_masses { 4.0 } else { 0.0 }
        }
        Method::Systems(_) if variant.is_approximate() => ulps + 4.5,
        _ => ulps,
    }
}

/// Of a term, in units of the roundoff of the type that bodies are stored in.
const ROUNDED_MASS_AND_VELOCITY: f64 = 2.0;

/// What became of a variant.
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

    /// Errors of the positions after two steps of a variant.
    ///
    /// # Errors
    /// If it cannot run.
    pub fn digits(
        &self,
        machine: &Machine,
        variant: &Variant,
    ) -> Result<DigitHistogram, ForceError> {
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
    let sizes = [1, 2, 31, 32, 33, block - 1, block, block + 1, 2 * block + 1];
    let gravity = |softening| Physics {
        law: Law::Gravity,
        g: 1.5,
        softening,
    };
    let attract_repel = |softening| Physics {
        law: Law::AttractRepel {
            repulsion: 0.02,
            damping: 0.001,
        },
        ..gravity(softening)
    };
    let mut cases = vec![];
    for n in sizes {
        let mut add = |name: &str, bodies, physics| {
            cases.push(Case::new(format!("{name}, N = {n}"), bodies, physics));
        };
        let unit = Physics {
            law: Law::Unit,
            g: 1.0,
            softening: 0.05,
        };
        add("cloud", cloud(n), gravity(0.05));
        add("cloud without softening", cloud(n), gravity(0.0));
        add("cloud, law `unit`", cloud(n), unit);
        add(
            "cloud, law `unit` without softening",
            cloud(n),
            Physics {
                softening: 0.0,
                ..unit
            },
        );
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
        let hard = Physics {
            softening: 0.0,
            ..unit
        };
        add(
            "all at one place, law `unit` without softening",
            altered(n, |b, _| b.position = [0.25; 3]),
            hard,
        );
        add(
            "coincident pairs, law `unit` without softening",
            altered(n, |b, i| b.position = place(i / 2)),
            hard,
        );
        add(
            "far from the origin, law `unit`",
            altered(n, |b, _| b.position[0] += 1e9),
            unit,
        );
        add(
            "tiny, law `unit`",
            altered(n, |b, _| scale(b, 1e-15, 1e-20, 1e-3)),
            Physics {
                softening: 1e-17,
                ..unit
            },
        );
        // Each body's sum is hundreds of times what any one pair gives: halves overflow.
        add(
            "two tight clusters, law `unit`",
            altered(n, |b, i| {
                let x = if i % 2 == 0 { 0.0125 } else { -0.0125 };
                b.position = [if i == 0 { 1.0 } else { x }, 0.0, 0.0];
            }),
            Physics {
                softening: 0.035,
                ..unit
            },
        );
        add("cloud, attract-repel", cloud(n), attract_repel(0.05));
        add(
            "cloud, attract-repel without softening",
            cloud(n),
            attract_repel(0.0),
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
                law: Law::AttractRepel {
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
                law: Law::Gravity,
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
    }
    cases.extend(many::cases(block));
    cases
}

/// The large case, and the two steps, of `n` bodies under a law.
pub fn large_case(n: usize, law: Law) -> (Case, TwoSteps) {
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
pub(crate) fn cloud(n: usize) -> Bodies {
    altered(n, |_, _| {})
}

/// As [`cloud`], with bodies of one mass.
pub(crate) fn cloud_of_equal_masses(n: usize) -> Bodies {
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
            kind: Kind::Star,
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
