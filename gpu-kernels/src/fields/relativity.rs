//! The first post-Newtonian term of a dominant mass, on bodies that do not disturb it.

use super::{Jet, each};

/// The term of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relativity {
    /// G times the mass of the body.
    pub gm: f64,
    /// The square of the speed of light.
    pub light_squared: f64,
}

impl Relativity {
    /// The term and K − 1 of its derivatives, zeros after them, for a body whose position and velocity are
    /// relative to the dominant one: derivative by derivative, for each takes the one before of all forces.
    /// The body feels these `forces` without the term, and the dominant one feels forces `of_centre`.
    #[inline(always)]
    pub fn terms<const K: usize>(
        &self,
        [x, v]: [[f64; 3]; 2],
        forces: [[f64; 3]; 3],
        of_centre: [[f64; 3]; 3],
    ) -> [[f64; 3]; 3] {
        let mut terms = [[0.0; 3]; 3];
        let nothing = [0.0; 3];
        let first = term::<1>(self, [x, nothing, nothing], [v, nothing, nothing]);
        terms[0] = each(|k| first[k].0[0]);
        if K > 1 {
            let a = each(|k| forces[0][k] + terms[0][k] - of_centre[0][k]);
            let second = term::<2>(self, [x, v, nothing], [v, a, nothing]);
            terms[1] = each(|k| second[k].0[1]);
            if K > 2 {
                let j = each(|k| forces[1][k] + terms[1][k] - of_centre[1][k]);
                let third = term::<3>(self, [x, v, a], [v, a, j]);
                terms[2] = each(|k| 2.0 * third[k].0[2]);
            }
        }
        terms
    }
}

/// `GM/(c² r³) ((4GM/r − v²) x + 4 (x·v) v)`, in harmonic coordinates (Will 1993, Theory and Experiment in
/// Gravitational Physics; Einstein, Infeld & Hoffmann 1938), of positions and velocities with their
/// derivatives; zero at the centre.
#[inline(always)]
fn term<const K: usize>(
    relativity: &Relativity,
    x: [[f64; 3]; 3],
    v: [[f64; 3]; 3],
) -> [Jet<K>; 3] {
    let jets = |[a, b, c]: [[f64; 3]; 3]| {
        let jet = |axis: usize| Jet::<K>([a[axis], b[axis], 0.5 * c[axis]]);
        [jet(0), jet(1), jet(2)]
    };
    let dot = |a: [Jet<K>; 3], b: [Jet<K>; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let (x, v) = (jets(x), jets(v));
    let square = dot(x, x);
    if square.0[0] == 0.0 {
        return [Jet::constant(0.0); 3];
    }
    let Relativity { gm, light_squared } = *relativity;
    let r = square.sqrt();
    let strength = Jet::constant(gm / light_squared) / (square * r);
    let along = strength * (Jet::constant(4.0 * gm) / r - dot(v, v));
    let forward = strength * (dot(x, v) * 4.0);
    let of = |axis: usize| along * x[axis] + forward * v[axis];
    [of(0), of(1), of(2)]
}
