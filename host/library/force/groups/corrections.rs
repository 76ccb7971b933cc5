//! Corrections of forces for members: what they do beyond the centres of mass.

use std::collections::{BTreeMap, BTreeSet};

use gpu_kernels::schedule::block_steps::Moving;

use super::members::Surroundings;
use super::slots::View;
use super::{Course, of_each};
use crate::backend::ForceError;
use crate::force::hermite_order::Order;
use crate::force::in_memory::Forces;
use crate::groups::{CAPACITY, Few, Group, Partner, Vector, Zone};
use crate::vectors::{axes, dot};

/// Correction of the force on a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correction {
    /// Of the acceleration, the jerk and, at sixth order, the snap.
    pub(super) derivatives: [Vector; 3],
    /// Fastest approach of members, as in [`Forces::approach`].
    pub(super) approach: f64,
    /// Longest step that a slot may take that meets members one by one.
    pub(super) longest: f64,
}

impl Correction {
    pub(super) const NONE: Self = Self {
        derivatives: [[0.0; 3]; 3],
        approach: 0.0,
        longest: f64::INFINITY,
    };

    pub(super) fn add_to(&self, force: &mut Forces) {
        add(&mut force.derivatives, 1.0, &self.derivatives);
        force.approach = force.approach.max(self.approach);
    }
}

/// Adds a share of a force and its derivatives.
fn add(to: &mut [Vector; 3], share: f64, derivatives: &[Vector; 3]) {
    for (sums, vector) in to.iter_mut().zip(derivatives) {
        for k in 0..3 {
            sums[k] += share * vector[k];
        }
    }
}

/// Adds the force of a mass `gm` at distance d, with the relative velocity u and, at sixth order, the relative
/// acceleration w. Returns the rate of approach.
fn attract(order: Order, sum: &mut [Vector; 3], gm: f64, [d, u, w]: Moving) -> f64 {
    let square = dot(d, d);
    let f = gm / (square * square.sqrt());
    let rate = dot(d, u) / square;
    for k in 0..3 {
        sum[0][k] += f * d[k];
        sum[1][k] += f * (u[k] - 3.0 * rate * d[k]);
    }
    if order == Order::Sixth {
        let bend = (dot(u, u) + dot(d, w)) / square + rate * rate;
        for k in 0..3 {
            let turn = u[k] - 3.0 * rate * d[k];
            sum[2][k] += f * (w[k] - 6.0 * rate * turn - 3.0 * bend * d[k]);
        }
    }
    rate.abs()
}

/// Bodies as another one meets them: members one by one, with velocities and accelerations as they move others, or one
/// body.
struct Met {
    few: Few,
    /// Zero at fourth order.
    accelerations: [Vector; CAPACITY],
}

impl Met {
    /// One body.
    fn one(gm: f64) -> Self {
        Self {
            few: Few::one(gm),
            accelerations: [[0.0; 3]; CAPACITY],
        }
    }

    /// The members of a group.
    fn of(around: &Surroundings<'_>, order: Order, group: &Group) -> Self {
        let mut few = group.few();
        let accelerations = match order {
            Order::Fourth => [[0.0; 3]; CAPACITY],
            Order::Sixth => {
                let accelerations = around.accelerations(group, &few);
                few.v = group.of_tight_pairs(&few, &few.v);
                group.of_tight_pairs(&few, &accelerations)
            }
        };
        for v in few.v.iter_mut().flatten() {
            *v /= group.slowdown;
        }
        Self { few, accelerations }
    }

    /// Masses times G, and motions about the centre.
    fn members(&self) -> impl Iterator<Item = (f64, Moving)> {
        let moving = self.few.x.iter().zip(&self.few.v).zip(&self.accelerations);
        let moving = moving.map(|((&x, &v), &a)| [x, v, a]);
        self.few.gm.iter().copied().zip(moving).take(self.few.count)
    }
}

/// Groups from which on several threads find their members: most are pairs with few perturbers.
const SEVERAL: usize = 16;

/// Within it, in sizes of a pair, bodies have its impulses when their steps end. Farther away these are weak, and come
/// with the steps of the pair.
const PROMPT: f64 = 8.0;

/// Energy of the tide of a partner from which on a pair is followed whenever the partner's step ends, in the
/// [unit](crate::groups::Scales::energy) of tides. What a partner does in a step is known until the step ends. A pair that
/// is followed later takes it from the partner's next steps, backwards.
const STRONG: f64 = 1e-6;

/// Steps of a partner through which a pair may take it backwards, whatever its tide. Derivatives say nothing of places
/// that are many steps away: two single bodies in a close encounter came out among the members, and the pair lost a tenth
/// of its energy. From 2 to 16 steps all energies come out alike.
const BACKWARDS: f64 = 8.0;

impl View<'_> {
    /// Returns whether the group in a slot was followed last many steps of a partner ago, which ends a step now.
    fn is_late(self, group: usize, partner: Partner) -> bool {
        let Some(number) = self.groups.in_slot(group) else {
            return false;
        };
        let step = self.since(partner.slot);
        let since = self.time() - self.groups.all[number].time();
        step != 0.0 && since.abs() > BACKWARDS * step.abs()
    }
}

impl Course<'_> {
    /// Finds the corrections of forces on slots. Groups follow their members to now where these are needed.
    pub(super) fn correct(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        for i in std::mem::take(&mut self.corrected) {
            self.corrections[i] = Correction::NONE;
        }
        let slots = self.that_meet(slots);
        for &i in &slots {
            self.is_due[i] = true;
        }
        let acting = self.acting_on(&slots);
        let is_wanted = |&&(number, ref partner): &&(usize, Partner)| {
            self.is_wanted(&self.groups.all[number], partner)
        };
        let wanted = acting.iter().filter(is_wanted);
        let mut wanted: Vec<usize> = wanted.map(|&(number, _)| number).collect();
        let (view, is_due) = (self.view(), &self.is_due);
        let is_late =
            |group, partner: Partner| is_due[partner.slot] && view.is_late(group, partner);
        let late = view.meetings(&slots, is_late);
        wanted.extend(late.into_iter().map(|(number, _)| number));
        wanted.sort_unstable();
        wanted.dedup();
        self.follow_each(&wanted)?;
        let met = self.groups_met(&acting);
        for (number, partner) in acting {
            match partner.zone {
                Zone::Felt => {}
                Zone::Mean | Zone::Impulses => self.add_mean(number, partner.slot),
                Zone::Close => self.resolve(number, partner.slot, &met),
            }
        }
        for &i in &slots {
            self.is_due[i] = false;
        }
        Ok(())
    }

    /// Numbers of groups, and partners of theirs beyond those that see one body, of which one at least is in slots,
    /// which are due.
    fn acting_on(&self, slots: &[usize]) -> Vec<(usize, Partner)> {
        let (view, is_due) = (self.view(), &self.is_due);
        // If both are due, the group finds its partner.
        view.meetings_in_turn(slots, |slot, (group, partner)| {
            partner.zone != Zone::Felt && (group == slot || !is_due[group])
        })
    }

    /// Returns whether a group is to follow its members to now, because it or this partner wants a force.
    fn is_wanted(&self, group: &Group, partner: &Partner) -> bool {
        match partner.zone {
            Zone::Felt => false,
            Zone::Close => true,
            Zone::Impulses if self.is_due[group.slot] => true,
            Zone::Impulses | Zone::Mean => {
                let [d, _] = self.between(group.slot, partner.slot);
                let distance = dot(d, d).sqrt();
                let is_near = partner.zone == Zone::Impulses && distance < PROMPT * group.size;
                is_near || group.tide(self.gm[partner.slot], distance) > self.strong_tide()
            }
        }
    }

    /// Energy, times G, above which a tide is strong.
    pub(super) fn strong_tide(&self) -> f64 {
        STRONG * self.groups.scales.energy
    }

    /// Adds the mean quadrupole of a group, in both directions.
    fn add_mean(&mut self, number: usize, other: usize) {
        let group = &self.groups.all[number];
        let Some(ring) = &group.ring else {
            return;
        };
        let moving = self.moving_between(group.slot, other);
        let (a, j) = ring.acceleration_and_jerk(moving[0], moving[1]);
        let s = match self.order {
            Order::Fourth => [0.0; 3],
            Order::Sixth => ring.snap(moving),
        };
        let back = -self.gm[other] / self.gm[group.slot];
        for (slot, share) in [(group.slot, back), (other, 1.0)] {
            add(&mut self.corrections[slot].derivatives, share, &[a, j, s]);
            self.corrected.push(slot);
        }
    }

    /// The groups, by their numbers, that these partners meet one by one. Many partners may meet the same group, and at
    /// sixth order the accelerations of its members are sums over all perturbers.
    fn groups_met(&self, acting: &[(usize, Partner)]) -> BTreeMap<usize, Met> {
        let meets = |(_, partner): &&(usize, Partner)| partner.zone == Zone::Close;
        let numbers = acting.iter().filter(meets).map(|&(number, _)| number);
        let numbers = Vec::from_iter(BTreeSet::from_iter(numbers));
        let (around, order) = (self.surroundings(), self.order);
        let all = of_each(numbers.len(), SEVERAL, |k| {
            let group = &around.groups.all[numbers[k]];
            (numbers[k], Met::of(&around, order, group))
        });
        BTreeMap::from_iter(all)
    }

    /// Puts members in the place of centres of mass, in both directions.
    fn resolve(&mut self, number: usize, other: usize, met: &BTreeMap<usize, Met>) {
        let slot = self.groups.all[number].slot;
        let of_other = self.groups.in_slot(other);
        let both = of_other.filter(|&k| self.groups.all[k].is_close(slot));
        if both.is_some_and(|other| other < number) {
            return; // done already
        }
        let moving = self.moving_between(slot, other);
        let distance = dot(moving[0], moving[0]).sqrt();
        let (mine, alone) = (&met[&number], Met::one(self.gm[other]));
        let its = both.map_or(&alone, |other| &met[&other]);
        // Force on the group, times its mass.
        let mut sum = [[0.0; 3]; 3];
        let whole = -self.gm[slot] * self.gm[other];
        attract(self.order, &mut sum, whole, moving);
        let mut approach: f64 = 0.0;
        for (my_gm, from) in mine.members() {
            for (its_gm, to) in its.members() {
                let relative =
                    |order: usize| axes(|k| moving[order][k] + to[order][k] - from[order][k]);
                let moving = [relative(0), relative(1), relative(2)];
                let rate = attract(self.order, &mut sum, my_gm * its_gm, moving);
                approach = approach.max(rate);
            }
        }
        let mut longest = self.groups.all[number].step_at(distance);
        if let Some(other) = both {
            longest = longest.min(self.groups.all[other].step_at(distance));
        }
        for (slot, sign) in [(slot, 1.0), (other, -1.0)] {
            let correction = &mut self.corrections[slot];
            add(&mut correction.derivatives, sign / self.gm[slot], &sum);
            correction.approach = correction.approach.max(approach);
            correction.longest = correction.longest.min(longest);
            self.corrected.push(slot);
        }
    }
}
