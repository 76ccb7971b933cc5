//! Ends of the steps of slots, and the slots whose steps end next.

use std::collections::BTreeMap;
use std::mem;

use rayon::prelude::*;

/// The part of all slots, by its inverse, from which on to look at all is sooner than to sort some.
const MANY: usize = 32;

/// Slots from which on several threads look after them.
const SEVERAL: usize = 1024;

/// Parts that all slots are cut into for several threads, and the least slots of a part.
const PARTS: usize = 64;
const LEAST: usize = 256;

/// Ticks at which the steps of slots end.
pub(super) struct Ends {
    of_slot: Vec<u64>,
    /// Slots by the ticks at which their steps end, or ended before they were changed.
    slots: BTreeMap<u64, Vec<usize>>,
}

impl Ends {
    /// Slots whose steps never end.
    pub(super) fn never(slots: usize) -> Self {
        Self {
            of_slot: vec![u64::MAX; slots],
            slots: BTreeMap::new(),
        }
    }

    /// The tick at which the step of a slot ends; none for a free slot.
    pub(super) fn of(&self, slot: usize) -> Option<u64> {
        Some(self.of_slot[slot]).filter(|&end| end != u64::MAX)
    }

    /// Lets the step of a slot end at this tick.
    pub(super) fn set(&mut self, slot: usize, end: u64) {
        if self.of_slot[slot] != end {
            self.of_slot[slot] = end;
            self.slots.entry(end).or_default().push(slot);
        }
    }

    /// Lets the steps of slots, which are in order, end at these ticks. Many of them end together.
    pub(super) fn set_each(&mut self, slots: &[usize], end: impl Fn(usize) -> u64 + Sync) {
        let changed = |first: usize, of_slot: &mut [u64], slots: &[usize]| {
            let mut by_end: Vec<(u64, Vec<usize>)> = vec![];
            for &slot in slots {
                let end = end(slot);
                if mem::replace(&mut of_slot[slot - first], end) != end {
                    match by_end.iter_mut().find(|(other, _)| *other == end) {
                        Some((_, slots)) => slots.push(slot),
                        None => by_end.push((end, vec![slot])),
                    }
                }
            }
            by_end
        };
        let by_end = match slots.len() < SEVERAL {
            true => changed(0, &mut self.of_slot, slots),
            false => {
                let length = length_of_part(self.of_slot.len());
                let parts = self.of_slot.par_chunks_mut(length).enumerate();
                let parts = parts.flat_map_iter(|(part, of_slot)| {
                    changed(part * length, of_slot, within_part(slots, part, length))
                });
                parts.collect()
            }
        };
        for (end, slots) in by_end {
            self.slots.entry(end).or_default().extend(slots);
        }
    }

    /// Lets a slot be free.
    pub(super) fn free(&mut self, slot: usize) {
        self.of_slot[slot] = u64::MAX;
    }

    /// The next tick at which steps end, and their slots in order; none if no step ends.
    pub(super) fn next(&mut self) -> Option<(u64, Vec<usize>)> {
        while let Some((end, mut slots)) = self.slots.pop_first() {
            match slots.len() < self.of_slot.len() / MANY {
                true => {
                    slots.retain(|&slot| self.of_slot[slot] == end);
                    slots.sort_unstable();
                    slots.dedup();
                }
                false => {
                    let length = length_of_part(self.of_slot.len());
                    let all = self.of_slot.par_iter().enumerate().with_min_len(length);
                    let ends_now = all.filter(|&(_, &of_slot)| of_slot == end);
                    slots = ends_now.map(|(slot, _)| slot).collect();
                }
            }
            if !slots.is_empty() {
                return Some((end, slots));
            }
        }
        None
    }
}

/// Slots of a part, if several threads share all slots.
pub(super) fn length_of_part(all: usize) -> usize {
    (all / PARTS).max(LEAST)
}

/// Of slots in order, those within a part of this length.
pub(super) fn within_part(slots: &[usize], part: usize, length: usize) -> &[usize] {
    let [from, to] =
        [part, part + 1].map(|part| slots.partition_point(|&slot| slot < part * length));
    &slots[from..to]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_in_order_and_changed_ones_once() {
        for slots in [4, 400] {
            let mut ends = Ends::never(slots);
            ends.set_each(&[0, 1, 2, 3], |slot| [8, 4, 8, 2][slot]);
            ends.set(2, 16);
            ends.set(2, 8);
            ends.free(3);
            assert_eq!((ends.of(3), ends.of(1)), (None, Some(4)));
            assert_eq!(ends.next(), Some((4, vec![1])));
            assert_eq!(ends.next(), Some((8, vec![0, 2])));
            assert_eq!(ends.next(), None);
        }
    }

    #[test]
    fn ends_of_many_slots_are_those_of_each() {
        const SLOTS: usize = 3 * PARTS * LEAST / 2;
        let end = |slot: usize| 1 << (slot % 3);
        let all: Vec<usize> = (0..SLOTS).collect();
        let mut ends = Ends::never(SLOTS);
        ends.set_each(&all, end);
        for tick in [1, 2, 4] {
            let slots = all.iter().copied().filter(|&slot| end(slot) == tick);
            assert_eq!(ends.next(), Some((tick, slots.collect())));
        }
        assert_eq!(ends.next(), None);
    }
}
