//! Units that comments tell in words: `units: pc, Msun, km/s`, `length unit = kpc`, `positions in pc`.

use super::beginning;
use super::names::unit;
use crate::settings::Setting;
use crate::units::{Dimension, Units};

/// Sizes of units by their dimensions, as far as comments tell them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// A system that is told as a whole.
    system: Option<Units>,
    sizes: Vec<(Dimension, f64)>,
}

impl Told {
    fn put(&mut self, (dimension, size): (Dimension, f64)) {
        self.sizes.retain(|(other, _)| *other != dimension);
        self.sizes.push((dimension, size));
    }

    /// The system that they make.
    ///
    /// # Errors
    /// The note that they make none.
    pub(super) fn system(&self) -> Result<Option<Units>, String> {
        if self.system.is_some() || self.sizes.is_empty() {
            return Ok(self.system);
        }
        let list: Vec<String> = self.sizes.iter().map(listed).collect();
        let list = list.join(",");
        list.parse().map(Some).map_err(|_| {
            format!(
                "the units that comments tell ({list}) make no system of length, mass and time or speed: numbers are \
                 taken as they are, without units"
            )
        })
    }
}

/// An entry of a list of units.
fn listed((dimension, size): &(Dimension, f64)) -> String {
    let name = match dimension {
        Dimension::Length => "m",
        Dimension::Mass => "kg",
        Dimension::Time => "s",
        Dimension::Speed => "m/s",
    };
    format!("{size:?}{name}")
}

/// Words for what has a dimension.
const QUANTITIES: [(&[&str], Dimension); 4] = [
    (
        &[
            "length",
            "position",
            "coordinate",
            "distance",
            "pos",
            "size",
        ],
        Dimension::Length,
    ),
    (&["mass", "masses"], Dimension::Mass),
    (
        &["velocity", "velocities", "vel", "speed"],
        Dimension::Speed,
    ),
    (&["time"], Dimension::Time),
];

/// The dimension of a word such as `lengths` or `unit_length`.
fn dimension_of(word: &str) -> Option<Dimension> {
    let word = word.to_ascii_lowercase();
    let word = word.strip_prefix("unit").unwrap_or(&word);
    let word = word.strip_suffix("unit").unwrap_or(word).trim_matches('_');
    let is = |name: &&str| word == *name || word.strip_suffix('s') == Some(name);
    let found = QUANTITIES.iter().find(|(names, _)| names.iter().any(is));
    found.map(|(_, dimension)| *dimension)
}

/// The unit of `UnitVelocity_in_cm_per_s = 1e5`.
fn in_name(word: &str, number: Option<&&str>) -> Option<(Dimension, f64)> {
    let (name, unit_of_number) = word.split_once("_in_")?;
    let wanted = dimension_of(name).filter(|_| name.to_ascii_lowercase().starts_with("unit"))?;
    let number: f64 = number?.parse().ok()?;
    let size = unit(&format!(
        "{number:?} {}",
        unit_of_number.replace("_per_", "/")
    ))?;
    (size.0 == wanted).then_some(size)
}

/// Takes the units of a comment, if it tells any.
///
/// # Errors
/// The note that it seems to tell some which are not understood.
pub(super) fn told_in(comment: &str, told: &mut Told) -> Result<(), String> {
    let not_understood = || {
        Err(format!(
            "the comment `{}` tells of units and was not understood: if numbers have units, give them with {}",
            beginning(comment),
            Setting::Units
        ))
    };
    if let Some(list) = list_in(comment) {
        return match take_list(list, told) {
            true => Ok(()),
            false => not_understood(),
        };
    }
    let words = split(comment);
    let mut found = false;
    for (at, word) in words.iter().enumerate() {
        if let Some(size) = in_name(word, words.get(at + 1)) {
            told.put(size);
            found = true;
        }
        let Some(wanted) = dimension_of(word) else {
            continue;
        };
        let rest = words[at + 1..].iter().skip_while(|word| {
            let word = word.to_ascii_lowercase();
            ["unit", "units", "in", "is", "are", "of"].contains(&word.as_str())
        });
        let rest: Vec<&str> = rest.take(3).copied().collect();
        let size = (1..=rest.len()).rev().find_map(|count| {
            let size = unit(&rest[..count].join(" "));
            size.filter(|(dimension, _)| *dimension == wanted)
        });
        if let Some(size) = size {
            told.put(size);
            found = true;
        }
    }
    let speaks = || {
        let mut words = words.iter().map(|word| word.to_ascii_lowercase());
        words.any(|word| ["unit", "units"].contains(&word.as_str()) || word.starts_with("unit_"))
    };
    let without = || words.iter().any(|word| is_without(word));
    match !found && speaks() && !without() {
        true => not_understood(),
        false => Ok(()),
    }
}

/// Returns whether a word says that numbers have no units.
fn is_without(word: &str) -> bool {
    let word = word.to_lowercase();
    let words = [
        "nbody",
        "n-body",
        "henon",
        "hénon",
        "code",
        "natural",
        "none",
        "dimensionless",
    ];
    words.contains(&word.as_str())
}

/// The text behind `units:`, `units =` or `unit system:`.
fn list_in(comment: &str) -> Option<&str> {
    let (name, list) = comment.split_once([':', '='])?;
    let name = name.trim().to_ascii_lowercase();
    let is_list = [
        "units",
        "unit",
        "unit system",
        "units system",
        "system of units",
        "unit_system",
    ];
    is_list.contains(&name.as_str()).then_some(list.trim())
}

/// Words between blanks, commas, semicolons, colons, signs of equality and brackets.
fn split(text: &str) -> Vec<&str> {
    let ends = |c: char| c.is_whitespace() || ",;:=[](){}|\"'".contains(c);
    text.split(ends).filter(|word| !word.is_empty()).collect()
}

/// Takes a list of units; returns whether all of it is understood.
fn take_list(list: &str, told: &mut Told) -> bool {
    if is_without(list.trim_end_matches("units").trim()) {
        return true;
    }
    let system = match list.to_ascii_lowercase().as_str() {
        "cgs" => "cm,g,s".parse(),
        "mks" => "si".parse(),
        _ => list.parse(),
    };
    if let Ok(system) = system {
        told.system = Some(system);
        return true;
    }
    let separators = [',', ';', ']', '|'];
    let separator = separators.iter().find(|c| list.contains(**c));
    let entries: Vec<String> = match separator {
        Some(c) => list.split(*c).map(|entry| split(entry).join(" ")).collect(),
        None => joined(&split(list)),
    };
    let mut sizes = vec![];
    for entry in entries.iter().filter(|entry| !entry.is_empty()) {
        let words: Vec<&str> = entry.split(' ').collect();
        let wanted = dimension_of(words[0]).filter(|_| words.len() > 1);
        let text = match wanted {
            Some(_) => words[1..].join(" "),
            None => entry.clone(),
        };
        match (unit(&text), wanted) {
            (Some((found, _)), Some(wanted)) if found != wanted => return false,
            (Some(size), _) => sizes.push(size),
            (None, _) => return false,
        }
    }
    let is_any = !sizes.is_empty();
    sizes.into_iter().for_each(|size| told.put(size));
    is_any
}

/// Entries of a list of words: a number and the name of a quantity belong to the next word, and a power to the last.
fn joined(words: &[&str]) -> Vec<String> {
    let mut entries: Vec<String> = vec![];
    let mut open = false;
    for word in words {
        let is_power = word.ends_with("-1") || word.starts_with('/');
        match entries.last_mut() {
            Some(last) if open || is_power => *last = format!("{last} {word}"),
            _ => entries.push((*word).to_owned()),
        }
        open = word.parse::<f64>().is_ok() || dimension_of(word).is_some() || *word == "/";
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(comments: &[&str]) -> Result<Option<Units>, String> {
        let mut told = Told::default();
        for comment in comments {
            told_in(comment, &mut told)?;
        }
        told.system()
    }

    #[test]
    fn units_are_found_in_comments() {
        for (comments, units) in [
            (&["units: pc, Msun, km/s"][..], "pc,Msun,km/s"),
            (&["units = pc,Msun,km/s"], "pc,Msun,km/s"),
            (&["Units: kpc, 1e10 Msun, km/s"], "kpc,1e10Msun,km/s"),
            (&["units: kpc 1e10 Msun km s^-1"], "kpc,1e10Msun,km/s"),
            (
                &["units: length=pc mass=Msun velocity=km/s"],
                "pc,Msun,km/s",
            ),
            (&["units: [pc] [Msun] [km s^-1]"], "pc,Msun,km/s"),
            (&["unit system: au,Msun,yr"], "au,Msun,yr"),
            (&["units: au, Msun"], "au,Msun"),
            (&["units: SI"], "si"),
            (&["units: cgs"], "cm,g,s"),
            (&["length: pc, mass: Msun, velocity: km/s"], "pc,Msun,km/s"),
            (
                &["length unit: pc", "mass unit = Msun", "unit_velocity: km/s"],
                "pc,Msun,km/s",
            ),
            (
                &["positions in pc, velocities in km/s, masses in Msun"],
                "pc,Msun,km/s",
            ),
            (
                &[
                    "UnitLength = 3.085677581491367e16 m",
                    "mass in 1e3 Msun",
                    "time: Myr",
                ],
                "pc,1e3Msun,Myr",
            ),
            (
                &[
                    "UnitLength_in_cm = 3.085677581491367e21",
                    "UnitMass_in_g: 1.988409870698051e43, UnitVelocity_in_cm_per_s: 1e5",
                ],
                "kpc",
            ),
        ] {
            let found = system(comments).unwrap_or_else(|note| panic!("{comments:?}: {note}"));
            let found = found.unwrap_or_else(|| panic!("{comments:?}"));
            assert!(
                found.are_those_of(&units.parse().unwrap()),
                "{comments:?}: {found}"
            );
        }
        for comment in [
            "units: nbody",
            "units: N-body units",
            "in N-body units",
            "positions and velocities of a cluster",
            "mass function: Kroupa",
            "made on Monday",
            "unit mass, length and time: none",
        ] {
            assert_eq!(system(&[comment]), Ok(None), "{comment}");
        }
    }

    #[test]
    fn units_that_are_not_understood_are_said() {
        for (comment, part) in [
            ("units: furlong, stone, fortnight", "`units: furlong, stone"),
            ("units: pc, Msun, furlong", "was not understood"),
            ("units: length=Msun", "was not understood"),
            ("in the units of the paper", "was not understood"),
            ("length unit: furlong", "was not understood"),
            ("positions in pc", "make no system"),
            ("units: pc, Msun, km/s, kpc, yr", "make no system"),
        ] {
            let note = system(&[comment]).unwrap_err();
            assert!(note.contains(part), "{comment}: {note}");
        }
    }
}
