//! Plans of the schedule that takes each pair once: how its tiles are chosen, and where partial sums
//! wait.
//!
//! A choice here depends on the number of bodies and the kernel alone, never on the GPU, so that
//! sums whose order is fixed are the same everywhere.

use gpu_kernels::abi::Tiling;
use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::ScheduleName;
use gpu_kernels::schedule::symmetric::Order;

use super::{Buffer, ELEMENTWISE_BLOCK, ForcePlan, Launch, Limits, Parts, PlanError, Step};

/// Slabs at most: a body's partial sums take 2 KiB in single precision and 4 KiB in double.
const MOST_SLABS: u32 = 128;

/// Tiles at most where partial sums need no slabs.
const MOST_TILES: u32 = 256;

/// Blocks that there are at least, if the bodies allow: a few for each multiprocessor of the
/// largest GPUs.
const ENOUGH_BLOCKS: u32 = 2048;

/// Blocks that there are at least, as long as each fetches sources several times: so many that a
/// last wave which fills a GPU by half costs little.
const BALANCED_BLOCKS: u32 = 8192;

const fn most_tiles(order: Order) -> u32 {
    match order {
        Order::Fixed => MOST_SLABS,
        Order::Any => MOST_TILES,
    }
}

/// Tiles for `n` bodies and blocks of `threads` with `lane` targets each.
fn tiling(n: u32, threads: u32, lane: u32, order: Order) -> Tiling {
    let most = most_tiles(order);
    let rows = threads * lane;
    let mut tiling = Tiling {
        side: n.div_ceil(most).next_multiple_of(rows),
        parts: 1,
    };
    loop {
        let fetches = tiling.side / tiling.parts / threads;
        let wanted = match tiling.blocks(n) {
            ..ENOUGH_BLOCKS => fetches.is_multiple_of(2),
            ENOUGH_BLOCKS..BALANCED_BLOCKS => fetches.is_multiple_of(2) && fetches >= 8,
            _ => false,
        };
        if !wanted || 2 * tiling.slabs(n) > most {
            return tiling;
        }
        tiling.parts *= 2;
    }
}

/// Tiles for systems of `n` bodies, whose blocks are many as the systems are: the same for any number
/// of systems, so that it does not change the order of sums.
pub(super) fn tiling_of_systems(entry: &Entry, n: u32, threads: u32) -> Tiling {
    let (lane, order) = lane_and_order(entry);
    Tiling {
        side: n
            .div_ceil(most_tiles(order))
            .next_multiple_of(threads * lane),
        parts: 1,
    }
}

/// The longest chain of additions that a pair's force goes through, in a kernel of the schedule.
///
/// A target adds a chunk's sources in a thread, a source adds a warp's targets from lane to lane;
/// then come the warps, the chunks or rows of a tile, and the tiles, or their parts.
pub fn additions(entry: &Entry, n: usize, threads: u32) -> usize {
    let (lane, order) = lane_and_order(entry);
    let Ok(n) = u32::try_from(n) else {
        return n; // which no plan allows
    };
    let n = n.max(1);
    let tiling = match entry.work {
        Work::Force {
            schedule: ScheduleName::Systems { .. },
            ..
        } => tiling_of_systems(entry, n, threads),
        _ => tiling(n, threads, lane, order),
    };
    let rows = threads * lane;
    (rows.min(n) + threads / super::WARP + tiling.side / rows + tiling.slabs(n)) as usize
}

fn lane_and_order(entry: &Entry) -> (u32, Order) {
    match entry.work {
        Work::Force { lane, order, .. } => (lane, order),
        _ => unreachable!("`{}` is no force", entry.symbol),
    }
}

/// The launches.
pub(super) fn plan(
    entry: &'static Entry,
    n: u32,
    threads: u32,
    limits: &Limits,
) -> Result<ForcePlan, PlanError> {
    let (lane, order) = lane_and_order(entry);
    let one_a_body = super::one_dimensional(entry, n, threads, limits)?;
    let tiling = tiling(n, threads, lane, order);
    let launch = Launch {
        grid: [tiling.blocks(n), 1, 1],
        ..one_a_body
    };
    let pairs = Step::launch((entry, launch));
    if order == Order::Any {
        return Ok(ForcePlan {
            order: None,
            scratch: vec![],
            split: Parts::default(),
            tiling,
            steps: vec![Step::Zero(Buffer::acceleration), pairs],
        });
    }
    let gather = super::partner(entry, Work::Gather);
    let vector_bytes = entry.layout.vector_scalars * entry.layout.vectors.bytes();
    let slab_bytes = super::stride(entry, n as usize)? as usize * vector_bytes as usize;
    Ok(ForcePlan {
        order: None,
        scratch: vec![(Buffer::slabs, slab_bytes * tiling.slabs(n) as usize)],
        split: Parts::default(),
        tiling,
        steps: vec![
            pairs,
            Step::launch((
                gather,
                super::one_dimensional(gather, n, ELEMENTWISE_BLOCK, limits)?,
            )),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::schedule::symmetric::TilePair;
    use std::ops::Range;

    /// Threads per block and targets per thread, small and as offered.
    const GEOMETRIES: [(u32, u32); 8] = [
        (32, 1),
        (32, 2),
        (32, 4),
        (64, 8),
        (128, 4),
        (128, 8),
        (256, 1),
        (256, 8),
    ];

    /// Targets and sources of each block.
    fn shares(tiling: Tiling, n: u32) -> impl Iterator<Item = (bool, [Range<u32>; 2])> {
        let part_side = tiling.side / tiling.parts;
        (0..tiling.blocks(n)).map(move |block| {
            let pair = TilePair::of_block(block, tiling.tiles(n), tiling.parts);
            let bodies = |first: u32, count: u32| first.min(n)..(first + count).min(n);
            let targets = bodies(pair.targets * tiling.side, tiling.side);
            let first = pair.sources * tiling.side + pair.part * part_side;
            let sources = bodies(first, part_side);
            (pair.targets == pair.sources, [targets, sources])
        })
    }

    #[test]
    fn every_pair_is_taken_once() {
        for n in 1..=300 {
            for (threads, lane) in GEOMETRIES {
                for order in [Order::Fixed, Order::Any] {
                    let tiling = tiling(n, threads, lane, order);
                    let mut times = vec![0_u8; (n * n) as usize];
                    for (one_sided, [targets, sources]) in shares(tiling, n) {
                        for i in targets {
                            for j in sources.clone() {
                                times[(i * n + j) as usize] += 1;
                                if !one_sided {
                                    times[(j * n + i) as usize] += 1;
                                }
                            }
                        }
                    }
                    assert!(times.iter().all(|&t| t == 1), "{n} bodies, {tiling:?}");
                }
            }
        }
    }

    /// As many interactions as there are, in tilings that keep to what kernels and memory ask for.
    #[test]
    fn large_systems_are_shared_out() {
        for n in [
            1_000,
            4_096,
            16_385,
            65_536,
            262_145,
            1_048_576,
            100_000_007,
        ] {
            for (threads, lane) in GEOMETRIES {
                for order in [Order::Fixed, Order::Any] {
                    let tiling = tiling(n, threads, lane, order);
                    assert!(tiling.side.is_multiple_of(threads * lane));
                    assert!(tiling.side.is_multiple_of(threads * tiling.parts));
                    let most = if order == Order::Fixed { 128 } else { 256 };
                    assert!(tiling.slabs(n) <= most, "{n} bodies, {tiling:?}");
                    let work = |(one_sided, ranges): (bool, [Range<u32>; 2])| {
                        let [targets, sources] = ranges.map(|range| range.len() as u64);
                        targets * sources * if one_sided { 1 } else { 2 }
                    };
                    let total: u64 = shares(tiling, n).map(work).sum();
                    assert_eq!(total, u64::from(n) * u64::from(n), "{tiling:?}");
                }
            }
        }
    }
}
