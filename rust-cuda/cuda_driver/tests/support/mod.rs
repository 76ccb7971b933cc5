//! Tests in processes of their own.
//!
//! The driver library is chosen once per process, by an environment variable. So each test runs
//! its body in a new process: the test binary again, with that one test.

use std::ffi::{CStr, c_int, c_void};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use cuda_driver::{BLAS_VARIABLE, LIBRARY_VARIABLE, NCCL_VARIABLE};

/// Set in the process that runs a test's body.
const CHILD_VARIABLE: &str = "CUDA_DRIVER_TEST_BODY";

/// Environment variables of the process.
pub(crate) type Variables = &'static [(&'static str, &'static str)];

/// Which driver library the process of a test's body is to find. Each test file needs only some.
#[allow(dead_code)]
pub(crate) enum Library {
    /// The one that the environment variable names.
    Named(&'static str),
    /// The fake one, by its path, with settings of its own.
    Fake(Variables),
    /// The fake one, by the usual name in the loader's search path.
    FakeByUsualName,
    /// The one of this machine, if the caller's environment allows it.
    Own,
}

/// Runs `body`, the body of the test named `test`, in a process that finds this library.
pub(crate) fn in_child(test: &str, library: Library, body: fn()) {
    if std::env::var_os(CHILD_VARIABLE).is_some() {
        return body();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "--nocapture", test])
        .env(CHILD_VARIABLE, "1");
    match library {
        Library::Own => {}
        Library::Named(name) => {
            child.env(LIBRARY_VARIABLE, name);
        }
        Library::Fake(variables) => {
            let Some(path) = fake_driver() else { return };
            child
                .env(LIBRARY_VARIABLE, path)
                .env(BLAS_VARIABLE, path)
                .env(NCCL_VARIABLE, path)
                .envs(variables.iter().copied());
        }
        Library::FakeByUsualName => {
            let Some(path) = fake_driver() else { return };
            child
                .env(LIBRARY_VARIABLE, "")
                .env("LD_LIBRARY_PATH", path.parent().unwrap());
        }
    }
    let output = child.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    // A misspelt name would run no test, and pass.
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{out}{err}"
    );
    out.lines()
        .filter(|line| line.contains("SKIPPED"))
        .for_each(say_aloud);
}

/// Prints a line, past the test harness, which swallows what `eprintln` prints in tests that pass.
#[expect(clippy::explicit_write)]
fn say_aloud(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap();
}

/// Path of the fake driver, built once; `None`, said aloud, where there is no C compiler.
fn fake_driver() -> Option<&'static Path> {
    static FAKE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = FAKE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join("libcuda.so.1");
        // Renamed when complete: another run of these tests may be loading it.
        let unfinished = folder.join(format!("libcuda.{}", std::process::id()));
        let compiler = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&unfinished)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/support/fake_libcuda.c"
            ))
            .output();
        match compiler {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => panic!("cc: {error}"),
            Ok(output) => {
                assert!(
                    output.status.success(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
        std::fs::rename(unfinished, &library).unwrap();
        Some(library)
    });
    if path.is_none() {
        say_aloud("SKIPPED: there is no C compiler (cc) for the fake driver");
    }
    path.as_deref()
}

/// Calls a function of the fake driver that takes nothing and returns a number.
#[allow(dead_code)]
pub(crate) fn fake_number(name: &CStr) -> c_int {
    let address = cuda_driver::symbol(name).expect("the fake driver is loaded");
    // SAFETY: the fake driver defines it as int(void).
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(address)() }
}
