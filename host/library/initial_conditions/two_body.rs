//! The Kepler binary.

use super::{GenerateError, Parameter, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

/// Two bodies on a Kepler orbit: an ellipse at apocentre, or a parabola or hyperbola at pericentre.
///
/// G = 1, total mass 1. The semi-major axis of an ellipse is 1, hence the period 2π and the energy `−m₁m₂/2`. The second
/// body has `mass_ratio` times the mass of the first; 0 makes it a test particle. The orbit lies in the xy plane and is
/// run through counter-clockwise. At the beginning the second body of an ellipse stands at distance `1 + e` in the
/// direction of x. It moves in the direction of y with the relative speed `√((1 − e)/(1 + e))`. For an orbit without
/// apocentre, from `e = 1` on, the distance is 1, the pericentre's, and the speed is `√(1 + e)`. The centre of mass rests at
/// the origin.
///
/// # Errors
/// A mass ratio that is negative or not finite, an eccentricity outside `0 ≤ e ≤ 100`.
pub fn two_body(mass_ratio: f64, eccentricity: f64) -> Result<Bodies, GenerateError> {
    if !(0.0..f64::INFINITY).contains(&mass_ratio) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::MassRatio,
            value: mass_ratio,
            range: "at least 0 and finite",
        });
    }
    if !(0.0..=100.0).contains(&eccentricity) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::Eccentricity,
            value: eccentricity,
            range: "from 0 to 100",
        });
    }
    let masses = [1.0 / (1.0 + mass_ratio), mass_ratio / (1.0 + mass_ratio)];
    let (distance, speed) = match eccentricity < 1.0 {
        true => (
            1.0 + eccentricity,
            ((1.0 - eccentricity) / (1.0 + eccentricity)).sqrt(),
        ),
        false => (1.0, (1.0 + eccentricity).sqrt()),
    };

    let mut bodies = room_for(2)?;
    // Each body's share of the separation is the other's share of the mass.
    for (id, share) in [-masses[1], masses[0]].into_iter().enumerate() {
        bodies.push(Body {
            position: [share * distance, 0.0, 0.0],
            velocity: [0.0, share * speed, 0.0],
            mass: masses[id],
            id: id as u64,
            kind: BodyKind::Star,
        });
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_centred, energies};
    use super::*;

    #[test]
    fn orbital_elements_are_those_asked_for() {
        for mass_ratio in [1.0, 0.5, 1e-3, 7.0] {
            for eccentricity in [0.0, 0.5, 0.9] {
                let bodies = two_body(mass_ratio, eccentricity).unwrap();
                let [m1, m2] = [bodies.mass[0], bodies.mass[1]];
                // A handful of roundings, of energies of order 1/(1 − e).
                let tolerance = 16.0 * f64::EPSILON / (1.0 - eccentricity);
                assert!((m2 / m1 - mass_ratio).abs() <= tolerance * mass_ratio);
                assert_centred(&bodies, 2.0);

                let (kinetic, potential) = energies(&bodies);
                let semi_major_axis = -m1 * m2 / (2.0 * (kinetic + potential));
                assert!(
                    (semi_major_axis - 1.0).abs() <= tolerance,
                    "{semi_major_axis}"
                );

                // Angular momentum per reduced mass: √(1 − e²).
                let spin = (bodies.x[1] - bodies.x[0]) * (bodies.vy[1] - bodies.vy[0]);
                let expected = (1.0 - eccentricity * eccentricity).sqrt();
                assert!((spin - expected).abs() <= tolerance, "{spin}");
            }
        }
    }

    #[test]
    fn it_starts_at_apocentre() {
        let bodies = two_body(3.0, 0.6).unwrap();
        // Some roundings of numbers up to 1.6.
        let tolerance = 4.0 * f64::EPSILON;
        assert!((bodies.x[1] - bodies.x[0] - 1.6).abs() <= tolerance);
        assert!((bodies.vy[1] - bodies.vy[0] - 0.5).abs() <= tolerance);
        assert_eq!(bodies.mass, [0.25, 0.75]);
        assert_eq!(
            (&bodies.y[..], &bodies.vx[..]),
            (&[0.0; 2][..], &[0.0; 2][..])
        );
    }

    /// Energies per reduced mass are (e − 1)/2 of a pericentre at 1: 0 of a parabola.
    #[test]
    fn unbound_orbits_start_at_pericentre() {
        for eccentricity in [1.0, 1.5, 3.0] {
            let bodies = two_body(1.0, eccentricity).unwrap();
            let (kinetic, potential) = energies(&bodies);
            let expected = 0.25 * 0.5 * (eccentricity - 1.0);
            assert!((kinetic + potential - expected).abs() <= 1e-15);
            assert_eq!(bodies.x[1] - bodies.x[0], 1.0);
            assert_centred(&bodies, 2.0);
        }
    }

    #[test]
    fn a_massless_companion_is_allowed() {
        let bodies = two_body(0.0, 0.0).unwrap();
        assert_eq!(bodies.mass, [1.0, 0.0]);
        assert_eq!(bodies.body(1).position, [1.0, 0.0, 0.0]);
        assert_eq!(bodies.body(1).velocity, [0.0, 1.0, 0.0]);
    }

    #[test]
    fn elements_out_of_range_are_refused() {
        for (mass_ratio, eccentricity) in [
            (-1.0, 0.0),
            (f64::NAN, 0.0),
            (f64::INFINITY, 0.0),
            (1.0, 101.0),
            (1.0, -0.1),
            (1.0, f64::NAN),
        ] {
            assert!(matches!(
                two_body(mass_ratio, eccentricity),
                Err(GenerateError::OutOfRange { .. })
            ));
        }
    }
}
