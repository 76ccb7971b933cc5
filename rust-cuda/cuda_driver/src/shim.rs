//! Defines the driver's functions that are used (`symbols.rs`), and forwards them to the driver library. With
//! the feature `cust` they are what `cust_raw` declares and the linker looks for.
//!
//! Each function looks its namesake up in the library when it is first called. Two things are
//! done on the way:
//!
//! * Without a library every call returns `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED` (303), and a
//!   function that the library lacks returns `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND` (302).
//! * Results pass as integers. `CUresult` is an enum of the codes of CUDA 11.4, or of few; another code in it would be undefined behaviour. Such a code becomes
//!   `CUDA_ERROR_UNKNOWN`, and [`last_error_code`] keeps its number.
//!
//! Names are looked up as written in CUDA's header, with their version suffix. `cuGetProcAddress`
//! would hand out newer, incompatible versions for the same base name.

// The names are those of CUDA's header, and some of its functions take many arguments.
#![allow(non_snake_case, clippy::too_many_arguments)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::error::NoGpu;
use crate::library::{self, Found, NotFound};
use crate::sys::CUresult;

/// Environment variable that overrides the search: the path of a driver library, or `none` to
/// behave as if there were no GPU.
pub const LIBRARY_VARIABLE: &str = "ALLPAIRS_LIBCUDA";

/// Tried in order. Never plain `libcuda.so`: in a CUDA toolkit that is a stub that only fails.
const LIBRARY_NAMES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    // Where the loader looks; Windows' subsystem for Linux; NixOS.
    &[
        "libcuda.so.1",
        "/usr/lib/wsl/lib/libcuda.so.1",
        "/run/opengl-driver/lib/libcuda.so.1",
    ]
};

const NO_LIBRARY: c_int = CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED as c_int;
const NO_SYMBOL: c_int = CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND as c_int;

fn driver() -> Result<&'static Found, &'static NoGpu> {
    static DRIVER: OnceLock<Result<Found, NoGpu>> = OnceLock::new();
    DRIVER
        .get_or_init(|| {
            library::find(LIBRARY_VARIABLE, LIBRARY_NAMES).map_err(|why| match why {
                NotFound::SwitchedOff => NoGpu::SwitchedOff,
                NotFound::NoLibrary(tried) => NoGpu::NoLibrary { tried },
            })
        })
        .as_ref()
}

/// Name of the driver library in use. Loads it, but does not initialise the driver.
///
/// # Errors
///
/// [`NoGpu::SwitchedOff`] or [`NoGpu::NoLibrary`].
pub fn library() -> Result<&'static str, NoGpu> {
    driver()
        .map(|driver| driver.name.as_str())
        .map_err(NoGpu::clone)
}

/// Address of a driver function that this crate does not declare, if the driver has it.
///
/// For functions of CUDA 11.5 and later, such as `cuLaunchKernelEx`.
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    let driver = driver().ok()?;
    // SAFETY: only the address is taken; its caller vouches for its type.
    let symbol = unsafe { driver.library.get::<*mut c_void>(name) }.ok()?;
    Some(*symbol)
}

/// A driver function, looked up when it is first asked for.
struct Entry {
    name: &'static CStr,
    /// Null until looked up, `ABSENT` if the library lacks the function.
    address: AtomicPtr<c_void>,
}

const ABSENT: *mut c_void = without_provenance_mut(1);

impl Entry {
    const fn new(name: &'static CStr) -> Entry {
        Entry {
            name,
            address: AtomicPtr::new(null_mut()),
        }
    }

    /// The function's address, or the result code to return in its place.
    // Relaxed: the address is the whole message, and every thread would find the same.
    #[inline]
    fn get(&self) -> Result<*mut c_void, c_int> {
        match self.address.load(Ordering::Relaxed) {
            ABSENT => Err(NO_SYMBOL),
            address if address.is_null() => self.look_up(),
            address => Ok(address),
        }
    }

    #[cold]
    fn look_up(&self) -> Result<*mut c_void, c_int> {
        if driver().is_err() {
            return Err(NO_LIBRARY);
        }
        self.address
            .store(symbol(self.name).unwrap_or(ABSENT), Ordering::Relaxed);
        self.get()
    }
}

thread_local! {
    static LAST_ERROR: Cell<c_int> = const { Cell::new(0) };
}

/// The driver's own code of the last call on this thread that did not succeed, also where
/// `CUresult` and the enum of `cust` have no such code.
pub fn last_error_code() -> i32 {
    LAST_ERROR.get()
}

#[inline]
fn result(code: c_int) -> CUresult {
    if code == 0 {
        CUresult::CUDA_SUCCESS
    } else {
        failure(code)
    }
}

#[cold]
fn failure(code: c_int) -> CUresult {
    LAST_ERROR.set(code);
    let known = functions::RESULT_CODES
        .iter()
        .find(|known| **known as c_int == code);
    known.copied().unwrap_or(CUresult::CUDA_ERROR_UNKNOWN)
}

macro_rules! forward {
    ($( fn $name:ident($($argument:ident: $type:ty),* $(,)?); )*) => { $(
        #[cfg_attr(feature = "cust", unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> CUresult {
            const NAME: &CStr = c_name(concat!(stringify!($name), "\0"));
            static ENTRY: Entry = Entry::new(NAME);
            type Function = unsafe extern "C" fn($($type),*) -> c_int;
            result(match ENTRY.get() {
                // SAFETY: the driver's function of this name has the signature that its header
                // gives it; the arguments are our caller's.
                Ok(address) => unsafe {
                    std::mem::transmute::<*mut c_void, Function>(address)($($argument),*)
                },
                Err(code) => code,
            })
        }
        // Does not compile if the signature differs from cust_raw's.
        #[cfg(feature = "cust")]
        const _: [unsafe extern "C" fn($($type),*) -> CUresult; 2] = [cust_raw::$name, $name];
    )* };
}

macro_rules! result_codes {
    ($($code:ident)*) => {
        /// The variants of `CUresult`.
        pub(crate) const RESULT_CODES: &[CUresult] = &[$(CUresult::$code),*];
        // Does not compile if one is missing.
        const _: fn(CUresult) = |code| match code {
            $(CUresult::$code)|* => {}
        };
    };
}

const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a function's name ends in its only NUL"),
    }
}

pub(crate) mod functions {
    use super::*;
    use crate::sys::*;

    include!("symbols.rs");
    #[cfg(feature = "cust")]
    include!("symbols_of_cust.rs");
    #[cfg(not(feature = "cust"))]
    result_codes! {
        CUDA_SUCCESS CUDA_ERROR_INVALID_VALUE CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
        CUDA_ERROR_SHARED_OBJECT_INIT_FAILED CUDA_ERROR_NOT_READY
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED CUDA_ERROR_TOO_MANY_PEERS CUDA_ERROR_UNKNOWN
    }
}

static ERROR_NAME: Entry = Entry::new(c"cuGetErrorName");
static ERROR_STRING: Entry = Entry::new(c"cuGetErrorString");

/// Description of a code by the driver, or by `own` where the driver has none.
fn c_description(entry: &Entry, code: c_int, own: fn(c_int) -> &'static CStr) -> &'static CStr {
    type Describe = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
    let mut text = null();
    if let Ok(address) = entry.get() {
        // SAFETY: both functions are CUresult(CUresult, const char **), a C enum being an int;
        // `text` is a valid place for the answer.
        let code =
            unsafe { std::mem::transmute::<*mut c_void, Describe>(address)(code, &mut text) };
        if code == 0 && !text.is_null() {
            // SAFETY: the driver's answer is a NUL-terminated constant of the library, which is
            // never unloaded.
            return unsafe { CStr::from_ptr(text) };
        }
    }
    own(code)
}

fn own_name(code: c_int) -> &'static CStr {
    match code {
        NO_LIBRARY => c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
        NO_SYMBOL => c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
        _ => c"unnamed error",
    }
}

fn own_text(code: c_int) -> &'static CStr {
    match code {
        NO_LIBRARY => c"no NVIDIA driver library",
        NO_SYMBOL => c"the NVIDIA driver lacks this function",
        _ => c"an error that the NVIDIA driver does not describe",
    }
}

/// Name and text of any code, in the driver's words if it has some.
pub(crate) fn describe(code: c_int) -> (&'static str, &'static str) {
    let name = c_description(&ERROR_NAME, code, own_name);
    let text = c_description(&ERROR_STRING, code, own_text);
    (
        name.to_str().unwrap_or("unnamed error"),
        text.to_str().unwrap_or("undescribed error"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_enum_pass_unchanged() {
        for &code in functions::RESULT_CODES {
            assert_eq!(result(code as c_int), code);
        }
        assert_eq!(result(0), CUresult::CUDA_SUCCESS);
    }

    #[test]
    fn codes_of_newer_drivers_become_unknown_and_keep_their_number() {
        for code in [226, 810, 912, -1, c_int::MAX] {
            assert_eq!(result(code), CUresult::CUDA_ERROR_UNKNOWN);
            assert_eq!(last_error_code(), code);
        }
        assert_eq!(result(999), CUresult::CUDA_ERROR_UNKNOWN);
        assert_eq!(last_error_code(), 999);
    }
}
