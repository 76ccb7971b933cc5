//! Many systems, on one GPU of a machine or on all of them.

use std::rc::Rc;

use cuda_driver::{DeviceInfo, devices};

use super::{Machine, Place, eligible};
use crate::bodies::Bodies;
use crate::force::emulated::Emulator;
use crate::force::systems::ManySystems;
use crate::force::{Backend, ForceError, Physics};
use crate::frame::Frame;
use crate::variants::{Gpus, SystemsPath, Variant};

/// Emulators that stand for all GPUs.
const EMULATED_GPUS: usize = 3;

impl Machine {
    pub(super) fn many(
        &self,
        variant: &Variant,
        path: SystemsPath,
        bodies: &Bodies,
        physics: Physics,
        frame: Frame,
    ) -> Result<Box<dyn Backend>, ForceError> {
        match &self.place {
            Place::Gpu(info) => {
                let mut gpus = vec![self.gpu(info, path.build)?];
                if path.gpus == Gpus::All {
                    let runs = |gpu: &DeviceInfo| {
                        let place = Place::Gpu(Box::new(gpu.clone()));
                        eligible(variant, &place, physics.law).is_ok()
                    };
                    let others = devices()?
                        .into_iter()
                        .filter(|gpu| gpu.ordinal != info.ordinal);
                    for gpu in others.filter(runs) {
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
                let emulator = || Rc::new(Emulator::new(self.thread_order));
                let gpus: Vec<_> = (0..gpus).map(|_| emulator()).collect();
                let many = ManySystems::new(&gpus, variant, bodies, physics, frame)?;
                Ok(Box::new(many))
            }
        }
    }
}
