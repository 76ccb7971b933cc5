//! The list of compiled entry points: which combinations of schedule, layout, law and numerics
//! exist as kernels in the PTX module. What is offered to users under which name is another list,
//! the host's.
//!
//! To add a combination, add a line to one of the lists; to add an algorithm, a file in
//! [`schedule`](crate::schedule) and lines here.

/// A kernel of the force on every body, as a function that takes its scalars from the named place.
macro_rules! force_function {
    (Argument, $symbol:expr, $word:ty, $force:expr) => {{
        #[kernel(name = $symbol)]
        unsafe fn force(state: *const $word, acceleration: *mut $word, params: Params) {
            // SAFETY: the launch's promise.
            unsafe { $force(state, acceleration, params) }
        }
        // SAFETY: the launch's promise.
        emulated!(|a| unsafe { force(a.pointer(0), a.pointer(1), a.params) })
    }};
    (Constant, $symbol:expr, $word:ty, $force:expr) => {{
        #[kernel(name = $symbol)]
        unsafe fn force(state: *const $word, acceleration: *mut $word) {
            // SAFETY: the launch's promise.
            unsafe { $force(state, acceleration, constant::load()) }
        }
        // SAFETY: the launch's promise.
        emulated!(|a| unsafe {
            constant::emulate(a.params);
            force(a.pointer(0), a.pointer(1));
        })
    }};
}

/// Compiles a kernel and describes it. Its buffers, what it writes, and how the emulator calls it, follow from its
/// pointer parameters, which are named after [`Buffer`]s:
/// `(state: *mut Word, acceleration: *const Word) => function`, which takes them and
/// then the [`Params`](crate::abi::Params), or `(…), params => call` for one that does not.
macro_rules! entry {
    (@pointer const $name:ident) => {
        $crate::entries::Pointer::read($crate::entries::Buffer::$name)
    };
    (@pointer mut $name:ident) => {
        $crate::entries::Pointer::written($crate::entries::Buffer::$name)
    };
    (@since) => { $crate::entries::OLDEST };
    (@since $since:literal) => { $since };
    (
        $symbol:expr $(; since $since:literal)?, $layout:ty, $work:expr,
        ($($name:ident: *$access:tt $type:ty),* $(,)?) => $function:expr
    ) => {
        entry!(
            $symbol $(; since $since)?, $layout, $work,
            ($($name: *$access $type),*), params => $function($($name,)* params)
        )
    };
    (
        $symbol:expr $(; since $since:literal)?, $layout:ty, $work:expr,
        ($($name:ident: *$access:tt $type:ty),* $(,)?), $params:ident => $call:expr
    ) => {{
        #[allow(clippy::too_many_arguments, reason = "the pointers of a kernel")]
        #[kernel(name = $symbol $(, since = $since)?)]
        unsafe fn launched($($name: *$access $type,)* $params: Params) {
            // SAFETY: the launch's promise.
            unsafe { $call }
        }
        $crate::entries::Entry {
            symbol: $symbol,
            work: $work,
            layout: $crate::entries::LayoutDescription::of::<$layout>(),
            scalars: $crate::entries::Scalars::Argument,
            since: entry!(@since $($since)?),
            pointers: &[$(entry!(@pointer $access $name)),*],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe {
                let mut index = 0;
                let mut next = || {
                    index += 1;
                    index - 1
                };
                launched($(a.pointer::<$type>(next()),)* a.params)
            }),
        }
    }};
}

mod advance;
mod block_steps;
mod buffers;
mod forces;
mod grids;
mod hermite;
mod neighbours;
mod pair_sums;
mod points;
mod separated;
mod spatial_sort;
mod symmetric;
mod systems;
mod tensor;
mod test_particles;

pub use advance::{LAYOUTS, QUICK_ENERGIES};
pub use block_steps::{BLOCK_RELATIVITY, BLOCK_STEPS, BLOCK_TAKE_OVER};
pub use buffers::{Buffer, Pointer};
pub use forces::{ATTRACT_REPEL, ATTRACT_REPEL_DIVIDED, ECL, FORCES, RESTS, VENUS};
pub use grids::{GRIDS, REDUCTIONS};
pub use hermite::{HERMITE, JERKS, RELATIVITY};
pub use neighbours::NEIGHBOURS;
pub use pair_sums::{PAIR_SUMS, PAIR_SUMS_ONCE, SUM_FRAMES, SUM_STAGES, SumStage};
pub use points::{AT_POINTS, SUM_AT_POINTS};
pub use separated::{BOXES, FAR, NEAR};
pub use spatial_sort::SPATIAL_SORT;
pub use symmetric::{GATHERS, SYMMETRIC};
pub use systems::{SYSTEM_DRIFTS, SYSTEM_STEPS, SYSTEMS, SYSTEMS_PAIRS_ONCE};
pub use tensor::TENSOR;
pub use test_particles::{TEST_PARTICLES, WITH_TEST_PARTICLES};

use crate::abi::Arguments;
use crate::interaction::{Formula, Law};
use crate::layout::{Field, Layout, LayoutName};
use crate::numerics::{NumericsPolicy, Precision, Real};
use crate::schedule::block_steps::DigitsName;
use crate::schedule::block_steps::neighbours::regular::RegularStage;
use crate::schedule::pair_sums::SumName;
use crate::schedule::points::QuantityName;
use crate::schedule::spatial_sort::SortStage;
use crate::schedule::symmetric::Order;
use crate::schedule::{Reduction, ScheduleName};

/// A compiled kernel.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Symbol in the PTX module.
    pub symbol: &'static str,
    /// Quantity that it computes, and the way.
    pub work: Work,
    /// Layout of its bodies.
    pub layout: LayoutDescription,
    /// Place of its scalars.
    pub scalars: Scalars,
    /// Compute capability that it needs, 80 for 8.0; modules for older GPUs do not have it.
    pub since: u32,
    /// Pointer parameters, in order.
    pub pointers: &'static [Pointer],
    /// Runs one thread of it; only off the device, and only inside an emulated launch.
    pub emulate: Option<unsafe fn(&Arguments<'_>)>,
}

/// Pointers of a kernel that turns the state into accelerations.
const ON_STATE: &[Pointer] = &[
    Pointer::read(Buffer::state),
    Pointer::written(Buffer::acceleration),
];

/// Place where a kernel finds its [`Params`](crate::abi::Params).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalars {
    /// In its last parameter.
    Argument,
    /// In the module's constant memory, where the host puts them before the launch.
    Constant,
}

/// Work of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Accelerations, or partial sums where [`Gather`](Work::Gather) or [`Reduce`](Work::Reduce) is to follow. Of many
    /// [`systems`](crate::schedule::systems) their kicks or steps, or partial sums where
    /// [`SystemStep`](Work::SystemStep) is to follow.
    Force {
        /// The algorithm.
        schedule: ScheduleName,
        /// The law.
        law: Law,
        /// The formula of the law.
        formula: Formula,
        /// The arithmetic.
        numerics: NumericsPolicy,
        /// Pairs in the body of its inner loop.
        unroll: u32,
        /// Targets per thread at a time.
        lane: u32,
        /// The order of its additions.
        order: Order,
        /// Most registers per thread, where the kernel is held to a number.
        max_registers: Option<u32>,
    },
    /// Accelerations of the bodies that a [`hybrid`](crate::schedule::hybrid) leaves over.
    Rest {
        /// The law.
        law: Law,
        /// The arithmetic.
        numerics: NumericsPolicy,
    },
    /// The boxes of [`separated`](crate::schedule::separated).
    Boxes,
    /// The accelerations by its near pairs.
    Near {
        /// The law.
        law: Law,
        /// True if it is for ε = 0.
        unsoftened: bool,
    },
    /// A stage of the [spatial sort](crate::schedule::spatial_sort) of the bodies.
    SpatialSort(SortStage),
    /// Accelerations from the partial sums of [`symmetric`](crate::schedule::symmetric).
    Gather,
    /// Partial sums to accelerations.
    Reduce(Reduction),
    /// The vector of ones.
    Ones,
    /// `v += dt a`.
    Kick,
    /// `x += dt v`.
    Drift,
    /// `x += dt v` of many [`systems`](crate::schedule::systems).
    SystemDrift,
    /// `v += dt a`, `x += dt v` of many [`systems`](crate::schedule::systems) by the partial sums of kernels that take
    /// each pair once.
    SystemStep,
    /// `v *= f`, with f the velocity factor.
    Damp,
    /// Accelerations of [external fields](crate::fields) alone.
    External,
    /// `v += dt (a + b)`, with b of the fields.
    KickInFields,
    /// `a += b` and `b = 0`.
    Unite,
    /// Accelerations and jerks of external fields, added.
    ExternalJerks,
    /// A [term of relativity](crate::fields::Relativity) and its derivative, added to accelerations and jerks that have
    /// all others.
    Relativity,
    /// The beginning of a step of Hermite's scheme.
    Predict,
    /// The end of a step of Hermite's scheme.
    Correct,
    /// The sources of [`test_particles`](crate::schedule::test_particles), side by side.
    Sources,
    /// Steps of these sources, many in one launch.
    Trace {
        /// True if it is for ε = 0.
        unsoftened: bool,
    },
    /// The steps of all bodies, many in one launch.
    Follow {
        /// True if it is for ε = 0.
        unsoftened: bool,
    },
    /// Time steps that the bodies may take next.
    OwnSteps,
    /// The forces of [block time steps](crate::schedule::block_steps).
    BlockForce {
        /// The scheme's order.
        order: u32,
        /// The digits of pairs.
        digits: DigitsName,
        /// True if it is for ε = 0.
        unsoftened: bool,
    },
    /// The sums of such forces on a device that is one of several.
    BlockGather {
        /// The scheme's order.
        order: u32,
        /// The digits of pairs.
        digits: DigitsName,
    },
    /// The ends of block time steps. On several devices the addresses of rows take the place of partial sums.
    BlockCorrect {
        /// The scheme's order.
        order: u32,
        /// The digits of pairs.
        digits: DigitsName,
        /// True if it adds the forces of [external fields](crate::fields).
        external: bool,
    },
    /// A term of relativity, added to the sums over slices of block time steps in f64 before their ends.
    BlockRelativity {
        /// The scheme's order.
        order: u32,
    },
    /// Bodies and targets that the host tells, if it takes block time steps itself.
    BlockTakeOver {
        /// The scheme's order.
        order: u32,
        /// The digits of pairs.
        digits: DigitsName,
    },
    /// The forces of block time steps with a [neighbour scheme](crate::schedule::block_steps::neighbours).
    NeighbourForce {
        /// True if it makes lists alone.
        search: bool,
    },
    /// The ends of such steps.
    NeighbourCorrect {
        /// True if it adds the forces of [external fields](crate::fields).
        external: bool,
    },
    /// Block steps without regular ones, forces and ends in one launch.
    NeighbourStep {
        /// True if it adds the forces of [external fields](crate::fields).
        external: bool,
    },
    /// The first of such steps.
    NeighbourFirst,
    /// A part of the regular forces of such steps.
    NeighbourRegular(RegularStage),
    /// Sums of a quantity at [points](crate::schedule::points).
    AtPoints {
        /// The quantity.
        quantity: QuantityName,
        /// The arithmetic.
        numerics: NumericsPolicy,
        /// Sources in the body of its inner loop.
        unroll: u32,
        /// Points per thread.
        lane: u32,
    },
    /// Sums over all slices of the sources.
    SumAtPoints,
    /// [Sums over pairs](crate::schedule::pair_sums) of a part of the sources.
    PairSum {
        /// The sum.
        name: SumName,
        /// True if each pair is taken once, for both its bodies.
        once: bool,
        /// The arithmetic.
        numerics: NumericsPolicy,
        /// Sources in the body of its inner loop.
        unroll: u32,
        /// Targets per thread.
        lane: u32,
    },
    /// A part of the work around such sums.
    SumStage(SumStage),
    /// Energies, two f64 per block.
    Energy(Law),
    /// As [`Energy`](Work::Energy), for many bodies in single precision.
    QuickEnergy(Law),
}

/// Description of a layout, by which the host packs for it.
#[derive(Clone, Copy, Debug)]
pub struct LayoutDescription {
    /// Name of the layout.
    pub name: LayoutName,
    /// Type that its values are computed in.
    pub precision: Precision,
    /// Type that its state is stored in.
    pub stored: Precision,
    /// Type that accelerations are stored in.
    pub vectors: Precision,
    /// See [`Layout::STATE_SCALARS`].
    pub state_scalars: u32,
    /// See [`Layout::VECTOR_SCALARS`].
    pub vector_scalars: u32,
    /// See [`Layout::READ_ONLY`].
    pub read_only: bool,
    /// See [`Layout::PLANES`].
    pub planes: &'static [u32],
    /// Bytes of shared memory that a source takes in a tile.
    pub tile_bytes: u32,
    /// See [`Layout::scalar`].
    pub scalar: fn(Field, u32, u32) -> usize,
    /// See [`Layout::vector_scalar`].
    pub vector_scalar: fn(u32, u32, u32) -> usize,
}

impl LayoutDescription {
    /// The description of a layout.
    pub const fn of<L: Layout>() -> Self {
        Self {
            name: L::NAME,
            precision: L::Real::PRECISION,
            stored: L::STORED,
            vectors: L::VECTORS,
            state_scalars: L::STATE_SCALARS,
            vector_scalars: L::VECTOR_SCALARS,
            read_only: L::READ_ONLY,
            planes: L::PLANES,
            tile_bytes: L::TILE_WORDS * size_of::<L::Word>() as u32,
            scalar: L::scalar,
            vector_scalar: L::vector_scalar,
        }
    }
}

/// The oldest compute capability that modules are made for.
pub const OLDEST: u32 = 75;

/// Force kernels that differ in law, formula and softening only.
#[derive(Clone, Copy)]
pub struct Row {
    /// Part of their symbols that they share.
    pub name: &'static str,
    /// At least one.
    kernels: &'static [Entry],
}

impl Row {
    #[inline]
    const fn new(name: &'static str, kernels: &'static [Entry]) -> Self {
        assert!(!kernels.is_empty(), "a row has kernels");
        Self { name, kernels }
    }

    /// The row of this name, found by the compiler where the call is a constant.
    ///
    /// # Panics
    /// If there is none.
    #[inline] // which keeps it out of the PTX, as all of these
    pub const fn named(name: &str) -> Self {
        let mut list = 0;
        while list < ROWS.len() {
            let mut row = 0;
            while row < ROWS[list].len() {
                if same(ROWS[list][row].name, name) {
                    return ROWS[list][row];
                }
                row += 1;
            }
            list += 1;
        }
        panic!("no row of kernels has this name")
    }

    /// The kernel for a law, for ε = 0 or ε > 0, whose sums are of accelerations.
    #[inline]
    pub fn force(self, law: Law, unsoftened: bool) -> Option<&'static Entry> {
        self.find(law, unsoftened, false)
    }

    /// The kernel of gravity, for ε = 0 or ε > 0, whose sums are of [forces](Formula::Forces).
    #[inline]
    pub fn by_forces(self, unsoftened: bool) -> Option<&'static Entry> {
        self.find(Law::Gravity, unsoftened, true)
    }

    /// One of the kernels: gravity's with softening, if it is there.
    #[inline]
    pub fn any(self) -> &'static Entry {
        let gravity = self.force(Law::Gravity, false);
        gravity.unwrap_or(&self.kernels[0])
    }

    #[inline]
    fn find(self, law: Law, unsoftened: bool, by_forces: bool) -> Option<&'static Entry> {
        self.kernels.iter().find(|entry| match entry.work {
            Work::Force {
                law: computed,
                formula,
                numerics,
                ..
            } => {
                computed == law
                    && numerics.unsoftened == unsoftened
                    && (formula == Formula::Forces) == by_forces
            }
            _ => false,
        })
    }
}

/// Compares strings where `==` cannot be used yet: in constants.
#[inline]
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

impl PartialEq for Row {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Row {}

impl core::fmt::Debug for Row {
    #[inline]
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Row").field(&self.name).finish()
    }
}

/// All rows of force kernels.
const ROWS: &[&[Row]] = &[
    FORCES,
    ECL,
    VENUS,
    ATTRACT_REPEL,
    ATTRACT_REPEL_DIVIDED,
    GRIDS,
    SYMMETRIC,
    TENSOR,
    FAR,
    SYSTEMS,
    SYSTEMS_PAIRS_ONCE,
    JERKS,
    TEST_PARTICLES,
];

impl Entry {
    /// Buffers of the pointer parameters, in order.
    #[inline]
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = Buffer> {
        self.pointers.iter().map(|pointer| pointer.buffer)
    }

    /// The kernel that does this work with bodies as this one has them.
    #[inline]
    pub fn partner(&self, work: Work) -> Option<&'static Entry> {
        all().find(|entry| {
            entry.work == work
                && entry.layout.name == self.layout.name
                && entry.layout.vectors == self.layout.vectors
                && entry.layout.stored == self.layout.stored
        })
    }
}

/// The kernel of a work that only one does.
///
/// # Panics
/// If none does.
#[inline]
pub fn of(work: Work) -> &'static Entry {
    match all().find(|entry| entry.work == work) {
        Some(entry) => entry,
        None => panic!("no kernel does {work:?}"),
    }
}

/// All entries.
#[inline]
pub fn all() -> impl Iterator<Item = &'static Entry> {
    let rows = ROWS.iter().copied().flatten();
    rows.flat_map(|row| row.kernels)
        .chain(RESTS)
        .chain(REDUCTIONS)
        .chain(GATHERS)
        .chain(NEAR)
        .chain(BOXES)
        .chain(SPATIAL_SORT)
        .chain(SYSTEM_DRIFTS)
        .chain(SYSTEM_STEPS)
        .chain(HERMITE.iter().flatten())
        .chain(RELATIVITY)
        .chain(BLOCK_STEPS.iter().flatten())
        .chain(BLOCK_RELATIVITY)
        .chain(BLOCK_TAKE_OVER)
        .chain(NEIGHBOURS)
        .chain(WITH_TEST_PARTICLES.iter().flatten())
        .chain(AT_POINTS)
        .chain([&SUM_AT_POINTS])
        .chain(PAIR_SUMS)
        .chain(PAIR_SUMS_ONCE)
        .chain(SUM_FRAMES)
        .chain(SUM_STAGES)
        .chain(LAYOUTS.iter().flatten())
        .chain(QUICK_ENERGIES)
}
