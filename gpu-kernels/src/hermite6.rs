//! THE formulas of Hermite's scheme of sixth order: what a step makes of accelerations, jerks and
//! snaps (Nitadori & Makino 2008, New Astron. 13, 498).

use cuda_std::GpuFloat;

/// Beginning of a body's step.
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
        let third =
            |k: usize| (0.75 * cube) * (5.0 * (sum_j(k) - (a1[k] - a[k])) - difference_s(k));
        let fourth = |k: usize| (1.5 * fourth_power) * (sum_s(k) - difference_j(k));
        let fifth =
            each(|k| (7.5 * fifth_power) * (3.0 * ((a1[k] - a[k]) - sum_j(k)) + difference_s(k)));
        Derivatives {
            third: each(|k| third(k) + half * (fourth(k) + (0.5 * half) * fifth[k])),
            fourth: each(|k| fourth(k) + half * fifth[k]),
            fifth,
        }
    }

    /// The most that rounding makes of the third, fourth and fifth of the [derivatives](Self::derivatives), if forces and
    /// their derivatives are rounded by `unit` of themselves.
    #[inline(always)]
    pub fn rounding(&self, dt: f64, [a1, j1, s1]: [[f64; 3]; 3], unit: f64) -> [f64; 3] {
        let half = 0.5 * dt;
        let inverse = 1.0 / half;
        let cube = inverse * inverse * inverse;
        // Of two of each, in units of half a step.
        let of_both = |one, other| unit * (norm(one) + norm(other));
        let a = of_both(self.a, a1);
        let j = of_both(self.j, j1) * half;
        let s = of_both(self.s, s1) * (half * half);
        let fifth = 7.5 * cube * inverse * inverse * (3.0 * (a + j) + s);
        let fourth = 1.5 * cube * inverse * (s + j);
        let third = 0.75 * cube * (5.0 * (j + a) + s);
        [
            third + half * (fourth + 0.5 * half * fifth),
            fourth + half * fifth,
            fifth,
        ]
    }
}

impl Derivatives<f64> {
    /// These derivatives, each shorter by what [rounding](Beginning::rounding) may have made of it.
    #[inline(always)]
    #[must_use]
    pub fn beyond(self, [third, fourth, fifth]: [f64; 3]) -> Self {
        let beyond = |v: [f64; 3], rounding: f64| {
            let length = norm(v);
            if length > rounding {
                each(|k| v[k] * (1.0 - rounding / length))
            } else {
                [0.0; 3]
            }
        };
        Self {
            third: beyond(self.third, third),
            fourth: beyond(self.fourth, fourth),
            fifth: beyond(self.fifth, fifth),
        }
    }

    /// `√η (A₁/A₄)^⅓` with `A_k² = |a⁽ᵏ⁻¹⁾||a⁽ᵏ⁺¹⁾| + |a⁽ᵏ⁾|²` at the end of a step, from acceleration,
    /// jerk and snap there: the criterion of Aarseth (1985) as Nitadori & Makino (2008) generalise it,
    /// with [η](crate::hermite::Beginning::next_step) as at fourth order. Infinite for a body that
    /// nothing pulls, and NaN where numbers overflowed.
    ///
    /// Fourth and fifth derivatives are differences over dt⁴ and dt⁵. Of forces that are rounded they
    /// are noise if the step is short, which asks for a step still shorter: steps would run away to
    /// nothing. So what is far below the time in which the acceleration changes, `√η A₁/|s|/100`, is
    /// not believed.
    #[inline(always)]
    pub fn next_step(&self, eta: f64, [a1, j1, s1]: [[f64; 3]; 3]) -> f64 {
        let upper = norm(a1) * norm(s1) + square(j1);
        let lower = norm(self.third) * norm(self.fifth) + square(self.fourth);
        if upper == 0.0 && lower == 0.0 {
            return f64::INFINITY;
        }
        let root = eta.sqrt_exact();
        let wanted = root * cube_root((upper / lower).sqrt_exact());
        let least = 0.01 * root * (upper.sqrt_exact() / norm(s1));
        if wanted < least { least } else { wanted }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interaction::{add_with_snap, distance_squared, separation};
    use crate::numerics::{Exact, Fused, Numerics, Unsoftened};

    type Exactly = Numerics<f64, Fused, Exact, Unsoftened>;

    #[test]
    fn cube_roots() {
        let mut x = 1e-300;
        while x < 1e300 {
            let root = cube_root(x);
            assert!((root / x.cbrt() - 1.0).abs() <= 4.0 * f64::EPSILON, "{x:e}");
            x *= 7.3;
        }
        for x in [1.0, 8.0, 27.0, 1.0 / 64.0] {
            assert!((cube_root(x).powi(3) / x - 1.0).abs() <= 4.0 * f64::EPSILON);
        }
        assert_eq!(cube_root(0.0), 0.0);
        assert_eq!(cube_root(f64::INFINITY), f64::INFINITY);
        assert!(cube_root(f64::NAN).is_nan());
    }

    /// Polynomials that the scheme fits are met exactly: derivatives at the end, and prediction from
    /// the beginning.
    #[test]
    fn a_polynomial_is_what_it_fits() {
        // a(t) = Σ c_k t^k / k!, to fifth order.
        let c = [0.7, -1.3, 2.1, 0.4, -3.0, 5.0];
        let of = |order: usize, t: f64| {
            let mut sum = 0.0;
            let mut term = 1.0;
            for (k, c) in c[order..].iter().enumerate() {
                sum += c * term;
                term *= t / (k + 1) as f64;
            }
            [sum, -2.0 * sum, 0.5 * sum]
        };
        let dt = 0.3;
        let beginning = Beginning {
            x: [0.0; 3],
            v: [0.0; 3],
            a: of(0, 0.0),
            j: of(1, 0.0),
            s: of(2, 0.0),
            c: of(3, 0.0),
        };
        let end = [of(0, dt), of(1, dt), of(2, dt)];
        let found = beginning.derivatives(dt, end);
        for (found, order) in [(found.third, 3), (found.fourth, 4), (found.fifth, 5)] {
            for (found, expected) in found.into_iter().zip(of(order, dt)) {
                assert!(
                    (found - expected).abs() < 1e-9,
                    "{order}: {found} {expected}"
                );
            }
        }
        // With nothing beyond the crackle, Taylor's series is exact too.
        let still = Beginning {
            a: [0.0; 3],
            j: [0.0; 3],
            s: [0.0; 3],
            c: [6.0, 0.0, 0.0],
            ..beginning
        };
        let [x, v, a] = still.predicted(2.0).map(|v| v[0]);
        assert!((a - 8.0).abs() < 1e-12 && (v - 4.0).abs() < 1e-12 && (x - 1.6).abs() < 1e-12);
    }

    /// A body on an orbit about a fixed unit mass: the distance from where it should be falls with
    /// the sixth power of the step.
    #[test]
    fn the_order_is_six() {
        let pull = |x: [f64; 3], v: [f64; 3], a: [f64; 3]| {
            let [r, moving, pulled] = [x, v, a].map(|v| separation::<Exactly>(v, [0.0; 3]));
            let mut sums = [[0.0; 3]; 3];
            let square = distance_squared::<Exactly>(r, 0.0);
            add_with_snap::<Exactly>([r, moving, pulled], square, 1.0, &mut sums);
            sums
        };
        let end = |steps: u32| {
            // Half an orbit of eccentricity 0.3 from pericentre, whose apocentre is at 1.3.
            let dt = std::f64::consts::PI / f64::from(steps);
            let speed = (1.3_f64 / 0.7).sqrt();
            let (x, v) = ([0.7, 0.0, 0.0], [0.0, speed, 0.0]);
            // The snap needs the acceleration, and no more.
            let [a, ..] = pull(x, v, [0.0; 3]);
            let [a, j, s] = pull(x, v, a);
            let mut at = Beginning {
                x,
                v,
                a,
                j,
                s,
                c: [0.0; 3],
            };
            for _ in 0..steps {
                // Evaluated twice, so that the crackle's missing at first does not count.
                let [x, v, predicted] = at.predicted(dt);
                let forces = pull(x, v, predicted);
                let [x, v] = at.corrected(dt, forces);
                let [a, ..] = pull(x, v, [0.0; 3]);
                let forces = pull(x, v, a);
                let [x, v] = at.corrected(dt, forces);
                let [a, ..] = pull(x, v, [0.0; 3]);
                let ends = pull(x, v, a);
                let c = at.derivatives(dt, ends).third;
                let [a, j, s] = ends;
                at = Beginning { x, v, a, j, s, c };
            }
            (at.x[0] + 1.3).hypot(at.x[1])
        };
        let order = (end(32) / end(64)).log2();
        assert!((order - 6.0).abs() < 0.25, "{order}");
    }

    /// η = 1 gives a time in which a smooth motion changes, at any order of magnitude; bodies at rest
    /// and bodies that nothing pulls have a first step too.
    #[test]
    fn steps_go_with_the_time_in_which_things_change() {
        let step = |rate: f64| {
            // A circle: each derivative is `rate` times the one before.
            let of = |order: i32| [rate.powi(order), 0.0, 0.0];
            let derivatives = Derivatives {
                third: of(3),
                fourth: of(4),
                fifth: of(5),
            };
            derivatives.next_step(0.25, [of(0), of(1), of(2)])
        };
        for rate in [1e-3, 1.0, 1e5] {
            assert!((step(rate) * rate - 0.5).abs() < 1e-12, "{rate}");
        }
        // Noise in place of higher derivatives.
        let noise = Derivatives {
            third: [1.0, 0.0, 0.0],
            fourth: [1e30, 0.0, 0.0],
            fifth: [1e45, 0.0, 0.0],
        };
        let floor = 0.01 * 0.5 * 2.0_f64.sqrt();
        let kept = noise.next_step(0.25, [[1.0, 0.0, 0.0]; 3]);
        assert!((kept / floor - 1.0).abs() < 1e-12);
        let zero = [0.0; 3];
        assert_eq!(first_step(0.01, [zero; 3]), f64::INFINITY);
        let one = [1.0, 0.0, 0.0];
        assert!((first_step(0.25, [one, zero, one]) - 0.025).abs() < 1e-15);
        assert!((first_step(0.25, [one, one, zero]) - 0.005).abs() < 1e-15);
    }

    /// Higher derivatives of a motion that has none are rounding: never more than the bound, and sometimes a good part
    /// of it.
    #[test]
    fn rounding_is_known() {
        let (unit, dt) = (1e-7, 0.01);
        let mut seed = 1_u64;
        let mut rounded = |x: f64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let between = (seed >> 11) as f64 / (1_u64 << 53) as f64;
            x * (1.0 + unit * (2.0 * between - 1.0))
        };
        let mut largest = [0.0_f64; 3];
        for _ in 0..1000 {
            // a = 1 − 2 t + 300 t²/2 along one axis.
            let mut at = |t: f64| {
                [1.0 - 2.0 * t + 150.0 * t * t, 300.0 * t - 2.0, 300.0]
                    .map(|x| [rounded(x), 0.0, 0.0])
            };
            let ([a, j, s], end) = (at(0.0), at(dt));
            let begun = Beginning {
                x: [0.0; 3],
                v: [0.0; 3],
                a,
                j,
                s,
                c: [0.0; 3],
            };
            let rounding = begun.rounding(dt, end, unit);
            let found = begun.derivatives(dt, end);
            for (k, found) in [found.third, found.fourth, found.fifth].iter().enumerate() {
                assert!(norm(*found) <= rounding[k], "{k}: {found:?}");
                largest[k] = largest[k].max(norm(*found) / rounding[k]);
            }
            let beyond = found.beyond(rounding);
            assert_eq!(beyond.next_step(0.3, end), f64::INFINITY);
        }
        assert!(largest.iter().all(|&part| part > 0.4), "{largest:?}");
    }
}
