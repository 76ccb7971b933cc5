//! The kernels of a run.

use gpu_kernels::entries::{Entry, Work};

use super::{Masses, Variant};
use crate::physics::ForceLaw;

/// The kernels of a run.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    /// Accelerations.
    pub force: &'static Entry,
    /// See [`common_mass`].
    pub common_mass: Option<f64>,
    /// `v += dt a`, in the force's layout.
    pub kick: &'static Entry,
    /// `x += dt v`, in the force's layout.
    pub drift: &'static Entry,
    /// `v *= f`, in the force's layout.
    pub damp: &'static Entry,
    /// Energies, in the force's layout and law.
    pub energy: &'static Entry,
    /// Kernel of energies for [many bodies](crate::plan::EXACT_ENERGY_BODIES), where there is one.
    pub quick_energy: Option<&'static Entry>,
    /// The parts of Hermite's steps, where the force comes with jerks.
    pub hermite: Option<HermiteKernels>,
}

/// The kernels of Hermite's scheme beside the force, in its layout.
#[derive(Clone, Copy, Debug)]
pub struct HermiteKernels {
    /// Keeps the beginning of a step, and predicts.
    pub predict: &'static Entry,
    /// Ends the step.
    pub correct: &'static Entry,
    /// Kernel of each body's longest next step.
    pub own_steps: &'static Entry,
}

impl Variant {
    /// The kernels of a run with bodies of these masses, if this variant is one of kernels.
    pub fn kernels(&self, law: ForceLaw, unsoftened: bool, masses: Masses) -> Option<Kernels> {
        let force = self.force_for(law, unsoftened, masses)?;
        Some(Kernels {
            force,
            common_mass: common_mass(force, law, masses),
            kick: force.partner(Work::Kick)?,
            drift: force.partner(Work::Drift)?,
            damp: force.partner(Work::Damp)?,
            energy: force.partner(Work::Energy(law.of_kernels()))?,
            quick_energy: force.partner(Work::QuickEnergy(law.of_kernels())),
            hermite: if self.gives_jerks() {
                Some(HermiteKernels {
                    predict: force.partner(Work::Predict)?,
                    correct: force.partner(Work::Correct)?,
                    own_steps: force.partner(Work::OwnSteps)?,
                })
            } else {
                None
            },
        })
    }
}

/// The mass of every body, where the force kernel leaves masses out and G has to hold it.
pub fn common_mass(force: &Entry, law: ForceLaw, masses: Masses) -> Option<f64> {
    match (force.work, masses) {
        (Work::Force { law: computed, .. }, Masses::Equal(mass))
            if computed != law.of_kernels() =>
        {
            Some(mass)
        }
        _ => None,
    }
}
