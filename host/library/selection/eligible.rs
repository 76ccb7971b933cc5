//! Eligibility: which variant can run where, and why not.

use cuda_driver::{DeviceInfo, NoLibrary, blas_library};

use super::Place;
use crate::physics::ForceLaw;
use crate::plan::{self, PlanError};
use crate::ptx;
use crate::ptx::capability;
use crate::variants::{Build, Method, SystemsPath, Variant};

/// Reason why a variant cannot run at a place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Ineligible {
    /// Device code, on a CPU.
    #[error("kernel `{0}` is GPU code: choose the `device` cuda, or the `device` emulator (slow)")]
    NeedsGpu(&'static str),
    /// CPU code, on a GPU.
    #[error("kernel `{0}` is CPU code: choose the `device` cpu or auto")]
    NeedsCpu(&'static str),
    /// Variant that does not compute the force law.
    #[error("kernel `{kernel}` does not compute the force law {law}, which `reference` does")]
    NotThisLaw {
        /// The variant.
        kernel: &'static str,
        /// The law.
        law: ForceLaw,
    },
    /// One system on several devices, by a kernel that has no parts for them.
    #[error(
        "kernel `{0}` computes one system on one device: choose the `device` cuda:0 and one process, or a \
         kernel that several devices share, such as symmetric, symmetric-deterministic, symmetric-f64, \
         tensor or hermite-f64"
    )]
    NotShared(&'static str),
    /// The integrator needs more than it computes.
    #[error(
        "kernel `{kernel}` computes no jerks, which {integrator} needs: choose the `kernel` \
         hermite-f64 or the `device` cpu, or another integrator"
    )]
    NoJerks {
        /// The variant.
        kernel: &'static str,
        /// The integrator.
        integrator: &'static str,
    },
    /// A step of sixth order that all bodies share, on a device.
    #[error(
        "hermite6 takes steps for all bodies at once on the CPU alone: add `block_steps`, or choose the \
         `device` cpu"
    )]
    NoSnaps,
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
}

/// Checks that a variant can run at a place.
///
/// # Errors
/// The reason why it cannot.
pub fn eligible(variant: &Variant, place: &Place, law: ForceLaw) -> Result<(), Ineligible> {
    if !variant.computes(law) {
        return Err(Ineligible::NotThisLaw {
            kernel: variant.name,
            law,
        });
    }
    let build = match (variant.method, place) {
        (Method::Kernel { .. } | Method::Systems(_), Place::Cpu) => {
            return Err(Ineligible::NeedsGpu(variant.name));
        }
        (Method::Reference | Method::Cpu(_), Place::Cpu) => return Ok(()),
        (Method::Reference | Method::Cpu(_), _) => return Err(Ineligible::NeedsCpu(variant.name)),
        (Method::Kernel { build, .. } | Method::Systems(SystemsPath { build, .. }), _) => build,
    };
    let mut gpus = place.gpus().iter();
    gpus.try_for_each(|info| compiled(variant, info, build))?;
    let one_system = matches!(variant.method, Method::Kernel { .. });
    if place.devices() > 1 && one_system && !variant.can_be_shared() {
        return Err(Ineligible::NotShared(variant.name));
    }
    Ok(())
}

/// Checks that a variant's kernels are compiled for a GPU, and the library is here that they need.
fn compiled(variant: &Variant, info: &DeviceInfo, build: Build) -> Result<(), Ineligible> {
    let oldest = ptx::PTX_MODULES.iter().map(|module| module.sm).min();
    let oldest = oldest.map(|sm| sm.max(variant.since()));
    match ptx::module_for(capability(info), build == Build::Ftz) {
        Some(module) if module.sm >= variant.since() => library(variant),
        _ => Err(Ineligible::TooOld {
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
