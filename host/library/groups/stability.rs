//! Stability of hierarchical triples.

use super::ks::Pair;
use super::vector::{dot, norm};

/// Least ratio of the outer pericentre to the inner semi-major axis of a stable triple.
///
/// From Mardling & Aarseth (2001, MNRAS 321, 398).
/// `mass_ratio` is the outer body's mass over the inner pair's. The outer eccentricity is below 1.
pub(crate) fn critical_ratio(
    outer_eccentricity: f64,
    mass_ratio: f64,
    cosine_of_inclination: f64,
) -> f64 {
    let e = outer_eccentricity;
    let base = (1.0 + mass_ratio) * (1.0 + e) / (1.0 - e).sqrt();
    let inclination = arccosine(cosine_of_inclination) / core::f64::consts::PI;
    2.8 * fifth_root(base * base) * (1.0 - 0.3 * inclination)
}

/// True if a triple is stable, even if the critical ratio were `margin` times as large.
///
/// The outer pair is the centre of mass of the inner one and a third body. Unbound orbits are not
/// stable.
pub(crate) fn is_stable(inner: &Pair, outer: &Pair, margin: f64) -> bool {
    let is_bound = inner.beta > 0.0 && outer.beta > 0.0;
    if !is_bound {
        return false;
    }
    let (small, large) = (inner.angular_momentum(), outer.angular_momentum());
    let product = norm(small) * norm(large);
    // Of a straight line no inclination is known: take the least stable, 0.
    let cosine = if product > 0.0 {
        dot(small, large) / product
    } else {
        1.0
    };
    // On an orbit that is all but straight the critical ratio is all but infinite.
    let eccentricity = outer.eccentricity().min(1.0 - f64::EPSILON);
    let ratio = critical_ratio(eccentricity, outer.mu / inner.mu - 1.0, cosine);
    outer.pericentre() > margin * ratio * inner.semi_major_axis()
}

/// Fifth root of a number from 1 on, by Newton's method.
fn fifth_root(x: f64) -> f64 {
    // From above, it falls by a fifth at each step until it is near.
    let mut y = x.sqrt().sqrt().max(1.0);
    for _ in 0..64 {
        let square = y * y;
        let next = 0.2 * (4.0 * y + x / (square * square));
        if next >= y {
            break;
        }
        y = next;
    }
    y
}

/// Angle of a cosine, from 0 to π, by halving angles and a series.
fn arccosine(cosine: f64) -> f64 {
    let c = cosine.clamp(-1.0, 1.0);
    // tan(θ/4), below 1: half the angle has the cosine √((1 + c)/2).
    let half = (0.5 * (1.0 + c)).sqrt();
    let mut t = (0.5 * (1.0 - c)).sqrt() / (1.0 + half);
    let mut factor = 4.0;
    for _ in 0..3 {
        t /= 1.0 + (1.0 + t * t).sqrt();
        factor *= 2.0;
    }
    let square = t * t;
    let mut sum = 0.0;
    for k in (0..9).rev() {
        sum = 1.0 / f64::from(2 * k + 1) - square * sum;
    }
    factor * t * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_agree_with_the_libms() {
        for k in 0..=200 {
            let c = f64::from(k) / 100.0 - 1.0;
            assert!((arccosine(c) - c.acos()).abs() < 1e-15 * 4.0, "{c}");
            let x = 1.0 + f64::from(k).powi(5);
            assert!((fifth_root(x) / x.powf(0.2) - 1.0).abs() < 1e-14, "{x}");
        }
    }

    #[test]
    fn critical_ratio_is_mardling_and_aarseths() {
        // Equal masses, e = 0.3, 30°: 2.8 (1.5 × 1.3/√0.7)^0.4 × 0.95.
        let ratio = critical_ratio(0.3, 0.5, f64::sqrt(0.75));
        assert!((ratio / 0.7 - 5.33).abs() < 0.01, "{}", ratio / 0.7);
        let retrograde = critical_ratio(0.3, 0.5, -1.0) / critical_ratio(0.3, 0.5, 1.0);
        assert!((retrograde - 0.7).abs() < 1e-14);
    }

    #[test]
    fn hierarchies_are_judged_by_their_orbits() {
        let inner = Pair::new(1.0, 0.0, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]);
        let outer = |a: f64, speed: f64| {
            Pair::new(
                1.5,
                0.0,
                [a, 0.0, 0.0],
                [0.0, speed * (1.5 / a).sqrt(), 0.0],
            )
        };
        // Circles in one plane: 2.8 × 1.5^0.4 = 3.293.
        assert!(!is_stable(&inner, &outer(3.29, 1.0), 1.0));
        assert!(is_stable(&inner, &outer(3.30, 1.0), 1.0));
        assert!(!is_stable(&inner, &outer(3.30, 1.0), 1.2));
        assert!(is_stable(&inner, &outer(3.0, -1.0), 1.0));
        assert!(!is_stable(&inner, &outer(100.0, 1.5), 1.0));
        assert!(!is_stable(&outer(100.0, 1.5), &outer(200.0, 1.0), 1.0));
        assert!(!is_stable(&inner, &outer(100.0, 1e-9), 1.0));
    }
}
