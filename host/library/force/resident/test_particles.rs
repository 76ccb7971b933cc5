//! Test particles on a device: sources apart from the bodies that they accelerate, and many steps at a time.

use gpu_kernels::abi::{Move, Params, Systems};
use gpu_kernels::entries::{Buffer, Entry, Work};
use gpu_kernels::schedule::test_particles::room;

use super::Resident;
use crate::backend::{ForceError, HighestDerivative, Operation};
use crate::force::device::Device;
use crate::force::memory::Memory;
use crate::frame::Frame;
use crate::plan::{self, ForcePlan, Kernel, Step};
use crate::variants::Kernels;

/// Bytes of the sources of all evaluations of the steps that are taken at a time: a part of the
/// second-level cache of any GPU.
const KEPT_BYTES: usize = 1 << 20;

/// The bodies that accelerate others, apart from all bodies.
pub(super) struct SourcesApart {
    many: Option<ManySteps>,
}

/// Kernels of many steps in one launch, where sources are no more than a tile of the force has room for.
struct ManySteps {
    trace: Kernel,
    follow: Kernel,
    /// Evaluations that there is room for.
    evaluations: usize,
    /// The moves of a step that the device has.
    moves: Vec<f64>,
}

impl SourcesApart {
    pub(super) fn new<D: Device>(
        device: &D,
        memory: &mut Memory<D>,
        kernels: &Kernels,
        force: &ForcePlan,
        params: &Params,
        indices: &[u32],
    ) -> Result<Self, ForceError> {
        device.upload(memory.of(Buffer::indices), indices)?;
        let tiles = force.steps.iter().filter_map(|step| match step {
            Step::Launch { entry, launch, .. } if entry.symbol == kernels.force.symbol => {
                Some(launch.block[0])
            }
            _ => None,
        });
        let tile = tiles.max().unwrap_or(0);
        let many = if params.sources_a_thread <= tile {
            Some(ManySteps::new(device, memory, kernels.force, params)?)
        } else {
            None
        };
        Ok(Self { many })
    }
}

impl ManySteps {
    fn new<D: Device>(
        device: &D,
        memory: &mut Memory<D>,
        force: &'static Entry,
        params: &Params,
    ) -> Result<Self, ForceError> {
        let Work::Force { numerics, .. } = force.work else {
            unreachable!("`{}` is no force", force.symbol)
        };
        let unsoftened = numerics.unsoftened;
        let partner = |work| {
            let entry = force.partner(work);
            entry.expect("the layouts of these forces have them")
        };
        let (trace, follow) = (
            partner(Work::Trace { unsoftened }),
            partner(Work::Follow { unsoftened }),
        );
        device.prepare(trace)?;
        device.prepare(follow)?;
        let (count, limits) = (params.sources_a_thread, device.limits());
        let of_evaluation = room(count) as usize * force.layout.tile_bytes as usize;
        let evaluations = (KEPT_BYTES / of_evaluation).max(1);
        memory.allocate(device, &[(Buffer::kept, evaluations * of_evaluation)])?;
        let on_all = plan::one_dimensional(follow, params.n, plan::ELEMENTWISE_BLOCK, &limits)?;
        Ok(Self {
            trace: (
                trace,
                plan::one_dimensional(trace, count, room(count), &limits)?,
            ),
            follow: (follow, on_all),
            evaluations,
            moves: vec![],
        })
    }
}

impl<D: Device> Resident<D> {
    /// The bodies that have energy, their number and the room of their buffer.
    pub(super) fn weighed(&self) -> Result<(Buffer, u32, u32), ForceError> {
        if self.sources.is_none() {
            return Ok((Buffer::state, self.params.n, self.params.stride));
        }
        self.gather()?;
        let count = self.params.sources_a_thread;
        Ok((Buffer::sources, count, room(count)))
    }

    /// Copies the sources of the current state.
    fn gather(&self) -> Result<(), ForceError> {
        let gathers = |step: &Step| {
            step.entry()
                .is_some_and(|entry| entry.work == Work::Sources)
        };
        let step = self.force_steps.iter().position(gathers);
        let step = step.expect("a plan with sources apart copies them");
        self.carry_out(&self.force_steps[step..=step], self.params)
    }

    /// Takes steps of kicks and drifts, many at a time, where sources are few and nothing else
    /// accelerates the bodies. Returns whether it did.
    pub(super) fn follow(&mut self, times: u64, step: &[Operation]) -> Result<bool, ForceError> {
        let suits = |many: &&mut ManySteps| evaluations_of(step) <= many.evaluations;
        let many = self.sources.as_mut().and_then(|each| each.many.as_mut());
        let (Some(moves), Some(many), None) = (
            moves_of(step, &self.frame),
            many.filter(suits),
            &self.external,
        ) else {
            return Ok(false);
        };
        if many.moves != moves {
            let buffer = self.device.allocate(size_of_val(&moves[..]))?;
            self.device.upload(&buffer, &moves)?;
            self.memory.put(Buffer::moves, buffer);
            many.moves = moves;
        }
        let at_once = (many.evaluations / evaluations_of(step).max(1)) as u64;
        let mut left = times;
        while left > 0 {
            let now = left.min(at_once);
            self.take_steps(now as u32)?;
            left -= now;
        }
        Ok(true)
    }

    /// Takes so many steps of the moves that the device has.
    fn take_steps(&self, steps: u32) -> Result<(), ForceError> {
        self.gather()?;
        let many = self.sources.as_ref().and_then(|apart| apart.many.as_ref());
        let many = many.expect("`follow` has seen them");
        let force = self.force_params();
        let params = Params {
            systems: Systems {
                steps,
                ..force.systems
            },
            ..force
        };
        self.launch(many.trace, params)?;
        self.launch(many.follow, params)
    }
}

fn evaluations_of(step: &[Operation]) -> usize {
    let is_evaluation = |operation: &&Operation| matches!(operation, Operation::Evaluate(_));
    step.iter().filter(is_evaluation).count()
}

/// The records of a step's moves in the units of a frame, and of its end, if it is made of kicks and
/// drifts.
fn moves_of(step: &[Operation], frame: &Frame) -> Option<Vec<f64>> {
    let record = |which: Move, amount| [f64::from(which as u32), amount];
    let records = step.iter().map(|operation| {
        let (which, amount) = match *operation {
            Operation::Damp(factor) => (Move::Damp, factor),
            Operation::Kick(dt) => (Move::Kick, frame.time_to_local(dt)),
            Operation::Drift(dt) => (Move::Drift, frame.time_to_local(dt)),
            Operation::Evaluate(HighestDerivative::None) => (Move::Evaluate, 0.0),
            _ => return None,
        };
        Some(record(which, amount))
    });
    let mut records: Vec<_> = records.collect::<Option<_>>()?;
    records.push(record(Move::End, 0.0));
    Some(records.into_flattened())
}

#[cfg(test)]
mod tests;
