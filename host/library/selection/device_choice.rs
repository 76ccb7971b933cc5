//! Devices as a user names them.

use std::fmt;

use super::{GpuNumbers, MOST_DEVICES};

/// Device to run on, as a user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU, or the CPU where there is none; or several GPUs, where a request allows them.
    Auto,
    /// The CPU.
    Cpu,
    /// The CPU emulator of a GPU.
    Emulator,
    /// As many emulated GPUs, at least two, which compute one system together.
    Emulators(u32),
    /// The first GPU; of ranks, each has one of its own.
    Gpu,
    /// This GPU; of ranks, the one of each that has this number there.
    Cuda(u32),
    /// These GPUs, which compute one system together.
    Gpus(GpuNumbers),
    /// All GPUs of the machine, which compute one system together if they are several.
    AllGpus,
}

/// `auto`, `cpu`, `emulator`, `cuda` or `cuda:1`; and several devices together: `cuda:all`, `cuda:0,1` or
/// `emulator:3`.
impl std::str::FromStr for DeviceChoice {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let named = match text {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "emulator" => Some(Self::Emulator),
            "cuda" => Some(Self::Gpu),
            "cuda:all" => Some(Self::AllGpus),
            _ => match text.split_once(':') {
                Some(("cuda", numbers)) => Self::gpus(numbers),
                Some(("emulator", count)) => Self::emulators(count),
                _ => None,
            },
        };
        named.ok_or_else(|| UnknownDevice(text.to_owned()))
    }
}

impl DeviceChoice {
    /// GPUs of these numbers, separated by commas.
    fn gpus(numbers: &str) -> Option<Self> {
        let numbers = numbers.split(',').map(|number| number.parse().ok());
        let numbers = numbers.collect::<Option<Vec<u32>>>()?;
        match numbers.as_slice() {
            [one] => Some(Self::Cuda(*one)),
            several => GpuNumbers::new(several).map(Self::Gpus),
        }
    }

    fn emulators(count: &str) -> Option<Self> {
        match count.parse().ok()? {
            1 => Some(Self::Emulator),
            count if (2..=MOST_DEVICES as u32).contains(&count) => Some(Self::Emulators(count)),
            _ => None,
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Emulator => f.write_str("emulator"),
            Self::Emulators(count) => write!(f, "emulator:{count}"),
            Self::Gpu => f.write_str("cuda"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::Gpus(numbers) => write!(f, "cuda:{numbers}"),
            Self::AllGpus => f.write_str("cuda:all"),
        }
    }
}

/// No device is called this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no device `{0}`: use auto, cpu, emulator, cuda, cuda:1 for the second GPU, or several \
     together: cuda:0,1, cuda:all, emulator:3 (up to {MOST_DEVICES})"
)]
pub struct UnknownDevice(pub String);
