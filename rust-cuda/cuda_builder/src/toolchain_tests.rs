//! The search for a compiler, in made-up file systems.

use super::*;
use tempfile::TempDir;

/// A directory with files that stand for compilers; what they print is in the file itself.
struct World {
    directory: TempDir,
    explicit: [Option<&'static str>; 2],
}

impl World {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            explicit: [None, None],
        }
    }

    fn write(self, path: &str, content: &str) -> Self {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn compiler(self, root: &str, release: &str) -> Self {
        let said =
            format!("release: {release}\ncommit-hash: 0123456789abcdef\nLLVM version: 22.1\n");
        self.write(&format!("{root}/bin/rustc"), &said)
            .write(&format!("{root}/bin/cargo"), &said)
    }

    fn library(self, root: &str) -> Self {
        self.write(&format!("{root}/{LIBRARY}/core/src/lib.rs"), "")
            .write(&format!("{root}/{LIBRARY}/Cargo.lock"), "")
    }

    fn explicit(mut self, rustc: Option<&'static str>, cargo: Option<&'static str>) -> Self {
        self.explicit = [rustc, cargo];
        self
    }

    fn find(&self) -> Result<Toolchain, ToolchainError> {
        let root = self.directory.path();
        let run = |program: &Path, arguments: &[&str]| match arguments {
            ["-vV"] => fs::read_to_string(program),
            ["--print", "sysroot"] => {
                let sysroot = program.parent().and_then(Path::parent).unwrap();
                fs::metadata(program).map(|_| format!("{}\n", sysroot.display()))
            }
            ["--print", "target-cpus", ..] => {
                let has_no_backend = fs::read_to_string(program)?.contains("no backend");
                Ok(if has_no_backend {
                    ""
                } else {
                    "    sm_80\n    sm_90\n"
                }
                .to_owned())
            }
            _ => Err(io::Error::other("unexpected arguments")),
        };
        Toolchain::find_in(&Surroundings {
            explicit_rustc: self.explicit[0].map(|path| root.join(path)),
            explicit_cargo: self.explicit[1].map(|path| root.join(path)),
            rustup_toolchains: root.join("toolchains"),
            system_root: root.join("usr"),
            run: &run,
        })
    }

    fn refusal(&self) -> String {
        self.find().unwrap_err().to_string()
    }
}

const NIGHTLY: &str = "toolchains/nightly-x86_64-unknown-linux-gnu";

#[test]
fn the_three_places_are_tried_in_order() {
    let world = World::new().compiler("usr", "1.96.0").library("usr");
    let found = world.find().unwrap();
    assert_eq!(found.origin(), Origin::System);
    assert_eq!(found.identity(), "rustc 1.96.0, LLVM 22.1");

    let world = world.compiler(NIGHTLY, "1.97.0-nightly");
    assert_eq!(
        world.find().unwrap().origin(),
        Origin::System,
        "the nightly has no source"
    );

    let world = world.library(NIGHTLY);
    let found = world.find().unwrap();
    assert_eq!(found.origin(), Origin::RustupNightly);
    assert_eq!(
        found.identity(),
        "rustc 1.97.0-nightly (012345678), LLVM 22.1"
    );

    let world = world
        .compiler("mine", "1.95.0")
        .library("mine")
        .explicit(Some("mine/bin/rustc"), Some("mine/bin/cargo"));
    assert_eq!(world.find().unwrap().origin(), Origin::Explicit);
}

#[test]
fn of_several_nightlies_the_current_one_comes_first_then_the_latest() {
    let dated = |date: &str| format!("toolchains/nightly-{date}-x86_64-unknown-linux-gnu");
    let mut world = World::new();
    for date in ["2026-03-01", "2026-05-25", "2025-12-24"] {
        world = world
            .compiler(&dated(date), "1.97.0-nightly")
            .library(&dated(date));
    }
    let found = world.find().unwrap().rustc;
    assert!(
        found.starts_with(world.directory.path().join(dated("2026-05-25"))),
        "{found:?}"
    );
    let world = world.compiler(NIGHTLY, "1.98.0-nightly").library(NIGHTLY);
    let found = world.find().unwrap().rustc;
    assert!(
        found.starts_with(world.directory.path().join(NIGHTLY)),
        "{found:?}"
    );
}

#[test]
fn where_nothing_is_found_each_place_says_what_is_missing_and_what_helps() {
    let bare = World::new().refusal();
    let too_little = World::new()
        .compiler(NIGHTLY, "1.97.0-nightly")
        .compiler("usr", "1.63.0");
    let too_little = too_little.library("usr").refusal();
    for message in [&bare, &too_little] {
        for expected in [
            RUSTC_VARIABLE,
            CARGO_VARIABLE,
            NIGHTLY_REMEDY,
            SYSTEM_REMEDY,
            LIBRARY,
        ] {
            assert!(
                message.contains(expected),
                "{expected} is not in:\n{message}"
            );
        }
    }
    assert!(bare.contains("usr/bin/rustc does not exist"), "{bare}");
    assert!(
        too_little.contains("core/src/lib.rs (the library source of"),
        "{too_little}"
    );
    assert!(
        too_little.contains("is 1.63.0, at least 1.92 is needed"),
        "{too_little}"
    );
}

#[test]
fn an_explicit_choice_is_never_replaced_by_another_compiler() {
    let able = || World::new().compiler("usr", "1.96.0").library("usr");
    for (world, missing) in [
        (
            able().explicit(Some("mine/bin/rustc"), None),
            "ALLPAIRS_DEVICE_CARGO is not set",
        ),
        (
            able().explicit(None, Some("mine/bin/cargo")),
            "ALLPAIRS_DEVICE_RUSTC is not set",
        ),
        (
            able().explicit(Some("mine/bin/rustc"), Some("mine/bin/cargo")),
            "does not run",
        ),
        (
            able()
                .compiler("mine", "1.96.0")
                .explicit(Some("mine/bin/rustc"), Some("mine/bin/cargo")),
            "library source",
        ),
        (
            able().explicit(Some("usr/bin/rustc"), Some("mine/bin/cargo")),
            "cargo does not exist",
        ),
    ] {
        let message = world.refusal();
        assert!(message.contains(missing), "{missing} is not in: {message}");
    }
}

#[test]
fn a_compiler_that_cannot_do_it_is_not_taken() {
    let source_version = format!("usr/{LIBRARY}").replace("library", "src/version");
    let fitting = World::new().compiler("usr", "1.96.0").library("usr");
    let fitting = fitting.write(&source_version, "1.96.0\n");
    assert!(fitting.find().is_ok());
    let other_source = fitting.write(&source_version, "1.95.0\n").refusal();
    assert!(other_source.contains("of 1.95.0"), "{other_source}");

    let without_backend = World::new().compiler("usr", "1.96.0").library("usr");
    let without_backend = without_backend
        .write("usr/bin/rustc", "release: 1.96.0\nno backend\n")
        .refusal();
    assert!(without_backend.contains("NVPTX"), "{without_backend}");

    let old_cargo = World::new().compiler("usr", "1.96.0").library("usr");
    let old_cargo = old_cargo
        .write("usr/bin/cargo", "release: 1.91.1\n")
        .refusal();
    assert!(old_cargo.contains("cargo is 1.91.1"), "{old_cargo}");

    let silent = World::new().compiler("usr", "1.96.0").library("usr");
    let silent = silent.write("usr/bin/rustc", "hello\n").refusal();
    assert!(silent.contains("does not tell its version"), "{silent}");
}
