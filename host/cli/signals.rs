//! Signals that ask a run to stop: Ctrl-C, the end of a terminal, and the signals of batch systems.

/// Calls `stop` at each signal that asks to stop. Batch systems send SIGUSR1, SIGUSR2 or SIGXCPU some time before
/// the end of a job: these count once, for SIGXCPU comes every second. The end of the terminal is not one where the
/// program was told to ignore it, as `nohup` does.
///
/// # Errors
/// If signals have a handler already, or the system refuses one.
pub(super) fn on_stop(stop: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    #[cfg(unix)]
    let is_ignored = hang_up::is_ignored();
    ctrlc::set_handler(stop)?;
    #[cfg(unix)]
    {
        of_batch_systems::hand_on();
        if is_ignored {
            hang_up::ignore();
        }
    }
    Ok(())
}

#[cfg(unix)]
mod hang_up {
    use std::mem::MaybeUninit;
    use std::ptr;

    /// Returns whether the process that started this one had SIGHUP ignored.
    pub(super) fn is_ignored() -> bool {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: without a new action the call only writes the present one, for which there is room.
        let outcome = unsafe { libc::sigaction(libc::SIGHUP, ptr::null(), action.as_mut_ptr()) };
        // SAFETY: the call has written it if it succeeded.
        outcome == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
    }

    pub(super) fn ignore() {
        // SAFETY: to ignore a signal runs no code at all.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
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
