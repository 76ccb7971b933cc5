//! A single array of rows with named fields, as `numpy.save` writes a table.
//! ```text
//! {'descr': [('m', '<f8'), ('pos', '<f4', (3,)), …], 'fortran_order': False, 'shape': (N,), }
//! ```

use std::io::Read;

use super::super::column::{
    ID, IDS, KIND, KINDS, MASS, Malformed, Numbers, POSITION, TIME, VELOCITY, left_out,
};
use super::super::{Contents, ReadFault, Snapshot};
use super::{PLACE, named, numbers};
use crate::bodies::{Bodies, Body, BodyKind, COORDINATES};
use crate::units::Dimension;
use crate::vectors::axes;

/// A field of each row.
struct Field {
    name: String,
    /// The type of its elements; `None` for text and what else is no number.
    numbers: Option<Numbers>,
    /// Bytes before it in a row.
    offset: usize,
    /// Number of its elements.
    count: usize,
}

/// The rows of an array.
pub(super) struct Rows {
    fields: Vec<Field>,
    /// Bytes of a row.
    width: usize,
    rows: u64,
}

impl Rows {
    /// Takes the header of an array apart; `None` if its elements have no fields.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (_, rest) = header.split_once("'descr':")?;
        let (mut list, rest) = list_in(rest.trim_start())?;
        let (mut fields, mut width) = (vec![], 0_usize);
        while let Some(field) = list.strip_prefix("('") {
            let (name, field) = field.split_once('\'')?;
            let (kind, field) = field.strip_prefix(", '")?.split_once('\'')?;
            let (count, field) = match field.strip_prefix(", (") {
                Some(shape) => {
                    let (shape, field) = shape.split_once(')')?;
                    (product(shape)?, field)
                }
                None => (1, field),
            };
            let size: u64 = kind.get(2..)?.parse().ok()?;
            // NumPy's letters have four bytes.
            let size = size.checked_mul(if kind.get(1..2) == Some("U") { 4 } else { 1 })?;
            fields.push(Field {
                name: name.to_owned(),
                numbers: numbers(kind),
                offset: width,
                count: usize::try_from(count).ok()?,
            });
            let bytes = usize::try_from(size.checked_mul(count)?).ok()?;
            width = width.checked_add(bytes)?;
            list = field.strip_prefix(')')?;
            list = list.strip_prefix(", ").unwrap_or(list);
        }
        let (_, shape) = rest.split_once("'shape': (")?;
        let rows = product(shape.split_once(')')?.0)?;
        (list.trim().is_empty() && width > 0).then_some(Self {
            fields,
            width,
            rows,
        })
    }

    /// Reads bodies from the rows, in a file of `size` bytes.
    pub(super) fn read(&self, mut file: impl Read, size: u64) -> Result<Contents, ReadFault> {
        let malformed = |problem: String| ReadFault::from(Malformed::new(PLACE, problem));
        let bytes_in_all = self.rows.checked_mul(self.width as u64);
        // Nothing is allocated that the file does not have.
        let Some(expected) = bytes_in_all.filter(|bytes| *bytes <= size) else {
            return Err(malformed(format!(
                "{} rows are more than it holds",
                self.rows
            )));
        };
        let mut bytes = vec![];
        file.read_to_end(&mut bytes)?;
        if bytes.len() as u64 != expected {
            return Err(malformed(format!(
                "{} rows are not what it holds",
                self.rows
            )));
        }

        let mut used = vec![];
        let mut find = |names: &[&str], count: usize| {
            let is_it = |field: &&Field| {
                let mut names = names.iter();
                let quantity = named::parts(&field.name).map_or(&*field.name, |(name, _)| name);
                field.count == count && names.any(|name| name.eq_ignore_ascii_case(quantity))
            };
            let field = self.fields.iter().find(is_it)?;
            used.push(&field.name);
            let unit = named::parts(&field.name).map(|(_, unit)| unit);
            Some((field.offset, field.numbers?, unit))
        };
        let mut triple = |whole: &[&str], letters: &[&str], parts: &[&'static str]| {
            if let Some((offset, numbers, unit)) = find(whole, 3).or_else(|| find(letters, 3)) {
                return Ok(axes(|k| (offset + k * numbers.bytes, numbers, unit)));
            }
            let mut columns = [None; 3];
            for (column, part) in columns.iter_mut().zip(parts) {
                *column = find(&[part], 1);
            }
            let [Some(x), Some(y), Some(z)] = columns else {
                let (parts, whole) = (parts.join(", "), whole[0]);
                let problem =
                    format!("it has no fields of numbers {parts}, nor {whole} of shape (3,)");
                return Err(malformed(problem));
            };
            Ok([x, y, z])
        };
        let position = triple(&POSITION, &["r", "x"], &COORDINATES[..3])?;
        let velocity = triple(&VELOCITY, &[], &COORDINATES[3..])?;
        let mass = find(&MASS, 1)
            .ok_or_else(|| malformed(format!("it has no field of numbers {}", MASS[0])))?;
        let (id, kind) = (find(&ID, 1), find(&KIND, 1));
        let time = find(&TIME, 1);
        type Place<'a> = (usize, Numbers, Option<&'a str>);
        let real = |row: &[u8], (offset, numbers, _): Place<'_>| numbers.real(&row[offset..]);
        let whole = |row: &[u8], (offset, numbers, _): Place<'_>| numbers.id(&row[offset..]);
        let mut bodies = Bodies::default();
        for (index, row) in (0..).zip(bytes.chunks_exact(self.width)) {
            let fault = |name: &str, allowed: &str| {
                malformed(format!("the {name} of body {index} is none: {allowed}"))
            };
            bodies.push(Body {
                position: position.map(|column| real(row, column)),
                velocity: velocity.map(|column| real(row, column)),
                mass: real(row, mass),
                id: match id {
                    Some(column) => whole(row, column).ok_or_else(|| fault("id", IDS))?,
                    None => index,
                },
                kind: match kind {
                    Some(column) => whole(row, column)
                        .and_then(BodyKind::of_number)
                        .ok_or_else(|| fault("kind", KINDS))?,
                    None => BodyKind::Star,
                },
            });
        }
        if bodies.is_empty() {
            return Err(ReadFault::NoBodies);
        }
        let [x, y, z] = position.map(|(.., unit)| unit);
        let [vx, vy, vz] = velocity.map(|(.., unit)| unit);
        let (units, note) = match named::system(mass.2, [x, y, z, vx, vy, vz]) {
            Ok(system) => (system, None),
            Err(note) => (None, Some(note)),
        };
        let units = units.map(|(units, factors)| {
            named::scale(&mut bodies, factors);
            units
        });
        bodies.check()?;
        let times = (bytes.chunks_exact(self.width)).filter_map(|row| Some(real(row, time?)));
        let times: Vec<f64> = times.collect();
        let differ = times.windows(2).any(|pair| pair[0] != pair[1]);
        if differ && times.windows(2).any(|pair| pair[0] == pair[1]) {
            let problem = "its rows are of several times: keep the rows of one snapshot";
            return Err(malformed(problem.to_owned()));
        }
        let seconds = time.and_then(|(.., unit)| named::size(unit?, Dimension::Time));
        let time = times.first().copied().unwrap_or(0.0);
        let time = match (seconds, units) {
            (Some(seconds), Some(units)) => time * (seconds / units.time),
            _ => time,
        };
        // Times of single bodies, as ages are.
        let time = if differ || !time.is_finite() {
            0.0
        } else {
            time
        };
        let names = self.fields.iter().map(|field| &field.name);
        // Fields without names are padding.
        let names = names.filter(|name| !name.is_empty());
        let is_time =
            |name: &str| TIME.contains(&named::parts(name).map_or(name, |(name, _)| name));
        let is_used = |name: &&String| used.contains(name) && !(differ && is_time(name));
        let others: Vec<&String> = names.filter(|name| !is_used(name)).collect();
        let mut contents = Contents {
            units,
            notes: note.into_iter().collect(),
            ..Contents::from(Snapshot { time, bodies })
        };
        if !others.is_empty() {
            contents.notes.push(left_out("fields", &others));
        }
        Ok(contents)
    }
}

/// The content of the list at the beginning of a text, and what follows. Names in quotes may have brackets.
fn list_in(text: &str) -> Option<(&str, &str)> {
    let list = text.strip_prefix('[')?;
    let mut is_quoted = false;
    let end = list.find(|c: char| {
        is_quoted ^= c == '\'';
        c == ']' && !is_quoted
    })?;
    Some((&list[..end], &list[end + 1..]))
}

/// The product of numbers with commas between them.
fn product(shape: &str) -> Option<u64> {
    let mut sizes = shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    sizes.try_fold(1_u64, |all, size| all.checked_mul(size.parse().ok()?))
}
