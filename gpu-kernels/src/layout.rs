//! Layouts of the bodies' values in memory.
//!
//! A *state* buffer holds position, mass and velocity of `stride ≥ n` bodies, an *acceleration*
//! buffer three components each. A layout says at which scalar every value lies
//! ([`Layout::scalar`], [`Layout::vector_scalar`]: the host packs by them) and how kernels fetch
//! and store them with the widest accesses the layout allows. Room beyond `n` is never accessed.

use crate::double_single::DoubleSingle;
mod loads;

pub use loads::{Loads, Ordinary, ReadOnly};

use crate::numerics::{Precision, Real};
use core::marker::PhantomData;
use cuda_std::global::{self, AtomicAdd};
use cuda_std::shared::{Shared, SharedWord};
use cuda_std::vector::Vec4;
use cuda_std::{GpuFloat, f16};

/// Name of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayoutName {
    /// Array of structures.
    Aos,
    /// Structure of arrays.
    Soa,
    /// Arrays of 3-vectors.
    Float3,
    /// Arrays of 4-vectors.
    Float4,
}

/// A value of a body's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Field {
    /// Position.
    X,
    /// Position.
    Y,
    /// Position.
    Z,
    /// Mass.
    Mass,
    /// Velocity.
    Vx,
    /// Velocity.
    Vy,
    /// Velocity.
    Vz,
}

impl Field {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::X,
        Self::Y,
        Self::Z,
        Self::Mass,
        Self::Vx,
        Self::Vy,
        Self::Vz,
    ];
}

/// Values of a source that a force depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source<R> {
    /// Position.
    pub position: [R; 3],
    /// Mass.
    pub mass: R,
}

/// A layout in memory of bodies of [`Real`](Layout::Real)s.
pub trait Layout {
    /// Type of every scalar.
    type Real: Real;
    /// Unit of the widest access.
    type Word: Copy + SharedWord;
    /// Name of the layout.
    const NAME: LayoutName;
    /// Scalars of state per body.
    const STATE_SCALARS: u32;
    /// Scalars of acceleration per body.
    const VECTOR_SCALARS: u32;
    /// Arrays of a state buffer, one after another: scalars per body in each.
    const PLANES: &[u32];
    /// Type of the state's scalars in memory.
    const STORED: Precision = Self::Real::PRECISION;
    /// Type of the accelerations in memory.
    const VECTORS: Precision = Self::Real::PRECISION;
    /// True if sources are read by the path for memory that no thread writes in the launch.
    const READ_ONLY: bool = false;

    /// Index of the scalar of a state buffer that holds `field` of body `i`.
    fn scalar(field: Field, stride: u32, i: u32) -> usize;
    /// Index of the scalar of an acceleration buffer that holds component `axis` of body `i`.
    fn vector_scalar(axis: u32, stride: u32, i: u32) -> usize;

    /// Position and mass of body `i`.
    ///
    /// # Safety
    /// `state` is a state buffer of this layout and stride, `i < stride`; nobody writes them in
    /// this launch, if the layout is [`READ_ONLY`](Layout::READ_ONLY).
    unsafe fn source(state: *const Self::Word, stride: u32, i: u32) -> Source<Self::Real>;
    /// Sets the position of body `i`.
    ///
    /// # Safety
    /// As [`source`](Self::source), and only this thread accesses body `i`.
    unsafe fn set_source(state: *mut Self::Word, stride: u32, i: u32, source: Source<Self::Real>);
    /// Velocity of body `i`.
    ///
    /// # Safety
    /// As [`source`](Self::source).
    unsafe fn velocity(state: *const Self::Word, stride: u32, i: u32) -> [Self::Real; 3];
    /// Sets the velocity of body `i`.
    ///
    /// # Safety
    /// As [`set_source`](Self::set_source).
    unsafe fn set_velocity(state: *mut Self::Word, stride: u32, i: u32, v: [Self::Real; 3]);
    /// Acceleration of body `i`.
    ///
    /// # Safety
    /// `vectors` is an acceleration buffer of this layout and stride, `i < stride`.
    unsafe fn vector(vectors: *const Self::Word, stride: u32, i: u32) -> [Self::Real; 3];
    /// Sets the acceleration of body `i`.
    ///
    /// # Safety
    /// As [`vector`](Self::vector), and only this thread accesses body `i`.
    unsafe fn set_vector(vectors: *mut Self::Word, stride: u32, i: u32, v: [Self::Real; 3]);

    /// Words of shared memory that a source takes in a tile.
    const TILE_WORDS: u32;
    /// The source in `slot` of a tile with room for `capacity`.
    ///
    /// # Safety
    /// `tile` has `capacity · TILE_WORDS` words, and the slot was filled before a barrier.
    unsafe fn tile_source(tile: Shared<Self::Word>, capacity: u32, slot: u32)
    -> Source<Self::Real>;
    /// Fills `slot` of a tile.
    ///
    /// # Safety
    /// As [`tile_source`](Self::tile_source), and no other thread accesses the slot.
    unsafe fn set_tile_source(
        tile: Shared<Self::Word>,
        capacity: u32,
        slot: u32,
        source: Source<Self::Real>,
    );
}

/// Placement of scalars that belong together: the difference between an array of structures and a
/// structure of arrays.
pub trait Placement {
    /// Name of the layout.
    const NAME: LayoutName;
    /// [`PLANES`](Layout::PLANES) of the layout.
    const PLANES: &[u32];
    /// Index of component `c` of `components` of record `i`, with room for `stride` records.
    fn place(c: u32, components: u32, stride: u32, i: u32) -> u32;
}

/// A record's components side by side.
#[derive(Clone, Copy, Debug)]
pub enum Interleaved {}

impl Placement for Interleaved {
    const NAME: LayoutName = LayoutName::Aos;
    const PLANES: &[u32] = &[STATE];
    #[inline(always)]
    fn place(c: u32, components: u32, _stride: u32, i: u32) -> u32 {
        i * components + c
    }
}

/// Each component in an array of its own.
#[derive(Clone, Copy, Debug)]
pub enum Planar {}

impl Placement for Planar {
    const NAME: LayoutName = LayoutName::Soa;
    const PLANES: &[u32] = &[1; STATE as usize];
    #[inline(always)]
    fn place(c: u32, _components: u32, stride: u32, i: u32) -> u32 {
        c * stride + i
    }
}

/// Positions as triples, masses in an array of their own, velocities as triples.
#[derive(Clone, Copy, Debug)]
pub enum Triples {}

impl Placement for Triples {
    const NAME: LayoutName = LayoutName::Float3;
    const PLANES: &[u32] = &[3, 1, 3];
    #[inline(always)]
    fn place(c: u32, _components: u32, stride: u32, i: u32) -> u32 {
        match c {
            0..3 => 3 * i + c,
            3 => 3 * stride + i,
            _ => 4 * stride + 3 * i + (c - 4),
        }
    }
}

/// A scalar in memory, beside the type that kernels compute in.
pub trait Stored<R>: Real + SharedWord {
    /// The same value.
    fn widen(self) -> R;
    /// The nearest value.
    fn narrow(value: R) -> Self;
}

impl<R: Real + SharedWord> Stored<R> for R {
    #[inline(always)]
    fn widen(self) -> R {
        self
    }
    #[inline(always)]
    fn narrow(value: R) -> R {
        value
    }
}

/// A scalar in memory for kernels that compute in another type: accelerations too are stored so,
/// and in tiles its bits are a number of that type.
pub trait Twin<R>: Stored<R> {
    /// The number whose bits these are.
    fn untiled(self) -> R;
    /// The bits of a number.
    fn tiled(value: R) -> Self;
}

impl<R: Real + SharedWord> Twin<R> for R {
    #[inline(always)]
    fn untiled(self) -> R {
        self
    }
    #[inline(always)]
    fn tiled(value: R) -> R {
        value
    }
}

impl Stored<DoubleSingle> for f64 {
    #[inline(always)]
    fn widen(self) -> DoubleSingle {
        DoubleSingle::from_f64(self)
    }
    #[inline(always)]
    fn narrow(value: DoubleSingle) -> Self {
        value.to_f64()
    }
}

/// Two singles for a double: no conversion where sources are read over and over.
impl Twin<DoubleSingle> for f64 {
    #[inline(always)]
    fn untiled(self) -> DoubleSingle {
        let bits = self.to_bits();
        DoubleSingle {
            high: f32::from_bits((bits >> 32) as u32),
            low: f32::from_bits(bits as u32),
        }
    }
    #[inline(always)]
    fn tiled(value: DoubleSingle) -> Self {
        let (high, low) = (value.high.to_bits(), value.low.to_bits());
        f64::from_bits(u64::from(high) << 32 | u64::from(low))
    }
}

impl Stored<f32> for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f64() as f32 // one instruction
    }
    #[inline(always)]
    fn narrow(value: f32) -> Self {
        Self::from_f64(value.to_f64())
    }
}

/// Layouts whose accelerations many threads can add to at a time.
pub trait Accumulate: Layout {
    /// Representation of a number in shared memory.
    type Kept: SharedWord;
    /// Converts a number for shared memory.
    fn keep(value: Self::Real) -> Self::Kept;
    /// Converts a number from shared memory.
    fn kept(word: Self::Kept) -> Self::Real;

    /// Adds to the acceleration of body `i`, whatever other threads add there, in no defined order.
    ///
    /// # Safety
    /// As [`vector`](Layout::vector), and other threads only add to body `i`.
    unsafe fn add_vector(vectors: *mut Self::Word, stride: u32, i: u32, v: [Self::Real; 3]);
}

/// Layouts whose every access is one scalar: a state of `S`, in memory and in tiles, computed with
/// in `R`; `G` is the policy of reading sources.
#[derive(Clone, Copy, Debug)]
pub struct Scalars<R, P, S = R, G = Ordinary>(PhantomData<(R, P, S, G)>);

/// `{x, y, z, m, vx, vy, vz}` per body.
pub type Aos<R> = Scalars<R, Interleaved>;
/// Seven arrays.
pub type Soa<R, S = R, G = Ordinary> = Scalars<R, Planar, S, G>;
/// An array of positions, one of masses, one of velocities.
pub type Float3<R, G = Ordinary> = Scalars<R, Triples, R, G>;

const STATE: u32 = Field::ALL.len() as u32;

impl<R: Real, P: Placement, S: Stored<R>, G> Scalars<R, P, S, G> {
    #[inline(always)]
    unsafe fn get<T: Copy, H: Loads<T>>(
        base: *const T,
        first: u32,
        of: u32,
        stride: u32,
        i: u32,
    ) -> [T; 3] {
        let at = |c| P::place(first + c, of, stride, i);
        // SAFETY: the callers' callers say that body i lies in the buffer.
        unsafe {
            [
                H::load(base, at(0)),
                H::load(base, at(1)),
                H::load(base, at(2)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn set<T: Copy>(base: *mut T, first: u32, of: u32, stride: u32, i: u32, v: [T; 3]) {
        let at = |c| P::place(first + c, of, stride, i);
        // SAFETY: as `get`.
        unsafe {
            global::store(base, at(0), v[0]);
            global::store(base, at(1), v[1]);
            global::store(base, at(2), v[2]);
        }
    }
}

impl<R: Real + SharedWord, P: Placement, S: Stored<R>, G: Loads<S>> Layout for Scalars<R, P, S, G> {
    type Real = R;
    type Word = S;
    const NAME: LayoutName = P::NAME;
    const STATE_SCALARS: u32 = STATE;
    const VECTOR_SCALARS: u32 = 3;
    const PLANES: &[u32] = P::PLANES;
    const STORED: Precision = S::PRECISION;
    const READ_ONLY: bool = G::READ_ONLY;

    fn scalar(field: Field, stride: u32, i: u32) -> usize {
        P::place(field as u32, STATE, stride, i) as usize
    }

    fn vector_scalar(axis: u32, stride: u32, i: u32) -> usize {
        P::place(axis, 3, stride, i) as usize
    }

    #[inline(always)]
    unsafe fn source(state: *const S, stride: u32, i: u32) -> Source<R> {
        // SAFETY: the caller's promise.
        unsafe {
            let position = Self::get::<S, G>(state, Field::X as u32, STATE, stride, i);
            let mass = G::load(state, P::place(Field::Mass as u32, STATE, stride, i));
            Source {
                position: position.map(S::widen),
                mass: mass.widen(),
            }
        }
    }

    #[inline(always)]
    unsafe fn set_source(state: *mut S, stride: u32, i: u32, source: Source<R>) {
        // SAFETY: the caller's promise.
        unsafe {
            let position = source.position.map(S::narrow);
            Self::set(state, Field::X as u32, STATE, stride, i, position);
            let mass_at = P::place(Field::Mass as u32, STATE, stride, i);
            global::store(state, mass_at, S::narrow(source.mass));
        }
    }

    #[inline(always)]
    unsafe fn velocity(state: *const S, stride: u32, i: u32) -> [R; 3] {
        // SAFETY: the caller's promise.
        unsafe { Self::get::<S, Ordinary>(state, Field::Vx as u32, STATE, stride, i) }.map(S::widen)
    }

    #[inline(always)]
    unsafe fn set_velocity(state: *mut S, stride: u32, i: u32, v: [R; 3]) {
        // SAFETY: the caller's promise.
        unsafe { Self::set(state, Field::Vx as u32, STATE, stride, i, v.map(S::narrow)) }
    }

    #[inline(always)]
    unsafe fn vector(vectors: *const S, stride: u32, i: u32) -> [R; 3] {
        // SAFETY: the caller's promise.
        unsafe { Self::get::<R, Ordinary>(vectors.cast::<R>(), 0, 3, stride, i) }
    }

    #[inline(always)]
    unsafe fn set_vector(vectors: *mut S, stride: u32, i: u32, v: [R; 3]) {
        // SAFETY: the caller's promise.
        unsafe { Self::set(vectors.cast::<R>(), 0, 3, stride, i, v) }
    }

    const TILE_WORDS: u32 = 4;

    #[inline(always)]
    unsafe fn tile_source(tile: Shared<S>, capacity: u32, slot: u32) -> Source<R> {
        let at = |c| P::place(c, 4, capacity, slot);
        // SAFETY: the caller's promise.
        unsafe {
            Source {
                position: [tile.load(at(0)), tile.load(at(1)), tile.load(at(2))].map(S::widen),
                mass: tile.load(at(3)).widen(),
            }
        }
    }

    #[inline(always)]
    unsafe fn set_tile_source(tile: Shared<S>, capacity: u32, slot: u32, source: Source<R>) {
        let at = |c| P::place(c, 4, capacity, slot);
        let [x, y, z] = source.position.map(S::narrow);
        // SAFETY: the caller's promise.
        unsafe {
            tile.store(at(0), x);
            tile.store(at(1), y);
            tile.store(at(2), z);
            tile.store(at(3), S::narrow(source.mass));
        }
    }
}

/// Positions with masses `(x, y, z, m)` in one array of 4-vectors, velocities `(vx, vy, vz, 0)` in
/// the next: every access is one vector of `S`, computed with in `R`.
#[derive(Clone, Copy, Debug)]
pub struct Float4<R, S = R>(PhantomData<(R, S)>);

impl<R: Real, S: Twin<R>> Layout for Float4<R, S>
where
    Vec4<S>: SharedWord,
{
    type Real = R;
    type Word = Vec4<S>;
    const NAME: LayoutName = LayoutName::Float4;
    const STATE_SCALARS: u32 = 8;
    const VECTOR_SCALARS: u32 = 4;
    const PLANES: &[u32] = &[4, 4];
    const STORED: Precision = S::PRECISION;
    const VECTORS: Precision = S::PRECISION;

    fn scalar(field: Field, stride: u32, i: u32) -> usize {
        let field = field as u32; // four of position and mass, then the velocity
        (field / 4 * 4 * stride + 4 * i + field % 4) as usize
    }

    fn vector_scalar(axis: u32, _stride: u32, i: u32) -> usize {
        (4 * i + axis) as usize
    }

    #[inline(always)]
    unsafe fn source(state: *const Vec4<S>, _stride: u32, i: u32) -> Source<R> {
        // SAFETY: the caller's promise.
        unpack(unsafe { global::load(state, i) })
    }

    #[inline(always)]
    unsafe fn set_source(state: *mut Vec4<S>, _stride: u32, i: u32, source: Source<R>) {
        // SAFETY: the caller's promise.
        unsafe { global::store(state, i, pack(source)) }
    }

    #[inline(always)]
    unsafe fn velocity(state: *const Vec4<S>, stride: u32, i: u32) -> [R; 3] {
        // SAFETY: the caller's promise.
        unpack(unsafe { global::load(state, stride + i) }).position
    }

    #[inline(always)]
    unsafe fn set_velocity(state: *mut Vec4<S>, stride: u32, i: u32, v: [R; 3]) {
        // SAFETY: the caller's promise.
        unsafe { global::store(state, stride + i, pack(vector(v))) }
    }

    #[inline(always)]
    unsafe fn vector(vectors: *const Vec4<S>, _stride: u32, i: u32) -> [R; 3] {
        // SAFETY: the caller's promise.
        unpack(unsafe { global::load(vectors, i) }).position
    }

    #[inline(always)]
    unsafe fn set_vector(vectors: *mut Vec4<S>, _stride: u32, i: u32, v: [R; 3]) {
        // SAFETY: the caller's promise.
        unsafe { global::store(vectors, i, pack(vector(v))) }
    }

    const TILE_WORDS: u32 = 1;

    #[inline(always)]
    unsafe fn tile_source(tile: Shared<Vec4<S>>, _capacity: u32, slot: u32) -> Source<R> {
        // SAFETY: the caller's promise.
        let Vec4 { x, y, z, w } = unsafe { tile.load(slot) };
        Source {
            position: [y, z, w].map(S::untiled),
            mass: x.untiled(),
        }
    }

    #[inline(always)]
    unsafe fn set_tile_source(tile: Shared<Vec4<S>>, _capacity: u32, slot: u32, source: Source<R>) {
        let [y, z, w] = source.position.map(S::tiled);
        let x = S::tiled(source.mass);
        // SAFETY: the caller's promise.
        unsafe { tile.store(slot, Vec4 { x, y, z, w }) }
    }
}

impl<R: Real, S: Twin<R>> Accumulate for Float4<R, S>
where
    Vec4<S>: SharedWord + AtomicAdd,
{
    type Kept = S;

    #[inline(always)]
    fn keep(value: R) -> S {
        S::tiled(value)
    }

    #[inline(always)]
    fn kept(word: S) -> R {
        word.untiled()
    }

    #[inline(always)]
    unsafe fn add_vector(vectors: *mut Vec4<S>, _stride: u32, i: u32, v: [R; 3]) {
        // SAFETY: the caller's promise.
        unsafe { Vec4::<S>::atomic_add(vectors, i, pack(vector(v))) }
    }
}

#[inline(always)]
fn pack<R, S: Stored<R>>(source: Source<R>) -> Vec4<S> {
    let [x, y, z] = source.position.map(S::narrow);
    Vec4 {
        x,
        y,
        z,
        w: S::narrow(source.mass),
    }
}

#[inline(always)]
fn unpack<R, S: Stored<R>>(v: Vec4<S>) -> Source<R> {
    Source {
        position: [v.x, v.y, v.z].map(S::widen),
        mass: v.w.widen(),
    }
}

/// A vector that is not a position: nothing in the fourth place.
#[inline(always)]
fn vector<R: Real>(position: [R; 3]) -> Source<R> {
    Source {
        position,
        mass: R::from_f64(0.0),
    }
}

#[cfg(test)]
mod tests;
