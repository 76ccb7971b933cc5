//! The force kernels of one thread per target.

use super::{Entry, LayoutDescription, OLDEST, ON_STATE, Row, Scalars, Work};
use crate::abi::Params;
use crate::interaction::{AttractRepel, AttractRepelDivided, Gravity, Law, PairLaw, Unit};
use crate::layout::{Aos, Float3, Float4, Layout, Soa};
use crate::numerics::{
    Approximate, Arithmetic, Exact, Fused, KeepSelf, Numerics, Separate, SkipSelf, Softened,
    Unsoftened,
};
use crate::schedule::symmetric::Order;
use crate::schedule::{direct, guarded, hybrid, one_thread, tiled, two_loops};
use cuda_std::{constant, emulated, f16, kernel};

macro_rules! force {
    (
        $symbol:expr, $schedule:ident, $layout:ty, $root:ty, $unroll:literal,
        $mul_add:ty, $scalars:ident, $law:ty, $closest:ty
    ) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, $mul_add, $root, $closest>;
        type Word = <$layout as Layout>::Word;
        Entry {
            symbol: $symbol,
            work: Work::Force {
                schedule: $schedule::NAME,
                law: <$law>::LAW,
                formula: <$law>::FORMULA,
                numerics: Chosen::POLICY,
                unroll: $unroll,
                lane: 1,
                order: Order::Fixed,
                max_registers: None,
            },
            layout: LayoutDescription::of::<$layout>(),
            scalars: Scalars::$scalars,
            since: OLDEST,
            pointers: ON_STATE,
            emulate: force_function!(
                $scalars,
                $symbol,
                Word,
                $schedule::force::<$layout, Chosen, $law, $unroll>
            ),
        }
    }};
}

/// Force kernels: a line each, compiled for some laws, and for ε > 0 and ε = 0.
///
/// The columns are the schedule, the layout, the policy of 1/√, and the unroll factor; then, for rungs
/// that differ from the rest in them, the policy of multiply–adds, that of the pair of a body with
/// itself, and the place of the scalars.
macro_rules! forces {
    (
        @row $laws:tt, $name:literal, $schedule:ident, $layout:ty, $root:ty, $unroll:literal
    ) => {
        forces!(@row $laws, $name, $schedule, $layout, $root, $unroll, Fused, KeepSelf, Argument)
    };
    (
        @row [$($law:ident $law_name:literal),*], $name:literal, $schedule:ident, $layout:ty,
        $root:ty, $unroll:literal, $mul_add:ty, $own:ident, $scalars:ident
    ) => {
        Row::new($name, &[$(
            force!(concat!("force_", $name, "_", $law_name), $schedule, $layout, $root, $unroll,
                $mul_add, $scalars, $law, $own<Softened>),
            force!(concat!("force_", $name, "_", $law_name, "_eps0"), $schedule, $layout, $root,
                $unroll, $mul_add, $scalars, $law, $own<Unsoftened>),
        )*])
    };
    (
        $(#[$doc:meta])*
        $list:ident, $laws:tt;
        $(
            $name:literal: $schedule:ident, $layout:ty, $root:ty, $unroll:literal
            $(, $mul_add:ty, $own:ident, $scalars:ident)?;
        )*
    ) => {
        $(#[$doc])*
        pub const $list: &[Row] = &[$(
            forces!(@row $laws, $name, $schedule, $layout, $root, $unroll
                $(, $mul_add, $own, $scalars)?)
        ),*];
    };
}

forces! {
    /// The force kernels of general use.
    FORCES, [Unit "unit", Gravity "gravity"];
    "direct_aos_f32_exact": direct, Aos<f32>, Exact, 1;
    "direct_aos_f32_approximate": direct, Aos<f32>, Approximate, 1;
    "direct_soa_f32_exact": direct, Soa<f32>, Exact, 1;
    "direct_soa_f32_approximate": direct, Soa<f32>, Approximate, 1;
    "direct_float4_f32_exact": direct, Float4<f32>, Exact, 1;
    "direct_float4_f32_approximate": direct, Float4<f32>, Approximate, 1;
    "direct_float4_f64_exact": direct, Float4<f64>, Exact, 1;
    "tiled_aos_f32_exact": tiled, Aos<f32>, Exact, 1;
    "tiled_aos_f32_approximate": tiled, Aos<f32>, Approximate, 1;
    "tiled_soa_f32_exact": tiled, Soa<f32>, Exact, 1;
    "tiled_soa_f32_approximate": tiled, Soa<f32>, Approximate, 1;
    "tiled_float4_f32_exact": tiled, Float4<f32>, Exact, 1;
    "tiled_float4_f32_approximate": tiled, Float4<f32>, Approximate, 1;
    "tiled_float4_f32_exact_u16": tiled, Float4<f32>, Exact, 16;
    "tiled_float4_f32_approximate_u16": tiled, Float4<f32>, Approximate, 16;
    "tiled_float4_f64_exact": tiled, Float4<f64>, Exact, 1;
    "tiled_float4_f64_approximate": tiled, Float4<f64>, Approximate, 1;
    "tiled_float4_f64_approximate_u8": tiled, Float4<f64>, Approximate, 8;
}

forces! {
    /// The force kernels of the `ecl` study: without softening the pair of a body with itself is skipped,
    /// and terms stand as the formula reads.
    ECL, [Gravity "gravity"];
    "one_thread_aos_f32_exact_separate_skip": one_thread, Aos<f32>, Exact, 1, Separate, SkipSelf, Argument;
    "direct_aos_f32_exact_separate_skip": direct, Aos<f32>, Exact, 1, Separate, SkipSelf, Argument;
    "direct_soa_f32_exact_separate_skip": direct, Soa<f32>, Exact, 1, Separate, SkipSelf, Argument;
    "direct_soa_f32_exact_separate_skip_constant": direct, Soa<f32>, Exact, 1, Separate, SkipSelf, Constant;
    "direct_soa_f32_approximate_separate_skip_constant": direct, Soa<f32>, Approximate, 1, Separate, SkipSelf, Constant;
    "two_loops_soa_f32_approximate_separate_constant": two_loops, Soa<f32>, Approximate, 1, Separate, KeepSelf, Constant;
    "tiled_soa_f32_approximate_separate_skip_constant": tiled, Soa<f32>, Approximate, 1, Separate, SkipSelf, Constant;
    "tiled_soa_f32_approximate_separate_skip_constant_u8": tiled, Soa<f32>, Approximate, 8, Separate, SkipSelf, Constant;
    "tiled_soa_f32_approximate_separate_constant_u8": tiled, Soa<f32>, Approximate, 8, Separate, KeepSelf, Constant;
    "tiled_soa_f32_approximate_constant_u8": tiled, Soa<f32>, Approximate, 8, Fused, KeepSelf, Constant;
    "tiled_soa_f32_approximate_constant_u128": tiled, Soa<f32>, Approximate, 128, Fused, KeepSelf, Constant;
    "tiled_soa_f64_approximate_constant_u8": tiled, Soa<f64>, Approximate, 8, Fused, KeepSelf, Constant;
}

forces! {
    /// The force kernels of the `venus` study.
    VENUS, [Unit "unit"];
    "tiled_soa_f32_exact_u2": tiled, Soa<f32>, Exact, 2;
    "tiled_soa_f32_exact_u4": tiled, Soa<f32>, Exact, 4;
    "tiled_soa_f32_exact_u8": tiled, Soa<f32>, Exact, 8;
    "tiled_soa_f32_exact_u16": tiled, Soa<f32>, Exact, 16;
    "tiled_soa_f32_exact_u24": tiled, Soa<f32>, Exact, 24;
    "tiled_soa_f32_approximate_u16": tiled, Soa<f32>, Approximate, 16;
    "tiled_float3_f32_approximate_u16": tiled, Float3<f32>, Approximate, 16;
    "tiled_soa_f16_f32_exact_u16": tiled, Soa<f32, f16>, Exact, 16;
    "tiled_soa_f16_exact_u16": tiled, Soa<f16>, Exact, 16;
}

forces! {
    /// The force kernels of the `gtx1060` study.
    ATTRACT_REPEL, [AttractRepel "attract_repel"];
    "direct_float4_f32_approximate_u32": direct, Float4<f32>, Approximate, 32;
    "tiled_float4_f32_approximate_u32": tiled, Float4<f32>, Approximate, 32;
    "hybrid_float4_f32_approximate_u32": hybrid, Float4<f32>, Approximate, 32;
}

forces! {
    /// The force kernel of the `gtx1060` study that computes the law as it is written.
    ATTRACT_REPEL_DIVIDED, [AttractRepelDivided "attract_repel"];
    "guarded_float4_f32_exact_u32": guarded, Float4<f32>, Exact, 32, Fused, SkipSelf, Argument;
}

macro_rules! rest {
    ($symbol:expr, $closest:ty) => {{
        type Chosen = Numerics<f32, Fused, Approximate, $closest>;
        type Word = <Float4<f32> as Layout>::Word;
        Entry {
            symbol: $symbol,
            work: Work::Rest {
                law: Law::AttractRepel,
                numerics: Chosen::POLICY,
            },
            layout: LayoutDescription::of::<Float4<f32>>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            pointers: ON_STATE,
            emulate: force_function!(
                Argument,
                $symbol,
                Word,
                hybrid::rest::<Float4<f32>, Chosen, AttractRepel, 32>
            ),
        }
    }};
}

/// The kernels for the bodies of the `gtx1060` study that [`hybrid`] leaves over.
pub const RESTS: &[Entry] = &[
    rest!("rest_float4_f32_approximate_u32_attract_repel", Softened),
    rest!(
        "rest_float4_f32_approximate_u32_attract_repel_eps0",
        Unsoftened
    ),
];
