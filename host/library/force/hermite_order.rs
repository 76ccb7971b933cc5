//! Order of Hermite's scheme, where it is known as a run goes.

use gpu_kernels::schedule::block_steps::{Ended, Fourth, Moving, Scheme, Sixth};

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

    /// See [`Scheme::ended`]. Sixth order does not take for change what rounding makes of forces, which are rounded by
    /// `unit` of themselves.
    pub(super) fn ended(
        self,
        begun: &Beginning,
        dt: f64,
        (eta, unit): (f64, f64),
        of_prediction: [[f64; 3]; 3],
    ) -> Ended {
        match self {
            Self::Fourth => Fourth::ended(begun, dt, eta, of_prediction),
            Self::Sixth if unit == 0.0 => Sixth::ended(begun, dt, eta, of_prediction),
            Self::Sixth => {
                let rounding = begun.rounding(dt, of_prediction, unit);
                let derivatives = begun.derivatives(dt, of_prediction).beyond(rounding);
                Ended {
                    allowed: derivatives.next_step(eta, of_prediction),
                    ..Sixth::ended(begun, dt, eta, of_prediction)
                }
            }
        }
    }
}
