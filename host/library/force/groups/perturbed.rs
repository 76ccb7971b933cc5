//! Which groups a slot perturbs.

use super::Course;
use super::slots::View;
use crate::groups::{Group, Groups, Partner, Zone};
use crate::parallel;

/// Slots of which one thread finds the meetings.
const SLOTS_OF_A_TASK: usize = 512;

/// Which groups slots perturb.
#[derive(PartialEq)]
pub(super) struct Perturbed {
    /// For each slot, the groups that have it as a partner, in the order of their slots, and the part that it plays.
    by_slot: Vec<Vec<(usize, Zone)>>,
    /// For each slot, how many partners its group has, and how many groups have it as a partner.
    meetings: Vec<u32>,
}

impl Perturbed {
    /// The groups that each of the first slots perturbs.
    pub(super) fn of(groups: &Groups, slots: usize) -> Self {
        let mut all = Self {
            by_slot: vec![vec![]; slots],
            meetings: vec![0; slots],
        };
        for group in &groups.all {
            all.change(group.slot, &[], &group.partners);
        }
        all
    }

    /// A group ends.
    pub(super) fn remove(&mut self, group: &Group) {
        self.change(group.slot, &group.partners, &[]);
    }

    /// Groups that some slots perturb have others in their place, with the same part.
    pub(super) fn replace(&mut self, groups: &mut Groups, gone: &[usize], others: &[usize]) {
        let by_slot = gone.iter().flat_map(|&slot| &self.by_slot[slot]);
        let mut slots: Vec<usize> = by_slot.map(|&(group, _)| group).collect();
        slots.sort_unstable();
        slots.dedup();
        for slot in slots {
            let Some(number) = groups.in_slot(slot) else {
                continue;
            };
            let group = &mut groups.all[number];
            let before = group.partners.clone();
            group.replace_partners(gone, others);
            let [lost, got] = changes(&before, &group.partners);
            self.change(group.slot, &lost, &got);
        }
        let is_whole = || *self == Self::of(groups, self.by_slot.len());
        debug_assert!(is_whole(), "a change of partners was not noted");
    }

    /// Returns whether a slot perturbs a group, or has a group that is perturbed.
    pub(super) fn meets(&self, slot: usize) -> bool {
        self.meetings[slot] != 0
    }

    /// A group, in this slot, lost partners and then got others.
    pub(super) fn change(&mut self, group: usize, gone: &[Partner], come: &[Partner]) {
        self.meetings[group] += come.len() as u32;
        self.meetings[group] -= gone.len() as u32;
        for partner in gone {
            let groups = &mut self.by_slot[partner.slot];
            self.meetings[partner.slot] -= 1;
            if let Ok(place) = groups.binary_search_by_key(&group, |&(slot, _)| slot) {
                groups.remove(place);
            }
        }
        for partner in come {
            let groups = &mut self.by_slot[partner.slot];
            self.meetings[partner.slot] += 1;
            let place = groups.partition_point(|&(slot, _)| slot < group);
            groups.insert(place, (group, partner.zone));
        }
    }
}

/// Partners that are in the first list alone, and in the second alone. Both lists are in the order of slots. One that
/// plays another part is in both.
pub(super) fn changes(before: &[Partner], now: &[Partner]) -> [Vec<Partner>; 2] {
    let (mut gone, mut come) = (vec![], vec![]);
    let (mut before, mut now) = (before.iter().peekable(), now.iter().peekable());
    loop {
        match (before.peek(), now.peek()) {
            (None, None) => return [gone, come],
            (Some(was), Some(is)) if was == is => {
                before.next();
                now.next();
            }
            (Some(was), is) if is.is_none_or(|is| was.slot <= is.slot) => {
                gone.extend(before.next());
            }
            _ => come.extend(now.next()),
        }
    }
}

impl Course<'_> {
    /// The slots of these that perturb a group, or have a group that is perturbed.
    pub(super) fn that_meet(&self, slots: &[usize]) -> Vec<usize> {
        let slots = slots.iter().copied();
        slots.filter(|&slot| self.perturbed.meets(slot)).collect()
    }
}

impl<'a> View<'a> {
    /// Groups by their slots, and partners of theirs, of which one is in this slot.
    pub(super) fn meetings_of(
        self,
        slot: usize,
    ) -> impl Iterator<Item = (usize, Partner)> + use<'a> {
        let as_partner = self.perturbed.by_slot[slot].iter();
        let number = self.groups.in_slot(slot).into_iter();
        let partners = number.flat_map(move |number| &self.groups.all[number].partners);
        as_partner
            .map(move |&(group, zone)| (group, Partner { slot, zone }))
            .chain(partners.map(move |&partner| (slot, partner)))
    }

    /// Numbers of groups, and partners of theirs, of which one is in one of these slots: those that are wanted of a slot,
    /// in the order of the slots.
    pub(super) fn meetings_in_turn(
        self,
        slots: &[usize],
        is_wanted: impl Fn(usize, (usize, Partner)) -> bool + Sync,
    ) -> Vec<(usize, Partner)> {
        let of_part = |slots: &&[usize]| {
            let mut found = vec![];
            for &slot in *slots {
                for (group, partner) in self.meetings_of(slot) {
                    if is_wanted(slot, (group, partner)) {
                        found.extend(self.groups.in_slot(group).map(|k| (k, partner)));
                    }
                }
            }
            found
        };
        let parts: Vec<&[usize]> = slots.chunks(SLOTS_OF_A_TASK).collect();
        parallel::each_of(&parts, 1, of_part).concat()
    }

    /// Numbers of groups, and partners of theirs, of which one at least is in these slots: those that are wanted, each
    /// once and in order.
    pub(super) fn meetings(
        self,
        slots: &[usize],
        is_wanted: impl Fn(usize, Partner) -> bool + Sync,
    ) -> Vec<(usize, Partner)> {
        let is_wanted = |_, (group, partner)| is_wanted(group, partner);
        let mut found = self.meetings_in_turn(slots, is_wanted);
        found.sort_unstable_by_key(|&(number, partner)| (number, partner.slot));
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partners(of: &[(usize, Zone)]) -> Vec<Partner> {
        let partner = |&(slot, zone): &(usize, Zone)| Partner { slot, zone };
        of.iter().map(partner).collect()
    }

    #[test]
    fn a_slot_knows_whom_it_perturbs_after_each_change() {
        let lists = [
            partners(&[]),
            partners(&[(0, Zone::Felt), (3, Zone::Close)]),
            partners(&[(1, Zone::Mean), (3, Zone::Felt), (4, Zone::Felt)]),
            partners(&[(4, Zone::Impulses)]),
        ];
        let mut all = Perturbed {
            by_slot: vec![vec![]; 6],
            meetings: vec![0; 6],
        };
        all.change(5, &[], &partners(&[(4, Zone::Mean)]));
        for [before, now] in (0..16).map(|k| [&lists[k / 4], &lists[k % 4]]) {
            all.change(2, &[], before);
            let [gone, come] = changes(before, now);
            assert!(gone.iter().all(|partner| !now.contains(partner)));
            all.change(2, &gone, &come);
            for slot in 0..6 {
                let of_now = now.iter().filter(|partner| partner.slot == slot);
                let mut wanted: Vec<_> = of_now.map(|partner| (2, partner.zone)).collect();
                wanted.extend((slot == 4).then_some((5, Zone::Mean)));
                let text = format!("slot {slot}, {before:?} -> {now:?}");
                assert_eq!(all.by_slot[slot], wanted, "{text}");
                let of_group =
                    [(2, now.len()), (5, 1)].map(|(of, count)| [0, count][usize::from(of == slot)]);
                let meetings = wanted.len() + of_group.iter().sum::<usize>();
                assert_eq!(all.meetings[slot] as usize, meetings, "{text}");
            }
            all.change(2, now, &[]);
        }
    }
}
