//! Loops of a kernel, and the instructions that one trip through a loop executes.
//!
//! The usual construction: basic blocks, dominators (Cooper, Harvey & Kennedy, "A Simple, Fast
//! Dominance Algorithm", 2001), and for each back edge — an edge to a block that dominates its
//! origin — the natural loop of Aho, Lam, Sethi & Ullman, "Compilers", §9.6.

use super::syntax::{Fault, Listing};
use std::collections::BTreeSet;
use std::ops::Range;

/// The basic blocks of a kernel, how control flows between them, and its loops.
#[derive(Debug)]
pub(super) struct Graph {
    /// Instructions of each block.
    pub(super) blocks: Vec<Range<usize>>,
    predecessors: Vec<Vec<usize>>,
    /// Reachable blocks in reverse postorder, and each block's place in it.
    order: Vec<usize>,
    rank: Vec<Option<usize>>,
    pub(super) loops: Vec<Loop>,
}

/// A natural loop: one header, all blocks from which the header is reached again.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) header: usize,
    pub(super) blocks: BTreeSet<usize>,
    /// Blocks that jump back to the header.
    latches: Vec<usize>,
    /// Number of loops that contain it, itself included.
    pub(super) depth: usize,
}

/// The dearest way through one trip of a loop.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Trip {
    /// Blocks on it, in order.
    pub(super) blocks: Vec<usize>,
    /// Interactions on the way that has fewest.
    pub(super) fewest: usize,
}

impl Graph {
    pub(super) fn of(listing: &Listing<'_>) -> Result<Self, Fault> {
        let Flow { blocks, successors } = Flow::of(listing)?;
        let mut predecessors = vec![vec![]; blocks.len()];
        for (block, next) in successors.iter().enumerate() {
            for successor in next {
                predecessors[*successor].push(block);
            }
        }
        let order = reverse_postorder(&successors);
        let mut rank = vec![None; blocks.len()];
        for (place, block) in order.iter().enumerate() {
            rank[*block] = Some(place);
        }
        let mut graph = Graph {
            blocks,
            predecessors,
            order,
            rank,
            loops: vec![],
        };
        graph.loops = graph.natural_loops();
        Ok(graph)
    }

    /// The smallest loop around each block.
    pub(super) fn innermost(&self, block: usize) -> Option<usize> {
        let around = (0..self.loops.len()).filter(|at| self.loops[*at].blocks.contains(&block));
        around.min_by_key(|at| self.loops[*at].blocks.len())
    }

    /// The way from a loop's header to one of its latches on which `cost` — (interactions,
    /// instructions) of a block — sums to the most, so that the two arms of an `if` are not
    /// added up. Inner loops are crossed once.
    pub(super) fn trip(&self, of: &Loop, cost: impl Fn(usize) -> (usize, usize)) -> Trip {
        struct Best {
            most: (usize, usize),
            from: Option<usize>,
            fewest: usize,
        }
        let mut best: Vec<Option<Best>> = self.blocks.iter().map(|_| None).collect();
        for &block in self.order.iter().filter(|block| of.blocks.contains(block)) {
            let (interactions, instructions) = cost(block);
            let mut here = Best {
                most: (0, 0),
                from: None,
                fewest: 0,
            };
            if block != of.header {
                let forward = |from: &&usize| self.rank[**from] < self.rank[block];
                let arrivals = self.predecessors[block].iter().filter(forward);
                let known = arrivals.filter_map(|from| Some((*from, best[*from].as_ref()?)));
                for (place, (from, way)) in known.enumerate() {
                    if place == 0 || way.most > here.most {
                        (here.most, here.from) = (way.most, Some(from));
                    }
                    here.fewest = if place == 0 {
                        way.fewest
                    } else {
                        here.fewest.min(way.fewest)
                    };
                }
            }
            here.most.0 += interactions;
            here.most.1 += instructions;
            here.fewest += interactions;
            best[block] = Some(here);
        }
        let ends = || {
            of.latches
                .iter()
                .filter_map(|latch| Some((*latch, best[*latch].as_ref()?)))
        };
        let mut blocks = vec![];
        let mut at = ends()
            .max_by_key(|(_, way)| way.most)
            .map(|(latch, _)| latch);
        while let Some(block) = at {
            blocks.push(block);
            at = best[block].as_ref().and_then(|way| way.from);
        }
        blocks.reverse();
        Trip {
            blocks,
            fewest: ends().map(|(_, way)| way.fewest).min().unwrap_or(0),
        }
    }

    fn natural_loops(&self) -> Vec<Loop> {
        let dominator = self.immediate_dominators();
        let dominates = |above: usize, mut block: usize| {
            while self.rank[block] > self.rank[above] {
                block = dominator[block];
            }
            block == above
        };
        let mut loops = vec![];
        for &header in &self.order {
            let returns = |from: &usize| self.rank[*from].is_some() && dominates(header, *from);
            let latches: Vec<usize> = self.predecessors[header]
                .iter()
                .copied()
                .filter(returns)
                .collect();
            if latches.is_empty() {
                continue;
            }
            let mut blocks = BTreeSet::from([header]);
            let mut pending = latches.clone();
            while let Some(block) = pending.pop() {
                if self.rank[block].is_some() && blocks.insert(block) {
                    pending.extend(&self.predecessors[block]);
                }
            }
            loops.push(Loop {
                header,
                blocks,
                latches,
                depth: 0,
            });
        }
        let depths: Vec<usize> = loops
            .iter()
            .map(|inner| {
                loops
                    .iter()
                    .filter(|outer| outer.blocks.contains(&inner.header))
                    .count()
            })
            .collect();
        loops
            .iter_mut()
            .zip(depths)
            .for_each(|(natural, depth)| natural.depth = depth);
        loops
    }

    /// The closest block through which every way to a block leads; its own for the first block.
    /// Entries of unreachable blocks are meaningless.
    fn immediate_dominators(&self) -> Vec<usize> {
        let Some(&root) = self.order.first() else {
            return vec![];
        };
        let mut dominator: Vec<Option<usize>> = vec![None; self.blocks.len()];
        dominator[root] = Some(root);
        let mut changed = true;
        while changed {
            changed = false;
            for &block in &self.order[1..] {
                let known = self.predecessors[block]
                    .iter()
                    .filter(|p| dominator[**p].is_some());
                let found = known.copied().reduce(|a, b| self.common(&dominator, a, b));
                changed |= found != dominator[block];
                dominator[block] = found;
            }
        }
        dominator
            .into_iter()
            .map(|block| block.unwrap_or(root))
            .collect()
    }

    fn common(&self, dominator: &[Option<usize>], mut a: usize, mut b: usize) -> usize {
        while a != b {
            let later = if self.rank[a] > self.rank[b] {
                &mut a
            } else {
                &mut b
            };
            *later = dominator[*later].expect("only blocks with a known dominator are compared");
        }
        a
    }
}

/// Basic blocks in the order of the text, and where control goes from each.
struct Flow {
    blocks: Vec<Range<usize>>,
    successors: Vec<Vec<usize>>,
}

impl Flow {
    fn of(listing: &Listing<'_>) -> Result<Self, Fault> {
        let count = listing.instructions.len();
        let mut jumps = Vec::with_capacity(count);
        let mut starts = BTreeSet::from([0]);
        for (at, instruction) in listing.instructions.iter().enumerate() {
            let targets = listing.targets(instruction)?;
            if matches!(instruction.base(), "bra" | "brx" | "ret" | "exit" | "trap") {
                starts.insert(at + 1);
                starts.extend(&targets);
                jumps.push(Some(targets));
            } else {
                jumps.push(None);
            }
        }
        let starts: Vec<usize> = starts.into_iter().filter(|start| *start < count).collect();
        let ends = starts.iter().skip(1).copied().chain([count]);
        let blocks: Vec<Range<usize>> = starts
            .iter()
            .zip(ends)
            .map(|(start, end)| *start..end)
            .collect();
        let block_at = |instruction: usize| starts.binary_search(&instruction).ok();
        let successors = blocks
            .iter()
            .map(|block| {
                let last = block.end - 1;
                let falls_through = jumps[last].is_none() || listing.instructions[last].predicated;
                let targets = jumps[last].iter().flatten().copied();
                let next = falls_through.then_some(block.end);
                let mut reached: Vec<usize> = targets.chain(next).filter_map(block_at).collect();
                reached.sort_unstable();
                reached.dedup();
                reached
            })
            .collect();
        Ok(Flow { blocks, successors })
    }
}

/// Iterative, since a kernel that is unrolled without bound must not exhaust the stack.
fn reverse_postorder(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut order = vec![];
    let mut seen = vec![false; successors.len()];
    let mut stack = vec![];
    if let Some(first) = seen.first_mut() {
        *first = true;
        stack.push((0, 0));
    }
    while let Some((block, taken)) = stack.pop() {
        match successors[block].get(taken) {
            Some(&next) => {
                stack.push((block, taken + 1));
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push((next, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(text: &str) -> Graph {
        Graph::of(&Listing::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn a_straight_kernel_has_no_loop() {
        let graph = graph("{ @%p1 bra END; add.f32 a, b, c; END: ret; }");
        assert_eq!(graph.blocks, [0..1, 1..2, 2..3]);
        assert!(graph.loops.is_empty());
    }

    #[test]
    fn empty_bodies_and_labels_at_the_end_are_legal() {
        assert!(graph("{ }").loops.is_empty());
        assert!(graph("{ bra END; END: }").loops.is_empty());
    }

    #[test]
    fn loops_nest() {
        let graph = graph(
            "{ mov a, b; OUTER: mov a, b; INNER: mov a, b; @%p1 bra INNER; \
             @%p2 bra OUTER; OTHER: mov a, b; @%p3 bra OTHER; ret; }",
        );
        let depths: Vec<usize> = graph.loops.iter().map(|natural| natural.depth).collect();
        assert_eq!(depths, [1, 2, 1]);
        assert_eq!(graph.loops[0].blocks, BTreeSet::from([1, 2, 3]));
        assert_eq!(graph.innermost(2), Some(1));
        assert_eq!(graph.innermost(3), Some(0));
        assert_eq!(graph.innermost(0), None);
    }

    #[test]
    fn two_ways_back_to_one_header_are_one_loop() {
        let graph = graph("{ TOP: mov a, b; @%p1 bra TOP; mov a, b; @%p2 bra TOP; ret; }");
        assert_eq!(graph.loops.len(), 1);
        assert_eq!(graph.loops[0].latches, [0, 1]);
    }

    #[test]
    fn unreachable_code_makes_no_loop() {
        let graph = graph("{ ret; DEAD: mov a, b; bra DEAD; }");
        assert!(graph.loops.is_empty());
    }

    #[test]
    fn a_trip_takes_the_dearer_arm_of_a_branch_only() {
        // Blocks: 0 header, 1 cheap arm, 2 dear arm, 3 latch, 4 end.
        let graph = graph(
            "{ TOP: @%p1 bra DEAR; mov a, b; bra JOIN; DEAR: mov a, b; JOIN: @%p2 bra TOP; ret; }",
        );
        let trip = graph.trip(&graph.loops[0], |block| ([1, 2, 5, 0, 0][block], 1));
        assert_eq!(
            trip,
            Trip {
                blocks: vec![0, 2, 3],
                fewest: 3
            }
        );
        // With equally many interactions the longer arm counts.
        let trip = graph.trip(&graph.loops[0], |block| (1, [1, 9, 5, 0, 0][block]));
        assert_eq!(
            trip,
            Trip {
                blocks: vec![0, 1, 3],
                fewest: 3
            }
        );
    }

    #[test]
    fn a_trip_crosses_inner_loops_once() {
        let graph = graph(
            "{ TOP: mov a, b; INNER: mov a, b; @%p1 bra INNER; mov a, b; @%p2 bra TOP; ret; }",
        );
        let trip = graph.trip(&graph.loops[0], |_| (1, 1));
        assert_eq!(
            trip,
            Trip {
                blocks: vec![0, 1, 2],
                fewest: 3
            }
        );
    }
}
