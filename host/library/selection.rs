//! Choice of variant and device: eligibility (can it run there?) apart from preference (which would
//! be best?). A forced choice skips the preference, never the eligibility.

mod device_choice;
mod eligible;
mod numbers;
mod place;
mod together;

pub use crate::force::ranked::gpus::NoGpuOfRank;
pub use device_choice::{DeviceChoice, UnknownDevice};
pub(crate) use eligible::loads;
pub use eligible::{Ineligible, eligible, fits, library};
pub use numbers::{GpuNumbers, MOST_DEVICES};
pub use place::Place;
pub(crate) use place::Processors;

use cuda_driver::{DeviceInfo, NoGpu, devices};

use crate::force::ranked::gpus;
use crate::integrator::{Integrator, TimeSteps};
use crate::limits;
use crate::physics::ForceLaw;
use crate::ranks::{Team, Way};
use crate::refusals::Refusals;
use crate::rules::{self, Needs};
use crate::settings::Setting;
use crate::variants::preferred::{self, ForceAccuracy};
use crate::variants::{self, Method, Shape, Variant};

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
    #[error("{cuda} needs a GPU, and there is none: {0}", cuda = Setting::Device.with("cuda"))]
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
         {}", Setting::Device.with("cuda:0,1")
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
        "{several} names several devices, and each rank computes on one: choose {cuda} or {emulator}, of \
         which each rank has its own, or start without the MPI launcher",
        several = Setting::Device.with(.0), cuda = Setting::Device.with("cuda"),
        emulator = Setting::Device.with("emulator")
    )]
    SeveralOfRank(DeviceChoice),
    /// The variant cannot run there.
    #[error(transparent)]
    Ineligible(#[from] Ineligible),
    /// Needs that do not go together, or with the place.
    #[error(transparent)]
    Refused(#[from] Refusals),
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
    /// True if several GPUs may be taken where they are faster than one, for a device and a kernel that are
    /// left to be chosen.
    pub several_gpus: bool,
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
            several_gpus: false,
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

    /// Needs that it says.
    pub fn needs(&self) -> Needs {
        let needs = Needs::new(self.law).systems(self.systems);
        needs.steps(self.integrator, self.steps, None, self.accuracy)
    }
}

/// Finds what to run and where.
///
/// # Errors
/// The reason why the request cannot be met.
pub fn select(request: &Request) -> Result<Selection, SelectionError> {
    select_for(request, &request.needs(), None)
}

/// Finds what the ranks of a team are to run together and where, as rank 0: the others
/// [follow](crate::force::ranked::follow).
///
/// # Errors
/// The reason why the request cannot be met.
pub fn select_on_ranks(request: &Request, team: &Team) -> Result<Selection, SelectionError> {
    select_for(request, &request.needs(), Some(team))
}

/// Finds what to run and where for these needs, alone or as rank 0 of a team.
///
/// # Errors
/// All combinations of needs, place and kernel that cannot be; or the reason why a device is not there.
pub fn select_for(
    request: &Request,
    needs: &Needs,
    team: Option<&Team>,
) -> Result<Selection, SelectionError> {
    let Request {
        bodies,
        systems,
        sources,
        accuracy,
        ..
    } = *request;
    if request.integrator.needs_jerks() {
        return select_with_jerks(request, needs, team);
    }
    let accuracy = accuracy.unwrap_or_default();
    choose(request, needs, team, |place| match place {
        cpu if cpu.is_cpu() => vec![preferred::cpu(accuracy)],
        _ if systems > 1 => preferred::of_systems(bodies / systems as usize, accuracy),
        gpus => {
            let slow_doubles = gpus.gpus().iter().any(limits::doubles_are_slow);
            let mut names = preferred::gpu(bodies, sources, accuracy, slow_doubles);
            if request.steps_alone
                && request.integrator.is_kicks_and_a_drift()
                && gpus.devices() == 1
                && gpus.ranks().is_none()
                && let Some(name) = preferred::of_whole_steps(bodies, names[0])
            {
                names.insert(0, name);
            }
            names
        }
    })
}

/// As [`select`], among the variants that compute jerks, or take block time steps.
fn select_with_jerks(
    request: &Request,
    needs: &Needs,
    team: Option<&Team>,
) -> Result<Selection, SelectionError> {
    let accuracy = request.accuracy.unwrap_or(preferred::WITH_JERKS);
    let blocks = request.steps == TimeSteps::Blocks;
    let on_cpu = steps_suit_cpu(request);
    let device = match on_cpu {
        true => DeviceChoice::Cpu,
        false => request.device,
    };
    let mut selection = choose(&request.on(device), needs, team, |place| match place {
        cpu if cpu.is_cpu() => vec![preferred::cpu(accuracy)],
        // The state of block time steps is f64, whatever the digits of pairs.
        _ if blocks => vec![preferred::with_jerks(ForceAccuracy::Double)],
        _ => vec![preferred::with_jerks(accuracy)],
    })?;
    if on_cpu {
        selection.why = "the CPU suits such steps best, its preferred kernel".into();
    }
    Ok(selection)
}

/// Returns whether a CPU suits steps with jerks best, where the device is left to be chosen.
fn steps_suit_cpu(request: &Request) -> bool {
    let suits_cpu = match request.steps {
        TimeSteps::Blocks => {
            request.bodies < preferred::BLOCKS_ON_GPU || request.law != ForceLaw::Gravity
        }
        TimeSteps::Shared => request.integrator == Integrator::Hermite6,
    };
    suits_cpu && request.device == DeviceChoice::Auto && request.kernel.is_none()
}

/// Returns whether a CPU takes the steps with jerks of a request, or the CPUs of all ranks.
pub(crate) fn is_for_cpu(request: &Request, team: Option<&Team>) -> bool {
    let place = || place_of(request, team).map(|(place, _)| place);
    steps_suit_cpu(request) || place().is_ok_and(|place| place.is_cpu())
}

/// The place of a request, and the reason.
fn place_of(request: &Request, team: Option<&Team>) -> Result<(Place, String), SelectionError> {
    let host_only =
        |kernel: &'static Variant| matches!(kernel.method, Method::Reference | Method::Cpu(_));
    let host_only = request.kernel.is_some_and(host_only);
    match team {
        Some(team) => place_of_ranks(request, host_only, team),
        None => place_for(request.device, host_only),
    }
}

fn choose(
    request: &Request,
    needs: &Needs,
    team: Option<&Team>,
    preferred: impl Fn(&Place) -> Vec<&'static str>,
) -> Result<Selection, SelectionError> {
    let kernel = request.kernel;
    let (place, mut why) = place_of(request, team)?;
    let ranks = team.map_or(1, Team::size);
    let refused = |variant| {
        let offer = place.offer(ranks, Some(variant), kernel.is_some());
        rules::refusals(needs, &offer)
    };
    let variant = match kernel {
        Some(variant) => {
            why += ", kernel as asked";
            variant
        }
        None => {
            why += ", its preferred kernel for such a run";
            let mut names = preferred(&place);
            names.push(preferred::of_all_laws(place.is_cpu()));
            let listed = names.into_iter().map(variants::find);
            let listed = listed.collect::<Result<Vec<_>, _>>();
            let listed = listed.expect("preferred variants are listed");
            let runs = |variant: &&'static Variant| {
                refused(variant).is_empty() && loads(variant, &place).is_ok()
            };
            let running = listed.iter().copied().find(runs);
            let least_refused = listed
                .iter()
                .copied()
                .min_by_key(|variant| refused(variant).len());
            running.or(least_refused).expect("there are some")
        }
    };
    match refused(variant) {
        none if none.is_empty() => loads(variant, &place)?,
        some => return Err(Refusals(some).into()),
    }
    let is_open = request.several_gpus && kernel.is_none() && request.device == DeviceChoice::Auto;
    let place = match place.processors() {
        Processors::Gpus(one) if is_open && place.ranks().is_none() => {
            match together::faster(request, variant, &one[0]) {
                Some(several) => {
                    why = format!(
                        "{} GPUs, together faster than one for so many bodies, their preferred kernel",
                        several.devices()
                    );
                    several
                }
                None => place,
            }
        }
        _ => place,
    };
    Ok(Selection {
        variant,
        shape: Shape::default(),
        place,
        why,
    })
}

fn place_of_ranks(
    request: &Request,
    host_only: bool,
    team: &Team,
) -> Result<(Place, String), SelectionError> {
    let device = request.device;
    let gpus = |seen: &[gpus::Seen], gpus: Vec<DeviceInfo>, why: &str| {
        let (way, by) = gpus::way(seen, &gpus);
        let why = match request.systems {
            1 => format!("{why}, {by}"),
            _ => why.to_owned(), // nothing is exchanged
        };
        (Place::of_gpus(gpus).over_ranks(way), why)
    };
    match device {
        DeviceChoice::Cpu => place_for(device, host_only),
        DeviceChoice::Auto if host_only => place_for(device, host_only),
        DeviceChoice::Emulator => Ok((
            Place::of_emulators(team.size() as u32).over_ranks(Way::Hosts),
            "emulators as asked".into(),
        )),
        DeviceChoice::Emulators(_) | DeviceChoice::Gpus(_) | DeviceChoice::AllGpus => {
            Err(SelectionError::SeveralOfRank(device))
        }
        DeviceChoice::Gpu => {
            let seen = gpus::seen_by_all(team);
            Ok(gpus(&seen, gpus::one_each(&seen)?, "GPUs as asked"))
        }
        DeviceChoice::Cuda(asked) => {
            let seen = gpus::seen_by_all(team);
            Ok(gpus(&seen, gpus::numbered(&seen, asked)?, "GPUs as asked"))
        }
        DeviceChoice::Auto => {
            let seen = gpus::seen_by_all(team);
            if seen.iter().all(|seen| seen.gpus.is_err()) {
                return Ok((Place::CPU, "no GPUs, so the CPU".into()));
            }
            Ok(gpus(&seen, gpus::one_each(&seen)?, "a GPU for each rank"))
        }
    }
}

fn place_for(device: DeviceChoice, host_only: bool) -> Result<(Place, String), SelectionError> {
    match device {
        DeviceChoice::Cpu => Ok((Place::CPU, "CPU as asked".into())),
        DeviceChoice::Emulator => Ok((Place::EMULATOR, "emulator as asked".into())),
        DeviceChoice::Emulators(count) => {
            Ok((Place::of_emulators(count), "emulators as asked".into()))
        }
        DeviceChoice::Gpu => place_for(DeviceChoice::Cuda(0), host_only),
        DeviceChoice::Cuda(asked) => {
            let gpu = gpu(&devices()?, asked)?;
            Ok((Place::of_gpu(gpu), "GPU as asked".into()))
        }
        DeviceChoice::Gpus(numbers) => {
            let there = devices()?;
            let numbers = numbers.as_slice().iter();
            let gpus = numbers.map(|&asked| gpu(&there, asked));
            let gpus = gpus.collect::<Result<Vec<_>, _>>()?;
            Ok((Place::of_gpus(gpus), "GPUs as asked".into()))
        }
        DeviceChoice::AllGpus => {
            let gpus = devices()?;
            let place = match gpus.len() {
                1..=MOST_DEVICES => Place::of_gpus(gpus),
                count => return Err(SelectionError::TooManyGpus { count }),
            };
            Ok((place, "all GPUs, as asked".into()))
        }
        DeviceChoice::Auto if host_only => Ok((Place::CPU, "CPU code".into())),
        DeviceChoice::Auto => match devices() {
            Ok(gpus) => {
                let first = gpus.into_iter().next();
                let first = first.expect("`devices` lists at least one");
                Ok((Place::of_gpu(first), "the first GPU".into()))
            }
            Err(_) => Ok((Place::CPU, "no GPU, so the CPU".into())), // `allpairs devices` says why
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
