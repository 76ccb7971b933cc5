//! The CPU forces against the reference, for every instruction set of this machine.

use gpu_kernels::numerics::MultiplyAdd;

use super::samples::{body, cloud};
use super::*;
use crate::backend::Backend;
use crate::diagnostics::{check, momentum, tolerance};
use crate::force::reference;
use crate::physics::ForceLaw;
use crate::simd::Kernel;
use crate::simd::Registers;

const SOFT: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.5,
    softening: 0.05,
};
const HARD: Physics = Physics {
    softening: 0.0,
    ..SOFT
};

/// Roundings of one pair in units of u: r 1, d² 6, 1/d³ 17 with exact roots and less than 19 with
/// refined ones, w 1, the products 3; and the 15 of an f64 reference. The cube of an estimate is off
/// by three times as much as the estimate.
fn pair_ulps(choices: Choices, precision: Precision) -> f64 {
    let estimate = match choices.root {
        RootName::Exact | RootName::Refined => 0.0,
        RootName::Estimated => choices.instructions.estimate_error(precision),
    };
    39.0 + 3.03 * estimate / precision.unit_roundoff()
}

/// All that can be chosen on this machine.
fn all_choices() -> Vec<Choices> {
    let mut all = vec![];
    for instructions in InstructionSet::available() {
        for root in [RootName::Exact, RootName::Refined, RootName::Estimated] {
            for pairs in [PairsName::Twice, PairsName::Once] {
                all.push(Choices {
                    root,
                    pairs,
                    instructions,
                    threads: Threads::All,
                });
            }
        }
    }
    all
}

/// Who computes does not enter the sums.
#[test]
fn one_thread_computes_the_same_bits() {
    let bodies = cloud(700, 3);
    let choices = Choices {
        pairs: PairsName::Twice,
        ..Choices::default()
    };
    let alone = Choices {
        threads: Threads::One,
        ..choices
    };
    assert_eq!(
        forces::<f32>(&bodies, SOFT, alone),
        forces::<f32>(&bodies, SOFT, choices)
    );
}

fn forces<R: Lane>(bodies: &Bodies, physics: Physics, choices: Choices) -> Vec<[f64; 3]> {
    let mut cpu = Cpu::<R>::with(bodies, physics, choices);
    cpu.accelerate().unwrap();
    cpu.accelerations().unwrap()
}

/// Checks all bodies within the bound that rounding of sums and of stored positions gives.
fn agrees<R: Lane>(bodies: &Bodies, physics: Physics) {
    let n = bodies.len();
    let u = R::PRECISION.unit_roundoff();
    let fields = reference::accelerations_of(bodies, &physics, &Vec::from_iter(0..n));
    // Stored coordinates are off by u·length/2 each, a separation by √3 times two of them; one
    // more such step for moving the origin in f64.
    let frame = frame::<R>(bodies, &physics);
    let position_error = if R::PRECISION == Precision::F32 {
        2.0 * u * frame.length
    } else {
        0.0
    };
    for choices in all_choices() {
        let pair_ulps = pair_ulps(choices, R::PRECISION);
        let tolerance = tolerance(u, additions(choices.pairs, R::PRECISION, n), pair_ulps);
        let computed = forces::<R>(bodies, physics, choices);
        if let Err(fault) = check(&computed, &fields, tolerance, position_error) {
            panic!("{choices:?}, {n} bodies, {physics:?}: {fault}");
        }
    }
}

fn agrees_in_both(bodies: &Bodies, physics: Physics) {
    agrees::<f32>(bodies, physics);
    agrees::<f64>(bodies, physics);
}

#[test]
fn ragged_numbers_of_bodies() {
    for n in (0..=200).chain([255, 256, 257, 511, 1000]) {
        let bodies = cloud(n, n as u64);
        agrees_in_both(&bodies, SOFT);
        agrees_in_both(&bodies, HARD);
    }
}

#[test]
fn unit_law() {
    for softening in [0.0, 0.1] {
        let physics = Physics {
            law: ForceLaw::Unit,
            g: f64::NAN,
            softening,
        };
        agrees_in_both(&cloud(77, 4), physics);
    }
}

#[test]
fn coincident_bodies() {
    let mut bodies = cloud(40, 8);
    for i in [0, 13, 39] {
        bodies.push(bodies.body(i));
    }
    agrees_in_both(&bodies, HARD);
    agrees_in_both(&bodies, SOFT);
    let mut all_at_one_place = Bodies::with_capacity(20);
    (0..20).for_each(|_| all_at_one_place.push(body([0.1, 1e9, -3.0], 2.0)));
    for physics in [HARD, SOFT] {
        for choices in all_choices() {
            let zero = vec![[0.0; 3]; 20];
            assert_eq!(forces::<f32>(&all_at_one_place, physics, choices), zero);
            assert_eq!(forces::<f64>(&all_at_one_place, physics, choices), zero);
        }
    }
}

#[test]
fn softening_too_small_for_the_precision() {
    // ε² vanishes or overflows 1/ε³ in f32; the force of a body on itself must still be zero.
    for softening in [1e-13, 1e-18, 1e-22, 1e-30, 1e-200] {
        agrees_in_both(&cloud(33, 6), Physics { softening, ..SOFT });
    }
}

#[test]
fn massless_bodies_are_pulled_and_do_not_pull() {
    let mut bodies = cloud(50, 2);
    bodies.mass[10..40].fill(0.0);
    agrees_in_both(&bodies, HARD);
    bodies.mass.fill(0.0);
    for choices in all_choices() {
        assert_eq!(forces::<f32>(&bodies, SOFT, choices), vec![[0.0; 3]; 50]);
    }
}

#[test]
fn any_units_and_any_origin() {
    let scaled = |length: f64, mass: f64, offset: f64| {
        let mut bodies = cloud(90, 3);
        for x in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
            x.iter_mut().for_each(|x| *x = *x * length + offset);
        }
        bodies.mass.iter_mut().for_each(|m| *m *= mass);
        bodies
    };
    agrees_in_both(
        &scaled(1e21, 1e42, 0.0),
        Physics {
            g: 6.674e-11,
            softening: 1e19,
            ..SOFT
        },
    );
    agrees_in_both(
        &scaled(1e21, 1e42, 0.0),
        Physics {
            g: 6.674e-11,
            ..HARD
        },
    );
    agrees_in_both(&scaled(1e-15, 1e-30, 0.0), HARD);
    agrees_in_both(
        &scaled(1e-15, 1.0, 0.0),
        Physics {
            law: ForceLaw::Unit,
            ..SOFT
        },
    );
    agrees_in_both(&scaled(1.0, 1.0, 1e9), SOFT);
    agrees_in_both(
        &scaled(1e-3, 1.0, -1e9),
        Physics {
            softening: 1e-4,
            ..SOFT
        },
    );
    agrees_in_both(&scaled(1e90, 1e90, 0.0), HARD);
}

#[test]
fn nan_is_not_hidden() {
    let mut bodies = cloud(20, 1);
    bodies.y[5] = f64::NAN;
    let all_nan = |forces: Vec<[f64; 3]>| forces.as_flattened().iter().all(|a| a.is_nan());
    for physics in [SOFT, HARD] {
        for choices in all_choices() {
            assert!(all_nan(forces::<f32>(&bodies, physics, choices)));
            assert!(all_nan(forces::<f64>(&bodies, physics, choices)));
            let potential = potential_energy(&bodies, &physics, choices.instructions);
            assert!(potential.is_nan());
        }
    }
}

#[test]
fn third_law() {
    // Pair forces are exactly opposite; only the sums round.
    let bodies = cloud(300, 12);
    let fields = reference::accelerations_of(&bodies, &SOFT, &Vec::from_iter(0..300));
    let scale: f64 = fields
        .iter()
        .zip(&bodies.mass)
        .map(|(field, m)| m * field.scale)
        .sum();
    for choices in all_choices() {
        // Even an estimate is the same from both sides.
        let pair_ulps = pair_ulps(
            Choices {
                root: RootName::Exact,
                ..choices
            },
            Precision::F64,
        );
        let terms = |precision| additions(choices.pairs, precision, 300) + 2;
        let totals = [
            (
                forces::<f32>(&bodies, SOFT, choices),
                tolerance(
                    Precision::F32.unit_roundoff(),
                    terms(Precision::F32),
                    pair_ulps,
                ),
            ),
            (
                forces::<f64>(&bodies, SOFT, choices),
                tolerance(
                    Precision::F64.unit_roundoff(),
                    terms(Precision::F64),
                    pair_ulps,
                ),
            ),
        ];
        for (accelerations, tolerance) in totals {
            let mut after = bodies.clone();
            for (i, a) in accelerations.into_iter().enumerate() {
                [after.vx[i], after.vy[i], after.vz[i]] = a;
            }
            for total in momentum(&after, &SOFT) {
                assert!(
                    total.abs() <= tolerance * scale,
                    "{choices:?}: {total:e} of {scale:e}"
                );
            }
        }
    }
}

/// Returns whether multiply-add rounds once. Instructions that agree in this compute the same bits with exact
/// roots.
struct IsFused;

impl Kernel for IsFused {
    type Output = bool;
    #[inline(always)]
    fn run<S: Registers>(self) -> bool {
        S::MultiplyAdd::FUSED
    }
}

#[test]
fn threads_and_vector_width_leave_the_bits_alone() {
    let bodies = cloud(1111, 21);
    let compute = |choices: Choices, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            [SOFT, HARD].map(|physics| {
                let single = forces::<f32>(&bodies, physics, choices);
                let double = forces::<f64>(&bodies, physics, choices);
                let potential = potential_energy(&bodies, &physics, choices.instructions);
                (single, double, potential)
            })
        })
    };
    let mut exact = vec![];
    for choices in all_choices() {
        let alone = compute(choices, 1);
        for threads in [2, 3, 8] {
            assert!(
                compute(choices, threads) == alone,
                "{choices:?} with {threads} threads"
            );
        }
        if (choices.root, choices.pairs) == (RootName::Exact, PairsName::Twice) {
            exact.push((choices.instructions.run(IsFused), alone));
        }
    }
    for pair in exact.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(pair[0].1 == pair[1].1);
    }
}

/// The choice is automatic: bit for bit the one kernel below the number, the other from there on.
#[test]
fn each_pair_is_computed_once_from_where_it_pays() {
    let limit = super::once::pays_from(Precision::F64);
    for (n, pairs) in [(limit - 1, PairsName::Twice), (limit, PairsName::Once)] {
        let bodies = cloud(n, 5);
        let with = |pairs| {
            let choices = Choices {
                pairs,
                ..Choices::default()
            };
            forces::<f64>(&bodies, SOFT, choices)
        };
        let automatic = with(PairsName::ByNumber);
        assert!(automatic == with(pairs), "{n} bodies");
        assert!(Choices::default().pairs == PairsName::ByNumber);
    }
}

#[test]
fn many_tiles_and_a_ragged_one() {
    // Nine tiles of 256 bodies and one of 17, and so each with a partner; or eight and a rest.
    for n in [9 * 256 + 17, 8 * 256 + 1] {
        let bodies = cloud(n, 77);
        agrees_in_both(&bodies, SOFT);
    }
}

/// Roundings of one pair's potential, amply.
const POTENTIAL_ULPS: f64 = 37.0;

#[test]
fn potential_agrees_with_the_reference() {
    for n in (0..=50).chain([255, 256, 257, 272, 273, 600]) {
        let bodies = cloud(n, 40 + n as u64);
        for physics in [
            SOFT,
            HARD,
            Physics {
                law: ForceLaw::Unit,
                ..SOFT
            },
        ] {
            let expected = reference::potential_energy(&bodies, &physics);
            // All terms have one sign: the sum itself is the scale.
            let bound = tolerance(2f64.powi(-53), n + 2, POTENTIAL_ULPS) * expected.abs();
            for set in InstructionSet::available() {
                let potential = potential_energy(&bodies, &physics, set);
                let error = (potential - expected).abs();
                assert!(error <= bound, "{set}, {n} bodies: {error:e} > {bound:e}");
            }
        }
    }
}

#[test]
fn potential_of_coincident_bodies() {
    let mut bodies = cloud(20, 8);
    bodies.push(bodies.body(3));
    let expected = reference::potential_energy(&bodies, &HARD);
    let potential = potential_energy(&bodies, &HARD, InstructionSet::detect());
    assert!((potential - expected).abs() <= 1e-13 * expected.abs());
}

#[test]
fn backend_steps_like_the_reference() {
    let start = cloud(60, 30);
    let mut cpu = Cpu::<f64>::new(&start, SOFT);
    let mut reference = reference::Reference::new(&start, SOFT);
    let mut states = [start.clone(), start.clone()];
    let backends: [&mut dyn Backend; 2] = [&mut cpu, &mut reference];
    let energies = backends.map(|backend| {
        for _ in 0..5 {
            backend.accelerate().unwrap();
            backend.kick(1e-3).unwrap();
            backend.drift(1e-3).unwrap();
        }
        backend.energy().unwrap()
    });
    cpu.download(&mut states[0]).unwrap();
    reference.download(&mut states[1]).unwrap();
    assert_ne!(states[0].x, start.x);
    assert_eq!(states[0].mass, start.mass);
    for (a, b) in states[0].x.iter().zip(&states[1].x) {
        assert!((a - b).abs() <= 1e-13, "{a} {b}");
    }
    assert!((energies[0].total() - energies[1].total()).abs() <= 1e-12);
}

#[test]
fn ranks_notice_that_bodies_differ() {
    use crate::ranks::threads::together_with;
    let found = |other: usize| {
        together_with(&[1, 1, 1], |team| {
            let mut bodies = cloud(20, 1);
            if team.rank() == other {
                bodies.vz[19] += 1e-9;
            }
            team.rank_that_differs(Cpu::<f64>::new(&bodies, SOFT).checksum())
        })
    };
    assert_eq!(found(2), [Some(2); 3]);
    assert_eq!(found(3), [None; 3]);
}
