//! Which variant runs where: eligibility (can it run there?) apart from preference (which would be
//! best?). A forced choice skips the preference, never the eligibility.

mod blocks;
mod many;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use cuda_driver::{DeviceInfo, NoBlas, NoGpu, blas_library, devices};
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::block_steps::DigitsName;

use crate::bodies::Bodies;
use crate::force::cpu::{Choices, Cpu, InstructionSet};
use crate::force::cuda::Cuda;
use crate::force::device::Device;
use crate::force::emulated::Emulator;
use crate::force::independent::Independent;
use crate::force::reference::Reference;
use crate::force::resident::Resident;
use crate::force::{Backend, ForceError, Law, Physics};
use crate::frame::Frame;
use crate::integrator::Integrator;
use crate::plan::systems::SystemsError;
use crate::plan::{self, Limits, PlanError};
use crate::simulation::Stepping;
use crate::variants::preferred::{self, ForceAccuracy};
use crate::variants::{
    self, Build, CpuPath, Method, OutOfRange, Shape, SystemsPath, UnknownVariant, Variant,
};
use crate::{limits, ptx};

/// Where to run, as a user says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU, or the CPU where there is none.
    Auto,
    /// The CPU.
    Cpu,
    /// The CPU emulator of a GPU.
    Emulator,
    /// This GPU.
    Cuda(u32),
}

/// `auto`, `cpu`, `emulator`, `cuda` or `cuda:1`.
impl std::str::FromStr for DeviceChoice {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "emulator" => Ok(Self::Emulator),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| UnknownDevice(text.to_owned())),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Emulator => f.write_str("emulator"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

/// No device is called this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no device `{0}`: use auto, cpu, emulator, cuda, or cuda:1 for the second GPU")]
pub struct UnknownDevice(pub String);

/// A place that can run variants.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// The CPU.
    Cpu,
    /// The emulator.
    Emulator,
    /// A GPU.
    Gpu(Box<DeviceInfo>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => {
                let threads = rayon::current_num_threads();
                write!(f, "CPU ({threads} threads, {})", InstructionSet::detect())
            }
            Self::Emulator => f.write_str("CPU emulator of a GPU"),
            Self::Gpu(info) => write!(f, "GPU {} ({})", info.ordinal, info.name),
        }
    }
}

impl Place {
    /// The choice that leads here.
    pub fn choice(&self) -> DeviceChoice {
        match self {
            Self::Cpu => DeviceChoice::Cpu,
            Self::Emulator => DeviceChoice::Emulator,
            Self::Gpu(info) => DeviceChoice::Cuda(info.ordinal),
        }
    }

    /// The device that it is, whichever of several such: what figures are recorded for.
    pub fn device(&self) -> String {
        match self {
            Self::Gpu(info) => info.name.clone(),
            other => other.to_string(),
        }
    }

    /// Version of the driver, where there is one.
    pub fn driver(&self) -> Option<String> {
        match self {
            Self::Gpu(info) => {
                let (major, minor) = info.driver_version;
                Some(format!("CUDA {major}.{minor}"))
            }
            Self::Cpu | Self::Emulator => None,
        }
    }
}

/// What will run where, and why.
#[derive(Clone, Debug)]
pub struct Selection {
    /// What.
    pub variant: &'static Variant,
    /// In which shape, where not in its own.
    pub shape: Shape,
    /// Where.
    pub place: Place,
    /// Why, for people: half a sentence.
    pub why: String,
}

/// Why a choice cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// No such variant.
    #[error(transparent)]
    Unknown(#[from] UnknownVariant),
    /// A GPU was asked for.
    #[error("--device cuda needs a GPU, and there is none: {0}")]
    NoGpu(#[from] NoGpu),
    /// A GPU was asked for that is not there.
    #[error("there is no GPU {asked}: this machine has {count}, counted from 0")]
    NoSuchGpu {
        /// Its number.
        asked: u32,
        /// How many there are.
        count: usize,
    },
    /// The variant cannot run there.
    #[error(transparent)]
    Ineligible(#[from] Ineligible),
}

/// Why a variant cannot run at a place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Ineligible {
    /// Device code, on a CPU.
    #[error("kernel `{0}` is GPU code: choose --device cuda, or --device emulator (slow)")]
    NeedsGpu(&'static str),
    /// CPU code, on a GPU.
    #[error("kernel `{0}` is CPU code: choose --device cpu or auto")]
    NeedsCpu(&'static str),
    /// Its study has another law.
    #[error("kernel `{kernel}` does not compute the law {law}, which `reference` does")]
    NotThisLaw {
        /// The variant.
        kernel: &'static str,
        /// The law.
        law: Law,
    },
    /// The integrator needs more than it computes.
    #[error(
        "kernel `{kernel}` computes no jerks, which {integrator} needs: choose --kernel hermite-f64 \
         or --device cpu, or another integrator"
    )]
    NoJerks {
        /// The variant.
        kernel: &'static str,
        /// The integrator.
        integrator: &'static str,
    },
    /// A library that does part of its work is not here.
    #[error("kernel `{kernel}` cannot run: {why}")]
    NoLibrary {
        /// The variant.
        kernel: &'static str,
        /// Why not.
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
        /// What it has.
        capability: (u32, u32),
        /// What is needed.
        oldest: String,
    },
}

/// Compute capability as PTX targets count it: 90 for 9.0.
fn capability(info: &DeviceInfo) -> u32 {
    info.compute_capability.0 * 10 + info.compute_capability.1
}

/// Whether a variant can run at a place.
///
/// # Errors
/// Why it cannot.
pub fn eligible(variant: &Variant, place: &Place, law: Law) -> Result<(), Ineligible> {
    if !variant.computes(law) {
        return Err(Ineligible::NotThisLaw {
            kernel: variant.name,
            law,
        });
    }
    match (variant.method, place) {
        (Method::Kernel { .. } | Method::Systems(_), Place::Cpu) => {
            Err(Ineligible::NeedsGpu(variant.name))
        }
        (
            Method::Kernel { build, .. } | Method::Systems(SystemsPath { build, .. }),
            Place::Gpu(info),
        ) => {
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
        (Method::Kernel { .. } | Method::Systems(_), Place::Emulator) => Ok(()),
        (Method::Reference | Method::Cpu(_), Place::Cpu) => Ok(()),
        (Method::Reference | Method::Cpu(_), _) => Err(Ineligible::NeedsCpu(variant.name)),
    }
}

/// Whether the library that does part of a variant's work on a GPU is here, if one does.
///
/// # Errors
/// Why it is not.
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

/// Whether the launches of an [`eligible`] variant, in the shape that it has, fit a place.
///
/// # Errors
/// Why they do not, with the numbers.
pub fn fits(variant: &Variant, place: &Place, law: Law, bodies: usize) -> Result<(), PlanError> {
    let variant = variant.fitted(bodies);
    let Method::Kernel { block, .. } = variant.method else {
        return Ok(());
    };
    let Some(entry) = variant.force(law, false) else {
        return Ok(());
    };
    let limits = match place {
        Place::Gpu(info) => Limits::of(info),
        Place::Cpu | Place::Emulator => Limits::EVERYWHERE,
    };
    plan::stride(entry, bodies)?;
    plan::force(entry, bodies as u32, block, variant.split(), &limits).map(drop)
}

/// Finds what to run and where, for this many bodies, right to the rounding of single precision.
///
/// # Errors
/// Why the choice cannot be had.
pub fn select(
    device: DeviceChoice,
    kernel: Option<&str>,
    law: Law,
    bodies: usize,
) -> Result<Selection, SelectionError> {
    select_within(device, kernel, law, bodies, ForceAccuracy::Single)
}

/// As [`select`], with another accuracy, which a named kernel overrules.
///
/// # Errors
/// Why the choice cannot be had.
pub fn select_within(
    device: DeviceChoice,
    kernel: Option<&str>,
    law: Law,
    bodies: usize,
    accuracy: ForceAccuracy,
) -> Result<Selection, SelectionError> {
    choose(device, kernel, law, |place| match place {
        Place::Cpu => vec![preferred::cpu(accuracy)],
        Place::Emulator => preferred::gpu(bodies, accuracy, false),
        Place::Gpu(info) => preferred::gpu(bodies, accuracy, limits::doubles_are_slow(info)),
    })
}

fn choose(
    device: DeviceChoice,
    kernel: Option<&str>,
    law: Law,
    preferred: impl Fn(&Place) -> Vec<&'static str>,
) -> Result<Selection, SelectionError> {
    let forced = kernel.map(variants::find).transpose()?;
    let (place, mut why) = place_for(device, forced)?;
    let variant = match forced {
        Some(variant) => {
            why += ", kernel as asked";
            variant
        }
        None => {
            why += ", its preferred kernel for such a run";
            let mut names = preferred(&place);
            names.push(preferred::of_all_laws(place == Place::Cpu));
            let listed: Result<Vec<_>, _> = names.into_iter().map(variants::find).collect();
            let listed = listed?;
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

/// As [`select_within`], for an integrator and its steps: `auto` looks only at what computes the
/// jerks, or takes the block time steps, that it may need. Without an accuracy it is the one that
/// suits the integrator.
///
/// # Errors
/// Why the choice cannot be had.
pub fn select_for(
    device: DeviceChoice,
    kernel: Option<&str>,
    law: Law,
    bodies: usize,
    accuracy: Option<ForceAccuracy>,
    (integrator, steps): (Integrator, Stepping),
) -> Result<Selection, SelectionError> {
    if !integrator.needs_jerks() {
        return select_within(device, kernel, law, bodies, accuracy.unwrap_or_default());
    }
    let blocks = steps == Stepping::Blocks;
    let on_cpu = blocks
        && device == DeviceChoice::Auto
        && kernel.is_none()
        && bodies < preferred::MANY_FOR_BLOCK_STEPS;
    let device = if on_cpu { DeviceChoice::Cpu } else { device };
    let mut selection = choose(device, kernel, law, |place| match place {
        Place::Cpu => vec![preferred::cpu(accuracy.unwrap_or_default())],
        // The state of block time steps is f64, whatever the digits of pairs.
        Place::Emulator | Place::Gpu(_) if blocks => vec![preferred::with_jerks(None)],
        Place::Emulator | Place::Gpu(_) => vec![preferred::with_jerks(accuracy)],
    })?;
    if !selection.variant.gives_jerks() {
        return Err(SelectionError::Ineligible(Ineligible::NoJerks {
            kernel: selection.variant.name,
            integrator: integrator.name(),
        }));
    }
    if on_cpu {
        selection.why = "the CPU takes block time steps of few bodies, its preferred kernel".into();
    }
    Ok(selection)
}

fn place_for(
    device: DeviceChoice,
    forced: Option<&'static Variant>,
) -> Result<(Place, String), SelectionError> {
    let host_only = forced.is_some_and(|v| matches!(v.method, Method::Reference | Method::Cpu(_)));
    match device {
        DeviceChoice::Cpu => Ok((Place::Cpu, "CPU as asked".into())),
        DeviceChoice::Emulator => Ok((Place::Emulator, "emulator as asked".into())),
        DeviceChoice::Cuda(asked) => {
            let gpus = devices()?;
            let count = gpus.len();
            let gpu = gpus.into_iter().find(|gpu| gpu.ordinal == asked);
            let gpu = gpu.ok_or(SelectionError::NoSuchGpu { asked, count })?;
            Ok((Place::Gpu(Box::new(gpu)), "GPU as asked".into()))
        }
        DeviceChoice::Auto if host_only => Ok((Place::Cpu, "CPU code".into())),
        DeviceChoice::Auto => match devices() {
            Ok(gpus) => {
                let first = gpus.into_iter().next();
                let first = first.expect("`devices` lists at least one");
                Ok((Place::Gpu(Box::new(first)), "the first GPU".into()))
            }
            Err(no_gpu) => Ok((Place::Cpu, format!("{no_gpu}, so the CPU"))),
        },
    }
}

/// A place, ready to run variants: a GPU is opened, and each module compiled for it, once.
pub struct Machine {
    place: Place,
    allow_inaccurate: bool,
    /// Those that were opened, by number and whether denormals are flushed.
    gpus: RefCell<HashMap<(u32, bool), Rc<Cuda>>>,
    /// Seed of the order in which the emulator runs threads.
    thread_order: u64,
    /// The digits of block time steps on a device, if a run takes them.
    block_steps: Option<DigitsName>,
}

impl Machine {
    /// The machine at a place.
    pub fn new(place: Place) -> Self {
        Self {
            place,
            allow_inaccurate: false,
            gpus: RefCell::default(),
            thread_order: 0,
            block_steps: None,
        }
    }

    /// The emulator, running threads in the order that belongs to `thread_order`; 0 is the natural
    /// one. Results must not depend on it, beyond the rounding of atomic additions.
    pub fn emulator(thread_order: u64) -> Self {
        Self {
            thread_order,
            ..Self::new(Place::Emulator)
        }
    }

    /// Whether variants may compute forces whose error has no bound.
    pub fn allow_inaccurate(self, allow: bool) -> Self {
        Self {
            allow_inaccurate: allow,
            ..self
        }
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// As [`backend`](Self::backend), in the frame of an earlier run of the same variant.
    ///
    /// # Errors
    /// As [`backend`](Self::backend).
    ///
    /// # Panics
    /// As [`backend`](Self::backend).
    pub fn backend_in_frame(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        frame: Frame,
    ) -> Result<Box<dyn Backend>, ForceError> {
        self.make(variant, bodies, physics, Some(frame))
    }

    /// Puts bodies there, to be accelerated by a variant that is [`eligible`] there.
    ///
    /// # Errors
    /// If the place refuses, or has too little memory, or the variant bounds no error of these
    /// bodies' forces.
    ///
    /// # Panics
    /// If the variant is not eligible.
    pub fn backend(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
    ) -> Result<Box<dyn Backend>, ForceError> {
        self.make(variant, bodies, physics, None)
    }

    fn make(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        frame: Option<Frame>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        if let Err(why) = eligible(variant, &self.place, physics.law) {
            panic!("{why}");
        }
        match variant.in_range(bodies, &physics) {
            Err(OutOfRange {
                computable: true, ..
            }) if self.allow_inaccurate => {}
            checked => checked?,
        }
        let variant = &variant.fitted(bodies.len());
        let (build, block) = match variant.method {
            Method::Reference => {
                let reference = |part: &Bodies| Reference::new(part, physics);
                let many = Independent::new(bodies, variant.systems, reference)?;
                return Ok(many.into_backend());
            }
            Method::Cpu(CpuPath {
                precision,
                root,
                pairs,
                threads,
            }) => {
                let choices = Choices {
                    root,
                    pairs,
                    threads,
                    ..Choices::default()
                };
                let systems = variant.systems;
                return Ok(match precision {
                    Precision::F64 => {
                        let cpu = |part: &Bodies| Cpu::<f64>::with(part, physics, choices);
                        let many = Independent::new(bodies, systems, cpu)?;
                        many.on(threads).into_backend()
                    }
                    _ => {
                        let cpu = |part: &Bodies| Cpu::<f32>::with(part, physics, choices);
                        let many = Independent::new(bodies, systems, cpu)?;
                        many.on(threads).into_backend()
                    }
                });
            }
            Method::Systems(path) => {
                let frame = frame.unwrap_or_else(|| Frame::of(bodies, &physics));
                return self.many(variant, path, bodies, physics, frame);
            }
            Method::Kernel { .. } if variant.systems != 1 => {
                let (kernel, systems) = (variant.name, variant.systems);
                return Err(PlanError::from(SystemsError::OneSystem { kernel, systems }).into());
            }
            Method::Kernel { build, block, .. } => (build, block),
        };
        let frame = frame.unwrap_or_else(|| Frame::of(bodies, &physics));
        // Denormals of f32 are of no use to block time steps, whose state is f64.
        let build = match self.block_steps {
            Some(DigitsName::Single | DigitsName::Mixed) => Build::Ftz,
            Some(DigitsName::Double) | None => build,
        };
        match &self.place {
            Place::Gpu(info) => {
                let gpu = self.gpu(info, build)?;
                let slices = gpu.multiprocessors();
                let resident = Resident::in_frame(gpu, variant, block, bodies, physics, frame)?;
                self.stepped(resident, slices)
            }
            Place::Emulator | Place::Cpu => {
                let emulator = Rc::new(Emulator::new(self.thread_order));
                let slices = emulator.multiprocessors();
                let resident =
                    Resident::in_frame(emulator, variant, block, bodies, physics, frame)?;
                self.stepped(resident, slices)
            }
        }
    }

    fn gpu(&self, info: &DeviceInfo, build: Build) -> Result<Rc<Cuda>, ForceError> {
        let ftz = build == Build::Ftz;
        let mut gpus = self.gpus.borrow_mut();
        if let Some(gpu) = gpus.get(&(info.ordinal, ftz)) {
            return Ok(Rc::clone(gpu));
        }
        let module =
            ptx::module_for(capability(info), ftz).expect("an eligible variant has a module");
        let gpu = Rc::new(Cuda::open(info.ordinal, module)?);
        gpus.insert((info.ordinal, ftz), Rc::clone(&gpu));
        Ok(gpu)
    }
}

#[cfg(test)]
mod tests;
