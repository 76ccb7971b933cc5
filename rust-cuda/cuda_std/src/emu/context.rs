//! Context of a kernel's thread when it calls the emulator: the launch that it is part of.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, Location};
use std::ptr;

use corosensei::Yielder;

use super::fault::{Collective, Fault, Place, Spot};
use super::launch::{Launch, MAX_SHARED, MAX_STATIC_SHARED};
use super::memory::{Attempt, Byte, GlobalMemory, Piece, Refusal, SharedMemory, nearest};
use super::order::Stride;
use super::panics;
use super::shadow::{self, Clock};
use super::warp::{WARP, Warp};

/// Stands for the thread that runs while the scheduler does.
const NOBODY: usize = usize::MAX;

/// Why a fibre suspended itself.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    pub(super) collective: Collective,
    pub(super) at: &'static Location<'static>,
}

/// The fibre's end of its connection to the scheduler.
pub(super) type Suspender = Yielder<(), Wait>;

thread_local! {
    /// The launch whose kernel this OS thread runs; null outside of kernels.
    static CURRENT: Cell<*const Context<'static>> = const { Cell::new(ptr::null()) };
}

/// Payload of the unwinding that ends a fibre after a fault; the fault itself is in the context.
struct Stopped;

/// An array in the blocks' static shared memory.
struct Array {
    /// Address of what stands for its declaration.
    site: usize,
    /// Source line of the declaration.
    at: &'static Location<'static>,
    memory: SharedMemory,
}

/// A pointer that a kernel follows by itself, as far as the caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// It may be anything, and has to be to memory of the launch or of the thread.
    Raw,
    /// It is a reference, which may be to any memory of the program.
    Reference,
}

/// Distance from a region within which a reference cannot be to something else.
const GUARD: usize = 4096;

/// One launch, as seen by its threads. All of them are fibres of one OS thread, so cells suffice;
/// no borrow of a `RefCell` lasts across a suspension.
pub(super) struct Context<'a> {
    launch: &'a Launch<'a>,
    /// In what order the blocks run.
    blocks: Stride,
    /// Index in the block of every thread.
    coordinates: Vec<[u32; 3]>,
    block: Cell<[u32; 3]>,
    /// The thread whose fibre runs, or [`NOBODY`].
    running: Cell<usize>,
    clock: Cell<Clock>,
    interval: Cell<u64>,
    /// First interval of each block that has started, in the order of their starts.
    block_starts: RefCell<Vec<u64>>,
    suspenders: Vec<Cell<*const Suspender>>,
    /// Where the stack of each thread ends.
    stack_ends: Vec<usize>,
    warps: Vec<Warp>,
    /// Threads that have passed `true` to the coming `sync_threads_count`.
    votes: Cell<u32>,
    /// Result of the last `sync_threads_count`.
    count: Cell<u32>,
    shared: RefCell<SharedMemory>,
    arrays: RefCell<Vec<Array>>,
    global: RefCell<GlobalMemory>,
    fault: Cell<Option<Fault>>,
}

/// Calls `f` with the launch of the running kernel.
#[inline]
#[track_caller]
pub(super) fn with<R>(f: impl FnOnce(&Context<'_>) -> R) -> R {
    let context = CURRENT.get();
    if context.is_null() {
        outside();
    }
    // SAFETY: only `Context::run` sets the pointer, to a context that it borrows, and resets it when
    // the fibre gives control back.
    f(unsafe { &*context })
}

#[cold]
#[track_caller]
fn outside() -> ! {
    panic!("device function called outside of a kernel: run the kernel with `emu::launch`");
}

/// True if this OS thread runs a kernel already.
#[inline]
pub(super) fn in_kernel() -> bool {
    !CURRENT.get().is_null()
}

// What the scheduler does with a launch.
impl<'a> Context<'a> {
    pub(super) fn new(launch: &'a Launch<'a>, blocks: Stride, stack_ends: Vec<usize>) -> Self {
        let [x, y, z] = launch.block;
        let coordinates: Vec<_> = (0..z)
            .flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
            .collect();
        Self {
            launch,
            blocks,
            block: Cell::default(),
            running: Cell::new(NOBODY),
            clock: Cell::default(),
            interval: Cell::new(0),
            block_starts: RefCell::default(),
            stack_ends,
            suspenders: coordinates.iter().map(|_| Cell::new(ptr::null())).collect(),
            warps: coordinates.chunks(WARP).map(|_| Warp::default()).collect(),
            votes: Cell::new(0),
            count: Cell::new(0),
            shared: RefCell::new(SharedMemory::new(
                launch.shared_bytes as usize,
                Piece::Shared,
            )),
            arrays: RefCell::default(),
            global: RefCell::new(GlobalMemory::new(launch.memory)),
            fault: Cell::new(None),
            coordinates,
        }
    }

    /// Index in the block of thread number `thread`.
    pub(super) fn coordinates(&self, thread: usize) -> [u32; 3] {
        self.coordinates[thread]
    }

    /// Starts the block that comes at `position` in the order of execution.
    pub(super) fn start_block(&self, position: u64) -> Result<(), Fault> {
        self.next_interval()?;
        self.block.set(self.block_at(position));
        self.block_starts.borrow_mut().push(self.interval.get());
        let block_start = shadow::stamp(self.interval.get(), 0, 0);
        self.clock.set(Clock {
            now: block_start,
            block_start,
            line: None,
        });
        Ok(())
    }

    fn block_at(&self, position: u64) -> [u32; 3] {
        let [x, y, _] = self.launch.grid.map(u64::from);
        let index = self.blocks.at(position);
        [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / x / y) as u32,
        ]
    }

    /// A block barrier: orders all threads of the block.
    pub(super) fn complete_block(&self, collective: Collective) -> Result<(), Fault> {
        if collective == Collective::SyncThreadsCount {
            self.count.set(self.votes.take());
        }
        self.next_interval()
    }

    fn next_interval(&self) -> Result<(), Fault> {
        if self.interval.get() == shadow::MAX_INTERVAL {
            return Err(self.too_long("blocks and block barriers", shadow::MAX_INTERVAL));
        }
        self.interval.set(self.interval.get() + 1);
        self.warps.iter().for_each(|warp| warp.set_epoch(0));
        Ok(())
    }

    /// A warp collective: orders the threads of the warp.
    pub(super) fn complete_warp(&self, warp: usize) -> Result<(), Fault> {
        let warp = &self.warps[warp];
        if warp.epoch() == shadow::MAX_WARP_EPOCH {
            let what = "warp collectives between two block barriers";
            return Err(self.too_long(what, shadow::MAX_WARP_EPOCH));
        }
        warp.complete();
        Ok(())
    }

    fn too_long(&self, what: &'static str, limit: u64) -> Fault {
        Fault::TooLong {
            kernel: self.launch.kernel.to_owned(),
            what,
            limit,
        }
    }

    /// Calls `resume`, which must run the fibre of `thread` until it suspends itself or ends, as
    /// the running kernel. Fails if the fibre met a fault.
    pub(super) fn run<R>(&self, thread: usize, resume: impl FnOnce() -> R) -> Result<R, Fault> {
        let epoch = self.warps[thread / WARP].epoch();
        let now = shadow::stamp(self.interval.get(), epoch, thread);
        self.clock.set(Clock {
            now,
            ..self.clock.get()
        });
        self.running.set(thread);
        // The pointer is used only by the fibre, and so within this call.
        let outer = CURRENT.replace(ptr::from_ref(self).cast());
        let result = resume();
        CURRENT.set(outer);
        self.running.set(NOBODY);
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(result),
        }
    }

    /// Body of a fibre: runs the kernel and turns its panic into a fault.
    pub(super) fn run_kernel(&self, suspender: &Suspender, kernel: &dyn Fn()) {
        self.suspenders[self.running.get()].set(suspender);
        let Err(payload) = panic::catch_unwind(AssertUnwindSafe(kernel)) else {
            return;
        };
        // Either the fault is noted already, or the scheduler unwinds a suspended fibre after
        // another thread's fault.
        if payload.is::<Stopped>() || self.running.get() == NOBODY {
            return;
        }
        let panics::Note { message, at } = panics::describe(&*payload);
        let place = Box::new(self.place(self.running.get(), at));
        self.fault.set(Some(Fault::Panic { place, message }));
    }

    /// Place of `thread` of the running block at the source line `at`.
    pub(super) fn place(&self, thread: usize, at: String) -> Place {
        Place {
            kernel: self.launch.kernel.to_owned(),
            seed: self.launch.seed,
            block: self.block.get(),
            thread: self.coordinates[thread],
            at,
        }
    }
}

// What the running thread does.
impl Context<'_> {
    #[inline]
    pub(super) fn thread_idx(&self) -> [u32; 3] {
        self.coordinates[self.running.get()]
    }

    #[inline]
    pub(super) fn lane(&self) -> u32 {
        (self.running.get() % WARP) as u32
    }

    #[inline]
    pub(super) fn block_idx(&self) -> [u32; 3] {
        self.block.get()
    }

    #[inline]
    pub(super) fn launch(&self) -> &Launch<'_> {
        self.launch
    }

    /// Waits until the scheduler has seen every thread of the block or warp at this collective.
    pub(super) fn meet(&self, collective: Collective, at: &'static Location<'static>) {
        let suspender = self.suspenders[self.running.get()].get();
        // SAFETY: set by the running fibre's own `run_kernel`, whose argument outlives the kernel.
        unsafe { &*suspender }.suspend(Wait { collective, at });
    }

    /// Block barrier that counts the threads which pass `true`.
    pub(super) fn count(&self, predicate: bool, at: &'static Location<'static>) -> u32 {
        self.votes.set(self.votes.get() + u32::from(predicate));
        self.meet(Collective::SyncThreadsCount, at);
        self.count.get()
    }

    /// Deposits `payload`, waits for the warp's other lanes, and reads what all of its `width`
    /// existing lanes deposited: `read(all, width)` with lane `l`'s payload at `l * payload.len()`.
    pub(super) fn post<R>(
        &self,
        collective: Collective,
        payload: &[u32],
        at: &'static Location<'static>,
        read: impl FnOnce(&[u32], usize) -> R,
    ) -> R {
        let thread = self.running.get();
        let (warp, lane) = (&self.warps[thread / WARP], thread % WARP);
        let turn = warp.deposit(lane, payload);
        self.meet(collective, at);
        let width = (self.coordinates.len() - (thread - lane)).min(WARP);
        warp.read(turn, |mail| read(&mail[..width * payload.len()], width))
    }

    /// Checks an access to shared memory and finds its first byte.
    #[inline]
    pub(super) fn shared(&self, attempt: Attempt, at: &'static Location<'static>) -> *mut u8 {
        let checked = self.shared.borrow_mut().check(attempt, self.clock(at));
        checked.unwrap_or_else(|refusal| self.refuse(attempt, refusal, Piece::Shared, at))
    }

    /// Checks an access to global memory.
    #[inline]
    pub(super) fn global(&self, attempt: Attempt, at: &'static Location<'static>) {
        let checked = self.global.borrow_mut().check(attempt, self.clock(at));
        if let Err(refusal) = checked {
            self.refuse(attempt, refusal, Piece::Region(0), at);
        }
    }

    /// Checks an access, by an address of the host, that the kernel then makes itself.
    #[inline]
    pub(super) fn touch(&self, attempt: Attempt, pointer: Pointer, at: &'static Location<'static>) {
        let checked = self.global.borrow_mut().check(attempt, self.clock(at));
        match checked {
            Ok(()) => {}
            Err(Refusal::Bounds) => self.touch_block(attempt, pointer, at),
            Err(refusal) => self.refuse(attempt, refusal, Piece::Region(0), at),
        }
    }

    /// Checks an access to something else than a region.
    fn touch_block(&self, attempt: Attempt, pointer: Pointer, at: &'static Location<'static>) {
        let checked = self.in_block(attempt.address, |memory, offset| {
            let attempt = Attempt {
                address: offset,
                ..attempt
            };
            let checked = memory.check(attempt, self.clock(at));
            (attempt, memory.piece(), checked)
        });
        match checked {
            Some((_, _, Ok(_))) => {}
            Some((attempt, piece, Err(refusal))) => self.refuse(attempt, refusal, piece, at),
            None => self.be_known(attempt, pointer, at),
        }
    }

    /// Checks the bounds of what the kernel makes a reference to.
    pub(super) fn borrow(
        &self,
        attempt: Attempt,
        pointer: Pointer,
        at: &'static Location<'static>,
    ) {
        let Attempt { address, bytes, .. } = attempt;
        let region = self.global.borrow_mut().locate(address, bytes);
        let found = region
            .map(|(index, offset)| (Piece::Region(index), offset, true))
            .or_else(|| {
                self.in_block(address, |memory, offset| {
                    (memory.piece(), offset, offset + bytes <= memory.len())
                })
            });
        let Some((piece, offset, is_inside)) = found else {
            return self.be_known(attempt, pointer, at);
        };
        let attempt = Attempt {
            address: offset,
            ..attempt
        };
        if !is_inside {
            self.refuse(attempt, Refusal::Bounds, piece, at);
        }
        if !offset.is_multiple_of(attempt.alignment) {
            let byte = Byte {
                place: piece,
                offset,
            };
            self.refuse(attempt, Refusal::Misaligned(byte), piece, at);
        }
    }

    /// Passes the piece of the block's memory that has the address, and the offset in it, to `f`.
    fn in_block<R>(
        &self,
        address: usize,
        f: impl FnOnce(&mut SharedMemory, usize) -> R,
    ) -> Option<R> {
        let mut shared = self.shared.borrow_mut();
        if let Some(offset) = shared.offset_of(address) {
            return Some(f(&mut shared, offset));
        }
        let mut arrays = self.arrays.borrow_mut();
        let mut all = arrays.iter_mut().map(|array| &mut array.memory);
        let (memory, offset) = all.find_map(|memory| {
            let offset = memory.offset_of(address)?;
            Some((memory, offset))
        })?;
        Some(f(memory, offset))
    }

    /// True of an address on the stack of the running fibre, above the callee's own variables.
    #[inline]
    fn is_on_stack(&self, address: usize) -> bool {
        let lowest = 0_u8;
        ((&raw const lowest).addr()..self.stack_ends[self.running.get()]).contains(&address)
    }

    /// A fault, unless what is not the launch's memory can be something else.
    fn be_known(&self, attempt: Attempt, pointer: Pointer, at: &'static Location<'static>) {
        if self.is_on_stack(attempt.address) {
            return;
        }
        let near = self.global.borrow().is_near(attempt.address, GUARD);
        if pointer == Pointer::Raw || near {
            self.refuse(attempt, Refusal::Bounds, Piece::Region(0), at);
        }
    }

    /// First byte of the block's dynamic shared memory.
    pub(super) fn shared_pointer(&self) -> *mut u8 {
        self.shared.borrow_mut().pointer()
    }

    /// First byte of the block's static array that is declared at `site`.
    pub(super) fn array(
        &self,
        site: usize,
        bytes: usize,
        at: &'static Location<'static>,
    ) -> *mut u8 {
        let mut arrays = self.arrays.borrow_mut();
        if let Some(array) = arrays.iter_mut().find(|array| array.site == site) {
            return array.memory.pointer();
        }
        let total = bytes + arrays.iter().map(|array| array.memory.len()).sum::<usize>();
        let dynamic = self.launch.shared_bytes as usize;
        let limit = MAX_STATIC_SHARED.min(MAX_SHARED as usize - dynamic);
        if total > limit {
            let reason = format!(
                "{total} bytes of static shared memory are above {limit}, with the array of {at}"
            );
            drop(arrays);
            self.stop(Fault::Geometry {
                kernel: self.launch.kernel.to_owned(),
                reason,
            });
        }
        let mut memory = SharedMemory::new(bytes, Piece::Array(arrays.len()));
        let pointer = memory.pointer();
        arrays.push(Array { site, at, memory });
        pointer
    }

    #[inline]
    fn clock(&self, at: &'static Location<'static>) -> Clock {
        Clock {
            line: Some(at),
            ..self.clock.get()
        }
    }
}

// How the running thread ends the launch.
impl Context<'_> {
    fn stop(&self, fault: Fault) -> ! {
        self.fault.set(Some(fault));
        // Unlike `panic_any` this calls no panic hook.
        panic::resume_unwind(Box::new(Stopped))
    }

    fn here(&self, at: &Location<'_>) -> Box<Place> {
        Box::new(self.place(self.running.get(), at.to_string()))
    }

    #[cold]
    pub(super) fn missing_lane(&self, lane: u32, width: usize, at: &Location<'_>) -> ! {
        self.stop(Fault::ShuffleLane {
            place: self.here(at),
            lane,
            width,
        })
    }

    #[cold]
    fn refuse(&self, attempt: Attempt, refusal: Refusal, piece: Piece, at: &Location<'_>) -> ! {
        let Attempt {
            access,
            address,
            bytes,
            alignment,
        } = attempt;
        let place = self.here(at);
        let spot = |offset| {
            self.spot(Byte {
                place: piece,
                offset,
            })
        };
        self.stop(match (refusal, piece) {
            (Refusal::Bounds, Piece::Shared) => Fault::SharedBounds {
                place,
                access,
                spot: spot(address),
                bytes,
                available: self.shared.borrow().len(),
            },
            (Refusal::Bounds, Piece::Array(index)) => Fault::SharedBounds {
                place,
                access,
                spot: spot(address),
                bytes,
                available: self.arrays.borrow()[index].memory.len(),
            },
            (Refusal::Bounds, Piece::Region(_)) => {
                let nearest = nearest(self.launch.memory, address);
                Fault::GlobalBounds {
                    place,
                    access,
                    address,
                    bytes,
                    nearest,
                }
            }
            (Refusal::Misaligned(byte), _) => Fault::Misaligned {
                place,
                access,
                spot: self.spot(byte),
                alignment,
            },
            (Refusal::ReadOnly(byte), _) => Fault::ReadOnly {
                place,
                access,
                spot: self.spot(byte),
            },
            (Refusal::Unwritten(byte), _) => Fault::Uninitialised {
                place,
                spot: spot(address),
                bytes,
                unwritten: byte.offset,
            },
            (
                Refusal::Race {
                    byte,
                    earlier,
                    by,
                    line,
                },
                _,
            ) => Fault::Race {
                place,
                access,
                spot: self.spot(byte),
                earlier,
                other_block: self.block_in(shadow::interval_of(by)),
                other_thread: self.coordinates[shadow::thread_of(by)],
                other_at: line.map_or_else(String::new, Location::to_string),
            },
        })
    }

    fn spot(&self, byte: Byte) -> Spot {
        match byte.place {
            Piece::Shared => Spot::Shared {
                address: byte.offset,
            },
            Piece::Array(index) => Spot::Array {
                at: self.arrays.borrow()[index].at,
                offset: byte.offset,
            },
            Piece::Region(index) => Spot::Global {
                region: self.launch.memory[index].name().to_owned(),
                offset: byte.offset,
            },
        }
    }

    /// The block that ran in `interval`.
    fn block_in(&self, interval: u64) -> [u32; 3] {
        let started = self
            .block_starts
            .borrow()
            .partition_point(|&start| start <= interval);
        self.block_at(started as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Order;
    use super::{Context, Fault, Launch, shadow};

    #[test]
    fn counters_that_are_full_end_the_launch() {
        let (grid, block) = ([2, 1, 1], [32, 1, 1]);
        let launch = Launch {
            kernel: "long",
            grid,
            block,
            shared_bytes: 0,
            memory: &[],
            seed: 0,
        };
        let context = Context::new(&launch, Order::new(0).stride(2), vec![0]);
        assert!(context.start_block(0).is_ok() && context.complete_warp(0).is_ok());
        context.warps[0].set_epoch(shadow::MAX_WARP_EPOCH);
        assert!(matches!(
            context.complete_warp(0),
            Err(Fault::TooLong { .. })
        ));
        context.interval.set(shadow::MAX_INTERVAL);
        assert!(matches!(context.start_block(1), Err(Fault::TooLong { .. })));
    }
}
