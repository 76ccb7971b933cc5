//! The end of all ranks where one of them fails: those that are left would wait for it for ever.

use std::env::VarError;
use std::ffi::c_int;
use std::io::Write;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::library::Handle;

/// Exit codes: of a panic, as Rust has it; of a wait in vain; of an error of MPI; of an end before the
/// run's; of a request to stop, as shells say it.
const PANICKED: u8 = 101;
const WAITED: u8 = 102;
pub(super) const FAILED: u8 = 103;
const LEFT: u8 = 104;
const STOPPED: u8 = 143;

/// Environment variable for the longest wait for other ranks, in seconds; 0 for no end.
const LONGEST_WAIT: &str = "ALLPAIRS_MPI_TIMEOUT";
const LONGEST_WAIT_SECONDS: u64 = 600;

/// Longest wait for other ranks after this one was asked to stop: they may be gone.
const WAIT_AFTER_STOP: Duration = Duration::from_secs(4);

/// Hydra loses what was written just before the end.
const TIME_TO_READ: Duration = Duration::from_millis(200);
/// A library's `MPI_Abort` that takes longer hangs.
const TIME_TO_ABORT: Duration = Duration::from_secs(3);

/// Means of ending all.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) world: Handle,
    pub(super) abort: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) finalize: unsafe extern "C" fn() -> c_int,
}

static WATCHED: OnceLock<Watched> = OnceLock::new();
/// Event that is waited for, and since when.
static WAITING: Mutex<Option<(&'static str, Instant)>> = Mutex::new(None);
static STOP: OnceLock<Instant> = OnceLock::new();
static DYING: AtomicBool = AtomicBool::new(false);
/// True if MPI was finished or is about to be: it takes no calls any more.
static FINISHED: AtomicBool = AtomicBool::new(false);

/// Writes a message to the standard error in one piece, so that messages of ranks do not mix.
pub(super) fn say(text: &str) {
    // A failure cannot be told anywhere.
    let _ = std::io::stderr().write_all(format!("allpairs: {text}\n").as_bytes());
}

/// Ends all ranks.
pub(super) fn abort_all(code: u8) -> ! {
    let code = c_int::from(code);
    if DYING.swap(true, SeqCst) {
        thread::sleep(TIME_TO_ABORT); // another thread is at it
        end(code)
    }
    thread::spawn(move || {
        thread::sleep(TIME_TO_READ + TIME_TO_ABORT);
        end(code)
    });
    thread::sleep(TIME_TO_READ);
    if let (Some(watched), false) = (WATCHED.get(), FINISHED.load(SeqCst)) {
        // SAFETY: the handle is that of all processes. It may be called by any thread at a time when another
        // waits in a call; should the library take it ill, the process ends a little sooner.
        unsafe { (watched.abort)(watched.world, code) };
    }
    end(code)
}

/// Ends this process without what would be done at a good end.
fn end(code: c_int) -> ! {
    // SAFETY: it ends the process, and runs nothing of it.
    unsafe { libc::_exit(code) }
}

/// Longest wait for other ranks by the environment; none for no end.
pub(super) fn longest_wait() -> Result<Option<Duration>, String> {
    let seconds = match std::env::var(LONGEST_WAIT) {
        Ok(text) => (text.trim().parse()).map_err(|_| {
            format!(
                "`{LONGEST_WAIT}` must be a whole number of seconds, 0 for no end, got `{text}`"
            )
        })?,
        Err(VarError::NotPresent) => LONGEST_WAIT_SECONDS,
        Err(VarError::NotUnicode(_)) => return Err(format!("`{LONGEST_WAIT}` is not text")),
    };
    Ok(Some(Duration::from_secs(seconds)).filter(|longest| !longest.is_zero()))
}

/// Watches over this process from now on: panics, ends before the end, and waits of more than `longest` end all ranks.
pub(super) fn watch(watched: Watched, longest: Option<Duration>) {
    let Watched { rank, size, .. } = watched;
    if WATCHED.set(watched).is_err() {
        return; // it is under way
    }
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        before(info);
        say(&format!("rank {rank} of {size} panicked: all ranks end"));
        abort_all(PANICKED)
    }));
    // SAFETY: the function may run when the program exits: it uses statics alone. It is called before what the
    // library has registered, which was earlier.
    unsafe { libc::atexit(at_exit) };
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(100));
            let waiting = *WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((what, since)) = waiting else {
                continue;
            };
            if longest.is_some_and(|longest| since.elapsed() > longest) {
                let seconds = since.elapsed().as_secs();
                say(&format!(
                    "rank {rank} of {size} waited {seconds} s for others in {what} (`{LONGEST_WAIT}`): a \
                     rank that does not say so hangs or is lost: all ranks end"
                ));
                abort_all(WAITED)
            }
            if let Some(asked) = STOP.get()
                && asked.elapsed() > WAIT_AFTER_STOP
                && since.elapsed() > WAIT_AFTER_STOP
            {
                say(&format!(
                    "rank {rank} of {size} was told to stop, and waited in vain for others in {what}: it ends"
                ));
                end(c_int::from(STOPPED))
            }
        }
    });
}

/// Notes that this process was asked to stop by a signal: where it then waits for others in vain, it ends.
pub fn asked_to_stop() {
    let _ = STOP.set(Instant::now());
}

/// Makes a call that waits for other ranks.
pub(super) fn waiting<T>(what: &'static str, call: impl FnOnce() -> T) -> T {
    let set = |waiting| *WAITING.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
    set(Some((what, Instant::now())));
    let result = call();
    set(None);
    result
}

/// Ends well, as all ranks do.
pub(super) fn finish() {
    let Some(watched) = WATCHED.get() else {
        return;
    };
    // Also after a signal, which may be this rank's alone; where others are gone, `watch` ends the wait.
    FINISHED.store(true, SeqCst);
    // SAFETY: it is called once, after all else, by the thread that initialised MPI.
    waiting("the end", || unsafe { (watched.finalize)() });
}

extern "C" fn at_exit() {
    let (false, false, Some(watched)) = (FINISHED.load(SeqCst), DYING.load(SeqCst), WATCHED.get())
    else {
        return;
    };
    let Watched { rank, size, .. } = watched;
    say(&format!(
        "rank {rank} of {size} left before the end of the run: all ranks end"
    ));
    abort_all(LEFT)
}
