//! The kernels that compute far pairs on tensor cores, and what they need beside.

use super::{Entry, LayoutDescription, OLDEST, Row, Scalars, Work};
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
    ($symbol:expr, $law:ty, $unsoftened:literal) => {{
        #[kernel(name = $symbol, since = 80)]
        unsafe fn force(
            state: *const Vec4<f32>,
            boxes: *const Vec4<f32>,
            acceleration: *mut Vec4<f32>,
            params: Params,
        ) {
            limit_registers::<96>();
            // SAFETY: the launch's promise.
            unsafe { separated::far::<$law>(state, boxes, acceleration, params) }
        }
        Entry {
            symbol: $symbol,
            work: Work::Force {
                schedule: separated::NAME,
                law: <$law>::LAW,
                formula: <$law>::FORMULA,
                numerics: separated::numerics($unsoftened),
                unroll: separated::UNROLL,
                lane: 1,
                order: Order::Any,
                max_registers: None, // what the tiles need is no choice of its own
            },
            layout: LayoutDescription::of::<Float4<f32>>(),
            scalars: Scalars::Argument,
            since: 80,
            writes: &[false, false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe {
                force(a.pointer(0), a.pointer(1), a.pointer(2), a.params)
            }),
        }
    }};
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
        #[kernel(name = $symbol)]
        unsafe fn near(
            state: *const Vec4<f32>,
            boxes: *const Vec4<f32>,
            acceleration: *mut Vec4<f32>,
            params: Params,
        ) {
            limit_registers::<96>();
            // SAFETY: the launch's promise.
            unsafe { separated::near::<Chosen, $law>(state, boxes, acceleration, params) }
        }
        Entry {
            symbol: $symbol,
            work: Work::Near {
                law: <$law>::LAW,
                unsoftened: Chosen::POLICY.unsoftened,
            },
            layout: LayoutDescription::of::<Float4<f32>>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe {
                near(a.pointer(0), a.pointer(1), a.pointer(2), a.params)
            }),
        }
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
pub const BOXES: &[Entry] = &[{
    #[kernel(name = "boxes_float4_f32")]
    unsafe fn boxes(state: *const Vec4<f32>, boxes: *mut Vec4<f32>, params: Params) {
        // SAFETY: the launch's promise.
        unsafe { separated::boxes(state, boxes, params) }
    }
    Entry {
        symbol: "boxes_float4_f32",
        work: Work::Boxes,
        layout: LayoutDescription::of::<Float4<f32>>(),
        scalars: Scalars::Argument,
        since: OLDEST,
        writes: &[false, true],
        // SAFETY: the launch's promise.
        emulate: emulated!(|a| unsafe { boxes(a.pointer(0), a.pointer(1), a.params) }),
    }
}];
