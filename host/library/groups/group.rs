//! A group: members, their motion, and the bodies near it.

use std::f64::consts::TAU;

use super::vector::{add_scaled, difference, dot, scale};
use super::{CAPACITY, Multiple, Pair, Ring, Scales, Vector, about_centre, reduced_mass};

/// Distances are in sizes of the group, for a body of half the mass of the group. A heavier one has the same tide
/// farther away.
const PERTURBS: f64 = 50.0;
/// Within it, a body perturbs the group whatever its mass.
const PERTURBS_AT_LEAST: f64 = 10.0;
/// Margin of the list of perturbers, which is made once a step of the group.
pub(crate) const MARGIN: f64 = 1.2;
/// Within it, reactions to the members go beyond the mean.
const RESOLVED: f64 = 25.0;
/// Within it, reactions do so whatever the mass of the body.
const RESOLVED_AT_LEAST: f64 = 5.0;
/// Within it, a body meets the members one by one.
const CLOSE: f64 = 2.0;
/// Within it, a body meets the members of a multiple one by one.
const CLOSE_TO_MULTIPLE: f64 = 8.0;
/// Within it, bodies become one group.
const UNITED: f64 = 12.0;
/// Within it, they do so whatever their masses.
const UNITED_AT_LEAST: f64 = 3.0;
/// Within it, a body sees the members of a group that perturbs its own group.
pub(crate) const SEEN: f64 = 10.0;
/// Distance of a third body, in sizes, that breaks a wide pair.
const CROWDED: f64 = 4.0;
/// The same for a body of any mass.
const CROWDED_AT_LEAST: f64 = 1.2;
/// Distance of a third body, in sizes, next to which no wide pair is formed.
const CROWDED_BEFORE: f64 = 5.0;
/// Present distance of the members, in the place of the size, where that is less.
const PRESENT: f64 = 1.5;
/// Squared distance, in sizes of a multiple, within which two members are a tight pair.
const TIGHT: f64 = 0.04;
/// Distance of the others, in distances at which they perturb a pair, from which on it is one body of a group.
pub(super) const ALONE: f64 = 1.5;
/// Steps of bodies that meet members one by one, in periods.
const STEPS_OF_A_PERIOD: f64 = 8.0;

/// Part that a body plays for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// It perturbs the members, and sees one body.
    Felt,
    /// It sees the mean of the orbit too.
    Mean,
    /// It sees the mean, and gets the rest as impulses.
    Impulses,
    /// It sees the members one by one.
    Close,
}

/// A body or group that perturbs a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partner {
    /// Slot of the body or group.
    pub(crate) slot: usize,
    /// Part that it plays.
    pub(crate) zone: Zone,
}

/// Motion of the members of a group about their centre of mass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Inner {
    /// Two bodies: members, or [tight](Tight) pairs of members.
    Pair(Pair),
    /// Three members or more.
    Multiple(Box<Multiple>),
}

/// A pair or multiple that is one body for the block time steps.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Slot of the whole: the least of the members' numbers.
    pub(crate) slot: usize,
    /// Numbers of the members. Those of the first body of a pair come first.
    pub(crate) members: Vec<usize>,
    /// Masses, times G, of the two bodies of a pair, or of the members of a multiple.
    pub(crate) gm: Vec<f64>,
    /// Motion of the two bodies of a pair, or of the members of a multiple.
    pub(crate) inner: Inner,
    /// The bodies of a pair that are tight pairs themselves.
    pub(crate) tight: [Option<Tight>; 2],
    /// Factor by which a pair is slowed down.
    pub(crate) slowdown: f64,
    /// Size.
    pub(crate) size: f64,
    /// Period.
    pub(crate) period: f64,
    /// True for a pair that is unbound or too wide, and lasts as long as its members are near each other.
    pub(crate) is_passing: bool,
    /// Mean quadrupole of a pair that lasts.
    pub(crate) ring: Option<Ring>,
    /// Perturbers, in the order of their slots.
    pub(crate) partners: Vec<Partner>,
    /// Least distance of another body, as if all had half the mass of the group.
    pub(crate) nearest_by_tide: f64,
    /// Least distance of another body.
    pub(crate) nearest: f64,
    /// Energy that the pair is owed.
    pub(crate) owed: f64,
    /// True until its first partners are chosen.
    pub(crate) is_new: bool,
}

/// A pair that is one body of another pair. The other body is so far away, also where it is nearest, that it does not
/// perturb this pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tight {
    /// Masses of the members times G.
    pub(crate) gm: [f64; 2],
    /// Motion of the members, which is looked at seldom: its time may lie behind the group's.
    pub(crate) pair: Pair,
}

impl Tight {
    /// Returns whether a body of mass `gm`, times G, that comes no nearer than this leaves the pair as it is.
    pub(crate) fn is_alone(&self, gm: f64, pericentre: f64) -> bool {
        pericentre > ALONE * self.perturbed_within(gm)
    }

    fn perturbed_within(&self, gm: f64) -> f64 {
        perturbs_within(self.pair.size(), gm, self.gm[0] + self.gm[1])
    }
}

/// A few bodies about a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Few {
    /// Number of the bodies.
    pub(crate) count: usize,
    /// Masses times G.
    pub(crate) gm: [f64; CAPACITY],
    /// Positions.
    pub(crate) x: [Vector; CAPACITY],
    /// Velocities.
    pub(crate) v: [Vector; CAPACITY],
}

impl Few {
    /// One body in the middle.
    pub(crate) fn one(gm: f64) -> Self {
        Self {
            count: 1,
            gm: [gm; CAPACITY],
            x: [[0.0; 3]; CAPACITY],
            v: [[0.0; 3]; CAPACITY],
        }
    }

    fn push(&mut self, gm: f64, [x, v]: [Vector; 2]) {
        (self.gm[self.count], self.x[self.count], self.v[self.count]) = (gm, x, v);
        self.count += 1;
    }

    /// Masses times G, and positions.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (f64, Vector)> {
        let both = self.gm.iter().zip(&self.x).take(self.count);
        both.map(|(&gm, &x)| (gm, x))
    }
}

impl Group {
    /// A group of bodies with these numbers, masses times G, positions and velocities, the last two from any origin;
    /// none if they cannot be followed.
    pub(crate) fn new(
        members: Vec<usize>,
        gm: Vec<f64>,
        positions: &[Vector],
        velocities: &[Vector],
        time: f64,
        scales: &Scales,
    ) -> Option<Self> {
        let inner = match *members {
            [_, _] => Inner::Pair(Pair::new(
                gm[0] + gm[1],
                time,
                difference(positions[1], positions[0]),
                difference(velocities[1], velocities[0]),
            )),
            _ => Inner::Multiple(Box::new(Multiple::new(time, &gm, positions, velocities)?)),
        };
        Some(Self::of_bodies(members, gm, inner, [None; 2], scales))
    }

    /// A group of members whose motion is known.
    pub(crate) fn of_bodies(
        members: Vec<usize>,
        gm: Vec<f64>,
        inner: Inner,
        tight: [Option<Tight>; 2],
        scales: &Scales,
    ) -> Self {
        let mut group = Self {
            slot: members.iter().copied().min().unwrap_or_default(),
            members,
            gm,
            inner,
            tight,
            slowdown: 1.0,
            size: 0.0,
            period: 0.0,
            is_passing: false,
            ring: None,
            partners: vec![],
            nearest_by_tide: f64::INFINITY,
            nearest: f64::INFINITY,
            owed: 0.0,
            is_new: true,
        };
        group.describe(scales);
        group
    }

    /// The two bodies of a pair as they are now: their members, and the tight pairs among them.
    pub(crate) fn bodies_of_pair(&self) -> [(Vec<usize>, Option<Tight>); 2] {
        let tight = [0, 1].map(|k| self.tight_now(k));
        let (first, second) = self.members.split_at(1 + usize::from(tight[0].is_some()));
        [(first.to_vec(), tight[0]), (second.to_vec(), tight[1])]
    }

    /// A body of a pair at the time of the group, if it is a tight pair.
    fn tight_now(&self, body: usize) -> Option<Tight> {
        let mut tight = self.tight[body]?;
        tight.pair.jump(self.time());
        Some(tight)
    }

    /// This pair as it could be one body of another pair. None while anything perturbs it.
    pub(crate) fn as_tight(&self) -> Option<Tight> {
        let pair = *self.pair()?;
        let can_be = self.is_at_rest() && !self.is_nested();
        can_be.then_some(Tight {
            gm: [self.gm[0], self.gm[1]],
            pair,
        })
    }

    /// True for a pair of which a body is a tight pair.
    pub(crate) fn is_nested(&self) -> bool {
        self.tight != [None; 2]
    }

    /// Mass times G of all members.
    pub(crate) fn total(&self) -> f64 {
        self.gm.iter().sum()
    }

    /// Time of the members.
    pub(crate) fn time(&self) -> f64 {
        match &self.inner {
            Inner::Pair(pair) => pair.time,
            Inner::Multiple(multiple) => multiple.time(),
        }
    }

    /// Moves the origin of time.
    pub(crate) fn set_time(&mut self, time: f64) {
        self.tight = [0, 1].map(|k| self.tight_now(k));
        for tight in self.tight.iter_mut().flatten() {
            tight.pair.time = time;
        }
        match &mut self.inner {
            Inner::Pair(pair) => pair.time = time,
            Inner::Multiple(multiple) => multiple.set_time(time),
        }
    }

    /// The pair that the group is, if it is one.
    pub(crate) fn pair(&self) -> Option<&Pair> {
        match &self.inner {
            Inner::Pair(pair) => Some(pair),
            Inner::Multiple(_) => None,
        }
    }

    /// Reduced mass of a pair times G.
    pub(crate) fn reduced(&self) -> f64 {
        reduced_mass([self.gm[0], self.gm[1]])
    }

    /// Bodies of a pair with this relative motion.
    fn two_at(&self, pair: &Pair) -> Few {
        let mut few = Few::one(0.0);
        let gm = [self.gm[0], self.gm[1]];
        few.count = 2;
        few.gm[..2].copy_from_slice(&gm);
        few.x[..2].copy_from_slice(&about_centre(gm, pair.position()));
        few.v[..2].copy_from_slice(&about_centre(gm, pair.velocity()));
        few
    }

    /// Bodies of a pair or members of a multiple about the centre of mass, at the time of the group.
    pub(crate) fn few(&self) -> Few {
        match &self.inner {
            Inner::Pair(pair) => self.two_at(pair),
            Inner::Multiple(multiple) => multiple.few(&self.gm),
        }
    }

    /// All members about the centre of mass, at the time of the group.
    pub(crate) fn all(&self) -> Few {
        let few = self.few();
        if !self.is_nested() {
            return few;
        }
        let mut all = Few::one(0.0);
        all.count = 0;
        for body in 0..2 {
            let (x, v) = (few.x[body], few.v[body]);
            match self.tight_now(body) {
                None => all.push(few.gm[body], [x, v]),
                Some(Tight { gm, pair }) => {
                    let [of_x, of_v] =
                        [pair.position(), pair.velocity()].map(|d| about_centre(gm, d));
                    for k in 0..2 {
                        all.push(
                            gm[k],
                            [add_scaled(x, 1.0, of_x[k]), add_scaled(v, 1.0, of_v[k])],
                        );
                    }
                }
            }
        }
        all
    }

    /// Members about the centre of mass, where the group ends. Hard pairs of a multiple have the tides of the others.
    pub(crate) fn into_all(mut self) -> Few {
        if let Inner::Multiple(multiple) = &mut self.inner {
            multiple.resolve_all(&self.gm);
        }
        self.all()
    }

    /// Members about the centre of mass, at a time that is near. Members of a multiple go straight on, a tight
    /// pair among them as a whole.
    pub(crate) fn few_at(&self, time: f64) -> Few {
        let pair = match &self.inner {
            Inner::Pair(pair) => pair,
            Inner::Multiple(_) => {
                let mut few = self.few();
                let since = time - self.time();
                let velocities = self.of_tight_pairs(&few, &few.v);
                for (x, w) in few.x.iter_mut().zip(velocities) {
                    *x = add_scaled(*x, since, w);
                }
                return few;
            }
        };
        self.two_at(&pair.slowed_at(time, self.slowdown))
    }

    /// Vectors of members, such as velocities, of which the two of a tight pair among several have their mean: others
    /// do not follow its orbit. Their sum, weighted with the masses, stays as it is: two are a pair if each is the nearest
    /// of the other.
    pub(crate) fn of_tight_pairs(
        &self,
        few: &Few,
        vectors: &[Vector; CAPACITY],
    ) -> [Vector; CAPACITY] {
        let mut means = *vectors;
        if self.pair().is_some() {
            return means;
        }
        let limit = TIGHT * self.size * self.size;
        let nearest: [Option<usize>; CAPACITY] = std::array::from_fn(|i| {
            let mut nearest = (limit, None);
            for k in (0..few.count).filter(|&k| k != i && i < few.count) {
                let d = difference(few.x[k], few.x[i]);
                if dot(d, d) < nearest.0 {
                    nearest = (dot(d, d), Some(k));
                }
            }
            nearest.1
        });
        for (i, mean) in means.iter_mut().enumerate() {
            let other = nearest[i].filter(|&k| nearest[k] == Some(i));
            if let Some(k) = other {
                let (mi, mk) = (few.gm[i], few.gm[k]);
                let sum = add_scaled(scale(mi, vectors[i]), mk, vectors[k]);
                *mean = scale(1.0 / (mi + mk), sum);
            }
        }
        means
    }

    /// Inner energy times G.
    pub(crate) fn energy(&self) -> f64 {
        match &self.inner {
            Inner::Pair(pair) => {
                let of_tight = |tight: &Tight| reduced_mass(tight.gm) * tight.pair.energy();
                let of_tight: f64 = self.tight.iter().flatten().map(of_tight).sum();
                self.reduced() * pair.energy() + of_tight
            }
            Inner::Multiple(multiple) => multiple.energy(&self.gm),
        }
    }

    /// Finds size, period and kind.
    pub(crate) fn describe(&mut self, scales: &Scales) {
        let total = self.total();
        let period = |r: f64| TAU * (r * r * r / total).sqrt();
        match &self.inner {
            Inner::Pair(pair) => {
                let r = pair.radius();
                (self.size, self.period) = (pair.size(), pair.period());
                self.is_passing = self.size > scales.kept(total) || self.size.is_nan();
                if self.is_passing {
                    self.size = r.max(2.0 * scales.fly_by(total));
                }
                if pair.beta <= 0.0 {
                    self.period = period(r);
                }
            }
            Inner::Multiple(multiple) => {
                self.size = multiple.size();
                self.period = period(self.size);
            }
        }
    }

    /// Finds the mean quadrupole, if it has one.
    pub(crate) fn set_ring(&mut self) {
        let lasting = self.pair().filter(|_| !self.is_passing);
        self.ring = lasting.and_then(|pair| Ring::of_members(pair, [self.gm[0], self.gm[1]]));
    }

    /// True for a pair that stays as it is as long as nobody perturbs it: it need not be followed.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.pair().is_some()
            && !self.is_new
            && !self.is_passing
            && self.partners.is_empty()
            && self.slowdown == 1.0
            && self.owed == 0.0
    }

    /// Zone of a partner, if it is one.
    pub(crate) fn zone_of(&self, slot: usize) -> Option<Zone> {
        zone_in(&self.partners, slot)
    }

    /// Returns whether a slot meets the members one by one.
    pub(crate) fn is_close(&self, slot: usize) -> bool {
        self.zone_of(slot) == Some(Zone::Close)
    }

    /// Puts other slots in the place of some, of which one is a partner: in the zone of the first that is.
    pub(crate) fn replace_partners(&mut self, gone: &[usize], others: &[usize]) {
        let Some(zone) = gone.iter().find_map(|&slot| self.zone_of(slot)) else {
            return;
        };
        (self.partners).retain(|partner| !gone.contains(&partner.slot));
        for &slot in others.iter().filter(|&&other| other != self.slot) {
            let place = self.partners.partition_point(|p| p.slot < slot);
            if self.partners.get(place).is_none_or(|p| p.slot != slot) {
                self.partners.insert(place, Partner { slot, zone });
            }
        }
    }

    /// Distance at which a body has the tide that a body of half the group's mass has at 1. It follows from the cube
    /// root of the body's mass times G.
    pub(crate) fn reach_of_tide(&self) -> impl Fn(f64) -> f64 + use<> {
        let of_one = reach_of_tide(1.0 / self.total());
        move |root| of_one * root
    }

    /// Distance within which a body is a perturber, by the cube root of its mass times G, with the margin.
    pub(crate) fn perturbed_by(&self) -> impl Fn(f64) -> f64 + use<> {
        let (size, reach) = (self.size, self.reach_of_tide());
        move |root| MARGIN * size * PERTURBS_AT_LEAST.max(PERTURBS * reach(root))
    }

    /// Distance within which a body and the group are to become one.
    pub(crate) fn united_within(&self, gm: f64) -> f64 {
        united_within(self.size, gm, self.total())
    }

    /// Zone of a perturber at a distance, which is a group or a body, with a tide of this reach.
    pub(crate) fn zone(&self, reach: f64, distance: f64, group: Option<&Self>) -> Zone {
        let is_pair = self.pair().is_some();
        if is_pair && distance >= self.size * RESOLVED_AT_LEAST.max(RESOLVED * reach) {
            return match self.ring {
                Some(_) => Zone::Mean,
                None => Zone::Felt,
            };
        }
        let close = match group {
            None => self.size * CLOSE.max(CLOSE * reach),
            Some(other) => match other.pair() {
                Some(_) => CLOSE * self.size.max(other.size),
                None => CLOSE_TO_MULTIPLE * other.size,
            },
        };
        match self.ring {
            Some(_) if distance > close => Zone::Impulses,
            _ => Zone::Close,
        }
    }

    /// Energy, times G, of the tide of a body at a distance on the members. Several have it as if they were two of the same
    /// mass.
    pub(crate) fn tide(&self, gm: f64, distance: f64) -> f64 {
        let reduced = match self.inner {
            Inner::Pair(_) => self.reduced(),
            Inner::Multiple(_) => self.total() / 4.0,
        };
        gm * reduced * self.size * self.size / (distance * distance * distance)
    }

    /// Longest step of bodies at a distance that meet the members one by one.
    pub(crate) fn step_at(&self, distance: f64) -> f64 {
        let slowed = match self.inner {
            Inner::Pair(_) => self.slowdown * self.period,
            Inner::Multiple(_) => self.period,
        };
        slowed / STEPS_OF_A_PERIOD * (distance / (UNITED * self.size)).min(1.0)
    }

    /// Returns whether a pair is wide, and others are so near that it is no pair.
    pub(crate) fn is_crowded(&self, scales: &Scales) -> bool {
        let Inner::Pair(pair) = &self.inner else {
            return false;
        };
        let near = self.size.min(PRESENT * pair.radius());
        let recedes = pair.u.iter().zip(&pair.p).map(|(u, p)| u * p).sum::<f64>() > 0.0;
        self.size > scales.wide([self.gm[0], self.gm[1]])
            && recedes
            && (self.nearest_by_tide < CROWDED * near || self.nearest < CROWDED_AT_LEAST * near)
    }

    /// Returns whether the members of a pair are to be single again.
    pub(crate) fn is_over(&self, scales: &Scales) -> bool {
        let Inner::Pair(pair) = &self.inner else {
            return false;
        };
        let is_perturbed = |k: usize| {
            let limit = self.tight[k].map(|tight| tight.perturbed_within(self.gm[1 - k]));
            limit.is_some_and(|limit| pair.pericentre() < limit)
        };
        if self.is_crowded(scales) || is_perturbed(0) || is_perturbed(1) {
            return true;
        }
        let recedes = dot(pair.position(), pair.velocity()) > 0.0;
        self.is_passing && recedes && pair.radius() >= 2.0 * scales.fly_by(self.total())
    }
}

/// Zone of the partner in a slot, if it is in a list in the order of slots.
pub(crate) fn zone_in(partners: &[Partner], slot: usize) -> Option<Zone> {
    let place = partners.binary_search_by_key(&slot, |p| p.slot).ok()?;
    Some(partners[place].zone)
}

/// Distance at which a body of a mass, as a part of the group's, has the tide that half the group's mass has at 1.
fn reach_of_tide(mass: f64) -> f64 {
    (2.0 * mass).cbrt()
}

/// Distance within which a body of mass `gm` keeps a pair of this size and mass `total` from being one body of a
/// multiple. A light body is no perturber, but moves otherwise about two masses than about one.
pub(super) fn perturbs_within(size: f64, gm: f64, total: f64) -> f64 {
    size * PERTURBS * reach_of_tide(gm / total).max(1.0)
}

/// Distance within which a body of mass `gm` and a group of this size and mass `total` become one.
pub(crate) fn united_within(size: f64, gm: f64, total: f64) -> f64 {
    size * UNITED_AT_LEAST.max(UNITED * reach_of_tide(gm / total))
}

/// Distance of a third body of mass `gm`, times G, within which a wide pair of mass `total` is not formed.
pub(crate) fn crowding(size: f64, present: f64, gm: f64, total: f64) -> f64 {
    let near = size.min(PRESENT * present);
    near * CROWDED_AT_LEAST.max(CROWDED_BEFORE * reach_of_tide(gm / total))
}
