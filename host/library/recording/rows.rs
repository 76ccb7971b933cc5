//! A CSV table of a run that grows row by row; its first column is the step.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::heading::{Column, Heading};
use super::log::{cut, first_line, open};

/// Such a table, open at its end; clones write to the same.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    file: Arc<Mutex<File>>,
    /// From numbers in the units of the run to numbers in the columns.
    factors: Arc<[f64]>,
}

impl Rows {
    /// Makes a new file in `folder` with these columns after the column of steps.
    pub(super) fn create(
        folder: &Path,
        name: &str,
        columns: &[Column],
        heading: &Heading,
    ) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create_new(true)
            .open(folder.join(name));
        Self::with_header(file?, columns, heading)
    }

    /// The file of `folder`, without what comes after `steps`; a new one where it is not there. Rows that
    /// are damaged stay.
    pub(super) fn resume(
        folder: &Path,
        name: &str,
        columns: &[Column],
        steps: u64,
        heading: &Heading,
    ) -> io::Result<Self> {
        let mut file = open(folder, name)?;
        cut(&mut file, 1, steps, |row| {
            row.split(',').next()?.parse().ok()
        })?;
        match file.metadata()?.len() {
            0 => Self::with_header(file, columns, heading),
            _ => {
                let header = first_line(&mut file)?;
                let heading = heading.of_first_line(columns, &header);
                Ok(Self::of(file, heading.factors(columns)))
            }
        }
    }

    fn with_header(mut file: File, columns: &[Column], heading: &Heading) -> io::Result<Self> {
        let names = heading.names(columns).join(",");
        file.write_all(format!("step,{names}\n").as_bytes())?;
        Ok(Self::of(file, heading.factors(columns)))
    }

    fn of(file: File, factors: Vec<f64>) -> Self {
        Self {
            file: Arc::new(Mutex::new(file)),
            factors: factors.into(),
        }
    }

    /// The number that a column has for one in the units of the run.
    pub(super) fn in_column(&self, column: usize, value: f64) -> f64 {
        self.factors[column] * value
    }

    /// Appends a row in one piece.
    pub(super) fn append(&self, step: u64, cells: &[Cell]) -> io::Result<()> {
        let mut row = step.to_string();
        for (&cell, factor) in cells.iter().zip(&*self.factors) {
            let cell = match cell {
                Cell::Number(value) => Cell::InColumn(factor * value),
                other => other,
            };
            match cell {
                Cell::Number(value) | Cell::InColumn(value) if value.is_finite() => {
                    write!(row, ",{value:?}")
                }
                Cell::Number(_) | Cell::InColumn(_) => write!(row, ","),
                Cell::Word(word) => write!(row, ",{word}"),
                Cell::Id(id) => write!(row, ",{id}"),
            }
            .expect("a string takes all");
        }
        row.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(row.as_bytes())
    }

    /// Makes what was appended survive a power cut.
    pub(super) fn sync(&self) -> io::Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.sync_data()
    }
}

/// Content of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    /// In the units of the run. It is written in the unit of the column, in the shortest form that reads back the
    /// same; nothing where it is no finite number.
    Number(f64),
    /// In the unit of the column already.
    InColumn(f64),
    Word(&'static str),
    Id(u64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Measured;
    use std::fs;

    const COLUMNS: [Column; 3] = [
        ("x", Measured::Length),
        ("what", Measured::Bare),
        ("id", Measured::Bare),
    ];

    #[test]
    fn rows_after_a_checkpoint_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let rows = Rows::create(folder, "a.csv", &COLUMNS, &Heading::BARE).unwrap();
        for step in [0, 5, 10] {
            let cells = [
                Cell::Number(0.1 * step as f64),
                Cell::Word("seen"),
                Cell::Id(7),
            ];
            rows.append(step, &cells).unwrap();
        }
        drop(Rows::resume(folder, "a.csv", &COLUMNS, 5, &Heading::BARE).unwrap());
        let text = fs::read_to_string(folder.join("a.csv")).unwrap();
        assert_eq!(text, "step,x,what,id\n0,0.0,seen,7\n5,0.5,seen,7\n");
        drop(Rows::resume(folder, "b.csv", &COLUMNS[..1], 5, &Heading::BARE).unwrap());
        let text = fs::read_to_string(folder.join("b.csv")).unwrap();
        assert_eq!(text, "step,x\n");
    }
}
