//! Which accesses to a piece of memory are ordered: the race detector.
//!
//! Only barriers order threads here, and every barrier spans a whole block or a whole warp. So
//! two accesses by different threads of a block are ordered exactly when a block barrier lies
//! between them, or when both threads are of one warp and a warp barrier lies between them. A
//! [`Stamp`] holds what is needed to decide that, and a fixed number of stamps per granule is
//! enough to find every race (see [`remember`]).

use std::ops::Range;
use std::panic::Location;

use super::fault::Access;

/// Thread and time of an access: bits 0–9 the thread in its block, bits 10–35 the number of warp
/// barriers since the last block barrier, bits 36–63 the interval. Every block barrier and every
/// new block starts the next interval, from 1; so no stamp is zero, which stands for "never".
pub(super) type Stamp = u64;

const THREAD_BITS: u32 = 10;
const WARP_EPOCH_BITS: u32 = 26;
const INTERVAL_SHIFT: u32 = THREAD_BITS + WARP_EPOCH_BITS;
/// The bits of a thread index that name its warp.
const WARP_MASK: u64 = 0x3e0;

/// Highest number of intervals in a launch.
pub(super) const MAX_INTERVAL: u64 = (1 << (64 - INTERVAL_SHIFT)) - 1;
/// Highest number of warp barriers in an interval.
pub(super) const MAX_WARP_EPOCH: u64 = (1 << WARP_EPOCH_BITS) - 1;

/// The stamp of an access; the arguments must be within the limits above.
pub(super) fn stamp(interval: u64, warp_epoch: u64, thread: usize) -> Stamp {
    debug_assert!(interval <= MAX_INTERVAL && warp_epoch <= MAX_WARP_EPOCH && thread < 1024);
    interval << INTERVAL_SHIFT | warp_epoch << THREAD_BITS | thread as u64
}

/// The thread that made `stamp`.
pub(super) fn thread_of(stamp: Stamp) -> usize {
    (stamp & ((1 << THREAD_BITS) - 1)) as usize
}

/// The interval of `stamp`.
pub(super) fn interval_of(stamp: Stamp) -> u64 {
    stamp >> INTERVAL_SHIFT
}

/// The running thread's time.
#[derive(Clone, Copy, Default)]
pub(super) struct Clock {
    /// Stamp of an access made now.
    pub(super) now: Stamp,
    /// Smallest stamp that this block can have made.
    pub(super) block_start: Stamp,
    /// The source line that runs.
    pub(super) line: Line,
}

/// A line of source; `None` before the first access.
pub(super) type Line = Option<&'static Location<'static>>;

/// An access that the shadow remembers.
type Mark = (Stamp, Line);

/// True if `earlier` was made by another thread and nothing orders it before now. `GRID` is true of
/// memory that outlives the block: then nothing orders the accesses of an earlier block.
#[inline]
fn concurrent<const GRID: bool>(earlier: Stamp, clock: Clock) -> bool {
    let differ = earlier ^ clock.now;
    if differ >> INTERVAL_SHIFT != 0 {
        return GRID && earlier < clock.block_start && earlier != 0;
    }
    if differ & WARP_MASK != 0 {
        return true;
    }
    differ >> THREAD_BITS == 0 && differ != 0
}

/// Adds an access to the two that stand for all accesses of its kind (reads, or atomics), which
/// may be concurrent with each other.
///
/// Two are enough. One that is ordered before now can be dropped, for whatever is concurrent with
/// it later is concurrent with now as well. If both are concurrent with now, then an access later
/// in the interval conflicts with one of them whenever it conflicts with now, unless all three are
/// of two warps and the two are of the same: so a pair from different warps is preferred. One from
/// an earlier block conflicts with everything.
#[inline]
fn remember<const GRID: bool>(kept: &mut [Mark; 2], clock: Clock) {
    let differ = kept[0].0 ^ clock.now;
    let in_other_warp = differ >> INTERVAL_SHIFT == 0 && differ & WARP_MASK != 0;
    if !concurrent::<GRID>(kept[0].0, clock) {
        kept[0] = (clock.now, clock.line);
    } else if in_other_warp || !concurrent::<GRID>(kept[1].0, clock) {
        kept[1] = (clock.now, clock.line);
    }
}

/// Objection of the shadow memory to an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objection {
    /// Not ordered after this earlier access to the byte at `offset`.
    Race {
        offset: usize,
        earlier: Access,
        by: Stamp,
        line: Line,
    },
    /// This block has not yet written the byte at `offset` (shared memory only).
    Unwritten { offset: usize },
}

/// One granule's last write and two of its reads since. A plain array, so that the allocator
/// can supply zeroed pages which cost nothing until they are touched.
type History = [Mark; 3];

/// The history of a piece of memory, by granules that are as coarse as its accesses allow: memory
/// that is only touched by aligned 16-byte vectors has one history for each of them.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Shadow<const GRID: bool> {
    bytes: usize,
    /// Empty until the first access.
    histories: Vec<History>,
    /// Two atomic accesses each; empty until the first atomic access.
    atomics: Vec<[Mark; 2]>,
    /// log2 of a granule's bytes.
    shift: u32,
}

/// log2 of the bytes of a granule before the first access: above every type's size.
const COARSEST: u32 = 16;

impl<const GRID: bool> Shadow<GRID> {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            histories: Vec::new(),
            atomics: Vec::new(),
            shift: COARSEST,
        }
    }

    /// Checks an access to `bytes` bytes at `offset`, within the memory, and notes it.
    #[inline]
    pub(super) fn access(
        &mut self,
        access: Access,
        offset: usize,
        bytes: usize,
        clock: Clock,
    ) -> Result<(), Objection> {
        if (offset | bytes).trailing_zeros() < self.shift {
            self.refine((offset | bytes).trailing_zeros());
        }
        if self.histories.is_empty() {
            self.histories = vec![[(0, None); 3]; self.granules()];
        }
        let granules = offset >> self.shift..(offset + bytes) >> self.shift;
        match access {
            Access::Read => self.read(granules, clock),
            Access::Write => self.write(granules, clock),
            Access::Atomic => self.atomic(granules, clock),
        }
    }

    #[inline]
    fn read(&mut self, granules: Range<usize>, clock: Clock) -> Result<(), Objection> {
        for granule in granules {
            let [write, first, second] = self.histories[granule];
            if first.0 == clock.now {
                // A stamp lasts one uninterrupted turn, so the check of the last read still holds.
                continue;
            }
            self.check_written(granule, write.0, clock)?;
            self.order(granule, Access::Write, write, clock)?;
            if !self.atomics.is_empty() {
                self.order_pair(granule, Access::Atomic, self.atomics[granule], clock)?;
            }
            let mut reads = [first, second];
            remember::<GRID>(&mut reads, clock);
            self.histories[granule] = [write, reads[0], reads[1]];
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, granules: Range<usize>, clock: Clock) -> Result<(), Objection> {
        for granule in granules {
            let [write, first, second] = self.histories[granule];
            self.order(granule, Access::Write, write, clock)?;
            self.order_pair(granule, Access::Read, [first, second], clock)?;
            if !self.atomics.is_empty() {
                self.order_pair(granule, Access::Atomic, self.atomics[granule], clock)?;
            }
            self.histories[granule] = [(clock.now, clock.line), (0, None), (0, None)];
        }
        Ok(())
    }

    fn atomic(&mut self, granules: Range<usize>, clock: Clock) -> Result<(), Objection> {
        if self.atomics.is_empty() {
            self.atomics = vec![[(0, None); 2]; self.granules()];
        }
        for granule in granules {
            let [write, first, second] = self.histories[granule];
            self.check_written(granule, write.0, clock)?;
            self.order(granule, Access::Write, write, clock)?;
            self.order_pair(granule, Access::Read, [first, second], clock)?;
            remember::<GRID>(&mut self.atomics[granule], clock);
        }
        Ok(())
    }

    /// Memory that belongs to the block starts without contents; memory of the grid was filled
    /// by the host.
    #[inline]
    fn check_written(&self, granule: usize, write: Stamp, clock: Clock) -> Result<(), Objection> {
        if !GRID && write < clock.block_start {
            return Err(Objection::Unwritten {
                offset: granule << self.shift,
            });
        }
        Ok(())
    }

    #[inline]
    fn order(
        &self,
        granule: usize,
        kind: Access,
        (earlier, line): Mark,
        clock: Clock,
    ) -> Result<(), Objection> {
        if concurrent::<GRID>(earlier, clock) {
            return Err(Objection::Race {
                offset: granule << self.shift,
                earlier: kind,
                by: earlier,
                line,
            });
        }
        Ok(())
    }

    #[inline]
    fn order_pair(
        &self,
        granule: usize,
        kind: Access,
        earlier: [Mark; 2],
        clock: Clock,
    ) -> Result<(), Objection> {
        self.order(granule, kind, earlier[0], clock)?;
        self.order(granule, kind, earlier[1], clock)
    }

    fn granules(&self) -> usize {
        self.bytes.div_ceil(1 << self.shift)
    }

    /// Splits the granules, so that neighbouring small elements are not mistaken for one. Each
    /// part inherits the history of the whole: until now every access covered whole granules.
    #[cold]
    fn refine(&mut self, shift: u32) {
        let parts = 1 << (self.shift - shift);
        self.shift = shift;
        let granules = self.granules();
        self.histories = split(&self.histories, parts, granules);
        self.atomics = split(&self.atomics, parts, granules);
    }
}

/// Repeats each item `parts` times, for `length` items in all.
fn split<T: Copy>(whole: &[T], parts: usize, length: usize) -> Vec<T> {
    whole
        .iter()
        .flat_map(|&item| std::iter::repeat_n(item, parts))
        .take(length)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Access, Clock, Objection, Shadow, stamp};

    /// An access as the oracle remembers it.
    struct Event {
        access: Access,
        block: u64,
        interval: u64,
        epoch: u64,
        thread: usize,
        bytes: std::ops::Range<usize>,
    }

    /// The definition of a race of two accesses, word for word.
    fn race(a: &Event, b: &Event) -> bool {
        let overlap = a.bytes.start < b.bytes.end && b.bytes.start < a.bytes.end;
        let conflict = match (a.access, b.access) {
            (Access::Read, Access::Read) | (Access::Atomic, Access::Atomic) => false,
            _ => (a.block, a.thread) != (b.block, b.thread),
        };
        let block_barrier = a.block == b.block && a.interval != b.interval;
        let warp_barrier =
            a.block == b.block && a.thread / 32 == b.thread / 32 && a.epoch != b.epoch;
        overlap && conflict && !block_barrier && !warp_barrier
    }

    /// Random accesses of few threads to few bytes: the shadow must object to exactly those that
    /// the oracle finds wrong. Those are then left out. Returns how many raced.
    fn compare<const GRID: bool>(random: &mut impl FnMut(usize) -> usize) -> usize {
        const THREADS: [usize; 6] = [0, 1, 2, 32, 33, 64];
        let mut shadow = Shadow::<GRID>::new(10);
        let mut events: Vec<Event> = Vec::new();
        let (mut block, mut interval, mut block_start) = (0, 1, stamp(1, 0, 0));
        let mut epochs = [0; 3];
        let mut written = [false; 10];
        let mut races = 0;
        for _ in 0..200 {
            match random(40) {
                0 => {
                    (block, interval, epochs) = (block + 1, interval + 1, [0; 3]);
                    block_start = stamp(interval, 0, 0);
                    if !GRID {
                        events.clear();
                        written.fill(false);
                    }
                }
                1 => (interval, epochs) = (interval + 1, [0; 3]),
                2..10 => epochs[random(3)] += 1,
                _ => {}
            }
            let thread = THREADS[random(6)];
            let epoch = epochs[thread / 32];
            let access = [Access::Write, Access::Atomic, Access::Read, Access::Read][random(4)];
            let size = [4, 4, 4, 8, 2, 1][random(6)];
            let offset = random(10 / size) * size;
            let bytes = offset..offset + size;
            let event = Event {
                access,
                block,
                interval,
                epoch,
                thread,
                bytes: bytes.clone(),
            };
            let raced = events.iter().any(|earlier| race(earlier, &event));
            let empty = written[bytes.clone()].contains(&false);
            let unwritten = !GRID && access != Access::Write && empty;

            let clock = Clock {
                now: stamp(interval, epoch, thread),
                block_start,
                line: None,
            };
            let before = shadow.clone();
            match shadow.access(access, offset, size, clock) {
                Ok(()) => {
                    assert!(!raced && !unwritten, "missed at event {}", events.len());
                    written[bytes].fill(access == Access::Write || !empty);
                    events.push(event);
                    continue;
                }
                Err(Objection::Unwritten { .. }) => assert!(unwritten, "written at {offset}"),
                Err(Objection::Race { .. }) => assert!(raced, "no race at event {}", events.len()),
            }
            races += usize::from(raced);
            shadow = before;
        }
        races
    }

    #[test]
    fn finds_exactly_the_races_that_the_definition_has() {
        let mut state = 1_u64;
        let mut random = move |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % bound
        };
        let (mut shared, mut global) = (0, 0);
        for _ in 0..1000 {
            shared += compare::<false>(&mut random);
            global += compare::<true>(&mut random);
        }
        for races in [shared, global] {
            assert!(
                (20_000..180_000).contains(&races),
                "{races} races of 200000 say little"
            );
        }
    }
}
