//! Numbers with their derivatives in time: what is computed with them comes with its own.

use core::ops::{Add, Div, Mul, Sub};

use super::elementary::sqrt;

/// The first K ≤ 3 coefficients of a Taylor series in time: a value, its derivative, half of the second
/// derivative; zeros after them. Spelled out, for a loop over coefficients would keep them in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jet<const K: usize>(pub [f64; 3]);

impl<const K: usize> Jet<K> {
    /// A number that does not change.
    #[inline(always)]
    pub fn constant(value: f64) -> Self {
        Self([value, 0.0, 0.0])
    }

    /// √self, of a value > 0.
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        let Self([a, b, c]) = self;
        let root = sqrt(a);
        let mut result = Self::constant(root);
        if K > 1 {
            result.0[1] = b / (2.0 * root);
        }
        if K > 2 {
            result.0[2] = (c - result.0[1] * result.0[1]) / (2.0 * root);
        }
        result
    }

    /// `F(self)` for a function with this value of F, derivative and second derivative.
    #[inline(always)]
    pub fn through(self, value: f64, slope: f64, curvature: f64) -> Self {
        let Self([_, b, c]) = self;
        let mut result = Self::constant(value);
        if K > 1 {
            result.0[1] = slope * b;
        }
        if K > 2 {
            result.0[2] = slope * c + 0.5 * curvature * b * b;
        }
        result
    }
}

impl<const K: usize> Add for Jet<K> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (Self([a, b, c]), Self([d, e, f])) = (self, other);
        Self([a + d, b + e, c + f])
    }
}

impl<const K: usize> Sub for Jet<K> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let (Self([a, b, c]), Self([d, e, f])) = (self, other);
        Self([a - d, b - e, c - f])
    }
}

impl<const K: usize> Mul for Jet<K> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (Self([a, b, c]), Self([d, e, f])) = (self, other);
        let mut result = Self::constant(a * d);
        if K > 1 {
            result.0[1] = a * e + b * d;
        }
        if K > 2 {
            result.0[2] = a * f + b * e + c * d;
        }
        result
    }
}

impl<const K: usize> Div for Jet<K> {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let (Self([a, b, c]), Self([d, e, f])) = (self, other);
        let quotient = a / d;
        let mut result = Self::constant(quotient);
        if K > 1 {
            result.0[1] = (b - quotient * e) / d;
        }
        if K > 2 {
            result.0[2] = (c - quotient * f - result.0[1] * e) / d;
        }
        result
    }
}

impl<const K: usize> Add<f64> for Jet<K> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: f64) -> Self {
        let Self([a, b, c]) = self;
        Self([a + other, b, c])
    }
}

impl<const K: usize> Mul<f64> for Jet<K> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: f64) -> Self {
        let Self([a, b, c]) = self;
        Self([a * other, b * other, c * other])
    }
}
