//! Fields at points, held against sums in double precision that share no line with the kernels.

use rayon::prelude::*;

use super::{Case, place};
use allpairs::backend::ForceError;
use allpairs::bodies::Bodies;
use allpairs::diagnostics::{CompensatedSum, tolerance};
use allpairs::frame::Frame;
use allpairs::machine::{KernelAtPoints, Machine};
use allpairs::physics::{ForceLaw, Physics};
use allpairs::variants::preferred::ForceAccuracy;
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::points::QuantityName;

/// Most points of a case: the reference takes its time.
const MOST_POINTS: usize = 4096;

/// Bodies, and points where their field is known.
#[derive(Clone, Debug)]
pub struct CaseAtPoints {
    /// Name of the case.
    pub name: String,
    bodies: Bodies,
    physics: Physics,
    points: Vec<[f64; 3]>,
    expected: Vec<Expected>,
}

/// A number that is expected, and two sums that errors of a computed one are measured by.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    value: CompensatedSum,
    /// Sizes of the terms, or of the parts that they are computed from.
    scale: f64,
    /// How much an error in the separations matters, at most.
    gradient: f64,
}

impl Sum {
    fn add(&mut self, term: f64, scale: f64, gradient: f64) {
        self.value.add(term);
        self.scale += scale.abs();
        self.gradient += gradient.abs();
    }
}

/// Numbers that are expected at a point.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    /// Acceleration, and then potential.
    field: [Sum; 4],
    /// Tidal tensor: xx, yy, zz, xy, xz, yz.
    tides: [Sum; 6],
    /// Largest coordinate of a body or this point, from the centre of the bodies, or more.
    reach: f64,
}

/// Places of the numbers of a tidal tensor.
const TENSOR: [(usize, usize); 6] = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];

impl Expected {
    fn at(bodies: &Bodies, physics: &Physics, point: [f64; 3]) -> Self {
        let mut expected = Self::default();
        for body in bodies.iter() {
            let r = [0, 1, 2].map(|axis| body.position[axis] - point[axis]);
            let square = r.iter().map(|x| x * x).sum::<f64>();
            let d = (square + physics.softening * physics.softening).sqrt();
            if d == 0.0 {
                continue;
            }
            let weight = physics.coupling() * physics.weight(body.mass);
            let [first, second, third] = [weight / d, weight / d / d, weight / d / d / d];
            for (axis, sum) in expected.field[..3].iter_mut().enumerate() {
                sum.add(
                    second * (r[axis] / d),
                    second * (square.sqrt() / d),
                    2.0 * third,
                );
            }
            expected.field[3].add(-first, first, second);
            for (&(a, b), sum) in TENSOR.iter().zip(&mut expected.tides) {
                let isotropic = if a == b { third } else { 0.0 };
                let term = 3.0 * third * (r[a] / d) * (r[b] / d) - isotropic;
                // A derivative is at most 3 (2 + 5) of the product, and 3 of the other.
                sum.add(term, 4.0 * third, 24.0 * third / d);
            }
        }
        expected
    }

    fn of(&self, quantity: QuantityName) -> &[Sum] {
        match quantity {
            QuantityName::Field => &self.field,
            QuantityName::Tides => &self.tides,
        }
    }
}

impl CaseAtPoints {
    /// The bodies of a case, and points on them, between them and beside them; none where forces depend on
    /// the target, or bodies are several systems.
    pub fn of(case: &Case, points: usize) -> Option<Self> {
        let gravity = !matches!(case.physics.law, ForceLaw::AttractRepel { .. });
        if case.systems > 1 || !gravity {
            return None;
        }
        let (bodies, n) = (&case.bodies, case.bodies.len());
        let frame = Frame::of(bodies, &case.physics);
        let position = |i: usize| bodies.body(i % n).position;
        let points = (0..points).map(|i| match i % 3 {
            0 => frame.position_from_local(place(i + 3 * n).map(|x| 1.5 * x)),
            1 => position(i),
            _ => {
                let (a, b) = (position(i), position(i + 1));
                [0, 1, 2].map(|axis| 0.5 * a[axis] + 0.5 * b[axis])
            }
        });
        let points: Vec<_> = points.collect();
        let mut expected: Vec<_> = points
            .par_iter()
            .map(|&point| Expected::at(bodies, &case.physics, point))
            .collect();
        // Of bodies at one place, the points alone say which lengths matter.
        let alone = frame.extent(bodies) == 0.0 && case.physics.softening == 0.0;
        let at = |points: &[[f64; 3]]| Bodies::at_rest(points, &vec![0.0; points.len()]);
        let everything: Bodies = bodies.iter().chain(at(&points).iter()).collect();
        let whole = Frame::of(&everything, &case.physics).length;
        for (expected, &point) in expected.iter_mut().zip(&points) {
            let far = frame.extent(&at(&[point]));
            expected.reach = far.max(if alone { whole } else { frame.length });
        }
        Some(Self {
            name: format!("{}, {} points", case.name, points.len()),
            bodies: bodies.clone(),
            physics: case.physics,
            points,
            expected,
        })
    }

    /// As [`of`](Self::of) of each case where there are such points: one for some, for others more than the
    /// bodies.
    pub fn of_all(cases: &[Case]) -> Vec<Self> {
        let number = |k: usize, case: &Case| match k % 4 {
            0 => 1,
            _ => (case.bodies.len() + 5).min(MOST_POINTS),
        };
        let cases = cases.iter().enumerate();
        cases
            .filter_map(|(k, case)| Self::of(case, number(k, case)))
            .collect()
    }

    /// Values that a kernel computes, in rows, and the kernel that did.
    fn compute(
        &self,
        machine: &Machine,
        kernel: &KernelAtPoints,
    ) -> Result<(Vec<Vec<f64>>, KernelAtPoints), ForceError> {
        let (bodies, physics, points) = (&self.bodies, &self.physics, &self.points[..]);
        Ok(match kernel.quantity {
            QuantityName::Field => {
                let found = machine.field_at(bodies, physics, points, kernel.accuracy())?;
                let (accelerations, potentials) = found.values;
                let rows = accelerations.iter().zip(&potentials);
                let rows = rows.map(|(&[x, y, z], &potential)| vec![x, y, z, potential]);
                (rows.collect(), found.kernel)
            }
            QuantityName::Tides => {
                let found = machine.tides_at(bodies, physics, points, kernel.accuracy())?;
                let row = |tensor: &[[f64; 3]; 3]| TENSOR.map(|(a, b)| tensor[a][b]).to_vec();
                (found.values.iter().map(row).collect(), found.kernel)
            }
        })
    }

    /// Checks each value against what rounding explains.
    fn check(&self, rows: &[Vec<f64>], kernel: &KernelAtPoints) -> Result<(), String> {
        let rounding = kernel.precision.unit_roundoff();
        // Within a tile; those over tiles and slices are in f64, and so is what they are judged by.
        let n = self.bodies.len();
        let tile = kernel.quantity.tile() as usize;
        let over_tiles = (n.div_ceil(tile) + n) as f64 * Precision::F64.unit_roundoff();
        let additions = n.min(tile);
        // As of a force: see `bounds::pair_ulps`. Tides have 1/√ five times where that has it three times.
        let ulps = match kernel.quantity {
            QuantityName::Field => 43.5,
            QuantityName::Tides => 87.0,
        };
        let allowed = tolerance(rounding, additions, ulps) + over_tiles;
        for (k, (row, expected)) in rows.iter().zip(&self.expected).enumerate() {
            for (c, (found, sum)) in row.iter().zip(expected.of(kernel.quantity)).enumerate() {
                // √3 times what each coordinate of a point and of a body is off by: u of the reach, and
                // half of that in the units of a frame.
                let position_error = 3.0 * rounding * expected.reach;
                let bound = allowed * sum.scale + position_error * sum.gradient;
                let error = (found - sum.value.value()).abs();
                if error.is_nan() || error > bound {
                    return Err(format!(
                        "number {c} at point {k} is off by {error:e}; rounding explains no more than {bound:e}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Root mean square and largest of the errors of the points' values, each relative to those expected.
    fn errors(&self, rows: &[Vec<f64>], quantity: QuantityName) -> [f64; 2] {
        let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (mut squares, mut most) = (0.0, 0.0_f64);
        for (row, expected) in rows.iter().zip(&self.expected) {
            let values: Vec<f64> = expected
                .of(quantity)
                .iter()
                .map(|s| s.value.value())
                .collect();
            let errors: Vec<f64> = row.iter().zip(&values).map(|(a, b)| a - b).collect();
            let error = norm(&errors) / norm(&values);
            squares += error * error;
            most = if error > most || error.is_nan() {
                error
            } else {
                most
            };
        }
        [(squares / rows.len() as f64).sqrt(), most]
    }
}

/// Verdict on a kernel for points.
#[derive(Debug)]
pub struct VerdictAtPoints {
    /// The cases that it failed, and why.
    pub failures: Vec<(String, String)>,
    /// Root mean square of the errors in the last case, relative.
    pub rms_relative: f64,
    /// The largest of them.
    pub max_relative: f64,
}

/// Error that a kernel for points states: root mean square, relative.
pub fn stated_at_points(kernel: &KernelAtPoints) -> f64 {
    match kernel.accuracy() {
        ForceAccuracy::Fast | ForceAccuracy::Single => 1e-6,
        ForceAccuracy::Double => 1e-13,
    }
}

/// Judges a kernel on a device by these cases, the last of which gives the statistics.
///
/// # Errors
/// If it cannot run at all. A fault or a wrong value is a failed case.
///
/// # Panics
/// If there is no case.
pub fn judge_at_points(
    machine: &Machine,
    kernel: &KernelAtPoints,
    cases: &[CaseAtPoints],
) -> Result<VerdictAtPoints, ForceError> {
    let mut failures = vec![];
    let mut errors = [f64::INFINITY; 2];
    for case in cases {
        let why = match case.compute(machine, kernel) {
            Ok((rows, by)) => {
                errors = case.errors(&rows, kernel.quantity);
                case.check(&rows, &by).err()
            }
            Err(ForceError::Kernel(fault)) => Some(fault.to_string()),
            Err(error) => return Err(error),
        };
        failures.extend(why.map(|why| (case.name.clone(), why)));
    }
    let last = cases.last().expect("at least one case");
    let ([rms_relative, max_relative], stated) = (errors, stated_at_points(kernel));
    if rms_relative.is_nan() || rms_relative > stated {
        let why =
            format!("the errors are {rms_relative:.1e} (root mean square), {stated:.0e} stated");
        failures.push((last.name.clone(), why));
    }
    Ok(VerdictAtPoints {
        failures,
        rms_relative,
        max_relative,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::cloud;

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
            case.bodies.mass[missing] = 0.0; // but not of what is expected
            for kernel in KernelAtPoints::OF_DEVICES {
                let verdict = judge_at_points(&Machine::emulator(0), &kernel, &[case.clone()]);
                let failures = verdict.expect("runs").failures;
                let each = |(_, why): &(_, String)| why.contains("rounding explains no more");
                assert!(failures.iter().any(each), "{} {missing}", kernel.name);
            }
        }
    }
}
