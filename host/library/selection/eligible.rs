//! Eligibility: which variant can run where, and why not.

use cuda_driver::{DeviceInfo, NoLibrary, blas_library};

use super::Place;
use crate::physics::ForceLaw;
use crate::plan::{self, PlanError};
use crate::ptx::{self, PtxModule, capability};
use crate::refusals::Refusals;
use crate::rules::{self, Needs};
use crate::variants::{Build, Method, Variant};

/// Reason why a variant cannot run at a place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Ineligible {
    /// A combination of law, place and variant that cannot be.
    #[error(transparent)]
    Refused(#[from] Refusals),
    /// A library that does part of its work is not here.
    #[error("kernel `{kernel}` cannot run: {why}")]
    NoLibrary {
        /// The variant.
        kernel: &'static str,
        /// Reason why it is not.
        why: NoLibrary,
    },
    /// The GPU is older than the oldest PTX here, or lacks what the variant's kernels need.
    #[error(
        "kernel `{kernel}` cannot run on {gpu}: its compute capability is {}.{}, and the kernel \
         is compiled for {oldest} and newer", capability.0, capability.1
    )]
    TooOld {
        /// The variant.
        kernel: &'static str,
        /// The GPU.
        gpu: String,
        /// Compute capability of the GPU.
        capability: (u32, u32),
        /// Oldest target that is compiled for.
        oldest: String,
    },
    /// The driver of the GPU does not compile PTX of the variant's kernels, which is newer.
    #[error(
        "kernel `{kernel}` cannot run on {gpu}: its PTX needs an NVIDIA driver for CUDA {}.{} or newer, and the \
         driver is for CUDA {}.{}; update the driver, or choose another kernel", oldest.0, oldest.1, driver.0, driver.1
    )]
    OldDriver {
        /// The variant.
        kernel: &'static str,
        /// The GPU.
        gpu: String,
        /// CUDA version of the driver.
        driver: (u32, u32),
        /// Oldest CUDA version with a driver that compiles the kernels.
        oldest: (u32, u32),
    },
}

/// Checks that a variant can run at a place.
///
/// # Errors
/// The reason why it cannot.
pub fn eligible(variant: &Variant, place: &Place, law: ForceLaw) -> Result<(), Ineligible> {
    rules::check(&Needs::new(law), &place.offer(1, Some(variant), true))?;
    loads(variant, place)
}

/// Checks that the GPUs of a place load the kernels of a variant, which no rule refuses there.
///
/// # Errors
/// The reason why they do not.
pub(crate) fn loads(variant: &Variant, place: &Place) -> Result<(), Ineligible> {
    let Some(build) = variant.method.build() else {
        return Ok(());
    };
    let mut gpus = place.gpus().iter();
    gpus.try_for_each(|info| compiled(variant, info, build))
}

/// Checks that a variant's kernels are compiled for a GPU, and the library is here that they need.
fn compiled(variant: &Variant, info: &DeviceInfo, build: Build) -> Result<(), Ineligible> {
    let since = variant.since();
    let ftz = build == Build::Ftz;
    if ptx::module_for(info, ftz).is_some_and(|module| module.sm >= since) {
        return library(variant);
    }
    // The oldest module that has the kernels, and that the GPU could run.
    let modules = ptx::PTX_MODULES.iter().filter(|module| module.ftz == ftz);
    let has_them = |module: &&PtxModule| (since..=capability(info)).contains(&module.sm);
    let oldest_of_gpu = modules.filter(has_them).min_by_key(|module| module.sm);
    let oldest = ptx::PTX_MODULES.iter().map(|module| module.sm).min();
    let oldest = oldest.map(|sm| sm.max(since));
    match oldest_of_gpu.and_then(PtxModule::oldest_cuda) {
        Some(oldest) => Err(Ineligible::OldDriver {
            kernel: variant.name,
            gpu: info.name.clone(),
            driver: info.driver_version,
            oldest,
        }),
        None => Err(Ineligible::TooOld {
            kernel: variant.name,
            gpu: info.name.clone(),
            capability: info.compute_capability,
            oldest: oldest.map_or_else(|| "none".to_owned(), |sm| format!("sm_{sm}")),
        }),
    }
}

/// Checks that the library is here that does part of a variant's work on a GPU, if one does.
///
/// # Errors
/// The reason why it is not.
pub fn library(variant: &Variant) -> Result<(), Ineligible> {
    if !variant.needs_library() {
        return Ok(());
    }
    blas_library()
        .map(drop)
        .map_err(|why| Ineligible::NoLibrary {
            kernel: variant.name,
            why,
        })
}

/// Checks that the launches of an [`eligible`] variant, in the shape that it has, fit a place.
///
/// # Errors
/// The reason why they do not, with the numbers.
pub fn fits(
    variant: &Variant,
    place: &Place,
    law: ForceLaw,
    bodies: usize,
) -> Result<(), PlanError> {
    let variant = variant.fitted(bodies);
    let Method::Kernel { block, .. } = variant.method else {
        return Ok(());
    };
    let Some(entry) = variant.force(law, false) else {
        return Ok(());
    };
    plan::stride(entry, bodies)?;
    plan::force(
        entry,
        bodies as u32,
        block,
        variant.split(),
        &place.limits(),
    )
    .map(drop)
}
