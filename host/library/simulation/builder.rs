//! Setting up a simulation: what is not said is chosen, and what cannot be is refused before anything is
//! computed.

use super::{Scheme, Simulation};
use crate::backend::ForceError;
use crate::bodies::{Bodies, BodyFault};
use crate::integrator::{Integrator, Pace, Stepping};
use crate::machine::Machine;
use crate::physics::{Law, Physics};
use crate::plan::PlanError;
use crate::selection::{DeviceChoice, Request, Selection, SelectionError, fits, select};
use crate::suggest;
use crate::variants::Variant;
use crate::variants::preferred::{self, ForceAccuracy};

/// Settings of a simulation to be built; made by [`Simulation::builder`].
pub struct SimulationBuilder {
    bodies: Bodies,
    law: Law,
    g: f64,
    softening: Option<f64>,
    start: f64,
    dt: Option<f64>,
    eta: Option<f64>,
    stepping: Stepping,
    integrator: Integrator,
    scheme: Option<Box<dyn Scheme>>,
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
    /// Block time steps without an accuracy.
    #[error("block time steps need `eta`, the accuracy that each body's step is chosen by")]
    BlocksWithoutEta,
    /// An unavailable device or kernel.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A launch that does not fit the device.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The backend refused.
    #[error(transparent)]
    Force(#[from] ForceError),
}

impl SimulationBuilder {
    pub(super) fn new(bodies: Bodies) -> Self {
        Self {
            bodies,
            law: Law::Gravity,
            g: 1.0,
            softening: None,
            start: 0.0,
            dt: None,
            eta: None,
            stepping: Stepping::Shared,
            integrator: Integrator::Leapfrog,
            scheme: None,
            device: DeviceChoice::Auto,
            kernel: None,
            accuracy: None,
            allow_inaccurate: false,
        }
    }

    /// Newton's gravity with this constant G, in the units of the bodies, and this softening length ε.
    #[must_use]
    pub fn gravity(self, g: f64, softening: f64) -> Self {
        self.physics(Physics {
            law: Law::Gravity,
            g,
            softening,
        })
    }

    /// This force law with these constants.
    #[must_use]
    pub fn physics(self, physics: Physics) -> Self {
        let Physics { law, g, softening } = physics;
        let softening = Some(softening);
        Self {
            law,
            g,
            softening,
            ..self
        }
    }

    /// Softening length ε ≥ 0; where not given, what [`suggest::softening`] says.
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
    /// what [`suggest::time_step`] says, or with `eta` [`suggest::longest_step`].
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

    /// A step for each body: [block time steps](Stepping::Blocks).
    #[must_use]
    pub fn block_steps(self) -> Self {
        let stepping = Stepping::Blocks;
        Self { stepping, ..self }
    }

    /// This integrator; leapfrog where not given.
    #[must_use]
    pub fn integrator(self, integrator: Integrator) -> Self {
        let scheme = None;
        Self {
            integrator,
            scheme,
            ..self
        }
    }

    /// An integrator of one's own, with a fixed time step.
    #[must_use]
    pub fn scheme(self, scheme: impl Scheme + 'static) -> Self {
        let scheme: Option<Box<dyn Scheme>> = Some(Box::new(scheme));
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

    /// Error that forces may have, by which the variant is chosen.
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
        self.check()?;
        let physics = Physics {
            law: self.law,
            g: self.g,
            softening: match self.softening {
                Some(softening) => softening,
                None => suggest::softening(&self.bodies),
            },
        };
        let Selection { variant, place, .. } = select(&Request {
            device: self.device,
            kernel: self.kernel,
            law: self.law,
            bodies: self.bodies.len(),
            accuracy: self.accuracy,
            integrator: self.integrator,
            steps: self.stepping,
        })?;
        fits(variant, &place, self.law, self.bodies.len())?;
        let digits = preferred::block_digits(self.integrator.order(), self.accuracy);
        let digits = (self.stepping == Stepping::Blocks).then_some(digits);
        let machine = Machine::new(place)
            .allow_inaccurate(self.allow_inaccurate)
            .block_steps(self.integrator, digits);
        let mut backend = machine.backend(variant, &self.bodies, physics)?;
        let dt = match self.dt {
            Some(dt) => dt,
            None => {
                backend.accelerate()?;
                let accelerations = backend.accelerations()?;
                let suggested = match self.eta {
                    Some(_) => suggest::longest_step(&self.bodies, &accelerations),
                    None => suggest::time_step(&self.bodies, &physics, &accelerations),
                };
                if suggested == 0.0 {
                    return Err(BuildError::NoTimeStep);
                }
                suggested
            }
        };
        let pace = match self.eta {
            Some(eta) => Pace::Adaptive {
                eta,
                longest: dt,
                end: f64::INFINITY,
                steps: self.stepping,
            },
            None => Pace::Fixed(dt),
        };
        let Self {
            bodies,
            integrator,
            start,
            scheme,
            ..
        } = self;
        let mut simulation = Simulation::new(backend, bodies, physics, integrator, pace, start)?;
        if let Some(mut scheme) = scheme {
            scheme.prepare(&mut *simulation.backend)?;
            simulation.scheme = Some(scheme);
        }
        Ok(simulation)
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
        let adaptive = self.eta.is_some();
        demand("g", Some(self.g), f64::is_finite, "finite")?;
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
        let chooses = self.integrator.needs_jerks() && self.scheme.is_none();
        if (adaptive || self.stepping == Stepping::Blocks) && !chooses {
            let name = self.integrator.name();
            let own = self.scheme.as_ref().map(|_| "one of your own");
            return Err(BuildError::NoAdaptiveSteps(own.unwrap_or(name)));
        }
        if self.stepping == Stepping::Blocks && !adaptive {
            return Err(BuildError::BlocksWithoutEta);
        }
        Ok(())
    }
}
