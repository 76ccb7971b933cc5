//! Initial conditions: bodies made up by formula.
//!
//! All are in N-body units: `G = 1`, total mass 1. [`GENERATORS`] is the list that everything
//! which offers them by name reads; each generator is also a plain function.
//!
//! The same arguments give the same bits on every machine: the random numbers come from a
//! generator with a fixed algorithm (PCG XSL RR 128/64, O'Neill 2014), they are drawn by one
//! thread, and what is done with them needs only `+ - × ÷ √`, which IEEE 754 rounds exactly;
//! `sin`, `pow` and the like differ between mathematics libraries.

mod plummer;
mod two_body;
mod uniform_sphere;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use thiserror::Error;

use crate::bodies::Bodies;

pub use plummer::plummer;
pub use two_body::two_body;
pub use uniform_sphere::uniform_sphere;

/// A named way to make initial conditions.
#[derive(Debug)]
pub struct Generator {
    /// The name, unique in [`GENERATORS`].
    pub name: &'static str,
    /// What it makes, in one line.
    pub summary: &'static str,
    /// The options that it listens to, besides the seed.
    pub parameters: &'static [Parameter],
    make: fn(&Options) -> Result<Bodies, GenerateError>,
}

/// All generators, in the order in which they are listed.
pub const GENERATORS: &[Generator] = &[
    Generator {
        name: "plummer",
        summary: "Plummer sphere in equilibrium, standard units (energy -1/4)",
        parameters: &[Parameter::Bodies],
        make: |options| plummer(options.bodies.unwrap_or(DEFAULT_BODIES), options.seed),
    },
    Generator {
        name: "uniform-sphere",
        summary: "homogeneous sphere of radius 1, at rest unless a virial ratio is given",
        parameters: &[Parameter::Bodies, Parameter::VirialRatio],
        make: |options| {
            let bodies = options.bodies.unwrap_or(DEFAULT_BODIES);
            uniform_sphere(bodies, options.seed, options.virial_ratio.unwrap_or(0.0))
        },
    },
    Generator {
        name: "two-body",
        summary: "binary at apocentre, period 2π; circular and of equal masses by default",
        parameters: &[Parameter::MassRatio, Parameter::Eccentricity],
        make: |options| {
            two_body(
                options.mass_ratio.unwrap_or(1.0),
                options.eccentricity.unwrap_or(0.0),
            )
        },
    },
];

/// The number of bodies where none is given.
pub const DEFAULT_BODIES: usize = 16_384;

impl Generator {
    /// Makes the bodies.
    ///
    /// # Errors
    /// A value out of range, or an option that this generator does not listen to.
    pub fn generate(&self, options: &Options) -> Result<Bodies, GenerateError> {
        for parameter in Parameter::ALL {
            if options.gives(parameter) && !self.parameters.contains(&parameter) {
                return Err(GenerateError::NotAParameter {
                    generator: self.name,
                    parameter,
                });
            }
        }
        (self.make)(options)
    }
}

/// The generator called `name`.
///
/// # Errors
/// [`GenerateError::UnknownGenerator`], which lists the names.
pub fn find(name: &str) -> Result<&'static Generator, GenerateError> {
    GENERATORS
        .iter()
        .find(|generator| generator.name == name)
        .ok_or_else(|| GenerateError::UnknownGenerator(name.to_owned()))
}

/// What can be asked of a generator. `None` leaves the choice to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Seed of the random numbers; generators that draw none pass over it.
    pub seed: u64,
    /// Number of bodies.
    pub bodies: Option<usize>,
    /// Twice the kinetic over the potential energy, `2K/|U|`: 0 at rest, 1 in balance.
    pub virial_ratio: Option<f64>,
    /// Mass of the second body over that of the first.
    pub mass_ratio: Option<f64>,
    /// Eccentricity of the orbit: 0 a circle, below 1.
    pub eccentricity: Option<f64>,
}

impl Options {
    fn gives(&self, parameter: Parameter) -> bool {
        match parameter {
            Parameter::Bodies => self.bodies.is_some(),
            Parameter::VirialRatio => self.virial_ratio.is_some(),
            Parameter::MassRatio => self.mass_ratio.is_some(),
            Parameter::Eccentricity => self.eccentricity.is_some(),
        }
    }
}

/// An option of which some generators know and others do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// [`Options::bodies`].
    Bodies,
    /// [`Options::virial_ratio`].
    VirialRatio,
    /// [`Options::mass_ratio`].
    MassRatio,
    /// [`Options::eccentricity`].
    Eccentricity,
}

impl Parameter {
    /// All parameters.
    pub const ALL: [Parameter; 4] = [
        Self::Bodies,
        Self::VirialRatio,
        Self::MassRatio,
        Self::Eccentricity,
    ];

    /// The parameter's name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodies => "number of bodies",
            Self::VirialRatio => "virial ratio",
            Self::MassRatio => "mass ratio",
            Self::Eccentricity => "eccentricity",
        }
    }
}

/// Why no initial conditions were made.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// No generator of this name.
    #[error(
        "no initial conditions are called `{0}`; there are {names}",
        names = GENERATORS.iter().map(|generator| generator.name).collect::<Vec<_>>().join(", ")
    )]
    UnknownGenerator(String),
    /// An option that would have no effect.
    #[error("`{generator}` has no {}; leave it out", parameter.name())]
    NotAParameter {
        /// Name of the generator.
        generator: &'static str,
        /// The option.
        parameter: Parameter,
    },
    /// An option out of its range, infinite or not a number.
    #[error("the {} is {value}, it must be {range}", parameter.name())]
    OutOfRange {
        /// The option.
        parameter: Parameter,
        /// The value given.
        value: f64,
        /// What it should be.
        range: &'static str,
    },
    /// No bodies were asked for.
    #[error("0 bodies were asked for, there must be at least 1")]
    NoBodies,
    /// More bodies than memory.
    #[error("there is no memory for {bodies} bodies; ask for fewer")]
    OutOfMemory {
        /// The number asked for.
        bodies: usize,
    },
}

/// Empty arrays with room for `n` bodies, at least one.
fn room_for(n: usize) -> Result<Bodies, GenerateError> {
    if n == 0 {
        return Err(GenerateError::NoBodies);
    }
    let mut bodies = Bodies::default();
    bodies
        .try_reserve(n)
        .map_err(|_| GenerateError::OutOfMemory { bodies: n })?;
    Ok(bodies)
}

/// Random numbers and what is made of them by exactly rounded arithmetic.
struct Random(Pcg64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// Uniform in `[0, 1)`: 53 random bits, the precision of f64.
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in the ball of radius 1, by rejection from the cube around it.
    fn in_ball(&mut self) -> [f64; 3] {
        loop {
            let point = [(); 3].map(|()| 2.0 * self.uniform() - 1.0);
            if norm_squared(point) <= 1.0 {
                return point;
            }
        }
    }

    /// A vector of the given length in a random direction.
    fn on_sphere(&mut self, length: f64) -> [f64; 3] {
        loop {
            let point = self.in_ball();
            let square = norm_squared(point);
            // Directions of points very near the centre are coarse for lack of bits.
            if square > 1e-12 {
                let scale = length / square.sqrt();
                return point.map(|coordinate| scale * coordinate);
            }
        }
    }
}

fn norm_squared([x, y, z]: [f64; 3]) -> f64 {
    x * x + y * y + z * z
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinetic and potential energy by direct summation, G = 1, no softening.
    pub(super) fn energies(bodies: &Bodies) -> (f64, f64) {
        let list: Vec<_> = bodies.iter().collect();
        let (mut kinetic, mut potential) = (0.0, 0.0);
        for (i, a) in list.iter().enumerate() {
            kinetic += 0.5 * a.mass * norm_squared(a.velocity);
            for b in &list[..i] {
                let separation = [0, 1, 2].map(|k| a.position[k] - b.position[k]);
                potential -= a.mass * b.mass / norm_squared(separation).sqrt();
            }
        }
        (kinetic, potential)
    }

    /// Centre of mass at rest at the origin, up to rounding: coordinates of up to `largest` are
    /// added n times and shifted once.
    pub(super) fn assert_centred(bodies: &Bodies, largest: f64) {
        let tolerance = bodies.len() as f64 * largest * f64::EPSILON;
        let centre = bodies.centre_of_mass().unwrap();
        let drift = bodies.centre_of_mass_velocity().unwrap();
        for value in centre.into_iter().chain(drift) {
            assert!(value.abs() <= tolerance, "{value:e}");
        }
    }

    #[test]
    fn the_list_is_sound() {
        for (i, generator) in GENERATORS.iter().enumerate() {
            assert!(
                GENERATORS[..i]
                    .iter()
                    .all(|other| other.name != generator.name)
            );
            assert_eq!(find(generator.name).unwrap().name, generator.name);
            assert!(!generator.summary.is_empty());

            let bodies = generator
                .parameters
                .contains(&Parameter::Bodies)
                .then_some(100);
            let made = generator
                .generate(&Options {
                    bodies,
                    ..Options::default()
                })
                .unwrap();
            assert_eq!(made.check(), Ok(()));
            assert_eq!(made.len(), bodies.unwrap_or(2));
            assert!(made.id.iter().copied().eq(0..made.len() as u64));
            assert!((made.total_mass() - 1.0).abs() <= made.len() as f64 * f64::EPSILON);
        }
        let message = find("torus").unwrap_err().to_string();
        assert!(
            message.contains("`torus`") && message.contains("plummer"),
            "{message}"
        );
    }

    #[test]
    fn options_without_effect_are_refused() {
        let given = Options {
            seed: 1,
            bodies: Some(2),
            virial_ratio: Some(0.5),
            mass_ratio: Some(0.5),
            eccentricity: Some(0.5),
        };
        for generator in GENERATORS {
            for parameter in Parameter::ALL {
                let mut options = Options {
                    seed: 1,
                    ..Options::default()
                };
                match parameter {
                    Parameter::Bodies => options.bodies = given.bodies,
                    Parameter::VirialRatio => options.virial_ratio = given.virial_ratio,
                    Parameter::MassRatio => options.mass_ratio = given.mass_ratio,
                    Parameter::Eccentricity => options.eccentricity = given.eccentricity,
                }
                let refused = matches!(
                    generator.generate(&options),
                    Err(GenerateError::NotAParameter { parameter: named, .. }) if named == parameter
                );
                assert_eq!(refused, !generator.parameters.contains(&parameter));
            }
        }
    }

    #[test]
    fn impossible_numbers_of_bodies_are_refused() {
        for generator in GENERATORS {
            if generator.parameters.contains(&Parameter::Bodies) {
                let of = |n| {
                    generator.generate(&Options {
                        bodies: Some(n),
                        ..Options::default()
                    })
                };
                assert_eq!(of(0), Err(GenerateError::NoBodies));
                assert_eq!(
                    of(usize::MAX),
                    Err(GenerateError::OutOfMemory { bodies: usize::MAX })
                );
                assert_eq!(of(1).unwrap().check(), Ok(()));
            }
        }
    }
}
