//! Names of columns, with units in brackets as in `x [pc]`, and what those units are.

use super::super::column::MASS;
use crate::units::{self, Dimension, Units};

/// Names of the coordinates in tables of programs; the first of each is the one written here.
pub(super) const PLACES: [[&str; 8]; 6] = [
    [
        "x",
        "pos_x",
        "x_pos",
        "posx",
        "xpos",
        "pos_0",
        "pos[0]",
        "position_x",
    ],
    [
        "y",
        "pos_y",
        "y_pos",
        "posy",
        "ypos",
        "pos_1",
        "pos[1]",
        "position_y",
    ],
    [
        "z",
        "pos_z",
        "z_pos",
        "posz",
        "zpos",
        "pos_2",
        "pos[2]",
        "position_z",
    ],
    [
        "vx",
        "vel_x",
        "v_x",
        "velx",
        "xvel",
        "vel_0",
        "vel[0]",
        "velocity_x",
    ],
    [
        "vy",
        "vel_y",
        "v_y",
        "vely",
        "yvel",
        "vel_1",
        "vel[1]",
        "velocity_y",
    ],
    [
        "vz",
        "vel_z",
        "v_z",
        "velz",
        "zvel",
        "vel_2",
        "vel[2]",
        "velocity_z",
    ],
];

/// The name of a column, and its unit as the file has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) unit: String,
}

impl Name {
    /// Takes apart `x`, `x [pc]`, `x_[pc]`, `x (pc)` or `x_pc`.
    pub(super) fn of(text: &str) -> Self {
        let text = text.trim().trim_matches(['"', '\'']);
        let with = |open: char, close: char| {
            let (name, unit) = text.strip_suffix(close)?.rsplit_once(open)?;
            (!name.is_empty() && !is_known(text)).then_some((name, unit))
        };
        // Behind the name of a quantity only, because other names have such words too.
        let behind = || {
            let mut ends = text.match_indices('_').map(|(at, _)| at);
            ends.find_map(|at| {
                let (name, unit) = (&text[..at], &text[at + 1..]);
                let is_unit = is_known(name) && is_unit_of(name, unit);
                (is_unit && !is_known(text)).then_some((name, unit))
            })
        };
        if let Some((name, unit)) = behind() {
            return Self {
                name: name.to_owned(),
                unit: unit.replace('_', "/"),
            };
        }
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
        is_known(&self.name)
    }
}

fn is_known(text: &str) -> bool {
    let mut names = PLACES.as_flattened().iter().chain(&MASS);
    names.any(|name| text.eq_ignore_ascii_case(name))
}

/// Returns whether a word behind the name of a quantity is one of its units, as in `vx_kms` or `mass_msun`.
fn is_unit_of(name: &str, text: &str) -> bool {
    let is_one = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    let wanted = match () {
        () if is_one(&MASS) => Dimension::Mass,
        () if is_one(PLACES[..3].as_flattened()) => Dimension::Length,
        () => Dimension::Speed,
    };
    // No number comes before it.
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && unit(&text.replace('_', "/")).is_some_and(|(dimension, _)| dimension == wanted)
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

/// Units that tables have and options have not: sizes in SI's.
const FURTHER: [(&str, Dimension, f64); 12] = [
    ("M_earth", Dimension::Mass, 3.986_004e14 / units::G),
    ("Mearth", Dimension::Mass, 3.986_004e14 / units::G),
    ("earthMass", Dimension::Mass, 3.986_004e14 / units::G),
    ("M_jup", Dimension::Mass, 1.266_865_3e17 / units::G),
    ("Mjup", Dimension::Mass, 1.266_865_3e17 / units::G),
    ("jupiterMass", Dimension::Mass, 1.266_865_3e17 / units::G),
    ("Rsun", Dimension::Length, 6.957e8),
    ("R_sun", Dimension::Length, 6.957e8),
    ("solRad", Dimension::Length, 6.957e8),
    ("mm", Dimension::Length, 1e-3),
    ("kyr", Dimension::Time, 1e3 * units::YEAR),
    ("hour", Dimension::Time, 3600.0),
];

/// Size and dimension of a unit, however programs write it; `None` for one that is not known.
pub(super) fn unit(text: &str) -> Option<(Dimension, f64)> {
    let text = text.replace("**", "^");
    if let Some((length, time)) = over(&text)
        && let (Some((Dimension::Length, length)), Some((Dimension::Time, time))) =
            (simple(length), simple(time))
    {
        return Some((Dimension::Speed, length / time));
    }
    simple(&text)
}

/// A length and a time, of `pc/Myr`, `pc Myr^-1` or `pc Myr-1`.
fn over(text: &str) -> Option<(&str, &str)> {
    if let Some((length, time)) = text.split_once('/') {
        return Some((length, time.trim().trim_matches(['(', ')'])));
    }
    let (length, time) = text.trim().rsplit_once([' ', '*', '.'])?;
    let time = time.trim_matches(['(', ')', '{', '}', '$']);
    let power = ["^-1", "^{-1", "^(-1", "-1"];
    let time = power.iter().find_map(|power| time.strip_suffix(power))?;
    Some((length.trim_end_matches(['*', '(']), time))
}

/// A unit that is no quotient, or a speed that has a name.
fn simple(text: &str) -> Option<(Dimension, f64)> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let text = text.replace(['*', '{', '}', '$'], "");
    const SPELLINGS: [(&[&str], &str); 11] = [
        (
            &[
                "MSun",
                "msun",
                "M_sun",
                "Msol",
                "solMass",
                "M_⊙",
                "M⊙",
                "M☉",
                "m_sun",
                "M_Sun",
                "msol",
                "Solar_Mass",
                "MSUN",
                "MSol",
            ],
            "Msun",
        ),
        (&["AU"], "au"),
        (&["parsecs", "parsec", "PC"], "pc"),
        (&["KPC", "Kpc"], "kpc"),
        (
            &[
                "kms", "kms^-1", "kms-1", "km/sec", "kms^(-1)", "km(s^-1)", "kmps", "KMS",
            ],
            "km/s",
        ),
        (&["ms^-1", "ms-1", "m(s^-1)", "ms^(-1)"], "m/s"),
        (&["cms^-1", "cms-1"], "cm/s"),
        (&["years", "year", "yrs"], "yr"),
        (&["MYR", "Myrs", "myr"], "Myr"),
        (&["seconds", "second", "sec"], "s"),
        (&["days", "d"], "day"),
    ];
    // A number before the unit, if there is one.
    let number = |before: &str| match before {
        "" => Some(1.0),
        number => number.parse().ok(),
    };
    for (name, dimension, size) in FURTHER {
        if let Some(number) = text.strip_suffix(name).and_then(number) {
            return Some((dimension, number * size)).filter(|(_, size)| size.is_normal());
        }
    }
    let spelled = SPELLINGS.iter().find_map(|(others, known)| {
        let before = others.iter().find_map(|other| {
            let before = text.strip_suffix(other)?;
            number(before).map(|_: f64| before)
        });
        before.map(|before| format!("{before}{known}"))
    });
    units::unit(&spelled.unwrap_or(text)).ok()
}

/// Returns whether a unit says that numbers have none.
fn is_none(unit: &str) -> bool {
    let unit = unit.to_ascii_lowercase();
    [
        "",
        "-",
        "1",
        "none",
        "nbody",
        "n-body",
        "code",
        "nb",
        "nu",
        "henon",
        "hénon",
        "dimensionless",
    ]
    .contains(&unit.as_str())
        || ["mass", "length", "time", "system.get"]
            .iter()
            .any(|base| unit.starts_with(base))
}

/// A system of units, and factors that turn the numbers of each coordinate to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct System {
    pub(super) units: Units,
    pub(super) factors: [f64; 6],
}

/// The system of these units of mass, length and speed, in which lengths and speeds have the units of the
/// first of each.
///
/// # Errors
/// The note that units are there and make no system.
pub(super) fn system(
    mass: &str,
    lengths: [&str; 3],
    speeds: [&str; 3],
) -> Result<Option<System>, String> {
    let all = || [mass].into_iter().chain(lengths).chain(speeds);
    if all().all(is_none) {
        return Ok(None);
    }
    let of = |wanted: Dimension, text: &str| match unit(text) {
        Some((dimension, size)) if dimension == wanted => Some(size),
        _ => None,
    };
    let sizes = || {
        let mut sizes = [0.0; 6];
        for (k, size) in sizes.iter_mut().enumerate() {
            *size = match k {
                0..3 => of(Dimension::Length, lengths[k]),
                _ => of(Dimension::Speed, speeds[k - 3]),
            }?;
        }
        Some((of(Dimension::Mass, mass)?, sizes))
    };
    match sizes() {
        Some((mass, sizes)) => Ok(Some(System {
            units: Units {
                length: sizes[0],
                mass,
                time: sizes[0] / sizes[3],
            },
            factors: std::array::from_fn(|k| sizes[k] / sizes[k - k % 3]),
        })),
        None => {
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
    fn units_are_known_however_they_are_spelled() {
        const PC: f64 = 3.085_677_581_491_367e16;
        for (text, dimension, size) in [
            ("pc/Myr", Dimension::Speed, PC / 3.155_76e13),
            ("pc Myr^-1", Dimension::Speed, PC / 3.155_76e13),
            ("pc Myr-1", Dimension::Speed, PC / 3.155_76e13),
            ("AU/day", Dimension::Speed, 149_597_870_700.0 / 86_400.0),
            ("au d**-1", Dimension::Speed, 149_597_870_700.0 / 86_400.0),
            ("km / s", Dimension::Speed, 1e3),
            ("km s-1", Dimension::Speed, 1e3),
            ("1e5 cm/s", Dimension::Speed, 1e3),
            ("2 kyr", Dimension::Time, 2e3 * 31_557_600.0),
            ("M_earth", Dimension::Mass, 5.972_168e24),
            ("1e-3 Mjup", Dimension::Mass, 1.898_125e24),
        ] {
            let (found, value) = unit(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found, dimension, "{text}");
            assert!((value / size - 1.0).abs() < 1e-6, "{text}: {value}");
        }
        for text in [
            "furlong", "pc/pc", "Myr/pc", "", "/", "pc^2", "1e400pc", "x-1",
        ] {
            assert_eq!(unit(text), None, "{text}");
        }
        for (text, name, told) in [
            ("x_pc", "x", "pc"),
            ("vx_km_s", "vx", "km/s"),
            ("mass_msun", "mass", "msun"),
            ("pos_x_kpc", "pos_x", "kpc"),
            ("pos[0]", "pos[0]", ""),
            ("pos[0] [pc]", "pos[0]", "pc"),
            ("v_x", "v_x", ""),
            ("mass_bk", "mass_bk", ""),
            ("x_1", "x_1", ""),
            ("m_s", "m_s", ""),
        ] {
            let found = Name::of(text);
            assert_eq!((found.name.as_str(), found.unit.as_str()), (name, told));
        }
    }

    #[test]
    fn units_make_a_system() {
        let pc = ["pc"; 3];
        let known = system("MSun", pc, ["km s**-1"; 3]).unwrap().unwrap();
        assert_eq!(known.factors, [1.0; 6]);
        let is = |known: System, units: &str| known.units.are_those_of(&units.parse().unwrap());
        assert!(is(known, "pc,Msun,km/s"));
        let mixed = system("Msun", ["pc", "pc", "kpc"], ["km/s", "m/s", "km/s"]);
        let mixed = mixed.unwrap().unwrap();
        assert_eq!(mixed.factors, [1.0, 1.0, 1e3, 1.0, 1e-3, 1.0]);
        assert!(is(mixed, "pc,Msun,km/s"));
        let known = system(
            "1.98840987e+30 * kg",
            ["3.0856775814913673e16 m"; 3],
            ["kms"; 3],
        );
        assert!(is(known.unwrap().unwrap(), "pc,Msun,km/s"));
        assert_eq!(system("", [""; 3], [""; 3]), Ok(None));
        assert_eq!(
            system("mass", ["length"; 3], ["length / time"; 3]),
            Ok(None)
        );
        for (mass, lengths, speeds) in [
            ("", pc, ["km/s"; 3]),
            ("furlong", pc, ["km/s"; 3]),
            ("pc", pc, ["km/s"; 3]),
            ("Msun", pc, ["pc"; 3]),
        ] {
            assert!(system(mass, lengths, speeds).is_err());
        }
    }
}
