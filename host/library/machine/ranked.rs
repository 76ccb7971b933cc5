//! Variants on several ranks.

use std::sync::Arc;

use super::Machine;
use crate::backend::{Backend, ForceError};
use crate::bodies::Bodies;
use crate::force::cpu::Choices;
use crate::force::ranked::lead;
use crate::physics::Physics;
use crate::ranks::Team;
use crate::variants::{CpuPath, Method, Variant};

impl Machine {
    /// Has all ranks of a team compute together, as rank 0: the others
    /// [follow](crate::force::ranked::follow).
    #[must_use]
    pub fn ranks(self, team: Arc<Team>) -> Self {
        let team = Some(team);
        Self { team, ..self }
    }

    pub(super) fn ranked(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        team: &Arc<Team>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        let Method::Cpu(path) = variant.method else {
            return Err(ForceError::OneProcess(
                "kernels other than those of the CPU are run",
            ));
        };
        if variant.systems != 1 {
            return Err(ForceError::OneProcess("independent systems are computed"));
        }
        let CpuPath {
            precision,
            root,
            pairs,
            threads,
        } = path;
        let choices = Choices {
            root,
            pairs,
            threads,
            ..Choices::default()
        };
        lead(team, (bodies, &self.fields), physics, precision, choices)
    }
}
