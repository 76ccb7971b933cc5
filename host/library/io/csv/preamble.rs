//! Lines before the table: comments that tell the time, the number of bodies, names of columns and units.

use std::io::{BufRead, Read};

use super::names::{Name, names_in, numbered, seem_to_name, words};
use super::numbers::number;
use super::told::{Told, is_of_cosmology, split as words_of, told_in};
use super::vectors::Vector;
use super::{CsvFault, Stop, beginning};
use crate::settings::Setting;
use crate::units::{Dimension, Units, spelled, units_in, usual_units};

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
    /// The unit of a time that stands in the next comment.
    time_follows: Option<String>,
    /// True once a note says that comments tell of a cosmology.
    is_cosmic: bool,
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

/// Words in front of the time of a snapshot.
const OF_STATES: [&str; 8] = [
    "at",
    "snapshot",
    "simulation",
    "model",
    "the",
    "current",
    "output",
    "physical",
];

/// Words in front of other times.
const OF_OTHERS: [&str; 20] = [
    "cpu",
    "run",
    "wall",
    "wallclock",
    "clock",
    "step",
    "crossing",
    "relaxation",
    "dynamical",
    "fall",
    "free-fall",
    "freefall",
    "orbital",
    "elapsed",
    "computing",
    "end",
    "final",
    "total",
    "maximum",
    "cooling",
];

/// Returns whether a name means the time of a snapshot.
fn is_time(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace([' ', '_'], "");
    let names = [
        "t",
        "time",
        "tnow",
        "timenow",
        "tsnap",
        "simtime",
        "currenttime",
        "snapshottime",
    ];
    names.contains(&name.as_str())
}

/// The number of `5` or `5Myr`, and the unit behind it.
fn with_unit(word: &str) -> Option<(f64, &str)> {
    let digits = match number(word) {
        Some(_) => word,
        None => word.trim_end_matches(char::is_alphabetic),
    };
    let time = number(digits).filter(|time| time.is_finite())?;
    Some((time, &word[digits.len()..]))
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
            if preamble.take_time_that_follows(comment)
                || preamble.take_setting(comment, start)?
                || preamble.take_unit(comment, start)?
            {
                continue;
            }
            preamble.take_cosmology(comment);
            if let Some(names) = names_in(comment).filter(|_| is_whole) {
                if names.iter().all(|name| name.unit.is_empty()) && !units_in(comment).is_empty() {
                    preamble.take_told(comment);
                }
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
        preamble.miss_time();
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

    /// Takes `G = 43007.1`, also behind other words; returns whether the comment tells no units by their names.
    fn take_gravity(&mut self, comment: &str) -> bool {
        let mut ends = comment.match_indices(['=', ':']);
        let found = ends.find_map(|(at, _)| {
            let name = comment[..at].trim_end();
            let is_letter = name
                .strip_suffix('G')
                .is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'));
            let lower = name.to_ascii_lowercase();
            let names = [
                "gravity",
                "gravitational constant",
                "gravitational_constant",
                "g_newton",
            ];
            let is_gravity = is_letter || names.iter().any(|name| lower.ends_with(name));
            let value = comment[at + 1..].trim_start();
            let value = value.split([' ', '\t', ',', ';', ')']).next()?;
            number(value)
                .filter(|_| is_gravity)
                .map(|value| (at, value))
        });
        let Some((at, gravity)) = found else {
            return false;
        };
        self.gravity = Some(gravity);
        // Units behind it are its own, and `pc = 1` tells what G does.
        comment[..at].contains('=') || units_in(&comment[..at]).is_empty()
    }

    /// Says once that a comment tells of a cosmology.
    fn take_cosmology(&mut self, comment: &str) {
        let words = words_of(comment);
        let is_hubble = |pair: &[&str]| {
            pair[0] == "h" && number(pair[1]).is_some_and(|h| (0.5..0.9).contains(&h))
        };
        let is_scale = |pair: &[&str]| {
            pair[0].eq_ignore_ascii_case("scale") && pair[1].eq_ignore_ascii_case("factor")
        };
        let is_cosmic = words.iter().any(|word| is_of_cosmology(word))
            || words
                .windows(2)
                .any(|pair| is_hubble(pair) || is_scale(pair));
        if is_cosmic && !std::mem::replace(&mut self.is_cosmic, true) {
            self.notes.push(format!(
                "the comment `{}` tells of a cosmology: numbers of a table are taken as physical ones, without factors of \
                 a and h",
                beginning(comment)
            ));
        }
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
        if !is_time(&name) {
            return Ok(self.take_time_in_words(comment));
        }
        let (first, rest) = value
            .split_once([',', ';'])
            .map_or((value, ""), |(first, _)| (first.trim(), ""));
        let (first, rest) = first
            .split_once(char::is_whitespace)
            .unwrap_or((first, rest));
        match with_unit(first) {
            Some((time, of_time)) => {
                let behind = match of_time {
                    "" => rest.trim().trim_matches(['[', ']', '(', ')']),
                    of_time => of_time,
                };
                let unit = match unit.is_empty() {
                    true => behind.to_owned(),
                    false => unit,
                };
                self.time = Some((time, unit));
            }
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

    /// Takes a comment such as `Time [Myr]`, and the number in the comment below it; returns whether it is one of these.
    fn take_time_that_follows(&mut self, comment: &str) -> bool {
        if let Some(time) = number(comment).filter(|time| time.is_finite())
            && let Some(unit) = self.time_follows.take()
        {
            self.time = Some((time, unit));
            return true;
        }
        self.miss_time();
        let Name { name, unit } = Name::of(comment);
        let follows = is_time(&name);
        self.time_follows = follows.then_some(unit);
        follows
    }

    /// Says that a time should have followed.
    fn miss_time(&mut self) {
        if let Some(unit) = self.time_follows.take().filter(|unit| !unit.is_empty()) {
            self.notes.push(format!(
                "a comment tells a time in {}, and no number follows it in a comment",
                beginning(&unit)
            ));
        }
    }

    /// Takes the time of `snapshot at time 5`, or of `N = 12, t = 5 Myr`. Returns whether there is one. Says that another,
    /// such as an age, is not taken.
    fn take_time_in_words(&mut self, comment: &str) -> bool {
        if names_in(comment).is_some() || self.time.is_some() {
            return false;
        }
        // Not within `14:05`.
        let is_clock = |at: usize| {
            comment[..at].ends_with(|c: char| c.is_ascii_digit())
                && comment[at + 1..].starts_with(|c: char| c.is_ascii_digit())
        };
        let spaced: String = (comment.char_indices())
            .map(|(at, c)| match c {
                '=' => " = ".to_owned(),
                ':' if !is_clock(at) => " : ".to_owned(),
                c => c.to_string(),
            })
            .collect();
        let parts = spaced.split(|c: char| c.is_whitespace() || ",;()[]".contains(c));
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let mut other = false;
        let found = (0..parts.len()).find_map(|at| {
            let (name, mut unit) = match parts[at].split_once("_in_") {
                Some((name, unit)) => (name, unit.to_owned()),
                None => (parts[at].split('/').next()?, String::new()),
            };
            if let Some((_, of_time)) = parts[at].split_once('/') {
                of_time.clone_into(&mut unit);
            }
            let is_age = ["age", "epoch"]
                .iter()
                .any(|age| name.eq_ignore_ascii_case(age));
            // The letter alone is a time only where it is equal to something, or in front of a number alone.
            let is_letter = name.eq_ignore_ascii_case("t");
            let equals = (1..3).any(|k| ["=", ":"].contains(parts.get(at + k).unwrap_or(&"")));
            if !(is_age || is_time(name) && (!is_letter || equals || parts.len() == 2)) {
                return None;
            }
            let mut rest = &parts[at + 1..];
            while let [first, more @ ..] = rest {
                let is_unit = matches!(spelled(first), Some((Dimension::Time, _)))
                    && number(first.trim_end_matches(char::is_alphabetic)).is_none();
                let fillers = [
                    "=",
                    ":",
                    "is",
                    "of",
                    "since",
                    "start",
                    "the",
                    "snapshot",
                    "in",
                    "now",
                    "beginning",
                ];
                if is_unit {
                    (*first).clone_into(&mut unit);
                } else if !fillers.contains(&first.to_ascii_lowercase().as_str()) {
                    break;
                }
                rest = more;
            }
            let (time, of_time) = with_unit(rest.first()?)?;
            // Not the time of a step, or of a processor.
            let before = at
                .checked_sub(1)
                .map(|before| parts[before].to_ascii_lowercase());
            let is_of_state = before
                .as_deref()
                .is_none_or(|before| OF_STATES.contains(&before) || with_unit(before).is_some());
            if is_age || !is_of_state {
                other |= before.is_none_or(|before| !OF_OTHERS.contains(&before.as_str()));
                return None;
            }
            let next = rest.get(1).copied().unwrap_or_default();
            if !of_time.is_empty() {
                of_time.clone_into(&mut unit);
            } else if let (true, Some((Dimension::Time, _))) = (unit.is_empty(), spelled(next)) {
                next.clone_into(&mut unit);
            }
            Some((time, unit))
        });
        if other && found.is_none() {
            self.notes.push(format!(
                "the comment `{}` was not understood as a time: the time is 0, unless another comment tells it",
                beginning(comment)
            ));
        }
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

    /// Gives names the units of the same quantities in these names of a comment. Says that others are not taken.
    pub(super) fn take_units_of(&mut self, of_comment: &[Name], names: &mut [Name]) {
        let mut left = vec![];
        for told in of_comment.iter().filter(|told| !told.unit.is_empty()) {
            let mut same = names
                .iter_mut()
                .filter(|name| name.is_same(told))
                .peekable();
            if same.peek().is_none() && told.is_known() {
                left.push(told.unit.as_str());
            }
            for name in same {
                if name.unit.is_empty() {
                    name.unit.clone_from(&told.unit);
                } else if name.unit != told.unit {
                    left.push(told.unit.as_str());
                }
            }
        }
        if !left.is_empty() {
            self.notes.push(format!(
                "units of a comment which the line of names does not take: {}",
                beginning(&left.join(", "))
            ));
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
