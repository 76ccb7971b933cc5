//! Parts common to the schedules on tensor cores: which lane holds which part of the fragments, and
//! numbers as sums of halves.

use crate::interaction::inverse_cube;
use cuda_std::GpuFloat;
use cuda_std::matrix::{multiply_add, pack_halves, transpose, unpack_halves};
use cuda_std::warp::{self, Shuffle};

/// Scale of `(m x, m)` as halves, for masses ≤ 1 and |x| ≤ 128.
pub(super) const WEIGHT_SCALE: f32 = 256.0;
/// Scale of second parts: 2¹¹, the bits of a half, so that they are as large as the first.
pub(super) const SECOND_PART: f32 = 2048.0;

/// A lane's place in the fragments: see [`cuda_std::matrix`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) index: u32,
    /// Row, and row + 8, of targets and sources that it packs and sums.
    pub(super) row: u32,
    /// Coordinate of them, and 3 for the mass.
    pub(super) component: u32,
    /// Factor of the lane's part of a square: 1 for the first of its halves, and the
    /// inverse of their scale for the others.
    one: f32,
}

impl Lane {
    #[inline(always)]
    pub(super) fn of_thread() -> Self {
        let index = warp::lane_id();
        let component = index % 4;
        Self {
            index,
            row: index / 4,
            component,
            one: if component == 0 {
                1.0
            } else {
                1.0 / SECOND_PART
            },
        }
    }

    #[inline(always)]
    pub(super) fn has_mass(self) -> bool {
        self.component == 3
    }

    /// Value that the lane of the same row that has the mass passes.
    #[inline(always)]
    pub(super) fn of_mass(self, value: f32) -> f32 {
        value.shuffle(self.index | 3)
    }

    /// Sum over the four lanes of a row.
    #[inline(always)]
    pub(super) fn sum_of_row(self, value: f32) -> f32 {
        let pair = value + value.shuffle(self.index ^ 1);
        pair + pair.shuffle(self.index ^ 2)
    }
}

/// The half next to a number.
#[inline(always)]
pub(super) fn rounded(x: f32) -> f32 {
    let [half, _] = unpack_halves(pack_halves(x, 0.0));
    half
}

/// A number as the sum of three halves, the last two of them scaled: however small it is, they are
/// good to 2⁻³⁵.
#[inline(always)]
pub(super) fn split_in_three(x: f32) -> [f32; 3] {
    let first = rounded(x);
    let rest = SECOND_PART * (x - first);
    let second = rounded(rest);
    [first, second, rest - second]
}

/// The lane's part of a row of the left factor of the squared distances, from the coordinate of the
/// row's target that the lane has.
#[inline(always)]
pub(super) fn left_factor(lane: Lane, coordinate: f32, softening_squared: f32) -> [u32; 2] {
    let high = rounded(coordinate);
    let low = coordinate - high;
    let square = lane.sum_of_row(coordinate * coordinate) + softening_squared;
    let [first, second, third] = split_in_three(square);
    // Not by an index, which would take local memory.
    let part = match lane.component {
        1 => second,
        2 => third,
        _ => first,
    };
    let products = [
        pack_halves(-2.0 * high, -2.0 * high),
        pack_halves(-2.0 * low, part),
    ];
    let ones = [
        pack_halves(1.0, 1.0 / SECOND_PART),
        pack_halves(1.0 / SECOND_PART, 0.0),
    ];
    if lane.has_mass() { ones } else { products }
}

/// The lane's part of a column of the right factor of the squared distances, from the coordinate (0
/// where it has the mass) of the column's source that the lane has.
#[inline(always)]
pub(super) fn right_factor(lane: Lane, coordinate: f32) -> [u32; 2] {
    let square = lane.sum_of_row(coordinate * coordinate);
    // A coordinate is split in two and the square in three, by the same instructions: against the
    // second halves of the targets' first parts; and, in the place of the product of second parts, 1
    // against a third of the targets' squares.
    let [value, scale, last] = if lane.has_mass() {
        [square, SECOND_PART, 0.0]
    } else {
        [coordinate, 1.0, lane.one]
    };
    let rest = scale * (value - rounded(value));
    let third = if lane.has_mass() {
        rest - rounded(rest)
    } else {
        value
    };
    [pack_halves(value, rest), pack_halves(third, last)]
}

/// The lane's part of the right factor of the other side's sums, for eight bodies, from the
/// coordinate (0 where it has the mass) and the weight of one of them.
#[inline(always)]
pub(super) fn weights_of(lane: Lane, coordinate: f32, weight: f32) -> u32 {
    let unit = if lane.has_mass() { WEIGHT_SCALE } else { 0.0 };
    let value = weight * GpuFloat::mul_add(coordinate, WEIGHT_SCALE, unit);
    transpose(pack_halves(value, SECOND_PART * (value - rounded(value))))
}

/// The lane's component of the force on a body, from the negative of its coordinate and the sum over
/// the two parts of the weights, in units of `unit`. All lanes call it.
#[inline(always)]
pub(super) fn force(lane: Lane, unit: f32, negative: f32, [high, low]: [f32; 2]) -> f32 {
    let sum = GpuFloat::mul_add(low, 1.0 / SECOND_PART, high);
    unit * GpuFloat::mul_add(negative, lane.of_mass(sum), sum)
}

/// 1/d³ of 16 targets and 16 sources, as the left factor of the targets' sums.
#[inline(always)]
pub(super) fn cubes(left: [u32; 4], right: [[u32; 2]; 2]) -> [u32; 4] {
    let squares = right.map(|right| multiply_add(left, right, [0.0; 4]));
    let [[a, b, c, d], [e, f, g, h]] = squares.map(|squares| squares.map(inverse_cube));
    [
        pack_halves(a, b),
        pack_halves(c, d),
        pack_halves(e, f),
        pack_halves(g, h),
    ]
}

/// The left factor of the sources' sums, from that of the targets'.
#[inline(always)]
pub(super) fn transposed(cubes: [u32; 4]) -> [u32; 4] {
    // Quarters change places, and each is transposed.
    [cubes[0], cubes[2], cubes[1], cubes[3]].map(transpose)
}
