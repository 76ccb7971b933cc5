//! Other formulas of the same laws: equal but for rounding and speed.

use super::{
    AttractRepel, Constants, Law, PairLaw, Source, add_scaled, distance_squared, dragged,
    separation,
};
use crate::numerics::{Arithmetic, PairArithmetic};
use cuda_std::GpuFloat;

/// Formula by which a law is computed; the values are the same but for rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Formula {
    /// One 1/√, and powers of it by multiplication.
    Powers,
    /// As the law reads: a root, and a division by each power.
    Divisions,
    /// Forces instead of accelerations, where each pair is taken once: with both masses in it, one
    /// product serves both bodies.
    Forces,
}

/// [`Gravity`](super::Gravity), where sums over pairs are of forces: `a_i = G/m_i Σ_j m_i m_j r / d³`.
/// As many instructions, of which fewer ask for three registers each; for masses > 0 whose products
/// are normal numbers.
#[derive(Clone, Copy, Debug)]
pub enum GravityByForces {}

impl PairLaw for GravityByForces {
    const LAW: Law = Law::Gravity;
    const FORMULA: Formula = Formula::Forces;

    #[inline(always)]
    fn weight<R: GpuFloat>(mass: R) -> R {
        mass
    }

    #[inline(always)]
    fn interact_pair<A: Arithmetic>(
        positions: [[A::Real; 3]; 2],
        masses: [A::Real; 2],
        softening_squared: A::Real,
        target_sum: &mut [A::Real; 3],
        source_sum: &mut [A::Real; 3],
    ) {
        add_force::<A>(positions, masses, softening_squared, target_sum, source_sum);
    }

    #[inline(always)]
    fn of_pairs<R: GpuFloat>(sum: [R; 3], mass: R) -> [R; 3] {
        // 1/m by one of Newton's steps: a division would take registers from the loops before it.
        let root = mass.rsqrt_approx();
        let guess = root * root;
        let inverse = guess * (-mass).mul_add(guess, R::from_f64(2.0));
        sum.map(|component| component * inverse)
    }
}

/// Adds one pair's force `m_i m_j r / d³` to the target's sum and subtracts it from the source's, by
/// Newton's third law: 16 instructions and a 1/√. Neighbouring multiply–adds share two of their three
/// operands, because the register file delivers two operands per cycle: worth 5 % on compute
/// capability 9.0.
#[inline(always)]
fn add_force<A: PairArithmetic>(
    [target, source]: [[A::Real; 3]; 2],
    [target_mass, source_mass]: [A::Real; 2],
    softening_squared: A::Real,
    target_sum: &mut [A::Real; 3],
    source_sum: &mut [A::Real; 3],
) {
    let r = separation::<A>(target, source);
    let d2 = distance_squared::<A>(r, softening_squared);
    let force = A::weighted_inverse_cube(source_mass, d2) * target_mass;
    let opposite = -force; // a sign is free
    for axis in 0..3 {
        target_sum[axis] = A::mul_add(force, r[axis], target_sum[axis]);
        source_sum[axis] = A::mul_add(opposite, r[axis], source_sum[axis]);
    }
}

/// [`AttractRepel`], computed as it is written: a root and a division by each power of the distance.
#[derive(Clone, Copy, Debug)]
pub enum AttractRepelDivided {}

impl PairLaw for AttractRepelDivided {
    const LAW: Law = Law::AttractRepel;
    const FORMULA: Formula = Formula::Divisions;

    #[inline(always)]
    fn weight<R: GpuFloat>(mass: R) -> R {
        mass
    }

    #[inline(always)]
    fn interact<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        constants: &Constants<A::Real>,
        sum: &mut [A::Real; 3],
    ) {
        let r = separation::<A>(target, source.position);
        let squared = distance_squared::<A>(r, constants.softening_squared);
        if A::vanishes(squared) {
            return;
        }
        let distance = squared.sqrt_exact();
        let attraction = constants.g * source.mass / squared;
        let repulsion = constants.repulsion * source.mass / (squared * squared);
        let magnitude = attraction - repulsion;
        add_scaled::<A>(magnitude / distance, r, sum);
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

    #[inline(always)]
    fn depth<A: Arithmetic>(
        target: [A::Real; 3],
        source: Source<A::Real>,
        constants: &Constants<A::Real>,
    ) -> A::Real {
        AttractRepel::depth::<A>(target, source, constants)
    }
}
