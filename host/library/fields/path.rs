//! Paths that centres of fields move on, from tables.

use std::fmt;
use std::io;
use std::sync::Arc;

use gpu_kernels::fields::KNOT;

use crate::io::{finite_number, read_text};
use crate::names::tells_of_columns;
use crate::vectors::axes;

/// Time, position and velocity.
type Knot = (f64, [f64; 3], [f64; 3]);

/// Positions over time, joined by cubics: by the velocities of the table or, where it has none, by those
/// of a natural spline, whose second derivative is continuous.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Vec<Knot>", into = "Vec<Knot>"))]
pub struct Path {
    /// Time, position and velocity of each knot, one after another.
    numbers: Arc<[f64]>,
}

/// Reason why a table is not a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathFault {
    /// A row with another number of columns, or with something that is not a number.
    #[error("line {line} of the path should have numbers t x y z, or t x y z vx vy vz: `{text}`")]
    Row {
        /// Number of the line.
        line: usize,
        /// The line.
        text: String,
    },
    /// Units, or names of columns in another order.
    #[error(
        "line {line} of the path tells units or other columns, which are not read here: give numbers t x y z, or t x y z vx \
         vy vz, in the units of the run: `{text}`"
    )]
    Columns {
        /// Number of the line.
        line: usize,
        /// The line.
        text: String,
    },
    /// A time that does not follow the one before.
    #[error("times of a path must increase, and {1} follows {0}")]
    Order(f64, f64),
    /// Less than two knots.
    #[error("a path needs two rows at least, and this table has {0}")]
    TooShort(usize),
    /// A file that cannot be read.
    #[error("cannot read the path {file}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why it cannot.
        source: io::Error,
    },
}

const WIDTH: usize = KNOT as usize;

/// Columns of a table, the last three of which may be left out.
const NAMES: [&str; WIDTH] = ["t", "x", "y", "z", "vx", "vy", "vz"];

impl Path {
    /// The path through these positions, given as time and position.
    ///
    /// # Errors
    /// If there are less than two, a number is not finite or times do not increase.
    pub fn through(knots: &[(f64, [f64; 3])]) -> Result<Self, PathFault> {
        let times: Vec<f64> = knots.iter().map(|&(time, _)| time).collect();
        check(&times, knots.iter().flat_map(|(_, x)| x))?;
        let velocities = axes(|axis| {
            let values: Vec<f64> = knots.iter().map(|(_, x)| x[axis]).collect();
            slopes(&times, &values)
        });
        let velocity = |k: usize| [velocities[0][k], velocities[1][k], velocities[2][k]];
        let all = knots.iter().enumerate();
        Ok(Self::of(all.map(|(k, &(time, x))| (time, x, velocity(k)))))
    }

    /// The path through these positions with these velocities, given as time, position and velocity.
    ///
    /// # Errors
    /// See [`through`](Self::through).
    pub fn with_velocities(knots: &[(f64, [f64; 3], [f64; 3])]) -> Result<Self, PathFault> {
        let times: Vec<f64> = knots.iter().map(|&(time, ..)| time).collect();
        check(&times, knots.iter().flat_map(|(_, x, v)| x.iter().chain(v)))?;
        Ok(Self::of(knots.iter().copied()))
    }

    fn of(knots: impl Iterator<Item = Knot>) -> Self {
        let numbers = knots.flat_map(|(t, [x, y, z], [vx, vy, vz])| [t, x, y, z, vx, vy, vz]);
        Self {
            numbers: numbers.collect(),
        }
    }

    /// Reads a table of `t x y z` or `t x y z vx vy vz` in the units of the run, a row per line, with
    /// commas, semicolons or white space between numbers. Lines that begin with `#`, and a first line of names, are
    /// left out, but those are refused that tell units or another order.
    ///
    /// # Errors
    /// If the file cannot be read, or is no such table.
    pub fn read(file: &std::path::Path) -> Result<Self, PathFault> {
        let text = read_text(file).map_err(|source| PathFault::Unreadable {
            file: file.display().to_string(),
            source,
        })?;
        Self::parse(&text)
    }

    /// Path that a table is, as [`read`](Self::read) takes it.
    ///
    /// # Errors
    /// If it is no such table.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let mut rows: Vec<Vec<f64>> = vec![];
        let mut is_first = true;
        for (line, text) in (1..).zip(text.lines()) {
            let trimmed = text.trim();
            let is_heading = rows.is_empty() && !trimmed.starts_with(|c: char| c.is_ascii_digit());
            let heading = ["time", "Time", "TIME"]
                .iter()
                .fold(trimmed.to_owned(), |text, name| text.replace(name, "t"));
            let tells = |names: &[&str]| tells_of_columns(&heading, names);
            if is_heading && tells(&NAMES) && tells(&NAMES[..4]) {
                let text = trimmed.to_owned();
                return Err(PathFault::Columns { line, text });
            }
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            let words = trimmed.split(|c: char| c == ',' || c == ';' || c.is_whitespace());
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            let row: Option<Vec<f64>> = words.iter().map(|word| finite_number(word)).collect();
            let names = std::mem::replace(&mut is_first, false)
                && words.iter().all(|word| word.parse::<f64>().is_err());
            let width = rows.first().map_or(words.len(), Vec::len);
            match row {
                _ if names => {}
                Some(row) if row.len() == width && [4, WIDTH].contains(&width) => rows.push(row),
                _ => {
                    let text = trimmed.to_owned();
                    return Err(PathFault::Row { line, text });
                }
            }
        }
        if rows.first().is_some_and(|row| row.len() == WIDTH) {
            let knots: Vec<Knot> = rows.iter().map(|row| knot(row)).collect();
            Self::with_velocities(&knots)
        } else {
            let knot = |row: &Vec<f64>| (row[0], [row[1], row[2], row[3]]);
            Self::through(&rows.iter().map(knot).collect::<Vec<_>>())
        }
    }

    /// First and last time.
    pub fn span(&self) -> [f64; 2] {
        [self.numbers[0], self.numbers[self.numbers.len() - WIDTH]]
    }

    /// Number of knots.
    pub fn knots(&self) -> usize {
        self.numbers.len() / WIDTH
    }

    /// Checksum of its numbers, by which two paths can be told apart.
    pub fn digest(&self) -> u32 {
        crc32fast::hash(bytemuck::cast_slice(&self.numbers))
    }

    /// As buffers of fields have it.
    pub(super) fn numbers(&self) -> &[f64] {
        &self.numbers
    }
}

/// Number of knots, and times.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last] = self.span();
        let knots = self.knots();
        write!(f, "on a path of {knots} points from time {first} to {last}")
    }
}

/// The knot of as many numbers.
fn knot(numbers: &[f64]) -> Knot {
    let [x, v] = [1, 4].map(|at| [numbers[at], numbers[at + 1], numbers[at + 2]]);
    (numbers[0], x, v)
}

impl From<Path> for Vec<Knot> {
    fn from(path: Path) -> Self {
        path.numbers.chunks(WIDTH).map(knot).collect()
    }
}

impl TryFrom<Vec<Knot>> for Path {
    type Error = PathFault;

    fn try_from(knots: Vec<Knot>) -> Result<Self, PathFault> {
        Self::with_velocities(&knots)
    }
}

fn check<'a>(times: &'a [f64], others: impl Iterator<Item = &'a f64>) -> Result<(), PathFault> {
    if times.len() < 2 {
        return Err(PathFault::TooShort(times.len()));
    }
    let disordered =
        |pair: &&[f64]| pair[1].partial_cmp(&pair[0]) != Some(std::cmp::Ordering::Greater);
    if let Some(pair) = times.windows(2).find(disordered) {
        return Err(PathFault::Order(pair[0], pair[1]));
    }
    match times
        .iter()
        .chain(others)
        .find(|number| !number.is_finite())
    {
        Some(number) => Err(PathFault::Row {
            line: 0,
            text: number.to_string(),
        }),
        None => Ok(()),
    }
}

/// Derivatives of a natural cubic spline at its knots: their equations, tridiagonal, solved by
/// elimination.
fn slopes(times: &[f64], values: &[f64]) -> Vec<f64> {
    let n = times.len();
    let span = |k: usize| times[k + 1] - times[k];
    let chord = |k: usize| (values[k + 1] - values[k]) / span(k);
    // Rows: below, diagonal, above, right side.
    let row = |k: usize| match k {
        0 => [0.0, 2.0, 1.0, 3.0 * chord(0)],
        k if k == n - 1 => [1.0, 2.0, 0.0, 3.0 * chord(n - 2)],
        k => {
            let (before, after) = (1.0 / span(k - 1), 1.0 / span(k));
            let right = 3.0 * (chord(k - 1) * before + chord(k) * after);
            [before, 2.0 * (before + after), after, right]
        }
    };
    let (mut above, mut right) = (vec![0.0; n], vec![0.0; n]);
    for k in 0..n {
        let [below, diagonal, over, side] = row(k);
        let (last_above, last_right) = match k {
            0 => (0.0, 0.0),
            k => (above[k - 1], right[k - 1]),
        };
        let pivot = diagonal - below * last_above;
        above[k] = over / pivot;
        right[k] = (side - below * last_right) / pivot;
    }
    for k in (0..n - 1).rev() {
        right[k] -= above[k] * right[k + 1];
    }
    right
}
