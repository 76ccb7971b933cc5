//! The Plummer sphere.

use std::f64::consts::PI;

use super::{GenerateError, Random, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

/// Scale radius `a` of a Plummer sphere of mass 1 and energy −1/4, from `E = −3π/(64 a)`.
const SCALE_RADIUS: f64 = 3.0 * PI / 16.0;

/// Greatest distance from the centre, in scale radii. Within it is 0.999 of the unlimited model's
/// mass; without it, a few bodies would fly far beyond everything else.
const CUTOFF: f64 = 38.7;

/// A Plummer sphere of `n` bodies of mass `1/n`, in equilibrium.
///
/// Density `ρ(r) = 3/(4π a³) (1 + r²/a²)^(−5/2)` with isotropic velocities. Units are the standard
/// ones of Hénon: G = 1, total mass 1, total energy −1/4 (kinetic 1/4, potential −1/2), so that
/// the scale radius a is 3π/16 ≈ 0.589, the half-mass radius 0.769 and the crossing time 2√2. The
/// centre of mass rests at the origin; energies are those of the model up to a random part of
/// order n^(−1/2).
///
/// Method: Aarseth, Hénon & Wielen 1974, A&A 37, 183, with the cube root of a uniform number drawn
/// as the largest of three, which has the same distribution and needs no `pow`.
///
/// # Errors
/// No bodies, or too little memory for them.
pub fn plummer(n: usize, seed: u64) -> Result<Bodies, GenerateError> {
    let mut bodies = room_for(n)?;
    let mut random = Random::new(seed);
    let mass = 1.0 / n as f64;
    // From G = M = a = 1 to standard units: lengths × a, velocities × √(1/a).
    let velocity_unit = (1.0 / SCALE_RADIUS).sqrt();
    for id in 0..n as u64 {
        let radius = radius(&mut random);
        let escape_speed = (2.0 / (1.0 + radius * radius).sqrt()).sqrt();
        let speed = escape_speed * fraction_of_escape_speed(&mut random);
        bodies.push(Body {
            position: random.on_sphere(radius * SCALE_RADIUS),
            velocity: random.on_sphere(speed * velocity_unit),
            mass,
            id,
            kind: BodyKind::Star,
        });
    }
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

/// Distance from the centre for a = 1: mass within r is `m = r³/(1 + r²)^(3/2)`, hence
/// `r = c/√(1 − c²)` where c is the cube root of a uniform m.
fn radius(random: &mut Random) -> f64 {
    loop {
        let cube_root = random.uniform().max(random.uniform()).max(random.uniform());
        let radius = cube_root / (1.0 - cube_root * cube_root).sqrt();
        if radius <= CUTOFF {
            return radius;
        }
    }
}

/// Speed over escape speed, with density `g(q) ∝ q²(1 − q²)^(7/2)`: by rejection under 0.1, just
/// above the maximum of g, 0.0922 at q² = 2/9.
fn fraction_of_escape_speed(random: &mut Random) -> f64 {
    loop {
        let (q, height) = (random.uniform(), 0.1 * random.uniform());
        let w = 1.0 - q * q;
        if height < q * q * (w * w * w * w.sqrt()) {
            return q;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::norm_squared;
    use super::super::tests::{assert_centred, energies};
    use super::*;

    /// Standard deviation of the mean of `values`.
    fn error_of_mean(values: &[f64]) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / n
            / n)
            .sqrt()
    }

    #[test]
    fn energies_are_standard() {
        let n = 4_000;
        let bodies = plummer(n, 1).unwrap();
        let (kinetic, potential) = energies(&bodies);

        // Five standard deviations of the sampled means. The potential energy is half the mean of
        // a function of pairs, whose deviation is that of the single body's potential in the
        // model, φ = −1/√(r² + a²). The cut-off leaves out 0.001 of the mass, hence the slack.
        let speeds: Vec<_> = bodies
            .iter()
            .map(|b| 0.5 * norm_squared(b.velocity))
            .collect();
        let potentials: Vec<_> = bodies
            .iter()
            .map(|b| -1.0 / (norm_squared(b.position) + SCALE_RADIUS * SCALE_RADIUS).sqrt())
            .collect();
        let slack = 2.0 * 0.001;
        let of_kinetic = 5.0 * error_of_mean(&speeds) + slack;
        let of_potential = 5.0 * error_of_mean(&potentials) + slack;
        assert!(
            of_kinetic < 0.03 && of_potential < 0.06,
            "{of_kinetic} {of_potential}"
        );
        assert!((kinetic - 0.25).abs() <= of_kinetic, "K = {kinetic}");
        assert!((potential + 0.5).abs() <= of_potential, "U = {potential}");
        assert_centred(&bodies, 30.0);
    }

    #[test]
    fn mass_is_distributed_as_plummer_says() {
        let n = 100_000;
        let bodies = plummer(n, 2).unwrap();
        let mut radii: Vec<_> = bodies
            .iter()
            .map(|b| norm_squared(b.position).sqrt())
            .collect();
        radii.sort_by(f64::total_cmp);

        // Kolmogorov–Smirnov: exceeded once in 10⁴ samples at 2.23/√n. The cut-off shifts the
        // distribution by 0.001, the centring by much less.
        let tolerance = 2.23 / (n as f64).sqrt() + 0.001;
        for (i, radius) in radii.iter().enumerate() {
            let x = radius / SCALE_RADIUS;
            let within = (x * x / (1.0 + x * x)).powf(1.5);
            let distance = (within - (i as f64 + 0.5) / n as f64).abs();
            assert!(distance <= tolerance, "{distance} at r = {radius}");
        }

        // a/√(2^(2/3) − 1). The median of n values has the deviation 1/(2 f √n), f = 0.72 being
        // the density of radii there (4π r² ρ).
        let half_mass = SCALE_RADIUS / (2.0_f64.powf(2.0 / 3.0) - 1.0).sqrt();
        let tolerance = 5.0 / (2.0 * 0.72 * (n as f64).sqrt()) + 0.001 / 0.72;
        assert!(
            (radii[n / 2] - half_mass).abs() <= tolerance,
            "{} {half_mass}",
            radii[n / 2]
        );
        assert!(radii[n - 1] < CUTOFF * SCALE_RADIUS * 1.01);
    }

    #[test]
    fn velocities_are_isotropic_and_bound() {
        let n = 20_000;
        let bodies = plummer(n, 3).unwrap();
        for body in bodies.iter() {
            let x = norm_squared(body.position) / (SCALE_RADIUS * SCALE_RADIUS);
            let escape_squared = 2.0 / (SCALE_RADIUS * (1.0 + x).sqrt());
            // The shift to the centre-of-mass frame is of order n^(−1/2).
            assert!(norm_squared(body.velocity).sqrt() <= escape_squared.sqrt() + 0.05);
        }
        // Mean square of each component is a third of 2K = 1/2.
        for column in [&bodies.vx, &bodies.vy, &bodies.vz] {
            let squares: Vec<_> = column.iter().map(|v| v * v).collect();
            let mean = squares.iter().sum::<f64>() / n as f64;
            assert!(
                (mean - 1.0 / 6.0).abs() <= 5.0 * error_of_mean(&squares) + 0.0005,
                "{mean}"
            );
        }
    }

    /// A change of any bit here changes everybody's reproduced runs: it belongs in the changelog.
    #[test]
    fn bits_are_pinned() {
        let bodies = plummer(64, 42).unwrap();
        assert_eq!(bodies, plummer(64, 42).unwrap());
        assert_ne!(bodies, plummer(64, 43).unwrap());
        let first = bodies.body(0);
        assert_eq!(first.position, PINNED_POSITION);
        assert_eq!(first.velocity, PINNED_VELOCITY);
    }

    const PINNED_POSITION: [f64; 3] = [
        0.011601583617753874,
        0.45123256425169433,
        -0.29050425692614545,
    ];
    const PINNED_VELOCITY: [f64; 3] = [
        -0.0741364005682612,
        -0.2819883547138672,
        -0.49571912267250884,
    ];
}
