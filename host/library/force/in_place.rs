//! Accelerations of bodies that another library keeps on a device, such as PyTorch: it writes positions
//! and masses to a buffer of the device, and reads the accelerations from another.

use gpu_kernels::numerics::Precision;

use super::device::Device;
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::variants::Masses;

/// A device whose buffers others reach too.
pub trait Shared: Device {
    /// Address of a buffer, for the device.
    fn address(&self, buffer: &Self::Buffer) -> u64;

    /// Handle of the stream in which this device's work is queued; 0 where there are no streams.
    fn stream_handle(&self) -> u64;

    /// Lets work that is queued from now on in another library's stream wait for all that was launched
    /// so far.
    ///
    /// # Safety
    /// `stream` is a stream of this device, or the driver's number of a default stream.
    ///
    /// # Errors
    /// The machine's refusal.
    unsafe fn hold_up(&self, stream: u64) -> Result<(), ForceError>;

    /// Lets work that is launched from now on wait for all that is queued in another library's stream.
    ///
    /// # Safety
    /// As [`hold_up`](Self::hold_up).
    ///
    /// # Errors
    /// The machine's refusal.
    unsafe fn wait_for(&self, stream: u64) -> Result<(), ForceError>;

    /// Queues a copy of another library's bytes to the beginning of a buffer.
    ///
    /// # Safety
    /// There are as many bytes at the address in this device's memory, until the copy is done.
    ///
    /// # Errors
    /// The machine's refusal, or a buffer that is smaller.
    unsafe fn copy_from_address(
        &self,
        address: u64,
        bytes: usize,
        to: &Self::Buffer,
    ) -> Result<(), ForceError>;

    /// Queues a copy from the beginning of a buffer to another library's bytes.
    ///
    /// # Safety
    /// There are as many bytes at the address in this device's memory, and nobody else accesses them until the copy is
    /// done.
    ///
    /// # Errors
    /// The machine's refusal, or a buffer that is smaller.
    unsafe fn copy_to_address(
        &self,
        from: &Self::Buffer,
        address: u64,
        bytes: usize,
    ) -> Result<(), ForceError>;
}

/// How far the numbers of bodies go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// The largest coordinate, of either sign.
    pub reach: f64,
    /// The smallest mass.
    pub least: f64,
    /// The largest mass.
    pub heaviest: f64,
}

impl Extent {
    /// Bodies that go as far, for those that are not known here.
    pub fn bodies(&self, n: usize) -> Bodies {
        let positions: Vec<[f64; 3]> = (0..n)
            .map(|i| match n - i {
                1 => [self.reach; 3],
                2 => [-self.reach; 3],
                _ => [0.0; 3],
            })
            .collect();
        let masses: Vec<f64> = (0..n)
            .map(|i| if i == 0 { self.least } else { self.heaviest })
            .collect();
        Bodies::at_rest(&positions, &masses)
    }

    /// Units for such bodies; the origin is theirs.
    pub fn frame(&self, physics: &Physics) -> Frame {
        // Of four bodies, the median is one in the middle.
        Frame {
            centre: [0.0; 3],
            ..Frame::of(&self.bodies(4), physics)
        }
    }

    /// Masses of such bodies.
    pub fn masses(&self) -> Masses {
        Masses::of(&self.bodies(2))
    }
}

/// Where bodies are to be written, and accelerations to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffers {
    /// Address of rows of four numbers, a body each: x, y, z and the mass, in units of the
    /// [frame](InPlace::frame).
    pub bodies: u64,
    /// Address of rows of four numbers: three of an acceleration, in the same units, and one more.
    pub accelerations: u64,
    /// The numbers: f32 or f64.
    pub precision: Precision,
}

/// Accelerations of bodies that others write to its buffers.
pub trait InPlace: Send {
    /// The buffers, which stay where they are.
    fn buffers(&self) -> Buffers;

    /// Units of the numbers.
    fn frame(&self) -> Frame;

    /// Masses that it is prepared for.
    fn masses(&self) -> Masses;

    /// Prepares for bodies that go as far as `extent`, under this force. Returns false where it cannot:
    /// then another is to be made.
    ///
    /// # Errors
    /// If a launch would not fit the device.
    fn prepare(&mut self, extent: Extent, physics: Physics) -> Result<bool, ForceError>;

    /// Queues the force.
    ///
    /// # Errors
    /// The machine's refusal.
    fn accelerate(&mut self) -> Result<(), ForceError>;

    /// See [`Shared::stream_handle`].
    fn stream_handle(&self) -> u64;

    /// See [`Shared::hold_up`].
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    unsafe fn hold_up(&self, stream: u64) -> Result<(), ForceError>;
}
