//! On the emulator, against the CPU's sums.

use super::*;
use crate::bodies::Bodies;
use crate::force::cpu::gradients::{self, Direction};
use crate::force::cpu::samples::{Random, cloud};
use crate::integrator::Integrator;
use crate::machine::Machine;
use crate::physics::{ForceLaw, Physics};

/// Independent systems of equal size, with arguments of every kind.
struct Sample {
    shape: SystemsShape,
    systems: Vec<Bodies>,
    softening: Vec<f64>,
    rates: Vec<f64>,
    steps: Vec<f64>,
    vectors: Vec<Vec<[f64; 3]>>,
    others: Vec<Vec<[f64; 3]>>,
    numbers: Vec<Vec<f64>>,
}

impl Sample {
    fn new(bodies: usize, systems: usize, scale: f64) -> Self {
        let mut random = Random(17 + bodies as u64);
        let mut number = || 2.0 * random.unit() - 1.0;
        let mut vectors = || -> Vec<Vec<[f64; 3]>> {
            let mut of_system = || {
                (0..bodies)
                    .map(|_| [number(), number(), number()])
                    .collect()
            };
            (0..systems).map(|_| of_system()).collect()
        };
        let (vectors, others) = (vectors(), vectors());
        let systems: Vec<Bodies> = (0..systems as u64)
            .map(|k| {
                let mut bodies = cloud(bodies, 4 + k);
                // In every other system all bodies have mass.
                let massless = bodies.mass.iter_mut().skip(3).step_by(7);
                massless.for_each(|m| *m *= (k % 2) as f64);
                for (axis, offset) in [(0, 3.0), (1, -50.0), (2, 0.25)] {
                    let column = [&mut bodies.x, &mut bodies.y, &mut bodies.z];
                    for x in column.into_iter().nth(axis).expect("three axes") {
                        *x = scale * (*x + offset);
                    }
                }
                bodies
            })
            .collect();
        let each = |f: &dyn Fn(f64) -> f64| (0..systems.len()).map(|k| f(k as f64)).collect();
        Self {
            shape: SystemsShape {
                systems: systems.len(),
                bodies,
            },
            softening: each(&|k| scale * (0.3 + 0.1 * k)),
            rates: each(&|k| scale * (0.2 - 0.3 * k)),
            steps: each(&|k| 0.01 * scale * (1.0 + k)),
            numbers: (others.iter())
                .map(|v| v.iter().map(|v| v[0] + 0.5).collect())
                .collect(),
            vectors,
            others,
            systems,
        }
    }

    fn positions(&self) -> Vec<f64> {
        let of = |bodies: &Bodies| {
            (0..bodies.len())
                .flat_map(|i| bodies.body(i).position)
                .collect()
        };
        self.systems.iter().flat_map::<Vec<f64>, _>(of).collect()
    }

    fn begun(&self) -> Vec<Vec<f64>> {
        let masses = self.systems.iter().flat_map(|bodies| bodies.mass.clone());
        vec![self.positions(), masses.collect(), self.softening.clone()]
    }

    fn with(&self, more: &[&[f64]]) -> Vec<Vec<f64>> {
        let more = more.iter().map(|numbers| numbers.to_vec());
        self.begun().into_iter().chain(more).collect()
    }

    fn physics(&self, system: usize) -> Physics {
        Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: self.softening[system],
        }
    }

    fn direction(&self, system: usize) -> Direction<'_> {
        Direction {
            positions: &self.vectors[system],
            masses: &self.numbers[system],
            softening: self.rates[system],
        }
    }

    fn moving(&self, system: usize) -> Bodies {
        let mut bodies = self.systems[system].clone();
        for (i, &[x, y, z]) in self.vectors[system].iter().enumerate() {
            (bodies.vx[i], bodies.vy[i], bodies.vz[i]) = (x, y, z);
        }
        bodies
    }

    /// Results of the CPU, system after system.
    fn expected(&self, of: impl Fn(usize) -> Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        let all: Vec<_> = (0..self.shape.systems).map(of).collect();
        let result = |k: usize| all.iter().flat_map(|results| results[k].clone()).collect();
        (0..all[0].len()).map(result).collect()
    }
}

fn flat(vectors: &[Vec<[f64; 3]>]) -> Vec<f64> {
    vectors.concat().into_flattened()
}

const ALL: Asked = Asked {
    masses: true,
    softening: true,
};

/// Arrays of arguments or results.
type Arrays = Vec<Vec<f64>>;

/// Every task with its arguments, and what the CPU finds.
fn tasks(sample: &Sample) -> Vec<(SumTask, Arrays, Arrays)> {
    let (vectors, others) = (flat(&sample.vectors), flat(&sample.others));
    let numbers = sample.numbers.concat();
    let tangent = sample.with(&[&vectors, &numbers, &sample.rates]);
    let physics = |k: usize| sample.physics(k);
    let systems = &sample.systems;
    let mut tasks = vec![
        (
            SumTask::Accelerations,
            sample.begun(),
            sample.expected(|k| {
                let found = gradients::accelerations::<f64>(&systems[k], &physics(k));
                vec![found.into_flattened()]
            }),
        ),
        (
            SumTask::Tangent,
            tangent.clone(),
            sample.expected(|k| {
                let along = sample.direction(k);
                let found = gradients::tangent::<f64>(&systems[k], &physics(k), along);
                vec![found.expect("apart").into_flattened()]
            }),
        ),
        (
            SumTask::Potentials,
            sample.begun(),
            sample.expected(|k| vec![gradients::potentials::<f64>(&systems[k], &physics(k))]),
        ),
        (
            SumTask::PotentialTangent,
            tangent,
            sample.expected(|k| {
                let along = sample.direction(k);
                let found = gradients::potential_tangent::<f64>(&systems[k], &physics(k), along);
                vec![found.expect("apart")]
            }),
        ),
        (
            SumTask::PotentialPull,
            sample.with(&[&numbers]),
            sample.expected(|k| {
                let lambda = &sample.numbers[k];
                let found = gradients::potential_pull::<f64>(&systems[k], &physics(k), lambda);
                let found = found.expect("apart");
                vec![
                    found.positions.into_flattened(),
                    found.masses,
                    vec![found.softening],
                ]
            }),
        ),
    ];
    for (masses, softening) in [(false, false), (true, false), (false, true), (true, true)] {
        let asked = Asked { masses, softening };
        for with_accelerations in [false, true] {
            tasks.push((
                SumTask::Pull {
                    asked,
                    with_accelerations,
                },
                sample.with(&[&vectors]),
                sample.expected(|k| {
                    let lambda = &sample.vectors[k];
                    let found = gradients::pull::<f64>(&systems[k], &physics(k), lambda, asked);
                    let found = found.expect("apart");
                    let all = [
                        (with_accelerations, found.accelerations.into_flattened()),
                        (true, found.positions.into_flattened()),
                        (masses, found.masses),
                        (softening, vec![found.softening]),
                    ];
                    all.into_iter()
                        .filter(|(wanted, _)| *wanted)
                        .map(|(_, found)| found)
                        .collect()
                }),
            ));
        }
    }
    for (integrator, steps) in [
        (Integrator::Leapfrog, 3),
        (Integrator::Yoshida4, 1),
        (Integrator::LeapfrogDkd, 0),
    ] {
        let trajectory = |k: usize| {
            let dt = sample.steps[k];
            Trajectory::new(integrator, dt, steps).expect("reversible")
        };
        let ended = |k: usize| {
            let mut bodies = sample.moving(k);
            trajectory(k).advance::<f64>(&mut bodies, &physics(k));
            bodies
        };
        let state = |bodies: &Bodies| -> Vec<Vec<f64>> {
            let all = 0..bodies.len();
            vec![
                all.clone().flat_map(|i| bodies.body(i).position).collect(),
                all.flat_map(|i| bodies.body(i).velocity).collect(),
            ]
        };
        let last = sample.expected(|k| state(&ended(k)));
        let begun = sample.with(&[&vectors, &sample.steps]);
        // Nothing is lost to arrays of f64.
        let rest = vec![0.0; vectors.len()];
        let last = [last, vec![rest.clone(), rest]].concat();
        let by_last = vec![vectors.clone(), others.clone()];
        let back = [begun.clone(), last.clone(), by_last].concat();
        let pulled = |asked: Asked, with_largest: bool| {
            sample.expected(|k| {
                let (by_x, by_v) = (sample.vectors[k].clone(), sample.others[k].clone());
                let found =
                    trajectory(k).pull::<f64>(&mut ended(k), &physics(k), by_x, by_v, asked);
                let found = found.expect("apart");
                let cotangents = [&sample.vectors[k], &sample.others[k]];
                let begun = cotangents.map(|vectors| largest(vectors.as_flattened()));
                let most = found.growth * begun[0].max(begun[1]);
                let masses = match asked.masses {
                    true => found.masses,
                    false => vec![0.0; sample.shape.bodies],
                };
                let mut all = vec![
                    found.positions.into_flattened(),
                    masses,
                    vec![found.softening],
                    found.velocities.into_flattened(),
                    vec![found.dt],
                ];
                all.extend(with_largest.then(|| vec![most]));
                all
            })
        };
        tasks.push((SumTask::Trajectory(trajectory(0)), begun, last));
        for asked in [Asked::default(), ALL] {
            for with_largest in [false, true] {
                let task = SumTask::TrajectoryPull {
                    trajectory: trajectory(0),
                    asked,
                    with_largest,
                };
                tasks.push((task, back.clone(), pulled(asked, with_largest)));
            }
        }
    }
    tasks
}

fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0, |most, x| x.abs().max(most))
}

/// Fails where a result is off by more than the tolerance, of its largest number.
fn compare(found: &[Vec<f64>], expected: &[Vec<f64>], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.len(), expected.len(), "{what}, result {k}");
        let errors: Vec<f64> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
        let bound = tolerance * largest(expected);
        assert!(
            errors.iter().all(|error| error.abs() <= bound),
            "{what}, result {k}: {} of {bound:e}",
            largest(&errors)
        );
    }
}

const WAYS: [Sweep; 2] = [Sweep::OneSided, Sweep::Once];

/// All tasks in both precisions and ways: one body, several blocks and tiles, several systems, near 1 and in metres.
#[test]
fn sums_on_a_device_are_those_of_the_cpu() {
    let mut device = Machine::emulator(3).pair_sums().expect("a device");
    for (bodies, systems, scale) in [(1, 1, 1.0), (2, 3, 1.0), (130, 2, 1.0), (300, 1, 1e17)] {
        let sample = Sample::new(bodies, systems, scale);
        for (task, arguments, expected) in tasks(&sample) {
            for (pairs, tolerance) in [(Precision::F64, 3e-13), (Precision::F32, 2e-5)] {
                for way in WAYS {
                    let call = Call {
                        task,
                        shape: sample.shape,
                        pairs,
                        arrays: Precision::F64,
                        way,
                    };
                    let found = device.compute(&call, &arguments).expect("computes");
                    let what = format!("{task:?} of {bodies} bodies in {pairs:?}, {way:?}");
                    compare(&found, &expected, tolerance, &what);
                }
            }
        }
    }
}

/// The way back of a trajectory needs the force that the way there had.
#[test]
fn forces_are_rounded_like_those_with_derivatives() {
    let mut device = Machine::emulator(3).pair_sums().expect("a device");
    let sample = Sample::new(700, 1, 1.0);
    let vectors = flat(&sample.vectors);
    for way in WAYS {
        for asked in [Asked::default(), ALL] {
            let mut accelerations = |task, more: &[&[f64]]| {
                let call = Call {
                    task,
                    shape: sample.shape,
                    pairs: Precision::F32,
                    arrays: Precision::F64,
                    way,
                };
                let found = device.compute(&call, &sample.with(more)).expect("computes");
                found[0].clone()
            };
            let pull = SumTask::Pull {
                asked,
                with_accelerations: true,
            };
            let alone = accelerations(SumTask::Accelerations, &[]);
            assert_eq!(alone, accelerations(pull, &[&vectors]), "{way:?}");
        }
    }
}

/// Arrays of f32 come with what they lose, so that the way back begins at the last state itself.
#[test]
fn rounded_arrays_keep_what_they_lose() {
    let mut device = Machine::emulator(3).pair_sums().expect("a device");
    let sample = Sample::new(20, 2, 1.0);
    let trajectory = Trajectory::new(Integrator::Leapfrog, 0.0, 3).expect("reversible");
    let vectors = flat(&sample.vectors);
    let begun = sample.with(&[&vectors, &sample.steps]);
    let call = |arrays| Call {
        task: SumTask::Trajectory(trajectory),
        shape: sample.shape,
        pairs: Precision::F64,
        arrays,
        way: Sweep::Fastest,
    };
    let rounded = |numbers: &Vec<f64>| numbers.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let given: Vec<Vec<f32>> = begun.iter().map(rounded).collect();
    let numbers = 3 * sample.shape.total();
    let mut ends = vec![vec![0.0_f32; numbers]; 4];
    let arguments: Vec<u64> = given
        .iter()
        .map(|a| a.as_ptr().expose_provenance() as u64)
        .collect();
    let results = ends
        .iter_mut()
        .map(|a| a.as_mut_ptr().expose_provenance() as u64);
    let results: Vec<u64> = results.collect();
    // SAFETY: arrays of the emulator's memory, the host's, as long as the call says.
    let done = unsafe { device.compute_in_place(&call(Precision::F32), &arguments, &results, 0) };
    done.expect("computes");
    let exactly: Vec<Vec<f64>> = given
        .iter()
        .map(|numbers| numbers.iter().map(|&x| x.into()).collect())
        .collect();
    let expected = device
        .compute(&call(Precision::F64), &exactly)
        .expect("computes");
    for (which, expected) in expected[..2].iter().enumerate() {
        let whole = ends[which].iter().zip(&ends[which + 2]);
        let whole: Vec<f64> = whole.map(|(&a, &b)| f64::from(a) + f64::from(b)).collect();
        let rounded_alone: Vec<f64> = ends[which].iter().map(|&a| a.into()).collect();
        compare(
            &[whole],
            std::slice::from_ref(expected),
            1e-14,
            "with the rest",
        );
        assert_ne!(&rounded_alone, expected);
    }
}
