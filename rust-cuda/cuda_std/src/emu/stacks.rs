//! Stacks for the fibres, kept for the next launch.
//!
//! The pool is shared by all OS threads, so that its size follows the launches that really run at
//! the same time.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use corosensei::stack::{DefaultStack, Stack as _};

/// Room for one emulated thread: kernels keep little on the stack, but unoptimised builds spill
/// every value and a panic formats its message there. Pages cost nothing until touched.
const STACK_BYTES: usize = 128 * 1024;

/// Stacks in use at the same time. Each takes two of the mappings of which Linux allows a process
/// 65 530; launches that would exceed this wait for others to end.
const LIMIT: usize = 16 * 1024;

struct Pool {
    idle: Vec<DefaultStack>,
    lent: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    idle: Vec::new(),
    lent: 0,
});
static RETURNED: Condvar = Condvar::new();

/// The pool holds no invariant that a panic could break.
fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stacks on loan from the pool; dropping gives them back.
pub(super) struct Stacks(Vec<DefaultStack>);

impl Stacks {
    /// Takes `count` stacks. A launch from inside another must not wait for what that one holds:
    /// it passes `nested`.
    pub(super) fn borrow(count: usize, nested: bool) -> io::Result<Self> {
        let mut pool = pool();
        while !nested && pool.lent != 0 && pool.lent + count > LIMIT {
            pool = RETURNED.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        pool.lent += count;
        let kept = pool.idle.len().saturating_sub(count);
        let mut stacks = Self(pool.idle.split_off(kept));
        drop(pool);
        while stacks.0.len() < count {
            match DefaultStack::new(STACK_BYTES) {
                Ok(stack) => stacks.0.push(stack),
                Err(error) => {
                    // The loan that `drop` cancels is only of the stacks that are there.
                    self::pool().lent -= count - stacks.0.len();
                    return Err(error);
                }
            }
        }
        Ok(stacks)
    }

    /// The address above the highest byte of each stack.
    pub(super) fn ends(&self) -> Vec<usize> {
        self.0.iter().map(|stack| stack.base().get()).collect()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut DefaultStack> {
        self.0.iter_mut()
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut pool = pool();
        pool.lent -= self.0.len();
        pool.idle.append(&mut self.0);
        RETURNED.notify_all();
    }
}
