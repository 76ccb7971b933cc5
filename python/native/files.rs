//! Snapshot files.

use std::path::PathBuf;

use allpairs::diagnostics::Sample;
use allpairs::io::{self, Format, Overwrite, Reading, Snapshot};
use allpairs::units::{ColumnUnits, Measure, Units, parts_of_heading};
use pyo3::prelude::*;

use crate::bodies::{Arrays, NewArrays, arrays, bodies};
use crate::errors::{Failure, Kind};
use crate::models::parsed;
use crate::work::{compute, compute_long};

fn format(name: Option<&str>) -> Result<Option<Format>, Failure> {
    name.map(|name| parsed(name, "format")).transpose()
}

/// Bodies, time, units, format and notes of a file.
type Contents<'py> = (
    NewArrays<'py>,
    f64,
    Option<String>,
    &'static str,
    Vec<String>,
);

/// Reads a file.
#[pyfunction]
pub(crate) fn load<'py>(
    py: Python<'py>,
    path: PathBuf,
    name: Option<&str>,
    physical: Option<&str>,
) -> PyResult<Contents<'py>> {
    let format = format(name).map_err(|why| why.raise(py))?;
    let physical = physical.map(|name| parsed(name, "physical")).transpose();
    let physical = physical.map_err(|why: Failure| why.raise(py))?;
    let reading = Reading {
        format,
        physical,
        units: None,
    };
    let loaded = compute_long(py, move || Ok(io::load(&path, reading)?))?;
    let Snapshot { time, bodies } = loaded.snapshot;
    let units = loaded.units.map(|units| units.list());
    let format = loaded.format.name();
    Ok((arrays(py, bodies)?, time, units, format, loaded.notes))
}

/// Writes a file; returns remarks on what it does not keep.
#[pyfunction]
pub(crate) fn save(
    py: Python<'_>,
    path: PathBuf,
    all: Arrays<'_>,
    time: f64,
    units: Option<&str>,
    name: Option<&str>,
    overwrite: bool,
) -> PyResult<Vec<String>> {
    let bodies = bodies(&all)?;
    compute(py, || {
        let format = format(name)?.or_else(|| Format::from_path(&path));
        let format = format.ok_or_else(|| {
            let text = format!(
                "the name {} does not tell a format: use .allpairs, .hdf5, .npz, .vtp, .csv, .tipsy, .bin, .petar \
                 or .nbody6, or give `format`",
                path.display()
            );
            Failure::of("path", text)
        })?;
        let units = units.map(|units| parsed(units, "units")).transpose()?;
        let snapshot = Snapshot { time, bodies };
        let overwrite = Overwrite::from(overwrite);
        io::write_in_units(&path, format, &snapshot, units, overwrite)?;
        Ok(io::remarks(format, &snapshot, units))
    })
}

/// Headings of the columns of a log of bodies in these units, after the steps, and the factors of its numbers. Times are in
/// the unit of this name.
#[pyfunction]
pub(crate) fn log_columns(
    py: Python<'_>,
    units: Option<&str>,
    time: Option<&str>,
) -> PyResult<(Vec<String>, Vec<f64>)> {
    let found = || {
        let units = units.map(|units| parsed::<Units>(units, "units"));
        let Some(units) = units.transpose()? else {
            let names = Sample::COLUMNS.map(str::to_owned).to_vec();
            return Ok((names, vec![1.0; Sample::COLUMNS.len()]));
        };
        let time = time.map(|name| parsed::<Measure>(&format!("1{name}"), "time"));
        let time = time.transpose()?;
        let time = time.and_then(|time| time.shown_time(&units));
        let of_log = ColumnUnits::of(&units, time.unwrap_or_else(|| units.shown_time(1.0)));
        let columns = || Sample::COLUMNS.into_iter().zip(Sample::MEASURED);
        Ok((
            columns()
                .map(|(name, what)| of_log.heading(name, what))
                .collect(),
            columns().map(|(_, what)| of_log.factor(what)).collect(),
        ))
    };
    found().map_err(|why: Failure| why.raise(py))
}

/// The name of the column of a table under this heading, and the factor from numbers in the units of the bodies to its
/// numbers.
#[pyfunction]
pub(crate) fn column_of_table<'a>(
    py: Python<'_>,
    heading: &'a str,
    units: Option<&str>,
) -> PyResult<(&'a str, f64)> {
    let (name, unit) = parts_of_heading(heading);
    let found = || {
        let units = units.map(|units| parsed::<Units>(units, "units"));
        let (Some(units), Some(unit)) = (units.transpose()?, unit) else {
            return Ok(1.0);
        };
        let factor = ColumnUnits::factor_of_unit(&units, unit);
        factor.ok_or_else(|| {
            let why = format!("the heading `{heading}` of a table of the run has an unknown unit");
            Failure::new(Kind::File, why)
        })
    };
    Ok((name, found().map_err(|why: Failure| why.raise(py))?))
}
