//! Settings of a simulation as Python has them: a dictionary that a simulation is built by, and by which it
//! is resumed.

use std::fs;
use std::path::PathBuf;

use allpairs::backend::Neighbours;
use allpairs::encounters::{Encounters, OnCollision, OnEscape};
use allpairs::initial_conditions;
use allpairs::integrator::{Integrator, TimeSteps};
use allpairs::physics::ForceLaw;
use allpairs::run::RunSpec;
use allpairs::variants::Shape;
use allpairs_cli::KeptRun;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, Kind};
use crate::forces::{accuracy, device};
use crate::models::{options, parsed};
use crate::work::compute;

/// Launch geometry where it is not the kernel's own: threads of a block, and of two-dimensional blocks
/// those along the sources and sources of each.
pub(crate) type Threads = (Option<u32>, Option<u32>, Option<u32>);

/// Settings of a simulation. In Python they are a dictionary with the names of these fields (`Settings` in
/// `_simulation.py`), which is pickled with the simulation.
#[derive(Default, FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    systems: u32,
    start: f64,
    pub(crate) units: Option<String>,
    /// Generator, and the options that it was given.
    made_by: Option<(String, Option<String>)>,
    law: Option<String>,
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
    block: Option<bool>,
    pub(crate) neighbours: Option<String>,
    groups: Option<bool>,
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

/// The specification of these settings, but for fields, orbit and encounters.
pub(crate) fn spec(settings: &Settings) -> Result<RunSpec, Failure> {
    let made_by = settings.made_by.as_ref().map(|(name, of)| {
        let generator = initial_conditions::find(name)?;
        let advice = generator.advice_of(&options(of.as_deref())?);
        Ok::<_, Failure>((generator.name, advice))
    });
    // Names of laws were compared with the list on the way in.
    let law = settings.law.as_deref();
    let law = law.and_then(|law| ForceLaw::ALL.into_iter().find(|known| known.name() == law));
    let integrator = settings.integrator.as_deref().map(|name| {
        let mut all = Integrator::ALL.into_iter();
        all.find(|known| known.name() == name)
            .ok_or_else(|| Failure::of("integrator", format!("no integrator is called `{name}`")))
    });
    let units = settings.units.as_deref();
    let neighbours = settings.neighbours.as_deref();
    let neighbours = neighbours.map(|text| parsed::<Neighbours>(text, "neighbours"));
    let (block, len, luf) = settings.shape;
    Ok(RunSpec {
        systems: settings.systems,
        units: units.map(|units| parsed(units, "units")).transpose()?,
        made_by: made_by.transpose()?,
        law,
        repulsion: settings.repulsion,
        drag: settings.drag,
        g: settings.g,
        softening: settings.softening,
        integrator: integrator.transpose()?,
        damping: settings.damping,
        dt: settings.dt,
        eta: settings.eta,
        stepping: settings.block.map(|block| match block {
            true => TimeSteps::Blocks,
            false => TimeSteps::Shared,
        }),
        neighbours: neighbours.transpose()?,
        groups: settings.groups,
        start: settings.start,
        device: device(&settings.device)?,
        kernel: settings.kernel.clone(),
        shape: Shape { block, len, luf },
        accuracy: accuracy(settings.accuracy.as_deref())?,
        allow_inaccurate: settings.allow_inaccurate,
        tuned: settings.tuned,
        ..RunSpec::default()
    })
}

impl Settings {
    /// Takes over what was chosen.
    pub(crate) fn settle(&mut self, spec: &RunSpec) {
        let Shape { block, len, luf } = spec.shape;
        (self.repulsion, self.drag) = match spec.law {
            Some(ForceLaw::AttractRepel { repulsion, damping }) => (Some(repulsion), Some(damping)),
            _ => (None, None),
        };
        self.damping = match spec.integrator {
            Some(Integrator::DampedEuler { rate }) => Some(rate),
            _ => None,
        };
        self.systems = spec.systems;
        self.law = spec.law.map(|law| law.name().to_owned());
        self.g = spec.g;
        self.softening = spec.softening;
        self.integrator = spec.integrator.map(|it| it.name().to_owned());
        self.dt = spec.dt;
        self.eta = spec.eta;
        self.block = Some(spec.time_steps() == TimeSteps::Blocks);
        self.neighbours = spec.neighbours.map(|neighbours| neighbours.to_string());
        self.groups = spec.groups;
        self.accuracy = spec.accuracy.map(|accuracy| accuracy.name().to_owned());
        self.kernel = spec.kernel.clone();
        self.shape = (block, len, luf);
        self.device = spec.device.to_string();
    }
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
    let KeptRun { spec, .. } = &run;
    let encounters = spec.encounters.as_ref();
    let escape = encounters.and_then(|of| of.escape);
    let fields = run.fields.iter();
    let field = fields.map(|text| text.into_py_any(py));
    let mut settings = Settings {
        start: spec.start,
        units: spec.units.map(|units| units.list()),
        field: field.collect::<PyResult<_>>()?,
        orbit: run.orbit.clone(),
        allow_inaccurate: spec.allow_inaccurate,
        on_collision: encounters.map(|of| of.on_collision.name().to_owned()),
        escape_radius: escape.map(|(radius, _)| radius),
        on_escape: escape.map(|(_, outcome)| outcome.name().to_owned()),
        ..Settings::default() // radii are in the checkpoint
    };
    settings.settle(spec);
    Ok((settings, PyBytes::new(py, &saved)))
}
