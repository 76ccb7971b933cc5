//! A vector register as a number: what the pair formula computes with on the CPU.
//!
//! Vector types are written out with intrinsics for one reason: compilers have no way to say "about
//! 1/√x", and the processor's own answer, refined, takes a half to three quarters of the time of a
//! root and a division. A file for each architecture lists its registers; what
//! they share is here. Loops are compiled once for each instruction set ([`InstructionSet`]).

mod instruction_set;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use instruction_set::InstructionSet;
pub(crate) use instruction_set::Kernel;

use std::marker::PhantomData;
use std::ops::{Add, Mul, Neg, Sub};

use cuda_std::GpuFloat;
use gpu_kernels::numerics::{Closest, MultiplyAdd, PairArithmetic, Real};

/// The vector registers of an instruction set.
pub trait Registers {
    /// Of f32.
    type F32: Vector<Lane = f32>;
    /// Of f64.
    type F64: Vector<Lane = f64>;
    /// Addition of a product; the same in both types.
    type MultiplyAdd: MultiplyAdd;
}

/// A number that fills vector registers: f32 or f64.
pub trait Lane: Real + Default + Send + Sync + 'static {
    /// The register that holds it.
    type In<S: Registers>: Vector<Lane = Self>;
}

impl Lane for f32 {
    type In<S: Registers> = S::F32;
}

impl Lane for f64 {
    type In<S: Registers> = S::F64;
}

/// A vector register.
///
/// Its operations may be used in functions only that are inlined into one compiled for the
/// instructions they need: see [`InstructionSet`].
pub trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// Type of a lane.
    type Lane: Lane;
    /// Number of lanes.
    const LANES: usize;
    /// Registers that there are: how much can be kept at hand.
    const REGISTERS: usize;
    /// Bound of the relative error of [`estimate`](Self::estimate).
    const ESTIMATE_ERROR: f64;
    /// Terms of the series of its root that bring it to rounding level.
    const TERMS: usize;

    /// `x` in every lane.
    fn splat(x: Self::Lane) -> Self;
    /// The first numbers of a slice.
    ///
    /// # Panics
    /// If it is shorter than the register.
    fn load(from: &[Self::Lane]) -> Self;
    /// Writes the lanes to the beginning of a slice.
    ///
    /// # Panics
    /// If it is shorter than the register.
    fn store(self, to: &mut [Self::Lane]);
    /// `self · b + c`, as [`Registers::MultiplyAdd`] says.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// 1/√self by a correctly rounded root and a correctly rounded division.
    fn exact_inverse_sqrt(self) -> Self;
    /// 1/√self, roughly.
    fn estimate(self) -> Self;
    /// Zero in the lanes where `x < limit`. A NaN is not less.
    fn zero_where_less(self, x: Self, limit: Self) -> Self;
    /// The larger of two numbers, in each lane; `other` where `self` is a NaN.
    fn larger(self, other: Self) -> Self;
    /// The sum of the lanes.
    fn sum(self) -> Self::Lane;
}

/// [`RootName`](crate::variants::RootName) as a type.
pub(crate) trait Root {
    fn inverse_sqrt<V: Vector>(x: V) -> V;
    /// `weight / √x³`, or 1/√x³ without a weight.
    fn inverse_cube<V: Vector>(weight: Option<V>, x: V) -> V;
}

pub(crate) enum Exact {}

impl Root for Exact {
    #[inline(always)]
    fn inverse_sqrt<V: Vector>(x: V) -> V {
        x.exact_inverse_sqrt()
    }
    #[inline(always)]
    fn inverse_cube<V: Vector>(weight: Option<V>, x: V) -> V {
        weighted_cube(weight, x.exact_inverse_sqrt())
    }
}

pub(crate) enum Estimated {}

impl Root for Estimated {
    #[inline(always)]
    fn inverse_sqrt<V: Vector>(x: V) -> V {
        x.estimate()
    }
    #[inline(always)]
    fn inverse_cube<V: Vector>(weight: Option<V>, x: V) -> V {
        weighted_cube(weight, x.estimate())
    }
}

pub(crate) enum Refined {}

impl Root for Refined {
    #[inline(always)]
    fn inverse_sqrt<V: Vector>(x: V) -> V {
        let y = x.estimate();
        let h = residual(x, y * y);
        series(y, h, [0.5, 0.375, 0.3125])
    }

    /// Refines the cube instead of the root, which saves a multiplication and two roundings.
    #[inline(always)]
    fn inverse_cube<V: Vector>(weight: Option<V>, x: V) -> V {
        let y = x.estimate();
        let y2 = y * y;
        let h = residual(x, y2);
        let cube = match weight {
            Some(weight) => (weight * y) * y2,
            None => y * y2,
        };
        series(cube, h, [1.5, 1.875, 2.1875])
    }
}

#[inline(always)]
fn weighted_cube<V: Vector>(weight: Option<V>, inverse: V) -> V {
    match weight {
        Some(weight) => (weight * inverse) * (inverse * inverse),
        None => inverse * (inverse * inverse),
    }
}

/// `h = 1 − x y²`: how far y is from 1/√x.
#[inline(always)]
fn residual<V: Vector>(x: V, y2: V) -> V {
    (-x).mul_add(y2, V::splat(V::Lane::from_f64(1.0)))
}

/// `(1 − h)^(−p/2)` times the `p`-th power of an estimate: `power · (1 + c₁h + c₂h² + …)`, as many
/// terms as the estimate needs. One term is Newton's step, two are Halley's.
///
/// For an estimate off by e, |h| ≤ 2e + e², and what is left out is about the next term: for the
/// cube 1.9h², 2.2h³ or 2.5h⁴.
#[inline(always)]
fn series<V: Vector>(power: V, h: V, coefficients: [f64; 3]) -> V {
    if V::TERMS == 0 {
        return power;
    }
    let [c1, c2, c3] = coefficients;
    let [c1, c2, c3] = [
        V::splat(V::Lane::from_f64(c1)),
        V::splat(V::Lane::from_f64(c2)),
        V::splat(V::Lane::from_f64(c3)),
    ];
    let sum = match V::TERMS {
        1 => c1,
        2 => h.mul_add(c2, c1),
        _ => h.mul_add(h.mul_add(c3, c2), c1),
    };
    (power * h).mul_add(sum, power)
}

/// The pair formula's arithmetic on vectors.
pub(crate) struct Lanes<V, S, C>(PhantomData<(V, S, C)>);

impl<V: Vector, S: Root, C: Closest> Lanes<V, S, C> {
    #[inline(always)]
    fn unless_closest(x: V, result: V) -> V {
        if C::UNSOFTENED {
            result.zero_where_less(x, V::splat(V::Lane::SMALLEST_SQUARE))
        } else {
            result
        }
    }
}

impl<V: Vector, S: Root, C: Closest> PairArithmetic for Lanes<V, S, C> {
    type Real = V;

    #[inline(always)]
    fn constant(x: f64) -> V {
        V::splat(V::Lane::from_f64(x))
    }

    #[inline(always)]
    fn mul_add(a: V, b: V, c: V) -> V {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn inverse_sqrt(x: V) -> V {
        Self::unless_closest(x, S::inverse_sqrt(x))
    }

    #[inline(always)]
    fn inverse_cube(x: V) -> V {
        Self::unless_closest(x, S::inverse_cube(None, x))
    }

    #[inline(always)]
    fn weighted_inverse_cube(weight: V, x: V) -> V {
        Self::unless_closest(x, S::inverse_cube(Some(weight), x))
    }
}

/// Lanes added two by two, the halves of the register first.
#[inline(always)]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "a number has no lanes to add")
)]
fn sum_of_halves<V: Vector, const LANES: usize>(vector: V) -> V::Lane {
    let mut lanes = [V::Lane::default(); LANES];
    vector.store(&mut lanes);
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Implements [`Vector`] for a new type around a register: a list of intrinsics, or of functions
/// that consist of them.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! vector {
    (
        $(#[$doc:meta])*
        $name:ident($register:ty): [$lane:ty; $lanes:literal], $registers:literal registers,
        $splat:path, $load:path, $store:path, $add:path, $sub:path, $mul:path, $neg:path,
        mul_add $mul_add:path, exact $exact:path, zero $zero:path, larger $larger:path,
        estimate $estimate:path, off by $error:expr, $terms:literal terms
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name($register);

        // Calls need no `unsafe` where the architecture always has the instructions.
        // SAFETY, for every block here: the instructions are there, because a function that computes
        // with this type is inlined into one that `InstructionSet::run` calls only where they are.
        // What is loaded or stored is a part of the slice, whose length is checked.
        vector!(@operator $name, Add, add, $add);
        vector!(@operator $name, Sub, sub, $sub);
        vector!(@operator $name, Mul, mul, $mul);

        #[allow(unused_unsafe)]
        impl std::ops::Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $neg(self.0) })
            }
        }

        #[allow(unused_unsafe)]
        impl Vector for $name {
            type Lane = $lane;
            const LANES: usize = $lanes;
            const REGISTERS: usize = $registers;
            const ESTIMATE_ERROR: f64 = $error;
            const TERMS: usize = $terms;

            #[inline(always)]
            fn splat(x: $lane) -> Self {
                // SAFETY: see above.
                Self(unsafe { $splat(x) })
            }
            #[inline(always)]
            fn load(from: &[$lane]) -> Self {
                let from = &from[..$lanes];
                // SAFETY: see above.
                Self(unsafe { $load(from.as_ptr()) })
            }
            #[inline(always)]
            fn store(self, to: &mut [$lane]) {
                let to = &mut to[..$lanes];
                // SAFETY: see above.
                unsafe { $store(to.as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mul_add(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn exact_inverse_sqrt(self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $exact(self.0) })
            }
            #[inline(always)]
            fn estimate(self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $estimate(self.0) })
            }
            #[inline(always)]
            fn zero_where_less(self, x: Self, limit: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $zero(self.0, x.0, limit.0) })
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $larger(self.0, other.0) })
            }
            #[inline(always)]
            fn sum(self) -> $lane {
                crate::simd::sum_of_halves::<Self, $lanes>(self)
            }
        }
    };
    (@operator $name:ident, $trait:ident, $method:ident, $intrinsic:path) => {
        #[allow(unused_unsafe)]
        impl std::ops::$trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: as in `Vector`'s methods.
                Self(unsafe { $intrinsic(self.0, other.0) })
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use vector;

#[cfg(test)]
mod tests {
    use gpu_kernels::numerics::{Precision, Softened, Unsoftened};

    use super::instruction_set::{InstructionSet, Kernel};
    use super::*;

    /// Worst relative errors of estimate, refined root and refined cube, in that order.
    struct Worst<R>(PhantomData<R>);

    impl<R: Lane> Kernel for Worst<R> {
        type Output = [f64; 3];
        #[inline(always)]
        fn run<S: Registers>(self) -> [f64; 3] {
            let smallest = R::SMALLEST_SQUARE.to_f64().log2();
            let mut worst = [0.0_f64; 3];
            for k in 0..20_000 {
                let k = f64::from(k);
                let x = R::from_f64(((10.0 - smallest) * k / 20_000.0 + smallest).exp2());
                let vector = <R::In<S>>::splat(x);
                let root = x.to_f64().sqrt();
                let results = [
                    (vector.estimate().sum(), 1.0 / root),
                    (Refined::inverse_sqrt(vector).sum(), 1.0 / root),
                    (
                        Refined::inverse_cube(None, vector).sum(),
                        1.0 / (root * root * root),
                    ),
                ];
                for (worst, (computed, exact)) in worst.iter_mut().zip(results) {
                    // Equal lanes, a power of two of them: their sum is exact, unless it overflows.
                    let computed = computed.to_f64() / <R::In<S>>::LANES as f64;
                    let error = ((computed - exact) / exact).abs();
                    if computed.is_finite() {
                        *worst = worst.max(error);
                    } else {
                        assert!(k < 2_000.0, "{k}: {computed}");
                    }
                }
            }
            worst
        }
    }

    #[test]
    fn estimates_are_as_good_as_they_say_and_refined_to_rounding() {
        for set in InstructionSet::available() {
            let check = |precision: Precision, worst: [f64; 3]| {
                let u = precision.unit_roundoff();
                let [estimate, root, cube] = worst;
                let stated = set.estimate_error(precision);
                assert!(estimate <= stated + 4.0 * u, "{set}: {estimate:e}");
                // What rounding adds, and what the series leaves out; two for the expectation.
                assert!(root <= 6.0 * u, "{set}: {root:e}");
                assert!(cube <= 10.5 * u, "{set}: {cube:e}");
            };
            let single = set.run(Worst::<f32>(PhantomData));
            check(Precision::F32, single);
            let double = set.run(Worst::<f64>(PhantomData));
            check(Precision::F64, double);
        }
    }

    struct Closest<R>(PhantomData<R>);

    impl<R: Lane> Kernel for Closest<R> {
        type Output = [f64; 4];
        #[inline(always)]
        fn run<S: Registers>(self) -> [f64; 4] {
            let cube = |x: f64| {
                let x = <R::In<S>>::splat(R::from_f64(x));
                let cube = Lanes::<R::In<S>, Refined, Unsoftened>::inverse_cube(x);
                cube.sum().to_f64() / <R::In<S>>::LANES as f64
            };
            let four = <R::In<S>>::splat(R::from_f64(4.0));
            let softened = Lanes::<R::In<S>, Exact, Softened>::inverse_sqrt(four).sum();
            [
                cube(0.0),
                cube(R::SMALLEST_SQUARE.to_f64() / 2.0),
                cube(f64::NAN),
                softened.to_f64() / <R::In<S>>::LANES as f64,
            ]
        }
    }

    #[test]
    fn the_closest_exert_nothing_and_nan_stays() {
        for set in InstructionSet::available() {
            for results in [
                set.run(Closest::<f32>(PhantomData)),
                set.run(Closest::<f64>(PhantomData)),
            ] {
                assert_eq!(
                    (results[0], results[1], results[3]),
                    (0.0, 0.0, 0.5),
                    "{set}"
                );
                assert!(results[2].is_nan(), "{set}");
            }
        }
    }
}
