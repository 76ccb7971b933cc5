//! Vector instructions of this machine, and kernels compiled for them.

use std::fmt;

use gpu_kernels::numerics::Precision;

#[cfg(target_arch = "aarch64")]
use super::neon::Neon as Baseline;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use super::scalar::Scalar as Baseline;
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512, Sse2 as Baseline};
use super::{Registers, Vector};

/// A loop that is compiled once for each instruction set.
pub(crate) trait Kernel {
    /// Result of the work.
    type Output;
    /// Does the work with these registers.
    ///
    /// Must be `#[inline(always)]`, down to the innermost operation: only what is inlined into a
    /// function with a target feature is compiled with it. Loops count an index, because adaptors of
    /// iterators are functions that the compiler may leave outside.
    fn run<S: Registers>(self) -> Self::Output;
}

/// Vector instructions that this machine has.
///
/// A value exists only for instructions that were detected, so holding one is the proof that
/// they may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InstructionSet(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Level {
    /// Instructions that the compiler may assume on its target: SSE2 on x86-64, NEON on AArch64.
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// All that this machine has, narrowest first.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(unused_mut, reason = "one level only")
        )]
        let mut levels = vec![Level::Baseline];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            levels.push(Level::Avx2);
            if is_x86_feature_detected!("avx512f") {
                levels.push(Level::Avx512);
            }
        }
        levels.into_iter().map(Self).collect()
    }

    /// The widest that this machine has.
    pub fn detect() -> Self {
        Self::available()
            .last()
            .copied()
            .unwrap_or(Self(Level::Baseline))
    }

    /// Bound of the relative error of the processor's 1/√, if it has one of this precision.
    pub fn estimate_error(self, precision: Precision) -> f64 {
        self.run(EstimateError(precision))
    }

    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Level::Baseline => kernel.run::<Baseline>(),
            // SAFETY: `available`, the only source of this level, has seen avx2 and fma.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: `available`, the only source of this level, has seen avx512f, avx2 and fma.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512>()
}

struct EstimateError(Precision);

impl Kernel for EstimateError {
    type Output = f64;
    #[inline(always)]
    fn run<S: Registers>(self) -> f64 {
        match self.0 {
            Precision::F64 => S::F64::ESTIMATE_ERROR,
            Precision::F32 | Precision::DoubleSingle | Precision::F16 => S::F32::ESTIMATE_ERROR,
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Level::Baseline if cfg!(target_arch = "x86_64") => "SSE2",
            Level::Baseline if cfg!(target_arch = "aarch64") => "NEON",
            Level::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "AVX2+FMA",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "AVX-512",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_the_last_and_names_differ() {
        let available = InstructionSet::available();
        assert_eq!(available.last(), Some(&InstructionSet::detect()));
        let mut names: Vec<String> = available.iter().map(|set| set.to_string()).collect();
        names.dedup();
        assert_eq!(names.len(), available.len());
    }
}
