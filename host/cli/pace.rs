//! Length and number of the steps of a run.

use allpairs::integrator::{Pace, TimeSteps};
use anyhow::{bail, ensure};

use crate::options::Options;
use crate::say;

/// Steps where none are asked for.
const DEFAULT_STEPS: u64 = 100;

/// Refuses options of the steps that cannot be, whatever the forces are.
pub(super) fn check_pace(options: &Options, start: f64) -> anyhow::Result<()> {
    let (given, until) = (options.dt()?, options.until()?);
    if let Some(dt) = given {
        ensure!(
            dt.is_finite() && dt != 0.0,
            "`--dt` must be finite and not 0 (negative to go back in time), got {}",
            say::plain(dt)
        );
        ensure!(
            dt.is_normal() && start + dt != start,
            "`--dt` must be long enough to get on from time {}, got {dt:e}",
            say::plain(start)
        );
    }
    let Some(eta) = options.eta else {
        return match given {
            Some(dt) => steps(options, start, Pace::Fixed(dt)).map(|_| ()),
            None => Ok(()),
        };
    };
    let integrator = options.method();
    ensure!(
        integrator.needs_jerks(),
        "--eta needs an integrator with jerks: --integrator hermite4 or hermite6, not {}",
        integrator.name()
    );
    ensure!(
        eta.is_finite() && eta > 0.0,
        "`--eta` must be > 0 and finite, got {}",
        say::plain(eta)
    );
    match until {
        Some(end) => ensure!(
            end > start && end.is_finite() && given.is_none_or(|dt| dt > 0.0),
            "steps by --eta go forward: from time {} not to {}",
            say::plain(start),
            say::plain(end)
        ),
        None => bail!("steps by --eta need --until, the time to reach"),
    }
    Ok(())
}

/// Length of the steps; `suggested` where it is not given.
pub(super) fn pace(
    options: &Options,
    start: f64,
    suggested: impl FnOnce() -> anyhow::Result<f64>,
) -> anyhow::Result<Pace> {
    check_pace(options, start)?;
    let (given, until) = (options.dt()?, options.until()?);
    let (Some(eta), Some(end)) = (options.eta, until) else {
        let dt = match given {
            Some(dt) => dt,
            None => match (suggested()?, until) {
                (0.0, _) => {
                    bail!("nothing is accelerated, so no time step follows: give one with --dt")
                }
                (dt, Some(end)) if end.is_finite() && end != start => {
                    let span = end - start;
                    span / (span / dt).abs().ceil() // so that a whole number of steps gets there
                }
                (dt, _) => dt,
            },
        };
        return Ok(Pace::Fixed(dt));
    };
    let steps = options.stepping();
    let longest = match (given, steps) {
        (Some(dt), _) => dt,
        // Bodies that nothing accelerates get there in one step.
        (None, TimeSteps::Shared) => end - start,
        (None, TimeSteps::Blocks) => match suggested()? {
            0.0 => end - start,
            longest => {
                // A whole number of longest steps from one snapshot to the next, or to the end.
                let every = options.snapshot_every()?.unwrap_or(f64::INFINITY);
                let span = every.min(end - start);
                span / (span / longest).ceil()
            }
        },
    };
    Ok(Pace::Adaptive {
        eta,
        longest: longest.min(end - start),
        end,
        steps,
    })
}

/// Steps from the beginning of the run to its end: the last of them, and the last before each snapshot,
/// are shortened to end there.
pub(super) fn steps(options: &Options, start: f64, pace: Pace) -> anyhow::Result<u64> {
    match (pace, options.until()?) {
        (Pace::Adaptive { .. }, _) => Ok(u64::MAX),
        (Pace::Fixed(_), None) => Ok(options.steps.unwrap_or(DEFAULT_STEPS)),
        (Pace::Fixed(dt), Some(end)) => {
            // Rounding shall not add a step, nor the snapshot that it puts before the end.
            let within = |span: f64| (span / dt.abs() * (1.0 - 1e-12)).ceil();
            let span = (end - start) * dt.signum();
            let steps = match options.snapshot_every()? {
                Some(every) if every < span => {
                    let before = (span / every * (1.0 - 1e-12)).ceil() - 1.0;
                    before * within(every) + within(span - before * every)
                }
                _ => within(span),
            };
            ensure!(
                (0.0..1e18).contains(&steps),
                "steps of {} do not lead from time {} to --until {}",
                say::plain(dt),
                say::plain(start),
                say::plain(end)
            );
            Ok(steps as u64)
        }
    }
}
