//! The kernels of Hermite's scheme: forces with jerks, and what its steps are made of.

use super::{Entry, Row, Work};
use crate::abi::Params;
use crate::interaction::{Gravity, PairLaw, Unit};
use crate::layout::{Float4, Layout};
use crate::numerics::{Approximate, Arithmetic, Fused, Numerics, Softened, Unsoftened};
use crate::schedule::symmetric::Order;
use crate::schedule::{external, hermite, tiled_jerks};
use cuda_std::{emulated, kernel};

macro_rules! force {
    ($symbol:expr, $layout:ty, $lane:literal x $steps:literal, $law:ty, $closest:ty) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        entry!(
            $symbol,
            $layout,
            Work::Force {
                schedule: tiled_jerks::NAME,
                law: <$law>::LAW,
                formula: <$law>::FORMULA,
                numerics: Chosen::POLICY,
                unroll: $lane * $steps,
                lane: $lane,
                order: Order::Fixed,
                max_registers: None,
            },
            (state: *const Word, acceleration: *mut Word, jerk: *mut Word)
                => tiled_jerks::force::<$layout, Chosen, $law, $lane, $steps>
        )
    }};
}

/// A line each, compiled for both laws and for ε > 0 and ε = 0: the layout, and the targets a thread
/// times the sources in the loop's body.
macro_rules! forces {
    ($($name:literal: $layout:ty, $lane:literal x $steps:literal;)*) => {
        /// The force kernels that compute jerks too.
        pub const JERKS: &[Row] = &[$(Row::new($name, &[
            force!(concat!("force_", $name, "_unit"), $layout, $lane x $steps, Unit, Softened),
            force!(concat!("force_", $name, "_unit_eps0"), $layout, $lane x $steps, Unit, Unsoftened),
            force!(concat!("force_", $name, "_gravity"), $layout, $lane x $steps, Gravity, Softened),
            force!(
                concat!("force_", $name, "_gravity_eps0"), $layout, $lane x $steps, Gravity, Unsoftened
            ),
        ])),*];
    };
}

forces! {
    "tiled_jerks_float4_f32_1x16": Float4<f32>, 1 x 16;
    "tiled_jerks_float4_f32_2x8": Float4<f32>, 2 x 8;
    "tiled_jerks_float4_f64_1x8": Float4<f64>, 1 x 8;
    "tiled_jerks_float4_f64_2x4": Float4<f64>, 2 x 4;
}

/// The kernels that take Hermite's steps with the bodies of a layout.
macro_rules! steps {
    ($($name:literal: $layout:ty;)*) => {
        /// The kernels of Hermite's steps, one row per layout.
        pub const HERMITE: &[[Entry; 4]] = &[$({
            type Word = <$layout as Layout>::Word;
            [
                entry!(
                    concat!("predict_", $name),
                    $layout,
                    Work::Predict,
                    (
                        state: *mut Word,
                        acceleration: *const Word,
                        jerk: *const Word,
                        beginning: *mut Word,
                    ) => hermite::predict::<$layout>
                ),
                entry!(
                    concat!("correct_", $name),
                    $layout,
                    Work::Correct,
                    (
                        state: *mut Word,
                        acceleration: *const Word,
                        jerk: *const Word,
                        beginning: *const Word,
                    ) => hermite::correct::<$layout>
                ),
                entry!(
                    concat!("own_steps_", $name),
                    $layout,
                    Work::OwnSteps,
                    (
                        acceleration: *const Word,
                        jerk: *const Word,
                        beginning: *const Word,
                        own_steps: *mut f64,
                    ) => hermite::own_steps::<$layout>
                ),
                entry!(
                    concat!("external_jerks_", $name),
                    $layout,
                    Work::ExternalJerks,
                    (
                        state: *const Word,
                        acceleration: *mut Word,
                        jerk: *mut Word,
                        fields: *const f64,
                    ) => external::accelerate_with_jerk::<$layout>
                ),
            ]
        }),*];
    };
}

steps! {
    "float4_f32": Float4<f32>;
    "float4_f64": Float4<f64>;
}

/// The kernels that add a [term of relativity](crate::fields::Relativity), in f64 alone: it is far below what
/// f32 rounds.
pub const RELATIVITY: &[Entry] = &[entry!(
    "relativity_float4_f64",
    Float4<f64>,
    Work::Relativity,
    (
        state: *const <Float4<f64> as Layout>::Word,
        acceleration: *mut <Float4<f64> as Layout>::Word,
        jerk: *mut <Float4<f64> as Layout>::Word,
        centre: *const f64,
    ) => external::add_relativity::<Float4<f64>>
)];
