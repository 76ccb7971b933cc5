//! Faults of a launch on the emulator, described so that the line to look at is clear.

use std::fmt;
use std::panic::Location;

use thiserror::Error;

/// Place in a launch where something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the kernel, as given in [`Launch`](super::Launch).
    pub kernel: String,
    /// Seed of the execution order; the same seed repeats the fault.
    pub seed: u64,
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Index of the thread in its block.
    pub thread: [u32; 3],
    /// Source line of the access, barrier or panic: that of the emulator's caller, or of the kernel
    /// where all functions between are `#[track_caller]`.
    pub at: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kernel,
            seed,
            block,
            thread,
            at,
        } = self;
        write!(
            f,
            "kernel `{kernel}` (seed {seed}), block {block:?}, thread {thread:?}, at {at}"
        )
    }
}

/// A place in memory that a kernel can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// Byte address in the block's shared memory.
    Shared {
        /// Bytes from the start of shared memory.
        address: usize,
    },
    /// Byte offset in an array of the block's static shared memory.
    Array {
        /// Source line that declares the array.
        at: &'static Location<'static>,
        /// Bytes from the start of the array.
        offset: usize,
    },
    /// Byte offset in one of the launch's regions of global memory.
    Global {
        /// The region's name.
        region: String,
        /// Bytes from the region's start.
        offset: usize,
    },
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared { address } => write!(f, "byte {address} of shared memory"),
            Self::Array { at, offset } => {
                write!(f, "byte {offset} of the shared array of {at}")
            }
            Self::Global { region, offset } => {
                write!(f, "byte {offset} of global region `{region}`")
            }
        }
    }
}

/// Kind of an access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Plain load.
    Read,
    /// Plain store.
    Write,
    /// Atomic read-modify-write.
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic",
        })
    }
}

/// A rendezvous of threads: each kind matches only itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collective {
    /// Barrier of the block.
    SyncThreads,
    /// Barrier of the block that counts a predicate.
    SyncThreadsCount,
    /// Barrier of the warp.
    SyncWarp,
    /// Warp vote.
    Ballot,
    /// Warp shuffle of so many 32-bit words.
    Shuffle {
        /// 1 or 2.
        words: usize,
    },
    /// All lanes see all lanes' payloads of so many 32-bit words.
    Exchange {
        /// Length of one lane's payload.
        words: usize,
    },
}

impl Collective {
    /// True if the whole block takes part, false if only a warp.
    pub fn is_block_wide(self) -> bool {
        matches!(self, Self::SyncThreads | Self::SyncThreadsCount)
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SyncThreads => f.write_str("sync_threads"),
            Self::SyncThreadsCount => f.write_str("sync_threads_count"),
            Self::SyncWarp => f.write_str("sync_warp"),
            Self::Ballot => f.write_str("ballot"),
            Self::Shuffle { words } => write!(f, "shuffle of {} bits", 32 * words),
            Self::Exchange { words } => write!(f, "exchange of {words} words"),
        }
    }
}

/// State of a thread when others waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// It has left the kernel.
    Returned,
    /// It waits at a barrier or warp collective.
    Waiting {
        /// The barrier or collective where it waits.
        collective: Collective,
        /// Source line of the call.
        at: &'static Location<'static>,
    },
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned => f.write_str("has returned"),
            Self::Waiting { collective, at } => write!(f, "waits at {collective} ({at})"),
        }
    }
}

/// Why a launch was refused or stopped. The first fault ends the launch; what the kernel wrote
/// until then stays written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Grid, block or shared memory is beyond what any CUDA device launches.
    #[error("kernel `{kernel}` cannot be launched: {reason}")]
    Geometry {
        /// Name of the kernel.
        kernel: String,
        /// The number that is out of range, and the range.
        reason: String,
    },

    /// The system gave no stacks for the block's threads.
    #[error(
        "kernel `{kernel}` cannot be launched: no stacks for a block of {threads} threads; run \
         fewer launches at once"
    )]
    Stacks {
        /// Name of the kernel.
        kernel: String,
        /// Threads in a block.
        threads: usize,
        /// The system's error.
        source: std::io::Error,
    },

    /// Some threads wait at a barrier or warp collective that another thread cannot reach.
    #[error(
        "divergent barrier: {place} waits at {collective}, but thread {other:?} of the same \
         {scope} {whereabouts}; look for an early return or a branch on the thread index around \
         the barrier", scope = if collective.is_block_wide() { "block" } else { "warp" }
    )]
    Divergence {
        /// A thread that waits in vain.
        place: Box<Place>,
        /// The barrier or collective where it waits.
        collective: Collective,
        /// A thread that does not come.
        other: [u32; 3],
        /// State of that thread.
        whereabouts: Whereabouts,
    },

    /// Shared memory was read before any thread of the block wrote it.
    #[error(
        "shared memory read before it is written: {place} reads {bytes} bytes at {spot}, \
         of which byte {unwritten} is not yet written; look at which threads fill this tile, at \
         its padding and for a missing barrier before the read"
    )]
    Uninitialised {
        /// The reading thread.
        place: Box<Place>,
        /// The accessed memory.
        spot: Spot,
        /// Bytes accessed.
        bytes: usize,
        /// First byte that no thread wrote.
        unwritten: usize,
    },

    /// An access reaches past the block's shared memory.
    #[error(
        "shared memory out of bounds: {place}: {access} of {bytes} bytes at {spot}, \
         which has {available} bytes; look at the shared bytes of the launch and \
         the index into the tile"
    )]
    SharedBounds {
        /// The accessing thread.
        place: Box<Place>,
        /// Kind of access.
        access: Access,
        /// The memory, and the access's place in it or behind it.
        spot: Spot,
        /// Bytes accessed.
        bytes: usize,
        /// Bytes of this memory.
        available: usize,
    },

    /// An access reaches outside every region of the launch.
    #[error(
        "global memory out of bounds: {place}: {access} of {bytes} bytes at {address:#x}: \
         {nearest}; look at the index and its guard against the number of elements"
    )]
    GlobalBounds {
        /// The accessing thread.
        place: Box<Place>,
        /// Kind of access.
        access: Access,
        /// Address of the access.
        address: usize,
        /// Bytes accessed.
        bytes: usize,
        /// Distance from the nearest region.
        nearest: String,
    },

    /// An address is no multiple of the type's alignment. In global memory the offset from the
    /// region's start counts, since device allocations start at multiples of 256 bytes.
    #[error(
        "misaligned: {place}: {access} at {spot} needs a multiple of {alignment}; look at the \
         offset in front of the array and at vector types over scalar arrays"
    )]
    Misaligned {
        /// The accessing thread.
        place: Box<Place>,
        /// Kind of access.
        access: Access,
        /// The accessed memory.
        spot: Spot,
        /// Required alignment in bytes.
        alignment: usize,
    },

    /// A write to a region that the launch passed as read-only.
    #[error(
        "write to read-only memory: {place}: {access} at {spot}; look at the order of the \
         kernel's arguments, or make the region with `Region::of_mut`"
    )]
    ReadOnly {
        /// The writing thread.
        place: Box<Place>,
        /// Kind of access.
        access: Access,
        /// The accessed memory.
        spot: Spot,
    },

    /// Two threads touch the same memory, one of them writes, and no barrier orders them.
    #[error(
        "race: {place}: {access} at {spot} is not ordered after the {earlier} by block \
         {other_block:?}, thread {other_thread:?}, at {other_at}; {}",
        if place.block == *other_block {
            "look for a missing sync_threads or sync_warp between the two"
        } else {
            "blocks of one launch are never ordered: use an atomic, or a second launch"
        }
    )]
    Race {
        /// The later of the two accesses.
        place: Box<Place>,
        /// Kind of the later access.
        access: Access,
        /// The accessed memory.
        spot: Spot,
        /// Kind of the earlier access.
        earlier: Access,
        /// Block of the earlier access.
        other_block: [u32; 3],
        /// Thread of the earlier access.
        other_thread: [u32; 3],
        /// Source line of the earlier access.
        other_at: String,
    },

    /// A shuffle reads from a lane that a partial last warp does not have.
    #[error(
        "shuffle from a missing lane: {place} reads lane {lane}, but its warp has {width} \
         threads; look at the block size and the source lane"
    )]
    ShuffleLane {
        /// The shuffling thread.
        place: Box<Place>,
        /// Source lane, 0..32.
        lane: u32,
        /// Threads in this warp.
        width: usize,
    },

    /// The kernel panicked (off the device it keeps Rust's checks).
    #[error("kernel panic: {place}: {message}")]
    Panic {
        /// The panicking thread, and the source line.
        place: Box<Place>,
        /// The panic's message.
        message: String,
    },

    /// The launch outran the counters with which races are told.
    #[error(
        "kernel `{kernel}` is too long for the emulator: more than {limit} {what}; launch a \
         smaller problem"
    )]
    TooLong {
        /// Name of the kernel.
        kernel: String,
        /// The items of which there were too many.
        what: &'static str,
        /// Most that are possible.
        limit: u64,
    },
}
