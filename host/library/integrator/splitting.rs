//! Integrators that are compositions of kicks and drifts, as tables of coefficients.

use crate::backend::{HighestDerivative, Operation};

/// A part of a step, with its share of the time step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stage {
    /// `v += c dt a`.
    Kick(f64),
    /// `x += c dt v`.
    Drift(f64),
}

use Stage::{Drift, Kick};

pub(super) const SEMI_IMPLICIT_EULER: &[Stage] = &[Kick(1.0), Drift(1.0)];
pub(super) const LEAPFROG: &[Stage] = &[Kick(0.5), Drift(1.0), Kick(0.5)];
pub(super) const LEAPFROG_DKD: &[Stage] = &[Drift(0.5), Kick(1.0), Drift(0.5)];

/// `1 / (2 − 2^(1/3))`; the middle leapfrog runs backwards. Yoshida (1990, Phys. Lett. A 150, 262),
/// eq. 2.12; also Forest & Ruth (1990).
const FOURTH: f64 = 1.351_207_191_959_657_6;
pub(super) const YOSHIDA4: &[Stage] = &leapfrogs::<3, 7>([FOURTH, 1.0 - 2.0 * FOURTH, FOURTH]);

/// Solution A of Yoshida (1990), table 1: w₁, w₂, w₃, of which w₃ is the outermost, and
/// w₀ = 1 − 2 (w₁ + w₂ + w₃).
const SIXTH: [f64; 3] = [
    -1.177_679_984_178_87,
    0.235_573_213_359_357,
    0.784_513_610_477_560,
];
pub(super) const YOSHIDA6: &[Stage] = {
    let [w1, w2, w3] = SIXTH;
    &leapfrogs::<7, 15>([w3, w2, w1, 1.0 - 2.0 * (w1 + w2 + w3), w1, w2, w3])
};

/// Leapfrogs (kick–drift–kick) of these shares of the step, one after another; the half kicks where
/// two of them meet are one.
const fn leapfrogs<const N: usize, const STAGES: usize>(weights: [f64; N]) -> [Stage; STAGES] {
    assert!(STAGES == 2 * N + 1);
    let mut stages = [Kick(weights[0] / 2.0); STAGES];
    let mut i = 0;
    while i < N {
        let after = if i + 1 < N { weights[i + 1] } else { 0.0 };
        stages[2 * i + 1] = Drift(weights[i]);
        stages[2 * i + 2] = Kick((weights[i] + after) / 2.0);
        i += 1;
    }
    stages
}

/// Kicks, each of which needs one force evaluation; where a step begins and ends with one, the
/// evaluation at its end serves the next step.
pub(super) fn evaluations(stages: &[Stage]) -> u32 {
    let drifts = stages.iter().filter(|stage| matches!(stage, Drift(_)));
    let kicks = stages.iter().filter(|stage| matches!(stage, Kick(_)));
    drifts.count().min(kicks.count()) as u32
}

/// The operations of one step. Where the first stage is a kick, accelerations are those of the
/// current positions before and after; else nothing relies on them.
pub(super) fn operations(stages: &[Stage], dt: f64) -> Vec<Operation> {
    const ACCELERATE: Operation = Operation::Evaluate(HighestDerivative::None);
    let kept = matches!(stages[0], Kick(_));
    let mut fresh = kept;
    let mut step = vec![];
    for stage in stages {
        match stage {
            Kick(share) => {
                if !fresh {
                    step.push(ACCELERATE);
                    fresh = true;
                }
                step.push(Operation::Kick(share * dt));
            }
            Drift(share) => {
                step.push(Operation::Drift(share * dt));
                fresh = false;
            }
        }
    }
    if kept && !fresh {
        step.push(ACCELERATE);
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(&[Stage], u32, f64); 5] = [
        (SEMI_IMPLICIT_EULER, 1, 0.0),
        (LEAPFROG, 1, 0.0),
        (LEAPFROG_DKD, 1, 0.0),
        (YOSHIDA4, 3, 1e-14),
        (YOSHIDA6, 7, 1e-14),
    ];

    #[test]
    fn shares_sum_to_one_step() {
        for (stages, evaluated, tolerance) in ALL {
            let (mut kicks, mut drifts) = (0.0, 0.0);
            for stage in stages {
                match stage {
                    Kick(share) => kicks += share,
                    Drift(share) => drifts += share,
                }
            }
            let off = f64::max((kicks - 1.0_f64).abs(), (drifts - 1.0_f64).abs());
            assert!(off <= tolerance, "{stages:?}: {off:e}");
            assert_eq!(evaluations(stages), evaluated);
        }
    }

    #[test]
    fn all_but_euler_are_their_own_mirror_image() {
        for (stages, ..) in &ALL[1..] {
            let share = |stage: &Stage| match stage {
                Kick(share) | Drift(share) => *share,
            };
            let back = stages.iter().rev();
            assert!(
                stages
                    .iter()
                    .zip(back)
                    .all(|(a, b)| (share(a) - share(b)).abs() <= 1e-15)
            );
        }
    }

    /// Weights of leapfrogs whose errors cancel to order four: `Σ w³ = 0`; to order six also
    /// `Σ w⁵ = 0` (Yoshida 1990, eqs. 4.10 and 4.11 in part).
    #[test]
    fn powers_of_the_weights_cancel() {
        for (stages, powers) in [(YOSHIDA4, &[3][..]), (YOSHIDA6, &[3, 5])] {
            for &power in powers {
                let sum: f64 = stages
                    .iter()
                    .map(|stage| match stage {
                        Drift(share) => share.powi(power),
                        Kick(_) => 0.0,
                    })
                    .sum();
                assert!(sum.abs() <= 1e-12, "Σ w^{power} = {sum:e}");
            }
        }
    }
}
