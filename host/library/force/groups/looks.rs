//! Looks at groups: energies, and the places of members.

use crate::diagnostics::{CompensatedSum, Energy};
use crate::force::host_state::HostState;
use crate::groups::{Few, Group, Vector};
use crate::neighbours::Tree;
use crate::parallel;
use crate::physics::Physics;
use crate::vectors::{difference, dot};

/// Distance, in sizes, beyond which the potential of members is that of the centre of mass.
const FAR: f64 = 3000.0;

/// Potential energy, times G, of the other slot at d with the members of a group, beyond the energy with the centre of
/// the group. The other slot is seen as members if its group is given, which meets this one.
pub(super) fn tide((group, few): (&Group, &Few), other: Option<&Group>, gm: f64, d: Vector) -> f64 {
    let meets =
        |other: &&Group| other.zone_of(group.slot).is_some() && other.time() == group.time();
    // From each member of the other to the centre: its own tide is not meant.
    let of_member = |(gm, y): (f64, Vector)| {
        let from_centre = [0, 1, 2].map(|k| d[k] + y[k]);
        between(few, (gm, [0.0; 3]), from_centre)
    };
    match other.filter(meets) {
        None => between(few, (gm, [0.0; 3]), d),
        Some(other) => other.few().sources().map(of_member).sum(),
    }
}

/// Potential energy of a few bodies with another, which is at y from a place at d. The energy of their centre with a
/// body at that place is left out.
fn between(mine: &Few, (gm, y): (f64, Vector), d: Vector) -> f64 {
    let distance = dot(d, d).sqrt();
    let of_member = |(m, x): (f64, Vector)| {
        let s = difference(y, x);
        let e = [0, 1, 2].map(|k| d[k] + s[k]);
        let r = dot(e, e).sqrt();
        // 1/r − 1/|d| without a difference of like numbers.
        let farther = dot(s, s) + 2.0 * dot(d, s);
        m * gm * farther / (r * distance * (r + distance))
    };
    mine.sources().map(of_member).sum()
}

/// Energy of the mean quadrupole of a group with a slot at d.
pub(super) fn mean_of_ring(group: &Group, gm: f64, d: Vector) -> f64 {
    group.ring.map_or(0.0, |ring| gm * ring.potential(d))
}

impl HostState {
    /// Inner energies of groups, and energies of members with others beyond the energies of centres of mass.
    pub(in crate::force) fn energy_of_groups(&self, physics: &Physics) -> Energy {
        let Some(groups) = self
            .groups
            .as_deref()
            .filter(|groups| !groups.all.is_empty())
        else {
            return Energy::default();
        };
        let g = physics.coupling();
        let has_mass = |&i: &usize| self.bodies.mass[i] != 0.0;
        let live = (0..self.bodies.len()).filter(has_mass);
        let places: Vec<Vector> = (0..self.bodies.len()).map(|i| self.phase(i).0).collect();
        let tree = Tree::of(&places, live);
        let of_group = |group: &Group| {
            let mut potential = CompensatedSum::default();
            let (few, all) = (group.few(), group.all());
            let moving: f64 = (0..all.count)
                .map(|k| 0.5 * all.gm[k] * all.v[k].iter().map(|v| v * v).sum::<f64>())
                .sum();
            // Of a pair the energy is known better than its parts.
            potential.add((group.energy() - moving) / g);
            let far = FAR * group.size;
            let mut near = vec![];
            tree.near(self.phase(group.slot).0, far, &mut near);
            near.sort_unstable();
            for other in near.into_iter().filter(|&other| other != group.slot) {
                let [d, _] = self.relative_phase(other, group.slot);
                let its = groups.in_slot(other).map(|k| &groups.all[k]);
                // A pair of groups once, with the larger.
                let is_of_other = |its: &Group| (its.size, its.slot) > (group.size, group.slot);
                if dot(d, d) >= far * far || its.is_some_and(is_of_other) {
                    continue;
                }
                let its = its.map_or_else(|| Few::one(g * self.bodies.mass[other]), Group::few);
                let together: f64 = its.sources().map(|one| between(&few, one, d)).sum();
                potential.add(together / g);
            }
            if group.slowdown > 1.0 && group.ring.is_some() {
                // A slowed pair swings too far about its mean: taken back, as if all went at full speed.
                for partner in &group.partners {
                    let gm = g * self.bodies.mass[partner.slot];
                    let [d, _] = self.relative_phase(partner.slot, group.slot);
                    let its = groups.in_slot(partner.slot).map(|k| &groups.all[k]);
                    let swing = tide((group, &few), its, gm, d) - mean_of_ring(group, gm, d);
                    potential.add((group.slowdown - 1.0) * swing / g);
                }
            }
            [moving / g, potential.value()]
        };
        let of_groups = parallel::each_of(&groups.all, 1, of_group);
        let (mut kinetic, mut potential) = (CompensatedSum::default(), CompensatedSum::default());
        for [of_kinetic, of_potential] in of_groups {
            kinetic.add(of_kinetic);
            potential.add(of_potential);
        }
        Energy {
            kinetic: kinetic.value(),
            potential: potential.value(),
            external: 0.0,
            lost: 0.0,
            brought: 0.0,
        }
    }

    /// Positions and velocities of members.
    pub(in crate::force) fn members(&self) -> Vec<(usize, [Vector; 2])> {
        let mut all = vec![];
        for group in self.groups.iter().flat_map(|groups| &groups.all) {
            let (x, v) = self.phase(group.slot);
            let few = group.all();
            for (k, &i) in group.members.iter().enumerate() {
                let place = [0, 1, 2].map(|axis| x[axis] + few.x[k][axis]);
                let moving = [0, 1, 2].map(|axis| v[axis] + few.v[k][axis]);
                all.push((i, [place, moving]));
            }
        }
        all
    }
}
