//! Lines before the table: comments that tell the time, the number of bodies, names of columns and units.

use std::io::{BufRead, Read};

use super::names::{self, Name, names_in, words};
use super::numbers::number;
use super::{CsvFault, Stop, beginning};
use crate::units::{Dimension, Units};

/// Settings, names and units that the lines before the table tell.
#[derive(Default)]
pub(super) struct Preamble {
    /// The time, if one is told, with its unit.
    time: Option<(f64, String)>,
    /// Line that records the number of bodies, and this number.
    pub(super) bodies: Option<(u64, usize)>,
    /// Names in the last comment that has any.
    pub(super) names: Option<Vec<Name>>,
    /// Units that stand apart from the names, by the name of the column.
    units: Vec<(String, String)>,
    /// Remarks on what was not understood.
    pub(super) notes: Vec<String>,
    /// Offset of the first line that is no comment.
    pub(super) length: u64,
}

impl Preamble {
    pub(super) fn read(reader: &mut impl BufRead) -> Result<Self, Stop> {
        /// No comment that is understood is longer; the rest of a longer one is not looked at.
        const COMMENT: u64 = 8192;
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

        let mut preamble = Self::default();
        if reader.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            reader.consume(BYTE_ORDER_MARK.len());
            preamble.length += BYTE_ORDER_MARK.len() as u64;
        }
        let mut follows_names = false;
        while let Some(b'#' | b'\r' | b'\n') = reader.fill_buf()?.first() {
            let start = preamble.length;
            let mut line = Vec::new();
            preamble.length += reader.take(COMMENT).read_until(b'\n', &mut line)? as u64;
            let is_whole = line.ends_with(b"\n");
            if !is_whole {
                preamble.length += reader.skip_until(b'\n')? as u64;
            }
            let line = String::from_utf8_lossy(&line);
            let comment = line.trim_start_matches('#').trim();
            if comment.is_empty() {
                continue;
            }
            if preamble.take_setting(comment, start)? || preamble.take_unit(comment) {
                continue;
            }
            if let Some(names) = names_in(comment).filter(|_| is_whole) {
                preamble.names = Some(names);
                follows_names = true;
            } else if follows_names {
                preamble.take_units(comment);
                follows_names = false;
            }
        }
        Ok(preamble)
    }

    /// Takes `time = 0.5`, `bodies = 12` and the like; returns whether the comment is one of these.
    fn take_setting(&mut self, comment: &str, start: u64) -> Result<bool, Stop> {
        let Some((name, value)) = comment.split_once(['=', ':']) else {
            return Ok(false);
        };
        let value = value.trim();
        let Name { name, unit } = Name::of(name);
        if name.eq_ignore_ascii_case("bodies") {
            self.bodies = value.parse().ok().map(|bodies| (start, bodies));
            return Ok(true);
        }
        if !["time", "t"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
        {
            return Ok(false);
        }
        let (first, rest) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
        let unit = match unit.is_empty() {
            true => rest.trim().trim_matches(['[', ']', '(', ')']).to_owned(),
            false => unit,
        };
        match number(first).filter(|time| time.is_finite()) {
            Some(time) => self.time = Some((time, unit)),
            None if comment.contains('=') && name.eq_ignore_ascii_case("time") => {
                return Err(Stop::At(start, CsvFault::Time(beginning(value))));
            }
            None => self.notes.push(format!(
                "the comment `{}` was not understood: the time is 0",
                beginning(comment)
            )),
        }
        Ok(true)
    }

    /// Takes a column of astropy's tables: `- {name: x, unit: pc, datatype: float64}`.
    fn take_unit(&mut self, comment: &str) -> bool {
        let Some(entry) = comment
            .strip_prefix("- {")
            .and_then(|rest| rest.strip_suffix('}'))
        else {
            return false;
        };
        let value = |key: &str| {
            let mut entries = entry.split(',').filter_map(|entry| entry.split_once(':'));
            entries.find_map(|(name, value)| (name.trim() == key).then(|| value.trim().to_owned()))
        };
        if let (Some(name), Some(unit)) = (value("name"), value("unit")) {
            self.units.push((name, unit));
        }
        true
    }

    /// Takes a row of units below the row of names, as AMUSE has it.
    fn take_units(&mut self, comment: &str) {
        let units = words(comment);
        let Some(names) = self
            .names
            .as_mut()
            .filter(|names| names.len() == units.len())
        else {
            return;
        };
        for (name, unit) in names.iter_mut().zip(units) {
            name.unit = unit.trim_matches(['"', '\'']).to_owned();
        }
    }

    /// The names, with the units that the file tells apart from them.
    pub(super) fn with_units(&self, mut names: Vec<Name>) -> Vec<Name> {
        for (column, unit) in &self.units {
            for name in names.iter_mut().filter(|name| name.name == *column) {
                name.unit.clone_from(unit);
            }
        }
        names
    }

    /// The time in these units of the bodies.
    pub(super) fn time(&mut self, units: Option<&Units>) -> f64 {
        let Some((time, unit)) = self.time.take() else {
            return 0.0;
        };
        if unit.is_empty() {
            return time;
        }
        match (names::unit(&unit), units) {
            (Some((Dimension::Time, seconds)), Some(units)) => time * (seconds / units.time),
            _ => {
                self.notes.push(format!(
                    "the time is told as {time:?} {}, which is not known in units of the bodies: it is taken as \
                     {time:?}",
                    beginning(&unit)
                ));
                time
            }
        }
    }
}
