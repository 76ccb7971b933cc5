//! Chooses between checked-in and freshly compiled modules, and hands them to the program.
//!
//! Modules are checked in so that nobody needs a device compiler to build the program: packed, next
//! to a text that describes each kernel in a line. The text also says of which sources, by which
//! compiler and with which flags they were made: modules of other sources are never embedded.

use crate::hash::{build_script, bytes_hash};
use crate::module::Parts;
use crate::packed::pack;
use crate::table::described;
use crate::{
    BuilderError, CARGO_VARIABLE, CudaBuilder, NvptxArch, PtxError, RUSTC_VARIABLE, Toolchain,
    compile, describe, mark_flushes, replace_file, source_hash,
};
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::thread::{self, ScopedJoinHandle};
use std::{env, fs};
use thiserror::Error;

/// The variable that holds a [`Mode`].
pub const MODE_VARIABLE: &str = "ALLPAIRS_PTX";

/// Which modules are embedded, and what happens to the checked-in ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Checked-in modules where they are up to date, else fresh ones. The default.
    UpToDate,
    /// Fresh ones, and the checked-in ones are replaced by them.
    Write,
    /// Checked-in ones, after comparison with fresh ones.
    Check,
    /// Fresh ones, whatever is checked in.
    Fresh,
}

impl Mode {
    /// Mode that [`MODE_VARIABLE`] names.
    ///
    /// # Errors
    /// A value that is none of `write`, `check`, `fresh`.
    pub fn from_environment() -> Result<Self, ModulesError> {
        env::var_os(MODE_VARIABLE)
            .unwrap_or_default()
            .to_string_lossy()
            .parse()
    }
}

impl FromStr for Mode {
    type Err = ModulesError;

    fn from_str(value: &str) -> Result<Self, ModulesError> {
        match value {
            "" => Ok(Mode::UpToDate),
            "write" => Ok(Mode::Write),
            "check" => Ok(Mode::Check),
            "fresh" => Ok(Mode::Fresh),
            _ => Err(ModulesError::Mode {
                value: value.to_owned(),
            }),
        }
    }
}

/// The modules of a kernel crate, one for each GPU generation.
#[derive(Debug)]
pub struct KernelModules {
    label: String,
    kernels: PathBuf,
    libraries: Vec<PathBuf>,
    generations: Vec<NvptxArch>,
}

impl KernelModules {
    /// Modules of the crate in the directory `kernels`, checked in below it in `ptx`.
    ///
    /// `label` opens the text that describes them: the names of program and crate.
    pub fn new(label: &str, kernels: impl AsRef<Path>) -> Self {
        Self {
            label: label.to_owned(),
            kernels: kernels.as_ref().to_owned(),
            libraries: Vec::new(),
            generations: Vec::new(),
        }
    }

    /// Directories of the other crates whose sources go into the modules.
    pub fn libraries<P: AsRef<Path>>(mut self, crates: impl IntoIterator<Item = P>) -> Self {
        self.libraries = crates
            .into_iter()
            .map(|path| path.as_ref().to_owned())
            .collect();
        self
    }

    /// The generations, each of which gets a module.
    pub fn generations(mut self, generations: &[NvptxArch]) -> Self {
        self.generations = generations.to_vec();
        self
    }

    /// Cargo's lines that name what the modules depend on.
    pub fn directives(&self) -> Vec<String> {
        let mut lines: Vec<String> = [MODE_VARIABLE, RUSTC_VARIABLE, CARGO_VARIABLE]
            .map(|name| format!("cargo::rerun-if-env-changed={name}"))
            .into();
        let sources = self.crates().into_iter().flat_map(|path| {
            let always = [path.join("src"), path.join("Cargo.toml")];
            always.into_iter().chain(build_script(&path))
        });
        lines.extend(
            sources
                .chain([self.directory()])
                .map(|path| format!("cargo::rerun-if-changed={}", path.display())),
        );
        lines
    }

    /// Sees to a file that holds the modules, each precise and, by the marks in it, with denormals
    /// flushed. The file is the checked-in one, or it is in `out_dir`; `packed.rs` describes its format.
    ///
    /// # Errors
    /// Sources that differ from those of the checked-in modules where no compiler is found, in
    /// [`Mode::Check`] a difference between checked-in and fresh modules, and failed compilations.
    pub fn provide(&self, mode: Mode, out_dir: &Path) -> Result<Provided, ModulesError> {
        let compiler = DeviceCompiler {
            modules: self,
            out_dir,
            toolchain: OnceLock::new(),
        };
        self.provide_with(mode, out_dir, &compiler)
    }

    fn provide_with(
        &self,
        mode: Mode,
        out_dir: &Path,
        compiler: &dyn Compile,
    ) -> Result<Provided, ModulesError> {
        let flags: Vec<String> = self.generations.iter().map(flags_line).collect();
        let sources = source_hash(&self.crates(), &flags)?;
        let checked_in = self.checked_in()?;
        let up_to_date = checked_in
            .as_ref()
            .is_some_and(|checked_in| checked_in.sources == sources);
        if mode == Mode::UpToDate && up_to_date {
            return Ok(Provided {
                packed: self.packed(),
                notes: Vec::new(),
            });
        }

        let identity = compiler.identity().map_err(|source| match mode {
            Mode::UpToDate => ModulesError::OutOfDate {
                path: self.table(),
                source,
            },
            _ => source.into(),
        })?;
        let texts = self.compile(compiler)?;
        let fresh = self.fresh(&texts, &identity, &flags, sources)?;
        let mut notes = vec![self.compilation_note(mode, &compiler.description()?)];
        let packed = match mode {
            Mode::Check => {
                let checked_in = checked_in.ok_or_else(|| ModulesError::NotCheckedIn {
                    table: self.table(),
                    packed: self.packed(),
                })?;
                notes.extend(compare(&self.table(), &checked_in, &fresh.table)?);
                self.packed()
            }
            Mode::Write => {
                replace_file(&self.packed(), &fresh.packed)?;
                replace_file(&self.table(), &fresh.table.text)?;
                self.packed()
            }
            Mode::UpToDate | Mode::Fresh => {
                let packed = out_dir.join(PACKED);
                replace_file(&packed, &fresh.packed)?;
                packed
            }
        };
        Ok(Provided { packed, notes })
    }

    fn compilation_note(&self, mode: Mode, compiler: &str) -> String {
        let generations: Vec<String> = self.generations.iter().map(ToString::to_string).collect();
        let compiled = generations.join(", ");
        let (table, directory) = (self.table(), self.directory());
        let (table, directory) = (table.display(), directory.display());
        match mode {
            Mode::UpToDate => format!(
                "{table} is missing or was made of other sources, so this build compiled {compiled} \
                 with {compiler}; `{MODE_VARIABLE}=write cargo build` renews it"
            ),
            Mode::Write => format!("compiled {compiled} with {compiler} and wrote {directory}"),
            Mode::Check => format!("compared {directory} with {compiled} by {compiler}"),
            Mode::Fresh => format!("compiled {compiled} with {compiler}"),
        }
    }

    /// Compiles the module of each generation: all at the same time, because a compilation takes
    /// minutes on one core.
    fn compile(&self, compiler: &dyn Compile) -> Result<Vec<String>, BuilderError> {
        thread::scope(|scope| {
            let started: Vec<_> = self
                .generations
                .iter()
                .map(|&arch| scope.spawn(move || compiler.compile(arch)))
                .collect();
            let joined = started.into_iter().map(ScopedJoinHandle::join);
            joined
                .map(|text| text.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    }

    fn fresh(
        &self,
        texts: &[String],
        compiler: &str,
        flags: &[String],
        sources: u64,
    ) -> Result<Fresh, ModulesError> {
        let modules = || self.generations.iter().copied().zip(texts);
        let marked: Vec<(NvptxArch, String)> = modules()
            .map(|(arch, text)| Ok((arch, mark_flushes(text)?)))
            .collect::<Result<_, BuilderError>>()?;
        let parts: Vec<(NvptxArch, Parts<'_>)> = marked
            .iter()
            .map(|(arch, text)| Ok((*arch, Parts::of(text)?)))
            .collect::<Result<_, PtxError>>()?;
        let packed = pack(&parts);
        let plain: Vec<(NvptxArch, &str)> = modules()
            .map(|(arch, text)| (arch, text.as_str()))
            .collect();
        let mut text = format!(
            "# {}: the kernels in {PACKED}, for each GPU generation. `{MODE_VARIABLE}=write cargo build` \
             renews both files.\n{COMPILER}{compiler}\n",
            self.label
        );
        for flags in flags {
            text.extend(["# flags: ", flags, "\n"]);
        }
        let hash = bytes_hash(&packed);
        text.extend([
            format!("{SOURCES}{sources:016x}\n"),
            describe(&plain)?,
            format!("{HASH}{hash:016x}\n"),
        ]);
        Ok(Fresh {
            table: Table {
                text,
                compiler: compiler.to_owned(),
                sources,
                packed: hash,
            },
            packed,
        })
    }

    /// Reads the checked-in table, if there is one and the packed modules are those that it describes.
    fn checked_in(&self) -> Result<Option<Table>, BuilderError> {
        let table = read_if_present(&self.table())?;
        let table = table.and_then(|bytes| Table::read(&String::from_utf8_lossy(&bytes)));
        let packed = read_if_present(&self.packed())?;
        Ok(table.filter(|table| packed.is_some_and(|packed| bytes_hash(&packed) == table.packed)))
    }

    fn directory(&self) -> PathBuf {
        self.kernels.join("ptx")
    }

    fn packed(&self) -> PathBuf {
        self.directory().join(PACKED)
    }

    fn table(&self) -> PathBuf {
        self.directory().join("kernels.txt")
    }

    fn crates(&self) -> Vec<PathBuf> {
        let mut crates = vec![self.kernels.clone()];
        crates.extend_from_slice(&self.libraries);
        crates
    }
}

/// Name of the file of packed modules.
const PACKED: &str = "kernels.bin";

fn flags_line(arch: &NvptxArch) -> String {
    format!("{arch} {}", compile::flags(*arch, &[], &[]).join(" "))
}

/// Modules for the program to embed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Provided {
    /// The file that holds them.
    pub packed: PathBuf,
    /// Remarks that the user should see.
    pub notes: Vec<String>,
}

/// Modules that were just compiled.
struct Fresh {
    table: Table,
    packed: Vec<u8>,
}

/// A text that says of what the packed modules were made, by which compiler and how, and what
/// their kernels consist of.
struct Table {
    text: String,
    compiler: String,
    sources: u64,
    /// Hash of the packed modules.
    packed: u64,
}

// What its lines begin with that `read` looks for.
const COMPILER: &str = "# compiler: ";
const SOURCES: &str = "# sources: ";
/// The last line, because what differs in it differs in a line before.
const HASH: &str = "# packed: ";

impl Table {
    /// Reads a table, or returns `None` for a text that lacks a part.
    ///
    /// Git may have given the file the line endings of the system.
    fn read(text: &str) -> Option<Self> {
        let text = text.replace("\r\n", "\n");
        let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
        let hash = |name| u64::from_str_radix(field(name)?, 16).ok();
        Some(Self {
            compiler: field(COMPILER)?.to_owned(),
            sources: hash(SOURCES)?,
            packed: hash(HASH)?,
            text,
        })
    }

    /// Kernels and generations.
    fn kernels(&self) -> BTreeSet<&str> {
        described(&self.text).collect()
    }
}

fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>, BuilderError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(BuilderError::file("read", path, error)),
    }
}

/// Compares the checked-in table with a fresh one, which have hashes of all that was packed; the
/// result is a remark, where there is one.
fn compare(path: &Path, checked_in: &Table, fresh: &Table) -> Result<Option<String>, ModulesError> {
    if checked_in.compiler == fresh.compiler {
        return match first_difference(&checked_in.text, &fresh.text) {
            None => Ok(None),
            Some((line, [checked_in, fresh])) => Err(ModulesError::Differs {
                path: path.to_owned(),
                line,
                checked_in,
                fresh,
            }),
        };
    }
    if checked_in.sources != fresh.sources {
        return Err(ModulesError::OtherSources {
            path: path.to_owned(),
        });
    }
    let (old, new) = (checked_in.kernels(), fresh.kernels());
    if old != new {
        let names = |names: Vec<&&str>| names.into_iter().map(ToString::to_string).collect();
        return Err(ModulesError::Kernels {
            path: path.to_owned(),
            missing: names(new.difference(&old).collect()),
            superfluous: names(old.difference(&new).collect()),
        });
    }
    Ok(Some(format!(
        "{} was made by {}, which the compiler here ({}) cannot reproduce byte for byte: only \
         sources, flags and the names of {} kernels were compared",
        path.display(),
        checked_in.compiler,
        fresh.compiler,
        new.len()
    )))
}

/// The first line, counted from 1, in which two texts differ.
fn first_difference(left: &str, right: &str) -> Option<(usize, [String; 2])> {
    if left == right {
        return None;
    }
    // Not `lines()`: a missing newline at the end is a difference too.
    let (mut left, mut right) = (left.split('\n'), right.split('\n'));
    (1..)
        .map(|line| (line, [left.next(), right.next()]))
        .find(|(_, [a, b])| a != b)
        .map(|(line, pair)| {
            (
                line,
                pair.map(|text| text.unwrap_or("(end of file)").to_owned()),
            )
        })
}

/// A device compiler, so that tests can do without one.
trait Compile: Sync {
    /// Which compiler it is, the same on every machine.
    fn identity(&self) -> Result<String, BuilderError>;
    /// Which it is and where.
    fn description(&self) -> Result<String, BuilderError>;
    fn compile(&self, arch: NvptxArch) -> Result<String, BuilderError>;
}

/// Looked for only when something has to be compiled.
struct DeviceCompiler<'a> {
    modules: &'a KernelModules,
    out_dir: &'a Path,
    toolchain: OnceLock<Toolchain>,
}

impl DeviceCompiler<'_> {
    fn toolchain(&self) -> Result<&Toolchain, BuilderError> {
        match self.toolchain.get() {
            Some(toolchain) => Ok(toolchain),
            None => {
                let found = Toolchain::find()?;
                Ok(self.toolchain.get_or_init(|| found))
            }
        }
    }
}

impl Compile for DeviceCompiler<'_> {
    fn identity(&self) -> Result<String, BuilderError> {
        Ok(self.toolchain()?.identity().to_owned())
    }

    fn description(&self) -> Result<String, BuilderError> {
        Ok(self.toolchain()?.to_string())
    }

    fn compile(&self, arch: NvptxArch) -> Result<String, BuilderError> {
        let built = CudaBuilder::new(&self.modules.kernels)
            .arch(arch)
            .target_dir(self.out_dir.join("cuda_builder"))
            .toolchain(self.toolchain()?.clone())
            .build()?;
        Ok(built.text().to_owned())
    }
}

/// Why there are no modules to embed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModulesError {
    /// A value of [`MODE_VARIABLE`] that means nothing.
    #[error(
        "{MODE_VARIABLE}={value} means nothing; write (renew the checked-in PTX), check (compare \
         it with a fresh compilation) and fresh (ignore it) do, or leave it unset"
    )]
    Mode {
        /// The value.
        value: String,
    },
    /// The checked-in modules are of other sources, and there is no compiler.
    #[error(
        "{} is missing or was made of other sources, and it cannot be made anew here. Restore the \
         sources it was made of, or see to a device compiler: {source}",
        path.display()
    )]
    OutOfDate {
        /// The text that describes the modules.
        path: PathBuf,
        /// Why there is no compiler.
        source: BuilderError,
    },
    /// Nothing to compare with.
    #[error(
        "{} and {} are not both there, or one is of another time than the other; \
         `{MODE_VARIABLE}=write cargo build` makes both",
        table.display(),
        packed.display()
    )]
    NotCheckedIn {
        /// The text that describes the modules.
        table: PathBuf,
        /// The packed modules.
        packed: PathBuf,
    },
    /// The checked-in modules are of other sources, and another compiler made them.
    #[error(
        "{} was made of other sources; `{MODE_VARIABLE}=write cargo build` renews it",
        path.display()
    )]
    OtherSources {
        /// The text that describes the modules.
        path: PathBuf,
    },
    /// The checked-in modules are not what the sources compile to.
    #[error(
        "{} is not what the sources compile to; line {line} is\n  {checked_in:?}\nbut should be\n  \
         {fresh:?}\n`{MODE_VARIABLE}=write cargo build` renews it",
        path.display()
    )]
    Differs {
        /// The text that describes the modules.
        path: PathBuf,
        /// The first line that differs, from 1.
        line: usize,
        /// That line as checked in.
        checked_in: String,
        /// That line as compiled.
        fresh: String,
    },
    /// The checked-in modules have other kernels.
    #[error(
        "{} lacks the kernels {missing:?} and has {superfluous:?} too many; \
         `{MODE_VARIABLE}=write cargo build` renews it",
        path.display()
    )]
    Kernels {
        /// The text that describes the modules.
        path: PathBuf,
        /// Kernels of the sources that it lacks.
        missing: Vec<String>,
        /// Kernels that the sources do not have.
        superfluous: Vec<String>,
    },
    /// Compilation failed.
    #[error(transparent)]
    Builder(#[from] BuilderError),
    /// The compiler's output is no PTX.
    #[error(transparent)]
    Ptx(#[from] PtxError),
}

#[cfg(test)]
#[path = "checked_in_tests.rs"]
mod tests;
