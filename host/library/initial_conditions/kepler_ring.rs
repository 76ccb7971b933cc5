//! A ring around a central mass.

use super::{GenerateError, Parameter, Random, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

/// A central body and a flat ring of `n − 1` bodies on circular orbits around it, G = 1, total
/// mass 1.
///
/// The ring has `mass_ratio` times the mass of the centre (0 makes it test particles), and reaches
/// from radius `1 − width/2` to `1 + width/2`, evenly in area; bodies at radius 1 have the period
/// 2π. With a width of 0 the bodies are evenly spaced on one circle: Maxwell's ring. Speeds are
/// those of the central body's field alone. The ring lies in the xy plane and turns
/// counter-clockwise; body 0 is the centre. The centre of mass rests at the origin.
///
/// # Errors
/// A mass ratio that is negative or not finite, a width outside `0 ≤ width < 2`; no bodies, or
/// too little memory for them.
pub fn kepler_ring(
    n: usize,
    seed: u64,
    mass_ratio: f64,
    width: f64,
) -> Result<Bodies, GenerateError> {
    let refuse = |parameter, value, range| {
        Err(GenerateError::OutOfRange {
            parameter,
            value,
            range,
        })
    };
    if !(0.0..f64::INFINITY).contains(&mass_ratio) {
        return refuse(Parameter::MassRatio, mass_ratio, "at least 0 and finite");
    }
    if !(0.0..2.0).contains(&width) {
        return refuse(Parameter::Width, width, "at least 0 and below 2");
    }
    let mut bodies = room_for(n)?;
    let mut random = Random::new(seed);
    let ring = n - 1;
    let ring_mass = if ring == 0 {
        0.0
    } else {
        mass_ratio / (1.0 + mass_ratio)
    };
    let central = 1.0 - ring_mass;
    let push = |bodies: &mut Bodies, radius: f64, [x, y]: [f64; 2], mass: f64| {
        let speed = if radius > 0.0 {
            (central / radius).sqrt()
        } else {
            0.0
        };
        let id = bodies.len() as u64;
        bodies.push(Body {
            position: [radius * x, radius * y, 0.0],
            velocity: [-speed * y, speed * x, 0.0],
            mass,
            id,
            kind: BodyKind::Star,
        });
    };
    push(&mut bodies, 0.0, [0.0; 2], central);
    let (inner, outer) = (1.0 - 0.5 * width, 1.0 + 0.5 * width);
    for k in 0..ring {
        let mass = ring_mass / ring as f64;
        if width == 0.0 {
            let (sin, cos) = libm::sincos(std::f64::consts::TAU * k as f64 / ring as f64);
            push(&mut bodies, 1.0, [cos, sin], mass);
        } else {
            let square = inner * inner + random.uniform() * (outer * outer - inner * inner);
            push(&mut bodies, square.sqrt(), random.on_circle(), mass);
        }
    }
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_centred, leapfrog};
    use super::*;

    #[test]
    fn orbits_stay_circular_and_have_keplers_periods() {
        let mut bodies = kepler_ring(40, 1, 0.0, 0.5).unwrap();
        let start = bodies.clone();
        let radius = |bodies: &Bodies, i: usize| bodies.x[i].hypot(bodies.y[i]);
        let steps = 4_000;
        leapfrog(&mut bodies, 0.5 / steps as f64, steps, 0.0);
        for i in 1..40 {
            let r = radius(&start, i);
            assert!((0.75..=1.25).contains(&r));
            // Second order: (ω dt)²/24 and less of a radian each unit of time.
            assert!((radius(&bodies, i) / r - 1.0).abs() <= 1e-7);
            let turned = (start.x[i] * bodies.y[i] - start.y[i] * bodies.x[i]) / (r * r);
            let angle = 0.5 * r.powf(-1.5);
            assert!((turned - angle.sin()).abs() <= 1e-7, "{turned} {angle}");
        }
    }

    #[test]
    fn maxwells_ring_is_even() {
        let bodies = kepler_ring(9, 1, 0.01, 0.0).unwrap();
        assert_centred(&bodies, 1.0);
        assert!((bodies.mass[1] * 8.0 / bodies.mass[0] - 0.01).abs() <= 1e-15);
        for i in 1..9 {
            let next = i % 8 + 1;
            let chord = (bodies.x[i] - bodies.x[next]).hypot(bodies.y[i] - bodies.y[next]);
            assert!((chord - 2.0 * (std::f64::consts::PI / 8.0).sin()).abs() <= 1e-14);
        }
    }

    #[test]
    fn the_ring_is_filled_evenly() {
        let n = 20_001;
        let bodies = kepler_ring(n, 2, 0.0, 1.0).unwrap();
        let inside = (1..n)
            .filter(|i| bodies.x[*i].hypot(bodies.y[*i]) < 1.0)
            .count();
        // Areas between 0.5, 1 and 1.5: 0.75 and 1.25 of π.
        let expected = 0.375 * (n - 1) as f64;
        let deviation = (expected * 0.625).sqrt();
        assert!(
            (inside as f64 - expected).abs() <= 5.0 * deviation,
            "{inside}"
        );
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (ratio, width) in [(-1.0, 0.1), (f64::NAN, 0.1), (0.0, 2.0), (0.0, f64::NAN)] {
            assert!(matches!(
                kepler_ring(5, 0, ratio, width),
                Err(GenerateError::OutOfRange { .. })
            ));
        }
        assert_eq!(kepler_ring(1, 0, 0.5, 0.1).unwrap().mass, [1.0]);
    }
}
