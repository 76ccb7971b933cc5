//! Records in memory of a source, of a target and of its sums, and the digits of each.

use crate::numerics::{Precision, Real};
use cuda_std::shared::{Shared, SharedWord};
use cuda_std::vector::{Vec2, Vec4};
use cuda_std::warp::{Shuffle, WARP_SIZE};
use cuda_std::{GpuFloat, global};

use super::scheme::{MOST_SUMS, Moving, Scheme};

/// The digits of pairs, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DigitsName {
    /// [`Single`].
    Single,
    /// [`Mixed`].
    Mixed,
    /// [`Double`].
    Double,
}

impl DigitsName {
    /// Bytes of a number.
    pub const fn bytes(self) -> u32 {
        self.precision().bytes()
    }

    /// Type that pairs are computed in.
    pub const fn precision(self) -> Precision {
        match self {
            Self::Single | Self::Mixed => Precision::F32,
            Self::Double => Precision::F64,
        }
    }

    /// True if positions come with the part that f32 rounds off.
    pub const fn low(self) -> bool {
        matches!(self, Self::Mixed)
    }

    /// The part of a force that rounding may change: of f32, four of its units. Then clusters with binaries take as many steps as
    /// in f64, and keep their energy as well. Without it they take up to a third more, and with 32 units they lose ten times as
    /// much energy in fewer steps.
    pub const fn rounding(self) -> f64 {
        match self {
            Self::Single | Self::Mixed => 1.0 / (1 << 22) as f64,
            Self::Double => 0.0,
        }
    }

    /// Targets a lane, where there are many: as many as registers hold.
    pub const fn lane(self) -> u32 {
        match self {
            Self::Single | Self::Mixed => 2,
            Self::Double => 1,
        }
    }
}

/// In which digits pairs are computed. The state of the bodies, predictions, sums over slices and
/// corrections are f64 in any case.
pub trait Digits {
    /// A number.
    type Real: Word;
    /// As data.
    const NAME: DigitsName;
    /// [`DigitsName::low`].
    const LOW: bool = Self::NAME.low();
    /// [`DigitsName::rounding`].
    const ROUNDING: f64 = Self::NAME.rounding();
}

/// f32.
#[derive(Clone, Copy, Debug)]
pub enum Single {}

impl Digits for Single {
    type Real = f32;
    const NAME: DigitsName = DigitsName::Single;
}

/// f32, but positions are sums of two f32, so that differences are right however near two bodies are.
///
/// A difference of high parts is off by 2⁻²⁴ of the coordinates. That is as little as f32 rounds off
/// anyway where the pair is farther apart than a fair part of its distance from the origin; only for
/// nearer pairs, which are few, are differences of the low parts added.
#[derive(Clone, Copy, Debug)]
pub enum Mixed {}

impl Digits for Mixed {
    type Real = f32;
    const NAME: DigitsName = DigitsName::Mixed;
}

/// f64.
#[derive(Clone, Copy, Debug)]
pub enum Double {}

impl Digits for Double {
    type Real = f64;
    const NAME: DigitsName = DigitsName::Double;
}

/// A number that moves in vectors of four and of two.
pub trait Word: Real + Shuffle + SharedWord {
    /// Four numbers from number `at` of shared memory on.
    ///
    /// # Safety
    /// As [`Shared::load`], for the four; they are aligned as a vector.
    unsafe fn load4(words: Shared<Self>, at: u32) -> [Self; 4];
    /// As [`load4`](Word::load4), of two.
    ///
    /// # Safety
    /// As [`load4`](Word::load4).
    unsafe fn load2(words: Shared<Self>, at: u32) -> [Self; 2];
    /// Inverse of [`load4`](Word::load4).
    ///
    /// # Safety
    /// As [`Shared::store`], for the four; they are aligned as a vector.
    unsafe fn store4(words: Shared<Self>, at: u32, values: [Self; 4]);
}

macro_rules! word {
    ($($real:ty),*) => {$(
        impl Word for $real {
            #[inline(always)]
            #[track_caller]
            unsafe fn load4(words: Shared<Self>, at: u32) -> [Self; 4] {
                // SAFETY: the caller's promise.
                let Vec4 { x, y, z, w } = unsafe { words.after::<Vec4<$real>>(at).load(0) };
                [x, y, z, w]
            }

            #[inline(always)]
            #[track_caller]
            unsafe fn load2(words: Shared<Self>, at: u32) -> [Self; 2] {
                // SAFETY: the caller's promise.
                unsafe { words.after::<Vec2<$real>>(at).load(0) }.into()
            }

            #[inline(always)]
            #[track_caller]
            unsafe fn store4(words: Shared<Self>, at: u32, [x, y, z, w]: [Self; 4]) {
                // SAFETY: the caller's promise.
                unsafe { words.after::<Vec4<$real>>(at).store(0, Vec4 { x, y, z, w }) }
            }
        }
    )*};
}

word!(f32, f64);

/// A source in shared memory: position and mass; velocity and the last component of the
/// acceleration; the others of that; low parts of the position.
pub(super) const fn source_scalars(digits: DigitsName, order: u32) -> u32 {
    match (order == 6, digits.low()) {
        (true, true) => 16,
        (true, false) | (false, true) => 12,
        (false, false) => 8,
    }
}

/// Vectors of a target in global memory: position, velocity and low parts of the position, each with
/// a component of the acceleration.
pub(super) const fn target_vectors(digits: DigitsName, order: u32) -> u32 {
    if order == 6 || digits.low() { 3 } else { 2 }
}

/// Numbers of a target, packed.
pub(super) const fn target_scalars(digits: DigitsName, order: u32) -> u32 {
    6 + if order == 6 { 3 } else { 0 } + if digits.low() { 3 } else { 0 }
}

/// Vectors of a target's sums in global memory: acceleration with the fastest approach, jerk with the closeness of the nearest
/// source, snap.
pub(super) const fn partial_vectors(order: u32) -> u32 {
    if order == 6 { 3 } else { 2 }
}

/// Targets that are kept in shared memory while they are computed, if there are no more.
pub(super) const fn staged(threads: u32) -> u32 {
    threads / 2
}

/// Targets, of those that are spread over all warps, up to which a thread has one.
pub(super) const fn few(threads: u32) -> u32 {
    threads / 2
}

const _: () = assert!(WARP_SIZE == 32, "lanes are shared out by halves");

/// A target in registers.
#[derive(Clone, Copy)]
pub(super) struct Target<R> {
    pub(super) x: [R; 3],
    pub(super) low: [R; 3],
    pub(super) v: [R; 3],
    pub(super) a: [R; 3],
}

/// Position and what it rounds off, velocity and acceleration in the digits of pairs.
#[inline(always)]
pub(super) fn rounded<D: Digits>([x, v, a]: Moving) -> Target<D::Real> {
    let of = |v: [f64; 3]| v.map(D::Real::from_f64);
    let high = of(x);
    let low = if D::LOW {
        let rest = |k: usize| D::Real::from_f64(x[k] - high[k].to_f64());
        [rest(0), rest(1), rest(2)]
    } else {
        [D::Real::from_f64(0.0); 3]
    };
    Target {
        x: high,
        low,
        v: of(v),
        a: of(a),
    }
}

impl<R: Word> Target<R> {
    #[inline(always)]
    pub(super) fn nowhere() -> Self {
        let zero = [R::from_f64(0.0); 3];
        Self {
            x: zero,
            low: zero,
            v: zero,
            a: zero,
        }
    }

    /// Target `index` of `targets`.
    ///
    /// # Safety
    /// `targets` has that many targets of the scheme and the digits, which nobody writes in this
    /// launch.
    #[inline(always)]
    pub(super) unsafe fn fetch<S: Scheme, D: Digits<Real = R>>(
        targets: *const Vec4<R>,
        index: u32,
    ) -> Self {
        const { assert!(size_of::<Vec4<R>>() == 4 * size_of::<R>()) }
        let vectors = const { target_vectors(D::NAME, S::ORDER) };
        let targets = targets.wrapping_add(index as usize * vectors as usize);
        // SAFETY: the caller's promise.
        unsafe {
            let first = global::load(targets, 0);
            let second = global::load(targets, 1);
            let mut target = Self {
                x: [first.x, first.y, first.z],
                v: [second.x, second.y, second.z],
                ..Self::nowhere()
            };
            if vectors == 3 {
                let third = global::load(targets, 2);
                target.low = [third.x, third.y, third.z];
                target.a = [first.w, second.w, third.w];
            }
            target
        }
    }

    /// Inverse of [`fetch`](Self::fetch).
    ///
    /// # Safety
    /// As there, and only this thread accesses the target.
    #[inline(always)]
    pub(super) unsafe fn put<S: Scheme, D: Digits<Real = R>>(
        &self,
        targets: *mut Vec4<R>,
        index: u32,
    ) {
        let vectors = const { target_vectors(D::NAME, S::ORDER) };
        let targets = targets.wrapping_add(index as usize * vectors as usize);
        let Self { x, low, v, a } = *self;
        let with = |[x, y, z]: [R; 3], w| Vec4 { x, y, z, w };
        // SAFETY: the caller's promise.
        unsafe {
            global::store(targets, 0, with(x, a[0]));
            global::store(targets, 1, with(v, a[1]));
            if vectors == 3 {
                global::store(targets, 2, with(low, a[2]));
            }
        }
    }

    /// Calls `with` for the numbers that scheme and digits have, in order.
    #[inline(always)]
    pub(super) fn each<S: Scheme, D: Digits>(&mut self, mut with: impl FnMut(u32, &mut R)) {
        let mut at = 0;
        let mut all = |vector: &mut [R; 3]| {
            for number in vector {
                with(at, number);
                at += 1;
            }
        };
        all(&mut self.x);
        all(&mut self.v);
        if D::LOW {
            all(&mut self.low);
        }
        if S::SNAP {
            all(&mut self.a);
        }
    }

    /// Puts the source that this would be, with a mass, into shared memory.
    ///
    /// # Safety
    /// `sources` has room for the record, and no other thread accesses it.
    #[inline(always)]
    pub(super) unsafe fn put_source<S: Scheme, D: Digits<Real = R>>(
        &self,
        mass: R,
        sources: Shared<R>,
        slot: u32,
    ) {
        let at = slot * const { source_scalars(D::NAME, S::ORDER) };
        let zero = R::from_f64(0.0);
        let Self { x, low, v, a } = *self;
        // SAFETY: the caller's promise.
        unsafe {
            R::store4(sources, at, [x[0], x[1], x[2], mass]);
            R::store4(sources, at + 4, [v[0], v[1], v[2], a[2]]);
            match (S::SNAP, D::LOW) {
                (true, true) => {
                    R::store4(sources, at + 8, [a[0], a[1], low[0], low[1]]);
                    R::store4(sources, at + 12, [low[2], zero, zero, zero]);
                }
                (true, false) => R::store4(sources, at + 8, [a[0], a[1], zero, zero]),
                (false, true) => R::store4(sources, at + 8, [low[0], low[1], low[2], zero]),
                (false, false) => {}
            }
        }
    }
}

/// A source in registers, without its low parts.
#[derive(Clone, Copy)]
pub(super) struct Source<R> {
    pub(super) x: [R; 3],
    pub(super) mass: R,
    pub(super) v: [R; 3],
    pub(super) a: [R; 3],
}

impl<R: Word> Source<R> {
    #[inline(always)]
    pub(super) fn nothing() -> Self {
        let zero = R::from_f64(0.0);
        Self {
            x: [zero; 3],
            mass: zero,
            v: [zero; 3],
            a: [zero; 3],
        }
    }

    /// Source that [`Target::put_source`] put there.
    ///
    /// # Safety
    /// As [`Shared::load`], for the record.
    #[inline(always)]
    pub(super) unsafe fn load<S: Scheme, D: Digits<Real = R>>(
        sources: Shared<R>,
        slot: u32,
    ) -> Self {
        let at = slot * const { source_scalars(D::NAME, S::ORDER) };
        // SAFETY: the caller's promise.
        unsafe {
            let [x, y, z, mass] = R::load4(sources, at);
            let [u, v, w, last] = R::load4(sources, at + 4);
            let mut source = Self {
                x: [x, y, z],
                mass,
                v: [u, v, w],
                ..Self::nothing()
            };
            if S::SNAP {
                let [first, second] = R::load2(sources, at + 8);
                source.a = [first, second, last];
            }
            source
        }
    }

    /// The low parts of its position.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    #[inline(always)]
    pub(super) unsafe fn low<S: Scheme, D: Digits<Real = R>>(
        sources: Shared<R>,
        slot: u32,
    ) -> [R; 3] {
        let at = slot * const { source_scalars(D::NAME, S::ORDER) };
        let at = at + if S::SNAP { 10 } else { 8 };
        // SAFETY: the caller's promise.
        unsafe {
            let [x, y] = R::load2(sources, at);
            [x, y, sources.load(at + 2)]
        }
    }
}

/// The sums of a target, or a part of them.
#[derive(Clone, Copy)]
pub(super) struct Sums<R> {
    /// Accelerations, jerks and snaps, per G.
    pub(super) vectors: [[R; 3]; 3],
    /// The largest `3 |r·v| / d²` of a pair.
    pub(super) approach: R,
    /// The largest `1 / d²` of a pair.
    pub(super) closeness: R,
}

impl<R: Word> Sums<R> {
    #[inline(always)]
    pub(super) fn none() -> Self {
        let zero = R::from_f64(0.0);
        Self {
            vectors: [[zero; 3]; 3],
            approach: zero,
            closeness: zero,
        }
    }

    /// Numbers of the sums in order, approach and closeness first; snaps come last.
    #[inline(always)]
    pub(super) fn numbers(&self) -> [R; MOST_SUMS] {
        let [a, j, s] = self.vectors;
        [
            self.approach,
            self.closeness,
            a[0],
            a[1],
            a[2],
            j[0],
            j[1],
            j[2],
            s[0],
            s[1],
            s[2],
        ]
    }

    /// Inverse of [`numbers`](Self::numbers).
    #[inline(always)]
    pub(super) fn of(n: [R; MOST_SUMS]) -> Self {
        Self {
            approach: n[0],
            closeness: n[1],
            vectors: [[n[2], n[3], n[4]], [n[5], n[6], n[7]], [n[8], n[9], n[10]]],
        }
    }

    /// These and others, of the same target and other sources.
    #[inline(always)]
    pub(super) fn and(&self, other: &Self) -> Self {
        let (all, others) = (self.numbers(), other.numbers());
        let mut both = all;
        for (k, both) in both.iter_mut().enumerate() {
            *both = together(k as u32, all[k], others[k]);
        }
        Self::of(both)
    }

    /// The sums of target `index`.
    ///
    /// # Safety
    /// `partials` has that many, written before this launch or by this thread.
    #[inline(always)]
    pub(super) unsafe fn fetch<S: Scheme>(partials: *const Vec4<R>, index: u32) -> Self {
        let vectors = const { partial_vectors(S::ORDER) };
        let partials = partials.wrapping_add(index as usize * vectors as usize);
        // SAFETY: the caller's promise.
        Self::of_vectors::<S>(|k| unsafe { global::load(partials, k) })
    }

    /// The sums of these vectors in memory.
    #[inline(always)]
    pub(super) fn of_vectors<S: Scheme>(load: impl Fn(u32) -> Vec4<R>) -> Self {
        let mut sums = Self::none();
        let (first, second) = (load(0), load(1));
        sums.approach = first.w;
        sums.closeness = second.w;
        sums.vectors[0] = [first.x, first.y, first.z];
        sums.vectors[1] = [second.x, second.y, second.z];
        if S::SNAP {
            let third = load(2);
            sums.vectors[2] = [third.x, third.y, third.z];
        }
        sums
    }

    /// Inverse of [`fetch`](Self::fetch).
    ///
    /// # Safety
    /// As there, and only this thread accesses them.
    #[inline(always)]
    pub(super) unsafe fn put<S: Scheme>(&self, partials: *mut Vec4<R>, index: u32) {
        let vectors = const { partial_vectors(S::ORDER) };
        let partials = partials.wrapping_add(index as usize * vectors as usize);
        let zero = R::from_f64(0.0);
        let with = |[x, y, z]: [R; 3], w| Vec4 { x, y, z, w };
        // SAFETY: the caller's promise.
        unsafe {
            global::store(partials, 0, with(self.vectors[0], self.approach));
            global::store(partials, 1, with(self.vectors[1], self.closeness));
            if S::SNAP {
                global::store(partials, 2, with(self.vectors[2], zero));
            }
        }
    }
}

/// Number `k` of the sums over two sets of sources.
#[inline(always)]
pub(super) fn together<R: GpuFloat>(k: u32, a: R, b: R) -> R {
    if k < 2 { a.larger(b) } else { a + b }
}

/// Index of number `k` of the sums among the scalars of their vectors.
#[inline(always)]
pub(super) fn scalar_of(k: u32) -> u32 {
    match k {
        0 => 3,
        1 => 7,
        2..5 => k - 2,
        5..8 => k - 1,
        _ => k,
    }
}
