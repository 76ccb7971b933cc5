//! What a run is judged by: conserved quantities, their drift, and the error of a force.
//!
//! Everything here is f64 on the host and sums are compensated, so that a drift which is seen
//! belongs to the run and not to its measurement. Quantities follow the force law: under
//! [`Law::Unit`](crate::force::Law::Unit) every body weighs 1, whatever its stored mass, because
//! only then are energy and momentum conserved.

mod compensated;
mod conserved;
mod digits;
mod energy;
mod force_error;
mod sample;

pub use compensated::CompensatedSum;
pub use conserved::{Conserved, Drift, angular_momentum, centre_of_mass, momentum};
pub use digits::DigitHistogram;
pub use energy::{Energy, kinetic};
pub use force_error::{Accuracy, Disagreement, LengthMismatch, check, tolerance};
pub use sample::{MASS_SHARES, Sample, lagrangian_radii};

/// `error / scale`, where an exact zero error is 0 even if there is nothing to compare it with.
///
/// NaN stays NaN and an error against a zero scale is infinite: neither passes `<= tolerance`.
fn relative(error: f64, scale: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / scale }
}

fn norm(v: [f64; 3]) -> f64 {
    v[0].hypot(v[1]).hypot(v[2])
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}
