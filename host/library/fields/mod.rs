//! External fields: accelerations that do not come from the bodies, such as those of a galaxy.
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
mod milky_way;
mod numbers;
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
pub use milky_way::mwpotential2014;
pub use orbit::Orbit;
pub use parse::{NAMES, ParseFault, file_of, parse, parse_orbit};
pub use path::{Path, PathFault};

use gpu_kernels::fields::Kind;

/// A field of one's own, computed on the host: for backends of the CPU.
pub trait HostField: Send + Sync + fmt::Debug {
    /// Acceleration at a position, at a time.
    fn acceleration(&self, time: f64, position: [f64; 3]) -> [f64; 3];

    /// Derivative of the acceleration in time that a body feels there with this velocity. Hermite's
    /// scheme of fourth order needs it.
    fn jerk(&self, _time: f64, _position: [f64; 3], _velocity: [f64; 3]) -> Option<[f64; 3]> {
        None
    }

    /// Potential, whose gradient is the negative acceleration; without it the account of the energy
    /// lacks this field.
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
pub struct ExternalField {
    shape: Shape,
    centre: Centre,
}

/// Source of a field's acceleration.
#[derive(Clone, Debug)]
enum Shape {
    /// A formula with the [parameters](Formula) of its list.
    Formula(&'static Formula, Vec<f64>),
    /// The first post-Newtonian term of this body, with this speed of light.
    Relativity(usize, f64),
    /// A function of the host.
    Own(Arc<dyn HostField>),
}

/// Place of a field's centre.
#[derive(Clone, Debug)]
enum Centre {
    Fixed([f64; 3]),
    Moving(Arc<Path>),
}

/// A kind of field, as it is named and given.
#[derive(Debug)]
pub(crate) struct Formula {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
}

/// A parameter of a field.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) allowed: Allowed,
    pub(crate) default: Default,
}

/// Value of a parameter that is not given.
#[derive(Debug)]
pub(crate) enum Default {
    /// None: it must be given.
    Needed,
    /// A number.
    Is(f64),
    /// That of the first parameter.
    AsFirst,
}

/// Dimension of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Mass,
    Length,
    Speed,
    Frequency,
    Number,
}

/// Values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Finite,
    Positive,
    NotNegative,
    BelowTwo,
}

impl Allowed {
    fn holds(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::Finite => true,
                Self::Positive => value > 0.0,
                Self::NotNegative => value >= 0.0,
                Self::BelowTwo => (0.0..2.0).contains(&value),
            }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Finite => "finite",
            Self::Positive => "> 0 and finite",
            Self::NotNegative => "≥ 0 and finite",
            Self::BelowTwo => "≥ 0 and < 2",
        }
    }
}

/// Name of the first post-Newtonian term.
pub(crate) const FIRST_POST_NEWTONIAN: &str = "1pn";

const fn needed(name: &'static str, quantity: Quantity, allowed: Allowed) -> Parameter {
    Parameter {
        name,
        quantity,
        allowed,
        default: Default::Needed,
    }
}

const MASS: Parameter = needed("mass", Quantity::Mass, Allowed::Finite);
const SCALE: Parameter = needed("scale", Quantity::Length, Allowed::Positive);

const POINT: &Formula = &Formula {
    kind: Kind::Point,
    name: "point",
    parameters: &[MASS],
};
const PLUMMER: &Formula = &Formula {
    kind: Kind::Plummer,
    name: "plummer",
    parameters: &[MASS, SCALE],
};
const HERNQUIST: &Formula = &Formula {
    kind: Kind::Hernquist,
    name: "hernquist",
    parameters: &[MASS, SCALE],
};
const NFW: &Formula = &Formula {
    kind: Kind::Nfw,
    name: "nfw",
    parameters: &[MASS, SCALE],
};
const MIYAMOTO_NAGAI: &Formula = &Formula {
    kind: Kind::MiyamotoNagai,
    name: "miyamoto-nagai",
    parameters: &[
        MASS,
        needed("a", Quantity::Length, Allowed::NotNegative),
        needed("b", Quantity::Length, Allowed::Positive),
    ],
};
const ISOCHRONE: &Formula = &Formula {
    kind: Kind::Isochrone,
    name: "isochrone",
    parameters: &[MASS, SCALE],
};
const LOGARITHMIC: &Formula = &Formula {
    kind: Kind::Logarithmic,
    name: "logarithmic",
    parameters: &[
        needed("speed", Quantity::Speed, Allowed::Finite),
        Parameter {
            name: "core",
            quantity: Quantity::Length,
            allowed: Allowed::NotNegative,
            default: Default::Is(0.0),
        },
        Parameter {
            name: "flattening",
            quantity: Quantity::Number,
            allowed: Allowed::Positive,
            default: Default::Is(1.0),
        },
    ],
};
const POWER_LAW: &Formula = &Formula {
    kind: Kind::PowerLaw,
    name: "power-law",
    parameters: &[
        MASS,
        needed("cutoff", Quantity::Length, Allowed::Positive),
        needed("exponent", Quantity::Number, Allowed::BelowTwo),
    ],
};
const TIDE: &Formula = &Formula {
    kind: Kind::Tide,
    name: "tide",
    parameters: &[
        needed("omega", Quantity::Frequency, Allowed::Finite),
        Parameter {
            name: "kappa",
            quantity: Quantity::Frequency,
            allowed: Allowed::Finite,
            default: Default::AsFirst,
        },
        Parameter {
            name: "nu",
            quantity: Quantity::Frequency,
            allowed: Allowed::Finite,
            default: Default::AsFirst,
        },
    ],
};

/// All formulas.
pub(crate) const FORMULAS: [&Formula; 9] = [
    POINT,
    PLUMMER,
    HERNQUIST,
    NFW,
    MIYAMOTO_NAGAI,
    ISOCHRONE,
    LOGARITHMIC,
    POWER_LAW,
    TIDE,
];

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
        let centre = Centre::Moving(Arc::new(path));
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

/// The external fields of a run.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    list: Vec<ExternalField>,
    orbit: Option<Orbit>,
}

impl Fields {
    /// No fields.
    pub const NONE: Self = Self {
        list: vec![],
        orbit: None,
    };

    /// The same fields on bodies in a frame that does not turn and whose origin falls freely in them, on
    /// this orbit.
    #[must_use]
    pub fn on_orbit(self, orbit: Orbit) -> Self {
        let orbit = Some(orbit);
        Self { orbit, ..self }
    }

    /// The same fields of a run that begins at this time.
    pub(crate) fn starting(self, time: f64) -> Self {
        let orbit = self.orbit.map(|orbit| orbit.starting(time));
        Self { orbit, ..self }
    }

    /// The same fields about an origin that rests.
    fn at_rest(self) -> Self {
        Self {
            orbit: None,
            ..self
        }
    }

    /// The orbit of the origin, if it does not rest.
    pub fn orbit(&self) -> Option<&Orbit> {
        self.orbit.as_ref()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &ExternalField> {
        self.list.iter()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds one.
    pub fn push(&mut self, field: ExternalField) {
        self.list.push(field);
    }

    /// Returns whether the energy of bodies in them is conserved, and known.
    pub fn conserve_energy(&self) -> bool {
        self.iter().all(|field| {
            let known = |own: &Arc<dyn HostField>| own.potential(0.0, [0.0; 3]).is_some();
            !field.changes_with_time() && field.own_field().is_none_or(known)
        })
    }

    /// Checks their numbers.
    ///
    /// # Errors
    /// The first that makes no sense.
    fn check_numbers(&self) -> Result<(), FieldFault> {
        self.iter().try_for_each(ExternalField::check)?;
        let Some(orbit) = &self.orbit else {
            return Ok(());
        };
        orbit.check()?;
        let turns = |field: &&ExternalField| field.is(Kind::Tide);
        if let Some(field) = self.iter().find(turns) {
            return Err(FieldFault::OrbitInTurningFrame(field.name()));
        }
        // The relativistic term is of one of the bodies, and does not move the origin.
        match self
            .iter()
            .all(|field| field.own_field().is_none() && !field.is_formula())
        {
            true => Err(FieldFault::OrbitInNoField),
            false => Ok(()),
        }
    }

    /// Checks that they make sense, and that an integrator can follow them which takes so many derivatives
    /// of accelerations in time: none where it is made of kicks.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self, integrator: &'static str, derivatives: usize) -> Result<(), FieldFault> {
        self.check_numbers()?;
        for field in self.iter() {
            if field.needs_velocity() && derivatives == 0 {
                return Err(FieldFault::NeedsHermite {
                    field: field.name(),
                    integrator,
                });
            }
            let is_known = |own: &Arc<dyn HostField>| match derivatives {
                0 => true,
                1 => own.jerk(0.0, [0.0; 3], [0.0; 3]).is_some(),
                _ => false,
            };
            if !field.own_field().is_none_or(is_known) {
                return Err(FieldFault::NoDerivatives(integrator));
            }
        }
        Ok(())
    }

    /// Checks that paths reach from one time to another.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check_times(&self, from: f64, to: f64) -> Result<(), FieldFault> {
        for field in self.iter() {
            let Some([first, last]) = field.path().map(Path::span) else {
                continue;
            };
            for time in [from, to] {
                if !(first..=last).contains(&time) {
                    return Err(FieldFault::BeyondPath {
                        field: field.name(),
                        first,
                        last,
                        time,
                    });
                }
            }
        }
        Ok(())
    }
}

impl FromIterator<ExternalField> for Fields {
    fn from_iter<I: IntoIterator<Item = ExternalField>>(fields: I) -> Self {
        Self {
            list: fields.into_iter().collect(),
            orbit: None,
        }
    }
}

/// Reason why a field cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldFault {
    /// A number that makes no sense.
    #[error("`{parameter}` of the field {field} must be {allowed}, got {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The values that it may have.
        allowed: &'static str,
        /// The value that it was given.
        value: f64,
    },
    /// A centre for a field that is about the origin.
    #[error("the field {0} is about the origin of coordinates and takes no centre")]
    NoCentre(&'static str),
    /// A force that depends on velocities, with kicks.
    #[error(
        "the field {field} depends on velocities, which kicks cannot follow: choose the \
         `integrator` hermite4 or hermite6, not {integrator}"
    )]
    NeedsHermite {
        /// The field.
        field: &'static str,
        /// The integrator.
        integrator: &'static str,
    },
    /// A field of one's own without the derivatives that an integrator needs.
    #[error(
        "a field of your own has no derivative that {0} needs: `HostField::jerk` serves hermite4; \
         else choose leapfrog"
    )]
    NoDerivatives(&'static str),
    /// A path that ends before the run.
    #[error(
        "the path of the field {field} is from time {first} to {last}, and the run needs it at time \
         {time}: give more of the path, or end the run earlier"
    )]
    BeyondPath {
        /// The field.
        field: &'static str,
        /// First time of the path.
        first: f64,
        /// Last time of the path.
        last: f64,
        /// Time that is not on it.
        time: f64,
    },
    /// A number of an orbit that is none.
    #[error("`{parameter}` of the orbit must be finite, got {value}")]
    OfOrbit {
        /// The number.
        parameter: &'static str,
        /// The value that it was given.
        value: f64,
    },
    /// An orbit without a field.
    #[error(
        "an orbit needs a field to fall in: give `field`, such as mwpotential2014, or leave \
         out `orbit`"
    )]
    OrbitInNoField,
    /// An orbit in a frame that turns.
    #[error(
        "the field {0} is of a frame that turns with a circular orbit, and `orbit` of one that does not \
         turn: give one of them"
    )]
    OrbitInTurningFrame(&'static str),
    /// An orbit that begins in a singular centre.
    #[error(
        "the orbit begins in the centre of the field {0}, where its acceleration has no direction: give \
         `orbit` another position"
    )]
    OrbitInCentre(&'static str),
    /// An orbit that cannot be followed.
    #[error(
        "the orbit cannot be followed beyond time {time}, where it is at ({}, {}, {}): {why}; end the \
         run earlier, or give another orbit",
        Figure(position[0]), Figure(position[1]), Figure(position[2])
    )]
    OrbitEnds {
        /// Time until which it is known.
        time: f64,
        /// Position there.
        position: [f64; 3],
        /// Why it ends there.
        why: &'static str,
    },
    /// A backend that computes no fields.
    #[error(
        "kernel `{0}` computes independent systems, and external fields are for one system: leave \
         out `field`, or choose another kernel"
    )]
    Systems(&'static str),
    /// A field of the host, for a device.
    #[error("the field {0} is computed by the CPU alone: choose the `device` cpu")]
    OnDevice(&'static str),
    /// A body that there is not.
    #[error("the field 1pn is of body {body}, and there are {n} bodies, from 0 on")]
    NoBody {
        /// Index of the body.
        body: usize,
        /// Number of bodies.
        n: usize,
    },
    /// A body that is not the heaviest.
    #[error(
        "the field 1pn is of the dominant mass, and body {heavier} is heavier than body {body}: give \
         body={heavier}"
    )]
    NotDominant {
        /// Index of the body.
        body: usize,
        /// Index of a heavier one.
        heavier: usize,
    },
    /// The term of two bodies.
    #[error("the field 1pn is of one body, and was given {0} times")]
    TwoDominant(usize),
}
