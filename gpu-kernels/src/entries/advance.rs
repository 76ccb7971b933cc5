//! The kernels that advance and weigh bodies.

use super::{Entry, LayoutDescription, OLDEST, Scalars, Work};
use crate::abi::Params;
use crate::interaction::{AttractRepel, Gravity, PairLaw, Unit};
use crate::layout::{Aos, Float3, Float4, Layout, Soa};
use crate::schedule::{advance, energy, external};
use cuda_std::{emulated, f16, kernel};

macro_rules! energy {
    ($symbol:expr, $layout:ty, $law:ty) => {
        energy!($symbol, $layout, $law, Energy, energy)
    };
    ($symbol:expr, $layout:ty, $law:ty, $work:ident, $energy:ident) => {{
        #[kernel(name = $symbol)]
        unsafe fn energy(state: *const <$layout as Layout>::Word, sums: *mut f64, params: Params) {
            // SAFETY: the launch's promise.
            unsafe { energy::$energy::<$layout, $law>(state, sums, params) }
        }
        Entry {
            symbol: $symbol,
            work: Work::$work(<$law>::LAW),
            layout: LayoutDescription::of::<$layout>(),
            scalars: Scalars::Argument,
            since: OLDEST,
            writes: &[false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { energy(a.pointer(0), a.pointer(1), a.params) }),
        }
    }};
}

/// The kernels that advance and weigh the bodies of a layout.
macro_rules! layouts {
    ($($name:literal: $layout:ty;)*) => {
        /// The kernels beside the force, one row per layout.
        pub const LAYOUTS: &[[Entry; 7]] = &[$({
            type Word = <$layout as Layout>::Word;
            const LAYOUT: LayoutDescription = LayoutDescription::of::<$layout>();
            #[kernel(name = concat!("kick_", $name))]
            unsafe fn kick(state: *mut Word, acceleration: *const Word, params: Params) {
                // SAFETY: the launch's promise.
                unsafe { advance::kick::<$layout>(state, acceleration, params) }
            }
            #[kernel(name = concat!("drift_", $name))]
            unsafe fn drift(state: *mut Word, params: Params) {
                // SAFETY: the launch's promise.
                unsafe { advance::drift::<$layout>(state, params) }
            }
            #[kernel(name = concat!("damp_", $name))]
            unsafe fn damp(state: *mut Word, params: Params) {
                // SAFETY: the launch's promise.
                unsafe { advance::damp::<$layout>(state, params) }
            }
            #[kernel(name = concat!("external_", $name))]
            unsafe fn external(
                state: *const Word,
                acceleration: *mut Word,
                fields: *const f64,
                params: Params,
            ) {
                // SAFETY: the launch's promise.
                unsafe { external::accelerate::<$layout>(state, acceleration, fields, params) }
            }
            [
                Entry {
                    symbol: concat!("kick_", $name),
                    work: Work::Kick,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    since: OLDEST,
                    writes: &[true, false],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { kick(a.pointer(0), a.pointer(1), a.params) }),
                },
                Entry {
                    symbol: concat!("drift_", $name),
                    work: Work::Drift,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    since: OLDEST,
                    writes: &[true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { drift(a.pointer(0), a.params) }),
                },
                Entry {
                    symbol: concat!("damp_", $name),
                    work: Work::Damp,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    since: OLDEST,
                    writes: &[true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { damp(a.pointer(0), a.params) }),
                },
                Entry {
                    symbol: concat!("external_", $name),
                    work: Work::External,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    since: OLDEST,
                    writes: &[false, true, false],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe {
                        external(a.pointer(0), a.pointer(1), a.pointer(2), a.params)
                    }),
                },
                energy!(concat!("energy_", $name, "_unit"), $layout, Unit),
                energy!(concat!("energy_", $name, "_gravity"), $layout, Gravity),
                energy!(concat!("energy_", $name, "_attract_repel"), $layout, AttractRepel),
            ]
        }),*];
    };
}

layouts! {
    "aos_f32": Aos<f32>;
    "soa_f32": Soa<f32>;
    "soa_f64": Soa<f64>;
    "soa_f16_f32": Soa<f32, f16>;
    "soa_f16": Soa<f16>;
    "float3_f32": Float3<f32>;
    "float4_f32": Float4<f32>;
    "float4_f64": Float4<f64>;
}

/// The kernels that weigh many bodies.
pub const QUICK_ENERGIES: &[Entry] = &[
    energy!(
        "quick_energy_float4_f32_unit",
        Float4<f32>,
        Unit,
        QuickEnergy,
        quick
    ),
    energy!(
        "quick_energy_float4_f32_gravity",
        Float4<f32>,
        Gravity,
        QuickEnergy,
        quick
    ),
];
