//! The orbit of a cluster's own frame: where its origin falls freely in the fields.
//!
//! Steps are those of Gauss' collocation: the acceleration is a polynomial of degree 7 in time that is
//! the field's at eight points of the step, which is order 16 at its end, and the position its double
//! integral, which is what backends evaluate. Steps depend on the orbit alone, so that it does not matter
//! how far it is known.

use std::fmt;
use std::sync::OnceLock;

use gpu_kernels::fields::elementary::{exp, ln};
use gpu_kernels::fields::orbit::{COEFFICIENTS, PIECE};

use super::{FieldFault, Figure};
use crate::vectors::axes;

#[cfg(test)]
mod tests;

/// Beginning of an orbit: position and velocity in the frame that the fields are in, in the units of the
/// run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Orbit {
    /// Position.
    pub position: [f64; 3],
    /// Velocity.
    pub velocity: [f64; 3],
    /// Time at which the origin is there: the start of the run.
    pub start: f64,
}

impl Orbit {
    /// The orbit that is at a position with a velocity when the run begins.
    pub fn new(position: [f64; 3], velocity: [f64; 3]) -> Self {
        Self {
            position,
            velocity,
            start: 0.0,
        }
    }

    /// The same orbit of a run that begins at this time.
    #[must_use]
    pub fn starting(self, start: f64) -> Self {
        Self { start, ..self }
    }

    pub(super) fn check(&self) -> Result<(), FieldFault> {
        let names = ["x", "y", "z", "vx", "vy", "vz"];
        let values = self.position.into_iter().chain(self.velocity);
        match names
            .into_iter()
            .zip(values)
            .find(|(_, value)| !value.is_finite())
        {
            None => Ok(()),
            Some((parameter, value)) => Err(FieldFault::OfOrbit { parameter, value }),
        }
    }
}

impl fmt::Display for Orbit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.position.map(Figure);
        let [vx, vy, vz] = self.velocity.map(Figure);
        write!(f, "from ({x}, {y}, {z}) with velocity ({vx}, {vy}, {vz})")
    }
}

/// Points of a step.
const POINTS: usize = COEFFICIENTS as usize - 2;

/// Coefficient of the highest Legendre polynomial in the acceleration, as a part of the largest
/// acceleration, that a step may have. The next, which is left out, is then some 10⁻¹³, and what it would
/// add to the position 10⁻¹⁶ of the orbit's size.
const TOLERANCE: f64 = 2e-11;

/// Most pieces of an orbit: some thousands of turns.
const MOST_PIECES: usize = 1 << 18;

/// Shortest step, as a part of the longest before: one that is shorter ends in a singularity.
const SHORTEST: f64 = 1e-12;

/// Most iterations of a step.
const ITERATIONS: usize = 40;

type Vector = [f64; 3];

/// An acceleration as a function of time and position.
pub(super) type Force<'a> = &'a mut dyn FnMut(f64, Vector) -> Vector;

/// An orbit, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Track {
    /// Numbers of the pieces before the start, the latest first, and of those after it.
    sides: [Vec<[f64; PIECE as usize]>; 2],
    ends: [End; 2],
    /// Times at which the force is not smooth, ascending.
    breaks: Vec<f64>,
}

/// An end of what is known.
#[derive(Clone, Copy, Debug)]
struct End {
    time: f64,
    x: Vector,
    v: Vector,
    /// Rounding errors of the sums.
    lost: [Vector; 2],
    /// The step to be tried next, positive; 0 before the first.
    step: f64,
    longest: f64,
}

impl Track {
    /// An orbit of which only the beginning is known, under a force that is not smooth at these times.
    pub(super) fn new(orbit: &Orbit, mut breaks: Vec<f64>) -> Self {
        breaks.sort_by(f64::total_cmp);
        breaks.dedup();
        let end = End {
            time: orbit.start,
            x: orbit.position,
            v: orbit.velocity,
            lost: [[0.0; 3]; 2],
            step: 0.0,
            longest: 0.0,
        };
        Self {
            sides: [vec![], vec![]],
            ends: [end; 2],
            breaks,
        }
    }

    /// First and last time that is known.
    pub(super) fn span(&self) -> [f64; 2] {
        self.ends.map(|end| end.time)
    }

    /// Gets to know it from one time to another, and more at once where that is much.
    ///
    /// # Errors
    /// If it cannot be followed there.
    pub(super) fn extend(&mut self, from: f64, to: f64, force: Force) -> Result<(), FieldFault> {
        for (side, time) in [(0, from), (1, to)] {
            let sign = if side == 0 { -1.0 } else { 1.0 };
            let is_short = |track: &Self| (time - track.ends[side].time) * sign >= 0.0;
            if !is_short(self) {
                continue;
            }
            let more = self.sides[side].len();
            while is_short(self) {
                self.grow(side, sign, force)?;
            }
            // Nobody needs these yet: where they end does not matter.
            while self.sides[side].len() < 2 * more && self.grow(side, sign, force).is_ok() {}
        }
        Ok(())
    }

    /// As backends take it: [`gpu_kernels::fields::orbit`].
    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> {
        let [before, after] = &self.sides;
        let count = before.len() + after.len();
        let pieces = before.iter().rev().chain(after).flatten().copied();
        std::iter::once(count as f64).chain(pieces)
    }

    /// Adds a piece on a side.
    fn grow(&mut self, side: usize, sign: f64, force: Force) -> Result<(), FieldFault> {
        let end = self.ends[side];
        let ended = |why| FieldFault::OrbitEnds {
            time: end.time,
            position: end.x,
            why,
        };
        if self.sides.iter().map(Vec::len).sum::<usize>() >= MOST_PIECES {
            return Err(ended("it has too many turns until then"));
        }
        let ahead = |&&time: &&f64| (time - end.time) * sign > 0.0;
        let next_break = match side {
            0 => self.breaks.iter().rev().find(ahead),
            _ => self.breaks.iter().find(ahead),
        };
        let left = next_break.map_or(f64::INFINITY, |time| (time - end.time).abs());
        let mut wanted = match end.step {
            0.0 => first_step(&end, force(end.time, end.x)),
            step => step,
        };
        loop {
            // None is left that is much shorter than the others.
            let is_cut = wanted * 1.1 >= left;
            let to = match (is_cut, next_break) {
                (true, Some(&time)) => time,
                _ => end.time + sign * wanted,
            };
            let h = to - end.time;
            let is_too_short = h.abs() < SHORTEST * end.longest || end.time + 0.5 * h == end.time;
            if is_too_short || !to.is_finite() {
                return Err(ended(
                    "the fields are singular there, or not smooth, or have no number",
                ));
            }
            let (factor, step) = match Step::taken(&end, h, force) {
                Some(step) => (step.factor(), Some(step)),
                None => (0.2, None),
            };
            let Some(step) = step.filter(|_| factor >= 0.9) else {
                wanted = h.abs() * factor;
                continue;
            };
            let next = h.abs() * factor;
            self.sides[side].push(step.piece(&end, to, h));
            self.ends[side] = End {
                time: to,
                step: if is_cut { next.max(wanted) } else { next },
                longest: end.longest.max(h.abs()),
                ..step.end(&end, h)
            };
            return Ok(());
        }
    }
}

/// A guess of the first step, from what is there.
fn first_step(end: &End, a: Vector) -> f64 {
    let length = |v: Vector| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let (x, v, a) = (length(end.x), length(end.v), length(a));
    let times = [v / a, (x / a).sqrt(), x / v];
    let least = times
        .into_iter()
        .filter(|time| time.is_normal())
        .fold(f64::INFINITY, f64::min);
    if least.is_finite() { 0.1 * least } else { 1.0 }
}

/// Polynomials of Legendre on 0 … 1, at the points of Gauss.
struct Gauss {
    /// The points.
    at: [f64; POINTS],
    /// Coefficient n of a function is the sum of its values times row n.
    project: [[f64; POINTS]; POINTS],
    /// Double integrals from 0 to each point, a row for each polynomial.
    twice: [[f64; POINTS]; POINTS],
    /// Coefficients of powers, a row for each polynomial.
    powers: [[f64; POINTS]; POINTS],
}

impl Gauss {
    fn get() -> &'static Self {
        static GAUSS: OnceLock<Gauss> = OnceLock::new();
        GAUSS.get_or_init(Self::new)
    }

    fn new() -> Self {
        // Value and derivative on −1 … 1 by the recurrence.
        let legendre = |n: usize, x: f64| {
            let (mut before, mut value) = (1.0, x);
            for k in 2..=n {
                let k = k as f64;
                (before, value) = (
                    value,
                    ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k,
                );
            }
            match n {
                0 => [1.0, 0.0],
                _ => [value, n as f64 * (x * value - before) / (x * x - 1.0)],
            }
        };
        let mut at = [0.0; POINTS];
        let mut weights = [0.0; POINTS];
        for i in 0..POINTS / 2 {
            // Chebyshev's points are near; Newton's method does the rest.
            let i_of = (i as f64 + 0.75) / (POINTS as f64 + 0.5);
            let mut x = 1.0 - 2.0 * i_of * i_of * (3.0 - 2.0 * i_of);
            for _ in 0..100 {
                let [value, slope] = legendre(POINTS, x);
                x -= value / slope;
            }
            let [_, slope] = legendre(POINTS, x);
            let weight = 1.0 / ((1.0 - x * x) * slope * slope);
            at[i] = 0.5 * (1.0 - x);
            at[POINTS - 1 - i] = 0.5 * (1.0 + x);
            (weights[i], weights[POINTS - 1 - i]) = (weight, weight);
        }
        let mut powers = [[0.0; POINTS]; POINTS];
        for (n, powers) in powers.iter_mut().enumerate() {
            // (−1)^(n+k) C(n, k) C(n+k, k)
            let mut coefficient = if n % 2 == 0 { 1.0 } else { -1.0 };
            for (k, power) in powers.iter_mut().enumerate().take(n + 1) {
                *power = coefficient;
                coefficient *= -(((n - k) * (n + k + 1)) as f64) / ((k + 1) * (k + 1)) as f64;
            }
        }
        let mut gauss = Self {
            at,
            project: [[0.0; POINTS]; POINTS],
            twice: [[0.0; POINTS]; POINTS],
            powers,
        };
        for (n, powers) in powers.iter().enumerate() {
            for i in 0..POINTS {
                let [value, _] = legendre(n, 2.0 * at[i] - 1.0);
                gauss.project[n][i] = (2 * n + 1) as f64 * weights[i] * value;
                let of_power = |k: usize| powers[k] / ((k + 1) * (k + 2)) as f64;
                let mut sum = 0.0;
                for k in (0..=n).rev() {
                    sum = sum * at[i] + of_power(k);
                }
                gauss.twice[n][i] = sum * at[i] * at[i];
            }
        }
        gauss
    }
}

/// A step: coefficients of the acceleration by polynomials of Legendre.
struct Step {
    acceleration: [Vector; POINTS],
}

impl Step {
    /// The step from an end by a time h, if it can be found.
    fn taken(end: &End, h: f64, force: Force) -> Option<Self> {
        let gauss = Gauss::get();
        let mut values = [force(end.time, end.x); POINTS];
        let mut places = [end.x; POINTS];
        let mut before = f64::INFINITY;
        for _ in 0..ITERATIONS {
            let acceleration = std::array::from_fn(|n| {
                axes(|axis| {
                    (0..POINTS)
                        .map(|i| gauss.project[n][i] * values[i][axis])
                        .sum()
                })
            });
            let step = Self { acceleration };
            let (mut change, mut size) = (0.0_f64, 0.0_f64);
            for i in 0..POINTS {
                let t = h * gauss.at[i];
                let place: Vector = axes(|axis| {
                    let twice: f64 = (0..POINTS)
                        .map(|n| gauss.twice[n][i] * step.acceleration[n][axis])
                        .sum();
                    end.x[axis] + (t * end.v[axis] + (h * h * twice + end.lost[0][axis]))
                });
                for axis in 0..3 {
                    change = change.max((place[axis] - places[i][axis]).abs());
                    size = size.max(place[axis].abs());
                }
                places[i] = place;
                values[i] = force(end.time + t, place);
            }
            if !values.iter().flatten().all(|value| value.is_finite()) {
                return None;
            }
            // As near as rounding lets it come.
            let is_near = change <= 1e-13 * size;
            if change <= 2.0 * f64::EPSILON * size || (is_near && change >= before) {
                return Some(step);
            }
            before = change;
        }
        None
    }

    /// Ratio of the next step to this one; below 0.9 this one was too long.
    fn factor(&self) -> f64 {
        let size = |v: Vector| v.iter().fold(0.0_f64, |size, v| size.max(v.abs()));
        let sizes = self.acceleration.map(size);
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        // One of two neighbours may vanish by symmetry.
        let last = sizes[POINTS - 1].max(sizes[POINTS - 2] / 64.0);
        let ratio = last / largest / TOLERANCE;
        if ratio > 1e-6 {
            (0.95 * exp(-ln(ratio) / (POINTS - 1) as f64)).clamp(0.2, 2.0)
        } else {
            2.0
        }
    }

    /// The numbers of a piece that leads to a time.
    fn piece(&self, end: &End, to: f64, h: f64) -> [f64; PIECE as usize] {
        let gauss = Gauss::get();
        let mut piece = [0.0; PIECE as usize];
        [piece[0], piece[1], piece[2]] = [end.time.min(to), end.time, h];
        for (axis, numbers) in piece[3..].chunks_mut(COEFFICIENTS as usize).enumerate() {
            (numbers[0], numbers[1]) = (end.x[axis], h * end.v[axis]);
            for k in 0..POINTS {
                let of_power: f64 = (k..POINTS)
                    .map(|n| gauss.powers[n][k] * self.acceleration[n][axis])
                    .sum();
                numbers[k + 2] = h * h * of_power / ((k + 1) * (k + 2)) as f64;
            }
        }
        piece
    }

    /// Position and velocity after it.
    fn end(&self, end: &End, h: f64) -> End {
        let mut next = *end;
        for axis in 0..3 {
            let [mean, slope] = [0, 1].map(|n| self.acceleration[n][axis]);
            // Higher polynomials do not contribute to integrals over the whole step.
            let way =
                h * end.v[axis] + (h * h * (0.5 * mean - slope / 6.0) + h * end.lost[1][axis]);
            let sums = [(end.x[axis], way), (end.v[axis], h * mean)];
            let [(x, lost_x), (v, lost_v)] = [0, 1].map(|k| {
                let (sum, more) = sums[k];
                let more = more + end.lost[k][axis];
                let next = sum + more;
                (next, more - (next - sum))
            });
            (next.x[axis], next.v[axis]) = (x, v);
            (next.lost[0][axis], next.lost[1][axis]) = (lost_x, lost_v);
        }
        next
    }
}
