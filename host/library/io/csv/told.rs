//! Units that comments tell in words: `units: pc, Msun, km/s`, `length unit = kpc`, `positions in pc`.

use super::beginning;
use crate::settings::Setting;
use crate::units::{Dimension, UnitWord, Units, spelled as unit, units_in};

/// Sizes of units by their dimensions, as far as comments tell them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// A system that is told as a whole.
    system: Option<Units>,
    sizes: Vec<(Dimension, f64)>,
    /// True if a list has them, which may be of two units, with G = 1.
    is_list: bool,
}

impl Told {
    /// Takes a unit; returns whether no other one of its dimension was told before.
    fn put(&mut self, (dimension, size): (Dimension, f64)) -> bool {
        match self.sizes.iter().find(|(other, _)| *other == dimension) {
            Some((_, known)) => *known == size,
            None => {
                self.sizes.push((dimension, size));
                true
            }
        }
    }

    /// Takes units; returns whether none contradicts another.
    fn put_all(&mut self, sizes: impl IntoIterator<Item = (Dimension, f64)>) -> bool {
        sizes.into_iter().all(|size| self.put(size))
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
        let is_system = self.is_list || self.sizes.len() > 2;
        let system = is_system.then(|| list.parse().ok()).flatten();
        system.map(Some).ok_or_else(|| {
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
    let of_unit = match word.as_str() {
        "unit_l" => Some(Dimension::Length),
        "unit_m" => Some(Dimension::Mass),
        "unit_v" => Some(Dimension::Speed),
        "unit_t" => Some(Dimension::Time),
        _ => None,
    };
    if of_unit.is_some() {
        return of_unit;
    }
    let word = word.strip_prefix("unit").unwrap_or(&word);
    let word = word.strip_suffix("unit").unwrap_or(word).trim_matches('_');
    let is = |name: &&str| word == *name || word.strip_suffix('s') == Some(name);
    let found = QUANTITIES.iter().find(|(names, _)| names.iter().any(is));
    found.map(|(_, dimension)| *dimension)
}

/// The dimension of a letter such as `x` or `[L]`, of which a unit is told.
fn dimension_of_letter(word: &str) -> Option<Dimension> {
    match word {
        "x" | "y" | "z" | "r" | "X" | "Y" | "Z" | "R" | "L" => Some(Dimension::Length),
        "m" | "M" => Some(Dimension::Mass),
        "v" | "vx" | "vy" | "vz" | "V" | "VX" | "VY" | "VZ" => Some(Dimension::Speed),
        "T" => Some(Dimension::Time),
        _ => None,
    }
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
    match is_understood(comment, told) {
        true => Ok(()),
        false => Err(format!(
            "the comment `{}` tells of units and was not understood: if numbers have units, give them with {}",
            beginning(comment),
            Setting::Units
        )),
    }
}

/// Takes the units of a comment, if it tells any. Returns whether all that it seems to tell is understood.
fn is_understood(comment: &str, told: &mut Told) -> bool {
    if let Some(list) = list_in(comment) {
        // More may follow, such as the constant of gravity.
        let begins = list
            .split([';', '('])
            .next()
            .filter(|begins| begins.contains(','));
        let mut lists = std::iter::once(list).chain(begins);
        return lists.any(|list| take_list(list, told));
    }
    if let Some(system) = system_in(comment) {
        told.system = Some(system);
        return true;
    }
    let words = split(comment);
    let among = units_in(comment);
    let is_cosmic = among.contains(&None) || words.iter().any(|word| is_of_cosmology(word));
    if !among.is_empty() && is_cosmic {
        return false;
    }
    // Three units alone or behind `in`, such as `kpc km/s Msun`.
    let ends = comment.match_indices("in ").filter_map(|(at, _)| {
        let begins = !comment[..at].ends_with(char::is_alphanumeric);
        begins.then(|| &comment[at + 3..])
    });
    for list in std::iter::once(comment).chain(ends) {
        let mut alone = Told::default();
        let words = split(list);
        // Several quantities are values, of a cluster.
        let values = words.iter().filter(|word| starts_with_digit(word)).count();
        if words.len() > 2 && values < 2 && take_list(list, &mut alone) {
            if alone.system.is_some() {
                told.system = told.system.or(alone.system);
                return told.system == alone.system;
            }
            if alone.sizes.len() > 2 {
                return told.put_all(alone.sizes);
            }
        }
    }
    let without = || words.iter().any(|word| is_without(word));
    if let Some(sizes) = system_among(&among).filter(|_| !without()) {
        return told.put_all(sizes);
    }
    let mut sizes = vec![];
    for (at, word) in words.iter().enumerate() {
        sizes.extend(in_name(word, words.get(at + 1)));
        match said_at(&words, at) {
            Said::Nothing => {}
            Said::Unit(size) => sizes.push(size),
            Said::Missed => return false,
        }
    }
    let speaks = || {
        let mut words = words.iter().map(|word| word.to_ascii_lowercase());
        words.any(|word| ["unit", "units"].contains(&word.as_str()) || word.starts_with("unit_"))
    };
    match sizes.is_empty() {
        true => (!speaks() && among.is_empty()) || without(),
        false => told.put_all(sizes),
    }
}

/// The units of a system of length, mass and speed or time among the words of a comment, such as `au and au/day, solar masses`.
fn system_among(words: &[UnitWord]) -> Option<Vec<(Dimension, f64)>> {
    let mut sizes = Told::default();
    if !sizes.put_all(words.iter().copied().flatten()) {
        return None;
    }
    let has = |wanted| {
        sizes
            .sizes
            .iter()
            .any(|(dimension, _)| *dimension == wanted)
    };
    let is_system = has(Dimension::Length)
        && has(Dimension::Mass)
        && (has(Dimension::Speed) != has(Dimension::Time));
    is_system.then_some(sizes.sizes)
}

/// Returns whether a word tells that numbers are comoving ones of a cosmology.
pub(super) fn is_of_cosmology(word: &str) -> bool {
    let word = word.to_ascii_lowercase().replace(['-', '_'], "");
    let words = [
        "comoving",
        "redshift",
        "h1",
        "h^1",
        "/h",
        "hubbleparam",
        "scalefactor",
        "omegam",
        "omega0",
    ];
    words.contains(&word.as_str())
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Statement of a word, with the words after it, about a unit.
enum Said {
    Nothing,
    Unit((Dimension, f64)),
    /// There is one, and it is not understood.
    Missed,
}

/// Finds out what the word number `at` says, if it is the name of a quantity. A quantity with a number is a value, such
/// as the mass of a cluster, unless the comment speaks of units.
fn said_at(words: &[&str], at: usize) -> Said {
    let word = words[at];
    let next = words.get(at + 1).map_or("", |word| word);
    let before = at.checked_sub(1).map_or("", |at| words[at]);
    let is_told_in = next.eq_ignore_ascii_case("in");
    let letter = dimension_of_letter(word).filter(|_| is_told_in || !starts_with_digit(next));
    let Some(wanted) = dimension_of(word).or(letter) else {
        return Said::Nothing;
    };
    let is_unit = word.to_ascii_lowercase().contains("unit")
        || next.to_ascii_lowercase().starts_with("unit")
        || before.eq_ignore_ascii_case("unit");
    if wanted == Dimension::Time && !is_unit {
        return Said::Nothing;
    }
    let rest = words[at + 1..].iter().skip_while(|word| {
        let word = word.to_ascii_lowercase();
        ["unit", "units", "in", "is", "are", "of"].contains(&word.as_str())
    });
    let rest: Vec<&str> = rest.take(3).copied().collect();
    let Some(first) = rest.first() else {
        return Said::Nothing;
    };
    let is_value = starts_with_digit(first) || first.starts_with('.');
    if is_value && !is_unit && !is_told_in {
        return Said::Nothing;
    }
    let size = (1..=rest.len()).rev().find_map(|count| {
        let size = unit(&rest[..count].join(" "));
        size.filter(|(dimension, _)| *dimension == wanted)
    });
    // `mass in the core` tells nothing of units.
    let is_phrase = ["the", "a", "each", "all"].contains(first);
    let without = || rest.iter().any(|word| is_without(word));
    match size {
        Some(size) => Said::Unit(size),
        None if is_told_in && !is_phrase && !without() => Said::Missed,
        None => Said::Nothing,
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

/// The system of `all quantities in SI` or `cgs units`.
fn system_in(comment: &str) -> Option<Units> {
    let words = split(comment);
    let is_told = |at: usize| {
        let before = at.checked_sub(1).map_or("", |at| words[at]);
        let after = words.get(at + 1).map_or("", |word| word);
        before.eq_ignore_ascii_case("in") || after.to_ascii_lowercase().starts_with("unit")
    };
    words.iter().enumerate().find_map(|(at, word)| {
        let is_told = |at| words.len() == 1 || is_told(at);
        let system = match *word {
            "SI" | "si" | "mks" | "MKS" => "si",
            "cgs" | "CGS" => "cm,g,s",
            _ => return None,
        };
        is_told(at).then(|| system.parse().ok()).flatten()
    })
}

/// The text behind `units:`, `units =`, `unit system:` or `in units of`.
fn list_in(comment: &str) -> Option<&str> {
    let lower = comment.to_ascii_lowercase();
    for phrase in ["units are ", "in units of ", "units of "] {
        let at = lower.find(phrase).map(|at| at + phrase.len());
        // Bytes of letters in lower case are as many only if they are ASCII's.
        if let Some(list) = at
            .and_then(|at| comment.get(at..))
            .filter(|list| list.contains(','))
        {
            return Some(list.trim_end_matches('.').trim());
        }
    }
    let (name, list) = comment.split_once([':', '='])?;
    let name = name.trim().to_ascii_lowercase();
    let is_list = [
        "units",
        "unit",
        "unit system",
        "units system",
        "system of units",
        "unit_system",
        "unitsystem",
    ];
    is_list.contains(&name.as_str()).then_some(list.trim())
}

/// Words between blanks, commas, semicolons, colons, signs of equality and brackets.
pub(super) fn split(text: &str) -> Vec<&str> {
    let ends = |c: char| c.is_whitespace() || ",;:=[](){}|\"'".contains(c);
    let words = text
        .split(ends)
        .map(|word| match word.trim_end_matches('.') {
            // As in `a.u.`.
            other if other.contains('.') && !starts_with_digit(word) => word,
            other => other,
        });
    words.filter(|word| !word.is_empty()).collect()
}

/// Takes a list of units; returns whether all of it is understood.
fn take_list(list: &str, told: &mut Told) -> bool {
    if is_without(list.trim_end_matches("units").trim()) {
        return true;
    }
    told.is_list = true;
    let list = list.replace(" and ", ", ");
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
        None => joined(&split(&list)),
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
    !sizes.is_empty() && told.put_all(sizes)
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
            (&["cgs units"], "cm,g,s"),
            (&["all quantities in SI"], "si"),
            (&["kpc km/s Msun"], "kpc,Msun,km/s"),
            (&["[L]=pc [M]=Msun [V]=km/s"], "pc,Msun,km/s"),
            (&["unitsystem = au,Msun"], "au,Msun"),
            (&["Units are pc, Msun, km/s"], "pc,Msun,km/s"),
            (&["in units of pc, Msun and km/s."], "pc,Msun,km/s"),
            (&["units: kpc, 10^10 M_\\odot, km s⁻¹"], "kpc"),
            (&["pc,Msun,km/s"], "pc"),
            (&["units: kpc, 1e10 Msun, km/s; G = 43007.1"], "kpc"),
            (&["units: pc, Msun, km/s (of 1998)"], "pc"),
            (&["pc, Msun, km/s, G = 0.0043"], "pc"),
            (&["pc, Msun, km/s"], "pc"),
            (&["kpc,1e10Msun,km/s"], "kpc"),
            (&["au, Msun, yr"], "au,Msun,yr"),
            (&["pc, Msun, Myr"], "pc,Msun,Myr"),
            (&["in pc, Msun and km/s"], "pc"),
            (&["all numbers in pc, 1e3 Msun and km/s"], "pc,1e3Msun,km/s"),
            (
                &["heliocentric, au and au/day, solar masses"],
                "1au,1Msun,1731.4568368055554km/s",
            ),
            (&["x/pc y/pc z/pc vx/(km/s) m/Msun"], "pc"),
            (&["m in Msun, x in pc, v in km/s."], "pc"),
            (
                &["position in meters, velocity in m/s, mass in kilograms"],
                "si",
            ),
            (&["mks"], "si"),
            (&["x,y,z in pc; vx,vy,vz in km/s; m in Msun"], "pc"),
            (&["r in pc, v in km/s, m in Msun"], "pc"),
            (
                &["lengths in pc and velocities in km/s; masses in solar masses"],
                "pc",
            ),
            (
                &["unit_l = 1e3 pc, unit_m = 1e10 Msun, unit_v = 1e5 cm/s"],
                "kpc",
            ),
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
                    "time unit: Myr",
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
            "the mass in the core is half",
            "x, y and z are coordinates",
            "m = 0.5 Msun, N = 20",
            "half-mass radius 3 pc, total mass 1000 Msun",
            "CPU time = 35 s",
            "Plummer sphere, total mass 1e4 Msun, half-mass length 1 pc, velocity dispersion 5 km/s",
            "distance 8 kpc, speed 220 km/s",
            "softening length = 0.01 pc",
            "crossing time 2.8 Myr",
            "made on Monday",
            "1000 Msun, 3 pc, 5 km/s",
            "1 pc = 3.086e18 cm",
            "the second of five, made in a day",
            "turned from pc, Msun, km/s to N-body units",
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
            ("kpc", "was not understood"),
            ("pc, Msun", "was not understood"),
            ("x in pc, comoving kpc/h", "was not understood"),
            ("comoving kpc, Msun, km/s", "was not understood"),
            ("h^-1 kpc, Msun, km/s", "was not understood"),
            ("length unit: pc, velocity unit: km/s", "make no system"),
            ("length unit: pc, length unit: kpc", "was not understood"),
            (
                "lengths in pc and velocities in km/s; masses in stones",
                "was not understood",
            ),
            ("units: pc, Msun, km/s, kpc, yr", "was not understood"),
        ] {
            let note = system(&[comment]).unwrap_err();
            assert!(note.contains(part), "{comment}: {note}");
        }
    }
}
