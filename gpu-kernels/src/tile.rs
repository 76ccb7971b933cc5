//! A tile: as many sources as the block has threads, fetched once and read by all of them.

use crate::interaction::{Constants, PairLaw};
use crate::layout::{Layout, Source};
use crate::numerics::Arithmetic;
use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::{GpuFloat, thread};

/// A block's tile in shared memory: one slot per thread.
pub struct Tile<L: Layout> {
    words: Shared<L::Word>,
    capacity: u32,
}

impl<L: Layout> Tile<L> {
    /// The tile at the start of the block's dynamic shared memory, which must have room for
    /// [`TILE_WORDS`](Layout::TILE_WORDS) words per thread.
    #[inline(always)]
    pub fn of_block() -> Self {
        Self {
            words: dynamic_shared_mem(),
            capacity: thread::block_dim_x(),
        }
    }

    /// As [`of_block`](Self::of_block), with room for `capacity` sources, whatever the block.
    #[inline(always)]
    pub fn with_capacity(capacity: u32) -> Self {
        Self {
            words: dynamic_shared_mem(),
            capacity,
        }
    }

    /// Sources that fit.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Fills the tile with sources `first..first + capacity`, as far as there are any, and waits
    /// for the whole block, before as well: the last tile may still be in use. Returns how many
    /// there are.
    ///
    /// # Safety
    /// `state` is a state buffer of the layout with at least `n` bodies, and all threads of the
    /// block call this with the same arguments.
    #[inline(always)]
    pub unsafe fn fetch(&self, state: *const L::Word, stride: u32, n: u32, first: u32) -> u32 {
        let slot = thread::thread_idx_x();
        thread::sync_threads();
        if first + slot < n {
            // SAFETY: a body that exists goes to this thread's own slot.
            unsafe { self.fill(state, stride, first, slot) };
        }
        thread::sync_threads();
        (n - first).min(self.capacity)
    }

    /// As [`fetch`](Self::fetch), of a tile of any capacity: fills it with sources
    /// `first..first + count`, as far as they fit. Each thread has `AHEAD` of them on their way at a time, which takes
    /// registers; those beyond the last are the last once more, and are not kept.
    ///
    /// # Safety
    /// As [`fetch`](Self::fetch); the sources exist.
    #[inline(always)]
    pub unsafe fn fetch_together<const AHEAD: usize>(
        &self,
        state: *const L::Word,
        stride: u32,
        first: u32,
        count: u32,
    ) -> u32 {
        let count = count.min(self.capacity);
        thread::sync_threads();
        let threads = thread::block_dim_x();
        let mut slot = thread::thread_idx_x();
        while slot < count {
            // SAFETY: a source that exists goes to a slot that this thread alone fills.
            unsafe {
                let source = |k: usize| {
                    let slot = slot + k as u32 * threads;
                    L::source(state, stride, first + slot.min(count - 1))
                };
                let mut sources = [source(0); AHEAD];
                for_each::<AHEAD>(|k| sources[k] = source(k));
                for_each::<AHEAD>(|k| {
                    let slot = slot + k as u32 * threads;
                    if slot < count {
                        L::set_tile_source(self.words, self.capacity, slot, sources[k]);
                    }
                });
            }
            slot += AHEAD as u32 * threads;
        }
        thread::sync_threads();
        count
    }

    /// As [`fetch`](Self::fetch), but the block counts how many sources there are.
    ///
    /// # Safety
    /// As [`fetch`](Self::fetch).
    #[inline(always)]
    pub unsafe fn fetch_counted(
        &self,
        state: *const L::Word,
        stride: u32,
        n: u32,
        first: u32,
    ) -> u32 {
        let slot = thread::thread_idx_x();
        let exists = first + slot < n;
        thread::sync_threads();
        if exists {
            // SAFETY: a body that exists goes to this thread's own slot.
            unsafe { self.fill(state, stride, first, slot) };
        }
        thread::sync_threads_count(exists)
    }

    /// Puts source `first + slot` into a slot.
    ///
    /// # Safety
    /// `state` is a state buffer of the layout with that body, and only this thread accesses the slot.
    #[inline(always)]
    unsafe fn fill(&self, state: *const L::Word, stride: u32, first: u32, slot: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let source = L::source(state, stride, first + slot);
            L::set_tile_source(self.words, self.capacity, slot, source);
        }
    }

    /// The source in a slot.
    ///
    /// # Safety
    /// The last [`fetch`](Self::fetch) filled the slot.
    #[inline(always)]
    pub unsafe fn source(&self, slot: u32) -> Source<L::Real> {
        // SAFETY: the caller's promise.
        unsafe { L::tile_source(self.words, self.capacity, slot) }
    }

    /// Adds the forces of sources `0..count` on `target` to `sum`, `UNROLL` at a time; the target
    /// itself is in slot `own`, if that is below `count`.
    ///
    /// # Safety
    /// As [`source`](Self::source), for all of `0..count`.
    #[inline(always)]
    pub unsafe fn interact<A: Arithmetic<Real = L::Real>, W: PairLaw, const UNROLL: u32>(
        &self,
        count: u32,
        own: u32,
        target: [A::Real; 3],
        constants: &Constants<A::Real>,
        sum: &mut [A::Real; 3],
    ) {
        let mut add = |slot| {
            if A::POLICY.skips_self && slot == own {
                return;
            }
            // SAFETY: the caller says that the slot is filled.
            let source = unsafe { self.source(slot) };
            W::interact::<A>(target, source, constants, sum);
        };
        sweep::<UNROLL>(count, &mut add);
    }
}

/// Sum of two vectors.
#[inline(always)]
pub(crate) fn added<R: GpuFloat>(a: [R; 3], b: [R; 3]) -> [R; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// `body(0); … body(count − 1);`, `UNROLL` calls to an iteration and the rest one by one.
#[inline(always)]
pub fn sweep<const UNROLL: u32>(count: u32, body: &mut impl FnMut(u32)) {
    let whole = count - count % UNROLL;
    let mut k = 0;
    while k < whole {
        unrolled::<UNROLL>(|step| body(k + step));
        k += UNROLL;
    }
    while UNROLL > 1 && k < count {
        body(k);
        k += 1;
    }
}

/// `body(0); body(1); … body(TIMES − 1);` as straight-line code.
///
/// Spelled out, because the compiler is told not to unroll loops by itself: the factor in a kernel's
/// name is the factor in its PTX.
#[inline(always)]
pub fn unrolled<const TIMES: u32>(body: impl FnMut(u32)) {
    const {
        assert!(
            spelled_out(TIMES),
            "add the factor to the list in `spell_out`"
        )
    }
    spell_out(TIMES, body);
}

/// `body(0); … body(N − 1);` as straight-line code, to index arrays of `N` that shall stay in
/// registers.
#[inline(always)]
pub fn for_each<const N: usize>(mut body: impl FnMut(usize)) {
    const {
        assert!(
            spelled_out(N as u32),
            "add the factor to the list in `spell_out`"
        )
    }
    spell_out(N as u32, |k| body(k as usize));
}

/// `times` is a constant of the caller's, so that one arm remains.
#[inline(always)]
fn spell_out(times: u32, mut body: impl FnMut(u32)) {
    let mut k = 0;
    let mut next = || {
        body(k);
        k += 1;
    };
    match times {
        1 => repeat!(1 next),
        2 => repeat!(2 next),
        3 => repeat!(3 next),
        4 => repeat!(4 next),
        5 => repeat!(5 next),
        6 => repeat!(6 next),
        7 => repeat!(7 next),
        8 => repeat!(8 next),
        9 => repeat!(9 next),
        10 => repeat!(10 next),
        12 => repeat!(12 next),
        16 => repeat!(16 next),
        24 => repeat!(24 next),
        32 => repeat!(32 next),
        64 => repeat!(64 next),
        128 => repeat!(128 next),
        _ => unreachable!(),
    }
}

const fn spelled_out(times: u32) -> bool {
    matches!(times, 3 | 5 | 6 | 7 | 9 | 10 | 12 | 24) || (times.is_power_of_two() && times <= 128)
}

macro_rules! repeat {
    (1 $f:ident) => { $f() };
    (2 $f:ident) => {{ repeat!(1 $f); repeat!(1 $f) }};
    (3 $f:ident) => {{ repeat!(2 $f); repeat!(1 $f) }};
    (4 $f:ident) => {{ repeat!(2 $f); repeat!(2 $f) }};
    (5 $f:ident) => {{ repeat!(4 $f); repeat!(1 $f) }};
    (6 $f:ident) => {{ repeat!(4 $f); repeat!(2 $f) }};
    (7 $f:ident) => {{ repeat!(6 $f); repeat!(1 $f) }};
    (8 $f:ident) => {{ repeat!(4 $f); repeat!(4 $f) }};
    (9 $f:ident) => {{ repeat!(8 $f); repeat!(1 $f) }};
    (10 $f:ident) => {{ repeat!(8 $f); repeat!(2 $f) }};
    (12 $f:ident) => {{ repeat!(8 $f); repeat!(4 $f) }};
    (16 $f:ident) => {{ repeat!(8 $f); repeat!(8 $f) }};
    (24 $f:ident) => {{ repeat!(16 $f); repeat!(8 $f) }};
    (32 $f:ident) => {{ repeat!(16 $f); repeat!(16 $f) }};
    (64 $f:ident) => {{ repeat!(32 $f); repeat!(32 $f) }};
    (128 $f:ident) => {{ repeat!(64 $f); repeat!(64 $f) }};
}
use repeat;

#[cfg(test)]
mod tests {
    #[test]
    fn unrolled_counts() {
        fn order<const TIMES: u32>() {
            let mut seen = Vec::new();
            super::unrolled::<TIMES>(|k| seen.push(k));
            assert_eq!(seen, (0..TIMES).collect::<Vec<_>>());
        }
        order::<1>();
        order::<2>();
        order::<3>();
        order::<4>();
        order::<5>();
        order::<7>();
        order::<8>();
        order::<9>();
        order::<10>();
        order::<12>();
        order::<16>();
        order::<24>();
        order::<32>();
        order::<64>();
        order::<128>();
    }
}
