//! Names of columns, with units in brackets as in `x [pc]`, and what those units are.

use super::super::column::MASS;
use crate::units::{self, Dimension, Units};

/// Names of the coordinates in tables of programs; the first of each is the one written here.
pub(super) const PLACES: [[&str; 3]; 6] = [
    ["x", "pos_x", "x_pos"],
    ["y", "pos_y", "y_pos"],
    ["z", "pos_z", "z_pos"],
    ["vx", "vel_x", "v_x"],
    ["vy", "vel_y", "v_y"],
    ["vz", "vel_z", "v_z"],
];

/// The name of a column, and its unit as the file has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) unit: String,
}

impl Name {
    /// Takes apart `x`, `x [pc]`, `x_[pc]` or `x (pc)`.
    pub(super) fn of(text: &str) -> Self {
        let text = text.trim().trim_matches(['"', '\'']);
        let with = |open: char, close: char| {
            let (name, unit) = text.strip_suffix(close)?.rsplit_once(open)?;
            (!name.is_empty()).then_some((name, unit))
        };
        let (name, unit) = with('[', ']')
            .or_else(|| with('(', ')'))
            .unwrap_or((text, ""));
        Self {
            name: name.trim_matches(['_', ' ', '\t']).to_owned(),
            unit: unit.trim().to_owned(),
        }
    }

    /// Returns whether it is a coordinate or the mass.
    pub(super) fn is_known(&self) -> bool {
        let mut names = PLACES.as_flattened().iter().chain(&MASS);
        names.any(|name| self.name.eq_ignore_ascii_case(name))
    }
}

/// The names in a comment such as `x y z vx vy vz mass`, if it has names of bodies' columns.
pub(super) fn names_in(comment: &str) -> Option<Vec<Name>> {
    // Of mass, position and velocity together there are seven; other words may be names as well.
    const NAMES: usize = 4;
    let after_colon = comment.split_once(':').map(|(_, rest)| rest);
    [after_colon, Some(comment)]
        .into_iter()
        .flatten()
        .map(|text| words(text).into_iter().map(Name::of).collect::<Vec<_>>())
        .find(|names| names.iter().filter(|name| name.is_known()).count() >= NAMES)
}

/// The fields of a comment: between commas, semicolons or tabs if there are any, else between blanks, of
/// which those before a bracket part nothing.
pub(super) fn words(comment: &str) -> Vec<&str> {
    let separator = [',', ';', '\t'].into_iter().find(|c| comment.contains(*c));
    if let Some(separator) = separator {
        return comment.split(separator).map(str::trim).collect();
    }
    let mut words: Vec<&str> = vec![];
    let (mut start, mut depth) = (None, 0_usize);
    for (at, c) in comment.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = c.is_whitespace() && depth == 0 && {
            let rest = comment[at..].trim_start();
            !rest.starts_with('[') && !rest.starts_with('(')
        };
        match start {
            None if !c.is_whitespace() => start = Some(at),
            Some(begin) if ends => {
                words.push(&comment[begin..at]);
                start = None;
            }
            _ => {}
        }
    }
    words.extend(start.map(|begin| &comment[begin..]));
    words
}

/// Size and dimension of a unit, however programs write it; `None` for one that is not known.
pub(super) fn unit(text: &str) -> Option<(Dimension, f64)> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let text = text.replace("**", "^").replace(['*', '{', '}', '$'], "");
    const SPELLINGS: [(&[&str], &str); 8] = [
        (
            &[
                "MSun", "msun", "M_sun", "Msol", "solMass", "M_⊙", "M⊙", "M☉",
            ],
            "Msun",
        ),
        (&["AU"], "au"),
        (&["parsec"], "pc"),
        (
            &["kms", "kms^-1", "kms-1", "km/sec", "kms^(-1)", "km(s^-1)"],
            "km/s",
        ),
        (&["ms^-1", "ms-1", "m(s^-1)", "ms^(-1)"], "m/s"),
        (&["cms^-1", "cms-1"], "cm/s"),
        (&["year"], "yr"),
        (&["sec"], "s"),
    ];
    let spelled = SPELLINGS.iter().find_map(|(others, known)| {
        let number = others.iter().find_map(|other| text.strip_suffix(other))?;
        let number_alone = number.is_empty() || number.parse::<f64>().is_ok();
        number_alone.then(|| format!("{number}{known}"))
    });
    units::unit(&spelled.unwrap_or(text)).ok()
}

/// Returns whether a unit says that numbers have none.
fn is_none(unit: &str) -> bool {
    let unit = unit.to_ascii_lowercase();
    ["", "-", "1", "none", "nbody", "n-body", "code", "nb", "nu"].contains(&unit.as_str())
        || ["mass", "length", "time", "system.get"]
            .iter()
            .any(|base| unit.starts_with(base))
}

/// The system of these units of mass, length and speed; or a text that says why there is none.
///
/// # Errors
/// The note that units are there and make no system.
pub(super) fn system(
    mass: &str,
    lengths: [&str; 3],
    speeds: [&str; 3],
) -> Result<Option<Units>, String> {
    let all = || [mass].into_iter().chain(lengths).chain(speeds);
    if all().all(is_none) {
        return Ok(None);
    }
    let of = |wanted: Dimension, units: &[&str]| {
        let sizes = units.iter().map(|text| match unit(text) {
            Some((dimension, size)) if dimension == wanted => Some(size),
            _ => None,
        });
        let sizes = sizes.collect::<Option<Vec<f64>>>()?;
        sizes.iter().all(|size| *size == sizes[0]).then(|| sizes[0])
    };
    let sizes = (
        of(Dimension::Mass, &[mass]),
        of(Dimension::Length, &lengths),
        of(Dimension::Speed, &speeds),
    );
    match sizes {
        (Some(mass), Some(length), Some(speed)) => Ok(Some(Units {
            length,
            mass,
            time: length / speed,
        })),
        _ => {
            let told: Vec<&str> = all().filter(|unit| !unit.is_empty()).take(7).collect();
            Err(format!(
                "the units that the table tells ({}) make no system of mass, length and speed: numbers are \
                 taken as they are, without units",
                told.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(comment: &str) -> Option<Vec<(String, String)>> {
        let pair = |name: Name| (name.name, name.unit);
        Some(names_in(comment)?.into_iter().map(pair).collect())
    }

    #[test]
    fn names_are_found_in_comments() {
        for (comment, units) in [
            (
                "Mass_[Msun] x_[pc] y_[pc] z_[pc] vx_[km/s] vy_[km/s] vz_[km/s]",
                ["Msun", "pc", "km/s"],
            ),
            (
                "m [Msun], x [pc], y [pc], z [pc], vx [km/s], vy [km/s], vz [km/s]",
                ["Msun", "pc", "km/s"],
            ),
            ("columns: m x y z vx vy vz", ["", "", ""]),
            (
                "m (kg) x (m) y (m) z (m) vx (m s^-1) vy (m s^-1) vz (m s^-1)",
                ["kg", "m", "m s^-1"],
            ),
        ] {
            let found = names(comment).unwrap();
            assert_eq!(found.len(), 7, "{comment}: {found:?}");
            let unit = |k: usize| found[k].1.as_str();
            assert_eq!([unit(0), unit(1), unit(4)], units);
            assert_eq!((found[1].0.as_str(), found[6].0.as_str()), ("x", "vz"));
        }
        assert_eq!(names("made on Monday by x and y"), None);
        assert_eq!(Name::of("Mass(t=0)_[Msun]").name, "Mass(t=0)");
    }

    #[test]
    fn units_make_a_system() {
        let pc = ["pc"; 3];
        let known = system("MSun", pc, ["km s**-1"; 3]).unwrap().unwrap();
        assert!(known.are_those_of(&"pc,Msun,km/s".parse().unwrap()));
        let known = system(
            "1.98840987e+30 * kg",
            ["3.0856775814913673e16 m"; 3],
            ["kms"; 3],
        );
        assert!(
            known
                .unwrap()
                .unwrap()
                .are_those_of(&"pc,Msun,km/s".parse().unwrap())
        );
        assert_eq!(system("", [""; 3], [""; 3]), Ok(None));
        assert_eq!(
            system("mass", ["length"; 3], ["length / time"; 3]),
            Ok(None)
        );
        for (mass, lengths, speeds) in [
            ("", pc, ["km/s"; 3]),
            ("furlong", pc, ["km/s"; 3]),
            ("Msun", ["pc", "pc", "kpc"], ["km/s"; 3]),
            ("pc", pc, ["km/s"; 3]),
        ] {
            assert!(system(mass, lengths, speeds).is_err());
        }
    }
}
