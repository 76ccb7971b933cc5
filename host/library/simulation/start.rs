//! A resolved run on its device: the first forces, the step that follows from them, the simulation.

use std::time::Instant;

use super::{Clock, IntegrationScheme, Simulation, reach};
use crate::backend::{Backend, Column, ForceError, SavedState};
use crate::bodies::Bodies;
use crate::diagnostics::Lost;
use crate::frame::Frame;
use crate::integrator::Pace;
use crate::machine::Machine;
use crate::physics::Physics;
use crate::run::{BuildError, Choice, End, Run};
use crate::selection::fits;
use crate::settings::Setting;
use crate::suggest;
use crate::test_particles::Kinds;
use crate::variants::Variant;

/// A run whose bodies lie on their device, before its first step.
pub struct OpenedRun {
    run: Run,
    machine: Machine,
    backend: Box<dyn Backend>,
    /// True once the backend has what the first step of the integrator needs of forces on these bodies.
    has_forces: bool,
}

impl Run {
    /// Opens the device, and puts the bodies there.
    ///
    /// # Errors
    /// If the device refuses, or the kernel cannot compute these bodies.
    pub fn open(self, bodies: &Bodies) -> Result<OpenedRun, BuildError> {
        let machine = self.machine();
        let mut backend = machine.backend(&self.variant, bodies, self.physics)?;
        reach(&mut *backend, self.spec.start, self.spec.start)?;
        backend.set_time(self.spec.start);
        if let Some(external) = backend.external() {
            external.check_centres(bodies).map_err(ForceError::from)?;
        }
        Ok(OpenedRun {
            run: self,
            machine,
            backend,
            has_forces: false,
        })
    }

    /// Seconds that forces on these bodies will take on a CPU, as forces on the first of them tell. None for few bodies,
    /// and on other devices.
    pub fn expected_seconds_of_forces(&self, bodies: &Bodies) -> Option<f64> {
        /// Bodies of which the forces take less than a second.
        const FEW: usize = 50_000;
        /// Bodies that are timed.
        const TIMED: usize = 8_192;
        if bodies.len() < FEW || !self.selection.place.is_cpu() || self.spec.systems != 1 {
            return None;
        }
        let part = bodies.part(0..TIMED);
        let [massive, of_part] =
            [bodies, &part].map(|bodies| Kinds::of(bodies, &self.physics).massive as f64);
        let backend = self.machine().backend(&self.variant, &part, self.physics);
        let mut backend = backend.ok()?;
        backend.set_time(self.spec.start);
        let mut seconds = f64::INFINITY;
        // The first is slow.
        for _ in 0..2 {
            let began = Instant::now();
            self.integrator.prepare(&mut *backend).ok()?;
            backend.synchronize().ok()?;
            seconds = seconds.min(began.elapsed().as_secs_f64());
        }
        let more = bodies.len() as f64 / TIMED as f64 * (massive / of_part);
        Some(seconds * more).filter(|seconds| seconds.is_finite())
    }

    /// Opens the device, and begins with these bodies.
    ///
    /// # Errors
    /// Like [`open`](Self::open) and [`begin`](OpenedRun::begin).
    pub fn start(self, bodies: Bodies) -> Result<(Simulation, Self), BuildError> {
        self.open(&bodies)?.begin(bodies)
    }

    /// Goes on from where a simulation was [saved](Simulation::save), with these bodies and what encounters had
    /// taken away until then. The step is in the specification.
    ///
    /// # Errors
    /// If the device refuses, or the state is one of another integrator.
    pub fn resume(
        self,
        bodies: Bodies,
        (clock, state): (Clock, &SavedState),
        lost: Lost,
    ) -> Result<Simulation, BuildError> {
        let mut run = self;
        run.spec.groups = match (state.groups.is_empty(), run.spec.groups) {
            // A run that began without groups goes on so, until hard pairs form.
            (true, groups) => groups.filter(|are_followed| !are_followed),
            (false, _) => Some(true),
        };
        // Steps that follow no pairs, to which it may go back.
        let before = clock.followed.map(|_| {
            let mut before = run.clone();
            before.spec.groups = None;
            before
        });
        // Steps with neighbours alone have spheres. If this run has neighbours, and the state has none, pairs were followed later.
        if run.spec.groups == Some(true) && !state.has(Column::Spheres) {
            run = run.followed(bodies.len());
        }
        let (physics, integrator, variant) = (run.physics, run.integrator, run.variant);
        let pace = run.spec.pace(|| Ok(clock.dt))?;
        let machine = run.machine();
        let backend = machine.backend_in_frame(&variant, &bodies, physics, state.frame)?;
        let saved = (clock, state);
        let mut simulation = Simulation::resume(backend, bodies, physics, integrator, pace, saved)?
            .remade_in_frames(remade_on(machine, variant, physics))
            .following(before.as_ref().unwrap_or(&run));
        if let Some(end) = run.end_of(pace).filter(|&end| is_ahead(&clock, pace, end)) {
            simulation.reach(end)?;
        }
        if let Some(encounters) = run.spec.encounters {
            simulation.go_on_looking_for(encounters, lost)?;
        }
        Ok(simulation)
    }

    /// Time at which the run ends, if it is known.
    pub fn end_of(&self, pace: Pace) -> Option<f64> {
        match (self.spec.end, pace) {
            (End::Time(end), _) => Some(end),
            (End::Steps(steps), Pace::Fixed(dt)) => Some(self.spec.start + steps as f64 * dt),
            _ => None,
        }
    }
}

/// A function that makes backends of other bodies on a machine, which a variant fits.
pub(super) fn remade_on(
    machine: Machine,
    variant: Variant,
    physics: Physics,
) -> impl FnMut(&Bodies, Option<Frame>) -> Result<Box<dyn Backend>, ForceError> + Send {
    move |bodies, frame| {
        fits(&variant, machine.place(), physics.law, bodies.len())?;
        match frame {
            Some(frame) => machine.backend_in_frame(&variant, bodies, physics, frame),
            None => machine.backend(&variant, bodies, physics),
        }
    }
}

/// Returns whether steps from where a simulation stands lead to a time.
fn is_ahead(clock: &Clock, pace: Pace, end: f64) -> bool {
    let direction = match pace {
        Pace::Fixed(dt) => dt.signum(),
        Pace::Adaptive { .. } => 1.0,
    };
    (end - clock.time) * direction > 0.0
}

impl OpenedRun {
    /// Seconds that the forces of a step take.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn seconds_of_forces(&mut self) -> Result<f64, ForceError> {
        let mut timed = || -> Result<f64, ForceError> {
            let began = Instant::now();
            self.run.integrator.prepare(&mut *self.backend)?;
            self.backend.synchronize()?;
            Ok(began.elapsed().as_secs_f64())
        };
        let seconds = match timed()? {
            seconds if seconds > 0.5 => seconds,
            _ => timed()?, // warmed up
        };
        self.has_forces = true;
        Ok(seconds)
    }

    /// Begins with these bodies, those that lie on the device. The run it returns has the step that was chosen.
    ///
    /// # Errors
    /// If no step follows from the forces, or the end cannot be reached, or encounters cannot be looked for.
    pub fn begin(self, bodies: Bodies) -> Result<(Simulation, Run), BuildError> {
        self.begin_with(bodies, None)
    }

    /// Like [`begin`](Self::begin), but the steps are those of a scheme, if there is one.
    pub(super) fn begin_with(
        self,
        bodies: Bodies,
        scheme: Option<Box<dyn IntegrationScheme>>,
    ) -> Result<(Simulation, Run), BuildError> {
        let Self {
            mut run,
            machine,
            mut backend,
            mut has_forces,
        } = self;
        let mut why = None;
        let pace = run.spec.pace(|| {
            match scheme {
                Some(_) => backend.accelerate()?,
                None if has_forces => {}
                None => {
                    run.integrator.prepare(&mut *backend)?;
                    has_forces = true;
                }
            }
            let accelerations = backend.accelerations()?;
            let external = backend.external();
            if run.spec.eta.is_some() {
                why = Some(String::new());
                let longest = suggest::longest_step(&bodies, &accelerations, external);
                // Nothing pulls a group of all bodies.
                return Ok(match longest > 0.0 {
                    true => longest,
                    false => suggest::longest_of_group(&bodies, &run.physics),
                });
            }
            let times = run.advice.leapfrogs_a_step(run.integrator);
            let span = run.spec.span();
            let chosen = suggest::choose_step(
                &bodies,
                &run.physics,
                &accelerations,
                external,
                (times, span),
            );
            why = Some(chosen.why);
            Ok(chosen.value)
        })?;
        let dt = match pace {
            Pace::Fixed(dt) => dt,
            Pace::Adaptive { longest, .. } => longest,
        };
        run.choices.extend(why.map(|why| Choice {
            setting: Setting::Dt,
            value: dt.to_string(),
            why,
        }));
        if dt.is_finite() {
            run.spec.dt = Some(dt);
        }
        run.spec.steps(pace)?;
        let (physics, integrator, variant) = (run.physics, run.integrator, run.variant);
        let start = run.spec.start;
        if !has_forces || scheme.is_some() {
            integrator.prepare(&mut *backend)?;
        }
        let simulation = Simulation::prepared(backend, bodies, physics, integrator, pace, start)?;
        let mut simulation = simulation
            .remade_in_frames(remade_on(machine, variant, physics))
            .following(&run);
        match scheme {
            Some(mut scheme) => {
                scheme.prepare(&mut *simulation.backend)?;
                simulation.scheme = Some(scheme);
            }
            None if run.choice(Setting::Dt).is_some() && run.spec.eta.is_none() => {
                let leapfrogs = run.advice.leapfrogs_a_step(run.integrator);
                simulation = simulation.having_chosen_step(Some(leapfrogs));
            }
            None => {}
        }
        if let Some(end) = run.end_of(pace) {
            simulation.reach(end)?;
        }
        if let Some(encounters) = run.spec.encounters.clone() {
            simulation.look_for(encounters)?;
        }
        Ok((simulation, run))
    }
}
