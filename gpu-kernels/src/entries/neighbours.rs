//! The kernels of block time steps with a neighbour scheme.

use super::{Entry, Work};
use crate::abi::Params;
use crate::schedule::block_steps::Bodies;
use crate::schedule::block_steps::neighbours::regular::{self, RegularStage};
use crate::schedule::block_steps::neighbours::{
    self, Corrected, ForceBuffers, HandedOut, OwnBuffers, StepBuffers,
};
use cuda_std::thread::limit_registers;
use cuda_std::vector::{Vec2, Vec4};
use cuda_std::{emulated, kernel};

macro_rules! force {
    ($symbol:literal, $search:literal) => {
        entry!(
            $symbol,
            Bodies,
            Work::NeighbourForce { search: $search },
            (
                records: *const Vec4<u32>,
                lists: *mut u32,
                counts: *mut u32,
                irregular_targets: *const u64,
                regular_targets: *const Vec4<f32>,
                posts: *const u64,
                time: *const u64,
                irregular_sums: *mut f64,
                irregular_before: *const f64,
                segments: *mut u32,
                regular_sums: *mut f64,
            ), params => {
                let on = ForceBuffers {
                    records,
                    lists,
                    counts,
                    irregular_targets,
                    regular_targets,
                    posts,
                    time,
                    irregular_sums,
                    irregular_before,
                    segments,
                    regular_sums,
                };
                neighbours::force::<$search>(on, params)
            }
        )
    };
}

/// Compiles and describes a kernel that ends steps. The [buffers](OwnBuffers) of a block's own bodies come first, as `$own`;
/// then come its other pointers, and fields if there are any.
macro_rules! ends {
    (
        $symbol:literal, $work:expr,
        ($($name:ident: *$access:tt $type:ty),*), $own:ident, $fields:ident, $params:ident => $call:expr
        $(; $of_fields:ident)?
    ) => {
        entry!(
            $symbol,
            Bodies,
            $work,
            (
                state: *mut Vec4<f64>,
                acceleration: *mut Vec4<f64>,
                jerk: *mut Vec4<f64>,
                higher: *mut Vec4<f64>,
                spheres: *mut Vec2<f64>,
                regular_steps: *mut u64,
                levels: *mut u32,
                steps: *mut f64,
                records: *mut Vec4<u32>,
                posts: *mut u64,
                time: *mut u64,
                $($name: *$access $type),*
                $(, $of_fields: *const f64)?
            ), $params => {
                let $fields = [$($of_fields,)? core::ptr::null()][0];
                let $own = OwnBuffers {
                    state,
                    acceleration,
                    jerk,
                    regular: higher, // for fourth order has no snaps
                    spheres,
                    regular_steps,
                    levels,
                    steps,
                    records,
                    posts,
                    time,
                };
                $call
            }
        )
    };
}

macro_rules! correct {
    ($symbol:literal, $external:literal $(, $of_fields:ident)?) => {
        ends!(
            $symbol,
            Work::NeighbourCorrect { external: $external },
            (
                irregular_targets: *mut u64,
                regular_targets: *mut Vec4<f32>,
                irregular_sums: *const Vec4<f64>,
                regular_sums: *const Vec4<f64>
            ), own, fields, params => {
                let on = Corrected {
                    own,
                    targets: HandedOut {
                        irregular: irregular_targets,
                        regular: regular_targets,
                    },
                    irregular_sums,
                    regular_sums,
                };
                neighbours::correct::<$external>(on, fields, params)
            }
            $(; $of_fields)?
        )
    };
}

macro_rules! step {
    ($symbol:literal, $external:literal $(, $of_fields:ident)?) => {
        ends!(
            $symbol,
            Work::NeighbourStep { external: $external },
            (lists: *const u32, counts: *const u32), own, fields, params => {
                let on = StepBuffers { own, lists, counts };
                neighbours::step::<$external>(on, fields, params)
            }
            $(; $of_fields)?
        )
    };
}

macro_rules! regular {
    ($symbol:literal, $stage:ident, $($rest:tt)*) => {
        entry!($symbol, Bodies, Work::NeighbourRegular(RegularStage::$stage), $($rest)*)
    };
}

/// Kernels of block time steps with a neighbour scheme.
pub const NEIGHBOURS: &[Entry] = &[
    force!("neighbour_force", false),
    force!("neighbour_search", true),
    correct!("neighbour_correct", false),
    correct!("neighbour_correct_external", true, fields),
    step!("neighbour_step", false),
    step!("neighbour_step_external", true, fields),
    entry!(
        "neighbour_first",
        Bodies,
        Work::NeighbourFirst,
        (
            state: *const Vec4<f64>,
            acceleration: *const Vec4<f64>,
            jerk: *const Vec4<f64>,
            higher: *const Vec4<f64>,
            lists: *const u32,
            counts: *const u32,
            regular_sums: *const f64,
            time: *const u64,
            spheres: *mut Vec2<f64>,
            steps: *mut f64,
        ) => neighbours::first
    ),
    regular!("neighbour_predict", Predict, (
            records: *const Vec4<u32>,
            regular_targets: *const Vec4<f32>,
            posts: *const u64,
            time: *mut u64,
            positions: *mut Vec4<f32>,
            velocities: *mut Vec4<f32>,
            target_positions: *mut Vec4<f32>,
            target_velocities: *mut Vec4<f32>,
        ) => regular::predict),
    regular!("neighbour_leaves", Leaves, (
            positions: *const Vec4<f32>,
            velocities: *const Vec4<f32>,
            order: *const u32,
            along_curve: *mut Vec4<f32>,
            moving: *mut Vec4<f32>,
            leaves: *mut Vec4<f32>,
        ) => regular::leaves),
    regular!("neighbour_far", Far, (
            along_curve: *const Vec4<f32>,
            leaves: *const Vec4<f32>,
            target_positions: *const Vec4<f32>,
            target_velocities: *const Vec4<f32>,
            target_order: *const u32,
            near: *mut u32,
            on_tensor: *mut u32,
            far: *mut Vec4<f32>,
        ) => regular::far),
    entry!(
        "neighbour_tensor"; since 80,
        Bodies,
        Work::NeighbourRegular(RegularStage::Tensor),
        (
            along_curve: *const Vec4<f32>,
            leaves: *const Vec4<f32>,
            target_positions: *const Vec4<f32>,
            target_order: *const u32,
            on_tensor: *const u32,
            far: *mut Vec4<f32>,
        ), params => {
            limit_registers::<96>();
            regular::tensor(
                along_curve,
                leaves,
                target_positions,
                target_order,
                on_tensor,
                far,
                params,
            )
        }
    ),
    regular!("neighbour_lists", Lists, (
            along_curve: *const Vec4<f32>,
            moving: *const Vec4<f32>,
            target_positions: *const Vec4<f32>,
            target_velocities: *const Vec4<f32>,
            target_order: *const u32,
            near: *const u32,
            far: *const Vec4<f32>,
            records: *const Vec4<u32>,
            lists: *mut u32,
            counts: *mut u32,
            time: *mut u64,
            regular_sums: *mut f64,
        ) => regular::lists),
];
