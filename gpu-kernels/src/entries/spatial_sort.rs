//! The kernels of the spatial sort.

use super::{Entry, LayoutDescription, OLDEST, Scalars, Work};
use crate::abi::Params;
use crate::layout::Float4;
use crate::schedule::spatial_sort::{self as order, SortStage};
use cuda_std::vector::Vec4;
use cuda_std::{emulated, kernel};

type Bodies = Float4<f32>;

macro_rules! stage {
    ($symbol:literal, $stage:ident, $function:expr, $($writes:literal $at:literal $name:ident: $type:ty),*) => {{
        #[kernel(name = $symbol)]
        unsafe fn stage($($name: $type,)* params: Params) {
            // SAFETY: the launch's promise.
            unsafe { $function($($name,)* params) }
        }
        Entry {
            symbol: $symbol,
            work: Work::SpatialSort(SortStage::$stage),
            layout: LayoutDescription::of::<Bodies>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[$($writes),*],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { stage($(a.pointer($at),)* a.params) }),
        }
    }};
}

/// The stages of the spatial sort, in the order in which they are first launched.
#[rustfmt::skip]
pub const SPATIAL_SORT: &[Entry] = &[
    stage!("order_keys_float4_f32", Keys, order::keys,
        false 0 state: *const Vec4<f32>, false 1 bounds: *const Vec4<f32>, true 2 keys: *mut u32, true 3 order: *mut u32),
    stage!("order_count_float4_f32", Count, order::count,
        false 0 keys: *const u32, true 1 counts: *mut u32),
    stage!("order_scan_float4_f32", Scan, order::scan,
        true 0 counts: *mut u32),
    stage!("order_scatter_float4_f32", Scatter, order::scatter,
        false 0 keys: *const u32, false 1 order: *const u32, false 2 starts: *const u32,
        true 3 keys_to: *mut u32, true 4 order_to: *mut u32),
    stage!("order_halve_float4_f32", Halve, order::halve,
        false 0 state: *const Vec4<f32>, true 1 order: *mut u32),
    stage!("order_reorder_float4_f32", Reorder, order::reorder::<Bodies>,
        false 0 state: *const Vec4<f32>, false 1 acceleration: *const Vec4<f32>, false 2 order: *const u32,
        true 3 state_to: *mut Vec4<f32>, true 4 acceleration_to: *mut Vec4<f32>),
    stage!("order_renumber_float4_f32", Renumber, order::renumber,
        false 0 numbers: *const u32, false 1 order: *const u32, true 2 numbers_to: *mut u32),
];
