//! Validation of whole runs: orbits that are known, systems in balance that must stay so, and what
//! mechanics conserves.
//!
//! Where [`verify`](crate::verify) judges one force evaluation of every kernel, this judges initial
//! conditions, forces and integrators together. [`EXPERIMENTS`] is the list: each experiment is one
//! run, and each of its [`Check`]s a line with what is measured, its bound, and why it is the
//! bound. Tests and `allpairs validate` both read it.

mod galaxy;
mod list;
mod orbits;
mod spheres;

use std::ops::ControlFlow;

use gpu_kernels::numerics::Precision;

pub use self::list::EXPERIMENTS;
pub use self::orbits::binary_after;
use allpairs::backend::ForceError;
use allpairs::bodies::Bodies;
use allpairs::integrator::{Integrator, Pace, TimeSteps};
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::rules::{self, Needs};
use allpairs::selection::{Place, eligible};
use allpairs::simulation::Simulation;
use allpairs::variants::preferred::{self, ForceAccuracy};
use allpairs::variants::{self, Variant};

/// Time to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Some seconds on a CPU: fewer bodies, fewer rotations.
    Quick,
    /// Minutes on a CPU.
    Full,
}

/// One run, and what is asked of it.
#[derive(Debug)]
pub struct Experiment {
    /// Name, unique in [`EXPERIMENTS`].
    pub name: &'static str,
    /// Description of the system, and of the run.
    pub about: &'static str,
    /// Number of bodies: with [`Effort::Quick`], and with [`Effort::Full`].
    pub bodies: [usize; 2],
    /// Of the forces. The integrator works on the host in f64, or on a GPU in this precision.
    pub precision: Precision,
    /// The integrator.
    pub integrator: Integrator,
    /// Checks of the run.
    pub checks: &'static [Check],
    /// Carries it out and measures: a value for each check.
    run: fn(&Rig<'_>) -> Result<Vec<f64>, ForceError>,
}

/// A line of the report: a number that must not exceed its bound.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Quantity that is measured.
    pub measured: &'static str,
    /// The largest that passes: with [`Effort::Quick`], and with [`Effort::Full`].
    pub bounds: [f64; 2],
    /// Reason for the bound.
    pub reason: &'static str,
}

impl Check {
    /// The largest number that passes.
    pub fn bound(&self, effort: Effort) -> f64 {
        self.bounds[effort as usize]
    }

    /// Returns whether a measured number is within its bound; NaN is not.
    pub fn passes(&self, value: f64, effort: Effort) -> bool {
        value <= self.bound(effort)
    }
}

/// Outcome of an experiment.
#[derive(Debug)]
pub enum Outcome {
    /// The numbers that its checks ask for, in their order.
    Measured {
        /// The kernel that computed the forces.
        kernel: &'static str,
        /// One for each check.
        values: Vec<f64>,
    },
    /// It cannot be carried out there, and why.
    NotRun(String),
}

impl Experiment {
    /// The kernel that an experiment uses at a place.
    pub fn kernel(&self, place: &Place, effort: Effort) -> &'static Variant {
        let jerks = self.integrator.needs_jerks();
        let accuracy = match self.precision {
            Precision::F64 => ForceAccuracy::Double,
            _ => ForceAccuracy::Single,
        };
        let name = match jerks {
            _ if place.is_cpu() => preferred::cpu(accuracy),
            true => preferred::with_jerks(accuracy),
            false => {
                let bodies = self.bodies[effort as usize];
                preferred::gpu(bodies, bodies, accuracy, false)[0]
            }
        };
        variants::find(name).expect("a test finds all of them")
    }

    /// Carries the experiment out.
    ///
    /// # Errors
    /// Errors of the machine.
    pub fn run(&self, machine: &Machine, effort: Effort) -> Result<Outcome, ForceError> {
        let variant = self.kernel(machine.place(), effort);
        if let Err(why) = eligible(variant, machine.place(), ForceLaw::Gravity) {
            return Ok(Outcome::NotRun(why.to_string()));
        }
        let needs = Needs::new(ForceLaw::Gravity);
        let needs = needs.steps(self.integrator, TimeSteps::Shared, None, None);
        if let Err(why) = rules::check(&needs, &machine.place().offer(1, Some(variant), true)) {
            return Ok(Outcome::NotRun(why.to_string()));
        }
        let rig = Rig {
            machine,
            variant,
            effort,
            bodies: self.bodies[effort as usize],
            integrator: self.integrator,
        };
        let values = (self.run)(&rig)?;
        assert_eq!(values.len(), self.checks.len(), "{}", self.name);
        Ok(Outcome::Measured {
            kernel: variant.name,
            values,
        })
    }
}

/// Means of an experiment: machine, variant, effort.
struct Rig<'a> {
    machine: &'a Machine,
    variant: &'static Variant,
    effort: Effort,
    bodies: usize,
    integrator: Integrator,
}

impl Rig<'_> {
    /// One of two numbers.
    fn either<T>(&self, quick: T, full: T) -> T {
        match self.effort {
            Effort::Quick => quick,
            Effort::Full => full,
        }
    }

    fn simulate(
        &self,
        bodies: &Bodies,
        softening: f64,
        pace: impl Into<Pace>,
    ) -> Result<Simulation, ForceError> {
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening,
        };
        let pace = pace.into();
        let backend = match pace {
            Pace::Adaptive { eta, steps, .. } => Machine::new(self.machine.place().clone())
                .block_steps(self.integrator, steps, Some(eta), None)
                .backend(self.variant, bodies, physics)?,
            Pace::Fixed(_) => self.machine.backend(self.variant, bodies, physics)?,
        };
        Simulation::new(backend, bodies.clone(), physics, self.integrator, pace, 0.0)
    }
}

/// Takes steps, all of them.
fn take(simulation: &mut Simulation, steps: u64) -> Result<(), ForceError> {
    let outcome = simulation.run(steps, |_| ControlFlow::Continue(()))?;
    debug_assert!(outcome.is_continue());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order() {
        for (i, experiment) in EXPERIMENTS.iter().enumerate() {
            let Experiment { name, checks, .. } = experiment;
            assert!(!checks.is_empty(), "{name}");
            assert!(EXPERIMENTS[..i].iter().all(|other| other.name != *name));
            for place in [Place::CPU, Place::EMULATOR] {
                for effort in [Effort::Quick, Effort::Full] {
                    let kernel = experiment.kernel(&place, effort);
                    assert_eq!(eligible(kernel, &place, ForceLaw::Gravity), Ok(()));
                    assert_eq!(kernel.precision(), experiment.precision, "{name}");
                }
            }
            for check in *checks {
                assert!(check.bounds.iter().all(|bound| *bound > 0.0), "{name}");
                assert!(!check.passes(f64::NAN, Effort::Quick), "{name}");
            }
        }
    }

    /// A check that cannot fail is none: what is wrong on purpose does not pass.
    #[test]
    fn wrong_physics_fails() {
        let machine = Machine::new(Place::CPU);
        let kepler = &EXPERIMENTS[0];
        let with = |integrator| {
            (kepler.run)(&Rig {
                machine: &machine,
                variant: kepler.kernel(&Place::CPU, Effort::Quick),
                effort: Effort::Quick,
                bodies: 2,
                integrator,
            })
            .unwrap()
        };
        let values = with(Integrator::SemiImplicitEuler);
        for (check, value) in kepler.checks.iter().zip(values) {
            assert!(!check.passes(value, Effort::Quick), "{}", check.measured);
        }
    }
}
