//! The bodies, the clock, and Allpairs' own rows.

use allpairs::machine::Machine;
use allpairs::physics::ForceLaw;
use allpairs::selection::Place;
use allpairs::variants::{Method, VARIANTS};
use allpairs_lab::verify::{Case, large_case};
use std::fmt;
use std::time::{Duration, Instant};

/// Evaluations that are timed at least.
const EVALUATIONS: usize = 5;

/// A uniform cube with its reference forces: G = 1, unequal masses, ε = 0.05.
pub(crate) fn system(bodies: usize) -> Case {
    large_case(bodies, ForceLaw::Gravity).0
}

/// Measurements of a code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The code, and what was chosen in it.
    pub(crate) code: String,
    /// The type of its pairs.
    pub(crate) precision: String,
    /// Interactions/s, the median.
    pub(crate) rate: f64,
    /// The range of the times, relative to the median.
    pub(crate) spread: f64,
    /// Root mean square of the forces' relative errors.
    pub(crate) error: f64,
}

impl Row {
    /// Names of the columns.
    pub(crate) const HEADER: &str =
        "| code | pairs in | interactions/s | spread | rms error |\n|---|---|---|---|---|";

    /// The row of seconds an evaluation took, and of the accelerations it gave.
    pub(crate) fn of(
        case: &Case,
        code: &str,
        precision: &str,
        mut seconds: Vec<f64>,
        accelerations: &[[f64; 3]],
    ) -> Self {
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let pairs = (case.bodies.len() as f64).powi(2);
        Self {
            code: code.to_owned(),
            precision: precision.to_owned(),
            rate: pairs / median,
            spread: (seconds[seconds.len() - 1] - seconds[0]) / median,
            error: case.accuracy(accelerations).rms_relative,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            precision,
            rate,
            spread,
            error,
        } = self;
        let (billions, percent) = (rate / 1e9, 100.0 * spread);
        write!(
            f,
            "| {code} | {precision} | {billions:.2}e9 | {percent:.0} % | {error:.1e} |"
        )
    }
}

/// Seconds of each of several calls, for at least so long; the first is not counted.
fn times(long: Duration, mut evaluate: impl FnMut()) -> Vec<f64> {
    evaluate();
    let began = Instant::now();
    let mut seconds = vec![];
    while seconds.len() < EVALUATIONS || began.elapsed() < long {
        let start = Instant::now();
        evaluate();
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds
}

/// All CPU kernels of Allpairs, shown one by one, each timed for at least so long; a wrong force
/// ends the comparison.
pub(crate) fn rows(case: &Case, long: Duration, mut show: impl FnMut(Row)) {
    let machine = Machine::new(Place::CPU);
    for variant in VARIANTS {
        let Method::Cpu(path) = variant.method else {
            continue;
        };
        let mut backend = machine
            .backend(variant, &case.bodies, case.physics)
            .expect("the CPU refuses nothing");
        let seconds = times(long, || {
            backend.accelerate().expect("the CPU refuses nothing")
        });
        let computed = backend.accelerations().expect("the CPU refuses nothing");
        case.check(variant, &computed).expect("right forces");
        let code = format!("Allpairs `{}`", variant.name);
        show(Row::of(
            case,
            &code,
            path.precision.name(),
            seconds,
            &computed,
        ));
    }
}
