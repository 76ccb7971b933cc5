//! The version of a compiler: is it new enough, and what to call it.

use std::path::Path;

/// 1.92 is the first with `-C panic=immediate-abort`.
const OLDEST: (u32, u32) = (1, 92);

/// Version, as `rustc -vV` and `cargo -vV` print it.
pub(crate) struct Version {
    pub(crate) release: String,
    commit: String,
    llvm: Option<String>,
}

impl Version {
    pub(crate) fn parse(verbose: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = verbose.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        let commit = field("commit-hash:").unwrap_or_default();
        Some(Self {
            release: field("release:")?,
            commit: commit.get(..9).unwrap_or_default().to_owned(),
            llvm: field("LLVM version:"),
        })
    }

    /// `1.97.0` of `1.97.0-nightly`.
    pub(crate) fn number(&self) -> &str {
        self.release.split('-').next().unwrap_or_default()
    }

    pub(crate) fn check_age(&self, program: &Path) -> Result<(), String> {
        let mut parts = self
            .number()
            .split('.')
            .map_while(|part| part.parse::<u32>().ok());
        let (Some(major), Some(minor)) = (parts.next(), parts.next()) else {
            return Err(format!(
                "{} has version {}",
                program.display(),
                self.release
            ));
        };
        if (major, minor) < OLDEST {
            let (oldest_major, oldest_minor) = OLDEST;
            return Err(format!(
                "{} is {}, at least {oldest_major}.{oldest_minor} is needed",
                program.display(),
                self.release
            ));
        }
        Ok(())
    }

    /// Two nightlies of one release differ, so they are told apart by their commit.
    pub(crate) fn identity(&self) -> String {
        let commit = match self.release.contains('-') {
            true => format!(" ({})", self.commit),
            false => String::new(),
        };
        let llvm = self.llvm.as_deref().unwrap_or("unknown");
        format!("rustc {}{commit}, LLVM {llvm}", self.release)
    }
}
