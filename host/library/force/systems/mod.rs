//! Independent systems of equal size, on one GPU or several.
//!
//! Between runs the bodies lie in host memory, in the kernels' layout. Steps of semi-implicit Euler —
//! a kick by the accelerations of the current positions, then a drift — are collected as they come, and
//! carried out together: copies in, all steps, copies out, as the [plan](crate::plan::systems) queues
//! them. Where kernels can kick twice in a step, those of leapfrog are collected as well: its second kick
//! and the first of the next step are by the same accelerations. What else integrators ask for is done on the host, with accelerations that are what a step
//! makes of velocities that are zero.

mod part;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use gpu_kernels::layout::Field;

use crate::timeline::{self, Span};
use part::{Part, Record, Vectors};

use super::cpu::Cpu;
use super::device::Streams;
use super::pack::{POSITION, Scalars, VELOCITY};
use crate::backend::{
    Backend, Column, ForceError, HighestDerivative, Operation, Pipeline, SavedState,
};
use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::PlanError;
use crate::plan::systems::{bodies_each, dealt};
use crate::variants::{Masses, Method, SystemsPath, Variant, common_mass};

/// Steps that are queued at a time, at most: a bound on the host's memory.
const MOST_STEPS: u64 = 4096;

/// Kicks by the same accelerations, in local units of time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kicks {
    dt: f64,
    times: u32,
}

/// Kicks and a drift, in local units of time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    kicks: Kicks,
    drift: f64,
}

/// Work asked for since the accelerations of the current positions were.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    Nothing,
    Kick(Kicks),
    KickAndDrift(Step),
}

/// Properties of a system that differ from those of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Own {
    /// Softening length ε > 0 if that of the run is, in the unit of the positions.
    pub softening: f64,
    /// Time step as a multiple of the run's.
    pub pace: f64,
}

/// Many systems on devices of one kind.
pub struct ManySystems<D: Streams> {
    parts: Vec<Part<D>>,
    frame: Frame,
    physics: Physics,
    own: Vec<Own>,
    /// G in local units, times the mass of every body where the kernel leaves masses out.
    force_g: f64,
    /// True if the kernels take steps of several kicks.
    kicks_repeatedly: bool,
    /// As they were last seen; masses are always theirs.
    bodies: Bodies,
    asked: Asked,
    /// Steps to carry out, all the same.
    queued: Option<(Step, u64)>,
    /// True if the accelerations of the current positions were asked for, and are yet to be
    /// computed.
    stale: bool,
    /// Accelerations computed last, in local units.
    accelerations: Vec<[f64; 3]>,
}

impl<D: Streams> ManySystems<D> {
    /// Bodies that are as many systems as the variant says, one after another, dealt out to `devices`,
    /// in a frame that all of them share.
    ///
    /// # Errors
    /// If the bodies do not make so many systems, a plan does not fit its device, or memory is too small.
    ///
    /// # Panics
    /// If there are no devices, or the variant's method is not that of many systems, compiled for the
    /// law.
    pub fn new(
        devices: &[Arc<D>],
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        frame: Frame,
    ) -> Result<Self, ForceError> {
        let masses = Masses::of(bodies);
        Self::part_of_more(devices, variant, (bodies, masses), physics, frame)
    }

    /// As [`new`](Self::new), of systems that are a part of more: by the kernel that all their masses allow.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub(crate) fn part_of_more(
        devices: &[Arc<D>],
        variant: &Variant,
        (bodies, masses): (&Bodies, Masses),
        physics: Physics,
        frame: Frame,
    ) -> Result<Self, ForceError> {
        let own = Own {
            softening: physics.softening,
            pace: 1.0,
        };
        let own = vec![own; variant.systems as usize];
        Self::by_masses(devices, variant, (bodies, masses), physics, frame, own)
    }

    /// As [`new`](Self::new), of systems that differ.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new), and unless there is one of `own` for each system.
    pub fn with_own(
        devices: &[Arc<D>],
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        frame: Frame,
        own: Vec<Own>,
    ) -> Result<Self, ForceError> {
        let masses = Masses::of(bodies);
        Self::by_masses(devices, variant, (bodies, masses), physics, frame, own)
    }

    fn by_masses(
        devices: &[Arc<D>],
        variant: &Variant,
        (bodies, masses): (&Bodies, Masses),
        physics: Physics,
        frame: Frame,
        own: Vec<Own>,
    ) -> Result<Self, ForceError> {
        let Method::Systems(path) = variant.method else {
            panic!("`{}` computes one system", variant.name)
        };
        let n = bodies_each(bodies.len(), variant.systems).map_err(PlanError::from)?;
        assert_eq!(own.len(), variant.systems as usize, "one for each system");
        let smallest = own.iter().map(|own| own.softening);
        let smallest = smallest.fold(physics.softening, f64::min);
        let unsoftened = frame.is_unsoftened(smallest, variant.precision());
        let entry = variant
            .force_for(physics.law, unsoftened, masses)
            .expect("an eligible variant has its kernels");
        let common_mass =
            common_mass(entry, physics.law, masses).map_or(1.0, |mass| frame.mass_to_local(mass));
        let parts = Self::parts(devices, variant.systems, n, |device, systems, range| {
            let path: &SystemsPath = &path;
            Part::new(device, entry, path, systems, (bodies, range), &frame)
        })?;
        Ok(Self {
            force_g: frame.coupling_to_local(&physics) * common_mass,
            kicks_repeatedly: parts.iter().all(|part| part.plan.kicks_repeatedly()),
            parts,
            frame,
            physics,
            own,
            bodies: bodies.clone(),
            asked: Asked::Nothing,
            queued: None,
            stale: false,
            accelerations: vec![[f64::NAN; 3]; bodies.len()],
        })
    }

    fn parts(
        devices: &[Arc<D>],
        systems: u32,
        n: usize,
        part: impl Fn(Arc<D>, u32, std::ops::Range<usize>) -> Result<Part<D>, ForceError>,
    ) -> Result<Vec<Part<D>>, ForceError> {
        let gpus = u32::try_from(devices.len()).expect("few devices");
        let mut first = 0;
        let shares = devices.iter().zip(dealt(systems, gpus));
        let parts = shares
            .filter(|(_, share)| *share > 0)
            .map(|(device, share)| {
                let range = first..first + share as usize * n;
                first = range.end;
                part(Arc::clone(device), share, range)
            });
        parts.collect()
    }

    /// The systems' own constants.
    pub fn own(&self) -> &[Own] {
        &self.own
    }

    fn records(&self, part: &Part<D>, step: Step) -> Vec<Record> {
        let first = part.bodies.start / part.plan.n as usize;
        let own = &self.own[first..first + part.plan.systems as usize];
        own.iter()
            .map(|own| {
                let (kick, drift) = (step.kicks.dt * own.pace, step.drift * own.pace);
                let kicks = f64::from(step.kicks.times);
                [
                    self.frame.softening_squared(own.softening),
                    self.force_g,
                    kick,
                    drift,
                    kicks,
                ]
            })
            .collect()
    }

    /// Carries out some steps: copies, launches, copies.
    fn run(&mut self, step: Step, steps: u32) -> Result<(), ForceError> {
        let carried_out = self.on_all(step, |_, part, records| {
            part.queue(records, steps, &mut None)?;
            part.join()
        });
        carried_out.map(drop)
    }

    fn run_marked(&mut self, step: Step, steps: u32) -> Result<Vec<Span>, ForceError> {
        let spans = self.on_all(step, |gpu, part, records| {
            let (origin, mut items) = (part.mark()?, Some(vec![]));
            part.queue(records, steps, &mut items)?;
            part.join()?;
            part.spans(gpu, &origin, items.unwrap_or_default())
        })?;
        Ok(spans.concat())
    }

    /// Does some work with the number and the records of each part, in a thread for each: what takes the host
    /// time for one GPU, thousands of launches among it, holds up no other.
    fn on_all<T: Send>(
        &mut self,
        step: Step,
        work: impl Fn(usize, &mut Part<D>, Vec<Record>) -> Result<T, ForceError> + Sync,
    ) -> Result<Vec<T>, ForceError> {
        let records = self.parts.iter().map(|part| self.records(part, step));
        let records: Vec<_> = records.collect();
        let mut parts = self.parts.iter_mut().zip(records).enumerate();
        if parts.len() == 1 {
            return parts
                .map(|(gpu, (part, records))| work(gpu, part, records))
                .collect();
        }
        thread::scope(|scope| {
            let work = &work;
            let begin = |(gpu, (part, records))| scope.spawn(move || work(gpu, part, records));
            let begun: Vec<_> = parts.by_ref().map(begin).collect();
            let ends = begun.into_iter().map(|of_part| of_part.join());
            ends.map(|end| end.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    }

    /// To be carried out with the same steps before it, or after them.
    fn queue(&mut self, step: Step) -> Result<(), ForceError> {
        match &mut self.queued {
            Some((same, steps)) if *same == step => *steps += 1,
            _ => {
                self.run_queued()?;
                self.queued = Some((step, 1));
            }
        }
        Ok(())
    }

    fn run_queued(&mut self) -> Result<(), ForceError> {
        let Some((step, mut left)) = self.queued.take() else {
            return Ok(());
        };
        while left > 0 {
            let steps = left.min(MOST_STEPS);
            self.run(step, steps as u32)?;
            left -= steps;
        }
        Ok(())
    }

    /// Does what was asked for, but for accelerations that have not been used yet.
    fn settle(&mut self) -> Result<(), ForceError> {
        self.run_queued()?;
        match std::mem::replace(&mut self.asked, Asked::Nothing) {
            Asked::Nothing => Ok(()),
            Asked::Kick(kicks) => {
                self.compute_accelerations()?;
                self.kick_on_host(kicks)
            }
            Asked::KickAndDrift(Step { kicks, drift }) => {
                self.compute_accelerations()?;
                self.kick_on_host(kicks)?;
                self.drift_on_host(drift)
            }
        }
    }

    /// Computes accelerations as the velocities that a kick by one unit of time gives to bodies at
    /// rest.
    fn compute_accelerations(&mut self) -> Result<(), ForceError> {
        self.run_queued()?;
        if !self.stale {
            return Ok(());
        }
        self.stale = false;
        let before: Result<Vec<Scalars>, _> = self.parts.iter().map(Part::load).collect();
        self.each(VELOCITY, |state, at, _, _| state.set(at, 0.0))?;
        let paces: Vec<f64> = self.own.iter().map(|own| own.pace).collect();
        self.own.iter_mut().for_each(|own| own.pace = 1.0);
        let done = self.run(
            Step {
                kicks: Kicks { dt: 1.0, times: 1 },
                drift: 0.0,
            },
            1,
        );
        self.own
            .iter_mut()
            .zip(paces)
            .for_each(|(own, pace)| own.pace = pace);
        done?;
        let mut accelerations = vec![];
        for part in &self.parts {
            accelerations.extend(part.vectors()?.1);
        }
        self.accelerations = accelerations;
        for (part, before) in self.parts.iter_mut().zip(before?) {
            part.store(&before)?;
        }
        Ok(())
    }

    /// Changes three fields of each body `i` by `change(state, place, i, axis)`.
    fn each(
        &mut self,
        fields: [Field; 3],
        change: impl Fn(&mut Scalars, usize, usize, usize),
    ) -> Result<(), ForceError> {
        for part in &mut self.parts {
            let bodies = part.bodies.clone();
            part.change(|state, place| {
                for (k, i) in bodies.enumerate() {
                    for (axis, field) in fields.into_iter().enumerate() {
                        change(state, place(field, k), i, axis);
                    }
                }
            })?;
        }
        Ok(())
    }

    fn pace_of(&self) -> impl Fn(usize) -> f64 + use<D> {
        let n = self.bodies.len() / self.own.len();
        let paces: Vec<f64> = self.own.iter().map(|own| own.pace).collect();
        move |i| paces[i / n]
    }

    fn kick_on_host(&mut self, kicks: Kicks) -> Result<(), ForceError> {
        let accelerations = std::mem::take(&mut self.accelerations);
        let mut times = 0..kicks.times;
        let done = times.try_for_each(|_| self.add_on_host(VELOCITY, kicks.dt, &accelerations));
        self.accelerations = accelerations;
        done
    }

    fn drift_on_host(&mut self, dt: f64) -> Result<(), ForceError> {
        let (_, velocities) = self.vectors()?;
        self.add_on_host(POSITION, dt, &velocities)
    }

    /// Adds dt times these to the fields, with the bits of the kernels: whether a step is the device's
    /// or the host's depends on who looked before it.
    fn add_on_host(
        &mut self,
        fields: [Field; 3],
        dt: f64,
        rates: &[[f64; 3]],
    ) -> Result<(), ForceError> {
        let pace = self.pace_of();
        self.each(fields, |state, at, i, axis| {
            state.add_scaled(at, dt * pace(i), rates[i][axis]);
        })
    }

    fn vectors(&self) -> Result<Vectors, ForceError> {
        let mut all = (vec![], vec![]);
        for part in &self.parts {
            let (positions, velocities) = part.vectors()?;
            all.0.extend(positions);
            all.1.extend(velocities);
        }
        Ok(all)
    }

    fn steps_of(&self, dt: f64) -> Step {
        let dt = self.frame.time_to_local(dt);
        Step {
            kicks: Kicks { dt, times: 1 },
            drift: dt,
        }
    }

    fn ask_for_accelerations(&mut self) -> Result<(), ForceError> {
        match self.asked {
            Asked::Nothing => {}
            Asked::Kick(_) => self.settle()?,
            Asked::KickAndDrift(step) => {
                self.asked = Asked::Nothing;
                self.queue(step)?;
            }
        }
        self.stale = true;
        Ok(())
    }

    fn ask_for_kick(&mut self, dt: f64) -> Result<(), ForceError> {
        let dt = self.frame.time_to_local(dt);
        let kicks = Kicks { dt, times: 1 };
        match &mut self.asked {
            Asked::Nothing if self.stale => {
                self.asked = Asked::Kick(kicks);
                return Ok(());
            }
            Asked::Kick(before) if before.dt == dt && self.kicks_repeatedly => {
                before.times += 1;
                return Ok(());
            }
            _ => {}
        }
        self.settle()?;
        self.kick_on_host(kicks)
    }

    fn ask_for_drift(&mut self, dt: f64) -> Result<(), ForceError> {
        let drift = self.frame.time_to_local(dt);
        if let Asked::Kick(kicks) = self.asked {
            self.asked = Asked::KickAndDrift(Step { kicks, drift });
            return Ok(());
        }
        self.settle()?;
        self.compute_accelerations()?; // of the positions before, if anybody asked
        self.drift_on_host(drift)
    }
}

impl<D: Streams> Backend for ManySystems<D> {
    fn systems(&self) -> usize {
        self.own.len()
    }

    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        match operation {
            Operation::Evaluate(HighestDerivative::None) => self.ask_for_accelerations(),
            Operation::Kick(dt) => self.ask_for_kick(dt),
            Operation::Drift(dt) => self.ask_for_drift(dt),
            Operation::Damp(factor) => {
                self.settle()?;
                self.each(VELOCITY, |state, at, _, _| {
                    state.set(at, factor * state.get(at))
                })
            }
            _ => Err(ForceError::NoJerks),
        }
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        Some(self)
    }

    fn save(&mut self) -> Result<SavedState, ForceError> {
        self.settle()?;
        self.compute_accelerations()?;
        let (positions, velocities) = self.vectors()?;
        Ok(SavedState::of(self.frame, |column| match column {
            Column::Positions => positions.as_flattened().to_vec(),
            Column::Velocities => velocities.as_flattened().to_vec(),
            Column::Accelerations => self.accelerations.as_flattened().to_vec(),
            _ => vec![],
        }))
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        saved.fits(self.bodies.len(), &self.frame, false)?;
        self.settle()?;
        for (fields, vectors) in [
            (POSITION, saved.positions()),
            (VELOCITY, saved.velocities()),
        ] {
            self.each(fields, |state, at, i, axis| state.set(at, vectors[i][axis]))?;
        }
        // Those of these positions: computed from them when needed, with the same bits.
        self.stale = true;
        Ok(())
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        self.settle()?;
        let (positions, velocities) = self.vectors()?;
        for (i, (position, velocity)) in positions.into_iter().zip(velocities).enumerate() {
            [bodies.x[i], bodies.y[i], bodies.z[i]] = self.frame.position_from_local(position);
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] = self.frame.velocity_from_local(velocity);
        }
        Ok(())
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        self.settle()?;
        self.compute_accelerations()?;
        let local = self.accelerations.iter();
        Ok(local
            .map(|&a| self.frame.acceleration_from_local(a))
            .collect())
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        Ok(self.energies()?.into_iter().sum())
    }

    /// By the CPU, system by system.
    fn energies(&mut self) -> Result<Vec<Energy>, ForceError> {
        let mut bodies = self.bodies.clone();
        self.download(&mut bodies)?;
        let n = bodies.len() / self.own.len();
        let energy = |(system, own): (usize, &Own)| {
            let physics = Physics {
                softening: own.softening,
                ..self.physics
            };
            let part = bodies.part(system * n..(system + 1) * n);
            Cpu::<f64>::new(&part, physics).energy()
        };
        self.own.iter().enumerate().map(energy).collect()
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        self.run_queued()
    }

    fn time_acceleration(&mut self) -> Result<f64, ForceError> {
        self.settle()?;
        // A step of no time moves nothing.
        let spans = self.run_marked(
            Step {
                kicks: Kicks { dt: 0.0, times: 1 },
                drift: 0.0,
            },
            1,
        )?;
        Ok(timeline::kernel_seconds(&spans))
    }
}

impl<D: Streams> Pipeline for ManySystems<D> {
    fn seconds(&mut self, dt: f64, steps: u32) -> Result<f64, ForceError> {
        self.settle()?;
        self.stale = true;
        let step = self.steps_of(dt);
        let start = Instant::now();
        self.run(step, steps)?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn timeline(&mut self, dt: f64, steps: u32) -> Result<Vec<Span>, ForceError> {
        self.settle()?;
        self.stale = true;
        self.run_marked(self.steps_of(dt), steps)
    }
}
