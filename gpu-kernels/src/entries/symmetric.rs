//! The force kernels that take each pair once, and the kernels that add their partial sums.

use super::{Buffer, Entry, LayoutDescription, OLDEST, ON_STATE, Pointer, Row, Scalars, Work};
use crate::abi::Params;
use crate::double_single::DoubleSingle;
use crate::interaction::{Gravity, GravityByForces, PairLaw, Unit};
use crate::layout::{Float4, Layout};
use crate::numerics::{Approximate, Arithmetic, Fused, Numerics, Softened, Unsoftened};
use crate::schedule::symmetric::{self, Atomic, Order, Slabs, Sums};
use cuda_std::{emulated, kernel};

macro_rules! force {
    (
        $symbol:expr, $layout:ty, $lane:literal x $steps:literal, $sums:ty, $registers:literal,
        $law:ty, $closest:ty
    ) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        Entry {
            symbol: $symbol,
            work: Work::Force {
                schedule: symmetric::NAME,
                law: <$law>::LAW,
                formula: <$law>::FORMULA,
                numerics: Chosen::POLICY,
                unroll: $lane * $steps,
                lane: $lane,
                order: <$sums>::ORDER,
                max_registers: if $registers > 0 {
                    Some($registers)
                } else {
                    None
                },
            },
            layout: LayoutDescription::of::<$layout>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            pointers: match <$sums>::ORDER {
                Order::Any => ON_STATE,
                Order::Fixed => &[
                    Pointer::read(Buffer::state),
                    Pointer::written(Buffer::slabs),
                ],
            },
            emulate: force_function!(
                Argument,
                $symbol,
                Word,
                symmetric::force::<$layout, Chosen, $law, $sums, $lane, $steps, $registers>
            ),
        }
    }};
}

/// A line each, compiled for both laws and for ε > 0 and ε = 0. `8 x 2`: eight targets per thread
/// against two sources in the loop's body. `unit 104`: registers at most of the kernels without
/// masses, 0 for no limit. `forces 116`: there are kernels too whose sums over pairs are of forces,
/// by [`GravityByForces`](crate::interaction::GravityByForces), with at most so many registers.
///
/// A limit is not for occupancy. With another number the assembler lays the values out anew in the
/// two banks of the register file, and where most of an inner loop's operands lie in one bank it
/// waits for them: up to 20 %. The limits are the best of those from 88 to 120 (64 to 84 with four
/// targets, 120 to 168 in double precision) by ptxas 13.0 for compute capability 9.0.
macro_rules! forces {
    ($(
        $name:literal: $layout:ty, $lane:literal x $steps:literal, $sums:ty, unit $unit:literal
        $(, forces $forces:literal)?;
    )*) => {
        /// The force kernels that take each pair once.
        pub const SYMMETRIC: &[Row] = &[$(Row::new($name, const { &[
            force!(concat!("force_", $name, "_unit"), $layout, $lane x $steps, $sums, $unit,
                Unit, Softened),
            force!(concat!("force_", $name, "_unit_eps0"), $layout, $lane x $steps, $sums, $unit,
                Unit, Unsoftened),
            force!(concat!("force_", $name, "_gravity"), $layout, $lane x $steps, $sums, 0,
                Gravity, Softened),
            force!(concat!("force_", $name, "_gravity_eps0"), $layout, $lane x $steps, $sums, 0,
                Gravity, Unsoftened),
            $(
                force!(concat!("force_", $name, "_forces"), $layout, $lane x $steps, $sums, $forces,
                    GravityByForces, Softened),
                force!(concat!("force_", $name, "_forces_eps0"), $layout, $lane x $steps, $sums,
                    $forces, GravityByForces, Unsoftened),
            )?
        ] })),*];
    };
}

forces! {
    "symmetric_float4_f32_1x16_slabs": Float4<f32>, 1 x 16, Slabs, unit 0;
    "symmetric_float4_f32_8x2_slabs": Float4<f32>, 8 x 2, Slabs, unit 0;
    "symmetric_float4_f32_8x4_slabs": Float4<f32>, 8 x 4, Slabs, unit 96, forces 0;
    "symmetric_float4_f32_8x4": Float4<f32>, 8 x 4, Atomic, unit 104, forces 116;
    "symmetric_float4_f32_4x8": Float4<f32>, 4 x 8, Atomic, unit 72, forces 72;
    "symmetric_float4_f32_2x16": Float4<f32>, 2 x 16, Atomic, unit 0, forces 0;
    "symmetric_float4_f64_8x4": Float4<f64>, 8 x 4, Atomic, unit 128;
    "symmetric_float4_f64_8x2": Float4<f64>, 8 x 2, Atomic, unit 128;
    "symmetric_float4_double_single_4x4": Float4<DoubleSingle, f64>, 4 x 4, Atomic, unit 0;
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
                pointers: &[Pointer::read(Buffer::slabs), Pointer::written(Buffer::acceleration)],
                emulate: force_function!(Argument, $name, Word, symmetric::gather::<$layout>),
            }
        }),*];
    };
}

gathers! {
    "gather_float4_f32": Float4<f32>;
}
