//! The homogeneous sphere.

use super::{GenerateError, Parameter, Random, norm_squared, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

/// Potential energy of a homogeneous sphere of mass and radius 1, G = 1.
const POTENTIAL_ENERGY: f64 = -3.0 / 5.0;

/// A homogeneous sphere of radius 1, of `n` bodies of mass `1/n`, G = 1.
///
/// Velocities are uniform in a ball (hence isotropic, the same everywhere), and scaled such that
/// `2K/|U|` is `virial_ratio`, where `U = −3/5` is the energy of the smooth sphere. At 0 the
/// sphere is at rest and falls together in the time `π/√8 ≈ 1.11`; at 1 it is in balance as a
/// whole, though not in equilibrium at each radius. The centre of mass rests at the origin, which
/// shifts bodies by a random amount of order n^(−1/2).
///
/// # Errors
/// A virial ratio that is negative or not finite; no bodies, or too little memory for them.
pub fn uniform_sphere(n: usize, seed: u64, virial_ratio: f64) -> Result<Bodies, GenerateError> {
    if !(0.0..f64::INFINITY).contains(&virial_ratio) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::VirialRatio,
            value: virial_ratio,
            range: "at least 0 and finite",
        });
    }
    let mut bodies = room_for(n)?;
    let mut random = Random::new(seed);
    let mass = 1.0 / n as f64;
    // Velocities are drawn at any virial ratio, so that positions depend on the seed alone.
    for id in 0..n as u64 {
        let (position, velocity) = (random.in_ball(), random.in_ball());
        bodies.push(Body {
            position,
            velocity,
            mass,
            id,
            kind: BodyKind::Star,
        });
    }
    bodies.to_centre_of_mass_frame();

    let drawn: f64 = bodies
        .iter()
        .map(|body| 0.5 * mass * norm_squared(body.velocity))
        .sum();
    let wanted = 0.5 * virial_ratio * POTENTIAL_ENERGY.abs();
    // A single body rests in its own frame, whatever was asked for.
    let scale = if drawn > 0.0 {
        (wanted / drawn).sqrt()
    } else {
        0.0
    };
    for column in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
        column.iter_mut().for_each(|velocity| *velocity *= scale);
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_centred, energies};
    use super::*;

    #[test]
    fn energies_match_the_virial_ratio() {
        let n = 3_000;
        for ratio in [0.0, 0.3, 1.0] {
            let bodies = uniform_sphere(n, 5, ratio).unwrap();
            let (kinetic, potential) = energies(&bodies);
            // Scaled to the value: only the rounding of n terms is left.
            let rounding = n as f64 * f64::EPSILON;
            assert!((kinetic - 0.3 * ratio).abs() <= rounding, "K = {kinetic}");
            // The single body's potential in the model, −(3 − r²)/2, has the deviation 0.13
            // (r² is distributed with variance 12/175): five deviations, and the n-th part that
            // is missing for lack of self-energy.
            let sampling = 5.0 * 0.13 / (n as f64).sqrt() + 0.6 / n as f64;
            assert!(
                (potential - POTENTIAL_ENERGY).abs() <= sampling,
                "U = {potential}"
            );
            assert_centred(&bodies, 1.0);
        }
    }

    #[test]
    fn density_is_uniform() {
        let n = 50_000;
        let bodies = uniform_sphere(n, 6, 0.0).unwrap();
        let mut radii: Vec<_> = bodies
            .iter()
            .map(|b| norm_squared(b.position).sqrt())
            .collect();
        radii.sort_by(f64::total_cmp);
        // Kolmogorov–Smirnov, once in 10⁴; centring shifts r³ by up to 3 deviations of the centre
        // (√(1/5n) in each of three directions).
        let tolerance = 2.23 / (n as f64).sqrt() + 3.0 * (3.0 / (5.0 * n as f64)).sqrt();
        for (i, radius) in radii.iter().enumerate() {
            let distance = (radius.powi(3) - (i as f64 + 0.5) / n as f64).abs();
            assert!(distance <= tolerance, "{distance} at r = {radius}");
        }
    }

    #[test]
    fn positions_depend_on_the_seed_alone() {
        let (cold, warm) = (
            uniform_sphere(50, 7, 0.0).unwrap(),
            uniform_sphere(50, 7, 1.0).unwrap(),
        );
        assert_eq!((&cold.x, &cold.y, &cold.z), (&warm.x, &warm.y, &warm.z));
        assert!(
            cold.vx
                .iter()
                .chain(&cold.vy)
                .chain(&cold.vz)
                .all(|v| *v == 0.0)
        );
        assert_ne!(cold.x, uniform_sphere(50, 8, 0.0).unwrap().x);
    }

    /// A change of any bit here changes everybody's reproduced runs: it belongs in the changelog.
    #[test]
    fn bits_are_pinned() {
        let first = uniform_sphere(64, 42, 0.5).unwrap().body(0);
        assert_eq!(first.position, PINNED_POSITION);
        assert_eq!(first.velocity, PINNED_VELOCITY);
    }

    const PINNED_POSITION: [f64; 3] =
        [-0.5411125470989668, -0.5929612740726738, 0.5152414548120087];
    const PINNED_VELOCITY: [f64; 3] =
        [0.0375299967601691, 0.6595605038177029, -0.17299169456162167];

    #[test]
    fn virial_ratios_out_of_range_are_refused() {
        for ratio in [-0.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                uniform_sphere(10, 0, ratio),
                Err(GenerateError::OutOfRange {
                    parameter: Parameter::VirialRatio,
                    ..
                })
            ));
        }
        assert!(uniform_sphere(1, 0, 1.0).unwrap().check().is_ok());
    }
}
