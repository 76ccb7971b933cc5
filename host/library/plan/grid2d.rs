//! Plans of two-dimensional blocks: a thread adds some sources of a target, other kernels the partial
//! sums.

use cuda_driver::Columns;
use gpu_kernels::abi::Tiling;
use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::grid2d::MOST_SOURCES;
use gpu_kernels::schedule::reduce::TREE_TARGETS;
use gpu_kernels::schedule::{Reduction, SourcesIn};

use super::{
    Buffer, ELEMENTWISE_BLOCK, ForcePlan, Launch, Limits, Parts, PlanError, Step, one_dimensional,
    partner, stride,
};
use crate::variants::{Reducer, Split};

/// Partial sums, and their sum.
pub(super) fn plan(
    entry: &'static Entry,
    n: u32,
    threads: u32,
    split: Split,
    sources: SourcesIn,
    limits: &Limits,
) -> Result<ForcePlan, PlanError> {
    let kernel = entry.symbol;
    one_dimensional(entry, n, threads, limits)?;
    let Split { len, luf, reducer } = split;
    let fits = u64::from(len) * u64::from(luf) <= u64::from(MOST_SOURCES);
    if len == 0 || luf == 0 || !threads.is_multiple_of(len) || !fits {
        return Err(PlanError::Split {
            kernel,
            threads,
            len,
            luf,
            most: MOST_SOURCES,
        });
    }
    let columns = n.div_ceil(len * luf);
    let partials = columns * len;
    let stride = stride(entry, n as usize)?;
    let vectors = u64::from(stride) * u64::from(partials);
    let scalars = vectors * u64::from(entry.layout.vector_scalars);
    let most_columns = 65_535; // of any device's grid, along its second axis
    let countable = u32::try_from(scalars).is_ok() && columns <= most_columns;
    let Some(bytes) = usize::try_from(scalars * u64::from(entry.layout.precision.bytes()))
        .ok()
        .filter(|_| countable)
    else {
        return Err(PlanError::TooManyPartials {
            kernel,
            partials,
            n,
        });
    };
    let wid = threads / len;
    let shared_bytes = match sources {
        SourcesIn::Global => 0,
        SourcesIn::Shared | SourcesIn::SharedInterleaved => len * luf * entry.layout.tile_bytes,
    };
    if shared_bytes > limits.shared_bytes {
        return Err(PlanError::TooMuchShared {
            kernel,
            threads,
            bytes: u64::from(shared_bytes),
            most: limits.shared_bytes,
        });
    }
    let mut plan = ForcePlan {
        order: None,
        scratch: vec![(Buffer::partial, bytes)],
        steps: vec![Step::launch((
            entry,
            Launch {
                grid: [n.div_ceil(wid), columns, 1],
                block: [len, wid, 1],
                shared_bytes,
            },
        ))],
        split: Parts {
            sources_a_thread: luf,
            partials,
        },
        tiling: Tiling::default(),
    };
    let precision = entry.layout.precision.bytes();
    let mut add = |entry, launch| plan.steps.push(Step::launch((entry, launch)));
    let rows = n * entry.layout.vector_scalars;
    if matches!(
        reducer,
        Reducer::Library | Reducer::Kernel(Reduction::MatrixVector)
    ) {
        let ones = partner(entry, Work::Ones);
        let fill = one_dimensional(ones, partials, ELEMENTWISE_BLOCK, limits)?;
        add(ones, fill);
        plan.scratch
            .push((Buffer::ones, (partials * precision) as usize));
    }
    let Reducer::Kernel(reduction) = reducer else {
        // Room beyond n lies between the columns.
        let leading = stride * entry.layout.vector_scalars;
        let shape = Columns {
            rows,
            columns: partials,
            leading,
        };
        plan.steps.push(Step::Product { shape });
        return Ok(plan);
    };
    let reduce = partner(entry, Work::Reduce(reduction));
    match reduction {
        Reduction::Serial => add(
            reduce,
            one_dimensional(reduce, n, ELEMENTWISE_BLOCK, limits)?,
        ),
        Reduction::Tree => {
            let block = [TREE_TARGETS, ELEMENTWISE_BLOCK / TREE_TARGETS, 1];
            let launch = Launch {
                grid: [n.div_ceil(TREE_TARGETS), 1, 1],
                block,
                shared_bytes: 3 * ELEMENTWISE_BLOCK * precision,
            };
            add(reduce, launch);
        }
        Reduction::MatrixVector => add(
            reduce,
            one_dimensional(reduce, rows, ELEMENTWISE_BLOCK, limits)?,
        ),
    }
    Ok(plan)
}
