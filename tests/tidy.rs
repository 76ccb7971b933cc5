//! House rules that can be checked without reading the sources.

use std::fs;
use std::path::{Path, PathBuf};

use allpairs::settings::Setting;

mod english;

const SOURCES: [&str; 8] = [
    "build.rs",
    "benchmarks",
    "examples",
    "gpu-kernels/src",
    "host",
    "python/native",
    "rust-cuda",
    "tests",
];

/// The files of a kind at or below a path of the repository.
fn files(path: &Path, kind: &str) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a readable folder");
        let paths = entries.map(|entry| entry.expect("a readable folder").path());
        paths.flat_map(|path| files(&path, kind)).collect()
    } else if path.extension().is_some_and(|extension| extension == kind) {
        vec![path.to_owned()]
    } else {
        vec![]
    }
}

fn rust_files(path: &Path) -> Vec<PathBuf> {
    files(path, "rs")
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

/// Documentation of a Rust or Python file: the first line of each piece, with its number.
fn documentation(path: &Path, text: &str) -> Vec<(usize, String)> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    // An end of a docstring on a line of its own begins nothing.
    let marks: &[&str] = if is_rust {
        &["///", "//!"]
    } else {
        &["#:", "\"\"\""]
    };
    let mut begun = vec![];
    let mut before = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let mark = marks.iter().find(|mark| line.starts_with(**mark));
        if let Some(mark) = mark
            && before != Some(mark)
        {
            begun.push((index + 1, line[mark.len()..].trim_start().to_owned()));
        }
        before = mark;
    }
    begun
}

#[test]
fn documentation_begins_with_a_noun_or_a_verb() {
    const NEITHER: [&str; 6] = ["What", "Whether", "Whose", "Its", "Their", "Those"];
    let python = files(&crate::support::root().join("python"), "py");
    assert!(python.len() > 15, "only {} files found", python.len());
    let mut pieces = 0;
    for path in all_rust_files().into_iter().chain(python) {
        for (line, beginning) in documentation(&path, &read(&path)) {
            let word = beginning.split(|end: char| !end.is_alphabetic()).next();
            assert!(
                !NEITHER.contains(&word.unwrap_or_default()),
                "{}:{line}: {beginning}",
                path.display()
            );
            pieces += 1;
        }
    }
    assert!(pieces > 5_000, "only {pieces} pieces of documentation");
}

/// Messages spell a setting as an argument that Python's functions have. Some settings are options of the
/// program alone.
#[test]
fn settings_are_arguments_in_python() {
    const OF_THE_PROGRAM: [Setting; 7] = [
        Setting::Epoch,
        Setting::Independent,
        Setting::Moon,
        Setting::Start,
        Setting::Steps,
        Setting::Streams,
        Setting::Tile,
    ];
    let python = crate::support::root().join("python/allpairs");
    let texts: String = files(&python, "py").iter().map(|path| read(path)).collect();
    for setting in Setting::ALL {
        let argument = setting.argument();
        let is_there = texts.contains(&format!("    {argument}: "))
            || texts.contains(&format!("(self, {argument}: "));
        let is_there = is_there || OF_THE_PROGRAM.contains(&setting);
        assert!(is_there, "no function of Python has `{argument}`");
    }
}

/// The library names options in one file, which spells every setting for the front of the process.
#[test]
fn the_library_does_not_know_the_command_line() {
    let root = crate::support::root().join("host/library");
    let names_an_option = |line: &str| {
        let mut rest = line.split("--").skip(1);
        !line.trim_start().starts_with("//")
            && rest.any(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()))
    };
    assert!(names_an_option(r#"    "choose --device cpu""#) && !names_an_option("1 -- 2"));
    let spells = root.join("settings.rs");
    for path in rust_files(&root).into_iter().filter(|path| *path != spells) {
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

/// The lines of a table of modules in ARCHITECTURE.md, lowest first, each with the names on it.
fn modules_by_line(architecture: &str) -> Vec<Vec<String>> {
    let (_, table) = architecture
        .split_once("## Modules of the library")
        .expect("there is a table");
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with("| `"))
        .take_while(|line| line.starts_with("| `"));
    let names = |text: &str| -> Vec<String> {
        let quoted = text.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    };
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells
        .flat_map(|cell| cell.split(" then ").map(names))
        .collect()
}

/// The names that follow `crate::` in the code of a file, tests and comments apart; empty ones for types and lists.
fn names_at_the_root(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let is_of_name = |c: &char| c.is_ascii_lowercase() || *c == '_' || c.is_ascii_digit();
    let names = lines.flat_map(|line| line.split("crate::").skip(1));
    names
        .map(|rest| rest.chars().take_while(is_of_name).collect())
        .collect()
}

/// Each module of the library uses only those on its own line of ARCHITECTURE.md's table, or above.
#[test]
fn modules_use_what_is_below_them() {
    let root = crate::support::root();
    let lines = modules_by_line(&read(&root.join("ARCHITECTURE.md")));
    assert!(lines.len() > 12, "{lines:?}");
    let line_of = |module: &str| {
        let has = |line: &Vec<String>| line.iter().any(|name| name == module);
        lines
            .iter()
            .position(has)
            .unwrap_or_else(|| panic!("`{module}` is not in ARCHITECTURE.md's table"))
    };
    let library = root.join("host/library");
    let mut found = 0;
    for path in rust_files(&library) {
        let inner = path.strip_prefix(&library).expect("a file of it");
        let text = read(&path);
        let is_test =
            inner.ends_with("tests.rs") || inner.components().any(|c| c.as_os_str() == "tests");
        if is_test || inner.ends_with("lib.rs") {
            continue;
        }
        let first = inner.components().next().expect("a name").as_os_str();
        let module = first.to_str().expect("UTF-8").trim_end_matches(".rs");
        for used in names_at_the_root(&text) {
            if used.is_empty() {
                continue; // a type
            }
            found += 1;
            assert!(
                line_of(&used) <= line_of(module),
                "{}: `{module}` uses `{used}`, which is above it",
                path.display()
            );
        }
    }
    assert!(found > 300, "only {found} uses found");
}

/// The tests that ARCHITECTURE.md names for its invariants exist.
#[test]
fn invariants_name_tests_that_exist() {
    let page = read(&crate::support::root().join("ARCHITECTURE.md"));
    let (_, invariants) = page.split_once("## Invariants").expect("a section");
    let tests = invariants
        .split("\n* ")
        .filter_map(|item| item.split_once(" Test"))
        .flat_map(|(_, names)| names.split('`').skip(1).step_by(2));
    let tests: Vec<String> = tests.map(|name| format!("fn {name}()")).collect();
    assert!(tests.len() > 20, "{tests:?}");
    let sources: Vec<String> = all_rust_files().iter().map(|path| read(path)).collect();
    for test in tests {
        let is_there = sources.iter().any(|source| source.contains(&test));
        assert!(is_there, "ARCHITECTURE.md names `{test}`");
    }
}

/// Each file of the command line can be read before those that use it: none uses itself through others.
#[test]
fn files_of_the_command_line_have_an_order() {
    let folder = crate::support::root().join("host/cli");
    let module = |path: &PathBuf| {
        let name = path.file_stem()?.to_str()?.to_owned();
        (!["lib", "build", "program"].contains(&&*name)).then(|| (name, read(path)))
    };
    let files: Vec<(String, String)> = rust_files(&folder).iter().filter_map(module).collect();
    let mut left: Vec<(&str, Vec<String>)> = vec![];
    for (name, text) in &files {
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        assert!(!code.contains("super::"), "{name}: write `crate::`");
        let used = names_at_the_root(text);
        for used in &used {
            let is_file = files.iter().any(|(name, _)| name == used);
            assert!(is_file, "{name} uses `crate::{used}`, which is not a file");
        }
        left.push((name, used));
    }
    let uses: usize = left.iter().map(|(_, used)| used.len()).sum();
    assert!(uses > 100, "only {uses} uses found");
    loop {
        let names: Vec<&str> = left.iter().map(|(name, _)| *name).collect();
        let (free, others): (Vec<_>, Vec<_>) = (left.into_iter())
            .partition(|(_, used)| !used.iter().any(|used| names.contains(&used.as_str())));
        if others.is_empty() {
            return;
        }
        assert!(!free.is_empty(), "a circle, or above one: {others:#?}");
        left = others;
    }
}

/// Names of the public types in a file.
fn public_types(text: &str) -> Vec<String> {
    let kinds = [
        "pub struct ",
        "pub enum ",
        "pub trait ",
        "pub unsafe trait ",
    ];
    let declared = text
        .lines()
        .filter_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)));
    let name = |rest: &str| {
        let is_of_name = |c: &char| c.is_alphanumeric() || *c == '_';
        rest.chars().take_while(is_of_name).collect()
    };
    declared.map(name).collect()
}

/// Public types of the library share a name neither with each other nor with those of `gpu_kernels`, beside
/// which they are seen.
#[test]
fn names_of_the_library_mean_one_thing() {
    assert_eq!(
        public_types("pub struct A<T>(T);\npub(crate) enum B {"),
        ["A"]
    );
    let root = crate::support::root();
    let mut known: Vec<(String, PathBuf)> = vec![];
    for path in rust_files(&root.join("gpu-kernels/src")) {
        let names = public_types(&read(&path)).into_iter();
        known.extend(names.map(|name| (name, path.clone())));
    }
    for path in rust_files(&root.join("host/library")) {
        for name in public_types(&read(&path)) {
            let other = known.iter().find(|(other, _)| *other == name);
            assert!(
                other.is_none(),
                "`{name}` is in {} and in {}",
                path.display(),
                other.expect("found").1.display()
            );
            known.push((name, path.clone()));
        }
    }
    assert!(known.len() > 300, "only {} types found", known.len());
}

/// Which buffers a kernel takes stands in its line of the list, and is read in one place.
#[test]
fn kernels_are_launched_in_one_place() {
    let folder = crate::support::root().join("host/library");
    let launches = |text: &str| {
        let blocks = text.split("unsafe {").skip(1);
        let calls = blocks.filter_map(|block| block.split('}').next());
        let kinds = [
            ".launch(",
            ".launch_beside(",
            ".launch_reading(",
            ".launch_in(",
        ];
        let is_launch = |call: &&str| kinds.iter().any(|kind| call.contains(kind));
        calls.filter(is_launch).count()
    };
    assert_eq!(
        launches("unsafe { device.launch(entry) } unsafe { f() }.launch()"),
        1
    );
    let mut found = vec![];
    for path in rust_files(&folder) {
        let name = path.strip_prefix(&folder).expect("in the folder");
        let machines = ["force/device.rs", "force/cuda.rs", "force/emulated.rs"];
        if launches(&read(&path)) > 0 && !machines.iter().any(|machine| name == Path::new(machine))
        {
            found.push(name.to_owned());
        }
    }
    assert_eq!(found, [Path::new("force/memory.rs")]);
}

/// The vector loops of the CPU name no adaptor of an iterator: an adaptor is a function of the standard
/// library, and whether it becomes a part of the loop, with the loop's vector instructions, depends on how
/// the program is built.
#[test]
fn vector_loops_count_an_index() {
    const ADAPTORS: [&str; 10] = [
        "as_flattened",
        "enumerate(",
        "extend(",
        "filter(",
        "fold(",
        "for_each(",
        "into_iter(",
        "iter_mut(",
        "map(",
        "zip(",
    ];
    let mut functions = 0;
    for path in rust_files(&crate::support::root().join("host/library/force/cpu")) {
        let text = read(&path);
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let Some(indent) = line.strip_suffix("#[inline(always)]") else {
                continue;
            };
            let end = format!("{indent}}}");
            for (number, line) in (start + 1..).zip(&lines[start..]) {
                let named = ADAPTORS.iter().find(|adaptor| line.contains(**adaptor));
                assert!(named.is_none(), "{}:{number}: {line}", path.display());
                if *line == end {
                    break;
                }
            }
            functions += 1;
        }
    }
    assert!(functions > 25, "only {functions} functions found");
}

/// Kernels know nothing of the host: they need nothing but the standard library of device code.
#[test]
fn kernels_depend_on_the_device_library_alone() {
    let manifest = read(&crate::support::root().join("gpu-kernels/Cargo.toml"));
    let (_, dependencies) = manifest
        .split_once("[dependencies]\n")
        .expect("there are some");
    let dependencies: Vec<&str> = dependencies
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(dependencies, ["cuda_std.workspace = true"]);
}

/// A package compiles from what it includes.
#[test]
fn sources_include_files_of_their_package() {
    let root = crate::support::root();
    let manifest = read(&root.join("Cargo.toml"));
    let mut found = 0;
    for path in ["host", "rust-cuda", "gpu-kernels/src", "python/native"]
        .iter()
        .flat_map(|folder| rust_files(&root.join(folder)))
    {
        let text = read(&path);
        for mark in ["include_bytes!(\"", "include_str!(\""] {
            for rest in text.split(mark).skip(1) {
                let name = rest.split('"').next().unwrap_or_default();
                let file = path.parent().expect("a folder").join(name);
                let Ok(file) = file.canonicalize() else {
                    continue; // a text about such a line
                };
                found += 1;
                let has_manifest = |folder: &&Path| folder.join("Cargo.toml").exists();
                let package = path.ancestors().skip(1).find(has_manifest);
                let package = package.expect("the root has one");
                let package = package.canonicalize().expect("it is there");
                let inner = file.strip_prefix(&package).ok().map(Path::to_owned);
                let is_included = inner.is_some_and(|inner| {
                    // The library's manifest is in the root, of which it includes parts.
                    !path.starts_with(root.join("host/library"))
                        || inner.starts_with("host/library")
                        || manifest.contains(&format!("\"/{}\"", inner.display()))
                });
                assert!(is_included, "{} includes {name}", path.display());
            }
        }
    }
    assert!(found >= 7, "only {found} files found");
}
