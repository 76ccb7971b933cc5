//! Elementary functions that a GPU has no instruction for, in f64: the same bits everywhere.

use cuda_std::GpuFloat;

/// ln 2 in two parts, the first with zeros at its end: its multiples by exponents are exact.
const LN_2: [f64; 2] = [
    f64::from_bits(0x3fe6_2e42_fee0_0000),
    f64::from_bits(0x3dea_39ef_3579_3c76),
];

/// `2/(2i + 1)` from i = 11 to i = 1, the series of 2 artanh s beside 2 s; s² ≤ 0.0295 leaves 2⁻⁶¹ of
/// its sum.
const ARTANH: [f64; 11] = {
    let mut coefficients = [0.0; 11];
    let mut i = 0;
    while i < 11 {
        coefficients[i] = 2.0 / (23 - 2 * i) as f64;
        i += 1;
    }
    coefficients
};

/// `1/n!` from n = 13 to n = 0; arguments of at most 0.35 leave 2⁻⁵⁷ of the sum.
const EXP: [f64; 14] = {
    let mut coefficients = [1.0; 14];
    let (mut n, mut factorial) = (1, 1.0);
    while n < 14 {
        factorial *= n as f64;
        coefficients[13 - n] = 1.0 / factorial;
        n += 1;
    }
    coefficients
};

/// Exponents below which `e^x` is taken for zero.
const LEAST_EXPONENT: f64 = -708.0;

/// Natural logarithm of a normal number > 0, to a unit in the last place.
///
/// # Formula
/// Of x = 2ᵏ (1 + f) with (1 + f)² in ½ … 2: ln(1 + f) = 2 artanh s with s = f/(2 + f), whose first
/// terms are f − f²/2 without a quotient's error.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    // The bits of √½, so that the exponent counts from there.
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let k = (bits.wrapping_sub(ROOT_HALF) as i64) >> 52;
    let f = f64::from_bits(bits.wrapping_sub((k << 52) as u64)) - 1.0;
    let s = f / (2.0 + f);
    let s2 = s * s;
    let mut tail = 0.0;
    let mut i = 0;
    while i < ARTANH.len() {
        tail = tail * s2 + ARTANH[i];
        i += 1;
    }
    let half_square = 0.5 * f * f;
    let k = k as f64;
    k * LN_2[0] + (f - (half_square - (s * (half_square + tail * s2) + k * LN_2[1])))
}

/// `e^x` for x ≤ 709, to two units in the last place; zero for x < −708.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    if x < LEAST_EXPONENT {
        return 0.0;
    }
    let half = if x < 0.0 { -0.5 } else { 0.5 };
    let k = (x * core::f64::consts::LOG2_E + half) as i32;
    let power = f64::from(k);
    let r = (x - power * LN_2[0]) - power * LN_2[1];
    let mut sum = 0.0;
    let mut i = 0;
    while i < EXP.len() {
        sum = sum * r + EXP[i];
        i += 1;
    }
    sum * f64::from_bits(((k + 1023) as u64) << 52)
}

/// Lower incomplete gamma function `γ(s, x) = ∫₀ˣ tˢ⁻¹ e⁻ᵗ dt` for s in 0 … 2 and x > 0, where
/// `complete` is Γ(s), to some units in the last place.
///
/// # Formula
/// `xˢ e⁻ˣ Σ xⁿ/(s (s + 1) … (s + n))`, all of whose terms are positive; from x = s + 1 on, Γ(s) less
/// Legendre's continued fraction of the upper function, from its end: as many terms as x asks for.
///
/// # Source
/// Olver et al. (2010), NIST Handbook of Mathematical Functions, 8.7.1 and 8.9.2.
#[inline(always)]
pub fn lower_gamma(s: f64, x: f64, complete: f64) -> f64 {
    if x < s + 1.0 {
        power_series(s, x)
    } else {
        complete - upper_fraction(s, x)
    }
}

/// The series of [`lower_gamma`].
#[inline(always)]
pub fn power_series(s: f64, x: f64) -> f64 {
    let mut term = 1.0 / s;
    let mut sum = term;
    let mut n = s + 1.0;
    while term > sum * (f64::EPSILON / 4.0) {
        term = term * x / n;
        sum += term;
        n += 1.0;
    }
    exp(s * ln(x) - x) * sum
}

/// The continued fraction of the upper function `Γ(s, x)`, for x ≥ 1.
#[inline(always)]
pub fn upper_fraction(s: f64, x: f64) -> f64 {
    if x > -LEAST_EXPONENT {
        return 0.0;
    }
    // Its n-th convergent is off by some e^(−4 √(n x)).
    let mut n = f64::from((4.0 + 100.0 / x) as i32);
    let mut tail = 0.0;
    while n > 0.5 {
        tail = n * (n - s) / (x + 2.0 * n + 1.0 - s - tail);
        n -= 1.0;
    }
    exp(s * ln(x) - x) / (x + 1.0 - s - tail)
}

/// Square root.
#[inline(always)]
pub(super) fn sqrt(x: f64) -> f64 {
    x.sqrt_exact()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(found: f64, expected: f64) -> f64 {
        ((found - expected) / expected).abs()
    }

    #[test]
    fn logarithm_and_exponential_are_those_of_the_machine() {
        let mut worst = [0.0_f64; 2];
        for i in 0..200_000 {
            let x = 1e-9 + f64::from(i) * 7.3e-5;
            for x in [x, 1.0 / x, x * 1e150, x * 1e-150] {
                let ln_x = ln(x);
                let expected = x.ln();
                let scale = expected.abs().max(f64::MIN_POSITIVE);
                worst[0] = worst[0].max((ln_x - expected).abs() / scale);
            }
            let x = f64::from(i) * 7e-3 - 700.0;
            worst[1] = worst[1].max(off(exp(x), x.exp()));
        }
        assert_eq!(ln(1.0), 0.0);
        assert_eq!((exp(0.0), exp(-800.0)), (1.0, 0.0));
        println!("ln {:e}, exp {:e}", worst[0], worst[1]);
        assert!(
            worst[0] <= 1.5 * f64::EPSILON,
            "ln is off by {:e}",
            worst[0]
        );
        assert!(
            worst[1] <= 2.0 * f64::EPSILON,
            "exp is off by {:e}",
            worst[1]
        );
    }

    /// γ(½, x) = √π erf √x and γ(1, x) = 1 − e⁻ˣ; the recurrence γ(s + 1, x) = s γ(s, x) − xˢ e⁻ˣ where
    /// it does not cancel; and both formulas where they meet.
    #[test]
    fn incomplete_gamma_functions() {
        for i in 1..400 {
            let x = f64::from(i) * 0.1;
            let found = lower_gamma(1.0, x, 1.0);
            assert!(off(found, -(-x).exp_m1()) <= 4e-15, "γ(1, {x}) = {found}");
        }
        // √π erf 1 and √π erf 2 (DLMF 7.2.1).
        let root = std::f64::consts::PI.sqrt();
        for (x, erf) in [
            (1.0, 0.842_700_792_949_714_9),
            (4.0, 0.995_322_265_018_952_7),
        ] {
            let found = lower_gamma(0.5, x, root);
            assert!(off(found, root * erf) <= 4e-15, "γ(½, {x}) = {found}");
        }
        for s in [0.1, 0.6, 0.9, 1.45] {
            let complete = power_series(s, 60.0);
            for x in [s + 1.0, 3.0, 5.0, 10.0, 30.0] {
                let (series, fraction) = (power_series(s, x), complete - upper_fraction(s, x));
                assert!(
                    off(fraction, series) <= 2e-14,
                    "{s}, {x}: {fraction} {series}"
                );
            }
        }
    }
}
