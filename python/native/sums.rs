//! Sums over pairs of independent systems, as JAX and PyTorch ask for them: by name, of flat arrays.

use allpairs::bodies::Bodies;
use allpairs::force::cpu::gradients::{self, Asked, Direction, Trajectory};
use allpairs::integrator::Integrator;
use allpairs::physics::Physics;
use allpairs::simd::Lane;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::Failure;
use crate::forces::gravity;
use crate::work::compute_long;

/// Bodies of one of several independent systems, and the other numbers that a sum takes.
pub(crate) struct System {
    bodies: Bodies,
    physics: Physics,
    /// Numbers of the other arguments.
    more: Vec<Vec<f64>>,
    /// True if the arrays are of f32.
    rounded: bool,
}

/// A sum over pairs.
pub(crate) trait Sum {
    /// Results of a system, one after another.
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure>;
}

fn vectors(numbers: &[f64]) -> &[[f64; 3]] {
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
}

pub(crate) enum Tangent {}

impl Sum for Tangent {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let found = gradients::tangent::<R>(&system.bodies, &system.physics, direction(system))?;
        Ok(vec![found.into_flattened()])
    }
}

/// Derivatives by positions, and by masses and ε where asked for.
pub(crate) enum Pull<const MASSES: bool, const SOFTENING: bool> {}

impl<const MASSES: bool, const SOFTENING: bool> Sum for Pull<MASSES, SOFTENING> {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let asked = Asked {
            masses: MASSES,
            softening: SOFTENING,
        };
        let (bodies, lambda) = (&system.bodies, vectors(&system.more[0]));
        let found = gradients::pull::<R>(bodies, &system.physics, lambda, asked)?;
        let mut results = vec![found.positions.into_flattened()];
        if MASSES {
            results.push(found.masses);
        }
        if SOFTENING {
            results.push(vec![found.softening]);
        }
        Ok(results)
    }
}

pub(crate) enum Potential {}

impl Sum for Potential {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let found = gradients::potentials::<R>(&system.bodies, &system.physics);
        Ok(vec![found])
    }
}

pub(crate) enum PotentialTangent {}

impl Sum for PotentialTangent {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let (bodies, along) = (&system.bodies, direction(system));
        let found = gradients::potential_tangent::<R>(bodies, &system.physics, along)?;
        Ok(vec![found])
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
}

/// A trajectory, and its bodies at the beginning. The arguments after ε are v and the time step. The last
/// argument holds the number of steps, the scheme's place in [`SCHEMES`], and what is asked for.
fn trajectory(system: &System) -> Result<(Trajectory, Bodies, Asked), Failure> {
    let (Some(asked), velocities, dt) = (system.more.last(), &system.more[0], &system.more[1])
    else {
        unreachable!("there are steps");
    };
    let [steps, scheme, masses, softening] = asked[..] else {
        unreachable!("four numbers are asked for");
    };
    let trajectory = Trajectory::new(SCHEMES[scheme as usize], dt[0], steps as u64);
    let trajectory = trajectory.map_err(|error| Failure::of("scheme", error))?;
    let asked = Asked {
        masses: masses != 0.0,
        softening: softening != 0.0,
    };
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

/// Schemes that can be taken back, in the order of `allpairs/jax.py`.
pub(crate) const SCHEMES: [Integrator; 4] = [
    Integrator::Leapfrog,
    Integrator::LeapfrogDkd,
    Integrator::Yoshida4,
    Integrator::Yoshida6,
];

pub(crate) enum Path {}

impl Sum for Path {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let (trajectory, mut bodies, _) = trajectory(system)?;
        trajectory.advance::<R>(&mut bodies, &system.physics);
        let body = |i| bodies.body(i);
        let all = 0..bodies.len();
        Ok(vec![
            all.clone().flat_map(|i| body(i).position).collect(),
            all.flat_map(|i| body(i).velocity).collect(),
        ])
    }
}

/// Derivatives by x, m, ε, v and the time step.
pub(crate) enum PathPull {}

impl Sum for PathPull {
    fn of<R: Lane>(system: &System) -> Result<Vec<Vec<f64>>, Failure> {
        let (trajectory, mut bodies, asked) = trajectory(system)?;
        let [_, _, x, v, of_x, of_v, _] = &system.more[..] else {
            unreachable!("the last state and cotangents are there");
        };
        if system.rounded {
            // The last state in f64, of which the array has lost digits.
            trajectory.advance::<R>(&mut bodies, &system.physics);
        } else {
            let ended = Bodies::at_rest(vectors(x), &bodies.mass);
            bodies = moving(&ended, v);
        }
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
}

/// Arguments of a sum: x, m, ε and more, each with the numbers of all systems, one after another.
pub(crate) struct Arguments {
    pub(crate) numbers: Vec<Vec<f64>>,
    /// Bodies of a system.
    pub(crate) n: usize,
    pub(crate) systems: usize,
    /// True if they are numbers of f32.
    pub(crate) rounded: bool,
}

/// The results of all systems, one system after another.
pub(crate) fn of_systems<S: Sum, R: Lane>(arguments: &Arguments) -> Result<Vec<Vec<f64>>, Failure> {
    let Arguments {
        numbers,
        n,
        systems,
        rounded,
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

/// Finds a sum by its name, with pairs in f64 or in f32.
struct Named<'a>(&'a str, bool, Option<Computed>);

impl Visitor for Named<'_> {
    fn visit<S: Sum>(&mut self, name: &'static str) {
        if name == self.0 {
            self.2 = Some(match self.1 {
                true => of_systems::<S, f64>,
                false => of_systems::<S, f32>,
            });
        }
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
) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
    let numbers = arguments.iter().map(|a| Ok(a.as_slice()?.to_vec()));
    let arguments = Arguments {
        numbers: numbers.collect::<PyResult<_>>()?,
        n: shape.1,
        systems: shape.0,
        rounded,
    };
    let found = compute_long(py, move || {
        let mut named = Named(&name, double, None);
        visit_all(&mut named);
        let compute = named
            .2
            .ok_or_else(|| Failure::of("name", format!("no sum {name}")))?;
        compute(&arguments)
    })?;
    let arrays = found
        .into_iter()
        .map(|numbers| PyArray1::from_vec(py, numbers));
    Ok(arrays.collect())
}
