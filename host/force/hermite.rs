//! Hermite's scheme for backends whose state is in host memory: O(N) beside the forces.

use super::cpu::HostState;
use super::{ForceError, Hermite};

/// A backend in host memory that computes jerks.
pub(super) trait HostJerks {
    fn state(&mut self) -> &mut HostState;

    /// Accelerations and jerks of the current positions and velocities.
    fn accelerations_and_jerks(&self) -> [Vec<[f64; 3]>; 2];
}

/// What a step began from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Beginning {
    x: [f64; 3],
    v: [f64; 3],
    a: [f64; 3],
    j: [f64; 3],
}

impl<B: HostJerks> Hermite for B {
    fn accelerate_with_jerk(&mut self) -> Result<(), ForceError> {
        let [accelerations, jerks] = self.accelerations_and_jerks();
        let state = self.state();
        (state.accelerations, state.jerks) = (accelerations, jerks);
        Ok(())
    }

    fn predict(&mut self, dt: f64) -> Result<(), ForceError> {
        let state = self.state();
        state.beginnings.clear();
        for i in 0..state.bodies.len() {
            let (x, v) = state.phase(i);
            let (a, j) = (state.accelerations[i], state.jerks[i]);
            state.beginnings.push(Beginning { x, v, a, j });
            let position =
                [0, 1, 2].map(|k| x[k] + dt * (v[k] + dt / 2.0 * (a[k] + dt / 3.0 * j[k])));
            let velocity = [0, 1, 2].map(|k| v[k] + dt * (a[k] + dt / 2.0 * j[k]));
            state.set_phase(i, position, velocity);
        }
        Ok(())
    }

    fn correct(&mut self, dt: f64) -> Result<(), ForceError> {
        let state = self.state();
        for i in 0..state.bodies.len() {
            let Beginning { x, v, a, j } = state.beginnings[i];
            let (a1, j1) = (state.accelerations[i], state.jerks[i]);
            let twelfth = dt * dt / 12.0;
            let velocity =
                [0, 1, 2].map(|k| v[k] + (dt / 2.0 * (a[k] + a1[k]) + twelfth * (j[k] - j1[k])));
            let position = [0, 1, 2]
                .map(|k| x[k] + (dt / 2.0 * (v[k] + velocity[k]) + twelfth * (a[k] - a1[k])));
            state.set_phase(i, position, velocity);
        }
        Ok(())
    }

    fn time_step(&mut self, eta: f64, dt: Option<f64>) -> Result<f64, ForceError> {
        let state = self.state();
        let steps = (0..state.bodies.len()).map(|i| {
            let (a1, j1) = (state.accelerations[i], state.jerks[i]);
            match dt {
                Some(dt) => aarseth(eta, dt, state.beginnings[i], a1, j1),
                None => eta * norm(a1) / norm(j1),
            }
        });
        // 0/0 is the step of a body that nothing pulls: no limit.
        let limits = steps.filter(|step| !step.is_nan());
        Ok(limits.fold(f64::INFINITY, f64::min))
    }
}

/// `√(η (|a||a″| + |j|²) / (|j||a‴| + |a″|²))` at the end of a step, from the polynomial through
/// accelerations and jerks at both ends: Aarseth (1985), derivatives by Makino & Aarseth (1992,
/// eqs. 5 to 7).
fn aarseth(eta: f64, dt: f64, beginning: Beginning, a1: [f64; 3], j1: [f64; 3]) -> f64 {
    let Beginning { a, j, .. } = beginning;
    let third =
        [0, 1, 2].map(|k| (12.0 * (a[k] - a1[k]) + 6.0 * dt * (j[k] + j1[k])) / (dt * dt * dt));
    let second = [0, 1, 2].map(|k| {
        let at_beginning = (-6.0 * (a[k] - a1[k]) - dt * (4.0 * j[k] + 2.0 * j1[k])) / (dt * dt);
        at_beginning + dt * third[k]
    });
    let (a1, j1, second, third) = (norm(a1), norm(j1), norm(second), norm(third));
    (eta * (a1 * second + j1 * j1) / (j1 * third + second * second)).sqrt()
}

fn norm(v: [f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
