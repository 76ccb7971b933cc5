//! Sums over pairs and their derivatives on a device.

use std::sync::Arc;

use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::pair_sums::SumName;

use super::Machine;
use crate::backend::ForceError;
use crate::force::emulated::Emulator;
use crate::force::pair_sums::{Devices, OnDevice, PairSums, Sweep};
use crate::variants::Build;

/// A sum over pairs, as devices compute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelOfPairs {
    /// Name of the kernel.
    pub name: &'static str,
    /// The sum.
    pub sum: SumName,
    /// Precision of the pairs.
    pub precision: Precision,
    /// The way through the pairs.
    pub way: Sweep,
}

impl KernelOfPairs {
    /// Kernels of devices.
    pub const OF_DEVICES: [Self; 20] = [
        Self::new("sum-force", SumName::Force, F32, Sweep::OneSided),
        Self::new("sum-force-f64", SumName::Force, F64, Sweep::OneSided),
        Self::new("sum-once-force", SumName::Force, F32, Sweep::Once),
        Self::new("sum-once-force-f64", SumName::Force, F64, Sweep::Once),
        Self::new("sum-tangent", SumName::Tangent, F32, Sweep::OneSided),
        Self::new("sum-tangent-f64", SumName::Tangent, F64, Sweep::OneSided),
        Self::new("sum-pull", SumName::Pull, F32, Sweep::OneSided),
        Self::new("sum-pull-f64", SumName::Pull, F64, Sweep::OneSided),
        Self::new("sum-once-pull", SumName::Pull, F32, Sweep::Once),
        Self::new("sum-once-pull-f64", SumName::Pull, F64, Sweep::Once),
        Self::new("sum-pull-all", SumName::PullAll, F32, Sweep::OneSided),
        Self::new("sum-pull-all-f64", SumName::PullAll, F64, Sweep::OneSided),
        Self::new("sum-once-pull-all", SumName::PullAll, F32, Sweep::Once),
        Self::new("sum-once-pull-all-f64", SumName::PullAll, F64, Sweep::Once),
        Self::new("sum-potential", SumName::Potential, F32, Sweep::OneSided),
        Self::new(
            "sum-potential-f64",
            SumName::Potential,
            F64,
            Sweep::OneSided,
        ),
        Self::new(
            "sum-potential-tangent",
            SumName::PotentialTangent,
            F32,
            Sweep::OneSided,
        ),
        Self::new(
            "sum-potential-tangent-f64",
            SumName::PotentialTangent,
            F64,
            Sweep::OneSided,
        ),
        Self::new(
            "sum-potential-pull",
            SumName::PotentialPull,
            F32,
            Sweep::OneSided,
        ),
        Self::new(
            "sum-potential-pull-f64",
            SumName::PotentialPull,
            F64,
            Sweep::OneSided,
        ),
    ];

    const fn new(name: &'static str, sum: SumName, precision: Precision, way: Sweep) -> Self {
        Self {
            name,
            sum,
            precision,
            way,
        }
    }
}

const F32: Precision = Precision::F32;
const F64: Precision = Precision::F64;

impl Machine {
    /// Sums over pairs on this machine: a GPU, or the emulator.
    ///
    /// # Errors
    /// If the driver refuses the GPU, or the place is several devices.
    pub fn pair_sums(&self) -> Result<Box<dyn PairSums>, ForceError> {
        Ok(match self.one_gpu("derivatives are computed")? {
            Some(info) => Box::new(OnDevice::new(Devices {
                // Terms that are flushed are nothing next to others, and 1/√ is faster so.
                single: self.gpu(info, Build::Ftz)?,
                double: self.gpu(info, Build::Precise)?,
            })),
            None => {
                let emulator = || Arc::new(Emulator::new(self.thread_order));
                Box::new(OnDevice::new(Devices {
                    single: emulator(),
                    double: emulator(),
                }))
            }
        })
    }
}
