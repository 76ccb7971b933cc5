//! The host's side: memory for kernels, and launches.

use std::alloc::{self, Layout};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr;
use std::rc::{Rc, Weak};

use cuda_std::emu::{Launch as Description, Region, launch};

pub use cuda_std::emu::{Access, Collective, Fault, Place, Spot, Whereabouts};

/// Alignment of every buffer, as a device's allocations have it.
const ALIGNMENT: usize = 256;
/// Bytes around a buffer that belong to nothing else, so that an index that is wrong by less is known to be.
const GUARD: usize = 4096;

/// Memory of a buffer, between two guards.
#[derive(Debug)]
struct Allocation {
    name: String,
    base: *mut u8,
    layout: Layout,
    bytes: usize,
}

impl Allocation {
    fn new(name: String, bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes + 2 * GUARD, ALIGNMENT)
            .expect("a buffer is shorter than the address space");
        // SAFETY: the guards make the size more than nothing.
        let base = unsafe { alloc::alloc_zeroed(layout) };
        if base.is_null() {
            alloc::handle_alloc_error(layout);
        }
        Self {
            name,
            base,
            layout,
            bytes,
        }
    }

    fn pointer(&self) -> *mut u8 {
        self.base.wrapping_add(GUARD)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: from `alloc_zeroed` with this layout, in `new`.
        unsafe { alloc::dealloc(self.base, self.layout) }
    }
}

thread_local! {
    /// All buffers of this OS thread.
    static BUFFERS: RefCell<Vec<Weak<Allocation>>> = const { RefCell::new(Vec::new()) };
    /// True while a launch with checks runs.
    static CHECKING: Cell<bool> = const { Cell::new(false) };
}

/// True if the running kernel's accesses are checked.
#[inline(always)]
pub(crate) fn is_checking() -> bool {
    CHECKING.get()
}

/// Global memory for kernels: kernels that are launched on this thread may access the buffers that exist there, and
/// no other memory but their own.
#[derive(Debug)]
pub struct Buffer<T: Copy> {
    allocation: Rc<Allocation>,
    values: PhantomData<T>,
}

impl<T: Copy> Buffer<T> {
    /// A buffer with these values. Faults call it by its name.
    pub fn new(name: impl Into<String>, values: impl AsRef<[T]>) -> Self {
        const { assert!(align_of::<T>() <= ALIGNMENT) }
        let values = values.as_ref();
        let allocation = Rc::new(Allocation::new(name.into(), size_of_val(values)));
        // SAFETY: the allocation is as long, aligned for every type, and new.
        unsafe {
            ptr::copy_nonoverlapping(values.as_ptr(), allocation.pointer().cast(), values.len());
        }
        BUFFERS.with_borrow_mut(|buffers| {
            buffers.retain(|buffer| buffer.strong_count() > 0);
            buffers.push(Rc::downgrade(&allocation));
        });
        Self {
            allocation,
            values: PhantomData,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.allocation.bytes / size_of::<T>().max(1)
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pointer that a kernel takes.
    pub fn pointer(&self) -> *mut T {
        self.allocation.pointer().cast()
    }

    /// The slice that a kernel takes, which it passes as a pointer and a length on a GPU.
    ///
    /// # Safety
    /// Nothing writes to the buffer while the slice is in use.
    pub unsafe fn slice(&self) -> &[T] {
        // SAFETY: `new` put this number of values there; the caller's promise for the rest.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.len()) }
    }

    /// The values as they are now.
    pub fn to_vec(&self) -> Vec<T> {
        // SAFETY: the copy is complete before anything can write.
        unsafe { self.slice() }.to_vec()
    }
}

/// Extent of a grid or block: a number, or a tuple or array of up to three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent([u32; 3]);

impl From<u32> for Extent {
    fn from(x: u32) -> Self {
        Self([x, 1, 1])
    }
}

impl From<(u32, u32)> for Extent {
    fn from((x, y): (u32, u32)) -> Self {
        Self([x, y, 1])
    }
}

impl From<(u32, u32, u32)> for Extent {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self([x, y, z])
    }
}

impl From<[u32; 3]> for Extent {
    fn from(extent: [u32; 3]) -> Self {
        Self(extent)
    }
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
#[must_use = "a launch does nothing until it is `run`"]
pub struct Launch {
    kernel: String,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    seed: u64,
    checks: bool,
}

impl Launch {
    /// A launch of a grid of blocks, each of which has the threads of `block`.
    #[track_caller]
    pub fn new(grid: impl Into<Extent>, block: impl Into<Extent>) -> Self {
        Self {
            kernel: format!("launched at {}", Location::caller()),
            grid: grid.into().0,
            block: block.into().0,
            shared_bytes: 0,
            seed: 0,
            checks: true,
        }
    }

    /// Gives the kernel a name in faults; without one they say where it was launched.
    pub fn name(self, kernel: impl Into<String>) -> Self {
        let kernel = kernel.into();
        Self { kernel, ..self }
    }

    /// Gives each block dynamic shared memory of this length.
    pub fn shared_bytes(self, shared_bytes: u32) -> Self {
        Self {
            shared_bytes,
            ..self
        }
    }

    /// Lets blocks and threads take turns in another order: 0 is the natural one, and every other number a
    /// permutation, which changes at every barrier. The same seed repeats the same run.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Checks no accesses to memory: faster, and as unsafe as a GPU. Barriers are checked all the same.
    ///
    /// # Safety
    /// The kernel stays within its memory.
    pub unsafe fn unchecked(self) -> Self {
        Self {
            checks: false,
            ..self
        }
    }

    /// Calls `kernel` once for every thread: a closure that calls the kernel with its arguments.
    ///
    /// # Errors
    /// The first fault. Buffers keep what was written until then.
    pub fn run(&self, kernel: impl Fn()) -> Result<(), Failure> {
        let buffers: Vec<Rc<Allocation>> =
            BUFFERS.with_borrow(|buffers| buffers.iter().filter_map(Weak::upgrade).collect());
        let memory: Vec<Region<'_>> = buffers
            .iter()
            .map(|buffer| {
                // SAFETY: the allocation has this length, and `buffers` keeps it. The region is used for its address alone:
                // kernels of this crate follow the buffer's own pointer.
                let bytes =
                    unsafe { std::slice::from_raw_parts_mut(buffer.pointer(), buffer.bytes) };
                Region::of_mut(buffer.name.as_str(), bytes)
            })
            .collect();
        let description = Description {
            kernel: &self.kernel,
            grid: self.grid,
            block: self.block,
            shared_bytes: self.shared_bytes,
            memory: &memory,
            seed: self.seed,
        };
        let _outer = Restore(CHECKING.replace(self.checks));
        launch(&description, &kernel).map_err(Failure)
    }
}

/// The fault that ended a launch. A test that returns it prints the message, as `unwrap` does.
pub struct Failure(pub Fault);

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failure {}

/// Puts back what held before a launch inside another.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        CHECKING.set(self.0);
    }
}
