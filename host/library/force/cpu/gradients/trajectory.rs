//! Trajectories of reversible schemes, and their gradients in the memory of one state.
//!
//! A scheme of kicks and drifts can be taken back, so the way to the beginning needs no states of the way
//! there. At each kick one sweep gives the acceleration, which takes the kick back, and the derivatives of the
//! kick. The state is f64, whatever forces are computed in. The way back meets nearly the same positions then,
//! and the rounded forces at them are nearly the same too.

use gpu_kernels::numerics::Precision;

use super::{Asked, Coincident, accelerations, pull};
use crate::bodies::Bodies;
use crate::integrator::{Integrator, Stage};
use crate::physics::Physics;
use crate::simd::Lane;

/// Steps of equal length by a reversible scheme.
#[derive(Clone, Copy, Debug)]
pub struct Trajectory {
    stages: &'static [Stage],
    dt: f64,
    steps: u64,
}

/// A scheme without a way back, so that its gradient would need the states of all steps.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "{} cannot be taken back step by step, which its gradient needs: use leapfrog, leapfrog-dkd, yoshida4 or \
     yoshida6", .0.name()
)]
pub struct Irreversible(pub Integrator);

/// Derivatives of a function of the last state by what the trajectory began with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrajectoryPulled {
    /// By positions.
    pub positions: Vec<[f64; 3]>,
    /// By velocities.
    pub velocities: Vec<[f64; 3]>,
    /// By masses; empty if they were not asked for.
    pub masses: Vec<f64>,
    /// By the softening length; 0 if it was not asked for.
    pub softening: f64,
    /// By the length of a step.
    pub dt: f64,
    /// Largest derivative on the way, of a unit of the largest cotangent of the last state. Rounding errors
    /// grow as derivatives do.
    pub growth: f64,
}

impl Trajectory {
    /// Trajectory of this number of steps of length `dt`.
    ///
    /// # Errors
    /// [`Irreversible`] schemes.
    pub fn new(integrator: Integrator, dt: f64, steps: u64) -> Result<Self, Irreversible> {
        let reversible = matches!(
            integrator,
            Integrator::Leapfrog
                | Integrator::LeapfrogDkd
                | Integrator::Yoshida4
                | Integrator::Yoshida6
        );
        match integrator.stages() {
            Some(stages) if reversible => Ok(Self { stages, dt, steps }),
            _ => Err(Irreversible(integrator)),
        }
    }

    /// The kicks and drifts; where two steps meet, their parts are one.
    pub(in crate::force) fn stages(self) -> impl DoubleEndedIterator<Item = Stage> {
        let Self { stages, steps, .. } = self;
        let of_step = stages.len() as u64 - 1;
        let count = match steps {
            0 => 0,
            _ => steps * of_step + 1,
        };
        (0..count).map(move |k| match (k % of_step) as usize {
            0 if k > 0 && k + 1 < count => match (stages[0], stages[stages.len() - 1]) {
                (Stage::Kick(first), Stage::Kick(last)) => Stage::Kick(first + last),
                (Stage::Drift(first), Stage::Drift(last)) => Stage::Drift(first + last),
                _ => unreachable!("a reversible scheme is its own mirror image"),
            },
            at => stages[at],
        })
    }

    /// Takes the bodies through the steps, with forces computed in `R`.
    pub fn advance<R: Lane>(self, bodies: &mut Bodies, physics: &Physics) {
        for stage in self.stages() {
            match stage {
                Stage::Kick(share) => {
                    kick(
                        bodies,
                        &accelerations::<R>(bodies, physics),
                        share * self.dt,
                    );
                }
                Stage::Drift(share) => drift(bodies, share * self.dt),
            }
        }
    }

    /// Takes the bodies from the end of the steps back to their beginning. Derivatives of a function by positions
    /// and by velocities are taken back with them.
    ///
    /// # Errors
    /// [`Coincident`] bodies without softening.
    ///
    /// # Panics
    /// If there are not as many derivatives as bodies.
    pub fn pull<R: Lane>(
        self,
        bodies: &mut Bodies,
        physics: &Physics,
        mut by_positions: Vec<[f64; 3]>,
        mut by_velocities: Vec<[f64; 3]>,
        asked: Asked,
    ) -> Result<TrajectoryPulled, Coincident> {
        let n = bodies.len();
        assert_eq!((by_positions.len(), by_velocities.len()), (n, n));
        let begun = largest(&by_positions).max(largest(&by_velocities));
        let mut pulled = TrajectoryPulled::default();
        if asked.masses {
            pulled.masses = vec![0.0; n];
        }
        let mut most = begun;
        for stage in self.stages().rev() {
            match stage {
                Stage::Kick(share) => {
                    let dt = share * self.dt;
                    let of = pull::<R>(bodies, physics, &by_velocities, asked)?;
                    add(&mut by_positions, dt, &of.positions);
                    for (sum, term) in pulled.masses.iter_mut().zip(&of.masses) {
                        *sum += dt * term;
                    }
                    pulled.softening += dt * of.softening;
                    pulled.dt += share * dot(&by_velocities, &of.accelerations);
                    // The sweep rounds its accelerations otherwise than the way there did. In double precision that
                    // is as little as the rounding of the state.
                    match R::PRECISION {
                        Precision::F64 => kick(bodies, &of.accelerations, -dt),
                        _ => kick(bodies, &accelerations::<R>(bodies, physics), -dt),
                    }
                }
                Stage::Drift(share) => {
                    let dt = share * self.dt;
                    add(&mut by_velocities, dt, &by_positions);
                    let along = (0..n).map(|i| {
                        let [x, y, z] = by_positions[i];
                        x * bodies.vx[i] + y * bodies.vy[i] + z * bodies.vz[i]
                    });
                    pulled.dt += share * along.sum::<f64>();
                    drift(bodies, -dt);
                }
            }
            most = most
                .max(largest(&by_positions))
                .max(largest(&by_velocities));
        }
        pulled.growth = if begun > 0.0 { most / begun } else { 1.0 };
        (pulled.positions, pulled.velocities) = (by_positions, by_velocities);
        Ok(pulled)
    }
}

fn kick(bodies: &mut Bodies, accelerations: &[[f64; 3]], dt: f64) {
    let velocities = [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz];
    for (axis, column) in velocities.into_iter().enumerate() {
        for (v, a) in column.iter_mut().zip(accelerations) {
            *v += dt * a[axis];
        }
    }
}

fn drift(bodies: &mut Bodies, dt: f64) {
    let positions = [&mut bodies.x, &mut bodies.y, &mut bodies.z];
    let velocities = [&bodies.vx, &bodies.vy, &bodies.vz];
    for (x, v) in positions.into_iter().zip(velocities) {
        for (x, v) in x.iter_mut().zip(v) {
            *x += dt * v;
        }
    }
}

fn add(sums: &mut [[f64; 3]], factor: f64, terms: &[[f64; 3]]) {
    let terms = terms.as_flattened();
    for (sum, term) in sums.as_flattened_mut().iter_mut().zip(terms) {
        *sum += factor * term;
    }
}

fn dot(one: &[[f64; 3]], other: &[[f64; 3]]) -> f64 {
    let pairs = one.as_flattened().iter().zip(other.as_flattened());
    pairs.map(|(a, b)| a * b).sum()
}

/// The largest size of a component, 0 if there is none.
pub fn largest(vectors: &[[f64; 3]]) -> f64 {
    let numbers = vectors.as_flattened().iter();
    numbers.fold(0.0, |largest, x| largest.max(x.abs()))
}
