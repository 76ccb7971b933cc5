//! Vectors that move between memory and registers as one 16-byte access.

/// Four values, aligned so that device loads and stores of `Vec4<f32>` are one `v4.f32` access
/// (two `v2.f64` for `f64`).
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vec4<T> {
    /// First component.
    pub x: T,
    /// Second component.
    pub y: T,
    /// Third component.
    pub z: T,
    /// Fourth component: a mass beside a position, unused beside a velocity.
    pub w: T,
}
