//! Libraries that are found when the program runs.

use std::ffi::OsStr;

use libloading::Library;

use crate::error::LibraryAttempt;

/// A library, and the name under which it was found.
pub(crate) struct Found {
    pub(crate) library: Library,
    pub(crate) name: String,
}

/// Reason why there is none.
pub(crate) enum NotFound {
    /// The variable says `none`.
    SwitchedOff,
    /// It could not be loaded under any of its names, which were tried in order.
    NoLibrary(Vec<LibraryAttempt>),
}

/// The library whose path an environment variable holds, or, where it is empty, the first one that
/// can be loaded of these.
pub(crate) fn find(variable: &str, names: &[&str]) -> Result<Found, NotFound> {
    let forced = std::env::var_os(variable).filter(|value| !value.is_empty());
    let names = match &forced {
        Some(value) if value == "none" => return Err(NotFound::SwitchedOff),
        Some(path) => vec![path.as_os_str()],
        None => names.iter().map(OsStr::new).collect(),
    };
    let mut tried = Vec::new();
    for path in names {
        let name = path.to_string_lossy().into_owned();
        // SAFETY: this runs the initialisers of a library of NVIDIA's (or of the one that the user
        // named), which are made to run on loading. Callers never unload it.
        let loaded = unsafe {
            if forced.is_some() {
                Library::new(path)
            } else {
                load_by_name(path)
            }
        };
        match loaded {
            Ok(library) => return Ok(Found { library, name }),
            Err(error) => tried.push(LibraryAttempt::new(name, &error)),
        }
    }
    Err(NotFound::NoLibrary(tried))
}

/// Loads the library of this bare name from where the system's loader looks.
///
/// # Safety
/// As [`Library::new`].
#[cfg(not(windows))]
unsafe fn load_by_name(name: &OsStr) -> Result<Library, libloading::Error> {
    // SAFETY: the caller's promise.
    unsafe { Library::new(name) }
}

/// Loads the library of this bare name from the program's folder or the system's. Windows' own order
/// goes on to the current folder and those of `PATH`, where anybody may have put a library of that
/// name.
///
/// # Safety
/// As [`Library::new`].
#[cfg(windows)]
unsafe fn load_by_name(name: &OsStr) -> Result<Library, libloading::Error> {
    use libloading::os::windows::{self, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS};
    // SAFETY: the caller's promise.
    let library =
        unsafe { windows::Library::load_with_flags(name, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS) };
    library.map(Library::from)
}
