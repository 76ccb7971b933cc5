//! The kernels of sums over pairs and their derivatives.

use super::{Entry, Work};
use crate::abi::Params;
use crate::interaction::gradients::{
    Attraction, Depth, PotentialPullback, PotentialTangent, Pullback, Tangent,
};
use crate::layout::{Float4, Layout};
use crate::numerics::{Approximate, Arithmetic, Fused, Numerics, Softened, Unsoftened};
use crate::schedule::pair_sums::{self, SumName};
use cuda_std::{emulated, kernel};

/// A part of the work around a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SumStage {
    /// [`load`](pair_sums::load).
    Load,
    /// [`store`](pair_sums::store).
    Store,
    /// [`frames`](pair_sums::frames) of a sum.
    Frames(SumName),
    /// [`pack`](pair_sums::pack).
    Pack,
    /// [`total`](pair_sums::total).
    Total,
    /// [`kick`](pair_sums::kick).
    Kick,
    /// [`drift`](pair_sums::drift).
    Drift,
    /// [`kick_back`](pair_sums::kick_back).
    KickBack,
    /// [`drift_back`](pair_sums::drift_back).
    DriftBack,
    /// [`largest`](pair_sums::largest).
    Largest,
    /// [`by_system`](pair_sums::by_system).
    BySystem,
}

/// A kernel of a sum, by a schedule with its factors.
macro_rules! sum {
    (
        $symbol:expr, $real:ty, $name:ident, $formula:ty, $closest:ty, once: $once:literal,
        $schedule:ident [$($factor:expr),*], $lane:literal x $unroll:literal $(, $registers:literal)?
    ) => {{
        type Chosen = Numerics<$real, Fused, Approximate, $closest>;
        type Word = <Float4<$real> as Layout>::Word;
        entry!(
            $symbol,
            Float4<$real>,
            Work::PairSum {
                name: SumName::$name,
                once: $once,
                numerics: Chosen::POLICY,
                unroll: $unroll,
                lane: $lane,
            },
            (bodies: *const Word, more: *const Word, frames: *const f64, sums: *mut f64)
                => pair_sums::$schedule::<
                    Float4<$real>,
                    Chosen,
                    $formula,
                    { SumName::$name.numbers() as usize },
                    { SumName::$name.components() as usize },
                    $($factor,)*
                    $lane,
                    $unroll
                    $(, $registers)?
                >
        )
    }};
}

macro_rules! stage {
    ($symbol:expr, $real:ty, $stage:expr, ($($parameters:tt)*) => $function:expr) => {
        entry!($symbol, Float4<$real>, Work::SumStage($stage), ($($parameters)*) => $function)
    };
}

/// A line each, in both precisions: the formula and the policy of the closest pairs, then targets of a thread and the
/// unroll factor for f32, and for f64. [`Unsoftened`] leaves bodies at the same place out. Derivatives do not: where
/// there is none, the result is no number.
macro_rules! sums {
    ($(
        $name:literal: $sum:ident, $formula:ty, $closest:ty,
        $lane:literal x $unroll:literal, $lane64:literal x $unroll64:literal;
    )*) => {
        /// The sums over parts of the sources.
        pub const PAIR_SUMS: &[Entry] = &[$(
            sum!(concat!("pair_sum_", $name, "_f32"), f32, $sum, $formula, $closest, once: false,
                sums [], $lane x $unroll),
            sum!(concat!("pair_sum_", $name, "_f64"), f64, $sum, $formula, $closest, once: false,
                sums [], $lane64 x $unroll64),
        )*];

        /// Frames for each of the sums.
        pub const SUM_FRAMES: &[Entry] = &[$(
            stage!(concat!("pair_sum_", $name, "_frames"), f64, SumStage::Frames(SumName::$sum),
                (planes: *const f64, scalars: *const f64, frames: *mut f64)
                    => pair_sums::frames::<{ SumName::$sum as usize }>),
        )*];
    };
}

sums! {
    "force": Force, Attraction, Unsoftened, 2 x 8, 2 x 4;
    "tangent": Tangent, Tangent, Softened, 2 x 4, 1 x 4;
    "pull": Pull, Pullback<false, false>, Softened, 2 x 4, 1 x 4;
    "pull_all": PullAll, Pullback<true, true>, Softened, 2 x 4, 1 x 4;
    "potential": Potential, Depth, Unsoftened, 2 x 8, 2 x 4;
    "potential_tangent": PotentialTangent, PotentialTangent, Softened, 2 x 4, 1 x 4;
    "potential_pull": PotentialPull, PotentialPullback, Softened, 2 x 4, 1 x 4;
}

/// As above, with targets of a thread against sources in the loop's body. `to 96`: registers at most, 0 for no limit.
/// The limits are the fastest by ptxas 13.0 for compute capability 9.0: fewer registers let more warps run, and place the
/// operands in other banks of the register file.
macro_rules! once {
    ($(
        $name:literal: $sum:ident, $formula:ty, $closest:ty,
        $lane:literal x $steps:literal to $registers:literal,
        $lane64:literal x $steps64:literal to $registers64:literal;
    )*) => {
        /// The sums that take each pair once.
        pub const PAIR_SUMS_ONCE: &[Entry] = &[$(
            sum!(concat!("pair_sum_once_", $name, "_f32"), f32, $sum, $formula, $closest, once: true,
                once [{ SumName::$sum.reactions() as usize }], $lane x $steps, $registers),
            sum!(concat!("pair_sum_once_", $name, "_f64"), f64, $sum, $formula, $closest, once: true,
                once [{ SumName::$sum.reactions() as usize }], $lane64 x $steps64, $registers64),
        )*];
    };
}

once! {
    "force": Force, Attraction, Unsoftened, 8 x 4 to 96, 4 x 4 to 96;
    "pull": Pull, Pullback<false, false>, Softened, 8 x 2 to 152, 4 x 2 to 0;
    "pull_all": PullAll, Pullback<true, true>, Softened, 8 x 2 to 168, 4 x 2 to 0;
}

macro_rules! stages {
    ($($real:ident),*) => {
        /// The rest of the work around sums.
        pub const SUM_STAGES: &[Entry] = &[
            $(
                stage!(concat!("pair_sum_load_", stringify!($real)), $real, SumStage::Load,
                    (array: *const $real, planes: *mut f64) => pair_sums::load::<$real>),
                stage!(concat!("pair_sum_store_", stringify!($real)), $real, SumStage::Store,
                    (planes: *const f64, array: *mut $real) => pair_sums::store::<$real>),
                {
                    type Word = <Float4<$real> as Layout>::Word;
                    stage!(concat!("pair_sum_pack_", stringify!($real)), $real, SumStage::Pack,
                        (planes: *const f64, frames: *const f64, bodies: *mut Word, more: *mut Word)
                            => pair_sums::pack::<Float4<$real>>)
                },
            )*
            stage!("pair_sum_total", f64, SumStage::Total,
                (sums: *const f64, frames: *const f64, results: *mut f64) => pair_sums::total),
            stage!("pair_sum_kick", f64, SumStage::Kick,
                (velocities: *mut f64, results: *const f64, scalars: *const f64) => pair_sums::kick),
            stage!("pair_sum_drift", f64, SumStage::Drift,
                (planes: *mut f64, velocities: *const f64, scalars: *const f64) => pair_sums::drift),
            stage!("pair_sum_kick_back", f64, SumStage::KickBack,
                (planes: *const f64, results: *const f64, derivatives: *mut f64, scalars: *const f64)
                    => pair_sums::kick_back),
            stage!("pair_sum_drift_back", f64, SumStage::DriftBack,
                (planes: *mut f64, velocities: *const f64, derivatives: *mut f64, scalars: *const f64)
                    => pair_sums::drift_back),
            stage!("pair_sum_largest", f64, SumStage::Largest,
                (planes: *const f64, derivatives: *const f64, scalars: *mut f64) => pair_sums::largest),
            stage!("pair_sum_by_system", f64, SumStage::BySystem,
                (planes: *const f64, by_system: *mut f64) => pair_sums::by_system),
        ];
    };
}

stages!(f32, f64);
