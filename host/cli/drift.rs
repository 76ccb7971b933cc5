//! Limit to the drift of the energy.

use allpairs::diagnostics::EnergyLook;

use crate::say;
use crate::times::Times;

/// A limit to the drift of the energy, and what to do where it is exceeded.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriftWatch {
    pub(super) bound: f64,
    /// True if external fields accelerate the bodies: these take momentum, and give it.
    pub(super) in_fields: bool,
    /// False if they change with time, and the energy too.
    pub(super) is_conserved: bool,
    pub(super) advice: &'static str,
}

impl DriftWatch {
    /// Warns of a drift beyond it.
    pub(super) fn warn(&self, look: &EnergyLook, times: &Times) {
        say::tell(format_args!(
            "warning: at step {}, time {}, the energy has drifted by {}, more than \
             --max-drift {}: {}",
            look.steps,
            times.text(look.time),
            say::scientific(look.drift),
            say::plain(self.bound),
            self.advice
        ));
    }
}
