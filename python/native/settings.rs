//! Settings of a simulation as Python has them: a dictionary that a simulation is built by, and by which it
//! is resumed.

use std::fs;
use std::path::PathBuf;

use allpairs::backend::Neighbours;
use allpairs::encounters::{Encounters, OnCollision, OnEscape};
use allpairs::initial_conditions;
use allpairs::integrator::{Integrator, Pace, TimeSteps};
use allpairs::physics::ForceLaw;
use allpairs::simulation::{self, SimulationBuilder};
use allpairs::variants::Shape;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bodies::{Arrays, bodies};
use crate::errors::{Failure, Kind, compute};
use crate::forces::{accuracy, device, kernel};
use crate::models::{options, parsed};
use crate::simulation::checkpoint_of;

/// Launch geometry where it is not the kernel's own: threads of a block, and of two-dimensional blocks
/// those along the sources and sources of each.
pub(crate) type Threads = (Option<u32>, Option<u32>, Option<u32>);

/// Settings of a simulation. In Python they are a dictionary with the names of these fields (`Settings` in
/// `_simulation.py`), which is pickled with the simulation.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    systems: u32,
    start: f64,
    pub(crate) units: Option<String>,
    /// Generator, and the options that it was given.
    made_by: Option<(String, Option<String>)>,
    law: String,
    repulsion: Option<f64>,
    drag: Option<f64>,
    /// Texts, or objects of Python's.
    pub(crate) field: Vec<Py<PyAny>>,
    pub(crate) orbit: Option<String>,
    pub(crate) integrator: Option<String>,
    damping: Option<f64>,
    pub(crate) g: Option<f64>,
    pub(crate) softening: Option<f64>,
    pub(crate) dt: Option<f64>,
    pub(crate) eta: Option<f64>,
    block: bool,
    pub(crate) neighbours: Option<String>,
    accuracy: Option<String>,
    pub(crate) kernel: Option<String>,
    pub(crate) shape: Threads,
    pub(crate) tuned: bool,
    allow_inaccurate: bool,
    pub(crate) device: String,
    radii: Option<Vec<f64>>,
    on_collision: Option<String>,
    escape_radius: Option<f64>,
    on_escape: Option<String>,
}

/// Encounters that these settings look for, if any; of bodies with the radii that are `kept`, or those of
/// the settings.
pub(crate) fn encounters(
    settings: &Settings,
    bodies: usize,
    kept: Option<Vec<f64>>,
) -> Option<Encounters> {
    let (on_collision, on_escape) = (&settings.on_collision, &settings.on_escape);
    // The names were compared with the lists on the way in.
    let on_collision = OnCollision::ALL
        .into_iter()
        .find(|known| on_collision.as_deref() == Some(known.name()));
    let on_escape = OnEscape::ALL
        .into_iter()
        .find(|known| on_escape.as_deref() == Some(known.name()));
    if on_collision.is_none() && settings.escape_radius.is_none() {
        return None;
    }
    let radii = kept.or_else(|| settings.radii.clone());
    let escape = |radius| (radius, on_escape.unwrap_or(OnEscape::Log));
    Some(Encounters {
        radii: radii.unwrap_or_else(|| vec![0.0; bodies]),
        on_collision: on_collision.unwrap_or(OnCollision::Log),
        escape: settings.escape_radius.map(escape),
    })
}

/// A builder of these settings, but for fields, orbit, launch geometry and encounters.
pub(crate) fn builder(all: &Arrays<'_>, settings: &Settings) -> PyResult<SimulationBuilder> {
    let py = all.0.py();
    let raise = |failure: Failure| failure.raise(py);
    let mut builder = simulation::Simulation::builder(bodies(all)?)
        .systems(settings.systems)
        .start(settings.start);
    if let Some(units) = &settings.units {
        builder = builder.units(parsed(units, "units").map_err(raise)?);
    }
    if let Some((name, of)) = &settings.made_by {
        let generator = initial_conditions::find(name);
        let generator = generator.map_err(|error| raise(error.into()))?;
        let options = options(of.as_deref()).map_err(raise)?;
        builder = builder.made_by(generator.name, generator.advice_of(&options));
    }
    // The name was compared with the list on the way in.
    let mut laws = ForceLaw::ALL.into_iter();
    let mut law = laws
        .find(|known| known.name() == settings.law)
        .unwrap_or(ForceLaw::Gravity);
    if let ForceLaw::AttractRepel { repulsion, damping } = &mut law {
        *repulsion = settings.repulsion.unwrap_or(*repulsion);
        *damping = settings.drag.unwrap_or(*damping);
    }
    builder = builder.law(law);
    if let Some(integrator) = &settings.integrator {
        let mut all = Integrator::ALL.into_iter();
        let found = all.find(|known| known.name() == integrator);
        let found = found.ok_or_else(|| {
            raise(Failure::of(
                "integrator",
                format!("no integrator is called `{integrator}`"),
            ))
        })?;
        builder = builder.integrator(match (found, settings.damping) {
            (Integrator::DampedEuler { .. }, Some(rate)) => Integrator::DampedEuler { rate },
            (found, _) => found,
        });
    }
    if let Some(g) = settings.g {
        builder = builder.g(g);
    }
    if let Some(softening) = settings.softening {
        builder = builder.softening(softening);
    }
    if let Some(dt) = settings.dt {
        builder = builder.dt(dt);
    }
    if let Some(eta) = settings.eta {
        builder = builder.eta(eta);
    }
    if settings.block {
        builder = builder.block_steps();
    }
    if let Some(neighbours) = &settings.neighbours {
        builder =
            builder.neighbours(parsed::<Neighbours>(neighbours, "neighbours").map_err(raise)?);
    }
    if let Some(accuracy) = accuracy(settings.accuracy.as_deref()).map_err(raise)? {
        builder = builder.accuracy(accuracy);
    }
    if let Some(kernel) = kernel(settings.kernel.as_deref()).map_err(raise)? {
        builder = builder.kernel(kernel);
    }
    if settings.allow_inaccurate {
        builder = builder.allow_inaccurate();
    }
    Ok(builder.device(device(&settings.device).map_err(raise)?))
}

/// Settings of a run that lies in a folder of the program's, and its checkpoint.
#[pyfunction]
pub(crate) fn kept_run<'py>(
    py: Python<'py>,
    folder: PathBuf,
) -> PyResult<(Settings, Bound<'py, PyBytes>)> {
    let (run, saved) = compute(py, || {
        let run = allpairs_cli::kept_run(&folder)
            .map_err(|error| Failure::new(Kind::File, format!("{error:#}")))?;
        let saved = fs::read(&run.checkpoint)?;
        Ok((run, saved))
    })?;
    let checkpoint = compute(py, || checkpoint_of(&saved))?;
    let (repulsion, drag) = match run.physics.law {
        ForceLaw::AttractRepel { repulsion, damping } => (Some(repulsion), Some(damping)),
        _ => (None, None),
    };
    let (dt, eta, block) = match run.pace {
        Pace::Fixed(dt) => (dt, None, false),
        Pace::Adaptive {
            eta,
            longest,
            steps,
            ..
        } => (longest, Some(eta), steps == TimeSteps::Blocks),
    };
    let damping = match run.integrator {
        Integrator::DampedEuler { rate } => Some(rate),
        _ => None,
    };
    let Shape {
        block: threads,
        len,
        luf,
    } = run.selection.shape;
    let looked_for = run.encounters.as_ref();
    let escape = looked_for.and_then(|of| of.escape);
    let fields = run.fields.into_iter();
    let field = fields.map(|text| text.into_py_any(py));
    let settings = Settings {
        systems: run.systems,
        start: checkpoint.clock.start,
        units: run.units.map(|units| units.list()),
        made_by: None,
        law: run.physics.law.name().to_owned(),
        repulsion,
        drag,
        field: field.collect::<PyResult<_>>()?,
        orbit: run.orbit,
        integrator: Some(run.integrator.name().to_owned()),
        damping,
        g: Some(run.physics.g),
        softening: Some(run.physics.softening),
        dt: Some(dt),
        eta,
        block,
        neighbours: run.neighbours.map(|n| n.to_string()),
        accuracy: run.accuracy.map(|accuracy| accuracy.name().to_owned()),
        kernel: Some(run.selection.variant.name.to_owned()),
        shape: (threads, len, luf),
        tuned: false,
        allow_inaccurate: run.allow_inaccurate,
        device: run.selection.place.choice().to_string(),
        radii: None, // the checkpoint has them
        on_collision: looked_for.map(|of| of.on_collision.name().to_owned()),
        escape_radius: escape.map(|(radius, _)| radius),
        on_escape: escape.map(|(_, outcome)| outcome.name().to_owned()),
    };
    Ok((settings, PyBytes::new(py, &saved)))
}
