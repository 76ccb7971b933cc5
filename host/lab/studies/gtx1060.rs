//! Algebra before hardware.

use super::{Measured, Start, Statistic, Study, base, rung};
use allpairs::integrator::Integrator;
use allpairs::physics::ForceLaw;
use allpairs::variants::kernel;

#[rustfmt::skip]
pub(super) const STUDY: Study = Study {
    name: "gtx1060",
    summary: "attraction and repulsion among 20 480 bodies, and any other number",
    law: ForceLaw::ATTRACT_REPEL,
    integrator: Integrator::SemiImplicitEuler,
    measured: Measured {
        bodies: &[20_480, 20_735],
        systems: 1,
        start: Start::Cube,
        steps: 100,
        repetitions: 10,
        statistic: Statistic::Mean,
        note: "mean of 1000 steps; here in ten runs, for their spread; 20 735 leave the worst remainder",
    },
    rungs: &[
        base("gtx1060/baseline",
            kernel("guarded_float4_f32_exact_u32"),
            "shared tiles; i ≠ j and j < N tested for each pair, a root and divisions as the law is written")
            .reported("95.8 ms"),
        rung("gtx1060/direct", "gtx1060/baseline",
            kernel("direct_float4_f32_approximate_u32"),
            "algebra simplified to one 1/√, softening instead of tests, no shared memory")
            .reported("16.5 ms, 5.81 ×"),
        rung("gtx1060/shared", "gtx1060/direct",
            kernel("tiled_float4_f32_approximate_u32"),
            "the same through shared tiles")
            .reported("14.64 ms, 6.54 ×"),
        rung("gtx1060/hybrid", "gtx1060/shared",
            kernel("hybrid_float4_f32_approximate_u32"),
            "shared tiles for whole blocks of bodies; beside it, in a stream of its own, a direct kernel for the remainder")
            .reported("14.64 ms; 15.88 ms with the worst remainder"),
    ],
};
