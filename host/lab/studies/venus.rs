//! From a serial code to a tuned kernel, step by step.

use gpu_kernels::numerics::Precision;

use super::{Measured, Start, Statistic, Study, base, rung};
use allpairs::integrator::Integrator;
use allpairs::physics::ForceLaw;
use allpairs::variants::{Bus, cpu, kernel};
use allpairs::variants::{PairsName, RootName};

#[rustfmt::skip]
pub(super) const STUDY: Study = Study {
    name: "venus",
    summary: "one system of 30 000 to 128 000 bodies on a Tesla K80",
    law: ForceLaw::Unit,
    integrator: Integrator::SemiImplicitEuler,
    measured: Measured {
        bodies: &[30_000, 64_000, 128_000],
        systems: 1,
        start: Start::Cube,
        steps: 10,
        repetitions: 10,
        statistic: Statistic::Mean,
        note: "ten runs of ten steps",
    },
    rungs: &[
        base("venus/serial", cpu(Precision::F32, RootName::Refined, PairsName::Twice).on_one_thread(),
            "one thread of the CPU")
            .reported("1 ×"),
        rung("venus/parallel", "venus/serial", cpu(Precision::F32, RootName::Refined, PairsName::Twice),
            "all cores of the CPU")
            .reported("29 × serial"),
        rung("venus/naive", "venus/parallel",
            kernel("direct_aos_f32_exact").in_blocks_of(1024).positions_on_host(),
            "velocities on the GPU, one thread a body; positions on the host, and all data cross the bus each step")
            .reported("speedup grows with N"),
        rung("venus/soa", "venus/naive",
            kernel("direct_soa_f32_exact").in_blocks_of(1024).positions_on_host(),
            "one array for each coordinate")
            .reported("no gain"),
        rung("venus/tiled-aos", "venus/naive",
            kernel("tiled_aos_f32_exact").in_blocks_of(1024).positions_on_host(),
            "sources wait in shared memory, a block's worth at a time"),
        rung("venus/tiled", "venus/tiled-aos",
            kernel("tiled_soa_f32_exact").in_blocks_of(1024).positions_on_host(),
            "the same with one array for each coordinate: neighbours fetch neighbours")
            .reported("1.25 × soa"),
        rung("venus/unroll-2", "venus/tiled",
            kernel("tiled_soa_f32_exact_u2").in_blocks_of(1024).positions_on_host(),
            "two interactions in the loop's body"),
        rung("venus/unroll-4", "venus/tiled",
            kernel("tiled_soa_f32_exact_u4").in_blocks_of(1024).positions_on_host(),
            "four interactions in the loop's body"),
        rung("venus/unroll-8", "venus/tiled",
            kernel("tiled_soa_f32_exact_u8").in_blocks_of(1024).positions_on_host(),
            "eight interactions in the loop's body"),
        rung("venus/unroll-16", "venus/tiled",
            kernel("tiled_soa_f32_exact_u16").in_blocks_of(1024).positions_on_host(),
            "sixteen interactions in the loop's body")
            .reported("the best factor"),
        rung("venus/unroll-24", "venus/tiled",
            kernel("tiled_soa_f32_exact_u24").in_blocks_of(1024).positions_on_host(),
            "24 interactions in the loop's body"),
        rung("venus/positions", "venus/unroll-16",
            kernel("tiled_soa_f32_exact_u16").in_blocks_of(1024),
            "positions in a kernel of their own: data cross the bus at the start and at the end")
            .reported("a small gain at large N"),
        rung("venus/fp16", "venus/positions",
            kernel("tiled_soa_f16_f32_exact_u16").in_blocks_of(1024),
            "bodies stored and tiled in half precision, computed with in single precision")
            .reported("slightly slower; errors in decimals 2 to 4"),
        rung("venus/fp16-pure", "venus/fp16",
            kernel("tiled_soa_f16_exact_u16").in_blocks_of(1024),
            "all arithmetic in half precision")
            .wrong("the sums of a few hundred close bodies overflow")
            .reported("faster, and overflows"),
        rung("venus/pinned", "venus/unroll-16",
            kernel("tiled_soa_f32_exact_u16").in_blocks_of(1024).positions_by(Bus::PageLocked),
            "bodies that cross the bus each step are copied from and to page-locked memory")
            .reported("no change"),
        rung("venus/mapped", "venus/pinned",
            kernel("tiled_soa_f32_exact_u16").in_blocks_of(1024).positions_by(Bus::Mapped),
            "no copies: kernels read and write the bodies in the host's memory, across the bus"),
        rung("venus/rsqrt", "venus/positions",
            kernel("tiled_soa_f32_approximate_u16").in_blocks_of(1024),
            "1/√ from the special-function unit")
            .reported("2.12 × positions"),
        rung("venus/ftz", "venus/rsqrt",
            kernel("tiled_soa_f32_approximate_u16").in_blocks_of(1024).ftz(),
            "denormals flushed to zero")
            .reported("1.15 × rsqrt"),
        rung("venus/float3", "venus/ftz",
            kernel("tiled_float3_f32_approximate_u16").in_blocks_of(1024).ftz(),
            "positions and velocities as 3-vectors")
            .reported("no gain"),
        rung("venus/float4", "venus/ftz",
            kernel("tiled_float4_f32_approximate_u16").in_blocks_of(1024).ftz(),
            "position and mass, and velocity, as 4-vectors")
            .reported("no gain; as float3"),
    ],
};
