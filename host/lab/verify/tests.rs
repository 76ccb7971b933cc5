use super::*;
use allpairs::variants;

/// A check that could not fail would prove nothing: a force off by ten times what rounding
/// explains is found, and so is one that is not a number.
#[test]
fn wrong_forces_are_found() {
    let (case, _) = large_case(100, Law::Gravity);
    let variant = variants::find("tiled").expect("listed");
    let right: Vec<_> = case
        .expected
        .iter()
        .map(|field| field.acceleration)
        .collect();
    assert_eq!(case.check(variant, &right), Ok(()));
    assert_eq!(case.right_digits(&right)[16], 100);
    let (tolerance, position_error) = case.allowance(variant);
    for body in [0, 57, 99] {
        let mut wrong = right.clone();
        wrong[body][1] += 10.0 * case.expected[body].bound(tolerance, position_error);
        assert!(case.check(variant, &wrong).is_err());
        wrong[body][1] = f64::NAN;
        assert!(case.check(variant, &wrong).is_err());
        assert!(case.accuracy(&wrong).rms_relative.is_infinite());
        assert_eq!(case.right_digits(&wrong)[0], 1);
    }
}

/// As [`wrong_forces_are_found`], of jerks.
#[test]
fn wrong_jerks_are_found() {
    let (case, _) = large_case(100, Law::Gravity);
    let variant = variants::find("hermite").expect("listed");
    let right = reference::jerks(&case.bodies, &case.physics);
    assert_eq!(case.check_jerks(variant, &right), Ok(()));
    for body in [0, 57, 99] {
        for factor in [1.0 + 1e-3, -1.0, f64::NAN] {
            let mut wrong = right.clone();
            wrong[body][1] *= factor;
            assert!(case.check_jerks(variant, &wrong).is_err());
        }
    }
}
