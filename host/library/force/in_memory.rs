//! Backends whose bodies lie in host memory: what they do alike, which is all but the forces.

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use super::block_steps::{self, Way};
use super::hermite::{self, least};
use super::host_state::HostState;
use crate::backend::{
    Backend, BlockCounts, Command, Facts, ForceError, HighestDerivative, NeighboursFault,
    Operation, Reply, Targets, Watch, timed_by_the_host,
};
use crate::diagnostics::{Energy, kinetic};
use crate::fields::{BODIES_OF_A_TASK, Relativity};
use crate::frame::Frame;
use crate::physics::Physics;
use crate::ranks::Team;

/// Force on a body.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Forces {
    /// Acceleration, jerk and snap; zero where they were not asked for.
    pub(super) derivatives: [[f64; 3]; 3],
    /// `max_j |r·v| / d²`, the rate at which the distance of a pair changes, as a part of the distance.
    pub(super) approach: f64,
}

/// The forces of a backend whose bodies lie in host memory.
pub(super) trait InMemory: Send {
    fn physics(&self) -> &Physics;

    fn state(&self) -> &HostState;

    fn state_mut(&mut self) -> &mut HostState;

    /// Indices of the bodies that exert forces, if not all do.
    fn sources(&self) -> Option<&[usize]> {
        None
    }

    /// Takes all these steps, if that can be done better than one after another. Returns whether it did.
    fn repeat_at_once(&mut self, _times: u64, _step: &[Operation]) -> bool {
        false
    }

    /// Takes block time steps in a neighbour scheme with so many neighbours; none if the span is left.
    fn advance_with_neighbours(
        &mut self,
        _neighbours: usize,
        _span: f64,
        _eta: f64,
        _way: Way<'_, '_>,
    ) -> Result<Option<BlockCounts>, ForceError> {
        Err(NeighboursFault::Device.into())
    }

    /// Ranks that compute together, if they are several.
    fn team(&self) -> Option<&Team> {
        None
    }

    /// Computes the accelerations of the current positions by pairs, into the state.
    fn pull(&mut self);

    /// Units and origin to compute in, of the current state; those of a state shortly before serve as
    /// well.
    fn frame(&self) -> Frame;

    /// Accelerations of the targets by pairs, and their derivatives, by the current positions and
    /// velocities of all bodies, and for snaps by the accelerations that the state has.
    fn pair_forces(
        &self,
        frame: &Frame,
        targets: Targets<'_>,
        derivatives: HighestDerivative,
    ) -> Vec<Forces>;

    /// As [`pair_forces`](Self::pair_forces), with external fields.
    fn forces(
        &self,
        frame: &Frame,
        targets: Targets<'_>,
        derivatives: HighestDerivative,
    ) -> Vec<Forces> {
        let mut forces = self.forces_in_fields(frame, targets, derivatives);
        let state = self.state();
        let Some(relativity) = state.external.relativity() else {
            return forces;
        };
        let indices = targets.indices(state.bodies.len());
        let centre = relativity.body();
        let of_centre = match indices.iter().position(|&i| i == centre) {
            Some(k) => forces[k].derivatives,
            None => {
                let alone = Targets::Active(&[centre]);
                self.forces_in_fields(frame, alone, derivatives)[0].derivatives
            }
        };
        let order = order(derivatives);
        add_relativity(state, relativity, of_centre, targets, order, &mut forces);
        forces
    }

    /// Forces of pairs and of the fields that do not depend on a body.
    fn forces_in_fields(
        &self,
        frame: &Frame,
        targets: Targets<'_>,
        derivatives: HighestDerivative,
    ) -> Vec<Forces> {
        let mut forces = self.pair_forces(frame, targets, derivatives);
        add_fields(self.state(), targets, order(derivatives), &mut forces);
        forces
    }

    /// `−G Σ_{i<j} m_i m_j / d` of the current positions.
    fn potential_energy(&self) -> f64;
}

/// Number of derivatives of accelerations.
fn order(derivatives: HighestDerivative) -> usize {
    match derivatives {
        HighestDerivative::None => 0,
        HighestDerivative::Jerk => 1,
        HighestDerivative::Snap => 2,
    }
}

/// Sums over pairs that other terms are added to.
trait Sums: Send {
    fn derivatives(&self) -> [[f64; 3]; 3];

    fn set_derivatives(&mut self, derivatives: [[f64; 3]; 3]);
}

impl Sums for Forces {
    fn derivatives(&self) -> [[f64; 3]; 3] {
        self.derivatives
    }

    fn set_derivatives(&mut self, derivatives: [[f64; 3]; 3]) {
        self.derivatives = derivatives;
    }
}

/// Accelerations alone.
impl Sums for [f64; 3] {
    fn derivatives(&self) -> [[f64; 3]; 3] {
        [*self, [0.0; 3], [0.0; 3]]
    }

    fn set_derivatives(&mut self, [acceleration, ..]: [[f64; 3]; 3]) {
        *self = acceleration;
    }
}

/// Adds the fields that do not depend on a body, up to the derivative of this order. The accelerations that
/// the state has are read for snaps alone.
fn add_fields(state: &HostState, targets: Targets<'_>, order: usize, sums: &mut [impl Sums]) {
    if state.external.is_none() {
        return;
    }
    let moving = |k: usize| {
        let i = match targets {
            Targets::All => k,
            Targets::Active(indices) => indices[k],
        };
        let (x, v) = state.phase(i);
        let a = match order {
            0 | 1 => [0.0; 3],
            _ => state.accelerations[i],
        };
        [x, v, a]
    };
    let all = sums.par_iter_mut().with_min_len(BODIES_OF_A_TASK);
    all.enumerate().for_each(|(k, sums)| {
        let derivatives = sums.derivatives();
        let added = state.external.add_up_to(order, moving(k), derivatives);
        sums.set_derivatives(added);
    });
}

/// Adds the post-Newtonian term of a body with these forces to those of the others.
fn add_relativity(
    state: &HostState,
    relativity: &Relativity,
    of_centre: [[f64; 3]; 3],
    targets: Targets<'_>,
    order: usize,
    sums: &mut [impl Sums],
) {
    let centre = relativity.body();
    let indices = targets.indices(state.bodies.len());
    for (&i, sums) in indices.iter().zip(sums) {
        if i != centre {
            let (relative, derivatives) = (state.relative_phase(i, centre), sums.derivatives());
            sums.set_derivatives(relativity.add(order, relative, derivatives, of_centre));
        }
    }
}

/// Computes accelerations, and derivatives of them, of all bodies, with external fields.
fn evaluate(backend: &mut impl InMemory, derivatives: HighestDerivative) {
    match derivatives {
        HighestDerivative::None => accelerate(backend),
        HighestDerivative::Jerk => hermite::accelerate_with_jerk(backend),
        HighestDerivative::Snap => hermite::accelerate_with_snap(backend),
    }
}

fn accelerate(backend: &mut impl InMemory) {
    backend.pull();
    let state = backend.state_mut();
    if state.external.is_none() {
        return;
    }
    let mut accelerations = std::mem::take(&mut state.accelerations);
    add_fields(state, Targets::All, 0, &mut accelerations);
    if let Some(relativity) = state.external.relativity() {
        let of_centre = accelerations[relativity.body()].derivatives();
        add_relativity(
            state,
            relativity,
            of_centre,
            Targets::All,
            0,
            &mut accelerations,
        );
    }
    state.accelerations = accelerations;
}

fn perform(backend: &mut impl InMemory, operation: Operation) {
    match operation {
        Operation::Damp(factor) => backend.state_mut().damp(factor),
        Operation::Evaluate(derivatives) => evaluate(backend, derivatives),
        Operation::Kick(dt) => backend.state_mut().kick(dt),
        Operation::Drift(dt) => backend.state_mut().drift(dt),
        Operation::Predict(dt) => backend.state_mut().begin_step(dt),
        Operation::Correct(dt) => backend.state_mut().end_step(dt),
    }
}

fn energy(backend: &impl InMemory) -> Energy {
    let (state, physics) = (backend.state(), backend.physics());
    Energy {
        kinetic: kinetic(&state.bodies, physics),
        potential: backend.potential_energy(),
        external: state.external.energy(&state.bodies, physics),
        lost: 0.0,
    }
}

impl<B: InMemory> Backend for B {
    fn facts(&self) -> Facts<'_> {
        Facts {
            sources: self.sources().map(<[usize]>::len),
            external: Some(&self.state().external),
            has_block_steps: true,
            ..Facts::default()
        }
    }

    fn run(
        &mut self,
        command: &Command<'_>,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Reply, ForceError> {
        match *command {
            Command::Perform(operation) => perform(self, operation),
            Command::Repeat(times, ref step) => {
                if !self.repeat_at_once(times, step) {
                    for _ in 0..times {
                        step.iter().for_each(|&part| perform(self, part));
                    }
                }
            }
            Command::FirstStep { eta, longest } => {
                return Ok(Reply::Number(hermite::first_step(self, eta, longest)?));
            }
            Command::NextStep { eta, dt } => {
                let steps = self.state().next_steps(eta, dt);
                return Ok(Reply::Number(least(&steps)));
            }
            Command::Span { length, eta } => {
                let counts = match watch {
                    None => block_steps::advance(self, length, eta)?,
                    Some(watch) => block_steps::advance_unless(self, length, eta, watch)?,
                };
                return Ok(Reply::Span(counts));
            }
            Command::OwnSteps => return Ok(Reply::Numbers(self.state().own_steps.clone())),
            Command::KeepSteps => self.state_mut().steps = Some(vec![]),
            Command::TakeSteps => {
                let kept = self.state_mut().steps.as_mut();
                return Ok(Reply::Steps(kept.map(std::mem::take).unwrap_or_default()));
            }
            Command::Reach { from, to } => self.state_mut().external.extend(from, to)?,
            Command::SetTime(time) => self.state_mut().external.set_time(time),
            Command::Save => return Ok(Reply::State(Box::new(self.state().save()))),
            Command::Restore(ref saved) => self.state_mut().restore(saved)?,
            Command::Phases => return Ok(Reply::Phases(self.state().phases())),
            Command::Accelerations => {
                return Ok(Reply::Vectors(self.state().accelerations.clone()));
            }
            Command::Energies => return Ok(Reply::Energies(vec![energy(self)])),
            Command::Synchronize => {} // nothing is queued
            Command::TimeAcceleration => return Ok(Reply::Number(timed_by_the_host(self)?)),
            Command::TimeSteps { .. } | Command::Timeline { .. } => {
                return Err(ForceError::NothingCopied);
            }
        }
        Ok(Reply::Done)
    }
}
