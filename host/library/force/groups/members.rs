//! Motion of the members of a group, perturbed by its partners.

use super::Course;
use super::paths::{Paths, Polynomial, farthest, place};
use crate::backend::ForceError;
use crate::encounters::Contact;
use crate::fields;
use crate::force::hermite_order::Order;
use crate::force::host_state::Beginning;
use crate::force::in_memory::time_in;
use crate::groups::{
    Alone, CAPACITY, External, Few, Group, Groups, Inner, Multiple, Pair, Perturbation, Ring, SEEN,
    Scheme, Vector, Zone, about_centre,
};
use crate::parallel;
use crate::simd::InstructionSet;
use crate::vectors::{axes, difference, dot};

/// A group that perturbs another one from so near that its members may be seen.
struct Near<'a> {
    /// Number among the partners.
    partner: usize,
    group: &'a Group,
    gm: f64,
    way: Polynomial,
    /// True if it gets impulses.
    answers: bool,
    /// Squared distance within which its members are seen.
    within: f64,
}

/// A perturber at a time: its centre from the centre of the group, and its members if they are seen.
struct Seen {
    from_centre: Vector,
    members: Option<Few>,
}

/// `gm d / d³`, added to an acceleration.
#[inline]
fn attract(a: &mut Vector, gm: f64, d: Vector) {
    let square = dot(d, d);
    let f = gm / (square * square.sqrt());
    for k in 0..3 {
        a[k] += f * d[k];
    }
}

/// Distance, in those within which members of a group are seen, from which on it is one body.
const NEARLY: f64 = 1.01;

/// Tide of external fields, in attractions of the members of a group, from which on it perturbs them.
const TIDE: f64 = 1e-6;

/// Energies of the strongest tide on a pair from which on its steps are of fourth order, and of sixth, in the
/// [unit](crate::groups::Scales::energy) of tides. Each time at which members are wanted ends a step. In second order it
/// leaves an error of some hundredths of the tide. In some passages of a third at twenty sizes, a pair with more energy
/// than its cluster lost as much as the other stars have.
const ORDERS: [f64; 2] = [1e-7, 1e-5];

/// All slots and groups, as perturbers see them at any time of their steps, and external fields.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) groups: &'a Groups,
    /// Fields at the time to which members are followed.
    fields: &'a fields::External,
    /// Masses times G of the slots.
    gm: &'a [f64],
    beginnings: &'a [Beginning],
    begun: &'a [u64],
    order: Order,
    pub(super) span: f64,
    /// Radii of all bodies, where contacts are kept.
    pub(super) radii: Option<&'a [f64]>,
    instructions: InstructionSet,
}

impl<'a> Surroundings<'a> {
    /// Position and velocity of a slot at this time, within its step.
    #[inline]
    pub(super) fn phase_at(&self, slot: usize, time: f64) -> [Vector; 2] {
        let begun = time_in(self.span, self.begun[slot]);
        let [x, v, _] = (self.order).predicted(&self.beginnings[slot], time - begun);
        [x, v]
    }

    /// The way of a slot from a time within its step on, as [predicted](Order::predicted).
    fn way(&self, slot: usize, time: f64) -> Polynomial {
        let [x, v] = self.phase_at(slot, time);
        let Beginning { a, j, s, c, .. } = &self.beginnings[slot];
        let since = time - time_in(self.span, self.begun[slot]);
        let (half, third) = (since / 2.0, since / 3.0);
        // At fourth order snap and crackle are zero.
        let a = axes(|k| a[k] + since * (j[k] + half * (s[k] + third * c[k])));
        let j = axes(|k| j[k] + since * (s[k] + half * c[k]));
        let s = axes(|k| s[k] + since * c[k]);
        [
            x,
            v,
            a.map(|a| 0.5 * a),
            j.map(|j| j / 6.0),
            s.map(|s| s / 24.0),
            c.map(|c| c / 120.0),
        ]
    }

    /// The external fields, if their tide perturbs the members of a group at a time.
    fn fields_of(&self, group: &Group, time: f64) -> Option<&'a fields::External> {
        if self.fields.is_none() {
            return None;
        }
        let [centre, _] = self.phase_at(group.slot, time);
        let tide = tide(self.fields, centre, group.size, group.total());
        (tide > TIDE).then_some(self.fields)
    }
}

/// The tide of external fields over a distance from a place, in attractions of a mass times G at this distance.
pub(super) fn tide(fields: &fields::External, centre: Vector, size: f64, total: f64) -> f64 {
    let at_centre = fields.acceleration(centre);
    let along = |axis: usize| {
        let mut place = centre;
        place[axis] += size;
        let tide = difference(fields.acceleration(place), at_centre);
        dot(tide, tide).sqrt()
    };
    let strongest = (0..3).map(along).fold(0.0, f64::max);
    strongest * size * size / total
}

/// Perturbers of a group, from a time on.
struct Perturbers<'a> {
    begin: f64,
    instructions: InstructionSet,
    /// The way of the centre, where fields are there.
    fields: Option<(&'a fields::External, Polynomial)>,
    /// Single bodies and groups that are seen as one body.
    far: Paths,
    near: Vec<Near<'a>>,
    /// Numbers of partners that get impulses, seen as one body, with their masses times G and ways.
    answering: Vec<(usize, f64, Polynomial)>,
    /// Largest mass times G by the cube of the distance.
    strongest: f64,
}

impl<'a> Perturbers<'a> {
    /// Perturbers of a group until a time; none if it has none.
    fn of(around: &Surroundings<'a>, group: &Group, until: f64) -> Option<Self> {
        let fields = around.fields_of(group, until);
        if group.partners.is_empty() && fields.is_none() {
            return None;
        }
        let begin = group.time();
        let centre = around.way(group.slot, begin);
        let mut perturbers = Self {
            begin,
            instructions: around.instructions,
            fields: fields.map(|fields| (fields, centre)),
            far: Paths::with_room(around.order, group.partners.len()),
            near: vec![],
            answering: vec![],
            strongest: 0.0,
        };
        for (k, partner) in group.partners.iter().enumerate() {
            let gm = around.gm[partner.slot];
            let answers = partner.zone == Zone::Impulses;
            let of_partner = around.way(partner.slot, begin);
            let way: Polynomial =
                std::array::from_fn(|power| difference(of_partner[power], centre[power]));
            let square = dot(way[0], way[0]);
            perturbers.strongest = perturbers.strongest.max(gm / (square * square.sqrt()));
            if let Some(number) = around.groups.in_slot(partner.slot) {
                let group = &around.groups.all[number];
                let seen = SEEN * group.size;
                let nearest = dot(way[0], way[0]).sqrt() - farthest(&way, (until - begin).abs());
                if nearest < NEARLY * seen {
                    perturbers.near.push(Near {
                        partner: k,
                        group,
                        gm,
                        way,
                        answers,
                        within: seen * seen,
                    });
                    continue;
                }
            }
            perturbers.far.push(gm, &way);
            if answers {
                perturbers.answering.push((k, gm, way));
            }
        }
        Some(perturbers)
    }

    /// Accelerations of members at places about the centre of the group. Also finds how the near ones are seen.
    fn accelerations<const MEMBERS: usize>(
        &self,
        time: f64,
        x: &[Vector; MEMBERS],
        seen: &mut Vec<Seen>,
    ) -> [Vector; MEMBERS] {
        let since = time - self.begin;
        let mut a = self.far.attraction(self.instructions, since, x);
        if let Some((fields, centre)) = &self.fields {
            let centre = place(centre, since);
            for (a, x) in a.iter_mut().zip(x) {
                let by_fields = fields.acceleration(axes(|k| centre[k] + x[k]));
                for k in 0..3 {
                    a[k] += by_fields[k];
                }
            }
        }
        seen.clear();
        for near in &self.near {
            let from_centre = place(&near.way, since);
            let is_seen = dot(from_centre, from_centre) < near.within;
            let one = Seen {
                from_centre,
                members: is_seen.then(|| near.group.few_at(time)),
            };
            for (a, &x) in a.iter_mut().zip(x) {
                match &one.members {
                    None => attract(a, near.gm, difference(from_centre, x)),
                    Some(few) => {
                        for (gm, y) in few.sources() {
                            let d = axes(|k| from_centre[k] + y[k] - x[k]);
                            attract(a, gm, d);
                        }
                    }
                }
            }
            seen.push(one);
        }
        a
    }
}

/// The members of a pair, as perturbers feel them.
struct Reacting {
    /// Masses of the members times G.
    gm: [f64; 2],
    ring: Option<Ring>,
}

/// Perturbers of a pair, which have its reactions.
struct OfPair<'a> {
    perturbers: Perturbers<'a>,
    pair: Reacting,
    seen: Vec<Seen>,
    /// Impulses on each partner.
    impulses: Vec<[Vector; 2]>,
}

impl Reacting {
    /// The members about their centre, by the position of the second from the first.
    fn members_at(&self, position: Vector) -> [Vector; 2] {
        about_centre(self.gm, position)
    }

    /// Acceleration of a perturber at d by the pair, beyond the attraction of its centre. Members of a perturber are
    /// seen if they are given.
    fn reaction(&self, x: &[Vector; 2], gm: f64, d: Vector, seen: Option<&Few>) -> Vector {
        let total = self.gm[0] + self.gm[1];
        let mut a = match &self.ring {
            Some(ring) => ring.acceleration(d).map(|a| -a),
            None => [0.0; 3],
        };
        let mut point = [0.0; 3];
        attract(&mut point, total, d.map(|d| -d));
        let mut members = [0.0; 3];
        for (&gm, &x) in self.gm.iter().zip(x) {
            attract(&mut members, gm, difference(x, d));
        }
        if let Some(few) = seen.filter(|few| few.count == 2) {
            // Of what the quadrupoles of two pairs do together, each has a half.
            let (mut full, mut of_other) = ([0.0; 3], [0.0; 3]);
            for (member, y) in few.sources() {
                let share = member / gm;
                let at = axes(|k| d[k] + y[k]);
                attract(&mut of_other, share * total, at.map(|x| -x));
                for (&gm, &x) in self.gm.iter().zip(x) {
                    attract(&mut full, share * gm, difference(x, at));
                }
            }
            members = axes(|k| 0.5 * (full[k] + members[k] - of_other[k] + point[k]));
        }
        for k in 0..3 {
            a[k] += members[k] - point[k];
        }
        a
    }
}

impl Perturbation for OfPair<'_> {
    fn acceleration(&mut self, time: f64, position: Vector) -> Vector {
        let x = self.pair.members_at(position);
        let [first, second] = self.perturbers.accelerations(time, &x, &mut self.seen);
        difference(second, first)
    }

    fn kicked(&mut self, weight: f64, time: f64, position: Vector) {
        let x = self.pair.members_at(position);
        let since = time - self.perturbers.begin;
        let mut note = |partner: usize, a: Vector| {
            let [sum, times] = &mut self.impulses[partner];
            for k in 0..3 {
                sum[k] += weight * a[k];
                times[k] -= time * weight * a[k];
            }
        };
        for (partner, gm, way) in &self.perturbers.answering {
            note(
                *partner,
                self.pair.reaction(&x, *gm, place(way, since), None),
            );
        }
        for (near, seen) in self.perturbers.near.iter().zip(&self.seen) {
            if near.answers {
                let members = seen.members.as_ref();
                note(
                    near.partner,
                    self.pair.reaction(&x, near.gm, seen.from_centre, members),
                );
            }
        }
    }
}

/// Perturbers of a multiple.
struct OfMultiple<'a> {
    perturbers: Perturbers<'a>,
    seen: Vec<Seen>,
}

impl External for OfMultiple<'_> {
    fn accelerations(&mut self, time: f64, x: &[Vector], a: &mut [Vector]) {
        for (&x, a) in x.iter().zip(a) {
            [*a] = self.perturbers.accelerations(time, &[x], &mut self.seen);
        }
    }
}

impl Course<'_> {
    /// All slots and groups, as they are now.
    pub(super) fn surroundings(&self) -> Surroundings<'_> {
        let state = self.backend.state();
        Surroundings {
            groups: &self.groups,
            fields: &state.external,
            gm: &self.gm,
            beginnings: &state.beginnings,
            begun: &self.begun,
            order: self.order,
            span: self.span,
            radii: state.kept.as_ref().map(|kept| &kept.radii[..]),
            instructions: self.instructions,
        }
    }

    /// Moves the members of a group to now.
    pub(super) fn follow(&mut self, number: usize) -> Result<(), ForceError> {
        self.follow_each(&[number])
    }

    /// Moves the members of groups to now, each as if the others had not been moved yet.
    pub(super) fn follow_each(&mut self, numbers: &[usize]) -> Result<(), ForceError> {
        let time = self.time(self.now);
        let is_behind = |&number: &usize| self.groups.all[number].time() < time;
        let behind: Vec<usize> = numbers.iter().copied().filter(is_behind).collect();
        let around = self.surroundings();
        let all = parallel::each(behind.len(), 1, |k| {
            around.followed(&around.groups.all[behind[k]], time)
        });
        for (number, followed) in behind.into_iter().zip(all) {
            let Followed {
                inner,
                impulses,
                contacts,
            } = followed?;
            if let Some(kept) = &mut self.backend.state_mut().kept {
                kept.paths.contacts.extend(contacts);
            }
            let group = &mut self.groups.all[number];
            group.inner = inner;
            let (slot, total) = (group.slot, group.total());
            for (partner, [sum, times]) in group.partners.iter().zip(impulses) {
                let back = -self.gm[partner.slot] / total;
                for (slot, share) in [(partner.slot, 1.0), (slot, back)] {
                    let [own_sum, own_times] = &mut self.impulses[slot];
                    for k in 0..3 {
                        own_sum[k] += share * sum[k];
                        own_times[k] += share * times[k];
                    }
                }
            }
        }
        Ok(())
    }
}

/// Members of a group, followed to a time.
struct Followed {
    inner: Inner,
    /// Impulses on its partners, if it is a pair.
    impulses: Vec<[Vector; 2]>,
    contacts: Vec<Contact>,
}

impl Surroundings<'_> {
    /// The members of a group at a time.
    fn followed(&self, group: &Group, time: f64) -> Result<Followed, ForceError> {
        match &group.inner {
            Inner::Pair(pair) => {
                let (after, impulses) = self.followed_pair(group, *pair, time);
                let contacts = self.contacts_of_pair(group, [pair, &after]);
                Ok(Followed {
                    inner: Inner::Pair(after),
                    impulses,
                    contacts,
                })
            }
            Inner::Multiple(multiple) => match Perturbers::of(self, group, time) {
                None => self.followed_multiple(group, multiple, time, &mut Alone),
                Some(perturbers) => {
                    let mut perturbers = OfMultiple {
                        perturbers,
                        seen: vec![],
                    };
                    self.followed_multiple(group, multiple, time, &mut perturbers)
                }
            },
        }
    }

    /// Accelerations of the members of a group about its centre, as others see them. Its members are followed to the
    /// time of the slots.
    pub(super) fn accelerations(&self, group: &Group, few: &Few) -> [Vector; CAPACITY] {
        let mut all = [[0.0; 3]; CAPACITY];
        let members = 0..few.count;
        for (p, a) in all[members.clone()].iter_mut().enumerate() {
            for (q, (gm, x)) in few.sources().enumerate() {
                if q != p {
                    attract(a, gm, difference(x, few.x[p]));
                }
            }
            *a = a.map(|a| a / group.slowdown);
        }
        let time = group.time();
        if let Some(perturbers) = Perturbers::of(self, group, time) {
            let mut mean = [0.0; 3];
            let (total, mut seen) = (group.total(), vec![]);
            for (p, a) in all[members.clone()].iter_mut().enumerate() {
                let [by_others] = perturbers.accelerations(time, &[few.x[p]], &mut seen);
                for k in 0..3 {
                    a[k] += by_others[k];
                    mean[k] += few.gm[p] / total * by_others[k];
                }
            }
            for a in &mut all[members.clone()] {
                *a = difference(*a, mean);
            }
        }
        for a in all[members].iter_mut().flatten() {
            *a /= group.slowdown;
        }
        all
    }

    fn followed_multiple(
        &self,
        group: &Group,
        multiple: &Multiple,
        time: f64,
        external: &mut impl External,
    ) -> Result<Followed, ForceError> {
        let contacts = self.contacts_of_multiple(group, multiple, time, external);
        let mut moved = Box::new(multiple.clone());
        match moved.advance(time, &group.gm, external) {
            Ok(()) => Ok(Followed {
                inner: Inner::Multiple(moved),
                impulses: vec![],
                contacts,
            }),
            Err(_) => Err(ForceError::NotFinite { body: group.slot }),
        }
    }

    /// A pair at a time, and impulses on its partners.
    fn followed_pair(&self, group: &Group, mut pair: Pair, time: f64) -> (Pair, Vec<[Vector; 2]>) {
        let Some(perturbers) = Perturbers::of(self, group, time) else {
            return (pair.at(time), vec![]);
        };
        let gives = |partner: &crate::groups::Partner| partner.zone == Zone::Impulses;
        let tide = perturbers.strongest * group.reduced() * group.size * group.size;
        let tide = tide / self.groups.scales.energy;
        let is_fourth = perturbers.fields.is_some() || group.partners.iter().any(gives);
        let scheme = match tide {
            _ if tide > ORDERS[1] => Scheme::Sixth,
            _ if is_fourth || tide > ORDERS[0] => Scheme::Fourth,
            _ => Scheme::Second,
        };
        let mut perturbers = OfPair {
            perturbers,
            pair: Reacting {
                gm: [group.gm[0], group.gm[1]],
                ring: group.ring,
            },
            seen: vec![],
            impulses: vec![[[0.0; 3]; 2]; group.partners.len()],
        };
        pair.advance(time, scheme, group.slowdown, &mut perturbers);
        (pair, perturbers.impulses)
    }
}

#[cfg(test)]
mod tests {
    use gpu_kernels::schedule::block_steps::SPAN;

    use super::*;
    use crate::force::cpu::Cpu;
    use crate::force::cpu::samples::{Random, cloud};
    use crate::force::in_memory::InMemory;
    use crate::physics::{ForceLaw, Physics};
    use crate::vectors::distance;

    /// The predictor's series about another time: places and velocities are the predicted ones.
    #[test]
    fn a_way_goes_where_a_slot_is_predicted() {
        for order in [Order::Fourth, Order::Sixth] {
            ways_go_where_slots_are_predicted(order);
        }
    }

    fn ways_go_where_slots_are_predicted(order: Order) {
        let gravity = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        let cpu = Cpu::<f64>::new(&cloud(8, 1), gravity).in_groups(None);
        let mut random = Random(4);
        let mut vector = || [0; 3].map(|_| 2.0 * random.unit() - 1.0);
        let scale = f64::from(u8::from(order == Order::Sixth));
        let beginnings = [0; 8].map(|_| Beginning {
            x: vector(),
            v: vector(),
            a: vector(),
            j: vector(),
            s: vector().map(|x| scale * x),
            c: vector().map(|x| scale * x),
        });
        let around = Surroundings {
            groups: cpu.state().groups.as_ref().expect("there may be some"),
            fields: &cpu.state().external,
            gm: &[],
            beginnings: &beginnings,
            begun: &[0, 1, 2, 3, 4, 5, 6, 7].map(|slot| slot * (SPAN / 8)),
            order,
            span: 1.5,
            radii: None,
            instructions: InstructionSet::detect(),
        };
        for slot in 0..8 {
            for from in [0.0, 0.4, 1.5] {
                let way = around.way(slot, from);
                for since in [0.0, 1e-3, 0.3, -0.2] {
                    let [x, v] = around.phase_at(slot, from + since);
                    let slope = axes(|k| {
                        let terms = way.iter().zip(0..6).skip(1);
                        let term = |(factor, power): (&Vector, i32)| {
                            f64::from(power) * factor[k] * since.powi(power - 1)
                        };
                        terms.map(term).sum::<f64>()
                    });
                    let off = [distance(place(&way, since), x), distance(slope, v)];
                    assert!(
                        off.iter().all(|&off| off <= 4e-15),
                        "{slot}, {from}: {off:?}"
                    );
                }
            }
        }
    }
}
