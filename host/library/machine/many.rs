//! Many systems, on one GPU of a machine or on all of them.

use std::sync::Arc;

use cuda_driver::{DeviceInfo, devices};

use super::Machine;
use crate::backend::{Backend, ForceError};
use crate::bodies::Bodies;
use crate::force::emulated::Emulator;
use crate::force::systems::ManySystems;
use crate::frame::Frame;
use crate::physics::{ForceLaw, Physics};
use crate::selection::{Place, eligible};
use crate::variants::{Gpus, Method, SystemsPath, Variant};

/// Emulators that stand for all GPUs.
const EMULATED_GPUS: usize = 3;

impl Machine {
    /// Number of GPUs, or of emulators that stand for them, that compute a variant here.
    ///
    /// # Errors
    /// If the driver fails to list them.
    pub fn gpus(&self, variant: &Variant, law: ForceLaw) -> Result<u32, ForceError> {
        let Method::Systems(SystemsPath { gpus, .. }) = variant.method else {
            return Ok(self.place.devices() as u32);
        };
        let there = match &self.place {
            Place::Gpus(_)
            | Place::Emulators(_)
            | Place::RankGpus(..)
            | Place::RankEmulators(_) => self.place.devices(),
            _ if gpus == Gpus::One => 1,
            Place::Gpu(info) => 1 + others(info, variant, law)?.len(),
            Place::Emulator | Place::Cpu => EMULATED_GPUS,
        };
        Ok(variant.systems.min(there as u32))
    }

    pub(super) fn many(
        &self,
        variant: &Variant,
        path: SystemsPath,
        bodies: &Bodies,
        physics: Physics,
        frame: Frame,
    ) -> Result<Box<dyn Backend>, ForceError> {
        // Systems are dealt to the devices that were named.
        let named = self.place.devices().min(variant.systems as usize);
        match &self.place {
            Place::Gpus(infos) => {
                let gpus = infos[..named].iter().map(|info| self.gpu(info, path.build));
                let gpus = gpus.collect::<Result<Vec<_>, _>>()?;
                let many = ManySystems::new(&gpus, variant, bodies, physics, frame)?;
                Ok(Box::new(many))
            }
            Place::RankGpus(..) | Place::RankEmulators(_) => Err(self.other_ranks()),
            Place::Emulators(_) => {
                let emulator = |_| Arc::new(Emulator::new(self.thread_order));
                let gpus: Vec<_> = (0..named).map(emulator).collect();
                let many = ManySystems::new(&gpus, variant, bodies, physics, frame)?;
                Ok(Box::new(many))
            }
            Place::Gpu(info) => {
                let mut gpus = vec![self.gpu(info, path.build)?];
                if path.gpus == Gpus::All {
                    for gpu in others(info, variant, physics.law)? {
                        gpus.push(self.gpu(&gpu, path.build)?);
                    }
                }
                let many = ManySystems::new(&gpus, variant, bodies, physics, frame)?;
                Ok(Box::new(many))
            }
            Place::Emulator | Place::Cpu => {
                let gpus = match path.gpus {
                    Gpus::One => 1,
                    Gpus::All => EMULATED_GPUS,
                };
                let emulator = || Arc::new(Emulator::new(self.thread_order));
                let gpus: Vec<_> = (0..gpus).map(|_| emulator()).collect();
                let many = ManySystems::new(&gpus, variant, bodies, physics, frame)?;
                Ok(Box::new(many))
            }
        }
    }
}

/// The other GPUs of this machine that can run a variant.
fn others(
    first: &DeviceInfo,
    variant: &Variant,
    law: ForceLaw,
) -> Result<Vec<DeviceInfo>, ForceError> {
    let runs = |gpu: &DeviceInfo| {
        let place = Place::Gpu(Box::new(gpu.clone()));
        eligible(variant, &place, law).is_ok()
    };
    let mut gpus = devices()?;
    gpus.retain(|gpu| gpu.ordinal != first.ordinal && runs(gpu));
    Ok(gpus)
}
