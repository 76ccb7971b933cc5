//! The log of neighbours and bound pairs of runs without softening, `pairs.csv`.

use std::io;
use std::path::Path;

use super::heading::{Column, Heading};
use super::rows::{Cell, Rows};
use crate::binaries::{Census, Pair};
use crate::bodies::Bodies;
use crate::physics::Physics;
use crate::units::Measured;

/// Name of the log in a run's folder.
pub(super) const NAME: &str = "pairs.csv";

/// Columns of the log; the last ones are of the pair with the most binding energy, and empty where there is
/// no pair.
const COLUMNS: [Column; 11] = [
    ("time", Measured::Time),
    ("least_distance", Measured::Length),
    ("median_distance", Measured::Length),
    ("pairs", Measured::Bare),
    ("hard_pairs", Measured::Bare),
    ("id_a", Measured::Bare),
    ("id_b", Measured::Bare),
    ("semi_major_axis", Measured::Length),
    ("eccentricity", Measured::Bare),
    ("period", Measured::Time),
    ("binding_energy", Measured::Energy),
];

/// A new log in a folder.
pub(super) fn begin(folder: &Path, heading: &Heading) -> io::Result<Rows> {
    Rows::create(folder, NAME, &COLUMNS, heading)
}

/// That of a run that was stopped after `steps`.
pub(super) fn resume(folder: &Path, steps: u64, heading: &Heading) -> io::Result<Rows> {
    Rows::resume(folder, NAME, &COLUMNS, steps, heading)
}

/// Elements of a pair's orbit, in the order of the columns.
pub(super) fn elements(pair: &Pair) -> [Cell; 4] {
    let numbers = [
        pair.semi_major_axis,
        pair.eccentricity,
        pair.period,
        pair.binding_energy,
    ];
    numbers.map(Cell::Number)
}

/// Takes the census of bodies and appends it.
pub(super) fn append(
    rows: &Rows,
    (steps, time): (u64, f64),
    bodies: &Bodies,
    physics: &Physics,
) -> io::Result<()> {
    let census = Census::of(bodies, physics);
    let mut cells = vec![
        Cell::Number(time),
        Cell::Number(census.least_distance),
        Cell::Number(census.median_distance),
        Cell::Id(census.pairs.len() as u64),
        Cell::Id(census.hard() as u64),
    ];
    match census.pairs.first() {
        Some(pair) => {
            cells.extend(pair.ids.map(Cell::Id));
            cells.extend(elements(pair));
        }
        None => cells.extend([Cell::Number(f64::NAN); 6]),
    }
    rows.append(steps, &cells)
}
