//! Regular forces of many bodies: pair by pair where bodies are near, and else without jerks of pairs.
//!
//! A sweep over all pairs computes accelerations and jerks of each. Here pairs that are far have accelerations
//! alone; the jerk of a far leaf is the jerk of its centre of mass. Where regular steps end, the
//! block steps wait while the host launches:
//!
//! * [`predict`]: positions and velocities of all bodies in f32, and the targets side by side, which the
//!   [spatial sort](crate::schedule::spatial_sort) then puts in order, each for themselves;
//! * [`leaves`]: all bodies in this order, and boxes and centres of mass of leaves of 32 bodies;
//! * [`far`]: which leaves are near to a group of 64 targets, as bits of words; the jerks of all others, and
//!   accelerations where tensor cores are not exact enough;
//! * [`tensor`]: the other accelerations of far leaves;
//! * [`lists`]: the forces of near leaves pair by pair, the new lists, and the irregular forces of these.
//!
//! A leaf is near to a group where it comes nearer to one of its targets than 1.5 radii of the target's
//! own sphere. (With a box around all spheres of the group 7 % of the pairs of 1 048 576 bodies are near
//! instead of 0.5 %.)
//!
//! # Errors
//! Accelerations of near leaves have the rounding of f32. On tensor cores a pair has the errors of
//! [`separated`](crate::schedule::separated): 2 · 10⁻⁴ at random, which is 10⁻⁶ to 10⁻⁵ of the regular force in large
//! systems. In a prototype, jerks of far leaves had an error of 5 · 10⁻³ of the regular jerk in large systems. That
//! changes energies little: it counts by H²/12, and a regular step H is a few hundredths of the time in which the
//! regular force changes.

mod far;
mod leaves;
mod lists;
mod predict;
mod targets;
mod tensor;

pub use far::{FAR_SHARED_BYTES, far};
pub use leaves::leaves;
pub use lists::lists;
pub use predict::predict;
pub use tensor::{TENSOR_SHARED_BYTES, tensor};

use cuda_std::warp::WARP_SIZE;

/// Bodies of a leaf.
pub const LEAF: u32 = WARP_SIZE;

/// Parts of a leaf with a centre of mass of their own.
const PARTS: u32 = 4;

/// Vectors of a leaf: its box, and position with mass, and velocity, of its centre and of the centres of its
/// parts.
pub const LEAF_VECTORS: u32 = 2 + 2 * (1 + PARTS);

/// Targets of a group.
pub const GROUP: u32 = 2 * WARP_SIZE;

/// Vectors that [`far`] leaves for a target and a part of the leaves: acceleration, jerk.
pub const FAR_VECTORS: u32 = 2;

/// Threads of the blocks of all these kernels but [`predict`].
pub const THREADS: u32 = 128;

/// Warps of such a block.
pub const WARPS: u32 = THREADS / WARP_SIZE;

/// Radii of a target's sphere within which leaves are near.
const WIDE: f32 = 1.5;

/// A leaf is taken in parts for the jerk of a group where squared distances differ by more than this factor.
const UNEVEN: f32 = 3.5;

/// Leaves of n bodies.
pub const fn leaves_of(n: u32) -> u32 {
    n.div_ceil(LEAF)
}

/// Words that say which leaves of n bodies are near to a group.
pub const fn words_of(n: u32) -> u32 {
    leaves_of(n).div_ceil(u32::BITS)
}

/// Groups of this number of targets.
pub const fn groups_of(targets: u32) -> u32 {
    targets.div_ceil(GROUP)
}

/// A kernel of regular forces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegularStage {
    /// [`predict`].
    Predict,
    /// [`leaves`].
    Leaves,
    /// [`far`].
    Far,
    /// [`tensor`].
    Tensor,
    /// [`lists`].
    Lists,
}
