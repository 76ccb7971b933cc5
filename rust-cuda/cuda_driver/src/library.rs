//! Libraries that are found when the program runs.

use std::ffi::{CStr, OsStr};

use libloading::Library;

use crate::error::{LibraryAttempt, NoLibrary};

/// One of NVIDIA's libraries beside the driver.
pub(crate) struct Wanted {
    pub(crate) name: &'static str,
    /// Where it comes from, for people.
    pub(crate) origin: &'static str,
    /// Environment variable that overrides the search: the path of a library, or `none` to behave as
    /// if there were none.
    pub(crate) variable: &'static str,
    /// Tried in order, where the loader looks.
    pub(crate) names: &'static [&'static str],
}

impl Wanted {
    /// Finds it.
    pub(crate) fn find(&self) -> Result<Found, NoLibrary> {
        let &Self {
            name: what,
            origin,
            variable,
            names,
        } = self;
        find(variable, names).map_err(|why| match why {
            NotFound::SwitchedOff => NoLibrary::SwitchedOff { what, variable },
            NotFound::NoLibrary(tried) => NoLibrary::NotFound {
                what,
                origin,
                variable,
                tried,
            },
        })
    }

    /// A function of the library that was found.
    ///
    /// # Safety
    /// `T` is the type of the function of this name.
    pub(crate) unsafe fn function<T: Copy>(
        &self,
        found: &Found,
        function: &'static CStr,
    ) -> Result<T, NoLibrary> {
        // SAFETY: the caller's promise.
        let symbol = unsafe { found.library.get::<T>(function) };
        symbol
            .map(|symbol| *symbol)
            .map_err(|_| NoLibrary::NoFunction {
                what: self.name,
                library: found.name.clone(),
                function: function.to_str().unwrap_or_default(),
            })
    }
}

/// A library, and the name under which it was found.
#[derive(Debug)]
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
