//! One system on several ranks: what rank 0 does with its backend, the others do with theirs.
//!
//! Rank 0 has the run: it reads, decides and writes. Before it does something in which forces are computed or
//! bodies move, it tells the others, which [`follow`]. Every rank then does the same with the same
//! numbers, and the forces are shared out.

mod command;
pub(crate) mod gpus;

use std::ops::ControlFlow;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use cuda_driver::devices;
use gpu_kernels::numerics::Precision;

pub(crate) use self::command::Devices;
use self::command::{Begin, Command, Kernel, Means};
use super::cpu::{Choices, Cpu, Lane};
use super::cuda::Cuda;
use super::device::Peers;
use super::emulated::Emulator;
use super::resident::Several;
use crate::backend::{
    Backend, BlockCounts, BlockSteps, ForceError, Hermite, HighestDerivative, Operation,
    SavedState, block_steps,
};
use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::fields::{External, Fields};
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::{Limits, Recipe};
use crate::ptx;
use crate::ranks::{Team, UNAVAILABLE};
use crate::simd::InstructionSet;
use crate::variants::{Build, Variant};

/// Time between two signs of life that rank 0 gives while it has nothing else to tell.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Rank 0's backend: all ranks compute together.
struct Leader {
    backend: Box<dyn Backend>,
    team: Arc<Team>,
}

/// Puts a system on the CPUs of all ranks, as rank 0.
///
/// # Errors
/// If a field cannot be of these bodies, or is a function of this process alone.
pub(crate) fn lead(
    team: &Arc<Team>,
    (bodies, fields): (&Bodies, &Fields),
    physics: Physics,
    precision: Precision,
    choices: Choices,
) -> Result<Box<dyn Backend>, ForceError> {
    lead_by(
        team,
        (bodies, fields),
        physics,
        Means::Cpu(precision, choices),
    )
}

/// Puts a system on a device of each rank, in this frame, as rank 0.
///
/// # Errors
/// If a field cannot be of these bodies, or is a function of this process alone; if the variant is none that
/// ranks share; or if a device of any of them refuses.
pub(crate) fn lead_on_devices(
    team: &Arc<Team>,
    (bodies, fields): (&Bodies, &Fields),
    physics: Physics,
    (variant, frame): (&Variant, Frame),
    devices: Devices,
) -> Result<Box<dyn Backend>, ForceError> {
    let kernel = Kernel::of(variant).ok_or(ForceError::OneProcess("this kernel is run"))?;
    let means = Means::Devices(kernel, frame, devices);
    lead_by(team, (bodies, fields), physics, means)
}

fn lead_by(
    team: &Arc<Team>,
    (bodies, fields): (&Bodies, &Fields),
    physics: Physics,
    means: Means,
) -> Result<Box<dyn Backend>, ForceError> {
    External::of_bodies(fields, bodies, &physics)?; // or all ranks would fail
    let fields = fields.to_numbers();
    let begin = Begin {
        physics,
        means,
        bodies: bodies.clone(),
        fields: fields.ok_or(ForceError::OneProcess("a field of your own is computed"))?,
    };
    let turn = team.turn();
    Command::Begin(Box::new(begin.clone())).tell(team);
    let backend = begin.backend(team)?;
    drop(turn);
    let team = Arc::clone(team);
    Ok(Box::new(Leader { backend, team }))
}

/// Does what rank 0 tells, until it parts.
pub fn follow(team: &Arc<Team>) {
    let mut backend: Option<Box<dyn Backend>> = None;
    loop {
        let mut with = |work: &dyn Fn(&mut dyn Backend) -> Result<(), ForceError>| {
            let backend = backend.as_deref_mut().expect("rank 0 began with a system");
            match work(backend) {
                Err(error) if error.is_of_a_device() => team.abort(UNAVAILABLE, &error.to_string()),
                // Rank 0 has the same error, from the same numbers, and reports it.
                Ok(()) | Err(_) => {}
            }
        };
        match Command::hear(team) {
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
                with(&|backend| backend.jerks()?.first_step(eta, longest).map(drop));
            }
            Command::Advance(span, eta) => {
                with(&|backend| block_steps(backend)?.advance(span, eta).map(drop));
            }
            Command::Energy => with(&|backend| backend.energy().map(drop)),
            Command::Restore(saved) => with(&|backend| backend.restore(&saved)),
            Command::Gpus => drop(gpus::gathered(team)),
        }
    }
}

/// Parts, as rank 0.
pub fn part(team: &Team) {
    let mut parted = team.turn();
    Command::Part.tell(team);
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
            Command::Wait.tell(&team);
        }
    });
}

impl Begin {
    /// The backend of this rank. Where one fails, all do.
    fn backend(self, team: &Arc<Team>) -> Result<Box<dyn Backend>, ForceError> {
        match self.means.clone() {
            Means::Cpu(precision, choices) => {
                let instructions = common_instructions(team);
                let choices = Choices {
                    instructions,
                    ..choices
                };
                match precision {
                    Precision::F64 => self.cpu::<f64>(choices, team),
                    _ => self.cpu::<f32>(choices, team),
                }
            }
            Means::Devices(kernel, frame, Devices::Emulators(seed)) => {
                self.device(Ok(Emulator::new(seed)), kernel, frame, team)
            }
            Means::Devices(kernel, frame, Devices::Gpus(numbers)) => {
                let gpu = gpu(numbers[team.rank()], kernel.build);
                self.device(gpu, kernel, frame, team)
            }
        }
    }

    fn external(&self) -> Result<External, ForceError> {
        let fields = Fields::of_numbers(&self.fields);
        Ok(External::of_bodies(&fields, &self.bodies, &self.physics)?)
    }

    fn cpu<R: Lane>(
        self,
        choices: Choices,
        team: &Arc<Team>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        let cpu = Cpu::<R>::with(&self.bodies, self.physics, choices);
        let cpu = cpu.in_fields(self.external()?);
        Ok(Box::new(cpu.shared_out(Arc::clone(team))))
    }

    fn device<D: Peers + 'static>(
        self,
        device: Result<D, ForceError>,
        kernel: Kernel,
        frame: Frame,
        team: &Arc<Team>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        let device = Arc::new(of_all(device, team)?);
        let limits = common_limits(device.limits(), team);
        let system = || {
            let (bodies, physics) = (&self.bodies, self.physics);
            let recipe = Recipe::new(&kernel.variant(), bodies, physics, frame, &limits)?;
            let several = Several::on_ranks(device, team, (&recipe, &limits), bodies)?;
            several.in_fields(&self.external()?, bodies)
        };
        Ok(Box::new(of_all(system(), team)?))
    }
}

/// The GPU of this number, with the kernels of a build.
fn gpu(number: u32, build: Build) -> Result<Cuda, ForceError> {
    let there = devices()?;
    let info = there.iter().find(|gpu| gpu.ordinal == number);
    let info = info.expect("rank 0 asked what there is");
    let module = ptx::module_for(ptx::capability(info), build == Build::Ftz);
    let module = module.expect("an eligible variant has a module");
    Ok(Cuda::open(number, module)?)
}

/// Returns the result of this rank, if all ranks have theirs.
fn of_all<T>(mine: Result<T, ForceError>, team: &Team) -> Result<T, ForceError> {
    let fault = mine.as_ref().err().map(ForceError::to_string);
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
        command.tell(&self.team);
        (turn, &mut *self.backend)
    }

    fn all_perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        self.repeat(1, &[operation])
    }
}

impl Backend for Leader {
    fn accelerate(&mut self) -> Result<(), ForceError> {
        self.all_perform(Operation::Evaluate(HighestDerivative::None))
    }

    fn kick(&mut self, dt: f64) -> Result<(), ForceError> {
        self.all_perform(Operation::Kick(dt))
    }

    fn drift(&mut self, dt: f64) -> Result<(), ForceError> {
        self.all_perform(Operation::Drift(dt))
    }

    fn damp(&mut self, factor: f64) -> Result<(), ForceError> {
        self.all_perform(Operation::Damp(factor))
    }

    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        self.all_perform(operation)
    }

    fn repeat(&mut self, times: u64, step: &[Operation]) -> Result<(), ForceError> {
        let (_turn, backend) = self.all(&Command::Repeat(times, step.to_vec()));
        backend.repeat(times, step)
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

    fn hermite(&mut self) -> Option<&mut dyn Hermite> {
        match self.backend.hermite() {
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
        self.backend.save()
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        let (_turn, backend) = self.all(&Command::Restore(Box::new(saved.clone())));
        backend.restore(saved)
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        self.backend.download(bodies)
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        self.backend.accelerations()
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        let (_turn, backend) = self.all(&Command::Energy);
        backend.energy()
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        self.backend.synchronize()
    }
}

impl Hermite for Leader {
    fn accelerate_with_jerk(&mut self) -> Result<(), ForceError> {
        self.all_perform(Operation::Evaluate(HighestDerivative::Jerk))
    }

    fn accelerate_with_snap(&mut self) -> Result<(), ForceError> {
        self.all_perform(Operation::Evaluate(HighestDerivative::Snap))
    }

    fn predict(&mut self, dt: f64) -> Result<(), ForceError> {
        self.all_perform(Operation::Predict(dt))
    }

    fn correct(&mut self, dt: f64) -> Result<(), ForceError> {
        self.all_perform(Operation::Correct(dt))
    }

    fn first_step(&mut self, eta: f64, longest: f64) -> Result<f64, ForceError> {
        let (_turn, backend) = self.all(&Command::FirstStep(eta, longest));
        backend.jerks()?.first_step(eta, longest)
    }

    fn next_step(&mut self, eta: f64, dt: f64) -> Result<f64, ForceError> {
        self.backend.jerks()?.next_step(eta, dt) // follows from what every rank has
    }
}

impl BlockSteps for Leader {
    /// All ranks go through the whole span.
    fn advance_unless(
        &mut self,
        span: f64,
        eta: f64,
        _watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<BlockCounts>, ForceError> {
        let (_turn, backend) = self.all(&Command::Advance(span, eta));
        block_steps(backend)?.advance(span, eta).map(Some)
    }

    fn own_steps(&mut self) -> Result<Vec<f64>, ForceError> {
        block_steps(&mut *self.backend)?.own_steps()
    }
}

#[cfg(test)]
mod tests;
