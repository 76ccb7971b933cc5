//! The list of compiled entry points: which combinations of schedule, layout, law and numerics
//! exist as kernels in the PTX module. What is offered to users under which name is another list,
//! the host's.
//!
//! To add a combination, add a line to [`FORCES`]; to add an algorithm, a file in
//! [`schedule`](crate::schedule) and lines here.

use crate::abi::{Arguments, Params};
use crate::interaction::{Gravity, Law, PairLaw, Unit};
use crate::layout::{Aos, Field, Float4, Layout, LayoutName, Soa};
use crate::numerics::{
    Approximate, Arithmetic, Exact, Fused, Numerics, NumericsName, Precision, Real, Softened,
    Unsoftened,
};
use crate::schedule::{ScheduleName, advance, direct, energy, tiled};
use cuda_std::{emulated, kernel};

/// A compiled kernel.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its symbol in the PTX module.
    pub symbol: &'static str,
    /// What it computes, and how.
    pub work: Work,
    /// Where it finds its bodies.
    pub layout: LayoutDescription,
    /// For each of its pointer parameters, in order, whether it writes there.
    pub writes: &'static [bool],
    /// Calls one thread of it; only off the device, and only inside an emulated launch.
    pub emulate: Option<unsafe fn(&Arguments<'_>)>,
}

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Accelerations: pointers `(state, acceleration)`.
    Force {
        /// The algorithm.
        schedule: ScheduleName,
        /// The law.
        law: Law,
        /// The arithmetic.
        numerics: NumericsName,
        /// Interactions in the body of its inner loop.
        unroll: u32,
    },
    /// `v += dt a`: pointers `(state, acceleration)`.
    Kick,
    /// `x += dt v`: pointer `(state)`.
    Drift,
    /// `v *= dt`, where dt is a factor: pointer `(state)`.
    Damp,
    /// Energies, two f64 a block: pointers `(state, sums)`.
    Energy(Law),
}

/// What the host must know of a layout to pack for it.
#[derive(Clone, Copy, Debug)]
pub struct LayoutDescription {
    /// Its name.
    pub name: LayoutName,
    /// Type of its scalars.
    pub precision: Precision,
    /// See [`Layout::STATE_SCALARS`].
    pub state_scalars: u32,
    /// See [`Layout::VECTOR_SCALARS`].
    pub vector_scalars: u32,
    /// Bytes of shared memory that a source takes in a tile.
    pub tile_bytes: u32,
    /// See [`Layout::scalar`].
    pub scalar: fn(Field, u32, u32) -> usize,
    /// See [`Layout::vector_scalar`].
    pub vector_scalar: fn(u32, u32, u32) -> usize,
}

impl LayoutDescription {
    /// The description of a layout.
    pub const fn of<L: Layout>() -> Self {
        Self {
            name: L::NAME,
            precision: L::Real::PRECISION,
            state_scalars: L::STATE_SCALARS,
            vector_scalars: L::VECTOR_SCALARS,
            tile_bytes: L::TILE_WORDS * size_of::<L::Word>() as u32,
            scalar: L::scalar,
            vector_scalar: L::vector_scalar,
        }
    }
}

/// The entry with this symbol.
#[inline] // which keeps it out of the PTX
pub fn find(symbol: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.symbol == symbol)
}

/// All entries.
#[inline]
pub fn all() -> impl Iterator<Item = &'static Entry> {
    FORCES.iter().flatten().chain(LAYOUTS.iter().flatten())
}

/// A kernel of the force on every body.
macro_rules! force {
    ($symbol:expr, $schedule:ident, $layout:ty, $root:ty, $unroll:literal, $law:ty, $closest:ty) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, Fused, $root, $closest>;
        type Word = <$layout as Layout>::Word;
        #[kernel(name = $symbol)]
        unsafe fn force(state: *const Word, acceleration: *mut Word, params: Params) {
            // SAFETY: the launch's promise.
            unsafe {
                $schedule::force::<$layout, Chosen, $law, $unroll>(state, acceleration, params)
            }
        }
        Entry {
            symbol: $symbol,
            work: Work::Force {
                schedule: $schedule::NAME,
                law: <$law>::NAME,
                numerics: Chosen::NAME,
                unroll: $unroll,
            },
            layout: LayoutDescription::of::<$layout>(),
            writes: &[false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { force(a.pointer(0), a.pointer(1), a.params) }),
        }
    }};
}

/// The force kernels: a line each, compiled for both laws and for ε > 0 and ε = 0.
macro_rules! forces {
    ($($name:literal: $schedule:ident, $layout:ty, $root:ty, $unroll:literal;)*) => {
        /// The force kernels; each row one combination, for both laws, softened and not.
        pub const FORCES: &[[Entry; 4]] = &[$([
            force!(concat!("force_", $name, "_unit"), $schedule, $layout, $root, $unroll, Unit, Softened),
            force!(concat!("force_", $name, "_unit_eps0"), $schedule, $layout, $root, $unroll, Unit, Unsoftened),
            force!(concat!("force_", $name, "_gravity"), $schedule, $layout, $root, $unroll, Gravity, Softened),
            force!(concat!("force_", $name, "_gravity_eps0"), $schedule, $layout, $root, $unroll, Gravity, Unsoftened),
        ]),*];
    };
}

forces! {
    "direct_aos_f32_exact": direct, Aos<f32>, Exact, 1;
    "direct_aos_f32_approximate": direct, Aos<f32>, Approximate, 1;
    "direct_soa_f32_exact": direct, Soa<f32>, Exact, 1;
    "direct_soa_f32_approximate": direct, Soa<f32>, Approximate, 1;
    "direct_float4_f32_exact": direct, Float4<f32>, Exact, 1;
    "direct_float4_f32_approximate": direct, Float4<f32>, Approximate, 1;
    "direct_float4_f64_exact": direct, Float4<f64>, Exact, 1;
    "tiled_aos_f32_exact": tiled, Aos<f32>, Exact, 1;
    "tiled_aos_f32_approximate": tiled, Aos<f32>, Approximate, 1;
    "tiled_soa_f32_exact": tiled, Soa<f32>, Exact, 1;
    "tiled_soa_f32_approximate": tiled, Soa<f32>, Approximate, 1;
    "tiled_float4_f32_exact": tiled, Float4<f32>, Exact, 1;
    "tiled_float4_f32_approximate": tiled, Float4<f32>, Approximate, 1;
    "tiled_float4_f32_exact_u16": tiled, Float4<f32>, Exact, 16;
    "tiled_float4_f32_approximate_u16": tiled, Float4<f32>, Approximate, 16;
    "tiled_float4_f64_exact": tiled, Float4<f64>, Exact, 1;
    "tiled_float4_f64_approximate": tiled, Float4<f64>, Approximate, 1;
    "tiled_float4_f64_approximate_u8": tiled, Float4<f64>, Approximate, 8;
}

/// The kernels that advance and weigh the bodies of a layout.
macro_rules! layouts {
    ($($name:literal: $layout:ty;)*) => {
        /// The kernels beside the force, one row a layout.
        pub const LAYOUTS: &[[Entry; 5]] = &[$({
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
            #[kernel(name = concat!("energy_", $name, "_unit"))]
            unsafe fn energy_unit(state: *const Word, sums: *mut f64, params: Params) {
                // SAFETY: the launch's promise.
                unsafe { energy::energy::<$layout, Unit>(state, sums, params) }
            }
            #[kernel(name = concat!("energy_", $name, "_gravity"))]
            unsafe fn energy_gravity(state: *const Word, sums: *mut f64, params: Params) {
                // SAFETY: the launch's promise.
                unsafe { energy::energy::<$layout, Gravity>(state, sums, params) }
            }
            [
                Entry {
                    symbol: concat!("kick_", $name),
                    work: Work::Kick,
                    layout: LAYOUT,
                    writes: &[true, false],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { kick(a.pointer(0), a.pointer(1), a.params) }),
                },
                Entry {
                    symbol: concat!("drift_", $name),
                    work: Work::Drift,
                    layout: LAYOUT,
                    writes: &[true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { drift(a.pointer(0), a.params) }),
                },
                Entry {
                    symbol: concat!("damp_", $name),
                    work: Work::Damp,
                    layout: LAYOUT,
                    writes: &[true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { damp(a.pointer(0), a.params) }),
                },
                Entry {
                    symbol: concat!("energy_", $name, "_unit"),
                    work: Work::Energy(Law::Unit),
                    layout: LAYOUT,
                    writes: &[false, true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe {
                        energy_unit(a.pointer(0), a.pointer(1), a.params)
                    }),
                },
                Entry {
                    symbol: concat!("energy_", $name, "_gravity"),
                    work: Work::Energy(Law::Gravity),
                    layout: LAYOUT,
                    writes: &[false, true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe {
                        energy_gravity(a.pointer(0), a.pointer(1), a.params)
                    }),
                },
            ]
        }),*];
    };
}

layouts! {
    "aos_f32": Aos<f32>;
    "soa_f32": Soa<f32>;
    "float4_f32": Float4<f32>;
    "float4_f64": Float4<f64>;
}
