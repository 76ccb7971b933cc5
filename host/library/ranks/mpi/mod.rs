//! Ranks that an MPI launcher started, on one machine or on many.
//!
//! Nothing of MPI is needed to build or to run alone: where a launcher started several processes, its
//! library is looked for and opened. One binary serves Open MPI 4 and 5, MPICH 4 and 5 and Intel MPI, whose
//! functions are alike and whose constants are in `library`.
//!
//! The end of a process ends all: see `guard` for what a process notices itself, and `supervisor` for what it
//! cannot.

mod cores;
mod guard;
mod launcher;
mod library;
mod supervisor;

use std::ffi::c_int;
use std::fmt;
use std::fs;
use std::thread;
use std::time::Duration;

pub use cores::Cores;
pub use guard::asked_to_stop;
pub use launcher::Launcher;
pub use supervisor::supervise;

use super::{Ranks, host};
use launcher::LIBRARY;
use library::{Constants, Functions, Handle, Mpi};

/// The most elements of a message: counts are C ints, and half of that leaves room for displacements.
const MOST_AT_ONCE: usize = 1 << 30;
/// Bytes of a word, in which long messages are counted.
const WORD: usize = 8;
/// Time after which a process that cannot start ends, if it is not the first: it is ended meanwhile where the
/// first cannot either, and has told why.
const AFTER_THE_FIRST: Duration = Duration::from_secs(2);

/// Reason why processes cannot compute together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// To be told.
    #[error("{0}")]
    Because(String),
    /// Another process tells it.
    #[error("another process says why")]
    AsOthersSay,
}

/// Processes of MPI.
pub struct Processes {
    functions: Functions,
    constants: Constants,
    rank: usize,
    size: usize,
    library: String,
}

impl Processes {
    /// Joins the processes that a launcher started.
    ///
    /// # Errors
    /// If no library is found, or one that belongs to another launcher. Where the first process has the same to
    /// tell, or another of this machine, it says nothing; where they may not, it waits before it returns.
    pub fn join(launcher: &Launcher) -> Result<Self, Refused> {
        let is_first = matches!(launcher.rank, Some(0) | None);
        let refused = |why, speaks| {
            if !is_first {
                thread::sleep(AFTER_THE_FIRST);
            }
            match speaks {
                true => Refused::Because(why),
                false => Refused::AsOthersSay,
            }
        };
        let speaks = is_first || launcher.is_first_of_machine();
        let longest = guard::longest_wait().map_err(|why| refused(why, speaks))?;
        let processes = Self::of_library(launcher).map_err(|why| refused(why, speaks))?;
        // In vain for all of them, if for one.
        let compared = processes.compare_with(launcher);
        compared.map_err(|why| refused(why, is_first))?;
        let watched = guard::Watched {
            rank: processes.rank,
            size: processes.size,
            world: processes.constants.world,
            abort: processes.functions.abort,
            finalize: processes.functions.finalize,
        };
        guard::watch(watched, longest);
        Ok(processes)
    }

    fn of_library(launcher: &Launcher) -> Result<Self, String> {
        let library = Mpi::find(launcher)?;
        let mut processes = Self {
            functions: library.functions()?,
            constants: library.constants()?,
            rank: 0,
            size: 0,
            library: format!("{} [{}]", library.name, library.version),
        };
        if library.is_of_another(launcher.kind) && launcher.rank == Some(0) {
            // Some end in the next call, without a word.
            guard::say(&format!(
                "note: `{LIBRARY}` names {}, which is not of the family of the launcher ({})",
                processes.library, launcher.evidence
            ));
        }
        processes.initialise()?;
        Ok(processes)
    }

    fn initialise(&mut self) -> Result<(), String> {
        let Self {
            functions,
            constants,
            ..
        } = self;
        let mut initialised = 0;
        // SAFETY: it writes a number, and may be called at any time.
        unsafe { (functions.initialized)(&mut initialised) };
        if initialised == 0 {
            let (wanted, mut given) = (constants.serialized, 0);
            // SAFETY: it is called once, by this thread. Null stands for the arguments of the program, which
            // MPI allows.
            let failed = unsafe { (functions.init_thread)(0, 0, wanted, &mut given) };
            if failed != 0 {
                return Err(format!(
                    "{}: MPI_Init_thread failed with {failed}",
                    self.library
                ));
            }
            if given < wanted {
                return Err(format!(
                    "{} lets only the main thread exchange anything: use one that was built with \
                     support for threads",
                    self.library
                ));
            }
        }
        for (kind, expected) in [(constants.byte, 1), (constants.word, WORD as c_int)] {
            let mut bytes: c_int = -1;
            // SAFETY: it writes a number. Of a handle that it does not know, it says so or ends the process.
            let failed = unsafe { (functions.type_size)(kind, &mut bytes) };
            if failed != 0 || bytes != expected {
                return Err(format!(
                    "{} has other constants than its family: its type {kind:#x} has {bytes} bytes, not \
                     {expected}",
                    self.library
                ));
            }
        }
        let (mut rank, mut size) = (0, 0);
        // SAFETY: they write a number each, and the handle is that of all processes.
        let failed = unsafe {
            (functions.comm_rank)(constants.world, &mut rank)
                | (functions.comm_size)(constants.world, &mut size)
        };
        match (usize::try_from(rank), usize::try_from(size)) {
            (Ok(rank), Ok(size)) if failed == 0 && rank < size => {
                (self.rank, self.size) = (rank, size);
                Ok(())
            }
            _ => Err(format!(
                "{} says that this is rank {rank} of {size}",
                self.library
            )),
        }
    }

    /// Refuses to be one of several runs of one process each.
    fn compare_with(&self, launcher: &Launcher) -> Result<(), String> {
        let Launcher { evidence, .. } = launcher;
        let of_another = format!(
            "it belongs to another launcher, and each process would do the whole run. Set `{LIBRARY}` to \
             the library of the launcher, or use the `mpirun` of this one; or, if no launcher was meant, unset \
             the variables that it left"
        );
        match (launcher.size, launcher.rank) {
            (Some(size), _) if size != self.size => Err(format!(
                "the launcher started {size} processes ({evidence}), but {} knows of {}: {of_another}",
                self.library, self.size
            )),
            (None, Some(rank)) if rank > 0 && self.size == 1 => Err(format!(
                "the launcher says that this is process {rank} ({evidence}), but {} knows of one: \
                 {of_another}",
                self.library
            )),
            _ => Ok(()),
        }
    }

    /// The library and its version.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// The processors of this process, and of all processes on this machine.
    pub fn cores(&self) -> Cores {
        let mut mine = [0; cores::BYTES];
        cores::of_this_process(&host(), &mut mine);
        let mut all = vec![0; mine.len() * self.size];
        self.gather(&mine, &mut all, &vec![mine.len(); self.size]);
        Cores::of(&all, self.rank)
    }

    /// Ends well, when all ranks do. Any other end of a process is an error of all.
    pub fn finish() {
        guard::finish();
    }

    fn call(&self, what: &'static str, call: impl FnOnce() -> c_int) {
        let failed = guard::waiting(what, call);
        if failed != 0 {
            self.abort(
                guard::FAILED,
                &format!("{what} failed with error {failed} of MPI"),
            );
        }
    }

    /// A count as MPI takes it.
    fn count(&self, count: usize) -> c_int {
        if count > MOST_AT_ONCE {
            let why = format!("a message of {count} elements is more than MPI takes");
            self.abort(guard::FAILED, &why);
        }
        count as c_int // at most 2³⁰
    }
}

/// Name of this machine.
pub fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Parts in which two ranks exchange messages, at most so many bytes at once each way: as many, and of the same
/// lengths, as the other rank finds, for which the messages are the other way round.
fn in_parts<'a>(
    mut sent: &'a [u8],
    mut received: &'a mut [u8],
    most: usize,
) -> Vec<(&'a [u8], &'a mut [u8])> {
    let mut parts = vec![];
    while !(sent.is_empty() && received.is_empty()) {
        let (now, later) = sent.split_at(sent.len().min(most));
        let end = received.len().min(most);
        let (room, rest) = received.split_at_mut(end);
        parts.push((now, room));
        (sent, received) = (later, rest);
    }
    parts
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processes")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .field("library", &self.library)
            .finish_non_exhaustive()
    }
}

impl Ranks for Processes {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn broadcast(&self, bytes: &mut [u8]) {
        let Constants { byte, world, .. } = self.constants;
        for part in bytes.chunks_mut(MOST_AT_ONCE) {
            let (address, count) = (part.as_mut_ptr(), self.count(part.len()));
            self.call("a broadcast", || {
                // SAFETY: the buffer has so many bytes, and nothing else uses it until the call returns.
                unsafe { (self.functions.bcast)(address, count, byte, 0, world) }
            });
        }
    }

    fn gather(&self, mine: &[u8], all: &mut [u8], counts: &[usize]) {
        assert_eq!(counts.len(), self.size, "a count for each rank");
        assert_eq!(
            counts[self.rank],
            mine.len(),
            "as many as the others expect"
        );
        assert_eq!(counts.iter().sum::<usize>(), all.len(), "room for all");
        if all.is_empty() {
            return; // all ranks know
        }
        // The address of nothing may be that which stands for `MPI_IN_PLACE`.
        let sent = if mine.is_empty() { &[0] } else { mine };
        let Constants {
            byte, word, world, ..
        } = self.constants;
        let in_words = counts.iter().all(|count| count.is_multiple_of(WORD));
        let (unit, kind): (usize, Handle) = if in_words { (WORD, word) } else { (1, byte) };
        self.count(all.len() / unit); // and so of all parts and places
        let counts: Vec<c_int> = counts.iter().map(|n| self.count(n / unit)).collect();
        let places = counts.iter().scan(0, |next, count| {
            let place = *next;
            *next += count;
            Some(place)
        });
        let places: Vec<c_int> = places.collect();
        self.call("a gathering", || {
            // SAFETY: this rank's buffer has at least its count of units, the buffer of all has the sum of the counts,
            // each list has an entry for each rank, and places and counts stay within the sum: the
            // assertions above. Nothing else uses the buffers until the call returns.
            unsafe {
                (self.functions.allgatherv)(
                    sent.as_ptr(),
                    counts[self.rank],
                    kind,
                    all.as_mut_ptr(),
                    counts.as_ptr(),
                    places.as_ptr(),
                    kind,
                    world,
                )
            }
        });
    }

    fn exchange(&self, to: usize, sent: &[u8], from: usize, received: &mut [u8]) {
        if to == from && sent.len().max(received.len()) > MOST_AT_ONCE {
            // As the other does. Among more than two, some would not know of further messages.
            for (sent, received) in in_parts(sent, received, MOST_AT_ONCE) {
                self.exchange(to, sent, from, received);
            }
            return;
        }
        let Constants {
            byte,
            world,
            no_status,
            ..
        } = self.constants;
        let [to, from] = [to, from].map(|rank| {
            assert!(rank < self.size, "rank {rank} of {}", self.size);
            self.count(rank)
        });
        let [sent_count, count] = [sent.len(), received.len()].map(|length| self.count(length));
        self.call("an exchange", || {
            // SAFETY: the buffers have so many bytes, a longer message is an error of MPI, and nothing else
            // uses them until the call returns. The last argument says that no status is wanted.
            unsafe {
                (self.functions.sendrecv)(
                    sent.as_ptr(),
                    sent_count,
                    byte,
                    to,
                    0,
                    received.as_mut_ptr(),
                    count,
                    byte,
                    from,
                    0,
                    world,
                    no_status,
                )
            }
        });
    }

    fn waiting(&self, what: &'static str, wait: &mut dyn FnMut()) {
        guard::waiting(what, wait);
    }

    fn abort(&self, code: u8, why: &str) -> ! {
        guard::say(&format!(
            "rank {} of {}: {why}: all ranks end",
            self.rank, self.size
        ));
        guard::abort_all(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ranks_exchange_the_same_parts() {
        let bytes: Vec<u8> = (0..100).collect();
        for (there, back) in [
            (25, 7),
            (7, 25),
            (30, 20),
            (11, 0),
            (0, 11),
            (10, 10),
            (0, 0),
        ] {
            let (mut at_one, mut at_other) = (vec![0; back], vec![0; there]);
            let of_one = in_parts(&bytes[..there], &mut at_one, 10);
            let of_other = in_parts(&bytes[50..50 + back], &mut at_other, 10);
            assert_eq!(of_one.len(), of_other.len(), "{there}, {back}");
            for ((sent, room), (answer, place)) in of_one.into_iter().zip(of_other) {
                assert!(sent.len().max(answer.len()) <= 10);
                place.copy_from_slice(sent); // panics where lengths differ
                room.copy_from_slice(answer);
            }
            assert_eq!(at_other, bytes[..there]);
            assert_eq!(at_one, bytes[50..50 + back]);
        }
    }
}
