//! Length of steps, shared or of each body.

/// Length of steps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Pace {
    /// All the same; negative to go back in time.
    Fixed(f64),
    /// As long as the accuracy allows. Needs [jerks](super::Integrator::needs_jerks).
    Adaptive {
        /// Accuracy η of Aarseth's criterion: errors fall with its square.
        eta: f64,
        /// No step is longer.
        longest: f64,
        /// The last step ends here.
        end: f64,
        /// Sharing of the steps.
        steps: TimeSteps,
    },
}

/// Choice between one step for all bodies and a step for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TimeSteps {
    /// One step for all bodies: what the least patient of them needs.
    Shared,
    /// [Block time steps](crate::backend::Command::Span): each body takes its own, the longest step
    /// halved so many times over. The simulation counts, and stops after, longest steps, when all
    /// bodies stand at the same time.
    Blocks,
}

impl From<f64> for Pace {
    fn from(dt: f64) -> Self {
        Self::Fixed(dt)
    }
}
