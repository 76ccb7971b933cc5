//! The force kernels on tensor cores.

use super::{Row, Work};
use crate::abi::Params;
use crate::interaction::{Gravity, PairLaw, Unit};
use crate::layout::Float4;
use crate::schedule::symmetric::Order;
use crate::schedule::tensor;
use cuda_std::thread::limit_registers;
use cuda_std::vector::Vec4;
use cuda_std::{emulated, kernel};

macro_rules! force {
    ($symbol:expr, $tiles:literal, $registers:literal, $law:ty) => {
        entry!(
            $symbol; since 80,
            Float4<f32>,
            Work::Force {
                schedule: tensor::NAME,
                law: <$law>::LAW,
                formula: <$law>::FORMULA,
                numerics: tensor::NUMERICS,
                unroll: $tiles,
                lane: 1,
                order: Order::Any,
                max_registers: None, // what the tiles need is no choice of its own
            },
            (state: *const Vec4<f32>, acceleration: *mut Vec4<f32>), params => {
                limit_registers::<$registers>();
                tensor::force::<$law, $tiles>(state, acceleration, params)
            }
        )
    };
}

/// A line each, compiled for both laws, for ε > 0. `8, 80`: eight tiles of targets a block, and at
/// most 80 registers a thread, the fewest that spill none in the loop.
macro_rules! forces {
    ($($name:literal: $tiles:literal, $registers:literal;)*) => {
        /// The force kernels on tensor cores, for both laws; `unroll` are the tiles of a block.
        pub const TENSOR: &[Row] = &[$(Row::new($name, &[
            force!(concat!("force_", $name, "_unit"), $tiles, $registers, Unit),
            force!(concat!("force_", $name, "_gravity"), $tiles, $registers, Gravity),
        ])),*];
    };
}

forces! {
    "tensor_soft_t8": 8, 80;
    "tensor_soft_t12": 12, 96;
}
