//! Plans of many systems: which copies and launches some time steps take, and in which stream each is
//! queued.
//!
//! A [`SystemsPlan`] is the geometry of one GPU's systems; [`items`](SystemsPlan::items) lists the
//! work. One place ([`ManySystems`](crate::force::systems::ManySystems)) queues it.

use std::ops::Range;

use gpu_kernels::abi::{Params, Systems, Tiling};
use gpu_kernels::entries::{Entry, Work};
use gpu_kernels::schedule::{ScheduleName, SourcesIn, Stepping, systems};

use super::{ELEMENTWISE_BLOCK, Launch, Limits, PlanError, one_dimensional, stride, symmetric};
use crate::variants::{Method, Queues, SystemsPath, Transfers, Variant};

/// Systems that a launch can have along the grid's second axis, on any device.
const MOST_TOGETHER: u32 = 65_535;

/// Reason why this layout of independent systems is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SystemsError {
    /// Bodies that do not make systems of equal size.
    #[error(
        "{bodies} bodies do not make {systems} systems of equal size: {} each would leave {} over",
        bodies / *systems as usize, bodies % *systems as usize
    )]
    NotDivisible {
        /// Bodies.
        bodies: usize,
        /// Systems, at least one.
        systems: u32,
    },
    /// No systems at all.
    #[error("bodies make at least one system, not 0")]
    NoSystems,
    /// Streams without work.
    #[error(
        "{streams} streams are more than the {systems} systems to share out among them: use \
         {systems} or fewer"
    )]
    TooManyStreams {
        /// Number asked for.
        streams: u32,
        /// Systems.
        systems: u32,
    },
    /// No streams at all.
    #[error("work is queued in at least one stream, not 0")]
    NoStreams,
    /// A tile that a block has no room for.
    #[error(
        "a tile of {tile} sources takes {bytes} bytes of shared memory in `{kernel}`, and a block has \
         between one source and {most} bytes: use a tile of 1 to {fits}"
    )]
    Tile {
        /// The kernel.
        kernel: &'static str,
        /// Sources of a tile.
        tile: u32,
        /// Bytes that they take.
        bytes: u64,
        /// Most that the device allows.
        most: u32,
        /// Sources that fit.
        fits: u32,
    },
    /// A system that a block has no room for.
    #[error(
        "a system of {n} bodies takes {bytes} bytes of shared memory in `{kernel}`, and a block has \
         {most}: choose another kernel, such as many-systems-symmetric"
    )]
    TooLarge {
        /// The kernel.
        kernel: &'static str,
        /// Bodies of a system.
        n: u32,
        /// Bytes that they take.
        bytes: u64,
        /// Most that the device allows.
        most: u32,
    },
}

/// Bytes of a system of `n` bodies that a block of `threads` keeps in shared memory.
fn bytes_in_block(entry: &Entry, n: u32, threads: u32) -> u64 {
    let layout = &entry.layout;
    let numbers = systems::numbers_a_place(threads / super::WARP) * layout.precision.bytes();
    u64::from(systems::places(n, lane_of(entry))) * u64::from(layout.tile_bytes + numbers)
}

/// Most bodies of a system that a variant computes on any device.
pub fn most_bodies(variant: &Variant) -> usize {
    match variant.method {
        Method::Systems(path) if variant.keeps_systems_in_blocks() => {
            let entry = variant.any_force();
            let group = bytes_in_block(entry, 1, path.block);
            let groups = u64::from(Limits::EVERYWHERE.shared_bytes) / group;
            systems::places(1, lane_of(entry)) as usize * groups as usize
        }
        _ => usize::MAX,
    }
}

/// The longest chain of additions that a pair's force goes through, where a block of `threads` keeps the
/// system: a source adds a lane's targets, and then comes to a sum of as many as its warp takes rotations; a target adds
/// all sources that its warp takes.
pub fn additions_in_block(entry: &Entry, n: u32, threads: u32) -> usize {
    let (lane, warps) = (lane_of(entry), threads / super::WARP);
    let groups = systems::places(n, lane) / (super::WARP * lane);
    let rotations = (groups * super::WARP).div_ceil(warps) + groups;
    (rotations * lane + lane + groups + warps) as usize
}

fn lane_of(entry: &Entry) -> u32 {
    match entry.work {
        Work::Force { lane, .. } => lane,
        _ => unreachable!("`{}` is no force", entry.symbol),
    }
}

/// Bodies of each of `systems` that `bodies` are to make.
///
/// # Errors
/// If they do not.
pub fn bodies_each(bodies: usize, systems: u32) -> Result<usize, SystemsError> {
    if systems == 0 {
        return Err(SystemsError::NoSystems);
    }
    if !bodies.is_multiple_of(systems as usize) {
        return Err(SystemsError::NotDivisible { bodies, systems });
    }
    Ok(bodies / systems as usize)
}

/// Number of `systems` that each of `gpus` gets: as many each, the remainder to the first ones.
pub fn dealt(systems: u32, gpus: u32) -> Vec<u32> {
    let (each, rest) = (systems / gpus, systems % gpus);
    (0..gpus).map(|gpu| each + u32::from(gpu < rest)).collect()
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The stream it is queued in.
    pub stream: u32,
    /// The systems it is about.
    pub systems: Range<u32>,
    /// Description.
    pub task: Task,
}

/// Kind of a piece of work.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Copies bodies to the GPU, into the first state buffer.
    CopyIn,
    /// Launches a kernel.
    Launch {
        /// Symbol of the kernel.
        kernel: &'static str,
        /// The state buffer of its bodies, 0 or 1; a fused step writes the other one.
        from: usize,
        /// Steps that it takes by itself.
        steps: u32,
    },
    /// Waits for all streams.
    Join,
    /// Copies bodies from the GPU, out of this state buffer.
    CopyOut {
        /// 0 or 1.
        from: usize,
    },
}

/// The work of some systems on one GPU.
#[derive(Clone, Debug)]
pub struct SystemsPlan {
    /// Systems.
    pub systems: u32,
    /// Bodies of each.
    pub n: u32,
    /// Bodies from the beginning of one to that of the next: the room between stays untouched.
    pub distance: u32,
    /// Bodies that the state buffers have room for.
    pub stride: u32,
    /// Streams.
    pub streams: u32,
    /// The kernel that kicks, or takes steps, or accelerates.
    pub force: &'static Entry,
    /// The kernel that drifts after one that kicks, or kicks and drifts after one that accelerates.
    pub drift: Option<&'static Entry>,
    stepping: Stepping,
    force_launch: Launch,
    drift_launch: Launch,
    tile: u32,
    tiling: Tiling,
    together: bool,
    transfers: Transfers,
}

impl SystemsPlan {
    /// The plan of `systems` of `n` bodies each.
    ///
    /// # Errors
    /// If a launch would be refused by the device, a stream would have no work, or the bodies are more
    /// than can be counted.
    ///
    /// # Panics
    /// If `entry` is not of many systems, or its tiles are not said.
    pub fn new(
        entry: &'static Entry,
        path: &SystemsPath,
        systems: u32,
        n: usize,
        limits: &Limits,
    ) -> Result<Self, PlanError> {
        let Work::Force {
            schedule: ScheduleName::Systems { stepping, sources },
            ..
        } = entry.work
        else {
            panic!("`{}` computes one system", entry.symbol)
        };
        // Room for whole warps, so that no system begins in the middle of a line.
        let distance = stride(entry, n)?;
        let stride = stride(entry, distance as usize * systems as usize)?;
        let n = n as u32; // fits, as its room does
        let (streams, together) = match path.queues {
            Queues::Together => (1, true),
            Queues::UpTo(0) | Queues::Exactly(0) => return Err(SystemsError::NoStreams.into()),
            Queues::UpTo(most) => (most.min(systems), false),
            Queues::Exactly(streams) if streams > systems => {
                return Err(SystemsError::TooManyStreams { streams, systems }.into());
            }
            Queues::Exactly(streams) => (streams, false),
        };
        let blocks = one_dimensional(entry, n, path.block, limits)?;
        let pairs_once = stepping == Stepping::Accelerate;
        let in_block = stepping == Stepping::InBlock;
        let tiled = !pairs_once && !in_block && sources != SourcesIn::Global;
        let tile = if tiled {
            path.tile
                .expect("a variant of tiles says how large they are")
        } else {
            0
        };
        let bytes = if in_block {
            bytes_in_block(entry, n, path.block)
        } else {
            u64::from(blocks.shared_bytes) + u64::from(tile) * u64::from(entry.layout.tile_bytes)
        };
        let no_room = bytes > u64::from(limits.shared_bytes);
        if tiled && (no_room || tile == 0) {
            return Err(SystemsError::Tile {
                kernel: entry.symbol,
                tile,
                bytes,
                most: limits.shared_bytes,
                fits: limits.shared_bytes / entry.layout.tile_bytes,
            }
            .into());
        }
        if in_block && no_room {
            return Err(SystemsError::TooLarge {
                kernel: entry.symbol,
                n,
                bytes,
                most: limits.shared_bytes,
            }
            .into());
        }
        let tiling = if pairs_once {
            symmetric::tiling_of_systems(entry, n, path.block)
        } else {
            Tiling::default()
        };
        let force_launch = Launch {
            grid: match stepping {
                Stepping::All | Stepping::InBlock => [1; 3],
                Stepping::Kick | Stepping::Fused => blocks.grid,
                Stepping::ByWarps => [n.div_ceil(path.block / super::WARP), 1, 1],
                Stepping::Accelerate => [tiling.blocks(n), 1, 1],
            },
            shared_bytes: bytes as u32,
            ..blocks
        };
        let drift = match stepping {
            Stepping::All | Stepping::Fused | Stepping::InBlock | Stepping::ByWarps => None,
            Stepping::Kick => Some(Work::SystemDrift),
            Stepping::Accelerate => Some(Work::SystemStep),
        };
        let drift = drift.map(|work| super::partner(entry, work));
        Ok(Self {
            systems,
            n,
            distance,
            stride,
            streams,
            force: entry,
            drift,
            stepping,
            force_launch,
            drift_launch: one_dimensional(drift.unwrap_or(entry), n, ELEMENTWISE_BLOCK, limits)?,
            tile,
            tiling,
            together,
            transfers: path.transfers,
        })
    }

    /// Returns whether steps go from one state buffer to another.
    pub(crate) fn is_double_buffered(&self) -> bool {
        matches!(self.stepping, Stepping::Fused | Stepping::ByWarps)
    }

    /// Returns whether a step may have several kicks.
    pub(crate) fn kicks_repeatedly(&self) -> bool {
        matches!(
            self.stepping,
            Stepping::Accelerate | Stepping::InBlock | Stepping::ByWarps
        )
    }

    /// Bytes of the partial sums that one kernel leaves to the other, if it does.
    pub(crate) fn slabs_bytes(&self) -> Option<usize> {
        let slabs = (self.stepping == Stepping::Accelerate).then(|| self.tiling.slabs(self.n))?;
        let layout = &self.force.layout;
        let vector = (layout.vector_scalars * layout.vectors.bytes()) as usize;
        Some(vector * self.stride as usize * slabs as usize)
    }

    /// Returns whether copies are queued, as page-locked memory allows.
    pub(crate) fn copies_are_queued(&self) -> bool {
        self.transfers != Transfers::Apart
    }

    /// The kernel of a launch, its geometry and its scalars.
    ///
    /// # Panics
    /// If the item is no launch of this plan's.
    pub fn launch(&self, item: &Item) -> (&'static Entry, Launch, Params) {
        let Task::Launch { kernel, steps, .. } = item.task else {
            panic!("{item:?} is no launch")
        };
        let (entry, mut launch) = match self.drift {
            Some(drift) if drift.symbol == kernel => (drift, self.drift_launch),
            _ => (self.force, self.force_launch),
        };
        launch.grid[1] = item.systems.end - item.systems.start;
        let params = Params {
            n: self.n,
            stride: self.stride,
            tiling: self.tiling,
            systems: Systems {
                first: item.systems.start,
                distance: self.distance,
                tile: self.tile,
                steps,
            },
            ..Params::default()
        };
        (entry, launch, params)
    }

    /// Byte ranges of the bodies of some systems in a state buffer.
    pub fn places(&self, systems: &Range<u32>) -> Vec<Range<usize>> {
        let layout = &self.force.layout;
        let scalar = layout.stored.bytes() as usize;
        if *systems == (0..self.systems) {
            let all = layout.state_scalars as usize * self.stride as usize;
            return std::iter::once(0..all * scalar).collect();
        }
        let mut plane = 0;
        let mut places = vec![];
        for &width in layout.planes {
            let place = |system: u32| {
                let body = system as usize * self.distance as usize;
                (plane + body * width as usize) * scalar
            };
            places.push(place(systems.start)..place(systems.end));
            plane += self.stride as usize * width as usize;
        }
        places
    }

    /// Work of some steps, in the order in which it is queued. Work of one stream is done in order;
    /// what lies in different streams does not wait for each other, but for [`Task::Join`].
    pub fn items(&self, steps: u32) -> Vec<Item> {
        let all = 0..self.systems;
        let groups: Vec<(u32, Range<u32>)> = if self.together {
            let starts = all.clone().step_by(MOST_TOGETHER as usize);
            starts
                .map(|s| (0, s..(s + MOST_TOGETHER).min(self.systems)))
                .collect()
        } else {
            all.clone().map(|s| (s % self.streams, s..s + 1)).collect()
        };
        let buffer_after = |steps: u32| match self.is_double_buffered() {
            true => steps as usize % 2,
            false => 0,
        };
        let copy_out = Task::CopyOut {
            from: buffer_after(steps),
        };
        let item = |(stream, systems): &(u32, Range<u32>), task| Item {
            stream: *stream,
            systems: systems.clone(),
            task,
        };
        // Kernels that take all steps by themselves are launched once.
        let (launches, steps_each) = match self.stepping {
            Stepping::All | Stepping::InBlock => (1, steps),
            Stepping::Kick | Stepping::Fused | Stepping::Accelerate | Stepping::ByWarps => {
                (steps, 1)
            }
        };
        let kernels = || [Some(self.force), self.drift].into_iter().flatten();
        let launch = |group, entry: &Entry, index: u32| {
            let task = Task::Launch {
                kernel: entry.symbol,
                from: buffer_after(index),
                steps: steps_each,
            };
            item(group, task)
        };
        let mut items = vec![];
        match self.transfers {
            Transfers::DepthFirst => {
                for group in &groups {
                    items.push(item(group, Task::CopyIn));
                    for index in 0..launches {
                        items.extend(kernels().map(|entry| launch(group, entry, index)));
                    }
                    items.push(item(group, copy_out.clone()));
                }
            }
            Transfers::Apart | Transfers::BreadthFirst => {
                let whole = [(0, all)];
                let apart = self.transfers == Transfers::Apart;
                let copied = if apart { &whole[..] } else { &groups };
                items.extend(copied.iter().map(|group| item(group, Task::CopyIn)));
                // Streams share the queues of the hardware. Behind a drift that waits for its kick
                // another stream's kick would wait as well: so all kicks come first.
                for index in 0..launches {
                    for entry in kernels() {
                        items.extend(groups.iter().map(|group| launch(group, entry, index)));
                    }
                }
                if apart {
                    items.push(item(&whole[0], Task::Join));
                }
                items.extend(copied.iter().map(|group| item(group, copy_out.clone())));
            }
        }
        items
    }
}
