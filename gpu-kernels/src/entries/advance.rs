//! The kernels that advance and weigh bodies.

use super::{Entry, Work};
use crate::abi::Params;
use crate::interaction::{AttractRepel, Gravity, PairLaw, Unit};
use crate::layout::{Aos, Float3, Float4, Layout, Soa};
use crate::schedule::{advance, energy, external};
use cuda_std::{emulated, f16, kernel};

macro_rules! energy {
    ($symbol:expr, $layout:ty, $law:ty) => {
        energy!($symbol, $layout, $law, Energy, energy)
    };
    ($symbol:expr, $layout:ty, $law:ty, $work:ident, $energy:ident) => {
        entry!(
            $symbol,
            $layout,
            Work::$work(<$law>::LAW),
            (state: *const <$layout as Layout>::Word, energies: *mut f64)
                => energy::$energy::<$layout, $law>
        )
    };
}

/// The kernels that advance and weigh the bodies of a layout.
macro_rules! layouts {
    ($($name:literal: $layout:ty;)*) => {
        /// The kernels beside the force, one row per layout.
        pub const LAYOUTS: &[[Entry; 9]] = &[$({
            type Word = <$layout as Layout>::Word;
            [
                entry!(
                    concat!("kick_", $name),
                    $layout,
                    Work::Kick,
                    (state: *mut Word, acceleration: *const Word) => advance::kick::<$layout>
                ),
                entry!(
                    concat!("drift_", $name),
                    $layout,
                    Work::Drift,
                    (state: *mut Word) => advance::drift::<$layout>
                ),
                entry!(
                    concat!("damp_", $name),
                    $layout,
                    Work::Damp,
                    (state: *mut Word) => advance::damp::<$layout>
                ),
                entry!(
                    concat!("external_", $name),
                    $layout,
                    Work::External,
                    (state: *const Word, acceleration: *mut Word, fields: *const f64)
                        => external::accelerate::<$layout>
                ),
                entry!(
                    concat!("kick_in_fields_", $name),
                    $layout,
                    Work::KickInFields,
                    (state: *mut Word, acceleration: *const Word, of_fields: *const Word)
                        => external::kick::<$layout>
                ),
                entry!(
                    concat!("unite_", $name),
                    $layout,
                    Work::Unite,
                    (acceleration: *mut Word, of_fields: *mut Word) => external::unite::<$layout>
                ),
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
