//! Fields as text: `nfw:mass=1e12Msun,scale=16kpc,x=8kpc`.

use std::path::Path as File;

use super::FIRST_POST_NEWTONIAN;
use super::relativity::LIGHT;
use super::{Default, ExternalField, FORMULAS, FieldFault, Orbit, Path, PathFault, Quantity};
use super::{Fields, mwpotential2014};
use crate::names::nearest;
use crate::settings::Setting;
use crate::units::{Dimension, Units, unit};

const MWPOTENTIAL2014: &str = "mwpotential2014";
const PATH: &str = "path";
const CENTRE: [&str; 3] = ["x", "y", "z"];
const ORBIT: &str = "orbit";
const OF_ORBIT: [&str; 6] = ["x", "y", "z", "vx", "vy", "vz"];

/// Names of fields.
pub const NAMES: [&str; 11] = {
    let mut names = [MWPOTENTIAL2014; 11];
    names[10] = FIRST_POST_NEWTONIAN;
    let mut i = 0;
    while i < FORMULAS.len() {
        names[i] = FORMULAS[i].name;
        i += 1;
    }
    names
};

/// Text that is no field.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFault {
    /// Not a field.
    #[error("there is no field `{name}`{}; there are {}", meant(*near), NAMES.join(", "))]
    Unknown {
        /// Text that was given.
        name: String,
        /// Name that may have been meant.
        near: Option<&'static str>,
    },
    /// Not a parameter of the field.
    #[error("the field {field} has no parameter `{name}`{}; it has {known}", meant(*near))]
    UnknownParameter {
        /// The field.
        field: &'static str,
        /// Text that was given.
        name: String,
        /// Name that may have been meant.
        near: Option<&'static str>,
        /// Parameters of the field.
        known: String,
    },
    /// A parameter that must be given.
    #[error("the field {field} needs `{parameter}`, as in {field}:{parameter}=…")]
    Missing {
        /// The field.
        field: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// A parameter that is given twice, or without a value.
    #[error("`{0}` of the field {1} must be given once, as in {0}=…")]
    Once(String, &'static str),
    /// A value that is no such quantity.
    #[error(
        "`{parameter}` of the {}{field} must be {wanted}, got `{text}`",
        of_field(field)
    )]
    Quantity {
        /// The field.
        field: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// A description of what it should be.
        wanted: &'static str,
        /// Text that was given.
        text: String,
    },
    /// A unit in a run without units.
    #[error(
        "{0}, and the units of the bodies are not known: give them with {units}, or numbers in the \
         bodies' own units", units = Setting::Units
    )]
    NoUnits(String),
    /// A path that cannot be read.
    #[error(transparent)]
    Path(#[from] PathFault),
    /// Not a number of an orbit.
    #[error("an orbit has no `{0}`; it has {list}, as in x=8kpc,vy=220km/s", list = OF_ORBIT.join(", "))]
    NotOfOrbit(String),
    /// A number of an orbit that is given twice.
    #[error("`{0}` of the orbit must be given once")]
    OrbitOnce(&'static str),
    /// A number that makes no sense.
    #[error(transparent)]
    Fault(#[from] FieldFault),
}

/// A word before what has a parameter.
fn of_field(field: &str) -> &'static str {
    if field == ORBIT { "" } else { "field " }
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"))
}

/// Reads a field in the units of a run with the gravitational constant `g`. Numbers without a unit are in
/// the units of the run.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn parse(text: &str, units: Option<&Units>, g: f64) -> Result<Fields, ParseFault> {
    let (name, list) = text.split_once(':').unwrap_or((text, ""));
    let name = name.trim();
    let mut given = vec![];
    for word in list.split(',').filter(|word| !word.trim().is_empty()) {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        given.push((key.trim(), value.trim()));
    }
    if name == MWPOTENTIAL2014 {
        let units =
            units.ok_or_else(|| ParseFault::NoUnits(format!("{name} is in kpc and km/s")))?;
        let field = MWPOTENTIAL2014;
        check_keys(field, &given, &[])?;
        let parts = mwpotential2014(units, g);
        let centred = parts.map(|part| centred(field, part, &given, Some(units)));
        let fields = centred.into_iter().collect::<Result<Fields, _>>()?;
        fields.check()?;
        return Ok(fields);
    }
    if name == FIRST_POST_NEWTONIAN {
        return relativity(&given, units);
    }
    let Some(formula) = FORMULAS.iter().find(|formula| formula.name == name) else {
        let near = nearest(name, NAMES);
        let name = name.to_owned();
        return Err(ParseFault::Unknown { name, near });
    };
    let field = formula.name;
    let names: Vec<&'static str> = formula.parameters.iter().map(|p| p.name).collect();
    check_keys(field, &given, &names)?;
    let mut values: Vec<f64> = vec![];
    for parameter in formula.parameters {
        let value = given.iter().find(|(key, _)| *key == parameter.name);
        values.push(match (value, &parameter.default) {
            (Some((_, text)), _) => {
                quantity(field, parameter.name, parameter.quantity, text, units)?
            }
            (None, Default::Is(value)) => *value,
            (None, Default::AsFirst) => values[0],
            (None, Default::Needed) => {
                let parameter = parameter.name;
                return Err(ParseFault::Missing { field, parameter });
            }
        });
    }
    let made = ExternalField::of(formula, &values);
    let fields = Fields::from_iter([centred(field, made, &given, units)?]);
    fields.check()?;
    Ok(fields)
}

/// Reads the orbit of a frame's origin in the units of a run: `x=8kpc,vy=220km/s`. What is not given is 0.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn parse_orbit(text: &str, units: Option<&Units>) -> Result<Orbit, ParseFault> {
    let mut numbers = [None; OF_ORBIT.len()];
    for word in text.split(',') {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let (key, value) = (key.trim(), value.trim());
        let Some(i) = OF_ORBIT.iter().position(|name| *name == key) else {
            return Err(ParseFault::NotOfOrbit(key.to_owned()));
        };
        let dimension = match i {
            0..3 => Quantity::Length,
            _ => Quantity::Speed,
        };
        let value = quantity(ORBIT, OF_ORBIT[i], dimension, value, units)?;
        if numbers[i].replace(value).is_some() {
            return Err(ParseFault::OrbitOnce(OF_ORBIT[i]));
        }
    }
    let [x, y, z, vx, vy, vz] = numbers.map(Option::unwrap_or_default);
    let orbit = Orbit::new([x, y, z], [vx, vy, vz]);
    orbit.check()?;
    Ok(orbit)
}

/// The first post-Newtonian term, by the speed of light in the units of the run or one that is given.
fn relativity(given: &[(&str, &str)], units: Option<&Units>) -> Result<Fields, ParseFault> {
    let field = FIRST_POST_NEWTONIAN;
    check_keys(field, given, &["body", "c"])?;
    let find = |name: &str| given.iter().find(|(key, _)| *key == name);
    let body = match find("body") {
        None => 0,
        Some((_, text)) => text.parse().map_err(|_| ParseFault::Quantity {
            field,
            parameter: "body",
            wanted: "the index of a body, from 0 on",
            text: (*text).to_owned(),
        })?,
    };
    let light = match (find("c"), units) {
        (Some((_, text)), _) => quantity(field, "c", Quantity::Speed, text, units)?,
        (None, Some(units)) => LIGHT / units.speed(),
        (None, None) => {
            let parameter = "c";
            return Err(ParseFault::Missing { field, parameter });
        }
    };
    let made = ExternalField::first_post_newtonian(body, light);
    let fields = Fields::from_iter([centred(field, made, given, units)?]);
    fields.check()?;
    Ok(fields)
}

/// The file that the path of a field is read from, and where it stands in the text.
pub fn file_of(text: &str) -> Option<&str> {
    let (_, list) = text.split_once(':')?;
    let mut words = list.split(',').filter_map(|word| word.split_once('='));
    let (_, file) = words.find(|(key, _)| key.trim() == PATH)?;
    Some(file.trim())
}

fn check_keys(
    field: &'static str,
    given: &[(&str, &str)],
    names: &[&'static str],
) -> Result<(), ParseFault> {
    let known = || names.iter().copied().chain(CENTRE).chain([PATH]);
    for (i, (key, value)) in given.iter().enumerate() {
        if known().all(|name| name != *key) {
            return Err(ParseFault::UnknownParameter {
                field,
                name: (*key).to_owned(),
                near: nearest(key, known()),
                known: known().collect::<Vec<_>>().join(", "),
            });
        }
        let again = given[..i].iter().any(|(other, _)| other == key);
        let beside = *key == PATH && given.iter().any(|(other, _)| CENTRE.contains(other));
        if again || value.is_empty() {
            return Err(ParseFault::Once((*key).to_owned(), field));
        }
        if beside {
            return Err(ParseFault::Quantity {
                field,
                parameter: PATH,
                wanted: "given alone, without x, y and z",
                text: (*value).to_owned(),
            });
        }
    }
    Ok(())
}

fn centred(
    field: &'static str,
    made: ExternalField,
    given: &[(&str, &str)],
    units: Option<&Units>,
) -> Result<ExternalField, ParseFault> {
    let find = |name: &str| given.iter().find(|(key, _)| *key == name);
    if let Some((_, file)) = find(PATH) {
        return Ok(made.along(Path::read(File::new(file))?));
    }
    let mut centre = [0.0; 3];
    for (name, centre) in CENTRE.into_iter().zip(&mut centre) {
        if let Some((_, text)) = find(name) {
            *centre = quantity(field, name, Quantity::Length, text, units)?;
        }
    }
    Ok(match centre == [0.0; 3] {
        true => made,
        false => made.at(centre),
    })
}

/// A number, in the units of the run.
fn quantity(
    field: &'static str,
    parameter: &'static str,
    quantity: Quantity,
    text: &str,
    units: Option<&Units>,
) -> Result<f64, ParseFault> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let wrong = |wanted| ParseFault::Quantity {
        field,
        parameter,
        wanted,
        text: text.to_owned(),
    };
    let wanted = match quantity {
        Quantity::Mass => "a mass, such as 1e12Msun",
        Quantity::Length => "a length, such as 16kpc",
        Quantity::Speed => "a speed, such as 220km/s",
        Quantity::Frequency => "a frequency, such as 27km/s/kpc or 0.03/Myr",
        Quantity::Number => return Err(wrong("a number")),
    };
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => (-1.0, size),
        None => (1.0, text),
    };
    let measured = match quantity {
        Quantity::Frequency => frequency(size),
        _ => unit(size).ok().or_else(|| zero(size)),
    };
    let (dimension, size) = measured.ok_or_else(|| wrong(wanted))?;
    let Some(units) = units else {
        return Err(ParseFault::NoUnits(format!(
            "{parameter}={text} has a unit"
        )));
    };
    let one = match (quantity, dimension) {
        (Quantity::Mass, Dimension::Mass) => units.mass,
        (Quantity::Length, Dimension::Length) => units.length,
        (Quantity::Speed, Dimension::Speed) => units.speed(),
        (Quantity::Frequency, _) => 1.0 / units.time,
        _ => return Err(wrong(wanted)),
    };
    Ok(sign * size / one)
}

/// Zero with a unit, which is no unit itself.
fn zero(text: &str) -> Option<(Dimension, f64)> {
    let (number, name) = text.split_at(text.find(char::is_alphabetic)?);
    let (dimension, _) = unit(name).ok()?;
    (number.trim().parse() == Ok(0.0)).then_some((dimension, 0.0))
}

/// A speed over a length, or a number over a time, in 1/s.
fn frequency(text: &str) -> Option<(Dimension, f64)> {
    let (above, below) = text.rsplit_once('/')?;
    let (dimension, below) = unit(below.trim()).ok()?;
    let above = match dimension {
        Dimension::Time => above.trim().parse().ok()?,
        Dimension::Length => match unit(above.trim()).ok()? {
            (Dimension::Speed, speed) => speed,
            _ => return None,
        },
        Dimension::Mass | Dimension::Speed => return None,
    };
    Some((dimension, above / below))
}
