//! Timing of variants. Only those verified in the same run are timed.

pub mod compare;
pub mod effort;
pub mod study;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use gpu_kernels::numerics::Precision;

use crate::bench_record::{BenchFailure, BenchRecord, BenchRow, Digits, VERSION};
use crate::choices::choices;
use crate::studies::{Start, Statistic};
use crate::verify::{Case, TwoSteps, cloud, cloud_of_equal_masses, large_case};
use allpairs::backend::{Backend, ForceError};
use allpairs::bodies::Bodies;
use allpairs::initial_conditions::plummer;
use allpairs::integrator::Integrator;
use allpairs::limits;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::selection::Place;
use allpairs::variants::Variant;

use effort::Effort;

/// Measurement to make: of what, how often, and for how long at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Quantity that is timed.
    pub timed: Timed,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Statistic of the repetitions that is reported.
    pub statistic: Statistic,
    /// Seconds that a variant may take at one number of bodies, see [`effort`].
    pub budget: f64,
}

/// Quantity that is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timed {
    /// One evaluation of the force, by the device's own clock.
    Force,
    /// So many steps of an integrator, from the first launch to the end of the last.
    Steps(Integrator, u32),
}

/// Outcome for a variant at one number of bodies.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are few, and most are timed"
)]
pub enum Outcome {
    /// Times of a variant with right forces.
    Timed(BenchRow),
    /// Failure of a variant with wrong forces, or that cannot run there: it has no time.
    Wrong(BenchFailure),
}

/// Bodies to be timed on, with the forces that are right, made when they are first asked for.
#[derive(Debug)]
pub struct Cases {
    start: Start,
    softening: f64,
    systems: u32,
    made: Vec<(Case, TwoSteps)>,
}

/// Seed of random starts: any would do, and the same is always taken.
const SEED: u64 = 1;

/// ε where nothing else is said.
pub const SOFTENING: f64 = 0.05;

impl Cases {
    /// Cases of bodies that are `start`.
    pub const fn new(start: Start) -> Self {
        Self {
            start,
            softening: SOFTENING,
            systems: 1,
            made: vec![],
        }
    }

    /// Measures bodies of several independent systems, one after another.
    #[must_use]
    pub const fn of_systems(mut self, systems: u32) -> Self {
        self.systems = systems;
        self
    }

    /// Softens by a length ε ≥ 0; side and Plummer's radius are of order 1.
    #[must_use]
    pub const fn softened_by(mut self, softening: f64) -> Self {
        self.softening = softening;
        self
    }

    /// Description of the bodies.
    pub fn description(&self) -> String {
        let start = match self.start {
            Start::Cube => "cube",
            Start::CubeOfEqualMasses => "cube of equal masses",
            Start::Plummer => "Plummer sphere",
        };
        format!("{start}, ε = {}", self.softening)
    }

    fn bodies(&self, n: usize) -> Bodies {
        match self.start {
            Start::Cube => cloud(n),
            Start::CubeOfEqualMasses => cloud_of_equal_masses(n),
            Start::Plummer => plummer(n, SEED).expect("numbers of bodies fit in memory"),
        }
    }

    fn physics(&self, law: ForceLaw) -> Physics {
        Physics {
            law,
            g: 1.0,
            softening: self.softening,
        }
    }

    fn case(&mut self, n: usize, law: ForceLaw) -> &(Case, TwoSteps) {
        let is_it =
            |(case, _): &(Case, TwoSteps)| case.bodies.len() == n && case.physics.law == law;
        let known = self.made.iter().position(is_it).unwrap_or_else(|| {
            let (mut case, steps) = large_case(n, law);
            if self.start != Start::Cube || self.systems > 1 || self.softening != SOFTENING {
                let (bodies, physics) = (self.bodies(n), self.physics(law));
                case = Case::of_systems(format!("N = {n}"), bodies, physics, self.systems);
            }
            self.made.push((case, steps));
            self.made.len() - 1
        });
        &self.made[known]
    }
}

/// Verifies a variant and times it, bodies already there, after the verified evaluation and a step
/// have warmed everything up: at `bodies` bodies, or as many as the protocol's budget allows.
///
/// # Errors
/// If the device fails. What a variant refuses is an outcome.
///
/// # Panics
/// If the protocol has no repetitions, or steps none, or the variant does not compute the law.
pub fn measure(
    machine: &Machine,
    variant: &Variant,
    cases: &mut Cases,
    (bodies, law): (usize, ForceLaw),
    protocol: &Protocol,
) -> Result<Outcome, ForceError> {
    let one = variant;
    let variant = &variant.of_systems(cases.systems);
    let refused = |why: String| {
        let expected = variant.wrong.is_some();
        Outcome::Wrong(BenchFailure {
            kernel: variant.name.to_owned(),
            bodies: bodies as u64,
            why: match variant.wrong {
                Some(known) => format!("known to be wrong: {known} ({why})"),
                None => why,
            },
            expected,
        })
    };
    let effort = match Effort::affordable(machine, variant, cases, (bodies, law), protocol) {
        Ok(effort) => effort,
        Err(refusal) => return unless_broken(refusal).map(refused),
    };
    let variant = &variant.fitted(effort.bodies);
    let (case, steps) = cases.case(effort.bodies, law);
    let mut backend = machine.backend(variant, &case.bodies, case.physics)?;
    backend.accelerate()?;
    let computed = backend.accelerations()?;
    match (case.check(variant, &computed), variant.wrong) {
        (Ok(()), None) => {}
        (Ok(()), Some(_)) => return Ok(refused("not in this case".to_owned())),
        (Err(why), _) => return Ok(refused(why.to_string())),
    }
    let (seconds, transfers) = time(&mut *backend, protocol.timed, effort)?;
    drop(backend);
    let digits = steps.digits(machine, one)?;
    let n = effort.bodies as f64;
    let gpus = machine.gpus(variant, law)?;
    let told = protocol.statistic.of(&seconds);
    Ok(Outcome::Timed(BenchRow {
        kernel: variant.name.to_owned(),
        study: variant.study().map(str::to_owned),
        predecessor: variant.predecessor.map(str::to_owned),
        choices: choices(variant)
            .into_iter()
            .map(|choice| match choice.value {
                all if choice.axis == "GPUs" && all == "all" => {
                    (choice.axis.to_owned(), gpus.to_string())
                }
                value => (choice.axis.to_owned(), value),
            })
            .collect(),
        bodies: effort.bodies as u64,
        asked: (effort.bodies != bodies).then_some(bodies as u64),
        repetitions: effort.repetitions,
        steps: match protocol.timed {
            Timed::Force => None,
            Timed::Steps(..) => Some(effort.steps),
        },
        seconds: told,
        fastest: seconds[0],
        slowest: seconds[seconds.len() - 1],
        transfers: (transfers > 0.0).then_some(transfers),
        rate: n * n / f64::from(case.systems) / told,
        limit: limit(machine.place(), variant.precision()).map(|of_one| f64::from(gpus) * of_one),
        error: case.accuracy(&computed).rms_relative,
        digits: Some(Digits {
            whole: digits.whole,
            decimals: digits.decimals.to_vec(),
            beyond: digits.beyond,
            not_finite: digits.not_finite,
        }),
        force_digits: case.right_digits(&computed).to_vec(),
    }))
}

/// Words for what a variant refuses by itself; an error where the device failed.
pub(crate) fn unless_broken(refusal: ForceError) -> Result<String, ForceError> {
    match refusal {
        ForceError::Plan(_) | ForceError::OutOfRange(_) | ForceError::Kernel(_) => {
            Ok(refusal.to_string())
        }
        broken => Err(broken),
    }
}

/// Sorted times of the repetitions, of one step or evaluation each, and what of such a time, in the
/// mean, was spent on the bus.
fn time(
    backend: &mut dyn Backend,
    timed: Timed,
    effort: Effort,
) -> Result<(Vec<f64>, f64), ForceError> {
    /// So short that the orbits change nothing.
    const DT: f64 = 1e-6;
    let (mut seconds, mut transfers) = (vec![], 0.0);
    if let Timed::Steps(integrator, _) = timed {
        integrator.step(backend, DT)?; // loads kick and drift, too
        transfers = backend.transfers();
    }
    for _ in 0..effort.repetitions {
        seconds.push(match timed {
            Timed::Force => backend.time_acceleration()?,
            Timed::Steps(integrator, _) => {
                backend.synchronize()?;
                let began = Instant::now();
                for _ in 0..effort.steps {
                    integrator.step(backend, DT)?;
                }
                backend.synchronize()?;
                began.elapsed().as_secs_f64() / f64::from(effort.steps)
            }
        });
    }
    seconds.sort_by(f64::total_cmp);
    let steps = f64::from(effort.repetitions) * f64::from(effort.steps);
    Ok((seconds, (backend.transfers() - transfers) / steps))
}

/// Interactions/s that no one-sided kernel of this precision exceeds there, on all GPUs of the place
/// together, if that is known.
fn limit(place: &Place, precision: Precision) -> Option<f64> {
    let of_gpu = match precision {
        Precision::F64 => limits::one_sided_f64,
        _ => limits::one_sided_f32,
    };
    let gpus = place.gpus().iter().map(of_gpu);
    let limit = gpus.sum::<Option<f64>>()?;
    (limit > 0.0).then_some(limit)
}

/// The record of what was measured at a place, now.
pub fn record(place: &Place, outcomes: Vec<Outcome>) -> BenchRecord {
    let mut record = BenchRecord {
        version: VERSION,
        allpairs: env!("CARGO_PKG_VERSION").into(),
        unix_time: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        device: place.device(),
        driver: place.driver(),
        host: Some(Place::CPU.to_string()),
        start: None,
        rows: vec![],
        failures: vec![],
    };
    for outcome in outcomes {
        match outcome {
            Outcome::Timed(row) => record.rows.push(row),
            Outcome::Wrong(failure) => record.failures.push(failure),
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::catalogue;

    const PROTOCOL: Protocol = Protocol {
        timed: Timed::Force,
        repetitions: 3,
        statistic: Statistic::Median,
        budget: 60.0,
    };

    fn outcome(place: Place, kernel: &str, law: ForceLaw, protocol: &Protocol) -> Outcome {
        let machine = Machine::new(place);
        let variant = catalogue().find(kernel).expect("listed");
        measure(
            &machine,
            variant,
            &mut Cases::new(Start::Cube),
            (300, law),
            protocol,
        )
        .unwrap()
    }

    #[test]
    fn a_right_kernel_is_timed() {
        let outcome = outcome(Place::CPU, "cpu-f64", ForceLaw::Gravity, &PROTOCOL);
        let record = record(&Place::CPU, vec![outcome]);
        let [row] = &record.rows[..] else {
            panic!("{record:?}");
        };
        assert!(row.fastest <= row.seconds && row.seconds <= row.slowest && row.fastest > 0.0);
        assert!((row.rate * row.seconds / 9e4 - 1.0).abs() < 1e-12);
        assert!(row.error < 1e-12, "{}", row.error);
        assert_eq!(row.force_digits.iter().sum::<u64>(), 300);
        assert_eq!((row.bodies, row.asked, row.limit), (300, None, None));
        assert_eq!((row.steps, row.transfers), (None, None));
        assert_eq!(row.choices["precision"], "f64");
    }

    /// Steps are timed as a study takes them, and what they spend on the bus is told.
    #[test]
    fn steps_are_timed_with_their_transfers() {
        let protocol = Protocol {
            timed: Timed::Steps(Integrator::SemiImplicitEuler, 2),
            ..PROTOCOL
        };
        let row = |kernel| match outcome(Place::EMULATOR, kernel, ForceLaw::Unit, &protocol) {
            Outcome::Timed(row) => row,
            wrong => panic!("{wrong:?}"),
        };
        let there_and_back = row("venus/naive");
        assert_eq!(there_and_back.steps, Some(2));
        let transfers = there_and_back.transfers.expect("every step copies");
        assert!(transfers > 0.0 && transfers < there_and_back.slowest);
        assert_eq!(row("venus/positions").transfers, None);
    }

    #[test]
    fn what_is_known_to_be_wrong_has_no_time() {
        let outcome = outcome(
            Place::EMULATOR,
            "venus/fp16-pure",
            ForceLaw::Unit,
            &PROTOCOL,
        );
        let Outcome::Wrong(failure) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            failure.expected && failure.why.contains("overflow"),
            "{failure:?}"
        );
    }
}
