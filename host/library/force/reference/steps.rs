//! Hermite's schemes, from the polynomials that they are made of.
//!
//! A step takes the acceleration, its jerk and, of sixth order, its snap at both ends. One polynomial in time has all of
//! them. The velocity changes by the integral of that polynomial. The position changes by the integral of the polynomial
//! that has the velocity and its derivatives at both ends.
//!
//! # Source
//! Makino & Aarseth (1992), PASJ 44, 141. Nitadori & Makino (2008), New Astronomy 13, 498.

use gpu_kernels::schedule::block_steps::{Begun, Ended, Moving, Scheme, StepAccuracy};

use crate::vectors::axes;

/// The scheme of fourth or of sixth order.
#[derive(Clone, Copy, Debug)]
pub(in crate::force) enum Interpolated<const ORDER: u32> {}

impl<const ORDER: u32> Scheme for Interpolated<ORDER> {
    const ORDER: u32 = ORDER;

    fn predicted(begun: &Begun, dt: f64) -> Moving {
        let Begun { x, v, a, j, s, c } = begun;
        let derivatives = [x, v, a, j, s, c];
        [0, 1, 2].map(|order| {
            axes(|axis| {
                let terms = derivatives[order..].iter().zip(0..);
                let term = |(vector, k): (&&[f64; 3], i32)| {
                    vector[axis] * dt.powi(k) / factorial(k as usize)
                };
                terms.map(term).sum()
            })
        })
    }

    fn ended(
        begun: &Begun,
        dt: f64,
        accuracy: StepAccuracy,
        of_prediction: [[f64; 3]; 3],
    ) -> Ended {
        let Begun { v, a, j, s, .. } = *begun;
        let count = ORDER as usize / 2;
        let [a1, j1, s1] = of_prediction;
        let [mut x, mut v1] = [begun.x, v];
        // The second to the fifth derivative of the acceleration, at the end.
        let mut higher = [[0.0; 3]; 4];
        for axis in 0..3 {
            let component = |vectors: [[f64; 3]; 3]| vectors.map(|vector| vector[axis]);
            let ends = [component([a, j, s]), component([a1, j1, s1])];
            let acceleration = Polynomial::through(ends.map(|end| end[..count].to_vec()), dt);
            v1[axis] += acceleration.integral();
            let ends = [component([v, a, j]), component([v1, a1, j1])];
            let velocity = Polynomial::through(ends.map(|end| end[..count].to_vec()), dt);
            x[axis] += velocity.integral();
            for (vector, order) in higher.iter_mut().zip(2..) {
                vector[axis] = acceleration.derivative_at_end(order);
            }
        }
        let [second, third, fourth, fifth] = higher;
        let is_sixth = ORDER == 6;
        Ended {
            x,
            v: v1,
            crackle: if is_sixth { third } else { [0.0; 3] },
            allowed: match is_sixth {
                true => sixth_allows(accuracy.eta, [a1, j1, s1, third, fourth, fifth]),
                false => fourth_allows(accuracy.eta, [a1, j1, second, third]),
            },
        }
    }
}

/// Criterion of Aarseth (1985), from the acceleration and its first three derivatives.
fn fourth_allows(eta: f64, derivatives: [[f64; 3]; 4]) -> f64 {
    let [a, j, s, c] = derivatives.map(length);
    match (a * s + j * j, j * c + s * s) {
        (0.0, 0.0) => f64::INFINITY,
        (upper, lower) => (eta * upper / lower).sqrt(),
    }
}

/// Criterion of Nitadori & Makino (2008), from the acceleration and its first five derivatives. Steps that are too short
/// are not believed: [`gpu_kernels::hermite6::Derivatives::next_step`] says why.
fn sixth_allows(eta: f64, derivatives: [[f64; 3]; 6]) -> f64 {
    let [a, j, s, third, fourth, fifth] = derivatives.map(length);
    let upper = (a * s + j * j).sqrt();
    let lower = (third * fifth + fourth * fourth).sqrt();
    match (upper, lower) {
        (0.0, 0.0) => f64::INFINITY,
        _ => {
            let (wanted, least) = ((upper / lower).cbrt(), upper / s / 100.0);
            // A NaN, of 0/0, is no bound.
            eta.sqrt() * if wanted < least { least } else { wanted }
        }
    }
}

/// A polynomial in time over a step, by its coefficients of powers of the part of the step that is done.
struct Polynomial {
    coefficients: Vec<f64>,
    step: f64,
}

impl Polynomial {
    /// The polynomial that has these values and derivatives at the beginning and at the end of a step, as many at both:
    /// Newton's, by divided differences.
    fn through(ends: [Vec<f64>; 2], step: f64) -> Self {
        let count = ends[0].len();
        let node = |i: usize| i / count; // 0 for the beginning, 1 for the end
        let mut differences: Vec<f64> = (0..2 * count).map(|i| ends[node(i)][0]).collect();
        let mut newton = vec![];
        while let Some(&first) = differences.first() {
            newton.push(first);
            let order = newton.len();
            let difference = |i: usize| match (node(i), node(i + order)) {
                (from, to) if from == to => {
                    ends[from][order] * step.powi(order as i32) / factorial(order)
                }
                _ => differences[i + 1] - differences[i],
            };
            differences = (0..differences.len() - 1).map(difference).collect();
        }
        let mut coefficients = vec![0.0; 2 * count];
        for (i, term) in newton.into_iter().enumerate().rev() {
            // Times the distance from the node, plus the term.
            for k in (0..2 * count).rev() {
                let below = if k == 0 { term } else { coefficients[k - 1] };
                coefficients[k] = below - node(i) as f64 * coefficients[k];
            }
        }
        Self { coefficients, step }
    }

    /// Integral over the step.
    fn integral(&self) -> f64 {
        let terms = self.coefficients.iter().zip(1..);
        self.step
            * terms
                .map(|(term, power)| term / f64::from(power))
                .sum::<f64>()
    }

    /// Derivative in time of this order, at the end of the step.
    fn derivative_at_end(&self, order: usize) -> f64 {
        let powers = self.coefficients.iter().enumerate().skip(order);
        let sum: f64 = powers
            .map(|(k, term)| term * factorial(k) / factorial(k - order))
            .sum();
        sum / self.step.powi(order as i32)
    }
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

fn length(v: [f64; 3]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}
