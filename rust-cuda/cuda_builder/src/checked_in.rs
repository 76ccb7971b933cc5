//! Chooses between checked-in and freshly compiled modules, and hands them to the program.
//!
//! Modules are checked in so that nobody needs a device compiler to build the program. Their one
//! header line says of which sources, by which compiler and with which flags they were made:
//! modules of other sources are never embedded.

use crate::header::Header;
use crate::{
    BuilderError, CARGO_VARIABLE, CudaBuilder, FLUSH, NvptxArch, PtxError, RUSTC_VARIABLE,
    Toolchain, compile, entries, mark_flushes, replace_file, source_hash,
};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
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
    /// `label` opens their header lines: the names of program and crate.
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
        let sources = self
            .crates()
            .into_iter()
            .flat_map(|path| [path.join("src"), path.join("Cargo.toml")]);
        lines.extend(
            sources
                .chain([self.checked_in_directory()])
                .map(|path| format!("cargo::rerun-if-changed={}", path.display())),
        );
        lines
    }

    /// Writes the modules and `ptx.rs`, which lists them, into `out_dir`, and returns what the
    /// user should be told.
    ///
    /// `ptx.rs` is to be included where a `PtxModule` with a `const fn new(sm: u32, ftz: bool,
    /// deflated: &'static [u8])` is in scope; each generation is there twice, precise and with
    /// denormals flushed. Both have the same bytes: the text deflated (RFC 1951), to a tenth of its
    /// size, with a `FLUSH`, which `ptx.rs` defines, where the one has nothing and the other `.ftz`.
    ///
    /// # Errors
    /// Sources that differ from those of the checked-in modules where no compiler is found, in
    /// [`Mode::Check`] a difference between checked-in and fresh modules, and failed compilations.
    pub fn provide(&self, mode: Mode, out_dir: &Path) -> Result<Vec<String>, ModulesError> {
        let compiler = DeviceCompiler {
            modules: self,
            out_dir,
            toolchain: Mutex::default(),
        };
        self.provide_with(mode, out_dir, &compiler)
    }

    fn provide_with(
        &self,
        mode: Mode,
        out_dir: &Path,
        compiler: &dyn Compile,
    ) -> Result<Vec<String>, ModulesError> {
        let mut notes = Vec::new();
        let mut compiled = Vec::new();
        let mut texts = format!("const FLUSH: char = {FLUSH:?};\n");
        let mut list = format!(
            "/// PTX modules, from the oldest GPU generation to the newest.\n\
             pub static PTX_MODULES: &[PtxModule] = &MODULES;\n\
             static MODULES: [PtxModule; {}] = [\n",
            2 * self.generations.len()
        );
        for (&arch, module) in self.generations.iter().zip(self.modules(mode, compiler)) {
            let module = module?;
            if module.compiled {
                compiled.push(arch.to_string());
            }
            notes.extend(module.note);
            let marked = mark_flushes(&module.text).map_err(BuilderError::from)?;
            let name = format!("{arch}.ptx.deflated");
            replace_file(&out_dir.join(&name), deflated(&marked))?;
            let (number, constant) = (arch.number(), arch.to_string().to_uppercase());
            // Writing to a String cannot fail.
            let _ = writeln!(
                texts,
                "static {constant}: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\"));"
            );
            for ftz in [false, true] {
                let _ = writeln!(list, "    PtxModule::new({number}, {ftz}, {constant}),");
            }
        }
        replace_file(&out_dir.join("ptx.rs"), list + "];\n" + &texts)?;
        if !compiled.is_empty() {
            notes.insert(
                0,
                self.compilation_note(mode, &compiled, &compiler.description()?),
            );
        }
        Ok(notes)
    }

    fn compilation_note(&self, mode: Mode, compiled: &[String], compiler: &str) -> String {
        let directory = self.checked_in_directory();
        let (compiled, directory) = (compiled.join(", "), directory.display());
        match mode {
            Mode::UpToDate => format!(
                "the PTX in {directory} is missing or was made of other sources, so this build \
                 compiled {compiled} with {compiler}; `{MODE_VARIABLE}=write cargo build` renews it"
            ),
            Mode::Write => format!("compiled {compiled} with {compiler} and wrote {directory}"),
            Mode::Check => format!("compared {directory} with {compiled} by {compiler}"),
            Mode::Fresh => format!("compiled {compiled} with {compiler}"),
        }
    }

    /// The module of each generation: at the same time, as a compilation is minutes on one core.
    fn modules(&self, mode: Mode, compiler: &dyn Compile) -> Vec<Result<Module, ModulesError>> {
        thread::scope(|scope| {
            let started: Vec<_> = self
                .generations
                .iter()
                .map(|&arch| scope.spawn(move || self.module(arch, mode, compiler)))
                .collect();
            let joined = started.into_iter().map(ScopedJoinHandle::join);
            joined
                .map(|module| module.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    }

    fn module(
        &self,
        arch: NvptxArch,
        mode: Mode,
        compiler: &dyn Compile,
    ) -> Result<Module, ModulesError> {
        let path = self.checked_in_directory().join(format!("{arch}.ptx"));
        let flags = compile::flags(arch, &[], &[]);
        let sources = source_hash(&self.crates(), &flags)?;
        let checked_in = read_if_present(&path)?;
        let header = checked_in.as_deref().and_then(Header::read);
        let up_to_date = header
            .as_ref()
            .is_some_and(|header| header.sources == sources);
        if let (Mode::UpToDate, true, Some(text)) = (mode, up_to_date, &checked_in) {
            return Ok(Module {
                text: text.clone(),
                compiled: false,
                note: None,
            });
        }

        let identity = compiler.identity().map_err(|source| match mode {
            Mode::UpToDate => ModulesError::OutOfDate {
                path: path.clone(),
                source,
            },
            _ => source.into(),
        })?;
        let fresh_header = Header {
            label: self.label.clone(),
            arch,
            compiler: identity,
            flags,
            sources,
        };
        let fresh = format!("{fresh_header}\n{}", compiler.compile(arch)?);
        if mode == Mode::Check {
            let (Some(checked_in), Some(header)) = (checked_in, header) else {
                return Err(ModulesError::NotCheckedIn { path });
            };
            let note = compare(&path, &checked_in, &header, &fresh, &fresh_header)?;
            return Ok(Module {
                text: checked_in,
                compiled: true,
                note,
            });
        }
        if mode == Mode::Write {
            replace_file(&path, &fresh)?;
        }
        Ok(Module {
            text: fresh,
            compiled: true,
            note: None,
        })
    }

    fn checked_in_directory(&self) -> PathBuf {
        self.kernels.join("ptx")
    }

    fn crates(&self) -> Vec<PathBuf> {
        let mut crates = vec![self.kernels.clone()];
        crates.extend_from_slice(&self.libraries);
        crates
    }
}

/// The precise module of one generation.
struct Module {
    text: String,
    /// True if the compiler ran.
    compiled: bool,
    note: Option<String>,
}

/// Git may have given the file the line endings of the system; PTX is compared without them.
fn read_if_present(path: &Path) -> Result<Option<String>, BuilderError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.replace("\r\n", "\n"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(BuilderError::file("read", path, error)),
    }
}

/// Compares a checked-in module with a fresh one; the result is a remark, where there is one.
fn compare(
    path: &Path,
    checked_in: &str,
    header: &Header,
    fresh: &str,
    fresh_header: &Header,
) -> Result<Option<String>, ModulesError> {
    if header.compiler == fresh_header.compiler {
        return match first_difference(checked_in, fresh) {
            None => Ok(None),
            Some((line, [checked_in, fresh])) => Err(ModulesError::Differs {
                path: path.to_owned(),
                line,
                checked_in,
                fresh,
            }),
        };
    }
    if header.sources != fresh_header.sources {
        return Err(ModulesError::Differs {
            path: path.to_owned(),
            line: 1,
            checked_in: header.to_string(),
            fresh: fresh_header.to_string(),
        });
    }
    let [old, new] = [checked_in, fresh].map(entries);
    let (old, new) = (old?, new?);
    if old != new {
        return Err(ModulesError::Entries {
            path: path.to_owned(),
            missing: new.difference(&old).cloned().collect(),
            superfluous: old.difference(&new).cloned().collect(),
        });
    }
    Ok(Some(format!(
        "{} was made by {}, which the compiler here ({}) cannot reproduce byte for byte: only \
         sources, flags and the {} entry points were compared",
        path.display(),
        header.compiler,
        fresh_header.compiler,
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
    toolchain: Mutex<Option<Toolchain>>,
}

impl DeviceCompiler<'_> {
    fn toolchain(&self) -> Result<Toolchain, BuilderError> {
        let mut found = self.toolchain.lock().expect("finding it does not panic");
        match &*found {
            Some(toolchain) => Ok(toolchain.clone()),
            None => Ok(found.insert(Toolchain::find()?).clone()),
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
            .toolchain(self.toolchain()?)
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
    /// The checked-in module is of other sources, and there is no compiler.
    #[error(
        "{} is missing or was made of other sources, and it cannot be made anew here. Restore the \
         sources it was made of, or see to a device compiler: {source}",
        path.display()
    )]
    OutOfDate {
        /// The checked-in module.
        path: PathBuf,
        /// Why there is no compiler.
        source: BuilderError,
    },
    /// Nothing to compare with.
    #[error(
        "{} does not exist or has no header line; `{MODE_VARIABLE}=write cargo build` makes it",
        path.display()
    )]
    NotCheckedIn {
        /// The checked-in module.
        path: PathBuf,
    },
    /// The checked-in module is not what the sources compile to.
    #[error(
        "{} is not what the sources compile to; line {line} is\n  {checked_in:?}\nbut should be\n  \
         {fresh:?}\n`{MODE_VARIABLE}=write cargo build` renews it",
        path.display()
    )]
    Differs {
        /// The checked-in module.
        path: PathBuf,
        /// The first line that differs, from 1.
        line: usize,
        /// That line as checked in.
        checked_in: String,
        /// That line as compiled.
        fresh: String,
    },
    /// The checked-in module has other kernels.
    #[error(
        "{} lacks the entry points {missing:?} and has {superfluous:?} too many; \
         `{MODE_VARIABLE}=write cargo build` renews it",
        path.display()
    )]
    Entries {
        /// The checked-in module.
        path: PathBuf,
        /// Kernels of the sources that it lacks.
        missing: Vec<String>,
        /// Kernels that the sources do not have.
        superfluous: Vec<String>,
    },
    /// Compilation failed.
    #[error(transparent)]
    Builder(#[from] BuilderError),
    /// The checked-in module is no PTX.
    #[error("a checked-in module: {0}")]
    Ptx(#[from] PtxError),
}

fn deflated(text: &str) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text.as_bytes());
    written
        .and_then(|()| encoder.finish())
        .expect("a Vec takes everything")
}

#[cfg(test)]
#[path = "checked_in_tests.rs"]
mod tests;
