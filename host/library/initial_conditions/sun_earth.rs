//! Sun and Earth, and with the Moon.

use super::orbit::Elements;
use super::{GenerateError, room_for};
use crate::bodies::{Bodies, Body, BodyKind};
use crate::units::{ASTRONOMICAL_UNIT, SOLAR_GM};
use crate::vectors::axes;

/// `G` times the mass of the Earth in m³/s² (IAU 2015 resolution B3, nominal).
const EARTH_GM: f64 = 3.986_004e14;
/// Mass of the Moon over the mass of the Earth (IAU 2009 system of constants).
const MOON_PER_EARTH: f64 = 1.230_003_71e-2;

/// Elements of the Moon's orbit around the Earth, referred to the ecliptic, at J2000: km and
/// degrees. Mean ones (JPL Solar System Dynamics, "Planetary Satellite Mean Elements") but for the
/// semi-major axis: starting with the mean 384 400 km, months would be 27.62 days in the Sun's
/// tide. This one makes them what they are, 27.32 days.
const MOON: [f64; 6] = [381_613.0, 0.055_4, 5.16, 125.08, 318.15, 135.27];

/// The orbit of the barycentre of Earth and Moon at J2000, mean ecliptic and equinox of J2000.
///
/// E. M. Standish (JPL/Caltech), "Keplerian Elements for Approximate Positions of the Major
/// Planets", table 1. These are mean elements, and so better than osculating ones for an Earth that
/// no planet disturbs: its year is the real one's mean.
fn orbit_of_earth() -> Elements {
    /// Mean longitude, and longitude of the perihelion, in degrees.
    const LONGITUDES: [f64; 2] = [100.464_571_66, 102.937_681_93];
    let [longitude, perihelion] = LONGITUDES;
    Elements {
        semi_major_axis: 1.000_002_61,
        eccentricity: 0.016_711_23,
        inclination: (-0.000_015_31_f64).to_radians(),
        node: 0.0,
        argument: perihelion.to_radians(),
        mean_anomaly: (longitude - perihelion).to_radians(),
    }
}

/// The Sun (body 0) and the Earth (body 1) at J2000, G = 1 in au and solar masses: the unit of
/// time is 58.132 days, a year is 2π.
///
/// The Earth is on the mean orbit of the barycentre of Earth and Moon around the Sun, in the
/// ecliptic of J2000, and where it was that day to 20″; [`solar_system`](super::solar_system) has
/// the places of an ephemeris. The centre of mass rests at the origin.
///
/// # Errors
/// No memory for two bodies.
pub fn sun_earth() -> Result<Bodies, GenerateError> {
    let earth = EARTH_GM / SOLAR_GM;
    let [position, velocity] = orbit_of_earth().state(1.0 + earth);
    collect(&[(1.0, [0.0; 3], [0.0; 3]), (earth, position, velocity)])
}

/// The Sun (body 0), the Earth (1) and the Moon (2) at J2000, in the units of [`sun_earth`].
///
/// Earth and Moon go round each other with the Moon's mean elements of that day, fitted to give the
/// sidereal month, and their barycentre round the Sun. The Moon's place is right to some degrees.
/// The centre of mass rests at the origin.
///
/// # Errors
/// No memory for three bodies.
pub fn sun_earth_moon() -> Result<Bodies, GenerateError> {
    let earth = EARTH_GM / SOLAR_GM;
    let moon = earth * MOON_PER_EARTH;
    let pair = earth + moon;
    let [centre, drift] = orbit_of_earth().state(1.0 + pair);
    let [a, eccentricity, inclination, node, argument, mean_anomaly] = MOON;
    let [position, velocity] = Elements {
        semi_major_axis: a * 1e3 / ASTRONOMICAL_UNIT,
        eccentricity,
        inclination: inclination.to_radians(),
        node: node.to_radians(),
        argument: argument.to_radians(),
        mean_anomaly: mean_anomaly.to_radians(),
    }
    .state(pair);
    let add = |base: [f64; 3], part: f64, vector: [f64; 3]| axes(|k| base[k] + part * vector[k]);
    let (of_earth, of_moon) = (-moon / pair, earth / pair);
    collect(&[
        (1.0, [0.0; 3], [0.0; 3]),
        (
            earth,
            add(centre, of_earth, position),
            add(drift, of_earth, velocity),
        ),
        (
            moon,
            add(centre, of_moon, position),
            add(drift, of_moon, velocity),
        ),
    ])
}

/// Bodies of these masses, positions and velocities, in the frame of their centre of mass.
pub(super) fn collect(list: &[(f64, [f64; 3], [f64; 3])]) -> Result<Bodies, GenerateError> {
    let mut bodies = room_for(list.len())?;
    for (id, (mass, position, velocity)) in list.iter().enumerate() {
        bodies.push(Body {
            position: *position,
            velocity: *velocity,
            mass: *mass,
            id: id as u64,
            kind: BodyKind::Star,
        });
    }
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::super::tests::leapfrog;
    use super::*;
    use crate::units::{DAY, Units, YEAR};

    fn days(days: f64) -> f64 {
        days * DAY / "au".parse::<Units>().unwrap().time
    }

    fn between(bodies: &Bodies, i: usize, j: usize) -> [f64; 3] {
        let (a, b) = (bodies.body(i).position, bodies.body(j).position);
        axes(|k| b[k] - a[k])
    }

    #[test]
    fn the_earth_is_back_after_a_year() {
        let mut bodies = sun_earth().unwrap();
        let [x, y, _] = between(&bodies, 0, 1);
        // 3 January is perihelion, 0.9833 au; at J2000 the Earth's longitude is 100.4°.
        assert!((x.hypot(y) - 0.983_3).abs() <= 1e-4, "{}", x.hypot(y));
        assert!((y.atan2(x).to_degrees() - 100.38).abs() <= 0.02);
        let steps = 20_000;
        leapfrog(&mut bodies, days(YEAR / DAY) / steps as f64, steps, 0.0);
        let [x1, y1, _] = between(&bodies, 0, 1);
        // A Julian year against the Kepler period of a = 1.000 002 61 au, 1.5 minutes apart plus
        // the anomalistic difference of none here: 4·10⁻⁵ of an orbit at most.
        assert!((x1 - x).hypot(y1 - y) <= 3e-4, "{} {}", x1 - x, y1 - y);
    }

    #[test]
    fn months_are_sidereal() {
        let mut bodies = sun_earth_moon().unwrap();
        let angle = |bodies: &Bodies| {
            let [x, y, _] = between(bodies, 1, 2);
            y.atan2(x)
        };
        let distance = |bodies: &Bodies| {
            let separation = between(bodies, 1, 2);
            super::super::norm_squared(separation).sqrt() * ASTRONOMICAL_UNIT / 1e3
        };
        let (mut turned, mut last) = (0.0, angle(&bodies));
        let (mut nearest, mut farthest) = (f64::INFINITY, 0.0_f64);
        for _ in 0..3 * 365 {
            leapfrog(&mut bodies, days(1.0 / 40.0), 40, 0.0);
            let now = angle(&bodies);
            turned += (now - last).rem_euclid(std::f64::consts::TAU);
            last = now;
            nearest = nearest.min(distance(&bodies));
            farthest = farthest.max(distance(&bodies));
        }
        let month = 3.0 * 365.0 / (turned / std::f64::consts::TAU);
        assert!((month - 27.32).abs() <= 0.05, "{month} days");
        // Perigees and apogees of the real Moon: 356 400 to 406 700 km.
        assert!((350_000.0..365_000.0).contains(&nearest), "{nearest}");
        assert!((400_000.0..410_000.0).contains(&farthest), "{farthest}");
    }
}
