//! The list of compiled entry points: which combinations of schedule, layout, law and numerics
//! exist as kernels in the PTX module. What is offered to users under which name is another list,
//! the host's.
//!
//! To add a combination, add a line to a list made by `forces!`; to add an algorithm, a file in
//! [`schedule`](crate::schedule) and lines here.

use crate::abi::{Arguments, Params};
use crate::interaction::{AttractRepel, AttractRepelDivided, Formula, Gravity, Law, PairLaw, Unit};
use crate::layout::{Aos, Field, Float3, Float4, Layout, LayoutName, Soa};
use crate::numerics::{
    Approximate, Arithmetic, Exact, Fused, KeepSelf, Numerics, NumericsName, Precision, Real,
    Separate, SkipSelf, Softened, Unsoftened,
};
use crate::schedule::{
    Reduction, ScheduleName, advance, direct, energy, grid2d, guarded, hybrid, one_thread, reduce,
    tiled, two_loops,
};
use cuda_std::{constant, emulated, f16, kernel};

/// A compiled kernel.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its symbol in the PTX module.
    pub symbol: &'static str,
    /// What it computes, and how.
    pub work: Work,
    /// Where it finds its bodies.
    pub layout: LayoutDescription,
    /// Where it finds its scalars.
    pub scalars: Scalars,
    /// For each of its pointer parameters, in order, whether it writes there.
    pub writes: &'static [bool],
    /// Calls one thread of it; only off the device, and only inside an emulated launch.
    pub emulate: Option<unsafe fn(&Arguments<'_>)>,
}

/// Where a kernel finds its [`Params`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalars {
    /// In its last parameter.
    Argument,
    /// In the module's constant memory, where the host puts them before the launch.
    Constant,
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
        /// How the law is written.
        formula: Formula,
        /// The arithmetic.
        numerics: NumericsName,
        /// Interactions in the body of its inner loop.
        unroll: u32,
        /// Most registers a thread, where the kernel is held to a number.
        max_registers: Option<u32>,
    },
    /// The accelerations that a [`hybrid`] leaves: pointers as of a force.
    Rest {
        /// The law.
        law: Law,
        /// The arithmetic.
        numerics: NumericsName,
    },
    /// Partial sums to accelerations: pointers `(partial, acceleration)`, and of
    /// [`Reduction::MatrixVector`] `(partial, x, acceleration)`.
    Reduce(Reduction),
    /// The vector x of ones: pointer `(x)`.
    Ones,
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
    /// What its values are computed in, and accelerations stored.
    pub precision: Precision,
    /// What its state is stored in.
    pub stored: Precision,
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
            stored: L::STORED,
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
    [FORCES, ECL, VENUS, ATTRACT_REPEL, ATTRACT_REPEL_DIVIDED]
        .into_iter()
        .flatten()
        .copied()
        .flatten()
        .chain(RESTS)
        .chain(GRIDS.iter().flatten())
        .chain(REDUCTIONS)
        .chain(LAYOUTS.iter().flatten())
}

/// A kernel of the force on every body, as a function that finds its scalars as asked.
macro_rules! force_function {
    (Argument, $symbol:expr, $word:ty, $force:expr) => {{
        #[kernel(name = $symbol)]
        unsafe fn force(state: *const $word, acceleration: *mut $word, params: Params) {
            // SAFETY: the launch's promise.
            unsafe { $force(state, acceleration, params) }
        }
        // SAFETY: the launch's promise.
        emulated!(|a| unsafe { force(a.pointer(0), a.pointer(1), a.params) })
    }};
    (Constant, $symbol:expr, $word:ty, $force:expr) => {{
        #[kernel(name = $symbol)]
        unsafe fn force(state: *const $word, acceleration: *mut $word) {
            // SAFETY: the launch's promise.
            unsafe { $force(state, acceleration, constant::load()) }
        }
        // SAFETY: the launch's promise.
        emulated!(|a| unsafe {
            constant::emulate(a.params);
            force(a.pointer(0), a.pointer(1));
        })
    }};
}

macro_rules! force {
    (
        $symbol:expr, $schedule:ident, $layout:ty, $root:ty, $unroll:literal,
        $mul_add:ty, $scalars:ident, $law:ty, $closest:ty
    ) => {{
        type Chosen = Numerics<<$layout as Layout>::Real, $mul_add, $root, $closest>;
        type Word = <$layout as Layout>::Word;
        Entry {
            symbol: $symbol,
            work: Work::Force {
                schedule: $schedule::NAME,
                law: <$law>::NAME,
                formula: <$law>::FORMULA,
                numerics: Chosen::NAME,
                unroll: $unroll,
                max_registers: None,
            },
            layout: LayoutDescription::of::<$layout>(),
            scalars: Scalars::$scalars,
            writes: &[false, true],
            emulate: force_function!(
                $scalars,
                $symbol,
                Word,
                $schedule::force::<$layout, Chosen, $law, $unroll>
            ),
        }
    }};
}

/// Force kernels: a line each, compiled for some laws, and for ε > 0 and ε = 0.
///
/// The columns are the schedule, the layout, where 1/√ comes from, and the unroll factor; then, of
/// rungs that differ from the rest in them, whether multiply–adds are fused, whether a body is
/// kept from meeting itself, and where the scalars are.
macro_rules! forces {
    (
        @row $laws:tt, $name:literal, $schedule:ident, $layout:ty, $root:ty, $unroll:literal
    ) => {
        forces!(@row $laws, $name, $schedule, $layout, $root, $unroll, Fused, KeepSelf, Argument)
    };
    (
        @row [$($law:ident $law_name:literal),*], $name:literal, $schedule:ident, $layout:ty,
        $root:ty, $unroll:literal, $mul_add:ty, $own:ident, $scalars:ident
    ) => {
        &[$(
            force!(concat!("force_", $name, "_", $law_name), $schedule, $layout, $root, $unroll,
                $mul_add, $scalars, $law, $own<Softened>),
            force!(concat!("force_", $name, "_", $law_name, "_eps0"), $schedule, $layout, $root,
                $unroll, $mul_add, $scalars, $law, $own<Unsoftened>),
        )*]
    };
    (
        $(#[$doc:meta])*
        $list:ident, $laws:tt;
        $(
            $name:literal: $schedule:ident, $layout:ty, $root:ty, $unroll:literal
            $(, $mul_add:ty, $own:ident, $scalars:ident)?;
        )*
    ) => {
        $(#[$doc])*
        pub const $list: &[&[Entry]] = &[$(
            forces!(@row $laws, $name, $schedule, $layout, $root, $unroll
                $(, $mul_add, $own, $scalars)?)
        ),*];
    };
}

forces! {
    /// The force kernels of general use.
    FORCES, [Unit "unit", Gravity "gravity"];
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

forces! {
    /// Those of the `ecl` study: without softening a body is kept from meeting itself, and terms stand as
    /// the formula reads.
    ECL, [Gravity "gravity"];
    "one_thread_aos_f32_exact_separate_skip": one_thread, Aos<f32>, Exact, 1, Separate, SkipSelf, Argument;
    "direct_aos_f32_exact_separate_skip": direct, Aos<f32>, Exact, 1, Separate, SkipSelf, Argument;
    "direct_soa_f32_exact_separate_skip": direct, Soa<f32>, Exact, 1, Separate, SkipSelf, Argument;
    "direct_soa_f32_exact_separate_skip_constant": direct, Soa<f32>, Exact, 1, Separate, SkipSelf, Constant;
    "direct_soa_f32_approximate_separate_skip_constant": direct, Soa<f32>, Approximate, 1, Separate, SkipSelf, Constant;
    "two_loops_soa_f32_approximate_separate_constant": two_loops, Soa<f32>, Approximate, 1, Separate, KeepSelf, Constant;
    "tiled_soa_f32_approximate_separate_skip_constant": tiled, Soa<f32>, Approximate, 1, Separate, SkipSelf, Constant;
    "tiled_soa_f32_approximate_separate_skip_constant_u8": tiled, Soa<f32>, Approximate, 8, Separate, SkipSelf, Constant;
    "tiled_soa_f32_approximate_separate_constant_u8": tiled, Soa<f32>, Approximate, 8, Separate, KeepSelf, Constant;
    "tiled_soa_f32_approximate_constant_u8": tiled, Soa<f32>, Approximate, 8, Fused, KeepSelf, Constant;
    "tiled_soa_f32_approximate_constant_u128": tiled, Soa<f32>, Approximate, 128, Fused, KeepSelf, Constant;
    "tiled_soa_f64_approximate_constant_u8": tiled, Soa<f64>, Approximate, 8, Fused, KeepSelf, Constant;
}

forces! {
    /// Those of the `venus` study.
    VENUS, [Unit "unit"];
    "tiled_soa_f32_exact_u2": tiled, Soa<f32>, Exact, 2;
    "tiled_soa_f32_exact_u4": tiled, Soa<f32>, Exact, 4;
    "tiled_soa_f32_exact_u8": tiled, Soa<f32>, Exact, 8;
    "tiled_soa_f32_exact_u16": tiled, Soa<f32>, Exact, 16;
    "tiled_soa_f32_exact_u24": tiled, Soa<f32>, Exact, 24;
    "tiled_soa_f32_approximate_u16": tiled, Soa<f32>, Approximate, 16;
    "tiled_float3_f32_approximate_u16": tiled, Float3<f32>, Approximate, 16;
    "tiled_soa_f16_f32_exact_u16": tiled, Soa<f32, f16>, Exact, 16;
    "tiled_soa_f16_exact_u16": tiled, Soa<f16>, Exact, 16;
}

forces! {
    /// Those of the `gtx1060` study.
    ATTRACT_REPEL, [AttractRepel "attract_repel"];
    "direct_float4_f32_approximate_u32": direct, Float4<f32>, Approximate, 32;
    "tiled_float4_f32_approximate_u32": tiled, Float4<f32>, Approximate, 32;
    "hybrid_float4_f32_approximate_u32": hybrid, Float4<f32>, Approximate, 32;
}

forces! {
    /// That of the `gtx1060` study which computes the law as it is written.
    ATTRACT_REPEL_DIVIDED, [AttractRepelDivided "attract_repel"];
    "guarded_float4_f32_exact_u32": guarded, Float4<f32>, Exact, 32, Fused, SkipSelf, Argument;
}

macro_rules! rest {
    ($symbol:expr, $closest:ty) => {{
        type Chosen = Numerics<f32, Fused, Approximate, $closest>;
        type Word = <Float4<f32> as Layout>::Word;
        Entry {
            symbol: $symbol,
            work: Work::Rest {
                law: Law::AttractRepel,
                numerics: Chosen::NAME,
            },
            layout: LayoutDescription::of::<Float4<f32>>(),
            scalars: Scalars::Argument,
            writes: &[false, true],
            emulate: force_function!(
                Argument,
                $symbol,
                Word,
                hybrid::rest::<Float4<f32>, Chosen, AttractRepel, 32>
            ),
        }
    }};
}

/// What [`hybrid`] leaves of the `gtx1060` study's bodies.
pub const RESTS: &[Entry] = &[
    rest!("rest_float4_f32_approximate_u32_attract_repel", Softened),
    rest!(
        "rest_float4_f32_approximate_u32_attract_repel_eps0",
        Unsoftened
    ),
];

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
                law: <$law>::NAME,
                formula: <$law>::FORMULA,
                numerics: Chosen::NAME,
                unroll: $unroll,
                max_registers: $registers,
            },
            layout: LayoutDescription::of::<Float4<f32>>(),
            scalars: Scalars::Argument,
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
        pub const GRIDS: &[[Entry; 2]] = &[$([
            grid!(concat!("force_", $name, "_gravity"), $root, $unroll, $sources, $registers,
                Gravity, Softened),
            grid!(concat!("force_", $name, "_gravity_eps0"), $root, $unroll, $sources, $registers,
                Gravity, Unsoftened),
        ]),*];
    };
}

grids! {
    "grid2d_float4_f32_exact_u16": Exact, 16, Global, None;
    "grid2d_float4_f32_approximate_u16": Approximate, 16, Global, None;
    "grid2d_shared_float4_f32_approximate_u16": Approximate, 16, SharedRows, None;
    "grid2d_shared_float4_f32_approximate_u16_r32": Approximate, 16, SharedRows, Some(32);
    "grid2d_interleaved_float4_f32_approximate_u16": Approximate, 16, SharedInterleaved, None;
}

macro_rules! energy {
    ($symbol:expr, $layout:ty, $law:ty) => {{
        #[kernel(name = $symbol)]
        unsafe fn energy(state: *const <$layout as Layout>::Word, sums: *mut f64, params: Params) {
            // SAFETY: the launch's promise.
            unsafe { energy::energy::<$layout, $law>(state, sums, params) }
        }
        Entry {
            symbol: $symbol,
            work: Work::Energy(<$law>::NAME),
            layout: LayoutDescription::of::<$layout>(),
            scalars: Scalars::Argument,
            writes: &[false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { energy(a.pointer(0), a.pointer(1), a.params) }),
        }
    }};
}

/// The kernels that add partial sums.
pub const REDUCTIONS: &[Entry] = &{
    type F = Float4<f32>;
    type Word = <F as Layout>::Word;
    const LAYOUT: LayoutDescription = LayoutDescription::of::<F>();
    #[kernel(name = "reduce_serial_float4_f32")]
    unsafe fn serial(partial: *const Word, acceleration: *mut Word, params: Params) {
        // SAFETY: the launch's promise.
        unsafe { reduce::serial::<F>(partial, acceleration, params) }
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
            writes: &[false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { serial(a.pointer(0), a.pointer(1), a.params) }),
        },
        Entry {
            symbol: "reduce_tree_float4_f32",
            work: Work::Reduce(Reduction::Tree),
            layout: LAYOUT,
            scalars: Scalars::Argument,
            writes: &[false, true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { tree(a.pointer(0), a.pointer(1), a.params) }),
        },
        Entry {
            symbol: "reduce_matrix_vector_float4_f32",
            work: Work::Reduce(Reduction::MatrixVector),
            layout: LAYOUT,
            scalars: Scalars::Argument,
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
            writes: &[true],
            // SAFETY: the launch's promise.
            emulate: emulated!(|a| unsafe { ones(a.pointer(0), a.params) }),
        },
    ]
};

/// The kernels that advance and weigh the bodies of a layout.
macro_rules! layouts {
    ($($name:literal: $layout:ty;)*) => {
        /// The kernels beside the force, one row a layout.
        pub const LAYOUTS: &[[Entry; 6]] = &[$({
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
            [
                Entry {
                    symbol: concat!("kick_", $name),
                    work: Work::Kick,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    writes: &[true, false],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { kick(a.pointer(0), a.pointer(1), a.params) }),
                },
                Entry {
                    symbol: concat!("drift_", $name),
                    work: Work::Drift,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    writes: &[true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { drift(a.pointer(0), a.params) }),
                },
                Entry {
                    symbol: concat!("damp_", $name),
                    work: Work::Damp,
                    layout: LAYOUT,
                    scalars: Scalars::Argument,
                    writes: &[true],
                    // SAFETY: the launch's promise.
                    emulate: emulated!(|a| unsafe { damp(a.pointer(0), a.params) }),
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
