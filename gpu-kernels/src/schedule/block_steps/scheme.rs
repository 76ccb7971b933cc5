//! Hermite's scheme of an order: steps of either, for kernels and for the CPU.

use crate::{hermite, hermite6};

/// Position, velocity and acceleration.
pub type Moving = [[f64; 3]; 3];

/// Beginning of a step; snap and crackle are zero where the scheme has none.
pub type Begun = hermite6::Beginning<f64>;

/// End of a step.
pub struct Ended {
    /// Position.
    pub x: [f64; 3],
    /// Velocity.
    pub v: [f64; 3],
    /// Crackle, zero where the scheme has none.
    pub crackle: [f64; 3],
    /// The step that is allowed next, as far as the body's own derivatives say.
    pub allowed: f64,
}

/// Numbers that the next step follows from besides derivatives.
#[derive(Clone, Copy, Debug)]
pub struct StepAccuracy {
    /// [η](crate::hermite::Beginning::next_step).
    pub eta: f64,
    /// The part of forces and of their derivatives that rounding may change. Sixth order does not take it for change.
    pub rounding: f64,
}

impl StepAccuracy {
    /// Accuracy of forces that are as good as exact.
    pub const fn of_exact(eta: f64) -> Self {
        Self { eta, rounding: 0.0 }
    }

    /// Accuracy of a heavy body that takes this part of η. Forces of others on it cancel, so rounding changes eight times as
    /// much of their sum. With an eighth of this, it takes twice as many steps as in f64.
    #[inline(always)]
    #[must_use]
    pub const fn of_heavy(self, part: f64) -> Self {
        Self {
            eta: part * self.eta,
            rounding: 8.0 * self.rounding,
        }
    }
}

/// Hermite's scheme of an order.
pub trait Scheme {
    /// The order, 4 or 6.
    const ORDER: u32;
    /// True if it takes snaps, for which sources need accelerations.
    const SNAP: bool = Self::ORDER == 6;
    /// The part of η that heavy single bodies take where pairs are followed apart, or will be. Two heavy bodies that are bound,
    /// but not followed apart yet, hold much of the energy of their cluster. With the accuracy of the others this energy drifts.
    const OF_HEAVY: f64 = if Self::SNAP { 0.3 } else { 0.1 };
    /// Predicts position and velocity after `dt`. Without [`SNAP`](Scheme::SNAP) the acceleration is not computed.
    fn predicted(begun: &Begun, dt: f64) -> Moving;
    /// The end of a step of `dt`, from acceleration, jerk and snap of what was predicted.
    fn ended(begun: &Begun, dt: f64, accuracy: StepAccuracy, of_prediction: [[f64; 3]; 3])
    -> Ended;
}

/// [Fourth order](crate::hermite).
#[derive(Clone, Copy, Debug)]
pub enum Fourth {}

/// [Sixth order](crate::hermite6).
#[derive(Clone, Copy, Debug)]
pub enum Sixth {}

#[inline(always)]
fn fourth(&Begun { x, v, a, j, .. }: &Begun) -> hermite::Beginning<f64> {
    hermite::Beginning { x, v, a, j }
}

impl Scheme for Fourth {
    const ORDER: u32 = 4;

    #[inline(always)]
    fn predicted(begun: &Begun, dt: f64) -> Moving {
        let [x, v] = fourth(begun).predicted(dt);
        [x, v, [0.0; 3]]
    }

    #[inline(always)]
    fn ended(begun: &Begun, dt: f64, accuracy: StepAccuracy, [a, j, _]: [[f64; 3]; 3]) -> Ended {
        let begun = fourth(begun);
        let [x, v] = begun.corrected(dt, a, j);
        Ended {
            x,
            v,
            crackle: [0.0; 3],
            allowed: begun.next_step(accuracy.eta, dt, a, j),
        }
    }
}

impl Scheme for Sixth {
    const ORDER: u32 = 6;

    #[inline(always)]
    fn predicted(begun: &Begun, dt: f64) -> Moving {
        begun.predicted(dt)
    }

    #[inline(always)]
    fn ended(
        begun: &Begun,
        dt: f64,
        accuracy: StepAccuracy,
        of_prediction: [[f64; 3]; 3],
    ) -> Ended {
        let StepAccuracy { eta, rounding } = accuracy;
        let [x, v] = begun.corrected(dt, of_prediction);
        let derivatives = begun.derivatives(dt, of_prediction);
        let beyond_rounding = if rounding == 0.0 {
            derivatives
        } else {
            derivatives.beyond(begun.rounding(dt, of_prediction, rounding))
        };
        Ended {
            x,
            v,
            crackle: derivatives.third,
            allowed: beyond_rounding.next_step(eta, of_prediction),
        }
    }
}

/// Numbers of a target's sums over sources: acceleration, jerk and, of sixth order, snap, the fastest approach, and the
/// nearest source.
pub(super) const fn sums(order: u32) -> u32 {
    if order == 6 { 11 } else { 8 }
}

/// The most numbers of a target's sums.
pub(super) const MOST_SUMS: usize = 11;
