//! The algorithms, one per file: the assignment of interactions to threads, their order, and the place
//! of the sources until they are used.

pub mod advance;
pub mod block_steps;
pub mod direct;
pub mod energy;
pub mod external;
mod fragments;
pub mod grid2d;
pub mod guarded;
pub mod hermite;
pub mod hybrid;
pub mod one_thread;
pub mod pair_sums;
pub mod points;
pub mod reduce;
pub mod separated;
pub mod spatial_sort;
pub mod symmetric;
pub mod systems;
pub mod tensor;
pub mod test_particles;
pub mod tiled;
pub mod tiled_jerks;
pub mod two_loops;

/// Name of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScheduleName {
    /// [`direct`].
    Direct,
    /// [`tiled`].
    Tiled,
    /// [`tiled_jerks`].
    TiledJerks,
    /// [`guarded`].
    Guarded,
    /// [`hybrid`].
    Hybrid,
    /// [`grid2d`].
    Grid2d {
        /// Place of a block's sources.
        sources: SourcesIn,
    },
    /// [`one_thread`].
    OneThread,
    /// [`two_loops`].
    TwoLoops,
    /// [`symmetric`].
    Symmetric,
    /// [`tensor`].
    Tensor,
    /// [`separated`].
    Separated,
    /// [`test_particles`].
    TestParticles,
    /// [`systems`].
    Systems {
        /// Part of a time step that a launch does.
        stepping: Stepping,
        /// Place of the sources; in tiles, if in shared memory.
        sources: SourcesIn,
    },
}

impl ScheduleName {
    /// Returns whether a pair's 1/d³ serves both its bodies in registers, as in [`symmetric`].
    #[inline]
    pub const fn takes_pairs_once(self) -> bool {
        matches!(
            self,
            Self::Symmetric
                | Self::Systems {
                    stepping: Stepping::Accelerate | Stepping::InBlock,
                    ..
                }
        )
    }
}

/// Part of a time step that one launch of a kernel of many systems does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stepping {
    /// All time steps.
    All,
    /// The kick of a step; another kernel drifts.
    Kick,
    /// One step, from one state buffer to another.
    Fused,
    /// The accelerations of a step, each pair once; another kernel kicks and drifts.
    Accelerate,
    /// All time steps, each pair once, of a system that a block keeps.
    InBlock,
    /// One step, from one state buffer to another, a warp for each body.
    ByWarps,
}

/// Place of the sources of a two-dimensional block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourcesIn {
    /// In global memory.
    Global,
    /// In shared memory; the sources of each thread lie side by side.
    Shared,
    /// In shared memory; the sources that a row of threads reads at a time lie side by side, in
    /// different banks.
    SharedInterleaved,
}

/// Way in which partial sums become accelerations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// [`reduce::serial`].
    Serial,
    /// [`reduce::matrix_vector`].
    MatrixVector,
    /// [`reduce::tree`].
    Tree,
}
