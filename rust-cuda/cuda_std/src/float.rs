//! Floating-point arithmetic as the GPU does it.

use crate::backend;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

pub use crate::backend::Half as f16;

/// A floating-point type that kernels compute in. Operations beyond `+`, `-`, `*` and `/` (which round
/// once each: nothing is ever contracted to a fused operation but by [`mul_add`](GpuFloat::mul_add)).
pub trait GpuFloat:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// Nearest value to `x`.
    fn from_f64(x: f64) -> Self;
    /// The same value.
    fn to_f64(self) -> f64;
    /// `self · b + c` with one rounding.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// The larger one; of a number and a NaN the number, where the type has an instruction for it.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self < other { other } else { self }
    }
    /// Without its sign.
    #[inline(always)]
    fn magnitude(self) -> Self {
        if self < Self::from_f64(0.0) {
            -self
        } else {
            self
        }
    }
    /// √self, correctly rounded (in `f16` up to a double rounding in `f32`).
    fn sqrt_exact(self) -> Self;
    /// 1/√self from a correctly rounded root and a correctly rounded division.
    fn rsqrt_exact(self) -> Self;
    /// 1/√self by the special-function unit (`rsqrt.approx`): relative error ≤ 2⁻²² in `f32`. In
    /// `f64` the unit gives a first guess of some 20 bits, and one step of third order brings it to
    /// a few units in the last place. There is no `f16` unit: that goes through `f32`.
    fn rsqrt_approx(self) -> Self;
    /// 1/√self³ by the special-function unit: the cube of [`rsqrt_approx`](Self::rsqrt_approx),
    /// except that `f64` refines the cube of the first guess, which is one operation less.
    #[inline(always)]
    fn rsqrt_cubed_approx(self) -> Self {
        let root = self.rsqrt_approx();
        root * root * root
    }
}

impl GpuFloat for f32 {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        backend::fma_f32(self, b, c)
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn sqrt_exact(self) -> Self {
        backend::sqrt_f32(self)
    }
    #[inline(always)]
    fn rsqrt_exact(self) -> Self {
        1.0 / backend::sqrt_f32(self)
    }
    #[inline(always)]
    fn rsqrt_approx(self) -> Self {
        backend::rsqrt_approx_f32(self)
    }
}

impl GpuFloat for f64 {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        backend::fma_f64(self, b, c)
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn sqrt_exact(self) -> Self {
        backend::sqrt_f64(self)
    }
    #[inline(always)]
    fn rsqrt_exact(self) -> Self {
        1.0 / backend::sqrt_f64(self)
    }
    #[inline(always)]
    fn rsqrt_approx(self) -> Self {
        let y = backend::rsqrt_seed_f64(self);
        // With e = 1 − x y²: 1/√x = y (1 + e/2 + 3e²/8 + O(e³)).
        let e = backend::fma_f64(-self * y, y, 1.0);
        backend::fma_f64(y * e, backend::fma_f64(e, 0.375, 0.5), y)
    }
    #[inline(always)]
    fn rsqrt_cubed_approx(self) -> Self {
        let y = backend::rsqrt_seed_f64(self);
        let y2 = y * y;
        // With e = 1 − x y²: 1/√x³ = y³ (1 + 3e/2 + 15e²/8 + O(e³)).
        let e = backend::fma_f64(-self, y2, 1.0);
        let y3 = y2 * y;
        backend::fma_f64(y3 * e, backend::fma_f64(e, 1.875, 1.5), y3)
    }
}

impl GpuFloat for f16 {
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        backend::f16_from_f64(x)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        backend::fma_f16(self, b, c)
    }
    #[inline(always)]
    fn sqrt_exact(self) -> Self {
        backend::sqrt_f16(self)
    }
    #[inline(always)]
    fn rsqrt_exact(self) -> Self {
        Self::from_f64(f64::from((self.to_f64() as f32).rsqrt_exact()))
    }
    #[inline(always)]
    fn rsqrt_approx(self) -> Self {
        Self::from_f64(f64::from((self.to_f64() as f32).rsqrt_approx()))
    }
}
