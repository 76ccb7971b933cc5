//! Units of the numbers of a file, wherever programs tell them.

use hdf5_reader::Attribute;
use hdf5_reader::group::Group;

use super::super::ReadFault;
use super::dataset::values;
use super::fault;
use super::read::{Attributes, MASS, POSITION, VELOCITY, dataset, group};
use crate::settings::Setting;
use crate::units::{
    Dimension, EntryValue, Units, names_units, quantity_of_entry, spelled, spelled_system,
    unit_of_entry, units_in, usual_units,
};

/// Groups with attributes that tell units.
const GROUPS: [&str; 4] = ["Units", "InternalCodeUnits", "Header", "Parameters"];

/// Relative difference from which on two units or two constants of gravity are not the same.
const DIFFERENT: f64 = 1e-2;

/// Names of attributes for the constant of gravity. The second is 0 where it follows from the units.
const GRAVITY: [&str; 4] = [
    "Gravitational_Constant_In_Code_Inits",
    "GravityConstantInternal",
    "G",
    "PhysicalConstants:G",
];

/// The units recorded in a file.
pub(super) fn units(root: &Group, notes: &mut Vec<String>) -> Result<Option<Units>, ReadFault> {
    let mut groups = vec![];
    // A group that cannot be read is a fault where it is needed.
    let others = root.member_names().unwrap_or_default().0;
    let others = (others.iter().map(String::as_str)).filter(|name| !GROUPS.contains(name));
    for name in GROUPS
        .into_iter()
        .chain(others.filter(|name| names_units(name)))
    {
        groups.extend(Attributes::of(root, name)?);
    }
    let all = root.attributes().map_err(|error| fault("/", error))?;
    groups.push(Attributes {
        place: String::new(),
        all,
    });
    let said = notes.len();
    let mut told: Option<(String, Units)> = None;
    for attributes in &groups {
        let Some(units) = of_attributes(attributes, notes)? else {
            continue;
        };
        match &told {
            Some((place, first)) if !are_near(first, &units) => notes.push(format!(
                "{} tells units of {}, and {place} units of {}, which are taken",
                attributes.place,
                units.names(),
                first.names()
            )),
            Some(_) => {}
            None => told = Some((attributes.place.clone(), units)),
        }
    }
    let of_datasets = of_datasets(root)?;
    let units = match (told, of_datasets) {
        (Some((place, told)), Some(of_datasets)) => {
            if !are_near(&told, &of_datasets) {
                notes.push(format!(
                    "attributes of datasets tell units of {}, and {place} units of {}, which are taken",
                    of_datasets.names(),
                    told.names()
                ));
            }
            Some(told)
        }
        (told, of_datasets) => told.map(|(_, told)| told).or(of_datasets),
    };
    let Some((place, gravity)) = gravity(&groups)? else {
        if units.is_none() && notes.len() == said {
            notes.extend(strange(root, &groups)?);
        }
        return Ok(units);
    };
    let g = units.map_or(1.0, |units| units.g());
    if (gravity / g - 1.0).abs() < DIFFERENT {
        return Ok(units);
    }
    let usual = usual_units(gravity).filter(|_| units.is_none());
    notes.push(match (units, usual) {
        (Some(_), _) => format!(
            "{place} is {gravity:e}, and the constant of gravity is {g:e} in its units, which are taken: give the \
             gravity {gravity:e} to take the other"
        ),
        (None, Some(usual)) => format!(
            "by {place} = {gravity}, numbers are in units of {}",
            usual.names()
        ),
        (None, None) => format!("{place} is {gravity:e}, and the file tells no units: give units, or this gravity"),
    });
    Ok(units.or(usual))
}

fn are_near(a: &Units, b: &Units) -> bool {
    let ratios = [a.length / b.length, a.mass / b.mass, a.time / b.time];
    ratios.iter().all(|ratio| (ratio - 1.0).abs() < DIFFERENT)
}

/// The units that the attributes of a group make; a note if there are some, and they make none.
fn of_attributes(
    attributes: &Attributes,
    notes: &mut Vec<String>,
) -> Result<Option<Units>, ReadFault> {
    let mut sizes = [None; 4];
    let mut found = vec![];
    for attribute in &attributes.all {
        let name = attribute.name.as_str();
        let text = attribute.read_string().ok();
        if let (true, Some(text)) = (is_list(name), &text)
            && let Some(units) = spelled_system(text)
        {
            return Ok(Some(units));
        }
        let Some((dimension, of_number)) = quantity_of_entry(name) else {
            continue;
        };
        let size = match text {
            Some(text) => unit_of_entry(name, EntryValue::Text(&text)),
            None if of_number.is_empty() => None,
            None => {
                let number = attributes.number(name)?;
                number.and_then(|number| unit_of_entry(name, EntryValue::Number(number)))
            }
        };
        if size.is_some() || !of_number.is_empty() {
            found.push(name);
            sizes[dimension as usize] = size.map(|(_, size)| size);
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let [length, mass, time, speed] = sizes;
    let units = match [length, mass, speed, time] {
        [Some(length), Some(mass), Some(speed), _] => Some(Units {
            length,
            mass,
            time: length / speed,
        }),
        [Some(length), Some(mass), None, Some(time)] => Some(Units { length, mass, time }),
        _ => None,
    };
    let units = units.filter(is_system);
    if units.is_none() {
        notes.push(format!(
            "{} tells units by {}, which make no system of length, mass and speed or time: they are taken for unknown",
            attributes.place,
            found.join(", ")
        ));
    }
    Ok(units)
}

/// Returns whether an attribute of this name lists all units.
fn is_list(name: &str) -> bool {
    ["unit", "units", "unitsystem"]
        .contains(&name.to_ascii_lowercase().replace(['_', ' '], "").as_str())
}

/// The note on attributes that tell of units and are not understood, if there are any: of groups, and of the datasets of the
/// bodies.
fn strange(root: &Group, groups: &[Attributes]) -> Result<Option<String>, ReadFault> {
    let mut found: Vec<String> = vec![];
    for Attributes { place, all } in groups {
        let is_told = |attribute: &&Attribute| names_units(&attribute.name) || names_units(place);
        let named = all
            .iter()
            .filter(is_told)
            .filter(|attribute| is_of_units(attribute));
        found.extend(named.map(|attribute| format!("{place}/{}", attribute.name)));
    }
    for number in 0..6 {
        let name = format!("PartType{number}");
        let Some(group) = group(root, &name)? else {
            continue;
        };
        for name in [POSITION, VELOCITY, MASS].concat() {
            let place = format!("/PartType{number}/{name}");
            let Some(dataset) = dataset(&group, name, &place)? else {
                continue;
            };
            let attributes = dataset.attributes();
            let told = attributes.iter().find(|attribute| {
                let text = attribute.read_string().unwrap_or_default();
                let is_told = names_units(&attribute.name) || !units_in(&text).is_empty();
                is_told && is_of_units(attribute)
            });
            found.extend(told.map(|attribute| format!("{place}/{}", attribute.name)));
        }
    }
    const SHOWN: usize = 4;
    let more = if found.len() > SHOWN { ", …" } else { "" };
    found.truncate(SHOWN);
    Ok((!found.is_empty()).then(|| {
        format!(
            "the file tells of units by {}{more}, which are not understood or make no system: if numbers have units, give \
             them with {}",
            found.join(", "),
            Setting::Units
        )
    }))
}

/// Returns whether the value of an attribute can be a unit: no zero, and no text such as `code_length`.
fn is_of_units(attribute: &Attribute) -> bool {
    let is_zero =
        || values(&attribute.datatype, &attribute.raw_data).is_some_and(|all| all == [0.0]);
    match attribute.read_string() {
        Ok(text) => {
            let text = text.trim().to_ascii_lowercase();
            let none = ["", "-", "1", "none", "nbody", "n-body", "dimensionless"];
            !none.contains(&text.as_str()) && !text.starts_with("code")
        }
        Err(_) => !is_zero(),
    }
}

/// The number of an attribute, which some programs write as a text.
fn number_or_text(
    attributes: &Attributes,
    attribute: &Attribute,
) -> Result<Option<f64>, ReadFault> {
    let in_text = || attribute.read_string().ok()?.trim().parse().ok();
    match in_text() {
        Some(number) => Ok(Some(number)),
        None => attributes.number(&attribute.name),
    }
}

fn is_system(units: &Units) -> bool {
    let all = [units.length, units.mass, units.time, units.g()];
    all.iter().all(|size| size.is_normal() && *size > 0.0)
}

/// The constant of gravity that a file tells, and where.
fn gravity(groups: &[Attributes]) -> Result<Option<(String, f64)>, ReadFault> {
    for attributes in groups {
        for name in GRAVITY {
            let Some(attribute) = attributes.find(name) else {
                continue;
            };
            let number = number_or_text(attributes, attribute)?;
            if let Some(number) = number.filter(|number| number.is_normal()) {
                return Ok(Some((format!("{}/{name}", attributes.place), number)));
            }
        }
    }
    Ok(None)
}

/// The units that attributes of the first bodies' datasets tell.
fn of_datasets(root: &Group) -> Result<Option<Units>, ReadFault> {
    for number in 0..6 {
        let name = format!("PartType{number}");
        let Some(group) = group(root, &name)? else {
            continue;
        };
        let mut sizes = [None; 3];
        for (size, (names, wanted, cgs)) in sizes.iter_mut().zip([
            (POSITION, Dimension::Length, 1e-2),
            (VELOCITY, Dimension::Speed, 1e-2),
            (MASS, Dimension::Mass, 1e-3),
        ]) {
            for name in names {
                if let Some(dataset) = dataset(&group, name, &format!("/PartType{number}/{name}"))?
                {
                    *size = of_dataset(&dataset.attributes(), wanted, cgs);
                }
            }
        }
        if let [Some(length), Some(speed), Some(mass)] = sizes {
            let units = Units {
                length,
                mass,
                time: length / speed,
            };
            return Ok(Some(units).filter(is_system));
        }
    }
    Ok(None)
}

/// The unit of a dataset in SI's: a factor as programs of Gadget's kind tell it, or a text. `cgs` is the size of the unit
/// in cgs.
fn of_dataset(attributes: &[Attribute], wanted: Dimension, cgs: f64) -> Option<f64> {
    /// Of Gadget-4 and Arepo, EAGLE, and SWIFT.
    const FACTORS: [&str; 3] = [
        "to_cgs",
        "CGSConversionFactor",
        "Conversion factor to CGS (not including cosmological corrections)",
    ];
    let find = |names: &[&str]| {
        attributes
            .iter()
            .find(|attribute| names.contains(&attribute.name.as_str()))
    };
    if let Some(factor) = find(&FACTORS) {
        return match values(&factor.datatype, &factor.raw_data)?[..] {
            // Zero is what programs write that do not know.
            [factor] if factor.is_normal() => Some(factor * cgs),
            _ => None,
        };
    }
    let texts = attributes
        .iter()
        .filter(|attribute| names_units(&attribute.name));
    let mut units = texts.filter_map(|attribute| spelled(&attribute.read_string().ok()?));
    units.find_map(|(dimension, size)| (dimension == wanted).then_some(size))
}
