//! Encounters that happened.

use std::fmt;

use super::{OnCollision, OnEscape};

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
