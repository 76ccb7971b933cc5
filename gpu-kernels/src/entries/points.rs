//! The kernels for fields at points.

use super::{Entry, Work};
use crate::abi::Params;
use crate::layout::{Float4, Layout};
use crate::numerics::{Approximate, Arithmetic, Fused, Numerics, Softened, Unsoftened};
use crate::schedule::points::{self, Field, Quantity, Tides};
use cuda_std::{emulated, kernel};

macro_rules! at_points {
    ($symbol:expr, $layout:ty, $quantity:ty, $sums:expr, $lane:literal, $unroll:literal, $closest:ty) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        entry!(
            $symbol,
            $layout,
            Work::AtPoints {
                quantity: <$quantity as Quantity<{ $sums }>>::NAME,
                numerics: Chosen::POLICY,
                unroll: $unroll,
                lane: $lane,
            },
            (points: *const Word, sources: *const Word, sums: *mut f64)
                => points::sums::<$layout, Chosen, $quantity, { $sums }, $lane, $unroll>
        )
    }};
}

/// A line each, compiled for ε > 0 and ε = 0: layout, quantity and its sums, points per thread, and the
/// unroll factor.
macro_rules! all_at_points {
    ($($name:literal: $layout:ty, $quantity:ty, $sums:expr, $lane:literal, $unroll:literal;)*) => {
        /// The sums over sources, at points.
        pub const AT_POINTS: &[Entry] = &[$(
            at_points!($name, $layout, $quantity, $sums, $lane, $unroll, Softened),
            at_points!(concat!($name, "_eps0"), $layout, $quantity, $sums, $lane, $unroll, Unsoftened),
        )*];
    };
}

all_at_points! {
    "field_at_points_float4_f32": Float4<f32>, Field, points::FIELD_SUMS, 2, 16;
    "field_at_points_float4_f64": Float4<f64>, Field, points::FIELD_SUMS, 2, 4;
    "tides_at_points_float4_f32": Float4<f32>, Tides, points::TIDES_SUMS, 2, 8;
    "tides_at_points_float4_f64": Float4<f64>, Tides, points::TIDES_SUMS, 1, 4;
}

/// The sums over all slices of the sources, whatever is summed.
pub const SUM_AT_POINTS: Entry = entry!(
    "sum_at_points",
    Float4<f64>,
    Work::SumAtPoints,
    (partial: *const f64, total: *mut f64) => points::sum
);
