//! Setting up a simulation: what is not said is chosen, and what cannot be is refused before anything is
//! computed.

use std::mem;

use super::{Clock, IntegrationScheme, Simulation};
use crate::backend::{Neighbours, SavedState};
use crate::bodies::Bodies;
use crate::diagnostics::Lost;
use crate::encounters::Encounters;
use crate::fields::{ExternalField, Orbit};
use crate::integrator::{Integrator, TimeSteps};
use crate::physics::{ForceLaw, Physics};
use crate::run::{BuildError, End, Run, RunSpec, Surroundings};
use crate::selection::DeviceChoice;
use crate::suggest::Advice;
use crate::units::Units;
use crate::variants::Variant;
use crate::variants::preferred::ForceAccuracy;

/// Settings of a simulation to be built; made by [`Simulation::builder`].
pub struct SimulationBuilder {
    bodies: Bodies,
    spec: RunSpec,
    scheme: Option<Box<dyn IntegrationScheme>>,
    around: Surroundings,
}

impl SimulationBuilder {
    pub(super) fn new(bodies: Bodies) -> Self {
        Self {
            bodies,
            spec: RunSpec::default(),
            scheme: None,
            around: Surroundings::general(),
        }
    }

    /// With this specification in place of all settings so far.
    #[must_use]
    pub fn spec(self, spec: RunSpec) -> Self {
        Self {
            spec,
            scheme: None,
            ..self
        }
    }

    /// With other kernels to choose from, or several ranks.
    #[must_use]
    pub fn surroundings(self, around: Surroundings) -> Self {
        Self { around, ..self }
    }

    fn set(mut self, set: impl FnOnce(&mut RunSpec)) -> Self {
        set(&mut self.spec);
        self
    }

    /// So many independent systems of equal size, one after another among the bodies; bodies of
    /// different systems do not attract each other.
    #[must_use]
    pub fn systems(self, systems: u32) -> Self {
        self.set(|spec| spec.systems = systems)
    }

    /// In this external field too; several add up.
    #[must_use]
    pub fn field(self, field: ExternalField) -> Self {
        self.set(|spec| spec.fields.push(field))
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
        let orbit = Orbit::new(position, velocity);
        self.set(|spec| spec.fields = mem::take(&mut spec.fields).on_orbit(orbit))
    }

    /// With these encounters looked for.
    #[must_use]
    pub fn encounters(self, encounters: Encounters) -> Self {
        self.set(|spec| spec.encounters = Some(encounters))
    }

    /// Units of the bodies, from which G follows unless it is given.
    #[must_use]
    pub fn units(self, units: Units) -> Self {
        self.set(|spec| spec.units = Some(units))
    }

    /// Name and advice of the [generator](crate::initial_conditions::Generator) that made the bodies,
    /// which choices then follow: of integrator, softening, step and accuracy.
    #[must_use]
    pub fn made_by(self, name: &'static str, advice: Advice) -> Self {
        self.set(|spec| spec.made_by = Some((name, advice)))
    }

    /// Force law; Newton's gravity where not given.
    #[must_use]
    pub fn law(self, law: ForceLaw) -> Self {
        self.set(|spec| spec.law = Some(law))
    }

    /// Gravitational constant in the units of the bodies; where not given, that of their
    /// [`units`](Self::units), or 1 where these are not known.
    #[must_use]
    pub fn g(self, g: f64) -> Self {
        self.set(|spec| spec.g = Some(g))
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
        self.set(|spec| {
            let Physics { law, g, softening } = physics;
            (spec.law, spec.g, spec.softening) = (Some(law), Some(g), Some(softening));
        })
    }

    /// Softening length ε ≥ 0; where not given, what [`choose_softening`](crate::suggest::choose_softening) says.
    #[must_use]
    pub fn softening(self, softening: f64) -> Self {
        self.set(|spec| spec.softening = Some(softening))
    }

    /// Time at the beginning, 0 where not given.
    #[must_use]
    pub fn start(self, time: f64) -> Self {
        self.set(|spec| spec.start = time)
    }

    /// Time step, negative to go back in time; the longest one with [`eta`](Self::eta). Where not given,
    /// what [`choose_step`](crate::suggest::choose_step) says, or with `eta` [`longest_step`](crate::suggest::longest_step).
    #[must_use]
    pub fn dt(self, dt: f64) -> Self {
        self.set(|spec| spec.dt = Some(dt))
    }

    /// Steps as long as this accuracy of Aarseth's criterion allows; the integrator must have jerks.
    #[must_use]
    pub fn eta(self, eta: f64) -> Self {
        self.set(|spec| spec.eta = Some(eta))
    }

    /// A step for each body: [block time steps](TimeSteps::Blocks). Integrator and [`eta`](Self::eta), where not
    /// given, are chosen by [`BlockSettings::or_chosen`](crate::suggest::BlockSettings::or_chosen). On a CPU, bodies
    /// without softening may have [others](crate::suggest::BlockSettings::with_groups). They have them if pairs form in
    /// the time of the run, and from 8192 bodies on.
    #[must_use]
    pub fn block_steps(self) -> Self {
        self.set(|spec| spec.stepping = Some(TimeSteps::Blocks))
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
        self.set(|spec| spec.neighbours = Some(neighbours))
    }

    /// Follows pairs and multiples apart in block time steps, or does not. Where not given, they are followed
    /// wherever that can be done: by Hermite's schemes without softening, in f64 on the CPU.
    ///
    /// ```
    /// use allpairs::selection::DeviceChoice;
    /// use allpairs::{Integrator, Simulation, plummer};
    ///
    /// let mut cluster = Simulation::builder(plummer(100, 1)?)
    ///     .softening(0.0)
    ///     .integrator(Integrator::Hermite4)
    ///     .block_steps()
    ///     .groups(true)
    ///     .device(DeviceChoice::Cpu)
    ///     .build()?;
    /// cluster.run_until(0.0625)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn groups(self, groups: bool) -> Self {
        self.set(|spec| spec.groups = Some(groups))
    }

    /// This integrator; where not given, what the bodies' generator advises, else leapfrog; but see
    /// [`block_steps`](Self::block_steps).
    #[must_use]
    pub fn integrator(self, integrator: Integrator) -> Self {
        Self {
            scheme: None,
            ..self
        }
        .set(|spec| (spec.integrator, spec.has_scheme) = (Some(integrator), false))
    }

    /// An integrator of one's own, with a fixed time step.
    #[must_use]
    pub fn scheme(self, scheme: impl IntegrationScheme + 'static) -> Self {
        Self {
            scheme: Some(Box::new(scheme)),
            ..self
        }
        .set(|spec| spec.has_scheme = true)
    }

    /// Device to compute on; the first GPU, or the CPU where there is none, if not given.
    #[must_use]
    pub fn device(self, device: DeviceChoice) -> Self {
        self.set(|spec| spec.device = device)
    }

    /// This variant instead of the device's preferred one.
    #[must_use]
    pub fn kernel(self, kernel: &'static Variant) -> Self {
        Self {
            around: self.around.preferring(kernel),
            ..self
        }
        .set(|spec| spec.kernel = Some(kernel.name.to_owned()))
    }

    /// Error that forces may have, by which the variant is chosen. Where not given, what suits the
    /// integrator; double precision where the softening is chosen to be 0.
    #[must_use]
    pub fn accuracy(self, accuracy: ForceAccuracy) -> Self {
        self.set(|spec| spec.accuracy = Some(accuracy))
    }

    /// Computes even forces whose error has no bound.
    #[must_use]
    pub fn allow_inaccurate(self) -> Self {
        self.set(|spec| spec.allow_inaccurate = true)
    }

    /// End of the run: a chosen step is shortened so that a whole number of steps reaches it.
    #[must_use]
    pub fn end(self, end: End) -> Self {
        self.set(|spec| spec.end = end)
    }

    /// The run that these settings make of the bodies, with every choice and its reason.
    ///
    /// # Errors
    /// A fault of the bodies or of a setting; or an unavailable device or kernel.
    pub fn resolve(&self) -> Result<Run, BuildError> {
        self.spec.resolve(&self.bodies, &self.around)
    }

    /// The simulation, with the first accelerations computed.
    ///
    /// # Errors
    /// A fault of the bodies or of a setting; or an unavailable device or kernel.
    pub fn build(self) -> Result<Simulation, BuildError> {
        let opened = self.resolve()?.open(&self.bodies)?;
        Ok(opened.begin_with(self.bodies, self.scheme)?.0)
    }

    /// The simulation that was [saved](Simulation::save), going on with the bits that it would have
    /// had: to be built with the settings that it had, and the bodies that it returned; with the
    /// [`kernel`](Self::kernel) that it had, where encounters may have changed their number. Encounters go on
    /// by [`Simulation::go_on_looking_for`], or in [`Run::resume`].
    ///
    /// # Errors
    /// Like [`build`](Self::build); or that no step is given.
    pub fn resume(self, clock: Clock, state: &SavedState) -> Result<Simulation, BuildError> {
        if self.spec.dt.is_none() {
            return Err(BuildError::NoTimeStep);
        }
        let spec = RunSpec {
            start: clock.start,
            encounters: None,
            ..self.spec
        };
        let run = spec.resolve_resumed(&self.bodies, &self.around)?;
        run.resume(self.bodies, (clock, state), Lost::default())
    }
}
