//! The Sun and the planets.

use super::ephemeris::{
    AFTER_100_YEARS, ASTRONOMICAL_UNIT_KM, AT_J2000, EARTH_PER_MOON, MOON_AT_J2000,
};
use super::sun_earth::collect;
use super::{GenerateError, Parameter, norm_squared};
use crate::bodies::{Bodies, Body};
use crate::integrator::{Integrator, Stage};
use crate::units::{ASTRONOMICAL_UNIT, DAY, SOLAR_GM, SOLAR_MASS, Units};
use crate::vectors::axes;

/// The epoch J2000.0, 1 January 2000, 12:00 TDB, as a Julian date.
pub const J2000: f64 = 2_451_545.0;

/// Julian dates 200 Julian years to either side of J2000: as far as DE423 goes, with which
/// integrations were compared.
const EPOCHS: std::ops::RangeInclusive<f64> = 2_378_495.0..=2_524_595.0;

/// Obliquity of the ecliptic at J2000, in arc seconds (IAU 1976), which JPL Horizons takes as well.
const OBLIQUITY: f64 = 84_381.448;

/// Longest step towards another epoch, in days: 350 of Mercury's period and 109 of the Moon's.
const LONGEST_STEP: f64 = 0.25;

/// Names of the bodies of [`solar_system`] and [`solar_system_with_moon`], by their ids. The Earth
/// of the former is the barycentre of Earth and Moon, with the mass of both.
pub const SOLAR_SYSTEM_NAMES: [&str; 11] = [
    "Sun", "Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune", "Pluto",
    "Moon",
];

/// Id of the Earth.
const EARTH: usize = 3;

/// The Sun (body 0), the planets Mercury (1) to Neptune (8) and Pluto (9) as they stood at `epoch`, a
/// Julian date (TDB) from 1800 to 2200. G = 1 in au and solar masses: the unit of time is 58.132
/// days. [`SOLAR_SYSTEM_NAMES`] names them.
///
/// **Source:** states and G·M at J2000 are taken from JPL's ephemeris DE423 (Folkner 2010). Body 3 is
/// the barycentre of Earth and Moon; planets have the mass of their satellites with them.
///
/// **Frame:** ecliptic and equinox of J2000, the equator of the ICRF turned by 84 381.448″ about the
/// x axis. The barycentre of the bodies rests at the origin. Times are barycentric dynamical time
/// (TDB), also those of snapshots, in which J2000 is time 0.
///
/// **Other epochs** are reached from J2000 by integration: Newtonian gravity of these bodies, in f64,
/// Yoshida's sixth order with steps of a quarter of a day, whose own error is below 0.01″. What is
/// missing is mostly general relativity. Seen from the Sun, 10 years from J2000, bodies are off
/// DE423 by 8.2″ (Mercury), 1.8″ (Venus), 0.8″ (Earth and Moon), 0.4″ (Mars) and 0.02″ (others);
/// 100 years from it by 21″ (Mercury), 17″, 8″, 4″ and 0.1″; 200 years by
/// 130″, 36″, 16″, 7″ and 0.3″. Simulations from J2000 miss as
/// much.
///
/// # Errors
/// An epoch out of range.
pub fn solar_system(epoch: f64) -> Result<Bodies, GenerateError> {
    at(epoch, false)
}

/// Like [`solar_system`], but Earth (body 3) and Moon (body 10) are two bodies.
///
/// The Moon is right to 1″ as the Sun sees it, and to 2′ as the Earth does, 10 years from J2000; the
/// tides and the figures of Earth and Moon, which its orbit feels, are not simulated.
///
/// # Errors
/// An epoch out of range.
pub fn solar_system_with_moon(epoch: f64) -> Result<Bodies, GenerateError> {
    at(epoch, true)
}

/// Like [`solar_system`], but with the Moon as another body if `moon` is 1.
pub(super) fn by_options(epoch: f64, moon: f64) -> Result<Bodies, GenerateError> {
    if moon != 0.0 && moon != 1.0 {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::Moon,
            value: moon,
            range: "1 (Earth and Moon are two bodies) or 0 (their barycentre is one)",
        });
    }
    at(epoch, moon == 1.0)
}

fn at(epoch: f64, moon: bool) -> Result<Bodies, GenerateError> {
    if !EPOCHS.contains(&epoch) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::Epoch,
            value: epoch,
            range: "a Julian date from 2378495 (the year 1800) to 2524595 (the year 2200)",
        });
    }
    let mut list: Vec<_> = AT_J2000
        .iter()
        .map(|state| (mass(state.gm), state.position, state.velocity))
        .collect();
    if moon {
        let [position, velocity] = MOON_AT_J2000;
        let (both, centre, drift) = list[EARTH];
        let of_moon = 1.0 / (1.0 + EARTH_PER_MOON);
        let of_earth = 1.0 - of_moon;
        let add =
            |base: [f64; 3], part: f64, vector: [f64; 3]| axes(|k| base[k] + part * vector[k]);
        list[EARTH] = (
            both * of_earth,
            add(centre, -of_moon, position),
            add(drift, -of_moon, velocity),
        );
        list.push((
            both * of_moon,
            add(centre, of_earth, position),
            add(drift, of_earth, velocity),
        ));
    }
    let day = DAY / units().time;
    for (_, position, velocity) in &mut list {
        *position = ecliptic(*position);
        *velocity = ecliptic(*velocity).map(|v| v / day);
    }
    let mut bodies = collect(&list)?;
    integrate(&mut bodies, epoch - J2000, day);
    // The barycentre stays but for rounding.
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

/// Astronomical units and solar masses, G = 1.
fn units() -> Units {
    Units::with_unit_g(ASTRONOMICAL_UNIT, SOLAR_MASS)
}

/// The time of an epoch in the generator's unit, J2000 being 0.
pub(super) fn time_of_epoch(epoch: f64) -> f64 {
    (epoch - J2000) * (DAY / units().time)
}

/// Solar masses of a GM in au³/day² of the ephemeris.
fn mass(gm: f64) -> f64 {
    let au = 1e3 * ASTRONOMICAL_UNIT_KM;
    gm * (au * au * au) / (DAY * DAY) / SOLAR_GM
}

/// From km and the equator to au and the ecliptic.
fn ecliptic([x, y, z]: [f64; 3]) -> [f64; 3] {
    let (sin, cos) = libm::sincos((OBLIQUITY / 3600.0).to_radians());
    [x, cos * y + sin * z, cos * z - sin * y].map(|km| km * 1e3 / ASTRONOMICAL_UNIT)
}

/// Positions of the bodies of [`solar_system`] in DE423 100 Julian years after J2000, by id, in its
/// frame and units.
pub fn ephemeris_after_a_century() -> [[f64; 3]; 10] {
    AFTER_100_YEARS.map(ecliptic)
}

/// Moves the bodies by so many days, `day` being one of them, by the sums of the reference but in
/// one thread: the same bits on every machine.
fn integrate(bodies: &mut Bodies, days: f64, day: f64) {
    let stages = Integrator::Yoshida6
        .stages()
        .expect("it is made of kicks and drifts");
    let steps = (days.abs() / LONGEST_STEP).ceil();
    if steps == 0.0 {
        return;
    }
    let dt = days * day / steps;
    let mut list: Vec<Body> = bodies.iter().collect();
    for _ in 0..steps as u64 {
        for stage in stages {
            match stage {
                Stage::Kick(share) => kick(&mut list, share * dt),
                Stage::Drift(share) => {
                    for body in &mut list {
                        for k in 0..3 {
                            body.position[k] += share * dt * body.velocity[k];
                        }
                    }
                }
            }
        }
    }
    *bodies = list.into_iter().collect();
}

/// `v += dt a`, G = 1, each pair once.
fn kick(list: &mut [Body], dt: f64) {
    for i in 1..list.len() {
        let (before, rest) = list.split_at_mut(i);
        let a = &mut rest[0];
        for b in before {
            let d = axes(|k| b.position[k] - a.position[k]);
            let square = norm_squared(d);
            let scale = dt / (square * square.sqrt());
            for (k, d) in d.into_iter().enumerate() {
                a.velocity[k] += b.mass * scale * d;
                b.velocity[k] -= a.mass * scale * d;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ephemeris::{
        YEARS_10, YEARS_200, YEARS_BEFORE_10, YEARS_BEFORE_100, YEARS_BEFORE_200,
    };
    use super::super::tests::assert_centred;
    use super::*;

    /// From the Sun, body 0, to each of the others.
    fn heliocentric(positions: &[[f64; 3]]) -> Vec<[f64; 3]> {
        let sun = positions[0];
        let from_sun = |p: &[f64; 3]| axes(|k| p[k] - sun[k]);
        positions[1..].iter().map(from_sun).collect()
    }

    /// Angle between two directions in arc seconds.
    fn angle(a: [f64; 3], b: [f64; 3]) -> f64 {
        let cross = [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ];
        let dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        norm_squared(cross).sqrt().atan2(dot).to_degrees() * 3600.0
    }

    /// Errors of Mercury to Pluto (and the Moon) as the Sun sees them, in arc seconds.
    fn errors(bodies: &Bodies, ephemeris: &[[f64; 3]]) -> Vec<f64> {
        let expected: Vec<_> = ephemeris.iter().copied().map(ecliptic).collect();
        let found: Vec<_> = bodies.iter().map(|body| body.position).collect();
        let (found, expected) = (heliocentric(&found), heliocentric(&expected));
        found
            .iter()
            .zip(expected)
            .map(|(a, b)| angle(*a, b))
            .collect()
    }

    #[test]
    fn bodies_are_where_the_ephemeris_has_them() {
        // What is missing is relativity: it changes longitudes by about 6 GM/(c² a) of what they run
        // through, a century's 82″, 17.4″, 7.8″, 2.7″ and 0.13″ for Mercury to Jupiter. Mercury's
        // orbit is eccentric and its perihelion advances by 43″, so that the place on the orbit
        // matters as much. Mars feels the asteroids as well.
        let ten = [10.0, 2.0, 1.0, 0.5, 0.03, 0.01, 0.01, 0.01, 0.01];
        let hundred = [30.0, 18.5, 8.5, 4.5, 0.2, 0.05, 0.02, 0.02, 0.02];
        let two_hundred = [160.0, 37.0, 17.0, 7.5, 0.4, 0.1, 0.05, 0.05, 0.05];
        let mut report = String::new();
        let mut failed = false;
        for (years, ephemeris, bounds) in [
            (10.0, &YEARS_10[..10], ten),
            (-10.0, &YEARS_BEFORE_10[..10], ten),
            (100.0, &AFTER_100_YEARS[..], hundred),
            (-100.0, &YEARS_BEFORE_100[..], hundred),
            (200.0, &YEARS_200[..], two_hundred),
            (-200.0, &YEARS_BEFORE_200[..], two_hundred),
        ] {
            let bodies = solar_system(J2000 + 365.25 * years).unwrap();
            assert_centred(&bodies, 100.0);
            let errors = errors(&bodies, ephemeris);
            report += &format!("{years}: {errors:.3?}\n");
            let missed = |(error, bound): (&f64, f64)| error.is_nan() || *error > bound;
            failed |= errors.iter().zip(bounds).any(missed);
        }
        assert!(!failed, "\n{report}");
    }

    #[test]
    fn earth_and_moon_apart() {
        let bodies = solar_system_with_moon(J2000).unwrap();
        assert_eq!(bodies.len(), SOLAR_SYSTEM_NAMES.len());
        let pair = solar_system(J2000).unwrap();
        assert_eq!(pair.len(), 10);
        let (earth, moon, both) = (bodies.body(3), bodies.body(10), pair.body(3));
        assert!((earth.mass + moon.mass - both.mass).abs() <= 1e-20);
        for k in 0..3 {
            let mean = |a: f64, b: f64| (earth.mass * a + moon.mass * b) / both.mass;
            let place = mean(earth.position[k], moon.position[k]);
            assert!((place - both.position[k]).abs() <= 1e-14);
            let speed = mean(earth.velocity[k], moon.velocity[k]);
            assert!((speed - both.velocity[k]).abs() <= 1e-14);
        }
        for (years, ephemeris) in [(10.0, YEARS_10), (-10.0, YEARS_BEFORE_10)] {
            let bodies = solar_system_with_moon(J2000 + 365.25 * years).unwrap();
            let found = bodies.iter().map(|body| body.position);
            let found: Vec<_> = found.collect();
            let seen = axes(|k| found[10][k] - found[3][k]);
            let off = angle(seen, ecliptic(ephemeris[10]));
            assert!(
                off <= 120.0,
                "{years}: the Moon is off by {off}″ from the Earth"
            );
            // The table has the barycentre of Earth and Moon.
            let of_moon = 1.0 / (1.0 + EARTH_PER_MOON);
            let mut expected = ephemeris;
            for k in 0..3 {
                let moon = ephemeris[10][k];
                expected[3][k] -= of_moon * moon;
                expected[10][k] = expected[3][k] + moon;
            }
            let errors = errors(&bodies, &expected);
            for (error, bound) in errors
                .iter()
                .zip([10.0, 2.0, 1.5, 0.5, 0.03, 0.01, 0.01, 0.01, 0.01, 1.5])
            {
                assert!(*error <= bound, "{years}: {errors:.3?}");
            }
        }
    }

    /// G·M of the ephemeris are those of the IAU's constants (2009), and the state at J2000 is the
    /// published one, turned to the ecliptic.
    #[test]
    fn masses_and_frame_are_those_of_other_sources() {
        let bodies = solar_system(J2000).unwrap();
        // Mass of the Sun over the planet's.
        let published = [
            6.023_6e6,
            408_523.719,
            328_900.56,
            3_098_703.59,
            1_047.348_644,
            3_497.901_8,
            22_902.98,
            19_412.26,
            1.365_66e8,
        ];
        for (id, ratio) in (1..).zip(published) {
            let found = bodies.mass[0] / bodies.mass[id];
            // Pluto's was measured again in between.
            let tolerance = if id == 9 { 1e-2 } else { 1e-4 };
            assert!((found / ratio - 1.0).abs() <= tolerance, "{id}: {found}");
        }
        assert!((bodies.mass[0] - 1.0).abs() <= 1e-8);
        // JPL Horizons, heliocentric, ecliptic of J2000, au, rounded; of the Earth, which is 3e-5 au
        // from the barycentre of Earth and Moon.
        let positions: Vec<_> = bodies.iter().map(|body| body.position).collect();
        let from_sun = heliocentric(&positions);
        for (id, expected) in [
            (3, [-0.177_1, 0.967_2, 0.0]),
            (5, [4.001_2, 2.938_6, -0.101_8]),
        ] {
            let off = axes(|k| from_sun[id - 1][k] - expected[k]);
            assert!(
                norm_squared(off).sqrt() <= 1e-4,
                "{id}: {:?}",
                from_sun[id - 1]
            );
        }
    }

    #[test]
    fn epochs_out_of_range_are_refused() {
        for epoch in [0.0, 2_378_494.5, 2_524_595.5, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                solar_system(epoch),
                Err(GenerateError::OutOfRange {
                    parameter: Parameter::Epoch,
                    ..
                })
            ));
        }
        for moon in [0.5, -1.0, 2.0, f64::NAN] {
            assert!(matches!(
                by_options(J2000, moon),
                Err(GenerateError::OutOfRange {
                    parameter: Parameter::Moon,
                    ..
                })
            ));
        }
    }
}
