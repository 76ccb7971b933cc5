//! Processors of ranks on one machine: each has a share of those that it may run on.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;

/// Bytes of a set of processors.
const SET: usize = 128;
/// Bytes of a machine's name.
const NAME: usize = 8;
/// Bytes of what a rank says to others: its machine, and the processors that it may run on.
pub(super) const BYTES: usize = NAME + SET;

/// A rank among the ranks of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Machines of all ranks.
    pub machines: usize,
    /// Number of this rank among the ranks of its machine.
    pub local_rank: usize,
    /// Ranks on its machine.
    pub local_size: usize,
    /// Threads that are its share.
    pub threads: usize,
}

/// Writes what this process says of itself to others.
pub(super) fn of_this_process(host: &[u8], bytes: &mut [u8; BYTES]) {
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    let (name, set) = bytes.split_at_mut(NAME);
    name.copy_from_slice(&hasher.finish().to_le_bytes());
    // SAFETY: the set is plain bits, none of which is set; the call writes at most its size.
    let processors = unsafe {
        let mut processors: libc::cpu_set_t = std::mem::zeroed();
        let failed = libc::sched_getaffinity(0, size_of_val(&processors), &mut processors);
        (failed == 0).then_some(processors)
    };
    for processor in 0..8 * SET.min(size_of::<libc::cpu_set_t>()) {
        // SAFETY: the set has room for so many.
        let has = |set: &libc::cpu_set_t| unsafe { libc::CPU_ISSET(processor, set) };
        if processors.as_ref().is_some_and(has) {
            set[processor / 8] |= 1 << (processor % 8);
        }
    }
}

impl Cores {
    /// Cores of a rank, from what all ranks say.
    pub(super) fn of(all: &[u8], rank: usize) -> Self {
        let available = thread::available_parallelism().map_or(1, usize::from);
        Self::among(all, rank, available)
    }

    fn among(all: &[u8], rank: usize, available: usize) -> Self {
        let members: Vec<(&[u8], &[u8])> = (all.chunks(BYTES)).map(|b| b.split_at(NAME)).collect();
        let names: HashSet<&[u8]> = members.iter().map(|(name, _)| *name).collect();
        let (name, mine) = members[rank];
        let local: Vec<(usize, &[u8])> = (members.iter().enumerate())
            .filter(|(_, (of, _))| *of == name)
            .map(|(rank, (_, set))| (rank, *set))
            .collect();
        let local_rank = local.iter().position(|&(of, _)| of == rank).unwrap_or(0);
        let has = |set: &[u8], processor: usize| set[processor / 8] >> (processor % 8) & 1 == 1;
        let (mut dealt, mut allowed) = (0, 0);
        for processor in (0..8 * SET).filter(|&processor| has(mine, processor)) {
            // Those that several may use are dealt to them in turn.
            let users: Vec<usize> = (local.iter())
                .filter(|(_, set)| has(set, processor))
                .map(|&(rank, _)| rank)
                .collect();
            dealt += usize::from(users[processor % users.len()] == rank);
            allowed += 1;
        }
        if available < allowed {
            // A quota of time, which the ranks of a machine share.
            dealt = dealt.min(available / local.len());
        }
        Self {
            machines: names.len(),
            local_rank,
            local_size: local.len(),
            threads: dealt.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks on machines, with the processors that each may run on.
    fn threads(ranks: &[(u8, std::ops::Range<usize>)], available: usize) -> Vec<usize> {
        let bytes = ranks.iter().flat_map(|(machine, processors)| {
            let mut bytes = [0; BYTES];
            bytes[0] = *machine;
            for processor in processors.clone() {
                bytes[NAME + processor / 8] |= 1 << (processor % 8);
            }
            bytes
        });
        let bytes: Vec<u8> = bytes.collect();
        let of = |rank| Cores::among(&bytes, rank, available).threads;
        (0..ranks.len()).map(of).collect()
    }

    #[test]
    fn processors_are_dealt_to_those_who_may_use_them() {
        assert_eq!(threads(&[(0, 0..8), (0, 0..8)], 8), [4, 4]);
        assert_eq!(threads(&[(0, 0..8), (0, 0..8), (0, 0..8)], 8), [3, 3, 2]);
        assert_eq!(threads(&[(0, 0..8), (1, 0..8)], 8), [8, 8]);
        // Bound to processors of their own, as launchers do.
        assert_eq!(threads(&[(0, 0..4), (0, 4..6)], 8), [4, 2]);
        // More ranks than processors.
        assert_eq!(threads(&[(0, 0..1), (0, 0..1)], 1), [1, 1]);
        assert_eq!(threads(&[(0, 0..0)], 1), [1]);
        // Half of the processors' time, for both.
        assert_eq!(threads(&[(0, 0..8), (0, 0..8)], 4), [2, 2]);
    }

    #[test]
    fn ranks_are_counted_on_their_machines() {
        let mut all = [0; 3 * BYTES];
        all[BYTES] = 1;
        let last = Cores::among(&all, 2, 1);
        let expected = Cores {
            machines: 2,
            local_rank: 1,
            local_size: 2,
            threads: 1,
        };
        assert_eq!(last, expected);
    }

    #[test]
    fn this_process_may_run_somewhere() {
        let mut bytes = [0; BYTES];
        of_this_process(b"here", &mut bytes);
        let available = thread::available_parallelism().map_or(1, usize::from);
        assert!(Cores::of(&bytes, 0).threads >= available.min(8 * SET));
    }
}
