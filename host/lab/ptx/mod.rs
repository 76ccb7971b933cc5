//! Facts about kernels from their PTX: work per interaction ([`EntryReport`]), whether that is what
//! the lists of kernels claim ([`claims`]) and, where CUDA's assembler is installed, what it costs
//! in registers and memory ([`Ptxas`]). None of it needs a GPU.
//!
//! PTX is read as its specification describes it, "Parallel Thread Execution ISA", chapters 4
//! (syntax) and 9 (instructions): <https://docs.nvidia.com/cuda/parallel-thread-execution/>.

mod analysis;
pub mod claims;
mod counts;
mod flow;
mod ptxas;
mod syntax;

pub use analysis::{EntryReport, InteractionLoop, NoInteractionLoop, PerInteraction};
pub use counts::{Access, Counts, Denormals, Kind, Precision, Space, Transfer};
pub use ptxas::{Ptxas, PtxasError, Resources};
