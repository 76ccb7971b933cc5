//! A change of the bodies between two steps: a backend of the changed bodies takes the place of the one before, with
//! the block time steps that bodies had.

use super::changes::{ChangeError, Changed};
use super::step::{check_step, reach, shortest_step};
use super::{Clock, Renumbered, Simulation};
use crate::backend::{Backend, Column, ForceError, SavedState, block_steps};
use crate::bodies::Bodies;
use crate::diagnostics::{Conserved, Energy, kinetic};
use crate::encounters::{EncounterFault, Encounters};
use crate::fields::External;
use crate::frame::Frame;
use crate::integrator::{Pace, TimeSteps};
use crate::vectors::{difference, dot};

/// Change of an acceleration, relative to it, from which on a body begins with a new step.
const OTHER_ACCELERATION: f64 = 0.1;

/// Relative change of an acceleration in a step, by another jerk, from which on the body begins with a new step.
const OTHER_JERK: f64 = 0.02;

/// Ratio of a unit to the unit that suits the bodies best, up to which a frame is kept.
const OTHER_UNIT: f64 = 4.0;

/// A change that is being made, and what the simulation was before.
pub(super) struct Anew<'a> {
    simulation: &'a mut Simulation,
    saved: SavedState,
    bodies: Bodies,
    encounters: Option<Encounters>,
    clock: Clock,
}

impl<'a> Anew<'a> {
    /// Begins a change of a simulation with bodies that were just downloaded.
    pub(super) fn begin(simulation: &'a mut Simulation) -> Result<Self, ForceError> {
        Ok(Self {
            saved: simulation.backend.save()?,
            bodies: simulation.bodies.clone(),
            encounters: simulation.encounters.clone(),
            clock: simulation.clock,
            simulation,
        })
    }

    /// Makes the change, or leaves the simulation as it was.
    pub(super) fn change(mut self, changed: &Changed) -> Result<(), ChangeError> {
        let massless = changed.bodies.mass.iter().position(|&mass| mass == 0.0);
        if let Some(i) = massless.filter(|_| !self.saved.groups.is_empty()) {
            return Err(ChangeError::MasslessInGroups(changed.bodies.id[i]));
        }
        let is_kick = changed.is_kick(self.bodies.len()) && self.kicks_leave_potentials();
        let before = self.measure(is_kick)?;
        let has_ranks = self.simulation.backend.has_ranks();
        let suitable = Frame::of(&changed.bodies, &self.simulation.physics);
        let frame = Some(self.saved.frame).filter(|frame| serves(frame, &suitable));
        let backend = match self.simulation.make(&changed.bodies, frame) {
            Ok(backend) => backend,
            Err(error) => {
                if has_ranks {
                    self.make_again()?; // the other ranks have given up what they had
                }
                return Err(error.into());
            }
        };
        let old = std::mem::replace(&mut self.simulation.backend, backend);
        match self.go_on(changed, is_kick) {
            Ok(after) => {
                let masses = [&self.bodies, &changed.bodies].map(Bodies::total_mass);
                let simulation = self.simulation;
                simulation.brought.add([&before, &after], masses);
                simulation.changes += 1;
                let renumbered = renumbered(changed, self.bodies.len());
                simulation.found.renumbered.extend(renumbered);
                Ok(())
            }
            Err(error) => {
                let simulation = &mut *self.simulation;
                simulation.bodies.clone_from(&self.bodies);
                simulation.encounters.clone_from(&self.encounters);
                simulation.clock = self.clock;
                match has_ranks {
                    true => self.make_again()?,
                    false => self.simulation.backend = old,
                }
                Err(error)
            }
        }
    }

    /// Makes the backend of the bodies before once more, with its state.
    fn make_again(&mut self) -> Result<(), ForceError> {
        let simulation = &mut *self.simulation;
        simulation.backend = simulation.make(&self.bodies, Some(self.saved.frame))?;
        let time = self.clock.time;
        reach(&mut *simulation.backend, time, time)?;
        simulation.go_back(&self.saved, self.clock)?;
        simulation.keep_paths();
        Ok(())
    }

    /// Goes on with the changed bodies on a new backend, and measures them.
    fn go_on(&mut self, changed: &Changed, is_kick: bool) -> Result<Conserved, ChangeError> {
        let simulation = &mut *self.simulation;
        let time = simulation.clock.time;
        let is_first = !self.saved.has(Column::OwnSteps);
        simulation.have_radii(changed.radii.clone())?;
        simulation.bodies.clone_from(&changed.bodies);
        reach(&mut *simulation.backend, time, time)?;
        simulation.backend.set_time(time);
        if let Some(external) = simulation.backend.external() {
            external
                .check_centres(&changed.bodies)
                .map_err(ForceError::from)?;
        }
        self.put_back(changed)?;
        let simulation = &mut *self.simulation;
        match &mut simulation.scheme {
            Some(scheme) => scheme.prepare(&mut *simulation.backend)?,
            None => simulation.integrator.prepare(&mut *simulation.backend)?,
        }
        let state = simulation.backend.save()?;
        if let Some(body) = state.first_not_finite() {
            return Err(ForceError::NotFinite { body }.into());
        }
        match simulation.pace {
            Pace::Adaptive {
                eta,
                longest,
                steps: TimeSteps::Shared,
                ..
            } => {
                // No longer than the step that was to come, which one more force confirms.
                let backend = &mut *simulation.backend;
                let dt = simulation.clock.dt.min(longest);
                let dt = simulation.integrator.first_step(backend, eta, dt)?;
                check_step(backend, dt, shortest_step(time, longest))?;
                simulation.clock.dt = dt;
            }
            Pace::Adaptive {
                eta,
                longest,
                steps: TimeSteps::Blocks,
                ..
            } if !is_first => self.keep_own_steps(changed, state, (longest, eta))?,
            _ => {}
        }
        let simulation = &mut *self.simulation;
        simulation.backend.download(&mut simulation.bodies)?;
        Ok(self.measure(is_kick)?)
    }

    /// Gives bodies that were not moved the bits that they had, where a device has them in units of a frame.
    fn put_back(&mut self, changed: &Changed) -> Result<(), ForceError> {
        let Self {
            simulation, saved, ..
        } = self;
        let has_frames = simulation
            .remake
            .as_ref()
            .is_some_and(|remake| remake.has_frames);
        if saved.frame == Frame::IDENTITY || !has_frames {
            return Ok(());
        }
        let mut state = simulation.backend.save()?;
        if state.frame != saved.frame {
            return Ok(());
        }
        for (column, is_other) in [
            (Column::Positions, &changed.placed),
            (Column::Velocities, &changed.kicked),
        ] {
            let (into, from) = (state.column_mut(column), saved.column(column));
            for (i, before) in changed.before.iter().enumerate() {
                if let Some(before) = before.filter(|_| !is_other[i]) {
                    into[3 * i..3 * i + 3].copy_from_slice(&from[3 * before..3 * before + 3]);
                }
            }
        }
        simulation.backend.restore(&state)
    }

    /// Lets bodies keep the block time steps that they had, but for bodies on which forces have changed much.
    fn keep_own_steps(
        &mut self,
        changed: &Changed,
        mut state: SavedState,
        (longest, eta): (f64, f64),
    ) -> Result<(), ForceError> {
        let Self {
            simulation, saved, ..
        } = self;
        let derivatives = |state: &SavedState, i: usize| {
            let Frame { length, time, .. } = state.frame;
            let in_units = |vectors: &[[f64; 3]], power: i32| {
                let vector = vectors.get(i).copied().unwrap_or_default();
                vector.map(|x| x * (length / time.powi(power)))
            };
            [
                in_units(state.accelerations(), 2),
                in_units(state.jerks(), 3),
            ]
        };
        let is_other = |(i, before): (usize, &Option<usize>)| {
            let Some(before) = before.filter(|_| !changed.placed[i]) else {
                return Some(i);
            };
            let ([a, j], [a0, j0]) = (derivatives(&state, i), derivatives(saved, before));
            let norm = |vector: [f64; 3]| dot(vector, vector).sqrt();
            let by_jerk = saved.own_steps()[before] * norm(difference(j, j0));
            let is_other = norm(difference(a, a0)) > OTHER_ACCELERATION * norm(a)
                || by_jerk > OTHER_JERK * norm(a);
            is_other.then_some(i)
        };
        let others = changed.before.iter().enumerate().filter_map(is_other);
        let others: Vec<usize> = others.collect();
        for column in [Column::OwnSteps, Column::Spheres] {
            let (each, old) = (column.units().len(), saved.column(column));
            if !saved.has(column) {
                continue;
            }
            let rows = changed.before.iter().flat_map(|before| match before {
                Some(before) => old[each * before..each * (before + 1)].to_vec(),
                None => vec![f64::INFINITY; each],
            });
            let rows = rows.collect();
            state = state.with(column, rows);
        }
        let backend = &mut *simulation.backend;
        backend.restore(&state)?;
        // Snaps of a device are computed with first steps.
        let lacks_snaps = simulation.integrator.order() >= 6 && !state.has(Column::Higher);
        if others.is_empty() && !lacks_snaps {
            return Ok(());
        }
        if !block_steps(backend)?.choose_steps(longest, eta, &others)? {
            let state = state.without(Column::OwnSteps).without(Column::Spheres);
            backend.restore(&state)?;
        }
        Ok(())
    }

    /// Returns whether kicks change kinetic energies alone. Groups are made anew, and the rounding of close pairs that
    /// this costs is an error of the run.
    fn kicks_leave_potentials(&self) -> bool {
        let external = self.simulation.backend.external();
        external.is_none_or(External::is_none)
    }

    /// Conserved quantities of the bodies as the backend has them; with no other energy than kinetic energy if no other
    /// one changes.
    fn measure(&mut self, is_kick: bool) -> Result<Conserved, ForceError> {
        let Simulation {
            backend,
            bodies,
            physics,
            clock,
            ..
        } = &mut *self.simulation;
        let energy = match is_kick {
            true => Energy {
                kinetic: kinetic(bodies, physics),
                ..Energy::default()
            },
            false => backend.energy()?,
        };
        Ok(Conserved::measure(clock.time, bodies, physics, energy))
    }
}

impl Simulation {
    /// A backend of other bodies, in a frame if one is given.
    fn make(
        &mut self,
        bodies: &Bodies,
        frame: Option<Frame>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        let remake = self.remake.as_mut();
        let remake = remake.expect("bodies change with one alone");
        (remake.make)(bodies, frame)
    }

    /// Has encounters looked for with these radii, if they are looked for.
    pub(super) fn have_radii(&mut self, radii: Option<Vec<f64>>) -> Result<(), EncounterFault> {
        let (Some(encounters), Some(radii)) = (&mut self.encounters, radii) else {
            return Ok(());
        };
        let before = std::mem::replace(&mut encounters.radii, radii);
        if self.keep_paths() {
            return Ok(());
        }
        if let Some(encounters) = &mut self.encounters {
            encounters.radii = before;
        }
        Err(EncounterFault::StepsNotKept)
    }
}

/// Returns whether bodies which one frame suits can be kept in another.
fn serves(frame: &Frame, suitable: &Frame) -> bool {
    let is_near = |unit: f64, best: f64| (1.0 / OTHER_UNIT..=OTHER_UNIT).contains(&(unit / best));
    let centres = frame.centre.iter().zip(suitable.centre);
    is_near(frame.length, suitable.length)
        && is_near(frame.mass, suitable.mass)
        && is_near(frame.time, suitable.time)
        && centres.fold(true, |all, (x, y)| all && (x - y).abs() <= frame.length)
}

/// Bodies that were removed and added, for lists with an entry for each.
fn renumbered(changed: &Changed, bodies: usize) -> Vec<Renumbered> {
    let mut stays = vec![false; bodies];
    changed
        .before
        .iter()
        .flatten()
        .for_each(|&i| stays[i] = true);
    let removed: Vec<usize> = (0..bodies).filter(|&i| !stays[i]).collect();
    let added = changed
        .before
        .iter()
        .filter(|before| before.is_none())
        .count();
    let mut renumbered = vec![];
    if !removed.is_empty() {
        renumbered.push(Renumbered::Removed(removed));
    }
    if added > 0 {
        renumbered.push(Renumbered::Added(added));
    }
    renumbered
}
