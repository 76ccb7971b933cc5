//! The centre that escapes are measured from: the centre of mass of the bodies that have not escaped.

use crate::bodies::{Bodies, Body};
use crate::vectors::distance;

/// Most rounds in which bodies within the radius are chosen anew.
const ROUNDS: usize = 50;

/// Position and velocity of the centre of mass of the bodies within `radius` of it. A body that leaves carries the
/// centre of mass of all with it, and this centre stays with the others.
///
/// If some bodies are outside, the search for it begins at the median position, by mass.
pub(super) fn centre_within(bodies: &Bodies, radius: f64) -> [[f64; 3]; 2] {
    let phase = |bodies: &Bodies| {
        let place = bodies.centre_of_mass().unwrap_or_default();
        [place, bodies.centre_of_mass_velocity().unwrap_or_default()]
    };
    let is_within = |centre: [f64; 3], body: &Body| distance(body.position, centre) <= radius;
    let of_all = phase(bodies);
    let is_outside = |body: Body| distance(body.position, of_all[0]) > radius;
    if !bodies.iter().any(is_outside) {
        return of_all;
    }
    let medians = [&bodies.x, &bodies.y, &bodies.z].map(|x| median(x, &bodies.mass));
    let mut inner = (bodies.clone(), [medians, of_all[1]]);
    for _ in 0..ROUNDS {
        let [centre, _] = inner.1;
        let nearer: Bodies = bodies
            .iter()
            .filter(|body| is_within(centre, body))
            .collect();
        if nearer.total_mass() <= 0.0 || nearer == inner.0 {
            break;
        }
        let found = phase(&nearer);
        inner = (nearer, found);
    }
    inner.1
}

/// The place on an axis that half of the mass does not exceed; 0 where there is no mass.
fn median(places: &[f64], masses: &[f64]) -> f64 {
    let mut sorted: Vec<(f64, f64)> = places.iter().copied().zip(masses.iter().copied()).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = masses.iter().sum::<f64>() / 2.0;
    let mut mass = 0.0;
    let reached = sorted.iter().find(|&&(_, m)| {
        mass += m;
        m > 0.0 && mass >= half
    });
    reached.map_or(0.0, |&(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::BodyKind;

    fn row(places: &[(f64, f64)]) -> Bodies {
        let bodies = places.iter().enumerate().map(|(i, &(x, mass))| Body {
            position: [x, 0.0, 0.0],
            velocity: [mass, 0.0, 0.0],
            mass,
            id: i as u64,
            kind: BodyKind::Star,
        });
        bodies.collect()
    }

    #[test]
    fn who_leaves_does_not_carry_the_centre_away() {
        let of = |bodies: &[(f64, f64)]| centre_within(&row(bodies), 20.0).map(|v| v[0]);
        assert_eq!(of(&[(-1.0, 1.0), (1.0, 1.0), (6.0, 1.0)]), [2.0, 1.0]);
        // The centre of mass of all is at 33, and the body is half of what stays.
        let far = [(-1.0, 1.0), (1.0, 1.0), (99.0, 1.0)];
        assert_eq!(of(&far), [0.0, 1.0]);
        let heavy = [(-2.0, 1.0), (-1.0, 1.0), (0.0, 1.0), (500.0, 2.0)];
        assert_eq!(of(&heavy), [-1.0, 1.0]);
        assert_eq!(of(&[(5.0, 0.0), (50.0, 0.0)]), [0.0, 0.0], "no mass");
        assert_eq!(centre_within(&Bodies::default(), 1.0), [[0.0; 3]; 2]);
    }
}
