//! The algorithms, one a file: who computes which interactions in which order, and where the
//! sources wait until they are used.

pub mod advance;
pub mod direct;
pub mod energy;
pub mod tiled;

/// An algorithm's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScheduleName {
    /// [`direct`].
    Direct,
    /// [`tiled`].
    Tiled,
}
