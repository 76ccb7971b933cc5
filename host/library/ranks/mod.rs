//! Ranks: processes that compute one system together, or independent systems, on one or many machines.
//!
//! If ranks compute one system, every rank holds all bodies and does the O(N) work of a step on all of
//! them, with the same result. Each rank computes the forces on its share of the bodies. Ranks exchange
//! bytes and add sums in an order that does not depend on the number of ranks. They leave no sum to an
//! MPI library, because its order of additions may depend on this number.

#[cfg(feature = "ranks")]
mod member;
mod messages;
#[cfg(all(feature = "ranks", target_os = "linux"))]
pub mod mpi;
#[cfg(test)]
pub(crate) mod threads;

use std::fmt;
use std::fs;
use std::io::Write;
use std::iter;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

#[cfg(feature = "ranks")]
pub use member::{Differs, Member};

/// Exit code of ranks that cannot continue, the same as for devices that cannot be used.
pub(crate) const UNAVAILABLE: u8 = 69;

/// Bytes that tell machines apart: names alone may be the same in containers.
pub(crate) fn host() -> Vec<u8> {
    let files = [
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/kernel/hostname",
    ];
    files
        .iter()
        .flat_map(|file| fs::read(file).unwrap_or_default())
        .collect()
}

/// Processes that exchange bytes. All of them make the same calls in the same order.
///
/// An exchange that fails does not return: all ranks end.
pub trait Ranks: Send + Sync + fmt::Debug {
    /// Number of this process.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn size(&self) -> usize;

    /// Gives all ranks the bytes of rank 0.
    fn broadcast(&self, bytes: &mut [u8]);

    /// Gives all ranks the bytes of all, in the order of ranks; `counts` says how many each has.
    fn gather(&self, mine: &[u8], all: &mut [u8], counts: &[usize]);

    /// Sends bytes to one rank and receives as many as fit from another.
    fn exchange(&self, to: usize, sent: &[u8], from: usize, received: &mut [u8]);

    /// Does something that waits for other ranks by another way; notices where it waits in vain.
    fn waiting(&self, _what: &'static str, wait: &mut dyn FnMut()) {
        wait();
    }

    /// Ends all ranks, with a message that names this one.
    fn abort(&self, code: u8, why: &str) -> !;
}

/// Route by which the GPUs of ranks exchange their results for one system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Way {
    /// Through the memory of their hosts, by MPI.
    Hosts,
    /// From GPU to GPU, by NCCL.
    Nccl,
}

/// One process.
#[derive(Debug)]
struct Alone;

impl Ranks for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn broadcast(&self, _: &mut [u8]) {}

    fn gather(&self, mine: &[u8], all: &mut [u8], _: &[usize]) {
        all.copy_from_slice(mine);
    }

    fn exchange(&self, _: usize, sent: &[u8], _: usize, received: &mut [u8]) {
        received.copy_from_slice(sent);
    }

    fn abort(&self, code: u8, why: &str) -> ! {
        // Nobody is left to be told where this fails.
        let _ = writeln!(std::io::stderr(), "allpairs: {why}");
        std::process::exit(code.into())
    }
}

/// Ranks, and how work is shared out among them: by their numbers of threads.
#[derive(Debug)]
pub struct Team {
    ranks: Box<dyn Ranks>,
    threads: Vec<usize>,
    /// Held while ranks do something together; true when they have parted.
    turn: Mutex<bool>,
}

impl Team {
    /// One process.
    pub fn alone() -> Self {
        Self {
            ranks: Box::new(Alone),
            threads: vec![1],
            turn: Mutex::default(),
        }
    }

    /// A team of these ranks; this rank computes with `threads` threads.
    ///
    /// # Errors
    /// If they are not of one version of the program or were not started alike; all ranks have the same.
    #[cfg(feature = "ranks")]
    pub fn new(ranks: Box<dyn Ranks>, me: &Member) -> Result<Self, Differs> {
        let mut team = Self {
            threads: vec![1; ranks.size()],
            ranks,
            turn: Mutex::default(),
        };
        member::check(&team.gather_ragged(&me.to_bytes()))?;
        let threads = team.gather_each(&[me.threads as u64]);
        team.threads = threads.iter().map(|&threads| threads as usize).collect();
        Ok(team)
    }

    /// Number of this process.
    pub fn rank(&self) -> usize {
        self.ranks.rank()
    }

    /// Number of processes.
    pub fn size(&self) -> usize {
        self.ranks.size()
    }

    /// Returns whether there is one process.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Threads of each rank.
    pub fn threads(&self) -> &[usize] {
        &self.threads
    }

    /// Ends all ranks, with a message that names this one.
    pub fn abort(&self, code: u8, why: &str) -> ! {
        self.ranks.abort(code, why)
    }

    /// Waits until no other thread of this process exchanges anything. What it guards is true when the ranks
    /// have parted.
    pub(crate) fn turn(&self) -> MutexGuard<'_, bool> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shares of `count` equal pieces of work, in order.
    pub(crate) fn shares(&self, count: usize) -> Vec<Range<usize>> {
        self.shares_by(count, |share| share)
    }

    /// Shares of `count` pieces of which each takes longer than the one before, by as much as the first.
    pub(crate) fn shares_of_triangle(&self, count: usize) -> Vec<Range<usize>> {
        self.shares_by(count, f64::sqrt)
    }

    /// Shares in order; `part` of the pieces are such a share of the work.
    fn shares_by(&self, count: usize, part: impl Fn(f64) -> f64) -> Vec<Range<usize>> {
        let all: usize = self.threads.iter().sum();
        let (mut before, mut start) = (0, 0);
        let shares = self.threads.iter().map(|threads| {
            before += threads;
            let end = match before == all {
                true => count,
                false => (part(before as f64 / all as f64) * count as f64).round() as usize,
            };
            let share = start..end.clamp(start, count);
            start = share.end;
            share
        });
        shares.collect()
    }

    /// Ranks to which things belong, one after another in turn: as often as each has threads. Those that are near
    /// each other in a list then belong to all ranks alike.
    fn owners(&self) -> Vec<usize> {
        let of_rank = |(rank, &threads): (usize, &usize)| iter::repeat_n(rank, threads);
        self.threads.iter().enumerate().flat_map(of_rank).collect()
    }

    /// Selects the items that this rank owns.
    pub(crate) fn own(&self, things: &[usize]) -> Vec<usize> {
        let (owners, rank) = (self.owners(), self.rank());
        let is_own = |&i: &usize| owners[i % owners.len()] == rank;
        things.iter().copied().filter(is_own).collect()
    }

    /// Values of all items, gathered from the values of each rank's items.
    pub(crate) fn of_all<T: Pod>(&self, things: &[usize], own: &[T]) -> Vec<T> {
        if self.is_alone() {
            return own.to_vec();
        }
        let owners = self.owners();
        let owner = |i: usize| owners[i % owners.len()];
        let mut counts = vec![0; self.size()];
        things.iter().for_each(|&i| counts[owner(i)] += 1);
        let all = self.gather(own, &counts);
        let ends = counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        });
        let mut next: Vec<usize> = ends.zip(&counts).map(|(end, count)| end - count).collect();
        let value = |&i: &usize| {
            let next = &mut next[owner(i)];
            *next += 1;
            all[*next - 1]
        };
        things.iter().map(value).collect()
    }

    /// Gives all ranks rank 0's values.
    pub(crate) fn broadcast<T: Pod>(&self, values: &mut [T]) {
        self.ranks.broadcast(bytemuck::cast_slice_mut(values));
    }

    /// Values of all ranks, of which each has as many.
    pub(crate) fn gather_each<T: Pod>(&self, mine: &[T]) -> Vec<T> {
        self.gather(mine, &vec![mine.len(); self.size()])
    }

    /// Values of all ranks, of which each has its count.
    pub(crate) fn gather<T: Pod>(&self, mine: &[T], counts: &[usize]) -> Vec<T> {
        let counts = counts.iter().map(|count| count * size_of::<T>());
        let counts: Vec<usize> = counts.collect();
        let mut all = vec![T::zeroed(); counts.iter().sum::<usize>() / size_of::<T>().max(1)];
        let bytes = bytemuck::cast_slice_mut(&mut all);
        self.ranks
            .gather(bytemuck::cast_slice(mine), bytes, &counts);
        all
    }

    /// Values of each rank.
    pub(crate) fn gather_ragged<T: Pod>(&self, mine: &[T]) -> Vec<Vec<T>> {
        let counts = self.gather_each(&[mine.len() as u64]);
        let counts: Vec<usize> = counts.iter().map(|&count| count as usize).collect();
        let all = self.gather(mine, &counts);
        let mut rest = &all[..];
        let parts = counts.iter().map(|&count| {
            let (part, left) = rest.split_at(count);
            rest = left;
            part.to_vec()
        });
        parts.collect()
    }

    /// The first rank that holds other bodies than rank 0, if one does, by a checksum of this rank's.
    pub(crate) fn rank_that_differs(&self, checksum: u32) -> Option<usize> {
        let sums = self.gather_each(&[checksum]);
        sums.iter().position(|&sum| sum != sums[0])
    }

    /// Stops the run if a rank holds other bodies than the first, by a checksum of this rank's: processors
    /// or system libraries that round differently would do that.
    pub(crate) fn check_bodies(&self, checksum: u32) {
        if let (Some(rank), 0) = (self.rank_that_differs(checksum), self.rank()) {
            let why = format!(
                "rank {rank} holds other bodies than rank 0: use machines of one kind, and the same build \
                 on all"
            );
            self.abort(UNAVAILABLE, &why); // for all
        }
    }

    /// Tells all ranks what rank 0 says.
    pub(crate) fn as_rank_0_says(&self, yes: bool) -> bool {
        let mut said = [u8::from(yes)];
        self.broadcast(&mut said);
        said[0] != 0
    }

    /// Does something that waits for other ranks by another way than theirs.
    pub(crate) fn waiting<T>(&self, what: &'static str, mut wait: impl FnMut() -> T) -> T {
        let mut result = None;
        self.ranks.waiting(what, &mut || result = Some(wait()));
        result.expect("it was done")
    }

    /// Completes values of which each rank has computed its share.
    pub(crate) fn complete<T: Pod>(&self, values: &mut [T], shares: &[Range<usize>]) {
        if self.is_alone() {
            return;
        }
        let counts: Vec<usize> = shares.iter().map(Range::len).collect();
        let all = self.gather(&values[shares[self.rank()].clone()], &counts);
        values.copy_from_slice(&all);
    }

    /// Sends values to one rank and receives as many as fit from another.
    pub(crate) fn exchange<T: Pod>(&self, to: usize, sent: &[T], from: usize, received: &mut [T]) {
        let sent = bytemuck::cast_slice(sent);
        let received = bytemuck::cast_slice_mut(received);
        self.ranks.exchange(to, sent, from, received);
    }
}

#[cfg(test)]
mod tests {
    use super::threads::together_with;
    use super::*;

    #[test]
    fn shares_are_all_of_it_in_order_and_by_threads() {
        for threads in [&[1][..], &[1, 1], &[3, 1, 4], &[1, 1, 1, 1, 1], &[7, 2]] {
            for count in [0, 1, 2, 3, 4, 5, 17, 100, 1001] {
                let checked = together_with(threads, |team| {
                    for shares in [team.shares(count), team.shares_of_triangle(count)] {
                        assert_eq!(shares.len(), team.size());
                        assert_eq!((shares[0].start, shares[team.size() - 1].end), (0, count));
                        assert!(shares.is_sorted_by(|a, b| a.end == b.start));
                    }
                    let all: usize = threads.iter().sum();
                    for (share, threads) in team.shares(count).iter().zip(threads) {
                        let fair = count as f64 * *threads as f64 / all as f64;
                        assert!((share.len() as f64 - fair).abs() <= 1.0, "{share:?}");
                    }
                    team.rank()
                });
                assert_eq!(checked, (0..threads.len()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn work_on_a_triangle_is_even() {
        together_with(&[1, 1, 2], |team| {
            let work = |share: &Range<usize>| share.clone().sum::<usize>() as f64;
            let shares = team.shares_of_triangle(4000);
            let all: f64 = shares.iter().map(work).sum();
            for (share, part) in shares.iter().zip([0.25, 0.25, 0.5]) {
                assert!((work(share) / all - part).abs() < 1e-3, "{shares:?}");
            }
        });
    }

    #[test]
    fn values_are_completed_in_the_order_of_ranks() {
        for count in [0, 1, 2, 7, 100] {
            let completed = together_with(&[1, 2, 1], |team| {
                let shares = team.shares(count);
                let mut values = vec![u64::MAX; count];
                for i in shares[team.rank()].clone() {
                    values[i] = i as u64;
                }
                team.complete(&mut values, &shares);
                values
            });
            let all: Vec<u64> = (0..count as u64).collect();
            assert!(completed.iter().all(|values| *values == all));
        }
    }
}
