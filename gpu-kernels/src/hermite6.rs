//! THE formulas of Hermite's scheme of sixth order: what a step makes of accelerations, jerks and
//! snaps (Nitadori & Makino 2008, New Astron. 13, 498).

use cuda_std::GpuFloat;

/// What a step of a body begins from.
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
    /// Snap, its derivative.
    pub s: [R; 3],
    /// Crackle, its derivative: no force gives it, only the polynomial of the step before.
    pub c: [R; 3],
}

/// Derivatives of the acceleration at the end of a step, by the polynomial through accelerations,
/// jerks and snaps at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Derivatives<R> {
    /// The third.
    pub third: [R; 3],
    /// The fourth.
    pub fourth: [R; 3],
    /// The fifth.
    pub fifth: [R; 3],
}

impl<R: GpuFloat> Beginning<R> {
    /// Position, velocity and acceleration after `dt` by Taylor's series, to fifth, fourth and third
    /// order.
    #[inline(always)]
    pub fn predicted(&self, dt: R) -> [[R; 3]; 3] {
        let Self { x, v, a, j, s, c } = self;
        let over = |n: f64| dt * R::from_f64(1.0 / n);
        let (half, third, quarter, fifth) = (over(2.0), over(3.0), over(4.0), over(5.0));
        [
            each(|k| {
                let bend = a[k] + third * (j[k] + quarter * (s[k] + fifth * c[k]));
                x[k] + dt * (v[k] + half * bend)
            }),
            each(|k| v[k] + dt * (a[k] + half * (j[k] + third * (s[k] + quarter * c[k])))),
            each(|k| a[k] + dt * (j[k] + half * (s[k] + third * c[k]))),
        ]
    }

    /// Position and velocity of sixth order after `dt`, from acceleration, jerk and snap of what was
    /// predicted.
    #[inline(always)]
    pub fn corrected(&self, dt: R, [a1, j1, s1]: [[R; 3]; 3]) -> [[R; 3]; 2] {
        let Self { x, v, a, j, s, .. } = self;
        let half = dt * R::from_f64(0.5);
        let (tenth, hundred_twentieth) = (
            dt * dt * R::from_f64(0.1),
            dt * dt * dt * R::from_f64(1.0 / 120.0),
        );
        let v1 = each(|k| {
            let rest = hundred_twentieth * (s1[k] + s[k]) - tenth * (j1[k] - j[k]);
            v[k] + (half * (a1[k] + a[k]) + rest)
        });
        let x1 = each(|k| {
            let rest = hundred_twentieth * (j1[k] + j[k]) - tenth * (a1[k] - a[k]);
            x[k] + (half * (v1[k] + v[k]) + rest)
        });
        [x1, v1]
    }
}

impl Beginning<f64> {
    /// The higher derivatives at the end of a step.
    #[inline(always)]
    pub fn derivatives(&self, dt: f64, [a1, j1, s1]: [[f64; 3]; 3]) -> Derivatives<f64> {
        let Self { a, j, s, .. } = self;
        let half = 0.5 * dt;
        let inverse = 1.0 / half;
        let cube = inverse * inverse * inverse;
        let (fourth_power, fifth_power) = (cube * inverse, cube * inverse * inverse);
        // In units of half a step.
        let sum_j = |k: usize| (j1[k] + j[k]) * half;
        let difference_j = |k: usize| (j1[k] - j[k]) * half;
        let difference_s = |k: usize| (s1[k] - s[k]) * (half * half);
        let sum_s = |k: usize| (s1[k] + s[k]) * (half * half);
        // In the middle of the step; the fifth is the same all along.
        let third = |k: usize| {
            (0.75 * cube) * (5.0 * (sum_j(k) - (a1[k] - a[k])) - difference_s(k))
        };
        let fourth = |k: usize| (1.5 * fourth_power) * (sum_s(k) - difference_j(k));
        let fifth = each(|k| {
            (7.5 * fifth_power) * (3.0 * ((a1[k] - a[k]) - sum_j(k)) + difference_s(k))
        });
        Derivatives {
            third: each(|k| third(k) + half * (fourth(k) + (0.5 * half) * fifth[k])),
            fourth: each(|k| fourth(k) + half * fifth[k]),
            fifth,
        }
    }
}

impl Derivatives<f64> {
    /// `√η (A₁/A₄)^⅓` with `A_k² = |a⁽ᵏ⁻¹⁾||a⁽ᵏ⁺¹⁾| + |a⁽ᵏ⁾|²` at the end of a step, from acceleration,
    /// jerk and snap there: the criterion of Aarseth (1985) as Nitadori & Makino (2008)
    /// generalise it, with [η](crate::hermite::Beginning::next_step) as at fourth order. Infinite for
    /// a body that nothing pulls, and NaN where numbers overflowed.
    #[inline(always)]
    pub fn next_step(&self, eta: f64, [a1, j1, s1]: [[f64; 3]; 3]) -> f64 {
        let upper = norm(a1) * norm(s1) + square(j1);
        let lower = norm(self.third) * norm(self.fifth) + square(self.fourth);
        if upper == 0.0 && lower == 0.0 {
            f64::INFINITY
        } else {
            eta.sqrt_exact() * cube_root((upper / lower).sqrt_exact())
        }
    }
}

/// The step with which a body begins a run of either order, from acceleration, jerk and snap, before
/// there are higher derivatives: `√η` times the smaller of `|a|/|j|/100` and `√(|a|/|s|)/20`.
///
/// So short because neither quotient knows of derivatives yet to come: with a tenth of the first,
/// usual elsewhere, bodies whose jerk happens to be small begin with steps in which a Plummer sphere
/// of 16 384 loses a hundred times the energy that it loses in all of the next time unit. The second
/// one serves bodies at rest, which have no jerk.
#[inline(always)]
pub fn first_step(eta: f64, [a, j, s]: [[f64; 3]; 3]) -> f64 {
    let (a, j, s) = (norm(a), norm(j), norm(s));
    if a == 0.0 && j == 0.0 && s == 0.0 {
        return f64::INFINITY;
    }
    let by_jerk = 0.01 * (a / j);
    let by_snap = 0.05 * (a / s).sqrt_exact();
    // A NaN, of 0/0, is no bound.
    let least = if by_snap < by_jerk || by_jerk.is_nan() {
        by_snap
    } else {
        by_jerk
    };
    eta.sqrt_exact() * least
}

/// ∛x to the last place or two, by operations that round alike everywhere, of a number from 2⁻¹⁰²⁰ to
/// 2¹⁰²⁰, zero, infinity or a NaN.
#[inline(always)]
pub fn cube_root(x: f64) -> f64 {
    if !(x > 0.0 && x < f64::INFINITY) {
        return x; // zero, infinity, NaN; negative numbers do not come here
    }
    // x = m 8^q with m from 1 to 8.
    let exponent = (x.to_bits() >> 52) as i64 - 1023;
    let q = exponent.div_euclid(3);
    let m = x * power_of_two(-3 * q);
    // Within 6 % by a chord, and Halley's steps cube an error.
    let mut y = 0.15 * m + 0.9;
    for _ in 0..3 {
        let cube = y * y * y;
        y *= (cube + 2.0 * m) / (2.0 * cube + m);
    }
    y * power_of_two(q)
}

/// 2^exponent of a normal number.
#[inline(always)]
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A vector by its components; indices stay constants, and arrays in registers.
#[inline(always)]
fn each<R>(component: impl Fn(usize) -> R) -> [R; 3] {
    [component(0), component(1), component(2)]
}

#[inline(always)]
fn square(v: [f64; 3]) -> f64 {
    v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
}

#[inline(always)]
fn norm(v: [f64; 3]) -> f64 {
    square(v).sqrt_exact()
}
