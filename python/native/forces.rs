//! Forces and potentials in one call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use allpairs::backend::{ForceError, HighestDerivative, Operation};
use allpairs::bodies::Bodies;
use allpairs::diagnostics::kinetic;
use allpairs::force::cpu;
use allpairs::gpu_kernels::numerics::Precision;
use allpairs::integrator::Integrator;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::run::remark_on_single;
use allpairs::selection::{DeviceChoice, Place, Request, fits, select};
use allpairs::simd::InstructionSet;
use allpairs::test_particles::Kinds;
use allpairs::variants::Variant;
use allpairs::variants::preferred::ForceAccuracy;
use allpairs_lab::studies::catalogue;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::bodies::{Arrays, array, bodies, columns, rows};
use crate::errors::Failure;
use crate::models::parsed;
use crate::work::compute_long;

/// Accuracy by its name.
pub(crate) fn accuracy(name: Option<&str>) -> Result<Option<ForceAccuracy>, Failure> {
    let Some(name) = name else {
        return Ok(None);
    };
    let mut all = ForceAccuracy::ALL.into_iter();
    match all.find(|known| known.name() == name) {
        Some(found) => Ok(Some(found)),
        None => {
            let text = format!("`accuracy` must be fast, single or double, got {name}");
            Err(Failure::of("accuracy", text))
        }
    }
}

/// Device by its name.
pub(crate) fn device(name: &str) -> Result<DeviceChoice, Failure> {
    parsed(name, "device")
}

/// Kernel by its name.
pub(crate) fn kernel(name: Option<&str>) -> Result<Option<&'static Variant>, Failure> {
    name.map(|name| catalogue().find(name))
        .transpose()
        .map_err(|error| Failure::of("kernel", error))
}

/// Refuses a kernel that computes with fewer digits than the accuracy asks for.
pub(crate) fn suit(
    accuracy: Option<ForceAccuracy>,
    kernel: Option<&'static Variant>,
) -> Result<(), Failure> {
    let (Some(accuracy), Some(kernel)) = (accuracy, kernel) else {
        return Ok(());
    };
    let lacks_digits = matches!(
        (accuracy, kernel.precision()),
        (ForceAccuracy::Double, Precision::F16 | Precision::F32)
            | (ForceAccuracy::Single, Precision::F16)
    );
    match lacks_digits {
        false => Ok(()),
        true => Err(Failure::of(
            "accuracy",
            format!(
                "`accuracy` {} asks for more digits than the `kernel` {} computes: leave out one of them",
                accuracy.name(),
                kernel.name
            ),
        )),
    }
}

pub(crate) fn gravity(g: f64, softening: f64) -> Result<Physics, Failure> {
    if !(softening.is_finite() && softening >= 0.0) {
        let text = format!("`eps` must be ≥ 0 and finite, got {softening}");
        return Err(Failure::of("eps", text));
    }
    if !g.is_finite() {
        return Err(Failure::of("G", format!("`G` must be finite, got {g}")));
    }
    Ok(Physics {
        law: ForceLaw::Gravity,
        g,
        softening,
    })
}

/// Machines that were opened: a GPU is opened once.
static MACHINES: Mutex<Option<HashMap<String, Arc<Machine>>>> = Mutex::new(None);

pub(crate) fn machine(place: Place) -> Arc<Machine> {
    let mut machines = MACHINES.lock().unwrap_or_else(PoisonError::into_inner);
    let opened = machines.get_or_insert_default();
    let name = place.choice().to_string();
    Arc::clone(
        opened
            .entry(name)
            .or_insert_with(|| Arc::new(Machine::new(place))),
    )
}

/// Accelerations, jerks if they were asked for, and a remark on their errors.
type ForceArrays<'py> = (
    Bound<'py, PyArray2<f64>>,
    Option<Bound<'py, PyArray2<f64>>>,
    Option<String>,
);

/// Accelerations of bodies by each other; with velocities, their jerks too.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn accelerations<'py>(
    py: Python<'py>,
    pos: PyReadonlyArray2<'py, f64>,
    m: PyReadonlyArray1<'py, f64>,
    eps: f64,
    g: f64,
    accuracy: Option<String>,
    device: String,
    kernel: Option<String>,
    vel: Option<PyReadonlyArray2<'py, f64>>,
) -> PyResult<ForceArrays<'py>> {
    let mut bodies = Bodies::at_rest(rows(&pos)?, m.as_slice()?);
    let with_jerks = vel.is_some();
    if let Some(vel) = &vel {
        [bodies.vx, bodies.vy, bodies.vz] = columns(vel)?;
    }
    let (accelerations, jerks, remark) = compute_long(py, move || {
        let physics = gravity(g, eps)?;
        bodies.check()?;
        let given = self::accuracy(accuracy.as_deref())?;
        let kernel = self::kernel(kernel.as_deref())?;
        suit(given, kernel)?;
        if bodies.is_empty() {
            return Ok((vec![], vec![], None));
        }
        let request = Request {
            sources: Kinds::of(&bodies, &physics).massive,
            accuracy: given,
            integrator: match with_jerks {
                true => Integrator::Hermite4,
                false => Integrator::Leapfrog,
            },
            ..Request::new(bodies.len())
        };
        let request = request.on(self::device(&device)?).by(kernel);
        let selection = select(&request)?;
        fits(
            selection.variant,
            &selection.place,
            physics.law,
            bodies.len(),
        )?;
        let in_f32 = selection.variant.stored() == Precision::F32;
        let remark = in_f32.then(|| remark_on_single(&bodies, &physics, 1));
        let remark = remark.flatten();
        let machine = machine(selection.place);
        let mut backend = machine.backend(selection.variant, &bodies, physics)?;
        if !with_jerks {
            let computed: Result<_, ForceError> =
                backend.accelerate().and_then(|()| backend.accelerations());
            return Ok((computed?, vec![], remark));
        }
        let asked = Operation::Evaluate(HighestDerivative::Jerk);
        let saved = backend.perform(asked).and_then(|()| backend.save())?;
        let frame = saved.frame;
        let acceleration = |&a: &[f64; 3]| frame.acceleration_from_local(a);
        let jerk = |&j: &[f64; 3]| frame.acceleration_from_local(j).map(|j| j / frame.time);
        Ok((
            saved.accelerations().iter().map(acceleration).collect(),
            saved.jerks().iter().map(jerk).collect(),
            remark,
        ))
    })?;
    let jerks = with_jerks.then(|| array(py, jerks)).transpose()?;
    Ok((array(py, accelerations)?, jerks, remark))
}

/// Potentials at bodies, of the others.
#[pyfunction]
pub(crate) fn potentials<'py>(
    py: Python<'py>,
    pos: PyReadonlyArray2<'py, f64>,
    m: PyReadonlyArray1<'py, f64>,
    eps: f64,
    g: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let bodies = Bodies::at_rest(rows(&pos)?, m.as_slice()?);
    let potentials = compute_long(py, move || {
        let physics = gravity(g, eps)?;
        bodies.check()?;
        Ok(cpu::potentials(&bodies, &physics))
    })?;
    Ok(PyArray1::from_vec(py, potentials))
}

/// Accelerations and potentials.
type FieldArrays<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// Accelerations and potentials at points.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn field_at<'py>(
    py: Python<'py>,
    points: PyReadonlyArray2<'py, f64>,
    pos: PyReadonlyArray2<'py, f64>,
    m: PyReadonlyArray1<'py, f64>,
    eps: f64,
    g: f64,
    accuracy: Option<String>,
    device: String,
) -> PyResult<FieldArrays<'py>> {
    let bodies = Bodies::at_rest(rows(&pos)?, m.as_slice()?);
    let points = rows(&points)?.to_vec();
    let (accelerations, potentials) = compute_long(py, move || {
        let physics = gravity(g, eps)?;
        bodies.check()?;
        let strange = points.iter().flatten().position(|x| !x.is_finite());
        if let Some(i) = strange {
            let text = format!("`points`: point {} is not finite", i / 3);
            return Err(Failure::of("points", text));
        }
        let accuracy = self::accuracy(accuracy.as_deref())?.unwrap_or_default();
        let request = Request::new(bodies.len()).on(self::device(&device)?);
        let machine = machine(select(&request)?.place);
        Ok(machine
            .field_at(&bodies, &physics, &points, accuracy)?
            .values)
    })?;
    Ok((
        array(py, accelerations)?,
        PyArray1::from_vec(py, potentials),
    ))
}

/// Kinetic and potential energy of bodies.
#[pyfunction]
pub(crate) fn energy(py: Python<'_>, all: Arrays<'_>, eps: f64, g: f64) -> PyResult<(f64, f64)> {
    let bodies = bodies(&all)?;
    compute_long(py, move || {
        let physics = gravity(g, eps)?;
        bodies.check()?;
        let potential = cpu::potential_energy(&bodies, &physics, InstructionSet::detect());
        Ok((kinetic(&bodies, &physics), potential))
    })
}
