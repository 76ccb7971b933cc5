//! Limit to the drift of the energy.

use allpairs::diagnostics::EnergyLook;
use allpairs::simulation::Outrun;
use allpairs::suggest;
use allpairs::test_particles::Look;

use crate::say;
use crate::times::Times;

/// A limit to the drift of the energy, and what to do where it is exceeded.
#[derive(Clone, Debug)]
pub(super) struct DriftWatch {
    pub(super) bound: f64,
    /// True if external fields accelerate the bodies: these take momentum, and give it.
    pub(super) in_fields: bool,
    /// False if they change with time, and the energy too.
    pub(super) is_conserved: bool,
    pub(super) advice: String,
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

    /// Warns of test particles with a drift beyond it. Returns whether it did.
    pub(super) fn warn_of_particles(
        &self,
        (steps, time): (u64, f64),
        look: &Look,
        times: &Times,
    ) -> bool {
        let Some(constant) = look.has_drifted(self.bound) else {
            return false;
        };
        say::tell(format_args!(
            "warning: at step {steps}, time {}, the {constant} of a test particle has changed by {} of its \
             potential at the start, more than --max-drift {}: {}",
            times.text(time),
            say::scientific(look.drift),
            say::plain(self.bound),
            self.advice
        ));
        true
    }
}

/// Warns of bodies that have outrun the step that was chosen for them.
pub(super) fn warn_of_step(outrun: &Outrun, times: &Times) {
    let figure = |time: f64| times.figure(time);
    say::tell(format_args!(
        "warning: at step {}, time {}, a step of {} would be chosen now ({}), and steps of {} are taken, which were chosen at \
         the start: give a shorter --dt, or {}",
        outrun.steps,
        times.text(outrun.time),
        figure(outrun.suited.value),
        outrun.suited.why.replace(" at the start", ""),
        figure(outrun.dt),
        suggest::near_settings()
    ));
}
