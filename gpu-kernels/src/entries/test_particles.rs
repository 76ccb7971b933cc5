//! The kernels for test particles: forces of fewer sources than targets, and many steps at a time.

use super::{Entry, Row, Work};
use crate::abi::Params;
use crate::interaction::{Gravity, PairLaw};
use crate::layout::{Float4, Layout};
use crate::numerics::{Approximate, Arithmetic, Fused, Numerics, Softened, Unsoftened};
use crate::schedule::symmetric::Order;
use crate::schedule::test_particles;
use cuda_std::{emulated, kernel};

macro_rules! force {
    ($symbol:expr, $layout:ty, $unroll:literal, $closest:ty) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        entry!(
            $symbol,
            $layout,
            Work::Force {
                schedule: test_particles::NAME,
                law: Gravity::LAW,
                formula: Gravity::FORMULA,
                numerics: Chosen::POLICY,
                unroll: $unroll,
                lane: 1,
                order: Order::Fixed,
                max_registers: None,
            },
            (state: *const Word, sources: *const Word, acceleration: *mut Word)
                => test_particles::force::<$layout, Chosen, Gravity, $unroll>
        )
    }};
}

/// A line each, compiled for ε > 0 and ε = 0: the layout, and the unroll factor.
macro_rules! forces {
    ($($name:literal: $layout:ty, $unroll:literal;)*) => {
        /// The force kernels of fewer sources than targets; all bodies have weights of 1 where the law
        /// is `unit`, and so it is none of theirs.
        pub const TEST_PARTICLES: &[Row] = &[$(Row::new($name, &[
            force!(concat!("force_", $name, "_gravity"), $layout, $unroll, Softened),
            force!(concat!("force_", $name, "_gravity_eps0"), $layout, $unroll, Unsoftened),
        ])),*];
    };
}

forces! {
    "test_particles_float4_f32_approximate_u16": Float4<f32>, 16;
    "test_particles_float4_f64_approximate_u8": Float4<f64>, 8;
}

macro_rules! trace {
    ($symbol:expr, $layout:ty, $closest:ty) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        entry!(
            $symbol,
            $layout,
            Work::Trace {
                unsoftened: Chosen::POLICY.unsoftened,
            },
            (
                sources: *const Word,
                acceleration: *const Word,
                indices: *const u32,
                moves: *const f64,
                kept: *mut Word,
            ) => test_particles::trace::<$layout, Chosen, Gravity>
        )
    }};
}

macro_rules! follow {
    ($symbol:expr, $layout:ty, $closest:ty) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, Approximate, $closest>;
        type Word = <$layout as Layout>::Word;
        entry!(
            $symbol,
            $layout,
            Work::Follow {
                unsoftened: Chosen::POLICY.unsoftened,
            },
            (
                state: *mut Word,
                acceleration: *mut Word,
                moves: *const f64,
                kept: *const Word,
            ) => test_particles::follow::<$layout, Chosen, Gravity>
        )
    }};
}

/// The kernels beside the force, one row per layout.
macro_rules! beside {
    ($($name:literal: $layout:ty;)*) => {
        /// The kernels that copy sources, and those that take many steps at a time, one row per layout.
        pub const WITH_TEST_PARTICLES: &[[Entry; 5]] = &[$({
            type Word = <$layout as Layout>::Word;
            [
                entry!(
                    concat!("sources_", $name),
                    $layout,
                    Work::Sources,
                    (state: *const Word, indices: *const u32, sources: *mut Word)
                        => test_particles::gather::<$layout>
                ),
                trace!(concat!("trace_", $name, "_gravity"), $layout, Softened),
                trace!(concat!("trace_", $name, "_gravity_eps0"), $layout, Unsoftened),
                follow!(concat!("follow_", $name, "_gravity"), $layout, Softened),
                follow!(concat!("follow_", $name, "_gravity_eps0"), $layout, Unsoftened),
            ]
        }),*];
    };
}

beside! {
    "float4_f32": Float4<f32>;
    "float4_f64": Float4<f64>;
}
