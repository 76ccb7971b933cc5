//! Pictures, pages and charts.

use std::path::{Path, PathBuf};

use allpairs::io::{Overwrite, Snapshot};
use allpairs::output::{DensityPicture, RunLog, Section, Viewer, run_charts};
use allpairs::units::Units;
use numpy::{PyArray1, PyArray3, PyArrayMethods};
use pyo3::prelude::*;

use crate::bodies::{Arrays, bodies};
use crate::models::parsed;
use crate::work::{compute, compute_long};

/// A picture of the surface density, and the centre and half width of what it shows; also as a file.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn image<'py>(
    py: Python<'py>,
    all: Arrays<'py>,
    axes: Vec<String>,
    size: [u32; 2],
    colour_map: String,
    select: String,
    weight: String,
    half_width: Option<f64>,
    centre: Option<[f64; 3]>,
    decades: f64,
    path: Option<PathBuf>,
    overwrite: bool,
) -> PyResult<(Bound<'py, PyArray3<u8>>, [f64; 3], f64)> {
    let bodies = bodies(&all)?;
    let (image, frame) = compute_long(py, move || {
        bodies.check()?;
        let axes = axes.iter().map(|axes| parsed(axes, "axes"));
        let mut picture = DensityPicture {
            width: size[0],
            height: size[1],
            projections: axes.collect::<Result<_, _>>()?,
            selection: parsed(&select, "select")?,
            weight: parsed(&weight, "weight")?,
            frame: None,
            decades,
            brightest: None,
            colour_map: parsed(&colour_map, "colour_map")?,
        };
        let around = Section::around(&bodies, picture.selection);
        let frame = Section {
            centre: centre.unwrap_or(around.centre),
            half_width: half_width.unwrap_or(around.half_width),
        };
        picture.frame = Some(frame);
        if let Some(path) = &path {
            picture.write(path, &bodies, Overwrite::from(overwrite))?;
        }
        Ok((picture.render(&bodies)?, frame))
    })?;
    let shape = [image.height as usize, image.width as usize, 3];
    let pixels = PyArray1::from_vec(py, image.rgb).reshape(shape)?;
    Ok((pixels, frame.centre, frame.half_width))
}

/// Writes the page that turns snapshots.
#[pyfunction]
pub(crate) fn view(
    py: Python<'_>,
    snapshots: Vec<(Arrays<'_>, f64)>,
    title: &str,
    most_bodies: usize,
    path: PathBuf,
    overwrite: bool,
) -> PyResult<()> {
    let snapshot = |(all, time): &(Arrays<'_>, f64)| -> PyResult<Snapshot> {
        let (bodies, time) = (bodies(all)?, *time);
        Ok(Snapshot { time, bodies })
    };
    let snapshots = snapshots.iter().map(snapshot);
    let snapshots = snapshots.collect::<PyResult<Vec<_>>>()?;
    compute(py, || {
        let mut viewer = Viewer::new(title, most_bodies);
        for snapshot in &snapshots {
            viewer.add(snapshot)?;
        }
        Ok(viewer.write(&path, Overwrite::from(overwrite))?)
    })
}

/// Charts of a log, as names and SVG; also as files in a folder.
#[pyfunction]
pub(crate) fn charts(
    py: Python<'_>,
    log: &str,
    subtitle: &str,
    units: Option<&str>,
    folder: Option<PathBuf>,
    overwrite: bool,
) -> PyResult<Vec<(String, String)>> {
    compute(py, || {
        let units = units.map(|units| parsed::<Units>(units, "units"));
        let units = units.transpose()?;
        let charts = run_charts(&RunLog::parse(log)?, subtitle, units)?;
        let mut drawn = vec![];
        for (name, chart) in charts {
            if let Some(folder) = &folder {
                let path = |extension| Path::new(folder).join(&name).with_extension(extension);
                for extension in ["png", "svg"] {
                    chart.write(&path(extension), Overwrite::from(overwrite))?;
                }
            }
            drawn.push((name, chart.svg()?));
        }
        Ok(drawn)
    })
}
