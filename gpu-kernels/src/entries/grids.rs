//! The force kernels of two-dimensional blocks, and the kernels that add their partial sums.

use super::{Entry, LayoutDescription, OLDEST, Row, Scalars, Work};
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
            writes: &[false, true],
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
    type Word = <F as Layout>::Word;
    type WordF64 = <Float4<f64> as Layout>::Word;
    const LAYOUT: LayoutDescription = LayoutDescription::of::<F>();
    #[kernel(name = "reduce_serial_float4_f32")]
    unsafe fn serial(partial: *const Word, acceleration: *mut Word, params: Params) {
        // SAFETY: the launch's promise.
        unsafe { reduce::serial::<F>(partial, acceleration, params) }
    }
    #[kernel(name = "reduce_serial_float4_f64")]
    unsafe fn serial_f64(partial: *const WordF64, acceleration: *mut WordF64, params: Params) {
        // SAFETY: the launch's promise.
        unsafe { reduce::serial::<Float4<f64>>(partial, acceleration, params) }
    }
    #[kernel(name = "reduce_tree_float4_f32")]
    unsafe fn tree(partial: *const Word, acceleration: *mut Word, params: Params) {
        // SAFETY: the launch's promise.
        unsafe { reduce::tree::<F>(partial, acceleration, params) }
    }
    #[kernel(name = "reduce_matrix_vector_float4_f32")]
    unsafe fn matrix_vector(
        partial: *const f32,
        x: *const f32,
        acceleration: *mut f32,
        params: Params,
    ) {
        // SAFETY: the launch's promise.
        unsafe { reduce::matrix_vector::<F>(partial, x, acceleration, params) }
    }
    #[kernel(name = "ones_float4_f32")]
    unsafe fn ones(x: *mut f32, params: Params) {
        // SAFETY: the launch's promise.
        unsafe { reduce::ones(x, params) }
    }
    [
        Entry {
            symbol: "reduce_serial_float4_f32",
            work: Work::Reduce(Reduction::Serial),
            layout: LAYOUT,
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { serial(a.pointer(0), a.pointer(1), a.params) }),
        },
        Entry {
            symbol: "reduce_serial_float4_f64",
            work: Work::Reduce(Reduction::Serial),
            layout: LayoutDescription::of::<Float4<f64>>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { serial_f64(a.pointer(0), a.pointer(1), a.params) }),
        },
        Entry {
            symbol: "reduce_tree_float4_f32",
            work: Work::Reduce(Reduction::Tree),
            layout: LAYOUT,
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { tree(a.pointer(0), a.pointer(1), a.params) }),
        },
        Entry {
            symbol: "reduce_matrix_vector_float4_f32",
            work: Work::Reduce(Reduction::MatrixVector),
            layout: LAYOUT,
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe {
                matrix_vector(a.pointer(0), a.pointer(1), a.pointer(2), a.params)
            }),
        },
        Entry {
            symbol: "ones_float4_f32",
            work: Work::Ones,
            layout: LAYOUT,
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { ones(a.pointer(0), a.params) }),
        },
    ]
};
