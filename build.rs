//! Tells the library which file of packed GPU modules to embed: `ALLPAIRS_KERNELS` is its path.
//!
//! The environment variable `ALLPAIRS_PTX` says which modules:
//!
//! | value   | embedded | checked-in modules (`gpu-kernels/ptx`) |
//! |---------|----------|----------------------------------------|
//! | (unset) | the checked-in ones if they are of these sources, else fresh ones | read |
//! | `write` | fresh ones | replaced |
//! | `check` | the checked-in ones | must equal fresh ones |
//! | `fresh` | fresh ones | ignored |
//!
//! All this is for a checkout. Among packages from a registry, the package of the kernels brings the modules.
//! Their sources do not change.

use cuda_builder::{KernelModules, MODE_VARIABLE, Mode, ModulesError, NvptxArch, Provided};
use std::path::Path;
use std::process::ExitCode;
use std::{env, ffi::OsString};

/// The GPU generations with a module of their own; newer GPUs run the newest of them. Turing is
/// the oldest that current drivers support; Ampere adds matrix instructions for tf32, Hopper
/// vector reductions to memory.
const GENERATIONS: &[NvptxArch] = &[NvptxArch::Sm75, NvptxArch::Sm80, NvptxArch::Sm90];

fn main() -> ExitCode {
    let root = from_cargo("CARGO_MANIFEST_DIR");
    let root = Path::new(&root);
    let kernels = root.join("gpu-kernels");
    if !kernels.is_dir() {
        return from_packages();
    }
    let libraries = ["rust-cuda/cuda_std", "rust-cuda/cuda_std_macros"];
    let modules = KernelModules::new("allpairs gpu-kernels", kernels)
        .libraries(libraries.map(|path| root.join(path)))
        .generations(GENERATIONS);
    for line in modules.directives() {
        println!("{line}");
    }
    match provide(&modules) {
        Ok(Provided { packed, notes }) => {
            println!("cargo::rustc-env=ALLPAIRS_KERNELS={}", packed.display());
            for note in notes {
                println!("cargo::warning={note}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            for line in error.to_string().lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Takes the modules that the kernels' package tells of: see its `build.rs`.
fn from_packages() -> ExitCode {
    println!("cargo::rerun-if-env-changed={MODE_VARIABLE}");
    if !env::var_os(MODE_VARIABLE).unwrap_or_default().is_empty() {
        println!(
            "cargo::error={MODE_VARIABLE} is set, but packages from a registry have the PTX of their \
             release: unset it, or build a checkout of Allpairs"
        );
        return ExitCode::FAILURE;
    }
    let packed = from_cargo("DEP_ALLPAIRS_KERNELS_PACKED");
    println!(
        "cargo::rustc-env=ALLPAIRS_KERNELS={}",
        Path::new(&packed).display()
    );
    ExitCode::SUCCESS
}

fn provide(modules: &KernelModules) -> Result<Provided, ModulesError> {
    modules.provide(Mode::from_environment()?, Path::new(&from_cargo("OUT_DIR")))
}

fn from_cargo(variable: &str) -> OsString {
    env::var_os(variable).unwrap_or_else(|| panic!("Cargo sets {variable} for build scripts"))
}
