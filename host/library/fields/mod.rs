//! External fields: accelerations that do not come from the bodies, such as the field of a galaxy.
//!
//! ```
//! use allpairs::fields::ExternalField;
//! use allpairs::{Simulation, plummer};
//!
//! // A cluster at the edge of a galaxy that is a thousand times as heavy.
//! let galaxy = ExternalField::nfw(1000.0, 20.0).at([50.0, 0.0, 0.0]);
//! let mut cluster = Simulation::builder(plummer(100, 1)?).field(galaxy).dt(0.01).build()?;
//! cluster.run_until(0.1)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The formulas of accelerations and their derivatives are those of [`gpu_kernels::fields`], on the
//! CPU as on a GPU. Potentials, which only the account of the energy needs, are computed here.

mod external;
mod fault;
mod formulas;
mod list;
mod milky_way;
mod orbit;
mod parse;
mod path;
mod potential;
mod relativity;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub(crate) use external::BODIES_OF_A_TASK;
pub use external::External;
pub use fault::FieldFault;
pub(crate) use formulas::{Allowed, Default, FORMULAS, Formula, Quantity};
pub use list::Fields;
pub use milky_way::mwpotential2014;
pub use orbit::Orbit;
pub use parse::{NAMES, ParseFault, file_of, parse, parse_orbit};
pub use path::{Path, PathFault};
pub use potential::Potential;
pub(crate) use relativity::Relativity;

use formulas::{
    HERNQUIST, ISOCHRONE, LOGARITHMIC, MIYAMOTO_NAGAI, NFW, PLUMMER, POINT, POWER_LAW, TIDE,
};
use gpu_kernels::fields::Kind;

/// A field of one's own, computed on the host: for backends of the CPU.
pub trait HostField: Send + Sync + fmt::Debug {
    /// Acceleration at this position and time.
    fn acceleration(&self, time: f64, position: [f64; 3]) -> [f64; 3];

    /// Derivative of the acceleration in time that a body feels there with this velocity. Hermite's
    /// scheme of fourth order needs it.
    fn jerk(&self, _time: f64, _position: [f64; 3], _velocity: [f64; 3]) -> Option<[f64; 3]> {
        None
    }

    /// Potential; its gradient is the negative acceleration. Without it, the energy does not include this
    /// field.
    fn potential(&self, _time: f64, _position: [f64; 3]) -> Option<f64> {
        None
    }

    /// Returns whether it changes with time.
    fn changes_with_time(&self) -> bool {
        true
    }
}

/// An external field.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExternalField {
    pub(crate) shape: Shape,
    pub(crate) centre: Centre,
}

/// Source of a field's acceleration.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Shape {
    /// A formula with the [parameters](Formula) of its list.
    #[cfg_attr(feature = "serde", serde(with = "formulas::form"))]
    Formula(&'static Formula, Vec<f64>),
    /// The first post-Newtonian term of this body, with this speed of light.
    Relativity(usize, f64),
    /// A function of the host, which stays there.
    #[cfg_attr(feature = "serde", serde(skip))]
    Own(Arc<dyn HostField>),
}

/// Place of a field's centre.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Centre {
    Fixed([f64; 3]),
    Moving(Path),
}

/// Name of the first post-Newtonian term.
pub const FIRST_POST_NEWTONIAN: &str = "1pn";

impl ExternalField {
    fn of(formula: &'static Formula, values: &[f64]) -> Self {
        Self {
            shape: Shape::Formula(formula, values.to_vec()),
            centre: Centre::Fixed([0.0; 3]),
        }
    }

    /// A point mass: `φ = −GM/r`.
    pub fn point(mass: f64) -> Self {
        Self::of(POINT, &[mass])
    }

    /// Plummer's sphere: `φ = −GM/√(r² + b²)` with the scale b.
    pub fn plummer(mass: f64, scale: f64) -> Self {
        Self::of(PLUMMER, &[mass, scale])
    }

    /// Hernquist's sphere (1990): `φ = −GM/(r + a)` with the scale a.
    pub fn hernquist(mass: f64, scale: f64) -> Self {
        Self::of(HERNQUIST, &[mass, scale])
    }

    /// The halo of Navarro, Frenk & White (1997): `φ = −GM ln(1 + r/a)/r` with the scale a. Its mass
    /// without bound, `M = 4π ρ₀ a³` is what lies within 5.3 scales.
    pub fn nfw(mass: f64, scale: f64) -> Self {
        Self::of(NFW, &[mass, scale])
    }

    /// The disc of Miyamoto & Nagai (1975) in the plane z = 0: `φ = −GM/√(R² + (a + √(z² + b²))²)`.
    pub fn miyamoto_nagai(mass: f64, a: f64, b: f64) -> Self {
        Self::of(MIYAMOTO_NAGAI, &[mass, a, b])
    }

    /// Hénon's isochrone: `φ = −GM/(b + √(b² + r²))` with the scale b.
    pub fn isochrone(mass: f64, scale: f64) -> Self {
        Self::of(ISOCHRONE, &[mass, scale])
    }

    /// A logarithmic halo: `φ = ½ v² ln(R² + z²/q² + c²)` with the speed v of circular orbits far out, the
    /// core radius c and the flattening q of the potential.
    pub fn logarithmic(speed: f64, core: f64, flattening: f64) -> Self {
        Self::of(LOGARITHMIC, &[speed, core, flattening])
    }

    /// A bulge of density `ρ ∝ r⁻ᵅ e^(−(r/c)²)`, 0 ≤ α < 2, and this mass in all.
    pub fn power_law(mass: f64, cutoff: f64, exponent: f64) -> Self {
        Self::of(POWER_LAW, &[mass, cutoff, exponent])
    }

    /// The tidal field of a galaxy on a cluster on a circular orbit, in the cluster's frame, which turns
    /// with Ω about z and of which x points away from the galaxy (Hill's approximation), with
    /// Coriolis' acceleration: `(4Ω² − κ²) x + 2Ω v_y`, `−2Ω v_x`, `−ν² z`. Where the galaxy is a point mass, the
    /// frequencies κ and ν of orbits that are not circular are Ω.
    pub fn tide(omega: f64, kappa: f64, nu: f64) -> Self {
        Self::of(TIDE, &[omega, kappa, nu])
    }

    /// The first post-Newtonian term of the body with this index, the heaviest, as others feel it that do not
    /// disturb it, in harmonic coordinates. For backends of the CPU.
    pub fn first_post_newtonian(body: usize, light_speed: f64) -> Self {
        Self {
            shape: Shape::Relativity(body, light_speed),
            centre: Centre::Fixed([0.0; 3]),
        }
    }

    /// A field of one's own, for backends of the CPU.
    pub fn own(field: impl HostField + 'static) -> Self {
        Self {
            shape: Shape::Own(Arc::new(field)),
            centre: Centre::Fixed([0.0; 3]),
        }
    }

    /// The same field about this centre instead of the origin.
    #[must_use]
    pub fn at(self, centre: [f64; 3]) -> Self {
        let centre = Centre::Fixed(centre);
        Self { centre, ..self }
    }

    /// The same field with its centre on a path.
    #[must_use]
    pub fn along(self, path: Path) -> Self {
        let centre = Centre::Moving(path);
        Self { centre, ..self }
    }

    /// Name of its kind.
    pub fn name(&self) -> &'static str {
        match &self.shape {
            Shape::Formula(formula, _) => formula.name,
            Shape::Relativity(..) => FIRST_POST_NEWTONIAN,
            Shape::Own(_) => "of one's own",
        }
    }

    /// Checks its numbers.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn check(&self) -> Result<(), FieldFault> {
        let fault = |parameter, allowed: Allowed, value| FieldFault::Value {
            field: self.name(),
            parameter,
            allowed: allowed.words(),
            value,
        };
        if let Shape::Formula(formula, values) = &self.shape {
            for (parameter, &value) in formula.parameters.iter().zip(values) {
                if !parameter.allowed.holds(value) {
                    return Err(fault(parameter.name, parameter.allowed, value));
                }
            }
        }
        if let Shape::Relativity(_, light) = self.shape
            && !Allowed::Positive.holds(light)
        {
            return Err(fault("c", Allowed::Positive, light));
        }
        let Centre::Fixed(centre) = self.centre else {
            return match self.is_at_origin() {
                true => Err(FieldFault::NoCentre(self.name())),
                false => Ok(()),
            };
        };
        for (name, value) in ["x", "y", "z"].into_iter().zip(centre) {
            if !value.is_finite() {
                return Err(fault(name, Allowed::Finite, value));
            }
        }
        match self.is_at_origin() && centre != [0.0; 3] {
            true => Err(FieldFault::NoCentre(self.name())),
            false => Ok(()),
        }
    }

    /// Returns whether it is about the origin of coordinates whatever else is said.
    fn is_at_origin(&self) -> bool {
        match &self.shape {
            Shape::Formula(..) => self.is(Kind::Tide),
            Shape::Own(_) | Shape::Relativity(..) => true,
        }
    }

    /// The path of its centre, if it moves.
    pub fn path(&self) -> Option<&Path> {
        match &self.centre {
            Centre::Fixed(_) => None,
            Centre::Moving(path) => Some(path),
        }
    }

    /// Returns whether it changes with time: energy is not conserved then.
    pub fn changes_with_time(&self) -> bool {
        match (&self.centre, &self.shape) {
            (Centre::Moving(_), _) => true,
            (Centre::Fixed(_), Shape::Own(own)) => own.changes_with_time(),
            (Centre::Fixed(_), Shape::Formula(..) | Shape::Relativity(..)) => false,
        }
    }

    /// Returns whether it depends on velocities, as the force of a frame that turns does.
    pub fn needs_velocity(&self) -> bool {
        match &self.shape {
            Shape::Formula(formula, _) => formula.kind.needs_velocity(),
            Shape::Relativity(..) => true,
            Shape::Own(_) => false,
        }
    }

    /// Returns whether it is of a frame that turns.
    pub(crate) fn turns(&self) -> bool {
        self.is(Kind::Tide)
    }

    /// Index of the body that it is the post-Newtonian term of, if it is one.
    pub(crate) fn dominant_body(&self) -> Option<usize> {
        match self.shape {
            Shape::Relativity(body, _) => Some(body),
            Shape::Formula(..) | Shape::Own(_) => None,
        }
    }

    /// Derivatives of the acceleration in time that the host knows, if the host computes it.
    pub(crate) fn known_derivatives(&self) -> Option<usize> {
        let own = self.own_field()?;
        Some(usize::from(own.jerk(0.0, [0.0; 3], [0.0; 3]).is_some()))
    }

    fn is_formula(&self) -> bool {
        matches!(self.shape, Shape::Formula(..))
    }

    fn is(&self, kind: Kind) -> bool {
        matches!(&self.shape, Shape::Formula(formula, _) if formula.kind == kind)
    }

    /// Returns whether the acceleration has no direction, or no bound, at the centre.
    fn is_singular(&self) -> bool {
        match &self.shape {
            Shape::Formula(formula, values) => match formula.kind {
                Kind::Point | Kind::Hernquist | Kind::Nfw => true,
                Kind::Logarithmic => values[1] == 0.0,
                Kind::PowerLaw => values[2] >= 1.0,
                Kind::Plummer | Kind::MiyamotoNagai | Kind::Isochrone | Kind::Tide => false,
            },
            Shape::Own(_) | Shape::Relativity(..) => false,
        }
    }

    fn own_field(&self) -> Option<&Arc<dyn HostField>> {
        match &self.shape {
            Shape::Formula(..) | Shape::Relativity(..) => None,
            Shape::Own(own) => Some(own),
        }
    }
}

/// Kind, parameters and centre, in the units of the run.
impl fmt::Display for ExternalField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Shape::Formula(formula, values) = &self.shape {
            for (i, (parameter, value)) in formula.parameters.iter().zip(values).enumerate() {
                let comma = if i == 0 { ":" } else { "," };
                write!(f, "{comma} {} {}", parameter.name, Figure(*value))?;
            }
        }
        if let Shape::Relativity(body, light) = self.shape {
            write!(f, ": of body {body}, speed of light {}", Figure(light))?;
        }
        match &self.centre {
            _ if self.is_at_origin() => Ok(()),
            Centre::Fixed([x, y, z]) => {
                write!(
                    f,
                    ", about ({}, {}, {})",
                    Figure(*x),
                    Figure(*y),
                    Figure(*z)
                )
            }
            Centre::Moving(path) => write!(f, ", {path}"),
        }
    }
}

/// A number with six digits at most.
struct Figure(f64);

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
        match value.abs() {
            0.0 => f.write_str("0"),
            1e-3..1e6 => write!(f, "{rounded}"),
            _ => write!(f, "{rounded:e}"),
        }
    }
}
