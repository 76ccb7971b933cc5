//! Bodies as numpy arrays. The library keeps a column for each coordinate, numpy's users want rows of
//! three: arrays are copied on the way in and out, O(N) beside the O(N²) of what is done with them.

use allpairs::bodies::{Bodies, BodyKind};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::errors::Failure;

/// Positions, velocities, masses, ids and kinds, contiguous.
pub(crate) type Arrays<'py> = (
    PyReadonlyArray2<'py, f64>,
    PyReadonlyArray2<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, u64>,
    PyReadonlyArray1<'py, u8>,
);

/// As [`Arrays`], on the way out.
pub(crate) type NewArrays<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u8>>,
);

/// Bodies of arrays; they are not checked.
pub(crate) fn bodies(arrays: &Arrays<'_>) -> PyResult<Bodies> {
    let (pos, vel, m, id, kind) = arrays;
    let py = pos.py();
    let kinds = kind.as_slice()?.iter().map(|&number| {
        let kind = BodyKind::ALL.get(usize::from(number)).copied();
        kind.ok_or_else(|| {
            let text = format!("`kind` holds {number}: use 0 (gas), 1 (dark) or 2 (star)");
            Failure::of("kind", text).raise(py)
        })
    });
    let kind = kinds.collect::<PyResult<Vec<_>>>()?;
    let [x, y, z] = columns(pos)?;
    let [vx, vy, vz] = columns(vel)?;
    Ok(Bodies {
        x,
        y,
        z,
        vx,
        vy,
        vz,
        mass: m.as_slice()?.to_vec(),
        id: id.as_slice()?.to_vec(),
        kind,
    })
}

pub(crate) fn columns(rows: &PyReadonlyArray2<'_, f64>) -> PyResult<[Vec<f64>; 3]> {
    let (rows, _) = rows.as_slice()?.as_chunks::<3>();
    Ok([0, 1, 2].map(|axis| rows.iter().map(|row| row[axis]).collect()))
}

/// Rows of three, as the library's functions on slices take them.
pub(crate) fn rows<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<&'a [[f64; 3]]> {
    Ok(array.as_slice()?.as_chunks::<3>().0)
}

/// An array of rows of three.
pub(crate) fn array<'py>(
    py: Python<'py>,
    rows: Vec<[f64; 3]>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let n = rows.len();
    PyArray1::from_vec(py, rows.into_flattened()).reshape([n, 3])
}

/// Arrays of bodies.
pub(crate) fn arrays<'py>(py: Python<'py>, bodies: Bodies) -> PyResult<NewArrays<'py>> {
    let n = bodies.len();
    let row = |[x, y, z]: [&[f64]; 3]| (0..n).map(|i| [x[i], y[i], z[i]]).collect::<Vec<_>>();
    let pos = row([&bodies.x, &bodies.y, &bodies.z]);
    let vel = row([&bodies.vx, &bodies.vy, &bodies.vz]);
    let number = |kind: &BodyKind| BodyKind::ALL.iter().position(|other| other == kind);
    let kinds = bodies.kind.iter();
    let kinds = kinds.map(|kind| number(kind).unwrap_or_default() as u8);
    Ok((
        array(py, pos)?,
        array(py, vel)?,
        PyArray1::from_vec(py, bodies.mass),
        PyArray1::from_vec(py, bodies.id),
        PyArray1::from_vec(py, kinds.collect()),
    ))
}
