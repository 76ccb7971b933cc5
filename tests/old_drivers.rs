//! Drivers older than the kernels: which kernels a GPU then has, and what is said. The driver is the fake one
//! of `cuda_driver`'s tests. It knows none of the kernels: a run ends when it has loaded one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::program::code::UNAVAILABLE;
use crate::support::program::{Ended, allpairs, new_folder, run};

/// Path of the fake driver; `None`, said aloud, where there is no C compiler.
fn fake_driver() -> Option<&'static Path> {
    static FAKE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = FAKE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join("libcuda.old.so.1");
        // Renamed when complete: another run of these tests may be loading it.
        let unfinished = folder.join(format!("libcuda.old.{}", std::process::id()));
        let source = "rust-cuda/cuda_driver/tests/support/fake_libcuda.c";
        let compiler = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&unfinished)
            .arg(crate::support::root().join(source))
            .status();
        match compiler {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => panic!("cc: {error}"),
            Ok(status) => assert!(status.success()),
        }
        std::fs::rename(unfinished, &library).expect("a writable folder");
        Some(library)
    });
    if path.is_none() {
        eprintln!("SKIPPED: there is no C compiler (cc) for the fake driver");
    }
    path.as_deref()
}

/// How a command ends with the fake driver; `None` where there is none.
fn with_driver(settings: &[(&str, &str)], command: &str) -> Option<Ended> {
    let folder = new_folder();
    let mut program = allpairs(folder.path());
    program.env(cuda_driver::LIBRARY_VARIABLE, fake_driver()?);
    program.env(cuda_driver::NCCL_VARIABLE, "none");
    program.envs(settings.iter().copied());
    Some(run(program.args(command.split(' '))))
}

#[test]
fn devices_say_which_kernels_they_have() {
    let all = "Kernels are compiled for sm_75 (CUDA 10.0), sm_80 (CUDA 11.8), sm_90 (CUDA 12.1)";
    let Some(new) = with_driver(&[], "devices") else {
        return;
    };
    new.expect(0, &["CUDA 13.1", "sm_90", all]);
    assert!(!new.said.contains("because its driver"), "{new}");
    let settings = [("FAKE_VERSION", "11040"), ("FAKE_CAPABILITY", "80")];
    let old = with_driver(&settings, "devices").expect("the same driver");
    let why = "cuda:1 runs kernels of sm_75, because its driver is for CUDA 11.4. Update the NVIDIA \
               driver for the kernels of sm_80.";
    old.expect(0, &["CUDA 11.4", all, why]);
    let older = with_driver(&[("FAKE_VERSION", "9020")], "devices").expect("the same driver");
    older.expect(
        0,
        &["cuda:0 runs no kernels, because its driver is for CUDA 9.2."],
    );
}

#[test]
fn kernels_that_the_driver_cannot_compile_are_refused_with_the_driver_that_can() {
    let settings = [("FAKE_VERSION", "11040"), ("FAKE_CAPABILITY", "80")];
    let command = "run plummer --bodies 2000 --steps 1 --device cuda:0 --kernel tensor";
    let Some(old) = with_driver(&settings, command) else {
        return;
    };
    let why = "needs an NVIDIA driver for CUDA 11.8 or newer, and the driver is for CUDA 11.4";
    old.expect(UNAVAILABLE, &["kernel `tensor` cannot run", why]);
}

#[test]
fn a_driver_that_refuses_ptx_gets_older_ptx() {
    let command = "run plummer --bodies 2000 --steps 1 --device cuda:0 --kernel tiled";
    // It says CUDA 13.1, and compiles PTX up to 7.0 only: an older library of its compiler was found.
    let Some(old) = with_driver(&[("FAKE_PTX", "70")], command) else {
        return;
    };
    let loaded = "sm_75 ftz, for drivers of CUDA 10.0 and newer";
    old.expect(UNAVAILABLE, &["looking for kernel", loaded]);
    // Older than any PTX here.
    let older = with_driver(&[("FAKE_PTX", "60")], command).expect("the same driver");
    older.expect(
        UNAVAILABLE,
        &["code 222", "loading module", loaded, "update the driver"],
    );
}
