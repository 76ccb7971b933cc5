//! Errors, worded for people: [`NoGpu`] when there is nothing to run on, [`DriverError`]
//! when a call failed.

use std::error::Error as _;
use std::fmt;

use crate::cust::error::CudaResult;
use crate::shim::{self, LIBRARY_VARIABLE};
use crate::sys::CUresult;

/// Why this machine offers no GPU. Each is one line, fit to be followed by "using the CPU".
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NoGpu {
    /// The environment variable [`LIBRARY_VARIABLE`] says `none`.
    #[error("GPUs are switched off by {LIBRARY_VARIABLE}=none")]
    SwitchedOff,
    /// The driver library could not be loaded under any of its names.
    #[error("no NVIDIA driver library: tried {}", AttemptList(tried))]
    NoLibrary {
        /// The attempts, in order.
        tried: Vec<LibraryAttempt>,
    },
    /// The library was loaded, but a call to it failed.
    #[error("the NVIDIA driver refuses: {0}")]
    Refused(#[from] DriverError),
    /// The driver runs, but shows this process no GPU.
    #[error("the NVIDIA driver ({library}) shows no GPU; is CUDA_VISIBLE_DEVICES set?")]
    NoDevice {
        /// Name of the library that was asked.
        library: String,
    },
}

/// Reason why one of NVIDIA's libraries beside the driver cannot be used. Each is one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLibrary {
    /// Set to `none` in the environment.
    #[error("{what} is switched off by {variable}=none")]
    SwitchedOff {
        /// Name of what was looked for.
        what: &'static str,
        /// The variable.
        variable: &'static str,
    },
    /// It could not be loaded under any of its names.
    #[error(
        "there is no {what}: tried {}; it comes with {origin}, and {variable} says where it is",
        AttemptList(tried)
    )]
    NotFound {
        /// Name of what was looked for.
        what: &'static str,
        /// Where it comes from.
        origin: &'static str,
        /// Environment variable that holds its path.
        variable: &'static str,
        /// The attempts, in order.
        tried: Vec<LibraryAttempt>,
    },
    /// It has not the functions of what was looked for.
    #[error("the library {library} is no {what}: it has no function {function}")]
    NoFunction {
        /// Name of what was looked for.
        what: &'static str,
        /// Name of the library.
        library: String,
        /// The missing function.
        function: &'static str,
    },
}

/// One name under which a library was looked for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryAttempt {
    /// File name or path.
    pub name: String,
    /// Why the loader could not load it.
    pub reason: String,
}

impl LibraryAttempt {
    pub(crate) fn new(name: String, error: &libloading::Error) -> LibraryAttempt {
        let reason = error
            .source()
            .map_or_else(|| error.to_string(), |cause| cause.to_string());
        // The loader's text begins with the name, which the list of attempts says already.
        let reason = reason.strip_prefix(&name).unwrap_or(&reason);
        let reason = reason.trim_start_matches([':', ' ']).to_owned();
        LibraryAttempt { name, reason }
    }
}

/// Writes attempts with the same reason as one: `a, b: no such file`.
pub(crate) struct AttemptList<'a>(pub(crate) &'a [LibraryAttempt]);

impl fmt::Display for AttemptList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, alike) in self.0.chunk_by(|a, b| a.reason == b.reason).enumerate() {
            let names: Vec<&str> = alike.iter().map(|attempt| attempt.name.as_str()).collect();
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {}", names.join(", "), alike[0].reason)?;
        }
        Ok(())
    }
}

/// A driver call that failed: which, with what code, what was being done and what may help.
///
/// A request that this crate refuses itself (a copy beyond the end of an allocation, a launch
/// with too few arguments) is reported like the driver's own `CUDA_ERROR_INVALID_VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverError {
    call: &'static str,
    code: i32,
    name: &'static str,
    text: &'static str,
    doing: String,
    log: String,
}

impl DriverError {
    fn new(call: &'static str, code: i32) -> DriverError {
        let (name, text) = shim::describe(code);
        DriverError {
            call,
            code,
            name,
            text,
            doing: String::new(),
            log: String::new(),
        }
    }

    /// A request that is refused before the driver sees it.
    pub(crate) fn refused(call: &'static str, reason: String) -> DriverError {
        DriverError::new(call, CUresult::CUDA_ERROR_INVALID_VALUE as i32).doing(reason)
    }

    /// Adds the action that failed, as a phrase.
    pub(crate) fn doing(mut self, doing: String) -> DriverError {
        self.doing = doing;
        self
    }

    pub(crate) fn with_log(mut self, log: String) -> DriverError {
        self.log = log;
        self
    }

    /// The driver function that failed, such as `cuModuleLoadDataEx`.
    pub fn call(&self) -> &'static str {
        self.call
    }

    /// The driver's result code, also where it is newer than `cust` knows.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// The driver's name for the code, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Log of the driver's compiler about a module; empty for other failures.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// Advice, where the code alone is enough to give it.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self.code {
            2 => "use fewer bodies, or free memory that other programs hold (see nvidia-smi)",
            34 => "a stub library was loaded in place of the driver's: see LD_LIBRARY_PATH",
            46 => "another program holds this GPU for itself",
            100 => "no GPU is visible: see CUDA_VISIBLE_DEVICES and nvidia-smi",
            209 => "the code was built for another generation of GPU",
            218 | 221 if self.log.is_empty() => {
                "the driver's PTX compiler (libnvidia-ptxjitcompiler.so.1) may be missing"
            }
            222 => "the PTX is newer than this driver: update the driver, or build older PTX",
            302 => "update the NVIDIA driver",
            303 => "install the NVIDIA driver, or run on the CPU",
            700 | 714..=719 => {
                "the GPU's context is lost: start again; compute-sanitizer finds the place"
            }
            701 => "the block needs more registers or shared memory than there are: shrink it",
            802 => "the system is still starting up: is nvidia-fabricmanager running?",
            803 => "driver library and kernel module differ: reboot, or reload the module",
            804 => "this GPU does not support CUDA's forward compatibility package",
            _ => return None,
        })
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{}: {} ({}, code {})",
            self.call, self.text, self.name, self.code
        )?;
        if !self.doing.is_empty() {
            write!(f, " while {}", self.doing)?;
        }
        if let Some(advice) = self.advice() {
            write!(f, "; {advice}")?;
        }
        if !self.log.is_empty() {
            write!(f, "\n{}", self.log)?;
        }
        Ok(())
    }
}

impl std::error::Error for DriverError {}

/// Turns the result of a raw driver call into a `Result`.
#[inline]
pub(crate) fn check(call: &'static str, result: CUresult) -> Result<(), DriverError> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        // Not the enum's code: that may stand for one which the enum lacks.
        _ => Err(DriverError::new(call, shim::last_error_code())),
    }
}

/// The same for `cust`'s results, whose error enum lacks even more codes.
pub(crate) fn check_cust<T>(call: &'static str, result: CudaResult<T>) -> Result<T, DriverError> {
    result.map_err(|_| DriverError::new(call, shim::last_error_code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_with_one_reason_are_told_once() {
        let attempt = |name: &str, reason: &str| LibraryAttempt {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let tried = vec![
            attempt("a", "not there"),
            attempt("b", "not there"),
            attempt("c", "wrong class"),
        ];
        assert_eq!(
            NoGpu::NoLibrary { tried }.to_string(),
            "no NVIDIA driver library: tried a, b: not there; c: wrong class"
        );
    }

    #[test]
    fn what_is_missing_is_told_in_a_line() {
        let text = NoLibrary::NotFound {
            what: "cuBLAS",
            origin: "the CUDA toolkit",
            variable: "ALLPAIRS_LIBCUBLAS",
            tried: vec![LibraryAttempt {
                name: "libcublas.so.13".to_owned(),
                reason: "not there".to_owned(),
            }],
        }
        .to_string();
        assert_eq!(
            text,
            "there is no cuBLAS: tried libcublas.so.13: not there; it comes with the CUDA toolkit, and \
             ALLPAIRS_LIBCUBLAS says where it is"
        );
    }

    #[test]
    fn an_error_names_call_code_and_circumstances() {
        let error = DriverError::new("cuMemAlloc_v2", 2).doing("allocating 8 bytes".to_owned());
        let text = error.to_string();
        assert!(text.starts_with("cuMemAlloc_v2: "), "{text}");
        assert!(
            text.contains("code 2) while allocating 8 bytes; use fewer bodies"),
            "{text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }
}
