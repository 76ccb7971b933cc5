//! Loops that several threads share.
//!
//! Rayon compiles its plumbing again for each closure and each type, which was a fifth of the library. Here it is compiled
//! for one type, a part of a range, and loops over the numbers of a part are closures that it knows by reference.

use std::ops::Range;

use rayon::prelude::*;

/// Numbers that a thread takes where the work of each is little.
pub(crate) const ELEMENTWISE: usize = 1 << 9;

/// Memory that several threads write, each in places of its own.
struct Places<T>(*mut T);

// SAFETY: a place is written, or changed, by one thread; what is in it is sent to this thread and back.
unsafe impl<T: Send> Sync for Places<T> {}

impl<T> Places<T> {
    /// # Safety
    /// There are more than `i` places.
    const unsafe fn of(&self, i: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(i) }
    }
}

/// Calls `of` with parts of `0..count`, which together have each number once. Several threads do so if there are enough
/// parts of `least` numbers.
pub(crate) fn in_parts(count: usize, least: usize, of: &(dyn Fn(Range<usize>) + Sync)) {
    let halves = |part: Range<usize>| {
        let half = part.len() / 2;
        match half < least.max(1) {
            true => (part, None),
            false => (
                part.start..part.start + half,
                Some(part.start + half..part.end),
            ),
        }
    };
    match halves(0..count) {
        (all, None) => of(all),
        _ => rayon::iter::split(0..count, halves).for_each(of),
    }
}

/// Results for `0..count`, in order. Threads take at least `least` of them.
pub(crate) fn each<T: Send>(count: usize, least: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut all: Vec<T> = Vec::with_capacity(count);
    let places = Places(all.as_mut_ptr());
    let places = &places;
    in_parts(count, least, &|part| {
        for i in part {
            // SAFETY: parts have each number below `count` once, and there is room for `count`.
            unsafe { places.of(i).write(of(i)) };
        }
    });
    // SAFETY: the parts have all numbers below `count`. If one panics, so does `in_parts`.
    unsafe { all.set_len(count) };
    all
}

/// Results for items, in order. Threads take at least `least` of them.
pub(crate) fn each_of<'a, A: Sync, T: Send>(
    items: &'a [A],
    least: usize,
    of: impl Fn(&'a A) -> T + Sync,
) -> Vec<T> {
    each(items.len(), least, |k| of(&items[k]))
}

/// Calls `of` with each item and its number. Threads take at least `least` of them.
pub(crate) fn change<T: Send>(items: &mut [T], least: usize, of: impl Fn(usize, &mut T) + Sync) {
    let count = items.len();
    let places = Places(items.as_mut_ptr());
    let places = &places;
    in_parts(count, least, &|part| {
        for i in part {
            // SAFETY: `items` has more than `i`, is borrowed for as long, and parts have each number once.
            of(i, unsafe { &mut *places.of(i) });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_number_has_its_turn_once() {
        for (count, least) in [(0, 1), (1, 0), (7, 1), (7, 4), (1000, 3), (1000, 501)] {
            let squares = each(count, least, |i| i * i);
            assert_eq!(squares, (0..count).map(|i| i * i).collect::<Vec<_>>());
            let mut names = vec![String::new(); count];
            change(&mut names, least, |i, name| name.push_str(&i.to_string()));
            assert!(
                names
                    .iter()
                    .enumerate()
                    .all(|(i, name)| *name == i.to_string())
            );
            let shortest = AtomicUsize::new(count);
            in_parts(count, least, &|part| {
                shortest.fetch_min(part.len(), Ordering::Relaxed);
            });
            assert!(shortest.into_inner() >= least.min(count));
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let caught = std::panic::catch_unwind(|| {
            each(100, 1, |i| {
                assert_ne!(i, 50, "half");
                vec![i]
            })
        });
        assert!(caught.is_err());
    }
}
