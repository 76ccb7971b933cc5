//! One system on several ranks: what rank 0 does with its backend, the others do with theirs.
//!
//! Rank 0 has the run: it reads, decides and writes. Before it does something in which forces are computed or
//! bodies move, it tells the others, which [`follow`]. Every rank then does the same with the same
//! numbers, and the forces are shared out.

mod command;

use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use gpu_kernels::numerics::Precision;

use self::command::{Begin, Command};
use super::cpu::{Choices, Cpu, InstructionSet, Lane};
use crate::backend::{
    Backend, BlockCounts, BlockSteps, Derivatives, ForceError, Hermite, Operation, SavedState,
};
use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::fields::{External, Fields};
use crate::physics::Physics;
use crate::ranks::Team;

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
    External::of_bodies(fields, bodies, &physics)?; // or all ranks would fail
    let fields = fields.to_numbers();
    let begin = Begin {
        physics,
        precision,
        choices,
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
            // Rank 0 has the same error, from the same numbers, and reports it.
            let _ = work(backend);
        };
        match Command::hear(team) {
            Command::Wait => {}
            Command::Part => return,
            Command::Begin(begin) => backend = begin.backend(team).ok(),
            Command::SetTime(time) => with(&|backend| {
                backend.set_time(time);
                Ok(())
            }),
            Command::Repeat(times, step) => with(&|backend| backend.repeat(times, &step)),
            Command::FirstStep(eta, longest) => {
                with(&|backend| backend.jerks()?.first_step(eta, longest).map(drop));
            }
            Command::Advance(span, eta) => {
                with(&|backend| block_steps(backend)?.advance(span, eta).map(drop));
            }
            Command::Energy => with(&|backend| backend.energy().map(drop)),
            Command::Restore(saved) => with(&|backend| backend.restore(&saved)),
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

fn block_steps(backend: &mut dyn Backend) -> Result<&mut dyn BlockSteps, ForceError> {
    backend.block_steps().ok_or(ForceError::NoBlockSteps)
}

impl Begin {
    /// The backend of this rank.
    fn backend(mut self, team: &Arc<Team>) -> Result<Box<dyn Backend>, ForceError> {
        self.choices.instructions = common_instructions(team);
        match self.precision {
            Precision::F64 => self.cpu::<f64>(team),
            _ => self.cpu::<f32>(team),
        }
    }

    fn cpu<R: Lane>(self, team: &Arc<Team>) -> Result<Box<dyn Backend>, ForceError> {
        let fields = Fields::of_numbers(&self.fields);
        let external = External::of_bodies(&fields, &self.bodies, &self.physics)?;
        let cpu = Cpu::<R>::with(&self.bodies, self.physics, self.choices);
        let cpu = cpu.in_fields(external).shared_out(Arc::clone(team));
        Ok(Box::new(cpu))
    }
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
        self.all_perform(Operation::Evaluate(Derivatives::None))
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
        self.all_perform(Operation::Evaluate(Derivatives::Jerk))
    }

    fn accelerate_with_snap(&mut self) -> Result<(), ForceError> {
        self.all_perform(Operation::Evaluate(Derivatives::Snap))
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
    fn advance(&mut self, span: f64, eta: f64) -> Result<BlockCounts, ForceError> {
        let (_turn, backend) = self.all(&Command::Advance(span, eta));
        block_steps(backend)?.advance(span, eta)
    }

    fn own_steps(&mut self) -> Result<Vec<f64>, ForceError> {
        block_steps(&mut *self.backend)?.own_steps()
    }
}

#[cfg(test)]
mod tests;
