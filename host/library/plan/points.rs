//! Launches for fields at points.

use gpu_kernels::abi::Params;
use gpu_kernels::entries::{AT_POINTS, Entry, SUM_AT_POINTS, Work};
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::points::QuantityName;
use gpu_kernels::schedule::test_particles::room;

use super::{ELEMENTWISE_BLOCK, Launch, Limits, PlanError, one_dimensional};

/// Threads of a block.
const BLOCK: u32 = 128;

/// Blocks per multiprocessor, at least, if there are sources enough: of some eight that run at a time, so
/// that the last to run leave little of a GPU idle.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 512;

/// Points of a launch, at most: what bounds its memory and keeps all indices within 32 bits.
pub const MOST_POINTS: usize = 1 << 22;

/// The launches for some points.
#[derive(Clone, Copy, Debug)]
pub struct PointsPlan {
    /// Launch of the kernel that sums over the sources of a slice.
    pub launch: Launch,
    /// Scalars of this kernel, but for ε².
    pub params: Params,
    /// The kernel that adds the slices, its launch and its scalars; where there are several.
    pub sum: Option<(&'static Entry, Launch, Params)>,
}

/// The kernel of a quantity, for ε = 0 or ε > 0.
///
/// # Panics
/// If the precision is none of f32 and f64.
pub fn entry(quantity: QuantityName, precision: Precision, unsoftened: bool) -> &'static Entry {
    let computes = |entry: &&Entry| match entry.work {
        Work::AtPoints {
            quantity: computed,
            numerics,
            ..
        } => {
            (computed, numerics.precision, numerics.unsoftened) == (quantity, precision, unsoftened)
        }
        _ => false,
    };
    let entry = AT_POINTS.iter().find(computes);
    entry.expect("kernels for points are in f32 and f64")
}

/// Plans the launches of `entry` for 1 to [`MOST_POINTS`] points and at least one source.
///
/// # Errors
/// If there are more sources than a kernel can count, or the device refuses the launches.
///
/// # Panics
/// If there are none of either, or more points.
pub fn plan(
    entry: &'static Entry,
    points: usize,
    sources: usize,
    multiprocessors: u32,
    limits: &Limits,
) -> Result<PointsPlan, PlanError> {
    let Work::AtPoints { quantity, lane, .. } = entry.work else {
        unreachable!("`{}` is not for points", entry.symbol)
    };
    assert!((1..=MOST_POINTS).contains(&points) && sources > 0);
    let points = points as u32;
    super::stride(entry, sources)?;
    let sources = sources as u32; // fits, as the stride does
    let tile_bytes = quantity.tile() * entry.layout.tile_bytes;
    let over_points = Launch {
        shared_bytes: tile_bytes,
        ..one_dimensional(entry, points.div_ceil(lane), BLOCK, limits)?
    };
    let [blocks, ..] = over_points.grid;
    let wanted = multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    let wanted = wanted
        .div_ceil(blocks)
        .min(sources.div_ceil(quantity.tile()));
    // As many as have sources.
    let slices = sources.div_ceil(quantity.sources_of_a_slice(sources, wanted));
    let params = Params {
        n: points,
        stride: room(points),
        sources_a_thread: sources,
        partials: slices,
        ..Params::default()
    };
    let sums = points * quantity.sums();
    let sum = if slices > 1 {
        let launch = one_dimensional(&SUM_AT_POINTS, sums, ELEMENTWISE_BLOCK, limits)?;
        Some((&SUM_AT_POINTS, launch, Params { n: sums, ..params }))
    } else {
        None
    };
    Ok(PointsPlan {
        launch: Launch {
            grid: [blocks, slices, 1],
            ..over_points
        },
        params,
        sum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every source is in one slice, none of which is empty; every point has a thread; sums are counted in
    /// 32 bits.
    #[test]
    fn all_points_meet_all_sources() {
        let numbers = [1, 2, 31, 255, 256, 257, 1000, 4096, 1 << 20, MOST_POINTS];
        for entry in AT_POINTS {
            let Work::AtPoints { quantity, lane, .. } = entry.work else {
                panic!("`{}`", entry.symbol)
            };
            for (points, sources) in numbers.iter().flat_map(|&p| numbers.map(|s| (p, s))) {
                for multiprocessors in [1, 4, 132, 1000] {
                    let plan = plan(entry, points, sources, multiprocessors, &Limits::EVERYWHERE);
                    let plan = plan.expect("fits");
                    let [blocks, slices, 1] = plan.launch.grid else {
                        panic!("two axes")
                    };
                    assert!((blocks * BLOCK * lane) as usize >= points);
                    assert_eq!(slices, plan.params.partials);
                    let of_slice = quantity.sources_of_a_slice(sources as u32, slices);
                    assert!(of_slice.is_multiple_of(quantity.tile()));
                    assert!(of_slice * (slices - 1) < sources as u32);
                    assert!(u64::from(of_slice) * u64::from(slices) >= sources as u64);
                    let sums = u64::from(slices) * points as u64 * u64::from(quantity.sums());
                    assert!(sums < 1 << 32, "{points} {sources} {multiprocessors}");
                    assert_eq!(plan.sum.is_some(), slices > 1);
                }
            }
        }
    }
}
