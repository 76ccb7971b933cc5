//! Initial conditions: bodies made up by formula.
//!
//! `G = 1` in all of them; the total mass is 1 unless they say otherwise. [`GENERATORS`] is the
//! list that everything which offers them by name reads; each generator is also a plain function.
//!
//! The same arguments give the same bits on every machine: the random numbers come from a
//! generator with a fixed algorithm (PCG XSL RR 128/64, O'Neill 2014), they are drawn by one
//! thread, and what is done with them needs only `+ - × ÷ √`, which IEEE 754 rounds exactly, and
//! for some generators `sin`, `exp` and the like from one portable implementation (`libm`), never
//! from the machine's mathematics library.

mod cold_collapse;
mod disk_galaxy;
mod ephemeris;
mod equilibrium;
mod figure_eight;
mod galaxy_collision;
mod hernquist;
mod kepler_ring;
mod king;
mod many_galaxies;
mod options;
mod orbit;
mod plummer;
mod population;
mod size;
mod solar_system;
mod sun_earth;
mod two_body;
mod uniform_sphere;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use thiserror::Error;

use crate::bodies::Bodies;
use crate::memory;
use crate::settings::Setting;
use crate::suggest::Advice;

pub use cold_collapse::cold_collapse;
pub use disk_galaxy::disk_galaxy;
pub use figure_eight::{FIGURE_EIGHT_PERIOD, figure_eight};
pub use galaxy_collision::{Encounter, galaxy_collision};
pub use hernquist::hernquist;
pub use kepler_ring::kepler_ring;
pub use king::{king, king_within};
pub use many_galaxies::many_galaxies;
pub use options::{Options, Parameter, Values};
pub use plummer::plummer;
pub use population::MassFunction;
use population::Population;
pub use size::{Size, SizeError};
use solar_system::time_of_epoch;
pub use solar_system::{
    J2000, SOLAR_SYSTEM_NAMES, ephemeris_after_a_century, solar_system, solar_system_with_moon,
};
pub use sun_earth::{sun_earth, sun_earth_moon};
pub use two_body::two_body;
pub use uniform_sphere::uniform_sphere;

/// A named way to make initial conditions.
#[derive(Debug)]
pub struct Generator {
    /// The name, unique in [`GENERATORS`].
    pub name: &'static str,
    /// Description of the bodies, in one line.
    pub summary: &'static str,
    /// The units of its numbers, as [`Units`](crate::units::Units) reads them; `None` for N-body
    /// units, which stand for any system with G = 1.
    pub units: Option<&'static str>,
    /// The options that it listens to, besides the seed, and what they are where not given.
    pub parameters: &'static [(Parameter, f64)],
    /// Softening, integrator and step for a run that asks for nothing else.
    pub advice: Advice,
    make: fn(&Values) -> Result<Bodies, GenerateError>,
}

/// The number of bodies where none is given.
pub const DEFAULT_BODIES: usize = 16_384;

const BODIES: (Parameter, f64) = (Parameter::Bodies, DEFAULT_BODIES as f64);
/// Options of a sphere: its own options, and the options of its stars.
const fn sphere<const OWN: usize, const ALL: usize>(
    own: [(Parameter, f64); OWN],
) -> [(Parameter, f64); ALL] {
    assert!(OWN + population::OPTIONS.len() == ALL);
    let mut all = [BODIES; ALL];
    let mut i = 0;
    while i < ALL {
        all[i] = if i < OWN {
            own[i]
        } else {
            population::OPTIONS[i - OWN]
        };
        i += 1;
    }
    all
}
/// Astronomical units and solar masses, G = 1.
const AU: Option<&str> = Some("au,Msun");

/// All generators, in the order in which they are listed.
pub const GENERATORS: &[Generator] = &[
    Generator {
        name: "plummer",
        summary: "Plummer sphere in equilibrium, standard units (energy -1/4)",
        units: None,
        parameters: &sphere::<1, 8>([BODIES]),
        advice: Advice::MANY,
        make: |values| plummer(values.bodies(), values.seed()),
    },
    Generator {
        name: "king",
        summary: "King model in equilibrium, a star cluster with an edge, standard units",
        units: None,
        parameters: &sphere::<3, 10>([BODIES, (Parameter::W0, 6.0), (Parameter::TidalRadius, 0.0)]),
        advice: Advice::MANY,
        make: |values| {
            let [w0, tidal_radius] = [Parameter::W0, Parameter::TidalRadius].map(|p| values.get(p));
            king_within(values.bodies(), values.seed(), w0, tidal_radius)
        },
    },
    Generator {
        name: "hernquist",
        summary: "Hernquist sphere in equilibrium, a bulge or halo with a cusp, standard units",
        units: None,
        parameters: &sphere::<1, 8>([BODIES]),
        advice: Advice::MANY,
        make: |values| hernquist(values.bodies(), values.seed()),
    },
    Generator {
        name: "uniform-sphere",
        summary: "homogeneous sphere of radius 1, at rest unless a virial ratio is given",
        units: None,
        parameters: &sphere::<2, 9>([BODIES, (Parameter::VirialRatio, 0.0)]),
        advice: Advice::MANY,
        make: |values| {
            let virial_ratio = values.get(Parameter::VirialRatio);
            uniform_sphere(values.bodies(), values.seed(), virial_ratio)
        },
    },
    Generator {
        name: "cold-collapse",
        summary: "sphere of density 1/r that falls together, bounces and relaxes",
        units: None,
        parameters: &sphere::<2, 9>([BODIES, (Parameter::VirialRatio, 0.05)]),
        advice: Advice::MANY,
        make: |values| {
            let virial_ratio = values.get(Parameter::VirialRatio);
            cold_collapse(values.bodies(), values.seed(), virial_ratio)
        },
    },
    Generator {
        name: "disk-galaxy",
        summary: "spiral galaxy in equilibrium: exponential disk, bulge and dark halo",
        units: None,
        parameters: &[BODIES, (Parameter::ToomreQ, 1.5)],
        advice: Advice::MANY,
        make: |values| {
            disk_galaxy(
                values.bodies(),
                values.seed(),
                values.get(Parameter::ToomreQ),
            )
        },
    },
    Generator {
        name: "galaxy-collision",
        summary: "two disk galaxies that meet",
        units: None,
        parameters: &[
            BODIES,
            (Parameter::MassRatio, 1.0),
            (Parameter::Eccentricity, 1.0),
            (Parameter::Pericentre, 4.0),
            (Parameter::Separation, 30.0),
            (Parameter::Inclination, 60.0),
        ],
        advice: Advice::MANY,
        make: |values| {
            let encounter = Encounter {
                mass_ratio: values.get(Parameter::MassRatio),
                eccentricity: values.get(Parameter::Eccentricity),
                pericentre: values.get(Parameter::Pericentre),
                separation: values.get(Parameter::Separation),
                inclination: values.get(Parameter::Inclination),
            };
            galaxy_collision(values.bodies(), values.seed(), encounter)
        },
    },
    Generator {
        name: "kepler-ring",
        summary: "central mass with a ring of bodies on circular orbits, period 2π at radius 1",
        units: None,
        parameters: &[BODIES, (Parameter::MassRatio, 0.0), (Parameter::Width, 0.5)],
        advice: Advice::INDIVIDUALS,
        make: |values| {
            let mass_ratio = values.get(Parameter::MassRatio);
            let width = values.get(Parameter::Width);
            kepler_ring(values.bodies(), values.seed(), mass_ratio, width)
        },
    },
    Generator {
        name: "two-body",
        summary: "binary at apocentre, period 2π (unbound: at pericentre); circular and of equal masses by default",
        units: None,
        parameters: &[(Parameter::MassRatio, 1.0), (Parameter::Eccentricity, 0.0)],
        advice: Advice::INDIVIDUALS,
        make: |values| {
            two_body(
                values.get(Parameter::MassRatio),
                values.get(Parameter::Eccentricity),
            )
        },
    },
    Generator {
        name: "figure-eight",
        summary: "three bodies of mass 1 that chase each other, period 6.3259",
        units: None,
        parameters: &[],
        advice: Advice::INDIVIDUALS,
        make: |_| figure_eight(),
    },
    Generator {
        name: "sun-earth",
        summary: "Sun and Earth on 1 January 2000, in au and solar masses, year 2π",
        units: AU,
        parameters: &[],
        advice: Advice::PLANETS,
        make: |_| sun_earth(),
    },
    Generator {
        name: "sun-earth-moon",
        summary: "Sun, Earth and Moon on 1 January 2000, in au and solar masses, year 2π",
        units: AU,
        parameters: &[],
        advice: Advice::PLANETS,
        make: |_| sun_earth_moon(),
    },
    Generator {
        name: "solar-system",
        summary: "Sun, planets and Pluto at a date (JPL DE423), in au and solar masses, year 2π",
        units: AU,
        parameters: &[(Parameter::Epoch, J2000), (Parameter::Moon, 0.0)],
        advice: Advice::PLANETS,
        make: |values| {
            solar_system::by_options(values.get(Parameter::Epoch), values.get(Parameter::Moon))
        },
    },
    Generator {
        name: MANY,
        summary: "systems side by side, each made by another generator; ids count system by system",
        units: None,
        parameters: &[
            (Parameter::Systems, 8.0),
            (Parameter::Each, many_galaxies::DEFAULT_EACH as f64),
            (Parameter::Spacing, 20.0),
        ],
        advice: Advice::MANY,
        make: many_galaxies::by_options,
    },
];

/// Notes on `solar-system` for users, for the help of programs.
pub const SOLAR_SYSTEM_NOTES: &str = "\
solar-system is Sun, planets and Pluto at J2000 as JPL's ephemeris DE423 has them (states and G·M). \
Frame: ecliptic and equinox of J2000; origin: the barycentre of the bodies; times: TDB, J2000 being \
time 0. Ids: 0 Sun, 1 Mercury, 2 Venus, 3 Earth, 4 Mars, 5 Jupiter, 6 Saturn, 7 Uranus, 8 Neptune, \
9 Pluto. Body 3 is the barycentre of Earth and Moon, with the mass of both; with moon 1 they \
are two (3 and 10). Another epoch is reached by Newtonian integration from J2000: without \
relativity Mercury is off by 8\u{2033} after 10 years, Venus by 2\u{2033}, others by less than 1\u{2033}.";

/// The name of the generator that calls others.
const MANY: &str = "many-galaxies";

impl Generator {
    /// Makes the bodies.
    ///
    /// # Errors
    /// A value out of range, or an option that this generator does not listen to.
    pub fn generate(&self, options: &Options) -> Result<Bodies, GenerateError> {
        Ok(self.stars(options)?.0)
    }

    /// The bodies, and their total mass in solar masses if they are stars of a mass function.
    fn stars(&self, options: &Options) -> Result<(Bodies, Option<f64>), GenerateError> {
        let values = Values::of(self, options)?;
        let population = match self.has_stars() {
            true => Population::of(&values)?,
            false => None,
        };
        match population {
            Some(population) => population.fill(&values, |n| (self.make)(&values.of_bodies(n))),
            None => Ok(((self.make)(&values)?, None)),
        }
    }

    /// Returns whether its bodies are stars, whose masses and binaries can be chosen: it is a sphere.
    fn has_stars(&self) -> bool {
        let mut parameters = self.parameters.iter();
        parameters.any(|(parameter, _)| *parameter == Parameter::Binaries)
    }

    /// Returns whether it makes systems out of what another generator makes, [`Options::of`].
    pub fn has_systems(&self) -> bool {
        self.name == MANY
    }

    /// Units of the bodies that it makes with these options, like [`units`](Self::units), but the units of
    /// its systems if it makes systems.
    pub fn units_of(&self, options: &Options) -> Option<&'static str> {
        self.inner(options).units
    }

    /// Advice for bodies made with these options, like [`advice`](Self::advice), but the advice for its
    /// systems if it makes systems. With binaries, or with masses of stars, each body is one star.
    pub fn advice_of(&self, options: &Options) -> Advice {
        let binaries = options.get(Parameter::Binaries).unwrap_or_default();
        match binaries > 0.0 || options.masses.is_some() {
            true => Advice::INDIVIDUALS,
            false => self.inner(options).advice,
        }
    }

    /// Time of the bodies that it makes with these options, in its unit of time: the epoch since J2000 if
    /// there is an epoch, otherwise 0.
    pub fn time_of(&self, options: &Options) -> f64 {
        let inner = self.inner(options);
        let epoch = inner
            .parameters
            .iter()
            .find(|(p, _)| *p == Parameter::Epoch);
        epoch.map_or(0.0, |(_, default)| {
            let epoch = options.get(Parameter::Epoch).unwrap_or(*default);
            time_of_epoch(epoch)
        })
    }

    /// The generator of its systems, if it has any, and else this one.
    fn inner(&self, options: &Options) -> &Self {
        let inner = options.of.filter(|_| self.has_systems());
        match inner.map(find) {
            Some(Ok(inner)) => inner,
            _ => self,
        }
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

/// Reason why no initial conditions were made.
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
    #[error("`{generator}` has no {}; leave it out", parameter.words())]
    NotAParameter {
        /// Name of the generator.
        generator: &'static str,
        /// The option.
        parameter: Parameter,
    },
    /// A model of systems for a generator that makes one.
    #[error("`{0}` is one system, not made of others: leave {of} out, or make {MANY}", of = Setting::Of)]
    NoSystems(&'static str),
    /// A mass function for bodies that have masses of their own.
    #[error("`{0}` has masses of its own: leave the mass function out")]
    NoStars(&'static str),
    /// No mass function of this name.
    #[error(
        "no mass function is called `{0}`; there are {names}",
        names = MassFunction::ALL.map(MassFunction::name).join(", ")
    )]
    UnknownMassFunction(String),
    /// An option that means nothing without another.
    #[error("the {} means nothing without {needs}: add that, or leave it out", parameter.words())]
    WithoutEffect {
        /// The option.
        parameter: Parameter,
        /// The other one.
        needs: &'static str,
    },
    /// Systems of systems.
    #[error("{MANY} cannot be made of {MANY}: name another model")]
    Nested,
    /// An option out of its range, infinite or not a number.
    #[error("the {} is {value}, it must be {range}", parameter.words())]
    OutOfRange {
        /// The option.
        parameter: Parameter,
        /// The value given.
        value: f64,
        /// Values allowed.
        range: &'static str,
    },
    /// No bodies were asked for.
    #[error("0 bodies were asked for, there must be at least 1")]
    NoBodies,
    /// More bodies than memory.
    #[error(transparent)]
    NoRoom(#[from] memory::NoRoom),
    /// More bodies than the allocator has memory for.
    #[error("there is no memory for {bodies} bodies; ask for fewer")]
    OutOfMemory {
        /// The number asked for.
        bodies: usize,
    },
}

#[cfg(test)]
impl GenerateError {
    /// Returns whether there is too little memory.
    fn is_of_memory(&self) -> bool {
        matches!(self, Self::NoRoom(_) | Self::OutOfMemory { .. })
    }
}

/// Empty arrays with room for `n` bodies, at least one.
fn room_for(n: usize) -> Result<Bodies, GenerateError> {
    if n == 0 {
        return Err(GenerateError::NoBodies);
    }
    memory::check(n as u64, memory::BYTES_PER_BODY)?;
    let mut bodies = Bodies::default();
    bodies
        .try_reserve(n)
        .map_err(|_| GenerateError::OutOfMemory { bodies: n })?;
    Ok(bodies)
}

/// Random numbers and what is made of them by portable arithmetic.
struct Random(Pcg64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// A seed for a separate generator.
    fn next_seed(&mut self) -> u64 {
        self.0.next_u64()
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

    /// A random direction in the plane: cosine and sine.
    fn on_circle(&mut self) -> [f64; 2] {
        loop {
            let [x, y] = [(); 2].map(|()| 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if (1e-12..=1.0).contains(&square) {
                let scale = 1.0 / square.sqrt();
                return [scale * x, scale * y];
            }
        }
    }

    /// Normally distributed with deviation 1, by Marsaglia's polar method.
    fn normal(&mut self) -> f64 {
        loop {
            let [x, y] = [(); 2].map(|()| 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }
}

/// Speed over escape speed, `q`, with the density `q² f(q)`, by rejection.
///
/// The bound is a fifth above the greatest of 50 values, at `q = t²` for even t: they are dense
/// where cusps have their narrow maxima, and neighbours differ by far less than a fifth.
fn fraction_of_escape_speed(random: &mut Random, f: impl Fn(f64) -> f64) -> f64 {
    const TRIES: u32 = 50;
    let density = |q: f64| q * q * f(q);
    let bound = (1..=TRIES)
        .map(|k| {
            let t = (f64::from(k) - 0.5) / f64::from(TRIES);
            density(t * t)
        })
        .fold(0.0, f64::max)
        * 1.2;
    loop {
        let q = random.uniform();
        // Not `<`: at the very edge of a system nothing moves, and the density is zero.
        if random.uniform() * bound <= density(q) {
            return q;
        }
    }
}

fn norm_squared([x, y, z]: [f64; 3]) -> f64 {
    x * x + y * y + z * z
}

#[cfg(test)]
mod tests;
