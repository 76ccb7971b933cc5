//! Signals that ask a run to stop: Ctrl-C, the end of a terminal, and the signals of batch systems.

/// Calls `stop` at each signal that asks to stop. Batch systems send SIGUSR1, SIGUSR2 or SIGXCPU some time before
/// the end of a job: these count once, for SIGXCPU comes every second.
///
/// # Errors
/// If signals have a handler already, or the system refuses one.
pub(super) fn on_stop(stop: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(stop)?;
    #[cfg(unix)]
    of_batch_systems::hand_on();
    Ok(())
}

#[cfg(unix)]
mod of_batch_systems {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    static ASKED: AtomicBool = AtomicBool::new(false);

    extern "C" fn terminate(_: c_int) {
        if !ASKED.swap(true, SeqCst) {
            // SAFETY: a handler of signals may call both; SIGTERM has a handler since before this one.
            unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        }
    }

    /// Takes these signals for SIGTERM.
    pub(super) fn hand_on() {
        let handler = terminate as extern "C" fn(c_int);
        for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGXCPU] {
            // SAFETY: the handler does only what a handler of signals may do.
            unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        }
    }
}
