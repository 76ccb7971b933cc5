//! Potentials, per unit of G times mass where a field has a mass.

use gpu_kernels::fields::elementary::{lower_gamma, power_series, upper_fraction};
use gpu_kernels::fields::{Kind, PARAMETERS};

/// Potential of a field at `x` from its centre, with the parameters of its record.
pub(super) fn potential(kind: Kind, p: [f64; PARAMETERS], [x, y, z]: [f64; 3]) -> f64 {
    let plane = x * x + y * y;
    let square = plane + z * z;
    let r = square.sqrt();
    let [gm, scale, third, fourth, ..] = p;
    match kind {
        Kind::Point => -gm / r,
        Kind::Plummer => -gm / (square + scale * scale).sqrt(),
        Kind::Hernquist => -gm / (r + scale),
        Kind::Nfw if r == 0.0 => -gm / scale,
        Kind::Nfw => -gm * (r / scale).ln_1p() / r,
        Kind::MiyamotoNagai => -gm / plane.sqrt().hypot(scale + z.hypot(third)),
        Kind::Isochrone => -gm / (scale + r.hypot(scale)),
        Kind::Logarithmic => {
            let [speed_squared, core, flattening, ..] = p;
            let height = z / flattening;
            0.5 * speed_squared * (plane + height * height + core * core).ln()
        }
        Kind::PowerLaw => power_law(gm, scale, third, fourth, r),
        Kind::Tide => {
            let [_, radial, vertical, ..] = p;
            0.5 * (vertical * z * z - radial * x * x)
        }
    }
}

/// Mass within acts as a point; shells beyond have the potential of their own radius:
/// `−GM (γ(s, x²)/r + Γ(s − ½, x²)/c)/Γ(s)` with s = 3/2 − α/2 and x = r/c.
fn power_law(gm: f64, cutoff: f64, exponent: f64, complete: f64, r: f64) -> f64 {
    let s = 1.5 - 0.5 * exponent;
    let square = (r / cutoff) * (r / cutoff);
    let beyond = match square {
        0.0 => power_series(s - 0.5, COMPLETE),
        x if x < s + 0.5 => power_series(s - 0.5, COMPLETE) - power_series(s - 0.5, x),
        x => upper_fraction(s - 0.5, x),
    };
    let within = match square {
        0.0 => 0.0,
        x => lower_gamma(s, x, complete) / r,
    };
    -gm * (within + beyond / cutoff) / complete
}

/// An argument from which on the lower incomplete gamma function is the complete one to rounding.
const COMPLETE: f64 = 60.0;

/// Γ(s) for s in 0 … 2.
pub(super) fn gamma(s: f64) -> f64 {
    power_series(s, COMPLETE)
}
