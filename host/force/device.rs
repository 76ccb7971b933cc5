//! A machine that runs kernels: a GPU, or the emulator.

use bytemuck::Pod;
use gpu_kernels::abi::Params;
use gpu_kernels::entries::Entry;

use super::ForceError;
use crate::plan::{Launch, Limits};

/// A machine that runs kernels, one after another, on memory of its own.
pub trait Device {
    /// Memory of the machine.
    type Buffer;

    /// What a launch may have.
    fn limits(&self) -> Limits;

    /// Memory for `bytes` bytes, every one of them 0xff: not a number, for whoever reads what
    /// nobody wrote.
    ///
    /// # Errors
    /// If there is not enough.
    fn allocate(&self, bytes: usize) -> Result<Self::Buffer, ForceError>;

    /// Queues setting every byte of `buffer` to zero.
    ///
    /// # Errors
    /// The machine's refusal.
    fn zero(&self, buffer: &Self::Buffer) -> Result<(), ForceError>;

    /// Copies `source` to the start of `target`.
    ///
    /// # Errors
    /// The machine's refusal.
    fn upload<T: Pod>(&self, target: &Self::Buffer, source: &[T]) -> Result<(), ForceError>;

    /// Copies the start of `source` into `target`, after all launches before.
    ///
    /// # Errors
    /// The machine's refusal, or the failure of a launch before.
    fn download<T: Pod>(&self, source: &Self::Buffer, target: &mut [T]) -> Result<(), ForceError>;

    /// Queues a launch of `entry` with its pointer parameters and its scalars.
    ///
    /// # Safety
    /// `buffers` are what the entry's kernel is documented to take, in order, and large enough for
    /// `params`.
    ///
    /// # Errors
    /// The machine's refusal, or a fault of the kernel.
    unsafe fn launch(
        &self,
        entry: &'static Entry,
        launch: Launch,
        buffers: &[&Self::Buffer],
        params: Params,
    ) -> Result<(), ForceError>;

    /// Does `work`, which only launches, `times` times over; it may be called less often, if the
    /// machine can repeat what it launched.
    ///
    /// # Errors
    /// Those of `work`, or the machine's refusal.
    fn repeat(
        &self,
        times: u64,
        work: &mut dyn FnMut() -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        (0..times).try_for_each(|_| work())
    }

    /// Waits for all launches.
    ///
    /// # Errors
    /// The failure of one of them.
    fn synchronize(&self) -> Result<(), ForceError>;

    /// Seconds that the launches of `work` take, by the machine's own clock.
    ///
    /// # Errors
    /// Those of `work`.
    fn seconds_of(&self, work: impl FnOnce() -> Result<(), ForceError>) -> Result<f64, ForceError>;
}
