//! Units of the numbers of a file, wherever programs tell them.

use hdf5_reader::Attribute;
use hdf5_reader::group::Group;

use super::super::ReadFault;
use super::dataset::values;
use super::read::{Attributes, MASS, POSITION, VELOCITY, dataset, group};
use crate::settings::Setting;
use crate::units::{Dimension, Units, spelled, usual_units};

/// Groups with attributes that tell units.
const GROUPS: [&str; 5] = [
    "Units",
    "InternalCodeUnits",
    "Header",
    "Parameters",
    "units",
];

/// Relative difference from which on two units or two constants of gravity are not the same.
const DIFFERENT: f64 = 1e-2;

/// Names of attributes for units of length, mass, speed and time, without `_` and blanks and in lower case. Each list has
/// the size of their unit in SI's.
const NAMES: [(&[&str], f64); 4] = [
    (
        &["unitlengthincm", "unitlengthincgs", "unitlengthincgs(ul)"],
        1e-2,
    ),
    (&["unitmassing", "unitmassincgs", "unitmassincgs(um)"], 1e-3),
    (&["unitvelocityincmpers", "unitvelocityincgs"], 1e-2),
    (&["unittimeins", "unittimeincgs", "unittimeincgs(ut)"], 1.0),
];

/// Names of attributes for the constant of gravity. The second is 0 where it follows from the units.
const GRAVITY: [&str; 4] = [
    "Gravitational_Constant_In_Code_Inits",
    "GravityConstantInternal",
    "G",
    "PhysicalConstants:G",
];

/// The units recorded in a file.
pub(super) fn units(root: &Group, notes: &mut Vec<String>) -> Result<Option<Units>, ReadFault> {
    let known = notes.len();
    let mut groups = vec![];
    for name in GROUPS {
        groups.extend(Attributes::of(root, name)?);
    }
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
        if let (None, true) = (units, notes.len() == known) {
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

/// A note of what seems to tell units, and is not understood.
fn strange(root: &Group, groups: &[Attributes]) -> Result<Option<String>, ReadFault> {
    let speaks = |attribute: &Attribute| {
        let name = attribute.name.to_ascii_lowercase();
        let text = attribute.read_string().unwrap_or_default();
        let is_none = ["none", "code", "nbody", "dimensionless", "1"].contains(&text.trim());
        (name.contains("unit") || name.contains("cgs")) && !is_none && !is_zero(attribute)
    };
    let mut found = vec![];
    for attributes in groups {
        let all = attributes.all.iter().filter(|attribute| speaks(attribute));
        found.extend(all.map(|attribute| format!("{}/{}", attributes.place, attribute.name)));
    }
    for number in 0..6 {
        let Some(group) = group(root, &format!("PartType{number}"))? else {
            continue;
        };
        for name in [POSITION, VELOCITY, MASS].into_iter().flatten() {
            let place = format!("/PartType{number}/{name}");
            let Some(dataset) = dataset(&group, name, &place)? else {
                continue;
            };
            let attributes = dataset.attributes();
            let all = attributes.iter().filter(|attribute| speaks(attribute));
            found.extend(all.map(|attribute| format!("{place}:{}", attribute.name)));
        }
    }
    let more = match found.len() {
        0 => return Ok(None),
        1 => "",
        _ => " and others",
    };
    Ok(Some(format!(
        "{}{more} seem to tell units, which are not understood: if numbers have units, give them with {}",
        found[0],
        Setting::Units
    )))
}

/// Returns whether an attribute is the number 0, as programs write that do not know a factor.
fn is_zero(attribute: &Attribute) -> bool {
    let numbers = values(&attribute.datatype, &attribute.raw_data);
    numbers.is_some_and(|numbers| numbers.iter().all(|number| *number == 0.0))
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
        let key = attribute.name.replace(['_', ' '], "").to_ascii_lowercase();
        let known = NAMES
            .iter()
            .position(|(names, _)| names.contains(&key.as_str()));
        if let Some(k) = known {
            found.push(attribute.name.as_str());
            let number = number_or_text(attributes, attribute)?;
            sizes[k] = number.map(|number| number * NAMES[k].1);
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let units = match sizes {
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
    const TEXTS: [&str; 4] = ["units", "Units", "unit", "Unit"];
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
    let (dimension, size) = spelled(&find(&TEXTS)?.read_string().ok()?)?;
    (dimension == wanted).then_some(size)
}
