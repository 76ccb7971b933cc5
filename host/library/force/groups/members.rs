//! Motion of the members of a group, perturbed by its partners.

use gpu_kernels::schedule::block_steps::{Fourth, Scheme as _};
use rayon::prelude::*;

use super::Course;
use crate::backend::ForceError;
use crate::encounters::Contact;
use crate::fields;
use crate::force::host_state::Beginning;
use crate::force::in_memory::time_in;
use crate::groups::{
    Alone, Chain, External, Few, Group, Groups, Inner, Pair, Perturbation, Ring, SEEN, Scheme,
    TOLERANCE, Vector, Zone,
};
use crate::vectors::{difference, dot};

/// A partner, as the members of a group see it.
struct Perturber<'a> {
    slot: usize,
    gm: f64,
    zone: Zone,
    /// The group that it is, with the squared distance within which its members are seen.
    group: Option<(&'a Group, f64)>,
}

/// A perturber at a time: its centre from the centre of the group, and its members if they are seen.
#[derive(Clone, Copy)]
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

/// Tide of external fields, in attractions of the members of a group, from which on it perturbs them.
const TIDE: f64 = 1e-6;

/// All slots and groups, as perturbers see them at any time of their steps, and external fields.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    groups: &'a Groups,
    /// Fields at the time to which members are followed.
    fields: &'a fields::External,
    /// Masses times G of the slots.
    gm: &'a [f64],
    beginnings: &'a [Beginning],
    begun: &'a [u64],
    pub(super) span: f64,
    /// Radii of all bodies, where contacts are kept.
    pub(super) radii: Option<&'a [f64]>,
}

impl Surroundings<'_> {
    /// Position of a slot at a time within its step.
    #[inline]
    fn place_at(&self, slot: usize, time: f64) -> Vector {
        let [x, _] = self.phase_at(slot, time);
        x
    }

    /// Position and velocity of a slot at this time, within its step.
    #[inline]
    pub(super) fn phase_at(&self, slot: usize, time: f64) -> [Vector; 2] {
        let begun = time_in(self.span, self.begun[slot]);
        let [x, v, _] = Fourth::predicted(&self.beginnings[slot], time - begun);
        [x, v]
    }

    /// The external fields, if their tide perturbs the members of a group at a time.
    fn fields_of(&self, group: &Group, time: f64) -> Option<&fields::External> {
        if self.fields.is_none() {
            return None;
        }
        let centre = self.place_at(group.slot, time);
        let at_centre = self.fields.acceleration(centre);
        let limit = TIDE * group.total() / (group.size * group.size);
        let is_strong = |axis: usize| {
            let mut place = centre;
            place[axis] += group.size;
            let tide = difference(self.fields.acceleration(place), at_centre);
            dot(tide, tide) > limit * limit
        };
        (0..3).any(is_strong).then_some(self.fields)
    }
}

/// Perturbers of a group.
struct Perturbers<'a> {
    around: Surroundings<'a>,
    slot: usize,
    all: Vec<Perturber<'a>>,
    fields: Option<&'a fields::External>,
}

impl<'a> Perturbers<'a> {
    /// Perturbers of a group until a time; none if it has none.
    fn of(around: &'a Surroundings<'a>, group: &Group, time: f64) -> Option<Self> {
        let fields = around.fields_of(group, time);
        if group.partners.is_empty() && fields.is_none() {
            return None;
        }
        let perturber = |partner: &crate::groups::Partner| {
            let other = around.groups.in_slot(partner.slot);
            Perturber {
                slot: partner.slot,
                gm: around.gm[partner.slot],
                zone: partner.zone,
                group: other.map(|k| {
                    let other = &around.groups.all[k];
                    (other, (SEEN * other.size).powi(2))
                }),
            }
        };
        Some(Self {
            around: *around,
            slot: group.slot,
            all: group.partners.iter().map(perturber).collect(),
            fields,
        })
    }

    fn seen(&self, perturber: &Perturber<'_>, time: f64, centre: Vector) -> Seen {
        let from_centre = difference(self.around.place_at(perturber.slot, time), centre);
        let square = dot(from_centre, from_centre);
        let near = perturber.group.filter(|&(_, within)| square < within);
        Seen {
            from_centre,
            members: near.map(|(group, _)| group.few_at(time)),
        }
    }

    /// Accelerations of members at places about the centre of the group.
    fn accelerations(&self, time: f64, x: &[Vector], a: &mut [Vector], seen: &mut Vec<Seen>) {
        let centre = self.around.place_at(self.slot, time);
        match self.fields {
            None => a.fill([0.0; 3]),
            Some(fields) => {
                for (a, &x) in a.iter_mut().zip(x) {
                    *a = fields.acceleration([0, 1, 2].map(|k| centre[k] + x[k]));
                }
            }
        }
        seen.clear();
        for perturber in &self.all {
            let one = self.seen(perturber, time, centre);
            for (a, &x) in a.iter_mut().zip(x) {
                match &one.members {
                    None => attract(a, perturber.gm, difference(one.from_centre, x)),
                    Some(few) => {
                        for (gm, y) in few.sources() {
                            let d = [0, 1, 2].map(|k| one.from_centre[k] + y[k] - x[k]);
                            attract(a, gm, d);
                        }
                    }
                }
            }
            seen.push(one);
        }
    }
}

/// Perturbers of a pair, which have its reactions.
struct OfPair<'a> {
    perturbers: Perturbers<'a>,
    /// Masses of the members times G.
    gm: [f64; 2],
    ring: Option<Ring>,
    seen: Vec<Seen>,
    /// Impulses on each perturber.
    impulses: Vec<[Vector; 2]>,
}

impl OfPair<'_> {
    fn members_at(&self, position: Vector) -> [Vector; 2] {
        let total = self.gm[0] + self.gm[1];
        [-self.gm[1] / total, self.gm[0] / total].map(|share| position.map(|x| share * x))
    }
}

impl Perturbation for OfPair<'_> {
    fn acceleration(&mut self, time: f64, position: Vector) -> Vector {
        let x = self.members_at(position);
        let mut a = [[0.0; 3]; 2];
        self.perturbers
            .accelerations(time, &x, &mut a, &mut self.seen);
        difference(a[1], a[0])
    }

    fn kicked(&mut self, weight: f64, time: f64, position: Vector) {
        let x = self.members_at(position);
        let total = self.gm[0] + self.gm[1];
        let each = self.perturbers.all.iter().zip(&self.seen);
        for ((perturber, seen), impulse) in each.zip(&mut self.impulses) {
            if perturber.zone != Zone::Impulses {
                continue;
            }
            let d = seen.from_centre;
            let mut a = match &self.ring {
                Some(ring) => ring.acceleration(d).map(|a| -a),
                None => [0.0; 3],
            };
            let back = d.map(|d| -d);
            let mut point = [0.0; 3];
            attract(&mut point, total, back);
            let mut members = [0.0; 3];
            for (&gm, &x) in self.gm.iter().zip(&x) {
                attract(&mut members, gm, difference(x, d));
            }
            if let Some(few) = seen.members.filter(|few| few.count == 2) {
                // Of what the quadrupoles of two pairs do together, each has a half.
                let (mut full, mut of_other) = ([0.0; 3], [0.0; 3]);
                for (gm, y) in few.sources() {
                    let share = gm / perturber.gm;
                    let at = [0, 1, 2].map(|k| d[k] + y[k]);
                    attract(&mut of_other, share * total, at.map(|x| -x));
                    for (&gm, &x) in self.gm.iter().zip(&x) {
                        attract(&mut full, share * gm, difference(x, at));
                    }
                }
                members = [0, 1, 2].map(|k| 0.5 * (full[k] + members[k] - of_other[k] + point[k]));
            }
            for k in 0..3 {
                a[k] += members[k] - point[k];
                impulse[0][k] += weight * a[k];
                impulse[1][k] -= time * weight * a[k];
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
        self.perturbers.accelerations(time, x, a, &mut self.seen);
    }
}

impl Course<'_> {
    /// Moves the members of a group to now.
    pub(super) fn follow(&mut self, number: usize) -> Result<(), ForceError> {
        self.follow_each(&[number])
    }

    /// Moves the members of groups to now, each as if the others had not been moved yet.
    pub(super) fn follow_each(&mut self, numbers: &[usize]) -> Result<(), ForceError> {
        let time = self.time(self.now);
        let is_behind = |&number: &usize| self.groups.all[number].time() < time;
        let behind: Vec<usize> = numbers.iter().copied().filter(is_behind).collect();
        let state = self.backend.state();
        let around = Surroundings {
            groups: &self.groups,
            fields: &state.external,
            gm: &self.gm,
            beginnings: &state.beginnings,
            begun: &self.begun,
            span: self.span,
            radii: state.kept.as_ref().map(|kept| &kept.radii[..]),
        };
        let followed = |&number: &usize| around.followed(&around.groups.all[number], time);
        let each: Vec<_> = match behind.len() {
            0 => return Ok(()),
            1 => behind.iter().map(followed).collect(),
            _ => behind.par_iter().map(followed).collect(),
        };
        for (number, followed) in behind.into_iter().zip(each) {
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
                let contact = self.contact_of_pair(group, [pair, &after]);
                Ok(Followed {
                    inner: Inner::Pair(after),
                    impulses,
                    contacts: contact.into_iter().collect(),
                })
            }
            Inner::Multiple(chain) => match Perturbers::of(self, group, time) {
                None => self.followed_multiple(group, **chain, time, &mut Alone),
                Some(perturbers) => {
                    let mut perturbers = OfMultiple {
                        perturbers,
                        seen: vec![],
                    };
                    self.followed_multiple(group, **chain, time, &mut perturbers)
                }
            },
        }
    }

    fn followed_multiple(
        &self,
        group: &Group,
        mut chain: Chain,
        time: f64,
        external: &mut impl External,
    ) -> Result<Followed, ForceError> {
        let contacts = self.contacts_of_multiple(group, chain, time, external);
        match chain.advance(time, TOLERANCE, external) {
            Ok(_) => Ok(Followed {
                inner: Inner::Multiple(Box::new(chain)),
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
        let scheme = match perturbers.fields.is_some() || group.partners.iter().any(gives) {
            true => Scheme::Fourth,
            false => Scheme::Second,
        };
        let mut perturbers = OfPair {
            perturbers,
            gm: [group.gm[0], group.gm[1]],
            ring: group.ring,
            seen: vec![],
            impulses: vec![[[0.0; 3]; 2]; group.partners.len()],
        };
        pair.advance(time, scheme, group.slowdown, &mut perturbers);
        (pair, perturbers.impulses)
    }
}
