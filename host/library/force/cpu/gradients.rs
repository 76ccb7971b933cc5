//! Derivatives of accelerations and potentials by positions, masses and softening.
//!
//! Each is a sum over pairs. The formulas of the pairs are in [`gpu_kernels::interaction::gradients`]. Terms are
//! added in the same order on any number of threads.

mod once;
mod sums;
#[cfg(test)]
mod tests;
mod trajectory;

use gpu_kernels::interaction::gradients::{
    Depth, PotentialPullback, PotentialTangent, Pullback, Tangent,
};

use self::sums::{Table, Way, sums_of};
pub use self::trajectory::{Irreversible, Trajectory, TrajectoryPulled, largest};
use super::kernel::{Distance, LANES};
use super::{Choices, Packed};
use crate::bodies::Bodies;
use crate::frame::{self, Frame};
use crate::physics::Physics;
use crate::ranks::Team;
use crate::simd::Lane;
use crate::vectors::axes;

/// Derivatives that are asked for in addition to the derivative by positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// By masses.
    pub masses: bool,
    /// By the softening length.
    pub softening: bool,
}

/// Accelerations a, and derivatives of `L = Σ λ·a`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pulled {
    /// Accelerations.
    pub accelerations: Vec<[f64; 3]>,
    /// Derivatives of L by positions.
    pub positions: Vec<[f64; 3]>,
    /// By masses; empty if they were not asked for.
    pub masses: Vec<f64>,
    /// By the softening length; 0 if it was not asked for.
    pub softening: f64,
}

/// Derivatives of `L = Σ λ φ` of potentials φ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PotentialPulled {
    /// By positions.
    pub positions: Vec<[f64; 3]>,
    /// By masses.
    pub masses: Vec<f64>,
    /// By the softening length.
    pub softening: f64,
}

/// A direction in which a sum is differentiated: rates of what it depends on.
#[derive(Clone, Copy, Debug)]
pub struct Direction<'a> {
    /// Velocities.
    pub positions: &'a [[f64; 3]],
    /// Rates of the masses; empty where these do not change.
    pub masses: &'a [f64],
    /// Rate of the softening length.
    pub softening: f64,
}

/// Two bodies at one place, by their indices, without softening: their force has no derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "bodies {0} and {1} are at the same place, and without softening their force has no derivative there: \
     set a softening length > 0, or merge them"
)]
pub struct Coincident(pub usize, pub usize);

/// Bodies in the units of their frame.
struct Local<'a> {
    bodies: &'a Bodies,
    frame: Frame,
    /// ε.
    softening: f64,
    /// Unit of accelerations: the factor of `Σ m d/s³`.
    unit: f64,
}

impl<'a> Local<'a> {
    fn new<R: Lane>(bodies: &'a Bodies, physics: &Physics) -> Self {
        let frame = super::frame::<R>(bodies, physics);
        let coupling = frame.coupling_to_local(physics);
        let [unit, ..] = frame.acceleration_from_local([coupling, 0.0, 0.0]);
        Self {
            bodies,
            frame,
            softening: frame.length_to_local(physics.softening),
            unit,
        }
    }

    /// Like [`new`](Self::new), but refuses bodies at the same place without softening.
    fn differentiable<R: Lane>(bodies: &'a Bodies, physics: &Physics) -> Result<Self, Coincident> {
        let local = Self::new::<R>(bodies, physics);
        let softening_squared = R::from_f64(local.softening * local.softening);
        if softening_squared < R::SMALLEST_SQUARE {
            let place = |i| local.position::<R>(i).map(R::to_f64);
            let places: Vec<[f64; 3]> = (0..bodies.len()).map(place).collect();
            let rounded = Bodies::at_rest(&places, &bodies.mass);
            if let Some([one, other]) = rounded.coincident(0.0, |_| true) {
                return Err(Coincident(one, other));
            }
        }
        Ok(local)
    }

    fn position<R: Lane>(&self, i: usize) -> [R; 3] {
        let (x, y, z) = (self.bodies.x[i], self.bodies.y[i], self.bodies.z[i]);
        self.frame.position_to_local([x, y, z]).map(R::from_f64)
    }

    fn mass<R: Lane>(&self, i: usize) -> R {
        R::from_f64(self.frame.mass_to_local(self.bodies.mass[i]))
    }

    /// How sums are computed, along a rate of the softening length.
    fn way<R: Lane>(&self, softening_rate: f64) -> Way<R> {
        let Choices {
            root, instructions, ..
        } = Choices::default();
        Way {
            distance: Distance {
                root,
                softening_squared: R::from_f64(self.softening * self.softening),
            },
            rate: R::from_f64(self.softening * softening_rate),
            instructions,
        }
    }

    /// Numbers of the bodies and of their direction, the way to compute sums of them, and the unit of their
    /// rates.
    fn along<R: Lane>(&self, direction: &Direction<'_>) -> (Table<R, 8>, Way<R>, f64) {
        let (length, mass) = (self.frame.length, self.frame.mass);
        let velocities = direction.positions.as_flattened().iter();
        let rates = velocities.map(|v| v / length);
        let rates = rates.chain(direction.masses.iter().map(|m| m / mass));
        let rate = frame::unit_of(rates.chain([direction.softening / length]));
        let numbers = |i: usize| {
            let [x, y, z] = self.position(i);
            let velocity = direction.positions[i];
            let [vx, vy, vz] = velocity.map(|v| R::from_f64(v / length / rate));
            let of_mass = direction.masses.get(i).map_or(0.0, |m| m / mass / rate);
            let (mass, of_mass) = (self.mass(i), R::from_f64(of_mass));
            [x, y, z, mass, vx, vy, vz, of_mass]
        };
        let table = Table::new(self.bodies.len(), numbers);
        (table, self.way(direction.softening / length / rate), rate)
    }
}

/// Checks that there are derivatives at these bodies, computed in `R`.
///
/// # Errors
/// [`Coincident`] bodies without softening.
pub fn check_differentiable<R: Lane>(bodies: &Bodies, physics: &Physics) -> Result<(), Coincident> {
    Local::differentiable::<R>(bodies, physics).map(drop)
}

/// Accelerations of bodies under Newton's gravity, computed in `R`.
pub fn accelerations<R: Lane>(bodies: &Bodies, physics: &Physics) -> Vec<[f64; 3]> {
    let frame = super::frame::<R>(bodies, physics);
    let mut packed = Packed::<R>::new();
    packed.fill(bodies, physics, &frame);
    let coupling = frame.coupling_to_local(physics);
    let sums = packed.pulls(Choices::default(), &Team::alone());
    let sums = sums.into_iter();
    sums.map(|sum| frame.acceleration_from_local(sum.map(|sum| coupling * sum)))
        .collect()
}

/// Accelerations of bodies under Newton's gravity and derivatives of `L = Σ λ·a`, where λ are `cotangents`.
///
/// One sweep over the pairs, computed in `R`, gives both. The derivatives are the product of λ and the
/// Jacobian of the accelerations.
///
/// # Errors
/// [`Coincident`] bodies without softening.
///
/// # Panics
/// If there are not as many cotangents as bodies.
pub fn pull<R: Lane>(
    bodies: &Bodies,
    physics: &Physics,
    cotangents: &[[f64; 3]],
    asked: Asked,
) -> Result<Pulled, Coincident> {
    let pulled = match (asked.masses, asked.softening) {
        (false, false) => pull_with::<R, Pullback<false, false>>,
        (true, false) => pull_with::<R, Pullback<true, false>>,
        (false, true) => pull_with::<R, Pullback<false, true>>,
        (true, true) => pull_with::<R, Pullback<true, true>>,
    };
    pulled(bodies, physics, cotangents, asked)
}

fn pull_with<R: Lane, F: once::Mutual>(
    bodies: &Bodies,
    physics: &Physics,
    cotangents: &[[f64; 3]],
    asked: Asked,
) -> Result<Pulled, Coincident> {
    let n = bodies.len();
    assert_eq!(cotangents.len(), n, "a cotangent for each body");
    let local = Local::differentiable::<R>(bodies, physics)?;
    let scale = frame::unit_of(cotangents.as_flattened().iter().copied());
    let table = Table::<R, 7>::new(n, |i| {
        let [x, y, z] = local.position(i);
        let [lx, ly, lz] = cotangents[i].map(|l| R::from_f64(l / scale));
        [x, y, z, local.mass(i), lx, ly, lz]
    });
    let sums = match n >= once::PAYS_FROM {
        true => once::sums_of::<R, F>(&table, local.way(0.0)),
        false => sums_of::<R, F, _, _>(&table, local.way(0.0)),
    };
    let (length, mass) = (local.frame.length, local.frame.mass);
    let (by_position, by_mass) = (scale / length * local.unit, scale / mass * local.unit);
    let vector = |i: usize, first: usize, unit: f64| {
        let group = &sums[i / LANES];
        axes(|axis| group[first + axis][i % LANES] * unit)
    };
    let number = |i: usize, k: usize| sums[i / LANES][k][i % LANES];
    let by_softening: f64 = match asked.softening {
        true => (0..n).map(|i| number(i, 7)).sum(),
        false => 0.0,
    };
    Ok(Pulled {
        accelerations: (0..n).map(|i| vector(i, 0, local.unit)).collect(),
        positions: (0..n).map(|i| vector(i, 3, by_position)).collect(),
        masses: match asked.masses {
            true => (0..n).map(|i| number(i, 6) * by_mass).collect(),
            false => vec![],
        },
        softening: -0.5 * local.softening * by_softening * by_position,
    })
}

/// Derivative of accelerations under Newton's gravity in a direction, computed in `R`: the product of their
/// Jacobian and the direction. Along velocities alone it is the jerk.
///
/// # Errors
/// [`Coincident`] bodies without softening.
///
/// # Panics
/// If the direction is of another number of bodies.
pub fn tangent<R: Lane>(
    bodies: &Bodies,
    physics: &Physics,
    direction: Direction<'_>,
) -> Result<Vec<[f64; 3]>, Coincident> {
    let local = Local::differentiable::<R>(bodies, physics)?;
    let (table, way, rate) = local.along::<R>(&direction);
    let sums = sums_of::<R, Tangent, _, _>(&table, way);
    let unit = local.unit * rate;
    let vector = |i: usize| axes(|axis| sums[i / LANES][axis][i % LANES] * unit);
    Ok((0..bodies.len()).map(vector).collect())
}

/// Potentials at bodies, of all others, computed in `R`; bodies at the same place leave each other out where
/// there is no softening.
pub fn potentials<R: Lane>(bodies: &Bodies, physics: &Physics) -> Vec<f64> {
    let local = Local::new::<R>(bodies, physics);
    let table = Table::<R, 4>::new(bodies.len(), |i| {
        let [x, y, z] = local.position(i);
        [x, y, z, local.mass(i)]
    });
    let sums = sums_of::<R, Depth, _, _>(&table, local.way(0.0));
    let unit = -local.unit * local.frame.length;
    let numbers = 0..bodies.len();
    numbers
        .map(|i| sums[i / LANES][0][i % LANES] * unit)
        .collect()
}

/// Derivative of [`potentials`] in a direction.
///
/// # Errors
/// [`Coincident`] bodies without softening.
///
/// # Panics
/// If the direction is of another number of bodies.
pub fn potential_tangent<R: Lane>(
    bodies: &Bodies,
    physics: &Physics,
    direction: Direction<'_>,
) -> Result<Vec<f64>, Coincident> {
    let local = Local::differentiable::<R>(bodies, physics)?;
    let (table, way, rate) = local.along::<R>(&direction);
    let sums = sums_of::<R, PotentialTangent, _, _>(&table, way);
    let unit = -local.unit * local.frame.length * rate;
    let numbers = 0..bodies.len();
    Ok(numbers
        .map(|i| sums[i / LANES][0][i % LANES] * unit)
        .collect())
}

/// Derivatives of `L = Σ λ φ`, where φ are [`potentials`] and λ `cotangents`.
///
/// # Errors
/// [`Coincident`] bodies without softening.
///
/// # Panics
/// If there are not as many cotangents as bodies.
pub fn potential_pull<R: Lane>(
    bodies: &Bodies,
    physics: &Physics,
    cotangents: &[f64],
) -> Result<PotentialPulled, Coincident> {
    let n = bodies.len();
    assert_eq!(cotangents.len(), n, "a cotangent for each body");
    let local = Local::differentiable::<R>(bodies, physics)?;
    let scale = frame::unit_of(cotangents.iter().copied());
    let table = Table::<R, 5>::new(n, |i| {
        let [x, y, z] = local.position(i);
        let lambda = R::from_f64(cotangents[i] / scale);
        [x, y, z, local.mass(i), lambda]
    });
    let sums = sums_of::<R, PotentialPullback, _, _>(&table, local.way(0.0));
    let (length, mass) = (local.frame.length, local.frame.mass);
    let unit = local.unit * scale;
    let number = |i: usize, k: usize| sums[i / LANES][k][i % LANES];
    let by_softening: f64 = (0..n).map(|i| number(i, 4)).sum();
    Ok(PotentialPulled {
        positions: (0..n)
            .map(|i| axes(|axis| -unit * number(i, axis)))
            .collect(),
        masses: (0..n)
            .map(|i| -unit * (length / mass) * number(i, 3))
            .collect(),
        softening: 0.5 * local.softening * by_softening * unit,
    })
}
