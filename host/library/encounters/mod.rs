//! Encounters: collisions of bodies with radii, and bodies that escape.
//!
//! After each step, the search examines every pair of paths that may have come close in the step. The
//! path of a body in a step is the cubic through its positions and velocities at both ends. Two bodies
//! collide when the distance of their paths falls to the sum of their radii, anywhere in the step.
//! Forces do not depend on radii.
//!
//! In block time steps, a span takes the place of the step. The path of a body in a span consists of
//! the cubics of all its steps in the span. Members of a group have no steps while they are in it. Who
//! follows the group finds the contacts of its members. If a contact changes bodies, they must not continue to the
//! end of the span: the span is repeated, and ends just after the first contact.
//!
//! A merger keeps the mass, momentum and volume of both bodies, and the id of the heavier one. Mergers
//! and escapers change the conserved quantities. The changes are counted as
//! [`Lost`](crate::diagnostics::Lost), so that drifts still measure the errors of the run.

mod centre;
mod contact;
mod event;
mod search;
mod settings;
#[cfg(test)]
mod tests;

pub use event::{Event, Happening};
pub use settings::{EncounterFault, Encounters, OnCollision, OnEscape};

use crate::bodies::{Bodies, Body};
use crate::vectors::{axes, difference, distance, dot};

use centre::centre_within;
use contact::Motion;

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

/// Two bodies that meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact {
    /// Indices of the bodies.
    pub bodies: [usize; 2],
    /// Share of the step after which they meet.
    pub share: f64,
    /// True if they were farther from each other before.
    pub from_outside: bool,
    /// Position and velocity of each where they meet.
    pub phases: [[[f64; 3]; 2]; 2],
}

/// Paths of bodies in a span of block time steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paths {
    /// Steps of single bodies. The steps of each body are in order.
    pub steps: Vec<StepOfBody>,
    /// Contacts of members of the same group, which have no steps while they are in it.
    pub contacts: Vec<Contact>,
}

/// Paths of bodies in a step.
pub(crate) struct Step<'a> {
    /// The bodies at its beginning.
    pub(crate) before: &'a Bodies,
    /// The bodies at its end.
    pub(crate) after: &'a Bodies,
    /// The paths of single bodies that it is made of, if it is.
    pub(crate) paths: Option<&'a Paths>,
    /// Length.
    pub(crate) dt: f64,
}

impl Step<'_> {
    fn motion(&self) -> Motion {
        match self.paths {
            None => Motion::of(self.before, self.after, self.dt),
            Some(paths) => Motion::of_steps(self.before.len(), &paths.steps, self.dt),
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
    /// How long a step should be that ended too late for what follows from its first collision; nothing where
    /// it ended soon enough.
    pub(crate) fn shorter(&self, step: &Step<'_>) -> Option<f64> {
        if !self.acts() || !self.may_collide() {
            return None;
        }
        let first = self.contacts(step).first().copied()?;
        let [i, j] = first.bodies;
        let [[_, va], [_, vb]] = first.phases;
        let room = OVERLAP * (self.radii[i] + self.radii[j]) / distance(va, vb);
        let [contact, room] = [first.share * step.dt, room.copysign(step.dt)];
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
            let contacts = self.contacts(step);
            self.collide(&contacts, dt, &mut bodies, &mut gone, |share, what| {
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

    /// Contacts of a step, in order.
    fn contacts(&self, step: &Step<'_>) -> Vec<Contact> {
        let motion = step.motion();
        let pairs = search::close_pairs(&motion, &self.radii);
        let on_paths = pairs
            .into_iter()
            .flat_map(|(i, j)| motion.contacts([i, j], self.radii[i] + self.radii[j]));
        let of_members = step.paths.map_or(&[][..], |paths| &paths.contacts);
        let all = on_paths.chain(of_members.iter().copied());
        // Bodies within each other that are left as they are have been told of.
        let told = all.filter(|contact| contact.from_outside || self.acts());
        let mut contacts: Vec<_> = told.collect();
        contacts.sort_by(|a, b| {
            let by_bodies = a.bodies.cmp(&b.bodies);
            a.share.total_cmp(&b.share).then(by_bodies)
        });
        contacts
    }

    fn collide(
        &mut self,
        contacts: &[Contact],
        dt: f64,
        bodies: &mut Bodies,
        gone: &mut [bool],
        mut tell: impl FnMut(f64, Happening),
    ) {
        let mut became: Vec<usize> = (0..bodies.len()).collect();
        let mut bounced = vec![false; bodies.len()];
        for contact in contacts {
            let ([i, j], share) = (contact.bodies, contact.share);
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
            let [[xa, va], [xb, vb]] = contact.phases;
            let radii = [self.radii[i], self.radii[j]];
            let inner = radii[0] / (radii[0] + radii[1]);
            tell(
                share,
                Happening::Collision {
                    ids: [first.id, second.id],
                    masses: [first.mass, second.mass],
                    position: axes(|k| xa[k] + inner * (xb[k] - xa[k])),
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
                    let rest = dt * (1.0 - share);
                    let change = bounce([bodies.body(i), bodies.body(j)], contact.phases);
                    for (k, change) in [i, j].into_iter().zip(change) {
                        let mut body = bodies.body(k);
                        body.velocity = axes(|k| body.velocity[k] + change[k]);
                        body.position = axes(|k| body.position[k] + change[k] * rest);
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
        let [centre, velocity] = centre_within(&present, radius);
        let [centre_before, _] = centre_within(before, radius);
        let mut left = present.len();
        for i in (0..bodies.len()).filter(|&i| !gone[i]).collect::<Vec<_>>() {
            let body = bodies.body(i);
            let was_within = distance(before.body(i).position, centre_before) <= radius;
            // The last one is the centre of mass itself.
            let stays = action == OnEscape::Remove && left == 1;
            if distance(body.position, centre) > radius && was_within && !stays {
                tell(Happening::Escape {
                    id: body.id,
                    mass: body.mass,
                    position: body.position,
                    speed: distance(body.velocity, velocity),
                    outcome: action,
                });
                if action == OnEscape::Remove {
                    (gone[i], left) = (true, left - 1);
                }
            }
        }
    }
}

/// Two bodies as one, which keeps mass, momentum and the motion of their centre of mass, and the name of
/// the first, which is not the lighter one. Two massless ones are taken for equal.
fn merged(first: Body, second: Body) -> Body {
    let mass = first.mass + second.mass;
    let share = if mass > 0.0 { second.mass / mass } else { 0.5 };
    let mean = |a: [f64; 3], b: [f64; 3]| axes(|k| a[k] + share * (b[k] - a[k]));
    Body {
        position: mean(first.position, second.position),
        velocity: mean(first.velocity, second.velocity),
        mass,
        ..first
    }
}

/// Changes of the velocities of two hard spheres that meet with these positions and velocities. Two
/// massless ones are taken for equal.
fn bounce([a, b]: [Body; 2], [[xa, va], [xb, vb]]: [[[f64; 3]; 2]; 2]) -> [[f64; 3]; 2] {
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
