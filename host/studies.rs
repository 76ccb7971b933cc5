//! The ladders that GPU studies of this problem have climbed, rung by rung: each a variant under the
//! study's own name for it, run with the study's law and integrator unless told otherwise.
//!
//! A rung is a line that names an entry, as the variants of general use do; two rungs, or a rung
//! and such a variant, that are the same share the entry. What a rung changes is not written here
//! but found by comparing its choices with its predecessor's.

use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::Reduction;

use crate::force::Law;
use crate::force::cpu::{PairsName, RootName};
use crate::integrator::Integrator;
use crate::plan::Split;
use crate::variants::{
    Method, Queues, SystemsPath, Transfers, Variant, cpu, first, kernel, systems, variant,
};

/// A study and its ladder.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its name.
    pub name: &'static str,
    /// What it studied.
    pub summary: &'static str,
    /// Its law.
    pub law: Law,
    /// Its integrator.
    pub integrator: Integrator,
    /// How it measured.
    pub measured: Measured,
    /// Its rungs, in its own order.
    pub rungs: &'static [Rung],
}

/// How a study measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Numbers of bodies.
    pub bodies: &'static [u32],
    /// Systems that they are, which do not feel each other.
    pub systems: u32,
    /// Where the bodies are.
    pub start: Start,
    /// Steps of a run.
    pub steps: u32,
    /// Runs, of which the statistic is taken.
    pub repetitions: u32,
    /// What is told of the runs' times.
    pub statistic: Statistic,
    /// What the study says of it, and what it leaves open.
    pub note: &'static str,
}

/// Where bodies are at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Spread evenly over a cube, of several masses.
    Cube,
    /// The same, of one mass.
    CubeOfEqualMasses,
    /// Plummer's model of a star cluster.
    Plummer,
}

/// What is told of many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Their mean.
    Mean,
    /// The middle one.
    Median,
}

impl Statistic {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }

    /// Of these times, which are sorted.
    ///
    /// # Panics
    /// If there are none.
    pub fn of(self, sorted: &[f64]) -> f64 {
        match self {
            Self::Mean => sorted.iter().sum::<f64>() / sorted.len() as f64,
            Self::Median => sorted[sorted.len() / 2],
        }
    }
}

/// A rung of a ladder.
#[derive(Clone, Copy, Debug)]
pub struct Rung {
    /// The variant that it is; its name is the study's and the rung's, its predecessor another rung.
    pub variant: Variant,
    /// What the study reported of it.
    pub reported: &'static str,
}

const fn base(name: &'static str, method: Method, summary: &'static str) -> Rung {
    Rung {
        variant: first(name, method, summary),
        reported: "",
    }
}

const fn rung(
    name: &'static str,
    after: &'static str,
    method: Method,
    summary: &'static str,
) -> Rung {
    Rung {
        variant: variant(name, after, method, summary),
        reported: "",
    }
}

impl Rung {
    const fn reported(mut self, reported: &'static str) -> Self {
        self.reported = reported;
        self
    }

    const fn wrong(mut self, why: &'static str) -> Self {
        self.variant.wrong = Some(why);
        self
    }
}

/// Blocks of 4 × 64 threads, 256 sources each: where `gtx980` saw bank conflicts.
const SHAPE: Split = Split {
    len: 4,
    luf: 256,
    reduction: Reduction::Serial,
};

/// One block a system and all steps in one kernel: where `galaxies` began on GPUs.
const BLOCK_A_SYSTEM: SystemsPath = systems("systems_steps_aos_f32_exact");
const SPLIT_LAYOUT: SystemsPath = BLOCK_A_SYSTEM.by("systems_steps_float3_f32_exact");
const TILED: SystemsPath = SPLIT_LAYOUT
    .by("systems_steps_tiled_float3_f32_exact")
    .tile(512);
const UNROLLED: SystemsPath = TILED.by("systems_steps_tiled_float3_f32_exact_u8");
const STREAMS: SystemsPath = UNROLLED
    .by("systems_kick_float3_f32_exact_u8")
    .queued(Queues::UpTo(16));
const FAST_MATH: SystemsPath = STREAMS.by("systems_kick_float3_f32_approximate_u8");
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

impl Split {
    const fn reduced_by(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }
}

/// All studies.
#[rustfmt::skip]
pub const STUDIES: &[Study] = &[
    Study {
        name: "venus",
        summary: "one system of 30 000 to 128 000 bodies on a Tesla K80",
        law: Law::Unit,
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
    },
    Study {
        name: "gtx1060",
        summary: "attraction and repulsion among 20 480 bodies, and any other number",
        law: Law::ATTRACT_REPEL,
        integrator: Integrator::SemiImplicitEuler,
        measured: Measured {
            bodies: &[20_480],
            systems: 1,
            start: Start::Cube,
            steps: 100,
            repetitions: 10,
            statistic: Statistic::Mean,
            note: "mean of 1000 steps; here in ten runs, for their spread",
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
                "shared tiles for whole blocks of bodies, a direct kernel for the remainder")
                .reported("14.64 ms; 15.88 ms with the worst remainder"),
        ],
    },
    Study {
        name: "galaxies",
        summary: "many systems that do not feel each other, as 32 of 8 192 bodies, on four GPUs",
        law: Law::Unit,
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
                "1/√ from the special-function unit, multiply–adds fused")
                .reported("100.0"),
            many("galaxies/overlap", "galaxies/fast-math", OVERLAP,
                "page-locked memory and queued copies, system by system: in, steps, out")
                .reported("100.3"),
            many("galaxies/prefetch", "galaxies/overlap", PREFETCH,
                "the same stage by stage: all copies in, all steps, all copies out")
                .reported("100.8"),
            many("galaxies/fused", "galaxies/prefetch",
                PREFETCH.by("systems_fused_float3_f32_approximate_u8"),
                "one kernel a step, from one buffer to another")
                .reported("slower"),
            many("galaxies/multi-gpu", "galaxies/prefetch", MULTI_GPU,
                "systems dealt out to all GPUs, each with its own streams and buffers")
                .reported("370.2"),
            many("galaxies/soa", "galaxies/multi-gpu",
                MULTI_GPU.by("systems_kick_soa_f32_approximate_u8").tile(256).in_blocks_of(256),
                "one array for each coordinate, smaller tiles and blocks")
                .reported("423.3"),
        ],
    },
    Study {
        name: "gtx980",
        summary: "masses and two-dimensional tiling, 20 000 to 200 000 bodies",
        law: Law::Gravity,
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
                "held to 32 registers a thread, so that more blocks fit")
                .reported("no gain"),
            rung("gtx980/2d-nobank", "gtx980/2d-shared",
                kernel("grid2d_interleaved_float4_f32_approximate_u16").split(SHAPE),
                "threads that read at a time read neighbours: no bank conflicts")
                .reported("2.7–2.8 × at len = 4, none at len = 1"),
            rung("gtx980/2d-gemv", "gtx980/2d-shared",
                kernel("grid2d_shared_float4_f32_approximate_u16").split(SHAPE.reduced_by(Reduction::MatrixVector)),
                "partial sums added as a matrix times a vector of ones")
                .reported("6.5–7.4 ×"),
            rung("gtx980/2d-tree", "gtx980/2d-shared",
                kernel("grid2d_shared_float4_f32_approximate_u16").split(SHAPE.reduced_by(Reduction::Tree)),
                "partial sums added by a tree in shared memory"),
        ],
    },
    Study {
        name: "ecl",
        summary: "star clusters of 1 000 to 300 000 bodies on three generations of GPUs",
        law: Law::Gravity,
        integrator: Integrator::Leapfrog,
        measured: Measured {
            bodies: &[1_000, 10_000, 100_000],
            systems: 1,
            start: Start::Plummer,
            steps: 10,
            repetitions: 3,
            statistic: Statistic::Median,
            note: "median of three runs; how many steps they took is not told, here ten; 300 000 bodies, too, on the largest GPU",
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
    },
];

/// The study of this name.
///
/// # Errors
/// If there is none.
pub fn find(name: &str) -> Result<&'static Study, UnknownStudy> {
    STUDIES
        .iter()
        .find(|study| study.name == name)
        .ok_or_else(|| UnknownStudy(name.to_owned()))
}

/// All rungs, study by study.
pub fn rungs() -> impl Iterator<Item = &'static Variant> {
    let rungs = STUDIES.iter().flat_map(|study| study.rungs);
    rungs.map(|rung| &rung.variant)
}

/// The study that a variant is a rung of.
pub fn of(variant: &Variant) -> Option<&'static Study> {
    find(variant.study()?).ok()
}

/// No study has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStudy(pub String);

impl std::error::Error for UnknownStudy {}

impl std::fmt::Display for UnknownStudy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
        write!(
            f,
            "there is no study `{}`; there are {}",
            self.0,
            known.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn rungs_stand_on_their_own_ladder() {
        for study in STUDIES {
            for (k, rung) in study.rungs.iter().enumerate() {
                let v = &rung.variant;
                assert_eq!(v.study(), Some(study.name), "{}", v.name);
                assert!(v.computes(study.law), "{}", v.name);
                let before = |name| study.rungs[..k].iter().any(|r| r.variant.name == name);
                assert!(v.predecessor.is_none_or(before), "{}", v.name);
                assert_eq!(v.predecessor.is_none(), k == 0, "{}", v.name);
            }
        }
    }

    /// Where a study changed more than one thing at a time, or one that shows in several choices.
    const SEVERAL: &[&str] = &[
        "venus/fp16-pure", // precision, and so storage is no longer narrower than it
        "gtx1060/direct",
        "galaxies/streams", // several blocks a system, which only kernels of a step allow
        "galaxies/fast-math",
        "galaxies/soa",
        "gtx980/2d",
        "ecl/two-loops", // which never pair a body with itself
    ];

    #[test]
    fn a_rung_differs_from_its_predecessor_in_one_choice() {
        for rung in rungs() {
            let Some(predecessor) = rung.predecessor else {
                continue;
            };
            let before = crate::variants::find(predecessor).expect("listed");
            if discriminant(&before.method) != discriminant(&rung.method) {
                continue; // from the CPU to a GPU
            }
            let differences = rung.differences();
            if SEVERAL.contains(&rung.name) {
                assert!(differences.len() > 1, "{}: {differences:?}", rung.name);
            } else {
                assert_eq!(differences.len(), 1, "{}: {differences:?}", rung.name);
            }
        }
    }

    #[test]
    fn unknown_studies_are_refused_with_those_there_are() {
        assert!(
            find("mars")
                .expect_err("none")
                .to_string()
                .contains("venus, ")
        );
    }
}
