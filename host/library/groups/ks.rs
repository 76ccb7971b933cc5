//! A pair of bodies in the variables of Kustaanheimo & Stiefel.
//!
//! Kepler motion is a rotation in these variables: one step of any length is exact, and collisions
//! are regular points (Kustaanheimo & Stiefel 1965, J. reine angew. Math. 218, 204; Stiefel &
//! Scheifele 1971, *Linear and Regular Celestial Mechanics*). Perturbers are kicks between
//! rotations. A weakly perturbed pair can be slowed down (Mikkola & Aarseth 1996, Celest. Mech. 64,
//! 197): it then makes fewer orbits, each under a perturbation as many times as strong.

use super::composition::Scheme;
use super::kepler::{Functions, Start};
use super::vector::{Vector, add_scaled, cross, dot, norm, scale};

/// Relative motion of two bodies, the second as seen from the first.
///
/// All fields are state. β is integrated rather than computed from u and p: 2μ/r − v² cancels at
/// pericentre, and would lose 3e-6 of the energy in 1e4 orbits of eccentricity 0.9999.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    /// Position u, of length √r.
    pub(crate) u: [f64; 4],
    /// Derivative du/ds, with dt = r ds.
    pub(crate) p: [f64; 4],
    /// β = μ/a, minus twice the energy of a unit of the reduced mass.
    pub(crate) beta: f64,
    /// Gravitational parameter μ: G times the sum of the masses.
    pub(crate) mu: f64,
    /// Time.
    pub(crate) time: f64,
    /// Interval of s that `advance` takes as a step. It is kept while β changes little: a step that
    /// follows each change of β would make the energy drift. 0 before the first.
    pub(crate) step: f64,
}

/// Accelerations of a pair's relative motion beyond the attraction of its members.
pub(crate) trait Perturbation {
    /// Acceleration of the second body minus acceleration of the first, with the second at `position`
    /// from the first. A slowed pair multiplies it itself.
    fn acceleration(&mut self, time: f64, position: Vector) -> Vector;

    /// Notes that the last acceleration acts for `weight` of time.
    ///
    /// Called once after each `acceleration`, with the same time and position. Reactions on
    /// perturbers are `weight` times their accelerations. Weights of a slowed pair are longer; some
    /// weights of the fourth and sixth order are negative.
    fn kicked(&mut self, weight: f64, time: f64, position: Vector) {
        let _ = (weight, time, position);
    }
}

impl<F: FnMut(f64, Vector) -> Vector> Perturbation for F {
    fn acceleration(&mut self, time: f64, position: Vector) -> Vector {
        self(time, position)
    }
}

/// Difference of the kept step from the wanted one, as a part of it, from which on it is renewed.
const STEP_TOLERANCE: f64 = 0.1;

/// Part of a scheme's step below which one step of second order is as exact: as if an orbit had 64.
const SMALL: f64 = 1.0 / 8.0;

/// Part of the step before below which the perturbation is what it was: its change is as many times less.
const UNCHANGED: f64 = 1e-5;

/// Part of an orbit, as a divisor, below which an advance is short: less than any scheme's step.
const SHORT: f64 = 30.0;

/// Steps at most that end an advance exactly at its time. Each squares the error of the time.
pub(super) const LAST_STEPS: u32 = 12;

/// `s a + t b`.
#[inline]
fn combine(s: f64, a: [f64; 4], t: f64, b: [f64; 4]) -> [f64; 4] {
    [
        s * a[0] + t * b[0],
        s * a[1] + t * b[1],
        s * a[2] + t * b[2],
        s * a[3] + t * b[3],
    ]
}

#[inline]
fn dot4(a: [f64; 4], b: [f64; 4]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}

/// The transposed matrix L(u) of Kustaanheimo & Stiefel times a vector.
#[inline]
fn transposed(u: [f64; 4], f: Vector) -> [f64; 4] {
    [
        u[0] * f[0] + u[1] * f[1] + u[2] * f[2],
        -u[1] * f[0] + u[0] * f[1] + u[3] * f[2],
        -u[2] * f[0] - u[3] * f[1] + u[0] * f[2],
        u[3] * f[0] - u[2] * f[1] + u[1] * f[2],
    ]
}

/// L(u) times a vector of four numbers: the first three of the product.
#[inline]
fn product(u: [f64; 4], p: [f64; 4]) -> Vector {
    [
        u[0] * p[0] - u[1] * p[1] - u[2] * p[2] + u[3] * p[3],
        u[1] * p[0] + u[0] * p[1] - u[3] * p[2] - u[2] * p[3],
        u[2] * p[0] + u[3] * p[1] + u[0] * p[2] + u[1] * p[3],
    ]
}

/// Two vectors of bodies of these masses from their centre of mass, by the vector from the first to the second.
#[inline]
pub(crate) fn about_centre([one, other]: [f64; 2], between: Vector) -> [Vector; 2] {
    let total = one + other;
    [-other / total, one / total].map(|share| scale(share, between))
}

/// Reduced mass of two bodies.
#[inline]
pub(crate) fn reduced_mass([one, other]: [f64; 2]) -> f64 {
    one * other / (one + other)
}

impl Pair {
    /// A pair of the gravitational parameter `mu`, the second body at `position` from the first and
    /// moving at `velocity`. Numbers are not finite if the bodies are at the same place.
    pub(crate) fn new(mu: f64, time: f64, position: Vector, velocity: Vector) -> Self {
        let r = norm(position);
        let [x, y, z] = position;
        // Of the circle of possible u, one without cancellation.
        let u = if x >= 0.0 {
            let a = (0.5 * (r + x)).sqrt();
            [a, 0.5 * y / a, 0.5 * z / a, 0.0]
        } else {
            let b = (0.5 * (r - x)).sqrt();
            [0.5 * y / b, b, 0.0, 0.5 * z / b]
        };
        let q = transposed(u, velocity);
        Self {
            u,
            p: combine(0.5, q, 0.0, q),
            beta: 2.0 * mu / r - dot(velocity, velocity),
            mu,
            time,
            step: 0.0,
        }
    }

    /// Distance of the bodies.
    #[inline]
    pub(crate) fn radius(&self) -> f64 {
        dot4(self.u, self.u)
    }

    /// Position of the second body from the first.
    #[inline]
    pub(crate) fn position(&self) -> Vector {
        product(self.u, self.u)
    }

    /// Velocity of the second body relative to the first.
    #[inline]
    pub(crate) fn velocity(&self) -> Vector {
        scale(2.0 / self.radius(), product(self.u, self.p))
    }

    /// Energy of a unit of the reduced mass: −μ/(2a).
    pub(crate) fn energy(&self) -> f64 {
        -0.5 * self.beta
    }

    /// Semi-major axis: negative if the pair is unbound, infinite on a parabola.
    pub(crate) fn semi_major_axis(&self) -> f64 {
        self.mu / self.beta
    }

    /// `r × v`.
    pub(crate) fn angular_momentum(&self) -> Vector {
        cross(self.position(), self.velocity())
    }

    /// Vector towards the pericentre as long as the eccentricity.
    pub(crate) fn eccentricity_vector(&self) -> Vector {
        // v × (r × v)/μ − r/|r|, with v² from β: nothing large cancels at pericentre.
        let (r, slope) = (self.radius(), 2.0 * dot4(self.u, self.p));
        let along = 1.0 / r - self.beta / self.mu;
        let across = -2.0 * slope / (self.mu * r);
        add_scaled(
            scale(along, self.position()),
            across,
            product(self.u, self.p),
        )
    }

    /// Eccentricity.
    pub(crate) fn eccentricity(&self) -> f64 {
        // e² = (dr/ds)² β/μ² + (1 − r/a)²: both parts are positive on an ellipse.
        let slope = 2.0 * dot4(self.u, self.p);
        let shape = 1.0 - self.radius() * self.beta / self.mu;
        let square = slope * slope * self.beta / (self.mu * self.mu) + shape * shape;
        square.max(0.0).sqrt()
    }

    /// Period: infinite if the pair is unbound.
    pub(crate) fn period(&self) -> f64 {
        if self.beta > 0.0 {
            core::f64::consts::TAU * self.mu / (self.beta * self.beta.sqrt())
        } else {
            f64::INFINITY
        }
    }

    /// Largest distance a(1 + e): infinite if the pair is unbound.
    pub(crate) fn size(&self) -> f64 {
        if self.beta > 0.0 {
            self.mu / self.beta * (1.0 + self.eccentricity())
        } else {
            f64::INFINITY
        }
    }

    /// Where the pair is on its orbit.
    #[inline]
    pub(super) fn start(&self) -> Start {
        Start {
            beta: self.beta,
            mu: self.mu,
            radius: self.radius(),
            slope: 2.0 * dot4(self.u, self.p),
        }
    }

    /// Kepler motion over the interval `h` of s, without its time. Returns the time that passes.
    #[inline]
    pub(super) fn turn(&mut self, h: f64) -> f64 {
        let of = Functions::new(self.beta, h);
        let time = self.start().time(h, &of);
        let (u, p) = (self.u, self.p);
        self.u = combine(of.c0, u, of.c1, p);
        self.p = combine(-0.25 * self.beta * of.c1, u, of.c0, p);
        time
    }

    /// Changes the velocity as the acceleration `f` does in the interval `h` of s, at a fixed
    /// position. It keeps 2μ = 4p² + βr exactly.
    #[inline]
    pub(crate) fn kick(&mut self, h: f64, f: Vector) {
        let turned = transposed(self.u, f);
        let change = 0.5 * h * self.radius();
        let mean = combine(1.0, self.p, 0.5 * change, turned);
        self.beta -= 4.0 * h * dot4(mean, turned);
        self.p = combine(1.0, self.p, change, turned);
    }

    /// Kepler motion exactly to a time, later or earlier, over any number of periods.
    pub(crate) fn jump(&mut self, time: f64) {
        self.pass(time - self.time);
        self.time = time;
    }

    /// The pair at another time if nothing perturbs it until then.
    pub(crate) fn at(&self, time: f64) -> Self {
        let mut copy = *self;
        copy.jump(time);
        copy
    }

    /// The pair at another time if nothing perturbs it until then and it is slowed down.
    pub(crate) fn slowed_at(&self, time: f64, slowdown: f64) -> Self {
        let mut copy = *self;
        copy.pass((time - self.time) / slowdown);
        copy.time = time;
        copy
    }

    /// Kepler motion over a time, without the clock.
    pub(super) fn pass(&mut self, time: f64) {
        let left = if self.beta > 0.0 {
            let period = self.period();
            time - period * (time / period + 0.5).floor()
        } else {
            time
        };
        let h = self.start().interval(left).h;
        self.turn(h);
    }

    /// True if a time is a small part of an orbit. Unbound pairs never end theirs.
    pub(super) fn is_short(&self, time: f64) -> bool {
        self.period() > SHORT * time.abs()
    }

    /// Renews the kept step if it is too far from what the scheme wants.
    ///
    /// Steps are parts of an orbit. Where an advance `is_short`, an orbit of the present distance counts
    /// too: a pair that is hardly bound would pass its pericentre in one step.
    #[inline]
    pub(super) fn renew_step(&mut self, scheme: Scheme, is_short: bool) {
        let beta = if is_short || self.beta <= 0.0 {
            self.beta.abs().max(0.5 * self.mu / self.radius())
        } else {
            self.beta
        };
        let angle = core::f64::consts::TAU / scheme.steps_an_orbit();
        let ratio = self.step * self.step * beta / (angle * angle);
        let is_near = (ratio - 1.0).abs() <= 2.0 * STEP_TOLERANCE;
        if !is_near {
            self.step = angle / beta.sqrt();
        }
    }

    /// Moves to the time `end`, later or earlier, under a perturbation. Returns the number of kicks.
    ///
    /// A pair slowed down by `slowdown` moves through 1/`slowdown` of the time, under `slowdown` times
    /// the perturbation; 1 is a pair at full speed. The perturbation is asked at the cluster's times.
    /// Nothing beyond the state enters: the same calls give the same bits.
    pub(crate) fn advance(
        &mut self,
        end: f64,
        scheme: Scheme,
        slowdown: f64,
        perturbation: &mut impl Perturbation,
    ) -> u32 {
        let span = (end - self.time) / slowdown;
        if span == 0.0 {
            return 0;
        }
        let is_short = self.is_short(span);
        let mut path = Path::new(self, slowdown, perturbation);
        let last = loop {
            let left = span - path.passed;
            self.renew_step(scheme, is_short);
            let h = if left > 0.0 { self.step } else { -self.step };
            if let Some(last) = self.last_step(left, h) {
                let is_small = scheme == Scheme::Fourth && last.abs() < SMALL * h.abs();
                let scheme = if is_small { Scheme::Second } else { scheme };
                path.step(self, last, scheme.stages(), perturbation);
                break last;
            }
            path.step(self, h, scheme.stages(), perturbation);
        };
        // The kicks of the last step changed its time a little.
        for _ in 0..LAST_STEPS {
            let left = span - path.passed;
            if left.abs() <= 2.0 * f64::EPSILON * span.abs() {
                break;
            }
            let h = left / self.radius();
            match h.abs() < UNCHANGED * last.abs() {
                true => path.step_unchanged(self, h),
                false => path.step(self, h, Scheme::Second.stages(), perturbation),
            }
        }
        path.close(self, perturbation);
        self.time = end;
        path.kicks
    }

    /// The interval of s in which the time `left` passes, if it is not longer than the step `h`.
    pub(super) fn last_step(&self, left: f64, h: f64) -> Option<f64> {
        let longest = 1.0001 * h;
        let start = self.start();
        if self.beta > 0.0 && left.abs() > longest.abs() * 2.0 * self.mu / self.beta {
            return None; // farther than the apocentre for the whole step
        }
        let time = start.time(longest, &Functions::new(self.beta, longest));
        // A time that is not finite is a step too long.
        if time.abs() < left.abs() {
            return None;
        }
        Some(start.interval(left).h)
    }

    /// Adds energy of a unit of the reduced mass, by scaling the velocity at a fixed position.
    ///
    /// Returns false, and changes nothing, where the pair is nearly at rest before or after: near the
    /// apocentre of an eccentric orbit. The caller then keeps the energy for later.
    pub(crate) fn add_energy(&mut self, energy: f64) -> bool {
        let (r, beta) = (self.radius(), self.beta - 2.0 * energy);
        let before = 2.0 * self.mu - self.beta * r;
        let after = 2.0 * self.mu - beta * r;
        let least = 0.02 * self.mu;
        if before < least || after < least {
            return false;
        }
        let factor = (after / before).sqrt();
        self.p = combine(factor, self.p, 0.0, self.p);
        self.beta = beta;
        true
    }

    /// Adds a small energy of a unit of the reduced mass anywhere on the orbit. Where the pair is nearly at rest, it
    /// scales the position at a fixed velocity.
    pub(crate) fn shift_energy(&mut self, energy: f64) {
        if self.add_energy(energy) {
            return;
        }
        // −μ/r becomes −μ/r + energy.
        let root = (1.0 - energy * self.radius() / self.mu).sqrt();
        if root.is_finite() && root > 0.0 {
            self.u = combine(1.0 / root, self.u, 0.0, self.u);
            self.p = combine(1.0 / root, self.p, 0.0, self.p);
            self.beta -= 2.0 * energy;
        }
    }
}

/// An advance of a perturbed pair, with neighbouring kicks at one place joined.
struct Path {
    /// Time at which it began.
    begin: f64,
    /// Time of the pair that passed since.
    passed: f64,
    slowdown: f64,
    /// Perturbation at the present place.
    force: Vector,
    /// Interval of s for which it acts so far.
    weight: f64,
    kicks: u32,
}

impl Path {
    fn new(pair: &Pair, slowdown: f64, perturbation: &mut impl Perturbation) -> Self {
        Self {
            begin: pair.time,
            passed: 0.0,
            slowdown,
            force: perturbation.acceleration(pair.time, pair.position()),
            weight: 0.0,
            kicks: 1,
        }
    }

    /// A step over the interval `h` of s, composed of stages: kicks between rotations.
    fn step(
        &mut self,
        pair: &mut Pair,
        h: f64,
        stages: &[f64],
        perturbation: &mut impl Perturbation,
    ) {
        for stage in stages {
            let half = 0.5 * h * stage;
            self.kick(pair, half);
            self.close(pair, perturbation);
            self.passed += pair.turn(h * stage);
            let time = self.begin + self.slowdown * self.passed;
            self.force = perturbation.acceleration(time, pair.position());
            self.weight = 0.0;
            self.kicks += 1;
            self.kick(pair, half);
        }
    }

    /// A step over a very small interval of s, in which the perturbation does not change.
    fn step_unchanged(&mut self, pair: &mut Pair, h: f64) {
        self.kick(pair, 0.5 * h);
        self.passed += pair.turn(h);
        self.kick(pair, 0.5 * h);
    }

    fn kick(&mut self, pair: &mut Pair, h: f64) {
        pair.kick(h, scale(self.slowdown, self.force));
        self.weight += h;
    }

    /// Reports the kick at the present place.
    fn close(&self, pair: &Pair, perturbation: &mut impl Perturbation) {
        let time = self.begin + self.slowdown * self.passed;
        let weight = self.slowdown * self.weight * pair.radius();
        perturbation.kicked(weight, time, pair.position());
    }
}

#[cfg(test)]
mod tests;
