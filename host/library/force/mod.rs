//! The backends that compute forces: the f64 reference, the CPU, and devices that run kernels — GPUs and
//! the emulator.

pub(crate) mod at_points;
mod block_steps;
mod cancelled;
pub mod cpu;
pub mod cuda;
pub mod device;
pub mod emulated;
pub(crate) mod groups;
mod hermite;
mod hermite_order;
mod host_state;
mod in_memory;
pub mod in_place;
pub mod independent;
mod memory;
mod order;
mod order_of_peers;
mod pack;
pub mod pair_sums;
pub mod ranked;
pub mod reference;
pub mod resident;
pub mod systems;
