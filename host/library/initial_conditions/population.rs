//! The stars of a model: a mass function, mass segregation, binaries, rotation.
//!
//! A model gives places in phase space, for equal masses. Here they are given to systems of one star or
//! two, so that the density of mass and the balance of the model stay as they are.

use std::f64::consts::TAU;
use std::str::FromStr;

use super::orbit::Elements;
use super::{GenerateError, Parameter, Random, Values, norm_squared};
use crate::bodies::{Bodies, Body, BodyKind};
use crate::vectors::axes;

/// Number of stars by mass, `dN/dm ∝ m^−α` between two limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MassFunction {
    /// Kroupa 2001, MNRAS 322, 231: α = 0.3 below 0.08, 1.3 to 0.5 and 2.3 above, in solar masses.
    Kroupa,
    /// Salpeter 1955, ApJ 121, 161: α = 2.35.
    Salpeter,
    /// As many stars in any interval of mass as in another of its width: α = 0.
    Flat,
}

impl MassFunction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kroupa, Self::Salpeter, Self::Flat];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kroupa => "kroupa",
            Self::Salpeter => "salpeter",
            Self::Flat => "flat",
        }
    }

    /// Masses from which an exponent holds, in solar masses, and the exponent α.
    const fn pieces(self) -> &'static [(f64, f64)] {
        match self {
            Self::Kroupa => &[(0.0, 0.3), (0.08, 1.3), (0.5, 2.3)],
            Self::Salpeter => &[(0.0, 2.35)],
            Self::Flat => &[(0.0, 0.0)],
        }
    }
}

impl FromStr for MassFunction {
    type Err = GenerateError;

    fn from_str(name: &str) -> Result<Self, GenerateError> {
        let found = Self::ALL
            .into_iter()
            .find(|function| function.name() == name);
        found.ok_or_else(|| GenerateError::UnknownMassFunction(name.to_owned()))
    }
}

/// A mass function between limits, to draw from.
struct Masses {
    /// Limits and exponent of each piece, and the number of stars up to its end.
    pieces: Vec<([f64; 2], f64, f64)>,
}

/// `∫ m^power dm` between limits.
fn integral([from, to]: [f64; 2], power: f64) -> f64 {
    if power == -1.0 {
        return libm::log(to / from);
    }
    (libm::pow(to, power + 1.0) - libm::pow(from, power + 1.0)) / (power + 1.0)
}

impl Masses {
    fn new(function: MassFunction, least: f64, greatest: f64) -> Self {
        let all = function.pieces();
        let mut pieces = vec![];
        let (mut factor, mut number) = (1.0, 0.0);
        for (i, &(from, exponent)) in all.iter().enumerate() {
            if i > 0 {
                // Continuous where the exponent changes.
                factor *= libm::pow(from, exponent - all[i - 1].1);
            }
            let to = all.get(i + 1).map_or(f64::INFINITY, |next| next.0);
            let limits = [from.max(least), to.min(greatest)];
            if limits[0] < limits[1] {
                number += factor * integral(limits, -exponent);
                pieces.push((limits, exponent, number));
            }
        }
        Self { pieces }
    }

    /// A mass, by inversion of the cumulative number.
    fn draw(&self, random: &mut Random) -> f64 {
        let total = self.pieces.last().map_or(0.0, |piece| piece.2);
        let wanted = random.uniform() * total;
        let next = self.pieces.partition_point(|piece| piece.2 <= wanted);
        let next = next.min(self.pieces.len() - 1);
        let ([from, to], exponent, end) = self.pieces[next];
        let begin = if next == 0 {
            0.0
        } else {
            self.pieces[next - 1].2
        };
        let part = (wanted - begin) / (end - begin);
        let power = 1.0 - exponent; // no piece has α = 1
        let [low, high] = [from, to].map(|m| libm::pow(m, power));
        libm::pow(low + part * (high - low), 1.0 / power).clamp(from, to)
    }
}

/// Stars of a model, other than equal and single ones in random places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Population {
    masses: Option<(MassFunction, [f64; 2])>,
    segregation: f64,
    binaries: f64,
    /// Least and greatest semi-major axis of binaries.
    axes: [f64; 2],
    rotation: f64,
}

/// Options of a population, and their values where not given: for models that are spheres.
pub(super) const OPTIONS: [(Parameter, f64); 7] = [
    (Parameter::LeastMass, 0.08),
    (Parameter::GreatestMass, 100.0),
    (Parameter::Segregation, 0.0),
    (Parameter::Binaries, 0.0),
    (Parameter::ClosestBinary, 1e-4),
    (Parameter::WidestBinary, 1e-2),
    (Parameter::Rotation, 0.0),
];

/// Most places in phase space for a system: a star that is lighter than the mean by more than this is
/// placed a little less exactly.
const MOST_PLACES: f64 = 64.0;

impl Population {
    /// The population that options ask for; none if it is of equal single stars.
    pub(super) fn of(values: &Values) -> Result<Option<Self>, GenerateError> {
        let options = values.options();
        let [
            least,
            greatest,
            segregation,
            binaries,
            closest,
            widest,
            rotation,
        ] = OPTIONS.map(|(parameter, _)| values.get(parameter));
        let in_range = |parameter, is_in_range: bool, range| match is_in_range {
            true => Ok(()),
            false => Err(GenerateError::OutOfRange {
                parameter,
                value: values.get(parameter),
                range,
            }),
        };
        for share in [
            Parameter::Segregation,
            Parameter::Binaries,
            Parameter::Rotation,
        ] {
            in_range(
                share,
                (0.0..=1.0).contains(&values.get(share)),
                "from 0 to 1",
            )?;
        }
        in_range(
            Parameter::LeastMass,
            least > 0.0 && least.is_finite(),
            "above 0",
        )?;
        let above = greatest > least && greatest.is_finite();
        in_range(Parameter::GreatestMass, above, "above the least mass")?;
        in_range(
            Parameter::ClosestBinary,
            closest > 0.0 && closest.is_finite(),
            "above 0",
        )?;
        let wider = widest >= closest && widest.is_finite();
        in_range(
            Parameter::WidestBinary,
            wider,
            "at least the semi-major axis of the closest",
        )?;
        let masses = options.masses.map(|function| (function, [least, greatest]));
        for (parameter, has_effect, needs) in [
            (Parameter::LeastMass, masses.is_some(), "a mass function"),
            (Parameter::GreatestMass, masses.is_some(), "a mass function"),
            (Parameter::Segregation, masses.is_some(), "a mass function"),
            (
                Parameter::ClosestBinary,
                binaries > 0.0,
                "a share of binaries",
            ),
            (
                Parameter::WidestBinary,
                binaries > 0.0,
                "a share of binaries",
            ),
        ] {
            if options.get(parameter).is_some() && !has_effect {
                return Err(GenerateError::WithoutEffect { parameter, needs });
            }
        }
        let asked = masses.is_some() || binaries > 0.0 || rotation > 0.0;
        Ok(asked.then_some(Self {
            masses,
            segregation,
            binaries,
            axes: [closest, widest],
            rotation,
        }))
    }

    /// The stars of a model that gives so many places, and their total mass in solar masses where they
    /// have one. Ids count binaries first, the stars of each side by side.
    pub(super) fn fill(
        &self,
        values: &Values,
        model: impl Fn(usize) -> Result<Bodies, GenerateError>,
    ) -> Result<(Bodies, Option<f64>), GenerateError> {
        let n = values.bodies();
        let mut random = Random::new(values.seed() ^ 0x9e37_79b9_7f4a_7c15);
        let masses: Vec<f64> = match self.masses {
            None => vec![1.0; n],
            Some((function, [least, greatest])) => {
                let masses = Masses::new(function, least, greatest);
                (0..n).map(|_| masses.draw(&mut random)).collect()
            }
        };
        let total: f64 = masses.iter().sum();
        let pairs = (self.binaries * n as f64 / (1.0 + self.binaries)).round() as usize;
        let (paired, single) = masses.split_at(2 * pairs.min(n / 2));
        let systems: Vec<&[f64]> = paired.chunks(2).chain(single.chunks(1)).collect();
        let weights: Vec<f64> = systems.iter().map(|stars| stars.iter().sum()).collect();

        let lightest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        let each = match self.segregation > 0.0 {
            true => (total / weights.len() as f64 / lightest).clamp(1.0, MOST_PLACES),
            false => 1.0,
        };
        let model = model((weights.len() as f64 * each).ceil() as usize)?;
        let places = match self.segregation > 0.0 {
            true => self.segregated(&weights, total, &model, &mut random),
            false => (0..weights.len()).collect(),
        };
        let mut bodies = super::room_for(n)?;
        for (stars, place) in systems.into_iter().zip(places) {
            let Body {
                position,
                mut velocity,
                ..
            } = model.body(place);
            let turns_back = position[0] * velocity[1] < position[1] * velocity[0];
            if self.rotation > 0.0 && random.uniform() < self.rotation && turns_back {
                velocity = velocity.map(|v| -v);
            }
            let mass: f64 = stars.iter().sum::<f64>() / total;
            let [r, v] = match stars.len() {
                2 => self.orbit(mass, &mut random),
                _ => [[0.0; 3]; 2],
            };
            for (star, &own) in stars.iter().enumerate() {
                // The first lies against the second, each by the other's share of the mass.
                let share = match star {
                    0 => own / total / mass - 1.0,
                    _ => 1.0 - own / total / mass,
                };
                bodies.push(Body {
                    position: axes(|k| position[k] + share * r[k]),
                    velocity: axes(|k| velocity[k] + share * v[k]),
                    mass: own / total,
                    id: bodies.len() as u64,
                    kind: BodyKind::Star,
                });
            }
        }
        bodies.to_centre_of_mass_frame();
        Ok((bodies, self.masses.map(|_| total)))
    }

    /// Relative position and velocity of a binary of this mass, G = 1: semi-major axes even in their
    /// logarithm (Öpik 1924), eccentricities thermal (Jeans 1919, `f(e) = 2e`), all orientations and
    /// phases alike.
    fn orbit(&self, mass: f64, random: &mut Random) -> [[f64; 3]; 2] {
        let [closest, widest] = self.axes;
        let axis = closest * libm::exp(random.uniform() * libm::log(widest / closest));
        let elements = Elements {
            semi_major_axis: axis,
            eccentricity: random.uniform().sqrt(),
            inclination: libm::acos(1.0 - 2.0 * random.uniform()),
            node: TAU * random.uniform(),
            argument: TAU * random.uniform(),
            mean_anomaly: TAU * random.uniform(),
        };
        elements.state(mass)
    }

    /// A place of the model for each system, the more bound the heavier it is: Baumgardt, De Marchi &
    /// Kroupa 2008, ApJ 685, 247. Places lie in the order of their energies; each system, in the order of
    /// its mass (for a segregation below 1, mixed with a random order), has one at random among those that
    /// hold the mass of its own between that of the systems before and itself. So the density of mass is
    /// the model's.
    fn segregated(
        &self,
        weights: &[f64],
        total: f64,
        model: &Bodies,
        random: &mut Random,
    ) -> Vec<usize> {
        let by_energy = by_energy(model);
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        let mut keys = vec![0.0; weights.len()];
        for (rank, &system) in order.iter().enumerate() {
            let rank = rank as f64 / weights.len() as f64;
            keys[system] = self.segregation * rank + (1.0 - self.segregation) * random.uniform();
        }
        order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
        let mut places = vec![0; weights.len()];
        let mut taken = vec![false; by_energy.len()];
        let mut before = 0.0;
        for system in order {
            let at = (before + random.uniform() * weights[system]) / total;
            before += weights[system];
            let first = ((at * taken.len() as f64) as usize).min(taken.len() - 1);
            // There are as many places as systems at least.
            let free = (first..taken.len())
                .chain((0..first).rev())
                .find(|&place| !taken[place]);
            let free = free.unwrap_or(first);
            taken[free] = true;
            places[system] = by_energy[free];
        }
        places
    }
}

/// Bodies of a sphere from the most to the least bound.
fn by_energy(model: &Bodies) -> Vec<usize> {
    let n = model.len();
    let radii: Vec<f64> = model
        .iter()
        .map(|body| norm_squared(body.position).sqrt())
        .collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| radii[a].total_cmp(&radii[b]));
    // Of the mass outside, which makes no force but a potential.
    let mut outside = vec![0.0; n + 1];
    for place in (0..n).rev() {
        let body = order[place];
        outside[place] = outside[place + 1] + model.mass[body] / radii[body].max(f64::MIN_POSITIVE);
    }
    let mut energies = vec![0.0; n];
    let mut within = 0.0;
    for (place, &i) in order.iter().enumerate() {
        within += model.mass[i];
        let potential = -within / radii[i].max(f64::MIN_POSITIVE) - outside[place + 1];
        energies[i] = 0.5 * norm_squared(model.body(i).velocity) + potential;
    }
    order.sort_by(|&a, &b| energies[a].total_cmp(&energies[b]));
    order
}

#[cfg(test)]
mod tests {
    use super::super::tests::energies;
    use super::super::{Generator, Options, find};
    use super::*;

    const N: usize = 8_000;

    fn generator(name: &str) -> &'static Generator {
        find(name).unwrap()
    }

    fn options() -> Options {
        Options::new(3).with(Parameter::Bodies, N as f64)
    }

    /// The largest difference between the share of `values` up to each and what a distribution says,
    /// times √n: above 1.95 in one of a thousand samples (Kolmogorov & Smirnov).
    fn distance(mut values: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let off = values.iter().enumerate().map(|(i, &value)| {
            let share = distribution(value);
            let (below, up_to) = (i as f64 / n, (i + 1) as f64 / n);
            (share - below).abs().max((share - up_to).abs())
        });
        off.fold(0.0, f64::max) * n.sqrt()
    }
    const ONE_IN_A_THOUSAND: f64 = 1.95;

    #[test]
    fn masses_follow_their_function() {
        let mut random = Random::new(1);
        for (function, least, greatest) in [
            (MassFunction::Kroupa, 0.01, 50.0),
            (MassFunction::Kroupa, 0.08, 100.0),
            (MassFunction::Kroupa, 1.0, 8.0),
            (MassFunction::Salpeter, 0.1, 100.0),
            (MassFunction::Flat, 0.5, 2.0),
        ] {
            let masses = Masses::new(function, least, greatest);
            let drawn: Vec<f64> = (0..20_000).map(|_| masses.draw(&mut random)).collect();
            assert!(drawn.iter().all(|m| (least..=greatest).contains(m)));
            // Written apart, by summing the density over small steps in the logarithm.
            let density = |m: f64| match function {
                MassFunction::Kroupa if m < 0.08 => m.powf(-0.3),
                MassFunction::Kroupa if m < 0.5 => 0.08 * m.powf(-1.3),
                MassFunction::Kroupa => 0.08 * 0.5 * m.powf(-2.3),
                MassFunction::Salpeter => m.powf(-2.35),
                MassFunction::Flat => 1.0,
            };
            const STEPS: usize = 20_000;
            let step = (greatest / least).ln() / STEPS as f64;
            let at = |i: usize| least * (step * (i as f64 + 0.5)).exp();
            let mut up_to = vec![0.0];
            for i in 0..STEPS {
                up_to.push(up_to[i] + density(at(i)) * at(i) * step);
            }
            let distribution = |m: f64| {
                let place = (m / least).ln() / step;
                let i = (place as usize).min(STEPS - 1);
                let part = place - i as f64;
                (up_to[i] + part * (up_to[i + 1] - up_to[i])) / up_to[STEPS]
            };
            let off = distance(drawn, distribution);
            assert!(off < ONE_IN_A_THOUSAND, "{function:?}: {off}");
        }
        assert!("krupa".parse::<MassFunction>().is_err());
    }

    /// Shares of the mass within radii of a model with an exponent of its own for each star.
    fn profile(bodies: &Bodies, radii: &[f64]) -> Vec<f64> {
        let within = |limit: &f64| {
            let inside = bodies
                .iter()
                .filter(|b| norm_squared(b.position) < limit * limit);
            inside.map(|b| b.mass).sum()
        };
        radii.iter().map(within).collect()
    }

    #[test]
    fn segregation_keeps_the_model_and_sorts_the_stars() {
        let mut stars = options();
        stars.masses = Some(MassFunction::Kroupa);
        let stars = stars.with(Parameter::GreatestMass, 5.0);
        let radii = [0.3, 0.6, 1.0, 2.0];
        // Of the Plummer sphere: r³/(r² + a²)^{3/2}, of which 0.001 is cut off.
        let a = 3.0 * std::f64::consts::PI / 16.0;
        let expected = radii.map(|r: f64| r.powi(3) / (r * r + a * a).powf(1.5));
        let mut heavy = vec![];
        for segregation in [0.0, 0.5, 1.0] {
            let made = stars.with(Parameter::Segregation, segregation);
            let bodies = generator("plummer").generate(&made).unwrap();
            assert_eq!(bodies.len(), N);
            assert!((bodies.total_mass() - 1.0).abs() < 1e-12);
            // Masses scatter more than numbers: N_eff = 1/Σm².
            let effective = 1.0 / bodies.mass.iter().map(|m| m * m).sum::<f64>();
            let allowed = 4.0 / effective.sqrt();
            for (found, expected) in profile(&bodies, &radii).iter().zip(expected) {
                assert!(
                    (found - expected).abs() < allowed,
                    "{segregation}: {found} {expected}"
                );
            }
            let (kinetic, potential) = energies(&bodies);
            let ratio = -2.0 * kinetic / potential;
            assert!(
                (ratio - 1.0).abs() < 2.0 * allowed,
                "{segregation}: {ratio}"
            );
            let mut order: Vec<usize> = (0..N).collect();
            order.sort_by(|&a, &b| bodies.mass[b].total_cmp(&bodies.mass[a]));
            let radius = |&i: &usize| norm_squared(bodies.body(i).position).sqrt();
            let of_heavy = order[..N / 20].iter().map(radius).sum::<f64>() / (N / 20) as f64;
            heavy.push(of_heavy);
        }
        assert!(
            heavy[0] > 1.3 * heavy[1] && heavy[1] > 1.3 * heavy[2],
            "{heavy:?}"
        );
    }

    #[test]
    fn binaries_have_their_orbits_and_centres_those_of_the_model() {
        let (closest, widest) = (1e-5, 1e-3);
        let mut made = options()
            .with(Parameter::Binaries, 0.5)
            .with(Parameter::ClosestBinary, closest)
            .with(Parameter::WidestBinary, widest);
        made.masses = Some(MassFunction::Flat);
        let bodies = generator("king").generate(&made).unwrap();
        assert_eq!(bodies.len(), N);
        let pairs = (0.5 * N as f64 / 1.5).round() as usize;
        let (mut axes, mut squares) = (vec![], vec![]);
        for pair in 0..pairs {
            let [one, two] = [2 * pair, 2 * pair + 1].map(|i| bodies.body(i));
            let [r, v] = [[one.position, two.position], [one.velocity, two.velocity]]
                .map(|[a, b]| [0, 1, 2].map(|k| b[k] - a[k]));
            let (mu, distance) = (one.mass + two.mass, norm_squared(r).sqrt());
            let axis = 1.0 / (2.0 / distance - norm_squared(v) / mu);
            let along = (0..3).map(|k| r[k] * v[k]).sum::<f64>();
            // |e|² from r, |v|² and r·v.
            let s = norm_squared(v) - mu / distance;
            let e2 = (s * s * distance * distance - (2.0 * s - norm_squared(v)) * along * along)
                / (mu * mu);
            axes.push(axis);
            squares.push(e2);
        }
        let log = |axis: f64| (axis / closest).ln() / (widest / closest).ln();
        let off = distance(axes, log);
        assert!(off < ONE_IN_A_THOUSAND, "{off}");
        // Thermal: e² is even.
        let off = distance(squares, |e2| e2);
        assert!(off < ONE_IN_A_THOUSAND, "{off}");
        // Far from the binaries they are single.
        let mut centres = Bodies::with_capacity(N);
        for pair in 0..pairs {
            let [one, two] = [2 * pair, 2 * pair + 1].map(|i| bodies.body(i));
            let mass = one.mass + two.mass;
            let mean = |a: [f64; 3], b: [f64; 3]| {
                [0, 1, 2].map(|k| (one.mass * a[k] + two.mass * b[k]) / mass)
            };
            centres.push(Body {
                position: mean(one.position, two.position),
                velocity: mean(one.velocity, two.velocity),
                mass,
                ..one
            });
        }
        (2 * pairs..N).for_each(|i| centres.push(bodies.body(i)));
        let (kinetic, potential) = energies(&centres);
        let ratio = -2.0 * kinetic / potential;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    }

    #[test]
    fn rotation_turns_bodies_round() {
        let share = |rotation: f64| {
            let made = options().with(Parameter::Rotation, rotation);
            let bodies = generator("plummer").generate(&made).unwrap();
            let forth = bodies
                .iter()
                .filter(|b| b.position[0] * b.velocity[1] > b.position[1] * b.velocity[0]);
            forth.count() as f64 / N as f64
        };
        // Half of them turn forth in the model; four deviations of a share, and those near the centre that
        // turn back about the centre of mass, to which bodies are moved in the end.
        let allowed = 4.0 * 0.5 / (N as f64).sqrt() + 0.01;
        for rotation in [0.0, 0.4, 1.0] {
            let found = share(rotation);
            assert!(
                (found - 0.5 - 0.5 * rotation).abs() < allowed,
                "{rotation}: {found}"
            );
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let refusal = |options: Options| {
            let refused = generator("plummer").generate(&options);
            refused.unwrap_err().to_string()
        };
        let alone = refusal(options().with(Parameter::Segregation, 0.5));
        assert!(
            alone.contains("mass segregation") && alone.contains("a mass function"),
            "{alone}"
        );
        let alone = refusal(options().with(Parameter::WidestBinary, 0.5));
        assert!(alone.contains("share of binaries"), "{alone}");
        let mut stars = options();
        stars.masses = Some(MassFunction::Salpeter);
        for (parameter, value) in [
            (Parameter::LeastMass, 0.0),
            (Parameter::LeastMass, 200.0),
            (Parameter::GreatestMass, f64::INFINITY),
            (Parameter::Segregation, 1.5),
            (Parameter::Binaries, -0.1),
            (Parameter::Rotation, f64::NAN),
        ] {
            let refused = generator("plummer").generate(&stars.with(parameter, value));
            assert!(
                matches!(refused, Err(GenerateError::OutOfRange { .. })),
                "{parameter:?}"
            );
        }
        let mut pair = Options::new(0);
        pair.masses = Some(MassFunction::Flat);
        let refused = generator("two-body").generate(&pair);
        assert_eq!(refused, Err(GenerateError::NoStars("two-body")));
    }
}
