//! Contacts of members of a group.

use super::members::Surroundings;
use crate::encounters::Contact;
use crate::groups::{External, Few, Group, Multiple, Pair, Tight, Vector};
use crate::vectors::{axes, difference, dot};

/// Time between two looks at two members of a multiple, in their free-fall times.
const OFTEN: f64 = 0.25;

/// Distance of all others, in sizes, from which on two members of a multiple are looked at twice an orbit.
const ALONE: f64 = 5.0;

/// The least time between two looks, in free-fall times at the contact.
const SHORTEST: f64 = 0.1;

/// Two members where they meet.
struct Meeting {
    time: f64,
    from_outside: bool,
    /// Motion of the second relative to the first.
    pair: Pair,
}

impl Meeting {
    /// The meeting of two that are within each other and approach.
    fn within(pair: &Pair, radius: f64) -> Option<Self> {
        let is_within = pair.radius() <= radius && dot(pair.position(), pair.velocity()) < 0.0;
        is_within.then_some(Self {
            time: pair.time,
            from_outside: false,
            pair: *pair,
        })
    }

    /// The meeting a time after a state of a pair at full speed, or before it.
    fn from(pair: &Pair, since: f64) -> Self {
        let time = pair.time + since;
        Self {
            time,
            from_outside: true,
            pair: pair.at(time),
        }
    }

    /// The first meeting of a pair between two of its states, if it meets.
    fn of_pair([before, after]: [&Pair; 2], slowdown: f64, radius: f64) -> Option<Self> {
        if let Some(meeting) = Self::within(before, radius) {
            return Some(meeting);
        }
        let passed = (after.time - before.time) / slowdown;
        let is_between = |time: &f64| *time <= passed;
        let (pair, since) = match before.until_within(radius).filter(is_between) {
            Some(until) => (before, until),
            None => (after, -after.since_within(radius).filter(is_between)?),
        };
        let time = pair.time + slowdown * since;
        Some(Self {
            time,
            from_outside: true,
            pair: pair.slowed_at(time, slowdown),
        })
    }
}

/// Two members of a multiple, and the sum of their radii.
struct Two {
    members: [usize; 2],
    radius: f64,
    total: f64,
    has_met: bool,
}

impl Two {
    /// Motion of the second relative to the first.
    fn pair(&self, few: &Few, time: f64) -> Pair {
        let [i, k] = self.members;
        let (d, u) = (
            difference(few.x[k], few.x[i]),
            difference(few.v[k], few.v[i]),
        );
        Pair::new(self.total, time, d, u)
    }

    /// The least time between two looks.
    fn shortest(&self) -> f64 {
        SHORTEST * (self.radius.powi(3) / self.total).sqrt()
    }

    /// Time until the next look: no later than they meet.
    fn until_look(&self, pair: &Pair, few: &Few, mass: f64) -> f64 {
        let size = pair.size();
        let is_far = |other: usize| {
            self.members.contains(&other) || {
                let d = difference(few.x[other], few.x[self.members[0]]);
                dot(d, d) > (ALONE * size).powi(2)
            }
        };
        let wanted = match (0..few.count).all(is_far) {
            true => Some(pair.until_pericentre())
                .filter(|&time| time > self.shortest())
                .unwrap_or(0.5 * pair.period()),
            false => OFTEN * (pair.radius().powi(3) / mass).sqrt(),
        };
        let meets = pair.until_within(self.radius).unwrap_or(f64::INFINITY);
        wanted.min(meets).max(self.shortest())
    }
}

impl Surroundings<'_> {
    /// Contacts in a pair between two of its states: the first of its two members. Where bodies of it are tight pairs,
    /// nobody comes near them, and their own members may meet.
    pub(super) fn contacts_of_pair(
        &self,
        group: &Group,
        [before, after]: [&Pair; 2],
    ) -> Vec<Contact> {
        let Some(radii) = self.radii else {
            return vec![];
        };
        let meeting = |states: [&Pair; 2], slowdown: f64, members: &[usize]| {
            let radius = members.iter().map(|&i| radii[i]).sum();
            let may_meet = radius > 0.0;
            may_meet.then(|| Meeting::of_pair(states, slowdown, radius))?
        };
        if !group.is_nested() {
            let meeting = meeting([before, after], group.slowdown, &group.members);
            let meets = |meeting| self.contact(group, [0, 1], [[0.0; 3]; 2], &meeting);
            return meeting.map(meets).into_iter().collect();
        }
        let mut contacts = vec![];
        for (body, (members, tight)) in group.bodies_of_pair().into_iter().enumerate() {
            let Some(Tight { gm, pair }) = tight else {
                continue;
            };
            let [before, after] = [before, after].map(|outer| pair.at(outer.time));
            if let Some(meeting) = meeting([&before, &after], 1.0, &members) {
                let few = group.few_at(meeting.time);
                let centre = [few.x[body], few.v[body]];
                let of_members = [0, 1].map(|k| (members[k], gm[k]));
                contacts.push(self.contact_of(group.slot, of_members, centre, &meeting));
            }
        }
        contacts
    }

    /// Contacts of the members of a multiple until a time: the first of each two members. The copy that looks for
    /// them stops at each look. The group keeps its own, so that looking changes no bit.
    pub(super) fn contacts_of_multiple(
        &self,
        group: &Group,
        multiple: &Multiple,
        time: f64,
        external: &mut impl External,
    ) -> Vec<Contact> {
        let mut contacts = vec![];
        let Some(radii) = self.radii else {
            return contacts;
        };
        let mut all = vec![];
        for k in 0..group.members.len() {
            for i in 0..k {
                let radius = radii[group.members[i]] + radii[group.members[k]];
                if radius > 0.0 {
                    all.push(Two {
                        members: [i, k],
                        radius,
                        total: group.gm[i] + group.gm[k],
                        has_met: false,
                    });
                }
            }
        }
        let mass = group.total();
        let mut multiple = multiple.clone();
        while multiple.time() < time && all.iter().any(|two| !two.has_met) {
            let (began, before) = (multiple.time(), multiple.few(&group.gm));
            let mut next = time;
            for two in all.iter_mut().filter(|two| !two.has_met) {
                let pair = two.pair(&before, began);
                let soon = pair.until_within(two.radius);
                let soon = soon.filter(|&until| until <= two.shortest().min(time - began));
                let meeting = Meeting::within(&pair, two.radius)
                    .or_else(|| soon.map(|until| Meeting::from(&pair, until)));
                match meeting {
                    Some(meeting) => {
                        contacts.push(self.contact_of_two(group, two, (began, &before), &meeting));
                        two.has_met = true;
                    }
                    None => {
                        let until = match multiple.hard_pair(two.members) {
                            Some(hard) => hard.until_within(two.radius).unwrap_or(f64::INFINITY),
                            None => two.until_look(&pair, &before, mass),
                        };
                        next = next.min(began + until);
                    }
                }
            }
            // Of less than the last bit of the time nothing is left.
            let next = if next > began { next } else { time };
            if multiple.advance(next, &group.gm, external).is_err() {
                break; // which who follows the group tells
            }
            let after = multiple.few(&group.gm);
            for two in all.iter_mut().filter(|two| !two.has_met) {
                let pair = two.pair(&after, next);
                let since = pair.since_within(two.radius);
                if let Some(since) = since.filter(|&since| since <= next - began) {
                    let meeting = Meeting::from(&pair, -since);
                    contacts.push(self.contact_of_two(group, two, (next, &after), &meeting));
                    two.has_met = true;
                }
            }
        }
        contacts
    }

    /// The contact of two members of a multiple, from the state of all members at this time, which is near.
    fn contact_of_two(
        &self,
        group: &Group,
        two: &Two,
        (time, few): (f64, &Few),
        meeting: &Meeting,
    ) -> Contact {
        let [i, k] = two.members;
        let share = few.gm[k] / two.total;
        let mean = |a: Vector, b: Vector| axes(|axis| a[axis] + share * (b[axis] - a[axis]));
        let (x, v) = (mean(few.x[i], few.x[k]), mean(few.v[i], few.v[k]));
        let since = meeting.time - time;
        let x = axes(|axis| x[axis] + since * v[axis]);
        self.contact(group, two.members, [x, v], meeting)
    }

    /// The contact of two members that move as one body each. The centre of mass of both has this position and velocity
    /// about the group.
    fn contact(
        &self,
        group: &Group,
        members: [usize; 2],
        centre: [Vector; 2],
        meeting: &Meeting,
    ) -> Contact {
        let members = members.map(|k| (group.members[k], group.gm[k]));
        self.contact_of(group.slot, members, centre, meeting)
    }

    /// The contact of two bodies with these masses times G. The centre of mass of both has this position and velocity about
    /// a slot.
    fn contact_of(
        &self,
        slot: usize,
        bodies: [(usize, f64); 2],
        centre: [Vector; 2],
        meeting: &Meeting,
    ) -> Contact {
        let relative = [meeting.pair.position(), meeting.pair.velocity()];
        let whole = self.phase_at(slot, meeting.time);
        let [one, other] = bodies.map(|(_, gm)| gm);
        let shares = [-other / (one + other), one / (one + other)];
        let phase = |share: f64| {
            let at = |k: usize, axis: usize| {
                whole[k][axis] + centre[k][axis] + share * relative[k][axis]
            };
            [0, 1].map(|k| axes(|axis| at(k, axis)))
        };
        let (mut bodies, mut phases) = (bodies.map(|(body, _)| body), shares.map(phase));
        if bodies[0] > bodies[1] {
            bodies.reverse();
            phases.reverse();
        }
        Contact {
            bodies,
            share: meeting.time / self.span,
            from_outside: meeting.from_outside,
            phases,
        }
    }
}
