//! Cold collapse.

use super::{GenerateError, Parameter, Random, norm_squared, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

/// Potential energy of the smooth sphere of density ∝ 1/r, mass and radius 1: −∫ m(r) dm/r with
/// m = r².
const POTENTIAL_ENERGY: f64 = -2.0 / 3.0;

/// A sphere of density `ρ ∝ 1/r` and radius 1, far from equilibrium: it falls together, bounces
/// and relaxes violently, with some bodies thrown out. `n` bodies of mass `1/n`, G = 1.
///
/// Velocities are uniform in a ball, scaled such that `2K/|U|` is `virial_ratio` (0.1 or less is
/// cold), with `U = −2/3` of the smooth sphere. Unlike a homogeneous sphere (`uniform-sphere`),
/// whose shells all arrive at once, this one collapses from the inside: the first bounce is at
/// about t = 1. The centre of mass rests at the origin.
///
/// After van Albada 1982, MNRAS 201, 939.
///
/// # Errors
/// A virial ratio that is negative or not finite; no bodies, or too little memory for them.
pub fn cold_collapse(n: usize, seed: u64, virial_ratio: f64) -> Result<Bodies, GenerateError> {
    if !(0.0..f64::INFINITY).contains(&virial_ratio) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::VirialRatio,
            value: virial_ratio,
            range: "at least 0 and finite",
        });
    }
    let mut bodies = room_for(n)?;
    let mut random = Random::new(seed);
    // v² uniform in a ball of radius V has the mean 3V²/5.
    let largest = (5.0 / 3.0 * virial_ratio * POTENTIAL_ENERGY.abs()).sqrt();
    for id in 0..n as u64 {
        let radius = random.uniform().sqrt();
        bodies.push(Body {
            position: random.on_sphere(radius),
            velocity: random.in_ball().map(|component| largest * component),
            mass: 1.0 / n as f64,
            id,
            kind: BodyKind::Star,
        });
    }
    bodies.to_centre_of_mass_frame();
    // Exactly the ratio, whatever the sample.
    let drawn: f64 = bodies
        .iter()
        .map(|body| 0.5 * body.mass * norm_squared(body.velocity))
        .sum();
    if drawn > 0.0 {
        let scale = (0.5 * virial_ratio * POTENTIAL_ENERGY.abs() / drawn).sqrt();
        for column in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
            column.iter_mut().for_each(|velocity| *velocity *= scale);
        }
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_centred, energies, leapfrog, sorted_radii};
    use super::*;

    #[test]
    fn it_is_as_cold_as_asked_for() {
        let n = 3_000;
        for ratio in [0.0, 0.1, 0.5] {
            let bodies = cold_collapse(n, 1, ratio).unwrap();
            let (kinetic, potential) = energies(&bodies);
            assert!(
                (kinetic - ratio / 3.0).abs() <= n as f64 * f64::EPSILON,
                "{kinetic}"
            );
            // The single body's potential, r − 2, deviates by √(1/18) = 0.24: five deviations,
            // half of it counted, and a part that is the mean pair's.
            let tolerance = 5.0 * 0.24 / (n as f64).sqrt() + 1.0 / n as f64;
            assert!(
                (potential - POTENTIAL_ENERGY).abs() <= tolerance,
                "{potential}"
            );
            assert_centred(&bodies, 1.0);
        }
    }

    #[test]
    fn mass_within_grows_with_the_square_of_the_radius() {
        let n = 50_000;
        let radii = sorted_radii(&cold_collapse(n, 2, 0.0).unwrap());
        let tolerance = (2.23 + 3.0) / (n as f64).sqrt();
        for (i, radius) in radii.iter().enumerate() {
            let distance = (radius * radius - (i as f64 + 0.5) / n as f64).abs();
            assert!(distance <= tolerance, "{distance} at r = {radius}");
        }
    }

    #[test]
    fn it_collapses_and_bounces() {
        let mut bodies = cold_collapse(400, 3, 0.05).unwrap();
        let half = |bodies: &Bodies| sorted_radii(bodies)[200];
        let start = half(&bodies);
        let mut smallest = start;
        for _ in 0..15 {
            leapfrog(&mut bodies, 0.01, 10, 0.05);
            smallest = smallest.min(half(&bodies));
        }
        let end = half(&bodies);
        assert!((start - 0.707).abs() < 0.05, "{start}");
        assert!(
            smallest < 0.5 * start && end > 1.1 * smallest,
            "{smallest} {end}"
        );
    }
}
