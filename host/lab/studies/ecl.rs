//! The porting tutorial.

use gpu_kernels::numerics::Precision;

use super::{Measured, Start, Statistic, Study, base, rung};
use allpairs::integrator::Integrator;
use allpairs::physics::ForceLaw;
use allpairs::variants::{PairsName, RootName};
use allpairs::variants::{cpu, kernel};

#[rustfmt::skip]
pub(super) const STUDY: Study = Study {
    name: "ecl",
    summary: "star clusters of 1 000 to 300 000 bodies on three generations of GPUs",
    law: ForceLaw::Gravity,
    integrator: Integrator::Leapfrog,
    measured: Measured {
        bodies: &[1_000, 10_000, 100_000],
        systems: 1,
        start: Start::Plummer,
        steps: 10,
        repetitions: 3,
        statistic: Statistic::Median,
        note: "median of three runs; the number of steps is not reported, here ten; 300 000 bodies, too, on the largest GPU",
    },
    rungs: &[
        base("ecl/cpu", cpu(Precision::F32, RootName::Refined, PairsName::Twice).on_one_thread(),
            "one thread of the CPU")
            .reported("1 ×"),
        rung("ecl/one-thread", "ecl/cpu",
            kernel("one_thread_aos_f32_exact_separate_skip"),
            "the CPU's two loops in one thread of the GPU; i ≠ j is tested, for there is no softening")
            .reported("37–72 × slower than the CPU"),
        rung("ecl/n-threads", "ecl/one-thread",
            kernel("direct_aos_f32_exact_separate_skip"),
            "one thread a body, in blocks of 256")
            .reported("107–177 × the CPU"),
        rung("ecl/scalar-arrays", "ecl/n-threads",
            kernel("direct_soa_f32_exact_separate_skip"),
            "one array for each coordinate")
            .reported("0.83 / 0.96 / 0.82"),
        rung("ecl/const-params", "ecl/scalar-arrays",
            kernel("direct_soa_f32_exact_separate_skip_constant"),
            "parameters in constant memory instead of arguments")
            .reported("1.015 / 1.016 / 0.971"),
        rung("ecl/rsqrt", "ecl/const-params",
            kernel("direct_soa_f32_approximate_separate_skip_constant"),
            "1/√ from the special-function unit")
            .reported("0.99 / 1.83 / 1.64"),
        rung("ecl/two-loops", "ecl/rsqrt",
            kernel("two_loops_soa_f32_approximate_separate_constant"),
            "sources before and after the target in a loop each, instead of a test a pair")
            .reported("0.55 / 1.00 / 1.00"),
        rung("ecl/shared", "ecl/rsqrt",
            kernel("tiled_soa_f32_approximate_separate_skip_constant"),
            "sources wait in shared memory, a block's worth at a time")
            .reported("3.7 / 1.1 / 1.6"),
        rung("ecl/unroll-8", "ecl/shared",
            kernel("tiled_soa_f32_approximate_separate_skip_constant_u8"),
            "eight interactions in the loop's body")
            .reported("1.07 / 1.16 / 1.07"),
        rung("ecl/no-if", "ecl/unroll-8",
            kernel("tiled_soa_f32_approximate_separate_constant_u8"),
            "softening makes the test of i ≠ j needless")
            .reported("1.38 / 1.54 / 1.64"),
        rung("ecl/fma", "ecl/no-if",
            kernel("tiled_soa_f32_approximate_constant_u8"),
            "terms nested so that every multiplication has an addition to fuse with")
            .reported("1.03 / 1.05 / 1.06"),
        rung("ecl/unroll-128", "ecl/fma",
            kernel("tiled_soa_f32_approximate_constant_u128"),
            "128 interactions in the loop's body")
            .reported("1.01 / 1.04 / 0.93"),
        rung("ecl/ftz", "ecl/unroll-128",
            kernel("tiled_soa_f32_approximate_constant_u128").ftz(),
            "denormals flushed to zero")
            .reported("1.00 / 1.18 / 1.15"),
        rung("ecl/f64", "ecl/fma",
            kernel("tiled_soa_f64_approximate_constant_u8"),
            "everything in double precision")
            .reported("261 / 89 GFLOP/s"),
    ],
};
