//! The first post-Newtonian term of a dominant mass, on bodies that do not disturb it.

use gpu_kernels::fields as kernels;

use super::FieldFault;
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::vectors::{axes, cross, difference, dot};

/// Speed of light in m/s, exact.
pub(super) const LIGHT: f64 = 299_792_458.0;

/// The term, for bodies of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relativity {
    /// The dominant body.
    body: usize,
    term: kernels::Relativity,
}

/// The largest share of the dominant mass that another body may have: terms that are left out are of this share of
/// the term.
const LARGEST_SHARE: f64 = 0.1;

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
        let other = (0..n).find(|&i| i != body && bodies.mass[i] > LARGEST_SHARE * mass);
        if let Some(other) = other {
            return Err(FieldFault::NotLight {
                body,
                other,
                share: bodies.mass[other] / mass,
                most: LARGEST_SHARE,
            });
        }
        Ok(Self {
            body,
            term: kernels::Relativity {
                gm: physics.g * mass,
                light_squared: light * light,
            },
        })
    }

    /// The dominant body, which feels nothing of it.
    pub(crate) fn body(&self) -> usize {
        self.body
    }

    /// Adds the term and so many of its derivatives to the `forces` on a body, whose position and velocity
    /// are relative to the dominant one; that feels forces `of_centre`.
    pub(crate) fn add(
        &self,
        derivatives: usize,
        relative: [[f64; 3]; 2],
        forces: [[f64; 3]; 3],
        of_centre: [[f64; 3]; 3],
    ) -> [[f64; 3]; 3] {
        let Self { term, .. } = self;
        let terms = match derivatives {
            0 => term.terms::<1>(relative, forces, of_centre),
            1 => term.terms::<2>(relative, forces, of_centre),
            _ => term.terms::<3>(relative, forces, of_centre),
        };
        axes(|k| axes(|axis| forces[k][axis] + terms[k][axis]))
    }

    /// The buffer of the kernels that add it, for bodies of a frame: as
    /// [`Centre::of`](gpu_kernels::schedule::external::Centre::of) reads it.
    pub(crate) fn numbers(&self, frame: &Frame) -> [f64; 3] {
        let speed = frame.length / frame.time;
        let kernels::Relativity { gm, light_squared } = self.term;
        [
            self.body as f64,
            gm / frame.length / speed / speed,
            light_squared / speed / speed,
        ]
    }

    /// The fastest body, and its `(v/c)²` at the pericentre of its Newtonian orbit about the dominant one.
    pub(super) fn fastest(&self, bodies: &Bodies) -> Option<(usize, f64)> {
        let kernels::Relativity { gm, light_squared } = self.term;
        let centre = bodies.body(self.body);
        let others = (0..bodies.len()).filter(|&i| i != self.body);
        let each = others.map(|i| {
            let body = bodies.body(i);
            let r = difference(body.position, centre.position);
            let v = difference(body.velocity, centre.velocity);
            let spin = cross(r, v);
            let (square, spin) = (dot(v, v), dot(spin, spin).sqrt());
            let energy = 0.5 * square - gm / dot(r, r).sqrt();
            let of_spin = spin / gm;
            let eccentricity = (1.0 + 2.0 * energy * of_spin * of_spin).max(0.0).sqrt();
            let fastest = (1.0 + eccentricity) / of_spin;
            (i, fastest * fastest / light_squared)
        });
        each.reduce(|a, b| if b.1 > a.1 { b } else { a })
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
        let kernels::Relativity { gm, light_squared } = self.term;
        let (depth, square) = (gm / r, v * v);
        (0.375 * square * square + 1.5 * square * depth + 0.5 * depth * depth) / light_squared
    }
}
