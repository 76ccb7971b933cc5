//! Finds a compiler that can build device code.
//!
//! `core` has to be compiled for the GPU, from the library source of the very compiler in use,
//! so an installed `rustc` is not enough. Three places are looked at, in this order:
//!
//! 1. the variables [`RUSTC_VARIABLE`] and [`CARGO_VARIABLE`], an explicit choice;
//! 2. rustup's nightlies, of which one needs the component `rust-src`;
//! 3. the system's packages (`/usr/bin/rustc` and its source), as Debian has them.

use crate::environment::clean_environment;
use crate::version::Version;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};
use thiserror::Error;

/// Names the `rustc` to build device code with; [`CARGO_VARIABLE`] belongs to it.
pub const RUSTC_VARIABLE: &str = "ALLPAIRS_DEVICE_RUSTC";
/// Names the `cargo` to build device code with; [`RUSTC_VARIABLE`] belongs to it.
pub const CARGO_VARIABLE: &str = "ALLPAIRS_DEVICE_CARGO";

const NIGHTLY_REMEDY: &str =
    "rustup toolchain install nightly --profile minimal --component rust-src";
const SYSTEM_REMEDY: &str = "sudo apt install rustc-web cargo-web rust-web-src (Debian)";

/// How a compiler was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// By [`RUSTC_VARIABLE`] and [`CARGO_VARIABLE`].
    Explicit,
    /// Among rustup's toolchains.
    RustupNightly,
    /// In `/usr/bin`.
    System,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Explicit => "chosen by environment variables",
            Origin::RustupNightly => "rustup nightly with rust-src",
            Origin::System => "system packages",
        })
    }
}

/// A compiler that can build device code; its `Display` is a line for a log.
#[derive(Clone, Debug)]
pub struct Toolchain {
    pub(crate) rustc: PathBuf,
    pub(crate) cargo: PathBuf,
    origin: Origin,
    identity: String,
}

impl Toolchain {
    /// Looks in the three places.
    ///
    /// # Errors
    /// No place has a compiler that can do it, or the explicitly chosen one cannot.
    pub fn find() -> Result<Self, ToolchainError> {
        Self::find_in(&Surroundings::of_this_process())
    }

    /// Which compiler it is, the same on every machine: release and LLVM version.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Place where it was found.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    fn find_in(surroundings: &Surroundings<'_>) -> Result<Self, ToolchainError> {
        match (&surroundings.explicit_rustc, &surroundings.explicit_cargo) {
            (None, None) => {}
            (Some(rustc), Some(cargo)) => {
                return explicit(surroundings, rustc, cargo)
                    .map_err(|missing| ToolchainError::Explicit { missing });
            }
            (rustc, _) => {
                let unset = if rustc.is_some() {
                    CARGO_VARIABLE
                } else {
                    RUSTC_VARIABLE
                };
                return Err(ToolchainError::Explicit {
                    missing: format!("{unset} is not set"),
                });
            }
        }
        let nightly = match rustup_nightly(surroundings) {
            Ok(toolchain) => return Ok(toolchain),
            Err(missing) => missing,
        };
        let system = match system(surroundings) {
            Ok(toolchain) => return Ok(toolchain),
            Err(missing) => missing,
        };
        Err(ToolchainError::None(vec![
            Attempt {
                place: "an explicit choice".to_owned(),
                looked_for: format!("the variables {RUSTC_VARIABLE} and {CARGO_VARIABLE}"),
                missing: "neither is set".to_owned(),
                remedy: format!(
                    "export {RUSTC_VARIABLE}=/path/to/bin/rustc {CARGO_VARIABLE}=/path/to/bin/cargo"
                ),
            },
            Attempt {
                place: "a rustup nightly with its library source".to_owned(),
                looked_for: surroundings
                    .rustup_toolchains
                    .join("nightly*")
                    .join(LIBRARY)
                    .display()
                    .to_string(),
                missing: nightly,
                remedy: NIGHTLY_REMEDY.to_owned(),
            },
            Attempt {
                place: "the system's packages".to_owned(),
                looked_for: format!(
                    "bin/rustc, bin/cargo and {LIBRARY} in {}",
                    surroundings.system_root.display()
                ),
                missing: system,
                remedy: SYSTEM_REMEDY.to_owned(),
            },
        ]))
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}: {})",
            self.identity,
            self.origin,
            self.rustc.display()
        )
    }
}

/// Why there is no compiler for device code.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolchainError {
    /// The explicit choice is unusable. Nothing else is tried: who chooses wants no other.
    #[error(
        "the device compiler chosen by {RUSTC_VARIABLE} and {CARGO_VARIABLE} cannot be used: \
         {missing}. Correct the two variables, or unset both to have one looked for"
    )]
    Explicit {
        /// The missing component.
        missing: String,
    },
    /// Nothing usable in any of the three places.
    #[error("{}", describe(.0))]
    None(Vec<Attempt>),
}

/// One place that was looked at in vain.
#[derive(Debug)]
pub struct Attempt {
    place: String,
    looked_for: String,
    missing: String,
    remedy: String,
}

fn describe(attempts: &[Attempt]) -> String {
    let mut text = "no compiler for device code was found; one of these is enough:".to_owned();
    for (number, attempt) in (1..).zip(attempts) {
        let Attempt {
            place,
            looked_for,
            missing,
            remedy,
        } = attempt;
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n{number}. {place}\n     looked for: {looked_for}\n     missing:    {missing}\n     \
             remedy:     {remedy}"
        );
    }
    text
}

/// The library source below a compiler's sysroot.
const LIBRARY: &str = "lib/rustlib/src/rust/library";

/// Environment of the search, which tests replace.
struct Surroundings<'a> {
    explicit_rustc: Option<PathBuf>,
    explicit_cargo: Option<PathBuf>,
    rustup_toolchains: PathBuf,
    system_root: PathBuf,
    /// Runs a program and returns what it prints.
    run: &'a dyn Fn(&Path, &[&str]) -> io::Result<String>,
}

impl Surroundings<'_> {
    fn of_this_process() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let rustup = variable("RUSTUP_HOME")
            .map(PathBuf::from)
            .unwrap_or_else(|| {
                env::home_dir()
                    .unwrap_or_else(|| PathBuf::from("/"))
                    .join(".rustup")
            });
        Self {
            explicit_rustc: variable(RUSTC_VARIABLE).map(absolute),
            explicit_cargo: variable(CARGO_VARIABLE).map(absolute),
            rustup_toolchains: rustup.join("toolchains"),
            system_root: PathBuf::from("/usr"),
            run: &run,
        }
    }
}

/// Cargo will run in another directory. Where the current one is gone the path stays as it is, and
/// the compiler is not found.
fn absolute(path: OsString) -> PathBuf {
    std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(path))
}

fn run(program: &Path, arguments: &[&str]) -> io::Result<String> {
    let mut command = Command::new(program);
    clean_environment(&mut command);
    let output = command.args(arguments).output()?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!("{}: {reason}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn explicit(
    surroundings: &Surroundings<'_>,
    rustc: &Path,
    cargo: &Path,
) -> Result<Toolchain, String> {
    let sysroot = (surroundings.run)(rustc, &["--print", "sysroot"])
        .map_err(|error| format!("{} does not run: {error}", rustc.display()))?;
    examine(
        surroundings,
        Origin::Explicit,
        rustc,
        cargo,
        Path::new(sysroot.trim()),
    )
}

fn rustup_nightly(surroundings: &Surroundings<'_>) -> Result<Toolchain, String> {
    let directory = &surroundings.rustup_toolchains;
    let entries =
        fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut names: Vec<OsString> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| name.to_string_lossy().starts_with("nightly"))
        .collect();
    // "nightly-x86_64…" is the current one; of "nightly-2026-05-25-…" the latest comes first.
    names.sort_by_key(|name| {
        let name = name.to_string_lossy().into_owned();
        let dated = name["nightly".len()..].starts_with("-2");
        (!dated, name)
    });
    names.reverse();
    let mut missing = Vec::new();
    for name in names {
        let sysroot = directory.join(&name);
        let binary = |program| {
            sysroot
                .join("bin")
                .join(program)
                .with_extension(env::consts::EXE_EXTENSION)
        };
        match examine(
            surroundings,
            Origin::RustupNightly,
            &binary("rustc"),
            &binary("cargo"),
            &sysroot,
        ) {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => missing.push(reason),
        }
    }
    if missing.is_empty() {
        missing.push(format!(
            "no nightly is installed in {}",
            directory.display()
        ));
    }
    Err(missing.join("; "))
}

fn system(surroundings: &Surroundings<'_>) -> Result<Toolchain, String> {
    let root = &surroundings.system_root;
    let bin = root.join("bin");
    examine(
        surroundings,
        Origin::System,
        &bin.join("rustc"),
        &bin.join("cargo"),
        root,
    )
}

/// Checks all that a device build needs; the error says what is missing.
fn examine(
    surroundings: &Surroundings<'_>,
    origin: Origin,
    rustc: &Path,
    cargo: &Path,
    sysroot: &Path,
) -> Result<Toolchain, String> {
    let run = |program: &Path, arguments: &[&str]| {
        if !program.exists() {
            return Err(format!("{} does not exist", program.display()));
        }
        (surroundings.run)(program, arguments)
            .map_err(|error| format!("{} does not run: {error}", program.display()))
    };
    let version = Version::parse(&run(rustc, &["-vV"])?)
        .ok_or_else(|| format!("{} does not tell its version", rustc.display()))?;
    version.check_age(rustc)?;
    Version::parse(&run(cargo, &["-vV"])?)
        .ok_or_else(|| format!("{} does not tell its version", cargo.display()))?
        .check_age(cargo)?;
    let library = sysroot.join(LIBRARY);
    // Cargo resolves the library's dependencies by its lock file.
    for part in ["core/src/lib.rs", "Cargo.lock"] {
        if !library.join(part).exists() {
            return Err(format!(
                "{} (the library source of {}) does not exist",
                library.join(part).display(),
                rustc.display()
            ));
        }
    }
    // Only a complete source tree says of which version it is.
    let source = library.with_file_name("src").join("version");
    if let Ok(source_version) = fs::read_to_string(&source)
        && source_version.trim() != version.number()
    {
        return Err(format!(
            "{} is {}, but its library source in {} is of {}",
            rustc.display(),
            version.release,
            library.display(),
            source_version.trim()
        ));
    }
    let target = ["--print", "target-cpus", "--target", "nvptx64-nvidia-cuda"];
    if !run(rustc, &target)?.contains("sm_90") {
        return Err(format!(
            "{} was built without the NVPTX backend of LLVM",
            rustc.display()
        ));
    }
    Ok(Toolchain {
        rustc: rustc.to_owned(),
        cargo: cargo.to_owned(),
        origin,
        identity: version.identity(),
    })
}

#[cfg(test)]
#[path = "toolchain_tests.rs"]
mod tests;
