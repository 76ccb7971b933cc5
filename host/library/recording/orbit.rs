//! The orbit of the origin at each moment that is recorded, for runs in their own frame: `orbit.csv`.

use std::io;
use std::path::Path;

use super::folder::last_snapshot;
use super::heading::{Column, Heading};
use super::rows::{Cell, Rows};
use crate::fields::External;
use crate::units::Measured;

/// Name of the table of the origin's orbit, in the folder of a run in its own frame.
pub const ORBIT: &str = "orbit.csv";

/// Columns in the units of the run, in which `--orbit` and the paths of fields take them.
const COLUMNS: [Column; 7] = [
    ("time", Measured::Bare),
    ("x", Measured::Bare),
    ("y", Measured::Bare),
    ("z", Measured::Bare),
    ("vx", Measured::Bare),
    ("vy", Measured::Bare),
    ("vz", Measured::Bare),
];

/// The table, and the step of its last row.
#[derive(Clone, Debug)]
pub(super) struct OrbitRows {
    rows: Rows,
    last: Option<u64>,
}

impl OrbitRows {
    /// Begins it, if the origin is on an orbit.
    pub(super) fn begin(folder: &Path, external: &External) -> io::Result<Option<Self>> {
        let rows = external
            .origin()
            .map(|_| Rows::create(folder, ORBIT, &COLUMNS, &Heading::BARE));
        let rows = rows.transpose()?;
        Ok(rows.map(|rows| Self { rows, last: None }))
    }

    /// Continues the table of a run that was stopped after `steps`, without the row of its end, unless a look
    /// or a snapshot was due then.
    pub(super) fn resume(folder: &Path, steps: u64, is_look_due: bool) -> io::Result<Self> {
        let is_due = is_look_due || last_snapshot(folder) == Some(steps);
        let kept = if is_due {
            steps
        } else {
            steps.saturating_sub(1)
        };
        Ok(Self {
            rows: Rows::resume(folder, ORBIT, &COLUMNS, kept, &Heading::BARE)?,
            last: is_due.then_some(steps),
        })
    }

    /// Appends the origin at a moment, once.
    pub(super) fn append(&mut self, steps: u64, external: &External) -> io::Result<()> {
        let Some([x, v]) = external.origin().filter(|_| self.last != Some(steps)) else {
            return Ok(());
        };
        self.last = Some(steps);
        let numbers = std::iter::once(external.time()).chain(x).chain(v);
        let cells: Vec<Cell> = numbers.map(Cell::Number).collect();
        self.rows.append(steps, &cells)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.rows.sync()
    }
}
