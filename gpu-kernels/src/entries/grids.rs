//! The force kernels of two-dimensional blocks, and the kernels that add their partial sums.

use super::{Buffer, Entry, LayoutDescription, OLDEST, Pointer, Row, Scalars, Work};
use crate::abi::Params;
use crate::interaction::{Gravity, PairLaw};
use crate::layout::{Float4, Layout};
use crate::numerics::{Approximate, Arithmetic, Exact, Fused, Numerics, Softened, Unsoftened};
use crate::schedule::symmetric::Order;
use crate::schedule::{Reduction, ScheduleName, grid2d, reduce};
use cuda_std::{emulated, kernel};

macro_rules! grid {
    (
        $symbol:expr, $root:ty, $unroll:literal, $sources:ident, $registers:expr,
        $law:ty, $closest:ty
    ) => {{
        type Chosen = Numerics<f32, Fused, $root, $closest>;
        type Word = <Float4<f32> as Layout>::Word;
        Entry {
            symbol: $symbol,
            work: Work::Force {
                schedule: ScheduleName::Grid2d {
                    sources: <grid2d::$sources as grid2d::Sources>::IN,
                },
                law: <$law>::LAW,
                formula: <$law>::FORMULA,
                numerics: Chosen::POLICY,
                unroll: $unroll,
                lane: 1,
                order: Order::Fixed,
                max_registers: $registers,
            },
            layout: LayoutDescription::of::<Float4<f32>>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            pointers: &[
                Pointer::read(Buffer::state),
                Pointer::written(Buffer::partial),
            ],
            emulate: force_function!(
                Argument,
                $symbol,
                Word,
                grid2d::force::<
                    Float4<f32>,
                    Chosen,
                    $law,
                    grid2d::$sources,
                    $unroll,
                    { most_registers($registers) },
                >
            ),
        }
    }};
}

/// 0 for a kernel that is not held to a number of registers.
const fn most_registers(most: Option<u32>) -> u32 {
    match most {
        Some(most) => most,
        None => 0,
    }
}

/// The force kernels that leave partial sums.
macro_rules! grids {
    ($($name:literal: $root:ty, $unroll:literal, $sources:ident, $registers:expr;)*) => {
        /// The force kernels of two-dimensional blocks; each row one combination, softened
        /// and not.
        pub const GRIDS: &[Row] = &[$(Row::new($name, &[
            grid!(concat!("force_", $name, "_gravity"), $root, $unroll, $sources, $registers,
                Gravity, Softened),
            grid!(concat!("force_", $name, "_gravity_eps0"), $root, $unroll, $sources, $registers,
                Gravity, Unsoftened),
        ])),*];
    };
}

grids! {
    "grid2d_float4_f32_exact_u16": Exact, 16, Global, None;
    "grid2d_float4_f32_approximate_u16": Approximate, 16, Global, None;
    "grid2d_shared_float4_f32_approximate_u16": Approximate, 16, SharedRows, None;
    "grid2d_shared_float4_f32_approximate_u16_r32": Approximate, 16, SharedRows, Some(32);
    "grid2d_interleaved_float4_f32_approximate_u16": Approximate, 16, SharedInterleaved, None;
}

/// The kernels that add partial sums.
pub const REDUCTIONS: &[Entry] = &{
    type F = Float4<f32>;
    type D = Float4<f64>;
    type Word = <F as Layout>::Word;
    type WordF64 = <D as Layout>::Word;
    [
        entry!(
            "reduce_serial_float4_f32",
            F,
            Work::Reduce(Reduction::Serial),
            (partial: *const Word, acceleration: *mut Word) => reduce::serial::<F>
        ),
        entry!(
            "reduce_serial_float4_f64",
            D,
            Work::Reduce(Reduction::Serial),
            (partial: *const WordF64, acceleration: *mut WordF64) => reduce::serial::<D>
        ),
        entry!(
            "reduce_tree_float4_f32",
            F,
            Work::Reduce(Reduction::Tree),
            (partial: *const Word, acceleration: *mut Word) => reduce::tree::<F>
        ),
        entry!(
            "reduce_matrix_vector_float4_f32",
            F,
            Work::Reduce(Reduction::MatrixVector),
            (partial: *const f32, ones: *const f32, acceleration: *mut f32)
                => reduce::matrix_vector::<F>
        ),
        entry!("ones_float4_f32", F, Work::Ones, (ones: *mut f32) => reduce::ones),
    ]
};
