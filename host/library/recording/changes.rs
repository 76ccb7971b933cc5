//! Changes of bodies that a run was given, with their times, and the log of those that were made: `changes.csv`.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::heading::{Column, Heading};
use super::rows::{Cell, Rows};
use super::{RecordingError, io_error};
use crate::backend::ForceError;
use crate::simulation::{BodyChange, ChangeError, Simulation};
use crate::units::Measured;

/// Name of the log in a run's folder.
pub(super) const NAME: &str = "changes.csv";

const COLUMNS: [Column; 5] = [
    ("time", Measured::Time),
    ("id", Measured::Bare),
    ("mass", Measured::Mass),
    ("outcome", Measured::Bare),
    ("energy", Measured::Energy),
];

/// Changes of bodies, each at its time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeTable {
    /// In the order of times and ids.
    rows: Vec<(f64, u64, BodyChange)>,
}

/// Fault of a table of changes.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ChangeTableFault {
    /// A time that is not a finite number.
    #[error("the time {time:?} of the body with the id {id} is not a finite number")]
    Time {
        /// The time.
        time: f64,
        /// Id of the body.
        id: u64,
    },
    /// Two changes of a body at one time.
    #[error(
        "the body with the id {id} changes twice at the time {time:?}: make one change of both"
    )]
    Twice {
        /// The time.
        time: f64,
        /// Id of the body.
        id: u64,
    },
}

impl ChangeTable {
    /// A table of times, ids and changes, in any order. A run does not use when bodies
    /// [change next](BodyChange::next): give a row for each change.
    ///
    /// # Errors
    /// [`ChangeTableFault`].
    pub fn new(mut rows: Vec<(f64, u64, BodyChange)>) -> Result<Self, ChangeTableFault> {
        if let Some(&(time, id, _)) = rows.iter().find(|(time, ..)| !time.is_finite()) {
            return Err(ChangeTableFault::Time { time, id });
        }
        rows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let same = rows
            .windows(2)
            .find(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1));
        match same {
            Some(&[(time, id, _), _]) => Err(ChangeTableFault::Twice { time, id }),
            _ => Ok(Self { rows }),
        }
    }

    /// Times, ids and changes, in the order of times and ids.
    pub fn rows(&self) -> &[(f64, u64, BodyChange)] {
        &self.rows
    }

    /// The first time after this one at which bodies change.
    pub(super) fn next_time(&self, after: f64) -> Option<f64> {
        let first = self.rows.partition_point(|&(time, ..)| time <= after);
        self.rows.get(first).map(|&(time, ..)| time)
    }

    /// Changes that are due then.
    pub(super) fn at(&self, time: f64) -> &[(f64, u64, BodyChange)] {
        let first = self.rows.partition_point(|&(other, ..)| other < time);
        let end = self.rows.partition_point(|&(other, ..)| other <= time);
        &self.rows[first..end]
    }
}

/// Changes of a run: those to come, and the log of those that were made.
#[derive(Debug)]
pub(super) struct Changes {
    folder: PathBuf,
    pub(super) table: ChangeTable,
    log: Rows,
    /// Changes that were made, and changes of bodies that were not there any more.
    pub(super) counts: [u64; 2],
}

impl Changes {
    pub(super) fn begin(folder: &Path, table: ChangeTable, heading: &Heading) -> io::Result<Self> {
        Ok(Self::of(
            folder,
            table,
            Rows::create(folder, NAME, &COLUMNS, heading)?,
        ))
    }

    /// Continues the log of a run that was stopped after `steps`.
    pub(super) fn resume(
        folder: &Path,
        table: ChangeTable,
        steps: u64,
        heading: &Heading,
    ) -> io::Result<Self> {
        let log = Rows::resume(folder, NAME, &COLUMNS, steps, heading)?;
        Ok(Self::of(folder, table, log))
    }

    fn of(folder: &Path, table: ChangeTable, log: Rows) -> Self {
        Self {
            folder: folder.to_owned(),
            table,
            log,
            counts: [0; 2],
        }
    }

    /// Makes the changes that are due at the present time.
    pub(super) fn make(&mut self, simulation: &mut Simulation) -> Result<(), RecordingError> {
        let clock = simulation.clock();
        let due = self.table.at(clock.time);
        let ids = &simulation.bodies_last_seen().id;
        let is_there: Vec<bool> = due.iter().map(|(_, id, _)| ids.contains(id)).collect();
        let present = due.iter().zip(&is_there).filter(|&(_, &is_there)| is_there);
        let present: Vec<(u64, BodyChange)> =
            present.map(|(&(_, id, change), _)| (id, change)).collect();
        let before = simulation.brought().energy;
        let made = simulation.change_bodies(&present);
        made.map_err(|why| match why {
            ChangeError::Force(why) => why,
            why => ForceError::Change {
                ids: present.iter().map(|&(id, _)| id).collect(),
                time: clock.time,
                why: why.to_string(),
            },
        })?;
        let energy = simulation.brought().energy - before;
        let bodies = simulation.bodies()?;
        for (&(time, id, change), is_there) in due.iter().zip(is_there) {
            let (outcome, energy) = match (is_there, change.is_removed) {
                (false, _) => ("missed", 0.0),
                (true, false) => ("changed", energy),
                (true, true) => ("removed", energy),
            };
            let mass =
                (bodies.id.iter().position(|&other| other == id)).map_or(0.0, |i| bodies.mass[i]);
            let cells = [
                Cell::Number(time),
                Cell::Id(id),
                Cell::Number(mass),
                Cell::Word(outcome),
                Cell::Number(energy),
            ];
            let appended = self.log.append(clock.steps, &cells);
            appended.map_err(|fault| io_error(&self.folder, fault))?;
            self.counts[usize::from(!is_there)] += 1;
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.log.sync()
    }
}
