//! Backends for bodies that others write to a device.

use std::sync::Arc;

use gpu_kernels::layout::LayoutName;

use super::Machine;
use crate::backend::ForceError;
use crate::force::emulated::Emulator;
use crate::force::in_place::{Extent, InPlace};
use crate::force::resident::Written;
use crate::physics::Physics;
use crate::variants::{Build, Method, Variant};

impl Machine {
    /// Returns whether a variant computes bodies that others write: those that lie in rows of four, in the
    /// order in which they were written.
    pub fn computes_in_place(variant: &Variant) -> bool {
        matches!(variant.method, Method::Kernel { .. })
            && variant.systems == 1
            && variant.any_force().layout.name == LayoutName::Float4
            && !variant.is_tensor()
            && !variant.is_separated()
            && !variant.has_sources_apart()
            && !variant.needs_library()
    }

    /// Room for `n` bodies that others write there, to be accelerated by a variant.
    ///
    /// # Errors
    /// [`ForceError::Refused`] if that cannot be; or if the place has too little memory.
    ///
    /// # Panics
    /// If a GPU does not load the variant, or it is [not for it](Self::computes_in_place).
    pub fn in_place(
        &self,
        variant: &Variant,
        n: usize,
        extent: Extent,
        physics: Physics,
    ) -> Result<Box<dyn InPlace>, ForceError> {
        self.check(variant, physics.law)?;
        let variant = &variant.fitted(n);
        let build = match variant.method {
            Method::Kernel { build, .. } => build,
            _ => Build::Precise,
        };
        Ok(match self.one_gpu("arrays on a GPU are computed there")? {
            Some(info) => {
                let gpu = self.gpu(info, build)?;
                Box::new(Written::new(gpu, variant, n, extent, physics)?)
            }
            None => {
                let emulator = Arc::new(Emulator::new(self.thread_order));
                Box::new(Written::new(emulator, variant, n, extent, physics)?)
            }
        })
    }
}
