//! Groups where a run begins: pairs that are there, their first forces and steps.

use super::Course;
use super::corrections::Correction;
use super::slots::occupy;
use crate::backend::{ForceError, Neighbours};
use crate::bodies::Bodies;
use crate::force::block_steps::guarded;
use crate::force::host_state::HostState;
use crate::force::in_memory::InMemory;
use crate::groups::{Group, Groups, Scales, pairs_of};
use crate::physics::Physics;

/// Follows pairs and multiples of a backend's bodies as one body each: those that there are, and those that are formed
/// on the way. In a neighbour scheme, if one is asked for.
pub(in crate::force) fn begin(backend: &mut dyn InMemory, neighbours: Option<Neighbours>) {
    let physics = *backend.physics();
    let state = backend.state_mut();
    state.have_neighbours(neighbours);
    let scales = Scales::of(&state.bodies, &physics);
    let pairs = pairs_of(&state.bodies, &physics, &scales);
    let masses = state.bodies.mass.clone();
    let mut groups = Groups::new(scales, vec![], physics.coupling(), masses);
    for members in pairs {
        pair_up(state, &mut groups, members);
    }
    state.groups = Some(Box::new(groups));
    backend.find_sources();
}

fn pair_up(state: &mut HostState, groups: &mut Groups, [one, other]: [usize; 2]) {
    let (x, v) = state.phase(one);
    let phases = [[[0.0; 3]; 2], state.relative_phase(other, one)];
    let gm = [one, other].map(|i| groups.coupling * groups.masses[i]);
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
        occupy(state, &groups.masses, &members, &phases, [x, v]);
        groups.add(pair);
    }
}

/// Corrects the accelerations of all bodies and their derivatives, computed for centres of mass, for members.
pub(in crate::force) fn correct_for_members(backend: &mut dyn InMemory) -> Result<(), ForceError> {
    let Some(groups) = backend.state_mut().groups.take() else {
        return Ok(());
    };
    let mut course = Course::new(backend, *groups, 1.0, 1.0);
    let corrected = course.correct_all();
    let Course {
        backend, groups, ..
    } = course;
    backend.state_mut().groups = Some(Box::new(groups));
    corrected
}

impl Course<'_> {
    fn correct_all(&mut self) -> Result<(), ForceError> {
        let all = self.groups.all.iter().enumerate();
        let new: Vec<usize> = all
            .filter(|(_, group)| group.is_new)
            .map(|(number, _)| number)
            .collect();
        self.choose_each(&new)?;
        let live = self.live.clone();
        let forces = self.forces(&live)?;
        for (&i, force) in live.iter().zip(&forces) {
            self.backend.state_mut().begin_with(i, force.derivatives);
        }
        self.backend.state_mut().show_free_slots(&self.groups);
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
            let step = &mut self.backend.state_mut().own_steps[i];
            *step = step.min(guarded(longest, approach));
        }
        Ok(())
    }
}

/// Number of pairs that a run of these bodies begins with.
pub(crate) fn pairs_at_start(bodies: &Bodies, physics: &Physics) -> usize {
    pairs_of(bodies, physics, &Scales::of(bodies, physics)).len()
}
