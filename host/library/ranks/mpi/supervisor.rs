//! A second process for each rank, which reports how the rank died. No launcher reliably names the rank
//! of a killed process, and some name another rank.

use std::ffi::c_int;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};

use super::guard::say;
use super::launcher::Launcher;

/// Signals that are meant for the rank.
const FORWARDED: [c_int; 5] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

static CHILD: AtomicI32 = AtomicI32::new(0);
static TOLD: AtomicBool = AtomicBool::new(false);

extern "C" fn forward(signal: c_int) {
    TOLD.store(true, SeqCst);
    // SAFETY: `kill` may be called by a handler of signals; the child is there until it is waited for, which ends
    // this process.
    unsafe { libc::kill(CHILD.load(SeqCst), signal) };
}

/// Goes on in a child process, over which this one watches; it holds what connects it to the launcher, which
/// therefore ends the others only after it has spoken. Only where there is one thread, of which alone a
/// child would have a copy: elsewhere nothing is done.
pub fn supervise(launcher: &Launcher) {
    if threads() != Some(1) {
        return;
    }
    // SAFETY: it has no requirements.
    let me = unsafe { libc::getpid() };
    // SAFETY: there is one thread, so that no other holds a lock in the child's memory for ever.
    match unsafe { libc::fork() } {
        ..0 => {} // there is no room for a process: the rank goes on by itself
        0 => begin_as_child(me),
        child => watch_over(child, launcher),
    }
}

fn begin_as_child(parent: libc::pid_t) {
    // SAFETY: these concern this process alone: it is to die with the parent thread, which is the parent's
    // only one, and signals to the group reach it through the parent alone.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        libc::setpgid(0, 0);
        if libc::getppid() != parent {
            libc::_exit(1); // it died before that
        }
    }
}

fn watch_over(child: libc::pid_t, launcher: &Launcher) -> ! {
    CHILD.store(child, SeqCst);
    for signal in FORWARDED {
        // SAFETY: the handler does what handlers may: it stores a flag and sends a signal.
        unsafe {
            libc::signal(
                signal,
                forward as extern "C" fn(c_int) as libc::sighandler_t,
            )
        };
    }
    let mut status = 0;
    // SAFETY: it writes a number. Where a signal interrupts it, it is called again.
    while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
    let code = if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        // Where the launcher has sent signals, another rank is the cause.
        if !TOLD.load(SeqCst) {
            let number = |number: Option<usize>| number.map_or("?".into(), |n| n.to_string());
            say(&format!(
                "rank {} of {} (process {child} on {}) was killed by signal {signal}{}: all ranks end",
                number(launcher.rank),
                number(launcher.size),
                super::machine(),
                name(signal)
            ));
        }
        128 + signal
    } else {
        libc::WEXITSTATUS(status)
    };
    // SAFETY: it ends the process, and runs nothing of it: what it would do is the child's.
    unsafe { libc::_exit(code) }
}

/// Number of threads of this process, if it is known.
fn threads() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let threads = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"))?;
    threads.trim().parse().ok()
}

/// A signal's name, and what most often sends it.
fn name(signal: c_int) -> &'static str {
    match signal {
        libc::SIGKILL => " (SIGKILL: no memory left, or by hand)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGBUS => " (SIGBUS: no room left in /dev/shm, perhaps)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGILL => " (SIGILL)",
        _ => "",
    }
}
