//! A table with known columns, and the bodies in its rows.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use super::super::column::left_out;
use super::columns::{Columns, IdColumn, listed};
use super::heads::{self, head};
use super::lines::{Blanks, Bounded, LONGEST_LINE, Snapshots};
use super::names::Name;
use super::numbers::number;
use super::preamble::Preamble;
use super::vectors::{Expanded, expand_names};
use super::{CsvFault, Stop};
use crate::bodies::Bodies;
use crate::units::Units;

pub(super) struct Table<'a> {
    rows: Reader<Box<dyn Read + 'a>>,
    /// Byte of the file at which they begin.
    start: u64,
    columns: Columns,
    /// Numbers of a row, where no line of names tells it.
    width: Option<usize>,
    pub(super) time: f64,
    /// The unit of the column of times in the unit of the bodies, if the column tells the time.
    unit_of_time: Option<f64>,
    pub(super) units: Option<Units>,
    /// Byte after the preamble at which a second snapshot begins, once it has been read.
    second: Rc<Cell<Option<u64>>>,
    /// Line that tells the number of bodies, and this number.
    pub(super) counted: Option<(u64, usize)>,
    /// Remarks on columns, units and time.
    pub(super) notes: Vec<String>,
}

impl<'a> Table<'a> {
    /// Reads what stands before the first body. `given` are the units of the numbers where the file tells none.
    pub(super) fn open(reader: &'a mut impl BufRead, given: Option<Units>) -> Result<Self, Stop> {
        let mut preamble = Preamble::read(reader)?;
        let mut start = preamble.length;
        let second = Rc::default();
        let mut first = next_line(reader)?;
        let mut more = vec![];
        if first.starts_with(b"|") {
            let types = next_line(reader)?;
            match names_of_ipac(&first, &types) {
                None => more = types,
                Some(mut names) => {
                    start += (first.len() + types.len()) as u64;
                    first = next_line(reader)?;
                    take_units_of_ipac(&mut names, &first);
                    while first.starts_with(b"|") {
                        start += first.len() as u64;
                        first = next_line(reader)?;
                    }
                    preamble.names = Some(names);
                }
            }
        }
        let separator = [b',', b';', b'\t']
            .into_iter()
            .find(|separator| first.contains(separator));
        let mut vectors = None;
        if !preamble.vectors.is_empty() {
            let (separator, length) = (separator.unwrap_or(b' '), first.len());
            let widths = expand_names(&mut first, separator, &preamble.vectors);
            // Rows begin where they do in the file. The preamble of such a table is longer than its names.
            start = start.saturating_sub((first.len() - length) as u64);
            vectors = Some((separator, widths));
        }
        let are_blanks = matches!(separator, None | Some(b'\t'));
        // With commas and without names, it may be a file of ours that lost its first line.
        let width = match are_blanks || preamble.names.is_some() {
            true => numbers_in(&first, separator),
            false => None,
        };
        if are_blanks && width.is_some_and(|width| heads::WIDTHS.contains(&width)) {
            for _ in 1..heads::LINES {
                first.extend(next_line(reader)?);
            }
            if let Some(head) = head(&first) {
                let body = first.split_off(head.length);
                let text = Blanks::new(Bounded::new(io::Cursor::new(body).chain(reader)));
                return Ok(Self {
                    rows: parser(Box::new(text), b',', false),
                    start: start + head.length as u64,
                    columns: Columns::from_mass(head.mass, head.id),
                    width: Some(head.columns),
                    time: head.time,
                    unit_of_time: None,
                    units: None,
                    second,
                    counted: Some((start, head.bodies)),
                    notes: vec![head.note],
                });
            }
        }

        first.extend(more);
        if width.is_none() {
            loop {
                let line = next_line(reader)?;
                let text = String::from_utf8_lossy(&line);
                let comment = text.trim().strip_prefix('#').map(str::trim);
                if let Some(comment) = comment {
                    preamble.take_late(comment, start + first.len() as u64)?;
                }
                let goes_on = comment.is_some() || (!line.is_empty() && text.trim().is_empty());
                first.extend(&line);
                if !goes_on {
                    break;
                }
            }
        }
        let ids = match width {
            Some(8) => {
                first.extend(next_line(reader)?);
                IdColumn::of(&first)
            }
            _ => IdColumn::First,
        };
        let heads = usize::from(width.is_none());
        // The parser takes a comment for a row if the file ends before its line does.
        let rest = reader.chain(&b"\n"[..]);
        let text = Bounded::new(io::Cursor::new(first).chain(rest));
        let text: Box<dyn Read> = match vectors {
            Some((separator, widths)) => Box::new(Expanded::new(text, separator, widths)),
            None => Box::new(text),
        };
        let text = Snapshots::new(text, heads, &second);
        let (text, separator): (Box<dyn Read>, u8) = match separator {
            Some(separator) if width.is_none() || !are_blanks => (Box::new(text), separator),
            _ => (Box::new(Blanks::new(text)), b','),
        };
        let mut rows = parser(text, separator, width.is_none());
        let at = |fault| Stop::At(start, fault);
        let names = match (width, preamble.names.take()) {
            (None, of_comment) => {
                let header = rows.headers().map_err(|fault| stop(start, fault))?;
                let mut names: Vec<Name> = header.iter().map(Name::of).collect();
                preamble.take_units_of(&of_comment.unwrap_or_default(), &mut names);
                Some(names)
            }
            (Some(width), Some(names)) => Some(fitting(names, width).map_err(at)?),
            (Some(_), None) => match preamble.strange_names() {
                Some(names) => return Err(at(CsvFault::StrangeNames(names))),
                None => None,
            },
        };
        let mut notes = vec![];
        let mut time_unit = None;
        let (columns, units) = match (names, width) {
            (Some(names), _) => {
                let names = preamble.with_units(names);
                let mut columns = Columns::of(&names).map_err(at)?;
                time_unit = columns.time.map(|column| names[column].unit.clone());
                let mut others = columns.others(&names);
                others.retain(|name| !name.trim_matches('|').is_empty());
                if !others.is_empty() {
                    notes.push(left_out("columns", &others));
                }
                let units = columns.take_units(&names).unwrap_or_else(|note| {
                    notes.push(note);
                    None
                });
                (columns, units)
            }
            (None, width) => {
                let (columns, note) = Columns::unnamed(width.unwrap_or(0), ids).map_err(at)?;
                notes.push(note);
                (columns, None)
            }
        };
        let units = preamble.units(units);
        let known = units.or(given);
        let time = preamble.time(known.as_ref());
        let of_column = columns.time.zip(time_unit).filter(|_| time.is_none());
        let unit_of_time = of_column.map(|(_, unit)| preamble.in_units(1.0, &unit, known.as_ref()));
        notes.append(&mut preamble.notes);
        Ok(Self {
            rows,
            start,
            columns,
            width,
            time: time.unwrap_or(0.0),
            unit_of_time,
            units,
            second,
            counted: preamble.bodies,
            notes,
        })
    }

    /// Reads the rows.
    pub(super) fn bodies(&mut self) -> Result<Bodies, Stop> {
        let mut bodies = Bodies::default();
        let mut record = StringRecord::new();
        let start = self.start;
        let second = Rc::clone(&self.second);
        let is_single = || match second.get() {
            Some(byte) => Err(Stop::At(start + byte, CsvFault::SecondSnapshot)),
            None => Ok(()),
        };
        let mut more = |record: &mut StringRecord| {
            let read = self.rows.read_record(record);
            is_single()?;
            read.map_err(|fault| stop(start, fault))
        };
        let mut times = Times::default();
        while more(&mut record)? {
            let byte = start + record.position().map_or(0, |position| position.byte());
            // A carriage return within the first line ends its record, which all others are then compared with.
            if let Some(width) = self.width.filter(|width| *width != record.len()) {
                let (expected, found) = (width as u64, record.len() as u64);
                return Err(Stop::At(byte, CsvFault::FieldCount { expected, found }));
            }
            let time = self
                .columns
                .time
                .and_then(|column| number(record.get(column)?));
            if time.is_some_and(|time| times.are_several(time)) {
                return Err(Stop::At(byte, CsvFault::SecondSnapshot));
            }
            let n = bodies.len();
            if n.is_multiple_of(ROOM) {
                let room = bodies.try_reserve(ROOM);
                room.map_err(|_| Stop::Memory(n + ROOM))?;
            }
            let body = self.columns.body(&record, n);
            bodies.push(body.map_err(|fault| Stop::At(byte, fault))?);
        }
        if self.columns.time.is_some() {
            match (times.single(), self.unit_of_time) {
                (Some(time), Some(unit)) => self.time = time * unit,
                (Some(_), None) => {}
                (None, _) => self
                    .notes
                    .push(left_out("columns", &["the time of each body"])),
            }
        }
        Ok(bodies)
    }
}

/// The times in a column.
#[derive(Default)]
struct Times {
    /// The first, and the last so far.
    ends: Option<(f64, f64)>,
    /// True if one differed from the one before.
    differ: bool,
    /// True if one was equal to the one before.
    repeat: bool,
}

impl Times {
    /// Takes the next; returns whether they are times of snapshots. Times of single bodies differ from line to line.
    fn are_several(&mut self, time: f64) -> bool {
        if let Some((_, last)) = self.ends {
            self.differ |= time != last;
            self.repeat |= time == last;
        }
        self.ends = Some((self.ends.map_or(time, |(first, _)| first), time));
        self.differ && self.repeat
    }

    /// The time, if there is only one.
    fn single(&self) -> Option<f64> {
        let (first, _) = self.ends.filter(|_| !self.differ)?;
        first.is_finite().then_some(first)
    }
}

/// Bodies for which there is room before they are read.
const ROOM: usize = 1 << 12;

fn next_line(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(LONGEST_LINE + 1).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Names of the columns of an IPAC table, by the lines of names and of types.
fn names_of_ipac(names: &[u8], types: &[u8]) -> Option<Vec<Name>> {
    const TYPES: [&str; 6] = ["double", "float", "real", "integer", "long", "char"];
    let of_ipac =
        |kind: &str| !kind.is_empty() && TYPES.iter().any(|known| known.starts_with(kind));
    let (names, types) = (between_bars(names)?, between_bars(types)?);
    let are_types = types.iter().all(|kind| of_ipac(kind));
    (are_types && names.len() == types.len())
        .then(|| names.iter().map(|name| Name::of(name)).collect())
}

/// Takes the line of units of an IPAC table, if this is one.
fn take_units_of_ipac(names: &mut [Name], line: &[u8]) {
    let units = between_bars(line).unwrap_or_default();
    for (name, unit) in names.iter_mut().zip(units) {
        name.unit = unit;
    }
}

/// Texts between the bars of a line.
fn between_bars(line: &[u8]) -> Option<Vec<String>> {
    let line = str::from_utf8(line).ok()?.trim();
    let line = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(line.split('|').map(|text| text.trim().to_owned()).collect())
}

/// Number of fields of a line, if they are numbers, all of them.
fn numbers_in(line: &[u8], separator: Option<u8>) -> Option<usize> {
    let text = str::from_utf8(line).ok()?.trim();
    let count = |words: &mut dyn Iterator<Item = &str>| {
        let mut count = 0;
        for word in words {
            number(word.trim())?;
            count += 1;
        }
        (count > 0).then_some(count)
    };
    match separator {
        Some(separator @ (b',' | b';')) => count(&mut text.split(char::from(separator))),
        _ => count(&mut text.split_whitespace()),
    }
}

/// The names of a comment that belong to a table of `width` columns: all of them, or the first where words
/// follow that are no names.
fn fitting(mut names: Vec<Name>, width: usize) -> Result<Vec<Name>, CsvFault> {
    let are_known = |names: &[Name]| names.iter().all(Name::is_known);
    let are_prose = |names: &[Name]| !names.iter().any(Name::is_known);
    if let Some(more) = names.len().checked_sub(width) {
        if are_known(&names[..width]) && are_prose(&names[width..]) {
            names.truncate(width);
        } else if are_prose(&names[..more]) && are_known(&names[more..]) {
            names.drain(..more);
        }
    }
    match names.len() == width {
        true => Ok(names),
        false => Err(CsvFault::CommentNames {
            named: names.len(),
            found: width,
            names: listed(&names),
        }),
    }
}

fn parser<R: Read>(text: R, separator: u8, has_names: bool) -> Reader<R> {
    ReaderBuilder::new()
        .has_headers(has_names)
        .comment(Some(b'#'))
        .trim(Trim::All)
        .delimiter(separator)
        .from_reader(text)
}

/// The end of the reading by a fault of the parser, which began at byte `start`.
fn stop(start: u64, fault: csv::Error) -> Stop {
    let byte = |pos: Option<csv::Position>| start + pos.map_or(0, |pos| pos.byte());
    match fault.into_kind() {
        csv::ErrorKind::Io(fault) => Stop::Io(fault),
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len: expected,
            len: found,
        } => Stop::At(byte(pos), CsvFault::FieldCount { expected, found }),
        csv::ErrorKind::Utf8 { pos, .. } => Stop::At(byte(pos), CsvFault::NotText),
        other => Stop::Io(io::Error::other(format!("{other:?}"))),
    }
}
