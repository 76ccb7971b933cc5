//! The f64 reference: what every other force is compared with.
//!
//! Written to be obviously right, and by its own formulas: for pairs, external fields, the post-Newtonian term and
//! Hermite's steps. With the backends that it judges it shares no formula. It shares constants, the list of the
//! fields, the orbit of the origin, copies of the state, kicks, drifts, and the order of block steps.

mod fields;
mod pairs;
mod relativity;
mod series;
mod steps;
#[cfg(test)]
mod tests;

pub use self::pairs::{accelerations, accelerations_of, jerks, jerks_of, potential_energy};
use self::pairs::{fastest_approach, field_at, jerk_at, snap_at};
use self::relativity::Relativity;
use self::steps::Interpolated;
use super::host_state::HostState;
use super::in_memory::{Forces, InMemory, order};
use crate::backend::{ForceError, HighestDerivative, Targets};
use crate::bodies::Bodies;
use crate::diagnostics::CompensatedSum;
use crate::fields::External;
use crate::frame::Frame;
use crate::parallel;
use crate::physics::Physics;
use crate::vectors::{axes, difference};

/// The reference as a backend: slow, and the one to compare whole runs with.
#[derive(Clone, Debug)]
pub struct Reference {
    physics: Physics,
    state: HostState,
}

impl Reference {
    /// Takes a copy of the bodies. Accelerations are zero until the first
    /// [`accelerate`](crate::backend::Backend::accelerate).
    pub fn new(bodies: &Bodies, physics: Physics) -> Self {
        Self {
            physics,
            state: HostState::new(bodies),
        }
    }

    /// In these external fields too.
    #[must_use]
    pub fn in_fields(mut self, external: External) -> Self {
        self.state.external = external;
        self
    }

    /// The first post-Newtonian term, if it is one of the fields.
    fn relativity(&self) -> Option<Relativity> {
        Relativity::of(&self.state.external, &self.state.bodies, self.physics.g)
    }

    /// All that acts on body i, from the forces of pairs: with as many derivatives of the acceleration as the order says.
    /// The term of relativity comes with all that acts on its body.
    fn whole(
        &self,
        i: usize,
        pairs: [[f64; 3]; 3],
        order: usize,
        relativity: Option<(Relativity, [[f64; 3]; 3])>,
    ) -> [[f64; 3]; 3] {
        let state = &self.state;
        let (x, v) = state.phase(i);
        let motion = [x, v, state.accelerations[i]];
        let fields = fields::forces(&state.external, self.physics.g, motion);
        let mut whole = [[0.0; 3]; 3];
        // One after another: what depends on velocities takes the derivatives below.
        for k in 0..=order {
            let changes = [x, v, whole[0], whole[1]];
            let turning = fields::turning(&state.external, changes[k], changes[k + 1]);
            let term = match relativity {
                Some((term, of_centre)) if term.body != i => {
                    let [x, v] = state.relative_phase(i, term.body);
                    let [a, j] = [0, 1].map(|k| difference(whole[k], of_centre[k]));
                    term.derivative(k, [x, v, a, j])
                }
                _ => [0.0; 3],
            };
            whole[k] = axes(|axis| pairs[k][axis] + fields[k][axis] + turning[axis] + term[axis]);
        }
        whole
    }
}

impl InMemory for Reference {
    type Fourth = Interpolated<4>;
    type Sixth = Interpolated<6>;

    fn physics(&self) -> &Physics {
        &self.physics
    }

    fn state(&self) -> &HostState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut HostState {
        &mut self.state
    }

    fn frame(&self) -> Frame {
        Frame::IDENTITY
    }

    fn pair_forces(
        &self,
        _: &Frame,
        targets: Targets<'_>,
        asked: HighestDerivative,
    ) -> Result<Vec<Forces>, ForceError> {
        let HostState {
            bodies,
            accelerations,
            ..
        } = &self.state;
        let order = order(asked);
        let force = |i: usize| {
            let mut force = Forces::default();
            force.derivatives[0] = field_at(bodies, &self.physics, i).acceleration;
            if order > 0 {
                force.derivatives[1] = jerk_at(bodies, &self.physics, i);
                force.approach = fastest_approach(bodies, &self.physics, i);
            }
            if order > 1 {
                force.derivatives[2] = snap_at(bodies, accelerations, &self.physics, i);
            }
            force
        };
        let targets = targets.indices(bodies.len());
        Ok(parallel::each(targets.len(), 1, |k| force(targets[k])))
    }

    fn forces(
        &self,
        frame: &Frame,
        targets: Targets<'_>,
        asked: HighestDerivative,
    ) -> Result<Vec<Forces>, ForceError> {
        let mut forces = self.pair_forces(frame, targets, asked)?;
        if self.state.external.is_none() {
            return Ok(forces);
        }
        let relativity = match self.relativity() {
            None => None,
            Some(term) => {
                let of_centre = self.pair_forces(frame, Targets::Active(&[term.body]), asked)?;
                let pairs = of_centre[0].derivatives;
                Some((term, self.whole(term.body, pairs, order(asked), None)))
            }
        };
        let indices = targets.indices(self.state.bodies.len());
        parallel::change(&mut forces, 1, |k, force| {
            force.derivatives = self.whole(indices[k], force.derivatives, order(asked), relativity);
        });
        Ok(forces)
    }

    fn accelerate_all(&mut self) -> Result<(), ForceError> {
        let forces = self.forces(&self.frame(), Targets::All, HighestDerivative::None)?;
        self.state.accelerations = forces.iter().map(|force| force.derivatives[0]).collect();
        Ok(())
    }

    fn potential_energy(&self) -> Result<f64, ForceError> {
        Ok(potential_energy(&self.state.bodies, &self.physics))
    }

    fn energy_in_fields(&self) -> f64 {
        let (state, relativity) = (&self.state, self.relativity());
        let of_body = |(i, &mass): (usize, &f64)| {
            let (x, v) = state.phase(i);
            let in_fields = fields::energy(&state.external, self.physics.g, [x, v]);
            let term = relativity.filter(|term| term.body != i).map(|term| {
                let [x, v] = state.relative_phase(i, term.body);
                term.energy(x, v)
            });
            self.physics.weight(mass) * (in_fields + term.unwrap_or_default())
        };
        let bodies = state.bodies.mass.iter().enumerate();
        bodies.map(of_body).collect::<CompensatedSum>().value()
    }
}
