//! Force backends behind one trait, [`Backend`].
//!
//! A backend holds the bodies where it works on them — in GPU memory, in the CPU's caches — and
//! hands them out when asked. Integrators see this trait and nothing behind it.

mod block_steps;
mod error;
mod state;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::Instant;

pub use self::block_steps::{BlockCounts, GUARD, Neighbours};
pub use self::error::ForceError;
pub(crate) use self::state::{COLUMNS, Unit};
pub use self::state::{Column, SavedState, Sphere};
use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::encounters::Paths;
use crate::fields::External;
use crate::timeline::Span;

/// A part of a step. A step as a list of operations is data: a device may record it and replay it, and
/// an integrator is a list.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Operation {
    /// `v *= factor`.
    Damp(f64),
    /// Computes the accelerations of all bodies, and their derivatives in time up to this one. Snaps take
    /// the accelerations that were computed or predicted last.
    Evaluate(HighestDerivative),
    /// `v += dt · a`.
    Kick(f64),
    /// `x += dt · v`.
    Drift(f64),
    /// Begins a step of this length of a Hermite scheme: keeps the state and moves it on by its Taylor
    /// series.
    Predict(f64),
    /// Ends the step: corrects the state by the derivatives at the beginning and at the prediction.
    Correct(f64),
}

/// Up to which derivative in time a force is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
    /// Bodies with these indices: those whose [block time steps](BlockSteps) end now.
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
/// Work may be queued: a method that returns a value has waited for what it needs,
/// [`synchronize`](Self::synchronize) waits for everything. An error of queued work surfaces in
/// whichever call notices it.
pub trait Backend: Send {
    /// Carries out a part of a step.
    ///
    /// Hermite schemes are of fourth order with jerks (Makino & Aarseth 1992, PASJ 44, 141), and of sixth with
    /// snaps too (Nitadori & Makino 2008, New Astron. 13, 498). The derivatives computed last decide the
    /// order of a step.
    ///
    /// # Errors
    /// The device's refusal, or a fault the emulator found; [`ForceError::NoJerks`] or
    /// [`ForceError::NoSnaps`] if they are needed and not computed here.
    fn perform(&mut self, operation: Operation) -> Result<(), ForceError>;

    /// Takes `times` steps of these operations, as if each were [performed](Self::perform) in turn; a
    /// device that can record work replays it.
    ///
    /// # Errors
    /// Errors of the operations.
    fn repeat(&mut self, times: u64, step: &[Operation]) -> Result<(), ForceError> {
        (0..times).try_for_each(|_| step.iter().try_for_each(|&part| self.perform(part)))
    }

    /// Computes the accelerations of the current positions.
    ///
    /// # Errors
    /// Errors of [`perform`](Self::perform).
    fn accelerate(&mut self) -> Result<(), ForceError> {
        self.perform(Operation::Evaluate(HighestDerivative::None))
    }

    /// `v += dt · a`, with the accelerations computed last.
    ///
    /// # Errors
    /// Errors of [`perform`](Self::perform).
    fn kick(&mut self, dt: f64) -> Result<(), ForceError> {
        self.perform(Operation::Kick(dt))
    }

    /// `x += dt · v`.
    ///
    /// # Errors
    /// Errors of [`perform`](Self::perform).
    fn drift(&mut self, dt: f64) -> Result<(), ForceError> {
        self.perform(Operation::Drift(dt))
    }

    /// `v *= factor`.
    ///
    /// # Errors
    /// Errors of [`perform`](Self::perform).
    fn damp(&mut self, factor: f64) -> Result<(), ForceError> {
        self.perform(Operation::Damp(factor))
    }

    /// The first step of a Hermite scheme, at most `longest`, that accuracy `eta` allows every body by the
    /// criterion of Aarseth (1985).
    ///
    /// # Errors
    /// Errors of [`perform`](Self::perform).
    fn first_step(&mut self, _eta: f64, _longest: f64) -> Result<f64, ForceError> {
        Err(ForceError::NoJerks)
    }

    /// The largest step that accuracy `eta` allows every body after a step of `dt`, by the same
    /// criterion. Infinite where nothing is accelerated.
    ///
    /// # Errors
    /// Errors of [`perform`](Self::perform).
    fn next_step(&mut self, _eta: f64, _dt: f64) -> Result<f64, ForceError> {
        Err(ForceError::NoJerks)
    }

    /// Independent systems of equal size that the bodies are, one after another.
    fn systems(&self) -> usize {
        1
    }

    /// Number of bodies that exert forces, where test particles are known to exert none.
    fn number_of_sources(&self) -> Option<usize> {
        None
    }

    /// External fields that accelerate the bodies, if this backend has any.
    fn external(&self) -> Option<&External> {
        None
    }

    /// Lets the orbit of the origin in external fields, if there is one, be known from one time to another.
    ///
    /// # Errors
    /// If it cannot be followed, or the backend has no room for it.
    fn reach(&mut self, _from: f64, _to: f64) -> Result<(), ForceError> {
        Ok(())
    }

    /// Says the time of the current state to external fields that change with it; drifts and predictions
    /// move it on.
    fn set_time(&mut self, _time: f64) {}

    /// Returns whether several ranks compute together: they have one backend at most.
    fn has_ranks(&self) -> bool {
        false
    }

    /// The times of the copies and launches of many systems, if this backend has them.
    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        None
    }

    /// Returns the interface of block time steps, if this backend has it.
    fn block_steps(&mut self) -> Option<&mut dyn BlockSteps> {
        None
    }

    /// All that the next step depends on, beside masses and constants, without loss.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn save(&mut self) -> Result<SavedState, ForceError>;

    /// Takes the place of the backend that `saved` came from, of the same variant and bodies: what
    /// follows has the bits that would have followed there.
    ///
    /// # Errors
    /// [`ForceError::OtherState`] if it is of other bodies or of another backend; else as
    /// [`accelerate`](Self::accelerate).
    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError>;

    /// Copies positions and velocities into `bodies`, which are the bodies it was made from.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError>;

    /// The accelerations computed last, in the units of the bodies.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError>;

    /// Kinetic and potential energy of the current state, computed in f64.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn energy(&mut self) -> Result<Energy, ForceError>;

    /// That of each of the [systems](Self::systems).
    ///
    /// # Errors
    /// As [`energy`](Self::energy).
    fn energies(&mut self) -> Result<Vec<Energy>, ForceError> {
        Ok(vec![self.energy()?])
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    /// The error of queued work.
    fn synchronize(&mut self) -> Result<(), ForceError>;

    /// Seconds that bodies took so far to cross the bus within steps: none where they stay where
    /// the forces are computed.
    fn transfers(&self) -> f64 {
        0.0
    }

    /// Seconds that one [`accelerate`](Self::accelerate) takes, without what was queued before;
    /// on a GPU by its own clock.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn time_acceleration(&mut self) -> Result<f64, ForceError> {
        timed_by_the_host(self)
    }
}

/// Seconds of one acceleration and of waiting for it.
pub(crate) fn timed_by_the_host<B: Backend + ?Sized>(backend: &mut B) -> Result<f64, ForceError> {
    backend.synchronize()?;
    let start = Instant::now();
    backend.accelerate()?;
    backend.synchronize()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Many systems on their way to GPUs, through steps of semi-implicit Euler, and back.
pub trait Pipeline {
    /// Seconds that `steps` steps of `dt` take, from the first copy to the last.
    ///
    /// # Errors
    /// As [`Backend::accelerate`].
    fn seconds(&mut self, dt: f64, steps: u32) -> Result<f64, ForceError>;

    /// When each of the copies and launches of `steps` steps of `dt` was under way, by the GPUs' own
    /// clocks.
    ///
    /// # Errors
    /// As [`Backend::accelerate`].
    fn timeline(&mut self, dt: f64, steps: u32) -> Result<Vec<Span>, ForceError>;
}

/// Hermite's scheme with block time steps: for each body a step of its own.
pub trait BlockSteps {
    /// Advances all bodies by `span`, each with steps that accuracy `eta` allows it, which are the
    /// span halved so many times over; all stand at the same time again at the end. Accelerations and
    /// their derivatives must be those of the current state ([`Operation::Evaluate`]), and are
    /// so afterwards. No body takes a step in which a pair would change its distance by more than
    /// [`GUARD`] of it.
    ///
    /// # Errors
    /// As [`Backend::accelerate`]; or that a body needs shorter steps than there are.
    fn advance(&mut self, span: f64, eta: f64) -> Result<BlockCounts, ForceError> {
        let counts = self.advance_unless(span, eta, &mut |_| ControlFlow::Continue(()))?;
        Ok(counts.expect("nobody leaves it"))
    }

    /// As [`advance`](Self::advance), unless `watch` breaks off, which is told several times a second the
    /// share of the span that is done. It is not asked again then, and there are no counts, even if the span ends
    /// before it can be left: bodies stand somewhere in the span until their state is
    /// [restored](Backend::restore). Where a span cannot be left, `watch` is not asked.
    ///
    /// # Errors
    /// As there.
    fn advance_unless(
        &mut self,
        span: f64,
        eta: f64,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<BlockCounts>, ForceError>;

    /// The steps that bodies are allowed next, in the unit of the run; empty before the first span.
    ///
    /// # Errors
    /// As [`Backend::accelerate`].
    fn own_steps(&mut self) -> Result<Vec<f64>, ForceError>;

    /// Chooses the steps of some bodies as at the beginning of a run, in spans of about this length.
    ///
    /// The other bodies keep the steps that they have. Accelerations and jerks must be of the current state.
    /// Returns whether that can be done here.
    ///
    /// # Errors
    /// Errors of the backend, like [`Backend::accelerate`].
    fn choose_steps(&mut self, _span: f64, _eta: f64, _some: &[usize]) -> Result<bool, ForceError> {
        Ok(false)
    }

    /// Keeps the paths of bodies with these radii from now on. Returns whether that can be done here.
    fn keep_paths(&mut self, _radii: &[f64]) -> bool {
        false
    }

    /// Takes the paths of the last span, if they were kept.
    fn take_paths(&mut self) -> Paths {
        Paths::default()
    }
}

/// Block time steps of a backend.
///
/// # Errors
/// [`ForceError::NoBlockSteps`]
pub(crate) fn block_steps(backend: &mut dyn Backend) -> Result<&mut dyn BlockSteps, ForceError> {
    backend.block_steps().ok_or(ForceError::NoBlockSteps)
}
