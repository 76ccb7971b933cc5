//! The place that a system is concentrated about.

use super::conserved::weighted_mean;
use super::{minus, norm};
use crate::bodies::Bodies;
use crate::physics::Physics;

/// Fewest bodies that decide where the core is.
const FEWEST: usize = 32;

/// Centre of a system's core: the centre of mass of all bodies, then of the four fifths of them that are nearest to that,
/// and so on, until a tenth of the bodies with mass is left, but no fewer than 32; `None` where there is no mass. In
/// long runs a cluster's core strays from the centre of mass, for bodies escape with momentum.
///
/// By shrinking spheres, as Power et al. (2003, MNRAS 338, 14) find the centres of haloes.
pub fn core_centre(bodies: &Bodies, physics: &Physics) -> Option<[f64; 3]> {
    let weighed = bodies
        .iter()
        .map(|body| (body.position, physics.weight(body.mass)));
    let mut near: Vec<([f64; 3], f64)> = weighed.filter(|&(_, weight)| weight > 0.0).collect();
    let least = (near.len() / 10).max(FEWEST);
    let mut centre = weighted_mean(near.iter().copied())?;
    while near.len() > least {
        let left = (near.len() * 4 / 5).max(least);
        let distance = |&(position, _): &([f64; 3], f64)| norm(minus(position, centre));
        near.select_nth_unstable_by(left, |a, b| distance(a).total_cmp(&distance(b)));
        near.truncate(left);
        centre = weighted_mean(near.iter().copied())?;
    }
    Some(centre)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::tests::GRAVITY;
    use crate::diagnostics::{MASS_SHARES, centre_of_mass, lagrangian_radii};
    use crate::initial_conditions::plummer;

    /// Bodies that have escaped move the centre of mass, and with it what were radii of the cluster.
    #[test]
    fn escapers_do_not_move_the_core() {
        let mut bodies = plummer(4000, 1).expect("in range");
        let before = core_centre(&bodies, &GRAVITY).expect("there is mass");
        assert!(norm(before) < 0.05, "{before:?}");
        for i in 0..40 {
            bodies.x[i] += 100.0;
        }
        let mass = centre_of_mass(&bodies, &GRAVITY).expect("there is mass");
        assert!(norm(minus(mass, before)) > 0.9, "{mass:?}");
        let after = core_centre(&bodies, &GRAVITY).expect("there is mass");
        assert!(norm(minus(after, before)) < 0.05, "{after:?}");
        let inner = |centre| lagrangian_radii(&bodies, &GRAVITY, centre, &MASS_SHARES)[0];
        assert!((inner(after) / 0.31 - 1.0).abs() < 0.1, "{}", inner(after));
        assert!(inner(mass) > 0.5, "{}", inner(mass));
    }

    #[test]
    fn few_bodies_have_their_centre_of_mass_and_massless_ones_none() {
        let mut bodies = plummer(32, 2).expect("in range");
        let core = core_centre(&bodies, &GRAVITY).expect("there is mass");
        let mass = centre_of_mass(&bodies, &GRAVITY).expect("there is mass");
        assert!(norm(minus(core, mass)) < 1e-14, "{core:?} {mass:?}");
        bodies.mass.fill(0.0);
        assert_eq!(core_centre(&bodies, &GRAVITY), None);
    }
}
