//! The time step that suits bodies.

use rayon::prelude::*;

use super::{Chosen, FEW, distance, median};
use crate::bodies::Bodies;
use crate::fields::External;
use crate::neighbours::nearest;
use crate::physics::{ForceLaw, Physics};
use crate::settings::Setting;

/// A fixed step is made shorter for bodies' pericentres down to this share of what it would be.
const LEAST_SHARE: f64 = 0.002;

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
fn times_in_fields(bodies: &Bodies, external: Option<&External>) -> Vec<f64> {
    let Some(external) = external.filter(|external| !external.is_none()) else {
        return vec![f64::INFINITY; bodies.len()];
    };
    let time = |i: usize| {
        let tides = external.tides(bodies.body(i).position);
        let square: f64 = tides.as_flattened().iter().map(|t| t * t).sum();
        (6.0 / square).sqrt().sqrt()
    };
    (0..bodies.len()).into_par_iter().map(time).collect()
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

/// A time step of a fixed-step integrator, from the state and the accelerations at the start, and
/// why this one. An integrator of higher order than leapfrog can take several `times` as much.
///
/// With softening, `√(2 η ε / a)` for the largest acceleration and η = 0.025, the criterion of
/// Springel (2005, MNRAS 364, 1105, eq. 34). Without, a hundredth of `√(r / a)` for the body with
/// the shortest such time, r being its distance from the centre of mass: some 600 steps for a
/// circular orbit. In external fields at most a hundredth of the time in which they turn a body by a radian,
/// wherever their centres are. 0 where nothing is accelerated.
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
    times: f64,
) -> Chosen {
    let of_bodies = step_of_bodies(bodies, physics, accelerations, times);
    let share = 0.01 * times;
    let of_fields = share * shortest(times_in_fields(bodies, external).into_iter());
    match of_fields > 0.0 && (of_fields < of_bodies.value || of_bodies.value == 0.0) {
        true => Chosen::new(
            of_fields,
            format!("{share} of the shortest time in which fields turn a body by a radian"),
        ),
        false => of_bodies,
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
                 {} with {} would",
                passage.bodies[0],
                passage.bodies[1],
                passage.distance,
                Setting::Integrator.with("hermite4"),
                Setting::Eta.with(0.01)
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
