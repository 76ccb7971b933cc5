//! How fast is a variant? Only what was verified in the same run is timed.

use std::time::{SystemTime, UNIX_EPOCH};

use gpu_kernels::numerics::Precision;

use crate::bench_record::{BenchFailure, BenchRecord, BenchRow, Digits, VERSION};
use crate::force::ForceError;
use crate::limits;
use crate::selection::{Machine, Place};
use crate::variants::Variant;
use crate::verify::{Case, TwoSteps};

/// What became of a variant at one number of bodies.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its forces are right, and this is how fast they came.
    Timed(BenchRow),
    /// Its forces are wrong: it has no time.
    Wrong(BenchFailure),
}

/// Verifies a variant on `case` and times it: force only, bodies already there, after the verified
/// evaluation has warmed everything up.
///
/// # Errors
/// If it cannot run.
///
/// # Panics
/// If `repetitions` is 0.
pub fn measure(
    machine: &Machine,
    variant: &Variant,
    case: &Case,
    steps: &TwoSteps,
    repetitions: u32,
) -> Result<Outcome, ForceError> {
    assert!(repetitions > 0, "the median of no times");
    let bodies = case.bodies.len() as u64;
    let mut backend = machine.backend(variant, &case.bodies, case.physics)?;
    backend.accelerate()?;
    let computed = backend.accelerations()?;
    if let Err(why) = case.check(variant, &computed) {
        return Ok(Outcome::Wrong(BenchFailure {
            kernel: variant.name.to_owned(),
            bodies,
            why: why.to_string(),
        }));
    }
    let mut seconds = vec![];
    for _ in 0..repetitions {
        seconds.push(backend.time_acceleration()?);
    }
    seconds.sort_by(f64::total_cmp);
    drop(backend);
    let median = seconds[seconds.len() / 2];
    let digits = steps.digits(machine, variant)?;
    Ok(Outcome::Timed(BenchRow {
        kernel: variant.name.to_owned(),
        study: variant.study().map(str::to_owned),
        predecessor: variant.predecessor.map(str::to_owned),
        choices: variant
            .choices()
            .into_iter()
            .map(|choice| (choice.axis.to_owned(), choice.value))
            .collect(),
        bodies,
        repetitions,
        seconds: median,
        fastest: seconds[0],
        slowest: seconds[seconds.len() - 1],
        rate: bodies as f64 * bodies as f64 / median,
        limit: limit(machine.place(), variant.precision()),
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

/// Interactions/s that no one-sided kernel of this precision exceeds there, if that is known.
fn limit(place: &Place, precision: Precision) -> Option<f64> {
    match (place, precision) {
        (Place::Gpu(info), Precision::F64) => limits::one_sided_f64(info),
        (Place::Gpu(info), _) => limits::one_sided_f32(info),
        (Place::Cpu | Place::Emulator, _) => None,
    }
}

/// The record of what was measured at a place, now.
pub fn record(place: &Place, outcomes: Vec<Outcome>) -> BenchRecord {
    let mut record = BenchRecord {
        version: VERSION,
        allpairs: env!("CARGO_PKG_VERSION").into(),
        unix_time: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        device: match place {
            Place::Gpu(info) => info.name.clone(),
            other => other.to_string(),
        },
        driver: match place {
            Place::Gpu(info) => {
                let (major, minor) = info.driver_version;
                Some(format!("CUDA {major}.{minor}"))
            }
            Place::Cpu | Place::Emulator => None,
        },
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
    use crate::force::Law;
    use crate::variants;
    use crate::verify::large_case;

    #[test]
    fn a_right_kernel_is_timed() {
        let (case, steps) = large_case(300, Law::Gravity);
        let machine = Machine::new(Place::Cpu);
        let variant = variants::find("cpu-f64").expect("listed");
        let outcome = measure(&machine, variant, &case, &steps, 3).unwrap();
        let record = record(&Place::Cpu, vec![outcome]);
        let [row] = &record.rows[..] else {
            panic!("{record:?}");
        };
        assert!(row.fastest <= row.seconds && row.seconds <= row.slowest && row.fastest > 0.0);
        assert!((row.rate * row.seconds / 9e4 - 1.0).abs() < 1e-12);
        assert!(row.error < 1e-12, "{}", row.error);
        assert_eq!(row.force_digits.iter().sum::<u64>(), 300);
        assert_eq!((row.bodies, row.limit), (300, None));
        assert_eq!(row.choices["precision"], "f64");
    }
}
