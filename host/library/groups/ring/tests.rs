//! The ring against averages of the true field over an orbit.

use super::super::vector::{cross, difference, norm};
use super::*;

/// Potential, acceleration and jerk of a pair's members averaged over its orbit, minus the pair's as
/// a point. Members are at rest: an orbit's own motion averages out.
fn mean(e: f64, [m1, m2]: [f64; 2], d: Vector, u: Vector) -> (f64, Vector, Vector) {
    let (p, q) = axes();
    let (mut potential, mut acceleration, mut jerk) = (0.0, [0.0; 3], [0.0; 3]);
    let mut add = |mass: f64, at: Vector| {
        let s = difference(at, d);
        let inverse = 1.0 / dot(s, s);
        let factor = mass * inverse * inverse.sqrt();
        potential -= mass * inverse.sqrt();
        acceleration = add_scaled(acceleration, factor, s);
        jerk = add_scaled(jerk, -factor, u);
        jerk = add_scaled(jerk, 3.0 * factor * dot(s, u) * inverse, s);
    };
    let count = 400;
    for k in 0..count {
        let anomaly = core::f64::consts::TAU * f64::from(k) / f64::from(count);
        let weight = (1.0 - e * anomaly.cos()) / f64::from(count);
        let x = scale(anomaly.cos() - e, p);
        let x = add_scaled(x, (1.0 - e * e).sqrt() * anomaly.sin(), q);
        add(weight * m1, scale(-m2, x));
        add(weight * m2, scale(m1, x));
    }
    add(-1.0, [0.0; 3]);
    (potential, acceleration, jerk)
}

/// Directions of the pericentre and, across it, of the orbit's motion there.
fn axes() -> (Vector, Vector) {
    let (p, n) = ([0.36, 0.48, 0.8], [0.8, -0.6, 0.0]);
    (p, cross(n, p))
}

/// A pair with a = m₁ + m₂ = 1 at its pericentre.
fn pair(e: f64) -> Pair {
    let (p, q) = axes();
    let speed = ((1.0 + e) / (1.0 - e)).sqrt();
    Pair::new(1.0, 0.0, scale(1.0 - e, p), scale(speed, q))
}

/// Relative errors of potential, acceleration and jerk at a distance in sizes.
fn errors(ring: &Ring, e: f64, masses: [f64; 2], distance: f64) -> [f64; 3] {
    let d = scale(distance * (1.0 + e), [0.6, 0.0, 0.8]);
    let u = [-0.15, 0.21, 0.06];
    let (potential, acceleration, jerk) = mean(e, masses, d, u);
    let (a, j) = ring.acceleration_and_jerk(d, u);
    assert_eq!(ring.acceleration(d), a);
    [
        (ring.potential(d) / potential - 1.0).abs(),
        norm(difference(a, acceleration)) / norm(acceleration),
        norm(difference(j, jerk)) / norm(jerk),
    ]
}

#[test]
fn equal_members_leave_the_square_of_the_distance() {
    for e in [0.0, 0.6, 0.95] {
        let ring = Ring::new(&pair(e), 0.25).unwrap();
        let near = errors(&ring, e, [0.5; 2], 12.0);
        let far = errors(&ring, e, [0.5; 2], 48.0);
        for (near, far) in near.into_iter().zip(far) {
            assert!(near < 8e-3, "e {e}: {near:e}, {far:e}");
            assert!((near / far - 16.0).abs() < 1.5, "e {e}: {near:e}, {far:e}");
        }
    }
}

#[test]
fn unequal_members_need_the_octupole() {
    let masses = [1.0 / 1.3, 0.3 / 1.3];
    for e in [0.6, 0.95] {
        let quadrupole = Ring::new(&pair(e), masses[0] * masses[1]).unwrap();
        let near = errors(&quadrupole, e, masses, 12.0);
        let far = errors(&quadrupole, e, masses, 48.0);
        for (near, far) in near.into_iter().zip(far) {
            assert!(
                near > 3e-3 && (near / far - 4.0).abs() < 1.5,
                "e {e}: {near:e}, {far:e}"
            );
        }
        for swapped in [false, true] {
            let masses = if swapped {
                [masses[1], masses[0]]
            } else {
                masses
            };
            let ring = Ring::of_members(&pair(e), masses).unwrap();
            let near = errors(&ring, e, masses, 12.0);
            let far = errors(&ring, e, masses, 48.0);
            for (near, far) in near.into_iter().zip(far) {
                assert!(near < 1.5e-2, "e {e}: {near:e}, {far:e}");
                assert!(far < near / 9.0, "e {e}: {near:e}, {far:e}");
            }
        }
    }
}

#[test]
fn acceleration_is_the_slope_of_the_potential() {
    let ring = Ring::of_members(&pair(0.7), [0.8, 0.2]).unwrap();
    let (d, h) = ([3.0, -2.0, 4.0], 1e-4);
    let moved = |k: usize, by: f64| {
        let mut moved = d;
        moved[k] += by;
        moved
    };
    let (acceleration, jerk) = ring.acceleration_and_jerk(d, [0.0, 0.0, 1.0]);
    for (k, a) in acceleration.into_iter().enumerate() {
        let slope = ring.potential(moved(k, h)) - ring.potential(moved(k, -h));
        assert!((a + slope / (2.0 * h)).abs() < 1e-9, "{a}");
    }
    let change = difference(
        ring.acceleration(moved(2, h)),
        ring.acceleration(moved(2, -h)),
    );
    assert!(norm(difference(jerk, scale(0.5 / h, change))) < 1e-9);
}

/// Along a path that bends, against differences of accelerations.
#[test]
fn snap_is_the_second_derivative_of_the_acceleration() {
    for masses in [[0.5; 2], [0.8, 0.2]] {
        let ring = Ring::of_members(&pair(0.7), masses).unwrap();
        let (d, u, w) = ([3.0, -2.0, 4.0], [0.4, 0.9, -0.3], [-0.5, 0.2, 0.7]);
        let at = |t: f64| {
            let d = add_scaled(add_scaled(d, t, u), 0.5 * t * t, w);
            ring.acceleration(d)
        };
        let h = 1e-3;
        let snap = ring.snap([d, u, w]);
        for k in 0..3 {
            let second = (at(h)[k] - 2.0 * at(0.0)[k] + at(-h)[k]) / (h * h);
            let size = norm(snap);
            assert!(
                (second - snap[k]).abs() < 1e-5 * size,
                "{second:e} {snap:?}"
            );
        }
    }
}

#[test]
fn an_unbound_pair_has_no_ring() {
    let unbound = Pair::new(1.0, 0.0, [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]);
    assert_eq!(Ring::new(&unbound, 0.25), None);
    assert_eq!(Ring::of_members(&unbound, [0.5; 2]), None);
    // A straight line has one.
    let line = Pair::new(1.0, 0.0, [0.0, 1.0, 0.0], [0.0, 0.5, 0.0]);
    let ring = Ring::new(&line, 0.25).unwrap();
    assert!(ring.potential([0.0, 9.0, 1.0]).is_finite());
}

#[test]
fn a_ring_comes_back_from_its_numbers() {
    let ring = Ring::of_members(&pair(0.7), [0.8, 0.2]).unwrap();
    let numbers = ring.numbers();
    assert_eq!(Ring::of_numbers(numbers), ring);
    assert_eq!(
        numbers.iter().filter(|&&x| x == 0.0).count(),
        1,
        "{numbers:?}"
    );
}
