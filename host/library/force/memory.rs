//! Memory of a device under the names that kernels have for it, and the one place where plans are carried out there.

use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Buffer, Entry};

use super::device::{Device, Peers, Streams};
use crate::backend::ForceError;
use crate::plan::{Kernel, Step};

/// Buffers of a device by their names.
///
/// Launches here rely on three things, which the modules of `force` keep to:
///
/// * A buffer under a name is as large as the plan says whose kernels name it, or as what is uploaded there: fields, sources,
///   tables of addresses.
/// * Scalars of a launch are of the plan that the buffers are of.
/// * A buffer that is given, or renamed, has the content that the parameter is for, and at least its size: the other
///   parity's sums, the other copy of what is sorted, the same kind of sums in another place.
pub(super) struct Memory<D: Device> {
    buffers: [Option<D::Buffer>; Buffer::COUNT],
}

/// Buffers that a launch takes under a name, in place of the buffer of that name.
pub(super) type Given<'a, B> = &'a [(Buffer, &'a B)];

impl<D: Device> Memory<D> {
    pub(super) const fn new() -> Self {
        Self {
            buffers: [const { None }; Buffer::COUNT],
        }
    }

    /// Allocates buffers of these sizes.
    pub(super) fn allocate(
        &mut self,
        device: &D,
        sizes: &[(Buffer, usize)],
    ) -> Result<(), ForceError> {
        sizes.iter().try_for_each(|&(name, bytes)| {
            self.put(name, device.allocate(bytes)?);
            Ok(())
        })
    }

    /// Puts a buffer in the place of its name.
    pub(super) fn put(&mut self, name: Buffer, buffer: D::Buffer) {
        self.buffers[name as usize] = Some(buffer);
    }

    pub(super) fn remove(&mut self, name: Buffer) {
        self.buffers[name as usize] = None;
    }

    pub(super) fn get(&self, name: Buffer) -> Option<&D::Buffer> {
        self.buffers[name as usize].as_ref()
    }

    /// The buffer of a name.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn of(&self, name: Buffer) -> &D::Buffer {
        let buffer = self.get(name);
        buffer.unwrap_or_else(|| panic!("no memory is `{name:?}`"))
    }

    pub(super) fn exchange(&mut self, one: Buffer, other: Buffer) {
        self.buffers.swap(one as usize, other as usize);
    }

    /// Buffers of a kernel's parameters, in order.
    fn pointers<'a>(
        &'a self,
        entry: &Entry,
        given: &[(Buffer, &'a D::Buffer)],
    ) -> Vec<&'a D::Buffer> {
        let of = |name| {
            let given = given.iter().find(|(of, _)| *of == name);
            given.map_or_else(|| self.of(name), |&(_, buffer)| buffer)
        };
        entry.buffers().map(of).collect()
    }

    /// The buffers under other names.
    fn renamed<'a>(&'a self, renamed: &[(Buffer, Buffer)]) -> Vec<(Buffer, &'a D::Buffer)> {
        let buffers = renamed.iter().map(|&(of, name)| (of, self.of(name)));
        buffers.collect()
    }

    /// Launches a kernel.
    pub(super) fn launch(
        &self,
        device: &D,
        kernel: Kernel,
        params: Params,
    ) -> Result<(), ForceError> {
        self.launch_renamed(device, kernel, &[], params)
    }

    /// Launches a kernel under names that its buffers have here.
    pub(super) fn launch_renamed(
        &self,
        device: &D,
        (entry, launch): Kernel,
        renamed: &[(Buffer, Buffer)],
        params: Params,
    ) -> Result<(), ForceError> {
        let buffers = self.pointers(entry, &self.renamed(renamed));
        // SAFETY: the entry's declaration says which buffers its parameters point to, in order. They are large enough
        // for these scalars, because both are of one plan: see the type.
        unsafe { device.launch(entry, launch, &buffers, params) }
    }

    /// As [`launch_renamed`](Self::launch_renamed), of a kernel that what follows need not wait for, until it is
    /// [joined](Device::join_beside). Until then nothing that is launched reads what it writes.
    pub(super) fn launch_beside(
        &self,
        device: &D,
        (entry, launch): Kernel,
        renamed: &[(Buffer, Buffer)],
        params: Params,
    ) -> Result<(), ForceError> {
        let buffers = self.pointers(entry, &self.renamed(renamed));
        // SAFETY: see `launch_renamed`. Until plans join it, others write accelerations of other bodies (`hybrid`), or
        // add to them by atomic operations (`separated`), and accelerations by fields have a buffer that the forces do
        // not touch.
        unsafe { device.launch_beside(entry, launch, &buffers, params) }
    }

    /// Carries out the steps of a plan.
    pub(super) fn carry_out(
        &self,
        device: &D,
        steps: &[Step],
        params: Params,
    ) -> Result<(), ForceError> {
        steps.iter().try_for_each(|step| match step {
            Step::Zero(buffer) => device.zero(self.of(*buffer)),
            Step::Launch {
                entry,
                launch,
                renamed,
            } => self.launch_renamed(device, (entry, *launch), renamed, params),
            Step::Beside { entry, launch } => {
                self.launch_beside(device, (entry, *launch), &[], params)
            }
            Step::Join => device.join_beside(),
            Step::Product { shape } => {
                let [matrix, x, y] =
                    [Buffer::partial, Buffer::ones, Buffer::acceleration].map(|name| self.of(name));
                device.multiply(*shape, matrix, x, y)
            }
        })
    }
}

impl<D: Peers> Memory<D> {
    /// Launches a kernel that reads `others` too, by addresses in one of its buffers.
    pub(super) fn launch_reading(
        &self,
        device: &D,
        (entry, launch): Kernel,
        given: Given<'_, D::Buffer>,
        others: &[&D::Buffer],
        params: Params,
    ) -> Result<(), ForceError> {
        let buffers = self.pointers(entry, given);
        // SAFETY: see `launch_renamed`. The addresses are of `others`: sums of plans for the same bodies and slices, or the
        // room where these are received from other ranks.
        unsafe { device.launch_reading(entry, launch, &buffers, others, params) }
    }
}

impl<D: Streams> Memory<D> {
    /// Launches a kernel in a stream. No other stream touches its buffers at the same time.
    pub(super) fn launch_in(
        &self,
        device: &D,
        stream: &D::Stream,
        (entry, launch): Kernel,
        given: Given<'_, D::Buffer>,
        params: Params,
    ) -> Result<(), ForceError> {
        let buffers = self.pointers(entry, given);
        // SAFETY: see `launch_renamed`. Work on a system is queued in one stream, or with a join in between.
        unsafe { device.launch_in(stream, entry, launch, &buffers, params) }
    }
}
