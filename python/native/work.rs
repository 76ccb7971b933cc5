//! Work without the interpreter's lock: until Ctrl-C, and also in a process that was forked.

use std::any::Any;
use std::env;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use allpairs::threads::{most_threads, threads_of_openmp};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{Failure, Kind};
use crate::fields::Waiting;

/// How often the caller of some work looks whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(20);
/// How long the caller waits after that for work that was told to stop.
const PATIENCE: Duration = Duration::from_millis(500);

/// Process that loaded the module: threads for its work are there.
static LOADED_IN: OnceLock<u32> = OnceLock::new();

/// Threads of a process that was forked, and the process.
static OF_CHILD: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Remembers the process as the one that loaded the module. Starts as many threads as OpenMP's variable says, if
/// rayon's is not set.
///
/// # Errors
/// If there are to be more threads than this machine can have.
pub(crate) fn loaded() -> PyResult<()> {
    LOADED_IN.get_or_init(process::id);
    let threads = threads();
    let rayons = env::var("RAYON_NUM_THREADS").ok();
    let asked = rayons.and_then(|text| text.trim().parse().ok());
    let (asked, most) = (asked.unwrap_or(threads), most_threads());
    if asked > most {
        let text = format!(
            "`RAYON_NUM_THREADS` or `OMP_NUM_THREADS` must be ≤ {most} on this machine, got {asked}"
        );
        return Err(PyImportError::new_err(text));
    }
    if threads > 0 {
        // Threads that another module of this process started stay as they are.
        let _ = ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    Ok(())
}

/// Number of threads that OpenMP's variable asks for; 0 for rayon's own choice.
fn threads() -> usize {
    match env::var_os("RAYON_NUM_THREADS") {
        Some(text) if !text.is_empty() => 0,
        _ => threads_of_openmp().unwrap_or(0),
    }
}

/// Threads for work in this process, if it is a fork of the one that loaded the module. A fork takes over
/// memory, but no threads: work that is handed to threads of the parent would wait for ever.
fn threads_of_child() -> Result<Option<Arc<ThreadPool>>, Failure> {
    let process = process::id();
    if *LOADED_IN.get_or_init(process::id) == process {
        return Ok(None);
    }
    let mut kept = OF_CHILD.lock().unwrap_or_else(PoisonError::into_inner);
    match &*kept {
        Some((of, pool)) if *of == process => Ok(Some(Arc::clone(pool))),
        _ => {
            let pool = ThreadPoolBuilder::new().num_threads(threads()).build();
            let pool = pool.map_err(|why| {
                let text = format!("no threads can be started in this forked process: {why}");
                Failure::new(Kind::Compute, text)
            })?;
            let pool = Arc::new(pool);
            // The threads of the one before are in another process, where they end with it.
            mem::forget(kept.replace((process, Arc::clone(&pool))));
            Ok(Some(pool))
        }
    }
}

/// The outcome of work, or its panic.
pub(crate) fn caught<T: Send>(
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let pool = threads_of_child()?;
    let done = catch_unwind(AssertUnwindSafe(|| match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }));
    done.unwrap_or_else(|panic: Box<dyn Any + Send>| Err(Failure::panicked(&*panic)))
}

/// Does quick work without the interpreter's lock; failures and panics become exceptions.
pub(crate) fn compute<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| caught(work));
    outcome.map_err(|failure| failure.raise(py))
}

/// Like [`compute`], but for work that takes long: Ctrl-C raises its exception at once. The work, which nobody
/// waits for any more, ends in the background.
pub(crate) fn compute_long<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    in_thread(py, work, None, &mut |py| py.check_signals())?.map_err(|failure| failure.raise(py))
}

/// Outcome of work in another thread, or the exception of `look`, which is called again and again meanwhile and looks
/// for Ctrl-C. After an exception, work that can `stop` is told to, and has some time for it.
pub(crate) fn in_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    stop: Option<&dyn Fn()>,
    look: &mut dyn FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<Result<T, Failure>> {
    let (sender, mut receiver) = mpsc::channel();
    let waiting = Waiting::here();
    thread::Builder::new().spawn(move || {
        let outcome = caught(|| waiting.during(work));
        let _ = sender.send(outcome); // nobody may be waiting any more
    })?;
    loop {
        let outcome;
        (receiver, outcome) = py.detach(move || {
            let outcome = receiver.recv_timeout(LOOK);
            (receiver, outcome)
        });
        match outcome {
            Ok(outcome) => return Ok(outcome),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let text = "the thread of a computation ended without a word";
                return Ok(Err(Failure::new(Kind::Internal, text)));
            }
        }
        if let Err(interrupt) = look(py) {
            if let Some(stop) = stop {
                stop();
                let _ = py.detach(move || receiver.recv_timeout(PATIENCE));
            }
            return Err(interrupt);
        }
    }
}
