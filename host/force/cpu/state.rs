//! Bodies and accelerations of a backend that lives in host memory.

use crate::bodies::Bodies;

/// f64 state, and the accelerations last computed for it.
#[derive(Clone, Debug)]
pub(in crate::force) struct HostState {
    pub(in crate::force) bodies: Bodies,
    pub(in crate::force) accelerations: Vec<[f64; 3]>,
}

impl HostState {
    pub(in crate::force) fn new(bodies: &Bodies) -> Self {
        Self {
            bodies: bodies.clone(),
            accelerations: vec![[0.0; 3]; bodies.len()],
        }
    }

    /// `v += dt · a`
    pub(in crate::force) fn kick(&mut self, dt: f64) {
        let Bodies { vx, vy, vz, .. } = &mut self.bodies;
        for (axis, velocities) in [vx, vy, vz].into_iter().enumerate() {
            for (velocity, acceleration) in velocities.iter_mut().zip(&self.accelerations) {
                *velocity += dt * acceleration[axis];
            }
        }
    }

    /// `x += dt · v`
    pub(in crate::force) fn drift(&mut self, dt: f64) {
        let Bodies {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            ..
        } = &mut self.bodies;
        for (positions, velocities) in [(x, vx), (y, vy), (z, vz)] {
            for (position, velocity) in positions.iter_mut().zip(velocities) {
                *position += dt * *velocity;
            }
        }
    }

    /// Copies positions and velocities out; masses, ids and kinds never change here.
    pub(in crate::force) fn download(&self, bodies: &mut Bodies) {
        bodies.x.clone_from(&self.bodies.x);
        bodies.y.clone_from(&self.bodies.y);
        bodies.z.clone_from(&self.bodies.z);
        bodies.vx.clone_from(&self.bodies.vx);
        bodies.vy.clone_from(&self.bodies.vy);
        bodies.vz.clone_from(&self.bodies.vz);
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::cloud;
    use super::*;

    #[test]
    fn kick_and_drift_add_to_what_is_there() {
        let start = cloud(3, 1);
        let mut state = HostState::new(&start);
        state.accelerations[1] = [1.0, -2.0, 4.0];
        state.kick(0.5);
        state.drift(0.25);
        let mut now = start.clone();
        state.download(&mut now);
        assert_eq!(now.vx[1], start.vx[1] + 0.5);
        assert_eq!(now.vy[1], start.vy[1] - 1.0);
        assert_eq!(now.vz[1], start.vz[1] + 2.0);
        assert_eq!(now.vx[0], start.vx[0]);
        assert_eq!(now.z[1], start.z[1] + 0.25 * now.vz[1]);
        assert_eq!((now.mass, now.id), (start.mass, start.id));
    }
}
