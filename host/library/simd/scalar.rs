//! Fallback where no vector registers are known: numbers as vectors of one, and what the compiler
//! makes of them.

use cuda_std::GpuFloat;
use gpu_kernels::numerics::{MultiplyAdd, Separate};

use super::{Lane, Registers, Vector};

/// Numbers.
pub(crate) enum Scalar {}

impl Registers for Scalar {
    type F32 = f32;
    type F64 = f64;
    type MultiplyAdd = Separate;
}

impl<R: Lane + GpuFloat> Vector for R {
    type Lane = R;
    const LANES: usize = 1;
    const REGISTERS: usize = 16;
    const ESTIMATE_ERROR: f64 = 2.0 * R::PRECISION.unit_roundoff();
    const TERMS: usize = 0;

    fn splat(x: R) -> R {
        x
    }
    fn load(from: &[R]) -> R {
        from[0]
    }
    fn store(self, to: &mut [R]) {
        to[0] = self;
    }
    fn mul_add(self, b: R, c: R) -> R {
        Separate::mul_add(self, b, c)
    }
    fn exact_inverse_sqrt(self) -> R {
        self.rsqrt_exact()
    }
    fn estimate(self) -> R {
        self.rsqrt_exact()
    }
    fn zero_where_less(self, x: R, limit: R) -> R {
        if x < limit { R::default() } else { self }
    }
    fn larger(self, other: R) -> R {
        if self > other { self } else { other }
    }
    fn sum(self) -> R {
        self
    }
}
