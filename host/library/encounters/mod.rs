//! Encounters: collisions of bodies with radii, and bodies that escape.
//!
//! After each step every pair is looked at whose paths may have come close in it. A body's path in a step is
//! the cubic through its positions and velocities at both ends; two bodies collide where the distance of
//! these falls to the sum of their radii, wherever in the step that is. Forces do not know of radii.
//!
//! In block time steps, a body's path in a span is made of the cubics of all steps that it takes in it, and
//! the span takes the place of the step. Bodies that are to change where they meet must not go on to the
//! end of the span: it is taken again, and ends just after the first contact.
//!
//! Mergers keep mass, momentum and the volume of both bodies, and the id of the heavier one. What they and
//! escapers take of the conserved quantities is counted as [`Lost`](crate::diagnostics::Lost), so that drifts still judge the run.

mod contact;
mod search;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::bodies::{Bodies, Body};
use crate::vectors::{difference, distance, dot};

use contact::Motion;

/// Consequence of a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCollision {
    /// Nothing but an [`Event`]; bodies pass through each other.
    Log,
    /// The run stops after the step.
    Stop,
    /// One body is left.
    Merge,
    /// Elastic: the velocities along the line between the bodies are exchanged as of hard spheres.
    Bounce,
}

impl OnCollision {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Log, Self::Stop, Self::Merge, Self::Bounce];

    /// Name, as logs and options have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Stop => "stop",
            Self::Merge => "merge",
            Self::Bounce => "bounce",
        }
    }
}

/// Consequence for a body that goes beyond the radius of escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnEscape {
    /// Nothing but an [`Event`].
    Log,
    /// The run stops after the step.
    Stop,
    /// The body is taken away.
    Remove,
}

impl OnEscape {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Log, Self::Stop, Self::Remove];

    /// Name, as logs and options have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Stop => "stop",
            Self::Remove => "remove",
        }
    }
}

/// Encounters to look for.
#[derive(Clone, Debug, PartialEq)]
pub struct Encounters {
    /// A radius for each body, in the unit of length; bodies collide where theirs are not both 0.
    pub radii: Vec<f64>,
    /// Consequence of a collision.
    pub on_collision: OnCollision,
    /// Distance from the centre of mass at which bodies have escaped, and what follows.
    pub escape: Option<(f64, OnEscape)>,
}

/// Setting of encounters that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EncounterFault {
    /// As many radii as there are bodies are needed.
    #[error("there are {radii} radii for {bodies} bodies: give one for all, or one for each")]
    Number {
        /// Number of radii.
        radii: usize,
        /// Number of bodies.
        bodies: usize,
    },
    /// A radius that is negative or no number.
    #[error("the radius of body {body} must be ≥ 0 and finite, got {radius}")]
    Radius {
        /// Index of the body.
        body: usize,
        /// Radius that was given.
        radius: f64,
    },
    /// A radius as large as the whole system.
    #[error(
        "the radius {radius} of body {body} contains all bodies, which reach {extent} from their \
         centre: is its unit another?"
    )]
    Contains {
        /// Index of the body.
        body: usize,
        /// Radius that was given.
        radius: f64,
        /// The farthest body's distance from the centre of mass.
        extent: f64,
    },
    /// A radius of escape that is not positive.
    #[error("the radius of escape must be > 0 and finite, got {0}")]
    Escape(f64),
    /// A radius of escape beyond which bodies are already.
    #[error(
        "body {body} is beyond the radius of escape {radius} already, {distance} from the centre of mass"
    )]
    Escaped {
        /// Index of the body.
        body: usize,
        /// The radius of escape.
        radius: f64,
        /// Distance of the body from the centre of mass.
        distance: f64,
    },
    /// A backend that keeps the bodies it was made of.
    #[error(
        "bodies do not merge, bounce or disappear here: choose the `device` cpu, without the field 1pn and \
         independent systems, or only log collisions and escapes"
    )]
    FixedBodies,
    /// Steps of single bodies, which are not kept there.
    #[error(
        "collisions in block time steps are looked for on the CPU in one process alone: choose the \
         `device` cpu, or leave out `block_steps`"
    )]
    BlockSteps,
    /// Independent systems, whose bodies do not meet those of others.
    #[error("encounters are those of one system, and these are {0} independent ones")]
    Systems(usize),
    /// Two bodies that overlap at the beginning.
    #[error(
        "bodies {0} and {1} overlap at the beginning: their distance is {2}, less than the sum of their radii"
    )]
    Overlap(usize, usize, f64),
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Steps done at the end of the step that it happened in.
    pub step: u64,
    /// Time at which it happened.
    pub time: f64,
    /// Kind of event, and the bodies that it was about.
    pub what: Happening,
}

/// Kind of event, and the bodies that it was about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Happening {
    /// Two bodies met.
    Collision {
        /// Ids of both; the first stays in a merger.
        ids: [u64; 2],
        /// Masses of the bodies.
        masses: [f64; 2],
        /// The point where they met.
        position: [f64; 3],
        /// Relative speed there.
        speed: f64,
        /// Consequence.
        outcome: OnCollision,
    },
    /// A body went beyond the radius of escape.
    Escape {
        /// Id of the body.
        id: u64,
        /// Mass of the body.
        mass: f64,
        /// Position after the step.
        position: [f64; 3],
        /// Speed, relative to the centre of mass.
        speed: f64,
        /// Consequence.
        outcome: OnEscape,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.time;
        match self.what {
            Happening::Collision { ids: [a, b], .. } => {
                write!(f, "bodies with ids {a} and {b} collided at time {time}")
            }
            Happening::Escape { id, .. } => {
                write!(f, "the body with id {id} escaped at time {time}")
            }
        }
    }
}

/// A step that a body takes by itself, in a span that all bodies share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepOfBody {
    /// Index of the body.
    pub body: usize,
    /// Shares of the span at which it begins and ends.
    pub shares: [f64; 2],
    /// Position and velocity at its beginning.
    pub from: [[f64; 3]; 2],
    /// Position and velocity at its end.
    pub to: [[f64; 3]; 2],
}

/// Paths of bodies in a step.
pub(crate) struct Step<'a> {
    /// The bodies at its beginning.
    pub(crate) before: &'a Bodies,
    /// The bodies at its end.
    pub(crate) after: &'a Bodies,
    /// The steps of single bodies that it is made of, if it is.
    pub(crate) parts: Option<&'a [StepOfBody]>,
    /// Length.
    pub(crate) dt: f64,
}

impl Step<'_> {
    fn motion(&self) -> Motion {
        match self.parts {
            None => Motion::of(self.before, self.after, self.dt),
            Some(parts) => Motion::of_steps(self.before.len(), parts, self.dt),
        }
    }
}

/// Part of the sum of two radii that bodies may move on where they meet, before they merge or bounce in block
/// time steps.
const OVERLAP: f64 = 0.01;

/// Bodies after a step's encounters, if these changed any.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<Event>,
    /// The bodies as they are now.
    pub(crate) changed: Option<Bodies>,
    /// Indices of bodies that are gone, ascending.
    pub(crate) removed: Vec<usize>,
    /// The first that stops the run, if one does.
    pub(crate) stopped_by: Option<Event>,
}

impl Encounters {
    /// None but what is set further: no radii, and collisions are logged.
    pub fn none() -> Self {
        Self {
            radii: vec![],
            on_collision: OnCollision::Log,
            escape: None,
        }
    }

    /// Returns whether encounters change the number of bodies or their velocities.
    pub fn changes_bodies(&self) -> bool {
        let by_escape = matches!(self.escape, Some((_, OnEscape::Remove)));
        matches!(self.on_collision, OnCollision::Merge | OnCollision::Bounce) || by_escape
    }

    /// Checks them for the bodies at the beginning of a run.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn check(&self, bodies: &Bodies) -> Result<(), EncounterFault> {
        let (n, radii) = (bodies.len(), &self.radii);
        if radii.len() != n && !radii.is_empty() {
            return Err(EncounterFault::Number {
                radii: radii.len(),
                bodies: n,
            });
        }
        let centre = bodies.centre_of_mass().unwrap_or_default();
        let from_centre = |body: Body| distance(body.position, centre);
        let extent = bodies.iter().map(from_centre).fold(0.0, f64::max);
        for (body, &radius) in radii.iter().enumerate() {
            if !(radius.is_finite() && radius >= 0.0) {
                return Err(EncounterFault::Radius { body, radius });
            }
            if n > 1 && radius > 0.0 && radius >= extent {
                return Err(EncounterFault::Contains {
                    body,
                    radius,
                    extent,
                });
            }
        }
        if let Some((radius, _)) = self.escape {
            if !(radius.is_finite() && radius > 0.0) {
                return Err(EncounterFault::Escape(radius));
            }
            let beyond = bodies.iter().map(from_centre).enumerate();
            let mut beyond = beyond.filter(|(_, distance)| *distance > radius);
            if let Some((body, distance)) = beyond.next() {
                return Err(EncounterFault::Escaped {
                    body,
                    radius,
                    distance,
                });
            }
        }
        let rest = Motion::of(bodies, bodies, 0.0);
        let overlaps = search::close_pairs(&rest, radii)
            .into_iter()
            .find(|&(i, j)| {
                distance(bodies.body(i).position, bodies.body(j).position) < radii[i] + radii[j]
            });
        match overlaps {
            Some((i, j)) => {
                let apart = distance(bodies.body(i).position, bodies.body(j).position);
                Err(EncounterFault::Overlap(i, j, apart))
            }
            None => Ok(()),
        }
    }

    /// Returns whether bodies can collide: not all have a radius of 0.
    pub fn may_collide(&self) -> bool {
        self.radii.iter().any(|&radius| radius > 0.0)
    }

    /// Returns whether bodies change where they meet.
    fn acts(&self) -> bool {
        matches!(self.on_collision, OnCollision::Merge | OnCollision::Bounce)
    }

    /// How long a step should be that ended too late for what follows from its first collision; nothing where
    /// it ended soon enough.
    pub(crate) fn shorter(&self, step: &Step<'_>) -> Option<f64> {
        if !self.acts() || !self.may_collide() {
            return None;
        }
        let motion = step.motion();
        let (share, i, j) = self.contacts(&motion).first().copied()?;
        let [(_, va), (_, vb)] = [i, j].map(|k| motion.at(k, share));
        let room = OVERLAP * (self.radii[i] + self.radii[j]) / distance(va, vb);
        let [contact, room] = [share * step.dt, room.copysign(step.dt)];
        let shorter = contact + room;
        // Twice, for the bodies take other steps in a shorter span and meet at a slightly other time.
        (step.dt.abs() > (shorter + room).abs()).then_some(shorter)
    }

    /// Returns what happened in a step that led to `time`, and after `number` steps.
    pub(crate) fn look(&mut self, step: &Step<'_>, (number, time): (u64, f64)) -> Outcome {
        let Step {
            before, after, dt, ..
        } = *step;
        let mut outcome = Outcome::default();
        let mut bodies = after.clone();
        let mut gone = vec![false; bodies.len()];
        if self.may_collide() {
            let motion = step.motion();
            let contacts = self.contacts(&motion);
            self.collide(&motion, contacts, &mut bodies, &mut gone, |share, what| {
                outcome.events.push(Event {
                    step: number,
                    time: time - dt * (1.0 - share),
                    what,
                });
            });
        }
        self.escapes(before, &mut bodies, &mut gone, |what| {
            let step = number;
            outcome.events.push(Event { step, time, what });
        });
        let stops = |event: &&Event| match event.what {
            Happening::Collision { outcome, .. } => outcome == OnCollision::Stop,
            Happening::Escape { outcome, .. } => outcome == OnEscape::Stop,
        };
        outcome.stopped_by = outcome.events.iter().find(stops).copied();
        outcome.removed = (0..gone.len()).filter(|&i| gone[i]).collect();
        if !outcome.removed.is_empty() {
            bodies = (0..gone.len())
                .filter(|&i| !gone[i])
                .map(|i| bodies.body(i))
                .collect();
            let mut of_body = gone.iter();
            self.radii
                .retain(|_| !of_body.next().copied().unwrap_or(false));
        }
        outcome.changed = (bodies != *after).then_some(bodies);
        outcome
    }

    /// Contacts of a step, as the share of it after which they happen and both bodies, in order.
    fn contacts(&self, motion: &Motion) -> Vec<(f64, usize, usize)> {
        let pairs = search::close_pairs(motion, &self.radii);
        let contacts = pairs.into_iter().flat_map(|(i, j)| {
            let contacts = motion.contacts(i, j, self.radii[i] + self.radii[j]);
            // Bodies within each other that are left as they are have been told of.
            let told = contacts
                .into_iter()
                .filter(|(_, from_outside)| *from_outside || self.acts());
            told.map(move |(share, _)| (share, i, j))
        });
        let mut contacts: Vec<_> = contacts.collect();
        contacts.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        contacts
    }

    fn collide(
        &mut self,
        motion: &Motion,
        contacts: Vec<(f64, usize, usize)>,
        bodies: &mut Bodies,
        gone: &mut [bool],
        mut tell: impl FnMut(f64, Happening),
    ) {
        let mut became: Vec<usize> = (0..bodies.len()).collect();
        let mut bounced = vec![false; bodies.len()];
        for (share, i, j) in contacts {
            let (mut a, mut b) = (i, j);
            while became[a] != a {
                a = became[a];
            }
            while became[b] != b {
                b = became[b];
            }
            if a == b || bounced[a] || bounced[b] {
                continue; // after a bounce their paths are others
            }
            if bodies.mass[b] > bodies.mass[a] {
                (a, b) = (b, a);
            }
            let (first, second) = (bodies.body(a), bodies.body(b));
            let [(xa, va), (xb, vb)] = [i, j].map(|k| motion.at(k, share));
            let radii = [self.radii[i], self.radii[j]];
            let inner = radii[0] / (radii[0] + radii[1]);
            tell(
                share,
                Happening::Collision {
                    ids: [first.id, second.id],
                    masses: [first.mass, second.mass],
                    position: [0, 1, 2].map(|k| xa[k] + inner * (xb[k] - xa[k])),
                    speed: distance(va, vb),
                    outcome: self.on_collision,
                },
            );
            match self.on_collision {
                OnCollision::Log | OnCollision::Stop => {}
                OnCollision::Merge => {
                    let merged = merged(first, second);
                    bodies.set_part(a, &std::iter::once(merged).collect());
                    self.radii[a] = (self.radii[a].powi(3) + self.radii[b].powi(3)).cbrt();
                    (became[b], gone[b]) = (a, true);
                }
                OnCollision::Bounce => {
                    let rest = motion.dt * (1.0 - share);
                    let change = bounce([bodies.body(i), bodies.body(j)], [(xa, va), (xb, vb)]);
                    for (k, change) in [i, j].into_iter().zip(change) {
                        let mut body = bodies.body(k);
                        body.velocity = [0, 1, 2].map(|k| body.velocity[k] + change[k]);
                        body.position = [0, 1, 2].map(|k| body.position[k] + change[k] * rest);
                        bodies.set_part(k, &std::iter::once(body).collect());
                        bounced[k] = true;
                    }
                }
            }
        }
    }

    fn escapes(
        &self,
        before: &Bodies,
        bodies: &mut Bodies,
        gone: &mut [bool],
        mut tell: impl FnMut(Happening),
    ) {
        let Some((radius, action)) = self.escape else {
            return;
        };
        let present: Bodies = (0..gone.len())
            .filter(|&i| !gone[i])
            .map(|i| bodies.body(i))
            .collect();
        let centre = present.centre_of_mass().unwrap_or_default();
        let velocity = present.centre_of_mass_velocity().unwrap_or_default();
        let centre_before = before.centre_of_mass().unwrap_or_default();
        for i in (0..bodies.len()).filter(|&i| !gone[i]).collect::<Vec<_>>() {
            let body = bodies.body(i);
            let was_within = distance(before.body(i).position, centre_before) <= radius;
            if distance(body.position, centre) > radius && was_within {
                tell(Happening::Escape {
                    id: body.id,
                    mass: body.mass,
                    position: body.position,
                    speed: distance(body.velocity, velocity),
                    outcome: action,
                });
                gone[i] = action == OnEscape::Remove;
            }
        }
    }
}

/// Two bodies as one, which keeps mass, momentum and the motion of their centre of mass, and the name of
/// the first, which is not the lighter one.
fn merged(first: Body, second: Body) -> Body {
    let mass = first.mass + second.mass;
    let share = if mass > 0.0 { second.mass / mass } else { 0.0 };
    let mean = |a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|k| a[k] + share * (b[k] - a[k]));
    Body {
        position: mean(first.position, second.position),
        velocity: mean(first.velocity, second.velocity),
        mass,
        ..first
    }
}

/// Changes of the velocities of two hard spheres that meet with these positions and velocities. Two
/// massless ones are taken for equal.
fn bounce([a, b]: [Body; 2], [(xa, va), (xb, vb)]: [([f64; 3], [f64; 3]); 2]) -> [[f64; 3]; 2] {
    let (r, v) = (difference(xb, xa), difference(vb, va));
    let along = dot(r, v) / dot(r, r);
    let mass = a.mass + b.mass;
    let [of_a, of_b] = match mass > 0.0 {
        true => [b.mass / mass, a.mass / mass],
        false => [0.5; 2],
    };
    if along >= 0.0 || along.is_nan() {
        return [[0.0; 3]; 2]; // not approaching by rounding, or at one point
    }
    [
        r.map(|r| 2.0 * of_a * along * r),
        r.map(|r| -2.0 * of_b * along * r),
    ]
}
