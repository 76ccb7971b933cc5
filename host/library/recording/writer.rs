//! Looks and snapshots, measured and written by a thread of their own while the run goes on: a GPU
//! that waits for a file computes nothing.

use std::fmt;
use std::panic;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::binaries::Binaries;
use super::log::Log;
use super::pairs;
use super::particles::Particles;
use super::rows::{Cell, Rows};
use super::{RecordingError, RunEvent, io_error};
use crate::bodies::Bodies;
use crate::diagnostics::{Brought, Conserved, Energy, Lost, Sample};
use crate::fields::External;
use crate::io::{self, Format, Overwrite, Snapshot};
use crate::physics::Physics;
use crate::units::Units;

/// Facts about the run that the writing thread needs.
pub(super) struct Run {
    pub(super) folder: PathBuf,
    pub(super) format: Format,
    pub(super) units: Option<Units>,
    pub(super) origin: Conserved,
    pub(super) physics: Physics,
    pub(super) log: Option<Arc<Mutex<Log>>>,
    pub(super) pairs: Option<Rows>,
    pub(super) index: Option<Rows>,
    pub(super) binaries: Option<Binaries>,
}

/// One moment of the run, of which there is something to write.
pub(super) struct Moment {
    pub(super) steps: u64,
    pub(super) time: f64,
    pub(super) bodies: Bodies,
    /// For a look.
    pub(super) energy: Option<Energy>,
    /// Block time steps that bodies take next, for a look.
    pub(super) own_steps: Vec<f64>,
    /// Quantities that mergers and removed bodies took with them.
    pub(super) lost: Lost,
    /// Quantities that changes from outside brought.
    pub(super) brought: Brought,
    pub(super) particles: Option<Particles>,
    /// External fields at that time.
    pub(super) external: External,
    /// Number and path for a snapshot.
    pub(super) snapshot: Option<(u64, PathBuf)>,
}

enum Done {
    Sample(Box<Sample>),
    Wrote(PathBuf),
}

type Outcome = Result<Vec<Done>, RecordingError>;

/// The thread, and what it was given to do.
pub(super) struct Writer {
    moments: Option<SyncSender<Moment>>,
    outcomes: Receiver<Outcome>,
    pending: usize,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

impl Writer {
    pub(super) fn new(run: Run) -> Self {
        // One moment waits while another is written: two copies of the bodies, and no more.
        let (moments, given) = sync_channel(1);
        let (finished, outcomes) = channel();
        let thread = thread::spawn(move || work(&run, &given, &finished));
        Self {
            moments: Some(moments),
            outcomes,
            pending: 0,
            thread: Some(thread),
        }
    }

    /// Has a moment written, as soon as those before are.
    pub(super) fn write(&mut self, moment: Moment) {
        let moments = self.moments.as_ref().expect("open until dropped");
        // It is refused after a failure only, which the next question tells of.
        if moments.send(moment).is_ok() {
            self.pending += 1;
        }
    }

    /// Tells what was written since it was last asked.
    ///
    /// # Errors
    /// The output that could not be written.
    pub(super) fn poll(
        &mut self,
        tell: &mut impl FnMut(RunEvent<'_>),
    ) -> Result<(), RecordingError> {
        while self.pending > 0 {
            match self.outcomes.try_recv() {
                Ok(outcome) => self.tell(outcome, tell)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.rethrow(),
            }
        }
        Ok(())
    }

    /// Waits until everything is written, and tells of it.
    ///
    /// # Errors
    /// The output that could not be written.
    pub(super) fn finish(
        &mut self,
        tell: &mut impl FnMut(RunEvent<'_>),
    ) -> Result<(), RecordingError> {
        while self.pending > 0 {
            match self.outcomes.recv() {
                Ok(outcome) => self.tell(outcome, tell)?,
                Err(_) => self.rethrow(),
            }
        }
        Ok(())
    }

    fn tell(
        &mut self,
        outcome: Outcome,
        tell: &mut impl FnMut(RunEvent<'_>),
    ) -> Result<(), RecordingError> {
        self.pending -= 1;
        let outcome = outcome.inspect_err(|_| self.pending = 0); // what is left, it leaves out
        for done in outcome? {
            match done {
                Done::Sample(sample) => tell(RunEvent::Sample(&sample)),
                Done::Wrote(path) => tell(RunEvent::Wrote(&path)),
            }
        }
        Ok(())
    }

    /// Goes on with the thread's panic: without a failure it ends in no other way.
    fn rethrow(&mut self) -> ! {
        let thread = self.thread.take().expect("joined once");
        panic::resume_unwind(thread.join().expect_err("something is still to be done"))
    }
}

impl Drop for Writer {
    /// Waits for what is being written.
    fn drop(&mut self) {
        self.moments = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was reported, or another is under way
        }
    }
}

/// The log, in whatever state a panic may have left it: rows are mended on resuming.
pub(super) fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(run: &Run, moments: &Receiver<Moment>, finished: &Sender<Outcome>) {
    for moment in moments {
        let outcome = record(run, moment);
        let failed = outcome.is_err();
        if finished.send(outcome).is_err() || failed {
            // No outcome is asked for any more; or what comes after a gap would hide it.
            break;
        }
    }
}

fn record(run: &Run, moment: Moment) -> Outcome {
    let mut done = vec![];
    if let (Some(energy), Some(log)) = (moment.energy, &run.log) {
        let (bodies, physics) = (&moment.bodies, &run.physics);
        let conserved = Conserved::measure(moment.time, bodies, physics, energy);
        let conserved = conserved.including(&moment.lost, &moment.brought);
        let sample = Sample::measure(moment.steps, conserved, &run.origin, bodies, physics)
            .with_own_steps(&moment.own_steps);
        let appended = lock(log).append(&sample);
        appended.map_err(|fault| io_error(&run.folder, fault))?;
        if let Some(particles) = &moment.particles {
            let when = (moment.steps, moment.time);
            let appended = particles.append(when, bodies, physics, &moment.external);
            appended.map_err(|fault| io_error(&run.folder, fault))?;
        }
        if let Some(rows) = &run.pairs {
            let appended = pairs::append(rows, (moment.steps, moment.time), bodies, physics);
            appended.map_err(|fault| io_error(&run.folder, fault))?;
        }
        done.push(Done::Sample(Box::new(sample)));
    }
    if let Some((number, path)) = moment.snapshot {
        let snapshot = Snapshot {
            time: moment.time,
            bodies: moment.bodies,
        };
        // After a kill it may be there already, with the same bytes.
        io::write_in_units(&path, run.format, &snapshot, run.units, Overwrite::Allow)?;
        if let Some(rows) = &run.index {
            let appended = rows.append(
                moment.steps,
                &[Cell::Id(number), Cell::Number(snapshot.time)],
            );
            appended.map_err(|fault| io_error(&run.folder, fault))?;
        }
        if let Some(binaries) = &run.binaries {
            let when = (moment.steps, snapshot.time);
            let appended = binaries.append(when, &snapshot.bodies, &run.physics);
            appended.map_err(|fault| io_error(&run.folder, fault))?;
        }
        done.push(Done::Wrote(path));
    }
    Ok(done)
}
