//! Settings of encounters.

use super::contact::Motion;
use super::search;
use crate::bodies::{Bodies, Body};
use crate::refusals::Refusals;
use crate::vectors::distance;

/// Consequence of a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCollision {
    /// Nothing but an [`Event`](super::Event); bodies pass through each other.
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
    /// Nothing but an [`Event`](super::Event).
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
    /// Distance from the centre of mass of those that have not escaped, and what follows beyond it.
    pub escape: Option<(f64, OnEscape)>,
}

/// Setting of encounters that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EncounterFault {
    /// The number of radii differs from the number of bodies.
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
    /// A simulation that does not know how to make a backend of other bodies, because [`Simulation::remade_by`] has not told it.
    ///
    /// [`Simulation::remade_by`]: crate::simulation::Simulation::remade_by
    #[error(
        "bodies do not merge, bounce or disappear in a simulation that was given its forces ready-made: only log \
         collisions and escapes, or have the simulation make its forces itself"
    )]
    FixedBodies,
    /// Steps of single bodies, which the backend does not keep.
    #[error(
        "this backend does not keep the steps of single bodies, in which collisions of block time steps are \
         looked for"
    )]
    StepsNotKept,
    /// Needs that do not go together.
    #[error(transparent)]
    Refused(#[from] Refusals),
    /// Two bodies that overlap at the beginning.
    #[error(
        "bodies {0} and {1} overlap at the beginning: their distance is {2}, less than the sum of their radii"
    )]
    Overlap(usize, usize, f64),
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
        self.acts() || self.removes_bodies()
    }

    /// Returns whether encounters may change the number of bodies.
    pub(crate) fn removes_bodies(&self) -> bool {
        let by_escape = matches!(self.escape, Some((_, OnEscape::Remove)));
        matches!(self.on_collision, OnCollision::Merge) || by_escape
    }

    /// Checks them for the bodies at the beginning of a run.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn check(&self, bodies: &Bodies) -> Result<(), EncounterFault> {
        self.check_some(bodies, &vec![true; bodies.len()])
    }

    /// Checks them for some of the bodies, which are new or have another place or radius; the others may have
    /// escaped, and may overlap.
    pub(crate) fn check_some(&self, bodies: &Bodies, some: &[bool]) -> Result<(), EncounterFault> {
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
        let of_some = radii.iter().enumerate().filter(|(body, _)| some[*body]);
        for (body, &radius) in of_some {
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
            let mut beyond = beyond.filter(|(body, distance)| some[*body] && *distance > radius);
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
            .filter(|&(i, j)| some[i] || some[j])
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
    pub(super) fn acts(&self) -> bool {
        matches!(self.on_collision, OnCollision::Merge | OnCollision::Bounce)
    }
}
