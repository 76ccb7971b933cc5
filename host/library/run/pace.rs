//! Length and number of the steps of a run.

use super::{BuildError, End, RunSpec};
use crate::integrator::{Pace, TimeSteps};
use crate::settings::Setting;

impl RunSpec {
    /// Checks the settings of the steps, whatever the forces are.
    pub(super) fn check_pace(&self) -> Result<(), BuildError> {
        let is_number = |dt: f64| dt.is_finite() && dt != 0.0;
        let value = |name, value, allowed| BuildError::Value {
            name,
            allowed,
            value,
        };
        if let End::Time(end) = self.end
            && !end.is_finite()
        {
            return Err(value(Setting::Until, end, "finite"));
        }
        if let Some(dt) = self.dt {
            if !is_number(dt) {
                let allowed = "finite and not 0 (negative to go back in time)";
                return Err(value(Setting::Dt, dt, allowed));
            }
            if !dt.is_normal() || self.start + dt == self.start {
                let start = self.start;
                return Err(BuildError::StepTooShort { dt, start });
            }
        }
        let Some(eta) = self.eta else {
            return match self.dt {
                Some(dt) => self.steps(Pace::Fixed(dt)).map(drop),
                None => Ok(()),
            };
        };
        if !(eta.is_finite() && eta > 0.0) {
            return Err(value(Setting::Eta, eta, "> 0 and finite"));
        }
        if let Some(dt) = self.dt.filter(|dt| *dt < 0.0) {
            return Err(value(Setting::Dt, dt, "> 0 and finite where steps vary"));
        }
        match self.end {
            End::Open | End::Steps(_) => Ok(()),
            End::Time(end) if end > self.start => Ok(()),
            End::Time(time) if time == self.start => Err(BuildError::NothingToDo { time }),
            End::Time(end) => Err(BuildError::Backwards {
                start: self.start,
                end,
            }),
        }
    }

    /// Time from the beginning of the run to its end; infinite where it is not known.
    pub fn span(&self) -> f64 {
        match self.end {
            End::Time(end) => (end - self.start).abs(),
            End::Open | End::Steps(_) => f64::INFINITY,
        }
    }

    /// Length of the steps, with a `suggested` one where none is given. A chosen step is shortened so that a
    /// whole number of steps reaches the end.
    ///
    /// # Errors
    /// Errors of the suggestion, or that no step is suggested: nothing is accelerated.
    pub fn pace(
        &self,
        suggested: impl FnOnce() -> Result<f64, BuildError>,
    ) -> Result<Pace, BuildError> {
        let Some(eta) = self.eta else {
            if let Some(dt) = self.dt {
                return Ok(Pace::Fixed(dt));
            }
            let dt = match suggested()? {
                0.0 => return Err(BuildError::NoTimeStep),
                dt => dt,
            };
            return Ok(Pace::Fixed(match self.end {
                End::Time(end) if end.is_finite() && end != self.start => {
                    let span = end - self.start;
                    span / (span / dt).abs().ceil()
                }
                _ => dt,
            }));
        };
        let (end, span) = match self.end {
            End::Time(end) => (end, end - self.start),
            _ => (f64::INFINITY, f64::INFINITY),
        };
        let stepping = self.time_steps();
        let longest = match (self.dt, stepping) {
            (Some(dt), _) => dt,
            // Bodies that nothing accelerates get there in one step.
            (None, TimeSteps::Shared) if span.is_finite() => span,
            (None, _) => match suggested()? {
                0.0 if span.is_finite() => span,
                0.0 => return Err(BuildError::NoTimeStep),
                longest if stepping == TimeSteps::Shared => longest,
                longest => {
                    // A whole number of longest steps from one snapshot to the next, or to the end.
                    let part = self.snapshot_every.unwrap_or(f64::INFINITY).min(span);
                    match part.is_finite() {
                        true => part / (part / longest).ceil(),
                        false => longest,
                    }
                }
            },
        };
        Ok(Pace::Adaptive {
            eta,
            longest: longest.min(span),
            end,
            steps: stepping,
        })
    }

    /// Number of steps from the beginning of the run to its end, or as many as can be counted where their length
    /// varies or the end is open. The last step, and the last before each snapshot, are shortened to end there.
    ///
    /// # Errors
    /// If steps of this length do not lead to the end.
    pub fn steps(&self, pace: Pace) -> Result<u64, BuildError> {
        let (dt, end) = match (pace, self.end) {
            (Pace::Adaptive { .. }, _) | (_, End::Open) => return Ok(u64::MAX),
            (Pace::Fixed(_), End::Steps(steps)) => return Ok(steps),
            (Pace::Fixed(dt), End::Time(end)) => (dt, end),
        };
        // Rounding shall not add a step, nor the snapshot that it puts before the end.
        let within = |span: f64| (span / dt.abs() * (1.0 - 1e-12)).ceil();
        let span = (end - self.start) * dt.signum();
        let steps = match self.snapshot_every {
            Some(every) if every < span => {
                let before = (span / every * (1.0 - 1e-12)).ceil() - 1.0;
                before * within(every) + within(span - before * every)
            }
            _ => within(span),
        };
        match (0.0..1e18).contains(&steps) {
            true => Ok(steps as u64),
            false => Err(BuildError::WrongWay {
                dt,
                start: self.start,
                end,
            }),
        }
    }
}
