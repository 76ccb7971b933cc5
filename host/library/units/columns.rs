//! Units of the columns of tables.

use super::named::name;
use super::{Dimension, Shown, UNITS, Units};

/// Kind of number in a column, which decides its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// A number without a unit: a ratio, a count, a word.
    Bare,
    /// A length.
    Length,
    /// A mass.
    Mass,
    /// A time.
    Time,
    /// A speed.
    Speed,
    /// An energy.
    Energy,
    /// An energy per mass.
    EnergyPerMass,
    /// A momentum.
    Momentum,
    /// An angular momentum.
    AngularMomentum,
}

impl Measured {
    /// All that have units.
    const WITH_UNITS: [Self; 8] = [
        Self::Length,
        Self::Mass,
        Self::Time,
        Self::Speed,
        Self::Energy,
        Self::EnergyPerMass,
        Self::Momentum,
        Self::AngularMomentum,
    ];
}

/// Named units of a table's columns, and factors from numbers in the units of the bodies. These are the units of the
/// bodies as far as they have names; times have a unit of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnUnits {
    of_bodies: Units,
    length: (String, f64),
    mass: (String, f64),
    speed: Shown,
    time: Shown,
}

impl ColumnUnits {
    /// Units of columns for bodies in these units, with times in this one.
    pub fn of(units: &Units, time: Shown) -> Self {
        let own = |name: Option<String>, shown: Shown| {
            name.map_or((shown.name.to_owned(), shown.factor), |name| (name, 1.0))
        };
        let largest_mass = UNITS
            .iter()
            .rfind(|(_, of, size)| *of == Dimension::Mass && units.mass >= 0.1 * size);
        let (mass, _, size) = *largest_mass.unwrap_or(&("g", Dimension::Mass, 1e-3));
        let mass = Shown {
            name: mass,
            factor: units.mass / size,
        };
        let speed = units.shown_speed(1.0);
        Self {
            of_bodies: *units,
            length: own(units.name_of_length(), units.shown_length(1.0)),
            mass: own(units.name_of_mass(), mass),
            speed: match name(Dimension::Speed, units.speed()) {
                Some(name) if name == speed.name => Shown {
                    factor: 1.0,
                    ..speed
                },
                _ => speed,
            },
            time,
        }
    }

    /// The same columns with times in each unit of time that has a name.
    pub(crate) fn in_all_times(&self) -> impl Iterator<Item = Self> {
        let times = UNITS.iter().filter(|(_, of, _)| *of == Dimension::Time);
        times.map(|&(name, _, size)| Self {
            time: Shown {
                name,
                factor: self.of_bodies.time / size,
            },
            ..self.clone()
        })
    }

    /// Name of a unit, such as `Msun km2/s2`; none for bare numbers.
    pub fn unit(&self, what: Measured) -> Option<String> {
        let ((length, _), (mass, _)) = (&self.length, &self.mass);
        let (speed, time) = (self.speed.name, self.time.name);
        let squared = || {
            let parts: Vec<String> = speed.split('/').map(|part| format!("{part}2")).collect();
            parts.join("/")
        };
        Some(match what {
            Measured::Bare => return None,
            Measured::Length => length.clone(),
            Measured::Mass => mass.clone(),
            Measured::Time => time.to_owned(),
            Measured::Speed => speed.to_owned(),
            Measured::Energy => format!("{mass} {}", squared()),
            Measured::EnergyPerMass => squared(),
            Measured::Momentum => format!("{mass} {speed}"),
            Measured::AngularMomentum => format!("{mass} {length} {speed}"),
        })
    }

    /// Factor from a number in the units of the bodies to the number in a column.
    pub fn factor(&self, what: Measured) -> f64 {
        let ((_, length), (_, mass)) = (&self.length, &self.mass);
        let speed = self.speed.factor;
        match what {
            Measured::Bare => 1.0,
            Measured::Length => *length,
            Measured::Mass => *mass,
            Measured::Time => self.time.factor,
            Measured::Speed => speed,
            Measured::Energy => mass * speed * speed,
            Measured::EnergyPerMass => speed * speed,
            Measured::Momentum => mass * speed,
            Measured::AngularMomentum => mass * length * speed,
        }
    }

    /// Name of a column in the first line of a table: `time [Myr]`.
    pub fn heading(&self, column: &str, what: Measured) -> String {
        let unit = self.unit(what);
        unit.map_or_else(|| column.to_owned(), |unit| format!("{column} [{unit}]"))
    }

    /// Factor from numbers in the units of the bodies to numbers of a column in this unit.
    pub fn factor_of_unit(units: &Units, unit: &str) -> Option<f64> {
        let any = Self::of(units, units.shown_time(1.0));
        let in_all_times: Vec<Self> = any.in_all_times().collect();
        in_all_times.iter().find_map(|all| {
            let mut what = Measured::WITH_UNITS.into_iter();
            let found = what.find(|&what| all.unit(what).as_deref() == Some(unit));
            found.map(|what| all.factor(what))
        })
    }
}

/// The name and the unit of a column's heading: `time` and `Myr` of `time [Myr]`.
pub fn parts_of_heading(heading: &str) -> (&str, Option<&str>) {
    let parts = heading
        .strip_suffix(']')
        .and_then(|rest| rest.split_once(" ["));
    parts.map_or((heading, None), |(name, unit)| (name, Some(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str) -> ColumnUnits {
        let units: Units = list.parse().unwrap();
        ColumnUnits::of(&units, units.shown_time(1.0))
    }

    #[test]
    fn columns_are_in_units_with_names() {
        use Measured::{
            AngularMomentum, Energy, EnergyPerMass, Length, Mass, Momentum, Speed, Time,
        };
        for (list, units) in [
            ("pc", ["pc", "Msun", "Myr", "km/s", "Msun km2/s2"]),
            (
                "kpc",
                ["kpc", "1e10 Msun", "Gyr", "km/s", "1e10 Msun km2/s2"],
            ),
            ("au", ["au", "Msun", "yr", "km/s", "Msun km2/s2"]),
            ("si", ["m", "kg", "s", "m/s", "kg m2/s2"]),
            ("cm,g,s", ["m", "g", "s", "m/s", "g m2/s2"]),
        ] {
            let found =
                [Length, Mass, Time, Speed, Energy].map(|what| of(list).unit(what).unwrap());
            if list != "cm,g,s" {
                assert_eq!(found, units, "{list}");
            }
        }
        let pc = of("pc");
        assert_eq!(pc.heading("lx", AngularMomentum), "lx [Msun pc km/s]");
        assert_eq!(pc.heading("px", Momentum), "px [Msun km/s]");
        assert_eq!(pc.heading("e", EnergyPerMass), "e [km2/s2]");
        assert_eq!(pc.heading("virial_ratio", Measured::Bare), "virial_ratio");
        for what in [Length, Mass, Speed, Energy, AngularMomentum] {
            assert_eq!(pc.factor(what), 1.0, "{what:?}");
        }
        // A year is 2π units of time, and the Earth's speed is one of speed.
        let au = of("au");
        assert!((au.factor(Time) * std::f64::consts::TAU - 1.0).abs() < 1e-4);
        assert!(
            (au.factor(Speed) - 29.78).abs() < 0.01,
            "{}",
            au.factor(Speed)
        );
        // Gadget's usual mass has no name: its numbers are told in solar masses.
        let gadget = of("kpc,1.989e43g,km/s");
        assert_eq!(gadget.unit(Mass).as_deref(), Some("Msun"));
        assert!((gadget.factor(Mass) / 1.000_297e10 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn headings_tell_their_factors() {
        let units: Units = "au".parse().unwrap();
        let factor = |unit: &str| ColumnUnits::factor_of_unit(&units, unit);
        assert_eq!(factor("Myr"), Some(units.time / (1e6 * super::super::YEAR)));
        assert_eq!(factor("au"), Some(1.0));
        assert_eq!(factor("furlong"), None);
        assert_eq!(parts_of_heading("time [Myr]"), ("time", Some("Myr")));
        assert_eq!(parts_of_heading("time"), ("time", None));
    }
}
