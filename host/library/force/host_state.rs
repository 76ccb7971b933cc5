//! Bodies and accelerations of a backend that lives in host memory.

use std::borrow::Cow;

use super::hermite_order::Order;
use crate::backend::{Column, ForceError, Neighbours, SavedState, Sphere};
use crate::bodies::Bodies;
use crate::encounters::{Paths, StepOfBody};
use crate::fields::External;
use crate::frame::Frame;
use crate::groups::Groups;
use crate::vectors::axes;
use gpu_kernels::schedule::block_steps::SPAN;

/// State that a body's step began from.
pub(super) type Beginning = gpu_kernels::hermite6::Beginning<f64>;

/// Position and velocity of each group as a whole.
type Wholes = Vec<[[f64; 3]; 2]>;

/// Paths that are kept, for bodies that may meet.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Radii of all bodies.
    pub(super) radii: Vec<f64>,
    pub(super) paths: Paths,
}

/// f64 state, and the accelerations and jerks last computed for it.
#[derive(Clone, Debug)]
pub(super) struct HostState {
    pub(super) bodies: Bodies,
    pub(super) accelerations: Vec<[f64; 3]>,
    /// Empty until they are needed.
    pub(super) jerks: Vec<[f64; 3]>,
    /// Snaps and crackles of sixth order; empty where the scheme is of fourth.
    pub(super) higher: Vec<[[f64; 3]; 2]>,
    /// Of the step that is under way, or of the last.
    pub(super) beginnings: Vec<Beginning>,
    /// The steps that block time steps allow each body next; empty where there are none.
    pub(super) own_steps: Vec<f64>,
    /// Number of neighbours, in a neighbour scheme.
    pub(super) neighbours: Option<usize>,
    /// [`SavedState::spheres`]
    pub(super) spheres: Vec<Sphere>,
    /// Paths of the span that is under way, or of the last; where they are kept.
    pub(super) kept: Option<Kept>,
    /// Pairs and multiples that are followed apart, if any may be.
    pub(super) groups: Option<Box<Groups>>,
    /// External fields, at the time of the state.
    pub(super) external: External,
}

impl HostState {
    pub(super) fn new(bodies: &Bodies) -> Self {
        Self {
            bodies: bodies.clone(),
            accelerations: vec![[0.0; 3]; bodies.len()],
            jerks: vec![],
            higher: vec![],
            beginnings: vec![],
            own_steps: vec![],
            neighbours: None,
            spheres: vec![],
            kept: None,
            groups: None,
            external: External::none(),
        }
    }

    /// Has a neighbour scheme, if one is asked for.
    pub(super) fn have_neighbours(&mut self, neighbours: Option<Neighbours>) {
        self.neighbours = neighbours.map(|wanted| wanted.number(self.bodies.len()));
    }

    /// Moves the time of external fields on.
    pub(super) fn pass(&mut self, dt: f64) {
        self.external.set_time(self.external.time() + dt);
    }

    /// Order of the steps.
    pub(super) const fn order(&self) -> Order {
        match self.higher.is_empty() {
            true => Order::Fourth,
            false => Order::Sixth,
        }
    }

    /// Position and velocity where the step of a body began.
    pub(super) fn begun_from(&self, body: usize) -> [[f64; 3]; 2] {
        let Beginning { x, v, .. } = self.beginnings[body];
        [x, v]
    }

    /// Begins a step of a body in a span, from the state and the forces that are given.
    pub(super) fn begin_at(&mut self, body: usize, beginning: Beginning) {
        let Beginning { a, j, s, c, .. } = beginning;
        (self.accelerations[body], self.jerks[body]) = (a, j);
        if let Some(higher) = self.higher.get_mut(body) {
            *higher = [s, c];
        }
        self.beginnings[body] = beginning;
    }

    /// Shows bodies where their steps begin, with the forces there.
    pub(super) fn show_beginnings(&mut self, bodies: &[usize]) {
        for &body in bodies {
            let beginning = self.beginnings[body];
            self.set_phase(body, beginning.x, beginning.v);
            self.begin_at(body, beginning);
        }
    }

    /// Has other forces on a body where its step begins.
    pub(super) fn begin_with(&mut self, body: usize, [a, j, s]: [[f64; 3]; 3]) {
        let beginning = self.beginnings[body];
        self.begin_at(
            body,
            Beginning {
                a,
                j,
                s,
                ..beginning
            },
        );
    }

    /// Keeps a block time step of a body, if paths are kept: the ticks of the span, and the positions and velocities, where
    /// it began and ended.
    pub(super) fn keep_step(
        &mut self,
        body: usize,
        ticks: [u64; 2],
        [from, to]: [[[f64; 3]; 2]; 2],
    ) {
        if let Some(kept) = &mut self.kept {
            kept.paths.steps.push(StepOfBody {
                body,
                shares: ticks.map(|tick| tick as f64 / SPAN as f64),
                from,
                to,
            });
        }
    }

    /// Keeps the state, and the accelerations of it with their derivatives, as the beginning of a step.
    pub(super) fn begin(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.paths = Paths::default();
        }
        let beginnings = (0..self.bodies.len()).map(|i| {
            let (x, v) = self.phase(i);
            let (a, j) = (self.accelerations[i], self.jerks[i]);
            let [s, c] = self.higher.get(i).copied().unwrap_or_default();
            Beginning { x, v, a, j, s, c }
        });
        self.beginnings = beginnings.collect();
    }

    /// `v += dt · a`
    pub(super) fn kick(&mut self, dt: f64) {
        let Bodies { vx, vy, vz, .. } = &mut self.bodies;
        for (axis, velocities) in [vx, vy, vz].into_iter().enumerate() {
            for (velocity, acceleration) in velocities.iter_mut().zip(&self.accelerations) {
                *velocity += dt * acceleration[axis];
            }
        }
    }

    /// `x += dt · v`
    pub(super) fn drift(&mut self, dt: f64) {
        self.pass(dt);
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

    /// `v *= factor`
    pub(super) fn damp(&mut self, factor: f64) {
        let Bodies { vx, vy, vz, .. } = &mut self.bodies;
        for velocity in [vx, vy, vz].into_iter().flatten() {
            *velocity *= factor;
        }
    }

    /// Position and velocity of body i.
    pub(super) fn phase(&self, i: usize) -> ([f64; 3], [f64; 3]) {
        let b = &self.bodies;
        ([b.x[i], b.y[i], b.z[i]], [b.vx[i], b.vy[i], b.vz[i]])
    }

    /// Position and velocity of body i, relative to body j.
    pub(super) fn relative_phase(&self, i: usize, j: usize) -> [[f64; 3]; 2] {
        let ((x, v), (x0, v0)) = (self.phase(i), self.phase(j));
        [
            axes(|axis| x[axis] - x0[axis]),
            axes(|axis| v[axis] - v0[axis]),
        ]
    }

    /// Moves body i.
    pub(super) fn set_phase(&mut self, i: usize, x: [f64; 3], v: [f64; 3]) {
        let b = &mut self.bodies;
        [b.x[i], b.y[i], b.z[i]] = x;
        [b.vx[i], b.vy[i], b.vz[i]] = v;
    }

    pub(super) fn save(&self) -> SavedState {
        let mut all: Vec<_> = (0..self.bodies.len()).map(|i| self.phase(i)).collect();
        for (i, [x, v]) in self.members() {
            all[i] = (x, v);
        }
        let phases = || all.iter().copied();
        let mut saved = SavedState::of(Frame::IDENTITY, |column| match column {
            Column::Positions => phases().flat_map(|(x, _)| x).collect(),
            Column::Velocities => phases().flat_map(|(_, v)| v).collect(),
            Column::Accelerations => self.accelerations.as_flattened().to_vec(),
            Column::Jerks => self.jerks.as_flattened().to_vec(),
            Column::Higher => self.higher.as_flattened().as_flattened().to_vec(),
            Column::OwnSteps => self.own_steps.clone(),
            Column::Spheres => bytemuck::cast_slice(&self.spheres).to_vec(),
        });
        if let Some(groups) = &self.groups {
            saved.groups = groups.numbers(|slot| self.phase(slot));
        }
        saved
    }

    pub(super) fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        let has_neighbours = self.neighbours.is_some();
        match &self.groups {
            None => saved.fits(self.bodies.len(), &Frame::IDENTITY, has_neighbours)?,
            Some(_) => saved.columns_fit(self.bodies.len(), &Frame::IDENTITY, has_neighbours)?,
        }
        if has_neighbours && saved.has(Column::Spheres) != saved.has(Column::OwnSteps) {
            return Err(ForceError::OtherState(
                "it is of a run without a neighbour scheme",
            ));
        }
        let groups = self.groups_of(saved)?;
        let phases = saved.positions().iter().zip(saved.velocities());
        for (i, (&x, &v)) in phases.enumerate() {
            self.set_phase(i, x, v);
        }
        self.accelerations = saved.accelerations().to_vec();
        self.jerks = saved.jerks().to_vec();
        self.higher = saved.higher().to_vec();
        self.own_steps = saved.own_steps().to_vec();
        self.spheres = saved.spheres().to_vec();
        if let Some((groups, wholes)) = groups {
            self.bodies.mass.clone_from(&groups.masses);
            for (group, [x, v]) in groups.all.iter().zip(wholes) {
                let total = group.members.iter().map(|&i| groups.masses[i]).sum();
                for &i in &group.members {
                    self.bodies.mass[i] = if i == group.slot { total } else { 0.0 };
                    self.set_phase(i, x, v);
                }
            }
            self.groups = Some(Box::new(groups));
        }
        Ok(())
    }

    /// The groups of a saved state, and where each is as a whole; none where there are no groups here.
    fn groups_of(&self, saved: &SavedState) -> Result<Option<(Groups, Wholes)>, ForceError> {
        let Some(groups) = &self.groups else {
            return Ok(None);
        };
        let read = Groups::of_numbers(&saved.groups, groups.masses.clone(), groups.coupling);
        let missing = ForceError::OtherState("it is of a run without regularised groups");
        read.ok_or(missing).map(Some)
    }

    /// The bodies, with the members of groups where they are.
    pub(super) fn with_members(&self) -> Cow<'_, Bodies> {
        let Some(groups) = &self.groups else {
            return Cow::Borrowed(&self.bodies);
        };
        let mut bodies = Bodies {
            mass: groups.masses.clone(),
            ..self.bodies.clone()
        };
        self.download(&mut bodies);
        Cow::Owned(bodies)
    }

    /// Copies positions and velocities out; masses, ids and kinds of bodies never change.
    pub(super) fn download(&self, bodies: &mut Bodies) {
        bodies.x.clone_from(&self.bodies.x);
        bodies.y.clone_from(&self.bodies.y);
        bodies.z.clone_from(&self.bodies.z);
        bodies.vx.clone_from(&self.bodies.vx);
        bodies.vy.clone_from(&self.bodies.vy);
        bodies.vz.clone_from(&self.bodies.vz);
        for (i, [x, v]) in self.members() {
            [bodies.x[i], bodies.y[i], bodies.z[i]] = x;
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] = v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::cpu::samples::cloud;

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
