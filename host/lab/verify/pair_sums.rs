//! Sums over pairs and their derivatives, held against sums in double precision that share no line with the kernels.

use allpairs::backend::ForceError;
use allpairs::diagnostics::{CompensatedSum, tolerance};
use allpairs::force::cpu::gradients::Asked;
use allpairs::force::pair_sums::{Call, SumTask, SystemsShape};
use allpairs::machine::{KernelOfPairs, Machine};
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::pair_sums::SumName;
use rayon::prelude::*;

use super::place;

/// A number of rounding errors that a term has, at most: derivatives have 1/√ five times, and products of a dozen
/// factors.
const ULPS: f64 = 90.0;

/// Terms of a sum in the precision of the pairs, at most: a chunk of sources, where each pair is taken once.
const MOST_SUMMED: usize = 512;

/// A number that is expected, and two sums that errors of a computed one are measured by.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    value: CompensatedSum,
    /// Sizes of the terms, or of the parts that they are computed from.
    scale: f64,
    /// How much an error in the separations matters, at most.
    gradient: f64,
}

impl Expected {
    fn add(&mut self, term: f64, scale: f64, gradient: f64) {
        self.value.add(term);
        self.scale += scale.abs();
        self.gradient += gradient.abs();
    }
}

/// Independent systems of bodies, each with a vector and a number.
#[derive(Clone, Debug)]
pub struct CaseOfPairs {
    /// Name of the case.
    pub name: String,
    bodies: usize,
    positions: Vec<[f64; 3]>,
    masses: Vec<f64>,
    vectors: Vec<[f64; 3]>,
    numbers: Vec<f64>,
    softening: Vec<f64>,
    rates: Vec<f64>,
    /// A body that is left out of what is computed.
    left_out: Option<usize>,
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(&b).map(|(a, b)| a * b).sum()
}

fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

impl CaseOfPairs {
    /// `systems` of `bodies` each, in units of this length, far from the origin. Every fifth body has no mass.
    pub fn new(bodies: usize, systems: usize, softening: f64, length: f64) -> Self {
        let n = bodies * systems;
        let mass = |i: usize| match i % 5 {
            3 => 0.0,
            k => (1.0 + k as f64) / bodies as f64,
        };
        let vector = |i: usize| place(i + 3 * n).map(|x| 2.0 * x);
        let each = |unit: f64| {
            (0..systems)
                .map(|k| unit * (1.0 + 0.3 * k as f64))
                .collect()
        };
        let offset = [2.0, -1.0, 0.5];
        let position = |i: usize| {
            let local = place(i);
            [0, 1, 2].map(|axis| length * (local[axis] + offset[axis]))
        };
        Self {
            name: format!("{systems} × {bodies} bodies, ε = {softening} of {length:e}"),
            bodies,
            positions: (0..n).map(position).collect(),
            masses: (0..n).map(mass).collect(),
            vectors: (0..n).map(vector).collect(),
            numbers: (0..n).map(|i| place(i + 7 * n)[0]).collect(),
            softening: each(softening * length),
            rates: each(-0.7 * length),
            left_out: None,
        }
    }

    /// One body, few, several systems, several tiles, with and without softening, near 1 and in metres; the last one
    /// has `largest` bodies.
    pub fn all(largest: usize) -> Vec<Self> {
        vec![
            Self::new(1, 1, 0.1, 1.0),
            Self::new(2, 3, 0.0, 1.0),
            Self::new(33, 1, 0.0, 1.0),
            Self::new(33, 7, 0.05, 3e-12),
            Self::new(127, 2, 0.1, 1.0),
            Self::new(128, 2, 0.1, 3e17),
            Self::new(257, 3, 0.01, 1.0),
            Self::new(1025, 1, 0.0, 3e12),
            Self::new(largest, 1, 0.01, 1.0),
        ]
    }

    /// Leaves out a body's mass, vector and number, but not of what is expected of others.
    fn leave_out(&mut self, body: usize) {
        self.left_out = Some(body);
        self.masses[body] = 0.0;
        self.vectors[body] = [0.0; 3];
        self.numbers[body] = 0.0;
    }

    /// Numbers that are expected of a body, in the order of the results.
    fn expected(&self, sum: SumName, body: usize) -> Vec<Expected> {
        let components = match sum {
            SumName::Pull => 6,
            _ => sum.components() as usize,
        };
        let mut all = vec![Expected::default(); components];
        let system = body / self.bodies;
        let (softening, rate) = (self.softening[system], self.rates[system]);
        let (x, m, vector, number) = (
            self.positions[body],
            self.masses[body],
            self.vectors[body],
            self.numbers[body],
        );
        for other in system * self.bodies..(system + 1) * self.bodies {
            if other == body {
                continue;
            }
            let y = self.positions[other];
            let d = [0, 1, 2].map(|axis| y[axis] - x[axis]);
            let s = norm(d).hypot(softening);
            let (mass, theirs, number_there) =
                (self.masses[other], self.vectors[other], self.numbers[other]);
            // J w for a vector w, and how large its parts are.
            let turned = |w: [f64; 3]| {
                let along = dot(d, w) / s;
                [0, 1, 2].map(|axis| (w[axis] - 3.0 * along * (d[axis] / s)) / s / s / s)
            };
            let of_turned = |size: f64| 4.0 * size / s / s / s;
            let [second, third] = [1.0 / s / s, 1.0 / s / s / s];
            let fourth = third / s;
            match sum {
                SumName::Force => {
                    for axis in 0..3 {
                        let term = mass * second * (d[axis] / s);
                        all[axis].add(term, mass * second, 3.0 * mass * third);
                    }
                }
                SumName::Tangent => {
                    let w = [0, 1, 2].map(|axis| theirs[axis] - vector[axis]);
                    let size = norm(theirs) + norm(vector);
                    let turned = turned(w);
                    let of_softening = -3.0 * mass * softening * rate * fourth;
                    for axis in 0..3 {
                        let term = mass * turned[axis]
                            + (number_there * second + of_softening) * (d[axis] / s);
                        let scale = mass * of_turned(size)
                            + number_there.abs() * second
                            + of_softening.abs();
                        let gradient = (20.0 * mass * size * fourth)
                            + 3.0 * number_there.abs() * third
                            + 5.0 * of_softening.abs() / s;
                        all[axis].add(term, scale, gradient);
                    }
                }
                SumName::Pull | SumName::PullAll => {
                    let p = [0, 1, 2].map(|axis| m * theirs[axis] - mass * vector[axis]);
                    let size = m * norm(theirs) + mass * norm(vector);
                    let turned = turned(p);
                    for axis in 0..3 {
                        let force = mass * second * (d[axis] / s);
                        all[axis].add(force, mass * second, 3.0 * mass * third);
                        all[3 + axis].add(turned[axis], of_turned(size), 20.0 * size * fourth);
                    }
                    if sum == SumName::PullAll {
                        let by_mass = -dot(theirs, d) * third;
                        all[6].add(by_mass, norm(theirs) * second, 3.0 * norm(theirs) * third);
                        // Half of the pair's part in −3 ε Σ p·d/s⁵.
                        let by_softening = 1.5 * softening * (dot(p, d) / s) * fourth;
                        let scale = 1.5 * softening * size * fourth;
                        all[7].add(by_softening, scale, 6.0 * scale / s);
                    }
                }
                SumName::Potential => all[0].add(-mass / s, mass / s, mass * second),
                SumName::PotentialTangent => {
                    let w = [0, 1, 2].map(|axis| theirs[axis] - vector[axis]);
                    let size = norm(theirs) + norm(vector);
                    let approach = dot(d, w) + softening * rate;
                    let term = mass * approach * third - number_there / s;
                    let strength = mass * (size + (softening * rate / s).abs());
                    let scale = strength * second + number_there.abs() / s;
                    let gradient = 4.0 * strength * third + number_there.abs() * second;
                    all[0].add(term, scale, gradient);
                }
                SumName::PotentialPull => {
                    let weight = number * mass + number_there * m;
                    let size = number.abs() * mass + number_there.abs() * m;
                    for axis in 0..3 {
                        let term = -weight * second * (d[axis] / s);
                        all[axis].add(term, size * second, 3.0 * size * third);
                    }
                    all[3].add(-number_there / s, number_there / s, number_there * second);
                    let scale = 0.5 * softening * size * third;
                    all[4].add(0.5 * softening * weight * third, scale, 3.0 * scale / s);
                }
            }
        }
        all
    }

    fn call(&self, kernel: &KernelOfPairs) -> (Call, Vec<Vec<f64>>) {
        let all = Asked {
            masses: true,
            softening: true,
        };
        let pull = |asked| SumTask::Pull {
            asked,
            with_accelerations: true,
        };
        let vectors = self.vectors.clone().into_flattened();
        let begun = vec![
            self.positions.clone().into_flattened(),
            self.masses.clone(),
            self.softening.clone(),
        ];
        let direction = vec![vectors.clone(), self.numbers.clone(), self.rates.clone()];
        let (task, more) = match kernel.sum {
            SumName::Force => (SumTask::Accelerations, vec![]),
            SumName::Tangent => (SumTask::Tangent, direction),
            SumName::Pull => (pull(Asked::default()), vec![vectors]),
            SumName::PullAll => (pull(all), vec![vectors]),
            SumName::Potential => (SumTask::Potentials, vec![]),
            SumName::PotentialTangent => (SumTask::PotentialTangent, direction),
            SumName::PotentialPull => (SumTask::PotentialPull, vec![self.numbers.clone()]),
        };
        let shape = SystemsShape {
            systems: self.softening.len(),
            bodies: self.bodies,
        };
        let call = Call {
            task,
            shape,
            pairs: kernel.precision,
            arrays: Precision::F64,
            way: kernel.way,
        };
        (call, [begun, more].concat())
    }

    /// Expected numbers in the form of the results: numbers of each body, and sums of each system.
    fn expected_results(&self, sum: SumName) -> Vec<Vec<Expected>> {
        let bodies = 0..self.positions.len();
        let of_bodies: Vec<_> = bodies
            .into_par_iter()
            .map(|i| self.expected(sum, i))
            .collect();
        let columns = |range: std::ops::Range<usize>| {
            of_bodies
                .iter()
                .flat_map(|numbers| numbers[range.clone()].to_vec())
                .collect::<Vec<_>>()
        };
        let by_system = |component: usize| {
            let systems = of_bodies.chunks(self.bodies);
            let sum_of = |system: &[Vec<Expected>]| {
                let mut all = Expected::default();
                for numbers in system {
                    let one = numbers[component];
                    all.add(one.value.value(), one.scale, one.gradient);
                }
                all
            };
            systems.map(sum_of).collect::<Vec<_>>()
        };
        match sum {
            SumName::Force | SumName::Tangent => vec![columns(0..3)],
            SumName::Pull => vec![columns(0..3), columns(3..6)],
            SumName::PullAll => vec![columns(0..3), columns(3..6), columns(6..7), by_system(7)],
            SumName::Potential | SumName::PotentialTangent => vec![columns(0..1)],
            SumName::PotentialPull => vec![columns(0..3), columns(3..4), by_system(4)],
        }
    }

    /// Largest coordinate from the middle of the bodies, at most.
    fn reach(&self) -> f64 {
        let extent = |axis: usize| {
            let of = |f: fn(f64, f64) -> f64, start| {
                self.positions.iter().map(|x| x[axis]).fold(start, f)
            };
            of(f64::max, f64::NEG_INFINITY) - of(f64::min, f64::INFINITY)
        };
        let largest = (0..3).map(extent).fold(0.0, f64::max);
        largest.max(self.softening.iter().copied().fold(0.0, f64::max))
    }

    /// Checks each number against what rounding explains. Returns the root mean square and the largest of the errors of the
    /// last result with numbers of bodies. Both are relative to the root mean square of the expected numbers.
    fn check(
        &self,
        found: &[Vec<f64>],
        expected: &[Vec<Expected>],
        precision: Precision,
    ) -> Result<[f64; 2], String> {
        let rounding = precision.unit_roundoff();
        let over_tiles = (2 * self.bodies) as f64 * Precision::F64.unit_roundoff();
        let allowed = tolerance(rounding, self.bodies.min(MOST_SUMMED), ULPS) + over_tiles;
        // √3 times what each coordinate of two bodies is off by: u of the reach in the units of a frame, and in the
        // input of f64 too.
        let moved = 3.0 * rounding * self.reach();
        let mut statistics = [0.0; 2];
        for (result, (found, expected)) in found.iter().zip(expected).enumerate() {
            let errors = found.iter().zip(expected).map(|(a, b)| a - b.value.value());
            let errors: Vec<f64> = errors.collect();
            let width = errors.len() / self.positions.len();
            for (k, (error, expected)) in errors.iter().zip(expected).enumerate() {
                if width > 0 && self.left_out == Some(k / width) {
                    continue; // its own numbers say nothing about others
                }
                let bound = allowed * expected.scale + moved * expected.gradient;
                if error.is_nan() || error.abs() > bound {
                    return Err(format!(
                        "number {k} of result {result} is off by {error:e}; rounding explains no more than {bound:e}"
                    ));
                }
            }
            if expected.len() >= self.positions.len() {
                let mean = |numbers: &mut dyn Iterator<Item = f64>| {
                    (numbers.map(|x| x * x).sum::<f64>() / errors.len() as f64).sqrt()
                };
                let size = mean(&mut expected.iter().map(|expected| expected.value.value()));
                let most = errors
                    .iter()
                    .fold(0.0_f64, |most, error| most.max(error.abs()));
                statistics = [mean(&mut errors.iter().copied()), most].map(|error| error / size);
            }
        }
        Ok(statistics)
    }
}

/// Verdict on a kernel of sums over pairs.
#[derive(Debug)]
pub struct VerdictOfPairs {
    /// The cases that it failed, and why.
    pub failures: Vec<(String, String)>,
    /// Root mean square of the errors in the last case, relative to the root mean square of what is expected.
    pub rms_relative: f64,
    /// The largest of them.
    pub max_relative: f64,
}

/// Error that a kernel of sums over pairs states: root mean square, relative to the root mean square of the numbers.
pub fn stated_of_pairs(kernel: &KernelOfPairs) -> f64 {
    match kernel.precision {
        Precision::F64 => 1e-13,
        _ => 2e-6,
    }
}

/// Judges a kernel on a device by these cases, the last of which gives the statistics.
///
/// # Errors
/// If it cannot run at all. A fault or a wrong value is a failed case.
///
/// # Panics
/// If there is no case.
pub fn judge_pairs(
    machine: &Machine,
    kernel: &KernelOfPairs,
    cases: &[CaseOfPairs],
) -> Result<VerdictOfPairs, ForceError> {
    let expected = |case: &CaseOfPairs| case.expected_results(kernel.sum);
    let cases: Vec<_> = cases
        .iter()
        .map(|case| (case.clone(), expected(case)))
        .collect();
    judge_by(machine, kernel, &cases)
}

/// Like [`judge_pairs`], but a body of the last case is left out of what is computed.
///
/// # Errors
/// As [`judge_pairs`].
///
/// # Panics
/// If there is no such body.
pub fn judge_without(
    machine: &Machine,
    kernel: &KernelOfPairs,
    case: &CaseOfPairs,
    body: usize,
) -> Result<VerdictOfPairs, ForceError> {
    let expected = case.expected_results(kernel.sum);
    let mut case = case.clone();
    case.leave_out(body);
    judge_by(machine, kernel, &[(case, expected)])
}

fn judge_by(
    machine: &Machine,
    kernel: &KernelOfPairs,
    cases: &[(CaseOfPairs, Vec<Vec<Expected>>)],
) -> Result<VerdictOfPairs, ForceError> {
    let mut device = machine.pair_sums()?;
    let mut failures = vec![];
    let mut errors = [f64::INFINITY; 2];
    for (case, expected) in cases {
        let (call, arguments) = case.call(kernel);
        let why = match device.compute(&call, &arguments) {
            Ok(found) => match case.check(&found, expected, kernel.precision) {
                Ok(of_case) => {
                    errors = of_case;
                    None
                }
                Err(why) => Some(why),
            },
            Err(ForceError::Kernel(fault)) => Some(fault.to_string()),
            Err(error) => return Err(error),
        };
        failures.extend(why.map(|why| (case.name.clone(), why)));
    }
    let (last, _) = cases.last().expect("at least one case");
    let ([rms_relative, max_relative], stated) = (errors, stated_of_pairs(kernel));
    if rms_relative.is_nan() || rms_relative > stated {
        let why =
            format!("the errors are {rms_relative:.1e} (root mean square), {stated:.0e} stated");
        failures.push((last.name.clone(), why));
    }
    Ok(VerdictOfPairs {
        failures,
        rms_relative,
        max_relative,
    })
}
