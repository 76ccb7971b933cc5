//! Error of forces between positions in single precision.

use super::{distance, each_system, median};
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::neighbours::nearest;
use crate::physics::{ForceLaw, Physics};

/// Rounding of an f32 on average: a quarter of the last place.
const ROUNDING: f64 = f32::EPSILON as f64 / 4.0;

/// Largest error of a force from positions in single precision, relative to the root mean square of the forces. The
/// estimate is right to within a factor of a few. Positions are rounded to 3·10⁻⁸ of their distance from the
/// centre, and the nearest neighbour's pull changes most by this. 0 where nobody has a neighbour with mass. Of several
/// systems it is the largest.
///
/// # Panics
/// If there are no systems.
pub fn error_in_single(bodies: &Bodies, physics: &Physics, systems: usize) -> f64 {
    let errors = each_system(bodies, systems).map(|system| of_one_system(&system, physics));
    errors.fold(0.0, f64::max)
}

fn of_one_system(bodies: &Bodies, physics: &Physics) -> f64 {
    let massive: Vec<usize> = (0..bodies.len())
        .filter(|&i| physics.weight(bodies.mass[i]) > 0.0)
        .collect();
    if massive.len() < 2 || matches!(physics.law, ForceLaw::AttractRepel { .. }) {
        return 0.0;
    }
    let centre = Frame::of(bodies, physics).centre;
    let places: Vec<[f64; 3]> = (massive.iter()).map(|&i| bodies.body(i).position).collect();
    let radii: Vec<f64> = places
        .iter()
        .map(|place| distance(*place, centre))
        .collect();
    let weight = |k: usize| physics.weight(bodies.mass[massive[k]]);
    let total: f64 = (0..massive.len()).map(weight).sum();
    let softened = |r: f64| r.hypot(physics.softening);
    // The pull of all others on a body at the median radius.
    let field = 0.5 * total / softened(median(radii.clone())).powi(2);
    let (mut worst, mut squares) = (0.0_f64, 0.0);
    for (k, near) in nearest(&places).iter().enumerate() {
        let d = softened(near.distance);
        let rounded = ROUNDING * radii[k].hypot(radii[near.index]);
        // Bodies at one place exert no force, rounded or not.
        if d > 0.0 && near.distance > 0.0 {
            worst = worst.max(weight(near.index) / d * rounded / d / d);
            squares += (weight(near.index) / d * (near.distance / d) / d).powi(2);
        }
        squares += field * field;
    }
    worst / (squares / massive.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::reference;
    use crate::initial_conditions::plummer;
    use crate::suggest::tests::GRAVITY;

    /// Largest error of forces in single precision, as they are computed.
    fn computed(bodies: &Bodies, physics: &Physics) -> f64 {
        let frame = Frame::of(bodies, physics);
        let mut rounded = bodies.clone();
        for (k, x) in [&mut rounded.x, &mut rounded.y, &mut rounded.z]
            .into_iter()
            .enumerate()
        {
            let centre = frame.centre[k];
            x.iter_mut()
                .for_each(|x| *x = f64::from((*x - centre) as f32) + centre);
        }
        let [right, wrong] =
            [bodies, &rounded].map(|bodies| reference::accelerations(bodies, physics));
        let sizes = right.iter().map(|a| distance(*a, [0.0; 3]).powi(2));
        let typical = (sizes.sum::<f64>() / right.len() as f64).sqrt();
        let errors = right.iter().zip(&wrong).map(|(a, b)| distance(*a, *b));
        errors.fold(0.0, f64::max) / typical
    }

    #[test]
    fn estimates_are_within_a_few_times_of_the_error() {
        let mut clumps = plummer(1000, 2).expect("bodies");
        for i in 0..1000 {
            let centre = clumps.body(i - i % 20).position;
            for (x, c) in [&mut clumps.x, &mut clumps.y, &mut clumps.z]
                .into_iter()
                .zip(centre)
            {
                x[i] = c + 1e-3 * (x[i] - c);
            }
        }
        for (bodies, softenings) in [
            (plummer(1000, 1).expect("bodies"), [1e-3, 1e-5, 0.0]),
            (clumps, [1e-2, 1e-4, 0.0]),
        ] {
            for softening in softenings {
                let physics = Physics {
                    softening,
                    ..GRAVITY
                };
                let ratio = error_in_single(&bodies, &physics, 1) / computed(&bodies, &physics);
                assert!((0.2..5.0).contains(&ratio), "{softening}: {ratio}");
            }
        }
        let soft = Physics {
            softening: 0.04,
            ..GRAVITY
        };
        assert!(error_in_single(&plummer(1000, 1).expect("bodies"), &soft, 1) <= 1e-6);
        // Bodies of another system at the same places are no neighbours.
        let close = plummer(300, 1).expect("bodies");
        let twice: Bodies = close.iter().chain(close.iter()).collect();
        assert_eq!(
            error_in_single(&twice, &GRAVITY, 2),
            error_in_single(&close, &GRAVITY, 1)
        );
    }
}
