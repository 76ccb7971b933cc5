//! Conditions of a step: fields that are known until its end, and a length that is not too short.

use crate::backend::{Backend, ForceError};

/// Shortest step shared by all bodies, as a fraction of the longest one and of the time reached: less
/// than seven bits of such a step would be left in the time.
const SHORTEST_STEP: f64 = 1.0 / (1_u64 << 46) as f64;

/// Fraction of a step by which one may be longer than its length, to end where it is to end: what would
/// be left is rounding.
pub(super) const STRETCH: f64 = 1e-9;

/// Lets the orbit of the origin be known from one time to another, where there is one.
pub(super) fn reach(backend: &mut dyn Backend, from: f64, to: f64) -> Result<(), ForceError> {
    match backend.facts().external {
        Some(external) if !external.reaches(from, to) => backend.reach(from, to),
        _ => Ok(()),
    }
}

/// Lets fields that change with time be those of a step's beginning, if they are known until its end.
pub(super) fn begin_step(backend: &mut dyn Backend, time: f64, dt: f64) -> Result<(), ForceError> {
    if let Some(external) = backend.facts().external {
        // The last step of many may end where rounding puts it.
        let end = time + dt * (1.0 - STRETCH);
        external.fields().check_times(time, end)?;
    }
    // Steps of high order are made of some that begin before it and end after it.
    reach(backend, time - dt, time + 2.0 * dt)?;
    backend.set_time(time)?;
    Ok(())
}

/// Shortest step shared by all bodies at this time, of steps of which the longest is given.
pub(super) fn shortest_step(time: f64, longest: f64) -> f64 {
    let longest = if longest.is_finite() { longest } else { 0.0 };
    SHORTEST_STEP * longest.max(time.abs())
}

/// Refuses a step that is too short, or not a number, and names the body that asks for it: the one with
/// the largest acceleration.
pub(super) fn check_step(
    backend: &mut dyn Backend,
    allowed: f64,
    shortest: f64,
) -> Result<(), ForceError> {
    if allowed >= shortest {
        return Ok(());
    }
    let accelerations = backend.accelerations()?;
    let squares = accelerations.iter().map(|a| a.iter().map(|x| x * x).sum());
    // NaN comes after all numbers.
    let worst = squares
        .enumerate()
        .max_by(|a: &(usize, f64), b| a.1.total_cmp(&b.1));
    let (body, square) = worst.unwrap_or_default();
    Err(match square.is_finite() && allowed.is_finite() {
        true => ForceError::StepTooShort {
            body,
            allowed,
            shortest,
        },
        false => ForceError::NotFinite { body },
    })
}
