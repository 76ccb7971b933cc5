//! Spheres in equilibrium with a given potential: Eddington's formula.
//!
//! A component of density ρ(r) in a potential Φ = −Ψ(r) of any spherical origin stays as it is if
//! its velocities follow
//! ```text
//! f(E) = 1/(√8 π²) ∫₀ᴱ d²ρ/dΨ² dΨ/√(E − Ψ),   E = Ψ − v²/2
//! ```
//! (Binney & Tremaine, Galactic Dynamics, 2nd ed., eq. 4.46b; the boundary term is zero for
//! densities that fall to zero with Ψ faster than linearly).

use std::f64::consts::PI;

use super::{Random, fraction_of_escape_speed};

/// A spherical density with known cumulative mass, potential and derivatives.
pub(super) trait Sphere {
    /// Mass within `r`.
    fn mass_within(&self, r: f64) -> f64;
    /// `Ψ = −Φ > 0`, zero at infinity, G = 1.
    fn depth(&self, r: f64) -> f64;
    /// Density, of the mass averaged over the sphere.
    fn density(&self, r: f64) -> f64;
}

/// Hernquist 1990, ApJ 356, 359: `ρ = M a / (2π r (r + a)³)`.
#[derive(Clone, Copy)]
pub(super) struct Hernquist {
    /// Mass of the unlimited model.
    pub(super) mass: f64,
    /// Scale radius a.
    pub(super) scale: f64,
}

impl Sphere for Hernquist {
    fn mass_within(&self, r: f64) -> f64 {
        let part = r / (r + self.scale);
        self.mass * part * part
    }

    fn depth(&self, r: f64) -> f64 {
        self.mass / (r + self.scale)
    }

    fn density(&self, r: f64) -> f64 {
        let s = r + self.scale;
        self.mass * self.scale / (2.0 * PI * r * s * s * s)
    }
}

impl Hernquist {
    /// `ρ'` and `ρ''`.
    fn density_slopes(&self, r: f64) -> [f64; 2] {
        let s = r + self.scale;
        let steepness = 1.0 / r + 3.0 / s;
        let density = self.density(r);
        let curvature = steepness * steepness + 1.0 / (r * r) + 3.0 / (s * s);
        [-density * steepness, density * curvature]
    }

    /// A radius with the distribution of mass, within `limit`.
    pub(super) fn radius(&self, random: &mut Random, limit: f64) -> f64 {
        loop {
            let root = random.uniform().sqrt();
            let radius = self.scale * root / (1.0 - root);
            if radius <= limit {
                return radius;
            }
        }
    }
}

/// Distribution function of a Hernquist component in a total potential, as a table over energy.
pub(super) struct Isotropic<'a> {
    total: &'a dyn Sphere,
    /// Energies, from the greatest (the centre) down, and the logarithm of f there.
    table: Vec<[f64; 2]>,
}

/// Radii of the table, in scale radii: it covers all but 10⁻⁸ of the mass within.
const INNERMOST: f64 = 1e-4;
const OUTERMOST: f64 = 1e4;
const RADII: usize = 400;
const INTERVALS: usize = 300;

impl<'a> Isotropic<'a> {
    /// The distribution function of `component` in the potential of `total`, which includes it.
    pub(super) fn new(component: Hernquist, total: &'a dyn Sphere) -> Self {
        let step = libm::log(OUTERMOST / INNERMOST) / (RADII - 1) as f64;
        let radii: Vec<f64> = (0..RADII)
            .map(|i| component.scale * INNERMOST * libm::exp(step * i as f64))
            .collect();
        let depths: Vec<f64> = radii.iter().map(|r| total.depth(*r)).collect();
        // Beyond the table, all mass is as in one point.
        let total_mass = total.mass_within(radii[RADII - 1]);
        let radius_at = |depth: f64| {
            let next = depths.partition_point(|other| *other > depth);
            if next == RADII {
                return total_mass / depth;
            }
            let (i, j) = (next.max(1) - 1, next.max(1));
            let part = libm::log(depths[i] / depth) / libm::log(depths[i] / depths[j]);
            radii[i] * libm::exp(part * step)
        };
        let table = depths
            .iter()
            .map(|energy| {
                // Ψ = E (1 − s²) takes the root out of the integral; s = t³ is dense at small s,
                // where the cusp makes the integrand rise. Midpoints: t = 0 is left out.
                let sum: f64 = (0..INTERVALS)
                    .map(|k| {
                        let t = (k as f64 + 0.5) / INTERVALS as f64;
                        let s = t * t * t;
                        let r = radius_at(energy * (1.0 - s * s));
                        second_derivative(&component, total, r) * 3.0 * t * t
                    })
                    .sum();
                let integral = 2.0 * energy.sqrt() * sum / INTERVALS as f64;
                let f = integral / (8.0_f64.sqrt() * PI * PI);
                [*energy, libm::log(f.max(f64::MIN_POSITIVE))]
            })
            .collect();
        Self { total, table }
    }

    /// The distribution function at an energy.
    fn at(&self, energy: f64) -> f64 {
        let next = self.table.partition_point(|row| row[0] > energy);
        let j = next.clamp(1, self.table.len() - 1);
        let ([e0, f0], [e1, f1]) = (self.table[j - 1], self.table[j]);
        // Linear between logarithms: powers of the energy are exact.
        let part = libm::log(energy / e0) / libm::log(e1 / e0);
        libm::exp(f0 + part.min(10.0) * (f1 - f0))
    }

    /// A speed at the distance `radius` from the centre.
    pub(super) fn speed(&self, random: &mut Random, radius: f64) -> f64 {
        let depth = self.total.depth(radius);
        let density = |q: f64| self.at(depth * (1.0 - q * q));
        (2.0 * depth).sqrt() * fraction_of_escape_speed(random, density)
    }
}

/// `d²ρ/dΨ² = (ρ'' Ψ' − ρ' Ψ'') / Ψ'³`, with `Ψ' = −m/r²` and `Ψ'' = 2m/r³ − 4πρ_total`.
fn second_derivative(component: &Hernquist, total: &dyn Sphere, r: f64) -> f64 {
    let mass = total.mass_within(r);
    let slope = -mass / (r * r);
    let curvature = 2.0 * mass / (r * r * r) - 4.0 * PI * total.density(r);
    let [first, second] = component.density_slopes(r);
    (second * slope - first * curvature) / (slope * slope * slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eddington_gives_hernquists_distribution() {
        let sphere = Hernquist {
            mass: 2.0,
            scale: 0.5,
        };
        let found = Isotropic::new(sphere, &sphere);
        for energy in [0.02, 0.2, 1.0, 2.0, 3.0, 3.6, 3.9] {
            // Hernquist 1990, eq. 17, with v_g² = GM/a = 4.
            let q = (energy / 4.0_f64).sqrt();
            let q2 = q * q;
            let bracket = 3.0 * q.asin()
                + q * (1.0 - q2).sqrt() * (1.0 - 2.0 * q2) * (8.0 * q2 * q2 - 8.0 * q2 - 3.0);
            let norm = sphere.mass / (8.0 * 2.0_f64.sqrt() * PI.powi(3) * 0.5_f64.powi(3) * 8.0);
            let expected = norm * (1.0 - q2).powf(-2.5) * bracket;
            let error = found.at(energy) / expected - 1.0;
            // The integration rule and the table: far below what a sample of bodies can show.
            assert!(error.abs() <= 3e-3, "{error} at {energy}");
        }
    }
}
