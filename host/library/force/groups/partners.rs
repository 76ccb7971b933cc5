//! Partners of groups: who perturbs a group, and what changes when they change.

use super::Course;
use super::looks::{mean_of_ring, tide};
use crate::backend::ForceError;
use crate::groups::{Inner, Partner, Zone};
use crate::vectors::dot;

/// Slow-down, by the time in which a perturber moves, in periods.
const SLOW: f64 = 0.03;

/// Bodies keep the same step within so many bound lengths of a group.
const SAME_STEP: f64 = 3.0;

impl Course<'_> {
    /// Chooses the partners of a group for its next step, and its slow-down. Returns whether forces depend on
    /// members otherwise than before.
    pub(super) fn choose(&mut self, number: usize) -> Result<bool, ForceError> {
        self.follow(number)?;
        let scales = self.groups.scales;
        let group = &mut self.groups.all[number];
        group.describe(&scales);
        group.set_ring();
        let (slot, total) = (group.slot, group.total());
        let is_new = group.is_new;
        let within = group.perturbed_by();
        // Wide pairs ask for others that are near their size, whatever their tides.
        let near = self.near(slot, within);
        let mut partners = vec![];
        let mut shortest = f64::INFINITY;
        let (mut nearest, mut nearest_by_tide) = (f64::INFINITY, f64::INFINITY);
        let group = &self.groups.all[number];
        for other in near {
            let gm = self.gm[other];
            let [d, u] = self.between(slot, other);
            let square = dot(d, d);
            let distance = square.sqrt();
            let reach = group.reach_of_tide(gm);
            let its = self.groups.in_slot(other).map(|k| &self.groups.all[k]);
            partners.push(Partner {
                slot: other,
                zone: group.zone(reach, distance, its),
            });
            let speed: f64 = u.iter().map(|u| u * u).sum::<f64>() + 2.0 * (total + gm) / distance;
            shortest = shortest.min((square / speed).sqrt());
            nearest = nearest.min(distance);
            nearest_by_tide = nearest_by_tide.min(distance / reach);
        }
        let slowdown = match group.inner {
            Inner::Pair(pair) if pair.beta > 0.0 && !partners.is_empty() => {
                (SLOW * shortest / group.period).max(1.0)
            }
            _ => 1.0,
        };
        let changes = is_new || partners != group.partners || slowdown != group.slowdown;
        let exchanges = changes && !is_new && group.pair().is_some();
        let before = if exchanges { self.owed(number) } else { 0.0 };
        let group = &mut self.groups.all[number];
        let is_felt = |partner: &&Partner| partner.zone != Zone::Felt;
        let kind = |partner: &Partner| (partner.slot, partner.zone == Zone::Close);
        let old = group.partners.iter().filter(is_felt).map(kind);
        let new = partners.iter().filter(is_felt).map(kind);
        let acts_otherwise = !old.eq(new);
        match partners.is_empty() {
            true => self.perturbed.remove(&slot),
            false => self.perturbed.insert(slot),
        };
        group.partners = partners;
        group.slowdown = slowdown;
        (group.nearest, group.nearest_by_tide) = (nearest, nearest_by_tide);
        group.is_new = false;
        if exchanges {
            let due = before - self.owed(number);
            let group = &mut self.groups.all[number];
            let reduced = group.reduced();
            group.owed += due;
            if let Inner::Pair(pair) = &mut group.inner
                && group.owed != 0.0
                && pair.add_energy(group.owed / reduced)
            {
                group.owed = 0.0;
            }
        }
        Ok(acts_otherwise)
    }

    /// Energy, times G, that a pair has by its partners beyond the energy of its centre of mass. A slowed pair
    /// swings too far about the mean, so that the mean alone is not multiplied.
    pub(super) fn owed(&self, number: usize) -> f64 {
        let group = &self.groups.all[number];
        let of_partner = |partner: &Partner| {
            let [d, _] = self.between(group.slot, partner.slot);
            let other = self.groups.in_slot(partner.slot);
            let other = other.map(|k| &self.groups.all[k]);
            let whole = tide(group, other, self.gm[partner.slot], d);
            let mean = mean_of_ring(group, self.gm[partner.slot], d);
            mean + group.slowdown * (whole - mean)
        };
        group.partners.iter().map(of_partner).sum()
    }

    /// Chooses partners of groups whose steps ended, and takes the force anew where it depends on others now: the
    /// next step begins with it.
    pub(super) fn choose_partners(&mut self, block: &[usize]) -> Result<(), ForceError> {
        let in_slot = |&slot: &usize| self.groups.in_slot(slot);
        let ended: Vec<usize> = block.iter().filter_map(in_slot).collect();
        self.follow_each(&ended)?;
        let mut otherwise = vec![];
        for number in ended {
            if self.choose(number)? {
                otherwise.push(self.groups.all[number].slot);
            }
        }
        match otherwise.is_empty() {
            true => Ok(()),
            false => self.renew(&otherwise),
        }
    }

    /// Takes the forces on slots anew where their steps begin.
    fn renew(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        let forces = self.forces(slots)?;
        for (&slot, force) in slots.iter().zip(&forces) {
            let [a, j, _] = force.derivatives;
            self.changed.push(slot);
            let state = self.backend.state_mut();
            (state.beginnings[slot].a, state.beginnings[slot].j) = (a, j);
            (state.accelerations[slot], state.jerks[slot]) = (a, j);
            self.note_step(slot);
            let longest = self.corrections[slot].longest;
            self.shorten(slot, longest)?;
        }
        Ok(())
    }

    /// Lets the step of a slot that begins now be no longer than this.
    fn shorten(&mut self, slot: usize, longest: f64) -> Result<(), ForceError> {
        let step = &mut self.backend.state_mut().own_steps[slot];
        if longest < *step {
            *step = longest;
            let wanted = crate::force::block_steps::level(longest, self.span, slot)?;
            self.levels[slot] = self.levels[slot].max(wanted);
            self.align(slot);
        }
        Ok(())
    }

    /// Lets bodies near a group have its step, and the group theirs: one that moves alone feels a partner that
    /// does not answer.
    pub(super) fn keep_step(&mut self) {
        for number in self.numbers_of_perturbed() {
            let slot = self.groups.all[number].slot;
            for k in 0..self.groups.all[number].partners.len() {
                let other = self.groups.all[number].partners[k].slot;
                let begins = |slot: usize| self.begun[slot] == self.now;
                if !(begins(slot) || begins(other)) || self.levels[slot] == self.levels[other] {
                    continue;
                }
                let [d, _] = self.between(slot, other);
                let square = dot(d, d);
                let near = SAME_STEP * self.groups.scales.together(self.gm[slot] + self.gm[other]);
                if square >= near * near {
                    continue;
                }
                let finest = self.levels[slot].max(self.levels[other]);
                for slot in [slot, other] {
                    if self.begun[slot] == self.now {
                        self.levels[slot] = finest;
                        self.align(slot);
                    }
                }
            }
        }
    }
}
