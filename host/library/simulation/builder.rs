//! Setting up a simulation: what is not said is chosen, and what cannot be is refused before anything is
//! computed.

use super::{Clock, IntegrationScheme, Simulation};
use crate::backend::{ForceError, Neighbours, NeighboursFault, SavedState};
use crate::bodies::{Bodies, BodyFault};
use crate::encounters::{EncounterFault, Encounters};
use crate::fields::{ExternalField, FieldFault, Fields, Orbit};
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::machine::Machine;
use crate::physics::{ForceLaw, Physics};
use crate::plan::PlanError;
use crate::plan::systems::bodies_each;
use crate::selection::{DeviceChoice, Place, Request, Selection, SelectionError, fits, select};
use crate::suggest::{self, Advice, BlockSettings, Known};
use crate::test_particles::Kinds;
use crate::units::Units;
use crate::variants::Variant;
use crate::variants::preferred::ForceAccuracy;

/// Settings of a simulation to be built; made by [`Simulation::builder`].
pub struct SimulationBuilder {
    bodies: Bodies,
    systems: u32,
    fields: Fields,
    encounters: Option<Encounters>,
    units: Option<Units>,
    made_by: Option<(&'static str, Advice)>,
    law: ForceLaw,
    g: Option<f64>,
    softening: Option<f64>,
    start: f64,
    dt: Option<f64>,
    eta: Option<f64>,
    stepping: TimeSteps,
    neighbours: Option<Neighbours>,
    integrator: Option<Integrator>,
    scheme: Option<Box<dyn IntegrationScheme>>,
    device: DeviceChoice,
    kernel: Option<&'static Variant>,
    accuracy: Option<ForceAccuracy>,
    allow_inaccurate: bool,
}

/// Reason why a simulation cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There are no bodies.
    #[error("there are no bodies to simulate")]
    NoBodies,
    /// A column of the bodies is of another length, or a number in it is none.
    #[error(transparent)]
    Bodies(#[from] BodyFault),
    /// A number that makes no sense.
    #[error("`{name}` must be {allowed}, got {value}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The values that it may have.
        allowed: &'static str,
        /// The value that it was given.
        value: f64,
    },
    /// No time step follows from the bodies.
    #[error("nothing is accelerated, so no time step follows: give one with `dt`")]
    NoTimeStep,
    /// The integrator does not choose its steps.
    #[error("`eta` and block time steps need an integrator with jerks, such as hermite4, not {0}")]
    NoAdaptiveSteps(&'static str),
    /// Settings that a neighbour scheme cannot have.
    #[error(transparent)]
    Neighbours(#[from] NeighboursFault),
    /// An unavailable device or kernel.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A launch that does not fit the device.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An external field that makes no sense, or that the integrator cannot follow.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// Encounters that make no sense, or that cannot be looked for.
    #[error(transparent)]
    Encounter(#[from] EncounterFault),
    /// The backend refused.
    #[error(transparent)]
    Force(#[from] ForceError),
}

impl SimulationBuilder {
    pub(super) fn new(bodies: Bodies) -> Self {
        Self {
            bodies,
            systems: 1,
            fields: Fields::NONE,
            encounters: None,
            units: None,
            made_by: None,
            law: ForceLaw::Gravity,
            g: None,
            softening: None,
            start: 0.0,
            dt: None,
            eta: None,
            stepping: TimeSteps::Shared,
            neighbours: None,
            integrator: None,
            scheme: None,
            device: DeviceChoice::Auto,
            kernel: None,
            accuracy: None,
            allow_inaccurate: false,
        }
    }

    /// So many independent systems of equal size, one after another among the bodies; bodies of
    /// different systems do not attract each other.
    #[must_use]
    pub fn systems(self, systems: u32) -> Self {
        Self { systems, ..self }
    }

    /// In this external field too; several add up.
    #[must_use]
    pub fn field(mut self, field: ExternalField) -> Self {
        self.fields.push(field);
        self
    }

    /// In a frame that does not turn and whose origin falls freely in the fields, on the orbit that begins
    /// at this position of theirs with this velocity: bodies far from a galaxy's centre then keep all their
    /// digits. [`Simulation::external`] knows [where the origin is](crate::fields::External::origin).
    ///
    /// ```
    /// use allpairs::fields::ExternalField;
    /// use allpairs::{Simulation, plummer};
    ///
    /// let mut cluster = Simulation::builder(plummer(100, 1)?)
    ///     .field(ExternalField::nfw(1e6, 20.0))
    ///     .orbit([5000.0, 0.0, 0.0], [0.0, 30.0, 0.0])
    ///     .dt(0.01)
    ///     .build()?;
    /// cluster.run_until(0.1)?;
    /// let [position, _] = cluster.external().origin().expect("an orbit");
    /// assert!((position[1] - 3.0).abs() < 1e-3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn orbit(self, position: [f64; 3], velocity: [f64; 3]) -> Self {
        let fields = self.fields.on_orbit(Orbit::new(position, velocity));
        Self { fields, ..self }
    }

    /// With these encounters looked for.
    #[must_use]
    pub fn encounters(self, encounters: Encounters) -> Self {
        let encounters = Some(encounters);
        Self { encounters, ..self }
    }

    /// Units of the bodies, from which G follows unless it is given.
    #[must_use]
    pub fn units(self, units: Units) -> Self {
        let units = Some(units);
        Self { units, ..self }
    }

    /// Name and advice of the [generator](crate::initial_conditions::Generator) that made the bodies,
    /// which choices then follow: of integrator, softening, step and accuracy.
    #[must_use]
    pub fn made_by(self, name: &'static str, advice: Advice) -> Self {
        let made_by = Some((name, advice));
        Self { made_by, ..self }
    }

    /// Force law; Newton's gravity where not given.
    #[must_use]
    pub fn law(self, law: ForceLaw) -> Self {
        Self { law, ..self }
    }

    /// Gravitational constant in the units of the bodies; where not given, that of their
    /// [`units`](Self::units), or 1 where these are not known.
    #[must_use]
    pub fn g(self, g: f64) -> Self {
        let g = Some(g);
        Self { g, ..self }
    }

    /// Newton's gravity with this constant G, in the units of the bodies, and this softening length ε.
    #[must_use]
    pub fn gravity(self, g: f64, softening: f64) -> Self {
        self.physics(Physics {
            law: ForceLaw::Gravity,
            g,
            softening,
        })
    }

    /// This force law with these constants.
    #[must_use]
    pub fn physics(self, physics: Physics) -> Self {
        let Physics { law, g, softening } = physics;
        let (g, softening) = (Some(g), Some(softening));
        Self {
            law,
            g,
            softening,
            ..self
        }
    }

    /// Softening length ε ≥ 0; where not given, what [`suggest::choose_softening`] says.
    #[must_use]
    pub fn softening(self, softening: f64) -> Self {
        let softening = Some(softening);
        Self { softening, ..self }
    }

    /// Time at the beginning, 0 where not given.
    #[must_use]
    pub fn start(self, time: f64) -> Self {
        Self {
            start: time,
            ..self
        }
    }

    /// Time step, negative to go back in time; the longest one with [`eta`](Self::eta). Where not given,
    /// what [`suggest::choose_step`] says, or with `eta` [`suggest::longest_step`].
    #[must_use]
    pub fn dt(self, dt: f64) -> Self {
        let dt = Some(dt);
        Self { dt, ..self }
    }

    /// Steps as long as this accuracy of Aarseth's criterion allows; the integrator must have jerks.
    #[must_use]
    pub fn eta(self, eta: f64) -> Self {
        let eta = Some(eta);
        Self { eta, ..self }
    }

    /// A step for each body: [block time steps](TimeSteps::Blocks). Integrator and [`eta`](Self::eta), where not
    /// given, are those of [`BlockSettings::or_chosen`].
    #[must_use]
    pub fn block_steps(self) -> Self {
        let stepping = TimeSteps::Blocks;
        Self { stepping, ..self }
    }

    /// Block time steps of a [neighbour scheme](Neighbours), on the CPU or a GPU.
    ///
    /// ```
    /// use allpairs::backend::Neighbours;
    /// use allpairs::selection::DeviceChoice;
    /// use allpairs::{Integrator, Simulation, plummer};
    ///
    /// let mut cluster = Simulation::builder(plummer(200, 1)?)
    ///     .softening(1e-3)
    ///     .integrator(Integrator::Hermite4)
    ///     .eta(0.04)
    ///     .block_steps()
    ///     .neighbours(Neighbours::Auto)
    ///     .device(DeviceChoice::Cpu)
    ///     .build()?;
    /// cluster.run_until(0.0625)?;
    /// let counts = cluster.block_counts();
    /// assert!(counts.regular > 0 && counts.regular < counts.steps);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn neighbours(self, neighbours: Neighbours) -> Self {
        let neighbours = Some(neighbours);
        Self { neighbours, ..self }
    }

    /// This integrator; where not given, what the bodies' generator advises, else leapfrog; but see
    /// [`block_steps`](Self::block_steps).
    #[must_use]
    pub fn integrator(self, integrator: Integrator) -> Self {
        let (integrator, scheme) = (Some(integrator), None);
        Self {
            integrator,
            scheme,
            ..self
        }
    }

    /// An integrator of one's own, with a fixed time step.
    #[must_use]
    pub fn scheme(self, scheme: impl IntegrationScheme + 'static) -> Self {
        let scheme: Option<Box<dyn IntegrationScheme>> = Some(Box::new(scheme));
        Self { scheme, ..self }
    }

    /// Device to compute on; the first GPU, or the CPU where there is none, if not given.
    #[must_use]
    pub fn device(self, device: DeviceChoice) -> Self {
        Self { device, ..self }
    }

    /// This variant instead of the device's preferred one.
    #[must_use]
    pub fn kernel(self, kernel: &'static Variant) -> Self {
        let kernel = Some(kernel);
        Self { kernel, ..self }
    }

    /// Error that forces may have, by which the variant is chosen. Where not given, what suits the
    /// integrator; double precision where the softening is chosen to be 0.
    #[must_use]
    pub fn accuracy(self, accuracy: ForceAccuracy) -> Self {
        let accuracy = Some(accuracy);
        Self { accuracy, ..self }
    }

    /// Computes even forces whose error has no bound.
    #[must_use]
    pub fn allow_inaccurate(self) -> Self {
        let allow_inaccurate = true;
        Self {
            allow_inaccurate,
            ..self
        }
    }

    /// The simulation, with the first accelerations computed.
    ///
    /// # Errors
    /// A fault of the bodies or a setting; or an unavailable device or kernel.
    pub fn build(self) -> Result<Simulation, BuildError> {
        self.settled().build_as_it_is()
    }

    /// With integrator, accuracy of the steps and neighbours of block time steps as they are chosen where they
    /// are left out: what is set afterwards does not change them.
    #[must_use]
    pub fn settled(self) -> Self {
        let Some(blocks) = self.blocks() else {
            return self;
        };
        Self {
            integrator: blocks.integrator,
            eta: blocks.eta,
            neighbours: blocks.neighbours,
            ..self
        }
    }

    fn build_as_it_is(self) -> Result<Simulation, BuildError> {
        let (physics, selection) = self.choose()?;
        let variant = self.fitting(&selection, &physics)?;
        let machine = self.machine(selection.place, self.start, &physics);
        let mut backend = machine.backend(&variant, &self.bodies, physics)?;
        backend.set_time(self.start);
        let dt = match self.dt {
            Some(dt) => dt,
            None => {
                backend.accelerate()?;
                let accelerations = backend.accelerations()?;
                let (bodies, external) = (&self.bodies, backend.external());
                let suggested = match self.accuracy_of_steps() {
                    Some(_) => suggest::longest_step(bodies, &accelerations, external),
                    None => {
                        let times = self.advice().leapfrogs_a_step(self.method());
                        let chosen =
                            suggest::choose_step(bodies, &physics, &accelerations, external, times);
                        chosen.value
                    }
                };
                if suggested == 0.0 {
                    return Err(BuildError::NoTimeStep);
                }
                suggested
            }
        };
        let (integrator, pace) = (self.method(), self.pace(dt));
        let Self {
            bodies,
            start,
            scheme,
            encounters,
            ..
        } = self;
        let mut simulation = Simulation::new(backend, bodies, physics, integrator, pace, start)?
            .remade_by(move |bodies| machine.backend(&variant, bodies, physics));
        if let Some(mut scheme) = scheme {
            scheme.prepare(&mut *simulation.backend)?;
            simulation.scheme = Some(scheme);
        }
        if let Some(encounters) = encounters {
            simulation.look_for(encounters)?;
        }
        Ok(simulation)
    }

    /// The simulation that was [saved](Simulation::save), going on with the bits that it would have
    /// had: to be built with the settings that it had, and the bodies that it returned; with the
    /// [`kernel`](Self::kernel) that it had, where encounters may have changed their number.
    ///
    /// # Errors
    /// As [`build`](Self::build); or that no step is given, or encounters, which go on by
    /// [`Simulation::go_on_looking_for`].
    pub fn resume(self, clock: Clock, state: &SavedState) -> Result<Simulation, BuildError> {
        let (physics, selection) = self.choose()?;
        let variant = self.fitting(&selection, &physics)?;
        let machine = self.machine(selection.place, clock.start, &physics);
        let backend = machine.backend_in_frame(&variant, &self.bodies, physics, state.frame)?;
        let pace = self.pace(self.dt.ok_or(BuildError::NoTimeStep)?);
        let (integrator, saved) = (self.method(), (clock, state));
        let bodies = self.bodies;
        let simulation = Simulation::resume(backend, bodies, physics, integrator, pace, saved)?;
        Ok(simulation.remade_by(move |bodies| machine.backend(&variant, bodies, physics)))
    }

    /// Force and constants; and variant and place, with the reason for them.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn choose(&self) -> Result<(Physics, Selection), BuildError> {
        let physics = self.choose_physics()?;
        Ok((physics, select(&self.request(&physics))?))
    }

    /// Force and constants.
    ///
    /// # Errors
    /// If the bodies or a setting are at fault.
    pub fn choose_physics(&self) -> Result<Physics, BuildError> {
        self.check()?;
        Ok(self.chosen_physics())
    }

    /// Physics that the simulation will have.
    fn chosen_physics(&self) -> Physics {
        let units = self.units.filter(|_| self.law != ForceLaw::Unit);
        let g = self.g.or(units.map(|units| units.gravity())).unwrap_or(1.0);
        let chosen = || {
            suggest::choose_softening(
                &self.bodies,
                &Known {
                    law: self.law,
                    systems: self.systems as usize,
                    units: self.units,
                    g,
                    made_by: self.made_by,
                },
            )
            .value
        };
        Physics {
            law: self.law,
            g,
            softening: self.softening.unwrap_or_else(chosen),
        }
    }

    /// Request by which a kernel is selected, under this physics.
    pub fn request(&self, physics: &Physics) -> Request {
        Request {
            device: self.device,
            kernel: self.kernel,
            law: self.law,
            bodies: self.bodies.len(),
            systems: self.systems,
            sources: Kinds::of(&self.bodies, physics).massive,
            accuracy: self.accuracy_under(physics),
            integrator: self.method(),
            steps: self.stepping,
            steps_alone: self.scheme.is_none()
                && self.encounters.is_none()
                && self.fields.is_empty(),
            several_gpus: true,
        }
    }

    /// Number of bodies to simulate.
    pub fn number_of_bodies(&self) -> usize {
        self.bodies.len()
    }

    /// Error that forces may have: as asked, or as suits the softening.
    fn accuracy_under(&self, physics: &Physics) -> Option<ForceAccuracy> {
        self.accuracy.or(suggest::accuracy(physics.softening))
    }

    /// The selected variant, of as many systems, checked to fit its place.
    fn fitting(&self, selected: &Selection, physics: &Physics) -> Result<Variant, BuildError> {
        fits(
            selected.variant,
            &selected.place,
            physics.law,
            self.bodies.len(),
        )?;
        Ok(selected.variant.of_systems(self.systems))
    }

    /// The machine, for a run that begins at this time.
    fn machine(&self, place: Place, start: f64, physics: &Physics) -> Machine {
        let (eta, accuracy) = (self.accuracy_of_steps(), self.accuracy_under(physics));
        Machine::new(place)
            .allow_inaccurate(self.allow_inaccurate)
            .fields(self.fields.clone().starting(start))
            .neighbours(self.number_of_neighbours())
            .block_steps(self.method(), self.stepping, eta, accuracy)
    }

    /// Settings of block time steps, where there are some, as asked or as suit the bodies.
    fn blocks(&self) -> Option<BlockSettings> {
        let asked = BlockSettings {
            integrator: self.integrator,
            eta: self.eta,
            neighbours: self.neighbours,
        };
        let takes_blocks = self.stepping == TimeSteps::Blocks && self.scheme.is_none();
        takes_blocks.then(|| {
            let allowed =
                self.kernel.is_none() && self.systems == 1 && !self.fields.have_relativity();
            let accuracy = || self.accuracy_under(&self.chosen_physics());
            asked.or_chosen(self.bodies.len(), allowed, accuracy)
        })
    }

    /// Accuracy of steps that vary, as asked or as suits the bodies.
    pub fn accuracy_of_steps(&self) -> Option<f64> {
        self.blocks().map_or(self.eta, |blocks| blocks.eta)
    }

    /// Neighbours in a scheme with these, as asked or as suits the bodies.
    pub fn number_of_neighbours(&self) -> Option<Neighbours> {
        (self.blocks()).map_or(self.neighbours, |blocks| blocks.neighbours)
    }

    fn pace(&self, dt: f64) -> Pace {
        match self.accuracy_of_steps() {
            Some(eta) => Pace::Adaptive {
                eta,
                longest: dt,
                end: f64::INFINITY,
                steps: self.stepping,
            },
            None => Pace::Fixed(dt),
        }
    }

    /// Advice on how to simulate the bodies.
    fn advice(&self) -> Advice {
        let made_by = self.made_by.map(|(_, advice)| advice);
        let units = self.units.filter(|_| self.law != ForceLaw::Unit);
        Advice::of(made_by, units)
    }

    /// The integrator as asked, or as suits the bodies.
    pub fn method(&self) -> Integrator {
        let scheme = self.scheme.as_ref().map(|_| Integrator::Leapfrog);
        let of_blocks = || self.blocks().and_then(|blocks| blocks.integrator);
        let asked = self.integrator.or(scheme).or_else(of_blocks);
        asked.unwrap_or(self.advice().integrator)
    }

    fn check(&self) -> Result<(), BuildError> {
        if self.bodies.is_empty() {
            return Err(BuildError::NoBodies);
        }
        self.bodies.check()?;
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let demand = |name, value: Option<f64>, is_allowed: fn(f64) -> bool, allowed| match value {
            Some(value) if !is_allowed(value) => Err(BuildError::Value {
                name,
                allowed,
                value,
            }),
            _ => Ok(()),
        };
        let adaptive = self.accuracy_of_steps().is_some();
        demand("g", self.g, f64::is_finite, "finite")?;
        demand("start", Some(self.start), f64::is_finite, "finite")?;
        let not_negative = |x: f64| x.is_finite() && x >= 0.0;
        demand("softening", self.softening, not_negative, "≥ 0 and finite")?;
        demand("eta", self.eta, positive, "> 0 and finite")?;
        if adaptive {
            demand("dt", self.dt, positive, "> 0 and finite with `eta`")?;
        } else {
            let moves = |x: f64| x.is_finite() && x != 0.0;
            demand("dt", self.dt, moves, "finite and not 0")?;
        }
        if let ForceLaw::AttractRepel { repulsion, damping } = self.law {
            demand("repulsion", Some(repulsion), f64::is_finite, "finite")?;
            demand("drag", Some(damping), not_negative, "≥ 0 and finite")?;
        }
        if let Some(Integrator::DampedEuler { rate }) = self.integrator {
            demand("damping", Some(rate), not_negative, "≥ 0 and finite")?;
        }
        let (name, derivatives) = match self.scheme {
            Some(_) => ("an integrator of your own", 0),
            None => (self.method().name(), self.method().derivatives()),
        };
        self.fields.check(name, derivatives)?;
        bodies_each(self.bodies.len(), self.systems).map_err(PlanError::from)?;
        let chooses = self.method().needs_jerks() && self.scheme.is_none();
        if (adaptive || self.stepping == TimeSteps::Blocks) && !chooses {
            let name = self.method().name();
            let own = self.scheme.as_ref().map(|_| "one of your own");
            return Err(BuildError::NoAdaptiveSteps(own.unwrap_or(name)));
        }
        if self.neighbours.is_some() {
            self.method().check_neighbours(self.stepping)?;
        }
        Ok(())
    }
}
