//! Decision whether pairs and multiples are followed apart.

use super::resolve::Choice;
use super::{BuildError, RunSpec};
use crate::bodies::Bodies;
use crate::force::groups::pairs_at_start;
use crate::integrator::{Integrator, TimeSteps};
use crate::physics::{ForceLaw, Physics};
use crate::selection::{Place, Selection};
use crate::settings::Setting;
use crate::variants::{CpuPath, Method};
use gpu_kernels::numerics::Precision;

/// Number of bodies from which on groups are followed without being asked for.
const CLUSTER: usize = 16;

/// Reason why pairs and multiples cannot be followed apart, as the rest of "groups need ...".
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupsFault {
    /// All bodies take the same step.
    #[error("{}", Setting::BlockSteps)]
    SharedSteps,
    /// Another integrator.
    #[error("{}", Setting::Integrator.with("hermite4"))]
    Integrator,
    /// The force is softened.
    #[error("{}", Setting::Softening.with(0))]
    Softening,
    /// Another force law.
    #[error("{}", Setting::Law.with("gravity"))]
    Law,
    /// A neighbour scheme.
    #[error("steps without {}", Setting::Neighbours)]
    Neighbours,
    /// External fields.
    #[error("bodies without a {}", Setting::Field)]
    Fields,
    /// Collisions or escapes are looked for.
    #[error("a run that looks for no encounters")]
    Encounters,
    /// Independent systems.
    #[error("one system, not several")]
    Systems,
    /// Ranks.
    #[error("one process, not several ranks")]
    Ranks,
    /// Several devices, or forces in f32 on the CPU.
    #[error("forces in f64 on the CPU, or one GPU")]
    Device,
    /// Bodies without mass.
    #[error("bodies with mass, and some have none")]
    Massless,
    /// A body that all others revolve about.
    #[error("bodies of which none has most of the mass")]
    Dominated,
}

/// Decision on groups.
pub(super) struct Decision {
    /// True if they are followed apart.
    pub(super) groups: bool,
    /// Line about it for the user.
    pub(super) choice: Option<Choice>,
}

impl RunSpec {
    /// Decides whether pairs and multiples are followed apart, and tells how many pairs there are.
    pub(super) fn decide_groups(
        &self,
        bodies: &Bodies,
        physics: &Physics,
        integrator: Integrator,
        selection: &Selection,
        has_ranks: bool,
    ) -> Result<Decision, BuildError> {
        let fault = self.groups_fault(bodies, physics, integrator, selection, has_ranks);
        if let (Some(true), Some(fault)) = (self.groups, fault) {
            return Err(fault.into());
        }
        let can = fault.is_none();
        if self.stepping != TimeSteps::Blocks || bodies.len() < 2 {
            return Ok(Decision {
                groups: false,
                choice: None,
            });
        }
        let newtonian = matches!(physics.law, ForceLaw::Gravity) && self.systems == 1;
        let pairs = match newtonian && fault != Some(GroupsFault::Dominated) {
            true => pairs_at_start(bodies, physics),
            false => 0,
        };
        // On a device the host takes the steps if there are groups, which costs bodies without pairs several times
        // as long.
        let pays = bodies.len() >= CLUSTER && (selection.place == Place::Cpu || pairs > 0);
        let groups = can && self.groups.unwrap_or(pays);
        let counted = match pairs {
            1 => "1 pair".to_owned(),
            more => format!("{more} pairs"),
        };
        let why = match (groups, fault) {
            (true, _) => format!(
                "{counted} followed apart, as one body each; others will be when bodies meet"
            ),
            (false, _) if pairs == 0 => {
                return Ok(Decision {
                    groups,
                    choice: None,
                });
            }
            (false, None) => {
                format!("{counted} in short steps, which take long and lose energy")
            }
            (false, Some(fault)) => format!(
                "{counted} in short steps, which take long and lose energy: to follow them apart needs {fault}"
            ),
        };
        Ok(Decision {
            groups,
            choice: Some(Choice {
                setting: Setting::Groups,
                value: if groups { "on" } else { "off" }.to_owned(),
                why,
            }),
        })
    }

    fn groups_fault(
        &self,
        bodies: &Bodies,
        physics: &Physics,
        integrator: Integrator,
        selection: &Selection,
        has_ranks: bool,
    ) -> Option<GroupsFault> {
        let can_compute = match selection.variant.method {
            Method::Cpu(CpuPath { precision, .. }) => precision == Precision::F64,
            Method::Kernel { .. } => matches!(selection.place, Place::Emulator | Place::Gpu(_)),
            _ => false,
        };
        let heaviest = bodies.mass.iter().copied().fold(0.0, f64::max);
        let is_dominated = bodies.len() > 2 && heaviest > 0.5 * bodies.total_mass();
        let has_no_mass = |mass: &f64| physics.weight(*mass) <= 0.0;
        let faults = [
            (
                self.stepping != TimeSteps::Blocks || self.has_scheme,
                GroupsFault::SharedSteps,
            ),
            (integrator != Integrator::Hermite4, GroupsFault::Integrator),
            (physics.softening != 0.0, GroupsFault::Softening),
            (
                physics.law != ForceLaw::Gravity || physics.g <= 0.0,
                GroupsFault::Law,
            ),
            (self.neighbours.is_some(), GroupsFault::Neighbours),
            (!self.fields.is_empty(), GroupsFault::Fields),
            (self.encounters.is_some(), GroupsFault::Encounters),
            (self.systems != 1, GroupsFault::Systems),
            (has_ranks, GroupsFault::Ranks),
            (!can_compute, GroupsFault::Device),
            (bodies.mass.iter().any(has_no_mass), GroupsFault::Massless),
            (is_dominated, GroupsFault::Dominated),
        ];
        faults
            .into_iter()
            .find_map(|(is_so, fault)| is_so.then_some(fault))
    }
}
