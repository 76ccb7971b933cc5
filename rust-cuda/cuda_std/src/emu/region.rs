//! Host memory that a launch may access.

use std::marker::PhantomData;

/// A buffer of global memory for a launch: the kernel may touch the bytes of the launch's regions
/// and no others.
///
/// A region borrows the host's buffer, so take the kernel's pointer from [`Region::pointer`]:
/// nothing else can reach the buffer until the region is dropped, which is after the launches.
/// It counts as a device allocation: its first byte is aligned for every type.
#[derive(Debug)]
pub struct Region<'a> {
    name: String,
    start: *mut u8,
    bytes: usize,
    writable: bool,
    buffer: PhantomData<&'a mut [u8]>,
}

impl<'a> Region<'a> {
    /// A buffer that the kernel only reads. Reads of it cost least, for they cannot race.
    pub fn of<T: Copy>(name: impl Into<String>, buffer: &'a [T]) -> Self {
        Self {
            name: name.into(),
            start: buffer.as_ptr().cast_mut().cast(),
            bytes: size_of_val(buffer),
            writable: false,
            buffer: PhantomData,
        }
    }

    /// A buffer that the kernel reads and writes.
    pub fn of_mut<T: Copy>(name: impl Into<String>, buffer: &'a mut [T]) -> Self {
        Self {
            name: name.into(),
            bytes: size_of_val(buffer),
            start: buffer.as_mut_ptr().cast(),
            writable: true,
            buffer: PhantomData,
        }
    }

    /// The pointer to pass to the kernel, as whatever type the kernel takes: a buffer of bytes
    /// serves for every type. Only the emulator's functions may access it.
    pub fn pointer<T>(&self) -> *mut T {
        self.start.cast()
    }

    /// The name that faults give.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if the kernel may write here.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Address of the first byte.
    pub(super) fn start(&self) -> usize {
        self.start.addr()
    }
}
