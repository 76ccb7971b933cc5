//! Three to eight bodies as a chain, with time transformed so that close encounters are regular.
//!
//! Vectors from body to body along a chain of near neighbours keep small distances exact next to
//! large ones (Mikkola & Aarseth 1993, Celest. Mech. 57, 439). Leapfrog in the logarithmic
//! Hamiltonian moves two bodies exactly on their conic section (Mikkola & Tanikawa 1999, MNRAS 310,
//! 745; Preto & Tremaine 1999, AJ 118, 2532). It is extrapolated until its error is small: steps of
//! fixed length lose the energy where three bodies meet.

use super::composition::Scheme;
use super::extrapolation::{ROWS, Table, substeps};
use super::vector::{Vector, add, add_scaled, difference, dot, norm};

mod leapfrog;
mod order;

use leapfrog::Path;
use order::order;

/// Bodies of a chain at most.
pub(crate) const CAPACITY: usize = 8;

/// Relative error of each vector of a chain in a step.
pub(crate) const TOLERANCE: f64 = 1e-11;

/// Bodies in the order of a chain, about their centre of mass.
///
/// All fields are state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chain {
    /// Number of bodies.
    pub(crate) count: usize,
    /// Numbers of the bodies, as they were given, along the chain.
    pub(crate) order: [usize; CAPACITY],
    /// Masses, times G, along the chain.
    pub(crate) masses: [f64; CAPACITY],
    /// Positions of the next bodies from the bodies.
    pub(crate) links: [Vector; CAPACITY],
    /// Velocities of the next bodies relative to the bodies.
    pub(crate) rates: [Vector; CAPACITY],
    /// Potential minus kinetic energy (times G), integrated: perturbers change it.
    pub(crate) binding: f64,
    /// Time.
    pub(crate) time: f64,
    /// Interval of the transformed time that is tried next.
    pub(crate) step: f64,
}

/// Accelerations of a chain's bodies by what is outside.
pub(crate) trait External {
    /// False if there are none: then nothing is asked.
    const ANY: bool = true;

    /// Adds accelerations of bodies at `positions` from their centre of mass. Bodies are in the order
    /// in which they were given to the chain. An acceleration that all have in common does nothing.
    fn accelerations(&mut self, time: f64, positions: &[Vector], accelerations: &mut [Vector]);
}

/// No accelerations from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone;

impl External for Alone {
    const ANY: bool = false;

    fn accelerations(&mut self, _: f64, _: &[Vector], _: &mut [Vector]) {}
}

impl<F: FnMut(f64, &[Vector], &mut [Vector])> External for F {
    fn accelerations(&mut self, time: f64, positions: &[Vector], accelerations: &mut [Vector]) {
        self(time, positions, accelerations);
    }
}

/// A chain that no step advances within its tolerance. It stays at the last time that it reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stuck {
    /// That time.
    pub(crate) time: f64,
}

/// Numbers that are extrapolated: links, rates, time passed and binding energy.
const LENGTH: usize = 6 * (CAPACITY - 1) + 2;

/// Halvings of a step before a chain is stuck.
const HALVINGS: u32 = 60;

/// Part of an extrapolated step below which a step that ends an advance is composed, without any
/// estimate of its error: extrapolation would measure rounding.
const SHORT: f64 = 0.03;

/// Part of an extrapolated step below which leapfrog alone has no error.
const TINY: f64 = 1e-5;

/// Steps at most that end an advance exactly at its time.
const LAST_STEPS: u32 = 30;

/// Positions or velocities about the centre of mass.
type Bodies = [Vector; CAPACITY];

impl Chain {
    /// A chain of bodies with these masses (times G). None unless there are 2 to 8 bodies, as many
    /// positions and velocities, positive masses, finite numbers, and no two bodies at one place.
    pub(crate) fn new(
        time: f64,
        masses: &[f64],
        positions: &[Vector],
        velocities: &[Vector],
    ) -> Option<Self> {
        let count = masses.len();
        let lengths = [positions.len(), velocities.len()];
        if !(2..=CAPACITY).contains(&count) || lengths != [count; 2] {
            return None;
        }
        let order = order(positions);
        let mut chain = Self {
            count,
            order,
            masses: [0.0; CAPACITY],
            links: [[0.0; 3]; CAPACITY],
            rates: [[0.0; 3]; CAPACITY],
            binding: 0.0,
            time,
            step: 0.0,
        };
        for k in 0..count {
            chain.masses[k] = masses[order[k]];
        }
        for k in 0..count - 1 {
            let (i, j) = (order[k], order[k + 1]);
            chain.links[k] = difference(positions[j], positions[i]);
            chain.rates[k] = difference(velocities[j], velocities[i]);
        }
        chain.binding = chain.potential().0 - chain.kinetic();
        chain.step = chain.first_step();
        let is_sound = masses.iter().all(|&m| m > 0.0)
            && [chain.binding, chain.step, time]
                .iter()
                .all(|x| x.is_finite());
        is_sound.then_some(chain)
    }

    /// Positions from the centre of mass, in the order in which bodies were given.
    pub(crate) fn positions(&self) -> Bodies {
        self.unordered(self.place(&self.links))
    }

    /// Velocities relative to the centre of mass, in the order in which bodies were given.
    pub(crate) fn velocities(&self) -> Bodies {
        self.unordered(self.place(&self.rates))
    }

    /// Kinetic and potential energy about the centre of mass, times G.
    pub(crate) fn energy(&self) -> f64 {
        self.kinetic() - self.potential().0
    }

    /// Largest distance of two bodies.
    pub(crate) fn size(&self) -> f64 {
        let positions = self.place(&self.links);
        let mut size = 0.0_f64;
        for i in 0..self.count {
            for j in i + 1..self.count {
                size = size.max(norm(self.between(&positions, i, j)));
            }
        }
        size
    }

    /// Place along the chain of the longest link: the chain falls apart behind this body.
    pub(crate) fn longest_link(&self) -> usize {
        let mut longest = 0;
        for k in 1..self.count - 1 {
            if norm(self.links[k]) > norm(self.links[longest]) {
                longest = k;
            }
        }
        longest
    }

    /// Numbers of the bodies along the chain.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order[..self.count]
    }

    /// Moves to a later or earlier time with a relative error of each step. It goes on while a function of the states
    /// before and after each step is true. A step after which it is false is taken back, and the chain stays where this step
    /// began. Returns the number of forces that it took.
    ///
    /// # Errors
    ///
    /// The chain is stuck if a step does not converge however short it is.
    pub(crate) fn advance(
        &mut self,
        end: f64,
        tolerance: f64,
        external: &mut impl External,
        mut goes_on: impl FnMut(&Self, &Self) -> bool,
    ) -> Result<u32, Stuck> {
        let (begin, span) = (self.time, end - self.time);
        if !span.is_finite() {
            return Err(Stuck { time: begin });
        }
        // Time passed since the beginning: it keeps digits that the time has not.
        let mut passed = 0.0;
        let mut forces = 0;
        let mut last_steps = 0;
        // The last interval with an error within the tolerance.
        let mut proven = 0.0;
        loop {
            let left = span - passed;
            if left.abs() <= 2.0 * f64::EPSILON * span.abs() {
                break;
            }
            let wanted = self.interval(left);
            let direction = if left > 0.0 { 1.0 } else { -1.0 };
            let h = direction * wanted.abs().min(self.step);
            let (before, state) = (passed, *self);
            if h.abs() < SHORT * proven {
                let is_tiny = h.abs() < TINY * proven;
                let scheme = if is_tiny {
                    Scheme::Second
                } else {
                    Scheme::Sixth
                };
                passed += self.composed(h, scheme, external, &mut forces);
                last_steps += 1;
            } else {
                let (time, h) = self.extrapolated(h, tolerance, external, &mut forces)?;
                passed += time;
                proven = h.abs();
            }
            self.time = begin + passed;
            // Towards a collision of three, steps become shorter and shorter.
            if passed == before || last_steps > LAST_STEPS {
                return Err(Stuck { time: self.time });
            }
            if !goes_on(&state, self) {
                *self = state;
                return Ok(forces);
            }
            self.reorder();
        }
        self.time = end;
        Ok(forces)
    }

    /// The transformed time in which `time` passes, from the potential and its derivative.
    fn interval(&self, time: f64) -> f64 {
        let (potential, slope) = self.potential();
        let change = 0.5 * slope * time;
        // A correction beyond a half of the whole corrects nothing.
        time * (potential + change.max(-0.5 * potential).min(0.5 * potential))
    }

    /// A first step: an eighth of the orbit of the pair with the shortest period.
    fn first_step(&self) -> f64 {
        let (x, v) = (self.place(&self.links), self.place(&self.rates));
        let (mut shortest, mut step) = (f64::INFINITY, f64::NAN);
        for i in 0..self.count {
            for j in i + 1..self.count {
                let (d, u) = (self.between(&x, i, j), difference(v[j], v[i]));
                let (mass, r) = (self.masses[i] + self.masses[j], norm(d));
                let beta = 2.0 * mass / r - dot(u, u);
                let a = if beta > 0.0 { (mass / beta).min(r) } else { r };
                let time = a * (a / mass).sqrt();
                if time < shortest {
                    shortest = time;
                    let product = self.masses[i] * self.masses[j];
                    step = core::f64::consts::FRAC_PI_4 * product * (a / mass).sqrt();
                }
            }
        }
        step
    }

    /// Number of bodies, which the compiler sees to be within the arrays.
    #[inline]
    fn count(&self) -> usize {
        self.count.min(CAPACITY)
    }

    /// Bodies about their centre of mass from vectors along the chain.
    #[inline]
    fn place(&self, vectors: &Bodies) -> Bodies {
        let mut bodies = [[0.0; 3]; CAPACITY];
        let (mut centre, mut mass) = ([0.0; 3], self.masses[0]);
        for k in 1..self.count() {
            bodies[k] = add(bodies[k - 1], vectors[k - 1]);
            centre = add_scaled(centre, self.masses[k], bodies[k]);
            mass += self.masses[k];
        }
        for body in &mut bodies[..self.count()] {
            *body = add_scaled(*body, -1.0 / mass, centre);
        }
        bodies
    }

    fn unordered(&self, along: Bodies) -> Bodies {
        let mut bodies = [[0.0; 3]; CAPACITY];
        for (&body, vector) in self.order().iter().zip(along) {
            bodies[body] = vector;
        }
        bodies
    }

    /// Position of body `j` from body `i` before it, along the chain where that is short.
    #[inline]
    fn between(&self, positions: &Bodies, i: usize, j: usize) -> Vector {
        match j - i {
            1 => self.links[i],
            2 => add(self.links[i], self.links[i + 1]),
            _ => difference(positions[j], positions[i]),
        }
    }

    #[inline]
    fn kinetic(&self) -> f64 {
        let velocities = self.place(&self.rates);
        let mut sum = 0.0;
        for (mass, velocity) in self.masses.iter().zip(&velocities).take(self.count()) {
            sum += mass * dot(*velocity, *velocity);
        }
        0.5 * sum
    }

    /// Potential energy, without its sign, and its derivative in time.
    fn potential(&self) -> (f64, f64) {
        let (x, v) = (self.place(&self.links), self.place(&self.rates));
        let (mut sum, mut slope) = (0.0, 0.0);
        for i in 0..self.count() {
            for j in i + 1..self.count() {
                let (d, u) = (self.between(&x, i, j), difference(v[j], v[i]));
                let inverse = 1.0 / dot(d, d);
                let term = self.masses[i] * self.masses[j] * inverse.sqrt();
                sum += term;
                slope -= term * inverse * dot(d, u);
            }
        }
        (sum, slope)
    }

    /// A step composed of leapfrogs. Returns the time that passes.
    fn composed(
        &mut self,
        h: f64,
        scheme: Scheme,
        external: &mut impl External,
        forces: &mut u32,
    ) -> f64 {
        let mut path = Path::new(self);
        for stage in scheme.stages() {
            path.leapfrog(h * stage, 1, external);
            *forces += 1;
        }
        let changes = path.changes;
        self.add(&changes);
        changes[0]
    }

    /// A step of at most the interval `h`, extrapolated until its error is within the tolerance.
    /// Returns the time that passes, and the interval.
    fn extrapolated(
        &mut self,
        h: f64,
        tolerance: f64,
        external: &mut impl External,
        forces: &mut u32,
    ) -> Result<(f64, f64), Stuck> {
        let mut h = h;
        for halvings in 0..HALVINGS {
            let mut table = Table::new();
            for row in 0..ROWS {
                let mut path = Path::new(self);
                path.leapfrog(h, substeps(row), external);
                *forces += substeps(row) as u32;
                table.add(&path.changes, 2 + 6 * (self.count() - 1));
                let Some([best, before]) = table.best_two().filter(|_| row >= 2) else {
                    continue;
                };
                let error = self.error(best, before);
                if error.is_nan() || error >= tolerance {
                    continue;
                }
                self.add(best);
                let passed = best[0];
                let growth = match row {
                    0..6 => 1.4,
                    6..8 => 1.0,
                    _ => 0.8,
                };
                // A short step, which ends an advance, may tell nothing about longer ones.
                let next = h.abs() * growth;
                let is_short = h.abs() < self.step && halvings == 0;
                if !is_short || row >= 6 || next > self.step {
                    self.step = next;
                }
                return Ok((passed, h));
            }
            h *= 0.5;
        }
        Err(Stuck { time: self.time })
    }

    /// Difference of two results: the largest of all vectors, each relative to the vector.
    fn error(&self, best: &[f64; LENGTH], before: &[f64; LENGTH]) -> f64 {
        let relative = |first: usize, vector: Vector| {
            let (mut square, mut change) = (f64::MIN_POSITIVE, 0.0);
            for x in 0..3 {
                let (a, b) = (best[first + x], before[first + x]);
                square += (vector[x] + a) * (vector[x] + a);
                change += (a - b) * (a - b);
            }
            change / square
        };
        let mut error = (best[0] - before[0]) / best[0];
        error *= error;
        for k in 0..self.count() - 1 {
            let link = relative(2 + 6 * k, self.links[k]);
            let rate = relative(5 + 6 * k, self.rates[k]);
            for of in [link, rate] {
                // Unlike the maximum, NaN stays.
                let is_worst = error.is_nan() || of <= error;
                error = if is_worst { error } else { of };
            }
        }
        error.sqrt()
    }

    /// Adds changes to the state.
    fn add(&mut self, changes: &[f64; LENGTH]) {
        self.time += changes[0];
        self.binding += changes[1];
        for k in 0..self.count() - 1 {
            for x in 0..3 {
                self.links[k][x] += changes[2 + 6 * k + x];
                self.rates[k][x] += changes[5 + 6 * k + x];
            }
        }
    }
}

#[cfg(test)]
mod tests;
