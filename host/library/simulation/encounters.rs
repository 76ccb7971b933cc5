//! Encounters in the steps of a simulation, and how it goes on after them.

use super::step::reach;
use super::{Clock, Remake, Simulation};
use crate::backend::{Backend, ForceError, SavedState, block_steps};
use crate::bodies::Bodies;
use crate::diagnostics::{Conserved, Lost};
use crate::encounters::{EncounterFault, Encounters, Event, OnCollision, Paths, Step};
use crate::fields::{External, FieldFault, Fields, Relativity};
use crate::frame::Frame;
use crate::integrator::{Pace, TimeSteps};
use crate::physics::Physics;
use crate::rules::{self, Needs, Offer};

/// Consequences of encounters that were not asked for yet.
#[derive(Debug, Default)]
pub(super) struct Found {
    events: Vec<Event>,
    /// Bodies that went or came, change by change.
    pub(super) renumbered: Vec<Renumbered>,
    /// Event that stopped the run.
    pub(super) stopped_by: Option<Event>,
}

/// Change of the order of bodies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Renumbered {
    /// Bodies with these indices are gone, ascending.
    Removed(Vec<usize>),
    /// This number of bodies is new, behind all others.
    Added(usize),
}

impl Simulation {
    /// Looks for encounters from now on.
    ///
    /// # Errors
    /// If they make no sense for these bodies, or cannot be looked for or followed here.
    pub fn look_for(&mut self, mut encounters: Encounters) -> Result<(), EncounterFault> {
        encounters.check(&self.bodies)?;
        encounters.radii.resize(self.bodies.len(), 0.0);
        self.go_on_looking_for(encounters, Lost::default())
    }

    /// Looks for encounters as before, with the radii that bodies have now, and what was lost so far.
    ///
    /// # Errors
    /// As [`look_for`](Self::look_for).
    pub fn go_on_looking_for(
        &mut self,
        encounters: Encounters,
        lost: Lost,
    ) -> Result<(), EncounterFault> {
        let (radii, bodies) = (encounters.radii.len(), self.bodies.len());
        if radii != bodies {
            return Err(EncounterFault::Number { radii, bodies });
        }
        rules::check(&self.needs(&encounters), &Offer::ANY)?;
        if encounters.changes_bodies() && self.remake.is_none() {
            return Err(EncounterFault::FixedBodies);
        }
        let before = self.encounters.replace(encounters);
        if !self.keep_paths() {
            self.encounters = before;
            return Err(EncounterFault::StepsNotKept);
        }
        self.lost = lost;
        Ok(())
    }

    /// Needs of this simulation with encounters, as far as it knows them.
    fn needs(&self, encounters: &Encounters) -> Needs {
        let none = Fields::NONE;
        let fields = self.backend.external().map_or(&none, External::fields);
        Needs::new(self.physics.law)
            .fields(fields)
            .encounters(Some(encounters))
            .systems(self.backend.systems() as u32)
    }

    /// Lets encounters change its bodies: it then goes on with what `remake` makes of them, which should be
    /// a backend as it has, such as [`Machine::backend`](crate::machine::Machine::backend) of the same machine
    /// and variant. A [builder](Self::builder) sees to that itself.
    #[must_use]
    pub fn remade_by(
        self,
        mut remake: impl FnMut(&Bodies) -> Result<Box<dyn Backend>, ForceError> + Send + 'static,
    ) -> Self {
        Self {
            remake: Some(Remake {
                make: Box::new(move |bodies, _| remake(bodies)),
                has_frames: false,
            }),
            ..self
        }
    }

    /// Like [`remade_by`](Self::remade_by), but for a function that also takes a frame for the backend, or none.
    pub(super) fn remade_in_frames(
        self,
        remake: impl FnMut(&Bodies, Option<Frame>) -> Result<Box<dyn Backend>, ForceError>
        + Send
        + 'static,
    ) -> Self {
        Self {
            remake: Some(Remake {
                make: Box::new(remake),
                has_frames: true,
            }),
            ..self
        }
    }

    /// Index of the body that the field 1pn is of, if there is one.
    pub(super) fn dominant(&self) -> Option<usize> {
        let relativity = self.backend.external().and_then(External::relativity);
        relativity.map(Relativity::body)
    }

    /// Has the backend keep the paths of bodies in block time steps, if bodies may collide. Returns whether it can.
    pub(super) fn keep_paths(&mut self) -> bool {
        let takes_block_steps = self.takes_block_steps();
        let Some(encounters) = self.encounters.as_ref().filter(|e| e.may_collide()) else {
            return true;
        };
        if !takes_block_steps {
            return true;
        }
        let blocks = self.backend.block_steps();
        blocks.is_some_and(|blocks| blocks.keep_paths(&encounters.radii))
    }

    /// Encounters that are looked for.
    pub fn encounters(&self) -> Option<&Encounters> {
        self.encounters.as_ref()
    }

    /// Quantities that mergers and removed bodies took with them.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Encounters since this was last asked.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.found.events)
    }

    /// Bodies that went or came since this was last asked, change by change.
    pub(crate) fn take_renumbered(&mut self) -> Vec<Renumbered> {
        std::mem::take(&mut self.found.renumbered)
    }

    /// Numbers of events and of changes of the order that nobody has asked for yet.
    pub(super) fn waiting_events(&self) -> [usize; 2] {
        [self.found.events.len(), self.found.renumbered.len()]
    }

    /// Forgets what was found after these [numbers](Self::waiting_events) were counted.
    pub(super) fn forget_events(&mut self, [events, renumbered]: [usize; 2]) {
        self.found.events.truncate(events);
        self.found.renumbered.truncate(renumbered);
        self.found.stopped_by = None;
    }

    /// Goes back to the bodies that it had, with their radii, if encounters have changed them since.
    pub(super) fn have_again(
        &mut self,
        bodies: &Bodies,
        radii: &[f64],
        lost: Lost,
    ) -> Result<(), ForceError> {
        if (&self.bodies.id, &self.bodies.mass) != (&bodies.id, &bodies.mass) {
            let remake = self.remake.as_mut();
            let remake =
                remake.expect("encounters that change bodies are looked for with one alone");
            self.backend = (remake.make)(bodies, None)?;
            self.bodies.clone_from(bodies);
        }
        if let Some(encounters) = &mut self.encounters {
            encounters.radii = radii.to_vec();
        }
        self.keep_paths();
        self.lost = lost;
        Ok(())
    }

    /// The encounter that stopped the simulation, if one did; it goes on where it is told to run again.
    pub fn stopped_by(&self) -> Option<&Event> {
        self.found.stopped_by.as_ref()
    }

    /// Takes a step and looks for encounters in it.
    pub(super) fn watched(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        let Some(mut looked_for) = self.encounters.clone() else {
            return step(self);
        };
        let (before, paths, dt) = self.both_ends(step, &looked_for)?;
        let Clock { time, steps, .. } = self.clock;
        let step = Step {
            before: &before,
            after: &self.bodies,
            paths: paths.as_ref(),
            dt,
        };
        let outcome = looked_for.look(&step, (steps, time));
        if let Some(bodies) = outcome.changed {
            self.go_on_with(bodies, looked_for, &outcome.removed)?;
        }
        if !outcome.removed.is_empty() {
            let removed = Renumbered::Removed(outcome.removed);
            self.found.renumbered.push(removed);
        }
        self.found.stopped_by = outcome.stopped_by.or(self.found.stopped_by);
        self.found.events.extend(outcome.events);
        Ok(())
    }

    fn takes_block_steps(&self) -> bool {
        let blocks = TimeSteps::Blocks;
        matches!(self.pace, Pace::Adaptive { steps, .. } if steps == blocks)
    }

    /// Takes a step, which ends soon after the first collision that changes bodies where they take block time
    /// steps. Returns the bodies before it, the paths that it is made of in that case, and its length.
    fn both_ends(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), ForceError>,
        encounters: &Encounters,
    ) -> Result<(Bodies, Option<Paths>, f64), ForceError> {
        let began = self.clock;
        self.backend.download(&mut self.bodies)?;
        let before = self.bodies.clone();
        if !(self.takes_block_steps() && encounters.may_collide()) {
            step(self)?;
            self.backend.download(&mut self.bodies)?;
            return Ok((before, None, self.clock.time - began.time));
        }
        let saved = self.backend.save()?;
        let mut length = self.next_span();
        let mut taken = step(self);
        // Bodies that fall onto each other need steps without end beyond their contact.
        while matches!(taken, Err(ForceError::StepTooShort { .. }))
            && encounters.on_collision != OnCollision::Log
            && began.time + length != began.time
        {
            length *= 0.5;
            block_steps(&mut *self.backend)?.take_paths();
            self.go_back(&saved, began)?;
            taken = self.step_until(began.time + length);
        }
        taken?;
        loop {
            self.backend.download(&mut self.bodies)?;
            let paths = block_steps(&mut *self.backend)?.take_paths();
            let dt = self.clock.time - began.time;
            let step = Step {
                before: &before,
                after: &self.bodies,
                paths: Some(&paths),
                dt,
            };
            let end = encounters
                .shorter(&step)
                .map(|shorter| began.time + shorter);
            // Nothing is shorter than the last bit of the time.
            let Some(end) = end.filter(|&end| end != began.time) else {
                return Ok((before, Some(paths), dt));
            };
            self.go_back(&saved, began)?;
            self.step_until(end)?;
        }
    }

    pub(super) fn go_back(&mut self, saved: &SavedState, clock: Clock) -> Result<(), ForceError> {
        self.backend.restore(saved)?;
        self.backend.set_time(clock.time);
        self.clock = clock;
        Ok(())
    }

    /// Length of the next span of block time steps; 0 where there are none.
    fn next_span(&self) -> f64 {
        match self.pace {
            Pace::Adaptive { longest, end, .. } => longest.min(end - self.clock.time),
            Pace::Fixed(_) => 0.0,
        }
    }

    /// Takes a step that ends at `time`, or before.
    fn step_until(&mut self, time: f64) -> Result<(), ForceError> {
        let Pace::Adaptive { end, .. } = &mut self.pace else {
            unreachable!("block time steps are of such a pace")
        };
        let before = std::mem::replace(end, time);
        let taken = self.advance_freely(1, None).map(|_| ());
        if let Pace::Adaptive { end, .. } = &mut self.pace {
            *end = before;
        }
        taken
    }

    /// Goes on with other bodies between two steps, and counts what is lost.
    ///
    /// # Errors
    /// Errors of either backend; nothing is changed where there is no other.
    fn go_on_with(
        &mut self,
        bodies: Bodies,
        encounters: Encounters,
        removed: &[usize],
    ) -> Result<(), ForceError> {
        let measure = |backend: &mut dyn Backend, bodies: &Bodies, physics: &Physics, time: f64| {
            let energy = backend.energy()?;
            Ok::<_, ForceError>(Conserved::measure(time, bodies, physics, energy))
        };
        let (physics, time) = (self.physics, self.clock.time);
        if let Some(body) = self.dominant().filter(|body| removed.contains(body)) {
            return Err(FieldFault::DominantGone { body }.into());
        }
        let before = measure(&mut *self.backend, &self.bodies, &physics, time)?;
        let remake = self.remake.as_mut();
        let remake = remake.expect("encounters that change bodies are looked for with one alone");
        // Before the old one goes: where there is no room for both, bodies are still those of the old one.
        self.backend = (remake.make)(&bodies, None)?;
        (self.bodies, self.encounters) = (bodies, Some(encounters));
        self.keep_paths();
        reach(&mut *self.backend, time, time)?;
        self.backend.set_time(time);
        match &mut self.scheme {
            Some(scheme) => scheme.prepare(&mut *self.backend)?,
            None => self.integrator.prepare(&mut *self.backend)?,
        }
        let after = measure(&mut *self.backend, &self.bodies, &physics, time)?;
        self.lost.add(&before, &after);
        if let Pace::Adaptive {
            eta,
            longest,
            steps: TimeSteps::Shared,
            ..
        } = self.pace
        {
            let dt = self
                .integrator
                .first_step(&mut *self.backend, eta, longest)?;
            self.clock.dt = self.clock.dt.min(dt);
        }
        Ok(())
    }
}
