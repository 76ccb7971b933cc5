//! One system on several ranks, or many: what rank 0 does with its backend, the others do with theirs.
//!
//! Rank 0 has the run: it reads, decides and writes. Before it does something in which forces are computed or
//! bodies move, it tells the others, which [`follow`]. Every rank then does the same with the same
//! numbers, and the forces are shared out. Of independent systems each rank has a share to itself; rank 0 then
//! tells too that it asks for bodies.

mod command;
#[cfg(feature = "ranks")]
mod forms;
pub(crate) mod gpus;
mod members;
mod systems;

use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use cuda_driver::devices;
use gpu_kernels::numerics::Precision;

use self::command::{Asked, Begin, Command, Kernel, Means};
pub(crate) use self::command::{Devices, OnCpu};
use self::systems::Dealt;
use super::cpu::{Choices, Cpu, Lane};
use super::cuda::Cuda;
use super::device::{Peers, Streams};
use super::emulated::Emulator;
use super::independent::Independent;
use super::resident::{HostSteps, Resident, Several};
use super::systems::ManySystems;
use crate::backend::{
    Backend, BlockCounts, BlockSteps, ForceError, GUARD, Neighbours, Operation, Pipeline,
    SavedState, block_steps, timed_by_the_host,
};
use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::encounters::Paths;
use crate::fields::{External, Fields};
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::block_steps::BlockScheme;
use crate::plan::systems::{bodies_each, dealt};
use crate::plan::{Limits, PlanError, Recipe};
use crate::ptx;
use crate::ranks::{Team, UNAVAILABLE, Way};
use crate::simd::InstructionSet;
use crate::timeline::Span;
use crate::variants::{self, Build, Masses, Method, SystemsPath, Variant};

/// Time between two signs of life that rank 0 gives while it has nothing else to tell.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Rank 0's backend: all ranks compute together.
struct Leader {
    backend: Box<dyn Backend>,
    team: Arc<Team>,
    /// True if each rank has bodies of its own.
    is_dealt: bool,
}

/// Puts this number of independent systems on the CPUs of all ranks, as rank 0; one system is shared out.
///
/// # Errors
/// If a field cannot be of these bodies, or is a function of this process alone.
pub(crate) fn lead(
    team: &Arc<Team>,
    in_fields: (&Bodies, &Fields),
    physics: Physics,
    on_cpu: OnCpu,
    systems: u32,
) -> Result<Box<dyn Backend>, ForceError> {
    lead_by(team, in_fields, physics, Means::Cpu(on_cpu), systems)
}

/// Puts a system, or the independent ones of a variant, on a device of each rank, in this frame, as rank 0; with
/// block time steps of a scheme, if there is one, and with groups or without.
///
/// # Errors
/// If a field cannot be of these bodies, or is a function of this process alone; if the variant is none that
/// ranks share; or if a device of any of them refuses.
pub(crate) fn lead_on_devices(
    team: &Arc<Team>,
    in_fields: (&Bodies, &Fields),
    physics: Physics,
    (variant, blocks, groups): (&Variant, Option<BlockScheme>, bool),
    (frame, devices): (Frame, Devices),
) -> Result<Box<dyn Backend>, ForceError> {
    let means = match (variant.method, Kernel::of(variant)) {
        (Method::Systems(path), _) => Means::Systems(path, frame, devices),
        (_, Some(kernel)) => Means::Devices(kernel.with_blocks(blocks, groups), frame, devices),
        (_, None) => unreachable!("ranks do not share `{}`", variant.name),
    };
    lead_by(team, in_fields, physics, means, variant.systems)
}

fn lead_by(
    team: &Arc<Team>,
    (bodies, fields): (&Bodies, &Fields),
    physics: Physics,
    means: Means,
    systems: u32,
) -> Result<Box<dyn Backend>, ForceError> {
    // Or all ranks would fail.
    External::of_bodies(fields, bodies, &physics)?;
    bodies_each(bodies.len(), systems).map_err(PlanError::from)?;
    let begin = Begin {
        physics,
        means,
        bodies: bodies.clone(),
        systems,
        fields: fields.clone(),
    };
    let is_dealt = begin.is_dealt();
    let turn = team.turn();
    team.tell(&Command::Begin(Box::new(begin.clone())));
    let backend = begin.backend(team)?;
    drop(turn);
    Ok(Box::new(Leader {
        backend,
        team: Arc::clone(team),
        is_dealt,
    }))
}

/// Does what rank 0 tells, until it parts.
pub fn follow(team: &Arc<Team>) {
    let mut backend: Option<Box<dyn Backend>> = None;
    loop {
        let mut with = |work: &dyn Fn(&mut dyn Backend) -> Result<(), ForceError>| {
            let backend = backend.as_deref_mut().expect("rank 0 began with a system");
            match work(backend) {
                Err(error) if error.is_of_a_device() => team.abort(UNAVAILABLE, &error.to_string()),
                // Rank 0 has the same error, from the same numbers or when it asks for bodies, and reports it.
                Ok(()) | Err(_) => {}
            }
        };
        match team.hear::<Command>() {
            Command::Wait => {}
            Command::Part => return,
            Command::Begin(begin) => backend = begin.backend(team).ok(),
            Command::SetTime(time) => with(&|backend| {
                backend.set_time(time);
                Ok(())
            }),
            Command::Reach(from, to) => with(&|backend| backend.reach(from, to)),
            Command::Repeat(times, step) => with(&|backend| backend.repeat(times, &step)),
            Command::FirstStep(eta, longest) => {
                with(&|backend| backend.first_step(eta, longest).map(drop));
            }
            Command::Advance(span, eta) => {
                with(&|backend| {
                    let blocks = block_steps(backend)?;
                    let counts =
                        blocks.advance_unless(span, eta, &mut |_| ControlFlow::Continue(()));
                    counts.map(drop)
                });
            }
            Command::ChooseSteps(span, eta, some) => with(&|backend| {
                let blocks = block_steps(backend)?;
                blocks.choose_steps(span, eta, &some).map(drop)
            }),
            Command::KeepPaths(radii) => with(&|backend| {
                block_steps(backend)?.keep_paths(&radii);
                Ok(())
            }),
            Command::TakePaths => with(&|backend| {
                block_steps(backend)?.take_paths();
                Ok(())
            }),
            Command::Energy => with(&|backend| backend.energy().map(drop)),
            Command::Restore(saved) => with(&|backend| backend.restore(&saved)),
            Command::Gpus => drop(gpus::gathered(team)),
            Command::Gathered(asked) => with(&|backend| asked.of(backend)),
        }
    }
}

impl Asked {
    /// Takes part in what rank 0 asks for.
    fn of(self, backend: &mut dyn Backend) -> Result<(), ForceError> {
        match self {
            Self::State => backend.save().map(drop),
            Self::Bodies(count) => {
                let count = count as usize;
                let mut room = Bodies::at_rest(&vec![[0.0; 3]; count], &vec![0.0; count]);
                backend.download(&mut room)
            }
            Self::Accelerations => backend.accelerations().map(drop),
            Self::End => backend.synchronize(),
            Self::Seconds(dt, steps) => {
                let pipeline = backend.pipeline().expect("rank 0 has one");
                pipeline.seconds(dt, steps).map(drop)
            }
        }
    }
}

/// Parts, as rank 0.
pub fn part(team: &Team) {
    let mut parted = team.turn();
    team.tell(&Command::Part);
    *parted = true;
}

/// Gives signs of life from now on, as rank 0, until it parts: the others wait for it, and should know
/// whether in vain.
pub fn keep_in_touch(team: &Arc<Team>) {
    let team = Arc::clone(team);
    thread::spawn(move || {
        loop {
            thread::sleep(SIGN_OF_LIFE);
            let parted = team.turn();
            if *parted {
                break;
            }
            team.tell(&Command::Wait);
        }
    });
}

impl Begin {
    /// The backend of this rank. Where one fails, all do.
    fn backend(self, team: &Arc<Team>) -> Result<Box<dyn Backend>, ForceError> {
        match self.means.clone() {
            Means::Cpu(OnCpu {
                path,
                neighbours,
                groups,
            }) => {
                let instructions = common_instructions(team);
                let choices = Choices {
                    instructions,
                    ..Choices::from(path)
                };
                match (path.precision, self.is_dealt()) {
                    (Precision::F64, false) => {
                        let number = neighbours.and_then(NonZeroU32::new);
                        let neighbours = number.map(Neighbours::Number);
                        let cpu = self.cpu::<f64>(choices, team)?;
                        Ok(Box::new(match groups {
                            true => cpu.in_groups(neighbours),
                            false => cpu.in_neighbour_scheme(neighbours),
                        }))
                    }
                    (Precision::F64, true) => self.cpu_each::<f64>(choices, team),
                    (_, false) => Ok(Box::new(self.cpu::<f32>(choices, team)?)),
                    (_, true) => self.cpu_each::<f32>(choices, team),
                }
            }
            Means::Devices(kernel, frame, Devices::Emulators(seed)) => {
                self.device(Emulator::new(seed), kernel, frame, team)
            }
            Means::Devices(kernel, frame, Devices::Gpus(numbers, way)) => {
                let gpu = of_all(gpu(numbers[team.rank()], kernel.build()), team)?;
                let gpu = match way {
                    Way::Hosts => gpu,
                    Way::Nccl => members::join(gpu, &numbers, team)?,
                };
                self.device(gpu, kernel, frame, team)
            }
            Means::Systems(path, frame, Devices::Emulators(seed)) => {
                self.device_each(|| Ok(Emulator::new(seed)), path, frame, team)
            }
            Means::Systems(path, frame, Devices::Gpus(numbers, _)) => {
                let gpu = || gpu(numbers[team.rank()], path.build);
                self.device_each(gpu, path, frame, team)
            }
        }
    }

    /// Returns whether ranks share out systems as a whole.
    fn is_dealt(&self) -> bool {
        self.systems > 1 || matches!(self.means, Means::Systems(..))
    }

    fn external(&self) -> Result<External, ForceError> {
        Ok(External::of_bodies(
            &self.fields,
            &self.bodies,
            &self.physics,
        )?)
    }

    fn cpu<R: Lane>(self, choices: Choices, team: &Arc<Team>) -> Result<Cpu<R>, ForceError> {
        let cpu = Cpu::<R>::with(&self.bodies, self.physics, choices);
        let cpu = cpu.in_fields(self.external()?);
        Ok(cpu.shared_out(Arc::clone(team)))
    }

    /// Whole systems on the CPU of each rank: as many as it has threads for.
    fn cpu_each<R: Lane>(
        self,
        choices: Choices,
        team: &Arc<Team>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        let systems = self.systems as usize;
        let shares = (systems, team.shares(systems)[team.rank()].clone());
        let physics = self.physics;
        let each = |part: &Bodies, systems| {
            let cpu = |system: &Bodies| Cpu::<R>::with(system, physics, choices);
            let many = Independent::new(part, systems, cpu)?;
            Ok(many.on(choices.threads).into_backend())
        };
        let in_frame = (Frame::IDENTITY, false);
        let all = Dealt::new(team, &self.bodies, shares, in_frame, each)?;
        Ok(Box::new(all))
    }

    /// Whole systems on the device of each rank: as many as on a GPU of as many.
    fn device_each<D: Streams + 'static>(
        self,
        device: impl FnOnce() -> Result<D, ForceError>,
        path: SystemsPath,
        frame: Frame,
        team: &Arc<Team>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        let counts = dealt(self.systems, team.size() as u32);
        let first: u32 = counts[..team.rank()].iter().sum();
        let share = first as usize..(first + counts[team.rank()]) as usize;
        let (physics, masses) = (self.physics, Masses::of(&self.bodies));
        let each = |part: &Bodies, systems| -> Result<Box<dyn Backend>, ForceError> {
            let variant = variants::first("", Method::Systems(path), "").of_systems(systems);
            let devices = [Arc::new(device()?)];
            let part = (part, masses);
            let many = ManySystems::part_of_more(&devices, &variant, part, physics, frame)?;
            Ok(Box::new(many))
        };
        let shares = (self.systems as usize, share);
        let in_frame = (frame, true);
        let all = Dealt::new(team, &self.bodies, shares, in_frame, each)?;
        Ok(Box::new(all))
    }

    fn device<D: Peers + 'static>(
        self,
        device: D,
        kernel: Kernel,
        frame: Frame,
        team: &Arc<Team>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        let device = Arc::new(device);
        let limits = common_limits(device.limits(), team);
        let instructions = common_instructions(team);
        let system = || -> Result<Box<dyn Backend>, ForceError> {
            let (bodies, physics) = (&self.bodies, self.physics);
            let recipe = Recipe::new(&kernel.variant(), bodies, physics, frame, &limits)?;
            if let (Some(scheme), true) = (kernel.blocks, kernel.groups) {
                let neighbours = scheme.neighbours.and_then(NonZeroU32::new);
                let devices = vec![Resident::new(device, recipe, bodies)?];
                let steps = HostSteps::new(devices, scheme, bodies)?;
                let steps = steps.shared_out(Arc::clone(team), instructions);
                let steps = steps.in_fields(self.external()?);
                return Ok(Box::new(
                    steps.in_groups(neighbours.map(Neighbours::Number)),
                ));
            }
            let several = Several::on_ranks(device, team, (&recipe, &limits), bodies)?;
            let several = several.in_fields(&self.external()?, bodies)?;
            Ok(Box::new(match kernel.blocks {
                Some(scheme) => several.stepped(scheme, GUARD, bodies)?,
                None => several,
            }))
        };
        of_all(system(), team)
    }
}

/// The GPU of this number, with the kernels of a build.
fn gpu(number: u32, build: Build) -> Result<Cuda, ForceError> {
    let there = devices()?;
    let info = there.iter().find(|gpu| gpu.ordinal == number);
    let info = info.expect("rank 0 asked what there is");
    let module = ptx::module_for(info, build == Build::Ftz);
    let module = module.expect("an eligible variant has a module");
    Ok(Cuda::open(number, module)?)
}

/// Returns the result of this rank, if all ranks have theirs.
fn of_all<T>(mine: Result<T, ForceError>, team: &Team) -> Result<T, ForceError> {
    let fault = mine.as_ref().err().map(|error| match error {
        ForceError::OfRank { why, .. } => why.clone(), // who hears it knows the rank
        error => error.to_string(),
    });
    let faults = team.gather_ragged(fault.unwrap_or_default().as_bytes());
    let mine = mine?;
    match faults.iter().position(|fault| !fault.is_empty()) {
        Some(rank) => {
            let why = String::from_utf8_lossy(&faults[rank]).into_owned();
            Err(ForceError::OfRank { rank, why })
        }
        None => Ok(mine),
    }
}

/// Limits of launches on the devices of all ranks.
fn common_limits(mine: Limits, team: &Team) -> Limits {
    let all = team.gather_each(&[mine.block_threads, mine.shared_bytes]);
    let limits = all.chunks(2).map(|limits| Limits {
        block_threads: limits[0],
        shared_bytes: limits[1],
    });
    limits.fold(mine, Limits::of_both)
}

/// The widest instructions that the processors of all ranks have.
fn common_instructions(team: &Team) -> InstructionSet {
    let available = InstructionSet::available();
    let all = team.gather_each(&[available.len() as u64]);
    let least = all.into_iter().min().unwrap_or(1) as usize;
    available[least.clamp(1, available.len()) - 1]
}

impl Leader {
    /// Has all ranks do something, and does it too, while the turn lasts.
    fn all(&mut self, command: &Command) -> (MutexGuard<'_, bool>, &mut dyn Backend) {
        let turn = self.team.turn();
        self.team.tell(command);
        (turn, &mut *self.backend)
    }

    /// Asks for something that all ranks have, or each has a part of, while the turn lasts.
    fn gathered(&mut self, asked: Asked) -> (Option<MutexGuard<'_, bool>>, &mut dyn Backend) {
        let turn = self.is_dealt.then(|| {
            let turn = self.team.turn();
            self.team.tell(&Command::Gathered(asked));
            turn
        });
        (turn, &mut *self.backend)
    }
}

impl Backend for Leader {
    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        self.repeat(1, &[operation])
    }

    fn repeat(&mut self, times: u64, step: &[Operation]) -> Result<(), ForceError> {
        let (_turn, backend) = self.all(&Command::Repeat(times, step.to_vec()));
        backend.repeat(times, step)
    }

    fn systems(&self) -> usize {
        self.backend.systems()
    }

    fn external(&self) -> Option<&External> {
        self.backend.external()
    }

    fn reach(&mut self, from: f64, to: f64) -> Result<(), ForceError> {
        let (_turn, backend) = self.all(&Command::Reach(from, to));
        backend.reach(from, to)
    }

    fn set_time(&mut self, time: f64) {
        let (_turn, backend) = self.all(&Command::SetTime(time));
        backend.set_time(time);
    }

    fn first_step(&mut self, eta: f64, longest: f64) -> Result<f64, ForceError> {
        let (_turn, backend) = self.all(&Command::FirstStep(eta, longest));
        backend.first_step(eta, longest)
    }

    fn next_step(&mut self, eta: f64, dt: f64) -> Result<f64, ForceError> {
        self.backend.next_step(eta, dt) // follows from what every rank has
    }

    fn has_ranks(&self) -> bool {
        true
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        match self.backend.pipeline() {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn block_steps(&mut self) -> Option<&mut dyn BlockSteps> {
        match self.backend.block_steps() {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn save(&mut self) -> Result<SavedState, ForceError> {
        let (_turn, backend) = self.gathered(Asked::State);
        backend.save()
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        let (_turn, backend) = self.all(&Command::Restore(Box::new(saved.clone())));
        backend.restore(saved)
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        let (_turn, backend) = self.gathered(Asked::Bodies(bodies.len() as u64));
        backend.download(bodies)
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        let (_turn, backend) = self.gathered(Asked::Accelerations);
        backend.accelerations()
    }

    fn number_of_sources(&self) -> Option<usize> {
        self.backend.number_of_sources()
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        let (_turn, backend) = self.all(&Command::Energy);
        backend.energy()
    }

    fn energies(&mut self) -> Result<Vec<Energy>, ForceError> {
        let (_turn, backend) = self.all(&Command::Energy);
        backend.energies()
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        let (_turn, backend) = self.gathered(Asked::End);
        backend.synchronize()
    }

    fn time_acceleration(&mut self) -> Result<f64, ForceError> {
        match self.pipeline() {
            Some(pipeline) => pipeline.seconds(0.0, 1), // which moves nothing
            None => timed_by_the_host(self),
        }
    }
}

impl Pipeline for Leader {
    fn seconds(&mut self, dt: f64, steps: u32) -> Result<f64, ForceError> {
        let (_turn, backend) = self.gathered(Asked::Seconds(dt, steps));
        let pipeline = backend.pipeline().expect("it was there");
        pipeline.seconds(dt, steps)
    }

    fn timeline(&mut self, dt: f64, steps: u32) -> Result<Vec<Span>, ForceError> {
        let pipeline = self.backend.pipeline().expect("it was there");
        pipeline.timeline(dt, steps)
    }
}

impl BlockSteps for Leader {
    fn advance_unless(
        &mut self,
        span: f64,
        eta: f64,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<BlockCounts>, ForceError> {
        let (_turn, backend) = self.all(&Command::Advance(span, eta));
        block_steps(backend)?.advance_unless(span, eta, watch)
    }

    fn own_steps(&mut self) -> Result<Vec<f64>, ForceError> {
        block_steps(&mut *self.backend)?.own_steps()
    }

    fn choose_steps(&mut self, span: f64, eta: f64, some: &[usize]) -> Result<bool, ForceError> {
        let (_turn, backend) = self.all(&Command::ChooseSteps(span, eta, some.to_vec()));
        block_steps(backend)?.choose_steps(span, eta, some)
    }

    fn keep_paths(&mut self, radii: &[f64]) -> bool {
        let (_turn, backend) = self.all(&Command::KeepPaths(radii.to_vec()));
        let blocks = backend.block_steps();
        blocks.is_some_and(|blocks| blocks.keep_paths(radii))
    }

    fn take_paths(&mut self) -> Paths {
        let (_turn, backend) = self.all(&Command::TakePaths);
        let blocks = backend.block_steps().expect("there were spans");
        blocks.take_paths()
    }
}

#[cfg(test)]
pub(crate) mod tests;
