//! The list of named variants: what users can run, time, verify and read.
//!
//! A variant mixes independent choices. Those of the device code — schedule, layout, precision,
//! 1/√, unroll factor — are an entry of `gpu_kernels::entries`; the build and the block are chosen
//! here. A variant differs from its predecessor in exactly one choice, which a test checks, so that
//! the ratio of their speeds is what that choice is worth.

mod kernels;
mod masses;
mod method;
pub mod preferred;
mod shape;
mod stated;

pub use kernels::{HermiteKernels, Kernels, common_mass};
pub use masses::Masses;
pub use method::{
    Build, Bus, CpuPath, Fitted, Gpus, Method, PairsName, Positions, Queues, Reducer, RootName,
    Shape, Split, SystemsPath, Threads, Transfers,
};
pub use method::{cpu, kernel, systems};

use gpu_kernels::entries::{Entry, Row, Work};
use gpu_kernels::interaction::Formula;
use gpu_kernels::numerics::{NumericsPolicy, Precision};
use gpu_kernels::schedule::symmetric::Order;
use gpu_kernels::schedule::{ScheduleName, tensor};

use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::{ForceLaw, Physics};
use crate::settings::Setting;

/// A way to compute the forces, by name.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name: stable, and what users choose it by; a study and its rung, `ecl/unroll-8`, or one
    /// word.
    pub name: &'static str,
    /// The variant that it differs from in one choice.
    pub predecessor: Option<&'static str>,
    /// Description in a sentence.
    pub summary: &'static str,
    /// Method.
    pub method: Method,
    /// Independent systems of equal size that the bodies are, one after another.
    pub systems: u32,
    /// Reason why its forces are known to be wrong, if they are: a study tried it, and so it is
    /// listed, and shown to fail.
    pub wrong: Option<&'static str>,
}

const fn symmetric(row: &str, block: u32) -> Method {
    kernel(row).ftz().in_blocks_of(block)
}

const fn double_single() -> Method {
    symmetric("symmetric_float4_double_single_4x4", 128).by_masses()
}

const fn on_tensor_cores(row: &str) -> Method {
    kernel(row).ftz().in_blocks_of(128)
}

/// A variant that differs from `predecessor` in one choice.
pub const fn variant(
    name: &'static str,
    predecessor: &'static str,
    method: Method,
    summary: &'static str,
) -> Variant {
    Variant {
        predecessor: Some(predecessor),
        ..first(name, method, summary)
    }
}

/// A variant without a predecessor.
pub const fn first(name: &'static str, method: Method, summary: &'static str) -> Variant {
    Variant {
        name,
        predecessor: None,
        summary,
        method,
        systems: 1,
        wrong: None,
    }
}

/// The variants of general use, predecessors before successors; the rungs of the
/// studies, which the lab brings along, are variants too.
#[rustfmt::skip]
pub const VARIANTS: &[Variant] = &[
    first("reference", Method::Reference,
        "f64 on the CPU, pair by pair with compensated sums: the judge of all others"),
    first("cpu-exact-f64", cpu(Precision::F64, RootName::Exact, PairsName::Twice),
        "all cores and vector units of the CPU, and the same bits on every CPU with fused multiply-add"),
    variant("cpu-exact-f32", "cpu-exact-f64", cpu(Precision::F32, RootName::Exact, PairsName::Twice),
        "pairs in single precision, sums in double"),
    variant("cpu-one-sided", "cpu-exact-f64", cpu(Precision::F64, RootName::Refined, PairsName::Twice),
        "1/√ from the processor's estimate, refined to rounding level"),
    variant("cpu-shared-edge", "cpu-one-sided", cpu(Precision::F64, RootName::Refined, PairsName::Once),
        "each pair once, for both bodies; tiles are paired in rounds, each in one pair per round"),
    variant("cpu-f64", "cpu-shared-edge", cpu(Precision::F64, RootName::Refined, PairsName::ByNumber),
        "each pair once where there are bodies enough: the fastest in double precision"),
    variant("cpu-one-sided-f32", "cpu-exact-f32", cpu(Precision::F32, RootName::Refined, PairsName::Twice),
        "1/√ from the processor's estimate, refined to rounding level"),
    variant("cpu-serial-f32", "cpu-one-sided-f32", cpu(Precision::F32, RootName::Refined, PairsName::Twice).on_one_thread(),
        "one thread: what a serial code with vector instructions takes"),
    variant("cpu-shared-edge-f32", "cpu-one-sided-f32", cpu(Precision::F32, RootName::Refined, PairsName::Once),
        "each pair once, for both bodies; tiles are paired in rounds, each in one pair per round"),
    variant("cpu-f32", "cpu-shared-edge-f32", cpu(Precision::F32, RootName::Refined, PairsName::ByNumber),
        "each pair once where there are bodies enough: the fastest that is right to rounding"),
    variant("cpu-f32-approximate", "cpu-f32", cpu(Precision::F32, RootName::Estimated, PairsName::ByNumber),
        "1/√ from the processor's estimate as it is: three to four digits"),

    first("naive-aos", kernel("direct_aos_f32_exact"),
        "one thread a body, every source read from global memory"),
    variant("naive-soa", "naive-aos", kernel("direct_soa_f32_exact"),
        "one array for each coordinate"),
    variant("naive-float4", "naive-soa", kernel("direct_float4_f32_exact"),
        "position and mass in one 16-byte load"),
    variant("naive-aos-rsqrt", "naive-aos", kernel("direct_aos_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("naive-soa-rsqrt", "naive-soa", kernel("direct_soa_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("naive-float4-rsqrt", "naive-float4", kernel("direct_float4_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("tiled-aos", "naive-aos", kernel("tiled_aos_f32_exact"),
        "sources wait in shared memory, a block's worth at a time"),
    variant("tiled-soa", "naive-soa", kernel("tiled_soa_f32_exact"),
        "sources wait in shared memory, a block's worth at a time"),
    variant("tiled-float4", "naive-float4", kernel("tiled_float4_f32_exact"),
        "sources wait in shared memory, a block's worth at a time"),
    variant("tiled-aos-rsqrt", "tiled-aos", kernel("tiled_aos_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("tiled-soa-rsqrt", "tiled-soa", kernel("tiled_soa_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("tiled-float4-rsqrt", "tiled-float4", kernel("tiled_float4_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("tiled-unroll16", "tiled-float4", kernel("tiled_float4_f32_exact_u16"),
        "sixteen interactions in the loop's body"),
    variant("tiled-rsqrt-unroll16", "tiled-float4-rsqrt", kernel("tiled_float4_f32_approximate_u16"),
        "sixteen interactions in the loop's body"),
    variant("tiled", "tiled-rsqrt-unroll16",
        kernel("tiled_float4_f32_approximate_u16").ftz(),
        "denormals flushed to zero: the fastest one-sided kernel here"),

    first("hybrid", kernel("hybrid_float4_f32_approximate_u32"),
        "shared tiles for whole blocks of bodies, a direct kernel beside it for the remainder: for any law"),

    first("many-systems",
        Method::Systems(
            systems("systems_kick_float4_f32_approximate_u16").tile(256).in_blocks_of(256),
        ).ftz(),
        "all of many systems in one launch, a thread a body, each with its own ε and step"),
    first("many-systems-symmetric",
        Method::Systems(
            systems("systems_symmetric_float4_f32_8x4").in_blocks_of(32).copied(Transfers::BreadthFirst),
        ).ftz().by_masses(),
        "each pair once, with the same bits in every run: the fastest for thousands of bodies each"),
    first("many-systems-small",
        Method::Systems(
            systems("systems_symmetric_float4_f32_2x16").in_blocks_of(64).copied(Transfers::BreadthFirst),
        ).ftz().by_masses(),
        "smaller tiles, for systems of some hundreds of bodies"),
    first("many-systems-in-blocks",
        Method::Systems(
            systems("systems_in_block_float4_f32_8").in_blocks_of(128).copied(Transfers::BreadthFirst),
        ).ftz().by_masses(),
        "a block keeps a system for all of its steps, each pair once: the fastest for up to 512 bodies each"),
    first("many-systems-in-blocks-small",
        Method::Systems(
            systems("systems_in_block_float4_f32_2").in_blocks_of(128).copied(Transfers::BreadthFirst),
        ).ftz().by_masses(),
        "two bodies a lane instead of eight, for systems that would leave lanes empty"),
    first("many-systems-in-blocks-f64",
        Method::Systems(
            systems("systems_in_block_float4_f64_4").in_blocks_of(128).copied(Transfers::BreadthFirst),
        ).ftz().by_masses(),
        "everything in double precision"),
    first("few-bodies",
        Method::Systems(
            systems("systems_by_warps_float4_f32_u8").tile(2048).in_blocks_of(256).copied(Transfers::BreadthFirst),
        ).ftz().by_masses(),
        "a step in one launch, a warp for each body: the fastest for one system of up to 3072"),
    first("few-bodies-f64",
        Method::Systems(
            systems("systems_by_warps_float4_f64_u4").tile(1024).in_blocks_of(256).copied(Transfers::BreadthFirst),
        ).ftz().by_masses(),
        "everything in double precision"),
    first("many-systems-f64",
        Method::Systems(
            systems("systems_symmetric_float4_f64_8x2").in_blocks_of(32).copied(Transfers::BreadthFirst),
        ).ftz().by_masses(),
        "everything in double precision"),

    first("tensor-soft", on_tensor_cores("tensor_soft_t8"),
        "each pair once on tensor cores, with 1/d³ in halves: where ε is at least 1/32 of the system's extent"),
    variant("tensor-soft-wide", "tensor-soft", on_tensor_cores("tensor_soft_t12"),
        "192 targets per block instead of 128, for many bodies"),

    first("tensor", on_tensor_cores("tensor"),
        "near pairs in single precision, far ones on tensor cores from a centre nearby: for any ε, masses and origin"),

    variant("naive-f64", "naive-float4", kernel("direct_float4_f64_exact"),
        "everything in double precision"),
    variant("tiled-f64", "tiled-float4", kernel("tiled_float4_f64_exact"),
        "everything in double precision"),
    variant("tiled-f64-rsqrt", "tiled-f64", kernel("tiled_float4_f64_approximate"),
        "1/√ from a 20-bit guess and one step of third order"),
    variant("tiled-f64-rsqrt-unroll8", "tiled-f64-rsqrt", kernel("tiled_float4_f64_approximate_u8"),
        "eight interactions in the loop's body"),

    variant("symmetric-lane1", "tiled", symmetric("symmetric_float4_f32_1x16_slabs", 256),
        "each pair once, for both its bodies; a source's sum moves from lane to lane"),
    variant("symmetric-lane8", "symmetric-lane1", symmetric("symmetric_float4_f32_8x2_slabs", 256),
        "eight targets per thread share what a source costs to fetch and to pass on"),
    variant("symmetric-lane8-unroll32", "symmetric-lane8", symmetric("symmetric_float4_f32_8x4_slabs", 256),
        "four sources in the loop's body"),
    variant("symmetric-block128", "symmetric-lane8-unroll32", symmetric("symmetric_float4_f32_8x4_slabs", 128),
        "smaller blocks balance better"),
    variant("symmetric-deterministic", "symmetric-block128", symmetric("symmetric_float4_f32_8x4_slabs", 128).by_masses(),
        "equal masses are left to G, others multiply once for both bodies; the same bits in every run and on every GPU of a generation"),
    variant("symmetric", "symmetric-deterministic", symmetric("symmetric_float4_f32_8x4", 128).by_masses(),
        "partial sums added as they come, without scratch memory: the fastest here for many bodies"),
    variant("symmetric-lane4", "symmetric", symmetric("symmetric_float4_f32_4x8", 128).by_masses(),
        "four targets per thread: smaller tiles, for fewer bodies"),
    variant("symmetric-lane4-block32", "symmetric-lane4", symmetric("symmetric_float4_f32_4x8", 32).by_masses(),
        "a warp a block: smaller tiles still"),
    variant("symmetric-lane2-block32", "symmetric-lane4-block32", symmetric("symmetric_float4_f32_2x16", 32).by_masses(),
        "two targets per thread: the smallest tiles, for the fewest bodies"),
    variant("symmetric-f64-unroll32", "symmetric", symmetric("symmetric_float4_f64_8x4", 128).by_masses(),
        "everything in double precision"),
    variant("symmetric-f64", "symmetric-f64-unroll32", symmetric("symmetric_float4_f64_8x2", 128).by_masses(),
        "two sources in the loop's body, for masses that differ"),
    variant("symmetric-f64-block32", "symmetric-f64", symmetric("symmetric_float4_f64_8x2", 32).by_masses(),
        "a warp a block: smaller tiles, for fewer bodies"),

    variant("test-particles", "tiled", kernel("test_particles_float4_f32_approximate_u16").ftz(),
        "sources are the bodies with mass alone: for many bodies without"),
    variant("test-particles-f64", "tiled-f64-rsqrt-unroll8", kernel("test_particles_float4_f64_approximate_u8"),
        "sources are the bodies with mass alone: for many bodies without"),

    first("double-single", double_single(),
        "each pair once, in sums of two f32: ten digits and more where double precision is slow"),

    variant("hermite-lane1", "tiled", kernel("tiled_jerks_float4_f32_1x16").ftz(),
        "jerks too, for Hermite's scheme: velocities wait beside the positions"),
    variant("hermite", "hermite-lane1", kernel("tiled_jerks_float4_f32_2x8").ftz(),
        "two targets per thread share what a source costs to fetch"),
    variant("hermite-f64-lane1", "tiled-f64-rsqrt-unroll8", kernel("tiled_jerks_float4_f64_1x8"),
        "jerks too, for Hermite's scheme: velocities wait beside the positions"),
    variant("hermite-f64", "hermite-f64-lane1", kernel("tiled_jerks_float4_f64_2x4"),
        "two targets per thread share what a source costs to fetch"),
];

/// Variants that can be found by name: variants of general use, and variants that others add.
#[derive(Clone, Debug)]
pub struct Catalogue(Vec<&'static Variant>);

impl Catalogue {
    /// The variants of general use, [`VARIANTS`].
    pub fn general() -> Self {
        Self(VARIANTS.iter().collect())
    }

    /// One variant.
    pub(crate) fn of(variant: &'static Variant) -> Self {
        Self(vec![variant])
    }

    /// With more variants behind those it has.
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = &'static Variant>) -> Self {
        self.0.extend(more);
        self
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &'static Variant> {
        self.0.iter().copied()
    }

    /// The variant of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&self, name: &str) -> Result<&'static Variant, UnknownVariant> {
        let found = self.all().find(|variant| variant.name == name);
        found.ok_or_else(|| UnknownVariant(name.to_owned()))
    }
}

/// The variant of general use of this name.
///
/// # Errors
/// If there is none.
pub fn find(name: &str) -> Result<&'static Variant, UnknownVariant> {
    let found = VARIANTS.iter().find(|variant| variant.name == name);
    found.ok_or_else(|| UnknownVariant(name.to_owned()))
}

/// No variant has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no kernel `{}`", crate::io::Printable(.0))]
pub struct UnknownVariant(pub String);

/// The error of a variant's forces has no bound.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "kernel `{kernel}` bounds its error for softening lengths of at least {smallest:e} in a system \
     of this extent, and the softening is {softening:e}: choose another kernel{}",
    if *computable { format!(", or {}", Setting::AllowInaccurate) } else { String::new() }
)]
pub struct OutOfRange {
    /// The variant.
    pub kernel: &'static str,
    /// ε.
    pub softening: f64,
    /// The smallest ε for which the error is bounded.
    pub smallest: f64,
    /// True if forces could be computed nevertheless.
    pub computable: bool,
}

impl Variant {
    /// Force laws that it computes.
    pub fn laws(&self) -> impl Iterator<Item = ForceLaw> {
        [ForceLaw::Gravity, ForceLaw::Unit, ForceLaw::ATTRACT_REPEL]
            .into_iter()
            .filter(|&law| self.computes(law))
    }

    /// Returns whether it computes a force law.
    pub fn computes(&self, law: ForceLaw) -> bool {
        match self.method {
            Method::Reference => true,
            Method::Cpu(_) => law == ForceLaw::Gravity || law == ForceLaw::Unit,
            Method::Kernel { .. } | Method::Systems(_) => self.force(law, false).is_some(),
        }
    }

    /// The study whose ladder it stands on, if one.
    pub fn study(&self) -> Option<&'static str> {
        self.name.split_once('/').map(|(study, _)| study)
    }

    /// Division of sources among its blocks, if there is one.
    pub fn split(&self) -> Option<Split> {
        match self.method {
            Method::Reference | Method::Cpu(_) | Method::Systems(_) => None,
            Method::Kernel { split, .. } => split,
        }
    }

    /// Processor that advances the positions.
    pub fn positions(&self) -> Positions {
        match self.method {
            Method::Reference | Method::Cpu(_) => Positions::Host(Bus::Mapped),
            Method::Systems(_) => Positions::Device,
            Method::Kernel { positions, .. } => positions,
        }
    }

    /// Returns the variant with its kernels in blocks of another size; no other method has blocks.
    pub fn in_blocks_of(&self, threads: u32) -> Self {
        Self {
            method: self.method.in_blocks_of(threads),
            ..*self
        }
    }

    /// The precision of its pairs.
    pub fn precision(&self) -> Precision {
        match self.method {
            Method::Reference => Precision::F64,
            Method::Cpu(path) => path.precision,
            Method::Kernel { .. } | Method::Systems(_) => self.any_force().layout.precision,
        }
    }

    /// Returns whether it computes jerks too, as [`Integrator::needs_jerks`] asks.
    ///
    /// [`Integrator::needs_jerks`]: crate::integrator::Integrator::needs_jerks
    pub fn gives_jerks(&self) -> bool {
        match self.method {
            Method::Reference | Method::Cpu(_) => true,
            Method::Systems(_) => false,
            Method::Kernel { .. } => self.schedule() == ScheduleName::TiledJerks,
        }
    }

    /// The precision that its bodies are stored in.
    pub fn stored(&self) -> Precision {
        match self.method {
            Method::Reference => Precision::F64,
            Method::Cpu(path) => path.precision,
            Method::Kernel { .. } | Method::Systems(_) => self.any_force().layout.stored,
        }
    }

    /// Returns whether a library for linear algebra does part of its work on a GPU.
    pub fn needs_library(&self) -> bool {
        let reducer = self.split().map(|split| split.reducer);
        reducer == Some(Reducer::Library)
    }

    /// Returns whether several devices can compute one system by it together.
    pub fn can_be_shared(&self) -> bool {
        let positions = Positions::Device;
        matches!(self.method, Method::Kernel { positions: of, .. } if of == positions)
            && matches!(
                self.schedule(),
                ScheduleName::Symmetric
                    | ScheduleName::Separated
                    | ScheduleName::Tensor
                    | ScheduleName::TiledJerks
            )
    }

    /// Returns whether its 1/√ is the approximation of a GPU.
    pub fn is_approximate(&self) -> bool {
        match self.method {
            Method::Reference | Method::Cpu(_) => false,
            Method::Kernel { .. } | Method::Systems(_) => {
                force_work(self.any_force()).numerics.approximate
            }
        }
    }

    /// The compute capability that its kernels need, 80 for 8.0; 0 for code of the CPU.
    pub fn since(&self) -> u32 {
        match self.method {
            Method::Reference | Method::Cpu { .. } => 0,
            Method::Kernel { .. } | Method::Systems(_) => self.any_force().since,
        }
    }

    /// Returns whether it computes all pairs on tensor cores.
    pub fn is_tensor(&self) -> bool {
        matches!(self.method, Method::Kernel { .. }) && self.schedule() == ScheduleName::Tensor
    }

    /// Returns whether its sources are the bodies with mass alone, apart from its targets.
    pub fn has_sources_apart(&self) -> bool {
        matches!(self.method, Method::Kernel { .. })
            && self.schedule() == ScheduleName::TestParticles
    }

    /// Returns whether it computes far pairs on tensor cores, and near ones not.
    pub fn is_separated(&self) -> bool {
        matches!(self.method, Method::Kernel { .. }) && self.schedule() == ScheduleName::Separated
    }

    /// Checks that its error is bounded for these bodies and this force.
    ///
    /// # Errors
    /// If ε is too small beside the system.
    pub fn in_range(&self, bodies: &Bodies, physics: &Physics) -> Result<(), OutOfRange> {
        if !self.is_tensor() {
            return Ok(());
        }
        let frame = Frame::of(bodies, physics);
        let smallest = tensor::SMALLEST_SOFTENING * frame.extent(bodies);
        if physics.softening > 0.0 && physics.softening >= smallest {
            return Ok(());
        }
        Err(OutOfRange {
            kernel: self.name,
            softening: physics.softening,
            smallest,
            computable: !frame.is_unsoftened(physics.softening, self.precision()),
        })
    }

    /// The algorithm of its force kernels.
    ///
    /// # Panics
    /// If it has none.
    pub fn schedule(&self) -> ScheduleName {
        force_work(self.any_force()).schedule
    }

    /// One of the force kernels; they differ in law and softening only.
    ///
    /// # Panics
    /// If it has none.
    pub fn any_force(&self) -> &'static Entry {
        self.row().expect("a variant of kernels").any()
    }

    /// The row of force kernels, if this variant is one of kernels.
    fn row(&self) -> Option<Row> {
        match self.method {
            Method::Kernel { row, .. } | Method::Systems(SystemsPath { row, .. }) => Some(row),
            Method::Reference | Method::Cpu(_) => None,
        }
    }

    /// The force kernel for a law, for ε = 0 or ε > 0, if this variant is one of kernels.
    pub fn force(&self, law: ForceLaw, unsoftened: bool) -> Option<&'static Entry> {
        self.row()?.force(law.of_kernels(), unsoftened)
    }

    /// Like [`force`](Self::force), but takes the masses of the bodies into account.
    pub fn force_for(
        &self,
        law: ForceLaw,
        unsoftened: bool,
        masses: Masses,
    ) -> Option<&'static Entry> {
        let general = self.force(law, unsoftened)?;
        let (Method::Kernel { row, by_masses, .. }
        | Method::Systems(SystemsPath { row, by_masses, .. })) = self.method
        else {
            return Some(general);
        };
        if !by_masses {
            return Some(general);
        }
        let special = match (law, masses) {
            // G times the mass is the launch's business.
            (ForceLaw::Gravity, Masses::Equal(_)) => self.force(ForceLaw::Unit, unsoftened),
            (ForceLaw::Gravity, Masses::Comparable) => row.by_forces(unsoftened),
            _ => None,
        };
        special.or(Some(general))
    }
}

/// Work of a row of force kernels, but for law and softening.
#[derive(Clone, Copy, Debug)]
pub struct ForceWork {
    /// The algorithm.
    pub schedule: ScheduleName,
    /// Formula of the force law.
    pub formula: Formula,
    /// The arithmetic.
    pub numerics: NumericsPolicy,
    /// Pairs in the body of its inner loop.
    pub unroll: u32,
    /// Targets that a thread computes at a time.
    pub lane: u32,
    /// In which order it adds.
    pub order: Order,
    /// Most registers per thread, where the kernel is held to a number.
    pub max_registers: Option<u32>,
}

/// Returns the work of a force kernel, but for law and softening.
///
/// # Panics
/// If it is no force kernel.
pub fn force_work(entry: &Entry) -> ForceWork {
    match entry.work {
        Work::Force {
            schedule,
            formula,
            numerics,
            unroll,
            lane,
            order,
            max_registers,
            ..
        } => ForceWork {
            schedule,
            formula,
            numerics,
            unroll,
            lane,
            order,
            max_registers,
        },
        _ => unreachable!("rows of force kernels are forces"),
    }
}

#[cfg(test)]
mod tests;
