//! Block time steps for those who do not choose all of their settings.

use gpu_kernels::schedule::block_steps::DigitsName;

use crate::backend::Neighbours;
use crate::integrator::Integrator;
use crate::variants::preferred::{ForceAccuracy, block_digits};

/// Bodies from which on a [neighbour scheme](Neighbours) is chosen.
pub const MANY: usize = 65_536;

/// Largest number of bodies for which a neighbour scheme is chosen. More have not been timed, and their
/// lists take more memory than most GPUs have.
const TOO_MANY: usize = 1 << 20;

/// η in a neighbour scheme.
const ETA_WITH_NEIGHBOURS: f64 = 0.04;

/// η of fourth order where pairs and multiples are followed apart.
const ETA_WITH_GROUPS: f64 = 0.01;

/// η of sixth order.
const ETA_OF_SIXTH: f64 = 0.36;

/// Bodies that begin with pairs from which on sixth order is faster than fourth.
const SEVERAL_WITH_PAIRS: usize = 512;

/// Bodies from which on fourth order with groups and neighbours is faster on a CPU than sixth order with groups.
const MANY_OF_SIXTH: usize = 8192;

/// Settings of block time steps, of which some may have been asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockSettings {
    /// The integrator.
    pub integrator: Option<Integrator>,
    /// Accuracy of the steps.
    pub eta: Option<f64>,
    /// Neighbours in a scheme with these.
    pub neighbours: Option<Neighbours>,
}

impl BlockSettings {
    /// These settings next to groups, with integrator and η if they were left out. Neighbours are added for many bodies
    /// if the integrator was left out, and if they are `allowed`. On a GPU they take longer: the host finds them.
    ///
    /// For errors as large, sixth order takes half to three quarters of the time of fourth order with η = 0.01. With real
    /// binaries it takes less. Few bodies that begin with pairs are faster by fourth order.
    #[must_use]
    pub fn with_groups(self, bodies: usize, has_pairs: bool, allowed: bool) -> Self {
        let pays = self.integrator.is_none() && allowed && bodies >= MANY_OF_SIXTH;
        let neighbours = self.neighbours.or(pays.then_some(Neighbours::Auto));
        let is_fourth = neighbours.is_some() || (has_pairs && bodies < SEVERAL_WITH_PAIRS);
        let integrator = self.integrator.unwrap_or(match is_fourth {
            true => Integrator::Hermite4,
            false => Integrator::Hermite6,
        });
        let eta = self.eta.unwrap_or(match integrator {
            Integrator::Hermite6 => ETA_OF_SIXTH,
            _ => ETA_WITH_GROUPS,
        });
        Self {
            integrator: Some(integrator),
            eta: Some(eta),
            neighbours,
        }
    }

    /// These settings, with integrator and η for this number of bodies if they were left out. Neighbours
    /// are added if the integrator was left out, if they are `allowed`, and if pairs of this accuracy need
    /// no f64, because a GPU has no neighbour scheme in f64.
    ///
    /// Hermite's sixth order with η = 0.36, or the neighbour scheme with η = 0.04 from 65 536 to 1 048 576 bodies. On one
    /// H200 a time unit of as many in a Plummer sphere takes 2.6 s with an error of the energy of 2.5·10⁻⁹ by the
    /// one, and 1.3 s with 9·10⁻⁹ by the other. Fewer bodies gain no time on a GPU at such errors, and what is
    /// chosen does not depend on the device. Fourth order without neighbours has η = 0.02.
    #[must_use]
    pub fn or_chosen(
        self,
        bodies: usize,
        allowed: bool,
        accuracy: impl FnOnce() -> Option<ForceAccuracy>,
    ) -> Self {
        let eta = self.eta.unwrap_or(ETA_WITH_NEIGHBOURS);
        let order = Integrator::Hermite4.order();
        let pays = allowed
            && self.integrator.is_none()
            && neighbours_pay(bodies)
            && block_digits(order, eta, accuracy()) != DigitsName::Double;
        let neighbours = self.neighbours.or(pays.then_some(Neighbours::Auto));
        let integrator = self.integrator.unwrap_or(match neighbours {
            Some(_) => Integrator::Hermite4,
            None => Integrator::Hermite6,
        });
        let eta = self.eta.unwrap_or(match (integrator, neighbours) {
            (_, Some(_)) => ETA_WITH_NEIGHBOURS,
            (Integrator::Hermite6, None) => ETA_OF_SIXTH,
            (_, None) => 0.02,
        });
        Self {
            integrator: Some(integrator),
            eta: Some(eta),
            neighbours,
        }
    }
}

/// Returns whether a [neighbour scheme](Neighbours) is faster for this number of bodies than other block
/// time steps with errors as small.
pub fn neighbours_pay(bodies: usize) -> bool {
    (MANY..=TOO_MANY).contains(&bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_kept() {
        let nothing = BlockSettings::default();
        let chosen = |settings: BlockSettings, bodies| {
            let BlockSettings {
                integrator,
                eta,
                neighbours,
            } = settings.or_chosen(bodies, true, || None);
            (integrator.unwrap().name(), eta.unwrap(), neighbours)
        };
        assert_eq!(chosen(nothing, MANY - 1), ("hermite6", 0.36, None));
        let auto = Some(Neighbours::Auto);
        assert_eq!(chosen(nothing, MANY), ("hermite4", 0.04, auto));
        let refused = nothing.or_chosen(MANY, false, || None);
        assert_eq!(refused.integrator, Some(Integrator::Hermite6));
        let in_f64 = nothing.or_chosen(MANY, true, || Some(ForceAccuracy::Double));
        assert_eq!(in_f64.neighbours, None);
        let fine = BlockSettings {
            eta: Some(0.005),
            ..nothing
        };
        assert_eq!(chosen(fine, MANY), ("hermite6", 0.005, None));
        let fourth = BlockSettings {
            integrator: Some(Integrator::Hermite4),
            ..nothing
        };
        assert_eq!(chosen(fourth, MANY), ("hermite4", 0.02, None));
        let with_neighbours = BlockSettings {
            neighbours: auto,
            eta: Some(0.16),
            ..nothing
        };
        assert_eq!(chosen(with_neighbours, 100), ("hermite4", 0.16, auto));
    }

    #[test]
    fn next_to_groups_too() {
        let nothing = BlockSettings::default();
        let auto = Some(Neighbours::Auto);
        let fourth = BlockSettings {
            integrator: Some(Integrator::Hermite4),
            ..nothing
        };
        let near = BlockSettings {
            neighbours: auto,
            ..nothing
        };
        let sixth = BlockSettings {
            integrator: Some(Integrator::Hermite6),
            ..nothing
        };
        for (given, bodies, has_pairs, allowed, expected) in [
            (nothing, 8191, false, true, ("hermite6", 0.36, None)),
            (nothing, 8192, false, true, ("hermite4", 0.01, auto)),
            (nothing, 8192, false, false, ("hermite6", 0.36, None)),
            (nothing, 511, true, true, ("hermite4", 0.01, None)),
            (nothing, 512, true, true, ("hermite6", 0.36, None)),
            (nothing, 8191, true, true, ("hermite6", 0.36, None)),
            (nothing, 8192, true, true, ("hermite4", 0.01, auto)),
            (nothing, 8192, true, false, ("hermite6", 0.36, None)),
            (sixth, 8192, true, true, ("hermite6", 0.36, None)),
            (fourth, 8192, true, true, ("hermite4", 0.01, None)),
            (near, 100, false, true, ("hermite4", 0.01, auto)),
        ] {
            let made = given.with_groups(bodies, has_pairs, allowed);
            let name = made.integrator.unwrap().name();
            assert_eq!((name, made.eta.unwrap(), made.neighbours), expected);
        }
    }
}
