//! The kernels of Hermite's scheme: forces with jerks, and what its steps are made of.

use super::{Entry, LayoutDescription, OLDEST, Row, Scalars, Work};
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
        #[kernel(name = $symbol)]
        unsafe fn force(
            state: *const Word,
            acceleration: *mut Word,
            jerk: *mut Word,
            params: Params,
        ) {
            // SAFETY: the launch's promise.
            unsafe {
                tiled_jerks::force::<$layout, Chosen, $law, $lane, $steps>(
                    state,
                    acceleration,
                    jerk,
                    params,
                )
            }
        }
        Entry {
            symbol: $symbol,
            work: Work::Force {
                schedule: tiled_jerks::NAME,
                law: <$law>::LAW,
                formula: <$law>::FORMULA,
                numerics: Chosen::POLICY,
                unroll: $lane * $steps,
                lane: $lane,
                order: Order::Fixed,
                max_registers: None,
            },
            layout: LayoutDescription::of::<$layout>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, true, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe {
                force(a.pointer(0), a.pointer(1), a.pointer(2), a.params)
            }),
        }
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
            const LAYOUT: LayoutDescription = LayoutDescription::of::<$layout>();
            #[kernel(name = concat!("predict_", $name))]
            unsafe fn predict(
                state: *mut Word,
                acceleration: *const Word,
                jerk: *const Word,
                beginning: *mut Word,
                params: Params,
            ) {
                // SAFETY: the launch's promise.
                unsafe { hermite::predict::<$layout>(state, acceleration, jerk, beginning, params) }
            }
            #[kernel(name = concat!("correct_", $name))]
            unsafe fn correct(
                state: *mut Word,
                acceleration: *const Word,
                jerk: *const Word,
                beginning: *const Word,
                params: Params,
            ) {
                // SAFETY: the launch's promise.
                unsafe { hermite::correct::<$layout>(state, acceleration, jerk, beginning, params) }
            }
            #[kernel(name = concat!("own_steps_", $name))]
            unsafe fn own_steps(
                acceleration: *const Word,
                jerk: *const Word,
                beginning: *const Word,
                steps: *mut f64,
                params: Params,
            ) {
                // SAFETY: the launch's promise.
                unsafe {
                    hermite::own_steps::<$layout>(acceleration, jerk, beginning, steps, params)
                }
            }
            #[kernel(name = concat!("external_jerks_", $name))]
            unsafe fn external(
                state: *const Word,
                acceleration: *mut Word,
                jerk: *mut Word,
                fields: *const f64,
                params: Params,
            ) {
                // SAFETY: the launch's promise.
                unsafe {
                    external::accelerate_with_jerk::<$layout>(
                        state,
                        acceleration,
                        jerk,
                        fields,
                        params,
                    )
                }
            }
            [
                Entry {
                    symbol: concat!("predict_", $name),
                    work: Work::Predict,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    since: OLDEST,
                    writes: &[true, false, false, true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe {
                        predict(a.pointer(0), a.pointer(1), a.pointer(2), a.pointer(3), a.params)
                    }),
                },
                Entry {
                    symbol: concat!("correct_", $name),
                    work: Work::Correct,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    since: OLDEST,
                    writes: &[true, false, false, false],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe {
                        correct(a.pointer(0), a.pointer(1), a.pointer(2), a.pointer(3), a.params)
                    }),
                },
                Entry {
                    symbol: concat!("own_steps_", $name),
                    work: Work::OwnSteps,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    since: OLDEST,
                    writes: &[false, false, false, true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe {
                        own_steps(a.pointer(0), a.pointer(1), a.pointer(2), a.pointer(3), a.params)
                    }),
                },
                Entry {
                    symbol: concat!("external_jerks_", $name),
                    work: Work::ExternalJerks,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    since: OLDEST,
                    writes: &[false, true, true, false],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe {
                        external(a.pointer(0), a.pointer(1), a.pointer(2), a.pointer(3), a.params)
                    }),
                },
            ]
        }),*];
    };
}

steps! {
    "float4_f32": Float4<f32>;
    "float4_f64": Float4<f64>;
}
