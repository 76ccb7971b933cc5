use super::*;
use crate::double_single::DoubleSingle;
use crate::numerics::{
    Approximate, Arithmetic, Exact, Far, Fused, Numerics, Precision, Separate, Softened, Unsoftened,
};

/// Worst relative error of the formula over a fixed set of pairs, against f64 written out.
fn worst_error<A: Arithmetic>(softening: f64) -> f64 {
    let mut worst = 0.0_f64;
    // From 1: no component is zero, so that each has a relative error.
    for k in 1..=1000 {
        let k = f64::from(k);
        let r = [
            (k * 0.731).sin(),
            (k * 1.137).cos() * 1e-2,
            (k * 0.377).sin() * 1e2,
        ];
        // The same rounded inputs for both.
        let round = |x: f64| A::Real::from_f64(x).to_f64();
        let (r, mass, eps2) = (r.map(round), round(0.5 + k), round(softening * softening));
        let mut sum = [A::Real::from_f64(0.0); 3];
        interact::<A>(
            [A::Real::from_f64(0.0); 3],
            r.map(A::Real::from_f64),
            A::Real::from_f64(mass),
            A::Real::from_f64(eps2),
            &mut sum,
        );
        let d2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + eps2;
        for c in 0..3 {
            let exact = mass * r[c] / (d2 * d2.sqrt());
            let error = ((sum[c].to_f64() - exact) / exact).abs();
            assert!(!error.is_nan(), "pair {k}: {sum:?}", sum = sum[c].to_f64());
            worst = worst.max(error);
        }
    }
    worst
}

/// d² is off by at most 4 roundings (u each, of positive terms), its root by half of that and
/// the root's and the division's own: 4; cubed 12, three products more: 15, and one for the sum.
const ROUNDINGS: f64 = 16.0;

const DOUBLE_SINGLE: f64 = Precision::DoubleSingle.unit_roundoff();

#[test]
fn agrees_with_f64() {
    let (u32_, u64_) = (f64::from(f32::EPSILON) / 2.0, f64::EPSILON / 2.0);
    for softening in [0.1, 1e-3] {
        assert!(
            worst_error::<Numerics<f32, Fused, Exact, Softened>>(softening) <= ROUNDINGS * u32_
        );
        assert!(
            worst_error::<Numerics<f32, Separate, Exact, Softened>>(softening) <= ROUNDINGS * u32_
        );
        assert!(
            worst_error::<Numerics<f32, Fused, Approximate, Softened>>(softening)
                <= ROUNDINGS * u32_
        );
        // The oracle rounds as well.
        assert!(
            worst_error::<Numerics<f64, Fused, Exact, Softened>>(softening)
                <= 2.0 * ROUNDINGS * u64_
        );
        assert!(
            worst_error::<Numerics<f64, Fused, Approximate, Softened>>(softening)
                <= 3.0 * ROUNDINGS * u64_
        );
        let both = worst_error::<Numerics<DoubleSingle, Fused, Approximate, Softened>>(softening);
        assert!(both <= ROUNDINGS * DOUBLE_SINGLE, "{both:e}");
    }
    assert!(worst_error::<Numerics<f32, Fused, Exact, Unsoftened>>(0.0) <= ROUNDINGS * u32_);
}

/// Two bodies seen from both sides: a pair's forces are those of two interactions, and what one
/// body is given in momentum the other loses.
fn worst_pair_difference<A: Arithmetic>(softening: f64) -> f64 {
    let real = A::Real::from_f64;
    let mut worst = 0.0_f64;
    // From 1: no component is zero, so that each has a relative error.
    for k in 1..=1000 {
        let k = f64::from(k);
        let at = [0.731, 1.137, 0.377].map(|f| real((k * f).sin()));
        let to = [1.31, 0.7, 2.9].map(|f| real((k * f).cos()));
        let weights = [real(0.5 + k), real(3.0 / (1.0 + k))];
        let eps2 = real(softening * softening);
        let mut sums = [[real(0.0); 3]; 2];
        let [target_sum, source_sum] = &mut sums;
        interact_pair::<A>([at, to], weights, eps2, target_sum, source_sum);
        let mut expected = [[real(0.0); 3]; 2];
        interact::<A>(at, to, weights[1], eps2, &mut expected[0]);
        interact::<A>(to, at, weights[0], eps2, &mut expected[1]);
        for (sum, expected) in sums.iter().flatten().zip(expected.iter().flatten()) {
            let (sum, expected) = (sum.to_f64(), expected.to_f64());
            let error = ((sum - expected) / expected).abs();
            assert!(!error.is_nan(), "pair {k}: {sum} {expected}");
            worst = worst.max(error);
        }
    }
    worst
}

#[test]
fn a_pair_is_two_interactions() {
    let (u32_, u64_) = (f64::from(f32::EPSILON) / 2.0, f64::EPSILON / 2.0);
    // The same d² and root; each side then rounds four products its own way.
    let tolerance = 8.0;
    for softening in [0.1, 1e-3] {
        let single = [
            worst_pair_difference::<Numerics<f32, Fused, Exact, Softened>>(softening),
            worst_pair_difference::<Numerics<f32, Separate, Exact, Softened>>(softening),
            worst_pair_difference::<Numerics<f32, Fused, Approximate, Unsoftened>>(softening),
        ];
        assert!(single.iter().all(|error| *error <= tolerance * u32_));
        let exact = worst_pair_difference::<Numerics<f64, Fused, Exact, Softened>>(softening);
        assert!(exact <= tolerance * u64_);
        // Here the roots are refined apart: 3 roundings, cubed, on one side and 4 on the other.
        let refined =
            worst_pair_difference::<Numerics<f64, Fused, Approximate, Softened>>(softening);
        assert!(refined <= (tolerance + 13.0) * u64_);
        let both = worst_pair_difference::<Numerics<DoubleSingle, Fused, Approximate, Softened>>(
            softening,
        );
        assert!(both <= tolerance * DOUBLE_SINGLE, "{both:e}");
    }
}

#[test]
fn a_far_body_exerts_nothing() {
    fn check<A: Arithmetic<Real: Far>>() {
        let real = A::Real::from_f64;
        let far = [A::Real::FAR; 3];
        let near = [real(0.7), real(-1.0), real(0.0)];
        let mut sums = [[real(0.5); 3]; 2];
        let [first, second] = &mut sums;
        let eps2 = real(1e-4);
        interact_pair::<A>([far, near], [real(1.0); 2], eps2, first, second);
        interact_pair::<A>([near, far], [real(1.0); 2], eps2, first, second);
        interact_pair::<A>([far, far], [real(1.0); 2], eps2, first, second);
        interact::<A>(far, near, real(1.0), eps2, first);
        assert!(sums.iter().flatten().all(|sum| sum.to_f64() == 0.5));
    }
    check::<Numerics<f32, Fused, Exact, Softened>>();
    check::<Numerics<f32, Fused, Approximate, Unsoftened>>();
    check::<Numerics<f64, Fused, Exact, Unsoftened>>();
    check::<Numerics<f64, Fused, Approximate, Softened>>();
    check::<Numerics<DoubleSingle, Fused, Approximate, Softened>>();
    check::<Numerics<DoubleSingle, Fused, Approximate, Unsoftened>>();
}

#[test]
fn coincident_bodies_without_softening_exert_nothing() {
    let mut sum = [1.0_f32, 2.0, 3.0];
    let at = [0.5, 0.25, -1.0];
    interact::<Numerics<f32, Fused, Exact, Unsoftened>>(at, at, 7.0, 0.0, &mut sum);
    interact::<Numerics<f32, Fused, Approximate, Unsoftened>>(at, at, 7.0, 0.0, &mut sum);
    assert_eq!(sum, [1.0, 2.0, 3.0]);
    let mut sum = sum.map(DoubleSingle::from);
    let at = at.map(DoubleSingle::from);
    let (weight, zero) = (DoubleSingle::from(7.0), DoubleSingle::from(0.0));
    interact::<Numerics<DoubleSingle, Fused, Approximate, Unsoftened>>(
        at, at, weight, zero, &mut sum,
    );
    assert_eq!(sum.map(GpuFloat::to_f64), [1.0, 2.0, 3.0]);
    let phi = potential::<Numerics<f64, Fused, Exact, Unsoftened>>([0.0; 3], [0.0; 3], 7.0, 0.0);
    assert_eq!(phi, 0.0);
}

#[test]
fn law_weights() {
    assert_eq!(
        (Unit::weight(3.0_f32), Gravity::weight(3.0_f32)),
        (1.0, 3.0)
    );
}

/// Jerk and snap of a pair are what differences of the acceleration say, softened and not; and the rate
/// that comes with them is that of its approach.
#[test]
fn derivatives_of_a_pair_are_its_changes() {
    type Exactly = Numerics<f64, Fused, Exact, Softened>;
    const H: f64 = 1e-3;
    for softening_squared in [0.0, 0.04] {
        // Along a path with a constant acceleration.
        let (r, v, a) = ([0.8, -0.5, 0.3], [0.4, 0.9, -0.7], [-0.6, 0.2, 0.5]);
        let at = |t: f64| {
            let mut sums = [[0.0; 3]; 3];
            let r = [0, 1, 2].map(|k| r[k] + t * (v[k] + 0.5 * t * a[k]));
            let v = [0, 1, 2].map(|k| v[k] + t * a[k]);
            let square = distance_squared::<Exactly>(r, softening_squared);
            let near = add_with_snap::<Exactly>([r, v, a], square, 2.5, &mut sums);
            let rate = near.rate;
            let mut others = [[0.0; 3]; 2];
            let [pull, jerk] = &mut others;
            let same = add_with_jerk::<Exactly>([r, v], square, 2.5, pull, jerk);
            assert!((rate - same.rate).abs() < 1e-14);
            for near in [near, same] {
                assert!((near.inverse_squared * square - 1.0).abs() < 1e-14);
            }
            for (a, b) in others.iter().flatten().zip(sums.iter().flatten()) {
                assert!((a - b).abs() < 1e-14);
            }
            (sums, rate, square)
        };
        let [(before, ..), (now, rate, square), (after, _, later)] = [-H, 0.0, H].map(at);
        for k in 0..3 {
            // Central differences, which are off by the square of the step.
            let jerk = (after[0][k] - before[0][k]) / (2.0 * H);
            let snap = (after[0][k] - 2.0 * now[0][k] + before[0][k]) / (H * H);
            assert!((now[1][k] - jerk).abs() < 1e-4, "{} {jerk}", now[1][k]);
            assert!((now[2][k] - snap).abs() < 1e-4, "{} {snap}", now[2][k]);
        }
        let growth = (later / square).ln() / (2.0 * H);
        assert!((-3.0 * growth - rate).abs() < 1e-2, "{growth} {rate}");
    }
}
