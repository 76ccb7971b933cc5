//! The state of a backend, which checkpoints hold and ranks exchange.

use std::ops::Range;

use super::ForceError;
use crate::frame::Frame;

/// The state of a backend, as [`Backend::save`](super::Backend::save) gives it: vectors in the units of `frame`, where
/// f32 numbers are f64 numbers without loss.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedState {
    /// Origin and units of the vectors.
    pub frame: Frame,
    /// One for each body.
    pub positions: Vec<[f64; 3]>,
    /// One for each body.
    pub velocities: Vec<[f64; 3]>,
    /// Accelerations computed last; one per body.
    pub accelerations: Vec<[f64; 3]>,
    /// Jerks computed last, one per body; empty where there are none.
    pub jerks: Vec<[f64; 3]>,
    /// Snaps computed last and crackles of the last steps, one of each per body; empty where there are
    /// none.
    pub higher: Vec<[[f64; 3]; 2]>,
    /// The steps that [block time steps](super::BlockSteps) allow each body next, in the units of the run;
    /// empty where there are none.
    pub own_steps: Vec<f64>,
    /// One for each body in a [neighbour scheme](super::Neighbours); empty where there is none.
    pub spheres: Vec<Sphere>,
}

/// Neighbour sphere of a body, in the units of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sphere {
    /// Radius; infinite where all bodies are neighbours.
    pub radius: f64,
    /// The step that the regular force, that of the bodies outside, allows next.
    pub regular_step: f64,
}

impl SavedState {
    /// The state of some of the bodies.
    pub(crate) fn part(&self, bodies: Range<usize>) -> Self {
        /// Empty if there is nothing.
        fn part<T: Copy>(all: &[T], bodies: &Range<usize>) -> Vec<T> {
            all.get(bodies.clone()).unwrap_or_default().to_vec()
        }
        Self {
            frame: self.frame,
            positions: part(&self.positions, &bodies),
            velocities: part(&self.velocities, &bodies),
            accelerations: part(&self.accelerations, &bodies),
            jerks: part(&self.jerks, &bodies),
            higher: part(&self.higher, &bodies),
            own_steps: part(&self.own_steps, &bodies),
            spheres: part(&self.spheres, &bodies),
        }
    }

    /// Adds the state of more bodies.
    ///
    /// # Panics
    /// If it is in another frame.
    pub(crate) fn append(&mut self, more: Self) {
        assert_eq!(more.frame, self.frame, "in the same units");
        self.positions.extend(more.positions);
        self.velocities.extend(more.velocities);
        self.accelerations.extend(more.accelerations);
        self.jerks.extend(more.jerks);
        self.higher.extend(more.higher);
        self.own_steps.extend(more.own_steps);
        self.spheres.extend(more.spheres);
    }

    /// Checks that it can be the state of so many bodies in a frame.
    ///
    /// # Errors
    /// [`ForceError::OtherState`] says what differs.
    pub(crate) fn fits(&self, bodies: usize, frame: &Frame) -> Result<(), ForceError> {
        match self.spheres.is_empty() {
            true => self.fits_with_neighbours(bodies, frame),
            false => Err(ForceError::OtherState(
                "it is of a run with a neighbour scheme",
            )),
        }
    }

    /// As [`fits`](Self::fits), where it may be of a neighbour scheme.
    ///
    /// # Errors
    /// As [`fits`](Self::fits).
    pub(crate) fn fits_with_neighbours(
        &self,
        bodies: usize,
        frame: &Frame,
    ) -> Result<(), ForceError> {
        let of_all = |length: usize| length == bodies;
        let if_any = |length: usize| length == 0 || length == bodies;
        let complete = of_all(self.positions.len())
            && of_all(self.velocities.len())
            && of_all(self.accelerations.len())
            && if_any(self.jerks.len())
            && if_any(self.higher.len())
            && if_any(self.own_steps.len())
            && if_any(self.spheres.len());
        match complete {
            false => Err(ForceError::OtherState("it is of another number of bodies")),
            true if self.frame != *frame => Err(ForceError::OtherState(
                "its vectors are in other units; it is of another kernel, or was changed",
            )),
            true => Ok(()),
        }
    }
}
