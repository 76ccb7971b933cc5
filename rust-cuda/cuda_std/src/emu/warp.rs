//! State shared by the lanes of a warp: a count of their collectives, and the values they exchange.

use std::cell::{Cell, RefCell};

/// Threads in a warp.
pub(super) const WARP: usize = crate::warp::WARP_SIZE as usize;

#[derive(Default)]
pub(super) struct Warp {
    epoch: Cell<u64>,
    /// Exchanged values. A lane that is resumed may reach the next collective before another has read
    /// the values of this one, hence two buffers by turns.
    buffers: RefCell<[Vec<u32>; 2]>,
    /// Index of the buffer that takes deposits.
    turn: Cell<usize>,
}

impl Warp {
    /// Collectives completed since the last block barrier.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    pub(super) fn set_epoch(&self, epoch: u64) {
        self.epoch.set(epoch);
    }

    /// All lanes have met.
    pub(super) fn complete(&self) {
        self.epoch.set(self.epoch.get() + 1);
        self.turn.set(1 - self.turn.get());
    }

    /// Deposits the values of `lane` for the coming collective. Returns the index of their buffer.
    pub(super) fn deposit(&self, lane: usize, payload: &[u32]) -> usize {
        let (turn, words) = (self.turn.get(), payload.len());
        let buffer = &mut self.buffers.borrow_mut()[turn];
        if buffer.len() < WARP * words {
            buffer.resize(WARP * words, 0);
        }
        buffer[lane * words..][..words].copy_from_slice(payload);
        turn
    }

    /// Passes the values in buffer `turn` to `read`: lane after lane, followed by remains of earlier,
    /// longer ones.
    pub(super) fn read<R>(&self, turn: usize, read: impl FnOnce(&[u32]) -> R) -> R {
        read(&self.buffers.borrow()[turn])
    }
}
