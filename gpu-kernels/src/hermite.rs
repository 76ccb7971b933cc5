//! THE formulas of Hermite's scheme of fourth order: predictor, corrector and step criterion from
//! accelerations and jerks. The CPU path and the kernels advance bodies through this file (Makino &
//! Aarseth 1992, PASJ 44, 141).

use cuda_std::GpuFloat;

/// State of a body at the beginning of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beginning<R> {
    /// Position.
    pub x: [R; 3],
    /// Velocity.
    pub v: [R; 3],
    /// Acceleration.
    pub a: [R; 3],
    /// Jerk, the derivative of the acceleration in time.
    pub j: [R; 3],
}

impl<R: GpuFloat> Beginning<R> {
    /// Position and velocity after `dt` by Taylor's series, to third and to second order.
    #[inline(always)]
    pub fn predicted(&self, dt: R) -> [[R; 3]; 2] {
        let Self { x, v, a, j } = self;
        let (half, third) = (dt / R::from_f64(2.0), dt / R::from_f64(3.0));
        [
            each(|k| x[k] + dt * (v[k] + half * (a[k] + third * j[k]))),
            each(|k| v[k] + dt * (a[k] + half * j[k])),
        ]
    }

    /// Position and velocity of fourth order after `dt`, from acceleration and jerk of the predicted
    /// state.
    #[inline(always)]
    pub fn corrected(&self, dt: R, a1: [R; 3], j1: [R; 3]) -> [[R; 3]; 2] {
        let Self { x, v, a, j } = self;
        let (half, twelfth) = (dt / R::from_f64(2.0), dt * dt / R::from_f64(12.0));
        let v1 = each(|k| v[k] + (half * (a[k] + a1[k]) + twelfth * (j[k] - j1[k])));
        let x1 = each(|k| x[k] + (half * (v[k] + v1[k]) + twelfth * (a[k] - a1[k])));
        [x1, v1]
    }
}

impl Beginning<f64> {
    /// `√(η (|a||a″| + |j|²) / (|j||a‴| + |a″|²))` at the end of a step, from the polynomial
    /// through accelerations and jerks at both ends: Aarseth (1985), derivatives by Makino &
    /// Aarseth (1992, eqs. 5 to 7). Infinite for a body without acceleration, and NaN where numbers
    /// overflowed.
    ///
    /// In f64 also where bodies are f32: differences of nearly equal vectors over dt³.
    #[inline(always)]
    pub fn next_step(&self, eta: f64, dt: f64, a1: [f64; 3], j1: [f64; 3]) -> f64 {
        let Self { a, j, .. } = self;
        let third = each(|k| (12.0 * (a[k] - a1[k]) + 6.0 * dt * (j[k] + j1[k])) / (dt * dt * dt));
        let second = each(|k| {
            let at_beginning =
                (-6.0 * (a[k] - a1[k]) - dt * (4.0 * j[k] + 2.0 * j1[k])) / (dt * dt);
            at_beginning + dt * third[k]
        });
        let (a1, j1, second, third) = (norm(a1), norm(j1), norm(second), norm(third));
        let (upper, lower) = (a1 * second + j1 * j1, j1 * third + second * second);
        if upper == 0.0 && lower == 0.0 {
            f64::INFINITY
        } else {
            (eta * upper / lower).sqrt_exact()
        }
    }
}

/// A vector by its components; indices stay constants, and arrays in registers.
#[inline(always)]
fn each<R>(component: impl Fn(usize) -> R) -> [R; 3] {
    [component(0), component(1), component(2)]
}

#[inline(always)]
fn norm(v: [f64; 3]) -> f64 {
    (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt_exact()
}
