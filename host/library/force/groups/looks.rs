//! Looks at groups: energies, and the places of members.

use crate::diagnostics::{CompensatedSum, Energy};
use crate::force::host_state::HostState;
use crate::groups::{Few, Group, Vector};
use crate::neighbours::Tree;
use crate::parallel;
use crate::physics::Physics;
use crate::simd::{InstructionSet, Kernel, Refined, Registers, Root, Vector as Register};
use crate::vectors::{axes, difference, dot};

/// Distance, in sizes, beyond which the potential of a small group's members is the potential of its centre of mass.
const FAR: f64 = 3000.0;

/// Distance, in sizes, beyond which a wide group sees other groups as points, and they see it as a point.
const APART: f64 = 300.0;

/// Part of a cluster's radius within which there are few bodies.
const FEW: f64 = 0.05;

/// Lanes of the widest registers.
const WIDEST: usize = 8;

/// Potential energy, times G, of the other slot at d with the members of a group, beyond the energy with the centre of
/// the group. The other slot is seen as members if its group is given, which meets this one.
pub(super) fn tide((group, few): (&Group, &Few), other: Option<&Group>, gm: f64, d: Vector) -> f64 {
    let meets =
        |other: &&Group| other.zone_of(group.slot).is_some() && other.time() == group.time();
    // From each member of the other to the centre: its own tide is not meant.
    let of_member = |(gm, y): (f64, Vector)| {
        let from_centre = axes(|k| d[k] + y[k]);
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
        let e = axes(|k| d[k] + s[k]);
        let r = dot(e, e).sqrt();
        // 1/r − 1/|d| without a difference of like numbers.
        let farther = dot(s, s) + 2.0 * dot(d, s);
        m * gm * farther / (r * distance * (r + distance))
    };
    mine.sources().map(of_member).sum()
}

/// Positions and masses times G of bodies, one after another, with room for whole registers.
struct Columns {
    x: [Vec<f64>; 3],
    gm: Vec<f64>,
}

impl Columns {
    fn new(bodies: impl Iterator<Item = (Vector, f64)>) -> Self {
        let (places, mut gm): (Vec<Vector>, Vec<f64>) = bodies.unzip();
        let room = gm.len().next_multiple_of(WIDEST);
        gm.resize(room, 0.0);
        let of_axis = |axis: usize| {
            let mut numbers: Vec<f64> = places.iter().map(|x| x[axis]).collect();
            numbers.resize(room, 0.0);
            numbers
        };
        Self {
            x: axes(of_axis),
            gm,
        }
    }
}

/// Potential energy of a few bodies about a place with all others that are farther than a distance. The energy of the
/// few bodies' centre is left out. A body at that distance, but for rounding, may count twice or not at all.
struct FarTide<'a> {
    few: &'a Few,
    place: Vector,
    distance: f64,
    columns: &'a Columns,
}

impl Kernel for FarTide<'_> {
    type Output = f64;

    /// See [`between`].
    #[inline(always)]
    fn run<S: Registers>(self) -> f64 {
        const { assert!(WIDEST.is_multiple_of(<S::F64 as Register>::LANES)) };
        let zero = S::F64::splat(0.0);
        let [of_x, of_y, of_z] = &self.columns.x;
        let [x, y, z] = self.place;
        let (x, y, z) = (S::F64::splat(x), S::F64::splat(y), S::F64::splat(z));
        let limit = S::F64::splat(self.distance * self.distance);
        let mut total = zero;
        let mut i = 0;
        while i < self.columns.gm.len() {
            let dx = S::F64::load(&of_x[i..]) - x;
            let dy = S::F64::load(&of_y[i..]) - y;
            let dz = S::F64::load(&of_z[i..]) - z;
            let squared = dx.mul_add(dx, dy.mul_add(dy, dz * dz));
            let to_centre = Refined::inverse_sqrt(squared);
            let mut sum = zero;
            let mut k = 0;
            while k < self.few.count {
                let [sx, sy, sz] = self.few.x[k];
                let own = S::F64::splat(sx * sx + sy * sy + sz * sz);
                let along = dx.mul_add(
                    S::F64::splat(-sx),
                    dy.mul_add(S::F64::splat(-sy), dz * S::F64::splat(-sz)),
                );
                let farther = along + along + own;
                let to_member = Refined::inverse_sqrt(squared + farther);
                let (both, sides) = (to_member * to_centre, to_member + to_centre);
                // In this order no product is out of range before the others are.
                let term = (farther * both) * (both * Refined::inverse_sqrt(sides * sides));
                sum = term.mul_add(S::F64::splat(self.few.gm[k]), sum);
                k += 1;
            }
            sum = sum * S::F64::load(&self.columns.gm[i..]);
            total = total + sum.zero_where_less(squared, limit);
            i += <S::F64 as Register>::LANES;
        }
        total.sum()
    }
}

/// Energy of the mean quadrupole of a group with a slot at d.
pub(super) fn mean_of_ring(group: &Group, gm: f64, d: Vector) -> f64 {
    group.ring.map_or(0.0, |ring| gm * ring.potential(d))
}

/// Median distance of places from the medians of their coordinates: escapers do not count.
fn radius(places: impl Iterator<Item = Vector> + Clone) -> f64 {
    let median = |numbers: &mut Vec<f64>| {
        let middle = numbers.len() / 2;
        *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    let of_axis = |axis: usize| median(&mut places.clone().map(|x| x[axis]).collect());
    let centre = axes(of_axis);
    let distance = |x: Vector| {
        let d = difference(x, centre);
        dot(d, d).sqrt()
    };
    median(&mut places.map(distance).collect())
}

impl HostState {
    /// Inner energies of groups, and energies of members with others beyond the energies of centres of mass.
    pub(in crate::force) fn energy_of_groups(
        &self,
        physics: &Physics,
        instructions: InstructionSet,
    ) -> Energy {
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
        let gm = |i: usize| g * self.bodies.mass[i];
        let columns = Columns::new(live.clone().map(|i| (places[i], gm(i))));
        let few_within = FEW * radius(live.clone().map(|i| places[i]));
        let tree = Tree::of(&places, live);
        // A group that is wide for this cluster sees all others, as points from some distance on.
        let is_wide = |group: &Group| FAR * group.size > few_within;
        let close = |group: &Group| match is_wide(group) {
            true => APART * group.size,
            false => FAR * group.size,
        };
        let of_group = |group: &Group| {
            let mut potential = CompensatedSum::default();
            let (few, all) = (group.few(), group.all());
            let moving: f64 = (0..all.count)
                .map(|k| 0.5 * all.gm[k] * all.v[k].iter().map(|v| v * v).sum::<f64>())
                .sum();
            // Of a pair the energy is known better than its parts.
            potential.add((group.energy() - moving) / g);
            let (place, distance) = (places[group.slot], close(group));
            if is_wide(group) {
                let far = FarTide {
                    few: &few,
                    place,
                    distance,
                    columns: &columns,
                };
                potential.add(instructions.run(far) / g);
            }
            let mut near = vec![];
            tree.near(place, distance, &mut near);
            near.sort_unstable();
            for other in near.into_iter().filter(|&other| other != group.slot) {
                let [d, _] = self.relative_phase(other, group.slot);
                let is_within = |distance: f64| dot(d, d) < distance * distance;
                if !is_within(distance) {
                    continue;
                }
                let its = groups.in_slot(other).map(|k| &groups.all[k]);
                let is_smaller = |its: &&Group| (its.size, its.slot) < (group.size, group.slot);
                // A pair of groups that are close once, with the larger.
                if its.is_some_and(|its| !is_smaller(&its) && is_within(close(its))) {
                    continue;
                }
                let smaller = its.filter(is_smaller);
                let as_few = smaller.map_or_else(|| Few::one(gm(other)), Group::few);
                let together: f64 = as_few.sources().map(|one| between(&few, one, d)).sum();
                potential.add(together / g);
                // The smaller has seen this one as a point, which counts no more.
                if smaller.is_some_and(|its| is_wide(its) && !is_within(close(its))) {
                    let seen = between(&as_few, (gm(group.slot), [0.0; 3]), d.map(|d| -d));
                    potential.add(-seen / g);
                }
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
                let place = axes(|axis| x[axis] + few.x[k][axis]);
                let moving = axes(|axis| v[axis] + few.v[k][axis]);
                all.push((i, [place, moving]));
            }
        }
        all
    }
}
