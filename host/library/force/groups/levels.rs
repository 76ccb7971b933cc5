//! Levels of the steps of slots, and the slots whose steps end next.
//!
//! A step of level l is 2⁻ˡ of the span, and begins at a multiple of its length. So steps of a level end together, and with
//! them all finer ones.

use std::mem;
use std::ops::Range;

use gpu_kernels::schedule::block_steps::{DEEPEST, SPAN};

use super::coarsest_from;
use crate::parallel;

/// Number of the levels.
const LEVELS: usize = DEEPEST as usize + 1;

/// Level of a slot without steps.
const NONE: u32 = u32::MAX;

/// The part of all slots, by its inverse, from which on to look at all is sooner than to sort some.
const MANY: usize = 32;

/// Parts that all slots are cut into for several threads, and the least slots of a part.
const PARTS: usize = 64;
const LEAST: usize = 256;

/// Levels of the steps of slots.
pub(super) struct Levels {
    of_slot: Vec<u32>,
    /// Number of the slots of each level.
    counts: [usize; LEVELS],
    /// All slots of each level, and others that have had it.
    listed: Vec<Vec<usize>>,
    /// Levels that list a slot, as bits.
    listed_at: Vec<u64>,
}

impl Levels {
    /// Slots without steps.
    pub(super) fn none(slots: usize) -> Self {
        Self {
            of_slot: vec![NONE; slots],
            counts: [0; LEVELS],
            listed: vec![vec![]; LEVELS],
            listed_at: vec![0; slots],
        }
    }

    /// The level of a slot's step; none for a free slot.
    pub(super) fn of(&self, slot: usize) -> Option<u32> {
        Some(self.of_slot[slot]).filter(|&level| level != NONE)
    }

    /// Lets a slot have a step of this level.
    pub(super) fn set(&mut self, slot: usize, level: u32) {
        if self.of_slot[slot] == level {
            return;
        }
        self.free(slot);
        self.of_slot[slot] = level;
        self.counts[level as usize] += 1;
        let (bit, bits) = (1 << level, &mut self.listed_at[slot]);
        if *bits & bit == 0 {
            *bits |= bit;
            self.listed[level as usize].push(slot);
        }
    }

    /// Lets a slot be free.
    pub(super) fn free(&mut self, slot: usize) {
        let level = mem::replace(&mut self.of_slot[slot], NONE);
        if level != NONE {
            self.counts[level as usize] -= 1;
        }
    }

    /// Slots of these levels, in order.
    fn of_levels(&mut self, levels: Range<usize>) -> Vec<usize> {
        for level in levels.clone() {
            let (of_slot, listed_at) = (&self.of_slot, &mut self.listed_at);
            if self.listed[level].len() > self.counts[level] {
                self.listed[level].retain(|&slot| {
                    let has_level = of_slot[slot] == level as u32;
                    listed_at[slot] &= !(u64::from(!has_level) << level);
                    has_level
                });
            }
        }
        let mut slots = self.listed[levels].concat();
        slots.sort_unstable();
        slots
    }

    /// The next tick after this one at which steps end, and their slots in order; none if there is no slot with a step.
    pub(super) fn next(&mut self, now: u64) -> Option<(u64, Vec<usize>)> {
        let finest = self.counts.iter().rposition(|&count| count > 0)?;
        let length = SPAN >> finest;
        let tick = (now / length + 1) * length;
        let coarsest = coarsest_from(tick);
        let ending = coarsest as usize..finest + 1;
        let count: usize = self.counts[ending.clone()].iter().sum();
        let slots = match count < self.of_slot.len() / MANY {
            true => self.of_levels(ending),
            false => self.of_levels_from(coarsest),
        };
        Some((tick, slots))
    }

    /// Slots with steps of this level or finer ones, in order.
    fn of_levels_from(&self, coarsest: u32) -> Vec<usize> {
        let length = length_of_part(self.of_slot.len());
        let parts: Vec<&[u32]> = self.of_slot.chunks(length).collect();
        let of_part = |part: usize| {
            let levels = parts[part];
            // Without a branch, which would be hard to foresee.
            let (mut found, mut count) = (vec![0; levels.len()], 0);
            for (k, &level) in levels.iter().enumerate() {
                found[count] = part * length + k;
                count += usize::from((coarsest..NONE).contains(&level));
            }
            found.truncate(count);
            found
        };
        parallel::each(parts.len(), 1, of_part).concat()
    }
}

/// Slots of a part, if several threads share all slots.
pub(super) fn length_of_part(all: usize) -> usize {
    (all / PARTS).max(LEAST)
}

/// The places of numbers in a list, which is in order, that are in a part of all.
pub(super) fn places_of(part: Range<usize>, numbers: &[usize]) -> Range<usize> {
    let place = |limit| numbers.partition_point(|&number| number < limit);
    place(part.start)..place(part.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_level_end_with_all_finer_ones() {
        let mut levels = Levels::none(5);
        for (slot, level) in [(0, 3), (1, 1), (2, 3), (3, 2), (4, 2)] {
            levels.set(slot, level);
        }
        levels.set(2, 2);
        levels.free(3);
        assert_eq!((levels.of(3), levels.of(2)), (None, Some(2)));
        let eighth = SPAN >> 3;
        assert_eq!(levels.next(0), Some((eighth, vec![0])));
        assert_eq!(levels.next(eighth), Some((2 * eighth, vec![0, 2, 4])));
        levels.free(0);
        // A step that begins now has a whole length before it.
        assert_eq!(levels.next(2 * eighth), Some((4 * eighth, vec![1, 2, 4])));
        levels.set(1, 0);
        assert_eq!(levels.next(4 * eighth), Some((6 * eighth, vec![2, 4])));
        assert_eq!(levels.next(6 * eighth), Some((SPAN, vec![1, 2, 4])));
        [1, 2, 4].into_iter().for_each(|slot| levels.free(slot));
        assert_eq!(levels.next(0), None);
    }

    /// Of some all are looked at by several threads, and of others those of a level are sorted.
    #[test]
    fn slots_of_a_tick_are_in_order() {
        const SLOTS: usize = 3 * PARTS * LEAST / 2;
        let level = |slot: usize| match slot % 1000 {
            7 => 9,
            k => k as u32 % 3,
        };
        let mut levels = Levels::none(SLOTS);
        // Each has had another level.
        (0..SLOTS).for_each(|slot| levels.set(slot, 9));
        (0..SLOTS)
            .rev()
            .for_each(|slot| levels.set(slot, level(slot)));
        for (tick, coarsest) in [(SPAN >> 9, 9), (SPAN >> 2, 2), (SPAN >> 1, 1), (SPAN, 0)] {
            let expected = (0..SLOTS).filter(|&slot| level(slot) >= coarsest);
            assert_eq!(levels.next(tick - 1), Some((tick, expected.collect())));
        }
    }
}
