//! The commit that the program is built from: of its repository, or what Cargo noted when it made
//! the package. It is part of release builds alone, because a developer would otherwise build
//! everything again after each commit.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Stands for an unknown commit.
const UNKNOWN: &str = "unknown";

/// File that Cargo puts into a package, which has no repository.
const NOTE: &str = ".cargo_vcs_info.json";

fn main() {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for build scripts");
    let package = PathBuf::from(package);
    let root = package.join("../..");
    println!("cargo::rerun-if-changed=build.rs");
    for line in directives(&package, &root) {
        println!("{line}");
    }
}

/// Lines for Cargo: the commit as `ALLPAIRS_COMMIT`, and the files with which it changes.
fn directives(package: &Path, root: &Path) -> Vec<String> {
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let (commit, files) = match () {
        () if !is_release => (None, vec![]),
        () if package.join(NOTE).is_file() => (noted(package), vec![package.join(NOTE)]),
        () => of_repository(root).map_or((None, vec![]), |(commit, files)| (Some(commit), files)),
    };
    let commit = commit.as_deref().unwrap_or(UNKNOWN);
    let files = files
        .iter()
        .map(|file| format!("cargo::rerun-if-changed={}", file.display()));
    let variable = format!("cargo::rustc-env=ALLPAIRS_COMMIT={commit}");
    std::iter::once(variable).chain(files).collect()
}

/// The `sha1` of Cargo's note: forty hexadecimal digits.
fn noted(package: &Path) -> Option<String> {
    let text = std::fs::read_to_string(package.join(NOTE)).ok()?;
    let after = text.split_once("\"sha1\"")?.1;
    let digits: String = after
        .chars()
        .skip_while(|c| !c.is_ascii_hexdigit())
        .take_while(char::is_ascii_hexdigit)
        .collect();
    (digits.len() == 40).then_some(digits)
}

/// The commit, `-modified` where sources differ from it, and what to watch: the log of where HEAD
/// has been, and the sources.
fn of_repository(root: &Path) -> Option<(String, Vec<PathBuf>)> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(root)
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // Sources that a user keeps inside another repository are not of that one's commits.
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let modified = if changes.is_empty() { "" } else { "-modified" };
    let watched = ["logs/HEAD", "HEAD"].map(|name| git(&["rev-parse", "--git-path", name]));
    let watched = watched.into_iter().flatten().map(|path| root.join(path));
    let sources = [
        "host",
        "gpu-kernels",
        "rust-cuda",
        "Cargo.toml",
        "Cargo.lock",
        "build.rs",
    ];
    // Cargo runs a build script again and again for a file that is not there.
    let files = watched.chain(sources.map(|path| root.join(path)));
    let files = files.filter(|path| path.exists()).collect();
    Some((format!("{commit}{modified}"), files))
}
