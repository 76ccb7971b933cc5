//! A pair's mean field: the average over its orbit, minus the field of a point of its mass.
//!
//! A pair spread out along its orbit, each part as heavy as the time that the pair spends there, is a
//! ring at rest. Its field has no frequencies of the orbit: steps that feel it need not resolve them.
//! The quadrupole is for any masses; the octupole vanishes if both members have the same mass.

use std::ops::{Add, Mul};

use super::ks::{Pair, reduced_mass};
use super::vector::{Vector, add_scaled, dot, scale};

use crate::vectors::axes;

/// Quadrupole and octupole of a pair, averaged over its Kepler orbit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ring {
    /// Tensor Q = μ⟨x x⟩ of the reduced mass μ (times G), as xx, xy, xz, yy, yz, zz.
    quadrupole: [f64; 6],
    /// 5/4 a³ μ (m₂ − m₁)/(m₁ + m₂), or 0.
    octupole: f64,
    /// Eccentricity vector.
    eccentricity: Vector,
    /// Unit vector across the orbit.
    normal: Vector,
}

/// A number that changes with time: its value and two derivatives.
#[derive(Clone, Copy)]
struct Series([f64; 3]);

impl Series {
    /// A power of a number that is not 0.
    fn power(self, exponent: f64) -> Self {
        let Self([x, first, second]) = self;
        let (value, rate) = (x.powf(exponent), first / x);
        let bend = second / x + (exponent - 1.0) * rate * rate;
        Self([value, exponent * value * rate, exponent * value * bend])
    }
}

impl Add for Series {
    type Output = Self;

    fn add(self, Self(other): Self) -> Self {
        Self([0, 1, 2].map(|k| self.0[k] + other[k]))
    }
}

impl Mul<f64> for Series {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self(self.0.map(|x| factor * x))
    }
}

impl Mul for Series {
    type Output = Self;

    fn mul(self, Self([y, y1, y2]): Self) -> Self {
        let Self([x, x1, x2]) = self;
        Self([x * y, x1 * y + x * y1, x2 * y + 2.0 * x1 * y1 + x * y2])
    }
}

/// Terms of the octupole at a place: W = k D⁻⁷ E S, with E = e⃗ · D, S = A E² + B Z² + C D².
struct Octupole {
    /// B of S: factor of the square of Z = n̂ · D.
    across: f64,
    /// C of S.
    square: f64,
}

/// A of S.
const ALONG: f64 = 35.0 / 4.0;

impl Ring {
    /// The quadrupole of a pair with `reduced_mass` (times G); none if the pair is unbound.
    ///
    /// The error is of the order of the square of (size/distance) if the members have the same
    /// mass, and of the order of size/distance otherwise: see [`Self::of_members`].
    pub(crate) fn new(pair: &Pair, reduced_mass: f64) -> Option<Self> {
        if pair.beta.is_nan() || pair.beta <= 0.0 {
            return None;
        }
        let a = pair.semi_major_axis();
        let e = pair.eccentricity_vector();
        let momentum = pair.angular_momentum();
        let square = dot(momentum, momentum);
        // A straight line has no normal, and needs none: 1 − e² is its factor.
        let normal = scale(1.0 / (square + f64::MIN_POSITIVE).sqrt(), momentum);
        // μ a² [½ (1 − e²)(1 − n̂ n̂) + 5/2 e⃗ e⃗]: no direction of e⃗ is needed for a circle.
        let along = 2.5 * reduced_mass * a * a;
        let across = 0.5 * reduced_mass * a * a * (square / (pair.mu * a));
        let term = |i: usize, j: usize| {
            let identity = if i == j { 1.0 } else { 0.0 };
            across * (identity - normal[i] * normal[j]) + along * e[i] * e[j]
        };
        Some(Self {
            quadrupole: [
                term(0, 0),
                term(0, 1),
                term(0, 2),
                term(1, 1),
                term(1, 2),
                term(2, 2),
            ],
            octupole: 0.0,
            eccentricity: e,
            normal,
        })
    }

    /// Quadrupole and octupole of a pair with these masses (times G) of the first and the second
    /// member; none if the pair is unbound.
    pub(crate) fn of_members(pair: &Pair, masses: [f64; 2]) -> Option<Self> {
        let [first, second] = masses;
        let sum = first + second;
        let reduced = reduced_mass(masses);
        let ring = Self::new(pair, reduced)?;
        let a = pair.semi_major_axis();
        Some(Self {
            octupole: 1.25 * a * a * a * reduced * (first - second) / sum,
            ..ring
        })
    }

    /// All that it is, as numbers.
    pub(crate) fn numbers(&self) -> [f64; 13] {
        let mut numbers = [0.0; 13];
        numbers[..6].copy_from_slice(&self.quadrupole);
        numbers[6] = self.octupole;
        numbers[7..10].copy_from_slice(&self.eccentricity);
        numbers[10..].copy_from_slice(&self.normal);
        numbers
    }

    /// The ring that has these [numbers](Self::numbers).
    pub(crate) fn of_numbers(numbers: [f64; 13]) -> Self {
        let [a, b, c, d, e, f, octupole, ex, ey, ez, nx, ny, nz] = numbers;
        Self {
            quadrupole: [a, b, c, d, e, f],
            octupole,
            eccentricity: [ex, ey, ez],
            normal: [nx, ny, nz],
        }
    }

    /// Q times a vector.
    #[inline]
    fn times(&self, d: Vector) -> Vector {
        let [xx, xy, xz, yy, yz, zz] = self.quadrupole;
        [
            xx * d[0] + xy * d[1] + xz * d[2],
            xy * d[0] + yy * d[1] + yz * d[2],
            xz * d[0] + yz * d[1] + zz * d[2],
        ]
    }

    #[inline]
    fn trace(&self) -> f64 {
        self.quadrupole[0] + self.quadrupole[3] + self.quadrupole[5]
    }

    fn octupole(&self) -> Octupole {
        let square = dot(self.eccentricity, self.eccentricity);
        Octupole {
            across: -3.75 * (1.0 - square),
            square: 0.75 - 6.0 * square,
        }
    }

    /// Potential of a unit mass at `d` from the pair's centre of mass, without the point mass's.
    pub(crate) fn potential(&self, d: Vector) -> f64 {
        let square = dot(d, d);
        let inverse = 1.0 / square;
        let third = inverse * inverse.sqrt();
        let mut sum = -0.5 * third * (3.0 * dot(d, self.times(d)) * inverse - self.trace());
        if self.octupole != 0.0 {
            let of = self.octupole();
            let (e, z) = (dot(self.eccentricity, d), dot(self.normal, d));
            let s = ALONG * e * e + of.across * z * z + of.square * square;
            sum += self.octupole * third * inverse * inverse * e * s;
        }
        sum
    }

    /// Acceleration of a body at `d` from the pair's centre of mass, without the point mass's.
    ///
    /// The centre of mass has −m/M times it, with m of the body and M of the pair.
    pub(crate) fn acceleration(&self, d: Vector) -> Vector {
        self.acceleration_and_jerk(d, [0.0; 3]).0
    }

    /// Acceleration, and its derivative for a body that moves at `u` = dd/dt.
    pub(crate) fn acceleration_and_jerk(&self, d: Vector, u: Vector) -> (Vector, Vector) {
        let (qd, qu) = (self.times(d), self.times(u));
        let inverse = 1.0 / dot(d, d);
        let fifth = inverse * inverse * inverse.sqrt();
        let seventh = fifth * inverse;
        let (q, du, uq, trace) = (dot(d, qd), dot(d, u), dot(u, qd), self.trace());
        let radial = 1.5 * trace * fifth - 7.5 * q * seventh;
        let acceleration = add_scaled(scale(3.0 * fifth, qd), radial, d);
        let change =
            -7.5 * trace * du * seventh - 15.0 * uq * seventh + 52.5 * q * du * seventh * inverse;
        let jerk = add_scaled(scale(3.0 * fifth, qu), -15.0 * du * seventh, qd);
        let jerk = add_scaled(add_scaled(jerk, radial, u), change, d);
        if self.octupole == 0.0 {
            return (acceleration, jerk);
        }
        self.add_octupole(d, u, seventh, (acceleration, jerk))
    }

    /// Second derivative of the acceleration, for a body at `d` that moves at `u` = dd/dt with `w` = du/dt.
    pub(crate) fn snap(&self, [d, u, w]: [Vector; 3]) -> Vector {
        let place = axes(|k| Series([d[k], u[k], w[k]]));
        let along = |v: Vector| place[0] * v[0] + place[1] * v[1] + place[2] * v[2];
        let product = |of: [Series; 3]| place[0] * of[0] + place[1] * of[1] + place[2] * of[2];
        let qd = axes(|k| {
            let mut axis = [0.0; 3];
            axis[k] = 1.0;
            along(self.times(axis)) // a row of Q
        });
        let (q, square) = (product(qd), product(place));
        let (fifth, seventh) = (square.power(-2.5), square.power(-3.5));
        let radial = fifth * (1.5 * self.trace()) + q * seventh * -7.5;
        let mut all = axes(|k| fifth * qd[k] * 3.0 + radial * place[k]);
        if self.octupole != 0.0 {
            let Octupole { across, square: of } = self.octupole();
            let (e, z) = (along(self.eccentricity), along(self.normal));
            let s = e * e * ALONG + z * z * across + square * of;
            let (f, g) = (s + e * e * (2.0 * ALONG), e * z * (2.0 * across));
            let h = e * (2.0 * of) + e * s * square.power(-1.0) * -7.0;
            for (k, sum) in all.iter_mut().enumerate() {
                let slope = f * self.eccentricity[k] + g * self.normal[k] + h * place[k];
                *sum = *sum + seventh * slope * -self.octupole;
            }
        }
        all.map(|Series([_, _, second])| second)
    }

    /// Adds −∇W of the octupole and its derivative.
    fn add_octupole(
        &self,
        d: Vector,
        u: Vector,
        seventh: f64,
        (acceleration, jerk): (Vector, Vector),
    ) -> (Vector, Vector) {
        let Octupole { across, square } = self.octupole();
        let (vector, normal) = (self.eccentricity, self.normal);
        let (dd, du) = (dot(d, d), dot(d, u));
        let (e, z, e1, z1) = (
            dot(vector, d),
            dot(normal, d),
            dot(vector, u),
            dot(normal, u),
        );
        let s = ALONG * e * e + across * z * z + square * dd;
        let s1 = 2.0 * (ALONG * e * e1 + across * z * z1 + square * du);
        // ∇W/(k D⁻⁷) = f e⃗ + g n̂ + h D; a 1 marks derivatives.
        let f = s + 2.0 * ALONG * e * e;
        let f1 = s1 + 4.0 * ALONG * e * e1;
        let g = 2.0 * across * e * z;
        let g1 = 2.0 * across * (e1 * z + e * z1);
        let h = 2.0 * square * e - 7.0 * e * s / dd;
        let h1 = 2.0 * square * e1 - 7.0 * (e1 * s + e * s1) / dd + 14.0 * e * s * du / (dd * dd);
        let combined =
            |f: f64, g: f64, h: f64| add_scaled(add_scaled(scale(f, vector), g, normal), h, d);
        let (slope, factor) = (combined(f, g, h), -self.octupole * seventh);
        let mut change = add_scaled(combined(f1, g1, h1), h, u);
        change = add_scaled(change, -7.0 * du / dd, slope);
        (
            add_scaled(acceleration, factor, slope),
            add_scaled(jerk, factor, change),
        )
    }
}

#[cfg(test)]
mod tests;
