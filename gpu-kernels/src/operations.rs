//! Counts of the instructions of a pair, which the machine code of each kernel is held to.
//!
//! The formulas are in [`interaction`](crate::interaction) and [`double_single`](crate::double_single);
//! a root is not counted here, for it is another unit's.

use crate::double_single::DoubleSingle;
use crate::interaction::{Formula, Law};
use crate::numerics::{NumericsPolicy, Precision};
use crate::schedule::pair_sums::SumName;
use crate::schedule::points::QuantityName;
use core::ops::Add;

/// Floating-point instructions, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Multiply–adds that round once.
    pub multiply_adds: u32,
    /// Multiplications.
    pub multiplications: u32,
    /// Additions and subtractions.
    pub additions: u32,
}

impl Add for Operations {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        self.plus(other)
    }
}

// `#[inline]` keeps all that follows out of the PTX.
impl Operations {
    /// No instruction.
    pub const NONE: Self = Self {
        multiply_adds: 0,
        multiplications: 0,
        additions: 0,
    };

    const fn plus(self, other: Self) -> Self {
        Self {
            multiply_adds: self.multiply_adds + other.multiply_adds,
            multiplications: self.multiplications + other.multiplications,
            additions: self.additions + other.additions,
        }
    }

    const fn times(self, times: u32) -> Self {
        Self {
            multiply_adds: times * self.multiply_adds,
            multiplications: times * self.multiplications,
            additions: times * self.additions,
        }
    }
}

impl Formula {
    /// Instructions of one [`PairLaw::interact`](crate::interaction::PairLaw::interact), its root and
    /// its divisions apart; a weight of 1 saves a multiplication.
    #[inline]
    pub const fn operations(self, law: Law, fused: bool) -> Operations {
        // Multiply–adds, multiplications beside them, additions beside those of d².
        let (both, multiplications, additions) = match (self, law) {
            (_, Law::Unit) => (6, 2, 0),
            (_, Law::Gravity) => (6, 3, 0),
            (Self::Powers | Self::Forces, Law::AttractRepel) => (7, 4, 0),
            (Self::Divisions, Law::AttractRepel) => (6, 3, 1),
        };
        let (multiply_adds, apart) = if fused { (both, 0) } else { (0, both) };
        Operations {
            multiply_adds,
            multiplications: multiplications + apart,
            additions: 3 + additions + apart,
        }
    }

    /// Divisions of one interaction whose 1/√ is exact.
    #[inline]
    pub const fn divisions(self) -> u32 {
        match self {
            Self::Powers | Self::Forces => 1,
            Self::Divisions => 3,
        }
    }
}

impl Law {
    /// Instructions of one [`interact_pair`](crate::interaction::interact_pair), its 1/√ apart.
    #[inline]
    pub const fn pair_operations(self, fused: bool) -> Operations {
        let weights = match self {
            Self::Unit => 0,
            Self::Gravity => 2,
            Self::AttractRepel => panic!("it has no weights"),
        };
        let (multiply_adds, apart) = if fused { (9, 0) } else { (0, 9) };
        Operations {
            multiply_adds,
            multiplications: 2 + weights + apart,
            additions: 3 + apart,
        }
    }

    /// Instructions of one [`interact_with_jerk`](crate::interaction::interact_with_jerk), its 1/√
    /// apart.
    #[inline]
    pub const fn jerk_operations(self, fused: bool) -> Operations {
        let weights = match self {
            Self::Unit => 0,
            Self::Gravity => 1,
            Self::AttractRepel => panic!("it has no weights"),
        };
        let (multiply_adds, apart) = if fused { (14, 0) } else { (0, 14) };
        Operations {
            multiply_adds,
            multiplications: 5 + weights + apart,
            additions: 6 + apart,
        }
    }
}

impl QuantityName {
    /// Instructions of a source's terms at a point with fusion, its 1/√ apart:
    /// [`interact_with_depth`](crate::interaction::interact_with_depth),
    /// [`add_tide`](crate::interaction::add_tide).
    #[inline]
    pub const fn operations(self) -> Operations {
        match self {
            Self::Field => Operations {
                multiply_adds: 6,
                multiplications: 3,
                additions: 4,
            },
            Self::Tides => Operations {
                multiply_adds: 9,
                multiplications: 9,
                additions: 4,
            },
        }
    }
}

impl SumName {
    /// Instructions of a source's terms with fusion, its 1/√ apart: see
    /// [`gradients`](crate::interaction::gradients).
    #[inline]
    pub const fn operations(self) -> Operations {
        let [multiply_adds, multiplications, additions] = match self {
            Self::Force => [6, 3, 3],
            Self::Tangent => [12, 7, 7],
            Self::Pull => [17, 9, 3],
            Self::PullAll => [21, 10, 3],
            Self::Potential => [4, 0, 3],
            Self::PotentialTangent => [7, 3, 7],
            Self::PotentialPull => [8, 4, 4],
        };
        Operations {
            multiply_adds,
            multiplications,
            additions,
        }
    }
}

impl NumericsPolicy {
    /// Instructions of a 1/√ beside its root, or root and division: an estimate in f64 is refined, by
    /// [`GpuFloat::rsqrt_approx`](cuda_std::GpuFloat::rsqrt_approx).
    #[inline]
    pub const fn refinement(self) -> Operations {
        match (self.approximate, self.precision) {
            (true, Precision::F64) => Operations {
                multiply_adds: 3,
                multiplications: 2,
                additions: 0,
            },
            _ => Operations::NONE,
        }
    }

    /// Instructions of a 1/√³ beside its root and two multiplications: an estimate in f64 is refined,
    /// by [`GpuFloat::rsqrt_cubed_approx`](cuda_std::GpuFloat::rsqrt_cubed_approx).
    #[inline]
    const fn cube_refinement(self) -> Operations {
        match (self.approximate, self.precision) {
            (true, Precision::F64) => Operations {
                multiply_adds: 3,
                multiplications: 1,
                additions: 0,
            },
            _ => Operations::NONE,
        }
    }

    /// Instructions of a pair that is taken once for both its bodies, its root apart.
    ///
    /// In sums of two singles, two of the multiplications are those of 1/√³; and where both weights are
    /// 1, the products of the high parts, one for each component, serve both bodies.
    #[inline]
    pub const fn of_pair(self, law: Law) -> Operations {
        let operations = law.pair_operations(self.fused);
        match self.precision {
            Precision::DoubleSingle => {
                let mut all = DoubleSingle::INVERSE_CUBE
                    .plus(DoubleSingle::ADDITION.times(operations.additions))
                    .plus(DoubleSingle::MULTIPLICATION.times(operations.multiplications - 2))
                    .plus(DoubleSingle::MULTIPLY_ADD.times(operations.multiply_adds));
                if matches!(law, Law::Unit) {
                    all.multiplications -= 3;
                }
                all
            }
            Precision::F16 | Precision::F32 | Precision::F64 => {
                operations.plus(self.cube_refinement())
            }
        }
    }
}

impl DoubleSingle {
    /// Instructions of an addition or subtraction.
    pub const ADDITION: Operations = Operations {
        multiply_adds: 0,
        multiplications: 0,
        additions: 11,
    };
    /// Instructions of a multiplication.
    pub const MULTIPLICATION: Operations = Operations {
        multiply_adds: 3,
        multiplications: 1,
        additions: 0,
    };
    /// Instructions of a multiply–add.
    pub const MULTIPLY_ADD: Operations = Operations {
        multiply_adds: 3,
        multiplications: 1,
        additions: 6,
    };
    /// Instructions of [`rsqrt_cubed_approx`](cuda_std::GpuFloat::rsqrt_cubed_approx) beside its root.
    pub const INVERSE_CUBE: Operations = Operations {
        multiply_adds: 7,
        multiplications: 3,
        additions: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interaction::FLOPS_PER_INTERACTION;

    /// The two counts of the same formula agree: a 1/√ is two operations.
    #[test]
    fn operations_are_counted_once() {
        for fused in [false, true] {
            let gravity = Formula::Powers.operations(Law::Gravity, fused);
            let flops = 2 * gravity.multiply_adds + gravity.multiplications + gravity.additions;
            assert_eq!(flops + 2, FLOPS_PER_INTERACTION);
        }
    }
}
