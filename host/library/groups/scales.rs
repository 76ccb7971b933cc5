//! Lengths and times by which groups are formed and broken.

use super::Vector;
use super::vector::{cross, dot};

/// Lengths and times of a cluster, measured once. For N equal masses in units in which G = M = 1 and E = −1/4
/// bound lengths are 1/N.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scales {
    /// Dynamical time of the cluster divided by 2 N: an encounter that lasts longer needs no regularisation.
    pub(crate) time: f64,
    /// Mean square of the relative velocity of two bodies.
    pub(crate) speed_squared: f64,
    /// Twice the kinetic energy of the cluster, times G: the unit of the energies of tides.
    pub(crate) energy: f64,
    /// Size from which on a pair is a good part of the cluster.
    large: f64,
    /// Potential energy of the cluster in balance, times −G.
    potential: f64,
    /// Factor from the cube root of a pair's mass times G to the apocentre up to which it is formed among many bodies.
    in_tides: f64,
}

/// Apocentre up to which a bound pair is formed, in [bound lengths](Scales::bound). In block steps, wider pairs would
/// take most of the time and lose energy in each orbit.
const FORMED: f64 = 20.0;

/// The same where such a pair is a good part of the cluster: most of the cluster would perturb it, and it takes longer
/// as a group than in block steps.
const FORMED_IN_FEW: f64 = 10.0;

/// Apocentre up to which a bound pair is formed in a cluster of many bodies, where this is more: in virial radii, for a
/// pair with all of the mass. It goes with the cube root of the mass as a tidal radius does, of which it is a twentieth.
/// So the number of bodies that perturb such a pair does not depend on the number of bodies of the cluster.
const FORMED_IN_TIDES: f64 = 0.032;

/// Apocentre up to which a bound pair is kept, in apocentres up to which it is formed.
const KEPT: f64 = 3.0;

/// Size, in virial radii, from which on a pair is a good part of the cluster.
const LARGE: f64 = 0.01;

/// Size from which on a light pair is wide: others that are near break it.
const WIDE: f64 = 0.75;

/// Distance within which a group and another may become one: larger ones would take in all that pass.
const TOGETHER: f64 = 1.5;

/// Potential energy of two bodies, as a part of the cluster's, above which much is at stake between them. Block steps
/// lose some ten-thousandths of it where a third heavy body meets the two.
const AT_STAKE: f64 = 0.02;

impl Scales {
    /// Scales of a cluster of this number of bodies and their mass times G.
    pub(crate) fn new(time: f64, speed_squared: f64, bodies: usize, gm: f64) -> Self {
        let crossing = 2.0 * bodies as f64 * time;
        let radius = (crossing * crossing * gm).cbrt();
        Self {
            time,
            speed_squared,
            energy: gm * speed_squared,
            large: LARGE * radius,
            potential: 0.5 * gm * gm / radius,
            in_tides: FORMED_IN_TIDES * radius / gm.cbrt(),
        }
    }

    /// Length at which the motion of bound bodies of mass `gm`, times G, takes the time of an encounter.
    pub(crate) fn bound(&self, gm: f64) -> f64 {
        (2.0 * gm * self.time * self.time).cbrt()
    }

    /// Distance within which a fly-by is regularised: one that deflects, and does not last long.
    pub(crate) fn fly_by(&self, gm: f64) -> f64 {
        (gm / (2.0 * self.speed_squared)).min(self.bound(gm))
    }

    /// Bound length of two bodies of a group and another with this mass times G in all.
    pub(crate) fn together(&self, gm: f64) -> f64 {
        self.bound(2.0 / 3.0 * gm)
    }

    /// Distance within which much is at stake between bodies of these masses times G. It is more than other lengths here
    /// for heavy bodies alone.
    pub(crate) fn at_stake(&self, [one, other]: [f64; 2]) -> f64 {
        self.large.min(one * other / (AT_STAKE * self.potential))
    }

    /// Largest distance at which a group and another of these masses times G become one.
    pub(crate) fn reach_together(&self, both: [f64; 2]) -> f64 {
        let [one, other] = both;
        (TOGETHER * self.together(one + other)).max(self.at_stake(both))
    }

    /// Largest size of a pair that is formed.
    pub(crate) fn reach(&self, gm: f64) -> f64 {
        let bound = self.bound(gm);
        let formed = (FORMED * bound).max(self.in_tides * gm.cbrt());
        formed.min(self.large.max(FORMED_IN_FEW * bound))
    }

    /// Largest size of a pair that is kept.
    pub(crate) fn kept(&self, gm: f64) -> f64 {
        KEPT * self.reach(gm)
    }

    /// Size from which on a pair of these masses times G is wide. A pair with much at stake stays one: a third that comes
    /// near becomes a member.
    pub(crate) fn wide(&self, both: [f64; 2]) -> f64 {
        let [one, other] = both;
        (WIDE * self.bound(one + other)).max(self.at_stake(both))
    }
}

/// Kepler orbit of two bodies about each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Orbit {
    /// Distance.
    pub(crate) distance: f64,
    /// Product of distance and radial velocity.
    pub(crate) radial: f64,
    /// Apocentre; infinite for an unbound orbit.
    pub(crate) apocentre: f64,
}

impl Orbit {
    /// The orbit with this relative position and velocity, of bodies with this mass times G.
    pub(crate) fn of(gm: f64, position: Vector, velocity: Vector) -> Self {
        let distance = dot(position, position).sqrt();
        let energy = 0.5 * dot(velocity, velocity) - gm / distance;
        let momentum = cross(position, velocity);
        let apocentre = match energy < 0.0 {
            true => {
                let square = 1.0 + 2.0 * energy * dot(momentum, momentum) / (gm * gm);
                -0.5 * gm / energy * (1.0 + square.max(0.0).sqrt())
            }
            false => f64::INFINITY,
        };
        Self {
            distance,
            radial: dot(position, velocity),
            apocentre,
        }
    }

    /// Returns whether the bodies approach each other.
    pub(crate) fn approaches(&self) -> bool {
        self.radial < 0.0
    }

    /// Returns whether two single bodies on this orbit are to be a pair.
    pub(crate) fn forms(&self, scales: &Scales, gm: f64) -> bool {
        let is_near = self.distance < scales.fly_by(gm) && self.approaches();
        is_near || self.apocentre < scales.reach(gm)
    }

    /// Size that the pair would have.
    pub(crate) fn size(&self, scales: &Scales, gm: f64) -> f64 {
        match self.apocentre < scales.kept(gm) {
            true => self.apocentre,
            false => self.distance.max(2.0 * scales.fly_by(gm)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In units in which bound lengths of two equal masses are 1/N.
    #[test]
    fn pairs_are_formed_up_to_bound_lengths_or_tidal_radii() {
        let reach = |bodies: usize, masses: f64| {
            let n = bodies as f64;
            Scales::new(0.5 / n, 1.0, bodies, 1.0).reach(2.0 * masses / n) * n
        };
        for (bodies, masses, bound_lengths) in [
            (100, 1.0, 10.0),      // as in few
            (1_000, 1.0, 10.0),    // a hundredth of the virial radius
            (4_096, 1.0, 20.0),    // bound lengths
            (11_000, 1.0, 20.0),   // the same either way
            (16_000, 1.0, 25.6),   // a part of the tidal radius
            (100_000, 1.0, 86.9),  // likewise
            (100_000, 8.0, 173.8), // twice as large for eight times the mass
            (100_000, 1e4, 1_000.0),
        ] {
            let found = reach(bodies, masses);
            assert!(
                (found / bound_lengths - 1.0).abs() < 3e-3,
                "{bodies}: {found}"
            );
        }
    }
}
