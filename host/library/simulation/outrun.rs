//! A look at whether bodies have outrun the step that was chosen for them at the start.

use super::{Clock, Simulation};
use crate::backend::ForceError;
use crate::suggest::{self, Chosen};

/// Share of the step below which another is much shorter. Bodies that keep their distances change less.
const MUCH_SHORTER: f64 = 0.15;

/// A fixed step that was chosen for the bodies at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChosenStep {
    /// Steps of a leapfrog that it is worth.
    leapfrogs: f64,
    /// True once it was told that the bodies have outrun it.
    is_outrun: bool,
}

/// Bodies that outran the step that was chosen for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Outrun {
    /// Steps done.
    pub steps: u64,
    /// Time reached.
    pub time: f64,
    /// Step that is taken.
    pub dt: f64,
    /// Step that would be chosen now, and why.
    pub suited: Chosen,
}

impl Simulation {
    /// Steps of a leapfrog that a step is worth, if it was chosen for the bodies at the start and stays.
    pub fn leapfrogs_of_chosen_step(&self) -> Option<f64> {
        self.chosen_step.map(|chosen| chosen.leapfrogs)
    }

    /// Goes on with a step that was chosen at the start, and is worth this number of leapfrogs, or that was not chosen.
    #[must_use]
    pub fn having_chosen_step(self, leapfrogs: Option<f64>) -> Self {
        let chosen_step = leapfrogs.map(|leapfrogs| ChosenStep {
            leapfrogs,
            is_outrun: false,
        });
        Self {
            chosen_step,
            ..self
        }
    }

    /// Looks at whether bodies have outrun a step that was chosen: a run from now to this `end` would
    /// [choose](suggest::choose_step) a much shorter one. This is told once.
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn outrun(&mut self, end: Option<f64>) -> Result<Option<Outrun>, ForceError> {
        let Some(chosen) = self.chosen_step.filter(|chosen| !chosen.is_outrun) else {
            return Ok(None);
        };
        let Clock {
            steps, time, dt, ..
        } = self.clock;
        let span = end.map_or(f64::INFINITY, |end| (end - time).abs());
        self.backend.download(&mut self.bodies)?;
        let accelerations = self.backend.accelerations()?;
        let suited = suggest::choose_step(
            &self.bodies,
            &self.physics,
            &accelerations,
            self.backend.external(),
            (chosen.leapfrogs, span),
        );
        let is_outrun = suited.value > 0.0 && suited.value < MUCH_SHORTER * dt.abs();
        self.chosen_step = Some(ChosenStep {
            is_outrun,
            ..chosen
        });
        Ok(is_outrun.then_some(Outrun {
            steps,
            time,
            dt,
            suited,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initial_conditions::uniform_sphere;
    use crate::integrator::Integrator;
    use crate::selection::DeviceChoice;
    use crate::simulation::SimulationBuilder;

    /// It falls together, to a twentieth of its size.
    fn falling() -> SimulationBuilder {
        Simulation::builder(uniform_sphere(200, 0, 0.6).expect("in range"))
            .softening(1e-4)
            .integrator(Integrator::Leapfrog)
            .device(DeviceChoice::Cpu)
    }

    /// It is told once, and again by a simulation that goes on from a saved one.
    #[test]
    fn a_chosen_step_that_bodies_outrun_is_told_of_once() {
        let mut simulation = falling().build().expect("sound");
        let mut look = |time: f64| {
            simulation.run_until(time).expect("steps are taken");
            simulation.outrun(None).expect("computed")
        };
        assert_eq!(look(0.0), None);
        let told = (1..100).find_map(|k| look(0.01 * f64::from(k)));
        let told = told.expect("bodies come near each other");
        assert!(told.suited.value < 0.15 * told.dt, "{told:?}");
        assert_eq!(look(told.time), None);

        let (clock, state) = simulation.save().expect("saved");
        let leapfrogs = simulation.leapfrogs_of_chosen_step();
        assert_eq!(leapfrogs, Some(1.0));
        let again = falling().dt(clock.dt).resume(clock, &state).expect("sound");
        let mut again = again.having_chosen_step(leapfrogs);
        assert_eq!(again.outrun(None).expect("computed"), Some(told));
    }

    #[test]
    fn a_given_step_is_not_looked_at() {
        let mut simulation = falling().dt(0.01).build().expect("sound");
        simulation.run_until(0.5).expect("steps are taken");
        assert_eq!(simulation.outrun(None).expect("computed"), None);
        assert_eq!(simulation.leapfrogs_of_chosen_step(), None);
    }
}
