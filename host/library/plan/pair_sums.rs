//! Launches for sums over pairs of independent systems.

use std::ops::RangeInclusive;

use gpu_kernels::abi::{Params, Tiling};
use gpu_kernels::entries::{
    Entry, PAIR_SUMS, PAIR_SUMS_ONCE, SUM_FRAMES, SUM_STAGES, SumStage, Work,
};
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::pair_sums::{
    BY_SYSTEM_BYTES, DERIVATIVES, FRAME_NUMBERS, FRAMES_BYTES, NUMBERS, RESULTS, SCALARS, SumName,
    TILE, WIDE,
};

use super::{Buffer, ELEMENTWISE_BLOCK, Launch, Limits, PlanError, Sizes, WARP, one_dimensional};

/// Threads of a block of targets.
const BLOCK: u32 = 128;

/// Blocks per multiprocessor, at least, if there are sources enough: some eight run at the same time, so the last to run leave little of a GPU idle.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 64;

/// Tiles of a system from which on each pair is computed once, if a kernel does: fewer leave a GPU idle.
const ONCE_FROM: u32 = 32;

/// Bytes of partial sums of pairs that are computed once, at most, where there are tiles enough with them.
const SLAB_BYTES: usize = 2 << 30;

/// Tiles of a system: enough for few blocks to wait for the last ones, and few, because each has a partial sum of each
/// body.
const TILES: RangeInclusive<usize> = 96..=128;

/// Bodies of independent systems with as many bodies each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemsShape {
    /// Systems, at least one.
    pub systems: usize,
    /// Bodies of a system, at least one.
    pub bodies: usize,
}

impl SystemsShape {
    /// Bodies of all systems.
    pub fn total(self) -> usize {
        self.systems * self.bodies
    }
}

/// A way to go through the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// The fastest for the number of bodies.
    Fastest,
    /// Each target by itself.
    OneSided,
    /// Each pair once, for both its bodies; where there is no such kernel, each target by itself.
    Once,
}

/// The launches of a sum.
#[derive(Clone, Copy, Debug)]
pub struct SumPlan {
    /// Kernel, launch and scalars of the frames.
    pub frames: KernelLaunch,
    /// Of the packed bodies.
    pub pack: KernelLaunch,
    /// Of the sums over parts of the sources.
    pub sums: KernelLaunch,
    /// Of the sums over all parts.
    pub total: KernelLaunch,
}

/// A kernel, its launch and its scalars.
#[derive(Clone, Copy, Debug)]
pub struct KernelLaunch {
    /// The kernel.
    pub entry: &'static Entry,
    /// Launch.
    pub launch: Launch,
    /// Scalars.
    pub params: Params,
}

impl SumPlan {
    /// Partial sums, numbers.
    pub fn partial_sums(&self) -> usize {
        let Params {
            partials,
            stride,
            sources_a_thread,
            ..
        } = self.total.params;
        partials as usize * stride as usize * sources_a_thread as usize
    }
}

/// The kernel of a stage, for arrays of this precision where there are several.
///
/// # Panics
/// If the precision is none of f32 and f64.
pub fn stage(stage: SumStage, precision: Precision) -> &'static Entry {
    let computes =
        |entry: &&Entry| entry.work == Work::SumStage(stage) && entry.layout.precision == precision;
    let entry = SUM_STAGES.iter().chain(SUM_FRAMES).find(computes);
    entry.expect("stages are in f32 and f64")
}

fn sum_of(
    kernels: &'static [Entry],
    name: SumName,
    precision: Precision,
) -> Option<(&'static Entry, u32)> {
    let computes = |entry: &'static Entry| match entry.work {
        Work::PairSum {
            name: computed,
            numerics,
            lane,
            ..
        } if (computed, numerics.precision) == (name, precision) => Some((entry, lane)),
        _ => None,
    };
    kernels.iter().find_map(computes)
}

/// The kernel that sums for each target over a part of the sources.
fn one_sided(name: SumName, precision: Precision) -> (&'static Entry, u32) {
    let found = sum_of(PAIR_SUMS, name, precision);
    found.expect("sums over pairs are in f32 and f64")
}

/// Plans a stage with a thread for each of `rows`.
///
/// # Errors
/// If the device refuses the launch.
pub fn elementwise(
    entry: &'static Entry,
    rows: u32,
    params: Params,
    limits: &Limits,
) -> Result<KernelLaunch, PlanError> {
    Ok(KernelLaunch {
        entry,
        launch: one_dimensional(entry, rows, ELEMENTWISE_BLOCK, limits)?,
        params,
    })
}

/// Plans a stage with a block for each system.
pub fn by_system(of: SumStage, params: Params) -> KernelLaunch {
    KernelLaunch {
        entry: stage(of, Precision::F64),
        launch: Launch {
            grid: [params.stride / params.n, 1, 1],
            block: [WIDE, 1, 1],
            shared_bytes: BY_SYSTEM_BYTES,
        },
        params,
    }
}

/// Scalars that all launches for these bodies have.
///
/// # Errors
/// If there are more bodies than kernels can count.
pub fn params(shape: SystemsShape) -> Result<Params, PlanError> {
    let (entry, _) = one_sided(SumName::Force, Precision::F64);
    let most = u32::MAX / NUMBERS;
    match u32::try_from(shape.total()) {
        Ok(total) if total <= most => Ok(Params {
            n: shape.bodies as u32,
            stride: total,
            ..Params::default()
        }),
        _ => Err(PlanError::TooManyBodies {
            kernel: entry.symbol,
            n: shape.total(),
            most,
        }),
    }
}

/// Buffers for bodies of this shape, without [partial sums](Buffer::sums).
pub fn buffers(shape: SystemsShape, pairs: Precision) -> Sizes {
    let planes = |count: u32| count as usize * shape.total() * size_of::<f64>();
    let of_systems = |count: u32| count as usize * shape.systems * size_of::<f64>();
    let rows = 4 * shape.total() * pairs.bytes() as usize;
    vec![
        (Buffer::planes, planes(NUMBERS)),
        (Buffer::velocities, planes(3)),
        (Buffer::derivatives, planes(DERIVATIVES)),
        (Buffer::results, planes(RESULTS)),
        (Buffer::scalars, of_systems(SCALARS)),
        (Buffer::frames, of_systems(FRAME_NUMBERS)),
        (Buffer::bodies, rows),
        (Buffer::more, rows),
        (Buffer::by_system, of_systems(1)),
        (Buffer::array, planes(3)), // on its way
    ]
}

/// Plans a sum with pairs in this precision.
///
/// # Errors
/// If there are more bodies than kernels can count, or the device refuses the launches.
///
/// # Panics
/// If there are no bodies, or the precision is none of f32 and f64.
pub fn plan(
    name: SumName,
    shape: SystemsShape,
    precision: Precision,
    way: Sweep,
    multiprocessors: u32,
    limits: &Limits,
) -> Result<SumPlan, PlanError> {
    assert!(shape.total() > 0, "there are bodies");
    let params = params(shape)?;
    let Params { n, stride, .. } = params;
    let frames = KernelLaunch {
        entry: stage(SumStage::Frames(name), Precision::F64),
        launch: Launch {
            grid: [shape.systems as u32, 1, 1],
            block: [WIDE, 1, 1],
            shared_bytes: FRAMES_BYTES,
        },
        params,
    };
    let of_pack = Params {
        partials: name.numbers(),
        ..params
    };
    let pack = elementwise(stage(SumStage::Pack, precision), stride, of_pack, limits)?;
    let sums = match sum_of(PAIR_SUMS_ONCE, name, precision) {
        Some((_, lane)) if way == Sweep::Fastest && n < ONCE_FROM * BLOCK * lane => None,
        Some(kernel) if way != Sweep::OneSided => once(kernel, name, shape, params),
        _ => None,
    };
    let sums = match sums {
        Some(sums) => sums,
        None => in_parts(name, precision, shape, params, multiprocessors, limits)?,
    };
    let of_total = Params {
        partials: sums.params.partials,
        sources_a_thread: name.components(),
        ..params
    };
    let total = stage(SumStage::Total, Precision::F64);
    let tiling = sums.params.tiling;
    Ok(SumPlan {
        frames: KernelLaunch {
            params: Params { tiling, ..params },
            ..frames
        },
        pack,
        sums,
        total: elementwise(total, stride, of_total, limits)?,
    })
}

/// Plans sums of each pair once, if their partial sums are counted in 32 bits, and the systems by the grid.
fn once(
    (entry, lane): (&'static Entry, u32),
    name: SumName,
    shape: SystemsShape,
    params: Params,
) -> Option<KernelLaunch> {
    // Of the largest sum, so that forces have the tiles of their derivatives, and are rounded alike.
    let of_tile = shape.total() * RESULTS as usize;
    let most = SLAB_BYTES / size_of::<f64>() / of_tile;
    let wanted = most.clamp(*TILES.start(), *TILES.end()) as u32;
    let side = params.n.div_ceil(wanted).next_multiple_of(BLOCK * lane);
    let tiling = Tiling { side, parts: 1 };
    let tiles = tiling.tiles(params.n);
    if tiles as usize * of_tile >= 1 << 32 || shape.systems > u16::MAX.into() {
        return None;
    }
    let rows = 2 * 2 * entry.layout.tile_bytes;
    let sums = BLOCK / WARP * name.reactions() * entry.layout.precision.bytes();
    Some(KernelLaunch {
        entry,
        launch: Launch {
            grid: [tiling.blocks(params.n), shape.systems as u32, 1],
            block: [BLOCK, 1, 1],
            shared_bytes: BLOCK * (rows + sums),
        },
        params: Params {
            partials: tiles,
            tiling,
            ..params
        },
    })
}

/// Plans sums for each target over parts of the sources.
fn in_parts(
    name: SumName,
    precision: Precision,
    shape: SystemsShape,
    params: Params,
    multiprocessors: u32,
    limits: &Limits,
) -> Result<KernelLaunch, PlanError> {
    let Params { n, stride, .. } = params;
    let (entry, lane) = one_sided(name, precision);
    let targets = one_dimensional(entry, n.div_ceil(lane), BLOCK, limits)?;
    let blocks = targets.grid[0] * shape.systems as u32;
    let tiles = n.div_ceil(TILE);
    let wanted = (multiprocessors * BLOCKS_PER_MULTIPROCESSOR).div_ceil(blocks);
    // All partial sums are counted in 32 bits.
    let most = u32::MAX / stride / name.components();
    let wanted = wanted.min(tiles).min(most).max(1);
    // As many as have sources.
    let parts = tiles.div_ceil(tiles.div_ceil(wanted));
    let rows = if name.numbers() > 4 { 2 } else { 1 };
    Ok(KernelLaunch {
        entry,
        launch: Launch {
            grid: [blocks, parts, 1],
            shared_bytes: rows * TILE * entry.layout.tile_bytes,
            ..targets
        },
        params: Params {
            partials: parts,
            ..params
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every target has a thread, every source is in one part, none of which is empty, and sums are counted in 32
    /// bits.
    #[test]
    fn all_bodies_meet_all_others() {
        let precisions = [Precision::F32, Precision::F64];
        for (name, precision) in SumName::ALL
            .iter()
            .flat_map(|&n| precisions.map(|p| (n, p)))
        {
            for bodies in [1, 2, 127, 128, 129, 1000, 4096, 16_384, 100_000, 1 << 20] {
                for systems in [1, 3, 200] {
                    let shape = SystemsShape { systems, bodies };
                    let ways = [Sweep::Fastest, Sweep::OneSided, Sweep::Once];
                    let all = ways
                        .iter()
                        .flat_map(|&way| [(way, 1), (way, 4), (way, 132)]);
                    for (way, multiprocessors) in all {
                        let limits = &Limits::EVERYWHERE;
                        let plan = plan(name, shape, precision, way, multiprocessors, limits);
                        let plan = plan.expect("fits");
                        assert!(plan.sums.launch.shared_bytes <= limits.shared_bytes);
                        let [blocks, parts, 1] = plan.sums.launch.grid else {
                            panic!("two axes")
                        };
                        assert!(plan.partial_sums() < 1 << 32);
                        let Work::PairSum { once, lane, .. } = plan.sums.entry.work else {
                            panic!("no sum")
                        };
                        if once {
                            let Params {
                                tiling, partials, ..
                            } = plan.sums.params;
                            assert_eq!(partials, tiling.tiles(bodies as u32));
                            assert!(tiling.side.is_multiple_of(BLOCK * lane));
                            assert_eq!(blocks, partials * (partials + 1) / 2);
                            assert_eq!(parts as usize, systems);
                            continue;
                        }
                        let of_system = bodies.div_ceil((BLOCK * lane) as usize);
                        assert_eq!(blocks as usize, systems * of_system);
                        assert_eq!(parts, plan.sums.params.partials);
                        let of_part = (bodies as u32).div_ceil(TILE).div_ceil(parts) * TILE;
                        assert!(of_part * (parts - 1) < bodies as u32);
                        assert!(u64::from(of_part) * u64::from(parts) >= bodies as u64);
                    }
                }
            }
        }
    }
}
