//! The part of the Python package `allpairs` that is Rust: numpy arrays in, the library's work, numpy
//! arrays out. What users see is in `allpairs/*.py`; nothing is computed here or there.

mod bodies;
mod drift_watch;
mod errors;
mod fields;
mod files;
mod forces;
mod gradients;
mod in_place;
mod models;
mod on_device;
mod pictures;
mod settings;
mod simulation;
mod sums;
mod work;
mod xla;

use std::ffi::OsString;

use allpairs::diagnostics;
use allpairs::encounters::{OnCollision, OnEscape};
use allpairs::initial_conditions::GENERATORS;
use allpairs::integrator::Integrator;
use allpairs::io::{Format, Velocities};
use allpairs::physics::ForceLaw;
use allpairs::recording;
use allpairs::settings::Front;
use allpairs::variants::preferred::ForceAccuracy;
use allpairs_lab::studies::catalogue;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Names of what can be chosen.
#[pyfunction]
fn names(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let names = PyDict::new(py);
    let generators: Vec<&str> = GENERATORS.iter().map(|generator| generator.name).collect();
    let integrators = Integrator::ALL.map(Integrator::name).to_vec();
    let kernels: Vec<&str> = catalogue().all().map(|variant| variant.name).collect();
    names.set_item("generator", generators)?;
    names.set_item("integrator", integrators)?;
    names.set_item("kernel", kernels)?;
    names.set_item("law", ForceLaw::ALL.map(ForceLaw::name).to_vec())?;
    let accuracies = ForceAccuracy::ALL.map(ForceAccuracy::name);
    names.set_item("accuracy", accuracies.to_vec())?;
    names.set_item(
        "on_collision",
        OnCollision::ALL.map(OnCollision::name).to_vec(),
    )?;
    names.set_item("on_escape", OnEscape::ALL.map(OnEscape::name).to_vec())?;
    names.set_item("physical", Velocities::ALL.map(Velocities::name).to_vec())?;
    names.set_item("format", Format::known_names().collect::<Vec<_>>())?;
    names.set_item("table", recording::tables().collect::<Vec<_>>())?;
    Ok(names)
}

/// How bodies move with a wrong G, by their 2K/|U|; None where G may be right.
#[pyfunction]
fn odd_motion(virial_ratio: f64) -> Option<&'static str> {
    diagnostics::odd_motion(virial_ratio)
}

/// GPUs as (device, name), and why there is none if there is none.
#[pyfunction]
fn devices() -> (Vec<(String, String)>, Option<String>) {
    match cuda_driver::devices() {
        Ok(gpus) => {
            let gpus = gpus.into_iter();
            let named = gpus.map(|gpu| (format!("cuda:{}", gpu.ordinal), gpu.name));
            (named.collect(), None)
        }
        Err(why) => (vec![], Some(why.to_string())),
    }
}

/// Runs the program `allpairs`, and returns its exit code.
#[pyfunction]
fn run_program(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    work::compute(py, || {
        let code = allpairs_cli::main(arguments);
        Front::Python.speak();
        Ok(code)
    })
}

/// Panics, as a defect of the library would, so that a test can see what becomes of it.
#[pyfunction]
fn defect(py: Python<'_>) -> PyResult<()> {
    work::compute(py, || panic!("a defect on purpose"))
}

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    Front::Python.speak(); // the program, where it runs here, speaks its own
    work::loaded()?;
    // Loads numpy's interface, which an interrupt would make panic later on.
    PyArray1::<f64>::zeros(module.py(), 0, false);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<in_place::InPlace>()?;
    for function in [
        wrap_pyfunction!(names, module)?,
        wrap_pyfunction!(devices, module)?,
        wrap_pyfunction!(odd_motion, module)?,
        wrap_pyfunction!(run_program, module)?,
        wrap_pyfunction!(defect, module)?,
        wrap_pyfunction!(models::generate, module)?,
        wrap_pyfunction!(models::generators, module)?,
        wrap_pyfunction!(models::units, module)?,
        wrap_pyfunction!(models::shown_time, module)?,
        wrap_pyfunction!(models::convert, module)?,
        wrap_pyfunction!(models::measure, module)?,
        wrap_pyfunction!(files::load, module)?,
        wrap_pyfunction!(files::save, module)?,
        wrap_pyfunction!(files::log_columns, module)?,
        wrap_pyfunction!(files::column_of_table, module)?,
        wrap_pyfunction!(forces::accelerations, module)?,
        wrap_pyfunction!(forces::potentials, module)?,
        wrap_pyfunction!(forces::field_at, module)?,
        wrap_pyfunction!(forces::energy, module)?,
        wrap_pyfunction!(gradients::pull, module)?,
        wrap_pyfunction!(gradients::stages, module)?,
        wrap_pyfunction!(gradients::trajectory, module)?,
        wrap_pyfunction!(gradients::trajectory_pull, module)?,
        wrap_pyfunction!(sums::sums, module)?,
        wrap_pyfunction!(sums::sums_in_place, module)?,
        wrap_pyfunction!(xla::xla_handlers, module)?,
        wrap_pyfunction!(settings::kept_run, module)?,
        wrap_pyfunction!(pictures::image, module)?,
        wrap_pyfunction!(pictures::view, module)?,
        wrap_pyfunction!(pictures::charts, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
