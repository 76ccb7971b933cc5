//! Slots: which are live, and what is in them.

use gpu_kernels::schedule::block_steps::{Fourth, Scheme};

use super::Course;
use crate::force::cpu::near_and_far::{Inside, PADDED};
use crate::force::host_state::HostState;
use crate::groups::{Groups, Vector};

/// Puts the whole of a group into its slot, and frees the others of its members. Positions and velocities of the
/// members are about this place, which moves so.
pub(super) fn occupy(
    state: &mut HostState,
    masses: &[f64],
    members: &[usize],
    phases: &[[Vector; 2]],
    [origin, velocity]: [Vector; 2],
) {
    let total: f64 = members.iter().map(|&i| masses[i]).sum();
    let mut centre = [[0.0; 3]; 2];
    for (&i, phase) in members.iter().zip(phases) {
        for (sum, vector) in centre.iter_mut().zip(phase) {
            for k in 0..3 {
                sum[k] += masses[i] / total * vector[k];
            }
        }
    }
    let [x, v] = centre;
    let slot = members.iter().copied().min().unwrap_or_default();
    for &i in members {
        state.bodies.mass[i] = if i == slot { total } else { 0.0 };
        let place = [0, 1, 2].map(|k| origin[k] + x[k]);
        let moving = [0, 1, 2].map(|k| velocity[k] + v[k]);
        state.set_phase(i, place, moving);
    }
}

impl HostState {
    /// Slots of free members show the step and the forces of their group.
    pub(super) fn show_free_slots(&mut self, groups: &Groups) {
        for group in &groups.all {
            let slot = group.slot;
            for &i in group.members.iter().filter(|&&i| i != slot) {
                let (x, v) = self.phase(slot);
                self.set_phase(i, x, v);
                self.accelerations[i] = self.accelerations[slot];
                self.jerks[i] = self.jerks[slot];
                if let Some(&step) = self.own_steps.get(slot) {
                    self.own_steps[i] = step;
                }
            }
        }
    }
}

impl Course<'_> {
    /// Finds live slots and masses.
    pub(super) fn find_live(&mut self) {
        self.backend.find_sources();
        let bodies = &self.backend.state().bodies;
        let g = self.backend.physics().coupling();
        self.gm = bodies.mass.iter().map(|mass| g * mass).collect();
        let has_body = |&i: &usize| self.gm[i] != 0.0;
        self.live = (0..self.gm.len()).filter(has_body).collect();
        self.heaviest = self.gm.iter().copied().fold(0.0, f64::max);
        self.columns[0].clear();
    }

    pub(super) fn show_free_slots(&mut self) {
        self.backend.state_mut().show_free_slots(&self.groups);
    }

    /// Position and velocity of a slot now.
    pub(super) fn phase(&self, slot: usize) -> [Vector; 2] {
        self.backend.state().phase(slot).into()
    }

    /// Position and velocity of a slot from another, now.
    pub(super) fn between(&self, from: usize, to: usize) -> [Vector; 2] {
        self.backend.state().relative_phase(to, from)
    }

    /// Position of a slot at a time within its step.
    pub(super) fn place_at(&self, slot: usize, time: f64) -> Vector {
        let since = time - self.time(self.begun[slot]);
        let [x, ..] = Fourth::predicted(&self.backend.state().beginnings[slot], since);
        x
    }

    /// Live slots nearer to a slot than a distance, in their order, without it.
    pub(super) fn near(&mut self, slot: usize, within: f64) -> Vec<usize> {
        let bodies = &self.backend.state().bodies;
        if self.columns[0].is_empty() {
            let padded = self.live.len().next_multiple_of(PADDED);
            let columns = [&bodies.x, &bodies.y, &bodies.z];
            for (column, x) in self.columns.iter_mut().zip(columns) {
                column.clear();
                column.extend(self.live.iter().map(|&i| x[i]));
                column.resize(padded, f64::INFINITY);
            }
        }
        let (at, _) = self.backend.state().phase(slot);
        let inside = self.instructions.run(Inside {
            columns: &self.columns,
            at,
            limit: within * within,
        });
        let slots = inside.into_iter().map(|k| self.live[k as usize]);
        slots.filter(|&i| i != slot).collect()
    }
}
