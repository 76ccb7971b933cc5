//! Derivatives of forces.

use allpairs::backend::Operation;
use allpairs::bodies::Bodies;
use allpairs::force::cpu::gradients::{
    self, Asked, Coincident, Pulled, Trajectory, TrajectoryPulled,
};
use allpairs::force::pair_sums::SumTask;
use allpairs::integrator::Integrator;
use allpairs::physics::Physics;
use allpairs::variants::preferred::ForceAccuracy;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::bodies::{array, columns, rows};
use crate::errors::Failure;
use crate::forces::{accuracy, gravity};
use crate::on_device::{self, with_device};
use crate::sums::{call, vectors};
use crate::work::compute_long;

impl From<Coincident> for Failure {
    fn from(fault: Coincident) -> Self {
        Self::of("pos", format!("`pos`: {fault}"))
    }
}

/// Accelerations and derivatives by positions, masses and softening.
type PulledArrays<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Option<Bound<'py, PyArray1<f64>>>,
    Option<f64>,
);

/// Bodies on a device, which computes with G m in place of masses.
struct Distant {
    device: String,
    g: f64,
    bodies: Bodies,
    softening: f64,
}

impl Distant {
    /// None where the device is the CPU, which refuses bodies at the same place itself.
    fn new(
        device: &str,
        bodies: &Bodies,
        physics: &Physics,
        is_double: bool,
    ) -> Result<Option<Self>, Failure> {
        let place = on_device::place(device)?;
        if place.is_cpu() {
            return Ok(None);
        }
        match is_double {
            true => gradients::check_differentiable::<f64>(bodies, physics)?,
            false => gradients::check_differentiable::<f32>(bodies, physics)?,
        }
        Ok(Some(Self {
            device: place.choice().to_string(),
            g: physics.g,
            bodies: bodies.clone(),
            softening: physics.softening,
        }))
    }

    /// Results of a task. The arguments after the softening length are `more`.
    fn compute(
        &self,
        task: SumTask,
        is_double: bool,
        more: Vec<Vec<f64>>,
    ) -> Result<Vec<Vec<f64>>, Failure> {
        let n = self.bodies.len();
        let positions = (0..n).flat_map(|i| self.bodies.body(i).position);
        let masses = self.bodies.mass.iter().map(|m| self.g * m);
        let begun = vec![positions.collect(), masses.collect(), vec![self.softening]];
        let arguments = [begun, more].concat();
        with_device(&self.device, |sums| {
            let call = call(task, is_double, false, (1, n));
            Ok(sums.compute(&call, &arguments)?)
        })
    }

    /// Derivatives by masses, of derivatives by G m.
    fn by_masses(&self, by_weights: &[f64]) -> Vec<f64> {
        by_weights.iter().map(|by| self.g * by).collect()
    }
}

fn pull_there(
    distant: &Distant,
    cotangents: &[[f64; 3]],
    asked: Asked,
    is_double: bool,
) -> Result<Pulled, Failure> {
    // Masses and softening come together.
    let both = asked.masses || asked.softening;
    let task = SumTask::Pull {
        asked: Asked {
            masses: both,
            softening: both,
        },
        with_accelerations: true,
    };
    let found = distant.compute(task, is_double, vec![cotangents.as_flattened().to_vec()])?;
    Ok(Pulled {
        accelerations: vectors(&found[0]).to_vec(),
        positions: vectors(&found[1]).to_vec(),
        masses: found.get(2).map_or(vec![], |by| distant.by_masses(by)),
        softening: found.get(3).map_or(0.0, |by| by[0]),
    })
}

/// Accelerations and the derivatives of `Σ lam·a`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn pull<'py>(
    py: Python<'py>,
    pos: PyReadonlyArray2<'py, f64>,
    m: PyReadonlyArray1<'py, f64>,
    lam: PyReadonlyArray2<'py, f64>,
    eps: f64,
    g: f64,
    accuracy: String,
    masses: bool,
    softening: bool,
    device: String,
) -> PyResult<PulledArrays<'py>> {
    let bodies = Bodies::at_rest(rows(&pos)?, m.as_slice()?);
    let cotangents = rows(&lam)?.to_vec();
    let pulled = compute_long(py, move || {
        let physics = gravity(g, eps)?;
        bodies.check()?;
        let asked = Asked { masses, softening };
        let is_double = self::accuracy(Some(&accuracy))? == Some(ForceAccuracy::Double);
        if let Some(distant) = Distant::new(&device, &bodies, &physics, is_double)? {
            return pull_there(&distant, &cotangents, asked, is_double);
        }
        Ok(match is_double {
            true => gradients::pull::<f64>(&bodies, &physics, &cotangents, asked)?,
            false => gradients::pull::<f32>(&bodies, &physics, &cotangents, asked)?,
        })
    })?;
    Ok((
        array(py, pulled.accelerations)?,
        array(py, pulled.positions)?,
        masses.then(|| PyArray1::from_vec(py, pulled.masses)),
        softening.then_some(pulled.softening),
    ))
}

/// Integrator by its name.
fn scheme(name: &str) -> Result<Integrator, Failure> {
    let mut all = Integrator::ALL.into_iter();
    let found = all.find(|integrator| integrator.name() == name);
    found.ok_or_else(|| Failure::of("scheme", format!("`scheme` has no {name}")))
}

/// Kicks (true) and drifts of a step, each with its share of the time step.
#[pyfunction]
pub(crate) fn stages(py: Python<'_>, integrator: &str) -> PyResult<Vec<(bool, f64)>> {
    let integrator = scheme(integrator).map_err(|failure| failure.raise(py))?;
    let parts = integrator.operations(1.0).into_iter();
    let parts = parts.filter_map(|operation| match operation {
        Operation::Kick(share) => Some((true, share)),
        Operation::Drift(share) => Some((false, share)),
        _ => None,
    });
    Ok(parts.collect())
}

/// Positions and velocities.
type State<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);

/// A trajectory as Python gives it.
struct Path {
    trajectory: Trajectory,
    bodies: Bodies,
    physics: Physics,
    is_double: bool,
}

impl Path {
    fn new(
        bodies: Bodies,
        dt: f64,
        steps: u64,
        eps: f64,
        g: f64,
        scheme: &str,
        accuracy: &str,
    ) -> Result<Self, Failure> {
        bodies.check()?;
        let trajectory = Trajectory::new(self::scheme(scheme)?, dt, steps);
        Ok(Self {
            trajectory: trajectory.map_err(|error| Failure::of("scheme", error))?,
            bodies,
            physics: gravity(g, eps)?,
            is_double: self::accuracy(Some(accuracy))? == Some(ForceAccuracy::Double),
        })
    }
}

/// The last state of a trajectory.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn trajectory<'py>(
    py: Python<'py>,
    pos: PyReadonlyArray2<'py, f64>,
    vel: PyReadonlyArray2<'py, f64>,
    m: PyReadonlyArray1<'py, f64>,
    dt: f64,
    steps: u64,
    eps: f64,
    g: f64,
    scheme: String,
    accuracy: String,
) -> PyResult<State<'py>> {
    let mut bodies = Bodies::at_rest(rows(&pos)?, m.as_slice()?);
    [bodies.vx, bodies.vy, bodies.vz] = columns(&vel)?;
    let bodies = compute_long(py, move || {
        let mut path = Path::new(bodies, dt, steps, eps, g, &scheme, &accuracy)?;
        match path.is_double {
            true => path
                .trajectory
                .advance::<f64>(&mut path.bodies, &path.physics),
            false => path
                .trajectory
                .advance::<f32>(&mut path.bodies, &path.physics),
        }
        Ok(path.bodies)
    })?;
    let all = 0..bodies.len();
    let positions = all.clone().map(|i| bodies.body(i).position).collect();
    let velocities = all.map(|i| bodies.body(i).velocity).collect();
    Ok((array(py, positions)?, array(py, velocities)?))
}

/// Derivatives by positions, velocities, masses, softening and time step, and their growth.
type PathArrays<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    f64,
    f64,
    f64,
);

/// Derivatives of a trajectory on a device.
fn pull_path_there(
    distant: &Distant,
    is_double: bool,
    (trajectory, dt): (Trajectory, f64),
    velocities: Vec<f64>,
    by_last: [Vec<[f64; 3]>; 2],
) -> Result<TrajectoryPulled, Failure> {
    let begun = vec![velocities, vec![dt]];
    let last = distant.compute(SumTask::Trajectory(trajectory), is_double, begun.clone())?;
    let most = by_last
        .each_ref()
        .map(|vectors| gradients::largest(vectors));
    let by_last = by_last.map(|vectors| vectors.into_flattened());
    let task = SumTask::TrajectoryPull {
        trajectory,
        asked: Asked {
            masses: true,
            softening: true,
        },
        with_largest: true,
    };
    let more = [begun, last, by_last.to_vec()].concat();
    let found = distant.compute(task, is_double, more)?;
    let most = most[0].max(most[1]);
    Ok(TrajectoryPulled {
        positions: vectors(&found[0]).to_vec(),
        masses: distant.by_masses(&found[1]),
        softening: found[2][0],
        velocities: vectors(&found[3]).to_vec(),
        dt: found[4][0],
        growth: if most > 0.0 { found[5][0] / most } else { 1.0 },
    })
}

/// Derivatives of a function of the last state, of which `lam_pos` and `lam_vel` are the derivatives by that
/// state.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn trajectory_pull<'py>(
    py: Python<'py>,
    pos: PyReadonlyArray2<'py, f64>,
    vel: PyReadonlyArray2<'py, f64>,
    m: PyReadonlyArray1<'py, f64>,
    dt: f64,
    steps: u64,
    lam_pos: PyReadonlyArray2<'py, f64>,
    lam_vel: PyReadonlyArray2<'py, f64>,
    eps: f64,
    g: f64,
    scheme: String,
    accuracy: String,
    device: String,
) -> PyResult<PathArrays<'py>> {
    let mut bodies = Bodies::at_rest(rows(&pos)?, m.as_slice()?);
    [bodies.vx, bodies.vy, bodies.vz] = columns(&vel)?;
    let (of_x, of_v) = (rows(&lam_pos)?.to_vec(), rows(&lam_vel)?.to_vec());
    let found = compute_long(py, move || {
        let path = Path::new(bodies, dt, steps, eps, g, &scheme, &accuracy)?;
        let (trajectory, mut bodies, physics) = (path.trajectory, path.bodies, path.physics);
        let all = Asked {
            masses: true,
            softening: true,
        };
        if let Some(distant) = Distant::new(&device, &bodies, &physics, path.is_double)? {
            let velocities = (0..bodies.len()).flat_map(|i| bodies.body(i).velocity);
            return pull_path_there(
                &distant,
                path.is_double,
                (trajectory, dt),
                velocities.collect(),
                [of_x, of_v],
            );
        }
        let found = match path.is_double {
            true => {
                trajectory.advance::<f64>(&mut bodies, &physics);
                trajectory.pull::<f64>(&mut bodies, &physics, of_x, of_v, all)
            }
            false => {
                trajectory.advance::<f32>(&mut bodies, &physics);
                trajectory.pull::<f32>(&mut bodies, &physics, of_x, of_v, all)
            }
        };
        Ok(found?)
    })?;
    Ok((
        array(py, found.positions)?,
        array(py, found.velocities)?,
        PyArray1::from_vec(py, found.masses),
        found.softening,
        found.dt,
        found.growth,
    ))
}
