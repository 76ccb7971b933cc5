//! One force on several devices: which of its blocks each carries out, and how their results become the
//! accelerations of all bodies.

use std::ops::Range;

use gpu_kernels::abi::{Params, Share, Tiling};
use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::layout::LayoutName;
use gpu_kernels::schedule::symmetric::Order;
use gpu_kernels::schedule::{Reduction, ScheduleName};

use super::{ELEMENTWISE_BLOCK, ForcePlan, Launch, Limits, PlanError, Recipe, Step, WARP, total};

/// Way in which devices combine their results to the accelerations of all bodies. In the end all
/// devices have the same bits.
#[derive(Clone, Debug)]
pub enum Union {
    /// Each device computes its own bodies, these, and sends them to the others. The bits are the same
    /// as on one device.
    Bodies(Vec<Range<u32>>),
    /// Each device computes a part of every body's sum. Each device adds the parts of its own bodies,
    /// these, in the order of the devices, and sends the sums to the others.
    Sums {
        /// The bodies of each device, for which it adds the parts.
        bodies: Vec<Range<u32>>,
        /// The kernel that adds.
        add: &'static Entry,
    },
    /// Each device computes a part of every body's sum and keeps the terms separate. One device after
    /// the other adds its terms to the sum of the devices before it, and the last device sends the sums
    /// to the others. The bits are the same as on one device.
    Chain,
}

/// Recipes for several devices that compute one system together.
#[derive(Clone, Debug)]
pub struct SharedRecipe {
    /// A recipe for each device, with its part of the blocks.
    pub parts: Vec<Recipe>,
    /// The way to put the parts together.
    pub union: Union,
}

impl Recipe {
    /// The recipes of `devices` devices that share this one's pairs.
    ///
    /// # Errors
    /// If a launch does not fit them.
    ///
    /// # Panics
    /// If the kernel is none that [can be shared](crate::variants::Variant::can_be_shared).
    pub fn shared(&self, devices: usize, limits: &Limits) -> Result<SharedRecipe, PlanError> {
        let entry = self.kernels.force;
        let n = self.params.n;
        let blocks = cut(&weights(entry, &self.force, n), devices);
        let energies = cut(&vec![1; self.energy_launch.grid[0] as usize], devices);
        let part = |(blocks, energies): (&Range<u32>, &Range<u32>)| Self {
            force: self.force.of_blocks(blocks),
            energy_launch: Launch {
                grid: [energies.end - energies.start, 1, 1],
                ..self.energy_launch
            },
            energy_share: share(energies),
            params: Params {
                share: share(blocks),
                ..self.params
            },
            ..self.clone()
        };
        let Work::Force {
            schedule, order, ..
        } = entry.work
        else {
            unreachable!("`{}` is no force", entry.symbol)
        };
        assert_eq!(
            entry.layout.name,
            LayoutName::Float4,
            "vectors side by side"
        );
        let union = match (schedule, order) {
            (ScheduleName::TiledJerks, _) => Union::Bodies(targets(entry, &self.force, &blocks, n)),
            (ScheduleName::Symmetric, Order::Fixed) => Union::Chain,
            (ScheduleName::Symmetric | ScheduleName::Separated | ScheduleName::Tensor, _) => {
                let add = super::partner(entry, Work::Reduce(Reduction::Serial));
                super::one_dimensional(add, n, ELEMENTWISE_BLOCK, limits)?;
                let bodies = slices(n, devices);
                Union::Sums { bodies, add }
            }
            _ => panic!("`{}` cannot be shared", entry.symbol),
        };
        Ok(SharedRecipe {
            parts: blocks.iter().zip(&energies).map(part).collect(),
            union,
        })
    }
}

impl SharedRecipe {
    /// Memory that each device needs at most, bytes.
    pub fn device_bytes(&self) -> u64 {
        let parts = self.parts.iter().map(|part| total(&part.buffers()));
        let own = parts.max().unwrap_or(0);
        let Union::Sums { bodies, .. } = &self.union else {
            return own;
        };
        // The parts of all devices, and their sums.
        let most = bodies.iter().map(|slice| slice.end - slice.start).max();
        let vectors = (self.parts.len() as u64 + 1) * u64::from(most.unwrap_or(0));
        let layout = self.parts[0].layout();
        own + vectors * u64::from(layout.vector_scalars * layout.vectors.bytes())
    }
}

impl ForcePlan {
    /// Blocks along the first axis of the launch that computes pairs.
    pub(super) fn blocks(&self) -> u32 {
        let grids = self.steps.iter().filter_map(|step| match step {
            Step::Launch { entry, launch, .. } if computes_pairs(entry) => Some(launch.grid[0]),
            _ => None,
        });
        grids.max().unwrap_or(0)
    }

    /// The same with these blocks alone, in launches that compute pairs.
    fn of_blocks(&self, blocks: &Range<u32>) -> Self {
        let mut plan = self.clone();
        for step in &mut plan.steps {
            if let Step::Launch { entry, launch, .. } | Step::Beside { entry, launch, .. } = step
                && computes_pairs(entry)
            {
                launch.grid[0] = blocks.end - blocks.start;
            }
        }
        // A device without blocks launches nothing.
        plan.steps.retain(|step| match step {
            Step::Launch { launch, .. } | Step::Beside { launch, .. } => launch.grid[0] > 0,
            Step::Zero(_) | Step::Join | Step::Product { .. } => true,
        });
        let beside = |step: &Step| matches!(step, Step::Beside { .. });
        if !plan.steps.iter().any(beside) {
            plan.steps.retain(|step| !matches!(step, Step::Join));
        }
        plan
    }
}

fn computes_pairs(entry: &Entry) -> bool {
    matches!(entry.work, Work::Force { .. } | Work::Near { .. })
}

const fn share(blocks: &Range<u32>) -> Share {
    Share {
        first: blocks.start,
        end: blocks.end,
    }
}

/// The work of each block, in units of the schedule's own.
fn weights(entry: &Entry, plan: &ForcePlan, n: u32) -> Vec<u64> {
    let Work::Force {
        schedule, order, ..
    } = entry.work
    else {
        unreachable!("`{}` is no force", entry.symbol)
    };
    let blocks = plan.blocks();
    match schedule {
        ScheduleName::Symmetric => (0..blocks)
            .map(|block| of_tiles(block, plan.tiling, n, order))
            .collect(),
        // The rows of a triangle, of which each begins at the diagonal.
        ScheduleName::Tensor => (0..blocks).map(|row| u64::from(blocks - row)).collect(),
        _ => vec![1; blocks as usize],
    }
}

/// Instructions per pair of bodies, in blocks of pairs of tiles and of a tile with itself.
const BOTH_SIDED: u64 = 17;
const ONE_SIDED: u64 = 13;

/// The work of a block of pairs of tiles. Where sums are in order, that of all parts of a pair is the
/// first one's: parts stay together.
fn of_tiles(block: u32, Tiling { side, parts }: Tiling, n: u32, order: Order) -> u64 {
    let tiles = n.div_ceil(side);
    let pair = block / parts;
    let (is_diagonal, weight) = match order {
        Order::Any => (pair >= tiles * (tiles - 1) / 2, 1),
        Order::Fixed => {
            let first = block.is_multiple_of(parts);
            // The last of each row, which ends at 1, 3, 6, …
            let ends = 8 * u64::from(pair + 1) + 1;
            let root = ends.isqrt();
            (
                root * root == ends,
                if first { u64::from(parts) } else { 0 },
            )
        }
    };
    weight * if is_diagonal { ONE_SIDED } else { BOTH_SIDED }
}

/// Cuts a row of blocks into as many ranges, one after another, of about the same weight. Blocks without
/// weight go with the one before.
fn cut(weights: &[u64], devices: usize) -> Vec<Range<u32>> {
    let total: u64 = weights.iter().sum();
    let mut ranges = Vec::with_capacity(devices);
    let (mut end, mut before) = (0, 0);
    for device in 1..=devices as u64 {
        let first = end;
        let wanted = total * device / devices as u64;
        while let Some(&weight) = weights.get(end)
            && (before + weight / 2 < wanted || weight == 0 || device == devices as u64)
        {
            before += weight;
            end += 1;
        }
        ranges.push(first as u32..end as u32);
    }
    ranges
}

/// The bodies of ranges of blocks, of a kernel whose blocks have equally many targets.
fn targets(entry: &Entry, plan: &ForcePlan, blocks: &[Range<u32>], n: u32) -> Vec<Range<u32>> {
    let Work::Force { lane, .. } = entry.work else {
        unreachable!("`{}` is no force", entry.symbol)
    };
    let threads = plan.steps.iter().find_map(|step| match step {
        Step::Launch { launch, .. } => Some(launch.block[0]),
        _ => None,
    });
    let of_block = threads.unwrap_or(0) * lane;
    let bodies =
        |blocks: &Range<u32>| (blocks.start * of_block).min(n)..(blocks.end * of_block).min(n);
    blocks.iter().map(bodies).collect()
}

/// Bodies in equal parts of whole warps, the last perhaps smaller or empty.
fn slices(n: u32, devices: usize) -> Vec<Range<u32>> {
    let each = n.div_ceil(devices as u32).next_multiple_of(WARP);
    let slice = |device: u32| (device * each).min(n)..((device + 1) * each).min(n);
    (0..devices as u32).map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::Bodies;
    use crate::frame::Frame;
    use crate::initial_conditions::plummer;
    use crate::physics::{ForceLaw, Physics};
    use crate::variants;

    const PHYSICS: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.05,
    };

    fn recipe(kernel: &str, bodies: &Bodies) -> Recipe {
        let variant = variants::find(kernel).expect("listed");
        let frame = Frame::of(bodies, &PHYSICS);
        Recipe::new(variant, bodies, PHYSICS, frame, &Limits::EVERYWHERE).expect("fits")
    }

    const KERNELS: [&str; 7] = [
        "symmetric",
        "symmetric-deterministic",
        "symmetric-f64",
        "double-single",
        "tensor",
        "tensor-soft",
        "hermite-f64",
    ];

    /// Every block, and every body, belongs to one device, and the ranges follow one another.
    #[test]
    fn devices_share_all_blocks_and_bodies() {
        for n in [1, 2, 33, 1_025, 20_000] {
            let bodies = plummer(n, 1).expect("in range");
            for kernel in KERNELS {
                let whole = recipe(kernel, &bodies);
                for devices in 1..=8 {
                    let limits = Limits::EVERYWHERE;
                    let shared = whole.shared(devices, &limits).expect("fits");
                    assert_eq!(shared.parts.len(), devices);
                    let blocks = shared.parts.iter().map(|part| part.params.share);
                    let energies = shared.parts.iter().map(|part| part.energy_share);
                    follow(blocks, whole.force.blocks());
                    follow(energies, whole.energy_launch.grid[0]);
                    if let Union::Bodies(bodies) | Union::Sums { bodies, .. } = shared.union {
                        follow(bodies.iter().map(share), n as u32);
                    }
                }
            }
        }
    }

    fn follow(shares: impl Iterator<Item = Share>, all: u32) {
        let mut end = 0;
        for share in shares {
            assert!(
                share.first == end && share.end >= end,
                "{share:?} after {end}"
            );
            end = share.end;
        }
        assert_eq!(end, all);
    }

    /// Parts of a pair of tiles stay on one device, as the kernel that adds them expects.
    #[test]
    fn pairs_of_tiles_are_not_torn_apart() {
        for n in [1_000, 16_000, 40_000] {
            let bodies = plummer(n, 1).expect("in range");
            let whole = recipe("symmetric-deterministic", &bodies);
            let parts = whole.params.tiling.parts;
            for devices in 2..=8 {
                let shared = whole.shared(devices, &Limits::EVERYWHERE).expect("fits");
                for part in shared.parts {
                    assert!(part.params.share.first.is_multiple_of(parts), "{parts}");
                }
            }
        }
    }

    /// Two devices have equal work but for 1 %, and eight but for 3 %, where there are bodies enough.
    #[test]
    fn work_is_balanced() {
        let bodies = plummer(65_536, 1).expect("in range");
        for kernel in KERNELS {
            let whole = recipe(kernel, &bodies);
            let weights = weights(whole.kernels.force, &whole.force, 65_536);
            for (devices, allowed) in [(2, 1.01), (4, 1.02), (8, 1.03)] {
                let most = cut(&weights, devices)
                    .into_iter()
                    .map(|range| {
                        weights[range.start as usize..range.end as usize]
                            .iter()
                            .sum()
                    })
                    .max();
                let most: u64 = most.expect("devices");
                let mean = weights.iter().sum::<u64>() as f64 / devices as f64;
                assert!(most as f64 <= allowed * mean, "{kernel}: {most} of {mean}");
            }
        }
    }
}
