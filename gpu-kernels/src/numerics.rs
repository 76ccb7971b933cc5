//! Numerics of the pair formula: the precision and three independent policies, bundled in one type.

use core::marker::PhantomData;
use core::ops::{Add, Mul, Neg, Sub};
use cuda_std::{GpuFloat, f16};

/// Operations that the pair formula needs: on single numbers in the kernels, on vector registers in
/// the CPU path.
pub trait PairArithmetic {
    /// A number, or a vector of them.
    type Real: Copy
        + Add<Output = Self::Real>
        + Sub<Output = Self::Real>
        + Mul<Output = Self::Real>
        + Neg<Output = Self::Real>;
    /// The same number everywhere.
    fn constant(x: f64) -> Self::Real;
    /// `a · b + c`.
    fn mul_add(a: Self::Real, b: Self::Real, c: Self::Real) -> Self::Real;
    /// 1/√x of a squared distance.
    fn inverse_sqrt(x: Self::Real) -> Self::Real;
    /// 1/√x³ of a squared distance.
    fn inverse_cube(x: Self::Real) -> Self::Real;
    /// `weight · 1/√x³` of a squared distance.
    #[inline(always)]
    fn weighted_inverse_cube(weight: Self::Real, x: Self::Real) -> Self::Real {
        let inverse = Self::inverse_sqrt(x);
        (weight * inverse) * (inverse * inverse)
    }
}

/// The arithmetic of a kernel.
pub trait Arithmetic: PairArithmetic<Real: Real> {
    /// The same for pairs with ε > 0, of which none is tested.
    type Softened: Arithmetic<Real = Self::Real>;
    /// The policies as data, for tables.
    const POLICY: NumericsPolicy;
    /// True if a pair at this squared distance contributes nothing.
    fn vanishes(x: Self::Real) -> bool;
}

/// Precision and policies as data. [`Closest`] decides two of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumericsPolicy {
    /// Type of every value.
    pub precision: Precision,
    /// Multiply–adds are one instruction: [`MultiplyAdd`].
    pub fused: bool,
    /// 1/√ is the special-function unit's: [`InverseSqrt`].
    pub approximate: bool,
    /// Pairs at distance zero are handled, as ε = 0 needs: [`Closest`].
    pub unsoftened: bool,
    /// Each pair is tested for being a body with itself, and then left out: [`Closest`].
    pub skips_self: bool,
}

/// Name of a floating-point type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Half.
    F16,
    /// Single.
    F32,
    /// A sum of two singles.
    DoubleSingle,
    /// Double.
    F64,
}

impl Precision {
    /// [`Real::SMALLEST_SQUARE`] of the type.
    pub const fn smallest_square(self) -> f64 {
        match self {
            Self::F16 => 1.0 / (1_u64 << 10) as f64,
            Self::F32 | Self::DoubleSingle => f32::SMALLEST_SQUARE as f64,
            Self::F64 => f64::SMALLEST_SQUARE,
        }
    }

    /// Half the distance from 1 to the next value: the relative error of one rounding.
    ///
    /// Sums of two singles have 48 bits, of which an operation loses two. A chain of multiply–adds
    /// loses more: after k of them the low part may be k 2⁻²⁵ of the sum, and each of three roundings
    /// an addition 2⁻²⁵ of that. Over the 128 after which sums are [renormalised](Real::renormalised) that is
    /// 3 · 64 · 2⁻⁵⁰ an addition if all are as large as can be, and half of it on average: 2⁻⁴³·⁴.
    pub const fn unit_roundoff(self) -> f64 {
        match self {
            Self::F16 => 1.0 / (1_u64 << 11) as f64,
            Self::F32 => 1.0 / (1_u64 << 24) as f64,
            Self::DoubleSingle => 1.0 / (1_u64 << 43) as f64,
            Self::F64 => 1.0 / (1_u64 << 53) as f64,
        }
    }

    /// Bytes of a value.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
            Self::DoubleSingle | Self::F64 => 8,
        }
    }

    /// The type's name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::DoubleSingle => "f32 + f32",
            Self::F64 => "f64",
        }
    }
}

/// A floating-point type that kernels compute in.
pub trait Real: GpuFloat {
    /// Name of the type.
    const PRECISION: Precision;
    /// The smallest squared distance whose 1/d³ is finite, with room for a weight of 1. Squared
    /// distances below count as zero, a squared softening too.
    const SMALLEST_SQUARE: Self;

    /// Renormalised: the same value after many multiply–adds, in the form that loses least in those to
    /// come.
    #[inline(always)]
    fn renormalised(self) -> Self {
        self
    }
}

impl Real for f16 {
    const PRECISION: Precision = Precision::F16;
    /// 2⁻¹⁰.
    const SMALLEST_SQUARE: Self = f16::from_bits((15 - 10) << 10);
}

impl Real for f32 {
    const PRECISION: Precision = Precision::F32;
    const SMALLEST_SQUARE: Self = 1.0 / (1_u128 << 84) as f32;
}

impl Real for f64 {
    const PRECISION: Precision = Precision::F64;
    /// 2⁻⁶⁸⁰.
    const SMALLEST_SQUARE: Self = f64::from_bits((1023 - 680) << 52);
}

/// Numbers with room for a position so far out that a body there exerts no force; halves have none.
pub trait Far: Real {
    /// A coordinate so far out that 1/d³ from there to any body is zero, and d² still finite: the
    /// position of padding bodies.
    const FAR: Self;
}

impl Far for f32 {
    const FAR: Self = (1_u64 << 60) as f32;
}

impl Far for f64 {
    /// 2⁴⁰⁰.
    const FAR: Self = f64::from_bits((1023 + 400) << 52);
}

/// Policy of a multiply–add: one rounding or two.
pub trait MultiplyAdd {
    /// `a · b + c` rounds once.
    const FUSED: bool;
    /// `a · b + c`.
    fn mul_add<R: Real>(a: R, b: R, c: R) -> R;
}

/// One fused instruction.
#[derive(Clone, Copy, Debug)]
pub enum Fused {}

impl MultiplyAdd for Fused {
    const FUSED: bool = true;
    #[inline(always)]
    fn mul_add<R: Real>(a: R, b: R, c: R) -> R {
        a.mul_add(b, c)
    }
}

/// A multiplication and an addition, each rounded.
#[derive(Clone, Copy, Debug)]
pub enum Separate {}

impl MultiplyAdd for Separate {
    const FUSED: bool = false;
    #[inline(always)]
    fn mul_add<R: Real>(a: R, b: R, c: R) -> R {
        a * b + c
    }
}

/// Policy of 1/√: the unit that computes it.
pub trait InverseSqrt {
    /// From the special-function unit.
    const APPROXIMATE: bool;
    /// 1/√x.
    fn inverse_sqrt<R: Real>(x: R) -> R;
    /// 1/√x³.
    fn inverse_cube<R: Real>(x: R) -> R;
}

/// A correctly rounded root and a correctly rounded division.
#[derive(Clone, Copy, Debug)]
pub enum Exact {}

impl InverseSqrt for Exact {
    const APPROXIMATE: bool = false;
    #[inline(always)]
    fn inverse_sqrt<R: Real>(x: R) -> R {
        x.rsqrt_exact()
    }
    #[inline(always)]
    fn inverse_cube<R: Real>(x: R) -> R {
        let root = x.rsqrt_exact();
        root * root * root
    }
}

/// The special-function unit's approximation.
#[derive(Clone, Copy, Debug)]
pub enum Approximate {}

impl InverseSqrt for Approximate {
    const APPROXIMATE: bool = true;
    #[inline(always)]
    fn inverse_sqrt<R: Real>(x: R) -> R {
        x.rsqrt_approx()
    }
    #[inline(always)]
    fn inverse_cube<R: Real>(x: R) -> R {
        x.rsqrt_cubed_approx()
    }
}

/// Policy of the closest pairs: squared distances that can be zero, and a body with itself.
pub trait Closest {
    /// A squared distance can be zero.
    const UNSOFTENED: bool;
    /// A body is never paired with itself: the schedule asks for each pair.
    const SKIPS_SELF: bool = false;
}

/// ε > 0: d² is never zero, and nothing is tested.
#[derive(Clone, Copy, Debug)]
pub enum Softened {}

impl Closest for Softened {
    const UNSOFTENED: bool = false;
}

/// ε = 0: a pair closer than [`Real::SMALLEST_SQUARE`] says, a body with itself among them,
/// contributes nothing.
#[derive(Clone, Copy, Debug)]
pub enum Unsoftened {}

impl Closest for Unsoftened {
    const UNSOFTENED: bool = true;
}

/// As `C`, and each pair is tested for being a body with itself, as codes without softening do. Bodies
/// that coincide are still left to `C`.
#[derive(Clone, Copy, Debug)]
pub struct SkipSelf<C>(PhantomData<C>);

impl<C: Closest> Closest for SkipSelf<C> {
    const UNSOFTENED: bool = C::UNSOFTENED;
    const SKIPS_SELF: bool = true;
}

/// As `C`: a body is paired with itself like with any other, and contributes nothing.
pub type KeepSelf<C> = C;

/// A combination of a precision and the three policies.
#[derive(Clone, Copy, Debug)]
pub struct Numerics<R, M, S, C>(PhantomData<(R, M, S, C)>);

impl<R: Real, M: MultiplyAdd, S: InverseSqrt, C: Closest> Arithmetic for Numerics<R, M, S, C> {
    type Softened = Numerics<R, M, S, Softened>;
    const POLICY: NumericsPolicy = NumericsPolicy {
        precision: R::PRECISION,
        fused: M::FUSED,
        approximate: S::APPROXIMATE,
        unsoftened: C::UNSOFTENED,
        skips_self: C::SKIPS_SELF,
    };

    #[inline(always)]
    fn vanishes(x: R) -> bool {
        // `<` is false for a NaN, which therefore stays one.
        C::UNSOFTENED && x < R::SMALLEST_SQUARE
    }
}

impl<R: Real, M: MultiplyAdd, S: InverseSqrt, C: Closest> PairArithmetic for Numerics<R, M, S, C> {
    type Real = R;

    #[inline(always)]
    fn constant(x: f64) -> R {
        R::from_f64(x)
    }

    #[inline(always)]
    fn mul_add(a: R, b: R, c: R) -> R {
        M::mul_add(a, b, c)
    }

    #[inline(always)]
    fn inverse_sqrt(x: R) -> R {
        if Self::vanishes(x) {
            R::from_f64(0.0)
        } else {
            S::inverse_sqrt(x)
        }
    }

    #[inline(always)]
    fn inverse_cube(x: R) -> R {
        if Self::vanishes(x) {
            R::from_f64(0.0)
        } else {
            S::inverse_cube(x)
        }
    }
}
