//! Force backends behind one trait, [`Backend`].
//!
//! A backend holds the bodies where it works on them — in GPU memory, in the CPU's caches — and
//! hands them out when asked. Integrators see this trait and nothing behind it.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::{ControlFlow, Range};
use std::str::FromStr;
use std::time::Instant;

use cuda_driver::{BlasError, DriverError, NcclError, NoGpu};
use cuda_std::emu::Fault;

use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::encounters::StepOfBody;
use crate::fields::{External, FieldFault};
use crate::frame::Frame;
use crate::plan::PlanError;
use crate::timeline::Span;
use crate::variants::OutOfRange;

/// A part of a step. A step as a list of operations is data: a device may record it and replay it, and
/// an integrator is a list.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Begins a step of this length of Hermite's scheme ([`Hermite::predict`]).
    Predict(f64),
    /// Ends it ([`Hermite::correct`]).
    Correct(f64),
}

/// Up to which derivative in time a force is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Computes the accelerations of the current positions.
    ///
    /// # Errors
    /// The device's refusal, or a fault the emulator found.
    fn accelerate(&mut self) -> Result<(), ForceError>;

    /// `v += dt · a`, with the accelerations computed last.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn kick(&mut self, dt: f64) -> Result<(), ForceError>;

    /// `x += dt · v`.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn drift(&mut self, dt: f64) -> Result<(), ForceError>;

    /// Takes `times` steps of these operations, as if each were [performed](Self::perform) in turn; a
    /// device that can record work replays it.
    ///
    /// # Errors
    /// Errors of the operations.
    fn repeat(&mut self, times: u64, step: &[Operation]) -> Result<(), ForceError> {
        (0..times).try_for_each(|_| step.iter().try_for_each(|&part| self.perform(part)))
    }

    /// Carries out a part of a step.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate); or that jerks are not computed here.
    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        match operation {
            Operation::Damp(factor) => self.damp(factor),
            Operation::Kick(dt) => self.kick(dt),
            Operation::Drift(dt) => self.drift(dt),
            Operation::Evaluate(HighestDerivative::None) => self.accelerate(),
            Operation::Evaluate(HighestDerivative::Jerk) => self.jerks()?.accelerate_with_jerk(),
            Operation::Evaluate(HighestDerivative::Snap) => self.jerks()?.accelerate_with_snap(),
            Operation::Predict(dt) => self.jerks()?.predict(dt),
            Operation::Correct(dt) => self.jerks()?.correct(dt),
        }
    }

    /// Hermite's scheme, which needs jerks.
    ///
    /// # Errors
    /// [`ForceError::NoJerks`] if jerks are not computed here.
    fn jerks(&mut self) -> Result<&mut dyn Hermite, ForceError> {
        self.hermite().ok_or(ForceError::NoJerks)
    }

    /// `v *= factor`.
    ///
    /// # Errors
    /// As [`accelerate`](Self::accelerate).
    fn damp(&mut self, factor: f64) -> Result<(), ForceError>;

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

    /// The times of the copies and launches of many systems, if this backend has them.
    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        None
    }

    /// Returns the interface of Hermite's scheme, if this backend has it.
    fn hermite(&mut self) -> Option<&mut dyn Hermite> {
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

/// Operations of Hermite's schemes, for a backend with derivatives of the accelerations in time: fourth
/// order with jerks (Makino & Aarseth 1992, PASJ 44, 141), sixth with snaps too (Nitadori & Makino
/// 2008, New Astron. 13, 498). The derivatives computed last decide the order of a step.
pub trait Hermite {
    /// Computes accelerations and jerks of the current positions and velocities.
    ///
    /// # Errors
    /// As [`Backend::accelerate`].
    fn accelerate_with_jerk(&mut self) -> Result<(), ForceError>;

    /// Computes accelerations, jerks and snaps of the current positions and velocities, the snaps by
    /// the accelerations computed or predicted last.
    ///
    /// # Errors
    /// As [`Backend::accelerate`]; or that snaps are not computed here.
    fn accelerate_with_snap(&mut self) -> Result<(), ForceError> {
        Err(ForceError::NoSnaps)
    }

    /// Keeps the state as the beginning of a step and moves on by its Taylor series.
    ///
    /// # Errors
    /// As [`Backend::accelerate`].
    fn predict(&mut self, dt: f64) -> Result<(), ForceError>;

    /// Ends the step: from the beginning and the derivatives of the prediction to the corrected state.
    ///
    /// # Errors
    /// As [`Backend::accelerate`].
    fn correct(&mut self, dt: f64) -> Result<(), ForceError>;

    /// The first step, at most `longest`, that accuracy `eta` allows every body by the criterion
    /// of Aarseth (1985).
    ///
    /// # Errors
    /// As [`Backend::accelerate`].
    fn first_step(&mut self, eta: f64, longest: f64) -> Result<f64, ForceError>;

    /// The largest step that accuracy `eta` allows every body after a step of `dt`, by the same
    /// criterion. Infinite where nothing is accelerated.
    ///
    /// # Errors
    /// As [`Backend::accelerate`].
    fn next_step(&mut self, eta: f64, dt: f64) -> Result<f64, ForceError>;
}

/// The most by which a pair may change its distance in a [block time step](BlockSteps), as a part of
/// the distance. It takes a few steps in a thousand, and most of the error that rare fast encounters
/// make, which the criterion of a body's own derivatives notices when they are over.
pub const GUARD: f64 = 0.4;

/// Hermite's scheme with block time steps: for each body a step of its own.
pub trait BlockSteps {
    /// Advances all bodies by `span`, each with steps that accuracy `eta` allows it, which are the
    /// span halved so many times over; all stand at the same time again at the end. Accelerations and
    /// their derivatives must be those of the current state ([`Hermite::accelerate_with_jerk`]), and are
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

    /// Keeps the steps that bodies take from now on. Returns whether that can be done here.
    fn keep_steps(&mut self) -> bool {
        false
    }

    /// Takes the steps of the last span, if they were kept: those of each body in their order.
    fn take_steps(&mut self) -> Vec<StepOfBody> {
        vec![]
    }
}

/// Block time steps of a backend.
///
/// # Errors
/// [`ForceError::NoBlockSteps`]
pub(crate) fn block_steps(backend: &mut dyn Backend) -> Result<&mut dyn BlockSteps, ForceError> {
    backend.block_steps().ok_or(ForceError::NoBlockSteps)
}

/// Number of neighbours of a body in a neighbour scheme (Ahmad & Cohen 1973, J. Comput. Phys. 12, 389):
/// their force, the *irregular* one, is computed in each [block time step](BlockSteps) of the body, and
/// that of all others, the *regular* one, in longer steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The root of the number of bodies, but at most a 256th of it and at least [`LEAST`](Self::LEAST).
    Auto,
    /// So many.
    Number(NonZeroU32),
}

impl Neighbours {
    /// Least number of [`Auto`](Self::Auto).
    pub const LEAST: usize = 64;

    /// The number among so many bodies: at most all others.
    pub fn number(self, bodies: usize) -> usize {
        match self {
            Self::Auto => bodies.isqrt().min(bodies / 256).max(Self::LEAST),
            Self::Number(number) => (number.get() as usize).min(bodies.saturating_sub(1).max(1)),
        }
    }
}

/// As [`FromStr`] reads it.
impl fmt::Display for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl FromStr for Neighbours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            number => match number.parse() {
                Ok(number) => Ok(Self::Number(number)),
                Err(_) => Err(format!("must be `auto` or a number from 1 on, got {text}")),
            },
        }
    }
}

/// Reason why there is no neighbour scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NeighboursFault {
    /// All bodies take one step.
    #[error(
        "`neighbours` needs `block_steps`: where all bodies take one step, each force is that of all"
    )]
    SharedSteps,
    /// Another integrator than that of fourth order.
    #[error("`neighbours` needs the `integrator` hermite4, not {0}")]
    Integrator(&'static str),
    /// A kernel or device without it.
    #[error(
        "`neighbours` is computed by a GPU, or by the CPU in double precision: leave out `kernel` and \
         `accuracy`"
    )]
    Device,
    /// Pairs in f64 on a GPU.
    #[error(
        "`neighbours` on a GPU computes pairs in f32, which does not do for bodies that are not softened, for \
         the `accuracy` double, nor for an `eta` below 0.01: change these, or choose the `device` cpu"
    )]
    Double,
    /// Several systems.
    #[error("`neighbours` is computed for one system, not for {0}: leave it out")]
    Systems(u32),
    /// The term of a dominant mass.
    #[error("`neighbours` does not go with the `field` 1pn: leave one of them out")]
    Relativity,
}

/// Message about a body whose step would be shorter than the shortest, or is no number.
fn too_short(body: usize, allowed: f64, shortest: f64) -> String {
    match allowed.is_nan() {
        true => format!(
            "the force on body {body} has grown beyond all numbers, for another body came too near for the \
             digits of pairs: soften the force, or choose the `accuracy` double"
        ),
        false => format!(
            "body {body} needs steps of {allowed:.3e}, and the shortest is {shortest:.3e}: soften the force, \
             or choose a shorter longest step"
        ),
    }
}

/// Counts of block time steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockCounts {
    /// Blocks: times at which some bodies ended their steps together.
    pub blocks: u64,
    /// Steps of single bodies; a force was computed for each.
    pub steps: u64,
    /// The shortest of these steps, in the unit of the run; infinite where there were none.
    pub shortest: f64,
    /// Regular steps of a [neighbour scheme](Neighbours), for each of which a force of all bodies was
    /// computed; none without one.
    pub regular: u64,
    /// Neighbours whose force was computed, summed over all steps.
    pub neighbours: u64,
}

impl BlockCounts {
    /// No steps.
    pub const NONE: Self = Self {
        blocks: 0,
        steps: 0,
        shortest: f64::INFINITY,
        regular: 0,
        neighbours: 0,
    };

    /// Interactions computed, where so many bodies exert forces.
    pub fn interactions(&self, sources: f64) -> f64 {
        match self.regular {
            0 => sources * self.steps as f64,
            regular => sources * regular as f64 + self.neighbours as f64,
        }
    }
}

impl std::ops::AddAssign for BlockCounts {
    fn add_assign(&mut self, more: Self) {
        self.blocks += more.blocks;
        self.steps += more.steps;
        self.shortest = self.shortest.min(more.shortest);
        self.regular += more.regular;
        self.neighbours += more.neighbours;
    }
}

/// The state of a backend, as [`Backend::save`] gives it: vectors in the units of `frame`, where
/// f32 numbers are f64 numbers without loss.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedState {
    /// Origin and units of the vectors.
    pub frame: Frame,
    /// One for each body.
    pub positions: Vec<[f64; 3]>,
    /// One for each body.
    pub velocities: Vec<[f64; 3]>,
    /// Accelerations computed last; one per body.
    pub accelerations: Vec<[f64; 3]>,
    /// Jerks computed last, one per body; empty where there are none.
    pub jerks: Vec<[f64; 3]>,
    /// Snaps computed last and crackles of the last steps, one of each per body; empty where there are
    /// none.
    pub higher: Vec<[[f64; 3]; 2]>,
    /// The steps that [block time steps](BlockSteps) allow each body next, in the units of the run;
    /// empty where there are none.
    pub own_steps: Vec<f64>,
    /// One for each body in a [neighbour scheme](Neighbours); empty where there is none.
    pub spheres: Vec<Sphere>,
}

/// Neighbour sphere of a body, in the units of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sphere {
    /// Radius; infinite where all bodies are neighbours.
    pub radius: f64,
    /// The step that the regular force, that of the bodies outside, allows next.
    pub regular_step: f64,
}

impl SavedState {
    /// The state of some of the bodies.
    pub(crate) fn part(&self, bodies: Range<usize>) -> Self {
        /// Empty if there is nothing.
        fn part<T: Copy>(all: &[T], bodies: &Range<usize>) -> Vec<T> {
            all.get(bodies.clone()).unwrap_or_default().to_vec()
        }
        Self {
            frame: self.frame,
            positions: part(&self.positions, &bodies),
            velocities: part(&self.velocities, &bodies),
            accelerations: part(&self.accelerations, &bodies),
            jerks: part(&self.jerks, &bodies),
            higher: part(&self.higher, &bodies),
            own_steps: part(&self.own_steps, &bodies),
            spheres: part(&self.spheres, &bodies),
        }
    }

    /// Adds the state of more bodies.
    ///
    /// # Panics
    /// If it is in another frame.
    pub(crate) fn append(&mut self, more: Self) {
        assert_eq!(more.frame, self.frame, "in the same units");
        self.positions.extend(more.positions);
        self.velocities.extend(more.velocities);
        self.accelerations.extend(more.accelerations);
        self.jerks.extend(more.jerks);
        self.higher.extend(more.higher);
        self.own_steps.extend(more.own_steps);
        self.spheres.extend(more.spheres);
    }

    /// Checks that it can be the state of so many bodies in a frame.
    ///
    /// # Errors
    /// [`ForceError::OtherState`] says what differs.
    pub(crate) fn fits(&self, bodies: usize, frame: &Frame) -> Result<(), ForceError> {
        match self.spheres.is_empty() {
            true => self.fits_with_neighbours(bodies, frame),
            false => Err(ForceError::OtherState(
                "it is of a run with a neighbour scheme",
            )),
        }
    }

    /// As [`fits`](Self::fits), where it may be of a neighbour scheme.
    ///
    /// # Errors
    /// As [`fits`](Self::fits).
    pub(crate) fn fits_with_neighbours(
        &self,
        bodies: usize,
        frame: &Frame,
    ) -> Result<(), ForceError> {
        let of_all = |length: usize| length == bodies;
        let if_any = |length: usize| length == 0 || length == bodies;
        let complete = of_all(self.positions.len())
            && of_all(self.velocities.len())
            && of_all(self.accelerations.len())
            && if_any(self.jerks.len())
            && if_any(self.higher.len())
            && if_any(self.own_steps.len())
            && if_any(self.spheres.len());
        match complete {
            false => Err(ForceError::OtherState("it is of another number of bodies")),
            true if self.frame != *frame => Err(ForceError::OtherState(
                "its vectors are in other units; it is of another kernel, or was changed",
            )),
            true => Ok(()),
        }
    }
}

/// Reason why a force could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForceError {
    /// The GPU or its driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// There is no GPU to use.
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    /// There is no library for linear algebra, or it refused.
    #[error(transparent)]
    Blas(#[from] BlasError),
    /// There is no library for exchanges between GPUs, or it refused.
    #[error(transparent)]
    Nccl(#[from] NcclError),
    /// The emulator found a kernel at fault.
    #[error("the kernel is at fault: {0}")]
    Kernel(#[from] Box<Fault>),
    /// An integrator asks for more than accelerations.
    #[error(
        "jerks, which Hermite's scheme needs, are not computed here: choose another integrator"
    )]
    NoJerks,
    /// A step of sixth order that all bodies share, on a device.
    #[error(
        "steps of sixth order for all bodies at once are not computed on a device: add \
         `block_steps`, or choose the `device` cpu"
    )]
    NoSnaps,
    /// The variant's error would have no bound.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// A pace asks for a step for each body.
    #[error(
        "block time steps are not computed here: a GPU takes them with the `law` gravity and \
         the `kernel` hermite-f64; else choose the `device` cpu, or one step for all"
    )]
    NoBlockSteps,
    /// Several devices for work of one.
    #[error("{0} on one device alone: name one, such as the `device` cuda:0")]
    OneDevice(&'static str),
    /// Several GPUs that may not compute the same bits, for work that needs it.
    #[error("{work} on GPUs of one kind, and {}, {}: name others", gpus[0], gpus[1])]
    OtherGpus {
        /// Work that was to be done.
        work: &'static str,
        /// Two of the GPUs.
        gpus: [String; 2],
    },
    /// GPUs of ranks that may not compute the same bits, for work that needs it.
    #[error(
        "{work} on GPUs of one kind with drivers of one version, and rank {} has {}, rank {} {}: start the ranks on \
         machines with the same GPUs and drivers, or choose the `device` cpu",
        gpus[0].0, gpus[0].1, gpus[1].0, gpus[1].1
    )]
    OtherGpusOfRanks {
        /// Work that was to be done.
        work: &'static str,
        /// Two of the ranks, and what they have.
        gpus: [(usize, String); 2],
    },
    /// Several GPUs that do not read each other's memory, for work that needs it.
    #[error(
        "{work} on GPUs that read each other's memory directly, and GPU {from} cannot read that of GPU {to}: \
         name one, such as the `device` cuda:{from}, or GPUs between which `allpairs devices` finds a \
         direct way"
    )]
    NoDirectWay {
        /// Work that was to be done.
        work: &'static str,
        /// Number of the GPU that cannot read.
        from: u32,
        /// Number of the GPU whose memory it is.
        to: u32,
    },
    /// More devices than block time steps are shared by.
    #[error(
        "block time steps on a device are shared by at most 255 ranks, and there are {0}: start fewer, or choose \
         the `device` cpu"
    )]
    TooManyDevices(usize),
    /// A neighbour scheme where there is none.
    #[error(transparent)]
    Neighbours(#[from] NeighboursFault),
    /// Several ranks for work of one process.
    #[error("{0} by one process alone: start it without the MPI launcher")]
    OneProcess(&'static str),
    /// A place of other ranks.
    #[error("devices of {chosen} ranks were chosen, and there are {there}")]
    OtherRanks {
        /// Ranks of the place.
        chosen: usize,
        /// Ranks that compute.
        there: usize,
    },
    /// Another rank's device refused.
    #[error("rank {rank}: {why}")]
    OfRank {
        /// The rank.
        rank: usize,
        /// Error of that rank.
        why: String,
    },
    /// Sixth order with forces whose rounding its criterion of steps takes for change.
    #[error(
        "block time steps of sixth order need more digits than the `accuracy` fast asks for: their step \
         follows from differences over dt⁵, in which forces rounded to f32 are noise"
    )]
    RoundedSixthOrder,
    /// A close pair, most often.
    #[error("{}", too_short(*body, *allowed, *shortest))]
    StepTooShort {
        /// Index of the body.
        body: usize,
        /// Step that its accuracy allows.
        allowed: f64,
        /// Shortest step.
        shortest: f64,
    },
    /// A number overflowed, most often where bodies came too close.
    #[error(
        "the acceleration, position or velocity of body {body} is not a finite number any more: \
         soften the force, or take shorter steps"
    )]
    NotFinite {
        /// Index of the body.
        body: usize,
    },
    /// A saved state of another integrator.
    #[error(
        "the saved state has no {missing}, which {integrator} needs: it is of a run with another integrator"
    )]
    NotSaved {
        /// Derivatives that are missing.
        missing: &'static str,
        /// Name of the integrator.
        integrator: &'static str,
    },
    /// A saved state of another backend or of other bodies.
    #[error("the saved state is not of this backend: {0}")]
    OtherState(&'static str),
    /// The launch does not fit the device.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// External fields that cannot be computed here, or not at this time.
    #[error(transparent)]
    Field(#[from] FieldFault),
}

impl ForceError {
    /// Returns whether a device or its driver refused: others of the same kind may not have.
    pub(crate) const fn is_of_a_device(&self) -> bool {
        matches!(
            self,
            Self::Driver(_) | Self::NoGpu(_) | Self::Blas(_) | Self::Nccl(_) | Self::Kernel(_)
        )
    }
}
