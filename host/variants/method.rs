//! How a variant computes, as data.

use gpu_kernels::numerics::Precision;
use serde::{Deserialize, Serialize};

use crate::force::cpu::{PairsName, RootName, Threads};
use crate::plan::Split;

/// How a variant computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The f64 reference that judges the others.
    Reference,
    /// The CPU path.
    Cpu(CpuPath),
    /// Kernels, on a GPU or the emulator.
    Kernel {
        /// The row of `gpu_kernels::entries::FORCES`, by the common part of its symbols.
        entry: &'static str,
        /// How it is compiled.
        build: Build,
        /// Threads of a block, for kernels that use more than one.
        block: u32,
        /// Who advances the positions.
        positions: Positions,
        /// How blocks share out sources, if they do.
        split: Option<Split>,
        /// Whether other kernels of the row are taken where the masses allow it.
        by_masses: bool,
    },
}

/// What the CPU path can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPath {
    /// Type of the pairs.
    pub precision: Precision,
    /// Where 1/√ comes from.
    pub root: RootName,
    /// How often a pair is computed.
    pub pairs: PairsName,
    /// Who computes.
    pub threads: Threads,
}

/// Who advances the positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// A kernel: the bodies stay on the device.
    Device,
    /// The host, as some first ports do: the bodies cross the bus and back with every step.
    Host,
}

/// How PTX is made from the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// As IEEE 754 asks.
    Precise,
    /// Denormal numbers flushed to zero.
    Ftz,
}

/// Launch geometry that is not the variant's own: where given, it takes the place of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Threads of a block.
    pub block: Option<u32>,
    /// Threads along the sources, of two-dimensional blocks.
    pub len: Option<u32>,
    /// Sources a thread, of two-dimensional blocks.
    pub luf: Option<u32>,
}

/// A kernel, by its row, as IEEE 754 asks and in blocks of 256.
pub(crate) const fn kernel(entry: &'static str) -> Method {
    Method::Kernel {
        entry,
        build: Build::Precise,
        block: 256,
        positions: Positions::Device,
        split: None,
        by_masses: false,
    }
}

pub(crate) const fn cpu(precision: Precision, root: RootName, pairs: PairsName) -> Method {
    Method::Cpu(CpuPath {
        precision,
        root,
        pairs,
        threads: Threads::All,
    })
}

impl Method {
    /// On one thread of the CPU.
    pub(crate) const fn on_one_thread(mut self) -> Self {
        if let Self::Cpu(path) = &mut self {
            path.threads = Threads::One;
        }
        self
    }

    /// With denormals flushed to zero.
    pub(crate) const fn ftz(mut self) -> Self {
        if let Self::Kernel { build, .. } = &mut self {
            *build = Build::Ftz;
        }
        self
    }

    /// In blocks of `threads`.
    #[must_use]
    pub const fn in_blocks_of(mut self, threads: u32) -> Self {
        if let Self::Kernel { block, .. } = &mut self {
            *block = threads;
        }
        self
    }

    /// In blocks that share out sources.
    #[must_use]
    pub const fn split(mut self, shape: Split) -> Self {
        if let Self::Kernel { split, .. } = &mut self {
            *split = Some(shape);
        }
        self
    }

    /// By a kernel that the masses allow.
    pub(crate) const fn by_masses(mut self) -> Self {
        if let Self::Kernel { by_masses, .. } = &mut self {
            *by_masses = true;
        }
        self
    }

    /// With positions advanced on the host.
    pub(crate) const fn positions_on_host(mut self) -> Self {
        if let Self::Kernel { positions, .. } = &mut self {
            *positions = Positions::Host;
        }
        self
    }
}
