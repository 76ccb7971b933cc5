//! Softening, time step, integrator and accuracy for those who do not choose their own.

mod block_steps;
mod close;
mod rounding;
mod softening;
mod step;
#[cfg(test)]
mod tests;

pub use block_steps::{BlockSettings, MANY, neighbours_pay};
pub use close::{fall_into_fields, orbits_are_close, turn_each_other};
pub use rounding::error_in_single;
pub use softening::{changed_pairs, choose_softening, softening};
pub use step::{are_on_orbits, choose_step, dynamical_time, longest_of_group, longest_step};

use crate::bodies::Bodies;
use crate::force::cpu;
use crate::integrator::Integrator;
use crate::physics::{ForceLaw, Physics};
use crate::settings::Setting;
use crate::simd::InstructionSet;
use crate::units::{ASTRONOMICAL_UNIT, Units};
use crate::variants::preferred::ForceAccuracy;

/// Below this number bodies are individuals — planets, a binary — and nothing is softened.
pub(crate) const FEW: usize = 100;

/// η of fourth order next to groups of few bodies that are not softened: a hierarchical triple keeps its energy.
pub(crate) const ETA_OF_FEW: f64 = 0.01;

/// Integrator and η of bodies that come near each other or a centre, and are not followed as pairs. A test particle that
/// falls to 1/20 000 of its distance changes its energy by 3·10⁻⁶ in nine passages, and by 4·10⁻² in as many steps
/// of `hermite4` with η = 0.01.
pub const NEAR: (Integrator, f64) = (Integrator::Hermite6, 0.02);

/// Advice to take steps for bodies that come near each other, as the settings that ask for them.
pub fn near_settings() -> String {
    let (integrator, eta) = NEAR;
    format!(
        "{} with {}",
        Setting::Integrator.with(integrator.name()),
        Setting::Eta.with(eta)
    )
}

/// Advice on how to simulate the bodies of a [generator](crate::initial_conditions::Generator).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// Softening length; `None` for bodies that each represent many: their mean distance decides.
    pub softening: Option<f64>,
    /// The integrator.
    pub integrator: Integrator,
    /// The step of this integrator, in those that [`choose_step`] has for a leapfrog.
    pub step: f64,
    /// Of the forces.
    pub accuracy: ForceAccuracy,
}

impl Advice {
    /// Bodies that stand for many: galaxies, clusters.
    pub const MANY: Self = Self {
        softening: None,
        integrator: Integrator::Leapfrog,
        step: 1.0,
        accuracy: ForceAccuracy::Single,
    };

    /// Bodies that stand for themselves.
    pub const INDIVIDUALS: Self = Self {
        softening: Some(0.0),
        accuracy: ForceAccuracy::Double,
        ..Self::MANY
    };

    /// Bodies on orbits that are to be compared with the sky's. Steps of sixth order are five times
    /// a leapfrog's, and follow Mercury to 0.3″ in a century.
    pub const PLANETS: Self = Self {
        integrator: Integrator::Yoshida6,
        step: 5.0,
        ..Self::INDIVIDUALS
    };

    /// The advice of the generator, if it is known; otherwise advice from the units, if they are known:
    /// lengths in au mean planets.
    pub fn of(made_by: Option<Self>, units: Option<Units>) -> Self {
        match made_by {
            Some(advice) => advice,
            None if are_planets(units) => Self::PLANETS,
            None => Self::MANY,
        }
    }

    /// Steps of a leapfrog that a step of an integrator is worth, as [`choose_step`] takes them.
    pub fn leapfrogs_a_step(&self, integrator: Integrator) -> f64 {
        match integrator == self.integrator {
            true => self.step,
            false => 1.0,
        }
    }
}

/// A value that was chosen, and why: `fewer than 100 bodies`.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The value.
    pub value: f64,
    /// The reason, as the rest of a sentence.
    pub why: String,
}

impl Chosen {
    fn new(value: f64, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { value, why }
    }
}

/// Facts known of bodies besides their columns.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The law that they feel.
    pub law: ForceLaw,
    /// Number of independent systems of equal size, one after another.
    pub systems: usize,
    /// Units of their numbers, if these are known.
    pub units: Option<Units>,
    /// Gravitational constant, in these units.
    pub g: f64,
    /// Name and advice of the generator that made them, if one did.
    pub made_by: Option<(&'a str, Advice)>,
    /// True if bodies have radii and may collide.
    pub collide: bool,
    /// True if block time steps were asked for, which follow pairs and encounters.
    pub follow_pairs: bool,
}

impl Known<'_> {
    /// One system under gravity, of which nothing else is known.
    pub const NOTHING: Self = Self {
        law: ForceLaw::Gravity,
        systems: 1,
        units: None,
        g: 1.0,
        made_by: None,
        collide: false,
        follow_pairs: false,
    };
}

/// Independent systems of equal size, one after another in `bodies`.
///
/// # Panics
/// If there are none.
fn each_system(bodies: &Bodies, systems: usize) -> impl Iterator<Item = Bodies> {
    let each = bodies.len() / systems;
    (0..systems).map(move |system| bodies.part(system * each..(system + 1) * each))
}

/// Reason why bodies have no N-body units.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "N-body units need bodies that attract each other, and here the potential energy is {potential}"
)]
pub struct NoStandardUnits {
    /// Potential energy with G = 1.
    pub potential: f64,
}

/// The system in which these bodies, now in `units`, have mass 1, potential energy −1/2 and G = 1:
/// the N-body units of Hénon.
///
/// # Errors
/// If they do not attract each other.
pub fn standard_units(bodies: &Bodies, units: Units) -> Result<Units, NoStandardUnits> {
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };
    let potential = cpu::potential_energy(bodies, &physics, InstructionSet::detect());
    let mass = bodies.total_mass();
    if !(potential < 0.0 && mass > 0.0) {
        return Err(NoStandardUnits { potential });
    }
    // U = −M²/(2 r) for the virial radius r, with G taken out.
    let radius = mass * mass / (-2.0 * potential);
    Ok(Units::with_unit_g(radius * units.length, mass * units.mass))
}

/// True if lengths are in au.
fn are_planets(units: Option<Units>) -> bool {
    units.is_some_and(|units| is_near(units.length, ASTRONOMICAL_UNIT))
}

/// Error that forces of this softening may have, if it decides: bodies that are not softened come close
/// to each other, and single precision does not keep their orbits.
pub fn accuracy(softening: f64) -> Option<ForceAccuracy> {
    (softening == 0.0).then_some(ForceAccuracy::Double)
}

fn is_near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= 1e-6
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3)
        .map(|axis| (a[axis] - b[axis]).powi(2))
        .sum::<f64>()
        .sqrt()
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}
