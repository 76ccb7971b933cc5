//! A stable triple as nested pairs: an inner pair, and the orbit of its centre of mass with a third
//! body, both in the variables of Kustaanheimo & Stiefel.
//!
//! Both move as Kepler pairs, the inner one by rotations, the outer one over the same time. Both are
//! kicked by the difference between the inner members and a point mass, and by what is outside. The
//! inner pair may be slowed down (Mikkola & Aarseth 1996, Celest. Mech. 64, 197). From some 50 inner
//! orbits in an outer one on, a triple costs less time than a chain. Others belong in a chain.

use super::chain::External;
use super::composition::Scheme;
use super::ks::{LAST_STEPS, Pair};
use super::stability::is_stable;
use super::vector::{Vector, add, add_scaled, dot, norm, scale, subtract};

/// Three bodies, about their centre of mass. The first two are the inner pair.
///
/// All fields are state. Times of the pairs do not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Triple {
    /// Second body relative to the first.
    pub(crate) inner: Pair,
    /// Third body relative to the centre of mass of the inner pair.
    pub(crate) outer: Pair,
    /// Masses, times G.
    pub(crate) masses: [f64; 3],
    /// Time.
    pub(crate) time: f64,
    /// Slow-down of the inner pair, from 1 on: times as long as its orbits take.
    pub(crate) slowdown: f64,
}

/// How a triple is advanced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Nesting {
    /// Steps of the inner pair.
    pub(crate) scheme: Scheme,
    /// Longest slowed period of the inner pair, as a part of the time that the outer pericentre takes:
    /// 0 for no slow-down, 0.1 for exact cycles, 0.3 for quick ones.
    pub(crate) slowness: f64,
    /// Slow-down of the outer orbit, from 1 on. What both pairs do to each other in a time stays.
    pub(crate) slowdown: f64,
}

/// Ratio of the wanted slow-down to the present one, or the reverse, from which on it is changed.
/// A slow-down that follows the outer orbit's phase makes the energy drift.
const HYSTERESIS: f64 = 2.0;

impl Triple {
    /// A triple of bodies with these masses (times G), the inner pair first. None if the numbers are
    /// not finite, or one of both orbits is unbound.
    pub(crate) fn new(
        time: f64,
        masses: [f64; 3],
        positions: [Vector; 3],
        velocities: [Vector; 3],
    ) -> Option<Self> {
        let [m1, m2, m3] = masses;
        let mass = m1 + m2;
        let split = |[a, b, c]: [Vector; 3]| {
            let inner = subtract(b, a);
            (inner, subtract(subtract(c, a), scale(m2 / mass, inner)))
        };
        let ((r, outer_r), (v, outer_v)) = (split(positions), split(velocities));
        let triple = Self {
            inner: Pair::new(mass, 0.0, r, v),
            outer: Pair::new(mass + m3, 0.0, outer_r, outer_v),
            masses,
            time,
            slowdown: 1.0,
        };
        let is_bound = |pair: &Pair| pair.beta > 0.0 && pair.beta.is_finite();
        (is_bound(&triple.inner) && is_bound(&triple.outer)).then_some(triple)
    }

    /// True if the triple is stable even if the critical ratio were `margin` times as large.
    pub(crate) fn is_stable(&self, margin: f64) -> bool {
        is_stable(&self.inner, &self.outer, margin)
    }

    /// Positions from the centre of mass.
    pub(crate) fn positions(&self) -> [Vector; 3] {
        self.place(self.inner.position(), self.outer.position())
    }

    /// Velocities relative to the centre of mass.
    pub(crate) fn velocities(&self) -> [Vector; 3] {
        self.place(self.inner.velocity(), self.outer.velocity())
    }

    /// Bodies about their centre of mass from the vectors of both pairs.
    fn place(&self, inner: Vector, outer: Vector) -> [Vector; 3] {
        let [m1, m2, m3] = self.masses;
        let mass = m1 + m2;
        let centre = scale(-m3 / (mass + m3), outer);
        [
            add_scaled(centre, -m2 / mass, inner),
            add_scaled(centre, m1 / mass, inner),
            scale(mass / (mass + m3), outer),
        ]
    }

    /// Energy about the centre of mass, times G, with the inner pair at full speed.
    pub(crate) fn energy(&self) -> f64 {
        let [m1, m2, m3] = self.masses;
        let mass = m1 + m2;
        m1 * m2 / mass * self.inner.energy()
            + mass * m3 / (mass + m3) * self.outer.energy()
            + self.interaction()
    }

    /// Potential energy of the third body with the inner pair, beyond the pair's as a point.
    fn interaction(&self) -> f64 {
        let [m1, m2, m3] = self.masses;
        let (r, outer) = (self.inner.position(), self.outer.position());
        let distance = norm(outer);
        let term = |mass: f64, from: Vector| {
            // 1/R − 1/d by the difference of squares, from the small vector alone.
            let d = norm(subtract(outer, from));
            let squares = dot(from, from) - 2.0 * dot(outer, from);
            mass * squares / (d * distance * (d + distance))
        };
        let mass = m1 + m2;
        m3 * (term(m1, scale(-m2 / mass, r)) + term(m2, scale(m1 / mass, r)))
    }

    /// Accelerations of the relative motions of both pairs beyond Kepler's.
    fn residuals<E: External>(&self, time: f64, external: &mut E) -> [Vector; 2] {
        let [m1, m2, m3] = self.masses;
        let mass = m1 + m2;
        let outer = self.outer.position();
        let x = self.place(self.inner.position(), outer);
        let mut accelerations = [[0.0; 3]; 3];
        if E::ANY {
            external.accelerations(time, &x, &mut accelerations);
        }
        let [mut a, mut b, mut c] = accelerations;
        let pull = |from: Vector, to: Vector| {
            let d = subtract(to, from);
            let inverse = 1.0 / dot(d, d);
            scale(inverse * inverse.sqrt(), d)
        };
        let (first, second) = (pull(x[0], x[2]), pull(x[1], x[2]));
        a = add_scaled(a, m3, first);
        b = add_scaled(b, m3, second);
        c = add_scaled(add_scaled(c, -m1, first), -m2, second);
        let centre = add(scale(m1 / mass, a), scale(m2 / mass, b));
        let kepler = scale(mass + m3, pull([0.0; 3], outer));
        [subtract(b, a), add(subtract(c, centre), kepler)]
    }

    /// Chooses the slow-down of the inner pair anew, if it is far from what the outer orbit allows.
    fn renew_slowdown(&mut self, nesting: Nesting) {
        let pericentre = self.outer.pericentre();
        let speed = (4.0 * self.outer.mu / pericentre - self.outer.beta).sqrt();
        let passage = nesting.slowdown * pericentre / speed;
        let wanted = nesting.slowness * passage / self.inner.period();
        // Both orbits may have become unbound: then nothing is slowed down.
        let is_bound = self.inner.beta > 0.0 && self.outer.beta > 0.0;
        let wanted = if is_bound { wanted.max(1.0) } else { 1.0 };
        let ratio = wanted / self.slowdown;
        let is_near = self.slowdown > 1.0 && ratio < HYSTERESIS && ratio > 1.0 / HYSTERESIS;
        if !is_near {
            self.slowdown = wanted;
        }
    }

    /// Moves to a later or earlier time. Returns the number of kicks.
    pub(crate) fn advance(
        &mut self,
        end: f64,
        nesting: Nesting,
        external: &mut impl External,
    ) -> u32 {
        let span = end - self.time;
        if span == 0.0 {
            return 0;
        }
        let is_short = self.inner.is_short(span / self.slowdown);
        let mut path = Path::new(self, nesting, external);
        loop {
            self.renew_slowdown(nesting);
            let left = (span - path.passed) / self.slowdown;
            self.inner.renew_step(nesting.scheme, is_short);
            let step = self.inner.step;
            let h = if left > 0.0 { step } else { -step };
            if let Some(last) = self.inner.last_step(left, h) {
                path.step(self, last, nesting.scheme.stages(), external);
                break;
            }
            path.step(self, h, nesting.scheme.stages(), external);
        }
        // The kicks of the last step changed its time a little.
        for _ in 0..LAST_STEPS {
            let left = span - path.passed;
            if left.abs() <= 2.0 * f64::EPSILON * span.abs() {
                break;
            }
            let h = left / (self.slowdown * self.inner.radius());
            path.step(self, h, Scheme::Second.stages(), external);
        }
        path.close(external);
        self.time = end;
        path.kicks
    }

    /// Moves towards a later time in whole steps, and stays less than a step before it.
    ///
    /// Any number of calls on the way is like none: see `Pair`. Use [`at`](Self::at) for places.
    pub(crate) fn advance_whole_steps(
        &mut self,
        end: f64,
        nesting: Nesting,
        external: &mut impl External,
    ) -> u32 {
        let mut path: Option<Path> = None;
        loop {
            self.renew_slowdown(nesting);
            self.inner.renew_step(nesting.scheme, false);
            let (left, h) = ((end - self.time) / self.slowdown, self.inner.step);
            if left <= 0.0 || self.inner.last_step(left, h).is_some() {
                break;
            }
            let path = path.get_or_insert_with(|| Path::new(self, nesting, external));
            path.step(self, h, nesting.scheme.stages(), external);
            self.time += path.passed;
            (path.begin, path.passed) = (self.time, 0.0);
        }
        path.map_or(0, |path| {
            path.close(external);
            path.kicks
        })
    }

    /// The triple at another time near by, without any perturbation until then.
    pub(crate) fn at(&self, time: f64, nesting: Nesting) -> Self {
        let mut copy = *self;
        copy.inner.pass((time - self.time) / self.slowdown);
        copy.outer.pass((time - self.time) / nesting.slowdown);
        copy.time = time;
        copy
    }
}

/// An advance of a triple, with neighbouring kicks at one place joined.
struct Path {
    /// Time at which it began.
    begin: f64,
    /// Time that passed since.
    passed: f64,
    /// Slow-down of the outer orbit.
    slowdown: f64,
    /// Accelerations of both pairs at the present place.
    forces: [Vector; 2],
    /// Time for which they act so far.
    weight: f64,
    kicks: u32,
}

impl Path {
    fn new(triple: &Triple, nesting: Nesting, external: &mut impl External) -> Self {
        let mut path = Self {
            begin: triple.time,
            passed: 0.0,
            slowdown: nesting.slowdown,
            forces: [[0.0; 3]; 2],
            weight: 0.0,
            kicks: 0,
        };
        path.ask(triple, external);
        path
    }

    fn ask(&mut self, triple: &Triple, external: &mut impl External) {
        let time = self.begin + self.passed;
        self.forces = triple.residuals(time, external);
        self.weight = 0.0;
        self.kicks += 1;
    }

    /// A step over the interval `h` of the inner pair's s, composed of stages.
    fn step(&mut self, triple: &mut Triple, h: f64, stages: &[f64], external: &mut impl External) {
        for stage in stages {
            let half = 0.5 * h * stage;
            self.kick(triple, half);
            self.close(external);
            let time = triple.slowdown * triple.inner.turn(h * stage);
            triple.outer.pass(time / self.slowdown);
            self.passed += time;
            self.ask(triple, external);
            self.kick(triple, half);
        }
    }

    fn kick(&mut self, triple: &mut Triple, h: f64) {
        let time = h * triple.inner.radius() * triple.slowdown;
        let [inner, outer] = self.forces;
        triple.inner.kick(h * triple.slowdown, inner);
        triple.outer.kick(time / triple.outer.radius(), outer);
        self.weight += time;
    }

    fn close(&self, external: &mut impl External) {
        external.kicked(self.weight);
    }
}

#[cfg(test)]
mod tests;
