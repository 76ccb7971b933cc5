//! Comma-separated values, one body a line.
//! ```text
//! # time = 0.5
//! # bodies = 1
//! # units = pc, Msun, km/s
//! x,y,z,vx,vy,vz,mass,id,kind
//! 1.0,0.0,0.0,0.0,1.0,0.0,0.5,0,star
//! ```
//! The header line is required and names the columns in any order, in upper or lower case. `x`,
//! `y`, `z`, `vx`, `vy`, `vz` and `mass` (or `m`) must be there; `id` (an integer from 0 on, else
//! bodies are numbered in file order) and `kind` (`gas`, `dark` or `star`, else all are stars) may;
//! other columns are passed over, and a note names them. Fields may be separated by semicolons,
//! tabs or blanks as well: by what separates the names of the columns. Lines that begin with `#`
//! are comments. Comments before the header may give the time, else it is 0, the units, and the
//! number of bodies, by which a file is known that was cut at the end of a line. Numbers are
//! written in the shortest form that reads back to the same f64. Fortran's exponents (`1D-2`) are read.
//!
//! Where the first line that is no comment has numbers alone, names may stand in a comment, as `numpy.savetxt`
//! writes them. Names may tell units, as in `x [pc]`; so may a row of units below them (AMUSE), and the
//! descriptions of columns in ECSV (astropy). There, vectors such as `"[1.0,2.0,3.0]"` in columns `pos` and `vel` are read.
//!
//! Tables of blanks without names, as NBODY6 and mcluster have them, are read as `m x y z vx vy vz`. Eight columns
//! have an id in front or behind. A note says so. A table is one snapshot: bodies of several
//! times, by a column `time` or by comments between them, are refused. Heads of PeTar and φ-GRAPE are read.

mod columns;
mod heads;
mod lines;
mod names;
mod numbers;
mod preamble;
mod table;
mod told;
mod vectors;

use std::io::{self, BufRead, Seek, SeekFrom, Write};

use thiserror::Error;

use super::{Contents, ReadFault, Snapshot, WriteFault};
use crate::bodies::{Body, BodyFault};
use crate::units::Units;
use table::Table;

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
    /// A line of numbers, where names or numbers are expected, with something else among them.
    #[error(
        "column {column}: `{text}` is no number; put the number there, or a line with names before the numbers"
    )]
    NoNumber {
        /// The column.
        column: usize,
        /// Beginning of the text found.
        text: String,
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
    /// A comment that names other columns than there are.
    #[error(
        "a comment names {named} columns (`{names}`), and there are {found} numbers in a line: correct or remove \
         the comment, or put a line with names before the numbers"
    )]
    CommentNames {
        /// Names in the comment.
        named: usize,
        /// Columns found.
        found: usize,
        /// Beginning of the names.
        names: String,
    },
    /// Comments that seem to name the columns of a table without names.
    #[error(
        "comments before the numbers seem to name the columns, and are not understood (`{0}`): put a line with names \
         before the numbers, such as x y z vx vy vz mass"
    )]
    StrangeNames(String),
    /// A table without names, of which two columns may have the ids.
    #[error(
        "the first and the last of 8 columns may both have ids: put a line with names before the numbers, such as m x y z \
         vx vy vz id"
    )]
    TwoIds,
    /// A second snapshot in the same table.
    #[error(
        "bodies of another time begin here: the file holds several snapshots, and one is read; keep the lines of one \
         snapshot"
    )]
    SecondSnapshot,
    /// A mass below zero in a table without names; its columns may be others.
    #[error(
        "column {column}: the mass of body {body} would be {mass:e}: a table without names is read as {UNNAMED}; \
         if its columns are others, put a line with their names before it"
    )]
    UnnamedMass {
        /// The column of the mass.
        column: usize,
        /// Index of the body.
        body: usize,
        /// The number found.
        mass: f64,
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
    /// A column of ECSV with cells that are neither numbers nor vectors.
    #[error(
        "the column `{name}` has cells of the type `{subtype}`: vectors such as float64[3] are read, in pos and vel of 3 \
         numbers; leave it out, or write its parts as columns"
    )]
    Subtype {
        /// Name of the column.
        name: String,
        /// Type of its cells.
        subtype: String,
    },
    /// The comment that gives the time does not.
    #[error("the time is `{0}`, not a finite number")]
    Time(String),
    /// Lines are missing, or there are more of them than there were.
    #[error(
        "this line tells of {expected} bodies, and the file holds {found}: it was cut short or \
         added to; if that is right, correct the line"
    )]
    BodyCount {
        /// Bodies that the line tells of.
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
    /// No memory for this number of bodies.
    Memory(usize),
    At(u64, CsvFault),
}

impl From<io::Error> for Stop {
    fn from(fault: io::Error) -> Self {
        Stop::Io(fault)
    }
}

/// Reads a CSV file from its beginning. `given` are the units of its numbers where it tells none.
pub(super) fn read(
    reader: &mut (impl BufRead + Seek),
    given: Option<Units>,
) -> Result<Contents, ReadFault> {
    match read_all(reader, given) {
        Ok(contents) if contents.snapshot.bodies.is_empty() => Err(ReadFault::NoBodies),
        Ok(contents) => Ok(contents),
        Err(stop) => Err(located(reader, stop)),
    }
}

/// Reads the units that a file tells.
pub(super) fn read_units(reader: &mut (impl BufRead + Seek)) -> Result<Option<Units>, ReadFault> {
    match Table::open(reader, None).map(|table| table.units) {
        Ok(units) => Ok(units),
        Err(stop) => Err(located(reader, stop)),
    }
}

fn read_all(reader: &mut impl BufRead, given: Option<Units>) -> Result<Contents, Stop> {
    let mut table = Table::open(reader, given)?;
    let bodies = table.bodies()?;
    if let Some((at, expected)) = table.counted
        && expected != bodies.len()
        && !bodies.is_empty()
    {
        let found = bodies.len();
        return Err(Stop::At(at, CsvFault::BodyCount { expected, found }));
    }
    Ok(Contents {
        snapshot: Snapshot {
            time: table.time,
            bodies,
        },
        units: table.units,
        notes: table.notes,
        ..Contents::default()
    })
}

/// A fault with its line.
fn located(reader: &mut (impl BufRead + Seek), stop: Stop) -> ReadFault {
    match stop {
        Stop::Io(fault) => fault.into(),
        Stop::Memory(bodies) => ReadFault::OutOfMemory { bodies },
        Stop::At(byte, fault) => match line_at(reader, byte) {
            Ok(line) => ReadFault::Csv { line, fault },
            Err(fault) => fault.into(),
        },
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
pub(super) fn write(
    file: &mut impl Write,
    snapshot: &Snapshot,
    units: Option<Units>,
) -> Result<(), WriteFault> {
    // `{:?}` is the shortest form that reads back to the same value; unlike `{}`, it has an
    // exponent where 300 zeros would stand.
    writeln!(file, "# time = {:?}", snapshot.time)?;
    writeln!(file, "# bodies = {}", snapshot.bodies.len())?;
    if let Some(units) = units {
        writeln!(file, "# units = {}", units.list())?;
    }
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
