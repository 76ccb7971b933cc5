//! Order of Hermite's scheme, where it is known as a run goes.

use gpu_kernels::schedule::block_steps::{Ended, Fourth, Moving, Scheme, Sixth, StepAccuracy};

use super::host_state::Beginning;
use crate::backend::HighestDerivative;

/// Order of Hermite's scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// With jerks.
    Fourth,
    /// With jerks and snaps, for which sources need accelerations.
    Sixth,
}

impl Order {
    /// The highest derivative of accelerations that steps need.
    pub(super) const fn highest(self) -> HighestDerivative {
        match self {
            Self::Fourth => HighestDerivative::Jerk,
            Self::Sixth => HighestDerivative::Snap,
        }
    }

    /// See [`Scheme::predicted`].
    #[inline]
    pub(super) fn predicted(self, begun: &Beginning, dt: f64) -> Moving {
        match self {
            Self::Fourth => Fourth::predicted(begun, dt),
            Self::Sixth => Sixth::predicted(begun, dt),
        }
    }

    /// See [`Scheme::ended`].
    pub(super) fn ended(
        self,
        begun: &Beginning,
        dt: f64,
        accuracy: StepAccuracy,
        of_prediction: [[f64; 3]; 3],
    ) -> Ended {
        match self {
            Self::Fourth => Fourth::ended(begun, dt, accuracy, of_prediction),
            Self::Sixth => Sixth::ended(begun, dt, accuracy, of_prediction),
        }
    }

    /// See [`Scheme::OF_HEAVY`].
    pub(super) const fn of_heavy(self) -> f64 {
        match self {
            Self::Fourth => Fourth::OF_HEAVY,
            Self::Sixth => Sixth::OF_HEAVY,
        }
    }
}
