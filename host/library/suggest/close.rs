//! Bodies that will come so close to each other, or to the centre of a field, that steps of one length do not follow them.

use super::step::{HEAVY_SHARE, Orbit, heaviest, times_in_fields, turn_in_fields, turn_in_plane};
use super::{FEW, distance, median};
use crate::bodies::Bodies;
use crate::fields::External;
use crate::neighbours::{mutual, nearest};
use crate::parallel;
use crate::physics::{ForceLaw, Physics};
use crate::vectors::{axes, cross, difference, dot};

/// Share of the mass of the body in the middle from which on encounters of bodies on orbits change the energy.
const LIGHT: f64 = 1e-6;

/// Distance of two orbits in Hill radii below which bodies on circular ones come near each other: 2√3 (Gladman 1993,
/// Icarus 106, 247).
const STABLE: f64 = 3.464_101_615;

/// Share of the shortest time in fields at the start, below which bodies that fall into them need steps of their own.
const MUCH_SHORTER: f64 = 0.1;

/// Eccentricity from which on two bodies that are bound fall onto each other: they pass each other a thousand times nearer
/// than they are.
const FALLING: f64 = 0.999;

/// Bodies about one, from which on two that fall onto each other are a chance.
const BY_CHANCE: usize = 16;

/// Share of the time in fields at the start, below which bodies need steps of their own in the plane of a disc.
const OF_DISC: f64 = 0.2;

/// Number of bodies that are followed into fields, at most: every k-th of more.
const FOLLOWED: usize = 10_000;

/// Returns whether two bodies on orbits about the heaviest one will come near each other. Their orbits are then
/// apart by less than 2√3 Hill radii. Bodies that are bound to each other do not count, and neither do bodies that
/// softening as long as a Hill radius keeps apart.
pub fn orbits_are_close(bodies: &Bodies, physics: &Physics) -> bool {
    let Some(centre) = heaviest(bodies) else {
        return false;
    };
    let middle = physics.weight(bodies.mass[centre]);
    let with_weight = (0..bodies.len()).filter(|i| {
        let weight = physics.weight(bodies.mass[*i]);
        *i != centre && weight > LIGHT * middle
    });
    let mut orbits: Vec<(usize, f64, f64)> = with_weight
        .filter_map(|i| {
            let orbit = Orbit::of(bodies, physics, [centre, i]);
            let axis = -0.5 * orbit.mu / orbit.energy;
            (orbit.energy < 0.0).then(|| (i, axis, orbit.eccentricity()))
        })
        .collect();
    orbits.sort_by(|a, b| a.1.total_cmp(&b.1));
    let are_close = |inner: &(usize, f64, f64), outer: &(usize, f64, f64)| {
        let [i, j] = [inner.0, outer.0];
        let weight: f64 = [i, j].map(|i| physics.weight(bodies.mass[i])).iter().sum();
        let hill = 0.5 * (inner.1 + outer.1) * (weight / (3.0 * middle)).cbrt();
        let gap = outer.1 * (1.0 - outer.2) - inner.1 * (1.0 + inner.2);
        gap < STABLE * hill
            && physics.softening < hill
            && Orbit::of(bodies, physics, [i, j]).energy >= 0.0
    };
    match orbits.len() < FEW {
        true => (1..orbits.len()).any(|k| orbits[..k].iter().any(|a| are_close(a, &orbits[k]))),
        false => orbits.windows(2).any(|pair| are_close(&pair[0], &pair[1])),
    }
}

/// Two bodies about the heaviest one that fall onto each other, and the Hill radius of most bodies about it. The two are
/// bound to each other within their Hill radius. None for few bodies, which may be meant so.
pub(super) fn falling(bodies: &Bodies, physics: &Physics) -> Option<([usize; 2], f64)> {
    let centre = heaviest(bodies)?;
    let middle = bodies.mass[centre];
    let is_gravity = matches!(physics.law, ForceLaw::Gravity) && physics.g > 0.0;
    let about: Vec<usize> = (0..bodies.len())
        .filter(|&i| i != centre && bodies.mass[i] > 0.0)
        .collect();
    if !is_gravity || 2.0 * middle <= bodies.total_mass() || about.len() < BY_CHANCE {
        return None;
    }
    let origin = bodies.body(centre).position;
    let hill = |i: usize, mass: f64| {
        distance(bodies.body(i).position, origin) * (mass / (3.0 * middle)).cbrt()
    };
    let points: Vec<[f64; 3]> = about.iter().map(|&i| bodies.body(i).position).collect();
    let falls = |&[i, j]: &[usize; 2]| {
        let orbit = Orbit::of(bodies, physics, [i, j]);
        orbit.radius < hill(i, bodies.mass[i] + bodies.mass[j])
            && orbit.energy < 0.0
            && orbit.eccentricity() > FALLING
    };
    let nearest = nearest(&points);
    let pair = mutual(&nearest)
        .map(|pair| pair.map(|k| about[k]))
        .find(falls)?;
    let of_each = about.iter().map(|&i| hill(i, bodies.mass[i])).collect();
    Some((pair, median(of_each)))
}

/// Returns whether bodies turn each other by a right angle before softening keeps them from it. Then ε is less than
/// `G m / v²`, with the mean mass m and the mean square speed v², or what it will be. False where one body has much of
/// the mass.
pub fn turn_each_other(bodies: &Bodies, physics: &Physics) -> bool {
    /// Share of `G M / r₅₀` that v² has at least, once bodies have fallen together: 0.36 in a Plummer sphere.
    const SETTLED: f64 = 0.3;
    let (n, mass) = (bodies.len(), bodies.total_mass());
    let is_heavy = |mass_of_one: &f64| *mass_of_one > 5.0 * HEAVY_SHARE * mass;
    if !matches!(physics.law, ForceLaw::Gravity) || n < 2 || bodies.mass.iter().any(is_heavy) {
        return false;
    }
    let (Some(centre), Some(rest)) = (bodies.centre_of_mass(), bodies.centre_of_mass_velocity())
    else {
        return false;
    };
    let mut squares = [0.0; 2];
    let mut radii = vec![];
    for body in bodies.iter().filter(|body| body.mass > 0.0) {
        let speed = distance(body.velocity, rest);
        squares[0] += body.mass * body.mass;
        squares[1] += body.mass * speed * speed;
        radii.push(distance(body.position, centre));
    }
    let [mean, speed] = squares.map(|square| square / mass);
    let settled = SETTLED * physics.g * mass / median(radii);
    physics.softening < physics.g * mean / speed.max(settled)
}

/// Returns whether bodies fall so far into fields, within a time of this `span`, that they need shorter steps there: a
/// tenth of the shortest at the start, or less. Bodies above a thin disc need them if theirs are a fifth in its plane.
pub fn fall_into_fields(bodies: &Bodies, external: &External, span: f64) -> bool {
    let now = times_in_fields(bodies, Some(external));
    let shortest = now.iter().copied().fold(f64::INFINITY, f64::min);
    let centres = external.resting_centres();
    let is_over_disc = |i: usize| {
        let place = bodies.body(i).position;
        let mut in_planes = centres
            .iter()
            .map(|&centre| turn_in_plane(external, centre, place));
        in_planes.any(|time| time < OF_DISC * now[i])
    };
    let every = bodies.len().div_ceil(FOLLOWED).max(1);
    time_in_falls(bodies, external, span) < MUCH_SHORTER * shortest
        || (0..bodies.len()).step_by(every).any(is_over_disc)
}

/// The shortest time in which fields turn a body by a radian, on the way of bodies to their pericentres within a `span`.
pub(super) fn time_in_falls(bodies: &Bodies, external: &External, span: f64) -> f64 {
    let every = bodies.len().div_ceil(FOLLOWED).max(1);
    let times = parallel::each(bodies.len().div_ceil(every), 1, |k| {
        time_in_fall(bodies, external, every * k, span)
    });
    times.into_iter().fold(f64::INFINITY, f64::min)
}

/// The shortest time in which fields turn a body by a radian on its way to the pericentre about the centre of each field.
/// Nothing else is taken to pull it. Infinite in fields that have no energy to tell it by.
fn time_in_fall(bodies: &Bodies, external: &External, i: usize, span: f64) -> f64 {
    /// Share of the distance that is left after each look.
    const CLOSER: f64 = 0.8;
    /// Share of the distance at which it is not followed further.
    const DEEPEST: f64 = 1e-6;
    let body = bodies.body(i);
    let potential = external.potential();
    let mut shortest = f64::INFINITY;
    for centre in external.resting_centres() {
        let (r, v) = (difference(body.position, centre), body.velocity);
        let (radius, spin) = (dot(r, r).sqrt(), cross(r, v));
        let spin = dot(spin, spin);
        let energy = 0.5 * dot(v, v) + potential.at(body.position);
        // A body that flies away may not come back.
        if radius == 0.0 || (energy >= 0.0 && dot(r, v) > 0.0) {
            continue;
        }
        let (mut share, mut passed) = (CLOSER, 0.0);
        while share > DEEPEST && passed <= span {
            let place = axes(|k| centre[k] + share * r[k]);
            let (distance, square) = (share * radius, 2.0 * (energy - potential.at(place)));
            let inward = square - spin / (distance * distance);
            if inward.is_nan() || inward <= 0.0 {
                break;
            }
            passed += (1.0 / CLOSER - 1.0) * distance / inward.sqrt();
            if passed <= span {
                shortest = shortest.min(turn_in_fields(external, place));
            }
            share *= CLOSER;
        }
    }
    shortest
}
