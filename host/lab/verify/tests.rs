use super::*;
use crate::studies::catalogue;
use allpairs::diagnostics::Disagreement;
use allpairs::variants;
use gpu_kernels::numerics::Precision;
use rayon::prelude::*;

/// Forces that are right, and of bodies that are not compared any that add up to zero with the others.
struct Right {
    case: Case,
    forces: Vec<[f64; 3]>,
}

impl Right {
    fn new(n: usize, law: ForceLaw) -> Self {
        const TARGETS: usize = 256;
        let (bodies, physics) = (
            cloud(n),
            Physics {
                law,
                g: 1.0,
                softening: 0.05,
            },
        );
        let case = Case::compared_on(TARGETS, format!("cloud, N = {n}"), bodies, physics);
        let weight = |i: usize| physics.weight(case.bodies.mass[i]);
        // In the middle of an even cube of density w/8 the force is −(4π/3) (w/8) x.
        let whole: f64 = (0..n).map(weight).sum();
        let field = |body: Body| body.position.map(|x| -0.5 * whole * x);
        let mut forces: Vec<_> = case.bodies.iter().map(field).collect();
        for (&i, field) in case.targets.iter().zip(&case.expected) {
            forces[i] = field.acceleration;
        }
        let others: Vec<usize> = (0..n).filter(|i| !case.targets.contains(i)).collect();
        let mass: f64 = others.iter().map(|&i| weight(i)).sum();
        let total = |axis: usize| -> f64 { (0..n).map(|i| weight(i) * forces[i][axis]).sum() };
        let totals = [total(0), total(1), total(2)];
        for &i in &others {
            (0..3).for_each(|axis| forces[i][axis] -= totals[axis] / mass);
        }
        Self { case, forces }
    }

    /// The forces without those of so many sources of the mean mass, in the middle of the list.
    fn without(&self, sources: usize) -> Vec<[f64; 3]> {
        let Case {
            bodies, physics, ..
        } = &self.case;
        let n = bodies.len();
        let of_mean_mass = (n / 2..n).chain(0..n / 2).filter(|i| i % 7 == 3 || n < 7);
        let mut forces = self.forces.clone();
        for j in of_mean_mass.take(sources) {
            let source = bodies.body(j);
            for (i, force) in forces.iter_mut().enumerate().filter(|&(i, _)| i != j) {
                let target = bodies.body(i).position;
                let r = [0, 1, 2].map(|axis| source.position[axis] - target[axis]);
                let square = r.iter().map(|x| x * x).sum::<f64>() + physics.softening.powi(2);
                let pull = physics.weight(source.mass) / (square * square.sqrt());
                (0..3).for_each(|axis| force[axis] -= pull * r[axis]);
            }
        }
        forces
    }

    fn times(&self, factor: f64) -> Vec<[f64; 3]> {
        let scaled = self.forces.iter().map(|force| force.map(|x| factor * x));
        scaled.collect()
    }
}

/// However many bodies there are: a source that is missing, or four of them in halves, and a factor
/// on all forces for those who state errors below it.
#[test]
fn planted_errors_are_found() {
    let single = |v: &&Variant| v.precision() == Precision::F32 && v.stored() == Precision::F32;
    let on_tensor_cores = |v: &Variant| v.is_tensor() || v.is_separated();
    for n in [2, 33, 257, 1025, 16_384, 65_536, 262_144] {
        for law in [ForceLaw::Gravity, ForceLaw::Unit] {
            let right = Right::new(n, law);
            let [one, four] = [1, 4].map(|sources| right.without(sources));
            let scaled = right.times(1.0 + 3e-6);
            let variants: Vec<_> = catalogue()
                .all()
                .filter(|v| v.computes(law))
                .filter(|v| on_tensor_cores(v) || single(v))
                .filter(|v| v.in_range(&right.case.bodies, &right.case.physics).is_ok())
                .collect();
            variants.par_iter().for_each(|v| {
                let found = |forces: &[_]| right.case.check(v, forces).is_err();
                assert_eq!(
                    right.case.check(v, &right.forces),
                    Ok(()),
                    "{}, N = {n}",
                    v.name
                );
                let missing = if on_tensor_cores(v) { &four } else { &one };
                assert!(found(missing), "{}, N = {n}, {law}: missing", v.name);
                if v.stated_error(n) < 1e-6 {
                    assert!(found(&scaled), "{}, N = {n}, {law}: scaled", v.name);
                }
            });
        }
    }
}

/// Each of the three checks finds by itself what it is there for. The planted errors are less than a
/// hundred times what it lets pass, so a check that let a hundred times as much pass would fail.
#[test]
fn each_check_finds_an_error() {
    let right = Right::new(16_384, ForceLaw::Gravity);
    let case = &right.case;
    let tiled = variants::find("tiled").expect("listed");

    let body = case.targets[57];
    let mut wrong = right.forces.clone();
    wrong[body][1] += 3e-4 * case.expected[57].scale;
    match case.check_bodies(tiled, &wrong) {
        Err(Wrong::Body(Disagreement::Bound { error, bound, .. })) => {
            assert!(error < 100.0 * bound, "{error:e}, {bound:e}");
        }
        other => panic!("{other:?}"),
    }
    match case.check_rms(tiled, &right.times(1.0 + 3e-6)) {
        Err(Wrong::Rms { times, .. }) => assert!(times < 300.0, "{times}"),
        other => panic!("{other:?}"),
    }
    let mut wrong = right.forces.clone();
    wrong.iter_mut().for_each(|force| force[2] += 3e-8);
    match case.check_total(tiled, &wrong) {
        Err(Wrong::Total { sum, bound }) => assert!(sum < 100.0 * bound, "{sum:e}, {bound:e}"),
        other => panic!("{other:?}"),
    }
}

/// One body's force that is not a number is found among all.
#[test]
fn forces_that_are_no_numbers_are_found() {
    let (case, _) = large_case(100, ForceLaw::Gravity);
    let right: Vec<_> = case
        .expected
        .iter()
        .map(|field| field.acceleration)
        .collect();
    let variant = variants::find("tiled").expect("listed");
    assert_eq!(case.check(variant, &right), Ok(()));
    assert_eq!(case.right_digits(&right)[16], 100);
    for body in [0, 57, 99] {
        let mut wrong = right.clone();
        wrong[body][1] = f64::NAN;
        assert!(case.check_bodies(variant, &wrong).is_err());
        assert!(case.check_rms(variant, &wrong).is_err());
        assert!(case.check_total(variant, &wrong).is_err());
        assert!(case.accuracy(&wrong).rms_relative.is_infinite());
        assert_eq!(case.right_digits(&wrong)[0], 1);
    }
}

/// Jerks that are off by a thousandth, of the other sign, and not numbers.
#[test]
fn wrong_jerks_are_found() {
    let (case, _) = large_case(100, ForceLaw::Gravity);
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
