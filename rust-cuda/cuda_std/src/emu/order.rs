//! The order in which blocks, warps and lanes take their turns.

/// A stream of permutations that depends on the seed alone. Seed 0 leaves everything in its
/// natural order.
pub(super) struct Order {
    seed: u64,
    state: u64,
}

impl Order {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// Permutes `items`, differently at every call.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        if self.seed == 0 {
            return;
        }
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// A permutation of `0..count` that needs no table.
    pub(super) fn stride(&mut self, count: u64) -> Stride {
        if self.seed == 0 || count < 2 {
            return Stride {
                count,
                step: 1,
                start: 0,
            };
        }
        let mut step = 1 + self.below(count - 1);
        while greatest_common_divisor(step, count) != 1 {
            step -= 1; // ends at 1, which is prime to everything
        }
        Stride {
            count,
            step,
            start: self.below(count),
        }
    }

    /// A number below `bound`; the bias of at most `bound`/2⁶⁴ does not matter here.
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64 (Steele, Lea & Flood 2014).
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(bound)) >> 64) as u64
    }
}

/// Walks `0..count` by a step that is prime to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    count: u64,
    step: u64,
    start: u64,
}

impl Stride {
    /// Item at `position`, which must be below the count.
    pub(super) fn at(self, position: u64) -> u64 {
        let walked = u128::from(position) * u128::from(self.step) + u128::from(self.start);
        (walked % u128::from(self.count)) as u64
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn every_item_has_one_turn() {
        for seed in 0..5 {
            for count in 1..40 {
                let mut order = Order::new(seed);
                let stride = order.stride(count);
                let mut walked: Vec<u64> = (0..count).map(|position| stride.at(position)).collect();
                let mut shuffled: Vec<u64> = (0..count).collect();
                order.shuffle(&mut shuffled);
                for turns in [&mut walked, &mut shuffled] {
                    if seed == 0 {
                        assert!(turns.is_sorted());
                    }
                    turns.sort_unstable();
                    assert!(
                        turns.iter().copied().eq(0..count),
                        "seed {seed}, count {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn seeds_and_calls_differ() {
        let shuffled = |order: &mut Order| {
            let mut items: Vec<u32> = (0..32).collect();
            order.shuffle(&mut items);
            items
        };
        let mut order = Order::new(1);
        let first = shuffled(&mut order);
        assert_ne!(first, shuffled(&mut order));
        assert_ne!(first, shuffled(&mut Order::new(2)));
        assert_eq!(first, shuffled(&mut Order::new(1)));
    }
}
