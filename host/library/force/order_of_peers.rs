//! Order of accesses to one memory by several devices, each of which works through a queue of its own:
//! finds accesses that nothing orders.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Work that a device has queued, and how much of the work that others have queued is done before what it queues next.
#[derive(Debug)]
pub(super) struct Clock {
    /// No two clocks have the same.
    device: u64,
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
struct Times {
    /// Accesses of this device.
    now: u64,
    /// Of other devices, the last access that this one waits for.
    waited: HashMap<u64, u64>,
}

/// Accesses to a buffer that later ones have to wait for.
#[derive(Debug)]
pub(super) struct History {
    /// The device that has the buffer, and alone writes to it.
    owner: u64,
    writes: Vec<(Range<usize>, u64)>,
    /// By other devices.
    reads: Vec<(Range<usize>, u64, u64)>,
}

impl Clock {
    pub(super) fn new() -> Self {
        static DEVICES: AtomicU64 = AtomicU64::new(0);
        Self {
            device: DEVICES.fetch_add(1, Ordering::Relaxed),
            times: Mutex::default(),
        }
    }

    /// Lets each wait for all that the others have queued so far.
    pub(super) fn meet<'a>(clocks: impl Iterator<Item = &'a Self> + Clone) {
        let now: Vec<_> = clocks.clone().map(|c| (c.device, c.times().now)).collect();
        clocks.for_each(|clock| clock.times().waited.extend(now.iter().copied()));
    }

    fn tick(&self) -> u64 {
        let mut times = self.times();
        times.now += 1;
        times.now
    }

    /// True if all that this device queues from now on comes after that access of another.
    fn is_after(&self, device: u64, time: u64) -> bool {
        let waited = self.times().waited.get(&device).copied();
        device == self.device || waited.is_some_and(|waited| time <= waited)
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    pub(super) fn new(owner: &Clock) -> Self {
        Self {
            owner: owner.device,
            writes: vec![],
            reads: vec![],
        }
    }

    /// # Panics
    /// If another device may be writing these bytes.
    pub(super) fn read(&mut self, reader: &Clock, bytes: Range<usize>) {
        let unordered = |(written, time): &&(Range<usize>, u64)| {
            overlap(written, &bytes) && !reader.is_after(self.owner, *time)
        };
        if let Some((written, _)) = self.writes.iter().find(unordered) {
            panic!("bytes {bytes:?} are read while another device may be writing {written:?}");
        }
        let time = reader.tick();
        if reader.device != self.owner {
            self.reads.push((bytes, reader.device, time));
        }
    }

    /// # Panics
    /// If another device may be reading these bytes.
    pub(super) fn write(&mut self, writer: &Clock, bytes: Range<usize>) {
        assert_eq!(writer.device, self.owner, "devices write their own memory");
        self.reads
            .retain(|(_, reader, time)| !writer.is_after(*reader, *time));
        if let Some((read, ..)) = self.reads.iter().find(|(read, ..)| overlap(read, &bytes)) {
            panic!("bytes {bytes:?} are written while another device may be reading {read:?}");
        }
        let time = writer.tick();
        let within = |old: &Range<usize>| bytes.start <= old.start && old.end <= bytes.end;
        self.writes.retain(|(old, _)| !within(old));
        self.writes.push((bytes, time));
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(a: &Clock, b: &Clock) {
        Clock::meet([a, b].into_iter());
    }

    #[test]
    fn devices_that_meet_read_and_write_in_turns() {
        let (a, b) = (Clock::new(), Clock::new());
        let mut memory = History::new(&a);
        for _ in 0..3 {
            memory.write(&a, 0..16);
            memory.read(&a, 0..16);
            meet(&a, &b);
            memory.read(&b, 0..8);
            memory.write(&a, 8..16); // which the other does not read
            meet(&a, &b);
        }
    }

    #[test]
    #[should_panic(expected = "may be writing")]
    fn a_read_that_does_not_wait_is_found() {
        let (a, b) = (Clock::new(), Clock::new());
        let mut memory = History::new(&a);
        memory.write(&a, 0..8);
        meet(&a, &b);
        memory.write(&a, 4..16);
        memory.read(&b, 0..8);
    }

    #[test]
    #[should_panic(expected = "may be reading")]
    fn a_write_that_does_not_wait_is_found() {
        let (a, b) = (Clock::new(), Clock::new());
        let mut memory = History::new(&a);
        memory.write(&a, 0..8);
        meet(&a, &b);
        memory.read(&b, 0..8);
        memory.write(&a, 7..9);
    }
}
