//! A launch: its description, and its run from the first block to the last.

use super::context::{self, Context};
use super::fault::Fault;
use super::order::Order;
use super::panics;
use super::region::Region;
use super::scheduler::run_block;
use super::stacks::Stacks;

/// Most threads in a block, on every CUDA device.
const MAX_THREADS: u64 = 1024;
/// Most blocks along each axis of a grid.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Most threads along each axis of a block.
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Most dynamic shared memory of a block, on the devices that have most (compute capability 9.0).
pub(super) const MAX_SHARED: u32 = 227 * 1024;
/// Most static shared memory of a block, on every CUDA device.
pub(super) const MAX_STATIC_SHARED: usize = 48 * 1024;

/// Describes a launch.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The kernel's name, for faults.
    pub kernel: &'a str,
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Threads of a block along each axis.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Memory that the kernel may access.
    pub memory: &'a [Region<'a>],
    /// Order of execution: 0 is the natural order of blocks and threads; every other number is a
    /// permutation, which changes at every barrier. The same seed repeats the same run.
    pub seed: u64,
}

/// Runs `kernel` once for every thread of the launch. It calls the kernel proper with its
/// arguments, whose pointers are those of the launch's regions.
///
/// # Errors
/// The first [`Fault`]. Memory keeps what was written until then.
pub fn launch(config: &Launch<'_>, kernel: &dyn Fn()) -> Result<(), Fault> {
    check(config)?;
    panics::install_hook(context::in_kernel);
    let threads = config.block.iter().product::<u32>() as usize;
    let mut stacks =
        Stacks::borrow(threads, context::in_kernel()).map_err(|source| Fault::Stacks {
            kernel: config.kernel.to_owned(),
            threads,
            source,
        })?;

    let mut order = Order::new(config.seed);
    let blocks = config.grid.iter().copied().map(u64::from).product();
    let context = Context::new(config, order.stride(blocks), stacks.ends());
    for position in 0..blocks {
        context.start_block(position)?;
        run_block(&context, kernel, &mut stacks, &mut order)?;
    }
    Ok(())
}

fn check(config: &Launch<'_>) -> Result<(), Fault> {
    let kernel = || config.kernel.to_owned();
    let refuse = |reason| {
        Err(Fault::Geometry {
            kernel: kernel(),
            reason,
        })
    };
    for (what, size, limits) in [
        ("grid", config.grid, MAX_GRID),
        ("block", config.block, MAX_BLOCK),
    ] {
        for (axis, (size, limit)) in size.into_iter().zip(limits).enumerate() {
            if !(1..=limit).contains(&size) {
                return refuse(format!(
                    "{what} size {size} on axis {axis} is not in 1..={limit}"
                ));
            }
        }
    }
    let threads: u64 = config.block.iter().copied().map(u64::from).product();
    if threads > MAX_THREADS {
        return refuse(format!(
            "a block of {threads} threads is above {MAX_THREADS}"
        ));
    }
    if config.shared_bytes > MAX_SHARED {
        let bytes = config.shared_bytes;
        return refuse(format!(
            "{bytes} bytes of shared memory are above {MAX_SHARED}"
        ));
    }
    Ok(())
}
