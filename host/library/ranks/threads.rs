//! Ranks that are threads of one process, for tests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use rayon::ThreadPoolBuilder;

use super::{Member, Ranks, Team};

/// Bytes that ranks lay out for all, and the way from each to each.
#[derive(Debug)]
struct Thread {
    rank: usize,
    table: Arc<Vec<Mutex<Vec<u8>>>>,
    barrier: Arc<Barrier>,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
}

impl Ranks for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.table.len()
    }

    fn broadcast(&self, bytes: &mut [u8]) {
        if self.rank == 0 {
            *self.table[0].lock().expect("no panic") = bytes.to_vec();
        }
        self.barrier.wait();
        bytes.copy_from_slice(&self.table[0].lock().expect("no panic"));
        self.barrier.wait();
    }

    fn gather(&self, mine: &[u8], all: &mut [u8], counts: &[usize]) {
        assert_eq!(mine.len(), counts[self.rank]);
        *self.table[self.rank].lock().expect("no panic") = mine.to_vec();
        self.barrier.wait();
        let parts = self.table.iter().map(|part| part.lock().expect("no panic"));
        let parts: Vec<u8> = parts.flat_map(|part| part.clone()).collect();
        all.copy_from_slice(&parts);
        self.barrier.wait();
    }

    fn exchange(&self, to: usize, sent: &[u8], from: usize, received: &mut [u8]) {
        self.to[to].send(sent.to_vec()).expect("it is there");
        let from = self.from[from].lock().expect("no panic");
        received.copy_from_slice(&from.recv().expect("it is there"));
    }

    fn abort(&self, code: u8, why: &str) -> ! {
        panic!("rank {} of {}: {why} ({code})", self.rank, self.size())
    }
}

/// Results of `work` on each of `size` ranks. Like a process, each rank has its own threads to compute
/// on: ranks that wait for each other must not also wait for threads.
pub(crate) fn ranks<T: Send>(size: usize, work: impl Fn(Box<dyn Ranks>) -> T + Sync) -> Vec<T> {
    let table: Arc<Vec<_>> = Arc::new((0..size).map(|_| Mutex::default()).collect());
    let barrier = Arc::new(Barrier::new(size));
    let mut senders: Vec<Vec<_>> = (0..size).map(|_| vec![]).collect();
    let mut receivers: Vec<Vec<_>> = (0..size).map(|_| vec![]).collect();
    for from in &mut senders {
        for to in &mut receivers {
            let (sender, receiver) = channel();
            from.push(sender);
            to.push(Mutex::new(receiver));
        }
    }
    let ways = senders.into_iter().zip(receivers).enumerate();
    let all = ways.map(|(rank, (to, from))| Thread {
        rank,
        table: Arc::clone(&table),
        barrier: Arc::clone(&barrier),
        to,
        from,
    });
    let (all, work): (Vec<_>, _) = (all.collect(), &work);
    thread::scope(|scope| {
        let threads: Vec<_> = (all.into_iter())
            .map(|rank| {
                let pool = ThreadPoolBuilder::new().num_threads(2).build();
                let pool = pool.expect("two threads");
                scope.spawn(move || pool.install(|| work(Box::new(rank))))
            })
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, T>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect()
    })
}

/// Results of `work` on each rank of a team with these numbers of threads.
pub(crate) fn together_with<T: Send>(
    threads: &[usize],
    work: impl Fn(Arc<Team>) -> T + Sync,
) -> Vec<T> {
    ranks(threads.len(), |ranks| {
        let me = Member {
            version: String::new(),
            arguments: String::new(),
            threads: threads[ranks.rank()],
        };
        work(Arc::new(Team::new(ranks, &me).expect("alike")))
    })
}
