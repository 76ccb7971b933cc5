//! The figure-eight.

use super::{GenerateError, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

/// Period of the figure-eight.
pub const FIGURE_EIGHT_PERIOD: f64 = 6.325_913_985_26;

/// Position of the first body; the second stands opposite, the third at the centre.
const POSITION: [f64; 2] = [0.970_004_356_697_34, -0.243_087_531_535_83];
/// Velocity of the third body; the others have half of it in the opposite direction.
const VELOCITY: [f64; 2] = [-0.932_407_371_441_04, -0.864_731_460_921_02];

/// Three bodies of mass 1 that chase each other along one figure-eight, G = 1.
///
/// The orbit is stable and has the period [`FIGURE_EIGHT_PERIOD`]. The centre of mass rests at the
/// origin, exactly.
///
/// Found by Moore 1993 (Phys. Rev. Lett. 70, 3675), proved by Chenciner & Montgomery 2000 (Annals
/// of Mathematics 152, 881), who give these initial conditions by C. Simó.
///
/// # Errors
/// No memory for three bodies.
pub fn figure_eight() -> Result<Bodies, GenerateError> {
    let mut bodies = room_for(3)?;
    for (id, [place, pace]) in [[1.0, -0.5], [-1.0, -0.5], [0.0, 1.0]]
        .into_iter()
        .enumerate()
    {
        bodies.push(Body {
            position: [place * POSITION[0], place * POSITION[1], 0.0],
            velocity: [pace * VELOCITY[0], pace * VELOCITY[1], 0.0],
            mass: 1.0,
            id: id as u64,
            kind: BodyKind::Star,
        });
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{energies, leapfrog};
    use super::*;
    use crate::diagnostics::largest;

    /// Largest coordinate difference.
    fn distance(a: &Bodies, b: &Bodies) -> f64 {
        let pairs = a.iter().zip(b.iter());
        largest(pairs.flat_map(|(a, b)| [0, 1, 2].map(|k| (a.position[k] - b.position[k]).abs())))
    }

    #[test]
    fn it_returns_after_a_period() {
        let start = figure_eight().unwrap();
        let error = |steps: usize| {
            let mut bodies = start.clone();
            leapfrog(&mut bodies, FIGURE_EIGHT_PERIOD / steps as f64, steps, 0.0);
            distance(&bodies, &start)
        };
        // Leapfrog errs by a multiple of dt²: measured at two steps, and extrapolated to zero.
        let (coarse, fine) = (error(2_000), error(8_000));
        assert!((coarse / fine - 16.0).abs() <= 1.0, "{coarse:e} {fine:e}");
        assert!(fine <= 1e-5, "{fine:e}");
    }

    #[test]
    fn a_third_of_a_period_passes_the_bodies_on() {
        let start = figure_eight().unwrap();
        let mut bodies = start.clone();
        leapfrog(&mut bodies, FIGURE_EIGHT_PERIOD / 30_000.0, 10_000, 0.0);
        let shifted: Bodies = [1, 2, 0].into_iter().map(|i| start.body(i)).collect();
        let backwards: Bodies = [2, 0, 1].into_iter().map(|i| start.body(i)).collect();
        let nearest = distance(&bodies, &shifted).min(distance(&bodies, &backwards));
        assert!(nearest <= 1e-5, "{nearest:e}");
    }

    #[test]
    fn the_virial_theorem_holds_over_a_period() {
        // A periodic orbit has 2K + U = 0 on average, and this one no angular momentum.
        let steps = 2_000;
        let mut bodies = figure_eight().unwrap();
        let (mut sum, mut size) = (0.0, 0.0);
        for _ in 0..steps {
            leapfrog(&mut bodies, FIGURE_EIGHT_PERIOD / f64::from(steps), 1, 0.0);
            let (kinetic, potential) = energies(&bodies);
            sum += 2.0 * kinetic + potential;
            size += 2.0 * kinetic;
            let spins = bodies
                .iter()
                .map(|b| b.position[0] * b.velocity[1] - b.position[1] * b.velocity[0]);
            assert!(spins.sum::<f64>().abs() <= 1e-12);
        }
        assert!((sum / size).abs() <= 1e-5, "{}", sum / size);
    }
}
