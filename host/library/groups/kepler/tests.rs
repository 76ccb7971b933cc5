//! Functions against closed forms, and Kepler's equation solved from everywhere.

use super::*;

/// Relative difference of numbers near `expected`.
fn error(value: f64, expected: f64) -> f64 {
    (value / expected - 1.0).abs()
}

#[test]
fn functions_agree_with_closed_forms() {
    for beta in [1e-8_f64, 0.3, 1.0, 4.0, 1e6] {
        for angle in [1e-3, 0.3, 1.0, 1.41, 1.42, 2.9, 3.1, 6.0, -0.7, -5.0] {
            let (root, h) = (beta.sqrt(), angle / beta.sqrt());
            let of = Functions::new(beta, h);
            let half = 0.5 * angle;
            let bound = 2e-15;
            assert!((of.c0 - half.cos()).abs() < bound);
            assert!((of.c1 * root / 2.0 - half.sin()).abs() < bound);
            // Squares of sines: 1 − cos would cancel.
            assert!(error(of.g2 * beta, 2.0 * half.sin().powi(2)) < 1e-13);
            assert!((of.g1() * root - angle.sin()).abs() < bound);
            if angle.abs() > 0.5 {
                let expected = angle - angle.sin();
                assert!(error(of.g3 * beta * root, expected) < 1e-13);
            }
            let of = Functions::new(-beta, h);
            assert!(error(of.c0, half.cosh()) < 1e-14);
            assert!(error(of.c1 * root / 2.0, half.sinh()) < 1e-14);
            assert!(error(of.g2 * beta, 2.0 * half.sinh().powi(2)) < 1e-13);
            if angle.abs() > 0.5 {
                let expected = angle.sinh() - angle;
                assert!(error(of.g3 * beta * root, expected) < 1e-13);
            }
        }
    }
    let of = Functions::new(0.0, 3.0);
    assert_eq!((of.c0, of.c1, of.g2), (1.0, 3.0, 4.5));
    assert!((of.g3 - 4.5).abs() < 1e-15);
}

/// An orbit of the pericentre distance `q`, at the angle or hyperbolic angle `phase` from it.
fn start(q: f64, e: f64, phase: f64) -> Start {
    // Distance and its slope after the interval s from the pericentre, with μ = 1.
    let (beta, s) = if e == 1.0 {
        (0.0, phase * q.sqrt())
    } else {
        let beta = (1.0 - e) / q;
        (beta, phase / beta.abs().sqrt())
    };
    let of = Functions::new(beta, s);
    Start {
        beta,
        mu: 1.0,
        radius: q + e * of.g2,
        slope: e * of.g1(),
    }
}

#[test]
fn keplers_equation_is_solved_from_everywhere() {
    let mut worst = 0;
    for q in [1e-6, 1e-2, 1.0, 1e6] {
        for e in [
            0.0, 0.1, 0.5, 0.9, 0.99, 0.9999, 0.999_999, 1.0, 1.000_001, 1.01, 1.5, 3.0, 100.0,
        ] {
            let ellipse = e < 1.0;
            let phases: &[f64] = if ellipse {
                &[
                    0.0, 1e-3, 0.05, 0.3, 1.0, 2.0, 3.0, 3.1, -0.001, -0.1, -1.3, -2.5,
                ]
            } else {
                &[
                    0.0, 1e-3, 0.1, 1.0, 4.0, 10.0, -1e-3, -0.1, -1.0, -4.0, -10.0,
                ]
            };
            for &phase in phases {
                let start = start(q, e, phase);
                let unit = if e == 1.0 {
                    q.sqrt()
                } else {
                    1.0 / start.beta.abs().sqrt()
                };
                for k in -60..=60 {
                    if k == 0 {
                        continue;
                    }
                    let turn = f64::from(k) / 20.0 * if ellipse { 1.0 } else { 7.0 };
                    let expected = turn * unit;
                    let of = Functions::new(start.beta, expected);
                    let time = start.time(expected, &of);
                    let solution = start.interval(time);
                    let after = Functions::new(start.beta, solution.h);
                    let terms = (start.radius * expected).abs()
                        + (start.slope * of.g2).abs()
                        + (start.curvature() * of.g3).abs();
                    let residual = (start.time(solution.h, &after) - time).abs() / terms;
                    assert!(
                        residual < 1e-13,
                        "q {q}, e {e}, from {phase} by {turn}: {residual:e}, {solution:?}"
                    );
                    worst = worst.max(solution.evaluations);
                }
            }
        }
    }
    assert!(worst <= 12, "{worst} evaluations");
}

#[test]
fn orbits_near_a_parabola_are_solved_alike() {
    let mut worst = 0;
    for e in [-1e-7, -1e-10, -1e-14, 0.0, 1e-14, 1e-10, 1e-7].map(|d| 1.0 + d) {
        for phase in [0.0, 0.1, 1.0, 10.0, 100.0, -0.1, -1.0, -10.0, -100.0] {
            // The pericentre is at 1; the phase is in units of s there.
            let beta = 1.0 - e;
            let of = Functions::new(beta, phase);
            let start = Start {
                beta,
                mu: 1.0,
                radius: 1.0 + e * of.g2,
                slope: e * of.g1(),
            };
            for turn in [1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 200.0] {
                for h in [turn, -turn] {
                    let time = start.time(h, &Functions::new(beta, h));
                    let solution = start.interval(time);
                    // Where the times of both directions nearly cancel, rounding remains.
                    let bound = 1e-11 * (h.abs() + phase.abs().powi(2));
                    assert!(
                        (solution.h - h).abs() < bound,
                        "e {e}, {phase}, {h}: {solution:?}"
                    );
                    worst = worst.max(solution.evaluations);
                }
            }
        }
    }
    assert!(worst <= 12, "{worst} evaluations");
}
