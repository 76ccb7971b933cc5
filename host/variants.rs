//! The list of named variants: what users can run, time, verify and read.
//!
//! A variant mixes independent choices. Those of the device code — schedule, layout, precision,
//! 1/√, unroll factor — are an entry of `gpu_kernels::entries`; the build and the block are chosen
//! here. A variant differs from its predecessor in exactly one choice, which a test checks, so that
//! the ratio of their speeds is what that choice is worth.

use gpu_kernels::entries::{self, Entry, Work};
use gpu_kernels::interaction::Law;
use gpu_kernels::layout::LayoutName;
use gpu_kernels::numerics::{NumericsName, Precision};
use gpu_kernels::schedule::ScheduleName;

use crate::force::cpu::{self, PairsName, RootName};
use crate::force::resident::Kernels;

/// A way to compute the forces, by name.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name: stable, and what `--kernel` takes.
    pub name: &'static str,
    /// The study whose ladder it stands on, if one.
    pub study: Option<&'static str>,
    /// The variant that it differs from in one choice.
    pub predecessor: Option<&'static str>,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// How it computes.
    pub method: Method,
}

/// How a variant computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The f64 reference that judges the others.
    Reference,
    /// The CPU path.
    Cpu(CpuPath),
    /// Kernels, on a GPU or the emulator.
    Kernel {
        /// The row of `gpu_kernels::entries::FORCES`, by the common part of its symbols.
        entry: &'static str,
        /// How it is compiled.
        build: Build,
        /// Threads of a block.
        block: u32,
    },
}

/// What the CPU path can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPath {
    /// Type of the pairs.
    pub precision: Precision,
    /// Where 1/√ comes from.
    pub root: RootName,
    /// How often a pair is computed.
    pub pairs: PairsName,
}

/// How PTX is made from the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// As IEEE 754 asks.
    Precise,
    /// Denormal numbers flushed to zero.
    Ftz,
}

const fn kernel(entry: &'static str) -> Method {
    Method::Kernel {
        entry,
        build: Build::Precise,
        block: 256,
    }
}

const fn cpu(precision: Precision, root: RootName, pairs: PairsName) -> Method {
    Method::Cpu(CpuPath {
        precision,
        root,
        pairs,
    })
}

const fn variant(
    name: &'static str,
    predecessor: &'static str,
    method: Method,
    summary: &'static str,
) -> Variant {
    Variant {
        name,
        study: None,
        predecessor: Some(predecessor),
        summary,
        method,
    }
}

const fn first(name: &'static str, method: Method, summary: &'static str) -> Variant {
    Variant {
        name,
        study: None,
        predecessor: None,
        summary,
        method,
    }
}

impl Variant {
    const fn of_study(self, study: &'static str) -> Self {
        Self {
            study: Some(study),
            ..self
        }
    }
}

/// All variants, predecessors before successors.
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
        "each pair once, for both bodies; tiles meet in the order of a tournament"),
    variant("cpu-f64", "cpu-shared-edge", cpu(Precision::F64, RootName::Refined, PairsName::ByNumber),
        "each pair once where there are bodies enough: the fastest in double precision"),
    variant("cpu-one-sided-f32", "cpu-exact-f32", cpu(Precision::F32, RootName::Refined, PairsName::Twice),
        "1/√ from the processor's estimate, refined to rounding level"),
    variant("cpu-shared-edge-f32", "cpu-one-sided-f32", cpu(Precision::F32, RootName::Refined, PairsName::Once),
        "each pair once, for both bodies; tiles meet in the order of a tournament"),
    variant("cpu-f32", "cpu-shared-edge-f32", cpu(Precision::F32, RootName::Refined, PairsName::ByNumber),
        "each pair once where there are bodies enough: the fastest that is right to rounding"),
    variant("cpu-f32-approximate", "cpu-f32", cpu(Precision::F32, RootName::Estimated, PairsName::ByNumber),
        "1/√ from the processor's estimate as it is: three to four digits"),

    first("naive-aos", kernel("direct_aos_f32_exact"),
        "one thread a body, every source read from global memory").of_study("venus"),
    variant("naive-soa", "naive-aos", kernel("direct_soa_f32_exact"),
        "one array for each coordinate").of_study("venus"),
    variant("naive-float4", "naive-soa", kernel("direct_float4_f32_exact"),
        "position and mass in one 16-byte load").of_study("venus"),
    variant("naive-aos-rsqrt", "naive-aos", kernel("direct_aos_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("naive-soa-rsqrt", "naive-soa", kernel("direct_soa_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("naive-float4-rsqrt", "naive-float4", kernel("direct_float4_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("tiled-aos", "naive-aos", kernel("tiled_aos_f32_exact"),
        "sources wait in shared memory, a block's worth at a time").of_study("venus"),
    variant("tiled-soa", "naive-soa", kernel("tiled_soa_f32_exact"),
        "sources wait in shared memory, a block's worth at a time").of_study("venus"),
    variant("tiled-float4", "naive-float4", kernel("tiled_float4_f32_exact"),
        "sources wait in shared memory, a block's worth at a time").of_study("venus"),
    variant("tiled-aos-rsqrt", "tiled-aos", kernel("tiled_aos_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("tiled-soa-rsqrt", "tiled-soa", kernel("tiled_soa_f32_approximate"),
        "1/√ from the special-function unit").of_study("venus"),
    variant("tiled-float4-rsqrt", "tiled-float4", kernel("tiled_float4_f32_approximate"),
        "1/√ from the special-function unit"),
    variant("tiled-unroll16", "tiled-float4", kernel("tiled_float4_f32_exact_u16"),
        "sixteen interactions in the loop's body"),
    variant("tiled-rsqrt-unroll16", "tiled-float4-rsqrt", kernel("tiled_float4_f32_approximate_u16"),
        "sixteen interactions in the loop's body"),
    variant("tiled", "tiled-rsqrt-unroll16",
        Method::Kernel { entry: "tiled_float4_f32_approximate_u16", build: Build::Ftz, block: 256 },
        "denormals flushed to zero: the fastest one-sided kernel here"),

    variant("naive-f64", "naive-float4", kernel("direct_float4_f64_exact"),
        "everything in double precision"),
    variant("tiled-f64", "tiled-float4", kernel("tiled_float4_f64_exact"),
        "everything in double precision"),
    variant("tiled-f64-rsqrt", "tiled-f64", kernel("tiled_float4_f64_approximate"),
        "1/√ from a 20-bit guess and one step of third order"),
    variant("tiled-f64-rsqrt-unroll8", "tiled-f64-rsqrt", kernel("tiled_float4_f64_approximate_u8"),
        "eight interactions in the loop's body"),
];

/// Variants that `auto` takes for a device, the preferred first.
pub mod preferred {
    /// On a GPU.
    pub const GPU: &str = "tiled";
    /// On the CPU.
    pub const CPU: &str = "cpu-f32";
}

/// The variant of this name.
///
/// # Errors
/// If there is none.
pub fn find(name: &str) -> Result<&'static Variant, UnknownVariant> {
    VARIANTS
        .iter()
        .find(|v| v.name == name)
        .ok_or_else(|| UnknownVariant(name.to_owned()))
}

/// No variant has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no kernel `{0}`: `allpairs list` shows those there are")]
pub struct UnknownVariant(pub String);

/// A choice that a variant makes, for tables and for comparing variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which choice.
    pub axis: &'static str,
    /// What was chosen.
    pub value: String,
}

impl Variant {
    /// All choices that this variant makes, in the same order for all variants.
    pub fn choices(&self) -> Vec<Choice> {
        let mut choices = vec![];
        let mut add = |axis, value: &dyn ToString| {
            choices.push(Choice {
                axis,
                value: value.to_string(),
            });
        };
        match self.method {
            Method::Reference => add("path", &"reference"),
            Method::Cpu(path) => {
                add("path", &"cpu");
                add("precision", &path.precision.name());
                add(
                    "1/√",
                    match path.root {
                        RootName::Exact => &"exact",
                        RootName::Refined => &"refined estimate",
                        RootName::Estimated => &"estimate",
                    },
                );
                add(
                    "each pair",
                    match path.pairs {
                        PairsName::Twice => &"twice",
                        PairsName::Once => &"once",
                        PairsName::ByNumber => &"once or twice, by N",
                    },
                );
            }
            Method::Kernel { build, block, .. } => {
                let entry = self.any_force();
                let (schedule, numerics, unroll) = force_work(entry);
                add("path", &"kernel");
                add(
                    "schedule",
                    match schedule {
                        ScheduleName::Direct => &"direct",
                        ScheduleName::Tiled => &"tiled",
                    },
                );
                add(
                    "layout",
                    match entry.layout.name {
                        LayoutName::Aos => &"array of structures",
                        LayoutName::Soa => &"structure of arrays",
                        LayoutName::Float4 => &"float4",
                    },
                );
                add("precision", &numerics.precision.name());
                add(
                    "1/√",
                    if numerics.approximate {
                        &"approximate"
                    } else {
                        &"exact"
                    },
                );
                add("unroll", &unroll);
                add(
                    "denormals",
                    match build {
                        Build::Precise => &"kept",
                        Build::Ftz => &"flushed",
                    },
                );
                add("block", &block);
            }
        }
        choices
    }

    /// What differs from the predecessor: `layout: float4`.
    pub fn difference(&self) -> Option<Choice> {
        let before = find(self.predecessor?)
            .expect("predecessors are listed")
            .choices();
        self.choices()
            .into_iter()
            .find(|choice| !before.contains(choice))
    }

    /// The same kernels in blocks of another size; no other method has blocks.
    pub fn in_blocks_of(&self, threads: u32) -> Self {
        let mut changed = *self;
        if let Method::Kernel { block, .. } = &mut changed.method {
            *block = threads;
        }
        changed
    }

    /// The longest chain of additions that a pair's force goes through, for n bodies: what the
    /// rounding error of its sums grows with.
    pub fn additions(&self, n: usize) -> usize {
        let in_blocks = |size: usize| size.min(n) + n.div_ceil(size);
        match self.method {
            Method::Reference => 1,
            Method::Cpu(path) => cpu::additions(path.pairs, n),
            Method::Kernel { block, .. } => match self.schedule() {
                ScheduleName::Direct => n,
                ScheduleName::Tiled => in_blocks(block as usize),
            },
        }
    }

    /// The precision of its pairs.
    pub fn precision(&self) -> Precision {
        match self.method {
            Method::Reference => Precision::F64,
            Method::Cpu(path) => path.precision,
            Method::Kernel { .. } => self.any_force().layout.precision,
        }
    }

    /// Whether it computes jerks too, as [`Integrator::needs_jerks`] asks.
    ///
    /// [`Integrator::needs_jerks`]: crate::integrator::Integrator::needs_jerks
    pub fn gives_jerks(&self) -> bool {
        matches!(self.method, Method::Reference | Method::Cpu { .. })
    }

    /// Whether its 1/√ is the approximation of a GPU.
    pub fn is_approximate(&self) -> bool {
        match self.method {
            Method::Reference | Method::Cpu(_) => false,
            Method::Kernel { .. } => force_work(self.any_force()).1.approximate,
        }
    }

    fn schedule(&self) -> ScheduleName {
        force_work(self.any_force()).0
    }

    /// One of the force kernels; they differ in law and softening only.
    fn any_force(&self) -> &'static Entry {
        [Law::Gravity, Law::Unit]
            .into_iter()
            .find_map(|law| self.force(law, false))
            .expect("a variant of kernels names a row of FORCES")
    }

    /// The force kernel for a law, for ε = 0 or ε > 0, if this variant is one of kernels.
    pub fn force(&self, law: Law, unsoftened: bool) -> Option<&'static Entry> {
        let Method::Kernel { entry, .. } = self.method else {
            return None;
        };
        let law = match law {
            Law::Unit => "unit",
            Law::Gravity => "gravity",
        };
        let closest = if unsoftened { "_eps0" } else { "" };
        entries::find(&format!("force_{entry}_{law}{closest}"))
    }

    /// The kernels of a run, if this variant is one of kernels.
    pub fn kernels(&self, law: Law, unsoftened: bool) -> Option<Kernels> {
        let force = self.force(law, unsoftened)?;
        let partner = |work: Work| {
            entries::all().find(|entry| {
                entry.work == work
                    && entry.layout.name == force.layout.name
                    && entry.layout.precision == force.layout.precision
            })
        };
        Some(Kernels {
            force,
            kick: partner(Work::Kick)?,
            drift: partner(Work::Drift)?,
            damp: partner(Work::Damp)?,
            energy: partner(Work::Energy(law))?,
        })
    }
}

fn force_work(entry: &Entry) -> (ScheduleName, NumericsName, u32) {
    match entry.work {
        Work::Force {
            schedule,
            numerics,
            unroll,
            ..
        } => (schedule, numerics, unroll),
        _ => unreachable!("rows of FORCES are forces"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_canonical() {
        for (i, v) in VARIANTS.iter().enumerate() {
            assert!(VARIANTS[..i].iter().all(|w| w.name != v.name), "{}", v.name);
            assert!(
                v.name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            );
            assert!(
                !v.summary.is_empty() && !v.summary.ends_with('.'),
                "{}",
                v.name
            );
        }
    }

    #[test]
    fn a_variant_differs_from_its_predecessor_in_one_choice() {
        for (i, v) in VARIANTS.iter().enumerate() {
            let Some(predecessor) = v.predecessor else {
                continue;
            };
            assert!(
                VARIANTS[..i].iter().any(|w| w.name == predecessor),
                "{} comes first",
                v.name
            );
            let (before, after) = (find(predecessor).expect("listed").choices(), v.choices());
            assert_eq!(before.len(), after.len(), "{}", v.name);
            let changed = after
                .iter()
                .filter(|choice| !before.contains(choice))
                .count();
            assert_eq!(changed, 1, "{} and {predecessor}", v.name);
        }
    }

    #[test]
    fn every_kernel_is_compiled_for_both_laws_and_any_softening() {
        for v in VARIANTS
            .iter()
            .filter(|v| matches!(v.method, Method::Kernel { .. }))
        {
            for law in [Law::Unit, Law::Gravity] {
                for unsoftened in [false, true] {
                    let kernels = v
                        .kernels(law, unsoftened)
                        .unwrap_or_else(|| panic!("{}", v.name));
                    let Work::Force {
                        law: compiled,
                        numerics,
                        ..
                    } = kernels.force.work
                    else {
                        panic!("{} is not a force", kernels.force.symbol)
                    };
                    assert_eq!((compiled, numerics.unsoftened), (law, unsoftened));
                }
            }
        }
    }

    #[test]
    fn every_force_kernel_is_offered() {
        for row in entries::FORCES {
            let offered = VARIANTS.iter().any(|v| {
                v.force(Law::Gravity, false)
                    .is_some_and(|entry| entry.symbol == row[2].symbol)
            });
            assert!(offered, "no variant runs {}", row[2].symbol);
        }
    }
}
