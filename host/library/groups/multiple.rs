//! Three to eight bodies about their centre of mass: a [chain](Chain), in which a hard pair is one body.
//!
//! A pair is hard if it is small next to its distance from all others of the multiple. It goes on its Kepler orbit, and
//! the chain has one body in its place. A chain takes some hundred forces for each orbit of its closest pair. Where
//! this pair is a million times smaller than the multiple, this takes seconds, and loses as much energy as the other
//! bodies have. When another comes near, a hard pair becomes two bodies of the chain again, until the other has gone. Both
//! changes keep the energy of the multiple: the pair has what it had by the tides of the others.

use super::group::{ALONE, perturbs_within};
use super::vector::{add_scaled, difference, dot, norm, scale};
use super::{Chain, External, Few, Pair, TOLERANCE, Vector, about_centre, reduced_mass};

/// Distance of an approaching body, in the same lengths, below which a hard pair becomes two bodies. A step that would bring
/// the other near from farther away is taken in parts: a pair that is two bodies takes hundreds of forces for each of its
/// orbits, of which there may be millions until the other has come.
const APPROACH: f64 = 3.0;

/// Changes of a pair's energy after which it has what is wanted: each leaves the square of what was missing.
const CHANGES: usize = 3;

/// A multiple that no step advances within the tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stuck;

/// A body of the chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Body {
    /// A member.
    One(usize),
    /// Two members.
    Hard(HardPair),
}

/// Two members that are one body of the chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HardPair {
    /// Numbers of the members.
    pub(super) members: [usize; 2],
    /// Motion of the second about the first, at the time of the chain.
    pub(super) pair: Pair,
}

impl Body {
    /// Number of its first member.
    fn first(&self) -> usize {
        match self {
            Self::One(member) => *member,
            Self::Hard(hard) => hard.members[0],
        }
    }

    /// Numbers of its members.
    pub(super) fn members(&self) -> &[usize] {
        match self {
            Self::One(member) => std::slice::from_ref(member),
            Self::Hard(hard) => &hard.members,
        }
    }

    /// Mass times G, with masses times G of the members.
    pub(super) fn gm(&self, gm: &[f64]) -> f64 {
        self.members().iter().map(|&k| gm[k]).sum()
    }
}

/// Three to eight bodies about their centre of mass.
///
/// All fields are state. Masses of the members, times G, are given to the functions that need them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Multiple {
    pub(super) chain: Chain,
    /// Bodies of the chain, in the order of their first members.
    pub(super) bodies: Vec<Body>,
}

impl Multiple {
    /// A multiple of members with these masses (times G). None where [no chain](Chain::new) has them.
    pub(crate) fn new(time: f64, gm: &[f64], x: &[Vector], v: &[Vector]) -> Option<Self> {
        let mut multiple = Self {
            chain: Chain::new(time, gm, x, v)?,
            bodies: (0..gm.len()).map(Body::One).collect(),
        };
        multiple.find_hard_pairs(gm);
        Some(multiple)
    }

    /// Time of the members.
    pub(crate) fn time(&self) -> f64 {
        self.chain.time
    }

    /// Moves the origin of time.
    pub(crate) fn set_time(&mut self, time: f64) {
        self.chain.time = time;
        for body in &mut self.bodies {
            if let Body::Hard(hard) = body {
                hard.pair.time = time;
            }
        }
    }

    /// Largest distance of two bodies of the chain.
    pub(crate) fn size(&self) -> f64 {
        self.chain.size()
    }

    /// Inner energy times G. A hard pair has no tide here.
    pub(crate) fn energy(&self, gm: &[f64]) -> f64 {
        let of_pairs: f64 = (self.hard_pairs())
            .map(|hard| hard.reduced(gm) * hard.pair.energy())
            .sum();
        self.chain.energy() + of_pairs
    }

    /// Hard pairs that are one body.
    pub(super) fn hard_pairs(&self) -> impl Iterator<Item = &HardPair> {
        self.bodies.iter().filter_map(|body| match body {
            Body::One(_) => None,
            Body::Hard(hard) => Some(hard),
        })
    }

    /// Motion of the second of these members about the first, if they are a hard pair.
    pub(crate) fn hard_pair(&self, members: [usize; 2]) -> Option<&Pair> {
        let mut of_members = self.hard_pairs().filter(|hard| hard.members == members);
        of_members.next().map(|hard| &hard.pair)
    }

    /// Members about the centre of mass.
    pub(crate) fn few(&self, gm: &[f64]) -> Few {
        let mut few = Few::one(0.0);
        few.count = gm.len();
        few.gm[..few.count].copy_from_slice(gm);
        let (x, v) = (self.chain.positions(), self.chain.velocities());
        for (b, body) in self.bodies.iter().enumerate() {
            for (member, [place, moving]) in body.about(gm) {
                few.x[member] = add_scaled(x[b], 1.0, place);
                few.v[member] = add_scaled(v[b], 1.0, moving);
            }
        }
        few
    }

    /// Numbers of the members of two parts: the chain is cut at its longest link.
    pub(crate) fn parts(&self) -> [Vec<usize>; 2] {
        let (left, right) = self.chain.order().split_at(self.chain.longest_link() + 1);
        [left, right].map(|part| {
            let members = part.iter().flat_map(|&b| self.bodies[b].members());
            members.copied().collect()
        })
    }

    /// Moves to a later or earlier time.
    ///
    /// # Errors
    ///
    /// The multiple is stuck if a step of the chain does not converge however short it is.
    pub(crate) fn advance(
        &mut self,
        end: f64,
        gm: &[f64],
        external: &mut impl External,
    ) -> Result<(), Stuck> {
        // Time at which bodies of the chain became others.
        let mut changed = f64::NAN;
        loop {
            let (mut near, mut are_alone) = (None, false);
            let goes_on = |before: &Chain, after: &Chain| {
                near = with_others_near(&self.bodies, gm, [before, after]);
                are_alone = near.is_none()
                    && before.time != changed
                    && a_hard_pair(&self.bodies, gm, before, Isolation::ForLong).is_some();
                near.is_none() && !are_alone
            };
            let moved = self.chain.advance(end, TOLERANCE, external, goes_on);
            moved.map_err(|_| Stuck)?;
            for body in &mut self.bodies {
                if let Body::Hard(hard) = body {
                    hard.pair.jump(self.chain.time);
                }
            }
            match near {
                Some((_, How::InOneStep)) => self.chain.step *= 0.5,
                Some((b, How::Slowly)) => {
                    changed = self.chain.time;
                    self.resolve(b, gm).ok_or(Stuck)?;
                }
                None if are_alone => {
                    // Once at a time, also where the two cannot be made one body.
                    changed = self.chain.time;
                    self.find_hard_pairs(gm);
                }
                None => break,
            }
        }
        self.find_hard_pairs(gm);
        Ok(())
    }

    /// Makes two bodies of each hard pair, which has the tides of the others then.
    pub(crate) fn resolve_all(&mut self, gm: &[f64]) {
        let is_hard = |body: &Body| matches!(body, Body::Hard(_));
        while let Some(b) = self.bodies.iter().position(is_hard) {
            if self.resolve(b, gm).is_none() {
                return; // two bodies at one place: whoever makes a group of them finds that
            }
        }
    }

    /// Makes two bodies of a hard pair. None where two bodies are at one place.
    fn resolve(&mut self, b: usize, gm: &[f64]) -> Option<()> {
        let Body::Hard(hard) = self.bodies[b] else {
            return Some(());
        };
        let wanted = self.chain.energy() + hard.reduced(gm) * hard.pair.energy();
        let [one, other] = hard.members;
        let mut bodies = self.bodies.clone();
        bodies[b] = Body::One(one);
        bodies.push(Body::One(other));
        bodies.sort_by_key(Body::first);
        let mut resolved = self.clone();
        for _ in 0..CHANGES {
            let chain = resolved.chain_of(&bodies, gm)?;
            let missing = (wanted - chain.energy()) / hard.reduced(gm);
            let Body::Hard(hard) = &mut resolved.bodies[b] else {
                return None;
            };
            hard.pair.shift_energy(missing);
        }
        self.chain = resolved.chain_of(&bodies, gm)?;
        self.bodies = bodies;
        Some(())
    }

    /// The chain of these bodies, which are the bodies of this multiple or parts of them.
    fn chain_of(&self, bodies: &[Body], gm: &[f64]) -> Option<Chain> {
        let few = self.few(gm);
        let masses: Vec<f64> = bodies.iter().map(|body| body.gm(gm)).collect();
        let [x, v] = [&few.x, &few.v].map(|vectors| {
            let mean = |body: &Body| {
                let weighted = |sum: Vector, &k: &usize| add_scaled(sum, gm[k], vectors[k]);
                let sum = body.members().iter().fold([0.0; 3], weighted);
                scale(1.0 / body.gm(gm), sum)
            };
            bodies.iter().map(mean).collect::<Vec<Vector>>()
        });
        Chain::new(self.chain.time, &masses, &x, &v)
    }

    /// Makes one body of each hard pair that is far from the others.
    fn find_hard_pairs(&mut self, gm: &[f64]) {
        while self.bodies.len() > 2 {
            let found = a_hard_pair(&self.bodies, gm, &self.chain, Isolation::Now);
            let Some((i, k, pair)) = found else {
                return;
            };
            let [Body::One(one), Body::One(other)] = [self.bodies[i], self.bodies[k]] else {
                return;
            };
            let mut hard = HardPair {
                members: [one, other],
                pair,
            };
            let mut bodies = self.bodies.clone();
            bodies[i] = Body::Hard(hard);
            bodies.remove(k);
            let Some(chain) = self.chain_of(&bodies, gm) else {
                return;
            };
            let left = self.chain.energy() - chain.energy();
            hard.pair
                .shift_energy(left / hard.reduced(gm) - hard.pair.energy());
            bodies[i] = Body::Hard(hard);
            (self.chain, self.bodies) = (chain, bodies);
        }
    }
}

/// For how long a hard pair is alone.
#[derive(Clone, Copy, PartialEq)]
enum Isolation {
    /// No other is near.
    Now,
    /// No other is near, or comes near soon.
    ForLong,
}

/// Two bodies of a chain that are a hard pair, alone, and their motion.
fn a_hard_pair(
    bodies: &[Body],
    gm: &[f64],
    chain: &Chain,
    isolation: Isolation,
) -> Option<(usize, usize, Pair)> {
    let is_one = |b: usize| matches!(bodies[b], Body::One(_));
    if bodies.len() < 3 || (0..bodies.len()).filter(|&b| is_one(b)).count() < 2 {
        return None;
    }
    let (x, v) = (chain.positions(), chain.velocities());
    let gm_of = |b: usize| bodies[b].gm(gm);
    for i in (0..bodies.len()).filter(|&b| is_one(b)) {
        for k in (i + 1..bodies.len()).filter(|&b| is_one(b)) {
            let (d, u) = (difference(x[k], x[i]), difference(v[k], v[i]));
            let total = gm_of(i) + gm_of(k);
            let pair = Pair::new(total, chain.time, d, u);
            let share = gm_of(k) / total;
            let (centre, motion) = (add_scaled(x[i], share, d), add_scaled(v[i], share, u));
            let is_alone = |other: usize| {
                other == i || other == k || {
                    let limit = perturbs_within(pair.size(), gm_of(other), total);
                    let [d, u] = [difference(x[other], centre), difference(v[other], motion)];
                    let stays = || norm(d) > APPROACH * limit || dot(d, u) > 0.0;
                    norm(d) > ALONE * limit && (isolation == Isolation::Now || stays())
                }
            };
            if pair.beta > 0.0 && (0..bodies.len()).all(is_alone) {
                return Some((i, k, pair));
            }
        }
    }
    None
}

impl HardPair {
    /// Reduced mass times G.
    fn reduced(&self, gm: &[f64]) -> f64 {
        reduced_mass(self.members.map(|k| gm[k]))
    }
}

impl Body {
    /// Positions and velocities of the members from the body's centre of mass.
    fn about(&self, gm: &[f64]) -> impl Iterator<Item = (usize, [Vector; 2])> {
        let of_members = match self {
            Self::One(member) => [Some((*member, [[0.0; 3]; 2])), None],
            Self::Hard(hard) => {
                let gm = hard.members.map(|k| gm[k]);
                let x = about_centre(gm, hard.pair.position());
                let v = about_centre(gm, hard.pair.velocity());
                [0, 1].map(|k| Some((hard.members[k], [x[k], v[k]])))
            }
        };
        of_members.into_iter().flatten()
    }
}

/// How another body comes near a hard pair.
#[derive(Clone, Copy)]
enum How {
    /// From far away, in one step of the chain.
    InOneStep,
    /// It was not far before the step.
    Slowly,
}

/// Number of a hard pair in a chain. Another body is near it after a step, or was near it on the way.
fn with_others_near(
    bodies: &[Body],
    gm: &[f64],
    [before, after]: [&Chain; 2],
) -> Option<(usize, How)> {
    let is_hard = |&b: &usize| matches!(bodies[b], Body::Hard(_));
    let mut hard = (0..bodies.len()).filter(is_hard).peekable();
    hard.peek()?;
    let states = [before, after].map(|chain| (chain.positions(), chain.velocities()));
    let near = |b: usize| {
        let Body::Hard(HardPair { pair, .. }) = &bodies[b] else {
            return None;
        };
        let mut near = None;
        for other in (0..bodies.len()).filter(|&other| other != b) {
            let limit = perturbs_within(pair.size(), bodies[other].gm(gm), pair.mu);
            let [was, is] =
                states.map(|(x, v)| [difference(x[other], x[b]), difference(v[other], v[b])]);
            let [d, u] = is;
            // In a short part of its way a body comes not much nearer than it is at the ends.
            let is_past = dot(was[0], was[1]) < 0.0
                && dot(d, u) >= 0.0
                && norm(difference(d, was[0])) > 0.5 * norm(d);
            let is_near = norm(d) < limit
                || is_past && {
                    let total = pair.mu + bodies[other].gm(gm);
                    Pair::new(total, after.time, d, u).pericentre() < limit
                };
            if is_near && norm(was[0]) < APPROACH * limit {
                return Some(How::Slowly);
            }
            if is_near {
                near = Some(How::InOneStep);
            }
        }
        near
    };
    hard.find_map(|b| Some((b, near(b)?)))
}

#[cfg(test)]
mod tests;
