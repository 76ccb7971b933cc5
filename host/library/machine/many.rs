//! Many systems, on one GPU of a machine or on all of them.

use cuda_driver::{DeviceInfo, devices};

use super::Machine;
use crate::backend::{Backend, ForceError};
use crate::bodies::Bodies;
use crate::force::systems::ManySystems;
use crate::frame::Frame;
use crate::physics::{ForceLaw, Physics};
use crate::selection::{Place, Processors, eligible};
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
        let named = self.place.devices();
        let there = match self.place.processors() {
            _ if named > 1 || self.place.ranks().is_some() || gpus == Gpus::One => named,
            Processors::Gpus(infos) => 1 + others(&infos[0], variant, law)?.len(),
            Processors::Emulators(_) | Processors::Cpu => EMULATED_GPUS,
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
        // Systems are dealt to the devices that were named, or to all like one that was.
        let named = self.place.devices().min(variant.systems as usize);
        let all = self.place.devices() == 1 && path.gpus == Gpus::All;
        Ok(match self.processors()? {
            Processors::Gpus(infos) => {
                let mut infos = infos[..named].to_vec();
                if all {
                    infos.extend(others(&infos[0], variant, physics.law)?);
                }
                let gpus = self.open(&infos, path.build)?;
                Box::new(ManySystems::new(&gpus, variant, bodies, physics, frame)?)
            }
            Processors::Emulators(_) | Processors::Cpu => {
                let gpus = self.emulators_of(if all { EMULATED_GPUS } else { named });
                Box::new(ManySystems::new(&gpus, variant, bodies, physics, frame)?)
            }
        })
    }
}

/// The other GPUs of this machine that can run a variant.
fn others(
    first: &DeviceInfo,
    variant: &Variant,
    law: ForceLaw,
) -> Result<Vec<DeviceInfo>, ForceError> {
    let runs = |gpu: &DeviceInfo| {
        let place = Place::of_gpu(gpu.clone());
        eligible(variant, &place, law).is_ok()
    };
    let mut gpus = devices()?;
    gpus.retain(|gpu| gpu.ordinal != first.ordinal && runs(gpu));
    Ok(gpus)
}
