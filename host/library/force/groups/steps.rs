//! Steps of slots: where they end, and the next ones begin.

use gpu_kernels::schedule::block_steps::{Ended, StepAccuracy};

use super::corrections::Correction;
use super::levels::{length_of_part, places_of};
use super::{Course, MARGIN, NO_IMPULSES, level_from};
use crate::backend::ForceError;
use crate::force::block_steps::{guarded, level, next_level};
use crate::force::cancelled::{Pulled, is_sudden};
use crate::force::hermite_order::Order;
use crate::force::host_state::{Beginning, HostState};
use crate::force::in_memory::{Forces, time_in};
use crate::groups::{Groups, Vector};
use crate::parallel;
use crate::vectors::dot;

/// First step of a body after its group changed, by |a|/|j|.
const FIRST: f64 = 0.02;

/// The most by which a pair may change its distance in a first step.
const FIRST_GUARD: f64 = 0.1;

/// Slots of a block from which on several threads end their steps.
const SEVERAL: usize = 128;

/// Slots of a block whose next steps one thread begins, which is far less work.
const MANY: usize = 1024;

/// Ends of the steps of slots, each alone.
#[derive(Clone, Copy)]
struct Ending<'a> {
    groups: &'a Groups,
    gm: &'a [f64],
    begun: &'a [u64],
    corrections: &'a [Correction],
    order: Order,
    accuracy: StepAccuracy,
    heavy: f64,
    span: f64,
    now: u64,
    /// The shortest step of all.
    shortest: f64,
}

/// Slots that one thread has, from the first on.
struct OwnSlots<'a> {
    first: usize,
    beginnings: &'a mut [Beginning],
    own_steps: &'a mut [f64],
    impulses: &'a mut [[Vector; 2]],
    nearest: &'a mut [f64],
}

impl Ending<'_> {
    /// Ends the step of one of these slots, with the force where it was predicted, and begins the next one. It has the
    /// impulses that it was owed. Returns the slot and the next step that derivatives allow, if this step would be so short that
    /// pulls may cancel.
    fn end(&self, own: &mut OwnSlots<'_>, slot: usize, force: &Forces) -> Option<(usize, f64)> {
        let finer = finer(self.groups, self.order, [self.gm[slot], self.heavy], slot);
        let accuracy = match self.gm[slot] > self.heavy {
            true => self.accuracy.of_heavy(finer),
            false => self.accuracy,
        };
        let dt = time_in(self.span, self.now - self.begun[slot]);
        let k = slot - own.first;
        let Ended {
            mut x,
            mut v,
            crackle: c,
            allowed,
        } = self
            .order
            .ended(&own.beginnings[k], dt, accuracy, force.derivatives);
        let impulses = &mut own.impulses[k];
        if *impulses != NO_IMPULSES {
            let [sum, times] = std::mem::replace(impulses, NO_IMPULSES);
            let time = time_in(self.span, self.now);
            for k in 0..3 {
                x[k] += time * sum[k] + times[k];
                v[k] += sum[k];
            }
        }
        let [a, j, s] = force.derivatives;
        own.beginnings[k] = Beginning { x, v, a, j, s, c };
        own.nearest[k] = force.nearest;
        own.own_steps[k] = longest((allowed, dt), finer, force, &self.corrections[slot]);
        is_sudden(allowed, [dt, self.shortest]).then_some((slot, allowed))
    }
}

/// The part of η that a slot takes, with this mass and the mass above which bodies are heavy, both times G.
pub(super) fn finer(groups: &Groups, order: Order, [gm, heavy]: [f64; 2], slot: usize) -> f64 {
    if gm <= heavy || groups.in_slot(slot).is_some() {
        return 1.0;
    }
    order.of_heavy()
}

/// The longest step of a slot that may follow a step of `dt`, of those that its derivatives allow.
fn longest((allowed, dt): (f64, f64), finer: f64, force: &Forces, correction: &Correction) -> f64 {
    guarded(allowed, force.approach / finer.sqrt())
        .min(2.0 * dt)
        .min(correction.longest)
}

impl Course<'_> {
    /// Ends the steps of slots, which are in order.
    pub(super) fn take_steps(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        let forces = self.forces(slots)?;
        let ticks = slots.iter().map(|&slot| self.now - self.begun[slot]);
        if let Some(fewest) = ticks.min() {
            let shortest = self.time(fewest).abs();
            self.counts.shortest = self.counts.shortest.min(shortest);
        }
        self.counts.steps += slots.len() as u64;
        let before = self.kept_before(slots);
        self.end_steps(slots, &forces)?;
        self.keep(before);
        self.begin_next(slots)?;
        self.note_steps(slots);
        Ok(())
    }

    /// Begins the next steps of slots, which are in order, and whose steps ended now.
    fn begin_next(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        let (span, now) = (self.span, self.now);
        let own_steps = &self.backend.state().own_steps;
        let (near, levels) = (self.neighbourhood.as_ref(), &self.levels);
        // Most keep their level.
        let changes = |slots: &[usize]| -> Result<Vec<(usize, u32)>, ForceError> {
            let mut changed = vec![];
            for &slot in slots {
                let regular = near.map_or(0, |near| near.level_of_regular(slot));
                let wanted = level(own_steps[slot], span, slot)?.max(regular);
                let before = levels.of(slot);
                let level = level_from(now, next_level(before.unwrap_or(wanted), wanted, now));
                if before != Some(level) {
                    changed.push((slot, level));
                }
            }
            Ok(changed)
        };
        let parts: Vec<&[usize]> = slots.chunks(MANY).collect();
        for of_part in parallel::each_of(&parts, 1, |part| changes(part)) {
            for (slot, level) in of_part? {
                self.levels.set(slot, level);
            }
        }
        for &slot in slots {
            self.begun[slot] = now;
        }
        Ok(())
    }

    /// Ends the steps of slots with these forces, but does not choose the ends of the next steps yet.
    fn end_steps(&mut self, slots: &[usize], forces: &[Forces]) -> Result<(), ForceError> {
        let is_predicted = self.is_predicted;
        let HostState {
            beginnings,
            own_steps,
            ..
        } = self.backend.state_mut();
        let ending = Ending {
            groups: &self.groups,
            gm: &self.gm,
            begun: &self.begun,
            corrections: &self.corrections,
            order: self.order,
            accuracy: StepAccuracy {
                eta: self.eta,
                rounding: self.rounding,
            },
            heavy: self.heavy,
            span: self.span,
            now: self.now,
            shortest: self.counts.shortest,
        };
        let end = |own: &mut OwnSlots<'_>, slots: &[usize], forces: &[Forces]| {
            let each = slots.iter().zip(forces);
            let sudden = each.filter_map(|(&slot, force)| ending.end(own, slot, force));
            sudden.collect::<Vec<_>>()
        };
        let sudden: Vec<(usize, f64)> = match slots.len() < SEVERAL {
            true => {
                let mut own = OwnSlots {
                    first: 0,
                    beginnings,
                    own_steps,
                    impulses: &mut self.impulses,
                    nearest: &mut self.nearest,
                };
                end(&mut own, slots, forces)
            }
            false => {
                let length = length_of_part(self.begun.len());
                let parts = beginnings
                    .chunks_mut(length)
                    .zip(own_steps.chunks_mut(length));
                let parts = parts.zip(self.impulses.chunks_mut(length));
                let parts = parts.zip(self.nearest.chunks_mut(length)).enumerate();
                let own =
                    parts.map(
                        |(part, (((beginnings, own_steps), impulses), nearest))| OwnSlots {
                            first: part * length,
                            beginnings,
                            own_steps,
                            impulses,
                            nearest,
                        },
                    );
                let mut parts: Vec<_> = own.map(|own| (own, vec![])).collect();
                parallel::change(&mut parts, 1, |_, (own, sudden)| {
                    let places = places_of(own.first..own.first + length, slots);
                    *sudden = end(own, &slots[places.clone()], &forces[places]);
                });
                parts.into_iter().flat_map(|(_, sudden)| sudden).collect()
            }
        };
        self.changed.extend(slots);
        if is_predicted {
            slots.iter().for_each(|&slot| self.show(slot));
        }
        for (slot, allowed) in sudden {
            if let Ok(place) = slots.binary_search(&slot) {
                self.lengthen(slot, allowed, &forces[place]);
            }
        }
        if self.neighbourhood.is_some() {
            slots
                .iter()
                .try_for_each(|&slot| self.correct_regular(slot))?;
        }
        Ok(())
    }

    /// Lets a slot have a longer step than its derivatives allow, if pulls on it cancel.
    fn lengthen(&mut self, slot: usize, allowed: f64, force: &Forces) {
        let view = self.view();
        let (finer, dt) = (view.finer(slot), view.since(slot));
        let pulled = Pulled {
            body: slot,
            acceleration: force.derivatives[0],
            eta: finer * self.eta,
        };
        // Most often pulls are too weak for it, and it takes no look at all of them to know this.
        if !pulled.may_cancel(MARGIN * self.total / force.nearest.powi(2)) {
            return;
        }
        let allowed = pulled.next_step(allowed, [dt, self.counts.shortest], &view);
        let longest = longest((allowed, dt), finer, force, &self.corrections[slot]);
        self.backend.state_mut().own_steps[slot] = longest;
    }

    /// Corrects a slot where its step and a regular step of it ended.
    fn correct_regular(&mut self, slot: usize) -> Result<(), ForceError> {
        let (finer, own_step) = (
            self.view().finer(slot),
            self.backend.state().own_steps[slot],
        );
        let Some(by) = self.next_regular(slot, (finer, own_step))? else {
            return Ok(());
        };
        let Beginning { x, v, a, j, .. } = &mut self.backend.state_mut().beginnings[slot];
        let [da, dj] = by.force;
        for (vector, change) in [(x, by.x), (v, by.v), (a, da), (j, dj)] {
            for k in 0..3 {
                vector[k] += change[k];
            }
        }
        if self.is_predicted {
            self.show(slot);
        }
        Ok(())
    }

    /// Where single bodies of a block begin their steps, if paths are kept.
    fn kept_before(&self, slots: &[usize]) -> Vec<(usize, [Vector; 2])> {
        let state = self.backend.state();
        if state.kept.is_none() {
            return vec![];
        }
        let is_single = |slot: &&usize| self.groups.in_slot(**slot).is_none();
        let phase = |&slot: &usize| (slot, state.begun_from(slot));
        slots.iter().filter(is_single).map(phase).collect()
    }

    /// Keeps the steps of bodies that ended now.
    fn keep(&mut self, before: Vec<(usize, [Vector; 2])>) {
        for (slot, from) in before {
            let ticks = [self.begun[slot], self.now];
            let state = self.backend.state_mut();
            state.keep_step(slot, ticks, [from, state.begun_from(slot)]);
        }
    }

    /// Lets the step of a slot that begins now have this level. A step of it may be too long for where it begins: then it is
    /// a finer one.
    pub(super) fn begin_level(&mut self, slot: usize, level: u32) {
        self.levels.set(slot, level_from(self.now, level));
        self.note_steps(&[slot]);
    }

    /// Begins the first step of a slot with a new content, with this force.
    pub(super) fn begin_step(&mut self, i: usize, force: &Forces) -> Result<(), ForceError> {
        let [a, j, s] = force.derivatives;
        let Beginning { x, v, .. } = self.backend.state().beginnings[i];
        let c = [0.0; 3];
        self.begin_at(i, Beginning { x, v, a, j, s, c });
        let length = |v: Vector| dot(v, v).sqrt();
        let first = match length(j) {
            0.0 => f64::INFINITY,
            jerk => FIRST * length(a) / jerk,
        };
        let pulled = Pulled {
            body: i,
            acceleration: a,
            eta: self.eta,
        };
        let first = pulled.first_step(first, self.span, &self.view());
        self.nearest[i] = force.nearest;
        let longest = self.corrections[i].longest;
        let state = self.backend.state_mut();
        state.own_steps[i] = first.min(FIRST_GUARD / force.approach).min(longest);
        self.begun[i] = self.now;
        let level = level(state.own_steps[i], self.span, i)?;
        let level = self.begin_within_regular(i, level);
        self.begin_level(i, level);
        Ok(())
    }

    /// Begins a step of a slot.
    fn begin_at(&mut self, slot: usize, beginning: Beginning) {
        self.backend.state_mut().beginnings[slot] = beginning;
        if self.is_predicted {
            self.show(slot);
        }
        self.changed.push(slot);
    }

    /// Shows others in the state where the step of a slot begins. The state has the rest when the span ends.
    fn show(&mut self, slot: usize) {
        let state = self.backend.state_mut();
        let Beginning { x, v, a, .. } = state.beginnings[slot];
        state.set_phase(slot, x, v);
        state.accelerations[slot] = a;
    }

    /// Has other forces on a slot where its step begins.
    pub(super) fn begin_with(&mut self, slot: usize, [a, j, s]: [Vector; 3]) {
        let beginning = self.backend.state().beginnings[slot];
        let beginning = Beginning {
            a,
            j,
            s,
            ..beginning
        };
        self.begin_at(slot, beginning);
    }

    /// Ends the span: all slots are in the state, and groups have followed their members.
    pub(super) fn end(&mut self) -> Result<(), ForceError> {
        let all: Vec<usize> = (0..self.groups.all.len()).collect();
        self.follow_each(&all)?;
        for group in &mut self.groups.all {
            group.set_time(0.0);
        }
        let state = self.backend.state_mut();
        state.show_beginnings(&self.live);
        state.show_free_slots(&self.groups);
        Ok(())
    }
}
