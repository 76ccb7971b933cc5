//! A watch over a run: its energy, and its last good state, from time to time.

use std::time::{Duration, Instant};

use crate::backend::ForceError;
use crate::diagnostics::{Conserved, EnergyLook};
use crate::simulation::{GoodState, Simulation};

/// Looks at a run, where their cost allows.
const LOOKS: f64 = 50.0;
/// Longest time between two looks, where their cost allows.
const LONGEST: Duration = Duration::from_secs(60);
/// Time that looks of a kind may take in all, however short the run.
const FREE: Duration = Duration::from_millis(10);
/// Time between two looks, in times of what one costs: less than 1 % of the run.
const COSTS: u32 = 101;

/// Evaluations of the forces between two planned looks at least: a look costs about what one or two do.
const EVALUATIONS: u32 = 200;
/// Interactions of a look that is planned however few evaluations there are: fifty of them take some ten
/// milliseconds.
const FREE_INTERACTIONS: f64 = 2e5;

/// Steps at which the energy is looked at however fast the run goes. They follow from the steps of the run
/// alone, so that the largest drift recorded does not depend on where a run was stopped and resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// Steps of the whole run, where they are known before.
    steps: Option<u64>,
    /// Steps between two looks at least.
    least: u64,
}

impl Planned {
    /// Planned measurements of a run; `steps` is `None` if the number of steps is unknown.
    pub(super) fn of(simulation: &Simulation, steps: Option<u64>) -> Self {
        let evaluations = simulation.evaluations_of_a_step().max(1);
        let of_a_look = simulation.interactions_of_a_step() / f64::from(evaluations);
        // The number of bodies that are left depends on more than the number of steps.
        let changes = simulation
            .encounters()
            .is_some_and(|encounters| encounters.changes_bodies());
        let is_free = of_a_look <= FREE_INTERACTIONS && !changes;
        Self {
            steps,
            least: match is_free {
                true => 1,
                false => u64::from(EVALUATIONS.div_ceil(evaluations)),
            },
        }
    }

    /// The first step with a planned look after so many steps: of those at 1/50, 2/50 … of the run, or at
    /// fewer shares where these would cost too much. Where the number of steps is not known, one that is a
    /// multiple of a thirty-second of the power of two below.
    pub(super) fn next(self, done: u64) -> u64 {
        let Some(steps) = self.steps else {
            let power = 1 << done.saturating_add(1).ilog2();
            let every = self.least.max(power / 32);
            return (done / every).saturating_add(1).saturating_mul(every);
        };
        let looks = (steps / self.least).min(LOOKS as u64);
        if looks == 0 {
            return u64::MAX;
        }
        let [done, looks, steps] = [done, looks, steps].map(u128::from);
        let share = done * looks / steps + 1;
        u64::try_from((share * steps).div_ceil(looks)).unwrap_or(u64::MAX)
    }
}

/// When something that costs time is due again.
#[derive(Clone, Copy, Debug)]
struct Spacing {
    done: Instant,
    share: f64,
    cost: Duration,
    spent: Duration,
}

impl Spacing {
    fn new(share: f64, cost: Duration) -> Self {
        Self {
            done: Instant::now(),
            share,
            cost,
            spent: Duration::ZERO,
        }
    }

    /// It was done, at this share of the run.
    fn has_taken(&mut self, cost: Duration, share: f64) {
        *self = Self {
            done: Instant::now(),
            share,
            cost,
            spent: self.spent + cost,
        };
    }

    /// Returns whether it is due now that this share of the run is done.
    fn is_due(&self, share: f64) -> bool {
        let since = self.done.elapsed();
        (since >= COSTS * self.cost || self.spent + self.cost <= FREE)
            && (since >= LONGEST || (share - self.share).abs() >= 1.0 / LOOKS)
    }
}

/// The watch.
#[derive(Debug)]
pub(super) struct Watch {
    energy: Spacing,
    state: Spacing,
    pub(super) good: GoodState,
}

impl Watch {
    /// Begins, with the present state as the first good one.
    pub(super) fn begin(
        simulation: &mut Simulation,
        share: f64,
        energy_cost: Duration,
    ) -> Result<Self, ForceError> {
        let began = Instant::now();
        let good = simulation.good_state()?;
        Ok(Self {
            energy: Spacing::new(share, energy_cost),
            state: Spacing::new(share, began.elapsed()),
            good,
        })
    }

    /// Returns whether there is something to look at.
    pub(super) fn is_due(&self, share: f64) -> bool {
        self.energy.is_due(share) || self.state.is_due(share)
    }

    /// Looks at what is due; at the energy also if that is `planned`.
    pub(super) fn look(
        &mut self,
        simulation: &mut Simulation,
        origin: &Conserved,
        share: f64,
        planned: bool,
    ) -> Result<Option<EnergyLook>, ForceError> {
        if self.state.is_due(share) {
            self.keep(simulation, share)?;
        }
        if !planned && !self.energy.is_due(share) {
            return Ok(None);
        }
        let began = Instant::now();
        let energy = simulation.energy()?;
        self.energy.has_taken(began.elapsed(), share);
        let clock = simulation.clock();
        Ok(Some(EnergyLook {
            steps: clock.steps,
            time: clock.time,
            drift: energy.drift_by(origin.energy, origin.kinetic_of_whole),
            energy,
        }))
    }

    /// Keeps the present state as a good one, if it is one.
    pub(super) fn keep(
        &mut self,
        simulation: &mut Simulation,
        share: f64,
    ) -> Result<(), ForceError> {
        let began = Instant::now();
        self.good = simulation.good_state()?;
        self.state.has_taken(began.elapsed(), share);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_looks_follow_from_the_steps_alone() {
        let all = |planned: Planned, end: u64| {
            let next = |done: &u64| Some(planned.next(*done)).filter(|step| *step <= end);
            std::iter::successors(next(&0), next).collect::<Vec<_>>()
        };
        let of = |steps, least| Planned { steps, least };
        assert_eq!(all(of(Some(12), 1), 12), (1..=12).collect::<Vec<_>>());
        let fifty = all(of(Some(1003), 1), 1003);
        assert!(fifty.len() == 50 && fifty[49] == 1003, "{fifty:?}");
        assert_eq!(all(of(Some(1000), 200), 1000), [200, 400, 600, 800, 1000]);
        assert_eq!(all(of(Some(1000), 300), 1000), [334, 667, 1000]);
        assert!(all(of(Some(199), 200), 1000).is_empty());
        for planned in [
            of(Some(1003), 1),
            of(Some(1000), 300),
            of(None, 1),
            of(None, 200),
        ] {
            let looks = all(planned, 5000);
            assert!(looks.is_sorted_by(|a, b| a < b), "{looks:?}");
            // From wherever a run goes on, the next one is the same.
            for done in 0..5000 {
                let next = looks.iter().find(|&&step| step > done);
                assert!(
                    next.is_none_or(|&next| planned.next(done) == next),
                    "{planned:?} {done}"
                );
            }
        }
        let spaced = all(of(None, 1), 1 << 20);
        assert!((300..800).contains(&spaced.len()), "{}", spaced.len());
        assert_eq!(of(Some(u64::MAX - 1), 1).next(u64::MAX - 2), u64::MAX - 1);
        assert_eq!(of(None, 1).next(u64::MAX), u64::MAX);
    }

    #[test]
    fn looks_cost_less_than_a_hundredth() {
        let at = |ago: u64, cost: u64| Spacing {
            done: Instant::now() - Duration::from_millis(ago),
            share: 0.5,
            cost: Duration::from_millis(cost),
            spent: FREE,
        };
        assert!(at(1000, 9).is_due(0.52) && !at(1000, 9).is_due(0.51));
        assert!(!at(1000, 10).is_due(0.9), "that would be 1 %");
        assert!(at(61_000, 600).is_due(0.5), "a minute has passed");
        assert!(!at(61_000, 610).is_due(0.9));
        let cheap = Spacing {
            spent: Duration::ZERO,
            ..at(0, 9)
        };
        assert!(cheap.is_due(0.52) && !cheap.is_due(0.51));
    }
}
