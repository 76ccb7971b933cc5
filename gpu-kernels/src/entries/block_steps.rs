//! The kernels of block time steps.

use super::{Entry, LayoutDescription, OLDEST, Scalars, Work};
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
        #[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
        #[kernel(name = $symbol)]
        unsafe fn force(
            state: *const Vec4<f64>,
            acceleration: *const Vec4<f64>,
            jerk: *const Vec4<f64>,
            higher: *const Vec4<f64>,
            begun: *const u64,
            targets: *const Sums,
            posts: *const u64,
            time: *const u64,
            partials: *mut Sums,
            params: Params,
        ) {
            let bodies = BodyBuffers {
                state: state.cast_mut(),
                acceleration: acceleration.cast_mut(),
                jerk: jerk.cast_mut(),
                higher: higher.cast_mut(),
                begun: begun.cast_mut(),
            };
            // SAFETY: the launch's promise.
            unsafe {
                block_steps::force::<$scheme, $digits, $closest>(
                    bodies, targets, posts, time, partials, params,
                )
            }
        }
        Entry {
            symbol: $symbol,
            work: Work::BlockForce {
                order: <$scheme>::ORDER,
                digits: <$digits>::NAME,
                unsoftened: $unsoftened,
            },
            layout: LayoutDescription::of::<Bodies>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, false, false, false, false, false, false, false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe {
                force(
                    a.pointer(0),
                    a.pointer(1),
                    a.pointer(2),
                    a.pointer(3),
                    a.pointer(4),
                    a.pointer(5),
                    a.pointer(6),
                    a.pointer(7),
                    a.pointer(8),
                    a.params,
                )
            }),
        }
    }};
}

/// The last pointer of an entry that takes fields.
macro_rules! pointer_of {
    ($fields:ident, $arguments:ident) => {
        $arguments.pointer(11)
    };
}

macro_rules! correct {
    ($symbol:expr, $scheme:ty, $digits:ty, $external:literal, [$($fields:ident)?], $writes:expr) => {{
        type Sums = Vec4<<$digits as Digits>::Real>;
        #[expect(clippy::too_many_arguments, reason = "the pointers of a kernel")]
        #[kernel(name = $symbol)]
        unsafe fn correct(
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
            targets: *mut Sums,
            $($fields: *const f64,)?
            params: Params,
        ) {
            let fields = [$($fields,)? core::ptr::null()][0];
            let bodies = BodyBuffers {
                state,
                acceleration,
                jerk,
                higher,
                begun,
            };
            // SAFETY: the launch's promise.
            unsafe {
                block_steps::correct::<$scheme, $digits, $external>(
                    bodies, levels, steps, partials, posts, time, targets, fields, params,
                )
            }
        }
        Entry {
            symbol: $symbol,
            work: Work::BlockCorrect {
                order: <$scheme>::ORDER,
                digits: <$digits>::NAME,
                external: $external,
            },
            layout: LayoutDescription::of::<Bodies>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: $writes,
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe {
                correct(
                    a.pointer(0),
                    a.pointer(1),
                    a.pointer(2),
                    a.pointer(3),
                    a.pointer(4),
                    a.pointer(5),
                    a.pointer(6),
                    a.pointer(7),
                    a.pointer(8),
                    a.pointer(9),
                    a.pointer(10),
                    $(pointer_of!($fields, a),)?
                    a.params,
                )
            }),
        }
    }};
}

/// Pointer parameters of an end of steps that it writes.
const WRITES: [bool; 11] = [
    true, true, true, true, true, true, true, false, true, true, true,
];

/// As [`WRITES`], and the fields.
const WRITES_WITH_FIELDS: [bool; 12] = [
    true, true, true, true, true, true, true, false, true, true, true, false,
];

/// A line each: name, scheme and digits, compiled for ε > 0 and ε = 0.
macro_rules! kernels {
    ($($name:literal: $scheme:ty, $digits:ty;)*) => {
        /// The kernels of block time steps: forces, forces for ε = 0, and the ends of steps, without and
        /// with external fields.
        pub const BLOCK_STEPS: &[[Entry; 4]] = &[$([
            force!(concat!("block_force_", $name), $scheme, $digits, Softened, false),
            force!(concat!("block_force_", $name, "_eps0"), $scheme, $digits, Unsoftened, true),
            correct!(concat!("block_correct_", $name), $scheme, $digits, false, [], &WRITES),
            correct!(
                concat!("block_correct_external_", $name), $scheme, $digits, true, [fields],
                &WRITES_WITH_FIELDS
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
