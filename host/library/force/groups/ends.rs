//! Ends of the steps of slots, and the slots whose steps end next.

use std::collections::BTreeMap;

/// The part of all slots, by its inverse, from which on to look at all is sooner than to sort some.
const MANY: usize = 32;

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

    /// Lets the steps of many slots end. Many of them end together.
    pub(super) fn set_each(&mut self, all: impl Iterator<Item = (usize, u64)>) {
        let mut by_end: Vec<(u64, Vec<usize>)> = vec![];
        for (slot, end) in all {
            if std::mem::replace(&mut self.of_slot[slot], end) != end {
                match by_end.iter_mut().find(|(other, _)| *other == end) {
                    Some((_, slots)) => slots.push(slot),
                    None => by_end.push((end, vec![slot])),
                }
            }
        }
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
                    let all = 0..self.of_slot.len();
                    slots = all.filter(|&slot| self.of_slot[slot] == end).collect();
                }
            }
            if !slots.is_empty() {
                return Some((end, slots));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_in_order_and_changed_ones_once() {
        for slots in [4, 400] {
            let mut ends = Ends::never(slots);
            ends.set_each([(2, 8), (0, 8), (1, 4), (3, 2)].into_iter());
            ends.set(2, 16);
            ends.set(2, 8);
            ends.free(3);
            assert_eq!((ends.of(3), ends.of(1)), (None, Some(4)));
            assert_eq!(ends.next(), Some((4, vec![1])));
            assert_eq!(ends.next(), Some((8, vec![0, 2])));
            assert_eq!(ends.next(), None);
        }
    }
}
