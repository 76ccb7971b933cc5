//! Backends whose bodies lie in host memory: what they do alike, which is all but the forces.

use bytemuck::{Pod, Zeroable};
use gpu_kernels::schedule::block_steps::{Fourth, SPAN, Scheme, Sixth};

use super::block_steps::Way;
use super::hermite;
use super::hermite_order::Order;
use super::host_state::HostState;
use crate::backend::{
    Backend, BlockCounts, BlockSteps, ForceError, HighestDerivative, Operation, SavedState, Targets,
};
use crate::bodies::Bodies;
use crate::diagnostics::{Energy, kinetic};
use crate::fields::{BODIES_OF_A_TASK, External, Relativity};
use crate::frame::Frame;
use crate::parallel;
use crate::physics::Physics;
use crate::ranks::Team;
use crate::simd::InstructionSet;

/// Force on a body.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Forces {
    /// Acceleration, jerk and snap; zero where they were not asked for.
    pub(super) derivatives: [[f64; 3]; 3],
    /// `max_j |r·v| / d²`, the rate at which the distance of a pair changes, as a part of the distance.
    pub(super) approach: f64,
    /// A distance within which there is no other body: of the nearest, as sources are rounded; 0 where it is not known.
    pub(super) nearest: f64,
}

/// A block step, for a backend that predicts bodies elsewhere than in its state.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// Units and origin to compute in.
    pub(super) frame: &'a Frame,
    pub(super) span: f64,
    /// Ticks of the span that are done.
    pub(super) now: u64,
    /// Ticks at which the steps of bodies began.
    pub(super) begun: &'a [u64],
}

/// Time of ticks of a span.
pub(super) fn time_in(span: f64, ticks: u64) -> f64 {
    span * (ticks as f64 / SPAN as f64)
}

/// The forces of a backend whose bodies lie in host memory.
pub(super) trait InMemory: Send {
    /// Hermite's steps of fourth order.
    type Fourth: Scheme
    where
        Self: Sized;

    /// Hermite's steps of sixth order.
    type Sixth: Scheme
    where
        Self: Sized;

    fn physics(&self) -> &Physics;

    fn state(&self) -> &HostState;

    fn state_mut(&mut self) -> &mut HostState;

    /// The part of a force in block steps that rounding may change, where it is more than f64 rounds; 0 otherwise.
    fn rounding(&self) -> f64 {
        0.0
    }

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
        unreachable!("no neighbours were asked for")
    }

    /// Finds again which bodies exert forces: their masses are other than before.
    fn find_sources(&mut self) {}

    /// Vector instructions that the host's part of a step uses: those that all ranks have.
    fn instructions(&self) -> InstructionSet {
        InstructionSet::detect()
    }

    /// Ranks that compute together, if they are several.
    fn team(&self) -> Option<&Team> {
        None
    }

    /// Computes the accelerations of the current positions by pairs, into the state.
    fn pull(&mut self) -> Result<(), ForceError> {
        let forces = self.pair_forces(&self.frame(), Targets::All, HighestDerivative::None)?;
        self.state_mut().accelerations = forces.iter().map(|force| force.derivatives[0]).collect();
        Ok(())
    }

    /// Computes the accelerations of the current positions by pairs and external fields, into the state.
    fn accelerate_all(&mut self) -> Result<(), ForceError> {
        self.pull()?;
        let state = self.state_mut();
        if state.external.is_none() {
            return Ok(());
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
        Ok(())
    }

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
    ) -> Result<Vec<Forces>, ForceError>;

    /// As [`pair_forces`](Self::pair_forces), with external fields.
    fn forces(
        &self,
        frame: &Frame,
        targets: Targets<'_>,
        derivatives: HighestDerivative,
    ) -> Result<Vec<Forces>, ForceError> {
        let mut forces = self.forces_in_fields(frame, targets, derivatives)?;
        let state = self.state();
        let Some(relativity) = state.external.relativity() else {
            return Ok(forces);
        };
        let indices = targets.indices(state.bodies.len());
        let centre = relativity.body();
        let of_centre = match indices.iter().position(|&i| i == centre) {
            Some(k) => forces[k].derivatives,
            None => {
                let alone = Targets::Active(&[centre]);
                self.forces_in_fields(frame, alone, derivatives)?[0].derivatives
            }
        };
        let order = order(derivatives);
        add_relativity(state, relativity, of_centre, targets, order, &mut forces);
        Ok(forces)
    }

    /// Forces of pairs and of the fields that do not depend on a body.
    fn forces_in_fields(
        &self,
        frame: &Frame,
        targets: Targets<'_>,
        derivatives: HighestDerivative,
    ) -> Result<Vec<Forces>, ForceError> {
        let by_pairs = self.pair_forces(frame, targets, derivatives)?;
        Ok(self.with_fields(by_pairs, targets, derivatives))
    }

    /// Forces by pairs with the fields that do not depend on a body, at the positions and velocities that the state has.
    fn with_fields(
        &self,
        mut by_pairs: Vec<Forces>,
        targets: Targets<'_>,
        derivatives: HighestDerivative,
    ) -> Vec<Forces> {
        add_fields(self.state(), targets, order(derivatives), &mut by_pairs);
        by_pairs
    }

    /// Predicts live slots in a block step with groups, by the times since their steps began. Returns whether they are
    /// in the state: another place than host memory may have them.
    fn predict_in_block(&mut self, live: &[usize], since: &(dyn Fn(usize) -> f64 + Sync)) -> bool {
        let state = self.state_mut();
        match (state.order(), live.len() == state.bodies.len()) {
            (Order::Fourth, true) => state.predict::<Fourth>(since),
            (Order::Fourth, false) => state.predict_some::<Fourth>(live, since),
            (Order::Sixth, true) => state.predict::<Sixth>(since),
            (Order::Sixth, false) => state.predict_some::<Sixth>(live, since),
        }
        true
    }

    /// Lets another device than the host compute [`end_forces`](Self::end_forces), if that is where they are computed.
    /// The bodies that changed have another mass or step than at the last call.
    fn begin_forces(
        &mut self,
        _block: Block<'_>,
        _changed: &[usize],
        _slots: &[usize],
    ) -> Result<(), ForceError> {
        Ok(())
    }

    /// Forces on slots by pairs, in a block step with groups, where all bodies are predicted.
    /// [`begin_forces`](Self::begin_forces) had the same slots.
    fn end_forces(&mut self, frame: &Frame, slots: &[usize]) -> Result<Vec<Forces>, ForceError> {
        self.pair_forces(
            frame,
            Targets::Active(slots),
            self.state().order().highest(),
        )
    }

    /// `−G Σ_{i<j} m_i m_j / d` of the current positions.
    fn potential_energy(&self) -> Result<f64, ForceError>;

    /// Energy of the bodies in external fields.
    fn energy_in_fields(&self) -> f64 {
        let state = self.state();
        state.external.energy(&state.with_members(), self.physics())
    }
}

/// Number of derivatives of accelerations.
pub(super) fn order(derivatives: HighestDerivative) -> usize {
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
    parallel::change(sums, BODIES_OF_A_TASK, |k, sums| {
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

impl<B: InMemory> Backend for B {
    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        match operation {
            Operation::Evaluate(HighestDerivative::None) => return self.accelerate_all(),
            Operation::Evaluate(highest) => return hermite::evaluate(self, highest),
            Operation::Damp(factor) => self.state_mut().damp(factor),
            Operation::Kick(dt) => self.state_mut().kick(dt),
            Operation::Drift(dt) => self.state_mut().drift(dt),
            Operation::Predict(dt) => hermite::predict(self, dt),
            Operation::Correct(dt) => hermite::correct(self, dt),
        }
        Ok(())
    }

    fn repeat(&mut self, times: u64, step: &[Operation]) -> Result<(), ForceError> {
        match self.repeat_at_once(times, step) {
            true => Ok(()),
            false => {
                (0..times).try_for_each(|_| step.iter().try_for_each(|&part| self.perform(part)))
            }
        }
    }

    fn number_of_sources(&self) -> Option<usize> {
        self.sources().map(<[usize]>::len)
    }

    fn external(&self) -> Option<&External> {
        Some(&self.state().external)
    }

    fn reach(&mut self, from: f64, to: f64) -> Result<(), ForceError> {
        Ok(self.state_mut().external.extend(from, to)?)
    }

    fn set_time(&mut self, time: f64) {
        self.state_mut().external.set_time(time);
    }

    fn first_step(&mut self, eta: f64, longest: f64) -> Result<f64, ForceError> {
        hermite::first_step(self, eta, longest)
    }

    fn next_step(&mut self, eta: f64, dt: f64) -> Result<f64, ForceError> {
        Ok(hermite::least(&hermite::next_steps(self, eta, dt)))
    }

    fn block_steps(&mut self) -> Option<&mut dyn BlockSteps> {
        Some(self)
    }

    fn save(&mut self) -> Result<SavedState, ForceError> {
        Ok(self.state().save())
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        self.state_mut().restore(saved)?;
        self.find_sources();
        Ok(())
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        self.state().download(bodies);
        Ok(())
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        Ok(self.state().accelerations.clone())
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        let (state, physics) = (self.state(), self.physics());
        let inner = state.energy_of_groups(physics, self.instructions());
        Ok(Energy {
            kinetic: kinetic(&state.bodies, physics) + inner.kinetic,
            potential: self.potential_energy()? + inner.potential,
            external: match state.external.is_none() {
                true => 0.0,
                false => self.energy_in_fields(),
            },
            lost: 0.0,
            brought: 0.0,
        })
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        Ok(())
    }
}
