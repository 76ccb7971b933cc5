//! The program under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::{TempDir, tempdir};

use super::root;

/// Exit codes, after BSD's sysexits.
pub(crate) mod code {
    pub(crate) const USAGE: i32 = 2;
    pub(crate) const DATA: i32 = 65;
    pub(crate) const UNAVAILABLE: i32 = 69;
    pub(crate) const IO: i32 = 74;
}

/// The program, about to run in `folder` on a machine that has no GPU, whatever this one has.
pub(crate) fn allpairs(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_allpairs"));
    command.current_dir(folder);
    command.env(cuda_driver::LIBRARY_VARIABLE, "none");
    // Nothing that was tuned on this machine, or will be.
    command.env("ALLPAIRS_CACHE_DIR", folder.join("cache"));
    command
}

/// The galaxy that comes with the sources.
pub(crate) fn galaxy() -> PathBuf {
    root().join("host/cli/demo/galaxy_20K.bin")
}

/// How a program ended, and what it said.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
    pub(crate) complained: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        let ended = Self {
            code: output.status.code(),
            said: text(output.stdout),
            complained: text(output.stderr),
        };
        assert!(!ended.complained.contains("panicked"), "{ended}");
        ended
    }

    /// Fails unless the program ended with this code and said this on the stream where it belongs:
    /// what was asked for on the standard output, complaints on the other.
    pub(crate) fn expect(&self, code: i32, texts: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{self}");
        let stream = match code {
            0 => &self.said,
            _ => &self.complained,
        };
        for text in texts {
            assert!(stream.contains(text), "no `{text}` in\n{self}");
        }
        self
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            code,
            said,
            complained,
        } = self;
        write!(f, "exit code {code:?}\n{said}\n{complained}")
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    Ended::of(command.output().expect("the program starts"))
}

/// Runs the program in `folder` with these arguments, parted by blanks.
pub(crate) fn try_in(folder: impl AsRef<Path>, arguments: &str) -> Ended {
    run(allpairs(folder.as_ref()).args(arguments.split_whitespace()))
}

/// A temporary folder.
pub(crate) fn new_folder() -> TempDir {
    tempdir().expect("a temporary folder")
}
