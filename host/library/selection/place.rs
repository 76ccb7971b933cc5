//! Places that can run variants: devices that are there.

use std::fmt;

use cuda_driver::DeviceInfo;
use gpu_kernels::entries::Entry;

use super::{DeviceChoice, GpuNumbers};
use crate::force::emulated::Emulator;
use crate::plan::Limits;
use crate::ptx;
use crate::ranks::Way;
use crate::rules::{Offer, Processor};
use crate::simd::InstructionSet;
use crate::variants::Variant;

/// A place that can run variants.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// The CPU.
    Cpu,
    /// The emulator.
    Emulator,
    /// As many emulators, which compute one system together.
    Emulators(u32),
    /// A GPU.
    Gpu(Box<DeviceInfo>),
    /// GPUs, two to [`MOST_DEVICES`](super::MOST_DEVICES), which compute one system together.
    Gpus(Vec<DeviceInfo>),
    /// An emulator of each of so many ranks, which compute one system together, or each systems of its own.
    RankEmulators(u32),
    /// A GPU of each rank, which compute one system together, or each systems of its own.
    RankGpus(Vec<DeviceInfo>, Way),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => {
                let threads = rayon::current_num_threads();
                let threads = match threads {
                    1 => "1 thread".to_owned(),
                    several => format!("{several} threads"),
                };
                write!(f, "CPU ({threads}, {})", InstructionSet::detect())
            }
            Self::Emulator => f.write_str("CPU emulator of a GPU"),
            Self::Emulators(count) => write!(f, "CPU emulator of {count} GPUs"),
            Self::Gpu(info) => write!(f, "GPU {} ({})", info.ordinal, info.name),
            Self::Gpus(infos) => write!(f, "GPUs {} ({})", numbers(infos), names(infos)),
            Self::RankEmulators(ranks) => {
                write!(f, "CPU emulators of a GPU for each of {ranks} ranks")
            }
            Self::RankGpus(infos, _) => {
                write!(
                    f,
                    "a GPU of each of {} ranks ({})",
                    infos.len(),
                    names(infos)
                )
            }
        }
    }
}

impl Place {
    /// The choice that leads here.
    pub fn choice(&self) -> DeviceChoice {
        match self {
            Self::Cpu => DeviceChoice::Cpu,
            Self::Emulator => DeviceChoice::Emulator,
            Self::Emulators(count) => DeviceChoice::Emulators(*count),
            Self::Gpu(info) if info.ordinal == 0 => DeviceChoice::Gpu,
            Self::Gpu(info) => DeviceChoice::Cuda(info.ordinal),
            Self::Gpus(infos) => DeviceChoice::Gpus(numbers(infos)),
            Self::RankEmulators(_) => DeviceChoice::Emulator,
            Self::RankGpus(infos, _) => {
                named_by_ranks(infos).map_or(DeviceChoice::Gpu, DeviceChoice::Cuda)
            }
        }
    }

    /// The device that it is, whichever of several such: what figures are recorded for.
    pub fn device(&self) -> String {
        match self {
            Self::Gpu(info) => info.name.clone(),
            Self::Gpus(infos) | Self::RankGpus(infos, _) => names(infos),
            other => other.to_string(),
        }
    }

    /// Limits of launches there.
    pub fn limits(&self) -> Limits {
        match self {
            Self::Gpu(info) => Limits::of(info),
            Self::Gpus(infos) | Self::RankGpus(infos, _) => {
                let all = infos.iter().map(Limits::of);
                all.reduce(Limits::of_both).expect("at least one")
            }
            Self::Cpu | Self::Emulator | Self::Emulators(_) | Self::RankEmulators(_) => {
                Limits::EVERYWHERE
            }
        }
    }

    /// Version of the driver, where there is one.
    pub fn driver(&self) -> Option<String> {
        let (major, minor) = self.gpus().first()?.driver_version;
        Some(format!("CUDA {major}.{minor}"))
    }

    /// The GPUs that it is; none where it is none.
    pub fn gpus(&self) -> &[DeviceInfo] {
        match self {
            Self::Gpu(info) => std::slice::from_ref(&**info),
            Self::Gpus(infos) | Self::RankGpus(infos, _) => infos,
            Self::Cpu | Self::Emulator | Self::Emulators(_) | Self::RankEmulators(_) => &[],
        }
    }

    /// Returns whether all devices there run a kernel, which may need a newer GPU.
    pub fn has(&self, kernel: &Entry) -> bool {
        let has = |gpu| ptx::module_for(gpu, false).is_some_and(|module| module.sm >= kernel.since);
        self.gpus().iter().all(has)
    }

    /// Devices that compute a system together there.
    pub fn devices(&self) -> usize {
        match self {
            Self::Emulators(count) | Self::RankEmulators(count) => *count as usize,
            Self::Gpus(infos) | Self::RankGpus(infos, _) => infos.len(),
            Self::Cpu | Self::Emulator | Self::Gpu(_) => 1,
        }
    }

    /// Offer of this place to a run of as many ranks by a kernel, if one is chosen.
    pub fn offer<'a>(
        &self,
        ranks: usize,
        kernel: Option<&'a Variant>,
        is_named: bool,
    ) -> Offer<'a> {
        let processor = match self {
            Self::Cpu => Processor::Cpu,
            _ if self.is_emulated() => Processor::Emulator,
            _ => Processor::Gpu,
        };
        let ranks = match self {
            Self::RankEmulators(_) | Self::RankGpus(..) => self.devices(),
            _ => ranks,
        };
        Offer {
            processor,
            devices: self.devices(),
            ranks,
            kernel,
            is_named,
        }
    }

    /// Blocks that each device runs at a time, if they are as large as they can be.
    pub(crate) fn multiprocessors(&self) -> u32 {
        let gpus = self.gpus().iter().map(|info| info.sm_count);
        gpus.min().unwrap_or(Emulator::MULTIPROCESSORS)
    }

    /// Returns whether it is the emulator.
    pub const fn is_emulated(&self) -> bool {
        matches!(
            self,
            Self::Emulator | Self::Emulators(_) | Self::RankEmulators(_)
        )
    }
}

/// The number by which all ranks name their GPU, where the first that is free would be another.
fn named_by_ranks(infos: &[DeviceInfo]) -> Option<u32> {
    let number = infos.first()?.ordinal;
    let is_shared = (1..infos.len()).any(|k| infos[..k].iter().any(|it| it.uuid == infos[k].uuid));
    let is_named = infos.iter().all(|info| info.ordinal == number) && (is_shared || number > 0);
    is_named.then_some(number)
}

fn numbers(infos: &[DeviceInfo]) -> GpuNumbers {
    let numbers: Vec<u32> = infos.iter().map(|info| info.ordinal).collect();
    GpuNumbers::new(&numbers).expect("two to the most there can be")
}

/// `2 × NVIDIA H200`; and `NVIDIA H200 for 3` of one that was named so often.
fn names(infos: &[DeviceInfo]) -> String {
    let mut there: Vec<&DeviceInfo> = vec![];
    for info in infos {
        if there.iter().all(|known| known.uuid != info.uuid) {
            there.push(info);
        }
    }
    let alike = there.chunk_by(|a, b| a.name == b.name);
    let names: Vec<_> = alike
        .map(|alike| match alike {
            [one] => one.name.clone(),
            several => format!("{} × {}", several.len(), several[0].name),
        })
        .collect();
    let names = names.join(", ");
    if there.len() < infos.len() {
        return format!("{names} for {}", infos.len());
    }
    names
}
