//! Forces by parts, in a neighbour scheme (Ahmad & Cohen 1973, J. Comput. Phys. 12, 389): the *irregular* force of the
//! bodies near a slot, and the *regular* force of all others, which is extrapolated through longer steps.
//!
//! A list has bodies, not slots: each member of a group counts with its mass, at the centre of the group. So a list
//! stays right when bodies become a group, or a group is divided. The regular force is the force of all slots, which the
//! backend computes at the ends of regular steps, minus the irregular force. Lists are found and summed on the host. Of
//! several ranks, each has the lists of some slots.

use bytemuck::{Pod, Zeroable};
use gpu_kernels::neighbour_scheme::{
    Force, LARGEST_REGULAR, Regular, difference, extrapolated, growth, norm,
};
use gpu_kernels::schedule::block_steps::SPAN;

use super::places::Places;
use super::slots::View;
use super::{Course, level_from};
use crate::backend::{ForceError, Sphere};
use crate::force::block_steps::{level, next_level};
use crate::force::cpu::{Inside, ListSums, noise};
use crate::force::in_memory::{Forces, time_in};
use crate::groups::Vector;
use crate::neighbours::radii;
use crate::parallel;
use crate::simd::InstructionSet;
use crate::variants::RootName;

/// Accuracy of regular steps by the accuracy of irregular ones: in a Plummer sphere errors grow from the fourfold on.
const REGULAR: f64 = 2.0;

/// The most by which a body outside of a sphere may change its distance in a regular step, in √η.
const APPROACH: f64 = 2.0;

/// The longest regular step, in irregular steps: in general, and where neighbours dominate. Corrections of the regular
/// force come at the ends of its steps. Of two bodies that orbit each other, each has them at other times, so that long
/// steps change the orbit.
const RATIOS: [f64; 2] = [16.0, 8.0];

/// Irregular acceleration, in regular ones, from which on neighbours dominate.
const DOMINANT: f64 = 4.0;

/// Bodies of lists that one thread sums sooner than others are woken.
const ALONE: usize = 1 << 12;

/// Slots below which a sweep over all finds neighbours sooner than a tree does.
const SWEPT: usize = 1 << 17;

/// Attempts to find a sphere with about as many bodies as are wanted. In a halo the first is far too large. More than
/// are wanted may stand in one place.
const ATTEMPTS: u32 = 30;

/// The most by which the volume changes in an attempt.
const MOST: f64 = 8.0;

/// The scheme of a span.
pub(super) struct Neighbourhood {
    /// Number of bodies that lists are to have.
    wanted: usize,
    /// Accuracy of regular steps.
    eta: f64,
    /// Parts of the force on each slot; none where its content is new.
    parts: Vec<Option<Parts>>,
    /// Slot of each body.
    slots: Vec<u32>,
}

/// Bodies near a slot.
struct List {
    /// Empty where another rank has them.
    bodies: Vec<u32>,
    /// Number of the bodies.
    count: u64,
    /// Speed of the fastest.
    fastest: f64,
    /// Tick until which nobody comes far into the sphere, or out of it.
    lasts: u64,
}

/// Regular force on a slot, and the bodies that are left out of it.
struct Parts {
    list: List,
    /// Where the regular step began.
    regular: Force,
    begun: u64,
    level: u32,
    /// The end of the regular step, while the step of the slot ends.
    renewed: Option<Renewed>,
}

/// A regular step at its end, and how the next one begins.
struct Renewed {
    /// None if it is the same as before.
    list: Option<List>,
    step: Regular,
    regular: Force,
    noise: f64,
    /// The longest that the next step may be, in irregular steps.
    ratio: f64,
    /// The fastest approach of a body outside, as in [`Forces::approach`].
    approach: f64,
}

/// The list of a slot from now on, as all ranks know it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Found {
    force: Forces,
    /// Radius of the sphere.
    radius: f64,
    /// Speed of the fastest.
    fastest: f64,
    /// Number of bodies.
    count: u64,
    /// 0 if the list is the same as before.
    is_new: u64,
    /// Points that were looked at.
    looked: u64,
}

/// Changes of a slot where a regular step ends.
pub(super) struct Corrections {
    pub(super) x: Vector,
    pub(super) v: Vector,
    /// Change of the force.
    pub(super) force: Force,
}

impl Parts {
    /// Returns whether the list lasts for a next regular step like the one that ends now.
    fn list_lasts(&self, now: u64) -> bool {
        now + (SPAN >> self.level) <= self.list.lasts
    }
}

impl Neighbourhood {
    /// A scheme with this number of neighbours, in steps of accuracy `eta`, before lists are found.
    pub(super) fn new(wanted: usize, eta: f64, bodies: usize) -> Self {
        Self {
            wanted,
            eta: (REGULAR * eta).min(LARGEST_REGULAR * LARGEST_REGULAR),
            parts: (0..bodies).map(|_| None).collect(),
            slots: (0..bodies as u32).collect(),
        }
    }

    /// The level of a slot's regular step, if it has one: no step of it may be longer.
    pub(super) fn level_of_regular(&self, slot: usize) -> u32 {
        self.parts[slot].as_ref().map_or(0, |parts| parts.level)
    }

    /// Returns whether the force of all on a slot is wanted at a tick.
    fn is_due(&self, slot: usize, now: u64) -> bool {
        let parts = self.parts[slot].as_ref();
        parts.is_none_or(|parts| now == parts.begun + (SPAN >> parts.level))
    }

    /// Returns whether lists of a block have as many bodies as there are.
    pub(super) const fn reaches_all(&self, block: usize, all: usize) -> bool {
        block.saturating_mul(self.wanted) >= all
    }
}

impl Forces {
    /// The acceleration and jerk.
    fn force(&self) -> Force {
        let [a, j, _] = self.derivatives;
        [a, j]
    }

    fn add(&mut self, [a, j]: Force) {
        for k in 0..3 {
            self.derivatives[0][k] += a[k];
            self.derivatives[1][k] += j[k];
        }
    }
}

impl View<'_> {
    /// The force of the bodies in a list on a slot.
    fn of_list(self, sums: &ListSums<'_>, slots: &[u32], slot: usize, list: &[u32]) -> Forces {
        let (target, _) = sums.source(self.phase(slot), 0.0);
        let source = |&body: &u32| {
            let place = slots[body as usize] as usize;
            sums.source(self.phase(place), self.groups.masses[body as usize])
        };
        sums.force(target, list.iter().map(source))
    }

    /// Slots within a sphere about a slot, in their order, and the number of points of trees that were looked at.
    fn within(
        self,
        instructions: InstructionSet,
        places: Option<&Places>,
        slot: usize,
        radius: f64,
    ) -> (Vec<usize>, usize) {
        if let Some(places) = places {
            return places.near(self, slot, |_| radius);
        }
        let bodies = &self.state.bodies;
        let inside = instructions.run(Inside {
            columns: [&bodies.x, &bodies.y, &bodies.z],
            at: self.phase(slot)[0],
            limit: radius * radius,
        });
        let others = inside.into_iter().map(|other| other as usize);
        let has_body = |other: &usize| *other != slot && self.gm[*other] != 0.0;
        (others.filter(has_body).collect(), 0)
    }

    /// Finds the list of the bodies within a sphere about a slot. A sphere of this radius with less than half as many as are
    /// wanted, or more than twice as many, is chosen anew.
    fn listed(
        self,
        sums: &ListSums<'_>,
        (near, instructions): (&Neighbourhood, InstructionSet),
        places: Option<&Places>,
        slot: usize,
        mut radius: f64,
    ) -> (Found, Vec<u32>) {
        let (mut bodies, mut fastest, mut all_looked) = (vec![], 0.0_f64, 0);
        for attempt in 0..=ATTEMPTS {
            let (found, looked) = self.within(instructions, places, slot, radius);
            all_looked += looked;
            let fits = found.len() >= near.wanted / 2 && found.len() <= 2 * near.wanted;
            if !fits && radius.is_finite() && attempt < ATTEMPTS {
                radius *= growth(near.wanted as f64, found.len() as f64, MOST);
                continue;
            }
            for other in found {
                let [_, u] = self.between(slot, other);
                fastest = fastest.max(norm(u));
                match self.groups.in_slot(other) {
                    None => bodies.push(other as u32),
                    Some(number) => {
                        let members = self.groups.all[number].members.iter();
                        bodies.extend(members.map(|&body| body as u32));
                    }
                }
            }
            break;
        }
        let found = Found {
            force: self.of_list(sums, &near.slots, slot, &bodies),
            radius,
            fastest,
            count: bodies.len() as u64,
            is_new: 1,
            looked: all_looked as u64,
        };
        (found, bodies)
    }
}

impl Course<'_> {
    /// Finds the slots of bodies again, where these slots may have another content.
    pub(super) fn find_slots(&mut self, slots: &[usize]) {
        let Some(near) = &mut self.neighbourhood else {
            return;
        };
        for &slot in slots {
            near.slots[slot] = slot as u32;
        }
        for number in slots.iter().filter_map(|&slot| self.groups.in_slot(slot)) {
            let group = &self.groups.all[number];
            for &body in &group.members {
                near.slots[body] = group.slot as u32;
            }
        }
    }

    /// Slots have another content than before, which came from `before`: their next force is of new lists.
    pub(super) fn renew_lists(&mut self, before: usize, slots: &[usize]) {
        let Some(near) = &mut self.neighbourhood else {
            return;
        };
        let spheres = &mut self.backend.state_mut().spheres;
        let Sphere { radius, .. } = spheres[before];
        for &slot in slots {
            near.parts[slot] = None;
            spheres[slot] = Sphere {
                radius,
                regular_step: 0.0,
            };
        }
    }

    /// Finds lists, and the forces on all slots, where a span begins.
    pub(super) fn begin_neighbourhoods(&mut self) -> Result<(), ForceError> {
        let Some(near) = &self.neighbourhood else {
            return Ok(());
        };
        let wanted = near.wanted;
        let all: Vec<usize> = (0..self.gm.len()).collect();
        self.find_slots(&all);
        self.predict();
        let spheres = &self.backend.state().spheres;
        let is_unknown = |&slot: &usize| spheres.get(slot).is_none_or(|s| s.radius.is_infinite());
        if self.live.iter().any(is_unknown) {
            let slots = self.gm.len();
            let points: Vec<Vector> = (0..slots).map(|slot| self.phase(slot)[0]).collect();
            let counts: Vec<bool> = self.gm.iter().map(|&gm| gm != 0.0).collect();
            let found = radii(&points, &counts, wanted);
            let unknown = Sphere {
                radius: f64::INFINITY,
                regular_step: 0.0,
            };
            let spheres = &mut self.backend.state_mut().spheres;
            spheres.resize(slots, unknown);
            for (sphere, radius) in spheres.iter_mut().zip(found) {
                if sphere.radius.is_infinite() {
                    sphere.radius = radius;
                }
            }
        }
        let live = self.live.clone();
        let forces = self.forces(&live)?;
        for (&slot, force) in live.iter().zip(&forces) {
            self.begin_with(slot, force.derivatives);
        }
        Ok(())
    }

    /// Forces of pairs on slots: of the bodies in lists, and of all others where regular steps end. Corrections for
    /// members are found on the way.
    pub(super) fn forces_by_parts(&mut self, slots: &[usize]) -> Result<Vec<Forces>, ForceError> {
        let due = |slot: &usize| {
            let near = self.neighbourhood.as_ref();
            near.is_some_and(|near| near.is_due(*slot, self.now))
        };
        let due: Vec<usize> = slots.iter().copied().filter(due).collect();
        if !due.is_empty() {
            if !self.is_predicted {
                self.predict();
            }
            self.begin_forces(&due)?;
        }
        // While a device computes.
        self.correct(slots)?;
        let (near, listed) = self.of_lists(slots, &due);
        let whole = match due.is_empty() {
            true => vec![],
            false => self.end_forces(&due)?,
        };
        let mut ended = due.iter().zip(listed.into_iter().zip(whole)).peekable();
        let mut forces = vec![];
        for (&slot, near) in slots.iter().zip(near) {
            forces.push(match ended.next_if(|(due, _)| **due == slot) {
                None => self.extrapolated(slot, near),
                Some((_, (listed, whole))) => self.end_regular(slot, near, listed, &whole)?,
            });
        }
        Ok(forces)
    }

    /// Selects the slots that this rank has lists of.
    fn own(&self, slots: &[usize]) -> Vec<usize> {
        match self.backend.team() {
            None => slots.to_vec(),
            Some(team) => team.own(slots),
        }
    }

    /// Values of all slots, from the values of the slots that each rank has lists of.
    fn of_all<T: Pod>(&self, slots: &[usize], own: Vec<T>) -> Vec<T> {
        match self.backend.team() {
            None => own,
            Some(team) => team.of_all(slots, &own),
        }
    }

    /// Forces of the lists that slots have, and new lists of some of them.
    fn of_lists(
        &mut self,
        slots: &[usize],
        due: &[usize],
    ) -> (Vec<Forces>, Vec<(Found, Vec<u32>)>) {
        let (own, own_due) = (self.own(slots), self.own(due));
        // Of a few bodies as they are now, sooner than by a tree of where they were.
        let all_at_hand = self.is_predicted && self.live.len() < SWEPT;
        let mut places = match due.is_empty() || all_at_hand {
            true => None,
            false => Some(self.take_places()),
        };
        let (view, state) = (self.view(), self.backend.state());
        let Some(near) = &self.neighbourhood else {
            return (vec![], vec![]);
        };
        let frame = self.frame;
        let physics = self.backend.physics();
        let sums = ListSums::new(physics, RootName::Refined, self.instructions, &frame);
        let of_list = |&slot: &usize| match &near.parts[slot] {
            None => Forces::default(),
            Some(parts) => view.of_list(&sums, &near.slots, slot, &parts.list.bodies),
        };
        let forces = parallel::each_of(&own, (ALONE / 2).div_ceil(near.wanted), of_list);
        let (instructions, now) = (self.instructions, self.now);
        let listed = |&slot: &usize| {
            let Sphere { radius, .. } = state.spheres[slot];
            if let Some(parts) = near.parts[slot].as_ref().filter(|p| p.list_lasts(now)) {
                let found = Found {
                    force: Forces::default(),
                    radius,
                    fastest: parts.list.fastest,
                    count: parts.list.count,
                    is_new: 0,
                    looked: 0,
                };
                return (found, vec![]);
            }
            view.listed(&sums, (near, instructions), places.as_ref(), slot, radius)
        };
        let listed = parallel::each_of(&own_due, 1, listed);
        let (found, lists): (Vec<Found>, Vec<Vec<u32>>) = listed.into_iter().unzip();
        let forces = self.of_all(slots, forces);
        let found = match due.is_empty() {
            true => vec![],
            false => self.of_all(due, found),
        };
        if let Some(mut places) = places.take() {
            places.note_looks(found.iter().map(|found| found.looked as usize).sum());
            self.places = Some(places);
        }
        let mut lists = own_due.into_iter().zip(lists).peekable();
        let with_list = |(&slot, found): (&usize, Found)| {
            let own = lists.next_if(|(own, _)| *own == slot);
            (found, own.map(|(_, bodies)| bodies).unwrap_or_default())
        };
        (forces, due.iter().zip(found).map(with_list).collect())
    }

    /// Parts of the force on a slot, if they are known.
    fn parts(&self, slot: usize) -> Option<&Parts> {
        self.neighbourhood.as_ref()?.parts[slot].as_ref()
    }

    /// The force on a slot within its regular step, with the irregular force given.
    fn extrapolated(&self, slot: usize, mut near: Forces) -> Forces {
        if let Some(parts) = self.parts(slot) {
            let since = self.time(self.now - parts.begun);
            near.add(extrapolated(parts.regular, since));
        }
        near
    }

    /// The force on a slot where a regular step ends, as extrapolated, or by all bodies where its content is new.
    fn end_regular(
        &mut self,
        slot: usize,
        near: Forces,
        (found, bodies): (Found, Vec<u32>),
        whole: &Forces,
    ) -> Result<Forces, ForceError> {
        let at_end = self.extrapolated(slot, near);
        let (span, now) = (self.span, self.now);
        let Some(neighbourhood) = &mut self.neighbourhood else {
            return Ok(at_end);
        };
        let sphere = &mut self.backend.state_mut().spheres[slot];
        let Found {
            force,
            radius,
            fastest,
            count,
            is_new,
            ..
        } = found;
        let is_new = is_new != 0;
        let inside = if is_new { force } else { near };
        // The fastest of all is outside, or it is no faster than those near the edge of the sphere.
        let approach = match whole.approach > 1.001 * inside.approach {
            true => whole.approach,
            false => fastest / radius,
        };
        let regular = match radius == f64::INFINITY {
            true => Force::default(),
            false => difference(whole.force(), inside.force()),
        };
        let is_dominated = norm(inside.derivatives[0]) > DOMINANT * norm(regular[0]);
        let list = is_new.then(|| {
            let grown = growth(neighbourhood.wanted as f64, count as f64, 2.0);
            sphere.radius = radius * grown;
            let lasts = APPROACH * neighbourhood.eta.sqrt() * radius / fastest;
            List {
                bodies,
                count,
                fastest,
                lasts: now.saturating_add((lasts / span * SPAN as f64) as u64),
            }
        });
        if let Some(parts) = &mut neighbourhood.parts[slot] {
            let dt = time_in(span, SPAN >> parts.level);
            let ended = match radius == f64::INFINITY {
                true => Force::default(),
                false => difference(whole.force(), near.force()),
            };
            parts.renewed = Some(Renewed {
                list,
                step: Regular {
                    begun: parts.regular,
                    ended,
                    dt,
                },
                regular,
                noise: noise(self.total, radius, dt, [near.force(), inside.force()]),
                ratio: RATIOS[usize::from(is_dominated)],
                approach,
            });
            return Ok(at_end);
        }
        if sphere.regular_step == 0.0 {
            let [a, j] = regular.map(norm);
            let change = if j == 0.0 { f64::INFINITY } else { a / j };
            sphere.regular_step = neighbourhood.eta.sqrt() * change.min(APPROACH / approach);
        }
        let wanted = level_from(now, level(sphere.regular_step, span, slot)?);
        neighbourhood.parts[slot] = list.map(|list| Parts {
            list,
            regular,
            begun: now,
            level: wanted,
            renewed: None,
        });
        Ok(Forces {
            derivatives: whole.derivatives,
            approach: inside.approach,
            nearest: whole.nearest,
        })
    }

    /// Ends the regular step of a slot before its time, because its content is about to change where its step ended.
    pub(super) fn finish_regular(&mut self, slot: usize) -> Result<(), ForceError> {
        let Some(dt) = self
            .parts(slot)
            .map(|parts| self.time(self.now - parts.begun))
        else {
            return Ok(());
        };
        if dt == 0.0 {
            return Ok(());
        }
        if !self.is_predicted {
            self.predict();
        }
        self.begin_forces(&[slot])?;
        let (near, _) = self.of_lists(&[slot], &[]);
        let whole = self.end_forces(&[slot])?;
        if let (Some(parts), [near], [whole]) = (self.parts(slot), &near[..], &whole[..]) {
            let step = Regular {
                begun: parts.regular,
                ended: difference(whole.force(), near.force()),
                dt,
            };
            let [dx, dv] = step.corrections();
            let [mut x, mut v] = self.phase(slot);
            for k in 0..3 {
                x[k] += dx[k];
                v[k] += dv[k];
            }
            let state = self.backend.state_mut();
            state.set_phase(slot, x, v);
            (state.beginnings[slot].x, state.beginnings[slot].v) = (x, v);
            self.changed.push(slot);
        }
        Ok(())
    }

    /// Begins the next regular step of a slot, if one ended, with a part of η that is finer for a heavy body. It is not
    /// too long for the slot's own step.
    pub(super) fn next_regular(
        &mut self,
        slot: usize,
        (finer, own_step): (f64, f64),
    ) -> Result<Option<Corrections>, ForceError> {
        let Some(near) = &mut self.neighbourhood else {
            return Ok(None);
        };
        let Some(parts) = &mut near.parts[slot] else {
            return Ok(None);
        };
        self.counts.neighbours += parts.list.count;
        let Some(renewed) = parts.renewed.take() else {
            return Ok(None);
        };
        self.counts.regular += 1;
        let eta = finer * near.eta;
        let allowed = (renewed.step.next_step(eta, renewed.noise))
            .min(APPROACH * eta.sqrt() / renewed.approach)
            .min(2.0 * renewed.step.dt)
            .min(renewed.ratio * own_step);
        self.backend.state_mut().spheres[slot].regular_step = allowed;
        let wanted = level(allowed, self.span, slot)?;
        parts.level = next_level(parts.level, wanted, self.now);
        if let Some(list) = renewed.list {
            parts.list = list;
        }
        (parts.regular, parts.begun) = (renewed.regular, self.now);
        let [x, v] = renewed.step.corrections();
        Ok(Some(Corrections {
            x,
            v,
            force: renewed.step.missed(),
        }))
    }

    /// The level of a step of a slot, which is no longer than the regular step that begins with it.
    pub(super) fn begin_within_regular(&mut self, slot: usize, wanted: u32) -> u32 {
        let Some(near) = &mut self.neighbourhood else {
            return wanted;
        };
        if let Some(parts) = &mut near.parts[slot] {
            parts.level = parts
                .level
                .max(wanted.saturating_sub(RATIOS[1].log2() as u32));
        }
        wanted.max(near.level_of_regular(slot))
    }
}
