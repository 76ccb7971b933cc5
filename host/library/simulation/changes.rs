//! Changes of a simulation from outside, between two steps: kicks, new values, bodies that come and go.

use std::collections::HashMap;

use super::anew::Anew;
use super::{BuildError, Simulation};
use crate::backend::ForceError;
use crate::bodies::{Bodies, Body, BodyFault};
use crate::diagnostics::Brought;
use crate::encounters::EncounterFault;
use crate::physics::ForceLaw;
use crate::vectors::axes;

/// New values of some bodies, one for each in the order of their ids; values that are left out stay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NewValues<'a> {
    /// Masses.
    pub masses: Option<&'a [f64]>,
    /// Positions.
    pub positions: Option<&'a [[f64; 3]]>,
    /// Velocities.
    pub velocities: Option<&'a [[f64; 3]]>,
    /// Radii.
    pub radii: Option<&'a [f64]>,
}

/// Change of a simulation that cannot be made. The simulation stands as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// Another number of values than of bodies.
    #[error("there are {given} {values} for {bodies} bodies: give one for each")]
    Number {
        /// Name of the values.
        values: &'static str,
        /// How many were given.
        given: usize,
        /// Number of bodies that they are for.
        bodies: usize,
    },
    /// An id that no body has.
    #[error("no body has the id {0}")]
    UnknownId(u64),
    /// An id that was given twice.
    #[error("the id {0} was given twice")]
    GivenTwice(u64),
    /// An id that several bodies have.
    #[error("several bodies have the id {0}: give each another id before the simulation")]
    Ambiguous(u64),
    /// An id of a new body that another body has.
    #[error("another body has the id {0} already: give new bodies new ids")]
    IdTaken(u64),
    /// A value that is not a finite number.
    #[error("{values} of the body with the id {id}: {value} is not a finite number")]
    NotFinite {
        /// Name of the values.
        values: &'static str,
        /// Id of the body.
        id: u64,
        /// The value.
        value: f64,
    },
    /// A mass below zero.
    #[error("masses of the body with the id {id}: {mass:?} is negative")]
    NegativeMass {
        /// Id of the body.
        id: u64,
        /// The mass.
        mass: f64,
    },
    /// New bodies with a fault.
    #[error("new bodies: {0}")]
    Bodies(#[from] BodyFault),
    /// Two bodies at one place, where the force is not softened.
    #[error(
        "the bodies with the ids {0} and {1} would be at the same place, and the softening is 0: move one of them"
    )]
    SamePlace(u64, u64),
    /// Two bodies that would overlap.
    #[error(
        "the bodies with the ids {0} and {1} would overlap: their distance is {2}, less than the sum of their radii"
    )]
    Overlap(u64, u64, f64),
    /// No body would be left.
    #[error("no body would be left")]
    NoneLeft,
    /// Radii in a simulation that looks for no encounters.
    #[error(
        "there are radii, and the simulation looks for no encounters: begin it with radii, of 0 where bodies \
         have none"
    )]
    NoEncounters,
    /// Another number of bodies in independent systems.
    #[error(
        "bodies are neither added to independent systems nor removed from them: all have as many bodies"
    )]
    Systems,
    /// A body without mass where pairs and multiples are followed apart.
    #[error(
        "the body with the id {0} would have no mass, and groups need bodies with mass: begin the simulation \
         with `groups` false"
    )]
    MasslessInGroups(u64),
    /// Another body in the place of the body of the field 1pn.
    #[error(
        "the field 1pn is of the body with the id {0}, and the change would remove it or give it another place in \
         the order of bodies: begin another simulation"
    )]
    OtherDominant(u64),
    /// A simulation that does not know how to make a backend of other bodies, because [`Simulation::remade_by`] has not told it.
    #[error(
        "bodies do not change in a simulation that was given its forces ready-made: have the simulation make its \
         forces itself"
    )]
    FixedBodies,
    /// A force that knows the direction of time.
    #[error("the simulation cannot go back in time: {0}")]
    NoWayBack(&'static str),
    /// Radii that make no sense, or bodies that overlap or have escaped.
    #[error(transparent)]
    Encounters(#[from] EncounterFault),
    /// The backend's error.
    #[error(transparent)]
    Force(#[from] ForceError),
    /// A variant or device that cannot compute the changed bodies.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Bodies as a change leaves them.
pub(super) struct Changed {
    pub(super) bodies: Bodies,
    /// Index that each had before; none of a new body.
    pub(super) before: Vec<Option<usize>>,
    /// True for bodies with another mass or position, and new bodies.
    pub(super) placed: Vec<bool>,
    /// True for bodies with another velocity.
    pub(super) kicked: Vec<bool>,
    /// A radius for each, if encounters are looked for.
    pub(super) radii: Option<Vec<f64>>,
}

impl Changed {
    /// Gives a body another mass.
    pub(super) fn set_mass(&mut self, i: usize, mass: f64) -> Result<(), ChangeError> {
        let id = self.bodies.id[i];
        finite("masses", id, &[mass])?;
        if mass < 0.0 {
            return Err(ChangeError::NegativeMass { id, mass });
        }
        self.placed[i] |= self.bodies.mass[i] != mass;
        self.bodies.mass[i] = mass;
        Ok(())
    }

    fn set_position(&mut self, i: usize, position: [f64; 3]) -> Result<(), ChangeError> {
        finite("positions", self.bodies.id[i], &position)?;
        let Bodies { x, y, z, .. } = &mut self.bodies;
        self.placed[i] |= set([x, y, z], i, position);
        Ok(())
    }

    pub(super) fn set_velocity(&mut self, i: usize, velocity: [f64; 3]) -> Result<(), ChangeError> {
        finite("velocities", self.bodies.id[i], &velocity)?;
        let Bodies { vx, vy, vz, .. } = &mut self.bodies;
        self.kicked[i] |= set([vx, vy, vz], i, velocity);
        Ok(())
    }

    /// Adds to the velocity of a body.
    pub(super) fn kick(&mut self, i: usize, more: [f64; 3]) -> Result<(), ChangeError> {
        let Body { velocity, .. } = self.bodies.body(i);
        self.set_velocity(i, axes(|k| velocity[k] + more[k]))
    }

    /// Takes bodies out; the others keep their order.
    pub(super) fn remove(&mut self, indices: &[usize]) {
        let n = self.bodies.len();
        let mut stays = vec![true; n];
        indices.iter().for_each(|&i| stays[i] = false);
        let left: Vec<usize> = (0..n).filter(|&i| stays[i]).collect();
        self.bodies = left.iter().map(|&i| self.bodies.body(i)).collect();
        self.before = left.iter().map(|&i| self.before[i]).collect();
        self.placed = left.iter().map(|&i| self.placed[i]).collect();
        self.kicked = left.iter().map(|&i| self.kicked[i]).collect();
        if let Some(radii) = &mut self.radii {
            *radii = left.iter().map(|&i| radii[i]).collect();
        }
    }

    /// Returns whether nothing but velocities is other than before, when this was the number of bodies.
    pub(super) fn is_kick(&self, bodies: usize) -> bool {
        self.before.len() == bodies && !self.placed.contains(&true)
    }
}

impl Simulation {
    /// Adds to the velocity of each body, at the present time, as a bridge to another code does.
    ///
    /// This costs one evaluation of the forces. Bodies keep their block time steps, unless the kick makes an
    /// acceleration change much faster or slower than before. Energy and momenta that it brings are
    /// [booked](Self::brought), and do not count as errors of the run.
    ///
    /// ```
    /// use allpairs::{Simulation, plummer};
    ///
    /// let mut cluster = Simulation::builder(plummer(100, 1)?).softening(0.05).dt(0.01).build()?;
    /// cluster.run_until(0.1)?;
    /// cluster.kick(&vec![[0.5, 0.0, 0.0]; 100])?;
    /// cluster.run_until(0.2)?;
    /// assert!((cluster.brought().momentum[0] - 0.5).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Every [`ChangeError`] leaves the simulation as it was.
    pub fn kick(&mut self, velocities: &[[f64; 3]]) -> Result<(), ChangeError> {
        let n = self.bodies.len();
        counted("velocities", velocities.len(), n)?;
        self.kick_each(&(0..n).collect::<Vec<_>>(), velocities)
    }

    /// Adds to the velocities of some bodies: see [`kick`](Self::kick).
    ///
    /// # Errors
    /// Every [`ChangeError`] leaves the simulation as it was.
    pub fn kick_some(&mut self, ids: &[u64], velocities: &[[f64; 3]]) -> Result<(), ChangeError> {
        counted("velocities", velocities.len(), ids.len())?;
        let indices = self.indices(ids)?;
        self.kick_each(&indices, velocities)
    }

    fn kick_each(&mut self, indices: &[usize], more: &[[f64; 3]]) -> Result<(), ChangeError> {
        self.backend.download(&mut self.bodies)?;
        let mut changed = self.unchanged();
        for (&i, &more) in indices.iter().zip(more) {
            changed.kick(i, more)?;
        }
        self.change(changed)
    }

    /// Gives some bodies other masses, positions, velocities or radii, at the present time.
    ///
    /// Forces are evaluated anew. A body with another mass or position begins with a new block time step. So does each
    /// body with an acceleration that changes much, and all others keep their steps. Energy, mass and momenta
    /// that the change brings are [booked](Self::brought).
    ///
    /// # Errors
    /// Every [`ChangeError`] leaves the simulation as it was.
    pub fn set(&mut self, ids: &[u64], to: NewValues<'_>) -> Result<(), ChangeError> {
        let indices = self.indices(ids)?;
        self.set_each(&indices, to)
    }

    fn set_each(&mut self, indices: &[usize], to: NewValues<'_>) -> Result<(), ChangeError> {
        let NewValues {
            masses,
            positions,
            velocities,
            radii,
        } = to;
        self.backend.download(&mut self.bodies)?;
        let mut changed = self.unchanged();
        if let Some(masses) = masses {
            counted("masses", masses.len(), indices.len())?;
            for (&i, &mass) in indices.iter().zip(masses) {
                changed.set_mass(i, mass)?;
            }
        }
        if let Some(positions) = positions {
            counted("positions", positions.len(), indices.len())?;
            for (&i, &position) in indices.iter().zip(positions) {
                changed.set_position(i, position)?;
            }
        }
        if let Some(velocities) = velocities {
            counted("velocities", velocities.len(), indices.len())?;
            for (&i, &velocity) in indices.iter().zip(velocities) {
                changed.set_velocity(i, velocity)?;
            }
        }
        if let Some(radii) = radii {
            counted("radii", radii.len(), indices.len())?;
            let all = changed.radii.as_mut().ok_or(ChangeError::NoEncounters)?;
            for (&i, &radius) in indices.iter().zip(radii) {
                all[i] = radius;
            }
        }
        self.change(changed)
    }

    /// Adds bodies, at the present time, behind those that there are. Where encounters are looked for, `radii` has a
    /// radius for each, or is empty if they have none.
    ///
    /// New bodies keep their ids, which no other body may have: [`free_ids`](Self::free_ids). Energy, mass and
    /// momenta that they bring are [booked](Self::brought).
    ///
    /// # Errors
    /// Every [`ChangeError`] leaves the simulation as it was.
    pub fn add(&mut self, bodies: &Bodies, radii: &[f64]) -> Result<(), ChangeError> {
        bodies.check()?;
        let (n, more) = (self.bodies.len(), bodies.len());
        if self.backend.systems() > 1 {
            return Err(ChangeError::Systems);
        }
        if !radii.is_empty() {
            counted("radii", radii.len(), more)?;
        }
        let mut taken: HashMap<u64, ()> = self.bodies.id.iter().map(|&id| (id, ())).collect();
        for &id in &bodies.id {
            if taken.insert(id, ()).is_some() {
                return Err(ChangeError::IdTaken(id));
            }
        }
        self.backend.download(&mut self.bodies)?;
        let mut of_all = self.radii_now();
        match &mut of_all {
            Some(all) => {
                all.extend(radii);
                all.resize(n + more, 0.0);
            }
            None if !radii.is_empty() => return Err(ChangeError::NoEncounters),
            None => {}
        }
        let before = (0..n).map(Some).chain((0..more).map(|_| None));
        self.change(Changed {
            bodies: self.bodies.iter().chain(bodies.iter()).collect(),
            before: before.collect(),
            placed: (0..n + more).map(|i| i >= n).collect(),
            kicked: vec![false; n + more],
            radii: of_all,
        })
    }

    /// Ids that no body has, for `count` new bodies: the next after the largest.
    ///
    /// # Panics
    /// If there are not as many ids.
    pub fn free_ids(&self, count: usize) -> Vec<u64> {
        let largest = self.bodies.id.iter().copied().max();
        let first = largest.map_or(Some(0), |largest| largest.checked_add(1));
        let ids = (0..count as u64).map(|k| first.and_then(|first| first.checked_add(k)));
        ids.map(|id| id.expect("an id after the largest")).collect()
    }

    /// Removes bodies at the present time; the others keep their ids and their order. Energy, mass and momenta that
    /// they take with them are [booked](Self::brought).
    ///
    /// # Errors
    /// Every [`ChangeError`] leaves the simulation as it was.
    pub fn remove(&mut self, ids: &[u64]) -> Result<(), ChangeError> {
        let indices = self.indices(ids)?;
        self.check_removal(&indices)?;
        self.backend.download(&mut self.bodies)?;
        let mut changed = self.unchanged();
        changed.remove(&indices);
        self.change(changed)
    }

    /// Checks that bodies may be removed.
    pub(super) fn check_removal(&self, indices: &[usize]) -> Result<(), ChangeError> {
        if self.backend.systems() > 1 {
            return Err(ChangeError::Systems);
        }
        match indices.len() == self.bodies.len() {
            true => Err(ChangeError::NoneLeft),
            false => Ok(()),
        }
    }

    /// The bodies that were downloaded last, with nothing changed.
    pub(super) fn unchanged(&self) -> Changed {
        let n = self.bodies.len();
        Changed {
            bodies: self.bodies.clone(),
            before: (0..n).map(Some).collect(),
            placed: vec![false; n],
            kicked: vec![false; n],
            radii: self.radii_now(),
        }
    }

    /// Quantities that changes from outside have brought since the simulation began.
    pub fn brought(&self) -> Brought {
        self.brought
    }

    /// Goes on from what changes had brought before the simulation was saved.
    #[must_use]
    pub fn having_brought(self, brought: Brought) -> Self {
        Self { brought, ..self }
    }

    fn radii_now(&self) -> Option<Vec<f64>> {
        let encounters = self.encounters.as_ref();
        encounters.map(|encounters| encounters.radii.clone())
    }

    /// Indices of bodies with these ids.
    pub(super) fn indices(&self, ids: &[u64]) -> Result<Vec<usize>, ChangeError> {
        let of_all = self.bodies.id.iter().enumerate();
        // Most often ids are numbers from 0 on, or from 1 on.
        let numbered = |first: u64| of_all.clone().all(|(i, &id)| id == first + i as u64);
        let n = self.bodies.len() as u64;
        let mut asked = vec![false; n as usize];
        let mut once = |i: usize| match std::mem::replace(&mut asked[i], true) {
            true => Err(ChangeError::GivenTwice(self.bodies.id[i])),
            false => Ok(i),
        };
        for first in [0, 1] {
            if numbered(first) {
                let index = |&id: &u64| match id.checked_sub(first) {
                    Some(index) if index < n => once(index as usize),
                    _ => Err(ChangeError::UnknownId(id)),
                };
                return ids.iter().map(index).collect();
            }
        }
        let mut found: HashMap<u64, Result<usize, ()>> = HashMap::with_capacity(n as usize);
        for (i, &id) in of_all {
            found
                .entry(id)
                .and_modify(|other| *other = Err(()))
                .or_insert(Ok(i));
        }
        let index = |id: &u64| match found.get(id) {
            Some(Ok(index)) => once(*index),
            Some(Err(())) => Err(ChangeError::Ambiguous(*id)),
            None => Err(ChangeError::UnknownId(*id)),
        };
        ids.iter().map(index).collect()
    }

    /// Makes a change, if it can be made.
    pub(super) fn change(&mut self, changed: Changed) -> Result<(), ChangeError> {
        self.check_change(&changed)?;
        let is_same = !changed.placed.contains(&true)
            && !changed.kicked.contains(&true)
            && changed.before.len() == self.bodies.len();
        if is_same {
            return Ok(self.have_radii(changed.radii)?);
        }
        Anew::begin(self)?.change(&changed)
    }

    /// Checks that a change makes sense; the backend judges the rest.
    fn check_change(&self, changed: &Changed) -> Result<(), ChangeError> {
        let Changed {
            bodies,
            placed,
            radii,
            ..
        } = changed;
        if self.remake.is_none() {
            return Err(ChangeError::FixedBodies);
        }
        if let Some(body) = self.dominant() {
            let id = self.bodies.id[body];
            if bodies.id.get(body) != Some(&id) {
                return Err(ChangeError::OtherDominant(id));
            }
        }
        if self.physics.law != ForceLaw::Unit && self.physics.softening == 0.0 {
            apart(bodies, placed, self.backend.systems())?;
        }
        if let (Some(encounters), Some(radii)) = (&self.encounters, radii) {
            let of_body = |i: usize| {
                let before = changed.before[i].map(|before| encounters.radii[before]);
                placed[i] || before != Some(radii[i])
            };
            let some: Vec<bool> = (0..bodies.len()).map(of_body).collect();
            let mut encounters = encounters.clone();
            encounters.radii.clone_from(radii);
            encounters
                .check_some(bodies, &some)
                .map_err(|fault| match fault {
                    EncounterFault::Overlap(i, j, distance) => {
                        let [one, other] = [i, j].map(|i| bodies.id[i]);
                        ChangeError::Overlap(one, other, distance)
                    }
                    fault => fault.into(),
                })?;
        }
        Ok(())
    }
}

/// Checks that bodies which were placed are where no other body is, if one of the two has mass.
fn apart(bodies: &Bodies, placed: &[bool], systems: usize) -> Result<(), ChangeError> {
    let each = bodies.len() / systems.max(1);
    let place = |i: usize| {
        let at = [bodies.x[i], bodies.y[i], bodies.z[i]];
        (i / each.max(1), at.map(|x| (x + 0.0).to_bits())) // −0 is 0
    };
    let those = (0..bodies.len()).filter(|&i| placed[i]);
    let mut there: HashMap<_, Vec<usize>> = HashMap::new();
    for i in those {
        there.entry(place(i)).or_default().push(i);
    }
    if there.is_empty() {
        return Ok(());
    }
    for i in 0..bodies.len() {
        let others = there.get(&place(i)).into_iter().flatten();
        let meets =
            |&&other: &&usize| other != i && (bodies.mass[i] != 0.0 || bodies.mass[other] != 0.0);
        if let Some(&other) = others.clone().find(meets) {
            return Err(ChangeError::SamePlace(bodies.id[i], bodies.id[other]));
        }
    }
    Ok(())
}

/// Sets the components of a vector. Returns whether one is other than before.
fn set(columns: [&mut Vec<f64>; 3], i: usize, to: [f64; 3]) -> bool {
    let mut is_other = false;
    for (column, value) in columns.into_iter().zip(to) {
        is_other |= column[i] != value;
        column[i] = value;
    }
    is_other
}

fn counted(values: &'static str, given: usize, bodies: usize) -> Result<(), ChangeError> {
    match given == bodies {
        true => Ok(()),
        false => Err(ChangeError::Number {
            values,
            given,
            bodies,
        }),
    }
}

fn finite(values: &'static str, id: u64, of_body: &[f64]) -> Result<(), ChangeError> {
    match of_body.iter().copied().find(|value| !value.is_finite()) {
        None => Ok(()),
        Some(value) => Err(ChangeError::NotFinite { values, id, value }),
    }
}

#[cfg(test)]
mod tests;
