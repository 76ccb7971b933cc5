//! Force backends behind one trait, [`Backend`].
//!
//! A backend holds the bodies where it works on them — in GPU memory, in the CPU's caches — and
//! hands them out when asked. Integrators see this trait and nothing behind it.

mod block_steps;
mod command;
mod error;
mod state;

use std::borrow::Cow;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use self::command::reply;

pub use self::block_steps::{BlockCounts, GUARD, Neighbours};
pub use self::command::{Command, Facts, Reply, Watch};
pub use self::error::{ForceError, NeighboursFault};
pub(crate) use self::state::{COLUMNS, Unit};
pub use self::state::{Column, SavedState, Sphere};
use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::encounters::StepOfBody;
use crate::timeline::Span;

/// A part of a step. A step as a list of operations is data: a device may record it and replay it, and
/// an integrator is a list.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Operation {
    /// `v *= factor`.
    Damp(f64),
    /// Computes accelerations, and as many of their derivatives in time, of all bodies.
    Evaluate(HighestDerivative),
    /// `v += dt · a`.
    Kick(f64),
    /// `x += dt · v`.
    Drift(f64),
    /// Begins a step of this length of Hermite's scheme: keeps the state as its beginning and moves
    /// on by the Taylor series. The derivatives computed last decide the order: fourth with jerks
    /// (Makino & Aarseth 1992, PASJ 44, 141), sixth with snaps too (Nitadori & Makino 2008, New
    /// Astron. 13, 498).
    Predict(f64),
    /// Ends the step: from the beginning and the derivatives of the prediction to the corrected
    /// state.
    Correct(f64),
}

/// Up to which derivative in time a force is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HighestDerivative {
    /// Accelerations alone.
    None,
    /// Jerks too.
    Jerk,
    /// Jerks and snaps too, for sixth order.
    Snap,
}

/// Bodies that a force is computed on; all bodies with mass exert it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Targets<'a> {
    /// Every body.
    All,
    /// Bodies with these indices: those whose [block time steps](Command::Span) end now.
    Active(&'a [usize]),
}

impl<'a> Targets<'a> {
    /// Indices of the targets among so many bodies.
    pub fn indices(self, bodies: usize) -> Cow<'a, [usize]> {
        match self {
            Self::All => (0..bodies).collect(),
            Self::Active(indices) => indices.into(),
        }
    }
}

/// Bodies, and the means to accelerate and advance them.
///
/// A backend implements [`facts`](Self::facts) and [`run`](Self::run); every other method sends one
/// [`Command`] and is as good on all backends.
///
/// Work may be queued: a method that returns a value has waited for the work that the value needs,
/// [`synchronize`](Self::synchronize) waits for everything. An error of queued work surfaces in
/// whichever call notices it.
///
/// # Errors
/// All methods return the device's refusal, a fault that the emulator found, or an error that says
/// what the backend does not compute.
pub trait Backend: Send {
    /// Properties that callers may ask for at any time.
    fn facts(&self) -> Facts<'_>;

    /// Carries out a command, which decides the kind of the reply. A `watch` is called several times
    /// a second during a [span](Command::Span), with the share of the span that is done, and may
    /// break off.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn run(
        &mut self,
        command: &Command<'_>,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Reply, ForceError>;

    /// Computes the accelerations of the current positions.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn accelerate(&mut self) -> Result<(), ForceError> {
        self.perform(Operation::Evaluate(HighestDerivative::None))
    }

    /// Computes accelerations and jerks of the current positions and velocities.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn accelerate_with_jerk(&mut self) -> Result<(), ForceError> {
        self.perform(Operation::Evaluate(HighestDerivative::Jerk))
    }

    /// Computes accelerations, jerks and snaps of the current positions and velocities, the snaps by
    /// the accelerations computed or predicted last.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn accelerate_with_snap(&mut self) -> Result<(), ForceError> {
        self.perform(Operation::Evaluate(HighestDerivative::Snap))
    }

    /// `v += dt · a`, with the accelerations computed last.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn kick(&mut self, dt: f64) -> Result<(), ForceError> {
        self.perform(Operation::Kick(dt))
    }

    /// `x += dt · v`.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn drift(&mut self, dt: f64) -> Result<(), ForceError> {
        self.perform(Operation::Drift(dt))
    }

    /// `v *= factor`.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn damp(&mut self, factor: f64) -> Result<(), ForceError> {
        self.perform(Operation::Damp(factor))
    }

    /// Carries out a part of a step.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        self.run(&Command::Perform(operation), None).map(drop)
    }

    /// Takes `times` steps of these operations. A device that can record work replays it.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn repeat(&mut self, times: u64, step: &[Operation]) -> Result<(), ForceError> {
        self.run(&Command::Repeat(times, step.into()), None)
            .map(drop)
    }

    /// The first step, at most `longest`, that accuracy `eta` allows every body by the criterion of
    /// Aarseth (1985).
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn first_step(&mut self, eta: f64, longest: f64) -> Result<f64, ForceError> {
        reply!(self, Command::FirstStep { eta, longest }, Number)
    }

    /// The largest step that accuracy `eta` allows every body after a step of `dt`, by the same
    /// criterion. Infinite where nothing is accelerated.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn next_step(&mut self, eta: f64, dt: f64) -> Result<f64, ForceError> {
        reply!(self, Command::NextStep { eta, dt }, Number)
    }

    /// Advances all bodies by a [span](Command::Span) of block time steps.
    ///
    /// # Errors
    /// See the [trait](Self#errors); or a body needs shorter steps than there are.
    fn advance(&mut self, length: f64, eta: f64) -> Result<BlockCounts, ForceError> {
        let counts = reply!(self, Command::Span { length, eta }, Span)?;
        Ok(counts.expect("nobody breaks off"))
    }

    /// Like [`advance`](Self::advance), but stops early if `watch` breaks off. `watch` is called a
    /// few times a second with the share of the span that is done, and never again after a break.
    /// The method then returns `None`, even if the span ended first, and leaves bodies somewhere in
    /// the span until their state is [restored](Self::restore).
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    fn advance_unless(
        &mut self,
        length: f64,
        eta: f64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<BlockCounts>, ForceError> {
        match self.run(&Command::Span { length, eta }, Some(watch))? {
            Reply::Span(counts) => Ok(counts),
            other => other.is_wrong(),
        }
    }

    /// The steps that bodies are allowed next, in the unit of the run; empty before the first span.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn own_steps(&mut self) -> Result<Vec<f64>, ForceError> {
        reply!(self, Command::OwnSteps, Numbers)
    }

    /// Keeps the steps that bodies take in spans from now on.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn keep_steps(&mut self) -> Result<(), ForceError> {
        self.run(&Command::KeepSteps, None).map(drop)
    }

    /// Takes the steps of the last span, if they were kept. Steps of one body are in their order.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn take_steps(&mut self) -> Result<Vec<StepOfBody>, ForceError> {
        reply!(self, Command::TakeSteps, Steps)
    }

    /// Lets the orbit of the origin in external fields, if there is one, be known from one time to
    /// another.
    ///
    /// # Errors
    /// See the [trait](Self#errors); or the orbit cannot be followed.
    fn reach(&mut self, from: f64, to: f64) -> Result<(), ForceError> {
        self.run(&Command::Reach { from, to }, None).map(drop)
    }

    /// Tells external fields that change with time the time of the current state; drifts and
    /// predictions move it on.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn set_time(&mut self, time: f64) -> Result<(), ForceError> {
        self.run(&Command::SetTime(time), None).map(drop)
    }

    /// Saves all that the next step depends on, without masses and constants and without loss.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn save(&mut self) -> Result<SavedState, ForceError> {
        reply!(self, Command::Save, State).map(|state| *state)
    }

    /// Takes the place of the backend that `saved` came from, which had the same variant and bodies:
    /// all that follows has the bits that would have followed there.
    ///
    /// # Errors
    /// See the [trait](Self#errors); [`ForceError::OtherState`] if the state has other bodies or
    /// another backend.
    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        self.run(&Command::Restore(Cow::Borrowed(saved)), None)
            .map(drop)
    }

    /// Copies positions and velocities into `bodies`, which are the bodies that the backend was made
    /// from.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        let phases = reply!(self, Command::Phases, Phases)?;
        for (i, [position, velocity]) in phases.into_iter().enumerate() {
            [bodies.x[i], bodies.y[i], bodies.z[i]] = position;
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] = velocity;
        }
        Ok(())
    }

    /// The accelerations computed last, in the units of the bodies.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        reply!(self, Command::Accelerations, Vectors)
    }

    /// Kinetic and potential energy of the current state, computed in f64.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn energy(&mut self) -> Result<Energy, ForceError> {
        let energies = self.energies()?;
        Ok(match energies[..] {
            [energy] => energy,
            _ => energies.into_iter().sum(),
        })
    }

    /// The energy of each of the [systems](Facts::systems).
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn energies(&mut self) -> Result<Vec<Energy>, ForceError> {
        reply!(self, Command::Energies, Energies)
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    /// The error of queued work.
    fn synchronize(&mut self) -> Result<(), ForceError> {
        self.run(&Command::Synchronize, None).map(drop)
    }

    /// Seconds that one [`accelerate`](Self::accelerate) takes, without work queued before; on a GPU
    /// by its own clock.
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn time_acceleration(&mut self) -> Result<f64, ForceError> {
        reply!(self, Command::TimeAcceleration, Number)
    }

    /// Seconds that `steps` steps of semi-implicit Euler of `dt` take, from the first copy to a
    /// device to the last copy back; if the backend [times copies](Facts::times_copies).
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn time_steps(&mut self, dt: f64, steps: u32) -> Result<f64, ForceError> {
        reply!(self, Command::TimeSteps { dt, steps }, Number)
    }

    /// The spans of time that the copies and launches of such steps took, by the GPUs' own clocks;
    /// if the backend [times copies](Facts::times_copies).
    ///
    /// # Errors
    /// See the [trait](Self#errors).
    fn timeline(&mut self, dt: f64, steps: u32) -> Result<Vec<Span>, ForceError> {
        reply!(self, Command::Timeline { dt, steps }, Spans)
    }
}

/// Seconds of one acceleration and of waiting for it, by the host's clock.
pub(crate) fn timed_by_the_host<B: Backend + ?Sized>(backend: &mut B) -> Result<f64, ForceError> {
    backend.synchronize()?;
    let start = Instant::now();
    backend.accelerate()?;
    backend.synchronize()?;
    Ok(start.elapsed().as_secs_f64())
}
