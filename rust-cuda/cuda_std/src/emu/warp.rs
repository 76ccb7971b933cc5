//! What the lanes of a warp share: a count of their collectives, and mail.

use std::cell::{Cell, RefCell};

/// Threads in a warp.
pub(super) const WARP: usize = crate::warp::WARP_SIZE as usize;

#[derive(Default)]
pub(super) struct Warp {
    epoch: Cell<u64>,
    /// A lane that is resumed may reach the next collective before another has read this one's
    /// mail, hence two boxes by turns.
    boxes: RefCell<[Vec<u32>; 2]>,
    /// Which box takes deposits.
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

    /// Leaves what `lane` brings to the coming collective. Returns the box that it is in.
    pub(super) fn deposit(&self, lane: usize, payload: &[u32]) -> usize {
        let (turn, words) = (self.turn.get(), payload.len());
        let mail = &mut self.boxes.borrow_mut()[turn];
        if mail.len() < WARP * words {
            mail.resize(WARP * words, 0);
        }
        mail[lane * words..][..words].copy_from_slice(payload);
        turn
    }

    /// Passes the mail of box `turn` to `read`: lane after lane, and then whatever longer mail has
    /// left there.
    pub(super) fn read<R>(&self, turn: usize, read: impl FnOnce(&[u32]) -> R) -> R {
        read(&self.boxes.borrow()[turn])
    }
}
