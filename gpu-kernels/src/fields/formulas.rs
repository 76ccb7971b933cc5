//! Accelerations of single fields, about their centre.

use super::elementary::{exp, ln, lower_gamma};
use super::jet::Jet;
use super::{Kind, PARAMETERS};

/// Acceleration at `x` from the centre, with its derivatives where `x` moves as it is said to. At the
/// centre of a field that has no direction there it is zero.
#[inline(always)]
pub(super) fn acceleration<const K: usize>(
    kind: u32,
    p: [f64; PARAMETERS],
    x: [Jet<K>; 3],
) -> [Jet<K>; 3] {
    let is = |other: Kind| kind == other as u32;
    let plane = x[0] * x[0] + x[1] * x[1];
    let height = x[2] * x[2];
    let square = plane + height;
    if is(Kind::MiyamotoNagai) {
        let [gm, a, b, ..] = p;
        let s = (height + b * b).sqrt();
        let reach = s + a;
        let d = plane + reach * reach;
        let pull = Jet::constant(-gm) / (d * d.sqrt());
        return [pull * x[0], pull * x[1], pull * x[2] * reach / s];
    }
    if is(Kind::Plummer) {
        let [gm, b, ..] = p;
        let d = square + b * b;
        return radial(Jet::constant(-gm) / (d * d.sqrt()), x);
    }
    if is(Kind::Isochrone) {
        let [gm, b, ..] = p;
        let s = (square + b * b).sqrt();
        let reach = s + b;
        return radial(Jet::constant(-gm) / (s * reach * reach), x);
    }
    if is(Kind::Logarithmic) {
        let [speed_squared, core, flattening, ..] = p;
        let flat = 1.0 / (flattening * flattening);
        let d = plane + height * flat + core * core;
        if d.0[0] == 0.0 {
            return [Jet::constant(0.0); 3];
        }
        let pull = Jet::constant(-speed_squared) / d;
        return [pull * x[0], pull * x[1], pull * x[2] * flat];
    }
    if square.0[0] == 0.0 {
        return [Jet::constant(0.0); 3];
    }
    let r = square.sqrt();
    let [gm, scale, ..] = p;
    let pull = if is(Kind::Point) {
        Jet::constant(-gm) / (square * r)
    } else if is(Kind::Hernquist) {
        let reach = r + scale;
        Jet::constant(-gm) / (r * reach * reach)
    } else if is(Kind::Nfw) {
        let x = r * (1.0 / scale);
        let y = x.0[0];
        let reach = 1.0 + y;
        let slope = y / (reach * reach);
        let curvature = (1.0 - y) / (reach * reach * reach);
        x.through(nfw_mass(y), slope, curvature) * -gm / (square * r)
    } else {
        let [_, cutoff, exponent, complete, ..] = p;
        let (x, s) = (r.0[0] / cutoff, 1.5 - 0.5 * exponent);
        let within = lower_gamma(s, x * x, complete) / complete;
        // d/dr of it is 2/rc x²⁻ᵅ e^(−x²)/Γ(s), and the derivative of that ((2 − α)/r − 2r/rc²) times as
        // much.
        let slope = 2.0 / (cutoff * complete) * exp((2.0 - exponent) * ln(x) - x * x);
        let rate = slope * ((2.0 - exponent) / r.0[0] - 2.0 * x / cutoff);
        r.through(within, slope, rate) * -gm / (square * r)
    };
    radial(pull, x)
}

/// Mass of a [`Kind::Nfw`] within x scale radii, of `4π ρ₀ a³`: `ln(1 + x) − x/(1 + x)`. Near the
/// centre, where that cancels, `Σ zᵏ/k` from k = 2, with z = x/(1 + x).
#[inline(always)]
pub fn nfw_mass(x: f64) -> f64 {
    let reach = 1.0 + x;
    let z = x / reach;
    if x > 0.1 {
        // With what the sum was rounded by.
        return ln(reach) + (x - (reach - 1.0)) / reach - z;
    }
    // z ≤ 0.091 leaves 2⁻⁵⁸ of the sum.
    let mut sum = 0.0;
    let mut i = 0;
    while i < RECIPROCALS.len() {
        sum = sum * z + RECIPROCALS[i];
        i += 1;
    }
    sum * z * z
}

/// 1/k from k = 17 to k = 2: no more than a loop is unrolled to, so that they are constants in the code.
const RECIPROCALS: [f64; 16] = {
    let mut reciprocals = [0.0; 16];
    let mut i = 0;
    while i < 16 {
        reciprocals[i] = 1.0 / (17 - i) as f64;
        i += 1;
    }
    reciprocals
};

#[inline(always)]
fn radial<const K: usize>(pull: Jet<K>, x: [Jet<K>; 3]) -> [Jet<K>; 3] {
    [pull * x[0], pull * x[1], pull * x[2]]
}
