//! Commands to a backend, and its replies.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{BlockCounts, ForceError, HighestDerivative, Operation, SavedState};
use crate::diagnostics::Energy;
use crate::encounters::StepOfBody;
use crate::fields::External;
use crate::timeline;

/// Properties of a backend.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Independent systems of equal size that the bodies are, one after another.
    pub systems: usize,
    /// Number of bodies that exert forces, where test particles are known to exert none.
    pub sources: Option<usize>,
    /// External fields that accelerate the bodies, if the backend has any.
    pub external: Option<&'a External>,
    /// True if the backend takes block time steps.
    pub has_block_steps: bool,
    /// True if the backend copies systems to devices and back, and times the copies.
    pub times_copies: bool,
    /// Seconds that bodies took so far to cross the bus within steps; 0 where they stay where the
    /// forces are computed.
    pub transfers: f64,
}

/// Facts of one system that has nothing but accelerations.
impl Default for Facts<'_> {
    fn default() -> Self {
        Self {
            systems: 1,
            sources: None,
            external: None,
            has_block_steps: false,
            times_copies: false,
            transfers: 0.0,
        }
    }
}

/// A watch over a span. It is told the share that is done.
pub type Watch<'a> = dyn FnMut(f64) -> ControlFlow<()> + 'a;

/// A command to a backend. Each names the kind of its [`Reply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Command<'a> {
    /// Carries out a part of a step. Reply: [`Done`](Reply::Done).
    Perform(Operation),
    /// Takes as many steps of these operations. Reply: [`Done`](Reply::Done).
    Repeat(u64, Cow<'a, [Operation]>),
    /// Finds the first step of all bodies. Reply: [`Number`](Reply::Number).
    FirstStep {
        /// Accuracy.
        eta: f64,
        /// Longest step.
        longest: f64,
    },
    /// Finds the step that follows one of `dt`. Reply: [`Number`](Reply::Number).
    NextStep {
        /// Accuracy.
        eta: f64,
        /// The step before.
        dt: f64,
    },
    /// Takes block time steps: all bodies advance by the length, each with steps that its accuracy
    /// allows, and stand at the same time again at the end. A step is the length halved a number of
    /// times. In no step does a pair change its distance by more than [`GUARD`](super::GUARD) of it.
    /// Accelerations and their derivatives must belong to the current state, and do so afterwards.
    /// Reply: [`Span`](Reply::Span).
    Span {
        /// Length of the span.
        length: f64,
        /// Accuracy.
        eta: f64,
    },
    /// Tells the steps that bodies are allowed next. Reply: [`Numbers`](Reply::Numbers).
    OwnSteps,
    /// Keeps the steps of bodies in spans. Reply: [`Done`](Reply::Done).
    KeepSteps,
    /// Hands out the steps that were kept. Reply: [`Steps`](Reply::Steps).
    TakeSteps,
    /// Follows the orbit of the origin. Reply: [`Done`](Reply::Done).
    Reach {
        /// Time from which on.
        from: f64,
        /// Time until which.
        to: f64,
    },
    /// Sets the time of external fields. Reply: [`Done`](Reply::Done).
    SetTime(f64),
    /// Saves the state. Reply: [`State`](Reply::State).
    Save,
    /// Takes a state over. Reply: [`Done`](Reply::Done).
    Restore(Cow<'a, SavedState>),
    /// Hands out positions and velocities. Reply: [`Phases`](Reply::Phases).
    Phases,
    /// Hands out the accelerations. Reply: [`Vectors`](Reply::Vectors).
    Accelerations,
    /// Computes the energy of each system. Reply: [`Energies`](Reply::Energies).
    Energies,
    /// Waits until all work is done. Reply: [`Done`](Reply::Done).
    Synchronize,
    /// Times the accelerations. Reply: [`Number`](Reply::Number).
    TimeAcceleration,
    /// Times steps with their copies. Reply: [`Number`](Reply::Number).
    TimeSteps {
        /// Step.
        dt: f64,
        /// Number of steps.
        steps: u32,
    },
    /// Times each copy and launch. Reply: [`Spans`](Reply::Spans).
    Timeline {
        /// Step.
        dt: f64,
        /// Number of steps.
        steps: u32,
    },
}

/// Reply to a [`Command`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reply {
    /// The command was carried out, or its work is queued.
    Done,
    /// A length of time.
    Number(f64),
    /// A number of each body, or none.
    Numbers(Vec<f64>),
    /// Counts of a span; none if the watch broke off.
    Span(Option<BlockCounts>),
    /// The state.
    State(Box<SavedState>),
    /// Position and velocity of each body.
    Phases(Vec<[[f64; 3]; 2]>),
    /// A vector of each body.
    Vectors(Vec<[f64; 3]>),
    /// The energy of each system.
    Energies(Vec<Energy>),
    // Replies that stay in one process are the last: serde numbers the others without them where it reads.
    /// Steps of single bodies.
    #[serde(skip)]
    Steps(Vec<StepOfBody>),
    /// Times of copies and launches.
    #[serde(skip)]
    Spans(Vec<timeline::Span>),
}

/// Sends a command and returns what its kind of reply holds.
macro_rules! reply {
    ($backend:expr, $command:expr, $kind:ident) => {
        $backend.run(&$command, None).map(|reply| match reply {
            $crate::backend::Reply::$kind(value) => value,
            other => other.is_wrong(),
        })
    };
}
pub(super) use reply;

impl Command<'_> {
    /// Refuses a command that needs more than accelerations of independent systems.
    ///
    /// # Errors
    /// [`ForceError::NoJerks`] or [`ForceError::NoBlockSteps`]
    pub(crate) fn check_for_systems(&self) -> Result<(), ForceError> {
        let needs_jerks = |operation: &Operation| {
            use HighestDerivative::{Jerk, Snap};
            use Operation::{Correct, Evaluate, Predict};
            matches!(operation, Evaluate(Jerk | Snap) | Predict(_) | Correct(_))
        };
        match self {
            Self::Perform(operation) if needs_jerks(operation) => Err(ForceError::NoJerks),
            Self::Repeat(_, step) if step.iter().any(needs_jerks) => Err(ForceError::NoJerks),
            Self::FirstStep { .. } | Self::NextStep { .. } => Err(ForceError::NoJerks),
            Self::Span { .. } | Self::OwnSteps | Self::KeepSteps | Self::TakeSteps => {
                Err(ForceError::NoBlockSteps)
            }
            _ => Ok(()),
        }
    }
}

impl Reply {
    /// One reply from the replies about parts of the bodies, in their order.
    pub(crate) fn joined(replies: impl IntoIterator<Item = Self>) -> Self {
        let join = |mut all: Self, more| {
            match (&mut all, more) {
                (Self::Numbers(all), Self::Numbers(more)) => all.extend(more),
                (Self::State(all), Self::State(more)) => all.append(*more),
                (Self::Phases(all), Self::Phases(more)) => all.extend(more),
                (Self::Vectors(all), Self::Vectors(more)) => all.extend(more),
                (Self::Energies(all), Self::Energies(more)) => all.extend(more),
                (Self::Done, _) | (Self::Number(_), Self::Number(_)) => {}
                (_, more) => more.is_wrong(),
            }
            all
        };
        replies.into_iter().reduce(join).unwrap_or(Self::Done)
    }

    /// # Panics
    /// Always: a backend replied to another command.
    pub(super) fn is_wrong<T>(self) -> T {
        unreachable!("a backend replied {self:?} to another command")
    }
}
