//! Steps of slots: where they end, and the next ones begin.

use gpu_kernels::schedule::block_steps::{Ended, SPAN};
use rayon::prelude::*;

use super::neighbourhood::Corrections;
use super::slots::View;
use super::{Course, NO_IMPULSES, coarsest_from, of_each};
use crate::backend::ForceError;
use crate::force::block_steps::{guarded, level, next_level};
use crate::force::cancelled::Pulled;
use crate::force::host_state::Beginning;
use crate::force::in_memory::{Forces, time_in};
use crate::groups::Vector;
use crate::vectors::dot;

/// First step of a body whose group changed, by |a|/|j|.
const FIRST: f64 = 0.02;

/// The most by which a pair may change its distance in a first step.
const FIRST_GUARD: f64 = 0.1;

/// Slots of a block from which on several threads end their steps.
const SEVERAL: usize = 128;

/// Slots that one thread stores at a time.
const STORED: usize = 256;

/// The step of a slot that begins where another ended.
pub(super) struct Next {
    pub(super) beginning: Beginning,
    /// The [part of η](View::finer) that the slot takes.
    pub(super) finer: f64,
    /// The longest step that is allowed.
    pub(super) allowed: f64,
    /// True if the slot was given impulses.
    is_pushed: bool,
}

impl Next {
    /// Gives the slot impulses, sums of Δv and of −t Δv, at a time.
    fn push(&mut self, time: f64, [sum, times]: [Vector; 2]) {
        self.is_pushed = true;
        let Beginning { x, v, .. } = &mut self.beginning;
        for k in 0..3 {
            x[k] += time * sum[k] + times[k];
            v[k] += sum[k];
        }
    }

    /// Corrects the slot at the end of a regular step.
    fn correct(&mut self, by: &Corrections) {
        let Beginning { x, v, a, j, .. } = &mut self.beginning;
        let [da, dj] = by.force;
        for (vector, change) in [(x, by.x), (v, by.v), (a, da), (j, dj)] {
            for k in 0..3 {
                vector[k] += change[k];
            }
        }
    }
}

impl View<'_> {
    /// The next step of a slot, by the force where it was predicted. Pulls that cancel allow no step shorter than the
    /// `shortest` of all.
    pub(super) fn next(&self, slot: usize, (eta, shortest): (f64, f64), force: &Forces) -> Next {
        let (finer, dt) = (self.finer(slot), self.since(slot));
        let eta = finer * eta;
        let Ended {
            x,
            v,
            crackle: c,
            allowed,
        } = self.order.ended(
            &self.state.beginnings[slot],
            dt,
            (eta, self.rounding),
            force.derivatives,
        );
        let [a, j, s] = force.derivatives;
        let pulled = Pulled {
            body: slot,
            acceleration: a,
            eta,
        };
        let allowed = pulled.next_step(allowed, [dt, shortest], self);
        Next {
            beginning: Beginning { x, v, a, j, s, c },
            finer,
            allowed: guarded(allowed, force.approach / finer.sqrt()).min(2.0 * dt),
            is_pushed: false,
        }
    }

    /// Time since the span began.
    pub(super) fn since_span_began(&self) -> f64 {
        time_in(self.span, self.now)
    }
}

impl Course<'_> {
    /// Ends the steps of slots, which are in order.
    pub(super) fn take_steps(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        let forces = self.forces(slots)?;
        for &i in slots {
            let dt = self.time(self.now - self.begun[i]);
            self.counts.shortest = self.counts.shortest.min(dt);
        }
        self.counts.steps += slots.len() as u64;
        let (view, eta, shortest) = (self.view(), self.eta, self.counts.shortest);
        let (corrections, impulses) = (&self.corrections, &self.impulses);
        let mut next = of_each(slots.len(), SEVERAL, |k| {
            let i = slots[k];
            let mut next = view.next(i, (eta, shortest), &forces[k]);
            next.allowed = next.allowed.min(corrections[i].longest);
            if impulses[i] != NO_IMPULSES {
                next.push(view.since_span_began(), impulses[i]);
            }
            next
        });
        if self.neighbourhood.is_some() {
            for (&i, next) in slots.iter().zip(&mut next) {
                if let Some(corrections) = self.next_regular(i, (next.finer, next.allowed))? {
                    next.correct(&corrections);
                }
            }
        }
        if self.backend.state().kept.is_some() {
            for (&i, next) in slots.iter().zip(&next) {
                if self.groups.in_slot(i).is_none() {
                    let Beginning { x, v, .. } = next.beginning;
                    let ticks = [self.begun[i], self.now];
                    self.backend.state_mut().keep_step(i, ticks, [x, v]);
                }
            }
        }
        self.begin_each(slots, &next);
        for (&i, next) in slots.iter().zip(&next) {
            if next.is_pushed {
                self.impulses[i] = NO_IMPULSES;
            }
            self.backend.state_mut().own_steps[i] = next.allowed;
            self.begun[i] = self.now;
            let wanted = level(next.allowed, self.span, i)?;
            let wanted = self.within_regular(i, wanted);
            self.levels[i] = next_level(self.levels[i], wanted, self.now);
        }
        let ends: Vec<u64> = slots.iter().map(|&i| self.end_from_now(i)).collect();
        self.ends.set_each(slots.iter().copied().zip(ends));
        self.note_steps(slots);
        Ok(())
    }

    /// Lets the step of a slot that begins now end where steps of its length do.
    pub(super) fn align(&mut self, i: usize) {
        let end = self.end_from_now(i);
        self.ends.set(i, end);
        self.note_steps(&[i]);
    }

    /// The end of the step of a slot that begins now. It may be too long for where it begins: then it is a finer one.
    fn end_from_now(&mut self, i: usize) -> u64 {
        if self.now < SPAN {
            self.levels[i] = self.levels[i].max(coarsest_from(self.now));
        }
        self.now + (SPAN >> self.levels[i])
    }

    /// Begins the first step of a slot whose content is new, with this force.
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
        let longest = self.corrections[i].longest;
        let state = self.backend.state_mut();
        state.own_steps[i] = first.min(FIRST_GUARD / force.approach).min(longest);
        self.begun[i] = self.now;
        let level = level(state.own_steps[i], self.span, i)?;
        self.levels[i] = self.begin_within_regular(i, level);
        self.align(i);
        Ok(())
    }

    /// Begins a step of a slot. Only what others see of it now is in the state before the span ends.
    pub(super) fn begin_at(&mut self, slot: usize, beginning: Beginning) {
        let (is_predicted, state) = (self.is_predicted, self.backend.state_mut());
        state.beginnings[slot] = beginning;
        if is_predicted {
            state.set_phase(slot, beginning.x, beginning.v);
            state.accelerations[slot] = beginning.a;
        }
        self.changed.push(slot);
    }

    /// As [`begin_at`](Self::begin_at), of many slots in order.
    fn begin_each(&mut self, slots: &[usize], next: &[Next]) {
        let (is_predicted, state) = (self.is_predicted, self.backend.state_mut());
        let parts = state.beginnings.par_chunks_mut(STORED);
        let of_part = |(part, beginnings): (usize, &mut [Beginning])| {
            let first = part * STORED;
            let [from, to] =
                [first, first + STORED].map(|limit| slots.partition_point(|&slot| slot < limit));
            for (&slot, next) in slots[from..to].iter().zip(&next[from..to]) {
                beginnings[slot - first] = next.beginning;
            }
        };
        match slots.len() < SEVERAL {
            true => {
                for (&slot, next) in slots.iter().zip(next) {
                    state.beginnings[slot] = next.beginning;
                }
            }
            false => parts.enumerate().for_each(of_part),
        }
        if is_predicted {
            for (&slot, next) in slots.iter().zip(next) {
                let Beginning { x, v, a, .. } = next.beginning;
                state.set_phase(slot, x, v);
                state.accelerations[slot] = a;
            }
        }
        self.changed.extend(slots);
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
