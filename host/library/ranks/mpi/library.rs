//! The site's MPI library, found at run time: neither header nor compiler wrapper is needed.

use std::env;
use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};

use super::launcher::{Kind, LIBRARY, Launcher};

/// A handle of MPI, in a register: a pointer in the ABI of MPI 5 and of Open MPI, an `int` in its lower half in
/// that of MPICH.
pub(super) type Handle = usize;

/// The binary interface of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    /// That of MPI 5.
    Standard,
    /// That of MPICH, Intel MPI and MVAPICH.
    Mpich,
    OpenMpi,
}

/// Constants that are not the same in all binary interfaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    pub(super) world: Handle,
    pub(super) byte: Handle,
    pub(super) word: Handle,
    pub(super) serialized: c_int,
    pub(super) no_status: usize,
}

/// The functions that are used. Buffers are addresses, so that one type serves those read and written.
pub(super) struct Functions {
    pub(super) init_thread: unsafe extern "C" fn(usize, usize, c_int, *mut c_int) -> c_int,
    pub(super) initialized: unsafe extern "C" fn(*mut c_int) -> c_int,
    pub(super) finalize: unsafe extern "C" fn() -> c_int,
    pub(super) comm_rank: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    pub(super) comm_size: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    pub(super) type_size: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    pub(super) bcast: unsafe extern "C" fn(*mut u8, c_int, Handle, c_int, Handle) -> c_int,
    pub(super) allgatherv: unsafe extern "C" fn(
        *const u8,
        c_int,
        Handle,
        *mut u8,
        *const c_int,
        *const c_int,
        Handle,
        Handle,
    ) -> c_int,
    pub(super) sendrecv: unsafe extern "C" fn(
        *const u8,
        c_int,
        Handle,
        c_int,
        c_int,
        *mut u8,
        c_int,
        Handle,
        c_int,
        c_int,
        Handle,
        usize,
    ) -> c_int,
    pub(super) abort: unsafe extern "C" fn(Handle, c_int) -> c_int,
}

/// An MPI library that was opened, and is never closed.
pub(super) struct Mpi {
    library: ManuallyDrop<Library>,
    /// Path or name that it was opened by.
    pub(super) name: String,
    /// Name and version, as the library says them.
    pub(super) version: String,
    abi: Abi,
}

/// Length of the longest text that a library says of itself (8192 in MPICH), and its end.
const LONGEST_VERSION: usize = 8192 + 1;

const OPEN_MPI: [&str; 1] = ["libmpi.so.40"];
/// Debian calls MPICH's `libmpich`.
const MPICH: [&str; 2] = ["libmpi.so.12", "libmpich.so.12"];
/// Last, because it is the least settled.
const STANDARD: [&str; 3] = ["libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so"];

/// Folders of libraries, under that where a launcher is installed.
const FOLDERS: [&str; 5] = [
    "lib",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "lib/release",
];

impl Mpi {
    /// The library of a launcher: the one that was asked for, else the one that is installed beside the
    /// launcher, else one that the system finds by name.
    pub(super) fn find(launcher: &Launcher) -> Result<Self, String> {
        if let Some(asked) = env::var_os(LIBRARY) {
            let name = asked.to_string_lossy();
            return Self::probe(&name).map_err(|why| format!("`{LIBRARY}`: {why}"));
        }
        let mut tried = vec![];
        for name in candidates(launcher) {
            match Self::probe(&name) {
                Ok(found) if found.is_of_another(launcher.kind) => {
                    tried.push(format!("{name}: it is not of the launcher's family"));
                }
                Ok(found) => return Ok(found),
                Err(why) => tried.push(why),
            }
        }
        let Launcher { evidence, .. } = launcher;
        Err(format!(
            "started by an MPI launcher ({evidence}), but no MPI library was found:\n  {}\n\
             Set `{LIBRARY}` to the library of that launcher, or start without it",
            tried.join("\n  ")
        ))
    }

    /// Opens a library and asks what it is, without showing its symbols to others: they would take a
    /// rejected one's.
    fn probe(name: &str) -> Result<Self, String> {
        // SAFETY: initialisers of MPI libraries set up memory and nothing else; what is not one was named by
        // the user or bears the name of one. It is never closed, so that what it registered stays.
        let library = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) };
        let library = ManuallyDrop::new(library.map_err(|why| with_reason(&why))?);
        type Version = unsafe extern "C" fn(*mut u8, *mut c_int) -> c_int;
        // SAFETY: MPI says that this is the function's type.
        let version = unsafe { library.get::<Version>(b"MPI_Get_library_version\0") };
        let Ok(version) = version else {
            return Err(format!(
                "{name}: not an MPI library: it has no MPI_Get_library_version"
            ));
        };
        let (mut text, mut length) = ([0; LONGEST_VERSION], 0);
        // SAFETY: the text has room for the longest that a library says, and the function may be called
        // before MPI is initialised.
        unsafe { version(text.as_mut_ptr(), &mut length) };
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        let text = text.to_string_lossy();
        let version = name_and_number(&text);
        let is_of = |families: &[&str]| families.iter().any(|family| version.contains(family));
        let abi = if address(&library, b"ompi_mpi_comm_world\0").is_some() {
            Abi::OpenMpi
        } else if is_standard(&library) {
            Abi::Standard
        } else if is_of(&["MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation"]) {
            Abi::Mpich
        } else {
            return Err(format!(
                "{name}: an MPI library of no known kind: {version}"
            ));
        };
        Ok(Self {
            library,
            name: name.to_owned(),
            version,
            abi,
        })
    }

    /// Returns whether it is of another family than a launcher of this kind, which would start as many runs
    /// of one process.
    pub(super) fn is_of_another(&self, kind: Kind) -> bool {
        let is_open = self.abi == Abi::OpenMpi || self.version.starts_with("Open MPI");
        match kind {
            Kind::OpenMpi => !is_open,
            Kind::Hydra => is_open,
            Kind::Other => false,
        }
    }

    /// Shows its symbols to its own plugins, which are opened later, and finds the functions.
    pub(super) fn functions(&self) -> Result<Functions, String> {
        // SAFETY: it is open already: nothing is run.
        let shown = unsafe { Library::open(Some(&self.name), RTLD_NOW | RTLD_GLOBAL) };
        let _shown = ManuallyDrop::new(shown.map_err(|why| with_reason(&why))?);
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field that it becomes has the type that MPI says, with handles as whole
                // registers: AMD64 and AArch64 pass an `int` in the lower half of the register, or of
                // the eight bytes on the stack, that would hold a pointer; a callee reads no more of it.
                match unsafe { self.library.get(concat!($name, "\0").as_bytes()) } {
                    Ok(symbol) => *symbol,
                    Err(_) => return Err(format!("{} has no {}", self.name, $name)),
                }
            };
        }
        Ok(Functions {
            init_thread: function!("MPI_Init_thread"),
            initialized: function!("MPI_Initialized"),
            finalize: function!("MPI_Finalize"),
            comm_rank: function!("MPI_Comm_rank"),
            comm_size: function!("MPI_Comm_size"),
            type_size: function!("MPI_Type_size"),
            bcast: function!("MPI_Bcast"),
            allgatherv: function!("MPI_Allgatherv"),
            sendrecv: function!("MPI_Sendrecv"),
            abort: function!("MPI_Abort"),
        })
    }

    /// The constants of its binary interface, as each library's `mpi.h` has them.
    pub(super) fn constants(&self) -> Result<Constants, String> {
        let named = |name: &[u8]| {
            address(&self.library, name).ok_or_else(|| {
                let name = String::from_utf8_lossy(name);
                format!("{} has no {}", self.name, name.trim_end_matches('\0'))
            })
        };
        Ok(match self.abi {
            Abi::Standard => Constants {
                world: 0x101,
                byte: 0x247,
                word: 0x259,
                serialized: 0x800,
                no_status: 0,
            },
            Abi::Mpich => Constants {
                world: 0x4400_0000,
                byte: 0x4c00_010d,
                word: 0x4c00_083e,
                serialized: 2,
                no_status: 1,
            },
            Abi::OpenMpi => Constants {
                world: named(b"ompi_mpi_comm_world\0")?,
                byte: named(b"ompi_mpi_byte\0")?,
                word: named(b"ompi_mpi_uint64_t\0")?,
                serialized: 2,
                no_status: 0,
            },
        })
    }
}

/// Names of libraries that may be a launcher's, the likeliest first.
fn candidates(launcher: &Launcher) -> Vec<String> {
    let names = match launcher.kind {
        Kind::OpenMpi => [&OPEN_MPI[..], &STANDARD].concat(),
        Kind::Hydra => [&MPICH[..], &STANDARD].concat(),
        Kind::Other => [&OPEN_MPI[..], &MPICH, &STANDARD].concat(),
    };
    let beside = launcher.prefix.iter().flat_map(|prefix| {
        let folders = FOLDERS.iter().map(|folder| prefix.join(folder));
        folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)))
    });
    let beside = beside.filter(|path| Path::exists(path));
    let beside = beside.map(|path| path.to_string_lossy().into_owned());
    let by_name = names.iter().map(|&name| name.to_owned());
    beside.chain(by_name).collect()
}

/// Beginning of a library's words about itself, up to its number: the rest may be long.
fn name_and_number(text: &str) -> String {
    const WORDS: usize = 8;
    let mut words = text.split_whitespace().take(WORDS);
    let mut name = vec![];
    for word in &mut words {
        name.push(word.trim_end_matches(','));
        if word.contains(|c: char| c.is_ascii_digit()) {
            break;
        }
    }
    name.join(" ")
}

/// The reason that the system gives for a failure.
fn with_reason(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    }
}

/// Address of a symbol.
fn address(library: &Library, name: &[u8]) -> Option<usize> {
    // SAFETY: an address is taken, and nothing is read there.
    let symbol = unsafe { library.get::<*mut c_void>(name) };
    symbol.ok().map(|symbol| symbol.into_raw() as usize)
}

/// Returns whether it has the binary interface of MPI 5. MPICH 5 has the question in its own as well, and
/// answers −1 there.
fn is_standard(library: &Library) -> bool {
    type AbiVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    // SAFETY: MPI 5 says that this is the function's type.
    let Ok(ask) = (unsafe { library.get::<AbiVersion>(b"MPI_Abi_get_version\0") }) else {
        return false;
    };
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: it writes two numbers, and may be called before MPI is initialised.
    unsafe { ask(&mut major, &mut minor) };
    major >= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_shown_by_name_and_number() {
        for (text, shown) in [
            (
                "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4",
                "Open MPI v4.1.4",
            ),
            (
                "MPICH Version:\t4.0.2\nMPICH Release date:\tThu",
                "MPICH Version: 4.0.2",
            ),
            (
                "Intel(R) MPI Library 2021.18.1 for Linux* OS",
                "Intel(R) MPI Library 2021.18.1",
            ),
            ("", ""),
        ] {
            assert_eq!(name_and_number(text), shown);
        }
    }
}
