//! Names of columns, with units in brackets as in `x [pc]`, and what those units are.

use super::super::column::MASS;
use crate::units::{Dimension, Units, spelled as unit};

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
    /// Takes apart `x`, `x [pc]`, `x_[pc]`, `x (pc)`, `x_pc` or `x/pc`.
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
        // As in `vx/(km/s)`.
        let over = || {
            let (name, unit) = text.split_once('/')?;
            let unit = unit.trim_matches(['(', ')']);
            (is_known(name) && is_unit_of(name, unit)).then_some((name, unit))
        };
        if let Some((name, unit)) = over() {
            return Self {
                name: name.to_owned(),
                unit: unit.to_owned(),
            };
        }
        if let Some((name, unit)) = behind() {
            return Self {
                name: name.to_owned(),
                unit: unit.replace('_', "/"),
            };
        }
        let (name, unit) = with('[', ']')
            .or_else(|| with('(', ')'))
            .unwrap_or((text, ""));
        // As `(1)`, which is the number of a column.
        let is_number = unit.bytes().all(|byte| byte.is_ascii_digit());
        Self {
            name: name.trim_matches(['_', ' ', '\t']).to_owned(),
            unit: if is_number { "" } else { unit.trim() }.to_owned(),
        }
    }

    /// Returns whether it names what the other does.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let has =
            |names: &[&str], name: &str| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        let of_both = |names: &[&str]| has(names, &self.name) && has(names, &other.name);
        self.name.eq_ignore_ascii_case(&other.name)
            || of_both(&MASS)
            || PLACES.iter().any(|names| of_both(names))
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
    let texts = [after_colon, Some(comment)].into_iter().flatten();
    // Bars are no names.
    let texts = texts.filter(|text| !text.contains('|'));
    let plain = texts.map(|text| words(text).into_iter().map(Name::of).collect::<Vec<_>>());
    let known = |names: &Vec<Name>| names.iter().filter(|name| name.is_known()).count();
    // The first of those with the most names that are known.
    let better = |a: Vec<Name>, b: Vec<Name>| if known(&b) > known(&a) { b } else { a };
    let names = plain.chain([undecorated(comment)]).reduce(better);
    names.filter(|names| known(names) >= NAMES)
}

/// Names between bars, in braces or quotes, with numbers (`1:x`, `(1) x`, `col1=x`, `x:1`), joined by hyphens, or of
/// vectors (`pos vel mass`, `x1 x2 x3 v1 v2 v3`).
fn undecorated(comment: &str) -> Vec<Name> {
    let has_and = comment.contains(" and ");
    let between = if comment.contains(',') { ", " } else { " " };
    let comment = &comment.replace(", and ", ", ").replace(" and ", between);
    let fields: Vec<&str> = match comment.contains('|') {
        true => comment.split('|').collect(),
        false => match &words(comment)[..] {
            [all] => all.split('-').collect(),
            several => several.to_vec(),
        },
    };
    let fields = fields
        .into_iter()
        .flat_map(|field| match field.split_once(") ") {
            // `(1) x` is one word of a comment.
            Some((number, name)) => [number, name],
            None => [field, ""],
        });
    let names = fields
        .map(|field| bare(without_number(bare(field))))
        .filter(|field| !field.is_empty() && !field.bytes().all(|byte| byte.is_ascii_digit()));
    of_vectors(names.map(Name::of).collect(), has_and)
}

/// A field without quotes and without brackets about it; of the first and last one in a list, without the list's.
fn bare(field: &str) -> &str {
    const OPEN: [char; 3] = ['[', '(', '{'];
    const CLOSE: [char; 3] = [']', ')', '}'];
    let quotes = |c: char| c.is_whitespace() || c == '"' || c == '\'';
    let mut field = field.trim_matches(quotes);
    loop {
        let inner = match (field.starts_with(OPEN), field.ends_with(CLOSE)) {
            (true, true) => &field[1..field.len() - 1],
            (true, false) if !field.contains(CLOSE) => &field[1..],
            (false, true) if !field.contains(OPEN) => &field[..field.len() - 1],
            _ => return field,
        };
        field = inner.trim_matches(quotes);
    }
}

/// A name without the number of its column.
fn without_number(field: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((before, name)) = field.split_once([':', '=', '.', ')', ']']) {
        let letters = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let letters = letters.trim_end_matches(['_', ' ']).to_ascii_lowercase();
        if before.ends_with(|c: char| c.is_ascii_digit())
            && ["", "c", "col", "column"].contains(&letters.as_str())
        {
            return name;
        }
    }
    match field.rsplit_once(':') {
        Some((name, number)) if is_number(number) => name,
        _ => field,
    }
}

/// Returns whether words with names of vectors among them make a sentence and no list of names.
fn are_prose(names: &[Name]) -> bool {
    const PROSE: [&str; 18] = [
        "of", "the", "in", "a", "an", "are", "is", "with", "for", "from", "to", "at", "by", "as",
        "their", "all", "each", "this",
    ];
    let mut words = names.iter().flat_map(|name| name.name.split_whitespace());
    words.any(|word| PROSE.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Names of coordinates in the place of names of vectors and their numbered components.
fn of_vectors(mut names: Vec<Name>, has_and: bool) -> Vec<Name> {
    if are_prose(&names) {
        return names;
    }
    let is = |name: &Name, text: &str| name.name.eq_ignore_ascii_case(text);
    let numbered = ["x1", "x2", "x3", "v1", "v2", "v3"];
    if numbered
        .iter()
        .all(|text| names.iter().any(|name| is(name, text)))
    {
        for (text, [known, ..]) in numbered.iter().zip(PLACES) {
            for name in names.iter_mut().filter(|name| is(name, text)) {
                known.clone_into(&mut name.name);
            }
        }
    } else if names.iter().all(|name| name.name.ends_with('1')) {
        // Of the first of several bodies or times.
        for Name { name, .. } in &mut names {
            name.truncate(name.len() - 1);
        }
    }
    let parts = names.into_iter().flat_map(|name| match places(&name.name) {
        Some(places) => places
            .iter()
            .map(|[known, ..]| Name {
                name: (*known).to_owned(),
                unit: name.unit.clone(),
            })
            .collect(),
        None => vec![name],
    });
    let names: Vec<Name> = parts.collect();
    // `positions and velocities` are words about columns, if they are not all of them.
    match has_and && !(names.len() > 6 && names.iter().all(Name::is_known)) {
        true => vec![],
        false => names,
    }
}

/// Names of the coordinates of a vector, if it is one of places or velocities.
pub(super) fn places(vector: &str) -> Option<&'static [[&'static str; 8]]> {
    match vector.to_ascii_lowercase().as_str() {
        "pos" | "position" | "positions" | "coordinates" => Some(&PLACES[..3]),
        "vel" | "velocity" | "velocities" => Some(&PLACES[3..]),
        _ => None,
    }
}

/// The column's number and its name in a comment of one column, such as `column 1: x [pc]` or `1 x`.
pub(super) fn numbered(comment: &str) -> Option<(usize, Name)> {
    let lower = comment.to_ascii_lowercase();
    let prefix = ["columns", "column", "col.", "col", "field"];
    let skipped = prefix.iter().find(|word| lower.starts_with(**word));
    let rest =
        comment[skipped.map_or(0, |word| word.len())..].trim_start_matches(['_', ' ', '(', '[']);
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    let number = rest[..end].parse().ok()?;
    let text = rest[end..].trim_start_matches([')', ']', ':', '=', '.', '-', ' ', '\t']);
    let name = Name::of(words(text).first()?);
    (rest[end..].len() > text.len()).then_some((number, name))
}

/// Returns whether comments have letters for places and velocities, as names of columns do.
pub(super) fn seem_to_name(comments: &str) -> bool {
    let runs = comments.split(|c: char| !c.is_alphabetic());
    let runs: Vec<String> = runs.map(str::to_lowercase).collect();
    let count = |word: &str| runs.iter().filter(|run| *run == word).count();
    let has_all = |words: &[&str]| words.iter().all(|word| count(word) > 0);
    // As in `the mass is in column 7`.
    let words: Vec<&str> = comments.split_whitespace().collect();
    let is_numbered = words.windows(2).any(|pair| {
        let is_number = pair[1].starts_with(|c: char| c.is_ascii_digit());
        is_number && ["column", "columns", "col"].contains(&pair[0].to_lowercase().as_str())
    });
    let quantities = [
        "x",
        "mass",
        "masses",
        "position",
        "positions",
        "velocity",
        "velocities",
    ];
    has_all(&["x", "y", "z", "vx", "vy", "vz"])
        || (count("x") > 2 && count("v") > 2)
        || (is_numbered && quantities.iter().any(|word| count(word) > 0))
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
        for comment in [
            "made on Monday by x and y",
            "position and velocity of stars",
            "positions and velocities in N-body units",
            "positions and velocities",
            "a model with mass and velocity anisotropy",
            "velocity and position are in the frame of the centre of mass",
            "mass and velocity of stars",
            "pos, vel, mass in pc, km/s, Msun",
        ] {
            assert_eq!(names(comment), None, "{comment}");
        }
        assert_eq!(names("mass, position and velocity").unwrap().len(), 7);
        assert_eq!(names("mass position and velocity").unwrap().len(), 7);
        assert_eq!(Name::of("Mass(t=0)_[Msun]").name, "Mass(t=0)");
    }

    #[test]
    fn units_stand_behind_names() {
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
