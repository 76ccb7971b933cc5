//! Measures of a cluster where a run begins: scales, and pairs that are there.

use super::group::crowding;
use super::vector::{add_scaled, difference, dot, scale};
use super::{Orbit, Scales, Vector};
use crate::bodies::Bodies;
use crate::neighbours::{Tree, mutual, nearest};
use crate::physics::Physics;

/// Bodies from whose distances the size of a cluster is found.
const SAMPLE: usize = 2048;

/// Mass, in mean masses of the bodies, above which a body is heavy.
const HEAVY: f64 = 10.0;

/// Binding energy, in kinetic energies of all bodies, above which two heavy bodies hold much. Block steps that do not know
/// of the pair then lose a millionth of the cluster's energy in a few time units.
const MUCH: f64 = 0.002;

/// A body or a bound pair as a whole: mass times G, position, velocity.
type Whole = (f64, [Vector; 2]);

/// Bodies with mass: number, mass times G, position and velocity.
fn massive(bodies: &Bodies, physics: &Physics) -> Vec<(usize, Whole)> {
    let whole = |i: usize| {
        let body = bodies.body(i);
        let gm = physics.coupling() * physics.weight(body.mass);
        (i, (gm, [body.position, body.velocity]))
    };
    let all = (0..bodies.len()).map(whole);
    all.filter(|(_, (gm, _))| *gm != 0.0).collect()
}

/// Mass above which a body is heavy among bodies of these masses. Two heavy bodies soon find each other, and their
/// energy is a large part of the energy of all.
pub(crate) fn heavy_above(masses: &[f64]) -> f64 {
    let with_mass = masses.iter().filter(|&&mass| mass > 0.0).count();
    HEAVY * masses.iter().sum::<f64>() / with_mass as f64
}

/// Returns whether two bodies are bound to each other with much of the energy of all. Both are heavy, or one is so heavy that the
/// product of their masses is as large. Their steps need not be short.
pub(crate) fn a_pair_holds_much(bodies: &Bodies, physics: &Physics) -> bool {
    if !some_are_heavy(&bodies.mass) {
        return false;
    }
    let heavy = physics.coupling() * heavy_above(&bodies.mass);
    let all = massive(bodies, physics);
    let mut all: Vec<Whole> = all.into_iter().map(|(_, whole)| whole).collect();
    let total: f64 = all.iter().map(|(gm, _)| gm).sum();
    let much = MUCH * 0.5 * total * mean_square_velocity(all.iter());
    let holds_much = |(m, [x, v]): Whole, (n, [y, w]): Whole| {
        let d = difference(y, x);
        let square = dot(d, d);
        // Most are too far away, however slow they are.
        if square == 0.0 || square * much * much > m * m * n * n {
            return false;
        }
        let u = difference(w, v);
        let energy = 0.5 * dot(u, u) - (m + n) / square.sqrt();
        -energy * m * n / (m + n) > much
    };
    // The heaviest first: few have a partner that is heavy enough.
    all.sort_unstable_by(|(m, _), (n, _)| n.total_cmp(m));
    let mut bodies = all.iter().enumerate();
    bodies.any(|(i, &one)| {
        let mut heavier = (all[..i].iter()).take_while(|(gm, _)| gm * one.0 > heavy * heavy);
        heavier.any(|&other| holds_much(one, other))
    })
}

/// Returns whether some bodies are heavy.
pub(crate) fn some_are_heavy(masses: &[f64]) -> bool {
    masses.iter().copied().fold(0.0, f64::max) > heavy_above(masses)
}

/// Bodies that are each other's nearest neighbours, as places in a list.
fn companions(all: &[(usize, Whole)]) -> Vec<[usize; 2]> {
    let points: Vec<Vector> = all.iter().map(|(_, (_, [x, _]))| *x).collect();
    mutual(&nearest(&points)).collect()
}

/// Mean square of the velocity of bodies relative to their centre of mass, weighted by their masses.
fn mean_square_velocity<'a>(all: impl Iterator<Item = &'a Whole> + Clone) -> f64 {
    let total: f64 = all.clone().map(|(gm, _)| gm).sum();
    let mut mean = [0.0; 3];
    for (gm, [_, v]) in all.clone() {
        mean = add_scaled(mean, gm / total, *v);
    }
    let square = |(gm, [_, v]): &Whole| {
        let u = difference(*v, mean);
        gm / total * dot(u, u)
    };
    all.map(square).sum()
}

fn orbit(one: Whole, other: Whole) -> Orbit {
    let [(m, [x, v]), (n, [y, w])] = [one, other];
    Orbit::of(m + n, difference(y, x), difference(w, v))
}

impl Scales {
    /// Scales of bodies. Bound pairs of nearest neighbours count as wholes.
    pub(crate) fn of(bodies: &Bodies, physics: &Physics) -> Self {
        let all = massive(bodies, physics);
        let mut wholes: Vec<Option<Whole>> = all.iter().map(|&(_, whole)| Some(whole)).collect();
        for [i, k] in companions(&all) {
            let (one, other) = (all[i].1, all[k].1);
            if orbit(one, other).apocentre.is_finite() {
                let total = one.0 + other.0;
                let mean = |axis: usize| {
                    let weighted = scale(one.0 / total, one.1[axis]);
                    add_scaled(weighted, other.0 / total, other.1[axis])
                };
                wholes[i] = Some((total, [mean(0), mean(1)]));
                wholes[k] = None;
            }
        }
        let wholes: Vec<Whole> = wholes.into_iter().flatten().collect();
        let total: f64 = wholes.iter().map(|(gm, _)| gm).sum();
        let speed_squared = 2.0 * mean_square_velocity(wholes.iter());
        let sample: Vec<&Whole> = wholes
            .iter()
            .step_by(wholes.len().div_ceil(SAMPLE).max(1))
            .collect();
        let sampled: f64 = sample.iter().map(|(gm, _)| gm).sum();
        let mut potential = 0.0;
        for (i, (m, [x, _])) in sample.iter().enumerate() {
            for (n, [y, _]) in &sample[..i] {
                let d = difference(*y, *x);
                potential += m * n / dot(d, d).sqrt();
            }
        }
        // Virial radius, and the time in which the cluster moves through it.
        let radius = 0.5 * sampled * sampled / potential;
        let crossing = (radius * radius * radius / total).sqrt();
        let time = crossing / (2.0 * all.len() as f64);
        // As a saved state finds them.
        let gm = physics.coupling() * bodies.mass.iter().sum::<f64>();
        Self::new(time, speed_squared, all.len(), gm)
    }
}

/// Numbers of the bodies of pairs with which a run begins.
pub(crate) fn pairs_of(bodies: &Bodies, physics: &Physics, scales: &Scales) -> Vec<[usize; 2]> {
    let all = massive(bodies, physics);
    let points: Vec<Vector> = all.iter().map(|(_, (_, [x, _]))| *x).collect();
    let heaviest = all.iter().map(|(_, (gm, _))| *gm).fold(0.0, f64::max);
    let tree = Tree::of(&points, 0..all.len());
    let is_pair = |&[i, k]: &[usize; 2]| {
        let (one, other) = (all[i].1, all[k].1);
        let total = one.0 + other.0;
        let orbit = orbit(one, other);
        let size = orbit.size(scales, total);
        if !orbit.forms(scales, total) {
            return false;
        }
        let centre = add_scaled(scale(one.0 / total, one.1[0]), other.0 / total, other.1[0]);
        let is_near = |(gm, [x, _]): Whole| {
            let d = difference(x, centre);
            dot(d, d).sqrt() < crowding(size, orbit.distance, gm, total)
        };
        if size <= scales.wide([one.0, other.0]) {
            return true;
        }
        let mut others = vec![];
        let farthest = crowding(size, orbit.distance, heaviest, total);
        tree.near(centre, farthest, &mut others);
        let mut others = others.into_iter().filter(|&other| other != i && other != k);
        !others.any(|third| is_near(all[third].1))
    };
    let pairs = companions(&all).into_iter().filter(is_pair);
    pairs.map(|pair| pair.map(|place| all[place].0)).collect()
}
