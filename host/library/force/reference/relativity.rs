//! The first post-Newtonian term of a dominant mass, from its Lagrangian.
//!
//! A test body has `L = ½v² + GM/r + L₁`, where `c² L₁ = v⁴/8 + 3/2 v² GM/r − ½ (GM/r)²` in harmonic coordinates
//! (Einstein, Infeld & Hoffmann 1938, Annals of Mathematics 39, 65). The term is `∂L₁/∂x − d/dt ∂L₁/∂v` along a
//! Newtonian path. A path with the term differs from that path in the next order alone.

use super::series::{Number, dot};
use crate::bodies::Bodies;
use crate::fields::{External, Shape};
use crate::vectors::axes;

/// The term of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relativity {
    /// Index of the body.
    pub(super) body: usize,
    gm: f64,
    /// Speed of light.
    light: f64,
}

impl Relativity {
    /// The term that is one of the fields, if any is.
    pub(super) fn of(external: &External, bodies: &Bodies, g: f64) -> Option<Self> {
        external
            .fields()
            .iter()
            .find_map(|field| match field.shape {
                Shape::Relativity(body, light) => Some(Self {
                    body,
                    gm: g * bodies.mass[body],
                    light,
                }),
                Shape::Formula(..) | Shape::Own(_) => None,
            })
    }

    /// Derivative in time of this order, for a body with this position, velocity, acceleration and jerk, relative to the
    /// dominant one. No derivatives above the order count.
    pub(super) fn derivative(&self, order: usize, [x, v, a, j]: [[f64; 3]; 4]) -> [f64; 3] {
        let x = axes(|axis| Number::moving([x[axis], v[axis], a[axis]]));
        let v = axes(|axis| Number::moving([v[axis], a[axis], j[axis]]));
        self.acceleration(x, v).map(|axis| axis.derivative(order))
    }

    /// The term.
    fn acceleration(&self, x: [Number; 3], v: [Number; 3]) -> [Number; 3] {
        let square = dot(x, x);
        if square.value() == 0.0 {
            return [Number::constant(0.0); 3];
        }
        let inverse_cube = square.power(-1.5);
        let newton = x.map(|x| x * inverse_cube * -self.gm);
        // c² ∂L₁/∂v is v times this.
        let inertia = dot(v, v) * 0.5 + square.power(-0.5) * (3.0 * self.gm);
        let inertia_changes = dot(v, newton) + dot(x, v) * inverse_cube * (-3.0 * self.gm);
        // c² ∂L₁/∂x is x times this.
        let pull =
            square.power(-2.0) * (self.gm * self.gm) + dot(v, v) * inverse_cube * (-1.5 * self.gm);
        axes(|axis| {
            let momentum_changes = v[axis] * inertia_changes + newton[axis] * inertia;
            (x[axis] * pull - momentum_changes) * self.light.powi(-2)
        })
    }

    /// Energy per mass `v · ∂L₁/∂v − L₁` of a body with this position and velocity, relative to the dominant one.
    pub(super) fn energy(&self, x: [f64; 3], v: [f64; 3]) -> f64 {
        let length = |v: [f64; 3]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let (depth, v2) = (self.gm / length(x), length(v).powi(2));
        let lagrangian = v2 * v2 / 8.0 + 1.5 * v2 * depth - depth * depth / 2.0;
        let along = v2 * (v2 / 2.0 + 3.0 * depth);
        (along - lagrangian) / self.light.powi(2)
    }
}
