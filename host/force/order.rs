//! Bodies in an order in which neighbours in memory are neighbours in space.

use gpu_kernels::abi::Separation;

use crate::force::Law;

/// Fewer bodies are ordered by one thread.
const WORTH_A_THREAD: usize = 8192;

/// Which body is in which slot of a device's buffers.
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

    /// An order in which each `leaf` bodies in a row lie side by side in space, and so does each
    /// power of two of leaves: halves along the longest axis, halved again.
    pub(super) fn in_space(positions: &[[f64; 3]], leaf: u32) -> Self {
        let placed = (0..).zip(positions);
        let mut placed: Vec<Placed> = placed
            .map(|(body, x)| Placed {
                at: x.map(|x| x as f32), // as near as an order needs
                body,
            })
            .collect();
        halve(&mut placed, leaf as usize);
        Self {
            bodies: placed.into_iter().map(|placed| placed.body).collect(),
        }
    }

    /// These slots, filled from other slots instead of from bodies.
    pub(super) fn of(&self, slots: &Self) -> Self {
        Self {
            bodies: self.to_slots(&slots.bodies),
        }
    }

    /// The number of the body of each slot, in order.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.bodies
    }

    /// The body of each slot, in order.
    pub(super) fn bodies(&self) -> impl Iterator<Item = usize> + '_ {
        self.bodies.iter().map(|&body| body as usize)
    }

    /// What belongs to the slots, by body.
    pub(super) fn to_bodies<T: Copy>(&self, by_slot: &[T]) -> Vec<T> {
        let mut by_body = by_slot.to_vec();
        for (&value, body) in by_slot.iter().zip(self.bodies()) {
            by_body[body] = value;
        }
        by_body
    }

    /// What belongs to the bodies, by slot.
    pub(super) fn to_slots<T: Copy>(&self, by_body: &[T]) -> Vec<T> {
        self.bodies().map(|body| by_body[body]).collect()
    }
}

/// A body where it is: side by side, since halving looks at each of them over and over.
#[derive(Clone, Copy)]
struct Placed {
    at: [f32; 3],
    body: u32,
}

fn halve(bodies: &mut [Placed], leaf: usize) {
    if bodies.len() <= leaf {
        return;
    }
    let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    for Placed { at, .. } in &*bodies {
        low = [0, 1, 2].map(|axis| low[axis].min(at[axis]));
        high = [0, 1, 2].map(|axis| high[axis].max(at[axis]));
    }
    let length = |axis: &usize| high[*axis] - low[*axis];
    let axis = (0..3)
        .max_by(|a, b| length(a).total_cmp(&length(b)))
        .unwrap_or(0);
    // Whole leaves to the left, a power of two of them if that leaves at least half as many.
    let leaves = bodies.len().div_ceil(leaf);
    let power = leaves.next_power_of_two() / 2;
    let left = power.min((leaves - power / 2).max(1));
    bodies.select_nth_unstable_by(left * leaf, |a, b| a.at[axis].total_cmp(&b.at[axis]));
    let (first, second) = bodies.split_at_mut(left * leaf);
    if first.len() + second.len() < WORTH_A_THREAD {
        halve(first, leaf);
        halve(second, leaf);
    } else {
        rayon::join(|| halve(first, leaf), || halve(second, leaf));
    }
}

/// Which pairs of these bodies are far enough for tensor cores, in the units of the arguments: the
/// formulas are explained at [`gpu_kernels::schedule::separated`].
pub(super) fn separation(
    positions: &[[f64; 3]],
    masses: &[f64],
    law: Law,
    softening: f64,
) -> Separation {
    let weight = |i: usize| match law {
        Law::Unit => 1.0,
        Law::Gravity | Law::AttractRepel { .. } => masses[i],
    };
    let (mut sum, mut squares, mut moment) = (0.0, 0.0, [0.0; 3]);
    for (i, position) in positions.iter().enumerate() {
        let m = weight(i);
        sum += m;
        squares += m * m;
        moment = [0, 1, 2].map(|axis| moment[axis] + m * position[axis]);
    }
    // Without masses there are no forces, right at any distance.
    let total = if sum > 0.0 { sum } else { 1.0 };
    let typical = squares / total;
    let mut radii: Vec<f64> = positions
        .iter()
        .map(|x| {
            let square = |axis: usize| (x[axis] - moment[axis] / total).powi(2);
            (square(0) + square(1) + square(2)).sqrt()
        })
        .collect();
    let half = radii.len() / 2;
    let radius = match radii.is_empty() {
        true => 0.0,
        false => *radii.select_nth_unstable_by(half, f64::total_cmp).1,
    };
    Separation {
        // Softened pairs are not nearer than ε, so as large a gap costs nothing.
        gap: (radius * (RADII_AT_GAP * typical / total).max(SMALLEST_PART))
            .max(softening)
            .clamp(SMALLEST_GAP, LARGEST_GAP),
        square_per_mass: STRONGEST_PULLS * radius * radius / total,
    }
}

/// gap = 2000 R M_eff / M.
const RADII_AT_GAP: f64 = 2000.0;

/// Of the radius, however many bodies there are.
const SMALLEST_PART: f64 = 1.0 / 48.0;

/// A typical pull is at least 32 of any far body.
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
    fn every_body_has_a_slot() {
        for n in [1, 2, 31, 32, 33, 64, 65, 100, 1000, 20_000] {
            let slots = Slots::in_space(&positions(n), 32);
            let numbers: Vec<usize> = (0..n).collect();
            assert_eq!(slots.to_bodies(&slots.to_slots(&numbers)), numbers);
            let mut bodies: Vec<usize> = slots.bodies().collect();
            bodies.sort_unstable();
            assert_eq!(bodies, numbers);
        }
        assert!(Slots::in_space(&[], 32).bodies().next().is_none());
        assert_eq!(Slots::in_space(&[[0.5; 3]; 100], 32).bodies().count(), 100);
    }

    /// The boxes of leaves in order are smaller than those of leaves as given.
    #[test]
    fn leaves_are_compact() {
        let positions = positions(4096);
        let volume = |slots: &Slots| {
            let placed = slots.to_slots(&positions);
            let volumes = placed.chunks(32).map(|leaf| {
                let side = |axis: usize| {
                    let at = || leaf.iter().map(|x| x[axis]);
                    at().fold(f64::MIN, f64::max) - at().fold(f64::MAX, f64::min)
                };
                side(0) * side(1) * side(2)
            });
            volumes.sum::<f64>()
        };
        let (given, ordered) = (
            volume(&Slots::as_given(4096)),
            volume(&Slots::in_space(&positions, 32)),
        );
        // 128 boxes, each nearly the whole, against 128 parts of the whole.
        assert!(ordered < given / 50.0, "{given} {ordered}");
    }

    #[test]
    fn fewer_bodies_are_nearer() {
        let of = |n: usize, masses: &dyn Fn(usize) -> f64| {
            let masses: Vec<f64> = (0..n).map(masses).collect();
            separation(&positions(n), &masses, Law::Gravity, 0.0)
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
