//! Two dimensions.

use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::Reduction;

use super::{Measured, Start, Statistic, Study, base, rung};
use allpairs::integrator::Integrator;
use allpairs::physics::ForceLaw;
use allpairs::variants::{Fitted, cpu, kernel};
use allpairs::variants::{PairsName, RootName};
use allpairs::variants::{Reducer, Split};

/// Blocks of 4 × 64 threads, 256 sources each: where `gtx980` saw bank conflicts.
const SHAPE: Split = Split {
    len: 4,
    luf: 256,
    reducer: Reducer::Kernel(Reduction::Serial),
};

/// Several threads per target where bodies are few, few partial sums where they are many: what a
/// sweep found at 20 000, 100 000 and 200 000 bodies, with bounds at their geometric means. A test
/// compares them with the sweeps that are recorded.
const TUNED: &[Fitted] = &[
    Fitted {
        bodies: 44_721,
        block: 256,
        len: 2,
        luf: 512,
    },
    Fitted {
        bodies: 141_421,
        block: 1024,
        len: 1,
        luf: 1024,
    },
    Fitted {
        bodies: u32::MAX,
        block: 256,
        len: 1,
        luf: 1024,
    },
];

/// The common shape, with partial sums added by `reducer`.
const fn reduced_by(reducer: Reducer) -> Split {
    Split { reducer, ..SHAPE }
}

#[rustfmt::skip]
pub(super) const STUDY: Study = Study {
    name: "gtx980",
    summary: "masses and two-dimensional tiling, 20 000 to 200 000 bodies",
    law: ForceLaw::Gravity,
    integrator: Integrator::Leapfrog,
    measured: Measured {
        bodies: &[20_000, 100_000, 200_000],
        systems: 1,
        start: Start::Cube,
        steps: 20,
        repetitions: 3,
        statistic: Statistic::Mean,
        note: "20 steps; here three times, for their spread",
    },
    rungs: &[
        base("gtx980/cpu-basic", cpu(Precision::F32, RootName::Refined, PairsName::Twice),
            "all cores of the CPU, targets shared out among them"),
        rung("gtx980/cpu-shared-edge", "gtx980/cpu-basic",
            cpu(Precision::F32, RootName::Refined, PairsName::Once),
            "each pair once, for both bodies")
            .reported("1.67–1.84 × cpu-basic"),
        rung("gtx980/pairwise", "gtx980/cpu-basic",
            kernel("direct_float4_f32_exact"),
            "one thread a body, every source read from global memory")
            .reported("1 ×"),
        rung("gtx980/tiled", "gtx980/pairwise",
            kernel("tiled_float4_f32_exact"),
            "sources wait in shared memory, a block's worth at a time")
            .reported("2.9–3.2 ×"),
        rung("gtx980/2d", "gtx980/pairwise",
            kernel("grid2d_float4_f32_exact_u16").split(SHAPE),
            "blocks of targets × sources: a thread adds luf sources, a second kernel the partial sums")
            .reported("2.5–2.7 ×"),
        rung("gtx980/2d-rsqrt", "gtx980/2d",
            kernel("grid2d_float4_f32_approximate_u16").split(SHAPE),
            "1/√ from the special-function unit")
            .reported("4.0–4.3 ×"),
        rung("gtx980/2d-shared", "gtx980/2d-rsqrt",
            kernel("grid2d_shared_float4_f32_approximate_u16").split(SHAPE),
            "the block's sources in shared memory")
            .reported("6.6–7.1 ×"),
        rung("gtx980/2d-lowreg", "gtx980/2d-shared",
            kernel("grid2d_shared_float4_f32_approximate_u16_r32").split(SHAPE),
            "held to 32 registers per thread, so that more blocks fit")
            .reported("no gain"),
        rung("gtx980/2d-nobank", "gtx980/2d-shared",
            kernel("grid2d_interleaved_float4_f32_approximate_u16").split(SHAPE),
            "threads that read at a time read neighbours: no bank conflicts")
            .reported("2.7–2.8 × at len = 4, none at len = 1"),
        rung("gtx980/2d-gemv", "gtx980/2d-shared",
            kernel("grid2d_shared_float4_f32_approximate_u16").split(reduced_by(Reducer::Kernel(Reduction::MatrixVector))),
            "partial sums added as a matrix times a vector of ones")
            .reported("6.5–7.4 ×"),
        rung("gtx980/2d-cublas", "gtx980/2d-gemv",
            kernel("grid2d_shared_float4_f32_approximate_u16").split(reduced_by(Reducer::Library)),
            "the same product by CUDA's library for linear algebra, if it is found at run time")
            .reported("6.5–7.4 ×, as 2d-gemv: theirs was cuBLAS"),
        rung("gtx980/2d-tree", "gtx980/2d-shared",
            kernel("grid2d_shared_float4_f32_approximate_u16").split(reduced_by(Reducer::Kernel(Reduction::Tree))),
            "partial sums added by a tree in shared memory"),
        rung("gtx980/2d-tuned", "gtx980/2d-nobank",
            kernel("grid2d_interleaved_float4_f32_approximate_u16").split(SHAPE).fitted_by(TUNED),
            "block, threads per target and sources per thread chosen for each number of bodies by a sweep")
            .reported("6.8–7.7 ×; 2.3–2.5 × tiled"),
        rung("gtx980/shared-edge", "gtx980/cpu-shared-edge",
            kernel("symmetric_float4_f32_8x4").ftz().in_blocks_of(128).by_masses(),
            "each pair once on the GPU, for both bodies: `symmetric`, under the study's name for what it missed")
            .reported("tried, and given up: races"),
    ],
};
