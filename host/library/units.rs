//! Units of measure, and the change from one system to another.
//!
//! A system fixes a length, a mass and a time; a system in which `G = 1` is fixed by two of
//! length, mass, time and speed already. Both are written as a list:
//! ```text
//! pc,Msun,km/s          lengths in pc, masses in solar masses, speeds in km/s: G = 0.0043009
//! pc,km/s               G = 1: the unit of mass follows, 232.5 solar masses
//! kpc,1e10Msun,km/s     what Gadget uses
//! au,Msun               G = 1: the unit of time follows, a year/2π
//! m,kg,s                SI
//! ```
//! `si`, `pc`, `kpc` and `au` are short for `m,kg,s`, the first, the third and the fourth.

mod columns;
#[cfg(any(feature = "hdf5", feature = "npz"))]
mod entries;
mod measure;
mod named;
mod shown;
mod spelled;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::bodies::Bodies;

pub use columns::{ColumnUnits, Measured, parts_of_heading};
#[cfg(any(feature = "hdf5", feature = "npz"))]
pub(crate) use entries::{
    EntryValue, names_units, quantity_of_entry, spelled_system, unit_of_entry,
};
pub use measure::{Measure, MeasureError};
pub use shown::Shown;
#[cfg(feature = "csv")]
pub(crate) use spelled::UnitWord;
#[cfg(any(feature = "csv", feature = "hdf5", feature = "npz"))]
pub(crate) use spelled::spelled;
pub(crate) use spelled::units_in;

/// Gravitational constant in m³ kg⁻¹ s⁻², CODATA 2018.
pub const G: f64 = 6.674_30e-11;
/// Astronomical unit in m, exact (IAU 2012 resolution B2).
pub const ASTRONOMICAL_UNIT: f64 = 149_597_870_700.0;
/// `G` times the mass of the Sun in m³ s⁻²: the nominal value (IAU 2015 resolution B3).
pub const SOLAR_GM: f64 = 1.327_124_4e20;
/// Mass of the Sun in kg.
pub const SOLAR_MASS: f64 = SOLAR_GM / G;
/// Parsec in m: 648 000/π astronomical units (IAU 2015 resolution B2).
pub const PARSEC: f64 = ASTRONOMICAL_UNIT * 648_000.0 / std::f64::consts::PI;
/// Day in s.
pub const DAY: f64 = 86_400.0;
/// Julian year in s.
pub const YEAR: f64 = 365.25 * DAY;

/// Relative rounding error of G in units in which it is meant to be 1.
const ROUNDINGS_OF_G: f64 = 1e-12;

/// A system of units, in terms of SI's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Units {
    /// The unit of length in m.
    pub length: f64,
    /// The unit of mass in kg.
    pub mass: f64,
    /// The unit of time in s.
    pub time: f64,
}

/// Factors for the numbers of a state when its units change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// For positions.
    pub length: f64,
    /// For masses.
    pub mass: f64,
    /// For times.
    pub time: f64,
}

impl Units {
    /// Metre, kilogram, second.
    pub const SI: Self = Self {
        length: 1.0,
        mass: 1.0,
        time: 1.0,
    };

    /// The system with this length and this mass in which G = 1.
    pub fn with_unit_g(length: f64, mass: f64) -> Self {
        let time = (length * (length / (G * mass)) * length).sqrt();
        Self { length, mass, time }
    }

    /// The unit of speed in m/s.
    pub fn speed(&self) -> f64 {
        self.length / self.time
    }

    /// The gravitational constant as a number in these units.
    pub fn g(&self) -> f64 {
        let speed = self.speed();
        G * (self.mass / self.length) / (speed * speed)
    }

    /// Like [`g`](Self::g), but exactly 1 in units that are meant to have G = 1. The measured value of G
    /// is far less exact than the rounding of such units.
    pub fn gravity(&self) -> f64 {
        match self.g() {
            g if (g - 1.0).abs() > ROUNDINGS_OF_G => g,
            _ => 1.0,
        }
    }

    /// Returns whether these are the same units, but for rounding of their definitions.
    pub fn are_those_of(&self, other: &Self) -> bool {
        let Factors { length, mass, time } = self.factors_to(other);
        [length, mass, time]
            .iter()
            .all(|factor| (factor - 1.0).abs() <= 1e-6)
    }

    /// The system as a list that reads back as these very numbers: [names](Self::names) where they do, such as
    /// `pc, Msun, km/s`, and sizes such as `1.1m,1.0kg,1.0s` otherwise.
    pub fn list(&self) -> String {
        let names = self.names();
        match names.parse() == Ok(*self) {
            true => names,
            false => format!("{:?}m,{:?}kg,{:?}s", self.length, self.mass, self.time),
        }
    }

    /// Factors that turn numbers in these units to numbers in `other`.
    pub fn factors_to(&self, other: &Self) -> Factors {
        Factors {
            length: self.length / other.length,
            mass: self.mass / other.mass,
            time: self.time / other.time,
        }
    }
}

impl Factors {
    /// Changes the numbers of `bodies`.
    pub fn apply(&self, bodies: &mut Bodies) {
        let scale = |column: &mut [f64], factor: f64| {
            column.iter_mut().for_each(|value| *value *= factor);
        };
        for column in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
            scale(column, self.length);
        }
        for column in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
            scale(column, self.length / self.time);
        }
        scale(&mut bodies.mass, self.mass);
    }
}

/// Names of whole systems.
const SYSTEMS: [(&str, &str); 4] = [
    ("si", "m,kg,s"),
    ("pc", "pc,Msun,km/s"),
    ("kpc", "kpc,1e10Msun,km/s"),
    ("au", "au,Msun"),
];

/// A dimension that units have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Length,
    Mass,
    Time,
    Speed,
}

/// Names of units, and their sizes in SI's.
const UNITS: [(&str, Dimension, f64); 18] = [
    ("m", Dimension::Length, 1.0),
    ("cm", Dimension::Length, 0.01),
    ("km", Dimension::Length, 1e3),
    ("au", Dimension::Length, ASTRONOMICAL_UNIT),
    ("pc", Dimension::Length, PARSEC),
    ("kpc", Dimension::Length, 1e3 * PARSEC),
    ("Mpc", Dimension::Length, 1e6 * PARSEC),
    ("kg", Dimension::Mass, 1.0),
    ("g", Dimension::Mass, 1e-3),
    ("Msun", Dimension::Mass, SOLAR_MASS),
    ("s", Dimension::Time, 1.0),
    ("day", Dimension::Time, DAY),
    ("yr", Dimension::Time, YEAR),
    ("Myr", Dimension::Time, 1e6 * YEAR),
    ("Gyr", Dimension::Time, 1e9 * YEAR),
    ("m/s", Dimension::Speed, 1.0),
    ("cm/s", Dimension::Speed, 0.01),
    ("km/s", Dimension::Speed, 1e3),
];

/// A text that names no system of units.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownUnits {
    /// Not a unit, or not with a positive number before it.
    #[error(
        "`{0}` is not a unit; there are {names}, each with a number before it if wanted, as in \
         1e10Msun",
        names = UNITS.map(|(name, ..)| name).join(", ")
    )]
    Unit(String),
    /// Too many, or too few, units for a system.
    #[error(
        "`{0}` does not make a system of units: name a length, a mass and a time or speed; or only \
         two of these for a system in which G = 1; or si, pc, kpc or au"
    )]
    System(String),
    /// Some other quantity, where a length is wanted.
    #[error("`{0}` is not a length: give one such as 1pc, with m, cm, km, au, pc, kpc or Mpc")]
    NoLength(String),
    /// Some other quantity, where a mass is wanted.
    #[error("`{0}` is not a mass: give one such as 1000Msun, with kg, g or Msun")]
    NoMass(String),
    /// Neither a number nor one with a unit, where a time or a length is wanted.
    #[error(
        "`{0}` is not a number, nor one with a unit: of times s, day, yr, Myr or Gyr, as in 10Myr; of \
         lengths m, cm, km, au, pc, kpc or Mpc"
    )]
    NoMeasure(String),
}

impl FromStr for Units {
    type Err = UnknownUnits;

    fn from_str(text: &str) -> Result<Self, UnknownUnits> {
        let list = SYSTEMS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map_or(text, |(_, list)| list);
        let [mut length, mut mass, mut time, mut speed] = [None; 4];
        for word in list.split(',') {
            let (dimension, size) = unit(word.trim())?;
            let place = match dimension {
                Dimension::Length => &mut length,
                Dimension::Mass => &mut mass,
                Dimension::Time => &mut time,
                Dimension::Speed => &mut speed,
            };
            if place.replace(size).is_some() {
                return Err(UnknownUnits::System(text.to_owned()));
            }
        }
        // Where G = 1: length = G mass / speed².
        let units = match (length, mass, time, speed) {
            (Some(length), Some(mass), Some(time), None) => Self { length, mass, time },
            (Some(length), Some(mass), None, Some(speed)) => Self {
                length,
                mass,
                time: length / speed,
            },
            (Some(length), Some(mass), None, None) => Self::with_unit_g(length, mass),
            (Some(length), None, Some(time), None) => Self {
                length,
                mass: length * (length / time) * (length / time) / G,
                time,
            },
            (Some(length), None, None, Some(speed)) => Self {
                length,
                mass: length * speed * speed / G,
                time: length / speed,
            },
            (None, Some(mass), None, Some(speed)) => {
                let length = G * mass / (speed * speed);
                Self {
                    length,
                    mass,
                    time: length / speed,
                }
            }
            (None, Some(mass), Some(time), None) => {
                let length = (G * mass * time * time).cbrt();
                Self { length, mass, time }
            }
            _ => return Err(UnknownUnits::System(text.to_owned())),
        };
        let sizes = [units.length, units.mass, units.time, units.g()];
        if sizes.iter().all(|size| size.is_normal() && *size > 0.0) {
            Ok(units)
        } else {
            Err(UnknownUnits::System(text.to_owned()))
        }
    }
}

/// Units that are known by the value of the constant of gravity in them; `None` where no usual units have it.
pub(crate) fn usual_units(gravity: f64) -> Option<Units> {
    const USUAL: [&str; 8] = [
        "kpc,1e10Msun,km/s",
        "pc,Msun,km/s",
        "kpc,Msun,km/s",
        "pc,Msun,Myr",
        "au,Msun,yr",
        "au,Msun,day",
        "m,kg,s",
        "cm,g,s",
    ];
    /// Relative errors of constants that people write down.
    const ROUNDED: f64 = 2e-3;
    let units = USUAL.iter().filter_map(|list| list.parse::<Units>().ok());
    units
        .into_iter()
        .find(|units| (gravity / units.g() - 1.0).abs() < ROUNDED)
}

/// A length in m, read with its unit: `1.5pc`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length(pub f64);

/// A mass in kg, read with its unit: `1000Msun`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mass(pub f64);

impl Mass {
    /// So many solar masses.
    pub const fn solar(number: f64) -> Self {
        Self(number * SOLAR_MASS)
    }
}

impl FromStr for Length {
    type Err = UnknownUnits;

    fn from_str(text: &str) -> Result<Self, UnknownUnits> {
        match unit(text.trim())? {
            (Dimension::Length, metres) => Ok(Self(metres)),
            _ => Err(UnknownUnits::NoLength(text.to_owned())),
        }
    }
}

impl FromStr for Mass {
    type Err = UnknownUnits;

    fn from_str(text: &str) -> Result<Self, UnknownUnits> {
        match unit(text.trim())? {
            (Dimension::Mass, kilograms) => Ok(Self(kilograms)),
            _ => Err(UnknownUnits::NoMass(text.to_owned())),
        }
    }
}

/// A unit with its number, if it has one.
pub(crate) fn unit(word: &str) -> Result<(Dimension, f64), UnknownUnits> {
    // The longest name that fits: `1e10Msun` ends in `Msun`, not in a number and `n`.
    UNITS
        .iter()
        .filter_map(|(name, dimension, size)| {
            let number = word.strip_suffix(name)?.trim();
            let number = if number.is_empty() {
                1.0
            } else {
                number.parse().ok()?
            };
            Some((*dimension, number * size))
        })
        .find(|(_, size)| size.is_normal() && *size > 0.0)
        .ok_or_else(|| UnknownUnits::Unit(word.to_owned()))
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names())?;
        match self.g() {
            g @ 1e-3..1e6 => write!(f, " (G = {g:.6})"),
            g => write!(f, " (G = {g:.6e})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative, for values that went through some tens of roundings.
    fn near(found: f64, expected: f64, tolerance: f64) -> bool {
        (found / expected - 1.0).abs() <= tolerance
    }

    const ROUNDING: f64 = 32.0 * f64::EPSILON;

    #[test]
    fn well_known_constants_come_out() {
        let units = |text: &str| text.parse::<Units>().unwrap();
        // G in pc (km/s)² / Msun; in Gadget's units; a year is 2π of au, Msun, G = 1.
        assert!(near(units("pc").g(), 4.300_917e-3, 1e-6));
        assert!(near(units("kpc").g(), 43_009.17, 1e-6));
        assert_eq!(units("kpc"), units("kpc, 1e10Msun, km/s"));
        let year = YEAR / units("au").time;
        assert!(near(year, std::f64::consts::TAU, 3e-5), "{year}");
        assert_eq!(units("SI"), Units::SI);
        assert!(Units::SI.to_string().ends_with("(G = 6.674300e-11)"));
        assert!(units("pc").to_string().ends_with("(G = 0.004301)"));
        assert!(near(units("cm,g,s").g(), 6.6743e-8, ROUNDING));
        assert!(near(units("pc,km/s").mass / SOLAR_MASS, 232.509, 1e-5));
    }

    #[test]
    fn they_are_told_so_that_they_can_be_read() {
        for text in ["si", "pc", "kpc", "au", "1.7kpc,km/s", "cm,g,s"] {
            let units: Units = text.parse().unwrap();
            assert_eq!(units.list().parse(), Ok(units), "{text}");
        }
    }

    #[test]
    fn two_units_make_a_system_of_unit_g() {
        for text in [
            "pc,Msun",
            "pc,km/s",
            "au,yr",
            "Msun,km/s",
            "1e6Msun,Myr",
            "2 kpc,3.5e9 Msun",
            "m,s",
        ] {
            let units: Units = text.parse().unwrap();
            assert!(near(units.g(), 1.0, ROUNDING), "{text} {units}");
        }
    }

    #[test]
    fn the_same_units_are_known_again() {
        let units = |text: &str| text.parse::<Units>().unwrap();
        assert!(units("kpc").are_those_of(&units("1000pc,1e10Msun,km/s")));
        assert!(units("pc,Msun").are_those_of(&units("1.0000001pc,Msun")));
        for other in ["pc", "au", "kpc,1.00001e10Msun,km/s", "kpc,1e10Msun,m/s"] {
            assert!(!units("kpc").are_those_of(&units(other)), "{other}");
        }
    }

    #[test]
    fn what_is_no_system_is_refused() {
        for text in [
            "",
            "parsec",
            "pc,-1Msun",
            "pc,0Msun",
            "nanMsun,pc",
            "1e999m,kg,s",
            "m/s,x",
        ] {
            assert!(
                matches!(text.parse::<Units>(), Err(UnknownUnits::Unit(_))),
                "{text}"
            );
        }
        for text in [
            "pc",
            "m",
            "pc,kpc",
            "pc,Msun,Myr,km/s",
            "Myr,km/s",
            "pc,Myr,km/s",
            "km/s",
        ] {
            let refused = matches!(text.parse::<Units>(), Err(UnknownUnits::System(_)));
            assert_eq!(refused, text != "pc", "{text}");
        }
    }

    #[test]
    fn quantities_have_a_dimension() {
        assert_eq!("1.5 km".parse(), Ok(Length(1500.0)));
        assert_eq!("2g".parse(), Ok(Mass(0.002)));
        let no_length = UnknownUnits::NoLength("1Msun".to_owned());
        assert_eq!("1Msun".parse::<Length>(), Err(no_length));
        let no_mass = UnknownUnits::NoMass("1pc".to_owned());
        assert_eq!("1pc".parse::<Mass>(), Err(no_mass));
        for text in ["", "1000", "-1pc", "0Msun", "infkg", "nanpc"] {
            assert!(matches!(text.parse::<Length>(), Err(UnknownUnits::Unit(_))));
            assert!(matches!(text.parse::<Mass>(), Err(UnknownUnits::Unit(_))));
        }
    }

    #[test]
    fn a_change_of_units_keeps_the_physics() {
        let [from, to]: [Units; 2] = ["kpc", "pc,km/s"].map(|text| text.parse().unwrap());
        let mut bodies = crate::initial_conditions::two_body(0.5, 0.25).unwrap();
        let before = bodies.clone();
        let factors = from.factors_to(&to);
        factors.apply(&mut bodies);
        // 1 kpc = 1000 pc; speeds are in km/s in both.
        assert!(near(bodies.x[1], 1000.0 * before.x[1], ROUNDING));
        assert!(near(bodies.vy[1], before.vy[1], ROUNDING));
        // G m / (r v²) has no unit.
        let pure =
            |bodies: &Bodies, g: f64| g * bodies.mass[0] / (bodies.x[1] * bodies.vy[1].powi(2));
        assert!(near(
            pure(&bodies, to.g()),
            pure(&before, from.g()),
            ROUNDING
        ));
        // And back.
        to.factors_to(&from).apply(&mut bodies);
        assert!(near(bodies.mass[1], before.mass[1], ROUNDING));
    }
}
