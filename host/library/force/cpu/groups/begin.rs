//! Groups where a run begins: pairs that are there, their first forces and steps.

use super::corrections::Correction;
use super::slots::occupy;
use super::{Course, Cpu};
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::force::block_steps::guarded;
use crate::groups::{Group, Groups, Scales, pairs_of};
use crate::physics::Physics;
use crate::simd::Lane;

impl<R: Lane> Cpu<R> {
    /// With groups: pairs that the bodies have are followed as one body each, and others are formed on the way.
    #[must_use]
    pub(crate) fn in_groups(mut self) -> Self {
        let bodies = self.state.bodies.clone();
        let scales = Scales::of(&bodies, &self.physics);
        let mut groups = Groups {
            scales,
            all: vec![],
            coupling: self.physics.coupling(),
            masses: bodies.mass.clone(),
        };
        for members in pairs_of(&bodies, &self.physics, &scales) {
            self.pair_up(&mut groups, members);
        }
        self.state.groups = Some(Box::new(groups));
        self.find_sources();
        self
    }

    fn pair_up(&mut self, groups: &mut Groups, [one, other]: [usize; 2]) {
        let (x, v) = self.state.phase(one);
        let phases = [[[0.0; 3]; 2], self.state.relative_phase(other, one)];
        let gm = [one, other].map(|i| self.physics.coupling() * groups.masses[i]);
        let [positions, velocities] = [0, 1].map(|k| [phases[0][k], phases[1][k]]);
        let members = vec![one, other];
        let pair = Group::new(
            members.clone(),
            gm.to_vec(),
            &positions,
            &velocities,
            0.0,
            &groups.scales,
        );
        if let Some(pair) = pair {
            occupy(&mut self.state, &groups.masses, &members, &phases, [x, v]);
            groups.add(pair);
        }
    }

    /// Corrects the accelerations and jerks of all bodies, computed for centres of mass, for members.
    pub(in crate::force::cpu) fn correct_forces_for_members(&mut self) -> Result<(), ForceError> {
        let Some(groups) = self.state.groups.take() else {
            return Ok(());
        };
        let mut course = Course::new(self, *groups, 1.0, 1.0);
        let corrected = course.correct_all();
        let Course { groups, .. } = course;
        self.state.groups = Some(Box::new(groups));
        corrected
    }
}

impl<R: Lane> Course<'_, R> {
    fn correct_all(&mut self) -> Result<(), ForceError> {
        for number in 0..self.groups.all.len() {
            if self.groups.all[number].is_new {
                self.choose(number)?;
            }
        }
        let live = self.live.clone();
        let forces = self.forces(&live)?;
        for (&i, force) in live.iter().zip(&forces) {
            let [a, j, _] = force.derivatives;
            (self.cpu.state.accelerations[i], self.cpu.state.jerks[i]) = (a, j);
        }
        self.show_free_slots();
        Ok(())
    }

    /// Lets no body begin a span with a longer step than it may have next to members.
    pub(super) fn shorten_steps(&mut self) -> Result<(), ForceError> {
        let live = self.live.clone();
        self.correct(&live)?;
        for i in live {
            let Correction {
                longest, approach, ..
            } = self.corrections[i];
            let step = &mut self.cpu.state.own_steps[i];
            *step = step.min(guarded(longest, approach));
        }
        Ok(())
    }
}

/// Number of pairs that a run of these bodies begins with.
pub(crate) fn pairs_at_start(bodies: &Bodies, physics: &Physics) -> usize {
    let scales = Scales::of(bodies, physics);
    pairs_of(bodies, physics, &scales).len()
}
