//! Lines before the table: comments that tell the time, the number of bodies, names of columns and units.

use std::io::{BufRead, Read};

use super::names::{Name, names_in, numbered, seem_to_name, words};
use super::numbers::number;
use super::told::{Told, told_in};
use super::vectors::Vector;
use super::{CsvFault, Stop, beginning};
use crate::settings::Setting;
use crate::units::{Dimension, Units, spelled, usual_units};

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
    /// Columns of ECSV that have vectors as cells.
    pub(super) vectors: Vec<Vector>,
    /// Units that comments tell.
    told: Told,
    /// Number of comments that tell of units and are not understood.
    strange: u32,
    /// The constant of gravity that a comment tells.
    gravity: Option<f64>,
    /// Names of which each has a comment.
    numbered: Vec<Name>,
    /// Comments that are not understood, to find out whether they name columns.
    others: String,
    /// Remarks on what was not understood.
    pub(super) notes: Vec<String>,
    /// Offset of the first line that is no comment.
    pub(super) length: u64,
    ecsv: Ecsv,
}

/// Place in the header of a table that Astropy wrote as ECSV.
#[derive(Debug, Default)]
enum Ecsv {
    /// It is another table.
    #[default]
    None,
    /// Descriptions of columns.
    Columns,
    /// Entries of `meta:`.
    Meta,
    /// An object of Python's.
    Object,
    /// The object of a time, with the unit so far.
    Time(String),
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
        while let Some(b'#' | b'%' | b'!' | b'\r' | b'\n') = reader.fill_buf()?.first() {
            let start = preamble.length;
            let mut line = Vec::new();
            preamble.length += reader.take(COMMENT).read_until(b'\n', &mut line)? as u64;
            let is_whole = line.ends_with(b"\n");
            if !is_whole {
                preamble.length += reader.skip_until(b'\n')? as u64;
            }
            let line = String::from_utf8_lossy(&line);
            let comment = line.trim_start_matches(['#', '%', '!']).trim();
            if comment.is_empty() || preamble.take_of_ecsv(&line, comment) {
                continue;
            }
            if preamble.take_setting(comment, start)? || preamble.take_unit(comment, start)? {
                continue;
            }
            if let Some(names) = names_in(comment).filter(|_| is_whole) {
                preamble.names = Some(names);
                follows_names = true;
            } else if follows_names && preamble.take_units(comment) {
                follows_names = false;
            } else {
                if !preamble.take_gravity(comment) {
                    preamble.take_told(comment);
                }
                preamble.take_number(comment);
                preamble.others.push_str(comment);
                preamble.others.push('\n');
                follows_names = false;
            }
        }
        if preamble.names.is_none() && preamble.numbered.iter().any(Name::is_known) {
            preamble.names = Some(std::mem::take(&mut preamble.numbered));
        }
        Ok(preamble)
    }

    /// Returns whether a comment tells a time, as of a snapshot.
    pub(super) fn tells_time(comment: &str) -> bool {
        let mut alone = Self::default();
        match alone.take_setting(comment, 0) {
            Ok(_) => alone.time.is_some(),
            Err(_) => true,
        }
    }

    /// The beginning of comments that seem to name columns, and are not understood.
    pub(super) fn strange_names(&self) -> Option<String> {
        seem_to_name(&self.others).then(|| beginning(self.others.trim_end()))
    }

    /// Takes comments between names and bodies: a time.
    pub(super) fn take_late(&mut self, comment: &str, start: u64) -> Result<(), Stop> {
        if self.time.is_none() && Self::tells_time(comment) {
            self.take_setting(comment, start)?;
        }
        Ok(())
    }

    /// Takes what Astropy writes in the header of an ECSV table behind `meta:`. The columns are described before, and once
    /// more as objects in Python. A time may be such an object too. Returns whether the comment is one of these.
    fn take_of_ecsv(&mut self, line: &str, comment: &str) -> bool {
        match &mut self.ecsv {
            Ecsv::None if comment.starts_with("%ECSV ") => self.ecsv = Ecsv::Columns,
            Ecsv::None | Ecsv::Columns => {
                if !matches!(self.ecsv, Ecsv::None) && comment.starts_with("meta:") {
                    self.ecsv = Ecsv::Meta;
                }
                return false;
            }
            // Another entry, or the end.
            _ if !line.starts_with("#  ") => {
                let entry = comment.trim_start_matches("- ");
                let (name, value) = entry.split_once(':').unwrap_or((entry, ""));
                let is_object = value.trim().is_empty() || value.trim().starts_with('!');
                self.ecsv = match (name, is_object) {
                    ("time", true) => Ecsv::Time(String::new()),
                    (_, true) => Ecsv::Object,
                    (_, false) => Ecsv::Meta,
                };
                return is_object;
            }
            Ecsv::Meta => return false,
            Ecsv::Object => {}
            Ecsv::Time(unit) => {
                let value = comment.rsplit(':').next().unwrap_or_default();
                let value = value.trim().trim_end_matches('}');
                if comment.starts_with("unit:") {
                    value.clone_into(unit);
                } else if let (true, Some(time)) = (comment.starts_with("value:"), number(value)) {
                    self.time = Some((time, std::mem::take(unit)));
                }
            }
        }
        true
    }

    /// Takes `G = 43007.1`; returns whether the comment is that.
    fn take_gravity(&mut self, comment: &str) -> bool {
        let Some((name, value)) = comment.split_once(['=', ':']) else {
            return false;
        };
        let name = name.trim();
        let is_gravity = ["gravity", "gravitational constant", "constant of gravity"]
            .contains(&name)
            || name.split_whitespace().last() == Some("G");
        let value = value.split_whitespace().next().and_then(number);
        self.gravity = value.filter(|_| is_gravity).or(self.gravity);
        is_gravity && value.is_some()
    }

    /// Takes the name of the next column, as in `column 2: y`.
    fn take_number(&mut self, comment: &str) {
        if let Some((number, name)) = numbered(comment)
            && [self.numbered.len(), self.numbered.len() + 1].contains(&number)
        {
            self.numbered.push(name);
        }
    }

    /// Takes `time = 0.5`, `bodies = 12` and the like; returns whether the comment is one of these.
    fn take_setting(&mut self, comment: &str, start: u64) -> Result<bool, Stop> {
        let Some((name, value)) = comment.split_once(['=', ':']) else {
            return Ok(self.take_time_in_words(comment));
        };
        let value = value.trim();
        let Name { mut name, mut unit } = Name::of(name);
        if let Some((time, of_time)) = name.clone().split_once('/') {
            (name, unit) = (time.to_owned(), of_time.to_owned());
        }
        if name.eq_ignore_ascii_case("bodies") {
            self.bodies = value.parse().ok().map(|bodies| (start, bodies));
            return Ok(true);
        }
        if !["time", "t"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
        {
            return Ok(self.take_time_in_words(comment));
        }
        let (first, rest) = value
            .split_once([',', ';'])
            .map_or((value, ""), |(first, _)| (first.trim(), ""));
        let (first, rest) = first
            .split_once(char::is_whitespace)
            .unwrap_or((first, rest));
        // As in `5Myr`.
        let digits = first.trim_end_matches(|c: char| c.is_alphabetic());
        let (first, rest) = match number(first) {
            None if !digits.is_empty() && number(digits).is_some() => {
                (digits, &first[digits.len()..])
            }
            _ => (first, rest),
        };
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

    /// Takes the time of `snapshot at time 5`, or of `N = 12, t = 5 Myr`. Returns whether there is one.
    fn take_time_in_words(&mut self, comment: &str) -> bool {
        if names_in(comment).is_some() || self.time.is_some() {
            return false;
        }
        let parts = comment.split(|c: char| c.is_whitespace() || ",;:=".contains(c));
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let found = parts.windows(2).enumerate().find_map(|(at, pair)| {
            let [word, value] = *pair else { return None };
            let Name { name, unit } = Name::of(word);
            // The letter alone is a time only where it is equal to something.
            let is_time =
                name.eq_ignore_ascii_case("time") || (name == "t" && comment.contains(['=', ':']));
            // Not the time of a step, or of a processor.
            let is_of_state = at.checked_sub(1).is_none_or(|before| {
                let before = parts[before].to_ascii_lowercase();
                ["at", "snapshot", "simulation", "model", "the"].contains(&before.as_str())
                    || number(&before).is_some()
            });
            let is_its = is_time && is_of_state;
            let time = number(value).filter(|time| is_its && time.is_finite())?;
            let next = parts
                .get(at + 2)
                .map_or("", |next| next.trim_matches(['[', ']', '(', ')']));
            let unit = match spelled(next) {
                Some((Dimension::Time, _)) if unit.is_empty() => next.to_owned(),
                _ => unit,
            };
            Some((time, unit))
        });
        let is_found = found.is_some();
        self.time = found;
        is_found
    }

    /// Takes units that a comment tells in words, or says that they were not understood.
    fn take_told(&mut self, comment: &str) {
        /// Comments that are named; a file may have as many as bodies.
        const NAMED: u32 = 3;
        if let Err(note) = told_in(comment, &mut self.told) {
            self.strange += 1;
            if self.strange <= NAMED {
                self.notes.push(note);
            } else if self.strange == NAMED + 1 {
                self.notes.push("there are more such comments".to_owned());
            }
        }
    }

    /// The units that comments tell, for a table with these units in the names of its columns.
    pub(super) fn units(&mut self, of_columns: Option<Units>) -> Option<Units> {
        let told = self.told.system().unwrap_or_else(|note| {
            if of_columns.is_none() {
                self.notes.push(note);
            }
            None
        });
        if let (Some(told), Some(columns)) = (told, of_columns)
            && !told.are_those_of(&columns)
        {
            self.notes.push(format!(
                "a comment tells units of {}, and names of columns {}, which are taken",
                told.names(),
                columns.names()
            ));
        }
        let units = of_columns.or(told);
        self.check_gravity(units)
    }

    /// Units by a usual constant of gravity, if there are none; a note if the units have another.
    fn check_gravity(&mut self, units: Option<Units>) -> Option<Units> {
        /// Relative errors of constants that people write down.
        const ROUNDED: f64 = 1e-2;
        let Some(gravity) = self.gravity.filter(|gravity| *gravity != 1.0) else {
            return units;
        };
        match units {
            Some(units) => {
                if (gravity / units.g() - 1.0).abs() > ROUNDED {
                    self.notes.push(format!(
                        "a comment tells G = {gravity}, and it is {:.6e} in units of {}, which are taken",
                        units.g(),
                        units.names()
                    ));
                }
                Some(units)
            }
            None => {
                let usual = usual_units(gravity);
                self.notes.push(match &usual {
                    Some(units) => format!(
                        "by G = {gravity}, which a comment tells, numbers are in units of {}",
                        units.names()
                    ),
                    None => format!(
                        "a comment tells G = {gravity}, and no units: give {} or {}",
                        Setting::Units,
                        Setting::G
                    ),
                });
                usual
            }
        }
    }

    /// Takes a column of astropy's tables: `- {name: x, unit: pc, datatype: float64}`.
    /// A column of vectors has a `subtype` as well.
    fn take_unit(&mut self, comment: &str, start: u64) -> Result<bool, Stop> {
        let list = ["- {", "meta: {"];
        let entry = list.iter().find_map(|open| comment.strip_prefix(open));
        let Some(entry) = entry.and_then(|rest| rest.strip_suffix('}')) else {
            return Ok(false);
        };
        let value = |key: &str| {
            let mut entries = entry.split(',').filter_map(|entry| entry.split_once(':'));
            entries.find_map(|(name, value)| (name.trim() == key).then(|| value.trim().to_owned()))
        };
        let time = value("time").and_then(|time| number(&time));
        if let (Some(name), Some((_, subtype))) = (value("name"), entry.split_once("subtype:")) {
            let subtype = subtype.trim().trim_start_matches(['\'', '"']);
            let subtype = subtype.split(['\'', '"']).next().unwrap_or_default();
            let vector = Vector::of(&name, subtype).map_err(|fault| Stop::At(start, fault))?;
            let unit = value("unit").unwrap_or_default();
            let units = vector.parts.iter().map(|part| (part.clone(), unit.clone()));
            self.units.extend(units);
            self.vectors.push(vector);
            return Ok(true);
        }
        match (value("name"), value("unit")) {
            (Some(name), Some(unit)) => self.units.push((name, unit)),
            // What astropy's tables have as `meta`.
            (None, None) => self.time = time.map(|time| (time, String::new())).or(self.time.take()),
            _ => {}
        }
        Ok(true)
    }

    /// Takes a row of units below the row of names, as AMUSE has it; returns whether it is one.
    fn take_units(&mut self, comment: &str) -> bool {
        let Some(names) = &mut self.names else {
            return false;
        };
        let mut units = words(comment);
        // As `[pc] [pc] [pc]` are one word.
        if units.len() != names.len() {
            let open = comment.split(['[', '(']).skip(1);
            units = open
                .filter_map(|text| Some(text.split_once([']', ')'])?.0))
                .collect();
        }
        if units.len() != names.len() {
            return false;
        }
        for (name, unit) in names.iter_mut().zip(units) {
            name.unit = unit.trim_matches(['"', '\'']).to_owned();
        }
        true
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
    pub(super) fn time(&mut self, units: Option<&Units>) -> Option<f64> {
        let (time, unit) = self.time.take()?;
        Some(self.in_units(time, &unit, units))
    }

    /// A time in this unit, in these units of the bodies.
    pub(super) fn in_units(&mut self, time: f64, unit: &str, units: Option<&Units>) -> f64 {
        if unit.is_empty() {
            return time;
        }
        match (spelled(unit), units) {
            (Some((Dimension::Time, seconds)), Some(units)) => time * (seconds / units.time),
            _ => {
                self.notes.push(format!(
                    "the time is told as {time:?} {}, which is not known in units of the bodies: it is taken as \
                     {time:?}",
                    beginning(unit)
                ));
                time
            }
        }
    }
}
