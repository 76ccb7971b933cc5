//! Time and units that arrays of an archive tell, as numbers or as texts.

use std::io::{Read, Seek};

use super::super::ReadFault;
use super::super::column::{Malformed, TIME};
use super::{Archive, header, named, zip_fault};
use crate::settings::Setting;
use crate::units::{
    Dimension, EntryValue, Units, names_units, quantity_of_entry, spelled, spelled_system,
    unit_of_entry, usual_units,
};

/// Units that an archive tells.
#[derive(Default)]
pub(super) struct Told {
    pub(super) units: Option<Units>,
    /// Names of the arrays that tell them.
    pub(super) used: Vec<String>,
    pub(super) notes: Vec<String>,
}

impl<R: Read + Seek> Archive<R> {
    /// Finds out the units: by the array `units`, by entries such as `UnitLength_in_cm`, or by the constant of gravity.
    pub(super) fn told(&mut self) -> Result<Told, ReadFault> {
        let mut told = Told::default();
        let mut strange: Vec<String> = vec![];
        let mut sizes = [None; 4];
        let names: Vec<String> = self.others(&[]);
        let names = names.iter().filter_map(|name| name.strip_suffix(".npy"));
        for name in names {
            let lower = name.to_ascii_lowercase();
            if lower == "units" || (lower == "unit" && self.text(name)?.is_some()) {
                let text = self.text(name)?;
                told.units = match &text {
                    Some(text) => spelled_system(text),
                    None => Some(self.units(name)?),
                };
                told.used.push(name.to_owned());
                if let (None, Some(text)) = (told.units, text) {
                    strange.push(format!("{name} = {text}"));
                }
            } else if names_units(name) {
                let size = match (quantity_of_entry(name), self.text(name)?) {
                    (None, _) => None,
                    (_, Some(text)) => unit_of_entry(name, EntryValue::Text(&text)),
                    (_, None) => {
                        let number = self.few(name, 1).ok();
                        number.and_then(|all| unit_of_entry(name, EntryValue::Number(all[0])))
                    }
                };
                match size {
                    Some((dimension, size)) => {
                        sizes[dimension as usize] = Some(size);
                        told.used.push(name.to_owned());
                    }
                    None => strange.push(name.to_owned()),
                }
            } else if ["redshift", "scale_factor", "scalefactor", "hubbleparam"]
                .contains(&lower.as_str())
            {
                told.notes.push(format!(
                    "{name}.npy tells of a cosmology: numbers are taken as physical ones, without factors of a and h"
                ));
            }
        }
        let [length, mass, time, speed] = sizes;
        if let (None, Some(length), Some(mass)) = (told.units, length, mass) {
            let time = speed.map(|speed| length / speed).or(time);
            told.units = time.map(|time| Units { length, mass, time });
        }
        if told.units.is_none() {
            let of_sizes = told
                .used
                .iter()
                .filter(|name| !["unit", "units"].contains(&name.to_ascii_lowercase().as_str()));
            strange.extend(of_sizes.cloned());
            if !strange.is_empty() {
                told.notes.push(format!(
                    "the archive tells of units by {}, which are not understood or make no system: if numbers have units, \
                     give them with {}",
                    strange.join(", "),
                    Setting::Units
                ));
            }
            self.take_gravity(&mut told);
        }
        Ok(told)
    }

    /// Takes units by a usual constant of gravity.
    fn take_gravity(&mut self, told: &mut Told) {
        let gravity = self.has("G").then(|| self.few("G", 1).ok()).flatten();
        let Some(gravity) = gravity.map(|all| all[0]).filter(|gravity| *gravity != 1.0) else {
            return;
        };
        told.units = usual_units(gravity);
        told.used.push("G".to_owned());
        told.notes.push(match told.units {
            Some(units) => format!(
                "by G.npy = {gravity}, numbers are in units of {}",
                units.names()
            ),
            None => format!(
                "G.npy is {gravity}, and the archive tells no units: give {} or {}",
                Setting::Units,
                Setting::G
            ),
        });
    }

    /// The time, in these units of the bodies where it has a unit.
    pub(super) fn time(
        &mut self,
        units: Option<Units>,
        notes: &mut Vec<String>,
    ) -> Result<f64, ReadFault> {
        let Some(name) = self.one_of(&TIME) else {
            return Ok(0.0);
        };
        let time = match self.text(name)? {
            None => {
                let time = self.few(name, 1)?[0];
                let seconds = self
                    .unit_of(name)
                    .and_then(|unit| named::size(unit, Dimension::Time));
                match (seconds, units) {
                    (Some(seconds), Some(units)) => time * (seconds / units.time),
                    _ => time,
                }
            }
            Some(text) => {
                let text = text.trim();
                let digits = text.trim_end_matches(char::is_alphabetic).trim();
                let unit = text[digits.len()..].trim();
                match (digits.parse::<f64>(), spelled(unit), units) {
                    (Ok(time), Some((Dimension::Time, seconds)), Some(units)) => {
                        time * (seconds / units.time)
                    }
                    (Ok(time), ..) if unit.is_empty() => time,
                    (time, ..) => {
                        let time = time.unwrap_or(0.0);
                        notes.push(format!(
                            "{name}.npy is `{text}`, which is not known in units of the bodies: the time is {time:?}"
                        ));
                        time
                    }
                }
            }
        };
        match time.is_finite() {
            true => Ok(time),
            false => {
                Err(Malformed::new(format!("{name}.npy"), format!("the time is {time}")).into())
            }
        }
    }

    /// The units in an array of three numbers.
    fn units(&mut self, name: &str) -> Result<Units, ReadFault> {
        let sizes = self.few(name, 3)?;
        if sizes.iter().any(|size| !size.is_normal() || *size < 0.0) {
            let problem = format!("{sizes:?} are not units, which must be > 0 and finite");
            return Err(Malformed::new(format!("{name}.npy"), problem).into());
        }
        let (length, mass, time) = (sizes[0], sizes[1], sizes[2]);
        Ok(Units { length, mass, time })
    }

    /// The texts of an array, with commas between them; `None` if it has none, or long ones.
    fn text(&mut self, name: &str) -> Result<Option<String>, ReadFault> {
        const LONGEST: usize = 4096;
        let member = format!("{}.npy", self.array_of(name));
        let file = self.zip.by_name(&member);
        let mut file = file.map_err(|fault| zip_fault(&member, fault))?;
        let head = header(&mut file, &member)?;
        let Some((width, is_wide, is_big)) = type_of_text(&head) else {
            return Ok(None);
        };
        let mut bytes = vec![];
        file.take(LONGEST as u64).read_to_end(&mut bytes)?;
        let letters = |text: &[u8]| -> String {
            let codes: Vec<u32> = match is_wide {
                false => text.iter().copied().map(u32::from).collect(),
                true => (text.chunks_exact(4))
                    .map(|bytes| {
                        let bytes: [u8; 4] = std::array::from_fn(|k| bytes[k]);
                        if is_big {
                            u32::from_be_bytes(bytes)
                        } else {
                            u32::from_le_bytes(bytes)
                        }
                    })
                    .collect(),
            };
            let codes = codes.into_iter().take_while(|code| *code != 0);
            codes.filter_map(char::from_u32).collect()
        };
        let texts: Vec<String> = bytes.chunks(width).map(letters).collect();
        Ok((bytes.len() < LONGEST).then(|| texts.join(",")))
    }
}

/// Bytes of an element of texts, and whether a letter has four of them, the most significant one first.
fn type_of_text(head: &str) -> Option<(usize, bool, bool)> {
    let (_, rest) = head.split_once("'descr':")?;
    let (kind, _) = rest.trim_start().strip_prefix('\'')?.split_once('\'')?;
    let is_big = kind.starts_with('>');
    let kind = kind.trim_start_matches(['<', '>', '|', '=']);
    let (letters, is_wide) = match kind.strip_prefix('U') {
        Some(letters) => (letters, true),
        None => (kind.strip_prefix('S')?, false),
    };
    let letters: usize = letters.parse().ok()?;
    let width = letters.checked_mul(if is_wide { 4 } else { 1 })?;
    (width > 0).then_some((width, is_wide, is_big))
}
