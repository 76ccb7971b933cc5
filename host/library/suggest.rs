//! Softening and time step for those who do not choose their own.

use crate::bodies::Bodies;
use crate::physics::Physics;

/// Below this number bodies are individuals — planets, a binary — and nothing is softened.
const FEW: usize = 100;

/// A softening length: half the mean distance between bodies within the radius that holds half of
/// them, `r₅₀ N^(−1/3) / 2`, about the median position; 0 for fewer than 100 bodies.
///
/// Pairs closer than that are encounters of two bodies that stand for many, and softening takes
/// them out; structure on larger scales is kept.
pub fn softening(bodies: &Bodies) -> f64 {
    if bodies.len() < FEW {
        return 0.0;
    }
    let centre = [&bodies.x, &bodies.y, &bodies.z].map(|x| median(x.clone()));
    let radii = bodies
        .iter()
        .map(|body| distance(body.position, centre))
        .collect();
    median(radii) * (bodies.len() as f64).cbrt().recip() / 2.0
}

/// The [`softening`] of systems of equal size, one after another, that do not feel each other: the
/// least of theirs, wherever they lie.
///
/// # Panics
/// If there are no systems.
pub fn softening_of_systems(bodies: &Bodies, systems: usize) -> f64 {
    if systems == 1 {
        return softening(bodies);
    }
    let each = bodies.len() / systems;
    let lengths = (0..systems).map(|system| {
        let mut alone = Bodies::with_capacity(each);
        (system * each..(system + 1) * each).for_each(|i| alone.push(bodies.body(i)));
        softening(&alone)
    });
    lengths.reduce(f64::min).expect("one system at least")
}

/// A time step of a fixed-step integrator, from the accelerations at the start.
///
/// With softening, `√(2 η ε / a)` for the largest acceleration and η = 0.025, the criterion of
/// Springel (2005, MNRAS 364, 1105, eq. 34). Without, a hundredth of `√(r / a)` for the body with
/// the shortest such time, r being its distance from the centre of mass: some 600 steps for an
/// orbit. 0 where nothing is accelerated.
pub fn time_step(bodies: &Bodies, physics: &Physics, accelerations: &[[f64; 3]]) -> f64 {
    const ETA: f64 = 0.025;
    let size = |a: &[f64; 3]| distance(*a, [0.0; 3]);
    if physics.softening > 0.0 {
        let times = accelerations
            .iter()
            .map(|a| (2.0 * ETA * physics.softening / size(a)).sqrt());
        shortest(times)
    } else {
        let centre = bodies.centre_of_mass().unwrap_or_default();
        let times = bodies
            .iter()
            .zip(accelerations)
            .map(|(body, a)| 0.01 * (distance(body.position, centre) / size(a)).sqrt());
        shortest(times)
    }
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
    use crate::bodies::Body;
    use crate::force::reference;
    use crate::initial_conditions::{plummer, two_body};
    use crate::physics::Law;

    #[test]
    fn softening_follows_the_mean_distance() {
        // Plummer's half-number radius in standard units is 0.766.
        let few = softening(&plummer(1000, 1).expect("bodies"));
        let many = softening(&plummer(8000, 1).expect("bodies"));
        assert!((few - 0.0383).abs() < 0.004, "{few}");
        assert!((few / many - 2.0).abs() < 0.2, "{few} {many}");
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
        let found = softening_of_systems(&many, 3);
        assert!((found - 0.0383).abs() < 0.004, "{found}");
        let one = plummer(1000, 1).expect("bodies");
        assert_eq!(softening_of_systems(&one, 1), softening(&one));
        assert_eq!(softening_of_systems(&many, 100), 0.0, "30 bodies each");
    }

    #[test]
    fn a_circular_orbit_takes_some_600_steps() {
        let physics = Physics {
            law: Law::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        let bodies = two_body(1.0, 0.0).expect("bodies");
        let accelerations = reference::accelerations(&bodies, &physics);
        let steps = std::f64::consts::TAU / time_step(&bodies, &physics, &accelerations);
        assert!((steps - 628.3).abs() < 0.1, "{steps}");
        assert_eq!(time_step(&bodies, &physics, &[[0.0; 3]; 2]), 0.0);
    }
}
