//! Bodies become groups, and groups are divided.

use super::members::tide;
use super::slots::{View, occupy};
use super::{Course, MARGIN, NO_IMPULSES, of_each};
use crate::backend::ForceError;
use crate::force::hermite_order::Order;
use crate::groups::{
    CAPACITY, Group, Inner, Orbit, Pair, Scales, Tight, Vector, Zone, crowding, united_within,
};
use crate::vectors::{axes, difference, dot};

/// Distance, in distances at which they become one, up to which parts of a multiple stay together.
const PARTED: f64 = 1.5;

/// Tide of external fields, in attractions of two bodies, above which they become no group: what they move about is the
/// field's centre.
const STRONG_TIDE: f64 = 0.05;

/// Tide of external fields, in attractions of its members, above which a group is divided.
const TEARING_TIDE: f64 = 0.2;

/// Bodies from which on several threads look for companions.
const SEVERAL: usize = 32;

/// Slots from which on several threads look which groups are over, which is less work.
const MANY: usize = 512;

/// A body of a group: a member, or a tight pair of members.
struct Part {
    members: Vec<usize>,
    /// Position and velocity about a place.
    phase: [Vector; 2],
    tight: Option<Tight>,
}

impl Part {
    fn one(member: usize, phase: [Vector; 2]) -> Self {
        Self {
            members: vec![member],
            phase,
            tight: None,
        }
    }
}

/// How two slots become a group.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum United {
    /// All their members move anew.
    Members,
    /// Each is one body of a pair.
    Bodies,
}

impl Course<'_> {
    /// Looks after groups where the steps of a block ended.
    pub(super) fn after(&mut self, block: &[usize]) -> Result<(), ForceError> {
        if !self.groups.all.is_empty() {
            let followed = self.choose_partners(block)?;
            self.keep_step(&self.that_meet(block));
            let mut begun = self.divide_each(&followed)?;
            begun.extend(block);
            self.unite_with_partners(&self.that_meet(&begun))?;
        }
        self.form_pairs(block)
    }

    /// Divides the groups in slots that are over. Returns the slots of their parts.
    fn divide_each(&mut self, slots: &[usize]) -> Result<Vec<usize>, ForceError> {
        let view = self.view();
        let are_over = of_each(slots.len(), MANY, |k| view.parts_over(slots[k]).is_some());
        let mut of_parts = vec![];
        for (&slot, is_over) in slots.iter().zip(are_over) {
            // A division changes others: all later slots are looked at again.
            if is_over || !of_parts.is_empty() {
                of_parts.extend(self.divide(slot)?.into_iter().flatten());
            }
        }
        Ok(of_parts)
    }

    /// Divides the group in a slot, if it is over. Returns the slots of its parts.
    fn divide(&mut self, slot: usize) -> Result<Option<[usize; 2]>, ForceError> {
        let (number, parts) = (self.groups.in_slot(slot), self.view().parts_over(slot));
        let (Some(number), Some(parts)) = (number, parts) else {
            return Ok(None);
        };
        self.counts.broken += 1;
        // They see other bodies from now on.
        let partners = self.strong_partners(&[slot]);
        self.end_now(&partners)?;
        self.finish_regular(slot)?;
        let group = self.groups.remove(number);
        self.perturbed.remove(&group);
        let members = group.members.clone();
        let origin = self.phase(slot);
        let mut slots = [0; 2];
        for (slot, part) in slots.iter_mut().zip(contents(group, parts)) {
            *slot = self.install(part, origin)?;
        }
        self.perturbed.replace(&mut self.groups, &[slot], &slots);
        self.find_live(&members);
        self.renew_lists(slot, &slots);
        self.start(&slots)?;
        self.renew(&partners)?;
        Ok(Some(slots))
    }

    /// Puts bodies, given about a place, into a slot: as a group if they have several members. Returns the slot.
    fn install(&mut self, bodies: Vec<Part>, origin: [Vector; 2]) -> Result<usize, ForceError> {
        let of_part = |part: &Part| vec![part.phase; part.members.len()];
        let phases: Vec<_> = bodies.iter().flat_map(of_part).collect();
        let members = members_of(&bodies);
        let slot = members.iter().copied().min().unwrap_or_default();
        let masses = &self.groups.masses;
        occupy(self.backend.state_mut(), masses, &members, &phases, origin);
        self.changed.extend(&members);
        for &i in &members {
            self.levels.free(i);
            self.impulses[i] = NO_IMPULSES;
        }
        if members.len() > 1 {
            let group = self.group_of(members, &bodies);
            self.groups
                .add(group.ok_or(ForceError::NotFinite { body: slot })?);
        }
        Ok(slot)
    }

    /// The group that some bodies with these members are now.
    fn group_of(&self, members: Vec<usize>, bodies: &[Part]) -> Option<Group> {
        let (time, scales) = (self.time(self.now), &self.groups.scales);
        let masses = &self.groups.masses;
        let g = self.backend.physics().coupling();
        let gm = |part: &Part| part.members.iter().map(|&i| g * masses[i]).sum();
        let gm: Vec<f64> = bodies.iter().map(gm).collect();
        let [x, v]: [Vec<Vector>; 2] =
            [0, 1].map(|k| bodies.iter().map(|part| part.phase[k]).collect());
        match bodies {
            [Part { tight, .. }] => {
                let Tight { gm, mut pair } = (*tight)?;
                pair.jump(time);
                let (gm, pair) = (gm.to_vec(), Inner::Pair(pair));
                Some(Group::of_bodies(members, gm, pair, [None; 2], scales))
            }
            [one, other] if one.tight.is_some() || other.tight.is_some() => {
                let [d, u] = [difference(x[1], x[0]), difference(v[1], v[0])];
                let pair = Inner::Pair(Pair::new(gm[0] + gm[1], time, d, u));
                let tight = [one.tight, other.tight];
                Some(Group::of_bodies(members, gm, pair, tight, scales))
            }
            _ => Group::new(members, gm, &x, &v, time, scales),
        }
    }

    /// Begins steps of slots whose content is new: partners first, because forces depend on them.
    fn start(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        for &slot in slots {
            self.begun[slot] = self.now;
            self.changed.push(slot);
            let state = self.backend.state_mut();
            let (x, v) = state.phase(slot);
            let beginning = &mut state.beginnings[slot];
            (beginning.x, beginning.v) = (x, v);
        }
        self.note_contents(slots);
        for &slot in slots {
            if let Some(number) = self.groups.in_slot(slot) {
                self.choose(number)?;
            }
        }
        if self.order == Order::Sixth {
            // Snaps follow from accelerations, which are not known yet.
            let forces = self.forces(slots)?;
            for (&slot, force) in slots.iter().zip(&forces) {
                self.begin_with(slot, force.derivatives);
            }
        }
        let forces = self.forces(slots)?;
        for (&slot, force) in slots.iter().zip(&forces) {
            self.begin_step(slot, force)?;
        }
        Ok(())
    }

    /// Lets groups and partners become one that are near, where the step of one begins now.
    fn unite_with_partners(&mut self, begun: &[usize]) -> Result<(), ForceError> {
        let mut candidates = vec![];
        let view = self.view();
        let near = view.meetings(begun, |group, partner| {
            partner.zone != Zone::Felt && (view.begins(group) || view.begins(partner.slot))
        });
        for of_group in near.chunk_by(|(one, _), (other, _)| one == other) {
            let mut best = (f64::INFINITY, None);
            for &(number, partner) in of_group {
                let both = [self.groups.all[number].slot, partner.slot];
                let [d, _] = self.between(both[0], both[1]);
                let square = dot(d, d);
                let time = square * square.sqrt() / (self.gm[both[0]] + self.gm[both[1]]);
                if time < best.0 {
                    best = (time, Some(both));
                }
            }
            candidates.extend(best.1);
        }
        let mut touched: Vec<usize> = vec![];
        for [one, other] in candidates {
            if touched.contains(&one) || touched.contains(&other) {
                continue;
            }
            if self.belong_together(one, other) {
                touched.extend([one, other]);
                touched.push(self.unite([one, other], United::Members)?);
            }
        }
        Ok(())
    }

    /// Returns whether a group and a body or group are to be one.
    fn belong_together(&self, one: usize, other: usize) -> bool {
        let group = |slot| self.groups.in_slot(slot).map(|k| &self.groups.all[k]);
        let both = [group(one), group(other)];
        let count: usize = both.iter().map(|g| g.map_or(1, |g| g.members.len())).sum();
        if count > CAPACITY {
            return false;
        }
        let masses = [self.gm[one], self.gm[other]];
        let total = masses[0] + masses[1];
        let reach = self.groups.scales.reach_together(masses);
        let [d, u] = self.between(one, other);
        let orbit = Orbit::of(total, d, u);
        let within = |k: usize| {
            let gm = [self.gm[other], self.gm[one]][k];
            both[k].map_or(0.0, |group| group.united_within(gm))
        };
        let united = within(0).max(within(1));
        let size = both.iter().flatten().map(|g| g.size).fold(0.0, f64::max);
        let is_multiple = both.iter().flatten().any(|g| g.pair().is_none());
        let is_inside = is_multiple && orbit.distance < 1.2 * size;
        let is_near = orbit.approaches() && (orbit.distance < united.min(reach) || is_inside);
        (is_near || orbit.apocentre < (2.0 * united).min(reach))
            && self.view().tide(one, size.max(orbit.distance), total) < STRONG_TIDE
    }

    /// Makes one group of what is in two slots. Returns its slot.
    pub(super) fn unite(
        &mut self,
        [one, other]: [usize; 2],
        united: United,
    ) -> Result<usize, ForceError> {
        self.counts.formed += 1;
        let partners = match united {
            United::Bodies => self.strong_partners_of_pair([one, other]),
            United::Members => self.strong_partners(&[one, other]),
        };
        self.end_now(&partners)?;
        for slot in [one, other] {
            self.end_now(&[slot])?;
            self.finish_regular(slot)?;
            if let Some(number) = self.groups.in_slot(slot) {
                self.follow(number)?;
            }
        }
        let origin = self.phase(one);
        let mut bodies = vec![];
        for slot in [one, other] {
            let [x, v] = self.between(one, slot);
            let Some(group) = self.groups.take(slot) else {
                bodies.push(Part::one(slot, [x, v]));
                continue;
            };
            self.perturbed.remove(&group);
            if united == United::Bodies
                && let Some(tight) = group.as_tight()
            {
                bodies.push(Part {
                    members: group.members,
                    phase: [x, v],
                    tight: Some(tight),
                });
                continue;
            }
            let members = group.members.clone();
            let all = group.into_all();
            let shifted = |k: usize| {
                [
                    axes(|axis| x[axis] + all.x[k][axis]),
                    axes(|axis| v[axis] + all.v[k][axis]),
                ]
            };
            let parts = members.iter().enumerate();
            bodies.extend(parts.map(|(k, &member)| Part::one(member, shifted(k))));
        }
        let members = members_of(&bodies);
        let slot = self.install(bodies, origin)?;
        self.perturbed
            .replace(&mut self.groups, &[one, other], &[slot]);
        self.find_live(&members);
        self.renew_lists(one, &[slot]);
        self.start(&[slot])?;
        self.renew(&partners)?;
        Ok(slot)
    }

    /// The pair in a slot, if it may be one body of another pair.
    fn tight_in(&self, slot: usize) -> Option<Tight> {
        self.groups.all[self.groups.in_slot(slot)?].as_tight()
    }

    /// Returns whether what is in a slot may be one body of a pair.
    fn may_be_body(&self, slot: usize) -> bool {
        self.groups.in_slot(slot).is_none() || self.tight_in(slot).is_some()
    }

    /// Makes pairs of bodies that are near. Each is single, or a tight pair.
    fn form_pairs(&mut self, block: &[usize]) -> Result<(), ForceError> {
        // A body near another has short steps.
        let (view, scales) = (self.view(), &self.groups.scales);
        let is_fast = |&slot: &usize| {
            view.begins(slot)
                && view.state.own_steps[slot] < scales.time
                && self.nearest[slot] <= MARGIN * scales.reach(self.gm[slot] + self.heaviest)
                && self.may_be_body(slot)
        };
        let fast: Vec<usize> = block.iter().copied().filter(is_fast).collect();
        let companions = self.companions(&fast);
        let mut is_other = false;
        for (slot, companion) in fast.into_iter().zip(companions) {
            let companion = match is_other {
                false => companion,
                true if self.view().begins(slot) && self.may_be_body(slot) => {
                    self.companions(&[slot])[0]
                }
                true => None,
            };
            let Some(other) = companion else {
                continue;
            };
            let total = self.gm[slot] + self.gm[other];
            let [d, u] = self.between(slot, other);
            let orbit = Orbit::of(total, d, u);
            let size = orbit.size(&self.groups.scales, total);
            if self.form_a_pair([slot, other], &orbit)
                && !self.is_crowded([slot, other], &orbit)
                && self.view().tide(slot, size, total) < STRONG_TIDE
            {
                self.unite([slot, other], United::Bodies)?;
                is_other = true;
            }
        }
        Ok(())
    }

    /// Returns whether the bodies in two slots are to be a pair. Tight pairs stay bound to what they are a pair with,
    /// and far from it.
    fn form_a_pair(&self, [one, other]: [usize; 2], orbit: &Orbit) -> bool {
        let total = self.gm[one] + self.gm[other];
        if !self.may_be_body(one) || !self.may_be_body(other) {
            return false;
        }
        let [first, second] = [one, other].map(|slot| self.tight_in(slot));
        if first.is_none() && second.is_none() {
            return orbit.forms(&self.groups.scales, total);
        }
        if orbit.apocentre >= self.groups.scales.reach(total) {
            return false;
        }
        let [d, u] = self.between(one, other);
        let pericentre = Pair::new(total, 0.0, d, u).pericentre();
        let is_alone = |tight: Option<Tight>, other: usize| {
            tight.is_none_or(|tight| tight.is_alone(self.gm[other], pericentre))
        };
        is_alone(first, other) && is_alone(second, one)
    }

    /// The bodies that others would be pairs with: of the shortest encounters.
    fn companions(&mut self, slots: &[usize]) -> Vec<Option<usize>> {
        if slots.is_empty() {
            return vec![];
        }
        let scales = self.groups.scales;
        self.search((slots.len(), SEVERAL), |view, places, k| {
            let slot = slots[k];
            let gm = view.gm[slot];
            let (near, looked) = places.near(view, slot, |other| scales.reach(gm + other.gm));
            let time = |&other: &usize| {
                let [d, _] = view.between(slot, other);
                let square = dot(d, d);
                square * square.sqrt() / (gm + view.gm[other])
            };
            let nearest = near.into_iter().min_by(|a, b| time(a).total_cmp(&time(b)));
            (nearest, looked)
        })
    }

    /// Returns whether others are too near for two bodies to be a wide pair.
    fn is_crowded(&mut self, [one, other]: [usize; 2], orbit: &Orbit) -> bool {
        let total = self.gm[one] + self.gm[other];
        let size = orbit.size(&self.groups.scales, total);
        if size <= self.groups.scales.wide([self.gm[one], self.gm[other]]) {
            return false;
        }
        let [d, _] = self.between(one, other);
        let centre = d.map(|x| x * self.gm[other] / total);
        let present = orbit.distance;
        let near = self.near(one, |third| {
            crowding(size, present, third.gm, total) + present
        });
        near.into_iter()
            .filter(|&third| third != other)
            .any(|third| {
                let [d, _] = self.between(one, third);
                let square: f64 = [0, 1, 2].iter().map(|&k| (d[k] - centre[k]).powi(2)).sum();
                let limit = crowding(size, present, self.gm[third], total);
                square < limit * limit
            })
    }
}

impl View<'_> {
    /// The [tide] of external fields over a distance from a slot's place; 0 without fields.
    fn tide(self, slot: usize, size: f64, total: f64) -> f64 {
        let fields = &self.state.external;
        if fields.is_none() {
            return 0.0;
        }
        let [centre, _] = self.phase(slot);
        tide(fields, centre, size, total)
    }

    /// The parts of the group in a slot, as numbers of its bodies, if it is over and its step begins now.
    fn parts_over(self, slot: usize) -> Option<[Vec<usize>; 2]> {
        let group = &self.groups.all[self.groups.in_slot(slot)?];
        if !self.begins(slot) {
            return None;
        }
        let scales = &self.groups.scales;
        let is_torn = self.tide(slot, group.size, group.total()) > TEARING_TIDE;
        match &group.inner {
            Inner::Pair(_) => (is_torn || group.is_over(scales)).then(|| [vec![0], vec![1]]),
            Inner::Multiple(multiple) if is_torn => Some(multiple.parts()),
            Inner::Multiple(_) => parts_of_multiple(group, scales),
        }
    }
}

/// The members of some bodies.
fn members_of(bodies: &[Part]) -> Vec<usize> {
    let members = bodies.iter().flat_map(|part| &part.members);
    members.copied().collect()
}

/// The bodies in the two parts of a group that is divided. Parts are numbers of bodies of a pair, or of members of a
/// multiple.
fn contents(group: Group, parts: [Vec<usize>; 2]) -> [Vec<Part>; 2] {
    if group.is_nested() {
        let few = group.few();
        let part = |k: usize, (members, tight): (Vec<usize>, Option<Tight>)| Part {
            members,
            phase: [few.x[k], few.v[k]],
            tight,
        };
        let [one, other] = group.bodies_of_pair();
        return [vec![part(0, one)], vec![part(1, other)]];
    }
    let members = group.members.clone();
    let all = group.into_all();
    let one = |k: usize| Part::one(members[k], [all.x[k], all.v[k]]);
    parts.map(|part| part.into_iter().map(one).collect())
}

/// The parts of a multiple that leave each other, as numbers of members.
fn parts_of_multiple(group: &Group, scales: &Scales) -> Option<[Vec<usize>; 2]> {
    let Inner::Multiple(multiple) = &group.inner else {
        return None;
    };
    let few = group.few();
    let parts = multiple.parts();
    let describe = |part: &[usize]| {
        let total: f64 = part.iter().map(|&k| few.gm[k]).sum();
        let mean = |vectors: &[Vector]| {
            let mut sum = [0.0; 3];
            for &k in part {
                for axis in 0..3 {
                    sum[axis] += few.gm[k] / total * vectors[k][axis];
                }
            }
            sum
        };
        let size = match *part {
            [_] => 0.0,
            [i, k] => {
                let [d, u] = [
                    difference(few.x[k], few.x[i]),
                    difference(few.v[k], few.v[i]),
                ];
                let orbit = Orbit::of(total, d, u);
                match orbit.apocentre.is_finite() {
                    true => orbit.apocentre,
                    false => orbit.distance,
                }
            }
            _ => {
                let distance = |i: usize, k: usize| {
                    let d = difference(few.x[k], few.x[i]);
                    dot(d, d).sqrt()
                };
                let pairs = part.iter().flat_map(|&i| part.iter().map(move |&k| (i, k)));
                pairs.map(|(i, k)| distance(i, k)).fold(0.0, f64::max)
            }
        };
        (total, mean(&few.x), mean(&few.v), size)
    };
    let (m1, x1, v1, size1) = describe(&parts[0]);
    let (m2, x2, v2, size2) = describe(&parts[1]);
    let [d, u] = [difference(x2, x1), difference(v2, v1)];
    let orbit = Orbit::of(m1 + m2, d, u);
    if orbit.approaches() {
        return None;
    }
    let reach = scales.reach_together([m1, m2]);
    let united = united_within(size1, m2, m1).max(united_within(size2, m1, m2));
    let stays = orbit.apocentre < (3.0 * united).min(PARTED * reach);
    let is_apart = orbit.distance > PARTED * united.min(reach);
    (!stays && is_apart).then_some(parts)
}
