//! The choices that a variant makes, in words.

use gpu_kernels::entries::{Entry, Scalars};
use gpu_kernels::interaction::Formula;
use gpu_kernels::layout::LayoutName;
use gpu_kernels::schedule::symmetric::Order;
use gpu_kernels::schedule::{Reduction, ScheduleName, SourcesIn, Stepping};

use allpairs::variants::Reducer;
use allpairs::variants::{
    Build, Bus, ForceWork, Gpus, Method, Positions, Queues, SystemsPath, Transfers, Variant,
    force_work,
};
use allpairs::variants::{PairsName, RootName, Threads};

use crate::studies::catalogue;

/// A choice that a variant makes, for tables and for comparing variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the choice.
    pub axis: &'static str,
    /// Value chosen.
    pub value: String,
}

/// All choices that a variant makes, in the same order for all variants.
pub fn choices(variant: &Variant) -> Vec<Choice> {
    let mut choices = vec![];
    let mut add = |axis, value: &dyn ToString| {
        choices.push(Choice {
            axis,
            value: value.to_string(),
        });
    };
    match variant.method {
        Method::Reference => add("path", &"reference"),
        Method::Cpu(path) => {
            add("path", &"cpu");
            add("precision", &path.precision.name());
            add(
                "1/√",
                match path.root {
                    RootName::Exact => &"exact",
                    RootName::Refined => &"refined estimate",
                    RootName::Estimated => &"estimate",
                },
            );
            add(
                "each pair",
                match path.pairs {
                    PairsName::Twice => &"twice",
                    PairsName::Once => &"once",
                    PairsName::ByNumber => &"once or twice, by N",
                },
            );
            add(
                "threads",
                match path.threads {
                    Threads::All => &"all",
                    Threads::One => &"1",
                },
            );
        }
        Method::Kernel {
            build,
            block,
            positions,
            split,
            fitted,
            by_masses,
            ..
        } => {
            let entry = variant.any_force();
            let ForceWork {
                schedule,
                formula,
                numerics,
                unroll,
                lane,
                order,
                max_registers,
            } = force_work(entry);
            add("path", &"kernel");
            add(
                "schedule",
                match schedule {
                    ScheduleName::Direct => &"direct",
                    ScheduleName::Tiled => &"tiled",
                    ScheduleName::TestParticles => &"tiled, with sources apart",
                    ScheduleName::TiledJerks => &"tiled, with jerks",
                    ScheduleName::Guarded => &"tiled, each slot tested",
                    ScheduleName::Hybrid => &"tiled, and direct for the remainder",
                    ScheduleName::Grid2d { sources } => match sources {
                        SourcesIn::Global => &"2-D blocks",
                        SourcesIn::Shared => &"2-D blocks, shared sources",
                        SourcesIn::SharedInterleaved => {
                            &"2-D blocks, shared sources without bank conflicts"
                        }
                    },
                    ScheduleName::OneThread => &"one thread",
                    ScheduleName::TwoLoops => &"two loops, j < i and j > i",
                    ScheduleName::Symmetric => &"each pair once",
                    ScheduleName::Tensor => &"each pair once, on tensor cores",
                    ScheduleName::Separated => &"each pair once, far ones on tensor cores",
                    ScheduleName::Systems { .. } => unreachable!("a method of its own"),
                },
            );
            add("layout", &layout(entry));
            add("storage", &storage(entry));
            add("precision", &numerics.precision.name());
            let shape = |value: Option<u32>| match value {
                _ if !fitted.is_empty() => "by N".to_owned(),
                Some(number) => number.to_string(),
                None => "all".to_owned(),
            };
            add("threads a target", &shape(Some(split.map_or(1, |s| s.len))));
            add("sources a thread", &shape(split.map(|s| s.luf)));
            add(
                "reduction",
                match split.map(|s| s.reducer) {
                    None => &"none",
                    Some(Reducer::Kernel(Reduction::Serial)) => &"serial",
                    Some(Reducer::Kernel(Reduction::MatrixVector)) => &"matrix × vector of ones",
                    Some(Reducer::Kernel(Reduction::Tree)) => &"tree in shared memory",
                    Some(Reducer::Library) => &"matrix × vector of ones, by cuBLAS",
                },
            );
            add(
                "formula",
                match formula {
                    Formula::Powers => &"powers of 1/√",
                    Formula::Divisions => &"divisions",
                    Formula::Forces => &"forces",
                },
            );
            add(
                "multiply–add",
                if numerics.fused {
                    &"fused"
                } else {
                    &"separate"
                },
            );
            add(
                "a body with itself",
                if numerics.skips_self {
                    &"tested for"
                } else {
                    &"harmless"
                },
            );
            add(
                "parameters",
                match entry.scalars {
                    Scalars::Argument => &"arguments",
                    Scalars::Constant => &"constant memory",
                },
            );
            add(
                "masses",
                if by_masses {
                    &"equal, comparable and any others apart"
                } else {
                    &"any"
                },
            );
            add(
                "positions",
                match positions {
                    Positions::Device => &"device",
                    Positions::Host(_) => &"host",
                },
            );
            add(
                "bus",
                match positions {
                    Positions::Device | Positions::Host(Bus::Pageable) => {
                        &"copies, pageable memory"
                    }
                    Positions::Host(Bus::PageLocked) => &"copies, page-locked memory",
                    Positions::Host(Bus::Mapped) => &"no copies, mapped memory",
                },
            );
            add(
                "1/√",
                if numerics.approximate {
                    &"approximate"
                } else {
                    &"exact"
                },
            );
            add("unroll", &unroll);
            add("targets a thread", &lane);
            add(
                "order of additions",
                match order {
                    Order::Fixed => &"fixed",
                    Order::Any => &"any",
                },
            );
            add(
                "registers",
                &max_registers
                    .map_or_else(|| "as needed".to_owned(), |most| format!("{most} at most")),
            );
            add(
                "denormals",
                match build {
                    Build::Precise => &"kept",
                    Build::Ftz => &"flushed",
                },
            );
            add("block", &shape(Some(block)));
        }
        Method::Systems(path) => many(variant.any_force(), path, &mut add),
    }
    choices
}

/// Choices that differ from the predecessor's: `layout: float4`. Empty without one, or where it is
/// of another kind.
pub fn differences(variant: &Variant) -> Vec<Choice> {
    let Some(predecessor) = variant.predecessor else {
        return vec![];
    };
    let before = catalogue()
        .find(predecessor)
        .expect("predecessors are listed");
    let before = choices(before);
    let mut after = choices(variant);
    if after.len() != before.len() {
        return vec![];
    }
    after.retain(|choice| !before.contains(choice));
    after
}

/// The choices of many systems.
fn many(entry: &Entry, path: SystemsPath, add: &mut impl FnMut(&'static str, &dyn ToString)) {
    let ForceWork {
        schedule: ScheduleName::Systems { stepping, .. },
        numerics,
        unroll,
        lane,
        ..
    } = force_work(entry)
    else {
        unreachable!("`{}` computes one system", entry.symbol)
    };
    add("path", &"many systems");
    add(
        "steps",
        match stepping {
            Stepping::All => &"all in one kernel, one block a system",
            Stepping::Kick => &"two kernels a step, several blocks a system",
            Stepping::Fused => &"one kernel a step, from buffer to buffer",
            Stepping::Accelerate => &"two kernels a step, each pair once",
            Stepping::InBlock => &"all in one kernel, one block a system, each pair once",
            Stepping::ByWarps => &"one kernel a step, from buffer to buffer, a warp for each body",
        },
    );
    add("layout", &layout(entry));
    add(
        "sources",
        &match (stepping, path.tile) {
            (Stepping::InBlock, _) => "all bodies in shared memory".to_owned(),
            (Stepping::Accelerate, _) => format!("tiles of {}", path.block * lane),
            (_, Some(tile)) => format!("tiles of {tile}"),
            (_, None) => "global memory".to_owned(),
        },
    );
    add(
        "loads of sources",
        if entry.layout.read_only {
            &"read-only"
        } else {
            &"ordinary"
        },
    );
    add("precision", &numerics.precision.name());
    add(
        "multiply–add",
        if numerics.fused {
            &"fused"
        } else {
            &"separate"
        },
    );
    add(
        "1/√",
        if numerics.approximate {
            &"approximate"
        } else {
            &"exact"
        },
    );
    add("unroll", &unroll);
    add(
        "masses",
        if path.by_masses {
            &"equal, comparable and any others apart"
        } else {
            &"any"
        },
    );
    add(
        "denormals",
        match path.build {
            Build::Precise => &"kept",
            Build::Ftz => &"flushed",
        },
    );
    add("block", &path.block);
    add(
        "streams",
        &match path.queues {
            Queues::Together => "one, for all systems".to_owned(),
            Queues::UpTo(streams) | Queues::Exactly(streams) => streams.to_string(),
        },
    );
    add(
        "transfers",
        match path.transfers {
            Transfers::Apart => &"all at once",
            Transfers::DepthFirst => &"page-locked, depth first",
            Transfers::BreadthFirst => &"page-locked, breadth first",
        },
    );
    add(
        "GPUs",
        match path.gpus {
            Gpus::One => &"one",
            Gpus::All => &"all",
        },
    );
}

fn layout(entry: &Entry) -> &'static str {
    match entry.layout.name {
        LayoutName::Aos => "array of structures",
        LayoutName::Soa => "structure of arrays",
        LayoutName::Float3 => "float3",
        LayoutName::Float4 => "float4",
    }
}

fn storage(entry: &Entry) -> &'static str {
    if entry.layout.stored == entry.layout.precision {
        "as computed"
    } else {
        entry.layout.stored.name()
    }
}

#[cfg(test)]
mod tests;
