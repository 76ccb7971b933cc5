//! The turn from one block step to the next: what the clock and the posts of all blocks say, and what a
//! block tells the others for the next launch.

use cuda_std::{global, thread};

use super::posts::{Control, Post, Posts, StepPosts};
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
        // SAFETY: the caller's promise.
        unsafe {
            let now = global::load(time, clock::NOW + parity);
            let post = Control::fetch_post(self.posts());
            if self.is_over(now) {
                return None;
            }
            let posts = control.put_together::<REGULAR>(post);
            if self.is_stopped(posts.finest, posts.body) {
                return None;
            }
            Some((now, posts))
        }
    }

    /// Time and posts of blocks that have handed out no targets, or none, like [`read`](Self::read); without a barrier.
    ///
    /// # Safety
    /// The promise of [`read`](Self::read), with no more than [`MOST_BLOCKS`](super::posts::MOST_BLOCKS) blocks.
    #[inline(always)]
    pub(super) unsafe fn read_steps(self) -> Option<(u64, StepPosts)> {
        let Self { time, parity, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let now = global::load(time, clock::NOW + parity);
            let posts = StepPosts::read(self.posts());
            if self.is_over(now) || self.is_stopped(posts.finest, posts.body) {
                return None;
            }
            Some((now, posts))
        }
    }

    /// The posts that are read.
    #[inline(always)]
    fn posts(self) -> *const u64 {
        let first = self.parity * thread::grid_dim_x();
        self.posts.wrapping_add(first as usize).cast_const()
    }

    /// Returns whether the span is over, which the next launches are to know too.
    ///
    /// # Safety
    /// The promise of [`read`](Self::read).
    #[inline(always)]
    unsafe fn is_over(self, now: u64) -> bool {
        if now >= SPAN && is_first() {
            // SAFETY: the caller's promise; one thread writes the word of the other parity.
            unsafe { global::store(self.time, clock::NOW + (self.parity ^ 1), now) };
        }
        now >= SPAN
    }

    /// Returns whether a body needs shorter steps than there are, which stops the clock.
    ///
    /// # Safety
    /// The promise of [`read`](Self::read).
    #[inline(always)]
    unsafe fn is_stopped(self, finest: u32, body: u32) -> bool {
        if finest == TOO_FINE && is_first() {
            // SAFETY: the caller's promise; one thread writes words of the other parity.
            unsafe {
                let now = clock::NOW + (self.parity ^ 1);
                global::store(self.time, now, clock::STOPPED);
                global::store(self.time, clock::BODY, u64::from(body));
            }
        }
        finest == TOO_FINE
    }

    /// Counts a block step of these posts, and its regular steps at a word of the clock, if there is one for
    /// them; or a launch for a time that was guessed wrong.
    ///
    /// # Safety
    /// The clock has the words, and nobody else writes them in this launch.
    #[inline(always)]
    pub(super) unsafe fn count(self, posts: &Posts, regular: Option<u32>) {
        // SAFETY: the caller's promise.
        unsafe {
            if !posts.agreed {
                self.add(clock::REPEATED, 1);
                return;
            }
            self.add_steps(1, posts.active, posts.finest);
            if let Some(word) = regular {
                self.add(word, posts.regular);
            }
        }
    }

    /// Counts steps that have been ended before a block step of this finest level. The posts that tell of them are
    /// then handed on [as counted](Self::hand_on_counted), or others take their places.
    ///
    /// # Safety
    /// The promise of [`count`](Self::count).
    #[inline(always)]
    pub(super) unsafe fn count_ended(self, ended: u32, finest: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.add_steps(u32::from(ended > 0), ended, finest) };
    }

    /// Adds to a word of the clock.
    ///
    /// # Safety
    /// The promise of [`count`](Self::count).
    #[inline(always)]
    unsafe fn add(self, word: u32, more: u32) {
        if is_first() {
            // SAFETY: the caller's promise; one thread of the launch adds.
            unsafe {
                let sum = global::load(self.time, word) + u64::from(more);
                global::store(self.time, word, sum);
            }
        }
    }

    /// Adds block steps, and the steps of bodies.
    ///
    /// # Safety
    /// The promise of [`count`](Self::count).
    #[inline(always)]
    unsafe fn add_steps(self, blocks: u32, steps: u32, finest: u32) {
        // SAFETY: the caller's promise; one thread of the launch writes.
        unsafe {
            self.add(clock::BLOCKS, blocks);
            self.add(clock::EVALUATIONS, steps);
            if is_first() {
                let before = global::load(self.time, clock::FINEST);
                let finest = before.max(u64::from(finest));
                global::store(self.time, clock::FINEST, finest);
            }
        }
    }

    /// Leaves a number for the next launch, at one of two words of the clock from `word` on.
    ///
    /// # Safety
    /// The promise of [`count`](Self::count).
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
    /// The promise of [`read`](Self::read).
    #[inline(always)]
    pub(super) unsafe fn hand_on(self, now: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.post(self.own_post(), now) };
    }

    /// Hands this turn on, with the steps counted that the post tells of. A regular step is known to end next, or not.
    ///
    /// # Safety
    /// The promise of [`read`](Self::read).
    #[inline(always)]
    pub(super) unsafe fn hand_on_counted(self, now: u64, is_regular: bool) {
        let (count, regular) = (0, u32::from(is_regular));
        // SAFETY: the caller's promise.
        unsafe {
            let post = self.own_post();
            self.post(
                Post {
                    count,
                    regular,
                    ..post
                },
                now,
            );
        }
    }

    /// The post of this block that is read.
    ///
    /// # Safety
    /// The promise of [`read`](Self::read).
    #[inline(always)]
    pub(super) unsafe fn own_post(self) -> Post {
        // SAFETY: the caller's promise.
        unsafe { global::load(self.posts(), thread::block_idx_x()) }.into()
    }

    /// Posts what others need to know of this block, and the time.
    ///
    /// # Safety
    /// The promise of [`read`](Self::read).
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
