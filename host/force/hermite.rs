//! Hermite's scheme for backends whose state is in host memory: O(N) beside the forces.

use super::cpu::HostState;
use super::in_memory::InMemory;
use super::{ForceError, Hermite};

/// What a step of a body began from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Beginning {
    pub(super) x: [f64; 3],
    pub(super) v: [f64; 3],
    pub(super) a: [f64; 3],
    pub(super) j: [f64; 3],
}

impl Beginning {
    /// Position and velocity after `dt` by Taylor's series, to third and to second order.
    pub(super) fn predicted(&self, dt: f64) -> [[f64; 3]; 2] {
        let Self { x, v, a, j } = self;
        [
            [0, 1, 2].map(|k| x[k] + dt * (v[k] + dt / 2.0 * (a[k] + dt / 3.0 * j[k]))),
            [0, 1, 2].map(|k| v[k] + dt * (a[k] + dt / 2.0 * j[k])),
        ]
    }

    /// Position and velocity of fourth order after `dt`, from acceleration and jerk of what was
    /// predicted.
    pub(super) fn corrected(&self, dt: f64, a1: [f64; 3], j1: [f64; 3]) -> [[f64; 3]; 2] {
        let Self { x, v, a, j } = self;
        let twelfth = dt * dt / 12.0;
        let velocity =
            [0, 1, 2].map(|k| v[k] + (dt / 2.0 * (a[k] + a1[k]) + twelfth * (j[k] - j1[k])));
        let position =
            [0, 1, 2].map(|k| x[k] + (dt / 2.0 * (v[k] + velocity[k]) + twelfth * (a[k] - a1[k])));
        [position, velocity]
    }

    /// `√(η (|a||a″| + |j|²) / (|j||a‴| + |a″|²))` at the end of a step, from the polynomial
    /// through accelerations and jerks at both ends: Aarseth (1985), derivatives by Makino &
    /// Aarseth (1992, eqs. 5 to 7). Infinite for a body that nothing pulls.
    pub(super) fn next_step(&self, eta: f64, dt: f64, a1: [f64; 3], j1: [f64; 3]) -> f64 {
        let Self { a, j, .. } = self;
        let third =
            [0, 1, 2].map(|k| (12.0 * (a[k] - a1[k]) + 6.0 * dt * (j[k] + j1[k])) / (dt * dt * dt));
        let second = [0, 1, 2].map(|k| {
            let at_beginning =
                (-6.0 * (a[k] - a1[k]) - dt * (4.0 * j[k] + 2.0 * j1[k])) / (dt * dt);
            at_beginning + dt * third[k]
        });
        let (a1, j1, second, third) = (norm(a1), norm(j1), norm(second), norm(third));
        let squared = eta * (a1 * second + j1 * j1) / (j1 * third + second * second);
        if squared.is_nan() {
            f64::INFINITY
        } else {
            squared.sqrt()
        }
    }
}

impl HostState {
    /// What accuracy `eta` allows each body after a step of `dt`.
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
        let all = Vec::from_iter(0..self.state().bodies.len());
        let [accelerations, jerks] = self.accelerations_and_jerks(&all);
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
///
/// Before a step nothing is known but accelerations and jerks, which say little where bodies are at
/// rest or pulls cancel: `longest` is tried, and shortened until the criterion at its end agrees.
pub(super) fn first_steps(
    backend: &mut impl InMemory,
    eta: f64,
    longest: f64,
) -> Result<(f64, Vec<f64>), ForceError> {
    let start = backend.state().clone();
    let mut dt = longest;
    loop {
        backend.predict(dt)?;
        backend.accelerate_with_jerk()?;
        let allowed = backend.state().next_steps(eta, dt);
        backend.state_mut().clone_from(&start);
        let least = least(&allowed);
        // A step that has come to nothing cannot be shortened.
        if least >= dt || dt == 0.0 {
            return Ok((dt, allowed));
        }
        // Far too long a step is not believed how much too long it is.
        dt = least.clamp(dt / 8.0, dt / 2.0);
    }
}

fn least(steps: &[f64]) -> f64 {
    steps.iter().copied().fold(f64::INFINITY, f64::min)
}

fn norm(v: [f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
