//! Hermite's schemes for backends whose state is in host memory: O(N) beside the forces.

use gpu_kernels::schedule::block_steps::{Scheme, StepAccuracy};

use super::cancelled::correct_shared;
use super::groups;
use super::hermite_order::Order;
use super::host_state::HostState;
use super::in_memory::InMemory;
use crate::backend::{ForceError, HighestDerivative, Targets};
use crate::parallel::{self, ELEMENTWISE};

impl HostState {
    /// Moves each body on from its beginning, by the time that is given for it.
    pub(super) fn predict<S: Scheme>(&mut self, dt: impl Fn(usize) -> f64 + Sync) {
        let all = 0..self.bodies.len();
        let columns = self.bodies.phase_parts(all, ELEMENTWISE).into_iter();
        let parts = columns.zip(self.accelerations.chunks_mut(ELEMENTWISE));
        let mut parts: Vec<_> = parts.collect();
        parallel::change(&mut parts, 1, |number, (columns, accelerations)| {
            for (k, acceleration) in accelerations.iter_mut().enumerate() {
                let i = number * ELEMENTWISE + k;
                let [x, v, a] = S::predicted(&self.beginnings[i], dt(i));
                for (column, value) in columns.iter_mut().zip(x.into_iter().chain(v)) {
                    column[k] = value;
                }
                if S::SNAP {
                    *acceleration = a;
                }
            }
        });
    }

    /// As [`predict`](Self::predict), of some bodies alone.
    pub(super) fn predict_some<S: Scheme>(&mut self, some: &[usize], dt: impl Fn(usize) -> f64) {
        for &i in some {
            let [x, v, a] = S::predicted(&self.beginnings[i], dt(i));
            self.set_phase(i, x, v);
            if S::SNAP {
                self.accelerations[i] = a;
            }
        }
    }

    /// Begins a step and predicts its end.
    fn begin_step<S: Scheme>(&mut self, dt: f64) {
        self.begin();
        self.pass(dt);
        self.predict::<S>(|_| dt);
    }

    fn correct<S: Scheme>(&mut self, dt: f64) {
        for i in 0..self.bodies.len() {
            // η plays no part in where a step ends.
            let accuracy = StepAccuracy::of_exact(1.0);
            let ended = S::ended(&self.beginnings[i], dt, accuracy, self.derivatives(i));
            self.set_phase(i, ended.x, ended.v);
            if let Some([_, crackle]) = self.higher.get_mut(i) {
                *crackle = ended.crackle;
            }
        }
    }

    fn next_steps<S: Scheme>(&self, eta: f64, dt: f64) -> Vec<f64> {
        let accuracy = StepAccuracy::of_exact(eta);
        let bodies = self.beginnings.iter().enumerate();
        bodies
            .map(|(i, begun)| S::ended(begun, dt, accuracy, self.derivatives(i)).allowed)
            .collect()
    }

    /// Acceleration, jerk and snap of body i, the last zero at fourth order.
    fn derivatives(&self, i: usize) -> [[f64; 3]; 3] {
        let [snap, _] = self.higher.get(i).copied().unwrap_or_default();
        [self.accelerations[i], self.jerks[i], snap]
    }
}

/// Begins a step and predicts its end.
pub(super) fn predict<B: InMemory>(backend: &mut B, dt: f64) {
    let state = backend.state_mut();
    match state.order() {
        Order::Sixth => state.begin_step::<B::Sixth>(dt),
        Order::Fourth => state.begin_step::<B::Fourth>(dt),
    }
}

/// Corrects the end of a step.
pub(super) fn correct<B: InMemory>(backend: &mut B, dt: f64) {
    let state = backend.state_mut();
    match state.order() {
        Order::Sixth => state.correct::<B::Sixth>(dt),
        Order::Fourth => state.correct::<B::Fourth>(dt),
    }
}

/// Steps that accuracy `eta` allows each body after a step of `dt`.
pub(super) fn next_steps<B: InMemory>(backend: &B, eta: f64, dt: f64) -> Vec<f64> {
    let state = backend.state();
    let mut steps = match state.order() {
        Order::Sixth => state.next_steps::<B::Sixth>(eta, dt),
        Order::Fourth => state.next_steps::<B::Fourth>(eta, dt),
    };
    let acceleration = |i: usize| state.accelerations[i];
    let others = (backend.physics(), state);
    correct_shared(&mut steps, (dt, eta), acceleration, &others);
    steps
}

/// Computes accelerations and jerks of the current positions and velocities; snaps too, if they are the
/// highest derivative.
pub(super) fn evaluate(
    backend: &mut impl InMemory,
    highest: HighestDerivative,
) -> Result<(), ForceError> {
    let forces = backend.forces(&backend.frame(), Targets::All, highest)?;
    let state = backend.state_mut();
    let vectors = |k: usize| forces.iter().map(move |force| force.derivatives[k]);
    state.accelerations = vectors(0).collect();
    state.jerks = vectors(1).collect();
    match highest {
        HighestDerivative::Snap => {
            state.higher.resize(forces.len(), Default::default());
            for ([snap, _], new) in state.higher.iter_mut().zip(vectors(2)) {
                *snap = new;
            }
        }
        _ => state.higher.clear(),
    }
    groups::correct_for_members(backend)
}

/// See [`Backend::first_step`](crate::backend::Backend::first_step).
pub(super) fn first_step(
    backend: &mut impl InMemory,
    eta: f64,
    longest: f64,
) -> Result<f64, ForceError> {
    let start = backend.state().clone();
    let highest = start.order().highest();
    agreed_step(longest, |dt| {
        predict(backend, dt);
        evaluate(backend, highest)?;
        let allowed = next_steps(backend, eta, dt);
        backend.state_mut().clone_from(&start);
        Ok(allowed)
    })
}

/// The first step, at most `longest`, from the steps that `allowed` finds at the end of one that is
/// tried and taken back.
///
/// Before a step nothing is known but accelerations and jerks, which say little where bodies are at
/// rest or contributions cancel: `longest` is tried, and shortened until the criterion at its end
/// agrees.
pub(super) fn agreed_step(
    longest: f64,
    mut allowed: impl FnMut(f64) -> Result<Vec<f64>, ForceError>,
) -> Result<f64, ForceError> {
    let mut dt = longest;
    loop {
        let allowed = allowed(dt)?;
        // Where numbers overflowed, or nearly, a step was far too long.
        let overflowed = allowed.iter().any(|step| step.is_nan());
        let least = if overflowed { 0.0 } else { least(&allowed) };
        // A step that has come to nothing cannot be shortened.
        if least >= dt || dt == 0.0 {
            return Ok(dt);
        }
        // Far too long a step is not believed how much too long it is.
        dt = least.clamp(dt / 8.0, dt / 2.0);
    }
}

/// The step that all bodies can take, as far as numbers say.
pub(super) fn least(steps: &[f64]) -> f64 {
    steps.iter().copied().fold(f64::INFINITY, f64::min)
}
