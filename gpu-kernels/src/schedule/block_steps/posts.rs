//! Messages of blocks from one launch to the next, and lists in the order of threads.

use cuda_std::shared::{Shared, dynamic_shared_mem};
use cuda_std::warp::{WARP_SIZE, ballot, lane_id, over_lanes, up_to_lane, warp_id};
use cuda_std::{global, thread};

use super::{DEEPEST, TOO_FINE, control_words, regular_words};

/// Message of a block after a block step.
#[derive(Clone, Copy)]
pub(super) struct Post {
    /// The finest level of its own bodies, or [`TOO_FINE`].
    pub(super) finest: u32,
    /// The level by which it chose its targets.
    pub(super) guess: u32,
    /// Targets of the block; or, with [`TOO_FINE`], the body that needs shorter steps.
    pub(super) count: u32,
    /// Targets of the block whose regular steps end, at most [`MOST_REGULAR`]; 0 where there are none
    /// such. Where no targets are handed out, 1 once a regular step is known to end next.
    pub(super) regular: u32,
}

/// Guess of a block that has handed out no targets, because steps without regular ones are one launch. The finest level
/// of regular steps is added.
const STEPS: u32 = 128;

/// Bodies of a slice, at most, where some take regular steps.
pub const MOST_REGULAR: u32 = 0xffff;

impl Post {
    /// Message of a block that has handed out no targets. It has the finest level of the block's bodies, with the first
    /// body of [`TOO_FINE`] if there is one. It has the finest level of regular steps, and how many steps were ended.
    #[inline(always)]
    pub(super) fn of_steps((finest, body): (u32, u32), regular: u32, ended: u32) -> Self {
        Self {
            finest,
            guess: STEPS + regular.min(DEEPEST),
            count: if finest == TOO_FINE { body } else { ended },
            regular: 0,
        }
    }
}

impl From<Post> for u64 {
    #[inline(always)]
    fn from(post: Post) -> Self {
        Self::from(post.regular) << 48
            | Self::from(post.finest) << 40
            | Self::from(post.guess) << 32
            | Self::from(post.count)
    }
}

impl From<u64> for Post {
    #[inline(always)]
    fn from(word: u64) -> Self {
        Self {
            finest: (word >> 40) as u32 & 0xff,
            guess: (word >> 32) as u32 & 0xff,
            count: word as u32,
            regular: (word >> 48) as u32,
        }
    }
}

/// Number of targets by the posts of all blocks, whose sums a block step computes; 0 where a block guessed
/// another time, or needs shorter steps than there are.
#[inline(always)]
pub fn targets(posts: &[u64]) -> u32 {
    let posts = || posts.iter().map(|&post| Post::from(post));
    let finest = posts().map(|post| post.finest).max().unwrap_or(0);
    if finest == TOO_FINE || posts().any(|post| post.guess != finest) {
        return 0;
    }
    posts().map(|post| post.count).sum()
}

/// Targets of each block by its post, and those of them whose regular steps end.
pub fn targets_by_block(posts: &[u64]) -> impl Iterator<Item = [u32; 2]> {
    let posts = posts.iter().map(|&post| Post::from(post));
    posts.map(|post| [post.count, post.regular])
}

/// Summary of the posts of all blocks.
#[derive(Clone, Copy)]
pub(super) struct Posts {
    /// Targets; or where none are handed out, bodies whose steps ended last.
    pub(super) active: u32,
    /// The finest level of all bodies.
    pub(super) finest: u32,
    /// True if all targets are those of that level.
    pub(super) agreed: bool,
    /// The finest level of regular steps where blocks have handed out no targets.
    pub(super) finest_regular: Option<u32>,
    /// With [`TOO_FINE`], the first body that needs shorter steps.
    pub(super) body: u32,
    /// Targets whose regular steps end.
    pub(super) regular: u32,
    begins: Shared<u32>,
    /// Not there without regular steps.
    regular_begins: Shared<u32>,
}

/// The part of shared memory in which threads tell each other numbers.
#[derive(Clone, Copy)]
pub(super) struct Control {
    /// Beginnings of the targets of each block, and the end of those of the last one.
    begins: Shared<u32>,
    /// Four numbers a warp.
    of_warps: Shared<u32>,
    /// One number a warp.
    counts: Shared<u32>,
    /// As `begins`, of targets whose regular steps end, and a number a warp; where there are such.
    regular: Shared<u32>,
    words: u32,
}

impl Control {
    /// That of this block; what else is in shared memory comes [after](Self::after).
    #[inline(always)]
    pub(super) fn of_block() -> Self {
        let (threads, slices) = (thread::block_dim_x(), thread::grid_dim_x());
        let begins = dynamic_shared_mem::<u32>();
        let of_warps = begins.after(slices + 1);
        let words = control_words(threads, slices);
        Self {
            begins,
            of_warps,
            counts: of_warps.after(4 * (threads / WARP_SIZE)),
            regular: begins.after(words),
            words,
        }
    }

    /// As [`of_block`](Self::of_block), where some steps are regular.
    #[inline(always)]
    pub(super) fn of_block_with_regular() -> Self {
        let control = Self::of_block();
        let (threads, slices) = (thread::block_dim_x(), thread::grid_dim_x());
        Self {
            words: control.words + regular_words(threads, slices),
            ..control
        }
    }

    /// Offset of the bytes after it, aligned for every vector.
    #[inline(always)]
    pub(super) fn after<T: cuda_std::shared::SharedWord>(self) -> Shared<T> {
        self.begins.after(self.words)
    }

    /// Reads the posts of all blocks; ends with a barrier.
    ///
    /// # Safety
    /// `posts` has one for each block, which nobody writes in this launch; all threads call it, and
    /// there are at least as many as blocks.
    #[inline(always)]
    pub(super) unsafe fn read_posts<const REGULAR: bool>(self, posts: *const u64) -> Posts {
        // SAFETY: the caller's promise.
        unsafe { self.put_together::<REGULAR>(Self::fetch_post(posts)) }
    }

    /// The post that this thread brings to [`put_together`](Self::put_together).
    ///
    /// # Safety
    /// `posts` has one for each block, which nobody writes in this launch.
    #[inline(always)]
    pub(super) unsafe fn fetch_post(posts: *const u64) -> Post {
        let block = thread::thread_idx_x().min(thread::grid_dim_x() - 1);
        // SAFETY: a post that exists.
        unsafe { global::load(posts, block) }.into()
    }

    /// Puts the posts of all blocks together; ends with a barrier.
    ///
    /// # Safety
    /// All threads call it, with the posts that they have [fetched](Self::fetch_post), and there are at least as many as
    /// blocks.
    #[inline(always)]
    pub(super) unsafe fn put_together<const REGULAR: bool>(self, post: Post) -> Posts {
        let (slices, thread, lane) = (thread::grid_dim_x(), thread::thread_idx_x(), lane_id());
        let warps = slices.div_ceil(WARP_SIZE);
        let (mut count, mut regular) = (0, 0);
        let regular_of_warps: Shared<u32> = self.regular.after(slices + 1);
        if warp_id() < warps {
            let exists = thread < slices;
            let failed = exists & (post.finest == TOO_FINE);
            // A failed post has a body in the place of its count.
            let has_count = exists & !failed;
            count = up_to_lane(if has_count { post.count } else { 0 });
            if REGULAR {
                regular = up_to_lane(if exists { post.regular } else { 0 });
            }
            // Those of lanes beyond the last are those of the last.
            let finest = largest(post.finest);
            let guesses = largest(post.guess) << 8 | (0xff - largest(0xff - post.guess));
            let body = !largest(if failed { !post.count } else { 0 });
            if lane == WARP_SIZE - 1 {
                // SAFETY: four numbers of this warp alone.
                unsafe {
                    let at = 4 * warp_id();
                    self.of_warps.store(at, count);
                    self.of_warps.store(at + 1, finest);
                    self.of_warps.store(at + 2, guesses);
                    self.of_warps.store(at + 3, body);
                    if REGULAR {
                        regular_of_warps.store(warp_id(), regular);
                    }
                }
            }
        }
        thread::sync_threads();
        let (mut active, mut before) = (0, 0);
        let (mut all_regular, mut regular_before) = (0, 0);
        let (mut finest, mut most, mut least, mut body) = (0, 0, 0xff, u32::MAX);
        let mut warp = 0;
        while warp < warps {
            // SAFETY: written before the barrier.
            let [of_warp, its_finest, guesses, its_body] =
                [0, 1, 2, 3].map(|k| unsafe { self.of_warps.load(4 * warp + k) });
            let regular = if REGULAR {
                // SAFETY: as above.
                unsafe { regular_of_warps.load(warp) }
            } else {
                0
            };
            if warp < warp_id() {
                before += of_warp;
                regular_before += regular;
            }
            active += of_warp;
            all_regular += regular;
            finest = finest.max(its_finest);
            most = most.max(guesses >> 8);
            least = least.min(guesses & 0xff);
            body = body.min(its_body);
            warp += 1;
        }
        // SAFETY: each number by one thread.
        unsafe {
            if thread < slices {
                self.begins.store(thread + 1, before + count);
                if REGULAR {
                    self.regular.store(thread + 1, regular_before + regular);
                }
            }
            if thread == 0 {
                self.begins.store(0, 0);
                if REGULAR {
                    self.regular.store(0, 0);
                }
            }
        }
        thread::sync_threads();
        Posts {
            active,
            finest,
            agreed: most == finest && least == finest,
            finest_regular: if most < STEPS {
                None
            } else {
                Some(most - STEPS)
            },
            body,
            regular: all_regular,
            begins: self.begins,
            regular_begins: self.regular,
        }
    }

    /// Numbers the threads for which `listed` holds, from 0, in their order; returns this thread's
    /// number and how many there are. Begins with nothing and ends with a barrier: two calls need
    /// another one between them.
    ///
    /// # Safety
    /// All threads call it.
    #[inline(always)]
    pub(super) unsafe fn numbered(self, listed: bool) -> (u32, u32) {
        let votes = ballot(listed);
        // SAFETY: the caller's promise.
        let (before, all) = unsafe { self.before_and_all(votes.count_ones()) };
        let below = votes & ((1 << lane_id()) - 1);
        (before + below.count_ones(), all)
    }

    /// As [`numbered`](Self::numbered), of two kinds, for at most [`MOST_REGULAR`] threads: first the
    /// numbers, then how many there are.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn both_numbered(self, listed: [bool; 2]) -> [[u32; 2]; 2] {
        let votes = [ballot(listed[0]), ballot(listed[1])];
        let both = votes[0].count_ones() | votes[1].count_ones() << 16;
        // SAFETY: the caller's promise.
        let (before, all) = unsafe { self.before_and_all(both) };
        let below = (1 << lane_id()) - 1;
        let first = (before & 0xffff) + (votes[0] & below).count_ones();
        let second = (before >> 16) + (votes[1] & below).count_ones();
        [[first, second], [all & 0xffff, all >> 16]]
    }

    /// The sums of a number of each warp's over the warps before this one, and over all.
    ///
    /// # Safety
    /// As [`numbered`](Self::numbered).
    #[inline(always)]
    unsafe fn before_and_all(self, of_warp: u32) -> (u32, u32) {
        if lane_id() == 0 {
            // SAFETY: this warp's own number.
            unsafe { self.counts.store(warp_id(), of_warp) };
        }
        thread::sync_threads();
        let warps = thread::block_dim_x() / WARP_SIZE;
        let (mut before, mut all, mut warp) = (0, 0, 0);
        while warp < warps {
            // SAFETY: written before the barrier.
            let of_warp = unsafe { self.counts.load(warp) };
            if warp < warp_id() {
                before += of_warp;
            }
            all += of_warp;
            warp += 1;
        }
        (before, all)
    }

    /// The finest level that any thread found, and if that is [`TOO_FINE`] the first body that any
    /// thread found with it. A barrier comes before and after.
    ///
    /// # Safety
    /// As [`numbered`](Self::numbered).
    #[inline(always)]
    pub(super) unsafe fn finest(self, finest: u32, body: u32) -> (u32, u32) {
        // SAFETY: the caller's promise; all threads take the branch together.
        unsafe {
            let finest = self.largest_of_block(finest);
            if finest == TOO_FINE {
                return (finest, !self.largest_of_block(!body));
            }
            (finest, body)
        }
    }

    /// The numbers of [`finest`](Self::finest), once in a launch, without the barrier before.
    ///
    /// # Safety
    /// All threads call it, and nothing else takes the numbers of warps in the launch.
    #[inline(always)]
    pub(super) unsafe fn finest_once(self, finest: u32, body: u32) -> (u32, u32) {
        let warps = thread::block_dim_x() / WARP_SIZE;
        let (finest, body) = (largest(finest), !largest(!body));
        // SAFETY: this warp's own numbers; all threads are here.
        unsafe {
            if lane_id() == 0 {
                self.of_warps.store(2 * warp_id(), finest);
                self.of_warps.store(2 * warp_id() + 1, body);
            }
            thread::sync_threads();
            let (mut all, mut warp) = ((0, u32::MAX), 0);
            while warp < warps {
                let of_warp = [0, 1].map(|k| self.of_warps.load(2 * warp + k));
                all = (all.0.max(of_warp[0]), all.1.min(of_warp[1]));
                warp += 1;
            }
            all
        }
    }

    /// The largest number that any thread has; a barrier comes before and after.
    ///
    /// # Safety
    /// All threads call it.
    #[inline(always)]
    pub(super) unsafe fn largest_of_block(self, number: u32) -> u32 {
        let warps = thread::block_dim_x() / WARP_SIZE;
        let of_warp = largest(number);
        thread::sync_threads();
        if lane_id() == 0 {
            // SAFETY: this warp's own number, which others have read before the barrier.
            unsafe { self.counts.store(warp_id(), of_warp) };
        }
        thread::sync_threads();
        let (mut all, mut warp) = (0, 0);
        while warp < warps {
            // SAFETY: written before the barrier.
            all = all.max(unsafe { self.counts.load(warp) });
            warp += 1;
        }
        all
    }
}

/// Summary of the posts of all blocks where these have handed out no targets.
#[derive(Clone, Copy)]
pub(super) struct StepPosts {
    /// The finest level of all bodies.
    pub(super) finest: u32,
    /// The finest level of regular steps.
    pub(super) finest_regular: u32,
    /// With [`TOO_FINE`], the first body that needs shorter steps.
    pub(super) body: u32,
    /// The posts of this lane.
    of_lane: [Post; POSTS],
}

/// Posts of a lane, where a warp reads all.
const POSTS: usize = 8;

/// Most blocks that have their posts read by one warp.
pub(super) const MOST_BLOCKS: u32 = POSTS as u32 * WARP_SIZE;

impl StepPosts {
    /// Reads the posts of all blocks. Every warp does so for itself.
    ///
    /// # Safety
    /// `posts` has one for each block, of at most [`MOST_BLOCKS`], which nobody writes in this launch; all lanes call it.
    #[inline(always)]
    pub(super) unsafe fn read(posts: *const u64) -> Self {
        let last = thread::grid_dim_x() - 1;
        let block = |k: usize| k as u32 * WARP_SIZE + lane_id();
        // SAFETY: posts that exist.
        let load = |k: usize| Post::from(unsafe { global::load(posts, block(k).min(last)) });
        let of_lane = [0, 1, 2, 3, 4, 5, 6, 7].map(load);
        let (mut finest, mut guess, mut body) = (0, 0, u32::MAX);
        for post in &of_lane {
            finest = finest.max(post.finest);
            guess = guess.max(post.guess);
            if post.finest == TOO_FINE {
                body = body.min(post.count);
            }
        }
        let finest = largest(finest);
        Self {
            finest,
            finest_regular: largest(guess) - STEPS,
            body: if finest == TOO_FINE {
                !largest(!body)
            } else {
                body
            },
            of_lane,
        }
    }

    /// How many steps the blocks have ended. All lanes call it.
    #[inline(always)]
    pub(super) fn ended(&self) -> u32 {
        let last = thread::grid_dim_x() - 1;
        let mut ended = 0;
        for (k, post) in self.of_lane.iter().enumerate() {
            if k as u32 * WARP_SIZE + lane_id() <= last {
                ended += post.count;
            }
        }
        over_lanes(ended, |a, b| a + b)
    }
}

impl Posts {
    /// Number of the first target of a block in the list of all.
    #[inline(always)]
    pub(super) fn begin_of(&self, block: u32) -> u32 {
        // SAFETY: `read_posts` wrote it ahead of a barrier, and nobody writes it after.
        unsafe { self.begins.load(block) }
    }

    /// As [`begin_of`](Self::begin_of), of targets whose regular steps end.
    #[inline(always)]
    pub(super) fn regular_begin_of(&self, block: u32) -> u32 {
        // SAFETY: as in `begin_of`.
        unsafe { self.regular_begins.load(block) }
    }

    /// The block that target `k` belongs to, and the target's number there.
    #[inline(always)]
    pub(super) fn owner(&self, k: u32) -> (u32, u32) {
        last_not_above(k, |block| self.begin_of(block))
    }

    /// As [`owner`](Self::owner), of targets whose regular steps end.
    #[inline(always)]
    pub(super) fn regular_owner(&self, k: u32) -> (u32, u32) {
        last_not_above(k, |block| self.regular_begin_of(block))
    }
}

/// The last block whose numbers do not begin above `k`, and where `k` is among them.
#[inline(always)]
fn last_not_above(k: u32, begin_of: impl Fn(u32) -> u32) -> (u32, u32) {
    let (mut from, mut to) = (0, thread::grid_dim_x());
    while to - from > 1 {
        let middle = (from + to) / 2;
        if begin_of(middle) <= k {
            from = middle;
        } else {
            to = middle;
        }
    }
    (from, k - begin_of(from))
}

/// The largest number that any lane of the warp has.
#[inline(always)]
fn largest(number: u32) -> u32 {
    over_lanes(number, u32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_a_word() {
        let post = Post {
            finest: TOO_FINE,
            guess: 40,
            count: u32::MAX - 1,
            regular: MOST_REGULAR,
        };
        let Post {
            finest,
            guess,
            count,
            regular,
        } = Post::from(u64::from(post));
        assert_eq!((finest, guess, count), (TOO_FINE, 40, u32::MAX - 1));
        assert_eq!(regular, MOST_REGULAR);
    }

    #[test]
    fn targets_are_those_of_a_time_that_all_agree_on() {
        let post = |finest, guess, count| {
            u64::from(Post {
                finest,
                guess,
                count,
                regular: 0,
            })
        };
        assert_eq!(targets(&[post(3, 5, 7), post(5, 5, 0), post(0, 5, 2)]), 9);
        assert_eq!(targets(&[post(3, 5, 7), post(5, 4, 1)]), 0);
        assert_eq!(targets(&[post(3, 5, 7), post(4, 5, 1)]), 0);
        assert_eq!(targets(&[post(TOO_FINE, TOO_FINE, 7)]), 0);
    }
}
