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

/// A place that can run variants: processors of one kind, in this process or one in each rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    processors: Processors,
    /// The route between ranks, if each of the devices belongs to a rank.
    ranks: Option<Way>,
}

/// Processors of one kind. Several compute one system together, or each systems of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Processors {
    /// The CPU.
    Cpu,
    /// Emulators of a GPU.
    Emulators(u32),
    /// GPUs, up to [`MOST_DEVICES`](super::MOST_DEVICES).
    Gpus(Vec<DeviceInfo>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.processors, self.ranks) {
            (Processors::Cpu, _) => {
                let threads = rayon::current_num_threads();
                let threads = match threads {
                    1 => "1 thread".to_owned(),
                    several => format!("{several} threads"),
                };
                write!(f, "CPU ({threads}, {})", InstructionSet::detect())
            }
            (Processors::Emulators(ranks), Some(_)) => {
                write!(f, "CPU emulators of a GPU for each of {ranks} ranks")
            }
            (Processors::Emulators(1), None) => f.write_str("CPU emulator of a GPU"),
            (Processors::Emulators(count), None) => write!(f, "CPU emulator of {count} GPUs"),
            (Processors::Gpus(infos), Some(_)) => {
                let (ranks, names) = (infos.len(), names(infos));
                write!(f, "a GPU of each of {ranks} ranks ({names})")
            }
            (Processors::Gpus(infos), None) => match infos.as_slice() {
                [info] => write!(f, "GPU {} ({})", info.ordinal, info.name),
                infos => write!(f, "GPUs {} ({})", numbers(infos), names(infos)),
            },
        }
    }
}

impl Place {
    /// The CPU.
    pub const CPU: Self = Self::new(Processors::Cpu);
    /// One emulator of a GPU.
    pub const EMULATOR: Self = Self::of_emulators(1);

    const fn new(processors: Processors) -> Self {
        Self {
            processors,
            ranks: None,
        }
    }

    /// Emulators of a GPU.
    ///
    /// # Panics
    /// If there are none.
    pub const fn of_emulators(count: u32) -> Self {
        assert!(count > 0, "there is at least one");
        Self::new(Processors::Emulators(count))
    }

    /// A GPU.
    pub fn of_gpu(info: DeviceInfo) -> Self {
        Self::of_gpus(vec![info])
    }

    /// GPUs; one that is listed several times counts as several.
    ///
    /// # Panics
    /// If there are none.
    pub fn of_gpus(infos: Vec<DeviceInfo>) -> Self {
        assert!(!infos.is_empty(), "there is at least one");
        Self::new(Processors::Gpus(infos))
    }

    /// These devices, each of another rank, with results exchanged by this route.
    #[must_use]
    pub fn over_ranks(self, way: Way) -> Self {
        Self {
            ranks: Some(way),
            ..self
        }
    }

    /// The processors.
    pub(crate) const fn processors(&self) -> &Processors {
        &self.processors
    }

    /// The route between ranks, if each of the devices belongs to a rank.
    pub(crate) const fn ranks(&self) -> Option<Way> {
        self.ranks
    }

    /// The choice that leads here.
    pub fn choice(&self) -> DeviceChoice {
        match (&self.processors, self.ranks) {
            (Processors::Cpu, _) => DeviceChoice::Cpu,
            (Processors::Emulators(1), _) | (Processors::Emulators(_), Some(_)) => {
                DeviceChoice::Emulator
            }
            (Processors::Emulators(count), None) => DeviceChoice::Emulators(*count),
            (Processors::Gpus(infos), Some(_)) => {
                named_by_ranks(infos).map_or(DeviceChoice::Gpu, DeviceChoice::Cuda)
            }
            (Processors::Gpus(infos), None) => match infos.as_slice() {
                [info] if info.ordinal == 0 => DeviceChoice::Gpu,
                [info] => DeviceChoice::Cuda(info.ordinal),
                infos => DeviceChoice::Gpus(numbers(infos)),
            },
        }
    }

    /// Name of the kind of device, without its number: what figures are recorded for.
    pub fn device(&self) -> String {
        match &self.processors {
            Processors::Gpus(infos) => names(infos),
            _ => self.to_string(),
        }
    }

    /// Limits of launches there.
    pub fn limits(&self) -> Limits {
        let all = self.gpus().iter().map(Limits::of);
        all.reduce(Limits::of_both).unwrap_or(Limits::EVERYWHERE)
    }

    /// Version of the driver, where there is one.
    pub fn driver(&self) -> Option<String> {
        let (major, minor) = self.gpus().first()?.driver_version;
        Some(format!("CUDA {major}.{minor}"))
    }

    /// The GPUs that it is; none where it is none.
    pub fn gpus(&self) -> &[DeviceInfo] {
        match &self.processors {
            Processors::Gpus(infos) => infos,
            Processors::Cpu | Processors::Emulators(_) => &[],
        }
    }

    /// Returns whether all devices there run a kernel, which may need a newer GPU.
    pub fn has(&self, kernel: &Entry) -> bool {
        let has = |gpu| ptx::module_for(gpu, false).is_some_and(|module| module.sm >= kernel.since);
        self.gpus().iter().all(has)
    }

    /// Devices that compute a system together there.
    pub fn devices(&self) -> usize {
        match &self.processors {
            Processors::Cpu => 1,
            Processors::Emulators(count) => *count as usize,
            Processors::Gpus(infos) => infos.len(),
        }
    }

    /// Kind of the processors.
    pub const fn processor(&self) -> Processor {
        match self.processors {
            Processors::Cpu => Processor::Cpu,
            Processors::Emulators(_) => Processor::Emulator,
            Processors::Gpus(_) => Processor::Gpu,
        }
    }

    /// Returns whether it is the CPU.
    pub const fn is_cpu(&self) -> bool {
        matches!(self.processors, Processors::Cpu)
    }

    /// Returns whether it is the emulator.
    pub const fn is_emulated(&self) -> bool {
        matches!(self.processors, Processors::Emulators(_))
    }

    /// Offer of this place to a run of as many ranks by a kernel, if one is chosen.
    pub fn offer<'a>(
        &self,
        ranks: usize,
        kernel: Option<&'a Variant>,
        is_named: bool,
    ) -> Offer<'a> {
        let ranks = match self.ranks {
            Some(_) => self.devices(),
            None => ranks,
        };
        Offer {
            processor: self.processor(),
            devices: self.devices(),
            ranks,
            kernel,
            is_named,
        }
    }

    /// Blocks that each device runs at a time, if they are as large as they can be.
    pub(crate) fn multiprocessors(&self) -> u32 {
        let counts = self.gpus().iter().map(|info| info.sm_count);
        counts.min().unwrap_or(Emulator::MULTIPROCESSORS)
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
