//! Numbers as unevaluated sums of two f32: 48 bits and f32's range, without double-precision units,
//! of which most GPUs have one for every 64 of single precision.
//!
//! The rounding error of an operation in f32 is itself an f32, and further operations find it (T. Dekker,
//! Numer. Math. 18, 224, 1971; D. Knuth, The Art of Computer Programming, vol. 2, 4.2.2): that of a
//! product by one fused multiply–add, that of a sum by five additions, whichever term is the
//! larger. It all rests on each operation rounding once, as written: [`GpuFloat`] promises that
//! nothing is contracted. The operations here are the cheap ones, which leave the low part within a
//! few units of the high one's last place instead of half of one.

use core::cmp::Ordering;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use crate::numerics::{Far, Precision, Real};
use cuda_std::GpuFloat;
use cuda_std::warp::Shuffle;

/// `high + low`. Compared part by part: by value where both are [renormalised](Real::renormalised).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DoubleSingle {
    /// The number, rounded.
    pub high: f32,
    /// The rest, which `high` rounds off.
    pub low: f32,
}

impl PartialOrd for DoubleSingle {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.high.partial_cmp(&other.high) {
            Some(Ordering::Equal) => self.low.partial_cmp(&other.low),
            unequal => unequal,
        }
    }

    /// In kernels' inner loops: three comparisons, where [`partial_cmp`](Self::partial_cmp) compiles to
    /// branches.
    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        self.high < other.high || (self.high == other.high && self.low < other.low)
    }
}

/// An f32 as it is.
impl From<f32> for DoubleSingle {
    #[inline(always)]
    fn from(high: f32) -> Self {
        Self { high, low: 0.0 }
    }
}

/// `a + b` and what it rounds off: 6 additions.
#[inline(always)]
fn two_sum(a: f32, b: f32) -> DoubleSingle {
    let high = a + b;
    let second = high - a;
    let first = high - second;
    DoubleSingle {
        high,
        low: (a - first) + (b - second),
    }
}

/// `a + b` and what it rounds off, where |a| ≥ |b| or a = 0: 3 additions.
#[inline(always)]
fn fast_two_sum(a: f32, b: f32) -> DoubleSingle {
    let high = a + b;
    DoubleSingle {
        high,
        low: b - (high - a),
    }
}

/// `a · b` and what it rounds off: a multiplication and a multiply–add.
#[inline(always)]
fn two_product(a: f32, b: f32) -> DoubleSingle {
    let high = a * b;
    DoubleSingle {
        high,
        low: a.mul_add(b, -high),
    }
}

impl DoubleSingle {
    /// An estimate y of 1/√self, y² and `1 − self · y²`: it is off by some 2⁻²³, and the last number
    /// by 2⁻⁴⁶.
    #[inline(always)]
    fn estimate(self) -> (f32, DoubleSingle, f32) {
        let y = self.high.rsqrt_approx();
        let square = two_product(y, y);
        let rest = (-self.high).mul_add(square.high, 1.0);
        let rest = (-self.high).mul_add(square.low, rest);
        (y, square, (-self.low).mul_add(square.high, rest))
    }
}

impl Add for DoubleSingle {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let sum = two_sum(self.high, other.high);
        fast_two_sum(sum.high, sum.low + (self.low + other.low))
    }
}

impl Sub for DoubleSingle {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for DoubleSingle {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self {
            high: -self.high,
            low: -self.low,
        }
    }
}

impl Mul for DoubleSingle {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let product = two_product(self.high, other.high);
        let low = self.high.mul_add(other.low, product.low);
        Self {
            high: product.high,
            low: self.low.mul_add(other.high, low),
        }
    }
}

impl Div for DoubleSingle {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let quotient = self.high / other.high;
        let rest = self - Self::from(quotient) * other;
        fast_two_sum(quotient, rest.high / other.high)
    }
}

impl AddAssign for DoubleSingle {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl GpuFloat for DoubleSingle {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        let high = x as f32;
        Self {
            high,
            low: (x - f64::from(high)) as f32,
        }
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self.high) + f64::from(self.low)
    }

    /// The product's rounding needs no operation of its own: the one that finds what the sum left
    /// out of the product finds it too.
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        let product = self.high * b.high;
        let high = c.high + product;
        let second = high - c.high;
        let first = high - second;
        let of_first = c.high - first;
        let of_second = self.high.mul_add(b.high, -second);
        let low = self.high.mul_add(b.low, c.low);
        let low = self.low.mul_add(b.high, low);
        Self {
            high,
            low: (low + of_first) + of_second,
        }
    }

    #[inline(always)]
    fn sqrt_exact(self) -> Self {
        if self.high == 0.0 {
            return self;
        }
        self * self.rsqrt_approx()
    }

    #[inline(always)]
    fn rsqrt_exact(self) -> Self {
        self.rsqrt_approx()
    }

    #[inline(always)]
    fn rsqrt_approx(self) -> Self {
        let (y, _, e) = self.estimate();
        // 1/√x = y (1 + e/2 + O(e²)).
        fast_two_sum(y, y * (0.5 * e))
    }

    #[inline(always)]
    fn rsqrt_cubed_approx(self) -> Self {
        let (y, square, e) = self.estimate();
        // 1/√x³ = y³ (1 + 3e/2 + O(e²)).
        let cube = two_product(square.high, y);
        let low = square.low.mul_add(y, cube.low);
        Self {
            high: cube.high,
            low: cube.high.mul_add(1.5 * e, low),
        }
    }
}

impl Real for DoubleSingle {
    const PRECISION: Precision = Precision::DoubleSingle;
    const SMALLEST_SQUARE: Self = Self {
        high: f32::SMALLEST_SQUARE,
        low: 0.0,
    };

    /// With a low part that is no more than half of the high one's last place.
    #[inline(always)]
    fn renormalised(self) -> Self {
        fast_two_sum(self.high, self.low)
    }
}

impl Far for DoubleSingle {
    const FAR: Self = Self {
        high: f32::FAR,
        low: 0.0,
    };
}

impl Shuffle for DoubleSingle {
    #[inline(always)]
    #[track_caller]
    fn shuffle(self, lane: u32) -> Self {
        Self {
            high: self.high.shuffle(lane),
            low: self.low.shuffle(lane),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all signs and of magnitudes from 2⁻²⁰ to 2²⁰, with 48 bits and more.
    fn numbers() -> Vec<f64> {
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 11
        };
        let number = |bits: u64, exponent: u64| {
            let fraction = bits as f64 / (1_u64 << 53) as f64;
            (2.0 * fraction - 1.0) * 2f64.powi((exponent % 41) as i32 - 20)
        };
        (0..2000).map(|_| number(next(), next())).collect()
    }

    fn of(x: f64) -> DoubleSingle {
        DoubleSingle::from_f64(x)
    }

    /// Half a unit in the last of 48 places.
    const U: f64 = 1.0 / (1_u64 << 48) as f64;

    #[test]
    fn f64_and_back() {
        for x in numbers() {
            assert!((of(x).to_f64() - x).abs() <= U * x.abs(), "{x:e}");
        }
        assert_eq!(of(0.0).to_f64(), 0.0);
        assert!(of(f64::NAN).to_f64().is_nan());
    }

    /// Of sums that cancel too: an error is one of the terms.
    #[test]
    fn operations_keep_their_digits() {
        let numbers = numbers();
        for three in numbers.windows(3) {
            let [x, y, z] = [0, 1, 2].map(|k| of(three[k]));
            // As rounded, which the oracle's own rounding is small beside.
            let [a, b, c] = [x, y, z].map(GpuFloat::to_f64);
            let check = |what: &str, computed: DoubleSingle, exact: f64, terms: f64| {
                let error = (computed.to_f64() - exact).abs();
                assert!(
                    error <= 4.0 * U * terms,
                    "{what} {a:e} {b:e} {c:e}: {error:e}"
                );
            };
            check("+", x + y, a + b, a.abs() + b.abs());
            check("-", x - y, a - b, a.abs() + b.abs());
            let near = of(a * (1.0 + 1e-6));
            check("near", near - x, near.to_f64() - a, 2.0 * a.abs());
            check("*", x * y, a * b, (a * b).abs());
            check("/", x / y, a / b, 2.0 * (a / b).abs());
            let terms = (a * b).abs() + c.abs();
            check("fma", x.mul_add(y, z), a * b + c, terms);
            let cancelled = of(-a * b);
            let left = a * b + cancelled.to_f64();
            check(
                "cancelling fma",
                x.mul_add(y, cancelled),
                left,
                2.0 * (a * b).abs(),
            );
            let positive = of(a.abs());
            let root = a.abs().sqrt();
            check("sqrt", positive.sqrt_exact(), root, 2.0 * root);
            check("rsqrt", positive.rsqrt_approx(), 1.0 / root, 2.0 / root);
            let cube = 1.0 / (root * root * root);
            // What the series leaves out, 15/8 e² with e ≤ 2⁻²¹·⁹.
            check("rsqrt³", positive.rsqrt_cubed_approx(), cube, 12.0 * cube);
        }
    }

    /// Terms that an f32 loses one after another: what the low part rounds off of them stays within
    /// the stated roundoff.
    #[test]
    fn sums_keep_what_f32_loses() {
        const TERMS: u32 = 128;
        let term = of(3e-8);
        let mut sum = DoubleSingle::from(1.0);
        for _ in 0..TERMS {
            sum = term.mul_add(of(1.0), sum);
        }
        let exact = 1.0 + f64::from(TERMS) * term.to_f64();
        let error = (sum.to_f64() - exact).abs();
        let roundoff = Precision::DoubleSingle.unit_roundoff();
        assert!(error <= f64::from(TERMS) * roundoff * exact, "{error:e}");
        assert_eq!(1.0_f32 + 3e-8, 1.0);
    }

    #[test]
    fn order_is_that_of_numbers() {
        let (one, more) = (of(1.0), of(1.0 + 1e-12));
        assert!(one == one && one != more);
        assert!(of(-1.0) < one && one > of(0.5));
        assert_eq!(one.partial_cmp(&more), Some(Ordering::Less));
        assert_eq!(of(f64::NAN).partial_cmp(&one), None);
    }
}
