//! Slots: which are live, and what is in them.

use std::mem;

use gpu_kernels::schedule::block_steps::{Moving, SPAN};

use super::Course;
use super::levels::Levels;
use super::perturbed::Perturbed;
use crate::force::cancelled::Others;
use crate::force::hermite_order::Order;
use crate::force::host_state::HostState;
use crate::force::in_memory::time_in;
use crate::groups::{Groups, Vector};
use crate::physics::Physics;
use crate::vectors::{axes, difference, dot};

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
        let place = axes(|k| origin[k] + x[k]);
        let moving = axes(|k| velocity[k] + v[k]);
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
                if let Some(&higher) = self.higher.get(slot) {
                    self.higher[i] = higher;
                }
                if let Some(&step) = self.own_steps.get(slot) {
                    self.own_steps[i] = step;
                }
            }
        }
    }
}

impl Course<'_> {
    /// Finds the masses of slots that may have another content, and which of these are live.
    pub(super) fn find_live(&mut self, slots: &[usize]) {
        self.backend.find_sources();
        let g = self.backend.physics().coupling();
        let mut heaviest = self.heaviest;
        for &slot in slots {
            let now = g * self.backend.state().bodies.mass[slot];
            let before = mem::replace(&mut self.gm[slot], now);
            self.roots[slot] = now.cbrt();
            heaviest = match before == heaviest && now < before {
                true => self.gm.iter().copied().fold(0.0, f64::max),
                false => heaviest.max(now),
            };
            match (self.live.binary_search(&slot), now != 0.0) {
                (Err(place), true) => self.live.insert(place, slot),
                (Ok(place), false) => {
                    self.live.remove(place);
                }
                _ => {}
            }
        }
        self.heaviest = heaviest;
        self.find_slots(slots);
    }

    /// The slots as they are now.
    pub(super) fn view(&self) -> View<'_> {
        View {
            groups: &self.groups,
            perturbed: &self.perturbed,
            physics: self.backend.physics(),
            gm: &self.gm,
            roots: &self.roots,
            heavy: self.heavy,
            state: self.backend.state(),
            order: self.order,
            begun: &self.begun,
            span: self.span,
            now: self.now,
            is_predicted: self.is_predicted,
        }
    }

    /// Position and velocity of a slot now.
    pub(super) fn phase(&self, slot: usize) -> [Vector; 2] {
        self.view().phase(slot)
    }

    /// Position and velocity of a slot from another, now.
    pub(super) fn between(&self, from: usize, to: usize) -> [Vector; 2] {
        self.view().between(from, to)
    }

    /// Position, velocity and [acceleration](View::acceleration) of a slot from another, now.
    pub(super) fn moving_between(&self, from: usize, to: usize) -> Moving {
        let view = self.view();
        let [d, u] = view.between(from, to);
        [
            d,
            u,
            difference(view.acceleration(to), view.acceleration(from)),
        ]
    }
}

/// How strongly a slot acts.
#[derive(Clone, Copy)]
pub(super) struct Pull {
    /// Mass times G.
    pub(super) gm: f64,
    /// Cube root of the mass times G: tides reach as far.
    pub(super) root: f64,
}

/// All slots as they are now, for several threads.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) groups: &'a Groups,
    pub(super) perturbed: &'a Perturbed,
    physics: &'a Physics,
    pub(super) gm: &'a [f64],
    roots: &'a [f64],
    heavy: f64,
    pub(super) state: &'a HostState,
    pub(super) order: Order,
    begun: &'a [u64],
    pub(super) span: f64,
    pub(super) now: u64,
    is_predicted: bool,
}

impl View<'_> {
    pub(super) fn pull(&self, slot: usize) -> Pull {
        Pull {
            gm: self.gm[slot],
            root: self.roots[slot],
        }
    }

    /// Returns whether a slot has a body whose step begins now.
    pub(super) fn begins(&self, slot: usize) -> bool {
        self.gm[slot] != 0.0 && self.begun[slot] == self.now
    }

    /// Position and velocity of a slot.
    #[inline]
    pub(super) fn phase(&self, slot: usize) -> [Vector; 2] {
        if self.is_predicted {
            return self.state.phase(slot).into();
        }
        let [x, v, _] = self.predicted(slot);
        [x, v]
    }

    /// Position, velocity and, at sixth order, acceleration of a slot, from where its step began.
    #[inline]
    fn predicted(&self, slot: usize) -> Moving {
        let beginning = &self.state.beginnings[slot];
        self.order.predicted(beginning, self.since(slot))
    }

    /// The part of η that a slot takes.
    pub(super) fn finer(&self, slot: usize) -> f64 {
        let masses = [self.gm[slot], self.heavy];
        super::steps::finer(self.groups, self.order, masses, slot)
    }

    /// The most by which a slot moves from now to the end of its step.
    pub(super) fn path(&self, slot: usize, levels: &Levels) -> f64 {
        let length = |v: Vector| dot(v, v).sqrt();
        let begun = &self.state.beginnings[slot];
        let end = |level| self.begun[slot] + (SPAN >> level);
        let left = levels
            .of(slot)
            .map_or(0.0, |level| time_in(self.span, end(level) - self.now));
        // From the beginning of the step, which is at least as long.
        let step = left + self.since(slot);
        let higher = length(begun.s) + length(begun.c) * step / 4.0;
        let bend = length(begun.a) + length(begun.j) * step / 2.0 + higher * step * step / 6.0;
        left * (length(begun.v) + bend * step)
    }

    /// Time since the span began.
    pub(super) fn time(&self) -> f64 {
        time_in(self.span, self.now)
    }

    /// Time since the step of a slot began.
    pub(super) fn since(&self, slot: usize) -> f64 {
        time_in(self.span, self.now - self.begun[slot])
    }

    /// Acceleration of a slot; zero at fourth order, which needs none.
    pub(super) fn acceleration(&self, slot: usize) -> Vector {
        match (self.order, self.is_predicted) {
            (Order::Fourth, _) => [0.0; 3],
            (Order::Sixth, true) => self.state.accelerations[slot],
            (Order::Sixth, false) => self.predicted(slot)[2],
        }
    }

    /// Position and velocity of a slot from another.
    #[inline]
    pub(super) fn between(&self, from: usize, to: usize) -> [Vector; 2] {
        if self.is_predicted {
            return self.state.relative_phase(to, from);
        }
        let ([x0, v0], [x, v]) = (self.phase(from), self.phase(to));
        [difference(x, x0), difference(v, v0)]
    }
}

/// Bodies and groups as they are now.
impl Others for View<'_> {
    fn physics(&self) -> &Physics {
        self.physics
    }

    fn len(&self) -> usize {
        self.gm.len()
    }

    fn mass(&self, body: usize) -> f64 {
        self.state.bodies.mass[body]
    }

    fn phase(&self, body: usize) -> [Vector; 2] {
        View::phase(self, body)
    }
}
