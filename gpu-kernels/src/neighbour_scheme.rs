//! THE formulas of a neighbour scheme (Ahmad & Cohen 1973, J. Comput. Phys. 12, 389) with Hermite's
//! scheme of fourth order (Makino & Aarseth 1992, PASJ 44, 141): the regular force between the ends of
//! its steps, and what these correct. The CPU path and the kernels advance bodies through this file.

use crate::hermite::Beginning;
use crate::hermite6::cube_root;
use cuda_std::GpuFloat;

/// Acceleration and jerk.
pub type Force = [[f64; 3]; 2];

/// The largest √η of regular steps, and the most by which a pair of bodies that are not neighbours may
/// change its distance in one, as a part of the distance. Irregular steps bear a larger η.
pub const LARGEST_REGULAR: f64 = 0.4;

/// First regular steps by irregular ones with the same derivatives: distant bodies surprise less.
pub const FIRST_REGULAR: f64 = 10.0;

/// A regular force some time after its step began: extrapolated linearly.
#[inline(always)]
pub fn extrapolated([a, j]: Force, since: f64) -> Force {
    [each(|k| a[k] + since * j[k]), j]
}

/// A regular step at its end.
#[derive(Clone, Copy, Debug)]
pub struct Regular {
    /// The regular force where it began.
    pub begun: Force,
    /// The regular force where it ends, of the same bodies.
    pub ended: Force,
    /// Length of the step.
    pub dt: f64,
}

impl Regular {
    /// Error of the extrapolation at the end.
    #[inline(always)]
    pub fn missed(&self) -> Force {
        difference(self.ended, extrapolated(self.begun, self.dt))
    }

    /// Corrections of position and velocity at the end: integrals, twice and once, of the cubic through
    /// what the extrapolation missed.
    #[inline(always)]
    pub fn corrections(&self) -> [[f64; 3]; 2] {
        let (dt, [a, j]) = (self.dt, self.missed());
        let second = each(|k| (6.0 * a[k] - 2.0 * dt * j[k]) / 2.0);
        let third = each(|k| (6.0 * dt * j[k] - 12.0 * a[k]) / 6.0);
        [
            each(|k| dt * dt * (second[k] / 12.0 + third[k] / 20.0)),
            each(|k| dt * (second[k] / 3.0 + third[k] / 4.0)),
        ]
    }

    /// The next step by [Aarseth's criterion](Beginning::next_step); infinite where what was missed is
    /// `noise`.
    #[inline(always)]
    pub fn next_step(&self, eta: f64, noise: f64) -> f64 {
        let [missed, _] = self.missed();
        if norm(missed) <= noise {
            f64::INFINITY
        } else {
            next_step(eta, self.dt, self.begun, self.ended)
        }
    }
}

/// [Aarseth's criterion](Beginning::next_step) for a part of the force on a body; infinite where nobody
/// exerts it, and what it was before is the rounding of a difference.
#[inline(always)]
pub fn next_step(eta: f64, dt: f64, [a, j]: Force, [a1, j1]: Force) -> f64 {
    if norm(a1) == 0.0 && norm(j1) == 0.0 {
        return f64::INFINITY;
    }
    let [x, v] = [[0.0; 3]; 2];
    Beginning { x, v, a, j }.next_step(eta, dt, a1, j1)
}

/// Factor by which the radius of a sphere changes in which `found` bodies were, where `wanted` are: its
/// volume at most by `most`.
#[inline(always)]
pub fn growth(wanted: f64, found: f64, most: f64) -> f64 {
    let found = if found < 1.0 { 0.5 } else { found };
    let volume = wanted / found;
    let volume = if volume < most { volume } else { most };
    cube_root(if volume > 1.0 / most {
        volume
    } else {
        1.0 / most
    })
}

/// The sum of forces.
#[inline(always)]
pub fn sum([a, b, c]: [Force; 3]) -> Force {
    [
        each(|k| a[0][k] + b[0][k] + c[0][k]),
        each(|k| a[1][k] + b[1][k] + c[1][k]),
    ]
}

/// The difference of forces.
#[inline(always)]
pub fn difference(a: Force, b: Force) -> Force {
    [each(|k| a[0][k] - b[0][k]), each(|k| a[1][k] - b[1][k])]
}

/// Length of a vector.
#[inline(always)]
pub fn norm([x, y, z]: [f64; 3]) -> f64 {
    (x * x + y * y + z * z).sqrt_exact()
}

#[inline(always)]
fn each(component: impl Fn(usize) -> f64) -> [f64; 3] {
    [component(0), component(1), component(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regular force that is a cubic of time is integrated exactly.
    #[test]
    fn cubics_are_exact() {
        let cubic = [1.5, -2.0, 0.75, -0.3];
        let at = |t: f64| -> Force {
            let [c0, c1, c2, c3] = cubic;
            let a = c0 + t * (c1 + t * (c2 + t * c3));
            let j = c1 + t * (2.0 * c2 + t * 3.0 * c3);
            [[a, -a, 2.0 * a], [j, -j, 2.0 * j]]
        };
        let dt = 0.5;
        let step = Regular {
            begun: at(0.0),
            ended: at(dt),
            dt,
        };
        let [x, v] = step.corrections();
        let [_, _, c2, c3] = cubic;
        let velocity = c2 * dt.powi(3) / 3.0 + c3 * dt.powi(4) / 4.0;
        let position = c2 * dt.powi(4) / 12.0 + c3 * dt.powi(5) / 20.0;
        assert!((v[0] - velocity).abs() < 1e-15 && (v[2] - 2.0 * velocity).abs() < 1e-15);
        assert!((x[0] - position).abs() < 1e-15 && (x[1] + position).abs() < 1e-15);
    }

    #[test]
    fn spheres_grow_to_what_is_wanted() {
        assert!((growth(80.0, 10.0, 100.0) - 2.0).abs() < 1e-12);
        assert!((growth(8.0, 1.0, 2.0).powi(3) - 2.0).abs() < 1e-12);
        assert!((growth(1.0, 1000.0, 2.0).powi(3) - 0.5).abs() < 1e-12);
        assert!((growth(1.0, 0.0, 2.0).powi(3) - 2.0).abs() < 1e-12);
    }
}
