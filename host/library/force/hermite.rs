//! Hermite's scheme for backends whose state is in host memory: O(N) beside the forces.

use super::host_state::HostState;
use super::in_memory::InMemory;
use crate::backend::{ForceError, Hermite, Targets};

impl HostState {
    /// Steps that accuracy `eta` allows each body after a step of `dt`.
    fn next_steps(&self, eta: f64, dt: f64) -> Vec<f64> {
        let ends = self.accelerations.iter().zip(&self.jerks);
        let steps = self.beginnings.iter().zip(ends);
        steps
            .map(|(beginning, (&a, &j))| beginning.next_step(eta, dt, a, j))
            .collect()
    }
}

impl<B: InMemory> Hermite for B {
    fn accelerate_with_jerk(&mut self) -> Result<(), ForceError> {
        let [accelerations, jerks] = self.accelerations_and_jerks(Targets::All);
        let state = self.state_mut();
        (state.accelerations, state.jerks) = (accelerations, jerks);
        Ok(())
    }

    fn predict(&mut self, dt: f64) -> Result<(), ForceError> {
        let state = self.state_mut();
        state.begin();
        for i in 0..state.bodies.len() {
            let [x, v] = state.beginnings[i].predicted(dt);
            state.set_phase(i, x, v);
        }
        Ok(())
    }

    fn correct(&mut self, dt: f64) -> Result<(), ForceError> {
        let state = self.state_mut();
        for i in 0..state.bodies.len() {
            let (a, j) = (state.accelerations[i], state.jerks[i]);
            let [x, v] = state.beginnings[i].corrected(dt, a, j);
            state.set_phase(i, x, v);
        }
        Ok(())
    }

    fn first_step(&mut self, eta: f64, longest: f64) -> Result<f64, ForceError> {
        Ok(first_steps(self, eta, longest)?.0)
    }

    fn next_step(&mut self, eta: f64, dt: f64) -> Result<f64, ForceError> {
        Ok(least(&self.state().next_steps(eta, dt)))
    }
}

/// The first step that accuracy `eta` allows all bodies, and what it allows each of them; bodies
/// stay where they are.
pub(super) fn first_steps(
    backend: &mut impl InMemory,
    eta: f64,
    longest: f64,
) -> Result<(f64, Vec<f64>), ForceError> {
    let start = backend.state().clone();
    agreed_step(longest, |dt| {
        backend.predict(dt)?;
        backend.accelerate_with_jerk()?;
        let allowed = backend.state().next_steps(eta, dt);
        backend.state_mut().clone_from(&start);
        Ok(allowed)
    })
}

/// The first step, at most `longest`, and what is allowed each body after it, from what `allowed`
/// finds at the end of a step that is tried and taken back.
///
/// Before a step nothing is known but accelerations and jerks, which say little where bodies are at
/// rest or contributions cancel: `longest` is tried, and shortened until the criterion at its end
/// agrees.
pub(super) fn agreed_step(
    longest: f64,
    mut allowed: impl FnMut(f64) -> Result<Vec<f64>, ForceError>,
) -> Result<(f64, Vec<f64>), ForceError> {
    let mut dt = longest;
    loop {
        let allowed = allowed(dt)?;
        // Where numbers overflowed, or nearly, a step was far too long.
        let overflowed = allowed.iter().any(|step| step.is_nan());
        let least = if overflowed { 0.0 } else { least(&allowed) };
        // A step that has come to nothing cannot be shortened.
        if least >= dt || dt == 0.0 {
            return Ok((dt, allowed));
        }
        // Far too long a step is not believed how much too long it is.
        dt = least.clamp(dt / 8.0, dt / 2.0);
    }
}

/// The step that all bodies can take, as far as numbers say.
pub(super) fn least(steps: &[f64]) -> f64 {
    steps.iter().copied().fold(f64::INFINITY, f64::min)
}
