//! The time step that suits bodies.

use super::close::time_in_falls;
use super::softening::crossing_time;
use super::{Chosen, FEW, distance, median, near_settings};
use crate::bodies::{Bodies, Body};
use crate::fields::External;
use crate::neighbours::nearest;
use crate::parallel;
use crate::physics::{ForceLaw, Physics};
use crate::vectors::{cross, difference, dot};

/// A fixed step is made shorter for bodies' pericentres down to this share of what it would be.
const LEAST_SHARE: f64 = 0.002;

/// `2K/|W|` below which bodies fall together.
const COLD: f64 = 0.5;

/// Share of the kinetic energy in motion towards the centre above which bodies fall together.
const INWARD: f64 = 0.5;

/// Share of the mass from which on one body of many decides on the step.
pub(super) const HEAVY_SHARE: f64 = 0.01;

/// The dynamical time of a system: the median over its bodies of `√(r / a)`, r being the distance from
/// the centre of mass, or of the time in which external fields turn it by a radian, if that is shorter. 0 where
/// nothing is accelerated.
pub fn dynamical_time(
    bodies: &Bodies,
    accelerations: &[[f64; 3]],
    external: Option<&External>,
) -> f64 {
    let centre = bodies.centre_of_mass().unwrap_or_default();
    let times = bodies
        .iter()
        .zip(accelerations)
        .map(|(body, a)| (distance(body.position, centre) / distance(*a, [0.0; 3])).sqrt());
    let is_time = |time: &f64| *time > 0.0 && time.is_finite();
    let shorter = |(a, b): (f64, f64)| match (is_time(&a), is_time(&b)) {
        (true, true) => a.min(b),
        (false, true) => b,
        _ => a,
    };
    let times = times.zip(times_in_fields(bodies, external)).map(shorter);
    let times: Vec<f64> = times.filter(is_time).collect();
    if times.is_empty() { 0.0 } else { median(times) }
}

/// Time in which external fields turn each body by a radian: 1/Ω of a circular orbit about a point mass,
/// which has a tidal tensor of the norm √6 Ω². Infinite without fields, and if the tensor of a user's
/// field is not known.
pub(super) fn times_in_fields(bodies: &Bodies, external: Option<&External>) -> Vec<f64> {
    let Some(external) = external.filter(|external| !external.is_none()) else {
        return vec![f64::INFINITY; bodies.len()];
    };
    let time = |i: usize| turn_in_fields(external, bodies.body(i).position);
    parallel::each(bodies.len(), 1, time)
}

/// Time in which external fields turn a body by a radian as far from a centre as this position, in the plane of a disc: a
/// body goes through the plane sooner or later.
pub(super) fn turn_in_plane(external: &External, centre: [f64; 3], position: [f64; 3]) -> f64 {
    let [x, y, z] = difference(position, centre);
    let radius = x.hypot(y);
    let (scale, x, y) = match radius > 0.0 {
        true => (radius.hypot(z) / radius, x, y),
        false => (1.0, z, 0.0),
    };
    let in_plane = [centre[0] + scale * x, centre[1] + scale * y, centre[2]];
    turn_in_fields(external, in_plane)
}

/// Time in which external fields turn a body at this position by a radian.
pub(super) fn turn_in_fields(external: &External, position: [f64; 3]) -> f64 {
    let tides = external.tides(position);
    let square: f64 = tides.as_flattened().iter().map(|t| t * t).sum();
    (6.0 / square).sqrt().sqrt()
}

/// The longest of steps that follow the motion: an eighth of the [dynamical time](dynamical_time), because
/// few bodies could take longer steps. 0 if nothing is accelerated.
pub fn longest_step(
    bodies: &Bodies,
    accelerations: &[[f64; 3]],
    external: Option<&External>,
) -> f64 {
    dynamical_time(bodies, accelerations, external) / 8.0
}

/// The longest of steps for bodies that are one group, which is followed apart: an eighth of `√(d³ / (G M))`, d being the
/// largest distance from their centre of mass. 0 if they do not attract each other.
pub fn longest_of_group(bodies: &Bodies, physics: &Physics) -> f64 {
    let centre = bodies.centre_of_mass().unwrap_or_default();
    let places = bodies.iter().map(|body| distance(body.position, centre));
    let farthest = places.fold(0.0, f64::max);
    let mass = physics.g.abs() * bodies.total_mass();
    let time = (farthest / mass).sqrt() * farthest;
    if time.is_finite() { time / 8.0 } else { 0.0 }
}

/// A time step of a fixed-step integrator, from the state and the accelerations at the start, and
/// why this one. An integrator of higher order than leapfrog can take several `times` as much. The run takes a time of
/// this `span`, or an infinite one.
///
/// With softening, `√(2 η ε / a)` for the largest acceleration and η = 0.025, the criterion of
/// Springel (2005, MNRAS 364, 1105, eq. 34). That is the state at the start, and bodies will come closer. So there are
/// three more limits. A twelfth of the time in which a body at the median distance would turn by a radian,
/// softened. Bodies of the total mass M fall together if `2K/|W|` is below 0.5, or if more than half of their motion is
/// inward: a sixth of `√(ε³ / (G M))`.
/// Pairs pass each other: a tenth of `√(d³ / (G (m₁ + m₂)))`, d² being the sum of the squares of ε and of their
/// pericentre. These pairs are any two of fewer than 100 bodies. Of more, a body that has a hundredth of the mass
/// makes pairs with all others. Bound pairs that softening changes: half of the
/// time in which the fastest of them goes a softening length. Without softening, a hundredth of `√(r / a)` for the body with
/// the shortest such time, r being its distance from the centre of mass: some 600 steps for a
/// circular orbit. In external fields at most a hundredth of the time in which they turn a body by a radian. It is taken
/// where the body is, and on the way to the pericentre about their centres, if they rest. This limit is not below 1/500 of the others. 0
/// where nothing is accelerated.
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
    external: Option<&External>,
    (times, span): (f64, f64),
) -> Chosen {
    let of_bodies = step_of_bodies(bodies, physics, accelerations, times);
    let share = 0.01 * times;
    let shorter = |of_fields: &Chosen, other: &Chosen| {
        of_fields.value > 0.0 && (of_fields.value < other.value || other.value == 0.0)
    };
    let now = Chosen::new(
        share * shortest(times_in_fields(bodies, external).into_iter()),
        format!("{share} of the shortest time in which fields turn a body by a radian"),
    );
    let plain = match shorter(&now, &of_bodies) {
        true => now,
        false => of_bodies,
    };
    let Some(external) = external.filter(|external| !external.is_none()) else {
        return plain;
    };
    if external.changes_with_time() {
        let why = format!(
            "{}; how near bodies will come to fields that change with time is not known",
            plain.why
        );
        return Chosen { why, ..plain };
    }
    let falling = share * time_in_falls(bodies, external, span);
    let least = LEAST_SHARE * plain.value;
    let why = match falling < least {
        true => format!(
            "bodies fall into a field, deeper than fixed steps follow: {} would",
            near_settings()
        ),
        false => format!(
            "{share} of the shortest time in which fields turn a body by a radian, at pericentre"
        ),
    };
    let later = Chosen::new(falling.max(least), why);
    match later.value.is_finite() && shorter(&later, &plain) {
        true => later,
        false => plain,
    }
}

/// Like [`choose_step`], but from the forces between bodies alone.
fn step_of_bodies(
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
        let now = Chosen::new(shortest(each), why);
        let later = [
            whole(bodies, physics, times),
            collapse(bodies, physics, accelerations, times),
            softened_passage(bodies, physics, times),
            loosened(bodies, physics, times),
        ];
        let shorter = |a: Chosen, b: Chosen| match b.value < a.value {
            true => b,
            false => a,
        };
        // Nothing moves where nothing is accelerated.
        return match now.value > 0.0 {
            true => later.into_iter().flatten().fold(now, shorter),
            false => now,
        };
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
                 {} would",
                passage.bodies[0],
                passage.bodies[1],
                passage.distance,
                near_settings()
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

/// The step for the motion in the system as a whole, which a large softening makes slow, and its steps long.
fn whole(bodies: &Bodies, physics: &Physics, times: f64) -> Option<Chosen> {
    if !matches!(physics.law, ForceLaw::Gravity) || bodies.len() < FEW {
        return None; // of few bodies, pairs decide
    }
    let centre = bodies.centre_of_mass()?;
    let massive = bodies.iter().filter(|body| body.mass > 0.0);
    let radius = median(
        massive
            .map(|body| distance(body.position, centre))
            .collect(),
    );
    let length = radius.hypot(physics.softening);
    let mass = physics.g.abs() * bodies.total_mass();
    let time = (length / mass).sqrt() * length;
    let why = "a twelfth of √(d³/GM), d being the median distance from the centre, softened";
    time.is_finite()
        .then(|| Chosen::new(times * time / 12.0, why))
}

/// The step for bodies so cold, or so fast inward, that they fall together, until softening stops them. In a sphere as large as ε they
/// oscillate with `√(G M / ε³)`.
fn collapse(
    bodies: &Bodies,
    physics: &Physics,
    accelerations: &[[f64; 3]],
    times: f64,
) -> Option<Chosen> {
    if !matches!(physics.law, ForceLaw::Gravity) || bodies.len() < FEW {
        return None; // of few bodies, pairs decide
    }
    let (centre, rest) = (bodies.centre_of_mass()?, bodies.centre_of_mass_velocity()?);
    let (mut kinetic, mut virial, mut mass) = (0.0, 0.0, 0.0);
    let (mut outward, mut inertia) = (0.0, 0.0);
    for (body, a) in bodies.iter().zip(accelerations) {
        let Body {
            position, mass: m, ..
        } = body;
        let speed = distance(body.velocity, rest);
        kinetic += 0.5 * m * speed * speed;
        virial += m * (0..3).map(|k| position[k] * a[k]).sum::<f64>();
        let (r, v) = (
            difference(position, centre),
            difference(body.velocity, rest),
        );
        outward += m * dot(r, v);
        inertia += m * dot(r, r);
        mass += m;
    }
    let ratio = 2.0 * kinetic / virial.abs();
    // Share of the kinetic energy in a motion towards the centre with a speed proportional to the distance.
    let inward = match outward < 0.0 {
        true => outward * outward / (2.0 * inertia * kinetic),
        false => 0.0,
    };
    let because = match (ratio < COLD, inward > INWARD) {
        (true, _) => format!("with 2K/|W| = {ratio:.2} bodies fall together"),
        (false, true) => "bodies move towards each other".to_owned(),
        (false, false) => return None,
    };
    let time = (physics.softening.powi(3) / (physics.g.abs() * mass)).sqrt();
    let why = format!("a sixth of √(ε³/GM): {because}");
    Some(Chosen::new(times * time / 6.0, why))
}

/// The step for the pair that is the fastest one where softening lets it pass.
fn softened_passage(bodies: &Bodies, physics: &Physics, times: f64) -> Option<Chosen> {
    if !matches!(physics.law, ForceLaw::Gravity) {
        return None;
    }
    let n = bodies.len();
    let of = |i: usize, j: usize| {
        let orbit = Orbit::of(bodies, physics, [i, j]);
        let d = orbit.pericentre().hypot(physics.softening);
        let time = (d / orbit.mu).sqrt() * d;
        (orbit.mu > 0.0 && time.is_finite()).then_some((time, [i, j]))
    };
    let least = |a: (f64, [usize; 2]), b: (f64, [usize; 2])| if b.0 < a.0 { b } else { a };
    let found = match n < FEW {
        true => (0..n)
            .flat_map(|j| (0..j).map(move |i| (i, j)))
            .filter_map(|(i, j)| of(i, j))
            .reduce(least),
        false => {
            let heaviest = heaviest(bodies)?;
            if bodies.mass[heaviest] < HEAVY_SHARE * bodies.total_mass() {
                return None;
            }
            let others = (0..n).filter(|j| *j != heaviest);
            others.filter_map(|j| of(heaviest, j)).reduce(least)
        }
    };
    found.map(|(time, [i, j])| {
        let why = format!(
            "a tenth of √(d³/Gm) of bodies {i} and {j}, d being how near they come, softened"
        );
        Chosen::new(0.1 * times * time, why)
    })
}

/// The step for bound pairs that softening loosens, or parts: they leave its reach as fast as they went round.
fn loosened(bodies: &Bodies, physics: &Physics, times: f64) -> Option<Chosen> {
    const SHARE: f64 = 0.5;
    let time = crossing_time(bodies, physics)?;
    let why =
        "half of the time in which the fastest pair that softening changes goes a softening length";
    Some(Chosen::new(SHARE * times * time, why))
}

/// Four digits, for people.
fn rounded(x: f64) -> String {
    match x.abs() {
        0.001..1e6 => format!("{x:.4}"),
        _ => format!("{x:.3e}"),
    }
}

/// Returns whether most bodies are on orbits about the heaviest one that do not lead away, and none falls onto it.
pub fn are_on_orbits(bodies: &Bodies, physics: &Physics) -> bool {
    /// Eccentricity above which a fixed step does not suit an orbit.
    const RADIAL: f64 = 0.99;
    let Some(centre) = heaviest(bodies) else {
        return false;
    };
    let others = (0..bodies.len()).filter(|i| *i != centre);
    let orbits = others.map(|i| Orbit::of(bodies, physics, [centre, i]));
    let bound: Vec<Orbit> = orbits.filter(|orbit| orbit.energy < 0.0).collect();
    bound.iter().all(|orbit| orbit.eccentricity() < RADIAL) && 2 * bound.len() >= bodies.len() - 1
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
    let heaviest = heaviest(bodies)?;
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
    let orbit = Orbit::of(bodies, physics, [i, j]);
    let pull = orbit.mu / (orbit.radius * orbit.radius);
    let relative = distance(accelerations[i], accelerations[j]);
    let is_pair =
        orbit.mu > 0.0 && orbit.radius > 0.0 && orbit.energy < 0.0 && pull > 0.5 * relative;
    if !is_pair {
        return None;
    }
    let distance = orbit.pericentre();
    let time = (distance / (orbit.mu * (1.0 + orbit.eccentricity()))).sqrt() * distance;
    Some(Passage {
        bodies: [i, j],
        time,
        distance,
    })
}

/// Two bodies, as if they were alone and not softened.
pub(super) struct Orbit {
    /// Distance at the start.
    pub(super) radius: f64,
    /// `G (m₁ + m₂)`.
    pub(super) mu: f64,
    /// Energy per reduced mass.
    pub(super) energy: f64,
    /// Angular momentum per reduced mass.
    spin: f64,
}

impl Orbit {
    pub(super) fn of(bodies: &Bodies, physics: &Physics, [i, j]: [usize; 2]) -> Self {
        let (a, b) = (bodies.body(i), bodies.body(j));
        let mu = physics.coupling() * (physics.weight(a.mass) + physics.weight(b.mass));
        let (r, v) = (
            difference(b.position, a.position),
            difference(b.velocity, a.velocity),
        );
        let (radius, speed) = (distance(r, [0.0; 3]), distance(v, [0.0; 3]));
        Self {
            radius,
            mu,
            energy: 0.5 * speed * speed - mu / radius,
            spin: distance(cross(r, v), [0.0; 3]),
        }
    }

    pub(super) fn eccentricity(&self) -> f64 {
        let of_spin = self.spin / self.mu;
        (1.0 + 2.0 * self.energy * of_spin * of_spin)
            .max(0.0)
            .sqrt()
    }

    fn pericentre(&self) -> f64 {
        self.spin * (self.spin / self.mu) / (1.0 + self.eccentricity())
    }
}

pub(super) fn heaviest(bodies: &Bodies) -> Option<usize> {
    let heavier = |a, b| match bodies.mass[b] > bodies.mass[a] {
        true => b,
        false => a,
    };
    (0..bodies.len()).reduce(heavier)
}

/// The shortest time that is longer than zero; 0 if there is none.
fn shortest(times: impl Iterator<Item = f64>) -> f64 {
    let shortest = times
        .filter(|time| *time > 0.0)
        .fold(f64::INFINITY, f64::min);
    if shortest.is_finite() { shortest } else { 0.0 }
}
