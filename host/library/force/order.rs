//! Order of bodies in a device's memory, and the acceptance criterion for far pairs.

use gpu_kernels::abi::Separation;
use gpu_kernels::schedule::spatial_sort;

use crate::parallel::{self, ELEMENTWISE};
use crate::physics::ForceLaw;
use crate::vectors::axes;

/// Map from the slots of a device's buffers to bodies.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// The body of each slot.
    bodies: Vec<u32>,
}

impl Slots {
    /// Body i in slot i.
    pub(super) fn as_given(n: u32) -> Self {
        Self {
            bodies: (0..n).collect(),
        }
    }

    /// These bodies in the slots.
    pub(super) const fn of(bodies: Vec<u32>) -> Self {
        Self { bodies }
    }

    /// The number of the body of each slot, in order.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.bodies
    }

    /// The body of each slot, in order.
    pub(super) fn bodies(&self) -> impl Iterator<Item = usize> + '_ {
        self.bodies.iter().map(|&body| body as usize)
    }

    /// The slot of each body, in order.
    pub(super) fn by_body(&self) -> Vec<u32> {
        let mut slots = vec![0; self.bodies.len()];
        for (slot, body) in (0..).zip(self.bodies()) {
            slots[body] = slot;
        }
        slots
    }

    /// Reorders values given by slot to values by body.
    pub(super) fn to_bodies<T: Copy + Send + Sync>(&self, by_slot: &[T]) -> Vec<T> {
        let slots = self.by_body();
        parallel::each(slots.len(), ELEMENTWISE, |body| {
            by_slot[slots[body] as usize]
        })
    }

    /// Reorders values given by body to values by slot.
    pub(super) fn to_slots<T: Copy>(&self, by_body: &[T]) -> Vec<T> {
        self.bodies().map(|body| by_body[body]).collect()
    }
}

/// Bodies whose sums are taken by one thread: sums do not depend on the number of threads.
const BODIES_OF_A_SUM: usize = 4096;

/// Acceptance criterion: which pairs of these bodies are far enough for tensor cores, in the units
/// of the arguments: the formulas are explained at [`gpu_kernels::schedule::separated`]. And the
/// cube in which they are
/// [ordered](gpu_kernels::schedule::spatial_sort): its lowest corner, and cells in a length.
pub(super) fn measured(
    positions: &[[f64; 3]],
    masses: &[f64],
    law: ForceLaw,
    softening: f64,
) -> (Separation, [f32; 4]) {
    let weight = |i: usize| match law {
        ForceLaw::Unit => 1.0,
        ForceLaw::Gravity | ForceLaw::AttractRepel { .. } => masses[i],
    };
    let parts: Vec<_> = positions.chunks(BODIES_OF_A_SUM).collect();
    let sums_of = |part: usize| {
        let (mut sum, mut squares, mut moment) = (0.0, 0.0, [0.0; 3]);
        for (i, position) in (part * BODIES_OF_A_SUM..).zip(parts[part]) {
            let m = weight(i);
            sum += m;
            squares += m * m;
            moment = axes(|axis| moment[axis] + m * position[axis]);
        }
        (sum, squares, moment)
    };
    let (mut sum, mut squares, mut moment) = (0.0, 0.0, [0.0; 3]);
    for part in parallel::each(parts.len(), 1, sums_of) {
        sum += part.0;
        squares += part.1;
        moment = axes(|axis| moment[axis] + part.2[axis]);
    }
    // Without masses there are no forces, right at any distance.
    let total = if sum > 0.0 { sum } else { 1.0 };
    let typical = squares / total;
    let mut radii = parallel::each(positions.len(), ELEMENTWISE, |i| {
        let square = |axis: usize| (positions[i][axis] - moment[axis] / total).powi(2);
        (square(0) + square(1) + square(2)).sqrt()
    });
    let half = radii.len() / 2;
    let radius = match radii.is_empty() {
        true => 0.0,
        false => *radii.select_nth_unstable_by(half, f64::total_cmp).1,
    };
    let separation = Separation {
        // Softened pairs are not nearer than ε, so as large a gap costs nothing.
        gap: (radius * (RADII_AT_GAP * typical / total).max(SMALLEST_PART))
            .max(softening)
            .clamp(SMALLEST_GAP, LARGEST_GAP),
        square_per_mass: STRONGEST_PULLS * radius * radius / total,
    };
    let centre = moment.map(|m| m / total);
    let distances = parallel::each(positions.len(), ELEMENTWISE, |i| {
        let along = axes(|axis| (positions[i][axis] - centre[axis]).abs());
        along.into_iter().fold(0.0, f64::max)
    });
    let half_side = distances
        .into_iter()
        .fold(0.0, f64::max)
        .min(RADII_IN_CUBE * radius);
    let [x, y, z] = centre.map(|c| (c - half_side) as f32);
    let cells = f64::from(1_u32 << spatial_sort::BITS) / (2.0 * half_side);
    (separation, [x, y, z, cells.min(f64::from(f32::MAX)) as f32])
}

/// Largest extent of the cube, in median radii: a larger one would make cells too coarse for most
/// bodies.
const RADII_IN_CUBE: f64 = 4.0;

/// gap = 2000 R M_eff / M.
const RADII_AT_GAP: f64 = 2000.0;

/// Of the radius, however many bodies there are.
const SMALLEST_PART: f64 = 1.0 / 48.0;

/// A typical acceleration is at least 32 times the contribution of any far body.
const STRONGEST_PULLS: f64 = 32.0;

/// So that scales by it are f32 numbers; in systems of extent 1, where either makes all pairs near
/// that matter.
const SMALLEST_GAP: f64 = 1.0 / 1048576.0;
const LARGEST_GAP: f64 = 1048576.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(n: usize) -> Vec<[f64; 3]> {
        let at = |i: usize| [0.731, 1.137, 0.377].map(|f| (1.0 + 37.0 * f * i as f64).sin());
        (0..n).map(at).collect()
    }

    #[test]
    fn slots_are_a_permutation_and_its_inverse() {
        let slots = Slots::of(vec![2, 0, 3, 1]);
        assert_eq!(slots.to_slots(&["a", "b", "c", "d"]), ["c", "a", "d", "b"]);
        assert_eq!(slots.to_bodies(&["c", "a", "d", "b"]), ["a", "b", "c", "d"]);
        assert_eq!(Slots::as_given(3).numbers(), [0, 1, 2]);
    }

    #[test]
    fn the_cube_is_around_the_bodies_but_for_strangers() {
        let mut positions = positions(1000);
        let masses = vec![1.0; 1000];
        let cube = |positions: &[[f64; 3]]| measured(positions, &masses, ForceLaw::Gravity, 0.0).1;
        let [x, y, z, cells] = cube(&positions).map(f64::from);
        let side = 1024.0 / cells;
        for p in &positions {
            for (x, low) in p.iter().zip([x, y, z]) {
                assert!((low - 1e-6..=low + side + 1e-6).contains(x));
            }
        }
        positions[7] = [1e9; 3];
        let far = 1024.0 / f64::from(cube(&positions)[3]);
        assert!(far.is_finite() && far > 0.0);
        for degenerate in [&[][..], &[[0.5; 3]; 1], &[[0.0; 3]; 9]] {
            let (_, cube) = measured(
                degenerate,
                &masses[..degenerate.len()],
                ForceLaw::Gravity,
                0.0,
            );
            assert!(cube.iter().all(|x| x.is_finite()), "{cube:?}");
        }
    }

    #[test]
    fn fewer_bodies_are_nearer() {
        let of = |n: usize, masses: &dyn Fn(usize) -> f64| {
            let masses: Vec<f64> = (0..n).map(masses).collect();
            measured(&positions(n), &masses, ForceLaw::Gravity, 0.0).0
        };
        let (few, many) = (of(1000, &|_| 0.5), of(16_000, &|_| 0.5));
        // As many pulls make up a typical one, each of a smaller part.
        assert!((few.gap / many.gap / 16.0 - 1.0).abs() < 0.1);
        assert!((few.square_per_mass / many.square_per_mass / 16.0 - 1.0).abs() < 0.1);
        let sun = of(16_000, &|i| if i == 7 { 1.0 } else { 1e-9 });
        assert!(sun.gap > 1000.0, "nothing is far where one body is all");
        for degenerate in [of(0, &|_| 1.0), of(1, &|_| 1.0), of(9, &|_| 0.0)] {
            assert!(degenerate.gap > 0.0 && degenerate.gap.is_finite());
            assert!(degenerate.square_per_mass >= 0.0 && degenerate.square_per_mass.is_finite());
        }
    }
}
