//! Partners of groups: who perturbs a group, and what changes when they change.

use super::levels::{length_of_part, places_of};
use super::looks::{mean_of_ring, tide};
use super::perturbed::changes;
use super::places::Places;
use super::slots::View;
use super::{Course, MARGIN, of_each};
use crate::backend::ForceError;
use crate::groups::{Group, Inner, Orbit, Partner, Zone, reduced_mass, zone_in};
use crate::parallel;
use crate::vectors::dot;

/// Slow-down, by the time in which a perturber moves, in periods.
const SLOW: f64 = 0.03;

/// Bodies keep the same step within so many bound lengths of a group.
const SAME_STEP: f64 = 3.0;

/// Energy of a tide below which a body does not see the mean of a pair, in the [unit](crate::groups::Scales::energy) of
/// tides. Of light pairs most perturbers are so far or so light. What they would see changes no energy that counts, and
/// takes a third of the time.
const UNSEEN: f64 = 1e-9;

/// Groups from which on several threads choose partners.
const SEVERAL: usize = 4;

/// Groups at rest from which on several threads look for partners: most find none.
const SEVERAL_AT_REST: usize = 64;

/// Groups from which on several threads look whether they are at rest.
const MANY_AT_REST: usize = 512;

/// Groups from which on several threads change them.
const MANY_CHANGED: usize = 128;

/// Group where its step ends.
#[derive(Clone, Copy, PartialEq)]
enum Look {
    /// It stays as it is.
    Rests,
    /// It stays as it is unless a search finds another slot near by.
    MayChange,
    /// It has partners, or is to find some.
    Changes,
}

/// Source of a group's attraction on a partner.
#[derive(Clone, Copy, PartialEq)]
enum Attracting {
    Centre,
    Ring,
    Members,
}

impl From<Zone> for Attracting {
    fn from(zone: Zone) -> Self {
        match zone {
            Zone::Felt => Self::Centre,
            Zone::Mean | Zone::Impulses => Self::Ring,
            Zone::Close => Self::Members,
        }
    }
}

/// Partners that a group is to have in its next step.
struct Choice {
    partners: Vec<Partner>,
    slowdown: f64,
    /// Least distances, as a [group](Group) has them.
    nearest: f64,
    nearest_by_tide: f64,
}

impl View<'_> {
    /// Chooses the partners of a group, which was described now. Also the number of points that were looked at.
    fn choice(self, group: &Group, places: &Places) -> (Choice, usize) {
        let within = group.perturbed_by();
        // Wide pairs ask for others that are near their size, whatever their tides.
        let (near, looked) = places.near(self, group.slot, |pull| within(pull.root));
        let (total, reach_of) = (group.total(), group.reach_of_tide());
        let unseen = UNSEEN * self.groups.scales.energy;
        let mut partners = Vec::with_capacity(near.len());
        let mut shortest = f64::INFINITY;
        let (mut nearest, mut nearest_by_tide) = (f64::INFINITY, f64::INFINITY);
        for other in near {
            let pull = self.pull(other);
            let [d, u] = self.between(group.slot, other);
            let square = dot(d, d);
            let distance = square.sqrt();
            let reach = reach_of(pull.root);
            let its = self.groups.in_slot(other).map(|k| &self.groups.all[k]);
            let zone = match group.zone(reach, distance, its) {
                Zone::Mean if group.tide(pull.gm, distance) < unseen => Zone::Felt,
                zone => zone,
            };
            partners.push(Partner { slot: other, zone });
            let speed = dot(u, u) + 2.0 * (total + pull.gm) / distance;
            shortest = shortest.min(square / speed);
            nearest = nearest.min(distance);
            nearest_by_tide = nearest_by_tide.min(distance / reach);
        }
        let slowdown = match group.inner {
            Inner::Pair(pair) if pair.beta > 0.0 && !partners.is_empty() => {
                (SLOW * shortest.sqrt() / group.period).max(1.0)
            }
            _ => 1.0,
        };
        let choice = Choice {
            partners,
            slowdown,
            nearest,
            nearest_by_tide,
        };
        (choice, looked)
    }
}

impl Course<'_> {
    /// Chooses the partners of a group for its next step, and its slow-down. Returns whether forces depend on
    /// members otherwise than before.
    pub(super) fn choose(&mut self, number: usize) -> Result<bool, ForceError> {
        Ok(!self.choose_each(&[number])?.is_empty())
    }

    /// The groups of these that are not at rest, or have another slot near by. Their steps ended now.
    fn that_change(&mut self, numbers: &[usize]) -> Vec<usize> {
        let (groups, nearest, largest) = (&self.groups, &self.nearest, self.heaviest.cbrt());
        let may_rest = self.backend.state().external.is_none();
        let looked_at = of_each(numbers.len(), MANY_AT_REST, |k| {
            let group = &groups.all[numbers[k]];
            let has_near = || nearest[group.slot] <= MARGIN * group.perturbed_by()(largest);
            match may_rest && group.is_at_rest() {
                false => Look::Changes,
                true if has_near() => Look::MayChange,
                true => Look::Rests,
            }
        });
        let those = |look: Look| {
            let all = numbers.iter().zip(&looked_at);
            let those = all.filter(move |(_, its)| **its == look);
            those.map(|(&number, _)| number).collect::<Vec<_>>()
        };
        let (resting, mut changing) = (those(Look::MayChange), those(Look::Changes));
        if resting.is_empty() {
            return changing;
        }
        let found = self.search((resting.len(), SEVERAL_AT_REST), |view, places, k| {
            let group = &view.groups.all[resting[k]];
            let within = group.perturbed_by();
            places.near(view, group.slot, |pull| within(pull.root))
        });
        let disturbed = resting.into_iter().zip(found);
        let disturbed = disturbed.filter(|(_, near)| !near.is_empty());
        changing.extend(disturbed.map(|(number, _)| number));
        changing.sort_unstable();
        changing
    }

    /// Chooses the partners of groups for their next steps. Returns the slots of those where forces depend on members
    /// otherwise than before.
    pub(super) fn choose_each(&mut self, numbers: &[usize]) -> Result<Vec<usize>, ForceError> {
        if numbers.is_empty() {
            return Ok(vec![]);
        }
        self.follow_each(numbers)?;
        let scales = self.groups.scales;
        self.change_groups(numbers, |group| {
            group.describe(&scales);
            group.set_ring();
        });
        let choices = self.search((numbers.len(), SEVERAL), |view, places, k| {
            view.choice(&view.groups.all[numbers[k]], places)
        });
        let mut otherwise = self.that_see_otherwise(numbers, &choices);
        self.end_now(&otherwise)?;
        // One after another: what a pair owes depends on the partners of others.
        for (&number, choice) in numbers.iter().zip(choices) {
            if self.adopt(number, choice) {
                otherwise.push(self.groups.all[number].slot);
            }
        }
        otherwise.sort_unstable();
        otherwise.dedup();
        Ok(otherwise)
    }

    /// Changes groups, whose numbers are in order.
    fn change_groups(&mut self, numbers: &[usize], change: impl Fn(&mut Group) + Sync) {
        let all = &mut self.groups.all;
        if numbers.len() < MANY_CHANGED {
            return numbers.iter().for_each(|&number| change(&mut all[number]));
        }
        let length = length_of_part(all.len());
        let mut parts: Vec<_> = all.chunks_mut(length).collect();
        parallel::change(&mut parts, 1, |part, groups| {
            let first = part * length;
            for &number in &numbers[places_of(first..first + length, numbers)] {
                change(&mut groups[number - first]);
            }
        });
    }

    /// Strong partners that will see another force of a group than in their steps until now. A step that begins with
    /// one force and ends with the other changes the energy: it is to end now.
    fn that_see_otherwise(&self, numbers: &[usize], choices: &[Choice]) -> Vec<usize> {
        let attracting = |partners: &[Partner], slot| {
            zone_in(partners, slot).map_or(Attracting::Centre, Attracting::from)
        };
        let mut slots = vec![];
        for (&number, choice) in numbers.iter().zip(choices) {
            let group = &self.groups.all[number];
            // Whoever sees a new group otherwise has ended a step already.
            if group.is_new {
                continue;
            }
            let [gone, come] = changes(&group.partners, &choice.partners);
            for Partner { slot, .. } in gone.into_iter().chain(come) {
                let [before, now] =
                    [&group.partners, &choice.partners].map(|partners| attracting(partners, slot));
                if before != now && self.is_strong(group, slot) {
                    slots.push(slot);
                }
            }
        }
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Returns whether the tide between a group and another slot is strong.
    fn is_strong(&self, group: &Group, other: usize) -> bool {
        let [d, _] = self.between(group.slot, other);
        group.tide(self.gm[other], dot(d, d).sqrt()) > self.strong_tide()
    }

    /// Strong partners of the groups in these slots, and groups of which one of the slots is a strong partner, in order,
    /// without these slots.
    pub(super) fn strong_partners(&self, slots: &[usize]) -> Vec<usize> {
        let is_seen = |_, partner: Partner| partner.zone != Zone::Felt;
        let meetings = self.view().meetings(slots, is_seen);
        let mut strong = vec![];
        for (number, partner) in meetings {
            let group = &self.groups.all[number];
            if self.is_strong(group, partner.slot) {
                strong.extend([group.slot, partner.slot]);
            }
        }
        strong.sort_unstable();
        strong.dedup();
        strong.retain(|slot| !slots.contains(slot));
        strong
    }

    /// Strong partners of a pair that these single bodies are to become, in order.
    pub(super) fn strong_partners_of_pair(&mut self, both: [usize; 2]) -> Vec<usize> {
        let masses = both.map(|slot| self.gm[slot]);
        let total = masses[0] + masses[1];
        let [d, u] = self.between(both[0], both[1]);
        let orbit = Orbit::of(total, d, u);
        let size = orbit.size(&self.groups.scales, total);
        let of_one = (reduced_mass(masses) * size * size / self.strong_tide()).cbrt();
        let mut near = self.near(both[0], |other| of_one * other.root + orbit.distance);
        near.retain(|&slot| slot != both[1]);
        near
    }

    /// Ends the steps of slots that do not end now.
    pub(super) fn end_now(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        let is_behind = |slot: &usize| self.begun[*slot] != self.now;
        let behind: Vec<usize> = slots.iter().copied().filter(is_behind).collect();
        match behind.is_empty() {
            true => Ok(()),
            false => self.take_steps(&behind),
        }
    }

    /// Lets a group have other partners. Returns whether forces depend on members otherwise than before.
    fn adopt(&mut self, number: usize, choice: Choice) -> bool {
        let Choice {
            partners, slowdown, ..
        } = choice;
        let group = &self.groups.all[number];
        let [gone, come] = changes(&group.partners, &partners);
        let (before, after) = match slowdown == group.slowdown {
            true => (&gone, &come),
            false => (&group.partners, &partners),
        };
        let due = match group.is_new || group.pair().is_none() {
            true => 0.0,
            false => self.owed(group, before, group.slowdown) - self.owed(group, after, slowdown),
        };
        let is_felt = |partner: &&Partner| partner.zone != Zone::Felt;
        let kind = |partner: &Partner| (partner.slot, partner.zone == Zone::Close);
        let [old, new] = [&gone, &come].map(|all| all.iter().filter(is_felt).map(kind));
        let acts_otherwise = !old.eq(new);
        self.perturbed.change(group.slot, &gone, &come);
        let group = &mut self.groups.all[number];
        group.partners = partners;
        group.slowdown = slowdown;
        (group.nearest, group.nearest_by_tide) = (choice.nearest, choice.nearest_by_tide);
        group.is_new = false;
        group.owed += due;
        let reduced = group.reduced();
        if let Inner::Pair(pair) = &mut group.inner
            && group.owed != 0.0
            && pair.add_energy(group.owed / reduced)
        {
            group.owed = 0.0;
        }
        acts_otherwise
    }

    /// Energy, times G, that a pair has by partners beyond the energy of its centre of mass. A slowed pair swings too
    /// far about the mean, so that the mean alone is not multiplied.
    pub(super) fn owed(&self, group: &Group, partners: &[Partner], slowdown: f64) -> f64 {
        let few = group.few();
        let of_partner = |partner: &Partner| {
            let [d, _] = self.between(group.slot, partner.slot);
            let other = self.groups.in_slot(partner.slot);
            let other = other.map(|k| &self.groups.all[k]);
            let whole = tide((group, &few), other, self.gm[partner.slot], d);
            let mean = mean_of_ring(group, self.gm[partner.slot], d);
            mean + slowdown * (whole - mean)
        };
        partners.iter().map(of_partner).sum()
    }

    /// Chooses partners of groups whose steps ended, and takes the force anew where it depends on others now: the
    /// next step begins with it. Returns the slots of groups that were followed.
    pub(super) fn choose_partners(&mut self, block: &[usize]) -> Result<Vec<usize>, ForceError> {
        let in_slot = |&slot: &usize| self.groups.in_slot(slot);
        let ended: Vec<usize> = block.iter().filter_map(in_slot).collect();
        let changing = self.that_change(&ended);
        let slots = changing
            .iter()
            .map(|&number| self.groups.all[number].slot)
            .collect();
        let otherwise = self.choose_each(&changing)?;
        self.renew(&otherwise)?;
        Ok(slots)
    }

    /// Takes the forces on slots anew where their steps begin.
    pub(super) fn renew(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        if slots.is_empty() {
            return Ok(());
        }
        let forces = self.forces(slots)?;
        for (&slot, force) in slots.iter().zip(&forces) {
            self.begin_with(slot, force.derivatives);
            self.note_steps(&[slot]);
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
            let level = self
                .levels
                .of(slot)
                .map_or(wanted, |level| level.max(wanted));
            self.begin_level(slot, level);
        }
        Ok(())
    }

    /// Lets bodies near a group have its step, and the group theirs: one that moves alone feels a partner that
    /// does not answer.
    pub(super) fn keep_step(&mut self, block: &[usize]) {
        let (view, levels, scales) = (self.view(), &self.levels, &self.groups.scales);
        let farthest = SAME_STEP * scales.together(2.0 * self.heaviest);
        let is_within = |both: [usize; 2], limit: f64| {
            let [d, _] = view.between(both[0], both[1]);
            dot(d, d) < limit * limit
        };
        let near = view.meetings(block, |group, partner| {
            let both = [group, partner.slot];
            let total = view.gm[group] + view.gm[partner.slot];
            let limit = || SAME_STEP * scales.together(total);
            levels.of(group) != levels.of(partner.slot)
                && is_within(both, farthest)
                && is_within(both, limit())
        });
        for (number, partner) in near {
            let both = [self.groups.all[number].slot, partner.slot];
            let [one, other] = both.map(|slot| self.levels.of(slot));
            for slot in both {
                if let Some(finest) = one.max(other)
                    && self.begun[slot] == self.now
                {
                    self.begin_level(slot, finest);
                }
            }
        }
    }
}
