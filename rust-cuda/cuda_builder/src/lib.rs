//! Compiles a Rust kernel crate to PTX, for build scripts.
//!
//! ```no_run
//! use cuda_builder::{CudaBuilder, NvptxArch};
//!
//! # fn main() -> Result<(), cuda_builder::BuilderError> {
//! let ptx = CudaBuilder::new("gpu-kernels")
//!     .arch(NvptxArch::Sm90)
//!     .ftz(true)
//!     .copy_to("kernels.ptx")
//!     .build()?;
//! println!("{} entry points by {}", ptx.entries()?.len(), ptx.compiler());
//! # Ok(())
//! # }
//! ```
//!
//! The API has the shape of Rust-CUDA's crate of the same name. That one needs a compiler backend
//! of its own. This one stands on `rustc`'s target `nvptx64-nvidia-cuda`, for which `core` has to
//! be compiled too: [`Toolchain::find`] looks for a compiler that can do it.
//!
//! [`KernelModules`] is what a project with checked-in PTX needs on top: it compiles only where
//! the sources differ from those that the checked-in modules were made of, so that users need
//! no device compiler.

mod arch;
mod checked_in;
mod compile;
mod environment;
mod ftz;
mod hash;
mod module;
mod packed;
mod ptx;
mod table;
mod toolchain;
mod version;

pub use arch::NvptxArch;
pub use checked_in::{KernelModules, MODE_VARIABLE, Mode, ModulesError, Provided};
pub use ftz::{FLUSH, FtzError, flush_denormals, mark_flushes};
pub use hash::source_hash;
pub use module::entries;
pub use ptx::PtxError;
pub use table::describe;
pub use toolchain::{Attempt, CARGO_VARIABLE, Origin, RUSTC_VARIABLE, Toolchain, ToolchainError};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};
use thiserror::Error;

/// Builds one PTX module of a kernel crate.
#[derive(Debug)]
pub struct CudaBuilder {
    kernels: PathBuf,
    // An unknown name is reported by `build`, so that calls can be chained.
    arch: Result<NvptxArch, BuilderError>,
    ftz: bool,
    target_features: Vec<String>,
    flags: Vec<String>,
    target_dir: Option<PathBuf>,
    copy_to: Option<PathBuf>,
    toolchain: Option<Toolchain>,
}

impl CudaBuilder {
    /// A builder for the crate with its `Cargo.toml` in the directory `kernels`.
    ///
    /// It builds for `sm_75` and keeps denormals, unless told otherwise.
    pub fn new(kernels: impl AsRef<Path>) -> Self {
        Self {
            kernels: kernels.as_ref().to_owned(),
            arch: Ok(NvptxArch::Sm75),
            ftz: false,
            target_features: Vec::new(),
            flags: Vec::new(),
            target_dir: None,
            copy_to: None,
            toolchain: None,
        }
    }

    /// The generation to build for, as [`NvptxArch`] or by name (`"sm_90"`).
    pub fn arch<A>(mut self, arch: A) -> Self
    where
        A: TryInto<NvptxArch>,
        A::Error: Into<BuilderError>,
    {
        self.arch = arch.try_into().map_err(Into::into);
        self
    }

    /// Flushes f32 denormals to zero, if `flush` is true; see [`flush_denormals`].
    pub fn ftz(mut self, flush: bool) -> Self {
        self.ftz = flush;
        self
    }

    /// A further target feature, `+ptx83` for example, which raises the PTX version.
    pub fn target_feature(mut self, feature: impl Into<String>) -> Self {
        self.target_features.push(feature.into());
        self
    }

    /// A further flag for `rustc`, after all others: a single argument, `-Cname=value`.
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Folder of intermediate results; by default under `OUT_DIR`.
    ///
    /// Each generation gets a directory of its own in it, as each needs its own `core`.
    pub fn target_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.target_dir = Some(directory.as_ref().to_owned());
        self
    }

    /// Path that the module is written to; by default in the target directory.
    pub fn copy_to(mut self, file: impl AsRef<Path>) -> Self {
        self.copy_to = Some(file.as_ref().to_owned());
        self
    }

    /// The compiler to use; by default the one that [`Toolchain::find`] finds.
    pub fn toolchain(mut self, toolchain: Toolchain) -> Self {
        self.toolchain = Some(toolchain);
        self
    }

    /// Compiles, checks and writes the module.
    ///
    /// # Errors
    /// No compiler for device code, a failed compilation (with the compiler's messages), a module
    /// that calls functions, an instruction that cannot be flushed, or a file that cannot be
    /// written.
    pub fn build(self) -> Result<PtxFile, BuilderError> {
        let arch = self.arch?;
        let target_dir = match self.target_dir {
            Some(directory) => directory,
            None => env::var_os("OUT_DIR")
                .map(|out_dir| PathBuf::from(out_dir).join("cuda_builder"))
                .ok_or(BuilderError::NoTargetDir)?,
        };
        // Cargo runs in the crate's directory, so relative paths would change their meaning.
        let absolute = |path: PathBuf| {
            std::path::absolute(&path)
                .map_err(|source| BuilderError::file("resolve", &path, source))
        };
        let target_dir = absolute(target_dir)?.join(arch.to_string());
        let toolchain = match self.toolchain {
            Some(toolchain) => toolchain,
            None => Toolchain::find()?,
        };
        let flags = compile::flags(arch, &self.target_features, &self.flags);
        let compiled = compile::compile(&toolchain, &absolute(self.kernels)?, &flags, &target_dir)?;
        let mut text = module::tidy(&compiled)?;
        if self.ftz {
            text = flush_denormals(&text)?;
        }
        let path = self.copy_to.unwrap_or_else(|| {
            target_dir.join(if self.ftz {
                "kernels.ftz.ptx"
            } else {
                "kernels.ptx"
            })
        });
        replace_file(&path, &text)?;
        Ok(PtxFile {
            path,
            text,
            compiler: toolchain.identity().to_owned(),
        })
    }
}

/// A module that was built.
#[derive(Clone, Debug)]
pub struct PtxFile {
    path: PathBuf,
    text: String,
    compiler: String,
}

impl PtxFile {
    /// The file it was written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// PTX of the module.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The compiler that made it, as [`Toolchain::identity`] names it.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// The names of its entry points.
    ///
    /// # Errors
    /// None for a module that was just built; broken PTX in principle.
    pub fn entries(&self) -> Result<BTreeSet<String>, PtxError> {
        entries(&self.text)
    }
}

/// Why a module was not built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuilderError {
    /// A name that is no [`NvptxArch`].
    #[error(
        "`{name}` is not a known GPU generation; known are {}",
        known_generations()
    )]
    UnknownArch {
        /// The name given.
        name: String,
    },
    /// Neither a target directory was given nor is this a build script.
    #[error("OUT_DIR is not set (this is no build script): give CudaBuilder a target_dir")]
    NoTargetDir,
    /// No crate at the given path.
    #[error("there is no kernel crate at {}: it has no Cargo.toml", path.display())]
    NoCrate {
        /// The directory looked in.
        path: PathBuf,
    },
    /// No compiler for device code.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// A source file that the compiler will refuse.
    #[error("{} is no Rust: {reason}", path.display())]
    NoRust {
        /// The file.
        path: PathBuf,
        /// Fault found there.
        reason: String,
    },
    /// Cargo could not be run.
    #[error("{} cannot be run: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Cargo or the compiler failed.
    #[error("the device code could not be compiled by {toolchain}:\n{messages}{hint}")]
    Cargo {
        /// The compiler used.
        toolchain: String,
        /// Output of the command.
        messages: String,
        /// Advice, where there is none in the messages.
        hint: &'static str,
    },
    /// The compiler left not exactly one assembly file.
    #[error(
        "the compiler succeeded but left {count} assembly files in {}, where one is expected; \
         remove that directory and build again",
        target_dir.display()
    )]
    NoPtx {
        /// Place where it should be.
        target_dir: PathBuf,
        /// How many are there.
        count: usize,
    },
    /// The compiler's PTX does not make a module.
    #[error(transparent)]
    Ptx(#[from] PtxError),
    /// The module could not be flushed.
    #[error(transparent)]
    Ftz(#[from] FtzError),
    /// A file could not be read, written or removed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl BuilderError {
    fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

fn known_generations() -> String {
    NvptxArch::ALL
        .iter()
        .map(NvptxArch::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Writes a file whole or not at all, and leaves it alone where it has this text already: a new
/// date would make Cargo run the build script again.
fn replace_file(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), BuilderError> {
    if fs::read(path).is_ok_and(|present| present == contents.as_ref()) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)
            .map_err(|source| BuilderError::file("create", directory, source))?;
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    fs::write(&temporary, contents)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|source| {
            // The first error is the one to tell; a left-over file does no harm.
            let _ = fs::remove_file(&temporary);
            BuilderError::file("write", path, source)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_given_by_value_or_name() {
        assert_eq!(
            CudaBuilder::new("k").arch(NvptxArch::Sm80).arch.unwrap(),
            NvptxArch::Sm80
        );
        assert_eq!(
            CudaBuilder::new("k").arch("sm_90").arch.unwrap(),
            NvptxArch::Sm90
        );
        let directory = tempfile::tempdir().unwrap();
        let error = CudaBuilder::new("k")
            .arch("sm_1")
            .target_dir(directory.path())
            .build();
        assert!(matches!(error, Err(BuilderError::UnknownArch { name }) if name == "sm_1"));
    }

    #[test]
    fn an_equal_file_keeps_its_date_and_another_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/k.ptx");
        replace_file(&path, "one").unwrap();
        let date = fs::metadata(&path).unwrap().modified().unwrap();
        replace_file(&path, "one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), date);
        replace_file(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_is_reported_and_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        fs::create_dir_all(path.join("inside")).unwrap();
        let message = replace_file(&path, "text").unwrap_err().to_string();
        assert!(message.contains("taken"), "{message}");
        assert!(path.join("inside").is_dir());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
