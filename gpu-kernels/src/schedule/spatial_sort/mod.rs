//! Spatial sort: bodies in Hilbert order, in which neighbours in memory are neighbours in space.
//!
//! ```text
//! keys      index of each body along a Hilbert curve
//! count   ┐
//! scan    │ 4 passes of a radix sort, by 8 bits of the keys each, the lowest first
//! scatter ┘
//! halve     each 2048 bodies in a row halved along their longest side, and halved again
//! reorder   state, accelerations and numbers of the bodies, in that order
//! ```
//! The curve alone leaves groups of 32 bodies that are longer than they need to be; with halving they
//! are as compact as the leaves of a k-d tree that halves all bodies from the top. (Fraction of the
//! pairs of 256 and 32 bodies that [`separated`](super::separated) finds near, 262 144 bodies of a
//! Plummer sphere: 2.1 % by the curve alone, 1.2 % halved, 1.3 % by such a tree.)

mod curve;
mod halve;
mod radix;
mod reorder;

pub use curve::{BITS, keys};
pub use halve::{CHUNK, HALVE_SHARED_BYTES, HALVE_THREADS, halve};
pub use radix::{
    DIGITS, PASSES, SCAN_SHARED_BYTES, SCAN_THREADS, SORT_SHARED_BYTES, SORT_THREADS, TILE,
};
pub use radix::{count, scan, scatter, tiles};
pub use reorder::{renumber, reorder};

/// A stage of the sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortStage {
    /// [`keys`].
    Keys,
    /// [`count`].
    Count,
    /// [`scan`].
    Scan,
    /// [`scatter`].
    Scatter,
    /// [`halve()`].
    Halve,
    /// [`reorder()`].
    Reorder,
    /// [`renumber`].
    Renumber,
}
