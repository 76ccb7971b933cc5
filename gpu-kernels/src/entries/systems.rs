//! The kernels of many systems.

use super::{Entry, Row, Work};
use crate::abi::Params;
use crate::interaction::{Gravity, GravityByForces, PairLaw, Unit};
use crate::layout::{Aos, Float3, Float4, Layout, ReadOnly, Soa};
use crate::numerics::{
    Approximate, Arithmetic, Exact, Fused, Numerics, Separate, Softened, Unsoftened,
};
use crate::schedule::symmetric::Order;
use crate::schedule::{ScheduleName, SourcesIn, Stepping, systems};
use cuda_std::{emulated, kernel};

/// Name of a row's schedule.
macro_rules! name {
    (steps) => {
        name!(All, Global)
    };
    (steps_tiled) => {
        name!(All, Shared)
    };
    (kick) => {
        name!(Kick, Shared)
    };
    (fused) => {
        name!(Fused, Shared)
    };
    (step_by_warps) => {
        name!(ByWarps, Shared)
    };
    ($stepping:ident, $sources:ident) => {
        ScheduleName::Systems {
            stepping: Stepping::$stepping,
            sources: SourcesIn::$sources,
        }
    };
}

macro_rules! system {
    (
        $symbol:expr, $schedule:ident, $layout:ty, $mul_add:ty, $root:ty, $unroll:literal, $law:ty,
        $closest:ty
    ) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, $mul_add, $root, $closest>;
        type Word = <$layout as Layout>::Word;
        const WORK: Work = Work::Force {
            schedule: name!($schedule),
            law: <$law>::LAW,
            formula: <$law>::FORMULA,
            numerics: Chosen::POLICY,
            unroll: $unroll,
            lane: 1,
            order: Order::Fixed,
            max_registers: None,
        };
        system!(@entry $schedule, $symbol, $layout, WORK, [$layout, Chosen, $law], $unroll)
    }};
    (@entry fused, $($rest:tt)*) => {
        system!(@from_to fused, $($rest)*)
    };
    (@entry step_by_warps, $($rest:tt)*) => {
        system!(@from_to step_by_warps, $($rest)*)
    };
    (
        @from_to $schedule:ident, $symbol:expr, $layout:ty, $work:expr, [$($chosen:ty),*],
        $unroll:literal
    ) => {
        entry!(
            $symbol,
            $layout,
            $work,
            (from: *const Word, records: *const f64, to: *mut Word)
                => systems::$schedule::<$($chosen,)* $unroll>
        )
    };
    (
        @entry $schedule:ident, $symbol:expr, $layout:ty, $work:expr, [$($chosen:ty),*],
        $unroll:literal
    ) => {
        entry!(
            $symbol,
            $layout,
            $work,
            (state: *mut Word, records: *const f64) => systems::$schedule::<$($chosen,)* $unroll>
        )
    };
}

/// A line each, compiled for some laws, and for ε > 0 and ε = 0.
macro_rules! systems {
    (
        @row [$($law:ident $law_name:literal),*], $name:literal, $schedule:ident, $layout:ty,
        $mul_add:ty, $root:ty, $unroll:literal
    ) => {
        Row::new(concat!("systems_", $name), &[$(
            system!(concat!("force_systems_", $name, "_", $law_name), $schedule, $layout, $mul_add,
                $root, $unroll, $law, Softened),
            system!(concat!("force_systems_", $name, "_", $law_name, "_eps0"), $schedule, $layout,
                $mul_add, $root, $unroll, $law, Unsoftened),
        )*])
    };
    (
        $(
            $name:literal: $laws:tt, $schedule:ident, $layout:ty, $mul_add:ty, $root:ty,
            $unroll:literal;
        )*
    ) => {
        /// The kernels of many systems.
        pub const SYSTEMS: &[Row] = &[$(
            systems!(@row $laws, $name, $schedule, $layout, $mul_add, $root, $unroll)
        ),*];
    };
}

systems! {
    "steps_aos_f32_exact": [Unit "unit"], steps, Aos<f32>, Separate, Exact, 1;
    "steps_float3_f32_exact": [Unit "unit"], steps, Float3<f32>, Separate, Exact, 1;
    "steps_tiled_float3_f32_exact": [Unit "unit"], steps_tiled, Float3<f32>, Separate, Exact, 1;
    "steps_tiled_float3_f32_exact_u2": [Unit "unit"], steps_tiled, Float3<f32>, Separate, Exact, 2;
    "steps_tiled_float3_f32_exact_u4": [Unit "unit"], steps_tiled, Float3<f32>, Separate, Exact, 4;
    "steps_tiled_float3_f32_exact_u8": [Unit "unit"], steps_tiled, Float3<f32>, Separate, Exact, 8;
    "steps_tiled_float3_f32_exact_u16": [Unit "unit"], steps_tiled, Float3<f32>, Separate, Exact, 16;
    "kick_float3_f32_exact_u8": [Unit "unit"], kick, Float3<f32>, Separate, Exact, 8;
    "kick_float3_f32_approximate_u8_nc": [Unit "unit"], kick, Float3<f32, ReadOnly>, Fused, Approximate, 8;
    "fused_float3_f32_approximate_u8_nc": [Unit "unit"], fused, Float3<f32, ReadOnly>, Fused, Approximate, 8;
    "kick_soa_f32_approximate_u8_nc": [Unit "unit"], kick, Soa<f32, f32, ReadOnly>, Fused, Approximate, 8;
    "kick_float4_f32_approximate_u16": [Unit "unit", Gravity "gravity"], kick, Float4<f32>, Fused, Approximate, 16;
    "by_warps_float4_f32_u8": [Unit "unit", Gravity "gravity"], step_by_warps, Float4<f32>, Fused, Approximate, 8;
    "by_warps_float4_f64_u4": [Unit "unit", Gravity "gravity"], step_by_warps, Float4<f64>, Fused, Approximate, 4;
}

macro_rules! drifts {
    ($($name:literal: $layout:ty;)*) => {
        /// The drifts of many systems, one per layout.
        pub const SYSTEM_DRIFTS: &[Entry] = &[$({
            type Word = <$layout as Layout>::Word;
            entry!(
                concat!("systems_drift_", $name),
                $layout,
                Work::SystemDrift,
                (state: *mut Word, records: *const f64) => systems::drift::<$layout>
            )
        }),*];
    };
}

drifts! {
    "float3_f32": Float3<f32>;
    "soa_f32": Soa<f32>;
    "float4_f32": Float4<f32>;
}

macro_rules! pairs_once {
    (
        @work $stepping:ident, $chosen:ty, $law:ty, $lane:literal x $steps:literal, $registers:literal
    ) => {
        Work::Force {
            schedule: name!($stepping, Shared),
            law: <$law>::LAW,
            formula: <$law>::FORMULA,
            numerics: <$chosen>::POLICY,
            unroll: $lane * $steps,
            lane: $lane,
            order: Order::Fixed,
            max_registers: if $registers > 0 {
                Some($registers)
            } else {
                None
            },
        }
    };
    (
        @entry accelerate, $symbol:expr, $layout:ty, $lane:literal x $steps:literal,
        $registers:literal, $law:ty, $closest:ty
    ) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        entry!(
            $symbol,
            $layout,
            pairs_once!(@work Accelerate, Chosen, $law, $lane x $steps, $registers),
            (state: *const Word, records: *const f64, slabs: *mut Word)
                => systems::accelerate::<$layout, Chosen, $law, $lane, $steps, $registers>
        )
    }};
    (
        @entry in_block, $symbol:expr, $layout:ty, $lane:literal x $steps:literal,
        $registers:literal, $law:ty, $closest:ty
    ) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        entry!(
            $symbol,
            $layout,
            pairs_once!(@work InBlock, Chosen, $law, $lane x $steps, $registers),
            (state: *mut Word, records: *const f64)
                => systems::steps_in_block::<$layout, Chosen, $law, $lane>
        )
    }};
    (
        @row [$($law:ident $law_name:literal $registers:literal),*], $schedule:ident, $name:literal,
        $layout:ty, $lane:literal x $steps:literal
    ) => {
        Row::new(concat!("systems_", $name), const { &[$(
            pairs_once!(@entry $schedule, concat!("force_systems_", $name, "_", $law_name), $layout,
                $lane x $steps, $registers, $law, Softened),
            pairs_once!(@entry $schedule, concat!("force_systems_", $name, "_", $law_name, "_eps0"),
                $layout, $lane x $steps, $registers, $law, Unsoftened),
        )*] })
    };
    (
        $($name:literal: $laws:tt, $schedule:ident, $layout:ty, $lane:literal x $steps:literal;)*
    ) => {
        /// The kernels of many systems that take each pair once.
        pub const SYSTEMS_PAIRS_ONCE: &[Row] = &[$(
            pairs_once!(@row $laws, $schedule, $name, $layout, $lane x $steps)
        ),*];
    };
}

// A line each, as those of one system: `8 x 2`, eight targets per thread against two sources in the
// loop's body; some laws with their registers at most, or 0; each for ε > 0 and ε = 0.
pairs_once! {
    "symmetric_float4_f32_8x4": [Unit "unit" 96, Gravity "gravity" 0, GravityByForces "forces" 0],
        accelerate, Float4<f32>, 8 x 4;
    "symmetric_float4_f32_2x16": [Unit "unit" 0, Gravity "gravity" 0, GravityByForces "forces" 0],
        accelerate, Float4<f32>, 2 x 16;
    "symmetric_float4_f64_8x2": [Unit "unit" 128, Gravity "gravity" 0],
        accelerate, Float4<f64>, 8 x 2;
    "in_block_float4_f32_8": [Unit "unit" 0, Gravity "gravity" 0, GravityByForces "forces" 0],
        in_block, Float4<f32>, 8 x 8;
    "in_block_float4_f32_2": [Unit "unit" 0, Gravity "gravity" 0, GravityByForces "forces" 0],
        in_block, Float4<f32>, 2 x 2;
    "in_block_float4_f64_4": [Unit "unit" 0, Gravity "gravity" 0], in_block, Float4<f64>, 4 x 4;
}

macro_rules! system_steps {
    ($($name:literal: $layout:ty;)*) => {
        /// The steps by accelerations of pairs that are taken once.
        pub const SYSTEM_STEPS: &[Entry] = &[$({
            type Word = <$layout as Layout>::Word;
            entry!(
                concat!("systems_step_", $name),
                $layout,
                Work::SystemStep,
                (state: *mut Word, records: *const f64, slabs: *const Word)
                    => systems::kick_and_drift::<$layout>
            )
        }),*];
    };
}

system_steps! {
    "float4_f32": Float4<f32>;
    "float4_f64": Float4<f64>;
}
