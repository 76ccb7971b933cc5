//! Softening, time step, integrator and accuracy for those who do not choose their own.

use crate::binaries;
use crate::bodies::Bodies;
use crate::force::cpu;
use crate::integrator::Integrator;
use crate::neighbours::{Neighbour, mutual, nearest};
use crate::physics::{ForceLaw, Physics};
use crate::simd::InstructionSet;
use crate::units::{ASTRONOMICAL_UNIT, Units};
use crate::variants::preferred::ForceAccuracy;

/// Below this number bodies are individuals — planets, a binary — and nothing is softened.
const FEW: usize = 100;

/// As many bodies, or fewer, that hold more than half of the mass are individuals — a star, a
/// binary — which the others go round.
const HEAVY: usize = 10;

/// Semi-major axis, in softening lengths and in distances to the next body, below which a bound pair would
/// not stay one.
const TIGHT: f64 = 0.125;

/// Pairs so tight, in bodies with mass, from which on they are no chance: in Plummer spheres of 100
/// bodies and more there are none in 1000, or one.
const NO_CHANCE: f64 = 0.01;

/// A fixed step is made shorter for bodies' pericentres down to this share of what it would be.
const LEAST_SHARE: f64 = 0.002;

/// Advice on how to simulate the bodies of a [generator](crate::initial_conditions::Generator).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// Softening length; `None` for bodies that stand for many, whose mean distance decides.
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

    /// Advice for bodies whose generator, if one is known, gives this, and whose numbers are in these units,
    /// if they are known: lengths in au are those of planets.
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
}

impl Known<'_> {
    /// One system under gravity, of which nothing else is known.
    pub const NOTHING: Self = Self {
        law: ForceLaw::Gravity,
        systems: 1,
        units: None,
        g: 1.0,
        made_by: None,
    };
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

/// The [chosen](choose_softening) softening length of bodies of which nothing else is known.
pub fn softening(bodies: &Bodies) -> f64 {
    choose_softening(bodies, &Known::NOTHING).value
}

/// A softening length, and why this one. The first rule that applies:
///
/// * as the bodies' generator advises;
/// * fewer than 100 bodies are individuals: 0;
/// * fewer than 100 that have mass: the others are test particles, which feel no encounters: 0;
/// * where ten bodies or fewer hold more than half of the mass — a star, a binary, a central body —
///   the others are on orbits that softening would change: 0;
/// * units of au are those of planets: 0;
/// * where there are two bound pairs, and one for a hundred bodies, or more with semi-major axes below an
///   eighth of the softening below and of the distance to the next body: binaries, 0;
/// * else bodies stand for many, and ε is half the mean distance of bodies with mass within the
///   radius that holds half of them, `r₅₀ N^(−1/3) / 2`, about the median position.
///
/// Pairs closer than the last are encounters of two bodies that stand for many, and softening takes
/// them out; structure on larger scales is kept. Of several systems, each is looked at by itself, and
/// the least length is taken, wherever they lie.
///
/// # Panics
/// If there are no systems.
pub fn choose_softening(bodies: &Bodies, known: &Known<'_>) -> Chosen {
    if let Some((name, advice)) = known.made_by
        && let Some(softening) = advice.softening
    {
        return Chosen::new(softening, format!("as `{name}` is made to be simulated"));
    }
    if known.systems == 1 {
        return of_one_system(bodies, known);
    }
    let each = bodies.len() / known.systems;
    let chosen = (0..known.systems).map(|system| {
        let alone = bodies.part(system * each..(system + 1) * each);
        of_one_system(&alone, known)
    });
    let less = |a: Chosen, b: Chosen| if b.value < a.value { b } else { a };
    let least = chosen.reduce(less).expect("one system at least");
    Chosen::new(
        least.value,
        format!("the least of {} systems: {}", known.systems, least.why),
    )
}

fn of_one_system(bodies: &Bodies, known: &Known<'_>) -> Chosen {
    if bodies.len() < FEW {
        return Chosen::new(0.0, format!("fewer than {FEW} bodies"));
    }
    let physics = physics_of(known.law, known.g);
    let mut massive = Bodies::default();
    (bodies.iter())
        .filter(|body| physics.weight(body.mass) > 0.0)
        .for_each(|body| massive.push(body));
    match massive.len() {
        0 => return Chosen::new(0.0, "no body has mass"),
        1 => return Chosen::new(0.0, "one body has mass, the others are test particles"),
        with_mass @ ..FEW => {
            let why = format!("{with_mass} bodies have mass, the others are test particles");
            return Chosen::new(0.0, why);
        }
        FEW.. => {}
    }
    if let Some((heavy, share)) = heaviest(&massive, &physics) {
        let percent = 100.0 * share;
        let why = match heavy {
            1 => format!("one body holds {percent:.1} % of the mass"),
            heavy => format!("{heavy} bodies hold {percent:.1} % of the mass"),
        };
        return Chosen::new(0.0, why);
    }
    if are_planets(known.units) {
        return Chosen::new(0.0, "lengths are in au, as those of planets");
    }
    let centre = [&massive.x, &massive.y, &massive.z].map(|x| median(x.clone()));
    let radii = massive
        .iter()
        .map(|body| distance(body.position, centre))
        .collect();
    let softening = median(radii) * (massive.len() as f64).cbrt().recip() / 2.0;
    let why = "half the mean distance of bodies, taken to stand for many";
    match tight_pairs(&massive, &physics, softening) {
        0 => Chosen::new(softening, why),
        tight if tight > 1 && tight as f64 >= NO_CHANCE * massive.len() as f64 => {
            let why = format!("{tight} pairs of bodies are bound, and close: binaries");
            Chosen::new(0.0, why)
        }
        tight => {
            let pairs = if tight == 1 { "pair" } else { "pairs" };
            let why = format!("{why}; it parts {tight} bound {pairs}");
            Chosen::new(softening, why)
        }
    }
}

/// Number of bound pairs that this softening would part, and that are closer still beside the distance to
/// the next body: where bodies are dense there are always some that are near each other.
fn tight_pairs(massive: &Bodies, physics: &Physics, softening: f64) -> usize {
    if matches!(physics.law, ForceLaw::AttractRepel { .. }) {
        return 0; // none of its orbits are ellipses
    }
    let points: Vec<[f64; 3]> = massive.iter().map(|body| body.position).collect();
    let mut partners = vec![None; points.len()];
    let mut is_second = vec![false; points.len()];
    for [i, j] in mutual(&nearest(&points)) {
        (partners[i], is_second[j]) = (Some(j), true);
    }
    // One of each two.
    let alone: Vec<usize> = (0..points.len()).filter(|&i| !is_second[i]).collect();
    let places: Vec<[f64; 3]> = alone.iter().map(|&i| points[i]).collect();
    let is_tight = |(i, other): (usize, Neighbour)| {
        let pair = partners[i].and_then(|j| binaries::pair(massive, physics, [i, j]));
        pair.is_some_and(|pair| pair.semi_major_axis < TIGHT * softening.min(other.distance))
    };
    let with_others = alone.into_iter().zip(nearest(&places));
    with_others.filter(|both| is_tight(*both)).count()
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

/// Returns whether a [neighbour scheme](crate::backend::Neighbours) takes less time for so many bodies than
/// block time steps without one that err as little: measured on one H200, where 65 536 bodies take 0.86 s
/// instead of 1.9 s and 16 384 take 0.21 s instead of 0.19 s, and on two CPU cores, where 16 384 take 9.0 s
/// instead of 16.0 s and 4096 gain nothing.
pub fn neighbours_pay(bodies: usize, on_gpu: bool) -> bool {
    bodies >= if on_gpu { 65_536 } else { 16_384 }
}

/// A law without softening.
fn physics_of(law: ForceLaw, g: f64) -> Physics {
    Physics {
        law,
        g,
        softening: 0.0,
    }
}

/// Number of bodies that hold more than half of the mass, and their share of it, if [`HEAVY`] do.
fn heaviest(bodies: &Bodies, physics: &Physics) -> Option<(usize, f64)> {
    let mut weights: Vec<f64> = (bodies.mass.iter())
        .map(|mass| physics.weight(*mass))
        .collect();
    let total: f64 = weights.iter().sum();
    if weights.len() > HEAVY {
        weights.select_nth_unstable_by(HEAVY - 1, |a, b| b.total_cmp(a));
        weights.truncate(HEAVY);
    }
    weights.sort_by(|a, b| b.total_cmp(a));
    let mut held = 0.0;
    for (index, weight) in weights.iter().enumerate() {
        held += weight;
        if held > 0.5 * total {
            return Some((index + 1, held / total));
        }
    }
    None
}

fn is_near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= 1e-6
}

/// The dynamical time of a system: the median over its bodies of `√(r / a)`, r being the distance from
/// the centre of mass. 0 where nothing is accelerated.
pub fn dynamical_time(bodies: &Bodies, accelerations: &[[f64; 3]]) -> f64 {
    let centre = bodies.centre_of_mass().unwrap_or_default();
    let times = bodies
        .iter()
        .zip(accelerations)
        .map(|(body, a)| (distance(body.position, centre) / distance(*a, [0.0; 3])).sqrt());
    let times: Vec<f64> = times
        .filter(|time| time.is_finite() && *time > 0.0)
        .collect();
    if times.is_empty() { 0.0 } else { median(times) }
}

/// The longest step of bodies whose steps follow the motion, an eighth of the
/// [dynamical time](dynamical_time): few bodies could take longer ones. 0 where nothing is accelerated.
pub fn longest_step(bodies: &Bodies, accelerations: &[[f64; 3]]) -> f64 {
    dynamical_time(bodies, accelerations) / 8.0
}

/// A time step of a fixed-step integrator, from the state and the accelerations at the start, and
/// why this one. An integrator of higher order than leapfrog can take several `times` as much.
///
/// With softening, `√(2 η ε / a)` for the largest acceleration and η = 0.025, the criterion of
/// Springel (2005, MNRAS 364, 1105, eq. 34). Without, a hundredth of `√(r / a)` for the body with
/// the shortest such time, r being its distance from the centre of mass: some 600 steps for a
/// circular orbit. 0 where nothing is accelerated.
///
/// Bodies on eccentric orbits start anywhere on them, and move fastest at pericentre. So without
/// softening the step is also at most a hundredth of the time in which a pair would turn by a radian
/// at its pericentre, `√(q³ / (G M (1 + e)))`, but not below 1/500 of what it would be
/// otherwise. Pairs are those that are bound and pull each other apart from what others do: any two of
/// fewer than 100 bodies, else the heaviest and any other, and a body and its nearest neighbour.
pub fn choose_step(
    bodies: &Bodies,
    physics: &Physics,
    accelerations: &[[f64; 3]],
    times: f64,
) -> Chosen {
    const ETA: f64 = 0.025;
    let share = 0.01 * times;
    let size = |a: &[f64; 3]| distance(*a, [0.0; 3]);
    if physics.softening > 0.0 {
        let each = accelerations
            .iter()
            .map(|a| times * (2.0 * ETA * physics.softening / size(a)).sqrt());
        let why = "√(0.05 ε / a) of the largest acceleration at the start";
        return Chosen::new(shortest(each), why);
    }
    let centre = bodies.centre_of_mass().unwrap_or_default();
    let each = bodies
        .iter()
        .zip(accelerations)
        .map(|(body, a)| share * (distance(body.position, centre) / size(a)).sqrt());
    let plain = shortest(each);
    match passage(bodies, physics, accelerations) {
        Some(passage) if share * passage.time < LEAST_SHARE * plain => Chosen::new(
            LEAST_SHARE * plain,
            format!(
                "bodies {} and {} will be {:.2e} apart, closer than fixed steps follow: \
                 the `integrator` hermite4 with the `eta` 0.01 would",
                passage.bodies[0], passage.bodies[1], passage.distance
            ),
        ),
        Some(passage) if share * passage.time < plain => Chosen::new(
            share * passage.time,
            format!(
                "{share} of the time in which bodies {} and {} turn by a radian at pericentre, {} \
                 apart",
                passage.bodies[0],
                passage.bodies[1],
                rounded(passage.distance)
            ),
        ),
        _ => Chosen::new(
            plain,
            format!("{share} of the shortest √(r/a) of bodies at the start"),
        ),
    }
}

/// Four digits, for people.
fn rounded(x: f64) -> String {
    match x.abs() {
        0.001..1e6 => format!("{x:.4}"),
        _ => format!("{x:.3e}"),
    }
}

/// The pericentre of a pair.
struct Passage {
    bodies: [usize; 2],
    /// In which they turn by a radian there.
    time: f64,
    distance: f64,
}

/// The passage with the shortest time, of pairs as [`choose_step`] has them.
fn passage(bodies: &Bodies, physics: &Physics, accelerations: &[[f64; 3]]) -> Option<Passage> {
    if matches!(physics.law, ForceLaw::AttractRepel { .. }) {
        return None; // orbits are no ellipses
    }
    let n = bodies.len();
    let least = |a: Passage, b: Passage| if b.time < a.time { b } else { a };
    let of = |i: usize, j: usize| of_pair(bodies, physics, accelerations, [i, j]);
    if n < FEW {
        let pairs = (0..n).flat_map(|j| (0..j).map(move |i| (i, j)));
        return pairs.filter_map(|(i, j)| of(i, j)).reduce(least);
    }
    let heaviest = (0..n).reduce(|a, b| {
        if bodies.mass[b] > bodies.mass[a] {
            b
        } else {
            a
        }
    })?;
    let of_heaviest = (0..n).filter(|j| *j != heaviest).map(|j| (heaviest, j));
    let has_weight = |i: &usize| physics.weight(bodies.mass[*i]) != 0.0;
    let massive: Vec<usize> = (0..n).filter(has_weight).collect();
    let points: Vec<[f64; 3]> = (massive.iter()).map(|&i| bodies.body(i).position).collect();
    let nearest = nearest(&points);
    let neighbours = nearest.iter().zip(&massive).map(|(near, &i)| {
        let j = massive[near.index];
        (i.min(j), i.max(j))
    });
    let pairs = of_heaviest.chain(neighbours);
    pairs.filter_map(|(i, j)| of(i, j)).reduce(least)
}

fn of_pair(
    bodies: &Bodies,
    physics: &Physics,
    accelerations: &[[f64; 3]],
    [i, j]: [usize; 2],
) -> Option<Passage> {
    let (a, b) = (bodies.body(i), bodies.body(j));
    let between = |a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|k| b[k] - a[k]);
    let mu = physics.coupling() * (physics.weight(a.mass) + physics.weight(b.mass));
    let (r, v) = (
        between(a.position, b.position),
        between(a.velocity, b.velocity),
    );
    let (radius, speed) = (distance(r, [0.0; 3]), distance(v, [0.0; 3]));
    let energy = 0.5 * speed * speed - mu / radius;
    let pull = mu / (radius * radius);
    let relative = distance(accelerations[i], accelerations[j]);
    let is_pair = mu > 0.0 && radius > 0.0 && energy < 0.0 && pull > 0.5 * relative;
    if !is_pair {
        return None;
    }
    let spin = distance(
        [
            r[1] * v[2] - r[2] * v[1],
            r[2] * v[0] - r[0] * v[2],
            r[0] * v[1] - r[1] * v[0],
        ],
        [0.0; 3],
    );
    let eccentricity = (1.0 + 2.0 * energy * (spin / mu) * (spin / mu))
        .max(0.0)
        .sqrt();
    let distance = spin * (spin / mu) / (1.0 + eccentricity);
    let time = (distance / (mu * (1.0 + eccentricity))).sqrt() * distance;
    Some(Passage {
        bodies: [i, j],
        time,
        distance,
    })
}

/// The shortest time that is longer than zero; 0 if there is none.
fn shortest(times: impl Iterator<Item = f64>) -> f64 {
    let shortest = times
        .filter(|time| *time > 0.0)
        .fold(f64::INFINITY, f64::min);
    if shortest.is_finite() { shortest } else { 0.0 }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyKind};
    use crate::force::reference;
    use crate::initial_conditions::{
        GENERATORS, J2000, Options, Parameter, kepler_ring, plummer, solar_system, two_body,
    };
    use crate::simulation::Simulation;

    const GRAVITY: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };

    #[test]
    fn softening_follows_the_mean_distance() {
        // Plummer's half-number radius in standard units is 0.766.
        let few = choose_softening(&plummer(1000, 1).expect("bodies"), &Known::NOTHING);
        let many = softening(&plummer(8000, 1).expect("bodies"));
        assert!((few.value - 0.0383).abs() < 0.004, "{few:?}");
        assert!(few.why.contains("mean distance"), "{few:?}");
        assert!((few.value / many - 2.0).abs() < 0.2, "{few:?} {many}");
        assert_eq!(softening(&two_body(1.0, 0.0).expect("bodies")), 0.0);
    }

    /// Where systems lie is no reason to soften them more.
    #[test]
    fn systems_side_by_side_are_softened_as_one_of_them() {
        let mut many = Bodies::with_capacity(3000);
        for (seed, place) in [(1, 0.0), (2, 1e3), (3, 2e6)] {
            for body in plummer(1000, seed).expect("bodies").iter() {
                let [x, y, z] = body.position;
                many.push(Body {
                    position: [x + place, y, z],
                    ..body
                });
            }
        }
        let of = |bodies: &Bodies, systems| {
            let known = Known {
                systems,
                ..Known::NOTHING
            };
            choose_softening(bodies, &known)
        };
        let found = of(&many, 3);
        assert!((found.value - 0.0383).abs() < 0.004, "{found:?}");
        assert!(found.why.starts_with("the least of 3 systems"), "{found:?}");
        let one = plummer(1000, 1).expect("bodies");
        assert_eq!(of(&one, 1).value, softening(&one));
        assert_eq!(of(&many, 100).value, 0.0, "30 bodies each");
    }

    /// The Solar System with massless asteroids, in a ring from 2 to 3 au.
    fn with_asteroids(asteroids: usize, mass: f64) -> Bodies {
        let mut bodies = solar_system(J2000).expect("in range");
        for k in 0..asteroids {
            let radius = 2.0 + k as f64 / asteroids as f64;
            let (sin, cos) = (k as f64).sin_cos();
            let speed = 1.0 / radius.sqrt();
            bodies.push(Body {
                position: [radius * cos, radius * sin, 0.0],
                velocity: [-speed * sin, speed * cos, 0.0],
                mass,
                id: bodies.len() as u64,
                kind: BodyKind::Star,
            });
        }
        bodies
    }

    /// Binaries are not parted by a softening that was chosen, from a file or not; pairs that are bound by
    /// chance are no reason not to soften.
    #[test]
    fn binaries_are_not_softened() {
        let generator = GENERATORS.iter().find(|g| g.name == "plummer").expect("it");
        let with = |binaries, seed| {
            let options = Options::new(seed).with(Parameter::Bodies, 200.0);
            let options = options.with(Parameter::Binaries, binaries);
            let (made, _) = generator.make(&options, None, None).expect("in range");
            made.bodies
        };
        for seed in 1..=20 {
            let chosen = choose_softening(&with(0.1, seed), &Known::NOTHING);
            assert!(
                chosen.value == 0.0 && chosen.why.contains("binaries"),
                "{chosen:?}"
            );
        }
        let mut parted = 0;
        for seed in 1..=200 {
            let chosen = choose_softening(&plummer(200, seed).expect("bodies"), &Known::NOTHING);
            assert!(chosen.value > 0.0, "{seed}: {chosen:?}");
            parted += usize::from(chosen.why.contains("parts"));
        }
        assert!((1..60).contains(&parted), "{parted} of 200");
    }

    /// Of many bodies, too, fixed steps follow a close pair that is not of the heaviest body, or the
    /// program says that they cannot.
    #[test]
    fn steps_of_many_bodies_follow_their_binaries() {
        let mut bodies = plummer(200, 2).expect("bodies");
        let step = |bodies: &Bodies| {
            let of = Simulation::builder(bodies.clone()).softening(0.0);
            let of = of.accuracy(ForceAccuracy::Double).build().expect("it runs");
            of.clock().dt
        };
        let before = step(&bodies);
        // A circular orbit about body 7.
        let (axis, centre) = (0.01, bodies.body(7));
        let gm = 2.0 * centre.mass;
        bodies.push(Body {
            position: [
                centre.position[0] + axis,
                centre.position[1],
                centre.position[2],
            ],
            velocity: [
                centre.velocity[0],
                centre.velocity[1] + (gm / axis).sqrt(),
                centre.velocity[2],
            ],
            id: 200,
            ..centre
        });
        let turned = (axis * axis * axis / gm).sqrt();
        let after = step(&bodies);
        assert!(
            (after / (0.01 * turned) - 1.0).abs() < 0.01,
            "{after} {turned}"
        );
        assert!(after < before);
    }

    #[test]
    fn planets_rings_and_test_particles_are_not_softened() {
        for asteroids in [89, 90, 200, 2000] {
            let chosen = choose_softening(&with_asteroids(asteroids, 0.0), &Known::NOTHING);
            assert_eq!(chosen.value, 0.0, "{asteroids}: {chosen:?}");
        }
        let chosen = choose_softening(&with_asteroids(200, 1e-12), &Known::NOTHING);
        assert_eq!(chosen.value, 0.0);
        assert_eq!(chosen.why, "one body holds 99.9 % of the mass");
        for mass_ratio in [0.0, 0.1] {
            let ring = kepler_ring(300, 1, mass_ratio, 0.5).expect("bodies");
            assert_eq!(softening(&ring), 0.0, "{mass_ratio}");
        }
        // Of two stars neither holds more than half of the mass.
        let mut binary = with_asteroids(200, 1e-12);
        let sun = binary.body(0);
        binary.push(Body {
            position: [30.0, 0.0, 0.0],
            ..sun
        });
        let chosen = choose_softening(&binary, &Known::NOTHING);
        assert_eq!(chosen.value, 0.0);
        assert!(chosen.why.starts_with("2 bodies hold 99."), "{chosen:?}");
        // Massless bodies are not counted where there are many with mass.
        let cluster = plummer(1000, 1).expect("bodies");
        let mut traced = cluster.clone();
        for k in 0..1000 {
            let [x, y, z] = cluster.body(k).position;
            traced.push(Body {
                position: [30.0 + x, y, z],
                mass: 0.0,
                ..cluster.body(k)
            });
        }
        assert_eq!(softening(&traced), softening(&cluster));
        // Planetesimals of equal masses, told by their units alone.
        let in_units = |units: &str| {
            let units = Some(units.parse().expect("units"));
            let known = Known {
                units,
                ..Known::NOTHING
            };
            choose_softening(&cluster, &known).value
        };
        assert_eq!(in_units("au"), 0.0);
        assert!(in_units("pc") > 0.0);
        // Masses do not matter to the unit law.
        let unit = Known {
            law: ForceLaw::Unit,
            ..Known::NOTHING
        };
        assert!(choose_softening(&with_asteroids(200, 0.0), &unit).value > 0.0);
    }

    #[test]
    fn generators_carry_their_softening() {
        let softened = |name: &str| {
            let generator = crate::initial_conditions::find(name).expect("a name");
            let mut options = Options::new(1);
            if (generator.parameters.iter()).any(|(p, _)| *p == Parameter::Bodies) {
                options = options.with(Parameter::Bodies, 300.0);
            }
            let bodies = generator.generate(&options).expect("in range");
            let known = Known {
                made_by: Some((name, generator.advice_of(&options))),
                ..Known::NOTHING
            };
            choose_softening(&bodies, &known).value > 0.0
        };
        let individuals = [
            "kepler-ring",
            "two-body",
            "figure-eight",
            "sun-earth",
            "sun-earth-moon",
            "solar-system",
        ];
        for generator in GENERATORS {
            let alone = individuals.contains(&generator.name);
            assert_eq!(softened(generator.name), !alone, "{}", generator.name);
        }
        let many = crate::initial_conditions::find("many-galaxies").expect("a name");
        let rings = Options::new(1).of("kepler-ring").expect("a name");
        assert_eq!(many.advice_of(&rings).softening, Some(0.0));
    }

    /// The step of a leapfrog.
    fn step(bodies: &Bodies, accelerations: &[[f64; 3]]) -> f64 {
        choose_step(bodies, &GRAVITY, accelerations, 1.0).value
    }

    #[test]
    fn a_circular_orbit_takes_some_600_steps() {
        let bodies = two_body(1.0, 0.0).expect("bodies");
        let accelerations = reference::accelerations(&bodies, &GRAVITY);
        let steps = std::f64::consts::TAU / step(&bodies, &accelerations);
        assert!((steps - 628.3).abs() < 0.1, "{steps}");
        assert_eq!(step(&bodies, &[[0.0; 3]; 2]), 0.0);
    }

    /// The largest error of the energy at 200 times until `until`, from the default step.
    fn largest_drift(bodies: &Bodies, until: f64) -> f64 {
        let accelerations = reference::accelerations(bodies, &GRAVITY);
        let dt = step(bodies, &accelerations);
        let backend = Box::new(reference::Reference::new(bodies, GRAVITY));
        let integrator = Advice::INDIVIDUALS.integrator;
        let mut simulation =
            Simulation::new(backend, bodies.clone(), GRAVITY, integrator, dt, 0.0).expect("a run");
        let origin = simulation.conserved().expect("energies");
        let steps = (until / dt / 200.0).ceil() as u64;
        let mut worst = 0.0_f64;
        for _ in 0..200 {
            let outcome = simulation.run(steps, |_| std::ops::ControlFlow::Continue(()));
            assert!(outcome.expect("steps").is_continue());
            let now = simulation.conserved().expect("energies");
            worst = worst.max(now.drift_since(&origin).energy);
        }
        worst
    }

    /// From apocentre, accelerations say nothing of the pericentre.
    #[test]
    fn default_steps_follow_pericentres() {
        for eccentricity in [0.5, 0.9, 0.95] {
            let bodies = two_body(1.0, eccentricity).expect("bodies");
            let drift = largest_drift(&bodies, 6.3);
            assert!(drift <= 4e-4, "{eccentricity}: {drift:e}");
        }
        // And of one of many massless bodies around a heavy one.
        let mut ring = kepler_ring(150, 1, 0.0, 0.5).expect("bodies");
        let accelerations = reference::accelerations(&ring, &GRAVITY);
        let circular = choose_step(&ring, &GRAVITY, &accelerations, 1.0);
        ring.vx[7] *= 0.2;
        ring.vy[7] *= 0.2;
        let eccentric = choose_step(&ring, &GRAVITY, &accelerations, 1.0);
        assert!(eccentric.value < 0.1 * circular.value, "{eccentric:?}");
        assert!(eccentric.why.contains("bodies 0 and 7"), "{eccentric:?}");
        // A fall into the centre has no pericentre that a fixed step could follow.
        ring.vx[7] = 0.0;
        ring.vy[7] = 0.0;
        let falling = choose_step(&ring, &GRAVITY, &accelerations, 1.0);
        assert!(
            falling.value > 0.0 && falling.why.contains("hermite4"),
            "{falling:?}"
        );
    }
}
