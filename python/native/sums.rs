//! Sums over pairs of independent systems, as JAX and PyTorch ask for them: by name, of flat arrays.

use allpairs::bodies::Bodies;
use allpairs::force::cpu::gradients::{self, Asked, Direction, Trajectory};
use allpairs::force::pair_sums::{Call, SumTask, Sweep, SystemsShape};
use allpairs::gpu_kernels::numerics::Precision;
use allpairs::integrator::Integrator;
use allpairs::physics::Physics;
use allpairs::simd::Lane;
use cuda_driver::keeping_context;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::{Failure, Kind};
use crate::forces::gravity;
use crate::on_device::with_device;
use crate::work::{caught, compute_long};

/// Bodies of one of several independent systems, and the other numbers that a sum takes.
pub(crate) struct System {
    bodies: Bodies,
    physics: Physics,
    /// Numbers of the other arguments.
    more: Vec<Vec<f64>>,
    asked: Vec<i64>,
    /// True if the arrays are of f32.
    rounded: bool,
}

/// A sum over pairs.
pub(crate) trait Sum {
    /// Results of a system, one after another.
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure>;

    /// The same on a device. What is asked for are the numbers of a [`Sweep`], where a trajectory is computed.
    fn task(asked: &[i64]) -> Result<SumTask, Failure>;
}

/// Numbers as vectors.
pub(crate) fn vectors(numbers: &[f64]) -> &[[f64; 3]] {
    numbers.as_chunks::<3>().0
}

/// The direction that is in the last arguments: ẋ, ṁ, ε̇.
fn direction(system: &System) -> Direction<'_> {
    let [positions, masses, softening] = &system.more[..] else {
        unreachable!("a direction has three arguments");
    };
    Direction {
        positions: vectors(positions),
        masses,
        softening: softening[0],
    }
}

pub(crate) enum Force {}

impl Sum for Force {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let found = gradients::accelerations::<R>(&system.bodies, &system.physics);
        Ok(vec![found.into_flattened()])
    }

    fn task(_: &[i64]) -> Result<SumTask, Failure> {
        Ok(SumTask::Accelerations)
    }
}

pub(crate) enum Tangent {}

impl Sum for Tangent {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let found = gradients::tangent::<R>(&system.bodies, &system.physics, direction(system))?;
        Ok(vec![found.into_flattened()])
    }

    fn task(_: &[i64]) -> Result<SumTask, Failure> {
        Ok(SumTask::Tangent)
    }
}

/// Derivatives by positions, and by masses and ε where asked for.
pub(crate) enum Pull<const MASSES: bool, const SOFTENING: bool> {}

impl<const MASSES: bool, const SOFTENING: bool> Pull<MASSES, SOFTENING> {
    const ASKED: Asked = Asked {
        masses: MASSES,
        softening: SOFTENING,
    };
}

impl<const MASSES: bool, const SOFTENING: bool> Sum for Pull<MASSES, SOFTENING> {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let (bodies, lambda) = (&system.bodies, vectors(&system.more[0]));
        let found = gradients::pull::<R>(bodies, &system.physics, lambda, Self::ASKED)?;
        let mut results = vec![found.positions.into_flattened()];
        if MASSES {
            results.push(found.masses);
        }
        if SOFTENING {
            results.push(vec![found.softening]);
        }
        Ok(results)
    }

    fn task(_: &[i64]) -> Result<SumTask, Failure> {
        Ok(SumTask::Pull {
            asked: Self::ASKED,
            with_accelerations: false,
        })
    }
}

pub(crate) enum Potential {}

impl Sum for Potential {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let found = gradients::potentials::<R>(&system.bodies, &system.physics);
        Ok(vec![found])
    }

    fn task(_: &[i64]) -> Result<SumTask, Failure> {
        Ok(SumTask::Potentials)
    }
}

pub(crate) enum PotentialTangent {}

impl Sum for PotentialTangent {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let (bodies, along) = (&system.bodies, direction(system));
        let found = gradients::potential_tangent::<R>(bodies, &system.physics, along)?;
        Ok(vec![found])
    }

    fn task(_: &[i64]) -> Result<SumTask, Failure> {
        Ok(SumTask::PotentialTangent)
    }
}

pub(crate) enum PotentialPull {}

impl Sum for PotentialPull {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let (bodies, lambda) = (&system.bodies, &system.more[0]);
        let found = gradients::potential_pull::<R>(bodies, &system.physics, lambda)?;
        Ok(vec![
            found.positions.into_flattened(),
            found.masses,
            vec![found.softening],
        ])
    }

    fn task(_: &[i64]) -> Result<SumTask, Failure> {
        Ok(SumTask::PotentialPull)
    }
}

/// A trajectory of steps of length `dt`, and derivatives that are asked for. The numbers are the count of steps, the
/// scheme's place in [`SCHEMES`], and 1 where derivatives by masses, and by softening, are wanted.
fn trajectory(asked: &[i64], dt: f64) -> Result<(Trajectory, Asked), Failure> {
    let &[steps, scheme, masses, softening] = asked else {
        let text = format!("a trajectory asks for four numbers, not {}", asked.len());
        return Err(Failure::new(Kind::Internal, text));
    };
    let trajectory = Trajectory::new(SCHEMES[scheme as usize], dt, steps as u64);
    let trajectory = trajectory.map_err(|error| Failure::of("scheme", error))?;
    let asked = Asked {
        masses: masses != 0,
        softening: softening != 0,
    };
    Ok((trajectory, asked))
}

/// A trajectory, and its bodies at the beginning. The arguments after ε are v and the time step.
fn path(system: &System) -> Result<(Trajectory, Bodies, Asked), Failure> {
    let (velocities, dt) = (&system.more[0], &system.more[1]);
    let (trajectory, asked) = trajectory(&system.asked, dt[0])?;
    Ok((trajectory, moving(&system.bodies, velocities), asked))
}

/// The bodies with these velocities.
fn moving(bodies: &Bodies, velocities: &[f64]) -> Bodies {
    let mut bodies = bodies.clone();
    for (i, &[x, y, z]) in vectors(velocities).iter().enumerate() {
        (bodies.vx[i], bodies.vy[i], bodies.vz[i]) = (x, y, z);
    }
    bodies
}

/// Schemes that can be taken back, in the order of `allpairs/_schemes.py`.
pub(crate) const SCHEMES: [Integrator; 4] = [
    Integrator::Leapfrog,
    Integrator::LeapfrogDkd,
    Integrator::Yoshida4,
    Integrator::Yoshida6,
];

pub(crate) enum Path {}

impl Sum for Path {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let (trajectory, mut bodies, _) = path(system)?;
        trajectory.advance::<R>(&mut bodies, &system.physics);
        let body = |i| bodies.body(i);
        let all = 0..bodies.len();
        let last: [Vec<f64>; 2] = [
            all.clone().flat_map(|i| body(i).position).collect(),
            all.flat_map(|i| body(i).velocity).collect(),
        ];
        // What the arrays lose.
        let rests = last.each_ref().map(|numbers| match system.rounded {
            true => numbers.iter().map(|&x| x - f64::from(x as f32)).collect(),
            false => vec![0.0; numbers.len()],
        });
        Ok(last.into_iter().chain(rests).collect())
    }

    fn task(asked: &[i64]) -> Result<SumTask, Failure> {
        Ok(SumTask::Trajectory(trajectory(asked, 0.0)?.0)) // the device reads the step itself
    }
}

/// Derivatives by x, m, ε, v and the time step.
pub(crate) enum PathPull {}

impl Sum for PathPull {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let (trajectory, mut bodies, asked) = path(system)?;
        let [_, _, x, v, x_rest, v_rest, of_x, of_v] = &system.more[..] else {
            unreachable!("the last state and cotangents are there");
        };
        let whole = |numbers: &[f64], rest: &[f64]| -> Vec<f64> {
            numbers.iter().zip(rest).map(|(a, b)| a + b).collect()
        };
        let ended = Bodies::at_rest(vectors(&whole(x, x_rest)), &bodies.mass);
        bodies = moving(&ended, &whole(v, v_rest));
        let (of_x, of_v) = (vectors(of_x).to_vec(), vectors(of_v).to_vec());
        let found = trajectory.pull::<R>(&mut bodies, &system.physics, of_x, of_v, asked)?;
        Ok(vec![
            found.positions.into_flattened(),
            match asked.masses {
                true => found.masses,
                false => vec![0.0; bodies.len()],
            },
            vec![found.softening],
            found.velocities.into_flattened(),
            vec![found.dt],
        ])
    }

    fn task(asked: &[i64]) -> Result<SumTask, Failure> {
        let (trajectory, asked) = trajectory(asked, 0.0)?;
        Ok(SumTask::TrajectoryPull {
            trajectory,
            asked,
            with_largest: false,
        })
    }
}

/// Arguments of a sum: x, m, ε and more, each with the numbers of all systems, one after another.
pub(crate) struct Arguments {
    pub(crate) numbers: Vec<Vec<f64>>,
    /// Bodies of a system.
    pub(crate) n: usize,
    pub(crate) systems: usize,
    /// True if they are numbers of f32.
    pub(crate) rounded: bool,
    /// Numbers that say what is asked for.
    pub(crate) asked: Vec<i64>,
}

/// The results of all systems, one system after another.
pub(crate) fn of_systems<S: Sum, R: Lane>(arguments: &Arguments) -> Result<Vec<Vec<f64>>, Failure> {
    let Arguments {
        numbers,
        n,
        systems,
        rounded,
        asked,
    } = arguments;
    let system = |index: usize| {
        let part = |numbers: &Vec<f64>| {
            let len = numbers.len() / systems;
            numbers[index * len..(index + 1) * len].to_vec()
        };
        let [positions, masses, softening, more @ ..] = &numbers[..] else {
            unreachable!("positions, masses and softening are there");
        };
        let bodies = Bodies::at_rest(vectors(&part(positions)), &part(masses));
        S::of::<R>(&System {
            bodies,
            physics: gravity(1.0, part(softening)[0])?,
            more: more.iter().map(part).collect(),
            asked: asked.clone(),
            rounded: *rounded,
        })
    };
    // Few bodies are computed sooner than other threads are woken.
    let together = (1 << 16) / (n * n).max(1) + 1;
    let found: Vec<Vec<Vec<f64>>> = match *systems <= together {
        true => (0..*systems).map(system).collect::<Result<_, _>>()?,
        false => {
            let all = (0..*systems).into_par_iter().with_min_len(together);
            all.map(system).collect::<Result<_, _>>()?
        }
    };
    let results = found.first().map_or(0, Vec::len);
    let result = |index: usize| found.iter().flat_map(|of| &of[index]).copied().collect();
    Ok((0..results).map(result).collect())
}

/// A visitor of sums, each with its name.
pub(crate) trait Visitor {
    fn visit<S: Sum>(&mut self, name: &'static str);
}

/// All sums.
pub(crate) fn visit_all(visitor: &mut impl Visitor) {
    visitor.visit::<Force>("force");
    visitor.visit::<Tangent>("tangent");
    visitor.visit::<Pull<false, false>>("pull");
    visitor.visit::<Pull<true, false>>("pull_m");
    visitor.visit::<Pull<false, true>>("pull_e");
    visitor.visit::<Pull<true, true>>("pull_me");
    visitor.visit::<Potential>("potential");
    visitor.visit::<PotentialTangent>("potential_tangent");
    visitor.visit::<PotentialPull>("potential_pull");
    visitor.visit::<Path>("trajectory");
    visitor.visit::<PathPull>("trajectory_pull");
}

/// A function that computes all systems.
type Computed = fn(&Arguments) -> Result<Vec<Vec<f64>>, Failure>;

/// A function that says what a device does, for what is asked for.
type Assigned = fn(&[i64]) -> Result<SumTask, Failure>;

/// Finds a sum by its name.
struct Named<'a> {
    name: &'a str,
    double: bool,
    found: Option<(Computed, Assigned)>,
}

impl Visitor for Named<'_> {
    fn visit<S: Sum>(&mut self, name: &'static str) {
        if name == self.name {
            let computed = match self.double {
                true => of_systems::<S, f64>,
                false => of_systems::<S, f32>,
            };
            self.found = Some((computed, S::task));
        }
    }
}

/// The sum of a name, with pairs in f64 or in f32: on the CPU, and on a device.
fn named(name: &str, double: bool) -> Result<(Computed, Assigned), Failure> {
    let mut named = Named {
        name,
        double,
        found: None,
    };
    visit_all(&mut named);
    let found = named.found;
    found.ok_or_else(|| Failure::of("name", format!("no sum {name}")))
}

/// A call of a device.
pub(crate) fn call(
    task: SumTask,
    double: bool,
    rounded: bool,
    (systems, bodies): (usize, usize),
) -> Call {
    let precision = |double: bool| match double {
        true => Precision::F64,
        false => Precision::F32,
    };
    Call {
        task,
        shape: SystemsShape { systems, bodies },
        pairs: precision(double),
        arrays: precision(!rounded),
        way: Sweep::Fastest,
    }
}

/// Results of a sum, each flat, with the numbers of all systems; `shape` is the number of systems and the
/// number of bodies of each. Lengths of arguments are not checked here.
#[pyfunction]
pub(crate) fn sums<'py>(
    py: Python<'py>,
    name: String,
    double: bool,
    rounded: bool,
    shape: (usize, usize),
    arguments: Vec<PyReadonlyArray1<'py, f64>>,
    asked: Vec<i64>,
) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
    let numbers = arguments.iter().map(|a| Ok(a.as_slice()?.to_vec()));
    let arguments = Arguments {
        numbers: numbers.collect::<PyResult<_>>()?,
        n: shape.1,
        systems: shape.0,
        rounded,
        asked,
    };
    let found = compute_long(py, move || {
        let (compute, _) = named(&name, double)?;
        compute(&arguments)
    })?;
    let arrays = found
        .into_iter()
        .map(|numbers| PyArray1::from_vec(py, numbers));
    Ok(arrays.collect())
}

/// Queues a sum of arrays on a GPU, by their addresses: after all work that is in `stream`, and before all that follows
/// there. Lengths of arrays are not checked here.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "one for each property of the arrays"
)]
pub(crate) fn sums_in_place(
    py: Python<'_>,
    name: &str,
    double: bool,
    rounded: bool,
    shape: (usize, usize),
    arguments: Vec<u64>,
    results: Vec<u64>,
    asked: Vec<i64>,
    device: &str,
    stream: u64,
) -> PyResult<()> {
    let queue = || {
        let (_, task) = named(name, double)?;
        let call = call(task(&asked)?, double, rounded, shape);
        with_device(device, |sums| {
            // SAFETY: the caller in Python holds the arrays, of the lengths that the sum has, and names a stream of
            // the library that they are of. What it frees is freed in the order of that stream.
            unsafe { sums.compute_in_place(&call, &arguments, &results, stream)? };
            Ok(())
        })
    };
    let outcome = py.detach(|| keeping_context(|| caught(queue)));
    outcome.map_err(|failure| failure.raise(py))
}
