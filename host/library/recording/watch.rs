//! A watch over a run: its energy, and its last good state, from time to time.

use std::time::{Duration, Instant};

use crate::backend::{ForceError, SavedState};
use crate::bodies::Bodies;
use crate::diagnostics::{Conserved, EnergyLook, Lost};
use crate::simulation::{Clock, Simulation};

/// Looks at a run, where their cost allows.
const LOOKS: f64 = 50.0;
/// Longest time between two looks, where their cost allows.
const LONGEST: Duration = Duration::from_secs(60);
/// Time that looks of a kind may take in all, however short the run.
const FREE: Duration = Duration::from_millis(10);
/// Time between two looks, in times of what one costs: less than 1 % of the run.
const COSTS: u32 = 101;

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

/// A state to go back to.
#[derive(Clone, Debug)]
pub(super) struct Good {
    pub(super) clock: Clock,
    pub(super) state: SavedState,
    /// Where encounters change the bodies: these, their radii, and what was lost.
    pub(super) bodies: Option<(Bodies, Vec<f64>, Lost)>,
}

impl Good {
    fn of(simulation: &mut Simulation) -> Result<Self, ForceError> {
        let (clock, state) = simulation.save()?;
        let encounters = simulation.encounters();
        let radii = encounters.filter(|encounters| encounters.changes_bodies());
        let bodies = match radii.map(|encounters| encounters.radii.clone()) {
            Some(radii) => Some((simulation.bodies()?.clone(), radii, simulation.lost())),
            None => None,
        };
        Ok(Self {
            clock,
            state,
            bodies,
        })
    }
}

/// The watch.
#[derive(Debug)]
pub(super) struct Watch {
    energy: Spacing,
    state: Spacing,
    pub(super) good: Good,
}

impl Watch {
    /// Begins, with the present state as the first good one.
    pub(super) fn begin(
        simulation: &mut Simulation,
        share: f64,
        energy_cost: Duration,
    ) -> Result<Self, ForceError> {
        let began = Instant::now();
        let good = Good::of(simulation)?;
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

    /// Looks at what is due.
    pub(super) fn look(
        &mut self,
        simulation: &mut Simulation,
        origin: &Conserved,
        share: f64,
    ) -> Result<Option<EnergyLook>, ForceError> {
        if self.state.is_due(share) {
            self.keep(simulation, share)?;
        }
        if !self.energy.is_due(share) {
            return Ok(None);
        }
        let began = Instant::now();
        let energy = simulation.energy()?;
        self.energy.has_taken(began.elapsed(), share);
        let clock = simulation.clock();
        Ok(Some(EnergyLook {
            steps: clock.steps,
            time: clock.time,
            drift: energy.drift_since(origin.energy),
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
        let good = Good::of(simulation)?;
        if let Some(body) = good.state.first_not_finite() {
            return Err(ForceError::NotFinite { body });
        }
        self.good = good;
        self.state.has_taken(began.elapsed(), share);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
