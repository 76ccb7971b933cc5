//! Which vector instructions does this machine have, and how is a kernel compiled for them?

use std::fmt;

use gpu_kernels::numerics::{Fused, MultiplyAdd, Separate};

/// A loop that is compiled once for each instruction set.
pub(super) trait Kernel {
    /// Does the work, with multiply-adds as the instructions have them: a fused one where there is
    /// none would be a library call per operation.
    ///
    /// Must be `#[inline(always)]`, down to the innermost operation: only what is inlined into a
    /// function with a target feature is compiled with it.
    fn run<M: MultiplyAdd>(self);
}

/// Vector instructions that this machine has.
///
/// A value exists only for instructions that were detected, so holding one is the proof that
/// they may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionSet(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// What the compiler may assume on its target: SSE2 on x86-64, NEON on AArch64.
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

    /// Whether multiply-add rounds once. Sets that agree in this compute the same bits.
    pub fn is_fused(self) -> bool {
        match self.0 {
            Level::Baseline => BASELINE_IS_FUSED,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => true,
        }
    }

    pub(super) fn run<K: Kernel>(self, kernel: K) {
        match self.0 {
            Level::Baseline if BASELINE_IS_FUSED => kernel.run::<Fused>(),
            Level::Baseline => kernel.run::<Separate>(),
            // SAFETY: `available`, the only source of this level, has seen avx2 and fma.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: `available`, the only source of this level, has seen avx512f, avx2 and fma.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

const BASELINE_IS_FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<K: Kernel>(kernel: K) {
    kernel.run::<Fused>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn run_avx512<K: Kernel>(kernel: K) {
    kernel.run::<Fused>();
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

    #[test]
    fn every_set_runs_a_kernel_as_it_says() {
        struct Report<'a>(&'a mut Option<bool>);
        impl Kernel for Report<'_> {
            #[inline(always)]
            fn run<M: MultiplyAdd>(self) {
                *self.0 = Some(M::FUSED);
            }
        }
        for set in InstructionSet::available() {
            let mut fused = None;
            set.run(Report(&mut fused));
            assert_eq!(fused, Some(set.is_fused()), "{set}");
        }
    }
}
