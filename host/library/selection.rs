//! Choice of variant and device: eligibility (can it run there?) apart from preference (which would
//! be best?). A forced choice skips the preference, never the eligibility.

mod numbers;

use std::fmt;

pub use crate::force::ranked::gpus::NoGpuOfRank;
pub use numbers::{GpuNumbers, MOST_DEVICES};

use cuda_driver::{DeviceInfo, NoBlas, NoGpu, blas_library, devices};

use crate::force::emulated::Emulator;
use crate::force::ranked::gpus;
use crate::integrator::{Integrator, TimeSteps};
use crate::physics::ForceLaw;
use crate::plan::{self, Limits, PlanError};
use crate::ptx::capability;
use crate::ranks::Team;
use crate::simd::InstructionSet;
use crate::variants::preferred::{self, ForceAccuracy};
use crate::variants::{self, Build, Method, Shape, SystemsPath, Variant};
use crate::{limits, ptx};

/// Device to run on, as a user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU, or the CPU where there is none.
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

impl DeviceChoice {
    /// Returns whether several devices may be meant, to compute one system together.
    pub const fn is_several(self) -> bool {
        matches!(self, Self::Emulators(_) | Self::Gpus(_) | Self::AllGpus)
    }
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
    /// GPUs, two to [`MOST_DEVICES`], which compute one system together.
    Gpus(Vec<DeviceInfo>),
    /// An emulator of each of so many ranks, which compute one system together, or each systems of its own.
    RankEmulators(u32),
    /// A GPU of each rank, which compute one system together, or each systems of its own.
    RankGpus(Vec<DeviceInfo>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => {
                let threads = rayon::current_num_threads();
                write!(f, "CPU ({threads} threads, {})", InstructionSet::detect())
            }
            Self::Emulator => f.write_str("CPU emulator of a GPU"),
            Self::Emulators(count) => write!(f, "CPU emulator of {count} GPUs"),
            Self::Gpu(info) => write!(f, "GPU {} ({})", info.ordinal, info.name),
            Self::Gpus(infos) => write!(f, "GPUs {} ({})", numbers(infos), names(infos)),
            Self::RankEmulators(ranks) => {
                write!(f, "CPU emulators of a GPU for each of {ranks} ranks")
            }
            Self::RankGpus(infos) => {
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
            Self::RankGpus(_) => DeviceChoice::Gpu,
        }
    }

    /// The device that it is, whichever of several such: what figures are recorded for.
    pub fn device(&self) -> String {
        match self {
            Self::Gpu(info) => info.name.clone(),
            Self::Gpus(infos) | Self::RankGpus(infos) => names(infos),
            other => other.to_string(),
        }
    }

    /// Limits of launches there.
    pub fn limits(&self) -> Limits {
        match self {
            Self::Gpu(info) => Limits::of(info),
            Self::Gpus(infos) | Self::RankGpus(infos) => {
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
            Self::Gpus(infos) | Self::RankGpus(infos) => infos,
            Self::Cpu | Self::Emulator | Self::Emulators(_) | Self::RankEmulators(_) => &[],
        }
    }

    /// Devices that compute a system together there.
    pub fn devices(&self) -> usize {
        match self {
            Self::Emulators(count) | Self::RankEmulators(count) => *count as usize,
            Self::Gpus(infos) | Self::RankGpus(infos) => infos.len(),
            Self::Cpu | Self::Emulator | Self::Gpu(_) => 1,
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

/// Variant and place that were selected, and the reason.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Variant.
    pub variant: &'static Variant,
    /// In which shape, where not in its own.
    pub shape: Shape,
    /// Place.
    pub place: Place,
    /// Reason, for people: half a sentence.
    pub why: String,
}

/// Reason why the requested device or kernel is unavailable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// A GPU was asked for.
    #[error("the `device` cuda needs a GPU, and there is none: {0}")]
    NoGpu(#[from] NoGpu),
    /// A GPU was asked for that is not there.
    #[error("there is no GPU {asked}: this machine has {count}, counted from 0")]
    NoSuchGpu {
        /// Number of the GPU.
        asked: u32,
        /// Number of GPUs.
        count: usize,
    },
    /// All GPUs were asked for, and they are more than can compute together.
    #[error(
        "there are {count} GPUs, and at most {MOST_DEVICES} compute together: name them, as in \
         the `device` cuda:0,1"
    )]
    TooManyGpus {
        /// Number of GPUs.
        count: usize,
    },
    /// There is no GPU for a rank.
    #[error(transparent)]
    NoGpuOfRank(#[from] NoGpuOfRank),
    /// Ranks were to have several devices each.
    #[error(
        "the `device` {0} names several devices, and each rank computes on one: choose the `device` cuda \
         or emulator, of which each rank has its own, or start without the MPI launcher"
    )]
    SeveralOfRank(DeviceChoice),
    /// The variant cannot run there.
    #[error(transparent)]
    Ineligible(#[from] Ineligible),
}

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
    /// Block time steps on the devices of several ranks.
    #[error(
        "block time steps on a device are taken by one process: start it without the MPI launcher, or \
         choose the `device` cpu, or leave out `block_steps`"
    )]
    BlockStepsOnRanks,
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
        why: NoBlas,
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

/// Forces to compute, and choices that were made: [`select`] makes the others.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Place.
    pub device: DeviceChoice,
    /// The variant, where it is not left to the preference of the device.
    pub kernel: Option<&'static Variant>,
    /// The force law.
    pub law: ForceLaw,
    /// Number of bodies.
    pub bodies: usize,
    /// Independent systems that these are, of equal size.
    pub systems: u32,
    /// Number of those that have mass, and so accelerate others.
    pub sources: usize,
    /// Error that forces may have; where not given, what suits the integrator. A named kernel
    /// overrules it.
    pub accuracy: Option<ForceAccuracy>,
    /// The integrator, which may need jerks.
    pub integrator: Integrator,
    /// Sharing of the steps.
    pub steps: TimeSteps,
    /// True if whole steps are to be taken, one after another, with nothing else that moves bodies or looks
    /// at them after each: neither external fields nor encounters.
    pub steps_alone: bool,
}

impl Request {
    /// Gravity of this many bodies, one system, by the best kernel of the best device, to the rounding of
    /// single precision, in shared steps of leapfrog, or without any.
    pub const fn new(bodies: usize) -> Self {
        Self {
            device: DeviceChoice::Auto,
            kernel: None,
            law: ForceLaw::Gravity,
            bodies,
            systems: 1,
            sources: bodies,
            accuracy: None,
            integrator: Integrator::Leapfrog,
            steps: TimeSteps::Shared,
            steps_alone: false,
        }
    }

    /// On this device.
    #[must_use]
    pub const fn on(self, device: DeviceChoice) -> Self {
        Self { device, ..self }
    }

    /// By this variant, or the preferred one.
    #[must_use]
    pub const fn by(self, kernel: Option<&'static Variant>) -> Self {
        Self { kernel, ..self }
    }

    /// Under this force law.
    #[must_use]
    pub const fn law(self, law: ForceLaw) -> Self {
        Self { law, ..self }
    }
}

/// Finds what to run and where.
///
/// # Errors
/// The reason why the request cannot be met.
pub fn select(request: &Request) -> Result<Selection, SelectionError> {
    select_among(request, None)
}

/// Finds what the ranks of a team are to run together and where, as rank 0: the others
/// [follow](crate::force::ranked::follow).
///
/// # Errors
/// The reason why the request cannot be met.
pub fn select_on_ranks(request: &Request, team: &Team) -> Result<Selection, SelectionError> {
    select_among(request, Some(team))
}

fn select_among(request: &Request, team: Option<&Team>) -> Result<Selection, SelectionError> {
    let Request {
        bodies,
        systems,
        sources,
        accuracy,
        ..
    } = *request;
    if request.integrator.needs_jerks() {
        return select_with_jerks(request, team);
    }
    let accuracy = accuracy.unwrap_or_default();
    choose(request, team, |place| match place {
        Place::Cpu => vec![preferred::cpu(accuracy)],
        _ if systems > 1 => preferred::of_systems(bodies / systems as usize, accuracy),
        gpus => {
            let slow_doubles = gpus.gpus().iter().any(limits::doubles_are_slow);
            let mut names = preferred::gpu(bodies, sources, accuracy, slow_doubles);
            if request.steps_alone
                && request.integrator.is_kicks_and_a_drift()
                && matches!(gpus, Place::Gpu(_) | Place::Emulator)
                && let Some(name) = preferred::of_whole_steps(bodies, names[0])
            {
                names.insert(0, name);
            }
            names
        }
    })
}

/// As [`select`], among the variants that compute jerks, or take block time steps.
fn select_with_jerks(request: &Request, team: Option<&Team>) -> Result<Selection, SelectionError> {
    let Request {
        device,
        kernel,
        law,
        bodies,
        ..
    } = *request;
    let accuracy = request.accuracy.unwrap_or(preferred::WITH_JERKS);
    let blocks = request.steps == TimeSteps::Blocks;
    let sixth = request.integrator == Integrator::Hermite6;
    let slow_on_gpu = bodies < preferred::BLOCKS_ON_GPU || law != ForceLaw::Gravity;
    let suits_cpu = if blocks { slow_on_gpu } else { sixth };
    let on_cpu = suits_cpu && device == DeviceChoice::Auto && kernel.is_none();
    let device = if on_cpu { DeviceChoice::Cpu } else { device };
    let mut selection = choose(&request.on(device), team, |place| match place {
        Place::Cpu => vec![preferred::cpu(accuracy)],
        // The state of block time steps is f64, whatever the digits of pairs.
        _ if blocks => vec![preferred::with_jerks(ForceAccuracy::Double)],
        _ => vec![preferred::with_jerks(accuracy)],
    })?;
    let on_ranks = matches!(
        selection.place,
        Place::RankGpus(_) | Place::RankEmulators(_)
    );
    if blocks && on_ranks {
        return Err(SelectionError::Ineligible(Ineligible::BlockStepsOnRanks));
    }
    if !selection.variant.gives_jerks() {
        return Err(SelectionError::Ineligible(Ineligible::NoJerks {
            kernel: selection.variant.name,
            integrator: request.integrator.name(),
        }));
    }
    if sixth && !blocks && selection.place != Place::Cpu {
        return Err(SelectionError::Ineligible(Ineligible::NoSnaps));
    }
    if on_cpu {
        selection.why = "the CPU suits such steps best, its preferred kernel".into();
    }
    Ok(selection)
}

fn choose(
    request: &Request,
    team: Option<&Team>,
    preferred: impl Fn(&Place) -> Vec<&'static str>,
) -> Result<Selection, SelectionError> {
    let Request { kernel, law, .. } = *request;
    let host_only = kernel.is_some_and(|v| matches!(v.method, Method::Reference | Method::Cpu(_)));
    let (place, mut why) = match team {
        Some(team) => place_of_ranks(request.device, host_only, team)?,
        None => place_for(request.device, host_only)?,
    };
    let variant = match kernel {
        Some(variant) => {
            why += ", kernel as asked";
            variant
        }
        None => {
            why += ", its preferred kernel for such a run";
            let mut names = preferred(&place);
            names.push(preferred::of_all_laws(place == Place::Cpu));
            let listed = names.into_iter().map(variants::find);
            let listed = listed.collect::<Result<Vec<_>, _>>();
            let listed = listed.expect("preferred variants are listed");
            let runs = |variant: &&'static Variant| eligible(variant, &place, law).is_ok();
            let running = listed.iter().copied().find(runs);
            running.unwrap_or(listed[0])
        }
    };
    eligible(variant, &place, law)?;
    Ok(Selection {
        variant,
        shape: Shape::default(),
        place,
        why,
    })
}

fn place_of_ranks(
    device: DeviceChoice,
    host_only: bool,
    team: &Team,
) -> Result<(Place, String), SelectionError> {
    match device {
        DeviceChoice::Cpu => place_for(device, host_only),
        DeviceChoice::Auto if host_only => place_for(device, host_only),
        DeviceChoice::Emulator => Ok((
            Place::RankEmulators(team.size() as u32),
            "emulators as asked".into(),
        )),
        DeviceChoice::Emulators(_) | DeviceChoice::Gpus(_) | DeviceChoice::AllGpus => {
            Err(SelectionError::SeveralOfRank(device))
        }
        DeviceChoice::Gpu => {
            let gpus = gpus::one_each(&gpus::seen_by_all(team))?;
            Ok((Place::RankGpus(gpus), "GPUs as asked".into()))
        }
        DeviceChoice::Cuda(asked) => {
            let gpus = gpus::numbered(&gpus::seen_by_all(team), asked)?;
            Ok((Place::RankGpus(gpus), "GPUs as asked".into()))
        }
        DeviceChoice::Auto => {
            let seen = gpus::seen_by_all(team);
            if seen.iter().all(Result::is_err) {
                return Ok((Place::Cpu, "no GPUs, so the CPU".into()));
            }
            let gpus = gpus::one_each(&seen)?;
            Ok((Place::RankGpus(gpus), "a GPU for each rank".into()))
        }
    }
}

fn place_for(device: DeviceChoice, host_only: bool) -> Result<(Place, String), SelectionError> {
    match device {
        DeviceChoice::Cpu => Ok((Place::Cpu, "CPU as asked".into())),
        DeviceChoice::Emulator => Ok((Place::Emulator, "emulator as asked".into())),
        DeviceChoice::Emulators(count) => {
            Ok((Place::Emulators(count), "emulators as asked".into()))
        }
        DeviceChoice::Gpu => place_for(DeviceChoice::Cuda(0), host_only),
        DeviceChoice::Cuda(asked) => {
            let gpu = gpu(&devices()?, asked)?;
            Ok((Place::Gpu(Box::new(gpu)), "GPU as asked".into()))
        }
        DeviceChoice::Gpus(numbers) => {
            let there = devices()?;
            let numbers = numbers.as_slice().iter();
            let gpus = numbers.map(|&asked| gpu(&there, asked));
            let gpus = gpus.collect::<Result<Vec<_>, _>>()?;
            Ok((Place::Gpus(gpus), "GPUs as asked".into()))
        }
        DeviceChoice::AllGpus => {
            let mut gpus = devices()?;
            let place = match gpus.len() {
                1 => Place::Gpu(Box::new(gpus.remove(0))),
                2..=MOST_DEVICES => Place::Gpus(gpus),
                count => return Err(SelectionError::TooManyGpus { count }),
            };
            Ok((place, "all GPUs, as asked".into()))
        }
        DeviceChoice::Auto if host_only => Ok((Place::Cpu, "CPU code".into())),
        DeviceChoice::Auto => match devices() {
            Ok(gpus) => {
                let first = gpus.into_iter().next();
                let first = first.expect("`devices` lists at least one");
                Ok((Place::Gpu(Box::new(first)), "the first GPU".into()))
            }
            Err(_) => Ok((Place::Cpu, "no GPU, so the CPU".into())), // `allpairs devices` says why
        },
    }
}

fn gpu(there: &[DeviceInfo], asked: u32) -> Result<DeviceInfo, SelectionError> {
    let gpu = there.iter().find(|gpu| gpu.ordinal == asked);
    let count = there.len();
    gpu.cloned()
        .ok_or(SelectionError::NoSuchGpu { asked, count })
}

#[cfg(test)]
mod tests;
