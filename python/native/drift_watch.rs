//! A watch over the energy and the test particles of a simulation that Python holds.

use std::time::{Duration, Instant};

use allpairs::backend::ForceError;
use allpairs::diagnostics::{Conserved, EnergyLook};
use allpairs::simulation::{Outrun, Simulation};
use allpairs::test_particles::{Account, OrbitConstant, Origin};

/// Time between two looks at least, in times of what a look costs.
pub(crate) const COSTS: u32 = 100;

/// Steps from one look at the energy to the next at least, where a call ends and looks have taken [`FREE`].
pub(crate) const STEPS: u64 = 20;
/// The same of calls that take one step.
pub(crate) const SINGLE_STEPS: u64 = 100;
/// Time that looks at the energy may take in all, however few steps are taken.
const FREE: Duration = Duration::from_millis(10);

/// A time and the drift then.
pub(crate) type DriftAt = (f64, f64);

/// A watch over the energy and the test particles between the looks that Python asks for.
pub(crate) struct DriftWatch {
    /// None if nothing is watched here: the energy of fields of Python's is asked for by Python alone.
    looks: Option<Looks>,
    pub(crate) particles: Option<Account>,
    /// The largest drifts that Python does not know yet: of the energy, and of test particles, with what they keep.
    pub(crate) energy: Option<DriftAt>,
    pub(crate) of_particles: Option<(f64, f64, OrbitConstant)>,
    /// Bodies that outran a step that was chosen, if Python does not know it yet.
    pub(crate) outrun: Option<Outrun>,
}

/// When the energy was looked at, after how many steps, how long that took, and how long all looks did.
struct Looks {
    at: Instant,
    steps: u64,
    cost: Duration,
    spent: Duration,
}

/// Returns whether a drift is larger than a known one. Nothing is larger than a drift that is not a number.
fn is_larger(drift: f64, known: f64) -> bool {
    !known.is_nan() && (drift.is_nan() || drift > known)
}

impl DriftWatch {
    /// A watch over a simulation at its beginning, of which a look takes so long.
    pub(crate) fn begin(
        simulation: &mut Simulation,
        particles: Vec<Origin>,
        cost: Option<Duration>,
    ) -> Result<Self, ForceError> {
        let mut watch = Self {
            looks: cost.map(|cost| Looks {
                at: Instant::now(),
                steps: simulation.clock().steps,
                cost,
                spent: Duration::ZERO,
            }),
            particles: Account::resume(particles),
            energy: None,
            of_particles: None,
            outrun: None,
        };
        watch.follow(simulation, false)?;
        Ok(watch)
    }

    /// Begins the account of test particles anew, if bodies were changed, or are others than before.
    pub(crate) fn follow(
        &mut self,
        simulation: &mut Simulation,
        is_changed: bool,
    ) -> Result<(), ForceError> {
        let known = self.particles.as_ref().map(|all| all.origins().len());
        if is_changed || known.is_none_or(|known| known != simulation.number_of_bodies()) {
            let (physics, external) = (*simulation.physics(), simulation.external());
            let bodies = simulation.bodies()?;
            self.particles = Account::begin(bodies, &physics, &external);
        }
        Ok(())
    }

    /// Returns whether a look is due, by the time since the last, or at the end of a call after a number of steps.
    pub(crate) fn is_due(&self, steps: u64, ends_after: Option<u64>) -> bool {
        self.looks.as_ref().is_some_and(|looks| {
            let least = ends_after.is_some_and(|least| steps - looks.steps.min(steps) >= least);
            let is_free = ends_after == Some(STEPS) && looks.spent + looks.cost <= FREE;
            steps != looks.steps && (least || is_free || looks.at.elapsed() >= COSTS * looks.cost)
        })
    }

    /// Looks at the energy and the test particles.
    pub(crate) fn look(
        &mut self,
        simulation: &mut Simulation,
        origin: &Conserved,
    ) -> Result<(), ForceError> {
        let began = Instant::now();
        let energy = simulation.energy()?;
        let clock = simulation.clock();
        let look = EnergyLook {
            steps: clock.steps,
            time: clock.time,
            drift: energy.drift_by(origin.energy, origin.kinetic_of_whole),
            energy,
        };
        if let Some(drift) = look.judged()
            && self.energy.is_none_or(|(_, known)| is_larger(drift, known))
        {
            self.energy = Some((clock.time, drift));
        }
        self.look_at_particles(simulation)?;
        if let Some(outrun) = simulation.outrun(None)? {
            self.outrun = Some(outrun);
        }
        if let Some(looks) = &mut self.looks {
            let cost = began.elapsed();
            *looks = Looks {
                at: Instant::now(),
                steps: clock.steps,
                cost,
                spent: looks.spent + cost,
            };
        }
        Ok(())
    }

    /// Looks at the test particles, if there is a quantity to judge them by.
    pub(crate) fn look_at_particles(
        &mut self,
        simulation: &mut Simulation,
    ) -> Result<(), ForceError> {
        self.follow(simulation, false)?;
        let (physics, external) = (*simulation.physics(), simulation.external());
        if let Some(account) = &self.particles
            && let Some(look) = account.judge(simulation.bodies()?, &physics, &external)
            && let Some(constant) = look.has_drifted(0.0)
            && (self.of_particles).is_none_or(|(_, known, _)| is_larger(look.drift, known))
        {
            self.of_particles = Some((simulation.time(), look.drift, constant));
        }
        Ok(())
    }
}
