//! What the house rules ask of the sources and can be seen without reading them.

use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 7] = [
    "build.rs",
    "benchmarks",
    "examples",
    "gpu-kernels/src",
    "host",
    "rust-cuda",
    "tests",
];

/// The Rust files at or below a path of the repository.
fn rust_files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a readable folder");
        let paths = entries.map(|entry| entry.expect("a readable folder").path());
        paths.flat_map(|path| rust_files(&path)).collect()
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        vec![path.to_owned()]
    } else {
        vec![]
    }
}

fn all_rust_files() -> Vec<PathBuf> {
    let root = crate::support::root();
    let files: Vec<PathBuf> = SOURCES
        .iter()
        .flat_map(|path| rust_files(&root.join(path)))
        .filter(|path| !path.components().any(|part| part.as_os_str() == "target"))
        .collect();
    assert!(files.len() > 80, "only {} files found", files.len());
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn nothing_is_left_to_do() {
    // Spelled in parts, so that this file passes its own test.
    let marks = ["TODO", "FIXME", "XXX"].map(|mark| format!("{mark}:"));
    let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    for path in all_rust_files() {
        let text = read(&path);
        for forbidden in marks.iter().chain(&macros) {
            assert!(
                !text.contains(forbidden.as_str()),
                "{}: {forbidden}",
                path.display()
            );
        }
    }
}

/// The library names a setting as its builder does, in backticks; the program and Python put their own
/// names in its place.
#[test]
fn the_library_does_not_know_the_command_line() {
    let root = crate::support::root().join("host/library");
    let names_an_option = |line: &str| {
        let mut rest = line.split("--").skip(1);
        !line.trim_start().starts_with("//")
            && rest.any(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()))
    };
    assert!(names_an_option(r#"    "choose --device cpu""#) && !names_an_option("1 -- 2"));
    let unmended = ["fields", "plan", "tuning.rs"].map(|name| root.join(name));
    for path in rust_files(&root) {
        if unmended.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        let options = read(&path);
        let options: Vec<&str> = options.lines().filter(|l| names_an_option(l)).collect();
        assert!(options.is_empty(), "{}: {options:#?}", path.display());
    }
}

/// The sources of kernels are the same for GPU and CPU: what differs is in `cuda_std`. The crate's
/// root alone says what the device's compiler needs.
#[test]
fn kernels_have_no_conditional_code() {
    let kernels = crate::support::root().join("gpu-kernels/src");
    for path in rust_files(&kernels) {
        let text = read(&path);
        let conditional = text
            .lines()
            .filter(|line| line.contains("cfg") && !line.contains("#[cfg(test)]"));
        let allowed = usize::from(path.ends_with("src/lib.rs"));
        let found = conditional.count();
        assert!(found <= allowed, "{}: {found} times cfg", path.display());
    }
}
