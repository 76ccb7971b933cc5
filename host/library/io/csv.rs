//! Comma-separated values, one body a line.
//! ```text
//! # time = 0.5
//! # bodies = 1
//! x,y,z,vx,vy,vz,mass,id,kind
//! 1.0,0.0,0.0,0.0,1.0,0.0,0.5,0,star
//! ```
//! The header line is required and names the columns in any order, in upper or lower case. `x`,
//! `y`, `z`, `vx`, `vy`, `vz` and `mass` (or `m`) must be there; `id` (an integer from 0 on, else
//! bodies are numbered in file order) and `kind` (`gas`, `dark` or `star`, else all are stars) may;
//! other columns are passed over, and a note names them. Fields may be separated by semicolons,
//! tabs or blanks as well: by what separates the names of the columns. Lines that begin with `#`
//! are comments; of those before the header, one may give the time, else it is 0, and one the
//! number of bodies, by which a file is known that was cut at the end of a line. Numbers are
//! written in the shortest form that reads back to the same f64.
//!
//! Tables of blanks without names, as NBODY6 and PeTar take them, are read as `m x y z vx vy vz`, with an
//! id in front where there are eight columns; a note says so.

mod lines;

use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

use csv::{Reader, ReaderBuilder, StringRecord, Trim};
use thiserror::Error;

use super::column::{ID, KIND, MASS, left_out};
use super::{Contents, ReadFault, Snapshot, WriteFault};
use crate::bodies::{Bodies, Body, BodyFault, BodyKind, COORDINATES};
use lines::{Blanks, Bounded, LONGEST_LINE};

/// Columns of a table without names.
const UNNAMED: &str = "m x y z vx vy vz";

/// Fault of a line of a CSV file. Columns are counted from 1, bodies from 0.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CsvFault {
    /// The header line lacks a column.
    #[error(
        "the header `{header}` has no column `{missing}`; the first line that is not a comment \
         must name the columns, at least x,y,z,vx,vy,vz,mass"
    )]
    MissingColumn {
        /// Name of the column.
        missing: &'static str,
        /// Beginning of the line found.
        header: String,
    },
    /// A table without names, and with columns that no program is known to write.
    #[error(
        "there are no names of columns, and {found} numbers: such a table has 7, {UNNAMED}, or 8, with an \
         id in front; put a line with names before it"
    )]
    Unnamed {
        /// Columns found.
        found: usize,
    },
    /// The header line names a column twice.
    #[error("column {column} is a second `{name}`; rename or remove one of the two")]
    DuplicateColumn {
        /// The later of the two columns.
        column: usize,
        /// Name of both.
        name: &'static str,
    },
    /// A line has more or fewer fields than the header.
    #[error("there are {found} fields where the header names {expected} columns")]
    FieldCount {
        /// Columns of the header.
        expected: u64,
        /// Fields of the line.
        found: u64,
    },
    /// A field that is not of its column's type.
    #[error("column {column}: {name} of body {body} is `{text}`, not {wanted}")]
    Field {
        /// The column.
        column: usize,
        /// Name of the column.
        name: &'static str,
        /// Index of the body.
        body: usize,
        /// Beginning of the text found.
        text: String,
        /// Expected content.
        wanted: &'static str,
    },
    /// A body that cannot be simulated.
    #[error("column {column}: {fault}; repair or leave out this body")]
    Body {
        /// The column of the bad value.
        column: usize,
        /// The fault.
        fault: BodyFault,
    },
    /// The comment that gives the time does not.
    #[error("the time is `{0}`, not a finite number")]
    Time(String),
    /// Lines are missing, or there are more of them than there were.
    #[error(
        "this comment tells of {expected} bodies, and the file holds {found}: it was cut short or \
         added to; if that is right, correct or remove the comment"
    )]
    BodyCount {
        /// Bodies that the comment tells of.
        expected: usize,
        /// Bodies in the file.
        found: usize,
    },
    /// Bytes that are no text.
    #[error("this is not UTF-8 text; if the file is a binary format, give that format")]
    NotText,
}

/// End of the reading: by the reader itself, or at the record that begins at a byte of the file.
enum Stop {
    Io(io::Error),
    At(u64, CsvFault),
}

impl From<io::Error> for Stop {
    fn from(fault: io::Error) -> Self {
        Stop::Io(fault)
    }
}

/// Reads a CSV file from its beginning.
pub(super) fn read(reader: &mut (impl BufRead + Seek)) -> Result<Contents, ReadFault> {
    match read_all(reader) {
        Ok(contents) if contents.snapshot.bodies.is_empty() => Err(ReadFault::NoBodies),
        Ok(contents) => Ok(contents),
        Err(Stop::Io(fault)) => Err(fault.into()),
        Err(Stop::At(byte, fault)) => Err(ReadFault::Csv {
            line: line_at(reader, byte)?,
            fault,
        }),
    }
}

fn read_all(reader: &mut impl BufRead) -> Result<Contents, Stop> {
    let preamble = Preamble::read(reader)?;
    let (bodies, others) = read_bodies(reader, preamble.length)?;
    if let Some((at, expected)) = preamble.bodies
        && expected != bodies.len()
        && !bodies.is_empty()
    {
        let found = bodies.len();
        return Err(Stop::At(at, CsvFault::BodyCount { expected, found }));
    }
    let mut contents = Contents::from(Snapshot {
        time: preamble.time,
        bodies,
    });
    match others {
        Others::Left(names) if names.is_empty() => {}
        Others::Left(names) => contents.notes.push(left_out("columns", &names)),
        Others::Unnamed(columns) => {
            let note = format!("without names of columns; read as {columns}");
            contents.notes.push(note);
        }
    }
    Ok(contents)
}

/// Lines before the header line.
#[derive(Default)]
struct Preamble {
    time: f64,
    /// Line that records the number of bodies, and this number.
    bodies: Option<(u64, usize)>,
    /// Offset of the header line.
    length: u64,
}

impl Preamble {
    fn read(reader: &mut impl BufRead) -> Result<Self, Stop> {
        /// No comment that is understood is longer; the rest of a longer one is not looked at.
        const COMMENT: u64 = 1024;
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

        let mut preamble = Self::default();
        if reader.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            reader.consume(BYTE_ORDER_MARK.len());
            preamble.length += BYTE_ORDER_MARK.len() as u64;
        }
        while let Some(b'#' | b'\r' | b'\n') = reader.fill_buf()?.first() {
            let start = preamble.length;
            let mut line = Vec::new();
            preamble.length += reader.take(COMMENT).read_until(b'\n', &mut line)? as u64;
            if !line.ends_with(b"\n") {
                preamble.length += reader.skip_until(b'\n')? as u64;
            }
            let line = String::from_utf8_lossy(&line);
            let Some((name, value)) = setting(&line) else {
                continue;
            };
            if name.eq_ignore_ascii_case("time") {
                preamble.time = value
                    .parse()
                    .ok()
                    .filter(|time: &f64| time.is_finite())
                    .ok_or_else(|| Stop::At(start, CsvFault::Time(beginning(value))))?;
            } else if name.eq_ignore_ascii_case("bodies") {
                preamble.bodies = value.parse().ok().map(|bodies| (start, bodies));
            }
        }
        Ok(preamble)
    }
}

/// Name and value, if `line` is a comment such as `# time = 0.5`.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix('#')?.split_once('=')?;
    Some((name.trim(), value.trim()))
}

/// Remark on columns.
enum Others {
    /// Names of those that were passed over.
    Left(Vec<String>),
    /// Columns that they were taken for.
    Unnamed(String),
}

/// Reads the header line, which begins at byte `start`, and the bodies.
fn read_bodies(reader: &mut impl BufRead, start: u64) -> Result<(Bodies, Others), Stop> {
    let mut header = Vec::new();
    reader
        .by_ref()
        .take(LONGEST_LINE + 1)
        .read_until(b'\n', &mut header)?;
    let separator = [b',', b';', b'\t']
        .into_iter()
        .find(|separator| header.contains(separator));
    let unnamed = match separator {
        // As other programs write them; with commas, it may be a file of ours that lost its first line.
        None | Some(b'\t') => numbers_in(&header),
        Some(_) => None,
    };
    let text = Bounded::new(header.chain(reader));
    match separator {
        Some(separator) => read_records(text, separator, start, unnamed),
        None => read_records(Blanks::new(text), b',', start, unnamed),
    }
}

/// Number of fields of a line that are parted by blanks, if they are numbers, all of them.
fn numbers_in(line: &[u8]) -> Option<usize> {
    let words = str::from_utf8(line).ok()?.split_whitespace();
    let count = words.clone().count();
    let are_numbers = words.into_iter().all(|word| word.parse::<f64>().is_ok());
    (count > 0 && are_numbers).then_some(count)
}

fn read_records(
    text: impl Read,
    separator: u8,
    start: u64,
    unnamed: Option<usize>,
) -> Result<(Bodies, Others), Stop> {
    let mut csv = ReaderBuilder::new()
        .has_headers(unnamed.is_none())
        .comment(Some(b'#'))
        .trim(Trim::All)
        .delimiter(separator)
        .from_reader(text);
    let fault = |fault: csv::Error| match fault.into_kind() {
        csv::ErrorKind::Io(fault) => Stop::Io(fault),
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => {
            let byte = start + pos.map_or(0, |pos| pos.byte());
            Stop::At(
                byte,
                CsvFault::FieldCount {
                    expected: expected_len,
                    found: len,
                },
            )
        }
        csv::ErrorKind::Utf8 { pos, .. } => {
            Stop::At(start + pos.map_or(0, |pos| pos.byte()), CsvFault::NotText)
        }
        other => Stop::Io(io::Error::other(format!("{other:?}"))),
    };

    let header = match unnamed {
        Some(found) => Columns::unnamed(found),
        None => read_header(&mut csv).map_err(fault)?,
    };
    let (columns, others) = header.map_err(|fault| Stop::At(start, fault))?;
    let mut bodies = Bodies::default();
    let mut record = StringRecord::new();
    while csv.read_record(&mut record).map_err(fault)? {
        // A carriage return within the first line ends its record, which all others are then compared with.
        if let Some(expected) = unnamed.filter(|&expected| expected != record.len()) {
            let byte = start + record.position().map_or(0, |position| position.byte());
            let found = record.len() as u64;
            let expected = expected as u64;
            return Err(Stop::At(byte, CsvFault::FieldCount { expected, found }));
        }
        let body = columns.body(&record, bodies.len()).map_err(|fault| {
            Stop::At(
                start + record.position().map_or(0, |position| position.byte()),
                fault,
            )
        })?;
        bodies.push(body);
    }
    Ok((bodies, others))
}

type Header = (Columns, Others);

fn read_header<R: Read>(csv: &mut Reader<R>) -> Result<Result<Header, CsvFault>, csv::Error> {
    csv.headers().map(|header| {
        let columns = Columns::of(header)?;
        let others = columns.others(header);
        Ok((columns, Others::Left(others)))
    })
}

/// Position of each quantity, as an index into the fields of a line.
struct Columns {
    coordinates: [usize; 6],
    mass: usize,
    id: Option<usize>,
    kind: Option<usize>,
}

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, CsvFault> {
        let find = |name: &'static str| {
            let mut found = (0..header.len()).filter(|i| header[*i].eq_ignore_ascii_case(name));
            match (found.next(), found.next()) {
                (_, Some(second)) => Err(CsvFault::DuplicateColumn {
                    column: second + 1,
                    name,
                }),
                (first, None) => Ok(first),
            }
        };
        // The first of several names that is there.
        let one_of = |names: &[&'static str]| {
            let mut found = names.iter().map(|name| find(name));
            found.find_map(Result::transpose).transpose()
        };
        let need = |names: &[&'static str]| {
            one_of(names)?.ok_or_else(|| {
                let header = header.iter().collect::<Vec<_>>().join(",");
                CsvFault::MissingColumn {
                    missing: names[0],
                    header: beginning(&header),
                }
            })
        };
        let mut coordinates = [0; 6];
        for (column, name) in coordinates.iter_mut().zip(COORDINATES) {
            *column = need(&[name])?;
        }
        Ok(Self {
            coordinates,
            mass: need(&MASS)?,
            id: one_of(&ID)?,
            kind: one_of(&KIND)?,
        })
    }

    /// Columns of a table without names, from the count of numbers in a line.
    fn unnamed(found: usize) -> Result<Header, CsvFault> {
        let ids = match found {
            7 => 0,
            8 => 1,
            found => return Err(CsvFault::Unnamed { found }),
        };
        let columns = Self {
            coordinates: std::array::from_fn(|k| ids + 1 + k),
            mass: ids,
            id: (ids > 0).then_some(0),
            kind: None,
        };
        let id = if ids > 0 { "id " } else { "" };
        Ok((columns, Others::Unnamed(format!("{id}{UNNAMED}"))))
    }

    /// Names of the columns that are passed over.
    fn others(&self, header: &StringRecord) -> Vec<String> {
        let is_used = |column: &usize| {
            self.coordinates.contains(column)
                || [Some(self.mass), self.id, self.kind].contains(&Some(*column))
        };
        (0..header.len())
            .filter(|column| !is_used(column))
            .map(|column| beginning(&header[column]))
            .collect()
    }

    /// Takes the body number `index` out of its line.
    fn body(&self, record: &StringRecord, index: usize) -> Result<Body, CsvFault> {
        let not = |column: usize, name, wanted| CsvFault::Field {
            column: column + 1,
            name,
            body: index,
            text: beginning(&record[column]),
            wanted,
        };
        let number = |column: usize, name: &'static str| {
            record[column]
                .parse::<f64>()
                .map_err(|_| not(column, name, "a number"))
        };
        let mut coordinates = [0.0; 6];
        for ((value, column), name) in coordinates
            .iter_mut()
            .zip(self.coordinates)
            .zip(COORDINATES)
        {
            *value = number(column, name)?;
        }
        let [x, y, z, vx, vy, vz] = coordinates;
        let id = match self.id {
            Some(column) => record[column]
                .parse()
                .map_err(|_| not(column, "id", "an integer from 0 to 18446744073709551615"))?,
            None => index as u64,
        };
        let kind = match self.kind {
            Some(column) => BodyKind::ALL
                .into_iter()
                .find(|kind| kind.name().eq_ignore_ascii_case(&record[column]))
                .ok_or_else(|| not(column, "kind", "gas, dark or star"))?,
            None => BodyKind::Star,
        };
        let mass = number(self.mass, "mass")?;
        let body = Body {
            position: [x, y, z],
            velocity: [vx, vy, vz],
            mass,
            id,
            kind,
        };
        body.check(index).map_err(|fault| CsvFault::Body {
            column: self.column_of(fault) + 1,
            fault,
        })?;
        Ok(body)
    }

    /// Index of the field that `fault` names.
    fn column_of(&self, fault: BodyFault) -> usize {
        let coordinate = match fault {
            BodyFault::NotFinite { field, .. } => {
                COORDINATES.iter().position(|name| *name == field)
            }
            BodyFault::Length { .. } | BodyFault::NegativeMass { .. } => None,
        };
        coordinate.map_or(self.mass, |index| self.coordinates[index])
    }
}

/// The line (from 1) of the record that begins at or after `byte`. The csv reader's own count is
/// off after comments, blank lines and CRLF line ends, for which its records begin too early.
fn line_at(reader: &mut (impl BufRead + Seek), byte: u64) -> io::Result<u64> {
    reader.seek(SeekFrom::Start(0))?;
    let (mut offset, mut line) = (0, 1);
    loop {
        let next = reader.fill_buf()?.first();
        let is_record =
            !matches!(next, Some(b'\r' | b'\n')) && (offset == byte || next != Some(&b'#'));
        if next.is_none() || (offset >= byte && is_record) {
            return Ok(line);
        }
        offset += reader.skip_until(b'\n')? as u64;
        line += 1;
    }
}

/// As much of `text` as a message can show.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Writes `snapshot` with all columns.
pub(super) fn write(file: &mut impl Write, snapshot: &Snapshot) -> Result<(), WriteFault> {
    // `{:?}` is the shortest form that reads back to the same value; unlike `{}`, it has an
    // exponent where 300 zeros would stand.
    writeln!(file, "# time = {:?}", snapshot.time)?;
    writeln!(file, "# bodies = {}", snapshot.bodies.len())?;
    writeln!(file, "x,y,z,vx,vy,vz,mass,id,kind")?;
    for Body {
        position: [x, y, z],
        velocity: [vx, vy, vz],
        mass,
        id,
        kind,
    } in snapshot.bodies.iter()
    {
        let kind = kind.name();
        writeln!(
            file,
            "{x:?},{y:?},{z:?},{vx:?},{vy:?},{vz:?},{mass:?},{id},{kind}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
