//! The kernels of block time steps.

use super::{Entry, Work};
use crate::abi::Params;
use crate::numerics::{Softened, Unsoftened};
use crate::schedule::block_steps::{
    self, Bodies, BodyBuffers, Digits, Double, Fourth, Mixed, Scheme, Single, Sixth,
};
use cuda_std::vector::Vec4;
use cuda_std::{emulated, kernel};

macro_rules! force {
    ($symbol:expr, $scheme:ty, $digits:ty, $closest:ty, $unsoftened:literal) => {{
        type Sums = Vec4<<$digits as Digits>::Real>;
        entry!(
            $symbol,
            Bodies,
            Work::BlockForce {
                order: <$scheme>::ORDER,
                digits: <$digits>::NAME,
                unsoftened: $unsoftened,
            },
            (
                state: *const Vec4<f64>,
                acceleration: *const Vec4<f64>,
                jerk: *const Vec4<f64>,
                higher: *const Vec4<f64>,
                begun: *const u64,
                targets: *const Sums,
                posts: *const u64,
                time: *const u64,
                partials: *mut Sums,
            ), params => {
                let bodies = BodyBuffers {
                    state: state.cast_mut(),
                    acceleration: acceleration.cast_mut(),
                    jerk: jerk.cast_mut(),
                    higher: higher.cast_mut(),
                    begun: begun.cast_mut(),
                };
                block_steps::force::<$scheme, $digits, $closest>(
                    bodies, targets, posts, time, partials, params,
                )
            }
        )
    }};
}

macro_rules! gather {
    ($symbol:expr, $scheme:ty, $digits:ty) => {{
        type Sums = Vec4<<$digits as Digits>::Real>;
        entry!(
            $symbol,
            Bodies,
            Work::BlockGather {
                order: <$scheme>::ORDER,
                digits: <$digits>::NAME,
            },
            (
                partials: *const Sums,
                posts: *const u64,
                time: *const u64,
                row: *mut Vec4<f64>,
            ) => block_steps::gather::<$scheme, $digits>
        )
    }};
}

macro_rules! correct {
    ($symbol:expr, $scheme:ty, $digits:ty, $external:literal $(, $fields:ident)?) => {{
        type Sums = Vec4<<$digits as Digits>::Real>;
        entry!(
            $symbol,
            Bodies,
            Work::BlockCorrect {
                order: <$scheme>::ORDER,
                digits: <$digits>::NAME,
                external: $external,
            },
            (
                state: *mut Vec4<f64>,
                acceleration: *mut Vec4<f64>,
                jerk: *mut Vec4<f64>,
                higher: *mut Vec4<f64>,
                begun: *mut u64,
                levels: *mut u32,
                steps: *mut f64,
                partials: *const Sums,
                posts: *mut u64,
                time: *mut u64,
                targets: *mut Sums
                $(, $fields: *const f64)?
            ), params => {
                let fields = [$($fields,)? core::ptr::null()][0];
                let bodies = BodyBuffers {
                    state,
                    acceleration,
                    jerk,
                    higher,
                    begun,
                };
                block_steps::correct::<$scheme, $digits, $external>(
                    bodies, levels, steps, partials, posts, time, targets, fields, params,
                )
            }
        )
    }};
}

/// A line each: name, scheme and digits, compiled for ε > 0 and ε = 0.
macro_rules! kernels {
    ($($name:literal: $scheme:ty, $digits:ty;)*) => {
        /// The kernels of block time steps: forces, forces for ε = 0, their sums on a device among several,
        /// and the ends of steps, without and with external fields.
        pub const BLOCK_STEPS: &[[Entry; 5]] = &[$([
            force!(concat!("block_force_", $name), $scheme, $digits, Softened, false),
            force!(concat!("block_force_", $name, "_eps0"), $scheme, $digits, Unsoftened, true),
            gather!(concat!("block_gather_", $name), $scheme, $digits),
            correct!(concat!("block_correct_", $name), $scheme, $digits, false),
            correct!(
                concat!("block_correct_external_", $name), $scheme, $digits, true, fields
            ),
        ]),*];
    };
}

kernels! {
    "hermite4_single": Fourth, Single;
    "hermite4_mixed": Fourth, Mixed;
    "hermite4_double": Fourth, Double;
    "hermite6_single": Sixth, Single;
    "hermite6_mixed": Sixth, Mixed;
    "hermite6_double": Sixth, Double;
}

macro_rules! relativity {
    ($symbol:expr, $scheme:ty) => {
        entry!(
            $symbol,
            Bodies,
            Work::BlockRelativity {
                order: <$scheme>::ORDER,
            },
            (
                state: *const Vec4<f64>,
                acceleration: *const Vec4<f64>,
                jerk: *const Vec4<f64>,
                higher: *const Vec4<f64>,
                begun: *const u64,
                levels: *const u32,
                partials: *mut Vec4<f64>,
                posts: *const u64,
                time: *mut u64,
                fields: *const f64,
                centre: *const f64,
            ), params => {
                let bodies = BodyBuffers {
                    state: state.cast_mut(),
                    acceleration: acceleration.cast_mut(),
                    jerk: jerk.cast_mut(),
                    higher: higher.cast_mut(),
                    begun: begun.cast_mut(),
                };
                block_steps::relativity::<$scheme>(
                    bodies, levels, partials, posts, time, fields, centre, params,
                )
            }
        )
    };
}

/// The kernels that add a term of relativity in block time steps, of pairs in f64 alone: it is far below what
/// f32 rounds.
pub const BLOCK_RELATIVITY: &[Entry] = &[
    relativity!("block_relativity_hermite4", Fourth),
    relativity!("block_relativity_hermite6", Sixth),
];

macro_rules! take_over {
    ($symbol:expr, $scheme:ty, $digits:ty) => {
        entry!(
            $symbol,
            Bodies,
            Work::BlockTakeOver {
                order: <$scheme>::ORDER,
                digits: <$digits>::NAME,
            },
            (
                told: *const Vec4<f64>,
                state: *mut Vec4<f64>,
                acceleration: *mut Vec4<f64>,
                jerk: *mut Vec4<f64>,
                higher: *mut Vec4<f64>,
                begun: *mut u64,
                targets: *mut Vec4<<$digits as Digits>::Real>,
                posts: *mut u64,
                time: *mut u64,
            ), params => {
                let bodies = BodyBuffers {
                    state,
                    acceleration,
                    jerk,
                    higher,
                    begun,
                };
                block_steps::take_over::<$scheme, $digits>(
                    told, bodies, targets, posts, time, params,
                )
            }
        )
    };
}

/// The kernels that take over from the host what it tells, where the host takes block time steps.
pub const BLOCK_TAKE_OVER: &[Entry] = &[
    take_over!("block_take_over_hermite4_single", Fourth, Single),
    take_over!("block_take_over_hermite4_mixed", Fourth, Mixed),
    take_over!("block_take_over_hermite4_double", Fourth, Double),
    take_over!("block_take_over_hermite6_single", Sixth, Single),
    take_over!("block_take_over_hermite6_mixed", Sixth, Mixed),
    take_over!("block_take_over_hermite6_double", Sixth, Double),
];
