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
use allpairs::variants::preferred::ForceAccuracy;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::bodies::{Arrays, bodies};
use crate::errors::{Failure, Kind, compute};
use crate::forces::{accuracy, device, kernel};
use crate::models::{options, parsed};
use crate::simulation::checkpoint_of;

/// Launch geometry where it is not the kernel's own: threads of a block, and of two-dimensional blocks
/// those along the sources and sources of each.
pub(crate) type Threads = (Option<u32>, Option<u32>, Option<u32>);

/// Settings as Python has them.
pub(crate) struct Settings<'a, 'py>(pub(crate) &'a Bound<'py, PyDict>);

impl<'py> Settings<'_, 'py> {
    pub(crate) fn get<T: for<'a> FromPyObject<'a, 'py>>(&self, name: &str) -> PyResult<T> {
        let value = self.0.get_item(name)?;
        let value = value.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        value.extract().map_err(Into::into)
    }
}

/// Encounters that these settings look for, if any; of bodies with the radii that are `kept`, or those of
/// the settings.
pub(crate) fn encounters(
    settings: &Settings<'_, '_>,
    bodies: usize,
    kept: Option<Vec<f64>>,
) -> PyResult<Option<Encounters>> {
    let (radii, escape) = (
        settings.get::<Option<Vec<f64>>>("radii")?,
        settings.get::<Option<f64>>("escape_radius")?,
    );
    let on_collision = settings.get::<Option<String>>("on_collision")?;
    let on_escape = settings.get::<Option<String>>("on_escape")?;
    // The names were compared with the lists on the way in.
    let on_collision = OnCollision::ALL
        .into_iter()
        .find(|known| on_collision.as_deref() == Some(known.name()));
    let on_escape = OnEscape::ALL
        .into_iter()
        .find(|known| on_escape.as_deref() == Some(known.name()));
    if on_collision.is_none() && escape.is_none() {
        return Ok(None);
    }
    let radii = kept.or(radii).unwrap_or_else(|| vec![0.0; bodies]);
    Ok(Some(Encounters {
        radii,
        on_collision: on_collision.unwrap_or(OnCollision::Log),
        escape: escape.map(|radius| (radius, on_escape.unwrap_or(OnEscape::Log))),
    }))
}

/// A builder of these settings.
pub(crate) fn builder(
    all: &Arrays<'_>,
    settings: &Settings<'_, '_>,
) -> PyResult<SimulationBuilder> {
    let py = all.0.py();
    let text = |name: &str| settings.get::<Option<String>>(name);
    let number = |name: &str| settings.get::<Option<f64>>(name);
    let mut builder = simulation::Simulation::builder(bodies(all)?)
        .systems(settings.get("systems")?)
        .start(settings.get("start")?);
    let raise = |failure: Failure| failure.raise(py);
    if let Some(units) = text("units")? {
        builder = builder.units(parsed(&units, "units").map_err(raise)?);
    }
    if let Some((name, of)) = settings.get::<Option<(String, Option<String>)>>("made_by")? {
        let generator = initial_conditions::find(&name);
        let generator = generator.map_err(|error| raise(error.into()))?;
        let options = options(of.as_deref()).map_err(raise)?;
        builder = builder.made_by(generator.name, generator.advice_of(&options));
    }
    let law = match settings.get::<String>("law")?.as_str() {
        "unit" => ForceLaw::Unit,
        "attract-repel" => {
            let (repulsion, drag) = (number("repulsion")?, number("drag")?);
            match ForceLaw::ATTRACT_REPEL {
                ForceLaw::AttractRepel {
                    repulsion: default,
                    damping,
                } => ForceLaw::AttractRepel {
                    repulsion: repulsion.unwrap_or(default),
                    damping: drag.unwrap_or(damping),
                },
                law => law,
            }
        }
        _ => ForceLaw::Gravity,
    };
    builder = builder.law(law);
    if let Some(integrator) = text("integrator")? {
        let mut all = Integrator::ALL.into_iter();
        let found = all.find(|known| known.name() == integrator);
        let found = found.ok_or_else(|| {
            raise(Failure::of(
                "integrator",
                format!("no integrator is called `{integrator}`"),
            ))
        })?;
        builder = builder.integrator(match (found, number("damping")?) {
            (Integrator::DampedEuler { .. }, Some(rate)) => Integrator::DampedEuler { rate },
            (found, _) => found,
        });
    }
    if let Some(g) = number("g")? {
        builder = builder.g(g);
    }
    if let Some(softening) = number("softening")? {
        builder = builder.softening(softening);
    }
    if let Some(dt) = number("dt")? {
        builder = builder.dt(dt);
    }
    if let Some(eta) = number("eta")? {
        builder = builder.eta(eta);
    }
    if settings.get("block")? {
        builder = builder.block_steps();
    }
    if let Some(neighbours) = text("neighbours")? {
        builder =
            builder.neighbours(parsed::<Neighbours>(&neighbours, "neighbours").map_err(raise)?);
    }
    if let Some(accuracy) = accuracy(text("accuracy")?.as_deref()).map_err(raise)? {
        builder = builder.accuracy(accuracy);
    }
    if let Some(kernel) = kernel(text("kernel")?.as_deref()).map_err(raise)? {
        builder = builder.kernel(kernel);
    }
    if settings.get("allow_inaccurate")? {
        builder = builder.allow_inaccurate();
    }
    let device = device(&settings.get::<String>("device")?).map_err(raise)?;
    Ok(builder.device(device))
}

/// Settings of a run that lies in a folder of the program's, and its checkpoint.
#[pyfunction]
pub(crate) fn kept_run<'py>(
    py: Python<'py>,
    folder: PathBuf,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyBytes>)> {
    let (run, saved) = compute(py, || {
        let run = allpairs_cli::kept_run(&folder)
            .map_err(|error| Failure::new(Kind::File, format!("{error:#}")))?;
        let saved = fs::read(&run.checkpoint)?;
        Ok((run, saved))
    })?;
    let checkpoint = compute(py, || checkpoint_of(&saved))?;
    let settings = PyDict::new(py);
    let (law, repulsion, drag) = match run.physics.law {
        ForceLaw::Gravity => ("gravity", None, None),
        ForceLaw::Unit => ("unit", None, None),
        ForceLaw::AttractRepel { repulsion, damping } => {
            ("attract-repel", Some(repulsion), Some(damping))
        }
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
    let accuracy = run.accuracy.map(|accuracy| match accuracy {
        ForceAccuracy::Fast => "fast",
        ForceAccuracy::Single => "single",
        ForceAccuracy::Double => "double",
    });
    let Shape {
        block: threads,
        len,
        luf,
    } = run.selection.shape;
    settings.set_item("systems", run.systems)?;
    settings.set_item("start", checkpoint.clock.start)?;
    settings.set_item("units", run.units.map(|units| units.list()))?;
    settings.set_item("field", run.fields)?;
    settings.set_item("orbit", run.orbit)?;
    settings.set_item("made_by", None::<()>)?;
    settings.set_item("law", law)?;
    settings.set_item("repulsion", repulsion)?;
    settings.set_item("drag", drag)?;
    settings.set_item("integrator", run.integrator.name())?;
    settings.set_item("damping", damping)?;
    settings.set_item("g", run.physics.g)?;
    settings.set_item("softening", run.physics.softening)?;
    settings.set_item("dt", dt)?;
    settings.set_item("eta", eta)?;
    settings.set_item("block", block)?;
    settings.set_item("neighbours", run.neighbours.map(|n| n.to_string()))?;
    settings.set_item("accuracy", accuracy)?;
    settings.set_item("kernel", run.selection.variant.name)?;
    settings.set_item("shape", (threads, len, luf))?;
    settings.set_item("tuned", false)?;
    settings.set_item("allow_inaccurate", run.allow_inaccurate)?;
    settings.set_item("device", run.selection.place.choice().to_string())?;
    let looked_for = run.encounters.as_ref();
    let escape = looked_for.and_then(|of| of.escape);
    settings.set_item("radii", None::<()>)?; // the checkpoint has them
    settings.set_item("on_collision", looked_for.map(|of| of.on_collision.name()))?;
    settings.set_item("escape_radius", escape.map(|(radius, _)| radius))?;
    settings.set_item("on_escape", escape.map(|(_, outcome)| outcome.name()))?;
    Ok((settings, PyBytes::new(py, &saved)))
}
