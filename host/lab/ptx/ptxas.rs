//! Cost of a kernel on a given GPU: registers, spills, shared memory.
//!
//! Only NVIDIA's assembler knows, and it is found where CUDA is installed: `ptxas` compiles PTX
//! to machine code with no GPU present and reports what it allocated.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = "ptxas";
const EXPLICIT: &str = "ALLPAIRS_PTXAS";

/// NVIDIA's PTX assembler, as found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptxas {
    path: PathBuf,
}

/// Resources that the assembler allocated for one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// The kernel.
    pub entry: String,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's stack in local memory: arrays and spilled registers.
    pub stack_bytes: u32,
    /// Bytes that spilled registers store, over the whole text of the kernel.
    pub spill_store_bytes: u32,
    /// Bytes that spilled registers load.
    pub spill_load_bytes: u32,
}

/// Reason why the assembler could not tell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtxasError {
    /// The assembler is not installed where CUDA usually puts it.
    #[error(
        "ptxas was not found (looked at: {}); install the CUDA toolkit or set {EXPLICIT} to the \
         program's path",
        list(looked_at)
    )]
    NotFound {
        /// Every path that was tried.
        looked_at: Vec<PathBuf>,
    },
    /// The environment names a program that is not there.
    #[error("{EXPLICIT} says {}, where there is no file", path.display())]
    WrongPath {
        /// Value of the variable.
        path: PathBuf,
    },
    /// A file could not be written, or the program not be started.
    #[error("could not {action}: {source}")]
    Io {
        /// Attempted action.
        action: String,
        /// Reason of the failure.
        source: io::Error,
    },
    /// The assembler refused the module, for instance because it no longer knows the GPU.
    #[error("ptxas refused the module for sm_{sm}:\n{}", beginning(message))]
    Refused {
        /// The compute capability that it was to compile for, as 10 · major + minor.
        sm: u32,
        /// Message of the assembler.
        message: String,
    },
    /// The assembler succeeded and described no kernel, so it is of an unknown kind.
    #[error("ptxas described no kernel; it said:\n{}", beginning(message))]
    NotUnderstood {
        /// Message of the assembler.
        message: String,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// A module that is wrong once is wrong a thousand times; the first lines tell.
fn beginning(message: &str) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<&str> = message.lines().take(SHOWN).collect();
    if message.lines().count() > SHOWN {
        shown.push("…");
    }
    shown.join("\n")
}

impl Ptxas {
    /// Looks for the assembler: at `ALLPAIRS_PTXAS`, in `PATH`, in the `bin` folder of
    /// `CUDA_HOME` and of `CUDA_PATH`, in `/usr/local/cuda/bin`.
    ///
    /// # Errors
    /// [`PtxasError::NotFound`] lists the paths that were tried, [`PtxasError::WrongPath`] is
    /// for a variable that names no file: an explicit choice is never passed over.
    pub fn find() -> Result<Self, PtxasError> {
        Self::find_with(|variable| env::var_os(variable), Path::is_file)
    }

    fn find_with(
        variable: impl Fn(&str) -> Option<OsString>,
        is_file: impl Fn(&Path) -> bool,
    ) -> Result<Self, PtxasError> {
        // An empty variable is how shells spell "not set".
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(path) = variable(EXPLICIT).map(PathBuf::from) {
            return match is_file(&path) {
                true => Ok(Ptxas { path }),
                false => Err(PtxasError::WrongPath { path }),
            };
        }
        let search_path = variable("PATH").unwrap_or_default();
        let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable);
        let program = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
        let mut seen = BTreeSet::new();
        let looked_at: Vec<PathBuf> = env::split_paths(&search_path)
            .chain(homes.map(|home| Path::new(&home).join("bin")))
            .chain([PathBuf::from("/usr/local/cuda/bin")])
            .map(|folder| folder.join(&program))
            .filter(|path| seen.insert(path.clone()))
            .collect();
        match looked_at.iter().find(|path| is_file(path)) {
            Some(path) => Ok(Ptxas { path: path.clone() }),
            None => Err(PtxasError::NotFound { looked_at }),
        }
    }

    /// Location.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compiles a PTX module for the compute capability `sm` (10 · major + minor) and reports
    /// every kernel of it, sorted by name. The machine code is thrown away.
    ///
    /// # Errors
    /// [`PtxasError::Refused`] with the assembler's words, [`PtxasError::Io`],
    /// [`PtxasError::NotUnderstood`].
    pub fn resources(&self, ptx: &str, sm: u32) -> Result<Vec<Resources>, PtxasError> {
        let io = |action: String| move |source| PtxasError::Io { action, source };
        let folder = tempfile::tempdir().map_err(io("make a temporary folder".into()))?;
        let module = folder.path().join("module.ptx");
        fs::write(&module, ptx).map_err(io(format!("write {}", module.display())))?;
        // Run inside the folder, so that messages name `module.ptx` and not a temporary path.
        // `find` may have met a relative path, which is relative to the folder we are in now.
        let program =
            fs::canonicalize(&self.path).map_err(io(format!("find {}", self.path.display())))?;
        let output = Command::new(program)
            .current_dir(folder.path())
            .args([
                "-v",
                &format!("-arch=sm_{sm}"),
                "module.ptx",
                "-o",
                "module.cubin",
            ])
            .stdin(Stdio::null())
            .output()
            .map_err(io(format!("run {}", self.path.display())))?;
        let [told, complained] =
            [&output.stdout, &output.stderr].map(|s| String::from_utf8_lossy(s));
        let message = [told.trim(), complained.trim()]
            .join("\n")
            .trim()
            .to_string();
        if !output.status.success() {
            return Err(PtxasError::Refused { sm, message });
        }
        let mut kernels = parse(&message);
        if kernels.is_empty() {
            return Err(PtxasError::NotUnderstood { message });
        }
        kernels.sort_by(|a, b| a.entry.cmp(&b.entry));
        Ok(kernels)
    }
}

/// Reads what `ptxas -v` says. Lines about functions that are no kernels are passed over.
fn parse(message: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = vec![];
    let mut in_kernel = false;
    for line in message.lines() {
        if let Some((_, after)) = line.split_once("Compiling entry function '") {
            let entry = after.split('\'').next().unwrap_or_default().to_string();
            kernels.push(Resources {
                entry,
                ..Resources::default()
            });
            in_kernel = true;
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            in_kernel = kernels
                .last()
                .is_some_and(|kernel| kernel.entry == name.trim());
        } else if let Some(kernel) = kernels.last_mut().filter(|_| in_kernel) {
            let facts = line.rsplit_once(" : ").map_or(line, |(_, facts)| facts);
            facts.split(',').for_each(|fact| note(kernel, fact.trim()));
        }
    }
    kernels
}

/// Takes up one `<number> <what>` of the assembler, `4096 bytes smem`.
fn note(kernel: &mut Resources, fact: &str) {
    let fact = fact
        .strip_prefix("Used ")
        .or(fact.strip_prefix("used "))
        .unwrap_or(fact);
    let Some((number, what)) = fact.split_once(' ') else {
        return;
    };
    let Ok(number) = number.parse::<u32>() else {
        return;
    };
    match what {
        "registers" => kernel.registers = number,
        "bytes stack frame" => kernel.stack_bytes = number,
        "bytes spill stores" => kernel.spill_store_bytes = number,
        "bytes spill loads" => kernel.spill_load_bytes = number,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
ptxas info    : 0 bytes gmem, 64 bytes cmem[3]
ptxas info    : Compiling entry function 'tiled' for 'sm_75'
ptxas info    : Function properties for tiled
    248 bytes stack frame, 688 bytes spill stores, 684 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 248 bytes cumulative stack size, 4096 bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 1.722 ms
ptxas info    : Function properties for helper
    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'move' for 'sm_75'
ptxas info    : Function properties for move
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
";

    #[test]
    fn the_assembler_s_report_is_read_kernel_by_kernel() {
        let tiled = Resources {
            entry: "tiled".into(),
            registers: 32,
            stack_bytes: 248,
            spill_store_bytes: 688,
            spill_load_bytes: 684,
        };
        let other = Resources {
            entry: "move".into(),
            registers: 10,
            ..Resources::default()
        };
        assert_eq!(parse(SAID), [tiled, other]);
        assert_eq!(parse("something else\n"), []);
    }

    fn found(variables: &[(&str, &str)], file: &str) -> Result<PathBuf, PtxasError> {
        let get = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.into())
        };
        Ptxas::find_with(get, |path| path == Path::new(file)).map(|ptxas| ptxas.path)
    }

    #[test]
    #[cfg(unix)]
    fn it_is_looked_for_where_cuda_puts_it() {
        let path = ("PATH", "/usr/bin:/opt/bin");
        assert_eq!(
            found(&[path], "/opt/bin/ptxas").unwrap(),
            Path::new("/opt/bin/ptxas")
        );
        for variable in ["CUDA_HOME", "CUDA_PATH"] {
            let variables = [path, (variable, "/opt/cuda")];
            let place = "/opt/cuda/bin/ptxas";
            assert_eq!(found(&variables, place).unwrap(), Path::new(place));
        }
        let place = "/usr/local/cuda/bin/ptxas";
        assert_eq!(found(&[], place).unwrap(), Path::new(place));
        let error = found(&[path, ("CUDA_HOME", "/usr/local/cuda")], "/nowhere").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("/usr/bin/ptxas, /opt/bin/ptxas, /usr/local/cuda/bin/ptxas"),
            "{text}"
        );
        assert_eq!(text.matches("/usr/local").count(), 1, "{text}");
    }

    #[test]
    #[cfg(unix)]
    fn an_explicit_choice_is_never_passed_over() {
        let chosen = [(EXPLICIT, "/my/ptxas"), ("PATH", "/opt/bin")];
        assert_eq!(found(&chosen, "/my/ptxas").unwrap(), Path::new("/my/ptxas"));
        let error = found(&chosen, "/opt/bin/ptxas").unwrap_err();
        assert!(matches!(error, PtxasError::WrongPath { .. }), "{error:?}");
        let empty = [(EXPLICIT, ""), ("PATH", "/opt/bin")];
        assert_eq!(
            found(&empty, "/opt/bin/ptxas").unwrap(),
            Path::new("/opt/bin/ptxas")
        );
    }

    #[test]
    fn a_program_that_cannot_run_is_reported() {
        let missing = Ptxas {
            path: PathBuf::from("/nowhere/ptxas"),
        };
        let error = missing.resources("", 90).unwrap_err();
        assert!(error.to_string().contains("/nowhere/ptxas"), "{error}");
    }
}
