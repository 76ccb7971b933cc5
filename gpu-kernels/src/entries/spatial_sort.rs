//! The kernels of the spatial sort.

use super::{Entry, Work};
use crate::abi::Params;
use crate::layout::Float4;
use crate::schedule::spatial_sort::{self as order, SortStage};
use cuda_std::vector::Vec4;
use cuda_std::{emulated, kernel};

type Bodies = Float4<f32>;

macro_rules! stage {
    ($symbol:literal, $stage:ident, $($rest:tt)*) => {
        entry!($symbol, Bodies, Work::SpatialSort(SortStage::$stage), $($rest)*)
    };
}

/// The stages of the spatial sort, in the order in which they are first launched.
#[rustfmt::skip]
pub const SPATIAL_SORT: &[Entry] = &[
    stage!("order_keys_float4_f32", Keys,
        (state: *const Vec4<f32>, bounds: *const Vec4<f32>, keys: *mut u32, order: *mut u32)
            => order::keys),
    stage!("order_count_float4_f32", Count,
        (keys: *const u32, starts: *mut u32) => order::count),
    stage!("order_scan_float4_f32", Scan,
        (starts: *mut u32) => order::scan),
    stage!("order_scatter_float4_f32", Scatter,
        (keys: *const u32, order: *const u32, starts: *const u32, keys_to: *mut u32, order_to: *mut u32)
            => order::scatter),
    stage!("order_halve_float4_f32", Halve,
        (state: *const Vec4<f32>, order: *mut u32) => order::halve),
    stage!("order_reorder_float4_f32", Reorder,
        (
            state: *const Vec4<f32>, acceleration: *const Vec4<f32>, order: *const u32,
            state_to: *mut Vec4<f32>, acceleration_to: *mut Vec4<f32>,
        ) => order::reorder::<Bodies>),
    stage!("order_renumber_float4_f32", Renumber,
        (numbers: *const u32, order: *const u32, numbers_to: *mut u32) => order::renumber),
];
