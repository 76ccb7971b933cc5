//! The King model.

use std::f64::consts::PI;

use super::{GenerateError, Parameter, Random, fraction_of_escape_speed, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

/// A King model of `n` bodies of mass `1/n`, in equilibrium: a star cluster with a tidal edge.
///
/// `w0`, from 0.1 to 16, is the depth of the central potential in units of the velocity
/// dispersion: 3 is a loose cluster, 6 a typical globular cluster, 9 and more one with a dense
/// core. Units are the standard ones of Hénon: G = 1, total mass 1, potential energy −1/2, kinetic
/// energy 1/4, up to a random part of order n^(−1/2). The centre of mass rests at the origin.
///
/// Method: King 1966, AJ 71, 64, as Binney & Tremaine, Galactic Dynamics, 2nd ed., section
/// 4.3.3(c) has it: the distribution function `f ∝ exp(E/σ²) − 1` for E > 0, whose density is
/// integrated outwards in its own potential (Runge–Kutta 4) to where the potential is zero.
///
/// # Errors
/// A `w0` out of range; no bodies, or too little memory for them.
pub fn king(n: usize, seed: u64, w0: f64) -> Result<Bodies, GenerateError> {
    king_within(n, seed, w0, 0.0)
}

/// Like [`king`], but with another unit of length: the edge of the model is at `tidal_radius` if this
/// is not 0. G and the total mass are still 1, and the model is in equilibrium.
///
/// A cluster on a circular orbit at distance D around a mass M fills its Roche lobe if its tidal radius is
/// the Jacobi radius D/(3M)^(1/3); around a galaxy with a flat rotation curve, D/(2M)^(1/3) with M the mass
/// within D (King 1962, AJ 67, 471; Binney & Tremaine, section 8.3.1).
///
/// # Errors
/// The errors of [`king`], and a tidal radius that is out of range.
pub fn king_within(
    n: usize,
    seed: u64,
    w0: f64,
    tidal_radius: f64,
) -> Result<Bodies, GenerateError> {
    // Beyond, squares of lengths, speeds and forces would not be numbers.
    if tidal_radius != 0.0 && !(1e-30..=1e30).contains(&tidal_radius) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::TidalRadius,
            value: tidal_radius,
            range: "0, or from 1e-30 to 1e30",
        });
    }
    if !(0.1..=16.0).contains(&w0) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::W0,
            value: w0,
            range: "from 0.1 to 16",
        });
    }
    let mut bodies = room_for(n)?;
    let mut random = Random::new(seed);
    let model = Model::new(w0);
    let mass = 1.0 / n as f64;
    // The model has G = σ = core radius = 1, mass M and energy U; here M = 1 and U = −1/2.
    // But for a given edge, beside which U is what it is.
    let length = match tidal_radius {
        0.0 => model.mass * model.mass / (-2.0 * model.potential_energy),
        given => model.edge() / given,
    };
    let length_unit = 1.0 / length;
    let speed_unit = (length / model.mass).sqrt();
    for id in 0..n as u64 {
        let (radius, w) = model.at_mass(random.uniform() * model.mass);
        let escape_speed = (2.0 * w).sqrt();
        let fraction = fraction_of_escape_speed(&mut random, |q| libm::expm1(w * (1.0 - q * q)));
        bodies.push(Body {
            position: random.on_sphere(radius * length_unit),
            velocity: random.on_sphere(escape_speed * fraction * speed_unit),
            mass,
            id,
            kind: BodyKind::Star,
        });
    }
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

/// Density of `f = exp(E) − 1` with unit factors, at the depth `w`.
fn density(w: f64) -> f64 {
    if w <= 0.0 {
        return 0.0;
    }
    let root = w.sqrt();
    if w < 0.01 {
        // The closed form is a difference of nearly equal terms here: its series instead.
        return w * w * root * (8.0 / 15.0 + w * 16.0 / 105.0) / PI.sqrt();
    }
    libm::exp(w) * libm::erf(root) - (4.0 * w / PI).sqrt() * (1.0 + 2.0 * w / 3.0)
}

/// The model in units of core radius and velocity dispersion, G = 1.
struct Model {
    /// Radius, depth of the potential and mass within, from the centre to the edge.
    table: Vec<[f64; 3]>,
    mass: f64,
    potential_energy: f64,
}

impl Model {
    fn new(w0: f64) -> Self {
        let central = density(w0);
        // W'' + 2W'/r = −9 ρ/ρ₀ as a system of (W, W').
        let slope = |r: f64, [w, dw]: [f64; 2]| [dw, -9.0 * density(w) / central - 2.0 * dw / r];
        let start = 1e-3;
        // W = W₀ − 3r²/2 near the centre.
        let (mut r, mut state) = (start, [w0 - 1.5 * start * start, -3.0 * start]);
        let mass = |r: f64, [_, dw]: [f64; 2]| -r * r * dw;
        let mut table = vec![[0.0, w0, 0.0], [r, state[0], mass(r, state)]];
        while state[0] > 1e-9 * w0 {
            // Towards the edge, where W goes to zero linearly, steps shorten.
            let h = (5e-3 * (1.0 + r)).min(0.5 * state[0] / -state[1]);
            let ahead = |k: [f64; 2], h: f64| [state[0] + h * k[0], state[1] + h * k[1]];
            let k1 = slope(r, state);
            let k2 = slope(r + h / 2.0, ahead(k1, h / 2.0));
            let k3 = slope(r + h / 2.0, ahead(k2, h / 2.0));
            let k4 = slope(r + h, ahead(k3, h));
            for i in 0..2 {
                state[i] += h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]);
            }
            r += h;
            table.push([r, state[0], mass(r, state)]);
        }
        let total = mass(r, state);
        // Φ = −W − M/r_t, and U = ½ ∫ Φ dm.
        let depth: f64 = table
            .windows(2)
            .map(|pair| 0.5 * (pair[0][1] + pair[1][1]) * (pair[1][2] - pair[0][2]))
            .sum();
        Self {
            table,
            mass: total,
            potential_energy: -0.5 * (depth + total * total / r),
        }
    }

    /// Radius at which the density falls to zero.
    fn edge(&self) -> f64 {
        self.table.last().map_or(0.0, |[radius, ..]| *radius)
    }

    /// Radius and depth at which the mass within is `mass`.
    fn at_mass(&self, mass: f64) -> (f64, f64) {
        let next = self.table.partition_point(|row| row[2] < mass);
        let outer = self.table[next.clamp(1, self.table.len() - 1)];
        let inner = self.table[next.clamp(1, self.table.len() - 1) - 1];
        // Interpolated in r³, to which mass is proportional where the density is level.
        let cube = |r: f64| r * r * r;
        let part = ((mass - inner[2]) / (outer[2] - inner[2])).clamp(0.0, 1.0);
        let radius = libm::cbrt(cube(inner[0]) + part * (cube(outer[0]) - cube(inner[0])));
        let part = (radius - inner[0]) / (outer[0] - inner[0]);
        (radius, inner[1] + part * (outer[1] - inner[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_centred, energies, sorted_radii};
    use super::*;

    #[test]
    fn concentrations_are_kings() {
        // log₁₀ of edge over core radius: Binney & Tremaine, figure 4.9; Harris's table has 0.67
        // for W₀ = 3, 1.25 for 6, 1.53 for 7, 2.12 for 9.
        for (w0, concentration) in [(3.0, 0.672), (6.0, 1.255), (7.0, 1.528), (9.0, 2.120)] {
            let edge = Model::new(w0).edge();
            assert!(
                (edge.log10() - concentration).abs() <= 0.004,
                "{w0}: {}",
                edge.log10()
            );
        }
    }

    #[test]
    fn the_series_meets_the_closed_form() {
        let (below, above) = (density(0.009_999), density(0.010_001));
        // ρ ∝ W^(5/2): the two differ by 5·10⁻⁴ of their value; the series by W² · 0.03 of it.
        assert!((above / below - 1.000_5).abs() <= 2e-5, "{}", above / below);
    }

    #[test]
    fn energies_are_standard() {
        let n = 4_000;
        for w0 in [1.0, 5.0, 9.0] {
            let bodies = king(n, 1, w0).unwrap();
            let (kinetic, potential) = energies(&bodies);
            // Deviations of a single body's energies are of the order of their means: five of the
            // mean's, 5/√n = 0.08.
            assert!((kinetic / 0.25 - 1.0).abs() <= 0.08, "{w0}: K = {kinetic}");
            assert!(
                (potential / -0.5 - 1.0).abs() <= 0.08,
                "{w0}: U = {potential}"
            );
            assert_centred(&bodies, 30.0);
        }
    }

    #[test]
    fn mass_is_distributed_as_the_model_says() {
        let n = 50_000;
        let (model, bodies) = (Model::new(6.0), king(n, 2, 6.0).unwrap());
        let length = model.mass * model.mass / (-2.0 * model.potential_energy);
        let radii = sorted_radii(&bodies);
        // Kolmogorov–Smirnov, once in 10⁴; the centre is off by n^(−1/2) of a mean radius of 0.8,
        // where the density of radii is below 1.
        let tolerance = 2.23 / (n as f64).sqrt() + 1.0 / (n as f64).sqrt();
        for row in &model.table {
            let within = radii.partition_point(|r| r * length <= row[0]) as f64 / n as f64;
            let distance = (within - row[2] / model.mass).abs();
            assert!(distance <= tolerance, "{distance} at {}", row[0]);
        }
        let edge = model.edge() / length;
        assert!(radii[n - 1] <= edge * 1.02);
    }

    /// Half-mass radius over tidal radius, as it is in the literature on clusters that fill their Roche lobes
    /// (0.187 for W₀ = 5 and 0.116 for 7: Baumgardt et al. 2010, MNRAS 408, 2353), and the balance of
    /// forces at the edge, where the tide of a circular orbit about a mass of 2000 turns a body away.
    #[test]
    fn an_edge_is_where_it_is_asked_for() {
        let n = 20_000;
        let (host, distance) = (2000.0_f64, 50.0);
        let jacobi = distance * (1.0 / (3.0 * host)).cbrt();
        let omega_squared = host / distance.powi(3);
        let inwards = 1.0 / (jacobi * jacobi);
        assert!((3.0 * omega_squared * jacobi / inwards - 1.0).abs() <= 1e-12);
        for (w0, half_mass) in [(5.0, 0.187), (7.0, 0.116)] {
            let bodies = king_within(n, 4, w0, jacobi).unwrap();
            let radii = sorted_radii(&bodies);
            // The centre of mass is off by 1/√n of a mean radius.
            assert!(radii[n - 1] <= 1.01 * jacobi, "{w0}: {}", radii[n - 1]);
            assert!(radii[n - 1] >= 0.8 * jacobi, "{w0}: {}", radii[n - 1]);
            let found = radii[n / 2] / jacobi;
            assert!((found / half_mass - 1.0).abs() <= 0.03, "{w0}: {found}");
            // Of n bodies, energies are off by some 5/√n.
            let (kinetic, potential) = energies(&bodies);
            let ratio = -2.0 * kinetic / potential;
            assert!((ratio - 1.0).abs() <= 0.04, "{w0}: {ratio}");
        }
        let standard = king(500, 4, 5.0).unwrap();
        assert_eq!(king_within(500, 4, 5.0, 0.0).unwrap(), standard);
        for radius in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                king_within(10, 0, 5.0, radius),
                Err(GenerateError::OutOfRange {
                    parameter: Parameter::TidalRadius,
                    ..
                })
            ));
        }
    }

    #[test]
    fn depths_out_of_range_are_refused() {
        for w0 in [0.0, -1.0, 17.0, f64::NAN] {
            assert!(matches!(
                king(10, 0, w0),
                Err(GenerateError::OutOfRange {
                    parameter: Parameter::W0,
                    ..
                })
            ));
        }
        for w0 in [0.1, 16.0] {
            assert_eq!(king(3, 0, w0).unwrap().check(), Ok(()));
        }
    }
}
