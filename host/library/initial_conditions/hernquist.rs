//! The Hernquist sphere.

use super::equilibrium::{Hernquist, Isotropic};
use super::{GenerateError, Random, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

/// Part of the unlimited model's mass that is made; the rest lies beyond 98.5 scale radii.
const PART: f64 = 0.98;

/// A Hernquist sphere of `n` bodies of mass `1/n`, in equilibrium: a bulge, an elliptical galaxy
/// or a dark halo, with a cusp `ρ ∝ 1/r` at the centre and `ρ ∝ r⁻⁴` far out.
///
/// Density `ρ(r) = M a/(2π r (r + a)³)` with isotropic velocities, G = 1, total mass 1 within 98.5
/// scale radii (M = 1/0.98), scale radius a = 1/3: potential energy −1/2 and kinetic energy 1/4
/// within 2 %, and a random part of order n^(−1/2). The centre of mass rests at the origin.
///
/// Method: Hernquist 1990, ApJ 356, 359; velocities from Eddington's formula.
///
/// # Errors
/// No bodies, or too little memory for them.
pub fn hernquist(n: usize, seed: u64) -> Result<Bodies, GenerateError> {
    let mut bodies = room_for(n)?;
    let mut random = Random::new(seed);
    let sphere = Hernquist {
        mass: 1.0 / PART,
        scale: 1.0 / 3.0,
    };
    let root = PART.sqrt();
    let limit = sphere.scale * root / (1.0 - root);
    let velocities = Isotropic::new(sphere, &sphere);
    for id in 0..n as u64 {
        let radius = sphere.radius(&mut random, limit);
        let speed = velocities.speed(&mut random, radius);
        bodies.push(Body {
            position: random.on_sphere(radius),
            velocity: random.on_sphere(speed),
            mass: 1.0 / n as f64,
            id,
            kind: BodyKind::Star,
        });
    }
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::super::norm_squared;
    use super::super::tests::{assert_centred, energies, sorted_radii};
    use super::*;

    #[test]
    fn energies_are_standard() {
        let n = 4_000;
        let bodies = hernquist(n, 1).unwrap();
        let (kinetic, potential) = energies(&bodies);
        // A single body's potential, 3/(1 + r/a), deviates by 0.7 of its mean 1; its v² by some
        // 1.1 of its mean. Five deviations of the mean, and the 2 % of the limit.
        let tolerance = 5.0 * 1.1 / (n as f64).sqrt() + 0.02;
        assert!((kinetic / 0.25 - 1.0).abs() <= tolerance, "K = {kinetic}");
        assert!(
            (potential / -0.5 - 1.0).abs() <= tolerance,
            "U = {potential}"
        );
        assert_centred(&bodies, 40.0);
    }

    #[test]
    fn mass_is_distributed_as_hernquist_says() {
        let n = 50_000;
        let bodies = hernquist(n, 2).unwrap();
        let radii = sorted_radii(&bodies);
        // Kolmogorov–Smirnov, once in 10⁴; and the shift of the centre: its deviation, with a mean
        // square radius of 2a² ln 98 · … ≈ 4.4, is √(4.4/3n) in each direction, and the density
        // of radii at most 2/a.
        let tolerance = (2.23 + 3.0) / (n as f64).sqrt();
        for (i, radius) in radii.iter().enumerate() {
            let within = (radius / (radius + 1.0 / 3.0)).powi(2) / PART;
            let distance = (within - (i as f64 + 0.5) / n as f64).abs();
            assert!(distance <= tolerance, "{distance} at r = {radius}");
        }
    }

    #[test]
    fn the_velocity_dispersion_follows_the_jeans_equation() {
        // Hernquist 1990, eq. 10, for the radial dispersion at r = a:
        // σ² = GM/(12a) · [12·8·ln 2 − (1/2)(25 + 52 + 42 + 12)].
        let expected = (96.0 * 2.0_f64.ln() - 131.0 / 2.0) / 12.0 * 3.0 / PART;
        let bodies = hernquist(60_000, 3).unwrap();
        let squares: Vec<f64> = bodies
            .iter()
            .filter(|b| (0.3..0.367).contains(&norm_squared(b.position).sqrt()))
            .map(|b| norm_squared(b.velocity) / 3.0)
            .collect();
        let count = squares.len() as f64;
        let mean = squares.iter().sum::<f64>() / count;
        // v² of three Gaussian components deviates by √(2/3) of its mean.
        let tolerance = 5.0 * (2.0 / (3.0 * count)).sqrt();
        assert!(
            (mean / expected - 1.0).abs() <= tolerance,
            "{mean} {expected} {tolerance}"
        );
        assert!(tolerance < 0.08);
    }
}
