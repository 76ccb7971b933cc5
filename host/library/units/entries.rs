//! Units that entries of a header tell, by their names and values.

use super::{Dimension, Units, spelled};

/// Returns whether the name of an entry, of an array or of a group tells that there are units.
pub(crate) fn names_units(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("unit") || name.contains("cgs")
}

/// The value of an entry of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryValue<'a> {
    Number(f64),
    Text(&'a str),
}

/// The unit that an entry such as `UnitLength_in_cm = 3.1e21`, `Unit mass in cgs (U_M)` or `length_unit = kpc` tells. A number
/// without a unit in the name tells none.
pub(crate) fn unit_of_entry(name: &str, value: EntryValue) -> Option<(Dimension, f64)> {
    let (wanted, rest) = quantity_of_entry(name)?;
    let found = match (value, rest.as_str()) {
        (EntryValue::Text(text), "") => spelled(text)?,
        (_, "") => return None,
        (EntryValue::Number(number), unit) => {
            let (dimension, size) = spelled(unit)?;
            (dimension, number * size)
        }
        (EntryValue::Text(text), _) => {
            let number = text.trim().parse().ok()?;
            return unit_of_entry(name, EntryValue::Number(number));
        }
    };
    (found.0 == wanted).then_some(found)
}

/// The dimension of a unit that an entry of this name tells, and the unit of its number, if the name has it.
pub(crate) fn quantity_of_entry(name: &str) -> Option<(Dimension, String)> {
    const QUANTITIES: [(&[&str], Dimension, &str); 4] = [
        (
            &["length", "position", "coordinates", "distance", "pos", "l"],
            Dimension::Length,
            "cm",
        ),
        (&["mass", "m"], Dimension::Mass, "g"),
        (&["velocity", "speed", "vel", "v"], Dimension::Speed, "cm/s"),
        (&["time", "t"], Dimension::Time, "s"),
    ];
    let name = name.split('(').next()?.to_ascii_lowercase();
    let name = name.replace(['_', ' ', '-'], "");
    let rest = name.replacen("units", "", 1).replacen("unit", "", 1);
    if rest == name {
        return None;
    }
    QUANTITIES.iter().find_map(|(names, dimension, cgs)| {
        names
            .iter()
            .find_map(|name| match rest.strip_prefix(name)? {
                "" => Some((*dimension, String::new())),
                "incgs" => Some((*dimension, (*cgs).to_owned())),
                rest => {
                    let unit = rest.strip_prefix("in")?.replace("per", "/");
                    Some((*dimension, unit))
                }
            })
    })
}

/// The system that a list such as `kpc, 1e10 Msun, km/s` makes, however its units are spelled.
pub(crate) fn spelled_system(list: &str) -> Option<Units> {
    let list = list.trim();
    // A length alone, such as `kpc`, is no system in a file.
    if !list.contains([',', ';']) && !list.eq_ignore_ascii_case("si") {
        return None;
    }
    if let Ok(units) = list.parse() {
        return Some(units);
    }
    let entry = |text: &str| {
        let (dimension, size) = spelled(text.trim())?;
        let name = match dimension {
            Dimension::Length => "m",
            Dimension::Mass => "kg",
            Dimension::Time => "s",
            Dimension::Speed => "m/s",
        };
        Some(format!("{size:?}{name}"))
    };
    let list: Option<Vec<String>> = list.split([',', ';']).map(entry).collect();
    list?.join(",").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_tell_units() {
        let kiloparsec = spelled("kpc");
        for (name, value) in [
            (
                "UnitLength_in_cm",
                EntryValue::Number(3.085_677_581_491_367e21),
            ),
            (
                "Unit_Length_In_CGS",
                EntryValue::Text("3.085677581491367e21"),
            ),
            (
                "Unit length in cgs (U_L)",
                EntryValue::Number(3.085_677_581_491_367e21),
            ),
            ("UnitLength_in_kpc", EntryValue::Number(1.0)),
            ("length_unit", EntryValue::Text("kpc")),
            ("pos_unit", EntryValue::Text("kpc")),
        ] {
            let (dimension, size) = unit_of_entry(name, value).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(dimension, Dimension::Length);
            assert!(
                (size / kiloparsec.unwrap().1 - 1.0).abs() < 1e-12,
                "{name}: {size}"
            );
        }
        let speed = unit_of_entry("UnitVelocity_in_km_per_s", EntryValue::Number(2.0));
        assert_eq!(speed, Some((Dimension::Speed, 2e3)));
        for name in [
            "UnitLength",
            "UnitDensity_in_cgs",
            "Length",
            "UnitMass_in_furlong",
            "UnitMass_in_cm",
        ] {
            assert_eq!(unit_of_entry(name, EntryValue::Number(1.0)), None, "{name}");
        }
        let system = spelled_system("kiloparsecs; 10^10 M_sun; km s^-1").unwrap();
        assert!(system.are_those_of(&"kpc,1e10Msun,km/s".parse().unwrap()));
        assert_eq!(spelled_system("furlong, stone"), None);
        assert_eq!(spelled_system("kpc"), None);
    }
}
