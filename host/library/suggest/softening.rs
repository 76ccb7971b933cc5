//! The softening length that suits bodies.

use super::close::falling;
use super::{Chosen, FEW, Known, are_planets, distance, each_system, median};
use crate::binaries;
use crate::bodies::Bodies;
use crate::neighbours::{Neighbour, mutual, nearest};
use crate::physics::{ForceLaw, Physics};
use crate::units::{SOLAR_MASS, Units};

/// As many bodies, or fewer, that hold more than half of the mass are individuals — a star, a
/// binary — which the others go round.
const HEAVY: usize = 10;

/// Semi-major axis, in softening lengths and in distances to the next body, below which a bound pair would
/// not stay one.
const TIGHT: f64 = 0.125;

/// Softening lengths below which a semi-major axis is so short that softening changes the orbit.
const MUCH_WIDER: f64 = 10.0;

/// Number of bodies up to which one such pair is no chance.
const FEW_ENOUGH: usize = 10;

/// Masses of stars, in solar masses.
const STARS: std::ops::RangeInclusive<f64> = 0.01..=300.0;

/// Share of the Hill radius that bodies have as ε where some would fall onto each other.
const OF_HILL: f64 = 0.1;

/// Share of bodies with masses of stars from which on all are taken for stars. (Others are their remnants, or a
/// black hole.)
const MOST: f64 = 0.9;

/// Pairs so tight, in bodies with mass, from which on they are no chance: in Plummer spheres of 100
/// bodies and more there are none in 1000, or one.
const NO_CHANCE: f64 = 0.01;

/// The [chosen](choose_softening) softening length of bodies of which nothing else is known.
pub fn softening(bodies: &Bodies) -> f64 {
    choose_softening(bodies, &Known::NOTHING).value
}

/// A softening length, and why this one. The first rule that applies:
///
/// * where bodies fall onto each other, of 16 or more with mass on orbits about one, and do not collide: a tenth of the Hill
///   radius of most;
/// * as the bodies' generator advises;
/// * fewer than 100 bodies, or fewer than 10 in each of several systems, are individuals: 0;
/// * as few that have mass: the others are test particles, which feel no encounters: 0;
/// * where ten bodies or fewer hold more than half of the mass — a star, a binary, a central body —
///   the others are on orbits that softening would change: 0;
/// * bodies in units of au, as planets are: 0;
/// * bodies that have radii and may collide: 0;
/// * nine bodies of ten have masses of stars, from 0.01 to 300 solar masses, in units that are known: 0;
/// * block time steps were asked for, which follow pairs and encounters: 0;
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
    if let (1, false) = (known.systems, known.collide)
        && known
            .made_by
            .is_none_or(|(_, advice)| advice.softening == Some(0.0))
        && let Some(([i, j], hill)) = falling(bodies, &physics_of(known.law, known.g))
    {
        let why = format!(
            "bodies {i} and {j}, on orbits about another, fall onto each other: a tenth of the Hill radius"
        );
        return Chosen::new(OF_HILL * hill, why);
    }
    if let Some((name, advice)) = known.made_by
        && let Some(softening) = advice.softening
    {
        return Chosen::new(softening, format!("as `{name}` is made to be simulated"));
    }
    if known.systems == 1 {
        return of_one_system(bodies, known);
    }
    let chosen = each_system(bodies, known.systems).map(|alone| of_one_system(&alone, known));
    let less = |a: Chosen, b: Chosen| if b.value < a.value { b } else { a };
    let least = chosen.reduce(less).expect("one system at least");
    Chosen::new(
        least.value,
        format!("the least of {} systems: {}", known.systems, least.why),
    )
}

fn of_one_system(bodies: &Bodies, known: &Known<'_>) -> Chosen {
    // The steps of many systems are fixed, and follow few bodies alone.
    let few = if known.systems > 1 { HEAVY } else { FEW };
    if bodies.len() < few {
        return Chosen::new(0.0, format!("fewer than {few} bodies"));
    }
    let physics = physics_of(known.law, known.g);
    let massive = massive(bodies, &physics);
    match massive.len() {
        0 => return Chosen::new(0.0, "no body has mass"),
        1 => return Chosen::new(0.0, "one body has mass, the others are test particles"),
        with_mass if with_mass < few => {
            let why = format!("{with_mass} bodies have mass, the others are test particles");
            return Chosen::new(0.0, why);
        }
        _ => {}
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
    if known.collide {
        return Chosen::new(0.0, "bodies have radii and collide");
    }
    if let Some(units) = known.units
        && are_stars(&massive.mass, units)
    {
        return Chosen::new(0.0, "masses are those of single stars");
    }
    if known.follow_pairs {
        return Chosen::new(0.0, "block time steps follow pairs and encounters");
    }
    let centre = [&massive.x, &massive.y, &massive.z].map(|x| median(x.clone()));
    let radii = massive
        .iter()
        .map(|body| distance(body.position, centre))
        .collect();
    let softening = median(radii) * (massive.len() as f64).cbrt().recip() / 2.0;
    let why = "half the mean distance of bodies, taken to stand for many";
    let axes = axes_of_pairs(&massive, &physics);
    let tight = axes
        .into_iter()
        .filter(|axis| *axis < TIGHT * softening)
        .count();
    match tight {
        0 => Chosen::new(softening, why),
        tight if are_binaries(tight, massive.len()) => {
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

/// Returns whether most of these masses are masses of stars.
fn are_stars(masses: &[f64], units: Units) -> bool {
    let solar = units.mass / SOLAR_MASS;
    let stars = masses
        .iter()
        .filter(|mass| STARS.contains(&(*mass * solar)));
    stars.count() as f64 >= MOST * masses.len() as f64
}

/// Semi-major axes of bound pairs that the softening of `physics` changes, from the least on: a tenth of theirs is less. There
/// are none where they are so few that they may be chance.
///
/// # Panics
/// If there are no systems.
pub fn changed_pairs(bodies: &Bodies, physics: &Physics, systems: usize) -> Vec<f64> {
    let unsoftened = physics_of(physics.law, physics.g);
    let of_system = |system: Bodies| {
        let massive = massive(&system, &unsoftened);
        let changed = changed_in(&massive, physics);
        changed.into_iter().map(|(_, axis)| axis)
    };
    let mut axes: Vec<f64> = each_system(bodies, systems).flat_map(of_system).collect();
    axes.sort_by(f64::total_cmp);
    axes
}

/// Indices and semi-major axes of the pairs of one system that the softening of `physics` changes, of which all bodies
/// have mass.
fn changed_in(massive: &Bodies, physics: &Physics) -> Vec<([usize; 2], f64)> {
    let mut changed = pairs_with_axes(massive, &physics_of(physics.law, physics.g));
    changed.retain(|(_, axis)| *axis < MUCH_WIDER * physics.softening);
    let are_chance = massive.len() > FEW_ENOUGH && !are_binaries(changed.len(), massive.len());
    if are_chance { vec![] } else { changed }
}

/// The shortest time in which a pair that softening changes goes a softening length: it has the speed of its orbit
/// without softening, which is fast for what is left of its attraction.
pub(super) fn crossing_time(bodies: &Bodies, physics: &Physics) -> Option<f64> {
    let massive = massive(bodies, &physics_of(physics.law, physics.g));
    let time = |([i, j], _): ([usize; 2], f64)| {
        let (a, b) = (massive.body(i), massive.body(j));
        physics.softening / distance(a.velocity, b.velocity)
    };
    let times = changed_in(&massive, physics).into_iter().map(time);
    times.filter(|time| time.is_finite()).reduce(f64::min)
}

/// Returns whether this number of pairs, of bodies with mass, is no chance.
fn are_binaries(pairs: usize, bodies: usize) -> bool {
    pairs > 1 && pairs as f64 >= NO_CHANCE * bodies as f64
}

/// The bodies that attract others.
fn massive(bodies: &Bodies, physics: &Physics) -> Bodies {
    let mut massive = Bodies::default();
    (bodies.iter())
        .filter(|body| physics.weight(body.mass) > 0.0)
        .for_each(|body| massive.push(body));
    massive
}

/// Semi-major axes of the pairs of [`pairs_with_axes`].
fn axes_of_pairs(massive: &Bodies, physics: &Physics) -> Vec<f64> {
    let pairs = pairs_with_axes(massive, physics).into_iter();
    pairs.map(|(_, axis)| axis).collect()
}

/// Indices and semi-major axes of bound pairs that are close compared with the distance to the next body. (In dense regions some
/// bodies are always near each other.)
fn pairs_with_axes(massive: &Bodies, physics: &Physics) -> Vec<([usize; 2], f64)> {
    if matches!(physics.law, ForceLaw::AttractRepel { .. }) {
        return vec![]; // none of its orbits are ellipses
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
    // A pair alone has no next body.
    let others = nearest(&places).into_iter().map(Some);
    let with_others = (alone.into_iter()).zip(others.chain(std::iter::once(None)));
    let axis = |(i, other): (usize, Option<Neighbour>)| {
        let both = [i, partners[i]?];
        let pair = binaries::pair(massive, physics, both)?;
        let limit = other.map_or(f64::INFINITY, |other| TIGHT * other.distance);
        (pair.semi_major_axis < limit).then_some((both, pair.semi_major_axis))
    };
    with_others.filter_map(axis).collect()
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
