//! The kernels that compute far pairs on tensor cores, and what they need beside.

use super::{Entry, Row, Work};
use crate::abi::Params;
use crate::interaction::{Gravity, PairLaw, Unit};
use crate::layout::Float4;
use crate::numerics::{Approximate, Arithmetic, Fused, Numerics, Softened, Unsoftened};
use crate::schedule::separated;
use crate::schedule::symmetric::Order;
use cuda_std::thread::limit_registers;
use cuda_std::vector::Vec4;
use cuda_std::{emulated, kernel};

macro_rules! far {
    ($symbol:expr, $law:ty, $unsoftened:literal) => {
        entry!(
            $symbol; since 80,
            Float4<f32>,
            Work::Force {
                schedule: separated::NAME,
                law: <$law>::LAW,
                formula: <$law>::FORMULA,
                numerics: separated::numerics($unsoftened),
                unroll: separated::UNROLL,
                lane: 1,
                order: Order::Any,
                max_registers: None, // what the tiles need is no choice of its own
            },
            (
                state: *const Vec4<f32>,
                boxes: *const Vec4<f32>,
                acceleration: *mut Vec4<f32>,
            ), params => {
                limit_registers::<96>();
                separated::far::<$law>(state, boxes, acceleration, params)
            }
        )
    };
}

/// The force kernels of far pairs, for both laws, for ε > 0 and ε = 0, where they are the same.
pub const FAR: &[Row] = &[Row::new(
    "tensor",
    &[
        far!("force_tensor_unit", Unit, false),
        far!("force_tensor_unit_eps0", Unit, true),
        far!("force_tensor_gravity", Gravity, false),
        far!("force_tensor_gravity_eps0", Gravity, true),
    ],
)];

macro_rules! near {
    ($symbol:expr, $law:ty, $closest:ty) => {{
        type Chosen = Numerics<f32, Fused, Approximate, $closest>;
        entry!(
            $symbol,
            Float4<f32>,
            Work::Near {
                law: <$law>::LAW,
                unsoftened: Chosen::POLICY.unsoftened,
            },
            (
                state: *const Vec4<f32>,
                boxes: *const Vec4<f32>,
                acceleration: *mut Vec4<f32>,
            ), params => {
                limit_registers::<96>();
                separated::near::<Chosen, $law>(state, boxes, acceleration, params)
            }
        )
    }};
}

/// The kernels of near pairs.
pub const NEAR: &[Entry] = &[
    near!("near_unit", Unit, Softened),
    near!("near_unit_eps0", Unit, Unsoftened),
    near!("near_gravity", Gravity, Softened),
    near!("near_gravity_eps0", Gravity, Unsoftened),
];

/// The boxes around leaves.
pub const BOXES: &[Entry] = &[entry!(
    "boxes_float4_f32",
    Float4<f32>,
    Work::Boxes,
    (state: *const Vec4<f32>, boxes: *mut Vec4<f32>) => separated::boxes
)];
