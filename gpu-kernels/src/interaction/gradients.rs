//! Derivatives of sums over pairs. Each is a sum over pairs again.
//!
//! Symbols: `d = x_j − x_k`, `s² = d² + ε²`, `J = 1/s³ − 3 d dᵀ/s⁵`. J is symmetric and even in d.
//! The accelerations `a_k = Σ_j m_j d/s³` of G = 1 have these derivatives:
//!
//! | | |
//! |---|---|
//! | [`Tangent`]: along ẋ, ṁ, ε̇ | `Σ_j [m_j (J (ẋ_j − ẋ_k) − 3 ε ε̇ d/s⁵) + ṁ_j d/s³]` |
//! | [`Pullback`]: of `L = Σ λ·a` by x_k | `Σ_j J (m_k λ_j − m_j λ_k)` |
//! | by m_k | `−Σ_j λ_j·d/s³` |
//! | by ε | `−3 ε Σ_jk m_j λ_k·d/s⁵` |
//!
//! The vector `p = m_k λ_j − m_j λ_k` changes its sign with the order of the pair, so each pair once serves
//! both bodies. It is right for bodies without mass. Where all have mass, `p = m_k m_j (μ_j − μ_k)` with `μ = λ/m` takes
//! fewer operations, because m_k may come once a sum: the derivative is m × the jerk of the velocities μ.
//! The potentials `φ_k = −Σ_j m_j/s` have the derivatives [`PotentialTangent`] and [`PotentialPullback`].

use super::{add_scaled, distance_squared, dot, separation};
use crate::numerics::PairArithmetic;

/// Softening of a pair, in the arithmetic of its formula.
#[derive(Clone, Copy, Debug)]
pub struct Softening<R> {
    /// ε².
    pub squared: R,
    /// ε ε̇, half the derivative of ε² in the direction of a tangent.
    pub rate: R,
}

/// A sum over sources of a function of two bodies. Each body has `N` numbers: first the position, then the
/// mass. The sum has `S` components.
pub trait PairSum<const N: usize, const S: usize> {
    /// Adds a source's terms to the sums of a target, which is another body.
    fn add<A: PairArithmetic>(
        target: &[A::Real; N],
        source: &[A::Real; N],
        softening: Softening<A::Real>,
        sums: &mut [A::Real; S],
    );
}

/// A sum that changes its sign, or keeps it, where a pair is turned around, so that one computation serves both bodies.
pub trait MutualSum<const N: usize, const S: usize>: PairSum<N, S> {
    /// The same sum of bodies that all have mass; this one, if there is none that is faster.
    type OfMassive: MutualSum<N, S>;
    /// True if [`OfMassive`](Self::OfMassive) is another one.
    const KNOWS_MASSIVE: bool;

    /// Returns whether a component is still to be multiplied by the body's own mass.
    fn is_per_mass(component: usize) -> bool;

    /// Adds the terms of a pair to the sums of both its bodies. What a sum of all bodies needs may go to the target alone.
    fn add_pair<A: PairArithmetic>(
        target: &[A::Real; N],
        source: &[A::Real; N],
        squared: A::Real,
        target_sums: &mut [A::Real; S],
        source_sums: &mut [A::Real; S],
    );
}

/// Separation of a pair, 1/s and 1/s³.
struct Pair<R> {
    d: [R; 3],
    inverse: R,
    inverse_squared: R,
    inverse_cube: R,
}

#[inline(always)]
fn pair<A: PairArithmetic>(
    target: [A::Real; 3],
    source: [A::Real; 3],
    squared: A::Real,
) -> Pair<A::Real> {
    let d = separation::<A>(target, source);
    let inverse = A::inverse_sqrt(distance_squared::<A>(d, squared));
    let inverse_squared = inverse * inverse;
    Pair {
        d,
        inverse,
        inverse_squared,
        inverse_cube: inverse * inverse_squared,
    }
}

/// Derivative of accelerations along velocities, rates of masses and of ε: of the eight numbers of a body
/// the last four are ẋ and ṁ. Along velocities alone it is the jerk.
#[derive(Clone, Copy, Debug)]
pub enum Tangent {}

impl PairSum<8, 3> for Tangent {
    #[inline(always)]
    fn add<A: PairArithmetic>(
        &[x, y, z, _, vx, vy, vz, _]: &[A::Real; 8],
        &[sx, sy, sz, mass, svx, svy, svz, mass_rate]: &[A::Real; 8],
        softening: Softening<A::Real>,
        sums: &mut [A::Real; 3],
    ) {
        let pair = pair::<A>([x, y, z], [sx, sy, sz], softening.squared);
        let v = separation::<A>([vx, vy, vz], [svx, svy, svz]);
        // s times its own rate, by which the force of a mass weakens; then 1/s³ of the rate of the mass.
        let approach = softening.rate + dot::<A>(pair.d, v);
        let rate = (A::constant(-3.0) * approach) * pair.inverse_squared;
        let along = A::mul_add(mass, rate, mass_rate) * pair.inverse_cube;
        add_scaled::<A>(along, pair.d, sums);
        add_scaled::<A>(mass * pair.inverse_cube, v, sums);
    }
}

/// Accelerations, and the derivatives of `L = Σ λ·a`: of the seven numbers of a body the last three are λ.
///
/// The sums are the acceleration, ∂L/∂x, with `MASSES` ∂L/∂m, and with `SOFTENING` the body's part in
/// `−2 (∂L/∂ε)/ε`. The factor is 2 because both bodies of a pair have a part. More flags change no bits of the rest. With
/// `MASSIVE` the last three numbers of a body are λ/m, and all derivatives but ∂L/∂m are still to be multiplied by m.
#[derive(Clone, Copy, Debug)]
pub enum Pullback<const MASSES: bool, const SOFTENING: bool, const MASSIVE: bool = false> {}

/// Number of the sums of [`Pullback`].
pub const PULLED: usize = 8;

/// The part of a pair's terms in [`Pullback`] that both bodies share.
struct Shared<R> {
    pair: Pair<R>,
    /// λ·d of the target and of the source, or μ·d.
    dots: [R; 2],
    /// `−3 p·d/s²`.
    rate: R,
    /// Factors of `s³ J p` in the derivatives of the target and of the source.
    weights: [R; 2],
    /// `s³ J p`.
    turned: [R; 3],
}

impl<const MASSES: bool, const SOFTENING: bool, const MASSIVE: bool>
    Pullback<MASSES, SOFTENING, MASSIVE>
{
    #[inline(always)]
    fn shared<A: PairArithmetic>(
        &[x, y, z, mass, lx, ly, lz]: &[A::Real; 7],
        &[sx, sy, sz, source_mass, slx, sly, slz]: &[A::Real; 7],
        squared: A::Real,
    ) -> Shared<A::Real> {
        let pair = pair::<A>([x, y, z], [sx, sy, sz], squared);
        let product = |of_source: A::Real, of_target: A::Real| {
            A::mul_add(mass, of_source, -(source_mass * of_target))
        };
        let p = match MASSIVE {
            true => separation::<A>([lx, ly, lz], [slx, sly, slz]),
            false => [product(slx, lx), product(sly, ly), product(slz, lz)],
        };
        let dots = [
            dot::<A>(pair.d, [lx, ly, lz]),
            dot::<A>(pair.d, [slx, sly, slz]),
        ];
        let along = match MASSES && MASSIVE {
            true => dots[1] - dots[0],
            false => dot::<A>(pair.d, p),
        };
        let rate = (A::constant(-3.0) * pair.inverse_squared) * along;
        let cube = pair.inverse_cube;
        Shared {
            dots,
            rate,
            weights: match MASSIVE {
                true => [source_mass * cube, mass * -cube],
                false => [cube, -cube],
            },
            turned: [
                A::mul_add(rate, pair.d[0], p[0]),
                A::mul_add(rate, pair.d[1], p[1]),
                A::mul_add(rate, pair.d[2], p[2]),
            ],
            pair,
        }
    }
}

impl<const MASSES: bool, const SOFTENING: bool, const MASSIVE: bool> MutualSum<7, PULLED>
    for Pullback<MASSES, SOFTENING, MASSIVE>
{
    type OfMassive = Pullback<MASSES, SOFTENING, true>;
    const KNOWS_MASSIVE: bool = !MASSIVE;

    #[inline(always)]
    fn is_per_mass(component: usize) -> bool {
        MASSIVE && component > 2 && component != 6
    }

    #[inline(always)]
    fn add_pair<A: PairArithmetic>(
        target: &[A::Real; 7],
        source: &[A::Real; 7],
        squared: A::Real,
        target_sums: &mut [A::Real; PULLED],
        source_sums: &mut [A::Real; PULLED],
    ) {
        let shared = Self::shared::<A>(target, source, squared);
        let Pair {
            d, inverse_cube, ..
        } = shared.pair;
        let turned = shared.turned;
        attract::<A>(d, inverse_cube, source[3], target_sums);
        attract::<A>(d, -inverse_cube, target[3], source_sums);
        let [for_target, for_source] = shared.weights;
        add_turned::<A>(for_target, turned, target_sums);
        add_turned::<A>(for_source, turned, source_sums);
        if MASSES {
            let [of_target, of_source] = shared.dots;
            target_sums[6] = A::mul_add(-for_target, of_source, target_sums[6]);
            source_sums[6] = A::mul_add(-for_source, of_target, source_sums[6]);
        }
        if SOFTENING {
            target_sums[7] = A::mul_add(for_target, shared.rate + shared.rate, target_sums[7]);
        }
    }
}

/// Adds the acceleration by a mass to the first three sums. Accelerations are rounded alike wherever they are summed, so
/// that a step back meets the force of the step there.
#[inline(always)]
fn attract<A: PairArithmetic>(
    d: [A::Real; 3],
    inverse_cube: A::Real,
    mass: A::Real,
    sums: &mut [A::Real],
) {
    // Spelled out, because kernels unroll no loop by themselves.
    let weight = mass * inverse_cube;
    sums[0] = A::mul_add(weight, d[0], sums[0]);
    sums[1] = A::mul_add(weight, d[1], sums[1]);
    sums[2] = A::mul_add(weight, d[2], sums[2]);
}

/// Adds `J p` to sums 3 to 5.
#[inline(always)]
fn add_turned<A: PairArithmetic>(
    weight: A::Real,
    turned: [A::Real; 3],
    sums: &mut [A::Real; PULLED],
) {
    sums[3] = A::mul_add(weight, turned[0], sums[3]);
    sums[4] = A::mul_add(weight, turned[1], sums[4]);
    sums[5] = A::mul_add(weight, turned[2], sums[5]);
}

impl<const MASSES: bool, const SOFTENING: bool, const MASSIVE: bool> PairSum<7, PULLED>
    for Pullback<MASSES, SOFTENING, MASSIVE>
{
    #[inline(always)]
    fn add<A: PairArithmetic>(
        target: &[A::Real; 7],
        source: &[A::Real; 7],
        softening: Softening<A::Real>,
        sums: &mut [A::Real; PULLED],
    ) {
        let shared = Self::shared::<A>(target, source, softening.squared);
        let Pair {
            d, inverse_cube, ..
        } = shared.pair;
        attract::<A>(d, inverse_cube, source[3], sums);
        let [weight, _] = shared.weights;
        add_turned::<A>(weight, shared.turned, sums);
        if MASSES {
            sums[6] = A::mul_add(-weight, shared.dots[1], sums[6]);
        }
        if SOFTENING {
            sums[7] = A::mul_add(weight, shared.rate, sums[7]);
        }
    }
}

/// Accelerations.
#[derive(Clone, Copy, Debug)]
pub enum Attraction {}

impl PairSum<4, 3> for Attraction {
    #[inline(always)]
    fn add<A: PairArithmetic>(
        &[x, y, z, _]: &[A::Real; 4],
        &[sx, sy, sz, mass]: &[A::Real; 4],
        softening: Softening<A::Real>,
        sums: &mut [A::Real; 3],
    ) {
        let pair = pair::<A>([x, y, z], [sx, sy, sz], softening.squared);
        attract::<A>(pair.d, pair.inverse_cube, mass, sums);
    }
}

impl MutualSum<4, 3> for Attraction {
    type OfMassive = Self;
    const KNOWS_MASSIVE: bool = false;

    #[inline(always)]
    fn is_per_mass(_: usize) -> bool {
        false
    }

    #[inline(always)]
    fn add_pair<A: PairArithmetic>(
        &[x, y, z, mass]: &[A::Real; 4],
        &[sx, sy, sz, source_mass]: &[A::Real; 4],
        squared: A::Real,
        target_sums: &mut [A::Real; 3],
        source_sums: &mut [A::Real; 3],
    ) {
        let pair = pair::<A>([x, y, z], [sx, sy, sz], squared);
        attract::<A>(pair.d, pair.inverse_cube, source_mass, target_sums);
        attract::<A>(pair.d, -pair.inverse_cube, mass, source_sums);
    }
}

/// Depths `Σ_j m_j/s`, the potentials with the other sign.
#[derive(Clone, Copy, Debug)]
pub enum Depth {}

impl PairSum<4, 1> for Depth {
    #[inline(always)]
    fn add<A: PairArithmetic>(
        &[x, y, z, _]: &[A::Real; 4],
        &[sx, sy, sz, mass]: &[A::Real; 4],
        softening: Softening<A::Real>,
        sums: &mut [A::Real; 1],
    ) {
        let pair = pair::<A>([x, y, z], [sx, sy, sz], softening.squared);
        sums[0] = A::mul_add(mass, pair.inverse, sums[0]);
    }
}

/// Derivative of depths in the direction of a [`Tangent`]: `Σ_j [ṁ_j/s − m_j (d·(ẋ_j − ẋ_k) + ε ε̇)/s³]`.
#[derive(Clone, Copy, Debug)]
pub enum PotentialTangent {}

impl PairSum<8, 1> for PotentialTangent {
    #[inline(always)]
    fn add<A: PairArithmetic>(
        &[x, y, z, _, vx, vy, vz, _]: &[A::Real; 8],
        &[sx, sy, sz, mass, svx, svy, svz, mass_rate]: &[A::Real; 8],
        softening: Softening<A::Real>,
        sums: &mut [A::Real; 1],
    ) {
        let pair = pair::<A>([x, y, z], [sx, sy, sz], softening.squared);
        let v = separation::<A>([vx, vy, vz], [svx, svy, svz]);
        let approach = softening.rate + dot::<A>(pair.d, v);
        let weakened = -(mass * pair.inverse_squared);
        let term = A::mul_add(weakened, approach, mass_rate);
        sums[0] = A::mul_add(term, pair.inverse, sums[0]);
    }
}

/// Derivatives of `−Σ λ φ`. The fifth number of a body is λ.
///
/// By x: `Σ_j (λ_k m_j + λ_j m_k) d/s³`. By m: `Σ_j λ_j/s`. The last sum is the body's part in
/// `−2/ε` times the derivative by ε: `Σ_j (λ_k m_j + λ_j m_k)/s³`.
#[derive(Clone, Copy, Debug)]
pub enum PotentialPullback {}

impl PairSum<5, 5> for PotentialPullback {
    #[inline(always)]
    fn add<A: PairArithmetic>(
        &[x, y, z, mass, lambda]: &[A::Real; 5],
        &[sx, sy, sz, source_mass, source_lambda]: &[A::Real; 5],
        softening: Softening<A::Real>,
        sums: &mut [A::Real; 5],
    ) {
        let pair = pair::<A>([x, y, z], [sx, sy, sz], softening.squared);
        let both = A::mul_add(lambda, source_mass, source_lambda * mass) * pair.inverse_cube;
        sums[0] = A::mul_add(both, pair.d[0], sums[0]);
        sums[1] = A::mul_add(both, pair.d[1], sums[1]);
        sums[2] = A::mul_add(both, pair.d[2], sums[2]);
        sums[3] = A::mul_add(source_lambda, pair.inverse, sums[3]);
        sums[4] = sums[4] + both;
    }
}
