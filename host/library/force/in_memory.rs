//! Backends whose bodies lie in host memory: what they do alike, which is all but the forces.

use super::host_state::HostState;
use crate::backend::{Backend, BlockSteps, Derivatives, ForceError, Hermite, SavedState, Targets};
use crate::bodies::Bodies;
use crate::diagnostics::{Energy, kinetic};
use crate::frame::Frame;
use crate::physics::Physics;

/// Force on a body.
#[derive(Clone, Copy, Debug, Default)]
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

    /// Computes the accelerations of the current positions, into the state.
    fn pull(&mut self);

    /// Units and origin to compute in, of the current state; those of a state shortly before serve as
    /// well.
    fn frame(&self) -> Frame;

    /// Accelerations of the targets and their derivatives, by the current positions and velocities of
    /// all bodies, and for snaps by the accelerations that the state has.
    fn forces(&self, frame: &Frame, targets: Targets<'_>, derivatives: Derivatives) -> Vec<Forces>;

    /// `−G Σ_{i<j} m_i m_j / d` of the current positions.
    fn potential_energy(&self) -> f64;
}

impl<B: InMemory> Backend for B {
    fn accelerate(&mut self) -> Result<(), ForceError> {
        self.pull();
        Ok(())
    }

    fn kick(&mut self, dt: f64) -> Result<(), ForceError> {
        self.state_mut().kick(dt);
        Ok(())
    }

    fn drift(&mut self, dt: f64) -> Result<(), ForceError> {
        self.state_mut().drift(dt);
        Ok(())
    }

    fn damp(&mut self, factor: f64) -> Result<(), ForceError> {
        self.state_mut().damp(factor);
        Ok(())
    }

    fn hermite(&mut self) -> Option<&mut dyn Hermite> {
        Some(self)
    }

    fn block_steps(&mut self) -> Option<&mut dyn BlockSteps> {
        Some(self)
    }

    fn save(&mut self) -> Result<SavedState, ForceError> {
        Ok(self.state().save())
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        self.state_mut().restore(saved)
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        self.state().download(bodies);
        Ok(())
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        Ok(self.state().accelerations.clone())
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        Ok(Energy {
            kinetic: kinetic(&self.state().bodies, self.physics()),
            potential: self.potential_energy(),
        })
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        Ok(())
    }
}
