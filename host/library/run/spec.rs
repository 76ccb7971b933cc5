//! Everything that a run is asked for, in one value.

use crate::backend::Neighbours;
use crate::encounters::Encounters;
use crate::fields::Fields;
use crate::integrator::{Integrator, TimeSteps};
use crate::physics::ForceLaw;
use crate::selection::DeviceChoice;
use crate::suggest::Advice;
use crate::units::Units;
use crate::variants::Shape;
use crate::variants::preferred::ForceAccuracy;

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// The run takes this number of steps.
    Steps(u64),
    /// The run stands exactly at this time.
    Time(f64),
    /// The caller says later how far the run goes.
    Open,
}

/// Everything that a run is asked for. `None` leaves a setting to [`resolve`](Self::resolve).
///
/// Lengths, times and masses are in the units of the bodies. The program, Python and
/// [`SimulationBuilder`](crate::SimulationBuilder) fill a `RunSpec` and decide nothing themselves:
/// equal specifications give equal runs.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Number of independent systems of equal size, one after another among the bodies.
    pub systems: u32,
    /// Units of the bodies, from which G follows unless it is given.
    pub units: Option<Units>,
    /// Name and advice of the [generator](crate::initial_conditions::Generator) that made the bodies.
    pub made_by: Option<(&'static str, Advice)>,
    /// Force law; the law of the kernel's study, else gravity.
    pub law: Option<ForceLaw>,
    /// H of the law attract-repel.
    pub repulsion: Option<f64>,
    /// γ of the law attract-repel.
    pub drag: Option<f64>,
    /// Gravitational constant; the constant of the units, else 1.
    pub g: Option<f64>,
    /// Softening length ε ≥ 0; else [`choose_softening`](crate::suggest::choose_softening).
    pub softening: Option<f64>,
    /// External fields, and the orbit of the origin in them.
    pub fields: Fields,
    /// Collisions and escapes to look for.
    pub encounters: Option<Encounters>,
    /// Integrator; the integrator of the kernel's study, else what suits bodies and steps.
    pub integrator: Option<Integrator>,
    /// Fraction of the velocity that damped-euler takes out per unit time.
    pub damping: Option<f64>,
    /// Time step, negative to go back in time; the longest step with `eta`.
    pub dt: Option<f64>,
    /// Accuracy of Aarseth's criterion, which steps follow.
    pub eta: Option<f64>,
    /// One step for all bodies, or block time steps; else block time steps where bodies begin with hard pairs that
    /// these can follow apart.
    pub stepping: Option<TimeSteps>,
    /// Neighbour scheme of block time steps.
    pub neighbours: Option<Neighbours>,
    /// True to follow pairs and multiples apart in block time steps, false not to. Else it is done wherever it can be: from
    /// the beginning or, on a device and without pairs, while there are hard ones.
    pub groups: Option<bool>,
    /// Time at the beginning.
    pub start: f64,
    /// End of the run.
    pub end: End,
    /// Time between two snapshots, which a whole number of chosen steps fills.
    pub snapshot_every: Option<f64>,
    /// Device.
    pub device: DeviceChoice,
    /// Name of the kernel.
    pub kernel: Option<String>,
    /// Launch geometry that is not the kernel's own.
    pub shape: Shape,
    /// Sources of a tile, for kernels of independent systems that have tiles.
    pub tile: Option<u32>,
    /// Number of streams, for kernels of independent systems that use several.
    pub streams: Option<u32>,
    /// Error that forces may have. A kernel that is named overrules it, but for block time steps.
    pub accuracy: Option<ForceAccuracy>,
    /// True to compute forces whose error has no bound.
    pub allow_inaccurate: bool,
    /// True to take the kernel that `allpairs tune` found to be the fastest.
    pub tuned: bool,
    /// True if an [`IntegrationScheme`](crate::IntegrationScheme) of the caller takes the steps.
    pub has_scheme: bool,
}

impl Default for RunSpec {
    fn default() -> Self {
        Self {
            systems: 1,
            units: None,
            made_by: None,
            law: None,
            repulsion: None,
            drag: None,
            g: None,
            softening: None,
            fields: Fields::NONE,
            encounters: None,
            integrator: None,
            damping: None,
            dt: None,
            eta: None,
            stepping: None,
            neighbours: None,
            groups: None,
            start: 0.0,
            end: End::Open,
            snapshot_every: None,
            device: DeviceChoice::Auto,
            kernel: None,
            shape: Shape::default(),
            tile: None,
            streams: None,
            accuracy: None,
            allow_inaccurate: false,
            tuned: false,
            has_scheme: false,
        }
    }
}

impl RunSpec {
    /// Gravitational constant under a law: given, or that of the units, or 1.
    pub fn gravity(&self, law: ForceLaw) -> f64 {
        let units = self.units.filter(|_| law != ForceLaw::Unit);
        self.g.or(units.map(|units| units.gravity())).unwrap_or(1.0)
    }

    /// One step for all bodies, unless block time steps were given or chosen.
    pub fn time_steps(&self) -> TimeSteps {
        self.stepping.unwrap_or(TimeSteps::Shared)
    }

    /// Advice on how to simulate the bodies, from their generator or their units.
    pub fn advice(&self) -> Advice {
        let units = self.units.filter(|_| self.law != Some(ForceLaw::Unit));
        Advice::of(self.made_by.map(|(_, advice)| advice), units)
    }
}
