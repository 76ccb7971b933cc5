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
mod equilibrium;
mod figure_eight;
mod galaxy_collision;
mod hernquist;
mod kepler_ring;
mod king;
mod options;
mod orbit;
mod plummer;
mod solar_system;
mod sun_earth;
mod two_body;
mod uniform_sphere;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use thiserror::Error;

use crate::bodies::Bodies;

pub use cold_collapse::cold_collapse;
pub use disk_galaxy::disk_galaxy;
pub use figure_eight::{FIGURE_EIGHT_PERIOD, figure_eight};
pub use galaxy_collision::{Encounter, galaxy_collision};
pub use hernquist::hernquist;
pub use kepler_ring::kepler_ring;
pub use king::king;
pub use options::{Options, Parameter, Values};
pub use plummer::plummer;
pub use solar_system::{J2000, solar_system};
pub use sun_earth::{sun_earth, sun_earth_moon};
pub use two_body::two_body;
pub use uniform_sphere::uniform_sphere;

/// A named way to make initial conditions.
#[derive(Debug)]
pub struct Generator {
    /// The name, unique in [`GENERATORS`].
    pub name: &'static str,
    /// What it makes, in one line.
    pub summary: &'static str,
    /// The units of its numbers, as [`Units`](crate::units::Units) reads them; `None` for N-body
    /// units, which stand for any system with G = 1.
    pub units: Option<&'static str>,
    /// The options that it listens to, besides the seed, and what they are where not given.
    pub parameters: &'static [(Parameter, f64)],
    make: fn(&Values) -> Result<Bodies, GenerateError>,
}

/// The number of bodies where none is given.
pub const DEFAULT_BODIES: usize = 16_384;

const BODIES: (Parameter, f64) = (Parameter::Bodies, DEFAULT_BODIES as f64);
/// Astronomical units and solar masses, G = 1.
const AU: Option<&str> = Some("au,Msun");

/// All generators, in the order in which they are listed.
pub const GENERATORS: &[Generator] = &[
    Generator {
        name: "plummer",
        summary: "Plummer sphere in equilibrium, standard units (energy -1/4)",
        units: None,
        parameters: &[BODIES],
        make: |values| plummer(values.bodies(), values.seed()),
    },
    Generator {
        name: "king",
        summary: "King model in equilibrium, a star cluster with an edge, standard units",
        units: None,
        parameters: &[BODIES, (Parameter::W0, 6.0)],
        make: |values| king(values.bodies(), values.seed(), values.get(Parameter::W0)),
    },
    Generator {
        name: "hernquist",
        summary: "Hernquist sphere in equilibrium, a bulge or halo with a cusp, standard units",
        units: None,
        parameters: &[BODIES],
        make: |values| hernquist(values.bodies(), values.seed()),
    },
    Generator {
        name: "uniform-sphere",
        summary: "homogeneous sphere of radius 1, at rest unless a virial ratio is given",
        units: None,
        parameters: &[BODIES, (Parameter::VirialRatio, 0.0)],
        make: |values| {
            let virial_ratio = values.get(Parameter::VirialRatio);
            uniform_sphere(values.bodies(), values.seed(), virial_ratio)
        },
    },
    Generator {
        name: "cold-collapse",
        summary: "sphere of density 1/r that falls together, bounces and relaxes",
        units: None,
        parameters: &[BODIES, (Parameter::VirialRatio, 0.05)],
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
        make: |values| {
            let mass_ratio = values.get(Parameter::MassRatio);
            let width = values.get(Parameter::Width);
            kepler_ring(values.bodies(), values.seed(), mass_ratio, width)
        },
    },
    Generator {
        name: "two-body",
        summary: "binary at apocentre, period 2π; circular and of equal masses by default",
        units: None,
        parameters: &[(Parameter::MassRatio, 1.0), (Parameter::Eccentricity, 0.0)],
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
        make: |_| figure_eight(),
    },
    Generator {
        name: "sun-earth",
        summary: "Sun and Earth on 1 January 2000, in au and solar masses, year 2π",
        units: AU,
        parameters: &[],
        make: |_| sun_earth(),
    },
    Generator {
        name: "sun-earth-moon",
        summary: "Sun, Earth and Moon on 1 January 2000, in au and solar masses, year 2π",
        units: AU,
        parameters: &[],
        make: |_| sun_earth_moon(),
    },
    Generator {
        name: "solar-system",
        summary: "Sun and planets at a date, in au and solar masses, year 2π",
        units: AU,
        parameters: &[(Parameter::Epoch, J2000)],
        make: |values| solar_system(values.get(Parameter::Epoch)),
    },
];

impl Generator {
    /// Makes the bodies.
    ///
    /// # Errors
    /// A value out of range, or an option that this generator does not listen to.
    pub fn generate(&self, options: &Options) -> Result<Bodies, GenerateError> {
        (self.make)(&Values::of(self, options)?)
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
    #[error("`{generator}` has no {}; leave it out", parameter.words())]
    NotAParameter {
        /// Name of the generator.
        generator: &'static str,
        /// The option.
        parameter: Parameter,
    },
    /// An option out of its range, infinite or not a number.
    #[error("the {} is {value}, it must be {range}", parameter.words())]
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

/// Random numbers and what is made of them by portable arithmetic.
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

    /// Distances from the origin, in ascending order.
    pub(super) fn sorted_radii(bodies: &Bodies) -> Vec<f64> {
        let mut radii: Vec<_> = bodies
            .iter()
            .map(|body| norm_squared(body.position).sqrt())
            .collect();
        radii.sort_by(f64::total_cmp);
        radii
    }

    /// Leapfrog in f64 by direct summation, apart from everything that is simulated with.
    pub(super) fn leapfrog(bodies: &mut Bodies, dt: f64, steps: usize, softening: f64) {
        let n = bodies.len();
        let accelerations = |bodies: &Bodies| {
            let mut sums = vec![[0.0; 3]; n];
            for i in 0..n {
                for j in 0..i {
                    let d = [
                        bodies.x[j] - bodies.x[i],
                        bodies.y[j] - bodies.y[i],
                        bodies.z[j] - bodies.z[i],
                    ];
                    let square = norm_squared(d) + softening * softening;
                    let cube = square * square.sqrt();
                    for k in 0..3 {
                        sums[i][k] += bodies.mass[j] * d[k] / cube;
                        sums[j][k] -= bodies.mass[i] * d[k] / cube;
                    }
                }
            }
            sums
        };
        let mut a = accelerations(bodies);
        for _ in 0..steps {
            for half in 0..2 {
                for (i, a) in a.iter().enumerate() {
                    bodies.vx[i] += 0.5 * dt * a[0];
                    bodies.vy[i] += 0.5 * dt * a[1];
                    bodies.vz[i] += 0.5 * dt * a[2];
                }
                if half == 0 {
                    for i in 0..n {
                        bodies.x[i] += dt * bodies.vx[i];
                        bodies.y[i] += dt * bodies.vy[i];
                        bodies.z[i] += dt * bodies.vz[i];
                    }
                    a = accelerations(bodies);
                }
            }
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
            if let Some(units) = generator.units {
                let g = units.parse::<crate::units::Units>().unwrap().g();
                assert!((g - 1.0).abs() <= 1e-14, "{g}");
            }

            let made = generator.generate(&Options::default()).unwrap();
            assert_eq!(made.check(), Ok(()));
            assert!(made.id.iter().copied().eq(0..made.len() as u64));
            let listens = |parameter| generator.parameters.iter().any(|(p, _)| *p == parameter);
            if listens(Parameter::Bodies) {
                assert_eq!(made.len(), DEFAULT_BODIES);
                assert!((made.total_mass() - 1.0).abs() <= made.len() as f64 * f64::EPSILON);
                for n in [1, 2, 3, 100] {
                    let options = Options::new(1).with(Parameter::Bodies, n as f64);
                    let made = generator.generate(&options).unwrap();
                    assert_eq!(
                        (made.len(), made.check()),
                        (n, Ok(())),
                        "{}",
                        generator.name
                    );
                }
            }
            assert_centred(&made, 400.0);
        }
        let message = find("torus").unwrap_err().to_string();
        assert!(
            message.contains("`torus`") && message.contains("plummer"),
            "{message}"
        );
    }

    #[test]
    fn seeds_decide() {
        for generator in GENERATORS {
            let make = |seed| {
                let mut options = Options::new(seed);
                if generator.parameters.contains(&BODIES) {
                    options = options.with(Parameter::Bodies, 200.0);
                }
                generator.generate(&options).unwrap()
            };
            assert_eq!(make(7), make(7));
            let draws = generator.parameters.contains(&BODIES);
            assert_eq!(make(7) != make(8), draws, "{}", generator.name);
        }
    }

    /// A change of any bit here changes everybody's reproduced runs: it belongs in the changelog.
    #[test]
    fn bits_are_pinned() {
        let mut found = Vec::new();
        for generator in GENERATORS {
            let mut options = Options::new(42);
            if generator.parameters.contains(&BODIES) {
                options = options.with(Parameter::Bodies, 50.0);
            }
            let bodies = generator.generate(&options).unwrap();
            let mut bits = crc32fast::Hasher::new();
            for body in bodies.iter() {
                for value in body
                    .position
                    .iter()
                    .chain(&body.velocity)
                    .chain([&body.mass])
                {
                    bits.update(&value.to_le_bytes());
                }
            }
            found.push((generator.name, bits.finalize()));
        }
        assert_eq!(found, PINNED);
    }

    const PINNED: [(&str, u32); 13] = [
        ("plummer", 782_527_394),
        ("king", 3_433_459_832),
        ("hernquist", 2_295_649_014),
        ("uniform-sphere", 3_242_280_763),
        ("cold-collapse", 1_630_390_021),
        ("disk-galaxy", 2_359_485_883),
        ("galaxy-collision", 3_520_665_518),
        ("kepler-ring", 2_266_047_201),
        ("two-body", 1_570_198_621),
        ("figure-eight", 163_802_338),
        ("sun-earth", 1_502_430_705),
        ("sun-earth-moon", 747_154_421),
        ("solar-system", 2_712_523_304),
    ];

    #[test]
    fn normal_numbers_are_normal() {
        let mut random = Random::new(3);
        let n = 100_000;
        let sums = (0..n).fold([0.0; 4], |sums: [f64; 4], _| {
            let x = random.normal();
            [
                sums[0] + x,
                sums[1] + x * x,
                sums[2] + x.powi(3),
                sums[3] + x.powi(4),
            ]
        });
        // Moments 0, 1, 0, 3 with the deviations √1, √2, √15, √96 of a single draw.
        for (sum, (moment, variance)) in
            sums.iter()
                .zip([(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0_f64)])
        {
            let tolerance = 5.0 * (variance / f64::from(n)).sqrt();
            assert!((sum / f64::from(n) - moment).abs() <= tolerance, "{sum}");
        }
    }
}
