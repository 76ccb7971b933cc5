//! Far leaves by classes: how their pairs get 1/d³.

use super::SPAN;
use super::polynomials::{LARGEST_ALPHA, POLYNOMIALS, Polynomial, SMALLEST_ALPHA, rounded_alpha};
use crate::interaction::inverse_cube;
use crate::tile::for_each;
use cuda_std::GpuFloat;
use cuda_std::matrix::{multiply_add, multiply_halves, pack_halves};
use cuda_std::shared::Shared;
use cuda_std::vector::Vec4;
use cuda_std::warp;

/// Classes of leaves: one for each polynomial, and one by roots alone.
pub(in crate::schedule) const CLASSES: usize = POLYNOMIALS.len() + 1;

/// The class of the leaves by roots alone.
pub(in crate::schedule) const BY_ROOTS: usize = POLYNOMIALS.len();

/// Words of a [`List`], as vectors of four.
pub(in crate::schedule) const LIST_WORDS: u32 = SPAN;

/// A far leaf, and how its pairs are computed.
#[derive(Clone, Copy)]
pub(in crate::schedule) struct Entry {
    pub(in crate::schedule) leaf: u32,
    pub(in crate::schedule) class: u32,
    /// α.
    pub(in crate::schedule) alpha: f32,
    /// α^{3/2}.
    pub(in crate::schedule) strength: f32,
}

impl Entry {
    /// A leaf's, of the first class that it may belong to, of a number of classes with polynomials. Between the
    /// two are the squared distances of its bodies from the targets, ε counted as well. By roots it has the α
    /// `by_roots`.
    #[inline(always)]
    pub(in crate::schedule) fn of(
        leaf: u32,
        [smallest, largest]: [f32; 2],
        scale: f32,
        (polynomials, by_roots): (usize, f32),
    ) -> Self {
        let root = (0.5 * (scale * scale) * (smallest + largest)).rsqrt_approx();
        let alpha = rounded_alpha(root * root);
        let mut class = BY_ROOTS;
        if (SMALLEST_ALPHA..=LARGEST_ALPHA).contains(&alpha) {
            let mut next = polynomials;
            while next > 0 && largest <= POLYNOMIALS[next - 1].ratio * smallest {
                next -= 1;
                class = next;
            }
        }
        let alpha = if class == BY_ROOTS { by_roots } else { alpha };
        Self {
            leaf,
            class: class as u32,
            alpha,
            strength: alpha * (alpha * alpha.rsqrt_approx()),
        }
    }

    /// β of the sources `8 · tile` and on, and the factor of their weights.
    #[inline(always)]
    pub(in crate::schedule) fn packing(&self, tile: u32) -> [f32; 2] {
        let (mut shift, mut factor) = (0.0, self.strength);
        let mut class = 0;
        while class < BY_ROOTS {
            let polynomial = &POLYNOMIALS[class];
            if self.class == class as u32 && polynomial.takes(tile) {
                shift = polynomial.shift;
                factor = self.strength * polynomial.factor;
            }
            class += 1;
        }
        [shift, factor]
    }
}

/// A warp's list of far leaves, in shared memory.
#[derive(Clone, Copy)]
pub(in crate::schedule) struct List {
    pub(in crate::schedule) entries: Shared<Vec4<u32>>,
}

impl List {
    /// Sets the list to the entries of the lanes that have a far leaf, by rising class. Returns where
    /// each class ends. All lanes call it.
    ///
    /// # Safety
    /// No lane uses the former list any more.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn fill(self, entry: &Entry, is_far: bool) -> [u32; CLASSES] {
        let before = (1 << warp::lane_id()) - 1;
        let (mut end, mut place) = (0, 0);
        let mut ends = [0; CLASSES];
        for_each::<CLASSES>(|class| {
            let is_own = is_far && entry.class == class as u32;
            let own = warp::ballot(is_own);
            if is_own {
                place = end + (own & before).count_ones();
            }
            end += own.count_ones();
            ends[class] = end;
        });
        if is_far {
            let words = Vec4 {
                x: entry.leaf,
                y: entry.class,
                z: entry.alpha.to_bits(),
                w: entry.strength.to_bits(),
            };
            // SAFETY: a place of the lane's own; the caller's promise.
            unsafe { self.entries.store(place, words) }
        }
        ends
    }

    /// # Safety
    /// The list has it, and a barrier of the warp lies between.
    #[inline(always)]
    pub(in crate::schedule) unsafe fn entry(self, place: u32) -> Entry {
        // SAFETY: the caller's promise.
        let Vec4 { x, y, z, w } = unsafe { self.entries.load(place) };
        Entry {
            leaf: x,
            class: y,
            alpha: f32::from_bits(z),
            strength: f32::from_bits(w),
        }
    }
}

/// The polynomial of a tile of eight sources of a leaf, if it does not take roots.
#[inline(always)]
const fn polynomial<const CLASS: usize>(tile: u32) -> Option<&'static Polynomial> {
    if CLASS < BY_ROOTS && POLYNOMIALS[CLASS].takes(tile) {
        Some(&POLYNOMIALS[CLASS])
    } else {
        None
    }
}

#[inline(always)]
pub(in crate::schedule) fn factor<const CLASS: usize>(tile: u32) -> f32 {
    match polynomial::<CLASS>(tile) {
        Some(polynomial) => polynomial.factor,
        None => 1.0,
    }
}

/// 1/d³ of 16 targets and the sources of a tile of eight, as half of the left factor of the targets' sums. It is too
/// small by α^{3/2} and the polynomial's factor.
#[inline(always)]
pub(in crate::schedule) fn inverse_cubes<const CLASS: usize>(
    tile: u32,
    left: [u32; 4],
    right: [u32; 2],
) -> [u32; 2] {
    match polynomial::<CLASS>(tile) {
        Some(polynomial) => multiply_halves(left, right).map(|x| polynomial.of(x)),
        None => {
            let [a, b, c, d] = multiply_add(left, right, [0.0; 4]).map(inverse_cube);
            [pack_halves(a, b), pack_halves(c, d)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Criterion;
    use super::super::pack::WEIGHT_SCALE;
    use super::super::tests::{bounds, params};
    use super::*;
    use crate::schedule::fragments::{SECOND_PART, rounded};

    /// Leaves of every size and distance, up to the reach: what is packed of them are halves, and
    /// polynomials are asked for no more than they were fitted to.
    #[test]
    fn classes_are_within_the_range_of_halves() {
        let criterion = Criterion::around(bounds([-1.0; 3], [1.0; 3]), &params(1.0));
        let mut seen = [0; CLASSES];
        for steps in 0..4000 {
            // A gap of the block's size, and of all sizes of leaves to a hundred times as much.
            let gap = 1.0 * 1.01_f32.powi(steps % 740);
            let size = 0.5 + (steps / 740) as f32;
            let leaf = bounds([1.0 + gap, -0.5, 0.3], [1.0 + gap + size, 0.5, 0.4]);
            for scale in [1.0 / 2048.0, 1.0 / 32.0, 0.25, 1.0] {
                let squares = [
                    criterion.smallest_square(&leaf),
                    criterion.largest_square(&leaf),
                ];
                let entry = Entry::of(7, squares, scale, (BY_ROOTS, 1.0));
                let class = entry.class as usize;
                seen[class] += 1;
                let Some(polynomial) = POLYNOMIALS.get(class) else {
                    assert_eq!((entry.alpha, entry.strength), (1.0, 1.0));
                    continue;
                };
                assert_eq!(rounded(entry.alpha), entry.alpha);
                let second = entry.alpha / SECOND_PART;
                assert_eq!(rounded(second), second);
                let u = squares.map(|square| entry.alpha * scale * scale * square - 1.0);
                let limit = (polynomial.ratio - 1.0) / (polynomial.ratio + 1.0) + 1.0 / 32.0;
                assert!(-limit <= u[0] && u[1] <= limit, "{u:?}");
                let coordinate = scale * squares[1].sqrt();
                let weight = entry.strength * polynomial.factor.abs() * coordinate.max(1.0);
                assert!(WEIGHT_SCALE * weight <= 32768.0, "{weight}");
                assert!((entry.strength / entry.alpha.powf(1.5) - 1.0).abs() < 1e-6);
            }
        }
        assert!(seen.iter().all(|&leaves| leaves > 100), "{seen:?}");
    }
}
