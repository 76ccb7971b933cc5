//! Effort that fits in a budget of time: the one rule that keeps a benchmark
//! from hanging on a kernel that is a thousand times slower than the others.
//!
//! A variant climbs to the number of bodies by factors of four, and one evaluation at each height
//! says what the next would take. Where that would leave no room for verifying and timing it, the climb
//! ends, and the variant is timed there. At the top there are as many repetitions as fit, then fewer
//! steps.

use super::{Cases, Protocol, Timed};
use allpairs::backend::ForceError;
use allpairs::machine::Machine;
use allpairs::physics::ForceLaw;
use allpairs::variants::Variant;

/// Fewest bodies that a climb begins with: fewer say little.
const FEWEST: usize = 256;

/// Evaluations that a measurement makes at least, beside those of the climb: the verified one, a
/// warm step, and a timed one. (Those that give the digits have few bodies.)
const EVALUATIONS: f64 = 3.0;

/// Repetitions, steps and bodies that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Bodies.
    pub bodies: usize,
    /// Timed repetitions.
    pub repetitions: u32,
    /// Steps, or evaluations of the force, of each.
    pub steps: u32,
}

impl Effort {
    /// As much as fits in the protocol's budget.
    ///
    /// # Errors
    /// The reason why the variant does not run.
    ///
    /// # Panics
    /// If the protocol has no repetitions, or steps none.
    pub(super) fn affordable(
        machine: &Machine,
        variant: &Variant,
        cases: &Cases,
        (bodies, law): (usize, ForceLaw),
        protocol: &Protocol,
    ) -> Result<Self, ForceError> {
        let mut climb = heights(bodies).into_iter().peekable();
        let mut before = None;
        loop {
            let n = climb.next().expect("a height follows where one was seen");
            let start = cases.bodies(n);
            let mut backend = machine.backend(variant, &start, cases.physics(law))?;
            backend.accelerate()?; // loads it
            let seconds = backend.time_acceleration()?;
            let next = climb.peek().map(|&next| {
                let pairs = (next as f64 / n as f64).powi(2);
                seconds * growth(pairs, before.map(|before| seconds / before))
            });
            match next {
                Some(next) if next * EVALUATIONS <= protocol.budget => before = Some(seconds),
                _ => return Ok(Self::at(n, seconds, protocol)),
            }
        }
    }

    /// As much as fits where an evaluation takes so many seconds.
    fn at(bodies: usize, seconds: f64, protocol: &Protocol) -> Self {
        let asked = match protocol.timed {
            Timed::Force => 1,
            Timed::Steps(_, steps) => steps,
        };
        assert!(asked > 0 && protocol.repetitions > 0, "the time of nothing");
        let evaluations = (protocol.budget / seconds - EVALUATIONS).max(1.0);
        let steps = f64::from(asked).min(evaluations.floor());
        let repetitions = f64::from(protocol.repetitions).min((evaluations / steps).floor());
        Self {
            bodies,
            repetitions: repetitions as u32,
            steps: steps as u32,
        }
    }
}

/// Factor by which the next height will take longer, where it has so many times the `pairs` and the
/// last step up took so many times as long: as many, unless the device was not full yet; then it is
/// between the two.
fn growth(pairs: f64, last: Option<f64>) -> f64 {
    let last = last.unwrap_or(pairs).clamp(1.0, pairs);
    (pairs * last).sqrt()
}

/// Numbers of bodies on the way to `bodies`, each about a quarter of the next.
fn heights(bodies: usize) -> Vec<usize> {
    let mut heights = vec![bodies];
    while let Some(quarter) = heights.last().map(|n| n / 4)
        && quarter >= FEWEST
    {
        heights.push(quarter);
    }
    heights.reverse();
    heights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::{Start, Statistic};
    use allpairs::integrator::Integrator;
    use allpairs::selection::Place;
    use allpairs::variants;

    fn protocol(budget: f64) -> Protocol {
        Protocol {
            timed: Timed::Steps(Integrator::Leapfrog, 10),
            repetitions: 5,
            statistic: Statistic::Mean,
            budget,
        }
    }

    #[test]
    fn climbs_go_by_fours() {
        assert_eq!(heights(1), [1]);
        assert_eq!(heights(1023), [1023]);
        assert_eq!(heights(30_000), [468, 1_875, 7_500, 30_000]);
    }

    #[test]
    fn a_device_that_is_not_full_takes_less_than_its_share() {
        assert_eq!(growth(16.0, None), 16.0);
        assert_eq!(growth(16.0, Some(16.0)), 16.0);
        assert_eq!(growth(16.0, Some(4.0)), 8.0);
        assert_eq!(growth(16.0, Some(0.5)), 4.0);
        assert_eq!(growth(16.0, Some(40.0)), 16.0);
    }

    #[test]
    fn repetitions_go_before_steps() {
        let done = |budget| {
            let Effort {
                repetitions, steps, ..
            } = Effort::at(100, 1.0, &protocol(budget));
            (repetitions, steps)
        };
        assert_eq!(done(53.0), (5, 10));
        assert_eq!(done(52.0), (4, 10));
        assert_eq!(done(13.0), (1, 10));
        assert_eq!(done(7.0), (1, 4));
        assert_eq!(done(0.1), (1, 1));
    }

    /// However little time there is, something is timed.
    #[test]
    fn a_slow_kernel_is_timed_at_fewer_bodies() {
        let machine = Machine::new(Place::EMULATOR);
        let variant = variants::find("naive-aos").expect("listed");
        let cases = Cases::new(Start::Cube);
        let asked = (1 << 20, ForceLaw::Gravity);
        let effort = Effort::affordable(&machine, variant, &cases, asked, &protocol(1e-3)).unwrap();
        assert_eq!(
            effort,
            Effort {
                bodies: 256,
                repetitions: 1,
                steps: 1
            }
        );
    }
}
