//! Panics of kernels: kept quiet, and described for the fault that they become.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, Location};
use std::sync::Once;

/// Message of a panic, and its source line.
pub(super) struct Note {
    pub(super) message: String,
    pub(super) at: String,
}

thread_local! {
    /// The last panic of a kernel on this OS thread.
    static LAST: Cell<Option<Note>> = const { Cell::new(None) };
}

/// From now on panics are noted instead of printed on OS threads where `in_kernel` holds. Only the
/// panic hook learns a panic's location. Other panics are handled as before.
pub(super) fn install_hook(in_kernel: fn() -> bool) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if in_kernel() {
                LAST.set(Some(note(info.payload(), info.location())));
            } else {
                previous(info);
            }
        }));
    });
}

/// The note on the panic that was caught with `payload`. Without its location if the program
/// has put another hook in place of ours.
pub(super) fn describe(payload: &dyn Any) -> Note {
    LAST.take().unwrap_or_else(|| note(payload, None))
}

fn note(payload: &dyn Any, location: Option<&Location<'_>>) -> Note {
    let text = payload.downcast_ref::<&str>().copied();
    let message = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Note {
        message: message
            .unwrap_or("(the panic's payload is not a text)")
            .to_owned(),
        at: location.map_or_else(|| "an unknown line".to_owned(), Location::to_string),
    }
}
