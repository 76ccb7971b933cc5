//! How a step is made of forces, kicks and drifts. An integrator knows the backend's interface and
//! nothing of kernels.

use crate::force::{Backend, ForceError};

/// A way to advance bodies in time, with a fixed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrator {
    /// `v += dt a(x)`, then `x += dt v`: first order, symplectic. What GPU studies use.
    SemiImplicitEuler,
    /// Kick–drift–kick, also known as velocity Verlet: second order, symplectic, reversible in
    /// time.
    Leapfrog,
}

impl Integrator {
    /// All integrators.
    pub const ALL: [Self; 2] = [Self::Leapfrog, Self::SemiImplicitEuler];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SemiImplicitEuler => "euler",
            Self::Leapfrog => "leapfrog",
        }
    }

    /// What a user would want to know of it.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::SemiImplicitEuler => "semi-implicit Euler: first order, symplectic",
            Self::Leapfrog => "leapfrog, kick–drift–kick: second order, symplectic, reversible",
        }
    }

    /// One step. The backend's accelerations are those of the current positions, before and after.
    ///
    /// Half kicks of neighbouring steps are not merged, though they could be: the result would
    /// depend, in its last bits, on where somebody looked.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn step(self, backend: &mut dyn Backend, dt: f64) -> Result<(), ForceError> {
        match self {
            Self::SemiImplicitEuler => {
                backend.kick(dt)?;
                backend.drift(dt)?;
                backend.accelerate()
            }
            Self::Leapfrog => {
                backend.kick(dt / 2.0)?;
                backend.drift(dt)?;
                backend.accelerate()?;
                backend.kick(dt / 2.0)
            }
        }
    }
}
