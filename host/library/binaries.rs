//! Bound pairs of bodies, and how hard they are.
//!
//! Two bodies with mass are a pair if each is the nearest neighbour of the other among such bodies and their
//! energy relative to each other is negative: the usual criterion for binaries in clusters (Parker et al.
//! 2009, MNRAS 397, 1577). A pair is hard if its binding energy exceeds the mean kinetic energy of
//! single bodies and of pairs as a whole (Heggie 1975, MNRAS 173, 729): encounters make it harder still.

use std::f64::consts::TAU;

use crate::bodies::Bodies;
use crate::neighbours::{mutual, nearest};
use crate::physics::Physics;
use crate::vectors::{axes, cross, difference, dot};

/// Two bodies that are bound to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Ids, the heavier body's first.
    pub ids: [u64; 2],
    /// Masses, in the same order.
    pub masses: [f64; 2],
    /// Semi-major axis a, of the energy −G m₁ m₂/(2a).
    pub semi_major_axis: f64,
    /// Eccentricity of their orbit.
    pub eccentricity: f64,
    /// Period of their orbit.
    pub period: f64,
    /// Energy that would part them.
    pub binding_energy: f64,
    /// True if that exceeds the mean kinetic energy of single bodies and of pairs as a whole.
    pub is_hard: bool,
}

/// Neighbours and pairs at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    /// Least distance of two bodies with mass; infinite where there are not two.
    pub least_distance: f64,
    /// Median of the distances to nearest neighbours.
    pub median_distance: f64,
    /// Pairs, those with the most binding energy first.
    pub pairs: Vec<Pair>,
}

impl Census {
    /// Takes the census of the bodies with mass. Energies are computed with the softened force, and elements
    /// belong to the Kepler orbit with the same energy and angular momentum.
    pub fn of(bodies: &Bodies, physics: &Physics) -> Self {
        let has_mass = |i: &usize| physics.weight(bodies.mass[*i]) != 0.0;
        let massive: Vec<usize> = (0..bodies.len()).filter(has_mass).collect();
        let points: Vec<[f64; 3]> = (massive.iter())
            .map(|&i| [bodies.x[i], bodies.y[i], bodies.z[i]])
            .collect();
        let neighbours = nearest(&points);
        let mut distances: Vec<f64> = neighbours.iter().map(|n| n.distance).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let pairs = mutual(&neighbours)
            .map(|both| both.map(|i| massive[i]))
            .filter_map(|both| Some((both, pair(bodies, physics, both)?)));
        let (members, mut pairs): (Vec<[usize; 2]>, Vec<Pair>) = pairs.unzip();
        let thermal = mean_kinetic_energy(bodies, physics, &massive, &members);
        for pair in &mut pairs {
            pair.is_hard = pair.binding_energy > thermal;
        }
        pairs.sort_by(|a, b| b.binding_energy.total_cmp(&a.binding_energy));
        Self {
            least_distance: distances.first().copied().unwrap_or(f64::INFINITY),
            median_distance: (distances.get(distances.len() / 2).copied()).unwrap_or(f64::INFINITY),
            pairs,
        }
    }

    /// Number of hard pairs.
    pub fn hard(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.is_hard).count()
    }
}

/// Mean kinetic energy of single bodies and of pairs as a whole, in the frame of the centre of mass.
fn mean_kinetic_energy(
    bodies: &Bodies,
    physics: &Physics,
    massive: &[usize],
    pairs: &[[usize; 2]],
) -> f64 {
    let centre = bodies.centre_of_mass_velocity().unwrap_or_default();
    let momentum = |i: usize| {
        let mass = physics.weight(bodies.mass[i]);
        let v = bodies.body(i).velocity;
        (mass, axes(|k| mass * (v[k] - centre[k])))
    };
    let energy = |(mass, p): (f64, [f64; 3])| dot(p, p) / (2.0 * mass);
    let alone: f64 = massive.iter().map(|&i| energy(momentum(i))).sum();
    // The motion of pairs in the place of that of their members.
    let bound = pairs.iter().map(|&[i, j]| {
        let ((m, p), (n, q)) = (momentum(i), momentum(j));
        let whole = energy((m + n, axes(|k| p[k] + q[k])));
        whole - energy((m, p)) - energy((n, q))
    });
    let sum = alone + bound.sum::<f64>();
    sum / (massive.len() - pairs.len()) as f64
}

/// The pair that two bodies are, if they are bound.
pub(crate) fn pair(bodies: &Bodies, physics: &Physics, [i, j]: [usize; 2]) -> Option<Pair> {
    let (a, b) = (bodies.body(i), bodies.body(j));
    let (a, b) = if b.mass > a.mass { (b, a) } else { (a, b) };
    let [m, n] = [a.mass, b.mass].map(|mass| physics.weight(mass));
    let r = difference(b.position, a.position);
    let v = difference(b.velocity, a.velocity);
    let gm = physics.coupling() * (m + n);
    let distance = (dot(r, r) + physics.softening * physics.softening).sqrt();
    let energy = 0.5 * dot(v, v) - gm / distance;
    if !(energy < 0.0 && energy.is_finite()) {
        return None;
    }
    let axis = gm / (-2.0 * energy);
    let momentum = cross(r, v);
    let binding_energy = physics.coupling() * m * n / (2.0 * axis);
    Some(Pair {
        ids: [a.id, b.id],
        masses: [a.mass, b.mass],
        semi_major_axis: axis,
        eccentricity: (1.0 - dot(momentum, momentum) / (gm * axis))
            .max(0.0)
            .sqrt(),
        period: TAU * (axis * axis * axis / gm).sqrt(),
        binding_energy,
        is_hard: false, // known when all pairs are
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyKind};
    use crate::initial_conditions::plummer;
    use crate::physics::ForceLaw;

    const G: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 2.0,
        softening: 0.0,
    };

    /// Puts a pair at its pericentre, moving as a whole.
    fn plant(bodies: &mut Bodies, first: u64, axis: f64, eccentricity: f64, masses: [f64; 2]) {
        let at = 3.0 * first as f64;
        let [m, n] = masses;
        let distance = axis * (1.0 - eccentricity);
        let gm = G.g * (m + n);
        let speed = (gm / axis * (1.0 + eccentricity) / (1.0 - eccentricity)).sqrt();
        for (k, share) in [(0, -n / (m + n)), (1, m / (m + n))] {
            bodies.push(Body {
                position: [at + share * distance, 1.0, 0.0],
                velocity: [0.3, -0.1, share * speed],
                mass: masses[k as usize],
                id: first + k,
                kind: BodyKind::Star,
            });
        }
    }

    #[test]
    fn planted_pairs_have_their_elements() {
        let mut bodies = Bodies::default();
        plant(&mut bodies, 10, 1e-3, 0.7, [1.0, 3.0]);
        plant(&mut bodies, 20, 0.1, 0.0, [2.0, 0.5]);
        for (id, x, v) in [(30, 50.0, 100.0), (31, 50.1, -100.0), (32, 55.0, 0.1)] {
            bodies.push(Body {
                position: [x, 0.0, 0.0],
                velocity: [0.0, v, 0.0],
                mass: 1.0,
                id,
                kind: BodyKind::Star,
            });
        }
        // Massless, between the first two.
        bodies.push(Body {
            mass: 0.0,
            ..bodies.body(0)
        });
        let census = Census::of(&bodies, &G);
        let [first, second] = census.pairs[..] else {
            panic!("two pairs: {census:?}");
        };
        for (pair, ids, axis, e, energy) in [
            (first, [11, 10], 1e-3, 0.7, 2.0 * 3.0 / 2e-3),
            (second, [20, 21], 0.1, 0.0, 2.0 * 1.0 / 0.2),
        ] {
            assert_eq!(pair.ids, ids);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-3);
            assert!(near(pair.semi_major_axis, axis), "{pair:?}");
            assert!((pair.eccentricity - e).abs() <= 1e-5, "{pair:?}");
            assert!(near(pair.binding_energy, energy), "{pair:?}");
        }
        // Two bodies move at 100, so that the mean kinetic energy is some 2000.
        assert!(first.is_hard && !second.is_hard, "{census:?}");
        assert_eq!(census.hard(), 1);
        assert!((census.least_distance - 3e-4).abs() <= 1e-12, "{census:?}");
    }

    #[test]
    fn single_stars_are_few_pairs() {
        let cluster = plummer(1000, 4).unwrap();
        let physics = Physics { g: 1.0, ..G };
        let census = Census::of(&cluster, &physics);
        assert!(census.hard() == 0 && census.pairs.len() < 30, "{census:?}");
        assert!(census.least_distance < census.median_distance);
        let none = Census::of(&cluster.part(0..1), &physics);
        assert!(none.pairs.is_empty() && none.least_distance.is_infinite());
    }
}
