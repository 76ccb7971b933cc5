//! The state of a backend, as columns with numbers of each body.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::ForceError;
use crate::frame::Frame;

/// A quantity of the bodies in a saved state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// Positions.
    Positions,
    /// Velocities.
    Velocities,
    /// Accelerations computed last.
    Accelerations,
    /// Jerks computed last.
    Jerks,
    /// Snaps computed last and crackles of the last steps.
    Higher,
    /// Steps that [block time steps](super::BlockSteps) allow next.
    OwnSteps,
    /// Neighbour spheres of a [neighbour scheme](super::Neighbours).
    Spheres,
}

/// Unit of a number in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The unit of the state's frame.
    Frame,
    /// Length in the unit of the run; infinite for a sphere with all bodies.
    Radius,
    /// Time in the unit of the run.
    Time,
}

/// Properties of a column.
pub(crate) struct ColumnRow {
    pub(crate) column: Column,
    /// Units of the numbers that each body has.
    pub(crate) units: &'static [Unit],
    /// Flag of checkpoints that have the column; 0 for a column that every state has.
    pub(crate) flag: u32,
}

/// All columns, in the order in which checkpoints have them.
pub(crate) const COLUMNS: [ColumnRow; 7] = [
    row(Column::Positions, &[Unit::Frame; 3], 0),
    row(Column::Velocities, &[Unit::Frame; 3], 0),
    row(Column::Accelerations, &[Unit::Frame; 3], 0),
    row(Column::Jerks, &[Unit::Frame; 3], 1),
    row(Column::Higher, &[Unit::Frame; 6], 4),
    row(Column::OwnSteps, &[Unit::Time], 2),
    row(Column::Spheres, &[Unit::Radius, Unit::Time], 64),
];

const fn row(column: Column, units: &'static [Unit], flag: u32) -> ColumnRow {
    ColumnRow {
        column,
        units,
        flag,
    }
}

// A column is found by its place.
const _: () = {
    let mut place = 0;
    while place < COLUMNS.len() {
        assert!(COLUMNS[place].column as usize == place);
        place += 1;
    }
};

impl Column {
    /// Units of the numbers that each body has.
    pub(crate) const fn units(self) -> &'static [Unit] {
        COLUMNS[self as usize].units
    }

    /// Flag of checkpoints that have the column; 0 for a column that every state has.
    pub(crate) const fn flag(self) -> u32 {
        COLUMNS[self as usize].flag
    }
}

impl Unit {
    /// The unit, in units of the run, of numbers that a device keeps in the units of `frame`.
    pub(crate) fn of_device(self, frame: &Frame) -> f64 {
        match self {
            Self::Frame => 1.0,
            Self::Radius => frame.length,
            Self::Time => frame.time,
        }
    }
}

/// All that the next step of a backend depends on, without masses and constants: f32 numbers are
/// f64 numbers without loss.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedState {
    /// Origin and units of the vectors.
    pub frame: Frame,
    /// In the order of [`COLUMNS`]; each has its numbers for every body, or is empty.
    columns: [Vec<f64>; COLUMNS.len()],
    /// Pairs and multiples that are followed apart, as numbers; empty where there may be none.
    pub(crate) groups: Vec<f64>,
}

/// Neighbour sphere of a body, in the units of the run.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Sphere {
    /// Radius; infinite where all bodies are neighbours.
    pub radius: f64,
    /// The step that the regular force, that of the bodies outside, allows next.
    pub regular_step: f64,
}

impl SavedState {
    /// The state with the columns that `numbers` gives; empty ones are left out.
    ///
    /// # Errors
    /// The first error of `numbers`.
    pub(crate) fn try_of<E>(
        frame: Frame,
        mut numbers: impl FnMut(Column) -> Result<Vec<f64>, E>,
    ) -> Result<Self, E> {
        let mut columns = [const { vec![] }; COLUMNS.len()];
        for (numbers_of_all, row) in columns.iter_mut().zip(&COLUMNS) {
            *numbers_of_all = numbers(row.column)?;
        }
        Ok(Self {
            frame,
            columns,
            groups: vec![],
        })
    }

    /// Like [`try_of`](Self::try_of), but without errors.
    pub(crate) fn of(frame: Frame, mut numbers: impl FnMut(Column) -> Vec<f64>) -> Self {
        Self {
            frame,
            columns: COLUMNS.map(|row| numbers(row.column)),
            groups: vec![],
        }
    }

    /// The numbers of a column, body after body; empty if the state does not have it.
    pub fn column(&self, column: Column) -> &[f64] {
        &self.columns[column as usize]
    }

    /// The numbers of a column, to be changed.
    pub fn column_mut(&mut self, column: Column) -> &mut [f64] {
        &mut self.columns[column as usize]
    }

    /// Returns whether the state has a column.
    pub fn has(&self, column: Column) -> bool {
        !self.column(column).is_empty()
    }

    /// The state with these numbers of a column.
    #[must_use]
    pub(crate) fn with(mut self, column: Column, numbers: Vec<f64>) -> Self {
        self.columns[column as usize] = numbers;
        self
    }

    /// The state with the numbers that another one has of some bodies in a column, if both have it.
    #[must_use]
    pub(crate) fn with_some_of(mut self, other: &Self, column: Column, bodies: &[usize]) -> Self {
        let each = column.units().len();
        let from = other.column(column);
        let into = self.column_mut(column);
        if from.len() == into.len() && !from.is_empty() {
            for &i in bodies {
                into[each * i..each * (i + 1)].copy_from_slice(&from[each * i..each * (i + 1)]);
            }
        }
        self
    }

    /// The state without a column.
    #[must_use]
    pub fn without(mut self, column: Column) -> Self {
        self.columns[column as usize].clear();
        self
    }

    /// Positions, in units of the frame.
    pub fn positions(&self) -> &[[f64; 3]] {
        bytemuck::cast_slice(self.column(Column::Positions))
    }

    /// Velocities, in units of the frame.
    pub fn velocities(&self) -> &[[f64; 3]] {
        bytemuck::cast_slice(self.column(Column::Velocities))
    }

    /// Accelerations computed last, in units of the frame.
    pub fn accelerations(&self) -> &[[f64; 3]] {
        bytemuck::cast_slice(self.column(Column::Accelerations))
    }

    /// Jerks computed last, in units of the frame; empty where there are none.
    pub fn jerks(&self) -> &[[f64; 3]] {
        bytemuck::cast_slice(self.column(Column::Jerks))
    }

    /// Snaps computed last and crackles of the last steps, in units of the frame; empty where there
    /// are none.
    pub fn higher(&self) -> &[[[f64; 3]; 2]] {
        bytemuck::cast_slice(self.column(Column::Higher))
    }

    /// The steps that block time steps allow next, in the unit of the run; empty where there are
    /// none.
    pub fn own_steps(&self) -> &[f64] {
        self.column(Column::OwnSteps)
    }

    /// Neighbour spheres; empty where there is no neighbour scheme.
    pub fn spheres(&self) -> &[Sphere] {
        bytemuck::cast_slice(self.column(Column::Spheres))
    }

    /// The state of some of the bodies.
    pub(crate) fn part(&self, bodies: Range<usize>) -> Self {
        Self::of(self.frame, |column| {
            let each = column.units().len();
            let part = self
                .column(column)
                .get(bodies.start * each..bodies.end * each);
            part.unwrap_or_default().to_vec() // of a column that is not there
        })
    }

    /// Adds the state of more bodies.
    ///
    /// # Panics
    /// If it is in another frame.
    pub(crate) fn append(&mut self, more: Self) {
        assert_eq!(more.frame, self.frame, "in the same units");
        for (column, more) in self.columns.iter_mut().zip(more.columns) {
            column.extend(more);
        }
    }

    /// Checks that it can be the state of a backend with so many bodies in a frame, which has a
    /// neighbour scheme or none, and no groups.
    ///
    /// # Errors
    /// [`ForceError::OtherState`] says what differs.
    pub(crate) fn fits(
        &self,
        bodies: usize,
        frame: &Frame,
        has_neighbours: bool,
    ) -> Result<(), ForceError> {
        if !self.groups.is_empty() {
            return Err(ForceError::OtherState(
                "it is of a run with regularised groups",
            ));
        }
        self.columns_fit(bodies, frame, has_neighbours)
    }

    /// Like [`fits`](Self::fits), but of columns alone.
    ///
    /// # Errors
    /// [`ForceError::OtherState`] says what differs.
    pub(crate) fn columns_fit(
        &self,
        bodies: usize,
        frame: &Frame,
        has_neighbours: bool,
    ) -> Result<(), ForceError> {
        if self.has(Column::Spheres) && !has_neighbours {
            return Err(ForceError::OtherState(
                "it is of a run with a neighbour scheme",
            ));
        }
        let mut columns = COLUMNS.iter().zip(&self.columns);
        let is_complete = columns.all(|(row, numbers)| {
            let may_be_missing = row.flag != 0;
            numbers.len() == bodies * row.units.len() || (may_be_missing && numbers.is_empty())
        });
        match is_complete {
            false => Err(ForceError::OtherState("it is of another number of bodies")),
            true if self.frame != *frame => Err(ForceError::OtherState(
                "its vectors are in other units; it is of another kernel, or was changed",
            )),
            true => Ok(()),
        }
    }
}
