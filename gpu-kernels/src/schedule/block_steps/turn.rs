//! The turn from one block step to the next: what the clock and the posts of all blocks say, and what a
//! block tells the others for the next launch.

use cuda_std::{global, thread};

use super::posts::{Control, Post, Posts};
use super::{SPAN, TOO_FINE, clock};

/// The clock and the posts, of which a launch reads those of one parity and writes those of the other.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// Posts of both parities.
    pub(super) posts: *mut u64,
    /// The clock.
    pub(super) time: *mut u64,
    /// The parity that is read.
    pub(super) parity: u32,
}

impl Turn {
    /// Time and posts; none where the span is over, or a body needs shorter steps than there are, which
    /// stops the clock. Ends with a barrier, if there is something.
    ///
    /// # Safety
    /// All threads call it; posts and clock are those of as many blocks as the grid has, and nobody
    /// writes this parity's in this launch.
    #[inline(always)]
    pub(super) unsafe fn read<const REGULAR: bool>(self, control: Control) -> Option<(u64, Posts)> {
        let Self { time, parity, .. } = self;
        // SAFETY: the caller's promise; words of the other parity are written by one thread.
        unsafe {
            let now = global::load(time, clock::NOW + parity);
            if now >= SPAN {
                if is_first() {
                    global::store(time, clock::NOW + (parity ^ 1), now);
                }
                return None;
            }
            let posts = self
                .posts
                .wrapping_add((parity * thread::grid_dim_x()) as usize);
            let posts = control.read_posts::<REGULAR>(posts);
            if posts.finest == TOO_FINE {
                if is_first() {
                    global::store(time, clock::NOW + (parity ^ 1), clock::STOPPED);
                    global::store(time, clock::BODY, u64::from(posts.body));
                }
                return None;
            }
            Some((now, posts))
        }
    }

    /// Counts a block step of these posts, and its regular steps at a word of the clock, if there is one for
    /// them; or a launch for a time that was guessed wrong.
    ///
    /// # Safety
    /// The clock has the words, and nobody else writes them in this launch.
    #[inline(always)]
    pub(super) unsafe fn count(self, posts: &Posts, regular: Option<u32>) {
        if !is_first() {
            return;
        }
        // SAFETY: the caller's promise; one thread of the launch adds.
        unsafe {
            let add = |word, more: u64| {
                global::store(self.time, word, global::load(self.time, word) + more);
            };
            if posts.agreed {
                add(clock::BLOCKS, 1);
                add(clock::EVALUATIONS, u64::from(posts.active));
                if let Some(word) = regular {
                    add(word, u64::from(posts.regular));
                }
                let finest = global::load(self.time, clock::FINEST);
                global::store(
                    self.time,
                    clock::FINEST,
                    finest.max(u64::from(posts.finest)),
                );
            } else {
                add(clock::REPEATED, 1);
            }
        }
    }

    /// Leaves a number for the next launch, at one of two words of the clock from `word` on.
    ///
    /// # Safety
    /// As [`count`](Self::count).
    #[inline(always)]
    pub(super) unsafe fn note(self, word: u32, number: u64) {
        if is_first() {
            // SAFETY: the caller's promise.
            unsafe { global::store(self.time, word + (self.parity ^ 1), number) };
        }
    }

    /// Hands this turn on as it is: the next launches see the same post of this block, and the time.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    #[inline(always)]
    pub(super) unsafe fn hand_on(self, now: u64) {
        let own = self.parity * thread::grid_dim_x() + thread::block_idx_x();
        // SAFETY: the caller's promise.
        unsafe { self.post(global::load(self.posts, own).into(), now) };
    }

    /// Posts what others need to know of this block, and the time.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    #[inline(always)]
    pub(super) unsafe fn post(self, post: Post, now: u64) {
        if thread::thread_idx_x() > 0 {
            return;
        }
        let (block, parity) = (thread::block_idx_x(), self.parity ^ 1);
        // SAFETY: this block's post, and a word of the clock that block 0 alone writes.
        unsafe {
            let place = parity * thread::grid_dim_x() + block;
            global::store(self.posts, place, post.into());
            if block == 0 {
                global::store(self.time, clock::NOW + parity, now);
            }
        }
    }
}

/// True in one thread of the launch.
#[inline(always)]
fn is_first() -> bool {
    thread::block_idx_x() == 0 && thread::thread_idx_x() == 0
}
