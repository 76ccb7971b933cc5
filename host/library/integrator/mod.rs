//! Integrators: steps made of forces, kicks and drifts. An integrator knows the backend's interface
//! and nothing of kernels.

mod pace;
mod splitting;
#[cfg(test)]
mod tests;

pub use pace::{Pace, TimeSteps};
pub(crate) use splitting::Stage;

use crate::backend::{Backend, ForceError, HighestDerivative, Operation};

/// A way to advance bodies in time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Integrator {
    /// `v += dt a(x)`, then `x += dt v`: first order, symplectic. What GPU studies use.
    SemiImplicitEuler,
    /// `v += dt (a(x) − rate v)`, then `x += dt v`: first order, with a drag that takes energy
    /// out, for relaxing initial conditions.
    DampedEuler {
        /// Fraction of the velocity lost per unit time.
        rate: f64,
    },
    /// Kick–drift–kick, also known as velocity Verlet: second order, symplectic, reversible in
    /// time.
    Leapfrog,
    /// Drift–kick–drift: as leapfrog, forces taken in the middle of the step.
    LeapfrogDkd,
    /// Three leapfrogs: fourth order, symplectic, reversible in time (Yoshida 1990).
    Yoshida4,
    /// Seven leapfrogs: sixth order, symplectic, reversible in time (Yoshida 1990, solution A).
    Yoshida6,
    /// Hermite's scheme with jerks, predicted, evaluated and corrected once (Makino & Aarseth
    /// 1992): fourth order, one evaluation per step, and the step may vary.
    Hermite4,
    /// Hermite's scheme with jerks and snaps (Nitadori & Makino 2008): sixth order, for high accuracy.
    Hermite6,
}

impl Integrator {
    /// The drag of [`DampedEuler`](Self::DampedEuler) where none is given.
    pub const DEFAULT_DAMPING: f64 = 0.1;

    /// All integrators.
    pub const ALL: [Self; 8] = [
        Self::Leapfrog,
        Self::LeapfrogDkd,
        Self::Yoshida4,
        Self::Yoshida6,
        Self::Hermite4,
        Self::Hermite6,
        Self::SemiImplicitEuler,
        Self::DampedEuler {
            rate: Self::DEFAULT_DAMPING,
        },
    ];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SemiImplicitEuler => "euler",
            Self::DampedEuler { .. } => "damped-euler",
            Self::Leapfrog => "leapfrog",
            Self::LeapfrogDkd => "leapfrog-dkd",
            Self::Yoshida4 => "yoshida4",
            Self::Yoshida6 => "yoshida6",
            Self::Hermite4 => "hermite4",
            Self::Hermite6 => "hermite6",
        }
    }

    /// Summary for users.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::SemiImplicitEuler => "semi-implicit Euler: first order, symplectic",
            Self::DampedEuler { .. } => "Euler with a drag, to let bodies settle",
            Self::Leapfrog => "leapfrog, kick–drift–kick: second order, symplectic, reversible",
            Self::LeapfrogDkd => "leapfrog, drift–kick–drift: second order, symplectic, reversible",
            Self::Yoshida4 => "three leapfrogs: fourth order, symplectic, reversible",
            Self::Yoshida6 => "seven leapfrogs: sixth order, symplectic, reversible",
            Self::Hermite4 => {
                "Hermite with jerks: fourth order, fixed or varying steps, or each body's own"
            }
            Self::Hermite6 => {
                "Hermite with jerks and snaps: sixth order, steps as hermite4's; on a GPU each body's own"
            }
        }
    }

    /// The power of the step with which its error falls.
    pub const fn order(self) -> u32 {
        match self {
            Self::SemiImplicitEuler | Self::DampedEuler { .. } => 1,
            Self::Leapfrog | Self::LeapfrogDkd => 2,
            Self::Yoshida4 | Self::Hermite4 => 4,
            Self::Yoshida6 | Self::Hermite6 => 6,
        }
    }

    /// Derivatives of accelerations in time that it needs.
    pub const fn derivatives(self) -> usize {
        match self {
            Self::Hermite4 => 1,
            Self::Hermite6 => 2,
            _ => 0,
        }
    }

    /// Returns whether it needs a backend that computes jerks.
    pub const fn needs_jerks(self) -> bool {
        self.derivatives() > 0
    }

    /// Returns whether its steps are kicks by one acceleration and then a drift, all alike: of leapfrog the kick that
    /// ends a step and the one that begins the next count as two by the same acceleration.
    pub const fn is_kicks_and_a_drift(self) -> bool {
        matches!(self, Self::SemiImplicitEuler | Self::Leapfrog)
    }

    /// Force evaluations per step.
    pub fn evaluations(self) -> u32 {
        self.stages().map_or(1, splitting::evaluations)
    }

    /// Kicks and drifts, if the integrator is made of them alone.
    pub(crate) fn stages(self) -> Option<&'static [Stage]> {
        match self {
            Self::SemiImplicitEuler | Self::DampedEuler { .. } => {
                Some(splitting::SEMI_IMPLICIT_EULER)
            }
            Self::Leapfrog => Some(splitting::LEAPFROG),
            Self::LeapfrogDkd => Some(splitting::LEAPFROG_DKD),
            Self::Yoshida4 => Some(splitting::YOSHIDA4),
            Self::Yoshida6 => Some(splitting::YOSHIDA6),
            Self::Hermite4 | Self::Hermite6 => None,
        }
    }

    /// Computes what the first step needs.
    ///
    /// # Errors
    /// Errors of the backend, or that it has no jerks.
    pub fn prepare(self, backend: &mut dyn Backend) -> Result<(), ForceError> {
        match self {
            Self::Hermite4 => backend.perform(Operation::Evaluate(HighestDerivative::Jerk)),
            Self::Hermite6 => {
                Self::Hermite4.prepare(backend)?; // snaps take accelerations
                backend.perform(Operation::Evaluate(HighestDerivative::Snap))
            }
            _ => backend.accelerate(),
        }
    }

    /// The operations of a step.
    ///
    /// Half kicks of neighbouring steps are not merged, though they could be: the result would
    /// depend, in its last bits, on where it was observed.
    pub fn operations(self, dt: f64) -> Vec<Operation> {
        let mut step = vec![];
        if let Self::DampedEuler { rate } = self {
            step.push(Operation::Damp(1.0 - rate * dt));
        }
        match self.stages() {
            Some(stages) => step.extend(splitting::operations(stages, dt)),
            None => step.extend([
                Operation::Predict(dt),
                Operation::Evaluate(match self {
                    Self::Hermite6 => HighestDerivative::Snap,
                    _ => HighestDerivative::Jerk,
                }),
                Operation::Correct(dt),
            ]),
        }
        step
    }

    /// One step.
    ///
    /// # Errors
    /// Errors of the backend, or that it has no jerks.
    pub fn step(self, backend: &mut dyn Backend, dt: f64) -> Result<(), ForceError> {
        let mut operations = self.operations(dt).into_iter();
        operations.try_for_each(|operation| backend.perform(operation))
    }

    /// The first step, at most `longest`, that accuracy `eta` allows.
    ///
    /// # Errors
    /// Errors of the backend, or that it has no jerks.
    pub fn first_step(
        self,
        backend: &mut dyn Backend,
        eta: f64,
        longest: f64,
    ) -> Result<f64, ForceError> {
        backend.first_step(eta, longest)
    }

    /// The step that accuracy `eta` allows after one of `dt`; at most twice as long.
    ///
    /// # Errors
    /// Errors of the backend, or that it has no jerks.
    pub fn next_step(
        self,
        backend: &mut dyn Backend,
        eta: f64,
        dt: f64,
    ) -> Result<f64, ForceError> {
        Ok(backend.next_step(eta, dt)?.min(2.0 * dt))
    }
}
