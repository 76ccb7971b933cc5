//! Many systems at the same time.

use gpu_kernels::numerics::Precision;

use super::{Measured, Rung, Start, Statistic, Study, base, rung};
use allpairs::integrator::Integrator;
use allpairs::physics::ForceLaw;
use allpairs::variants::{Method, Queues, SystemsPath, Transfers, cpu, systems};
use allpairs::variants::{PairsName, RootName};

/// One block per system and all steps in one kernel: where `galaxies` began on GPUs.
const BLOCK_A_SYSTEM: SystemsPath = systems("systems_steps_aos_f32_exact");
const SPLIT_LAYOUT: SystemsPath = BLOCK_A_SYSTEM.by("systems_steps_float3_f32_exact");
const TILED: SystemsPath = SPLIT_LAYOUT
    .by("systems_steps_tiled_float3_f32_exact")
    .tile(512);
const UNROLLED: SystemsPath = TILED.by("systems_steps_tiled_float3_f32_exact_u8");
const STREAMS: SystemsPath = UNROLLED
    .by("systems_kick_float3_f32_exact_u8")
    .queued(Queues::UpTo(16));
const FAST_MATH: SystemsPath = STREAMS.by("systems_kick_float3_f32_approximate_u8_nc");
const OVERLAP: SystemsPath = FAST_MATH.copied(Transfers::DepthFirst);
const PREFETCH: SystemsPath = FAST_MATH.copied(Transfers::BreadthFirst);
const MULTI_GPU: SystemsPath = PREFETCH.on_all_gpus();

const fn many(
    name: &'static str,
    after: &'static str,
    path: SystemsPath,
    summary: &'static str,
) -> Rung {
    rung(name, after, Method::Systems(path), summary)
}

#[rustfmt::skip]
pub(super) const STUDY: Study = Study {
    name: "galaxies",
    summary: "many independent systems, as 32 of 8 192 bodies, on four GPUs",
    law: ForceLaw::Unit,
    integrator: Integrator::SemiImplicitEuler,
    measured: Measured {
        bodies: &[262_144],
        systems: 32,
        start: Start::Cube,
        steps: 10,
        repetitions: 5,
        statistic: Statistic::Mean,
        note: "32 systems of 8192 bodies, several steps; `allpairs systems` times the copies as well",
    },
    rungs: &[
        base("galaxies/parallel", cpu(Precision::F32, RootName::Refined, PairsName::Twice),
            "all cores of the CPU, systems shared out among them")
            .reported("7.5"),
        many("galaxies/block-per-system", "galaxies/parallel", BLOCK_A_SYSTEM,
            "one block a system, which takes all steps in one kernel")
            .reported("33.4"),
        many("galaxies/split-layout", "galaxies/block-per-system", SPLIT_LAYOUT,
            "positions and velocities in arrays of their own")
            .reported("31.2"),
        many("galaxies/tiled-128", "galaxies/split-layout", TILED.tile(128),
            "128 sources at a time wait in shared memory"),
        many("galaxies/tiled-256", "galaxies/split-layout", TILED.tile(256),
            "256 sources at a time wait in shared memory"),
        many("galaxies/tiled-512", "galaxies/split-layout", TILED,
            "512 sources at a time wait in shared memory")
            .reported("68.4, the best tile"),
        many("galaxies/tiled-1024", "galaxies/split-layout", TILED.tile(1024),
            "1024 sources at a time wait in shared memory"),
        many("galaxies/tiled-2048", "galaxies/split-layout", TILED.tile(2048),
            "2048 sources at a time wait in shared memory"),
        many("galaxies/unroll-2", "galaxies/tiled-512",
            TILED.by("systems_steps_tiled_float3_f32_exact_u2"),
            "two interactions in the loop's body"),
        many("galaxies/unroll-4", "galaxies/tiled-512",
            TILED.by("systems_steps_tiled_float3_f32_exact_u4"),
            "four interactions in the loop's body"),
        many("galaxies/unroll-8", "galaxies/tiled-512", UNROLLED,
            "eight interactions in the loop's body")
            .reported("68.8, the best factor"),
        many("galaxies/unroll-16", "galaxies/tiled-512",
            TILED.by("systems_steps_tiled_float3_f32_exact_u16"),
            "sixteen interactions in the loop's body"),
        many("galaxies/streams", "galaxies/unroll-8", STREAMS,
            "several blocks a system, two kernels a step, system s in stream s modulo 16")
            .reported("96.4"),
        many("galaxies/fast-math", "galaxies/streams", FAST_MATH,
            "1/√ from the special-function unit, multiply–adds fused, sources by the read-only path")
            .reported("100.0"),
        many("galaxies/overlap", "galaxies/fast-math", OVERLAP,
            "page-locked memory and queued copies, system by system: in, steps, out")
            .reported("100.3"),
        many("galaxies/prefetch", "galaxies/overlap", PREFETCH,
            "the same stage by stage: all copies in, all steps, all copies out")
            .reported("100.8"),
        many("galaxies/fused", "galaxies/prefetch",
            PREFETCH.by("systems_fused_float3_f32_approximate_u8_nc"),
            "one kernel a step, from one buffer to another")
            .reported("slower"),
        many("galaxies/multi-gpu", "galaxies/prefetch", MULTI_GPU,
            "systems dealt out to all GPUs, each with its own streams and buffers")
            .reported("370.2"),
        many("galaxies/soa", "galaxies/multi-gpu",
            MULTI_GPU.by("systems_kick_soa_f32_approximate_u8_nc").tile(256).in_blocks_of(256),
            "one array for each coordinate, smaller tiles and blocks")
            .reported("423.3"),
    ],
};
