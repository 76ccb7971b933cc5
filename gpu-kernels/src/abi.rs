//! Scalars that a launch passes to a kernel beside its pointers.

use cuda_std::constant::NoUninit;

/// The scalars of a launch, in the units of the buffers. Single-precision kernels round them once,
/// outside their loops.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Params {
    /// Bodies.
    pub n: u32,
    /// Capacity of the buffers, bodies: the distance between planes of a structure of arrays.
    pub stride: u32,
    /// Sources per thread, of kernels that split them among threads, or that have them apart from the
    /// targets.
    pub sources_a_thread: u32,
    /// Partial sums per body that such kernels leave; those of all devices together in block time steps.
    pub partials: u32,
    /// ε², a squared length, ≥ 0.
    pub softening_squared: f64,
    /// Gravitational constant.
    pub g: f64,
    /// H of the law `attract-repel`.
    pub repulsion: f64,
    /// γ of the law `attract-repel`.
    pub damping: f64,
    /// Time step of a kick or a drift.
    pub dt: f64,
    /// Division of the pairs among blocks, for the schedules that take each pair once.
    pub tiling: Tiling,
    /// Acceptance criterion of far pairs, for the schedule that has them.
    pub separation: Separation,
    /// Systems that a launch computes, for the schedules of many of them.
    pub systems: Systems,
    /// Factor of the velocities in a damping.
    pub velocity_factor: f64,
    /// Time of the state, in the units of the run, for fields that change with it.
    pub time: f64,
    /// Phase of a block step, for block time steps.
    pub blocks: BlockStep,
    /// This device's part of the blocks, where several devices share a launch.
    pub share: Share,
}

/// The blocks of a launch that a device carries out, counted along the grid's first axis as if one
/// device carried out all: block b of its grid is block `first + b` of all.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The first.
    pub first: u32,
    /// The one behind the last.
    pub end: u32,
}

/// A launch of block time steps: see [`block_steps`](crate::schedule::block_steps).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockStep {
    /// Number of the place that the launch reads, of two: 0 and 1 in turn, from one block step to the next.
    pub parity: u16,
    /// Purpose of the launch, a [`Phase`](crate::schedule::block_steps::Phase) as a number.
    pub phase: u8,
    /// Devices whose sums are added, or read; 0 where one device has all.
    pub devices: u8,
    /// Sources that a block keeps in shared memory at a time.
    pub chunk: u32,
}

// SAFETY: `repr(C)`, and every byte is a field's, as is asserted below, whose types are the same way.
unsafe impl NoUninit for Params {}

const _: () = assert!(
    size_of::<Params>()
        == 4 * size_of::<u32>()
            + 7 * size_of::<f64>()
            + size_of::<Tiling>()
            + size_of::<Separation>()
            + size_of::<Systems>()
            + size_of::<BlockStep>()
            + size_of::<Share>()
);
const _: () = assert!(size_of::<Tiling>() == 2 * size_of::<u32>());
const _: () = assert!(size_of::<Separation>() == 2 * size_of::<f64>());
const _: () = assert!(size_of::<Systems>() == 4 * size_of::<u32>());
const _: () = assert!(size_of::<BlockStep>() == 2 * size_of::<u32>());
const _: () = assert!(size_of::<Share>() == 2 * size_of::<u32>());

/// Acceptance criterion for two groups of bodies that are far from each other: see
/// [`separated`](crate::schedule::separated).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Separation {
    /// The smallest distance between the groups' boxes, > 0.
    pub gap: f64,
    /// The smallest squared distance per mass of the heaviest of their bodies.
    pub square_per_mass: f64,
}

/// Many systems in one buffer, `n` bodies each: see [`systems`](crate::schedule::systems).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Systems {
    /// The first that the launch computes; those after it follow along the grid's second axis.
    pub first: u32,
    /// Bodies from the beginning of one to that of the next, ≥ n.
    pub distance: u32,
    /// Sources of a tile in shared memory.
    pub tile: u32,
    /// Time steps, of kernels that take them by themselves.
    pub steps: u32,
}

/// A part of a step, for kernels that take many steps: records of the move and its amount lie one after
/// another in a buffer of f64.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Velocities are multiplied by the amount.
    Damp,
    /// `v += amount · a`.
    Kick,
    /// `x += amount · v`.
    Drift,
    /// Accelerations of the current positions; the amount says nothing.
    Evaluate,
    /// The step ends before this, which is no move; the amount says nothing.
    End,
}

/// Length of a move's record, numbers.
pub const MOVE_NUMBERS: u32 = 2;

/// Constants of one of many systems: records of these numbers lie one after another in a buffer of
/// f64.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemConstant {
    /// ε².
    SofteningSquared,
    /// G.
    G,
    /// Time step of its kicks.
    Kick,
    /// Time step of its drifts.
    Drift,
    /// Number of kicks in a step, for kernels that can take several.
    Kicks,
}

/// Length of a system's record, numbers.
pub const SYSTEM_CONSTANTS: u32 = 5;

/// Bodies cut into tiles, and pairs of tiles into parts: see
/// [`symmetric`](crate::schedule::symmetric).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiling {
    /// Bodies of a tile.
    pub side: u32,
    /// Blocks that share a pair of tiles, each with an equal part of one tile's bodies.
    pub parts: u32,
}

/// The arguments of an emulated launch: what a GPU launch passes as an array of pointers.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// The kernel's pointer parameters, in order.
    pub pointers: &'a [*mut u8],
    /// The kernel's last parameter.
    pub params: Params,
}

impl Arguments<'_> {
    /// The kernel's pointer parameter `index`.
    ///
    /// # Panics
    /// If the launch has no such pointer, which the emulator reports as a fault of the kernel.
    pub fn pointer<T>(&self, index: usize) -> *mut T {
        self.pointers[index].cast()
    }
}
