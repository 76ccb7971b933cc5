//! Size of a model: from N-body units to physical units.

use thiserror::Error;

use super::{GenerateError, Generator, Options};
use crate::io::Snapshot;
use crate::units::{Length, Mass, Units};

/// Units of bodies that were given a size, where no others are asked for.
const UNITS: &str = "pc";

/// The size of a model in N-body units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// The mass that is 1 in the model; not given for stars of a [mass function](super::MassFunction), of
    /// which it follows.
    pub mass: Option<Mass>,
    /// The length that is 1 in the model.
    pub radius: Length,
}

/// Reason why no model of a size, or in other units, was made.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SizeError {
    /// The model itself cannot be made.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A size for what is not in N-body units.
    #[error("`{0}` has its size already: leave mass and radius out (units give it other units)")]
    HasSize(&'static str),
    /// Units for a model without a size.
    #[error(
        "`{0}` is in N-body units, and units would give its numbers another meaning: add its size, \
         such as a mass of 1000Msun and a radius of 1pc, or leave the units out"
    )]
    NoSize(&'static str),
    /// A mass for stars that have masses.
    #[error("the mass follows from the masses of the stars: leave it out, or the mass function")]
    HasMass,
    /// A radius without a mass.
    #[error(
        "a radius alone gives no size: add a mass such as 1000Msun, or a mass function such as kroupa, \
         from which it follows"
    )]
    NoMass,
    /// A size with a unit of time beyond the range of f64.
    #[error("no unit of time follows from this mass and radius: give them nearer to 1")]
    NoTime,
    /// Units that are far too large or small.
    #[error("numbers in {0} are beyond the range of f64: give other units")]
    BeyondRange(Units),
}

impl Generator {
    /// Makes the bodies at their time, of a size if one is given, in the `wanted` units; and returns
    /// their units, if they have any.
    ///
    /// # Errors
    /// The errors of [`generate`](Self::generate), and a size that does not go with the units.
    pub fn make(
        &self,
        options: &Options,
        size: Option<Size>,
        wanted: Option<Units>,
    ) -> Result<(Snapshot, Option<Units>), SizeError> {
        let parse = |text: &str| -> Units {
            text.parse()
                .expect("a test parses the units of all generators")
        };
        let (mut bodies, stars) = self.stars(options)?;
        let mut time = self.time_of(options);
        let own = self.units_of(options).map(parse);
        let (own, wanted) = match (own, size) {
            (Some(own), None) => (own, wanted.unwrap_or(own)),
            (Some(_), Some(_)) => return Err(SizeError::HasSize(self.name)),
            (None, Some(Size { mass, radius })) => {
                let mass = match (mass, stars) {
                    (Some(mass), None) => mass,
                    (None, Some(solar_masses)) => Mass::solar(solar_masses),
                    (Some(_), Some(_)) => return Err(SizeError::HasMass),
                    (None, None) => return Err(SizeError::NoMass),
                };
                let own = Units::with_unit_g(radius.0, mass.0);
                if !own.time.is_normal() {
                    return Err(SizeError::NoTime);
                }
                (own, wanted.unwrap_or_else(|| parse(UNITS)))
            }
            (None, None) if wanted.is_some() => return Err(SizeError::NoSize(self.name)),
            (None, None) => return Ok((Snapshot { time, bodies }, None)),
        };
        if own != wanted {
            let factors = own.factors_to(&wanted);
            factors.apply(&mut bodies);
            time *= factors.time;
            if bodies.check().is_err() || !time.is_finite() {
                return Err(SizeError::BeyondRange(wanted));
            }
        }
        Ok((Snapshot { time, bodies }, Some(wanted)))
    }
}
