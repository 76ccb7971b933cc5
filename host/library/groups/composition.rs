//! Symmetric compositions: steps of high order from steps of second order.
//!
//! Weights from Hairer, Lubich & Wanner, *Geometric Numerical Integration*, V.3.2 (Suzuki 1990;
//! Kahan & Li 1997).

/// Order of the steps of a perturbed pair, and the number of steps in an orbit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Second order, 12 steps an orbit. Serves perturbations below a thousandth.
    Second,
    /// Fourth order, 8 steps of 5 stages an orbit (Suzuki 1990).
    Fourth,
    /// Sixth order, 8 steps of 9 stages an orbit (Kahan & Li 1997). Serves pairs that hold more energy than their cluster.
    Sixth,
}

const SUZUKI: f64 = 0.414_490_771_794_375_74;
const FOURTH: [f64; 5] = [SUZUKI, SUZUKI, 1.0 - 4.0 * SUZUKI, SUZUKI, SUZUKI];

const KAHAN_LI: [f64; 4] = [
    0.392_161_444_007_314_1,
    0.332_599_136_789_359_44,
    -0.706_246_172_557_639_3,
    0.082_213_596_293_550_8,
];
const SIXTH: [f64; 9] = [
    KAHAN_LI[0],
    KAHAN_LI[1],
    KAHAN_LI[2],
    KAHAN_LI[3],
    1.0 - 2.0 * (KAHAN_LI[0] + KAHAN_LI[1] + KAHAN_LI[2] + KAHAN_LI[3]),
    KAHAN_LI[3],
    KAHAN_LI[2],
    KAHAN_LI[1],
    KAHAN_LI[0],
];

impl Scheme {
    /// Lengths of the stages as parts of a step. They are symmetric, and their sum is 1.
    pub(crate) const fn stages(self) -> &'static [f64] {
        match self {
            Self::Second => &[1.0],
            Self::Fourth => &FOURTH,
            Self::Sixth => &SIXTH,
        }
    }

    /// Steps in an orbit.
    pub(crate) const fn steps_an_orbit(self) -> f64 {
        match self {
            Self::Second => 12.0,
            Self::Fourth | Self::Sixth => 8.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a composition of order 2n the sums of odd powers of the weights vanish, from the third power
    /// to the power 2n − 1.
    #[test]
    fn weights_meet_the_conditions_of_their_order() {
        for (scheme, powers) in [
            (Scheme::Second, &[][..]),
            (Scheme::Fourth, &[3][..]),
            (Scheme::Sixth, &[3, 5][..]),
        ] {
            let stages = scheme.stages();
            let sum: f64 = stages.iter().sum();
            assert!((sum - 1.0).abs() < 1e-15, "{scheme:?}: {sum}");
            assert!(stages.iter().eq(stages.iter().rev()), "{scheme:?}");
            for &power in powers {
                let sum: f64 = stages.iter().map(|w| w.powi(power)).sum();
                assert!(sum.abs() < 1e-15, "{scheme:?}, power {power}: {sum:e}");
            }
        }
    }
}
