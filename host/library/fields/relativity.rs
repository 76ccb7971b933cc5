//! The first post-Newtonian term of a dominant mass, on bodies that do not disturb it.

use gpu_kernels::fields::Jet;

use super::FieldFault;
use crate::bodies::Bodies;
use crate::physics::Physics;

/// Speed of light in m/s, exact.
pub(super) const LIGHT: f64 = 299_792_458.0;

/// A number with two derivatives in time.
type Moving = Jet<3>;

/// The term, for bodies of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relativity {
    /// The dominant body.
    body: usize,
    /// G times its mass.
    gm: f64,
    /// The square of the speed of light.
    square: f64,
}

impl Relativity {
    /// The term of one of the bodies, which must be the heaviest.
    pub(super) fn new(
        body: usize,
        light: f64,
        bodies: &Bodies,
        physics: &Physics,
    ) -> Result<Self, FieldFault> {
        let n = bodies.len();
        let Some(&mass) = bodies.mass.get(body) else {
            return Err(FieldFault::NoBody { body, n });
        };
        let heaviest = (0..n).find(|&i| bodies.mass[i] > mass);
        if let Some(heavier) = heaviest {
            return Err(FieldFault::NotDominant { body, heavier });
        }
        Ok(Self {
            body,
            gm: physics.g * mass,
            square: light * light,
        })
    }

    /// The dominant body, which feels nothing of it.
    pub(crate) fn body(&self) -> usize {
        self.body
    }

    /// Adds the term and so many of its derivatives to the `forces` on a body, whose position and velocity
    /// are relative to the dominant one; that feels forces `of_centre`. Derivative by derivative, for
    /// each takes the one before.
    pub(crate) fn add(
        &self,
        derivatives: usize,
        [x, v]: [[f64; 3]; 2],
        mut forces: [[f64; 3]; 3],
        of_centre: [[f64; 3]; 3],
    ) -> [[f64; 3]; 3] {
        let jets = |a: [f64; 3], b: [f64; 3], c: [f64; 3]| {
            [0, 1, 2].map(|axis| Jet::<3>([a[axis], b[axis], 0.5 * c[axis]]))
        };
        let minus = |a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|axis| a[axis] - b[axis]);
        let add = |sum: &mut [f64; 3], term: [f64; 3]| (0..3).for_each(|k| sum[k] += term[k]);
        let nothing = [0.0; 3];
        let term = self.term(jets(x, v, nothing), jets(v, nothing, nothing));
        add(&mut forces[0], term.map(|jet| jet.0[0]));
        let a = minus(forces[0], of_centre[0]);
        if derivatives > 0 {
            let term = self.term(jets(x, v, a), jets(v, a, nothing));
            add(&mut forces[1], term.map(|jet| jet.0[1]));
        }
        let j = minus(forces[1], of_centre[1]);
        if derivatives > 1 {
            let term = self.term(jets(x, v, a), jets(v, a, j));
            add(&mut forces[2], term.map(|jet| 2.0 * jet.0[2]));
        }
        forces
    }

    /// `GM/(c² r³) ((4GM/r − v²) x + 4 (x·v) v)`, in harmonic coordinates (Will 1993, Theory and
    /// Experiment in Gravitational Physics; Einstein, Infeld & Hoffmann 1938).
    fn term(&self, x: [Moving; 3], v: [Moving; 3]) -> [Moving; 3] {
        let dot = |a: [Moving; 3], b: [Moving; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let square = dot(x, x);
        if square.0[0] == 0.0 {
            return [Moving::constant(0.0); 3];
        }
        let r = square.sqrt();
        let strength = Moving::constant(self.gm / self.square) / (square * r);
        let along = strength * (Moving::constant(4.0 * self.gm) / r - dot(v, v));
        let forward = strength * (dot(x, v) * 4.0);
        [0, 1, 2].map(|axis| along * x[axis] + forward * v[axis])
    }

    /// Energy of a body per mass that the term adds: `(3/8 v⁴ + 3/2 v² GM/r + ½ (GM/r)²)/c²`.
    pub(super) fn energy(&self, bodies: &Bodies, i: usize) -> f64 {
        let c = self.body;
        if i == c {
            return 0.0;
        }
        let Bodies {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            ..
        } = bodies;
        let r = (x[i] - x[c]).hypot(y[i] - y[c]).hypot(z[i] - z[c]);
        let v = (vx[i] - vx[c]).hypot(vy[i] - vy[c]).hypot(vz[i] - vz[c]);
        let (depth, square) = (self.gm / r, v * v);
        (0.375 * square * square + 1.5 * square * depth + 0.5 * depth * depth) / self.square
    }
}
