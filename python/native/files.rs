//! Snapshot files.

use std::path::PathBuf;

use allpairs::io::{self, Format, Overwrite, Reading, Snapshot};
use pyo3::prelude::*;

use crate::bodies::{Arrays, NewArrays, arrays, bodies};
use crate::errors::Failure;
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
