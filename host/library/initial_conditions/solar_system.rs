//! The Sun and the planets.

use super::orbit::Elements;
use super::sun_earth::collect;
use super::{GenerateError, Parameter};
use crate::bodies::Bodies;

/// The epoch J2000.0, 1 January 2000, 12:00 TDB, as a Julian date.
pub const J2000: f64 = 2_451_545.0;

/// Julian dates of 1 January 1800 and 1 January 2051: the elements below hold between.
const EPOCHS: std::ops::RangeInclusive<f64> = 2_378_497.0..=2_470_172.0;

struct Planet {
    /// Mass of the Sun over that of the planet with its moons.
    sun_per_planet: f64,
    /// Semi-major axis (au), eccentricity, inclination, mean longitude, longitude of perihelion,
    /// longitude of the node (degrees) at J2000, and their changes in a Julian century.
    elements: [[f64; 2]; 6],
}

/// Mercury to Neptune; the third is the barycentre of Earth and Moon.
///
/// Elements: E. M. Standish (JPL/Caltech), "Keplerian Elements for Approximate Positions of the
/// Major Planets", table 1, mean ecliptic and equinox of J2000, valid from 1800 to 2050.
/// Masses: IAU 2009 system of astronomical constants.
const PLANETS: [Planet; 8] = [
    Planet {
        sun_per_planet: 6.023_6e6,
        elements: [
            [0.387_099_27, 0.000_000_37],
            [0.205_635_93, 0.000_019_06],
            [7.004_979_02, -0.005_947_49],
            [252.250_323_50, 149_472.674_111_75],
            [77.457_796_28, 0.160_476_89],
            [48.330_765_93, -0.125_340_81],
        ],
    },
    Planet {
        sun_per_planet: 4.085_237_19e5,
        elements: [
            [0.723_335_66, 0.000_003_90],
            [0.006_776_72, -0.000_041_07],
            [3.394_676_05, -0.000_788_90],
            [181.979_099_50, 58_517.815_387_29],
            [131.602_467_18, 0.002_683_29],
            [76.679_842_55, -0.277_694_18],
        ],
    },
    Planet {
        sun_per_planet: 3.289_005_6e5,
        elements: [
            [1.000_002_61, 0.000_005_62],
            [0.016_711_23, -0.000_043_92],
            [-0.000_015_31, -0.012_946_68],
            [100.464_571_66, 35_999.372_449_81],
            [102.937_681_93, 0.323_273_64],
            [0.0, 0.0],
        ],
    },
    Planet {
        sun_per_planet: 3.098_703_59e6,
        elements: [
            [1.523_710_34, 0.000_018_47],
            [0.093_394_10, 0.000_078_82],
            [1.849_691_42, -0.008_131_31],
            [-4.553_432_05, 19_140.302_684_99],
            [-23.943_629_59, 0.444_410_88],
            [49.559_538_91, -0.292_573_43],
        ],
    },
    Planet {
        sun_per_planet: 1.047_348_644e3,
        elements: [
            [5.202_887_00, -0.000_116_07],
            [0.048_386_24, -0.000_132_53],
            [1.304_396_95, -0.001_837_14],
            [34.396_440_51, 3_034.746_127_75],
            [14.728_479_83, 0.212_526_68],
            [100.473_909_09, 0.204_691_06],
        ],
    },
    Planet {
        sun_per_planet: 3.497_901_8e3,
        elements: [
            [9.536_675_94, -0.001_250_60],
            [0.053_861_79, -0.000_509_91],
            [2.485_991_87, 0.001_936_09],
            [49.954_244_23, 1_222.493_622_01],
            [92.598_878_31, -0.418_972_16],
            [113.662_424_48, -0.288_677_94],
        ],
    },
    Planet {
        sun_per_planet: 2.290_298e4,
        elements: [
            [19.189_164_64, -0.001_961_76],
            [0.047_257_44, -0.000_043_97],
            [0.772_637_83, -0.002_429_39],
            [313.238_104_51, 428.482_027_85],
            [170.954_276_30, 0.408_052_81],
            [74.016_925_03, 0.042_405_89],
        ],
    },
    Planet {
        sun_per_planet: 1.941_226e4,
        elements: [
            [30.069_922_76, 0.000_262_91],
            [0.008_590_48, 0.000_051_05],
            [1.770_043_47, 0.000_353_72],
            [-55.120_029_69, 218.459_453_25],
            [44.964_762_27, -0.322_414_64],
            [131.784_225_74, -0.005_086_64],
        ],
    },
];

impl Planet {
    fn at(&self, epoch: f64) -> Elements {
        let centuries = (epoch - J2000) / 36_525.0;
        let [a, e, i, longitude, perihelion, node] =
            self.elements.map(|[value, rate]| value + rate * centuries);
        Elements {
            semi_major_axis: a,
            eccentricity: e,
            inclination: i.to_radians(),
            node: node.to_radians(),
            argument: (perihelion - node).to_radians(),
            mean_anomaly: (longitude - perihelion).to_radians(),
        }
    }
}

/// Elements of the barycentre of Earth and Moon.
pub(super) fn elements_of_earth(epoch: f64) -> Elements {
    PLANETS[2].at(epoch)
}

/// The Sun (body 0) and the planets Mercury (1) to Neptune (8) as they stood at `epoch`, a Julian
/// date (TDB) from 1800 to 2050. G = 1 in au and solar masses: the unit of time is 58.132 days.
///
/// The frame is that of the mean ecliptic and equinox of J2000, with the centre of mass at rest at
/// the origin. The Earth is the barycentre of Earth and Moon, with the mass of both. Positions are
/// good to some arc minutes as seen from the Sun (10 arc seconds for the inner planets): they come
/// from Keplerian elements fitted by E. M. Standish (JPL), not from an ephemeris, so velocities
/// are those of undisturbed orbits.
///
/// # Errors
/// An epoch out of range.
pub fn solar_system(epoch: f64) -> Result<Bodies, GenerateError> {
    if !EPOCHS.contains(&epoch) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::Epoch,
            value: epoch,
            range: "a Julian date from 2378497 (the year 1800) to 2470172 (the year 2050)",
        });
    }
    let mut list = vec![(1.0, [0.0; 3], [0.0; 3])];
    for planet in &PLANETS {
        let mass = 1.0 / planet.sun_per_planet;
        let [position, velocity] = planet.at(epoch).state(1.0 + mass);
        list.push((mass, position, velocity));
    }
    collect(&list)
}

#[cfg(test)]
mod tests {
    use super::super::norm_squared;
    use super::super::tests::leapfrog;
    use super::*;
    use crate::units::{DAY, Units};

    fn heliocentric(bodies: &Bodies, i: usize) -> [f64; 3] {
        let (sun, planet) = (bodies.body(0).position, bodies.body(i).position);
        [0, 1, 2].map(|k| planet[k] - sun[k])
    }

    #[test]
    fn keplers_third_law_ties_axes_to_mean_motions() {
        // The table's semi-major axes and rates of longitude are independent columns. They agree
        // to the size of mutual disturbances: 10⁻⁵ inside, 5·10⁻⁴ for the giants.
        let year_of_unit_axis = 365.256_898_3; // 2π/k, k Gauss's constant
        for (i, planet) in PLANETS.iter().enumerate() {
            let [a, _, _, longitude, ..] = planet.elements;
            let motion = longitude[1] / 36_525.0 / 360.0 * year_of_unit_axis;
            let mass = 1.0 + 1.0 / planet.sun_per_planet;
            let expected = (mass / a[0].powi(3)).sqrt();
            let tolerance = if i < 4 { 5e-5 } else { 1.5e-3 };
            assert!(
                (motion / expected - 1.0).abs() <= tolerance,
                "{i}: {motion} {expected}"
            );
        }
    }

    #[test]
    fn planets_stood_where_the_ephemeris_has_them() {
        // JPL Horizons, heliocentric, ecliptic of J2000, au, rounded; the tolerance is the
        // accuracy that Standish gives for the elements: 400″ in longitude for Jupiter, 20″ for
        // the Earth.
        let bodies = solar_system(J2000).unwrap();
        for (i, expected, tolerance) in [
            (3, [-0.177_1, 0.967_2, 0.0], 2e-4),
            (5, [4.001_2, 2.938_6, -0.101_8], 1e-2),
        ] {
            let found = heliocentric(&bodies, i);
            let error = [0, 1, 2].map(|k| found[k] - expected[k]);
            assert!(norm_squared(error).sqrt() <= tolerance, "{i}: {found:?}");
        }
    }

    #[test]
    fn integration_meets_the_elements_of_a_later_year() {
        let years = 12.0;
        let unit = "au".parse::<Units>().unwrap().time;
        let mut bodies = solar_system(J2000).unwrap();
        let steps = (years * 365.25 * 8.0) as usize;
        leapfrog(&mut bodies, 0.125 * DAY / unit, steps, 0.0);
        let later = solar_system(J2000 + years * 365.25).unwrap();
        for i in 1..9 {
            let (found, expected) = (heliocentric(&bodies, i), heliocentric(&later, i));
            let error = [0, 1, 2].map(|k| found[k] - expected[k]);
            let angle = (norm_squared(error) / norm_squared(expected)).sqrt();
            // Elements are fitted, not osculating: 600″ at worst at either end (Saturn), and what
            // a wrong mean motion makes of it; leapfrog's phase error for Mercury, (ω dt)²/24 of
            // 50 orbits, is 0.04.
            let tolerance = if i == 1 { 0.06 } else { 0.02 };
            assert!(angle <= tolerance, "{i}: off by {angle}");
        }
    }

    #[test]
    fn epochs_out_of_range_are_refused() {
        for epoch in [0.0, 2_470_173.0, f64::NAN] {
            assert!(matches!(
                solar_system(epoch),
                Err(GenerateError::OutOfRange {
                    parameter: Parameter::Epoch,
                    ..
                })
            ));
        }
    }
}
