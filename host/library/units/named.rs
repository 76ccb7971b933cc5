//! Names of systems of units.

use super::{Dimension, UNITS, Units};

/// Largest relative error of a size that has a name: rounding of definitions.
const ROUNDING: f64 = 1e-6;

impl Units {
    /// Names of the units, such as `pc, Msun, km/s`. A unit without a name is its size in SI's unit. Where G = 1,
    /// two names are the whole system: `au, Msun`.
    pub fn names(&self) -> String {
        let length = name(Dimension::Length, self.length);
        let mass = name(Dimension::Mass, self.mass);
        let speed = || name(Dimension::Speed, self.speed());
        let time = name(Dimension::Time, self.time).or_else(speed);
        let known = [&length, &mass, &time];
        if self.gravity() == 1.0 && known.iter().filter(|name| name.is_some()).count() == 2 {
            let named: Vec<&str> = known.into_iter().flatten().map(String::as_str).collect();
            return named.join(", ");
        }
        [
            length.unwrap_or_else(|| in_units_of(Dimension::Length, self.length)),
            mass.unwrap_or_else(|| in_units_of(Dimension::Mass, self.mass)),
            time.unwrap_or_else(|| in_units_of(Dimension::Time, self.time)),
        ]
        .join(", ")
    }
}

impl Units {
    /// Name of the unit of length, such as `pc`, if it has one.
    pub fn name_of_length(&self) -> Option<String> {
        name(Dimension::Length, self.length)
    }

    /// Name of the unit of mass, such as `Msun`, if it has one.
    pub fn name_of_mass(&self) -> Option<String> {
        name(Dimension::Mass, self.mass)
    }
}

/// Name of a unit of this size, with a power of ten before it if need be.
pub(super) fn name(dimension: Dimension, size: f64) -> Option<String> {
    let units = || UNITS.iter().filter(|(_, of, _)| *of == dimension);
    let is = |ratio: f64| (ratio - 1.0).abs() <= ROUNDING;
    if let Some((name, ..)) = units().find(|(.., unit)| is(size / unit)) {
        return Some((*name).to_owned());
    }
    units().rev().find_map(|(name, _, unit)| {
        let power = (size / unit).log10().round();
        let is_power = (1.0..=15.0).contains(&power) && is(size / unit / 10_f64.powi(power as i32));
        is_power.then(|| format!("1e{power} {name}"))
    })
}

/// A unit of this size in the largest unit that has a name and is at most ten times as large, to seven digits.
fn in_units_of(dimension: Dimension, size: f64) -> String {
    let units = || UNITS.iter().filter(|(_, of, _)| *of == dimension);
    let below = units().filter(|(.., unit)| size >= 0.1 * unit);
    let largest = below.max_by(|one, other| one.2.total_cmp(&other.2));
    let Some((name, _, unit)) = largest.or_else(|| units().next()) else {
        return String::new();
    };
    let digits = format!("{:.6e}", size / unit);
    let number: f64 = digits.parse().unwrap_or(size / unit);
    match number {
        1e-3..1e5 => format!("{number} {name}"),
        _ => format!("{number:e} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_masses_have_names() {
        let kpc: Units = "kpc".parse().expect("units");
        let names = (kpc.name_of_length(), kpc.name_of_mass());
        assert_eq!(names, (Some("kpc".into()), Some("1e10 Msun".into())));
        let odd = Units {
            length: 1.234e5,
            ..kpc
        };
        assert_eq!(odd.name_of_length(), None);
    }

    #[test]
    fn known_systems_have_names() {
        for (text, names) in [
            ("pc", "pc, Msun, km/s"),
            ("kpc", "kpc, 1e10 Msun, km/s"),
            ("au", "au, Msun"),
            ("si", "m, kg, s"),
            ("cm,g,s", "cm, g, s"),
            ("pc,Msun,Myr", "pc, Msun, Myr"),
            ("au,Msun,yr", "au, Msun, yr"),
            ("au,Msun,day", "au, Msun, day"),
            ("pc,km/s", "pc, km/s"),
            ("pc,Msun", "pc, Msun"),
            ("Mpc,1e12Msun,km/s", "Mpc, 1e12 Msun, km/s"),
        ] {
            let units: Units = text.parse().unwrap();
            assert_eq!(units.names(), names);
            // Also as files record them.
            assert_eq!(units.list().parse::<Units>().unwrap().names(), names);
        }
        for (text, names) in [
            ("1.7kpc,3Msun,km/s", "1.7 kpc, 3 Msun, km/s"),
            ("2.5pc,Msun,km/s", "2.5 pc, Msun, km/s"),
            // Gadget's usual mass.
            ("kpc,1.989e43g,km/s", "kpc, 1.000297e10 Msun, km/s"),
            ("1e-7m,1e-9kg,0.25s", "1e-7 m, 1e-9 kg, 0.25 s"),
            ("0.5pc,Msun,1.5Myr", "0.5 pc, Msun, 1.5 Myr"),
        ] {
            let units: Units = text.parse().unwrap();
            assert_eq!(units.names(), names);
            let again: Units = units.list().parse().expect("units");
            assert_eq!(again, units, "as files record them");
        }
    }
}
