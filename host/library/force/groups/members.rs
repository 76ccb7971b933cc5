//! Motion of the members of a group, perturbed by its partners.

use super::Course;
use crate::backend::ForceError;
use crate::groups::{
    Alone, External, Few, Group, Inner, Pair, Perturbation, Ring, SEEN, Scheme, TOLERANCE, Vector,
    Zone,
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

/// Perturbers of a group.
struct Perturbers<'a, 'b> {
    course: &'a Course<'b>,
    slot: usize,
    all: Vec<Perturber<'a>>,
}

impl<'a, 'b> Perturbers<'a, 'b> {
    fn of(course: &'a Course<'b>, group: &Group) -> Self {
        let perturber = |partner: &crate::groups::Partner| {
            let other = course.groups.in_slot(partner.slot);
            Perturber {
                slot: partner.slot,
                gm: course.gm[partner.slot],
                zone: partner.zone,
                group: other.map(|k| {
                    let other = &course.groups.all[k];
                    (other, (SEEN * other.size).powi(2))
                }),
            }
        };
        Self {
            course,
            slot: group.slot,
            all: group.partners.iter().map(perturber).collect(),
        }
    }

    fn seen(&self, perturber: &Perturber<'_>, time: f64, centre: Vector) -> Seen {
        let from_centre = difference(self.course.place_at(perturber.slot, time), centre);
        let square = dot(from_centre, from_centre);
        let near = perturber.group.filter(|&(_, within)| square < within);
        Seen {
            from_centre,
            members: near.map(|(group, _)| group.few_at(time)),
        }
    }

    /// Accelerations of members at places about the centre of the group.
    fn accelerations(&self, time: f64, x: &[Vector], a: &mut [Vector], seen: &mut Vec<Seen>) {
        let centre = self.course.place_at(self.slot, time);
        a.fill([0.0; 3]);
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
struct OfPair<'a, 'b> {
    perturbers: Perturbers<'a, 'b>,
    /// Masses of the members times G.
    gm: [f64; 2],
    ring: Option<Ring>,
    seen: Vec<Seen>,
    /// Impulses on each perturber.
    impulses: Vec<[Vector; 2]>,
}

impl OfPair<'_, '_> {
    fn members_at(&self, position: Vector) -> [Vector; 2] {
        let total = self.gm[0] + self.gm[1];
        [-self.gm[1] / total, self.gm[0] / total].map(|share| position.map(|x| share * x))
    }
}

impl Perturbation for OfPair<'_, '_> {
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
struct OfMultiple<'a, 'b> {
    perturbers: Perturbers<'a, 'b>,
    seen: Vec<Seen>,
}

impl External for OfMultiple<'_, '_> {
    fn accelerations(&mut self, time: f64, x: &[Vector], a: &mut [Vector]) {
        self.perturbers.accelerations(time, x, a, &mut self.seen);
    }
}

impl Course<'_> {
    /// Moves the members of a group to now.
    pub(super) fn follow(&mut self, number: usize) -> Result<(), ForceError> {
        let time = self.time(self.now);
        let group = &self.groups.all[number];
        if group.time() >= time {
            return Ok(());
        }
        match group.inner {
            Inner::Pair(pair) => {
                let (pair, impulses) = self.followed_pair(group, pair, time);
                let group = &mut self.groups.all[number];
                group.inner = Inner::Pair(pair);
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
            Inner::Multiple(mut chain) => {
                let followed = match group.partners.is_empty() {
                    true => chain.advance(time, TOLERANCE, &mut Alone),
                    false => {
                        let mut perturbers = OfMultiple {
                            perturbers: Perturbers::of(self, group),
                            seen: vec![],
                        };
                        chain.advance(time, TOLERANCE, &mut perturbers)
                    }
                };
                if followed.is_err() {
                    return Err(ForceError::NotFinite { body: group.slot });
                }
                self.groups.all[number].inner = Inner::Multiple(chain);
            }
        }
        Ok(())
    }

    /// A pair at a time, and impulses on its partners.
    fn followed_pair(&self, group: &Group, mut pair: Pair, time: f64) -> (Pair, Vec<[Vector; 2]>) {
        if group.partners.is_empty() {
            return (pair.at(time), vec![]);
        }
        let gives = |partner: &crate::groups::Partner| partner.zone == Zone::Impulses;
        let scheme = match group.partners.iter().any(gives) {
            true => Scheme::Fourth,
            false => Scheme::Second,
        };
        let mut perturbers = OfPair {
            perturbers: Perturbers::of(self, group),
            gm: [group.gm[0], group.gm[1]],
            ring: group.ring,
            seen: vec![],
            impulses: vec![[[0.0; 3]; 2]; group.partners.len()],
        };
        pair.advance(time, scheme, group.slowdown, &mut perturbers);
        (pair, perturbers.impulses)
    }
}
