//! The ladder of a study, run as the study ran it, compared with one and all threads of the CPU.

use super::{Cases, Outcome, Protocol, Timed, measure};
use crate::bench_record::{BenchFailure, BenchRow};
use crate::studies::Study;
use crate::studies::catalogue;
use crate::sweep::sweep;
use allpairs::backend::ForceError;
use allpairs::machine::Machine;
use allpairs::physics::ForceLaw;
use allpairs::selection::{Ineligible, Place, eligible};
use allpairs::tuning::Wanted;
use allpairs::variants::preferred::ForceAccuracy;
use allpairs::variants::{Method, Variant};

/// Variants that every ladder is compared with: one thread of the CPU, and all of them.
pub const SERIAL: &str = "cpu-serial-f32";
/// All threads of the CPU.
pub const PARALLEL: &str = "cpu-one-sided-f32";

/// A study on the machines where its rungs run.
pub struct StudyRun {
    study: &'static Study,
    machines: Machines,
    cases: Cases,
    protocol: Protocol,
}

impl StudyRun {
    /// As the study measured it, within a budget of seconds for each rung and number of bodies.
    pub fn new(study: &'static Study, place: Place, budget: f64) -> Self {
        let measured = &study.measured;
        Self {
            study,
            machines: Machines {
                device: Machine::new(place),
                host: Machine::new(Place::CPU),
            },
            cases: Cases::new(measured.start).of_systems(measured.systems),
            protocol: Protocol {
                timed: Timed::Steps(study.integrator, measured.steps),
                repetitions: measured.repetitions,
                statistic: measured.statistic,
                budget,
            },
        }
    }

    /// With another number of repetitions than the study's.
    pub fn repeat(&mut self, repetitions: u32) {
        self.protocol.repetitions = repetitions;
    }

    /// The rungs that can run here, then what they are compared with; and why others cannot.
    pub fn runners(&self) -> (Vec<&'static Variant>, Vec<Ineligible>) {
        let law = self.study.law;
        let (mut runners, mut refused) = (vec![], vec![]);
        let rungs = self.study.rungs.iter().map(|rung| &rung.variant);
        let yardsticks = [SERIAL, PARALLEL].map(|name| catalogue().find(name).expect("listed"));
        for variant in rungs.chain(yardsticks.into_iter().filter(|v| v.computes(law))) {
            match eligible(variant, self.machines.of(variant).place(), law) {
                Ok(()) => runners.push(variant),
                Err(why) => refused.push(why),
            }
        }
        (runners, refused)
    }

    /// Runs these at a number of bodies. Rungs that are the same under two names run once.
    ///
    /// # Errors
    /// If a device fails.
    pub fn measure(
        &mut self,
        runners: &[&'static Variant],
        bodies: usize,
        mut watch: impl FnMut(&Variant),
    ) -> Result<Vec<Outcome>, ForceError> {
        let mut outcomes: Vec<Outcome> = vec![];
        for (k, variant) in runners.iter().enumerate() {
            watch(variant);
            let twin = runners[..k].iter().position(|v| v.method == variant.method);
            outcomes.push(match twin {
                Some(twin) => renamed(&outcomes[twin], variant),
                None => self.one(variant, bodies, self.study.law)?,
            });
        }
        Ok(outcomes)
    }

    fn one(
        &mut self,
        variant: &Variant,
        bodies: usize,
        law: ForceLaw,
    ) -> Result<Outcome, ForceError> {
        let machine = self.machines.of(variant);
        let mut variant = *variant;
        // As the study did, where times mean something; elsewhere the shape is the list's.
        if variant.is_fitted() && machine.place().gpus().len() == 1 {
            let (budget, listed) = (self.protocol.budget, variant.fitted(bodies));
            let wanted = Wanted {
                law,
                accuracy: ForceAccuracy::Single,
                bodies,
            };
            let found = sweep(machine, &wanted, budget, &listed, Some(&variant))?;
            if let Some((fastest, _)) = found.winner {
                variant.method = fastest.method;
            }
        }
        measure(
            machine,
            &variant,
            &mut self.cases,
            (bodies, law),
            &self.protocol,
        )
    }
}

/// A device, and the CPU of the same machine.
struct Machines {
    device: Machine,
    host: Machine,
}

impl Machines {
    /// Machine of a variant: CPU code runs on the CPU, whatever the device.
    fn of(&self, variant: &Variant) -> &Machine {
        match variant.method {
            Method::Reference | Method::Cpu(_) => &self.host,
            _ => &self.device,
        }
    }
}

/// The outcome of the same method under another name.
fn renamed(outcome: &Outcome, variant: &Variant) -> Outcome {
    match outcome {
        Outcome::Timed(row) => Outcome::Timed(BenchRow {
            kernel: variant.name.to_owned(),
            study: variant.study().map(str::to_owned),
            predecessor: variant.predecessor.map(str::to_owned),
            ..row.clone()
        }),
        Outcome::Wrong(failure) => Outcome::Wrong(BenchFailure {
            kernel: variant.name.to_owned(),
            ..failure.clone()
        }),
    }
}

/// Speedups of a row: ratios of rates, so that rows of different numbers of bodies compare, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speedups {
    /// Over the predecessor on the ladder.
    pub predecessor: Option<f64>,
    /// Over the first rung.
    pub first: Option<f64>,
    /// Over one thread of the CPU.
    pub serial: Option<f64>,
    /// Over all threads of the CPU.
    pub parallel: Option<f64>,
}

impl Speedups {
    /// Of a row among the rows of a study that were asked for the same number of bodies.
    pub fn of(row: &BenchRow, study: &Study, rows: &[BenchRow]) -> Self {
        let over = |name: Option<&str>| {
            let is_it = |other: &&BenchRow| {
                Some(other.kernel.as_str()) == name && other.asked() == row.asked()
            };
            rows.iter().find(is_it).map(|other| row.rate / other.rate)
        };
        Self {
            predecessor: over(row.predecessor.as_deref()),
            first: over(study.rungs.first().map(|rung| rung.variant.name)),
            serial: over(Some(SERIAL)),
            parallel: over(Some(PARALLEL)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::{self, STUDIES};

    /// On a CPU every study has something to run or says why not; the same method runs once.
    #[test]
    fn studies_run_on_what_there_is() {
        for study in STUDIES {
            let run = StudyRun::new(study, Place::CPU, 1.0);
            let (runners, refused) = run.runners();
            let yardsticks = runners.iter().filter(|v| v.study().is_none()).count();
            assert_eq!(
                runners.len() - yardsticks + refused.len(),
                study.rungs.len()
            );
        }
        let venus = studies::find("venus").expect("listed");
        let mut run = StudyRun::new(venus, Place::CPU, 0.05);
        let (runners, _) = run.runners();
        let outcomes = run.measure(&runners, 300, |_| {}).unwrap();
        let rows: Vec<BenchRow> = outcomes
            .into_iter()
            .map(|outcome| match outcome {
                Outcome::Timed(row) => row,
                Outcome::Wrong(failure) => panic!("{failure:?}"),
            })
            .collect();
        let names: Vec<&str> = rows.iter().map(|row| row.kernel.as_str()).collect();
        assert_eq!(names, ["venus/serial", "venus/parallel", SERIAL, PARALLEL]);
        assert_eq!(rows[0].seconds, rows[2].seconds);
        assert_eq!(rows[0].choices["threads"], "1");
        let speedups = Speedups::of(&rows[1], venus, &rows);
        assert_eq!(speedups.parallel, Some(1.0));
        assert_eq!(speedups.predecessor, speedups.serial);
        assert_eq!(speedups.first, speedups.serial);
    }
}
