//! The force kernels that take each pair once, and the kernels that add their partial sums.

use super::{Entry, LayoutDescription, OLDEST, Scalars, Work};
use crate::abi::Params;
use crate::interaction::{Gravity, PairLaw, Unit};
use crate::layout::{Float4, Layout};
use crate::numerics::{Approximate, Arithmetic, Fused, Numerics, Softened, Unsoftened};
use crate::schedule::symmetric::{self, Atomic, Slabs, Sums};
use cuda_std::{emulated, kernel};

macro_rules! force {
    (
        $symbol:expr, $layout:ty, $lane:literal x $steps:literal, $sums:ty, $law:ty, $closest:ty
    ) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        Entry {
            symbol: $symbol,
            work: Work::Force {
                schedule: symmetric::NAME,
                law: <$law>::NAME,
                formula: <$law>::FORMULA,
                numerics: Chosen::NAME,
                unroll: $lane * $steps,
                lane: $lane,
                order: <$sums>::ORDER,
                max_registers: None,
            },
            layout: LayoutDescription::of::<$layout>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, true],
            emulate: force_function!(
                Argument,
                $symbol,
                Word,
                symmetric::force::<$layout, Chosen, $law, $sums, $lane, $steps>
            ),
        }
    }};
}

/// A line each, compiled for both laws and for ε > 0 and ε = 0. `8 x 2`: eight targets a thread
/// against two sources in the loop's body.
macro_rules! forces {
    ($($name:literal: $layout:ty, $lane:literal x $steps:literal, $sums:ty;)*) => {
        /// The force kernels that take each pair once.
        pub const SYMMETRIC: &[[Entry; 4]] = &[$([
            force!(concat!("force_", $name, "_unit"), $layout, $lane x $steps, $sums,
                Unit, Softened),
            force!(concat!("force_", $name, "_unit_eps0"), $layout, $lane x $steps, $sums,
                Unit, Unsoftened),
            force!(concat!("force_", $name, "_gravity"), $layout, $lane x $steps, $sums,
                Gravity, Softened),
            force!(concat!("force_", $name, "_gravity_eps0"), $layout, $lane x $steps, $sums,
                Gravity, Unsoftened),
        ]),*];
    };
}

forces! {
    "symmetric_float4_f32_1x16_slabs": Float4<f32>, 1 x 16, Slabs;
    "symmetric_float4_f32_8x2_slabs": Float4<f32>, 8 x 2, Slabs;
    "symmetric_float4_f32_8x4_slabs": Float4<f32>, 8 x 4, Slabs;
    "symmetric_float4_f32_8x4": Float4<f32>, 8 x 4, Atomic;
    "symmetric_float4_f32_4x8": Float4<f32>, 4 x 8, Atomic;
    "symmetric_float4_f32_2x16": Float4<f32>, 2 x 16, Atomic;
    "symmetric_float4_f64_8x4": Float4<f64>, 8 x 4, Atomic;
}

macro_rules! gathers {
    ($($name:literal: $layout:ty;)*) => {
        /// The kernels that add partial sums kept apart.
        pub const GATHERS: &[Entry] = &[$({
            type Word = <$layout as Layout>::Word;
            Entry {
                symbol: $name,
                work: Work::Gather,
                layout: LayoutDescription::of::<$layout>(),
                scalars: Scalars::Argument,
                since: OLDEST,
                writes: &[false, true],
                emulate: force_function!(Argument, $name, Word, symmetric::gather::<$layout>),
            }
        }),*];
    };
}

gathers! {
    "gather_float4_f32": Float4<f32>;
}
