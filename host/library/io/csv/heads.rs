//! Lines of numbers before a table, as codes for star clusters write them.
//! ```text
//! PeTar, input and data.N       file N time [x y z vx vy vz of the frame]
//!                               m x y z vx vy vz …          N lines
//! φ-GRAPE, φ-GPU, data.inp      number of the snapshot
//!                               N
//!                               time
//!                               id m x y z vx vy vz         N lines
//! ```
//! A head is believed if its numbers are of these kinds and the next line is as long as a body's. N is
//! compared with the bodies that follow.
//! Layouts: PeTar's manual, "Format of input data file"; the user's guide of φ-GRAPE, "Input data".

use super::super::petar::{BODIES, NO_UNITS};
use super::numbers::{number, whole};

/// The head of a table.
#[derive(Debug, PartialEq)]
pub(super) struct Head {
    pub(super) time: f64,
    pub(super) bodies: usize,
    /// Bytes before the line of the first body.
    pub(super) length: usize,
    /// Index of the column with the mass; place and velocity follow.
    pub(super) mass: usize,
    /// Index of the column with the id, if there is one.
    pub(super) id: Option<usize>,
    /// Columns of a body.
    pub(super) columns: usize,
    /// Name of the code, and what is to be said.
    pub(super) note: String,
}

/// Index of the id in PeTar's tables, by the count of a body's numbers: as in its [binary](super::super::petar)
/// snapshots, or with the 7 numbers that stars had of their own before they had 10.
fn id_column(columns: usize) -> Option<usize> {
    let mut known = BODIES.into_iter().chain([(31, 32, 20)]);
    let found = known.find(|&(alone, in_field, _)| [alone, in_field].contains(&(columns as u64)));
    found.map(|(.., id)| id)
}

/// Numbers that the first line of a head can have.
pub(super) const WIDTHS: [usize; 3] = [1, 3, 9];

/// Lines that a head and the first body take at most.
pub(super) const LINES: usize = 4;

/// The head in these first lines of a file, if it is one.
pub(super) fn head(lines: &[u8]) -> Option<Head> {
    let text = str::from_utf8(lines).ok()?;
    let mut length = 0;
    let mut rows = vec![];
    for line in text.split_inclusive('\n').take(LINES) {
        rows.push((length, line.split_ascii_whitespace().collect::<Vec<_>>()));
        length += line.len();
    }
    petar(&rows).or_else(|| phi_grape(&rows))
}

type Row<'a> = (usize, Vec<&'a str>);

fn are_numbers(words: &[&str]) -> bool {
    words.iter().all(|word| number(word).is_some())
}

fn time_in(word: &str) -> Option<f64> {
    number(word).filter(|time| time.is_finite())
}

fn petar(rows: &[Row]) -> Option<Head> {
    let [(_, head), (length, body), ..] = rows else {
        return None;
    };
    let (3 | 9, 7..) = (head.len(), body.len()) else {
        return None;
    };
    whole(head[0])?;
    if head.len() == body.len() || !are_numbers(body) || !are_numbers(head) {
        return None;
    }
    // PeTar's ids begin with 1. Old versions have the mass before becoming part of a pair in front of the id.
    let id = id_column(body.len()).and_then(|first| {
        let is_id = |column: &usize| whole(body[*column]).is_some_and(|id| id > 0);
        [first, first + 1].into_iter().find(is_id)
    });
    let mut note =
        "the first line is the head of a table of PeTar's; read as m x y z vx vy vz".to_owned();
    if id.is_some() {
        note += ", and the id";
    }
    if let Some(frame) = head
        .get(3..)
        .filter(|frame| frame.iter().any(|word| number(word) != Some(0.0)))
    {
        note += &format!(", in a frame of place and velocity {}", frame.join(" "));
    }
    note += NO_UNITS;
    Some(Head {
        time: time_in(head[2])?,
        bodies: usize::try_from(whole(head[1])?).ok()?,
        length: *length,
        mass: 0,
        id,
        columns: body.len(),
        note,
    })
}

fn phi_grape(rows: &[Row]) -> Option<Head> {
    let [(_, snapshot), (_, bodies), (_, time), (length, body)] = rows else {
        return None;
    };
    let ([snapshot], [bodies], [time], 8) = (&snapshot[..], &bodies[..], &time[..], body.len())
    else {
        return None;
    };
    whole(snapshot)?;
    if !are_numbers(body) {
        return None;
    }
    Some(Head {
        time: time_in(time)?,
        bodies: usize::try_from(whole(bodies)?).ok()?,
        length: *length,
        mass: 1,
        id: Some(0),
        columns: 8,
        note: "the first three lines are the head of a table of φ-GRAPE's; read as id m x y z vx vy vz".to_owned(),
    })
}
