//! Functions of numbers, as methods of a trait: kernels without the standard library import them.

macro_rules! float {
    ($(
        $(#[$doc:meta])* fn $name:ident(self $(, $argument:ident: $type:ty)*) -> $result:ty;
    )*) => {
        /// Functions of `f32` and `f64`. Here the standard library computes them, and on a GPU NVIDIA's library does. The
        /// last bits of results may differ.
        pub trait GpuFloat: Copy + PartialOrd {
            $($(#[$doc])* #[allow(missing_docs)] fn $name(self $(, $argument: $type)*) -> $result;)*
        }
        float!(@ f32 $($name ($($argument: $type),*) -> $result;)*);
        float!(@ f64 $($name ($($argument: $type),*) -> $result;)*);
    };
    (@ $float:ident $($name:ident ($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl GpuFloat for $float {
            $(
                #[inline(always)]
                fn $name(self $(, $argument: $type)*) -> $result {
                    $float::$name(self $(, $argument)*)
                }
            )*
        }
    };
}

float! {
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round(self) -> Self;
    fn trunc(self) -> Self;
    fn fract(self) -> Self;
    fn abs(self) -> Self;
    fn signum(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn mul_add(self, a: Self, b: Self) -> Self;
    fn div_euclid(self, rhs: Self) -> Self;
    fn rem_euclid(self, rhs: Self) -> Self;
    fn powi(self, n: i32) -> Self;
    fn powf(self, n: Self) -> Self;
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn ln(self) -> Self;
    fn log(self, base: Self) -> Self;
    fn log2(self) -> Self;
    fn log10(self) -> Self;
    fn cbrt(self) -> Self;
    fn hypot(self, other: Self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn atan2(self, other: Self) -> Self;
    fn sin_cos(self) -> (Self, Self);
    fn exp_m1(self) -> Self;
    fn ln_1p(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
}
