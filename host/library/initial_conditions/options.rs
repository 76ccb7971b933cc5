//! Parameters of generators: one list, which the command line reads as well.

use super::{GenerateError, Generator, MassFunction};
use crate::units::{Length, Measure, MeasureError, Units};

/// An option that some generators listen to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// Number of bodies.
    Bodies,
    /// Twice the kinetic over the potential energy, `2K/|U|`: 0 at rest, 1 in balance.
    VirialRatio,
    /// Mass of the second body, galaxy or ring over the mass of the first or central one.
    MassRatio,
    /// Eccentricity of the orbit: 0 a circle, 1 a parabola.
    Eccentricity,
    /// Depth of a King model's central potential.
    W0,
    /// Stability of a disk, see [`disk_galaxy`](super::disk_galaxy).
    ToomreQ,
    /// Least distance of an orbit.
    Pericentre,
    /// Distance at the beginning.
    Separation,
    /// Inclination of the second disk, in degrees.
    Inclination,
    /// Width of a ring.
    Width,
    /// Julian date (TDB).
    Epoch,
    /// 1 for Earth and Moon apart, 0 for their barycentre.
    Moon,
    /// Number of systems.
    Systems,
    /// Number of bodies of each system.
    Each,
    /// Distance of neighbouring systems, in radii of the largest.
    Spacing,
    /// Least mass of a mass function, in solar masses.
    LeastMass,
    /// Greatest mass of a mass function, in solar masses.
    GreatestMass,
    /// Order of the masses by energy: 0 none, 1 complete.
    Segregation,
    /// Binaries among systems of one star or two, as a share.
    Binaries,
    /// Least semi-major axis of binaries, in the unit of the model.
    ClosestBinary,
    /// Greatest semi-major axis of binaries, in the unit of the model.
    WidestBinary,
    /// Share of those turning back about the z axis that are turned round.
    Rotation,
    /// Radius of a King model's edge.
    TidalRadius,
}

impl Parameter {
    /// All parameters, in the order in which they are listed.
    pub const ALL: [Self; 23] = [
        Self::Bodies,
        Self::VirialRatio,
        Self::MassRatio,
        Self::Eccentricity,
        Self::W0,
        Self::ToomreQ,
        Self::Pericentre,
        Self::Separation,
        Self::Inclination,
        Self::Width,
        Self::Epoch,
        Self::Moon,
        Self::Systems,
        Self::Each,
        Self::Spacing,
        Self::LeastMass,
        Self::GreatestMass,
        Self::Segregation,
        Self::Binaries,
        Self::ClosestBinary,
        Self::WidestBinary,
        Self::Rotation,
        Self::TidalRadius,
    ];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bodies => "bodies",
            Self::VirialRatio => "virial-ratio",
            Self::MassRatio => "mass-ratio",
            Self::Eccentricity => "eccentricity",
            Self::W0 => "w0",
            Self::ToomreQ => "toomre-q",
            Self::Pericentre => "pericentre",
            Self::Separation => "separation",
            Self::Inclination => "inclination",
            Self::Width => "width",
            Self::Epoch => "epoch",
            Self::Moon => "moon",
            Self::Systems => "systems",
            Self::Each => "each",
            Self::Spacing => "spacing",
            Self::LeastMass => "least-mass",
            Self::GreatestMass => "greatest-mass",
            Self::Segregation => "segregation",
            Self::Binaries => "binaries",
            Self::ClosestBinary => "closest-binary",
            Self::WidestBinary => "widest-binary",
            Self::Rotation => "rotation",
            Self::TidalRadius => "tidal-radius",
        }
    }

    /// Name in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Bodies => "number of bodies",
            Self::VirialRatio => "virial ratio",
            Self::MassRatio => "mass ratio",
            Self::ToomreQ => "Toomre Q",
            Self::W0 => "central potential W0",
            Self::Systems => "number of systems",
            Self::Each => "number of bodies of each system",
            Self::Moon => "Moon of its own",
            Self::LeastMass => "least mass of a star",
            Self::GreatestMass => "greatest mass of a star",
            Self::Segregation => "mass segregation",
            Self::Binaries => "share of binaries",
            Self::ClosestBinary => "semi-major axis of the closest binary",
            Self::WidestBinary => "semi-major axis of the widest binary",
            Self::TidalRadius => "tidal radius",
            other => other.name(),
        }
    }

    /// True of lengths, in that which is 1 in the model.
    pub const fn is_length(self) -> bool {
        matches!(
            self,
            Self::Pericentre
                | Self::Separation
                | Self::Width
                | Self::ClosestBinary
                | Self::WidestBinary
                | Self::TidalRadius
        )
    }

    /// Summary for users.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Bodies => "Number of bodies",
            Self::VirialRatio => "2K/|U| of a sphere: 0 at rest, 1 in balance",
            Self::MassRatio => "Mass of the second body or galaxy, or of a ring, over the first's",
            Self::Eccentricity => "Eccentricity of an orbit: 0 a circle, 1 a parabola",
            Self::W0 => "Depth of a King model's potential: 3 loose, 6 typical, 9 concentrated",
            Self::ToomreQ => "Toomre Q of a disk: 1.2 makes spirals, 2 stays smooth",
            Self::Pericentre => {
                "Least distance of two galaxies' orbit, in scale lengths of the first disk"
            }
            Self::Separation => "Distance of two galaxies at the beginning, in the same unit",
            Self::Inclination => {
                "Tilt of the second galaxy in degrees; 180 turns against the orbit"
            }
            Self::Width => "Width of a ring around radius 1, below 2; 0 for one even circle",
            Self::Epoch => {
                "Julian date (TDB) of the planets, from 1800 to 2200; by integration from J2000, \
                 which is time 0"
            }
            Self::Moon => "1: Earth and Moon are two bodies; 0: their barycentre is one",
            Self::Systems => "Number of systems",
            Self::Each => {
                "Bodies of each system; not for models whose number is fixed, such as solar-system"
            }
            Self::Spacing => {
                "Distance of neighbouring systems, in radii that hold 9 of 10 of the largest's bodies"
            }
            Self::LeastMass => "Least mass of a star in a mass function, in solar masses",
            Self::GreatestMass => "Greatest mass of a star in a mass function, in solar masses",
            Self::Segregation => {
                "Mass segregation in a mass function, the heaviest being the most bound: 0 none, 1 complete"
            }
            Self::Binaries => "Binaries among the systems of one star or two, as a share",
            Self::ClosestBinary => {
                "Least semi-major axis of binaries, in the length that is 1 in the model"
            }
            Self::WidestBinary => {
                "Greatest semi-major axis of binaries, which are even in its logarithm"
            }
            Self::Rotation => {
                "Rotation about z: the share of bodies turning back that are turned round"
            }
            Self::TidalRadius => {
                "Radius of a King model's edge, in the length that is 1 in the model; 0 for a virial \
                 radius of 1"
            }
        }
    }
}

/// Options of a generator, which chooses those that are not given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Seed of the random numbers; generators that draw none pass over it.
    pub seed: u64,
    /// Name of the generator that makes each of [many systems](super::many_galaxies); a Plummer
    /// sphere where none is given.
    pub of: Option<&'static str>,
    /// Masses of stars, for models that are spheres; equal ones where not given.
    pub masses: Option<MassFunction>,
    given: [Option<f64>; Parameter::ALL.len()],
}

impl Options {
    /// Nothing but a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// These options, and a value for `parameter`.
    #[must_use]
    pub fn with(mut self, parameter: Parameter, value: f64) -> Self {
        self.given[parameter as usize] = Some(value);
        self
    }

    /// These options, and a length for `parameter`, which may have a unit where the length that is 1 in the
    /// model is known.
    ///
    /// # Errors
    /// It is not a length, or has a unit where that length is not known.
    pub fn with_length(
        self,
        parameter: Parameter,
        length: &Measure,
        radius: Option<Length>,
    ) -> Result<Self, MeasureError> {
        let units = radius.map(|Length(length)| Units {
            length,
            ..Units::SI
        });
        let value = length.length(units.as_ref());
        let value = value.map_err(|error| match error {
            MeasureError::NoUnits(text) => MeasureError::NoRadius(text),
            error => error,
        })?;
        Ok(self.with(parameter, value))
    }

    /// These options for systems that the generator called `of` makes.
    ///
    /// # Errors
    /// [`GenerateError::UnknownGenerator`], which lists the names.
    pub fn of(self, of: &str) -> Result<Self, GenerateError> {
        let of = Some(super::find(of)?.name);
        Ok(Self { of, ..self })
    }

    /// Returns the options with nothing given for `parameter`.
    #[must_use]
    pub fn without(mut self, parameter: Parameter) -> Self {
        self.given[parameter as usize] = None;
        self
    }

    /// The value given for `parameter`.
    pub fn get(&self, parameter: Parameter) -> Option<f64> {
        self.given[parameter as usize]
    }
}

/// The options of one generator, with its own choice where nothing was given.
#[derive(Debug)]
pub struct Values {
    seed: u64,
    values: [f64; Parameter::ALL.len()],
    options: Options,
}

impl Values {
    pub(super) fn of(generator: &Generator, options: &Options) -> Result<Self, GenerateError> {
        if options.of.is_some() && !generator.has_systems() {
            return Err(GenerateError::NoSystems(generator.name));
        }
        if options.masses.is_some() && !generator.has_stars() && !generator.has_systems() {
            return Err(GenerateError::NoStars(generator.name));
        }
        let mut values = [f64::NAN; Parameter::ALL.len()];
        for parameter in Parameter::ALL {
            let default = generator.parameters.iter().find(|(p, _)| *p == parameter);
            match (default, options.get(parameter)) {
                // The model of the systems judges what is meant for it.
                (None, Some(_)) if generator.has_systems() && parameter != Parameter::Bodies => {}
                (Some((_, default)), given) => {
                    values[parameter as usize] = given.unwrap_or(*default);
                }
                (None, Some(_)) => {
                    return Err(GenerateError::NotAParameter {
                        generator: generator.name,
                        parameter,
                    });
                }
                (None, None) => {}
            }
        }
        for parameter in [Parameter::Bodies, Parameter::Systems, Parameter::Each] {
            let value = options.get(parameter).unwrap_or(1.0);
            if !(value >= 0.0 && value.trunc() == value) {
                return Err(GenerateError::OutOfRange {
                    parameter,
                    value,
                    range: "a whole number",
                });
            }
        }
        Ok(Self {
            seed: options.seed,
            values,
            options: *options,
        })
    }

    /// Seed of the random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The same for another number of bodies.
    pub(super) fn of_bodies(&self, n: usize) -> Self {
        let mut values = self.values;
        values[Parameter::Bodies as usize] = n as f64;
        Self { values, ..*self }
    }

    /// Options as they were given.
    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// The number of bodies.
    pub fn bodies(&self) -> usize {
        // Whole and not negative; beyond the range of usize is beyond all memory as well.
        self.get(Parameter::Bodies) as usize
    }

    /// The value of a parameter; NaN for one that the generator does not listen to.
    pub fn get(&self, parameter: Parameter) -> f64 {
        self.values[parameter as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::GENERATORS;
    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_its_places() {
        for (i, parameter) in Parameter::ALL.into_iter().enumerate() {
            assert_eq!(parameter as usize, i);
            let users = GENERATORS.iter().filter(|generator| {
                let mut of_it = generator.parameters.iter().filter(|(p, _)| *p == parameter);
                of_it.next().is_some() && of_it.next().is_none()
            });
            assert!(users.count() > 0, "no generator has {}", parameter.name());
            let same = |other: &Parameter| other.name() == parameter.name();
            assert_eq!(Parameter::ALL.iter().filter(|other| same(other)).count(), 1);
        }
    }

    #[test]
    fn lengths_have_units_where_the_model_has_a_size() {
        let of = |text: &str, radius: Option<&str>| {
            let radius = radius.map(|radius| radius.parse().unwrap());
            let length = text.parse().unwrap();
            let options = Options::new(0).with_length(Parameter::TidalRadius, &length, radius);
            options.map(|options| options.get(Parameter::TidalRadius).unwrap())
        };
        assert_eq!(of("5", None), Ok(5.0));
        assert_eq!(of("5", Some("2pc")), Ok(5.0));
        assert_eq!(of("5pc", Some("2pc")), Ok(2.5));
        let refused = |error: fn(String) -> MeasureError, text: &str| Err(error(text.to_owned()));
        assert_eq!(of("5pc", None), refused(MeasureError::NoRadius, "5pc"));
        assert_eq!(
            of("5Myr", Some("2pc")),
            refused(MeasureError::NoLength, "5Myr")
        );
    }

    #[test]
    fn options_without_effect_are_refused() {
        for generator in GENERATORS {
            for parameter in Parameter::ALL {
                let listens = generator.parameters.iter().find(|(p, _)| *p == parameter);
                if generator.has_systems() && listens.is_none() {
                    continue; // its model decides
                }
                let value = match (parameter, listens) {
                    (Parameter::Bodies | Parameter::Each | Parameter::Systems, _) | (_, None) => {
                        2.0
                    }
                    (_, Some((_, default))) => *default,
                };
                let refused = matches!(
                    generator.generate(&Options::new(1).with(parameter, value)),
                    Err(GenerateError::NotAParameter { parameter: named, .. }) if named == parameter
                );
                assert_eq!(
                    refused,
                    listens.is_none(),
                    "{} {parameter:?}",
                    generator.name
                );
            }
        }
    }

    #[test]
    fn impossible_numbers_of_bodies_are_refused() {
        for generator in GENERATORS {
            if generator
                .parameters
                .iter()
                .all(|(p, _)| *p != Parameter::Bodies)
            {
                continue;
            }
            let of = |n: f64| generator.generate(&Options::new(0).with(Parameter::Bodies, n));
            assert_eq!(of(0.0), Err(GenerateError::NoBodies));
            assert!(of(usize::MAX as f64).is_err_and(|e| e.is_of_memory()));
            for n in [-1.0, 2.5, f64::NAN] {
                assert!(
                    matches!(of(n), Err(GenerateError::OutOfRange { .. })),
                    "{n}"
                );
            }
        }
    }
}
