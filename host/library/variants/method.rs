//! Methods of variants, as data.

use gpu_kernels::entries::Row;
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::Reduction;
use gpu_kernels::schedule::block_steps::DigitsName;

/// Method of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The f64 reference that judges the others.
    Reference,
    /// The CPU path.
    Cpu(CpuPath),
    /// Kernels, on a GPU or the emulator.
    Kernel {
        /// Row of its force kernels.
        row: Row,
        /// Build of its PTX.
        build: Build,
        /// Threads of a block, for kernels that use more than one.
        block: u32,
        /// Processor that advances the positions.
        positions: Positions,
        /// Division of sources among blocks, if there is one.
        split: Option<Split>,
        /// Block and split that take the place of those, up to a number of bodies each.
        fitted: &'static [Fitted],
        /// True if other kernels of the row are taken where the masses allow it.
        by_masses: bool,
    },
    /// Kernels that compute many systems, on one GPU or several, or the emulator.
    Systems(SystemsPath),
}

/// Method for many independent systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemsPath {
    /// Row of its force kernels.
    pub row: Row,
    /// Build of its PTX.
    pub build: Build,
    /// Threads of a block.
    pub block: u32,
    /// Sources of a tile in shared memory, if they wait there.
    pub tile: Option<u32>,
    /// In which streams work is queued.
    pub queues: Queues,
    /// Transfers of bodies to the GPU and back.
    pub transfers: Transfers,
    /// GPUs that are used.
    pub gpus: Gpus,
    /// True if other kernels of the row are taken where the masses allow it.
    pub by_masses: bool,
}

/// In which streams the work of many systems is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Queues {
    /// One stream, and launches that compute all systems.
    Together,
    /// System `s` runs on stream `s % k`, where `k` is the smaller of this number and the number of
    /// systems.
    UpTo(u32),
    /// System `s` runs on stream `s % k` with this number `k`. Needs at least `k` systems.
    Exactly(u32),
}

/// Transfers of the bodies of many systems to the GPU and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Transfers {
    /// All at once, the host waiting, from ordinary memory.
    Apart,
    /// From and to page-locked memory while the GPU computes, queued system by system: copy in,
    /// steps, copy out.
    DepthFirst,
    /// Copies and launches queued stage by stage: all copies in, all steps, all copies out.
    BreadthFirst,
}

/// On which GPUs many systems are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Gpus {
    /// The one that was chosen.
    One,
    /// All there are, with systems dealt out to them, the remainder to the first ones.
    All,
}

/// Choices of the CPU path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CpuPath {
    /// Type of the pairs.
    #[cfg_attr(feature = "serde", serde(with = "PrecisionForm"))]
    pub precision: Precision,
    /// Source of 1/√.
    pub root: RootName,
    /// Number of times a pair is computed: once, or for each of its bodies.
    pub pairs: PairsName,
    /// Threads that compute.
    pub threads: Threads,
}

/// [`Precision`] for serde.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(remote = "Precision")]
enum PrecisionForm {
    F16,
    F32,
    DoubleSingle,
    F64,
}

/// Number of times a pair's distance is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PairsName {
    /// Once for each of its bodies: no body's sum waits for another's.
    Twice,
    /// Once for both.
    Once,
    /// Once from as many bodies on as make it worth while.
    ByNumber,
}

/// Threads that compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Threads {
    /// All threads of the rayon pool that asks.
    All,
    /// The thread that asks, as serial codes do. There is no thread to share pairs with: it
    /// computes each [twice](PairsName::Twice).
    One,
}

/// Source of 1/√.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RootName {
    /// A correctly rounded root and division: the same bits on every processor that fuses
    /// multiply–adds.
    Exact,
    /// The processor's estimate, refined to rounding level.
    Refined,
    /// The processor's estimate as it is.
    Estimated,
}

/// The shape of blocks that share out a target's sources among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Threads along the sources; those along the targets are the block's others.
    pub len: u32,
    /// Sources per thread.
    pub luf: u32,
    /// Means to add the partial sums.
    pub reducer: Reducer,
}

/// Means to add partial sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reducer {
    /// A kernel.
    Kernel(Reduction),
    /// A library for linear algebra, which is asked for a matrix times a vector of ones.
    Library,
}

/// Processor that advances the positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// A kernel: the bodies stay on the device.
    Device,
    /// The host, as some first ports do: the bodies cross the bus and back with every step.
    Host(Bus),
}

/// Transfers of bodies that the host works on to the device and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// Copied from and to ordinary memory, by way of the driver's own buffers.
    Pageable,
    /// Copied from and to page-locked memory, which the device does by itself.
    PageLocked,
    /// Not at all: they lie in page-locked memory of the host, where kernels read and write them.
    Mapped,
}

/// The launch geometry that was found to be the fastest, up to a number of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Most bodies.
    pub bodies: u32,
    /// Threads of a block.
    pub block: u32,
    /// Threads along the sources, of two-dimensional blocks.
    pub len: u32,
    /// Sources per thread, of two-dimensional blocks.
    pub luf: u32,
}

/// Build of the PTX: precise, or with denormals flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Build {
    /// As IEEE 754 asks.
    Precise,
    /// Denormal numbers flushed to zero.
    Ftz,
}

impl Build {
    /// The build for block time steps with these digits of pairs. Their state is f64, so denormals of
    /// f32 are of no use.
    #[must_use]
    pub const fn of_blocks(self, digits: DigitsName) -> Self {
        match digits {
            DigitsName::Single | DigitsName::Mixed => Self::Ftz,
            DigitsName::Double => self,
        }
    }
}

/// Launch geometry that is not the variant's own: where given, it takes the place of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shape {
    /// Threads of a block.
    pub block: Option<u32>,
    /// Threads along the sources, of two-dimensional blocks.
    pub len: Option<u32>,
    /// Sources per thread, of two-dimensional blocks.
    pub luf: Option<u32>,
}

/// A kernel, by its row, as IEEE 754 asks and in blocks of 256.
pub const fn kernel(row: &str) -> Method {
    Method::Kernel {
        row: Row::named(row),
        build: Build::Precise,
        block: 256,
        positions: Positions::Device,
        split: None,
        fitted: &[],
        by_masses: false,
    }
}

/// A path of the CPU on all its threads.
pub const fn cpu(precision: Precision, root: RootName, pairs: PairsName) -> Method {
    Method::Cpu(CpuPath {
        precision,
        root,
        pairs,
        threads: Threads::All,
    })
}

/// Many systems, by the row of their kernels, as IEEE 754 asks: on one GPU, in one stream.
pub const fn systems(row: &str) -> SystemsPath {
    SystemsPath {
        row: Row::named(row),
        build: Build::Precise,
        block: 1024,
        tile: None,
        queues: Queues::Together,
        transfers: Transfers::Apart,
        gpus: Gpus::One,
        by_masses: false,
    }
}

impl SystemsPath {
    /// With this row of kernels.
    pub const fn by(mut self, row: &str) -> Self {
        self.row = Row::named(row);
        self
    }

    /// In blocks of `threads`.
    pub const fn in_blocks_of(mut self, threads: u32) -> Self {
        self.block = threads;
        self
    }

    /// With tiles of `sources`.
    #[must_use]
    pub const fn tile(mut self, sources: u32) -> Self {
        self.tile = Some(sources);
        self
    }

    /// Queued so.
    #[must_use]
    pub const fn queued(mut self, queues: Queues) -> Self {
        self.queues = queues;
        self
    }

    /// With these transfers.
    pub const fn copied(mut self, transfers: Transfers) -> Self {
        self.transfers = transfers;
        self
    }

    /// On all GPUs.
    pub const fn on_all_gpus(mut self) -> Self {
        self.gpus = Gpus::All;
        self
    }
}

impl Method {
    /// On one thread of the CPU.
    pub const fn on_one_thread(mut self) -> Self {
        if let Self::Cpu(path) = &mut self {
            path.threads = Threads::One;
        }
        self
    }

    /// Build of its kernels, if it has any.
    pub const fn build(self) -> Option<Build> {
        match self {
            Self::Kernel { build, .. } | Self::Systems(SystemsPath { build, .. }) => Some(build),
            Self::Reference | Self::Cpu(_) => None,
        }
    }

    /// With denormals flushed to zero.
    pub const fn ftz(mut self) -> Self {
        match &mut self {
            Self::Kernel { build, .. } | Self::Systems(SystemsPath { build, .. }) => {
                *build = Build::Ftz;
            }
            Self::Reference | Self::Cpu(_) => {}
        }
        self
    }

    /// In blocks of `threads`, whatever the number of bodies.
    #[must_use]
    pub const fn in_blocks_of(mut self, threads: u32) -> Self {
        match &mut self {
            Self::Kernel { block, fitted, .. } => {
                *block = threads;
                *fitted = &[];
            }
            Self::Systems(path) => path.block = threads,
            Self::Reference | Self::Cpu(_) => {}
        }
        self
    }

    /// In blocks that share out sources, whatever the number of bodies.
    #[must_use]
    pub const fn split(mut self, shape: Split) -> Self {
        if let Self::Kernel { split, fitted, .. } = &mut self {
            *split = Some(shape);
            *fitted = &[];
        }
        self
    }

    /// In blocks that are chosen by the number of bodies; the largest numbers come last.
    pub const fn fitted_by(mut self, shapes: &'static [Fitted]) -> Self {
        if let Self::Kernel { fitted, .. } = &mut self {
            *fitted = shapes;
        }
        self
    }

    /// By a kernel that the masses allow.
    pub const fn by_masses(mut self) -> Self {
        match &mut self {
            Self::Kernel { by_masses, .. } | Self::Systems(SystemsPath { by_masses, .. }) => {
                *by_masses = true;
            }
            Self::Reference | Self::Cpu(_) => {}
        }
        self
    }

    /// With positions advanced on the host.
    pub const fn positions_on_host(self) -> Self {
        self.positions_by(Bus::Pageable)
    }

    /// With positions advanced on the host, which they reach so.
    pub const fn positions_by(mut self, bus: Bus) -> Self {
        if let Self::Kernel { positions, .. } = &mut self {
            *positions = Positions::Host(bus);
        }
        self
    }
}
