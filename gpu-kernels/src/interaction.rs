//! THE pair formulas. Every kernel, on the GPU, the emulator and the CPU path, computes forces
//! through this file; only the f64 reference that judges them is written apart.
//!
//! `a_i = G Σ_j w_j r / d³` with `r = x_j − x_i` and `d² = |r|² + ε²`, where the law gives the weight
//! `w_j`: [`interact`] is a term of that sum, [`interact_pair`] the terms of both bodies of a pair. The
//! law `attract-repel` has a second term. ε² > 0 also makes the self-interaction harmless: r = 0 there.
//!
//! Other ways to write the same laws are in `interaction/formulas.rs`, derivatives by positions, masses and
//! ε in [`gradients`], counts of instructions in [`operations`](crate::operations).

mod formulas;
pub mod gradients;

use crate::abi::Params;
use crate::layout::Source;
use crate::numerics::{Arithmetic, PairArithmetic};
use cuda_std::GpuFloat;

pub use formulas::{AttractRepelDivided, Formula, GravityByForces};

/// Floating-point operations of one interaction, counted beside each line of [`interact`]; the
/// convention of GPU Gems 3, ch. 31, and of most published rates (some papers count 38).
pub const FLOPS_PER_INTERACTION: u32 = 20;

/// One interaction: adds `weight · r / d³` to `sum`.
///
/// The terms are nested so that each multiplication has an addition to fuse with; whether they do
/// fuse is [`PairArithmetic`]'s choice. 12 instructions and a 1/√ with fusion, 18 and a 1/√ without.
#[inline(always)]
pub fn interact<A: PairArithmetic>(
    target: [A::Real; 3],
    source: [A::Real; 3],
    weight: A::Real,
    softening_squared: A::Real,
    sum: &mut [A::Real; 3],
) {
    let r = separation::<A>(target, source); // 3 flops
    let d2 = distance_squared::<A>(r, softening_squared); // 6 flops
    let scale = A::weighted_inverse_cube(weight, d2); // 2 flops and 3; 2 where the weight is 1
    add_scaled::<A>(scale, r, sum); // 6 flops
}

#[inline(always)]
fn add_scaled<A: PairArithmetic>(scale: A::Real, r: [A::Real; 3], sum: &mut [A::Real; 3]) {
    sum[0] = A::mul_add(scale, r[0], sum[0]);
    sum[1] = A::mul_add(scale, r[1], sum[1]);
    sum[2] = A::mul_add(scale, r[2], sum[2]);
}

/// One pair, for both its bodies: adds `source_weight · r / d³` to the target's sum and
/// `−target_weight · r / d³` to the source's, as Newton's third law has it.
///
/// 16 instructions and a 1/√ for two interactions, 14 where the weights are 1, against 24 and two
/// 1/√ by [`interact`]; in double precision the approximate 1/√³ takes four more. The sums are ordered
/// to minimise register-bank conflicts on compute capability 9.0 (2 % between the best and the plain
/// order).
#[inline(always)]
pub fn interact_pair<A: PairArithmetic>(
    positions: [[A::Real; 3]; 2],
    [target_weight, source_weight]: [A::Real; 2],
    softening_squared: A::Real,
    target_sum: &mut [A::Real; 3],
    source_sum: &mut [A::Real; 3],
) {
    add_contributions::<A>(
        positions,
        |inverse_cube| inverse_cube * target_weight,
        |inverse_cube| inverse_cube * source_weight,
        softening_squared,
        target_sum,
        source_sum,
    );
}

/// As [`interact_pair`], where the caller multiplies 1/d³ by the weights.
#[inline(always)]
fn add_contributions<A: PairArithmetic>(
    [target, source]: [[A::Real; 3]; 2],
    weigh_target: impl Fn(A::Real) -> A::Real,
    weigh_source: impl Fn(A::Real) -> A::Real,
    softening_squared: A::Real,
    target_sum: &mut [A::Real; 3],
    source_sum: &mut [A::Real; 3],
) {
    let r = separation::<A>(target, source); // 3 flops
    let inverse_cube = A::inverse_cube(distance_squared::<A>(r, softening_squared)); // 6 flops and 4
    let scale = -weigh_target(inverse_cube); // 1 flop, none where the weight is 1; a sign is free
    source_sum[0] = A::mul_add(scale, r[0], source_sum[0]); // 6 flops
    source_sum[2] = A::mul_add(scale, r[2], source_sum[2]);
    source_sum[1] = A::mul_add(scale, r[1], source_sum[1]);
    let scale = weigh_source(inverse_cube); // 1 flop; none where the weight is 1
    target_sum[2] = A::mul_add(scale, r[2], target_sum[2]); // 6 flops
    target_sum[1] = A::mul_add(scale, r[1], target_sum[1]);
    target_sum[0] = A::mul_add(scale, r[0], target_sum[0]);
}

/// One interaction of Hermite's scheme: adds `weight · r / d³` to `sum` and its derivative in time,
/// the jerk `weight · (v / d³ − 3 (r·v) r / d⁵)`, to `jerks`; v is the velocity of the source
/// relative to the target. Makino & Aarseth (1992, PASJ 44, 141, eqs. 1 and 2).
#[inline(always)]
pub fn interact_with_jerk<A: PairArithmetic>(
    [target, target_velocity]: [[A::Real; 3]; 2],
    [source, source_velocity]: [[A::Real; 3]; 2],
    weight: A::Real,
    softening_squared: A::Real,
    sum: &mut [A::Real; 3],
    jerks: &mut [A::Real; 3],
) {
    let r = separation::<A>(target, source);
    let v = separation::<A>(target_velocity, source_velocity);
    let d2 = distance_squared::<A>(r, softening_squared);
    add_with_jerk::<A>([r, v], d2, weight, sum, jerks);
}

/// How near two bodies are, and how fast they come nearer.
#[derive(Clone, Copy, Debug)]
pub struct Nearness<R> {
    /// `−3 (r·v) / d²`, the rate at which the pair's force changes by its change of distance.
    pub rate: R,
    /// `1 / d²`; 0 for a pair that contributes nothing.
    pub inverse_squared: R,
}

/// As [`interact_with_jerk`], of what the source has relative to the target, and their squared
/// distance.
#[inline(always)]
pub fn add_with_jerk<A: PairArithmetic>(
    [r, v]: [[A::Real; 3]; 2],
    distance_squared: A::Real,
    weight: A::Real,
    sum: &mut [A::Real; 3],
    jerks: &mut [A::Real; 3],
) -> Nearness<A::Real> {
    let inverse = A::inverse_sqrt(distance_squared);
    let inverse_squared = inverse * inverse;
    let scale = (weight * inverse) * inverse_squared;
    let rate = (A::constant(-3.0) * dot::<A>(r, v)) * inverse_squared;
    for axis in 0..3 {
        sum[axis] = A::mul_add(scale, r[axis], sum[axis]);
        jerks[axis] = A::mul_add(scale, A::mul_add(rate, r[axis], v[axis]), jerks[axis]);
    }
    Nearness {
        rate,
        inverse_squared,
    }
}

/// As [`add_with_jerk`], and with the accelerations that source and target have, their difference a,
/// also the second derivative, the snap `weight · (a/d³ − 6 α u − 3 β r/d³)` with `α = (r·v)/d²`,
/// `β = (v·v + r·a)/d² + α²` and u the jerk per weight: Nitadori & Makino (2008, New Astron. 13,
/// 498). `sums` are of accelerations, jerks and snaps.
#[inline(always)]
pub fn add_with_snap<A: PairArithmetic>(
    [r, v, a]: [[A::Real; 3]; 3],
    distance_squared: A::Real,
    weight: A::Real,
    sums: &mut [[A::Real; 3]; 3],
) -> Nearness<A::Real> {
    let inverse = A::inverse_sqrt(distance_squared);
    let inverse_squared = inverse * inverse;
    let scale = (weight * inverse) * inverse_squared;
    let minus_three = A::constant(-3.0) * inverse_squared;
    let rate = dot::<A>(r, v) * minus_three; // −3 α
    let second = A::mul_add(v[0], v[0], A::mul_add(v[1], v[1], v[2] * v[2]));
    let second = A::mul_add(
        r[0],
        a[0],
        A::mul_add(r[1], a[1], A::mul_add(r[2], a[2], second)),
    );
    // −3 β, of which −3 α² is −(−3 α)²/3.
    let square = (rate * rate) * A::constant(-1.0 / 3.0);
    let bend = A::mul_add(second, minus_three, square);
    let twice = rate + rate;
    for axis in 0..3 {
        let jerk = A::mul_add(rate, r[axis], v[axis]);
        let snap = A::mul_add(bend, r[axis], A::mul_add(twice, jerk, a[axis]));
        sums[0][axis] = A::mul_add(scale, r[axis], sums[0][axis]);
        sums[1][axis] = A::mul_add(scale, jerk, sums[1][axis]);
        sums[2][axis] = A::mul_add(scale, snap, sums[2][axis]);
    }
    Nearness {
        rate,
        inverse_squared,
    }
}

#[inline(always)]
fn dot<A: PairArithmetic>(a: [A::Real; 3], b: [A::Real; 3]) -> A::Real {
    A::mul_add(a[0], b[0], A::mul_add(a[1], b[1], a[2] * b[2]))
}

/// 1/d³ of a squared distance > 0, for kernels that have the squared distance, and add the forces,
/// by other means than [`interact`].
#[inline(always)]
pub fn inverse_cube<R: GpuFloat>(distance_squared: R) -> R {
    let inverse = distance_squared.rsqrt_approx();
    (inverse * inverse) * inverse
}

/// `weight / d`, the magnitude of a pair's potential per G and per mass of the target.
#[inline(always)]
pub fn potential<A: PairArithmetic>(
    target: [A::Real; 3],
    source: [A::Real; 3],
    weight: A::Real,
    softening_squared: A::Real,
) -> A::Real {
    let r = separation::<A>(target, source);
    weight * A::inverse_sqrt(distance_squared::<A>(r, softening_squared))
}

/// One interaction, as [`interact`], of whose `sums` the fourth is of `weight / d`: 13 instructions and a
/// 1/√ with fusion.
#[inline(always)]
pub fn interact_with_depth<A: PairArithmetic>(
    target: [A::Real; 3],
    source: [A::Real; 3],
    weight: A::Real,
    softening_squared: A::Real,
    sums: &mut [A::Real; 4],
) {
    let r = separation::<A>(target, source);
    let inverse = A::inverse_sqrt(distance_squared::<A>(r, softening_squared));
    let depth = weight * inverse;
    let scale = depth * (inverse * inverse);
    sums[0] = A::mul_add(scale, r[0], sums[0]);
    sums[1] = A::mul_add(scale, r[1], sums[1]);
    sums[2] = A::mul_add(scale, r[2], sums[2]);
    sums[3] = sums[3] + depth;
}

/// A source's part in the tidal tensor at a target: with `u = r/d` and `s = weight / d³`, adds `s u_a u_b`
/// for ab = xx, yy, zz, xy, xz and yz, and `s`. With unit vectors, for 1/d⁵ is out of range long before
/// 1/d³: 22 instructions and a 1/√ with fusion.
#[inline(always)]
pub fn add_tide<A: PairArithmetic>(
    target: [A::Real; 3],
    source: [A::Real; 3],
    weight: A::Real,
    softening_squared: A::Real,
    sums: &mut [A::Real; 7],
) {
    let r = separation::<A>(target, source);
    let inverse = A::inverse_sqrt(distance_squared::<A>(r, softening_squared));
    let scale = (weight * inverse) * (inverse * inverse);
    let u = [r[0] * inverse, r[1] * inverse, r[2] * inverse];
    let su = [scale * u[0], scale * u[1], scale * u[2]];
    sums[0] = A::mul_add(su[0], u[0], sums[0]);
    sums[1] = A::mul_add(su[1], u[1], sums[1]);
    sums[2] = A::mul_add(su[2], u[2], sums[2]);
    sums[3] = A::mul_add(su[0], u[1], sums[3]);
    sums[4] = A::mul_add(su[0], u[2], sums[4]);
    sums[5] = A::mul_add(su[1], u[2], sums[5]);
    sums[6] = sums[6] + scale;
}

/// The position, or the velocity, of a source relative to its target.
#[inline(always)]
pub fn separation<A: PairArithmetic>(target: [A::Real; 3], source: [A::Real; 3]) -> [A::Real; 3] {
    [
        source[0] - target[0],
        source[1] - target[1],
        source[2] - target[2],
    ]
}

/// `x·x + (y·y + (z·z + ε²))`: three multiply–adds.
#[inline(always)]
pub fn distance_squared<A: PairArithmetic>(r: [A::Real; 3], softening_squared: A::Real) -> A::Real {
    A::mul_add(
        r[0],
        r[0],
        A::mul_add(r[1], r[1], A::mul_add(r[2], r[2], softening_squared)),
    )
}

/// Name of a force law, for tables and command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Law {
    /// All weights 1, and G = 1.
    Unit,
    /// Weights are masses.
    Gravity,
    /// Weights are masses; repulsion at short range, and drag.
    AttractRepel,
}

/// Constants of a force law, in the precision of its kernel.
#[derive(Clone, Copy, Debug)]
pub struct Constants<R> {
    /// ε².
    pub softening_squared: R,
    /// G.
    pub g: R,
    /// H of `attract-repel`.
    pub repulsion: R,
    /// γ of `attract-repel`.
    pub damping: R,
}

impl<R: GpuFloat> Constants<R> {
    /// Constants of a launch, rounded once.
    #[inline(always)]
    pub fn of(params: &Params) -> Self {
        Self {
            softening_squared: R::from_f64(params.softening_squared),
            g: R::from_f64(params.g),
            repulsion: R::from_f64(params.repulsion),
            damping: R::from_f64(params.damping),
        }
    }
}

/// A force law between two bodies. The provided methods are those of the inverse-square law, for which
/// only the weight is left to define.
pub trait PairLaw {
    /// The law that is computed.
    const LAW: Law;
    /// The formula that computes it.
    const FORMULA: Formula = Formula::Powers;

    /// The weight of a source of this mass.
    fn weight<R: GpuFloat>(mass: R) -> R;

    /// `inverse_cube`, which is 1/d³ of a pair, times the weight of a mass.
    #[inline(always)]
    fn weigh<R: GpuFloat>(inverse_cube: R, mass: R) -> R {
        inverse_cube * Self::weight(mass)
    }

    /// One interaction: adds the source's contribution to the sum over all sources.
    #[inline(always)]
    fn interact<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        constants: &Constants<A::Real>,
        sum: &mut [A::Real; 3],
    ) {
        let weight = Self::weight(source.mass);
        let softening_squared = constants.softening_squared;
        interact::<A>(target, source.position, weight, softening_squared, sum);
    }

    /// One pair, for both its bodies, whose masses are `[target, source]`: adds to each one's sum.
    #[inline(always)]
    fn interact_pair<A: Arithmetic>(
        positions: [[A::Real; 3]; 2],
        masses: [A::Real; 2],
        softening_squared: A::Real,
        target_sum: &mut [A::Real; 3],
        source_sum: &mut [A::Real; 3],
    ) {
        let [target_mass, source_mass] = masses;
        add_contributions::<A>(
            positions,
            |inverse_cube| Self::weigh(inverse_cube, target_mass),
            |inverse_cube| Self::weigh(inverse_cube, source_mass),
            softening_squared,
            target_sum,
            source_sum,
        );
    }

    /// Converts a body's sum over pairs, by [`interact_pair`](Self::interact_pair), to the sum that
    /// [`interact`](Self::interact) gives.
    #[inline(always)]
    fn of_pairs<R: GpuFloat>(sum: [R; 3], _mass: R) -> [R; 3] {
        sum
    }

    /// Acceleration of a body from its sum over sources.
    #[inline(always)]
    fn acceleration<R: GpuFloat>(
        sum: [R; 3],
        _mass: R,
        _velocity: [R; 3],
        constants: &Constants<R>,
    ) -> [R; 3] {
        // Not `map`, which for halves goes through local memory.
        let g = constants.g;
        [g * sum[0], g * sum[1], g * sum[2]]
    }

    /// `−u_ij / w_i`: depth of a target of unit weight in the source's potential.
    #[inline(always)]
    fn depth<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        constants: &Constants<A::Real>,
    ) -> A::Real {
        let weight = Self::weight(source.mass);
        let softening_squared = constants.softening_squared;
        constants.g * potential::<A>(target, source.position, weight, softening_squared)
    }
}

/// `a_i = Σ_j r / d³`: no masses.
#[derive(Clone, Copy, Debug)]
pub enum Unit {}

impl PairLaw for Unit {
    const LAW: Law = Law::Unit;
    #[inline(always)]
    fn weight<R: GpuFloat>(_mass: R) -> R {
        R::from_f64(1.0)
    }
    #[inline(always)]
    fn weigh<R: GpuFloat>(inverse_cube: R, _mass: R) -> R {
        inverse_cube
    }
}

/// `a_i = G Σ_j m_j r / d³`.
#[derive(Clone, Copy, Debug)]
pub enum Gravity {}

impl PairLaw for Gravity {
    const LAW: Law = Law::Gravity;
    #[inline(always)]
    fn weight<R: GpuFloat>(mass: R) -> R {
        mass
    }
}

/// Laws whose force is G times the sum over weights and nothing beside: those whose jerk
/// [`interact_with_jerk`] computes.
pub trait InverseSquare: PairLaw {}

impl InverseSquare for Unit {}

impl InverseSquare for Gravity {}

/// `a_i = Σ_j m_j (G/d² − H/d⁴) r/d − γ v_i/m_i`: gravity that turns into repulsion at short range,
/// and drag. The drag of a body without mass is left out.
#[derive(Clone, Copy, Debug)]
pub enum AttractRepel {}

impl PairLaw for AttractRepel {
    const LAW: Law = Law::AttractRepel;

    #[inline(always)]
    fn weight<R: GpuFloat>(mass: R) -> R {
        mass
    }

    /// `m/d³ · (G − H/d²)`: 14 instructions and a 1/√ with fusion, 23 operations.
    #[inline(always)]
    fn interact<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        constants: &Constants<A::Real>,
        sum: &mut [A::Real; 3],
    ) {
        let r = separation::<A>(target, source.position);
        let inverse = A::inverse_sqrt(distance_squared::<A>(r, constants.softening_squared));
        let squared = inverse * inverse;
        let strength = A::mul_add(-constants.repulsion, squared, constants.g);
        let scale = ((source.mass * inverse) * squared) * strength;
        add_scaled::<A>(scale, r, sum);
    }

    #[inline(always)]
    fn acceleration<R: GpuFloat>(
        sum: [R; 3],
        mass: R,
        velocity: [R; 3],
        constants: &Constants<R>,
    ) -> [R; 3] {
        dragged(sum, mass, velocity, constants)
    }

    /// `m (G/d − H/(3 d³))`.
    #[inline(always)]
    fn depth<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        constants: &Constants<A::Real>,
    ) -> A::Real {
        let r = separation::<A>(target, source.position);
        let inverse = A::inverse_sqrt(distance_squared::<A>(r, constants.softening_squared));
        let third = A::Real::from_f64(1.0 / 3.0);
        let strength = constants.g - (third * constants.repulsion) * (inverse * inverse);
        (source.mass * inverse) * strength
    }
}

/// `a − γ v / m`.
#[inline(always)]
fn dragged<R: GpuFloat>(
    acceleration: [R; 3],
    mass: R,
    velocity: [R; 3],
    constants: &Constants<R>,
) -> [R; 3] {
    let has_mass = mass > R::from_f64(0.0);
    if !has_mass {
        return acceleration;
    }
    let rate = constants.damping / mass;
    let [a, v] = [acceleration, velocity];
    [
        (-rate).mul_add(v[0], a[0]),
        (-rate).mul_add(v[1], a[1]),
        (-rate).mul_add(v[2], a[2]),
    ]
}

#[cfg(test)]
mod tests;
